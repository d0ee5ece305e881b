/* SPDX-License-Identifier: Apache-2.0 */
/* Speeds of earlier runs, as loaded from a file (model/speed_file.h). */
#ifndef FL_SCHED_WORKER_SPEED_RECORD_H
#define FL_SCHED_WORKER_SPEED_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/sha256.h"
#include "filch/status.h"

#define FL_SPEED_FILE_PATH 4096

typedef struct fl_record {
    fl_digest key;    /* digest of device and codelet */
    double rate;      /* ns per unit of work */
    double fixed;     /* ns per work item */
    double most_work; /* most work of a timed work item */
    int64_t saved;    /* time of saving, seconds of the system's real time */
    uint64_t taken;   /* samples ever taken; with key and time equal, the larger count wins */
} fl_record;

typedef struct fl_speed_file {
    const fl_memory *memory;
    fl_record *records; /* records as loaded, by key */
    size_t count, capacity;
    filch_status loaded;           /* outcome of loading, as in filch_speeds */
    char path[FL_SPEED_FILE_PATH]; /* absolute path; empty: no file was asked for */
} fl_speed_file;

#endif
