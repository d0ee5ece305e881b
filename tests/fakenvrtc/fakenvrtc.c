/* SPDX-License-Identifier: Apache-2.0 */
/* An NVRTC that compiles nothing: its images are its input, so that a test sees what went in. A
 * source commands it by words in it: see compile. Built several times:
 *
 * FAKE_MAJOR       its version is FAKE_MAJOR.7
 * FAKE_ARCHS       the architectures it knows
 * FAKE_NO_CUBIN    nvrtcGetCUBIN is missing
 * FAKE_MUTE        no call succeeds
 * FAKE_KERNELS     images are the fake driver's, with the kernels of the source, also those that a
 *                  macro MACRO(type, suffix) makes
 *
 * Where the environment sets FAKE_NVRTC_COUNT, each compilation appends a byte to that file. */
#define _GNU_SOURCE
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef FAKE_ARCHS
#define FAKE_ARCHS 75, 80, 90, 120
#endif

#ifdef FAKE_MUTE
#define GOOD 11
#else
#define GOOD 0
#endif

typedef struct program {
    char *source;
    char *input; /* name, headers, options and source, a line each */
    char log[4096];
    int is_ptx;
    int is_made;
} program;

int nvrtcVersion(int *major, int *minor);
int nvrtcGetNumSupportedArchs(int *count);
int nvrtcGetSupportedArchs(int *archs);
const char *nvrtcGetErrorString(int result);
int nvrtcCreateProgram(program **made, const char *source, const char *name, int header_count,
                       const char *const *headers, const char *const *header_names);
int nvrtcDestroyProgram(program **made);
int nvrtcCompileProgram(program *made, int option_count, const char *const *options);
int nvrtcGetCUBINSize(program *made, size_t *size);
int nvrtcGetCUBIN(program *made, char *cubin);
int nvrtcGetPTXSize(program *made, size_t *size);
int nvrtcGetPTX(program *made, char *ptx);
int nvrtcGetProgramLogSize(program *made, size_t *size);
int nvrtcGetProgramLog(program *made, char *log);

static const int known[] = {FAKE_ARCHS};

int nvrtcVersion(int *major, int *minor)
{
    *major = FAKE_MAJOR;
    *minor = 7;
    return GOOD;
}

int nvrtcGetNumSupportedArchs(int *count)
{
    *count = (int)(sizeof known / sizeof known[0]);
    return GOOD;
}

int nvrtcGetSupportedArchs(int *archs)
{
    memcpy(archs, known, sizeof known);
    return GOOD;
}

const char *nvrtcGetErrorString(int result)
{
    static const char *const names[] = {
        "NVRTC_SUCCESS",
        "NVRTC_ERROR_OUT_OF_MEMORY",
        "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
        "NVRTC_ERROR_INVALID_INPUT",
        "NVRTC_ERROR_INVALID_PROGRAM",
        "NVRTC_ERROR_INVALID_OPTION",
        "NVRTC_ERROR_COMPILATION",
        "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
    };

    if (result >= 0 && result < (int)(sizeof names / sizeof names[0]))
        return names[result];
    return "NVRTC_ERROR_INTERNAL_ERROR";
}

/* Appends a line. */
static void append(char **text, const char *line)
{
    char *longer = NULL;

    if (asprintf(&longer, "%s%s\n", *text != NULL ? *text : "", line) < 0)
        abort();
    free(*text);
    *text = longer;
}

int nvrtcCreateProgram(program **made, const char *source, const char *name, int header_count,
                       const char *const *headers, const char *const *header_names)
{
    program *p = calloc(1, sizeof *p);

    if (p == NULL || (p->source = strdup(source)) == NULL)
        abort();
    append(&p->input, name);
    for (int i = 0; i < header_count; i++) {
        append(&p->input, header_names[i]);
        append(&p->input, headers[i]);
    }
    if (strstr(source, "@uncreatable") != NULL) {
        (void)nvrtcDestroyProgram(&p);
        return 2;
    }
    *made = p;
    return GOOD;
}

int nvrtcDestroyProgram(program **made)
{
    free((*made)->source);
    free((*made)->input);
    free(*made);
    *made = NULL;
    return GOOD;
}

static void count(void)
{
    const char *path = getenv("FAKE_NVRTC_COUNT");
    int file = path == NULL ? -1 : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    if (file < 0)
        return;
    if (write(file, "x", 1) != 1)
        abort();
    (void)close(file);
}

static int line_of(const char *source, const char *word)
{
    int line = 1;

    for (const char *at = source; at < word; at++)
        line += *at == '\n';
    return line;
}

static int compile(program *p)
{
    const char *word;

    if (strstr(p->source, "@slow") != NULL)
        (void)nanosleep(&(struct timespec){0, 20000000}, NULL);
    if (strstr(p->source, "@remark") != NULL)
        (void)snprintf(p->log, sizeof p->log,
                       "kernel.cu(1): warning #1-D: an error: to come\n\nRemark: nothing\n");
    if (strstr(p->source, "@exhausted") != NULL)
        return 1;
    if (strstr(p->source, "@builtin") != NULL)
        return 7;
    if (strstr(p->source, "@silent") != NULL)
        return 6;
    if (strstr(p->source, "@assembler") != NULL) {
        (void)snprintf(p->log, sizeof p->log, "ptxas fatal   : it is too much\n");
        return 6;
    }
    word = strstr(p->source, "@error");
    if (word != NULL) {
        (void)snprintf(p->log + strlen(p->log), sizeof p->log - strlen(p->log),
                       "kernel.cu(%d): error: the word @error\n  @error\n  ^\n\n"
                       "kernel.cu(99): error: another\n\n2 errors detected.\n",
                       line_of(p->source, word));
        return 6;
    }
    p->is_made = 1;
    return 0;
}

int nvrtcCompileProgram(program *made, int option_count, const char *const *options)
{
    count();
    for (int i = 0; i < option_count; i++) {
        append(&made->input, options[i]);
        if (strncmp(options[i], "--gpu-architecture=compute_", 27) == 0)
            made->is_ptx = 1;
        if (strcmp(options[i], "--bogus") == 0) {
            (void)snprintf(made->log, sizeof made->log,
                           "nvrtc: error: unrecognized option --bogus found\n");
            return 5;
        }
    }
    append(&made->input, made->source);
    return compile(made);
}

#ifdef FAKE_KERNELS

typedef struct names {
    char *text;
    size_t length, size;
    const char *separator;
} names;

static void put(names *to, const char *name, size_t length, const char *suffix,
                size_t suffix_length)
{
    int used = snprintf(to->text + to->length, to->size - to->length, "%s%.*s%.*s", to->separator,
                        (int)length, name, (int)suffix_length, suffix);

    to->length += (size_t)used;
    if (to->length >= to->size)
        abort();
    to->separator = ",";
}

/* The macro MACRO(type, suffix) that the place is in makes a kernel NAME##suffix for each of its
 * uses, which stand at the beginnings of lines behind it. */
static void put_each_use(names *to, const char *source, const char *at, const char *name,
                         size_t length)
{
    static const char define[] = "#define ";
    const char *macro = NULL;

    for (const char *next = source; (next = strstr(next, define)) != NULL && next < at;)
        macro = next += sizeof define - 1;
    if (macro == NULL)
        abort();
    size_t macro_length = strcspn(macro, "(") + 1;
    for (const char *line = at; (line = strchr(line, '\n')) != NULL;) {
        line++;
        if (strncmp(line, macro, macro_length) != 0)
            continue;
        const char *suffix = strchr(line, ',');
        if (suffix == NULL)
            abort();
        suffix += 1 + strspn(suffix + 1, " ");
        put(to, name, length, suffix, strcspn(suffix, ",)"));
    }
}

/* The names in front of the parameters of each __global__ function. */
static void name_kernels(const program *p, char *image, size_t size)
{
    static const char suffix[] = "##suffix";
    const char *arch = strstr(p->input, "--gpu-architecture=sm_");
    names to = {.text = image, .size = size, .separator = ""};

    to.length = (size_t)snprintf(image, size,
                                 "FAKECUBIN arch=%d entry=", arch != NULL ? atoi(arch + 22) : 0);
    for (const char *at = p->source; (at = strstr(at, "__global__")) != NULL;) {
        const char *open = strchr(at, '(');
        if (open != NULL && open - at >= 17 && strncmp(open - 17, "__launch_bounds__", 17) == 0)
            open = strchr(open + 1, '(');
        if (open == NULL)
            break;
        const char *name = open;
        while (name > at && (isalnum((unsigned char)name[-1]) || strchr("_#", name[-1]) != NULL))
            name--;
        size_t length = (size_t)(open - name), tail = sizeof suffix - 1;
        if (length > tail && strncmp(open - tail, suffix, tail) == 0)
            put_each_use(&to, p->source, at, name, length - tail);
        else
            put(&to, name, length, "", 0);
        at = open;
    }
}

int nvrtcGetCUBINSize(program *made, size_t *size)
{
    char image[1024];

    name_kernels(made, image, sizeof image);
    *size = strlen(image) + 1;
    return GOOD;
}

int nvrtcGetCUBIN(program *made, char *cubin)
{
    char image[1024];

    name_kernels(made, image, sizeof image);
    memcpy(cubin, image, strlen(image) + 1);
    return GOOD;
}

#else

int nvrtcGetCUBINSize(program *made, size_t *size)
{
    int none = !made->is_made || made->is_ptx || strstr(made->source, "@empty") != NULL;

    *size = none ? 0 : strlen(made->input) + 4;
    return GOOD;
}

#ifndef FAKE_NO_CUBIN
int nvrtcGetCUBIN(program *made, char *cubin)
{
    memcpy(cubin, "\177ELF", 4);
    memcpy(cubin + 4, made->input, strlen(made->input));
    return strstr(made->source, "@lost") != NULL ? 4 : GOOD;
}
#endif
#endif

int nvrtcGetPTXSize(program *made, size_t *size)
{
    *size = made->is_made ? strlen(made->input) + 1 : 0;
    return GOOD;
}

int nvrtcGetPTX(program *made, char *ptx)
{
    memcpy(ptx, made->input, strlen(made->input) + 1);
    return GOOD;
}

int nvrtcGetProgramLogSize(program *made, size_t *size)
{
    *size = strlen(made->log) + 1;
    return GOOD;
}

int nvrtcGetProgramLog(program *made, char *log)
{
    memcpy(log, made->log, strlen(made->log) + 1);
    return GOOD;
}
