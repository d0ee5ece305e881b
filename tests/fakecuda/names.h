/* SPDX-License-Identifier: Apache-2.0 */
/* The entry points of the fake driver, and the names under which they are exported: those of
 * cuda.h, whose newer prototypes have a suffix. */
#ifndef FAKECUDA_NAMES_H
#define FAKECUDA_NAMES_H

/* Beside those that filch calls: what tests call in the place of a program that uses filch. */
#define FAKE_CALLS(X)                                                    \
    FL_CUDA_CALLS(X)                                                     \
    X(cuDevicePrimaryCtxGetState, "cuDevicePrimaryCtxGetState", 7000, 0, \
      (CUdevice device, unsigned int *flags, int *active))               \
    X(cuCtxSynchronize, "cuCtxSynchronize", 2000, 0, (void))             \
    X(cuCtxGetFlags, "cuCtxGetFlags", 7000, 0, (unsigned int *flags))    \
    X(cuStreamQuery, "cuStreamQuery", 2000, 0, (CUstream stream))

#define FAKE_NAME_cuInit cuInit
#define FAKE_NAME_cuDriverGetVersion cuDriverGetVersion
#define FAKE_NAME_cuGetErrorName cuGetErrorName
#define FAKE_NAME_cuGetErrorString cuGetErrorString
#define FAKE_NAME_cuDeviceGetCount cuDeviceGetCount
#define FAKE_NAME_cuDeviceGet cuDeviceGet
#define FAKE_NAME_cuDeviceGetName cuDeviceGetName
#define FAKE_NAME_cuDeviceGetUuid cuDeviceGetUuid_v2
#define FAKE_NAME_cuDeviceGetAttribute cuDeviceGetAttribute
#define FAKE_NAME_cuDeviceTotalMem cuDeviceTotalMem_v2
#define FAKE_NAME_cuDeviceGetPCIBusId cuDeviceGetPCIBusId
#define FAKE_NAME_cuDeviceCanAccessPeer cuDeviceCanAccessPeer
#define FAKE_NAME_cuDeviceGetP2PAttribute cuDeviceGetP2PAttribute
#define FAKE_NAME_cuDevicePrimaryCtxRetain cuDevicePrimaryCtxRetain
#define FAKE_NAME_cuDevicePrimaryCtxRelease cuDevicePrimaryCtxRelease_v2
#define FAKE_NAME_cuDevicePrimaryCtxGetState cuDevicePrimaryCtxGetState
#define FAKE_NAME_cuCtxCreate cuCtxCreate_v2
#define FAKE_NAME_cuCtxDestroy cuCtxDestroy_v2
#define FAKE_NAME_cuCtxPushCurrent cuCtxPushCurrent_v2
#define FAKE_NAME_cuCtxPopCurrent cuCtxPopCurrent_v2
#define FAKE_NAME_cuCtxGetCurrent cuCtxGetCurrent
#define FAKE_NAME_cuCtxSetCurrent cuCtxSetCurrent
#define FAKE_NAME_cuCtxSynchronize cuCtxSynchronize
#define FAKE_NAME_cuCtxGetFlags cuCtxGetFlags
#define FAKE_NAME_cuCtxEnablePeerAccess cuCtxEnablePeerAccess
#define FAKE_NAME_cuCtxDisablePeerAccess cuCtxDisablePeerAccess
#define FAKE_NAME_cuMemGetInfo cuMemGetInfo_v2
#define FAKE_NAME_cuMemAlloc cuMemAlloc_v2
#define FAKE_NAME_cuMemFree cuMemFree_v2
#define FAKE_NAME_cuMemHostAlloc cuMemHostAlloc
#define FAKE_NAME_cuMemFreeHost cuMemFreeHost
#define FAKE_NAME_cuMemHostRegister cuMemHostRegister_v2
#define FAKE_NAME_cuMemHostUnregister cuMemHostUnregister
#define FAKE_NAME_cuPointerGetAttribute cuPointerGetAttribute
#define FAKE_NAME_cuMemGetAllocationGranularity cuMemGetAllocationGranularity
#define FAKE_NAME_cuMemCreate cuMemCreate
#define FAKE_NAME_cuMemRelease cuMemRelease
#define FAKE_NAME_cuMemAddressReserve cuMemAddressReserve
#define FAKE_NAME_cuMemAddressFree cuMemAddressFree
#define FAKE_NAME_cuMemMap cuMemMap
#define FAKE_NAME_cuMemUnmap cuMemUnmap
#define FAKE_NAME_cuMemSetAccess cuMemSetAccess
#define FAKE_NAME_cuMemPoolCreate cuMemPoolCreate
#define FAKE_NAME_cuMemPoolDestroy cuMemPoolDestroy
#define FAKE_NAME_cuMemPoolSetAttribute cuMemPoolSetAttribute
#define FAKE_NAME_cuMemPoolSetAccess cuMemPoolSetAccess
#define FAKE_NAME_cuMemPoolTrimTo cuMemPoolTrimTo
#define FAKE_NAME_cuMemAllocFromPoolAsync cuMemAllocFromPoolAsync
#define FAKE_NAME_cuMemFreeAsync cuMemFreeAsync
#define FAKE_NAME_cuMulticastGetGranularity cuMulticastGetGranularity
#define FAKE_NAME_cuMulticastCreate cuMulticastCreate
#define FAKE_NAME_cuMulticastAddDevice cuMulticastAddDevice
#define FAKE_NAME_cuMulticastBindMem cuMulticastBindMem
#define FAKE_NAME_cuMulticastBindAddr cuMulticastBindAddr
#define FAKE_NAME_cuMulticastUnbind cuMulticastUnbind
#define FAKE_NAME_cuMemcpyHtoDAsync cuMemcpyHtoDAsync_v2
#define FAKE_NAME_cuMemcpyDtoHAsync cuMemcpyDtoHAsync_v2
#define FAKE_NAME_cuMemcpyDtoDAsync cuMemcpyDtoDAsync_v2
#define FAKE_NAME_cuMemcpyPeerAsync cuMemcpyPeerAsync
#define FAKE_NAME_cuMemcpy2DAsync cuMemcpy2DAsync_v2
#define FAKE_NAME_cuMemsetD8Async cuMemsetD8Async
#define FAKE_NAME_cuStreamCreate cuStreamCreate
#define FAKE_NAME_cuStreamDestroy cuStreamDestroy_v2
#define FAKE_NAME_cuStreamQuery cuStreamQuery
#define FAKE_NAME_cuStreamSynchronize cuStreamSynchronize
#define FAKE_NAME_cuStreamWaitEvent cuStreamWaitEvent
#define FAKE_NAME_cuEventCreate cuEventCreate
#define FAKE_NAME_cuEventDestroy cuEventDestroy_v2
#define FAKE_NAME_cuEventRecord cuEventRecord
#define FAKE_NAME_cuEventQuery cuEventQuery
#define FAKE_NAME_cuEventSynchronize cuEventSynchronize
#define FAKE_NAME_cuEventElapsedTime cuEventElapsedTime
#define FAKE_NAME_cuModuleLoadDataEx cuModuleLoadDataEx
#define FAKE_NAME_cuModuleUnload cuModuleUnload
#define FAKE_NAME_cuModuleGetFunction cuModuleGetFunction
#define FAKE_NAME_cuFuncGetAttribute cuFuncGetAttribute
#define FAKE_NAME_cuFuncSetAttribute cuFuncSetAttribute
#define FAKE_NAME_cuFuncGetParamInfo cuFuncGetParamInfo
#define FAKE_NAME_cuLaunchKernel cuLaunchKernel
#define FAKE_NAME_cuLaunchKernelEx cuLaunchKernelEx
#define FAKE_NAME_cuGraphCreate cuGraphCreate
#define FAKE_NAME_cuGraphAddKernelNode cuGraphAddKernelNode_v2
#define FAKE_NAME_cuGraphAddDependencies cuGraphAddDependencies_v2
#define FAKE_NAME_cuGraphInstantiateWithFlags cuGraphInstantiateWithFlags
#define FAKE_NAME_cuGraphExecKernelNodeSetParams cuGraphExecKernelNodeSetParams_v2
#define FAKE_NAME_cuGraphLaunch cuGraphLaunch
#define FAKE_NAME_cuGraphDestroy cuGraphDestroy
#define FAKE_NAME_cuGraphExecDestroy cuGraphExecDestroy
#define FAKE_NAME_cuDeviceGetDevResource cuDeviceGetDevResource
#define FAKE_NAME_cuDevSmResourceSplitByCount cuDevSmResourceSplitByCount
#define FAKE_NAME_cuDevResourceGenerateDesc cuDevResourceGenerateDesc
#define FAKE_NAME_cuGreenCtxCreate cuGreenCtxCreate
#define FAKE_NAME_cuGreenCtxDestroy cuGreenCtxDestroy
#define FAKE_NAME_cuGreenCtxStreamCreate cuGreenCtxStreamCreate

#define FAKE_NAME(member) FAKE_NAME_##member

#endif
