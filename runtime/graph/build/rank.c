/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/build/rank.h"

#include "graph/build/graph.h"
#include "graph/scheduler.h"

/* Largest relative change of speeds that leaves the longest paths about unchanged. */
#define CHANGE 1.25

static fl_scheduler *scheduler_of(const filch_graph *graph)
{
    return graph->object.core->scheduler;
}

static bool is_known(const filch_graph *graph, const filch_codelet *codelet)
{
    return scheduler_of(graph)->least_ns(scheduler_of(graph), codelet) > 0;
}

static double estimate(const filch_graph *graph, const filch_codelet *codelet, double work)
{
    return scheduler_of(graph)->estimate(scheduler_of(graph), codelet, work);
}

static void look_up(const filch_graph *graph, fl_ranked *ranked)
{
    double one = estimate(graph, ranked->codelet, 1);
    double more = estimate(graph, ranked->codelet, 2) - one;
    /* Speeds may have changed between the two estimates, as tasks of further graphs run. */
    ranked->by_work = more > 0 ? more : one;
    ranked->fixed = one > ranked->by_work ? one - ranked->by_work : 0;
    ranked->ns = ranked->fixed + ranked->by_work * ranked->work;
}

float fl_rank_own(filch_graph *graph, const fl_task *task, uint32_t *at)
{
    const fl_ranked *ranked = &graph->ranked[*at];
    fl_ranked other = {.codelet = task->codelet, .work = task->work};
    if (ranked->codelet != task->codelet) {
        *at = 0;
        while (*at < graph->ranked_count && graph->ranked[*at].codelet != task->codelet) {
            ++*at;
        }
        if (*at < graph->ranked_count) {
            ranked = &graph->ranked[*at];
        } else {
            look_up(graph, &other);
            ranked = &other;
            if (graph->ranked_count < FL_RANKED) {
                graph->ranked[graph->ranked_count++] = other;
            } else {
                *at = 0;
            }
        }
    }
    return (float)(ranked->fixed + ranked->by_work * (double)task->work);
}

bool fl_rank_is_old(const filch_graph *graph)
{
    double least = 0, most = 0;
    /* With a single codelet, every rank would change by the same factor. */
    for (uint32_t i = 0; i < graph->ranked_count && graph->ranked_count > 1; ++i) {
        const fl_ranked *ranked = &graph->ranked[i];
        if (ranked->ns > 0 && is_known(graph, ranked->codelet)) {
            double change = estimate(graph, ranked->codelet, ranked->work) / ranked->ns;
            least = least == 0 || change < least ? change : least;
            most = change > most ? change : most;
        }
    }
    return most > CHANGE * least;
}

/* A codelet of unknown speed gets the mean time per unit of work of the known codelets. */
void fl_rank_renew(filch_graph *graph)
{
    double ns = 0, work = 0;
    for (uint32_t i = 0; i < graph->ranked_count; ++i) {
        fl_ranked *ranked = &graph->ranked[i];
        if (is_known(graph, ranked->codelet)) {
            look_up(graph, ranked);
            ns += ranked->ns;
            work += ranked->work;
        }
    }
    for (uint32_t i = 0; i < graph->ranked_count && work > 0; ++i) {
        fl_ranked *ranked = &graph->ranked[i];
        if (!is_known(graph, ranked->codelet)) {
            ranked->fixed = 0;
            ranked->by_work = ns / work;
            ranked->ns = ranked->by_work * ranked->work;
        }
    }
}
