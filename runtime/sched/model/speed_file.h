/* SPDX-License-Identifier: Apache-2.0 */
/* Speeds of earlier runs: one file of records, with the estimates of codelets on kinds of devices.
 * The file appears whole or not at all (written aside, then renamed, under a lock) and has a
 * checksum over its whole contents. No record is taken from a file with the slightest defect. A
 * failure of the file is never a failure of a job. */
#ifndef FL_SCHED_MODEL_SPEED_FILE_H
#define FL_SCHED_MODEL_SPEED_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "sched/worker/speed_record.h"

/* Largest number of records in the file; the records saved last stay. */
#define FL_SPEED_FILE_MOST 4096
/* Bytes of a file before its records. */
#define FL_SPEED_FILE_HEADER 64

/* Reads the file; path is relative to the working directory, empty or "off" for no file. Never
 * fails: history->loaded has the outcome. */
void fl_speed_file_open(fl_speed_file *history, const fl_memory *memory, const char *path);
void fl_speed_file_close(fl_speed_file *history);

static inline bool fl_speed_file_is_on(const fl_speed_file *history)
{
    return history->path[0] != '\0';
}

/* Returns the record of a key as loaded, or null. Thread-safe. */
const fl_record *fl_speed_file_find(const fl_speed_file *history, const fl_digest *key);

/* Puts records into the file, beside records of different keys; within a key the latest stays.
 * Statuses are filch_runtime_save_speeds's. Thread-safe; blocking. */
filch_status fl_speed_file_save(const fl_speed_file *history, const fl_record *records,
                                size_t count, filch_error *error);

#endif
