/* SPDX-License-Identifier: Apache-2.0 */
/* Images of kernels: the fake's own text, PTX, and real cubins where NVRTC is installed. */
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
#include "twins.h"

static CUcontext context;

static void must(CUresult result)
{
    assert_int_equal(result, FL_CUDA_SUCCESS);
}

static int plain_twin(void **params, const fakecuda_geometry *geometry)
{
    (void)params;
    (void)geometry;
    return 0;
}

static int begin(void **state)
{
    (void)state;
    fakecuda_register("plain", plain_twin, 0, NULL);
    fakecuda_register("bounded", plain_twin, 0, NULL);
    assert_true(fakecuda_configure(NULL));
    must(cuInit(0));
    must(cuDevicePrimaryCtxRetain(&context, 0));
    must(cuCtxSetCurrent(context));
    return 0;
}

static int end(void **state)
{
    (void)state;
    must(cuCtxSetCurrent(NULL));
    must(cuDevicePrimaryCtxRelease_v2(0));
    assert_int_equal(fakecuda_violations(), 0);
    return 0;
}

static CUresult load(CUmodule *module, const void *image)
{
    return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

static int attribute(CUfunction function, CUfunction_attribute which)
{
    int value = -1;

    must(cuFuncGetAttribute(&value, which, function));
    return value;
}

/* Whether the function has exactly these parameters. */
static void params_are(CUfunction function, size_t count, const size_t *offsets,
                       const size_t *sizes)
{
    size_t offset, bytes;

    for (size_t i = 0; i < count; i++) {
        must(cuFuncGetParamInfo(function, i, &offset, &bytes));
        assert_int_equal(offset, offsets[i]);
        assert_int_equal(bytes, sizes[i]);
    }
    assert_int_equal(cuFuncGetParamInfo(function, count, &offset, &bytes),
                     FL_CUDA_ERROR_INVALID_VALUE);
}

static void text_images_load(void **state)
{
    static const size_t offsets[] = {0, 8, 64}, sizes[] = {4, 56, 16};
    CUmodule module;
    CUfunction function, again;

    (void)state;
    must(load(&module, "FAKECUBIN arch=90 entry=plain(4,56,16),bounded"));
    must(cuModuleGetFunction(&function, module, "plain"));
    must(cuModuleGetFunction(&again, module, "plain"));
    assert_ptr_equal(function, again);
    params_are(function, 3, offsets, sizes);
    assert_int_equal(cuModuleGetFunction(&again, module, "other"), FL_CUDA_ERROR_NOT_FOUND);
    must(cuModuleGetFunction(&again, module, "bounded"));
    params_are(again, 0, NULL, NULL);
    must(cuModuleUnload(module));
}

static void ptx_loads(void **state)
{
    static const size_t offsets[] = {0, 56, 64, 68}, sizes[] = {56, 8, 4, 1};
    CUmodule module;
    CUfunction function;

    (void)state;
    must(load(&module, ".version 7.8\n.target sm_80\n.address_size 64\n"
                       ".visible .entry plain(\n\t.param .align 8 .b8 plain_param_0[56],\n"
                       "\t.param .u64 plain_param_1,\n\t.param .f32 plain_param_2,\n"
                       "\t.param .u8 plain_param_3\n)\n{\n\tret;\n}\n"
                       ".visible .entry bounded()\n{\n\tret;\n}\n"));
    must(cuModuleGetFunction(&function, module, "plain"));
    params_are(function, 4, offsets, sizes);
    must(cuModuleGetFunction(&function, module, "bounded"));
    params_are(function, 0, NULL, NULL);
    must(cuModuleUnload(module));
    assert_int_equal(load(&module, ".version 8.7\n.target sm_120\n.entry plain(){}"),
                     FL_CUDA_ERROR_INVALID_PTX);
}

static void bad_images_are_refused(void **state)
{
    char log[128] = "";
    CUjit_option options[] = {FL_CU_JIT_ERROR_LOG_BUFFER, FL_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    CUmodule module;

    (void)state;
    assert_int_equal(load(&module, "no image"), FL_CUDA_ERROR_INVALID_IMAGE);
    assert_int_equal(load(&module, "FAKECUBIN arch=90 entry=plain(4"), FL_CUDA_ERROR_INVALID_IMAGE);
    assert_int_equal(load(&module, "FAKECUBIN arch=100 entry=plain"),
                     FL_CUDA_ERROR_NO_BINARY_FOR_GPU);
    assert_int_equal(load(&module, "FAKECUBIN arch=80 entry=plain"),
                     FL_CUDA_ERROR_NO_BINARY_FOR_GPU);
    assert_int_equal(
        cuModuleLoadDataEx(&module, "FAKECUBIN arch=90 entry=orphan", 2, options, values),
        FL_CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND);
    assert_string_equal(log, "the kernel orphan has no host twin");
}

/* --- filch's kernels --- */

typedef struct arguments {
    double factor;
    int shift;
} arguments;

static int scale_twin(const filch_call *call)
{
    const arguments *a = call->args;
    const filch_view *x = &call->views[0], *y = &call->views[1];

    for (uint64_t c = 0; c < x->cols; c++) {
        for (uint64_t r = call->lo; r < call->hi; r++) {
            ((double *)y->ptr)[c * y->ld + r] =
                ((const double *)x->ptr)[c * x->ld + r] * a->factor + a->shift;
        }
    }
    return call->view_count == 2 && call->device == 0 ? 0 : 1;
}

static void filch_kernels_get_their_call(void **state)
{
    arguments given = {2.0, 1};
    uint64_t range[2] = {1, 3};
    CUmodule module;
    CUfunction function;
    CUstream stream;
    CUdeviceptr memory;

    (void)state;
    fakecuda_register_filch("scale", scale_twin, 2, true, sizeof given);
    must(load(&module, "FAKECUBIN arch=90 entry=scale(56,56,16,16)"));
    must(cuModuleGetFunction(&function, module, "scale"));
    must(cuStreamCreate(&stream, FL_CU_STREAM_NON_BLOCKING));
    must(cuMemAlloc_v2(&memory, 16 * sizeof(double)));
    double *cells = fakecuda_peek((void *)(uintptr_t)memory, 16 * sizeof(double));
    for (int i = 0; i < 16; i++)
        cells[i] = i < 8 ? i : -1;
    /* Two columns of three rows, four apart; then the same behind them. */
    filch_view x = {(void *)(uintptr_t)memory, 3, 2, 4, 0, 0, 8};
    filch_view y = {(void *)(uintptr_t)(memory + 64), 3, 2, 4, 0, 0, 8};
    void *params[] = {&x, &y, range, &given};
    must(cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, stream, params, NULL));
    given.factor = 0; /* copied at the launch */
    must(cuStreamSynchronize(stream));
    for (int i = 0; i < 8; i++)
        assert_true(cells[8 + i] == (i % 4 == 1 || i % 4 == 2 ? 2.0 * i + 1 : -1.0));
    must(cuMemFree_v2(memory));
    must(cuStreamDestroy_v2(stream));
    must(cuModuleUnload(module));
}

/* Images that do not tell their parameters have those of the public contract. */
static void filch_brings_twins(void **state)
{
    const filch_kernel *kernel;
    size_t count = 0;

    (void)state;
    fake_twins_register();
    for (; (kernel = filch_kernel_at(count)) != NULL; count++) {
        size_t offsets[16], sizes[16], params = 0, at = 0;
        char image[128];
        CUmodule module;
        CUfunction function;
        for (; params < kernel->view_count; params++)
            sizes[params] = sizeof(filch_view);
        if (kernel->is_batch)
            sizes[params++] = 16;
        if (kernel->arg_size > 0)
            sizes[params++] = kernel->arg_size;
        for (size_t i = 0; i < params; i++) {
            offsets[i] = at;
            at += (sizes[i] + 7) / 8 * 8;
        }
        (void)snprintf(image, sizeof image, "FAKECUBIN arch=90 entry=%s", kernel->cuda->entry);
        must(load(&module, image));
        must(cuModuleGetFunction(&function, module, kernel->cuda->entry));
        params_are(function, params, offsets, sizes);
        must(cuModuleUnload(module));
    }
    assert_true(count > 0);
}

/* --- Real cubins --- */

#define SOURCE                                                                           \
    "struct view { void *p; unsigned long long a, b, c, d, e, f; };"                     \
    "struct args { double x; int y; char z; };"                                          \
    "extern \"C\" __global__ void plain(view a, view b, args x)"                         \
    "{ __shared__ int q[32]; q[threadIdx.x] = x.y; __syncthreads();"                     \
    "  ((double *)a.p)[threadIdx.x] = ((double *)b.p)[0] * x.x + q[31 - threadIdx.x]; }" \
    "extern \"C\" __global__ __launch_bounds__(256) void bounded() {}"

typedef struct compiler {
    int (*create)(void **program, const char *source, const char *name, int count, void *headers,
                  void *names);
    int (*compile)(void *program, int count, const char *const *options);
    int (*cubin_size)(void *program, size_t *size);
    int (*cubin)(void *program, char *out);
    int (*ptx_size)(void *program, size_t *size);
    int (*ptx)(void *program, char *out);
    int (*destroy)(void **program);
} compiler;

static bool compiler_load(compiler *c)
{
    static const char *const names[] = {"libnvrtc.so.13", "/usr/local/cuda/lib64/libnvrtc.so.13",
                                        "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so.12"};
    const struct {
        const char *name;
        void *into;
    } symbols[] = {{"nvrtcCreateProgram", &c->create},    {"nvrtcCompileProgram", &c->compile},
                   {"nvrtcGetCUBINSize", &c->cubin_size}, {"nvrtcGetCUBIN", &c->cubin},
                   {"nvrtcGetPTXSize", &c->ptx_size},     {"nvrtcGetPTX", &c->ptx},
                   {"nvrtcDestroyProgram", &c->destroy}};
    void *library = NULL;

    const char *given = getenv("FILCH_NVRTC");
    if (given != NULL)
        library = dlopen(given, RTLD_NOW);
    for (size_t i = 0; given == NULL && i < sizeof names / sizeof names[0] && library == NULL; i++)
        library = dlopen(names[i], RTLD_NOW);
    if (library == NULL)
        return false;
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *found = dlsym(library, symbols[i].name);
        assert_non_null(found);
        memcpy(symbols[i].into, &found, sizeof found);
    }
    return true;
}

/* The image for sm_NN, or as PTX; to be freed. Null: the compiler does not know the target. */
static char *image_make(const compiler *c, const char *target, bool is_ptx)
{
    char option[64], *image;
    const char *options[] = {option};
    void *program;
    size_t size;

    (void)snprintf(option, sizeof option, "--gpu-architecture=%s", target);
    assert_int_equal(c->create(&program, SOURCE, "source.cu", 0, NULL, NULL), 0);
    if (c->compile(program, 1, options) != 0) {
        (void)c->destroy(&program);
        return NULL;
    }
    assert_int_equal((is_ptx ? c->ptx_size : c->cubin_size)(program, &size), 0);
    image = malloc(size);
    assert_non_null(image);
    assert_int_equal((is_ptx ? c->ptx : c->cubin)(program, image), 0);
    assert_int_equal(c->destroy(&program), 0);
    return image;
}

static void image_checks(const char *image, int shared)
{
    static const size_t offsets[] = {0, 56, 112}, sizes[] = {56, 56, 16};
    CUmodule module;
    CUfunction function;

    must(load(&module, image));
    must(cuModuleGetFunction(&function, module, "plain"));
    params_are(function, 3, offsets, sizes);
    assert_int_equal(attribute(function, FL_CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), shared);
    assert_int_equal(attribute(function, FL_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES),
                     49152 - shared);
    must(cuModuleGetFunction(&function, module, "bounded"));
    params_are(function, 0, NULL, NULL);
    must(cuModuleUnload(module));
}

static void cubins_are_read(void **state)
{
    static const int targets[] = {75, 80, 86, 89, 90, 100, 120};
    compiler c;

    (void)state;
    if (!compiler_load(&c)) {
        print_message("no NVRTC: skipped\n");
        skip();
    }
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        char text[128], target[16];
        CUmodule module;
        CUfunction function;
        (void)snprintf(target, sizeof target, "sm_%d", targets[i]);
        char *image = image_make(&c, target, false);
        if (image == NULL)
            continue;
        (void)snprintf(text, sizeof text, "{\"devices\": [{\"arch\": \"%d.%d\"}]}", targets[i] / 10,
                       targets[i] % 10);
        must(cuCtxSetCurrent(NULL));
        must(cuDevicePrimaryCtxRelease_v2(0));
        assert_true(fakecuda_configure(text));
        must(cuInit(0));
        must(cuDevicePrimaryCtxRetain(&context, 0));
        must(cuCtxSetCurrent(context));
        image_checks(image, 128);
        must(load(&module, image));
        must(cuModuleGetFunction(&function, module, "bounded"));
        assert_int_equal(attribute(function, FL_CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 256);
        assert_int_equal(attribute(function, FL_CU_FUNC_ATTRIBUTE_BINARY_VERSION), targets[i]);
        must(cuModuleGetFunction(&function, module, "plain"));
        assert_int_equal(attribute(function, FL_CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 1024);
        must(cuModuleUnload(module));
        free(image);
    }
}

static void cubins_of_others_are_refused(void **state)
{
    compiler c;
    CUmodule module;

    (void)state;
    if (!compiler_load(&c)) {
        print_message("no NVRTC: skipped\n");
        skip();
    }
    char *image = image_make(&c, "sm_80", false);
    assert_non_null(image);
    assert_int_equal(load(&module, image), FL_CUDA_ERROR_NO_BINARY_FOR_GPU);
    free(image);
    image = image_make(&c, "compute_80", true);
    assert_non_null(image);
    image_checks(image, 0);
    free(image);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(text_images_load),
        TEST(ptx_loads),
        TEST(bad_images_are_refused),
        TEST(filch_kernels_get_their_call),
        TEST(filch_brings_twins),
        TEST(cubins_are_read),
        TEST(cubins_of_others_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
