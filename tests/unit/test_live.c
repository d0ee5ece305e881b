/* SPDX-License-Identifier: Apache-2.0 */
/* Live view of a runtime, by the setting alone: on terminals, on pipes, and where nothing reads. */
#define _GNU_SOURCE
#include "fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../patience.h"

#define TASKS 100
#define SHORTEST "0.05"

/* Standard error of a test: `from` reads what is written. */
typedef struct outlet {
    int kept; /* the test's own standard error */
    int from;
    char text[1 << 20];
    size_t length;
} outlet;

static outlet out;

static int clean(void **state)
{
    (void)state;
    unsetenv("FILCH_LIVE");
    unsetenv("FILCH_LOG");
    setenv("TERM", "xterm", 1);
    return 0;
}

/* Puts a descriptor in the place of standard error. */
static void begin(int to, int from)
{
    fflush(stderr);
    out.kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
    assert_true(out.kept >= 0);
    assert_int_equal(dup2(to, STDERR_FILENO), STDERR_FILENO);
    close(to);
    out.from = from;
    out.length = 0;
    out.text[0] = '\0';
}

static void begin_pipe(void)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    begin(ends[1], ends[0]);
}

static void begin_terminal(unsigned short rows, unsigned short columns)
{
    struct winsize size = {.ws_row = rows, .ws_col = columns};
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    assert_int_equal(ioctl(master, TIOCSWINSZ, &size), 0);
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(slave >= 0);
    begin(slave, master);
}

/* Gives standard error back. */
static void restore(void)
{
    assert_int_equal(dup2(out.kept, STDERR_FILENO), STDERR_FILENO);
    close(out.kept);
}

/* Reads some more. False: the end. */
static bool read_some(void)
{
    struct pollfd file = {.fd = out.from, .events = POLLIN};
    assert_int_equal(poll(&file, 1, PATIENCE_S * 1000), 1);
    assert_true(out.length + 1 < sizeof out.text);
    ssize_t n = read(out.from, out.text + out.length, sizeof out.text - 1 - out.length);
    if (n <= 0) { /* a terminal without a second end gives EIO */
        return false;
    }
    out.length += (size_t)n;
    out.text[out.length] = '\0';
    return true;
}

static int count(const char *what)
{
    int times = 0;
    for (const char *at = out.text; (at = strstr(at, what)) != NULL; at += strlen(what)) {
        ++times;
    }
    return times;
}

static void await(const char *what, int times)
{
    while (count(what) < times) {
        assert_true(read_some());
    }
}

/* Reads the rest; the runtime is gone, and standard error restored. */
static void finish(void)
{
    while (read_some()) {
    }
    close(out.from);
}

static int count_descriptors(void)
{
    int descriptors = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder) != NULL) {
        ++descriptors;
    }
    closedir(folder);
    return descriptors;
}

static filch_graph *make_graph(filch_runtime *runtime)
{
    filch_codelet *codelet = fixture_codelet(runtime, "nothing", fixture_nothing, 0);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    for (int i = 0; i < TASKS; ++i) {
        fixture_add(graph, codelet, NULL, NULL, 0);
    }
    return graph;
}

static void test_pipe(void **state)
{
    (void)state;
    int before = count_descriptors();
    setenv("FILCH_LIVE", SHORTEST, 1);
    begin_pipe();
    filch_runtime *runtime = fixture_runtime("host:2", FILCH_DRIVE_THREADS, NULL);
    await("\nhost:1 [", 2);
    int threads = fixture_threads("filch-live");
    filch_graph *graph = make_graph(runtime);
    filch_status first = fixture_run(graph), second = fixture_run(graph);
    await("2 done  tasks: 200 ended", 1);
    filch_status destroyed = filch_runtime_destroy(runtime);
    restore();
    assert_ok(first);
    assert_ok(second);
    assert_ok(destroyed);
    finish();
    assert_int_equal(threads, 1);
    assert_int_equal(fixture_threads("filch-live"), 0);
    assert_int_equal(count_descriptors(), before);
    assert_null(strchr(out.text, '\033'));
    assert_null(strchr(out.text, '\r'));
    /* Every block has every line, and an empty line behind. */
    assert_int_equal(count("filch  "), count("\nhost:0 ["));
    assert_int_equal(count("filch  "), count("\nhost:1 ["));
    assert_int_equal(count("filch  "), count("\n\n"));
    assert_int_equal(count(" in all  jobs: 0 running, 2 done  tasks: 200 ended, "), 1);
}

/* What stands in one row of a terminal, codes aside, is at most so long. */
static size_t longest_row(void)
{
    size_t longest = 0, length = 0;
    for (const char *at = out.text; *at != '\0'; ++at) {
        if (*at == '\033') {
            at += strcspn(at, "DJKA78");
        } else if (*at == '\n') {
            length = 0;
        } else if (*at != '\r') {
            longest = ++length > longest ? length : longest;
        }
    }
    return longest;
}

static void test_terminal(void **state)
{
    (void)state;
    setenv("FILCH_LIVE", SHORTEST, 1);
    begin_terminal(24, 50);
    filch_runtime *runtime = fixture_runtime("host:2", FILCH_DRIVE_THREADS, NULL);
    await("\033[J\0338", 3);
    filch_graph *graph = make_graph(runtime);
    filch_status run = fixture_run(graph);
    filch_status destroyed = filch_runtime_destroy(runtime);
    restore();
    assert_ok(run);
    assert_ok(destroyed);
    finish();
    int frames = count("\033[J");
    assert_true(frames >= 4);
    /* Room for four lines, then the place of the cursor, kept and taken back. */
    assert_int_equal(count("\033D\033D\033D\033D\033[4A\0337\033[K\r"), frames - 1);
    assert_int_equal(count("\0338"), frames - 1);
    assert_int_equal(count("\nhost:0 ["), frames);
    assert_int_equal(count("\nhost:1 ["), frames);
    assert_int_equal(count(" in all  jobs: 0 running, 1 done"), 1);
    /* The cursor ends up below the last frame. */
    assert_true(out.length > 2 && strcmp(out.text + out.length - 2, "\r\n") == 0);
    assert_int_equal(longest_row(), 49);
}

static void test_low_terminal(void **state)
{
    (void)state;
    setenv("FILCH_LIVE", SHORTEST, 1);
    begin_terminal(6, 80);
    filch_runtime *runtime = fixture_runtime("host:6", FILCH_DRIVE_THREADS, NULL);
    await("\033[J\0338", 1);
    filch_status destroyed = filch_runtime_destroy(runtime);
    restore();
    assert_ok(destroyed);
    finish();
    assert_true(count("\nhost:1 [") > 0 && count("\n... and 4 more") == count("\nhost:1 ["));
    assert_int_equal(count("\nhost:2 ["), 0);
}

static void test_dumb_terminal(void **state)
{
    (void)state;
    setenv("FILCH_LIVE", SHORTEST, 1);
    setenv("TERM", "dumb", 1);
    begin_terminal(24, 80);
    filch_runtime *runtime = fixture_runtime("host:2", FILCH_DRIVE_THREADS, NULL);
    await("\nhost:1 [", 2);
    filch_status destroyed = filch_runtime_destroy(runtime);
    restore();
    assert_ok(destroyed);
    finish();
    assert_null(strchr(out.text, '\033'));
}

static void test_nothing_without_setting(void **state)
{
    (void)state;
    static const char *const values[] = {NULL, "", "0", "0.0"};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; ++i) {
        if (values[i] != NULL) {
            setenv("FILCH_LIVE", values[i], 1);
        }
        begin_terminal(24, 80);
        filch_runtime *runtime = fixture_runtime("host:2", FILCH_DRIVE_THREADS, NULL);
        int threads = fixture_threads("filch-live");
        filch_graph *graph = make_graph(runtime);
        filch_status run = fixture_run(graph);
        filch_status destroyed = filch_runtime_destroy(runtime);
        restore();
        assert_ok(run);
        assert_ok(destroyed);
        finish();
        assert_int_equal(threads, 0);
        assert_string_equal(out.text, "");
    }
}

static void test_bad_values(void **state)
{
    (void)state;
    static const char *const values[] = {"often", "-1", "601", "0.5s", "stderr"};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; ++i) {
        filch_error error = FILCH_ERROR_INIT;
        filch_runtime *runtime = NULL;
        char text[256];
        setenv("FILCH_LIVE", values[i], 1);
        assert_status(filch_runtime_create(NULL, &error, &runtime), FILCH_PARSE);
        assert_null(runtime);
        assert_string_equal(error.label, "FILCH_LIVE");
        snprintf(text, sizeof text,
                 "FILCH_LIVE is \"%s\"; allowed is a decimal number from 0 to 600", values[i]);
        assert_memory_equal(error.text, text, strlen(text));
    }
}

static void test_poll_mode(void **state)
{
    (void)state;
    setenv("FILCH_LIVE", SHORTEST, 1);
    begin_pipe();
    filch_runtime *runtime = fixture_runtime("host:2", FILCH_DRIVE_POLL, NULL);
    filch_status run = fixture_run(make_graph(runtime));
    await("1 done  tasks: 100 ended", 1);
    filch_status destroyed = filch_runtime_destroy(runtime);
    restore();
    assert_ok(run);
    assert_ok(destroyed);
    finish();
}

typedef struct heard {
    _Atomic int warnings;
    char text[512];
} heard;

static void hear(filch_log_level level, const char *text, void *user)
{
    heard *all = user;
    if (level == FILCH_LOG_WARNING && strncmp(text, "FILCH_LIVE", 10) == 0) {
        snprintf(all->text, sizeof all->text, "%s", text);
        ++all->warnings;
    }
}

static void assert_warned(const char *devices, const char *text)
{
    heard all = {.warnings = 0};
    filch_error error = FILCH_ERROR_INIT;
    filch_runtime_desc desc = FILCH_RUNTIME_DESC_INIT;
    filch_runtime *runtime = NULL;
    desc.devices = devices;
    desc.log = hear;
    desc.log_user = &all;
    filch_status created = filch_runtime_create(&desc, &error, &runtime);
    int threads = fixture_threads("filch-live");
    filch_status destroyed = filch_runtime_destroy(runtime);
    restore();
    assert_ok(created);
    assert_ok(destroyed);
    finish();
    assert_int_equal(threads, 0);
    assert_int_equal(all.warnings, 1);
    assert_string_equal(all.text, text);
    assert_string_equal(out.text, "");
}

static void test_virtual_clock(void **state)
{
    (void)state;
    char path[] = "/tmp/filch-live-XXXXXX", devices[64];
    int file = mkstemp(path);
    assert_true(file >= 0);
    dprintf(file, "{\"devices\": [{\"name\": \"one\", \"speed\": 1e6}]}");
    close(file);
    snprintf(devices, sizeof devices, "sim:%s", path);
    setenv("FILCH_LIVE", SHORTEST, 1);
    begin_pipe();
    assert_warned(devices, "FILCH_LIVE shows nothing: simulated devices have a virtual clock");
    unlink(path);
}

/* Whatever of the process's own has the number 2 is not written to. */
static void test_no_standard_error(void **state)
{
    (void)state;
    static const char text[] = "FILCH_LIVE shows nothing: standard error is not open";
    setenv("FILCH_LIVE", SHORTEST, 1);
    begin_pipe();
    close(STDERR_FILENO);
    assert_warned("host:1", text);
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    begin(dup(ends[1]), ends[0]);
    assert_int_equal(dup3(ends[1], STDERR_FILENO, O_CLOEXEC), STDERR_FILENO);
    close(ends[1]);
    assert_warned("host:1", text);
}

/* Fills what standard error leads to, so that a write would wait. */
static void fill_up(void)
{
    static char rubbish[1 << 12];
    int file = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    memset(rubbish, '.', sizeof rubbish);
    for (size_t size = sizeof rubbish; size > 0; size /= 2) {
        /* A socket cannot be opened. */
        while ((file >= 0 ? write(file, rubbish, size)
                          : send(STDERR_FILENO, rubbish, size, MSG_DONTWAIT)) > 0) {
        }
    }
    if (file >= 0) {
        close(file);
    }
}

static void begin_socket(void)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    begin(ends[1], ends[0]);
}

static void begin_any(int kind)
{
    if (kind == 0) {
        begin_pipe();
    } else if (kind == 1) {
        begin_terminal(24, 80);
    } else {
        begin_socket();
    }
}

/* The end of the runtime waits for nobody who reads. */
static void test_nobody_reads(void **state)
{
    (void)state;
    for (int i = 0; i < 3; ++i) {
        setenv("FILCH_LIVE", SHORTEST, 1);
        begin_any(i);
        fill_up();
        filch_runtime *runtime = fixture_runtime("host:2", FILCH_DRIVE_THREADS, NULL);
        filch_status run = fixture_run(make_graph(runtime));
        filch_status destroyed = filch_runtime_destroy(runtime);
        restore();
        close(out.from);
        assert_ok(run);
        assert_ok(destroyed);
    }
}

/* A reader that goes away ends the view, not the program. */
static void test_reader_leaves(void **state)
{
    (void)state;
    for (int i = 0; i < 3; ++i) {
        setenv("FILCH_LIVE", SHORTEST, 1);
        begin_any(i);
        filch_runtime *runtime = fixture_runtime("host:2", FILCH_DRIVE_THREADS, NULL);
        await("host:1 [", 1);
        close(out.from);
        while (fixture_threads("filch-live") != 0) {
            usleep(1000);
        }
        filch_status run = fixture_run(make_graph(runtime));
        filch_status destroyed = filch_runtime_destroy(runtime);
        restore();
        assert_ok(run);
        assert_ok(destroyed);
    }
}

static void test_abort(void **state)
{
    (void)state;
    setenv("FILCH_LIVE", "600", 1);
    begin_pipe();
    filch_runtime *runtime = fixture_runtime("host:2", FILCH_DRIVE_THREADS, NULL);
    filch_job *job = NULL;
    filch_status submitted = filch_graph_submit(make_graph(runtime), NULL, &job);
    filch_status aborted = filch_runtime_abort(runtime);
    restore();
    assert_ok(submitted);
    assert_ok(aborted);
    finish();
    assert_int_equal(count(" in all  jobs: 0 running, 1 done"), 1);
    assert_int_equal(count("filch  "), 1);
}

static void test_fork(void **state)
{
    (void)state;
    setenv("FILCH_LIVE", SHORTEST, 1);
    begin_pipe();
    filch_runtime *runtime = fixture_runtime("host:2", FILCH_DRIVE_THREADS, NULL);
    pid_t child = fork();
    if (child == 0) {
        _exit(filch_runtime_destroy(runtime) == FILCH_FORKED ? 0 : 1);
    }
    int result = -1;
    waitpid(child, &result, 0);
    filch_status destroyed = filch_runtime_destroy(runtime);
    restore();
    finish();
    assert_int_equal(result, 0);
    assert_ok(destroyed);
    assert_int_equal(count(" in all"), 1);
}

static void test_many_times(void **state)
{
    (void)state;
    int before = count_descriptors();
    setenv("FILCH_LIVE", SHORTEST, 1);
    for (int i = 0; i < 100; ++i) {
        fixture_memory memory;
        fixture_memory_init(&memory);
        begin_pipe();
        filch_runtime *runtime = fixture_runtime("host:2", FILCH_DRIVE_THREADS, &memory);
        filch_status run = i % 2 == 0 ? fixture_run(make_graph(runtime)) : FILCH_OK;
        filch_status destroyed = filch_runtime_destroy(runtime);
        restore();
        assert_ok(run);
        assert_ok(destroyed);
        finish();
        assert_int_equal(count(" in all"), 1);
        assert_int_equal(memory.pieces, 0);
    }
    assert_int_equal(count_descriptors(), before);
}

/* Each allocation of a creation fails once: the runtime fails, or goes without a view. */
static void test_no_memory(void **state)
{
    (void)state;
    bool failed = true;
    int without = 0, before = count_descriptors();
    setenv("FILCH_LIVE", "600", 1);
    for (int64_t n = 1; failed; ++n) {
        fixture_memory memory;
        filch_error error = FILCH_ERROR_INIT;
        filch_runtime_desc desc = FILCH_RUNTIME_DESC_INIT;
        filch_runtime *runtime = NULL;
        fixture_memory_init(&memory);
        fixture_memory_fail_after(&memory, n);
        desc.devices = "host:2";
        desc.allocator = &memory.allocator;
        begin_pipe();
        filch_status created = filch_runtime_create(&desc, &error, &runtime);
        failed = memory.calls >= memory.fail_at;
        filch_status destroyed = created == FILCH_OK ? filch_runtime_destroy(runtime) : FILCH_OK;
        restore();
        assert_ok(destroyed);
        finish();
        without += created == FILCH_OK && count(" in all") == 0;
        assert_int_equal(memory.pieces, 0);
        assert_int_equal(memory.bytes, 0);
    }
    /* The view's allocations: itself, three tables, two texts. */
    assert_int_equal(without, 6);
    assert_int_equal(count_descriptors(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_pipe, clean),
        cmocka_unit_test_setup(test_terminal, clean),
        cmocka_unit_test_setup(test_low_terminal, clean),
        cmocka_unit_test_setup(test_dumb_terminal, clean),
        cmocka_unit_test_setup(test_nothing_without_setting, clean),
        cmocka_unit_test_setup(test_bad_values, clean),
        cmocka_unit_test_setup(test_poll_mode, clean),
        cmocka_unit_test_setup(test_virtual_clock, clean),
        cmocka_unit_test_setup(test_no_standard_error, clean),
        cmocka_unit_test_setup(test_nobody_reads, clean),
        cmocka_unit_test_setup(test_reader_leaves, clean),
        cmocka_unit_test_setup(test_abort, clean),
        cmocka_unit_test_setup(test_fork, clean),
        cmocka_unit_test_setup(test_many_times, clean),
        cmocka_unit_test_setup(test_no_memory, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
