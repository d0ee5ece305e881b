/* SPDX-License-Identifier: Apache-2.0 */
/* The settings table: lines NAME=VALUE, each as a setting and all as the environment. */
#define _GNU_SOURCE
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"

#define LINES 64

static void hear(filch_log_level level, const char *text, void *user)
{
    (void)level;
    *(size_t *)user += strlen(text);
}

/* A refused value changes nothing. */
static void parse_line(const char *line)
{
    const char *value = strchr(line, '=');
    filch_error error = FILCH_ERROR_INIT;
    fl_settings settings, before;
    filch_status status;
    char name[64];
    size_t length;

    if (value == NULL)
        return;
    length = (size_t)(value - line) < sizeof name ? (size_t)(value - line) : sizeof name - 1;
    memcpy(name, line, length);
    name[length] = '\0';
    memset(&settings, 0, sizeof settings);
    fl_settings_defaults(&settings);
    memcpy(&before, &settings, sizeof before);
    status = fl_setting_parse(&settings, name, value + 1, &error);
    if (status != FILCH_OK) {
        fuzz_require(status == FILCH_PARSE || status == FILCH_NOT_FOUND);
        fuzz_require_error(&error, status);
        fuzz_require(memcmp(&before, &settings, sizeof before) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *lines[LINES + 1] = {NULL}, path[300], quoted[40], *place;
    char *text = fuzz_text(data, size);
    char **own = environ;
    filch_error error = FILCH_ERROR_INIT;
    size_t heard = 0, count = 0;
    fl_log log = {hear, &heard, FILCH_LOG_DEBUG};
    fl_settings settings;
    filch_status status;

    for (char *line = strtok_r(text, "\n", &place); line != NULL && count < LINES;
         line = strtok_r(NULL, "\n", &place)) {
        parse_line(line);
        lines[count++] = line;
    }
    environ = lines;
    status = fl_settings_read(&settings, &log, &error);
    if (status == FILCH_OK) {
        status = fl_settings_cache_path(&settings, path, sizeof path);
        fuzz_require(status == FILCH_OK || status == FILCH_NOT_FOUND || status == FILCH_OVERFLOW);
        fuzz_require(status != FILCH_OK || path[0] == '/');
    } else {
        fuzz_require(heard == 0);
        fuzz_require_error(&error, FILCH_PARSE);
    }
    if (fl_environment_quote("CUDA_VISIBLE_DEVICES", quoted, sizeof quoted))
        fuzz_require(strlen(quoted) < sizeof quoted);
    environ = own;
    free(text);
    return 0;
}
