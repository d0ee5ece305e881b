/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file job.hpp
 * Jobs: runs of graphs and batches, and broadcasts.
 */
#ifndef FILCH_CPP_JOB_HPP
#define FILCH_CPP_JOB_HPP

#include "filch/cpp/task.hpp"
#include "filch/report.h"

namespace filch
{

class graph;

namespace detail
{

class job_state final : public leftover
{
  public:
    job_state(std::shared_ptr<runtime_state> state, std::shared_ptr<owner> work)
        : runtime(std::move(state)), of(std::move(work))
    {
    }

    bool end() noexcept override
    {
        if (filch_job_status(handle) == FILCH_NOT_READY) {
            return false;
        }
        filch_job_release(handle);
        return true;
    }

    const failures *texts() const noexcept
    {
        return of ? &of->texts : nullptr;
    }

    std::shared_ptr<runtime_state> runtime;
    std::shared_ptr<owner> of;   /* null: a broadcast */
    std::shared_ptr<void> until; /* predicate of a repetition; null: none */
    filch_job *handle = nullptr;
};

/* Cancels the job and waits for its functions that run. */
struct job_end {
    void operator()(job_state *object) const noexcept
    {
        const std::shared_ptr<runtime_state> state = object->runtime;
        if (object->handle && state->handle) {
            if (filch_job_status(object->handle) == FILCH_NOT_READY) {
                filch_job_cancel(object->handle);
                if (!object->of || object->of->close()) {
                    filch_job_wait(object->handle, -1);
                }
            }
            leave(object, *state);
        } else {
            delete object;
        }
    }

    static void leave(job_state *object, runtime_state &state) noexcept
    {
        if (object->end()) {
            delete object;
        } else {
            state.leave(object);
        }
        state.sweep();
    }
};

} // namespace detail

/**
 * Run of a graph or a batch, or a broadcast; owner, move-only.
 *
 * The destructor never throws. A complete job is given back. A running job is cancelled first (an
 * open graph closed, too), and the destructor waits for the functions of the job that run at the
 * moment, and for the ends of its pending tasks (pending.h). No function of the job therefore runs
 * after the destructor, and captured references may end with the scope. Inside a task, and in poll
 * mode, the destructor runs other ready work meanwhile, as filch_job_wait() does. Where filch
 * refuses the wait (a completion callback, a task of the job itself), the cancelled job goes on to
 * its end alone. detach() lets a job run on.
 *
 * Thread safety: any thread may call the const functions concurrently, with no concurrent move,
 * detach() or destruction.
 */
class [[nodiscard]] job
{
  public:
    /**
     * Waits for the job.
     *
     * @throw error FILCH_TASK_FAILED: a task failed, with the text and the exception of the first
     *              failure; FILCH_CANCELLED; the refusals of filch_job_wait(). After
     *              FILCH_TASK_FAILED and FILCH_CANCELLED the job is complete.
     */
    void wait() const
    {
        settle(filch_job_wait(live("filch_job_wait"), -1));
    }

    /**
     * Waits for the job, with a time limit.
     *
     * @param seconds the limit, on a virtual clock in virtual seconds.
     * @return true if the job is complete; false if the time passed first.
     * @throw error as wait().
     */
    bool wait_for(double seconds) const
    {
        filch_status status = filch_job_wait(live("filch_job_wait"), seconds);
        if (status != FILCH_TIMEOUT) {
            settle(status);
        }
        return status != FILCH_TIMEOUT;
    }

    /**
     * Looks at the job, without waiting and without an exception.
     *
     * @return FILCH_NOT_READY while the job runs; then FILCH_OK, FILCH_TASK_FAILED or
     *         FILCH_CANCELLED; FILCH_INVALID_HANDLE after the end of the runtime.
     */
    filch_status status() const noexcept
    {
        return state_ && state_->runtime->handle ? filch_job_status(state_->handle)
                                                 : FILCH_INVALID_HANDLE;
    }

    /**
     * Asks the job to start nothing more, filch_job_cancel(). An open graph must still be closed.
     *
     * @throw error FILCH_INVALID_HANDLE, FILCH_FORKED.
     */
    void cancel() const
    {
        check(filch_job_cancel(live("filch_job_cancel")), "filch_job_cancel");
    }

    /**
     * Totals of the job, filch_job_stats().
     *
     * @return the totals.
     * @throw error FILCH_INVALID_HANDLE, FILCH_FORKED.
     */
    filch_job_info info() const
    {
        filch_job_info made = FILCH_JOB_INFO_INIT;
        check(filch_job_stats(live("filch_job_stats"), &made, nullptr, 0), "filch_job_stats");
        return made;
    }

    /**
     * Work of every device for the job, filch_job_stats().
     *
     * @return an element a device.
     * @throw error FILCH_INVALID_HANDLE, FILCH_FORKED; std::bad_alloc.
     */
    std::vector<filch_device_stats> devices() const
    {
        std::vector<filch_device_stats> made(info().device_count);
        filch_job_info totals = FILCH_JOB_INFO_INIT;
        check(filch_job_stats(state_->handle, &totals, made.data(),
                              static_cast<std::uint32_t>(made.size())),
              "filch_job_stats");
        return made;
    }

    /**
     * Fate of the items of a complete batch, filch_job_items(). Codes are the functions' own, as
     * filch::error::code().
     *
     * @return ranges in ascending order.
     * @throw error as filch_job_items(): FILCH_NOT_READY and others; std::bad_alloc.
     */
    std::vector<filch_item_range> items() const
    {
        std::size_t count = 0;
        check(filch_job_items(live("filch_job_items"), nullptr, 0, &count), "filch_job_items");
        std::vector<filch_item_range> made(count);
        check(filch_job_items(state_->handle, made.data(), count, &count), "filch_job_items");
        for (filch_item_range &each : made) {
            if (each.status == FILCH_TASK_FAILED) {
                each.code = detail::code_of(each.code, state_->texts());
            }
        }
        return made;
    }

    /**
     * Runs the unfinished items of a complete batch, filch_job_resume().
     *
     * @param devices indices of the allowed devices; empty: every device.
     * @return the new job.
     * @throw error as filch_job_resume(); std::bad_alloc.
     */
    job resume(const std::vector<std::uint32_t> &devices = {}) const
    {
        const char *call = "filch_job_resume";
        filch_resume_desc desc = FILCH_RESUME_DESC_INIT;
        desc.devices = devices.empty() ? nullptr : devices.data();
        desc.device_count = static_cast<std::uint32_t>(devices.size());
        live(call);
        job made(state_->runtime, state_->of);
        if (state_->of) {
            state_->of->texts.begin_run();
        }
        filch_status status =
            filch_job_resume(state_->handle, &desc, nullptr, &made.state_->handle);
        if (state_->of) {
            state_->of->texts.undo_refused_run(status);
        }
        check(status, call);
        return made;
    }

    /**
     * Breakdown of the devices' time, filch_job_report(), without the longest path.
     *
     * @return the report.
     * @throw error as filch_job_report(): FILCH_WRONG_STATE (a broadcast, a repetition) and others.
     */
    filch_report report() const
    {
        return report_with(nullptr, nullptr, 0);
    }

    /**
     * The same with the longest path through the graph.
     *
     * @param of the closed graph that the job ran or runs.
     * @return the report.
     * @throw error as filch_job_report(): FILCH_INVALID_ARGUMENT (another graph) and others.
     */
    filch_report report(const graph &of) const;

    /**
     * Breakdown of every device's time, filch_job_report().
     *
     * @return an element a device.
     * @throw error as report(); std::bad_alloc.
     */
    std::vector<filch_losses> losses() const
    {
        std::vector<filch_losses> made(report().device_count);
        report_with(nullptr, made.data(), static_cast<std::uint32_t>(made.size()));
        return made;
    }

    /**
     * Writes the report as text, filch_report_print(): where the time went, and what to change
     * first.
     *
     * @param file an open stream; the caller checks the stream's errors.
     * @throw error as report(); FILCH_INVALID_ARGUMENT (null @p file).
     */
    void print_report(std::FILE *file) const
    {
        print_with(nullptr, file);
    }

    /**
     * The same with the longest path through the graph.
     *
     * @param file an open stream; the caller checks the stream's errors.
     * @param of   the closed graph that the job ran or runs.
     * @throw error as above; FILCH_INVALID_ARGUMENT (another graph).
     */
    void print_report(std::FILE *file, const graph &of) const;

    /**
     * Lets the job run on without the owner, which is empty afterwards. Functions with their
     * captures live until the job has ended; memory behind captured references and pointers, and
     * buffers, must live as long: wait by runtime::drain(). The end of the runtime cancels the job.
     */
    void detach() noexcept
    {
        detail::job_state *object = state_.release();
        if (object && object->runtime->handle) {
            const std::shared_ptr<detail::runtime_state> state = object->runtime;
            detail::job_end::leave(object, *state);
        } else {
            delete object;
        }
    }

    /**
     * @return handle for calls of the C interface; stays the owner's; null
     *         after the runtime.
     */
    filch_job *handle() const noexcept
    {
        return state_ && state_->runtime->handle ? state_->handle : nullptr;
    }

  private:
    friend class batch;
    friend class graph;
    friend class runtime;

    job(std::shared_ptr<detail::runtime_state> state, std::shared_ptr<detail::owner> work)
        : state_(new detail::job_state(std::move(state), std::move(work)))
    {
    }

    filch_job *live(const char *call) const
    {
        if (!state_) {
            throw error(FILCH_INVALID_HANDLE, call, "the job is detached or moved from");
        }
        state_->runtime->live(call);
        return state_->handle;
    }

    void check(filch_status status, const char *call) const
    {
        detail::check(state_->runtime->handle, status, call);
    }

    filch_report report_with(filch_graph *of, filch_losses *devices, std::uint32_t count) const
    {
        const char *call = "filch_job_report";
        filch_report made = FILCH_REPORT_INIT;
        check(filch_job_report(live(call), of, &made, devices, count), call);
        return made;
    }

    void print_with(filch_graph *of, std::FILE *file) const
    {
        const char *call = "filch_report_print";
        check(filch_report_print(live(call), of, file), call);
    }

    /* Throws what a wait that has ended has to tell. */
    void settle(filch_status status) const
    {
        if (status == FILCH_TASK_FAILED || status == FILCH_CANCELLED) {
            filch_error details = FILCH_ERROR_INIT;
            filch_job_error(state_->handle, &details); /* unchanged where nothing failed */
            throw detail::make_error(details, status, "filch_job_wait", state_->texts());
        }
        check(status, "filch_job_wait");
    }

    std::unique_ptr<detail::job_state, detail::job_end> state_;
};

} // namespace filch

#endif
