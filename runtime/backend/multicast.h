/* SPDX-License-Identifier: Apache-2.0 */
/* Multicast objects of a backend: memory of several devices behind a single address. An instruction
 * at the address writes to every device's memory, or adds up the values of every device. The table
 * has single steps only: memory/host/multicast.c keeps their order, and undoes the steps.
 *
 * Releasing steps (release, unbind, unmap, give_address) are tried even on a lost device. Any
 * thread; every step may serialize the device. */
#ifndef FL_BACKEND_MULTICAST_H
#define FL_BACKEND_MULTICAST_H

#include "backend/backend.h"

typedef struct fl_multicast_ops {
    /* Returns FILCH_OK, or FILCH_UNSUPPORTED with the missing feature of the driver or device. */
    filch_status (*check)(const fl_device *device, filch_error *error);
    /* Returns the required and the recommended granularity of sizes and offsets, for an object of
     * the given number of devices. */
    filch_status (*granularity)(const fl_device *device, uint32_t devices, uint64_t bytes,
                                uint64_t *minimum, uint64_t *recommended, filch_error *error);
    /* Makes an object, for `devices` devices to be added. Returns FILCH_UNSUPPORTED unless the
     * settings allow multicast, whatever earlier checks found. */
    filch_status (*create)(const fl_device *device, const fl_settings *settings, uint32_t devices,
                           uint64_t bytes, uint64_t *object, filch_error *error);
    /* Adds a device for good. */
    filch_status (*add)(const fl_device *device, uint64_t object, filch_error *error);
    /* Binds memory of the device, from its beginning, or from an address on where the memory is
     * mapped. Blocks, like map, until every device is added. */
    filch_status (*bind)(const fl_device *device, uint64_t object, uint64_t offset, uint64_t memory,
                         uint64_t bytes, filch_error *error);
    filch_status (*bind_address)(const fl_device *device, uint64_t object, uint64_t offset,
                                 void *address, uint64_t bytes, filch_error *error);
    /* Undoes a bind of exactly the given range. */
    filch_status (*unbind)(const fl_device *device, uint64_t object, uint64_t offset,
                           uint64_t bytes, filch_error *error);
    /* Takes memory of the device without an address; *made: bytes taken, at least the bytes
     * wanted. */
    filch_status (*take_memory)(const fl_device *device, uint64_t bytes, uint64_t *memory,
                                uint64_t *made, filch_error *error);
    /* Releases an object or memory, neither bound nor mapped. */
    filch_status (*release)(const fl_device *device, uint64_t object, filch_error *error);
    /* Reserves an address range with nothing behind, at a multiple of the alignment. */
    filch_status (*take_address)(const fl_device *device, uint64_t bytes, uint64_t alignment,
                                 void **address, filch_error *error);
    filch_status (*give_address)(const fl_device *device, void *address, uint64_t bytes,
                                 filch_error *error);
    /* Maps an entire object or memory at an address. */
    filch_status (*map)(const fl_device *device, void *address, uint64_t object, uint64_t bytes,
                        filch_error *error);
    filch_status (*unmap)(const fl_device *device, void *address, uint64_t bytes,
                          filch_error *error);
    /* Lets the device use the mapped range. */
    filch_status (*allow)(const fl_device *device, void *address, uint64_t bytes,
                          filch_error *error);
} fl_multicast_ops;

#endif
