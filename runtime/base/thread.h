/* SPDX-License-Identifier: Apache-2.0 */
/* Threads, mutexes, condition variables and per-thread values over C11 <threads.h>.
 *
 * A thread-sanitized build maps the names to pthreads: the sanitizers of GCC 12 and Clang 14 crash
 * inside the C11 wrappers of glibc 2.36. */
#ifndef FL_BASE_THREAD_H
#define FL_BASE_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "filch/status.h"

#if defined(__SANITIZE_THREAD__)
#define FL_THREAD_PTHREADS 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FL_THREAD_PTHREADS 1
#endif
#endif

#ifdef FL_THREAD_PTHREADS
#include <pthread.h>
typedef pthread_t fl_thread;
typedef pthread_mutex_t fl_mutex;
typedef pthread_cond_t fl_cond;
typedef pthread_key_t fl_tss;
#else
#include <threads.h>
typedef thrd_t fl_thread;
typedef mtx_t fl_mutex;
typedef cnd_t fl_cond;
typedef tss_t fl_tss;
#endif

typedef int (*fl_thread_fn)(void *arg);

/* Starts a thread; FILCH_SYSTEM when the thread cannot be made. The new thread blocks every signal
 * it can: the host's handlers then run on the host's threads. */
filch_status fl_thread_start(fl_thread *thread, fl_thread_fn fn, void *arg);
void fl_thread_join(fl_thread thread);
void fl_thread_yield(void);
/* Returns a number unique to the calling thread among living threads, never 0. */
uint64_t fl_thread_id(void);
/* Whether more than half of the calling thread's stack is free; false if its bounds are unknown. */
bool fl_thread_has_stack(void);
/* Names the calling thread for debuggers and tools (cut to 15 characters). */
void fl_thread_name(const char *name);
/* Sets the delay by which the system may end the calling thread's sleeps late to save power (Linux:
 * 50 us if unset). */
void fl_thread_slack(uint32_t ns);

filch_status fl_mutex_init(fl_mutex *mutex);
void fl_mutex_fini(fl_mutex *mutex);
void fl_mutex_lock(fl_mutex *mutex);
/* Locks a mutex held for a few microseconds at most. Spins about 5 us before sleeping, because a
 * wake-up takes several times as long. */
void fl_mutex_lock_soon(fl_mutex *mutex);
bool fl_mutex_try(fl_mutex *mutex);
void fl_mutex_unlock(fl_mutex *mutex);

filch_status fl_cond_init(fl_cond *cond);
void fl_cond_fini(fl_cond *cond);
void fl_cond_wait(fl_cond *cond, fl_mutex *mutex);
/* Waits at most ns nanoseconds, capped at ten minutes; returns false when ns passed. Spurious
 * returns of true happen. The wall clock measures the time: a step of the clock moves the end of
 * the wait. */
bool fl_cond_wait_for(fl_cond *cond, fl_mutex *mutex, uint64_t ns);
void fl_cond_signal(fl_cond *cond);
void fl_cond_broadcast(fl_cond *cond);

/* Per-thread pointer, null in a thread that never set the pointer. No destructor. */
filch_status fl_tss_init(fl_tss *tss);
void fl_tss_fini(fl_tss tss);
void *fl_tss_get(fl_tss tss);
filch_status fl_tss_set(fl_tss tss, void *value);

#endif
