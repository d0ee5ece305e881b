/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled kernels on disk, shared by a user's processes: a folder with a file a key. A file
 * appears whole or not at all (written aside, then renamed). A file has a description, and a
 * checksum over the whole contents. filch rejects every file with unexpected contents, and
 * therefore no file needs fsync: filch compiles an image again that a crash of the machine left
 * half written. */
#ifndef FL_MODULE_DISK_H
#define FL_MODULE_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/sha256.h"

/* Bytes of a file before the image. */
#define FL_DISK_HEADER 160

/* Description of an image in a file. */
typedef struct fl_disk_info {
    uint32_t arch;
    bool is_ptx;
    size_t bytes;
    char label[64]; /* label of the codelet that first caused the compilation */
} fl_disk_info;

/* A file of the folder, unread. */
typedef struct fl_disk_item {
    fl_digest key;
    uint64_t bytes;  /* bytes of the file */
    int64_t used_ns; /* time of the last store or read, in the system's real time */
} fl_disk_item;

/* Cache on disk. Any thread, except open and close. */
typedef struct fl_disk {
    const fl_memory *memory;
    const fl_log *log;
    uint64_t limit; /* bytes of the files together */
    int folder;
    bool is_writable;
    /* Relaxed: the thread that first sets the flag logs the fault, and no data depend on the
     * flag. */
    _Atomic uint32_t has_complained;
} fl_disk;

typedef enum fl_disk_mode {
    FL_DISK_CREATE,  /* makes the folder, and missing folders above */
    FL_DISK_EXISTING /* returns FILCH_NOT_FOUND for a missing folder */
} fl_disk_mode;

/* Opens the folder. FILCH_IO: the folder cannot be made or opened. A read-only folder is opened,
 * too. memory and log must outlive the disk. */
filch_status fl_disk_open(fl_disk *disk, const fl_memory *memory, const fl_log *log,
                          const char *path, uint64_t limit, fl_disk_mode mode, filch_error *error);
void fl_disk_close(fl_disk *disk);

/* Reads an image. *data is allocated, info->bytes long; the file counts as used now.
 * FILCH_NOT_FOUND: no file with the key. FILCH_DATA: the file is untrustworthy: damaged, of a
 * different key or format, not a plain file, or writable or owned by other users (root's files are
 * trusted). FILCH_OUT_OF_MEMORY. */
filch_status fl_disk_read(fl_disk *disk, const fl_digest *key, fl_disk_info *info, void **data);
/* Checks a file and reads its description, as fl_disk_read, but does not count as a use. */
filch_status fl_disk_check(fl_disk *disk, const fl_digest *key, fl_disk_info *info);
/* Stores an image in place of an existing file, then removes the least recently used files until
 * the limit is kept. A failure causes a single log message, and changes nothing. */
void fl_disk_write(fl_disk *disk, const fl_digest *key, const fl_disk_info *info, const void *data);

/* Right to make the image of a key; a single holder has the right at a time, among the processes
 * and among the disks of a process. A caller waits for the holder as long as a compiler may
 * reasonably take, then goes ahead without the lock: the lock only saves work, and files are sound
 * in either case. Blocking. */
typedef struct fl_disk_lock {
    int file; /* -1: went ahead without the lock */
    int64_t place;
} fl_disk_lock;
fl_disk_lock fl_disk_lock_key(fl_disk *disk, const fl_digest *key);
void fl_disk_unlock(fl_disk_lock *lock);

/* Lists the files, least recently used first; *items is an allocated array of *capacity. FILCH_IO,
 * FILCH_OUT_OF_MEMORY. */
filch_status fl_disk_list(fl_disk *disk, fl_disk_item **items, size_t *count, size_t *capacity);
/* Removes every image, whole or half written; *files and *bytes receive the counts. Foreign files
 * stay. */
filch_status fl_disk_clear(fl_disk *disk, uint64_t *files, uint64_t *bytes, filch_error *error);

#endif
