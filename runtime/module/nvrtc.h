/* SPDX-License-Identifier: Apache-2.0 */
/* NVRTC, the compiler of CUDA C as a library, found at run time. filch does not link NVRTC, and the
 * declarations below are filch's own. Source: NVRTC 12.0 to 13.0, "nvrtc.h". */
#ifndef FL_MODULE_NVRTC_H
#define FL_MODULE_NVRTC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"

typedef struct _nvrtcProgram *nvrtcProgram;

/* Values of the enumeration nvrtcResult that filch distinguishes. */
#define FL_NVRTC_SUCCESS 0
#define FL_NVRTC_ERROR_OUT_OF_MEMORY 1
#define FL_NVRTC_ERROR_INVALID_OPTION 5
#define FL_NVRTC_ERROR_COMPILATION 6

/* X(member, symbol, parameters): functions that return an nvrtcResult. */
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

/* Loaded NVRTC. Read-only once loaded; then any thread may compile. */
typedef struct fl_nvrtc {
    void *library; /* null: not loaded */
    int major, minor;
    uint32_t arch_count;
    uint32_t archs[FL_NVRTC_ARCHS]; /* architectures with cubin support, e.g. 90; ascending */
    fl_nvrtc_api api;
} fl_nvrtc;

/* Loads the library at path. With an empty path, looks for a library already in the process, then
 * for a library known to the dynamic linker, then in the toolkit's usual folders. Skips libraries
 * of a major version above most_major (0: no limit).
 *
 * FILCH_NO_COMPILER: no library exists. FILCH_COMPILER_BROKEN: a library exists, but cannot be
 * loaded, lacks a function, or does not answer. FILCH_DRIVER_TOO_OLD: every library is above
 * most_major. On failure *nvrtc is zeroed, and the caller may repeat the call. */
filch_status fl_nvrtc_load(fl_nvrtc *nvrtc, const char *path, int most_major, filch_error *error);
/* Unloads the library; the library's code stays in the process, because the exit hooks of the
 * library's threads need the code. A zeroed *nvrtc is allowed. */
void fl_nvrtc_unload(fl_nvrtc *nvrtc);
/* Returns whether NVRTC makes cubins for exactly the architecture arch. */
bool fl_nvrtc_supports(const fl_nvrtc *nvrtc, uint32_t arch);
/* Returns the newest supported architecture not above arch, with PTX that arch can run; 0: no such
 * architecture. */
uint32_t fl_nvrtc_nearest(const fl_nvrtc *nvrtc, uint32_t arch);

/* Input of a compilation. Only the texts below enter the result, unless an option names a
 * folder. */
typedef struct fl_nvrtc_program {
    const char *source;
    const char *header_name; /* name of header in #include */
    const char *header;
    const char *const *options;
    int option_count;
    bool is_ptx; /* wanted: the PTX text with a terminator, not a cubin */
} fl_nvrtc_program;

/* Compiles a program. *image is allocated from memory, *bytes long. The compiler's remarks go to
 * log, line by line. FILCH_COMPILE: error->line and error->text describe the first error in the
 * source; FILCH_OUT_OF_MEMORY; FILCH_COMPILER_BROKEN. */
filch_status fl_nvrtc_compile(const fl_nvrtc *nvrtc, const fl_nvrtc_program *program,
                              const fl_memory *memory, const fl_log *log, void **image,
                              size_t *bytes, filch_error *error);

#endif
