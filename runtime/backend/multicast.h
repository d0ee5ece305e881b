/* SPDX-License-Identifier: Apache-2.0 */
/* Multicast objects, as a backend may have them: memory of several devices behind one address, at
 * which an instruction writes to, or adds up, all of them. Only the steps: memory/host/multicast.c
 * keeps their order, and undoes them.
 *
 * What takes something away (release, unbind, unmap, give_address) is tried even where the device
 * is lost. Any thread; these may serialize the device. */
#ifndef FL_BACKEND_MULTICAST_H
#define FL_BACKEND_MULTICAST_H

#include "backend/backend.h"

typedef struct fl_multicast_ops {
    /* FILCH_OK, or FILCH_UNSUPPORTED: what the driver or the device lacks. */
    filch_status (*check)(const fl_device *device, filch_error *error);
    /* Multiples of which sizes and offsets of an object for so many devices must be, and should. */
    filch_status (*granularity)(const fl_device *device, uint32_t devices, uint64_t bytes,
                                uint64_t *minimum, uint64_t *recommended, filch_error *error);
    /* An object, for `devices` devices to be added. FILCH_UNSUPPORTED unless the settings allow
     * multicast, whatever was asked before. */
    filch_status (*create)(const fl_device *device, const fl_settings *settings, uint32_t devices,
                           uint64_t bytes, uint64_t *object, filch_error *error);
    /* For good. */
    filch_status (*add)(const fl_device *device, uint64_t object, filch_error *error);
    /* Memory of the device, from its beginning, or from an address on where it is mapped. Blocks,
     * as map does, while devices are to be added. */
    filch_status (*bind)(const fl_device *device, uint64_t object, uint64_t offset, uint64_t memory,
                         uint64_t bytes, filch_error *error);
    filch_status (*bind_address)(const fl_device *device, uint64_t object, uint64_t offset,
                                 void *address, uint64_t bytes, filch_error *error);
    /* Exactly what was bound. */
    filch_status (*unbind)(const fl_device *device, uint64_t object, uint64_t offset,
                           uint64_t bytes, filch_error *error);
    /* Memory of the device without an address; *made: bytes of it, at least those wanted. */
    filch_status (*take_memory)(const fl_device *device, uint64_t bytes, uint64_t *memory,
                                uint64_t *made, filch_error *error);
    /* An object or memory; neither is bound or mapped. */
    filch_status (*release)(const fl_device *device, uint64_t object, filch_error *error);
    /* An address with nothing behind it, a multiple of the alignment. */
    filch_status (*take_address)(const fl_device *device, uint64_t bytes, uint64_t alignment,
                                 void **address, filch_error *error);
    filch_status (*give_address)(const fl_device *device, void *address, uint64_t bytes,
                                 filch_error *error);
    /* All of an object or of memory, at an address. */
    filch_status (*map)(const fl_device *device, void *address, uint64_t object, uint64_t bytes,
                        filch_error *error);
    filch_status (*unmap)(const fl_device *device, void *address, uint64_t bytes,
                          filch_error *error);
    /* Lets the device use what is mapped. */
    filch_status (*allow)(const fl_device *device, void *address, uint64_t bytes,
                          filch_error *error);
} fl_multicast_ops;

#endif
