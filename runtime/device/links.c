/* SPDX-License-Identifier: Apache-2.0 */
#include "device/links.h"

#include <string.h>

#include "base/bits.h"
#include "device/pool.h"

filch_status fl_bandwidths_init(fl_bandwidths *bandwidths)
{
    filch_status status = fl_mutex_init(&bandwidths->lock);

    bandwidths->is_ready = status == FILCH_OK;
    return status;
}

void fl_bandwidths_fini(fl_bandwidths *bandwidths, const fl_memory *memory)
{
    if (!bandwidths->is_ready)
        return;
    /* Relaxed: no second thread uses the pool any more. */
    fl_free(memory, (void *)fl_load_relaxed(&bandwidths->bits), bandwidths->bytes);
    fl_mutex_fini(&bandwidths->lock);
    memset(bandwidths, 0, sizeof *bandwidths);
}

double fl_bandwidths_get(const fl_bandwidths *bandwidths, uint32_t places, uint32_t from,
                         uint32_t to)
{
    /* Acquire: the table's zeros. Relaxed: a figure by itself. */
    const _Atomic uint64_t *bits = fl_load_acquire(&bandwidths->bits);

    return bits != NULL ? fl_bits_double(fl_load_relaxed(&bits[(size_t)from * places + to])) : 0;
}

filch_status fl_bandwidths_open(fl_bandwidths *bandwidths, const fl_memory *memory, uint32_t places)
{
    _Atomic uint64_t *bits = fl_load_relaxed(&bandwidths->bits); /* changes under the lock */

    if (bits == NULL) {
        bandwidths->bytes = (size_t)places * places * sizeof *bits;
        bits = fl_alloc_zeroed(memory, bandwidths->bytes);
        fl_store_release(&bandwidths->bits, bits); /* release: after the table's zeros */
    }
    return bits != NULL ? FILCH_OK : FILCH_OUT_OF_MEMORY;
}

void fl_bandwidths_set(const fl_bandwidths *bandwidths, uint32_t places, uint32_t from, uint32_t to,
                       double rate)
{
    /* Acquire, relaxed: as in fl_bandwidths_get. */
    _Atomic uint64_t *bits = fl_load_acquire(&bandwidths->bits);

    fl_store_relaxed(&bits[(size_t)from * places + to], fl_double_bits(rate));
}

/* Returns the device; null for the host's memory. */
static const fl_device *device_of(const fl_pool *pool, uint32_t index)
{
    return index != FILCH_LINK_HOST && pool->devices[index].place != 0 ? &pool->devices[index]
                                                                       : NULL;
}

static uint32_t place_of(const fl_device *device)
{
    return device != NULL ? device->place : 0;
}

/* Returns the backend that describes the link; null: no backend does. */
static const fl_backend *backend_of(const fl_device *from, const fl_device *to)
{
    const fl_backend *backend = from != NULL ? from->backend : to->backend;
    bool is_one = from == NULL || to == NULL || from->backend == to->backend;

    return is_one && backend->copy != NULL ? backend : NULL;
}

filch_status fl_pool_link(fl_pool *pool, uint32_t from, uint32_t to, filch_link *link,
                          filch_error *error)
{
    fl_fault fault = {.status = FILCH_BAD_INDEX, .call = "filch_device_link"};
    filch_link made = {.size = sizeof made};
    filch_status status = FILCH_OK;
    char text[FL_SIZE_TEXT];
    const char *wrong;

    wrong = link == NULL ? "the result is null"
                         : fl_size_wrong(link, sizeof made, 0, "the result", text);
    if (wrong != NULL) {
        fault.status = FILCH_INVALID_ARGUMENT;
        return fl_error_fill(error, fault, "%s", wrong);
    }
    if ((from >= pool->count && from != FILCH_LINK_HOST) ||
        (to >= pool->count && to != FILCH_LINK_HOST))
        return fl_error_fill(error, fault, "index %u or %u is not below the device count, %zu",
                             from, to, pool->count);

    const fl_device *source = device_of(pool, from), *target = device_of(pool, to);

    made.size = link->size;
    made.is_same = place_of(source) == place_of(target);
    if (!made.is_same) {
        const fl_backend *backend = backend_of(source, target);
        const bool is_outward = source != NULL;

        if (backend != NULL)
            status = backend->copy->link_describe(is_outward ? source : target,
                                                  is_outward ? target : source, &made, error);
        made.bandwidth = fl_bandwidths_get(&pool->bandwidths, pool->place_count, place_of(source),
                                           place_of(target));
    }
    if (status == FILCH_OK)
        *link = made;
    return status;
}

/* --- Measuring --- */

/* Returns the first device of a place; null for the host's memory. */
static const fl_device *first_of(const fl_pool *pool, uint32_t place)
{
    for (size_t i = 0; i < pool->count && place != 0; i++) {
        if (pool->devices[i].place == place)
            return &pool->devices[i];
    }
    return NULL;
}

/* Measures a pair of places. Caller holds the lock; *status and *error keep the first failure. */
static void measure(fl_pool *pool, uint32_t from, uint32_t to, filch_status *status,
                    filch_error *error)
{
    const fl_device *source = first_of(pool, from), *target = first_of(pool, to);
    double rate = 0;

    if (source == target)
        return; /* the host's memory, or places without a device */
    const fl_backend *backend = backend_of(source, target);
    if (backend == NULL || backend->copy == NULL)
        return;
    filch_status result =
        backend->copy->link_measure(source, target, &rate, *status == FILCH_OK ? error : NULL);
    if (result == FILCH_OK)
        fl_bandwidths_set(&pool->bandwidths, pool->place_count, from, to, rate);
    else if (*status == FILCH_OK)
        *status = result;
}

filch_status fl_pool_measure_links(fl_pool *pool, const fl_memory *memory, filch_error *error)
{
    fl_bandwidths *bandwidths = &pool->bandwidths;
    filch_status status = FILCH_OK;
    bool can_measure = false;

    for (size_t i = 0; i < pool->count; i++)
        can_measure = can_measure || pool->devices[i].backend->copy != NULL;
    if (!can_measure)
        return FILCH_OK;
    fl_mutex_lock(&bandwidths->lock);
    if (fl_bandwidths_open(bandwidths, memory, pool->place_count) != FILCH_OK)
        status = fl_error_fill(
            error, (fl_fault){.status = FILCH_OUT_OF_MEMORY, .call = "filch_device_measure_links"},
            "no memory for what is measured");
    const bool is_open = status == FILCH_OK;
    for (uint32_t from = 0; is_open && from < pool->place_count; from++) {
        for (uint32_t to = 0; to < pool->place_count; to++)
            if (from != to)
                measure(pool, from, to, &status, error);
    }
    fl_mutex_unlock(&bandwidths->lock);
    return status;
}
