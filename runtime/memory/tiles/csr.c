/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/tiles/csr.h"

#include <inttypes.h>
#include <string.h>

#include "memory/tiles/data.h"

#define CREATE "filch_csr_create"
#define AT "filch_csr_at"
#define VIEW "filch_csr_view"

/* --- Checks of a description --- */

static bool is_aligned(const void *array, uint32_t bytes)
{
    return (uintptr_t)array % bytes == 0;
}

static const char *wrong_member(const filch_csr_desc *d)
{
    int ways = (d->tile_rows != 0) + (d->row_cuts != NULL) + (d->blocks != 0);
    return d->pointers == NULL                    ? "the pointers are null"
           : d->columns == NULL && d->nnz != 0    ? "the columns are null"
           : d->values != NULL && d->element == 0 ? "there are values, but element, the bytes a "
                                                    "value, is 0"
           : d->pointer_bytes != 4 && d->pointer_bytes != 8 ? "pointer_bytes is not 4 or 8"
           : d->column_bytes != 4 && d->column_bytes != 8   ? "column_bytes is not 4 or 8"
           : !is_aligned(d->pointers, d->pointer_bytes)     ? "the pointers are not aligned"
           : !is_aligned(d->columns, d->column_bytes)       ? "the columns are not aligned"
           : d->base > 1                                    ? "base is not 0 or 1"
           : (d->flags & ~(uint32_t)FILCH_DATA_PIN) != 0    ? "flags are not 0 or FILCH_DATA_PIN"
           : ways > 1               ? "more than one of tile_rows, row_cuts and blocks is given"
           : d->tile_rows > d->rows ? "tile_rows is more than rows"
           : d->row_cuts == NULL && d->row_cut_count != 0 ? "the row cuts are null"
                                                          : NULL;
}

static filch_status check_cuts(fl_core *core, const filch_csr_desc *d)
{
    uint64_t left = d->rows;
    for (uint32_t i = 0; d->row_cuts != NULL && i < d->row_cut_count; ++i) {
        if (d->row_cuts[i] == 0 || d->row_cuts[i] > left) {
            return fl_core_fail(core, FILCH_INVALID_ARGUMENT, CREATE, d->label,
                                "row cut %u is %" PRIu64 ", where %" PRIu64 " of %" PRIu64
                                " rows are left",
                                i, d->row_cuts[i], left, d->rows);
        }
        left -= d->row_cuts[i];
    }
    return d->row_cuts == NULL || left == 0
               ? FILCH_OK
               : fl_core_fail(core, FILCH_INVALID_ARGUMENT, CREATE, d->label,
                              "the row cuts add up to %" PRIu64 ", not to the %" PRIu64 " rows",
                              d->rows - left, d->rows);
}

static filch_status check_desc(fl_core *core, const filch_csr_desc *d)
{
    if (d->rows >= FL_CSR_LIMIT || d->cols >= FL_CSR_LIMIT || d->nnz >= FL_CSR_LIMIT) {
        return fl_core_fail(core, FILCH_OVERFLOW, CREATE, d->label,
                            "%" PRIu64 " rows, %" PRIu64 " columns or %" PRIu64
                            " entries are 2^60 or more",
                            d->rows, d->cols, d->nnz);
    }
    const char *wrong = wrong_member(d);
    if (wrong != NULL) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, CREATE, d->label, "%s", wrong);
    }
    size_t values;
    if (!fl_size_mul((size_t)d->nnz, (size_t)d->element, &values) || values > PTRDIFF_MAX) {
        return fl_core_fail(core, FILCH_OVERFLOW, CREATE, d->label,
                            "%" PRIu64 " values of %" PRIu64 " bytes overflow the address space",
                            d->nnz, d->element);
    }
    filch_status status = check_cuts(core, d);
    uint64_t count = fl_csr_count(d);
    return status != FILCH_OK || count < UINT32_MAX
               ? status
               : fl_core_fail(core, FILCH_OVERFLOW, CREATE, d->label,
                              "%" PRIu64 " blocks are 2^32 - 1 or more", count);
}

/* Checks that the pointers begin with the base, never fall, and end with base + nnz. */
static filch_status check_pointers(fl_core *core, const filch_csr_desc *d)
{
    int64_t last = fl_csr_integer(d->pointers, d->pointer_bytes, 0);
    if (last != (int64_t)d->base) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, CREATE, d->label,
                            "pointers[0] is %" PRId64 ", and the base %u", last, d->base);
    }
    for (uint64_t row = 0; row < d->rows; ++row) {
        int64_t next = fl_csr_integer(d->pointers, d->pointer_bytes, row + 1);
        if (next < last) {
            return fl_core_fail(core, FILCH_INVALID_ARGUMENT, CREATE, d->label,
                                "row %" PRIu64 " begins at %" PRId64 " and ends at %" PRId64
                                " (pointers[%" PRIu64 "])",
                                row, last, next, row + 1);
        }
        last = next;
    }
    return (uint64_t)last - d->base == d->nnz
               ? FILCH_OK
               : fl_core_fail(core, FILCH_INVALID_ARGUMENT, CREATE, d->label,
                              "pointers[%" PRIu64 "], the last, is %" PRId64 ", not %" PRIu64
                              " for %" PRIu64 " entries",
                              d->rows, last, d->nnz + d->base, d->nnz);
}

/* Names the first column outside the matrix; there is one in a block beginning at a row. */
static filch_status refuse_column(fl_core *core, const filch_csr_desc *d, uint64_t row)
{
    uint64_t at = fl_csr_before(d, row);
    int64_t column = 0, low = d->base, high = (int64_t)(d->cols + d->base);
    while (at < d->nnz) {
        column = fl_csr_integer(d->columns, d->column_bytes, at);
        if (column < low || column >= high) {
            break;
        }
        ++at;
    }
    while (fl_csr_before(d, row + 1) <= at) {
        ++row;
    }
    return fl_core_fail(core, FILCH_INVALID_ARGUMENT, CREATE, d->label,
                        "row %" PRIu64 ": columns[%" PRIu64 "] is %" PRId64
                        ", the matrix has columns %" PRId64 " to %" PRId64,
                        row, at, column, low, high - 1);
}

/* Finds the least and the greatest column of entries [first, last); first < last. */
static void find_bounds(const filch_csr_desc *d, uint64_t first, uint64_t last, int64_t *least,
                        int64_t *greatest)
{
    if (d->column_bytes == 4) {
        const int32_t *columns = d->columns;
        int32_t low = columns[first], high = low;
        for (uint64_t i = first; i < last; ++i) {
            low = columns[i] < low ? columns[i] : low;
            high = columns[i] > high ? columns[i] : high;
        }
        *least = low;
        *greatest = high;
        return;
    }
    const int64_t *columns = d->columns;
    *least = *greatest = columns[first];
    for (uint64_t i = first; i < last; ++i) {
        *least = columns[i] < *least ? columns[i] : *least;
        *greatest = columns[i] > *greatest ? columns[i] : *greatest;
    }
}

/* Counts the blocks that begin before a row. */
static uint32_t count_blocks(const fl_csr *csr, uint64_t row)
{
    uint32_t low = 0, high = csr->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (csr->parts[middle].row < row) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Checks the columns of every part, and notes their range. */
static filch_status check_columns(fl_core *core, const filch_csr_desc *d, fl_csr *csr)
{
    for (uint32_t i = 0; i < csr->count; ++i) {
        fl_csr_part *part = &csr->parts[i];
        int64_t least, greatest, base = d->base;
        if (part[0].entry == part[1].entry) {
            continue;
        }
        find_bounds(d, part[0].entry, part[1].entry, &least, &greatest);
        if (least < base || greatest >= base + (int64_t)d->cols) {
            return refuse_column(core, d, part->row);
        }
        part->column_lo = (uint64_t)(least - base);
        part->column_hi = (uint64_t)(greatest - base) + 1;
        part->block_lo = count_blocks(csr, part->column_lo + 1) - 1;
        part->block_hi = count_blocks(csr, part->column_hi);
        part->block_lo = part->column_lo < d->rows ? part->block_lo : part->block_hi;
    }
    return FILCH_OK;
}

/* --- Row blocks in memory --- */

static uint64_t aligned(uint64_t bytes, size_t align)
{
    return (bytes + align - 1) / align * align;
}

/* Head of a block of the matrix. */
static fl_csr_head head_of(const fl_csr *csr, uint32_t at)
{
    const fl_csr_part *part = &csr->parts[at];
    fl_csr_head head = {.magic = FL_CSR_MAGIC,
                        .rows = part[1].row - part[0].row,
                        .cols = csr->cols,
                        .nnz = part[1].entry - part[0].entry,
                        .row = part->row,
                        .entry = part->entry,
                        .column_lo = part->column_lo,
                        .column_hi = part->column_hi,
                        .element = csr->element,
                        .pointer_bytes = csr->pointer_bytes,
                        .column_bytes = csr->column_bytes,
                        .base = csr->base,
                        .block_lo = part->block_lo,
                        .block_hi = part->block_hi};
    uint64_t at_columns, at_values, end;
    head.pointers = aligned(sizeof head, FL_CSR_ARRAY_ALIGN);
    at_columns = head.pointers + (head.rows + 1) * csr->pointer_bytes;
    head.columns = aligned(at_columns, FL_CSR_ARRAY_ALIGN);
    at_values = aligned(head.columns + head.nnz * csr->column_bytes, FL_CSR_ARRAY_ALIGN);
    head.values = csr->element != 0 ? at_values : 0;
    end = at_values + head.nnz * csr->element;
    head.bytes = aligned(end, FL_CSR_ALIGN);
    return head;
}

/* Copies an array to a place in a block, and fills the rest up to `end` with zeros. Null: zeros. */
static void put(char *block, uint64_t at, uint64_t end, const void *array, uint64_t bytes)
{
    bytes = array != NULL ? bytes : 0;
    if (bytes != 0) {
        memcpy(block + at, array, (size_t)bytes);
    }
    memset(block + at + bytes, 0, (size_t)(end - at - bytes));
}

/* Writes the pointers of a block, which begin with the base. */
static void put_pointers(char *block, const fl_csr_head *head, const filch_csr_desc *d)
{
    for (uint64_t i = 0; i <= head->rows; ++i) {
        uint64_t pointer = fl_csr_before(d, head->row + i) - head->entry + d->base;
        if (head->pointer_bytes == 4) {
            ((int32_t *)(void *)(block + head->pointers))[i] = (int32_t)pointer;
        } else {
            ((int64_t *)(void *)(block + head->pointers))[i] = (int64_t)pointer;
        }
    }
}

static const char *entry_at(const void *array, uint64_t entry, uint64_t bytes)
{
    return array != NULL ? (const char *)array + entry * bytes : NULL;
}

static void fill_block(char *block, const fl_csr_head *head, const filch_csr_desc *d)
{
    uint64_t columns_end = head->values != 0 ? head->values : head->bytes;
    put(block, 0, head->columns, head, sizeof *head);
    put_pointers(block, head, d);
    put(block, head->columns, columns_end, entry_at(d->columns, head->entry, d->column_bytes),
        head->nnz * d->column_bytes);
    if (head->values != 0) {
        put(block, head->values, head->bytes, entry_at(d->values, head->entry, d->element),
            head->nnz * d->element);
    }
}

/* --- Making and ending --- */

static size_t table_bytes(uint32_t count)
{
    return sizeof(fl_csr) + ((size_t)count + 1) * sizeof(fl_csr_part);
}

void fl_csr_free(const fl_memory *memory, fl_csr *csr)
{
    if (csr != NULL) {
        fl_free_aligned(memory, csr->buffer, csr->bytes, csr->align);
        fl_free(memory, csr, table_bytes(csr->count));
    }
}

static filch_status fail_memory(fl_core *core, const filch_csr_desc *d, size_t bytes)
{
    return fl_core_fail(core, FILCH_OUT_OF_MEMORY, CREATE, d->label,
                        "no memory for %zu bytes of the matrix", bytes);
}

/* Makes the table of a matrix with checked pointers. Null: no memory. */
static fl_csr *make_table(const fl_memory *memory, const filch_csr_desc *d)
{
    uint32_t count = (uint32_t)fl_csr_count(d);
    fl_csr *csr = fl_alloc_zeroed(memory, table_bytes(count));
    if (csr != NULL) {
        csr->cols = d->cols;
        csr->element = d->element;
        csr->pointer_bytes = d->pointer_bytes;
        csr->column_bytes = d->column_bytes;
        csr->base = d->base;
        csr->count = count;
        fl_csr_cut(d, csr->parts, count);
    }
    return csr;
}

/* Lists the bytes of the blocks, and makes the buffer. */
static filch_status make_buffer(fl_core *core, const filch_csr_desc *d, fl_csr *csr,
                                uint64_t *sizes)
{
    size_t bytes = 0;
    csr->align = (d->flags & FILCH_DATA_PIN) != 0 ? FL_CSR_PAGE : FL_CSR_ALIGN;
    for (uint32_t i = 0; i < csr->count; ++i) {
        sizes[i] = head_of(csr, i).bytes;
        if (sizes[i] > (size_t)PTRDIFF_MAX - csr->align - bytes) {
            return fl_core_fail(core, FILCH_OVERFLOW, CREATE, d->label,
                                "the bytes of the matrix overflow the address space");
        }
        bytes += (size_t)sizes[i];
    }
    csr->bytes = (size_t)aligned(bytes, csr->align);
    csr->buffer = fl_alloc_aligned(&core->memory, csr->bytes, csr->align);
    if (csr->buffer == NULL) {
        return fail_memory(core, d, csr->bytes);
    }
    char *block = csr->buffer;
    for (uint32_t i = 0; i < csr->count; ++i) {
        const fl_csr_head head = head_of(csr, i);
        fill_block(block, &head, d);
        block += sizes[i];
    }
    return FILCH_OK;
}

/* Makes the handle of a filled table. */
static filch_status make_handle(fl_core *core, const filch_csr_desc *d, fl_csr *csr,
                                const uint64_t *sizes, filch_data **matrix)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = csr->buffer;
    desc.element = 1;
    for (uint32_t i = 0; i < csr->count; ++i) {
        desc.rows += sizes[i];
    }
    desc.row_cuts = sizes;
    desc.row_cut_count = csr->count;
    desc.flags = FILCH_DATA_MANAGED | d->flags;
    desc.label = d->label;
    filch_status status = fl_data_create(core, CREATE, &desc, matrix);
    if (status == FILCH_OK) {
        (*matrix)->csr = csr;
    }
    return status;
}

static filch_status create(fl_core *core, const filch_csr_desc *d, filch_data **matrix)
{
    fl_csr *csr = make_table(&core->memory, d);
    if (csr == NULL) {
        return fail_memory(core, d, table_bytes((uint32_t)fl_csr_count(d)));
    }
    size_t bytes = csr->count * sizeof(uint64_t);
    filch_status status = check_columns(core, d, csr);
    uint64_t *sizes = status == FILCH_OK ? fl_alloc(&core->memory, bytes) : NULL;
    if (status == FILCH_OK) {
        status = sizes != NULL ? make_buffer(core, d, csr, sizes) : fail_memory(core, d, bytes);
    }
    if (status == FILCH_OK) {
        status = make_handle(core, d, csr, sizes, matrix);
    }
    fl_free(&core->memory, sizes, bytes);
    if (status != FILCH_OK) {
        fl_csr_free(&core->memory, csr);
    }
    return status;
}

filch_status filch_csr_create(filch_runtime *runtime, const filch_csr_desc *desc,
                              filch_data **matrix)
{
    filch_status status = fl_object_check(runtime, FL_MAGIC_RUNTIME);
    if (status != FILCH_OK) {
        return status;
    }
    fl_core *core = fl_core_of(runtime);
    if (desc == NULL || matrix == NULL) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, CREATE, NULL, "%s",
                            desc == NULL ? "the descriptor is null"
                                         : "there is nowhere to put the handle");
    }
    status = fl_size_check(core, desc, sizeof *desc, sizeof *desc, "the descriptor", CREATE, NULL);
    status = status == FILCH_OK ? check_desc(core, desc) : status;
    status = status == FILCH_OK ? check_pointers(core, desc) : status;
    return status == FILCH_OK ? create(core, desc, matrix) : status;
}

/* --- Questions --- */

/* Describes a block; the arrays are null. */
static void describe(const fl_csr_head *head, filch_csr_block *block)
{
    *block = (filch_csr_block){.size = sizeof *block,
                               .rows = head->rows,
                               .cols = head->cols,
                               .nnz = head->nnz,
                               .row = head->row,
                               .entry = head->entry,
                               .column_lo = head->column_lo,
                               .column_hi = head->column_hi,
                               .element = head->element,
                               .pointer_bytes = head->pointer_bytes,
                               .column_bytes = head->column_bytes,
                               .base = head->base,
                               .block_lo = head->block_lo,
                               .block_hi = head->block_hi};
}

/* Describes a block at an address, which may be on a GPU. */
static void describe_at(const fl_csr_head *head, char *at, filch_csr_block *block)
{
    describe(head, block);
    if (at == NULL) {
        return;
    }
    block->pointers = at + head->pointers;
    block->columns = at + head->columns;
    block->values = head->values != 0 ? at + head->values : NULL;
}

static filch_status check_matrix(const filch_data *matrix, const filch_csr_block *block,
                                 const char *call)
{
    filch_status status = fl_object_check_for(matrix, FL_MAGIC_DATA, call);
    if (status != FILCH_OK) {
        return status;
    }
    fl_core *core = matrix->object.core;
    return matrix->csr == NULL
               ? fl_core_fail(core, FILCH_INVALID_ARGUMENT, call, matrix->label,
                              "%s%s%s was not made by filch_csr_create",
                              FL_NAME("", matrix->label, "the handle"))
               : fl_size_check(core, block, sizeof *block, 0, "the result", call, matrix->label);
}

filch_status filch_csr_at(const filch_data *matrix, uint32_t at, filch_csr_block *block)
{
    filch_status status = check_matrix(matrix, block, AT);
    if (status != FILCH_OK) {
        return status;
    }
    if (at >= matrix->csr->count) {
        return fl_core_fail(matrix->object.core, FILCH_BAD_INDEX, AT, matrix->label,
                            "there is no block %u of %u", at, matrix->csr->count);
    }
    const fl_csr_head head = head_of(matrix->csr, at);
    describe(&head, block);
    return FILCH_OK;
}

/* Finds the block in the host's memory. */
static filch_status view_on_host(const filch_view *view, filch_csr_block *block)
{
    fl_csr_head head;
    if (view == NULL || block == NULL || block->size < sizeof *block || view->ptr == NULL ||
        view->element != 1 || view->cols != 1 || view->rows < sizeof head) {
        return FILCH_INVALID_ARGUMENT;
    }
    memcpy(&head, view->ptr, sizeof head);
    if (head.magic != FL_CSR_MAGIC || head.bytes != view->rows) {
        return FILCH_INVALID_ARGUMENT;
    }
    describe_at(&head, view->ptr, block);
    return FILCH_OK;
}

/* Returns the block beginning at a byte of the buffer, or count. */
static uint32_t block_from(const filch_data *matrix, uint64_t byte)
{
    uint32_t low = 0, high = matrix->csr->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (fl_data_row_start(matrix, middle) < byte) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < matrix->csr->count && fl_data_row_start(matrix, low) == byte ? low
                                                                              : matrix->csr->count;
}

filch_status filch_csr_view(const filch_data *matrix, const filch_view *view,
                            filch_csr_block *block)
{
    if (matrix == NULL) {
        return view_on_host(view, block);
    }
    filch_status status = check_matrix(matrix, block, VIEW);
    if (status != FILCH_OK) {
        return status;
    }
    uint32_t at = view != NULL ? block_from(matrix, view->row) : matrix->csr->count;
    const fl_csr_head head = at < matrix->csr->count ? head_of(matrix->csr, at) : (fl_csr_head){0};
    if (head.bytes == 0 || view->rows != head.bytes || view->cols != 1 || view->element != 1) {
        return fl_core_fail(matrix->object.core, FILCH_INVALID_ARGUMENT, VIEW, matrix->label, "%s",
                            view == NULL ? "the view is null"
                                         : "the view is not that of one block of the matrix");
    }
    describe_at(&head, view->ptr, block);
    return FILCH_OK;
}
