/* SPDX-License-Identifier: Apache-2.0 */
#include "steps.h"

filch_codelet *step_codelets[STEP_MOST_READS + 1];
bool step_fails_now;

static const char source[] =
    "#include \"filch/kernel.h\"\n" GPU_MIX "struct arguments { u64 seed, keeps, fails; };\n"
    "static __device__ u64 pick(const filch_view &in, u64 value, u64 e)\n"
    "{\n"
    "    u64 k = (e * 7 + 3) % (in.rows * in.cols);\n"
    "    return mix(value, ((const u64 *)in.ptr)[k % in.rows + k / in.rows * in.ld]);\n"
    "}\n"
    "static __device__ void step(const filch_view *a, const filch_view *b, const filch_view &out,\n"
    "                            const arguments &args)\n"
    "{\n"
    "    for (u64 e = blockIdx.x * blockDim.x + threadIdx.x; e < out.rows * out.cols;\n"
    "         e += gridDim.x * blockDim.x) {\n"
    "        u64 i = e % out.rows, j = e / out.rows;\n"
    "        u64 *to = (u64 *)out.ptr + i + j * out.ld;\n"
    "        u64 value = mix(args.seed, (out.row + i) * 65537 + out.col + j);\n"
    "        if (a)\n"
    "            value = pick(*a, value, e);\n"
    "        if (b)\n"
    "            value = pick(*b, value, e);\n"
    "        *to = args.keeps ? mix(value, *to) : value;\n"
    "    }\n"
    "}\n"
    "extern \"C\" __global__ void step0(filch_view out, arguments args)\n"
    "{ step(0, 0, out, args); }\n"
    "extern \"C\" __global__ void step1(filch_view a, filch_view out, arguments args)\n"
    "{ step(&a, 0, out, args); }\n"
    "extern \"C\" __global__ void step2(filch_view a, filch_view b, filch_view out, "
    "arguments args)\n"
    "{ step(&a, &b, out, args); }\n";

void step_do(const filch_view *views, uint32_t reads, const step_args *args)
{
    const filch_view *out = &views[reads];
    for (uint64_t e = 0; e < out->rows * out->cols; e++) {
        uint64_t i = e % out->rows, j = e / out->rows;
        uint64_t *to = (uint64_t *)out->ptr + i + j * out->ld;
        uint64_t value = gpu_mix(args->seed, (out->row + i) * 65537 + out->col + j);
        for (uint32_t r = 0; r < reads; r++) {
            uint64_t k = (e * 7 + 3) % (views[r].rows * views[r].cols);
            value = gpu_mix(value, ((const uint64_t *)views[r]
                                        .ptr)[k % views[r].rows + k / views[r].rows * views[r].ld]);
        }
        *to = args->keeps ? gpu_mix(value, *to) : value;
    }
}

static int run_step(const filch_call *call)
{
    step_do(call->views, call->view_count - 1, call->args);
    return 0;
}

static int run_on_host(const filch_call *call)
{
    const step_args *args = call->args;
    return step_fails_now && args->fails ? STEP_FAIL_CODE : run_step(call);
}

/* A kernel cannot fail by itself and leave its device to others; its launch can. */
static int shape_step(const filch_call *call, filch_shape *shape)
{
    const step_args *args = call->args;
    (void)shape;
    return step_fails_now && args->fails ? STEP_FAIL_CODE : 0;
}

filch_status step_open(gpu_world *world)
{
    static const char *const entries[] = {"step0", "step1", "step2"};
    filch_status status = FILCH_OK;
    for (uint32_t r = 0; r <= STEP_MOST_READS; r++)
        gpu_twin(entries[r], run_step, r + 1, false, sizeof(step_args));
    for (uint32_t r = 0; r <= STEP_MOST_READS && status == FILCH_OK; r++)
        status = gpu_codelet(world->runtime, source, entries[r], run_on_host, sizeof(step_args),
                             shape_step, &step_codelets[r]);
    return status;
}
