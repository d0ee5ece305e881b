/* SPDX-License-Identifier: Apache-2.0 */
/* Traces as the simulator reads them back: what their times say, and what is wrong with them. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/sim_machine.h"
#include "sim/sim_times.h"
#include "sim/sim_trace.h"

#define ok(call) assert_int_equal((call), FILCH_OK)

static char trace_path[] = "/tmp/filch-record-XXXXXX";

static void write_trace(const char *text)
{
    strcpy(trace_path + strlen(trace_path) - 6, "XXXXXX");
    int file = mkstemp(trace_path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    assert_int_equal(close(file), 0);
}

static void refused(const char *text, filch_status expected, const char *fragment)
{
    bench_sim_record record;
    filch_error error = FILCH_ERROR_INIT;
    write_trace(text);
    assert_int_equal(bench_sim_record_read(&record, trace_path, &error), expected);
    if (strstr(error.text, fragment) == NULL) {
        fail_msg("'%s' has no '%s'", error.text, fragment);
    }
    unlink(trace_path);
}

#define ROW "{\"ph\":\"M\",\"tid\":0,\"name\":\"thread_name\",\"args\":{\"name\":\"host:0\"}}"
#define CHUNK(first, end)                                                         \
    "{\"ph\":\"X\",\"tid\":0,\"cat\":\"tile\",\"name\":\"c\",\"ts\":1,\"dur\":1," \
    "\"args\":{\"first\":" #first ",\"end\":" #end "}}"
#define TRACE(lost, events) \
    "{\"otherData\":{\"events_overwritten\":" #lost "},\"traceEvents\":[" events "]}"

static void test_wrong_files(void **state)
{
    (void)state;
    bench_sim_record record;
    filch_error error = FILCH_ERROR_INIT;
    assert_int_equal(bench_sim_record_read(&record, "/no/such/file", &error), FILCH_IO);
    refused("{", FILCH_PARSE, "");
    refused("{}", FILCH_DATA, "no trace of filch's");
    refused(TRACE(0, ROW), FILCH_DATA, "no tile");
    refused(TRACE(3, ROW "," CHUNK(0, 10)), FILCH_DATA, "newer events drove out 3");
    refused(TRACE(0, ROW "," CHUNK(5, 10)), FILCH_DATA, "lacks chunks of 'c'");
    refused(TRACE(0, ROW "," CHUNK(0, 10) "," CHUNK(0, 4) "," CHUNK(2, 9)), FILCH_DATA,
            "not those of batches of one size");
    write_trace(TRACE(0, ROW "," CHUNK(0, 10)));
    ok(bench_sim_record_read(&record, trace_path, &error));
    assert_int_equal(record.job_count, 1);
    assert_int_equal(record.jobs[0].n, 10);
    assert_int_equal(record.jobs[0].grain, 10);
    bench_sim_record_free(&record);
}

#define SHORT(tasks)                                                              \
    "{\"ph\":\"X\",\"tid\":0,\"cat\":\"tile\",\"name\":\"t\",\"ts\":2,\"dur\":6," \
    "\"args\":{\"tasks\":" tasks ",\"graph\":1,\"job\":7}}"

static void read_text(const char *text, bench_sim_record *record)
{
    filch_error error = FILCH_ERROR_INIT;
    write_trace(text);
    if (bench_sim_record_read(record, trace_path, &error) != FILCH_OK)
        fail_msg("%s", error.text);
    unlink(trace_path);
}

#define TASK(task, ts, dur)                                                                \
    "{\"ph\":\"X\",\"tid\":0,\"cat\":\"tile\",\"name\":\"t\",\"ts\":" #ts ",\"dur\":" #dur \
    ",\"args\":{\"task\":" #task ",\"graph\":1,\"job\":7}}"
#define COPY(tid, way, ts, dur, bytes, other)                                          \
    "{\"ph\":\"X\",\"tid\":" #tid ",\"cat\":\"copy\",\"name\":\"" way "\",\"ts\":" #ts \
    ",\"dur\":" #dur ",\"args\":{\"bytes\":" #bytes ",\"other\":\"" other "\"}}"
#define JOB(ts, dur)                                                                          \
    "{\"ph\":\"X\",\"tid\":9,\"cat\":\"job\",\"name\":\"graph\",\"ts\":" #ts ",\"dur\":" #dur \
    ",\"args\":{\"job\":7,\"graph\":1}}"
#define NAMED(tid, text) \
    "{\"ph\":\"M\",\"tid\":" #tid ",\"name\":\"thread_name\",\"args\":{\"name\":\"" text "\"}}"
#define RECORD(other, events) "{\"otherData\":{" other "},\"traceEvents\":[" events "]}"

#define RUN(tid, ts, dur, first, end)                                                             \
    "{\"ph\":\"X\",\"tid\":" #tid ",\"cat\":\"tile\",\"name\":\"c\",\"ts\":" #ts ",\"dur\":" #dur \
    ",\"args\":{\"first\":" #first ",\"end\":" #end ",\"job\":3}}"

static void read_events(const char *const *events, bench_sim_record *record)
{
    char text[8192] = "{\"otherData\":{},\"traceEvents\":[";
    size_t length = strlen(text);
    for (; *events != NULL; ++events) {
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", *events,
                                   events[1] != NULL ? "," : "]}");
        assert_true(length < sizeof text);
    }
    read_text(text, record);
}

/* An event of several tasks is as many tiles, one after another. */
static void test_tasks_of_one_event(void **state)
{
    static const char *const events[] = {
        ROW, NAMED(9, "jobs"), JOB(1, 20), SHORT("[2,0,1]"), TASK(3, 9, 4), NULL,
    };
    static const uint64_t positions[] = {2, 0, 1, 3};
    static const double starts[] = {2, 4, 6, 9}, times[] = {2, 2, 2, 4};
    (void)state;
    bench_sim_record record;
    read_events(events, &record);
    assert_int_equal(record.tile_count, 4);
    for (size_t k = 0; k < 4; ++k) {
        assert_int_equal(record.tiles[k].first, positions[k]);
        assert_int_equal(record.tiles[k].graph, 1);
        assert_int_equal(record.tiles[k].number, 7);
        assert_false(record.tiles[k].is_chunk);
        assert_true(fabs(record.tiles[k].start_us - starts[k]) < 1e-9);
        assert_true(fabs(record.tiles[k].us - times[k]) < 1e-9);
    }
    bench_sim_record_free(&record);
    refused(TRACE(0, ROW "," SHORT("[]")), FILCH_DATA, "no tasks");
    refused(TRACE(0, ROW "," SHORT("[1,-1]")), FILCH_DATA, "task 1 of an event");
    refused(TRACE(0, ROW "," SHORT("[\"x\"]")), FILCH_DATA, "task 0 of an event");
    refused(TRACE(0, ROW "," SHORT("3")), FILCH_DATA, "");
}

/* What the device did is divided among the tiles that shared it, and what the host did about the
 * job is known from where the trace shows that. */
static void test_times(void **state)
{
    static const char *const events[] = {
        NAMED(0, "gpu"),
        NAMED(1, "gpu in"),
        NAMED(2, "gpu out"),
        NAMED(9, "jobs"),
        JOB(10, 90),
        COPY(1, "in", 15, 5, 1000, "host"),
        TASK(0, 20, 10),
        TASK(1, 25, 25),
        TASK(2, 26, 2),
        TASK(3, 60, 30),
        COPY(2, "out", 91, 3, 500, "host"),
        NULL,
    };
    (void)state;
    bench_sim_record record;
    read_events(events, &record);
    assert_int_equal(record.device_count, 1); /* the jobs' row is none */
    assert_int_equal(record.job_count, 1);
    assert_true(fabs(record.seconds - 90e-6) < 1e-12);
    assert_true(fabs(record.jobs[0].lead_us - 5) < 1e-9);
    assert_true(fabs(record.jobs[0].tail_us - 6) < 1e-9);
    const double us[] = {5 + 0.5 + 2 / 3.0 + 1, 0.5 + 2 / 3.0 + 1 + 20, 2 / 3.0, 30};
    double sum = 0;
    for (size_t k = 0; k < 4; ++k) {
        assert_true(fabs(record.tiles[k].us - us[k]) < 1e-9);
        sum += record.tiles[k].us;
    }
    assert_true(fabs(sum - 60) < 1e-9); /* from 20 to 50 and from 60 to 90 */
    bench_sim_record_free(&record);
}

#define WAIT(ts, dur) \
    "{\"ph\":\"X\",\"tid\":0,\"cat\":\"wait\",\"name\":\"wait\",\"ts\":" #ts ",\"dur\":" #dur "}"

/* 5 us a chunk and 1 us an item; and what lies before a chunk counts as its time, unless a copy to
 * the device was under way or it had nothing to do. */
static void test_delays(void **state)
{
    static const char *const events[] = {
        NAMED(0, "a"),           NAMED(1, "a in"),
        RUN(0, 0, 15, 0, 10),    RUN(0, 15, 25, 10, 30),
        RUN(0, 47, 10, 30, 35),  COPY(1, "in", 50, 27, 8, "host"),
        RUN(0, 77, 45, 35, 75),  WAIT(122, 30),
        RUN(0, 152, 13, 75, 83), NULL,
    };
    const double us[] = {10, 20, 5 + 7, 40, 8};
    (void)state;
    bench_sim_record record;
    read_events(events, &record);
    assert_true(record.gap_us[0] == 0);
    assert_true(fabs(record.chunk_us[0] - 5) < 1e-9);
    for (size_t k = 0; k < 5; ++k) {
        assert_true(fabs(record.tiles[k].us - us[k]) < 1e-9);
    }
    bench_sim_record_free(&record);
}

/* 10 us and 100 bytes a us, of which one copy was held up; what went out is too small to tell a
 * rate. */
static void test_links(void **state)
{
    static const char *const events[] = {
        NAMED(0, "a"),
        NAMED(1, "a in"),
        NAMED(2, "b"),
        NAMED(3, "b peer"),
        NAMED(4, "b out"),
        TASK(0, 1000, 10),
        COPY(1, "in", 0, 11, 100, "host"),
        COPY(1, "in", 20, 12, 200, "host"),
        COPY(1, "in", 40, 30, 2000, "host"),
        COPY(1, "in", 80, 30, 2000, "host"),
        COPY(1, "in", 120, 90, 2000, "host"),
        COPY(1, "in", 220, 11, 100, "host"),
        COPY(3, "peer", 7, 2, 40000, "a"),
        COPY(4, "out", 30, 8, 256, "host"),
        COPY(4, "out", 50, 9, 256, "host"),
        COPY(4, "out", 70, 40, 256, "host"),
        NULL,
    };
    (void)state;
    bench_sim_record record;
    bench_sim_link link;
    read_events(events, &record);
    assert_true(bench_sim_link_find(&record, BENCH_SIM_IN, 0, 2, &link));
    assert_true(fabs(link.rate - 100e6) < 2e6 && fabs(link.latency_us - 10) < 0.2);
    assert_true(bench_sim_link_find(&record, BENCH_SIM_IN, 1, 2, &link) && link.rate == 0);
    assert_true(bench_sim_link_find(&record, BENCH_SIM_OUT, 0, 2, &link) && link.rate == 0);
    assert_true(bench_sim_link_find(&record, BENCH_SIM_OUT, 2, 2, &link));
    assert_true(link.rate == 0 && fabs(link.latency_us - 9) < 1e-9);
    assert_true(bench_sim_link_find(&record, BENCH_SIM_PEER, 1, 0, &link));
    assert_true(fabs(link.rate - 20000e6) < 1 && link.latency_us == 0);
    assert_true(bench_sim_link_find(&record, BENCH_SIM_PEER, 0, 1, &link) && link.rate == 0);
    bench_sim_record_free(&record);
}

/* GPUs reach each other also where all that went between them is tiny. */
static void test_tiny_peers(void **state)
{
    static const char *const events[] = {
        NAMED(0, "a"),
        NAMED(1, "b"),
        NAMED(2, "b peer"),
        TASK(0, 1000, 10),
        TASK(1, 1000, 10),
        COPY(2, "peer", 7, 4, 256, "a"),
        NULL,
    };
    (void)state;
    char path[] = "/tmp/filch-machine-XXXXXX", text[4096] = "";
    bench_sim_record record;
    filch_error error = FILCH_ERROR_INIT;
    read_events(events, &record);
    ok(bench_sim_machine_write(&record, path, &error));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) != 0);
    fclose(file);
    unlink(path);
    assert_non_null(strstr(text, "{\"from\": \"a\", \"to\": \"b\", \"bandwidth\": 2.5e+10, "
                                 "\"latency_us\": 4}"));
    bench_sim_record_free(&record);
}

/* One that two devices ran counts where it was over first. */
static void test_chunks_that_ran_twice(void **state)
{
    static const char *const events[] = {
        NAMED(0, "a"),        NAMED(1, "b"),        RUN(0, 0, 10, 0, 5),
        RUN(0, 10, 90, 5, 9), RUN(1, 20, 30, 5, 9), NULL,
    };
    (void)state;
    bench_sim_record record;
    read_events(events, &record);
    assert_int_equal(record.twice, 1);
    assert_int_equal(record.tile_count, 2);
    assert_int_equal(record.jobs[0].count, 2);
    assert_true(record.tiles[0].device == 0 && record.tiles[1].device == 1);
    bench_sim_record_free(&record);
    refused(RECORD("", NAMED(0, "a") "," RUN(0, 0, 10, 0, 5) "," RUN(0, 10, 90, 6, 9)), FILCH_DATA,
            "lacks chunks of 'c'");
    refused(RECORD("\"batches\":[{\"job\":3,\"items\":8,\"grain\":1}]",
                   NAMED(0, "a") "," RUN(0, 0, 10, 0, 5)),
            FILCH_DATA, "lacks chunks of 'c'");
}

#define HANDLE \
    "{\"element\":8,\"rows\":100,\"cols\":1,\"tile_rows\":30,\"tile_cols\":1,\"managed\":false}"
#define PARTS(parts) RECORD(parts, NAMED(0, "a") "," TASK(0, 0, 5))

static void wrong_parts(const char *parts, const char *fragment)
{
    char text[2048];
    snprintf(text, sizeof text, "{\"otherData\":{%s},\"traceEvents\":[%s]}", parts,
             NAMED(0, "a") "," TASK(0, 0, 5));
    refused(text, FILCH_DATA, fragment);
}

static void test_wrong_handles(void **state)
{
    (void)state;
    wrong_parts("\"handles\":3", "handles: is no list");
    wrong_parts("\"handles\":[3]", "handles, element 0");
    wrong_parts("\"handles\":[" HANDLE ",{\"element\":8}]", "handles, element 1: Object item");
    wrong_parts("\"handles\":[{\"element\":8,\"rows\":\"x\",\"cols\":1,\"managed\":true}]",
                "Expected integer");
    wrong_parts("\"handles\":[{\"element\":8,\"rows\":0,\"cols\":1,\"managed\":true}]",
                "no such size");
    wrong_parts("\"handles\":[{\"element\":8,\"rows\":4611686018427387904,\"cols\":8,"
                "\"tile_rows\":1,\"tile_cols\":1,\"managed\":true}]",
                "no such size");
    wrong_parts("\"handles\":[{\"element\":8,\"rows\":9,\"cols\":1,\"tile_rows\":10,"
                "\"tile_cols\":1,\"managed\":true}]",
                "tiles are larger");
    wrong_parts("\"handles\":[{\"element\":8,\"rows\":9,\"cols\":1,\"row_cuts\":[4,6],"
                "\"tile_cols\":1,\"managed\":true}]",
                "do not add up");
    wrong_parts("\"handles\":[{\"element\":8,\"rows\":9,\"cols\":1,\"row_cuts\":[4,4],"
                "\"tile_cols\":1,\"managed\":true}]",
                "do not add up");
    wrong_parts("\"devices\":[{\"name\":\"a\",\"score\":-1,\"memory\":0}]", "less than nothing");
    wrong_parts("\"devices\":[{\"name\":\"a\"}]", "Object item not found: score");
}

#define GRAPH(more) \
    "\"handles\":[" HANDLE "],\"graphs\":[{\"graph\":1,\"successors\":[[]]" more "}]"
#define BATCH(more) \
    "\"handles\":[" HANDLE "],\"batches\":[{\"job\":1,\"items\":4,\"grain\":1" more "}]"

#define KIND(name, task, ts, dur)                                                                 \
    "{\"ph\":\"X\",\"tid\":0,\"cat\":\"tile\",\"name\":\"" name "\",\"ts\":" #ts ",\"dur\":" #dur \
    ",\"args\":{\"task\":" #task ",\"graph\":1,\"job\":7}}"
#define IDLE(ts, dur)                                                                         \
    "{\"ph\":\"X\",\"tid\":0,\"cat\":\"wait\",\"name\":\"wait\",\"ts\":" #ts ",\"dur\":" #dur \
    ",\"args\":{}}"

/* Behind tiles of one codelet nothing begins at once, though it could: their launches keep the
 * worker. 5 us lie between a wait and a tile, the other 15 are what it does first. */
static void test_host(void **state)
{
    static const char *events[] = {
        NAMED(0, "cuda:0"),
        KIND("k", 0, 1000, 100),
        KIND("t", 1, 1120, 30),
        KIND("t", 2, 1152, 30),
        KIND("k", 3, 1184, 100),
        KIND("t", 4, 1304, 30),
        KIND("t", 5, 1336, 30),
        KIND("k", 6, 1368, 100),
        KIND("t", 7, 1488, 30),
        KIND("t", 8, 1520, 30),
        IDLE(1570, 30),
        KIND("t", 9, 1605, 30),
        NULL,
    };
    (void)state;
    bench_sim_record record;
    read_events(events, &record);
    assert_true(record.has_host);
    assert_true(fabs(record.launch_us - 5) < 1e-9 && fabs(record.see_us - 15) < 1e-9);
    assert_true(record.copy_us == 0);
    assert_string_equal(record.codelets[0], "k");
    assert_true(fabs(record.keep_us[0]) < 1e-9 && record.keep_us[1] < 0);
    bench_sim_record_free(&record);
    events[0] = NAMED(0, "host:0");
    read_events(events, &record);
    assert_true(!record.has_host);
    bench_sim_record_free(&record);
}

#define PLACED(homes)                                                                              \
    RECORD("\"handles\":[{\"element\":8,\"rows\":100,\"cols\":1,\"tile_rows\":30,\"tile_cols\":1," \
           "\"managed\":true}],\"graphs\":[{\"graph\":1,\"successors\":[[2],[2],[]],"              \
           "\"accesses\":[[0,0,2],[0,1,2],[0,0,1,0,1,3]]" homes "}]",                              \
           NAMED(0, "a") "," NAMED(1, "b") "," TASK(0, 0, 10) "," TASK(                            \
               2, 20, 10) ",{\"ph\":"                                                              \
                          "\"X\",\"tid\":1,\"cat\":\"tile\",\"name\":\"t\",\"ts\":0,\"dur\":10,"   \
                          "\"args\":{\"task\":1,"                                                  \
                          "\"graph\":1,\"job\":7}}")

/* The last task ran beside the first, but what it writes was where the second ran. */
static void test_homes(void **state)
{
    (void)state;
    static const uint32_t found[] = {1, 2, 2}, told[] = {2, 0, 1};
    bench_sim_record record;
    read_text(PLACED(""), &record);
    assert_memory_equal(record.graphs[0].homes, found, sizeof found);
    bench_sim_record_free(&record);
    read_text(PLACED(",\"homes\":[2,0,1]"), &record);
    assert_memory_equal(record.graphs[0].homes, told, sizeof told);
    bench_sim_record_free(&record);
    wrong_parts(GRAPH(",\"homes\":[1,2]"), "one a task");
    wrong_parts(GRAPH(",\"homes\":[2]"), "a home is no device's");
}

static void test_wrong_uses(void **state)
{
    (void)state;
    bench_sim_record record;
    wrong_parts("\"graphs\":[{\"graph\":1}]", "Object item not found: successors");
    wrong_parts("\"graphs\":[{\"graph\":1,\"successors\":[3]}]", "no lists of positions");
    wrong_parts("\"graphs\":[{\"graph\":1,\"successors\":[[1]]}]", "a successor is not there");
    wrong_parts("\"graphs\":[{\"graph\":1,\"successors\":[[-1]]}]", "a successor is not there");
    wrong_parts("\"graphs\":[{\"graph\":1,\"successors\":[]}]", "has no task 0");
    wrong_parts(GRAPH(",\"accesses\":[[0,0,1],[]]"), "one a task");
    wrong_parts(GRAPH(",\"accesses\":[[0,0]]"), "not of three numbers");
    wrong_parts(GRAPH(",\"accesses\":[[0,0,17]]"), "a block's five");
    wrong_parts(GRAPH(",\"accesses\":[[0,0,17,1]]"), "a block's five");
    wrong_parts(GRAPH(",\"accesses\":[[0,2,17,3,1]]"), "a block that is not there");
    wrong_parts(GRAPH(",\"accesses\":[[0,0,17,0,1]]"), "a block that is not there");
    wrong_parts(GRAPH(",\"accesses\":[[0,0,17,1,2]]"), "a block that is not there");
    wrong_parts(GRAPH(",\"accesses\":[[0,0,23,2,1]]"), "in a mode that only tiles have");
    wrong_parts(GRAPH(",\"accesses\":[[0,0,33,2,1]]"), "a mode that does not exist");
    wrong_parts(GRAPH(",\"accesses\":[[0,0,49,1,1,1,0,0]]"), "a halo's nine");
    wrong_parts(GRAPH(",\"accesses\":[[0,0,49,1,1,1,0,-1,0]]"), "a negative size");
    wrong_parts(GRAPH(",\"accesses\":[[0,0,51,1,1,1,0,1,0]]"), "does not only read");
    wrong_parts(GRAPH(",\"accesses\":[[0,\"0\",1]]"), "one a task");
    wrong_parts(GRAPH(",\"accesses\":[[1,0,1]]"), "a handle that is not there");
    wrong_parts(GRAPH(",\"accesses\":[[-1,0,1]]"), "a handle that is not there");
    wrong_parts(GRAPH(",\"accesses\":[[0,4,1]]"), "a tile that is not there");
    wrong_parts(GRAPH(",\"accesses\":[[0,0,5]]"), "a mode that does not exist");
    wrong_parts(GRAPH(",\"priorities\":[1,2]"), "one a task");
    wrong_parts(GRAPH(",\"priorities\":[99999999999]"), "a priority is none");
    wrong_parts(BATCH(",\"accesses\":5"), "no list");
    wrong_parts(BATCH(",\"accesses\":[{\"handle\":0}]"), "Object item not found: mode");
    wrong_parts(BATCH(",\"accesses\":[{\"handle\":7,\"mode\":1,\"map\":\"whole\"}]"),
                "a handle that is not there");
    wrong_parts(BATCH(",\"accesses\":[{\"handle\":0,\"mode\":7,\"map\":\"whole\"}]"),
                "a mode that does not exist");
    wrong_parts(BATCH(",\"accesses\":[{\"handle\":0,\"mode\":1,\"map\":\"affine\",\"scale\":0}]"),
                "no elements");
    wrong_parts("\"batches\":[{\"job\":1,\"items\":4,\"grain\":0}]", "cannot be");
    refused(RECORD("", NAMED(0, "a") ",{\"cat\":\"tile\",\"tid\":0,\"name\":\"t\",\"dur\":1,"
                                     "\"args\":{\"task\":0,\"graph\":1}}"),
            FILCH_DATA, "'t' has no times");
    refused(RECORD("", NAMED(0, "a") ",{\"cat\":\"tile\",\"tid\":0,\"name\":\"t\",\"ts\":1,"
                                     "\"dur\":1e16,\"args\":{\"task\":0,\"graph\":1}}"),
            FILCH_DATA, "'t' ends at 1e+16 us");
    refused(RECORD("", NAMED(0, "a") ",{\"cat\":\"tile\",\"tid\":0,\"name\":\"t\",\"ts\":1,"
                                     "\"dur\":1,\"args\":{\"task\":0}}"),
            FILCH_DATA, "'t' has no 'graph'");
    refused(RECORD("", NAMED(0, "a") "," NAMED(1, "a peer") "," TASK(0, 0, 5) "," COPY(1, "peer", 0,
                                                                                       1, 8, "z")),
            FILCH_DATA, "comes from 'z'");
    /* What is missing is no mistake: an older trace. */
    read_text(PARTS("\"graphs\":[{\"graph\":1,\"successors\":[[]]}]"), &record);
    assert_null(record.graphs[0].use_begin);
    bench_sim_record_free(&record);
    read_text(PARTS(GRAPH(",\"accesses\":[[0,3,2,0,9,4,0,1,17,3,1]],\"priorities\":[-2]")),
              &record);
    assert_int_equal(record.graphs[0].use_begin[1], 3);
    assert_int_equal(record.graphs[0].uses[0].rows, 1);
    assert_int_equal(record.graphs[0].uses[1].mode, FILCH_SCRATCH);
    assert_int_equal(record.graphs[0].uses[2].mode, FILCH_READ);
    assert_int_equal(record.graphs[0].uses[2].rows, 3);
    assert_int_equal(record.graphs[0].uses[2].cols, 1);
    assert_int_equal(record.graphs[0].priorities[0], -2);
    assert_false(record.graphs[0].uses[2].has_halo);
    bench_sim_record_free(&record);
    read_text(PARTS(GRAPH(",\"accesses\":[[0,1,49,2,1,1,2,3,4,0,3,2]],\"priorities\":[-2]")),
              &record);
    assert_int_equal(record.graphs[0].use_begin[1], 2);
    assert_int_equal(record.graphs[0].uses[0].rows, 2);
    assert_true(record.graphs[0].uses[0].has_halo);
    assert_int_equal(record.graphs[0].uses[0].halo.rows_before, 1);
    assert_int_equal(record.graphs[0].uses[0].halo.rows_after, 2);
    assert_int_equal(record.graphs[0].uses[0].halo.cols_before, 3);
    assert_int_equal(record.graphs[0].uses[0].halo.cols_after, 4);
    bench_sim_record_free(&record);
}

static int clean(void **state)
{
    (void)state;
    unlink(trace_path);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_wrong_files, clean),
        cmocka_unit_test_teardown(test_tasks_of_one_event, clean),
        cmocka_unit_test_teardown(test_times, clean),
        cmocka_unit_test_teardown(test_delays, clean),
        cmocka_unit_test_teardown(test_links, clean),
        cmocka_unit_test_teardown(test_tiny_peers, clean),
        cmocka_unit_test_teardown(test_host, clean),
        cmocka_unit_test_teardown(test_homes, clean),
        cmocka_unit_test_teardown(test_chunks_that_ran_twice, clean),
        cmocka_unit_test_teardown(test_wrong_handles, clean),
        cmocka_unit_test_teardown(test_wrong_uses, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
