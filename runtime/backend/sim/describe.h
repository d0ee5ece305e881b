/* SPDX-License-Identifier: Apache-2.0 */
/* Models read from the simulator's JSON file (format in sim.h). */
#ifndef FL_BACKEND_SIM_DESCRIBE_H
#define FL_BACKEND_SIM_DESCRIBE_H

#include "backend/backend.h"
#include "backend/sim/pace.h"

#define FL_SIM_FILE_LIMIT 1048576
#define FL_SIM_NAME_LIMIT 48
#define FL_SIM_CODELET_LIMIT 63

/* One direction of a copy's way. */
typedef struct fl_sim_way {
    double rate; /* bytes a second; 0: no way */
    double latency_us;
} fl_sim_way;

/* Link between a device's memory and the host's. */
typedef struct fl_sim_link {
    fl_sim_way in, out;
    double column_us;                /* of each column of a copy whose columns are apart */
    bool is_half;                    /* both directions take turns */
    char bus[FL_SIM_NAME_LIMIT + 1]; /* name of the bus: links of a bus take turns; empty: no bus */
} fl_sim_link;

/* Codelet whose launch keeps the worker until the work item is over, and for `us` after the end. */
typedef struct fl_sim_keep {
    char name[FL_SIM_CODELET_LIMIT + 1];
    double us;
} fl_sim_keep;

/* Times of a worker that polls for the ends of work items, as a GPU's worker does. */
typedef struct fl_sim_host {
    double launch_us; /* from a launch to the item's earliest start: the worker does nothing else */
    double copy_us;   /* from a copy's call to the copy's earliest start */
    double see_us;    /* time for seeing items to be over, before the worker does anything else */
    fl_sim_keep *keeps;
    size_t keep_count;
} fl_sim_host;

/* An element of "devices"; every member is within its range. */
typedef struct fl_sim_model {
    char name[FL_SIM_NAME_LIMIT + 1]; /* empty: not given */
    double speed;                     /* units of work a second, before the first step */
    fl_pace_step *steps;              /* changes of the speed, step_count of them */
    size_t step_count;
    double joins_at, lost_at;     /* seconds; infinite: never */
    double leaves_at, returns_at; /* seconds; infinite: never */
    double overhead_us;
    double score;
    double misread_by;
    uint64_t misread_tile; /* 0: none */
    uint64_t memory;
    uint32_t window, lanes;
    bool has_window, has_lanes;
    uint32_t count;
    uint32_t implementations; /* FL_IMPL_* bits */
    bool has_link, has_host;
    fl_sim_link link;
    fl_sim_host host;
    /* name of the device sharing its memory; empty: the device has its own memory */
    char shares[FL_SIM_NAME_LIMIT + 1];
    /* index of the element owning the memory; the element's own index without sharing */
    size_t home;
} fl_sim_model;

/* Way from a device's memory straight to another device's. */
typedef struct fl_sim_peer {
    /* names of devices, or of elements */
    char from[FL_SIM_NAME_LIMIT + 1], to[FL_SIM_NAME_LIMIT + 1];
    fl_sim_way way;
} fl_sim_peer;

typedef struct fl_sim_description {
    fl_sim_model *models;
    size_t count;
    bool has_links; /* every device has a link, and a memory of its own for tiles */
    fl_sim_peer *peers;
    size_t peer_count;
} fl_sim_description;

/* Reads the file at path. Statuses as in sim.h; *description is set on success only. */
filch_status fl_sim_describe(fl_sim_description *description, const char *path,
                             const fl_discovery *how);
/* Reads size bytes of text, like fl_sim_describe; path only names the text in errors. */
filch_status fl_sim_describe_text(fl_sim_description *description, const char *path,
                                  const char *text, size_t size, const fl_discovery *how);
void fl_sim_description_free(fl_sim_description *description, const fl_memory *memory);

#endif
