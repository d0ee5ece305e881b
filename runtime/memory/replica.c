/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/replica.h"

#include <stdio.h>

typedef enum fl_validity { FL_INVALID, FL_SHARED, FL_MODIFIED } fl_validity;

/* One tile in one place. */
typedef struct fl_replica {
    char *ptr;        /* its first element there; null before it has memory, and for the host */
    fl_marker ready;  /* what made it valid … */
    fl_marker source; /* … from what this made, another device's: valid if that did not fail */
    uint32_t version; /* that state speaks of */
    uint32_t state;   /* fl_validity */
} fl_replica;

typedef struct fl_replicas {
    fl_mutex lock; /* all below but at's and blocks' addresses */
    size_t bytes;  /* of this allocation */
    uint32_t places, tiles;
    uint32_t pins;  /* who moves tiles by himself: nothing is given back meanwhile */
    bool is_flat;   /* one block a place, laid out as the host's */
    char **blocks;  /* of flat storage, one a place */
    fl_replica *at; /* place by place, tile by tile */
} fl_replicas;

/* --- Waits --- */

filch_status fl_waits_add(fl_waits *waits, fl_marker marker, filch_error *error)
{
    if (marker == 0) {
        return FILCH_OK;
    }
    for (uint32_t i = 0; i < waits->count; ++i) {
        if (waits->at[i] >> 50 == marker >> 50) { /* a lane is in order: its latest is enough */
            waits->at[i] = waits->at[i] > marker ? waits->at[i] : marker;
            return FILCH_OK;
        }
    }
    if (waits->count == FL_MOST_WAITS) {
        return fl_error_fill(error, (fl_fault){.status = FILCH_OVERFLOW},
                             "a task waits for more than %d lanes", FL_MOST_WAITS);
    }
    waits->at[waits->count++] = marker;
    return FILCH_OK;
}

filch_status fl_waits_check(fl_places *places, fl_waits *waits, filch_error *error)
{
    while (waits->count != 0) {
        fl_marker marker = waits->at[waits->count - 1];
        fl_device *device = &places->devices[fl_marker_device(marker)];
        filch_status status = device->backend->reached(device, marker, error);
        if (status != FILCH_OK) {
            return status;
        }
        --waits->count;
    }
    return FILCH_OK;
}

void fl_waits_abandon(fl_places *places, fl_waits *waits)
{
    /* Copies alone: tiles land by themselves, and only their owners can tell how far they are. */
    while (waits->count != 0) {
        fl_marker marker = waits->at[--waits->count];
        fl_device *device = &places->devices[fl_marker_device(marker)];
        filch_status status = FILCH_OK;
        while (fl_marker_lane(marker) >= FL_LANE_IN &&
               (status = device->backend->reached(device, marker, NULL)) == FILCH_NOT_READY) {
            fl_relax();
        }
        if (status != FILCH_OK) {
            device->backend->drain(device, NULL); /* nobody can tell how far it is */
        }
    }
}

/* --- Storage --- */

static fl_replica *replica_at(fl_replicas *replicas, uint32_t tile, uint32_t place)
{
    return &replicas->at[(size_t)place * replicas->tiles + tile];
}

static size_t tile_bytes(const filch_view *view)
{
    return (size_t)(view->rows * view->cols * view->element);
}

static fl_replicas *make_replicas(fl_places *places, const filch_data *data)
{
    const fl_memory *memory = &places->core->memory;
    size_t tiles = fl_data_tile_count(data);
    size_t head = (sizeof(fl_replicas) + 15) & ~(size_t)15;
    size_t blocks = (places->count * sizeof(char *) + 15) & ~(size_t)15;
    size_t count, bytes;
    if (!fl_size_mul(tiles, places->count, &count) ||
        !fl_size_mul(count, sizeof(fl_replica), &bytes) || bytes > SIZE_MAX - head - blocks) {
        return NULL;
    }
    bytes += head + blocks;
    fl_replicas *made = fl_alloc_zeroed(memory, bytes);
    if (made != NULL && fl_mutex_init(&made->lock) != FILCH_OK) {
        fl_free(memory, made, bytes);
        made = NULL;
    }
    if (made != NULL) {
        made->bytes = bytes;
        made->places = places->count;
        made->tiles = (uint32_t)tiles;
        made->is_flat = data->tiles_down == 1 || data->cols == 1;
        made->blocks = (char **)(void *)((char *)made + head);
        made->at = (fl_replica *)(void *)((char *)made + head + blocks);
        if (data->home != 0) {
            made->blocks[data->home] = data->home_base; /* the caller's, never given back */
        }
    }
    return made;
}

/* The handle's replicas, made when first asked for; null: no memory. */
static fl_replicas *get_replicas(fl_places *places, filch_data *data)
{
    /* Acquire: with the pointer comes what it points to. */
    fl_replicas *replicas = fl_load_acquire(&data->replicas);
    if (replicas != NULL) {
        return replicas;
    }
    fl_replicas *made = make_replicas(places, data);
    if (made == NULL) {
        return NULL;
    }
    /* Acquire-release: ours is seen whole; or another's, and ours was never seen. */
    if (!fl_cas_acq_rel(&data->replicas, &replicas, made)) {
        fl_mutex_fini(&made->lock);
        fl_free(&places->core->memory, made, made->bytes);
        return replicas;
    }
    return made;
}

/* Under the lock: the handle's block in a place, of flat storage. */
static filch_status flat_block(fl_places *places, filch_data *data, fl_replicas *replicas,
                               uint32_t place, char **block, filch_error *error)
{
    if (replicas->blocks[place] == NULL) {
        void *taken;
        filch_status status = fl_place_take(places, place, fl_data_bytes(data), &taken, error);
        if (status != FILCH_OK) {
            return status;
        }
        replicas->blocks[place] = taken;
    }
    *block = replicas->blocks[place];
    return FILCH_OK;
}

/* Under the lock: memory for one tile in a place other than the host's. */
static filch_status give_memory(fl_places *places, filch_data *data, fl_replicas *replicas,
                                const filch_view *host, fl_replica *replica, uint32_t place,
                                filch_error *error)
{
    filch_status status = FILCH_OK;
    if (replica->ptr != NULL) {
        return FILCH_OK;
    }
    if (place == data->home) {
        replica->ptr = replicas->blocks[place] + fl_data_offset(data, host);
    } else if (replicas->is_flat) {
        char *block;
        status = flat_block(places, data, replicas, place, &block, error);
        if (status == FILCH_OK) {
            replica->ptr = block + fl_data_offset(data, host);
        }
    } else {
        void *taken;
        status = fl_place_take(places, place, tile_bytes(host), &taken, error);
        if (status == FILCH_OK) {
            replica->ptr = taken;
        }
    }
    return status;
}

/* --- Copies --- */

/* A block of the handle as it lies in a place. */
typedef struct fl_spot {
    char *ptr;
    size_t pitch; /* bytes from one column to the next */
    uint32_t place;
} fl_spot;

static fl_spot spot_of(const filch_data *data, const fl_replicas *replicas, const filch_view *host,
                       const fl_replica *replica, uint32_t place)
{
    size_t ld = (size_t)(data->ld * data->element);
    if (place == 0) {
        return (fl_spot){fl_data_host(data) + fl_data_offset(data, host), ld, 0};
    }
    bool is_tight = !replicas->is_flat && place != data->home;
    return (fl_spot){replica->ptr, is_tight ? (size_t)(host->rows * host->element) : ld, place};
}

/* Counts a copy of the carrier's. Relaxed: several workers may start copies on its lanes, and who
 * wants to know exactly has seen the job complete. */
static void count_bytes(fl_traffic *traffic, const fl_device *carrier, fl_spot to, fl_spot from,
                        size_t bytes)
{
    if (traffic != NULL) {
        fl_traffic *own = &traffic[carrier->info.index];
        fl_add_relaxed(to.place == 0 ? &own->out : from.place == 0 ? &own->in : &own->peer, bytes);
    }
}

/* Starts a copy of the block that host describes. carrier: the device on whose lane it goes;
 * traffic: of those who want it, or null. */
static filch_status start_copy(fl_places *places, fl_device *carrier, const filch_view *host,
                               fl_spot to, fl_spot from, fl_marker behind, fl_traffic *traffic,
                               fl_marker *marker, filch_error *error)
{
    fl_copy copy = {
        .to = to.ptr,
        .from = from.ptr,
        .to_device = to.place != 0 ? carrier : NULL,
        .from_device = from.place != 0 ? places->at[from.place].device : NULL,
        .to_pitch = to.pitch,
        .from_pitch = from.pitch,
        .width = (size_t)(host->rows * host->element),
        .height = (size_t)host->cols,
        .behind = &behind,
        .behind_count = behind != 0,
    };
    filch_status status = carrier->backend->copy(carrier, &copy, error);
    *marker = copy.marker;
    if (status == FILCH_OK) {
        count_bytes(traffic, carrier, to, from, copy.width * copy.height);
    }
    return status;
}

/* Under the lock. A replica of an older version says nothing; the caller's buffer is then good,
 * where there is one. */
static bool is_valid(const filch_data *data, const fl_replica *replica, uint32_t place)
{
    return replica->version == fl_data_version(data) ? replica->state != FL_INVALID
                                                     : data->has_home && place == data->home;
}

static void set_state(const filch_data *data, fl_replica *replica, fl_validity state,
                      fl_marker ready)
{
    replica->version = fl_data_version(data);
    replica->state = state;
    replica->ready = ready;
    replica->source = 0;
}

/* The device that was lost before the marker was reached, or null. */
static fl_device *lost_before(const fl_places *places, fl_marker marker)
{
    fl_device *device = &places->devices[fl_marker_device(marker)];
    return marker != 0 && device->backend->lost(device, NULL) &&
                   device->backend->reached(device, marker, NULL) != FILCH_OK
               ? device
               : NULL;
}

/* Under the lock: the device with which a valid replica was lost, or null: it is good. */
static fl_device *lost_with(const fl_places *places, const filch_data *data,
                            const fl_replica *replica, uint32_t place)
{
    fl_device *device = place != 0 ? places->at[place].device : NULL;
    if (device != NULL && device->backend->lost(device, NULL)) {
        return device;
    }
    if (replica->version != fl_data_version(data)) {
        return NULL;
    }
    device = lost_before(places, replica->ready);
    return device != NULL ? device : lost_before(places, replica->source);
}

static bool is_good(const fl_places *places, const filch_data *data, const fl_replica *replica,
                    uint32_t place)
{
    return is_valid(data, replica, place) && lost_with(places, data, replica, place) == NULL;
}

/* The place to copy a tile from: the host's where it is good, else any. */
static uint32_t find_source(const fl_places *places, const filch_data *data, fl_replicas *replicas,
                            uint32_t tile)
{
    for (uint32_t place = 0; place < replicas->places; ++place) {
        if (is_good(places, data, replica_at(replicas, tile, place), place)) {
            return place;
        }
    }
    return replicas->places;
}

/* Under the lock: there is no source; error, because of which device. */
static filch_status tell_lost(const fl_places *places, const filch_data *data,
                              fl_replicas *replicas, uint32_t tile, filch_error *error)
{
    filch_error cause = FILCH_ERROR_INIT;
    for (uint32_t place = 0; place < replicas->places; ++place) {
        const fl_replica *replica = replica_at(replicas, tile, place);
        const fl_device *device =
            is_valid(data, replica, place) ? lost_with(places, data, replica, place) : NULL;
        if (device != NULL) {
            device->backend->lost(device, &cause);
        }
    }
    fl_fault fault = {
        .status = cause.status != FILCH_OK ? cause.status : FILCH_INTERNAL,
        .native_code = cause.native_code,
        .native_name = cause.native_name,
        .call = cause.call,
        .device = cause.device,
        .label = data->label,
    };
    if (cause.status == FILCH_OK && !data->has_home) {
        fault.status = FILCH_WRONG_STATE;
        return fl_error_fill(error, fault, "tile (%u, %u) of '%s' is read, but nothing wrote it",
                             tile % data->tiles_down, tile / data->tiles_down, data->label);
    }
    return fl_error_fill(error, fault, "tile %u of '%s' has no valid copy left: %s", tile,
                         data->label, cause.text);
}

/* Blocks until the marker is past; what it stands for is in flight. */
static filch_status wait_for(const fl_places *places, fl_marker marker, filch_error *error)
{
    fl_device *device = &places->devices[fl_marker_device(marker)];
    filch_status status = FILCH_OK;
    while (marker != 0 &&
           (status = device->backend->reached(device, marker, error)) == FILCH_NOT_READY) {
        fl_relax();
    }
    return status;
}

/* Under the lock: copies a valid tile from one place to another. */
static filch_status move_tile(fl_places *places, filch_data *data, fl_replicas *replicas,
                              uint32_t tile, uint32_t place, uint32_t source, fl_device *device,
                              fl_traffic *traffic, filch_error *error)
{
    fl_replica *to = replica_at(replicas, tile, place);
    fl_replica *from = replica_at(replicas, tile, source);
    filch_view host = fl_data_tile_view(data, tile);
    fl_marker behind = from->version == fl_data_version(data) ? from->ready : 0;
    fl_marker marker;
    /* One replica remembers one other device whose copy it depends on. */
    filch_status status = behind != 0 ? wait_for(places, from->source, error) : FILCH_OK;
    if (status != FILCH_OK) {
        return status;
    }
    status =
        start_copy(places, place != 0 ? device : places->at[source].device, &host,
                   spot_of(data, replicas, &host, to, place),
                   spot_of(data, replicas, &host, from, source), behind, traffic, &marker, error);
    if (status == FILCH_OK) {
        set_state(data, from, FL_SHARED, behind);
        set_state(data, to, FL_SHARED, marker);
        to->source = fl_marker_device(behind) != fl_marker_device(marker) ? behind : 0;
    }
    return status;
}

/* Under the lock: makes a tile valid in a place; through the host's memory where the device cannot
 * reach the one that has it. */
static filch_status fill_tile(fl_places *places, filch_data *data, fl_replicas *replicas,
                              uint32_t tile, uint32_t place, fl_device *device, fl_traffic *traffic,
                              filch_error *error)
{
    uint32_t source = find_source(places, data, replicas, tile);
    filch_status status = FILCH_OK;
    if (source == replicas->places) {
        return tell_lost(places, data, replicas, tile, error);
    }
    if (place != 0 && source != 0 && (source >= 64 || (device->peers >> source & 1) == 0)) {
        status = fl_data_need_host(data, error);
        if (status == FILCH_OK) {
            status = move_tile(places, data, replicas, tile, 0, source, NULL, traffic, error);
        }
        source = 0;
    }
    return status == FILCH_OK
               ? move_tile(places, data, replicas, tile, place, source, device, traffic, error)
               : status;
}

/* --- Operands --- */

static uint32_t place_of(const fl_device *device)
{
    return device != NULL ? device->place : 0;
}

/* Under the lock: one tile, with its contents where wanted. */
static filch_status fetch_tile(fl_places *places, filch_data *data, fl_replicas *replicas,
                               uint32_t tile, fl_device *device, bool wants_contents,
                               fl_traffic *traffic, fl_waits *waits, filch_error *error)
{
    uint32_t place = place_of(device);
    fl_replica *replica = replica_at(replicas, tile, place);
    filch_status status = FILCH_OK;
    if (place == 0) {
        status = fl_data_need_host(data, error);
    } else {
        filch_view host = fl_data_tile_view(data, tile);
        status = give_memory(places, data, replicas, &host, replica, place, error);
    }
    if (status == FILCH_OK && wants_contents && !is_good(places, data, replica, place)) {
        status = fill_tile(places, data, replicas, tile, place, device, traffic, error);
    }
    /* Who overwrites it need not mind what was lost. */
    if (status == FILCH_OK && replica->version == fl_data_version(data) &&
        (wants_contents || lost_with(places, data, replica, place) == NULL)) {
        status = fl_waits_add(waits, replica->ready, error);
        status = status == FILCH_OK ? fl_waits_add(waits, replica->source, error) : status;
    }
    return status;
}

/* Under the lock: a chunk that is copied by itself, from the host. */
static filch_status stream_in(fl_places *places, fl_device *device, const fl_operand *operand,
                              char *block, fl_waits *waits, filch_error *error)
{
    filch_data *data = operand->data;
    const filch_view *host = operand->view;
    size_t pitch = (size_t)(data->ld * data->element);
    if ((operand->mode & FILCH_READ) == 0 || operand->first == operand->last) {
        return FILCH_OK;
    }
    fl_marker marker;
    filch_status status = start_copy(
        places, device, host, (fl_spot){block + fl_data_offset(data, host), pitch, device->place},
        (fl_spot){host->ptr, pitch, 0}, 0, operand->traffic, &marker, error);
    return status == FILCH_OK ? fl_waits_add(waits, marker, error) : status;
}

/* Under the lock: memory, copies, waits. */
static filch_status fetch_locked(fl_places *places, fl_replicas *replicas, fl_device *device,
                                 fl_operand *operand, fl_waits *waits, filch_error *error)
{
    filch_data *data = operand->data;
    uint32_t place = place_of(device);
    filch_status status = FILCH_OK;
    char *block = NULL;
    if (operand->is_streamed) {
        if (place == 0) {
            return FILCH_OK;
        }
        status = flat_block(places, data, replicas, place, &block, error);
        status =
            status == FILCH_OK ? stream_in(places, device, operand, block, waits, error) : status;
        if (status == FILCH_OK) {
            operand->view->ptr = block + fl_data_offset(data, operand->view);
        }
        return status;
    }
    for (uint32_t tile = operand->tile; tile < operand->tile_end && status == FILCH_OK; ++tile) {
        status = fetch_tile(places, data, replicas, tile, device, (operand->mode & FILCH_READ) != 0,
                            operand->traffic, waits, error);
    }
    if (status != FILCH_OK || operand->tile == operand->tile_end) {
        return status;
    }
    if (place == 0) {
        /* Which may have been made just now. */
        operand->view->ptr = fl_data_host(data) + fl_data_offset(data, operand->view);
    } else if (replicas->is_flat || place == data->home) {
        operand->view->ptr = replicas->blocks[place] + fl_data_offset(data, operand->view);
    } else {
        operand->view->ptr = replica_at(replicas, operand->tile, place)->ptr;
        operand->view->ld = operand->view->rows;
    }
    return FILCH_OK;
}

void fl_operand_resolve(fl_operand *operand)
{
    operand->is_streamed = fl_data_is_streamed(operand->data) && !operand->is_whole;
    fl_data_tiles_between(operand->data, operand->first, operand->last, &operand->tile,
                          &operand->tile_end);
}

static filch_status fail_untracked(const filch_data *data, filch_error *error)
{
    return fl_error_fill(error, (fl_fault){.status = FILCH_OUT_OF_MEMORY, .label = data->label},
                         "no memory to keep track of the handle's tiles");
}

filch_status fl_operand_fetch(fl_places *places, fl_device *device, fl_operand *operand,
                              fl_waits *waits, filch_error *error)
{
    filch_data *data = operand->data;
    fl_replicas *replicas = get_replicas(places, data);
    if (replicas == NULL) {
        return fail_untracked(data, error);
    }
    if (operand->is_chunk) {
        if (!replicas->is_flat && place_of(device) != 0) {
            return fl_error_fill(
                error, (fl_fault){.status = FILCH_UNSUPPORTED, .label = data->label},
                "a batch on a device needs a handle that is cut along one axis only");
        }
    }
    fl_mutex_lock(&replicas->lock);
    filch_status status = fetch_locked(places, replicas, device, operand, waits, error);
    fl_mutex_unlock(&replicas->lock);
    return status;
}

/* Under the lock: what was computed elsewhere goes to the caller's buffer on a device. */
static filch_status send_to_device(fl_places *places, const fl_operand *operand,
                                   fl_replicas *replicas, fl_marker *home, filch_error *error)
{
    filch_data *data = operand->data;
    fl_device *device = places->at[data->home].device;
    filch_status status = FILCH_OK;
    for (uint32_t tile = operand->tile; tile < operand->tile_end && status == FILCH_OK; ++tile) {
        filch_view host = fl_data_tile_view(data, tile);
        fl_replica *replica = replica_at(replicas, tile, data->home);
        status = give_memory(places, data, replicas, &host, replica, data->home, error);
        if (status == FILCH_OK) {
            status = fill_tile(places, data, replicas, tile, data->home, device, operand->traffic,
                               error);
            *home = replica->ready; /* of one lane, which is in order */
        }
    }
    return status;
}

/* Under the lock: what was computed in a place goes to the host's buffer. */
static filch_status send_home(fl_places *places, fl_device *device, const fl_operand *operand,
                              fl_replicas *replicas, fl_marker marker, fl_marker *home,
                              filch_error *error)
{
    filch_data *data = operand->data;
    filch_status status = FILCH_OK;
    if (operand->is_streamed) {
        filch_view host = *operand->view;
        size_t pitch = (size_t)(data->ld * data->element);
        size_t offset = (size_t)((char *)host.ptr - replicas->blocks[device->place]);
        return start_copy(places, device, &host, (fl_spot){fl_data_host(data) + offset, pitch, 0},
                          (fl_spot){host.ptr, pitch, device->place}, marker, operand->traffic, home,
                          error);
    }
    for (uint32_t tile = operand->tile; tile < operand->tile_end && status == FILCH_OK; ++tile) {
        fl_replica *replica = replica_at(replicas, tile, device->place);
        filch_view host = fl_data_tile_view(data, tile);
        status = start_copy(places, device, &host, spot_of(data, replicas, &host, NULL, 0),
                            spot_of(data, replicas, &host, replica, device->place), marker,
                            operand->traffic, home, error);
        if (status == FILCH_OK) {
            set_state(data, replica_at(replicas, tile, 0), FL_SHARED, *home);
            set_state(data, replica, FL_SHARED, marker);
        }
    }
    return status;
}

filch_status fl_operand_commit(fl_places *places, fl_device *device, const fl_operand *operand,
                               fl_marker marker, fl_marker *home, filch_error *error)
{
    *home = 0;
    if ((operand->mode & FILCH_WRITE) == 0) {
        return FILCH_OK;
    }
    filch_data *data = operand->data;
    /* Acquire: fetch made them, perhaps another thread's. */
    fl_replicas *replicas = fl_load_acquire(&data->replicas);
    uint32_t place = place_of(device);
    filch_status status = FILCH_OK;
    fl_mutex_lock(&replicas->lock);
    for (uint32_t tile = operand->tile; !operand->is_streamed && tile < operand->tile_end; ++tile) {
        for (uint32_t other = 0; other < replicas->places; ++other) {
            set_state(data, replica_at(replicas, tile, other), FL_INVALID, 0);
        }
        set_state(data, replica_at(replicas, tile, place), FL_MODIFIED, marker);
    }
    if (data->has_home && place != data->home && (operand->is_streamed || operand->is_final)) {
        status = data->home == 0 ? send_home(places, device, operand, replicas, marker, home, error)
                                 : send_to_device(places, operand, replicas, home, error);
    }
    fl_mutex_unlock(&replicas->lock);
    return status;
}

/* --- Several places at once --- */

filch_status fl_replica_pin(fl_places *places, filch_data *data, filch_error *error)
{
    fl_replicas *replicas = get_replicas(places, data);
    if (replicas == NULL) {
        return fail_untracked(data, error);
    }
    fl_mutex_lock(&replicas->lock);
    ++replicas->pins;
    fl_mutex_unlock(&replicas->lock);
    return FILCH_OK;
}

void fl_replica_unpin(filch_data *data)
{
    fl_replicas *replicas = fl_load_acquire(&data->replicas); /* as in get_replicas */
    fl_mutex_lock(&replicas->lock);
    --replicas->pins;
    fl_mutex_unlock(&replicas->lock);
}

filch_status fl_replica_open(fl_places *places, filch_data *data, uint32_t tile, const bool *wanted,
                             fl_replica_spot *spots, filch_error *error)
{
    fl_replicas *replicas = fl_load_acquire(&data->replicas); /* as in get_replicas */
    filch_view host = fl_data_tile_view(data, tile);
    filch_status status = FILCH_OK;
    fl_mutex_lock(&replicas->lock);
    bool any = find_source(places, data, replicas, tile) != replicas->places;
    if (!any) {
        status = tell_lost(places, data, replicas, tile, error);
    }
    for (uint32_t place = 0; place < replicas->places && status == FILCH_OK; ++place) {
        fl_replica *replica = replica_at(replicas, tile, place);
        bool is_known = replica->version == data->version;
        spots[place] = (fl_replica_spot){.is_good = is_good(places, data, replica, place)};
        if (!wanted[place] && !spots[place].is_good) {
            continue;
        }
        status = place == 0 ? fl_data_need_host(data, error)
                            : give_memory(places, data, replicas, &host, replica, place, error);
        if (status == FILCH_OK) {
            fl_spot spot = spot_of(data, replicas, &host, replica, place);
            spots[place].ptr = spot.ptr;
            spots[place].pitch = spot.pitch;
            spots[place].behind[0] = is_known ? replica->ready : 0;
            spots[place].behind[1] = is_known ? replica->source : 0;
        }
    }
    fl_mutex_unlock(&replicas->lock);
    return status;
}

void fl_replica_settle(filch_data *data, uint32_t tile, const bool *arrived)
{
    fl_replicas *replicas = fl_load_acquire(&data->replicas); /* as in get_replicas */
    fl_mutex_lock(&replicas->lock);
    for (uint32_t place = 0; place < replicas->places; ++place) {
        fl_replica *replica = replica_at(replicas, tile, place);
        if (arrived[place]) {
            set_state(data, replica, FL_SHARED, 0);
        } else if (is_valid(data, replica, place)) {
            bool is_known = replica->version == data->version;
            fl_marker source = is_known ? replica->source : 0;
            set_state(data, replica, FL_SHARED, is_known ? replica->ready : 0);
            replica->source = source;
        }
    }
    fl_mutex_unlock(&replicas->lock);
}

/* --- The host --- */

void fl_data_begin_version(filch_data *data)
{
    if (!data->is_managed) {
        /* Relaxed: core->lock orders the writers, and who reads meanwhile, of tiles that no job
         * writes, may take either. */
        fl_store_relaxed(&data->version, fl_data_version(data) + 1);
    }
}

/* Waits for copies; of those that failed, or cannot be waited for, none is left in flight. */
static filch_status await(fl_places *places, const filch_data *data, filch_status status,
                          fl_waits *waits, filch_error *error)
{
    if (status == FILCH_OK) {
        while ((status = fl_waits_check(places, waits, error)) == FILCH_NOT_READY) {
            fl_relax();
        }
    }
    if (status != FILCH_OK) {
        fl_waits_abandon(places, waits); /* they lead to the host's buffer, or from it */
        snprintf(error->label, sizeof error->label, "%s", data->label);
    }
    return status;
}

filch_status fl_data_fetch_host(fl_places *places, filch_data *data, fl_tiles tiles, bool reads,
                                filch_error *error)
{
    /* Acquire: with the pointer comes what it points to. */
    fl_replicas *replicas = fl_load_acquire(&data->replicas);
    filch_status status = fl_data_need_host(data, error);
    if (status != FILCH_OK || (replicas == NULL && data->has_home && data->home == 0)) {
        return status; /* no device has ever used it */
    }
    replicas = get_replicas(places, data);
    if (replicas == NULL) {
        return fl_error_fill(error, (fl_fault){.status = FILCH_OUT_OF_MEMORY, .label = data->label},
                             "no memory to keep track of the handle's tiles");
    }
    fl_waits waits = {.count = 0};
    fl_mutex_lock(&replicas->lock);
    for (uint32_t col = tiles.col0; col < tiles.col1; ++col) {
        for (uint32_t row = tiles.row0; row < tiles.row1 && status == FILCH_OK; ++row) {
            status = fetch_tile(places, data, replicas, fl_data_tile(data, row, col), NULL, reads,
                                NULL, &waits, error);
        }
    }
    fl_mutex_unlock(&replicas->lock);
    return await(places, data, status, &waits, error);
}

filch_status fl_data_host_wrote(fl_places *places, filch_data *data, fl_tiles tiles,
                                filch_error *error)
{
    /* Acquire, as above. Where no device has used it, there is nothing to note. */
    fl_replicas *replicas = fl_load_acquire(&data->replicas);
    filch_status status = FILCH_OK;
    if (replicas == NULL) {
        return FILCH_OK;
    }
    bool sends = data->home != 0 && !data->is_managed;
    fl_waits waits = {.count = 0};
    fl_mutex_lock(&replicas->lock);
    for (uint32_t col = tiles.col0; col < tiles.col1; ++col) {
        for (uint32_t row = tiles.row0; row < tiles.row1; ++row) {
            uint32_t tile = fl_data_tile(data, row, col);
            for (uint32_t place = 0; place < replicas->places; ++place) {
                set_state(data, replica_at(replicas, tile, place),
                          place == 0 ? FL_MODIFIED : FL_INVALID, 0);
            }
            if (sends && status == FILCH_OK) {
                status = fetch_tile(places, data, replicas, tile, places->at[data->home].device,
                                    true, NULL, &waits, error);
            }
        }
    }
    fl_mutex_unlock(&replicas->lock);
    return await(places, data, status, &waits, error);
}

void fl_data_drop_replicas(fl_places *places, filch_data *data)
{
    fl_replicas *replicas = fl_load_relaxed(&data->replicas); /* nobody else uses the handle */
    if (replicas == NULL) {
        fl_data_free_parts(data);
        return;
    }
    for (uint32_t place = 1; place < replicas->places; ++place) {
        if (place == data->home) {
            continue;
        }
        if (replicas->blocks[place] != NULL) {
            fl_place_give(places, place, replicas->blocks[place], fl_data_bytes(data));
        }
        for (uint32_t tile = 0; !replicas->is_flat && tile < replicas->tiles; ++tile) {
            const fl_replica *replica = replica_at(replicas, tile, place);
            if (replica->ptr != NULL) {
                filch_view host = fl_data_tile_view(data, tile);
                fl_place_give(places, place, replica->ptr, tile_bytes(&host));
            }
        }
    }
    fl_mutex_fini(&replicas->lock);
    fl_free(&places->core->memory, replicas, replicas->bytes);
    fl_store_relaxed(&data->replicas, NULL);
    fl_data_free_parts(data);
}
