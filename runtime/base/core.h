/* SPDX-License-Identifier: Apache-2.0 */
/* State shared by every layer of a runtime: memory, messages, errors, settings, time, and the list
 * of objects made by the runtime. First member of struct filch_runtime. */
#ifndef FL_BASE_CORE_H
#define FL_BASE_CORE_H

#include <stddef.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"
#include "filch/runtime.h"

typedef struct fl_core fl_core;
typedef struct fl_object fl_object;

/* Kinds of handles; a living object carries the value. */
typedef enum fl_magic {
    FL_MAGIC_DEAD = 0, /* mark of dead objects */
    FL_MAGIC_RUNTIME = 0x66726e74,
    FL_MAGIC_CODELET = 0x66636f64,
    FL_MAGIC_DATA = 0x66646174,
    FL_MAGIC_GRAPH = 0x66677270,
    FL_MAGIC_JOB = 0x666a6f62,
    FL_MAGIC_HOLD = 0x66686f6c,
    FL_MAGIC_MULTICAST = 0x666d6361
} fl_magic;

/* First member of every public object. */
struct fl_object {
    _Atomic uint32_t magic; /* relaxed: a diagnostic; the caller orders use and destruction */
    uint32_t align;         /* alignment of the allocation */
    size_t bytes;           /* size of the allocation */
    fl_core *core;
    fl_object *next, *prev; /* links of core->objects; under core->lock */
};

struct fl_core {
    fl_object object;      /* the runtime as an object */
    const uint32_t *alive; /* page zeroed in a forked child */
    fl_memory memory;      /* counts into host_bytes, then asks inner */
    fl_memory inner;
    _Atomic uint64_t host_bytes; /* relaxed: a statistic */
    fl_log log;
    fl_error_log errors;
    fl_settings settings;
    fl_clock clock;
    fl_mutex lock; /* guards objects and the order of jobs; workers lock it only when a job ends or
                      is kept beyond its end */
    fl_object *objects;   /* living objects, newest first */
    fl_object *graveyard; /* dead objects: debug builds keep them to recognise stale handles */
    struct fl_scheduler *scheduler; /* this pointer and the next four are set by the layers above */
    struct fl_store *store;
    struct fl_jobs *jobs;
    struct fl_places *places;
    struct fl_modules *modules;
    const struct fl_nvtx *nvtx; /* ranges of an attached profiler (observe/nvtx.h), or null */
    bool keeps_holders;         /* handles note the core that used a tile last; constant */
    fl_tss worker;              /* the calling thread's worker, or null */
    fl_tss callback;            /* the job in whose callback the calling thread is, or null */
};

/* Initialises core. memory must stay usable until fl_core_fini returns. A failure leaves no
 * resources behind. */
filch_status fl_core_init(fl_core *core, const fl_memory *inner, filch_error *error);
/* Frees the objects still listed, by fl_free alone: every owner was asked earlier. */
void fl_core_fini(fl_core *core);

/* Tells whether a handle is a living object of the kind. */
static inline bool fl_object_lives(const void *handle, fl_magic magic)
{
    const fl_object *object = handle;
    return object != NULL && fl_load_relaxed(&object->magic) == (uint32_t)magic;
}

/* Returns what is wrong with a handle that is no living object of the kind, as the end of a
 * sentence: "is null", "is of another kind: a graph", "is destroyed, or no handle". */
const char *fl_object_wrong(const void *handle, fl_magic wanted);
/* Notes for the calling thread why the call refuses the handle, and returns FILCH_INVALID_HANDLE.
 */
filch_status fl_object_refuse(const void *handle, fl_magic wanted, const char *call);

/* Checks the first argument of a public call: FILCH_OK, FILCH_INVALID_HANDLE or FILCH_FORKED. The
 * refusal is the thread's, because the runtime may not exist. */
static inline filch_status fl_object_check_for(const void *handle, fl_magic magic, const char *call)
{
    const fl_object *object = handle;
    if (FL_UNLIKELY(!fl_object_lives(handle, magic))) {
        return fl_object_refuse(handle, magic, call);
    }
    return FL_LIKELY(*object->core->alive == 1) ? FILCH_OK : FILCH_FORKED;
}

/* Tells whether a call can take a handle beside its first argument: FILCH_OK, FILCH_INVALID_HANDLE
 * (no living object of the kind) or FILCH_WRONG_RUNTIME (made by a runtime other than core's).
 * Records nothing. */
static inline filch_status fl_object_standing(const fl_core *core, const void *handle,
                                              fl_magic magic)
{
    return FL_UNLIKELY(!fl_object_lives(handle, magic))           ? FILCH_INVALID_HANDLE
           : FL_LIKELY(((const fl_object *)handle)->core == core) ? FILCH_OK
                                                                  : FILCH_WRONG_RUNTIME;
}

/* An argument of a call that is a handle, in the words of the call. */
typedef struct fl_argument {
    const void *handle;
    fl_magic magic;
    const char *what; /* begins the sentence: "the data handle" */
    const char *name; /* of the object; read only where the object lives */
} fl_argument;

#define FL_ARGUMENT_TEXT 192

/* Writes why fl_object_standing refuses an argument, "the data handle is null" or "the data handle
 * 'x' belongs to another runtime"; returns text. */
const char *fl_argument_explain(const fl_argument *argument, char text[FL_ARGUMENT_TEXT]);
/* Checks an argument by fl_object_standing and records a refusal. The error's label is the object's
 * name; label: the error's label where the handle is no object. */
filch_status fl_argument_check(fl_core *core, const fl_argument *argument, const char *call,
                               const char *label);

/* fl_object_check_for in the public function itself. */
#define fl_object_check(handle, magic) fl_object_check_for((handle), (magic), __func__)

static inline fl_core *fl_core_of(filch_runtime *runtime)
{
    return (fl_core *)(void *)runtime;
}

/* Makes a zeroed object of the given bytes (first member an fl_object) and links it into core;
 * null: no memory. Thread-safe. */
void *fl_object_new(fl_core *core, fl_magic magic, size_t bytes, size_t align);
/* Unlinks an object and frees it; a debug build moves it to the graveyard. */
void fl_object_delete(void *handle);

/* Checks a record's size by fl_size_wrong and records the failure: FILCH_OK,
 * FILCH_INVALID_ARGUMENT. A null record is refused when filch writes the record. */
filch_status fl_size_refuse(fl_core *core, const void *record, size_t least, size_t known,
                            const char *what, const char *call, const char *label);

/* Inline fast path: every task's descriptor is checked. */
static inline filch_status fl_size_check(fl_core *core, const void *record, size_t least,
                                         size_t known, const char *what, const char *call,
                                         const char *label)
{
    return FL_LIKELY(known != 0 && record != NULL && *(const size_t *)record == known)
               ? FILCH_OK
               : fl_size_refuse(core, record, least, known, what, call, label);
}

/* Records a failure of a public call for the calling thread. */
#define fl_core_fail(core, code, function, name, ...)                                  \
    fl_error_record(&(core)->errors,                                                   \
                    (fl_fault){.status = (code), .call = (function), .label = (name)}, \
                    __VA_ARGS__)

#endif
