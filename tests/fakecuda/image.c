/* SPDX-License-Identifier: Apache-2.0 */
/* Images that are text: PTX, and the fake's own
 *     FAKECUBIN arch=90 entry=axpy(56,56,16),none
 * where the numbers are the bytes of each parameter; without parentheses they are unknown. /2 at
 * the end of an entry: it was compiled for clusters of two blocks. */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

fake_kernel_info *fake_image_add(fake_image *image, const char *name, size_t length)
{
    if (image->count == image->capacity) {
        image->capacity = image->capacity == 0 ? 8 : 2 * image->capacity;
        image->kernels = realloc(image->kernels, image->capacity * sizeof *image->kernels);
        if (image->kernels == NULL)
            abort();
    }
    fake_kernel_info *info = &image->kernels[image->count++];
    memset(info, 0, sizeof *info);
    info->max_threads = 1024;
    info->registers = 32;
    (void)snprintf(info->name, sizeof info->name, "%.*s", (int)length, name);
    return info;
}

void fake_image_drop(fake_image *image)
{
    free(image->kernels);
    memset(image, 0, sizeof *image);
}

static void param_add(fake_kernel_info *info, size_t bytes, size_t align)
{
    size_t offset = 0;

    if (info->param_count == FAKE_PARAMS)
        return;
    if (info->param_count > 0)
        offset = info->offset[info->param_count - 1] + info->bytes[info->param_count - 1];
    info->offset[info->param_count] = (offset + align - 1) / align * align;
    info->bytes[info->param_count++] = bytes;
}

static size_t name_length(const char *text)
{
    size_t length = 0;

    while (isalnum((unsigned char)text[length]) || text[length] == '_' || text[length] == '$' ||
           text[length] == '.')
        length++;
    return length;
}

static bool own_read(const char *text, fake_image *out)
{
    int used = 0;

    if (sscanf(text, "FAKECUBIN arch=%d entry=%n", &out->arch, &used) != 1 || used == 0)
        return false;
    text += used;
    while (true) {
        size_t length = name_length(text);
        if (length == 0)
            return false;
        fake_kernel_info *info = fake_image_add(out, text, length);
        text += length;
        if (*text == '(') {
            info->knows_params = true;
            text++;
            while (*text != ')') {
                char *end;
                size_t bytes = strtoul(text, &end, 10);
                if (end == text)
                    return false;
                param_add(info, bytes, bytes % 8 == 0 ? 8 : bytes % 4 == 0 ? 4 : 1);
                text = end + (*end == ',');
            }
            text++;
        }
        if (*text == '/') {
            info->cluster = atoi(text + 1);
            text += 1 + strspn(text + 1, "0123456789");
        }
        if (*text != ',')
            return *text == '\0' || isspace((unsigned char)*text);
        text++;
    }
}

/* One ".param .align 8 .b8 name[56]" or ".param .u64 name"; the text ends with the list. */
static void ptx_param(fake_kernel_info *info, const char *text, const char *end)
{
    size_t align = 0, bytes = 0, count = 1;

    while (text < end && *text != ',') {
        const char *digits = text + 2;
        if (strncmp(text, ".align", 6) == 0) {
            align = strtoul(text + 6, NULL, 10);
            text += 6;
        } else if (text[0] == '.' && strchr("busf", text[1]) != NULL &&
                   isdigit((unsigned char)*digits)) {
            bytes = strtoul(digits, NULL, 10) / 8;
            text += 2;
        } else if (*text == '[') {
            count = strtoul(text + 1, NULL, 10);
        }
        text++;
    }
    if (bytes > 0)
        param_add(info, bytes * count, align > 0 ? align : bytes);
}

static void ptx_params(fake_kernel_info *info, const char *text)
{
    info->knows_params = true;
    text += strspn(text, " \t\n");
    if (*text != '(')
        return;
    const char *end = strchr(text, ')');
    if (end == NULL)
        return;
    for (text++; text < end; text++) {
        ptx_param(info, text, end);
        const char *comma = memchr(text, ',', (size_t)(end - text));
        if (comma == NULL)
            return;
        text = comma;
    }
}

static bool ptx_read(const char *text, fake_image *out)
{
    const char *target = strstr(text, ".target sm_");

    if (strstr(text, ".version") == NULL || target == NULL)
        return false;
    out->arch = atoi(target + strlen(".target sm_"));
    out->is_ptx = true;
    for (const char *at = strstr(text, ".entry"); at != NULL; at = strstr(at, ".entry")) {
        at += strlen(".entry");
        at += strspn(at, " \t\n");
        size_t length = name_length(at);
        ptx_params(fake_image_add(out, at, length), at + length);
    }
    return true;
}

bool fake_text_read(const char *image, fake_image *out, char *error, size_t bytes)
{
    bool is_own = strncmp(image, "FAKECUBIN", 9) == 0;

    if (is_own ? own_read(image, out) : ptx_read(image, out))
        return true;
    (void)snprintf(error, bytes, "%s",
                   is_own ? "a FAKECUBIN with a mistake in it"
                          : "neither a cubin nor PTX (no .version and .target)");
    return false;
}
