/* SPDX-License-Identifier: Apache-2.0 */
/* C11 atomics with the memory order in the name. A comment at every use names the ordered accesses.
 * Thread sanitizers do not model stand-alone fences: synchronization that publishes data stays on
 * the operations. fl_fence_seq_cst serves store-load (Dekker) ordering only. */
#ifndef FL_BASE_ATOMIC_H
#define FL_BASE_ATOMIC_H

#include <stdatomic.h>

#define fl_load_relaxed(p) atomic_load_explicit((p), memory_order_relaxed)
#define fl_load_acquire(p) atomic_load_explicit((p), memory_order_acquire)
#define fl_load_seq_cst(p) atomic_load_explicit((p), memory_order_seq_cst)
#define fl_store_relaxed(p, v) atomic_store_explicit((p), (v), memory_order_relaxed)
#define fl_store_release(p, v) atomic_store_explicit((p), (v), memory_order_release)
#define fl_store_seq_cst(p, v) atomic_store_explicit((p), (v), memory_order_seq_cst)
#define fl_exchange_acquire(p, v) atomic_exchange_explicit((p), (v), memory_order_acquire)
#define fl_exchange_release(p, v) atomic_exchange_explicit((p), (v), memory_order_release)
#define fl_exchange_seq_cst(p, v) atomic_exchange_explicit((p), (v), memory_order_seq_cst)
#define fl_add_relaxed(p, v) atomic_fetch_add_explicit((p), (v), memory_order_relaxed)
#define fl_add_release(p, v) atomic_fetch_add_explicit((p), (v), memory_order_release)
#define fl_add_seq_cst(p, v) atomic_fetch_add_explicit((p), (v), memory_order_seq_cst)
#define fl_sub_relaxed(p, v) atomic_fetch_sub_explicit((p), (v), memory_order_relaxed)
#define fl_sub_acq_rel(p, v) atomic_fetch_sub_explicit((p), (v), memory_order_acq_rel)
#define fl_sub_seq_cst(p, v) atomic_fetch_sub_explicit((p), (v), memory_order_seq_cst)
#define fl_or_relaxed(p, v) atomic_fetch_or_explicit((p), (v), memory_order_relaxed)
#define fl_or_acquire(p, v) atomic_fetch_or_explicit((p), (v), memory_order_acquire)
#define fl_or_release(p, v) atomic_fetch_or_explicit((p), (v), memory_order_release)
#define fl_or_acq_rel(p, v) atomic_fetch_or_explicit((p), (v), memory_order_acq_rel)
#define fl_and_relaxed(p, v) atomic_fetch_and_explicit((p), (v), memory_order_relaxed)
#define fl_and_release(p, v) atomic_fetch_and_explicit((p), (v), memory_order_release)
#define fl_and_acq_rel(p, v) atomic_fetch_and_explicit((p), (v), memory_order_acq_rel)

/* Compare-and-swap. A failure stores the value found in *expected, by an acquire load (relaxed for
 * relaxed). */
#define fl_cas_relaxed(p, expected, desired)                                                  \
    atomic_compare_exchange_strong_explicit((p), (expected), (desired), memory_order_relaxed, \
                                            memory_order_relaxed)
#define fl_cas_acquire(p, expected, desired)                                                  \
    atomic_compare_exchange_strong_explicit((p), (expected), (desired), memory_order_acquire, \
                                            memory_order_acquire)
#define fl_cas_acq_rel(p, expected, desired)                                                  \
    atomic_compare_exchange_strong_explicit((p), (expected), (desired), memory_order_acq_rel, \
                                            memory_order_acquire)
#define fl_cas_seq_cst(p, expected, desired)                                                  \
    atomic_compare_exchange_strong_explicit((p), (expected), (desired), memory_order_seq_cst, \
                                            memory_order_seq_cst)
#define fl_cas_weak_acq_rel(p, expected, desired)                                           \
    atomic_compare_exchange_weak_explicit((p), (expected), (desired), memory_order_acq_rel, \
                                          memory_order_acquire)
#define fl_cas_weak_release(p, expected, desired)                                           \
    atomic_compare_exchange_weak_explicit((p), (expected), (desired), memory_order_release, \
                                          memory_order_relaxed)

/* Store-load ordering. GCC refuses fences under -fsanitize=thread. An idle read-modify-write of a
 * local has an equal effect on every machine that the sanitizer supports. */
static inline void fl_fence_seq_cst(void)
{
#if defined(__SANITIZE_THREAD__)
    _Atomic int idle = 0;
    atomic_fetch_add_explicit(&idle, 1, memory_order_seq_cst);
#else
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

/* Tells the processor about a spinning thread. */
static inline void fl_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

#define FL_LIKELY(x) __builtin_expect(!!(x), 1)
#define FL_UNLIKELY(x) __builtin_expect(!!(x), 0)

#endif
