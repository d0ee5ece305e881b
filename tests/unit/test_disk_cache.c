/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of compiled kernels: what is trusted, what is removed, who waits for whom. */
#define _GNU_SOURCE
#include "fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"
#include "module/disk.h"

#define LIMIT 100000
#define IMAGE 1000

static fixture_memory counted;
static fl_memory memory;
static char folder[64];

typedef struct heard {
    int count;
    filch_log_level level;
    char text[256];
} heard;

static heard said;

static void hear(filch_log_level level, const char *text, void *user)
{
    heard *all = user;

    all->count++;
    all->level = level;
    (void)snprintf(all->text, sizeof all->text, "%s", text);
}

static const fl_log log_here = {hear, &said, FILCH_LOG_DEBUG};

static int begin(void **state)
{
    (void)state;
    fixture_memory_init(&counted);
    memory = (fl_memory){counted.allocator.alloc, counted.allocator.free, counted.allocator.user,
                         "caller"};
    said = (heard){0};
    (void)snprintf(folder, sizeof folder, "/tmp/filch-disk-XXXXXX");
    return mkdtemp(folder) == NULL;
}

static const char *path_of(const char *name)
{
    static char path[512];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* Removes what the tests leave: one level of folders below is enough. */
static int end(void **state)
{
    DIR *all = opendir(folder);

    (void)state;
    for (const struct dirent *entry; all != NULL && (entry = readdir(all)) != NULL;) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            (void)remove(path_of(entry->d_name));
    }
    if (all != NULL)
        (void)closedir(all);
    (void)rmdir(folder);
    return counted.pieces != 0;
}

static fl_digest key_of(int number)
{
    fl_digest key = {{0}};

    memset(key.bytes, 0xab, sizeof key.bytes);
    key.bytes[0] = (unsigned char)number;
    key.bytes[20] = (unsigned char)(number >> 8);
    return key;
}

static const char *file_of(int number)
{
    char name[FL_DIGEST_TEXT + 8];
    fl_digest key = key_of(number);

    fl_digest_format(&key, name);
    (void)snprintf(name + FL_DIGEST_TEXT - 1, 5, ".img");
    return path_of(name);
}

static void open_disk(fl_disk *disk, uint64_t limit)
{
    assert_ok(fl_disk_open(disk, &memory, &log_here, folder, limit, FL_DISK_CREATE, NULL));
    assert_true(disk->is_writable);
}

static void store(fl_disk *disk, int number, size_t bytes)
{
    fl_digest key = key_of(number);
    fl_disk_info info = {.arch = 90, .is_ptx = number % 2, .bytes = bytes, .label = "stored"};
    unsigned char *data = malloc(bytes + 1);

    assert_non_null(data);
    memset(data, number, bytes);
    fl_disk_write(disk, &key, &info, data);
    free(data);
}

static filch_status look(fl_disk *disk, int number)
{
    fl_digest key = key_of(number);
    fl_disk_info info;

    return fl_disk_check(disk, &key, &info);
}

static void set_time(int number, int64_t seconds)
{
    const struct timespec times[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};

    assert_int_equal(utimensat(AT_FDCWD, file_of(number), times, 0), 0);
}

static void what_is_stored_is_read(void **state)
{
    fl_disk disk;

    (void)state;
    open_disk(&disk, LIMIT);
    for (int number = 0; number < 4; number++) {
        size_t bytes = number == 3 ? 0 : IMAGE * (size_t)(number + 1);
        fl_digest key = key_of(number);
        fl_disk_info info;
        unsigned char *data = NULL;

        assert_status(fl_disk_read(&disk, &key, &info, (void **)&data), FILCH_NOT_FOUND);
        store(&disk, number, bytes);
        assert_ok(fl_disk_read(&disk, &key, &info, (void **)&data));
        assert_int_equal(info.bytes, bytes);
        assert_int_equal(info.arch, 90);
        assert_int_equal(info.is_ptx, number % 2);
        assert_string_equal(info.label, "stored");
        for (size_t i = 0; i < bytes; i++)
            assert_int_equal(data[i], number);
        fl_free(&memory, data, info.bytes);
    }
    /* Stored again, it is replaced. */
    store(&disk, 1, 5);
    fl_digest key = key_of(1);
    fl_disk_info info;
    assert_ok(fl_disk_check(&disk, &key, &info));
    assert_int_equal(info.bytes, 5);
    fl_disk_close(&disk);
    assert_int_equal(said.count, 0);
}

static void rewrite(int number, const void *bytes, size_t size)
{
    FILE *file = fopen(file_of(number), "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void no_damage_goes_unnoticed(void **state)
{
    unsigned char whole[FL_DISK_HEADER + IMAGE + 1] = {0};
    size_t size = FL_DISK_HEADER + IMAGE;
    fl_disk disk;
    FILE *file;

    (void)state;
    open_disk(&disk, LIMIT);
    store(&disk, 7, IMAGE);
    file = fopen(file_of(7), "rb");
    assert_non_null(file);
    assert_int_equal(fread(whole, 1, sizeof whole, file), size);
    (void)fclose(file);
    for (size_t at = 0; at < size; at += at < FL_DISK_HEADER ? 1 : 37) {
        for (int bit = 0; bit < 8; bit++) {
            whole[at] ^= (unsigned char)(1 << bit);
            rewrite(7, whole, size);
            assert_status(look(&disk, 7), FILCH_DATA);
            whole[at] ^= (unsigned char)(1 << bit);
        }
    }
    for (size_t shorter = 0; shorter < size; shorter += 31) {
        rewrite(7, whole, shorter);
        assert_status(look(&disk, 7), FILCH_DATA);
    }
    rewrite(7, whole, size + 1);
    assert_status(look(&disk, 7), FILCH_DATA);
    /* Under another key's name. */
    rewrite(8, whole, size);
    assert_int_equal(chmod(file_of(8), 0600), 0);
    assert_status(look(&disk, 8), FILCH_DATA);
    rewrite(7, whole, size);
    assert_ok(look(&disk, 7));
    fl_disk_close(&disk);
}

static void what_others_could_have_written_is_not_trusted(void **state)
{
    fl_disk disk;
    char there[512];

    (void)state;
    open_disk(&disk, LIMIT);
    store(&disk, 1, IMAGE);
    assert_int_equal(chmod(file_of(1), 0620), 0);
    assert_status(look(&disk, 1), FILCH_DATA);
    assert_int_equal(chmod(file_of(1), 0602), 0);
    assert_status(look(&disk, 1), FILCH_DATA);
    assert_int_equal(chmod(file_of(1), 0644), 0);
    assert_ok(look(&disk, 1));
    if (geteuid() == 0) {
        assert_int_equal(chown(file_of(1), 12345, 12345), 0);
        assert_status(look(&disk, 1), FILCH_DATA);
        assert_int_equal(chown(file_of(1), 0, 0), 0);
    }
    (void)snprintf(there, sizeof there, "%s", path_of("elsewhere"));
    assert_int_equal(rename(file_of(1), there), 0);
    assert_int_equal(symlink(there, file_of(1)), 0);
    assert_status(look(&disk, 1), FILCH_DATA);
    assert_int_equal(unlink(file_of(1)), 0);
    assert_int_equal(mkdir(file_of(1), 0700), 0);
    assert_status(look(&disk, 1), FILCH_DATA);
    assert_int_equal(rmdir(file_of(1)), 0);
    assert_int_equal(mkfifo(file_of(1), 0600), 0);
    assert_status(look(&disk, 1), FILCH_DATA);
    /* Only a regular file is replaced. */
    store(&disk, 1, IMAGE);
    assert_status(look(&disk, 1), FILCH_DATA);
    assert_int_equal(unlink(file_of(1)), 0);
    store(&disk, 1, IMAGE);
    assert_int_equal(chmod(file_of(1), 0602), 0);
    assert_status(look(&disk, 1), FILCH_DATA);
    store(&disk, 1, IMAGE);
    assert_ok(look(&disk, 1));
    fl_disk_close(&disk);
}

static void those_unused_for_longest_go_first(void **state)
{
    const uint64_t file = FL_DISK_HEADER + IMAGE;
    fl_digest key = key_of(0);
    fl_disk_info info;
    fl_disk disk;
    void *data;

    (void)state;
    open_disk(&disk, 4 * file);
    for (int number = 0; number < 4; number++) {
        store(&disk, number, IMAGE);
        set_time(number, 1000 + number);
    }
    /* Reading counts as use, checking does not. */
    assert_ok(fl_disk_read(&disk, &key, &info, &data));
    fl_free(&memory, data, info.bytes);
    assert_ok(look(&disk, 1));
    store(&disk, 4, IMAGE);
    assert_ok(look(&disk, 0));
    assert_status(look(&disk, 1), FILCH_NOT_FOUND);
    assert_ok(look(&disk, 2));
    /* As many as it takes. */
    set_time(4, 1002);
    store(&disk, 5, 2 * IMAGE);
    assert_status(look(&disk, 2), FILCH_NOT_FOUND);
    assert_status(look(&disk, 3), FILCH_OK);
    assert_status(look(&disk, 4), FILCH_NOT_FOUND);
    assert_ok(look(&disk, 0));
    assert_ok(look(&disk, 5));
    /* What would not fit alone is not stored, and removes nothing. */
    store(&disk, 6, 5 * IMAGE);
    assert_status(look(&disk, 6), FILCH_NOT_FOUND);
    assert_ok(look(&disk, 0));
    fl_disk_close(&disk);
    assert_int_equal(said.count, 0);
}

static void touch(const char *name, int64_t age)
{
    struct timespec times[2];
    int file = open(path_of(name), O_WRONLY | O_CREAT, 0600);

    assert_true(file >= 0);
    (void)clock_gettime(CLOCK_REALTIME, &times[0]);
    times[0].tv_sec -= age;
    times[1] = times[0];
    assert_int_equal(futimens(file, times), 0);
    (void)close(file);
}

static bool is_there(const char *name)
{
    return access(path_of(name), F_OK) == 0;
}

/* In the place of a kernel or of one under way: neither written through nor removed. */
static void links_stay(void **state)
{
    static const char aside[] =
        "abababababababababababababababababababababababababababababababab.12.34.tmp";
    const struct timespec old[2] = {{1, 0}, {1, 0}};
    uint64_t files = 0, bytes = 0;
    fl_disk disk;

    (void)state;
    open_disk(&disk, LIMIT);
    assert_int_equal(symlink("/dev/null", file_of(3)), 0);
    assert_int_equal(symlink("/dev/null", path_of(aside)), 0);
    assert_int_equal(utimensat(AT_FDCWD, path_of(aside), old, AT_SYMLINK_NOFOLLOW), 0);
    store(&disk, 3, IMAGE);
    store(&disk, 1, IMAGE);
    assert_ok(fl_disk_clear(&disk, &files, &bytes, NULL));
    assert_int_equal(files, 1);
    assert_int_equal(unlink(file_of(3)), 0); /* it still is there */
    assert_int_equal(unlink(path_of(aside)), 0);
    fl_disk_close(&disk);
}

static void only_its_own_files_are_touched(void **state)
{
    static const char aside[] =
        "abababababababababababababababababababababababababababababababab.12.34.tmp";
    static const char recent[] =
        "abababababababababababababababababababababababababababababababab.12.35.tmp";
    static const char *const foreign[] = {
        "notes.txt",
        "ab.img",
        "ABababababababababababababababababababababababababababababababab.img",
        "abababababababababababababababababababababababababababababababab.imgx",
        "abababababababababababababababababababababababababababababababab.tmp",
        ".tmp"};
    fl_disk_item *items = NULL;
    size_t count = 0, capacity = 0;
    uint64_t files = 0, bytes = 0;
    fl_disk disk;

    (void)state;
    open_disk(&disk, LIMIT);
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++)
        touch(foreign[i], 100000);
    touch(aside, 7200);
    touch(recent, 60);
    store(&disk, 1, IMAGE);
    store(&disk, 2, IMAGE + 1);
    set_time(2, 500);
    assert_false(is_there(aside)); /* left behind long ago */
    assert_true(is_there(recent)); /* somebody may be at it */
    assert_ok(fl_disk_list(&disk, &items, &count, &capacity));
    assert_int_equal(count, 2);
    assert_int_equal(items[0].key.bytes[0], 2);
    assert_int_equal(items[0].bytes, FL_DISK_HEADER + IMAGE + 1);
    assert_int_equal(items[0].used_ns, 500 * INT64_C(1000000000));
    assert_int_equal(items[1].key.bytes[0], 1);
    fl_free(&memory, items, capacity * sizeof *items);
    assert_ok(fl_disk_clear(&disk, &files, &bytes, NULL));
    assert_int_equal(files, 3);
    assert_int_equal(bytes, 2 * FL_DISK_HEADER + 2 * IMAGE + 1);
    assert_false(is_there(recent));
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++)
        assert_true(is_there(foreign[i]));
    assert_ok(fl_disk_list(&disk, &items, &count, &capacity));
    assert_int_equal(count, 0);
    fl_free(&memory, items, capacity * sizeof *items);
    fl_disk_close(&disk);
}

static void folders_are_made_or_not(void **state)
{
    filch_error error = FILCH_ERROR_INIT;
    struct stat found;
    fl_disk disk;
    char path[512];

    (void)state;
    (void)snprintf(path, sizeof path, "%s/a/b/", folder);
    assert_status(fl_disk_open(&disk, &memory, NULL, path, 1, FL_DISK_EXISTING, NULL),
                  FILCH_NOT_FOUND);
    assert_status(fl_disk_open(&disk, &memory, NULL, "relative", 1, FL_DISK_CREATE, &error),
                  FILCH_IO);
    assert_ok(fl_disk_open(&disk, &memory, NULL, path, 1, FL_DISK_CREATE, NULL));
    assert_int_equal(stat(path, &found), 0);
    assert_int_equal(found.st_mode & 0777, 0700);
    fl_disk_close(&disk);
    assert_ok(fl_disk_open(&disk, &memory, NULL, path, 1, FL_DISK_EXISTING, NULL));
    fl_disk_close(&disk);
    touch("file", 0);
    (void)snprintf(path, sizeof path, "%s/file", folder);
    assert_status(fl_disk_open(&disk, &memory, NULL, path, 1, FL_DISK_CREATE, &error), FILCH_IO);
    assert_int_equal(error.native_code, ENOTDIR);
    assert_non_null(strstr(error.text, path));
    (void)remove(path_of("a/b/lock"));
    (void)remove(path_of("a/b"));
}

/* Rights do not bind root, so the file that every writer opens is in the way. */
static void a_folder_may_be_for_reading_only(void **state)
{
    fl_disk disk;

    (void)state;
    open_disk(&disk, LIMIT);
    store(&disk, 1, IMAGE);
    fl_disk_close(&disk);
    assert_int_equal(unlink(path_of("lock")), 0);
    assert_int_equal(mkdir(path_of("lock"), 0700), 0);
    assert_ok(fl_disk_open(&disk, &memory, &log_here, folder, LIMIT, FL_DISK_CREATE, NULL));
    assert_false(disk.is_writable);
    assert_ok(look(&disk, 1));
    store(&disk, 2, IMAGE);
    assert_status(look(&disk, 2), FILCH_NOT_FOUND);
    fl_digest key = key_of(2);
    fl_disk_lock lock = fl_disk_lock_key(&disk, &key);
    assert_int_equal(lock.file, -1);
    fl_disk_unlock(&lock);
    fl_disk_close(&disk);
}

static void a_failing_store_is_said_once_and_leaves_nothing(void **state)
{
    fl_disk_item *items = NULL;
    size_t count = 0, capacity = 0;
    fl_disk disk;

    (void)state;
    open_disk(&disk, LIMIT);
    assert_int_equal(mkdir(file_of(1), 0700), 0); /* no file replaces a folder */
    store(&disk, 1, IMAGE);
    store(&disk, 1, IMAGE);
    assert_int_equal(said.count, 1);
    assert_int_equal(said.level, FILCH_LOG_WARNING);
    assert_non_null(strstr(said.text, "cannot be kept on disk: "));
    assert_int_equal(rmdir(file_of(1)), 0);
    assert_ok(fl_disk_list(&disk, &items, &count, &capacity));
    assert_int_equal(count, 0);
    fl_free(&memory, items, capacity * sizeof *items);
    uint64_t files = 9, bytes = 9;
    assert_ok(fl_disk_clear(&disk, &files, &bytes, NULL));
    assert_int_equal(files, 0); /* nothing half written */
    fl_disk_close(&disk);
}

static void memory_may_run_out_anywhere(void **state)
{
    fl_digest key = key_of(1);
    fl_disk disk;
    int refusals = 0;

    (void)state;
    open_disk(&disk, 10 * (FL_DISK_HEADER + IMAGE));
    for (int number = 0; number < 10; number++)
        store(&disk, number, IMAGE);
    for (int n = 1; n < 100; n++) {
        int before = refusals;
        fl_disk_info info;
        fl_disk_item *items = NULL;
        size_t count = 0, capacity = 0;
        filch_status status;
        void *data;

        fixture_memory_fail_after(&counted, n);
        status = fl_disk_read(&disk, &key, &info, &data);
        if (status == FILCH_OK)
            fl_free(&memory, data, info.bytes);
        else
            assert_status(status, FILCH_OUT_OF_MEMORY);
        refusals += status != FILCH_OK;
        status = fl_disk_list(&disk, &items, &count, &capacity);
        if (status == FILCH_OK)
            fl_free(&memory, items, capacity * sizeof *items);
        else
            assert_status(status, FILCH_OUT_OF_MEMORY);
        refusals += status != FILCH_OK;
        store(&disk, 1, IMAGE); /* which never fails */
        assert_int_equal(counted.pieces, 0);
        if (atomic_load(&counted.calls) < atomic_load(&counted.fail_at))
            break;
        assert_true(n > 1 || refusals > before);
    }
    fixture_memory_fail_after(&counted, 0);
    assert_true(refusals >= 2);
    for (int number = 0; number < 10; number++)
        assert_ok(look(&disk, number));
    fl_disk_close(&disk);
}

/* --- Locks --- */

typedef struct claimant {
    fl_disk *disk;
    fl_digest key;
    _Atomic int holders, most, turns;
} claimant;

static int claim(void *arg)
{
    claimant *c = arg;

    for (int i = 0; i < 50; i++) {
        fl_disk_lock lock = fl_disk_lock_key(c->disk, &c->key);
        int now = atomic_fetch_add(&c->holders, 1) + 1;

        if (lock.file < 0 || now > 1)
            atomic_store(&c->most, now + 1);
        fl_thread_yield();
        atomic_fetch_sub(&c->holders, 1);
        atomic_fetch_add(&c->turns, 1);
        fl_disk_unlock(&lock);
    }
    return 0;
}

static void a_key_has_one_holder_in_a_process(void **state)
{
    claimant c = {.key = key_of(1)};
    fl_thread threads[3];
    fl_disk disk;

    (void)state;
    open_disk(&disk, LIMIT);
    c.disk = &disk;
    for (int i = 0; i < 3; i++)
        assert_ok(fl_thread_start(&threads[i], claim, &c));
    for (int i = 0; i < 3; i++)
        fl_thread_join(threads[i]);
    assert_int_equal(c.most, 0);
    assert_int_equal(c.turns, 150);
    fl_disk_close(&disk);
}

static void keys_do_not_wait_for_each_other(void **state)
{
    fl_digest one = key_of(1), two = key_of(2);
    fl_disk disk, other;

    (void)state;
    open_disk(&disk, LIMIT);
    open_disk(&other, LIMIT);
    fl_disk_lock first = fl_disk_lock_key(&disk, &one);
    fl_disk_lock second = fl_disk_lock_key(&other, &two);
    assert_true(first.file >= 0 && second.file >= 0);
    store(&other, 3, IMAGE); /* whose sweep has a lock of its own */
    fl_disk_unlock(&first);
    first = fl_disk_lock_key(&other, &one);
    assert_true(first.file >= 0);
    fl_disk_unlock(&first);
    fl_disk_unlock(&second);
    fl_disk_unlock(&second); /* a second time does nothing */
    fl_disk_close(&disk);
    fl_disk_close(&other);
}

/* A process that takes the lock of key 1, says so, and waits to be killed. */
static pid_t hold_elsewhere(fl_disk *disk)
{
    int ends[2];
    char byte = 0;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        fl_digest key = key_of(1);
        fl_disk_lock lock = fl_disk_lock_key(disk, &key);

        byte = lock.file >= 0 ? 'y' : 'n';
        if (write(ends[1], &byte, 1) == 1)
            (void)pause();
        _exit(0);
    }
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    (void)close(ends[0]);
    (void)close(ends[1]);
    return child;
}

static int claim_once(void *arg)
{
    claimant *c = arg;
    fl_disk_lock lock = fl_disk_lock_key(c->disk, &c->key);

    atomic_store(&c->turns, lock.file >= 0 ? 1 : 2);
    fl_disk_unlock(&lock);
    return 0;
}

static void the_lock_of_a_killed_process_is_free(void **state)
{
    claimant c = {.key = key_of(1)};
    fl_thread thread;
    fl_disk disk;
    pid_t child;

    (void)state;
    open_disk(&disk, LIMIT);
    c.disk = &disk;
    child = hold_elsewhere(&disk);
    assert_ok(fl_thread_start(&thread, claim_once, &c));
    (void)usleep(30000);
    assert_int_equal(c.turns, 0);
    assert_int_equal(kill(child, SIGKILL), 0);
    fl_thread_join(thread);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(c.turns, 1);
    fl_disk_close(&disk);
}

/* A child that the host forks meanwhile has copies of all descriptors. */
static void a_forked_child_does_not_keep_the_lock(void **state)
{
    fl_digest key = key_of(1);
    fl_disk disk;
    pid_t child;

    (void)state;
    open_disk(&disk, LIMIT);
    fl_disk_lock lock = fl_disk_lock_key(&disk, &key);
    assert_true(lock.file >= 0);
    child = fork();
    if (child == 0) {
        (void)pause();
        _exit(0);
    }
    fl_disk_unlock(&lock);
    claimant c = {.disk = &disk, .key = key};
    fl_thread thread;
    assert_ok(fl_thread_start(&thread, claim_once, &c));
    assert_true(fixture_await(&c.turns, 1));
    fl_thread_join(thread);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(c.turns, 1);
    fl_disk_close(&disk);
}

#define disk_test(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        disk_test(what_is_stored_is_read),
        disk_test(no_damage_goes_unnoticed),
        disk_test(what_others_could_have_written_is_not_trusted),
        disk_test(those_unused_for_longest_go_first),
        disk_test(links_stay),
        disk_test(only_its_own_files_are_touched),
        disk_test(folders_are_made_or_not),
        disk_test(a_folder_may_be_for_reading_only),
        disk_test(a_failing_store_is_said_once_and_leaves_nothing),
        disk_test(memory_may_run_out_anywhere),
        disk_test(a_key_has_one_holder_in_a_process),
        disk_test(keys_do_not_wait_for_each_other),
        disk_test(the_lock_of_a_killed_process_is_free),
        disk_test(a_forked_child_does_not_keep_the_lock),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
