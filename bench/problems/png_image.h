/* SPDX-License-Identifier: Apache-2.0 */
/* Writes pictures. */
#ifndef BENCH_PNG_IMAGE_H
#define BENCH_PNG_IMAGE_H

#include "filch/status.h"

/* Writes width x height pixels of 8-bit red, green, blue, top row first, without padding.
 *
 * FILCH_INVALID_ARGUMENT for a size of 0 or above what PNG holds, FILCH_IO where the file cannot be
 * written; a file that was begun is then removed. */
filch_status bench_png_write(const char *path, size_t width, size_t height,
                             const unsigned char *rgb, filch_error *error);

#endif
