/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/sim_parts.h"

#include "sim/sim_edges.h"
#include "support/fail.h"

#include <stdlib.h>
#include <string.h>

/* Where in the file something is wrong. */
typedef struct place {
    const char *path, *what; /* the list … */
    size_t index;            /* … and the element */
    filch_error *error;
} place;

static filch_status wrong(const place *p, const char *text)
{
    return bench_fail(p->error, FILCH_DATA, p->path, 0, "otherData, %s, element %zu: %s", p->what,
                      p->index, text);
}

static filch_status no_memory(const place *p)
{
    return bench_fail(p->error, FILCH_OUT_OF_MEMORY, p->path, 0, "no memory for the trace");
}

/* A list of "otherData", which may be missing. */
static filch_status list_of(const json_t *other, place *p, const json_t **list)
{
    *list = json_object_get(other, p->what);
    return !*list || json_is_array(*list)
               ? FILCH_OK
               : bench_fail(p->error, FILCH_DATA, p->path, 0, "otherData, %s: is no list", p->what);
}

/* Makes zeroed elements of so many bytes for a list, and one more; *list null: there is no list. */
static filch_status list_open(const json_t *other, place *p, size_t size, const json_t **list,
                              void **elements)
{
    filch_status status = list_of(other, p, list);
    if (status != FILCH_OK)
        return status;
    *elements = calloc(json_array_size(*list) + 1, size);
    return *elements ? FILCH_OK : no_memory(p);
}

static filch_status each_read(bench_sim_record *record, const json_t *list, place *p,
                              filch_status (*read)(bench_sim_record *record, json_t *object,
                                                   const place *p))
{
    filch_status status = FILCH_OK;
    json_t *object;
    json_array_foreach(list, p->index, object)
    {
        if (status == FILCH_OK)
            status = read(record, object, p);
    }
    return status;
}

/* --- Handles --- */

/* Sizes along an axis: of cuts, which add up, or of one size. */
static filch_status axis_read(const place *p, const json_t *cuts, json_int_t extent,
                              json_int_t tile, uint64_t **sizes, uint32_t *count, uint64_t *tiles)
{
    uint64_t left = (uint64_t)extent;
    size_t index;
    const json_t *size;
    if (!cuts) {
        *tiles = tile > 0 ? ((uint64_t)extent + (uint64_t)tile - 1) / (uint64_t)tile : 0;
        return tile > 0 && tile <= extent ? FILCH_OK
                                          : wrong(p, "its tiles are larger than it, or nothing");
    }
    if (!json_is_array(cuts) || json_array_size(cuts) == 0 || json_array_size(cuts) >= UINT32_MAX)
        return wrong(p, "its cuts are no list");
    *sizes = calloc(json_array_size(cuts), sizeof **sizes);
    if (!*sizes)
        return no_memory(p);
    json_array_foreach(cuts, index, size)
    {
        json_int_t value = json_integer_value(size);
        if (value < 1 || (uint64_t)value > left)
            return wrong(p, "its cuts do not add up to its size");
        left -= (uint64_t)value;
        (*sizes)[index] = (uint64_t)value;
    }
    *count = (uint32_t)json_array_size(cuts);
    *tiles = *count;
    return left == 0 ? FILCH_OK : wrong(p, "its cuts do not add up to its size");
}

static filch_status handle_read(bench_sim_record *record, json_t *object, const place *p)
{
    bench_sim_handle *handle = &record->handles[record->handle_count++];
    json_error_t problem;
    json_int_t element, rows, cols, tile_rows = 0, tile_cols = 0, resident = 0;
    json_t *row_cuts = NULL, *col_cuts = NULL;
    int managed = 0, on_device = 0;
    uint64_t down = 0, across = 0, bytes;
    if (json_unpack_ex(object, &problem, 0, "{s:I,s:I,s:I,s?I,s?I,s?o,s?o,s:b,s?b,s?I}", "element",
                       &element, "rows", &rows, "cols", &cols, "tile_rows", &tile_rows, "tile_cols",
                       &tile_cols, "row_cuts", &row_cuts, "col_cuts", &col_cuts, "managed",
                       &managed, "on_device", &on_device, "resident", &resident) != 0)
        return wrong(p, problem.text);
    if (element < 1 || rows < 1 || cols < 1 || resident < 0 ||
        __builtin_mul_overflow((uint64_t)element, (uint64_t)rows, &bytes) ||
        __builtin_mul_overflow(bytes, (uint64_t)cols, &bytes) || bytes > PTRDIFF_MAX)
        return wrong(p, "it has no such size");
    *handle = (bench_sim_handle){.element = (uint64_t)element,
                                 .rows = (uint64_t)rows,
                                 .cols = (uint64_t)cols,
                                 .tile_rows = row_cuts ? 0 : (uint64_t)tile_rows,
                                 .tile_cols = col_cuts ? 0 : (uint64_t)tile_cols};
    filch_status status =
        axis_read(p, row_cuts, rows, tile_rows, &handle->row_cuts, &handle->row_cut_count, &down);
    if (status == FILCH_OK)
        status = axis_read(p, col_cuts, cols, tile_cols, &handle->col_cuts, &handle->col_cut_count,
                           &across);
    if (status != FILCH_OK)
        return status;
    if (down >= UINT32_MAX || across >= UINT32_MAX || down * across >= UINT32_MAX)
        return wrong(p, "it has too many tiles");
    handle->tiles_down = (uint32_t)down;
    handle->tiles = (uint32_t)(down * across);
    /* What is a device's own counts as there, too. */
    handle->is_managed = managed || on_device;
    handle->is_resident = on_device || (managed && 2 * (uint64_t)resident > handle->tiles);
    return FILCH_OK;
}

static filch_status handles_read(bench_sim_record *record, const json_t *other, const char *path,
                                 filch_error *error)
{
    place p = {.path = path, .what = "handles", .error = error};
    const json_t *list = NULL;
    void *elements = NULL;
    filch_status status = list_open(other, &p, sizeof *record->handles, &list, &elements);
    record->handles = elements;
    return status == FILCH_OK ? each_read(record, list, &p, handle_read) : status;
}

/* --- Batches --- */

static bool is_mode(json_int_t mode, bool of_batch)
{
    return mode == FILCH_READ || mode == FILCH_WRITE || mode == FILCH_READWRITE ||
           (!of_batch && (mode == FILCH_SCRATCH || mode == FILCH_COMMUTE || mode == FILCH_REDUCE));
}

/* *is_known: false where it is by a function, of which the trace knows nothing. */
static filch_status map_read(const bench_sim_record *record, bench_sim_map *map, json_t *object,
                             const place *p, bool *is_known)
{
    json_error_t problem;
    json_int_t handle, mode, offset = 0, scale = 1, before = 0, after = 0;
    const char *kind;
    if (json_unpack_ex(object, &problem, 0, "{s:I,s:I,s:s,s?I,s?I,s?I,s?I}", "handle", &handle,
                       "mode", &mode, "map", &kind, "offset", &offset, "scale", &scale, "before",
                       &before, "after", &after) != 0)
        return wrong(p, problem.text);
    if (handle < 0 || (size_t)handle >= record->handle_count)
        return wrong(p, "it uses a handle that is not there");
    if (!is_mode(mode, true))
        return wrong(p, "it uses a handle in a mode that does not exist");
    if (offset < 0 || scale < 1 || before < 0 || after < 0)
        return wrong(p, "it maps items to no elements");
    if (strcmp(kind, "whole") != 0 && strcmp(kind, "affine") != 0)
        *is_known = false;
    *map = (bench_sim_map){.handle = (uint32_t)handle,
                           .mode = (filch_access_mode)mode,
                           .is_whole = strcmp(kind, "whole") == 0,
                           .offset = (uint64_t)offset,
                           .scale = (uint64_t)scale,
                           .before = (uint64_t)before,
                           .after = (uint64_t)after};
    return FILCH_OK;
}

static filch_status batch_read(bench_sim_record *record, json_t *object, const place *p)
{
    bench_sim_batch *batch = &record->batches[record->batch_count++];
    json_error_t problem;
    json_int_t number, n, grain;
    json_t *accesses = NULL, *access;
    size_t index;
    filch_status status = FILCH_OK;
    if (json_unpack_ex(object, &problem, 0, "{s:I,s:I,s:I,s?o}", "job", &number, "items", &n,
                       "grain", &grain, "accesses", &accesses) != 0)
        return wrong(p, problem.text);
    if (number < 1 || n < 0 || grain < 1)
        return wrong(p, "its job, items or grain cannot be");
    if (accesses && !json_is_array(accesses))
        return wrong(p, "its accesses are no list");
    *batch = (bench_sim_batch){.number = (uint64_t)number,
                               .n = (uint64_t)n,
                               .grain = (uint64_t)grain,
                               .is_known = accesses != NULL};
    batch->maps = calloc(json_array_size(accesses) + 1, sizeof *batch->maps);
    if (!batch->maps)
        return no_memory(p);
    json_array_foreach(accesses, index, access)
    {
        if (status == FILCH_OK)
            status = map_read(record, &batch->maps[batch->count++], access, p, &batch->is_known);
    }
    return status;
}

static int by_number(const void *a, const void *b)
{
    const bench_sim_batch *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

static filch_status batches_read(bench_sim_record *record, const json_t *other, const char *path,
                                 filch_error *error)
{
    place p = {.path = path, .what = "batches", .error = error};
    const json_t *list = NULL;
    void *elements = NULL;
    filch_status status = list_open(other, &p, sizeof *record->batches, &list, &elements);
    record->batches = elements;
    status = status == FILCH_OK ? each_read(record, list, &p, batch_read) : status;
    if (elements)
        qsort(record->batches, record->batch_count, sizeof *record->batches, by_number);
    return status;
}

/* --- Graphs --- */

/* Whether a value is a list of lists of whole numbers, one a task; *total: numbers in all of them.
 */
static bool is_by_task(const json_t *lists, size_t count, size_t *total)
{
    size_t index, at;
    const json_t *list, *number;
    *total = 0;
    if (!json_is_array(lists) || json_array_size(lists) != count)
        return false;
    json_array_foreach(lists, index, list)
    {
        if (!json_is_array(list))
            return false;
        json_array_foreach(list, at, number)
        {
            if (!json_is_integer(number))
                return false;
        }
        *total += json_array_size(list);
    }
    return true;
}

static filch_status successors_read(bench_sim_graph *graph, const json_t *lists, const place *p)
{
    const json_t *list, *number;
    size_t index, at, edges;
    graph->count = json_array_size(lists);
    if (graph->count >= UINT32_MAX || !is_by_task(lists, graph->count, &edges))
        return wrong(p, "its successors are no lists of positions");
    graph->begin = calloc(graph->count + 1, sizeof *graph->begin);
    graph->successors = calloc(edges + 1, sizeof *graph->successors);
    if (!graph->begin || !graph->successors)
        return no_memory(p);
    edges = 0;
    json_array_foreach(lists, index, list)
    {
        json_array_foreach(list, at, number)
        {
            json_int_t to = json_integer_value(number);
            if (to < 0 || (size_t)to >= graph->count)
                return wrong(p, "a successor is not there");
            graph->successors[edges++] = (uint32_t)to;
        }
        graph->begin[index + 1] = edges;
    }
    return FILCH_OK;
}

/* The mode of an access to a block has this added, and the block's tile rows and columns follow. */
#define BLOCK_MODE 16
/* The mode of a block with a halo has this added, too, and four more numbers follow. */
#define HALO_MODE 32

/* The rows before and after, and the columns before and after, from position at on. */
static filch_status halo_read(const json_t *list, size_t at, bench_sim_use *use, const place *p)
{
    uint64_t *const to[] = {&use->halo.rows_before, &use->halo.rows_after, &use->halo.cols_before,
                            &use->halo.cols_after};
    use->has_halo = true;
    if (use->mode != FILCH_READ)
        return wrong(p, "a task uses a halo that it does not only read");
    for (size_t k = 0; k < 4; k++) {
        json_int_t number = json_integer_value(json_array_get(list, at + k));
        if (number < 0)
            return wrong(p, "a halo has a negative size");
        *to[k] = (uint64_t)number;
    }
    return FILCH_OK;
}

/* The rows and columns of an access to a block, behind its mode. */
static filch_status block_read(const bench_sim_record *record, const json_t *list, size_t at,
                               bench_sim_use *use, const place *p)
{
    json_int_t rows = json_integer_value(json_array_get(list, at));
    json_int_t cols = json_integer_value(json_array_get(list, at + 1));
    if (use->mode > FILCH_READWRITE)
        return wrong(p, "a task uses a block in a mode that only tiles have");
    const bench_sim_handle *handle = &record->handles[use->handle];
    uint32_t down = handle->tiles_down, across = handle->tiles / handle->tiles_down;
    if (rows < 1 || rows > down - use->tile % down || cols < 1 || cols > across - use->tile / down)
        return wrong(p, "a task uses a block that is not there");
    use->rows = (uint32_t)rows;
    use->cols = (uint32_t)cols;
    return use->has_halo ? halo_read(list, at + 2, use, p) : FILCH_OK;
}

/* Handle, tile and mode of the access whose numbers begin at *at, a block's rows and columns, and
 * its halo. */
static filch_status use_read(const bench_sim_record *record, const json_t *list, size_t *at,
                             bench_sim_use *use, const place *p)
{
    json_int_t handle = json_integer_value(json_array_get(list, *at));
    json_int_t tile = json_integer_value(json_array_get(list, *at + 1));
    json_int_t mode = json_integer_value(json_array_get(list, *at + 2));
    bool has_halo = mode >= BLOCK_MODE + HALO_MODE;
    bool is_block = has_halo || (mode >= BLOCK_MODE && mode < HALO_MODE);
    size_t begin = *at;
    mode -= (is_block ? BLOCK_MODE : 0) + (has_halo ? HALO_MODE : 0);
    *at += has_halo ? 9 : is_block ? 5 : 3;
    if (*at > json_array_size(list))
        return wrong(p, "an access is not of three numbers, a block's five or a halo's nine");
    bool is_scratch = mode == FILCH_SCRATCH;
    if (!is_mode(mode, false))
        return wrong(p, "a task uses a handle in a mode that does not exist");
    if (!is_scratch && (handle < 0 || (size_t)handle >= record->handle_count))
        return wrong(p, "a task uses a handle that is not there");
    if (tile < 0 || tile >= (is_scratch ? UINT32_MAX : record->handles[handle].tiles))
        return wrong(p, "a task uses a tile that is not there");
    *use = (bench_sim_use){.handle = is_scratch ? 0 : (uint32_t)handle,
                           .tile = (uint32_t)tile,
                           .rows = 1,
                           .cols = 1,
                           .mode = (filch_access_mode)mode,
                           .has_halo = has_halo};
    return is_block ? block_read(record, list, begin + 3, use, p) : FILCH_OK;
}

/* An empty list: no task uses anything. */
static filch_status uses_read(const bench_sim_record *record, bench_sim_graph *graph,
                              const json_t *lists, const place *p)
{
    const json_t *list;
    size_t index, count = 0;
    bool is_empty = json_is_array(lists) && json_array_size(lists) == 0;
    if (!is_empty && !is_by_task(lists, graph->count, &count))
        return wrong(p, "its accesses are no lists of numbers, one a task");
    graph->use_begin = calloc(graph->count + 1, sizeof *graph->use_begin);
    graph->uses = calloc(count + 1, sizeof *graph->uses);
    if (!graph->use_begin || !graph->uses)
        return no_memory(p);
    count = 0;
    json_array_foreach(lists, index, list)
    {
        for (size_t at = 0; at < json_array_size(list);) {
            filch_status status = use_read(record, list, &at, &graph->uses[count++], p);
            if (status != FILCH_OK)
                return status;
        }
        graph->use_begin[index + 1] = count;
    }
    return FILCH_OK;
}

static filch_status priorities_read(bench_sim_graph *graph, const json_t *list, const place *p)
{
    size_t index;
    const json_t *number;
    if (!json_is_array(list) || json_array_size(list) != graph->count)
        return wrong(p, "its priorities are no list, one a task");
    graph->priorities = calloc(graph->count + 1, sizeof *graph->priorities);
    if (!graph->priorities)
        return no_memory(p);
    json_array_foreach(list, index, number)
    {
        json_int_t value = json_integer_value(number);
        if (!json_is_integer(number) || value < INT32_MIN || value > (json_int_t)INT32_MAX + 1)
            return wrong(p, "a priority is none");
        graph->priorities[index] = value > INT32_MAX ? INT32_MAX : (int32_t)value;
    }
    return FILCH_OK;
}

static filch_status homes_read(const bench_sim_record *record, bench_sim_graph *graph,
                               const json_t *list, const place *p)
{
    size_t index;
    const json_t *number;
    if (!json_is_array(list) || json_array_size(list) != graph->count)
        return wrong(p, "its homes are no list, one a task");
    graph->homes = calloc(graph->count + 1, sizeof *graph->homes);
    if (!graph->homes)
        return no_memory(p);
    json_array_foreach(list, index, number)
    {
        json_int_t value = json_integer_value(number);
        if (!json_is_integer(number) || value < 0 || value > (json_int_t)record->device_count)
            return wrong(p, "a home is no device's");
        graph->homes[index] = (uint32_t)value;
    }
    return FILCH_OK;
}

static bool edges_keep(bench_sim_graph *graph)
{
    size_t edges = graph->begin[graph->count];
    graph->all_begin = calloc(graph->count + 1, sizeof *graph->all_begin);
    graph->all_successors = calloc(edges + 1, sizeof *graph->all_successors);
    if (!graph->all_begin || !graph->all_successors)
        return false;
    memcpy(graph->all_begin, graph->begin, (graph->count + 1) * sizeof *graph->begin);
    memcpy(graph->all_successors, graph->successors, edges * sizeof *graph->successors);
    return true;
}

static filch_status graph_read(bench_sim_record *record, json_t *object, const place *p)
{
    bench_sim_graph *graph = &record->graphs[record->graph_count++];
    json_error_t problem;
    json_int_t number;
    json_t *successors, *accesses = NULL, *priorities = NULL, *homes = NULL;
    if (json_unpack_ex(object, &problem, 0, "{s:I,s:o,s?o,s?o,s?o}", "graph", &number, "successors",
                       &successors, "accesses", &accesses, "priorities", &priorities, "homes",
                       &homes) != 0)
        return wrong(p, problem.text);
    graph->number = (uint64_t)number;
    filch_status status = successors_read(graph, successors, p);
    if (status == FILCH_OK && accesses)
        status = uses_read(record, graph, accesses, p);
    if (status == FILCH_OK && priorities)
        status = priorities_read(graph, priorities, p);
    if (status == FILCH_OK && homes)
        status = homes_read(record, graph, homes, p);
    if (status == FILCH_OK && !(edges_keep(graph) && bench_sim_edges_trim(graph)))
        status = no_memory(p);
    return status;
}

static filch_status graphs_read(bench_sim_record *record, const json_t *other, const char *path,
                                filch_error *error)
{
    place p = {.path = path, .what = "graphs", .error = error};
    const json_t *list = NULL;
    void *elements = NULL;
    filch_status status = list_open(other, &p, sizeof *record->graphs, &list, &elements);
    record->graphs = elements;
    return status == FILCH_OK ? each_read(record, list, &p, graph_read) : status;
}

/* --- Devices --- */

static filch_status devices_read(bench_sim_record *record, const json_t *other, const char *path,
                                 filch_error *error)
{
    place p = {.path = path, .what = "devices", .error = error};
    const json_t *list;
    json_t *object;
    filch_status status = list_of(other, &p, &list);
    if (status != FILCH_OK)
        return status;
    record->scores = calloc(record->device_count + 1, sizeof *record->scores);
    record->memory = calloc(record->device_count + 1, sizeof *record->memory);
    if (!record->scores || !record->memory)
        return no_memory(&p);
    json_array_foreach(list, p.index, object)
    {
        json_error_t problem;
        const char *name;
        double score;
        json_int_t memory;
        if (json_unpack_ex(object, &problem, 0, "{s:s,s:F,s:I}", "name", &name, "score", &score,
                           "memory", &memory) != 0)
            return wrong(&p, problem.text);
        if (!(score >= 0) || memory < 0)
            return wrong(&p, "its score or memory is less than nothing");
        for (size_t d = 0; d < record->device_count; d++)
            if (strcmp(record->devices[d], name) == 0) {
                record->scores[d] = score;
                record->memory[d] = (uint64_t)memory;
            }
    }
    return status;
}

/* --- All of it --- */

filch_status bench_sim_parts_read(bench_sim_record *record, const json_t *other, const char *path,
                                  filch_error *error)
{
    filch_status status = devices_read(record, other, path, error);
    if (status == FILCH_OK)
        status = handles_read(record, other, path, error);
    if (status == FILCH_OK)
        status = batches_read(record, other, path, error);
    if (status == FILCH_OK)
        status = graphs_read(record, other, path, error);
    return status;
}

void bench_sim_parts_free(bench_sim_record *record)
{
    for (size_t k = 0; k < record->handle_count; k++) {
        free(record->handles[k].row_cuts);
        free(record->handles[k].col_cuts);
    }
    for (size_t k = 0; k < record->batch_count; k++)
        free(record->batches[k].maps);
    for (size_t k = 0; k < record->graph_count; k++) {
        free(record->graphs[k].begin);
        free(record->graphs[k].successors);
        free(record->graphs[k].all_begin);
        free(record->graphs[k].all_successors);
        free(record->graphs[k].use_begin);
        free(record->graphs[k].uses);
        free(record->graphs[k].priorities);
        free(record->graphs[k].homes);
    }
    free(record->handles);
    free(record->batches);
    free(record->graphs);
    free(record->scores);
    free(record->memory);
}
