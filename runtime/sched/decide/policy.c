/* SPDX-License-Identifier: Apache-2.0 */
/* Asking a policy about tasks and victims; senseless answers count as refused. */
#include "sched/decide/policy.h"

#include <stdio.h>
#include <string.h>

#include "sched/worker/sched.h"

/* --- Beginning and end --- */

static const char *const names[] = {
    [FILCH_POLICY_STEAL] = "steal",
    [FILCH_POLICY_STATIC] = "static",
    [FILCH_POLICY_CUSTOM] = "custom",
};

filch_status fl_rules_init(fl_sched *sched, filch_policy kind, const filch_policy_desc *desc)
{
    fl_rules *rules = &sched->rules;
    rules->kind = kind;
    rules->with = desc != NULL ? *desc : (filch_policy_desc)FILCH_POLICY_DESC_INIT;
    rules->is_true = (rules->with.flags & FILCH_POLICY_TRUE_TIMES) != 0;
    const char *name = desc != NULL && desc->name != NULL ? desc->name : names[kind];
    (void)snprintf(rules->name, sizeof rules->name, "%s", name);
    rules->with.name = rules->name;
    if (!fl_rules_place(rules)) {
        return FILCH_OK;
    }
    rules->free_at = fl_alloc_zeroed(&sched->core->memory, sched->count * sizeof *rules->free_at);
    if (rules->free_at == NULL) {
        return FILCH_OUT_OF_MEMORY;
    }
    filch_status status = fl_mutex_init(&rules->common.lock);
    if (status != FILCH_OK) {
        fl_free(&sched->core->memory, (void *)rules->free_at,
                sched->count * sizeof *rules->free_at);
        rules->free_at = NULL;
    }
    return status;
}

void fl_rules_fini(fl_sched *sched)
{
    fl_rules *rules = &sched->rules;
    if (rules->free_at != NULL) {
        fl_mutex_fini(&rules->common.lock);
        fl_free(&sched->core->memory, (void *)rules->free_at,
                sched->count * sizeof *rules->free_at);
        rules->free_at = NULL;
    }
}

/* --- Placing --- */

static void count(fl_asked *asked, bool is_refused)
{
    fl_add_relaxed(&asked->times, 1);
    if (is_refused) {
        fl_add_relaxed(&asked->refused, 1);
    }
}

/* Tells whether the policy is asked about a task. Tasks added by filch are bound to the device
 * where the task became ready. */
static bool is_asked_for(const fl_task *task)
{
    return !fl_task_is_own(task);
}

static uint32_t ask_place(fl_sched *sched, fl_worker *w, fl_task *task)
{
    fl_rules *rules = &sched->rules;
    const filch_policy_view view = {.sched = sched, .worker = w, .task = task};
    uint32_t device = rules->with.place(&view, rules->with.user);
    bool is_word = device == FILCH_POLICY_AUTO || device == FILCH_POLICY_ANYONE;
    bool is_good = is_word || filch_policy_can_run(&view, device);
    count(&rules->places, !is_good);
    /* Relaxed: the first thread writes the warning. */
    if (!is_good && device >= sched->count && fl_add_relaxed(&rules->strays, 1) == 0) {
        fl_log_write(&sched->core->log, FILCH_LOG_WARNING,
                     "the policy's place() answered device %u, but there are %u; filch places such "
                     "tasks itself, and says so once",
                     device, sched->count);
    }
    if (!is_good) {
        return FILCH_POLICY_AUTO;
    }
    if (!is_word) {
        fl_view_charge(&view, device);
    }
    return device;
}

uint32_t fl_policy_ask_place(fl_sched *sched, fl_worker *w, fl_task *task)
{
    return is_asked_for(task) ? ask_place(sched, w, task) : FILCH_POLICY_AUTO;
}

/* --- Victims --- */

bool fl_policy_victim(fl_worker *w, uint32_t *victim, uint32_t *amount)
{
    fl_rules *rules = &w->sched->rules;
    const filch_policy_view view = {.sched = w->sched, .worker = w};
    uint32_t want = 1;
    uint32_t device = rules->with.steal(&view, &want, rules->with.user);
    bool is_word = device == FILCH_POLICY_AUTO || device == FILCH_POLICY_NOBODY;
    bool is_good = is_word || (device < w->sched->count && device != w->index && want != 0);
    count(&rules->steals, !is_good);
    *victim = is_good ? device : FILCH_POLICY_AUTO;
    *amount = want;
    return *victim != FILCH_POLICY_NOBODY;
}
