/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file pending.hpp
 * Pending tasks: tasks that end after their function has returned.
 */
#ifndef FILCH_CPP_PENDING_HPP
#define FILCH_CPP_PENDING_HPP

#include <memory>

#include "filch/cpp/error.hpp"

namespace filch
{

namespace detail
{

/* What a token and the running function share: who ends the task. */
class pending_state
{
  public:
    explicit pending_state(const filch_pending &task) noexcept : handle(task)
    {
    }

    /* The function has returned a code, or thrown; what the code becomes for filch. */
    int leave(int code, const filch_call *call) noexcept
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        is_running_ = false;
        if (has_ended_ || (code == 0 && !is_dropped_)) {
            return FILCH_PENDING;
        }
        has_ended_ = true;
        if (code == 0) {
            filch_call_set_text(call, dropped);
        }
        return code == 0 ? -1 : code;
    }

    /* The token is lost. An exception that unwinds the function has more to tell: leave() ends. */
    void drop() noexcept
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        is_dropped_ = true;
        if (!is_running_ && !std::exchange(has_ended_, true)) {
            filch_pending_end(handle, -1, dropped);
        }
    }

    filch_status end(int code, const char *text) noexcept
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (code == FILCH_PENDING) {
            return FILCH_INVALID_ARGUMENT;
        }
        return std::exchange(has_ended_, true) ? FILCH_INVALID_HANDLE
                                               : filch_pending_end(handle, code, text);
    }

    /* The runtime may be gone once the task has ended, and knows no status then. */
    filch_status status() noexcept
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        return has_ended_ ? FILCH_INVALID_HANDLE : filch_pending_status(handle);
    }

    const filch_pending handle;

  private:
    static constexpr const char *dropped = "the pending task was dropped without an end";

    std::mutex mutex_; /* of the flags, and of calls with the handle */
    bool is_running_ = true;
    bool is_dropped_ = false;
    bool has_ended_ = false;
};

/* Whether the function that runs has made its task pending. */
class pend_frame
{
  public:
    /* What the function's code becomes for filch. */
    int leave(int code, const filch_call *call) const noexcept
    {
        return state ? state->leave(code == FILCH_PENDING ? 0 : code, call) : code;
    }

    std::shared_ptr<pending_state> state;
};

} // namespace detail

/**
 * Task that ends later; a token, move-only, made by context::pend().
 *
 * The owner of the token ends the task, by end() on any thread. The destructor of a token that has
 * not ended its task fails the task with the code -1, so that no task waits for ever because its
 * token was lost. No destructor throws.
 *
 * A function that leaves by an exception, or returns a code other than 0, ends its task itself,
 * unless the token has: end() then throws FILCH_INVALID_HANDLE.
 *
 * Thread safety: calls of end() and status() on any thread, concurrently, too; with no concurrent
 * move or destruction.
 */
class [[nodiscard]] pending
{
  public:
    /** Makes a token of no task. */
    pending() noexcept = default;
    /** Moves the token. @param other is empty afterwards. */
    pending(pending &&other) noexcept = default;
    /** Fails the own task, if there is one, and moves. @param other is empty. @return *this. */
    pending &operator=(pending &&other) noexcept
    {
        pending old(std::move(other));
        std::swap(state_, old.state_);
        return *this;
    }
    /** Fails the task unless it has ended, as said above. */
    ~pending()
    {
        if (state_) {
            state_->drop();
        }
    }

    /**
     * Ends the task: filch_pending_end(). Allowed also before the function has returned. What was
     * written to the task's views is visible to successors.
     *
     * @param code 0, or the caller's own code, which fails the task.
     * @param text reason of a failure, part of filch::error::what(); cut at 191 bytes.
     * @throw error FILCH_INVALID_HANDLE (no task, or the task has ended already);
     *              FILCH_INVALID_ARGUMENT (@p code is FILCH_PENDING; the task stays pending);
     *              FILCH_FORKED.
     */
    void end(int code = 0, const std::string &text = {})
    {
        const char *call = "filch_pending_end";
        const filch_status status = state_
                                        ? state_->end(code, text.empty() ? nullptr : text.c_str())
                                        : FILCH_INVALID_HANDLE;
        if (status == FILCH_INVALID_HANDLE) {
            throw error(status, call, "no task is pending: it has ended, or the token is empty");
        }
        if (status == FILCH_INVALID_ARGUMENT) {
            throw error(status, call, "FILCH_PENDING is no code of a task that ends");
        }
        if (status != FILCH_OK) {
            throw error(status, call, filch_status_message(status));
        }
    }

    /**
     * Tells whether the task is still wanted, filch_pending_status().
     *
     * @return FILCH_NOT_READY; FILCH_CANCELLED (the job was cancelled or finished early, and waits
     *         for the end); FILCH_INVALID_HANDLE (no task, or the task has ended); FILCH_FORKED.
     */
    filch_status status() const noexcept
    {
        return state_ ? state_->status() : FILCH_INVALID_HANDLE;
    }

    /**
     * Gives the task up to the C interface, e.g. as the argument of another library's callback:
     * whoever has the handle ends the task by filch_pending_end(). The token is empty afterwards.
     *
     * @return handle of the task; all zero for a token of no task.
     */
    [[nodiscard]] filch_pending release() noexcept
    {
        const filch_pending handle = state_ ? state_->handle : filch_pending{nullptr, 0};
        state_.reset();
        return handle;
    }

  private:
    friend class context;

    explicit pending(std::shared_ptr<detail::pending_state> state) noexcept
        : state_(std::move(state))
    {
    }

    std::shared_ptr<detail::pending_state> state_;
};

} // namespace filch

#endif
