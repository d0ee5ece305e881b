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

/* Grows the edge to have the part, too. Only the item being fetched uses the edge. */
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
                          uint32_t tile, uint32_t place, const filch_view *part, uint64_t now,
                          fl_edge **found, filch_error *error)
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
        if (edge->users != edge->fetching) {
            return FILCH_NOT_READY;
        }
        grow(data, edge, part);
    }
    /* The items of an edge are fetched behind a writer, and items of earlier edges before it. */
    edge->born = now < edge->born ? now : edge->born;
    ++edge->users;
    ++edge->fetching;
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

void fl_edge_fetched(const fl_replicas *replicas, uint32_t tile, uint32_t place)
{
    fl_edge *edge = fl_edge_find(replicas, tile, place);
    if (edge != NULL) {
        edge->fetching = 0;
    }
}

static void unlink_edge(const fl_memory *memory, fl_edge **link)
{
    fl_edge *edge = *link;
    *link = edge->next;
    fl_free(memory, edge, sizeof *edge);
}

void fl_edge_leave(const fl_memory *memory, fl_replicas *replicas, uint32_t tile, uint32_t place,
                   uint64_t fetched)
{
    fl_edge **link = &replicas->edges;
    while (*link != NULL && ((*link)->tile != tile || (*link)->place != place)) {
        link = &(*link)->next;
    }
    fl_edge *edge = *link;
    if (edge == NULL || edge->born > fetched) {
        return; /* a writer has ended the item's edge */
    }
    edge->fetching -= edge->fetching != 0;
    if (--edge->users == 0) {
        unlink_edge(memory, link);
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
