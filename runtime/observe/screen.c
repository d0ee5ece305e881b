/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "observe/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/config.h"

/* Lines of a frame that is no terminal's. */
#define PLAIN_HEIGHT 40u
/* Bytes that a terminal needs more: for the frame, and for a line. */
#define EXTRA_FRAME 64u
#define EXTRA_LINE 8u
/* A look whether more can be written, ms; looks after the end has been asked for. */
#define LOOK_MS 20
#define LAST_LOOKS 10

/* --- Output --- */

static bool is_ending(fl_screen *screen)
{
    fl_mutex_lock(&screen->lock);
    bool ends = screen->ends;
    fl_mutex_unlock(&screen->lock);
    return ends;
}

/* Waits until something can be written. False: the screen ends, and it was not soon. */
static bool await_room(fl_screen *screen, int *looks)
{
    struct pollfd file = {.fd = screen->file, .events = POLLOUT};
    while (poll(&file, 1, LOOK_MS) == 0) {
        if (is_ending(screen) && ++*looks > LAST_LOOKS) {
            return false;
        }
    }
    return true; /* a failure of poll shows in the write */
}

/* Writes a part, without waiting where that can be told. A pipe with room takes so much at once. */
static ssize_t write_part(const fl_screen *screen, const char *text, size_t size)
{
    size = size < PIPE_BUF ? size : PIPE_BUF;
    ssize_t written = send(screen->file, text, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    return written < 0 && errno == ENOTSOCK ? write(screen->file, text, size) : written;
}

/* Writes everything. False: nobody reads, or it cannot be written. A SIGPIPE stays with the thread,
 * which blocks signals. */
static bool write_all(fl_screen *screen, const char *text, size_t size)
{
    int looks = 0;
    for (size_t at = 0; at < size;) {
        if (!await_room(screen, &looks)) {
            return false;
        }
        ssize_t written = write_part(screen, text + at, size - at);
        if (written > 0) {
            at += (size_t)written;
        } else if (written < 0 && errno == EAGAIN) {
            (void)poll(NULL, 0, LOOK_MS); /* room for a part, but none is taken */
            if (is_ending(screen) && ++looks > LAST_LOOKS) {
                return false;
            }
        } else if (written == 0 || errno != EINTR) {
            return false;
        }
    }
    return true;
}

/* Opens what descriptor 2 leads to. A second opening of a terminal or pipe never blocks, without
 * an effect on the host's descriptor. A descriptor that is closed on exec is no standard error: the
 * host has none, and a file of the process has its number. */
static int open_output(void)
{
    struct stat about;
    int file = -1, flags = fcntl(STDERR_FILENO, F_GETFD);
    if (flags < 0 || (flags & FD_CLOEXEC) != 0 || fstat(STDERR_FILENO, &about) != 0) {
        return -1;
    }
    if (S_ISCHR(about.st_mode) || S_ISFIFO(about.st_mode)) {
        file = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    }
    return file >= 0 ? file : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

static bool draws_in_place(int file)
{
    const char *term = fl_environment_value("TERM");
    return isatty(file) && term != NULL && strcmp(term, "dumb") != 0;
}

/* --- Frames --- */

/* Appends to screen->out, which has room. */
__attribute__((format(printf, 3, 4))) static void put(fl_screen *screen, size_t *at,
                                                      const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(screen->out + *at, screen->out_bytes - *at, format, args);
    va_end(args);
    *at += length > 0 ? (size_t)length : 0;
}

/* Turns the frame's lines into what a terminal shows below its cursor. ECMA-48 and DEC's codes: ESC
 * D goes down and scrolls, ESC 7 and ESC 8 keep the cursor's place and take it back. */
static size_t place_below(fl_screen *screen, bool is_last)
{
    size_t at = 0, lines = 0;
    for (const char *c = screen->frame; *c != '\0'; ++c) {
        lines += *c == '\n';
    }
    if (!is_last) { /* makes room: the kept place must not scroll away */
        for (size_t i = 0; i < lines; ++i) {
            put(screen, &at, "\033D");
        }
        put(screen, &at, "\033[%zuA\0337", lines);
    }
    /* The program may have moved on to a row of the frame before. */
    put(screen, &at, "\033[K");
    for (const char *line = screen->frame; *line != '\0';) {
        const char *end = strchr(line, '\n');
        put(screen, &at, "\r\n%.*s\033[K", (int)(end - line), line);
        line = end + 1;
    }
    put(screen, &at, "\033[J%s", is_last ? "\r\n" : "\0338");
    return at;
}

static bool draw(fl_screen *screen, bool is_last)
{
    fl_view frame = {.is_last = is_last};
    struct winsize size = {.ws_row = 0};
    screen->fill(screen->user, is_last, &frame);
    if (!screen->is_terminal) {
        size_t length = fl_view_draw(screen->frame, screen->frame_bytes - 1, &frame, FL_VIEW_WIDTH,
                                     PLAIN_HEIGHT);
        memcpy(screen->frame + length, "\n", 2);
        return write_all(screen, screen->frame, length + 1);
    }
    if (ioctl(screen->file, TIOCGWINSZ, &size) != 0 || size.ws_row < 2 || size.ws_col < 2) {
        size = (struct winsize){.ws_row = 24, .ws_col = 80};
    }
    /* A full last column would wrap; the cursor's line stays free. */
    fl_view_draw(screen->frame, screen->frame_bytes, &frame, size.ws_col - 1u, size.ws_row - 1u);
    return write_all(screen, screen->out, place_below(screen, is_last));
}

/* --- The thread --- */

/* Sleeps for a period. Returns whether the screen ends. */
static bool rest(fl_screen *screen)
{
    uint64_t now = fl_time_now(), until = now + screen->period;
    fl_mutex_lock(&screen->lock);
    for (; !screen->ends && now < until; now = fl_time_now()) {
        (void)fl_cond_wait_for(&screen->ended, &screen->lock, until - now);
    }
    bool ends = screen->ends;
    fl_mutex_unlock(&screen->lock);
    return ends;
}

static int draw_all(void *arg)
{
    fl_screen *screen = arg;
    bool is_read = true;
    fl_thread_name("filch-live");
    while (is_read && !rest(screen)) {
        is_read = draw(screen, false);
    }
    if (is_read) {
        (void)draw(screen, true);
    }
    return 0;
}

static void free_all(fl_screen *screen)
{
    fl_free(screen->memory, screen->frame, screen->frame_bytes);
    fl_free(screen->memory, screen->out, screen->out_bytes);
    close(screen->file);
}

static filch_status start_thread(fl_screen *screen)
{
    filch_status status = fl_mutex_init(&screen->lock);
    if (status != FILCH_OK) {
        return status;
    }
    if ((status = fl_cond_init(&screen->ended)) == FILCH_OK) {
        status = fl_thread_start(&screen->thread, draw_all, screen);
        if (status == FILCH_OK) {
            return FILCH_OK;
        }
        fl_cond_fini(&screen->ended);
    }
    fl_mutex_fini(&screen->lock);
    return status;
}

filch_status fl_screen_start(fl_screen *screen, const fl_memory *memory, uint32_t devices,
                             double seconds, fl_screen_fn fill, void *user)
{
    size_t lines = (size_t)devices + FL_VIEW_HEADS;
    uint64_t period = fl_time_from_seconds(seconds);
    *screen = (fl_screen){.memory = memory,
                          .fill = fill,
                          .user = user,
                          .period = period > FL_SCREEN_PERIOD_NS ? period : FL_SCREEN_PERIOD_NS,
                          .file = open_output(),
                          .frame_bytes = lines * (FL_VIEW_WIDTH + 1) + 2};
    screen->out_bytes = screen->frame_bytes + lines * EXTRA_LINE + EXTRA_FRAME;
    if (screen->file < 0) {
        return FILCH_IO;
    }
    screen->is_terminal = draws_in_place(screen->file);
    screen->frame = fl_alloc(memory, screen->frame_bytes);
    screen->out = fl_alloc(memory, screen->out_bytes);
    filch_status status =
        screen->frame == NULL || screen->out == NULL ? FILCH_OUT_OF_MEMORY : start_thread(screen);
    if (status != FILCH_OK) {
        free_all(screen);
    }
    return status;
}

void fl_screen_stop(fl_screen *screen)
{
    fl_mutex_lock(&screen->lock);
    screen->ends = true;
    fl_cond_signal(&screen->ended);
    fl_mutex_unlock(&screen->lock);
    fl_thread_join(screen->thread);
    fl_cond_fini(&screen->ended);
    fl_mutex_fini(&screen->lock);
    free_all(screen);
}
