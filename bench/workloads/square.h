/* SPDX-License-Identifier: Apache-2.0 */
/* The square matrix of a dense workload: order and tiles, input and results, the devices that its
 * tiles are dealt to, checks of sizes and of solutions. The state of a dense workload begins with
 * its bench_square, so functions below that take a state are members of a bench_workload as they
 * are. */
#ifndef BENCH_SQUARE_H
#define BENCH_SQUARE_H

#include "kernels/dense/dense.h"
#include "kernels/dense/tiles.h"
#include "offload/offload.h"
#include "workloads/workload.h"

/* Definite ones are symmetric and positive definite, and may come from a file. */
typedef enum bench_square_kind {
    BENCH_SQUARE_COLUMNS,  /* random, in block columns, for kernels/dense */
    BENCH_SQUARE_DEFINITE, /* definite, in square tiles, of which the lower triangle is used */
    BENCH_SQUARE_FACTOR,   /* random, in square tiles, all of which are multiplied */
    BENCH_SQUARE_TRIANGLE, /* as DEFINITE, a triangle that is solved by, for as many right sides */
    BENCH_SQUARE_SYSTEM    /* as COLUMNS, solved for as many right sides */
} bench_square_kind;

/* Most tiles along a side where the last ones are halved: with more the halves are too small a part
 * to matter. */
#define BENCH_SQUARE_HALVED_MOST 512

typedef struct bench_square {
    bench_square_kind kind;
    size_t n;
    size_t tile;                  /* its side, or columns of a block */
    const bench_kernels *kernels; /* of the input and the results */
    double *a;                    /* the matrix, full */
    void *input;                  /* a, or in single precision its rounded copy */
    /* Filch's result and the peer's, n x n; null: there is none, or it is no matrix. */
    void *result, *theirs;
    bool is_from_file;
    bool is_idle; /* simulated: bodies compute nothing */
    bool is_resident;
    bool is_managed; /* handles with a buffer are, resident or not */
    bool has_tile;   /* given or chosen */
    /* Square tiles: where fewer than two tiles' rows are left, tiles of half the side, rounded up,
     * cover them; the last one may be smaller. Devices then wait less for each other at the end. */
    bool halves_last;
    size_t count;                             /* tiles along a side, in a runtime */
    uint64_t sides[BENCH_SQUARE_HALVED_MOST]; /* rows of each tile, if halves_last */
    /* From the host's memory, on devices with memories of their own, in block columns: the input
     * and the result have handles of their own, beside the matrix that is factored. */
    bool is_staged;
    bool is_arriving; /* from the host's memory, to one device or several alike */
    /* Devices that tiles are dealt to in turn, along each row and each column (from the host's
     * memory, square tiles by rows), so that at every step all of them have as much to do; 0:
     * filch's own partition, by columns, of which those on the left are done first. */
    uint32_t dealt;
    fl_panels panels; /* of LU and QR, where there are GPUs */
    bench_peer_work work;
    bench_offload offload;
} bench_square;

/* --- Input --- */

/* Reads or makes the input that the options ask for, after a check of its size; also on failure
 * to be closed. */
filch_status bench_square_open(bench_square *square, bench_square_kind kind,
                               const bench_options *options, filch_error *error);
/* Memory for filch's result. */
filch_status bench_square_add_result(bench_square *square, filch_error *error);
/* Frees what open and the functions below have made, not the structure. */
void bench_square_close(bench_square *square);

/* --- Tiles --- */

/* Fills what every problem tells, but text and variant. */
void bench_square_describe(const bench_square *square, double work, bench_problem *problem);
/* Whether tiles are square; else they are block columns. */
bool bench_square_is_tiled(const bench_square *square);
/* Tiles worth trying: those listed, where there are no GPUs, or others. */
size_t bench_square_tiles(const bench_square *square, const size_t *on_host, size_t on_host_count,
                          size_t *tiles, size_t capacity);
/* Of a workload: tile_set. */
void bench_square_tile_set(void *state, size_t tile);
/* Whether the last tiles of this side can be halved. */
bool bench_square_can_halve(const bench_square *square, size_t tile);
/* Of a workload: way and way_set, the panels of LU and QR. */
const char *bench_square_way(const void *state, size_t index);
void bench_square_way_set(void *state, size_t index);

/* --- In a runtime --- */

/* First in a workload's build: looks at the devices, deals tiles to them, locks pages, takes a tile
 * for GPUs where none was given or chosen, and cuts the matrix into tiles. */
void bench_square_meet(bench_square *square, filch_runtime *runtime);
/* The first row of a tile. */
size_t bench_square_row(const bench_square *square, size_t k);
/* The device that a tile is dealt to; the row of a block column is 0. */
uint32_t bench_square_owner(const bench_square *square, size_t i, size_t j);
/* A handle of an n x n matrix: the input, or filch's result; null: one without a buffer. */
filch_status bench_square_data(const bench_square *square, bench_built *built, void *matrix,
                               size_t index);
/* Makes handles `input`, `result` and, if is_by_temporary, `result` + 1; fills *staging. Where
 * is_staged is set. */
filch_status bench_square_staging(const bench_square *square, bench_built *built, size_t input,
                                  size_t result, bool is_by_temporary, fl_staging *staging);
/* The graph that copies the input, or another matrix of its tiles, to filch's result, where the
 * devices keep both; the numbers are those of the handles and of the codelet that is made. */
filch_status bench_square_restore(bench_square *square, bench_built *built, size_t input,
                                  size_t result, size_t copy);
/* The handle of a matrix for kernels/dense. */
fl_columns bench_square_columns(const bench_square *square, filch_data *data);
/* kernels/dense for that matrix; panel_element: bytes of an element of the panels. */
filch_status bench_square_dense(const bench_square *square, filch_runtime *runtime,
                                size_t panel_element, fl_dense **dense);
/* kernels/dense by tiles, for that matrix. */
filch_status bench_square_routines(const bench_square *square, filch_runtime *runtime,
                                   fl_tiles *tiles);
/* Of a workload: reset; copies the input to filch's result, where the host's memory has both. */
void bench_square_reset(void *state);

/* --- Results --- */

/* FILCH_DATA: the pivot in a row, from 1, is 0. */
filch_status bench_square_singular(int32_t row, filch_error *error);
/* FILCH_DATA where a backward error is above the most or not a number. */
filch_status bench_square_accept(double residual, double most, filch_error *error);
/* The backward error of A x = b, and whether it is accepted. */
filch_status bench_square_solves(const bench_square *square, const double *x, const double *b,
                                 double most, double *residual, filch_error *error);
/* Memory for the peer's matrix, once. */
filch_status bench_square_add_theirs(bench_square *square, filch_error *error);
/* The same problem for a peer, from the input to the peer's matrix; the kind's further members are
 * the workload's to set. */
bench_peer_work *bench_square_work(bench_square *square, bench_peer_kind kind, unsigned workers);

#endif
