/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/build/graph.h"
#include "graph/build/block_readers.h"
#include "graph/build/capacity.h"

#include <stdio.h>
#include <string.h>

#include "graph/job/job.h"
#include "memory/tiles/tiles.h"

#define MOST_ACCESSES 255
#define MOST_ITEMS ((uint64_t)1 << 63)
/* Size of a task's descriptor in the first version of the interface; later versions only append. */
#define TASK_SIZE_FIRST offsetof(filch_task_desc, items)

static bool init_locks(filch_graph *graph)
{
    if (fl_mutex_init(&graph->lock) != FILCH_OK) {
        return false;
    }
    if (fl_mutex_init(&graph->turn_lock) != FILCH_OK) {
        fl_mutex_fini(&graph->lock);
        return false;
    }
    return true;
}

filch_status filch_graph_create(filch_runtime *runtime, const filch_graph_desc *desc,
                                filch_graph **graph)
{
    filch_status status = fl_object_check(runtime, FL_MAGIC_RUNTIME);
    if (status != FILCH_OK) {
        return status;
    }
    fl_core *core = fl_core_of(runtime);
    filch_graph_desc d = FILCH_GRAPH_DESC_INIT;
    status = fl_size_check(core, desc, sizeof d, sizeof d, "graph: the descriptor",
                           "filch_graph_create", NULL);
    if (status != FILCH_OK) {
        return status;
    }
    if (desc != NULL) {
        d = *desc;
    }
    const char *wrong = graph == NULL                         ? "no place for the handle"
                        : (unsigned)d.kind > FILCH_GRAPH_OPEN ? "unknown kind"
                        : (unsigned)d.priorities > FILCH_PRIORITIES_CALLER ? "unknown priorities"
                        : d.priority_min > d.priority_max ? "priority_min is over priority_max"
                                                          : NULL;
    if (wrong != NULL) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, "filch_graph_create", d.label,
                            "graph: %s", wrong);
    }
    filch_graph *made = fl_object_new(
        core, FL_MAGIC_GRAPH, sizeof *made + core->scheduler->graph_bytes, _Alignof(filch_graph));
    if (made == NULL || !init_locks(made)) {
        if (made != NULL) {
            fl_object_delete(made);
        }
        return fl_core_fail(core, FILCH_OUT_OF_MEMORY, "filch_graph_create", d.label,
                            "no memory for a graph");
    }
    /* Relaxed: the number is only a name. */
    made->number = fl_add_relaxed(&core->jobs->graphs, 1) + 1;
    made->kind = d.kind;
    made->priorities = d.priorities;
    bool is_default = d.priority_min == 0 && d.priority_max == 0;
    made->priority_min = is_default ? -5 : d.priority_min;
    made->priority_max = is_default ? 5 : d.priority_max;
    snprintf(made->label, sizeof made->label, "%s", d.label != NULL ? d.label : "");
    fl_arena_init(&made->arena, &core->memory);
    fl_arena_init(&made->readers, &core->memory);
    fl_inbox_init(&made->retired);
    *graph = made;
    return FILCH_OK;
}

/* Prefetches a reusable task: its cache lines were last used by a second core. */
static void expect(fl_link *link)
{
    if (link != NULL) {
        fl_task *task = fl_task_of_link(link);
        __builtin_prefetch(task, 1);
        __builtin_prefetch(&task->more, 1);
    }
}

/* Takes a finished task of an open graph for reuse; null: no finished task. */
static fl_task *reclaim(filch_graph *graph)
{
    if (graph->left == NULL) {
        graph->left = fl_inbox_take(&graph->retired);
    }
    fl_link *link = graph->left;
    if (link == NULL) {
        return NULL;
    }
    graph->left = link->next;
    expect(link->next);
    fl_task *task = fl_task_of_link(link);
    if (task->args != NULL) {
        fl_arena_free(&graph->arena, task->args, task->codelet->arg_size);
    }
    fl_arena_free(&graph->arena, task->accesses,
                  fl_access_bytes(task->access_count, fl_task_has_extras(task), task->has_items,
                                  fl_task_block_count(task)));
    for (fl_more *more = task->more; more != NULL;) {
        fl_more *after = more->next;
        fl_arena_free(&graph->arena, more, sizeof *more);
        more = after;
    }
    return task;
}

/* Takes a task given back before it began, or else a finished task. */
static fl_task *take_spare(filch_graph *graph)
{
    fl_task *task = graph->spare;
    if (task == NULL) {
        return reclaim(graph);
    }
    fl_link *next = task->link.next;
    graph->spare = next != NULL ? fl_task_of_link(next) : NULL;
    return task;
}

static bool add_slab(filch_graph *graph)
{
    fl_core *core = graph->object.core;
    if (fl_array_reserve(&core->memory, &graph->slab_table, &graph->slab_capacity,
                         graph->slab_count + 1, sizeof *graph->slab_table) != FILCH_OK) {
        return false;
    }
    fl_slab *slab = fl_store_take(core->store);
    if (slab == NULL) {
        return false;
    }
    graph->slab_table[graph->slab_count++] = slab;
    slab->next = graph->slabs;
    graph->slabs = slab;
    return true;
}

fl_task *fl_graph_task_new(filch_graph *graph)
{
    fl_task *task = NULL;
    if (graph->kind == FILCH_GRAPH_OPEN) {
        task = take_spare(graph);
    }
    if (task == NULL) {
        if ((graph->slabs == NULL || graph->slabs->used == FL_SLAB_TASKS) && !add_slab(graph)) {
            return NULL;
        }
        task = &graph->slabs->tasks[graph->slabs->used++];
    }
    /* The word keeps counting epochs across graphs: hints to earlier lives stay stale. Workers may
     * be reading the word. It is the only member that is not simply overwritten. */
    uint64_t word = fl_word_next_epoch(fl_load_relaxed(&task->word));
    if (graph->kind == FILCH_GRAPH_OPEN) {
        word |= FL_TASK_OPEN;
    }
    /* Store pending before the word: no worker may claim a task under construction. */
    fl_store_relaxed(&task->pending, 1);
    fl_store_release(&task->word, word);
    task->predecessors = 0;
    task->codelet = NULL;
    task->graph = graph;
    memset(task->successors, 0, sizeof task->successors);
    task->successor_count = 0;
    task->level = FL_LEVELS / 2;
    task->access_count = 0;
    task->is_gate = task->commutes = task->reduces = task->combines = task->begins = 0;
    task->is_placed = 0;
    task->main_access = 0;
    task->mates = 0;
    task->bytes = 0;
    task->is_large = task->has_items = 0;
    task->has_blocks = false;
    /* Relaxed: the value is for gates, and publishes no set of devices. */
    fl_store_relaxed(&task->able, FL_ABLE_ALL);
    task->more = NULL;
    task->args = NULL;
    task->accesses = NULL;
    task->label = NULL;
    task->link.next = NULL;
    task->work = 1;
    task->rank = 0;
    task->home = task->moves = 0;
    task->order = 0;
    return task;
}

void fl_graph_task_unmake(filch_graph *graph, fl_task *task)
{
    if (graph->kind == FILCH_GRAPH_OPEN) {
        task->link.next = graph->spare != NULL ? &graph->spare->link : NULL;
        graph->spare = task;
    } else {
        --graph->slabs->used; /* the newest task of the newest slab */
    }
}

/* Checks the codelets of a reduction. A partial result is made neutral on the device that adds to
 * it: every device of the task's codelet must run the init codelet. */
static filch_status check_reduction(const filch_graph *graph, const filch_task_desc *desc,
                                    uint32_t i)
{
    const fl_core *core = graph->object.core;
    const filch_data *data = desc->accesses[i].data;
    const filch_codelet *init = data->reduction_init;
    if (init == NULL) {
        return fl_graph_refuse(
            graph, desc, FILCH_WRONG_STATE,
            "access %u: nobody said how to reduce to '%s' (filch_data_reduction)", i, data->label);
    }
    if (fl_codelet_may_pend(desc->codelet)) {
        return fl_graph_refuse(graph, desc, FILCH_INVALID_ARGUMENT,
                               "access %u: a task that may pend cannot reduce", i);
    }
    const filch_codelet *combine = data->reduction_combine;
    if (combine->device_count == 0) {
        return fl_graph_refuse(graph, desc, FILCH_NO_DEVICE,
                               "access %u: no device can run '%s', which combines '%s'", i,
                               combine->name, data->label);
    }
    for (uint32_t d = 0; d < core->scheduler->device_count; ++d) {
        if (fl_codelet_runs_on(desc->codelet, d) && !fl_codelet_runs_on(init, d)) {
            return fl_graph_refuse(graph, desc, FILCH_NO_DEVICE,
                                   "access %u: device %u can run codelet '%s', but not '%s', the "
                                   "neutral element of '%s'",
                                   i, d, desc->codelet->name, init->name, data->label);
        }
    }
    return FILCH_OK;
}

static filch_status refuse_common(const filch_graph *graph, const filch_task_desc *desc, uint32_t j,
                                  uint32_t i)
{
    const filch_access *a = &desc->accesses[j], *b = &desc->accesses[i];
    return fl_graph_refuse(graph, desc, FILCH_INVALID_ARGUMENT,
                           "accesses %u and %u name tile (%u, %u) of '%s', one to write it", j, i,
                           a->row > b->row ? a->row : b->row, a->col > b->col ? a->col : b->col,
                           a->data->label);
}

/* Tells whether one of two accesses writes, so that they may have no tile in common. */
static bool exclude(const filch_access *a, const filch_access *b)
{
    return a->mode != FILCH_SCRATCH && ((a->mode | b->mode) & FILCH_WRITE) != 0;
}

/* What kinds of accesses a task has. */
typedef struct fl_kinds {
    uint32_t modes; /* a bit for each mode in use, except scratch */
    uint32_t most;  /* above 1: some access may be to a block */
    uint32_t block_count;
} fl_kinds;

/* Checks an access of a task with blocks: the access's block, and the tiles in common with earlier
 * accesses. */
static __attribute__((noinline)) filch_status
check_block(const filch_graph *graph, const filch_task_desc *desc, uint32_t i, fl_kinds *kinds)
{
    const filch_access *access = &desc->accesses[i];
    const filch_data *data = access->data;
    fl_tiles tiles = fl_access_tiles(access);
    if (tiles.row1 > data->tiles_down || tiles.col1 > data->tiles_across) {
        return fl_graph_refuse(graph, desc, FILCH_INVALID_ARGUMENT,
                               "access %u: the block of %u x %u tiles from tile (%u, %u) on is not "
                               "within the %u x %u tiles of '%s'",
                               i, access->rows, access->cols, access->row, access->col,
                               data->tiles_down, data->tiles_across, data->label);
    }
    if (access->mode > FILCH_READWRITE && fl_access_is_block(access)) {
        return fl_graph_refuse(graph, desc, FILCH_INVALID_ARGUMENT,
                               "access %u: a block of %u x %u tiles of '%s' cannot %s, only a tile",
                               i, tiles.row1 - tiles.row0, tiles.col1 - tiles.col0, data->label,
                               access->mode == FILCH_COMMUTE ? "commute" : "reduce");
    }
    kinds->block_count += fl_access_is_block(access);
    for (uint32_t j = 0; j < i; ++j) {
        const filch_access *other = &desc->accesses[j];
        if (other->data == data && exclude(other, access) &&
            fl_tiles_meet(tiles, fl_access_tiles(other))) {
            return refuse_common(graph, desc, j, i);
        }
    }
    return FILCH_OK;
}

/* Checks that the tiles of a task's access are in their handle, and that no earlier access of the
 * task has some of them where one of the two writes. */
static filch_status check_tiles(const filch_graph *graph, const filch_task_desc *desc, uint32_t i,
                                fl_kinds *kinds)
{
    const filch_access *access = &desc->accesses[i];
    const filch_data *data = access->data;
    if (access->row >= data->tiles_down || access->col >= data->tiles_across) {
        return fl_graph_refuse(graph, desc, FILCH_INVALID_ARGUMENT,
                               "access %u: tile (%u, %u) is outside the %u x %u tiles of '%s'", i,
                               access->row, access->col, data->tiles_down, data->tiles_across,
                               data->label);
    }
    if (FL_UNLIKELY(kinds->most > 1)) {
        return check_block(graph, desc, i, kinds);
    }
    for (uint32_t j = 0; j < i; ++j) {
        const filch_access *other = &desc->accesses[j];
        if (other->data == data && other->row == access->row && other->col == access->col &&
            exclude(other, access)) {
            return refuse_common(graph, desc, j, i);
        }
    }
    return FILCH_OK;
}

static filch_status check_access(const filch_graph *graph, const filch_task_desc *desc, uint32_t i,
                                 fl_kinds *kinds)
{
    fl_core *core = graph->object.core;
    const filch_access *access = &desc->accesses[i];
    filch_access_mode mode = access->mode;
    if (mode == FILCH_SCRATCH) {
        bool fits = access->data == NULL && access->bytes != 0 &&
                    access->bytes <= (uint64_t)UINT32_MAX * 64 && access->rows == 0 &&
                    access->cols == 0;
        return fits ? FILCH_OK
                    : fl_graph_refuse(graph, desc, FILCH_INVALID_ARGUMENT,
                                      "access %u: scratch needs bytes (below 2^38), no handle and "
                                      "no rows or cols",
                                      i);
    }
    bool is_known = (mode >= FILCH_READ && mode <= FILCH_READWRITE) || mode == FILCH_COMMUTE ||
                    mode == FILCH_REDUCE;
    if (!is_known || access->bytes != 0 || access->reserved != 0) {
        return fl_graph_refuse(graph, desc, FILCH_INVALID_ARGUMENT, "access %u: %s (mode %d)", i,
                               access->reserved != 0 ? "reserved is not 0"
                               : access->bytes != 0  ? "only scratch has bytes"
                                                     : "unknown mode",
                               (int)mode);
    }
    if (fl_object_check(access->data, FL_MAGIC_DATA) != FILCH_OK) {
        return fl_graph_refuse(graph, desc, FILCH_INVALID_HANDLE,
                               "access %u: the data handle is null or destroyed", i);
    }
    const filch_data *data = access->data;
    if (data->object.core != core) {
        return fl_graph_refuse(graph, desc, FILCH_WRONG_RUNTIME,
                               "access %u: handle '%s' belongs to another runtime", i, data->label);
    }
    filch_status status = check_tiles(graph, desc, i, kinds);
    kinds->modes |= 1u << mode;
    return status == FILCH_OK && mode == FILCH_REDUCE ? check_reduction(graph, desc, i) : status;
}

static filch_status check_desc(const filch_graph *graph, const filch_task_desc *desc,
                               fl_kinds *kinds)
{
    fl_core *core = graph->object.core;
    const filch_codelet *codelet = desc->codelet;
    if (fl_object_check(codelet, FL_MAGIC_CODELET) != FILCH_OK) {
        return fl_graph_refuse(graph, desc, FILCH_INVALID_HANDLE,
                               "the codelet is null or destroyed");
    }
    if (codelet->object.core != core) {
        return fl_graph_refuse(graph, desc, FILCH_WRONG_RUNTIME,
                               "codelet '%s' belongs to another runtime", codelet->name);
    }
    if (codelet->device_count == 0) {
        return fl_graph_refuse(graph, desc, FILCH_NO_DEVICE,
                               "no device of this runtime can run codelet '%s'%s", codelet->name,
                               codelet->host == NULL ? ", which has no host function"
                               : codelet->kernel == NULL &&
                                       (codelet->implementations & FL_IMPL_CUDA) == 0
                                   ? ", which has a host function alone"
                                   : "");
    }
    const char *wrong = codelet->arg_size != 0 && desc->args == NULL ? "arguments are missing"
                        : codelet->arg_size == 0 && desc->args != NULL
                            ? "the codelet's arg_size is 0, but there are arguments"
                        : desc->reserved != 0 ? "reserved is not 0"
                        : desc->items == 0
                            ? desc->grain != 0 ? "there is a grain, but no items" : NULL
                        : fl_codelet_may_pend(codelet) ? "a task that may pend is not divisible"
                                                       : NULL;
    if (wrong != NULL) {
        return fl_graph_refuse(graph, desc, FILCH_INVALID_ARGUMENT, "%s", wrong);
    }
    if (FL_UNLIKELY(desc->items >= MOST_ITEMS || desc->grain >= MOST_ITEMS)) {
        return fl_graph_refuse(graph, desc, FILCH_OVERFLOW, "items or grain is 2^63 or more");
    }
    if (desc->access_count > MOST_ACCESSES || (desc->access_count != 0 && desc->accesses == NULL)) {
        return fl_graph_refuse(
            graph, desc, FILCH_INVALID_ARGUMENT, "%u accesses, %s", desc->access_count,
            desc->access_count > MOST_ACCESSES ? "of at most 255" : "but the list is null");
    }
    if (desc->affinity > core->scheduler->device_count) {
        return fl_graph_refuse(graph, desc, FILCH_INVALID_ARGUMENT,
                               "affinity %u is above the device count, %u", desc->affinity,
                               core->scheduler->device_count);
    }
    for (uint32_t i = 0; i < desc->access_count; ++i) {
        kinds->most |= desc->accesses[i].rows | desc->accesses[i].cols;
        filch_status status = check_access(graph, desc, i, kinds);
        if (status == FILCH_OK && desc->accesses[i].mode == FILCH_REDUCE) {
            status = fl_capacity_combination(graph, desc, i);
        }
        if (status != FILCH_OK) {
            return status;
        }
    }
    return fl_capacity_task(graph, desc);
}

/* Memory for adding a task, taken before the graph changes. */
typedef struct fl_parts {
    fl_task *task;
    void *args;
    fl_task_access *accesses;
    bool commutes, reduces; /* an access commutes or reduces */
    uint32_t block_count;   /* accesses to blocks */
    fl_reader *readers;
    fl_more *blocks;
    char *text; /* error text: the reason why jobs would wait for each other */
    size_t text_bytes;
} fl_parts;

static size_t bytes_of_accesses(const filch_task_desc *desc, const fl_parts *parts)
{
    return fl_access_bytes(desc->access_count, parts->commutes || parts->reduces, desc->items != 0,
                           parts->block_count);
}

/* Returns the room for the blocks, behind the accesses. */
static fl_rect *blocks_of(const filch_task_desc *desc, const fl_parts *parts)
{
    size_t before =
        fl_access_bytes(desc->access_count, parts->commutes || parts->reduces, desc->items != 0, 0);
    return (fl_rect *)(void *)((char *)parts->accesses + before);
}

static void parts_release(filch_graph *graph, const filch_task_desc *desc, fl_parts *parts)
{
    fl_arena *arena = &graph->arena;
    while (parts->readers != NULL) {
        fl_reader *next = parts->readers->next;
        fl_arena_free(&graph->readers, parts->readers, sizeof *parts->readers);
        parts->readers = next;
    }
    while (parts->blocks != NULL) {
        fl_more *next = parts->blocks->next;
        fl_arena_free(arena, parts->blocks, sizeof *parts->blocks);
        parts->blocks = next;
    }
    fl_arena_free(arena, parts->accesses, bytes_of_accesses(desc, parts));
    fl_arena_free(arena, parts->args, desc->codelet->arg_size);
    if (parts->task != NULL) {
        fl_graph_task_unmake(graph, parts->task);
    }
}

static bool take_readers(filch_graph *graph, uint32_t count, fl_reader **readers)
{
    for (uint32_t i = 0; i < count; ++i) {
        fl_reader *reader = fl_arena_alloc(&graph->readers, sizeof *reader);
        if (reader == NULL) {
            return false;
        }
        reader->next = *readers;
        *readers = reader;
    }
    return true;
}

/* Resolves accesses to slots and tiles. *asks: an open graph must take a place in some access
 * queue. */
static filch_status resolve_accesses(filch_graph *graph, const filch_task_desc *desc,
                                     fl_task_access *accesses, bool *asks)
{
    bool is_open = graph->kind == FILCH_GRAPH_OPEN;
    for (uint32_t i = 0; i < desc->access_count; ++i) {
        const filch_access *from = &desc->accesses[i];
        uint32_t slot = 0;
        uint32_t tile = (uint32_t)((from->bytes + 63) / 64);
        if (from->mode != FILCH_SCRATCH) {
            filch_status status = fl_graph_slot(graph, from->data, &slot);
            if (status != FILCH_OK) {
                return status;
            }
            tile = from->col * from->data->tiles_down + from->row;
            uint8_t admits = graph->slots[slot]->admits;
            *asks = *asks || (admits & fl_mode_asks((uint32_t)from->mode)) == 0;
        }
        /* Filled member by member, compilers store bit-fields as one word: the next reader of the
         * word does not wait for several stores. */
        fl_task_access made = {0};
        made.slot = slot & FL_MOST_SLOTS;
        made.is_final = is_open;
        made.mode = (unsigned)from->mode & 0xfu;
        made.tile = tile;
        accesses[i] = made;
    }
    return FILCH_OK;
}

/* Gives the accesses to blocks their blocks. */
static void fill_blocks(const filch_task_desc *desc, fl_task_access *accesses, fl_rect *blocks)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < desc->access_count; ++i) {
        const filch_access *from = &desc->accesses[i];
        if (from->mode != FILCH_SCRATCH && fl_access_is_block(from)) {
            blocks[count] = fl_access_rect(from);
            accesses[i].is_block = 1;
            accesses[i].tile = count++;
        }
    }
}

/* Finds the slots of the accesses. An open graph takes its places in the access queues in one step.
 * Of two graphs naming the same handles in a task each, the second is behind the first at every
 * handle. */
static filch_status join_accesses(filch_graph *graph, const filch_task_desc *desc, fl_parts *parts)
{
    size_t known = graph->slot_count;
    bool asks = false;
    filch_status status = resolve_accesses(graph, desc, parts->accesses, &asks);
    if (status == FILCH_OK && FL_UNLIKELY(asks)) {
        status = fl_open_enter(graph, parts->accesses, desc->access_count, parts->text,
                               parts->text_bytes);
    }
    if (FL_UNLIKELY(status != FILCH_OK) && graph->kind == FILCH_GRAPH_OPEN) {
        fl_graph_drop_slots(graph, known);
    }
    return status;
}

/* Prepares inference for a task with accesses, and finds the task's predecessors. */
static filch_status infer(filch_graph *graph, const filch_task_desc *desc, fl_parts *parts)
{
    uint32_t reader_count;
    bool has_extras = parts->commutes || parts->reduces;
    filch_status status = join_accesses(graph, desc, parts);
    fl_access_list list = {parts->accesses, desc->access_count, NULL};
    if (FL_UNLIKELY(parts->block_count != 0)) {
        fl_rect *blocks = blocks_of(desc, parts);
        fill_blocks(desc, parts->accesses, blocks);
        list.blocks = blocks;
        graph->has_blocks = true;
    }
    if (status == FILCH_OK && FL_UNLIKELY(graph->splits != NULL)) {
        status = fl_splits_enter(graph, &list);
    }
    if (status == FILCH_OK && FL_UNLIKELY(graph->has_blocks)) {
        status = fl_block_readers_enter(graph, &list);
    }
    if (status == FILCH_OK && FL_UNLIKELY(has_extras || graph->has_groups)) {
        fl_extra *extras = (fl_extra *)(void *)(parts->accesses + desc->access_count);
        status = fl_groups_enter(graph, &list, desc->priority, has_extras ? extras : NULL);
    }
    if (status != FILCH_OK) {
        return status;
    }
    bool fits = fl_infer_gather(graph, &list, &reader_count) == FILCH_OK &&
                take_readers(graph, reader_count, &parts->readers) &&
                fl_edge_take_blocks(graph, &parts->blocks);
    return fits ? FILCH_OK : FILCH_OUT_OF_MEMORY;
}

static filch_status take_parts(filch_graph *graph, const filch_task_desc *desc, fl_parts *parts)
{
    fl_arena *arena = &graph->arena;
    uint32_t arg_size = desc->codelet->arg_size;
    if (desc->access_count != 0 || desc->items != 0) {
        parts->accesses = fl_arena_alloc(arena, bytes_of_accesses(desc, parts));
        if (parts->accesses == NULL) {
            return FILCH_OUT_OF_MEMORY;
        }
    }
    filch_status status = desc->access_count != 0 ? infer(graph, desc, parts) : FILCH_OK;
    if (status != FILCH_OK) {
        return status;
    }
    if (arg_size != 0) {
        parts->args = fl_arena_alloc(arena, arg_size);
        if (parts->args == NULL) {
            return FILCH_OUT_OF_MEMORY;
        }
        memcpy(parts->args, desc->args, arg_size);
    }
    parts->task = fl_graph_task_new(graph);
    return parts->task != NULL ? FILCH_OK : FILCH_OUT_OF_MEMORY;
}

static double declared_work(const fl_task *task, filch_work_fn work)
{
    filch_view views[MOST_ACCESSES];
    fl_task_views(task, views, NULL);
    filch_call call = {.views = views,
                       .view_count = task->access_count,
                       .team = 1,
                       .args = task->args,
                       .user = task->codelet->user,
                       .hi = task->has_items ? fl_task_items(task)->count : 0};
    double units = work(&call);
    return units >= 0 ? units : 0; /* NaN fails the comparison, too */
}

uint8_t fl_graph_level(const filch_graph *graph, int32_t priority)
{
    int64_t low = graph->priority_min, high = graph->priority_max;
    int64_t p = priority < low ? low : priority > high ? high : priority;
    int64_t level = high == low ? FL_LEVELS / 2 : (p - low) * (FL_LEVELS - 1) / (high - low);
    return (uint8_t)level;
}

/* Fills the items of the task. The number of items is also the default for the task's work. */
static void fill_items(const filch_task_desc *desc, fl_task *task)
{
    fl_items items = {.count = desc->items, .grain = desc->grain != 0 ? desc->grain : 1};
    task->has_items = 1;
    if (items.count / items.grain >= UINT32_MAX) {
        items.grain *= items.count / items.grain / UINT32_MAX + 1; /* at most twice the count */
    }
    items.grains = (uint32_t)(items.count / items.grain + (items.count % items.grain != 0));
    *fl_task_items(task) = items;
    task->work = (float)desc->items;
}

static size_t tile_bytes(const filch_graph *graph, const fl_task *task, uint32_t i)
{
    return fl_rect_bytes(graph->slots[task->accesses[i].slot]->use.data, fl_task_tiles(task, i));
}

static uint32_t parts_of(const filch_graph *graph, const fl_task *task, uint32_t i)
{
    return graph->slots[task->accesses[i].slot]->tile_count;
}

/* Tells whether the task writes a handle with the given number of tiles. */
static bool writes_as_many(const filch_graph *graph, const fl_task *task, uint32_t tiles)
{
    for (uint32_t i = 0; i < task->access_count; ++i) {
        uint32_t mode = task->accesses[i].mode;
        if (mode != FILCH_READ && mode != FILCH_SCRATCH && parts_of(graph, task, i) == tiles) {
            return true;
        }
    }
    return false;
}

/* Tells whether an access determines where the task belongs. A writing access does. A read access
 * does if its handle is divided: into at least one tile per device, or into as many tiles as a
 * handle that the task writes. Example: a vector being summed up determines the place, a table read
 * by every task does not. A block that is read does not either: its tiles have many places. */
static bool has_place(const filch_graph *graph, const fl_task *task, uint32_t i)
{
    uint32_t mode = task->accesses[i].mode;
    if (mode != FILCH_READ || task->accesses[i].is_block) {
        return mode != FILCH_SCRATCH && mode != FILCH_READ;
    }
    uint32_t parts = parts_of(graph, task, i);
    return parts >= graph->object.core->scheduler->device_count ||
           (parts > 1 && writes_as_many(graph, task, parts));
}

/* Returns the access of the main tile, among accesses that determine a place: the largest written
 * tile, or the largest tile if far larger. Of equally large tiles the first counts. */
static uint32_t main_of(const filch_graph *graph, const fl_task *task, size_t *largest)
{
    uint32_t best = 0, written = 0;
    size_t most = 0, most_written = 0;
    for (uint32_t i = 0; i < task->access_count; ++i) {
        size_t bytes = has_place(graph, task, i) ? tile_bytes(graph, task, i) : 0;
        if (bytes > most) {
            most = bytes;
            best = i;
        }
        if (task->accesses[i].mode != FILCH_READ && bytes > most_written) {
            most_written = bytes;
            written = i;
        }
    }
    *largest = most;
    return most_written != 0 && most / FL_FAR_LARGER <= most_written ? written : best;
}

static void find_mates(const filch_graph *graph, fl_task *task)
{
    size_t largest, all = 0;
    task->main_access = (uint8_t)main_of(graph, task, &largest);
    if (largest == 0) {
        return; /* the task has no preferred place */
    }
    uint32_t place = fl_task_tiles(task, task->main_access).first;
    for (uint32_t i = 0; i < task->access_count && i < FL_TASK_MATES; ++i) {
        size_t bytes = has_place(graph, task, i) ? tile_bytes(graph, task, i) : 0;
        if (fl_task_tiles(task, i).first == place && bytes != 0 &&
            bytes >= largest / FL_FAR_LARGER) {
            task->mates |= (uint8_t)(1u << i);
            all += bytes;
        }
    }
    all = all != 0 ? all : tile_bytes(graph, task, task->main_access);
    task->bytes = all < UINT32_MAX ? (uint32_t)all : UINT32_MAX;
}

static void fill_task(filch_graph *graph, const filch_task_desc *desc, const fl_parts *parts)
{
    fl_task *task = parts->task;
    task->codelet = desc->codelet;
    /* Release: the set of devices is visible before its number, for a thief with an old hint. */
    fl_store_release(&task->able, desc->codelet->able);
    task->args = parts->args;
    task->accesses = parts->accesses;
    task->access_count = (uint8_t)desc->access_count;
    task->commutes = parts->commutes ? 1 : 0;
    task->reduces = parts->reduces ? 1 : 0;
    task->has_blocks = parts->block_count != 0;
    task->label = desc->label;
    graph->has_labels = graph->has_labels || desc->label != NULL;
    if (FL_UNLIKELY(desc->items != 0)) {
        fill_items(desc, task); /* before every use of the blocks, which are behind the items */
    }
    fl_core *core = graph->object.core;
    uint64_t set[FL_DEVICE_LIMIT / 64];
    const uint64_t *devices = desc->codelet->runs_on;
    if (FL_UNLIKELY(fl_capacity_is_large(core, task, set))) {
        task->is_large = 1;
        devices = set;
        /* Release: as for able above. */
        fl_store_release(&task->able, core->scheduler->able(core->scheduler, set));
    }
    bool is_able = desc->affinity != 0 && fl_devices_have(devices, desc->affinity - 1);
    task->home = is_able ? (uint16_t)desc->affinity : 0;
    task->is_placed = is_able;
    if (core->keeps_holders && task->access_count != 0) {
        find_mates(graph, task);
    }
    task->order = graph->task_count;
    if (graph->priorities == FILCH_PRIORITIES_CALLER) {
        task->rank = (float)desc->priority;
        task->level = fl_graph_level(graph, desc->priority);
    }
    if (desc->codelet->work != NULL) {
        task->work = (float)declared_work(task, desc->codelet->work);
    }
}

static filch_status check_state(const filch_graph *graph, const filch_task_desc *desc)
{
    const char *wrong = NULL;
    if (graph->kind == FILCH_GRAPH_CLOSED) {
        wrong = graph->state != FL_GRAPH_BUILDING ? "the graph is sealed" : NULL;
    } else if (graph->state == FL_GRAPH_BUILDING) {
        wrong = "the open graph must be submitted before tasks are added";
    } else if (graph->state == FL_GRAPH_ENDED) {
        wrong = "the open graph is closed";
    }
    if (wrong != NULL) {
        return fl_graph_refuse(graph, desc, FILCH_WRONG_STATE, "%s", wrong);
    }
    return graph->task_count == UINT32_MAX - 1
               ? fl_graph_refuse(graph, desc, FILCH_OVERFLOW, "the graph has 2^32 - 1 tasks")
               : FILCH_OK;
}

/* Adds a task; a failure leaves the graph unchanged. The caller holds graph->lock. */
static filch_status add_locked(filch_graph *graph, const filch_task_desc *desc,
                               const fl_kinds *kinds, fl_task **added)
{
    char text[sizeof((filch_error *)NULL)->text];
    fl_parts parts = {.commutes = (kinds->modes >> FILCH_COMMUTE & 1) != 0,
                      .reduces = (kinds->modes >> FILCH_REDUCE & 1) != 0,
                      .block_count = kinds->block_count,
                      .text = text,
                      .text_bytes = sizeof text};
    filch_status status = fl_splits_check(graph, desc);
    if (FL_UNLIKELY(status != FILCH_OK)) {
        return status;
    }
    status = take_parts(graph, desc, &parts);
    if (status != FILCH_OK) {
        parts_release(graph, desc, &parts);
        return status == FILCH_DEADLOCK ? fl_graph_refuse(graph, desc, status, "%s", text)
               : status == FILCH_BUSY
                   ? fl_graph_refuse(graph, desc, status,
                                     "the host has acquired a handle of the task's")
                   : fl_graph_refuse(graph, desc, FILCH_OUT_OF_MEMORY, "no memory for the task");
    }
    fl_task *task = parts.task;
    fill_task(graph, desc, &parts);
    if (parts.commutes && graph->kind == FILCH_GRAPH_OPEN) {
        /* Counts the commute locks before a predecessor can see the task. For a closed graph,
         * sealing adds the locks. */
        fl_add_relaxed(&task->pending, 1);
    }
    if (desc->access_count != 0) {
        for (size_t i = 0; i < graph->pred_count; ++i) {
            fl_edge_add(graph, graph->preds[i], task, &parts.blocks);
        }
        fl_infer_commit(graph, task, parts.readers);
        parts = (fl_parts){.blocks = parts.blocks};
        parts_release(graph, desc, &parts);
    }
    graph->restartable_count += (task->codelet->flags & FILCH_CODELET_RESTARTABLE) != 0;
    fl_store_relaxed(&graph->task_count, graph->task_count + 1);
    *added = task;
    return FILCH_OK;
}

filch_status filch_graph_add(filch_graph *graph, const filch_task_desc *desc, filch_task *name)
{
    filch_status status = fl_object_check(graph, FL_MAGIC_GRAPH);
    if (FL_UNLIKELY(status != FILCH_OK)) {
        return status;
    }
    fl_core *core = graph->object.core;
    if (FL_UNLIKELY(desc == NULL)) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, "filch_graph_add", graph->label,
                            "the descriptor is null");
    }
    status = fl_size_check(core, desc, TASK_SIZE_FIRST, sizeof *desc, "the descriptor",
                           "filch_graph_add", graph->label);
    if (FL_UNLIKELY(status != FILCH_OK)) {
        return status;
    }
    filch_task_desc full;
    if (FL_UNLIKELY(desc->size < sizeof full)) {
        full = (filch_task_desc)FILCH_TASK_DESC_INIT;
        memcpy(&full, desc, TASK_SIZE_FIRST);
        desc = &full;
    }
    fl_kinds kinds = {0};
    status = check_desc(graph, desc, &kinds);
    if (FL_UNLIKELY(status != FILCH_OK)) {
        return status;
    }
    fl_mutex_lock(&graph->lock);
    status = check_state(graph, desc);
    if (status == FILCH_OK) {
        fl_task *task = NULL;
        bool is_open = graph->kind == FILCH_GRAPH_OPEN, watches = false;
        status = is_open ? fl_open_check(graph, desc, &watches) : FILCH_OK;
        status = status == FILCH_OK ? add_locked(graph, desc, &kinds, &task) : status;
        if (status == FILCH_OK && is_open) {
            fl_open_added(graph, desc, task, watches);
        }
        if (status == FILCH_OK && name != NULL) {
            *name = (filch_task)task->order + 1;
        }
    }
    fl_mutex_unlock(&graph->lock);
    return status;
}
