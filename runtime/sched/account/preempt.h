/* SPDX-License-Identifier: Apache-2.0 */
/* Time for which the system took the core away from a worker's thread: time awake that the thread's
 * processor clock does not have. Nothing is read while tiles run; a look takes two system calls,
 * about half a microsecond, and is taken at the ends of stretches of FL_PREEMPT_LEAST_NS and more.
 * Shorter ones cannot have lost much. */
#ifndef FL_SCHED_ACCOUNT_PREEMPT_H
#define FL_SCHED_ACCOUNT_PREEMPT_H

#include <stdbool.h>
#include <stdint.h>

#define FL_PREEMPT_LEAST_NS 100000u

/* What the system says of the calling thread, since it began. */
typedef struct fl_thread_times {
    uint64_t wall_ns; /* monotonic time now */
    uint64_t cpu_ns;
    uint64_t blocked; /* how often it gave its core up by itself … */
    uint64_t taken;   /* … and lost it */
} fl_thread_times;

/* False: the system does not say. */
typedef bool (*fl_thread_times_fn)(void *user, fl_thread_times *times);

typedef struct fl_preempt {
    fl_thread_times_fn read; /* null: nothing is told */
    void *user;
    fl_thread_times last;
    uint64_t slept_ns; /* since then, by the worker's own will … */
    uint64_t sleeps;   /* … and how often */
} fl_preempt;

/* All of these: the worker's thread. From now on, by read, or null for the system's own. */
void fl_preempt_begin(fl_preempt *preempt, fl_thread_times_fn read, void *user);
/* The worker slept, as it had nothing to do. */
void fl_preempt_slept(fl_preempt *preempt, uint64_t from, uint64_t to);
/* The thread was awake from..to, at the end of which it calls this: for how long of that it did not
 * have its core though it could run. What it waited for itself in tiles is told apart by how often
 * it did either. Wake-ups that come late are not in it. */
uint64_t fl_preempt_take(fl_preempt *preempt, uint64_t from, uint64_t to);

#endif
