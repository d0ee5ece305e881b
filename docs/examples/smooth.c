/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of damped Jacobi, x := x + omega r / d, as batches that every GPU and, where
 * FILCH_DEVICES says so, cores of the host share. One codelet has both implementations. */
#include <math.h>
#include <stdio.h>

#include <filch/filch.h>

/* README begins here. */
static const char source[] =
    "#include \"filch/kernel.h\"\n"
    "extern \"C\" __global__ void smooth(filch_view x, filch_view r, filch_view d,\n"
    "                                  filch_range rows, double omega)\n"
    "{\n"
    "    for (unsigned long long i = filch_thread(); i < rows.hi - rows.lo; i += filch_threads())\n"
    "        filch_at<double>(x, i) += omega * filch_at<double>(r, i) / filch_at<double>(d, i);\n"
    "}\n";

static int smooth(const filch_call *call) /* the same on a core of the host */
{
    double omega = *(const double *)call->args, *x = call->views[0].ptr;
    const double *r = call->views[1].ptr, *d = call->views[2].ptr;
    for (uint64_t i = 0; i < call->hi - call->lo; i++)
        x[i] += omega * r[i] / d[i];
    return 0;
}

static filch_status make(filch_runtime *rt, filch_codelet **codelet)
{
    filch_cuda_desc cuda = {.size = sizeof cuda, .source = source, .entry = "smooth",
                            .shape = {.grid = {1024}, .block = {256}}};
    filch_codelet_desc desc = {.size = sizeof desc, .name = "smooth", .host = smooth,
                               .cuda = &cuda, .arg_size = sizeof(double)};
    return filch_codelet_create(rt, &desc, codelet); /* compiles for each kind of GPU there is */
}
/* README ends here. */

static filch_data *vector(filch_runtime *runtime, double *values, uint64_t n)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;
    desc.ptr = values;
    desc.element = sizeof *values;
    desc.rows = n;
    desc.tile_rows = 4096;           /* chunks are cut between tiles */
    desc.flags = FILCH_DATA_MANAGED; /* stays where it was used last, until it is acquired */
    filch_data_create(runtime, &desc, &data);
    return data; /* null is refused by filch_batch_submit */
}

static int step(filch_runtime *runtime, filch_codelet *codelet, filch_data *const *vectors,
                uint64_t n, double omega, filch_error *error)
{
    const filch_batch_access accesses[] = {
        {.data = vectors[0], .mode = FILCH_READWRITE, .map = FILCH_MAP_AFFINE, .scale = 1},
        {.data = vectors[1], .mode = FILCH_READ, .map = FILCH_MAP_AFFINE, .scale = 1},
        {.data = vectors[2], .mode = FILCH_READ, .map = FILCH_MAP_AFFINE, .scale = 1},
    };
    filch_batch_desc batch = FILCH_BATCH_DESC_INIT;
    batch.codelet = codelet;
    batch.args = &omega;
    batch.n = n;
    batch.accesses = accesses;
    batch.access_count = 3;
    return filch_batch_run(runtime, &batch, NULL, error) != FILCH_OK;
}

int main(void)
{
    enum { N = 1000000, STEPS = 3 };
    static double x[N], r[N], d[N];
    for (int i = 0; i < N; i++) {
        x[i] = 1;
        r[i] = i % 1000 - 500;
        d[i] = 2 + i % 7;
    }

    filch_error error = FILCH_ERROR_INIT;
    filch_runtime *runtime = NULL;
    filch_codelet *codelet = NULL;
    if (filch_runtime_create(NULL, &error, &runtime) != FILCH_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    filch_data *vectors[] = {vector(runtime, x, N), vector(runtime, r, N), vector(runtime, d, N)};
    int bad = make(runtime, &codelet) != FILCH_OK;
    if (bad)
        filch_runtime_error(runtime, &error);
    for (int k = 0; k < STEPS && !bad; k++)
        bad = step(runtime, codelet, vectors, N, 0.5, &error);
    if (!bad && filch_data_acquire(vectors[0], FILCH_READ) != FILCH_OK) /* bring it home */
        bad = 1, filch_runtime_error(runtime, &error);
    if (bad)
        fprintf(stderr, "%s: %s\n", filch_status_message(error.status), error.text);
    filch_runtime_abort(runtime); /* and all that was made from it */

    double worst = 0;
    for (int i = 0; i < N; i++)
        worst = fmax(worst, fabs(x[i] - (1 + STEPS * 0.5 * r[i] / d[i])));
    printf("n = %d, largest error = %.1e\n", N, worst);
    return bad || !(worst < 1e-10);
}
