/* SPDX-License-Identifier: Apache-2.0 */
/* The device grammar (filch/device.h) as text to items. Knows no backend's devices. */
#ifndef FL_DEVICE_SPEC_H
#define FL_DEVICE_SPEC_H

#include "backend/backend.h"

#define FL_SPEC_ITEMS 64
/* Cores of a host device; as many as bits of its affinity (filch_device_info). */
#define FL_TEAM_LIMIT 1024

/* Parses text into items. FILCH_PARSE with error->line = position of the offending character,
 * from 1, and a sentence that names it and what was expected; numbers that overflow, zero counts,
 * empty items and unknown words are all told apart. */
filch_status fl_spec_parse(const char *text, fl_device_spec items[FL_SPEC_ITEMS], size_t *count,
                           filch_error *error);

#endif
