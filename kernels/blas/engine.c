/* SPDX-License-Identifier: Apache-2.0 */
/* One runtime for the process, from the first call that filch gets to the end. */
#define _GNU_SOURCE
#include "kernels/blas/engine.h"

#include "kernels/blas/undo.h"
#include "kernels/blas/works.h"
#include "kernels/vendor/load.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Calls in progress whose operands are at most this part of the GPU's memory evict nothing. */
#define PART_OF_MEMORY 0.4
/* Of the next BLAS's integers that filch's tasks on cores call it with. */
#define INTEGER_BYTES sizeof(int)
/* After so many failures in a row no device is taken to be of use. */
#define FAILURES_MOST 3

static struct {
    const fl_blas_host *host;
    filch_runtime *runtime;
    fl_vendor *vendor; /* null: no GPUs */
    fl_dense_host blas;
    fl_works works;
    fl_undo_memory copies;
    pid_t owner;
    double room;          /* bytes of the GPU; 0 where others take part */
    pthread_mutex_t lock; /* of bytes and held */
    double bytes;         /* of calls in progress */
    int held;             /* of them */
    atomic_int calls;     /* in progress */
    atomic_int failures;
    atomic_bool is_over;
} engine = {.copies = {.lock = PTHREAD_MUTEX_INITIALIZER}, .lock = PTHREAD_MUTEX_INITIALIZER};

/* --- The next BLAS, for cores of the host --- */

#define FIND(p, name, parameters)                                 \
    found = engine.host->find(#p #name "_", engine.host->caller); \
    memcpy(&engine.blas.p.name, &found, sizeof found);            \
    has_all = has_all && found;

static bool find_blas(void)
{
    bool has_all = true;
    void *found;
    FL_DENSE_ROUTINES(FIND, d, double)
    FL_DENSE_ROUTINES(FIND, s, float)
    return has_all;
}

/* --- Start and end --- */

/* A thread of the program may be inside of a call, and go on after the exit began: everything is
 * then left to the system. */
static void finish(void)
{
    atomic_store(&engine.is_over, true);
    if (engine.owner != getpid() || atomic_load(&engine.calls) > 0)
        return;
    (void)filch_runtime_abort(engine.runtime);
    fl_works_close(&engine.works);
    fl_undo_close(&engine.copies);
    fl_vendor_unload(engine.vendor);
    engine.runtime = NULL;
}

static bool fail(const char *text, const filch_error *error)
{
    engine.host->say("%s: %s: %s; all calls go to the next BLAS", text,
                     filch_status_name(error->status), error->text);
    if (engine.runtime)
        (void)filch_runtime_destroy(engine.runtime);
    fl_vendor_unload(engine.vendor);
    engine.runtime = NULL;
    engine.vendor = NULL;
    return false;
}

static filch_status make_runtime(filch_error *error)
{
    filch_runtime_desc desc = FILCH_RUNTIME_DESC_INIT;
    desc.devices = engine.host->settings->devices;
    return filch_runtime_create(&desc, error, &engine.runtime);
}

/* A tile that goes from one GPU to another may go by the host's memory. */
static double find_room(void)
{
    filch_device_info info = {.size = sizeof info};
    bool is_alone = filch_device_count(engine.runtime) == 1 &&
                    filch_device_at(engine.runtime, 0, &info) == FILCH_OK &&
                    info.backend == FILCH_BACKEND_CUDA;
    return is_alone ? (double)info.budget : 0;
}

static bool can_call_next(void)
{
    if (engine.host->integer_bytes == INTEGER_BYTES)
        return find_blas();
    engine.host->say("the next BLAS takes 64-bit integers: cores have no part");
    return false;
}

/* Called once. Devices without an implementation of the codelets have no part. */
static bool start(const fl_blas_host *host)
{
    filch_error error = FILCH_ERROR_INIT;
    engine.host = host;
    engine.owner = getpid();
    bool wants_gpus = strstr(host->settings->devices, "cuda") != NULL;
    bool wants_cores = strstr(host->settings->devices, "host") != NULL;
    if (wants_gpus && fl_vendor_load(&error, &engine.vendor) != FILCH_OK && !wants_cores)
        return fail("the driver or cuBLAS", &error);
    if (make_runtime(&error) != FILCH_OK)
        return fail(host->settings->devices, &error);
    bool has_cores = wants_cores && can_call_next();
    if (fl_works_open(&engine.works, engine.runtime, engine.vendor,
                      has_cores ? &engine.blas : NULL) != FILCH_OK) {
        (void)filch_runtime_error(engine.runtime, &error);
        return fail("codelets", &error);
    }
    engine.room = find_room();
    (void)atexit(finish);
    return true;
}

/* --- Calls --- */

static void settle(void *user)
{
    fl_undo_wait(user);
}

/* Counts a call in. Where results stay on the GPU until the end, the host's memory is only read
 * before, and may be copied beside (*is_held). Evicted tiles would be written to it, and
 * some calls change it first. False: the call would evict tiles of one that is held. */
static bool enter(const fl_blas_call *call, double bytes, bool *is_held)
{
    (void)pthread_mutex_lock(&engine.lock);
    bool fits = engine.bytes + bytes <= PART_OF_MEMORY * engine.room;
    bool may_enter = fits || engine.held == 0;
    *is_held = fits && !fl_call_prepares(call);
    if (may_enter) {
        engine.bytes += bytes;
        engine.held += *is_held;
    }
    (void)pthread_mutex_unlock(&engine.lock);
    return may_enter;
}

static void leave(double bytes, bool is_held)
{
    (void)pthread_mutex_lock(&engine.lock);
    engine.bytes -= bytes;
    engine.held -= is_held;
    (void)pthread_mutex_unlock(&engine.lock);
}

/* Of a call that is none, no device is to blame. */
static fl_blas_outcome fail_call(const fl_undo *undo, const filch_error *error)
{
    fl_undo_restore(undo, 0);
    if (error->status == FILCH_INVALID_ARGUMENT)
        return FL_BLAS_LEFT;
    engine.host->say("a call failed: %s: %s; the next BLAS computes it",
                     filch_status_name(error->status), error->text);
    return atomic_fetch_add(&engine.failures, 1) + 1 < FAILURES_MOST ? FL_BLAS_LEFT : FL_BLAS_NEVER;
}

static fl_blas_outcome run_call(fl_blas_call *call, bool is_held)
{
    fl_undo undo;
    filch_error error = FILCH_ERROR_INIT;
    if (atomic_load(&engine.is_over) || !fl_undo_begin(&undo, &engine.copies, call))
        return FL_BLAS_LEFT;
    const fl_works_hold hold = {settle, &undo};
    is_held = is_held && fl_undo_has_copies(&undo);
    if (!is_held)
        fl_undo_wait(&undo);
    fl_blas_outcome outcome = FL_BLAS_DONE;
    filch_status status = fl_works_run(&engine.works, engine.host->settings->tile,
                                       is_held ? &hold : NULL, call, &error);
    fl_undo_wait(&undo);
    if (status == FILCH_OK) {
        atomic_store(&engine.failures, 0);
        if (call->info != 0) /* there is no solution: B stays */
            fl_undo_restore(&undo, 1);
    } else {
        error.status = status;
        outcome = fail_call(&undo, &error);
    }
    fl_undo_drop(&undo);
    return outcome;
}

static fl_blas_outcome run(fl_blas_call *call)
{
    double bytes = fl_call_bytes(call);
    bool is_held = false;
    fl_blas_outcome outcome = FL_BLAS_LEFT;
    atomic_fetch_add(&engine.calls, 1);
    if (enter(call, bytes, &is_held)) {
        outcome = run_call(call, is_held);
        leave(bytes, is_held);
    }
    atomic_fetch_sub(&engine.calls, 1);
    return outcome;
}

__attribute__((visibility("default"))) const fl_blas_engine filch_blas_engine = {start, run};
