/* SPDX-License-Identifier: Apache-2.0 */
/* A batch, for those who make one: of all items (batch.c), or the rest of another (batch_rest.c).
 * What all others ask of it is in job.h. */
#ifndef FL_GRAPH_JOB_BATCH_H
#define FL_GRAPH_JOB_BATCH_H

#include "graph/job/job.h"

/* Grains are counted without gaps, so that ranges of them can be cut anywhere. Those of a rest are
 * in stretches: grains that follow each other in the whole, too. */
typedef struct fl_stretch {
    uint32_t end;   /* one past its last grain, as the rest counts them */
    uint32_t shift; /* to be added for the number in the whole */
} fl_stretch;

struct fl_batch {
    size_t bytes; /* of the whole allocation */
    filch_codelet *codelet;
    const uint64_t *devices;                /* bit set of those that may run it */
    uint64_t fitting[FL_DEVICE_LIMIT / 64]; /* of those, the ones that have the memory for it */
    void *args;
    uint64_t n, grain; /* of the whole */
    uint64_t *bounds;  /* where written tiles are of unlike sizes: where its grains begin, cuts + 1
                          items; else null, and they are multiples of grain */
    uint64_t items;    /* to run */
    uint32_t grains;   /* to run */
    uint32_t cuts;     /* grains of the whole */
    uint32_t access_count;
    uint32_t stretch_count; /* 0: not a rest, or one of nothing */
    fl_stretch *stretches;  /* ascending */
    filch_batch_access *accesses;
    fl_queued_access *uses; /* one a distinct handle */
    size_t use_count;
};

/* A copy of what the descriptor says and of the set of devices (null: those that can run the
 * codelet), with room for stretches. No items: it uses no handle. grain, grains, cuts and the
 * stretches are the caller's to set. Null: no memory. */
fl_batch *fl_batch_make(fl_core *core, const filch_batch_desc *desc, uint64_t items,
                        uint32_t stretches, const uint64_t *devices);
/* Submits a batch, which is the job's from here on, or freed where that fails; job may be null. */
filch_status fl_batch_start(fl_core *core, fl_batch *batch, const filch_submit *submit,
                            const char *call, filch_job **job);

#endif
