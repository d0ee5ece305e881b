/* SPDX-License-Identifier: Apache-2.0 */
/* What a theft would have to bring to the thief's memory, and how long that takes by the measured
 * speed of the links.
 *
 * A task that is somebody else's may be looked at only while it can be neither over nor built anew.
 * A graph's job is over when its count of remaining tasks reaches zero, so the thief adds itself to
 * that count while it looks (unless it is zero already), which keeps the job, its graph, and what
 * both use of handles; and it looks at none but the tasks of that graph, which it knows by their
 * addresses. Of a closed graph all that is read here was written before the job began. Tasks of
 * open graphs, which are built while others run, are not looked at. */
#ifndef FL_SCHED_MODEL_MISSING_H
#define FL_SCHED_MODEL_MISSING_H

#include "sched/worker/worker.h"

typedef struct fl_missing {
    bool is_known;
    bool is_late;     /* some of it had better be left to others than the thief (slow.h) */
    double ns;        /* of the tasks or grains, at the thief, without what is to be brought; … */
    uint64_t bytes;   /* … what is, … */
    double bring_ns;  /* … and how long that takes; 0 where links were not measured */
    double victim_ns; /* the same of what the victim lacks */
} fl_missing;

/* Whether work may have to be brought from one device to another. */
static inline bool fl_missing_matters(const fl_worker *w, const fl_worker *victim)
{
    return w->offload != NULL && w->device->place != victim->device->place;
}

/* What a task of the worker's own would cost its device in copies, by the measured speeds of the
 * links, or the usual ones: ns until what is missing is there, behind all that is on its way, and
 * until what it makes is with another device. */
typedef struct fl_missing_total {
    double in_ns, out_ns;
} fl_missing_total;
fl_missing_total fl_missing_haul(const fl_worker *w, const fl_task *task);

/* Of the tasks of count hints, each live when seen; others than those of closed graphs that run are
 * not known. May end a job, at the end of the step. */
void fl_missing_of_hints(fl_worker *thief, const fl_worker *victim, const uint64_t *hints,
                         uint32_t count, fl_missing *missing);
/* Of positions [lo, hi) of the job in a slot: its roots, or its grains. The same. */
void fl_missing_of_range(fl_worker *thief, const fl_worker *victim, uint32_t slot, uint32_t lo,
                         uint32_t hi, fl_missing *missing);

/* Of grains [lo, hi) of a batch, whose job the caller has kept, to be run by the thief although the
 * victim is at them: how long their results take from the thief, and what they read to it, all
 * beside the run itself; *there: the same of the victim's results. 0 where links were not measured.
 */
double fl_missing_of_run(const fl_worker *thief, const fl_worker *victim, const filch_job *job,
                         uint32_t lo, uint32_t hi, double *there);

#endif
