/* SPDX-License-Identifier: Apache-2.0 */
/* Structure of a batch, for the two files that make batches: of every item (batch.c), or of the
 * rest of an earlier batch (batch_rest.c). job.h has the functions for the remaining code. */
#ifndef FL_GRAPH_JOB_BATCH_H
#define FL_GRAPH_JOB_BATCH_H

#include "graph/job/job.h"

/* A stretch of a rest. Grains are numbered without gaps, and ranges can be cut anywhere. A rest
 * consists of stretches: grains that are also consecutive in the whole batch. */
typedef struct fl_stretch {
    uint32_t end;   /* number after the stretch's last grain, counted in the rest */
    uint32_t shift; /* difference of a grain's number in the whole to its number in the rest */
} fl_stretch;

struct fl_batch {
    size_t bytes; /* size of the allocation */
    filch_codelet *codelet;
    const uint64_t *devices;                /* bit set of the devices that may run the batch */
    uint64_t fitting[FL_DEVICE_LIMIT / 64]; /* devices with enough memory for the batch */
    void *args;
    uint64_t n, grain; /* items and grain size of the whole batch */
    /* Beginnings of the grains where written tiles have unlike sizes: cuts + 1 item numbers. Null:
     * every grain begins at a multiple of grain. */
    uint64_t *bounds;
    uint64_t items;  /* number of items to run */
    uint32_t grains; /* number of grains to run */
    uint32_t cuts;   /* grains of the whole */
    uint32_t access_count;
    uint32_t stretch_count; /* 0: not a rest, or an empty rest */
    fl_stretch *stretches;  /* ascending */
    filch_batch_access *accesses;
    fl_queued_access *uses; /* one use per distinct handle */
    size_t use_count;
};

/* Makes a batch with copies of the descriptor's contents and of the set of devices (null: the
 * devices able to run the codelet), and with room for stretches. A batch without items uses no
 * handle. The caller sets grain, grains, cuts and the stretches. Null: no memory. */
fl_batch *fl_batch_make(fl_core *core, const filch_batch_desc *desc, uint64_t items,
                        uint32_t stretches, const uint64_t *devices);
/* Submits a batch. The job owns the batch from here on; on failure the batch is freed. job may be
 * null; is_lent: see fl_job_lend(). */
filch_status fl_batch_start(fl_core *core, fl_batch *batch, const filch_submit_desc *submit,
                            const char *call, bool is_lent, filch_job **job);
/* filch_batch_submit(), for a core; is_lent: see fl_job_lend(). */
filch_status fl_batch_submit(fl_core *core, const filch_batch_desc *desc,
                             const filch_submit_desc *submit, bool is_lent, filch_job **job);

#endif
