/* SPDX-License-Identifier: Apache-2.0 */
/* What the graph layer asks of the scheduler above it. One implementation
 * (sched/drive/scheduler.c); the table keeps the layers apart. */
#ifndef FL_GRAPH_SCHEDULER_H
#define FL_GRAPH_SCHEDULER_H

#include "base/core.h"
#include "filch/report.h"

struct filch_codelet;
struct filch_graph;
struct fl_task;

/* Numbers of sets of devices: all of them, and one of a set that found no number. */
enum { FL_ABLE_ALL = 0, FL_ABLE_UNKNOWN = UINT8_MAX };

typedef struct fl_scheduler {
    uint32_t device_count;
    bool looks_ahead;   /* tasks may be put on devices before their predecessors are over */
    bool recalls;       /* codelets are to be told apart by their sources, too */
    size_t speed_bytes; /* what each codelet carries for measured speeds */

    /* A codelet was made: finds the devices that its implementations run on, and sets its speeds to
     * what earlier runs say, or to unknown. */
    void (*codelet_init)(struct fl_scheduler *self, struct filch_codelet *codelet);
    /* Number of a set of devices (bits) that tasks run on; no other set ever has it. */
    uint8_t (*able)(struct fl_scheduler *self, const uint64_t *set);
    /* Whether the device is known not to answer any more. Any thread. */
    bool (*device_is_lost)(struct fl_scheduler *self, uint32_t device);
    /* Device that owns piece index of count under the static partition over the devices of a set
     * (one at least); null: over all of them. */
    uint32_t (*owner)(struct fl_scheduler *self, const uint64_t *set, uint64_t index,
                      uint64_t count);
    /* Predicted ns of work units of a codelet on the fastest device; work itself when unknown. */
    double (*estimate)(struct fl_scheduler *self, const struct filch_codelet *codelet, double work);

    /* Bytes of per-device shares that each job carries, and their alignment (64). */
    size_t share_bytes;
    /* Fresh shares for a new run of the job. */
    void (*job_reset)(struct fl_scheduler *self, filch_job *job);
    /* The job may run now: hands its roots or its ranges to the devices. Any thread. */
    void (*job_start)(struct fl_scheduler *self, filch_job *job);
    /* The job waits for events, or is a broadcast that has begun: has fl_job_awaited called once
     * they are past, or it is over. Any thread. */
    void (*job_await)(struct fl_scheduler *self, filch_job *job);
    /* Some job was cancelled: what of it waits for a withdrawn device is over. Any thread. */
    void (*job_cancelled)(struct fl_scheduler *self);
    /* Where the job's copies are counted, one a device. */
    struct fl_traffic *(*job_traffic)(struct fl_scheduler *self, const filch_job *job);
    /* The job is complete: no device may look at it any more. Not called for broadcasts. */
    void (*job_retire)(struct fl_scheduler *self, filch_job *job);
    /* Whether no worker can still read the job's memory. */
    bool (*job_is_quiet)(struct fl_scheduler *self, const filch_job *job);
    /* A task of an open graph is ready; called by whoever released or added it. */
    void (*task_ready)(struct fl_scheduler *self, struct fl_task *task);
    /* Blocks, or works, until the job is done (FILCH_OK), or FILCH_TIMEOUT, FILCH_WRONG_STATE. */
    filch_status (*job_wait)(struct fl_scheduler *self, filch_job *job, double seconds);
    /* Blocks, or works, until a count is 0 (FILCH_OK), or FILCH_TIMEOUT; where it does not, a call
     * of job_done must follow the count. On a worker's own thread it does not wait. */
    filch_status (*count_wait)(struct fl_scheduler *self, const _Atomic uint64_t *count,
                               double seconds);
    /* Totals of a job, and its devices': count elements of device_bytes each, which may be those of
     * an older filch_device_stats. */
    void (*job_stats)(struct fl_scheduler *self, const filch_job *job, filch_job_info *info,
                      void *devices, size_t device_bytes, uint32_t count);
    /* Fills all but size, status and path_ns of a graph in the report, and count elements of
     * device_bytes each, which may be those of an older filch_losses. No broadcast. */
    void (*job_report)(struct fl_scheduler *self, const filch_job *job, filch_report *report,
                       filch_losses *devices, size_t device_bytes, uint32_t count);
    /* ns a unit of work of a codelet where it was measured to be least; 0 when unknown. */
    double (*least_ns)(struct fl_scheduler *self, const struct filch_codelet *codelet);
    /* The graph is being freed; no job uses it. */
    void (*graph_drop)(struct fl_scheduler *self, struct filch_graph *graph);
    /* Somebody who waits for the job's completion, or for a count, must look again. */
    void (*job_done)(struct fl_scheduler *self, filch_job *job);
} fl_scheduler;

#endif
