/* SPDX-License-Identifier: Apache-2.0 */
/* What a test does with the fake CUDA driver beyond the driver's own entry points. The fake is a
 * shared library libcuda.so.1; a test finds it by LD_LIBRARY_PATH and these functions by linking
 * with the same library (filch_fake_test in tests/fake/fake.cmake does both).
 *
 * The fake is strict. Whatever a program must not do with a driver is a violation: it is written to
 * stderr, and the process ends with status 86 however its tests went, or aborts at once where
 * FAKECUDA_ABORT=1 is in the environment. Violations are:
 *   - no current context, a context other than the handle's, one that is destroyed
 *   - a handle that the fake never gave out, of another kind, or used after its end
 *   - streams, events, modules, memory and green contexts left behind by their context or by the
 *     process; contexts left behind by the process
 *   - a context pushed and not popped when its thread or the process ends, popped and not pushed
 *   - a copy, fill or view outside one living allocation, or on a device that cannot reach it;
 * memory given back while work that uses it is queued; host memory that is pinned in part
 *   - a launch beyond the device's or the kernel's limits
 *   - stream 0
 *   - between fakecuda_steady_begin and _end: allocation, registration, module load and unload,
 *     creation and destruction of contexts and streams, and waits that spin
 *   - a green context made current, or slices that overlap
 *   - a pool left behind by the process, or destroyed before its blocks are freed; blocks used
 *     before their stream has reached their allocation
 *   - physical memory, multicast objects, reservations and mappings left behind by the process;
 *     sizes, offsets and addresses that are no multiples of the granularity; a mapping over
 *     another or outside a reservation, and one that is not taken away as it was made; memory
 *     released while it is bound; a reservation freed with mappings in it
 *   - a multicast object bound or mapped before all its devices were added (where the driver would
 *     block), bound twice in one place, unbound otherwise than it was bound, or released with
 *     bindings or mappings left; a copy or a view at a multicast address
 *   - an entry point called before cuInit
 *
 * FAKECUDA_CONFIG: JSON text, or the name of a file of it. All members are optional:
 * {
 *   "driver": 13000,      the version that cuDriverGetVersion tells
 *   "stub": false,        cuInit fails with CUDA_ERROR_STUB_LIBRARY
 *   "missing": ["cuX"],   entry points that this driver lacks
 *   "threads": 4,         that execute the streams' work
 *   "kernel_ns": 0,       duration of a kernel at speed 1 on a whole GPU
 *   "refusal_ns": 0,      that a call takes which finds no memory
 *   "copy_ns": 0,         duration of a copy, plus its bytes over "copy_gbps" (0: no plus)
 *   "fill": true,         new device memory is full of NaNs (up to 16 MiB a block, and in the first
 *                         MiB of what cuMemCreate gives)
 *   "seed": 1,            of the order in which independent nodes of a graph run
 *   "devices": [{ "count": 1, "name": "…", "sms": 132, "memory": 1073741824, "arch": "9.0",
 *                 "clock": 1980000, "mig": false, "integrated": false, "numa": 0,
 *                 "pci": "0000:1b:00.0", "speed": 1.0, "ecc": true, "primary_flags": 0,
 *                 "granularity": 8, "groups": 15, "compute_mode": 0,
 *                 "attributes": {"38": 52428800} }],
 *   "links": [{ "from": 0, "to": 1, "peer": true, "atomics": false, "rank": 0, "gbps": 0,
 *               "both": true }],
 *   "failures": [{ "call": "cuMemAlloc", "nth": 1, "count": 1, "result": 2, "device": -1,
 *                  "sticky": false }]
 * }
 * Without it there are two devices of 132 multiprocessors, 1 GiB and architecture 9.0, linked.
 *
 * A failure makes the nth call (and count - 1 more; count 0: all from there) of that entry point
 * fail: with any context, or with the device's context current, or for a call that names a device,
 * of that device. sticky: the current context is poisoned after, as by an illegal address. The
 * calls "kernel" and "copy" are their execution: their context is poisoned with the result. */
#ifndef FAKECUDA_H
#define FAKECUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "filch/codelet.h"

#define FAKECUDA_API __attribute__((visibility("default")))

/* Status of a process that broke the rules. */
#define FAKECUDA_EXIT 86

typedef struct fakecuda_geometry {
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t cluster[3];
    uint32_t shared_bytes;
    uint32_t device;          /* ordinal */
    uint32_t multiprocessors; /* that the stream may use */
} fakecuda_geometry;

/* A kernel on the host: params as given to cuLaunchKernel, each copied at the launch. Not 0: the
 * context is poisoned with CUDA_ERROR_LAUNCH_FAILED. */
typedef int (*fakecuda_twin)(void **params, const fakecuda_geometry *geometry);

/* Every later load of a module with a kernel of this name uses the twin. Where the module's image
 * does not tell the parameters, count and bytes of each do. Null takes the twin away. */
FAKECUDA_API void fakecuda_register(const char *name, fakecuda_twin twin, uint32_t param_count,
                                    const size_t *param_bytes);
/* A twin of a filch kernel: view_count views by value, then for a batch the range, then arguments
 * of arg_bytes (0: none). Views that lie outside device memory are violations at the launch. */
FAKECUDA_API void fakecuda_register_filch(const char *name, filch_host_fn twin, uint32_t view_count,
                                          bool is_batch, size_t arg_bytes);

/* Inside a twin: where the host finds bytes of device memory that the running kernel may touch;
 * null, and a violation, where it may not. */
FAKECUDA_API void *fakecuda_map(const void *device_pointer, size_t bytes);
/* From anywhere, without checks of reach: for tests that look at device memory. */
FAKECUDA_API void *fakecuda_peek(const void *device_pointer, size_t bytes);

/* Puts a host function into a stream's order (CUstream). Not 0: poisons the stream's context. */
FAKECUDA_API int fakecuda_enqueue(void *stream, int (*fn)(void *data), void *data);
/* The same with a copy of the data, which is released when the function has run or never will. */
FAKECUDA_API int fakecuda_enqueue_copy(void *stream, int (*fn)(void *data), const void *data,
                                       size_t bytes);

/* For libraries on top of the fake driver: an entry point of theirs is called, which is counted,
 * needs a current context, may serialize the device, and fails when a failure asks for it. */
FAKECUDA_API int fakecuda_visit(const char *call, bool serializes);
/* A violation of theirs. */
FAKECUDA_API void fakecuda_report(const char *text);

/* Calls of an entry point so far ("cuMemAlloc", without version), in this process; "kernel" and
 * "copy" count executions, "pageable" copies whose host memory is pageable, and
 * "programmatic" launches and edges after which a kernel may begin before the one before it ends.
 */
FAKECUDA_API uint64_t fakecuda_count(const char *call);
/* Launches so far of graphs with so many nodes, below 4096. */
FAKECUDA_API uint64_t fakecuda_graphs(size_t nodes);
/* Nodes on the longest path of the graph of so many nodes, below 4096, that was launched last. */
FAKECUDA_API uint64_t fakecuda_graph_steps(size_t nodes);
/* Bytes that copies were to take so far from one device's memory (its ordinal; -1: the host's) to
 * another's. */
FAKECUDA_API uint64_t fakecuda_bytes(int from, int to);
/* Sets all counts to zero, those of failures too, and forgets the failures. */
FAKECUDA_API void fakecuda_reset(void);
/* A further failure; nth counts from now. device -1: any. count 0: for ever. */
FAKECUDA_API void fakecuda_fail(const char *call, uint64_t nth, uint64_t count, int result,
                                int device, bool sticky);

/* From now on the device (-1: all) gives no memory, by whichever call. */
FAKECUDA_API void fakecuda_fail_memory(int device);
/* Another process has so many bytes of the device's memory from now on, instead of what it had
 * before, or as many of them as are free; how many. Until fakecuda_configure. */
FAKECUDA_API uint64_t fakecuda_occupy(int device, uint64_t bytes);

/* Between these, calls that serialize a device or make the host spin are violations. */
FAKECUDA_API void fakecuda_steady_begin(void);
FAKECUDA_API void fakecuda_steady_end(void);

/* Violations so far. */
FAKECUDA_API uint64_t fakecuda_violations(void);
/* Text of the last violation, or "". Valid until the next one. */
FAKECUDA_API const char *fakecuda_last_violation(void);
/* Number of violations so far, forgotten: for tests that break the rules on purpose. */
FAKECUDA_API uint64_t fakecuda_forgive(void);
/* Violations are not written to stderr while quiet. */
FAKECUDA_API void fakecuda_quiet(bool quiet);

/* No stream starts new work until released: for tests of what happens while work is queued. */
FAKECUDA_API void fakecuda_hold(void);
FAKECUDA_API void fakecuda_release(void);

/* Objects that live: kind is "context", "stream", "event", "module", "graph", "exec", "green",
 * "pool", "memory" or "pinned"; of virtual memory "handle", "multicast", "reservation" or
 * "mapping". */
FAKECUDA_API size_t fakecuda_live(const char *kind);

/* Replaces the configuration before cuInit, or between the end of everything and the next cuInit:
 * the driver forgets that it was initialised, and what became of its devices. Null: the built-in
 * one. False: there are live objects, or the text is bad. */
FAKECUDA_API bool fakecuda_configure(const char *text_or_file);

#endif
