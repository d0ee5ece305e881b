/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "kernels/blas/loader.h"

#include "kernels/blas/gate.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ENGINE_FILE "libfilch_blas_engine.so"

typedef enum state { WAITING, STARTED, OVER } state;

static _Atomic state now_is;
/* The process whose first large call starts the engine, or 0. The engine's threads, and the
 * driver's, are not in its children; nor is the thread that starts it. */
static _Atomic pid_t owner;
static const fl_blas_engine *engine;
static fl_blas_host host;

/* What the process has already; else out of the folder of this library, or wherever the system
 * looks. */
static const fl_blas_engine *load(void)
{
    const fl_blas_engine *linked = dlsym(RTLD_DEFAULT, FL_BLAS_ENGINE_SYMBOL);
    char path[4096];
    Dl_info info;
    const char *slash = dladdr(&host, &info) ? strrchr(info.dli_fname, '/') : NULL;
    if (linked)
        return linked;
    (void)snprintf(path, sizeof path, "%.*s%s", slash ? (int)(slash + 1 - info.dli_fname) : 0,
                   slash ? info.dli_fname : "", ENGINE_FILE);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        fl_settings_say("%s", dlerror()); /* NOLINT(concurrency-mt-unsafe): own text a thread */
        return NULL;
    }
    return dlsym(library, FL_BLAS_ENGINE_SYMBOL);
}

static void set(state is)
{
    /* Those who see STARTED see the engine. */
    atomic_store_explicit(&now_is, is, memory_order_release);
}

static state get(void)
{
    return atomic_load_explicit(&now_is, memory_order_acquire);
}

static void start(const void *caller)
{
    host = (fl_blas_host){.settings = fl_settings(),
                          .enter = filch_blas_suspend,
                          .leave = filch_blas_resume,
                          .find = fl_next_symbol,
                          .caller = caller,
                          .integer_bytes = fl_loader_integer_bytes,
                          .say = fl_settings_say};
    /* Whatever the start calls is none of the program's calls. */
    filch_blas_suspend();
    engine = load();
    set(engine && engine->start(&host) ? STARTED : OVER);
    filch_blas_resume();
}

bool fl_loader_is_started(void)
{
    return get() == STARTED;
}

bool fl_loader_is_over(void)
{
    return get() == OVER;
}

fl_blas_outcome fl_loader_run(fl_blas_call *call, const void *caller)
{
    pid_t of = 0, self = getpid();
    /* Relaxed: who owns publishes what it made by set(). */
    if (atomic_compare_exchange_strong_explicit(&owner, &of, self, memory_order_relaxed,
                                                memory_order_relaxed)) {
        start(caller);
    } else if (of != self) {
        set(OVER);
        return FL_BLAS_NEVER;
    }
    /* While another thread starts the engine, the next BLAS is there already. */
    if (get() != STARTED)
        return get() == OVER ? FL_BLAS_NEVER : FL_BLAS_LEFT;
    fl_blas_outcome outcome = engine->run(call);
    if (outcome == FL_BLAS_NEVER)
        set(OVER);
    return outcome;
}
