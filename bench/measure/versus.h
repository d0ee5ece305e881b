/* SPDX-License-Identifier: Apache-2.0 */
/* Who stands beside filch in a run: a peer, or filch itself otherwise. */
#ifndef BENCH_VERSUS_H
#define BENCH_VERSUS_H

#include "measure/session.h"

typedef struct bench_versus {
    const char *name;
    const bench_workload *workload;
    void *state;
    /* A peer: */
    const bench_peer *peer; /* null: a session of filch's */
    void *peer_state;
    bench_peer_work *work;
    /* A session: */
    bench_session session;
    bench_session_config config;
    bool is_cold; /* each run in a new runtime */
    double cpu_s; /* processor time of the last run */
} bench_versus;

/* The peers of this build that can do the workload, and as words filch's other policies; "spin",
 * filch whose workers never sleep; and "one", filch on one core of the host, by the same policy. */
void bench_versus_names(const bench_workload *workload, char *text, size_t size);

/* FILCH_NOT_FOUND where name stands for nobody here who can run the workload. */
filch_status bench_versus_exists(const char *name, const bench_workload *workload,
                                 filch_error *error);

/* For a name that exists; beside: the session of filch's own. FILCH_UNSUPPORTED where the peer
 * cannot do this kind of work, or not in the precision, or a device is to become slower; for "one"
 * where a device is none of the host. */
filch_status bench_versus_open(bench_versus *versus, const char *name, const bench_session *beside,
                               const bench_session_config *config, bool is_cold,
                               filch_error *error);
filch_status bench_versus_run(bench_versus *versus, double *seconds, filch_error *error);
/* Whether the last result agrees with filch's, by one more run where tasks have no result: then
 * whether all ran, in order. FILCH_DATA with the reason. */
filch_status bench_versus_agrees(bench_versus *versus, filch_error *error);
/* What a peer was tried with and found best; empty where there is nothing to try. */
const char *bench_versus_setting(const bench_versus *versus);
void bench_versus_close(bench_versus *versus);

#endif
