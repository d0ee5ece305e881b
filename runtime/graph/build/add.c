/* SPDX-License-Identifier: Apache-2.0 */
/* Adding a task. */
#include <stdio.h>
#include <string.h>

#include "graph/build/block_readers.h"
#include "graph/build/capacity.h"
#include "graph/build/description.h"
#include "graph/build/lifetime.h"
#include "graph/build/read_only.h"
#include "graph/job/job.h"
#include "memory/tiles/tiles.h"

/* Size of a task's descriptor in the first version of the interface; later versions only append. */
#define TASK_SIZE_FIRST offsetof(filch_task_desc, items)

/* Memory for adding a task, taken before the graph changes. */
typedef struct fl_parts {
    fl_task *task;
    void *args;
    fl_task_access *accesses;
    const fl_kinds *kinds;
    fl_access_list list; /* the accesses, once resolved */
    char *text;          /* error text: the reason why jobs would wait for each other */
    size_t text_bytes;
} fl_parts;

static size_t bytes_of_accesses(const filch_task_desc *desc, const fl_kinds *kinds)
{
    return fl_access_bytes(desc->access_count, fl_kinds_have_extras(kinds), desc->items != 0,
                           kinds->block_count);
}

/* Returns the room for the blocks, behind the accesses. */
static fl_region *blocks_of(const filch_task_desc *desc, const fl_parts *parts)
{
    size_t before = fl_access_bytes(desc->access_count, fl_kinds_have_extras(parts->kinds),
                                    desc->items != 0, 0);
    return (fl_region *)(void *)((char *)parts->accesses + before);
}

static void parts_release(filch_graph *graph, const filch_task_desc *desc, fl_parts *parts)
{
    fl_arena_free(&graph->arena, parts->accesses, bytes_of_accesses(desc, parts->kinds));
    fl_arena_free(&graph->arena, parts->args, desc->codelet->arg_size);
    if (parts->task != NULL) {
        fl_graph_task_unmake(graph, parts->task);
    }
}

/* Resolves accesses to slots and tiles. *asks: an open graph must take a place in some access
 * queue. */
static filch_status resolve_accesses(filch_graph *graph, const filch_task_desc *desc,
                                     fl_task_access *accesses, bool *asks)
{
    const filch_access *from = desc->accesses, *end = from + desc->access_count;
    const bool is_open = graph->kind == FILCH_GRAPH_OPEN;
    for (; from != end; ++from, ++accesses) {
        uint32_t slot = 0;
        uint32_t tile = (uint32_t)((from->bytes + 63) / 64);
        if (from->mode != FILCH_SCRATCH) {
            filch_status status = fl_graph_slot(graph, from->data, &slot);
            if (FL_UNLIKELY(status != FILCH_OK)) {
                return status;
            }
            tile = fl_data_tile(from->data, from->row, from->col);
            if (is_open) {
                uint8_t admits = graph->slots[slot]->admits;
                *asks = *asks || (admits & fl_mode_asks((uint32_t)from->mode)) == 0;
            }
        }
        /* Filled member by member, compilers store bit-fields as one word: the next reader of the
         * word does not wait for several stores. */
        fl_task_access made = {0};
        made.slot = slot & FL_MOST_SLOTS;
        made.is_final = is_open;
        made.mode = (unsigned)from->mode & 0xfu;
        made.tile = tile;
        *accesses = made;
    }
    return FILCH_OK;
}

/* Gives the accesses to blocks their blocks. */
static void fill_blocks(const filch_task_desc *desc, fl_task_access *accesses, fl_region *blocks)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < desc->access_count; ++i) {
        const filch_access *from = &desc->accesses[i];
        if (from->mode != FILCH_SCRATCH && fl_access_is_block(from)) {
            blocks[count] = fl_access_region(from);
            if (fl_region_has_margins(&blocks[count])) {
                fl_store_relaxed(&from->data->has_halos, true);
            }
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
    bool has_extras = fl_kinds_have_extras(parts->kinds);
    filch_status status = join_accesses(graph, desc, parts);
    fl_access_list *list = &parts->list;
    list->given = desc->accesses;
    list->at = parts->accesses;
    list->count = desc->access_count;
    if (FL_UNLIKELY(parts->kinds->block_count != 0)) {
        fl_region *blocks = blocks_of(desc, parts);
        fill_blocks(desc, parts->accesses, blocks);
        list->blocks = blocks;
        graph->has_blocks = true;
    }
    if (status == FILCH_OK && FL_UNLIKELY(graph->splits != NULL)) {
        status = fl_splits_enter(graph, list);
    }
    if (status == FILCH_OK && FL_UNLIKELY(graph->has_blocks)) {
        status = fl_block_readers_enter(graph, list);
    }
    if (status == FILCH_OK && FL_UNLIKELY(has_extras || graph->has_groups)) {
        fl_extra *extras = (fl_extra *)(void *)(parts->accesses + desc->access_count);
        status = fl_groups_enter(graph, list, desc->priority, has_extras ? extras : NULL);
    }
    return status == FILCH_OK ? fl_infer_gather(graph, list) : status;
}

static filch_status take_parts(filch_graph *graph, const filch_task_desc *desc, fl_parts *parts)
{
    fl_arena *arena = &graph->arena;
    uint32_t arg_size = desc->codelet->arg_size;
    if (desc->access_count != 0 || desc->items != 0) {
        parts->accesses = fl_arena_alloc(arena, bytes_of_accesses(desc, parts->kinds));
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
    bool fits = parts->task != NULL && (desc->access_count == 0 || fl_edges_reserve(graph));
    return fits ? FILCH_OK : FILCH_OUT_OF_MEMORY;
}

static double declared_work(const fl_task *task, filch_work_fn work)
{
    filch_view views[FL_MOST_ACCESSES];
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
    const filch_data *data = graph->slots[task->accesses[i].slot]->use.data;
    const fl_region *parts = fl_task_parts(task, i);
    return parts != NULL ? fl_region_bytes(data, parts)
                         : fl_rect_bytes(data, fl_task_tiles(task, i));
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
 * by every task does not. A block that is read does not either: its tiles have many places. A halo
 * does not matter. */
static bool has_place(const filch_graph *graph, const fl_task *task, uint32_t i)
{
    uint32_t mode = task->accesses[i].mode;
    if (mode != FILCH_READ || fl_rect_count(fl_task_named(task, i)) > 1) {
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
    uint32_t place = fl_task_named(task, task->main_access).first;
    for (uint32_t i = 0; i < task->access_count && i < FL_TASK_MATES; ++i) {
        size_t bytes = has_place(graph, task, i) ? tile_bytes(graph, task, i) : 0;
        if (fl_task_named(task, i).first == place && bytes != 0 &&
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
    task->commutes = fl_kinds_have(parts->kinds, FILCH_COMMUTE);
    task->reduces = fl_kinds_have(parts->kinds, FILCH_REDUCE);
    task->has_blocks = parts->kinds->block_count != 0;
    task->has_temporaries = parts->kinds->temporaries != 0;
    graph->has_temporaries = graph->has_temporaries || task->has_temporaries;
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
    const char *wrong = fl_graph_why_shut(graph);
    if (wrong != NULL) {
        return fl_graph_refuse(graph, desc, FILCH_WRONG_STATE, "%s", wrong);
    }
    return graph->task_count == UINT32_MAX - 1
               ? fl_graph_refuse(graph, desc, FILCH_OVERFLOW, "the graph has 2^32 - 1 tasks")
               : FILCH_OK;
}

/* Lets the caller in to add a task, who waits while a running open graph has too many live tasks.
 * Where waiting may not help, the task is added all the same. The caller holds graph->lock. */
static filch_status admit(filch_graph *graph, const filch_task_desc *desc)
{
    filch_status status = check_state(graph, desc), waited = FILCH_OK;
    while (FL_UNLIKELY(graph->max_live != 0) && status == FILCH_OK && waited == FILCH_OK &&
           fl_open_is_full(graph)) {
        waited = fl_open_await(graph);
        status = check_state(graph, desc);
    }
    return status == FILCH_OK && waited == FILCH_OUT_OF_MEMORY ? waited : status;
}

/* Adds a task; a failure leaves the graph unchanged. The caller holds graph->lock. */
static filch_status add_locked(filch_graph *graph, const filch_task_desc *desc,
                               const fl_kinds *kinds, fl_task **added)
{
    char text[sizeof((filch_error *)NULL)->text];
    fl_parts parts = {.kinds = kinds, .text = text, .text_bytes = sizeof text};
    filch_status status = FILCH_OK;
    if (FL_UNLIKELY(kinds->parents != 0 || graph->splits != NULL)) {
        status = fl_splits_check(graph, desc);
        if (status != FILCH_OK) {
            return status;
        }
    }
    if (FL_UNLIKELY(graph->has_read_only)) {
        status = fl_read_only_check(graph, desc);
        if (status != FILCH_OK) {
            return status;
        }
    }
    if (FL_UNLIKELY(kinds->temporaries != 0)) {
        status = fl_lifetimes_check(graph, desc);
        if (status != FILCH_OK) {
            return status;
        }
    }
    status = take_parts(graph, desc, &parts);
    if (status != FILCH_OK) {
        parts_release(graph, desc, &parts);
        return status == FILCH_DEADLOCK || status == FILCH_BUSY
                   ? fl_graph_refuse(graph, desc, status, "%s", text)
                   : fl_graph_refuse(graph, desc, FILCH_OUT_OF_MEMORY, "no memory for the task");
    }
    fl_task *task = parts.task;
    fill_task(graph, desc, &parts);
    if (fl_kinds_have(kinds, FILCH_COMMUTE) && graph->kind == FILCH_GRAPH_OPEN) {
        /* Counts the commute locks before a predecessor can see the task. For a closed graph,
         * sealing adds the locks. */
        fl_add_relaxed(&task->pending, 1);
    }
    if (desc->access_count != 0) {
        fl_edges_add(graph, task);
        fl_infer_commit(graph, &parts.list, task);
    }
    graph->restartable_count += (task->codelet->flags & FILCH_CODELET_RESTARTABLE) != 0;
    fl_store_relaxed(&graph->task_count, graph->task_count + 1);
    *added = task;
    return FILCH_OK;
}

/* Returns the description with every member. An older description is shorter. */
static const filch_task_desc *complete(const filch_task_desc *desc, filch_task_desc *full)
{
    if (FL_LIKELY(desc->size >= sizeof *full)) {
        return desc;
    }
    *full = (filch_task_desc)FILCH_TASK_DESC_INIT;
    memcpy(full, desc, TASK_SIZE_FIRST);
    return full;
}

/* Adds a task with a checked description. The caller holds graph->lock. */
static filch_status add_checked(filch_graph *graph, const filch_task_desc *desc,
                                const fl_kinds *kinds, filch_task *name)
{
    fl_task *task = NULL;
    bool is_open = graph->kind == FILCH_GRAPH_OPEN, watches = false;
    filch_status status = admit(graph, desc);
    if (status == FILCH_OK && is_open) {
        status = fl_open_check(graph, desc, &watches);
    }
    status = status == FILCH_OK ? add_locked(graph, desc, kinds, &task) : status;
    if (FL_UNLIKELY(status != FILCH_OK)) {
        return status;
    }
    if (is_open) {
        fl_open_added(graph, desc, task, watches);
    }
    if (name != NULL) {
        *name = (filch_task)task->order + 1;
    }
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
    fl_kinds kinds = {0};
    desc = complete(desc, &full);
    status = fl_description_check(graph, desc, &kinds);
    if (FL_UNLIKELY(status != FILCH_OK)) {
        return status;
    }
    fl_latch_lock(&graph->lock);
    status = add_checked(graph, desc, &kinds, name);
    fl_latch_unlock(&graph->lock);
    return status;
}

/* Adds task `at` of an array whose first task has the size `stride`. The caller holds
 * graph->lock. */
static filch_status add_of_many(filch_graph *graph, const filch_task_desc *first, size_t at,
                                filch_task *name)
{
    size_t stride = first->size;
    const filch_task_desc *desc = (const void *)((const char *)first + at * stride);
    if (FL_UNLIKELY(desc->size != stride)) {
        return fl_core_fail(graph->object.core, FILCH_INVALID_ARGUMENT, "filch_graph_add_many",
                            graph->label, "its size is %zu, the first task's %zu", desc->size,
                            stride);
    }
    filch_task_desc full;
    fl_kinds kinds = {0};
    desc = complete(desc, &full);
    filch_status status = fl_description_check(graph, desc, &kinds);
    return status == FILCH_OK ? add_checked(graph, desc, &kinds, name) : status;
}

/* Adds the place in the array to the thread's newest error, which refuses a task. */
static void tell_place(fl_core *core, size_t at)
{
    filch_error refusal = FILCH_ERROR_INIT, told = FILCH_ERROR_INIT;
    if (fl_error_fetch(&core->errors, &refusal) == FILCH_OK) {
        told = refusal;
        snprintf(told.call, sizeof told.call, "filch_graph_add_many");
        snprintf(told.text, sizeof told.text, "descs[%zu]: %.200s", at, refusal.text);
        fl_error_store(&core->errors, &told);
    }
}

filch_status filch_graph_add_many(filch_graph *graph, const filch_task_desc *descs, size_t count,
                                  filch_task *names, size_t *added)
{
    size_t done = 0;
    if (added != NULL) {
        *added = 0;
    }
    filch_status status = fl_object_check(graph, FL_MAGIC_GRAPH);
    if (status != FILCH_OK || count == 0) {
        return status;
    }
    fl_core *core = graph->object.core;
    if (descs == NULL) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, "filch_graph_add_many", graph->label,
                            "the array of descriptors is null");
    }
    status = fl_size_check(core, descs, TASK_SIZE_FIRST, sizeof *descs, "the first descriptor",
                           "filch_graph_add_many", graph->label);
    if (status != FILCH_OK) {
        return status;
    }
    fl_latch_lock(&graph->lock);
    while (done < count && status == FILCH_OK) {
        status = add_of_many(graph, descs, done, names != NULL ? &names[done] : NULL);
        done += status == FILCH_OK;
    }
    fl_latch_unlock(&graph->lock);
    if (status != FILCH_OK) {
        tell_place(core, done);
    }
    if (added != NULL) {
        *added = done;
    }
    return status;
}
