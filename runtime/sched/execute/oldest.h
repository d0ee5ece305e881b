/* SPDX-License-Identifier: Apache-2.0 */
/* Oldest entries of a deque that seem claimable, and that the thief's device can run. */
#ifndef FL_SCHED_EXECUTE_OLDEST_H
#define FL_SCHED_EXECUTE_OLDEST_H

#include "sched/model/missing.h"
#include "sync/deque.h"

/* Number of entries compared: the thief takes the entry with the fewest missing bytes. */
#define FL_OLDEST 8u

typedef struct fl_oldest {
    uint32_t count;
    uint64_t hints[FL_OLDEST];
    int64_t at[FL_OLDEST];
    /* The entry was the top when read: the index means the entry until the entry is removed. */
    bool is_top[FL_OLDEST];
    fl_missing missing[FL_OLDEST];
} fl_oldest;

/* Lists up to `most` entries, oldest first. Drops dead entries from the top. */
void fl_oldest_look(fl_worker *worker, fl_deque *deque, uint32_t most, fl_oldest *oldest);
/* The entry with the fewest missing bytes; of equals, the oldest. */
uint32_t fl_oldest_least(const fl_oldest *oldest);
void fl_oldest_forget(fl_oldest *oldest, uint32_t index);

#endif
