/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/data.h"

#include <stdio.h>

#include "memory/replica.h"

#define CREATE "filch_data_create"
#define HOST_ALIGN ((size_t)64) /* of buffers that filch makes */

/* The descriptor with its defaults filled in. */
static filch_data_desc complete(const filch_data_desc *desc)
{
    filch_data_desc full = *desc;
    full.cols = full.cols != 0 ? full.cols : 1;
    full.ld = full.ld != 0 ? full.ld : full.rows;
    full.tile_rows = full.tile_rows != 0 ? full.tile_rows : full.rows;
    full.tile_cols = full.tile_cols != 0 ? full.tile_cols : full.cols;
    return full;
}

static filch_status check_shape(fl_core *core, const filch_data_desc *d)
{
    const char *label = d->label;
    if (d->ptr == NULL || d->rows == 0 || d->element == 0) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, CREATE, label, "%s",
                            d->ptr == NULL ? "the buffer is null"
                            : d->rows == 0 ? "rows is 0"
                                           : "element, the bytes an element, is 0");
    }
    if ((d->flags & ~(uint32_t)FILCH_DATA_MANAGED) != 0 || d->reserved != 0) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, CREATE, label, "%s",
                            d->reserved != 0 ? "reserved is not 0" : "unknown flags are set");
    }
    if (d->ld < d->rows) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, CREATE, label,
                            "the leading dimension %llu is less than the %llu rows",
                            (unsigned long long)d->ld, (unsigned long long)d->rows);
    }
    if (d->tile_rows > d->rows || d->tile_cols > d->cols) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, CREATE, label,
                            "a tile of %llu x %llu is larger than the handle of %llu x %llu",
                            (unsigned long long)d->tile_rows, (unsigned long long)d->tile_cols,
                            (unsigned long long)d->rows, (unsigned long long)d->cols);
    }
    size_t bytes;
    if (!fl_size_mul((size_t)d->ld, (size_t)d->cols, &bytes) ||
        !fl_size_mul(bytes, (size_t)d->element, &bytes) || bytes > (size_t)PTRDIFF_MAX) {
        return fl_core_fail(core, FILCH_OVERFLOW, CREATE, label,
                            "%llu x %llu elements of %llu bytes overflow the address space",
                            (unsigned long long)d->ld, (unsigned long long)d->cols,
                            (unsigned long long)d->element);
    }
    uint64_t down = (d->rows - 1) / d->tile_rows + 1;
    uint64_t across = (d->cols - 1) / d->tile_cols + 1;
    if (down >= UINT32_MAX || across >= UINT32_MAX || down * across >= UINT32_MAX) {
        return fl_core_fail(core, FILCH_OVERFLOW, CREATE, label,
                            "%llu x %llu tiles are 2^32 - 1 or more", (unsigned long long)down,
                            (unsigned long long)across);
    }
    return FILCH_OK;
}

filch_status filch_data_create(filch_runtime *runtime, const filch_data_desc *desc,
                               filch_data **data)
{
    filch_status status = fl_object_check(runtime, FL_MAGIC_RUNTIME);
    if (status != FILCH_OK) {
        return status;
    }
    fl_core *core = fl_core_of(runtime);
    if (desc == NULL || data == NULL || desc->size < sizeof *desc) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, CREATE, NULL, "%s",
                            desc == NULL   ? "the descriptor is null"
                            : data == NULL ? "there is nowhere to put the handle"
                                           : "the descriptor's size is not set");
    }
    filch_data_desc full = complete(desc);
    status = check_shape(core, &full);
    if (status != FILCH_OK) {
        return status;
    }
    filch_data *made = fl_object_new(core, FL_MAGIC_DATA, sizeof *made, _Alignof(filch_data));
    if (made == NULL) {
        return fl_core_fail(core, FILCH_OUT_OF_MEMORY, CREATE, full.label,
                            "no memory for a data handle");
    }
    fl_store_relaxed(&made->host, full.ptr); /* nobody else has the handle yet */
    made->has_home = true;
    made->element = full.element;
    made->rows = full.rows;
    made->cols = full.cols;
    made->ld = full.ld;
    made->tile_rows = full.tile_rows;
    made->tile_cols = full.tile_cols;
    made->tiles_down = (uint32_t)((full.rows - 1) / full.tile_rows + 1);
    made->tiles_across = (uint32_t)((full.cols - 1) / full.tile_cols + 1);
    fl_store_relaxed(&made->version, 1); /* replicas begin with 0: nothing is known of any */
    made->is_managed = (full.flags & FILCH_DATA_MANAGED) != 0;
    snprintf(made->label, sizeof made->label, "%s", full.label != NULL ? full.label : "");
    *data = made;
    return FILCH_OK;
}

filch_status filch_data_destroy(filch_data *data)
{
    filch_status status = fl_object_check(data, FL_MAGIC_DATA);
    if (status != FILCH_OK) {
        return status;
    }
    fl_core *core = data->object.core;
    fl_mutex_lock(&core->lock);
    bool busy = data->first != NULL || fl_load_relaxed(&data->graphs) != 0;
    fl_mutex_unlock(&core->lock);
    if (busy) {
        return fl_core_fail(core, FILCH_BUSY, "filch_data_destroy", data->label,
                            "a graph or a running job uses the handle");
    }
    fl_data_drop_replicas(core->places, data);
    fl_object_delete(data);
    return FILCH_OK;
}

#define ACQUIRE "filch_data_acquire"

/* Under core->lock, so that no job is submitted meanwhile. */
static filch_status hold(filch_data *data, filch_access_mode mode)
{
    fl_core *core = data->object.core;
    if (data->first != NULL || data->is_held) {
        return fl_core_fail(core, data->is_held ? FILCH_WRONG_STATE : FILCH_BUSY, ACQUIRE,
                            data->label, "%s",
                            data->is_held ? "the handle is acquired already"
                                          : "a job that uses the handle is not complete");
    }
    data->is_held = true;
    data->is_written = (mode & FILCH_WRITE) != 0;
    return FILCH_OK;
}

filch_status filch_data_acquire(filch_data *data, filch_access_mode mode)
{
    filch_status status = fl_object_check(data, FL_MAGIC_DATA);
    if (status != FILCH_OK) {
        return status;
    }
    fl_core *core = data->object.core;
    if (mode != FILCH_READ && mode != FILCH_WRITE && mode != FILCH_READWRITE) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, ACQUIRE, data->label, "unknown mode");
    }
    fl_mutex_lock(&core->lock);
    status = hold(data, mode);
    fl_mutex_unlock(&core->lock);
    if (status != FILCH_OK) {
        return status;
    }
    if ((mode & FILCH_READ) != 0) {
        filch_error error = FILCH_ERROR_INIT;
        status = fl_data_fetch_host(core->places, data, fl_data_all_tiles(data), true, &error);
        if (status != FILCH_OK) {
            fl_mutex_lock(&core->lock);
            data->is_held = false;
            fl_mutex_unlock(&core->lock);
            fl_error_store(&core->errors, &error);
            return status;
        }
    }
    return FILCH_OK;
}

filch_status filch_data_release(filch_data *data)
{
    filch_status status = fl_object_check(data, FL_MAGIC_DATA);
    if (status != FILCH_OK) {
        return status;
    }
    fl_core *core = data->object.core;
    filch_error error = FILCH_ERROR_INIT;
    fl_mutex_lock(&core->lock);
    bool is_held = data->is_held, is_written = data->is_written;
    data->is_written = false;
    fl_mutex_unlock(&core->lock);
    if (!is_held) {
        return fl_core_fail(core, FILCH_WRONG_STATE, "filch_data_release", data->label,
                            "the handle is not acquired");
    }
    if (is_written) {
        status = fl_data_host_wrote(core->places, data, fl_data_all_tiles(data), &error);
    }
    fl_mutex_lock(&core->lock);
    data->is_held = false;
    fl_mutex_unlock(&core->lock);
    if (status != FILCH_OK) {
        fl_error_store(&core->errors, &error);
    }
    return status;
}

filch_status filch_data_tiles(const filch_data *data, filch_tiling *tiling)
{
    filch_status status = fl_object_check(data, FL_MAGIC_DATA);
    if (status != FILCH_OK) {
        return status;
    }
    if (tiling == NULL || tiling->size < sizeof *tiling) {
        return fl_core_fail(data->object.core, FILCH_INVALID_ARGUMENT, "filch_data_tiles",
                            data->label, "the result is null or its size is not set");
    }
    tiling->rows = data->tiles_down;
    tiling->cols = data->tiles_across;
    return FILCH_OK;
}

/* --- Tiles --- */

/* An address rather than a pointer: there may be no buffer yet. */
static void *host_at(const filch_data *data, const filch_view *view)
{
    return (void *)((uintptr_t)fl_data_host(data) + fl_data_offset(data, view));
}

filch_view fl_data_tile_view(const filch_data *data, uint32_t tile)
{
    uint32_t r = tile % data->tiles_down, c = tile / data->tiles_down;
    filch_view view = {.ld = data->ld,
                       .row = fl_data_row_start(data, r),
                       .col = fl_data_col_start(data, c),
                       .element = data->element};
    view.rows = fl_data_row_start(data, r + 1) - view.row;
    view.cols = fl_data_col_start(data, c + 1) - view.col;
    view.ptr = host_at(data, &view);
    return view;
}

filch_view fl_data_range_view(const filch_data *data, uint64_t first, uint64_t last)
{
    filch_view view = {.ld = data->ld, .element = data->element};
    if (data->cols == 1) {
        view.rows = last - first;
        view.cols = 1;
        view.row = first;
    } else {
        view.rows = data->rows;
        view.cols = last - first;
        view.col = first;
    }
    view.ptr = host_at(data, &view);
    return view;
}

uint64_t fl_data_extent(const filch_data *data)
{
    return data->cols == 1 ? data->rows : data->cols;
}

uint32_t fl_data_axis_tiles(const filch_data *data)
{
    return data->cols == 1 ? data->tiles_down : data->tiles_across;
}

uint64_t fl_data_axis_start(const filch_data *data, uint32_t tile)
{
    return data->cols == 1 ? fl_data_row_start(data, tile) : fl_data_col_start(data, tile);
}

uint64_t fl_data_tile_extent(const filch_data *data)
{
    bool differ = (data->cols == 1 ? data->row_starts : data->col_starts) != NULL;
    return differ ? 0 : data->cols == 1 ? data->tile_rows : data->tile_cols;
}

/* The tile in which an element along the divided axis lies; the extent lies past the last. */
static uint32_t tile_of(const filch_data *data, uint64_t element)
{
    uint64_t width = fl_data_tile_extent(data);
    if (width != 0) {
        return (uint32_t)(element / width);
    }
    uint32_t low = 0, high = fl_data_axis_tiles(data);
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (fl_data_axis_start(data, middle + 1) <= element) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void fl_data_tiles_between(const filch_data *data, uint64_t first, uint64_t last, uint32_t *tile,
                           uint32_t *end)
{
    *tile = tile_of(data, first);
    *end = last > first ? tile_of(data, last - 1) + 1 : *tile;
}

/* --- The buffer on the host --- */

filch_status fl_data_need_host(filch_data *data, filch_error *error)
{
    const fl_memory *memory = &data->object.core->memory;
    if (fl_data_host(data) != NULL) {
        return FILCH_OK;
    }
    size_t bytes = fl_data_bytes(data);
    char *made = fl_alloc_aligned(memory, bytes, HOST_ALIGN);
    char *none = NULL;
    if (made == NULL) {
        return fl_error_fill(error, (fl_fault){.status = FILCH_OUT_OF_MEMORY, .label = data->label},
                             "no memory for the %zu bytes of '%s' on the host", bytes, data->label);
    }
    /* Acquire-release: it is seen as it was allocated; or another's, and ours was never seen. */
    if (!fl_cas_acq_rel(&data->host, &none, made)) {
        fl_free_aligned(memory, made, bytes, HOST_ALIGN);
    }
    return FILCH_OK;
}

void fl_data_free_parts(filch_data *data)
{
    const fl_memory *memory = &data->object.core->memory;
    char *host = fl_load_relaxed(&data->host); /* nobody else uses the handle */
    if (host != NULL && (!data->has_home || data->home != 0)) {
        fl_free_aligned(memory, host, fl_data_bytes(data), HOST_ALIGN);
    }
    fl_store_relaxed(&data->host, NULL);
    fl_free(memory, data->row_starts, ((size_t)data->tiles_down + 1) * sizeof(uint64_t));
    fl_free(memory, data->col_starts, ((size_t)data->tiles_across + 1) * sizeof(uint64_t));
    data->row_starts = data->col_starts = NULL;
}

/* --- Uses --- */

static bool is_grantable(const fl_use *use)
{
    for (const fl_use *before = use->prev; before != NULL; before = before->prev) {
        if (use->writes || before->writes) {
            return false;
        }
    }
    return true;
}

bool fl_use_enqueue(fl_use *use)
{
    return fl_use_enqueue_before(use, NULL);
}

bool fl_use_enqueue_before(fl_use *use, fl_use *next)
{
    filch_data *data = use->data;
    fl_use *prev = next != NULL ? next->prev : data->last;
    use->next = next;
    use->prev = prev;
    *(prev != NULL ? &prev->next : &data->first) = use;
    *(next != NULL ? &next->prev : &data->last) = use;
    use->queued = true;
    use->granted = is_grantable(use);
    return use->granted;
}

void fl_use_leave(fl_use *use, void (*granted)(fl_use *use, void *user), void *user)
{
    filch_data *data = use->data;
    if (use->prev != NULL) {
        use->prev->next = use->next;
    } else {
        data->first = use->next;
    }
    if (use->next != NULL) {
        use->next->prev = use->prev;
    } else {
        data->last = use->prev;
    }
    use->queued = false;
    for (fl_use *waiting = data->first; waiting != NULL; waiting = waiting->next) {
        if (!waiting->granted) {
            if (!is_grantable(waiting)) {
                return;
            }
            waiting->granted = true;
            granted(waiting, user);
        }
    }
}
