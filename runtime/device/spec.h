/* SPDX-License-Identifier: Apache-2.0 */
/* Parser of the device grammar (filch/device.h): text to items. Independent of the backends'
 * devices. */
#ifndef FL_DEVICE_SPEC_H
#define FL_DEVICE_SPEC_H

#include "backend/backend.h"

#define FL_SPEC_ITEMS 64
/* Maximum number of cores of a host device; the number of bits of filch_device_info.affinity. */
#define FL_TEAM_LIMIT 1024

/* Parses text into items. FILCH_PARSE comes with error->line = position of the offending character,
 * from 1, and a sentence with the character found and the text expected. Numbers that overflow,
 * zero counts, empty items and unknown words have separate messages. */
filch_status fl_spec_parse(const char *text, fl_device_spec items[FL_SPEC_ITEMS], size_t *count,
                           filch_error *error);

#endif
