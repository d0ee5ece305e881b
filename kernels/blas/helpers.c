/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "kernels/blas/helpers.h"

#include "kernels/blas/gate.h"
#include "kernels/blas/settings.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

/* After a loop helpers look for the next one so long before they sleep. */
#define AWAKE_S 50e-6
/* A helper that has slept so long ends: a process is over when its own threads are. */
#define ASLEEP_S 1
/* Between two looks at the clock, or before a wait gives its core away. */
#define LOOKS 64

typedef struct helper {
    pthread_t thread;
    bool is_made; /* and to be joined */
    atomic_bool is_alive;
    unsigned seen; /* loops that were over when it was made */
} helper;

static struct {
    atomic_bool is_taken; /* by the thread that has a loop, which alone uses these, but for
                             a helper's own is_alive and seen: */
    pid_t owner;          /* 0: no helper was made yet */
    cpu_set_t cores;      /* of the thread that made the helpers, and of the helpers */
    helper all[FL_HELPERS_MOST - 1];

    /* The loop. Helpers read it only while they are inside and it is open. */
    fl_helpers_part part;
    const void *user;
    int64_t iterations, chunk;
    _Atomic int64_t next; /* iteration that nobody has taken */
    atomic_bool is_open;
    atomic_int inside; /* helpers that may read the loop */

    atomic_int alive;
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

/* False: no other loop came in time. */
static bool sleep_until_not(unsigned seen)
{
    struct timespec until;
    int code = 0;
    (void)clock_gettime(CLOCK_REALTIME, &until); /* the clock of pthread_cond_timedwait() */
    until.tv_sec += ASLEEP_S;
    (void)pthread_mutex_lock(&helpers.lock);
    /* Sequentially consistent, with the load of loops after it: either this thread sees the new
     * loop, or who opens it sees the sleeper, and signals under the lock. */
    (void)atomic_fetch_add(&helpers.sleepers, 1);
    while (atomic_load(&helpers.loops) == seen && code == 0)
        code = pthread_cond_timedwait(&helpers.wake, &helpers.lock, &until);
    (void)atomic_fetch_sub(&helpers.sleepers, 1);
    (void)pthread_mutex_unlock(&helpers.lock);
    return loops_seen() != seen;
}

/* Waits until another loop than the seen one is there. */
static bool wait_for_loop(unsigned seen)
{
    double until = fl_gate_now_s() + AWAKE_S;
    while (loops_seen() == seen && fl_gate_now_s() < until)
        for (int k = 0; k < LOOKS && loops_seen() == seen; k++)
            relax();
    return loops_seen() != seen || sleep_until_not(seen);
}

static void *help(void *user)
{
    helper *self = user;
    unsigned seen = self->seen;
    /* Relaxed: loops_seen() ordered is_over. */
    while (wait_for_loop(seen) && !atomic_load_explicit(&helpers.is_over, memory_order_relaxed)) {
        seen = loops_seen();
        /* Sequentially consistent, as close_loop()'s store and load: either this thread finds the
         * loop closed, or the caller finds it inside, and leaves the loop as it is. */
        (void)atomic_fetch_add(&helpers.inside, 1);
        if (atomic_load(&helpers.is_open))
            run_chunks();
        /* Release: what the chunks wrote, for the caller, which sees inside fall to 0. */
        (void)atomic_fetch_sub_explicit(&helpers.inside, 1, memory_order_release);
    }
    /* Relaxed: who sees it joins the thread, or makes one less. */
    atomic_store_explicit(&self->is_alive, false, memory_order_relaxed);
    (void)atomic_fetch_sub_explicit(&helpers.alive, 1, memory_order_relaxed);
    return NULL;
}

/* --- The thread that has taken the helpers --- */

static int count_wanted(void)
{
    int given = fl_settings()->copy_threads;
    int wanted = given > 0 ? given : CPU_COUNT(&helpers.cores);
    return (wanted < FL_HELPERS_MOST ? wanted : FL_HELPERS_MOST) - 1;
}

static bool make_helper(helper *one)
{
    if (one->is_made)
        (void)pthread_join(one->thread, NULL);
    one->seen = loops_seen();
    /* Relaxed: the thread that is made sees them. */
    atomic_store_explicit(&one->is_alive, true, memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&helpers.alive, 1, memory_order_relaxed);
    one->is_made = pthread_create(&one->thread, NULL, help, one) == 0;
    if (one->is_made)
        return true;
    atomic_store_explicit(&one->is_alive, false, memory_order_relaxed);
    (void)atomic_fetch_sub_explicit(&helpers.alive, 1, memory_order_relaxed);
    return false;
}

/* Signals of the program go to its own threads, but for those that a thread's own instructions
 * raise: blocked, they would end the process past the program's handler. */
static void make_helpers(int wanted)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t blocked, before;
    (void)sigfillset(&blocked);
    for (size_t k = 0; k < sizeof own / sizeof *own; k++)
        (void)sigdelset(&blocked, own[k]);
    (void)pthread_sigmask(SIG_SETMASK, &blocked, &before);
    bool goes_on = true;
    for (int k = 0; k < wanted && goes_on; k++)
        if (!atomic_load_explicit(&helpers.all[k].is_alive, memory_order_relaxed))
            goes_on = make_helper(&helpers.all[k]);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Helpers run on the cores of the thread that made them: no thread with other cores gets them.
 * Relaxed: a guess; a missing helper costs time alone. */
static bool has_helpers(void)
{
    pid_t self = getpid();
    cpu_set_t cores;
    if ((helpers.owner != 0 && helpers.owner != self) ||
        sched_getaffinity(0, sizeof cores, &cores) != 0)
        return false;
    int alive = atomic_load_explicit(&helpers.alive, memory_order_relaxed);
    if (alive == 0)
        helpers.cores = cores;
    else if (!CPU_EQUAL(&cores, &helpers.cores))
        return false;
    int wanted = count_wanted();
    if (wanted > 0 && alive < wanted) {
        helpers.owner = self;
        make_helpers(wanted);
    }
    return wanted > 0 && atomic_load_explicit(&helpers.alive, memory_order_relaxed) > 0;
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
    if (fl_settings()->copy_threads == 1) /* costs no system call a copy */
        return false;
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
    for (int k = 0; k < FL_HELPERS_MOST - 1; k++)
        if (helpers.all[k].is_made)
            (void)pthread_join(helpers.all[k].thread, NULL);
}
