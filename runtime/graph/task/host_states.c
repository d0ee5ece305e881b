/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/task/host_states.h"

struct fl_host_states {
    filch_host_close_fn close;
    void *user;
    uint32_t count; /* devices */
    struct {
        void *state;
        bool is_open;
    } at[];
};

static size_t bytes_of(uint32_t count)
{
    const fl_host_states *states = NULL;
    return sizeof *states + count * sizeof states->at[0];
}

filch_status fl_host_states_open(fl_core *core, const filch_codelet_desc *desc, fl_device *devices,
                                 uint32_t count, fl_host_states **made, filch_error *error)
{
    *made = NULL;
    if (desc->open == NULL) {
        return FILCH_OK;
    }
    fl_host_states *states = fl_alloc_zeroed(&core->memory, bytes_of(count));
    if (states == NULL) {
        return fl_error_fill(error, (fl_fault){.status = FILCH_OUT_OF_MEMORY, .label = desc->name},
                             "no memory for the states of '%s'", desc->name);
    }
    states->close = desc->close;
    states->user = desc->user;
    states->count = count;
    for (uint32_t d = 0; d < count; ++d) {
        if ((devices[d].implementations & FL_IMPL_HOST_FN) == 0) {
            continue;
        }
        int code = desc->open((filch_runtime *)(void *)core, d, desc->user, &states->at[d].state);
        if (code != 0) {
            fl_host_states_close(core, states);
            return fl_error_fill(
                error,
                (fl_fault){.status = FILCH_TASK_FAILED,
                           .native_code = code,
                           .device = devices[d].info.name,
                           .label = desc->name},
                "the state of '%s' could not be made on %s: its open function returned %d",
                desc->name, devices[d].info.name, code);
        }
        states->at[d].is_open = true;
    }
    *made = states;
    return FILCH_OK;
}

void fl_host_states_close(fl_core *core, fl_host_states *states)
{
    if (states == NULL) {
        return;
    }
    for (uint32_t d = 0; d < states->count; ++d) {
        if (states->at[d].is_open && states->close != NULL) {
            states->close(d, states->user, states->at[d].state);
        }
    }
    fl_free(&core->memory, states, bytes_of(states->count));
}

void *fl_host_states_at(const fl_host_states *states, uint32_t device)
{
    return states != NULL ? states->at[device].state : NULL;
}
