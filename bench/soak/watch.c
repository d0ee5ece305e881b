/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "soak/watch.h"

#include "support/timing.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void soak_watch_init(soak_watch *watch)
{
    *watch = (soak_watch){.since_s = 0};
    pthread_mutex_init(&watch->lock, NULL);
}

void soak_watch_say(soak_watch *watch, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    pthread_mutex_lock(&watch->lock);
    vsnprintf(watch->doing, sizeof watch->doing, format, arguments);
    watch->since_s = bench_now_s();
    pthread_mutex_unlock(&watch->lock);
    va_end(arguments);
}

bool soak_watch_is_late(soak_watch *watch, double seconds, char *text, size_t size)
{
    pthread_mutex_lock(&watch->lock);
    bool is_late = watch->since_s > 0 && bench_now_s() - watch->since_s > seconds;
    if (is_late)
        snprintf(text, size, "%s", watch->doing);
    pthread_mutex_unlock(&watch->lock);
    return is_late;
}

static uint32_t entries(const char *path)
{
    uint32_t count = 0;
    DIR *folder = opendir(path);
    if (!folder)
        return 0;
    /* The stream is this call's alone. NOLINTNEXTLINE(concurrency-mt-unsafe) */
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

soak_held soak_hold_count(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%*s %llu", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return (soak_held){pages * (uint64_t)sysconf(_SC_PAGESIZE), entries("/proc/self/fd"),
                       entries("/proc/self/task")};
}

soak_held soak_hold_settle(uint32_t threads)
{
    soak_held held = soak_hold_count();
    for (int naps = 0; naps < 1000 && held.threads > threads; naps++) {
        (void)nanosleep(&(struct timespec){0, 1000000}, NULL);
        held = soak_hold_count();
    }
    return held;
}
