/* SPDX-License-Identifier: Apache-2.0 */
/* Grains of a batch that fill a device with threads, by the kernel's geometry. */
#include "sched/execute/fill.h"

#include <math.h>

#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"

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
void fl_fill_note(fl_worker *w, const fl_item *item, const filch_call *call,
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
