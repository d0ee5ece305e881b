/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the library that computes: libfilch_blas_engine.so, which holds the runtime. It is
 * loaded for the first call that filch gets, and never unloaded. */
#ifndef FILCH_BLAS_ENGINE_H
#define FILCH_BLAS_ENGINE_H

#include "kernels/blas/call.h"
#include "kernels/blas/settings.h"

/* What the engine asks of those who load it. */
typedef struct fl_blas_host {
    const fl_blas_settings *settings;
    void (*enter)(void); /* a task calls the next BLAS until leave */
    void (*leave)(void);
    void *(*find)(const char *name, const void *caller); /* a function of the next BLAS */
    const void *caller;                                  /* of the first call, for find */
    size_t integer_bytes;                                /* of what find finds by the usual names */
    void (*say)(const char *format, ...) __attribute__((format(printf, 1, 2)));
} fl_blas_host;

typedef enum fl_blas_outcome {
    FL_BLAS_DONE, /* computed; call->info is set */
    FL_BLAS_LEFT, /* the operands are as they were */
    FL_BLAS_NEVER /* as LEFT, and so for all later calls: there is no device left */
} fl_blas_outcome;

/* Thread safety of both: any thread. */
typedef struct fl_blas_engine {
    /* Makes the runtime. False where there is no device to use; say() told why. Once. */
    bool (*start)(const fl_blas_host *host);
    fl_blas_outcome (*run)(fl_blas_call *call);
} fl_blas_engine;

/* The symbol that the library exports. */
#define FL_BLAS_ENGINE_SYMBOL "filch_blas_engine"
extern const fl_blas_engine filch_blas_engine;

#endif
