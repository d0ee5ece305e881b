/* SPDX-License-Identifier: Apache-2.0 */
/* Next-use oracle: predicts the next uses of tiles, to choose the tiles evicted from a device's
 * memory. A closed graph is known as a whole. Its tasks run roughly in the order of their addition.
 * The first unclaimed user of a tile therefore tells the next use. A batch runs its chunks in the
 * order of their items. */
#include "sched/model/next_use.h"

#include "sched/worker/graph_part.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"

/* Users of every tile of a closed graph, in task order; made on first need. */
typedef struct fl_forecast {
    size_t bytes;    /* size of the whole allocation */
    uint32_t *base;  /* by slot: number of its first tile */
    uint32_t *begin; /* by tile: index of its first user in users */
    uint32_t *users; /* orders of tasks */
    /* By tile: {epoch, index}: the run, and the index below which every user is claimed in the run.
     * Relaxed: every worker sets the cursor; a stale cursor only lags. */
    _Atomic uint64_t *cursor;
} fl_forecast;

/* Returns the tiles of an access; none for scratch memory, and none for the end of a lifetime. */
static fl_rect tiles_of(const fl_task *task, uint32_t i)
{
    uint32_t mode = task->accesses[i].mode;
    return mode != FILCH_SCRATCH && mode != FL_MODE_ENDS ? fl_task_tiles(task, i)
                                                         : (fl_rect){.rows = 0};
}

/* Counts the uses of every tile by the graph's tasks, except scratch accesses. Tile t counts in
 * uses[t + 1], for the prefix sums. */
static void count_uses(const filch_graph *graph, const uint32_t *base, uint32_t *uses)
{
    for (uint32_t i = 0; i < graph->task_count; ++i) {
        const fl_task *task = fl_graph_task_at(graph, i);
        for (uint32_t a = 0; a < task->access_count; ++a) {
            fl_rect tiles = tiles_of(task, a);
            for (uint32_t t = 0; t < fl_rect_count(tiles); ++t) {
                ++uses[base[task->accesses[a].slot] + fl_rect_at(tiles, t) + 1];
            }
        }
    }
}

static void list_uses(const filch_graph *graph, const fl_forecast *forecast, uint32_t *next)
{
    for (uint32_t i = 0; i < graph->task_count; ++i) {
        const fl_task *task = fl_graph_task_at(graph, i);
        for (uint32_t a = 0; a < task->access_count; ++a) {
            fl_rect tiles = tiles_of(task, a);
            for (uint32_t t = 0; t < fl_rect_count(tiles); ++t) {
                uint32_t tile = forecast->base[task->accesses[a].slot] + fl_rect_at(tiles, t);
                forecast->users[next[tile]++] = i;
            }
        }
    }
}

static fl_forecast *make_forecast(const fl_memory *memory, const filch_graph *graph)
{
    size_t tiles = 0, uses = 0;
    for (size_t s = 0; s < graph->slot_count; ++s) {
        tiles += graph->slots[s]->tile_count;
    }
    for (uint32_t i = 0; i < graph->task_count; ++i) {
        const fl_task *task = fl_graph_task_at(graph, i);
        for (uint32_t a = 0; a < task->access_count; ++a) {
            uses += fl_rect_count(tiles_of(task, a));
        }
    }
    if (tiles >= UINT32_MAX - 1 || uses >= UINT32_MAX) {
        return NULL;
    }
    size_t head = (sizeof(fl_forecast) + 15) & ~(size_t)15;
    size_t words = graph->slot_count + (tiles + 1) + uses;
    size_t bytes = head + tiles * sizeof(uint64_t) + words * sizeof(uint32_t);
    uint32_t *next = fl_alloc(memory, (tiles + 1) * sizeof *next);
    fl_forecast *made = next != NULL ? fl_alloc_zeroed(memory, bytes) : NULL;
    if (made != NULL) {
        made->bytes = bytes;
        made->cursor = (_Atomic uint64_t *)(void *)((char *)made + head);
        made->base = (uint32_t *)(void *)(made->cursor + tiles);
        made->begin = made->base + graph->slot_count;
        made->users = made->begin + tiles + 1;
        for (size_t s = 0, tile = 0; s < graph->slot_count; ++s) {
            made->base[s] = (uint32_t)tile;
            tile += graph->slots[s]->tile_count;
        }
        count_uses(graph, made->base, made->begin);
        for (size_t t = 0; t < tiles; ++t) {
            made->begin[t + 1] += made->begin[t];
            next[t] = made->begin[t];
        }
        list_uses(graph, made, next);
    }
    fl_free(memory, next, (tiles + 1) * sizeof *next);
    return made;
}

void fl_next_use_prepare(void *user)
{
    const fl_outlook *outlook = user;
    const fl_task *task = outlook->item->task;
    const fl_memory *memory = &outlook->worker->sched->core->memory;
    if (task == NULL || task->graph->kind != FILCH_GRAPH_CLOSED) {
        return;
    }
    filch_graph *graph = task->graph;
    fl_graph_part *part = fl_part_of_graph(graph);
    fl_forecast *none = NULL;
    /* Relaxed: every user of the forecast loads the pointer again. */
    if (fl_load_relaxed(&part->forecast) != NULL) {
        return;
    }
    fl_forecast *made = make_forecast(memory, graph);
    /* Acquire-release: the forecast is seen whole. If a second worker was first, our copy was never
     * seen. */
    if (made != NULL && !fl_cas_acq_rel(&part->forecast, &none, made)) {
        fl_free(memory, made, made->bytes);
    }
}

void fl_next_use_drop(filch_graph *graph)
{
    /* Relaxed: no second thread has the graph. */
    fl_forecast *forecast = fl_load_relaxed(&fl_part_of_graph(graph)->forecast);
    if (forecast != NULL) {
        fl_free(&graph->object.core->memory, forecast, forecast->bytes);
    }
}

/* Tells whether the task runs more likely on the memory node than elsewhere. */
static bool is_for(const fl_sched *sched, const fl_task *task, uint32_t place)
{
    return task->home == 0 || sched->workers[task->home - 1].device->place == place;
}

/* Tells whether a task using a tile needs the tile's contents. */
static bool reads(const fl_task *task, uint32_t slot, uint32_t tile)
{
    for (uint32_t i = 0; i < task->access_count; ++i) {
        fl_task_access access = task->accesses[i];
        if (access.slot == slot && access.mode != FILCH_SCRATCH && fl_task_names(task, i, tile)) {
            return access.mode != FILCH_WRITE;
        }
    }
    return true;
}

static uint64_t next_in_graph(const fl_outlook *outlook, const filch_data *data, uint32_t tile,
                              uint32_t place, bool *is_read)
{
    const fl_task *now = outlook->item->task;
    const filch_graph *graph = now->graph;
    uint32_t slot;
    if (now->begins) {
        now = fl_graph_task_at(graph, now->order); /* the claimed task behind the begin task */
    }
    /* Acquire: the pointer before its target. */
    const fl_forecast *forecast = fl_load_acquire(&fl_part_of_graph(graph)->forecast);
    if (forecast == NULL || !fl_graph_find_slot(graph, data, &slot)) {
        return FL_ACCESS_UNKNOWN;
    }
    uint32_t at = forecast->base[slot] + tile;
    const uint32_t *users = forecast->users + forecast->begin[at];
    uint32_t count = forecast->begin[at + 1] - forecast->begin[at];
    /* Claiming the current task has moved its word to the next epoch; look-ahead comes before the
     * claim. */
    uint32_t run = fl_word_epoch(fl_load_relaxed(&now->word)) - !outlook->is_ahead;
    uint64_t seen = fl_load_relaxed(&forecast->cursor[at]);
    uint32_t i = (uint32_t)(seen >> 32) == run ? (uint32_t)seen : 0;
    while (i < count &&
           fl_word_epoch(fl_load_relaxed(&fl_graph_task_at(graph, users[i])->word)) != run) {
        ++i;
    }
    fl_store_relaxed(&forecast->cursor[at], (uint64_t)run << 32 | i);
    for (uint32_t k = i; k < count && k < i + FL_TASKS_SEEN; ++k) {
        const fl_task *task = fl_graph_task_at(graph, users[k]);
        if (fl_word_epoch(fl_load_relaxed(&task->word)) == run &&
            is_for(outlook->worker->sched, task, place)) {
            *is_read = reads(task, slot, tile);
            return users[k] > now->order ? users[k] - now->order : 1;
        }
    }
    /* A use on a different memory node: later than every use here, but sooner than never. */
    return i == count ? FL_ACCESS_NEVER : (uint64_t)graph->task_count + users[i];
}

static uint64_t next_in_batch(const fl_outlook *outlook, const filch_data *data, uint32_t tile,
                              bool *is_read)
{
    const fl_offload *offload = outlook->worker->offload;
    for (uint32_t i = 0; i < offload->operand_count; ++i) {
        const fl_operand *operand = &offload->operands[i];
        uint32_t end = operand->tiles.first + fl_rect_count(operand->tiles); /* of a chunk */
        if (operand->data == data) {
            *is_read = (operand->mode & FILCH_READ) != 0;
            return operand->is_whole              ? 1
                   : tile >= end                  ? (uint64_t)tile - end + 1
                   : tile >= operand->tiles.first ? 1
                                                  : FL_ACCESS_NEVER;
        }
    }
    return FL_ACCESS_UNKNOWN;
}

uint64_t fl_next_use(void *user, const filch_data *data, uint32_t tile, uint32_t place,
                     bool *is_read)
{
    const fl_outlook *outlook = user;
    const fl_task *task = outlook->item->task;
    bool unasked;
    is_read = is_read != NULL ? is_read : &unasked;
    *is_read = true;
    if (task == NULL) {
        return next_in_batch(outlook, data, tile, is_read);
    }
    return task->graph->kind == FILCH_GRAPH_CLOSED
               ? next_in_graph(outlook, data, tile, place, is_read)
               : FL_ACCESS_UNKNOWN;
}
