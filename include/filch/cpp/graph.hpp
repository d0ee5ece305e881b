/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file graph.hpp
 * Graphs: tasks in program order, from functions, kernels and codelets.
 */
#ifndef FILCH_CPP_GRAPH_HPP
#define FILCH_CPP_GRAPH_HPP

#include "filch/cpp/job.hpp"

namespace filch
{

namespace detail
{

class graph_state final : public owner
{
  public:
    graph_state(std::shared_ptr<runtime_state> state, bool open)
        : owner(std::move(state)), is_open(open)
    {
    }

    ~graph_state() override
    {
        while (captures_) {
            drop(captures_);
        }
    }

    bool end() noexcept override
    {
        return !handle || filch_graph_destroy(handle) != FILCH_BUSY;
    }

    bool close() noexcept override
    {
        return !is_open || filch_graph_close(handle) != FILCH_OUT_OF_MEMORY;
    }

    void keep(capture *function) noexcept
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        function->next = captures_;
        if (captures_) {
            captures_->previous = function;
        }
        captures_ = function;
    }

    void drop(capture *function) noexcept override
    {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            (function->previous ? function->previous->next : captures_) = function->next;
            if (function->next) {
                function->next->previous = function->previous;
            }
        }
        delete function;
    }

    filch_graph *handle = nullptr;
    const bool is_open;

  private:
    std::mutex mutex_;
    capture *captures_ = nullptr;
};

} // namespace detail

/**
 * Task graph; owner, move-only, made by runtime::graph() or runtime::open_graph().
 *
 * The destructor does not wait, and never throws. It closes an open graph. Tasks and captures live
 * until the last job of the graph has ended, too: a job may outlive its graph.
 *
 * Thread safety: as filch_graph_add() and its kin: any thread may add tasks, and tasks may. A move
 * or a destruction has no concurrent call.
 */
class [[nodiscard]] graph
{
  public:
    /** Moves the graph. @param other is empty afterwards. */
    graph(graph &&other) noexcept = default;
    /** Ends the own graph, and moves. @param other is empty afterwards. @return *this. */
    graph &operator=(graph &&other) noexcept
    {
        graph old(std::move(other));
        std::swap(state_, old.state_);
        return *this;
    }
    /** Closes an open graph, and gives the graph up. */
    ~graph()
    {
        if (state_ && state_->runtime->handle) {
            state_->close();
        }
    }

    /**
     * Adds a task made from a function (task.hpp).
     *
     *     graph.add("axpy", [a](filch::view<const double> x, filch::view<double> y) { … },
     *               filch::read(x.tile(i)), filch::readwrite(y.tile(i)));
     *
     * The compiler compares the parameters with the accesses; the call compares the sizes of the
     * elements.
     *
     * @param what     kind of task, with options; a name is enough.
     * @param function the function; copied or moved.
     * @param accesses an access for every view.
     * @return the task's name within the graph, for edge().
     * @throw error FILCH_INVALID_ARGUMENT: the function is a null pointer, sizes of elements
     * differ, a handle of const elements is written, a task with items has a function without
     * filch::range and filch::context, a task without items one with filch::range; the refusals of
     *              filch_graph_add() and filch_codelet_create();
     *              std::bad_alloc; what copying the function throws. On an exception no task is
     *              added.
     */
    template <class F, class... A>
    filch_task add(const task &what, F &&function, const A &...accesses) const
    {
        using G = std::decay_t<F>;
        using L = typename detail::signature<G>::parameters;
        static_assert(
            detail::layout<L>::rest == 0,
            "parameters of a lambda are context, range and views; arguments are captures");
        detail::require_function<G>("filch::graph::add", what.name_, function);
        detail::access_list list(what.name_);
        detail::collect_for<L>(list, accesses...);
        detail::require_range<L>(what.name_, what.desc_.items);
        filch_task_desc desc = what.desc_;
        if constexpr (detail::travels<G>) {
            const detail::packet<G> args = {detail::make_header(state(), what.units_, list),
                                            std::forward<F>(function)};
            desc.codelet = kind(what, &detail::entry<G>::run_packet, sizeof args);
            return put(desc, list, &args);
        } else {
            std::unique_ptr<detail::stored<G>> kept(
                new detail::stored<G>(std::forward<F>(function)));
            const detail::reference args = {detail::make_header(state(), what.units_, list),
                                            kept.get(), state()->is_open && desc.items == 0};
            desc.codelet = kind(what, &detail::entry<G>::run_reference, sizeof args);
            return put_stored(desc, list, args, std::move(kept));
        }
    }

    /**
     * Adds a task of a kernel with arguments.
     *
     * @param code     the kernel, with options.
     * @param args     the arguments; copied.
     * @param accesses an access for every view.
     * @return the task's name within the graph.
     * @throw error as the function above.
     */
    template <class L, class... A>
    filch_task add(const kernel<L> &code, const typename kernel<L>::arguments &args,
                   const A &...accesses) const
    {
        detail::access_list list("kernel");
        detail::collect_for<L>(list, accesses...);
        detail::require_range<L>("kernel", code.desc_.items);
        return put(code.desc_, list, &args);
    }

    /**
     * Adds a task of a kernel without arguments.
     *
     * @param code     the kernel, with options.
     * @param accesses an access for every view.
     * @return the task's name within the graph.
     * @throw error as the functions above.
     */
    template <class L, class... A,
              std::enable_if_t<std::is_void_v<typename kernel<L>::arguments>, int> = 0>
    filch_task add(const kernel<L> &code, const A &...accesses) const
    {
        detail::access_list list("kernel");
        detail::collect_for<L>(list, accesses...);
        detail::require_range<L>("kernel", code.desc_.items);
        return put(code.desc_, list, nullptr);
    }

    /**
     * Adds a task of a codelet of the C interface. Behind the codelet stand the arguments, if the
     * codelet has arguments, and the accesses. Only the size of the arguments is compared.
     *
     * @param code codelet, with options.
     * @param rest arguments, and an access for every view.
     * @return the task's name within the graph.
     * @throw error FILCH_INVALID_ARGUMENT: the arguments have another size; the refusals of
     *              filch_graph_add().
     */
    template <class... Rest> filch_task add(const codelet &code, const Rest &...rest) const
    {
        detail::access_list list("codelet");
        detail::arguments args;
        (append(list, args, rest), ...);
        args.require(code);
        return put(code.desc_, list, args.at);
    }

    /**
     * Adds an array of tasks described as for the C interface, filch_graph_add_many(): codelets and
     * handles by handle(). No other thread's task comes between them.
     *
     * @param descs array of tasks.
     * @param count number of tasks.
     * @param names array of count names, or null; receives the names of the added tasks.
     * @param added receives the number of added tasks, on an exception, too; may be null.
     * @throw error as filch_graph_add_many(): the tasks before the refused one are in the graph.
     */
    void add_many(const filch_task_desc *descs, std::size_t count, filch_task *names = nullptr,
                  std::size_t *added = nullptr) const
    {
        const char *call = "filch_graph_add_many";
        if (added) {
            *added = 0;
        }
        check(filch_graph_add_many(live(call), descs, count, names, added), call);
    }

    /**
     * Makes a task wait for a second task, filch_graph_edge().
     *
     * @param before the task to wait for.
     * @param after  the waiting task.
     * @throw error as filch_graph_edge().
     */
    void edge(filch_task before, filch_task after) const
    {
        check(filch_graph_edge(live("filch_graph_edge"), before, after), "filch_graph_edge");
    }

    /**
     * Promises that the graph only reads a handle, filch_graph_read_only(): a task that writes the
     * handle is refused at once.
     *
     * @param of a filch::data or filch::csr.
     * @throw error as filch_graph_read_only().
     */
    template <class Data> void read_only(const Data &of) const
    {
        const char *call = "filch_graph_read_only";
        check(filch_graph_read_only(live(call), of.handle()), call);
    }

    /**
     * Lets tasks added from now on use a handle in the tiles of a partition.
     *
     * @param parent the handle.
     * @param child  a partition, made by data::partition().
     * @throw error as filch_graph_partition().
     */
    void partition(const data &parent, const data &child) const
    {
        const char *call = "filch_graph_partition";
        check(filch_graph_partition(live(call), parent.handle(), child.handle()), call);
    }

    /**
     * Lets tasks added from now on use a handle in its own tiles again.
     *
     * @param parent the handle.
     * @param child  the partition in use.
     * @throw error as filch_graph_unpartition().
     */
    void unpartition(const data &parent, const data &child) const
    {
        const char *call = "filch_graph_unpartition";
        check(filch_graph_unpartition(live(call), parent.handle(), child.handle()), call);
    }

    /**
     * Discards the contents of a temporary behind the tasks so far, filch_graph_discard().
     *
     * @param temporary the handle, made of buffer::temporary().
     * @throw error as filch_graph_discard().
     */
    void discard(const data &temporary) const
    {
        const char *call = "filch_graph_discard";
        check(filch_graph_discard(live(call), temporary.handle()), call);
    }

    /**
     * Ends the building of a closed graph before its first run does, filch_graph_seal().
     *
     * @throw error as filch_graph_seal().
     */
    void seal() const
    {
        check(filch_graph_seal(live("filch_graph_seal")), "filch_graph_seal");
    }

    /**
     * Writes a closed graph in the language of Graphviz, filch_graph_write_dot().
     *
     * @param path the file.
     * @throw error as filch_graph_write_dot().
     */
    void write_dot(const std::string &path) const
    {
        const char *call = "filch_graph_write_dot";
        check(filch_graph_write_dot(live(call), path.c_str()), call);
    }

    /**
     * Runs a closed graph to its end. The call makes no allocation of the C++ interface.
     *
     * @param submit submission parameters.
     * @throw error FILCH_TASK_FAILED, with the text and the exception of the first failure;
     *              FILCH_CANCELLED; the refusals of filch_graph_run().
     */
    void run(const filch_submit_desc &submit = FILCH_SUBMIT_DESC_INIT) const
    {
        filch_error details = FILCH_ERROR_INIT;
        filch_graph *graph_handle = live("filch_graph_run");
        state_->texts.begin_run();
        filch_status status = filch_graph_run(graph_handle, &submit, &details);
        if (status != FILCH_OK) {
            state_->texts.undo_refused_run(status);
            throw detail::make_error(details, status, "filch_graph_run", &state_->texts);
        }
    }

    /**
     * Starts a closed graph, or an open graph before its first task.
     *
     * @param submit submission parameters.
     * @return the job; its destructor cancels the job if the job runs.
     * @throw error as filch_graph_submit(); std::bad_alloc.
     */
    job submit(const filch_submit_desc &submit = FILCH_SUBMIT_DESC_INIT) const
    {
        const char *call = "filch_graph_submit";
        live(call);
        job made(state_->runtime, state_);
        state_->texts.begin_run();
        filch_status status = filch_graph_submit(state_->handle, &submit, &made.state_->handle);
        state_->texts.undo_refused_run(status);
        check(status, call);
        return made;
    }

    /**
     * Runs a closed graph again and again, as one job, until the predicate is true,
     * filch_graph_repeat(). A task's context::finish() ends the job, too.
     *
     * @param until predicate: bool(std::uint64_t run), called after each run, from 1, by one thread
     *              at a time; an exception fails the job. Lives until the job has ended.
     * @param how   lag and max_runs apply; the other members are the predicate's.
     * @return the job; its destructor cancels the job if the job runs.
     * @throw error as filch_graph_repeat(), and where the predicate is a null pointer;
     *              std::bad_alloc.
     */
    template <class Until,
              std::enable_if_t<std::is_invocable_r_v<bool, Until &, std::uint64_t>, int> = 0>
    job repeat(Until until, filch_repeat_desc how = FILCH_REPEAT_DESC_INIT) const
    {
        detail::require_function<Until>("filch::graph::repeat", "until", until);
        return repeat_until(
            [until = std::move(until)](std::uint64_t run, const void *) mutable -> bool {
                return until(run);
            },
            how);
    }

    /**
     * The same with a value, which filch copies at the end of each run: with a lag of 1 the next
     * run may change the value while the predicate looks at the copy.
     *
     * @param value of the host's memory, at most FILCH_REPEAT_VALUE_BYTES; must outlive the job.
     * @param until predicate: bool(std::uint64_t run, const T &copy).
     * @param how   lag and max_runs apply; the other members are the predicate's.
     * @return as above.
     * @throw error as above.
     */
    template <
        class T, class Until,
        std::enable_if_t<std::is_invocable_r_v<bool, Until &, std::uint64_t, const T &>, int> = 0>
    job repeat(const T &value, Until until, filch_repeat_desc how = FILCH_REPEAT_DESC_INIT) const
    {
        static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= FILCH_REPEAT_VALUE_BYTES,
                      "the value of a repetition is copied as bytes, at most 256");
        detail::require_function<Until>("filch::graph::repeat", "until", until);
        how.value = &value;
        how.value_bytes = sizeof(T);
        return repeat_until(
            [until = std::move(until)](std::uint64_t run, const void *copy) mutable -> bool {
                T told;
                std::memcpy(&told, copy, sizeof told);
                return until(run, static_cast<const T &>(told));
            },
            how);
    }

    /** Not of a temporary: filch reads the value at the end of each run. */
    template <
        class T, class Until,
        std::enable_if_t<std::is_invocable_r_v<bool, Until &, std::uint64_t, const T &>, int> = 0>
    job repeat(const T &&value, Until until,
               filch_repeat_desc how = FILCH_REPEAT_DESC_INIT) const = delete;

    /**
     * Waits until fewer than count tasks of an open graph are live, filch_graph_wait_below();
     * inside a task, which does not count itself, runs other ready work meanwhile.
     *
     * @param count   at least 1.
     * @param seconds time limit; negative: no limit.
     * @return false if the time passed first.
     * @throw error as filch_graph_wait_below(): FILCH_CANCELLED, FILCH_DEADLOCK and others.
     */
    bool wait_below(std::uint64_t count, double seconds = -1) const
    {
        const char *call = "filch_graph_wait_below";
        filch_status status = filch_graph_wait_below(live(call), count, seconds);
        if (status != FILCH_TIMEOUT) {
            check(status, call);
        }
        return status == FILCH_OK;
    }

    /**
     * Closes an open graph: no more tasks follow.
     *
     * @throw error as filch_graph_close().
     */
    void close() const
    {
        check(filch_graph_close(live("filch_graph_close")), "filch_graph_close");
    }

    /** @return handle for calls of the C interface; stays the owner's; null after the runtime. */
    filch_graph *handle() const noexcept
    {
        return state_ && state_->runtime->handle ? state_->handle : nullptr;
    }

  private:
    friend class runtime;

    explicit graph(std::shared_ptr<detail::graph_state> state) : state_(std::move(state))
    {
    }

    detail::graph_state *state() const
    {
        live("filch_graph_add");
        return state_.get();
    }

    template <class Ask> struct repetition {
        static int ask(std::uint64_t run, const void *value, void *user)
        {
            auto *self = static_cast<repetition *>(user);
            return detail::guarded(self->texts, [&]() -> int {
                return self->body(run, value) ? FILCH_REPEAT_STOP : FILCH_REPEAT_AGAIN;
            });
        }

        Ask body;
        detail::failures *texts; /* of the graph, which the job keeps */
    };

    template <class Ask> job repeat_until(Ask body, filch_repeat_desc how) const
    {
        const char *call = "filch_graph_repeat";
        live(call);
        job made(state_->runtime, state_);
        auto until =
            std::make_shared<repetition<Ask>>(repetition<Ask>{std::move(body), &state_->texts});
        how.predicate = &repetition<Ask>::ask;
        how.user = until.get();
        made.state_->until = std::move(until);
        state_->texts.begin_run();
        filch_status status =
            filch_graph_repeat(state_->handle, &how, nullptr, &made.state_->handle);
        state_->texts.undo_refused_run(status);
        check(status, call);
        return made;
    }

    filch_graph *live(const char *call) const
    {
        if (!state_) {
            throw error(FILCH_INVALID_HANDLE, call, "the graph is moved from");
        }
        state_->runtime->live(call);
        return state_->handle;
    }

    void check(filch_status status, const char *call) const
    {
        detail::check(state_->runtime->handle, status, call);
    }

    filch_codelet *kind(const task &what, filch_host_fn host, std::size_t arg_size) const
    {
        filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
        desc.name = what.name_;
        desc.host = host;
        desc.work = what.units_ >= 0 ? detail::units_of_task : nullptr;
        desc.arg_size = static_cast<std::uint32_t>(arg_size);
        desc.flags = what.flags_;
        return state_->runtime->codelet(desc);
    }

    filch_task put(filch_task_desc desc, const detail::access_list &list, const void *args) const
    {
        filch_task made = 0;
        desc.args = args;
        desc.accesses = list.data();
        desc.access_count = list.size();
        check(filch_graph_add(live("filch_graph_add"), &desc, &made), "filch_graph_add");
        return made;
    }

    /* The task may run, and give its function up, before the addition returns. */
    template <class Stored>
    filch_task put_stored(const filch_task_desc &desc, const detail::access_list &list,
                          const detail::reference &args, std::unique_ptr<Stored> kept) const
    {
        detail::capture *function = kept.release();
        state_->keep(function);
        try {
            return put(desc, list, &args);
        } catch (...) {
            state_->drop(function);
            throw;
        }
    }

    template <class R>
    static void append(detail::access_list &list, detail::arguments &args, const R &each)
    {
        if constexpr (detail::access_traits<R>::is_access) {
            list.add(each, 0, static_cast<int>(list.size()));
        } else {
            args.set(each);
        }
    }

    std::shared_ptr<detail::graph_state> state_;
};

inline filch_report job::report(const graph &of) const
{
    return report_with(of.handle(), nullptr, 0);
}

inline void job::print_report(std::FILE *file, const graph &of) const
{
    print_with(of.handle(), file);
}

} // namespace filch

#endif
