/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "backend/cuda/stage.h"

#include <sched.h>
#include <string.h>

#include "backend/cuda/device.h"
#include "backend/cuda/lane.h"
#include "backend/cuda/piece.h"
#include "base/clock.h"

/* Smaller copies are the driver's: it keeps such in its command buffer, or is as fast. */
#define LEAST_BYTES ((size_t)64 << 10)
/* Slots of a ring, and bytes of each: a piece takes the link 10 us, putting it there 2 us, and a
 * core 50 us or so to copy. The ring is what five cores have in work, and as much on its way. */
#define SLOTS 32
#define SLOT_BYTES ((size_t)512 << 10)
/* Helpers where the setting leaves it open: a part of the cores, and what fills one link. */
#define HELPERS_MOST 64
#define HELPERS_USUAL 6
#define CORES_OF_HELPER 4
/* A helper that has just worked looks so long for more before it sleeps: tiles follow each other,
 * and waking a thread takes as long as copying a small piece. */
#define SPIN_NS 20000u
/* Naps of who waits for the device, growing by a part of the time waited. */
#define LEAST_NAP_NS 5000u
#define MOST_NAP_NS 500000u
#define NAPS_OF_WAIT 8
/* Pointers that are remembered, by their regions; and copies after which the driver is asked again.
 * What is remembered wrongly costs time and nothing else. */
#define KNOWN 512
#define REGION_BITS 16
#define ASK_AGAIN 63u
#define KNOWN_PINNED 64u

typedef enum fl_slot_state {
    SLOT_FREE, /* in: as soon as its lane is past the sequence */
    SLOT_TAKEN,
    SLOT_ABOARD,
    SLOT_LANDING
} fl_slot_state;

struct fl_cuda_slot {
    char *bytes;
    fl_slot_state state;
    fl_device *device;  /* which used it last; null: none that lives */
    fl_cuda_lane *lane; /* of that */
    uint64_t sequence;  /* of the copy from or to it */
    /* Out: */
    char *to;
    size_t pitch, width, height;
    fl_cuda_slot *next; /* of those aboard, in the order in which they were put */
};

enum { RING_NONE, RING_THERE, RING_REFUSED };

typedef struct fl_ring {
    _Atomic uint32_t state; /* release once it is there or never will be */
    uint32_t next;          /* where to look for a free slot first */
    char *memory;
    fl_cuda_slot slots[SLOTS];
} fl_ring;

/* A copy in while its caller waits. */
typedef struct fl_load {
    fl_device *device;
    const fl_copy *copy;
    fl_cut cut;
    size_t next;              /* piece that nobody has taken yet */
    _Atomic uint32_t filling; /* pieces in work; release after the buffer was read */
    uint64_t last;            /* newest sequence of its pieces; 0: none */
    filch_status status;      /* first failure, and what it was */
    filch_error error;
    struct fl_load *later;
} fl_load;

struct fl_cuda_stage {
    fl_cuda_gpu *gpu;
    fl_log log;
    uint32_t wanted;       /* helpers */
    uint64_t affinity[16]; /* as the device's */
    fl_mutex making;       /* rings and helpers being made */
    bool has_started;
    fl_mutex lock; /* all below but what is atomic */
    fl_cond work;  /* for helpers */
    fl_cond done;  /* for callers */
    fl_ring in, out;
    fl_cuda_slot *first, *last; /* aboard */
    fl_load *loads;             /* with pieces left */
    uint32_t sleeping;          /* helpers that wait for work */
    bool is_watched;            /* one looks after what is aboard */
    bool is_ending;
    uint32_t lookers;              /* at lanes, without the lock */
    _Atomic uint32_t bell;         /* counts what there is to wake up for */
    _Atomic uint32_t helper_count; /* release after they were started */
    fl_thread helpers[HELPERS_MOST];
    _Atomic uint64_t known[KNOWN]; /* region, pinned or not, copies since it was asked for */
};

/* --- Which copies --- */

static const void *host_side(const fl_copy *copy)
{
    return copy->from_device == NULL ? copy->from : copy->to;
}

/* Relaxed throughout: each entry is whole by itself, and may be wrong. */
static bool is_pageable(fl_cuda_stage *stage, const void *pointer)
{
    uint64_t region = (uint64_t)(uintptr_t)pointer >> REGION_BITS;
    _Atomic uint64_t *known = &stage->known[region % KNOWN];
    uint64_t entry = fl_load_relaxed(known);
    if (entry >> 8 == region && (entry & ASK_AGAIN) != 0) {
        fl_store_relaxed(known, entry - 1);
        return (entry & KNOWN_PINNED) == 0;
    }
    unsigned type = 0;
    CUresult result = stage->gpu->api->cuPointerGetAttribute(
        &type, FL_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)pointer);
    /* Another failure is none of ours: the copy will be told of it. */
    bool is_pinned = result != FL_CUDA_ERROR_INVALID_VALUE;
    fl_store_relaxed(known, region << 8 | (is_pinned ? KNOWN_PINNED : 0) | ASK_AGAIN);
    return !is_pinned;
}

static bool is_ready(fl_cuda_stage *stage, fl_device *device, fl_ring *ring);

static fl_ring *ring_of(fl_cuda_stage *stage, const fl_copy *copy)
{
    return copy->from_device == NULL ? &stage->in : &stage->out;
}

bool fl_cuda_stage_takes(const fl_device *device, const fl_copy *copy)
{
    fl_cuda_stage *stage = fl_cuda_of(device)->gpu->stage;
    return (copy->from_device == NULL || copy->to_device == NULL) &&
           copy->width * copy->height >= LEAST_BYTES && is_pageable(stage, host_side(copy)) &&
           is_ready(stage, (fl_device *)(uintptr_t)device, ring_of(stage, copy));
}

/* --- Waking and waiting; the lock is held --- */

static void ring_bell(fl_cuda_stage *stage, bool for_all)
{
    /* Relaxed: who spins takes the lock before it believes it. */
    fl_add_relaxed(&stage->bell, 1);
    if (stage->sleeping != 0) {
        if (for_all) {
            fl_cond_broadcast(&stage->work);
        } else {
            fl_cond_signal(&stage->work);
        }
    }
}

/* Who goes to work leaves nothing aboard without anybody who looks after it. */
static void hand_over(fl_cuda_stage *stage)
{
    const fl_cuda_slot *slot = stage->first;
    while (slot != NULL && slot->state != SLOT_ABOARD) {
        slot = slot->next;
    }
    if (slot != NULL && !stage->is_watched && stage->sleeping != 0) {
        fl_cond_signal(&stage->work);
    }
}

static uint64_t nap_after(uint64_t waited)
{
    uint64_t nap = waited / NAPS_OF_WAIT;
    return nap < LEAST_NAP_NS ? LEAST_NAP_NS : nap > MOST_NAP_NS ? MOST_NAP_NS : nap;
}

/* A caller's nap; *since is 0 at its first. */
static void rest(fl_cuda_stage *stage, uint64_t *since)
{
    uint64_t now = fl_time_now();
    *since = *since != 0 ? *since : now;
    fl_cond_wait_for(&stage->done, &stage->lock, nap_after(now - *since));
}

static bool is_lost(const fl_cuda_stage *stage)
{
    return fl_cuda_lost(stage->gpu, NULL, NULL);
}

/* --- Landing --- */

static bool leads_to(const fl_cuda_slot *slot, const char *to, size_t pitch, size_t width,
                     size_t height)
{
    return fl_columns_overlap(slot->to, slot->pitch, slot->width, slot->height, to, pitch, width,
                              height);
}

/* Under the lock: a piece that the device is past, and that may land: what was put before it and
 * leads to the same bytes lands first. */
static fl_cuda_slot *find_landable(const fl_cuda_stage *stage)
{
    if (stage->first == NULL || is_lost(stage)) {
        return NULL;
    }
    for (fl_cuda_slot *slot = stage->first; slot != NULL; slot = slot->next) {
        /* Acquire: what the device wrote. */
        bool may =
            slot->state == SLOT_ABOARD && fl_load_acquire(&slot->lane->passed) >= slot->sequence;
        for (const fl_cuda_slot *other = stage->first; may && other != slot; other = other->next) {
            may = !leads_to(other, slot->to, slot->pitch, slot->width, slot->height);
        }
        if (may) {
            return slot;
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
}

/* Lands one piece, without the lock meanwhile. False: there is none that may. */
static bool land_one(fl_cuda_stage *stage)
{
    fl_cuda_slot *slot = find_landable(stage);
    if (slot == NULL) {
        return false;
    }
    slot->state = SLOT_LANDING;
    hand_over(stage);
    fl_mutex_unlock(&stage->lock);
    fl_copy_columns(slot->to, slot->pitch, slot->bytes, slot->width, slot->width, slot->height);
    fl_mutex_lock(&stage->lock);
    /* The lane outlives its pieces. Release: the bytes, before it is seen that none is aboard. */
    fl_sub_acq_rel(&slot->lane->aboard, 1);
    take_out(stage, slot);
    fl_cond_broadcast(&stage->done);
    return true;
}

/* Without the lock between these: whose lanes are looked at is not closed meanwhile. */
static void begin_look(fl_cuda_stage *stage)
{
    ++stage->lookers;
    fl_mutex_unlock(&stage->lock);
}

static void end_look(fl_cuda_stage *stage)
{
    fl_mutex_lock(&stage->lock);
    if (--stage->lookers == 0) {
        fl_cond_broadcast(&stage->done);
    }
}

/* Looks how far the lanes are that pieces aboard wait for, without the lock meanwhile. */
static void look_aboard(fl_cuda_stage *stage)
{
    fl_device *devices[SLOTS];
    uint32_t count = 0;
    for (const fl_cuda_slot *slot = stage->first; slot != NULL; slot = slot->next) {
        bool is_new = fl_load_relaxed(&slot->lane->passed) < slot->sequence; /* else landable */
        for (uint32_t i = 0; i < count && is_new; ++i) {
            is_new = devices[i] != slot->device;
        }
        if (is_new) {
            devices[count++] = slot->device;
        }
    }
    begin_look(stage);
    for (uint32_t i = 0; i < count; ++i) {
        (void)fl_cuda_lane_look(devices[i], FL_LANE_OUT, NULL);
    }
    end_look(stage);
}

/* What a caller does that waits for landings. */
static void press(fl_cuda_stage *stage, uint64_t *since)
{
    if (land_one(stage)) {
        *since = 0;
        return;
    }
    look_aboard(stage);
    if (find_landable(stage) == NULL) {
        rest(stage, since);
    }
}

void fl_cuda_stage_board(fl_cuda_stage *stage, fl_cuda_slot *slot, fl_cuda_lane *lane,
                         uint64_t sequence)
{
    fl_mutex_lock(&stage->lock);
    slot->lane = lane;
    slot->sequence = sequence;
    slot->state = SLOT_ABOARD;
    slot->next = NULL;
    *(stage->last != NULL ? &stage->last->next : &stage->first) = slot;
    stage->last = slot;
    fl_add_relaxed(&lane->aboard, 1); /* it is looked at under the lane's lock */
    if (!stage->is_watched) {
        ring_bell(stage, false);
    }
    fl_mutex_unlock(&stage->lock);
}

uint64_t fl_cuda_stage_bound(fl_cuda_stage *stage, const fl_cuda_lane *lane, uint64_t passed)
{
    fl_mutex_lock(&stage->lock);
    for (const fl_cuda_slot *slot = stage->first; slot != NULL; slot = slot->next) {
        if (slot->lane == lane) { /* its first: it was put under the lane's lock */
            passed = slot->sequence <= passed ? slot->sequence - 1 : passed;
            break;
        }
    }
    fl_mutex_unlock(&stage->lock);
    return passed;
}

bool fl_cuda_stage_help(fl_cuda_stage *stage)
{
    /* Acquire: they were started before. */
    if (fl_load_acquire(&stage->helper_count) != 0) {
        return false;
    }
    fl_mutex_lock(&stage->lock);
    bool has_landed = land_one(stage);
    fl_mutex_unlock(&stage->lock);
    return has_landed;
}

void fl_cuda_stage_quiet(fl_cuda_stage *stage)
{
    fl_mutex_lock(&stage->lock);
    for (const fl_cuda_slot *slot = stage->first; slot != NULL;) {
        if (slot->state == SLOT_LANDING) {
            fl_cond_wait(&stage->done, &stage->lock);
            slot = stage->first;
        } else {
            slot = slot->next;
        }
    }
    fl_mutex_unlock(&stage->lock);
}

filch_status fl_cuda_stage_await(fl_device *device, fl_marker marker, filch_error *error)
{
    fl_cuda_stage *stage = fl_cuda_of(device)->gpu->stage;
    filch_status status;
    uint64_t since = 0;
    while ((status = fl_cuda_reached(device, marker, error)) == FILCH_NOT_READY) {
        fl_mutex_lock(&stage->lock);
        if (!land_one(stage)) {
            rest(stage, &since);
        }
        fl_mutex_unlock(&stage->lock);
    }
    return status;
}

void fl_cuda_stage_make_way(const fl_device *device, const fl_copy *copy)
{
    fl_cuda_stage *stage = fl_cuda_of(device)->gpu->stage;
    uint64_t since = 0;
    /* Acquire: no ring, no pieces. */
    if (copy->to_device != NULL || fl_load_acquire(&stage->out.state) != RING_THERE) {
        return;
    }
    fl_mutex_lock(&stage->lock);
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

/* Under the lock: whether nothing uses the slot. */
static bool is_free(const fl_cuda_slot *slot)
{
    /* Acquire: what the device read of it. */
    return slot->state == SLOT_FREE &&
           (slot->lane == NULL || fl_load_acquire(&slot->lane->passed) >= slot->sequence);
}

/* Under the lock: one of them; null: there is none. */
static fl_cuda_slot *take_slot(fl_ring *ring)
{
    for (uint32_t i = 0; i < SLOTS; ++i) {
        fl_cuda_slot *slot = &ring->slots[(ring->next + i) % SLOTS];
        if (is_free(slot)) {
            slot->state = SLOT_TAKEN;
            ring->next = (ring->next + i + 1) % SLOTS;
            return slot;
        }
    }
    return NULL;
}

static bool has_pieces(const fl_load *load)
{
    return load->status == FILCH_OK && load->next < load->cut.pieces;
}

static filch_status fill(const fl_load *load, size_t k, fl_cuda_slot *slot, fl_marker *marker,
                         filch_error *error)
{
    fl_cuda_scope scope;
    char *from;
    fl_copy piece = fl_cut_piece(load->copy, &load->cut, k, slot->bytes, &from);
    fl_copy_columns(slot->bytes, piece.width, from, load->copy->from_pitch, piece.width,
                    piece.height);
    filch_status status = fl_cuda_enter(fl_cuda_of(load->device)->gpu, &scope, error);
    if (status == FILCH_OK) {
        status = fl_cuda_lane_put(load->device, FL_LANE_IN, &piece, NULL, error);
        *marker = status == FILCH_OK ? piece.marker : 0;
        fl_cuda_leave(&scope);
    }
    return status;
}

/* Fills a slot with the load's next piece, without the lock meanwhile. False: there is none, or no
 * slot. */
static bool fill_one(fl_cuda_stage *stage, fl_load *load)
{
    fl_cuda_slot *slot = has_pieces(load) ? take_slot(&stage->in) : NULL;
    if (slot == NULL) {
        return false;
    }
    filch_error error = FILCH_ERROR_INIT;
    fl_marker marker = 0;
    size_t k = load->next++;
    fl_add_relaxed(&load->filling, 1); /* under the lock, as is the look for the end */
    hand_over(stage);
    fl_mutex_unlock(&stage->lock);
    filch_status status = fill(load, k, slot, &marker, &error);
    fl_mutex_lock(&stage->lock);
    if (status == FILCH_OK) {
        slot->device = load->device;
        slot->lane = &fl_cuda_of(load->device)->lanes->lane[FL_LANE_IN];
        slot->sequence = fl_marker_sequence(marker);
        load->last = load->last > slot->sequence ? load->last : slot->sequence;
    } else if (load->status == FILCH_OK) {
        load->status = status;
        load->error = error;
    }
    slot->state = SLOT_FREE;
    /* Release: the caller's buffer was read. The load is there until we let go of the lock. */
    if (fl_sub_acq_rel(&load->filling, 1) == 1 && !has_pieces(load)) {
        fl_cond_broadcast(&stage->done);
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

/* Looks after what is aboard and not past, or naps; false: there is none, or another does. */
static bool watch(fl_cuda_stage *stage, uint64_t *since)
{
    if (stage->first == NULL || stage->is_watched || is_lost(stage)) {
        return false;
    }
    stage->is_watched = true;
    look_aboard(stage);
    uint64_t now = fl_time_now();
    if (find_landable(stage) != NULL) {
        *since = 0;
        ring_bell(stage, true);
    } else if (stage->first != NULL && !stage->is_ending) {
        *since = *since != 0 ? *since : now;
        ++stage->sleeping;
        fl_cond_wait_for(&stage->work, &stage->lock, nap_after(now - *since));
        --stage->sleeping;
    }
    stage->is_watched = false;
    return true;
}

/* Waits for more to do: for a moment awake. */
static void doze(fl_cuda_stage *stage, uint32_t bell)
{
    uint64_t begun = fl_time_now();
    fl_mutex_unlock(&stage->lock);
    while (fl_load_relaxed(&stage->bell) == bell && fl_time_now() - begun < SPIN_NS) {
        fl_relax();
    }
    fl_mutex_lock(&stage->lock);
    if (fl_load_relaxed(&stage->bell) == bell && !stage->is_ending) {
        ++stage->sleeping;
        fl_cond_wait(&stage->work, &stage->lock);
        --stage->sleeping;
    }
}

static int help(void *argument)
{
    fl_cuda_stage *stage = argument;
    uint64_t since = 0;
    fl_thread_name("filch-stage");
    fl_thread_slack(1000);
    for (size_t i = 0; i < sizeof stage->affinity / sizeof stage->affinity[0]; ++i) {
        if (stage->affinity[i] != 0) { /* refused: merely not near */
            (void)sched_setaffinity(0, sizeof stage->affinity,
                                    (const cpu_set_t *)(const void *)stage->affinity);
            break;
        }
    }
    fl_mutex_lock(&stage->lock);
    while (!stage->is_ending) {
        uint32_t bell = fl_load_relaxed(&stage->bell); /* changed under the lock only */
        if (land_one(stage) || fill_any(stage)) {
            since = 0;
        } else if (!watch(stage, &since)) {
            doze(stage, bell);
        }
    }
    fl_mutex_unlock(&stage->lock);
    return 0;
}

/* --- Copies --- */

static uint32_t threads_of(const fl_cuda_stage *stage)
{
    return fl_load_acquire(&stage->helper_count) + 1; /* as in help */
}

/* Nothing of a copy that failed is left under way: what it used may be gone. */
static void abandon(fl_device *device, uint32_t lane, uint64_t last)
{
    if (last != 0) {
        (void)fl_cuda_stage_await(device, fl_marker_make(device->info.index, lane, last), NULL);
    }
}

/* Under the lock, where no slot is free. */
static void wait_for_slot(fl_cuda_stage *stage, fl_load *load, uint64_t *since)
{
    const fl_cuda_slot *slot = &stage->in.slots[stage->in.next];
    fl_device *device = slot->state == SLOT_FREE ? slot->device : NULL;
    filch_error error = FILCH_ERROR_INIT;
    filch_status status = FILCH_OK;
    begin_look(stage);
    if (device != NULL) {
        status = fl_cuda_lane_look(device, FL_LANE_IN, &error);
    }
    end_look(stage);
    if (status != FILCH_OK && load->status == FILCH_OK) {
        load->status = status;
        load->error = error;
    }
    if (is_free(slot)) {
        *since = 0;
        ring_bell(stage, true);
    } else {
        rest(stage, since);
    }
}

/* Under the lock: waits for the helpers' pieces, first awake, as they are about to be done. */
static void wait_for_helpers(fl_cuda_stage *stage, fl_load *load)
{
    uint64_t begun = fl_time_now();
    fl_mutex_unlock(&stage->lock);
    /* Relaxed: the lock orders it. */
    while (fl_load_relaxed(&load->filling) != 0 && fl_time_now() - begun < SPIN_NS) {
        fl_relax();
    }
    fl_mutex_lock(&stage->lock);
    while (fl_load_relaxed(&load->filling) != 0) {
        fl_cond_wait(&stage->done, &stage->lock);
    }
}

static filch_status copy_in(fl_cuda_stage *stage, fl_device *device, const fl_copy *copy,
                            fl_marker *marker, filch_error *error)
{
    fl_load load = {.device = device,
                    .copy = copy,
                    .cut = fl_cut_copy(copy, threads_of(stage), SLOT_BYTES),
                    .error = FILCH_ERROR_INIT};
    fl_load **at = &stage->loads;
    uint64_t since = 0;
    fl_mutex_lock(&stage->lock);
    while (*at != NULL) {
        at = &(*at)->later;
    }
    *at = &load;
    if (load.cut.pieces > 1) {
        ring_bell(stage, true);
    }
    while (has_pieces(&load)) {
        if (!fill_one(stage, &load)) {
            wait_for_slot(stage, &load, &since);
        }
    }
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

/* A slot for a piece out; null: the GPU is lost. */
static fl_cuda_slot *await_slot(fl_cuda_stage *stage)
{
    fl_cuda_slot *slot = NULL;
    uint64_t since = 0;
    fl_mutex_lock(&stage->lock);
    while (!is_lost(stage) && (slot = take_slot(&stage->out)) == NULL) {
        press(stage, &since);
    }
    fl_mutex_unlock(&stage->lock);
    return slot;
}

static filch_status copy_out(fl_cuda_stage *stage, fl_device *device, const fl_copy *copy,
                             fl_marker *marker, filch_error *error)
{
    fl_cut cut = fl_cut_copy(copy, threads_of(stage), SLOT_BYTES);
    filch_status status = FILCH_OK;
    uint64_t last = 0;
    for (size_t k = 0; k < cut.pieces && status == FILCH_OK; ++k) {
        fl_cuda_slot *slot = await_slot(stage);
        if (slot == NULL) {
            fl_cuda_lost(stage->gpu, device->info.name, error);
            status = FILCH_DEVICE_LOST;
            break;
        }
        fl_copy piece = fl_cut_piece(copy, &cut, k, slot->bytes, &slot->to);
        slot->device = device;
        slot->pitch = copy->to_pitch;
        slot->width = piece.width;
        slot->height = piece.height;
        status = fl_cuda_lane_put(device, FL_LANE_OUT, &piece, slot, error);
        if (status == FILCH_OK) {
            *marker = piece.marker;
            last = fl_marker_sequence(piece.marker);
            continue;
        }
        fl_mutex_lock(&stage->lock);
        if (slot->state == SLOT_TAKEN) { /* it was not put there */
            slot->state = SLOT_FREE;
        }
        fl_mutex_unlock(&stage->lock);
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

/* Under stage->making. What the system refuses is done by fewer, or by the callers. */
static void start_helpers(fl_cuda_stage *stage)
{
    uint32_t count = 0;
    while (!stage->has_started && count < stage->wanted &&
           fl_thread_start(&stage->helpers[count], help, stage) == FILCH_OK) {
        ++count;
    }
    if (!stage->has_started) {
        fl_store_release(&stage->helper_count, count); /* pairs with help and threads_of */
    }
    stage->has_started = true;
}

static uint32_t make_ring(fl_cuda_stage *stage, const fl_device *device, fl_ring *ring)
{
    void *memory = NULL;
    CUresult result =
        stage->gpu->api->cuMemHostAlloc(&memory, SLOTS * SLOT_BYTES, FL_CU_MEMHOSTALLOC_PORTABLE);
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
    for (uint32_t i = 0; i < SLOTS; ++i) {
        ring->slots[i].bytes = ring->memory + i * SLOT_BYTES;
    }
    start_helpers(stage);
    return RING_THERE;
}

static bool is_ready(fl_cuda_stage *stage, fl_device *device, fl_ring *ring)
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
    fl_mutex_lock(&stage->lock);
    for (fl_cuda_slot *slot = stage->first, *next; slot != NULL; slot = next) {
        next = slot->next;
        if (slot->lane == lane) {
            take_out(stage, slot);
        }
    }
    for (uint32_t i = 0; i < SLOTS; ++i) {
        fl_cuda_slot *slots[] = {&stage->in.slots[i], &stage->out.slots[i]};
        for (uint32_t k = 0; k < 2; ++k) {
            if (slots[k]->lane == lane) {
                slots[k]->lane = NULL;
                slots[k]->device = NULL;
            }
        }
    }
    /* Who began to look at it before does not know that it goes. */
    while (stage->lookers != 0) {
        fl_cond_wait(&stage->done, &stage->lock);
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
    fl_add_relaxed(&stage->bell, 1); /* who spins takes the lock */
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
