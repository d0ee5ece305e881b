/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled kernels on disk, shared by all processes of a user: a folder with a file a key. A file
 * appears whole or not at all (written aside, then renamed) and says what it is, with a checksum
 * over all of it; nothing is taken from a file that is not exactly what it should be, so none
 * needs fsync: what a crash of the machine leaves half written is compiled again. */
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

/* What a file says of its image. */
typedef struct fl_disk_info {
    uint32_t arch;
    bool is_ptx;
    size_t bytes;
    char label[64]; /* of who had it compiled first */
} fl_disk_info;

/* A file of the folder, unread. */
typedef struct fl_disk_item {
    fl_digest key;
    uint64_t bytes;  /* of the file */
    int64_t used_ns; /* when it was last stored or read, of the system's real time */
} fl_disk_item;

/* All calls but open and close: any thread. */
typedef struct fl_disk {
    const fl_memory *memory;
    const fl_log *log;
    uint64_t limit; /* bytes of all files */
    int folder;
    bool is_writable;
    /* Relaxed: whoever sets it first says what is wrong, and nothing depends on it. */
    _Atomic uint32_t has_complained;
} fl_disk;

typedef enum fl_disk_mode {
    FL_DISK_CREATE,  /* makes the folder, and those above it, where there is none */
    FL_DISK_EXISTING /* FILCH_NOT_FOUND then */
} fl_disk_mode;

/* FILCH_IO when the folder cannot be made or opened. One that can be read only is opened all the
 * same. memory and log must outlive the disk. */
filch_status fl_disk_open(fl_disk *disk, const fl_memory *memory, const fl_log *log,
                          const char *path, uint64_t limit, fl_disk_mode mode, filch_error *error);
void fl_disk_close(fl_disk *disk);

/* *data is allocated, info->bytes long, and counts as used now. FILCH_NOT_FOUND: there is no such
 * file. FILCH_DATA: there is one that is not to be trusted: damaged, of another key or format, not
 * a plain file, or writable or owned by other users (root's are trusted). FILCH_OUT_OF_MEMORY. */
filch_status fl_disk_read(fl_disk *disk, const fl_digest *key, fl_disk_info *info, void **data);
/* The same without use: whether a file is sound, and what it says. */
filch_status fl_disk_check(fl_disk *disk, const fl_digest *key, fl_disk_info *info);
/* Stores an image in place of what is there, then removes the files that were not used for longest
 * until the limit is kept. A failure is said once in the log, and changes nothing. */
void fl_disk_write(fl_disk *disk, const fl_digest *key, const fl_disk_info *info, const void *data);

/* The right to make the image of a key, which one holder among all processes (and all disks of
 * one) has at a time. Waits as long as a compiler may reasonably take for whoever has it, then goes
 * ahead without: the lock saves work, files are sound in any case. Blocking. */
typedef struct fl_disk_lock {
    int file; /* -1: went ahead without */
    int64_t place;
} fl_disk_lock;
fl_disk_lock fl_disk_lock_key(fl_disk *disk, const fl_digest *key);
void fl_disk_unlock(fl_disk_lock *lock);

/* The files, those not used for longest first; *items is an allocated array of *capacity. FILCH_IO,
 * FILCH_OUT_OF_MEMORY. */
filch_status fl_disk_list(fl_disk *disk, fl_disk_item **items, size_t *count, size_t *capacity);
/* Removes all images, whole or half written; *files and *bytes of them. Other files stay. */
filch_status fl_disk_clear(fl_disk *disk, uint64_t *files, uint64_t *bytes, filch_error *error);

#endif
