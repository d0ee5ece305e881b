/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file state.hpp
 * Internal: objects behind the owners of the C++ interface.
 *
 * A runtime's state lives as long as any owner made from the runtime; the runtime itself ends with
 * its filch::runtime. Owners then know by a null handle. An object still in use when its owner is
 * destroyed becomes a leftover of the state, and ends once the last user has ended.
 */
#ifndef FILCH_CPP_STATE_HPP
#define FILCH_CPP_STATE_HPP

#include <atomic>
#include <cstring>
#include <memory>
#include <new>

#include "filch/cpp/error.hpp"

namespace filch
{

namespace detail
{

/* An object that could not end with its owner. */
class leftover
{
  public:
    leftover() = default;
    leftover(const leftover &) = delete;
    leftover &operator=(const leftover &) = delete;
    virtual ~leftover() = default;
    /* Ends the object in filch; false: the object is still in use. */
    virtual bool end() noexcept = 0;

    leftover *next = nullptr;
};

class runtime_state
{
  public:
    runtime_state() = default;
    runtime_state(const runtime_state &) = delete;
    runtime_state &operator=(const runtime_state &) = delete;

    ~runtime_state()
    {
        for (std::atomic<cached *> &bucket : codelets_) {
            for (cached *at = bucket.load(std::memory_order_relaxed); at;) {
                cached *next = at->next;
                delete at;
                at = next;
            }
        }
    }

    /* Throws where the runtime has ended. */
    filch_runtime *live(const char *call) const
    {
        if (!handle) {
            throw error(FILCH_INVALID_HANDLE, call, "the runtime has ended");
        }
        return handle;
    }

    void leave(leftover *object) noexcept
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        object->next = leftovers_;
        leftovers_ = object;
    }

    /* Ends leftovers that nobody uses any more; the end of one may set another free. */
    void sweep() noexcept
    {
        for (bool goes_on = true; goes_on;) {
            leftover *at = take_all();
            goes_on = false;
            while (at) {
                leftover *next = at->next;
                if (at->end()) {
                    delete at;
                    goes_on = true;
                } else {
                    leave(at);
                }
                at = next;
            }
        }
    }

    /* The runtime is no more. */
    void forget() noexcept
    {
        handle = nullptr;
        for (leftover *at = take_all(); at; at = take_all()) {
            while (at) {
                leftover *next = at->next;
                delete at;
                at = next;
            }
        }
    }

    /* The codelet of a function: made at the first use. */
    filch_codelet *codelet(const filch_codelet_desc &desc)
    {
        std::atomic<cached *> &bucket =
            codelets_[(reinterpret_cast<std::uintptr_t>(desc.host) >> 4) % buckets];
        filch_codelet *found = search(bucket.load(std::memory_order_acquire), desc);
        if (found) {
            return found;
        }
        const std::lock_guard<std::mutex> lock(making_);
        cached *head = bucket.load(std::memory_order_acquire);
        if ((found = search(head, desc)) != nullptr) {
            return found;
        }
        std::unique_ptr<cached> made(
            new cached{head, desc.host, desc.work, desc.arg_size, desc.flags, desc.name, nullptr});
        check(handle, filch_codelet_create(handle, &desc, &made->handle), "filch_codelet_create");
        found = made->handle;
        bucket.store(made.release(), std::memory_order_release); /* release: made first */
        return found;
    }

    /* Lets an object live as long as the state. */
    void keep(std::shared_ptr<void> object)
    {
        const std::lock_guard<std::mutex> lock(making_);
        kept_.push_back(std::move(object));
    }

    filch_runtime *handle = nullptr; /* null once the runtime has ended */

  private:
    struct cached {
        cached *next;
        filch_host_fn host;
        filch_work_fn work;
        std::uint32_t arg_size;
        std::uint32_t flags;
        std::string name;
        filch_codelet *handle;
    };
    static constexpr std::size_t buckets = 64;

    static filch_codelet *search(const cached *at, const filch_codelet_desc &desc) noexcept
    {
        for (; at; at = at->next) {
            if (at->host == desc.host && at->work == desc.work && at->arg_size == desc.arg_size &&
                at->flags == desc.flags && std::strcmp(at->name.c_str(), desc.name) == 0) {
                return at->handle;
            }
        }
        return nullptr;
    }

    leftover *take_all() noexcept
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        leftover *all = leftovers_;
        leftovers_ = nullptr;
        return all;
    }

    std::mutex mutex_;  /* of leftovers */
    std::mutex making_; /* of codelets and kept objects */
    std::vector<std::shared_ptr<void>> kept_;
    leftover *leftovers_ = nullptr;
    std::atomic<cached *> codelets_[buckets] = {};
};

/* A function with captures that do not fit into the arguments of a task. */
class capture
{
  public:
    capture() = default;
    capture(const capture &) = delete;
    capture &operator=(const capture &) = delete;
    virtual ~capture() = default;

    capture *previous = nullptr;
    capture *next = nullptr;
};

/* What tasks point to: a graph, or a batch. */
class owner : public leftover
{
  public:
    explicit owner(std::shared_ptr<runtime_state> state) : runtime(std::move(state))
    {
    }

    /* No more tasks follow, so that a cancelled job can complete; false: more may follow. */
    virtual bool close() noexcept = 0;
    /* A function that runs once has run. */
    virtual void drop(capture *function) noexcept = 0;

    std::shared_ptr<runtime_state> runtime;
    failures texts;
};

/* Ends an owner with its last user, or later. */
struct owner_end {
    void operator()(owner *object) const noexcept
    {
        const std::shared_ptr<runtime_state> state = object->runtime; /* outlives the object */
        if (state->handle && !object->end()) {
            state->leave(object);
        } else {
            delete object;
        }
        if (state->handle) {
            state->sweep();
        }
    }
};

} // namespace detail

} // namespace filch

#endif
