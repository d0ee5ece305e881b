/* SPDX-License-Identifier: Apache-2.0 */
/* What `filch-bench run` can run. A workload is one file in workloads/ and one line in workload.c.
 *
 * A workload keeps two things apart: its input and output (void *, made once), and what of it lives
 * in a runtime (bench_built). So the same problem can stand in several runtimes at once, e.g. under
 * both policies or on each device alone; only one of them runs at a time. */
#ifndef BENCH_WORKLOAD_H
#define BENCH_WORKLOAD_H

#include "cli/options.h"
#include "filch/filch.h"
#include "peers/peer.h"

#define BENCH_BUILT_CODELETS 6
#define BENCH_BUILT_DATA 11
/* Jobs of a run at most. */
#define BENCH_JOBS 1024

/* What a problem consists of in one runtime. Unused members are null. */
typedef struct bench_built {
    filch_runtime *runtime;
    filch_graph *graph;
    filch_graph *other;   /* a second one that a run submits */
    filch_graph *restore; /* run before each run, not timed */
    filch_data *result;   /* managed: brought to the host after each run, not timed */
    filch_codelet *codelets[BENCH_BUILT_CODELETS];
    filch_data *data[BENCH_BUILT_DATA];
    void *own; /* the workload's, for unbuild */
} bench_built;

/* The size of a problem, for reports. */
typedef struct bench_problem {
    size_t n;
    size_t tile;      /* 0: none */
    size_t tile_cols; /* 0: as many as rows */
    double work;      /* of one run, in the workload's unit; known once it has run */
    size_t steps;     /* that follow each other in a run; 0: it has none */
    const char *step; /* what one is called */
    char variant[64]; /* what else tells such problems apart; empty: nothing */
    char how[64];     /* the last run went; empty: nothing to tell */
    double vendor_s;  /* that cuBLAS and cuSOLVER took to be ready */
    char text[192];
} bench_problem;

/* Of one run: tasks that wrote again what an earlier one had written, and those of them whose
 * device was not the earlier one's. */
typedef struct bench_moves {
    double visits, moves;
} bench_moves;

/* A memory that tasks ran in, and how much of the work they did there. */
typedef struct bench_memory_share {
    uint32_t place;
    bool is_host;
    double room;  /* bytes; 0: the host's, which holds everything */
    double tiles; /* of one run … */
    double items; /* … or items of a batch */
} bench_memory_share;

/* Bytes that a run must move at least. */
typedef struct bench_traffic {
    double in;  /* from the host's memory, over all links */
    double out; /* to it */
    double all; /* into and out of every memory but the host's, also from one to another */
} bench_traffic;

typedef struct bench_workload {
    const char *name;
    const char *help;
    const char *unit;  /* of work */
    bool takes_memory; /* heeds --pinned and --pageable */
    bool takes_cost;   /* heeds --cost */
    bool takes_cols;   /* heeds --tile-cols */
    bool takes_slow;   /* heeds --slow */
    bool waits;        /* see jobs */
    unsigned takes;    /* further options that it heeds: BENCH_TAKES_* */
    /* Any part of a run goes at the rate of the whole: one job without an end of its own, whose
     * tiles are alike and hardly wait for each other. */
    bool is_even;
    /* Under a virtual clock bodies that a checked result does not need are left out. */
    filch_status (*setup)(const bench_options *options, filch_error *error, void **state);
    void (*teardown)(void *state);
    void (*describe)(const void *state, bench_problem *problem);
    /* Tiles worth trying where the options name none; null: there is nothing to choose. */
    size_t (*tiles)(const void *state, size_t *tiles, size_t capacity);
    void (*tile_set)(void *state, size_t tile);
    /* Names of the ways in which a tile can be computed, of which the fastest is chosen; null
     * beyond the last, or the function: there is one. */
    const char *(*way)(const void *state, size_t index);
    void (*way_set)(void *state, size_t index);
    /* Whether a way is worth trying with a tile; null: each is. */
    bool (*way_fits)(const void *state, size_t tile, size_t index);
    /* Makes codelets, handles and the graph; what it has made when it fails, the caller undoes. */
    filch_status (*build)(void *state, bench_built *built);
    /* Undoes what build made beside; after the graphs, before handles and runtime. May be null. */
    void (*unbuild)(void *state, bench_built *built);
    /* Back to the input, before each run; null: nothing to do. Not timed. */
    void (*reset)(void *state);
    /* Jobs that a run consists of, at most BENCH_JOBS, of which each is started in turn and then
     * each waited for (where waits is set, before the next one is started); null: one. */
    size_t (*jobs)(const void *state);
    /* Starts a run's next job; null: the graph is submitted. Timed. */
    filch_status (*start)(void *state, bench_built *built, filch_job **job);
    /* After the job has been waited for, on success only; may be null. Timed. */
    filch_status (*finish)(void *state, bench_built *built, filch_error *error);
    /* How often data changed devices in the last run; false: not known. May be null. */
    bool (*moves)(const void *state, bench_moves *moves);
    /* Puts a failed task's error into the user's words; may be null. */
    void (*explain)(const void *state, filch_error *error);
    /* Whether the last run's result is right, after one more run if check_run says so.
     * FILCH_DATA with the reason. residual stays untouched where there is none. */
    filch_status (*check)(void *state, double *residual, filch_error *error);
    /* Readies the state so that the next run can be checked, and what undoes that; may be null.
     * Where rebuild comes out true, the problem must be built anew before that run, and is not run
     * again after check_end. */
    filch_status (*check_begin)(void *state, bool *rebuild, filch_error *error);
    void (*check_end)(void *state);
    /* The same problem for a peer; null: no peer does it. The work stays the state's, and so does
     * memory for the peer's result. */
    filch_status (*peer)(void *state, unsigned workers, filch_error *error, bench_peer_work **work);
    /* Whether the peer's last result agrees with filch's. FILCH_DATA with the reason. */
    filch_status (*agree)(void *state, filch_error *error);
    /* Writes the picture; null: there is none. */
    filch_status (*image)(const void *state, const char *path, uint32_t devices,
                          filch_error *error);
    /* What a run must move at least, given who did how much of it, one memory after another in this
     * order; joined: GPUs copy from each other. False where that is not known. Null: it never is,
     * and there is no probe. */
    bool (*traffic)(const void *state, const bench_memory_share *shares, size_t count, bool joined,
                    bench_traffic *traffic);
    /* Between on and off the problem is a small part of itself whose data stay on the devices: its
     * kernels alone. */
    void (*probe)(void *state, bool on);
    bool is_duplex; /* copies go both ways at once all the time */
    /* Extends a hash by who did what; null: nothing is known beyond the devices' counts. */
    uint64_t (*schedule)(const void *state, uint64_t hash);
} bench_workload;

extern const bench_workload bench_cholesky;
extern const bench_workload bench_gemm;
extern const bench_workload bench_lu;
extern const bench_workload bench_qr;
extern const bench_workload bench_solve;
extern const bench_workload bench_syrk;
extern const bench_workload bench_trsm;
extern const bench_workload bench_potrs;
extern const bench_workload bench_getrs;
extern const bench_workload bench_mandelbrot;
extern const bench_workload bench_nbody;
extern const bench_workload bench_jacobi;
extern const bench_workload bench_wavefront;
extern const bench_workload bench_chain;
extern const bench_workload bench_empty;
extern const bench_workload bench_create;
extern const bench_workload bench_open;
extern const bench_workload bench_busy;
extern const bench_workload bench_stream;
extern const bench_workload bench_layered;
extern const bench_workload bench_narrow;
extern const bench_workload bench_heat;
extern const bench_workload bench_cg;

/* In a fixed order; null past the last. */
const bench_workload *bench_workload_at(size_t index);
const bench_workload *bench_workload_find(const char *name);

/* Whether the devices of these options run on a virtual clock. */
bool bench_is_simulated(const bench_options *options);
/* What a codelet runs where only the virtual clock matters. */
int bench_run_nothing(const filch_call *call);

/* The failure that the last call on the runtime recorded, labelled with what was done. */
filch_status bench_runtime_failed(filch_runtime *runtime, filch_status status, const char *what,
                                  filch_error *error);

/* Whether a run of so many steps, some of which make a graph, is a run of whole graphs, and not
 * more than BENCH_JOBS. FILCH_INVALID_ARGUMENT, FILCH_TOO_LARGE. */
filch_status bench_steps_check(size_t steps, size_t steps_a_graph, filch_error *error);
/* The most steps of a graph, up to `most`, of which a run is whole graphs; the fewest beyond
 * `most`, where those would be more than BENCH_JOBS graphs. */
size_t bench_steps_share(size_t steps, size_t most);

/* Bytes of count n x n matrices of such elements. FILCH_TOO_LARGE where they exceed the machine's
 * memory, FILCH_OVERFLOW. */
filch_status bench_squares_bytes(size_t n, size_t count, size_t element, const char *option,
                                 filch_error *error, size_t *bytes);
/* That much zeroed memory, for free(); also FILCH_OUT_OF_MEMORY. */
filch_status bench_squares_alloc(size_t n, size_t count, size_t element, const char *option,
                                 filch_error *error, void **memory);

#endif
