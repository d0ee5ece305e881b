/* SPDX-License-Identifier: Apache-2.0 */
/* Multicast objects on the fake driver: every order of calls, right and wrong, every failure on the
 * way, and that nothing reaches the driver where multicast is not allowed. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/driver/api.h"
#include "backend/cuda/multicast.h"
#include "fakecuda.h"
#include "filch/filch.h"
#include "filch/multicast.h"
#include "patience.h"
#include "runtime.h"

#define GRAIN ((uint64_t)2 << 20) /* of the fake; recommended is twice as much */
#define BYTES (2 * GRAIN)
#define TWO "{\"devices\": [{\"count\": 2, \"memory\": 67108864}]}"
#define UNFILLED "{\"devices\": [{\"count\": 2, \"memory\": 67108864}], \"fill\": false}"
#define DEVICES 2

static filch_runtime *runtime;
static filch_multicast *object;

#define assert_ok(call) assert_int_equal((call), FILCH_OK)

static void start_as(const char *devices, const char *fake, uint32_t allowed)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_error error = FILCH_ERROR_INIT;
    fakecuda_reset();
    assert_true(fakecuda_configure(fake));
    config.devices = devices;
    config.allow_multicast = allowed;
    config.drive = FILCH_DRIVE_POLL;
    if (filch_runtime_create(&config, &error, &runtime) != FILCH_OK)
        fail_msg("%s", error.text);
    object = NULL;
}

static void start(void)
{
    start_as("cuda", TWO, 1);
}

static size_t live(void)
{
    return fakecuda_live("handle") + fakecuda_live("multicast") + fakecuda_live("reservation") +
           fakecuda_live("mapping");
}

static void stop(void)
{
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(live(), 0);
    if (fakecuda_violations() != 0)
        fail_msg("%s", fakecuda_last_violation());
}

static const uint32_t both[DEVICES] = {0, 1};

static filch_multicast_desc describe(void)
{
    filch_multicast_desc desc = FILCH_MULTICAST_DESC_INIT;
    desc.devices = both;
    desc.device_count = DEVICES;
    desc.bytes = BYTES;
    desc.label = "all";
    return desc;
}

static void make(void)
{
    const filch_multicast_desc desc = describe();
    assert_ok(filch_multicast_create(runtime, &desc, &object));
}

static filch_error last(void)
{
    filch_error error = FILCH_ERROR_INIT;
    assert_ok(filch_runtime_error(runtime, &error));
    return error;
}

/* --- The states --- */

static void the_right_order_works(void **state)
{
    void *here[DEVICES], *parts[2], *address = NULL;
    (void)state;
    start();
    make();
    for (uint32_t d = 0; d < DEVICES; d++)
        assert_ok(filch_multicast_add(object, d));
    assert_ok(filch_multicast_bind(object, 0, 0, BYTES, &here[0]));
    assert_ok(filch_multicast_bind(object, 1, GRAIN, GRAIN, &parts[1]));
    assert_ok(filch_multicast_bind(object, 1, 0, GRAIN, &parts[0]));
    assert_ok(filch_multicast_map(object, &address));
    assert_int_equal((uintptr_t)address % (2 * GRAIN), 0); /* as is recommended */
    assert_non_null(fakecuda_peek(here[0], BYTES));        /* memory like any other */
    assert_non_null(fakecuda_peek(parts[1], GRAIN));
    assert_int_equal(fakecuda_live("multicast"), 1);
    assert_int_equal(fakecuda_live("handle"), 3);
    assert_int_equal(fakecuda_live("mapping"), 4);
    assert_ok(filch_multicast_unmap(object));
    assert_ok(filch_multicast_unbind(object, 1, 0, GRAIN));
    assert_ok(filch_multicast_unbind(object, 1, GRAIN, GRAIN));
    assert_ok(filch_multicast_unbind(object, 0, 0, BYTES));
    assert_int_equal(live(), 1);
    assert_ok(filch_multicast_destroy(object));
    assert_int_equal(live(), 0);
    assert_int_equal(fakecuda_count("cuMulticastCreate"), 1);
    stop();
}

/* The runtime takes an object through what remains, from every state. */
static void the_runtime_takes_all_of_it_back(void **state)
{
    (void)state;
    for (int steps = 0; steps < 7; steps++) {
        void *address;
        start();
        make();
        for (uint32_t d = 0; d < DEVICES && (int)d < steps; d++)
            assert_ok(filch_multicast_add(object, d));
        for (uint32_t d = 0; d < DEVICES && (int)d + 2 < steps; d++)
            assert_ok(filch_multicast_bind(object, d, 0, BYTES, NULL));
        if (steps > 4)
            assert_ok(filch_multicast_map(object, &address));
        if (steps > 5)
            assert_ok(filch_multicast_unmap(object));
        stop();
    }
}

/* --- Any order of calls, against a model of the states --- */

enum { ADD, BIND, BIND_ADDRESS, UNBIND, MAP, UNMAP, DESTROY, CALLS };

typedef struct model {
    bool is_added[DEVICES], is_bound[DEVICES][2], is_address[DEVICES][2], is_mapped, is_gone;
} model;

static bool is_whole(const model *m)
{
    return m->is_added[0] && m->is_added[1];
}

static bool has_bound(const model *m, bool all)
{
    int count = 0;
    for (int d = 0; d < DEVICES; d++)
        count += m->is_bound[d][0] + m->is_bound[d][1];
    return all ? count == 4 : count > 0;
}

/* Memory of the test's own, two parts of each device. */
static void *own[DEVICES];
static CUmemGenericAllocationHandle own_handles[DEVICES];

FAKECUDA_API CUresult cuMemCreate(CUmemGenericAllocationHandle *memory, size_t bytes,
                                  const CUmemAllocationProp *properties, unsigned long long flags);
FAKECUDA_API CUresult cuMemRelease(CUmemGenericAllocationHandle memory);
FAKECUDA_API CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment,
                                          CUdeviceptr wanted, unsigned long long flags);
FAKECUDA_API CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes);
FAKECUDA_API CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                               CUmemGenericAllocationHandle memory, unsigned long long flags);
FAKECUDA_API CUresult cuMemUnmap(CUdeviceptr address, size_t bytes);

static void take_own(void)
{
    for (int d = 0; d < DEVICES; d++) {
        const CUmemAllocationProp properties = {
            .type = FL_CU_MEM_ALLOCATION_TYPE_PINNED,
            .location = {.type = FL_CU_MEM_LOCATION_TYPE_DEVICE, .id = d},
        };
        CUdeviceptr address;
        assert_int_equal(cuMemCreate(&own_handles[d], BYTES, &properties, 0), 0);
        assert_int_equal(cuMemAddressReserve(&address, BYTES, 0, 0, 0), 0);
        assert_int_equal(cuMemMap(address, BYTES, 0, own_handles[d], 0), 0);
        own[d] = (void *)(uintptr_t)address;
    }
}

static void give_own(void)
{
    for (int d = 0; d < DEVICES; d++) {
        assert_int_equal(cuMemUnmap((CUdeviceptr)(uintptr_t)own[d], BYTES), 0);
        assert_int_equal(cuMemAddressFree((CUdeviceptr)(uintptr_t)own[d], BYTES), 0);
        assert_int_equal(cuMemRelease(own_handles[d]), 0);
    }
}

/* What the call should say; the model follows it. */
static filch_status expect_bind(model *m, int device, int part, bool address)
{
    if (!is_whole(m) || m->is_mapped || m->is_bound[device][part])
        return FILCH_WRONG_STATE;
    m->is_bound[device][part] = true;
    m->is_address[device][part] = address;
    return FILCH_OK;
}

static filch_status expect(model *m, int call, int device, int part)
{
    switch (call) {
    case ADD:
        if (m->is_added[device])
            return FILCH_WRONG_STATE;
        m->is_added[device] = true;
        return FILCH_OK;
    case BIND:
    case BIND_ADDRESS:
        return expect_bind(m, device, part, call == BIND_ADDRESS);
    case UNBIND:
        if (m->is_mapped)
            return FILCH_WRONG_STATE;
        if (!m->is_bound[device][part])
            return FILCH_NOT_FOUND;
        m->is_bound[device][part] = false;
        return FILCH_OK;
    case MAP:
        if (m->is_mapped || !is_whole(m) || !has_bound(m, true))
            return FILCH_WRONG_STATE;
        m->is_mapped = true;
        return FILCH_OK;
    case UNMAP:
        if (!m->is_mapped)
            return FILCH_WRONG_STATE;
        m->is_mapped = false;
        return FILCH_OK;
    default:
        if (m->is_mapped || has_bound(m, false))
            return FILCH_WRONG_STATE;
        m->is_gone = true;
        return FILCH_OK;
    }
}

static filch_status act(int call, int device, int part)
{
    const uint64_t offset = (uint64_t)part * GRAIN;
    void *address;
    switch (call) {
    case ADD:
        return filch_multicast_add(object, (uint32_t)device);
    case BIND:
        return filch_multicast_bind(object, (uint32_t)device, offset, GRAIN, NULL);
    case BIND_ADDRESS:
        return filch_multicast_bind_address(object, (uint32_t)device, offset,
                                            (char *)own[device] + offset, GRAIN);
    case UNBIND:
        return filch_multicast_unbind(object, (uint32_t)device, offset, GRAIN);
    case MAP:
        return filch_multicast_map(object, &address);
    case UNMAP:
        return filch_multicast_unmap(object);
    default:
        return filch_multicast_destroy(object);
    }
}

/* What lives is what the model says, no more and no less. */
static void check_live(const model *m)
{
    size_t memory = 0;
    for (int d = 0; d < DEVICES; d++) {
        for (int part = 0; part < 2; part++)
            memory += m->is_bound[d][part] && !m->is_address[d][part];
    }
    assert_int_equal(fakecuda_live("multicast"), !m->is_gone);
    assert_int_equal(fakecuda_live("handle"), memory + DEVICES);
    assert_int_equal(fakecuda_live("mapping"), memory + DEVICES + m->is_mapped);
    assert_int_equal(fakecuda_live("reservation"), memory + DEVICES + m->is_mapped);
}

/* All orders of the calls that take nothing but a number of the object, up to a length, … */
static void every_order_is_right_or_refused(void **state)
{
    enum { KINDS = 12, LENGTH = 3, STARTS = 8 };
    static const int kinds[KINDS][3] = {
        {ADD, 0, 0},  {ADD, 1, 0},   {BIND, 0, 0},    {BIND, 0, 1},
        {BIND, 1, 0}, {BIND, 1, 1},  {UNBIND, 0, 0},  {UNBIND, 1, 1},
        {MAP, 0, 0},  {UNMAP, 0, 0}, {DESTROY, 0, 0}, {BIND_ADDRESS, 1, 0},
    };
    uint32_t orders = 1;
    (void)state;
    for (int k = 0; k < LENGTH; k++)
        orders *= KINDS;
    start_as("cuda", UNFILLED, 1);
    take_own();
    /* … each behind none, some or all of the right beginning. */
    for (uint32_t order = 0; order < orders * STARTS; order++) {
        static const int right[][3] = {{ADD, 0, 0},  {ADD, 1, 0},  {BIND, 0, 0}, {BIND, 0, 1},
                                       {BIND, 1, 0}, {BIND, 1, 1}, {MAP, 0, 0}};
        model m = {0};
        uint32_t rest = order / STARTS;
        make();
        for (uint32_t k = 0; k < order % STARTS; k++) {
            assert_ok(act(right[k][0], right[k][1], right[k][2]));
            assert_ok(expect(&m, right[k][0], right[k][1], right[k][2]));
        }
        for (int k = 0; k < LENGTH && !m.is_gone; k++, rest /= KINDS) {
            const int *kind = kinds[rest % KINDS];
            filch_status wanted = expect(&m, kind[0], kind[1], kind[2]);
            if (act(kind[0], kind[1], kind[2]) != wanted)
                fail_msg("order %u, call %d: %s expected", order, k, filch_status_name(wanted));
            if (wanted != FILCH_OK)
                assert_string_equal(last().label, "all");
            check_live(&m);
        }
        for (int d = 0; d < DEVICES && !m.is_gone; d++) {
            if (m.is_mapped)
                assert_ok(filch_multicast_unmap(object));
            m.is_mapped = false;
            for (int part = 0; part < 2; part++) {
                if (m.is_bound[d][part])
                    assert_ok(act(UNBIND, d, part));
            }
        }
        if (!m.is_gone)
            assert_ok(filch_multicast_destroy(object));
        assert_int_equal(fakecuda_violations(), 0);
    }
    give_own();
    stop();
}

/* --- Failures --- */

typedef struct step {
    const char *call;
    int act, device;
    uint32_t calls; /* how often the act calls it */
} step;

/* Before the act, the right beginning; each call in it fails in turn. The act is as if it had not
 * been tried, and works when it is tried again. */
static void every_failure_rolls_back(void **state)
{
    static const int before[CALLS] = {
        [ADD] = 0, [BIND] = 2, [UNBIND] = 6, [MAP] = 6, [UNMAP] = 7, [DESTROY] = 0};
    static const int right[][3] = {{ADD, 0, 0},  {ADD, 1, 0},  {BIND, 0, 0}, {BIND, 0, 1},
                                   {BIND, 1, 0}, {BIND, 1, 1}, {MAP, 0, 0}};
    static const step steps[] = {
        {"cuMulticastAddDevice", ADD, 1, 1},
        {"cuMemGetAllocationGranularity", BIND, 1, 1},
        {"cuMemCreate", BIND, 1, 1},
        {"cuMemAddressReserve", BIND, 1, 1},
        {"cuMemMap", BIND, 1, 1},
        {"cuMemSetAccess", BIND, 1, 1},
        {"cuMulticastBindMem", BIND, 1, 1},
        {"cuMulticastUnbind", UNBIND, 0, 1},
        {"cuMemUnmap", UNBIND, 0, 1},
        {"cuMemAddressFree", UNBIND, 0, 1},
        {"cuMemRelease", UNBIND, 0, 1},
        {"cuMemAddressReserve", MAP, 0, 1},
        {"cuMemMap", MAP, 0, 1},
        {"cuMemSetAccess", MAP, 0, 2},
        {"cuMemUnmap", UNMAP, 0, 1},
        {"cuMemAddressFree", UNMAP, 0, 1},
        {"cuMemRelease", DESTROY, 0, 1},
    };
    static const struct {
        int result;
        filch_status status;
    } codes[] = {{FL_CUDA_ERROR_INVALID_VALUE, FILCH_BACKEND},
                 {FL_CUDA_ERROR_OUT_OF_MEMORY, FILCH_NO_DEVICE_MEMORY},
                 {FL_CUDA_ERROR_SYSTEM_NOT_READY, FILCH_BACKEND},
                 {FL_CUDA_ERROR_ILLEGAL_STATE, FILCH_BACKEND}};
    (void)state;
    for (size_t k = 0; k < sizeof steps / sizeof steps[0]; k++) {
        for (uint32_t nth = 1; nth <= steps[k].calls; nth++) {
            const step *s = &steps[k];
            size_t c = (k + nth) % 4;
            start();
            make();
            for (int i = 0; i < before[s->act]; i++)
                assert_ok(act(right[i][0], right[i][1], right[i][2]));
            size_t lived = live();
            fakecuda_fail(s->call, nth, 1, codes[c].result, -1, false);
            assert_int_equal(act(s->act, s->device, 0), codes[c].status);
            assert_string_equal(last().call, s->call);
            assert_string_equal(last().label, "all");
            assert_int_equal(last().native_code, codes[c].result);
            assert_memory_equal(last().device, "cuda:", 5);
            if (s->act == ADD || s->act == BIND || s->act == MAP || s->act == DESTROY)
                assert_int_equal(live(), lived); /* nothing is left of it */
            assert_ok(act(s->act, s->device, 0));
            stop();
        }
    }
}

/* The way back fails, too: what is left is kept, and taken back later. */
static void a_failed_way_back_is_gone_later(void **state)
{
    static const char *const backs[] = {"cuMemUnmap", "cuMemAddressFree", "cuMemRelease"};
    void *address;
    (void)state;
    for (int k = 0; k < 3; k++) {
        start();
        make();
        assert_ok(act(ADD, 0, 0));
        assert_ok(act(ADD, 1, 0));
        fakecuda_fail("cuMulticastBindMem", 1, 1, 1, -1, false);
        fakecuda_fail(backs[k], 1, 1, 401, -1, false);
        assert_int_equal(act(BIND, 0, 0), FILCH_BACKEND);
        assert_string_equal(last().call, "cuMulticastBindMem");
        assert_int_equal(live(), 4 - (size_t)k);
        if (k == 0) {
            assert_ok(act(UNBIND, 0, 0)); /* by name, … */
            assert_int_equal(live(), 1);
        }
        assert_ok(filch_multicast_destroy(object)); /* … or with the object */
        assert_int_equal(live(), 0);
        make();
        for (uint32_t d = 0; d < DEVICES; d++)
            assert_ok(filch_multicast_add(object, d));
        for (uint32_t d = 0; d < DEVICES; d++)
            assert_ok(filch_multicast_bind(object, d, 0, BYTES, NULL));
        size_t lived = live();
        fakecuda_fail("cuMemSetAccess", 2, 1, 1, -1, false);
        fakecuda_fail(backs[k % 2], 1, 1, 401, -1, false);
        assert_int_equal(filch_multicast_map(object, &address), FILCH_BACKEND);
        assert_int_equal(live(), lived + (k % 2 == 0 ? 2 : 1));
        assert_int_equal(filch_multicast_unmap(object), FILCH_WRONG_STATE);
        assert_ok(filch_multicast_map(object, &address));
        assert_int_equal(live(), lived + 2);
        stop();
    }
}

static void a_lost_device_is_told(void **state)
{
    (void)state;
    start();
    make();
    assert_ok(act(ADD, 0, 0));
    fakecuda_fail("cuMulticastAddDevice", 1, 1, 700, 1, true);
    assert_int_equal(act(ADD, 1, 0), FILCH_DEVICE_LOST);
    assert_string_equal(last().device, "cuda:1");
    assert_ok(filch_multicast_destroy(object));
    fakecuda_reset();
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(live(), 0);
    (void)fakecuda_forgive();
}

/* --- What is refused --- */

static void refuse(const filch_multicast_desc *desc, filch_status status, const char *text)
{
    filch_granularity granularity = {.size = sizeof granularity};
    filch_multicast *made = NULL;
    assert_int_equal(filch_multicast_create(runtime, desc, &made), status);
    assert_null(made);
    if (strstr(last().text, text) == NULL)
        fail_msg("'%s' does not say '%s'", last().text, text);
    assert_string_equal(last().call, "filch_multicast_create");
    assert_int_equal(filch_multicast_granularity(runtime, desc, &granularity), status);
}

static void bad_descriptions_are_refused(void **state)
{
    static const uint32_t twice[] = {0, 0}, none[] = {0, 7}, slices[] = {0, 1}, host[] = {0, 3};
    filch_granularity granularity = {.size = sizeof granularity};
    filch_multicast_desc desc = describe();
    (void)state;
    start_as("cuda:0/88+24,cuda:1,host:1", TWO, 1);
    refuse(NULL, FILCH_INVALID_ARGUMENT, "null");
    desc.size--;
    refuse(&desc, FILCH_INVALID_ARGUMENT, "size");
    desc = describe();
    desc.reserved = 1;
    refuse(&desc, FILCH_INVALID_ARGUMENT, "reserved");
    desc = describe();
    desc.devices = NULL;
    refuse(&desc, FILCH_INVALID_ARGUMENT, "devices");
    desc = describe();
    desc.device_count = 0;
    refuse(&desc, FILCH_INVALID_ARGUMENT, "devices");
    desc = describe();
    desc.bytes = 0;
    refuse(&desc, FILCH_INVALID_ARGUMENT, "bytes");
    desc.bytes = UINT64_MAX;
    refuse(&desc, FILCH_INVALID_ARGUMENT, "bytes");
    desc = describe();
    desc.devices = twice;
    refuse(&desc, FILCH_INVALID_ARGUMENT, "one memory");
    desc.devices = slices;
    refuse(&desc, FILCH_INVALID_ARGUMENT, "one memory");
    desc.devices = none;
    refuse(&desc, FILCH_BAD_INDEX, "7");
    desc.devices = host;
    refuse(&desc, FILCH_UNSUPPORTED, "no GPU");
    desc = describe();
    desc.devices = (const uint32_t[]){1, 2};
    assert_int_equal(filch_multicast_create(runtime, &desc, NULL), FILCH_INVALID_ARGUMENT);
    assert_int_equal(filch_multicast_create(NULL, &desc, &object), FILCH_INVALID_HANDLE);
    assert_int_equal(filch_multicast_granularity(runtime, &desc, NULL), FILCH_INVALID_ARGUMENT);
    granularity.size--;
    assert_int_equal(filch_multicast_granularity(runtime, &desc, &granularity),
                     FILCH_INVALID_ARGUMENT);
    granularity.size++;
    desc.bytes = GRAIN + 4096; /* asking is fine, … */
    assert_ok(filch_multicast_granularity(runtime, &desc, &granularity));
    assert_int_equal(granularity.minimum, GRAIN);
    assert_int_equal(granularity.recommended, 2 * GRAIN);
    /* … making is not, and the error says both figures. */
    assert_int_equal(filch_multicast_create(runtime, &desc, &object), FILCH_INVALID_ARGUMENT);
    assert_non_null(strstr(last().text, "2097152"));
    assert_non_null(strstr(last().text, "4194304"));
    assert_int_equal(fakecuda_count("cuMulticastCreate"), 0);
    stop();
}

static void bad_parts_are_refused(void **state)
{
    static const uint64_t parts[][2] = {{0, 0},         {0, 4096},          {4096, GRAIN},
                                        {0, 3 * GRAIN}, {2 * GRAIN, GRAIN}, {3 * GRAIN, GRAIN}};
    void *address;
    (void)state;
    start();
    make();
    assert_ok(act(ADD, 0, 0));
    assert_int_equal(filch_multicast_bind(object, 0, 0, GRAIN, NULL), FILCH_WRONG_STATE);
    assert_non_null(strstr(last().text, "1 of 2 devices"));
    assert_non_null(strstr(last().text, "block"));
    assert_int_equal(filch_multicast_map(object, &address), FILCH_WRONG_STATE);
    assert_non_null(strstr(last().text, "block"));
    assert_ok(act(ADD, 1, 0));
    take_own();
    for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++) {
        assert_int_equal(filch_multicast_bind(object, 0, parts[k][0], parts[k][1], &address),
                         FILCH_INVALID_ARGUMENT);
        assert_int_equal(filch_multicast_bind_address(object, 0, parts[k][0], own[0], parts[k][1]),
                         FILCH_INVALID_ARGUMENT);
        assert_int_equal(filch_multicast_unbind(object, 0, parts[k][0], parts[k][1]),
                         FILCH_NOT_FOUND);
    }
    assert_int_equal(filch_multicast_bind_address(object, 0, 0, NULL, GRAIN),
                     FILCH_INVALID_ARGUMENT);
    assert_int_equal(filch_multicast_bind_address(object, 0, 0, (char *)own[0] + 4096, GRAIN),
                     FILCH_INVALID_ARGUMENT);
    assert_non_null(strstr(last().text, "2097152"));
    assert_int_equal(filch_multicast_bind(object, 2, 0, GRAIN, NULL), FILCH_BAD_INDEX);
    assert_int_equal(filch_multicast_add(object, 2), FILCH_BAD_INDEX);
    assert_int_equal(filch_multicast_unbind(object, 2, 0, GRAIN), FILCH_BAD_INDEX);
    assert_int_equal(filch_multicast_map(object, NULL), FILCH_INVALID_ARGUMENT);
    assert_ok(filch_multicast_bind(object, 0, 0, BYTES, NULL));
    for (int part = 0; part < 2; part++)
        assert_int_equal(act(BIND, 0, part), FILCH_WRONG_STATE); /* inside of what is there */
    assert_int_equal(act(UNBIND, 0, 0), FILCH_NOT_FOUND);        /* a part of what was bound */
    assert_ok(filch_multicast_unbind(object, 0, 0, BYTES));
    /* Memory that the driver does not take, or of another device. */
    assert_int_equal(filch_multicast_bind_address(object, 0, 0, (char *)own[0] + BYTES, GRAIN),
                     FILCH_BACKEND);
    assert_ok(filch_multicast_destroy(object));
    assert_int_equal(filch_multicast_add(NULL, 0), FILCH_INVALID_HANDLE);
    assert_int_equal(filch_multicast_bind((filch_multicast *)(void *)runtime, 0, 0, GRAIN, NULL),
                     FILCH_INVALID_HANDLE);
    give_own();
    stop();
}

static void older_drivers_and_lesser_devices_are_told(void **state)
{
    const filch_multicast_desc desc = describe();
    (void)state;
    start_as("cuda", "{\"driver\": 12000, \"devices\": [{\"count\": 2}]}", 1);
    assert_int_equal(filch_multicast_create(runtime, &desc, &object), FILCH_UNSUPPORTED);
    assert_non_null(strstr(last().text, "needs CUDA driver >= 12.1, this is 12.0"));
    assert_string_equal(last().device, "cuda:0");
    stop();
    start_as("cuda", "{\"devices\": [{}, {\"attributes\": {\"132\": 0}}]}", 1);
    assert_int_equal(filch_multicast_create(runtime, &desc, &object), FILCH_UNSUPPORTED);
    assert_string_equal(last().device, "cuda:1");
    assert_non_null(strstr(last().text, "has no multicast"));
    stop();
    start();
    fakecuda_fail("cuMulticastGetGranularity", 2, 1, 1, -1, false);
    assert_int_equal(filch_multicast_create(runtime, &desc, &object), FILCH_BACKEND);
    assert_string_equal(last().call, "cuMulticastGetGranularity");
    fakecuda_fail("cuDeviceGetAttribute", 1, 1, 1, -1, false);
    assert_int_equal(filch_multicast_create(runtime, &desc, &object), FILCH_BACKEND);
    fakecuda_fail("cuMulticastCreate", 1, 1, 2, -1, false);
    assert_int_equal(filch_multicast_create(runtime, &desc, &object), FILCH_NO_DEVICE_MEMORY);
    assert_string_equal(last().label, "all");
    stop();
}

/* --- Opting in --- */

static int nothing(const filch_call *call)
{
    (void)call;
    return 0;
}

/* Whatever else is done with the devices, and whatever is asked of multicast itself. */
static void do_everything(void)
{
    static uint64_t x[256];
    const filch_multicast_desc desc = describe();
    filch_granularity granularity = {.size = sizeof granularity};
    filch_data_desc data = FILCH_DATA_DESC_INIT;
    filch_codelet_desc codelet = FILCH_CODELET_DESC_INIT;
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    filch_data *handle = NULL;
    filch_codelet *made = NULL;
    filch_graph *graph = NULL;
    filch_job *job = NULL;
    assert_int_equal(filch_multicast_granularity(runtime, &desc, &granularity), FILCH_UNSUPPORTED);
    assert_non_null(strstr(last().text, "FILCH_MULTICAST"));
    assert_int_equal(filch_multicast_create(runtime, &desc, &object), FILCH_UNSUPPORTED);
    assert_null(object);
    fakecuda_register_filch("nothing", nothing, 1, false, 0);
    cuda.image = "FAKECUBIN arch=90 entry=nothing";
    cuda.image_bytes = strlen(cuda.image) + 1;
    cuda.entry = codelet.name = "nothing";
    codelet.cuda = &cuda;
    assert_ok(filch_codelet_create(runtime, &codelet, &made));
    data.ptr = x;
    data.element = 8;
    data.rows = 256;
    data.flags = FILCH_DATA_MANAGED;
    assert_ok(filch_data_create(runtime, &data, &handle));
    for (int way = 0; way <= FILCH_BROADCAST_DIRECT; way++) {
        filch_broadcast_desc how = FILCH_BROADCAST_DESC_INIT;
        how.way = (filch_broadcast_way)way;
        assert_ok(filch_data_broadcast(handle, &how, NULL, &job));
        assert_ok(filch_job_wait(job, PATIENCE));
        assert_ok(filch_job_release(job));
        assert_ok(filch_data_acquire(handle, FILCH_READWRITE));
        assert_ok(filch_data_release(handle));
    }
    const filch_access access = {.data = handle, .mode = FILCH_READWRITE};
    task.codelet = made;
    task.accesses = &access;
    task.access_count = 1;
    assert_ok(filch_graph_create(runtime, NULL, &graph));
    assert_ok(filch_graph_add(graph, &task, NULL));
    assert_ok(filch_graph_submit(graph, NULL, &job));
    assert_ok(filch_job_wait(job, PATIENCE));
    assert_ok(filch_job_release(job));
    assert_ok(filch_device_measure_links(runtime));
}

/* The backend's own gate, behind that of the calls. */
static void knock_at_the_backend(void)
{
    const filch_runtime *rt = runtime;
    uint64_t handle = 0;
    filch_error error = FILCH_ERROR_INIT;
    assert_ok(fl_cuda_multicast.check(&rt->pool.devices[0], &error));
    assert_int_equal(fl_cuda_multicast.create(&rt->pool.devices[0], &rt->core.settings, 2, BYTES,
                                              &handle, &error),
                     FILCH_UNSUPPORTED);
    assert_int_equal(handle, 0);
}

static void nothing_gets_there_uninvited(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        if (k == 1)
            assert_int_equal(setenv("FILCH_MULTICAST", "0", 1), 0);
        start_as("cuda", "{\"devices\": [{\"count\": 2}]}", 0);
        do_everything();
        knock_at_the_backend();
        stop();
        assert_int_equal(fakecuda_count("cuMulticastCreate"), 0);
        assert_int_equal(fakecuda_count("cuMulticastAddDevice"), 0);
        assert_int_equal(fakecuda_count("cuMulticastGetGranularity"), 0);
        assert_int_equal(fakecuda_count("cuMulticastBindMem"), 0);
    }
    /* The invitation may come from the environment; and broadcasts still do not use it. */
    assert_int_equal(setenv("FILCH_MULTICAST", "1", 1), 0);
    start_as("cuda", TWO, 0);
    make();
    assert_int_equal(fakecuda_count("cuMulticastCreate"), 1);
    assert_ok(filch_multicast_destroy(object));
    stop();
    assert_int_equal(unsetenv("FILCH_MULTICAST"), 0);
}

/* --- Memory of the host's --- */

static int left;

static void *take(size_t size, size_t align, void *user)
{
    void *made = NULL;
    (void)user;
    if (left == 0)
        return NULL;
    left -= left > 0;
    return posix_memalign(&made, align < sizeof made ? sizeof made : align, size) == 0 ? made
                                                                                       : NULL;
}

static void give(void *pointer, size_t size, size_t align, void *user)
{
    (void)size;
    (void)align;
    (void)user;
    free(pointer);
}

static void host_memory_may_be_out(void **state)
{
    const filch_allocator allocator = {take, give, NULL};
    const filch_multicast_desc desc = describe();
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    (void)state;
    fakecuda_reset();
    assert_true(fakecuda_configure(TWO));
    config.devices = "cuda";
    config.allow_multicast = 1;
    config.allocator = &allocator;
    config.drive = FILCH_DRIVE_POLL;
    left = -1;
    assert_ok(filch_runtime_create(&config, NULL, &runtime));
    for (int k = 0; k < 2; k++) {
        left = k;
        assert_int_equal(filch_multicast_create(runtime, &desc, &object), FILCH_OUT_OF_MEMORY);
        assert_int_equal(fakecuda_count("cuMulticastCreate"), 0);
    }
    left = -1;
    make();
    assert_ok(act(ADD, 0, 0));
    assert_ok(act(ADD, 1, 0));
    left = 0;
    assert_int_equal(act(BIND, 0, 0), FILCH_OUT_OF_MEMORY);
    assert_int_equal(live(), 1);
    left = -1;
    assert_ok(act(BIND, 0, 0));
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_right_order_works),
        cmocka_unit_test(the_runtime_takes_all_of_it_back),
        cmocka_unit_test(every_order_is_right_or_refused),
        cmocka_unit_test(every_failure_rolls_back),
        cmocka_unit_test(a_failed_way_back_is_gone_later),
        cmocka_unit_test(a_lost_device_is_told),
        cmocka_unit_test(host_memory_may_be_out),
        cmocka_unit_test(bad_descriptions_are_refused),
        cmocka_unit_test(bad_parts_are_refused),
        cmocka_unit_test(older_drivers_and_lesser_devices_are_told),
        cmocka_unit_test(nothing_gets_there_uninvited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
