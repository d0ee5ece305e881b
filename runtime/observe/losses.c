/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/losses.h"

#include <string.h>

static const fl_loss_field parts[FL_LOSS_PARTS] = {
    [FL_LOSS_BUSY] = {"busy", "busy", "ran items, at the best speed seen on the device",
                      offsetof(filch_losses, busy_ns)},
    [FL_LOSS_SLOW] = {"slow", "slow", "ran items slower than the best speed seen there",
                      offsetof(filch_losses, slow_ns)},
    [FL_LOSS_DISPATCH] = {"dispatch", "dispatch", "found, started and retired items",
                          offsetof(filch_losses, dispatch_ns)},
    [FL_LOSS_DATA] = {"data", "data", "waited for copies, or for memory",
                      offsetof(filch_losses, data_ns)},
    [FL_LOSS_SPOILED] = {"spoiled", "spoiled", "ran items that failed or did not count",
                         offsetof(filch_losses, spoiled_ns)},
    [FL_LOSS_PREEMPTED] = {"preempted", "preempted", "had no core: other threads ran there",
                           offsetof(filch_losses, preempted_ns)},
    [FL_LOSS_STARVED] = {"starved", "starved", "idle: no ready work existed for the device",
                         offsetof(filch_losses, starved_ns)},
    [FL_LOSS_UNSHARED] = {"unshared", "unshared", "idle: ready work lay with busy devices",
                          offsetof(filch_losses, unshared_ns)},
    [FL_LOSS_HELD] = {"held", "held off", "idle: the work's owner would finish it sooner",
                      offsetof(filch_losses, held_ns)},
    [FL_LOSS_TAIL] = {"tail", "tail", "idle while the last items of the job ran elsewhere",
                      offsetof(filch_losses, tail_ns)},
    [FL_LOSS_OTHER] = {"other", "other jobs", "worked on other jobs",
                       offsetof(filch_losses, other_ns)},
};

static const fl_loss_field refusals[] = {
    {"refused_held", "refused: held", NULL, offsetof(filch_losses, refused_held)},
    {"refused_empty", "empty", NULL, offsetof(filch_losses, refused_empty)},
    {"refused_unable", "unable", NULL, offsetof(filch_losses, refused_unable)},
    {"refused_raced", "raced", NULL, offsetof(filch_losses, refused_raced)},
    {"refused_dear", "dear", NULL, offsetof(filch_losses, refused_dear)},
};

#define REFUSALS (sizeof refusals / sizeof *refusals)

#define FIELD(name, member)                              \
    {                                                    \
        name, NULL, NULL, offsetof(filch_losses, member) \
    }
static const fl_loss_field fields[] = {
    FIELD("wall", wall_ns),
    FIELD("busy", busy_ns),
    FIELD("dispatch", dispatch_ns),
    FIELD("data", data_ns),
    FIELD("spoiled", spoiled_ns),
    FIELD("starved", starved_ns),
    FIELD("held", held_ns),
    FIELD("tail", tail_ns),
    FIELD("other", other_ns),
    FIELD("estimated", estimated_ns),
    FIELD("refused_held", refused_held),
    FIELD("refused_empty", refused_empty),
    FIELD("refused_unable", refused_unable),
    FIELD("refused_raced", refused_raced),
    FIELD("refused_dear", refused_dear),
    FIELD("restarts", restarts),
    FIELD("restarts_won", restarts_won),
    FIELD("restarts_lost", restarts_lost),
    FIELD("restarts_refused", restarts_refused),
    FIELD("divided", divided),
    FIELD("pieces", pieces),
    FIELD("slow", slow_ns),
    FIELD("unrated", unrated_ns),
    FIELD("preempted", preempted_ns),
    FIELD("unshared", unshared_ns),
};

#define FIELDS (sizeof fields / sizeof *fields)
_Static_assert(FIELDS * sizeof(uint64_t) == sizeof(filch_losses), "a row for each member");

const fl_loss_field *fl_loss_parts(void)
{
    return parts;
}

const fl_loss_field *fl_loss_refusals(size_t *count)
{
    *count = REFUSALS;
    return refusals;
}

const fl_loss_field *fl_loss_fields(size_t *count)
{
    *count = FIELDS;
    return fields;
}

uint64_t fl_loss_value(const filch_losses *losses, const fl_loss_field *field)
{
    uint64_t value;
    memcpy(&value, (const char *)losses + field->offset, sizeof value);
    return value;
}

double fl_loss_share(const filch_losses *losses, const fl_loss_field *part)
{
    return losses->wall_ns != 0 ? (double)fl_loss_value(losses, part) / (double)losses->wall_ns : 0;
}

void fl_losses_add(filch_losses *sum, const filch_losses *losses)
{
    uint64_t a[FIELDS], b[FIELDS];
    memcpy(a, sum, sizeof a);
    memcpy(b, losses, sizeof b);
    for (size_t i = 0; i < FIELDS; ++i) {
        a[i] += b[i];
    }
    memcpy(sum, a, sizeof a);
}

/* --- Table --- */

#define CELL 32

/* Writes the text of a cell; column 0 has the name. */
static void cell(char text[CELL], const fl_loss_row *row, size_t column, double runs)
{
    if (column < FL_LOSS_PARTS) {
        snprintf(text, CELL, "%.2f", 100 * fl_loss_share(&row->losses, &parts[column]));
    } else {
        const fl_loss_field *refusal = &refusals[column - FL_LOSS_PARTS];
        snprintf(text, CELL, "%.1f", (double)fl_loss_value(&row->losses, refusal) / runs);
    }
}

static const char *title(size_t column)
{
    return column < FL_LOSS_PARTS ? parts[column].title : refusals[column - FL_LOSS_PARTS].title;
}

static int width_of(size_t column, const fl_loss_row *rows, size_t count, double runs)
{
    size_t width = strlen(title(column));
    for (size_t i = 0; i < count; ++i) {
        char text[CELL];
        cell(text, &rows[i], column, runs);
        width = strlen(text) > width ? strlen(text) : width;
    }
    return (int)width;
}

static void put_rule(FILE *file, int width)
{
    for (int i = 0; i < width; ++i) {
        fputc('-', file);
    }
}

void fl_losses_print(FILE *file, const fl_loss_row *rows, size_t count, double runs)
{
    size_t columns = FL_LOSS_PARTS + REFUSALS, longest = strlen("device");
    int widths[FL_LOSS_PARTS + REFUSALS];
    for (size_t i = 0; i < count; ++i) {
        longest = strlen(rows[i].name) > longest ? strlen(rows[i].name) : longest;
    }
    fprintf(file, "%-*s", (int)longest, "device");
    for (size_t k = 0; k < columns; ++k) {
        widths[k] = width_of(k, rows, count, runs);
        fprintf(file, "  %*s", widths[k], title(k));
    }
    fputc('\n', file);
    put_rule(file, (int)longest);
    for (size_t k = 0; k < columns; ++k) {
        fputs("  ", file);
        put_rule(file, widths[k]);
    }
    fputc('\n', file);
    for (size_t i = 0; i < count; ++i) {
        fprintf(file, "%-*s", (int)longest, rows[i].name);
        for (size_t k = 0; k < columns; ++k) {
            char text[CELL];
            cell(text, &rows[i], k, runs);
            fprintf(file, "  %*s", widths[k], text);
        }
        fputc('\n', file);
    }
}
