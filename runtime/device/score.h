/* SPDX-License-Identifier: Apache-2.0 */
/* Scores: what a device may be worth before anything was measured on it. All but the caller's own
 * and those of simulated devices are in cores of this host, so that GPUs and host cores compare:
 * a host device has the size of its team. */
#ifndef FL_DEVICE_SCORE_H
#define FL_DEVICE_SCORE_H

#include "device/pool.h"
#include "filch/config.h"

/* What one core of this host can do at best, a second. */
typedef struct fl_host_core {
    double single; /* single-precision operations */
    double twice;  /* double-precision operations */
    double bytes;  /* moved to and from memory */
} fl_host_core;

/* By the CPUs' highest frequency and the width of their vector units; where the system does not
 * tell, 3 GHz. Bytes are a constant: the system tells nothing of its memory. */
fl_host_core fl_host_core_read(void);
/* Of a GPU or a host device. `share`: the device's part of its place's memory, which
 * FILCH_SCORE_MEMORY and FILCH_SCORE_CAPACITY use; kind is none of the caller's. */
double fl_score(filch_score kind, const filch_device_info *info, double share,
                const fl_host_core *core);
/* Sets the scores of all devices; rate null: by kind, else by it. Simulated devices keep what their
 * file says unless there is rate. */
void fl_pool_score(fl_pool *pool, filch_score kind, filch_device_rate_fn rate, void *user);

#endif
