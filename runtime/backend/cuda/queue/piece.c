/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/cuda/queue/piece.h"

#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* Sizes of pieces. Copies are cut so that both ends of the way work at once, large copies more
 * finely, but not without need: between two copies of a lane the link idles for 2.6 us, a fifth of
 * the time of 512 KiB. */
#define PIECES 4
#define LEAST_PIECE ((size_t)512 << 10)
#define PIECES_OF_LARGE 8
#define LARGE_PIECE ((size_t)2 << 20)
/* Columns of at least STREAM_LEAST bytes are written past the caches. */
#define STREAM_LEAST 4096u

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t length_of(const fl_cut *cut, size_t k)
{
    return k < FL_CUT_LEADS ? cut->lead[k] : cut->each;
}

static size_t begin_of(const fl_cut *cut, size_t k)
{
    size_t begin = k > FL_CUT_LEADS ? (k - FL_CUT_LEADS) * cut->each : 0;
    for (size_t i = 0; i < k && i < FL_CUT_LEADS; ++i) {
        begin += cut->lead[i];
    }
    return begin;
}

/* Returns the number of pieces in a length. */
static size_t count(const fl_cut *cut, size_t length)
{
    size_t led = begin_of(cut, FL_CUT_LEADS), pieces = 1;
    if (length > led) {
        return FL_CUT_LEADS + (length - led - 1) / cut->each + 1;
    }
    while (begin_of(cut, pieces) < length) {
        ++pieces;
    }
    return pieces;
}

fl_cut fl_cut_copy(const fl_copy *copy, size_t most, bool is_led)
{
    size_t bytes = copy->width * copy->height;
    size_t piece = smaller(larger(bytes / PIECES, LEAST_PIECE), LARGE_PIECE);
    piece = (larger(piece, bytes / PIECES_OF_LARGE) + 4095) & ~(size_t)4095;
    piece = smaller(piece, most);
    fl_cut cut = {.is_by_columns = copy->width <= piece};
    size_t unit = cut.is_by_columns ? copy->width : 1;
    size_t each = piece / unit;
    cut.each = each != 0 ? each : 1;
    for (size_t i = 0; i < FL_CUT_LEADS; ++i) {
        size_t lead = is_led && (cut.is_by_columns || copy->height == 1)
                          ? smaller((LEAST_PIECE << i) / unit, cut.each)
                          : cut.each;
        cut.lead[i] = lead != 0 ? lead : 1;
    }
    cut.parts = count(&cut, cut.is_by_columns ? copy->height : copy->width);
    cut.pieces = cut.is_by_columns ? cut.parts : cut.parts * copy->height;
    return cut;
}

fl_copy fl_cut_piece(const fl_copy *copy, const fl_cut *cut, size_t k, char **host)
{
    size_t column = cut->is_by_columns ? begin_of(cut, k) : k / cut->parts;
    size_t offset = cut->is_by_columns ? 0 : begin_of(cut, k % cut->parts);
    fl_copy piece = *copy;
    piece.to = (char *)copy->to + column * copy->to_pitch + offset;
    piece.from = (const char *)copy->from + column * copy->from_pitch + offset;
    piece.behind_count = 0;
    if (cut->is_by_columns) {
        piece.height = smaller(length_of(cut, k), copy->height - column);
    } else {
        piece.width = smaller(length_of(cut, k % cut->parts), copy->width - offset);
        piece.height = 1;
    }
    if (copy->from_device == NULL) {
        *host = (char *)(uintptr_t)piece.from;
        piece.from = NULL;
        piece.from_pitch = piece.width;
    } else {
        *host = piece.to;
        piece.to = NULL;
        piece.to_pitch = piece.width;
    }
    return piece;
}

/* Returns the offset of a slot's byte in the host's buffer. *bytes is cut to the bytes contiguous
 * there. */
static size_t place(size_t at, size_t pitch, size_t width, size_t *bytes)
{
    if (pitch == width) {
        return at;
    }
    size_t row = at % width;
    *bytes = smaller(*bytes, width - row);
    return at / width * pitch + row;
}

#if defined(__SSE2__)
/* Writes past the caches. A core writes memory not read before twice as fast this way, and no
 * thread reads the tile soon. The caller makes the stores visible. */
static void stream(char *to, const char *from, size_t bytes)
{
    size_t head = smaller(-(uintptr_t)to & 63u, bytes);
    memcpy(to, from, head);
    size_t at = head;
    for (; at + 64 <= bytes; at += 64) {
        const __m128i *source = (const void *)(from + at);
        __m128i *target = (void *)(to + at);
        __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1);
        __m128i c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);
        _mm_stream_si128(target, a);
        _mm_stream_si128(target + 1, b);
        _mm_stream_si128(target + 2, c);
        _mm_stream_si128(target + 3, d);
    }
    memcpy(to + at, from + at, bytes - at);
}
#endif

/* Moves bytes not read soon: past the caches if long enough. */
static void move_past(char *to, const char *from, size_t bytes)
{
#if defined(__SSE2__)
    if (bytes >= STREAM_LEAST) {
        stream(to, from, bytes);
        return;
    }
#endif
    memcpy(to, from, bytes);
}

/* Orders stores past the caches: an atomic's release does not order them. */
static void end_moves(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

void fl_slot_fill(char *slot, const char *host, size_t pitch, size_t width, size_t begin,
                  size_t end, bool is_past)
{
    while (begin < end) {
        size_t bytes = end - begin;
        size_t at = place(begin, pitch, width, &bytes);
        if (is_past) {
            move_past(slot + begin, host + at, bytes);
        } else {
            memcpy(slot + begin, host + at, bytes);
        }
        begin += bytes;
    }
    if (is_past) {
        end_moves();
    }
}

void fl_slot_land(const char *slot, char *host, size_t pitch, size_t width, size_t begin,
                  size_t end)
{
    while (begin < end) {
        size_t bytes = end - begin;
        size_t at = place(begin, pitch, width, &bytes);
        move_past(host + at, slot + begin, bytes);
        begin += bytes;
    }
    end_moves();
}

bool fl_columns_overlap(const char *a, size_t a_pitch, size_t a_width, size_t a_height,
                        const char *b, size_t b_pitch, size_t b_width, size_t b_height)
{
    if (b < a) {
        return fl_columns_overlap(b, b_pitch, b_width, b_height, a, a_pitch, a_width, a_height);
    }
    size_t apart = (size_t)(b - a);
    if (apart >= (a_height - 1) * a_pitch + a_width) {
        return false;
    }
    if (a_height == 1 || (a_pitch != b_pitch && b_height != 1)) {
        return true;
    }
    /* b begins inside a column of a or after the column's rows; in the second case b must not reach
     * a's next column. */
    size_t row = apart % a_pitch;
    return row < a_width || row + b_width > a_pitch;
}
