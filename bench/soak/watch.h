/* SPDX-License-Identifier: Apache-2.0 */
/* What each thread of the soak is at, and what the process holds. */
#ifndef BENCH_SOAK_WATCH_H
#define BENCH_SOAK_WATCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* One a thread, which says what it is at; any other may ask. */
typedef struct soak_watch {
    pthread_mutex_t lock;
    char doing[192];
    double since_s; /* 0: nothing */
} soak_watch;

void soak_watch_init(soak_watch *watch);
void soak_watch_say(soak_watch *watch, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Whether it has been at one thing for longer than that; then text says at what. */
bool soak_watch_is_late(soak_watch *watch, double seconds, char *text, size_t size);

/* What this process holds now; 0 where the system does not tell. */
typedef struct soak_held {
    uint64_t resident; /* bytes */
    uint32_t files, threads;
} soak_held;

soak_held soak_hold_count(void);
/* The same once no more than so many threads are left, or after a second: the system still lists a
 * thread for a moment after it was joined. */
soak_held soak_hold_settle(uint32_t threads);

#endif
