/* SPDX-License-Identifier: Apache-2.0 */
/* Screen of the live view: a thread that draws a frame on standard error, period by period.
 *
 * On a terminal the frame stands below the cursor, and the cursor goes back to its place: what the
 * program writes goes on where it stopped. Elsewhere, and where TERM is "dumb" or not set, each
 * frame is a block of plain lines. A terminal or pipe that takes nothing holds up the screen's own
 * thread alone, and its end for a fraction of a second. */
#ifndef FL_OBSERVE_SCREEN_H
#define FL_OBSERVE_SCREEN_H

#include "base/memory.h"
#include "base/thread.h"
#include "observe/view.h"

/* Shortest period, ns. */
#define FL_SCREEN_PERIOD_NS 50000000u

/* Fills the frame for the time since the call before, or, for the last frame, for the whole time.
 * Called by the screen's thread alone; what the frame points to stays until the next call. */
typedef void (*fl_screen_fn)(void *user, bool is_last, fl_view *frame);

typedef struct fl_screen {
    const fl_memory *memory;
    fl_screen_fn fill;
    void *user;
    uint64_t period; /* ns */
    int file;        /* of its own: the host may close or replace descriptor 2 */
    bool is_terminal;
    size_t frame_bytes, out_bytes;
    char *frame, *out; /* text of a frame; the same with what the terminal needs */
    fl_thread thread;
    fl_mutex lock;
    fl_cond ended;
    bool ends; /* under the lock */
} fl_screen;

/* Starts the thread, for frames of `devices` devices. seconds: the period. FILCH_OUT_OF_MEMORY;
 * FILCH_SYSTEM (no thread or lock); FILCH_IO (descriptor 2 is not open): nothing is left behind. */
filch_status fl_screen_start(fl_screen *screen, const fl_memory *memory, uint32_t devices,
                             double seconds, fl_screen_fn fill, void *user);
/* Draws the last frame, with the cursor below, and ends the thread. */
void fl_screen_stop(fl_screen *screen);

#endif
