/* SPDX-License-Identifier: Apache-2.0 */
/* The part of NVML (nvml.h) that reads power and clocks of a GPU, from a library loaded at run
 * time. Nothing here changes a setting of a GPU. */
#ifndef FL_OBSERVE_NVML_H
#define FL_OBSERVE_NVML_H

#include <stdbool.h>
#include <stddef.h>

#define FL_NVML_LIBRARY "libnvidia-ml.so.1"
/* Bytes of a text that tells why something was not measured. */
#define FL_NVML_WHY 256

/* nvmlClockType_t: the clock of the multiprocessors. */
#define FL_NVML_CLOCK_SM 1
/* Reasons for clocks below the highest, as bits: a limit of the power, by the driver or by the
 * board; a temperature, likewise. */
#define FL_NVML_REASON_POWER (0x4u | 0x80u)
#define FL_NVML_REASON_HEAT (0x20u | 0x40u)

typedef struct fl_nvml {
    void *library; /* null: closed */
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error_string)(int code);
    int (*handle_by_address)(const char *address, void **handle);
    int (*power)(void *handle, unsigned *milliwatts);
    int (*clock)(void *handle, int type, unsigned *megahertz);
    int (*reasons)(void *handle, unsigned long long *reasons);
} fl_nvml;

/* Loads and starts the library of the path; empty: FL_NVML_LIBRARY. False: closed, and why tells
 * the reason. */
bool fl_nvml_open(fl_nvml *nvml, const char *path, char why[FL_NVML_WHY]);
void fl_nvml_close(fl_nvml *nvml);
/* Finds a GPU by its PCI address. False: why tells the reason. */
bool fl_nvml_find(const fl_nvml *nvml, const char *address, void **handle, char why[FL_NVML_WHY]);
/* Tells whether a call succeeded. False: why tells the call and the reason. */
bool fl_nvml_is_ok(const fl_nvml *nvml, int code, const char *call, char why[FL_NVML_WHY]);

#endif
