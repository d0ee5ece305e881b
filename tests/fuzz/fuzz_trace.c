/* SPDX-License-Identifier: Apache-2.0 */
/* Traces, as `sim --from` and the overlap of copies and kernels read them. */
#include "fuzz.h"

#include <math.h>

#include "measure/overlap.h"
#include "sim/sim_trace.h"

static void require_sound(const bench_sim_record *record)
{
    fuzz_require(record->tile_count > 0 && record->job_count > 0);
    for (size_t k = 0; k < record->tile_count; k++) {
        const bench_sim_tile *tile = &record->tiles[k];

        fuzz_require(tile->device < record->device_count && tile->codelet < record->codelet_count);
        fuzz_require(isfinite(tile->us) && tile->us >= 0 && tile->job < record->job_count);
    }
    for (size_t k = 0; k < record->copy_count; k++)
        fuzz_require(record->copies[k].device < record->device_count);
    for (size_t k = 0; k < record->job_count; k++)
        fuzz_require(record->jobs[k].first + record->jobs[k].count <= record->tile_count);
    for (uint32_t codelet = 0; codelet < record->codelet_count; codelet++)
        for (uint32_t device = 0; device < record->device_count; device++)
            fuzz_require(bench_sim_ratio(record, codelet, device) >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file(0, "trace", data, size);
    filch_error error = FILCH_ERROR_INIT;
    bench_overlap_result overlap;
    bench_sim_record record;
    filch_status status = bench_sim_record_read(&record, path, &error);

    if (status == FILCH_OK) {
        require_sound(&record);
        bench_sim_record_free(&record);
    } else {
        fuzz_require_error(&error, status);
    }
    if (bench_overlap_read(path, &overlap, &error) == FILCH_OK && overlap.is_known)
        fuzz_require(isfinite(overlap.seconds) && overlap.seconds > 0);
    return 0;
}
