/* SPDX-License-Identifier: Apache-2.0 */
#include "png_image.h"

#include "fail.h"

#include <png.h>

#include <limits.h>
#include <string.h>

/* libpng's simplified interface: it reports through the structure and never jumps out of a frame of
 * ours. */
filch_status bench_png_write(const char *path, size_t width, size_t height,
                             const unsigned char *rgb, filch_error *error)
{
    if (width == 0 || height == 0 || width > INT32_MAX / 3 || height > INT32_MAX)
        return bench_fail(error, FILCH_INVALID_ARGUMENT, path, 0,
                          "a picture cannot be %zu x %zu pixels", width, height);
    png_image image;
    memset(&image, 0, sizeof image);
    image.version = PNG_IMAGE_VERSION;
    image.width = (png_uint_32)width;
    image.height = (png_uint_32)height;
    image.format = PNG_FORMAT_RGB;
    if (!png_image_write_to_file(&image, path, 0, rgb, 0, NULL)) {
        bench_fail(error, FILCH_IO, path, 0, "cannot be written: %s", image.message);
        png_image_free(&image);
        return FILCH_IO;
    }
    return FILCH_OK;
}
