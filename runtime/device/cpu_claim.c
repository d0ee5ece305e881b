/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "device/cpu_claim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/pool.h"

/* Position of a claim's byte: {CPU : 10, pid name space : 24, process : 22}. Linux has at most 2^22
 * processes, and numbers name spaces upwards from 0xf0000000. */
#define PROCESS_BITS 22
#define OWNER_BITS 46
#define PROCESS_MASK (((int64_t)1 << PROCESS_BITS) - 1)
#define SPACE_MASK (((int64_t)1 << (OWNER_BITS - PROCESS_BITS)) - 1)
/* Number of claims of dead processes that a search skips. The limit protects the search from a
 * process that fills the file with locks. */
#define MOST_DEAD 16
#define LIST_SIZE 96

static int64_t owner_read(void)
{
    struct stat space;
    int64_t number = stat("/proc/self/ns/pid", &space) == 0 ? (int64_t)space.st_ino : 0;

    return (number & SPACE_MASK) << PROCESS_BITS | ((int64_t)getpid() & PROCESS_MASK);
}

/* Moves the file above the standard streams: a host that closed the standard streams must not find
 * the file in their place. */
static int file_raise(int file)
{
    int raised;

    if (file < 0 || file > STDERR_FILENO)
        return file;
    raised = fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    (void)close(file);
    return raised;
}

void fl_cpu_claim_open(fl_cpu_claim *claim, const char *path)
{
    struct stat found;

    /* O_NONBLOCK: should the path be a pipe, the call does not wait for a writer. */
    *claim = (fl_cpu_claim){
        .file = file_raise(open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)),
        .owner = owner_read(),
    };
    if (claim->file < 0)
        return;
    if (fstat(claim->file, &found) != 0 || !S_ISREG(found.st_mode)) {
        (void)close(claim->file);
        claim->file = -1;
        return;
    }
    claim->device = found.st_dev;
    claim->inode = found.st_ino;
}

/* Returns whether the descriptor still is the claim's file. A host may close unknown files, and
 * open other files in their place. */
static bool file_is_ours(const fl_cpu_claim *claim)
{
    struct stat found;

    return claim->file >= 0 && fstat(claim->file, &found) == 0 && found.st_dev == claim->device &&
           found.st_ino == claim->inode;
}

void fl_cpu_claim_take(const fl_cpu_claim *claim, unsigned cpu)
{
    struct flock lock = {
        .l_type = F_RDLCK,
        .l_whence = SEEK_SET,
        .l_start = (int64_t)cpu << OWNER_BITS | claim->owner,
        .l_len = 1,
    };

    if (claim->file >= 0)
        (void)fcntl(claim->file, F_OFD_SETLK, &lock); /* refused: no warning later */
}

/* Returns whether the owner of a claim lives. An owner in a foreign name space counts as alive,
 * because nobody can tell. A dead owner's claim stays while a forked child of the owner has the
 * file. */
static bool owner_lives(const fl_cpu_claim *claim, int64_t owner, pid_t *process)
{
    *process = 0;
    if (owner >> PROCESS_BITS != claim->owner >> PROCESS_BITS)
        return true;
    *process = (pid_t)(owner & PROCESS_MASK);
    return getpgid(*process) >= 0 || errno != ESRCH;
}

/* Searches a range for a living rival. The kernel reports an arbitrary lock in the range, and
 * therefore the search covers both sides of a dead owner's lock. At most MOST_DEAD levels deep. */
static bool range_has_rival(const fl_cpu_claim *claim, int64_t from, int64_t end, int *dead,
                            pid_t *process)
{
    while (from < end) {
        struct flock lock = {
            .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = from, .l_len = end - from};

        if (fcntl(claim->file, F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK)
            return false;
        if (lock.l_start < from || lock.l_len != 1) /* a lock of foreign software, not of filch */
            return false;
        if (owner_lives(claim, lock.l_start & (((int64_t)1 << OWNER_BITS) - 1), process))
            return true;
        if (++*dead > MOST_DEAD)
            return false;
        if (range_has_rival(claim, from, lock.l_start, dead, process))
            return true;
        from = lock.l_start + 1;
    }
    return false;
}

bool fl_cpu_claim_has_rival(const fl_cpu_claim *claim, unsigned cpu, pid_t *process)
{
    int64_t from = (int64_t)cpu << OWNER_BITS;
    int64_t own = from | claim->owner;
    int dead = 0;

    return claim->file >= 0 &&
           (range_has_rival(claim, from, own, &dead, process) ||
            range_has_rival(claim, own + 1, from + ((int64_t)1 << OWNER_BITS), &dead, process));
}

bool fl_cpu_claim_has_twin(const fl_cpu_claim *claim, unsigned cpu)
{
    int64_t own = (int64_t)cpu << OWNER_BITS | claim->owner;
    pid_t process;
    int dead = 0;

    return claim->file >= 0 && range_has_rival(claim, own, own + 1, &dead, &process);
}

void fl_cpu_claim_close(fl_cpu_claim *claim)
{
    struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET};

    if (file_is_ours(claim)) {
        (void)fcntl(claim->file, F_OFD_SETLK, &lock);
        (void)close(claim->file);
    }
    claim->file = -1;
}

/* Appends CPUs first to last, or dots where the list is full. */
static void list_add(char list[LIST_SIZE], unsigned first, unsigned last)
{
    size_t used = strlen(list);
    char text[32];

    (void)snprintf(text, sizeof text, first == last ? "%s%u" : "%s%u-%u", used > 0 ? "," : "",
                   first, last);
    if (used > 3 && strcmp(list + used - 3, "...") == 0)
        return;
    (void)snprintf(list + used, LIST_SIZE - used, "%s",
                   used + strlen(text) + 4 < LIST_SIZE ? text : "...");
}

enum { CPUS = sizeof((filch_device_info *)NULL)->affinity * CHAR_BIT };

/* CPUs shared with other claims; and the first foreign process found. */
typedef struct shared_cpus {
    unsigned first; /* first CPU of the current range; CPUS: no range */
    char list[LIST_SIZE];
    pid_t process;
} shared_cpus;

/* Notes a CPU; called for every CPU in turn, and for the number past the last. */
static void shared_note(shared_cpus *shared, unsigned cpu, bool is_shared, pid_t process)
{
    if (is_shared && shared->first == CPUS) {
        if (shared->list[0] == '\0')
            shared->process = process;
        shared->first = cpu;
    }
    if (!is_shared && shared->first != CPUS) {
        list_add(shared->list, shared->first, cpu - 1);
        shared->first = CPUS;
    }
}

static void warn(const fl_log *log, const char *who, const shared_cpus *shared)
{
    if (shared->list[0] != '\0')
        fl_log_write(log, FILCH_LOG_WARNING,
                     "workers are bound to CPUs that workers of %s are bound to, too, and take "
                     "turns with them: %s; name other CPUs (host@...), or bind none "
                     "(FILCH_BIND=none)",
                     who, shared->list);
}

void fl_cpu_claim_pool(const fl_cpu_claim *claim, const struct fl_pool *pool, const fl_log *log)
{
    uint64_t bound[CPUS / 64] = {0};
    shared_cpus rivals = {.first = CPUS}, twins = {.first = CPUS};
    char who[32] = "another process";

    for (size_t i = 0; i < pool->count; i++) {
        for (size_t word = 0; pool->devices[i].is_pinned && word < CPUS / 64; word++)
            bound[word] |= pool->devices[i].info.affinity[word];
    }
    /* The claims precede the first query: a competitor that arrives at the same time finds the
     * claims. */
    for (unsigned cpu = 0; cpu < CPUS; cpu++) {
        if ((bound[cpu / 64] >> (cpu % 64) & 1) != 0)
            fl_cpu_claim_take(claim, cpu);
    }
    for (unsigned cpu = 0; cpu <= CPUS; cpu++) {
        bool is_bound = cpu < CPUS && (bound[cpu / 64] >> (cpu % 64) & 1) != 0;
        pid_t process = 0;
        bool has_rival = is_bound && fl_cpu_claim_has_rival(claim, cpu, &process);

        shared_note(&rivals, cpu, has_rival, process);
        shared_note(&twins, cpu, is_bound && fl_cpu_claim_has_twin(claim, cpu), 0);
    }
    if (rivals.process != 0)
        (void)snprintf(who, sizeof who, "process %ld", (long)rivals.process);
    warn(log, who, &rivals);
    warn(log, "another runtime of this process", &twins);
}
