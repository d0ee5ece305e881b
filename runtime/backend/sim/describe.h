/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator's JSON file (format in sim.h) as models. */
#ifndef FL_BACKEND_SIM_DESCRIBE_H
#define FL_BACKEND_SIM_DESCRIBE_H

#include "backend/backend.h"
#include "backend/sim/pace.h"

#define FL_SIM_FILE_LIMIT 1048576
#define FL_SIM_NAME_LIMIT 48
#define FL_SIM_CODELET_LIMIT 63

/* What a copy goes over, in one direction. */
typedef struct fl_sim_way {
    double rate; /* bytes a second; 0: there is none */
    double latency_us;
} fl_sim_way;

/* What joins a device's memory to the host's. */
typedef struct fl_sim_link {
    fl_sim_way in, out;
    bool is_half;                    /* both directions take turns */
    char bus[FL_SIM_NAME_LIMIT + 1]; /* links of the same bus take turns; empty: it is alone */
} fl_sim_link;

/* A codelet whose launch keeps the worker until the tile is over, and so long after. */
typedef struct fl_sim_keep {
    char name[FL_SIM_CODELET_LIMIT + 1];
    double us;
} fl_sim_keep;

/* What the worker of a device takes, which looks for the ends of tiles as a GPU's does. */
typedef struct fl_sim_host {
    double launch_us; /* from a launch to when the tile may begin: the worker does nothing else */
    double copy_us;   /* from a copy's call to when it may begin */
    double see_us;    /* when it sees tiles to be over, before it does anything else */
    fl_sim_keep *keeps;
    size_t keep_count;
} fl_sim_host;

/* One element of "devices"; every member is within its range. */
typedef struct fl_sim_model {
    char name[FL_SIM_NAME_LIMIT + 1]; /* empty: not given */
    double speed;                     /* units of work a second, at first … */
    fl_pace_step *steps;              /* … and as it changes, step_count times */
    size_t step_count;
    double joins_at, lost_at;     /* seconds; infinite: never */
    double leaves_at, returns_at; /* the same */
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
    char shares[FL_SIM_NAME_LIMIT + 1]; /* whose memory it shares; empty: it has its own … */
    size_t home;                        /* … and the element that is of: its own, too */
} fl_sim_model;

/* From one device's memory straight to another's. */
typedef struct fl_sim_peer {
    char from[FL_SIM_NAME_LIMIT + 1], to[FL_SIM_NAME_LIMIT + 1]; /* of devices, or of elements */
    fl_sim_way way;
} fl_sim_peer;

typedef struct fl_sim_description {
    fl_sim_model *models;
    size_t count;
    bool has_links; /* and so a memory each, that tiles are brought to */
    fl_sim_peer *peers;
    size_t peer_count;
} fl_sim_description;

/* Reads the file at path. Statuses as in sim.h; *description is set on success only. */
filch_status fl_sim_describe(fl_sim_description *description, const char *path,
                             const fl_discovery *how);
/* The same for size bytes of text; path only names them in errors. */
filch_status fl_sim_describe_text(fl_sim_description *description, const char *path,
                                  const char *text, size_t size, const fl_discovery *how);
void fl_sim_description_free(fl_sim_description *description, const fl_memory *memory);

#endif
