/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file trace.h
 * Traces: jobs, work items, copies, thefts and waits, as Chrome/Perfetto JSON.
 */
#ifndef FILCH_TRACE_H
#define FILCH_TRACE_H

#include "filch/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Starts recording into rings: a ring per worker, a ring per direction of a device that copies, and
 * a ring of jobs (FILCH_TRACE_EVENTS events of 48 bytes each; the newest are kept). While a trace
 * records, filch times every work item of a GPU (two events of the driver), and on the host every
 * chunk, every task with a label, and every task predicted to take more than 12 us (two clock reads
 * each). Shorter tasks of one codelet that a core runs one after another share an event, which also
 * takes 48 bytes for every eleven tasks from the second on, unless their numbers in the graph grow
 * or fall by equal steps. filch also times every copy between
 * memories that filch starts; a copy of pageable memory in pieces shows every piece. Times of a GPU
 * are by the GPU's clock, converted to the host's clock to within some microseconds.
 *
 * @param runtime the runtime.
 * @return FILCH_OK (also when already recording); FILCH_OUT_OF_MEMORY; FILCH_INVALID_HANDLE;
 *         FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: a short lock; on GPUs, the first start makes some 500 events
 * a GPU, and compares every GPU's clock with the host's. Since 0.1.
 */
FILCH_API filch_status filch_trace_start(filch_runtime *runtime);

/**
 * Stops recording; recorded events stay, and a later start appends.
 *
 * @param runtime the runtime.
 * @return FILCH_OK; FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API filch_status filch_trace_stop(filch_runtime *runtime);

/**
 * Writes the recorded events to a file for chrome://tracing or ui.perfetto.dev. Times count from
 * the beginning of the first job, or of an earlier work item or copy. Jobs that ended while
 * recording stand in the row "jobs", from the time of submission, or from the time when awaited
 * jobs let the job run, to the job's end. A job's arguments are a number, named also by the job's
 * work items, the graph's number or the number of a batch's items, and the number of tasks or items
 * skipped, if any. Work items of tasks with a label, and jobs whose submission has a label, have
 * the label as an argument; 65,535 different labels are kept in each ring. A work item that stands
 * for several short tasks lasts from the begin of the first to the end of the last, with the
 * dispatches between them; the argument "tasks" lists the tasks in the order in which they ran.
 * Copies have separate rows by device and direction: "in" from the host, "out" to the host, "peer"
 * from a second device's memory, "inner" within a memory. A copy's arguments are the bytes, the
 * second device and the rate. Copies still under way are left out. A pending task (pending.h) has
 * its function's time as a work item, and an asynchronous event of category "pending" from the
 * function's return to the end.
 *
 * "otherData" holds:
 *
 * - the number of events overwritten by newer events, and of copies that could not be recorded;
 * - the devices' scores and memory limits;
 * - the shapes and labels of the handles used by recorded jobs;
 * - for every batch, the parts of handles used by the batch's items;
 * - for every closed graph that has run, by the graph's number: the graph's label; a list a task
 *   of the tasks' successors, by position in the graph; and where the graph's jobs were recorded, a
 *   list a task of the task's accesses: handle, tile and ::filch_access_mode.
 *
 * Accesses of graphs with more tasks than the rings hold are left out, and so are accesses to a
 * handle with partitions.
 *
 * filch writes the file under a temporary name beside @p path and renames the finished file; @p
 * path is unchanged until then, and after a failure. filch replaces an existing regular file that
 * the caller may write, and keeps the file's permissions; other hard links to the file keep the old
 * contents. A new file has the permissions that the umask leaves. filch refuses and leaves alone a
 * symbolic link, a directory, a device, a FIFO or a socket; filch follows symbolic links among the
 * folders of @p path. The call does not sync to the disk. The call removes no file except its own
 * temporary file.
 *
 * @param runtime the runtime.
 * @param path    the file, in a folder where the caller may make files.
 * @return FILCH_OK; FILCH_BUSY (a job runs); FILCH_IO (@p path is refused, as said above, or could
 *         not be written: the error names the path, and has errno in native_code);
 *         FILCH_WRONG_STATE (nothing was ever recorded); FILCH_INVALID_ARGUMENT (null @p path);
 *         FILCH_OUT_OF_MEMORY; FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread, with no submission in progress, and no graph being created, added to
 * or destroyed. Blocking: writes a file. Since 0.1.
 */
FILCH_API filch_status filch_trace_write(filch_runtime *runtime, const char *path);

#ifdef __cplusplus
}
#endif

#endif
