/* SPDX-License-Identifier: Apache-2.0 */
#include "module/image.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Version of the key: change the text with every change in the meaning of a key. */
#define CACHE_FORMAT "filch image 1"
#define HEADER_NAME "filch/kernel.h"
/* Maximum length of an image's path: see fl_settings_cache_path. */
#define PATH_MOST 4096

/* Number of filch's own options, put before the request's options. */
#define OWN_OPTIONS 2

/* Text of kernels/filch_kernel.h, embedded by the build. */
extern const char fl_kernel_header[];
extern const unsigned long fl_kernel_header_size;

typedef enum entry_state { ENTRY_UNDER_WAY, ENTRY_READY, ENTRY_FAILED } entry_state;

struct fl_image_entry {
    fl_image_entry *next; /* next entry in the bucket, unless the entry has failed */
    fl_digest key;
    fl_image image;
    entry_state state;
    uint32_t waiters;
    filch_error error; /* error of a failure, without a label */
};

/* A parsed request. */
typedef struct plan {
    fl_nvrtc_program program;
    uint32_t arch;
    int driver_version;
    char arch_option[40];
    const char **options; /* program.option_count pointers, then the options' text, in a single
                             block */
    size_t options_size;
    bool is_closed; /* the key covers every input */
    fl_digest key;
} plan;

/* --- Beginning and end --- */

filch_status fl_images_init(fl_images *images, const fl_memory *memory, const fl_log *log,
                            const fl_settings *settings)
{
    char path[PATH_MOST];
    filch_status status;

    memset(images, 0, sizeof *images);
    images->memory = memory;
    images->log = log;
    images->disk_limit = (uint64_t)settings->cache_limit;
    memcpy(images->nvrtc_path, settings->nvrtc, sizeof images->nvrtc_path);
    if (images->disk_limit > 0 && fl_settings_cache_path(settings, path, sizeof path) == FILCH_OK) {
        images->disk_path_size = strlen(path) + 1;
        images->disk_path = fl_alloc(memory, images->disk_path_size);
        if (images->disk_path == NULL)
            return FILCH_OUT_OF_MEMORY;
        memcpy(images->disk_path, path, images->disk_path_size);
    }
    status = fl_mutex_init(&images->lock);
    if (status != FILCH_OK)
        goto path;
    status = fl_cond_init(&images->built);
    if (status == FILCH_OK)
        return FILCH_OK;
    fl_mutex_fini(&images->lock);
path:
    fl_free(memory, images->disk_path, images->disk_path_size);
    return status;
}

static void free_image(const fl_images *images, fl_image *image)
{
    /* Cast: the block is an allocation of image.c; const protects the readers. */
    fl_free(images->memory, (void *)(uintptr_t)image->data, image->bytes);
}

void fl_images_fini(fl_images *images)
{
    for (size_t i = 0; i < FL_IMAGE_BUCKETS; i++) {
        for (fl_image_entry *entry = images->buckets[i], *next; entry != NULL; entry = next) {
            next = entry->next;
            free_image(images, &entry->image);
            fl_free(images->memory, entry, sizeof *entry);
        }
    }
    if (images->has_disk)
        fl_disk_close(&images->disk);
    fl_nvrtc_unload(&images->nvrtc);
    fl_cond_fini(&images->built);
    fl_mutex_fini(&images->lock);
    fl_free(images->memory, images->disk_path, images->disk_path_size);
}

void fl_images_stats(fl_images *images, fl_image_stats *stats)
{
    fl_mutex_lock(&images->lock);
    *stats = images->stats;
    fl_mutex_unlock(&images->lock);
}

/* --- Compiler and disk, found once --- */

/* Loads NVRTC unless loaded. Caller holds the lock. */
static filch_status need_nvrtc(fl_images *images, filch_error *error)
{
    filch_status status;

    if (images->nvrtc.library != NULL)
        return FILCH_OK;
    status =
        fl_nvrtc_load(&images->nvrtc, images->nvrtc_path, images->driver_version / 1000, error);
    if (status == FILCH_OK)
        fl_log_write(images->log, FILCH_LOG_INFO, "NVRTC %d.%d compiles kernels",
                     images->nvrtc.major, images->nvrtc.minor);
    return status;
}

/* Opens the disk unless tried before. Caller holds the lock. A broken disk gets a single log
 * message, and the cache works without the disk. */
static void need_disk(fl_images *images)
{
    filch_error error = FILCH_ERROR_INIT;

    if (images->has_tried_disk || images->disk_path == NULL)
        return;
    images->has_tried_disk = true;
    if (fl_disk_open(&images->disk, images->memory, images->log, images->disk_path,
                     images->disk_limit, FL_DISK_CREATE, &error) != FILCH_OK) {
        fl_log_write(images->log, FILCH_LOG_WARNING, "compiled kernels are not kept on disk: %s",
                     error.text);
        return;
    }
    images->has_disk = true;
    if (!images->disk.is_writable)
        fl_log_write(images->log, FILCH_LOG_WARNING,
                     "newly compiled kernels are not kept on disk: %s cannot be written",
                     images->disk_path);
}

void fl_images_set_driver(fl_images *images, int version)
{
    fl_mutex_lock(&images->lock);
    images->driver_version = version;
    fl_mutex_unlock(&images->lock);
}

/* --- Requests --- */

static bool begins_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Returns whether an option makes the image depend on files outside the key. */
static bool reads_files(const char *option)
{
    static const char *const starts[] = {"-I",     "--include-path", "-include", "--pre-include",
                                         "-pch",   "--pch",          "-use-pch", "--use-pch",
                                         "--use-b"};

    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        if (begins_with(option, starts[i]))
            return true;
    }
    return false;
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Cuts text into words in place; without an array only counts the words, and cuts nothing. */
static int split(char *text, const char **words)
{
    int count = 0;

    while (*text != '\0') {
        if (is_blank(*text)) {
            text++;
            continue;
        }
        if (words != NULL)
            words[count] = text;
        count++;
        while (*text != '\0' && !is_blank(*text))
            text++;
        if (words != NULL && *text != '\0')
            *text++ = '\0';
    }
    return count;
}

static filch_status plan_options(const fl_images *images, const fl_image_request *request, plan *p,
                                 filch_error *error)
{
    const char *text = request->options != NULL ? request->options : "";
    size_t size = strlen(text) + 1;
    size_t slots = OWN_OPTIONS + size / 2; /* a blank separates two words */
    char *copy;

    p->options_size = slots * sizeof *p->options + size;
    p->options = fl_alloc(images->memory, p->options_size);
    if (p->options == NULL)
        return fl_error_fill(error, (fl_fault){.status = FILCH_OUT_OF_MEMORY},
                             "no memory for the options");
    copy = (char *)(p->options + slots);
    memcpy(copy, text, size);
    p->options[0] = p->arch_option;
    /* Excludes the working directory from the search for headers. */
    p->options[1] = "--no-source-include";
    p->program.option_count = OWN_OPTIONS + split(copy, p->options + OWN_OPTIONS);
    p->program.options = p->options;
    p->is_closed = true;
    for (int i = OWN_OPTIONS; i < p->program.option_count; i++) {
        if (begins_with(p->options[i], "--gpu-architecture") || begins_with(p->options[i], "-arch"))
            return fl_error_fill(error, (fl_fault){.status = FILCH_INVALID_ARGUMENT},
                                 "the option %s names an architecture; filch compiles for each "
                                 "device's own",
                                 p->options[i]);
        p->is_closed = p->is_closed && !reads_files(p->options[i]);
    }
    return FILCH_OK;
}

/* Chooses a cubin where the compiler knows the target, else PTX: the driver can compile PTX for
 * newer targets. */
static filch_status plan_target(const fl_images *images, uint32_t arch, plan *p, filch_error *error)
{
    const fl_nvrtc *nvrtc = &images->nvrtc;

    p->arch = fl_nvrtc_nearest(nvrtc, arch);
    p->program.is_ptx = p->arch != arch;
    if (p->arch == 0)
        return fl_error_fill(error, (fl_fault){.status = FILCH_UNSUPPORTED},
                             "NVRTC %d.%d compiles for sm_%" PRIu32
                             " and newer only; an older NVRTC is needed",
                             nvrtc->major, nvrtc->minor, nvrtc->archs[0]);
    (void)snprintf(p->arch_option, sizeof p->arch_option, "--gpu-architecture=%s_%" PRIu32,
                   p->program.is_ptx ? "compute" : "sm", p->arch);
    return FILCH_OK;
}

static void add_text(fl_sha256 *sha, const char *text)
{
    fl_sha256_add_field(sha, text, strlen(text));
}

static fl_digest plan_key(const fl_images *images, const plan *p)
{
    char version[64];
    fl_sha256 sha;

    (void)snprintf(version, sizeof version, "NVRTC %d.%d, driver %d, options %d",
                   images->nvrtc.major, images->nvrtc.minor,
                   p->program.is_ptx ? p->driver_version : 0, p->program.option_count);
    fl_sha256_init(&sha);
    add_text(&sha, CACHE_FORMAT);
    add_text(&sha, version);
    for (int i = 0; i < p->program.option_count; i++)
        add_text(&sha, p->options[i]);
    add_text(&sha, HEADER_NAME);
    fl_sha256_add_field(&sha, fl_kernel_header, fl_kernel_header_size);
    add_text(&sha, p->program.source);
    return fl_sha256_finish(&sha);
}

/* Makes the plan of a request. On failure the plan holds no resources. */
static filch_status make_plan(fl_images *images, const fl_image_request *request, plan *p,
                              filch_error *error)
{
    filch_status status;

    memset(p, 0, sizeof *p);
    if (request->source == NULL || request->arch == 0)
        return fl_error_fill(error, (fl_fault){.status = FILCH_INVALID_ARGUMENT}, "there is no %s",
                             request->source == NULL ? "source" : "target");
    p->program.source = request->source;
    p->program.header_name = HEADER_NAME;
    p->program.header = fl_kernel_header;
    fl_mutex_lock(&images->lock);
    p->driver_version = images->driver_version;
    status = need_nvrtc(images, error);
    if (status == FILCH_OK)
        need_disk(images);
    fl_mutex_unlock(&images->lock);
    if (status == FILCH_OK)
        status = plan_target(images, request->arch, p, error);
    if (status == FILCH_OK)
        status = plan_options(images, request, p, error);
    if (status == FILCH_OK)
        p->key = plan_key(images, p);
    return status;
}

/* --- A single image --- */

typedef enum origin { FROM_COMPILER, FROM_COMPILER_AFTER_REFUSAL, FROM_DISK } origin;

static filch_status read_disk(fl_images *images, const plan *p, fl_image *image)
{
    fl_disk_info info;
    void *data;
    filch_status status = fl_disk_read(&images->disk, &p->key, &info, &data);

    if (status == FILCH_OK)
        *image = (fl_image){data, info.bytes, info.arch, info.is_ptx};
    return status;
}

static void say_refused(const fl_images *images, const plan *p)
{
    char name[FL_DIGEST_TEXT];

    fl_digest_format(&p->key, name);
    fl_log_write(images->log, FILCH_LOG_WARNING,
                 "the compiled kernel %s on disk is damaged or not ours: it is compiled anew",
                 name);
}

/* Warns about PTX newer than the driver. A driver reads cubins of every NVRTC of the driver's major
 * version, but PTX only of known language versions. An NVRTC of a later minor version may write a
 * newer PTX language; the driver has the final say. */
static void say_newer(const fl_images *images, const plan *p)
{
    const fl_nvrtc *nvrtc = &images->nvrtc;

    if (!p->program.is_ptx || p->driver_version == 0 ||
        nvrtc->major * 1000 + nvrtc->minor * 10 <= p->driver_version)
        return;
    fl_log_write(images->log, FILCH_LOG_WARNING,
                 "NVRTC %d.%d is newer than the driver, which is for CUDA %d.%d and may not "
                 "understand the PTX made for sm_%" PRIu32,
                 nvrtc->major, nvrtc->minor, p->driver_version / 1000,
                 p->driver_version % 1000 / 10, p->arch);
}

static filch_status compile(fl_images *images, const plan *p, fl_image *image, filch_error *error)
{
    void *data = NULL;
    size_t bytes = 0;
    filch_status status;

    say_newer(images, p);
    status = fl_nvrtc_compile(&images->nvrtc, &p->program, images->memory, images->log, &data,
                              &bytes, error);

    if (status == FILCH_OK)
        *image = (fl_image){data, bytes, p->arch, p->program.is_ptx};
    return status;
}

static void write_disk(fl_images *images, const plan *p, const char *label, const fl_image *image)
{
    fl_disk_info info = {.arch = image->arch, .is_ptx = image->is_ptx, .bytes = image->bytes};

    (void)snprintf(info.label, sizeof info.label, "%s", label);
    fl_disk_write(&images->disk, &p->key, &info, image->data);
}

/* Builds the image, in the only thread that makes the image. Caller does not hold the lock. */
static filch_status build(fl_images *images, const plan *p, const char *label, fl_image *image,
                          origin *from, filch_error *error)
{
    filch_status status;
    fl_disk_lock lock;

    *from = FROM_COMPILER;
    if (!images->has_disk || !p->is_closed)
        return compile(images, p, image, error);
    status = read_disk(images, p, image);
    if (status == FILCH_NOT_FOUND || status == FILCH_DATA) {
        lock = fl_disk_lock_key(&images->disk, &p->key);
        /* Repeats the read: a second process may have made the image between the first read and the
         * lock. */
        status = read_disk(images, p, image);
        if (status == FILCH_DATA) {
            *from = FROM_COMPILER_AFTER_REFUSAL;
            say_refused(images, p);
        }
        if (status == FILCH_NOT_FOUND || status == FILCH_DATA) {
            status = compile(images, p, image, error);
            if (status == FILCH_OK)
                write_disk(images, p, label, image);
            fl_disk_unlock(&lock);
            return status;
        }
        fl_disk_unlock(&lock);
    }
    *from = FROM_DISK;
    if (status != FILCH_OK)
        return fl_error_fill(error, (fl_fault){.status = status},
                             "no memory for a kernel image from disk");
    return FILCH_OK;
}

/* --- The table --- */

static fl_image_entry **bucket_of(fl_images *images, const fl_digest *key)
{
    return &images->buckets[key->bytes[0] % FL_IMAGE_BUCKETS];
}

static fl_image_entry *find(fl_images *images, const fl_digest *key)
{
    fl_image_entry *entry = *bucket_of(images, key);

    while (entry != NULL && memcmp(&entry->key, key, sizeof *key) != 0)
        entry = entry->next;
    return entry;
}

static void remove_entry(fl_images *images, const fl_image_entry *entry)
{
    fl_image_entry **at = bucket_of(images, &entry->key);

    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
}

/* Waits for an entry. Caller holds the lock; waiting releases the lock meanwhile. */
static filch_status await(fl_images *images, fl_image_entry *entry, const fl_image **image,
                          filch_error *error)
{
    filch_status status = FILCH_OK;

    entry->waiters++;
    while (entry->state == ENTRY_UNDER_WAY)
        fl_cond_wait(&images->built, &images->lock);
    entry->waiters--;
    if (entry->state == ENTRY_READY) {
        images->stats.memory_hits++;
        *image = &entry->image;
        return FILCH_OK;
    }
    images->stats.failures++;
    status = entry->error.status;
    fl_error_copy(error, &entry->error);
    /* Frees a failed entry in the last waiter. */
    if (entry->waiters == 0)
        fl_free(images->memory, entry, sizeof *entry);
    return status;
}

/* Makes an entry. Caller holds the lock; building releases the lock meanwhile. */
static filch_status make_entry(fl_images *images, const plan *p, const char *label,
                               const fl_image **image, filch_error *error)
{
    fl_image_entry *entry = fl_alloc_zeroed(images->memory, sizeof *entry);
    filch_status status;
    origin from;

    if (entry == NULL)
        return fl_error_fill(error, (fl_fault){.status = FILCH_OUT_OF_MEMORY},
                             "no memory to remember the image");
    entry->key = p->key;
    entry->error = (filch_error)FILCH_ERROR_INIT;
    entry->next = *bucket_of(images, &p->key);
    *bucket_of(images, &p->key) = entry;
    fl_mutex_unlock(&images->lock);
    status = build(images, p, label, &entry->image, &from, error);
    fl_mutex_lock(&images->lock);
    images->stats.disk_refused += from == FROM_COMPILER_AFTER_REFUSAL;
    if (status == FILCH_OK) {
        images->stats.compiles += from != FROM_DISK;
        images->stats.disk_hits += from == FROM_DISK;
        images->stats.bytes += entry->image.bytes;
        entry->state = ENTRY_READY;
        *image = &entry->image;
    } else {
        images->stats.failures++;
        fl_error_copy(&entry->error, error);
        entry->state = ENTRY_FAILED;
        remove_entry(images, entry);
        if (entry->waiters == 0)
            fl_free(images->memory, entry, sizeof *entry);
    }
    fl_cond_broadcast(&images->built);
    return status;
}

/* Copies an error, and puts the requester's label on the error. */
static filch_status blame(const fl_image_request *request, const filch_error *from,
                          filch_error *error)
{
    const fl_fault fault = {.status = from->status,
                            .native_code = from->native_code,
                            .line = from->line,
                            .native_name = from->native_name,
                            .call = from->call,
                            .label = request->label};
    const char *label = request->label != NULL ? request->label : "kernel";

    if (from->line > 0)
        return fl_error_fill(error, fault, "%s:%lld: %s (for sm_%" PRIu32 ")", label,
                             (long long)from->line, from->text, request->arch);
    return fl_error_fill(error, fault, "%s, for sm_%" PRIu32 ": %s", label, request->arch,
                         from->text);
}

filch_status fl_image_get(fl_images *images, const fl_image_request *request,
                          const fl_image **image, filch_error *error)
{
    const char *label = request->label != NULL ? request->label : "";
    filch_error cause = FILCH_ERROR_INIT;
    filch_status status;
    plan p;

    status = make_plan(images, request, &p, &cause);
    fl_mutex_lock(&images->lock);
    if (status == FILCH_OK) {
        fl_image_entry *entry = find(images, &p.key);

        status = entry != NULL ? await(images, entry, image, &cause)
                               : make_entry(images, &p, label, image, &cause);
    } else {
        images->stats.failures++;
    }
    fl_mutex_unlock(&images->lock);
    fl_free(images->memory, p.options, p.options_size);
    return status == FILCH_OK ? FILCH_OK : blame(request, &cause, error);
}
