/* SPDX-License-Identifier: Apache-2.0 */
/* What NVTX, version 3, has agreed with profilers (nvToolsExt.h, nvtxDetail/nvtxTypes.h): the
 * environment names a library, whose entry point fills the tables of functions that a program hands
 * out. A test compares these declarations with NVIDIA's, where they are. */
#ifndef FL_OBSERVE_NVTX_ABI_H
#define FL_OBSERVE_NVTX_ABI_H

#include <stddef.h>
#include <stdint.h>

#define FL_NVTX_VARIABLE "NVTX_INJECTION64_PATH"
#define FL_NVTX_ENTRY "InitializeInjectionNvtx2"
#define FL_NVTX_VERSION 3

/* Records that fl_nvtx_get_record finds. */
enum { FL_NVTX_RECORD_CALLBACKS = 1, FL_NVTX_RECORD_VERSION = 3 };

/* Tables of functions, and their lengths. Function 0 of a table is none. */
enum { FL_NVTX_TABLE_CORE2 = 5, FL_NVTX_TABLES = 7, FL_NVTX_LONGEST = 16 };
#define FL_NVTX_LENGTHS        \
    {                          \
        0, 16, 9, 15, 7, 16, 7 \
    }

/* Functions of table CORE2. */
enum {
    FL_NVTX_RANGE_START = 2,
    FL_NVTX_RANGE_END = 3,
    FL_NVTX_RANGE_PUSH = 4,
    FL_NVTX_RANGE_POP = 5,
    FL_NVTX_DOMAIN_CREATE = 12
};

typedef void (*fl_nvtx_fn)(void);

typedef struct fl_nvtx_callbacks {
    size_t size;
    /* Finds a table: places of pointers to functions, for the profiler to fill. 0: no table. */
    int (*get_table)(unsigned table, fl_nvtx_fn ***functions, unsigned *count);
} fl_nvtx_callbacks;

typedef struct fl_nvtx_version {
    size_t size;
    uint32_t version, reserved;
    void (*set_tool_version)(uint32_t version);
} fl_nvtx_version;

typedef const void *(*fl_nvtx_get_record)(uint32_t record);
/* The entry point. 0: the profiler does not attach. */
typedef int (*fl_nvtx_entry)(fl_nvtx_get_record get_record);

#define FL_NVTX_MESSAGE_TEXT 1 /* message_type: a text of chars */

/* A range's description. */
typedef struct fl_nvtx_attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const char *message;
} fl_nvtx_attributes;

typedef void *(*fl_nvtx_domain_create)(const char *name);
typedef int (*fl_nvtx_range_push)(void *domain, const fl_nvtx_attributes *attributes);
typedef int (*fl_nvtx_range_pop)(void *domain);
typedef uint64_t (*fl_nvtx_range_start)(void *domain, const fl_nvtx_attributes *attributes);
typedef void (*fl_nvtx_range_end)(void *domain, uint64_t range);

#endif
