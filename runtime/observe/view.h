/* SPDX-License-Identifier: Apache-2.0 */
/* Text of one frame of the live view: a line for jobs, titles, and a line a device. Plain ASCII in
 * every locale; knows no terminal. */
#ifndef FL_OBSERVE_VIEW_H
#define FL_OBSERVE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Columns of the longest line. */
#define FL_VIEW_WIDTH 132u
/* Lines beside those of devices: jobs, titles, devices not shown. */
#define FL_VIEW_HEADS 3u

typedef struct fl_view_device {
    const char *name;
    double on, off;  /* shares of the period: on a job, offline or failed; the rest is idle */
    double rate;     /* tasks a second */
    uint64_t ready;  /* ready tasks in its queue, now */
    uint64_t stolen; /* tasks taken from other devices in the period */
    bool is_off;     /* offline or failed, now */
    bool has_memory; /* the members below say something */
    uint64_t memory, budget; /* bytes in use, and their limit */
    double in, out;          /* bytes a second into and out of the memory */
} fl_view_device;

typedef struct fl_view {
    double seconds;         /* since the beginning */
    bool is_last;           /* the period is the whole time */
    uint64_t running, done; /* jobs */
    uint64_t ended;         /* tasks, since the beginning */
    uint32_t count;
    const fl_view_device *devices;
} fl_view;

/* Writes the frame: lines of at most width columns, at most height lines (at least 1), each with a
 * newline, and a terminator. Devices beyond the height are summed up in the last line. Lines that
 * do not fit into size are left out. Returns the length. */
size_t fl_view_draw(char *text, size_t size, const fl_view *frame, uint32_t width, uint32_t height);

#endif
