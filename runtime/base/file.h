/* SPDX-License-Identifier: Apache-2.0 */
/* Files that filch keeps for later runs. */
#ifndef FL_BASE_FILE_H
#define FL_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* All of size bytes, through signals; false: some are missing, or could not be had or put. errno
 * has the reason where writing failed. */
bool fl_file_read(int file, void *data, size_t size);
bool fl_file_write(int file, const void *data, size_t size);
/* Nobody but this user and root can have written the file. */
bool fl_file_is_ours(const struct stat *found);

#endif
