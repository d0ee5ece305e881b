/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated devices with memories. The code that moves tiles for GPUs brings tiles there and back,
 * over links that take time. Nothing is computed, and nothing copied: the memory consists of
 * addresses never touched. */
#ifndef FL_BACKEND_SIM_MEMORY_H
#define FL_BACKEND_SIM_MEMORY_H

#include "backend/sim/machine.h"

/* Missing in the table of backends: fl_sim_backend makes the devices. */
extern const fl_backend fl_sim_memory_backend;

/* Adds a described device to the machine. home: the device sharing its memory, or the device
 * itself. May return FILCH_OUT_OF_MEMORY. */
filch_status fl_sim_memory_add(fl_device *device, const fl_discovery *how,
                               const fl_sim_model *model, fl_sim_machine *machine,
                               const fl_device *home);

#endif
