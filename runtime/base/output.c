/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

#define SUFFIX ".tmp"
#define TRIES 64 /* random names drawn; only an adversary makes a second draw necessary */

static bool fail(fl_output *output, const char *call, int code)
{
    if (output->code == 0) {
        output->call = call;
        output->code = code != 0 ? code : EIO;
    }
    return false;
}

static bool refuse(fl_output *output, mode_t mode)
{
    if (output->code == 0)
        output->kind = mode & S_IFMT;
    return fail(output, "fstatat", S_ISLNK(mode) ? ELOOP : S_ISDIR(mode) ? EISDIR : EINVAL);
}

/* Opens the folder of a path and keeps the file's name within the folder. */
static bool find_folder(fl_output *output, int folder, const char *path)
{
    const char *last = strrchr(path, '/');
    const char *name = last != NULL ? last + 1 : path;
    size_t length = last == NULL ? 1 : last == path ? 1 : (size_t)(last - path);
    char text[PATH_MAX];

    if (strlen(name) >= sizeof output->name || length >= sizeof text)
        return fail(output, "open", ENAMETOOLONG);
    if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return path[0] == '\0' ? fail(output, "open", ENOENT) : refuse(output, S_IFDIR);
    memcpy(output->name, name, strlen(name) + 1);
    memcpy(text, last != NULL ? path : ".", length);
    text[length] = '\0';
    output->folder = openat(folder, text, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return output->folder >= 0 || fail(output, "open", errno);
}

/* Tells whether the target may be replaced. mode receives the target's rights; stays unchanged when
 * the target does not exist. */
static bool judge_target(fl_output *output, mode_t *mode)
{
    struct stat found;

    if (fstatat(output->folder, output->name, &found, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT || fail(output, "fstatat", errno);
    if (!S_ISREG(found.st_mode))
        return refuse(output, found.st_mode);
    /* A rename would succeed even without the right to write the file. */
    if (output->rights == FL_OUTPUT_SHARED &&
        faccessat(output->folder, output->name, W_OK, AT_EACCESS) != 0 && errno != ENOENT)
        return fail(output, "faccessat", errno);
    *mode = found.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO);
    return true;
}

/* Draws a number for a name. Safety comes from exclusive creation; randomness only saves attempts.
 */
static uint64_t draw(int tries)
{
    uint64_t drawn = fl_time_now() + ((uint64_t)getpid() << 40) + (uint64_t)tries;
    uint64_t random = 0;

    if (getrandom(&random, sizeof random, GRND_NONBLOCK) == (ssize_t)sizeof random)
        drawn ^= random;
    return drawn;
}

static bool make_aside(fl_output *output, const char *prefix, mode_t mode)
{
    for (int tries = 0; tries < TRIES && output->file < 0; tries++) {
        (void)snprintf(output->aside, sizeof output->aside, "%.100s%016llx" SUFFIX, prefix,
                       (unsigned long long)draw(tries));
        output->file = openat(output->folder, output->aside,
                              O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (output->file < 0 && errno != EEXIST)
            break;
    }
    return output->file >= 0 || fail(output, "open", errno);
}

static void reset(fl_output *output, fl_output_rights rights)
{
    *output = (fl_output){.rights = rights, .folder = -1, .file = -1, .call = ""};
}

/* Tells whether the temporary name still means the output's own file. */
static bool is_own(const fl_output *output)
{
    struct stat found;

    return fstatat(output->folder, output->aside, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
           found.st_dev == output->device && found.st_ino == output->inode;
}

static void close_file(fl_output *output)
{
    if (output->stream != NULL) {
        if (fclose(output->stream) != 0)
            (void)fail(output, "write", errno);
        output->stream = NULL;
    }
    /* Several file systems report a full disk only on close. */
    if (output->file >= 0 && close(output->file) != 0)
        (void)fail(output, "close", errno);
    output->file = -1;
}

bool fl_output_open(fl_output *output, int folder, const char *path, const char *prefix,
                    fl_output_rights rights)
{
    const bool is_shared = rights == FL_OUTPUT_SHARED;
    const mode_t new = is_shared ? 0666 : 0600, none = (mode_t)-1;
    struct stat made;
    mode_t kept = none;

    reset(output, rights);
    if (find_folder(output, folder, path) && judge_target(output, &kept) &&
        make_aside(output, prefix, new)) {
        if (fstat(output->file, &made) == 0) {
            output->device = made.st_dev;
            output->inode = made.st_ino;
            if (!is_shared || kept == none || fchmod(output->file, kept) == 0)
                return true;
        }
        (void)fail(output, "fchmod", errno);
    }
    fl_output_abandon(output);
    return false;
}

bool fl_output_can(fl_output *output, const char *path)
{
    mode_t mode;
    bool can;

    reset(output, FL_OUTPUT_SHARED);
    can = find_folder(output, AT_FDCWD, path) && judge_target(output, &mode);
    if (can && faccessat(output->folder, ".", W_OK | X_OK, AT_EACCESS) != 0)
        can = fail(output, "faccessat", errno);
    fl_output_abandon(output);
    return can;
}

bool fl_output_write(fl_output *output, const void *data, size_t size)
{
    if (output->code != 0)
        return false;
    return fl_file_write(output->file, data, size) || fail(output, "write", errno);
}

static ssize_t put(void *cookie, const char *data, size_t size)
{
    /* A return of 0 bytes is the failure, by the convention of fopencookie. */
    return fl_output_write(cookie, data, size) ? (ssize_t)size : 0;
}

FILE *fl_output_stream(fl_output *output)
{
    if (output->stream == NULL)
        output->stream = fopencookie(output, "w", (cookie_io_functions_t){.write = put});
    if (output->stream == NULL)
        (void)fail(output, "fopencookie", errno);
    return output->stream;
}

bool fl_output_commit(fl_output *output)
{
    mode_t mode;

    close_file(output);
    /* The target may have changed its kind while the output was written. */
    if (output->code == 0 && judge_target(output, &mode)) {
        if (!is_own(output))
            (void)fail(output, "rename", ESTALE);
        else if (renameat(output->folder, output->aside, output->folder, output->name) != 0)
            (void)fail(output, "rename", errno);
        else
            output->inode = 0; /* not an inode number: no file is left to remove */
    }
    fl_output_abandon(output);
    return output->code == 0;
}

void fl_output_abandon(fl_output *output)
{
    close_file(output);
    if (output->folder < 0)
        return;
    if (output->inode != 0 && is_own(output))
        (void)unlinkat(output->folder, output->aside, 0);
    (void)close(output->folder);
    output->folder = -1;
}

const char *fl_output_why(const fl_output *output, char text[FL_OUTPUT_WHY])
{
    switch (output->kind) {
    case 0:
        return strerror_r(output->code, text, FL_OUTPUT_WHY);
    case S_IFLNK:
        return "is a symbolic link, and nothing is written through one";
    case S_IFDIR:
        return "is a directory";
    case S_IFIFO:
        return "is a FIFO, not a file";
    case S_IFSOCK:
        return "is a socket, not a file";
    default:
        return "is a device, not a file";
    }
}
