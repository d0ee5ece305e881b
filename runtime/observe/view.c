/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/view.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NAME_LONGEST 24
#define BAR_LONGEST 20
#define BAR_SHORTEST 4
/* Bytes of a number's text: five characters, and room for what no reading has. */
#define NUMBER_SIZE 24

/* Widths of the columns behind the bar, with the blanks before them. */
#define COLUMNS_COUNTS 26 /* busy, tasks/s, ready, stolen */
#define COLUMNS_MEMORY 29 /* memory, in, out */

/* A line under construction; text beyond the longest line is dropped. */
typedef struct line {
    char text[FL_VIEW_WIDTH + 1];
    size_t length;
} line;

/* What all lines of a frame have in common. */
typedef struct layout {
    char *text;
    size_t size, length;
    size_t width;
    int name, bar; /* columns of names and bars */
    bool has_memory;
} layout;

__attribute__((format(printf, 2, 3))) static void put(line *to, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(to->text + to->length, sizeof to->text - to->length, format, args);
    va_end(args);
    to->length += length > 0 ? (size_t)length : 0;
    to->length = to->length < sizeof to->text ? to->length : sizeof to->text - 1;
}

/* Ends a line: cuts to the width, drops trailing blanks. */
static void finish(layout *to, line *from)
{
    size_t length = from->length < to->width ? from->length : to->width;
    while (length > 0 && from->text[length - 1] == ' ') {
        --length;
    }
    if (to->length + length + 2 <= to->size) {
        memcpy(to->text + to->length, from->text, length);
        to->length += length;
        to->text[to->length++] = '\n';
        to->text[to->length] = '\0';
    }
}

/* --- Numbers: three digits and a unit. Integers only, since a locale may change the point. --- */

/* Writes a value of at least 0 with as many decimals as three digits leave. */
static void put_digits(char text[NUMBER_SIZE], double value, const char *unit)
{
    int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    unsigned scale = decimals == 2 ? 100 : decimals == 1 ? 10 : 1;
    unsigned digits = (unsigned)(value * scale + 0.5);
    if (decimals == 0) {
        snprintf(text, NUMBER_SIZE, "%u%s", digits, unit);
    } else {
        snprintf(text, NUMBER_SIZE, "%u.%0*u%s", digits / scale, decimals, digits % scale, unit);
    }
}

static const char *scaled(char text[NUMBER_SIZE], double value, double base)
{
    static const char *const units[] = {"", "k", "M", "G", "T", "P", "E"};
    size_t unit = 0;
    for (; value >= 999.5 && unit < sizeof units / sizeof units[0] - 1; ++unit) {
        value /= base;
    }
    if (value >= 999.5) {
        snprintf(text, NUMBER_SIZE, ">999E");
    } else if (!(value >= 0.005)) { /* also for what is no number */
        snprintf(text, NUMBER_SIZE, "0");
    } else {
        put_digits(text, value, units[unit]);
    }
    return text;
}

static const char *rate(char text[NUMBER_SIZE], double value)
{
    return scaled(text, value, 1000);
}

static const char *bytes(char text[NUMBER_SIZE], uint64_t value)
{
    return value == 0 ? "0" : scaled(text, (double)value, 1024);
}

static const char *count(char text[NUMBER_SIZE], uint64_t value)
{
    if (value >= 1000) {
        return scaled(text, (double)value, 1000);
    }
    snprintf(text, NUMBER_SIZE, "%u", (unsigned)value);
    return text;
}

/* --- Lines --- */

static double clamp(double share)
{
    return share > 1 ? 1 : share > 0 ? share : 0;
}

/* Writes text in a column of the width, with '?' for all but ASCII. */
static void put_name(line *to, const char *text, int width)
{
    int at = 0;
    for (; at < width && text[at] != '\0'; ++at) {
        bool is_plain = text[at] >= ' ' && text[at] <= '~';
        put(to, "%c", is_plain ? text[at] : '?');
    }
    put(to, "%*s", width - at, "");
}

static void put_bar(line *to, const fl_view_device *device, int width)
{
    int on = (int)(clamp(device->on) * width + 0.5), off = (int)(clamp(device->off) * width + 0.5);
    off = off < width - on ? off : width - on;
    put(to, " [");
    for (int i = 0; i < width; ++i) {
        put(to, "%c", i < on ? '#' : i < width - off ? '.' : 'x');
    }
    put(to, "]");
}

/* Writes the columns that every device has. */
static void put_counts(line *to, const fl_view_device *device)
{
    char tasks[NUMBER_SIZE], ready[NUMBER_SIZE], stolen[NUMBER_SIZE];
    unsigned percent = (unsigned)(clamp(device->on) * 100 + 0.5);
    if (device->is_off && percent == 0) {
        put(to, "  off");
    } else {
        put(to, " %3u%%", percent);
    }
    put(to, " %7s %5s %6s", rate(tasks, device->rate), count(ready, device->ready),
        count(stolen, device->stolen));
}

static void put_device(layout *to, const fl_view_device *device)
{
    line row = {.length = 0};
    char used[NUMBER_SIZE], most[NUMBER_SIZE], in[NUMBER_SIZE], out[NUMBER_SIZE];
    put_name(&row, device->name, to->name);
    put_bar(&row, device, to->bar);
    put_counts(&row, device);
    if (device->has_memory) {
        put(&row, " %6s/%-5s %7s %7s", bytes(used, device->memory), bytes(most, device->budget),
            rate(in, device->in), rate(out, device->out));
    }
    finish(to, &row);
}

/* Writes a line for the devices from `first` on. */
static void put_rest(layout *to, const fl_view *frame, uint32_t first)
{
    line row = {.length = 0};
    fl_view_device sum = {.is_off = true};
    char text[64];
    double devices = (double)(frame->count - first);
    for (uint32_t i = first; i < frame->count; ++i) {
        const fl_view_device *device = &frame->devices[i];
        sum.on += device->on / devices;
        sum.rate += device->rate;
        sum.ready += device->ready;
        sum.stolen += device->stolen;
        sum.is_off = sum.is_off && device->is_off;
    }
    snprintf(text, sizeof text, "... and %u more", (unsigned)(frame->count - first));
    put_name(&row, text, to->name + to->bar + 3);
    put_counts(&row, &sum);
    finish(to, &row);
}

static void put_jobs(layout *to, const fl_view *frame)
{
    line row = {.length = 0};
    char running[NUMBER_SIZE], done[NUMBER_SIZE], ended[NUMBER_SIZE], speed[NUMBER_SIZE];
    double tasks = 0;
    uint64_t tenths = frame->seconds > 0 ? (uint64_t)(frame->seconds * 10 + 0.5) : 0;
    for (uint32_t i = 0; i < frame->count; ++i) {
        tasks += frame->devices[i].rate;
    }
    put(&row, "filch  %llu.%u s%s  jobs: %s running, %s done  tasks: %s ended, %s/s",
        (unsigned long long)(tenths / 10), (unsigned)(tenths % 10), frame->is_last ? " in all" : "",
        count(running, frame->running), count(done, frame->done), count(ended, frame->ended),
        rate(speed, tasks));
    finish(to, &row);
}

static void put_titles(layout *to)
{
    line row = {.length = 0};
    put_name(&row, "device", to->name);
    put(&row, "  %-*s  busy %7s %5s %6s", to->bar, "", "tasks/s", "ready", "stolen");
    if (to->has_memory) {
        put(&row, " %12s %7s %7s", "memory", "in B/s", "out B/s");
    }
    finish(to, &row);
}

/* --- The frame --- */

/* Chooses the columns: what they need goes before the length of the bar. */
static void lay_out(layout *to, const fl_view *frame)
{
    size_t longest = sizeof "device" - 1;
    for (uint32_t i = 0; i < frame->count; ++i) {
        size_t length = strlen(frame->devices[i].name);
        longest = length > longest ? length : longest;
        to->has_memory = to->has_memory || frame->devices[i].has_memory;
    }
    to->name = longest < NAME_LONGEST ? (int)longest : NAME_LONGEST;
    int fixed = to->name + 3 + COLUMNS_COUNTS + (to->has_memory ? COLUMNS_MEMORY : 0);
    int left = (int)to->width - fixed;
    to->bar = left > BAR_LONGEST ? BAR_LONGEST : left > BAR_SHORTEST ? left : BAR_SHORTEST;
}

size_t fl_view_draw(char *text, size_t size, const fl_view *frame, uint32_t width, uint32_t height)
{
    layout to = {
        .text = text, .size = size, .width = width < FL_VIEW_WIDTH ? width : FL_VIEW_WIDTH};
    text[0] = '\0';
    lay_out(&to, frame);
    put_jobs(&to, frame);
    if (height < FL_VIEW_HEADS) {
        return to.length;
    }
    uint32_t rows = height - (FL_VIEW_HEADS - 1);
    uint32_t shown = frame->count <= rows ? frame->count : rows - 1;
    put_titles(&to);
    for (uint32_t i = 0; i < shown; ++i) {
        put_device(&to, &frame->devices[i]);
    }
    if (shown < frame->count) {
        put_rest(&to, frame, shown);
    }
    return to.length;
}
