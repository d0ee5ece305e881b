/* SPDX-License-Identifier: Apache-2.0 */
/* Handles of jobs: given to the user by a submission, and given back by a release. A call that runs
 * a job to its end keeps the job itself: then there is no handle that a callback could release. */
#include "graph/job/job.h"

void fl_job_lend(filch_job *job, bool is_lent, filch_job **handle)
{
    /* Relaxed, both: the start of the job, or the caller's return, publishes the stores. */
    if (handle != NULL) {
        fl_store_relaxed(&job->is_lent, is_lent ? 1 : 0);
        *handle = job;
    } else {
        fl_store_relaxed(&job->refs, 1); /* the run's own reference */
    }
}

filch_status filch_job_release(filch_job *job)
{
    filch_status status = fl_object_check(job, FL_MAGIC_JOB);
    if (status != FILCH_OK) {
        return status;
    }
    uint32_t lent = 1;
    /* Relaxed: the swap only decides which of several releases drops the reference. The count of
     * references orders the use of the job before its next life. Nobody lends the job meanwhile:
     * the flag is set once in a life, before the job can start. */
    if (!fl_cas_relaxed(&job->is_lent, &lent, 0)) {
        return fl_core_fail(job->object.core, FILCH_WRONG_STATE, "filch_job_release", job->label,
                            "%s%s%s has no handle to release: the submission kept none, or it was "
                            "released before",
                            FL_NAME("job ", job->label, "the job"));
    }
    fl_job_drop(job);
    return FILCH_OK;
}
