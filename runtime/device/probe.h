/* SPDX-License-Identifier: Apache-2.0 */
/* Access to a GPU for code beside the runtime's tasks, and a record of failures on the GPU. */
#ifndef FL_DEVICE_PROBE_H
#define FL_DEVICE_PROBE_H

#include "backend/backend.h"
#include "base/thread.h"

struct fl_pool;

/* Record of a build step that ran. */
typedef struct fl_probe_record {
    char label[64];
    uint32_t ordinal;
    int32_t code; /* code returned by the step */
} fl_probe_record;

typedef struct fl_probes {
    fl_mutex lock; /* protects every member below; held while a build step runs */
    fl_probe_record *records;
    size_t count;
    size_t capacity;
    fl_device *late; /* devices left out when the pool was opened, and opened since; every device
                        separately */
    size_t late_count;
    size_t late_capacity;
    bool is_ready;
} fl_probes;

filch_status fl_probes_init(fl_probes *probes);
/* Closes the late devices. */
void fl_probes_fini(fl_probes *probes, const fl_memory *memory);

/* Implements filch_device_probe without checks of the handles. how->error receives the failure;
 * how->settings serves to open a GPU that was left out. Any thread. */
filch_status fl_pool_probe(struct fl_pool *pool, filch_runtime *runtime, const char *label,
                           const filch_probe_desc *desc, const fl_discovery *how,
                           filch_probe *probe);

#endif
