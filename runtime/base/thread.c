/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "base/thread.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/atomic.h"
#include "base/clock.h"

/* Cap of a wait; a longer wait ends early and reports a spurious wake-up. C11 waits by the wall
 * clock only. The cap bounds the effect of a clock step on a wait, and keeps the deadline
 * representable. */
#define WAIT_LONGEST (600 * FL_NS_PER_S)
/* Attempts at a mutex held briefly; the whole series takes about 5 us. */
#define ATTEMPTS 100

/* Blocks signals for a new thread: new threads start with their creator's mask. The open signals
 * are raised by a thread's own instruction; blocking them would turn the host's crash handler off.
 */
static void signals_block(sigset_t *before)
{
    static const int open[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t blocked;

    (void)sigfillset(&blocked);
    for (size_t i = 0; i < sizeof open / sizeof open[0]; i++)
        (void)sigdelset(&blocked, open[i]);
    (void)pthread_sigmask(SIG_SETMASK, &blocked, before);
}

static void signals_restore(const sigset_t *before)
{
    (void)pthread_sigmask(SIG_SETMASK, before, NULL);
}

static struct timespec deadline_in(uint64_t ns)
{
    struct timespec at = {0, 0};

    (void)timespec_get(&at, TIME_UTC);
    at.tv_sec += (time_t)(ns / FL_NS_PER_S);
    at.tv_nsec += (long)(ns % FL_NS_PER_S);
    if (at.tv_nsec >= (long)FL_NS_PER_S) {
        at.tv_nsec -= (long)FL_NS_PER_S;
        at.tv_sec++;
    }
    return at;
}

bool fl_thread_has_stack(void)
{
    pthread_attr_t attributes;
    void *lowest = NULL;
    size_t size = 0;

    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return false;
    (void)pthread_attr_getstack(&attributes, &lowest, &size);
    (void)pthread_attr_destroy(&attributes);
    size_t left = (size_t)((uintptr_t)__builtin_frame_address(0) - (uintptr_t)lowest);
    return left > size / 2 && left <= size;
}

uint64_t fl_thread_id(void)
{
    /* Address or number of the thread's control block: no system call, and never 0. */
    return (uint64_t)(uintptr_t)pthread_self();
}

void fl_thread_name(const char *name)
{
    (void)prctl(PR_SET_NAME, name);
}

void fl_thread_slack(uint32_t ns)
{
    (void)prctl(PR_SET_TIMERSLACK, (unsigned long)ns);
}

void fl_mutex_lock_soon(fl_mutex *mutex)
{
    for (uint32_t i = 0; i < ATTEMPTS; i++) {
        if (fl_mutex_try(mutex))
            return;
        fl_relax();
    }
    fl_mutex_lock(mutex);
}

#ifdef FL_THREAD_PTHREADS

typedef struct start {
    fl_thread_fn fn;
    void *arg;
} start;

static void *start_run(void *box)
{
    start begin = *(start *)box;

    free(box);
    (void)begin.fn(begin.arg);
    return NULL;
}

filch_status fl_thread_start(fl_thread *thread, fl_thread_fn fn, void *arg)
{
    start *box = malloc(sizeof *box);
    sigset_t before;
    fl_thread made;
    int failed;

    if (box == NULL)
        return FILCH_SYSTEM;
    *box = (start){fn, arg};
    signals_block(&before);
    failed = pthread_create(&made, NULL, start_run, box);
    signals_restore(&before);
    if (failed != 0) {
        free(box);
        return FILCH_SYSTEM;
    }
    *thread = made;
    return FILCH_OK;
}

void fl_thread_join(fl_thread thread)
{
    (void)pthread_join(thread, NULL);
}

void fl_thread_yield(void)
{
    (void)sched_yield();
}

filch_status fl_mutex_init(fl_mutex *mutex)
{
    return pthread_mutex_init(mutex, NULL) == 0 ? FILCH_OK : FILCH_SYSTEM;
}

void fl_mutex_fini(fl_mutex *mutex)
{
    (void)pthread_mutex_destroy(mutex);
}

void fl_mutex_lock(fl_mutex *mutex)
{
    (void)pthread_mutex_lock(mutex);
}

bool fl_mutex_try(fl_mutex *mutex)
{
    return pthread_mutex_trylock(mutex) == 0;
}

void fl_mutex_unlock(fl_mutex *mutex)
{
    (void)pthread_mutex_unlock(mutex);
}

filch_status fl_cond_init(fl_cond *cond)
{
    return pthread_cond_init(cond, NULL) == 0 ? FILCH_OK : FILCH_SYSTEM;
}

void fl_cond_fini(fl_cond *cond)
{
    (void)pthread_cond_destroy(cond);
}

void fl_cond_wait(fl_cond *cond, fl_mutex *mutex)
{
    (void)pthread_cond_wait(cond, mutex);
}

bool fl_cond_wait_for(fl_cond *cond, fl_mutex *mutex, uint64_t ns)
{
    bool capped = ns > WAIT_LONGEST;
    struct timespec at = deadline_in(capped ? WAIT_LONGEST : ns);

    return pthread_cond_timedwait(cond, mutex, &at) == 0 || capped;
}

void fl_cond_signal(fl_cond *cond)
{
    (void)pthread_cond_signal(cond);
}

void fl_cond_broadcast(fl_cond *cond)
{
    (void)pthread_cond_broadcast(cond);
}

filch_status fl_tss_init(fl_tss *tss)
{
    return pthread_key_create(tss, NULL) == 0 ? FILCH_OK : FILCH_SYSTEM;
}

void fl_tss_fini(fl_tss tss)
{
    (void)pthread_key_delete(tss);
}

void *fl_tss_get(fl_tss tss)
{
    return pthread_getspecific(tss);
}

filch_status fl_tss_set(fl_tss tss, void *value)
{
    return pthread_setspecific(tss, value) == 0 ? FILCH_OK : FILCH_SYSTEM;
}

#else

filch_status fl_thread_start(fl_thread *thread, fl_thread_fn fn, void *arg)
{
    sigset_t before;
    fl_thread made;
    int result;

    signals_block(&before);
    result = thrd_create(&made, fn, arg);
    signals_restore(&before);
    if (result != thrd_success)
        return FILCH_SYSTEM;
    *thread = made;
    return FILCH_OK;
}

void fl_thread_join(fl_thread thread)
{
    (void)thrd_join(thread, NULL);
}

void fl_thread_yield(void)
{
    thrd_yield();
}

filch_status fl_mutex_init(fl_mutex *mutex)
{
    return mtx_init(mutex, mtx_plain) == thrd_success ? FILCH_OK : FILCH_SYSTEM;
}

void fl_mutex_fini(fl_mutex *mutex)
{
    mtx_destroy(mutex);
}

void fl_mutex_lock(fl_mutex *mutex)
{
    (void)mtx_lock(mutex);
}

bool fl_mutex_try(fl_mutex *mutex)
{
    return mtx_trylock(mutex) == thrd_success;
}

void fl_mutex_unlock(fl_mutex *mutex)
{
    (void)mtx_unlock(mutex);
}

filch_status fl_cond_init(fl_cond *cond)
{
    return cnd_init(cond) == thrd_success ? FILCH_OK : FILCH_SYSTEM;
}

void fl_cond_fini(fl_cond *cond)
{
    cnd_destroy(cond);
}

void fl_cond_wait(fl_cond *cond, fl_mutex *mutex)
{
    (void)cnd_wait(cond, mutex);
}

bool fl_cond_wait_for(fl_cond *cond, fl_mutex *mutex, uint64_t ns)
{
    bool capped = ns > WAIT_LONGEST;
    struct timespec at = deadline_in(capped ? WAIT_LONGEST : ns);

    return cnd_timedwait(cond, mutex, &at) == thrd_success || capped;
}

void fl_cond_signal(fl_cond *cond)
{
    (void)cnd_signal(cond);
}

void fl_cond_broadcast(fl_cond *cond)
{
    (void)cnd_broadcast(cond);
}

filch_status fl_tss_init(fl_tss *tss)
{
    return tss_create(tss, NULL) == thrd_success ? FILCH_OK : FILCH_SYSTEM;
}

void fl_tss_fini(fl_tss tss)
{
    tss_delete(tss);
}

void *fl_tss_get(fl_tss tss)
{
    return tss_get(tss);
}

filch_status fl_tss_set(fl_tss tss, void *value)
{
    return tss_set(tss, value) == thrd_success ? FILCH_OK : FILCH_SYSTEM;
}

#endif
