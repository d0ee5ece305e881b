/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/place.h"

#include <inttypes.h>

/* Sizes are rounded up to this, so that ragged tiles share bins. */
#define BLOCK_STEP ((size_t)512)

static size_t round_up(size_t bytes)
{
    return (bytes + BLOCK_STEP - 1) / BLOCK_STEP * BLOCK_STEP;
}

filch_status fl_places_init(fl_places *places, fl_core *core, fl_device *devices,
                            size_t device_count, uint32_t place_count)
{
    *places = (fl_places){.core = core, .devices = devices, .device_count = device_count};
    places->at = fl_alloc_zeroed(&core->memory, place_count * sizeof *places->at);
    if (places->at == NULL) {
        return FILCH_OUT_OF_MEMORY;
    }
    for (; places->count < place_count; ++places->count) {
        filch_status status = fl_mutex_init(&places->at[places->count].lock);
        if (status != FILCH_OK) {
            fl_places_fini(places);
            return status;
        }
    }
    for (size_t d = 0; d < device_count; ++d) {
        /* Devices that only pretend have places that are not in the table. */
        if (devices[d].backend->memory_take != NULL &&
            places->at[devices[d].place].device == NULL) {
            places->at[devices[d].place].device = &devices[d];
        }
    }
    return FILCH_OK;
}

/* Under the place's lock: hands every unused block back to the device. */
static void trim(fl_places *places, fl_place *place)
{
    for (size_t i = 0; i < place->bin_count; ++i) {
        fl_bin *bin = &place->bins[i];
        while (bin->count != 0) {
            place->device->backend->memory_give(place->device, bin->blocks[--bin->count]);
            place->taken -= bin->bytes;
        }
        fl_free(&places->core->memory, bin->blocks, bin->capacity * sizeof *bin->blocks);
    }
    fl_free(&places->core->memory, place->bins, place->bin_capacity * sizeof *place->bins);
    place->bins = NULL;
    place->bin_count = place->bin_capacity = 0;
}

void fl_places_fini(fl_places *places)
{
    for (uint32_t i = 0; i < places->count; ++i) {
        trim(places, &places->at[i]);
        fl_mutex_fini(&places->at[i].lock);
    }
    fl_free(&places->core->memory, places->at, places->count * sizeof *places->at);
    places->at = NULL;
    places->count = 0;
}

/* Under the place's lock: the bin of a size, or null. */
static fl_bin *find_bin(const fl_place *place, size_t bytes)
{
    for (size_t i = 0; i < place->bin_count; ++i) {
        if (place->bins[i].bytes == bytes) {
            return &place->bins[i];
        }
    }
    return NULL;
}

static bool fits(const fl_place *place, size_t bytes)
{
    return bytes <= place->device->info.budget - place->taken;
}

/* Under the place's lock, so that takers keep to the budget together: a block from the device. */
static filch_status take_new(fl_places *places, fl_place *place, size_t bytes, void **block,
                             filch_error *error)
{
    fl_device *device = place->device;
    if (!fits(place, bytes)) {
        trim(places, place);
    }
    if (!fits(place, bytes)) {
        return fl_error_fill(
            error, (fl_fault){.status = FILCH_NO_DEVICE_MEMORY, .device = device->info.name},
            "%s: %zu bytes were asked for, but of its budget, %" PRIu64 " bytes, %" PRIu64
            " are taken",
            device->info.name, bytes, device->info.budget, place->taken);
    }
    filch_status status = device->backend->memory_take(device, bytes, block, error);
    if (status == FILCH_NO_DEVICE_MEMORY && place->bin_count != 0) {
        trim(places, place);
        status = device->backend->memory_take(device, bytes, block, error);
    }
    place->taken += status == FILCH_OK ? bytes : 0;
    return status;
}

filch_status fl_place_take(fl_places *places, uint32_t index, size_t bytes, void **block,
                           filch_error *error)
{
    fl_place *place = &places->at[index];
    filch_status status = FILCH_OK;
    bytes = round_up(bytes);
    fl_mutex_lock(&place->lock);
    fl_bin *bin = find_bin(place, bytes);
    if (bin != NULL && bin->count != 0) {
        *block = bin->blocks[--bin->count];
    } else {
        status = take_new(places, place, bytes, block, error);
    }
    fl_mutex_unlock(&place->lock);
    return status;
}

/* Under the place's lock: room for one more block of a size; null: no memory. */
static fl_bin *reserve(fl_places *places, fl_place *place, size_t bytes)
{
    const fl_memory *memory = &places->core->memory;
    fl_bin *bin = find_bin(place, bytes);
    if (bin == NULL) {
        if (fl_array_reserve(memory, &place->bins, &place->bin_capacity, place->bin_count + 1,
                             sizeof *place->bins) != FILCH_OK) {
            return NULL;
        }
        bin = &place->bins[place->bin_count++];
        *bin = (fl_bin){.bytes = bytes};
    }
    return fl_array_reserve(memory, &bin->blocks, &bin->capacity, bin->count + 1,
                            sizeof *bin->blocks) == FILCH_OK
               ? bin
               : NULL;
}

void fl_place_give(fl_places *places, uint32_t index, void *block, size_t bytes)
{
    fl_place *place = &places->at[index];
    bytes = round_up(bytes);
    fl_mutex_lock(&place->lock);
    fl_bin *bin = reserve(places, place, bytes);
    if (bin != NULL) {
        bin->blocks[bin->count++] = block;
    } else {
        place->device->backend->memory_give(place->device, block);
        place->taken -= bytes;
    }
    fl_mutex_unlock(&place->lock);
}
