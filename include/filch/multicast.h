/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file multicast.h
 * Multicast objects: memory of several GPUs behind a single address. A kernel's multimem
 * instructions (PTX ISA, "multimem.ld_reduce, multimem.st, multimem.red") at the address reach the
 * memory of all GPUs at once, through the switch joining the GPUs.
 *
 * Multicast is off unless the program or its user enables it by filch_runtime_desc.allow_multicast
 * or FILCH_MULTICAST=1. While multicast is off, no call of filch reaches the driver's
 * cuMulticastCreate. filch itself copies from device to device (broadcast.h) and never uses a
 * multicast object.
 *
 * An object goes through the states below; every other order is FILCH_WRONG_STATE:
 *
 * 1. making the object: filch_multicast_create();
 * 2. adding the devices, one a call: filch_multicast_add();
 * 3. binding memory of every device, once all devices are added: filch_multicast_bind(),
 *    filch_multicast_bind_address(). (An earlier binding would block in the driver until all
 *    devices are added.)
 * 4. mapping the object, once it is bound completely on every device: filch_multicast_map();
 * 5. unmapping: filch_multicast_unmap();
 * 6. unbinding, every binding as it was made: filch_multicast_unbind();
 * 7. destroying the object: filch_multicast_destroy().
 *
 * Devices stay added: the driver offers no removal. filch_runtime_destroy() takes remaining objects
 * through the remaining states. A failing call leaves the object in its state; where the driver
 * refuses to undo a step, a repeated call, or the destruction, tries again.
 *
 * The memory counts for the GPU, not for filch's budget of the GPU. Behaviour on real devices is up
 * to the driver of a system with a multicast switch: filch's own tests use a fake driver only.
 */
#ifndef FILCH_MULTICAST_H
#define FILCH_MULTICAST_H

#include "filch/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A multicast object; made by filch_multicast_create(). */
typedef struct filch_multicast filch_multicast;

/** Description of a new object; see ::FILCH_MULTICAST_DESC_INIT. */
typedef struct filch_multicast_desc {
    size_t size;             /**< sizeof(filch_multicast_desc). */
    const uint32_t *devices; /**< Indices of the object's devices: GPUs, no two with a common
                                  memory. Copied. */
    uint32_t device_count;   /**< Elements of devices; at least 1. */
    uint32_t reserved;       /**< 0. */
    uint64_t bytes;          /**< Bytes spanned by the object; a multiple of the minimum
                                  granularity. */
    const char *label;       /**< Appears in errors; copied, cut at 63 bytes; may be null. */
} filch_multicast_desc;

/** Initializer of a ::filch_multicast_desc. */
#define FILCH_MULTICAST_DESC_INIT                                   \
    {                                                               \
        sizeof(filch_multicast_desc), NULL, 0, 0, (uint64_t)0, NULL \
    }

/** Granularity of sizes and offsets; see filch_multicast_granularity(). */
typedef struct filch_granularity {
    size_t size;          /**< sizeof(filch_granularity). */
    uint64_t minimum;     /**< Required divisor of sizes and offsets. */
    uint64_t recommended; /**< Recommended divisor of sizes and offsets, for the best
                               performance. */
} filch_granularity;

/** Initializer of a ::filch_granularity. */
#define FILCH_GRANULARITY_INIT          \
    {                                   \
        sizeof(filch_granularity), 0, 0 \
    }

/**
 * Tells the granularity of an object's sizes and offsets. Makes nothing.
 *
 * @param runtime     the runtime.
 * @param desc        the object; its bytes need not be a multiple of anything yet.
 * @param granularity receives the granularity; its size must be set.
 * @return FILCH_OK; FILCH_UNSUPPORTED (multicast is not allowed in the runtime; the driver is older
 *         than 12.1; a device is no GPU or has no multicast); FILCH_INVALID_ARGUMENT (nulls, unset
 *         sizes, no bytes, bytes beyond every memory, no devices, two devices with a common memory
 *         or of different kinds, reserved is not 0); FILCH_BAD_INDEX; FILCH_BACKEND;
 *         FILCH_DEVICE_LOST; FILCH_OUT_OF_MEMORY; FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread; asks the driver. Since 0.1.
 */
FILCH_API filch_status filch_multicast_granularity(filch_runtime *runtime,
                                                   const filch_multicast_desc *desc,
                                                   filch_granularity *granularity);

/**
 * Makes an object without devices.
 *
 * @param runtime   the runtime.
 * @param desc      description; copied.
 * @param multicast receives the object, to be given to filch_multicast_destroy() or left to the
 *                  runtime.
 * @return as filch_multicast_granularity(), and FILCH_INVALID_ARGUMENT where the bytes are no
 *         multiple of the minimum granularity; FILCH_NO_DEVICE_MEMORY.
 *
 * Thread safety: any thread. Blocking: may hold up the GPUs, as may all calls below. Since 0.1.
 */
FILCH_API filch_status filch_multicast_create(filch_runtime *runtime,
                                              const filch_multicast_desc *desc,
                                              filch_multicast **multicast);

/**
 * Adds a device to an object, for good.
 *
 * @param multicast the object.
 * @param device    index of the device, among the devices of the object's description.
 * @return FILCH_OK; FILCH_WRONG_STATE when the device was added already; FILCH_BAD_INDEX (not a
 *         device of the object); FILCH_NO_DEVICE_MEMORY; FILCH_BACKEND; FILCH_DEVICE_LOST;
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: the object's lock, held while the driver is asked. Since
 * 0.1.
 */
FILCH_API filch_status filch_multicast_add(filch_multicast *multicast, uint32_t device);

/**
 * Binds new memory of a device to a part of the object, and maps the memory for the device.
 *
 * @param multicast the object, with all devices added, and not mapped.
 * @param device    index of a device of the object.
 * @param offset    begin of the part; a multiple of the minimum granularity.
 * @param bytes     length of the part; a multiple of the minimum granularity. No other binding of
 *                  the device may overlap the part.
 * @param address   receives the device's address of its own memory; may be null. Valid until the
 *                  part is unbound. The contents are undefined.
 * @return FILCH_OK; FILCH_WRONG_STATE (devices are still to be added; the object is mapped; a
 *         binding overlaps the part); FILCH_INVALID_ARGUMENT (no bytes, a part outside the object
 *         or not a multiple of the granularity: the error tells the granularity); FILCH_BAD_INDEX;
 *         FILCH_NO_DEVICE_MEMORY; FILCH_OUT_OF_MEMORY; FILCH_BACKEND; FILCH_DEVICE_LOST;
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: the object's lock, held while the driver is asked. Since
 * 0.1.
 */
FILCH_API filch_status filch_multicast_bind(filch_multicast *multicast, uint32_t device,
                                            uint64_t offset, uint64_t bytes, void **address);

/**
 * Binds the caller's memory of a device to a part of the object.
 *
 * @param multicast the object, with all devices added, and not mapped.
 * @param device    index of a device of the object; owner of the memory.
 * @param offset    as for filch_multicast_bind().
 * @param address   address of the mapped memory, a multiple of the minimum granularity: made by
 *                  cuMemCreate or from a memory pool. The caller owns the memory, and keeps it
 *                  until the part is unbound.
 * @param bytes     as for filch_multicast_bind().
 * @return as filch_multicast_bind(), and FILCH_INVALID_ARGUMENT for a null address or an address
 *         not a multiple of the granularity.
 *
 * Thread safety: any thread. Blocking: the object's lock, held while the driver is asked. Since
 * 0.1.
 */
FILCH_API filch_status filch_multicast_bind_address(filch_multicast *multicast, uint32_t device,
                                                    uint64_t offset, void *address, uint64_t bytes);

/**
 * Undoes a binding; memory made by filch_multicast_bind() is freed. The device must no longer use
 * the memory.
 *
 * @param multicast the object, not mapped.
 * @param device    device of the binding.
 * @param offset    offset of the binding.
 * @param bytes     length of the binding.
 * @return FILCH_OK; FILCH_WRONG_STATE when the object is mapped; FILCH_NOT_FOUND when no binding
 *         has exactly the device, offset and length; FILCH_BAD_INDEX; FILCH_BACKEND,
 *         FILCH_DEVICE_LOST: the driver refuses, and a repeated call can undo the rest of the
 *         binding; FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: the object's lock, held while the driver is asked. Since
 * 0.1.
 */
FILCH_API filch_status filch_multicast_unbind(filch_multicast *multicast, uint32_t device,
                                              uint64_t offset, uint64_t bytes);

/**
 * Maps the whole object, for all of its devices.
 *
 * @param multicast the object, bound completely on every device.
 * @param address   receives the address, common to all devices, for multimem instructions alone:
 *                  other accesses at the address are undefined. Valid until the object is unmapped.
 * @return FILCH_OK; FILCH_WRONG_STATE (devices are still to be added; a part is not bound; the
 *         object is mapped already); FILCH_INVALID_ARGUMENT (null @p address);
 *         FILCH_NO_DEVICE_MEMORY; FILCH_BACKEND; FILCH_DEVICE_LOST; FILCH_INVALID_HANDLE;
 *         FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: the object's lock, held while the driver is asked. Since
 * 0.1.
 */
FILCH_API filch_status filch_multicast_map(filch_multicast *multicast, void **address);

/**
 * Undoes the mapping. The devices must no longer use the address.
 *
 * @param multicast the object.
 * @return FILCH_OK; FILCH_WRONG_STATE when the object is not mapped; FILCH_BACKEND,
 *         FILCH_DEVICE_LOST: the driver refuses, and the call may be repeated;
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: the object's lock, held while the driver is asked. Since
 * 0.1.
 */
FILCH_API filch_status filch_multicast_unmap(filch_multicast *multicast);

/**
 * Destroys an object that is neither mapped nor bound.
 *
 * @param multicast the object.
 * @return FILCH_OK; FILCH_WRONG_STATE (the object is mapped, or memory is bound); FILCH_BACKEND,
 *         FILCH_DEVICE_LOST: the driver refuses, the object stays and the call may be repeated;
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread, with no concurrent call naming the object. Blocking: the driver. Since
 * 0.1.
 */
FILCH_API filch_status filch_multicast_destroy(filch_multicast *multicast);

#ifdef __cplusplus
}
#endif

#endif
