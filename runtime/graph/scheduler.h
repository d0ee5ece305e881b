/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the scheduler that the graph layer calls. The scheduler lies above the graph layer
 * and has a single implementation. The table keeps the layers apart. */
#ifndef FL_GRAPH_SCHEDULER_H
#define FL_GRAPH_SCHEDULER_H

#include "base/core.h"
#include "filch/report.h"

struct filch_codelet;
struct filch_graph;
struct fl_task;

/* Numbers of two sets of devices: the set of every device, and a set left without a number. */
enum { FL_ABLE_ALL = 0, FL_ABLE_UNKNOWN = UINT8_MAX };

/* A wait until fewer than `below` tasks of an open graph are live. */
typedef struct fl_open_wait {
    struct filch_graph *graph;
    filch_job *job; /* the graph's; the caller has a reference */
    uint64_t below; /* at least 1 */
    /* Below `below`: while every device has work, a sleeping thread need not be woken before so few
     * tasks are live. */
    uint64_t low;
    bool is_add;      /* also over when the graph is closed */
    const char *call; /* public call, for errors */
} fl_open_wait;

typedef struct fl_scheduler {
    uint32_t device_count;
    bool looks_ahead;   /* tasks may go to devices before their predecessors end */
    bool recalls;       /* speeds of earlier runs are in use: codelets differ by source, too */
    size_t speed_bytes; /* bytes in each codelet for measured speeds */

    /* Prepares a new codelet. Finds the devices able to run its implementations. Sets the speeds to
     * those of earlier runs, or to unknown. */
    void (*codelet_init)(struct fl_scheduler *self, struct filch_codelet *codelet);
    /* Returns the number of a set of devices (bits) that tasks run on. No second set ever has the
     * number. FL_ABLE_UNKNOWN: the numbers are used up. */
    uint8_t (*able)(struct fl_scheduler *self, const uint64_t *set);
    /* Tells whether the device is known to have failed. Thread-safe. */
    bool (*device_is_lost)(struct fl_scheduler *self, uint32_t device);
    /* Returns the device that owns piece index of count under the static partition over a set of
     * devices (at least one device). A null set means every device. */
    uint32_t (*owner)(struct fl_scheduler *self, const uint64_t *set, uint64_t index,
                      uint64_t count);
    /* Returns the predicted ns of work units of a codelet on the fastest device. Returns work
     * itself when the speed is unknown. */
    double (*estimate)(struct fl_scheduler *self, const struct filch_codelet *codelet, double work);

    /* Bytes of the scheduler's part in each graph, zeroed when the graph is made. */
    size_t graph_bytes;
    /* Prepares the scheduler's part of a sealed graph with lists of predecessors, where workers
     * look ahead: every task has a common epoch. False: no memory. */
    bool (*graph_seal)(struct fl_scheduler *self, struct filch_graph *graph);
    /* Frees the scheduler's data of a graph being freed. No job uses the graph. */
    void (*graph_drop)(struct fl_scheduler *self, struct filch_graph *graph);
    /* Bytes of the scheduler's part in each job, aligned to 64 and zeroed when the job is made. */
    size_t job_bytes;
    /* Resets the scheduler's part for a new run of the job. */
    void (*job_reset)(struct fl_scheduler *self, filch_job *job);
    /* Frees the scheduler's data of a job, at the end of the runtime. */
    void (*job_drop)(struct fl_scheduler *self, filch_job *job);
    /* Starts a job that may run now: hands the roots or the ranges to the devices. Thread-safe. */
    void (*job_start)(struct fl_scheduler *self, filch_job *job);
    /* Waits for events of a job, or for a broadcast in progress. Calls fl_job_awaited when the
     * events are past or the job is over. Thread-safe. */
    void (*job_await)(struct fl_scheduler *self, filch_job *job);
    /* Notes that a job was cancelled: work of the job waiting for an offline device ends.
     * Thread-safe. */
    void (*job_cancelled)(struct fl_scheduler *self);
    /* Returns the counters of the job's copies, one per device. */
    struct fl_traffic *(*job_traffic)(struct fl_scheduler *self, const filch_job *job);
    /* Adds the counts of an ended job, of a run of a repetition, to the counts of a job that never
     * started. One caller at a time. */
    void (*job_add)(struct fl_scheduler *self, filch_job *job, const filch_job *run);
    /* Counts the tasks of a job that will never start as skipped. */
    void (*job_skip)(struct fl_scheduler *self, filch_job *job, uint64_t tasks);
    /* Retires a complete job: no device may look at the job afterwards. Not called for broadcasts,
     * nor for jobs that never started. */
    void (*job_retire)(struct fl_scheduler *self, filch_job *job);
    /* Tells whether every worker has stopped reading the job's memory. */
    bool (*job_is_quiet)(struct fl_scheduler *self, const filch_job *job);
    /* Queues a ready task of an open graph. The thread that released or added the task calls the
     * function. */
    void (*task_ready)(struct fl_scheduler *self, struct fl_task *task);
    /* Tells whether a task or a callback of a worker makes the call. */
    bool (*is_inside)(struct fl_scheduler *self);
    /* Tells whether the calling thread may wait for jobs: false in callbacks of workers, and in
     * tasks of simulated devices. */
    bool (*may_wait)(struct fl_scheduler *self);
    /* Blocks, or works, until the job is done. Returns FILCH_OK, FILCH_TIMEOUT or
     * FILCH_WRONG_STATE. */
    filch_status (*job_wait)(struct fl_scheduler *self, filch_job *job, double seconds);
    /* Blocks, or works, until a count is 0. Returns FILCH_OK or FILCH_TIMEOUT. A blocked thread
     * needs a wake-up: a call of job_done must follow the change of the count. Does not wait on a
     * worker's own thread. */
    filch_status (*count_wait)(struct fl_scheduler *self, const _Atomic uint64_t *count,
                               double seconds);
    /* Returns the number of the caller's tasks of an open graph that were added and have not ended.
     * *others: those that count for the calling thread. For a task these are neither the task
     * itself nor tasks that wait in their functions. */
    uint64_t (*open_live)(struct fl_scheduler *self, const filch_job *job, uint64_t *others);
    /* Blocks, or works, until few tasks of an open graph are live. Returns FILCH_OK;
     * FILCH_CANCELLED (the job was cancelled or finished early, or takes no more tasks);
     * FILCH_DEADLOCK (inside a task: waiting on may never help); FILCH_TIMEOUT; FILCH_WRONG_STATE
     * (the caller cannot wait; no error is recorded); FILCH_OUT_OF_MEMORY. */
    filch_status (*open_wait)(struct fl_scheduler *self, const fl_open_wait *wait, double seconds);
    /* Lets waits for few live tasks look again: an open graph was closed. */
    void (*open_closed)(struct fl_scheduler *self);
    /* Fills the totals of a job, and count elements of device_bytes each for the devices. The
     * elements may be of an older version of filch_device_stats. */
    void (*job_stats)(struct fl_scheduler *self, const filch_job *job, filch_job_info *info,
                      void *devices, size_t device_bytes, uint32_t count);
    /* Fills the report except size, status and the path_ns of a graph. Also fills count elements of
     * device_bytes each; the elements may be of an older version of filch_losses. Not called for
     * broadcasts. */
    void (*job_report)(struct fl_scheduler *self, const filch_job *job, filch_report *report,
                       filch_losses *devices, size_t device_bytes, uint32_t count);
    /* Returns the ns per unit of work of a codelet on the device measured fastest; 0 when
     * unknown. */
    double (*least_ns)(struct fl_scheduler *self, const struct filch_codelet *codelet);
    /* Tells every thread waiting for the job's completion, or for a count, to look again. */
    void (*job_done)(struct fl_scheduler *self, filch_job *job);
} fl_scheduler;

#endif
