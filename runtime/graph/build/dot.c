/* SPDX-License-Identifier: Apache-2.0 */
/* A closed graph as a text in the language DOT (Graphviz, "The DOT Language"). */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <inttypes.h>

#include "base/output.h"
#include "graph/job/job.h"
#include "observe/trace.h"

/* Colours of the scheme set312 of Graphviz. */
#define COLOURS 12u

typedef struct dot {
    FILE *file;
    const filch_graph *graph;
    uint32_t task; /* whose successors are written */
} dot;

/* Writes text as the inside of a quoted string of DOT. */
static void put_text(FILE *file, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    while (*at != '\0') {
        size_t bytes = fl_character_bytes(at);
        if (bytes == 0) {
            fputc('?', file); /* no UTF-8: a name cut within a character */
        } else if (*at == '"' || *at == '\\') {
            fprintf(file, "\\%c", *at);
        } else if (*at < 0x20) {
            fputs(*at == '\n' ? "\\n" : " ", file);
        } else {
            fwrite(at, 1, bytes, file);
        }
        at += bytes != 0 ? bytes : 1;
    }
}

static const char *mode_name(uint32_t mode)
{
    static const char *const names[] = {
        [FL_MODE_ENDS] = "ends",         [FILCH_READ] = "reads",
        [FILCH_WRITE] = "writes",        [FILCH_READWRITE] = "updates",
        [FILCH_COMMUTE] = "commutes on", [FILCH_REDUCE] = "reduces to"};
    return names[mode];
}

/* Writes the name of a handle: its label, or its number in the graph. */
static void put_handle(const dot *out, uint32_t slot)
{
    const filch_data *data = fl_graph_data(out->graph, slot);
    if (data->label[0] != '\0') {
        put_text(out->file, data->label);
    } else {
        fprintf(out->file, "handle %" PRIu32, slot);
    }
}

/* Writes "updates A(2, 0)", or "reads A(0..3, 0..1)" for a block. */
static void put_access(const dot *out, const fl_task *task, uint32_t i)
{
    const fl_task_access *access = &task->accesses[i];
    if (access->mode == FILCH_SCRATCH) {
        fprintf(out->file, "%" PRIu64 " bytes of scratch memory", (uint64_t)access->tile * 64);
        return;
    }
    const filch_data *data = fl_graph_data(out->graph, access->slot);
    fl_tiles at = fl_rect_tiles(data, fl_task_tiles(task, i));
    fprintf(out->file, "%s ", mode_name(access->mode));
    put_handle(out, access->slot);
    fprintf(out->file, "(%" PRIu32, at.row0);
    if (at.row1 - at.row0 != 1) {
        fprintf(out->file, "..%" PRIu32, at.row1 - 1);
    }
    fprintf(out->file, ", %" PRIu32, at.col0);
    if (at.col1 - at.col0 != 1) {
        fprintf(out->file, "..%" PRIu32, at.col1 - 1);
    }
    fprintf(out->file, ")");
}

/* Returns the number of a codelet's colour, from 1: alike for the same name in each graph. */
static uint32_t colour_of(const filch_codelet *codelet)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (const char *c = codelet->name; *c != '\0'; ++c) {
        hash = (hash ^ (uint8_t)*c) * 16777619u;
    }
    return hash % COLOURS + 1;
}

static void put_task(const dot *out, const fl_task *task)
{
    fprintf(out->file, "  %" PRIu32 " [label=\"", task->order);
    put_text(out->file, fl_task_name(task));
    if (fl_task_is_own(task)) {
        fprintf(out->file, "\", shape=ellipse, fillcolor=white");
    } else {
        fprintf(out->file, " #%" PRIu32 "\", fillcolor=%" PRIu32, task->order,
                colour_of(task->codelet));
    }
    fprintf(out->file, ", tooltip=\"");
    for (uint32_t i = 0; i < task->access_count; ++i) {
        fprintf(out->file, i != 0 ? "; " : "");
        put_access(out, task, i);
    }
    fprintf(out->file, "\"];\n");
}

static void put_edge(fl_task *successor, void *user)
{
    const dot *out = user;
    fprintf(out->file, "  %" PRIu32 " -> %" PRIu32 ";\n", out->task, successor->order);
}

static void put_graph(dot *out)
{
    const filch_graph *graph = out->graph;
    uint32_t count = fl_load_relaxed(&graph->task_count); /* sealed: the count is constant */
    fprintf(out->file, "digraph \"");
    if (graph->label[0] != '\0') {
        put_text(out->file, graph->label);
    } else {
        fprintf(out->file, "graph %" PRIu32, (uint32_t)graph->number);
    }
    fprintf(out->file, "\" {\n  node [shape=box, style=filled, colorscheme=set312];\n");
    for (uint32_t i = 0; i < count; ++i) {
        put_task(out, fl_graph_task_at(graph, i));
    }
    for (uint32_t i = 0; i < count; ++i) {
        out->task = i;
        fl_graph_each_successor(fl_graph_task_at(graph, i), put_edge, out);
    }
    fprintf(out->file, "}\n");
}

static filch_status write_file(filch_graph *graph, const char *path, const char *call)
{
    dot out = {.graph = graph};
    char why[FL_OUTPUT_WHY];
    fl_output output;
    if (fl_output_open(&output, AT_FDCWD, path, ".filch-dot-", FL_OUTPUT_SHARED)) {
        out.file = fl_output_stream(&output);
    }
    if (out.file != NULL) {
        put_graph(&out);
    }
    if (out.file != NULL && fl_output_commit(&output)) {
        return FILCH_OK;
    }
    fl_output_abandon(&output);
    const fl_fault fault = {
        .status = FILCH_IO, .call = call, .label = graph->label, .native_code = output.code};
    return fl_error_record(&graph->object.core->errors, fault, "%s: %s", path,
                           fl_output_why(&output, why));
}

filch_status filch_graph_write_dot(filch_graph *graph, const char *path)
{
    static const char call[] = "filch_graph_write_dot";
    filch_status status = fl_object_check(graph, FL_MAGIC_GRAPH);
    if (status != FILCH_OK) {
        return status;
    }
    fl_core *core = graph->object.core;
    if (path == NULL) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, call, graph->label, "the path is null");
    }
    if (graph->kind == FILCH_GRAPH_OPEN) {
        return fl_core_fail(core, FILCH_WRONG_STATE, call, graph->label,
                            "the graph is open: it forgets tasks that have ended");
    }
    fl_latch_lock(&graph->lock);
    status = fl_graph_seal_for(graph, call);
    fl_latch_unlock(&graph->lock);
    /* Tasks and edges of a sealed graph stay as they are. */
    return status == FILCH_OK ? write_file(graph, path, call) : status;
}
