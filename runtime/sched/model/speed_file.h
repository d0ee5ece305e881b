/* SPDX-License-Identifier: Apache-2.0 */
/* Speeds of earlier runs: one file of records, each the estimate of a codelet on a kind of device.
 * The file appears whole or not at all (written aside, then renamed, under a lock) with a checksum
 * over all of it; nothing is taken from one that is not exactly what it should be. No failure here
 * is one of a job's. */
#ifndef FL_SCHED_MODEL_SPEED_FILE_H
#define FL_SCHED_MODEL_SPEED_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/sha256.h"
#include "sched/model/speed.h"

/* The file is bounded: of more, those saved last stay. */
#define FL_SPEED_FILE_MOST 4096
#define FL_SPEED_FILE_PATH 4096
/* Bytes of a file before its records. */
#define FL_SPEED_FILE_HEADER 64

typedef struct fl_record {
    fl_digest key;    /* of device and codelet */
    double rate;      /* ns a unit of work */
    double fixed;     /* ns a tile */
    double most_work; /* of a tile that was timed */
    int64_t saved;    /* seconds of the system's real time */
    uint64_t taken;   /* samples ever; of two of one key and time the more count */
} fl_record;

typedef struct fl_speed_file {
    const fl_memory *memory;
    fl_record *records; /* as they were loaded, by key */
    size_t count, capacity;
    filch_status loaded;           /* as filch_speeds has it */
    char path[FL_SPEED_FILE_PATH]; /* absolute; empty: none was asked for */
} fl_speed_file;

/* Reads the file; path relative to the working directory, empty or "off" for none. Never fails:
 * history->loaded says. */
void fl_speed_file_open(fl_speed_file *history, const fl_memory *memory, const char *path);
void fl_speed_file_close(fl_speed_file *history);

static inline bool fl_speed_file_is_on(const fl_speed_file *history)
{
    return history->path[0] != '\0';
}

/* The record of a key as it was loaded, or null. Any thread. */
const fl_record *fl_speed_file_find(const fl_speed_file *history, const fl_digest *key);

/* Puts records into the file, beside those of other keys; of one key the latest stays.
 * Statuses as filch_speeds_save. Any thread; blocking. */
filch_status fl_speed_file_save(const fl_speed_file *history, const fl_record *records,
                                size_t count, filch_error *error);

#endif
