/* SPDX-License-Identifier: Apache-2.0 */
/* filch's own declarations of the driver API against the toolkit's headers, where the build finds
 * them (FL_HAVE_CUDA_H); skipped elsewhere. Most of the comparison is made by the compiler: a
 * prototype that differs from the one cuGetProcAddress gives for its version does not build. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#ifndef FL_HAVE_CUDA_H

int main(void)
{
    return 77;
}

#else

/* Declarations that differ in name only would clash: the types of api.h are renamed here. */
#define CUresult own_CUresult
#define CUdevice_attribute own_CUdevice_attribute
#define CUdevice_P2PAttribute own_CUdevice_P2PAttribute
#define CUfunction_attribute own_CUfunction_attribute
#define CUpointer_attribute own_CUpointer_attribute
#define CUjit_option own_CUjit_option
#define CUmemorytype own_CUmemorytype
#define CUlaunchAttributeID own_CUlaunchAttributeID
#define CUdevResourceType own_CUdevResourceType
#define CUdriverProcAddressQueryResult own_CUdriverProcAddressQueryResult
#define CUuuid own_CUuuid
#define CUDA_MEMCPY2D own_CUDA_MEMCPY2D
#define CUlaunchAttributeValue own_CUlaunchAttributeValue
#define CUlaunchAttribute own_CUlaunchAttribute
#define CUlaunchConfig own_CUlaunchConfig
#define CUDA_KERNEL_NODE_PARAMS own_CUDA_KERNEL_NODE_PARAMS
#define CUgraphEdgeData own_CUgraphEdgeData
#define CUdevSmResource own_CUdevSmResource
#define CUdevResource own_CUdevResource
#define CUmemAllocationType own_CUmemAllocationType
#define CUmemAllocationHandleType own_CUmemAllocationHandleType
#define CUmemLocationType own_CUmemLocationType
#define CUmemAccess_flags own_CUmemAccess_flags
#define CUmemAllocationGranularity_flags own_CUmemAllocationGranularity_flags
#define CUmulticastGranularity_flags own_CUmulticastGranularity_flags
#define CUmemLocation own_CUmemLocation
#define CUmemAllocationProp own_CUmemAllocationProp
#define CUmemPoolProps own_CUmemPoolProps
#define CUmemPool_attribute own_CUmemPool_attribute
#define CUmemAccessDesc own_CUmemAccessDesc
#define CUmulticastObjectProp own_CUmulticastObjectProp
#include "backend/cuda/driver/api.h"
#undef CUresult
#undef CUdevice_attribute
#undef CUdevice_P2PAttribute
#undef CUfunction_attribute
#undef CUpointer_attribute
#undef CUjit_option
#undef CUmemorytype
#undef CUlaunchAttributeID
#undef CUdevResourceType
#undef CUdriverProcAddressQueryResult
#undef CUuuid
#undef CUDA_MEMCPY2D
#undef CUlaunchAttributeValue
#undef CUlaunchAttribute
#undef CUlaunchConfig
#undef CUDA_KERNEL_NODE_PARAMS
#undef CUgraphEdgeData
#undef CUdevSmResource
#undef CUdevResource
#undef CUmemAllocationType
#undef CUmemAllocationHandleType
#undef CUmemLocationType
#undef CUmemAccess_flags
#undef CUmemAllocationGranularity_flags
#undef CUmulticastGranularity_flags
#undef CUmemLocation
#undef CUmemAllocationProp
#undef CUmemPoolProps
#undef CUmemPool_attribute
#undef CUmemAccessDesc
#undef CUmulticastObjectProp

#include <string.h>

/* Symbols and versions, before cuda.h turns the symbols into macros. */
typedef struct entry {
    const char *member, *symbol;
    int version, since;
} entry;

static const entry entries[] = {
#define ENTRY(member, symbol, version, since, parameters) {#member, symbol, version, since},
    FL_CUDA_CALLS(ENTRY)
#undef ENTRY
};

#include <cuda.h>
#include <cudaTypedefs.h>

/* Here the table's parameters mean the toolkit's types. PFN_<symbol>_v<version> is the prototype
 * that belongs to the version. */
#define SAME_PROTOTYPE(member, symbol, version, since, parameters)                        \
    typedef CUresult(CUDAAPI *own_##member) parameters;                                   \
    _Static_assert(__builtin_types_compatible_p(own_##member, PFN_##member##_v##version), \
                   symbol " differs from the prototype of its version");
FL_CUDA_CALLS(SAME_PROTOTYPE)

#define SAME_VALUE(name, value) \
    _Static_assert(FL_##name == (int)(name), "FL_" #name " differs from cuda.h");
FL_CUDA_CONSTANTS(SAME_VALUE)

/* An enumeration of the toolkit's is passed as int here. */
#define IS_INT(type) \
    _Static_assert(sizeof(type) == sizeof(own_##type) && sizeof(type) == sizeof(int), #type)
IS_INT(CUresult);
IS_INT(CUdevice_attribute);
IS_INT(CUdevice_P2PAttribute);
IS_INT(CUfunction_attribute);
IS_INT(CUpointer_attribute);
IS_INT(CUjit_option);
IS_INT(CUmemorytype);
IS_INT(CUlaunchAttributeID);
IS_INT(CUdevResourceType);
IS_INT(CUdriverProcAddressQueryResult);
IS_INT(CUmemAllocationType);
IS_INT(CUmemPool_attribute);
IS_INT(CUmemAllocationHandleType);
IS_INT(CUmemLocationType);
IS_INT(CUmemAccess_flags);
IS_INT(CUmemAllocationGranularity_flags);
IS_INT(CUmulticastGranularity_flags);

#define SAME_SIZE(type)                                                              \
    _Static_assert(sizeof(type) == sizeof(own_##type), "sizes of " #type " differ"); \
    _Static_assert(_Alignof(type) == _Alignof(own_##type), "alignments of " #type " differ")
#define SAME_FIELD(type, field)                                                        \
    _Static_assert(offsetof(type, field) == offsetof(own_##type, field) &&             \
                       sizeof(((type *)0)->field) == sizeof(((own_##type *)0)->field), \
                   #type "::" #field " differs")

SAME_SIZE(CUuuid);
SAME_FIELD(CUuuid, bytes);

SAME_SIZE(CUDA_MEMCPY2D);
SAME_FIELD(CUDA_MEMCPY2D, srcXInBytes);
SAME_FIELD(CUDA_MEMCPY2D, srcY);
SAME_FIELD(CUDA_MEMCPY2D, srcMemoryType);
SAME_FIELD(CUDA_MEMCPY2D, srcHost);
SAME_FIELD(CUDA_MEMCPY2D, srcDevice);
SAME_FIELD(CUDA_MEMCPY2D, srcArray);
SAME_FIELD(CUDA_MEMCPY2D, srcPitch);
SAME_FIELD(CUDA_MEMCPY2D, dstXInBytes);
SAME_FIELD(CUDA_MEMCPY2D, dstY);
SAME_FIELD(CUDA_MEMCPY2D, dstMemoryType);
SAME_FIELD(CUDA_MEMCPY2D, dstHost);
SAME_FIELD(CUDA_MEMCPY2D, dstDevice);
SAME_FIELD(CUDA_MEMCPY2D, dstArray);
SAME_FIELD(CUDA_MEMCPY2D, dstPitch);
SAME_FIELD(CUDA_MEMCPY2D, WidthInBytes);
SAME_FIELD(CUDA_MEMCPY2D, Height);

SAME_SIZE(CUmemLocation);
SAME_FIELD(CUmemLocation, type);
SAME_FIELD(CUmemLocation, id);

SAME_SIZE(CUmemAllocationProp);
SAME_FIELD(CUmemAllocationProp, type);
SAME_FIELD(CUmemAllocationProp, requestedHandleTypes);
SAME_FIELD(CUmemAllocationProp, location);
SAME_FIELD(CUmemAllocationProp, win32HandleMetaData);
SAME_FIELD(CUmemAllocationProp, allocFlags);
SAME_FIELD(CUmemAllocationProp, allocFlags.compressionType);
SAME_FIELD(CUmemAllocationProp, allocFlags.gpuDirectRDMACapable);
SAME_FIELD(CUmemAllocationProp, allocFlags.usage);

SAME_SIZE(CUmemAccessDesc);
SAME_FIELD(CUmemAccessDesc, location);
SAME_FIELD(CUmemAccessDesc, flags);

SAME_SIZE(CUmemPoolProps);
SAME_FIELD(CUmemPoolProps, allocType);
SAME_FIELD(CUmemPoolProps, handleTypes);
SAME_FIELD(CUmemPoolProps, location);
SAME_FIELD(CUmemPoolProps, win32SecurityAttributes);
SAME_FIELD(CUmemPoolProps, maxSize);

SAME_SIZE(CUmulticastObjectProp);
SAME_FIELD(CUmulticastObjectProp, numDevices);
SAME_FIELD(CUmulticastObjectProp, size);
SAME_FIELD(CUmulticastObjectProp, handleTypes);
SAME_FIELD(CUmulticastObjectProp, flags);

SAME_SIZE(CUlaunchAttributeValue);
SAME_FIELD(CUlaunchAttributeValue, cooperative);
SAME_FIELD(CUlaunchAttributeValue, clusterDim.x);
SAME_FIELD(CUlaunchAttributeValue, clusterDim.y);
SAME_FIELD(CUlaunchAttributeValue, clusterDim.z);
SAME_FIELD(CUlaunchAttributeValue, programmaticStreamSerializationAllowed);
SAME_FIELD(CUlaunchAttributeValue, priority);

SAME_SIZE(CUlaunchAttribute);
SAME_FIELD(CUlaunchAttribute, id);
SAME_FIELD(CUlaunchAttribute, value);

SAME_SIZE(CUlaunchConfig);
SAME_FIELD(CUlaunchConfig, gridDimX);
SAME_FIELD(CUlaunchConfig, gridDimY);
SAME_FIELD(CUlaunchConfig, gridDimZ);
SAME_FIELD(CUlaunchConfig, blockDimX);
SAME_FIELD(CUlaunchConfig, blockDimY);
SAME_FIELD(CUlaunchConfig, blockDimZ);
SAME_FIELD(CUlaunchConfig, sharedMemBytes);
SAME_FIELD(CUlaunchConfig, hStream);
SAME_FIELD(CUlaunchConfig, attrs);
SAME_FIELD(CUlaunchConfig, numAttrs);

SAME_SIZE(CUDA_KERNEL_NODE_PARAMS);
SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, func);
SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, gridDimX);
SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, gridDimY);
SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, gridDimZ);
SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, blockDimX);
SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, blockDimY);
SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, blockDimZ);
SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, sharedMemBytes);
SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, kernelParams);
SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, extra);
SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, kern);
SAME_FIELD(CUDA_KERNEL_NODE_PARAMS, ctx);

SAME_SIZE(CUgraphEdgeData);
SAME_FIELD(CUgraphEdgeData, from_port);
SAME_FIELD(CUgraphEdgeData, to_port);
SAME_FIELD(CUgraphEdgeData, type);

SAME_SIZE(CUdevSmResource);
SAME_FIELD(CUdevSmResource, smCount);

SAME_SIZE(CUdevResource);
SAME_FIELD(CUdevResource, type);
SAME_FIELD(CUdevResource, sm);
SAME_FIELD(CUdevResource, sm.smCount);

/* The member says which prototype is compared, the symbol what is asked of the driver. */
static void members_are_named_after_their_symbols(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++)
        assert_string_equal(entries[i].member, entries[i].symbol);
}

/* An entry that a 12.0 driver may lack must be optional, and from the driver that brought it. */
static void optional_entries_are_those_newer_than_the_oldest_driver(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        if (entries[i].version > FL_CUDA_DRIVER_LEAST)
            assert_int_equal(entries[i].since, entries[i].version);
        else
            assert_int_equal(entries[i].since, 0);
    }
}

static void no_entry_is_there_twice(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(entries[i].symbol, entries[j].symbol);
    }
}

static void the_lookup_function_has_the_toolkits_shape(void **state)
{
    (void)state;
    /* cuuint64_t is uint64_t under another name; the enumeration's pointer is int's. */
    assert_int_equal(sizeof(cuuint64_t), sizeof(uint64_t));
    assert_true(__builtin_types_compatible_p(
        PFN_cuGetProcAddress_v12000, CUresult(CUDAAPI *)(const char *, void **, int, cuuint64_t,
                                                         CUdriverProcAddressQueryResult *)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_named_after_their_symbols),
        cmocka_unit_test(optional_entries_are_those_newer_than_the_oldest_driver),
        cmocka_unit_test(no_entry_is_there_twice),
        cmocka_unit_test(the_lookup_function_has_the_toolkits_shape),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
