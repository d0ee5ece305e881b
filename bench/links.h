/* SPDX-License-Identifier: Apache-2.0 */
/* What joins the GPUs with one another and with the host: what the driver says, and how fast. */
#ifndef BENCH_LINKS_H
#define BENCH_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "filch/status.h"

#define BENCH_LINK_HOST UINT32_MAX

typedef struct bench_link {
    uint32_t from, to; /* ordinals of GPUs, or BENCH_LINK_HOST */
    bool has_access;   /* kernels of from reach the memory of to; always true of the host */
    int rank;          /* the driver's performance rank, smaller is faster; 0 of the host */
    double rate;       /* bytes a second of a large copy; 0: not measured */
} bench_link;

/* All ordered pairs of the GPUs, and where copies are measured the host with each. *links:
 * malloc'd. On failure it is null. */
filch_status bench_links_read(const uint32_t *ordinals, size_t count, bool measure,
                              bench_link **links, size_t *link_count, filch_error *error);

#endif
