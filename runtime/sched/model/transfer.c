/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/model/transfer.h"

#include <math.h>

#include "memory/route/plan.h"
#include "memory/tiles/tiles.h"
#include "sched/worker/tuning.h"

/* --- Cores --- */

/* Returns bytes that a core may hold in caches out of the peer core's reach. Uses a usual size when
 * no cache is known. */
static double private_bytes(const fl_device *device, uint32_t level)
{
    double bytes = 0;
    for (uint32_t i = 0; i < level; ++i) {
        bytes = (double)device->caches[i].bytes > bytes ? (double)device->caches[i].bytes : bytes;
    }
    return bytes > 0 ? bytes : 0x1p21;
}

double fl_transfer_ns(const fl_device *from, const fl_device *to, double bytes)
{
    static const double rates[FL_CACHE_LEVELS] = {FL_SHARED_L2_NS, FL_SHARED_L3_NS};
    double rate = from->node == to->node ? FL_APART_NS : FL_OTHER_NODE_NS;
    uint32_t level = FL_CACHE_LEVELS;
    for (uint32_t i = 0; i < FL_CACHE_LEVELS; ++i) {
        if (from->caches[i].number != 0 && from->caches[i].number == to->caches[i].number) {
            rate = rates[i];
            level = i;
            break;
        }
    }
    double most = private_bytes(from, level == 0 ? 1 : level);
    return (bytes < most ? bytes : most) * rate;
}

/* --- Memory nodes --- */

double fl_transfer_link_ns(const fl_places *places, uint32_t from, uint32_t to, double usual)
{
    double rate = from != to ? fl_places_rate(places, from, to) : 0;
    if (rate <= 0 && (from == 0 || to == 0)) {
        rate = usual;
    } else if (rate <= 0 && usual > 0 && fl_device_reaches(places->at[to].device, from)) {
        rate = FL_PEER_RATE;
    } else if (rate <= 0) {
        /* Copies through the host go in parts: one part arrives while the next leaves. */
        return fmax(fl_transfer_link_ns(places, from, 0, usual),
                    fl_transfer_link_ns(places, 0, to, usual));
    }
    return rate > 0 ? 1e9 / rate : 0;
}
