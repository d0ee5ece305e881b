/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/data.h"

#include <stdio.h>

#include "memory/replica.h"

#define CREATE "filch_data_create"

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
    made->base = full.ptr;
    made->element = full.element;
    made->rows = full.rows;
    made->cols = full.cols;
    made->ld = full.ld;
    made->tile_rows = full.tile_rows;
    made->tile_cols = full.tile_cols;
    made->tiles_down = (uint32_t)((full.rows - 1) / full.tile_rows + 1);
    made->tiles_across = (uint32_t)((full.cols - 1) / full.tile_cols + 1);
    made->version = 1; /* replicas begin with 0: nothing is known of any */
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
        status = fl_data_fetch_home(core->places, data, &error);
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
    fl_mutex_lock(&core->lock);
    bool is_held = data->is_held;
    if (is_held && data->is_written) {
        fl_data_host_wrote(data);
    }
    data->is_held = false;
    fl_mutex_unlock(&core->lock);
    return is_held ? FILCH_OK
                   : fl_core_fail(core, FILCH_WRONG_STATE, "filch_data_release", data->label,
                                  "the handle is not acquired");
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

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

filch_view fl_data_tile_view(const filch_data *data, uint32_t tile)
{
    uint64_t row = (uint64_t)(tile % data->tiles_down) * data->tile_rows;
    uint64_t col = (uint64_t)(tile / data->tiles_down) * data->tile_cols;
    return (filch_view){
        .ptr = data->base + (col * data->ld + row) * data->element,
        .rows = least(data->tile_rows, data->rows - row),
        .cols = least(data->tile_cols, data->cols - col),
        .ld = data->ld,
        .row = row,
        .col = col,
        .element = data->element,
    };
}

filch_view fl_data_range_view(const filch_data *data, uint64_t first, uint64_t last)
{
    filch_view view = {.ld = data->ld, .element = data->element};
    if (data->cols == 1) {
        view.ptr = data->base + first * data->element;
        view.rows = last - first;
        view.cols = 1;
        view.row = first;
    } else {
        view.ptr = data->base + first * data->ld * data->element;
        view.rows = data->rows;
        view.cols = last - first;
        view.col = first;
    }
    return view;
}

uint64_t fl_data_extent(const filch_data *data)
{
    return data->cols == 1 ? data->rows : data->cols;
}

uint64_t fl_data_tile_extent(const filch_data *data)
{
    return data->cols == 1 ? data->tile_rows : data->tile_cols;
}

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
