/* SPDX-License-Identifier: Apache-2.0 */
/* Set of texts, numbered from 1 in the order of addition. Used by a single thread at a time. */
#ifndef FL_OBSERVE_NAME_SET_H
#define FL_OBSERVE_NAME_SET_H

#include "base/memory.h"

typedef struct fl_name_set {
    const fl_memory *memory;
    char **texts; /* by number - 1; owned */
    size_t capacity;
    uint32_t count, most;
    uint32_t *table; /* numbers by hash, open addressing; 0: free */
    size_t table_size;
} fl_name_set;

/* Makes an empty set of at most `most` texts; takes no memory yet. */
void fl_name_set_init(fl_name_set *set, const fl_memory *memory, uint32_t most);
void fl_name_set_fini(fl_name_set *set);
/* Returns the number of a text, added if new; the set keeps a copy. 0: no memory, or no room. */
uint32_t fl_name_add(fl_name_set *set, const char *text);

static inline const char *fl_name_at(const fl_name_set *set, uint32_t number)
{
    return set->texts[number - 1];
}

#endif
