/* SPDX-License-Identifier: Apache-2.0 */
/* Items on devices with separate memory: fetches the operands, puts the item on a lane behind the
 * copies, and starts write-back of final results. The host's own items fetch operands to the host's
 * memory by the same functions. */
#include "sched/execute/offload.h"

#include <math.h>
#include <stdio.h>

#include "sched/decide/depth.h"
#include "sched/decide/locality.h"
#include "sched/decide/lookahead.h"
#include "sched/decide/speculate.h"
#include "sched/execute/divide.h"
#include "sched/execute/graph_launch.h"
#include "sched/execute/host_call.h"
#include "sched/execute/in_flight.h"
#include "sched/execute/private_output.h"
#include "sched/execute/reduce.h"
#include "sched/model/next_use.h"
#include "sched/model/speed.h"
#include "sched/worker/device.h"
#include "sched/worker/item.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"

static fl_places *places_of(const fl_worker *w)
{
    return w->sched->core->places;
}

/* Null for the host's memory, as the replicas expect. */
static fl_device *carrier(const fl_worker *w)
{
    return w->device->place != 0 ? w->device : NULL;
}

bool fl_offload_concerns(const fl_item *item)
{
    return item->task != NULL ? item->task->access_count != 0
                              : fl_batch_view_count(item->job->batch) != 0;
}

/* --- Operands --- */

/* Adapts the operand of a special access: partial results, commuting accesses and combining
 * tasks. */
static void adapt_operand(const fl_worker *w, const fl_task *task, uint32_t access,
                          fl_operand *operand)
{
    filch_data *partial = fl_reduction_stand_in(task, access, w->index);
    if (partial != NULL) {
        operand->data = partial;
        operand->mode = fl_reduction_mode(task);
        operand->is_final = false;
        operand->tile = 0;
        operand->tile_end = 1;
    } else if (operand->mode == FILCH_COMMUTE) {
        const fl_commute_lock *turn = fl_task_extras(task)[access].turn;
        operand->mode = FILCH_READWRITE;
        if (task->graph->kind == FILCH_GRAPH_CLOSED) {
            operand->is_final =
                turn->is_final && fl_commute_lock_is_last(turn) && !operand->data->is_managed;
        }
    } else if (task->combines) {
        operand->is_final = operand->is_final && fl_combines_last(task);
    }
}

static void task_operands(fl_worker *w, const fl_task *task)
{
    fl_offload *offload = w->offload;
    bool has_extras = fl_task_has_extras(task);
    fl_task_views(task, w->call.views, NULL);
    if (FL_UNLIKELY(has_extras)) {
        fl_reduction_views(task, w->index, w->call.views);
    }
    offload->operand_count = 0;
    for (uint32_t i = 0; i < task->access_count; ++i) {
        fl_task_access access = task->accesses[i];
        if (access.mode == FILCH_SCRATCH) {
            continue;
        }
        filch_data *data = fl_graph_data(task->graph, access.slot);
        fl_operand *operand = &offload->operands[offload->operand_count++];
        *operand = (fl_operand){
            .data = data,
            .view = &w->call.views[i],
            .mode = access.mode,
            .is_final = access.is_final && !data->is_managed,
            .tile = access.tile,
            .tile_end = access.tile + 1,
            .traffic = fl_job_traffic(task->graph->job, w->sched->count),
        };
        if (FL_UNLIKELY(has_extras)) {
            adapt_operand(w, task, i, operand);
        }
    }
}

static bool chunk_operands(fl_worker *w, const fl_item *item)
{
    const fl_batch *batch = item->job->batch;
    uint64_t lo, hi;
    fl_batch_range(batch, item->lo, item->hi, &lo, &hi);
    if (!fl_batch_views(batch, lo, hi, w->call.views)) {
        filch_error why = FILCH_ERROR_INIT;
        filch_status status = fl_batch_check(batch, lo, hi, &why);
        fl_error_fill(&w->stall.error,
                      (fl_fault){.status = FILCH_ALIAS, .label = fl_batch_codelet(batch)->name},
                      "%s",
                      status != FILCH_OK ? why.text : "a mapping answers differently each time");
        return false;
    }
    w->offload->operand_count = fl_batch_view_count(batch);
    fl_batch_operands(batch, lo, hi, w->call.views, w->offload->operands);
    for (uint32_t i = 0; i < w->offload->operand_count; ++i) {
        fl_operand *operand = &w->offload->operands[i];
        fl_operand_resolve(operand);
        operand->traffic = fl_job_traffic(item->job, w->sched->count);
        operand->is_shadowed = item->run != NULL && (operand->mode & FILCH_WRITE) != 0;
    }
    return true;
}

bool fl_offload_list(fl_worker *w, const fl_item *item)
{
    if (item->task != NULL) {
        task_operands(w, item->task);
        return true;
    }
    return chunk_operands(w, item);
}

static fl_admission admit(const fl_worker *w, const fl_foresight *foresight, bool is_tight)
{
    return (fl_admission){
        .foresight = foresight, .is_tight = is_tight, .is_pressed = w->offload->pressed != 0};
}

/* Tells whether the item is a second run of a chunk: no tile is evicted for a second run. */
static bool is_spare(const fl_item *item)
{
    return item->task == NULL && item->run != NULL && item->run->is_second;
}

bool fl_offload_fetch(fl_worker *w, const fl_item *item)
{
    fl_offload *offload = w->offload;
    fl_outlook outlook = {w, item, false};
    const fl_foresight foresight = {fl_next_use_prepare, fl_next_use, &outlook};
    fl_admission admission = admit(w, &foresight, offload->is_tight);
    admission.is_spare = is_spare(item);
    offload->waits.count = 0;
    if (!fl_offload_list(w, item)) {
        return false;
    }
    filch_status status =
        fl_operands_fetch(places_of(w), carrier(w), offload->operands, offload->operand_count,
                          &admission, &offload->waits, &w->stall.error);
    offload->is_admitted = status == FILCH_OK;
    if (w->device->place != 0) {
        fl_locality_note(w);
    }
    if (status == FILCH_NOT_READY) {
        /* The wait needs no message. */
        w->stall.error.status = status;
    }
    if (FL_UNLIKELY(item->task != NULL && fl_task_has_extras(item->task))) {
        fl_reduction_place_views(item->task, w->call.views);
    }
    return status == FILCH_OK;
}

/* Notes the newest inbound copies. Every copy started is on an inbound lane, or precedes a copy on
 * an inbound lane. */
static void note_fetched(fl_worker *w)
{
    fl_offload *offload = w->offload;
    for (uint32_t i = 0; i < offload->waits.count; ++i) {
        fl_marker marker = offload->waits.at[i];
        uint32_t lane = fl_marker_lane(marker);
        if (fl_marker_device(marker) == w->index && (lane == FL_LANE_IN || lane == FL_LANE_PEER)) {
            fl_marker *newest = &offload->fetched[lane == FL_LANE_PEER];
            *newest = marker > *newest ? marker : *newest;
        }
    }
}

fl_marker fl_offload_arriving(const fl_worker *w)
{
    const fl_waits *waits = &w->offload->waits;
    fl_marker found = 0;
    for (uint32_t i = 0; i < waits->count; ++i) {
        fl_marker marker = waits->at[i];
        uint32_t lane = fl_marker_lane(marker);
        if (fl_marker_device(marker) == w->index && lane >= FL_LANE_IN && lane != FL_LANE_OUT &&
            marker > found && !w->device->backend->lane->is_past(w->device, marker)) {
            found = marker;
        }
    }
    return found;
}

bool fl_offload_fetch_ahead(fl_worker *w, fl_task *task, bool is_claimed)
{
    fl_offload *offload = w->offload;
    const fl_item item = {.job = task->graph->job, .task = task};
    fl_outlook outlook = {w, &item, !is_claimed};
    const fl_foresight foresight = {fl_next_use_prepare, fl_next_use, &outlook};
    const fl_admission admission = admit(w, &foresight, false);
    if (fl_task_has_extras(task)) {
        /* Partial results and the like are made at the beginning of the task only. */
        return false;
    }
    offload->waits.count = 0;
    task_operands(w, task);
    filch_status status =
        fl_operands_fetch(places_of(w), carrier(w), offload->operands, offload->operand_count,
                          &admission, &offload->waits, &w->stall.error);
    if (status == FILCH_OK) {
        fl_locality_note(w);
        note_fetched(w);
        /* Tiles in transfer stay in place until arrival. */
        fl_operands_release(places_of(w), carrier(w), offload->operands, offload->operand_count,
                            NULL);
    }
    offload->waits.count = 0;
    return status == FILCH_OK;
}

void fl_offload_abandon(fl_worker *w)
{
    fl_offload *offload = w->offload;
    fl_waits_abandon(places_of(w), &offload->waits);
    if (offload->is_admitted) {
        fl_operands_release(places_of(w), carrier(w), offload->operands, offload->operand_count,
                            NULL);
        offload->is_admitted = false;
    }
}

void fl_offload_release(fl_worker *w, fl_in_flight *flight)
{
    fl_offload *offload = w->offload;
    flight->is_admitted = false;
    if (flight->item.is_graph) {
        fl_graph_launch_release(w, flight->item.job->graph);
    } else if (fl_offload_list(w, &flight->item)) {
        fl_operands_release(places_of(w), carrier(w), offload->operands, offload->operand_count,
                            flight->item.task == NULL ? &flight->staged : NULL);
    }
}

void fl_offload_drop_scratch(fl_worker *w)
{
    for (uint32_t lane = 0; lane < FL_LANE_LIMIT; ++lane) {
        if (w->offload->scratch[lane] != NULL) {
            fl_block_give(places_of(w), w->offload->scratch[lane], 0);
            fl_residents_go(places_of(w), w->device->place);
            w->offload->scratch[lane] = NULL;
        }
    }
}

bool fl_offload_clear(fl_worker *w)
{
    fl_offload *offload = w->offload;
    if (offload->is_tight) {
        return false;
    }
    fl_offload_drop_scratch(w);
    (void)fl_residents_clear(places_of(w), w->device);
    offload->is_tight = true;
    return true;
}

bool fl_offload_move(fl_worker *w, fl_in_flight *flight)
{
    fl_offload *offload = w->offload;
    fl_waits *waits = &offload->waits;
    const fl_admission admission = {.foresight = NULL};
    waits->count = 0;
    task_operands(w, flight->item.task);
    bool fits = fl_operands_fetch(places_of(w), NULL, offload->operands, offload->operand_count,
                                  &admission, waits, &w->stall.error) == FILCH_OK;
    for (uint32_t i = 0; fits && i < offload->operand_count; ++i) {
        /* Write-back does not occur: the host's memory is the home of partitioned data. */
        fl_marker home;
        fits = fl_operand_commit(places_of(w), NULL, &offload->operands[i], 0, &home,
                                 &w->stall.error) == FILCH_OK;
    }
    if (!fits) {
        /* The copies lead to the host's buffer. */
        fl_waits_abandon(places_of(w), waits);
        return false;
    }
    while (waits->count != 0) {
        fl_in_flight_add_home(w, flight, waits->at[--waits->count]);
    }
    return true;
}

void fl_offload_commit_host(fl_worker *w, fl_item *item)
{
    fl_offload *offload = w->offload;
    bool fits = true;
    /* The item may have waited for nested items: the lists then hold the nested items' operands. */
    if (!fl_offload_list(w, item)) {
        return;
    }
    for (uint32_t i = 0; i < offload->operand_count; ++i) {
        fl_marker home;
        /* The worker has no further work: no next item starts before the item retires. */
        fits = fl_operand_commit(places_of(w), NULL, &offload->operands[i], 0, &home,
                                 &w->stall.error) == FILCH_OK &&
               fl_marker_await(places_of(w), home, &w->stall.error) == FILCH_OK && fits;
    }
    if (!fits) {
        /* The item ran, but the results did not reach the destination. */
        item->is_refused = true;
        item->code = -1;
    }
}

/* --- Lanes and scratch --- */

/* Tells whether recent items were short. */
static bool is_short(const fl_worker *w)
{
    /* Relaxed: an estimate, no order needed. */
    double ns = fl_bits_double(fl_load_relaxed(&w->queues.item_ns));
    return ns > 0 && ns <= FL_SHORT_NS;
}

/* Chooses the lane holding an item waited for, because no wait is then needed; otherwise the lane
 * with the fewest items in flight. */
static uint32_t choose_lane(const fl_worker *w)
{
    const fl_offload *offload = w->offload;
    uint32_t best = 0, last = offload->lane_last;
    for (uint32_t i = 0; i < offload->waits.count; ++i) {
        fl_marker marker = offload->waits.at[i];
        uint32_t lane = fl_marker_lane(marker);
        if (fl_marker_device(marker) == w->index && lane < w->device->lanes &&
            offload->lane_load[lane] != 0 &&
            !w->device->backend->lane->is_past(w->device, marker)) {
            return lane;
        }
    }
    for (uint32_t lane = 1; lane < w->device->lanes; ++lane) {
        best = offload->lane_load[lane] < offload->lane_load[best] ? lane : best;
    }
    bool stays = is_short(w) && offload->lane_load[best] != 0 &&
                 offload->lane_load[last] < offload->lane_load[best] + FL_SHORT_IN_ROW;
    return stays ? last : best;
}

/* Reserves scratch memory for a lane's items, run in sequence. The size never shrinks. */
static bool reserve_scratch(fl_worker *w, size_t bytes, uint32_t lane)
{
    fl_block **scratch = &w->offload->scratch[lane], *taken;
    fl_residents *residents = &places_of(w)->residents[w->device->place];
    if (*scratch != NULL && bytes <= (*scratch)->bytes) {
        return true;
    }
    const fl_victims any = {.is_vacant = true};
    fl_mutex_lock(&residents->admit);
    filch_status status =
        fl_block_new_evict(places_of(w), w->device, bytes, &any, &taken, &w->stall.error);
    fl_mutex_unlock(&residents->admit);
    if (status != FILCH_OK) {
        w->stall.error.status = status;
        return false;
    }
    if (*scratch != NULL) {
        /* Items held back use the old block, too: marking puts the items on their lanes. */
        w->device->backend->lane->mark(w->device, &w->stall.error);
        w->device->backend->lane->drain(w->device, &w->stall.error);
        fl_block_give(places_of(w), *scratch, 0);
    } else {
        /* Devices wanting the memory wait for us. */
        fl_residents_come(places_of(w), w->device->place);
    }
    *scratch = taken;
    return true;
}

/* Points scratch accesses into the lane's block. */
static bool place_scratch(fl_worker *w, const fl_task *task, uint32_t lane)
{
    size_t bytes = fl_task_scratch(task);
    if (bytes == 0) {
        return true;
    }
    if (!reserve_scratch(w, bytes, lane)) {
        return false;
    }
    char *at = w->offload->scratch[lane]->ptr;
    for (uint32_t i = 0; i < task->access_count; ++i) {
        if (task->accesses[i].mode == FILCH_SCRATCH) {
            w->call.views[i].ptr = at;
            at += (size_t)task->accesses[i].tile * 64;
        }
    }
    return true;
}

/* --- Launching --- */

static bool refuse(fl_worker *w, const filch_codelet *codelet, const char *what)
{
    fl_error_fill(&w->stall.error,
                  (fl_fault){.status = FILCH_INVALID_ARGUMENT,
                             .device = w->device->info.name,
                             .label = codelet->name},
                  "%s: %s", codelet->name, what);
    return false;
}

/* Tells whether the item covers a range of items: a chunk, or a task with items. */
static bool has_range(const fl_item *item)
{
    return item->task == NULL || item->task->has_items;
}

/* Tells whether the kernel's parameters end where the call's parameters do, for any alignment of
 * the arguments: the driver copies as many bytes as the kernel declares. */
static bool has_size(const fl_function *function, size_t views, bool is_range, size_t arg_size)
{
    size_t before = views * sizeof(filch_view) + (is_range ? 2 * sizeof(uint64_t) : 0);
    bool has = function->param_bytes == before + arg_size;
    for (size_t align = 16; align <= 128 && arg_size != 0 && !has; align *= 2) {
        has = function->param_bytes == (before + align - 1) / align * align + arg_size;
    }
    return has;
}

/* Fills the kernel's parameters: views, the range of items, the arguments. */
static bool fill_params(fl_worker *w, const fl_item *item, const filch_call *call,
                        fl_launch *launch)
{
    fl_offload *offload = w->offload;
    const filch_codelet *codelet = fl_item_codelet(item);
    const fl_function *function = launch->function;
    uint32_t count = 0;
    for (uint32_t i = 0; i < call->view_count; ++i) {
        offload->param_bytes[count] = sizeof w->call.views[i];
        offload->params[count++] = &w->call.views[i];
    }
    if (has_range(item)) {
        offload->range[0] = call->lo;
        offload->range[1] = call->hi;
        offload->param_bytes[count] = sizeof offload->range;
        offload->params[count++] = offload->range;
    }
    if (codelet->arg_size != 0) {
        offload->param_bytes[count] = (uint32_t)codelet->arg_size;
        offload->params[count++] = (void *)(uintptr_t)call->args;
    }
    launch->param_count = count;
    if (function->param_count != UINT32_MAX && function->param_count != count) {
        char what[96];
        snprintf(what, sizeof what, "the kernel has %u parameters, but is called with %u",
                 function->param_count, count);
        return refuse(w, codelet, what);
    }
    if (function->param_count != UINT32_MAX &&
        !has_size(function, call->view_count, has_range(item), codelet->arg_size)) {
        return refuse(w, codelet, "the kernel's parameters have other sizes than the call's");
    }
    return true;
}

static bool fill_shape(fl_worker *w, fl_item *item, const filch_call *call, const fl_kernel *kernel,
                       filch_shape *shape)
{
    const fl_loaded *loaded = &kernel->places[w->device->place];
    if (kernel->shape_of == NULL) {
        *shape = kernel->shape;
    } else {
        *shape = (filch_shape){{0}, {0}, {0}, 0};
        item->code = kernel->shape_of(call, shape);
        if (item->code != 0) {
            return false;
        }
        fl_kernel_complete_shape(shape);
    }
    const char *wrong = loaded->fits ? NULL : fl_kernel_check_shape(&loaded->function, shape);
    return wrong == NULL || refuse(w, fl_item_codelet(item), wrong);
}

/* Question for a kernel's geometry: chunks of up to `most` grains, starting at grain `lo`. */
typedef struct fl_inquiry {
    const fl_item *item;
    const filch_call *call;
    const fl_kernel *kernel;
    uint32_t lo, most;
} fl_inquiry;

/* Number of threads in a launch of a chunk with `grains` grains; 0: the geometry is unknown. */
static double threads_of(const fl_inquiry *asked, uint32_t grains)
{
    const filch_call *call = asked->call;
    const fl_batch *batch = asked->item->job->batch;
    filch_view views[FL_MOST_VIEWS];
    filch_shape shape = {{0}, {0}, {0}, 0};
    filch_call some = *call;
    double threads = 1;
    fl_batch_range(batch, asked->lo, asked->lo + grains, &some.lo, &some.hi);
    if (!fl_batch_views(batch, some.lo, some.hi, views)) {
        return 0;
    }
    for (size_t i = 0; i < some.view_count; ++i) {
        views[i].ptr = call->views[i].ptr;
        views[i].ld = call->views[i].ld;
    }
    some.views = views;
    if (asked->kernel->shape_of(&some, &shape) != 0) {
        return 0;
    }
    fl_kernel_complete_shape(&shape);
    for (int i = 0; i < 3; ++i) {
        threads *= (double)shape.grid[i] * shape.block[i];
    }
    return threads;
}

/* Least number of grains launched with at least `threads` threads, or `most` if no number suffices.
 * The number of threads never falls with the number of grains. */
static uint32_t grains_for(const fl_inquiry *asked, double threads)
{
    /* Invariant: `few` grains have fewer threads. */
    uint32_t few = 0, enough = 1, most = asked->most;
    while (enough < most && threads_of(asked, enough) < threads) {
        few = enough;
        enough = enough <= most / 2 ? 2 * enough : most;
    }
    while (enough - few > 1) {
        uint32_t middle = few + (enough - few) / 2;
        bool has = threads_of(asked, middle) >= threads;
        enough = has ? middle : enough;
        few = has ? few : middle;
    }
    return enough;
}

/* Notes how many grains of the batch about fill the device, and the quantum of grains in a block.
 * Several numbers of grains are tried on the kernel's geometry. A single grain does not tell where
 * blocks take several grains. The chunk's size does not tell where kernels stride, and always
 * launch as many threads as the device holds. */
static void note_fill(fl_worker *w, const fl_item *item, const filch_call *call,
                      const fl_kernel *kernel)
{
    /* The share is looked up, because a stalled item's job may not be current. */
    fl_share *share = fl_job_share(item->job, w->index);
    if (share->fill != 0 || kernel->shape_of == NULL) {
        return;
    }
    const fl_batch *batch = item->job->batch;
    uint32_t lo = fl_batch_reach(batch, 0) == fl_batch_grains(batch) ? 0 : item->lo;
    uint32_t most = fl_batch_reach(batch, lo) - lo;
    const fl_inquiry asked = {.item = item, .call = call, .kernel = kernel, .lo = lo, .most = most};
    double one = threads_of(&asked, 1), all = threads_of(&asked, most);
    double full = FL_FULL_TIMES * w->device->info.team * FL_RESIDENT_THREADS;
    uint32_t more = all > one ? grains_for(&asked, nextafter(one, INFINITY)) : 2;
    /* A least number of 1 means inconsistent answers by the callback. */
    uint64_t quantum = more > 1 ? more - 1 : 1;
    uint64_t fill = (grains_for(&asked, fmin(full, all)) + quantum - 1) / quantum * quantum;
    share->quantum = (uint32_t)quantum;
    share->fill = fill < most ? (uint32_t)fill : most;
}

static void describe(fl_worker *w, const fl_item *item, filch_call *call)
{
    *call = (filch_call){.views = w->call.views,
                         .device = w->index,
                         .team = w->device->info.team,
                         .runtime = (filch_runtime *)(void *)w->sched->core,
                         .opaque = w};
    if (item->task != NULL) {
        call->view_count = item->task->access_count;
        call->args = item->task->args;
        if (FL_UNLIKELY(item->task->has_items)) {
            fl_divide_range(item, &call->lo, &call->hi);
        }
        return;
    }
    const fl_batch *batch = item->job->batch;
    fl_batch_range(batch, item->lo, item->hi, &call->lo, &call->hi);
    call->view_count = fl_batch_view_count(batch);
    call->args = fl_batch_args(batch);
}

/* Commits the operands, and starts write-back of final results, except results waiting for the
 * decision of a race. */
static bool commit(fl_worker *w, fl_in_flight *flight, fl_marker marker)
{
    fl_offload *offload = w->offload;
    bool fits = true;
    for (uint32_t i = 0; i < offload->operand_count; ++i) {
        fl_operand *operand = &offload->operands[i];
        if ((operand->is_final || operand->is_streamed) && (operand->mode & FILCH_WRITE) != 0 &&
            !operand->is_shadowed && marker != 0 &&
            !w->device->backend->lane->is_marked(w->device, marker)) {
            fits = w->device->backend->lane->mark(w->device, &w->stall.error) == FILCH_OK && fits;
        }
        fl_marker home = 0;
        fits = fl_operand_commit(places_of(w), carrier(w), operand, marker, &home,
                                 &w->stall.error) == FILCH_OK &&
               fits;
        if (home != 0) {
            fl_in_flight_add_home(w, flight, home);
        }
    }
    return fits;
}

bool fl_offload_commit_pieces(fl_worker *w, fl_in_flight *flight)
{
    return fl_offload_list(w, &flight->item) && commit(w, flight, 0);
}

/* Fills the launch of a kernel. */
static bool fill(fl_worker *w, fl_item *item, const filch_call *call, fl_launch *launch)
{
    const fl_kernel *kernel = fl_item_codelet(item)->kernel;
    launch->function = &kernel->places[w->device->place].function;
    if (!fill_params(w, item, call, launch) || !fill_shape(w, item, call, kernel, &launch->shape)) {
        return false;
    }
    if (item->task == NULL) {
        note_fill(w, item, call, kernel);
    }
    return true;
}

bool fl_offload_fill(fl_worker *w, fl_item *item, fl_launch *launch)
{
    filch_call call;
    describe(w, item, &call);
    return fill(w, item, &call, launch);
}

/* Notes copies awaited by the item from remote memory nodes. */
static bool note_foreign(fl_worker *w, fl_in_flight *flight)
{
    const fl_waits *waits = &w->offload->waits;
    for (uint32_t i = 0; i < waits->count; ++i) {
        fl_device *other = &places_of(w)->devices[fl_marker_device(waits->at[i])];
        if (other->place == w->device->place) {
            /* A copy of our own memory node fails with us. */
            continue;
        }
        if (flight->foreign_count < FL_FOREIGN) {
            flight->foreign[flight->foreign_count++] = waits->at[i];
            continue;
        }
        if (fl_device_await(other, waits->at[i], &w->stall.error) != FILCH_OK) {
            return false;
        }
    }
    return true;
}

/* Tells whether to time the item. Timing takes three driver calls, as long as a launch. Short items
 * wait for the last timed item to come back: otherwise hundreds of timed items may be launched
 * before enough samples are in. */
static bool wants_time(const fl_worker *w, const fl_item *item, const filch_codelet *codelet)
{
    fl_speed *speed = fl_codelet_speed(codelet, w->index);
    if (item->task == NULL || fl_trace_of(w) != NULL) {
        return true;
    }
    if (!is_short(w)) {
        return fl_speed_wants_sample(speed);
    }
    if (w->offload->timed != 0 || !fl_speed_wants_sample(speed)) {
        return false;
    }
    fl_speed_put_off(speed);
    return true;
}

/* Tells whether the launch may be held back. Not allowed are three kinds: an item awaited by an
 * idle device; a codelet's first item, which may be refused and must then be refused at once; an
 * item followed by write-back. */
static bool is_brief(const fl_worker *w, const fl_in_flight *flight)
{
    const fl_offload *offload = w->offload;
    if (w->pipeline.computing == 0 || flight->item.task == NULL || flight->expected <= 0 ||
        flight->expected > FL_SHORT_NS || !is_short(w)) {
        return false;
    }
    for (uint32_t i = 0; i < offload->operand_count; ++i) {
        if (offload->operands[i].is_final && (offload->operands[i].mode & FILCH_WRITE) != 0) {
            return false;
        }
    }
    return true;
}

/* Fetches the operands. A chunk runs even without memory for a second run. */
static bool fetch(fl_worker *w, fl_item *item)
{
    return fl_offload_fetch(w, item) ||
           (item->task == NULL && fl_speculate_forgo(item) && fl_offload_fetch(w, item));
}

/* Puts an item with fetched operands on a lane. launch: tag and call are set, the function is
 * not. */
static bool put_on_lane(fl_worker *w, fl_in_flight *flight, fl_launch *launch, filch_call *call,
                        bool is_piece)
{
    fl_offload *offload = w->offload;
    fl_item *item = &flight->item;
    const filch_codelet *codelet = fl_item_codelet(item);
    /* A simulated device never runs the codelet's kernel. */
    const fl_kernel *kernel = w->device->backend->is_virtual ? NULL : codelet->kernel;
    uint32_t lane = choose_lane(w);
    if (item->task != NULL && !place_scratch(w, item->task, lane)) {
        return false;
    }
    describe(w, item, call);
    bool is_timed = is_piece || wants_time(w, item, codelet);
    /* Assigns members singly: compilers clear a structure of the size as slowly as the whole rest
     * takes. */
    launch->cost = kernel == NULL ? fl_item_cost(w, item) : 0;
    launch->lane = lane;
    launch->name = codelet->name;
    launch->function = NULL;
    launch->params = offload->params;
    launch->param_bytes = offload->param_bytes;
    launch->param_count = 0;
    launch->enqueue = kernel != NULL ? kernel->enqueue : NULL;
    launch->graph = NULL;
    launch->states = kernel != NULL ? kernel->states[w->index] : NULL;
    launch->behind = offload->waits.at;
    launch->behind_count = offload->waits.count;
    launch->timed = is_timed;
    launch->brief = launch->enqueue == NULL && !is_timed && is_brief(w, flight);
    launch->code = 0;
    launch->marker = 0;
    if (kernel != NULL && kernel->enqueue == NULL && !fill(w, item, call, launch)) {
        return false;
    }
    filch_status status =
        w->device->backend->queue->launch(w->device, launch, item->start, &w->stall.error);
    if (status != FILCH_OK) {
        item->code = launch->code;
        return false;
    }
    flight->lane = offload->lane_last = lane;
    flight->is_timed = is_timed;
    flight->is_admitted = true;
    offload->is_admitted = offload->is_tight = false;
    offload->timed += is_timed;
    ++offload->lane_load[lane];
    return true;
}

bool fl_offload_launch(fl_worker *w, fl_in_flight *flight, uint32_t tag)
{
    fl_item *item = &flight->item;
    if (item->task != NULL && item->task->graph->kind == FILCH_GRAPH_CLOSED &&
        item->task->successor_count != 0) {
        /* Prefetches successors: the driver call evicts the lines from near caches before the next
         * use. In an open graph, concurrent threads may be adding successors. */
        __builtin_prefetch(item->task->successors[0], 1);
        __builtin_prefetch(&item->task->successors[0]->more);
    }
    if (item->task != NULL && item->task->access_count != 0) {
        fl_locality_expect(w, item->task);
    }
    if (!fetch(w, item) || (item->is_ahead && !fl_lookahead_waits(w, item->task)) ||
        !note_foreign(w, flight)) {
        return false;
    }
    bool is_piece =
        item->task != NULL && FL_UNLIKELY(item->task->has_items) && fl_divide_begin(w, flight);
    filch_call call;
    fl_launch launch;
    launch.tag = tag;
    launch.call = &call;
    if (!put_on_lane(w, flight, &launch, &call, is_piece)) {
        if (is_piece) {
            fl_divide_refused(item);
        }
        return false;
    }
    if (item->task == NULL) {
        flight->staged = fl_operands_staged(w->offload->operands, w->offload->operand_count);
    }
    if (FL_UNLIKELY(is_piece)) {
        /* The piece's results are committed with the whole task. */
        fl_divide_launched(w, flight);
    } else if (!commit(w, flight, launch.marker)) {
        fl_in_flight_fail(w, flight, &w->stall.error);
    } else {
        fl_lookahead_launched(w, tag, launch.marker);
    }
    if (FL_UNLIKELY(item->task == NULL && item->run != NULL)) {
        fl_private_hold(w, item->run);
    }
    return true;
}
