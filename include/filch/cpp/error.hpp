/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file error.hpp
 * Exceptions for statuses, and texts of tasks that fail by an exception.
 */
#ifndef FILCH_CPP_ERROR_HPP
#define FILCH_CPP_ERROR_HPP

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iterator>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "filch/filch.h"

namespace filch
{

/**
 * Code of a task that a C++ exception failed, where the exception is no filch::failure. Codes from
 * here to here + 2^23 are reserved: no function of a task may return them. FILCH_PENDING is none.
 */
inline constexpr std::int32_t thrown = INT32_MIN;

/** Exception of a task that fails with a code of its own. */
class FILCH_API failure : public std::runtime_error
{
  public:
    /**
     * Makes the exception.
     *
     * @param code code of the task, filch::error::code(); 0 and FILCH_PENDING are no failures and
     *             become filch::thrown.
     * @param text text of the task, part of filch::error::what().
     */
    failure(std::int32_t code, const std::string &text)
        : std::runtime_error(text), code_(code != 0 && code != FILCH_PENDING ? code : thrown)
    {
    }

    /** @return the code. */
    std::int32_t code() const noexcept
    {
        return code_;
    }

  private:
    std::int32_t code_;
};

/**
 * Failure of a call or a job. Copies share nothing with filch: an error may outlive its runtime.
 *
 * Thread safety: as std::runtime_error; reading is safe from any thread.
 */
class FILCH_API error : public std::runtime_error
{
  public:
    /**
     * Makes an error from a record of the C interface.
     *
     * @param status  status of the call, or result of the job.
     * @param details the record.
     * @param text    the sentence of what(), behind the status's name.
     * @param cause   exception of the failed task; null: no exception.
     */
    error(filch_status status, const filch_error &details, const std::string &text,
          std::exception_ptr cause = nullptr)
        : std::runtime_error(std::string(filch_status_name(status)) + ": " + text), status_(status),
          details_(details), cause_(std::move(cause))
    {
    }

    /**
     * Makes an error of the C++ interface itself.
     *
     * @param status the status.
     * @param call   name of the failed function.
     * @param text   a sentence about the failure.
     */
    error(filch_status status, const char *call, const std::string &text)
        : error(status, record(status, call, text), text)
    {
    }

    /**
     * @return the status of the failed call, or the result of the failed job; of a job that a
     * device failed, details().status has the device's reason.
     */
    filch_status status() const noexcept
    {
        return status_;
    }

    /** @return the status's name, e.g. "TASK_FAILED"; constant. */
    const char *name() const noexcept
    {
        return filch_status_name(status_);
    }

    /** @return code of the task, the driver or the system: filch_error.native_code. */
    std::int32_t code() const noexcept
    {
        return details_.native_code;
    }

    /** @return label of the task, codelet or handle concerned; empty if there is none. */
    const char *label() const noexcept
    {
        return details_.label;
    }

    /** @return name of the device concerned; empty if there is none. */
    const char *device() const noexcept
    {
        return details_.device;
    }

    /** @return the whole record. */
    const filch_error &details() const noexcept
    {
        return details_;
    }

    /**
     * @return the exception of the failed task, for std::rethrow_exception(); null: the task
     *         returned a code, or the failure is no task's.
     */
    std::exception_ptr cause() const noexcept
    {
        return cause_;
    }

  private:
    static filch_error record(filch_status status, const char *call, const std::string &text)
    {
        filch_error made = FILCH_ERROR_INIT;
        made.status = status;
        std::snprintf(made.call, sizeof made.call, "%s", call);
        std::snprintf(made.text, sizeof made.text, "%s", text.c_str());
        return made;
    }

    filch_status status_;
    filch_error details_;
    std::exception_ptr cause_;
};

namespace detail
{

/* Texts of the exceptions of tasks, kept beside filch: a task's code is the number of the text. */
class failures
{
  public:
    struct entry {
        std::int32_t number = 0;
        std::int32_t code = 0;
        std::uint64_t run = 0;
        std::string text = {};
        std::exception_ptr cause = {};
    };

    /* The code to return for the exception being handled. Without memory the text is lost. */
    std::int32_t note(std::int32_t code, const char *text) noexcept
    {
        try {
            std::vector<entry>
                dropped; /* ends behind the lock: an exception's destructor may call */
            const std::lock_guard<std::mutex> lock(mutex_);
            if (entries_.size() >= limit && swept_ != run_) { /* once a run */
                swept_ = run_;
                const auto from =
                    std::partition(entries_.begin(), entries_.end(),
                                   [this](const entry &each) { return each.run >= run_; });
                dropped.assign(std::make_move_iterator(from),
                               std::make_move_iterator(entries_.end()));
                entries_.erase(from, entries_.end());
            }
            if (entries_.size() >= limit) {
                return code;
            }
            std::int32_t number = thrown + 1 + static_cast<std::int32_t>(count_ % numbers);
            entries_.push_back({number, code, run_, text, std::current_exception()});
            ++count_;
            return number;
        } catch (...) {
            return code;
        }
    }

    /* Whether a code stands for a text, there still or dropped, or for filch::thrown. */
    static bool is_number(std::int32_t code) noexcept
    {
        return code <= thrown + static_cast<std::int32_t>(numbers);
    }

    /* False if the code is no text's. */
    bool find(std::int32_t number, entry &found) const
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        for (auto at = entries_.rbegin(); at != entries_.rend(); ++at) {
            if (at->number == number) {
                found = *at;
                return true;
            }
        }
        return false;
    }

    /* Before a submission: where there are too many, texts of earlier runs, also of one that this
     * run stands in line behind, may be dropped from now on. */
    void begin_run() noexcept
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        ++run_;
    }

    /* After a submission: a run that did not begin drops no texts of the run that goes on. */
    void undo_refused_run(filch_status status) noexcept
    {
        if (status != FILCH_OK && status != FILCH_TASK_FAILED && status != FILCH_CANCELLED) {
            const std::lock_guard<std::mutex> lock(mutex_);
            --run_;
        }
    }

  private:
    static constexpr std::size_t limit = 1024; /* devices of a runtime: the first failure is among
                                                  the first so many texts */
    static constexpr std::uint32_t numbers = (1U << 23) - 1;
    static_assert(thrown + static_cast<std::int32_t>(numbers) < FILCH_PENDING);

    mutable std::mutex mutex_;
    std::vector<entry> entries_;
    std::uint32_t count_ = 0;
    std::uint64_t run_ = 0, swept_ = 0;
};

/* The code of the exception being handled, with its text for texts, or without them for filch. */
inline int tell(failures *texts, const filch_call *call, std::int32_t code,
                const char *text) noexcept
{
    if (!texts && call) {
        filch_call_set_text(call, text);
    }
    return texts ? texts->note(code, text) : code;
}

/* Calls a body of the host's inside a function of the C interface: no exception leaves. */
template <class Body>
int guarded(failures *texts, const Body &body, const filch_call *call = nullptr) noexcept
{
    try {
        return body();
    } catch (const failure &caught) {
        return tell(texts, call, caught.code(), caught.what());
    } catch (const std::exception &caught) {
        return tell(texts, call, thrown, caught.what());
    } catch (...) {
        return tell(texts, call, thrown, "an exception that is no std::exception");
    }
}

/* What a kernel's function has told filch of its exception, behind the name of the device. */
inline std::string told_of(const filch_error &details)
{
    const std::string text = details.text, device = " on " + std::string(details.device) + ": ";
    const std::size_t at = text.find(device);
    return at == std::string::npos ? "an exception, whose text was not kept"
                                   : text.substr(at + device.size());
}

/* The function's own code of what a record has. No number of a text is shown. */
inline std::int32_t code_of(std::int32_t code, const failures *texts)
{
    failures::entry entry;
    if (!failures::is_number(code)) {
        return code;
    }
    return texts && texts->find(code, entry) ? entry.code : thrown;
}

/* Error from a record of filch, with the text of the task's exception where there was one. */
inline error make_error(filch_error details, filch_status status, const char *call,
                        const failures *texts)
{
    failures::entry entry;
    if (details.text[0] == '\0') { /* a status without details */
        return error(status, call, filch_status_message(status));
    }
    std::string text = details.text;
    if (details.status == FILCH_TASK_FAILED && failures::is_number(details.native_code)) {
        if (!texts || !texts->find(details.native_code, entry)) {
            entry.code = thrown;
            entry.text = told_of(details);
        }
        if (details.device[0] != '\0') {
            text = std::string(details.label) + " on " + details.device;
        } else { /* a predicate, which runs on no device; its code is the number of the text */
            const std::string returned = " returned " + std::to_string(details.native_code);
            const std::size_t at = text.find(returned);
            text = at == std::string::npos ? text : text.erase(at, returned.size());
        }
        text += ": " + entry.text;
        details.native_code = entry.code;
        std::snprintf(details.text, sizeof details.text, "%s", text.c_str());
    }
    return error(status, details, text, entry.cause);
}

/* Throws unless a call on a runtime succeeded. */
inline void check(filch_runtime *runtime, filch_status status, const char *call)
{
    if (status == FILCH_OK) {
        return;
    }
    filch_error details = FILCH_ERROR_INIT;
    if (!runtime || filch_runtime_error(runtime, &details) != FILCH_OK ||
        details.status != status) {
        details = FILCH_ERROR_INIT;
    }
    throw make_error(details, status, call, nullptr);
}

} // namespace detail

} // namespace filch

#endif
