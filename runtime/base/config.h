/* SPDX-License-Identifier: Apache-2.0 */
/* Settings table: the only reader of FILCH_* in the environment, through secure_getenv. Creating a
 * runtime reads every value once, into an fl_settings. */
#ifndef FL_BASE_CONFIG_H
#define FL_BASE_CONFIG_H

#include <stdbool.h>

#include "base/log.h"
#include "filch/config.h"

#define FL_SETTING_TEXT 256

/* Rows X(field, NAME, kind, default, low, high, words, help).
 *
 * TEXT: text shorter than FL_SETTING_TEXT.
 * INTEGER, NUMBER: a number from low to high.
 * CHOICE: a word of `words`, kept as its position counted from low: the public enumeration's value.
 * BYTES: a word of `words`, counted likewise, with the last word at -1; or a number from 1 to high,
 * where K, M, G and T stand for powers of 1024. */
#define FL_SETTINGS_TABLE(X)                                                                       \
    X(devices, "FILCH_DEVICES", TEXT, "", 0, 0, "",                                                \
      "Devices to use, e.g. cuda:1,host:4; empty: every usable GPU, else the host's cores.")       \
    X(policy, "FILCH_POLICY", CHOICE, "steal", FILCH_POLICY_STEAL, 0, "steal static",              \
      "How work finds a device: idle ones steal it, or none does.")                                \
    X(score, "FILCH_SCORE", CHOICE, "default", FILCH_SCORE_DEFAULT, 0,                             \
      "default peak peak-double bandwidth memory blend capacity",                                  \
      "What the devices' scores are reckoned from; default: peak.")                                \
    X(drive, "FILCH_DRIVE", CHOICE, "default", FILCH_DRIVE_DEFAULT, 0, "default threads poll",     \
      "Who runs the workers: a thread a device, or the host's threads inside filch_runtime_poll.") \
    X(allocator, "FILCH_ALLOCATOR", CHOICE, "default", FILCH_ALLOCATOR_DEFAULT, 0,                 \
      "default jemalloc system", "Allocator of filch's own structures; default: jemalloc.")        \
    X(log, "FILCH_LOG", CHOICE, "none", FILCH_LOG_DEFAULT, 0, "none error warning info debug",     \
      "Least severe messages to write, to standard error unless the program receives them.")       \
    X(trace, "FILCH_TRACE", INTEGER, "0", 0, 1, "", "1: record a trace from the start.")           \
    X(trace_events, "FILCH_TRACE_EVENTS", INTEGER, "65536", 64, 1 << 28, "",                       \
      "Newest trace events that are kept, of each worker and each direction of copies.")           \
    X(spin_us, "FILCH_SPIN_US", NUMBER, "100", 0, 1000000, "",                                     \
      "Microseconds that an idle core spins before it sleeps; a GPU's worker a fifth.")            \
    X(lanes, "FILCH_LANES", INTEGER, "0", 0, 8, "",                                                \
      "Streams on which a GPU or slice computes; 0: two.")                                         \
    X(replay, "FILCH_REPLAY", INTEGER, "-1", -1, UINT32_MAX, "",                                   \
      "Run of a closed graph from which it goes to a lone GPU in one launch; 0: never; -1: "       \
      "the tenth, and only where that is faster.")                                                 \
    X(nvrtc, "FILCH_NVRTC", TEXT, "", 0, 0, "",                                                    \
      "Path of the NVRTC library; empty: looked for in the usual places.")                         \
    X(cache_dir, "FILCH_CACHE_DIR", TEXT, "", 0, 0, "",                                            \
      "Folder of compiled kernels; empty: filch in the user's cache folder; off: none.")           \
    X(cache_limit, "FILCH_CACHE_LIMIT", INTEGER, "268435456", 0, INT64_MAX, "",                    \
      "Bytes that the folder of compiled kernels may hold.")                                       \
    X(cuda_context, "FILCH_CUDA_CONTEXT", CHOICE, "primary", FILCH_CUDA_CONTEXT_PRIMARY, 0,        \
      "primary private", "Context of each GPU: the process's primary one, or one of filch's.")     \
    X(cuda_schedule, "FILCH_CUDA_SCHEDULE", CHOICE, "auto", FILCH_CUDA_SCHEDULE_AUTO, 0,           \
      "auto spin yield blocking", "How the driver waits for a GPU; private contexts only.")        \
    X(memory_limit, "FILCH_MEMORY_LIMIT", BYTES, "fit", (int64_t)FILCH_MEMORY_HALF, INT64_MAX,     \
      "half fit", "Bytes of each GPU's memory that filch may take, e.g. 24G.")                     \
    X(multicast, "FILCH_MULTICAST", INTEGER, "0", 0, 1, "",                                        \
      "1: multicast objects may be made; nothing does of its own accord.")                         \
    X(arena, "FILCH_ARENA", CHOICE, "default", FILCH_ARENA_DEFAULT, 0,                             \
      "default jemalloc pages pool plain",                                                         \
      "What hands out the memory of GPUs; default: jemalloc, else the driver's pool.")             \
    X(stage_threads, "FILCH_STAGE_THREADS", INTEGER, "-1", -1, 64, "",                             \
      "Threads a GPU that help to copy pageable memory; -1: half of the cores, up to 7.")          \
    X(speeds, "FILCH_SPEEDS", TEXT, "", 0, 0, "",                                                  \
      "File that keeps measured speeds for later runs; empty or off: none.")                       \
    X(bind, "FILCH_BIND", CHOICE, "cores", FILCH_BIND_CORES, 0, "cores none",                      \
      "What workers' threads are bound to: their device's cores, or none in particular.")          \
    X(report, "FILCH_REPORT", TEXT, "", 0, 0, "",                                                  \
      "File .html for a report of all jobs, written at the runtime's end; empty: none.")           \
    X(nvml, "FILCH_NVML", TEXT, "", 0, 0, "",                                                      \
      "Path of the NVML library, for power and clocks in reports; empty: as installed; off: "      \
      "none.")                                                                                     \
    X(live, "FILCH_LIVE", NUMBER, "0", 0, 600, "",                                                 \
      "Seconds between frames of the live view on standard error, at least 0.05; 0: no view.")

#define FL_SETTING_FIELD_TEXT(field) char field[FL_SETTING_TEXT];
#define FL_SETTING_FIELD_INTEGER(field) int64_t field;
#define FL_SETTING_FIELD_NUMBER(field) double field;
#define FL_SETTING_FIELD_CHOICE(field) int64_t field;
#define FL_SETTING_FIELD_BYTES(field) int64_t field;
#define FL_SETTING_FIELD(field, name, kind, initial, low, high, words, help) \
    FL_SETTING_FIELD_##kind(field)

typedef struct fl_settings {
    FL_SETTINGS_TABLE(FL_SETTING_FIELD)
} fl_settings;

/* Reads every setting. A malformed value gives FILCH_PARSE; *error (may be null) names the
 * variable, the value and the allowed values. *settings is then untouched, and no message is
 * logged. Unknown FILCH_* names are logged as warnings with the nearest known name; fl_settings_log
 * completes log. An empty variable counts as absent. A program with raised privileges gets the
 * defaults. The host must not change its environment meanwhile. */
filch_status fl_settings_read(fl_settings *settings, const fl_log *log, filch_error *error);
/* Copies a variable not owned by filch, e.g. CUDA_VISIBLE_DEVICES, for a message. Replaces control
 * characters and cuts the text to size. Returns false when the variable is not set or privileges
 * are raised. */
bool fl_environment_quote(const char *name, char *text, size_t size);
/* Returns the value of a variable not owned by filch; null when the variable is not set or empty,
 * or privileges are raised. */
const char *fl_environment_value(const char *name);
/* Fills in the built-in defaults; ignores the environment. */
void fl_settings_defaults(fl_settings *settings);
/* Sets the setting called name from text; empty text means the default. Uses no environment and no
 * locale. FILCH_NOT_FOUND for an unknown name, FILCH_PARSE for malformed text. *settings changes on
 * success only. */
filch_status fl_setting_parse(fl_settings *settings, const char *name, const char *text,
                              filch_error *error);
/* Writes the folder of compiled kernels: FILCH_CACHE_DIR, else filch in XDG_CACHE_HOME if absolute,
 * else .cache/filch in HOME (XDG Base Directory Specification 0.8). A relative FILCH_CACHE_DIR is
 * below the working directory. FILCH_NOT_FOUND when the setting is "off" or no variable is set;
 * FILCH_OVERFLOW when the path does not fit. Reads the environment as fl_settings_read does. */
filch_status fl_settings_cache_path(const fl_settings *settings, char *path, size_t size);
/* Combines the host's wishes (null means no wishes) with FILCH_LOG. The host's level beats
 * FILCH_LOG, and FILCH_LOG beats the default, warnings. FILCH_LOG sends messages to stderr when the
 * host has no callback. */
fl_log fl_settings_log(const fl_settings *settings, const fl_log *wanted);

#endif
