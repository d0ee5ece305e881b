/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "module/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/output.h"

#define MAGIC "filchimg"
#define FORMAT 1u
/* Maximum size of an image, above every cubin: filch does not read a file that claims more. */
#define IMAGE_MOST ((uint64_t)1 << 31)
/* Maximum wait for a compiler in a second process. */
#define LOCK_MOST_NS (120 * FL_NS_PER_S)
/* Age from which an unfinished file counts as left behind. */
#define STALE_NS ((int64_t)3600 * 1000000000)

#define SUFFIX ".img"
#define ASIDE ".tmp"
#define NAME_SIZE (FL_DIGEST_TEXT + sizeof SUFFIX - 1)

/* Header of a file, in the machine's byte order and sizes; a foreign machine's header fails the
 * format check. */
typedef struct header {
    char magic[8];
    uint32_t format;
    uint32_t arch;
    uint32_t is_ptx;
    uint32_t reserved;
    uint64_t bytes;
    fl_digest key;
    char label[64];
    fl_digest digest; /* digest of the header, with zeros in digest, and of the image */
} header;

_Static_assert(sizeof(header) == FL_DISK_HEADER, "the file's layout has no padding");

/* --- Names and messages --- */

static void image_name(char name[NAME_SIZE], const fl_digest *key)
{
    fl_digest_format(key, name);
    memcpy(name + FL_DIGEST_TEXT - 1, SUFFIX, sizeof SUFFIX);
}

static int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* Parses the key at the beginning of a name. */
static bool parse_key(const char *name, fl_digest *key)
{
    for (size_t i = 0; i < FL_DIGEST_BYTES; i++) {
        int high = hex_value(name[2 * i]);
        int low = high < 0 ? -1 : hex_value(name[2 * i + 1]);

        if (low < 0)
            return false;
        key->bytes[i] = (unsigned char)(high * 16 + low);
    }
    return true;
}

static bool is_image(const char *name, fl_digest *key)
{
    return parse_key(name, key) && strcmp(name + FL_DIGEST_TEXT - 1, SUFFIX) == 0;
}

/* Returns whether a name is KEY.RANDOM.tmp. */
static bool is_aside(const char *name)
{
    size_t length = strlen(name);
    fl_digest key;

    return parse_key(name, &key) && name[FL_DIGEST_TEXT - 1] == '.' &&
           length > FL_DIGEST_TEXT - 1 + sizeof ASIDE &&
           strcmp(name + length + 1 - sizeof ASIDE, ASIDE) == 0;
}

static void complain(fl_disk *disk, const fl_output *output)
{
    char why[FL_OUTPUT_WHY];

    if (fl_or_relaxed(&disk->has_complained, 1) != 0)
        return;
    fl_log_write(disk->log, FILCH_LOG_WARNING, "a compiled kernel cannot be kept on disk: %s: %s",
                 output->name, fl_output_why(output, why));
}

static filch_status fail(const char *path, const char *call, int code, filch_error *error)
{
    char reason[128];

    return fl_error_fill(error, (fl_fault){.status = FILCH_IO, .native_code = code, .call = call},
                         "the folder of compiled kernels, %s: %s", path,
                         strerror_r(code, reason, sizeof reason));
}

/* --- The folder --- */

/* Makes the folder and the folders above, for the user alone as the XDG Base Directory
 * Specification asks. Ignores failures: the opening finds a missing folder. */
static void make_folders(const char *path)
{
    char part[PATH_MAX];

    for (size_t i = 1; i < sizeof part; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        (void)mkdir(part, 0700);
        if (path[i] == '\0')
            return;
    }
}

static int open_lock(const fl_disk *disk)
{
    return openat(disk->folder, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

filch_status fl_disk_open(fl_disk *disk, const fl_memory *memory, const fl_log *log,
                          const char *path, uint64_t limit, fl_disk_mode mode, filch_error *error)
{
    int file;

    *disk = (fl_disk){.memory = memory, .log = log, .limit = limit, .folder = -1};
    if (path[0] != '/')
        return fl_error_fill(error, (fl_fault){.status = FILCH_IO},
                             "the folder of compiled kernels, %s, is not an absolute path", path);
    if (mode == FL_DISK_CREATE)
        make_folders(path);
    disk->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (disk->folder < 0) {
        int code = errno;
        filch_status status = fail(path, "open", code, error);

        return code == ENOENT && mode == FL_DISK_EXISTING ? FILCH_NOT_FOUND : status;
    }
    file = open_lock(disk);
    disk->is_writable = file >= 0;
    if (file >= 0)
        (void)close(file);
    return FILCH_OK;
}

void fl_disk_close(fl_disk *disk)
{
    if (disk->folder >= 0)
        (void)close(disk->folder);
    disk->folder = -1;
}

/* --- Locks: ranges of a single file; no lock leaves a file behind --- */

/* Takes or drops an open file description lock. Unlike classic fcntl locks, such locks also exclude
 * the threads of a process, and survive the closing of a second descriptor of the file. */
static bool set_lock(int file, int64_t place, short kind)
{
    struct flock range = {
        .l_type = kind, .l_whence = SEEK_SET, .l_start = (off_t)place, .l_len = 1};

    return fcntl(file, F_OFD_SETLK, &range) == 0;
}

/* Waits by polling: a wait inside fcntl has no limit, and a stopped process may hold the lock. */
static fl_disk_lock lock_place(const fl_disk *disk, int64_t place)
{
    fl_disk_lock lock = {open_lock(disk), place};
    uint64_t start = fl_time_now();
    long pause_ns = 250000;

    while (lock.file >= 0 && !set_lock(lock.file, place, F_WRLCK)) {
        bool is_held = errno == EAGAIN || errno == EACCES || errno == EINTR;

        if (!is_held || fl_time_now() - start > LOCK_MOST_NS) {
            (void)close(lock.file);
            lock.file = -1;
            break;
        }
        (void)nanosleep(&(struct timespec){0, pause_ns}, NULL);
        if (pause_ns < 8000000)
            pause_ns *= 2;
    }
    return lock;
}

fl_disk_lock fl_disk_lock_key(fl_disk *disk, const fl_digest *key)
{
    uint64_t place;

    memcpy(&place, key->bytes, sizeof place);
    /* Place 0 belongs to the sweep; two keys that share a place merely wait for each other. */
    return lock_place(disk, (int64_t)(place & (UINT64_MAX >> 2)) + 1);
}

void fl_disk_unlock(fl_disk_lock *lock)
{
    if (lock->file < 0)
        return;
    /* Unlocks explicitly: a child forked meanwhile has the description, too, and closing is not
     * enough. */
    (void)set_lock(lock->file, lock->place, F_UNLCK);
    (void)close(lock->file);
    lock->file = -1;
}

/* --- Reading --- */

static fl_digest digest_of(const header *head, const void *data)
{
    header bare = *head;
    fl_sha256 sha;

    memset(&bare.digest, 0, sizeof bare.digest);
    fl_sha256_init(&sha);
    fl_sha256_add(&sha, &bare, sizeof bare);
    fl_sha256_add(&sha, data, (size_t)bare.bytes);
    return fl_sha256_finish(&sha);
}

static bool is_header_sound(const header *head, const fl_digest *key, off_t size)
{
    return memcmp(head->magic, MAGIC, sizeof head->magic) == 0 && head->format == FORMAT &&
           head->is_ptx <= 1 && head->reserved == 0 && head->bytes <= IMAGE_MOST &&
           (uint64_t)size == sizeof *head + head->bytes &&
           memcmp(&head->key, key, sizeof *key) == 0 &&
           memchr(head->label, '\0', sizeof head->label) != NULL;
}

static filch_status read_file(const fl_disk *disk, int file, const fl_digest *key, header *head,
                              void **data)
{
    struct stat found;
    fl_digest digest;

    if (fstat(file, &found) != 0 || !fl_file_is_ours(&found) ||
        !fl_file_read(file, head, sizeof *head) || !is_header_sound(head, key, found.st_size))
        return FILCH_DATA;
    *data = fl_alloc(disk->memory, (size_t)head->bytes);
    if (*data == NULL)
        return FILCH_OUT_OF_MEMORY;
    if (fl_file_read(file, *data, (size_t)head->bytes)) {
        digest = digest_of(head, *data);
        if (memcmp(&digest, &head->digest, sizeof digest) == 0)
            return FILCH_OK;
    }
    fl_free(disk->memory, *data, (size_t)head->bytes);
    return FILCH_DATA;
}

static filch_status load(const fl_disk *disk, const fl_digest *key, bool used, fl_disk_info *info,
                         void **data)
{
    char name[NAME_SIZE];
    filch_status status;
    header head;
    int file;

    image_name(name, key);
    /* O_NONBLOCK: the file may be a pipe. */
    file = openat(disk->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0)
        return errno == ENOENT ? FILCH_NOT_FOUND : FILCH_DATA;
    status = read_file(disk, file, key, &head, data);
    /* Sets the time explicitly: not every file system keeps the time of access. Without the right
     * to set the time, only the order of removal suffers. */
    if (status == FILCH_OK && used)
        (void)futimens(file, NULL);
    (void)close(file);
    if (status != FILCH_OK)
        return status;
    *info =
        (fl_disk_info){.arch = head.arch, .is_ptx = head.is_ptx != 0, .bytes = (size_t)head.bytes};
    memcpy(info->label, head.label, sizeof info->label);
    return FILCH_OK;
}

filch_status fl_disk_read(fl_disk *disk, const fl_digest *key, fl_disk_info *info, void **data)
{
    return load(disk, key, true, info, data);
}

filch_status fl_disk_check(fl_disk *disk, const fl_digest *key, fl_disk_info *info)
{
    void *data;
    filch_status status = load(disk, key, false, info, &data);

    if (status == FILCH_OK)
        fl_free(disk->memory, data, info->bytes);
    return status;
}

/* --- Listing and removal --- */

static int64_t now_ns(void)
{
    struct timespec now = {0, 0};

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

typedef filch_status (*visit_fn)(const fl_disk *disk, const char *name, const fl_digest *key,
                                 const struct stat *found, void *user);

/* Calls visit for every image, whole (with a key) or under way (null), until visit fails. */
static filch_status each_file(const fl_disk *disk, visit_fn visit, void *user)
{
    /* Opens a separate description: the folder's description has a single read position for every
     * thread. */
    int file = openat(disk->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = file < 0 ? NULL : fdopendir(file);
    const struct dirent *entry;
    filch_status status = FILCH_OK;

    if (folder == NULL) {
        if (file >= 0)
            (void)close(file);
        return FILCH_IO;
    }
    /* The stream is local to the call. NOLINTNEXTLINE(concurrency-mt-unsafe) */
    while (status == FILCH_OK && (entry = readdir(folder)) != NULL) {
        bool aside = is_aside(entry->d_name);
        struct stat found;
        fl_digest key;

        if ((aside || is_image(entry->d_name, &key)) &&
            fstatat(disk->folder, entry->d_name, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(found.st_mode))
            status = visit(disk, entry->d_name, aside ? NULL : &key, &found, user);
    }
    (void)closedir(folder);
    return status;
}

typedef struct listing {
    fl_disk_item *items;
    size_t count;
    size_t capacity;
} listing;

static int64_t changed_ns(const struct stat *found)
{
    return (int64_t)found->st_mtim.tv_sec * 1000000000 + found->st_mtim.tv_nsec;
}

static filch_status list_one(const fl_disk *disk, const char *name, const fl_digest *key,
                             const struct stat *found, void *user)
{
    listing *all = user;
    filch_status status;

    if (key == NULL) {
        if (now_ns() - changed_ns(found) > STALE_NS)
            (void)unlinkat(disk->folder, name, 0);
        return FILCH_OK;
    }
    status = fl_array_reserve(disk->memory, &all->items, &all->capacity, all->count + 1,
                              sizeof *all->items);
    if (status == FILCH_OK)
        all->items[all->count++] =
            (fl_disk_item){*key, (uint64_t)found->st_size, changed_ns(found)};
    return status;
}

static int compare_items(const void *a, const void *b)
{
    const fl_disk_item *left = a;
    const fl_disk_item *right = b;

    if (left->used_ns != right->used_ns)
        return left->used_ns < right->used_ns ? -1 : 1;
    return memcmp(&left->key, &right->key, sizeof left->key);
}

filch_status fl_disk_list(fl_disk *disk, fl_disk_item **items, size_t *count, size_t *capacity)
{
    listing all = {NULL, 0, 0};

    filch_status status = each_file(disk, list_one, &all);

    if (status != FILCH_OK) {
        fl_free(disk->memory, all.items, all.capacity * sizeof *all.items);
        return status;
    }
    if (all.count > 1)
        qsort(all.items, all.count, sizeof *all.items, compare_items);
    *items = all.items;
    *count = all.count;
    *capacity = all.capacity;
    return FILCH_OK;
}

/* Removes old files. A single process at a time counts and removes: of two processes counting
 * together, either would miss the file just stored by the second. */
static void sweep(fl_disk *disk)
{
    fl_disk_lock lock = lock_place(disk, 0);
    fl_disk_item *items = NULL;
    size_t count = 0;
    size_t capacity = 0;
    uint64_t sum = 0;

    if (fl_disk_list(disk, &items, &count, &capacity) == FILCH_OK) {
        for (size_t i = 0; i < count; i++)
            sum += items[i].bytes;
        for (size_t i = 0; i < count && sum > disk->limit; i++) {
            char name[NAME_SIZE];

            image_name(name, &items[i].key);
            if (unlinkat(disk->folder, name, 0) == 0 || errno == ENOENT)
                sum -= items[i].bytes;
        }
        fl_free(disk->memory, items, capacity * sizeof *items);
    }
    fl_disk_unlock(&lock);
}

typedef struct clearing {
    uint64_t files;
    uint64_t bytes;
    int code;
} clearing;

static filch_status clear_one(const fl_disk *disk, const char *name, const fl_digest *key,
                              const struct stat *found, void *user)
{
    clearing *all = user;

    (void)key;
    if (unlinkat(disk->folder, name, 0) == 0) {
        all->files++;
        all->bytes += (uint64_t)found->st_size;
    } else if (errno != ENOENT) {
        all->code = errno;
    }
    return FILCH_OK;
}

filch_status fl_disk_clear(fl_disk *disk, uint64_t *files, uint64_t *bytes, filch_error *error)
{
    fl_disk_lock lock = lock_place(disk, 0);
    clearing all = {0, 0, 0};
    filch_status status = each_file(disk, clear_one, &all);

    fl_disk_unlock(&lock);
    if (status != FILCH_OK)
        return fl_error_fill(error, (fl_fault){.status = status, .call = "readdir"},
                             "the folder of compiled kernels cannot be read");
    if (all.code != 0)
        return fl_error_fill(
            error, (fl_fault){.status = FILCH_IO, .native_code = all.code, .call = "unlink"},
            "some of the compiled kernels cannot be removed");
    *files = all.files;
    *bytes = all.bytes;
    return FILCH_OK;
}

/* --- Writing --- */

void fl_disk_write(fl_disk *disk, const fl_digest *key, const fl_disk_info *info, const void *data)
{
    header head = {.magic = MAGIC,
                   .format = FORMAT,
                   .arch = info->arch,
                   .is_ptx = info->is_ptx,
                   .bytes = info->bytes,
                   .key = *key};
    char name[NAME_SIZE];
    char prefix[FL_DIGEST_TEXT + 1];
    fl_output output;
    bool is_whole;

    if (!disk->is_writable || info->bytes > IMAGE_MOST || sizeof head + info->bytes > disk->limit)
        return;
    memcpy(head.label, info->label, sizeof head.label);
    head.label[sizeof head.label - 1] = '\0';
    head.digest = digest_of(&head, data);
    image_name(name, key);
    memcpy(prefix, name, FL_DIGEST_TEXT - 1);
    memcpy(prefix + FL_DIGEST_TEXT - 1, ".", 2);
    is_whole = fl_output_open(&output, disk->folder, name, prefix, FL_OUTPUT_PRIVATE) &&
               fl_output_write(&output, &head, sizeof head) &&
               fl_output_write(&output, data, (size_t)head.bytes) && fl_output_commit(&output);
    fl_output_abandon(&output);
    if (is_whole)
        sweep(disk);
    else
        complain(disk, &output);
}
