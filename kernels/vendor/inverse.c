/* SPDX-License-Identifier: Apache-2.0 */
/* The inverse of a lower triangular tile, from small blocks to large ones. The blocks on the
 * diagonal are solved for, all in one call. Then, as often as blocks double,
 *
 *     | A   |^-1    |      A^-1          |
 *     | B C |    =  | -C^-1 B A^-1  C^-1 |
 *
 * for all pairs of blocks in two calls (J. Du Croz, N. Higham, "Stability of methods for matrix
 * inversion", IMA Journal of Numerical Analysis 12, 1992). A solver that is given an identity works
 * through one column of blocks after another, and a GPU has little to do in each.
 *
 * A batch of solutions takes tables of addresses in the device's memory. To keep them as they are,
 * the blocks on the diagonal are brought together in the lane's own memory: by a multiplication by
 * identities, as there is no strided copy of blocks. */
#include "kernels/vendor/blas.h"
#include "kernels/vendor/lane.h"

#include <stdlib.h>
#include <string.h>

/* cuBLAS solves so much in one kernel of a batch. */
#define BLOCK 64
/* Blocks of fewer rows are multiplied as full ones as fast as triangles are, or faster. */
#define TRIANGLE_LEAST 1024
#define ALIGN 256

/* A lane's memory by offsets; blocks are dense. */
typedef struct layout {
    size_t blocks;     /* whole ones */
    size_t from, to;   /* tables of the following */
    size_t identities; /* at least one; they never change */
    size_t factors;    /* the tile's blocks */
    size_t inverses;   /* theirs */
    size_t product;    /* B A^-1 */
    size_t bytes;
} layout;

/* Matrices of a batch, each a step after the last. */
typedef struct operand {
    void *at;
    int ld;
    long long step;
} operand;

static size_t align(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static size_t block_bytes(size_t element)
{
    return (size_t)BLOCK * BLOCK * element;
}

/* Pairs of blocks with h rows each have h n / 2 elements of products at most, and the last pair,
 * of h and n - h rows, a quarter of n squared. */
static layout lay_out(size_t element, size_t n)
{
    layout l = {.blocks = n / BLOCK};
    size_t some = l.blocks > 0 ? l.blocks : 1;
    size_t half = (n + 1) / 2;
    l.to = l.from + align(some * sizeof(void *));
    l.identities = l.to + align(some * sizeof(void *));
    l.factors = l.identities + some * block_bytes(element);
    l.inverses = l.factors + some * block_bytes(element);
    l.product = l.inverses + some * block_bytes(element);
    l.bytes = l.product + half * half * element;
    return l;
}

static void *in_room(const fl_vendor_lane *lane, size_t offset)
{
    return fl_vendor_pointer(lane->inverse.block + offset);
}

static bool is_double(const fl_vendor_lane *lane)
{
    return lane->inverse_element == sizeof(double);
}

/* Tables and identities, as the device is to have them. */
static void fill(const fl_vendor_lane *lane, const layout *l, size_t element, char *image)
{
    for (size_t k = 0; k < l->blocks; k++) {
        void *from = in_room(lane, l->factors + k * block_bytes(element));
        void *to = in_room(lane, l->inverses + k * block_bytes(element));
        memcpy(image + l->from + k * sizeof from, &from, sizeof from);
        memcpy(image + l->to + k * sizeof to, &to, sizeof to);
    }
    for (size_t at = l->identities; at < l->factors; at += block_bytes(element))
        for (size_t k = 0; k < BLOCK; k++) {
            const double one = 1;
            const float one_single = 1;
            bool is_wide = element == sizeof one;
            memcpy(image + at + k * (BLOCK + 1) * element,
                   is_wide ? (const void *)&one : &one_single, element);
        }
}

int fl_vendor_inverse_reserve(fl_vendor_lane *lane, size_t element, size_t n)
{
    const fl_cuda_api *api = lane->vendor->driver;
    if (element == lane->inverse_element && n <= lane->inverse_n)
        return 0;
    const layout l = lay_out(element, n);
    char *image = calloc(l.factors, 1);
    if (!image)
        return fl_vendor_memory_code(FL_CUDA_ERROR_OUT_OF_MEMORY);
    lane->inverse_element = lane->inverse_n = 0;
    int code = fl_vendor_room_grow(lane, &lane->inverse, l.bytes);
    if (code == 0) {
        fill(lane, &l, element, image);
        code = fl_vendor_memory_code(
            api->cuMemcpyHtoDAsync(lane->inverse.block, image, l.factors, lane->stream));
    }
    if (code == 0)
        code = fl_vendor_memory_code(api->cuStreamSynchronize(lane->stream));
    free(image);
    if (code == 0) {
        lane->inverse_element = element;
        lane->inverse_n = n;
    }
    return code;
}

/* NOLINTBEGIN(bugprone-macro-parentheses): a declaration's parts take none */
#define OPERATIONS(p, real)                                                                        \
    static int p##_clear(const fl_vendor_lane *lane, int n, const operand *to)                     \
    {                                                                                              \
        const real zero = 0;                                                                       \
        return lane->vendor->call.p##geam(lane->blas, FL_VENDOR_OP_N, FL_VENDOR_OP_N, n, n, &zero, \
                                          to->at, to->ld, &zero, to->at, to->ld, to->at, to->ld);  \
    }                                                                                              \
    static int p##_solve(const fl_vendor_lane *lane, void *from, void *to, int count)              \
    {                                                                                              \
        const real one = 1;                                                                        \
        return lane->vendor->call.p##trsm_batched(                                                 \
            lane->blas, FL_VENDOR_SIDE_LEFT, FL_VENDOR_FILL_LOWER, FL_VENDOR_OP_N,                 \
            FL_VENDOR_NON_UNIT, BLOCK, BLOCK, &one, from, BLOCK, to, BLOCK, count);                \
    }                                                                                              \
    static int p##_solve_rest(const fl_vendor_lane *lane, int n, const operand *from,              \
                              const operand *to)                                                   \
    {                                                                                              \
        const real one = 1;                                                                        \
        return lane->vendor->call.p##trsm(lane->blas, FL_VENDOR_SIDE_LEFT, FL_VENDOR_FILL_LOWER,   \
                                          FL_VENDOR_OP_N, FL_VENDOR_NON_UNIT, n, n, &one,          \
                                          from->at, from->ld, to->at, to->ld);                     \
    }                                                                                              \
    static int p##_multiply(const fl_vendor_lane *lane, int m, int n, int k, double factor,        \
                            const operand *a, const operand *b, const operand *c)                  \
    {                                                                                              \
        const real alpha = (real)factor, zero = 0;                                                 \
        return lane->vendor->call.p##gemm(lane->blas, FL_VENDOR_OP_N, FL_VENDOR_OP_N, m, n, k,     \
                                          &alpha, a->at, a->ld, b->at, b->ld, &zero, c->at,        \
                                          c->ld);                                                  \
    }                                                                                              \
    static int p##_multiply_all(const fl_vendor_lane *lane, int n, double factor,                  \
                                const operand *a, const operand *b, const operand *c, int count)   \
    {                                                                                              \
        const real alpha = (real)factor, zero = 0;                                                 \
        return lane->vendor->call.p##gemm_strided(                                                 \
            lane->blas, FL_VENDOR_OP_N, FL_VENDOR_OP_N, n, n, n, &alpha, a->at, a->ld, a->step,    \
            b->at, b->ld, b->step, &zero, c->at, c->ld, c->step, count);                           \
    }                                                                                              \
    static int p##_multiply_triangle(const fl_vendor_lane *lane, int side, int m, int n,           \
                                     double factor, const operand *l, const operand *b,            \
                                     const operand *c)                                             \
    {                                                                                              \
        const real alpha = (real)factor;                                                           \
        return lane->vendor->call.p##trmm(lane->blas, side, FL_VENDOR_FILL_LOWER, FL_VENDOR_OP_N,  \
                                          FL_VENDOR_NON_UNIT, m, n, &alpha, l->at, l->ld, b->at,   \
                                          b->ld, c->at, c->ld);                                    \
    }
/* NOLINTEND(bugprone-macro-parentheses) */

OPERATIONS(d, double)
OPERATIONS(s, float)

/* --- In either precision --- */

/* What an operand is in a tile: from row and column on, with steps along the diagonal. */
static operand part_of(const filch_view *tile, size_t row, size_t col, size_t step)
{
    return (operand){(char *)tile->ptr + (row + col * tile->ld) * tile->element, (int)tile->ld,
                     (long long)(step * (tile->ld + 1))};
}

/* Batches and small products read blocks as if they were not triangular. */
static int clear(const fl_vendor_lane *lane, size_t n, const filch_view *inverse)
{
    const operand all = part_of(inverse, 0, 0, 0);
    return fl_vendor_blas_code(is_double(lane) ? d_clear(lane, (int)n, &all)
                                               : s_clear(lane, (int)n, &all));
}

/* c := factor a b, n x n each. */
static int multiply_all(const fl_vendor_lane *lane, size_t n, double factor, const operand *a,
                        const operand *b, const operand *c, size_t count)
{
    return fl_vendor_blas_code(is_double(lane)
                                   ? d_multiply_all(lane, (int)n, factor, a, b, c, (int)count)
                                   : s_multiply_all(lane, (int)n, factor, a, b, c, (int)count));
}

/* c := factor b t, where t is a lower triangle, and c is m x n. */
static int multiply_right(const fl_vendor_lane *lane, int m, int n, double factor, const operand *b,
                          const operand *t, const operand *c)
{
    if (n < TRIANGLE_LEAST)
        return fl_vendor_blas_code(is_double(lane) ? d_multiply(lane, m, n, n, factor, b, t, c)
                                                   : s_multiply(lane, m, n, n, factor, b, t, c));
    return fl_vendor_blas_code(
        is_double(lane) ? d_multiply_triangle(lane, FL_VENDOR_SIDE_RIGHT, m, n, factor, t, b, c)
                        : s_multiply_triangle(lane, FL_VENDOR_SIDE_RIGHT, m, n, factor, t, b, c));
}

/* c := factor t b, likewise. */
static int multiply_left(const fl_vendor_lane *lane, int m, int n, double factor, const operand *t,
                         const operand *b, const operand *c)
{
    if (m < TRIANGLE_LEAST)
        return fl_vendor_blas_code(is_double(lane) ? d_multiply(lane, m, n, m, factor, t, b, c)
                                                   : s_multiply(lane, m, n, m, factor, t, b, c));
    return fl_vendor_blas_code(
        is_double(lane) ? d_multiply_triangle(lane, FL_VENDOR_SIDE_LEFT, m, n, factor, t, b, c)
                        : s_multiply_triangle(lane, FL_VENDOR_SIDE_LEFT, m, n, factor, t, b, c));
}

/* All blocks of BLOCK rows; nothing above the diagonal may be other than finite. */
static int invert_blocks(const fl_vendor_lane *lane, const layout *at, const filch_view *l,
                         const filch_view *inverse)
{
    const fl_cuda_api *api = lane->vendor->driver;
    size_t bytes = block_bytes(l->element);
    const operand identity = {in_room(lane, at->identities), BLOCK, 0};
    const operand factors = {in_room(lane, at->factors), BLOCK, BLOCK * BLOCK};
    const operand inverses = {in_room(lane, at->inverses), BLOCK, BLOCK * BLOCK};
    const operand from = part_of(l, 0, 0, BLOCK), to = part_of(inverse, 0, 0, BLOCK);
    size_t count = l->rows / BLOCK;
    if (count == 0)
        return 0;
    int code = multiply_all(lane, BLOCK, 1, &from, &identity, &factors, count);
    if (code == 0)
        code = fl_vendor_memory_code(api->cuMemcpyDtoDAsync(lane->inverse.block + at->inverses,
                                                            lane->inverse.block + at->identities,
                                                            count * bytes, lane->stream));
    void *tables[] = {in_room(lane, at->from), in_room(lane, at->to)};
    if (code == 0)
        code =
            fl_vendor_blas_code(is_double(lane) ? d_solve(lane, tables[0], tables[1], (int)count)
                                                : s_solve(lane, tables[0], tables[1], (int)count));
    return code ? code : multiply_all(lane, BLOCK, 1, &inverses, &identity, &to, count);
}

/* The rows that make no whole block. */
static int invert_rest(const fl_vendor_lane *lane, const layout *at, const filch_view *l,
                       const filch_view *inverse)
{
    size_t begin = l->rows / BLOCK * BLOCK, n = l->rows - begin;
    const operand from = part_of(l, begin, begin, 0), to = part_of(inverse, begin, begin, 0);
    const filch_view identity = {.ptr = in_room(lane, at->identities),
                                 .rows = n,
                                 .cols = n,
                                 .ld = BLOCK,
                                 .element = l->element};
    filch_view rest = identity;
    rest.ptr = to.at;
    rest.ld = inverse->ld;
    if (n == 0)
        return 0;
    int code = fl_vendor_copy(lane, &identity, &rest);
    return code ? code
                : fl_vendor_blas_code(is_double(lane) ? d_solve_rest(lane, (int)n, &from, &to)
                                                      : s_solve_rest(lane, (int)n, &from, &to));
}

/* Whole pairs of blocks with h rows each, from the tile's first on. */
static int join_pairs(const fl_vendor_lane *lane, const layout *at, size_t h, size_t count,
                      const filch_view *l, const filch_view *inverse)
{
    const operand a = part_of(inverse, 0, 0, 2 * h), b = part_of(l, h, 0, 2 * h);
    const operand c = part_of(inverse, h, h, 2 * h), to = part_of(inverse, h, 0, 2 * h);
    const operand product = {in_room(lane, at->product), (int)h, (long long)(h * h)};
    int code = multiply_all(lane, h, 1, &b, &a, &product, count);
    return code ? code : multiply_all(lane, h, -1, &c, &product, &to, count);
}

/* One pair, of h rows and as many more. */
static int join_one(const fl_vendor_lane *lane, const layout *at, size_t begin, size_t h,
                    size_t more, const filch_view *l, const filch_view *inverse)
{
    const operand a = part_of(inverse, begin, begin, 0), b = part_of(l, begin + h, begin, 0);
    const operand c = part_of(inverse, begin + h, begin + h, 0);
    const operand to = part_of(inverse, begin + h, begin, 0);
    const operand product = {in_room(lane, at->product), (int)more, 0};
    int code = multiply_right(lane, (int)more, (int)h, 1, &b, &a, &product);
    return code ? code : multiply_left(lane, (int)more, (int)h, -1, &c, &product, &to);
}

/* All pairs whose first block has h rows: the whole ones at once, if there are several. */
static int join(const fl_vendor_lane *lane, const layout *at, size_t h, const filch_view *l,
                const filch_view *inverse)
{
    size_t n = l->rows, count = n / (2 * h);
    size_t begin = count > 1 ? count * 2 * h : 0;
    int code = count > 1 ? join_pairs(lane, at, h, count, l, inverse) : 0;
    for (; code == 0 && begin + h < n; begin += 2 * h)
        code = join_one(lane, at, begin, h, n - begin < 2 * h ? n - begin - h : h, l, inverse);
    return code;
}

int fl_vendor_invert(fl_vendor_lane *lane, const filch_view *l, const filch_view *inverse)
{
    int code = fl_vendor_inverse_reserve(lane, l->element, l->rows);
    if (code != 0)
        return code;
    const layout at = lay_out(l->element, lane->inverse_n);
    code = clear(lane, l->rows, inverse);
    if (code == 0)
        code = invert_blocks(lane, &at, l, inverse);
    if (code == 0)
        code = invert_rest(lane, &at, l, inverse);
    for (size_t h = BLOCK; h < l->rows && code == 0; h *= 2)
        code = join(lane, &at, h, l, inverse);
    return code;
}

/* To := the identity. */
static int write_identity(const fl_vendor_lane *lane, const layout *at, const filch_view *to)
{
    size_t count = to->rows / BLOCK, begin = count * BLOCK;
    const operand identity = {in_room(lane, at->identities), BLOCK, 0};
    const operand blocks = part_of(to, 0, 0, BLOCK), last = part_of(to, begin, begin, 0);
    const filch_view from = {.ptr = identity.at,
                             .rows = to->rows - begin,
                             .cols = to->rows - begin,
                             .ld = BLOCK,
                             .element = to->element};
    filch_view rest = from;
    rest.ptr = last.at;
    rest.ld = to->ld;
    int code = clear(lane, to->rows, to);
    if (code == 0 && count > 0)
        code = multiply_all(lane, BLOCK, 1, &identity, &identity, &blocks, count);
    return code != 0 || rest.rows == 0 ? code : fl_vendor_copy(lane, &from, &rest);
}

int fl_vendor_invert_triangle(fl_vendor_lane *lane, const fl_vendor_form *form, const filch_view *a,
                              const filch_view *t, const filch_view *inverse)
{
    bool is_upper = form->fill == FL_VENDOR_FILL_UPPER;
    const fl_vendor_form whole = {.side = FL_VENDOR_SIDE_LEFT,
                                  .fill = form->fill,
                                  .op_a = is_upper ? FL_VENDOR_OP_T : FL_VENDOR_OP_N,
                                  .diagonal = form->diagonal,
                                  .alpha = 1};
    int code = fl_vendor_inverse_reserve(lane, a->element, a->rows);
    if (code != 0)
        return code;
    const layout at = lay_out(a->element, lane->inverse_n);
    code = write_identity(lane, &at, inverse);
    if (code == 0) /* cuBLAS writes no triangle, but the product of one by the identity */
        code = fl_vendor_blas_trmm(lane, &whole, a, inverse, t);
    return code ? code : fl_vendor_invert(lane, t, inverse);
}
