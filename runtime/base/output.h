/* SPDX-License-Identifier: Apache-2.0 */
/* Files that filch writes: whole, or not at all.
 *
 * An output is made beside its target by exclusive creation under a random name, and renamed over
 * the target when all of it is written. Until then the target is as it was. The target must be a
 * regular file that this user may write, or not exist; a symbolic link, a directory, a device, a
 * FIFO or a socket is refused and stays. Symbolic links among the folders of the path are followed.
 * No file is removed but the output's own, which is known by its inode.
 *
 * The target is a new inode afterwards: other names of an existing file (hard links) keep its old
 * contents. A target that is replaced between the last look and the rename by somebody who may
 * write the folder is lost; the folder is the caller's to protect.
 *
 * Nothing is synced. A crash of the machine may leave the old contents, the new ones or, on some
 * file systems, an empty file; contents that filch reads back carry a checksum. A killed process
 * leaves a file with a name that ends in ".tmp". */
#ifndef FL_BASE_OUTPUT_H
#define FL_BASE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define FL_OUTPUT_WHY 128  /* bytes of the longest reason */
#define FL_OUTPUT_NAME 256 /* bytes of the longest name in a folder, Linux's NAME_MAX + 1 */

/* Who may read and write the file. */
typedef enum fl_output_rights {
    FL_OUTPUT_SHARED, /* what the umask leaves; an existing target's rights are kept */
    FL_OUTPUT_PRIVATE /* this user alone; a target that the user may not write is replaced, too */
} fl_output_rights;

/* Used by one thread. */
typedef struct fl_output {
    fl_output_rights rights;
    int folder; /* -1: the output is closed */
    int file;
    FILE *stream; /* null: none was asked for */
    int code;     /* errno of the first failure; 0: none */
    mode_t kind;  /* S_IFMT bits of a target that was refused; 0: none was */
    const char *call;
    dev_t device; /* with inode: which file is the output's own */
    ino_t inode;
    char name[FL_OUTPUT_NAME];
    char aside[FL_OUTPUT_NAME];
} fl_output;

/* Begins an output. A relative path begins at the folder that is open as `folder`, or at the
 * working directory with AT_FDCWD. prefix (at most 100 bytes) begins the temporary name. False: the
 * reason is recorded, and the output is closed. */
bool fl_output_open(fl_output *output, int folder, const char *path, const char *prefix,
                    fl_output_rights rights);
/* Whether a target could be written now; makes nothing. False: as fl_output_open. */
bool fl_output_can(fl_output *output, const char *path);
/* Appends bytes. False: the reason is recorded. */
bool fl_output_write(fl_output *output, const void *data, size_t size);
/* A stream that appends; closed with the output. Its failures are recorded, so the caller need not
 * look at each. Null: no memory, recorded. */
FILE *fl_output_stream(fl_output *output);
/* Ends the output. True: the target has the new contents. False: the target is as it was, the
 * temporary file is gone, and the reason of the first failure is recorded. */
bool fl_output_commit(fl_output *output);
/* Ends the output and removes the temporary file. Does nothing to a closed output. */
void fl_output_abandon(fl_output *output);
/* Why an output failed: "is a symbolic link", "No space left on device". */
const char *fl_output_why(const fl_output *output, char text[FL_OUTPUT_WHY]);

#endif
