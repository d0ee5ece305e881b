/* SPDX-License-Identifier: Apache-2.0 */
/* Estimated lengths of a closed graph's tasks, used for ranking. Estimates come from known speeds
 * of the codelets, or from declared work when no speed is known. Speeds change as tasks run, mostly
 * in the first run. A graph run again may therefore need a new ranking. */
#ifndef FL_GRAPH_BUILD_RANK_H
#define FL_GRAPH_BUILD_RANK_H

#include <stdbool.h>
#include <stdint.h>

struct fl_task;
struct filch_codelet;
struct filch_graph;

/* Number of codelets remembered per graph with the speeds used for ranking. A change of speed of a
 * further codelet goes unnoticed. */
#define FL_RANKED 8

/* Speeds used for ranking tasks of a codelet. */
typedef struct fl_ranked {
    const struct filch_codelet *codelet;
    double fixed, by_work; /* ns of a task: fixed + by_work × its work */
    double work, ns;       /* work of a sample task, and its estimated ns */
} fl_ranked;

/* Returns the task's own part of its rank. Not for gates: a gate has no own part. *at: index of the
 * previous task's codelet, 0 at first. */
float fl_rank_own(struct filch_graph *graph, const struct fl_task *task, uint32_t *at);
/* Tells whether the relative speeds of the codelets have changed since ranking. */
bool fl_rank_is_old(const struct filch_graph *graph);
/* Replaces the speeds for ranking by the speeds known now. */
void fl_rank_renew(struct filch_graph *graph);

#endif
