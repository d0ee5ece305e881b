/* SPDX-License-Identifier: Apache-2.0 */
/* cuGetProcAddress over the table of entry points, and the names of results. */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "fake.h"

typedef struct symbol {
    const char *name;
    int version; /* that has this prototype first */
    int since;   /* drivers that have it at all; 0: all */
    void (*entry)(void);
} symbol;

static const symbol symbols[] = {
#define FAKE_SYMBOL(member, name, version, since, parameters) \
    {name, version, since, (void (*)(void))FAKE_NAME(member)},
    FAKE_CALLS(FAKE_SYMBOL)
#undef FAKE_SYMBOL
};

/* Versions from which the same name means another prototype (cudaTypedefs.h of CUDA 13.0). */
static const struct {
    const char *name;
    int version;
} successors[] = {
    {"cuCtxCreate", 11040},
    {"cuEventElapsedTime", 12080},
    {"cuCtxSynchronize", 13000},
};

static bool is_missing(const char *name)
{
    for (uint32_t i = 0; i < fake.config.missing_count; i++) {
        if (strcmp(fake.config.missing[i], name) == 0)
            return true;
    }
    return false;
}

static int successor(const char *name)
{
    for (size_t i = 0; i < sizeof successors / sizeof successors[0]; i++) {
        if (strcmp(successors[i].name, name) == 0)
            return successors[i].version;
    }
    return 1 << 30;
}

FAKECUDA_API CUresult cuGetProcAddress_v2(const char *name, void **function, int version,
                                          uint64_t flags, CUdriverProcAddressQueryResult *found);

CUresult cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags,
                             CUdriverProcAddressQueryResult *found)
{
    CUresult result = fake_begin("cuGetProcAddress", FAKE_ANY);
    int state = FL_CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;

    if (result == FL_CUDA_SUCCESS && (name == NULL || function == NULL || flags > 2))
        result = FL_CUDA_ERROR_INVALID_VALUE;
    if (result == FL_CUDA_SUCCESS && version > fake.config.driver)
        result = FL_CUDA_ERROR_INVALID_VALUE;
    if (result == FL_CUDA_SUCCESS)
        *function = NULL;
    for (size_t i = 0; result == FL_CUDA_SUCCESS && i < sizeof symbols / sizeof symbols[0]; i++) {
        const symbol *s = &symbols[i];
        if (strcmp(s->name, name) != 0 || s->since > fake.config.driver || is_missing(name))
            continue;
        if (version < s->version) {
            state = FL_CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
        } else if (version >= successor(name)) {
            (void)fake_violate(0, "%s of version %d has another prototype", name, version);
        } else {
            memcpy(function, &s->entry, sizeof *function);
            state = FL_CU_GET_PROC_ADDRESS_SUCCESS;
        }
    }
    /* As the driver: what there is not is told by the pointer, not by the result. */
    if (result == FL_CUDA_SUCCESS && found != NULL)
        *found = state;
    return fake_end(result);
}

/* NVRTC asks a driver that is in the process for tables of its own, and crashes where the entry is
 * missing; refused, it compiles as it does without a driver. */
FAKECUDA_API CUresult cuGetExportTable(const void **table, const CUuuid *id);

CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
    CUresult result = fake_begin("cuGetExportTable", FAKE_ANY);

    (void)id;
    if (table != NULL)
        *table = NULL;
    return fake_end(result != FL_CUDA_SUCCESS ? result : FL_CUDA_ERROR_NOT_FOUND);
}

/* --- Names of results --- */

static const struct {
    int value;
    const char *name;
} constants[] = {
#define FAKE_CONSTANT(name, value) {value, #name},
    FL_CUDA_CONSTANTS(FAKE_CONSTANT)
#undef FAKE_CONSTANT
};

static const char *result_name(CUresult result)
{
    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++) {
        if (constants[i].value == result && strncmp(constants[i].name, "CUDA_", 5) == 0)
            return constants[i].name;
    }
    return NULL;
}

CUresult cuGetErrorName(CUresult of, const char **text)
{
    CUresult result = fake_begin("cuGetErrorName", FAKE_ANY);

    if (result == FL_CUDA_SUCCESS) {
        *text = result_name(of);
        if (*text == NULL)
            result = FL_CUDA_ERROR_INVALID_VALUE;
    }
    return fake_end(result);
}

CUresult cuGetErrorString(CUresult of, const char **text)
{
    static char texts[1000][64];
    CUresult result = fake_begin("cuGetErrorString", FAKE_ANY);
    const char *name = result_name(of);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    *text = NULL;
    if (name == NULL || of >= 1000)
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    if (texts[of][0] == '\0') {
        name += strncmp(name, "CUDA_ERROR_", 11) == 0 ? 11 : 5;
        for (size_t i = 0; name[i] != '\0' && i + 1 < sizeof texts[0]; i++)
            texts[of][i] = (char)(name[i] == '_' ? ' ' : tolower((unsigned char)name[i]));
    }
    *text = texts[of];
    return fake_end(FL_CUDA_SUCCESS);
}
