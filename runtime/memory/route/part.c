/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/route/part.h"

fl_part fl_part_next(size_t width, size_t height, bool is_tight, size_t sent, size_t piece)
{
    size_t left = width * height - sent;
    if (height > 1 && is_tight) {
        width *= height;
    }
    fl_part part = {.column = sent / width, .offset = sent % width, .height = 1};
    if (part.offset != 0 || width > piece) {
        size_t rest = width - part.offset;
        part.width = rest < piece ? rest : piece;
    } else {
        size_t most = left / width, wanted = piece / width;
        part.width = width;
        part.height = wanted < most ? wanted : most;
    }
    return part;
}
