/* SPDX-License-Identifier: Apache-2.0 */
#include "live.h"

#include "observe/screen.h"
#include "sched/account/sample.h"

/* Readings of a device and of its memory node. */
typedef struct fl_live_reading {
    fl_worker_sample worker;
    fl_place_figures memory;
} fl_live_reading;

struct fl_live {
    filch_runtime *rt;
    fl_screen screen;
    /* The screen's thread's. */
    uint64_t begun, last; /* times of the readings, ns */
    fl_view_device *devices;
    fl_live_reading *at_begin, *at_last; /* one a device */
};

/* Tells whether the device is the first of a memory node of its own. */
static bool shows_memory(const filch_runtime *rt, uint32_t device)
{
    uint32_t place = rt->pool.devices[device].place;
    bool is_first = place != 0 && place < rt->places.count;
    for (uint32_t i = 0; i < device && is_first; ++i) {
        is_first = rt->pool.devices[i].place != place;
    }
    return is_first;
}

static fl_live_reading read_device(const filch_runtime *rt, uint32_t device, uint64_t now)
{
    fl_live_reading reading = {.worker = fl_sample_worker(&rt->sched, device, now)};
    if (shows_memory(rt, device)) {
        reading.memory = fl_place_figures_now(&rt->places, rt->pool.devices[device].place);
    }
    return reading;
}

static uint64_t most_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Keeps counts from falling: a reading amid a change may miss some. */
static void keep_rising(fl_live_reading *reading, const fl_live_reading *before)
{
    fl_worker_sample *now = &reading->worker;
    const fl_worker_sample *then = &before->worker;
    now->on_ns = most_of(now->on_ns, then->on_ns);
    now->idle_ns = most_of(now->idle_ns, then->idle_ns);
    now->off_ns = most_of(now->off_ns, then->off_ns);
    now->ended = most_of(now->ended, then->ended);
}

/* Describes a device between two readings. */
static fl_view_device describe(const filch_runtime *rt, uint32_t device, double seconds,
                               const fl_live_reading *from, const fl_live_reading *to)
{
    double on = (double)(to->worker.on_ns - from->worker.on_ns);
    double idle = (double)(to->worker.idle_ns - from->worker.idle_ns);
    double off = (double)(to->worker.off_ns - from->worker.off_ns);
    double all = on + idle + off > 0 ? on + idle + off : 1;
    double second = seconds > 0 ? seconds : 1;
    return (fl_view_device){
        .name = rt->pool.devices[device].info.name,
        .on = on / all,
        .off = off / all,
        .rate = (double)(to->worker.ended - from->worker.ended) / second,
        .ready = to->worker.ready,
        .stolen = to->worker.stolen - from->worker.stolen,
        .is_off = to->worker.is_off,
        .has_memory = shows_memory(rt, device),
        .memory = to->memory.held,
        .budget = to->memory.budget,
        .in = (double)(to->memory.copied_in - from->memory.copied_in) / second,
        .out = (double)(to->memory.copied_out - from->memory.copied_out) / second,
    };
}

/* fl_screen_fn. */
static void fill(void *user, bool is_last, fl_view *frame)
{
    struct fl_live *live = user;
    const filch_runtime *rt = live->rt;
    uint64_t now = fl_clock_now(&rt->core.clock);
    uint64_t since = is_last ? live->begun : live->last;
    uint64_t ended = 0;
    for (uint32_t i = 0; i < rt->sched.count; ++i) {
        fl_live_reading reading = read_device(rt, i, now);
        keep_rising(&reading, &live->at_last[i]);
        live->devices[i] = describe(rt, i, (double)(now - since) / 1e9,
                                    is_last ? &live->at_begin[i] : &live->at_last[i], &reading);
        live->at_last[i] = reading;
        ended += reading.worker.ended;
    }
    live->last = now;
    /* Relaxed: independent statistics. */
    uint64_t kept = fl_load_relaxed(&rt->jobs.kept), running = fl_load_relaxed(&rt->jobs.running);
    *frame = (fl_view){.seconds = (double)(now - live->begun) / 1e9,
                       .is_last = is_last,
                       .running = running > kept ? running - kept : 0,
                       .done = fl_load_relaxed(&rt->jobs.done),
                       .ended = ended,
                       .count = rt->sched.count,
                       .devices = live->devices};
}

static void free_live(struct fl_live *live)
{
    filch_runtime *rt = live->rt;
    const fl_memory *memory = &rt->core.memory;
    fl_free(memory, live->devices, rt->sched.count * sizeof *live->devices);
    fl_free(memory, live->at_begin, rt->sched.count * sizeof *live->at_begin);
    fl_free(memory, live->at_last, rt->sched.count * sizeof *live->at_last);
    fl_free(memory, live, sizeof *live);
}

static filch_status start(filch_runtime *rt)
{
    const fl_memory *memory = &rt->core.memory;
    uint32_t count = rt->sched.count;
    struct fl_live *live = fl_alloc_zeroed(memory, sizeof *live);
    if (live == NULL) {
        return FILCH_OUT_OF_MEMORY;
    }
    live->rt = rt;
    live->devices = fl_alloc(memory, count * sizeof *live->devices);
    live->at_begin = fl_alloc(memory, count * sizeof *live->at_begin);
    live->at_last = fl_alloc(memory, count * sizeof *live->at_last);
    filch_status status = FILCH_OUT_OF_MEMORY;
    if (live->devices != NULL && live->at_begin != NULL && live->at_last != NULL) {
        live->begun = live->last = fl_clock_now(&rt->core.clock);
        for (uint32_t i = 0; i < count; ++i) {
            live->at_begin[i] = live->at_last[i] = read_device(rt, i, live->begun);
        }
        status = fl_screen_start(&live->screen, memory, count, rt->core.settings.live, fill, live);
    }
    if (status != FILCH_OK) {
        free_live(live);
        return status;
    }
    rt->live = live;
    return FILCH_OK;
}

void fl_live_start(filch_runtime *rt)
{
    const fl_log *log = &rt->core.log;
    if (!(rt->core.settings.live > 0)) {
        return;
    }
    if (rt->pool.is_virtual) {
        fl_log_write(log, FILCH_LOG_WARNING,
                     "FILCH_LIVE shows nothing: simulated devices have a virtual clock");
        return;
    }
    filch_status status = start(rt);
    if (status != FILCH_OK) {
        fl_log_write(log, FILCH_LOG_WARNING, "FILCH_LIVE shows nothing: %s",
                     status == FILCH_IO              ? "standard error is not open"
                     : status == FILCH_OUT_OF_MEMORY ? "no memory"
                                                     : "no thread");
    }
}

void fl_live_stop(filch_runtime *rt)
{
    if (rt->live != NULL) {
        fl_screen_stop(&rt->live->screen);
        free_live(rt->live);
        rt->live = NULL;
    }
}
