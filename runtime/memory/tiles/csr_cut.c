/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts of a sparse matrix into row blocks: of equal heights, of given heights, or of about equal
 * numbers of entries. */
#include "memory/tiles/csr.h"

uint64_t fl_csr_count(const filch_csr_desc *desc)
{
    uint64_t wanted = desc->row_cuts != NULL      ? desc->row_cut_count
                      : desc->tile_rows != 0      ? (desc->rows - 1) / desc->tile_rows + 1
                      : desc->blocks > desc->rows ? desc->rows
                                                  : desc->blocks;
    return wanted != 0 ? wanted : 1;
}

/* Returns the first row from `low` to `high` with at least `entries` entries in front of it, or
 * `high`. */
static uint64_t first_row(const filch_csr_desc *desc, uint64_t low, uint64_t high, uint64_t entries)
{
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (fl_csr_before(desc, middle) < entries) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Returns floor(total * k / count), for k <= count < 2^32. */
static uint64_t share(uint64_t total, uint32_t k, uint32_t count)
{
    return total / count * k + total % count * k / count;
}

/* Returns the cut with a number of entries in front of it nearest to an equal share. Rows without
 * entries make several cuts equal: of these, the cut nearest to an equal share of the rows. */
static uint64_t nearest_cut(const filch_csr_desc *desc, uint32_t k, uint32_t count)
{
    uint64_t entries = share(desc->nnz, k, count), rows = share(desc->rows, k, count);
    uint64_t low = first_row(desc, 0, desc->rows, entries);
    if (low > 0 && fl_csr_before(desc, low) > entries) {
        uint64_t below = fl_csr_before(desc, low - 1);
        low = entries - below < fl_csr_before(desc, low) - entries
                  ? first_row(desc, 0, low - 1, below)
                  : low;
    }
    uint64_t high = low;
    if (high < desc->rows) {
        high = first_row(desc, low, desc->rows + 1, fl_csr_before(desc, low) + 1) - 1;
    }
    return rows < low ? low : rows > high ? high : rows;
}

/* Returns the first row of block k: the nearest cut that leaves a row for every block on both
 * sides. */
static uint64_t cut_by_entries(const filch_csr_desc *desc, uint64_t before, uint32_t k,
                               uint32_t count)
{
    uint64_t cut = nearest_cut(desc, k, count), last = desc->rows - (count - k);
    cut = cut <= before ? before + 1 : cut;
    return cut < last ? cut : last;
}

void fl_csr_cut(const filch_csr_desc *desc, fl_csr_part *parts, uint32_t count)
{
    uint64_t row = 0;
    for (uint32_t k = 0; k < count; ++k) {
        if (k != 0) {
            row = desc->row_cuts != NULL ? row + desc->row_cuts[k - 1]
                  : desc->tile_rows != 0 ? row + desc->tile_rows
                                         : cut_by_entries(desc, row, k, count);
        }
        parts[k].row = row;
        parts[k].entry = fl_csr_before(desc, row);
    }
    parts[count].row = desc->rows;
    parts[count].entry = desc->nnz;
}
