/* SPDX-License-Identifier: Apache-2.0 */
/* The least that the tiles of a product must bring into a memory of a given size. */
#ifndef BENCH_TRAFFIC_H
#define BENCH_TRAFFIC_H

#include <stddef.h>

/* C = A B by tiles, square ones of A, of which only tiles [begin, end) of C, one column of tiles
 * after another, are made. Blocks of columns come one after another, and in each the steps of the
 * inner dimension; of each step the tiles of C in their order. Tile (i, j) of C at step k takes
 * tiles (i, k) of A and (k, j) of B. */
typedef struct bench_product {
    size_t side;    /* tiles along a side of A, and down B and C */
    size_t across;  /* tiles across B and C */
    size_t columns; /* of those in a block; the last block may have fewer */
    double tile;    /* elements along a side of a tile of A; of the last one: last */
    double last;
    double tile_cols; /* elements across a tile of B or C; across the last one: last_cols */
    double last_cols;
    double element; /* bytes */
    size_t begin, end;
} bench_product;

/* More tasks than of a product with so many tiles along all sides take too long to think through.
 */
#define BENCH_SIDE_MOST 32

/* Bytes of A and B brought, in this order, into a memory with so much room, where a block's tiles
 * of C stay while it is made. What leaves is the tile whose next use is farthest, which is the best
 * that can be done with tiles of one size (L. A. Belady, "A study of replacement algorithms for a
 * virtual-storage computer", IBM Systems Journal 5(2), 1966). Infinite where a block does not fit
 * beside a tile of each; not a number where that would take too long or memory is out. */
double bench_traffic_least(const bench_product *product, double room);

#endif
