/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses to handles by the host. */
#include "memory/tiles/replica.h"

#define ACQUIRE "filch_data_acquire"
#define VIEW "filch_data_view"

bool fl_data_is_acquired(const filch_data *data, uint32_t row, uint32_t col)
{
    bool is_acquired = data->is_acquired;
    for (const fl_queued_access *use = data->first; use != NULL && !is_acquired; use = use->next) {
        is_acquired = use->is_hold && use->granted && fl_tiles_have(use->used, row, col);
    }
    return is_acquired;
}

void fl_data_note_host(filch_data *data)
{
    const fl_queued_access *use = data->first;
    /* A device's home: a new version would invalidate the copy on the host. */
    while (use != NULL && use->is_hold && data->home == 0) {
        use = use->next;
    }
    if (use == NULL) {
        fl_data_begin_version(data);
    }
}

bool fl_data_find_unwritten(const filch_data *data, fl_tiles tiles, uint32_t *tile)
{
    for (uint32_t col = tiles.col0; data->written != NULL && col < tiles.col1; ++col) {
        for (uint32_t row = tiles.row0; row < tiles.row1; ++row) {
            *tile = fl_data_tile(data, row, col);
            if (!fl_data_is_written(data, *tile)) {
                return true;
            }
        }
    }
    return false;
}

/* Acquires the handle for the host. Requires core->lock: no job may be submitted meanwhile. */
static filch_status hold(filch_data *data, filch_access_mode mode)
{
    fl_core *core = data->object.core;
    if (data->first != NULL || data->is_acquired) {
        return fl_core_fail(core, data->is_acquired ? FILCH_WRONG_STATE : FILCH_BUSY, ACQUIRE,
                            data->label, "%s%s%s %s", FL_NAME("handle ", data->label, "the handle"),
                            data->is_acquired      ? "is acquired already"
                            : data->first->is_hold ? "has tiles that the host holds"
                                                   : "is used by a job that is not complete");
    }
    uint32_t tile;
    if ((mode & FILCH_READ) != 0 && fl_data_find_unwritten(data, fl_data_all_tiles(data), &tile)) {
        filch_error error = FILCH_ERROR_INIT;
        fl_data_fail_unwritten(data, tile, ACQUIRE, &error);
        fl_error_store(&core->errors, &error);
        return error.status;
    }
    fl_data_note_host(data);
    data->is_acquired = true;
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
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, ACQUIRE, data->label,
                            "the handle cannot be acquired with this mode");
    }
    status = fl_data_refuse_inner(data, ACQUIRE);
    if (status != FILCH_OK) {
        return status;
    }
    fl_mutex_lock(&core->lock);
    status = hold(data, mode);
    fl_mutex_unlock(&core->lock);
    if (status != FILCH_OK) {
        return status;
    }
    filch_error error = FILCH_ERROR_INIT;
    status = fl_data_fetch_host(core->places, data, fl_data_all_tiles(data), mode, &error);
    if (status != FILCH_OK) {
        fl_mutex_lock(&core->lock);
        data->is_acquired = false;
        fl_mutex_unlock(&core->lock);
        fl_error_store(&core->errors, &error);
    }
    return status;
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
    bool is_acquired = data->is_acquired, is_written = data->is_written;
    data->is_written = false;
    fl_mutex_unlock(&core->lock);
    if (!is_acquired) {
        return fl_core_fail(core, FILCH_WRONG_STATE, "filch_data_release", data->label,
                            "%s%s%s is not acquired",
                            FL_NAME("handle ", data->label, "the handle"));
    }
    if (is_written) {
        status = fl_data_host_wrote(core->places, data, fl_data_all_tiles(data), &error);
    }
    fl_mutex_lock(&core->lock);
    data->is_acquired = false;
    for (uint32_t tile = 0; is_written && tile < fl_data_tile_count(data); ++tile) {
        fl_data_note_written(data, tile);
    }
    fl_mutex_unlock(&core->lock);
    if (status != FILCH_OK) {
        fl_error_store(&core->errors, &error);
    }
    return status;
}

filch_status filch_data_view(const filch_data *data, uint32_t row, uint32_t col, filch_view *view)
{
    filch_status status = fl_object_check(data, FL_MAGIC_DATA);
    if (status != FILCH_OK) {
        return status;
    }
    fl_core *core = data->object.core;
    if (view == NULL || row >= data->tiles_down || col >= data->tiles_across) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, VIEW, data->label,
                            view == NULL ? "there is nowhere to put the view"
                                         : "tile (%u, %u) is outside the %u x %u tiles of %s%s%s",
                            row, col, data->tiles_down, data->tiles_across,
                            FL_NAME("", data->label, "the handle"));
    }
    fl_mutex_lock(&core->lock);
    bool is_acquired = fl_data_is_acquired(data, row, col);
    fl_mutex_unlock(&core->lock);
    if (!is_acquired) {
        return fl_core_fail(core, FILCH_WRONG_STATE, VIEW, data->label,
                            "tile (%u, %u) of %s%s%s is not acquired", row, col,
                            FL_NAME("", data->label, "the handle"));
    }
    *view = fl_data_tile_view(data, fl_data_tile(data, row, col));
    return FILCH_OK;
}
