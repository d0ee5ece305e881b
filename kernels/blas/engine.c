/* SPDX-License-Identifier: Apache-2.0 */
/* One runtime for the process, from the first call that filch gets to the end. */
#define _GNU_SOURCE
#include "kernels/blas/engine.h"

#include "kernels/blas/undo.h"
#include "kernels/blas/works.h"
#include "kernels/vendor/load.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Calls in progress whose operands are at most this part of a GPU's memory evict nothing. */
#define PART_OF_MEMORY 0.4
/* After so many failures in a row no device is taken to be of use. */
#define FAILURES_MOST 3

static struct {
    const fl_blas_host *host;
    filch_runtime *runtime;
    fl_vendor *vendor; /* null: no GPUs */
    fl_dense_host blas;
    fl_works works;
    pid_t owner;
    double room;          /* bytes of the smallest GPU; 0 where cores take part */
    _Atomic double bytes; /* of calls in progress */
    atomic_int calls;     /* in progress */
    atomic_int failures;
    atomic_bool is_over;
} engine;

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

static double find_room(void)
{
    double room = INFINITY;
    for (uint32_t d = 0; d < filch_device_count(engine.runtime); d++) {
        filch_device_info info = {.size = sizeof info};
        bool is_known = filch_device_at(engine.runtime, d, &info) == FILCH_OK;
        room = is_known && info.backend == FILCH_BACKEND_CUDA ? fmin(room, (double)info.budget) : 0;
    }
    return room;
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
    bool has_cores = wants_cores && find_blas();
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

static double add_bytes(double bytes)
{
    double old = atomic_load(&engine.bytes);
    while (!atomic_compare_exchange_weak(&engine.bytes, &old, old + bytes))
        ;
    return old + bytes;
}

/* Where results stay on the GPUs until the end, the host's memory is only read before, and copied
 * beside. Evicted tiles would be written to it. getrs exchanges rows there first. */
static bool can_hold(const fl_blas_call *call, const fl_undo *undo, double bytes)
{
    return fl_undo_has_copies(undo) && call->routine != FL_BLAS_GETRS &&
           bytes <= PART_OF_MEMORY * engine.room;
}

static fl_blas_outcome fail_call(const fl_undo *undo, const filch_error *error)
{
    fl_undo_restore(undo, 0);
    engine.host->say("a call failed: %s: %s; the next BLAS computes it",
                     filch_status_name(error->status), error->text);
    return atomic_fetch_add(&engine.failures, 1) + 1 < FAILURES_MOST ? FL_BLAS_LEFT : FL_BLAS_NEVER;
}

static fl_blas_outcome run_call(fl_blas_call *call, double bytes)
{
    fl_undo undo;
    filch_error error = FILCH_ERROR_INIT;
    if (atomic_load(&engine.is_over) || !fl_undo_begin(&undo, call))
        return FL_BLAS_LEFT;
    const fl_works_hold hold = {settle, &undo};
    bool is_held = can_hold(call, &undo, bytes);
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
    atomic_fetch_add(&engine.calls, 1);
    fl_blas_outcome outcome = run_call(call, add_bytes(bytes));
    (void)add_bytes(-bytes);
    atomic_fetch_sub(&engine.calls, 1);
    return outcome;
}

__attribute__((visibility("default"))) const fl_blas_engine filch_blas_engine = {start, run};
