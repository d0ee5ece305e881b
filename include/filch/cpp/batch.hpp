/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file batch.hpp
 * Batches: a function run over the items 0..n, cut over the devices at run time.
 */
#ifndef FILCH_CPP_BATCH_HPP
#define FILCH_CPP_BATCH_HPP

#include "filch/cpp/job.hpp"

namespace filch
{

/** Number of items of a batch, with options. The functions with options return a copy. */
class items
{
  public:
    /**
     * Counts the items.
     *
     * @param count number of items, below 2^63.
     */
    items(std::uint64_t count) noexcept : count_(count)
    {
    }

    /**
     * Names the function of the batch in errors and traces, and among measured speeds; "batch"
     * else. For functions, not for kernels: a kernel has a name of its own, and runtime::batch()
     * tells the batch's name where it refuses an access.
     *
     * @param text the name; must live until the call that takes the items returns.
     * @return a copy with the name.
     */
    [[nodiscard]] items name(const char *text) const noexcept
    {
        items made = *this;
        made.name_ = text ? text : "";
        return made;
    }

    /**
     * Sets the grain: cuts fall on multiples of the grain.
     *
     * @param count items a grain; 0 means 1.
     * @return a copy with the grain.
     */
    [[nodiscard]] items grain(std::uint64_t count) const noexcept
    {
        items made = *this;
        made.grain_ = count;
        return made;
    }

    /**
     * Declares the work of an item; filch_codelet_desc.work. For functions, not for kernels.
     *
     * @param units units of work an item.
     * @return a copy with the work.
     */
    [[nodiscard]] items work(double units) const noexcept
    {
        items made = *this;
        made.units_ = units;
        return made;
    }

  private:
    friend class batch;
    friend class runtime;
    std::uint64_t count_;
    std::uint64_t grain_ = 0;
    const char *name_ = "batch";
    double units_ = -1; /* not declared */
};

namespace detail
{

class batch_state final : public owner
{
  public:
    explicit batch_state(std::shared_ptr<runtime_state> state) : owner(std::move(state))
    {
    }

    bool end() noexcept override
    {
        return true; /* jobs have a share in the batch */
    }

    bool close() noexcept override
    {
        return true;
    }

    void drop(capture *) noexcept override
    {
    }

    template <filch_access_mode Mode>
    void add(const access_list &list, const item_access<Mode> &access, std::uint64_t element)
    {
        list.require(access.element(), element, access.is_const() && Mode != FILCH_READ,
                     static_cast<int>(accesses.size()));
        handles.push_back(access.shared_);
        accesses.push_back(access.desc());
    }

    filch_batch_desc desc() const noexcept
    {
        filch_batch_desc made = FILCH_BATCH_DESC_INIT;
        made.codelet = codelet;
        made.args = args.empty() ? nullptr : args.data();
        made.n = count;
        made.grain = grain;
        made.accesses = accesses.data();
        made.access_count = static_cast<std::uint32_t>(accesses.size());
        return made;
    }

    template <class T> void set_args(const T &from)
    {
        static_assert(std::is_trivially_copyable_v<T>, "filch copies arguments byte by byte");
        const char *bytes = reinterpret_cast<const char *>(&from);
        args.assign(bytes, bytes + sizeof from);
    }

    filch_codelet *codelet = nullptr;
    std::unique_ptr<capture> function;
    std::vector<char> args;
    std::vector<filch_batch_access> accesses;
    std::vector<std::shared_ptr<data_state>> handles; /* of the accesses */
    std::uint64_t count = 0;
    std::uint64_t grain = 0;
};

} // namespace detail

/**
 * A function with its items and accesses, ready to run any number of times; owner, move-only, made
 * by runtime::batch().
 *
 * The destructor does not wait: jobs of the batch share the function with its captures, and the
 * handles of the accesses. Buffers must live as long as the batch and its jobs.
 *
 * Thread safety: any thread; also several jobs at a time.
 */
class [[nodiscard]] batch
{
  public:
    /** Moves the batch. @param other is empty afterwards. */
    batch(batch &&other) noexcept = default;
    /** Gives the own batch up, and moves. @param other is empty afterwards. @return *this. */
    batch &operator=(batch &&other) noexcept = default;

    /**
     * Runs the batch to its end. The call makes no allocation of the C++ interface.
     *
     * @param submit submission parameters.
     * @throw error FILCH_TASK_FAILED, with the text and the exception of the first failure;
     *              FILCH_CANCELLED; the refusals of filch_batch_run().
     */
    void run(const filch_submit_desc &submit = FILCH_SUBMIT_DESC_INIT) const
    {
        filch_error details = FILCH_ERROR_INIT;
        filch_runtime *runtime = live("filch_batch_run");
        const filch_batch_desc desc = state_->desc();
        state_->texts.begin_run();
        filch_status status = filch_batch_run(runtime, &desc, &submit, &details);
        if (status != FILCH_OK) {
            state_->texts.undo_refused_run(status);
            throw detail::make_error(details, status, "filch_batch_run", &state_->texts);
        }
    }

    /**
     * Starts the batch.
     *
     * @param submit submission parameters.
     * @return the job; its destructor cancels the job if the job runs.
     * @throw error as filch_batch_submit(); std::bad_alloc.
     */
    job submit(const filch_submit_desc &submit = FILCH_SUBMIT_DESC_INIT) const
    {
        const char *call = "filch_batch_submit";
        filch_runtime *runtime = live(call);
        const filch_batch_desc desc = state_->desc();
        job made(state_->runtime, state_);
        state_->texts.begin_run();
        filch_status status = filch_batch_submit(runtime, &desc, &submit, &made.state_->handle);
        state_->texts.undo_refused_run(status);
        detail::check(runtime, status, call);
        return made;
    }

  private:
    friend class runtime;

    explicit batch(std::shared_ptr<detail::runtime_state> state)
        : state_(std::make_shared<detail::batch_state>(std::move(state)))
    {
    }

    filch_runtime *live(const char *call) const
    {
        if (!state_) {
            throw error(FILCH_INVALID_HANDLE, call, "the batch is moved from");
        }
        return state_->runtime->live(call);
    }

    template <class Layout, std::size_t... I, class... A>
    void collect(const detail::access_list &list, std::index_sequence<I...>, const A &...accesses)
    {
        static_assert((detail::access_traits<A>::is_items && ...),
                      "accesses of a batch name whole handles: filch::read(data), not a tile");
        static_assert(
            (detail::matched<typename Layout::template at<Layout::leading + I>, A>::value && ...));
        if constexpr ((detail::access_traits<A>::is_items && ...)) {
            state_->accesses.reserve(sizeof...(A));
            (state_->add(list, accesses,
                         sizeof(typename detail::parameter<
                                typename Layout::template at<Layout::leading + I>>::type)),
             ...);
        }
    }

    template <class L, class... A> void set(const items &of, const A &...accesses)
    {
        using parts = detail::layout<L>;
        static_assert(parts::views == sizeof...(A), "a batch has one view for every access");
        const detail::access_list list(of.name_);
        if constexpr (parts::views == sizeof...(A) && sizeof...(A) > 0) {
            collect<parts>(list, std::index_sequence_for<A...>{}, accesses...);
        }
        state_->count = of.count_;
        state_->grain = of.grain_;
    }

    template <class... Rest>
    void set_codelet(const items &of, const codelet &code, const Rest &...rest)
    {
        const detail::access_list list(of.name_);
        detail::arguments args;
        (append(list, args, rest), ...);
        args.require(code);
        const char *bytes = static_cast<const char *>(args.at);
        state_->args.assign(bytes, bytes + args.bytes);
        state_->codelet = code.handle();
        state_->count = of.count_;
        state_->grain = of.grain_;
    }

    template <class R>
    void append(const detail::access_list &list, detail::arguments &args, const R &each)
    {
        if constexpr (detail::access_traits<R>::is_access) {
            static_assert(detail::access_traits<R>::is_items,
                          "accesses of a batch name whole handles: filch::read(data), not a tile");
            state_->add(list, each, 0);
        } else {
            args.set(each);
        }
    }

    template <class F> void set_function(const items &of, F &&function)
    {
        using G = std::decay_t<F>;
        detail::require_function<G>("filch::runtime::batch", of.name_, function);
        state_->function = std::make_unique<detail::stored<G>>(std::forward<F>(function));
        const detail::reference args = {
            detail::make_header(state_.get(), of.units_, detail::access_list(of.name_)),
            state_->function.get(), false};
        filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
        desc.name = of.name_;
        desc.host = &detail::entry<G>::run_reference;
        desc.work = of.units_ >= 0 ? detail::units_of_items : nullptr;
        desc.arg_size = sizeof args;
        state_->set_args(args);
        state_->codelet = state_->runtime->codelet(desc);
    }

    std::shared_ptr<detail::batch_state> state_;
};

} // namespace filch

#endif
