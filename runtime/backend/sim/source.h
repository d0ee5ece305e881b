/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the readers of the simulator's JSON file. */
#ifndef FL_BACKEND_SIM_SOURCE_H
#define FL_BACKEND_SIM_SOURCE_H

#include <jansson.h>

#include "backend/sim/describe.h"

typedef struct fl_sim_source {
    const fl_discovery *how;
    const char *path;
    const char *text;
    size_t size;
} fl_sim_source;

/* Element index that means the root of the file. */
#define FL_SIM_ROOT ((size_t)-1)
#define FL_SIM_PEERS "peers"
/* Bytes of a key in a message. */
#define FL_SIM_SHOWN 41

/* Reports a failure; line 0: no line known. */
filch_status fl_sim_refuse(const fl_sim_source *source, filch_status status, int64_t line,
                           const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Returns the line of a key, in an element of an array, or in the root with FL_SIM_ROOT; 0: not
 * found. */
int64_t fl_sim_line_find(const fl_sim_source *source, const char *array, size_t element,
                         const char *key);
/* Returns the line of a key in an element of "devices", or the element's own line where the key is
 * not found. */
int64_t fl_sim_line_of(const fl_sim_source *source, size_t device, const char *key);
/* Copies the start of a key, with control characters replaced, for use in a message. */
void fl_sim_key_show(const char *key, char shown[FL_SIM_SHOWN]);
bool fl_sim_name_read(const json_t *value, char name[FL_SIM_NAME_LIMIT + 1]);
bool fl_sim_number_in(const json_t *value, double least, double most);

/* describe_links.c: reads the "link" of a device, or of the root. */
filch_status fl_sim_link_read(const fl_sim_source *source, size_t device, const json_t *value,
                              fl_sim_link *link);
/* describe_host.c: reads a device's "host" and "shares". */
filch_status fl_sim_host_read(const fl_sim_source *source, size_t device, const json_t *value,
                              fl_sim_host *host);
filch_status fl_sim_shares_read(const fl_sim_source *source, size_t device, const json_t *value,
                                fl_sim_model *model);
/* Checks "host" and "shares" against the links, once the links are known; finds the element owning
 * each shared memory. */
filch_status fl_sim_hosts_check(const fl_sim_source *source, fl_sim_description *description);
/* Reads the root's "link" and "peers", once the devices are known. */
filch_status fl_sim_links_read(const fl_sim_source *source, const json_t *root,
                               fl_sim_description *description);

#endif
