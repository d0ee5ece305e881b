/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file local.hpp
 * Values of devices: what functions of the host's have for each device, such as a workspace.
 */
#ifndef FILCH_CPP_LOCAL_HPP
#define FILCH_CPP_LOCAL_HPP

#include "filch/cpp/state.hpp"
#include "filch/cpp/view.hpp"

namespace filch
{

namespace detail
{

/* The values by device, and the function that makes them. */
template <class T> class local_state
{
  public:
    explicit local_state(std::uint32_t devices) : values(devices, nullptr)
    {
    }

    template <class Open>
    filch_status create(filch_runtime *runtime, Open &open, filch_codelet **codelet)
    {
        struct caller {
            local_state *self;
            Open *open;
        } called = {this, &open};
        calling_ = &called;
        filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
        desc.name = "filch::local";
        desc.host = [](const filch_call *) -> int { return 0; };
        desc.user = this;
        desc.open = [](filch_runtime *, std::uint32_t device, void *user, void **state) -> int {
            const caller &from = *static_cast<caller *>(static_cast<local_state *>(user)->calling_);
            return guarded(&from.self->texts, [&] {
                *state = from.self->values[device] = new T((*from.open)(device));
                return 0;
            });
        };
        desc.close = [](std::uint32_t device, void *user, void *state) {
            static_cast<local_state *>(user)->values[device] = nullptr;
            delete static_cast<T *>(state);
        };
        const filch_status status = filch_codelet_create(runtime, &desc, codelet);
        calling_ = nullptr;
        return status;
    }

    std::vector<T *> values;
    failures texts;

  private:
    void *calling_ = nullptr; /* during create() */
};

} // namespace detail

/**
 * A value of type T for each device that runs host functions; made by runtime::local(). A small
 * value over the runtime's objects, to be captured by functions of tasks, or to stand in the
 * arguments of a kernel. The values live until the runtime ends.
 *
 * A device runs one function at a time, so that a value has one user at a time; but while a
 * function waits for other work, its device may run another function.
 */
template <class T> class local
{
  public:
    /**
     * Finds the value of the device that runs a function.
     *
     * @param here context of the function.
     * @return the value.
     */
    T &of(const context &here) const noexcept
    {
        return *state_->values[here.device()];
    }

  private:
    friend class runtime;

    explicit local(detail::local_state<T> *state) noexcept : state_(state)
    {
    }

    detail::local_state<T> *state_; /* the runtime's state keeps it */
};

} // namespace filch

#endif
