/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file multicast.h
 * Multicast objects: memory of several GPUs behind one address. A kernel's multimem instructions
 * (PTX ISA, "multimem.ld_reduce, multimem.st, multimem.red") at that address reach the memory of
 * all of them at once, through the switch that joins them.
 *
 * Off unless the program, or who runs it, says otherwise: filch_config.allow_multicast or
 * FILCH_MULTICAST=1. Without that no call here, and no other one of filch, ever reaches the
 * driver's cuMulticastCreate. filch itself copies from device to device (broadcast.h) and never
 * uses a multicast object.
 *
 * An object goes through these states, and every other order is FILCH_WRONG_STATE:
 *
 * 1. made, by filch_multicast_create();
 * 2. its devices are added, each by filch_multicast_add();
 * 3. once all are there, memory of each is bound: filch_multicast_bind(),
 *    filch_multicast_bind_address(). (Before, the driver would block until they are.)
 * 4. once all of it is bound on every device, it is mapped: filch_multicast_map();
 * 5. unmapped again: filch_multicast_unmap();
 * 6. unbound again, each binding as it was made: filch_multicast_unbind();
 * 7. and destroyed: filch_multicast_destroy().
 *
 * Devices stay added: the driver knows no way back. filch_runtime_destroy() takes what is left
 * through the remaining states. A call that fails leaves the object in the state it was in; where
 * the driver refuses to take something back, the same call, or the destruction, tries again.
 *
 * The memory counts for the GPU, not for filch's budget there. Only what the driver of a system
 * with such a switch says can be said of real devices: filch's own tests use a fake driver.
 */
#ifndef FILCH_MULTICAST_H
#define FILCH_MULTICAST_H

#include "filch/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A multicast object; made by filch_multicast_create(). */
typedef struct filch_multicast filch_multicast;

/** How an object is made; see ::FILCH_MULTICAST_DESC_INIT. */
typedef struct filch_multicast_desc {
    size_t size;             /**< sizeof(filch_multicast_desc). */
    const uint32_t *devices; /**< Indices of its devices: GPUs, no two with one memory. Copied. */
    uint32_t device_count;   /**< Elements of devices; at least 1. */
    uint32_t reserved;       /**< 0. */
    uint64_t bytes;          /**< Bytes that it spans; a multiple of the minimum granularity. */
    const char *label;       /**< Appears in errors; copied, cut at 63 bytes; may be null. */
} filch_multicast_desc;

/** Initializer of a ::filch_multicast_desc. */
#define FILCH_MULTICAST_DESC_INIT                                   \
    {                                                               \
        sizeof(filch_multicast_desc), NULL, 0, 0, (uint64_t)0, NULL \
    }

/** Multiples of which sizes and offsets are; see filch_multicast_granularity(). */
typedef struct filch_granularity {
    size_t size;          /**< sizeof(filch_granularity). */
    uint64_t minimum;     /**< They must be. */
    uint64_t recommended; /**< They should be, for the best performance. */
} filch_granularity;

/**
 * What sizes and offsets of an object must be multiples of. Makes nothing.
 *
 * @param runtime     the runtime.
 * @param desc        the object; its bytes need not be a multiple of anything yet.
 * @param granularity receives the multiples; its size must be set.
 * @return FILCH_OK; FILCH_UNSUPPORTED (multicast is not allowed in this runtime; the driver is
 * older than 12.1; a device is no GPU or has no multicast); FILCH_INVALID_ARGUMENT (nulls, sizes
 *         that are not set, no bytes, no devices or two with one memory, reserved is not 0);
 *         FILCH_BAD_INDEX; FILCH_BACKEND; FILCH_DEVICE_LOST; FILCH_OUT_OF_MEMORY;
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread; asks the driver. Since 0.1.
 */
FILCH_API filch_status filch_multicast_granularity(filch_runtime *runtime,
                                                   const filch_multicast_desc *desc,
                                                   filch_granularity *granularity);

/**
 * Makes an object with no device added to it.
 *
 * @param runtime   the runtime.
 * @param desc      how; copied.
 * @param multicast receives the object, to be given to filch_multicast_destroy() or left to the
 *                  runtime.
 * @return as filch_multicast_granularity(), and FILCH_INVALID_ARGUMENT where the bytes are no
 *         multiple of the minimum granularity; FILCH_NO_DEVICE_MEMORY.
 *
 * Thread safety: any thread. Blocking: may hold up the GPUs, as all below may. Since 0.1.
 */
FILCH_API filch_status filch_multicast_create(filch_runtime *runtime,
                                              const filch_multicast_desc *desc,
                                              filch_multicast **multicast);

/**
 * Adds one of its devices to an object, for good.
 *
 * @param multicast the object.
 * @param device    index of the device, one of those the object was made for.
 * @return FILCH_OK; FILCH_WRONG_STATE when it was added already; FILCH_BAD_INDEX (none of its
 *         devices); FILCH_NO_DEVICE_MEMORY; FILCH_BACKEND; FILCH_DEVICE_LOST;
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: the object's lock, held while the driver is asked.
 * Since 0.1.
 */
FILCH_API filch_status filch_multicast_add(filch_multicast *multicast, uint32_t device);

/**
 * Binds new memory of a device to a part of the object, and maps it for that device.
 *
 * @param multicast the object, with all devices added, and not mapped.
 * @param device    one of them.
 * @param offset    where the part begins; a multiple of the minimum granularity, as
 * @param bytes     its length; no binding of the device may touch the part.
 * @param address   receives where the device finds its own memory; may be null. Valid until it is
 *                  unbound. Its contents are undefined.
 * @return FILCH_OK; FILCH_WRONG_STATE (devices are to be added; it is mapped; something is bound
 *         there); FILCH_INVALID_ARGUMENT (no bytes, a part that is outside of the object or no
 *         multiple of the granularity: the error says which multiples); FILCH_BAD_INDEX;
 *         FILCH_NO_DEVICE_MEMORY; FILCH_OUT_OF_MEMORY; FILCH_BACKEND; FILCH_DEVICE_LOST;
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: the object's lock, held while the driver is asked.
 * Since 0.1.
 */
FILCH_API filch_status filch_multicast_bind(filch_multicast *multicast, uint32_t device,
                                            uint64_t offset, uint64_t bytes, void **address);

/**
 * Binds memory that the caller has of a device.
 *
 * @param multicast the object, with all devices added, and not mapped.
 * @param device    one of them; the memory is its.
 * @param offset    as for filch_multicast_bind().
 * @param address   where the memory is mapped, a multiple of the minimum granularity: made by
 *                  cuMemCreate or from a memory pool. Stays the caller's, who keeps it until it is
 *                  unbound.
 * @param bytes     as for filch_multicast_bind().
 * @return as filch_multicast_bind(), and FILCH_INVALID_ARGUMENT for a null address or one that is
 * no multiple.
 *
 * Thread safety: any thread. Blocking: the object's lock, held while the driver is asked.
 * Since 0.1.
 */
FILCH_API filch_status filch_multicast_bind_address(filch_multicast *multicast, uint32_t device,
                                                    uint64_t offset, void *address, uint64_t bytes);

/**
 * Undoes one binding; memory that filch_multicast_bind() made is freed. Nothing on the device uses
 * it any more.
 *
 * @param multicast the object, not mapped.
 * @param device    as it was bound.
 * @param offset    the same.
 * @param bytes     the same.
 * @return FILCH_OK; FILCH_WRONG_STATE when it is mapped; FILCH_NOT_FOUND when nothing was bound
 *         exactly so; FILCH_BAD_INDEX; FILCH_BACKEND, FILCH_DEVICE_LOST: the driver refuses to, and
 *         what is left of the binding can be undone by the same call; FILCH_INVALID_HANDLE;
 *         FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: the object's lock, held while the driver is asked.
 * Since 0.1.
 */
FILCH_API filch_status filch_multicast_unbind(filch_multicast *multicast, uint32_t device,
                                              uint64_t offset, uint64_t bytes);

/**
 * Maps all of an object, for all of its devices.
 *
 * @param multicast the object, all of which is bound on each device.
 * @param address   receives the address, the same for all devices, for multimem instructions alone:
 *                  what other accesses do there is undefined. Valid until it is unmapped.
 * @return FILCH_OK; FILCH_WRONG_STATE (devices are to be added; a part is not bound; it is mapped
 *         already); FILCH_INVALID_ARGUMENT (null @p address); FILCH_NO_DEVICE_MEMORY;
 *         FILCH_BACKEND; FILCH_DEVICE_LOST; FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: the object's lock, held while the driver is asked.
 * Since 0.1.
 */
FILCH_API filch_status filch_multicast_map(filch_multicast *multicast, void **address);

/**
 * Undoes the mapping. Nothing on the devices uses the address any more.
 *
 * @param multicast the object.
 * @return FILCH_OK; FILCH_WRONG_STATE when it is not mapped; FILCH_BACKEND, FILCH_DEVICE_LOST: the
 *         driver refuses to, and the call may be tried again; FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: the object's lock, held while the driver is asked.
 * Since 0.1.
 */
FILCH_API filch_status filch_multicast_unmap(filch_multicast *multicast);

/**
 * Destroys an object that is not mapped and has nothing bound to it.
 *
 * @param multicast the object.
 * @return FILCH_OK; FILCH_WRONG_STATE (it is mapped, or memory is bound); FILCH_BACKEND,
 *         FILCH_DEVICE_LOST: the driver refuses to, the object stays and the call may be tried
 *         again; FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread, with no other call that names the object in progress. Blocking: the
 * driver. Since 0.1.
 */
FILCH_API filch_status filch_multicast_destroy(filch_multicast *multicast);

#ifdef __cplusplus
}
#endif

#endif
