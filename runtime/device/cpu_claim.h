/* SPDX-License-Identifier: Apache-2.0 */
/* Which CPUs threads of filch are bound to, over all runtimes and processes, so that a runtime can
 * warn its host where threads of two runtimes are bound to one CPU and take turns.
 *
 * A claim is a read lock of an open file description (fcntl(2), F_OFD_SETLK) on bytes far beyond
 * the end of a file that every process can read: one byte for each CPU and process. Read locks
 * exclude nobody and wait for nobody. The kernel drops them when the process ends, however it ends.
 * Nothing is written and no file is made. Where the system has no such file or locks, as where a
 * container hides it, claims do nothing. */
#ifndef FL_DEVICE_CPU_CLAIM_H
#define FL_DEVICE_CPU_CLAIM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/log.h"

struct fl_pool;

/* The system's, and the same for all processes that see one /sys. */
#define FL_CPU_CLAIM_FILE "/sys/devices/system/cpu/possible"

typedef struct fl_cpu_claim {
    int file; /* -1: there is none */
    dev_t device;
    ino_t inode;
    int64_t owner; /* of this process, within a CPU's bytes */
} fl_cpu_claim;

/* Opens the file; where that fails the claim does nothing. A symbolic link is refused. */
void fl_cpu_claim_open(fl_cpu_claim *claim, const char *path);
/* Claims a CPU below 1,024. */
void fl_cpu_claim_take(const fl_cpu_claim *claim, unsigned cpu);
/* Whether another process's claim holds the CPU. *process: one that does; 0: of another name space.
 * Of two processes that take and then ask, one at least finds the other. */
bool fl_cpu_claim_has_rival(const fl_cpu_claim *claim, unsigned cpu, pid_t *process);
/* Whether another claim of this process holds the CPU. */
bool fl_cpu_claim_has_twin(const fl_cpu_claim *claim, unsigned cpu);
/* Drops all of it, also where a forked child still has the file. */
void fl_cpu_claim_close(fl_cpu_claim *claim);

/* Claims the CPUs of the pool's pinned devices. Warns once where other processes have some, and
 * once where other runtimes of this process do. */
void fl_cpu_claim_pool(const fl_cpu_claim *claim, const struct fl_pool *pool, const fl_log *log);

#endif
