/* SPDX-License-Identifier: Apache-2.0 */
/* The fake driver has every entry point that the library calls, and is what it is configured to be.
 * Where it answers a mistake, it answers what driver 580 answered on an H200. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

static fl_cuda_get_proc_fn get_proc;

static void must(CUresult result)
{
    assert_int_equal(result, FL_CUDA_SUCCESS);
}

static void configure(const char *text)
{
    assert_true(fakecuda_configure(text));
}

static int quiet(void **state)
{
    (void)state;
    (void)unsetenv("CUDA_VISIBLE_DEVICES");
    fakecuda_reset();
    configure(NULL);
    assert_int_equal(fakecuda_violations(), 0);
    return 0;
}

/* --- Entry points --- */

typedef struct entry {
    const char *symbol, *exported;
    int version, since;
} entry;

#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)

static const entry entries[] = {
#define ENTRY(member, symbol, version, since, parameters) \
    {symbol, TEXT(FAKE_NAME(member)), version, since},
    FAKE_CALLS(ENTRY)
#undef ENTRY
};

static const size_t entry_count = sizeof entries / sizeof entries[0];

static void every_entry_is_there(void **state)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

    (void)state;
    assert_non_null(library);
    for (size_t i = 0; i < entry_count; i++) {
        void *found = NULL;
        int how = -1;
        must(get_proc(entries[i].symbol, &found, entries[i].version, 0, &how));
        if (found == NULL || how != FL_CU_GET_PROC_ADDRESS_SUCCESS)
            fail_msg("%s at %d is missing", entries[i].symbol, entries[i].version);
        if (dlsym(library, entries[i].exported) != found)
            fail_msg("%s is not exported", entries[i].exported);
    }
    (void)dlclose(library);
}

static void versions_are_honoured(void **state)
{
    void *found = &found;
    int how = -1;

    (void)state;
    assert_int_equal(get_proc("cuInit", &found, 13010, 0, &how), FL_CUDA_ERROR_INVALID_VALUE);
    assert_ptr_equal(found, &found);
    must(get_proc("cuNoSuchThing", &found, 12000, 0, &how));
    assert_null(found);
    assert_int_equal(how, FL_CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    must(get_proc("cuFuncGetParamInfo", &found, 12000, 0, &how));
    assert_null(found);
    assert_int_equal(how, FL_CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    /* A later prototype of the same name is not what the library was written against. */
    fakecuda_quiet(true);
    must(get_proc("cuCtxCreate", &found, 12000, 0, &how));
    assert_null(found);
    assert_int_equal(fakecuda_forgive(), 1);
    fakecuda_quiet(false);
}

static void drivers_lack_what_came_later(void **state)
{
    void *found;

    (void)state;
    configure("{\"driver\": 12040, \"missing\": [\"cuGraphLaunch\"]}");
    for (size_t i = 0; i < entry_count; i++) {
        bool is_there =
            entries[i].since <= 12040 && strcmp(entries[i].symbol, "cuGraphLaunch") != 0;
        found = NULL;
        CUresult result = get_proc(entries[i].symbol, &found, entries[i].version, 0, NULL);
        assert_int_equal(result == FL_CUDA_SUCCESS && found != NULL, is_there);
    }
    int version;
    must(cuDriverGetVersion(&version));
    assert_int_equal(version, 12040);
}

static void stubs_say_so(void **state)
{
    (void)state;
    configure("{\"stub\": true}");
    assert_int_equal(cuInit(0), FL_CUDA_ERROR_STUB_LIBRARY);
    configure("{\"failures\": [{\"call\": \"cuInit\", \"result\": 802}]}");
    assert_int_equal(cuInit(0), FL_CUDA_ERROR_SYSTEM_NOT_READY);
    must(cuInit(0));
    configure("{\"devices\": []}");
    assert_int_equal(cuInit(0), FL_CUDA_ERROR_NO_DEVICE);
}

static void bad_configurations_are_refused(void **state)
{
    static const char *const texts[] = {
        "{",
        "[]",
        "{\"drivers\": 1}",
        "{\"driver\": \"1\"}",
        "{\"devices\": [{\"arch\": \"nine\"}]}",
        "{\"devices\": [{\"sms\": 0}]}",
        "{\"links\": [{\"from\": 0, \"to\": 0}]}",
        "no-such-file",
    };

    (void)state;
    fakecuda_quiet(true);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_false(fakecuda_configure(texts[i]));
        assert_int_equal(cuInit(0), FL_CUDA_ERROR_UNKNOWN);
        assert_int_equal(fakecuda_forgive(), 1);
    }
    fakecuda_quiet(false);
}

/* --- Devices --- */

static int attribute(CUdevice device, CUdevice_attribute which)
{
    int value = -1;

    must(cuDeviceGetAttribute(&value, which, device));
    return value;
}

static void devices_are_as_configured(void **state)
{
    char text[64];
    size_t bytes;
    CUuuid uuids[2];
    int count, value;

    (void)state;
    configure("{\"devices\": [{\"name\": \"A\", \"sms\": 40, \"memory\": 4096, \"arch\": \"7.5\","
              "\"pci\": \"0001:02:03.0\", \"numa\": 1, \"attributes\": {\"38\": 77}},"
              "{\"name\": \"B\", \"mig\": true, \"integrated\": true, \"clock\": 5, \"count\": 2}],"
              "\"links\": [{\"from\": 0, \"to\": 1, \"rank\": 3},"
              "{\"from\": 1, \"to\": 2, \"peer\": false}]}");
    must(cuInit(0));
    must(cuDeviceGetCount(&count));
    assert_int_equal(count, 3);
    must(cuDeviceGetName(text, sizeof text, 0));
    assert_string_equal(text, "A");
    must(cuDeviceGetName(text, sizeof text, 1));
    assert_string_equal(text, "B MIG 1g.18gb");
    must(cuDeviceTotalMem_v2(&bytes, 0));
    assert_int_equal(bytes, 4096);
    must(cuDeviceGetPCIBusId(text, sizeof text, 0));
    assert_string_equal(text, "0001:02:03.0");
    assert_int_equal(cuDeviceGetPCIBusId(text, 5, 0), FL_CUDA_ERROR_INVALID_VALUE);
    must(cuDeviceGetUuid_v2(&uuids[0], 1));
    must(cuDeviceGetUuid_v2(&uuids[1], 2));
    assert_memory_not_equal(&uuids[0], &uuids[1], sizeof uuids[0]);
    assert_int_equal(attribute(0, FL_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), 40);
    assert_int_equal(attribute(0, FL_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), 7);
    assert_int_equal(attribute(0, FL_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR), 5);
    assert_int_equal(attribute(0, FL_CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID), 1);
    assert_int_equal(attribute(0, FL_CU_DEVICE_ATTRIBUTE_PCI_BUS_ID), 2);
    assert_int_equal(attribute(0, FL_CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE), 77);
    assert_int_equal(attribute(1, FL_CU_DEVICE_ATTRIBUTE_INTEGRATED), 1);
    assert_int_equal(attribute(1, FL_CU_DEVICE_ATTRIBUTE_CLOCK_RATE), 5);
    assert_int_equal(cuDeviceGetAttribute(&value, 9999, 0), FL_CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuDeviceGet(&value, 3), FL_CUDA_ERROR_INVALID_DEVICE);
    must(cuDeviceCanAccessPeer(&value, 1, 2));
    assert_int_equal(value, 0);
    must(cuDeviceCanAccessPeer(&value, 1, 0));
    assert_int_equal(value, 1);
    must(cuDeviceGetP2PAttribute(&value, FL_CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, 1, 0));
    assert_int_equal(value, 3);
    assert_int_equal(
        cuDeviceGetP2PAttribute(&value, FL_CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0),
        FL_CUDA_ERROR_INVALID_DEVICE);
}

static void every_attribute_has_a_value(void **state)
{
    (void)state;
    must(cuInit(0));
#define ATTRIBUTE(name, value)                             \
    if (strncmp(#name, "CU_DEVICE_ATTRIBUTE_", 20) == 0) { \
        int got;                                           \
        must(cuDeviceGetAttribute(&got, value, 0));        \
    }
    FL_CUDA_CONSTANTS(ATTRIBUTE)
#undef ATTRIBUTE
}

/* Names of the devices visible under a value of CUDA_VISIBLE_DEVICES. */
static void visible(const char *list, const char *wanted)
{
    char names[64] = "", name[16];
    int count = 0;

    (void)setenv("CUDA_VISIBLE_DEVICES", list, 1);
    configure("{\"devices\": [{\"name\": \"a\"}, {\"name\": \"b\"}, {\"name\": \"c\"}]}");
    CUresult result = cuInit(0);
    assert_int_equal(result, wanted[0] == '\0' ? FL_CUDA_ERROR_NO_DEVICE : FL_CUDA_SUCCESS);
    if (result == FL_CUDA_SUCCESS)
        must(cuDeviceGetCount(&count));
    for (int i = 0; i < count; i++) {
        must(cuDeviceGetName(name, sizeof name, i));
        (void)strncat(names, name, sizeof names - strlen(names) - 1);
    }
    assert_string_equal(names, wanted);
}

static void hidden_devices_are_not_there(void **state)
{
    CUuuid uuid;
    char text[64];

    (void)state;
    visible("2,0", "ca");
    visible("1", "b");
    visible("0,7,1", "a");
    visible("", "");
    visible("-1", "");
    visible("none", "");
    visible("1,1", "");
    (void)unsetenv("CUDA_VISIBLE_DEVICES");
    configure(NULL);
    must(cuInit(0));
    must(cuDeviceGetUuid_v2(&uuid, 1));
    (void)snprintf(text, sizeof text, "GPU-%02x%02x%02x%02x", (unsigned char)uuid.bytes[0],
                   (unsigned char)uuid.bytes[1], (unsigned char)uuid.bytes[2],
                   (unsigned char)uuid.bytes[3]);
    visible(text, "b");
}

/* --- Memory --- */

static void memory_ends_where_configured(void **state)
{
    CUcontext context;
    CUdeviceptr blocks[2];
    size_t bytes, total;
    double *seen;

    (void)state;
    configure("{\"devices\": [{\"memory\": 1048576}]}");
    must(cuInit(0));
    must(cuDevicePrimaryCtxRetain(&context, 0));
    must(cuCtxSetCurrent(context));
    must(cuMemAlloc_v2(&blocks[0], 1 << 19));
    must(cuMemGetInfo_v2(&bytes, &total));
    assert_int_equal(bytes, 1 << 19);
    assert_int_equal(total, 1 << 20);
    assert_int_equal(cuMemAlloc_v2(&blocks[1], (1 << 19) + 1), FL_CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(cuMemAlloc_v2(&blocks[1], 0), FL_CUDA_ERROR_INVALID_VALUE);
    must(cuMemAlloc_v2(&blocks[1], 1 << 19));
    seen = fakecuda_peek((void *)(uintptr_t)blocks[1], sizeof *seen);
    assert_true(*seen != *seen); /* fresh memory is NaN */
    must(cuMemFree_v2(blocks[0]));
    must(cuMemFree_v2(blocks[1]));
    must(cuMemGetInfo_v2(&bytes, &total));
    assert_int_equal(bytes, total);
    must(cuCtxSetCurrent(NULL));
    must(cuDevicePrimaryCtxRelease_v2(0));
}

static void pointers_tell_whose_they_are(void **state)
{
    CUcontext contexts[2], context;
    CUdeviceptr block, start;
    void *pinned;
    unsigned type;
    size_t bytes;
    int ordinal;

    (void)state;
    must(cuInit(0));
    must(cuDevicePrimaryCtxRetain(&contexts[0], 0));
    must(cuDevicePrimaryCtxRetain(&contexts[1], 1));
    must(cuCtxSetCurrent(contexts[1]));
    must(cuMemAlloc_v2(&block, 1000));
    must(cuMemHostAlloc(&pinned, 64, 0));
    must(cuCtxSetCurrent(contexts[0])); /* from any context */
    must(cuPointerGetAttribute(&type, FL_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block + 999));
    assert_int_equal(type, FL_CU_MEMORYTYPE_DEVICE);
    must(cuPointerGetAttribute(&ordinal, FL_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, block + 999));
    assert_int_equal(ordinal, 1);
    must(cuPointerGetAttribute(&context, FL_CU_POINTER_ATTRIBUTE_CONTEXT, block + 999));
    assert_ptr_equal(context, contexts[1]);
    must(cuPointerGetAttribute(&start, FL_CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, block + 999));
    assert_int_equal(start, block);
    must(cuPointerGetAttribute(&bytes, FL_CU_POINTER_ATTRIBUTE_RANGE_SIZE, block + 999));
    assert_int_equal(bytes, 1000);
    must(cuPointerGetAttribute(&type, FL_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)pinned));
    assert_int_equal(type, FL_CU_MEMORYTYPE_HOST);
    assert_int_equal(
        cuPointerGetAttribute(&type, FL_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block + 1000),
        FL_CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(
        cuPointerGetAttribute(&type, FL_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)&type),
        FL_CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuPointerGetAttribute(NULL, FL_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block),
                     FL_CUDA_ERROR_INVALID_VALUE);
    must(cuCtxSetCurrent(contexts[1]));
    must(cuMemFreeHost(pinned));
    must(cuMemFree_v2(block));
    assert_int_equal(cuPointerGetAttribute(&type, FL_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block),
                     FL_CUDA_ERROR_INVALID_VALUE);
    must(cuCtxSetCurrent(NULL));
    must(cuDevicePrimaryCtxRelease_v2(0));
    must(cuDevicePrimaryCtxRelease_v2(1));
}

static void host_memory_is_registered_once(void **state)
{
    CUcontext context;
    void *pinned;
    int here;

    (void)state;
    must(cuInit(0));
    must(cuDevicePrimaryCtxRetain(&context, 1));
    must(cuCtxSetCurrent(context));
    must(cuMemHostAlloc(&pinned, 64, FL_CU_MEMHOSTALLOC_PORTABLE));
    must(cuMemHostRegister_v2(&here, sizeof here, 0));
    assert_int_equal(cuMemHostRegister_v2(&here, 1, 0),
                     FL_CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    must(cuMemHostUnregister(&here));
    must(cuMemFreeHost(pinned));
    must(cuCtxSetCurrent(NULL));
    must(cuDevicePrimaryCtxRelease_v2(1));
}

/* --- Contexts --- */

static void primary_contexts_are_counted(void **state)
{
    CUcontext first, second, current;
    unsigned flags;
    int active;

    (void)state;
    must(cuInit(0));
    must(cuDevicePrimaryCtxGetState(0, &flags, &active));
    assert_int_equal(active, 0);
    must(cuDevicePrimaryCtxRetain(&first, 0));
    must(cuDevicePrimaryCtxRetain(&second, 0));
    assert_ptr_equal(first, second);
    must(cuCtxPushCurrent_v2(first));
    must(cuCtxGetCurrent(&current));
    assert_ptr_equal(current, first);
    must(cuCtxPopCurrent_v2(&current));
    assert_ptr_equal(current, first);
    must(cuCtxGetCurrent(&current));
    assert_null(current);
    must(cuDevicePrimaryCtxRelease_v2(0));
    must(cuDevicePrimaryCtxGetState(0, &flags, &active));
    assert_int_equal(active, 1);
    must(cuDevicePrimaryCtxRelease_v2(0));
    assert_int_equal(fakecuda_live("context"), 0);
}

static void private_contexts_have_flags(void **state)
{
    CUcontext context, current;
    unsigned flags;

    (void)state;
    must(cuInit(0));
    must(cuCtxCreate_v2(&context, FL_CU_CTX_SCHED_YIELD, 1));
    must(cuCtxGetFlags(&flags));
    assert_int_equal(flags, FL_CU_CTX_SCHED_YIELD);
    must(cuCtxDestroy_v2(context));
    must(cuCtxGetCurrent(&current));
    assert_null(current);
}

static void peers_are_enabled_once(void **state)
{
    CUcontext contexts[3];

    (void)state;
    configure("{\"devices\": [{\"count\": 3}],"
              "\"links\": [{\"from\": 0, \"to\": 2, \"peer\": false}]}");
    must(cuInit(0));
    for (int i = 0; i < 3; i++)
        must(cuDevicePrimaryCtxRetain(&contexts[i], i));
    must(cuCtxSetCurrent(contexts[0]));
    must(cuCtxEnablePeerAccess(contexts[1], 0));
    assert_int_equal(cuCtxEnablePeerAccess(contexts[1], 0),
                     FL_CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    assert_int_equal(cuCtxEnablePeerAccess(contexts[2], 0), FL_CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    assert_int_equal(cuCtxEnablePeerAccess(contexts[0], 0), FL_CUDA_ERROR_INVALID_DEVICE);
    must(cuCtxSetCurrent(NULL));
    for (int i = 0; i < 3; i++)
        must(cuDevicePrimaryCtxRelease_v2(i));
}

static void prohibited_devices_have_no_context(void **state)
{
    CUcontext context;

    (void)state;
    configure("{\"devices\": [{\"compute_mode\": 2}]}");
    must(cuInit(0));
    assert_int_equal(cuDevicePrimaryCtxRetain(&context, 0), FL_CUDA_ERROR_DEVICE_UNAVAILABLE);
}

/* --- Slices --- */

static void multiprocessors_are_split_as_on_an_h200(void **state)
{
    static const struct {
        unsigned least, flags, count, size, rest;
    } cases[] = {{0, 0, 15, 8, 12}, {4, 0, 15, 8, 12},  {8, 0, 15, 8, 12},  {12, 0, 8, 16, 4},
                 {16, 0, 8, 16, 4}, {20, 0, 5, 24, 12}, {24, 0, 5, 24, 12}, {28, 0, 4, 32, 4},
                 {32, 0, 4, 32, 4}, {2, 1, 64, 2, 4}};
    CUdevResource all, groups[64], rest;

    (void)state;
    must(cuInit(0));
    must(cuDeviceGetDevResource(0, &all, FL_CU_DEV_RESOURCE_TYPE_SM));
    assert_int_equal(all.sm.smCount, 132);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        unsigned count = 64;
        must(cuDevSmResourceSplitByCount(groups, &count, &all, &rest, cases[i].flags,
                                         cases[i].least));
        assert_int_equal(count, cases[i].count);
        assert_int_equal(groups[0].sm.smCount, cases[i].size);
        assert_int_equal(rest.sm.smCount, cases[i].rest);
    }
}

static int slice_twin(void **params, const fakecuda_geometry *geometry)
{
    **(uint32_t **)params[0] = geometry->multiprocessors;
    return 0;
}

static void slices_run_on_their_multiprocessors(void **state)
{
    static const unsigned parts[] = {11, 3, 1};
    static const size_t pointer = sizeof(void *);
    CUdevResource all, groups[64];
    CUcontext context;
    CUmodule module;
    CUfunction function;
    unsigned count = 15, first = 0;

    (void)state;
    fakecuda_register("slice", slice_twin, 1, &pointer);
    must(cuInit(0));
    must(cuDevicePrimaryCtxRetain(&context, 0));
    must(cuCtxSetCurrent(context));
    must(cuModuleLoadDataEx(&module, "FAKECUBIN arch=90 entry=slice", 0, NULL, NULL));
    must(cuModuleGetFunction(&function, module, "slice"));
    must(cuDeviceGetDevResource(0, &all, FL_CU_DEV_RESOURCE_TYPE_SM));
    must(cuDevSmResourceSplitByCount(groups, &count, &all, NULL, 0, 8));
    CUgreenCtx greens[3];
    CUstream streams[3];
    for (int i = 0; i < 3; i++) {
        CUdevResourceDesc desc;
        uint32_t seen = 0, *at = &seen;
        void *params[] = {&at};
        must(cuDevResourceGenerateDesc(&desc, groups + first, parts[i]));
        must(cuGreenCtxCreate(&greens[i], desc, 0, FL_CU_GREEN_CTX_DEFAULT_STREAM));
        must(cuGreenCtxStreamCreate(&streams[i], greens[i], FL_CU_STREAM_NON_BLOCKING, 0));
        must(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, streams[i], params, NULL));
        must(cuStreamSynchronize(streams[i]));
        assert_int_equal(seen, 8 * parts[i]);
        first += parts[i];
    }
    for (int i = 0; i < 3; i++) {
        must(cuStreamDestroy_v2(streams[i]));
        must(cuGreenCtxDestroy(greens[i]));
    }
    must(cuModuleUnload(module));
    must(cuCtxSetCurrent(NULL));
    must(cuDevicePrimaryCtxRelease_v2(0));
}

static void results_have_names(void **state)
{
    const char *text;

    (void)state;
    must(cuGetErrorName(FL_CUDA_ERROR_OUT_OF_MEMORY, &text));
    assert_string_equal(text, "CUDA_ERROR_OUT_OF_MEMORY");
    must(cuGetErrorString(FL_CUDA_ERROR_OUT_OF_MEMORY, &text));
    assert_string_equal(text, "out of memory");
    assert_int_equal(cuGetErrorName(12345, &text), FL_CUDA_ERROR_INVALID_VALUE);
    assert_null(text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, quiet, quiet)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_entry_is_there),
        TEST(versions_are_honoured),
        TEST(drivers_lack_what_came_later),
        TEST(stubs_say_so),
        TEST(bad_configurations_are_refused),
        TEST(devices_are_as_configured),
        TEST(every_attribute_has_a_value),
        TEST(hidden_devices_are_not_there),
        TEST(memory_ends_where_configured),
        TEST(pointers_tell_whose_they_are),
        TEST(host_memory_is_registered_once),
        TEST(primary_contexts_are_counted),
        TEST(private_contexts_have_flags),
        TEST(peers_are_enabled_once),
        TEST(prohibited_devices_have_no_context),
        TEST(multiprocessors_are_split_as_on_an_h200),
        TEST(slices_run_on_their_multiprocessors),
        TEST(results_have_names),
    };
    void *found = dlsym(RTLD_DEFAULT, "cuGetProcAddress_v2");

    if (found == NULL)
        return 1;
    memcpy(&get_proc, &found, sizeof get_proc);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
