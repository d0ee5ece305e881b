/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to the host's callback. Without a callback nothing is written anywhere, unless the
 * setting FILCH_LOG asks for messages on standard error. */
#ifndef FL_BASE_LOG_H
#define FL_BASE_LOG_H

#include "filch/config.h"

typedef struct fl_log {
    filch_log_fn fn; /* null: messages go nowhere */
    void *user;
    filch_log_level level; /* messages above it are not formatted */
} fl_log;

/* Any thread. The text is cut at 511 characters. */
void fl_log_write(const fl_log *log, filch_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A filch_log_fn that writes one line to standard error. */
void fl_log_stderr(filch_log_level level, const char *text, void *user);

#endif
