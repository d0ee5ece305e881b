/* SPDX-License-Identifier: Apache-2.0 */
/* Scores: predicted worth of a device before measurements. The unit is a core of the host, and GPUs
 * and host cores are comparable: a host device scores the size of its team. Exceptions: the
 * caller's own scores and scores of simulated devices. */
#ifndef FL_DEVICE_SCORE_H
#define FL_DEVICE_SCORE_H

#include "device/pool.h"
#include "filch/config.h"

/* Peak rates of a core of the host, a second. */
typedef struct fl_host_core {
    double single; /* single-precision operations */
    double twice;  /* double-precision operations */
    double bytes;  /* bytes moved to and from memory */
} fl_host_core;

/* Computes the rates from the CPUs' highest frequency (3 GHz where the system does not tell) and
 * the width of the vector units. Bytes are a constant: the system tells nothing about its
 * memory. */
fl_host_core fl_host_core_read(void);
/* Returns the score of a GPU or a host device. `share`: the device's part of its place's memory,
 * used by FILCH_SCORE_MEMORY and FILCH_SCORE_CAPACITY. */
double fl_score(filch_score kind, const filch_device_info *info, double share,
                const fl_host_core *core);
/* Sets the scores of every device, by rate, or by kind where rate is null. Simulated devices keep
 * the score of their file unless the caller gives rate. */
void fl_pool_score(fl_pool *pool, filch_score kind, filch_device_rate_fn rate, void *user);

#endif
