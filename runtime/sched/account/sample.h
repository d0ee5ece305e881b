/* SPDX-License-Identifier: Apache-2.0 */
/* Sample of a worker for a view of a running program: where its time went since the beginning, and
 * its counts. Reads what the worker keeps in any case; takes no lock. */
#ifndef FL_SCHED_ACCOUNT_SAMPLE_H
#define FL_SCHED_ACCOUNT_SAMPLE_H

#include "sched/worker/sched.h"

typedef struct fl_worker_sample {
    uint64_t on_ns;   /* time on jobs */
    uint64_t idle_ns; /* time without work, or held back from stealing */
    uint64_t off_ns;  /* time offline, or after a failure of the device */
    uint64_t ended;   /* tasks and grains retired */
    uint64_t stolen;  /* tasks and grains taken from other workers */
    uint64_t ready;   /* tasks in the worker's deques now */
    bool is_off;      /* offline or failed now */
} fl_worker_sample;

/* Samples a worker at about `now`. The counts of a worker that leaves a job meanwhile may miss the
 * job's items. Thread-safe; wait-free. */
fl_worker_sample fl_sample_worker(const fl_sched *sched, uint32_t worker, uint64_t now);

#endif
