/* SPDX-License-Identifier: Apache-2.0 */
/* What filch reads of a codelet's options and of the compiler's remarks: three texts parted by zero
 * bytes, the options, the remarks and the image. The compiler is this file's. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "module/image.h"

static const char *remarks, *image_text;
static int option_count;

static int create(nvrtcProgram *program, const char *source, const char *name, int header_count,
                  const char *const *headers, const char *const *header_names)
{
    fuzz_require(source != NULL && name != NULL && header_count == 1);
    fuzz_require(headers[0] != NULL && header_names[0] != NULL);
    *program = NULL;
    return FL_NVRTC_SUCCESS;
}

static int destroy(nvrtcProgram *program)
{
    (void)program;
    return FL_NVRTC_SUCCESS;
}

/* Fails where the remarks begin with an exclamation mark. */
static int compile(nvrtcProgram program, int count, const char *const *options)
{
    (void)program;
    option_count = count;
    for (int k = 0; k < count; k++)
        fuzz_require(options[k][0] != '\0' && strpbrk(options[k], " \t\n\v\f\r") == NULL);
    return remarks[0] == '!' ? FL_NVRTC_ERROR_COMPILATION : FL_NVRTC_SUCCESS;
}

static const char *log_text(void)
{
    return remarks + (remarks[0] == '!');
}

static int log_size(nvrtcProgram program, size_t *size)
{
    (void)program;
    *size = strlen(log_text()) + 1;
    return FL_NVRTC_SUCCESS;
}

static int log_copy(nvrtcProgram program, char *text)
{
    (void)program;
    memcpy(text, log_text(), strlen(log_text()) + 1);
    return FL_NVRTC_SUCCESS;
}

static int image_size(nvrtcProgram program, size_t *size)
{
    (void)program;
    *size = strlen(image_text);
    return FL_NVRTC_SUCCESS;
}

static int image_copy(nvrtcProgram program, char *image)
{
    (void)program;
    memcpy(image, image_text, strlen(image_text));
    return FL_NVRTC_SUCCESS;
}

static const char *error_string(int result)
{
    return result == FL_NVRTC_SUCCESS ? "SUCCESS" : "ERROR";
}

static void hear(filch_log_level level, const char *text, void *user)
{
    (void)level;
    fuzz_require(text != NULL && memchr(text, '\n', strlen(text)) == NULL);
    (void)user;
}

static void request(const char *options, uint32_t arch)
{
    static int loaded; /* its address says so; nothing closes it */
    fl_memory memory = fl_memory_system();
    fl_log log = {hear, NULL, FILCH_LOG_DEBUG};
    filch_error error = FILCH_ERROR_INIT;
    const fl_image *image = NULL;
    fl_image_request wanted = {"kernel", "source", options, arch};
    fl_settings settings;
    fl_images images;
    filch_status status;

    fl_settings_defaults(&settings);
    memcpy(settings.cache_dir, "off", sizeof "off");
    fuzz_require(fl_images_init(&images, &memory, &log, &settings) == FILCH_OK);
    images.nvrtc = (fl_nvrtc){.library = &loaded,
                              .major = 13,
                              .arch_count = 2,
                              .archs = {75, 90},
                              .api = {.create = create,
                                      .destroy = destroy,
                                      .compile = compile,
                                      .cubin_size = image_size,
                                      .cubin = image_copy,
                                      .ptx_size = image_size,
                                      .ptx = image_copy,
                                      .log_size = log_size,
                                      .log = log_copy,
                                      .error_string = error_string}};
    status = fl_image_get(&images, &wanted, &image, &error);
    if (status == FILCH_OK)
        fuzz_require(image->bytes == strlen(image_text) && option_count >= 2);
    else
        fuzz_require_error(&error, status);
    images.nvrtc.library = NULL;
    fl_images_fini(&images);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    const char *end = text + size;
    size_t options = strlen(text);

    remarks = text + options < end ? text + options + 1 : end;
    image_text = remarks + strlen(remarks) < end ? remarks + strlen(remarks) + 1 : end;
    request(text, size % 2 != 0 ? 90 : 89);
    free(text);
    return 0;
}
