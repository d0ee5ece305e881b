/* SPDX-License-Identifier: Apache-2.0 */
/* Begin and end of a job on the devices: functions of fl_scheduler (graph/scheduler.h). */
#ifndef FL_SCHED_EXECUTE_JOB_START_H
#define FL_SCHED_EXECUTE_JOB_START_H

#include "sched/worker/sched.h"

uint32_t fl_job_owner(fl_scheduler *self, const uint64_t *set, uint64_t index, uint64_t count);
void fl_job_reset_part(fl_scheduler *self, filch_job *job);
void fl_job_drop_part(fl_scheduler *self, filch_job *job);
void fl_job_start(fl_scheduler *self, filch_job *job);
void fl_job_retire(fl_scheduler *self, filch_job *job);
bool fl_graph_seal_part(fl_scheduler *self, filch_graph *graph);
void fl_graph_drop_part(fl_scheduler *self, filch_graph *graph);

#endif
