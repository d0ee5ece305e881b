/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to the host's callback. A host without a callback receives no messages, unless the
 * setting FILCH_LOG asks for messages on standard error. */
#ifndef FL_BASE_LOG_H
#define FL_BASE_LOG_H

#include "filch/config.h"

typedef struct fl_log {
    filch_log_fn fn; /* null: messages are dropped */
    void *user;
    filch_log_level level; /* messages above the level are not formatted */
} fl_log;

/* Writes a message, cut at 511 characters. Thread-safe. */
void fl_log_write(const fl_log *log, filch_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Writes one line to standard error; a filch_log_fn. */
void fl_log_stderr(filch_log_level level, const char *text, void *user);

#endif
