/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and frees the parts of a worker. */
#include <string.h>

#include "sched/worker/device.h"
#include "sched/worker/sched.h"
#include "sched/worker/worker.h"

/* Items in flight on a simulated device at a time, far more than its queue depth. */
#define FLIGHTS_SIMULATED 64u

static filch_status init_pipeline(fl_worker *w)
{
    const fl_memory *memory = &w->sched->core->memory;
    w->pipeline.writing_back = w->pipeline.writing_back_last = FL_NO_FLIGHT;
    if (w->sched->core->places->count > 1) {
        w->offload = fl_alloc_zeroed(memory, sizeof *w->offload);
        if (w->offload == NULL) {
            return FILCH_OUT_OF_MEMORY;
        }
    }
    if (w->device->is_synchronous) {
        return FILCH_OK;
    }
    w->pipeline.flight_count = fl_worker_computes(w) ? FL_IN_FLIGHT_COMPUTING : FLIGHTS_SIMULATED;
    w->pipeline.flights =
        fl_alloc_zeroed(memory, w->pipeline.flight_count * sizeof *w->pipeline.flights);
    if (w->pipeline.flights == NULL) {
        return FILCH_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < w->pipeline.flight_count; ++i) {
        w->pipeline.flights[i].next = i + 1 < w->pipeline.flight_count ? i + 1 : FL_NO_FLIGHT;
    }
    return FILCH_OK;
}

static void fini_pipeline(fl_worker *w)
{
    const fl_memory *memory = &w->sched->core->memory;
    if (w->offload != NULL) {
        fl_free(memory, w->offload, sizeof *w->offload);
    }
    fl_free(memory, w->pipeline.flights, w->pipeline.flight_count * sizeof *w->pipeline.flights);
    w->offload = NULL;
    w->pipeline.flights = NULL;
}

filch_status fl_worker_init(fl_worker *w, fl_sched *sched, fl_device *device, uint32_t index)
{
    memset(w, 0, sizeof *w);
    w->sched = sched;
    w->device = device;
    w->index = index;
    w->theft.theft_ns = FL_THEFT_NS / 2; /* until it is measured */
    w->idle.wake_at = w->idle.ready_at = FL_TIME_NEVER;
    w->stall.error = (filch_error)FILCH_ERROR_INIT;
    fl_store_relaxed(&w->signals.duties,
                     index == sched->polling.worker ? FL_DUTY_POLL_EVENTS : 0); /* still ours */
    fl_inbox_init(&w->queues.inbox);
    fl_inbox_init(&w->queues.claimed);
    fl_mailbox_init(&w->queues.mailbox);
    const fl_memory *memory = &sched->core->memory;
    w->call.views = fl_alloc(memory, FL_MOST_VIEWS * sizeof *w->call.views);
    if (w->call.views == NULL) {
        return FILCH_OUT_OF_MEMORY;
    }
    filch_status status = init_pipeline(w);
    if (status != FILCH_OK || (status = fl_eventcount_init(&w->signals.event)) != FILCH_OK) {
        fini_pipeline(w);
        fl_free(memory, w->call.views, FL_MOST_VIEWS * sizeof *w->call.views);
        return status;
    }
    for (uint32_t level = 0; level < FL_LEVELS; ++level) {
        status = fl_deque_init(&w->queues.levels[level], memory, 6);
        if (status != FILCH_OK) {
            while (level-- > 0) {
                fl_deque_fini(&w->queues.levels[level]);
            }
            fl_eventcount_fini(&w->signals.event);
            fini_pipeline(w);
            fl_free(memory, w->call.views, FL_MOST_VIEWS * sizeof *w->call.views);
            return status;
        }
    }
    return FILCH_OK;
}

void fl_worker_fini(fl_worker *w)
{
    const fl_memory *memory = &w->sched->core->memory;
    for (uint32_t level = 0; level < FL_LEVELS; ++level) {
        fl_deque_fini(&w->queues.levels[level]);
    }
    fl_eventcount_fini(&w->signals.event);
    fini_pipeline(w);
    fl_free_aligned(memory, w->call.scratch, w->call.scratch_bytes, 64);
    fl_free(memory, w->call.text, sizeof *w->call.text);
    fl_free_aligned(memory, w->backup.output, w->backup.output_bytes, 64);
    fl_free(memory, w->call.views, FL_MOST_VIEWS * sizeof *w->call.views);
}
