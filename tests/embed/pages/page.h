/* SPDX-License-Identifier: Apache-2.0 */
/* What programs of pages' blocks share: short ways to runtimes, handles and graphs, all checked. */
#ifndef TESTS_EMBED_PAGES_PAGE_H
#define TESTS_EMBED_PAGES_PAGE_H

#include <filch/filch.h>

#include <stdint.h>

#define EXPECT(truth) page_expect((truth) != 0, #truth, __func__, __LINE__)

void page_expect(int truth, const char *text, const char *function, int line);
/* The program's exit status; tells how many expectations there were. */
int page_end(const char *page);

filch_runtime *start(const char *devices);
/* Ends what was made from the runtime, too. */
void stop(filch_runtime *rt);
filch_codelet *host_codelet(filch_runtime *rt, const char *name, filch_host_fn host,
                            uint32_t flags);
filch_data *vector(filch_runtime *rt, double *values, uint64_t rows, uint64_t tile);
filch_data *square(filch_runtime *rt, double *values, uint64_t n, uint64_t tile);
/* A copy of the accesses lives as long as the program. */
filch_task_desc task_of(filch_codelet *codelet, const filch_access *accesses, uint32_t count);
filch_graph *new_graph(filch_runtime *rt);
void add(filch_graph *graph, filch_codelet *codelet, const filch_access *accesses, uint32_t count);
filch_status run(filch_graph *graph);
/* Gives the job back, too. */
filch_status wait_for(filch_job *job);

/* The page's CUDA kernel of a sparse product, run on the host by emulate.h. */
int multiply_by_kernel(const filch_call *call);

#endif
