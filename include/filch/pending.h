/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file pending.h
 * Pending tasks: tasks that end after their host function has returned.
 *
 * The host function of a codelet with ::FILCH_CODELET_MAY_PEND takes a handle of its task, starts
 * an operation of another library (a request of MPI, a read of a file, a kernel on the caller's own
 * stream), and returns ::FILCH_PENDING. The device then runs other work. A later call of
 * filch_pending_end(), on any thread, ends the task. Whole contract: docs/concepts.md, "Tasks that
 * end later".
 */
#ifndef FILCH_PENDING_H
#define FILCH_PENDING_H

#include "filch/codelet.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Return value of a host function: the task is pending, and filch_pending_end() ends the task.
 * Has this meaning for codelets with ::FILCH_CODELET_MAY_PEND only; elsewhere the value is the
 * caller's own code, as every other value but 0.
 */
#define FILCH_PENDING (-0x7f696c63)

/**
 * Handle of a task that ends later, taken by filch_call_pend(); a value, to be copied freely.
 * Names one run of the task: a handle of a run that has ended is recognised as long as the runtime
 * lives. All zero: no task.
 */
typedef struct filch_pending {
    void *opaque;    /**< Private to filch. */
    uint64_t serial; /**< Private to filch. */
} filch_pending;

/**
 * Takes the handle of the running task, before its host function returns ::FILCH_PENDING.
 *
 * The call's structure, views, arguments and scratch stay valid, and stay where they are, until the
 * task has ended. A second take in the same call gives the same handle. A function that has taken
 * the handle may still return another value: the task then ends with the value, as without a
 * handle, and the handle names no task any more. Where filch_pending_end() came before the return,
 * the task ends with the code of filch_pending_end().
 *
 * @param call    the running call.
 * @param pending receives the handle.
 * @return FILCH_OK; FILCH_WRONG_STATE (the codelet lacks ::FILCH_CODELET_MAY_PEND, or the call is
 *         not the innermost host function running on the calling thread); FILCH_INVALID_ARGUMENT
 *         (nulls).
 *
 * Thread safety: the thread running the host function. Wait-free. Since 0.1.
 */
FILCH_API filch_status filch_call_pend(const filch_call *call, filch_pending *pending);

/**
 * Ends a pending task. Allowed from the moment the handle was taken, also before the host function
 * has returned. What the caller has written to the task's views is visible to successors.
 *
 * @param pending handle of the task; names no task after the call.
 * @param code    0, or the caller's own code, which fails the task as the code returned by a host
 *                function does; not ::FILCH_PENDING.
 * @param text    reason of a failure, appended to the text of the job's error; copied, cut at 191
 *                bytes; null: none. Ignored where @p code is 0.
 * @return FILCH_OK; FILCH_INVALID_HANDLE (no task, or the task has ended already: every call but
 * the first); FILCH_INVALID_ARGUMENT (@p code is FILCH_PENDING; the task stays pending);
 *         FILCH_FORKED.
 *
 * Thread safety: any thread, also threads unknown to filch, tasks and callbacks; not signal
 * handlers. Never waits for a worker, for a job or for a lock that is held while work runs; a
 * worker retires the task afterwards. Since 0.1.
 */
FILCH_API filch_status filch_pending_end(filch_pending pending, int code, const char *text);

/**
 * Tells whether a pending task is still wanted. A job that was cancelled, or finished early by
 * filch_call_finish(), waits for its pending tasks:
 * whoever is to end a task can look here, stop the operation, and end the task.
 *
 * @param pending handle of the task.
 * @return FILCH_NOT_READY (the task has not ended, and its job goes on); FILCH_CANCELLED (the task
 *         has not ended, and its job was cancelled, also by a failure under FILCH_FAILURE_CANCEL,
 *         or finished early); FILCH_INVALID_HANDLE (no task, or the task has ended already);
 *         FILCH_FORKED.
 *
 * Thread safety: any thread. Wait-free. Since 0.1.
 */
FILCH_API filch_status filch_pending_status(filch_pending pending);

#ifdef __cplusplus
}
#endif

#endif
