/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/alloc/extent.h"

#include "base/hash.h"

/* Number of nodes made at once. */
#define SLAB_NODES 126
/* Maximum number of free pieces searched in a class for the smallest sufficient piece. */
#define LOOKS 32
#define TABLE_FIRST 256

/* A piece. Pieces of a chunk are linked in the order of their addresses. */
struct fl_extent {
    uintptr_t address;
    size_t bytes;
    fl_extent *before, *after; /* neighbours in the chunk; null at the chunk's ends */
    /* Free: list of the class. In use: next in the table. Spare: next. */
    fl_extent *next, *previous;
    bool is_free;
};

struct fl_extent_slab {
    fl_extent_slab *next;
    fl_extent nodes[SLAB_NODES];
};

void fl_extents_init(fl_extents *extents, const fl_memory *memory, size_t granule)
{
    *extents = (fl_extents){.memory = memory, .granule = granule};
}

void fl_extents_fini(fl_extents *extents)
{
    while (extents->slabs != NULL) {
        fl_extent_slab *slab = extents->slabs;
        extents->slabs = slab->next;
        fl_free(extents->memory, slab, sizeof *slab);
    }
    fl_free(extents->memory, extents->table, extents->table_size * sizeof(fl_extent *));
    fl_extents_init(extents, extents->memory, extents->granule);
}

/* --- Nodes --- */

/* Ensures at least two spare nodes, the maximum need of an operation. */
static bool has_spares(fl_extents *extents)
{
    if (extents->spare != NULL && extents->spare->next != NULL) {
        return true;
    }
    fl_extent_slab *slab = fl_alloc(extents->memory, sizeof *slab);
    if (slab == NULL) {
        return false;
    }
    slab->next = extents->slabs;
    extents->slabs = slab;
    for (size_t i = 0; i < SLAB_NODES; ++i) {
        slab->nodes[i].next = extents->spare;
        extents->spare = &slab->nodes[i];
    }
    return true;
}

static fl_extent *node_take(fl_extents *extents, uintptr_t address, size_t bytes)
{
    fl_extent *node = extents->spare;
    extents->spare = node->next;
    *node = (fl_extent){.address = address, .bytes = bytes};
    return node;
}

static void node_give(fl_extents *extents, fl_extent *node)
{
    node->next = extents->spare;
    extents->spare = node;
}

/* Cuts a node's piece in two; the second piece is neither free nor in use yet. */
static fl_extent *node_cut(fl_extents *extents, fl_extent *node, size_t first)
{
    fl_extent *rest = node_take(extents, node->address + first, node->bytes - first);
    node->bytes = first;
    rest->before = node;
    rest->after = node->after;
    node->after = rest;
    if (rest->after != NULL) {
        rest->after->before = rest;
    }
    return rest;
}

/* Joins the next neighbour to a node. */
static void node_join(fl_extents *extents, fl_extent *node)
{
    fl_extent *gone = node->after;
    node->bytes += gone->bytes;
    node->after = gone->after;
    if (node->after != NULL) {
        node->after->before = node;
    }
    node_give(extents, gone);
}

static bool is_whole(const fl_extent *node)
{
    return node->before == NULL && node->after == NULL;
}

/* --- Pieces in use, by address --- */

static fl_extent **table_slot(const fl_extents *extents, uintptr_t address)
{
    return &extents->table[fl_hash_mix(address) & (extents->table_size - 1)];
}

/* Doubles the table. Without memory an existing table keeps its size, with longer lists. False:
 * no memory for the first table. */
static bool table_grow(fl_extents *extents)
{
    size_t before = extents->table_size, size = before != 0 ? 2 * before : TABLE_FIRST;
    fl_extent **old = extents->table;
    fl_extent **made = fl_alloc_zeroed(extents->memory, size * sizeof *made);
    if (made == NULL) {
        return old != NULL;
    }
    extents->table = made;
    extents->table_size = size;
    for (size_t i = 0; i < before; ++i) {
        while (old[i] != NULL) {
            fl_extent *node = old[i];
            old[i] = node->next;
            fl_extent **slot = table_slot(extents, node->address);
            node->next = *slot;
            *slot = node;
        }
    }
    fl_free(extents->memory, old, before * sizeof *old);
    return true;
}

static void table_add(fl_extents *extents, fl_extent *node)
{
    fl_extent **slot = table_slot(extents, node->address);
    node->next = *slot;
    *slot = node;
    ++extents->table_count;
    extents->used += node->bytes;
}

static fl_extent **table_find(const fl_extents *extents, const void *piece)
{
    if (extents->table == NULL) {
        return NULL;
    }
    fl_extent **at = table_slot(extents, (uintptr_t)piece);
    while (*at != NULL && (*at)->address != (uintptr_t)piece) {
        at = &(*at)->next;
    }
    return *at != NULL ? at : NULL;
}

static fl_extent *table_remove(fl_extents *extents, fl_extent **at)
{
    fl_extent *node = *at;
    *at = node->next;
    --extents->table_count;
    extents->used -= node->bytes;
    return node;
}

/* --- Free pieces, by size --- */

typedef struct class_of {
    uint32_t power, part;
} class_of;

/* Finds the class of a piece. Sizes below 2 * FL_EXTENT_PARTS granules have a class each. */
static class_of class_find(const fl_extents *extents, size_t bytes)
{
    uint64_t units = bytes / extents->granule;
    if (units < FL_EXTENT_PARTS) {
        return (class_of){0, (uint32_t)units};
    }
    uint32_t power = 63u - (uint32_t)__builtin_clzll(units);
    class_of found = {power - FL_EXTENT_LOG2_PARTS + 1,
                      (uint32_t)(units >> (power - FL_EXTENT_LOG2_PARTS)) - FL_EXTENT_PARTS};
    if (found.power >= FL_EXTENT_POWERS) {
        found = (class_of){FL_EXTENT_POWERS - 1, FL_EXTENT_PARTS - 1};
    }
    return found;
}

static void free_add(fl_extents *extents, fl_extent *node)
{
    class_of in = class_find(extents, node->bytes);
    fl_extent **head = &extents->free[in.power][in.part];
    node->is_free = true;
    node->previous = NULL;
    node->next = *head;
    if (*head != NULL) {
        (*head)->previous = node;
    }
    *head = node;
    extents->parts[in.power] |= UINT32_C(1) << in.part;
    extents->powers |= UINT64_C(1) << in.power;
    extents->empty_count += is_whole(node);
}

static void free_remove(fl_extents *extents, fl_extent *node)
{
    class_of in = class_find(extents, node->bytes);
    fl_extent **head = &extents->free[in.power][in.part];
    node->is_free = false;
    if (node->next != NULL) {
        node->next->previous = node->previous;
    }
    if (node->previous != NULL) {
        node->previous->next = node->next;
    } else {
        *head = node->next;
    }
    if (*head == NULL) {
        extents->parts[in.power] &= ~(UINT32_C(1) << in.part);
        if (extents->parts[in.power] == 0) {
            extents->powers &= ~(UINT64_C(1) << in.power);
        }
    }
    extents->empty_count -= is_whole(node);
}

static uintptr_t align_up(uintptr_t address, size_t align)
{
    return (address + align - 1) & ~(uintptr_t)(align - 1);
}

static bool fits(const fl_extent *node, size_t bytes, size_t align)
{
    size_t skipped = align_up(node->address, align) - node->address;
    return node->bytes >= bytes && node->bytes - bytes >= skipped;
}

/* Returns the smallest sufficient piece among the first `looks`; ties go to the lowest address.
 * Pieces in use thus stay close together, and further chunks become empty. */
static fl_extent *class_best(fl_extent *node, size_t bytes, size_t align, uint32_t looks)
{
    fl_extent *best = NULL;
    for (uint32_t i = 0; node != NULL && i < looks; node = node->next, ++i) {
        if (fits(node, bytes, align) &&
            (best == NULL || node->bytes < best->bytes ||
             (node->bytes == best->bytes && node->address < best->address))) {
            best = node;
        }
    }
    return best;
}

/* Finds the next class with a free piece; false: no such class. */
static bool class_next(const fl_extents *extents, class_of *at)
{
    uint32_t parts =
        at->part + 1 < FL_EXTENT_PARTS ? extents->parts[at->power] >> (at->part + 1) : 0;
    if (parts != 0) {
        at->part += 1 + (uint32_t)__builtin_ctz(parts);
        return true;
    }
    uint64_t powers = at->power + 1 < FL_EXTENT_POWERS ? extents->powers >> (at->power + 1) : 0;
    if (powers == 0) {
        return false;
    }
    at->power += 1 + (uint32_t)__builtin_ctzll(powers);
    at->part = (uint32_t)__builtin_ctz(extents->parts[at->power]);
    return true;
}

/* Finds a piece for bytes among the first `looks` pieces of every class; null: no piece found. */
static fl_extent *find_free(const fl_extents *extents, size_t bytes, size_t align, uint32_t looks)
{
    class_of at = class_find(extents, bytes);
    do {
        fl_extent *best = class_best(extents->free[at.power][at.part], bytes, align, looks);
        if (best != NULL) {
            return best;
        }
    } while (class_next(extents, &at));
    return NULL;
}

/* --- Chunks and pieces --- */

filch_status fl_extents_add(fl_extents *extents, void *chunk, size_t bytes)
{
    if (!has_spares(extents)) {
        return FILCH_OUT_OF_MEMORY;
    }
    free_add(extents, node_take(extents, (uintptr_t)chunk, bytes));
    extents->mapped += bytes;
    ++extents->chunk_count;
    return FILCH_OK;
}

filch_status fl_extents_take(fl_extents *extents, size_t bytes, size_t align, void **piece)
{
    fl_extent *node = find_free(extents, bytes, align, LOOKS);
    /* The size's own class may hold further sufficient pieces, and so may a class of pieces
     * unfit only by their alignment. */
    if (node == NULL && (node = find_free(extents, bytes, align, UINT32_MAX)) == NULL) {
        return FILCH_NO_DEVICE_MEMORY;
    }
    if (!has_spares(extents) ||
        (extents->table_count >= extents->table_size && !table_grow(extents))) {
        return FILCH_OUT_OF_MEMORY;
    }
    size_t skipped = align_up(node->address, align) - node->address;
    free_remove(extents, node);
    if (skipped != 0) {
        fl_extent *rest = node_cut(extents, node, skipped);
        free_add(extents, node);
        node = rest;
    }
    if (node->bytes > bytes) {
        free_add(extents, node_cut(extents, node, bytes));
    }
    table_add(extents, node);
    *piece = (void *)node->address;
    return FILCH_OK;
}

size_t fl_extents_give(fl_extents *extents, void *piece)
{
    fl_extent **at = table_find(extents, piece);
    if (at == NULL) {
        return 0;
    }
    fl_extent *node = table_remove(extents, at);
    size_t bytes = node->bytes;
    if (node->after != NULL && node->after->is_free) {
        free_remove(extents, node->after);
        node_join(extents, node);
    }
    if (node->before != NULL && node->before->is_free) {
        node = node->before;
        free_remove(extents, node);
        node_join(extents, node);
    }
    free_add(extents, node);
    return bytes;
}

bool fl_extents_split(fl_extents *extents, void *piece, size_t first)
{
    fl_extent **at = table_find(extents, piece);
    if (at == NULL || first == 0 || (*at)->bytes <= first || !has_spares(extents)) {
        return false;
    }
    extents->used -= (*at)->bytes - first;
    table_add(extents, node_cut(extents, *at, first));
    return true;
}

bool fl_extents_merge(fl_extents *extents, void *piece, void *next)
{
    fl_extent **first = table_find(extents, piece), **second = table_find(extents, next);
    if (first == NULL || second == NULL || (*first)->after != *second) {
        return false;
    }
    fl_extent *node = *first;
    extents->used += (*second)->bytes;
    table_remove(extents, second);
    node_join(extents, node);
    return true;
}

/* --- Empty chunks --- */

static fl_extent *find_empty(const fl_extents *extents, size_t most)
{
    fl_extent *best = NULL;
    for (uint32_t power = 0; power < FL_EXTENT_POWERS; ++power) {
        for (uint32_t part = 0; part < FL_EXTENT_PARTS; ++part) {
            for (fl_extent *node = extents->free[power][part]; node != NULL; node = node->next) {
                if (is_whole(node) && node->bytes <= most &&
                    (best == NULL || node->bytes > best->bytes)) {
                    best = node;
                }
            }
        }
    }
    return best;
}

void *fl_extents_remove(fl_extents *extents, size_t most, size_t *bytes)
{
    fl_extent *node = extents->empty_count != 0 ? find_empty(extents, most) : NULL;
    if (node == NULL) {
        return NULL;
    }
    void *chunk = (void *)node->address;
    free_remove(extents, node);
    *bytes = node->bytes;
    extents->mapped -= node->bytes;
    --extents->chunk_count;
    node_give(extents, node);
    return chunk;
}

/* --- For tests --- */

/* Checks a chunk from the first piece: neighbours touch, and free pieces are no neighbours. */
static bool is_chunk_valid(const fl_extents *extents, const fl_extent *node, size_t *bytes,
                           size_t *free_pieces)
{
    for (; node != NULL; node = node->after) {
        const fl_extent *after = node->after;
        *bytes += node->bytes;
        *free_pieces += node->is_free;
        if (node->bytes == 0 || node->address % extents->granule != 0 ||
            node->bytes % extents->granule != 0 ||
            (after != NULL && (after->address != node->address + node->bytes ||
                               after->before != node || (after->is_free && node->is_free)))) {
            return false;
        }
    }
    return true;
}

bool fl_extents_is_valid(const fl_extents *extents)
{
    size_t used = 0, count = 0, free_bytes = 0, listed = 0, walked = 0, seen = 0, chunks = 0;
    for (size_t i = 0; i < extents->table_size; ++i) {
        for (const fl_extent *node = extents->table[i]; node != NULL; node = node->next) {
            used += node->bytes;
            ++count;
            if (node->is_free) {
                return false;
            }
            if (node->before == NULL) {
                ++chunks;
                if (!is_chunk_valid(extents, node, &walked, &seen)) {
                    return false;
                }
            }
        }
    }
    for (uint32_t power = 0; power < FL_EXTENT_POWERS; ++power) {
        for (uint32_t part = 0; part < FL_EXTENT_PARTS; ++part) {
            for (const fl_extent *node = extents->free[power][part]; node != NULL;
                 node = node->next) {
                free_bytes += node->bytes;
                ++listed;
                chunks += node->before == NULL;
                if (!node->is_free ||
                    (node->before == NULL && !is_chunk_valid(extents, node, &walked, &seen))) {
                    return false;
                }
            }
        }
    }
    return used == extents->used && count == extents->table_count &&
           used + free_bytes == extents->mapped && walked == extents->mapped && listed == seen &&
           chunks == extents->chunk_count;
}
