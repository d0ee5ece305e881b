/* SPDX-License-Identifier: Apache-2.0 */
/* Files written by filch: whole, or not at all.
 *
 * An output is made beside its target by exclusive creation under a random name. A complete output
 * is renamed over the target; until then the target stays as before. The target must be a regular
 * file that the user may write, or must not exist. A symbolic link, a directory, a device, a FIFO
 * or a socket is refused and stays. Symbolic links among the folders of the path are followed.
 * filch removes no file but the output's own, known by its inode.
 *
 * The target is a new inode afterwards: further names of an existing file (hard links) keep the old
 * contents. Somebody with the right to write the folder may replace the target between the last
 * check and the rename; the rename then destroys the replacement. Protecting the folder is the
 * caller's duty.
 *
 * Nothing is synced. A crash of the machine may leave the old contents, the new contents or, on
 * certain file systems, an empty file. Contents that filch reads back carry a checksum. A killed
 * process leaves a file whose name ends in ".tmp". */
#ifndef FL_BASE_OUTPUT_H
#define FL_BASE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define FL_OUTPUT_WHY 128  /* bytes of the longest reason */
#define FL_OUTPUT_NAME 256 /* bytes of the longest name in a folder, Linux's NAME_MAX + 1 */

/* Rights to read and write the file. */
typedef enum fl_output_rights {
    FL_OUTPUT_SHARED, /* rights left by the umask; an existing target keeps its rights */
    FL_OUTPUT_PRIVATE /* the user alone; replaces even a target that the user may not write */
} fl_output_rights;

/* Output file. Used by a single thread. */
typedef struct fl_output {
    fl_output_rights rights;
    int folder; /* -1: the output is closed */
    int file;
    FILE *stream; /* null: no stream was asked for */
    int code;     /* errno of the first failure; 0: none */
    mode_t kind;  /* S_IFMT bits of a refused target; 0: no target was refused */
    const char *call;
    dev_t device; /* with inode: identity of the output's own file */
    ino_t inode;
    char name[FL_OUTPUT_NAME];
    char aside[FL_OUTPUT_NAME];
} fl_output;

/* Begins an output. A relative path begins at the open folder `folder`, or at the working directory
 * with AT_FDCWD. prefix (at most 100 bytes) begins the temporary name. False: the reason is
 * recorded, and the output is closed. */
bool fl_output_open(fl_output *output, int folder, const char *path, const char *prefix,
                    fl_output_rights rights);
/* Tells whether a target could be written now; makes no file. False: the reason is recorded. */
bool fl_output_can(fl_output *output, const char *path);
/* Appends bytes. False: the reason is recorded. */
bool fl_output_write(fl_output *output, const void *data, size_t size);
/* Returns a stream that appends; closing the output closes the stream. The output records the
 * stream's failures: the caller need not check every call. Null: no memory, recorded. */
FILE *fl_output_stream(fl_output *output);
/* Ends the output. True: the target has the new contents. False: the target is as before, the
 * temporary file is gone, and the reason of the first failure is recorded. */
bool fl_output_commit(fl_output *output);
/* Ends the output and removes the temporary file. Does nothing to a closed output. */
void fl_output_abandon(fl_output *output);
/* Returns the reason of a failure: "is a symbolic link", "No space left on device". */
const char *fl_output_why(const fl_output *output, char text[FL_OUTPUT_WHY]);

#endif
