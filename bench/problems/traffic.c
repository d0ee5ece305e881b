/* SPDX-License-Identifier: Apache-2.0 */
#include "problems/traffic.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define NEVER UINT32_MAX

/* Uses of tiles of A, numbered from 0, and of B, from side squared. */
typedef struct memory {
    const bench_product *product;
    uint32_t *uses; /* tiles, in the order in which they are used: A's, B's, A's, … */
    uint32_t *next; /* by use: the next use of the same tile */
    size_t count;
    uint32_t *there; /* tiles that are there … */
    uint32_t *when;  /* … and, by tile, their next use */
    bool *is_there;
    size_t there_count;
    double left; /* room */
} memory;

static double extent(const bench_product *p, size_t index)
{
    return index + 1 == p->side ? p->last : p->tile;
}

static double extent_across(const bench_product *p, size_t index)
{
    return index + 1 == p->across ? p->last_cols : p->tile_cols;
}

static size_t tile_count(const bench_product *p)
{
    return p->side * (p->side + p->across);
}

static double bytes_of(const bench_product *p, uint32_t tile)
{
    size_t of_b = tile - p->side * p->side;
    return p->element * (tile < p->side * p->side
                             ? extent(p, tile / p->side) * extent(p, tile % p->side)
                             : extent(p, of_b / p->across) * extent_across(p, of_b % p->across));
}

static bool is_made(const bench_product *p, size_t i, size_t j)
{
    size_t at = j * p->side + i;
    return at >= p->begin && at < p->end;
}

static void list_block(memory *m, size_t first)
{
    const bench_product *p = m->product;
    for (size_t k = 0; k < p->side; k++)
        for (size_t j = first; j < p->across && j < first + p->columns; j++)
            for (size_t i = 0; i < p->side; i++)
                if (is_made(p, i, j)) {
                    m->uses[m->count++] = (uint32_t)(i * p->side + k);
                    m->uses[m->count++] = (uint32_t)(p->side * p->side + k * p->across + j);
                }
}

static void link_uses(memory *m)
{
    for (size_t t = 0; t < tile_count(m->product); t++)
        m->when[t] = NEVER;
    for (size_t u = m->count; u-- > 0;) {
        m->next[u] = m->when[m->uses[u]];
        m->when[m->uses[u]] = (uint32_t)u;
    }
}

/* The farthest one but for the tiles of the present task; false where none is left. */
static bool evict(memory *m, size_t use)
{
    size_t found = m->there_count;
    for (size_t t = 0; t < m->there_count; t++) {
        uint32_t tile = m->there[t];
        bool is_needed = tile == m->uses[use & ~(size_t)1] || tile == m->uses[use | 1];
        if (!is_needed && (found == m->there_count || m->when[tile] > m->when[m->there[found]]))
            found = t;
    }
    if (found == m->there_count)
        return false;
    m->left += bytes_of(m->product, m->there[found]);
    m->is_there[m->there[found]] = false;
    m->there[found] = m->there[--m->there_count];
    return true;
}

/* Bytes for one use; infinite where there is no room. */
static double bring(memory *m, size_t use)
{
    uint32_t tile = m->uses[use];
    double bytes = bytes_of(m->product, tile);
    m->when[tile] = m->next[use];
    if (m->is_there[tile])
        return 0;
    while (m->left < bytes)
        if (!evict(m, use))
            return INFINITY;
    m->left -= bytes;
    m->is_there[tile] = true;
    m->there[m->there_count++] = tile;
    return bytes;
}

/* Bytes of a block's tiles of C. */
static double block_bytes(const bench_product *p, size_t first)
{
    double bytes = 0;
    for (size_t j = first; j < p->across && j < first + p->columns; j++)
        for (size_t i = 0; i < p->side; i++)
            bytes += is_made(p, i, j) ? extent(p, i) * extent_across(p, j) * p->element : 0;
    return bytes;
}

static double move_all(memory *m, double room)
{
    const bench_product *p = m->product;
    double moved = 0, held = 0;
    size_t use = 0;
    for (size_t first = 0; first < p->across; first += p->columns)
        list_block(m, first);
    link_uses(m);
    m->left = room;
    for (size_t first = 0; first < p->across && isfinite(moved); first += p->columns) {
        double block = block_bytes(p, first);
        size_t end = use;
        for (size_t j = first; j < p->across && j < first + p->columns; j++)
            for (size_t i = 0; i < p->side; i++)
                end += is_made(p, i, j) ? 2 * p->side : 0;
        m->left += held - block;
        held = block;
        for (; use < end && isfinite(moved); use++)
            moved += bring(m, use);
    }
    return moved;
}

double bench_traffic_least(const bench_product *product, double room)
{
    size_t side = product->side;
    size_t across = product->across, most = (size_t)BENCH_SIDE_MOST;
    if (side == 0 || side > most || across == 0 || across > most * most * most / (side * side))
        return NAN;
    size_t tiles = tile_count(product), uses = 2 * side * side * across;
    memory m = {.product = product};
    m.uses = calloc(2 * uses + 2 * tiles, sizeof *m.uses);
    m.is_there = calloc(tiles, sizeof *m.is_there);
    double moved = NAN;
    if (m.uses && m.is_there) {
        m.next = m.uses + uses;
        m.there = m.next + uses;
        m.when = m.there + tiles;
        moved = move_all(&m, room);
    }
    free(m.uses);
    free(m.is_there);
    return moved;
}
