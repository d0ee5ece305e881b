/* SPDX-License-Identifier: Apache-2.0 */
#include "module/kernel.h"

filch_status fl_modules_init(fl_modules *modules, fl_core *core, fl_device *devices,
                             size_t device_count, uint32_t place_count)
{
    *modules = (fl_modules){.core = core,
                            .devices = devices,
                            .device_count = (uint32_t)device_count,
                            .place_count = place_count};
    filch_status status =
        fl_images_init(&modules->images, &core->memory, &core->log, &core->settings);
    for (size_t d = 0; status == FILCH_OK && d < device_count; ++d) {
        if (devices[d].backend->module != NULL) { /* a process has a single driver */
            fl_images_set_driver(&modules->images,
                                 devices[d].backend->module->version(&devices[d]));
            break;
        }
    }
    return status;
}

void fl_modules_fini(fl_modules *modules)
{
    fl_images_fini(&modules->images);
}

const char *fl_kernel_check(const filch_cuda_desc *desc)
{
    int given = (desc->source != NULL) + (desc->image != NULL) + (desc->enqueue != NULL);
    return given != 1 ? "exactly one of source, image and enqueue must be given"
           : desc->enqueue == NULL && (desc->entry == NULL || desc->entry[0] == '\0')
               ? "the kernel's entry has no name"
           : desc->image != NULL && desc->image_bytes == 0 ? "the image has no bytes"
           : desc->enqueue == NULL && (desc->open != NULL || desc->close != NULL)
               ? "open and close belong to an enqueue function"
           : desc->source == NULL && desc->options != NULL ? "only a source takes options"
                                                           : NULL;
}

static bool has_bit(const uint64_t *bits, uint32_t i)
{
    return (bits[i / 64] >> i % 64 & 1) != 0;
}

static fl_kernel *kernel_new(const fl_modules *modules, const filch_cuda_desc *desc)
{
    size_t head = (sizeof(fl_kernel) + 15) & ~(size_t)15;
    size_t places = modules->place_count * sizeof(fl_loaded);
    size_t states = modules->device_count * sizeof(void *[FL_LANE_LIMIT]);
    size_t bytes = head + places + states + modules->device_count;
    fl_kernel *kernel = fl_alloc_zeroed(&modules->core->memory, bytes);
    if (kernel == NULL) {
        return NULL;
    }
    kernel->bytes = bytes;
    kernel->enqueue = desc->enqueue;
    kernel->open = desc->open;
    kernel->close = desc->close;
    kernel->user = desc->user;
    kernel->shape = desc->shape;
    fl_kernel_complete_shape(&kernel->shape);
    kernel->shape_of = desc->shape_of;
    char *at = (char *)kernel + head;
    kernel->places = (fl_loaded *)(void *)at;
    kernel->states = (void *(*)[FL_LANE_LIMIT])(void *)(at + places);
    kernel->open_lanes = (uint8_t *)(at + places + states);
    return kernel;
}

/* --- Enqueue functions --- */

typedef struct fl_opening {
    fl_kernel *kernel;
    uint32_t device;
    int code;
} fl_opening;

static int open_lane(const filch_lane *lane, void *user)
{
    fl_opening *opening = user;
    fl_kernel *kernel = opening->kernel;
    int code = kernel->open(lane, kernel->user, &kernel->states[opening->device][lane->lane]);
    if (code == 0) {
        kernel->open_lanes[opening->device] |= (uint8_t)(1u << lane->lane);
    }
    opening->code = code;
    return code;
}

static int close_lane(const filch_lane *lane, void *user)
{
    const fl_opening *opening = user;
    const fl_kernel *kernel = opening->kernel;
    if ((kernel->open_lanes[opening->device] >> lane->lane & 1) != 0) {
        kernel->close(lane, kernel->user, kernel->states[opening->device][lane->lane]);
    }
    return 0;
}

static filch_status open_device(fl_kernel *kernel, fl_device *device, const char *name,
                                filch_error *error)
{
    fl_opening opening = {kernel, device->info.index, 0};
    if (kernel->open == NULL ||
        device->backend->interop->each_lane(device, open_lane, &opening) == 0) {
        return FILCH_OK;
    }
    return fl_error_fill(error,
                         (fl_fault){.status = FILCH_BACKEND,
                                    .native_code = opening.code,
                                    .device = device->info.name,
                                    .label = name},
                         "the state of '%s' could not be made on %s: its open function returned %d",
                         name, device->info.name, opening.code);
}

/* --- Kernels --- */

static filch_status find_image(fl_modules *modules, const filch_cuda_desc *desc, const char *name,
                               uint32_t target, const void **data, size_t *bytes,
                               filch_error *error)
{
    if (desc->image != NULL) {
        *data = desc->image;
        *bytes = desc->image_bytes;
        return FILCH_OK;
    }
    const fl_image_request request = {
        .label = name, .source = desc->source, .options = desc->options, .arch = target};
    const fl_image *image;
    filch_status status = fl_image_get(&modules->images, &request, &image, error);
    if (status == FILCH_OK) {
        *data = image->data;
        *bytes = image->bytes;
    }
    return status;
}

static filch_status load_place(fl_modules *modules, const filch_cuda_desc *desc, const char *name,
                               const filch_shape *shape, fl_device *device, fl_loaded *loaded,
                               filch_error *error)
{
    const fl_backend *backend = device->backend;
    const void *data;
    size_t bytes;
    if (loaded->module != NULL) {
        return FILCH_OK; /* loaded for an earlier device of the place */
    }
    filch_status status =
        find_image(modules, desc, name, backend->module->target(device), &data, &bytes, error);
    if (status != FILCH_OK) {
        return status;
    }
    status = backend->module->load(device, data, bytes, name, &loaded->module, error);
    if (status != FILCH_OK) {
        loaded->module = NULL;
        return status;
    }
    status = backend->module->function_get(device, loaded->module, desc->entry, name,
                                           &loaded->function, error);
    if (status != FILCH_OK) {
        backend->module->unload(device, loaded->module);
        loaded->module = NULL;
        return status;
    }
    loaded->function.waits = desc->waits && loaded->function.can_wait;
    loaded->fits =
        desc->shape_of == NULL && fl_kernel_check_shape(&loaded->function, shape) == NULL;
    return FILCH_OK;
}

filch_status fl_kernel_make(fl_modules *modules, const filch_cuda_desc *desc, const char *name,
                            uint64_t *runs_on, fl_kernel **made, filch_error *error)
{
    fl_kernel *kernel = NULL;
    filch_status first = FILCH_OK;
    bool any = false;
    *made = NULL;
    for (uint32_t d = 0; d < modules->device_count; ++d) {
        fl_device *device = &modules->devices[d];
        if (!has_bit(runs_on, d) || (device->implementations & FL_IMPL_CUDA) == 0 ||
            device->backend->module == NULL) {
            any = any || has_bit(runs_on, d);
            continue;
        }
        if (kernel == NULL && (kernel = kernel_new(modules, desc)) == NULL) {
            return fl_error_fill(error, (fl_fault){.status = FILCH_OUT_OF_MEMORY, .label = name},
                                 "no memory for a kernel");
        }
        filch_error reason = FILCH_ERROR_INIT;
        filch_status status = kernel->enqueue != NULL
                                  ? open_device(kernel, device, name, &reason)
                                  : load_place(modules, desc, name, &kernel->shape, device,
                                               &kernel->places[device->place], &reason);
        if (status == FILCH_OK) {
            any = true;
            continue;
        }
        runs_on[d / 64] &= ~((uint64_t)1 << d % 64);
        fl_log_write(&modules->core->log, FILCH_LOG_WARNING, "codelet '%s' cannot run on %s: %s",
                     name, device->info.name, reason.text);
        if (first == FILCH_OK) {
            first = status;
            fl_error_copy(error, &reason);
        }
        if (status == FILCH_COMPILE) { /* a mistake in the source, independent of the device */
            fl_kernel_free(modules, kernel);
            return status;
        }
    }
    if (!any) {
        fl_kernel_free(modules, kernel);
        return first;
    }
    *made = kernel;
    return FILCH_OK;
}

void fl_kernel_free(fl_modules *modules, fl_kernel *kernel)
{
    if (kernel == NULL) {
        return;
    }
    for (uint32_t d = 0; d < modules->device_count; ++d) {
        fl_device *device = &modules->devices[d];
        if (kernel->close != NULL && kernel->open_lanes[d] != 0) {
            fl_opening opening = {kernel, d, 0};
            device->backend->interop->each_lane(device, close_lane, &opening);
        }
        fl_loaded *loaded = &kernel->places[device->place];
        if (loaded->module != NULL) {
            device->backend->module->unload(device, loaded->module);
            loaded->module = NULL;
        }
    }
    fl_free(&modules->core->memory, kernel, kernel->bytes);
}

/* Returns whether the grid consists of whole clusters; true without clusters. */
static bool is_whole(const filch_shape *shape)
{
    for (int i = 0; i < 3; ++i) {
        if (shape->cluster[i] > 1 && shape->grid[i] % shape->cluster[i] != 0) {
            return false;
        }
    }
    return true;
}

void fl_kernel_complete_shape(filch_shape *shape)
{
    for (int i = 0; i < 3; ++i) {
        shape->grid[i] = shape->grid[i] != 0 ? shape->grid[i] : 1;
        shape->block[i] = shape->block[i] != 0 ? shape->block[i] : 1;
    }
}

static bool is_within(const uint32_t size[3], const uint32_t most[3])
{
    return size[0] <= most[0] && size[1] <= most[1] && size[2] <= most[2];
}

const char *fl_kernel_check_shape(const fl_function *function, const filch_shape *shape)
{
    uint64_t threads = (uint64_t)shape->block[0] * shape->block[1] * shape->block[2];
    /* Checks every axis first: the product of three excessive sizes may overflow to an arbitrary
     * value. */
    return !is_within(shape->block, function->most_block) || threads > function->most_threads
               ? "a block has more threads than this GPU, or the kernel's registers, allow"
           : !is_within(shape->grid, function->most_grid)
               ? "the grid has more blocks than this GPU takes"
           : shape->shared_bytes > function->most_shared
               ? "a block asks for more shared memory than the kernel leaves it on this GPU"
           : fl_shape_has_clusters(shape) && !function->has_clusters
               ? "this GPU has no clusters of blocks"
           : !is_whole(shape) ? "the grid is no multiple of its clusters"
                              : NULL;
}
