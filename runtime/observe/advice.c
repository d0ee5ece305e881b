/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/advice.h"

#include <stdio.h>
#include <string.h>

#include "observe/losses.h"

/* A part below this share of the time is not worth a change. */
#define LEAST_SHARE 0.02
/* A path above this share of the job's time leaves little to more or better balanced devices. */
#define LONG_PATH 0.7

/* What to do about a part of the time; null: nothing. */
static const char *const remedies[FL_LOSS_PARTS] = {
    [FL_LOSS_SLOW] =
        "Items ran slower than the same work has run before on the same device. Usual reasons: "
        "other devices share the memory or the caches, other threads share the core, or the clock "
        "is lower. Try fewer host devices, smaller tiles that stay in the caches, and FILCH_BIND.",
    [FL_LOSS_DISPATCH] =
        "Work items are short beside the cost of starting them. Make tasks longer: larger tiles, "
        "a larger grain, several steps in a task, or a batch in place of many equal tasks.",
    [FL_LOSS_DATA] =
        "Devices waited for copies. Keep data on the devices between jobs "
        "(FILCH_DATA_MANAGED), lock the buffers' pages (FILCH_DATA_PIN), and give tasks more work "
        "for the bytes that they use: larger tiles.",
    [FL_LOSS_SPOILED] =
        "Items failed, or ran twice and did not count. filch_job_error names the first failure; "
        "backup runs are those of restartable codelets.",
    [FL_LOSS_PREEMPTED] =
        "Other threads ran on the devices' cores. Leave a core to the rest of the program "
        "(fewer host devices), and keep OpenMP or BLAS threads within tasks at one.",
    [FL_LOSS_STARVED] =
        "Devices found no ready work. Give the graph more parallelism: smaller tiles, fewer "
        "dependencies (read-only accesses where nothing is written), or submit the next job before "
        "the present one has ended.",
    [FL_LOSS_UNSHARED] =
        "Ready work lay in the queues of busy devices and reached idle devices late. Longer tasks, "
        "or tasks made ready in larger groups, are found sooner.",
    [FL_LOSS_HELD] =
        "Devices left work to its owners, who were predicted to finish sooner. The work items are "
        "long for the slower devices: smaller tiles or divisible tasks let slower devices help.",
    [FL_LOSS_TAIL] =
        "Devices waited for the last items of the job. The last items are too long: smaller tiles "
        "or grains, divisible tasks, or the next job submitted before the end.",
    [FL_LOSS_OTHER] =
        "Devices worked on other jobs, which the report charges to those jobs. Where that is not "
        "wanted, submit one job after the other, or give one a lower priority.",
};

/* Puts the piece in its place by share. */
static void insert(fl_advice *advice, uint32_t *count, const fl_advice *made)
{
    uint32_t at = *count;
    while (at > 0 && advice[at - 1].share < made->share) {
        --at;
    }
    if (at == FL_ADVICE_MOST) {
        return;
    }
    *count += *count < FL_ADVICE_MOST;
    memmove(&advice[at + 1], &advice[at], (*count - at - 1) * sizeof *advice);
    advice[at] = *made;
}

static void advise_path(const filch_report *report, fl_advice *advice, uint32_t *count)
{
    double share = (double)report->path_ns / (double)report->wall_ns;
    fl_advice made = {.about = "path", .share = share};
    if (share < LONG_PATH) {
        return;
    }
    snprintf(
        made.text, sizeof made.text,
        "The longest path of dependent tasks takes %.0f %% of the time by itself. More devices "
        "cannot help before the path is shorter: divide the tasks on it (smaller tiles, "
        "divisible tasks), make them faster, or remove dependencies.",
        100 * (share < 1 ? share : 1));
    insert(advice, count, &made);
}

bool fl_advice_is_grounded(const filch_report *report, uint64_t items)
{
    uint64_t least =
        report->status == FILCH_NOT_READY ? (uint64_t)FL_ADVICE_ITEMS * report->device_count : 1;
    return items >= least;
}

uint32_t fl_advise(const filch_report *report, uint64_t items, fl_advice advice[FL_ADVICE_MOST])
{
    const fl_loss_field *parts = fl_loss_parts();
    const filch_losses *total = &report->total;
    uint32_t count = 0;
    for (size_t k = 0; k < FL_LOSS_PARTS; ++k) {
        fl_advice made = {.about = parts[k].name, .share = fl_loss_share(total, &parts[k])};
        if (remedies[k] == NULL || made.share < LEAST_SHARE) {
            continue;
        }
        int used = snprintf(made.text, sizeof made.text, "%.1f %% of the devices' time. ",
                            100 * made.share);
        if (k == FL_LOSS_DISPATCH && items != 0) {
            double us = (double)(total->busy_ns + total->slow_ns) / 1e3 / (double)items;
            used += snprintf(made.text + used, sizeof made.text - (size_t)used,
                             "An item works for %.3g us on average. ", us);
        }
        snprintf(made.text + used, sizeof made.text - (size_t)used, "%s", remedies[k]);
        insert(advice, &count, &made);
    }
    if (report->wall_ns != 0) {
        advise_path(report, advice, &count);
    }
    if (count == 0) {
        advice[count] = (fl_advice){.about = "none"};
        snprintf(advice[count++].text, FL_ADVICE_TEXT,
                 "No loss takes %.0f %% of the devices' time. What remains is to make the tasks "
                 "themselves faster.",
                 100 * LEAST_SHARE);
    }
    return count;
}
