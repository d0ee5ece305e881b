/* SPDX-License-Identifier: Apache-2.0 */
/* The file of speeds of earlier runs: what is trusted, what is replaced, and who waits for whom. */
#define _GNU_SOURCE
#include "fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"
#include "random.h"
#include "sched/model/speed_file.h"

static fixture_memory counted;
static fl_memory memory;
static char folder[64], path[96];

static int begin(void **state)
{
    (void)state;
    fixture_memory_init(&counted);
    memory = (fl_memory){counted.allocator.alloc, counted.allocator.free, counted.allocator.user,
                         "caller"};
    (void)snprintf(folder, sizeof folder, "/tmp/filch-speeds-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return 1;
    (void)snprintf(path, sizeof path, "%s/speeds", folder);
    return 0;
}

static uint32_t count_files(void)
{
    DIR *all = opendir(folder);
    uint32_t count = 0;

    assert_non_null(all);
    while (readdir(all) != NULL)
        count++;
    (void)closedir(all);
    return count - 2;
}

static int end(void **state)
{
    (void)state;
    (void)unlink(path);
    return rmdir(folder) != 0 || counted.pieces != 0;
}

static fl_record make_record(uint32_t number, double rate, int64_t saved)
{
    fl_record made = {
        .rate = rate, .fixed = 7.0, .most_work = 1000.0 + number, .saved = saved, .taken = number};

    memset(&made.key, (int)(number & 0xff), sizeof made.key);
    memcpy(made.key.bytes + 3, &number, sizeof number);
    return made;
}

static fl_speed_file *open_here(const char *where)
{
    static fl_speed_file history;

    fl_speed_file_open(&history, &memory, where);
    return &history;
}

static filch_status save(const fl_record *records, size_t count)
{
    fl_speed_file *history = open_here(path);
    filch_error error = FILCH_ERROR_INIT;
    filch_status status = fl_speed_file_save(history, records, count, &error);

    assert_int_equal(error.status, status);
    fl_speed_file_close(history);
    return status;
}

static double rate_of(const fl_speed_file *history, uint32_t number)
{
    fl_record wanted = make_record(number, 0.0, 0);
    const fl_record *found = fl_speed_file_find(history, &wanted.key);

    return found == NULL ? 0.0 : found->rate;
}

/* What opening says, and how many records there are. */
static filch_status status_here(size_t *count)
{
    fl_speed_file *history = open_here(path);
    filch_status status = history->loaded;

    if (count != NULL)
        *count = history->count;
    fl_speed_file_close(history);
    return status;
}

static void off_is_off(void **state)
{
    static const char *const none[] = {"", "off"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        fl_speed_file *history = open_here(none[i]);

        assert_false(fl_speed_file_is_on(history));
        assert_int_equal(history->loaded, FILCH_NOT_FOUND);
        assert_true(rate_of(history, 1) == 0.0);
        fl_speed_file_close(history);
    }
    assert_int_equal(count_files(), 0);
}

static void what_is_saved_is_found(void **state)
{
    fl_record records[100];

    (void)state;
    for (uint32_t i = 0; i < 100; i++)
        records[i] = make_record(i * 37 % 100, 1.0 + i * 37 % 100, 5);
    assert_int_equal(save(records, 100), FILCH_OK);
    assert_int_equal(count_files(), 1);

    fl_speed_file *history = open_here(path);

    assert_int_equal(history->loaded, FILCH_OK);
    assert_int_equal(history->count, 100);
    for (uint32_t i = 0; i < 100; i++) {
        fl_record wanted = make_record(i, 1.0 + i, 5);
        const fl_record *found = fl_speed_file_find(history, &wanted.key);

        assert_non_null(found);
        assert_memory_equal(found, &wanted, sizeof wanted);
    }
    assert_true(rate_of(history, 100) == 0.0);
    fl_speed_file_close(history);
}

/* Of one key the record saved last stays, and what others saved. */
static void saves_add_up(void **state)
{
    const fl_record first[] = {make_record(1, 10.0, 5), make_record(2, 20.0, 5)};
    const fl_record second[] = {make_record(3, 31.0, 6), make_record(2, 21.0, 6),
                                make_record(2, 22.0, 4)};

    (void)state;
    assert_int_equal(save(first, 2), FILCH_OK);
    assert_int_equal(save(second, 3), FILCH_OK);
    assert_int_equal(save(NULL, 0), FILCH_OK);

    fl_speed_file *history = open_here(path);

    assert_int_equal(history->count, 3);
    assert_true(rate_of(history, 1) == 10.0);
    assert_true(rate_of(history, 2) == 21.0);
    assert_true(rate_of(history, 3) == 31.0);
    fl_speed_file_close(history);
}

static void the_oldest_go(void **state)
{
    enum { MORE = FL_SPEED_FILE_MOST + 1000 };
    static fl_record records[MORE];

    (void)state;
    for (uint32_t i = 0; i < MORE; i++)
        records[i] = make_record(i, 1.0, i);
    assert_int_equal(save(records, MORE), FILCH_OK);

    fl_speed_file *history = open_here(path);

    assert_int_equal(history->count, FL_SPEED_FILE_MOST);
    assert_true(rate_of(history, 999) == 0.0);
    assert_true(rate_of(history, 1000) == 1.0);
    fl_speed_file_close(history);
    records[0] = make_record(0, 2.0, MORE);
    assert_int_equal(save(records, 1), FILCH_OK);
    history = open_here(path);
    assert_int_equal(history->count, FL_SPEED_FILE_MOST);
    assert_true(rate_of(history, 0) == 2.0);
    assert_true(rate_of(history, 1000) == 0.0);
    fl_speed_file_close(history);
}

static size_t read_bytes(unsigned char *bytes, size_t most)
{
    FILE *file = fopen(path, "rb");

    assert_non_null(file);
    size_t size = fread(bytes, 1, most, file);
    assert_int_equal(fclose(file), 0);
    return size;
}

static void write_bytes(const unsigned char *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0600), 0);
}

/* Nothing is taken from a damaged file, which is then replaced; unless it does not even begin like
 * one, and is somebody's by mistake. */
static void check_damaged(const unsigned char *bytes, size_t size, bool is_kind)
{
    const fl_record fresh = make_record(9, 90.0, 9);
    static unsigned char after[1024];

    write_bytes(bytes, size);

    fl_speed_file *history = open_here(path);

    assert_int_equal(history->loaded, size == 0 ? FILCH_NOT_FOUND : FILCH_DATA);
    assert_int_equal(history->count, 0);
    fl_speed_file_close(history);
    assert_int_equal(save(&fresh, 1), is_kind ? FILCH_OK : FILCH_DATA);
    if (is_kind) {
        history = open_here(path);
        assert_int_equal(history->count, 1);
        assert_true(rate_of(history, 9) == 90.0);
        fl_speed_file_close(history);
    } else {
        assert_int_equal(read_bytes(after, sizeof after), size);
        assert_memory_equal(after, bytes, size);
    }
}

static void no_byte_may_differ(void **state)
{
    const fl_record records[] = {make_record(1, 10.0, 5), make_record(2, 20.0, 5)};
    unsigned char bytes[1024], spoilt[1024];

    (void)state;
    assert_int_equal(save(records, 2), FILCH_OK);

    size_t size = read_bytes(bytes, sizeof bytes);

    assert_int_equal(size, FL_SPEED_FILE_HEADER + 2 * sizeof(fl_record));
    for (size_t i = 0; i < size; i++) {
        for (unsigned bit = 1; bit < 256; bit *= 16) {
            memcpy(spoilt, bytes, size);
            spoilt[i] ^= (unsigned char)bit;
            check_damaged(spoilt, size, i >= 8);
        }
    }
}

static void no_byte_may_lack(void **state)
{
    const fl_record records[] = {make_record(1, 10.0, 5), make_record(2, 20.0, 5)};
    unsigned char bytes[1024];

    (void)state;
    assert_int_equal(save(records, 2), FILCH_OK);

    size_t size = read_bytes(bytes, sizeof bytes);

    for (size_t length = 0; length < size; length++)
        check_damaged(bytes, length, true);
    bytes[size] = 0;
    check_damaged(bytes, size + 1, true);
}

/* A sound checksum over what cannot be. */
static void records_are_looked_at(void **state)
{
    const double bad[] = {0.0, -1.0, NAN, INFINITY};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        fl_record record = make_record(1, bad[i], 5);
        fl_record other = make_record(1, 1.0, 5);

        other.fixed = i == 0 ? -0.5 : bad[i];
        (void)unlink(path);
        assert_int_equal(save(&record, 1), FILCH_OK);
        assert_int_equal(status_here(NULL), FILCH_DATA);
        (void)unlink(path);
        assert_int_equal(save(&other, 1), FILCH_OK);
        assert_int_equal(status_here(NULL), FILCH_DATA);
    }
}

static void others_files_are_left_alone(void **state)
{
    const fl_record record = make_record(1, 10.0, 5);

    (void)state;
    assert_int_equal(save(&record, 1), FILCH_OK);
    assert_int_equal(chmod(path, 0666), 0);
    assert_int_equal(status_here(NULL), FILCH_DATA);
    assert_int_equal(save(&record, 1), FILCH_DATA);
    (void)unlink(path);
    assert_int_equal(symlink("/dev/null", path), 0);
    assert_int_equal(status_here(NULL), FILCH_IO);
    assert_int_equal(save(&record, 1), FILCH_IO);
    (void)unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(status_here(NULL), FILCH_DATA);
    assert_int_equal(save(&record, 1), FILCH_DATA);
    (void)unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(status_here(NULL), FILCH_DATA);
    assert_int_equal(save(&record, 1), FILCH_IO);
    assert_int_equal(rmdir(path), 0);
}

/* A file of the name that once was the temporary one's is somebody's. */
static void files_beside_are_left_alone(void **state)
{
    const fl_record record = make_record(1, 10.0, 5);
    char beside[112], text[16] = "";
    FILE *file;

    (void)state;
    (void)snprintf(beside, sizeof beside, "%s.tmp", path);
    file = fopen(beside, "w");
    assert_non_null(file);
    assert_true(fputs("precious", file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(save(&record, 1), FILCH_OK);
    file = fopen(beside, "r");
    assert_non_null(file);
    assert_int_equal(fread(text, 1, sizeof text - 1, file), 8);
    assert_int_equal(fclose(file), 0);
    assert_string_equal(text, "precious");
    assert_int_equal(count_files(), 2);
    assert_int_equal(unlink(beside), 0);
}

static void a_full_disk_leaves_the_old_speeds(void **state)
{
    const struct rlimit small = {.rlim_cur = FL_SPEED_FILE_HEADER, .rlim_max = RLIM_INFINITY};
    const fl_record records[2] = {make_record(1, 10.0, 5), make_record(2, 20.0, 6)};
    filch_error error = FILCH_ERROR_INIT;
    struct rlimit usual;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    fl_speed_file *history;
    filch_status status;

    (void)state;
    assert_int_equal(save(&records[0], 1), FILCH_OK);
    history = open_here(path);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &usual), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    status = fl_speed_file_save(history, &records[1], 1, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &usual), 0);
    (void)signal(SIGXFSZ, handler);
    fl_speed_file_close(history);
    assert_int_equal(status, FILCH_IO);
    assert_int_equal(error.native_code, EFBIG);
    assert_non_null(strstr(error.text, strerror(EFBIG)));
    assert_int_equal(count_files(), 1);
    assert_int_equal(save(&records[1], 1), FILCH_OK);
    assert_int_equal(count_files(), 1);
}

static void a_folder_that_is_not_there(void **state)
{
    const fl_record record = make_record(1, 10.0, 5);
    filch_error error = FILCH_ERROR_INIT;

    (void)state;
    fl_speed_file *history = open_here("/nowhere/at/all/speeds");
    assert_int_equal(history->loaded, FILCH_NOT_FOUND);
    assert_int_equal(fl_speed_file_save(history, &record, 1, &error), FILCH_IO);
    assert_non_null(strstr(error.text, "/nowhere/at/all/speeds"));
    fl_speed_file_close(history);
}

static void paths_may_be_relative(void **state)
{
    const fl_record record = make_record(1, 10.0, 5);
    char here[4096];

    (void)state;
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(folder), 0);
    fl_speed_file *history = open_here("speeds");
    assert_int_equal(chdir("/"), 0); /* the file is where it was when the name was given */
    assert_int_equal(fl_speed_file_save(history, &record, 1, NULL), FILCH_OK);
    assert_int_equal(chdir(here), 0);
    fl_speed_file_close(history);
    history = open_here(path);
    assert_true(rate_of(history, 1) == 10.0);
    fl_speed_file_close(history);
}

static void memory_may_lack(void **state)
{
    const fl_record record = make_record(1, 10.0, 5);

    (void)state;
    assert_int_equal(save(&record, 1), FILCH_OK);
    fixture_memory_fail_after(&counted, 1);

    fl_speed_file *history = open_here(path);

    assert_int_equal(history->loaded, FILCH_OUT_OF_MEMORY);
    assert_int_equal(history->count, 0);
    for (int64_t call = 1; call <= 2; call++) {
        fixture_memory_fail_after(&counted, call);
        assert_int_equal(fl_speed_file_save(history, &record, 1, NULL), FILCH_OUT_OF_MEMORY);
    }
    assert_int_equal(fl_speed_file_save(history, &record, 1, NULL), FILCH_OK);
    fl_speed_file_close(history);
    assert_int_equal(count_files(), 1);
}

/* --- Many at once --- */

enum { PROCESSES = 4, SAVES = 25 };

static void save_often(uint32_t process)
{
    for (uint32_t i = 0; i < SAVES; i++) {
        fl_record record = make_record(process * SAVES + i, 1.0 + i, 5);

        if (save(&record, 1) != FILCH_OK)
            _exit(1);
    }
}

static void processes_lose_nothing(void **state)
{
    pid_t children[PROCESSES];

    (void)state;
    for (uint32_t p = 0; p < PROCESSES; p++) {
        children[p] = fork();
        assert_true(children[p] >= 0);
        if (children[p] == 0) {
            save_often(p);
            _exit(0);
        }
    }
    /* Readers meanwhile see a whole file, or none. */
    for (int i = 0; i < 200; i++) {
        fl_speed_file *history = open_here(path);

        assert_true(history->loaded == FILCH_OK || history->loaded == FILCH_NOT_FOUND);
        fl_speed_file_close(history);
    }
    for (uint32_t p = 0; p < PROCESSES; p++) {
        int status;

        assert_int_equal(waitpid(children[p], &status, 0), children[p]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }

    fl_speed_file *history = open_here(path);

    assert_int_equal(history->count, PROCESSES * SAVES);
    fl_speed_file_close(history);
    assert_int_equal(count_files(), 1);
}

static int save_in_thread(void *arg)
{
    const fl_speed_file *history = arg;

    for (uint32_t i = 0; i < SAVES; i++) {
        fl_record record = make_record(i, 1.0 + i, 5);

        if (fl_speed_file_save(history, &record, 1, NULL) != FILCH_OK)
            return 1;
    }
    return 0;
}

static void threads_wait_for_each_other(void **state)
{
    fl_thread threads[3];
    size_t count;

    (void)state;
    fl_speed_file *history = open_here(path);
    for (int t = 0; t < 3; t++)
        assert_int_equal(fl_thread_start(&threads[t], save_in_thread, history), FILCH_OK);
    for (int t = 0; t < 3; t++)
        fl_thread_join(threads[t]);
    fl_speed_file_close(history);
    assert_int_equal(status_here(&count), FILCH_OK);
    assert_int_equal(count, SAVES);
}

/* One that was stopped with the lock in its hands is given up on. */
static void a_stopped_process_is_not_waited_for(void **state)
{
    const fl_record record = make_record(1, 10.0, 5);
    int pipes[2];
    char ready;

    (void)state;
    assert_int_equal(save(&record, 1), FILCH_OK);
    assert_int_equal(pipe(pipes), 0);

    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        int file = open(path, O_RDWR | O_CLOEXEC);

        _exit(fcntl(file, F_OFD_SETLK, &whole) != 0 || write(pipes[1], "x", 1) != 1 || pause());
    }
    assert_int_equal(read(pipes[0], &ready, 1), 1);
    assert_int_equal(save(&record, 1), FILCH_TIMEOUT);
    assert_int_equal(status_here(NULL), FILCH_OK); /* reading needs no lock */
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(save(&record, 1), FILCH_OK);
    (void)close(pipes[0]);
    (void)close(pipes[1]);
}

/* --- Of a runtime --- */

static int spin(const filch_call *call)
{
    volatile uint64_t sum = 0;

    for (uint64_t i = call->lo; i < call->hi; i++)
        sum += i;
    return 0;
}

/* Asked for, and saved, while workers measure. */
static void a_working_runtime_is_asked(void **state)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_batch_desc batch = FILCH_BATCH_DESC_INIT;
    filch_speeds info = {.size = sizeof info};
    filch_runtime *runtime = NULL;
    filch_codelet *codelet = NULL;

    (void)state;
    config.devices = "host:2";
    config.speeds = path;
    config.allocator = &counted.allocator;
    assert_ok(filch_runtime_create(&config, NULL, &runtime));
    desc.name = "spin";
    desc.host = spin;
    assert_ok(filch_codelet_create(runtime, &desc, &codelet));
    batch.codelet = codelet;
    batch.n = 3000000;
    for (int round = 0; round < 5; round++) {
        filch_job *job = NULL;

        assert_ok(filch_batch_submit(runtime, &batch, NULL, &job));
        while (filch_job_status(job) == FILCH_NOT_READY) {
            for (uint32_t device = 0; device < 2; device++) {
                filch_speed speed = {.size = sizeof speed};

                assert_ok(filch_codelet_speed(codelet, device, &speed));
                assert_true(speed.ns_per_unit >= 0 && speed.fixed_ns >= 0);
                assert_true(speed.samples <= 16);
                assert_int_equal(speed.source == FILCH_SPEED_UNKNOWN, speed.ns_per_unit == 0);
            }
            assert_ok(filch_runtime_save_speeds(runtime));
        }
        assert_ok(filch_job_wait(job, -1));
        assert_ok(filch_job_release(job));
    }
    assert_ok(filch_runtime_speeds(runtime, &info));
    assert_int_equal(info.saved, FILCH_OK);
    assert_ok(filch_runtime_destroy(runtime));

    size_t count;

    assert_int_equal(status_here(&count), FILCH_OK);
    assert_int_equal(count, 1); /* two cores of one model */
}

/* Whatever call of the allocator fails, at the beginning or at the end, a runtime that was made
 * works; and a file that could not be read or written is all that is lost. */
static void memory_may_lack_for_the_file(void **state)
{
    const fl_record record = make_record(1, 10.0, 5);
    uint32_t made = 0, unread = 0;

    (void)state;
    assert_int_equal(save(&record, 1), FILCH_OK);
    for (int64_t call = 1; made == unread || made < 3; call++) {
        filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
        filch_speeds info = {.size = sizeof info};
        filch_runtime *runtime = NULL;

        config.devices = "host:1";
        config.drive = FILCH_DRIVE_POLL;
        config.speeds = path;
        config.allocator = &counted.allocator;
        fixture_memory_fail_after(&counted, call);
        filch_status status = filch_runtime_create(&config, NULL, &runtime);
        fixture_memory_fail_after(&counted, 0);
        assert_true(status == FILCH_OK || status == FILCH_OUT_OF_MEMORY);
        if (status != FILCH_OK)
            continue;
        made++;
        assert_ok(filch_runtime_speeds(runtime, &info));
        unread += info.loaded == FILCH_OUT_OF_MEMORY;
        assert_true(info.loaded == FILCH_OUT_OF_MEMORY || info.loaded == FILCH_OK);
        fixture_memory_fail_after(&counted, 1);
        assert_int_equal(filch_runtime_save_speeds(runtime), FILCH_OUT_OF_MEMORY);
        fixture_memory_fail_after(&counted, 0);
        assert_ok(filch_runtime_destroy(runtime));
    }
    assert_int_equal(unread, 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(off_is_off),
        CASE(what_is_saved_is_found),
        CASE(saves_add_up),
        CASE(the_oldest_go),
        CASE(no_byte_may_differ),
        CASE(no_byte_may_lack),
        CASE(records_are_looked_at),
        CASE(others_files_are_left_alone),
        CASE(files_beside_are_left_alone),
        CASE(a_full_disk_leaves_the_old_speeds),
        CASE(a_folder_that_is_not_there),
        CASE(paths_may_be_relative),
        CASE(memory_may_lack),
        CASE(processes_lose_nothing),
        CASE(threads_wait_for_each_other),
        CASE(a_stopped_process_is_not_waited_for),
        CASE(a_working_runtime_is_asked),
        CASE(memory_may_lack_for_the_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
