/* SPDX-License-Identifier: Apache-2.0 */
/* `filch-bench soak`: several runtimes at once, made and destroyed over and over, with random jobs
 * and faults, every result checked; what the process holds must not grow. */
#define _GNU_SOURCE
#include "soak/soak.h"

#include "cli/cli.h"
#include "soak/watch.h"
#include "soak/world.h"
#include "support/fail.h"
#include "support/timing.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WORLDS_MOST 16
/* Rounds before what the process holds is compared: pools and caches fill first. */
#define WARM_ROUNDS 8
/* What allocators keep varies by so much. */
#define RESIDENT_SLACK ((uint64_t)16 << 20)

typedef struct request {
    double minutes; /* 0: rounds count */
    uint64_t rounds, seed;
    uint32_t worlds;
    const char *devices;
    bool help;
} request;

typedef struct lane {
    soak *s;
    soak_watch watch;
    uint64_t seed;
    pthread_t thread;
} lane;

static const char usage[] =
    "usage: filch-bench soak [--minutes M | --rounds R] [--worlds W] [--devices SPEC] [--seed S]\n"
    "  --minutes M     for so long (default: 10)\n"
    "  --rounds R      so many rounds instead; in each every world makes, uses and destroys one "
    "runtime\n"
    "  --worlds W      runtimes at once (default 3, at most 16)\n"
    "  --devices SPEC  half of the runtimes on these, e.g. cuda, by batches of filch's axpy, with\n"
    "                  less memory now and then; the others on the host's cores\n"
    "  --seed S        of all that is random (default 1)\n"
    "Graphs, open graphs and batches run while tasks fail, jobs are cancelled, devices withdrawn "
    "and\n"
    "taken back, and runtimes aborted. Exit 1: a wrong byte, a job that does not end, memory, "
    "files\n"
    "or threads left behind.\n";

void soak_fail(soak *s, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    pthread_mutex_lock(&s->lock);
    if (s->failure[0] == '\0')
        vsnprintf(s->failure, sizeof s->failure, format, arguments);
    pthread_mutex_unlock(&s->lock);
    va_end(arguments);
    atomic_store_explicit(&s->has_failed, true, memory_order_relaxed);
}

bool soak_has_failed(soak *s)
{
    return atomic_load_explicit(&s->has_failed, memory_order_relaxed);
}

/* --- What is asked for --- */

static bool read_whole(const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
    char *end;
    errno = 0;
    unsigned long long parsed = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || parsed < least || parsed > most)
        return false;
    *value = parsed;
    return true;
}

static bool read_minutes(const char *text, double *minutes)
{
    char *end;
    *minutes = strtod(text, &end);
    return end != text && *end == '\0' && *minutes > 0 && *minutes <= 1e6;
}

static filch_status parse(int argc, char **argv, request *r, filch_error *error)
{
    static const struct option options[] = {
        {"minutes", required_argument, NULL, 'm'},
        {"rounds", required_argument, NULL, 'r'},
        {"worlds", required_argument, NULL, 'w'},
        {"devices", required_argument, NULL, 'd'},
        {"seed", required_argument, NULL, 's'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    uint64_t worlds = r->worlds;
    int id;
    optind = 0;
    opterr = 0;
    while ((id = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        bool is_read = id == 'd' || id == 'h' || (id == 'm' && read_minutes(optarg, &r->minutes)) ||
                       (id == 'r' && read_whole(optarg, 1, UINT64_MAX, &r->rounds)) ||
                       (id == 'w' && read_whole(optarg, 1, WORLDS_MOST, &worlds)) ||
                       (id == 's' && read_whole(optarg, 0, UINT64_MAX, &r->seed));
        if (id == ':' || id == '?')
            return bench_fail(error, FILCH_PARSE, argv[optind - 1], 0,
                              "is no option of soak, or its value is missing");
        if (!is_read)
            return bench_fail(error, FILCH_PARSE, "soak", 0, "'%s' is no value of its option",
                              optarg);
        if (id == 'd')
            r->devices = optarg;
        r->help |= id == 'h';
    }
    if (optind < argc)
        return bench_fail(error, FILCH_PARSE, argv[optind], 0, "is one word too many");
    if (r->minutes > 0 && r->rounds > 0)
        return bench_fail(error, FILCH_PARSE, "--rounds", 0, "contradicts --minutes");
    if (r->minutes <= 0 && r->rounds == 0)
        r->minutes = 10;
    r->worlds = (uint32_t)worlds;
    return FILCH_OK;
}

/* --- A round --- */

static void *lane_main(void *user)
{
    lane *l = user;
    soak_world_live(l->s, &l->watch, l->seed);
    return NULL;
}

/* Waits for a thread; false: it is at one thing for too long, which is the failure. */
static bool join(lane *l)
{
    char text[192];
    for (;;) {
        struct timespec at;
        clock_gettime(CLOCK_REALTIME, &at);
        at.tv_sec++;
        if (pthread_timedjoin_np(l->thread, NULL, &at) == 0)
            return true;
        if (soak_watch_is_late(&l->watch, SOAK_PATIENCE_S, text, sizeof text)) {
            soak_fail(l->s, "for %d s it has been at %s", SOAK_PATIENCE_S, text);
            return false;
        }
    }
}

/* Returns whether all threads ended. */
static bool run_round(soak *s, lane *lanes, const request *r, uint64_t round)
{
    uint32_t started = 0;
    bool have_ended = true;
    for (; started < r->worlds; started++) {
        lane *l = &lanes[started];
        uint64_t seed = r->seed;
        seed = soak_random(&seed) ^ (round * WORLDS_MOST + started);
        l->s = s;
        l->seed = soak_random(&seed);
        soak_watch_say(&l->watch, "its beginning");
        if (pthread_create(&l->thread, NULL, lane_main, l) != 0) {
            soak_fail(s, "no thread");
            break;
        }
    }
    for (uint32_t k = 0; k < started && have_ended; k++)
        have_ended = join(&lanes[k]);
    return have_ended;
}

/* Between rounds there is no runtime: files and threads are those of the first rounds, and memory
 * is what it was, give or take. */
static void compare(soak *s, soak_held before, soak_held now)
{
    if (now.files > before.files)
        soak_fail(s, "open files: %u at first, %u now", before.files, now.files);
    if (now.threads > before.threads)
        soak_fail(s, "threads: %u at first, %u now", before.threads, now.threads);
    if (now.resident > before.resident + before.resident / 4 + RESIDENT_SLACK)
        soak_fail(s, "resident memory: %.1f MB at first, %.1f MB now",
                  (double)before.resident * 1e-6, (double)now.resident * 1e-6);
}

/* --- All of it --- */

static soak_held largest(soak_held a, soak_held b)
{
    return (soak_held){a.resident > b.resident ? a.resident : b.resident,
                       a.files > b.files ? a.files : b.files,
                       a.threads > b.threads ? a.threads : b.threads};
}

static void report(const soak *s, uint64_t rounds, double seconds, soak_held before, soak_held now)
{
    printf("%-20s %llu in %.1f s\n", "rounds", (unsigned long long)rounds, seconds);
#define SOAK_COUNT(member, title)                                                                 \
    {                                                                                             \
        unsigned long long count = atomic_load_explicit(&s->counts.member, memory_order_relaxed); \
        printf("%-20s %llu, %.4g a second\n", title, count, (double)count / seconds);             \
    }
    SOAK_COUNTS(SOAK_COUNT)
#undef SOAK_COUNT
    printf("%-20s %.1f MB after the first rounds, %.1f MB at the end\n", "resident memory",
           (double)before.resident * 1e-6, (double)now.resident * 1e-6);
    printf("%-20s %u and %u\n", "open files", before.files, now.files);
    printf("%-20s %u and %u\n", "threads", before.threads, now.threads);
}

static int soak_run(const request *r)
{
    static lane lanes[WORLDS_MOST];
    static soak s;
    soak_held before = soak_hold_count(), now = before;
    double begin = bench_now_s(), end = begin + r->minutes * 60;
    uint64_t round = 0;
    bool has_ended = true;
    s.devices = r->devices;
    pthread_mutex_init(&s.lock, NULL);
    for (uint32_t k = 0; k < WORLDS_MOST; k++)
        soak_watch_init(&lanes[k].watch);
    while (!soak_has_failed(&s) && (r->rounds > 0 ? round < r->rounds : bench_now_s() < end)) {
        has_ended = run_round(&s, lanes, r, round++);
        if (!has_ended)
            break;
        now = soak_hold_settle(before.threads);
        if (round <= WARM_ROUNDS)
            before = largest(before, now);
        else
            compare(&s, before, now);
    }
    report(&s, round, bench_now_s() - begin, before, now);
    if (soak_has_failed(&s)) {
        pthread_mutex_lock(&s.lock);
        fprintf(stderr, "filch-bench soak: round %llu, seed %llu: %s\n", (unsigned long long)round,
                (unsigned long long)r->seed, s.failure);
        pthread_mutex_unlock(&s.lock);
        fflush(NULL);
        /* What hangs, or was given up, still runs. */
        _exit(BENCH_EXIT_FAILED);
    }
    return BENCH_EXIT_OK;
}

int bench_soak_main(int argc, char **argv)
{
    filch_error error = FILCH_ERROR_INIT;
    request r = {.seed = 1, .worlds = 3};
    if (parse(argc, argv, &r, &error) != FILCH_OK)
        return bench_cli_fail(argv[0], &error);
    if (r.help) {
        fputs(usage, stdout);
        return BENCH_EXIT_OK;
    }
    return soak_run(&r);
}
