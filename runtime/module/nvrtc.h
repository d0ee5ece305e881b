/* SPDX-License-Identifier: Apache-2.0 */
/* NVRTC, the compiler of CUDA C as a library, found when the program runs: nothing links it, and
 * its declarations here are filch's own. Source: NVRTC 12.0 to 13.0, "nvrtc.h". */
#ifndef FL_MODULE_NVRTC_H
#define FL_MODULE_NVRTC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"

typedef struct _nvrtcProgram *nvrtcProgram;

/* Values of the enumeration nvrtcResult that filch tells apart. */
#define FL_NVRTC_SUCCESS 0
#define FL_NVRTC_ERROR_OUT_OF_MEMORY 1
#define FL_NVRTC_ERROR_INVALID_OPTION 5
#define FL_NVRTC_ERROR_COMPILATION 6

/* X(member, symbol, parameters): those that return an nvrtcResult. */
#define FL_NVRTC_CALLS(X)                                                              \
    X(version, "nvrtcVersion", (int *major, int *minor))                               \
    X(arch_count, "nvrtcGetNumSupportedArchs", (int *count))                           \
    X(archs, "nvrtcGetSupportedArchs", (int *archs))                                   \
    X(create, "nvrtcCreateProgram",                                                    \
      (nvrtcProgram * program, const char *source, const char *name, int header_count, \
       const char *const *headers, const char *const *header_names))                   \
    X(destroy, "nvrtcDestroyProgram", (nvrtcProgram * program))                        \
    X(compile, "nvrtcCompileProgram",                                                  \
      (nvrtcProgram program, int option_count, const char *const *options))            \
    X(cubin_size, "nvrtcGetCUBINSize", (nvrtcProgram program, size_t * size))          \
    X(cubin, "nvrtcGetCUBIN", (nvrtcProgram program, char *cubin))                     \
    X(ptx_size, "nvrtcGetPTXSize", (nvrtcProgram program, size_t * size))              \
    X(ptx, "nvrtcGetPTX", (nvrtcProgram program, char *ptx))                           \
    X(log_size, "nvrtcGetProgramLogSize", (nvrtcProgram program, size_t * size))       \
    X(log, "nvrtcGetProgramLog", (nvrtcProgram program, char *log))

typedef struct fl_nvrtc_api {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration's parts take none */
#define FL_NVRTC_MEMBER(member, symbol, parameters) int(*member) parameters;
    FL_NVRTC_CALLS(FL_NVRTC_MEMBER)
#undef FL_NVRTC_MEMBER
    const char *(*error_string)(int result); /* nvrtcGetErrorString */
} fl_nvrtc_api;

#define FL_NVRTC_ARCHS 64

/* Read-only once loaded; then any thread may compile. */
typedef struct fl_nvrtc {
    void *library; /* null: not loaded */
    int major, minor;
    uint32_t arch_count;
    uint32_t archs[FL_NVRTC_ARCHS]; /* that it makes cubins for, e.g. 90; ascending */
    fl_nvrtc_api api;
} fl_nvrtc;

/* Loads the library at path, or, where path is empty, one that the process has already, else one
 * that the dynamic linker finds, else one in the toolkit's usual folders. Libraries of a major
 * version above most_major (0: no limit) are passed over.
 *
 * FILCH_NO_COMPILER: there is none. FILCH_COMPILER_BROKEN: there is one, but it cannot be loaded,
 * lacks a function, or does not answer. FILCH_DRIVER_TOO_OLD: all there are, are above most_major.
 * On failure *nvrtc is as zeroed, and the call may be made again. */
filch_status fl_nvrtc_load(fl_nvrtc *nvrtc, const char *path, int most_major, filch_error *error);
/* The library's code stays in the process: its threads' exit hooks could not be called otherwise.
 * A zeroed *nvrtc is allowed. */
void fl_nvrtc_unload(fl_nvrtc *nvrtc);
/* Whether it makes cubins for exactly this architecture. */
bool fl_nvrtc_supports(const fl_nvrtc *nvrtc, uint32_t arch);
/* The newest supported architecture not above arch, whose PTX arch can run; 0: none. */
uint32_t fl_nvrtc_nearest(const fl_nvrtc *nvrtc, uint32_t arch);

/* What is compiled. Nothing else than these texts goes in, unless an option names a folder. */
typedef struct fl_nvrtc_program {
    const char *source;
    const char *header_name; /* what #include calls header */
    const char *header;
    const char *const *options;
    int option_count;
    bool is_ptx; /* the PTX text with its terminator is wanted, not a cubin */
} fl_nvrtc_program;

/* *image is allocated from memory, *bytes long. The compiler's remarks go to log, each line for
 * itself. FILCH_COMPILE: error->line and error->text are of the first error in the source;
 * FILCH_OUT_OF_MEMORY; FILCH_COMPILER_BROKEN. */
filch_status fl_nvrtc_compile(const fl_nvrtc *nvrtc, const fl_nvrtc_program *program,
                              const fl_memory *memory, const fl_log *log, void **image,
                              size_t *bytes, filch_error *error);

#endif
