/* SPDX-License-Identifier: Apache-2.0 */
/* Waits: the markers that an operation has to wait for. */
#include "memory/tiles/replica.h"

filch_status fl_waits_add(fl_waits *waits, fl_marker marker, filch_error *error)
{
    if (marker == 0) {
        return FILCH_OK;
    }
    for (uint32_t i = 0; i < waits->count; ++i) {
        /* A lane is in order: the latest marker suffices. */
        if (waits->at[i] >> 50 == marker >> 50) {
            waits->at[i] = waits->at[i] > marker ? waits->at[i] : marker;
            return FILCH_OK;
        }
    }
    if (waits->count == FL_MOST_WAITS) {
        return fl_error_fill(error, (fl_fault){.status = FILCH_OVERFLOW},
                             "a task waits for more than %d lanes", FL_MOST_WAITS);
    }
    waits->at[waits->count++] = marker;
    return FILCH_OK;
}

filch_status fl_waits_check(fl_places *places, fl_waits *waits, filch_error *error)
{
    while (waits->count != 0) {
        fl_marker marker = waits->at[waits->count - 1];
        fl_device *device = &places->devices[fl_marker_device(marker)];
        filch_status status = device->backend->lane->reached(device, marker, error);
        if (status != FILCH_OK) {
            return status;
        }
        --waits->count;
    }
    return FILCH_OK;
}

void fl_waits_abandon(fl_places *places, fl_waits *waits)
{
    /* Waits for copies only. Work items retire by themselves, and only their owners know their
     * progress. */
    while (waits->count != 0) {
        fl_marker marker = waits->at[--waits->count];
        fl_device *device = &places->devices[fl_marker_device(marker)];
        filch_status status = FILCH_OK;
        if (fl_marker_lane(marker) >= FL_LANE_IN) {
            status = fl_device_await(device, marker, NULL);
        }
        if (status != FILCH_OK) {
            device->backend->lane->drain(device,
                                         NULL); /* the progress of a failed device is unknown */
        }
    }
}
