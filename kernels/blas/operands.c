/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/blas/operands.h"

static filch_data *make(fl_operands *o, filch_data_desc *desc)
{
    filch_data *data = NULL;
    if (o->status == FILCH_OK)
        o->status = filch_data_create(o->runtime, desc, &data);
    if (data)
        o->handles[o->count++] = data;
    return data;
}

static uint64_t least(int64_t tile, int64_t extent)
{
    return (uint64_t)(tile < extent ? tile : extent);
}

static uint32_t tiles(int64_t extent, int64_t tile)
{
    return (uint32_t)((extent + tile - 1) / tile);
}

fl_tiled fl_operands_matrix(fl_operands *o, void *ptr, int64_t rows, int64_t cols, int64_t ld,
                            int64_t tile_rows, int64_t tile_cols)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = ptr;
    desc.element = o->element;
    desc.rows = (uint64_t)rows;
    desc.cols = (uint64_t)cols;
    desc.ld = (uint64_t)ld;
    desc.tile_rows = least(tile_rows, rows);
    desc.tile_cols = least(tile_cols, cols);
    return (fl_tiled){make(o, &desc), tiles(rows, tile_rows), tiles(cols, tile_cols)};
}

filch_data *fl_operands_infos(fl_operands *o, int32_t *infos, int64_t count)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = infos;
    desc.element = sizeof *infos;
    desc.rows = (uint64_t)count;
    desc.tile_rows = 1;
    return make(o, &desc);
}

void fl_operands_close(fl_operands *o)
{
    for (uint32_t k = 0; k < o->count; k++)
        (void)filch_data_destroy(o->handles[k]);
    o->count = 0;
}
