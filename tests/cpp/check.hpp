/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs that test the C++ interface share. */
#ifndef TESTS_CPP_CHECK_HPP
#define TESTS_CPP_CHECK_HPP

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "filch/filch.hpp"

/* Ends the program where a condition does not hold. */
#define CHECK(condition)                                                         \
    do {                                                                         \
        if (!(condition)) {                                                      \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            std::exit(1);                                                        \
        }                                                                        \
    } while (0)

/* The error that a call throws; the call must throw one with the status. */
template <class Call> filch::error thrown_by(filch_status status, const Call &call)
{
    try {
        call();
    } catch (const filch::error &caught) {
        if (caught.status() != status) {
            std::fprintf(stderr, "in place of %s: %s\n", filch_status_name(status), caught.what());
            std::exit(1);
        }
        return caught;
    }
    std::fprintf(stderr, "nothing thrown in place of %s\n", filch_status_name(status));
    std::exit(1);
}

inline bool contains(const std::string &text, const std::string &part)
{
    return text.find(part) != std::string::npos;
}

/* A door that tasks wait at until it is opened. */
class door
{
  public:
    void open() noexcept
    {
        is_open_.store(true, std::memory_order_release);
    }
    void pass() noexcept
    {
        waiting_.fetch_add(1, std::memory_order_acq_rel);
        while (!is_open_.load(std::memory_order_acquire)) {
            std::this_thread::yield();
        }
    }
    /* Returns once so many have come. */
    void await(int count) const noexcept
    {
        while (waiting_.load(std::memory_order_acquire) < count) {
            std::this_thread::yield();
        }
    }

  private:
    std::atomic<bool> is_open_{false};
    std::atomic<int> waiting_{0};
};

/* Counts how many of its copies live. */
class counted
{
  public:
    explicit counted(std::atomic<int> &live) : live_(&live)
    {
        live_->fetch_add(1);
    }
    counted(const counted &other) : live_(other.live_)
    {
        live_->fetch_add(1);
    }
    counted &operator=(const counted &) = delete;
    ~counted()
    {
        live_->fetch_sub(1);
    }

  private:
    std::atomic<int> *live_;
};

#endif
