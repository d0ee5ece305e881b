/* SPDX-License-Identifier: Apache-2.0 */
/* Results: committed behind the item's marker, copied home where they are final, and checked for
 * failed copies. The host's own items commit by the same functions. */
#include "sched/execute/publish.h"

#include "sched/execute/fetch.h"
#include "sched/worker/device.h"
#include "sched/worker/sched.h"

/* --- Copies that an item depends on --- */

void fl_publish_fail(fl_worker *w, fl_in_flight *flight, const filch_error *error)
{
    flight->has_failed = true;
    w->stall.late = *error;
}

/* Checks the item's copies from remote memory nodes: a failed copy fails the item. The copies are
 * over, because the lane waited. */
void fl_publish_check_foreign(fl_worker *w, fl_in_flight *flight)
{
    filch_error error = FILCH_ERROR_INIT;
    while (flight->foreign_count != 0) {
        fl_marker marker = flight->foreign[--flight->foreign_count];
        fl_device *other = w->sched->workers[fl_marker_device(marker)].device;
        if (fl_device_await(other, marker, &error) != FILCH_OK) {
            fl_publish_fail(w, flight, &error);
        }
    }
}

void fl_publish_add_copy(fl_worker *w, fl_in_flight *flight, fl_marker home)
{
    filch_error error = FILCH_ERROR_INIT;
    for (uint32_t i = 0; i < flight->home_count; ++i) {
        /* Lanes are in order: the later marker covers the earlier. */
        if (flight->homes[i] >> 50 == home >> 50) {
            flight->homes[i] = home;
            return;
        }
    }
    if (flight->home_count == FL_HOMES) {
        --flight->home_count;
        if (fl_marker_await(w->sched->core->places, flight->homes[0], &error) != FILCH_OK) {
            fl_publish_fail(w, flight, &error);
        }
        flight->homes[0] = flight->homes[flight->home_count];
    }
    flight->homes[flight->home_count++] = home;
}

/* Tells whether every write-back copy is past; a failed copy counts as past. */
bool fl_publish_is_home(fl_worker *w, fl_in_flight *flight)
{
    filch_error error = FILCH_ERROR_INIT;
    while (flight->home_count != 0) {
        fl_marker home = flight->homes[flight->home_count - 1];
        fl_device *device = &w->sched->core->places->devices[fl_marker_device(home)];
        filch_status status = device->backend->lane->reached(device, home, &error);
        if (status == FILCH_NOT_READY) {
            return false;
        }
        --flight->home_count;
        if (status != FILCH_OK) {
            fl_publish_fail(w, flight, &error);
        }
    }
    return true;
}

/* Notes copies awaited by the item from remote memory nodes. */
bool fl_publish_note_foreign(fl_worker *w, fl_in_flight *flight)
{
    const fl_waits *waits = &w->offload->waits;
    for (uint32_t i = 0; i < waits->count; ++i) {
        fl_device *other = &fl_worker_places(w)->devices[fl_marker_device(waits->at[i])];
        if (other->place == w->device->place) {
            /* A copy of our own memory node fails with us. */
            continue;
        }
        if (flight->foreign_count < FL_FOREIGN) {
            flight->foreign[flight->foreign_count++] = waits->at[i];
            continue;
        }
        if (fl_device_await(other, waits->at[i], &w->stall.error) != FILCH_OK) {
            return false;
        }
    }
    return true;
}

/* Makes an item in flight wait for copies fetched ahead. False: every copy has arrived. */
bool fl_publish_note_fetched(fl_worker *w, fl_in_flight *flight)
{
    fl_offload *offload = w->offload;
    bool any = false;
    for (int from = 0; from < 2; ++from) {
        if (!w->device->backend->lane->is_past(w->device, offload->fetched[from])) {
            fl_publish_add_copy(w, flight, offload->fetched[from]);
            any = true;
        } else {
            offload->fetched[from] = 0;
        }
    }
    return any;
}

/* --- Commit --- */

/* Commits the operands, and starts write-back of final results, except results waiting for the
 * decision of a race. */
bool fl_publish_results(fl_worker *w, fl_in_flight *flight, fl_marker marker)
{
    fl_offload *offload = w->offload;
    bool fits = true;
    for (uint32_t i = 0; i < offload->operand_count; ++i) {
        fl_operand *operand = &offload->operands[i];
        if ((operand->is_final || operand->is_streamed) && (operand->mode & FILCH_WRITE) != 0 &&
            !operand->is_shadowed && marker != 0 &&
            !w->device->backend->lane->is_marked(w->device, marker)) {
            fits = w->device->backend->lane->mark(w->device, &w->stall.error) == FILCH_OK && fits;
        }
        fl_marker home = 0;
        fits = fl_operand_commit(fl_worker_places(w), fl_worker_carrier(w), operand, marker, &home,
                                 &w->stall.error) == FILCH_OK &&
               fits;
        if (home != 0) {
            fl_publish_add_copy(w, flight, home);
        }
    }
    return fits;
}

bool fl_publish_pieces(fl_worker *w, fl_in_flight *flight)
{
    return fl_operands_list(w, &flight->item) && fl_publish_results(w, flight, 0);
}

void fl_publish_on_host(fl_worker *w, fl_item *item)
{
    fl_offload *offload = w->offload;
    bool fits = true;
    /* The item may have waited for nested items: the lists then hold the nested items' operands. */
    if (!fl_operands_list(w, item)) {
        return;
    }
    for (uint32_t i = 0; i < offload->operand_count; ++i) {
        fl_marker home;
        /* The worker has no further work: no next item starts before the item retires. */
        fits = fl_operand_commit(fl_worker_places(w), NULL, &offload->operands[i], 0, &home,
                                 &w->stall.error) == FILCH_OK &&
               fl_marker_await(fl_worker_places(w), home, &w->stall.error) == FILCH_OK && fits;
    }
    if (!fits) {
        /* The item ran, but the results did not reach the destination. */
        item->is_refused = true;
        item->code = -1;
    }
}

bool fl_publish_move(fl_worker *w, fl_in_flight *flight)
{
    fl_offload *offload = w->offload;
    fl_waits *waits = &offload->waits;
    const fl_admission admission = {.foresight = NULL};
    waits->count = 0;
    (void)fl_operands_list(w, &flight->item);
    bool fits =
        fl_operands_fetch(fl_worker_places(w), NULL, offload->operands, offload->operand_count,
                          &admission, waits, &w->stall.error) == FILCH_OK;
    for (uint32_t i = 0; fits && i < offload->operand_count; ++i) {
        /* Write-back does not occur: the host's memory is the home of partitioned data. */
        fl_marker home;
        fits = fl_operand_commit(fl_worker_places(w), NULL, &offload->operands[i], 0, &home,
                                 &w->stall.error) == FILCH_OK;
    }
    if (!fits) {
        /* The copies lead to the host's buffer. */
        fl_waits_abandon(fl_worker_places(w), waits);
        return false;
    }
    while (waits->count != 0) {
        fl_publish_add_copy(w, flight, waits->at[--waits->count]);
    }
    return true;
}
