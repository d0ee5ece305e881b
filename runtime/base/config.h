/* SPDX-License-Identifier: Apache-2.0 */
/* The settings table: the only place that reads FILCH_* from the environment, through
 * secure_getenv. Values are read once, when a runtime is created, into an fl_settings. */
#ifndef FL_BASE_CONFIG_H
#define FL_BASE_CONFIG_H

#include "base/log.h"
#include "filch/config.h"

#define FL_SETTING_TEXT 256

/* X(field, NAME, kind, default, help). Kinds: TEXT (char[FL_SETTING_TEXT]), INTEGER (int64_t),
 * NUMBER (double), or a CHOICE of words, kept as the word's position. */
typedef struct fl_settings {
    char devices[FL_SETTING_TEXT];       /* FILCH_DEVICES  "" = default devices */
    int64_t policy;                      /* FILCH_POLICY   filch_policy value; steal */
    int64_t drive;                       /* FILCH_DRIVE    filch_drive value; 0 = by device */
    int64_t allocator;                   /* FILCH_ALLOCATOR filch_allocator_kind value; 0 */
    int64_t log;                         /* FILCH_LOG      filch_log_level; 0 = not set */
    int64_t seed;                        /* FILCH_SEED     1 */
    int64_t trace;                       /* FILCH_TRACE    0 or 1 */
    int64_t trace_events;                /* FILCH_TRACE_EVENTS ring size a worker, 65536 */
    double spin_us;                      /* FILCH_SPIN_US  idle spin before sleeping, 20 */
} fl_settings;

/* Reads every setting. A malformed value is FILCH_PARSE and names the variable and the value in
 * *error (may be null); *settings is then untouched. Unknown FILCH_* names are logged as warnings
 * with the nearest known name. */
filch_status fl_settings_read(fl_settings *settings, const fl_log *log, filch_error *error);
/* The built-in defaults, without the environment. */
void fl_settings_defaults(fl_settings *settings);

#endif
