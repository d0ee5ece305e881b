/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated devices on the virtual clock, described in a JSON file:
 *
 *     {"devices": [
 *         {"name": "fast", "speed": 4e9, "overhead_us": 5, "memory": 17179869184, "window": 2},
 *         {"name": "slow", "speed": 1e9, "score": 4e9, "count": 3}
 *     ]}
 *
 * speed        units of work a second, 1e-6 to 1e18; the only required key
 * name         1 to 48 bytes without control characters; default sim:N
 * count        number of devices made from the element, 1 to 1024; default 1
 * overhead_us  overhead added to every work item, 0 to 1e9; default 0
 * memory       bytes, 1 to 2^50; default 2^34
 * shares       with a link: name of an earlier device sharing its memory and link; default: own
 *              memory and link
 * window       queue depth keeping the device busy, in items, 1 to 64; default 2
 * lanes        with a link: number of compute lanes, 1 to 8, default 1. Items of all lanes are in
 *              flight at a time; one item has the device
 * score        prior weight, 0 to 1e300; default speed
 * misread_tile number of the item reported with a wrong time, counted from 1; default 0, none
 * misread_by   factor from the right time to the wrong one, 1e-6 to 1e6; default 1
 * speeds       changes of the speed: [[seconds, units of work a second], ...], seconds rising from
 *              0 to 1e9, speeds from 0, the last speed at least 1e-6. Work in flight proceeds at
 *              the speed of the moment
 * lost_at      time of the device's loss, with everything in flight, seconds; default never
 * joins_at     seconds before which the device takes no item, and no share of a batch; default 0
 * leaves_at    seconds from which the device is offline, as by filch_device_withdraw; default never
 * returns_at   seconds from which the device is online again; default never
 * implements   kinds of implementation the device can run, an array of "host", "cuda" or both;
 *              default ["host"]
 *
 * link         link of the device's memory to the host's, an object: bandwidth, bytes a second, 1
 *              to 1e18; latency_us of each copy, 0 to 1e9, default 0; bandwidth_out and
 *              latency_out_us from the device to the host, by default the inward values; column_us,
 *              of each column of a copy whose columns are apart, beside the time of the bytes, 0
 *              to 1e9, default 0; duplex, false for directions taking turns; bus, a text: devices
 *              on a bus take turns, by direction. A "link" at the root is the default for devices
 * without a link. Either every device has a link or no device
 *
 * host         with a link: times of the worker, an object of microseconds, each 0 to 1e9 and by
 *              default 0. launch_us: from a launch to the item's earliest start; the worker does
 *              nothing else. copy_us: from a copy's call to the copy's earliest start. see_us: time
 *              for seeing items to be over, before anything else. keeps: an object by names of
 *              codelets whose launches keep the worker until the item is over and for the given
 *              time after. With host, even {}, the worker polls for the ends of items as a GPU's
 *              worker does, and items put on a lane in one go are seen to be over together
 *
 * With links, the code that moves tiles for GPUs brings tiles to the devices' memories and back
 * (memory.h); window is measured then, and nothing is computed. "peers" at the root is an array of
 * ways straight from a memory to another: {"from": NAME, "to": NAME, "bandwidth": ...,
 * "latency_us": ...}. NAME is a device's name, or an element's for all its devices.
 *
 * A device is called by its name; NAME:0, NAME:1, ... where count is above 1; by its ordinal,
 * sim:N, where the name is left out. Unknown keys are refused. Each device without shares has a
 * memory node of its own.
 *
 * FILCH_UNSUPPORTED: two files are used together and one has links. FILCH_IO: the file cannot be
 * read or is larger than 1 MiB. FILCH_PARSE: the file is not JSON. FILCH_DATA: the JSON breaks a
 * rule above. The error gives the line for FILCH_PARSE and FILCH_DATA. */
#ifndef FL_BACKEND_SIM_SIM_H
#define FL_BACKEND_SIM_SIM_H

#include "backend/backend.h"

/* Capacity of a simulated device, in work items in flight. */
#define FL_SIM_TILES 64

extern const fl_backend fl_sim_backend;

/* Fills the error of a lost device and returns FILCH_DEVICE_LOST. */
filch_status fl_sim_tell_lost(const fl_device *device, uint64_t lost_at, filch_error *error);

#endif
