/* SPDX-License-Identifier: Apache-2.0 */
/* What a run found out, and its JSON form, whose keys are stable. */
#ifndef BENCH_JSON_OUT_H
#define BENCH_JSON_OUT_H

#include "cli/options.h"
#include "measure/slow.h"
#include "measure/withdraw.h"

#include "filch/report.h"

#include <jansson.h>

#include <stdbool.h>

/* What one device did, summed over the measured repeats. */
typedef struct bench_device_result {
    char name[64];
    char model[64];
    char backend[8]; /* "host", "cuda" or "sim" */
    double score;
    double speed; /* work a second, measured alone in this run */
    double busy_s;
    double idle_s;
    double transfer_s; /* waiting for data: 0 where none was moved, else not known (NaN) */
    uint64_t tiles;
    uint64_t stolen_in;
    uint64_t stolen_out;
    uint64_t bytes_in;
    uint64_t bytes_out;
    uint64_t bytes_peer;
    uint64_t evicted;
    uint64_t bytes_evicted;
    filch_losses losses; /* summed over the repeats */
} bench_device_result;

/* The loss report of filch's runs; see loss_table.h. */
typedef struct bench_loss_result {
    size_t runs;           /* 0: it is not known */
    double wall_s, area_s; /* summed over them */
    double path_s;         /* of the last one; 0: not known */
} bench_loss_result;

/* A contender that did the same work, interleaved. */
typedef struct bench_versus_result {
    char name[BENCH_VERSUS_NAME];
    char setting[32]; /* the best of those that it was tried with; empty: it has none */
    double *seconds;  /* repeat of them */
    double median_s;
    double ratio;         /* its median / filch's: above 1 filch is faster */
    double cpu_s;         /* processor time of the process, summed over the repeats */
    double visits, moves; /* as the result's */
} bench_versus_result;

/* What no run could be faster than; see bound.h. */
typedef struct bench_bound_result {
    bool is_known;
    double speed;       /* work a second of all devices' kernels */
    double rate_in;     /* bytes a second of all links to the host … */
    double rate_out;    /* … and back */
    double compute_s;   /* the work at that speed */
    double transfer_s;  /* the bytes at those rates */
    double bytes;       /* that a run moved … */
    double least_bytes; /* … and had to */
} bench_bound_result;

/* The longer of the two. */
double bench_bound_s(const bench_bound_result *bound);

/* Before the first tile of a run on GPUs, in seconds. */
typedef struct bench_startup_result {
    bool is_known;
    double driver_s; /* the driver and its contexts */
    double vendor_s; /* cuBLAS and cuSOLVER */
    double rest_s;   /* loading the program, filch, the problem */
} bench_startup_result;

/* What a device does at a time: bit numbers. */
enum { BENCH_KERNELS, BENCH_IN, BENCH_OUT, BENCH_PEER, BENCH_OVERLAP_KINDS };

#define BENCH_OVERLAP_SETS (1u << BENCH_OVERLAP_KINDS)

/* How kernels and copies of the run that was traced overlapped; see overlap.h. */
typedef struct bench_overlap_result {
    bool is_known;
    double seconds;                  /* from the first kernel or copy to the end of the last */
    size_t devices;                  /* that copied */
    double part[BENCH_OVERLAP_SETS]; /* of that time, mean of these devices, by what was under way:
                                        just that */
    uint64_t overwritten, missed;    /* events and copies that the trace lacks */
} bench_overlap_result;

/* The part when all of that was under way, and (unless 0) some of this, whatever else was. */
double bench_overlap_of(const bench_overlap_result *overlap, unsigned all, unsigned some);

/* Zero-initialised is empty. Numbers that were not measured are not-a-number, null in JSON. */
typedef struct bench_result {
    char workload[32];
    char policy[16];
    char precision[8];
    char work_unit[16]; /* "flop", "item", "task" */
    size_t n;
    size_t tile;
    size_t tile_cols; /* 0: as many as rows */
    char variant[64]; /* what else tells the problem from others; may be empty */
    char how[64];     /* the last repeat went; may be empty */
    size_t steps;     /* of a repeat; 0: it has none */
    char step[16];    /* what one is called */
    bench_slow slow;
    bench_withdraw withdraw; /* where asked for, instead */
    bench_device_result *devices;
    size_t device_count;
    double *seconds; /* one a measured repeat, in order */
    size_t repeat;
    double median_s;
    double work;       /* a repeat */
    double rate;       /* work / median_s */
    double efficiency; /* the time that the devices' speeds allow for the work, over median_s */
    double imbalance;  /* longest busy_s of a device over their mean */
    double residual;
    double cpu_s; /* processor time of the process, summed over the repeats */
    double
        visits; /* summed over the repeats: tasks that wrote what another had written; 0: unknown */
    double moves;      /* of those, on another device */
    bool checked;      /* a check was made and passed */
    uint64_t schedule; /* who did what and when, hashed; 0: unknown, the clock is a real one */
    bench_loss_result losses;
    bench_bound_result bound;
    bench_startup_result startup;
    bench_overlap_result overlap;
    bench_versus_result versus[BENCH_VERSUS_MOST];
    size_t versus_count;
} bench_result;

/* Arrays for the counts, zeroed; versus: contenders, at most BENCH_VERSUS_MOST. False when memory
 * is out; the result is then empty. */
bool bench_result_init(bench_result *result, size_t devices, size_t repeat, size_t versus);
/* The medians and what follows from seconds, work, speed and busy_s. False where a time is missing
 * or not finite. */
bool bench_result_derive(bench_result *result);
void bench_result_free(bench_result *result);

/* The document, the caller's. Null: no memory. */
json_t *bench_result_json(const bench_result *result);
/* Writes any document, which stays the caller's; as bench_json_write. */
filch_status bench_json_put(const char *path, const json_t *document, filch_error *error);

/* Writes the document; path "-" is standard output. FILCH_IO, FILCH_OUT_OF_MEMORY. */
filch_status bench_json_write(const char *path, const bench_result *result, filch_error *error);

#endif
