/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/model/transfer.h"

#include "sched/worker/tuning.h"

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
