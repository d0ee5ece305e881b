/* SPDX-License-Identifier: Apache-2.0 */
#include "problems/png_image.h"

#include "support/fail.h"
#include "support/file_out.h"

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
    bench_file file;
    filch_status status = bench_file_begin(&file, path, error);
    if (status != FILCH_OK)
        return status;
    if (png_image_write_to_stdio(&image, file.stream, 0, rgb, 0, NULL))
        return bench_file_end(&file, error);
    /* The file's own failure says more than libpng's text. */
    if (file.output.code != 0)
        (void)bench_file_end(&file, error);
    else
        bench_fail(error, FILCH_IO, path, 0, "cannot be written: %s", image.message);
    bench_file_drop(&file);
    png_image_free(&image);
    return FILCH_IO;
}
