/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that only pretend, on the virtual clock, described in a JSON file:
 *
 *     {"devices": [
 *         {"name": "fast", "speed": 4e9, "overhead_us": 5, "memory": 17179869184, "window": 2},
 *         {"name": "slow", "speed": 1e9, "score": 4e9, "count": 3}
 *     ]}
 *
 * speed        units of work a second, 1e-6 to 1e18; the only key that must be there
 * name         1 to 48 bytes without control characters; default sim:N
 * count        devices like this one, 1 to 1024; default 1
 * overhead_us  added to every tile, 0 to 1e9; default 0
 * memory       bytes, 1 to 2^50; default 2^34
 * shares       with a link: the name of a device before it, whose memory and link it has in common;
 *              default: its own
 * window       tiles in flight that keep it busy, 1 to 64; default 2
 * lanes        with a link: tiles of so many lanes are in flight at a time, of which one has the
 *              device; 1 to 8, default 1
 * score        prior weight, 0 to 1e300; default speed
 * misread_tile the tile of which a wrong time is told, counted from 1; default 0, none …
 * misread_by   … and times what the right one it is, 1e-6 to 1e6; default 1
 * speeds       how the speed changes: [[seconds, units of work a second], ...], seconds rising from
 *              0 to 1e9, speeds from 0, the last one at least 1e-6. A tile in flight goes at the
 *              speed of the moment
 * lost_at      seconds after which the device is lost with what is in flight there; default never
 * joins_at     seconds before which it takes no tile, and no share of a batch; default 0
 * leaves_at    seconds from which it is withdrawn, as by filch_device_withdraw; default never
 * returns_at   seconds from which it is there again; default never
 * implements   kinds of implementation that it can run, an array of "host", "cuda" or both; default
 *              ["host"]
 *
 * link         what joins its memory to the host's, an object: bandwidth, bytes a second, 1 to
 *              1e18; latency_us of each copy, 0 to 1e9, default 0; bandwidth_out and
 *              latency_out_us from the device to the host, by default as to it; duplex, false where
 *              both directions take turns; bus, a text: devices with the same one take turns, by
 *              direction. At the root "link" is that of all devices that have none of their own;
 *              none has, or all
 *
 * host         with a link: what the worker takes, an object of microseconds, each 0 to 1e9 and by
 *              default 0: launch_us, from a launch to when the tile may begin, in which the worker
 *              does nothing else; copy_us, from a copy's call to when it may begin; see_us, when it
 *              sees tiles to be over, before it does anything else; and keeps, an object by names
 *              of codelets, whose launches keep the worker until the tile is over and so long
 * after. With it, even {}, the worker is not told when tiles are over, but looks for that as a
 *              GPU's does, and tiles that it put on a lane in one go are seen to be over together
 *
 * With links tiles are brought to the devices' memories and home by the same code as on GPUs
 * (memory.h); window is measured then, and nothing is computed. "peers" at the root is an array of
 * ways straight from one memory to another: {"from": NAME, "to": NAME, "bandwidth": ...,
 * "latency_us": ...}, where a name is a device's or an element's with all its devices.
 *
 * A device is called by its name; NAME:0, NAME:1, ... where count is above 1; by its ordinal,
 * sim:N, where the name is left out. Other keys are refused. Each device that shares nothing has a
 * place of its own.
 *
 * FILCH_UNSUPPORTED where two files are used together and one has links.
 * FILCH_IO when the file cannot be read or is larger than 1 MiB, FILCH_PARSE where it is not JSON,
 * FILCH_DATA where the JSON does not say the above; the last two with the line in the error. */
#ifndef FL_BACKEND_SIM_SIM_H
#define FL_BACKEND_SIM_SIM_H

#include "backend/backend.h"

/* Tiles in flight that a simulated device can hold. */
#define FL_SIM_TILES 64

extern const fl_backend fl_sim_backend;

/* FILCH_DEVICE_LOST. */
filch_status fl_sim_tell_lost(const fl_device *device, uint64_t lost_at, filch_error *error);

#endif
