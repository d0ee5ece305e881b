/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/atomic.h"

_Static_assert(sizeof(filch_error) == 488,
               "the error record is part of the ABI and has no padding");

/* Serials given to records and refusals until now. Relaxed: a thread compares serials of its own,
 * which one counter gives in the thread's order; the slots of a log get theirs under its lock. */
static _Atomic uint64_t serials;

/* Newest refusal of a handle by a call of the thread; serial 0: there was none. */
static _Thread_local struct {
    uint64_t serial;
    const char *call, *handle, *wrong;
} refusal;

static uint64_t next_serial(void)
{
    return fl_add_relaxed(&serials, 1) + 1;
}

static void text_set(char *to, size_t size, const char *from)
{
    size_t length = from == NULL ? 0 : strlen(from);

    if (length >= size)
        length = size - 1;
    if (length > 0)
        memcpy(to, from, length);
    to[length] = '\0';
}

void fl_error_copy(filch_error *to, const filch_error *from)
{
    size_t limit = to->size < from->size ? to->size : from->size;

/* Copies whole fields only: a text cut by a size limit would lose its terminator. */
#define COPY_FIELD(field)                                               \
    do {                                                                \
        if (offsetof(filch_error, field) + sizeof from->field <= limit) \
            memcpy(&to->field, &from->field, sizeof from->field);       \
    } while (0)

    COPY_FIELD(status);
    COPY_FIELD(native_code);
    COPY_FIELD(line);
    COPY_FIELD(native_name);
    COPY_FIELD(call);
    COPY_FIELD(device);
    COPY_FIELD(label);
    COPY_FIELD(text);
#undef COPY_FIELD
}

static void error_fill(filch_error *error, fl_fault fault, const char *format, va_list args)
{
    filch_error made = FILCH_ERROR_INIT;

    if (error == NULL)
        return;
    made.status = fault.status;
    made.native_code = fault.native_code;
    made.line = fault.line;
    text_set(made.native_name, sizeof made.native_name, fault.native_name);
    text_set(made.call, sizeof made.call, fault.call);
    text_set(made.device, sizeof made.device, fault.device);
    text_set(made.label, sizeof made.label, fault.label);
    if (vsnprintf(made.text, sizeof made.text, format, args) < 0)
        text_set(made.text, sizeof made.text, filch_status_message(fault.status));
    fl_error_copy(error, &made);
}

filch_status fl_error_fill(filch_error *error, fl_fault fault, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    error_fill(error, fault, format, args);
    va_end(args);
    return fault.status;
}

filch_status fl_error_log_init(fl_error_log *log)
{
    memset(log, 0, sizeof *log);
    log->since = fl_load_relaxed(&serials);
    return fl_mutex_init(&log->lock);
}

void fl_error_log_fini(fl_error_log *log)
{
    fl_mutex_fini(&log->lock);
}

/* Returns the thread's own slot, else a slot never used, else the slot written longest ago. A
 * thread that fails often displaces only its own older records. */
static size_t slot_for(const fl_error_log *log, uint64_t thread)
{
    size_t oldest = 0;

    for (size_t i = 0; i < FL_ERROR_LOG_SLOTS; i++) {
        if (log->slots[i].thread == thread)
            return i;
        /* Serials start at 1: an empty slot counts as the oldest. */
        if (log->slots[i].serial < log->slots[oldest].serial)
            oldest = i;
    }
    return oldest;
}

void fl_error_store(fl_error_log *log, const filch_error *error)
{
    uint64_t thread = fl_thread_id();
    size_t slot;

    if (log == NULL)
        return;
    fl_mutex_lock(&log->lock);
    slot = slot_for(log, thread);
    /* No refusal older than the displaced record may be told again. */
    if (log->slots[slot].thread != thread && log->slots[slot].serial > log->since)
        log->since = log->slots[slot].serial;
    log->slots[slot].thread = thread;
    log->slots[slot].serial = next_serial();
    log->slots[slot].error = (filch_error)FILCH_ERROR_INIT;
    fl_error_copy(&log->slots[slot].error, error);
    fl_mutex_unlock(&log->lock);
}

filch_status fl_error_record(fl_error_log *log, fl_fault fault, const char *format, ...)
{
    filch_error error = FILCH_ERROR_INIT;
    va_list args;

    if (log == NULL)
        return fault.status;
    /* Formatting precedes the lock: the arguments may be long. */
    va_start(args, format);
    error_fill(&error, fault, format, args);
    va_end(args);
    fl_error_store(log, &error);
    return fault.status;
}

filch_status fl_error_refuse(const char *call, const char *handle, const char *wrong)
{
    refusal.serial = next_serial();
    refusal.call = call;
    refusal.handle = handle;
    refusal.wrong = wrong;
    return FILCH_INVALID_HANDLE;
}

bool fl_error_refusal(filch_error *error)
{
    if (refusal.serial == 0)
        return false;
    (void)fl_error_fill(error, (fl_fault){.status = FILCH_INVALID_HANDLE, .call = refusal.call},
                        "the %s %s", refusal.handle, refusal.wrong);
    return true;
}

filch_status fl_error_fetch(fl_error_log *log, filch_error *error)
{
    uint64_t thread = fl_thread_id(), newest;
    filch_status status = FILCH_NOT_FOUND;

    fl_mutex_lock(&log->lock);
    newest = log->since;
    for (size_t i = 0; i < FL_ERROR_LOG_SLOTS; i++) {
        if (log->slots[i].thread == thread) {
            fl_error_copy(error, &log->slots[i].error);
            newest = log->slots[i].serial;
            status = FILCH_OK;
            break;
        }
    }
    fl_mutex_unlock(&log->lock);
    return refusal.serial > newest && fl_error_refusal(error) ? FILCH_OK : status;
}

/* Bytes of unknown fields that are accepted. A larger size counts as never set, and the bytes past
 * the known fields are not read. */
#define MOST_UNKNOWN 4096u

const char *fl_size_wrong(const void *record, size_t least, size_t known, const char *what,
                          char text[FL_SIZE_TEXT])
{
    const unsigned char *bytes = record;
    size_t size = *(const size_t *)record;
    if (size == 0) {
        snprintf(text, FL_SIZE_TEXT, "%s's size is not set", what);
        return text;
    }
    if (size < least) {
        snprintf(text, FL_SIZE_TEXT, "%s's size is %zu, the least accepted is %zu", what, size,
                 least);
        return text;
    }
    if (known != 0 && size > known + MOST_UNKNOWN) {
        snprintf(text, FL_SIZE_TEXT, "%s's size is %zu, this filch knows %zu", what, size, known);
        return text;
    }
    for (size_t i = known; known != 0 && i < size; ++i) {
        if (bytes[i] != 0) {
            snprintf(text, FL_SIZE_TEXT,
                     "%s's size is %zu, this filch knows %zu, and byte %zu is not 0", what, size,
                     known, i);
            return text;
        }
    }
    return NULL;
}
