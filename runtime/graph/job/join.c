/* SPDX-License-Identifier: Apache-2.0 */
/* Places of a running open graph in access queues. The graph takes a place when the first task
 * naming a handle is added. If the graph has only read the handle so far, it takes a place for
 * writing when the first writing task is added. */
#include <stdio.h>

#include "graph/job/job.h"

enum { MOST_ENTRIES = 255, ASKS_READ = FL_ADMITS_READ, ASKS_WRITE = FL_ADMITS_WRITE };

/* A slot of the task being added, with a use not begun as far as adders know. */
typedef struct fl_entry {
    fl_slot *slot;
    fl_queued_access *upgrade; /* second use, made for the entry; null once owned by the slot */
    fl_task *gate;             /* gate, made for the entry; null once owned by the slot */
    fl_queued_access *wanted;  /* the use that needs a place, or null */
    fl_queued_access *entered; /* the wanted use, once placed */
    bool has_turned;           /* the slot's use, alone in its queue, writes from now on */
} fl_entry;

typedef struct fl_joining {
    filch_graph *graph;
    fl_entry *entries;
    uint32_t count;
    char *text; /* text of an error */
    size_t bytes;
} fl_joining;

/* Lists the slots that do not admit the accesses, every slot once. */
static void list_entries(fl_joining *joining, const fl_task_access *accesses, uint32_t count)
{
    for (uint32_t i = 0; i < count; ++i) {
        if (accesses[i].mode == FILCH_SCRATCH) {
            continue;
        }
        fl_slot *slot = joining->graph->slots[accesses[i].slot];
        uint8_t asks = fl_mode_asks(accesses[i].mode);
        if ((slot->admits & asks) != 0) {
            continue;
        }
        if (slot->asks == 0) {
            joining->entries[joining->count++] = (fl_entry){.slot = slot};
        }
        slot->asks |= asks;
    }
}

/* Returns the slot's use needed by the task. */
static fl_queued_access *use_of(const fl_entry *entry)
{
    fl_slot *slot = entry->slot;
    return (slot->asks & ASKS_WRITE) != 0 && slot->use.upgrade != NULL ? slot->use.upgrade
                                                                       : &slot->use;
}

/* Takes the memory that the places may need. */
static bool take_memory(fl_joining *joining)
{
    filch_graph *graph = joining->graph;
    for (uint32_t i = 0; i < joining->count; ++i) {
        fl_entry *entry = &joining->entries[i];
        fl_slot *slot = entry->slot;
        bool turns = slot->is_joined && (slot->asks & ASKS_WRITE) != 0 && !slot->use.writes &&
                     slot->use.upgrade == NULL;
        if (turns) {
            entry->upgrade = fl_arena_alloc(&graph->arena, sizeof *entry->upgrade);
            if (entry->upgrade == NULL) {
                return false;
            }
        }
        if (turns || !slot->is_joined) {
            entry->gate = fl_graph_task_new(graph);
            if (entry->gate == NULL) {
                return false;
            }
            entry->gate->is_gate = 1;
        }
    }
    return true;
}

/* Gives back unneeded memory. */
static void release(fl_joining *joining)
{
    for (uint32_t i = joining->count; i-- > 0;) { /* the newest task first */
        fl_entry *entry = &joining->entries[i];
        if (entry->gate != NULL) {
            fl_graph_task_unmake(joining->graph, entry->gate);
        }
        fl_arena_free(&joining->graph->arena, entry->upgrade, sizeof *entry->upgrade);
        entry->slot->asks = 0;
    }
}

/* --- Functions called under core->lock --- */

/* Enters the use of a partition, granted at once. To the order of jobs, a user of a partition
 * writes the parent, and waits in the parent's queue. Graphs may name partitions in a different
 * order, and must not wait twice. */
static void enter_part(filch_job *job, fl_queued_access *use)
{
    use->job = job;
    use->writes = true;
    fl_data_note_host(use->data);
    (void)fl_access_queue_enqueue(use);
    use->granted = use->begun = true;
}

/* Lists the uses that need a place, in the order of entries. */
static void list_uses(fl_joining *joining)
{
    fl_queued_access *asking = NULL;
    for (uint32_t i = joining->count; i-- > 0;) {
        fl_entry *entry = &joining->entries[i];
        fl_queued_access *use = &entry->slot->use;
        entry->wanted = NULL;
        if (!entry->slot->is_joined && use->data->parent == NULL) {
            use->writes = (entry->slot->asks & ASKS_WRITE) != 0;
            entry->wanted = use;
        } else if (entry->upgrade != NULL && (use->data->first != use || use->next != NULL)) {
            *entry->upgrade =
                (fl_queued_access){.data = use->data, .writes = true, .is_upgrade = true};
            entry->wanted = entry->upgrade;
        }
        if (entry->wanted != NULL) {
            entry->wanted->job = joining->graph->job;
            entry->wanted->late_next = asking;
            asking = entry->wanted;
        }
    }
}

static filch_status enter_slot(fl_joining *joining, fl_entry *entry, bool is_last)
{
    fl_slot *slot = entry->slot;
    if (entry->wanted != NULL) {
        fl_queued_access *place;
        const fl_queued_access *circle = fl_order_find(entry->wanted, is_last, &place);
        if (circle != NULL) {
            fl_order_describe(joining->graph->job, circle, joining->text, joining->bytes);
            return FILCH_DEADLOCK;
        }
        fl_order_enter(entry->wanted, place);
        entry->entered = entry->wanted;
    } else if (!slot->is_joined) {
        enter_part(joining->graph->job, &slot->use);
    } else if (entry->upgrade != NULL) { /* the slot's use is alone in its queue */
        slot->use.writes = entry->has_turned = true;
    }
    return FILCH_OK;
}

/* Undoes the first entries; no waiter was notified yet. */
static void leave_slots(fl_joining *joining, uint32_t count)
{
    while (count-- > 0) {
        fl_entry *entry = &joining->entries[count];
        fl_queued_access *use = &entry->slot->use;
        if (entry->entered != NULL) {
            fl_order_undo(joining->graph->job);
            entry->entered = NULL;
        } else if (entry->has_turned) {
            use->writes = entry->has_turned = false;
        } else if (!entry->slot->is_joined) {
            fl_access_queue_unlink(use);
            use->granted = use->begun = false;
        }
    }
}

/* Tries to place every wanted use: as early as allowed, or at the ends of the queues. */
static filch_status try_places(fl_joining *joining, bool is_last)
{
    list_uses(joining);
    for (uint32_t i = 0; i < joining->count; ++i) {
        filch_status status = enter_slot(joining, &joining->entries[i], is_last);
        if (status != FILCH_OK) {
            leave_slots(joining, i);
            return status;
        }
    }
    return FILCH_OK;
}

static filch_status take_places(fl_joining *joining)
{
    for (uint32_t i = 0; i < joining->count; ++i) {
        const fl_slot *slot = joining->entries[i].slot;
        if (!slot->is_joined && slot->use.data->is_acquired) {
            snprintf(joining->text, joining->bytes,
                     "the host has acquired %s%s%s and not released it",
                     FL_NAME("the handle ", slot->use.data->label, "the handle"));
            return FILCH_BUSY;
        }
    }
    return try_places(joining, false) == FILCH_OK ? FILCH_OK : try_places(joining, true);
}

/* Keeps the places found. If every use of the task is granted, the uses begin. */
static void keep_places(fl_joining *joining)
{
    filch_graph *graph = joining->graph;
    bool waits = false;
    for (uint32_t i = 0; i < joining->count; ++i) {
        fl_entry *entry = &joining->entries[i];
        entry->slot->is_joined = true;
        if (entry->entered != NULL) {
            fl_order_pass(entry->entered);
        }
        if (entry->entered != NULL && entry->entered == entry->upgrade) {
            entry->slot->use.upgrade = entry->upgrade;
            entry->upgrade = NULL;
        }
        waits = waits || !use_of(entry)->granted;
    }
    for (uint32_t i = 0; i < joining->count; ++i) {
        fl_entry *entry = &joining->entries[i];
        if (!waits) {
            fl_order_begin(graph->job, &entry->slot->use);
            fl_order_begin(graph->job, use_of(entry));
        } else if (entry->entered != NULL) {
            fl_slot *slot = entry->slot;
            /* Relaxed: the gate is not shared yet. */
            uint32_t epoch = fl_word_epoch(fl_load_relaxed(&entry->gate->word));
            entry->entered->gate = entry->gate;
            if (entry->entered->is_upgrade) {
                slot->write_gate = entry->gate;
                slot->write_epoch = epoch;
            } else {
                slot->gate = entry->gate;
                slot->gate_epoch = epoch;
            }
            entry->gate = NULL;
            fl_open_count_ready(graph);
            fl_store_release(&graph->gate_count, fl_load_relaxed(&graph->gate_count) + 1);
        }
    }
}

/* Enters slots of a cancelled job without waiting: the job's further tasks are skipped. */
static void forgo(fl_joining *joining)
{
    for (uint32_t i = 0; i < joining->count; ++i) {
        fl_slot *slot = joining->entries[i].slot;
        if (!slot->is_joined) {
            slot->use.job = joining->graph->job;
            slot->use.granted = slot->use.begun = slot->is_joined = true;
        }
    }
}

/* Notes the accesses admitted to later tasks without a new place. */
static void admit(fl_joining *joining)
{
    for (uint32_t i = 0; i < joining->count; ++i) {
        fl_slot *slot = joining->entries[i].slot;
        const fl_queued_access *upgrade = slot->use.upgrade;
        bool writes = (slot->use.begun && slot->use.writes) || (upgrade != NULL && upgrade->begun);
        slot->admits =
            writes ? FL_ADMITS_READ | FL_ADMITS_WRITE : (slot->use.begun ? FL_ADMITS_READ : 0);
        /* core->lock orders the effects of earlier jobs before later tasks. */
        slot->gate = slot->use.begun ? NULL : slot->gate;
        slot->write_gate = writes ? NULL : slot->write_gate;
    }
}

filch_status fl_open_enter(filch_graph *graph, const fl_task_access *accesses, uint32_t count,
                           char *text, size_t bytes)
{
    fl_core *core = graph->object.core;
    fl_entry entries[MOST_ENTRIES];
    fl_joining joining = {.graph = graph, .entries = entries, .text = text, .bytes = bytes};
    filch_status status = FILCH_OUT_OF_MEMORY;
    list_entries(&joining, accesses, count);
    if (take_memory(&joining)) {
        fl_mutex_lock(&core->lock);
        /* Relaxed: a cancelling thread takes the lock afterwards, and removes the places. */
        bool is_cancelled = fl_load_relaxed(&graph->job->cancelled) != 0;
        status = is_cancelled ? FILCH_OK : take_places(&joining);
        if (is_cancelled) {
            forgo(&joining);
        } else if (status == FILCH_OK) {
            keep_places(&joining);
            admit(&joining);
        }
        fl_mutex_unlock(&core->lock);
    }
    release(&joining);
    return status;
}

/* --- Tasks of running open graphs --- */

filch_status fl_open_check(const filch_graph *graph, const filch_task_desc *desc, bool *watches)
{
    if (fl_load_relaxed(&graph->job->cancelled) != 0) {
        return fl_graph_refuse(graph, desc, FILCH_WRONG_STATE,
                               "the open graph's job was cancelled or finished early");
    }
    return fl_open_check_contents(graph, desc, watches);
}

void fl_open_added(filch_graph *graph, const filch_task_desc *desc, fl_task *task, bool watches)
{
    fl_core *core = graph->object.core;
    filch_job *job = graph->job;
    if (watches) {
        fl_open_note_contents(graph, desc);
    }
    bool commutes = task->commutes; /* read before a worker may run the task */
    fl_store_relaxed(&job->total, graph->task_count - graph->own_count); /* statistics */
    fl_store_relaxed(&job->run_once, graph->restartable_count);
    uint32_t left = 0;
    if (commutes || task->predecessors != 0) {
        /* Acquire-release: if the predecessors have retired, the runner of the task sees their
         * results. */
        left = fl_sub_acq_rel(&task->pending, 1) - 1;
    } else {
        fl_store_relaxed(&task->pending, 0); /* no second thread knows the task yet */
    }
    if (commutes ? left == 1 && fl_commute_locks_take(task) : left == 0) {
        fl_open_count_ready(graph);
        core->scheduler->task_ready(core->scheduler, task);
    }
}
