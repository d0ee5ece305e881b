/* SPDX-License-Identifier: Apache-2.0 */
/* The least that the tiles of a product must bring into a memory of a given size. */
#ifndef BENCH_TRAFFIC_H
#define BENCH_TRAFFIC_H

#include <stddef.h>

/* C = A B by tiles of C, one column of tiles after another: tile p is in row p % side, column
 * p / side, and takes panel p % side of A and panel p / side of B whole. */
typedef struct bench_panels {
    size_t side;  /* tiles along a side of C */
    double panel; /* bytes of a panel of A or B; the last one may be smaller: last */
    double last;
} bench_panels;

/* Sides above this take too long to think through. */
#define BENCH_PANELS_MOST 512

/* Bytes of panels that tiles [begin, end), in this order, bring into a memory with so much room for
 * panels. What leaves is the panel whose next use is farthest, which is the best that can be done
 * with panels of one size (L. A. Belady, "A study of replacement algorithms for a virtual-storage
 * computer", IBM Systems Journal 5(2), 1966). Infinite where two panels do not fit; not a number
 * where the side is above BENCH_PANELS_MOST or memory is out. */
double bench_traffic_least(const bench_panels *panels, size_t begin, size_t end, double room);

#endif
