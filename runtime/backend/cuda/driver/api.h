/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations of the CUDA driver API, limited to the calls made by filch. Own declarations let
 * filch build without CUDA. The table of entry points pins each entry to the version of the
 * prototype given here.
 *
 * Types carry the driver's names. C11 lets a typedef of a handle repeat, but the enumerations are
 * plain int here: no file may include both this header and cuda.h. tests/unit/test_cuda_api.c
 * compares every constant, structure and prototype with cuda.h where cuda.h is installed. */
#ifndef FL_BACKEND_CUDA_DRIVER_API_H
#define FL_BACKEND_CUDA_DRIVER_API_H

#include <stddef.h>
#include <stdint.h>

/* Oldest supported driver: 12.0, in the driver's own numbering. */
#define FL_CUDA_DRIVER_LEAST 12000

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef unsigned long long CUmemGenericAllocationHandle;

typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUkern_st *CUkernel;
typedef struct CUarray_st *CUarray;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUgreenCtx_st *CUgreenCtx;
typedef struct CUdevResourceDesc_st *CUdevResourceDesc;
typedef struct CUmemPoolHandle_st *CUmemoryPool;

/* Enumerations. */
typedef int CUdevice_attribute;
typedef int CUdevice_P2PAttribute;
typedef int CUfunction_attribute;
typedef int CUpointer_attribute;
typedef int CUjit_option;
typedef int CUmemorytype;
typedef int CUlaunchAttributeID;
typedef int CUdevResourceType;
typedef int CUmemAllocationType;
typedef int CUmemAllocationHandleType;
typedef int CUmemLocationType;
typedef int CUmemAccess_flags;
typedef int CUmemAllocationGranularity_flags;
typedef int CUmulticastGranularity_flags;
typedef int CUmemPool_attribute;
typedef int CUdriverProcAddressQueryResult;

typedef struct CUuuid {
    char bytes[16];
} CUuuid;

typedef struct CUDA_MEMCPY2D {
    size_t srcXInBytes;
    size_t srcY;
    CUmemorytype srcMemoryType;
    const void *srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    size_t srcPitch;
    size_t dstXInBytes;
    size_t dstY;
    CUmemorytype dstMemoryType;
    void *dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    size_t dstPitch;
    size_t WidthInBytes;
    size_t Height;
} CUDA_MEMCPY2D;

/* Excerpt of the driver's union of values. */
typedef union CUlaunchAttributeValue {
    char pad[64];
    uint64_t alignment; /* the driver's union has pointers of equal width */
    int cooperative;
    struct {
        unsigned int x;
        unsigned int y;
        unsigned int z;
    } clusterDim;
    int programmaticStreamSerializationAllowed;
    int priority;
} CUlaunchAttributeValue;

typedef struct CUlaunchAttribute {
    CUlaunchAttributeID id;
    char pad[8 - sizeof(CUlaunchAttributeID)];
    CUlaunchAttributeValue value;
} CUlaunchAttribute;

typedef struct CUlaunchConfig {
    unsigned int gridDimX;
    unsigned int gridDimY;
    unsigned int gridDimZ;
    unsigned int blockDimX;
    unsigned int blockDimY;
    unsigned int blockDimZ;
    unsigned int sharedMemBytes;
    CUstream hStream;
    CUlaunchAttribute *attrs;
    unsigned int numAttrs;
} CUlaunchConfig;

typedef struct CUDA_KERNEL_NODE_PARAMS {
    CUfunction func;
    unsigned int gridDimX;
    unsigned int gridDimY;
    unsigned int gridDimZ;
    unsigned int blockDimX;
    unsigned int blockDimY;
    unsigned int blockDimZ;
    unsigned int sharedMemBytes;
    void **kernelParams;
    void **extra;
    CUkernel kern;
    CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS;

typedef struct CUgraphEdgeData {
    unsigned char from_port;
    unsigned char to_port;
    unsigned char type;
    unsigned char reserved[5];
} CUgraphEdgeData;

typedef struct CUdevSmResource {
    unsigned int smCount;
    unsigned int minSmPartitionSize;
    unsigned int smCoscheduledAlignment;
} CUdevSmResource;

typedef struct CUdevResource {
    CUdevResourceType type;
    unsigned char _internal_padding[92];
    union {
        CUdevSmResource sm;
        unsigned char _oversize[48];
    };
} CUdevResource;

typedef struct CUmemLocation {
    CUmemLocationType type;
    int id;
} CUmemLocation;

typedef struct CUmemAllocationProp {
    CUmemAllocationType type;
    CUmemAllocationHandleType requestedHandleTypes;
    CUmemLocation location;
    void *win32HandleMetaData;
    struct {
        unsigned char compressionType;
        unsigned char gpuDirectRDMACapable;
        unsigned short usage;
        unsigned char reserved[4];
    } allocFlags;
} CUmemAllocationProp;

typedef struct CUmemAccessDesc {
    CUmemLocation location;
    CUmemAccess_flags flags;
} CUmemAccessDesc;

typedef struct CUmemPoolProps {
    CUmemAllocationType allocType;
    CUmemAllocationHandleType handleTypes;
    CUmemLocation location;
    void *win32SecurityAttributes;
    size_t maxSize;
    unsigned short usage;
    unsigned char reserved[54];
} CUmemPoolProps;

typedef struct CUmulticastObjectProp {
    unsigned int numDevices;
    size_t size;
    unsigned long long handleTypes;
    unsigned long long flags;
} CUmulticastObjectProp;

/* X(driver's name, value); each constant is called FL_<driver's name> in filch. */
#define FL_CUDA_CONSTANTS(X)                                         \
    X(CUDA_SUCCESS, 0)                                               \
    X(CUDA_ERROR_INVALID_VALUE, 1)                                   \
    X(CUDA_ERROR_OUT_OF_MEMORY, 2)                                   \
    X(CUDA_ERROR_NOT_INITIALIZED, 3)                                 \
    X(CUDA_ERROR_DEINITIALIZED, 4)                                   \
    X(CUDA_ERROR_STUB_LIBRARY, 34)                                   \
    X(CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, 36)                     \
    X(CUDA_ERROR_DEVICE_UNAVAILABLE, 46)                             \
    X(CUDA_ERROR_NO_DEVICE, 100)                                     \
    X(CUDA_ERROR_INVALID_DEVICE, 101)                                \
    X(CUDA_ERROR_DEVICE_NOT_LICENSED, 102)                           \
    X(CUDA_ERROR_INVALID_IMAGE, 200)                                 \
    X(CUDA_ERROR_INVALID_CONTEXT, 201)                               \
    X(CUDA_ERROR_NO_BINARY_FOR_GPU, 209)                             \
    X(CUDA_ERROR_ECC_UNCORRECTABLE, 214)                             \
    X(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, 217)                       \
    X(CUDA_ERROR_INVALID_PTX, 218)                                   \
    X(CUDA_ERROR_NVLINK_UNCORRECTABLE, 220)                          \
    X(CUDA_ERROR_JIT_COMPILER_NOT_FOUND, 221)                        \
    X(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222)                       \
    X(CUDA_ERROR_JIT_COMPILATION_DISABLED, 223)                      \
    X(CUDA_ERROR_CONTAINED, 226)                                     \
    X(CUDA_ERROR_INVALID_SOURCE, 300)                                \
    X(CUDA_ERROR_FILE_NOT_FOUND, 301)                                \
    X(CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, 302)                \
    X(CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, 303)                     \
    X(CUDA_ERROR_OPERATING_SYSTEM, 304)                              \
    X(CUDA_ERROR_INVALID_HANDLE, 400)                                \
    X(CUDA_ERROR_ILLEGAL_STATE, 401)                                 \
    X(CUDA_ERROR_NOT_FOUND, 500)                                     \
    X(CUDA_ERROR_NOT_READY, 600)                                     \
    X(CUDA_ERROR_ILLEGAL_ADDRESS, 700)                               \
    X(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701)                       \
    X(CUDA_ERROR_LAUNCH_TIMEOUT, 702)                                \
    X(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, 704)                   \
    X(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, 705)                       \
    X(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, 708)                        \
    X(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709)                          \
    X(CUDA_ERROR_ASSERT, 710)                                        \
    X(CUDA_ERROR_TOO_MANY_PEERS, 711)                                \
    X(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712)                \
    X(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, 713)                    \
    X(CUDA_ERROR_HARDWARE_STACK_ERROR, 714)                          \
    X(CUDA_ERROR_ILLEGAL_INSTRUCTION, 715)                           \
    X(CUDA_ERROR_MISALIGNED_ADDRESS, 716)                            \
    X(CUDA_ERROR_INVALID_ADDRESS_SPACE, 717)                         \
    X(CUDA_ERROR_INVALID_PC, 718)                                    \
    X(CUDA_ERROR_LAUNCH_FAILED, 719)                                 \
    X(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, 720)                  \
    X(CUDA_ERROR_TENSOR_MEMORY_LEAK, 721)                            \
    X(CUDA_ERROR_NOT_PERMITTED, 800)                                 \
    X(CUDA_ERROR_NOT_SUPPORTED, 801)                                 \
    X(CUDA_ERROR_SYSTEM_NOT_READY, 802)                              \
    X(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803)                        \
    X(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804)                \
    X(CUDA_ERROR_MPS_CLIENT_TERMINATED, 810)                         \
    X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900)                    \
    X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901)                    \
    X(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, 903)                      \
    X(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, 904)                       \
    X(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, 905)                      \
    X(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 906)                       \
    X(CUDA_ERROR_CAPTURED_EVENT, 907)                                \
    X(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 908)                   \
    X(CUDA_ERROR_TIMEOUT, 909)                                       \
    X(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, 910)                     \
    X(CUDA_ERROR_EXTERNAL_DEVICE, 911)                               \
    X(CUDA_ERROR_INVALID_CLUSTER_SIZE, 912)                          \
    X(CUDA_ERROR_INVALID_RESOURCE_TYPE, 914)                         \
    X(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, 915)                \
    X(CUDA_ERROR_UNKNOWN, 999)                                       \
    X(CU_GET_PROC_ADDRESS_DEFAULT, 0)                                \
    X(CU_GET_PROC_ADDRESS_SUCCESS, 0)                                \
    X(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, 1)                       \
    X(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, 2)                 \
    X(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1)                  \
    X(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 2)                        \
    X(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 3)                        \
    X(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 4)                        \
    X(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 5)                         \
    X(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 6)                         \
    X(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 7)                         \
    X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 8)            \
    X(CU_DEVICE_ATTRIBUTE_WARP_SIZE, 10)                             \
    X(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 13)                            \
    X(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)                  \
    X(CU_DEVICE_ATTRIBUTE_INTEGRATED, 18)                            \
    X(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 19)                   \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 20)                          \
    X(CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 31)                    \
    X(CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 32)                           \
    X(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 33)                            \
    X(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 34)                         \
    X(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 36)                     \
    X(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 37)               \
    X(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 38)                         \
    X(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 39)        \
    X(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 40)                    \
    X(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 41)                    \
    X(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 50)                         \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)              \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)              \
    X(CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 78)           \
    X(CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 87) \
    X(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 88)                \
    X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)     \
    X(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 102)  \
    X(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 115)               \
    X(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 120)                       \
    X(CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 132)                  \
    X(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, 134)                         \
    X(CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, 1)                   \
    X(CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 2)                   \
    X(CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, 3)            \
    X(CU_COMPUTEMODE_DEFAULT, 0)                                     \
    X(CU_COMPUTEMODE_PROHIBITED, 2)                                  \
    X(CU_CTX_SCHED_AUTO, 0)                                          \
    X(CU_CTX_SCHED_SPIN, 1)                                          \
    X(CU_CTX_SCHED_YIELD, 2)                                         \
    X(CU_CTX_SCHED_BLOCKING_SYNC, 4)                                 \
    X(CU_CTX_SCHED_MASK, 7)                                          \
    X(CU_CTX_MAP_HOST, 8)                                            \
    X(CU_STREAM_DEFAULT, 0)                                          \
    X(CU_STREAM_NON_BLOCKING, 1)                                     \
    X(CU_EVENT_DEFAULT, 0)                                           \
    X(CU_EVENT_BLOCKING_SYNC, 1)                                     \
    X(CU_EVENT_DISABLE_TIMING, 2)                                    \
    X(CU_MEMHOSTALLOC_PORTABLE, 1)                                   \
    X(CU_MEMHOSTALLOC_DEVICEMAP, 2)                                  \
    X(CU_MEMHOSTALLOC_WRITECOMBINED, 4)                              \
    X(CU_MEMHOSTREGISTER_PORTABLE, 1)                                \
    X(CU_MEMHOSTREGISTER_DEVICEMAP, 2)                               \
    X(CU_POINTER_ATTRIBUTE_CONTEXT, 1)                               \
    X(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 2)                           \
    X(CU_POINTER_ATTRIBUTE_IS_MANAGED, 8)                            \
    X(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9)                        \
    X(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, 11)                     \
    X(CU_POINTER_ATTRIBUTE_RANGE_SIZE, 12)                           \
    X(CU_MEMORYTYPE_HOST, 1)                                         \
    X(CU_MEMORYTYPE_DEVICE, 2)                                       \
    X(CU_MEMORYTYPE_UNIFIED, 4)                                      \
    X(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0)                    \
    X(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1)                        \
    X(CU_FUNC_ATTRIBUTE_PTX_VERSION, 5)                              \
    X(CU_FUNC_ATTRIBUTE_BINARY_VERSION, 6)                           \
    X(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)            \
    X(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 11)                  \
    X(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 14)       \
    X(CU_JIT_INFO_LOG_BUFFER, 3)                                     \
    X(CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, 4)                          \
    X(CU_JIT_ERROR_LOG_BUFFER, 5)                                    \
    X(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 6)                         \
    X(CU_LAUNCH_ATTRIBUTE_IGNORE, 0)                                 \
    X(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 2)                            \
    X(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 4)                      \
    X(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 6)      \
    X(CU_LAUNCH_ATTRIBUTE_PRIORITY, 8)                               \
    X(CU_GRAPH_KERNEL_NODE_PORT_DEFAULT, 0)                          \
    X(CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, 1)                     \
    X(CU_GRAPH_DEPENDENCY_TYPE_DEFAULT, 0)                           \
    X(CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, 1)                      \
    X(CU_DEV_RESOURCE_TYPE_INVALID, 0)                               \
    X(CU_DEV_RESOURCE_TYPE_SM, 1)                                    \
    X(CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING, 1)            \
    X(CU_GREEN_CTX_DEFAULT_STREAM, 1)                                \
    X(CU_MEM_ALLOCATION_TYPE_PINNED, 1)                              \
    X(CU_MEM_LOCATION_TYPE_DEVICE, 1)                                \
    X(CU_MEM_ACCESS_FLAGS_PROT_NONE, 0)                              \
    X(CU_MEM_ACCESS_FLAGS_PROT_READWRITE, 3)                         \
    X(CU_MEM_ALLOC_GRANULARITY_MINIMUM, 0)                           \
    X(CU_MEM_ALLOC_GRANULARITY_RECOMMENDED, 1)                       \
    X(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 4)                          \
    X(CU_MULTICAST_GRANULARITY_MINIMUM, 0)                           \
    X(CU_MULTICAST_GRANULARITY_RECOMMENDED, 1)

enum {
#define FL_CUDA_ENUM(name, value) FL_##name = (value),
    FL_CUDA_CONSTANTS(FL_CUDA_ENUM)
#undef FL_CUDA_ENUM
};

/* X(member, symbol, version, since, parameters): the entry point `symbol` with the prototype given
 * by cuGetProcAddress for `version`. since is 0 where every driver must have the entry. An entry
 * with another value is optional: its member is NULL where the driver's version is below since. */
#define FL_CUDA_CALLS(X)                                                                           \
    X(cuInit, "cuInit", 2000, 0, (unsigned int flags))                                             \
    X(cuDriverGetVersion, "cuDriverGetVersion", 2020, 0, (int *version))                           \
    X(cuGetErrorName, "cuGetErrorName", 6000, 0, (CUresult result, const char **text))             \
    X(cuGetErrorString, "cuGetErrorString", 6000, 0, (CUresult result, const char **text))         \
    X(cuDeviceGetCount, "cuDeviceGetCount", 2000, 0, (int *count))                                 \
    X(cuDeviceGet, "cuDeviceGet", 2000, 0, (CUdevice * device, int ordinal))                       \
    X(cuDeviceGetName, "cuDeviceGetName", 2000, 0, (char *name, int bytes, CUdevice device))       \
    X(cuDeviceGetUuid, "cuDeviceGetUuid", 11040, 0, (CUuuid * uuid, CUdevice device))              \
    X(cuDeviceGetAttribute, "cuDeviceGetAttribute", 2000, 0,                                       \
      (int *value, CUdevice_attribute attribute, CUdevice device))                                 \
    X(cuDeviceTotalMem, "cuDeviceTotalMem", 3020, 0, (size_t * bytes, CUdevice device))            \
    X(cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId", 4010, 0, (char *id, int bytes, CUdevice device)) \
    X(cuDeviceCanAccessPeer, "cuDeviceCanAccessPeer", 4000, 0,                                     \
      (int *can, CUdevice device, CUdevice peer))                                                  \
    X(cuDeviceGetP2PAttribute, "cuDeviceGetP2PAttribute", 8000, 0,                                 \
      (int *value, CUdevice_P2PAttribute attribute, CUdevice from, CUdevice to))                   \
    X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000, 0,                               \
      (CUcontext * context, CUdevice device))                                                      \
    X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease", 11000, 0, (CUdevice device))         \
    X(cuCtxCreate, "cuCtxCreate", 3020, 0,                                                         \
      (CUcontext * context, unsigned int flags, CUdevice device))                                  \
    X(cuCtxDestroy, "cuCtxDestroy", 4000, 0, (CUcontext context))                                  \
    X(cuCtxPushCurrent, "cuCtxPushCurrent", 4000, 0, (CUcontext context))                          \
    X(cuCtxPopCurrent, "cuCtxPopCurrent", 4000, 0, (CUcontext * context))                          \
    X(cuCtxGetCurrent, "cuCtxGetCurrent", 4000, 0, (CUcontext * context))                          \
    X(cuCtxSetCurrent, "cuCtxSetCurrent", 4000, 0, (CUcontext context))                            \
    X(cuCtxEnablePeerAccess, "cuCtxEnablePeerAccess", 4000, 0,                                     \
      (CUcontext peer, unsigned int flags))                                                        \
    X(cuCtxDisablePeerAccess, "cuCtxDisablePeerAccess", 4000, 0, (CUcontext peer))                 \
    X(cuMemGetInfo, "cuMemGetInfo", 3020, 0, (size_t * free, size_t * total))                      \
    X(cuMemAlloc, "cuMemAlloc", 3020, 0, (CUdeviceptr * block, size_t bytes))                      \
    X(cuMemFree, "cuMemFree", 3020, 0, (CUdeviceptr block))                                        \
    X(cuMemHostAlloc, "cuMemHostAlloc", 2020, 0, (void **block, size_t bytes, unsigned int flags)) \
    X(cuMemFreeHost, "cuMemFreeHost", 2000, 0, (void *block))                                      \
    X(cuMemHostRegister, "cuMemHostRegister", 6050, 0,                                             \
      (void *block, size_t bytes, unsigned int flags))                                             \
    X(cuMemHostUnregister, "cuMemHostUnregister", 4000, 0, (void *block))                          \
    X(cuPointerGetAttribute, "cuPointerGetAttribute", 4000, 0,                                     \
      (void *data, CUpointer_attribute attribute, CUdeviceptr pointer))                            \
    X(cuMemGetAllocationGranularity, "cuMemGetAllocationGranularity", 10020, 0,                    \
      (size_t * bytes, const CUmemAllocationProp *properties,                                      \
       CUmemAllocationGranularity_flags which))                                                    \
    X(cuMemCreate, "cuMemCreate", 10020, 0,                                                        \
      (CUmemGenericAllocationHandle * memory, size_t bytes, const CUmemAllocationProp *properties, \
       unsigned long long flags))                                                                  \
    X(cuMemRelease, "cuMemRelease", 10020, 0, (CUmemGenericAllocationHandle memory))               \
    X(cuMemAddressReserve, "cuMemAddressReserve", 10020, 0,                                        \
      (CUdeviceptr * address, size_t bytes, size_t alignment, CUdeviceptr wanted,                  \
       unsigned long long flags))                                                                  \
    X(cuMemAddressFree, "cuMemAddressFree", 10020, 0, (CUdeviceptr address, size_t bytes))         \
    X(cuMemMap, "cuMemMap", 10020, 0,                                                              \
      (CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle memory,      \
       unsigned long long flags))                                                                  \
    X(cuMemUnmap, "cuMemUnmap", 10020, 0, (CUdeviceptr address, size_t bytes))                     \
    X(cuMemSetAccess, "cuMemSetAccess", 10020, 0,                                                  \
      (CUdeviceptr address, size_t bytes, const CUmemAccessDesc *accesses, size_t count))          \
    X(cuMemPoolCreate, "cuMemPoolCreate", 11020, 0,                                                \
      (CUmemoryPool * pool, const CUmemPoolProps *properties))                                     \
    X(cuMemPoolDestroy, "cuMemPoolDestroy", 11020, 0, (CUmemoryPool pool))                         \
    X(cuMemPoolSetAttribute, "cuMemPoolSetAttribute", 11020, 0,                                    \
      (CUmemoryPool pool, CUmemPool_attribute attribute, void *value))                             \
    X(cuMemPoolSetAccess, "cuMemPoolSetAccess", 11020, 0,                                          \
      (CUmemoryPool pool, const CUmemAccessDesc *accesses, size_t count))                          \
    X(cuMemPoolTrimTo, "cuMemPoolTrimTo", 11020, 0, (CUmemoryPool pool, size_t keep))              \
    X(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", 11020, 0,                                \
      (CUdeviceptr * block, size_t bytes, CUmemoryPool pool, CUstream stream))                     \
    X(cuMemFreeAsync, "cuMemFreeAsync", 11020, 0, (CUdeviceptr block, CUstream stream))            \
    X(cuMulticastGetGranularity, "cuMulticastGetGranularity", 12010, 12010,                        \
      (size_t * bytes, const CUmulticastObjectProp *properties,                                    \
       CUmulticastGranularity_flags which))                                                        \
    X(cuMulticastCreate, "cuMulticastCreate", 12010, 12010,                                        \
      (CUmemGenericAllocationHandle * multicast, const CUmulticastObjectProp *properties))         \
    X(cuMulticastAddDevice, "cuMulticastAddDevice", 12010, 12010,                                  \
      (CUmemGenericAllocationHandle multicast, CUdevice device))                                   \
    X(cuMulticastBindMem, "cuMulticastBindMem", 12010, 12010,                                      \
      (CUmemGenericAllocationHandle multicast, size_t offset, CUmemGenericAllocationHandle memory, \
       size_t memory_offset, size_t bytes, unsigned long long flags))                              \
    X(cuMulticastBindAddr, "cuMulticastBindAddr", 12010, 12010,                                    \
      (CUmemGenericAllocationHandle multicast, size_t offset, CUdeviceptr address, size_t bytes,   \
       unsigned long long flags))                                                                  \
    X(cuMulticastUnbind, "cuMulticastUnbind", 12010, 12010,                                        \
      (CUmemGenericAllocationHandle multicast, CUdevice device, size_t offset, size_t bytes))      \
    X(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync", 3020, 0,                                             \
      (CUdeviceptr to, const void *from, size_t bytes, CUstream stream))                           \
    X(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync", 3020, 0,                                             \
      (void *to, CUdeviceptr from, size_t bytes, CUstream stream))                                 \
    X(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync", 3020, 0,                                             \
      (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))                           \
    X(cuMemcpyPeerAsync, "cuMemcpyPeerAsync", 4000, 0,                                             \
      (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,             \
       size_t bytes, CUstream stream))                                                             \
    X(cuMemcpy2DAsync, "cuMemcpy2DAsync", 3020, 0, (const CUDA_MEMCPY2D *copy, CUstream stream))   \
    X(cuMemsetD8Async, "cuMemsetD8Async", 3020, 0,                                                 \
      (CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream))                        \
    X(cuStreamCreate, "cuStreamCreate", 2000, 0, (CUstream * stream, unsigned int flags))          \
    X(cuStreamDestroy, "cuStreamDestroy", 4000, 0, (CUstream stream))                              \
    X(cuStreamSynchronize, "cuStreamSynchronize", 2000, 0, (CUstream stream))                      \
    X(cuStreamWaitEvent, "cuStreamWaitEvent", 3020, 0,                                             \
      (CUstream stream, CUevent event, unsigned int flags))                                        \
    X(cuEventCreate, "cuEventCreate", 2000, 0, (CUevent * event, unsigned int flags))              \
    X(cuEventDestroy, "cuEventDestroy", 4000, 0, (CUevent event))                                  \
    X(cuEventRecord, "cuEventRecord", 2000, 0, (CUevent event, CUstream stream))                   \
    X(cuEventQuery, "cuEventQuery", 2000, 0, (CUevent event))                                      \
    X(cuEventSynchronize, "cuEventSynchronize", 2000, 0, (CUevent event))                          \
    X(cuEventElapsedTime, "cuEventElapsedTime", 2000, 0,                                           \
      (float *milliseconds, CUevent start, CUevent end))                                           \
    X(cuModuleLoadDataEx, "cuModuleLoadDataEx", 2010, 0,                                           \
      (CUmodule * module, const void *image, unsigned int count, CUjit_option *options,            \
       void **values))                                                                             \
    X(cuModuleUnload, "cuModuleUnload", 2000, 0, (CUmodule module))                                \
    X(cuModuleGetFunction, "cuModuleGetFunction", 2000, 0,                                         \
      (CUfunction * function, CUmodule module, const char *name))                                  \
    X(cuFuncGetAttribute, "cuFuncGetAttribute", 2020, 0,                                           \
      (int *value, CUfunction_attribute attribute, CUfunction function))                           \
    X(cuFuncSetAttribute, "cuFuncSetAttribute", 9000, 0,                                           \
      (CUfunction function, CUfunction_attribute attribute, int value))                            \
    X(cuFuncGetParamInfo, "cuFuncGetParamInfo", 12040, 12040,                                      \
      (CUfunction function, size_t index, size_t * offset, size_t * bytes))                        \
    X(cuLaunchKernel, "cuLaunchKernel", 4000, 0,                                                   \
      (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,         \
       unsigned int block_x, unsigned int block_y, unsigned int block_z,                           \
       unsigned int shared_bytes, CUstream stream, void **params, void **extra))                   \
    X(cuLaunchKernelEx, "cuLaunchKernelEx", 11060, 0,                                              \
      (const CUlaunchConfig *config, CUfunction function, void **params, void **extra))            \
    X(cuGraphCreate, "cuGraphCreate", 10000, 0, (CUgraph * graph, unsigned int flags))             \
    X(cuGraphAddKernelNode, "cuGraphAddKernelNode", 12000, 0,                                      \
      (CUgraphNode * node, CUgraph graph, const CUgraphNode *behind, size_t behind_count,          \
       const CUDA_KERNEL_NODE_PARAMS *params))                                                     \
    X(cuGraphAddDependencies, "cuGraphAddDependencies", 12030, 12030,                              \
      (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data, \
       size_t count))                                                                              \
    X(cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags", 11040, 0,                        \
      (CUgraphExec * executable, CUgraph graph, unsigned long long flags))                         \
    X(cuGraphExecKernelNodeSetParams, "cuGraphExecKernelNodeSetParams", 12000, 0,                  \
      (CUgraphExec executable, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params))           \
    X(cuGraphLaunch, "cuGraphLaunch", 10000, 0, (CUgraphExec executable, CUstream stream))         \
    X(cuGraphDestroy, "cuGraphDestroy", 10000, 0, (CUgraph graph))                                 \
    X(cuGraphExecDestroy, "cuGraphExecDestroy", 10000, 0, (CUgraphExec executable))                \
    X(cuDeviceGetDevResource, "cuDeviceGetDevResource", 12040, 12040,                              \
      (CUdevice device, CUdevResource * resource, CUdevResourceType type))                         \
    X(cuDevSmResourceSplitByCount, "cuDevSmResourceSplitByCount", 12040, 12040,                    \
      (CUdevResource * groups, unsigned int *count, const CUdevResource *input,                    \
       CUdevResource *remaining, unsigned int flags, unsigned int least))                          \
    X(cuDevResourceGenerateDesc, "cuDevResourceGenerateDesc", 12040, 12040,                        \
      (CUdevResourceDesc * desc, CUdevResource * resources, unsigned int count))                   \
    X(cuGreenCtxCreate, "cuGreenCtxCreate", 12040, 12040,                                          \
      (CUgreenCtx * context, CUdevResourceDesc desc, CUdevice device, unsigned int flags))         \
    X(cuGreenCtxDestroy, "cuGreenCtxDestroy", 12040, 12040, (CUgreenCtx context))                  \
    X(cuGreenCtxStreamCreate, "cuGreenCtxStreamCreate", 12050, 12050,                              \
      (CUstream * stream, CUgreenCtx context, unsigned int flags, int priority))

/* cuGetProcAddress_v2, the only entry found by name (fl_cuda_load). */
typedef CUresult (*fl_cuda_get_proc_fn)(const char *symbol, void **function, int version,
                                        uint64_t flags, CUdriverProcAddressQueryResult *found);

typedef struct fl_cuda_api {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): parts of a declaration take no parentheses */
#define FL_CUDA_MEMBER(member, symbol, version, since, parameters) CUresult(*member) parameters;
    FL_CUDA_CALLS(FL_CUDA_MEMBER)
#undef FL_CUDA_MEMBER
} fl_cuda_api;

#endif
