/* SPDX-License-Identifier: Apache-2.0 */
/* Power and clocks of the runtime's GPUs, read by NVML on a thread of its own while a trace records
 * and jobs are in progress. Memory is bounded: once a GPU's rows are full, every second one goes,
 * and half as many are kept from then on. Means, extremes and shares count every sample. */
#ifndef FL_OBSERVE_METER_H
#define FL_OBSERVE_METER_H

#include <stdio.h>

#include "base/core.h"
#include "observe/nvml.h"

#define FL_METER_PERIOD_NS 20000000u
#define FL_METER_ROWS 4096u

/* A quantity over all samples; why: the first failure, or empty. */
typedef struct fl_meter_sum {
    uint64_t count, sum;
    unsigned least, most;
    char why[FL_NVML_WHY];
} fl_meter_sum;

typedef struct fl_meter_row {
    uint64_t at;        /* ns */
    unsigned power;     /* mW; 0: not read */
    unsigned clock;     /* MHz; 0: not read */
    unsigned held_down; /* FL_NVML_REASON_*, or 0 */
} fl_meter_row;

/* A GPU; slices of one GPU share it. */
typedef struct fl_meter_gpu {
    const char *address; /* PCI address, of the device's description */
    void *handle;
    char why[FL_NVML_WHY];              /* why the GPU was not found, or empty */
    fl_meter_sum power, clock, reasons; /* of the reasons only the count and why */
    uint64_t by_power, by_heat;         /* samples in which clocks were held down */
    uint64_t stride, skipped;           /* every stride-th sample becomes a row */
    size_t row_count;
    fl_meter_row *rows; /* FL_METER_ROWS; null until the first start */
} fl_meter_gpu;

typedef struct fl_meter {
    fl_core *core;
    bool (*is_active)(const fl_core *core);
    uint32_t device_count, gpu_count;
    uint32_t *gpu_of;       /* by device: number of its GPU, or FL_METER_NO_GPU */
    _Atomic uint32_t state; /* of the thread (meter.c) */
    fl_thread thread;
    fl_mutex lock;         /* guards the texts, the sums and the rows */
    fl_cond ends;          /* the meter ends */
    char why[FL_NVML_WHY]; /* why NVML cannot be used, or empty */
    fl_meter_gpu *gpus;    /* device_count elements */
} fl_meter;

#define FL_METER_NO_GPU UINT32_MAX

/* Makes a meter for devices of which none is a GPU yet. is_active tells, on the meter's thread,
 * whether to sample. FILCH_OUT_OF_MEMORY, FILCH_SYSTEM. */
filch_status fl_meter_init(fl_meter *meter, fl_core *core, uint32_t device_count,
                           bool (*is_active)(const fl_core *core));
/* Notes that a device is the GPU with the PCI address, or a slice of it; before the first start.
 * The text lives as long as the meter. */
void fl_meter_add(fl_meter *meter, uint32_t device, const char *address);
/* Ends the thread: waits at most for a call of NVML under way. */
void fl_meter_fini(fl_meter *meter);
/* Starts to sample, unless FILCH_NVML is "off" or there is no GPU. One thread at a time.
 * FILCH_OUT_OF_MEMORY, FILCH_SYSTEM. */
filch_status fl_meter_start(fl_meter *meter);
/* Keeps a row, unless it is not the turn of a stride-th sample. */
void fl_meter_keep(fl_meter_gpu *gpu, fl_meter_row row);
/* Stops sampling by the end of the period. Any thread; wait-free. */
void fl_meter_stop(fl_meter *meter);
/* Writes the member "power", after a comma, if there is a GPU. With rows, times count from origin.
 * Any thread; holds up the meter's thread. */
void fl_meter_write(FILE *file, fl_meter *meter, bool with_rows, uint64_t origin);

#endif
