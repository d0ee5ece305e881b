/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/tiles/data.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "memory/tiles/csr.h"
#include "memory/tiles/replica.h"

#define CREATE "filch_data_create"
#define PARTITION "filch_data_partition"
#define HOST_ALIGN ((size_t)64) /* alignment of buffers made by the runtime */
#define DESC_SIZE_FIRST offsetof(filch_data_desc, row_cuts)
#define KNOWN_FLAGS                                                                      \
    (FILCH_DATA_MANAGED | FILCH_DATA_NO_BUFFER | FILCH_DATA_ON_DEVICE | FILCH_DATA_PIN | \
     FILCH_DATA_ORDERED | FILCH_DATA_TEMPORARY)

static size_t written_bytes(const filch_data *data)
{
    return ((size_t)fl_data_tile_count(data) + 63) / 64 * sizeof *data->written;
}

static size_t hosts_bytes(const filch_data *data)
{
    return (size_t)fl_data_tile_count(data) * sizeof *data->tile_hosts;
}

static size_t holders_bytes(const filch_data *data)
{
    return (size_t)fl_data_tile_count(data) * sizeof *data->holders;
}

/* Fills in the defaults of a descriptor. A temporary has no buffer, and no buffer means that filch
 * manages the contents. */
static filch_data_desc complete(const filch_data_desc *desc)
{
    filch_data_desc full = FILCH_DATA_DESC_INIT;
    memcpy(&full, desc, desc->size < sizeof full ? DESC_SIZE_FIRST : sizeof full);
    full.flags |= (full.flags & FILCH_DATA_TEMPORARY) != 0 ? FILCH_DATA_NO_BUFFER : 0;
    full.flags |= (full.flags & FILCH_DATA_NO_BUFFER) != 0 ? FILCH_DATA_MANAGED : 0;
    full.cols = full.cols != 0 ? full.cols : 1;
    full.ld = full.ld != 0 ? full.ld : full.rows;
    if (full.row_cuts == NULL && full.tile_rows == 0) {
        full.tile_rows = full.rows;
    }
    if (full.col_cuts == NULL && full.tile_cols == 0) {
        full.tile_cols = full.cols;
    }
    return full;
}

static filch_status fail(fl_core *core, const char *call, const char *label, const char *what)
{
    return fl_core_fail(core, FILCH_INVALID_ARGUMENT, call, label, "%s", what);
}

static filch_status check_buffer(fl_core *core, const char *call, const filch_data_desc *d)
{
    bool has_none = (d->flags & FILCH_DATA_NO_BUFFER) != 0;
    bool on_device = (d->flags & FILCH_DATA_ON_DEVICE) != 0;
    bool is_pinned = (d->flags & FILCH_DATA_PIN) != 0;
    const char *wrong = (d->flags & ~(uint32_t)KNOWN_FLAGS) != 0 ? "unknown flags are set"
                        : d->reserved != 0 || d->reserved2 != 0  ? "reserved is not 0"
                        : has_none && on_device                  ? "there is no buffer, but flags "
                                                                   "say that it is on a device"
                        : has_none && d->ptr != NULL             ? "there is a buffer, but flags "
                                                                   "say that there is none"
                        : !has_none && d->ptr == NULL            ? "the buffer is null"
                        : is_pinned && (has_none || on_device)   ? "there is no buffer on the host "
                                                                   "that could be page-locked"
                        : !on_device && d->device != 0 ? "a device is given, but flags do "
                                                         "not say that the buffer is on it"
                        : d->rows == 0                 ? "rows is 0"
                        : d->element == 0              ? "element, the bytes an element, is 0"
                        : (d->flags & FILCH_DATA_TEMPORARY) != 0 && d->ld != d->rows
                            ? "a temporary has no leading dimension: its tiles have no gaps"
                            : NULL;
    return wrong == NULL ? FILCH_OK : fail(core, call, d->label, wrong);
}

/* Checks the cuts of an axis: tiles of a common size, or a size per tile. */
static filch_status check_cuts(fl_core *core, const char *call, const char *label, const char *axis,
                               uint64_t extent, uint64_t tile, const uint64_t *cuts, uint32_t count)
{
    uint64_t sum = 0;
    if (cuts == NULL) {
        return count == 0 ? FILCH_OK
                          : fl_core_fail(core, FILCH_INVALID_ARGUMENT, call, label,
                                         "there are %u cuts of %s, but they are null", count, axis);
    }
    if (tile != 0) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, call, label,
                            "both cuts of %s and a size of their tiles are given", axis);
    }
    for (uint32_t i = 0; i < count; ++i) {
        if (cuts[i] == 0 || cuts[i] > extent - sum) {
            return fl_core_fail(core, FILCH_INVALID_ARGUMENT, call, label,
                                "cut %u of %s is %" PRIu64 ", where %" PRIu64 " of %" PRIu64
                                " are left",
                                i, axis, cuts[i], extent - sum, extent);
        }
        sum += cuts[i];
    }
    return sum == extent ? FILCH_OK
                         : fl_core_fail(core, FILCH_INVALID_ARGUMENT, call, label,
                                        "the cuts of %s add up to %" PRIu64 ", not %" PRIu64, axis,
                                        sum, extent);
}

static uint64_t count_tiles(uint64_t extent, uint64_t tile, const uint64_t *cuts, uint32_t count)
{
    return cuts != NULL ? count : (extent - 1) / tile + 1;
}

static filch_status check_shape(fl_core *core, const char *call, const filch_data_desc *d)
{
    const char *label = d->label;
    if (d->ld < d->rows) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, call, label,
                            "the leading dimension %" PRIu64 " is less than the %" PRIu64 " rows",
                            d->ld, d->rows);
    }
    if (d->tile_rows > d->rows || d->tile_cols > d->cols) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, call, label,
                            "a tile of %" PRIu64 " x %" PRIu64
                            " is larger than the handle of %" PRIu64 " x %" PRIu64,
                            d->tile_rows, d->tile_cols, d->rows, d->cols);
    }
    size_t bytes;
    if (!fl_size_mul((size_t)d->ld, (size_t)d->cols, &bytes) ||
        !fl_size_mul(bytes, (size_t)d->element, &bytes) || bytes > (size_t)PTRDIFF_MAX) {
        return fl_core_fail(core, FILCH_OVERFLOW, call, label,
                            "%" PRIu64 " x %" PRIu64 " elements of %" PRIu64
                            " bytes overflow the address space",
                            d->ld, d->cols, d->element);
    }
    filch_status status =
        check_cuts(core, call, label, "rows", d->rows, d->tile_rows, d->row_cuts, d->row_cut_count);
    if (status == FILCH_OK) {
        status = check_cuts(core, call, label, "columns", d->cols, d->tile_cols, d->col_cuts,
                            d->col_cut_count);
    }
    if (status != FILCH_OK) {
        return status;
    }
    uint64_t down = count_tiles(d->rows, d->tile_rows, d->row_cuts, d->row_cut_count);
    uint64_t across = count_tiles(d->cols, d->tile_cols, d->col_cuts, d->col_cut_count);
    /* The product does not overflow: every tile has an element, already counted in the bytes
     * above. */
    return down * across < UINT32_MAX
               ? FILCH_OK
               : fl_core_fail(core, FILCH_OVERFLOW, call, label,
                              "%" PRIu64 " x %" PRIu64 " tiles are 2^32 - 1 or more", down, across);
}

static filch_status check_desc(fl_core *core, const filch_data_desc *desc, filch_data **data)
{
    return desc == NULL   ? fail(core, CREATE, NULL, "the descriptor is null")
           : data == NULL ? fail(core, CREATE, NULL, "there is nowhere to put the handle")
                          : fl_size_check(core, desc, DESC_SIZE_FIRST, sizeof *desc,
                                          "the descriptor", CREATE, NULL);
}

/* --- Buffers on devices --- */

/* Tells whether two blocks in a memory share elements. Columns of equal leading dimensions
 * interleave. For different leading dimensions, a column counts as long as the dimension. */
static bool overlap(const filch_data *a, const filch_data *b)
{
    const filch_data *low = a->home_base <= b->home_base ? a : b, *high = low == a ? b : a;
    size_t apart = (size_t)(high->home_base - low->home_base);
    size_t pitch = (size_t)(low->ld * low->element);
    if (apart >= fl_data_bytes(low)) {
        return false;
    }
    if (pitch != high->ld * high->element) {
        return true;
    }
    /* The high block begins inside a column of the low block, or behind the column's rows. In
     * the latter case the high block's column must end before the next low column. */
    size_t row = apart % pitch;
    return row < low->rows * low->element || row + high->rows * high->element > pitch;
}

/* Returns a handle with a buffer overlapping the given handle's, or null. Requires core->lock. */
static const filch_data *find_overlap(const filch_data *data)
{
    for (const fl_object *at = data->object.core->objects; at != NULL; at = at->next) {
        const filch_data *other = (const filch_data *)(const void *)at;
        if (fl_load_relaxed(&at->magic) == (uint32_t)FL_MAGIC_DATA && other != data &&
            other->home == data->home && other->home_base != NULL && overlap(data, other)) {
            return other;
        }
    }
    return NULL;
}

/* Reports a backend's error under the handle's name. */
static filch_status report(fl_core *core, const char *call, filch_status status, filch_error *error,
                           const char *label)
{
    snprintf(error->label, sizeof error->label, "%s", label);
    return error->call[0] == '\0' ? fl_core_fail(core, status, call, label, "%s", error->text)
                                  : (fl_error_store(&core->errors, error), status);
}

static filch_status take_device(filch_data *data, const char *call, const filch_data_desc *d)
{
    fl_core *core = data->object.core;
    const fl_places *places = core->places;
    filch_error error = FILCH_ERROR_INIT;
    if (d->device >= places->device_count) {
        return fl_core_fail(core, FILCH_BAD_INDEX, call, d->label, "there is no device %u",
                            d->device);
    }
    const fl_device *device = &places->devices[d->device];
    if (device->backend->interop == NULL || device->place == 0) {
        return fl_core_fail(core, FILCH_UNSUPPORTED, call, d->label,
                            "%s has no memory that a buffer could be in", device->info.name);
    }
    filch_status status =
        device->backend->interop->check(device, d->ptr, fl_data_bytes(data), data->label, &error);
    if (status != FILCH_OK) {
        return report(core, call, status, &error, data->label);
    }
    fl_mutex_lock(&core->lock); /* other threads find the buffer now */
    data->home = device->place;
    data->home_base = d->ptr;
    const filch_data *other = find_overlap(data);
    if (other != NULL) {
        data->home_base = NULL;
        status = fl_core_fail(core, FILCH_ALIAS, call, data->label,
                              "the buffer of '%s' has elements in common with that of '%s'",
                              data->label, other->label);
    }
    fl_mutex_unlock(&core->lock);
    return status;
}

/* --- Page-locked buffers --- */

/* Page-locks the buffer through a single device, for every device. */
static filch_status pin(filch_data *data, const char *call)
{
    fl_core *core = data->object.core;
    const fl_places *places = core->places;
    filch_error error = FILCH_ERROR_INIT;
    char *host = fl_data_host(data);
    for (uint32_t i = 0; i < places->device_count; ++i) {
        fl_device *device = &places->devices[i];
        if (device->backend->interop == NULL || fl_device_is_lost(device, NULL)) {
            continue;
        }
        filch_status status =
            device->backend->interop->pin(device, host, fl_data_bytes(data), data->label, &error);
        if (status != FILCH_OK) {
            return report(core, call, status, &error, data->label);
        }
        data->pinned_by = device;
        break;
    }
    return FILCH_OK;
}

/* --- Making and ending --- */

/* Returns the starts of tiles of the given sizes, and the end of the last tile; null: no memory. */
static uint64_t *list_starts(const fl_memory *memory, const uint64_t *cuts, uint32_t count)
{
    uint64_t *starts = fl_alloc(memory, ((size_t)count + 1) * sizeof *starts);
    if (starts != NULL) {
        starts[0] = 0;
        for (uint32_t i = 0; i < count; ++i) {
            starts[i + 1] = starts[i] + cuts[i];
        }
    }
    return starts;
}

/* Makes the tables of the handle's tiles. False: no memory. */
static bool fill_tables(filch_data *made, const filch_data_desc *d)
{
    const fl_memory *memory = &made->object.core->memory;
    bool fits = true;
    if (d->row_cuts != NULL) {
        made->row_starts = list_starts(memory, d->row_cuts, d->row_cut_count);
        fits = made->row_starts != NULL;
    }
    if (d->col_cuts != NULL && fits) {
        made->col_starts = list_starts(memory, d->col_cuts, d->col_cut_count);
        fits = made->col_starts != NULL;
    }
    if ((d->flags & FILCH_DATA_TEMPORARY) != 0 && fits) {
        made->tile_hosts = fl_alloc_zeroed(memory, hosts_bytes(made));
        fits = made->tile_hosts != NULL;
    } else if ((d->flags & FILCH_DATA_NO_BUFFER) != 0 && fits) {
        made->written = fl_alloc_zeroed(memory, written_bytes(made));
        fits = made->written != NULL;
    }
    if (made->object.core->keeps_holders && fits) {
        made->holders = fl_alloc_zeroed(memory, holders_bytes(made));
        fits = made->holders != NULL;
    }
    return fits;
}

/* Makes a handle of the given shape, without a buffer. Null: no memory, recorded as an error. */
static filch_data *make(fl_core *core, const char *call, const filch_data_desc *d)
{
    filch_data *made = fl_object_new(core, FL_MAGIC_DATA, sizeof *made, _Alignof(filch_data));
    if (made != NULL) {
        made->element = d->element;
        made->rows = d->rows;
        made->cols = d->cols;
        made->ld = d->ld;
        made->tile_rows = d->tile_rows;
        made->tile_cols = d->tile_cols;
        made->tiles_down =
            (uint32_t)count_tiles(d->rows, d->tile_rows, d->row_cuts, d->row_cut_count);
        made->tiles_across =
            (uint32_t)count_tiles(d->cols, d->tile_cols, d->col_cuts, d->col_cut_count);
        fl_store_relaxed(&made->version, 1); /* replicas begin with 0: unknown contents */
        made->has_home = (d->flags & FILCH_DATA_NO_BUFFER) == 0;
        made->is_managed = (d->flags & FILCH_DATA_MANAGED) != 0;
        made->is_ordered = (d->flags & FILCH_DATA_ORDERED) != 0;
        snprintf(made->label, sizeof made->label, "%s", d->label != NULL ? d->label : "");
        if (!fill_tables(made, d)) {
            fl_data_free_parts(made);
            fl_object_delete(made);
            made = NULL;
        }
    }
    if (made == NULL) {
        fl_core_fail(core, FILCH_OUT_OF_MEMORY, call, d->label, "no memory for a data handle");
    }
    return made;
}

filch_status fl_data_create(fl_core *core, const char *call, const filch_data_desc *desc,
                            filch_data **data)
{
    filch_data_desc full = complete(desc);
    filch_status status = check_buffer(core, call, &full);
    status = status == FILCH_OK ? check_shape(core, call, &full) : status;
    if (status != FILCH_OK) {
        return status;
    }
    filch_data *made = make(core, call, &full);
    if (made == NULL) {
        return FILCH_OUT_OF_MEMORY;
    }
    if ((full.flags & FILCH_DATA_ON_DEVICE) != 0) {
        status = take_device(made, call, &full);
    } else {
        fl_store_relaxed(&made->host, full.ptr); /* the handle is not shared yet */
        status = (full.flags & FILCH_DATA_PIN) != 0 ? pin(made, call) : FILCH_OK;
    }
    if (status != FILCH_OK) {
        fl_data_free_parts(made);
        fl_object_delete(made);
        return status;
    }
    *data = made;
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
    status = check_desc(core, desc, data);
    return status == FILCH_OK ? fl_data_create(core, CREATE, desc, data) : status;
}

/* --- Partitions --- */

filch_status fl_data_refuse_inner(const filch_data *data, const char *call)
{
    fl_core *core = data->object.core;
    return data->parent != NULL
               ? fl_core_fail(core, FILCH_UNSUPPORTED, call, data->label,
                              "'%s' is a partition of '%s', which only tasks of graphs use",
                              data->label, data->parent->label)
           : fl_data_is_temporary(data)
               ? fl_core_fail(core, FILCH_UNSUPPORTED, call, data->label,
                              "%s%s%s is a temporary, which only tasks of graphs use",
                              FL_NAME("", data->label, "the handle"))
               : FILCH_OK;
}

filch_status fl_data_refuse_csr(const filch_data *data, const char *call)
{
    return data->csr == NULL ? FILCH_OK
                             : fl_core_fail(data->object.core, FILCH_UNSUPPORTED, call, data->label,
                                            "%s%s%s is a sparse matrix, which is used by row block",
                                            FL_NAME("", data->label, "the handle"));
}

static filch_status check_partition(const filch_data *parent, const filch_data_desc *d)
{
    fl_core *core = parent->object.core;
    const char *wrong = d->ptr != NULL || d->element != 0 || d->rows != 0 || d->cols != 0 ||
                                d->ld != 0 || d->flags != 0 || d->device != 0
                            ? "a partition has the buffer, shape and flags of its parent"
                        : d->reserved != 0 || d->reserved2 != 0 ? "reserved is not 0"
                                                                : NULL;
    const char *missing = parent->parent != NULL ? "a partition cannot be partitioned"
                          : !parent->has_home || parent->home != 0
                              ? "only a handle whose buffer is in the host's memory can be"
                              : NULL;
    return wrong != NULL
               ? fl_core_fail(core, FILCH_INVALID_ARGUMENT, PARTITION, d->label, "%s", wrong)
           : missing != NULL
               ? fl_core_fail(core, FILCH_UNSUPPORTED, PARTITION, parent->label, "%s", missing)
               : FILCH_OK;
}

filch_status filch_data_partition(filch_data *parent, const filch_data_desc *tiling,
                                  filch_data **child)
{
    filch_status status = fl_object_check(parent, FL_MAGIC_DATA);
    if (status != FILCH_OK) {
        return status;
    }
    fl_core *core = parent->object.core;
    const char *wrong = tiling == NULL  ? "the tiling is null"
                        : child == NULL ? "there is nowhere to put the handle"
                                        : NULL;
    if (wrong != NULL) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, PARTITION, parent->label, "%s", wrong);
    }
    status = fl_size_check(core, tiling, sizeof *tiling, sizeof *tiling, "the tiling", PARTITION,
                           parent->label);
    status = status == FILCH_OK ? fl_data_refuse_csr(parent, PARTITION) : status;
    status = status == FILCH_OK ? check_partition(parent, tiling) : status;
    if (status != FILCH_OK) {
        return status;
    }
    filch_data_desc full = *tiling;
    full.element = parent->element;
    full.rows = parent->rows;
    full.cols = parent->cols;
    full.ld = parent->ld;
    full = complete(&full);
    status = check_shape(core, PARTITION, &full);
    filch_data *made = status == FILCH_OK ? make(core, PARTITION, &full) : NULL;
    if (made == NULL) {
        return status != FILCH_OK ? status : FILCH_OUT_OF_MEMORY;
    }
    fl_store_relaxed(&made->host, fl_data_host(parent)); /* the handle is not shared yet */
    made->parent = parent;
    made->is_ordered = parent->is_ordered;
    fl_mutex_lock(&core->lock);
    ++parent->children;
    fl_mutex_unlock(&core->lock);
    *child = made;
    return FILCH_OK;
}

/* --- The end --- */

/* Describes the user preventing the handle's destruction: words behind the handle's name, or null.
 * Requires core->lock. */
static const char *user_of(const filch_data *data)
{
    if (data->kept != 0 || fl_load_relaxed(&data->graphs) != 0) {
        return "is used by a graph or a running job";
    }
    for (const fl_queued_access *use = data->first; use != NULL; use = use->next) {
        if (!use->is_hold) {
            return "is used by a running job";
        }
    }
    return data->first != NULL   ? "has tiles that the host holds (filch_hold_release)"
           : data->is_acquired   ? "is acquired by the host (filch_data_release)"
           : data->children != 0 ? "has partitions"
                                 : NULL;
}

filch_status filch_data_destroy(filch_data *data)
{
    filch_status status = fl_object_check(data, FL_MAGIC_DATA);
    if (status != FILCH_OK) {
        return status;
    }
    fl_core *core = data->object.core;
    fl_mutex_lock(&core->lock);
    const char *user = user_of(data);
    fl_mutex_unlock(&core->lock);
    if (user != NULL) {
        return fl_core_fail(core, FILCH_BUSY, "filch_data_destroy", data->label, "%s%s%s %s",
                            FL_NAME("handle ", data->label, "the handle"), user);
    }
    fl_data_drop_replicas(core->places, data);
    if (data->parent != NULL) {
        fl_mutex_lock(&core->lock);
        --data->parent->children;
        fl_mutex_unlock(&core->lock);
    }
    fl_object_delete(data);
    return FILCH_OK;
}

filch_status filch_data_tiles(const filch_data *data, filch_tiling *tiling)
{
    filch_status status = fl_object_check(data, FL_MAGIC_DATA);
    if (status != FILCH_OK) {
        return status;
    }
    status = fl_size_check(data->object.core, tiling, sizeof *tiling, 0, "the result",
                           "filch_data_tiles", data->label);
    if (status != FILCH_OK) {
        return status;
    }
    tiling->rows = data->tiles_down;
    tiling->cols = data->tiles_across;
    return FILCH_OK;
}

/* --- Tiles --- */

/* Returns the row or column of tiles containing an element, by bisection of the first rows or
 * columns. */
static uint32_t find_start(const uint64_t *starts, uint32_t tiles, uint64_t element)
{
    uint32_t low = 0, high = tiles - 1;
    while (low < high) {
        uint32_t middle = high - (high - low) / 2;
        if (starts[middle] <= element) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

uint32_t fl_data_row_of(const filch_data *data, uint64_t row)
{
    return data->row_starts != NULL ? find_start(data->row_starts, data->tiles_down, row)
                                    : (uint32_t)(row / data->tile_rows);
}

uint32_t fl_data_col_of(const filch_data *data, uint64_t col)
{
    return data->col_starts != NULL ? find_start(data->col_starts, data->tiles_across, col)
                                    : (uint32_t)(col / data->tile_cols);
}

/* Puts a view of a temporary into the memory of its tile. */
static void put_in_tile(const filch_data *data, filch_view *view)
{
    uint32_t r = fl_data_row_of(data, view->row), c = fl_data_col_of(data, view->col);
    uint64_t row = fl_data_row_start(data, r), col = fl_data_col_start(data, c);
    view->ld = fl_data_row_start(data, r + 1) - row;
    uint64_t at = ((view->col - col) * view->ld + view->row - row) * data->element;
    char *host = fl_load_relaxed(&data->tile_hosts[fl_data_tile(data, r, c)]);
    view->ptr = (void *)((uintptr_t)host + (size_t)at);
}

void fl_data_put_on_host(const filch_data *data, filch_view *view)
{
    if (FL_UNLIKELY(fl_data_is_temporary(data))) {
        put_in_tile(data, view);
        return;
    }
    size_t at = (size_t)((view->col * data->ld + view->row) * data->element);
    view->ld = data->ld;
    /* Computes by integers rather than pointers: the buffer may not exist yet. */
    view->ptr = (void *)((uintptr_t)fl_data_host(data) + at);
}

filch_view fl_data_tile_view(const filch_data *data, uint32_t tile)
{
    uint32_t r = tile % data->tiles_down, c = tile / data->tiles_down;
    filch_view view = {.row = fl_data_row_start(data, r),
                       .col = fl_data_col_start(data, c),
                       .element = data->element};
    view.rows = fl_data_row_start(data, r + 1) - view.row;
    view.cols = fl_data_col_start(data, c + 1) - view.col;
    fl_data_put_on_host(data, &view);
    return view;
}

filch_view fl_data_rect_view(const filch_data *data, fl_rect rect)
{
    fl_tiles tiles = fl_rect_tiles(data, rect);
    filch_view view = {.row = fl_data_row_start(data, tiles.row0),
                       .col = fl_data_col_start(data, tiles.col0),
                       .element = data->element};
    view.rows = fl_data_row_start(data, tiles.row1) - view.row;
    view.cols = fl_data_col_start(data, tiles.col1) - view.col;
    fl_data_put_on_host(data, &view);
    return view;
}

filch_view fl_data_region_view(const filch_data *data, const fl_region *region)
{
    const fl_margins *margins = &region->margins;
    filch_view view = fl_data_rect_view(data, region->tiles);
    view.row += margins->top;
    view.col += margins->left;
    view.rows -= margins->top + margins->bottom;
    view.cols -= margins->left + margins->right;
    fl_data_put_on_host(data, &view);
    return view;
}

/* Moves the ends of an interval outwards, within [0, most). */
static void widen(uint64_t *first, uint64_t *last, uint64_t before, uint64_t after, uint64_t most)
{
    *first -= before < *first ? before : *first;
    *last += after < most - *last ? after : most - *last;
}

fl_region fl_data_region(const filch_data *data, fl_rect named, const filch_halo *halo)
{
    fl_region region = {.named = named, .tiles = named};
    if (halo == NULL) {
        return region;
    }
    filch_view view = fl_data_rect_view(data, named);
    uint64_t row0 = view.row, row1 = row0 + view.rows, col0 = view.col, col1 = col0 + view.cols;
    widen(&row0, &row1, halo->rows_before, halo->rows_after, data->rows);
    widen(&col0, &col1, halo->cols_before, halo->cols_after, data->cols);
    uint32_t row = fl_data_row_of(data, row0), col = fl_data_col_of(data, col0);
    region.tiles = (fl_rect){fl_data_tile(data, row, col), fl_data_row_of(data, row1 - 1) + 1 - row,
                             fl_data_col_of(data, col1 - 1) + 1 - col, data->tiles_down};
    view = fl_data_rect_view(data, region.tiles);
    region.margins = (fl_margins){row0 - view.row, view.row + view.rows - row1, col0 - view.col,
                                  view.col + view.cols - col1};
    return region;
}

filch_view fl_data_common_view(const filch_data *data, const filch_view *a, const filch_view *b)
{
    uint64_t row1 = a->row + a->rows < b->row + b->rows ? a->row + a->rows : b->row + b->rows;
    uint64_t col1 = a->col + a->cols < b->col + b->cols ? a->col + a->cols : b->col + b->cols;
    filch_view view = {.row = a->row > b->row ? a->row : b->row,
                       .col = a->col > b->col ? a->col : b->col,
                       .element = data->element};
    view.rows = row1 - view.row;
    view.cols = col1 - view.col;
    fl_data_put_on_host(data, &view);
    return view;
}

filch_view fl_data_range_view(const filch_data *data, uint64_t first, uint64_t last)
{
    filch_view view = {.element = data->element};
    if (data->cols == 1) {
        view.rows = last - first;
        view.cols = 1;
        view.row = first;
    } else {
        view.rows = data->rows;
        view.cols = last - first;
        view.col = first;
    }
    fl_data_put_on_host(data, &view);
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

/* Tile containing an element along the divided axis; the extent lies past the last tile. */
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

void fl_data_tiles_of(const filch_data *data, uint64_t first, uint64_t last, uint32_t *tile,
                      uint32_t *end)
{
    uint32_t down = data->cols == 1 ? 1 : data->tiles_down;
    fl_data_tiles_between(data, first, last, tile, end);
    *tile *= down;
    *end *= down;
}

/* --- The buffer on the host --- */

static size_t tile_bytes(const filch_data *data, uint32_t tile)
{
    filch_view view = fl_data_tile_view(data, tile);
    return (size_t)(view.rows * view.cols * view.element);
}

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
    /* Acquire-release: a reader sees the buffer as allocated; the losing thread never shared its
     * buffer. */
    if (!fl_cas_acq_rel(&data->host, &none, made)) {
        fl_free_aligned(memory, made, bytes, HOST_ALIGN);
    }
    return FILCH_OK;
}

filch_status fl_data_need_host_tile(filch_data *data, uint32_t tile, filch_error *error)
{
    if (!fl_data_is_temporary(data)) {
        return fl_data_need_host(data, error);
    }
    /* Acquire: the memory may have been made for another piece of the same divisible task, and
     * pieces are not ordered by dependencies. */
    if (fl_load_acquire(&data->tile_hosts[tile]) != NULL) {
        return FILCH_OK;
    }
    const fl_memory *memory = &data->object.core->memory;
    size_t bytes = tile_bytes(data, tile);
    char *made = fl_alloc_aligned(memory, bytes, HOST_ALIGN);
    char *none = NULL;
    if (made == NULL) {
        return fl_error_fill(error, (fl_fault){.status = FILCH_OUT_OF_MEMORY, .label = data->label},
                             "no memory for the %zu bytes of tile (%u, %u) of %s%s%s on the host",
                             bytes, tile % data->tiles_down, tile / data->tiles_down,
                             FL_NAME("", data->label, "the handle"));
    }
    /* Acquire-release: other pieces see the memory as allocated, by this or by the other thread;
     * the losing thread never shared its memory. */
    if (!fl_cas_acq_rel(&data->tile_hosts[tile], &none, made)) {
        fl_free_aligned(memory, made, bytes, HOST_ALIGN);
    }
    return FILCH_OK;
}

void fl_data_free_host_tile(filch_data *data, uint32_t tile)
{
    char *host = fl_load_relaxed(&data->tile_hosts[tile]);
    if (host != NULL) {
        fl_store_relaxed(&data->tile_hosts[tile], NULL);
        fl_free_aligned(&data->object.core->memory, host, tile_bytes(data, tile), HOST_ALIGN);
    }
}

static void free_tile_hosts(filch_data *data)
{
    for (uint32_t tile = 0; tile < fl_data_tile_count(data); ++tile) {
        fl_data_free_host_tile(data, tile);
    }
    fl_free(&data->object.core->memory, (void *)data->tile_hosts, hosts_bytes(data));
    data->tile_hosts = NULL;
}

void fl_data_free_parts(filch_data *data)
{
    const fl_memory *memory = &data->object.core->memory;
    char *host = fl_load_relaxed(&data->host); /* no users of the handle remain */
    if (data->pinned_by != NULL) {
        data->pinned_by->backend->interop->unpin(data->pinned_by, host);
        data->pinned_by = NULL;
    }
    if (host != NULL && (!data->has_home || data->home != 0)) {
        fl_free_aligned(memory, host, fl_data_bytes(data), HOST_ALIGN);
    }
    fl_store_relaxed(&data->host, NULL);
    fl_csr_free(memory, data->csr);
    data->csr = NULL;
    if (data->tile_hosts != NULL) {
        free_tile_hosts(data); /* reads the cuts */
    }
    fl_free(memory, data->row_starts, ((size_t)data->tiles_down + 1) * sizeof(uint64_t));
    fl_free(memory, data->col_starts, ((size_t)data->tiles_across + 1) * sizeof(uint64_t));
    fl_free(memory, data->holders, data->holders != NULL ? holders_bytes(data) : 0);
    data->holders = NULL;
    if (data->written != NULL) {
        fl_free(memory, data->written, written_bytes(data));
    }
    data->row_starts = data->col_starts = data->written = NULL;
}

filch_status fl_data_fail_acquired(const filch_data *data, const char *label, filch_error *error)
{
    return fl_error_fill(error, (fl_fault){.status = FILCH_BUSY, .label = label},
                         "the host has acquired %s%s%s and not released it",
                         FL_NAME("the handle ", data->label, "the handle"));
}

filch_status fl_data_fail_unwritten(const filch_data *data, uint32_t tile, const char *call,
                                    filch_error *error)
{
    return fl_error_fill(
        error, (fl_fault){.status = FILCH_WRONG_STATE, .call = call, .label = data->label},
        "tile (%u, %u) of %s%s%s is read, but nothing has written it", tile % data->tiles_down,
        tile / data->tiles_down, FL_NAME("", data->label, "the handle"));
}
