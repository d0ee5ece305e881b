/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

typedef struct memory {
    const bench_panels *panels;
    size_t end;
    double left; /* room */
    bool *rows;  /* panels of A that are there */
} memory;

static double bytes_of(const bench_panels *panels, size_t index)
{
    return index + 1 == panels->side ? panels->last : panels->panel;
}

/* The tile after `at` that takes the panel of A again; past the end: none. */
static size_t next_use(const memory *m, size_t row, size_t at)
{
    size_t side = m->panels->side;
    size_t step = (row + side - at % side) % side;
    size_t next = at + (step > 0 ? step : side);
    return next < m->end ? next : m->end;
}

/* The farthest one but for the current row; false where none is left. */
static bool evict(memory *m, size_t at)
{
    size_t side = m->panels->side, current = at % side, found = side, farthest = 0;
    for (size_t row = 0; row < side; row++) {
        size_t next = m->rows[row] && row != current ? next_use(m, row, at) : 0;
        if (next > farthest) {
            farthest = next;
            found = row;
        }
    }
    if (found == side)
        return false;
    m->rows[found] = false;
    m->left += bytes_of(m->panels, found);
    return true;
}

static bool bring(memory *m, size_t at, double bytes)
{
    while (m->left < bytes)
        if (!evict(m, at))
            return false;
    m->left -= bytes;
    return true;
}

double bench_traffic_least(const bench_panels *panels, size_t begin, size_t end, double room)
{
    size_t side = panels->side;
    if (side == 0 || side > BENCH_PANELS_MOST)
        return NAN;
    memory m = {.panels = panels, .end = end, .left = room, .rows = calloc(side, sizeof(bool))};
    double moved = 0;
    bool fits = true;
    for (size_t at = begin; at < end && m.rows && fits; at++) {
        size_t row = at % side, col = at / side;
        bool is_first = at == begin || row == 0;
        /* A column's panel of B is of no use to the next. */
        if (is_first && at > begin)
            m.left += bytes_of(panels, col - 1);
        if (is_first && (fits = bring(&m, at, bytes_of(panels, col))))
            moved += bytes_of(panels, col);
        if (fits && !m.rows[row] && (fits = bring(&m, at, bytes_of(panels, row)))) {
            moved += bytes_of(panels, row);
            m.rows[row] = true;
        }
    }
    bool failed = !m.rows;
    free(m.rows);
    return failed ? NAN : fits ? moved : INFINITY;
}
