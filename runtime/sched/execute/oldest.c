/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/execute/oldest.h"

#include "sched/account/ledger.h"
#include "sched/worker/others.h"
#include "sched/worker/tuning.h"

void fl_oldest_look(fl_worker *w, fl_deque *deque, uint32_t most, fl_oldest *oldest)
{
    int64_t index = 0;
    uint64_t hint;
    bool is_top;
    oldest->count = 0;
    for (uint32_t i = 0;
         i < FL_TASKS_SEEN && oldest->count < most && fl_deque_look(deque, &index, &hint, &is_top);
         ++i, ++index) {
        if (hint == 0) {
            continue;
        }
        if (!fl_hint_is_live(hint)) {
            /* Dropping is final: the hint was received after the task had entered the hinted state,
             * and the state never returns. */
            if (is_top) {
                fl_deque_drop(deque, index);
            }
        } else if (!fl_hint_is_for(w, hint)) {
            fl_ledger_refuse(&w->ledger, FL_REFUSED_UNABLE);
        } else {
            oldest->hints[oldest->count] = hint;
            oldest->is_top[oldest->count] = is_top;
            oldest->at[oldest->count++] = index;
        }
    }
}

uint32_t fl_oldest_least(const fl_oldest *oldest)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < oldest->count; ++i) {
        best = oldest->missing[i].bytes < oldest->missing[best].bytes ? i : best;
    }
    return best;
}

void fl_oldest_forget(fl_oldest *oldest, uint32_t index)
{
    --oldest->count;
    for (uint32_t i = index; i < oldest->count; ++i) {
        oldest->hints[i] = oldest->hints[i + 1];
        oldest->at[i] = oldest->at[i + 1];
        oldest->is_top[i] = oldest->is_top[i + 1];
        oldest->missing[i] = oldest->missing[i + 1];
    }
}
