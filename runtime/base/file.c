/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/file.h"

#include <errno.h>
#include <unistd.h>

bool fl_file_read(int file, void *data, size_t size)
{
    unsigned char *at = data;

    while (size > 0) {
        ssize_t got = read(file, at, size);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        size -= (size_t)got;
    }
    return true;
}

bool fl_file_write(int file, const void *data, size_t size)
{
    const unsigned char *at = data;

    while (size > 0) {
        ssize_t put = write(file, at, size);

        if (put < 0 && errno == EINTR)
            continue;
        if (put == 0)
            errno = EIO;
        if (put <= 0)
            return false;
        at += put;
        size -= (size_t)put;
    }
    return true;
}

bool fl_file_is_ours(const struct stat *found)
{
    return S_ISREG(found->st_mode) && (found->st_uid == geteuid() || found->st_uid == 0) &&
           (found->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}
