/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of compiled kernels while other processes spoil it, on a full disk, and where another
 * user has made it: whatever is read is what was stored under that key, nothing hangs or crashes,
 * and afterwards the folder works. */
#define _GNU_SOURCE
#include "fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "module/disk.h"
#include "random.h"

enum { KEYS = 6, USERS = 3, VANDALS = 2, STEPS = 1500, MOST_IMAGE = 20000, NOBODY = 65534 };

#define LIMIT ((uint64_t)1 << 30)

static fl_memory memory;
static char folder[64];
static int said; /* messages of this process */

static void hear(filch_log_level level, const char *text, void *user)
{
    (void)level;
    (void)user;
    said += text[0] != '\0';
}

static const fl_log log_here = {hear, NULL, FILCH_LOG_WARNING};

static int begin(void **state)
{
    (void)state;
    memory = fl_memory_system();
    said = 0;
    (void)snprintf(folder, sizeof folder, "/tmp/filch-attacks-XXXXXX");
    return mkdtemp(folder) == NULL;
}

static void clear_folder(void)
{
    char path[400];
    DIR *all = opendir(folder);

    for (const struct dirent *entry; all != NULL && (entry = readdir(all)) != NULL;) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            (void)remove(path);
    }
    if (all != NULL)
        (void)closedir(all);
}

static int end(void **state)
{
    (void)state;
    clear_folder();
    return rmdir(folder);
}

static fl_digest key_of(uint32_t number)
{
    fl_digest key = {{0}};

    memset(key.bytes, (int)number + 1, sizeof key.bytes);
    return key;
}

static void path_of(uint32_t number, char path[256])
{
    fl_digest key = key_of(number);
    char digits[FL_DIGEST_TEXT];

    fl_digest_format(&key, digits);
    (void)snprintf(path, 256, "%s/%s.img", folder, digits);
}

/* The image of a key follows from it and from a version, which its first byte tells. */
static size_t image_of(uint32_t number, unsigned char version, unsigned char *image)
{
    size_t bytes = 1 + (number * 4001u + version * 37u) % MOST_IMAGE;

    for (size_t i = 0; i < bytes; i++)
        image[i] = (unsigned char)(number * 31 + version * 7 + i);
    image[0] = version;
    return bytes;
}

static void store(fl_disk *disk, uint32_t number, unsigned char version)
{
    static unsigned char image[MOST_IMAGE + 1];
    fl_disk_info info = {.arch = 90, .bytes = image_of(number, version, image), .label = "a"};
    fl_digest key = key_of(number);

    fl_disk_write(disk, &key, &info, image);
}

/* False: what was read was never stored under that key. */
static bool look(fl_disk *disk, uint32_t number, filch_status *status)
{
    static unsigned char wanted[MOST_IMAGE + 1];
    fl_digest key = key_of(number);
    unsigned char *image = NULL;
    fl_disk_info info;
    bool is_right;

    *status = fl_disk_read(disk, &key, &info, (void **)&image);
    if (*status != FILCH_OK)
        return *status == FILCH_NOT_FOUND || *status == FILCH_DATA;
    is_right = info.bytes > 0 && image_of(number, image[0], wanted) == info.bytes &&
               memcmp(image, wanted, info.bytes) == 0;
    fl_free(&memory, image, info.bytes);
    return is_right;
}

/* --- Live --- */

static int use(uint32_t self)
{
    fl_random random;
    fl_disk disk;

    fl_random_init(&random, 7, self);
    if (fl_disk_open(&disk, &memory, &log_here, folder, LIMIT, FL_DISK_CREATE, NULL) != FILCH_OK)
        return 2;
    for (uint32_t step = 0; step < STEPS; step++) {
        uint32_t number = fl_random_below(&random, KEYS), what = fl_random_below(&random, 100);
        uint64_t files, bytes;
        filch_status status;

        if (what < 40)
            store(&disk, number, (unsigned char)fl_random_next(&random));
        else if (what < 98 && !look(&disk, number, &status))
            return 1;
        else if (what >= 98)
            (void)fl_disk_clear(&disk, &files, &bytes, NULL);
    }
    fl_disk_close(&disk);
    return 0;
}

/* One of the things that can become of a file. */
static void spoil(const char *path, const char *other, fl_random *random)
{
    struct stat found;
    int file;

    switch (fl_random_below(random, 8)) {
    case 0: /* cut in place, or made longer */
        (void)!truncate(path, (off_t)fl_random_below(random, 4000));
        break;
    case 1: /* other bytes in place */
        file = open(path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW);
        if (file >= 0 && fstat(file, &found) == 0 && found.st_size > 0)
            (void)!pwrite(file, "x", 1, (off_t)fl_random_below(random, (uint32_t)found.st_size));
        if (file >= 0)
            (void)close(file);
        break;
    case 2:
        (void)unlink(path);
        break;
    case 3:
        (void)unlink(path);
        (void)!symlink(fl_random_below(random, 2) ? other : "/etc/passwd", path);
        break;
    case 4:
        (void)unlink(path);
        (void)mkfifo(path, 0600);
        break;
    case 5: /* a sound file under the name of another key */
        (void)unlink(path);
        (void)!link(other, path);
        break;
    case 6:
        (void)rename(other, path);
        break;
    default:
        (void)chmod(path, fl_random_below(random, 2) ? 0666 : 0600);
    }
}

static int vandalize(uint32_t self)
{
    char path[256], other[256], lock[256];
    fl_random random;

    fl_random_init(&random, 11, self);
    (void)snprintf(lock, sizeof lock, "%s/lock", folder);
    for (uint32_t step = 0; step < 4 * STEPS; step++) {
        path_of(fl_random_below(&random, KEYS), path);
        path_of(fl_random_below(&random, KEYS), other);
        spoil(path, other, &random);
        if (step % 64 == 0)
            (void)unlink(lock);
        if (step % 8 == 0)
            (void)usleep(50);
    }
    return 0;
}

static pid_t start(int (*what)(uint32_t), uint32_t self)
{
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0)
        _exit(what(self));
    return child;
}

static void await_all(const pid_t *children, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        int status = -1;

        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

static void files_are_spoiled_while_they_are_used(void **state)
{
    pid_t children[USERS + VANDALS];
    filch_status status;
    struct stat found;
    char path[256];
    fl_disk disk;

    (void)state;
    for (uint32_t i = 0; i < USERS + VANDALS; i++)
        children[i] = start(i < USERS ? use : vandalize, i);
    await_all(children, USERS + VANDALS);
    /* Peace: it works, and nothing half written is left. */
    assert_ok(fl_disk_open(&disk, &memory, &log_here, folder, LIMIT, FL_DISK_CREATE, NULL));
    for (uint32_t number = 0; number < KEYS; number++) {
        /* A link or a FIFO is nobody's kernel: it stays until its owner removes it. */
        path_of(number, path);
        if (lstat(path, &found) == 0 && !S_ISREG(found.st_mode))
            assert_int_equal(unlink(path), 0);
        store(&disk, number, 3);
        assert_true(look(&disk, number, &status));
        assert_int_equal(status, FILCH_OK);
    }
    fl_disk_close(&disk);
    DIR *all = opendir(folder);
    assert_non_null(all);
    for (const struct dirent *entry; (entry = readdir(all)) != NULL;)
        assert_null(strstr(entry->d_name, ".tmp"));
    (void)closedir(all);
}

/* --- A full disk --- */

#define MUST(holds)                    \
    do {                               \
        if (!(holds))                  \
            return __LINE__ % 200 + 1; \
    } while (0)

static uint32_t count_asides(void)
{
    uint32_t count = 0;
    DIR *all = opendir(folder);

    for (const struct dirent *entry; all != NULL && (entry = readdir(all)) != NULL;)
        count += strstr(entry->d_name, ".tmp") != NULL;
    if (all != NULL)
        (void)closedir(all);
    return count;
}

static int fill(uint32_t self)
{
    static unsigned char image[MOST_IMAGE + 1];
    uint32_t found = 0;
    uint64_t files, bytes;
    filch_status status;
    fl_disk disk;

    (void)self;
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", folder, "tmpfs", 0, "size=32k,mode=700") != 0)
        return 255;
    MUST(fl_disk_open(&disk, &memory, &log_here, folder, LIMIT, FL_DISK_CREATE, NULL) == FILCH_OK);
    for (uint32_t number = 0; number < KEYS; number++)
        store(&disk, number, 3);
    MUST(said == 1 && count_asides() == 0);
    for (uint32_t number = 0; number < KEYS; number++) {
        MUST(look(&disk, number, &status));
        found += status == FILCH_OK;
    }
    MUST(found > 0 && found < KEYS);
    MUST(fl_disk_clear(&disk, &files, &bytes, NULL) == FILCH_OK && files == found);
    for (uint32_t number = KEYS; number-- > 0;) {
        if (image_of(number, 3, image) > 16000)
            continue;
        store(&disk, number, 3);
        MUST(look(&disk, number, &status) && status == FILCH_OK);
        MUST(fl_disk_clear(&disk, &files, &bytes, NULL) == FILCH_OK);
    }
    fl_disk_close(&disk);
    return 0;
}

static void a_full_disk_keeps_what_fits(void **state)
{
    pid_t child = start(fill, 0);
    int status = -1;

    (void)state;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 255) {
        print_message("no right to mount a small file system\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* --- Other users --- */

/* As nobody, in a folder of another user's: that user's images are not trusted, root's are. */
static int use_as_nobody(uint32_t self)
{
    filch_status status;
    fl_disk disk;

    (void)self;
    MUST(setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
    MUST(fl_disk_open(&disk, &memory, &log_here, folder, LIMIT, FL_DISK_CREATE, NULL) == FILCH_OK);
    MUST(!disk.is_writable);
    MUST(look(&disk, 1, &status) && status == FILCH_DATA);
    MUST(look(&disk, 2, &status) && status == FILCH_OK);
    store(&disk, 3, 1);
    MUST(look(&disk, 3, &status) && status == FILCH_NOT_FOUND);
    fl_disk_lock lock = fl_disk_lock_key(&disk, &(fl_digest){{1}});
    MUST(lock.file == -1); /* nor is anybody waited for */
    fl_disk_unlock(&lock);
    fl_disk_close(&disk);
    return 0;
}

static void a_folder_of_another_user_gives_nothing(void **state)
{
    char path[256];
    fl_disk disk;

    (void)state;
    if (geteuid() != 0) {
        print_message("only root can make files of other users\n");
        skip();
    }
    assert_ok(fl_disk_open(&disk, &memory, &log_here, folder, LIMIT, FL_DISK_CREATE, NULL));
    for (uint32_t number = 1; number <= 2; number++) {
        store(&disk, number, 1);
        path_of(number, path);
        assert_int_equal(chmod(path, 0644), 0);
    }
    path_of(1, path);
    assert_int_equal(chown(path, 1, 1), 0);
    assert_int_equal(chmod(folder, 0755), 0);
    assert_int_equal(chown(folder, 1, 1), 0);
    fl_disk_close(&disk);
    pid_t child = start(use_as_nobody, 0);
    await_all(&child, 1);
}

#define attack(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        attack(files_are_spoiled_while_they_are_used),
        attack(a_full_disk_keeps_what_fits),
        attack(a_folder_of_another_user_gives_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
