/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "kernels/blas/helpers.h"

#include "kernels/blas/settings.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

/* After a loop helpers look for the next one so long before they sleep. */
#define AWAKE_NS 50000
/* Between two looks at the clock, or before a wait gives its core away. */
#define LOOKS 64

static struct {
    atomic_bool is_taken; /* by the thread that has a loop */
    int count;            /* helpers; written by who has taken them first */
    pid_t owner;          /* 0: the helpers are not made yet */
    pthread_t threads[FL_HELPERS_MOST - 1];

    /* The loop. Helpers read it only while they are inside and it is open. */
    fl_helpers_part part;
    const void *user;
    int64_t iterations, chunk;
    _Atomic int64_t next; /* iteration that nobody has taken */
    atomic_bool is_open;
    atomic_int inside; /* helpers that may read the loop */

    atomic_uint loops;   /* so many were opened; one more at the end */
    atomic_bool is_over; /* helpers end */
    atomic_int sleepers;
    pthread_mutex_t lock; /* of sleep */
    pthread_cond_t wake;
} helpers = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void run_chunks(void)
{
    for (;;) {
        /* Relaxed: the counter hands out numbers; the loop itself was read after is_open. */
        int64_t first =
            atomic_fetch_add_explicit(&helpers.next, helpers.chunk, memory_order_relaxed);
        int64_t last = first + helpers.chunk;
        if (first >= helpers.iterations)
            return;
        helpers.part(helpers.user, first, last < helpers.iterations ? last : helpers.iterations);
    }
}

/* Acquire: who sees the last change sees that the end has come. */
static unsigned loops_seen(void)
{
    return atomic_load_explicit(&helpers.loops, memory_order_acquire);
}

static void sleep_until_not(unsigned seen)
{
    (void)pthread_mutex_lock(&helpers.lock);
    /* Sequentially consistent, with the load of loops after it: either this thread sees the new
     * loop, or who opens it sees the sleeper, and signals under the lock. */
    (void)atomic_fetch_add(&helpers.sleepers, 1);
    while (atomic_load(&helpers.loops) == seen)
        (void)pthread_cond_wait(&helpers.wake, &helpers.lock);
    (void)atomic_fetch_sub(&helpers.sleepers, 1);
    (void)pthread_mutex_unlock(&helpers.lock);
}

/* Waits until another loop than the seen one is there. */
static unsigned wait_for_loop(unsigned seen)
{
    int64_t until = now_ns() + AWAKE_NS;
    while (loops_seen() == seen && now_ns() < until)
        for (int k = 0; k < LOOKS && loops_seen() == seen; k++)
            relax();
    if (loops_seen() == seen)
        sleep_until_not(seen);
    return loops_seen();
}

static void *help(void *unused)
{
    unsigned seen = 0;
    (void)unused;
    for (;;) {
        seen = wait_for_loop(seen);
        /* Relaxed: loops_seen() ordered it. */
        if (atomic_load_explicit(&helpers.is_over, memory_order_relaxed))
            return NULL;
        /* Sequentially consistent, as the caller's close() then load: either this thread finds the
         * loop closed, or the caller finds it inside, and leaves the loop as it is. */
        (void)atomic_fetch_add(&helpers.inside, 1);
        if (atomic_load(&helpers.is_open))
            run_chunks();
        /* Release: what the chunks wrote, for the caller, which sees inside fall to 0. */
        (void)atomic_fetch_sub_explicit(&helpers.inside, 1, memory_order_release);
    }
}

static int count_wanted(void)
{
    cpu_set_t cores;
    int most = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
    int given = fl_settings()->copy_threads;
    int wanted = given > 0 ? given : most;
    return (wanted < FL_HELPERS_MOST ? wanted : FL_HELPERS_MOST) - 1;
}

/* Signals of the program go to its own threads. */
static void make_threads(void)
{
    sigset_t all, before;
    int wanted = count_wanted();
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    while (helpers.count < wanted &&
           pthread_create(&helpers.threads[helpers.count], NULL, help, NULL) == 0)
        helpers.count++;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* By the thread that has taken the helpers. */
static bool has_helpers(void)
{
    pid_t self = getpid();
    if (helpers.owner == 0) {
        helpers.owner = self;
        make_threads();
    }
    return helpers.owner == self && helpers.count > 0;
}

static void announce(void)
{
    (void)atomic_fetch_add(&helpers.loops, 1);
    /* As in sleep_until_not(). */
    if (atomic_load(&helpers.sleepers) == 0)
        return;
    (void)pthread_mutex_lock(&helpers.lock);
    (void)pthread_cond_broadcast(&helpers.wake);
    (void)pthread_mutex_unlock(&helpers.lock);
}

/* A helper may have lost its core inside of a chunk. */
static void close_loop(void)
{
    atomic_store(&helpers.is_open, false);
    /* Sequentially consistent, as in help(). */
    for (int k = 0; atomic_load(&helpers.inside) != 0; k++)
        if (k % LOOKS == LOOKS - 1)
            (void)sched_yield();
        else
            relax();
}

bool fl_helpers_share(fl_helpers_part part, const void *user, int64_t count, int64_t chunk)
{
    /* Acquire, with the release below: the last loop is over for everyone. */
    if (atomic_exchange_explicit(&helpers.is_taken, true, memory_order_acquire))
        return false;
    bool has = has_helpers();
    if (has) {
        helpers.part = part;
        helpers.user = user;
        helpers.iterations = count;
        helpers.chunk = chunk;
        atomic_store_explicit(&helpers.next, 0, memory_order_relaxed);
        /* Sequentially consistent, and so a release: who sees it open sees the loop. */
        atomic_store(&helpers.is_open, true);
        announce();
        run_chunks();
        close_loop();
    }
    atomic_store_explicit(&helpers.is_taken, false, memory_order_release);
    return has;
}

/* At the end of the process, or when the library is closed. A thread that has a loop just now keeps
 * the helpers: the process is then about to end. */
__attribute__((destructor)) static void end(void)
{
    if (atomic_exchange_explicit(&helpers.is_taken, true, memory_order_acquire) ||
        helpers.owner != getpid())
        return;
    /* Relaxed: announce() comes after it, and releases it. */
    atomic_store_explicit(&helpers.is_over, true, memory_order_relaxed);
    announce();
    for (int k = 0; k < helpers.count; k++)
        (void)pthread_join(helpers.threads[k], NULL);
}
