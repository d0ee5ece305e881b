/* SPDX-License-Identifier: Apache-2.0 */
/* A profiler that speaks NVTX and keeps what it is told. A test loads it through the variable
 * NVTX_INJECTION64_PATH, and finds its functions by dlsym. */
#ifndef FAKENVTX_H
#define FAKENVTX_H

#include <stddef.h>
#include <stdint.h>

typedef enum fake_nvtx_kind { FAKE_PUSH, FAKE_POP, FAKE_START, FAKE_END } fake_nvtx_kind;

typedef struct fake_nvtx_event {
    fake_nvtx_kind kind;
    uint64_t thread;
    char domain[32];
    char name[128]; /* a pop's and an end's: of the range that ends; "": there is none */
    uint64_t range; /* of a start and an end */
    int depth;      /* ranges of the thread around a pushed or popped one */
} fake_nvtx_event;

/* Events so far, in the order of the calls; the array stays until fake_nvtx_forget. */
typedef const fake_nvtx_event *(*fake_nvtx_events_fn)(size_t *count);
typedef void (*fake_nvtx_forget_fn)(void);
/* How often programs asked it in, and made domains. */
typedef void (*fake_nvtx_counts_fn)(int *entries, int *domains);
/* Takes its functions out of the tables, or puts them in again. */
typedef void (*fake_nvtx_listen_fn)(int listens);

#endif
