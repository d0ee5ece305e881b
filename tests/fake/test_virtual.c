/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory and multicast objects of the fake driver: what is right works as on a device, and
 * every rule that is broken is told. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

#define GRAIN ((size_t)FAKE_VIRTUAL_GRAIN)
#define APART \
    "{\"devices\": [{\"count\": 3}], \"links\": [{\"from\": 0, \"to\": 2, \"peer\": false}]}"

static CUcontext contexts[2];
static CUstream stream; /* of device 0 */

#define must(call) assert_int_equal((call), FL_CUDA_SUCCESS)

/* The call fails, as the driver's reference has it or as the fake does, and its rule is named. */
#define breaks(call, rule)                                       \
    do {                                                         \
        assert_int_not_equal((call), FL_CUDA_SUCCESS);           \
        assert_true(fakecuda_violations() > 0);                  \
        if (strstr(fakecuda_last_violation(), (rule)) == NULL)   \
            fail_msg("'%s' is told", fakecuda_last_violation()); \
        (void)fakecuda_forgive();                                \
    } while (0)

/* It does what was asked, and the rule is named all the same. */
#define breaks_and_does(call, rule)                              \
    do {                                                         \
        must(call);                                              \
        assert_int_equal(fakecuda_violations(), 1);              \
        if (strstr(fakecuda_last_violation(), (rule)) == NULL)   \
            fail_msg("'%s' is told", fakecuda_last_violation()); \
        (void)fakecuda_forgive();                                \
    } while (0)

static int begin(void **state)
{
    (void)state;
    fakecuda_reset();
    assert_true(fakecuda_configure(APART));
    must(cuInit(0));
    for (int d = 0; d < 2; d++)
        must(cuDevicePrimaryCtxRetain(&contexts[d], d));
    must(cuCtxPushCurrent_v2(contexts[0]));
    must(cuStreamCreate(&stream, FL_CU_STREAM_NON_BLOCKING));
    fakecuda_quiet(true);
    return 0;
}

static int end(void **state)
{
    static const char *const kinds[] = {"handle", "multicast", "reservation", "mapping"};
    (void)state;
    must(cuStreamSynchronize(stream));
    must(cuStreamDestroy_v2(stream));
    must(cuCtxPopCurrent_v2(NULL));
    for (int d = 0; d < 2; d++)
        must(cuDevicePrimaryCtxRelease_v2(d));
    for (size_t k = 0; k < 4; k++)
        assert_int_equal(fakecuda_live(kinds[k]), 0);
    assert_int_equal(fakecuda_violations(), 0);
    return 0;
}

static CUmemAllocationProp memory_of(int device)
{
    return (CUmemAllocationProp){
        .type = FL_CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = FL_CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
    };
}

static CUmemGenericAllocationHandle memory(int device, size_t bytes)
{
    const CUmemAllocationProp properties = memory_of(device);
    CUmemGenericAllocationHandle made = 0;
    must(cuMemCreate(&made, bytes, &properties, 0));
    return made;
}

static CUdeviceptr reserve(size_t bytes)
{
    CUdeviceptr address = 0;
    must(cuMemAddressReserve(&address, bytes, 0, 0, 0));
    return address;
}

static CUresult set_access(CUdeviceptr address, size_t bytes, int device, int flags)
{
    const CUmemAccessDesc access = {
        .location = {.type = FL_CU_MEM_LOCATION_TYPE_DEVICE, .id = device}, .flags = flags};
    return cuMemSetAccess(address, bytes, &access, 1);
}

static void allow(CUdeviceptr address, size_t bytes, int device)
{
    must(set_access(address, bytes, device, FL_CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
}

static size_t free_bytes(void)
{
    size_t left = 0, total = 0;
    must(cuMemGetInfo_v2(&left, &total));
    return left;
}

/* --- Virtual memory --- */

/* Two handles behind one another are one range of addresses; memory lives as long as it is mapped.
 */
static void what_is_mapped_is_memory(void **state)
{
    static char in[2 * FAKE_VIRTUAL_GRAIN], out[sizeof in];
    const CUmemAllocationProp properties = memory_of(0);
    CUmemGenericAllocationHandle handles[2];
    size_t before = free_bytes(), grain = 0;
    (void)state;
    must(cuMemGetAllocationGranularity(&grain, &properties, FL_CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    assert_int_equal(grain, GRAIN);
    CUdeviceptr address = reserve(2 * GRAIN);
    assert_int_equal(address % GRAIN, 0);
    for (int k = 0; k < 2; k++) {
        handles[k] = memory(0, GRAIN);
        must(cuMemMap(address + (size_t)k * GRAIN, GRAIN, 0, handles[k], 0));
        must(cuMemRelease(handles[k]));
    }
    assert_int_equal(before - free_bytes(), 2 * GRAIN);
    assert_int_equal(fakecuda_live("handle"), 0);
    assert_int_equal(fakecuda_live("mapping"), 2);
    allow(address, 2 * GRAIN, 0);
    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (char)(i * 7);
    must(cuMemcpyHtoDAsync_v2(address, in, sizeof in, stream));
    must(cuMemcpyDtoHAsync_v2(out, address, sizeof out, stream));
    must(cuStreamSynchronize(stream));
    assert_memory_equal(in, out, sizeof in);
    breaks(cuMemcpyHtoDAsync_v2(address + 1, in, sizeof in, stream), "outside");
    must(cuMemUnmap(address, 2 * GRAIN));
    assert_int_equal(before, free_bytes());
    breaks(cuMemcpyHtoDAsync_v2(address, in, 8, stream), "no device memory");
    must(cuMemAddressFree(address, 2 * GRAIN));
}

/* Of another device, by those that were allowed, and that can. */
static void access_is_asked_for(void **state)
{
    uint64_t cell = 0;
    CUmemGenericAllocationHandle there = memory(1, GRAIN), far = memory(2, GRAIN);
    CUdeviceptr address = reserve(2 * GRAIN);
    (void)state;
    must(cuMemMap(address, GRAIN, 0, there, 0));
    must(cuMemMap(address + GRAIN, GRAIN, 0, far, 0));
    breaks(cuMemcpyDtoHAsync_v2(&cell, address, 8, stream), "cannot reach");
    allow(address, GRAIN, 0);
    must(cuMemcpyDtoHAsync_v2(&cell, address, 8, stream));
    must(set_access(address, GRAIN, 0, FL_CU_MEM_ACCESS_FLAGS_PROT_NONE));
    breaks(cuMemcpyDtoHAsync_v2(&cell, address, 8, stream), "cannot reach");
    assert_int_equal(set_access(address + GRAIN, GRAIN, 0, FL_CU_MEM_ACCESS_FLAGS_PROT_READWRITE),
                     FL_CUDA_ERROR_INVALID_DEVICE);
    breaks(set_access(address, GRAIN / 2, 0, 3), "a part of it");
    must(cuMemUnmap(address, 2 * GRAIN));
    breaks(set_access(address, GRAIN, 0, 3), "not mapped");
    must(cuMemAddressFree(address, 2 * GRAIN));
    must(cuMemRelease(there));
    must(cuMemRelease(far));
}

static void mappings_keep_to_the_rules(void **state)
{
    const CUmemAllocationProp properties = memory_of(0);
    CUmemGenericAllocationHandle made = memory(0, 2 * GRAIN), none = 0;
    CUdeviceptr address = reserve(2 * GRAIN), other = 0;
    (void)state;
    breaks(cuMemCreate(&none, GRAIN + 1, &properties, 0), "multiple");
    breaks(cuMemAddressReserve(&other, GRAIN + 1, 0, 0, 0), "multiple");
    breaks(cuMemMap(address, GRAIN, 0, 12345, 0), "no handle");
    breaks(cuMemMap(address, 3 * GRAIN, 0, made, 0), "reservation");
    breaks(cuMemMap(address + 4096, GRAIN, 0, made, 0), "multiples");
    breaks(cuMemMap(address, GRAIN, 4096, made, 0), "multiples");
    breaks(cuMemMap(address, 2 * GRAIN, GRAIN, made, 0), "exceeds");
    must(cuMemMap(address, 2 * GRAIN, 0, made, 0));
    breaks(cuMemMap(address + GRAIN, GRAIN, 0, made, 0), "mapped there");
    breaks(cuMemUnmap(address, GRAIN), "not what was mapped");
    breaks(cuMemAddressFree(address, 2 * GRAIN), "is mapped in");
    breaks(cuMemAddressFree(address, GRAIN), "no reservation");
    breaks(cuMemFree_v2(address), "no block");
    allow(address, 2 * GRAIN, 0);
    fakecuda_hold();
    must(cuMemsetD8Async(address, 0, 8, stream));
    breaks_and_does(cuMemUnmap(address, 2 * GRAIN), "queued");
    must(cuMemMap(address, 2 * GRAIN, 0, made, 0)); /* so that the fill finds what it fills */
    allow(address, 2 * GRAIN, 0);
    fakecuda_release();
    must(cuStreamSynchronize(stream));
    must(cuMemUnmap(address, 2 * GRAIN));
    must(cuMemRelease(made));
    breaks(cuMemRelease(made), "released");
    must(cuMemAddressFree(address, 2 * GRAIN));
    assert_int_equal(cuMemCreate(&none, (size_t)1 << 40, &properties, 0),
                     FL_CUDA_ERROR_OUT_OF_MEMORY);
}

/* --- Multicast objects --- */

static CUmemGenericAllocationHandle object(unsigned devices, size_t bytes)
{
    const CUmulticastObjectProp properties = {.numDevices = devices, .size = bytes};
    CUmemGenericAllocationHandle made = 0;
    must(cuMulticastCreate(&made, &properties));
    return made;
}

static void teams_are_whole_first(void **state)
{
    CUmulticastObjectProp properties = {.numDevices = 2, .size = GRAIN + 1};
    CUmemGenericAllocationHandle none = 0, mine = memory(0, GRAIN), team = object(2, GRAIN);
    CUdeviceptr address = reserve(GRAIN);
    (void)state;
    breaks(cuMulticastCreate(&none, &properties), "multiple");
    must(cuMulticastAddDevice(team, 0));
    breaks(cuMulticastBindMem(team, 0, mine, 0, GRAIN, 0), "would block");
    breaks(cuMemMap(address, GRAIN, 0, team, 0), "would block");
    breaks(cuMulticastAddDevice(team, 0), "twice");
    must(cuMulticastAddDevice(team, 1));
    breaks(cuMulticastAddDevice(team, 2), "whole");
    breaks(cuMulticastAddDevice(mine, 2), "each other");
    must(cuMemMap(address, GRAIN, 0, team, 0));
    breaks(cuMemsetD8Async(address, 0, 8, stream), "multimem");
    breaks_and_does(cuMemRelease(team), "is mapped");
    must(cuMemUnmap(address, GRAIN));
    must(cuMemAddressFree(address, GRAIN));
    must(cuMemRelease(mine));
}

static void bindings_are_exact(void **state)
{
    CUmemGenericAllocationHandle mine = memory(0, 2 * GRAIN), theirs = memory(2, GRAIN);
    CUmemGenericAllocationHandle team = object(2, 2 * GRAIN);
    CUdeviceptr plain, address = reserve(2 * GRAIN);
    (void)state;
    must(cuMulticastAddDevice(team, 0));
    must(cuMulticastAddDevice(team, 1));
    breaks(cuMulticastBindMem(team, 4096, mine, 0, GRAIN, 0), "multiples");
    breaks(cuMulticastBindMem(team, GRAIN, mine, 0, 2 * GRAIN, 0), "outside");
    breaks(cuMulticastBindMem(team, 0, mine, GRAIN, 2 * GRAIN, 0), "outside");
    breaks(cuMulticastBindMem(team, 0, theirs, 0, GRAIN, 0), "no member");
    must(cuMulticastBindMem(team, 0, mine, 0, GRAIN, 0));
    breaks(cuMulticastBindMem(team, 0, mine, GRAIN, GRAIN, 0), "already");
    must(cuMemMap(address, 2 * GRAIN, 0, mine, 0));
    must(cuMulticastBindAddr(team, GRAIN, address + GRAIN, GRAIN, 0));
    must(cuMemAlloc_v2(&plain, GRAIN));
    assert_int_equal(cuMulticastBindAddr(team, GRAIN, plain, GRAIN, 0),
                     FL_CUDA_ERROR_INVALID_VALUE); /* the driver says so; no rule is broken */
    must(cuMemFree_v2(plain));
    breaks(cuMulticastUnbind(team, 0, 0, 2 * GRAIN), "exactly so");
    breaks(cuMulticastUnbind(team, 1, 0, GRAIN), "exactly so");
    must(cuMulticastUnbind(team, 0, 0, GRAIN));
    breaks(cuMulticastUnbind(team, 0, 0, GRAIN), "exactly so");
    breaks_and_does(cuMemRelease(mine), "is bound");
    breaks_and_does(cuMemRelease(team), "bindings are left");
    must(cuMemUnmap(address, 2 * GRAIN));
    must(cuMemAddressFree(address, 2 * GRAIN));
    must(cuMemRelease(theirs));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_mapped_is_memory, begin, end),
        cmocka_unit_test_setup_teardown(access_is_asked_for, begin, end),
        cmocka_unit_test_setup_teardown(mappings_keep_to_the_rules, begin, end),
        cmocka_unit_test_setup_teardown(teams_are_whole_first, begin, end),
        cmocka_unit_test_setup_teardown(bindings_are_exact, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
