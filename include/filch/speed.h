/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file speed.h
 * Measured speeds of codelets on devices, and files that keep the speeds for later runs.
 */
#ifndef FILCH_SPEED_H
#define FILCH_SPEED_H

#include "filch/codelet.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Source of an estimate. */
typedef enum filch_speed_source {
    FILCH_SPEED_UNKNOWN = 0, /**< No estimate exists. */
    FILCH_SPEED_PRIOR = 1,   /**< Speeds of earlier runs, by filch_runtime_desc.speeds: the present
                                run   has measured little. */
    FILCH_SPEED_MEASURED = 2 /**< Work items of the present run. */
} filch_speed_source;

/** Estimated time of a codelet's work items on a device: `fixed_ns` + work × `ns_per_unit`. */
typedef struct filch_speed {
    size_t size;               /**< sizeof(filch_speed). */
    filch_speed_source source; /**< Source of the estimate; for FILCH_SPEED_UNKNOWN every later
                                    member but timed is 0. */
    uint32_t samples;          /**< Timed items behind the estimate, at most 16: the items since
                                    the last change of speed. */
    double ns_per_unit;        /**< Nanoseconds a unit of work, beside the fixed part. */
    double fixed_ns;           /**< Nanoseconds that every item takes regardless of work; 0 until
                                    items of unequal work were timed. Never negative. */
    double spread;             /**< Median deviation of the samples, as a fraction of the expected
                                    time; 0 without samples. */
    double most_work;          /**< Largest work of a timed item. */
    uint64_t timed;            /**< Items timed so far, including rejected samples. */
    uint32_t changes;          /**< Number of detected lasting changes of speed. */
    bool prior_refuted;        /**< A prior existed, and measurements disagreed with the prior. */
} filch_speed;

/** Initializer of a ::filch_speed. */
#define FILCH_SPEED_INIT                                                             \
    {                                                                                \
        sizeof(filch_speed), FILCH_SPEED_UNKNOWN, 0, 0.0, 0.0, 0.0, 0.0, 0, 0, false \
    }

/**
 * Returns the speed of a codelet on a device, as used to predict work placed from now on.
 *
 * The first item is not counted. Then filch times the first 16 items of a codelet on a device,
 * every chunk of batches, and of further items about every 64th, or fewer where 64 take less than
 * 20 us on a core.
 *
 * @param codelet the codelet.
 * @param device  index of a device of the codelet's runtime.
 * @param speed   receives the estimate; the caller sets speed->size. While the device works the
 *                estimate is recent, but the members need not be of a single moment.
 * @return FILCH_OK (also where nothing is known); FILCH_BAD_INDEX; FILCH_INVALID_ARGUMENT (null @p
 *         speed, or too small a size); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API filch_status filch_codelet_speed(filch_codelet *codelet, uint32_t device,
                                           filch_speed *speed);

/** State of a runtime's file of speeds; see filch_runtime_speeds(). */
typedef struct filch_speeds {
    size_t size;         /**< sizeof(filch_speeds). */
    filch_status loaded; /**< FILCH_OK; FILCH_NOT_FOUND: no file was requested, or the file does
                              not exist yet; FILCH_DATA: the file is damaged, of a different
                              version of filch, or no file of speeds, or other users may write
                              the file; FILCH_IO, FILCH_OUT_OF_MEMORY: the file could not be
                              read. */
    filch_status
        saved; /**< Last result of filch_runtime_save_speeds(); FILCH_NOT_READY: no call yet. */
    uint64_t records; /**< Speeds found in the file. */
    uint64_t used;    /**< Number of times when a record became the prior of a codelet on a
                           device. */
    uint64_t saves;   /**< Calls of filch_runtime_save_speeds() that succeeded. */
} filch_speeds;

/** Initializer of a ::filch_speeds. */
#define FILCH_SPEEDS_INIT                                 \
    {                                                     \
        sizeof(filch_speeds), FILCH_OK, FILCH_OK, 0, 0, 0 \
    }

/**
 * Reports the state of the file named by filch_runtime_desc.speeds or FILCH_SPEEDS.
 *
 * @param runtime the runtime.
 * @param speeds  receives the record; the caller sets speeds->size.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (null @p speeds, or too small a size);
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: short locks. Since 0.1.
 */
FILCH_API filch_status filch_runtime_speeds(filch_runtime *runtime, filch_speeds *speeds);

/**
 * Saves the speeds measured so far into the runtime's file of speeds; destroying the runtime saves
 * the speeds, too. The file keeps its records of other devices and codelets.
 *
 * filch replaces the file as a whole, and no reader sees half a file. With two processes that save
 * at once, the second adds to the records saved by the first. The file has at most 4,096 speeds:
 * the speeds saved last. filch replaces a damaged file, and a file of a different version; filch
 * does not replace a file that is no file of speeds.
 *
 * @param runtime the runtime.
 * @return FILCH_OK (also where nothing was measured); FILCH_WRONG_STATE (no file was requested);
 *         FILCH_DATA (the path names no file of speeds, or other users may write the file);
 *         FILCH_IO (the file cannot be written); FILCH_TIMEOUT (a second process held the file for
 *         a second); FILCH_OUT_OF_MEMORY; FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread, also while jobs run. Blocking: on the disk, and up to a second for
 * concurrent savers. Since 0.1.
 */
FILCH_API filch_status filch_runtime_save_speeds(filch_runtime *runtime);

#ifdef __cplusplus
}
#endif

#endif
