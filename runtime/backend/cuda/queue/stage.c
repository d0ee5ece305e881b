/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "backend/cuda/queue/stage.h"

#include <sched.h>
#include <string.h>

#include "backend/cuda/device.h"
#include "backend/cuda/queue/known.h"
#include "backend/cuda/queue/lane.h"
#include "backend/cuda/queue/piece.h"
#include "backend/cuda/queue/ring.h"
#include "base/clock.h"

/* Smallest staged copy in. The driver keeps smaller copies in its command buffer, or is equally
 * fast. Copies out are staged at any size: the driver would block the caller until the kernels
 * before the copy are over. */
#define LEAST_BYTES_IN ((size_t)64 << 10)
/* Units landed by a call on a stage without helpers. */
#define UNITS_OF_CALL 4
/* Number of helpers where the setting gives none: a part of the cores, and at most the number
 * filling one link. */
#define HELPERS_MOST 64
#define HELPERS_USUAL 7
#define CORES_OF_HELPER 2
/* Largest copy in written to slots past the caches. */
#define PAST_MOST ((size_t)64 << 20)
/* Time a thread without work looks for more before sleeping: tiles follow each other, a piece comes
 * in 40 us, and waking a thread takes 25 to 120 us. */
#define SPIN_NS 100000u
/* Pause between two looks: threads putting copies on the lane need its lock, too. */
#define RELAXES 40
/* Sleepers woken singly; a larger number is woken all at once. */
#define WAKES_EACH 2
/* Naps of a thread waiting for the device, growing by a part of the time waited. */
#define LEAST_NAP_NS 5000u
#define MOST_NAP_NS 500000u
#define NAPS_OF_WAIT 8

/* A copy in, while its caller waits. */
typedef struct fl_load {
    fl_device *device;
    const fl_copy *copy;
    fl_cut cut;
    size_t next;              /* first piece without a slot */
    size_t left;              /* bytes of all pieces without slots */
    fl_cuda_slot *open;       /* slot with units not taken yet; null: none */
    _Atomic uint32_t filling; /* pieces with slots; release after the buffer was read */
    uint64_t last;            /* newest sequence of the load's pieces; 0: none */
    filch_status status;      /* status of the first failure; details in error */
    filch_error error;
    struct fl_load *later;
} fl_load;

struct fl_cuda_stage {
    fl_cuda_gpu *gpu;
    fl_log log;
    uint32_t wanted;       /* number of helpers wanted */
    uint64_t affinity[16]; /* equal to the device's affinity */
    fl_mutex making;       /* guards making rings and helpers */
    bool has_started;
    fl_mutex lock; /* guards all following members except atomics */
    fl_cond work;  /* wakes helpers */
    fl_cond done;  /* wakes callers */
    fl_cuda_ring in, out;
    fl_cuda_slot *first, *last; /* pieces aboard */
    uint64_t copies;            /* copies out so far */
    uint32_t landing;           /* units landing now */
    fl_load *loads;             /* loads with units left */
    uint32_t dozing, sleeping;  /* helpers waiting for work: dozing awake, or sleeping */
    uint32_t waiting;           /* callers asleep */
    bool is_watched;            /* a helper looks at the lanes repeatedly */
    bool is_ending;
    uint32_t lookers;              /* threads looking at lanes, without the lock */
    _Atomic uint32_t bell;         /* counts reasons to wake up */
    _Atomic uint32_t helper_count; /* release after the helpers were started */
    fl_thread helpers[HELPERS_MOST];
    fl_cuda_known known;
};

/* --- Choice of copies --- */

static const void *host_side(const fl_copy *copy)
{
    return copy->from_device == NULL ? copy->from : copy->to;
}

static bool is_ready(fl_cuda_stage *stage, fl_device *device, fl_cuda_ring *ring);

static fl_cuda_ring *ring_of(fl_cuda_stage *stage, const fl_copy *copy)
{
    return copy->from_device == NULL ? &stage->in : &stage->out;
}

bool fl_cuda_stage_takes(const fl_device *device, const fl_copy *copy)
{
    fl_cuda_stage *stage = fl_cuda_of(device)->gpu->stage;
    size_t least = copy->from_device == NULL ? LEAST_BYTES_IN : 1;
    return (copy->from_device == NULL || copy->to_device == NULL) &&
           copy->width * copy->height >= least &&
           fl_cuda_is_pageable(stage->gpu->api, &stage->known, host_side(copy)) &&
           is_ready(stage, (fl_device *)(uintptr_t)device, ring_of(stage, copy));
}

/* --- Waking and waiting; the lock is held --- */

static void lock_stage(fl_cuda_stage *stage)
{
    fl_mutex_lock_soon(&stage->lock);
}

/* Announces more units, or something to watch. Returns the number of helpers the caller must wake
 * by wake_up. */
static uint32_t ring_bell(fl_cuda_stage *stage, size_t units)
{
    /* Relaxed: a spinning thread takes the lock before trusting the bell. */
    fl_add_relaxed(&stage->bell, 1);
    size_t wanted = units > stage->dozing ? units - stage->dozing : 0;
    return wanted < stage->sleeping ? (uint32_t)wanted : stage->sleeping;
}

/* Wakes helpers. Called without the lock, as a woken helper needs the lock. */
static void wake_up(fl_cuda_stage *stage, uint32_t wakes)
{
    if (wakes > WAKES_EACH) {
        fl_cond_broadcast(&stage->work);
        return;
    }
    for (uint32_t i = 0; i < wakes; ++i) {
        fl_cond_signal(&stage->work);
    }
}

static void tell_done(fl_cuda_stage *stage)
{
    if (stage->waiting != 0) {
        fl_cond_broadcast(&stage->done);
    }
}

static void sleep_until_done(fl_cuda_stage *stage)
{
    ++stage->waiting;
    fl_cond_wait(&stage->done, &stage->lock);
    --stage->waiting;
}

static uint64_t nap_after(uint64_t waited)
{
    uint64_t nap = waited / NAPS_OF_WAIT;
    return nap < LEAST_NAP_NS ? LEAST_NAP_NS : nap > MOST_NAP_NS ? MOST_NAP_NS : nap;
}

/* Pauses for some microseconds, and lets another thread have the processor. */
static void pause_briefly(void)
{
    for (uint32_t i = 0; i < RELAXES; ++i) {
        fl_relax();
    }
    fl_thread_yield();
}

/* Waits for the device: awake at first, then by naps on a condition. *count counts the napping
 * threads. *since is 0 at the first call. */
static void rest(fl_cuda_stage *stage, uint64_t *since, fl_cond *on, uint32_t *count)
{
    uint64_t now = fl_time_now();
    *since = *since != 0 ? *since : now;
    if (now - *since < SPIN_NS) {
        fl_mutex_unlock(&stage->lock);
        pause_briefly();
        lock_stage(stage);
        return;
    }
    ++*count;
    fl_cond_wait_for(on, &stage->lock, nap_after(now - *since));
    --*count;
}

static bool is_lost(const fl_cuda_stage *stage)
{
    return fl_cuda_lost(stage->gpu, NULL, NULL);
}

/* --- Landing --- */

static bool leads_to(const fl_cuda_slot *slot, const char *to, size_t pitch, size_t width,
                     size_t height)
{
    return fl_columns_overlap(slot->host, slot->pitch, slot->width, slot->height, to, pitch, width,
                              height);
}

/* Returns whether an earlier piece aboard, of another copy, leads to the same bytes. Pieces of one
 * copy never share bytes. Under the lock. */
static bool has_before(const fl_cuda_stage *stage, const fl_cuda_slot *slot)
{
    for (const fl_cuda_slot *other = stage->first; other != NULL && other != slot;
         other = other->next) {
        if (other->copy != slot->copy &&
            leads_to(other, slot->host, slot->pitch, slot->width, slot->height)) {
            return true;
        }
    }
    return false;
}

/* Returns a piece with units left, past on the device and allowed to land. Earlier pieces leading
 * to the same bytes land first. Under the lock. */
static fl_cuda_slot *find_landable(fl_cuda_stage *stage)
{
    if (stage->first == NULL || is_lost(stage)) {
        return NULL;
    }
    for (fl_cuda_slot *slot = stage->first; slot != NULL; slot = slot->next) {
        if (slot->state == SLOT_LANDING && slot->begun != slot->units) {
            return slot;
        }
        /* Acquire: the bytes written by the device. */
        if (slot->state == SLOT_ABOARD && fl_load_acquire(&slot->lane->passed) >= slot->sequence) {
            slot->is_behind = slot->is_behind && has_before(stage, slot);
            if (!slot->is_behind) {
                return slot;
            }
        }
    }
    return NULL;
}

static void take_out(fl_cuda_stage *stage, fl_cuda_slot *slot)
{
    fl_cuda_slot *before = NULL;
    for (fl_cuda_slot *at = stage->first; at != slot; at = at->next) {
        before = at;
    }
    *(before != NULL ? &before->next : &stage->first) = slot->next;
    stage->last = stage->last == slot ? before : stage->last;
    slot->state = SLOT_FREE;
    slot->lane = NULL; /* a landed slot is free at once */
}

/* Lands a unit, releasing the lock meanwhile. False: no unit may land. */
static bool land_one(fl_cuda_stage *stage)
{
    fl_cuda_slot *slot = find_landable(stage);
    uint32_t wakes = 0;
    if (slot == NULL) {
        return false;
    }
    if (slot->state == SLOT_ABOARD) {
        slot->state = SLOT_LANDING;
        wakes = ring_bell(stage, slot->units - 1);
    }
    uint32_t unit = slot->begun++;
    ++stage->landing;
    fl_mutex_unlock(&stage->lock);
    wake_up(stage, wakes);
    fl_slot_land(slot->bytes, slot->host, slot->pitch, slot->width, fl_cuda_slot_begin(slot, unit),
                 fl_cuda_slot_begin(slot, unit + 1));
    lock_stage(stage);
    --stage->landing;
    if (++slot->ended == slot->units) {
        /* The lane outlives its pieces. Release: the bytes are visible before the piece leaves
         * aboard; bytes of other threads precede by the lock. */
        fl_sub_acq_rel(&slot->lane->aboard, 1);
        take_out(stage, slot);
    }
    tell_done(stage);
    return true;
}

/* --- Looking at lanes --- */

static bool fill_any(fl_cuda_stage *stage);

static bool can_open(const fl_load *load)
{
    return load->status == FILCH_OK && load->next < load->cut.pieces;
}

/* Returns the oldest slot in, if the slot waits for the device and a load waits for the slot. Under
 * the lock. */
static fl_cuda_slot *find_awaited(fl_cuda_stage *stage)
{
    fl_cuda_ring *ring = &stage->in;
    fl_cuda_slot *oldest = &ring->slots[ring->oldest];
    if (ring->used == 0 || oldest->state != SLOT_FREE || oldest->lane == NULL) {
        return NULL;
    }
    for (const fl_load *load = stage->loads; load != NULL; load = load->later) {
        if (can_open(load)) {
            return oldest;
        }
    }
    return NULL;
}

/* Returns whether progress of the device may bring work. Under the lock. */
static bool is_pending(fl_cuda_stage *stage)
{
    return (stage->first != NULL || find_awaited(stage) != NULL) && !is_lost(stage);
}

/* Looks at the progress of all lanes awaited by pieces aboard and by loads, releasing the lock
 * meanwhile. */
static void look_around(fl_cuda_stage *stage)
{
    fl_device *devices[FL_RING_SLOTS];
    uint32_t count = 0;
    for (const fl_cuda_slot *slot = stage->first; slot != NULL; slot = slot->next) {
        /* otherwise ready to land */
        bool is_new = fl_load_relaxed(&slot->lane->passed) < slot->sequence;
        for (uint32_t i = 0; i < count && is_new; ++i) {
            is_new = devices[i] != slot->device;
        }
        if (is_new) {
            devices[count++] = slot->device;
        }
    }
    const fl_cuda_slot *awaited = find_awaited(stage);
    fl_device *other = awaited != NULL ? awaited->device : NULL;
    ++stage->lookers; /* a lane being looked at is not closed */
    fl_mutex_unlock(&stage->lock);
    for (uint32_t i = 0; i < count; ++i) {
        (void)fl_cuda_lane_look(devices[i], FL_LANE_OUT, NULL);
    }
    if (other != NULL) {
        (void)fl_cuda_lane_look(other, FL_LANE_IN, NULL);
    }
    lock_stage(stage);
    if (--stage->lookers == 0) {
        tell_done(stage);
    }
}

/* Returns whether work exists, or room for work. Under the lock. */
static bool has_work(fl_cuda_stage *stage)
{
    const fl_cuda_slot *awaited = find_awaited(stage);
    return find_landable(stage) != NULL || (awaited != NULL && fl_cuda_slot_is_free(awaited));
}

/* Step of a waiting caller without anything to land or fill. A watching helper looks at the lanes
 * in the caller's place. */
static void linger(fl_cuda_stage *stage, uint64_t *since)
{
    if (!stage->is_watched) {
        look_around(stage);
    }
    if (!has_work(stage)) {
        rest(stage, since, &stage->done, &stage->waiting);
    }
}

/* Step of a caller waiting for landings. */
static void press(fl_cuda_stage *stage, uint64_t *since)
{
    if (land_one(stage) || fill_any(stage)) {
        *since = 0;
    } else {
        linger(stage, since);
    }
}

/* --- Calls of lanes --- */

void fl_cuda_stage_board(fl_cuda_stage *stage, fl_cuda_slot *slot, fl_cuda_lane *lane,
                         uint64_t sequence)
{
    uint32_t wakes = 0;
    lock_stage(stage);
    slot->lane = lane;
    slot->sequence = sequence;
    slot->state = SLOT_ABOARD;
    slot->next = NULL;
    slot->is_behind = has_before(stage, slot);
    *(stage->last != NULL ? &stage->last->next : &stage->first) = slot;
    stage->last = slot;
    fl_add_relaxed(&lane->aboard, 1); /* read under the lane's lock */
    if (!stage->is_watched) {
        wakes = ring_bell(stage, 1);
    }
    fl_mutex_unlock(&stage->lock);
    wake_up(stage, wakes);
}

uint64_t fl_cuda_stage_bound(fl_cuda_stage *stage, const fl_cuda_lane *lane, uint64_t passed)
{
    lock_stage(stage);
    for (const fl_cuda_slot *slot = stage->first; slot != NULL; slot = slot->next) {
        if (slot->lane == lane) { /* the lane's first piece: pieces are put under the lane's lock */
            passed = slot->sequence <= passed ? slot->sequence - 1 : passed;
            break;
        }
    }
    fl_mutex_unlock(&stage->lock);
    return passed;
}

bool fl_cuda_stage_help(fl_cuda_stage *stage)
{
    bool has_landed = false;
    /* Acquire: the helpers were started before. */
    if (fl_load_acquire(&stage->helper_count) != 0) {
        return false;
    }
    lock_stage(stage);
    for (uint32_t i = 0; i < UNITS_OF_CALL && land_one(stage); ++i) {
        has_landed = true;
    }
    fl_mutex_unlock(&stage->lock);
    return has_landed;
}

void fl_cuda_stage_quiet(fl_cuda_stage *stage)
{
    lock_stage(stage);
    while (stage->landing != 0) {
        sleep_until_done(stage);
    }
    fl_mutex_unlock(&stage->lock);
}

filch_status fl_cuda_stage_await(fl_device *device, fl_marker marker, filch_error *error)
{
    fl_cuda_stage *stage = fl_cuda_of(device)->gpu->stage;
    filch_status status;
    uint64_t since = 0;
    while ((status = fl_cuda_reached(device, marker, error)) == FILCH_NOT_READY) {
        lock_stage(stage);
        if (land_one(stage)) {
            since = 0;
        } else {
            rest(stage, &since, &stage->done, &stage->waiting);
        }
        fl_mutex_unlock(&stage->lock);
    }
    return status;
}

void fl_cuda_stage_make_way(const fl_device *device, const fl_copy *copy)
{
    fl_cuda_stage *stage = fl_cuda_of(device)->gpu->stage;
    uint64_t since = 0;
    /* Acquire: without a ring there are no pieces. */
    if (copy->to_device != NULL || fl_load_acquire(&stage->out.state) != RING_THERE) {
        return;
    }
    lock_stage(stage);
    for (const fl_cuda_slot *slot = stage->first; slot != NULL && !is_lost(stage);) {
        if (leads_to(slot, copy->to, copy->to_pitch, copy->width, copy->height)) {
            press(stage, &since);
            slot = stage->first;
        } else {
            slot = slot->next;
        }
    }
    fl_mutex_unlock(&stage->lock);
}

/* --- Filling --- */

/* Takes a slot for the load's next piece; null: no piece left, or no room. Under the lock. */
static fl_cuda_slot *open_slot(fl_cuda_stage *stage, fl_load *load)
{
    char *from;
    if (!can_open(load)) {
        return NULL;
    }
    fl_copy piece = fl_cut_piece(load->copy, &load->cut, load->next, &from);
    fl_cuda_slot *slot = fl_ring_take(&stage->in, &piece, from, load->copy->from_pitch);
    if (slot != NULL) {
        slot->piece.from = slot->bytes;
        load->open = slot;
        load->left -= piece.width * piece.height;
        ++load->next;
        fl_add_relaxed(&load->filling, 1); /* changed and checked for the end under the lock */
    }
    return slot;
}

/* Puts the piece of a full slot on the lane, releasing the lock meanwhile. */
static void put_slot(fl_cuda_stage *stage, fl_load *load, fl_cuda_slot *slot)
{
    fl_cuda_scope scope;
    filch_error error = FILCH_ERROR_INIT;
    fl_mutex_unlock(&stage->lock);
    filch_status status = fl_cuda_enter(fl_cuda_of(load->device)->gpu, &scope, &error);
    if (status == FILCH_OK) {
        status = fl_cuda_lane_put(load->device, FL_LANE_IN, &slot->piece, NULL, &error);
        fl_cuda_leave(&scope);
    }
    lock_stage(stage);
    if (status == FILCH_OK) {
        slot->device = load->device;
        slot->lane = &fl_cuda_of(load->device)->lanes->lane[FL_LANE_IN];
        slot->sequence = fl_marker_sequence(slot->piece.marker);
        load->last = load->last > slot->sequence ? load->last : slot->sequence;
    } else if (load->status == FILCH_OK) {
        load->status = status;
        load->error = error;
    }
    slot->state = SLOT_FREE;
    /* Release: the caller's buffer was read. The load exists until the lock is released. */
    if (fl_sub_acq_rel(&load->filling, 1) == 1 && !can_open(load)) {
        tell_done(stage);
    }
}

/* Fills a unit of the load, releasing the lock meanwhile. False: no unit left, or no room. */
static bool fill_one(fl_cuda_stage *stage, fl_load *load)
{
    fl_cuda_slot *slot = load->open;
    uint32_t wakes = 0;
    if (slot == NULL) {
        slot = open_slot(stage, load);
        if (slot == NULL) {
            return false;
        }
        wakes = ring_bell(stage, slot->units - 1 + load->left / FL_UNIT_BYTES);
    }
    uint32_t unit = slot->begun++;
    bool is_past = load->copy->width * load->copy->height <= PAST_MOST;
    load->open = slot->begun != slot->units ? slot : NULL;
    fl_mutex_unlock(&stage->lock);
    wake_up(stage, wakes);
    fl_slot_fill(slot->bytes, slot->host, slot->pitch, slot->width, fl_cuda_slot_begin(slot, unit),
                 fl_cuda_slot_begin(slot, unit + 1), is_past);
    lock_stage(stage);
    if (++slot->ended == slot->units) {
        put_slot(stage, load, slot);
    }
    return true;
}

static bool fill_any(fl_cuda_stage *stage)
{
    for (fl_load *load = stage->loads; load != NULL; load = load->later) {
        if (fill_one(stage, load)) {
            return true;
        }
    }
    return false;
}

/* --- Helpers --- */

/* Waits for work: awake for a moment, then asleep. */
static void doze(fl_cuda_stage *stage, uint32_t bell)
{
    uint64_t begun = fl_time_now();
    ++stage->dozing;
    fl_mutex_unlock(&stage->lock);
    while (fl_load_relaxed(&stage->bell) == bell && fl_time_now() - begun < SPIN_NS) {
        pause_briefly();
    }
    lock_stage(stage);
    --stage->dozing;
    if (fl_load_relaxed(&stage->bell) == bell && !stage->is_ending) {
        ++stage->sleeping;
        fl_cond_wait(&stage->work, &stage->lock);
        --stage->sleeping;
    }
}

/* Step of an idle helper: one helper looks at the lanes, the others wait for the bell. */
static void stand_by(fl_cuda_stage *stage, uint64_t *since, uint32_t bell)
{
    if (stage->is_watched || !is_pending(stage)) {
        *since = 0;
        doze(stage, bell);
        return;
    }
    stage->is_watched = true;
    look_around(stage);
    if (!has_work(stage) && !stage->is_ending) {
        rest(stage, since, &stage->work, &stage->sleeping);
    }
    stage->is_watched = false;
}

static int help(void *argument)
{
    fl_cuda_stage *stage = argument;
    uint64_t since = 0;
    fl_thread_name("filch-stage");
    fl_thread_slack(1000);
    for (size_t i = 0; i < sizeof stage->affinity / sizeof stage->affinity[0]; ++i) {
        if (stage->affinity[i] != 0) { /* if refused, the helper is merely not near */
            (void)sched_setaffinity(0, sizeof stage->affinity,
                                    (const cpu_set_t *)(const void *)stage->affinity);
            break;
        }
    }
    lock_stage(stage);
    while (!stage->is_ending) {
        uint32_t bell = fl_load_relaxed(&stage->bell); /* changed under the lock only */
        if (land_one(stage) || fill_any(stage)) {
            since = 0;
        } else {
            stand_by(stage, &since, bell);
        }
    }
    fl_mutex_unlock(&stage->lock);
    return 0;
}

/* --- Copies --- */

/* Waits for the pieces of a failed copy already under way: their memory may be freed afterwards. */
static void abandon(fl_device *device, uint32_t lane, uint64_t last)
{
    if (last != 0) {
        (void)fl_cuda_stage_await(device, fl_marker_make(device->info.index, lane, last), NULL);
    }
}

/* Fills all slots of the load, and does other work while no slot is free. Under the lock. */
static void fill_all(fl_cuda_stage *stage, fl_load *load)
{
    uint64_t since = 0;
    while (load->open != NULL || can_open(load)) {
        if (fill_one(stage, load) || land_one(stage) || fill_any(stage)) {
            since = 0;
        } else if (fl_cuda_lost(stage->gpu, load->device->info.name, &load->error)) {
            load->status = FILCH_DEVICE_LOST;
        } else {
            linger(stage, &since);
        }
    }
}

/* Waits for the helpers' pieces, first awake, as the pieces are almost done. Under the lock. */
static void wait_for_helpers(fl_cuda_stage *stage, fl_load *load)
{
    uint64_t begun = fl_time_now();
    fl_mutex_unlock(&stage->lock);
    /* Relaxed: the lock orders the data. */
    while (fl_load_relaxed(&load->filling) != 0 && fl_time_now() - begun < SPIN_NS) {
        fl_thread_yield();
    }
    lock_stage(stage);
    while (fl_load_relaxed(&load->filling) != 0) {
        sleep_until_done(stage);
    }
}

static filch_status copy_in(fl_cuda_stage *stage, fl_device *device, const fl_copy *copy,
                            fl_marker *marker, filch_error *error)
{
    fl_load load = {.device = device,
                    .copy = copy,
                    .left = copy->width * copy->height,
                    .error = FILCH_ERROR_INIT};
    fl_load **at = &stage->loads;
    (void)fl_cuda_lane_look(device, FL_LANE_IN, NULL); /* a later wait reports a loss */
    lock_stage(stage);
    load.cut = fl_cut_copy(copy, FL_SLOT_MOST, fl_ring_is_idle(&stage->in));
    while (*at != NULL) {
        at = &(*at)->later;
    }
    *at = &load;
    fill_all(stage, &load);
    for (at = &stage->loads; *at != &load;) {
        at = &(*at)->later;
    }
    *at = load.later;
    wait_for_helpers(stage, &load);
    fl_mutex_unlock(&stage->lock);
    *marker = fl_marker_make(device->info.index, FL_LANE_IN, load.last);
    if (load.status != FILCH_OK) {
        abandon(device, FL_LANE_IN, load.last);
        if (error != NULL) {
            fl_error_copy(error, &load.error);
        }
    }
    return load.status;
}

/* Returns whether room is missing because of another device's kernels, which may take any time: the
 * ring is in order, and slices share the ring. begun: start of the wait. Under the lock. */
static bool is_held_up(fl_cuda_stage *stage, const fl_device *device, uint64_t begun)
{
    fl_cuda_slot *oldest = &stage->out.slots[stage->out.oldest];
    if (oldest->state != SLOT_ABOARD || oldest->device == device ||
        fl_load_acquire(&oldest->lane->passed) >= oldest->sequence) {
        return false;
    }
    oldest->is_late = oldest->is_late || fl_time_now() - begun >= SPIN_NS;
    return oldest->is_late;
}

/* Returns a slot for a piece out; null: the GPU is lost, or other devices hold all slots. */
static fl_cuda_slot *await_slot(fl_cuda_stage *stage, const fl_device *device, const fl_copy *piece,
                                char *to, size_t pitch)
{
    fl_cuda_slot *slot = NULL;
    uint64_t since = 0, begun = 0;
    lock_stage(stage);
    while (!is_lost(stage) && (slot = fl_ring_take(&stage->out, piece, to, pitch)) == NULL) {
        begun = begun != 0 ? begun : fl_time_now();
        if (is_held_up(stage, device, begun)) {
            break;
        }
        press(stage, &since);
    }
    fl_mutex_unlock(&stage->lock);
    return slot;
}

/* Lets the driver copy a piece without a slot: the copy takes no longer than the device's own
 * kernels. */
static filch_status put_by_itself(fl_device *device, fl_copy *piece, char *to, size_t pitch,
                                  filch_error *error)
{
    piece->to = to;
    piece->to_pitch = pitch;
    fl_cuda_stage_make_way(device, piece);
    return fl_cuda_lane_put(device, FL_LANE_OUT, piece, NULL, error);
}

/* Puts a piece on the lane through the slot. */
static filch_status put_by_slot(fl_cuda_stage *stage, fl_device *device, fl_copy *piece,
                                fl_cuda_slot *slot, uint64_t number, filch_error *error)
{
    piece->to = slot->bytes;
    slot->device = device;
    slot->copy = number;
    filch_status status = fl_cuda_lane_put(device, FL_LANE_OUT, piece, slot, error);
    if (status != FILCH_OK) {
        lock_stage(stage);
        if (slot->state == SLOT_TAKEN) { /* the piece is not on the lane */
            slot->state = SLOT_FREE;
        }
        fl_mutex_unlock(&stage->lock);
    }
    return status;
}

static filch_status copy_out(fl_cuda_stage *stage, fl_device *device, const fl_copy *copy,
                             fl_marker *marker, filch_error *error)
{
    fl_cut cut = fl_cut_copy(copy, FL_SLOT_MOST, false);
    filch_status status = FILCH_OK;
    uint64_t last = 0;
    lock_stage(stage);
    uint64_t number = ++stage->copies;
    fl_mutex_unlock(&stage->lock);
    for (size_t k = 0; k < cut.pieces && status == FILCH_OK; ++k) {
        char *to;
        fl_copy piece = fl_cut_piece(copy, &cut, k, &to);
        fl_cuda_slot *slot = await_slot(stage, device, &piece, to, copy->to_pitch);
        if (slot != NULL) {
            status = put_by_slot(stage, device, &piece, slot, number, error);
        } else if (fl_cuda_lost(stage->gpu, device->info.name, error)) {
            status = FILCH_DEVICE_LOST;
        } else {
            status = put_by_itself(device, &piece, to, copy->to_pitch, error);
        }
        if (status == FILCH_OK) {
            *marker = piece.marker;
            last = fl_marker_sequence(piece.marker);
        }
    }
    if (status != FILCH_OK) {
        abandon(device, FL_LANE_OUT, last);
    }
    return status;
}

filch_status fl_cuda_stage_copy(fl_device *device, fl_copy *copy, filch_error *error)
{
    fl_cuda_stage *stage = fl_cuda_of(device)->gpu->stage;
    fl_copy whole = *copy;
    if (whole.height == 1 || (whole.to_pitch == whole.width && whole.from_pitch == whole.width)) {
        whole.width *= whole.height;
        whole.to_pitch = whole.from_pitch = whole.width;
        whole.height = 1;
    }
    return copy->from_device == NULL ? copy_in(stage, device, &whole, &copy->marker, error)
                                     : copy_out(stage, device, &whole, &copy->marker, error);
}

/* --- Beginning and end --- */

static uint32_t count_helpers(const fl_settings *settings)
{
    cpu_set_t cores;
    if (settings->drive == FILCH_DRIVE_POLL) {
        return 0;
    }
    if (settings->stage_threads >= 0) {
        return (uint32_t)settings->stage_threads;
    }
    int count = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
    uint32_t share = (uint32_t)count / CORES_OF_HELPER;
    return share < 1 ? 1 : share > HELPERS_USUAL ? HELPERS_USUAL : share;
}

filch_status fl_cuda_stage_open(fl_device *device, const fl_discovery *how)
{
    fl_cuda_gpu *gpu = fl_cuda_of(device)->gpu;
    fl_cuda_stage *stage = fl_alloc_zeroed(how->memory, sizeof *stage);
    if (stage == NULL) {
        goto failed;
    }
    if (fl_mutex_init(&stage->making) != FILCH_OK) {
        goto memory;
    }
    if (fl_mutex_init(&stage->lock) != FILCH_OK) {
        goto making;
    }
    if (fl_cond_init(&stage->work) != FILCH_OK) {
        goto lock;
    }
    if (fl_cond_init(&stage->done) != FILCH_OK) {
        goto work;
    }
    stage->gpu = gpu;
    stage->log = how->log != NULL ? *how->log : (fl_log){.fn = NULL};
    stage->wanted = count_helpers(how->settings);
    memcpy(stage->affinity, device->info.affinity, sizeof stage->affinity);
    gpu->stage = stage;
    return FILCH_OK;
work:
    fl_cond_fini(&stage->work);
lock:
    fl_mutex_fini(&stage->lock);
making:
    fl_mutex_fini(&stage->making);
memory:
    fl_free(how->memory, stage, sizeof *stage);
failed:
    return fl_error_fill(how->error,
                         (fl_fault){.status = FILCH_OUT_OF_MEMORY, .device = device->info.name},
                         "no memory for copies of pageable memory");
}

/* Starts the helpers. Under stage->making. Where the system refuses threads, fewer helpers or the
 * callers do the work. */
static void start_helpers(fl_cuda_stage *stage)
{
    uint32_t count = 0;
    while (!stage->has_started && count < stage->wanted &&
           fl_thread_start(&stage->helpers[count], help, stage) == FILCH_OK) {
        ++count;
    }
    if (!stage->has_started) {
        fl_store_release(&stage->helper_count, count); /* pairs with fl_cuda_stage_help */
    }
    stage->has_started = true;
}

static uint32_t make_ring(fl_cuda_stage *stage, const fl_device *device, fl_cuda_ring *ring)
{
    void *memory = NULL;
    size_t bytes = (stage->wanted + 1) * FL_RING_OF_THREAD; /* one more for the caller */
    bytes = bytes > FL_RING_MOST ? FL_RING_MOST : bytes < FL_RING_LEAST ? FL_RING_LEAST : bytes;
    CUresult result = stage->gpu->api->cuMemHostAlloc(&memory, bytes, FL_CU_MEMHOSTALLOC_PORTABLE);
    if (result == FL_CUDA_ERROR_OUT_OF_MEMORY && bytes > FL_RING_LEAST) {
        bytes = FL_RING_LEAST; /* slower, but still faster than the driver's own copies */
        result = stage->gpu->api->cuMemHostAlloc(&memory, bytes, FL_CU_MEMHOSTALLOC_PORTABLE);
    }
    if (result != FL_CUDA_SUCCESS) {
        filch_error error = FILCH_ERROR_INIT;
        (void)fl_cuda_call_fail(device, result, "cuMemHostAlloc", &error);
        fl_log_write(&stage->log, FILCH_LOG_WARNING,
                     "copies of pageable memory are the driver's, as there are no page-locked "
                     "buffers: %s",
                     error.text);
        return RING_REFUSED;
    }
    ring->memory = memory;
    ring->bytes = bytes;
    start_helpers(stage);
    return RING_THERE;
}

static bool is_ready(fl_cuda_stage *stage, fl_device *device, fl_cuda_ring *ring)
{
    /* Acquire: the slots. */
    uint32_t state = fl_load_acquire(&ring->state);
    if (state == RING_NONE) {
        fl_mutex_lock(&stage->making);
        state = fl_load_relaxed(&ring->state);
        if (state == RING_NONE) {
            state = make_ring(stage, device, ring);
            fl_store_release(&ring->state, state);
        }
        fl_mutex_unlock(&stage->making);
    }
    return state == RING_THERE;
}

void fl_cuda_stage_forget(fl_cuda_stage *stage, const fl_cuda_lane *lane)
{
    lock_stage(stage);
    for (fl_cuda_slot *slot = stage->first, *next; slot != NULL; slot = next) {
        next = slot->next;
        if (slot->lane == lane) {
            take_out(stage, slot);
        }
    }
    for (uint32_t i = 0; i < FL_RING_SLOTS; ++i) {
        fl_cuda_slot *slots[] = {&stage->in.slots[i], &stage->out.slots[i]};
        for (uint32_t k = 0; k < 2; ++k) {
            if (slots[k]->lane == lane) {
                slots[k]->lane = NULL;
                slots[k]->device = NULL;
            }
        }
    }
    /* Wait for threads that began to look at the lane before the removal. */
    while (stage->lookers != 0) {
        sleep_until_done(stage);
    }
    fl_mutex_unlock(&stage->lock);
}

void fl_cuda_stage_close(fl_cuda_gpu *gpu, const fl_memory *memory)
{
    fl_cuda_stage *stage = gpu->stage;
    fl_cuda_scope scope;
    if (stage == NULL) {
        return;
    }
    fl_mutex_lock(&stage->lock);
    stage->is_ending = true;
    fl_add_relaxed(&stage->bell, 1); /* a spinning helper takes the lock first */
    fl_cond_broadcast(&stage->work);
    fl_mutex_unlock(&stage->lock);
    for (uint32_t i = 0; i < fl_load_relaxed(&stage->helper_count); ++i) {
        fl_thread_join(stage->helpers[i]);
    }
    if ((stage->in.memory != NULL || stage->out.memory != NULL) &&
        fl_cuda_enter(gpu, &scope, NULL) == FILCH_OK) {
        if (stage->in.memory != NULL) {
            (void)gpu->api->cuMemFreeHost(stage->in.memory);
        }
        if (stage->out.memory != NULL) {
            (void)gpu->api->cuMemFreeHost(stage->out.memory);
        }
        (void)fl_cuda_leave(&scope);
    }
    fl_cond_fini(&stage->done);
    fl_cond_fini(&stage->work);
    fl_mutex_fini(&stage->lock);
    fl_mutex_fini(&stage->making);
    fl_free(memory, stage, sizeof *stage);
    gpu->stage = NULL;
}
