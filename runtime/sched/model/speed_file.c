/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "sched/model/speed_file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/output.h"

#define MAGIC "filchspd"
#define FORMAT 1u
/* Longest wait for the lock: a save takes some milliseconds, and a stopped process never ends. */
#define LOCK_MOST_NS FL_NS_PER_S
#define LOCK_NAP_NS 500000

/* Header in the machine's byte order and sizes; a file of a different machine fails the format's
 * check. */
typedef struct file_header {
    char magic[8];
    uint32_t format;
    uint32_t count;
    uint64_t reserved[2];
    fl_digest digest; /* digest of the records and the header, with zeros in digest */
} file_header;

_Static_assert(sizeof(file_header) == FL_SPEED_FILE_HEADER, "the file's layout has no padding");
_Static_assert(sizeof(fl_record) == FL_DIGEST_BYTES + 40, "nor have the records");

typedef struct table {
    fl_record *records;
    size_t count, capacity;
} table;

static void table_free(const fl_memory *memory, table *made)
{
    fl_free(memory, made->records, made->capacity * sizeof *made->records);
    *made = (table){NULL, 0, 0};
}

/* --- Reading --- */

static fl_digest digest_of(const file_header *head, const fl_record *records)
{
    file_header bare = *head;
    fl_sha256 sha;

    memset(&bare.digest, 0, sizeof bare.digest);
    fl_sha256_init(&sha);
    fl_sha256_add(&sha, &bare, sizeof bare);
    fl_sha256_add(&sha, records, head->count * sizeof *records);
    return fl_sha256_finish(&sha);
}

static bool is_header_sound(const file_header *head, off_t size)
{
    return memcmp(head->magic, MAGIC, sizeof head->magic) == 0 && head->format == FORMAT &&
           head->count <= FL_SPEED_FILE_MOST && head->reserved[0] == 0 && head->reserved[1] == 0 &&
           (uint64_t)size == sizeof *head + head->count * sizeof(fl_record);
}

static bool is_record_sound(const fl_record *record)
{
    return isnormal(record->rate) && record->rate > 0.0 && record->fixed >= 0.0 &&
           isfinite(record->fixed / record->rate) && record->most_work >= 0.0 &&
           isfinite(record->most_work);
}

/* Reads the records of an open file. FILCH_NOT_FOUND: the file is empty, e.g. made only for its
 * lock. *is_kind: the file is at least meant to be a file of speeds. */
static filch_status read_file(const fl_memory *memory, int file, table *made, bool *is_kind)
{
    struct stat found;
    file_header head;

    *made = (table){NULL, 0, 0};
    *is_kind = false;
    if (fstat(file, &found) != 0)
        return FILCH_IO;
    if (!fl_file_is_ours(&found))
        return FILCH_DATA;
    *is_kind = found.st_size == 0;
    if (found.st_size == 0)
        return FILCH_NOT_FOUND;
    if (!fl_file_read(file, &head, sizeof head)) {
        size_t known = (size_t)found.st_size;

        known = known < sizeof head.magic ? known : sizeof head.magic;
        *is_kind = lseek(file, 0, SEEK_SET) == 0 && fl_file_read(file, head.magic, known) &&
                   memcmp(head.magic, MAGIC, known) == 0;
        return FILCH_DATA;
    }
    *is_kind = memcmp(head.magic, MAGIC, sizeof head.magic) == 0;
    if (!is_header_sound(&head, found.st_size))
        return FILCH_DATA;
    if (head.count == 0) {
        fl_digest digest = digest_of(&head, NULL);

        return memcmp(&digest, &head.digest, sizeof digest) == 0 ? FILCH_OK : FILCH_DATA;
    }
    made->records = fl_alloc(memory, head.count * sizeof *made->records);
    if (made->records == NULL)
        return FILCH_OUT_OF_MEMORY;
    made->count = made->capacity = head.count;
    if (fl_file_read(file, made->records, made->count * sizeof *made->records)) {
        fl_digest digest = digest_of(&head, made->records);
        bool is_sound = memcmp(&digest, &head.digest, sizeof digest) == 0;

        for (size_t i = 0; i < made->count; i++)
            is_sound = is_sound && is_record_sound(&made->records[i]);
        if (is_sound)
            return FILCH_OK;
    }
    table_free(memory, made);
    return FILCH_DATA;
}

static int compare_keys(const void *a, const void *b)
{
    return memcmp(&((const fl_record *)a)->key, &((const fl_record *)b)->key, sizeof(fl_digest));
}

/* Orders records by key; within a key the record to keep is first. */
static int compare_records(const void *a, const void *b)
{
    const fl_record *left = a, *right = b;
    int order = compare_keys(a, b);

    if (order == 0 && left->saved != right->saved)
        order = left->saved > right->saved ? -1 : 1;
    if (order == 0 && left->taken != right->taken)
        order = left->taken > right->taken ? -1 : 1;
    return order;
}

static int compare_times(const void *a, const void *b)
{
    const fl_record *left = a, *right = b;

    if (left->saved != right->saved)
        return left->saved > right->saved ? -1 : 1;
    return compare_keys(a, b);
}

static bool find_path(fl_speed_file *history, const char *path)
{
    size_t length = strlen(path), used = 0;

    if (path[0] != '/') {
        if (getcwd(history->path, sizeof history->path) == NULL)
            return false;
        used = strlen(history->path);
        history->path[used++] = '/'; /* in place of the terminator; path brings its own */
    }
    if (used + length + 1 > sizeof history->path)
        return false;
    memcpy(history->path + used, path, length + 1);
    return true;
}

void fl_speed_file_open(fl_speed_file *history, const fl_memory *memory, const char *path)
{
    table made = {NULL, 0, 0};
    bool is_kind;
    int file;

    *history = (fl_speed_file){.memory = memory, .loaded = FILCH_NOT_FOUND};
    if (path[0] == '\0' || strcmp(path, "off") == 0)
        return;
    if (!find_path(history, path)) {
        history->path[0] = '\0';
        history->loaded = FILCH_IO;
        return;
    }
    /* Non-blocking: the file might be a pipe. */
    file = open(history->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) {
        history->loaded = errno == ENOENT ? FILCH_NOT_FOUND : FILCH_IO;
        return;
    }
    history->loaded = read_file(memory, file, &made, &is_kind);
    (void)close(file);
    if (made.count > 1)
        qsort(made.records, made.count, sizeof *made.records, compare_keys);
    history->records = made.records;
    history->count = made.count;
    history->capacity = made.capacity;
}

void fl_speed_file_close(fl_speed_file *history)
{
    fl_free(history->memory, history->records, history->capacity * sizeof *history->records);
    history->records = NULL;
    history->count = history->capacity = 0;
}

const fl_record *fl_speed_file_find(const fl_speed_file *history, const fl_digest *key)
{
    fl_record wanted = {.key = *key};

    return history->count == 0
               ? NULL
               : bsearch(&wanted, history->records, history->count, sizeof wanted, compare_keys);
}

/* --- Writing --- */

static filch_status fail(const fl_speed_file *history, filch_status status, const char *call,
                         int code, filch_error *error)
{
    char reason[128];
    fl_fault fault = {.status = status, .native_code = code, .call = call};

    return fl_error_fill(error, fault, "the file of speeds, %s: %s", history->path,
                         code != 0                       ? strerror_r(code, reason, sizeof reason)
                         : status == FILCH_OUT_OF_MEMORY ? "no memory"
                         : status == FILCH_TIMEOUT       ? "another process holds it"
                                                         : "not one of filch's and this user's");
}

/* Tells whether the open file still has its name: an earlier saver may have replaced the file. */
static bool is_current(const fl_speed_file *history, int file)
{
    struct stat held, named;

    return fstat(file, &held) == 0 && lstat(history->path, &named) == 0 &&
           held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

/* Opens and locks the file, making a missing file. Open file description locks also exclude the
 * threads of one process. Polls, because a wait inside fcntl has no time limit. */
static filch_status open_locked(const fl_speed_file *history, int *file, filch_error *error)
{
    const uint64_t start = fl_time_now();

    for (;;) {
        struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

        *file = open(history->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
        if (*file < 0)
            return fail(history, FILCH_IO, "open", errno, error);
        if (fcntl(*file, F_OFD_SETLK, &whole) == 0) {
            if (is_current(history, *file))
                return FILCH_OK;
        } else if (errno != EAGAIN && errno != EACCES && errno != EINTR) {
            int code = errno;

            (void)close(*file);
            return fail(history, FILCH_IO, "fcntl", code, error);
        }
        (void)close(*file);
        if (fl_time_now() - start > LOCK_MOST_NS)
            return fail(history, FILCH_TIMEOUT, "fcntl", 0, error);
        (void)nanosleep(&(struct timespec){0, LOCK_NAP_NS}, NULL);
    }
}

/* Unlocks before closing: a child forked meanwhile shares the file description. */
static void close_locked(int file)
{
    struct flock whole = {.l_type = F_UNLCK, .l_whence = SEEK_SET};

    (void)fcntl(file, F_OFD_SETLK, &whole);
    (void)close(file);
}

/* Adds count records, replacing records of equal keys. The caller has reserved the capacity. */
static void merge(table *all, const fl_record *records, size_t count)
{
    fl_record *own = all->records + all->count;
    size_t fresh = 0, kept = 0;

    if (count == 0)
        return;
    memcpy(own, records, count * sizeof *own);
    qsort(own, count, sizeof *own, compare_records);
    for (size_t i = 0; i < count; i++) {
        if (fresh == 0 || compare_keys(&own[fresh - 1], &own[i]) != 0)
            own[fresh++] = own[i];
    }
    for (size_t i = 0; i < all->count; i++) {
        if (bsearch(&all->records[i], own, fresh, sizeof *own, compare_keys) == NULL)
            all->records[kept++] = all->records[i];
    }
    memmove(all->records + kept, own, fresh * sizeof *own);
    kept += fresh;
    if (kept > FL_SPEED_FILE_MOST) {
        qsort(all->records, kept, sizeof *all->records, compare_times);
        kept = FL_SPEED_FILE_MOST;
    }
    all->count = kept;
}

/* Replaces the file. The digest reveals a file left half on the disk by a crash of the machine. */
static filch_status replace(const fl_speed_file *history, const table *all, filch_error *error)
{
    file_header head = {.magic = MAGIC, .format = FORMAT, .count = (uint32_t)all->count};
    fl_output output;
    bool is_whole;

    head.digest = digest_of(&head, all->records);
    is_whole =
        fl_output_open(&output, AT_FDCWD, history->path, ".filch-speeds-", FL_OUTPUT_PRIVATE) &&
        fl_output_write(&output, &head, sizeof head) &&
        fl_output_write(&output, all->records, all->count * sizeof *all->records) &&
        fl_output_commit(&output);
    fl_output_abandon(&output);
    return is_whole ? FILCH_OK : fail(history, FILCH_IO, output.call, output.code, error);
}

static filch_status save_locked(const fl_speed_file *history, int file, const fl_record *records,
                                size_t count, filch_error *error)
{
    table all;
    bool is_kind;
    filch_status status = read_file(history->memory, file, &all, &is_kind);

    if (status == FILCH_OUT_OF_MEMORY || status == FILCH_IO)
        return fail(history, status, "read", status == FILCH_IO ? errno : 0, error);
    if (!is_kind)
        return fail(history, FILCH_DATA, "read", 0, error);
    status = fl_array_reserve(history->memory, &all.records, &all.capacity, all.count + count + 1,
                              sizeof *all.records);
    if (status == FILCH_OK) {
        merge(&all, records, count);
        status = replace(history, &all, error);
    } else {
        status = fail(history, status, "read", 0, error);
    }
    table_free(history->memory, &all);
    return status;
}

filch_status fl_speed_file_save(const fl_speed_file *history, const fl_record *records,
                                size_t count, filch_error *error)
{
    int file;
    filch_status status = open_locked(history, &file, error);

    if (status != FILCH_OK)
        return status;
    status = save_locked(history, file, records, count, error);
    close_locked(file);
    return status;
}
