/* SPDX-License-Identifier: Apache-2.0 */
/* Registry of the CPUs to which threads of filch are bound, over every runtime and process. A
 * runtime uses the registry to warn the host where threads of two runtimes are bound to a common
 * CPU and take turns.
 *
 * A claim is a read lock of an open file description (fcntl(2), F_OFD_SETLK) on bytes far beyond
 * the end of a file that every process can read: a byte for every CPU and process. Read locks
 * exclude nobody and wait for nobody. The kernel drops the locks when the process ends, however the
 * process ends. Claims write nothing and make no file. Where the system lacks the file or the
 * locks, e.g. in a container that hides the file, claims do nothing. */
#ifndef FL_DEVICE_CPU_CLAIM_H
#define FL_DEVICE_CPU_CLAIM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/log.h"

struct fl_pool;

/* File of the system, equal for every process that sees the system's /sys. */
#define FL_CPU_CLAIM_FILE "/sys/devices/system/cpu/possible"

typedef struct fl_cpu_claim {
    int file; /* -1: no file */
    dev_t device;
    ino_t inode;
    int64_t owner; /* offset of the process's byte within a CPU's bytes */
} fl_cpu_claim;

/* Opens the file; after a failure the claim does nothing. Refuses a symbolic link. */
void fl_cpu_claim_open(fl_cpu_claim *claim, const char *path);
/* Claims a CPU below 1,024. */
void fl_cpu_claim_take(const fl_cpu_claim *claim, unsigned cpu);
/* Returns whether a claim of a second process holds the CPU. *process: a process that holds the
 * CPU; 0: the process is in a foreign name space. When two processes take and then ask, at least
 * one finds the other. */
bool fl_cpu_claim_has_rival(const fl_cpu_claim *claim, unsigned cpu, pid_t *process);
/* Returns whether a second claim of the calling process holds the CPU. */
bool fl_cpu_claim_has_twin(const fl_cpu_claim *claim, unsigned cpu);
/* Drops every claim, also where a forked child still has the file. */
void fl_cpu_claim_close(fl_cpu_claim *claim);

/* Claims the CPUs of the pool's pinned devices. Warns once where other processes claim some of the
 * CPUs, and once where other runtimes of the process do. */
void fl_cpu_claim_pool(const fl_cpu_claim *claim, const struct fl_pool *pool, const fl_log *log);

#endif
