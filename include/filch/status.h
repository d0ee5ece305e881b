/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file status.h
 * Status codes and error records.
 *
 * Every filch function that can fail returns a ::filch_status. Details of a failure (task, device,
 * driver call, character or line) are kept in a ::filch_error, and copied into memory of the
 * caller; filch owns no static text buffer.
 *
 * Rules for every call:
 *
 * - A failed call changes nothing observable by a later call, unless its text says otherwise.
 *   Results are written on success only.
 * - Records of the caller begin with their size, sizeof the record in the caller's header; later
 *   versions only append. A size of 0, or below the size of the record's first version, is refused
 *   with FILCH_INVALID_ARGUMENT. Fields missing in the caller's older record have their defaults;
 *   results without room in the record are not written. A record larger than known to the present
 *   filch, from a newer header, is accepted where all bytes beyond the known size are 0: no request
 *   is ignored in silence. A record with other bytes beyond, or with more than 4,096 bytes beyond,
 *   is refused. Where filch writes the record, bytes beyond the known size stay as they are.
 * - FILCH_X_INIT initializes a record filch_x of the caller, also a record that filch writes. The
 *   name of a record that describes an object to make, or work to submit, ends in _desc.
 * - A call named destroy ends an object owned by the caller alone. A call named release gives back
 * a claim on an object that lives on without the claim: a job's handle, the host's use of data.
 * - FILCH_INVALID_HANDLE: the handle is null, of another kind, or destroyed. Only builds of filch
 *   without NDEBUG recognise a destroyed handle; no build recognises a destroyed runtime, or former
 *   objects of a destroyed runtime. Using an unrecognised handle is undefined.
 * - FILCH_FORKED: the process is a child of the process that made the runtime. The child may only
 *   forget its handles. The check costs a load a call.
 * - FILCH_INVALID_HANDLE because of the call's first argument belongs to no runtime: the thread
 *   keeps the call's name and what the handle is, and filch_runtime_error() of any runtime tells it
 *   until a newer failure of the thread on that runtime, also where that failure's record has given
 *   way to another thread's. FILCH_FORKED records no details. Nor do handles of pending tasks
 *   (pending.h), and answers other than mistakes of the caller: FILCH_NOT_READY, FILCH_TIMEOUT,
 *   FILCH_NOT_FOUND, and a job's own result (filch_job_error() has its details). Every other
 *   failure of a call on a runtime is kept for filch_runtime_error().
 * - "Any thread" includes tasks and completion callbacks, and concurrency with every other call, as
 *   long as no other thread destroys or releases a handle meanwhile.
 */
#ifndef FILCH_STATUS_H
#define FILCH_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Marks the functions exported by the shared library. */
#if defined(__GNUC__)
#define FILCH_API __attribute__((visibility("default")))
#else
#define FILCH_API
#endif

/**
 * Central table of statuses: X(NAME, number, message).
 *
 * Numbers are part of the ABI: they are never reused or renumbered.
 */
#define FILCH_STATUS_TABLE(X)                                                     \
    X(OK, 0, "success")                                                           \
    X(INVALID_ARGUMENT, 1, "an argument is null, zero or out of range")           \
    X(INVALID_HANDLE, 2, "the handle is null, destroyed or of another kind")      \
    X(WRONG_RUNTIME, 3, "the handle belongs to another runtime")                  \
    X(WRONG_STATE, 4, "the call is not allowed in the object's present state")    \
    X(BUSY, 5, "the object is in use by a running job")                           \
    X(OUT_OF_MEMORY, 6, "memory could not be allocated")                          \
    X(OVERFLOW, 7, "a size or count does not fit its type")                       \
    X(PARSE, 8, "the text is malformed")                                          \
    X(DATA, 9, "the data is not acceptable")                                      \
    X(NOT_FOUND, 10, "no such name or object")                                    \
    X(UNKNOWN_ORDINAL, 11, "no device of the backend has this ordinal")           \
    X(BAD_INDEX, 12, "the index is not below the device count")                   \
    X(DUPLICATE_DEVICE, 13, "the device is named twice")                          \
    X(UNSUPPORTED, 14, "not supported here")                                      \
    X(NO_DEVICE, 15, "no device can run this")                                    \
    X(CYCLE, 16, "the dependencies form a cycle")                                 \
    X(ALIAS, 17, "two pieces that run concurrently would write the same element") \
    X(TOO_LARGE, 18, "larger than any device can hold")                           \
    X(NOT_READY, 19, "not finished yet")                                          \
    X(TIMEOUT, 20, "the time limit passed first")                                 \
    X(CANCELLED, 21, "cancelled")                                                 \
    X(TASK_FAILED, 22, "a task reported failure")                                 \
    X(SKIPPED, 23, "not run because a predecessor failed")                        \
    X(FORKED, 24, "the runtime belongs to the parent process")                    \
    X(IO, 25, "a file could not be read or written")                              \
    X(SYSTEM, 26, "an operating system call failed")                              \
    X(BACKEND, 27, "a device driver call failed")                                 \
    X(DEVICE_LOST, 28, "the device no longer answers")                            \
    X(INTERNAL, 29, "an internal invariant was broken; please report it")         \
    X(NO_DRIVER, 30, "no CUDA runtime available")                                 \
    X(DRIVER_STUB, 31, "the CUDA driver library is a stub")                       \
    X(DRIVER_TOO_OLD, 32, "the CUDA driver is too old")                           \
    X(DRIVER_BROKEN, 33, "the CUDA driver library does not work")                 \
    X(NO_COMPILER, 34, "no CUDA C compiler (NVRTC) available")                    \
    X(COMPILE, 35, "the kernel source does not compile")                          \
    X(IMAGE, 36, "the kernel image cannot be loaded")                             \
    X(NO_DEVICE_MEMORY, 37, "device memory could not be allocated")               \
    X(COMPILER_BROKEN, 38, "the CUDA C compiler library (NVRTC) does not work")   \
    X(DEADLOCK, 39, "jobs or tasks would wait for each other")

/** Result of a filch call; ::FILCH_STATUS_TABLE has the names and their meanings. */
typedef enum filch_status {
#define FILCH_STATUS_ENUM(name, number, message) FILCH_##name = (number),
    FILCH_STATUS_TABLE(FILCH_STATUS_ENUM)
#undef FILCH_STATUS_ENUM
} filch_status;

/**
 * Details of a failure.
 *
 * Texts are always terminated; a text too long for its field is cut. Empty text means "does not
 * apply".
 */
typedef struct filch_error {
    size_t size;          /**< sizeof(filch_error), set by the caller (::FILCH_ERROR_INIT). */
    filch_status status;  /**< Status returned by the failing call or job. */
    int32_t native_code;  /**< Own code of the driver, the system or the task; 0 if there is
                               none. */
    int64_t line;         /**< Line or character position in the input, from 1; 0 if there is
                               none. */
    char native_name[48]; /**< The driver's name of its native_code, e.g.
                               "CUDA_ERROR_OUT_OF_MEMORY". */
    char call[48];        /**< Name of the failed call, e.g. "filch_graph_add" or a driver call. */
    char device[48];      /**< Name of the device concerned. */
    char label[64];       /**< Label of the task, codelet, handle or caller concerned. */
    char text[256];       /**< A sentence describing the failure and its location. */
} filch_error;

/** Initializer of a ::filch_error. */
#define FILCH_ERROR_INIT                                        \
    {                                                           \
        sizeof(filch_error), FILCH_OK, 0, 0, "", "", "", "", "" \
    }

/**
 * Returns the name of a status, e.g. "OUT_OF_MEMORY".
 *
 * @param status a status, or any other number.
 * @return the name; "UNKNOWN" for a number outside the table. Constant, never freed.
 *
 * Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API const char *filch_status_name(filch_status status);

/**
 * Returns the meaning of a status, in a few words.
 *
 * @param status a status, or any other number.
 * @return the message of ::FILCH_STATUS_TABLE; for a number outside the table, a text saying that
 *         the status is unknown. Constant, never freed.
 *
 * Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API const char *filch_status_message(filch_status status);

#ifdef __cplusplus
}
#endif

#endif
