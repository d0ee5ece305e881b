/* SPDX-License-Identifier: Apache-2.0 */
/* Private outputs of the runs of a chunk under speculative execution. On the host, and on devices
 * sharing the host's memory, one allocation holds every written operand. On a GPU each operand has
 * a block, taken at admission. When the decisive run is known, the run's output is published. The
 * host copies the output. A GPU starts write-back, or, for whole tiles without a home buffer on the
 * host, makes the blocks the tiles' replicas. */
#include "sched/execute/private_output.h"

#include <string.h>

#include "sched/execute/fetch.h"
#include "sched/execute/publish.h"
#include "sched/worker/sched.h"

/* Alignment of each written operand in the host's memory. */
#define SHADOW_ALIGN 64u

static size_t view_bytes(const filch_view *view)
{
    size_t bytes = (size_t)(view->rows * view->cols * view->element);
    return (bytes + SHADOW_ALIGN - 1) & ~(size_t)(SHADOW_ALIGN - 1);
}

static bool is_written(const fl_batch *batch, uint32_t access)
{
    return (fl_batch_access(batch, access)->mode & FILCH_WRITE) != 0;
}

/* Finds the chunk's views, in worker->call.views; no running item uses the views. */
static bool find_views(fl_worker *w, const fl_item *item)
{
    const fl_batch *batch = item->job->batch;
    uint64_t first, last;
    fl_batch_range(batch, item->lo, item->hi, &first, &last);
    return fl_batch_views(batch, first, last, w->call.views);
}

bool fl_private_take(fl_worker *w, const fl_item *item, fl_backup_run *run)
{
    const fl_batch *batch = item->job->batch;
    const fl_memory *memory = &w->sched->core->memory;
    size_t bytes = 0;
    if (!find_views(w, item)) {
        return false;
    }
    for (uint32_t i = 0; i < fl_batch_view_count(batch); ++i) {
        bytes += is_written(batch, i) ? view_bytes(&w->call.views[i]) : 0;
    }
    run->output = NULL;
    run->output_bytes = bytes;
    if (bytes != 0 && bytes <= w->backup.output_bytes) {
        run->output = w->backup.output;
        run->output_bytes = w->backup.output_bytes;
        w->backup.output = NULL;
        w->backup.output_bytes = 0;
    } else if (bytes != 0) {
        run->output = fl_alloc_aligned(memory, bytes, SHADOW_ALIGN);
    }
    return bytes == 0 || run->output != NULL;
}

/* Returns the private output. The largest host allocation is kept for the next run. */
void fl_private_give(fl_worker *w, fl_backup_run *run)
{
    const fl_memory *memory = &w->sched->core->memory;
    if (run->output_bytes > w->backup.output_bytes) {
        fl_free_aligned(memory, w->backup.output, w->backup.output_bytes, SHADOW_ALIGN);
        w->backup.output = run->output;
        w->backup.output_bytes = run->output_bytes;
    } else {
        fl_free_aligned(memory, run->output, run->output_bytes, SHADOW_ALIGN);
    }
    run->output = NULL;
    run->output_bytes = 0;
    /* The run is past, or never began. */
    while (run->blocks != NULL) {
        fl_block *block = run->blocks;
        run->blocks = block->next;
        fl_block_give(w->sched->core->places, block, 0);
    }
}

void fl_private_views(const fl_item *item, filch_view *views)
{
    const fl_batch *batch = item->job->batch;
    char *at = item->run->output;
    for (uint32_t i = 0; i < fl_batch_view_count(batch); ++i) {
        if (is_written(batch, i)) {
            views[i].ptr = at;
            views[i].ld = views[i].rows;
            at += view_bytes(&views[i]);
        }
    }
}

/* --- Publishing on the host --- */

/* Copies a column-major view from the private output to the view's address. */
static void copy_view(const filch_view *view, const char *at)
{
    uint64_t column = view->rows * view->element;
    for (uint64_t col = 0; col < view->cols && column != 0; ++col) {
        memcpy((char *)view->ptr + col * view->ld * view->element, at + col * column, column);
    }
}

void fl_private_copy(fl_worker *w, const fl_item *item)
{
    const fl_batch *batch = item->job->batch;
    const char *at = item->run->output;
    if (at == NULL || !find_views(w, item)) {
        return;
    }
    for (uint32_t i = 0; i < fl_batch_view_count(batch); ++i) {
        if (is_written(batch, i)) {
            copy_view(&w->call.views[i], at);
            at += view_bytes(&w->call.views[i]);
        }
    }
}

/* Makes the host the only memory node with a valid copy, as the host's items do before writing.
 * Done only now, because the valid copy was elsewhere until the race was decided. */
static bool publish_operand(fl_worker *w, fl_operand *operand, const char *at)
{
    fl_places *places = w->sched->core->places;
    fl_waits *waits = &w->offload->waits;
    const fl_admission admission = {.foresight = NULL};
    fl_marker home = 0;
    waits->count = 0;
    operand->is_shadowed = false;
    bool is_there =
        fl_operands_fetch(places, NULL, operand, 1, &admission, waits, &w->stall.error) == FILCH_OK;
    /* Copies under way to the host must not arrive later. */
    fl_waits_abandon(places, waits);
    if (!is_there) {
        return false;
    }
    copy_view(operand->view, at);
    return fl_operand_commit(places, NULL, operand, 0, &home, &w->stall.error) == FILCH_OK &&
           fl_marker_await(places, home, &w->stall.error) == FILCH_OK;
}

bool fl_private_publish(fl_worker *w, const fl_item *item)
{
    const char *at = item->run->output;
    bool fits = true;
    if (at == NULL) {
        return true;
    }
    if (!fl_operands_list(w, item)) {
        return false;
    }
    for (uint32_t i = 0; i < w->offload->operand_count; ++i) {
        fl_operand *operand = &w->offload->operands[i];
        if (operand->is_shadowed) {
            size_t bytes = view_bytes(operand->view);
            fits = publish_operand(w, operand, at) && fits;
            at += bytes;
        }
    }
    return fits;
}

/* --- Blocks of a GPU --- */

void fl_private_hold(fl_worker *w, fl_backup_run *run)
{
    fl_block **last = &run->blocks;
    for (uint32_t i = 0; i < w->offload->operand_count; ++i) {
        fl_operand *operand = &w->offload->operands[i];
        if (operand->is_shadowed && operand->staging != NULL) {
            *last = operand->staging;
            last = &operand->staging->next;
            operand->staging = NULL;
        }
    }
    *last = NULL;
}

void fl_private_send(fl_worker *w, fl_in_flight *flight)
{
    fl_backup_run *run = flight->item.run;
    if (!fl_operands_list(w, &flight->item)) {
        fl_publish_fail(w, flight, &w->stall.error);
        return;
    }
    for (uint32_t i = 0; i < w->offload->operand_count; ++i) {
        fl_operand *operand = &w->offload->operands[i];
        fl_marker home = 0;
        if (!operand->is_shadowed || operand->first == operand->last) {
            continue;
        }
        /* Blocks are in the order of admission. */
        operand->staging = run->blocks;
        run->blocks = run->blocks->next;
        if (fl_operand_publish(w->sched->core->places, w->device, operand, &home,
                               &w->stall.error) != FILCH_OK) {
            fl_publish_fail(w, flight, &w->stall.error);
        }
        if (home != 0) {
            fl_publish_add_copy(w, flight, home);
        }
    }
}
