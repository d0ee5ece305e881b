/* SPDX-License-Identifier: Apache-2.0 */
/* How long the tasks of a closed graph are taken to be when they are ranked: by what is known of
 * their codelets' speeds, or by declared work where nothing is. What is known changes as tasks run,
 * mostly in the first run, so a graph that is run again may have to be ranked anew. */
#ifndef FL_GRAPH_BUILD_RANK_H
#define FL_GRAPH_BUILD_RANK_H

#include <stdbool.h>
#include <stdint.h>

struct fl_task;
struct filch_codelet;
struct filch_graph;

/* So many codelets of a graph are remembered with the speeds by which its tasks were ranked; of
 * further ones a change of speed goes unnoticed. */
#define FL_RANKED 8

/* Of one codelet. */
typedef struct fl_ranked {
    const struct filch_codelet *codelet;
    double fixed, by_work; /* ns of a task: fixed + by_work × its work */
    double work, ns;       /* of one of them, and what that took by these */
} fl_ranked;

/* The part of a task's rank that is its own; not of a gate, which has none. *at: where the codelet
 * of the task before stands, 0 at first. */
float fl_rank_own(struct filch_graph *graph, const struct fl_task *task, uint32_t *at);
/* Whether some codelet's tasks take longer or shorter, beside another's, than they were ranked by,
 * by what is known now. */
bool fl_rank_is_old(const struct filch_graph *graph);
/* From now on by what is known now. */
void fl_rank_renew(struct filch_graph *graph);

#endif
