/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

typedef struct heard {
    int calls;
    filch_log_level level;
    char text[1024];
} heard;

static void hear(filch_log_level level, const char *text, void *user)
{
    heard *last = user;

    last->calls++;
    last->level = level;
    (void)snprintf(last->text, sizeof last->text, "%s", text);
}

static void callback_receives_the_formatted_text(void **state)
{
    heard last = {0};
    const fl_log log = {hear, &last, FILCH_LOG_DEBUG};

    (void)state;
    fl_log_write(&log, FILCH_LOG_INFO, "device %d of %s", 3, "host");
    assert_int_equal(last.calls, 1);
    assert_int_equal(last.level, FILCH_LOG_INFO);
    assert_string_equal(last.text, "device 3 of host");
}

static void messages_above_the_level_are_dropped(void **state)
{
    (void)state;
    for (int level = FILCH_LOG_ERROR; level <= FILCH_LOG_DEBUG; level++) {
        heard last = {0};
        const fl_log log = {hear, &last, (filch_log_level)level};

        for (int message = FILCH_LOG_ERROR; message <= FILCH_LOG_DEBUG; message++)
            fl_log_write(&log, (filch_log_level)message, "m");
        assert_int_equal(last.calls, level);
        assert_int_equal(last.level, level);
    }
}

/* What standard error receives while run(arg) runs, in text. */
static void capture(void (*run)(const void *arg), const void *arg, char *text, size_t size)
{
    FILE *file = tmpfile();
    int kept = dup(STDERR_FILENO);
    size_t length;

    assert_non_null(file);
    assert_true(kept >= 0);
    assert_true(dup2(fileno(file), STDERR_FILENO) >= 0);
    run(arg);
    (void)fflush(stderr);
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    (void)close(kept);
    rewind(file);
    length = fread(text, 1, size - 1, file);
    text[length] = '\0';
    (void)fclose(file);
}

static void write_to(const void *arg)
{
    fl_log_write(arg, FILCH_LOG_ERROR, "lost");
}

static void without_a_callback_nothing_is_written(void **state)
{
    const fl_log silent = {NULL, NULL, FILCH_LOG_DEBUG};
    char text[64];

    (void)state;
    capture(write_to, &silent, text, sizeof text);
    assert_string_equal(text, "");
    capture(write_to, NULL, text, sizeof text);
    assert_string_equal(text, "");
}

static void long_texts_are_cut_and_stay_one_line(void **state)
{
    heard last = {0};
    const fl_log log = {hear, &last, FILCH_LOG_DEBUG};
    char line[700];

    (void)state;
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    fl_log_write(&log, FILCH_LOG_ERROR, "%s", line);
    assert_int_equal(strlen(last.text), 511);
    fl_log_write(&log, FILCH_LOG_ERROR, "a%sb", "\n\r\t\x1b");
    assert_string_equal(last.text, "a    b");
    fl_log_write(&log, FILCH_LOG_ERROR, "%s", "\xc3\xbc");
    assert_string_equal(last.text, "\xc3\xbc");
}

static void write_both(const void *arg)
{
    (void)arg;
    fl_log_stderr(FILCH_LOG_WARNING, "slow link", NULL);
    fl_log_stderr(FILCH_LOG_ERROR, "100%s", NULL);
}

static void standard_error_gets_one_line_a_message(void **state)
{
    char text[128];

    (void)state;
    capture(write_both, NULL, text, sizeof text);
    assert_string_equal(text, "filch: warning: slow link\nfilch: error: 100%s\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(callback_receives_the_formatted_text),
        cmocka_unit_test(messages_above_the_level_are_dropped),
        cmocka_unit_test(without_a_callback_nothing_is_written),
        cmocka_unit_test(long_texts_are_cut_and_stay_one_line),
        cmocka_unit_test(standard_error_gets_one_line_a_message),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
