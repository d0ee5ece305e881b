/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel images: CUDA C compiled for an architecture, every image once. The cache has two levels:
 * the images of the runtime, and the images on disk (module/disk.h). A key is the SHA-256 of every
 * input of an image: the cache's format, NVRTC's version, architecture, options, headers and
 * source. For PTX, compiled further by the driver, the key also covers the driver's version. */
#ifndef FL_MODULE_IMAGE_H
#define FL_MODULE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"
#include "module/disk.h"
#include "module/nvrtc.h"

/* An image; constant for the life of the image's fl_images. */
typedef struct fl_image {
    const void *data;
    size_t bytes;
    uint32_t arch; /* architecture of the compilation; below the requested architecture only
                      where is_ptx */
    bool is_ptx;   /* text with a terminator, counted among the bytes; else a cubin */
} fl_image;

typedef struct fl_image_request {
    const char *label;   /* label of the codelet, for errors; null: no label */
    const char *source;  /* CUDA C; may include "filch/kernel.h" */
    const char *options; /* options for NVRTC, separated by blanks; null: no options */
    uint32_t arch;       /* architecture of the target, e.g. 90 */
} fl_image_request;

typedef struct fl_image_stats {
    uint64_t compiles;    /* images made by the compiler */
    uint64_t failures;    /* requests failed by the compiler, or by the compiler's absence */
    uint64_t memory_hits; /* requests answered from memory, also by waiting for a concurrent
                             request */
    uint64_t disk_hits;
    uint64_t disk_refused; /* untrustworthy files found */
    uint64_t bytes;        /* bytes of the images in memory */
} fl_image_stats;

typedef struct fl_image_entry fl_image_entry;

#define FL_IMAGE_BUCKETS 64

/* Images of a runtime. Any thread, except init and fini. */
typedef struct fl_images {
    const fl_memory *memory;
    const fl_log *log;
    char nvrtc_path[FL_SETTING_TEXT];
    char *disk_path; /* null: no disk */
    size_t disk_path_size;
    uint64_t disk_limit;
    fl_mutex lock;      /* protects every member below; not held while compiling, reading or
                           writing */
    fl_cond built;      /* signals the end of an entry's construction */
    int driver_version; /* 0: unknown */
    fl_nvrtc nvrtc;     /* loaded when first needed, then unchanged */
    fl_disk disk;       /* opened when first needed, then unchanged */
    bool has_disk;
    bool has_tried_disk;
    fl_image_entry *buckets[FL_IMAGE_BUCKETS];
    fl_image_stats stats;
} fl_images;

/* Initializes the cache; neither loads nor opens a library or folder. memory and log must outlive
 * *images; settings are copied. FILCH_OUT_OF_MEMORY, FILCH_SYSTEM: the call leaves nothing
 * behind. */
filch_status fl_images_init(fl_images *images, const fl_memory *memory, const fl_log *log,
                            const fl_settings *settings);
/* Frees the images; no request may be under way. */
void fl_images_fini(fl_images *images);

/* Sets the driver version for the images, in the format of cuDriverGetVersion (12040 for 12.4); 0,
 * the initial value: no constraint. Loads nothing. Call the function before the first request. With
 * several NVRTC libraries present, filch then chooses a library that the driver can follow; with
 * only newer libraries present, requests fail. */
void fl_images_set_driver(fl_images *images, int version);

/* Returns the image for request, from memory, from disk, or compiled. A single thread of a single
 * process compiles an image at a time, while concurrent requests for the image wait. The waiting
 * requests share a failure; filch then forgets the failure, and a later request tries again. The
 * error names the label.
 *
 * FILCH_NO_COMPILER, FILCH_COMPILER_BROKEN, FILCH_DRIVER_TOO_OLD: see fl_nvrtc_load. FILCH_COMPILE:
 * error->line and error->text name place and reason. FILCH_UNSUPPORTED: the compiler is too new for
 * the architecture. FILCH_INVALID_ARGUMENT: no source, no architecture, or an option that names an
 * architecture. FILCH_OUT_OF_MEMORY. Blocking. */
filch_status fl_image_get(fl_images *images, const fl_image_request *request,
                          const fl_image **image, filch_error *error);

void fl_images_stats(fl_images *images, fl_image_stats *stats);

#endif
