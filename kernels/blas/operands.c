/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/blas/operands.h"

void fl_operands_open(fl_operands *o, filch_runtime *runtime, const fl_blas_call *call,
                      bool is_held)
{
    *o = (fl_operands){.runtime = runtime, .element = fl_call_element(call), .is_held = is_held};
    o->output_count = fl_call_outputs(call, o->outputs);
}

static bool is_output(const fl_operands *o, const void *ptr)
{
    for (int k = 0; k < o->output_count; k++)
        if (o->outputs[k].ptr == ptr)
            return true;
    return false;
}

static filch_data *make(fl_operands *o, filch_data_desc *desc)
{
    filch_data *data = NULL;
    if (o->status == FILCH_OK)
        o->status = filch_data_create(o->runtime, desc, &data);
    if (data) {
        o->is_output[o->count] = is_output(o, desc->ptr);
        o->handles[o->count++] = data;
    }
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
    desc.flags = o->is_held && is_output(o, ptr) ? FILCH_DATA_MANAGED : 0;
    return (fl_tiled){make(o, &desc), tiles(rows, tile_rows), tiles(cols, tile_cols),
                      desc.tile_rows, desc.tile_cols};
}

filch_data *fl_operands_infos(fl_operands *o, int32_t *infos, int64_t count, uint32_t words)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = infos;
    desc.element = sizeof *infos;
    desc.rows = (uint64_t)count * words;
    desc.tile_rows = words;
    return make(o, &desc);
}

filch_status fl_operands_bring(fl_operands *o)
{
    filch_status status = FILCH_OK;
    for (uint32_t k = 0; k < o->count && status == FILCH_OK; k++) {
        if (!o->is_held || !o->is_output[k])
            continue;
        status = filch_data_acquire(o->handles[k], FILCH_READ);
        if (status == FILCH_OK)
            (void)filch_data_release(o->handles[k]);
    }
    return status;
}

void fl_operands_close(fl_operands *o)
{
    for (uint32_t k = 0; k < o->count; k++)
        (void)filch_data_destroy(o->handles[k]);
    o->count = 0;
}
