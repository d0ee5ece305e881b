/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

#define LOG_TEXT 512

/* Replaces control characters: the host is promised one line, whatever names and values the message
 * quotes. */
static void flatten(char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = ' ';
    }
}

void fl_log_write(const fl_log *log, filch_log_level level, const char *format, ...)
{
    char text[LOG_TEXT];
    va_list args;
    int length;

    if (log == NULL || log->fn == NULL || level > log->level)
        return;
    va_start(args, format);
    length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (length < 0)
        return;
    flatten(text);
    log->fn(level, text, log->user);
}

static const char *level_name(filch_log_level level)
{
    switch (level) {
    case FILCH_LOG_ERROR:
        return "error";
    case FILCH_LOG_WARNING:
        return "warning";
    case FILCH_LOG_INFO:
        return "info";
    case FILCH_LOG_DEBUG:
        return "debug";
    case FILCH_LOG_DEFAULT:
        break;
    }
    return "message";
}

void fl_log_stderr(filch_log_level level, const char *text, void *user)
{
    (void)user;
    /* A single call: the stream's lock keeps the lines of concurrent threads apart. */
    (void)fprintf(stderr, "filch: %s: %s\n", level_name(level), text);
}
