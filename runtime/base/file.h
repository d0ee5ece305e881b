/* SPDX-License-Identifier: Apache-2.0 */
/* Files kept by filch for later runs. */
#ifndef FL_BASE_FILE_H
#define FL_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* Read or write exactly size bytes, resuming after signals. False: bytes are missing, or the system
 * call failed. errno has the reason of a failed write. */
bool fl_file_read(int file, void *data, size_t size);
bool fl_file_write(int file, const void *data, size_t size);
/* Tells whether only the user and root can have written the file. */
bool fl_file_is_ours(const struct stat *found);

#endif
