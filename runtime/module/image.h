/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel images: CUDA C compiled for an architecture, each once. There are two levels: the images
 * of this runtime, and those on disk (module/disk.h). A key is the SHA-256 of all that an image
 * follows from: this cache's format, NVRTC's version, architecture, options, headers, source, and
 * for PTX, which the driver compiles further, the driver's version. */
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

/* An image, unchanging, as long as its fl_images lives. */
typedef struct fl_image {
    const void *data;
    size_t bytes;
    uint32_t arch; /* that it was compiled for; below the wanted one only where is_ptx */
    bool is_ptx;   /* text with its terminator, which counts among the bytes; else a cubin */
} fl_image;

typedef struct fl_image_request {
    const char *label;   /* of the codelet: for errors; null: none */
    const char *source;  /* CUDA C; may include "filch/kernel.h" */
    const char *options; /* for NVRTC, separated by blanks; null: none */
    uint32_t arch;       /* the target's, e.g. 90 */
} fl_image_request;

typedef struct fl_image_stats {
    uint64_t compiles;    /* images made by the compiler */
    uint64_t failures;    /* requests that the compiler, or its absence, failed */
    uint64_t memory_hits; /* requests answered from this level, also by waiting for another */
    uint64_t disk_hits;
    uint64_t disk_refused; /* files that were there and not to be trusted */
    uint64_t bytes;        /* of the images in memory */
} fl_image_stats;

typedef struct fl_image_entry fl_image_entry;

#define FL_IMAGE_BUCKETS 64

/* All images of a runtime. Any thread, but for init and fini. */
typedef struct fl_images {
    const fl_memory *memory;
    const fl_log *log;
    char nvrtc_path[FL_SETTING_TEXT];
    char *disk_path; /* null: no disk */
    size_t disk_path_size;
    uint64_t disk_limit;
    fl_mutex lock;      /* everything below; not held while compiling, reading or writing */
    fl_cond built;      /* an entry is no longer under way */
    int driver_version; /* 0: not told */
    fl_nvrtc nvrtc;     /* loaded when first needed, then unchanged */
    fl_disk disk;       /* opened when first needed, then unchanged */
    bool has_disk;
    bool has_tried_disk;
    fl_image_entry *buckets[FL_IMAGE_BUCKETS];
    fl_image_stats stats;
} fl_images;

/* Neither loads nor opens anything. memory and log must outlive *images; settings are copied.
 * FILCH_OUT_OF_MEMORY, FILCH_SYSTEM; nothing is then left. */
filch_status fl_images_init(fl_images *images, const fl_memory *memory, const fl_log *log,
                            const fl_settings *settings);
/* Nothing may be under way. */
void fl_images_fini(fl_images *images);

/* Says which driver the images are for, as cuDriverGetVersion does (12040 for 12.4); 0, as at the
 * beginning: any. Loads nothing. Called before the first image is asked for: where there are
 * several NVRTC libraries, one that the driver can follow is then chosen, and where there are only
 * newer ones, that is the failure. */
void fl_images_set_driver(fl_images *images, int version);

/* The image for request, from memory, from disk, or compiled: by one thread of one process at a
 * time, while the others that want the same wait for it. A failure is shared by those who wait and
 * then forgotten, so that a later request tries again; it names the label.
 *
 * FILCH_NO_COMPILER, FILCH_COMPILER_BROKEN, FILCH_DRIVER_TOO_OLD: see fl_nvrtc_load. FILCH_COMPILE:
 * error->line and error->text say where and why. FILCH_UNSUPPORTED: the compiler is too new for the
 * architecture. FILCH_INVALID_ARGUMENT: no source, no architecture, or an option that names
 * another architecture. FILCH_OUT_OF_MEMORY. Blocking. */
filch_status fl_image_get(fl_images *images, const fl_image_request *request,
                          const fl_image **image, filch_error *error);

void fl_images_stats(fl_images *images, fl_image_stats *stats);

#endif
