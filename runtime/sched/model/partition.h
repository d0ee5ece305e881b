/* SPDX-License-Identifier: Apache-2.0 */
/* Static partition of 0..n over devices by score. */
#ifndef FL_SCHED_MODEL_PARTITION_H
#define FL_SCHED_MODEL_PARTITION_H

#include <stdint.h>

#include "base/memory.h"
#include "filch/status.h"

typedef enum fl_partition_policy {
    FL_PARTITION_MAKESPAN, /* leftovers to the device that would finish them first */
    FL_PARTITION_BALANCED  /* largest remainder: every width within one of its ideal */
} fl_partition_policy;

/* Contiguous piece [lo, hi) for one device. */
typedef struct fl_device_part {
    uint64_t lo, hi;
    uint32_t device;
} fl_device_part;

/* Cuts 0..n (n < 2^63) into at most count parts in device order, into parts (capacity: count).
 * Zero-width parts are dropped; *part_count receives the number of remaining parts. A score that is
 * NaN or negative counts as 0; a total that is zero or infinite means an even split. Exact: integer
 * arithmetic on fixed-point scores, to 2^-64 of the largest; a score below half of the resolution
 * also counts as 0. O(count log count). FILCH_INVALID_ARGUMENT (null, n too large, unknown policy),
 * FILCH_OUT_OF_MEMORY; a failure leaves the outputs untouched. */
filch_status fl_partition(const fl_memory *memory, fl_partition_policy policy, uint64_t n,
                          const double *scores, uint32_t count, fl_device_part *parts,
                          uint32_t *part_count);

#endif
