/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "measure/withdraw.h"

#include "support/fail.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define OPTION "--withdraw"
/* Longer than any run. */
#define MOST_S 1e8

struct bench_withdrawal {
    bench_withdraw how;
    filch_runtime *runtime;
    struct timespec begin;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ends;
    bool has_ended;      /* under the lock */
    filch_status status; /* the thread's */
};

/* --- What is asked for --- */

static bool read_seconds(const char **at, double *seconds)
{
    char *end;
    *seconds = strtod(*at, &end);
    bool is_read = end != *at && ((**at >= '0' && **at <= '9') || **at == '.') && *seconds >= 0 &&
                   *seconds <= MOST_S;
    *at = end;
    return is_read;
}

filch_status bench_withdraw_parse(const char *text, bench_withdraw *withdraw, filch_error *error)
{
    char *end;
    unsigned long device = strtoul(text, &end, 10);
    bench_withdraw read = {.is_asked = true, .device = (uint32_t)device, .to_s = INFINITY};
    bool is_read = end != text && *text >= '0' && *text <= '9' && *end == '@';
    if (is_read) {
        const char *at = end + 1;
        is_read = read_seconds(&at, &read.from_s);
        if (is_read && *at == '-') {
            at++;
            is_read = read_seconds(&at, &read.to_s) && read.to_s > read.from_s;
        }
        is_read = is_read && *at == '\0';
    }
    if (!is_read || device >= UINT32_MAX)
        return bench_fail(error, FILCH_PARSE, OPTION, 0,
                          "'%s' is not DEVICE@SECONDS or DEVICE@SECONDS-SECONDS", text);
    *withdraw = read;
    return FILCH_OK;
}

/* --- As it runs --- */

/* Until so many seconds after the beginning; false: the run ended before. */
static bool sleep_until(bench_withdrawal *w, double seconds)
{
    struct timespec at = w->begin;
    seconds = fmin(seconds, MOST_S);
    at.tv_sec += (time_t)seconds;
    at.tv_nsec += (long)((seconds - floor(seconds)) * 1e9);
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&w->lock);
    int code = 0;
    while (!w->has_ended && code == 0)
        code = pthread_cond_timedwait(&w->ends, &w->lock, &at);
    bool has_ended = w->has_ended;
    pthread_mutex_unlock(&w->lock);
    return !has_ended;
}

static void *come_and_go(void *user)
{
    bench_withdrawal *w = user;
    if (!sleep_until(w, w->how.from_s))
        return NULL;
    w->status = filch_device_withdraw(w->runtime, w->how.device);
    if (w->status == FILCH_OK) {
        (void)sleep_until(w, w->how.to_s);
        w->status = filch_device_readmit(w->runtime, w->how.device);
    }
    return NULL;
}

static bool make_cond(pthread_cond_t *cond)
{
    pthread_condattr_t kind;
    if (pthread_condattr_init(&kind) != 0)
        return false;
    bool is_made = pthread_condattr_setclock(&kind, CLOCK_MONOTONIC) == 0 &&
                   pthread_cond_init(cond, &kind) == 0;
    pthread_condattr_destroy(&kind);
    return is_made;
}

filch_status bench_withdraw_begin(bench_withdraw withdraw, filch_runtime *runtime,
                                  bench_withdrawal **made, filch_error *error)
{
    *made = NULL;
    if (!withdraw.is_asked)
        return FILCH_OK;
    bench_withdrawal *w = calloc(1, sizeof *w);
    if (!w || !make_cond(&w->ends)) {
        free(w);
        return bench_fail(error, FILCH_OUT_OF_MEMORY, OPTION, 0, "no memory");
    }
    w->how = withdraw;
    w->runtime = runtime;
    pthread_mutex_init(&w->lock, NULL);
    clock_gettime(CLOCK_MONOTONIC, &w->begin);
    if (pthread_create(&w->thread, NULL, come_and_go, w) != 0) {
        pthread_mutex_destroy(&w->lock);
        pthread_cond_destroy(&w->ends);
        free(w);
        return bench_fail(error, FILCH_OUT_OF_MEMORY, OPTION, 0, "no thread");
    }
    *made = w;
    return FILCH_OK;
}

filch_status bench_withdraw_end(bench_withdrawal *w, filch_error *error)
{
    if (!w)
        return FILCH_OK;
    pthread_mutex_lock(&w->lock);
    w->has_ended = true;
    pthread_cond_signal(&w->ends);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    filch_status status = w->status;
    uint32_t device = w->how.device;
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->ends);
    free(w);
    return status == FILCH_OK ? FILCH_OK
                              : bench_fail(error, status, OPTION, 0, "device %u: %s", device,
                                           filch_status_name(status));
}

double bench_withdraw_ideal_s(bench_withdraw withdraw, double work, double all_speeds,
                              double its_speed)
{
    double before = all_speeds * withdraw.from_s, left = all_speeds - its_speed;
    if (!withdraw.is_asked || work <= before)
        return work / all_speeds;
    double without = (work - before) / left; /* infinite where there is nobody else */
    if (withdraw.from_s + without <= withdraw.to_s)
        return withdraw.from_s + without;
    double meanwhile = left * (withdraw.to_s - withdraw.from_s);
    return withdraw.to_s + (work - before - meanwhile) / all_speeds;
}
