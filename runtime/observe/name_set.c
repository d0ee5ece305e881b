/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/name_set.h"

#include <string.h>

#include "base/hash.h"

#define TABLE_FIRST 64

void fl_name_set_init(fl_name_set *set, const fl_memory *memory, uint32_t most)
{
    *set = (fl_name_set){.memory = memory, .most = most};
}

void fl_name_set_fini(fl_name_set *set)
{
    for (uint32_t i = 0; i < set->count; ++i) {
        fl_free(set->memory, set->texts[i], strlen(set->texts[i]) + 1);
    }
    fl_free(set->memory, set->texts, set->capacity * sizeof *set->texts);
    fl_free(set->memory, set->table, set->table_size * sizeof *set->table);
    fl_name_set_init(set, set->memory, set->most);
}

/* Returns the text's place in the table, or the free place for a new text. */
static uint32_t *find(const fl_name_set *set, const char *text)
{
    size_t mask = set->table_size - 1;
    size_t at = (size_t)fl_hash_mix(fl_hash_text(FL_HASH_START, text)) & mask;
    while (set->table[at] != 0 && strcmp(fl_name_at(set, set->table[at]), text) != 0) {
        at = (at + 1) & mask;
    }
    return &set->table[at];
}

/* Doubles the table before it is three quarters full. False: no memory; nothing changes. */
static bool make_room(fl_name_set *set)
{
    if (4 * (size_t)(set->count + 1) <= 3 * set->table_size) {
        return true;
    }
    fl_name_set grown = *set;
    grown.table_size = set->table_size != 0 ? 2 * set->table_size : TABLE_FIRST;
    grown.table = fl_alloc_zeroed(set->memory, grown.table_size * sizeof *grown.table);
    if (grown.table == NULL) {
        return false;
    }
    for (uint32_t number = 1; number <= set->count; ++number) {
        *find(&grown, fl_name_at(set, number)) = number;
    }
    fl_free(set->memory, set->table, set->table_size * sizeof *set->table);
    *set = grown;
    return true;
}

uint32_t fl_name_add(fl_name_set *set, const char *text)
{
    if (set->table != NULL) {
        uint32_t known = *find(set, text);
        if (known != 0) {
            return known;
        }
    }
    size_t bytes = strlen(text) + 1;
    if (set->count == set->most || !make_room(set) ||
        fl_array_reserve(set->memory, &set->texts, &set->capacity, set->count + 1,
                         sizeof *set->texts) != FILCH_OK) {
        return 0;
    }
    char *copy = fl_alloc(set->memory, bytes);
    if (copy == NULL) {
        return 0;
    }
    memcpy(copy, text, bytes);
    set->texts[set->count++] = copy;
    *find(set, text) = set->count;
    return set->count;
}
