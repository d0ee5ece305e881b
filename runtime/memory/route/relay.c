/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/route/relay.h"

#include "memory/route/part.h"

/* Slots between the two copies: a part arrives, a part leaves, and a third part keeps either
 * copy from waiting for a slow partner. */
#define SLOTS 3u

/* Location of the stop: slots of a ring, or (slot 0) the part's own position in a whole tile. */
typedef struct stopover {
    fl_spot at;
    size_t slot; /* bytes of a slot; 0: no ring */
    uint32_t slots;
} stopover;

static size_t piece_of(const fl_detour *detour)
{
    return fl_block_round(detour->width * detour->height / detour->pieces + 1);
}

static fl_spot part_of(fl_spot spot, const fl_part *part)
{
    spot.ptr += part->column * spot.pitch + part->offset;
    return spot;
}

static fl_spot stop_of(const stopover *where, const fl_part *part, uint64_t k)
{
    if (where->slot == 0) {
        return part_of(where->at, part);
    }
    return (fl_spot){where->at.ptr + k % where->slots * where->slot, part->width, where->at.place,
                     0};
}

/* Waits for every copy started: the copies touch memory the caller may give to a new owner. */
static void abandon(fl_places *places, const fl_detour *detour)
{
    fl_waits waits = {.count = 0};
    (void)fl_waits_add(&waits, detour->left, NULL);
    (void)fl_waits_add(&waits, detour->arrived, NULL);
    fl_waits_abandon(places, &waits);
}

/* Records a copy's marker. A copy may be on the lane despite a later failure. */
static void note(fl_marker *last, fl_marker marker)
{
    *last = marker != 0 ? marker : *last;
}

static filch_status start(fl_places *places, fl_detour *d, const stopover *where,
                          filch_error *error)
{
    fl_part parts[SLOTS];
    fl_marker came[SLOTS] = {0}, gone[SLOTS] = {0};
    bool is_tight = d->from.pitch == d->width && d->to.pitch == d->width &&
                    (where->slot != 0 || where->at.pitch == d->width);
    size_t total = d->width * d->height, sent = 0, piece = piece_of(d);
    uint64_t first = 0, second = 0; /* copies started of the first and second kind */
    filch_status status = FILCH_OK;
    while (status == FILCH_OK && (sent < total || second < first)) {
        if (sent < total && first - second < where->slots) {
            uint32_t k = (uint32_t)(first % where->slots);
            /* A lane is in order: the first copy's marker precedes every later copy. */
            fl_marker behind = first == 0 ? d->behind : where->slot != 0 ? gone[k] : 0;
            parts[k] = fl_part_next(d->width, d->height, is_tight, sent, piece);
            status = fl_columns_start(places, d->out, parts[k].width, parts[k].height,
                                      stop_of(where, &parts[k], first), part_of(d->from, &parts[k]),
                                      behind, d->traffic, &came[k], error);
            note(&d->left, came[k]);
            sent += parts[k].width * parts[k].height;
            ++first;
        } else {
            uint32_t k = (uint32_t)(second % where->slots);
            status = fl_columns_start(places, d->in, parts[k].width, parts[k].height,
                                      part_of(d->to, &parts[k]), stop_of(where, &parts[k], second),
                                      came[k], d->traffic, &gone[k], error);
            note(&d->arrived, gone[k]);
            ++second;
        }
    }
    return status;
}

filch_status fl_detour_over(fl_places *places, fl_detour *detour, fl_spot stop, filch_error *error)
{
    const stopover where = {.at = stop, .slots = SLOTS};
    detour->left = detour->arrived = 0;
    filch_status status = start(places, detour, &where, error);
    if (status != FILCH_OK) {
        abandon(places, detour);
    }
    return status;
}

static filch_status over_ring(fl_places *places, fl_detour *detour, fl_block *ring, uint32_t slots,
                              filch_error *error)
{
    const stopover where = {
        .at = {.ptr = ring->ptr, .place = ring->place},
        .slot = piece_of(detour),
        .slots = slots,
    };
    fl_device *relay = places->at[ring->place].device;
    filch_status status = start(places, detour, &where, error);
    if (status == FILCH_OK && fl_device_is_lost(relay, error)) {
        status = FILCH_DEVICE_LOST; /* the time of the failure is unknown */
    }
    if (status == FILCH_OK) {
        /* Either end may fail while the second end still uses the ring. */
        status = fl_block_read(places, ring, detour->left, error);
    }
    if (status != FILCH_OK) {
        abandon(places, detour);
    }
    fl_block_give(places, ring, status == FILCH_OK ? detour->arrived : 0);
    return status;
}

filch_status fl_detour_relayed(fl_places *places, fl_detour *detour, uint32_t relay,
                               filch_error *error)
{
    uint32_t slots = detour->pieces < SLOTS ? detour->pieces : SLOTS;
    fl_block *ring;
    detour->left = detour->arrived = 0;
    /* The detour counts as an admitted item: a worker without room in the relay's node tries
     * again later. */
    fl_residents_come(places, relay);
    filch_status status = fl_block_new(places, relay, slots * piece_of(detour), &ring, error);
    if (status == FILCH_OK) {
        status = over_ring(places, detour, ring, slots, error);
    }
    fl_residents_go(places, relay);
    return status;
}
