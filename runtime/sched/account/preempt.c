/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "sched/account/preempt.h"

#include <stddef.h>
#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"

static bool read_system(void *user, fl_thread_times *times)
{
    struct timespec cpu;
    struct rusage usage;
    (void)user;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu) != 0 ||
        getrusage(RUSAGE_THREAD, &usage) != 0) {
        return false;
    }
    /* The times in usage may be a clock tick old. */
    *times = (fl_thread_times){.wall_ns = fl_time_now(),
                               .cpu_ns = (uint64_t)cpu.tv_sec * FL_NS_PER_S + (uint64_t)cpu.tv_nsec,
                               .blocked = (uint64_t)usage.ru_nvcsw,
                               .taken = (uint64_t)usage.ru_nivcsw};
    return true;
}

/* Reads the times; *before: the times of the previous reading. */
static bool look(fl_preempt *preempt, fl_thread_times *before)
{
    fl_thread_times times;
    if (preempt->read == NULL || !preempt->read(preempt->user, &times)) {
        return false;
    }
    *before = preempt->last;
    preempt->last = times;
    return true;
}

void fl_preempt_begin(fl_preempt *preempt, fl_thread_times_fn read, void *user)
{
    fl_thread_times before;
    *preempt = (fl_preempt){.read = read != NULL ? read : read_system, .user = user};
    if (!look(preempt, &before)) {
        preempt->read = NULL;
    }
}

void fl_preempt_slept(fl_preempt *preempt, uint64_t from, uint64_t to)
{
    fl_thread_times before;
    uint64_t ns = to > from ? to - from : 0;
    preempt->slept_ns += ns;
    ++preempt->sleeps;
    /* Falling asleep and waking up take core time, and slept_ns includes the time again. A new
     * reading keeps the double count from adding up. */
    if (ns >= FL_PREEMPT_LEAST_NS && look(preempt, &before)) {
        preempt->slept_ns = preempt->sleeps = 0;
    }
}

uint64_t fl_preempt_take(fl_preempt *preempt, uint64_t from, uint64_t to)
{
    fl_thread_times before;
    if (to <= from || to - from < FL_PREEMPT_LEAST_NS || !look(preempt, &before)) {
        return 0;
    }
    const fl_thread_times *now = &preempt->last;
    uint64_t spent = now->cpu_ns - before.cpu_ns + preempt->slept_ns;
    uint64_t wall = now->wall_ns - before.wall_ns;
    uint64_t blocked = now->blocked - before.blocked, taken = now->taken - before.taken;
    uint64_t own = blocked > preempt->sleeps ? blocked - preempt->sleeps : 0;
    preempt->slept_ns = preempt->sleeps = 0;
    if (wall <= spent || taken == 0) {
        return 0;
    }
    double off = (double)(wall - spent) * ((double)taken / (double)(taken + own));
    /* The reading also spans earlier periods, too short for a reading of their own; the present
     * period limits the result. */
    return off < (double)(to - from) ? (uint64_t)off : to - from;
}
