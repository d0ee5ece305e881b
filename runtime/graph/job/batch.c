/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: the items, the positions for cuts, and the elements that a chunk uses. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "graph/build/capacity.h"
#include "graph/job/batch.h"

#define SUBMIT "filch_batch_submit"
#define MOST_ITEMS ((uint64_t)1 << 63)
/* Number of boundaries of a callback mapping checked at submission; every cut is checked again. */
/* Number of grains of a written callback mapping that are compared with each other. */
#define CHECKED_CUTS 1024u
#define FAR_CHECKS 64u

fl_queued_access *fl_batch_uses(fl_batch *batch, size_t *count)
{
    *count = batch->use_count;
    return batch->uses;
}

const filch_codelet *fl_batch_codelet(const fl_batch *batch)
{
    return batch->codelet;
}

bool fl_batch_is_restartable(const fl_batch *batch)
{
    bool is_such = (batch->codelet->flags & FILCH_CODELET_RESTARTABLE) != 0;
    for (uint32_t i = 0; i < batch->access_count && is_such; ++i) {
        const filch_batch_access *access = &batch->accesses[i];
        /* Data used by a callback need not outlast the job. Tiles in a caller's buffer in device
         * memory cannot be replaced by a private output. */
        is_such = (access->mode == FILCH_READ || access->mode == FILCH_WRITE) &&
                  access->map != FILCH_MAP_CALLBACK &&
                  (access->mode == FILCH_READ || access->data->home == 0);
    }
    return is_such;
}

const uint64_t *fl_batch_devices(const fl_batch *batch)
{
    return batch->devices;
}

const void *fl_batch_args(const fl_batch *batch)
{
    return batch->args;
}

uint64_t fl_batch_items(const fl_batch *batch)
{
    return batch->n;
}

uint32_t fl_batch_grains(const fl_batch *batch)
{
    return batch->grains;
}

uint32_t fl_batch_view_count(const fl_batch *batch)
{
    return batch->access_count;
}

void fl_batch_free(fl_core *core, fl_batch *batch)
{
    if (batch != NULL) {
        fl_free(&core->memory, batch->bounds, ((size_t)batch->cuts + 1) * sizeof *batch->bounds);
        fl_free_aligned(&core->memory, batch, batch->bytes, 16);
    }
}

/* Returns the stretch of a rest that contains a grain. */
static const fl_stretch *stretch_of(const fl_batch *batch, uint32_t grain)
{
    uint32_t low = 0, high = batch->stretch_count - 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (batch->stretches[middle].end > grain) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return &batch->stretches[low];
}

uint32_t fl_batch_reach(const fl_batch *batch, uint32_t lo)
{
    return batch->stretch_count == 0 ? batch->grains : stretch_of(batch, lo)->end;
}

void fl_batch_range(const fl_batch *batch, uint32_t lo, uint32_t hi, uint64_t *first,
                    uint64_t *last)
{
    if (FL_UNLIKELY(batch->stretch_count != 0)) {
        uint32_t shift = stretch_of(batch, lo)->shift;
        lo += shift;
        hi += shift;
    }
    if (FL_UNLIKELY(batch->bounds != NULL)) {
        *first = batch->bounds[lo];
        *last = batch->bounds[hi];
        return;
    }
    *first = (uint64_t)lo * batch->grain;
    /* The last grain may be short; n < 2^63, and the product with at most n / grain + 1 fits. */
    *last = hi == batch->cuts ? batch->n : (uint64_t)hi * batch->grain;
}

/* Finds the elements of items [lo, hi). A callback's answer is not clipped; the caller checks the
 * answer. */
static void map_items(const filch_batch_access *access, uint64_t lo, uint64_t hi, uint64_t *first,
                      uint64_t *last)
{
    uint64_t extent = fl_data_extent(access->data);
    switch (access->map) {
    case FILCH_MAP_WHOLE:
        *first = 0;
        *last = extent;
        break;
    case FILCH_MAP_AFFINE: {
        uint64_t from = access->offset + access->scale * lo;
        uint64_t to = access->offset + access->scale * hi;
        *first = from > access->before ? from - access->before : 0;
        *last = extent - to > access->after ? to + access->after : extent;
        break;
    }
    case FILCH_MAP_CALLBACK:
        *first = *last = 0;
        access->fn(lo, hi, first, last, access->user);
        break;
    }
}

const filch_batch_access *fl_batch_access(const fl_batch *batch, uint32_t access)
{
    return &batch->accesses[access];
}

void fl_batch_reach_of(const fl_batch *batch, uint32_t access, uint64_t *first, uint64_t *last)
{
    uint64_t extent = fl_data_extent(batch->accesses[access].data);
    map_items(&batch->accesses[access], 0, batch->n, first, last);
    *last = *last < extent ? *last : extent;
    *first = *first < *last ? *first : *last;
}

/* Tells whether a callback's answer lies in the handle. */
static bool is_inside(const filch_batch_access *access, uint64_t first, uint64_t last)
{
    return first <= last && last <= fl_data_extent(access->data);
}

/* Reports two ranges of items that would write common elements; error null: no report. */
static filch_status tell_overlap(const filch_batch_access *access, uint32_t i,
                                 const uint64_t items[2][2], const uint64_t elements[2][2],
                                 filch_error *error)
{
    return fl_error_fill(error, (fl_fault){.status = FILCH_ALIAS, .label = access->data->label},
                         "access %u: items [%" PRIu64 ", %" PRIu64 ") and [%" PRIu64 ", %" PRIu64
                         ") would both write: they map to elements [%" PRIu64 ", %" PRIu64
                         ") and [%" PRIu64 ", %" PRIu64 ")",
                         i, items[0][0], items[0][1], items[1][0], items[1][1], elements[0][0],
                         elements[0][1], elements[1][0], elements[1][1]);
}

/* Checks whether a written callback mapping avoids the elements of both neighbours of [lo, hi). */
static filch_status check_neighbours(const fl_batch *batch, uint32_t i, uint64_t lo, uint64_t hi,
                                     filch_error *error)
{
    const filch_batch_access *access = &batch->accesses[i];
    uint64_t own[2];
    map_items(access, lo, hi, &own[0], &own[1]);
    for (int side = 0; side < 2; ++side) {
        if (side == 0 ? lo == 0 : hi >= batch->n) {
            continue;
        }
        uint64_t from = side == 0 ? lo - 1 : hi, other[2];
        map_items(access, from, from + 1, &other[0], &other[1]);
        if (other[0] < own[1] && own[0] < other[1]) {
            const uint64_t items[2][2] = {{lo, hi}, {from, from + 1}};
            const uint64_t elements[2][2] = {{own[0], own[1]}, {other[0], other[1]}};
            return tell_overlap(access, i, items, elements, error);
        }
    }
    return FILCH_OK;
}

/* Checks whether a callback's answer for [lo, hi) is usable. */
static filch_status check_answer(const fl_batch *batch, uint32_t i, uint64_t lo, uint64_t hi,
                                 filch_error *error)
{
    const filch_batch_access *access = &batch->accesses[i];
    const filch_data *data = access->data;
    uint64_t first, last;
    map_items(access, lo, hi, &first, &last);
    if (!is_inside(access, first, last)) {
        fl_fault fault = {.status = FILCH_INVALID_ARGUMENT, .label = data->label};
        char past[64] = "a reversed range";
        if (first <= last) {
            snprintf(past, sizeof past, "past the %" PRIu64 " of the handle", fl_data_extent(data));
        }
        return fl_error_fill(error, fault,
                             "access %u: items [%" PRIu64 ", %" PRIu64 ") map to elements [%" PRIu64
                             ", %" PRIu64 "), %s",
                             i, lo, hi, first, last, past);
    }
    return (access->mode & FILCH_WRITE) != 0 ? check_neighbours(batch, i, lo, hi, error) : FILCH_OK;
}

filch_status fl_batch_check(const fl_batch *batch, uint64_t lo, uint64_t hi, filch_error *error)
{
    filch_status status = FILCH_OK;
    for (uint32_t i = 0; i < batch->access_count && status == FILCH_OK; ++i) {
        if (batch->accesses[i].map == FILCH_MAP_CALLBACK) {
            status = check_answer(batch, i, lo, hi, error);
        }
    }
    return status;
}

bool fl_batch_views(const fl_batch *batch, uint64_t lo, uint64_t hi, filch_view *views)
{
    for (uint32_t i = 0; i < batch->access_count; ++i) {
        const filch_batch_access *access = &batch->accesses[i];
        uint64_t first, last;
        map_items(access, lo, hi, &first, &last);
        if (access->map == FILCH_MAP_CALLBACK) {
            if (check_answer(batch, i, lo, hi, NULL) != FILCH_OK) {
                return false;
            }
        }
        views[i] = fl_data_range_view(access->data, first, last);
    }
    return true;
}

uint64_t fl_batch_bytes(const fl_batch *batch, uint32_t lo, uint32_t hi, uint32_t place,
                        uint64_t *whole)
{
    uint64_t first, last, lo_item, hi_item, bytes = 0;
    *whole = 0;
    fl_batch_range(batch, lo, hi, &lo_item, &hi_item);
    for (uint32_t i = 0; i < batch->access_count; ++i) {
        const filch_batch_access *access = &batch->accesses[i];
        map_items(access, lo_item, hi_item, &first, &last);
        if (!is_inside(access, first, last) || access->data->home == place) {
            continue; /* running the chunk reports a callback's mistake */
        }
        filch_view view = fl_data_range_view(access->data, first, last);
        *(access->map == FILCH_MAP_WHOLE ? whole : &bytes) += view.rows * view.cols * view.element;
    }
    return bytes;
}

void fl_batch_operands(const fl_batch *batch, uint64_t lo, uint64_t hi, filch_view *views,
                       fl_operand *operands)
{
    for (uint32_t i = 0; i < batch->access_count; ++i) {
        const filch_batch_access *access = &batch->accesses[i];
        operands[i] = (fl_operand){
            .data = access->data,
            .view = &views[i],
            .mode = (uint32_t)access->mode,
            .is_final = !access->data->is_managed,
            .is_chunk = true,
            .is_whole = access->map == FILCH_MAP_WHOLE,
        };
        map_items(access, lo, hi, &operands[i].first, &operands[i].last);
    }
}

static uint64_t greatest_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static filch_status fail(fl_core *core, filch_status status, uint32_t i, const char *label,
                         const char *what)
{
    return fl_core_fail(core, status, SUBMIT, label, "access %u: %s", i, what);
}

/* Tells whether an element along the divided axis begins a tile, or is the end of the last tile. */
static bool is_start(const filch_data *data, uint64_t element)
{
    uint64_t extent = fl_data_extent(data);
    uint32_t tile, end;
    if (element >= extent) {
        return element == extent;
    }
    fl_data_tiles_between(data, element, element + 1, &tile, &end);
    return fl_data_axis_start(data, tile) == element;
}

/* Checks whether a written range consists of whole tiles. */
static filch_status check_ends(fl_core *core, const filch_batch_access *access, uint32_t i,
                               uint64_t n)
{
    const filch_data *data = access->data;
    uint64_t first = access->offset, last = access->offset + access->scale * n;
    /* Chunks of a streamed handle are copied by themselves. Otherwise a memory node holds whole
     * tiles. */
    bool is_loose = fl_data_is_streamed(data) || core->places->count == 1;
    if (is_start(data, first) && (is_loose || is_start(data, last))) {
        return FILCH_OK;
    }
    bool begins = !is_start(data, first);
    char size[48] = "tile";
    if (fl_data_tile_extent(data) != 0) {
        snprintf(size, sizeof size, "tile of %" PRIu64 " elements", fl_data_tile_extent(data));
    }
    return fl_core_fail(core, FILCH_INVALID_ARGUMENT, SUBMIT, data->label,
                        "access %u: the written range %s at element %" PRIu64 ", where no %s does",
                        i, begins ? "starts" : "ends", begins ? first : last, size);
}

/* Tells whether a written access has tiles of unlike sizes: its cuts are listed, not computed. */
static bool is_uneven(const filch_batch_access *access)
{
    return access->map == FILCH_MAP_AFFINE && (access->mode & FILCH_WRITE) != 0 &&
           fl_data_tile_extent(access->data) == 0 && fl_data_axis_tiles(access->data) > 1;
}

static filch_status check_affine(fl_core *core, const filch_batch_access *access, uint32_t i,
                                 uint64_t n, uint64_t *grain)
{
    const char *label = access->data->label;
    uint64_t extent = fl_data_extent(access->data);
    bool writes = (access->mode & FILCH_WRITE) != 0;
    if (access->scale == 0) {
        return fail(core, FILCH_INVALID_ARGUMENT, i, label, "scale is 0");
    }
    if (n > (UINT64_MAX - access->offset) / access->scale) {
        return fail(core, FILCH_OVERFLOW, i, label, "offset + scale * n overflows");
    }
    if (access->offset + access->scale * n > extent) {
        return fl_core_fail(
            core, FILCH_INVALID_ARGUMENT, SUBMIT, label,
            "access %u: offset + scale * n is %" PRIu64 ", past the %" PRIu64 " elements of %s%s%s",
            i, access->offset + access->scale * n, extent, FL_NAME("", label, "the handle"));
    }
    if (!writes) {
        return FILCH_OK;
    }
    if (access->before != 0 || access->after != 0) {
        return fail(core, FILCH_ALIAS, i, label, "a written range cannot have a halo");
    }
    uint64_t tile = fl_data_tile_extent(access->data);
    if (fl_data_axis_tiles(access->data) == 1) {
        /* Not tiled along the axis: every cut is valid, as long as every chunk's results end up in
         * a common memory node. */
        return fl_data_is_streamed(access->data) || core->places->count == 1
                   ? FILCH_OK
                   : fail(core, FILCH_UNSUPPORTED, i, label,
                          "a managed handle that a batch writes must be tiled along its items");
    }
    filch_status status = check_ends(core, access, i, n);
    if (status != FILCH_OK || tile == 0) {
        return status;
    }
    uint64_t step = tile / greatest_divisor(tile, access->scale);
    uint64_t factor = step / greatest_divisor(step, *grain);
    if (*grain > MOST_ITEMS / factor) {
        return fail(core, FILCH_OVERFLOW, i, label, "no grain below 2^63 ends at its tiles");
    }
    *grain *= factor;
    return FILCH_OK;
}

/* Searches evenly spaced grains for mappings that return to earlier elements, such as i % k.
 * Neighbours are checked at every cut. */
static filch_status check_far(const fl_batch *batch, uint32_t i, filch_error *error)
{
    const filch_batch_access *access = &batch->accesses[i];
    uint64_t items[FAR_CHECKS][2], elements[FAR_CHECKS][2];
    uint32_t checks = batch->grains < FAR_CHECKS ? batch->grains : FAR_CHECKS;
    for (uint32_t c = 0; c < checks; ++c) {
        uint32_t g = (uint32_t)((uint64_t)c * batch->grains / checks);
        fl_batch_range(batch, g, g + 1, &items[c][0], &items[c][1]);
        map_items(access, items[c][0], items[c][1], &elements[c][0], &elements[c][1]);
        for (uint32_t other = 0; other < c; ++other) {
            if (elements[other][0] < elements[c][1] && elements[c][0] < elements[other][1]) {
                const uint64_t two[2][2] = {{items[other][0], items[other][1]},
                                            {items[c][0], items[c][1]}};
                const uint64_t at[2][2] = {{elements[other][0], elements[other][1]},
                                           {elements[c][0], elements[c][1]}};
                return tell_overlap(access, i, two, at, error);
            }
        }
    }
    return FILCH_OK;
}

static filch_status check_callback(fl_core *core, const fl_batch *batch,
                                   const filch_batch_access *access, uint32_t i)
{
    bool writes = (access->mode & FILCH_WRITE) != 0;
    if (writes && !fl_data_is_streamed(access->data) && core->places->count != 1) {
        return fail(core, FILCH_UNSUPPORTED, i, access->data->label,
                    "a callback cannot map what a batch writes of a managed handle");
    }
    uint32_t checks = batch->grains < CHECKED_CUTS ? batch->grains : CHECKED_CUTS;
    filch_error error = FILCH_ERROR_INIT;
    filch_status status = FILCH_OK;
    for (uint32_t c = 0; c < checks && status == FILCH_OK; ++c) {
        uint32_t g = (uint32_t)((uint64_t)c * batch->grains / checks);
        uint64_t lo, hi;
        fl_batch_range(batch, g, g + 1, &lo, &hi);
        status = check_answer(batch, i, lo, hi, &error);
    }
    if (writes && status == FILCH_OK) {
        status = check_far(batch, i, &error);
    }
    return status == FILCH_OK ? FILCH_OK
                              : fl_core_fail(core, status, SUBMIT, error.label, "%s", error.text);
}

static filch_status check_handle(fl_core *core, const filch_batch_access *access, uint32_t i)
{
    filch_status status = fl_object_standing(core, access->data, FL_MAGIC_DATA);
    if (status != FILCH_OK) {
        const fl_argument argument = fl_data_argument(access->data, "the data handle");
        char text[FL_ARGUMENT_TEXT];
        return fail(core, status, i, status == FILCH_WRONG_RUNTIME ? argument.name : NULL,
                    fl_argument_explain(&argument, text));
    }
    const char *label = access->data->label;
    status = fl_data_refuse_inner(access->data, SUBMIT);
    status = status == FILCH_OK ? fl_data_refuse_csr(access->data, SUBMIT) : status;
    if (status != FILCH_OK) {
        return status;
    }
    if (access->mode < FILCH_READ || access->mode > FILCH_READWRITE) {
        return fail(core, FILCH_INVALID_ARGUMENT, i, label,
                    access->mode == FILCH_COMMUTE || access->mode == FILCH_REDUCE
                        ? "only tasks of graphs commute or reduce"
                        : "unknown mode");
    }
    if ((unsigned)access->map > FILCH_MAP_CALLBACK) {
        return fail(core, FILCH_INVALID_ARGUMENT, i, label, "unknown map");
    }
    if (access->map == FILCH_MAP_CALLBACK && access->fn == NULL) {
        return fail(core, FILCH_INVALID_ARGUMENT, i, label, "the map's function is null");
    }
    if (access->map == FILCH_MAP_WHOLE && (access->mode & FILCH_WRITE) != 0) {
        return fail(core, FILCH_ALIAS, i, label, "every chunk would write the whole handle");
    }
    return FILCH_OK;
}

/* Refuses two accesses to a handle if either writes. */
static filch_status check_pairs(fl_core *core, const filch_batch_desc *desc)
{
    for (uint32_t i = 0; i < desc->access_count; ++i) {
        for (uint32_t j = 0; j < i; ++j) {
            const filch_batch_access *a = &desc->accesses[i], *b = &desc->accesses[j];
            if (a->data == b->data && ((a->mode | b->mode) & FILCH_WRITE) != 0) {
                return fail(core, FILCH_ALIAS, i, a->data->label,
                            "the handle is named twice, once to write it");
            }
        }
    }
    return FILCH_OK;
}

static filch_status check_desc(fl_core *core, const filch_batch_desc *desc)
{
    if (desc == NULL) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, SUBMIT, NULL, "the descriptor is null");
    }
    filch_status status =
        fl_size_check(core, desc, sizeof *desc, sizeof *desc, "the descriptor", SUBMIT, NULL);
    if (status != FILCH_OK) {
        return status;
    }
    const filch_codelet *codelet = desc->codelet;
    const fl_argument argument = fl_codelet_argument(codelet, "the codelet");
    status = fl_argument_check(core, &argument, SUBMIT, NULL);
    if (status != FILCH_OK) {
        return status;
    }
    if (codelet->device_count == 0) {
        return fl_core_fail(core, FILCH_NO_DEVICE, SUBMIT, codelet->name,
                            "no device of this runtime can run the codelet");
    }
    const char *wrong = codelet->arg_size != 0 && desc->args == NULL ? "arguments are missing"
                        : codelet->arg_size == 0 && desc->args != NULL
                            ? "the codelet's arg_size is 0, but there are arguments"
                        : desc->reserved != 0          ? "reserved is not 0"
                        : fl_codelet_may_pend(codelet) ? "chunks of a batch cannot pend"
                                                       : NULL;
    if (wrong != NULL) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, SUBMIT, codelet->name, "%s", wrong);
    }
    if (desc->access_count > 255 || (desc->access_count != 0 && desc->accesses == NULL)) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, SUBMIT, codelet->name, "%u accesses, %s",
                            desc->access_count,
                            desc->access_count > 255 ? "of at most 255" : "but the list is null");
    }
    return desc->n < MOST_ITEMS && desc->grain < MOST_ITEMS
               ? FILCH_OK
               : fl_core_fail(core, FILCH_OVERFLOW, SUBMIT, codelet->name,
                              "n or grain is 2^63 or more");
}

static size_t padded(size_t bytes)
{
    return (bytes + 15) & ~(size_t)15;
}

/* Returns the tiles used by an access. */
static fl_tiles tiles_of(const fl_batch *batch, uint32_t i)
{
    const filch_batch_access *access = &batch->accesses[i];
    const filch_data *data = access->data;
    fl_tiles tiles = fl_data_all_tiles(data);
    uint64_t first, last;
    uint32_t tile, end;
    if (access->map == FILCH_MAP_CALLBACK) {
        return tiles; /* the callback's answers are not checked yet */
    }
    fl_batch_reach_of(batch, i, &first, &last);
    fl_data_tiles_between(data, first, last, &tile, &end);
    if (data->cols == 1) {
        tiles.row0 = tile;
        tiles.row1 = end;
    } else {
        tiles.col0 = tile;
        tiles.col1 = end;
    }
    return tiles;
}

static void note_tiles(const fl_batch *batch, uint32_t i, fl_queued_access *use)
{
    fl_tiles tiles = tiles_of(batch, i);
    fl_tiles_grow(&use->used, tiles);
    if ((batch->accesses[i].mode & FILCH_WRITE) != 0) {
        fl_tiles_grow(&use->wrote, tiles);
    }
}

/* Allocates a single block: the batch, its accesses, its uses, the set of devices, the stretches of
 * a rest, its arguments. */
fl_batch *fl_batch_make(fl_core *core, const filch_batch_desc *desc, uint64_t items,
                        uint32_t stretches, const uint64_t *devices)
{
    size_t accesses = padded(sizeof(fl_batch));
    size_t uses = accesses + padded(desc->access_count * sizeof(filch_batch_access));
    size_t set = uses + padded(desc->access_count * sizeof(fl_queued_access));
    size_t stretched = set + (devices != NULL ? sizeof desc->codelet->runs_on : 0);
    size_t args = stretched + padded(stretches * sizeof(fl_stretch));
    size_t bytes = args + desc->codelet->arg_size;
    char *at = fl_alloc_aligned(&core->memory, bytes, 16);
    if (at == NULL) {
        return NULL;
    }
    memset(at, 0, bytes);
    fl_batch *batch = (fl_batch *)(void *)at;
    batch->bytes = bytes;
    batch->codelet = desc->codelet;
    batch->devices = desc->codelet->runs_on;
    if (devices != NULL) {
        batch->devices = memcpy(at + set, devices, sizeof desc->codelet->runs_on);
    }
    batch->n = desc->n;
    batch->items = items;
    batch->access_count = desc->access_count;
    batch->accesses = (filch_batch_access *)(void *)(at + accesses);
    batch->uses = (fl_queued_access *)(void *)(at + uses);
    batch->stretch_count = stretches;
    batch->stretches = (fl_stretch *)(void *)(at + stretched);
    if (desc->access_count != 0) {
        memcpy(batch->accesses, desc->accesses, desc->access_count * sizeof *desc->accesses);
    }
    if (desc->codelet->arg_size != 0) {
        batch->args = at + args;
        memcpy(batch->args, desc->args, desc->codelet->arg_size);
    }
    /* An empty batch completes at once, and waits for no job. */
    for (uint32_t i = 0; i < desc->access_count && items != 0; ++i) {
        size_t u = 0;
        while (u < batch->use_count && batch->uses[u].data != desc->accesses[i].data) {
            ++u;
        }
        batch->use_count += u == batch->use_count;
        batch->uses[u].data = desc->accesses[i].data;
        batch->uses[u].writes |= (desc->accesses[i].mode & FILCH_WRITE) != 0;
        note_tiles(batch, i, &batch->uses[u]);
    }
    return batch;
}

/* Tells whether, for every written access with unlike tiles, item begins a tile. */
static bool is_cut(const filch_batch_desc *desc, uint64_t item)
{
    for (uint32_t i = 0; i < desc->access_count; ++i) {
        const filch_batch_access *access = &desc->accesses[i];
        if (is_uneven(access) && !is_start(access->data, access->offset + access->scale * item)) {
            return false;
        }
    }
    return true;
}

/* Lists the positions for cuts, by the tiles of a written access with unlike tiles. False: no
 * memory. */
static bool list_bounds(fl_core *core, const filch_batch_desc *desc,
                        const filch_batch_access *uneven, fl_batch *batch)
{
    const filch_data *data = uneven->data;
    uint32_t tiles = fl_data_axis_tiles(data), count = 0;
    uint64_t *bounds = fl_alloc(&core->memory, ((size_t)tiles + 2) * sizeof *bounds);
    if (bounds == NULL) {
        return false;
    }
    bounds[count++] = 0;
    for (uint32_t tile = 0; tile < tiles; ++tile) {
        uint64_t start = fl_data_axis_start(data, tile);
        uint64_t item = start > uneven->offset ? (start - uneven->offset) / uneven->scale : 0;
        if (item != 0 && item < desc->n && item % batch->grain == 0 && item > bounds[count - 1] &&
            is_cut(desc, item)) {
            bounds[count++] = item;
        }
    }
    batch->cuts = count - (desc->n == 0);
    bounds[batch->cuts] = desc->n;
    /* Allocate the exact size: fl_batch_free computes the size from the count. */
    batch->bounds = fl_alloc(&core->memory, ((size_t)batch->cuts + 1) * sizeof *bounds);
    if (batch->bounds != NULL) {
        memcpy(batch->bounds, bounds, ((size_t)batch->cuts + 1) * sizeof *bounds);
    }
    fl_free(&core->memory, bounds, ((size_t)tiles + 2) * sizeof *bounds);
    return batch->bounds != NULL;
}

/* Cuts the batch into grains. False: no memory. */
static bool cut(fl_core *core, const filch_batch_desc *desc, uint64_t grain, fl_batch *batch)
{
    bool fits = true;
    batch->grain = grain;
    batch->cuts = (uint32_t)(desc->n / grain + (desc->n % grain != 0));
    for (uint32_t i = 0; i < desc->access_count && batch->bounds == NULL && fits; ++i) {
        if (is_uneven(&desc->accesses[i])) {
            fits = list_bounds(core, desc, &desc->accesses[i], batch);
        }
    }
    batch->grains = batch->cuts;
    if (batch->cuts == 1 && (grain > desc->grain || batch->bounds != NULL) && desc->n > 1 &&
        core->scheduler->device_count > 1) {
        fl_log_write(&core->log, FILCH_LOG_WARNING,
                     "a batch of '%s' cannot be divided: its %" PRIu64
                     " items end between written tiles nowhere but at the end",
                     desc->codelet->name, desc->n);
    }
    return fits;
}

/* --- Capacity --- */

static uint64_t grain_need(const void *what, uint32_t place)
{
    uint64_t whole, bytes = fl_batch_bytes(what, 0, 1, place, &whole);
    return bytes + whole;
}

/* Checks the first grain as fl_capacity_task checks a task; no chunk is smaller than a grain.
 * Restricts the batch to the devices with room. */
static filch_status check_capacity(fl_core *core, fl_batch *batch, const char *call)
{
    const fl_fitting fitting = {batch->devices, grain_need, batch};
    uint64_t needs, most, first, last;
    if (core->places->count == 1 || batch->grains == 0) {
        return FILCH_OK;
    }
    if (fl_capacity_fits(core, &fitting, batch->fitting, &needs, &most)) {
        batch->devices = batch->fitting;
        return FILCH_OK;
    }
    fl_batch_range(batch, 0, 1, &first, &last);
    return fl_core_fail(core, FILCH_NO_DEVICE_MEMORY, call, batch->codelet->name,
                        "%" PRIu64 " items of '%s', than which no chunk has fewer, need %" PRIu64
                        " bytes, the largest device that can run them has %" PRIu64,
                        last - first, batch->codelet->name, needs, most);
}

/* --- Submission --- */

static filch_status prepare(fl_core *core, const filch_batch_desc *desc, fl_batch **made)
{
    uint64_t grain = desc->grain != 0 ? desc->grain : 1;
    filch_status status = FILCH_OK;
    for (uint32_t i = 0; i < desc->access_count && status == FILCH_OK; ++i) {
        status = check_handle(core, &desc->accesses[i], i);
        if (status == FILCH_OK && desc->accesses[i].map == FILCH_MAP_AFFINE) {
            status = check_affine(core, &desc->accesses[i], i, desc->n, &grain);
        }
    }
    if (status == FILCH_OK) {
        status = check_pairs(core, desc);
    }
    if (status != FILCH_OK) {
        return status;
    }
    while (desc->n / grain >= UINT32_MAX) {
        grain *= 2; /* cannot overflow: n < 2^63 is a bound */
    }
    fl_batch *batch = fl_batch_make(core, desc, desc->n, 0, NULL);
    if (batch == NULL || !cut(core, desc, grain, batch)) {
        fl_batch_free(core, batch);
        return fl_core_fail(core, FILCH_OUT_OF_MEMORY, SUBMIT, desc->codelet->name,
                            "no memory for a batch");
    }
    for (uint32_t i = 0; i < desc->access_count && status == FILCH_OK; ++i) {
        if (desc->accesses[i].map == FILCH_MAP_CALLBACK) {
            status = check_callback(core, batch, &desc->accesses[i], i);
        }
    }
    status = status == FILCH_OK ? check_capacity(core, batch, SUBMIT) : status;
    if (status != FILCH_OK) {
        fl_batch_free(core, batch);
        return status;
    }
    *made = batch;
    return FILCH_OK;
}

/* Allocates host buffers for the handles. A runtime with the host's memory alone never locates
 * contents before a chunk runs. */
static filch_status need_hosts(const fl_core *core, const fl_batch *batch, filch_error *error)
{
    filch_status status = FILCH_OK;
    for (size_t u = 0; u < batch->use_count && core->places->count == 1; ++u) {
        status = status == FILCH_OK ? fl_data_need_host(batch->uses[u].data, error) : status;
    }
    return status;
}

filch_status fl_batch_start(fl_core *core, fl_batch *batch, const filch_submit_desc *submit,
                            const char *call, bool is_lent, filch_job **job)
{
    const filch_codelet *codelet = batch->codelet;
    filch_error error = FILCH_ERROR_INIT;
    filch_status status = need_hosts(core, batch, &error);
    if (status != FILCH_OK) {
        fl_batch_free(core, batch);
        return fl_core_fail(core, status, call, error.label, "%s", error.text);
    }
    filch_job *made = fl_job_new(core, submit, codelet->name);
    if (made == NULL) {
        fl_batch_free(core, batch);
        return fl_core_fail(core, FILCH_OUT_OF_MEMORY, call, codelet->name, "no memory for a job");
    }
    made->batch = batch;
    status = fl_job_take_events(made, submit, call);
    if (status != FILCH_OK) {
        fl_job_discard(made);
        return status;
    }
    fl_store_relaxed(&made->total, batch->items);
    /* An empty batch counts one, taken back when it begins. */
    made->is_vacant = batch->grains == 0;
    fl_store_relaxed(&made->remaining, batch->grains != 0 ? (int64_t)batch->grains : 1);
    fl_mutex_lock(&core->lock);
    status = fl_job_enqueue(made, &error);
    fl_mutex_unlock(&core->lock);
    if (status != FILCH_OK) {
        fl_job_discard(made);
        return fl_core_fail(core, status, call, error.label, "%s", error.text);
    }
    fl_job_lend(made, is_lent, job);
    fl_job_submit(made); /* on return the job may be complete, and its object reused */
    return FILCH_OK;
}

filch_status fl_batch_submit(fl_core *core, const filch_batch_desc *desc,
                             const filch_submit_desc *submit, bool is_lent, filch_job **job)
{
    fl_batch *batch = NULL;
    filch_submit_desc full;
    filch_status status = fl_submit_check(core, submit, SUBMIT, NULL, &full);
    status = status == FILCH_OK ? check_desc(core, desc) : status;
    status = status == FILCH_OK ? prepare(core, desc, &batch) : status;
    return status == FILCH_OK ? fl_batch_start(core, batch, &full, SUBMIT, is_lent, job) : status;
}

filch_status filch_batch_submit(filch_runtime *runtime, const filch_batch_desc *desc,
                                const filch_submit_desc *submit, filch_job **job)
{
    filch_status status = fl_object_check(runtime, FL_MAGIC_RUNTIME);
    return status == FILCH_OK ? fl_batch_submit(fl_core_of(runtime), desc, submit, true, job)
                              : status;
}
