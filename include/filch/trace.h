/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file trace.h
 * Traces: jobs, tiles, copies, thefts and waits, as Chrome/Perfetto JSON.
 */
#ifndef FILCH_TRACE_H
#define FILCH_TRACE_H

#include "filch/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Starts recording into a ring a worker, of a device that copies one a direction, and one of jobs
 * (FILCH_TRACE_EVENTS events of 48 bytes each; the newest are kept). While it records, every tile
 * is timed: two clock reads each, and on a GPU two events. So is every copy between memories that
 * filch starts; one of pageable memory that is cut into pieces shows each. Times of a GPU are its
 * own, put on the host's clock to within some microseconds.
 *
 * @param runtime the runtime.
 * @return FILCH_OK (also when it already records); FILCH_OUT_OF_MEMORY; FILCH_INVALID_HANDLE;
 *         FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: a short lock; on GPUs, some 500 events each are made at
 * first, and each clock is compared with the host's. Since 0.1.
 */
FILCH_API filch_status filch_trace_start(filch_runtime *runtime);

/**
 * Stops recording; what was recorded stays, and a later start goes on behind it.
 *
 * @param runtime the runtime.
 * @return FILCH_OK; FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API filch_status filch_trace_stop(filch_runtime *runtime);

/**
 * Writes what was recorded to a file for chrome://tracing or ui.perfetto.dev. Times count from the
 * beginning of the first job, or of a tile or copy before that. Jobs that ended while it recorded
 * stand in the row "jobs", each from when it was submitted, or when those that it had to wait for
 * let it run, to its end; their arguments are a number that their tiles name too, and the graph's
 * number or how many items a batch has. Copies have rows of their own by device and direction: "in"
 * from the host, "out" to it, "peer" from another device's memory, "inner" within one; their
 * arguments are the bytes, the other device and the rate. Those still under way are left out.
 *
 * Under "otherData" stand the events that newer ones drove out and the copies that could not be
 * recorded; the devices' scores and memory limits; the shapes of the handles that recorded jobs
 * used; of each batch what its items use of them; and of each closed graph that has run, by its
 * number, a list a task of those that wait for it, by their positions in the graph, and where its
 * jobs were recorded a list a task of what it uses: handle, tile and ::filch_access_mode of each
 * access. What graphs of more tasks than the rings hold use is left out, and so is what is of a
 * handle with partitions.
 *
 * The file is written under another name beside @p path and renamed when it is whole, so @p path is
 * as it was until then, and after a failure. An existing regular file that the caller may write is
 * replaced; its rights are kept, other hard links to it keep the old contents. A new one has the
 * rights that the umask leaves. A symbolic link, a directory, a device, a FIFO or a socket is
 * refused and left alone; symbolic links among the folders of @p path are followed. Nothing is
 * synced to the disk. No file is removed but the one that this call made.
 *
 * @param runtime the runtime.
 * @param path    the file, in a folder in which the caller may make files.
 * @return FILCH_OK; FILCH_BUSY (a job runs); FILCH_IO (@p path is refused, as said above, or could
 *         not be written: the error names it, and has errno in native_code); FILCH_WRONG_STATE
 *         (nothing was ever recorded); FILCH_INVALID_ARGUMENT (null @p path); FILCH_OUT_OF_MEMORY;
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread, with no submission in progress, and no graph being created, added
 * to or destroyed. Blocking: writes a file. Since 0.1.
 */
FILCH_API filch_status filch_trace_write(filch_runtime *runtime, const char *path);

#ifdef __cplusplus
}
#endif

#endif
