/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated devices with memories: tiles are brought there and home again over links that take
 * time, by the code that does so for GPUs. Nothing is computed, and nothing copied: the memory is
 * addresses that nobody touches. */
#ifndef FL_BACKEND_SIM_MEMORY_H
#define FL_BACKEND_SIM_MEMORY_H

#include "backend/sim/machine.h"

/* In no table of backends: fl_sim_backend makes its devices. */
extern const fl_backend fl_sim_memory_backend;

/* Makes a described device one of the machine's; home: the one whose memory it shares, or itself.
 * FILCH_OUT_OF_MEMORY. */
filch_status fl_sim_memory_add(fl_device *device, const fl_discovery *how,
                               const fl_sim_model *model, fl_sim_machine *machine,
                               const fl_device *home);

#endif
