/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"

static const char *const known[] = {
    "FILCH_DEVICES",      "FILCH_POLICY",      "FILCH_SCORE",        "FILCH_DRIVE",
    "FILCH_ALLOCATOR",    "FILCH_LOG",         "FILCH_TRACE",        "FILCH_TRACE_EVENTS",
    "FILCH_SPIN_US",      "FILCH_LANES",       "FILCH_REPLAY",       "FILCH_NVRTC",
    "FILCH_CACHE_DIR",    "FILCH_CACHE_LIMIT", "FILCH_CUDA_CONTEXT", "FILCH_CUDA_SCHEDULE",
    "FILCH_MEMORY_LIMIT", "FILCH_MULTICAST",   "FILCH_ARENA",        "FILCH_STAGE_THREADS",
    "FILCH_SPEEDS",       "FILCH_BIND",        "FILCH_REPORT",       "FILCH_NVML",
    "FILCH_LIVE",
};

#define KNOWN (sizeof known / sizeof known[0])

typedef struct heard {
    int calls;
    filch_log_level level;
    char text[8][512];
} heard;

static void hear(filch_log_level level, const char *text, void *user)
{
    heard *all = user;

    all->level = level;
    if (all->calls < 8)
        (void)snprintf(all->text[all->calls], sizeof all->text[0], "%s", text);
    all->calls++;
}

/* The tests must not depend on the environment that they are started from. */
static int clean(void **state)
{
    (void)state;
    for (size_t i = 0; i < KNOWN; i++)
        (void)unsetenv(known[i]);
    (void)unsetenv("FILCH_POLCY");
    (void)unsetenv("FILCH_");
    (void)unsetenv("FILCHER");
    return 0;
}

static void assert_defaults(const fl_settings *settings)
{
    assert_string_equal(settings->devices, "");
    assert_int_equal(settings->policy, FILCH_POLICY_STEAL);
    assert_int_equal(settings->drive, FILCH_DRIVE_DEFAULT);
    assert_int_equal(settings->allocator, FILCH_ALLOCATOR_DEFAULT);
    assert_int_equal(settings->log, FILCH_LOG_DEFAULT);
    assert_int_equal(settings->trace, 0);
    assert_int_equal(settings->trace_events, 65536);
    assert_true(settings->spin_us == 100.0);
    assert_int_equal(settings->lanes, 0);
    assert_string_equal(settings->nvrtc, "");
    assert_string_equal(settings->cache_dir, "");
    assert_int_equal(settings->cache_limit, 256 << 20);
    assert_int_equal(settings->cuda_context, FILCH_CUDA_CONTEXT_PRIMARY);
    assert_int_equal(settings->arena, FILCH_ARENA_DEFAULT);
    assert_int_equal(settings->cuda_schedule, FILCH_CUDA_SCHEDULE_AUTO);
    assert_true((uint64_t)settings->memory_limit == FILCH_MEMORY_FIT);
    assert_int_equal(settings->multicast, 0);
    assert_string_equal(settings->speeds, "");
    assert_int_equal(settings->stage_threads, -1);
    assert_int_equal(settings->bind, FILCH_BIND_CORES);
    assert_string_equal(settings->report, "");
    assert_true(settings->live == 0);
}

static void rows_describe_every_setting(void **state)
{
    filch_setting row = {.size = sizeof row};
    filch_setting small = {.size = sizeof small - 1};
    size_t index = 0;

    (void)state;
    for (; filch_setting_at(index, &row) == FILCH_OK; index++) {
        assert_true(index < KNOWN);
        assert_string_equal(row.name, known[index]);
        assert_true(strlen(row.help) > 10);
        assert_non_null(row.default_value);
    }
    assert_int_equal(index, KNOWN);
    assert_int_equal(filch_setting_at(KNOWN, &row), FILCH_BAD_INDEX);
    assert_int_equal(filch_setting_at(SIZE_MAX, &row), FILCH_BAD_INDEX);
    assert_int_equal(filch_setting_at(0, NULL), FILCH_INVALID_ARGUMENT);
    assert_int_equal(filch_setting_at(0, &small), FILCH_INVALID_ARGUMENT);
    assert_null(small.name);
    assert_int_equal(filch_setting_at(1, &row), FILCH_OK);
    assert_string_equal(row.type, "choice: steal static");
    assert_string_equal(row.default_value, "steal");
    assert_int_equal(filch_setting_at(0, &row), FILCH_OK);
    assert_string_equal(row.type, "text");
    assert_int_equal(filch_setting_at(6, &row), FILCH_OK);
    assert_string_equal(row.type, "integer");
    assert_int_equal(filch_setting_at(8, &row), FILCH_OK);
    assert_string_equal(row.type, "number");
    assert_int_equal(filch_setting_at(16, &row), FILCH_OK);
    assert_string_equal(row.type, "bytes, or: half fit");
}

static void every_default_is_acceptable_to_its_row(void **state)
{
    fl_settings settings;
    filch_setting row = {.size = sizeof row};

    (void)state;
    fl_settings_defaults(&settings);
    assert_defaults(&settings);
    for (size_t i = 0; filch_setting_at(i, &row) == FILCH_OK; i++)
        assert_int_equal(fl_setting_parse(&settings, row.name, row.default_value, NULL), FILCH_OK);
    assert_defaults(&settings);
}

static void an_empty_environment_gives_the_defaults(void **state)
{
    fl_settings settings;

    (void)state;
    memset(&settings, 0xee, sizeof settings);
    assert_int_equal(fl_settings_read(&settings, NULL, NULL), FILCH_OK);
    assert_defaults(&settings);
}

static void the_environment_sets_every_field(void **state)
{
    fl_settings settings;

    (void)state;
    (void)setenv("FILCH_DEVICES", "host:2,cuda:1", 1);
    (void)setenv("FILCH_POLICY", "static", 1);
    (void)setenv("FILCH_DRIVE", "poll", 1);
    (void)setenv("FILCH_ALLOCATOR", "system", 1);
    (void)setenv("FILCH_LOG", "debug", 1);
    (void)setenv("FILCH_TRACE", "1", 1);
    (void)setenv("FILCH_TRACE_EVENTS", "268435456", 1);
    (void)setenv("FILCH_SPIN_US", "2.5", 1);
    (void)setenv("FILCH_LANES", "8", 1);
    (void)setenv("FILCH_REPLAY", "0", 1);
    (void)setenv("FILCH_STAGE_THREADS", "0", 1);
    (void)setenv("FILCH_NVRTC", "/opt/libnvrtc.so", 1);
    (void)setenv("FILCH_CACHE_DIR", "off", 1);
    (void)setenv("FILCH_CACHE_LIMIT", "9223372036854775807", 1);
    (void)setenv("FILCH_CUDA_CONTEXT", "private", 1);
    (void)setenv("FILCH_CUDA_SCHEDULE", "blocking", 1);
    (void)setenv("FILCH_MEMORY_LIMIT", "24G", 1);
    (void)setenv("FILCH_SPEEDS", "speeds.bin", 1);
    (void)setenv("FILCH_BIND", "none", 1);
    (void)setenv("FILCH_REPORT", "report.html", 1);
    (void)setenv("FILCH_LIVE", "0.2", 1);
    assert_int_equal(fl_settings_read(&settings, NULL, NULL), FILCH_OK);
    assert_string_equal(settings.speeds, "speeds.bin");
    assert_int_equal(settings.bind, FILCH_BIND_NONE);
    assert_string_equal(settings.report, "report.html");
    assert_true(settings.live == 0.2);
    assert_string_equal(settings.devices, "host:2,cuda:1");
    assert_int_equal(settings.policy, FILCH_POLICY_STATIC);
    assert_int_equal(settings.drive, FILCH_DRIVE_POLL);
    assert_int_equal(settings.allocator, FILCH_ALLOCATOR_SYSTEM);
    assert_int_equal(settings.log, FILCH_LOG_DEBUG);
    assert_int_equal(settings.trace, 1);
    assert_int_equal(settings.trace_events, 268435456);
    assert_true(settings.spin_us == 2.5);
    assert_int_equal(settings.lanes, 8);
    assert_int_equal(settings.replay, 0);
    assert_int_equal(settings.stage_threads, 0);
    assert_string_equal(settings.nvrtc, "/opt/libnvrtc.so");
    assert_string_equal(settings.cache_dir, "off");
    assert_int_equal(settings.cache_limit, INT64_MAX);
    assert_int_equal(settings.cuda_context, FILCH_CUDA_CONTEXT_PRIVATE);
    assert_int_equal(settings.cuda_schedule, FILCH_CUDA_SCHEDULE_BLOCKING);
    assert_true(settings.memory_limit == INT64_C(24) << 30);
}

static void empty_variables_count_as_absent(void **state)
{
    fl_settings settings;

    (void)state;
    for (size_t i = 0; i < KNOWN; i++)
        (void)setenv(known[i], "", 1);
    assert_int_equal(fl_settings_read(&settings, NULL, NULL), FILCH_OK);
    assert_defaults(&settings);
}

static void every_choice_is_its_enumerator(void **state)
{
    static const struct {
        const char *name;
        const char *word;
        int value;
    } cases[] = {
        {"FILCH_POLICY", "steal", FILCH_POLICY_STEAL},
        {"FILCH_POLICY", "static", FILCH_POLICY_STATIC},
        {"FILCH_SCORE", "default", FILCH_SCORE_DEFAULT},
        {"FILCH_SCORE", "peak", FILCH_SCORE_PEAK},
        {"FILCH_SCORE", "peak-double", FILCH_SCORE_PEAK_DOUBLE},
        {"FILCH_SCORE", "bandwidth", FILCH_SCORE_BANDWIDTH},
        {"FILCH_SCORE", "memory", FILCH_SCORE_MEMORY},
        {"FILCH_SCORE", "blend", FILCH_SCORE_BLEND},
        {"FILCH_SCORE", "capacity", FILCH_SCORE_CAPACITY},
        {"FILCH_DRIVE", "default", FILCH_DRIVE_DEFAULT},
        {"FILCH_DRIVE", "threads", FILCH_DRIVE_THREADS},
        {"FILCH_DRIVE", "poll", FILCH_DRIVE_POLL},
        {"FILCH_ALLOCATOR", "default", FILCH_ALLOCATOR_DEFAULT},
        {"FILCH_ALLOCATOR", "jemalloc", FILCH_ALLOCATOR_JEMALLOC},
        {"FILCH_ALLOCATOR", "system", FILCH_ALLOCATOR_SYSTEM},
        {"FILCH_LOG", "none", FILCH_LOG_DEFAULT},
        {"FILCH_LOG", "error", FILCH_LOG_ERROR},
        {"FILCH_LOG", "warning", FILCH_LOG_WARNING},
        {"FILCH_LOG", "info", FILCH_LOG_INFO},
        {"FILCH_LOG", "debug", FILCH_LOG_DEBUG},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fl_settings settings;
        const char *name = cases[i].name;
        const int64_t *field = strcmp(name, "FILCH_POLICY") == 0  ? &settings.policy
                               : strcmp(name, "FILCH_SCORE") == 0 ? &settings.score
                               : strcmp(name, "FILCH_DRIVE") == 0 ? &settings.drive
                               : strcmp(name, "FILCH_LOG") == 0   ? &settings.log
                                                                  : &settings.allocator;

        memset(&settings, 0xee, sizeof settings);
        assert_int_equal(fl_setting_parse(&settings, name, cases[i].word, NULL), FILCH_OK);
        assert_int_equal(*field, cases[i].value);
    }
}

static void malformed_values_are_refused(void **state)
{
    static const struct {
        const char *name;
        const char *text;
    } cases[] = {
        {"FILCH_POLICY", "stea"},
        {"FILCH_POLICY", "central"},
        {"FILCH_POLICY", "steals"},
        {"FILCH_POLICY", "Steal"},
        {"FILCH_POLICY", "steal static"},
        {"FILCH_POLICY", " "},
        {"FILCH_POLICY", "1"},
        {"FILCH_TRACE_EVENTS", "0"},
        {"FILCH_TRACE_EVENTS", "-1"},
        {"FILCH_TRACE_EVENTS", "64 "},
        {"FILCH_TRACE_EVENTS", " 64"},
        {"FILCH_TRACE_EVENTS", "+64"},
        {"FILCH_TRACE_EVENTS", "0x10"},
        {"FILCH_TRACE_EVENTS", "-"},
        {"FILCH_TRACE_EVENTS", "1e3"},
        {"FILCH_TRACE_EVENTS", "64.0"},
        {"FILCH_TRACE_EVENTS", "9223372036854775808"},
        {"FILCH_TRACE_EVENTS", "99999999999999999999999"},
        {"FILCH_TRACE_EVENTS", "-9223372036854775809"},
        {"FILCH_TRACE", "2"},
        {"FILCH_TRACE", "yes"},
        {"FILCH_TRACE_EVENTS", "63"},
        {"FILCH_TRACE_EVENTS", "268435457"},
        {"FILCH_SPIN_US", "-0.5"},
        {"FILCH_SPIN_US", "1000000.5"},
        {"FILCH_SPIN_US", "."},
        {"FILCH_SPIN_US", "-"},
        {"FILCH_SPIN_US", "1.2.3"},
        {"FILCH_SPIN_US", "2,5"},
        {"FILCH_SPIN_US", "nan"},
        {"FILCH_SPIN_US", "inf"},
        {"FILCH_SPIN_US", "1e3"},
        {"FILCH_SPIN_US", "0.1234567890123456"},
        {"FILCH_MEMORY_LIMIT", "0"},
        {"FILCH_MEMORY_LIMIT", "0K"},
        {"FILCH_MEMORY_LIMIT", "K"},
        {"FILCH_MEMORY_LIMIT", "-1"},
        {"FILCH_MEMORY_LIMIT", "-2G"},
        {"FILCH_MEMORY_LIMIT", "1.5G"},
        {"FILCH_MEMORY_LIMIT", "2 G"},
        {"FILCH_MEMORY_LIMIT", "2g"},
        {"FILCH_MEMORY_LIMIT", "2GB"},
        {"FILCH_MEMORY_LIMIT", "KK"},
        {"FILCH_MEMORY_LIMIT", "Half"},
        {"FILCH_MEMORY_LIMIT", "half fit"},
        {"FILCH_MEMORY_LIMIT", "8388608T"},
        {"FILCH_MEMORY_LIMIT", "9223372036854775808"},
        {"FILCH_MEMORY_LIMIT", "99999999999999999999999K"},
    };
    fl_settings settings;
    fl_settings before;

    (void)state;
    fl_settings_defaults(&settings);
    before = settings;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        filch_error error = FILCH_ERROR_INIT;

        assert_int_equal(fl_setting_parse(&settings, cases[i].name, cases[i].text, &error),
                         FILCH_PARSE);
        assert_memory_equal(&settings, &before, sizeof before);
        assert_int_equal(error.status, FILCH_PARSE);
        assert_string_equal(error.label, cases[i].name);
        assert_non_null(strstr(error.text, cases[i].name));
        assert_non_null(strstr(error.text, cases[i].text));
        assert_non_null(strstr(error.text, "allowed"));
    }
}

static void errors_say_what_is_allowed(void **state)
{
    fl_settings settings;
    filch_error error = FILCH_ERROR_INIT;

    (void)state;
    fl_settings_defaults(&settings);
    (void)fl_setting_parse(&settings, "FILCH_LOG", "loud", &error);
    assert_string_equal(error.text, "FILCH_LOG is \"loud\"; allowed is one of: "
                                    "none error warning info debug");
    (void)fl_setting_parse(&settings, "FILCH_TRACE", "7", &error);
    assert_string_equal(error.text, "FILCH_TRACE is \"7\"; allowed is an integer from 0 to 1");
    (void)fl_setting_parse(&settings, "FILCH_SPIN_US", "x", &error);
    assert_non_null(strstr(error.text, "a decimal number from 0 to 1000000"));
    (void)fl_setting_parse(&settings, "FILCH_MEMORY_LIMIT", "lots", &error);
    assert_string_equal(error.text,
                        "FILCH_MEMORY_LIMIT is \"lots\"; allowed is one of: half fit, or bytes "
                        "from 1 to 9223372036854775807, which may end in K, M, G or T, e.g. 512M");
}

static void bytes_take_words_and_units(void **state)
{
    static const struct {
        const char *text;
        uint64_t value;
    } cases[] = {
        {"", FILCH_MEMORY_FIT},
        {"fit", FILCH_MEMORY_FIT},
        {"half", FILCH_MEMORY_HALF},
        {"1", 1},
        {"512M", UINT64_C(512) << 20},
        {"3K", 3072},
        {"080G", UINT64_C(80) << 30},
        {"8388607T", UINT64_C(8388607) << 40},
        {"9223372036854775807", INT64_MAX},
    };
    fl_settings settings;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fl_settings_defaults(&settings);
        assert_int_equal(fl_setting_parse(&settings, "FILCH_MEMORY_LIMIT", cases[i].text, NULL),
                         FILCH_OK);
        assert_true((uint64_t)settings.memory_limit == cases[i].value);
    }
}

static void numbers_round_correctly_in_every_locale(void **state)
{
    static const struct {
        const char *text;
        double value;
    } cases[] = {
        {"0", 0.0},           {"0.1", 0.1},
        {".5", 0.5},          {"7.", 7.0},
        {"123.456", 123.456}, {"0.00000000000001", 1e-14},
        {"1000000", 1e6},     {"3.14159265358979", 3.14159265358979},
    };
    static const char *const locales[] = {"C", "de_DE.UTF-8", "fr_FR.UTF-8"};
    fl_settings settings;

    (void)state;
    for (size_t l = 0; l < 3; l++) {
        /* Where a locale is not installed the one before stays. */
        (void)setlocale(LC_ALL, locales[l]);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            assert_int_equal(fl_setting_parse(&settings, "FILCH_SPIN_US", cases[i].text, NULL),
                             FILCH_OK);
            assert_true(settings.spin_us == cases[i].value);
        }
    }
    (void)setlocale(LC_ALL, "C");
}

static void texts_of_any_length_are_kept_or_refused(void **state)
{
    fl_settings settings;
    filch_error error = FILCH_ERROR_INIT;
    char text[2000];

    (void)state;
    for (size_t length = 250; length < sizeof text; length++) {
        filch_status expected = length < FL_SETTING_TEXT ? FILCH_OK : FILCH_PARSE;

        memset(text, 'h', length);
        text[length] = '\0';
        settings.trace_events = 77;
        assert_int_equal(fl_setting_parse(&settings, "FILCH_DEVICES", text, &error), expected);
        if (expected == FILCH_OK)
            assert_string_equal(settings.devices, text);
        assert_int_equal(settings.trace_events, 77);
    }
    /* The value is quoted in part, so that what is allowed still fits. */
    assert_non_null(strstr(error.text, "hhh...\"; allowed are at most 255 characters"));
    (void)fl_setting_parse(&settings, "FILCH_TRACE", "1\n\x1b[2J", &error);
    assert_non_null(strstr(error.text, "\"1??[2J\""));
}

static void unknown_names_are_not_parsed(void **state)
{
    fl_settings settings;
    filch_error error = FILCH_ERROR_INIT;
    char name[5000];

    (void)state;
    fl_settings_defaults(&settings);
    assert_int_equal(fl_setting_parse(&settings, "FILCH_TRAEC", "1", &error), FILCH_NOT_FOUND);
    assert_string_equal(error.text, "there is no setting \"FILCH_TRAEC\"; "
                                    "the nearest is FILCH_TRACE");
    assert_int_equal(fl_setting_parse(&settings, "", "1", NULL), FILCH_NOT_FOUND);
    assert_int_equal(fl_setting_parse(&settings, "FILCH_TRACE_", "1", NULL), FILCH_NOT_FOUND);
    memset(name, 'F', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_int_equal(fl_setting_parse(&settings, name, "1", &error), FILCH_NOT_FOUND);
    assert_defaults(&settings);
}

static void a_malformed_variable_changes_and_logs_nothing(void **state)
{
    fl_settings settings;
    fl_settings before;
    filch_error error = FILCH_ERROR_INIT;
    heard all = {0};
    const fl_log log = {hear, &all, FILCH_LOG_DEBUG};

    (void)state;
    memset(&settings, 0xee, sizeof settings);
    before = settings;
    (void)setenv("FILCH_POLICY", "static", 1);
    (void)setenv("FILCH_SPIN_US", "fast", 1);
    (void)setenv("FILCH_POLCY", "static", 1);
    assert_int_equal(fl_settings_read(&settings, &log, &error), FILCH_PARSE);
    assert_memory_equal(&settings, &before, sizeof before);
    assert_string_equal(error.label, "FILCH_SPIN_US");
    assert_non_null(strstr(error.text, "fast"));
    assert_int_equal(all.calls, 0);
    assert_int_equal(fl_settings_read(&settings, &log, NULL), FILCH_PARSE);
}

static void unknown_variables_are_warned_of_once_each(void **state)
{
    fl_settings settings;
    heard all = {0};
    const fl_log log = {hear, &all, FILCH_LOG_DEFAULT};

    (void)state;
    (void)setenv("FILCH_POLCY", "static", 1);
    (void)setenv("FILCH_POLICY", "static", 1);
    (void)setenv("FILCHER", "not ours", 1);
    (void)setenv("FILCH_BLAS_TILE", "the drop-in's", 1);
    assert_int_equal(fl_settings_read(&settings, &log, NULL), FILCH_OK);
    assert_int_equal(settings.policy, FILCH_POLICY_STATIC);
    assert_int_equal(all.calls, 1);
    assert_int_equal(all.level, FILCH_LOG_WARNING);
    assert_string_equal(all.text[0], "the environment sets FILCH_POLCY, which filch does not "
                                     "know; the nearest is FILCH_POLICY");
    (void)setenv("FILCH_", "", 1);
    (void)setenv("FILCH_BLAST", "1", 1);
    all.calls = 0;
    assert_int_equal(fl_settings_read(&settings, &log, NULL), FILCH_OK);
    assert_int_equal(all.calls, 3);
    /* The host asked for errors only. */
    all.calls = 0;
    assert_int_equal(fl_settings_read(&settings, &(fl_log){hear, &all, FILCH_LOG_ERROR}, NULL),
                     FILCH_OK);
    assert_int_equal(all.calls, 0);
}

static void the_nearest_name_is_by_edits(void **state)
{
    static const struct {
        const char *wrong;
        const char *right;
    } cases[] = {
        {"FILCH_DEVICE", "FILCH_DEVICES"},
        {"FILCH_DRIVER", "FILCH_DRIVE"},
        {"FILCH_TRACE_EVENT", "FILCH_TRACE_EVENTS"},
        {"FILCH_TRACES", "FILCH_TRACE"},
        {"FILCH_ALOCATOR", "FILCH_ALLOCATOR"},
        {"FILCH_SPIN", "FILCH_SPIN_US"},
        {"FILCH_LOGS", "FILCH_LOG"},
    };
    fl_settings settings;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        filch_error error = FILCH_ERROR_INIT;
        char expected[64];

        (void)snprintf(expected, sizeof expected, "the nearest is %s", cases[i].right);
        (void)fl_setting_parse(&settings, cases[i].wrong, "1", &error);
        assert_non_null(strstr(error.text, expected));
    }
}

static void the_hosts_wishes_beat_the_log_setting(void **state)
{
    heard all = {0};
    const fl_log mine = {hear, &all, FILCH_LOG_ERROR};
    const fl_log open = {hear, &all, FILCH_LOG_DEFAULT};
    fl_settings settings;

    (void)state;
    fl_settings_defaults(&settings);
    assert_null(fl_settings_log(&settings, NULL).fn);
    assert_int_equal(fl_settings_log(&settings, &open).level, FILCH_LOG_WARNING);
    settings.log = FILCH_LOG_DEBUG;
    assert_true(fl_settings_log(&settings, NULL).fn == fl_log_stderr);
    assert_int_equal(fl_settings_log(&settings, NULL).level, FILCH_LOG_DEBUG);
    assert_true(fl_settings_log(&settings, &open).fn == hear);
    assert_int_equal(fl_settings_log(&settings, &open).level, FILCH_LOG_DEBUG);
    assert_true(fl_settings_log(&settings, &mine).fn == hear);
    assert_ptr_equal(fl_settings_log(&settings, &mine).user, &all);
    assert_int_equal(fl_settings_log(&settings, &mine).level, FILCH_LOG_ERROR);
}

static void the_cache_lies_where_it_is_told(void **state)
{
    static const struct {
        const char *setting, *xdg, *home, *path;
    } cases[] = {
        {"/big/cache", "/xdg", "/home/me", "/big/cache"},
        {"", "/xdg", "/home/me", "/xdg/filch"},
        {"", "relative", "/home/me", "/home/me/.cache/filch"},
        {"", "", "/home/me", "/home/me/.cache/filch"},
        {"", NULL, "/home/me", "/home/me/.cache/filch"},
        {"", NULL, NULL, NULL},
        {"", NULL, "", NULL},
        {"off", "/xdg", "/home/me", NULL},
    };
    fl_settings settings;
    char path[4096], here[2048], expected[4096];

    (void)state;
    fl_settings_defaults(&settings);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        (void)(cases[i].xdg == NULL ? unsetenv("XDG_CACHE_HOME")
                                    : setenv("XDG_CACHE_HOME", cases[i].xdg, 1));
        (void)(cases[i].home == NULL ? unsetenv("HOME") : setenv("HOME", cases[i].home, 1));
        assert_int_equal(fl_setting_parse(&settings, "FILCH_CACHE_DIR", cases[i].setting, NULL),
                         FILCH_OK);
        if (cases[i].path == NULL) {
            assert_int_equal(fl_settings_cache_path(&settings, path, sizeof path), FILCH_NOT_FOUND);
            continue;
        }
        assert_int_equal(fl_settings_cache_path(&settings, path, sizeof path), FILCH_OK);
        assert_string_equal(path, cases[i].path);
        assert_int_equal(fl_settings_cache_path(&settings, path, strlen(cases[i].path)),
                         FILCH_OVERFLOW);
    }
    assert_int_equal(fl_setting_parse(&settings, "FILCH_CACHE_DIR", "a/b", NULL), FILCH_OK);
    assert_non_null(getcwd(here, sizeof here));
    (void)snprintf(expected, sizeof expected, "%s/a/b", here);
    assert_int_equal(fl_settings_cache_path(&settings, path, sizeof path), FILCH_OK);
    assert_string_equal(path, expected);
}

static void a_foreign_variable_is_quoted_within_bounds(void **state)
{
    char text[8] = "before";

    (void)state;
    (void)unsetenv("CUDA_VISIBLE_DEVICES");
    assert_false(fl_environment_quote("CUDA_VISIBLE_DEVICES", text, sizeof text));
    assert_string_equal(text, "before");
    (void)setenv("CUDA_VISIBLE_DEVICES", "", 1);
    assert_true(fl_environment_quote("CUDA_VISIBLE_DEVICES", text, sizeof text));
    assert_string_equal(text, "");
    (void)setenv("CUDA_VISIBLE_DEVICES", "0\n1234567", 1);
    assert_true(fl_environment_quote("CUDA_VISIBLE_DEVICES", text, sizeof text));
    assert_string_equal(text, "0?12345");
    (void)unsetenv("CUDA_VISIBLE_DEVICES");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(rows_describe_every_setting, clean),
        cmocka_unit_test_setup(every_default_is_acceptable_to_its_row, clean),
        cmocka_unit_test_setup(an_empty_environment_gives_the_defaults, clean),
        cmocka_unit_test_setup(the_environment_sets_every_field, clean),
        cmocka_unit_test_setup(empty_variables_count_as_absent, clean),
        cmocka_unit_test_setup(every_choice_is_its_enumerator, clean),
        cmocka_unit_test_setup(malformed_values_are_refused, clean),
        cmocka_unit_test_setup(errors_say_what_is_allowed, clean),
        cmocka_unit_test_setup(bytes_take_words_and_units, clean),
        cmocka_unit_test_setup(numbers_round_correctly_in_every_locale, clean),
        cmocka_unit_test_setup(texts_of_any_length_are_kept_or_refused, clean),
        cmocka_unit_test_setup(unknown_names_are_not_parsed, clean),
        cmocka_unit_test_setup(a_malformed_variable_changes_and_logs_nothing, clean),
        cmocka_unit_test_setup(unknown_variables_are_warned_of_once_each, clean),
        cmocka_unit_test_setup(the_nearest_name_is_by_edits, clean),
        cmocka_unit_test_setup(the_hosts_wishes_beat_the_log_setting, clean),
        cmocka_unit_test_setup(the_cache_lies_where_it_is_told, clean),
        cmocka_unit_test_setup(a_foreign_variable_is_quoted_within_bounds, clean),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
