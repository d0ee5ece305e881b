/* SPDX-License-Identifier: Apache-2.0 */
/* Recording of failures. The first detector records; callers that pass the status on stay silent.
 *
 * A record goes to either of two destinations: a filch_error of the caller (calls without a runtime
 * yet), or the runtime's error log. Every thread fetches its own newest record from the log. A call
 * whose first argument is no valid handle names no runtime: the thread keeps the refusal itself,
 * and finds it by any runtime's log that has no newer record. */
#ifndef FL_BASE_ERROR_H
#define FL_BASE_ERROR_H

#include <stdbool.h>

#include "base/thread.h"
#include "filch/status.h"

#define FL_ERROR_LOG_SLOTS 64

/* Three arguments for "%s%s%s": the name in quotes behind a word, or what to say without a name. */
#define FL_NAME(word, name, without) \
    (name)[0] != '\0' ? word "'" : (without), (name), (name)[0] != '\0' ? "'" : ""

/* Facts known to the detector. Null texts mean "does not apply". */
typedef struct fl_fault {
    filch_status status;
    int32_t native_code;
    int64_t line;
    const char *native_name;
    const char *call;
    const char *device;
    const char *label;
} fl_fault;

/* Newest records of the threads that failed last, at most one per thread. Every thread may record
 * or fetch (blocking, short). */
typedef struct fl_error_log {
    fl_mutex lock;
    uint64_t since; /* refusals up to this serial are not told: older than the log, or than a record
                       that was displaced from it */
    struct {
        uint64_t thread; /* fl_thread_id of the recorder, 0 = empty */
        uint64_t serial; /* order of recording in the process, from 1; 0 = empty */
        filch_error error;
    } slots[FL_ERROR_LOG_SLOTS];
} fl_error_log;

filch_status fl_error_log_init(fl_error_log *log);
void fl_error_log_fini(fl_error_log *log);

/* Fills *error (honours error->size; null is allowed) and returns fault.status. */
filch_status fl_error_fill(filch_error *error, fl_fault fault, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Records in the log for the calling thread (null log is allowed) and returns fault.status. */
filch_status fl_error_record(fl_error_log *log, fl_fault fault, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Records an already filled error. */
void fl_error_store(fl_error_log *log, const filch_error *error);

/* Notes for the calling thread that a call refused a handle, and returns FILCH_INVALID_HANDLE. The
 * texts are constants: the handle's name, and what is wrong with it. */
filch_status fl_error_refuse(const char *call, const char *handle, const char *wrong);
/* Fills *error with the thread's newest refusal of a handle. False: there was none. */
bool fl_error_refusal(filch_error *error);

/* Copies the newest record of the calling thread into *error, up to error->size: from the log, or a
 * refusal of a handle after `since`. FILCH_NOT_FOUND: neither exists. */
filch_status fl_error_fetch(fl_error_log *log, filch_error *error);

#define FL_SIZE_TEXT 160

/* Checks the size of a caller's record (filch/status.h); returns a text about the mistake, or null.
 *
 * least: size of the record's first version.
 * known: size of the present version; 0 when filch writes the record and leaves further bytes
 * alone. what: name of the record. */
const char *fl_size_wrong(const void *record, size_t least, size_t known, const char *what,
                          char text[FL_SIZE_TEXT]);
/* Copies the fields that lie whole within the smaller of the two sizes; to->size stays. */
void fl_error_copy(filch_error *to, const filch_error *from);

#endif
