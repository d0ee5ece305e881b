/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/sim/sim.h"

#include <stdio.h>
#include <string.h>

#include "backend/sim/describe.h"
#include "backend/sim/memory.h"
#include "base/error.h"

typedef struct sim_tile {
    uint64_t tag;
    uint64_t busy_ns;
    uint64_t end; /* virtual time */
} sim_tile;

/* State touched only by the worker driving the device. */
typedef struct sim_state {
    fl_pace pace;
    uint64_t idle_at; /* end of the last item launched */
    uint64_t memory;
    uint64_t lost_at;      /* FL_TIME_NEVER: never */
    const fl_clock *clock; /* may be null */
    uint64_t latest;       /* time of the last call of launch or poll */
    uint32_t first;        /* oldest of the items in flight, a ring */
    uint32_t in_flight;
    sim_tile tiles[FL_SIM_TILES];
} sim_state;

static void sim_close(fl_device *device, const fl_memory *memory)
{
    sim_state *state = device->state;

    fl_pace_close(&state->pace, memory);
    fl_free(memory, state, sizeof *state);
    device->state = NULL;
}

static filch_status sim_memory_free(const fl_device *device, uint64_t *bytes)
{
    const sim_state *state = device->state;

    *bytes = state->memory;
    return FILCH_OK;
}

filch_status fl_sim_tell_lost(const fl_device *device, uint64_t lost_at, filch_error *error)
{
    return fl_error_fill(error,
                         (fl_fault){.status = FILCH_DEVICE_LOST, .device = device->info.name},
                         "%s is lost from %g s on, as its description says", device->info.name,
                         (double)lost_at / (double)FL_NS_PER_S);
}

static bool sim_lost(const fl_device *device, filch_error *error)
{
    const sim_state *state = device->state;
    uint64_t now = state->clock != NULL ? fl_clock_now(state->clock) : state->latest;

    if (now < state->lost_at)
        return false;
    (void)fl_sim_tell_lost(device, state->lost_at, error);
    return true;
}

static filch_status sim_launch(fl_device *device, fl_launch *launch, uint64_t now,
                               filch_error *error)
{
    sim_state *state = device->state;
    uint64_t start = now > state->idle_at ? now : state->idle_at;
    uint64_t ns;
    filch_status status;

    state->latest = now;
    if (sim_lost(device, error))
        return FILCH_DEVICE_LOST;
    if (state->in_flight == FL_SIM_TILES)
        return FILCH_BUSY;
    status = fl_pace_take(&state->pace, start, launch->cost, &ns);
    if (status != FILCH_OK)
        return status;
    state->idle_at = start + ns;
    state->tiles[(state->first + state->in_flight) % FL_SIM_TILES] = (sim_tile){
        .tag = launch->tag,
        .busy_ns = fl_pace_told(&state->pace, ns),
        .end = state->idle_at,
    };
    state->in_flight++;
    return FILCH_OK;
}

/* Returns the time to poll the oldest item: at its end, or at the device's loss. */
static uint64_t next_of(const sim_state *state, const sim_tile *oldest)
{
    return oldest->end < state->lost_at ? oldest->end : state->lost_at;
}

static filch_status sim_poll(fl_device *device, uint64_t now, uint64_t *tag, uint64_t *busy_ns,
                             uint64_t *next, filch_error *error)
{
    sim_state *state = device->state;
    const sim_tile *oldest = &state->tiles[state->first];

    state->latest = now;
    if (state->in_flight == 0) {
        *next = FL_TIME_NEVER;
        return FILCH_NOT_READY;
    }
    if (sim_lost(device, error)) /* an item ending exactly at the loss has not ended */
        return FILCH_DEVICE_LOST;
    if (oldest->end > now) {
        *next = next_of(state, oldest);
        return FILCH_NOT_READY;
    }
    *tag = oldest->tag;
    *busy_ns = oldest->busy_ns;
    state->first = (state->first + 1) % FL_SIM_TILES;
    state->in_flight--;
    *next = state->in_flight > 0 ? next_of(state, &state->tiles[state->first]) : FL_TIME_NEVER;
    return FILCH_OK;
}

static double sim_tile_ns(const fl_device *device, double cost, uint64_t from)
{
    const sim_state *state = device->state;

    return fl_pace_foretell(&state->pace, from, cost);
}

static void device_describe(fl_device *device, const fl_sim_model *model, uint32_t member,
                            uint32_t ordinal)
{
    filch_device_info *info = &device->info;

    info->size = sizeof *info;
    if (model->name[0] == '\0')
        (void)snprintf(info->name, sizeof info->name, "sim:%u", ordinal);
    else if (model->count > 1)
        (void)snprintf(info->name, sizeof info->name, "%s:%u", model->name, member);
    else
        (void)snprintf(info->name, sizeof info->name, "%s", model->name);
    (void)snprintf(info->model, sizeof info->model, "simulated, %g units/s", model->speed);
    info->backend = FILCH_BACKEND_SIM;
    info->ordinal = ordinal;
    info->team = 1;
    info->score = model->score;
    info->memory_total = model->memory;
    device->backend = &fl_sim_backend;
    device->implementations = model->implementations;
    device->calls_host_fn = true;
    device->window = model->window;
    device->overhead_ns = (uint64_t)(model->overhead_us * 1e3 + 0.5);
    device->joins_at = fl_time_from_seconds(model->joins_at);
    device->leaves_at = fl_time_from_seconds(model->leaves_at);
    device->returns_at = fl_time_from_seconds(model->returns_at);
}

static filch_status state_open(fl_device *device, const fl_discovery *how,
                               const fl_sim_model *model)
{
    sim_state *state = fl_alloc_zeroed(how->memory, sizeof *state);

    if (state == NULL || fl_pace_open(&state->pace, how->memory, model->speed, model->steps,
                                      model->step_count, model->overhead_us) != FILCH_OK) {
        fl_free(how->memory, state, sizeof *state);
        return FILCH_OUT_OF_MEMORY;
    }
    state->memory = model->memory;
    state->pace.until_misread = model->misread_tile;
    state->pace.misread_by = model->misread_by;
    state->lost_at = fl_time_from_seconds(model->lost_at);
    state->clock = how->clock;
    device->state = state;
    return FILCH_OK;
}

static filch_status device_add(const fl_discovery *how, const fl_sim_model *model,
                               fl_sim_machine *machine, uint32_t member, uint32_t ordinal,
                               uint32_t place, fl_device **devices, size_t *count, size_t *capacity)
{
    filch_status status =
        fl_array_reserve(how->memory, devices, capacity, *count + 1, sizeof **devices);

    if (status != FILCH_OK)
        return status;

    fl_device *device = &(*devices)[*count];
    const fl_device *home = *devices;

    memset(device, 0, sizeof *device);
    device->place = place;
    device_describe(device, model, member, ordinal);
    while (home != device && home->place != place)
        home++;
    status = machine != NULL ? fl_sim_memory_add(device, how, model, machine, home)
                             : state_open(device, how, model);
    *count += status == FILCH_OK;
    return status;
}

static filch_status models_add(const fl_discovery *how, const fl_sim_description *description,
                               fl_sim_machine *machine, fl_device **devices, size_t *count,
                               size_t *capacity)
{
    uint32_t places[FL_DEVICE_LIMIT]; /* memory nodes of the elements */
    uint32_t ordinal = 0;
    uint32_t place = 1;
    for (size_t i = 0; i < *count; i++) {
        ordinal += (*devices)[i].info.backend == FILCH_BACKEND_SIM;
        if ((*devices)[i].place >= place)
            place = (*devices)[i].place + 1;
    }
    for (size_t m = 0; m < description->count; m++) {
        const fl_sim_model *model = &description->models[m];

        for (uint32_t member = 0; member < model->count; member++) {
            uint32_t at = model->home == m ? place++ : places[model->home];
            filch_status status =
                device_add(how, model, machine, member, ordinal++, at, devices, count, capacity);

            places[m] = at;

            if (status != FILCH_OK)
                return fl_error_fill(how->error, (fl_fault){.status = status},
                                     "no memory for simulated device %u", ordinal - 1);
        }
    }
    return FILCH_OK;
}

/* Checks the combination of files. Either all memories track tiles or none, and links join devices
 * of a single file only. */
static filch_status links_check(const fl_discovery *how, const fl_sim_description *description,
                                const fl_device *devices, size_t count, const char *path)
{
    bool has_links = description->has_links;
    bool has_others = false;

    for (size_t i = 0; i < count; i++) {
        has_others = has_others || devices[i].info.backend == FILCH_BACKEND_SIM;
        has_links = has_links || devices[i].backend == &fl_sim_memory_backend;
    }
    if (!has_links || !has_others)
        return FILCH_OK;
    return fl_error_fill(how->error, (fl_fault){.status = FILCH_UNSUPPORTED, .label = path},
                         "simulated devices with links must all be in one file; %s", path);
}

static filch_status sim_enumerate(const fl_discovery *how, const fl_device_spec *spec,
                                  fl_device **devices, size_t *count, size_t *capacity)
{
    size_t before = *count;
    size_t wanted = 0;
    fl_sim_description description;
    fl_sim_machine *machine = NULL;
    filch_status status = fl_sim_describe(&description, spec->file, how);

    if (status != FILCH_OK)
        return status;
    for (size_t m = 0; m < description.count; m++)
        wanted += description.models[m].count;
    status = fl_backend_check_limit(how, before, wanted, (fl_fault){.label = spec->file});
    if (status == FILCH_OK)
        status = links_check(how, &description, *devices, *count, spec->file);
    if (status == FILCH_OK && description.has_links) {
        machine = fl_sim_machine_new(how, &description);
        if (machine == NULL)
            status = fl_error_fill(how->error, (fl_fault){.status = FILCH_OUT_OF_MEMORY},
                                   "no memory for simulated links");
    }
    if (status == FILCH_OK)
        status = models_add(how, &description, machine, devices, count, capacity);
    if (status != FILCH_OK) {
        while (*count > before) {
            --*count;
            (*devices)[*count].backend->device->close(&(*devices)[*count], how->memory);
        }
    }
    if (machine != NULL)
        fl_sim_machine_drop(machine); /* the devices hold the machine */
    fl_sim_description_free(&description, how->memory);
    return status;
}

static const fl_device_ops sim_device_ops = {
    .enumerate = sim_enumerate,
    .close = sim_close,
    .memory_free = sim_memory_free,
    .lost = sim_lost,
    .item_ns = sim_tile_ns,
};

static const fl_queue_ops sim_queue_ops = {
    .launch = sim_launch,
    .poll = sim_poll,
};

const fl_backend fl_sim_backend = {
    .name = "sim",
    .kind = FILCH_BACKEND_SIM,
    .is_virtual = true,
    .device = &sim_device_ops,
    .queue = &sim_queue_ops,
};
