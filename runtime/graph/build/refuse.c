/* SPDX-License-Identifier: Apache-2.0 */
/* Refusal of a task that is being added. */
#include <stdarg.h>
#include <stdio.h>

#include "graph/build/graph.h"

const char *fl_graph_name_of(const filch_graph *graph, const filch_task_desc *desc)
{
    if (desc->label != NULL) {
        return desc->label;
    }
    return fl_object_lives(desc->codelet, FL_MAGIC_CODELET) ? desc->codelet->name : graph->label;
}

filch_status fl_graph_refuse(const filch_graph *graph, const filch_task_desc *desc,
                             filch_status status, const char *format, ...)
{
    char text[sizeof((filch_error *)NULL)->text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const char *name = fl_graph_name_of(graph, desc);
    bool is_named = name != graph->label && name[0] != '\0';
    /* Relaxed: the number is approximate while threads add to an open graph. */
    return fl_core_fail(graph->object.core, status, "filch_graph_add", name,
                        "task #%u%s%.63s%s: %s", fl_load_relaxed(&graph->task_count),
                        is_named ? " '" : "", is_named ? name : "", is_named ? "'" : "", text);
}
