/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/tiles/edge.h"

fl_edge *fl_edge_find(const fl_replicas *replicas, uint32_t tile, uint32_t place)
{
    fl_edge *edge = replicas->edges;
    while (edge != NULL && (edge->tile != tile || edge->place != place)) {
        edge = edge->next;
    }
    return edge;
}

static bool contains(const fl_edge *edge, const filch_view *part)
{
    const filch_view *all = &edge->part;
    return edge->copy_count <= FL_EDGE_COPIES && part->row >= all->row && part->col >= all->col &&
           part->row + part->rows <= all->row + all->rows &&
           part->col + part->cols <= all->col + all->cols;
}

bool fl_edge_admits(const fl_replicas *replicas, uint32_t tile, uint32_t place,
                    const filch_view *part)
{
    const fl_edge *edge = fl_edge_find(replicas, tile, place);
    return edge == NULL || contains(edge, part);
}

/* Grows the edge to have the part, too. Only an item being fetched uses the edge. */
static void grow(const filch_data *data, fl_edge *edge, const filch_view *part)
{
    filch_view *all = &edge->part;
    uint64_t row_end = all->row + all->rows, col_end = all->col + all->cols;
    uint64_t part_row_end = part->row + part->rows, part_col_end = part->col + part->cols;
    all->row = part->row < all->row ? part->row : all->row;
    all->col = part->col < all->col ? part->col : all->col;
    all->rows = (part_row_end > row_end ? part_row_end : row_end) - all->row;
    all->cols = (part_col_end > col_end ? part_col_end : col_end) - all->col;
    fl_data_put_on_host(data, all);
    edge->is_filled = false;
}

filch_status fl_edge_join(const fl_memory *memory, const filch_data *data, fl_replicas *replicas,
                          uint32_t tile, uint32_t place, const filch_view *part, const void *by,
                          uint64_t now, fl_edge **found, filch_error *error)
{
    fl_edge *edge = fl_edge_find(replicas, tile, place);
    if (edge == NULL) {
        edge = fl_alloc(memory, sizeof *edge);
        if (edge == NULL) {
            return fl_error_fill(error,
                                 (fl_fault){.status = FILCH_OUT_OF_MEMORY, .label = data->label},
                                 "no memory for the halo of a tile");
        }
        *edge = (fl_edge){
            .next = replicas->edges, .tile = tile, .place = place, .born = now, .part = *part};
        replicas->edges = edge;
    } else if (!contains(edge, part)) {
        if (edge->by != by || edge->users != edge->fetching) {
            return FILCH_NOT_READY;
        }
        grow(data, edge, part);
    }
    /* The items of an edge are fetched behind a writer, and items of earlier edges before it. */
    edge->born = now < edge->born ? now : edge->born;
    edge->by = edge->by != NULL ? edge->by : by;
    ++edge->users;
    edge->fetching += edge->by == by;
    *found = edge;
    return FILCH_OK;
}

void fl_edge_note(fl_edge *edge, fl_marker marker)
{
    if (edge->copy_count < FL_EDGE_COPIES) {
        edge->copies[edge->copy_count] = marker;
    }
    ++edge->copy_count;
}

void fl_edges_fetched(const fl_replicas *replicas, fl_rect tiles, uint32_t count, uint32_t place,
                      const void *by)
{
    for (uint32_t i = 0; i < count; ++i) {
        fl_edge *edge = fl_edge_find(replicas, fl_rect_at(tiles, i), place);
        if (edge != NULL && edge->by == by) {
            edge->by = NULL;
            edge->fetching = 0;
        }
    }
}

static void unlink_edge(const fl_memory *memory, fl_edge **link)
{
    fl_edge *edge = *link;
    *link = edge->next;
    fl_free(memory, edge, sizeof *edge);
}

/* Returns the link to the edge of a tile in a node, or the last link, which is null. */
static fl_edge **link_of(fl_replicas *replicas, uint32_t tile, uint32_t place)
{
    fl_edge **link = &replicas->edges;
    while (*link != NULL && ((*link)->tile != tile || (*link)->place != place)) {
        link = &(*link)->next;
    }
    return link;
}

static void leave(const fl_memory *memory, fl_edge **link, uint64_t fetched)
{
    fl_edge *edge = *link;
    if (edge == NULL || edge->born > fetched) {
        return; /* a writer has ended the item's edge */
    }
    if (--edge->users == 0) {
        unlink_edge(memory, link);
    }
}

void fl_edges_leave(const fl_memory *memory, fl_replicas *replicas, fl_rect tiles, uint32_t count,
                    uint32_t place, uint64_t fetched)
{
    for (uint32_t i = 0; i < count; ++i) {
        leave(memory, link_of(replicas, fl_rect_at(tiles, i), place), fetched);
    }
}

void fl_edge_end(const fl_memory *memory, fl_replicas *replicas, uint32_t tile)
{
    fl_edge **link = &replicas->edges;
    while (*link != NULL) {
        if ((*link)->tile == tile) {
            unlink_edge(memory, link);
        } else {
            link = &(*link)->next;
        }
    }
}

void fl_edge_end_at(const fl_memory *memory, fl_replicas *replicas, uint32_t tile, uint32_t place)
{
    fl_edge **link = link_of(replicas, tile, place);
    if (*link != NULL) {
        unlink_edge(memory, link);
    }
}
