/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that a theft would bring to the thief's memory, and their copy time by the measured speed
 * of the links.
 *
 * A thief may look at a foreign task only while the task can be neither over nor built anew. A
 * graph's job is over when its count of remaining tasks reaches zero. The thief adds itself to the
 * count during the look, unless the count is zero already. The count keeps the job, its graph, and
 * their use of handles. The thief reads only tasks of the kept graph, recognised by their
 * addresses. Everything read of a closed graph was written before the job began. Tasks of open
 * graphs are built while the graph runs, and are never read. */
#ifndef FL_SCHED_MODEL_MISSING_H
#define FL_SCHED_MODEL_MISSING_H

#include "sched/worker/worker.h"

typedef struct fl_missing {
    bool is_known;
    bool is_late;     /* a task had better be left to faster devices */
    double ns;        /* predicted time of the tasks or grains at the thief, without copies */
    uint64_t bytes;   /* bytes missing at the thief */
    double bring_ns;  /* copy time of the missing bytes, ns; 0 when links were not measured */
    double victim_ns; /* copy time of the bytes missing at the victim, ns; 0 likewise */
} fl_missing;

/* Number of a task's missing tiles with recorded names. */
#define FL_LACK_NAMES 4

/* Bytes that a task reads and that the worker's device lacks. */
typedef struct fl_lack {
    uint64_t bytes;
    bool is_coming; /* a tile is already on the way */
    uint32_t count; /* number of missing tiles */
    struct {
        const filch_data *data;
        uint32_t tile;
    } of[FL_LACK_NAMES];
} fl_lack;

/* A guess, as other workers move tiles meanwhile. */
fl_lack fl_missing_of_task(const fl_worker *w, const fl_task *task);
/* Bytes that grains [lo, hi) of a batch read and that the worker's device lacks. The caller keeps
 * the batch's job. */
uint64_t fl_missing_of_grains(const fl_worker *w, const filch_job *job, uint32_t lo, uint32_t hi);

/* Tells whether stolen work may need copies between the two devices. */
static inline bool fl_missing_matters(const fl_worker *w, const fl_worker *victim)
{
    return w->offload != NULL && w->device->place != victim->device->place;
}

/* Copy times of a task of the worker, on its device, by the measured or usual speeds of the links.
 * in_ns: ns until the missing bytes have arrived, after the copies already on the way. out_ns: ns
 * until the output has reached a second device. */
typedef struct fl_missing_total {
    double in_ns, out_ns;
} fl_missing_total;
fl_missing_total fl_missing_haul(const fl_worker *w, const fl_task *task);

/* Whether a task had better be left to faster devices: a decision of the caller. */
typedef bool (*fl_is_late_fn)(const fl_worker *thief, const fl_task *task);

/* Predicts for the tasks of count hints, every hint live when seen. Only tasks of running closed
 * graphs become known. May end a job, at the end of the step. */
void fl_missing_of_hints(fl_worker *thief, const fl_worker *victim, const uint64_t *hints,
                         uint32_t count, fl_is_late_fn is_late, fl_missing *missing);
/* Predicts for positions [lo, hi) of the job in a slot: its roots, or its grains. May end a job, at
 * the end of the step. */
void fl_missing_of_range(fl_worker *thief, const fl_worker *victim, uint32_t slot, uint32_t lo,
                         uint32_t hi, fl_is_late_fn is_late, fl_missing *missing);

/* Predicts the copies for a backup run of grains [lo, hi) at the thief, while the victim runs the
 * grains. The caller keeps the batch's job. Returns ns for the thief's results and for the thief's
 * missing input, without the run; *there: ns for the victim's results. 0 when links were not
 * measured. */
double fl_missing_of_run(const fl_worker *thief, const fl_worker *victim, const filch_job *job,
                         uint32_t lo, uint32_t hi, double *there);

#endif
