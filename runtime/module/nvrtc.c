/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "module/nvrtc.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Library names, newest first: images of a newer compiler run at least as well, as long as the
 * driver knows the images. The name without a number comes with the toolkit's development files
 * only. */
static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
static const char *const folders[] = {"/usr/local/cuda/lib64", "/usr/local/cuda/lib"};

#define NAMES (sizeof names / sizeof names[0])
#define FOLDERS (sizeof folders / sizeof folders[0])

/* Name of the source in messages. If a folder with the name existed, NVRTC would search the folder
 * for headers. */
#define SOURCE_NAME "kernel.cu"

static const char *result_name(const fl_nvrtc *nvrtc, int result)
{
    const char *name = nvrtc->api.error_string(result);

    return name == NULL ? "an unknown result" : name;
}

/* Reports a call that should not fail. */
static filch_status broken_call(const fl_nvrtc *nvrtc, const char *call, int result,
                                filch_error *error)
{
    return fl_error_fill(error,
                         (fl_fault){.status = result == FL_NVRTC_ERROR_OUT_OF_MEMORY
                                                  ? FILCH_OUT_OF_MEMORY
                                                  : FILCH_COMPILER_BROKEN,
                                    .native_code = result,
                                    .native_name = result_name(nvrtc, result),
                                    .call = call},
                         "NVRTC: %s failed: %s", call, result_name(nvrtc, result));
}

static filch_status find_symbols(fl_nvrtc *nvrtc, filch_error *error)
{
    const char *missing = NULL;
    void *found;

/* Copies the address: C does not convert a void * to a function's address; under POSIX the two
 * share a representation. */
#define FIND(member, symbol, parameters)                          \
    found = dlsym(nvrtc->library, symbol);                        \
    memcpy(&nvrtc->api.member, &found, sizeof nvrtc->api.member); \
    if (found == NULL && missing == NULL)                         \
        missing = symbol;
    FL_NVRTC_CALLS(FIND)
    FIND(error_string, "nvrtcGetErrorString", )
#undef FIND
    if (missing == NULL)
        return FILCH_OK;
    return fl_error_fill(error, (fl_fault){.status = FILCH_COMPILER_BROKEN, .call = missing},
                         "the NVRTC library lacks the function %s", missing);
}

static int compare_archs(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a;
    uint32_t right = *(const uint32_t *)b;

    return (left > right) - (left < right);
}

static filch_status ask_archs(fl_nvrtc *nvrtc, filch_error *error)
{
    int archs[FL_NVRTC_ARCHS] = {0};
    int count = 0;
    int result = nvrtc->api.arch_count(&count);

    if (result != FL_NVRTC_SUCCESS)
        return broken_call(nvrtc, "nvrtcGetNumSupportedArchs", result, error);
    if (count < 1 || count > FL_NVRTC_ARCHS)
        return fl_error_fill(
            error, (fl_fault){.status = FILCH_COMPILER_BROKEN, .call = "nvrtcGetNumSupportedArchs"},
            "NVRTC says that it compiles for %d architectures", count);
    result = nvrtc->api.archs(archs);
    if (result != FL_NVRTC_SUCCESS)
        return broken_call(nvrtc, "nvrtcGetSupportedArchs", result, error);
    for (int i = 0; i < count; i++) {
        if (archs[i] > 0)
            nvrtc->archs[nvrtc->arch_count++] = (uint32_t)archs[i];
    }
    qsort(nvrtc->archs, nvrtc->arch_count, sizeof nvrtc->archs[0], compare_archs);
    return FILCH_OK;
}

/* Takes over the reference library; on failure releases the reference and leaves *nvrtc zeroed. */
static filch_status adopt(fl_nvrtc *nvrtc, void *library, int most_major, filch_error *error)
{
    filch_status status;
    int result;

    *nvrtc = (fl_nvrtc){.library = library};
    status = find_symbols(nvrtc, error);
    if (status != FILCH_OK)
        goto close;
    result = nvrtc->api.version(&nvrtc->major, &nvrtc->minor);
    if (result != FL_NVRTC_SUCCESS) {
        status = broken_call(nvrtc, "nvrtcVersion", result, error);
        goto close;
    }
    if (most_major > 0 && nvrtc->major > most_major) {
        status = fl_error_fill(
            error, (fl_fault){.status = FILCH_DRIVER_TOO_OLD, .call = "nvrtcVersion"},
            "NVRTC %d.%d is newer than the driver, which is for CUDA %d: a newer driver or "
            "NVRTC %d is needed",
            nvrtc->major, nvrtc->minor, most_major, most_major);
        goto close;
    }
    status = ask_archs(nvrtc, error);
    if (status == FILCH_OK)
        return FILCH_OK;
close:
    dlclose(library);
    memset(nvrtc, 0, sizeof *nvrtc);
    return status;
}

/* Search over candidates until a library works. Of several failures the search keeps the most
 * telling: a library too new for the driver, then a broken library, then absence. */
typedef struct search {
    fl_nvrtc *nvrtc;
    int most_major;
    filch_status status;
    filch_error error;
} search;

static unsigned weight(filch_status status)
{
    return status == FILCH_DRIVER_TOO_OLD ? 2 : status == FILCH_NO_COMPILER ? 0 : 1;
}

static void keep_worst(search *s, filch_status status, const filch_error *error)
{
    if (weight(status) <= weight(s->status))
        return;
    s->status = status;
    fl_error_copy(&s->error, error);
}

static bool try_candidate(search *s, const char *name, int flags)
{
    void *library = dlopen(name, RTLD_LAZY | RTLD_LOCAL | flags);
    filch_error error = FILCH_ERROR_INIT;
    filch_status status;

    if (library == NULL) {
        const char *reason = dlerror(); /* NOLINT(concurrency-mt-unsafe): a thread's own in glibc */

        /* A name looked up by the linker does not distinguish absence from failure. */
        if (strchr(name, '/') == NULL || access(name, F_OK) != 0)
            return false;
        status = fl_error_fill(
            &error, (fl_fault){.status = FILCH_COMPILER_BROKEN, .call = "dlopen", .label = name},
            "NVRTC cannot be loaded: %s", reason != NULL ? reason : "no reason is given");
        keep_worst(s, status, &error);
        return false;
    }
    status = adopt(s->nvrtc, library, s->most_major, &error);
    if (status != FILCH_OK) {
        keep_worst(s, status, &error);
        return false;
    }
    /* Pins the library only now, in use: a library opened just for the version may be unloaded. */
    library = dlopen(name, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD | RTLD_NODELETE);
    if (library != NULL)
        dlclose(library);
    s->status = FILCH_OK;
    return true;
}

static bool try_everywhere(search *s)
{
    /* Prefers a library already in the process: a process needs only a single compiler. */
    for (size_t i = 0; i < NAMES; i++) {
        if (try_candidate(s, names[i], RTLD_NOLOAD))
            return true;
    }
    for (size_t i = 0; i < NAMES; i++) {
        if (try_candidate(s, names[i], 0))
            return true;
    }
    for (size_t f = 0; f < FOLDERS; f++) {
        for (size_t i = 0; i < NAMES; i++) {
            char path[64];

            (void)snprintf(path, sizeof path, "%s/%s", folders[f], names[i]);
            if (try_candidate(s, path, 0))
                return true;
        }
    }
    return false;
}

filch_status fl_nvrtc_load(fl_nvrtc *nvrtc, const char *path, int most_major, filch_error *error)
{
    search s = {nvrtc, most_major, FILCH_NO_COMPILER, FILCH_ERROR_INIT};
    fl_fault absent = {.status = FILCH_NO_COMPILER, .call = "dlopen"};

    memset(nvrtc, 0, sizeof *nvrtc);
    if (path[0] != '\0' ? try_candidate(&s, path, 0) : try_everywhere(&s))
        return FILCH_OK;
    if (s.status != FILCH_NO_COMPILER) {
        if (error != NULL)
            fl_error_copy(error, &s.error);
        return s.status;
    }
    if (path[0] != '\0') {
        absent.label = "FILCH_NVRTC";
        return fl_error_fill(error, absent, "there is no NVRTC library at %s", path);
    }
    return fl_error_fill(error, absent,
                         "there is no NVRTC library: none of %s, %s and %s is known to the linker "
                         "or in %s; FILCH_NVRTC may name one",
                         names[0], names[1], names[2], folders[0]);
}

void fl_nvrtc_unload(fl_nvrtc *nvrtc)
{
    if (nvrtc->library != NULL)
        dlclose(nvrtc->library);
    memset(nvrtc, 0, sizeof *nvrtc);
}

uint32_t fl_nvrtc_nearest(const fl_nvrtc *nvrtc, uint32_t arch)
{
    uint32_t nearest = 0;

    for (uint32_t i = 0; i < nvrtc->arch_count && nvrtc->archs[i] <= arch; i++)
        nearest = nvrtc->archs[i];
    return nearest;
}

bool fl_nvrtc_supports(const fl_nvrtc *nvrtc, uint32_t arch)
{
    return arch != 0 && fl_nvrtc_nearest(nvrtc, arch) == arch;
}

/* Reads the log of a program into an allocated text; null with FILCH_OK where the compiler had no
 * remarks. */
static filch_status read_log(const fl_nvrtc *nvrtc, nvrtcProgram program, const fl_memory *memory,
                             char **text, size_t *size, filch_error *error)
{
    int result = nvrtc->api.log_size(program, size);

    *text = NULL;
    if (result != FL_NVRTC_SUCCESS)
        return broken_call(nvrtc, "nvrtcGetProgramLogSize", result, error);
    if (*size <= 1)
        return FILCH_OK;
    *text = fl_alloc(memory, *size);
    if (*text == NULL)
        return fl_error_fill(error, (fl_fault){.status = FILCH_OUT_OF_MEMORY},
                             "no memory for the compiler's remarks");
    result = nvrtc->api.log(program, *text);
    if (result != FL_NVRTC_SUCCESS) {
        fl_free(memory, *text, *size);
        *text = NULL;
        return broken_call(nvrtc, "nvrtcGetProgramLog", result, error);
    }
    (*text)[*size - 1] = '\0';
    return FILCH_OK;
}

/* Returns the next line of *at, and moves *at behind the line; null at the end. Cuts the lines in
 * place. */
static char *next_line(char **at)
{
    char *line = *at;

    if (line == NULL || *line == '\0')
        return NULL;
    *at = strchr(line, '\n');
    if (*at != NULL)
        *(*at)++ = '\0';
    return line;
}

static bool is_error(const char *line)
{
    return (strstr(line, "error") != NULL || strstr(line, "fatal") != NULL) &&
           strstr(line, "): warning") == NULL && strstr(line, ": remark") == NULL;
}

/* Splits "kernel.cu(LINE): error: WHAT"; a message about a different file, or of a different tool,
 * stays whole. */
static const char *split_error(const char *text, int64_t *line)
{
    static const char start[] = SOURCE_NAME "(";
    const char *what;
    char *end;

    *line = 0;
    if (strncmp(text, start, sizeof start - 1) != 0 || text[sizeof start - 1] < '0' ||
        text[sizeof start - 1] > '9')
        return text;
    *line = strtoll(text + sizeof start - 1, &end, 10);
    if (strncmp(end, "): ", 3) != 0) {
        *line = 0;
        return text;
    }
    what = strstr(end, "error: ");
    return what != NULL ? what + strlen("error: ") : end + 3;
}

/* Splits the log: lines go to the host's log, and the first error into *error. */
static filch_status judge(const fl_nvrtc *nvrtc, int result, char *text, const fl_log *log,
                          filch_error *error)
{
    fl_fault fault = {
        .status = FILCH_COMPILE, .native_code = result, .call = "nvrtcCompileProgram"};
    const char *first = NULL;
    char *at = text;

    for (char *line; (line = next_line(&at)) != NULL;) {
        if (*line == '\0')
            continue;
        fl_log_write(log, FILCH_LOG_INFO, "NVRTC: %s", line);
        if (first == NULL && is_error(line))
            first = line;
    }
    if (result == FL_NVRTC_SUCCESS)
        return FILCH_OK;
    if (result != FL_NVRTC_ERROR_COMPILATION && result != FL_NVRTC_ERROR_INVALID_OPTION)
        return broken_call(nvrtc, "nvrtcCompileProgram", result, error);
    fault.native_name = result_name(nvrtc, result);
    if (first == NULL)
        return fl_error_fill(error, fault, "the compiler gives no reason");
    first = split_error(first, &fault.line);
    return fl_error_fill(error, fault, "%s", first);
}

static filch_status read_image(const fl_nvrtc *nvrtc, nvrtcProgram program, bool is_ptx,
                               const fl_memory *memory, void **image, size_t *bytes,
                               filch_error *error)
{
    size_t size = 0;
    int result =
        is_ptx ? nvrtc->api.ptx_size(program, &size) : nvrtc->api.cubin_size(program, &size);
    void *made;

    if (result != FL_NVRTC_SUCCESS)
        return broken_call(nvrtc, is_ptx ? "nvrtcGetPTXSize" : "nvrtcGetCUBINSize", result, error);
    if (size == 0)
        return fl_error_fill(error,
                             (fl_fault){.status = FILCH_COMPILE, .call = "nvrtcGetCUBINSize"},
                             "the compiler made no machine code; does an option ask for another "
                             "kind of output?");
    made = fl_alloc(memory, size);
    if (made == NULL)
        return fl_error_fill(error, (fl_fault){.status = FILCH_OUT_OF_MEMORY},
                             "no memory for a kernel image of %zu bytes", size);
    result = is_ptx ? nvrtc->api.ptx(program, made) : nvrtc->api.cubin(program, made);
    if (result != FL_NVRTC_SUCCESS) {
        fl_free(memory, made, size);
        return broken_call(nvrtc, is_ptx ? "nvrtcGetPTX" : "nvrtcGetCUBIN", result, error);
    }
    *image = made;
    *bytes = size;
    return FILCH_OK;
}

filch_status fl_nvrtc_compile(const fl_nvrtc *nvrtc, const fl_nvrtc_program *program,
                              const fl_memory *memory, const fl_log *log, void **image,
                              size_t *bytes, filch_error *error)
{
    nvrtcProgram made = NULL;
    char *text = NULL;
    size_t size = 0;
    filch_status status;
    int result = nvrtc->api.create(&made, program->source, SOURCE_NAME, 1, &program->header,
                                   &program->header_name);

    if (result != FL_NVRTC_SUCCESS)
        return broken_call(nvrtc, "nvrtcCreateProgram", result, error);
    result = nvrtc->api.compile(made, program->option_count, program->options);
    status = read_log(nvrtc, made, memory, &text, &size, error);
    if (status == FILCH_OK)
        status = judge(nvrtc, result, text, log, error);
    if (text != NULL)
        fl_free(memory, text, size);
    if (status == FILCH_OK)
        status = read_image(nvrtc, made, program->is_ptx, memory, image, bytes, error);
    (void)nvrtc->api.destroy(&made);
    return status;
}
