/* SPDX-License-Identifier: Apache-2.0 */
/* A problem in a runtime of its own, ready to be run again and again. */
#ifndef BENCH_SESSION_H
#define BENCH_SESSION_H

#include "measure/policies.h"
#include "workloads/workload.h"

typedef struct bench_session {
    const bench_workload *workload;
    void *state;
    bench_built built;
    uint32_t devices;
    bool is_virtual;
    bench_slow slow;
    bench_withdraw withdraw;
    bench_policy_room policy;
    filch_device_info *device_info; /* one a device */
    /* Of the last run. */
    double cpu_s;                  /* processor time of the whole process */
    filch_job_info info;           /* sums over its jobs */
    filch_device_stats *stats;     /* one a device, likewise */
    filch_device_stats *part;      /* room for one job's */
    bench_moves moves;             /* 0 visits: not known */
    bool wants_path;               /* the longest path is looked for, which touches all tasks */
    double wall_s, area_s, path_s; /* of the loss reports, likewise; the path 0: not known */
    filch_losses *losses, *loss_part;
} bench_session;

typedef struct bench_session_config {
    const char *devices;
    filch_score score;    /* what filch's own scores are reckoned from */
    const double *scores; /* as many as devices; null: filch's own */
    size_t score_count;
    bench_policy policy;
    bool spins;              /* workers never sleep */
    uint64_t memory_limit;   /* as filch_runtime_desc's */
    bench_slow slow;         /* during its runs; … */
    bench_withdraw withdraw; /* … so is this */
} bench_session_config;

/* Makes the runtime and the problem in it. On failure nothing is left behind. */
filch_status bench_session_open(bench_session *session, const bench_workload *workload, void *state,
                                const bench_session_config *config, filch_error *error);
/* One run from the input; seconds is what the clock of the devices says, wall or virtual. */
filch_status bench_session_run(bench_session *session, double *seconds, filch_error *error);
/* One run of about most_s seconds of an even workload (workload.h), which is then cancelled; of all
 * of it if that takes no longer, or most_s is 0. A run on which less than BENCH_PART_TILES tiles
 * ended by then goes on, up to BENCH_PART_LIMITS times most_s, so that a tile more or less is a few
 * percent at most. */
#define BENCH_PART_TILES 64
#define BENCH_PART_LIMITS 4
filch_status bench_session_run_part(bench_session *session, double most_s, double *seconds,
                                    filch_error *error);
/* Forgets the problem and makes it anew, e.g. with another tile. */
filch_status bench_session_rebuild(bench_session *session, filch_error *error);
/* The same in a new runtime, which has measured nothing yet. On failure the session is closed. */
filch_status bench_session_reopen(bench_session *session, const bench_session_config *config,
                                  filch_error *error);
/* Hands memory that earlier tiles have left unused back to the devices. */
filch_status bench_session_trim(const bench_session *session, filch_error *error);
void bench_session_close(bench_session *session);

/* The GPUs that the devices are or are slices of, each once, into BENCH_PEER_GPUS ordinals. */
unsigned bench_session_gpus(const bench_session *session, unsigned *ordinals);

/* The problem in a new runtime, where the other devices get no work. */
filch_status bench_session_open_alone(const bench_session *session,
                                      const bench_session_config *config, uint32_t index,
                                      bench_session *alone, filch_error *error);

/* Work a second of device index, alone: the others of the same runtime get no work. The problem is
 * run in a new runtime twice, once where that takes long, and the faster run counts.
 *
 * most_s > 0: of an even workload it is only a part that takes about so long; the work done over
 * the time counts, the tiles in flight at its end and their time included. The session's last run,
 * of the whole problem, tells how much work that has. Of other workloads it is the whole problem in
 * any case, as a part of them would have another rate. */
filch_status bench_session_speed_alone(const bench_session *session,
                                       const bench_session_config *config, uint32_t index,
                                       double most_s, double *speed, filch_error *error);

#endif
