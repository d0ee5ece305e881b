/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/cuda/queue/ring.h"

#include "backend/cuda/queue/lane.h"

#define PAGE ((size_t)4096)

bool fl_cuda_slot_is_free(const fl_cuda_slot *slot)
{
    /* Acquire: the device has read the slot. */
    return slot->state == SLOT_FREE &&
           (slot->lane == NULL || fl_load_acquire(&slot->lane->passed) >= slot->sequence);
}

size_t fl_cuda_slot_begin(const fl_cuda_slot *slot, uint32_t unit)
{
    size_t bytes = slot->width * slot->height;
    return unit * FL_UNIT_BYTES < bytes ? unit * FL_UNIT_BYTES : bytes;
}

static void give_back(fl_cuda_ring *ring)
{
    while (ring->used != 0 && fl_cuda_slot_is_free(&ring->slots[ring->oldest])) {
        ring->oldest = (ring->oldest + 1) % FL_RING_SLOTS;
        --ring->used;
    }
}

bool fl_ring_is_idle(fl_cuda_ring *ring)
{
    give_back(ring);
    return ring->used == 0;
}

/* Finds free room for `size` bytes; false: no room yet. */
static bool find_room(const fl_cuda_ring *ring, size_t size, size_t *at)
{
    bool fits = ring->bytes - ring->end >= size;
    *at = ring->end;
    if (ring->used == 0) {
        *at = fits ? ring->end : 0;
        return true;
    }
    size_t oldest = ring->slots[ring->oldest].at;
    if (ring->used == FL_RING_SLOTS) {
        return false;
    }
    if (ring->end <= oldest) { /* the used part wraps around at the ring's beginning */
        return oldest - ring->end >= size;
    }
    if (!fits) {
        *at = 0;
        return oldest >= size;
    }
    return true;
}

fl_cuda_slot *fl_ring_take(fl_cuda_ring *ring, const fl_copy *piece, char *host, size_t pitch)
{
    size_t bytes = piece->width * piece->height;
    size_t size = (bytes + PAGE - 1) & ~(PAGE - 1), at;
    give_back(ring);
    if (!find_room(ring, size, &at)) {
        return NULL;
    }
    fl_cuda_slot *slot = &ring->slots[(ring->oldest + ring->used++) % FL_RING_SLOTS];
    ring->end = at + size;
    *slot = (fl_cuda_slot){.bytes = ring->memory + at,
                           .at = at,
                           .size = size,
                           .state = SLOT_TAKEN,
                           .units = (uint32_t)((bytes - 1) / FL_UNIT_BYTES + 1),
                           .host = host,
                           .pitch = pitch,
                           .width = piece->width,
                           .height = piece->height,
                           .piece = *piece};
    return slot;
}
