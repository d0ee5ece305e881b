/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of several processes ask for the same images at once, over one folder: every image is
 * compiled exactly once among all of them, and everyone gets its bytes. The fake compiler counts
 * its compilations in a file. One image asked for is one operation. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"
#include "module/image.h"
#include "stress.h"

enum { PROCESSES = 4, THREADS = 4, KEYS = 12, ROUND = PROCESSES * THREADS * KEYS };

typedef struct asker {
    stress *stress;
    fl_images *images;
    uint64_t round;
    uint64_t self;
} asker;

static void source_of(uint64_t round, uint64_t key, char text[64])
{
    /* One in three takes its time. */
    (void)snprintf(text, 64, "%s round %" PRIu64 " kernel %" PRIu64, key % 3 == 0 ? "@slow" : "",
                   round, key);
}

static int ask(void *arg)
{
    asker *a = arg;
    fl_random random;
    uint64_t start;

    fl_random_init(&random, a->stress->seed + a->round, a->self);
    start = stress_below(&random, KEYS);
    for (uint64_t i = 0; i < KEYS; i++) {
        uint64_t key = (start + i * 5) % KEYS;
        char source[64];
        fl_image_request request = {.label = "stress", .source = source, .arch = 90};
        const fl_image *image = NULL;

        source_of(a->round, key, source);
        if (fl_image_get(a->images, &request, &image, NULL) != FILCH_OK)
            stress_fail(a->stress, "an image was refused", key);
        else if (memmem(image->data, image->bytes, source, strlen(source)) == NULL)
            stress_fail(a->stress, "an image of something else", key);
    }
    return 0;
}

/* One process: its own runtime's images, and threads that ask. */
static int work(stress *s, const char *folder, uint64_t round, uint64_t process)
{
    fl_memory memory = fl_memory_system();
    fl_thread threads[THREADS];
    asker askers[THREADS];
    fl_settings settings;
    fl_image_stats stats;
    fl_images images;

    fl_settings_defaults(&settings);
    (void)snprintf(settings.nvrtc, sizeof settings.nvrtc, "%s", FL_NVRTC_FAKE13);
    (void)snprintf(settings.cache_dir, sizeof settings.cache_dir, "%s", folder);
    if (fl_images_init(&images, &memory, NULL, &settings) != FILCH_OK)
        return 2;
    for (uint64_t i = 0; i < THREADS; i++) {
        askers[i] = (asker){s, &images, round, process * THREADS + i};
        if (fl_thread_start(&threads[i], ask, &askers[i]) != FILCH_OK)
            return 2;
    }
    for (uint64_t i = 0; i < THREADS; i++)
        fl_thread_join(threads[i]);
    fl_images_stats(&images, &stats);
    if (stats.compiles + stats.disk_hits != KEYS ||
        stats.memory_hits != (uint64_t)KEYS * (THREADS - 1) || stats.disk_refused != 0)
        stress_fail(s, "the counts of a process do not add up; compiled", stats.compiles);
    fl_images_fini(&images);
    return fl_load_relaxed(&s->failures) != 0;
}

/* The process again, from its beginning: a fork would share what it should not. */
static pid_t start(const stress *s, char **argv, const char *folder, uint64_t round,
                   uint64_t process)
{
    char seed[32], turn[32], self[32];
    pid_t child = fork();

    if (child != 0)
        return child;
    (void)snprintf(seed, sizeof seed, "%" PRIu64, s->seed);
    (void)snprintf(turn, sizeof turn, "%" PRIu64, round);
    (void)snprintf(self, sizeof self, "%" PRIu64, process);
    (void)execl("/proc/self/exe", argv[0], "--process", folder, seed, turn, self, (char *)NULL);
    _exit(3);
}

static uint64_t compilations(const char *path)
{
    struct stat found;

    return stat(path, &found) == 0 ? (uint64_t)found.st_size : 0;
}

static void clear(stress *s, const char *folder)
{
    fl_memory memory = fl_memory_system();
    uint64_t files = 0, bytes = 0;
    fl_disk disk;

    if (fl_disk_open(&disk, &memory, NULL, folder, 1, FL_DISK_EXISTING, NULL) != FILCH_OK ||
        fl_disk_clear(&disk, &files, &bytes, NULL) != FILCH_OK || files % KEYS != 0 || files == 0)
        stress_fail(s, "files that are not the images'; files", files);
    fl_disk_close(&disk);
}

static void play(stress *s, char **argv, const char *folder, const char *counter, uint64_t round)
{
    uint64_t before = compilations(counter);
    pid_t children[PROCESSES];

    for (uint64_t i = 0; i < PROCESSES; i++)
        children[i] = start(s, argv, folder, round, i);
    for (int i = 0; i < PROCESSES; i++) {
        int status = 0;

        if (children[i] < 0 || waitpid(children[i], &status, 0) != children[i] || status != 0)
            stress_fail(s, "a process failed; status", (uint64_t)status);
    }
    if (compilations(counter) - before != KEYS)
        stress_fail(s, "images were not compiled once each; compiled",
                    compilations(counter) - before);
    /* Kept between most rounds, so that files of others lie about. */
    if (round % 4 == 3)
        clear(s, folder);
}

int main(int argc, char **argv)
{
    static stress s;
    char folder[] = "/tmp/filch-images-XXXXXX";
    char counter[64], path[64];

    if (argc == 6 && strcmp(argv[1], "--process") == 0) {
        s.name = "images";
        s.seed = strtoull(argv[3], NULL, 10);
        return work(&s, argv[2], strtoull(argv[4], NULL, 10), strtoull(argv[5], NULL, 10));
    }
    stress_begin(&s, "images", argc, argv, 40 * ROUND, 1000 * ROUND);
    if (mkdtemp(folder) == NULL)
        return 2;
    (void)snprintf(counter, sizeof counter, "%s/count", folder);
    (void)setenv("FAKE_NVRTC_COUNT", counter, 1);
    for (uint64_t round = 0; round * ROUND < s.operations; round++)
        play(&s, argv, folder, counter, round);
    printf("%" PRIu64 " compilations\n", compilations(counter));
    (void)unlink(counter);
    (void)snprintf(path, sizeof path, "%s/lock", folder);
    (void)unlink(path);
    if (rmdir(folder) != 0)
        printf("%s is left\n", folder);
    return stress_end(&s);
}
