/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file speed.h
 * What was measured of codelets on devices, and files that keep it for later runs.
 */
#ifndef FILCH_SPEED_H
#define FILCH_SPEED_H

#include "filch/codelet.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Where an estimate comes from. */
typedef enum filch_speed_source {
    FILCH_SPEED_UNKNOWN = 0, /**< There is none. */
    FILCH_SPEED_PRIOR = 1, /**< An earlier run, by filch_config.speeds: little was measured yet. */
    FILCH_SPEED_MEASURED = 2 /**< Tiles of this run. */
} filch_speed_source;

/** Estimated time of a codelet's tiles on a device: `fixed_ns` + work × `ns_per_unit`. */
typedef struct filch_speed {
    size_t size;               /**< sizeof(filch_speed). */
    filch_speed_source source; /**< Where the estimate comes from; where that is nowhere all but
                                    timed is 0. */
    uint32_t samples;          /**< Timed tiles that it rests on, at most 16: those since the speed
                                    changed last. */
    double ns_per_unit;        /**< Nanoseconds a unit of work, beside the fixed part. */
    double fixed_ns;        /**< Nanoseconds that each tile takes whatever its work; 0 until tiles
                                 of unlike work were timed. Never negative. */
    double spread;          /**< Median deviation of the samples, as a part of what was expected
                                 of them; 0 where there are none. */
    double most_work;       /**< The most work that a timed tile had. */
    uint64_t timed;         /**< Tiles timed so far, with those that were not believed. */
    uint32_t changes;       /**< How often the speed was found to have changed for good. */
    uint32_t prior_refuted; /**< 1: there was a prior, and what was measured disagreed. */
} filch_speed;

/**
 * The speed of a codelet on a device, as work placed from now on is predicted by.
 *
 * The first tile is not counted, and then the first 16 of a codelet on a device are timed, all
 * chunks of batches, and of other tiles about one in 64.
 *
 * @param codelet the codelet.
 * @param device  index of a device of its runtime.
 * @param speed   receives the estimate; its size must be set. While the device works it is recent,
 *                but its members need not be of one moment.
 * @return FILCH_OK (also where nothing is known); FILCH_BAD_INDEX; FILCH_INVALID_ARGUMENT (null
 *         @p speed, or its size is too small); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API filch_status filch_codelet_speed(filch_codelet *codelet, uint32_t device,
                                           filch_speed *speed);

/** What became of a runtime's file of speeds; see filch_speeds_info(). */
typedef struct filch_speeds {
    size_t size;         /**< sizeof(filch_speeds). */
    filch_status loaded; /**< FILCH_OK; FILCH_NOT_FOUND: no file was asked for, or it is not there
                              yet; FILCH_DATA: it is damaged, of another version of filch or none of
                              its, or other users may write it; FILCH_IO, FILCH_OUT_OF_MEMORY: it
                              could not be read. */
    filch_status saved;  /**< What filch_speeds_save() returned last; FILCH_NOT_READY: it was not
                              called yet. */
    uint64_t records;    /**< Speeds found in the file. */
    uint64_t used;       /**< Of these, how often one became the prior of a codelet on a device. */
    uint64_t saves;      /**< Calls of filch_speeds_save() that succeeded. */
} filch_speeds;

/**
 * Tells what became of the file that filch_config.speeds, or FILCH_SPEEDS, names.
 *
 * @param runtime the runtime.
 * @param speeds  receives the record; its size must be set.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (null @p speeds, or its size is too small);
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: short locks. Since 0.1.
 */
FILCH_API filch_status filch_speeds_info(filch_runtime *runtime, filch_speeds *speeds);

/**
 * Saves what was measured so far into the runtime's file of speeds, as destroying the runtime does
 * by itself; what the file has of other devices and codelets stays there.
 *
 * The file is replaced as a whole, so that nobody reads half of one; of two processes that save at
 * once the second adds to what the first has saved. It has at most 4,096 speeds, those saved last.
 * A damaged file, and one of another version, is replaced; what is no file of speeds is not.
 *
 * @param runtime the runtime.
 * @return FILCH_OK (also where nothing was measured); FILCH_WRONG_STATE (no file was asked for);
 *         FILCH_DATA (it is no file of speeds, or other users may write it); FILCH_IO (it cannot be
 *         written); FILCH_TIMEOUT (another process held it for a second); FILCH_OUT_OF_MEMORY;
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread, also while jobs run. Blocking: on the disk, and up to a second for
 * others who save. Since 0.1.
 */
FILCH_API filch_status filch_speeds_save(filch_runtime *runtime);

#ifdef __cplusplus
}
#endif

#endif
