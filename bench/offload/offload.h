/* SPDX-License-Identifier: Apache-2.0 */
/* What a workload needs to run on GPUs, too: which of a runtime's devices are GPUs, the vendor's
 * libraries where they are installed, the kernels built into filch elsewhere, and its matrices in
 * page-locked memory. */
#ifndef BENCH_OFFLOAD_H
#define BENCH_OFFLOAD_H

#include "cli/options.h"
#include "kernels/vendor/vendor.h"
#include "offload/gpu.h"

#define BENCH_OFFLOAD_PINS 4
#define BENCH_OFFLOAD_BLOCKS 4

/* What a workload's memory on the host is like where there are GPUs. */
typedef enum bench_memory {
    BENCH_MEMORY_LOCKED,  /* from malloc, page-locked in place */
    BENCH_MEMORY_PINNED,  /* page-locked, from the driver */
    BENCH_MEMORY_PAGEABLE /* from malloc */
} bench_memory;

typedef struct bench_offload {
    bool has_gpus;         /* among the devices of the runtime met last */
    bool has_memories;     /* GPUs, or simulated devices with links, are among them */
    uint64_t total_budget; /* bytes that filch may take of their memories together */
    bool has_others;
    bool has_no_vendor; /* by the caller's wish; set before the first runtime is met */
    bench_gpu gpu;      /* the first GPU met; not open: none was */
    fl_vendor *vendor;
    void *pinned[BENCH_OFFLOAD_PINS];
    bench_memory memory;
    void *blocks[BENCH_OFFLOAD_BLOCKS]; /* of bench_offload_alloc() */
} bench_offload;

/* Looks at a runtime's devices; where one is a GPU, opens what is not open yet. */
void bench_offload_meet(bench_offload *offload, filch_runtime *runtime);
/* What the options say of memory, before anything is allocated. FILCH_UNSUPPORTED where pages are
 * to be locked for GPUs and there is none, or what bench_gpu_open() gives. */
filch_status bench_offload_choose(bench_offload *offload, const bench_options *options,
                                  filch_error *error);
/* Zeroed memory of that kind, until the close. FILCH_OUT_OF_MEMORY. */
filch_status bench_offload_alloc(bench_offload *offload, size_t bytes, const char *option,
                                 filch_error *error, void **memory);
/* The same for matrices, with the errors of bench_squares_bytes(). */
filch_status bench_offload_squares(bench_offload *offload, size_t n, size_t count, size_t element,
                                   const char *option, filch_error *error, void **memory);
/* After the runtimes and before what was pinned is freed. */
void bench_offload_close(bench_offload *offload);

/* Locks the pages of a workload's memory where there are GPUs and the options do not say otherwise,
 * once each. Where the system refuses, copies are slower and nothing else changes. */
void bench_offload_pin(bench_offload *offload, void *memory, size_t bytes);

/* Undoes it, where that was done, before the memory is freed. */
void bench_offload_unpin(bench_offload *offload, void *memory);

/* Bytes that filch may take of the smallest GPU's memory; infinite where there is none. */
double bench_offload_room(filch_runtime *runtime);

/* How many devices there are, where there are several, each has a memory of its own and all have
 * the same score; else 0. */
uint32_t bench_offload_alike(filch_runtime *runtime);

/* An enqueue function over the vendor's libraries, to which the lane's fl_vendor_lane is
 * handed; false where there are none. */
bool bench_offload_enqueue(const bench_offload *offload, filch_enqueue_fn enqueue,
                           filch_cuda_desc *desc);
/* An implementation of a codelet that copies its first view to its second. */
void bench_offload_copy(bench_offload *offload, filch_cuda_desc *desc);
/* to := from, in the host's memory, as many elements as `to` has. */
int bench_offload_copy_views(const filch_view *from, const filch_view *to);
/* The codelet's function on the host. */
int bench_offload_copy_on_host(const filch_call *call);
/* What computes on the GPUs: "", ", cuBLAS 13.1.0", ", filch's kernels". */
const char *bench_offload_text(const bench_offload *offload, char *text, size_t size);

/* Of a workload: explain, a failure of the vendor's libraries. */
void bench_offload_explain(const void *state, filch_error *error);

/* Seconds that the vendor's libraries took to be ready. */
double bench_offload_vendor_s(const bench_offload *offload);

/* Sides of square tiles worth trying on an n x n matrix where there are GPUs, fewer than capacity
 * of them; and the one to begin with. */
size_t bench_offload_tiles(size_t n, size_t *tiles, size_t capacity);
size_t bench_offload_tile(size_t n);

#endif
