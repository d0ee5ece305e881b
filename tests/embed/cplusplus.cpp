// SPDX-License-Identifier: Apache-2.0
// The headers and initializers serve a C++17 program.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "filch/filch.h"

namespace
{

struct runtime_end {
    void operator()(filch_runtime *runtime) const
    {
        filch_runtime_destroy(runtime);
    }
};

struct scale_args {
    double factor;
    std::atomic<std::uint64_t> *items;
};

int scale(const filch_call *call)
{
    scale_args args;
    std::memcpy(&args, call->args, sizeof args);
    double *cells = static_cast<double *>(call->views[0].ptr);
    for (std::uint64_t i = 0; i < call->hi - call->lo; ++i) {
        cells[i] *= args.factor;
    }
    args.items->fetch_add(call->hi - call->lo, std::memory_order_relaxed);
    return 0;
}

bool failed(const char *what, filch_status status)
{
    if (status != FILCH_OK) {
        std::printf("%s: %s\n", what, filch_status_message(status));
    }
    return status != FILCH_OK;
}

} // namespace

int main()
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_error error = FILCH_ERROR_INIT;
    filch_runtime *raw = nullptr;
    config.devices = "host:2";
    if (failed("create", filch_runtime_create(&config, &error, &raw))) {
        return 1;
    }
    std::unique_ptr<filch_runtime, runtime_end> runtime(raw);
    std::vector<double> cells(10000, 2.0);
    std::atomic<std::uint64_t> items(0);
    scale_args args = {1.5, &items};

    filch_codelet_desc codelet_desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelet = nullptr;
    codelet_desc.name = "scale";
    codelet_desc.host = scale;
    codelet_desc.arg_size = sizeof args;
    filch_data_desc data_desc = FILCH_DATA_DESC_INIT;
    filch_data *data = nullptr;
    data_desc.ptr = cells.data();
    data_desc.element = sizeof cells[0];
    data_desc.rows = cells.size();
    if (failed("codelet", filch_codelet_create(raw, &codelet_desc, &codelet)) ||
        failed("data", filch_data_create(raw, &data_desc, &data))) {
        return 1;
    }
    filch_batch_access access = {};
    access.data = data;
    access.mode = FILCH_READWRITE;
    access.map = FILCH_MAP_AFFINE;
    access.scale = 1;
    filch_batch_desc batch = FILCH_BATCH_DESC_INIT;
    filch_job *job = nullptr;
    batch.codelet = codelet;
    batch.args = &args;
    batch.n = cells.size();
    batch.accesses = &access;
    batch.access_count = 1;
    if (failed("submit", filch_batch_submit(raw, &batch, nullptr, &job)) ||
        failed("wait", filch_job_wait(job, -1)) || failed("release", filch_job_release(job))) {
        return 1;
    }
    for (double cell : cells) {
        if (cell != 3.0) {
            std::printf("a cell is %g\n", cell);
            return 1;
        }
    }
    return items.load() == cells.size() ? 0 : 1;
}
