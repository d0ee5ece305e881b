/* SPDX-License-Identifier: Apache-2.0 */
/* Every rule of the fake driver fires. Each scenario is a process of its own, this program with the
 * scenario's name: it must end with the status of a violation, and name the rule. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fake.h"

#define IMAGE "FAKECUBIN arch=90 entry=count(8),small(8)"

typedef struct scene {
    CUcontext context;
    CUstream stream;
    CUevent event;
    CUmodule module;
    CUfunction function;
    CUdeviceptr memory;
} scene;

static int count_twin(void **params, const fakecuda_geometry *geometry)
{
    int *cell = fakecuda_map(*(void **)params[0], sizeof *cell);

    (void)geometry;
    if (cell == NULL)
        return 1;
    ++*cell;
    return 0;
}

/* Nothing in a scene goes wrong by itself. */
static void must(CUresult result)
{
    if (result != FL_CUDA_SUCCESS) {
        (void)fprintf(stderr, "scene: result %d\n", result);
        _exit(1);
    }
}

static scene scene_begin(void)
{
    scene s;

    fakecuda_register("count", count_twin, 0, NULL);
    fakecuda_register("small", count_twin, 0, NULL);
    must(cuInit(0));
    must(cuDevicePrimaryCtxRetain(&s.context, 0));
    must(cuCtxPushCurrent_v2(s.context));
    must(cuStreamCreate(&s.stream, FL_CU_STREAM_NON_BLOCKING));
    must(cuEventCreate(&s.event, FL_CU_EVENT_DISABLE_TIMING));
    must(cuModuleLoadDataEx(&s.module, IMAGE, 0, NULL, NULL));
    must(cuModuleGetFunction(&s.function, s.module, "count"));
    must(cuMemAlloc_v2(&s.memory, 4096));
    must(cuMemsetD8Async(s.memory, 0, 4096, s.stream));
    return s;
}

static void scene_end(scene *s)
{
    (void)cuMemFree_v2(s->memory);
    (void)cuModuleUnload(s->module);
    (void)cuEventDestroy_v2(s->event);
    (void)cuStreamDestroy_v2(s->stream);
    (void)cuCtxPopCurrent_v2(NULL);
    (void)cuDevicePrimaryCtxRelease_v2(0);
}

static CUresult launch(const scene *s, unsigned grid, unsigned block, unsigned shared, CUstream on)
{
    void *params[] = {(void *)&s->memory};

    return cuLaunchKernel(s->function, grid, 1, 1, block, 1, 1, shared, on, params, NULL);
}

static void clean(scene *s)
{
    must(launch(s, 1, 32, 0, s->stream));
    must(cuEventRecord(s->event, s->stream));
    must(cuEventSynchronize(s->event));
    scene_end(s);
}

/* --- Contexts --- */

static void no_context(scene *s)
{
    must(cuCtxPopCurrent_v2(NULL));
    (void)cuStreamQuery(s->stream);
    must(cuCtxPushCurrent_v2(s->context));
    scene_end(s);
}

static CUcontext other_context(void)
{
    CUcontext other;

    must(cuDevicePrimaryCtxRetain(&other, 1));
    return other;
}

static void wrong_context(scene *s)
{
    must(cuCtxPushCurrent_v2(other_context()));
    (void)cuStreamQuery(s->stream);
    must(cuCtxPopCurrent_v2(NULL));
    must(cuDevicePrimaryCtxRelease_v2(1));
    scene_end(s);
}

static void wrong_kernel_context(scene *s)
{
    CUstream stream;

    must(cuCtxPushCurrent_v2(other_context()));
    must(cuStreamCreate(&stream, FL_CU_STREAM_NON_BLOCKING));
    (void)launch(s, 1, 32, 0, stream);
    must(cuStreamDestroy_v2(stream));
    must(cuCtxPopCurrent_v2(NULL));
    must(cuDevicePrimaryCtxRelease_v2(1));
    scene_end(s);
}

static void wrong_memory_context(scene *s)
{
    CUdeviceptr memory;

    must(cuCtxPushCurrent_v2(other_context()));
    must(cuMemAlloc_v2(&memory, 64));
    must(cuCtxPopCurrent_v2(NULL));
    (void)cuMemcpyDtoDAsync_v2(s->memory, memory, 64, s->stream);
    must(cuCtxPushCurrent_v2(other_context()));
    must(cuMemFree_v2(memory));
    must(cuCtxPopCurrent_v2(NULL));
    must(cuDevicePrimaryCtxRelease_v2(1));
    must(cuDevicePrimaryCtxRelease_v2(1));
    scene_end(s);
}

static void destroyed_context(scene *s)
{
    CUcontext made;

    must(cuCtxCreate_v2(&made, 0, 0));
    must(cuCtxDestroy_v2(made));
    (void)cuCtxPushCurrent_v2(made);
    scene_end(s);
}

static void pushed(scene *s)
{
    must(cuCtxPushCurrent_v2(s->context));
    scene_end(s);
}

static void *push_in_thread(void *context)
{
    must(cuCtxPushCurrent_v2(context));
    return NULL;
}

static void pushed_in_thread(scene *s)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, push_in_thread, s->context) != 0)
        _exit(1);
    (void)pthread_join(thread, NULL);
    scene_end(s);
}

static void popped(scene *s)
{
    scene_end(s);
    (void)cuCtxPopCurrent_v2(NULL);
}

static void popped_set(scene *s)
{
    must(cuCtxPopCurrent_v2(NULL));
    must(cuCtxSetCurrent(s->context));
    scene_end(s);
}

static void released_twice(scene *s)
{
    scene_end(s);
    (void)cuDevicePrimaryCtxRelease_v2(0);
}

static void not_initialised(scene *s)
{
    int count;

    (void)s;
    (void)cuDeviceGetCount(&count);
}

/* --- Handles --- */

static void foreign_handle(scene *s)
{
    int here;

    (void)cuStreamQuery((CUstream)(void *)&here);
    scene_end(s);
}

static void wrong_kind(scene *s)
{
    (void)cuStreamQuery((CUstream)(void *)s->event);
    scene_end(s);
}

static void default_stream(scene *s)
{
    (void)launch(s, 1, 32, 0, NULL);
    scene_end(s);
}

static void stream_twice(scene *s)
{
    CUstream stream;

    must(cuStreamCreate(&stream, FL_CU_STREAM_NON_BLOCKING));
    must(cuStreamDestroy_v2(stream));
    (void)cuStreamDestroy_v2(stream);
    scene_end(s);
}

static void event_dead(scene *s)
{
    CUevent event;

    must(cuEventCreate(&event, 0));
    must(cuEventRecord(event, s->stream));
    must(cuEventDestroy_v2(event));
    (void)cuStreamWaitEvent(s->stream, event, 0);
    scene_end(s);
}

static void function_dead(scene *s)
{
    must(cuModuleUnload(s->module));
    (void)launch(s, 1, 32, 0, s->stream);
    must(cuModuleLoadDataEx(&s->module, IMAGE, 0, NULL, NULL));
    scene_end(s);
}

/* --- Left behind --- */

static void stream_left(scene *s)
{
    CUstream stream;

    must(cuStreamCreate(&stream, FL_CU_STREAM_NON_BLOCKING));
    scene_end(s);
}

static void event_left(scene *s)
{
    CUevent event;

    must(cuEventCreate(&event, 0));
    scene_end(s);
}

static void module_left(scene *s)
{
    CUmodule module;

    must(cuModuleLoadDataEx(&module, IMAGE, 0, NULL, NULL));
    scene_end(s);
}

static void memory_left(scene *s)
{
    CUdeviceptr memory;

    must(cuMemAlloc_v2(&memory, 1));
    scene_end(s);
}

static void pinned_left(scene *s)
{
    void *memory;

    must(cuMemHostAlloc(&memory, 1, 0));
    scene_end(s);
}

static void context_left(scene *s)
{
    (void)other_context();
    scene_end(s);
}

static void graph_left(scene *s)
{
    CUgraph graph;

    must(cuGraphCreate(&graph, 0));
    scene_end(s);
}

static void green_make(CUgreenCtx *green, unsigned first, unsigned count, CUdevResource *groups)
{
    CUdevResourceDesc desc;

    must(cuDevResourceGenerateDesc(&desc, groups + first, count));
    must(cuGreenCtxCreate(green, desc, 0, FL_CU_GREEN_CTX_DEFAULT_STREAM));
}

static unsigned split(CUdevResource *groups, CUdevResource *rest)
{
    CUdevResource all;
    unsigned count = 64;

    must(cuDeviceGetDevResource(0, &all, FL_CU_DEV_RESOURCE_TYPE_SM));
    must(cuDevSmResourceSplitByCount(groups, &count, &all, rest, 0, 8));
    return count;
}

static void green_left(scene *s)
{
    CUdevResource groups[64], rest;
    CUgreenCtx green;

    (void)split(groups, &rest);
    green_make(&green, 0, 1, groups);
    scene_end(s);
}

static void green_overlaps(scene *s)
{
    CUdevResource groups[64], rest;
    CUgreenCtx green[2];

    (void)split(groups, &rest);
    green_make(&green[0], 0, 2, groups);
    green_make(&green[1], 1, 2, groups);
    must(cuGreenCtxDestroy(green[0]));
    must(cuGreenCtxDestroy(green[1]));
    scene_end(s);
}

static void rest_split(scene *s)
{
    CUdevResource groups[64], rest;
    unsigned count = 1;

    (void)split(groups, &rest);
    (void)cuDevSmResourceSplitByCount(groups, &count, &rest, NULL, 0, 8);
    scene_end(s);
}

CUresult cuCtxFromGreenCtx(CUcontext *context, CUgreenCtx green);

static void green_current(scene *s)
{
    CUcontext context;

    (void)cuCtxFromGreenCtx(&context, NULL);
    scene_end(s);
}

/* --- Memory --- */

static void memory_twice(scene *s)
{
    CUdeviceptr memory;

    must(cuMemAlloc_v2(&memory, 64));
    must(cuMemFree_v2(memory));
    (void)cuMemFree_v2(memory);
    scene_end(s);
}

static void memory_middle(scene *s)
{
    (void)cuMemFree_v2(s->memory + 8);
    scene_end(s);
}

static void memory_dead(scene *s)
{
    CUdeviceptr memory;

    must(cuMemAlloc_v2(&memory, 64));
    must(cuMemFree_v2(memory));
    (void)cuMemsetD8Async(memory, 0, 64, s->stream);
    scene_end(s);
}

static void memory_queued(scene *s)
{
    CUdeviceptr memory;

    must(cuMemAlloc_v2(&memory, 64));
    must(cuMemsetD8Async(memory, 0, 64, s->stream));
    (void)cuMemFree_v2(memory);
    scene_end(s);
}

static void bounds(scene *s)
{
    char host[64] = {0};

    (void)cuMemcpyHtoDAsync_v2(s->memory + 4096 - 63, host, 64, s->stream);
    scene_end(s);
}

static void bounds_2d(scene *s)
{
    char host[64] = {0};
    CUDA_MEMCPY2D copy = {.srcMemoryType = FL_CU_MEMORYTYPE_HOST,
                          .srcHost = host,
                          .srcPitch = 16,
                          .dstMemoryType = FL_CU_MEMORYTYPE_DEVICE,
                          .dstDevice = s->memory,
                          .dstPitch = 1360,
                          .WidthInBytes = 16,
                          .Height = 4};

    must(cuMemcpy2DAsync_v2(&copy, s->stream));
    copy.dstPitch = 1359;
    must(cuMemcpy2DAsync_v2(&copy, s->stream));
    copy.dstPitch = 1361;
    (void)cuMemcpy2DAsync_v2(&copy, s->stream);
    must(cuStreamSynchronize(s->stream));
    scene_end(s);
}

static void host_for_device(scene *s)
{
    char host[64] = {0};

    (void)cuMemsetD8Async((CUdeviceptr)(uintptr_t)host, 0, 64, s->stream);
    scene_end(s);
}

static void device_for_host(scene *s)
{
    (void)cuMemcpyDtoHAsync_v2((void *)(uintptr_t)s->memory, s->memory, 64, s->stream);
    scene_end(s);
}

static void kernel_bounds(scene *s)
{
    CUdeviceptr memory = s->memory;

    s->memory += 4094;
    (void)launch(s, 1, 32, 0, s->stream);
    (void)cuStreamSynchronize(s->stream);
    s->memory = memory;
    scene_end(s);
}

static int filch_twin(const filch_call *call)
{
    (void)call;
    return 0;
}

static void view_bounds(scene *s)
{
    filch_view view = {(void *)(uintptr_t)s->memory, 16, 33, 16, 0, 0, 8};
    void *params[] = {&view};
    CUmodule module;
    CUfunction function;

    fakecuda_register_filch("view", filch_twin, 1, false, 0);
    must(cuModuleLoadDataEx(&module, "FAKECUBIN arch=90 entry=view(56)", 0, NULL, NULL));
    must(cuModuleGetFunction(&function, module, "view"));
    (void)cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, s->stream, params, NULL);
    must(cuModuleUnload(module));
    scene_end(s);
}

static void pinned_twice(scene *s)
{
    void *memory;

    must(cuMemHostAlloc(&memory, 64, 0));
    must(cuMemFreeHost(memory));
    (void)cuMemFreeHost(memory);
    scene_end(s);
}

static int nap(void *data)
{
    const struct timespec span = {0, 20000000};

    (void)data;
    (void)nanosleep(&span, NULL);
    return 0;
}

/* Pinned memory given back under a copy that reads it, however it was pinned. */
static void unpin_queued(scene *s, bool is_registered)
{
    static int here[1024];
    void *pinned = here;

    must(is_registered ? cuMemHostRegister_v2(here, sizeof here, 0)
                       : cuMemHostAlloc(&pinned, sizeof here, 0));
    must(fakecuda_enqueue(s->stream, nap, NULL));
    must(cuMemcpyHtoDAsync_v2(s->memory, pinned, sizeof here, s->stream));
    must(is_registered ? cuMemHostUnregister(here) : cuMemFreeHost(pinned));
    scene_end(s);
}

static void registered_queued(scene *s)
{
    unpin_queued(s, true);
}

static void pinned_queued(scene *s)
{
    unpin_queued(s, false);
}

static void never_registered(scene *s)
{
    int here;

    (void)cuMemHostUnregister(&here);
    scene_end(s);
}

/* --- Launches --- */

static void no_blocks(scene *s)
{
    (void)launch(s, 0, 32, 0, s->stream);
    scene_end(s);
}

static void many_threads(scene *s)
{
    (void)launch(s, 1, 1025, 0, s->stream);
    scene_end(s);
}

static void much_shared(scene *s)
{
    (void)launch(s, 1, 32, 49153, s->stream);
    scene_end(s);
}

/* --- Steady state --- */

static void steady_alloc(scene *s)
{
    CUdeviceptr memory;

    fakecuda_steady_begin();
    must(cuMemAlloc_v2(&memory, 64));
    fakecuda_steady_end();
    must(cuMemFree_v2(memory));
    scene_end(s);
}

static void steady_wait(scene *s)
{
    fakecuda_steady_begin();
    must(cuEventRecord(s->event, s->stream));
    must(cuEventSynchronize(s->event));
    fakecuda_steady_end();
    scene_end(s);
}

static void steady_good(scene *s)
{
    CUevent event;

    must(cuEventCreate(&event, FL_CU_EVENT_BLOCKING_SYNC));
    fakecuda_steady_begin();
    must(launch(s, 1, 32, 0, s->stream));
    must(cuEventRecord(event, s->stream));
    must(cuEventSynchronize(event));
    fakecuda_steady_end();
    must(cuEventDestroy_v2(event));
    scene_end(s);
}

static void touch(scene *s)
{
    *(volatile char *)(uintptr_t)s->memory = 1;
    scene_end(s);
}

typedef struct scenario {
    const char *name;
    void (*run)(scene *s);
    const char *text; /* of the violation; null: none */
} scenario;

#define SCENARIO(name, text) \
    {                        \
#name, name, text    \
    }

static const scenario scenarios[] = {
    SCENARIO(clean, NULL),
    SCENARIO(steady_good, NULL),
    SCENARIO(no_context, "cuStreamQuery: no current context"),
    SCENARIO(wrong_context, "the stream is of another context"),
    SCENARIO(wrong_kernel_context, "a kernel of another context"),
    SCENARIO(wrong_memory_context, "a context that the stream's one cannot reach"),
    SCENARIO(destroyed_context, "the context is destroyed"),
    SCENARIO(pushed, "never popped when the process ended"),
    SCENARIO(pushed_in_thread, "never popped when its thread ended"),
    SCENARIO(popped, "nothing to pop"),
    SCENARIO(popped_set, "was set, not pushed"),
    SCENARIO(released_twice, "released more often"),
    SCENARIO(not_initialised, "called before cuInit"),
    SCENARIO(foreign_handle, "no handle of this driver's"),
    SCENARIO(wrong_kind, "a event is given for a stream"),
    SCENARIO(default_stream, "the default stream"),
    SCENARIO(stream_twice, "the stream is destroyed"),
    SCENARIO(event_dead, "cuStreamWaitEvent: the event is destroyed"),
    SCENARIO(function_dead, "the function is destroyed"),
    SCENARIO(stream_left, "1 objects (stream) left behind"),
    SCENARIO(event_left, "1 objects (event) left behind"),
    SCENARIO(module_left, "1 objects (module) left behind"),
    SCENARIO(memory_left, "1 memory blocks left behind"),
    SCENARIO(pinned_left, "1 pinned host blocks left behind"),
    SCENARIO(context_left, "1 objects (context) left behind"),
    SCENARIO(graph_left, "1 objects (graph) left behind"),
    SCENARIO(green_left, "1 objects (green) left behind"),
    SCENARIO(green_overlaps, "shares multiprocessors"),
    SCENARIO(rest_split, "a remainder is split again"),
    SCENARIO(green_current, "a green context is to be made current"),
    SCENARIO(memory_twice, "is freed twice"),
    SCENARIO(memory_middle, "is no block's start"),
    SCENARIO(memory_dead, "is freed device memory"),
    SCENARIO(memory_queued, "is used by work that is queued"),
    SCENARIO(bounds, "outside a block of 4096 bytes"),
    SCENARIO(bounds_2d, "outside a block of 4096 bytes"),
    SCENARIO(host_for_device, "is no device memory"),
    SCENARIO(device_for_host, "is no host memory"),
    SCENARIO(kernel_bounds, "kernel: 4 bytes at offset 4094 are outside"),
    SCENARIO(view_bounds, "cuLaunchKernel: 4224 bytes at offset 0 are outside"),
    SCENARIO(pinned_twice, "was not allocated"),
    SCENARIO(never_registered, "was not registered"),
    SCENARIO(registered_queued, "is used by work that is queued"),
    SCENARIO(pinned_queued, "is used by work that is queued"),
    SCENARIO(no_blocks, "a grid of 0 x 1 x 1"),
    SCENARIO(many_threads, "a block of 1025 x 1 x 1"),
    SCENARIO(much_shared, "49153 bytes of dynamic shared memory"),
    SCENARIO(steady_alloc, "cuMemAlloc: serializes a device"),
    SCENARIO(steady_wait, "cuEventSynchronize: a wait that spins"),
};

static const scenario touching = SCENARIO(touch, NULL);

/* --- Running them --- */

/* The child's status, and what it wrote to stderr. */
static int run(const char *name, const char *aborts, char *text, size_t bytes)
{
    int ends[2], status;
    size_t used = 0;

    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)setenv("FAKECUDA_ABORT", aborts, 1);
        (void)setenv("FAKECUDA_CONFIG", "{\"copy_ns\": 2000000}", 1);
        (void)dup2(ends[1], STDERR_FILENO);
        (void)close(ends[0]);
        (void)close(ends[1]);
        (void)execl("/proc/self/exe", "test_strict", name, (char *)NULL);
        _exit(127);
    }
    (void)close(ends[1]);
    while (used + 1 < bytes) {
        ssize_t got = read(ends[0], text + used, bytes - 1 - used);
        if (got <= 0)
            break;
        used += (size_t)got;
    }
    text[used] = '\0';
    (void)close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void rules_fire(void **state)
{
    static char text[65536];

    (void)state;
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
        const scenario *s = &scenarios[i];
        int status = run(s->name, "0", text, sizeof text);
        int wanted = s->text != NULL ? FAKECUDA_EXIT : 0;
        bool is_told =
            s->text != NULL ? strstr(text, s->text) != NULL : strstr(text, "violation") == NULL;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != wanted || !is_told)
            fail_msg("%s: status %#x, \"%s\" wanted, stderr: %s", s->name, (unsigned)status,
                     s->text != NULL ? s->text : "nothing", text);
        /* One mistake is one violation. */
        if (s->text != NULL && strstr(text, "fakecuda: 1 violations") == NULL)
            fail_msg("%s: more than one: %s", s->name, text);
    }
}

static void aborts_at_once(void **state)
{
    char text[4096];

    (void)state;
    int status = run("no_context", "1", text, sizeof text);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) != FAKECUDA_EXIT);
    assert_non_null(strstr(text, "cuStreamQuery: no current context"));
}

static void memory_is_out_of_reach(void **state)
{
    char text[16384];

    (void)state;
    int status = run(touching.name, "0", text, sizeof text);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
}

static int scenario_run(const scenario *s)
{
    scene made = {0};

    if (s->run != not_initialised)
        made = scene_begin();
    /* Only the scenario that frees memory in use is to find the stream busy. */
    if (s->run != not_initialised && s->run != memory_queued)
        must(cuStreamSynchronize(made.stream));
    s->run(&made);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_fire),
        cmocka_unit_test(aborts_at_once),
        cmocka_unit_test(memory_is_out_of_reach),
    };

    if (argc < 2)
        return cmocka_run_group_tests(tests, NULL, NULL);
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
        if (strcmp(scenarios[i].name, argv[1]) == 0)
            return scenario_run(&scenarios[i]);
    }
    return strcmp(argv[1], touching.name) == 0 ? scenario_run(&touching) : 2;
}
