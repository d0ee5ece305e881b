/* SPDX-License-Identifier: Apache-2.0 */
/* Which ready task comes first where memory is short: the one of which most is there already. Roots
 * are otherwise run in the order in which they were added, and where they use more than there is
 * memory for in turn, that order may bring everything anew each time around: what a task needs left
 * just before. So a worker in that state takes several roots from its span at once, and chooses
 * among them. Tiles of work in flight pin what they use, so there are fewer of those, too. */
#include "sched/sched.h"

/* Tiles of work for which memory counts as short after something had to leave for one. */
#define PRESSED_TILES 64u
/* Of those that are left in the span, others should find enough. */
#define PART_OF_SPAN 4u

void fl_near_note(fl_worker *w)
{
    fl_offload *offload = w->offload;
    uint64_t evicted =
        fl_load_relaxed(&w->sched->core->places->residents[w->device->place].evicted);
    if (evicted != offload->evicted) {
        offload->evicted = evicted;
        offload->pressed = PRESSED_TILES;
    } else if (offload->pressed != 0) {
        --offload->pressed;
    }
}

uint32_t fl_near_room(const fl_worker *w, uint32_t rest)
{
    const fl_offload *offload = w->offload;
    if (offload == NULL || offload->pressed == 0 || offload->near_count >= FL_NEAR / 2) {
        return 1;
    }
    uint32_t room = FL_NEAR - offload->near_count;
    uint32_t most = w->sched->count == 1 ? rest : rest / PART_OF_SPAN;
    return most < 1 ? 1 : most < room ? most : room;
}

void fl_near_add(fl_worker *w, fl_task *task)
{
    w->offload->near[w->offload->near_count++] = task;
}

/* Bytes that a task would have to bring; a guess, as others move tiles meanwhile. */
static uint64_t missing(const fl_worker *w, const fl_task *task)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < task->access_count; ++i) {
        fl_task_access access = task->accesses[i];
        if (access.mode != FILCH_SCRATCH && access.mode != FILCH_WRITE) {
            bytes +=
                fl_tile_missing(w->device, task->graph->slots[access.slot]->use.data, access.tile);
        }
    }
    return bytes;
}

fl_task *fl_near_take(fl_worker *w)
{
    fl_offload *offload = w->offload;
    uint32_t best = 0;
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < offload->near_count && least != 0; ++i) {
        uint64_t bytes = missing(w, offload->near[i]);
        if (bytes < least) {
            least = bytes;
            best = i;
        }
    }
    fl_task *task = offload->near[best];
    --offload->near_count;
    for (uint32_t i = best; i < offload->near_count; ++i) { /* in their order */
        offload->near[i] = offload->near[i + 1];
    }
    return task;
}
