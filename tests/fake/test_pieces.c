/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of large copies of pageable memory: what they take of the driver, and who moves them. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "bench.h"
#include "fakecuda.h"
#include "filch/filch.h"
#include "patience.h"
#include "runtime.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static filch_runtime *runtime;

static void start(filch_drive drive, const char *helpers)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_error error = FILCH_ERROR_INIT;
    (void)setenv("FILCH_STAGE_THREADS", helpers, 1);
    fakecuda_reset();
    config.devices = "cuda:0";
    config.drive = drive;
    if (filch_runtime_create(&config, &error, &runtime) != FILCH_OK)
        fail_msg("%s", error.text);
}

static void stop(void)
{
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(fakecuda_live("pinned"), 0);
    assert_int_equal(fakecuda_violations(), 0);
}

static bench lay(size_t bytes)
{
    return bench_lay(&runtime->pool.devices[0], bytes);
}

/* Each piece costs the link and the driver's time, whoever fills and empties it. */
static void large_copies_take_few_calls(void **state)
{
    enum { BYTES = 16 * 1024 * 1024, IN = 10, OUT = 8 };
    (void)state;
    for (int w = 0; w < 4; w++) {
        static const char *const helpers[] = {"", "3", "0", ""};
        start(w == 3 ? FILCH_DRIVE_POLL : FILCH_DRIVE_THREADS, helpers[w]);
        bench b = lay(BYTES);
        uint8_t *host = calloc(1, BYTES);
        uint64_t records = fakecuda_count("cuEventRecord");
        bench_await(&b, bench_put(&b, host, 0, BYTES, true));
        assert_int_equal(fakecuda_count("cuMemcpyHtoDAsync"), IN);
        assert_int_equal(fakecuda_count("cuEventRecord") - records, IN);
        bench_await(&b, bench_put(&b, host, 0, BYTES, false));
        assert_int_equal(fakecuda_count("cuMemcpyDtoHAsync"), OUT);
        assert_int_equal(fakecuda_count("cuEventRecord") - records, IN + OUT);
        assert_int_equal(fakecuda_count("cuMemHostAlloc"), 2);
        bench_clear(&b);
        free(host);
        stop();
    }
}

/* Small pieces come first only where the device has nothing to do. */
static void a_busy_device_gets_no_small_pieces(void **state)
{
    enum { BYTES = 8 * 1024 * 1024, FIRST = 6, SECOND = 4 };
    (void)state;
    start(FILCH_DRIVE_THREADS, "3");
    bench b = lay(BYTES);
    uint8_t *host = calloc(1, BYTES);
    for (int round = 0; round < 3; round++) {
        uint64_t puts = fakecuda_count("cuMemcpyHtoDAsync");
        fakecuda_hold();
        (void)bench_put(&b, host, 0, BYTES, true);
        assert_int_equal(fakecuda_count("cuMemcpyHtoDAsync") - puts, FIRST);
        fl_marker last = bench_put(&b, host, 0, BYTES, true);
        assert_int_equal(fakecuda_count("cuMemcpyHtoDAsync") - puts, FIRST + SECOND);
        fakecuda_release();
        bench_await(&b, last);
    }
    bench_clear(&b);
    free(host);
    stop();
}

/* Two pages that may not be touched at first. Who touches the first of them is held until somebody
 * touches the second. */
static struct {
    char *pages[2];
    _Atomic uint32_t touched, late;
} snare;

static void hold_up(int signal, siginfo_t *info, void *context)
{
    (void)context;
    for (uint32_t k = 0; k < 2; k++) {
        char *page = snare.pages[k], *at = info->si_addr;
        if (at < page || at >= page + 4096)
            continue;
        atomic_fetch_or(&snare.touched, 1u << k);
        for (uint64_t end = fl_time_now() + PATIENCE_S * FL_NS_PER_S;
             atomic_load(&snare.touched) != 3;) {
            const struct timespec span = {0, 100000};
            (void)nanosleep(&span, NULL);
            if (fl_time_now() > end) {
                atomic_store(&snare.late, 1);
                break;
            }
        }
        (void)mprotect(page, 4096, PROT_READ | PROT_WRITE);
        return;
    }
    (void)raise(signal == SIGSEGV ? SIGABRT : signal);
}

static void lay_snare(uint8_t *host)
{
    snare.pages[0] = (char *)host + 64 * KIB;
    snare.pages[1] = (char *)host + 300 * KIB; /* of the first piece, too */
    atomic_store(&snare.touched, 0);
    atomic_store(&snare.late, 0);
    for (uint32_t k = 0; k < 2; k++)
        assert_int_equal(mprotect(snare.pages[k], 4096, PROT_NONE), 0);
}

/* Several fill a piece, and several empty it: one that is held up holds up its part alone. */
static void pieces_are_moved_by_several(void **state)
{
    enum { BYTES = 4 * 1024 * 1024 };
    struct sigaction action = {.sa_sigaction = hold_up, .sa_flags = SA_SIGINFO}, before;
    (void)state;
    assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
    start(FILCH_DRIVE_THREADS, "3");
    bench b = lay(BYTES);
    uint8_t *host = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true((void *)host != MAP_FAILED);
    for (size_t i = 0; i < BYTES; i++)
        host[i] = (uint8_t)(i * 7 + (i >> 12));
    bench_await(&b, bench_put(&b, host, 0, MIB, true)); /* with it come the helpers */
    for (int round = 0; round < 5; round++) {
        lay_snare(host);
        bench_await(&b, bench_put(&b, host, 0, BYTES, true));
        assert_int_equal(atomic_load(&snare.touched), 3);
        assert_int_equal(atomic_load(&snare.late), 0);
        memset(host, 0, BYTES);
        lay_snare(host);
        bench_await(&b, bench_put(&b, host, 0, BYTES, false));
        assert_int_equal(atomic_load(&snare.touched), 3);
        assert_int_equal(atomic_load(&snare.late), 0);
        for (size_t i = 0; i < BYTES; i++)
            assert_int_equal(host[i], (uint8_t)(i * 7 + (i >> 12)));
    }
    bench_clear(&b);
    stop();
    assert_int_equal(munmap(host, BYTES), 0);
    assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_copies_take_few_calls),
        cmocka_unit_test(a_busy_device_gets_no_small_pieces),
        cmocka_unit_test(pieces_are_moved_by_several),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
