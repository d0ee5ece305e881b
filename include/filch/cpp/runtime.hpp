/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file runtime.hpp
 * Runtime: the devices, and the maker of every other object.
 */
#ifndef FILCH_CPP_RUNTIME_HPP
#define FILCH_CPP_RUNTIME_HPP

#include "filch/cpp/batch.hpp"
#include "filch/cpp/graph.hpp"
#include "filch/cpp/local.hpp"
#include "filch/speed.h"
#include "filch/trace.h"

namespace filch
{

/** @return the library's version: major * 10000 + minor * 100 + patch. */
inline std::uint32_t version() noexcept
{
    return filch_version();
}

/**
 * Runtime; owner, move-only.
 *
 * The destructor never throws. It cancels every job, closes open graphs, and waits for the
 * functions that run at the moment and for the ends of pending tasks (pending.h), as
 * filch_runtime_abort() does. Owners made from the runtime may
 * live on: their calls throw FILCH_INVALID_HANDLE, their destructors do nothing more in filch.
 * Inside a task or a completion callback the destructor leaves the runtime running.
 *
 * Thread safety: any thread, except for moves and destruction, which have no concurrent call on the
 * runtime or on an owner made from it.
 */
class runtime
{
  public:
    /**
     * Makes a runtime: filch_runtime_create().
     *
     * @param desc configuration; copied.
     * @throw error as filch_runtime_create(); std::bad_alloc.
     */
    explicit runtime(const filch_runtime_desc &desc = FILCH_RUNTIME_DESC_INIT)
        : state_(std::make_shared<detail::runtime_state>())
    {
        filch_error details = FILCH_ERROR_INIT;
        filch_status status = filch_runtime_create(&desc, &details, &state_->handle);
        if (status != FILCH_OK) {
            throw detail::make_error(details, status, "filch_runtime_create", nullptr);
        }
    }

    /**
     * Makes a runtime with devices, and defaults throughout.
     *
     * @param devices device specification, e.g. "host:2".
     * @throw error as the function above.
     */
    explicit runtime(const char *devices) : runtime(with_devices(devices))
    {
    }

    /** Moves the runtime. @param other is empty afterwards. */
    runtime(runtime &&other) noexcept = default;
    /** Ends the own runtime, and moves. @param other is empty afterwards. @return *this. */
    runtime &operator=(runtime &&other) noexcept
    {
        runtime old(std::move(other));
        std::swap(state_, old.state_);
        return *this;
    }
    /** Ends the runtime, as said above. */
    ~runtime()
    {
        if (state_ && state_->handle && filch_runtime_abort(state_->handle) != FILCH_WRONG_STATE) {
            state_->forget();
        }
    }

    /**
     * Makes a handle of a buffer.
     *
     * @param of the buffer; a std::vector is enough.
     * @return the handle.
     * @throw error as filch_data_create(); std::bad_alloc.
     */
    [[nodiscard]] filch::data data(const buffer &of) const
    {
        live("filch_data_create");
        const filch_data_desc desc = of.desc();
        filch::data made(state_, desc.element, of.is_const());
        check(filch_data_create(state_->handle, &desc, &made.state_->handle), "filch_data_create");
        made.count();
        return made;
    }

    /**
     * Makes a handle of a sparse matrix; checks and copies its arrays.
     *
     * @param of the arrays.
     * @return the handle.
     * @throw error as filch_csr_create(); std::bad_alloc.
     */
    template <class V, class C, class P>
    [[nodiscard]] filch::csr<V, C, P> csr(const csr_buffer<V, C, P> &of) const
    {
        live("filch_csr_create");
        const filch_csr_desc desc = of.desc();
        filch::data made(state_, 1, false);
        check(filch_csr_create(state_->handle, &desc, &made.state_->handle), "filch_csr_create");
        made.count();
        return filch::csr<V, C, P>(std::move(made));
    }

    /**
     * Makes a closed graph.
     *
     * @param desc description; copied.
     * @return the graph.
     * @throw error as filch_graph_create(); std::bad_alloc.
     */
    filch::graph graph(const filch_graph_desc &desc = FILCH_GRAPH_DESC_INIT) const
    {
        live("filch_graph_create");
        std::shared_ptr<detail::graph_state> made(
            new detail::graph_state(state_, desc.kind == FILCH_GRAPH_OPEN), detail::owner_end());
        check(filch_graph_create(state_->handle, &desc, &made->handle), "filch_graph_create");
        return filch::graph(std::move(made));
    }

    /**
     * Makes an open graph, to be submitted before its first task.
     *
     * @param max_live number of live tasks at which further adds wait; 0: no limit.
     * @return the graph.
     * @throw error as filch_graph_create(); std::bad_alloc.
     */
    filch::graph open_graph(std::uint64_t max_live = 0) const
    {
        filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
        desc.kind = FILCH_GRAPH_OPEN;
        desc.max_live = max_live;
        return graph(desc);
    }

    /**
     * Makes a batch from a function (task.hpp), a parameter of which is the filch::range.
     *
     *     runtime.batch(n, [](filch::range, filch::view<double> x) { … },
     * filch::readwrite(x)).run();
     *
     * @param count    number of items, with options.
     * @param function the function; copied or moved.
     * @param accesses an access for every view, made from a filch::data.
     * @return the batch.
     * @throw error FILCH_INVALID_ARGUMENT: sizes of elements differ, a handle of const elements is
     *              written; the refusals of filch_codelet_create(); std::bad_alloc; what copying
     * the function throws.
     */
    template <class F, class... A, std::enable_if_t<!detail::is_code<std::decay_t<F>>, int> = 0>
    filch::batch batch(const items &count, F &&function, const A &...accesses) const
    {
        using L = typename detail::signature<std::decay_t<F>>::parameters;
        static_assert(
            detail::layout<L>::rest == 0,
            "parameters of a lambda are context, range and views; arguments are captures");
        live("filch::runtime::batch");
        filch::batch made(state_);
        made.template set<L>(count, accesses...);
        made.set_function(count, std::forward<F>(function));
        return made;
    }

    /**
     * Makes a batch from a kernel with arguments.
     *
     * @param count    number of items, with options.
     * @param code     the kernel.
     * @param args     the arguments; copied.
     * @param accesses an access for every view.
     * @return the batch.
     * @throw error as the function above.
     */
    template <class L, class... A>
    filch::batch batch(const items &count, const filch::kernel<L> &code,
                       const typename filch::kernel<L>::arguments &args, const A &...accesses) const
    {
        live("filch::runtime::batch");
        filch::batch made(state_);
        made.template set<L>(count, accesses...);
        made.state_->codelet = code.handle();
        made.state_->set_args(args);
        return made;
    }

    /**
     * Makes a batch from a kernel without arguments.
     *
     * @param count    number of items, with options.
     * @param code     the kernel.
     * @param accesses an access for every view.
     * @return the batch.
     * @throw error as the functions above.
     */
    template <class L, class... A,
              std::enable_if_t<std::is_void_v<typename filch::kernel<L>::arguments>, int> = 0>
    filch::batch batch(const items &count, const filch::kernel<L> &code, const A &...accesses) const
    {
        live("filch::runtime::batch");
        filch::batch made(state_);
        made.template set<L>(count, accesses...);
        made.state_->codelet = code.handle();
        return made;
    }

    /**
     * Makes a batch from a codelet of the C interface. Behind the codelet stand the arguments, if
     * the codelet has arguments, and the accesses. Only the size of the arguments is compared.
     *
     * @param count number of items, with options.
     * @param code  the codelet.
     * @param rest  arguments, and an access for every view.
     * @return the batch.
     * @throw error FILCH_INVALID_ARGUMENT: the arguments have another size; std::bad_alloc.
     */
    template <class... Rest>
    filch::batch batch(const items &count, const filch::codelet &code, const Rest &...rest) const
    {
        live("filch::runtime::batch");
        filch::batch made(state_);
        made.set_codelet(count, code, rest...);
        return made;
    }

    /**
     * Makes a kernel: a function of the host's that is a constant, with a CUDA implementation.
     *
     *     void smooth(filch::range, filch::view<double> x, filch::view<const double> r,
     *                 const double &omega);
     *     auto kernel = runtime.kernel<smooth>("smooth", &cuda);
     *
     * Parameters of the CUDA kernel are a filch_view for every view, for batches and divisible
     * tasks a filch_range, and the arguments. An exception of the host function fails the task with
     * its code and its text; the exception itself does not reach the caller.
     *
     * @tparam Function the host function.
     * @param name  name in errors and traces; copied.
     * @param cuda  CUDA implementation; copied; null: the host alone.
     * @param flags combination of filch_codelet_flags.
     * @return the kernel.
     * @throw error as filch_codelet_create(): FILCH_COMPILE and others.
     */
    template <auto Function>
    auto kernel(const char *name, const filch_cuda_desc *cuda = nullptr,
                std::uint32_t flags = 0) const
    {
        using L = typename detail::signature<decltype(Function)>::parameters;
        using made = filch::kernel<L>;
        using arguments = typename made::arguments;
        filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
        desc.name = name;
        desc.host = &detail::constant_entry<Function>::run;
        desc.cuda = cuda;
        desc.flags = flags;
        static_assert(detail::layout<L>::blocks == 0, "a kernel has views of tiles, not of blocks");
        static_assert(detail::layout<L>::rest == (std::is_void_v<arguments> ? 0 : 1),
                      "behind the views of a kernel stands at most one structure of arguments");
        if constexpr (!std::is_void_v<arguments>) {
            static_assert(std::is_trivially_copyable_v<arguments> && alignof(arguments) <= 16,
                          "filch copies arguments byte by byte, aligned to 16 bytes");
            desc.arg_size = sizeof(arguments);
        }
        return made(create(desc));
    }

    /**
     * Makes a codelet of the C interface.
     *
     * @param desc description; copied. Its host function must not throw: std::terminate() follows.
     * @return the codelet.
     * @throw error as filch_codelet_create().
     */
    filch::codelet codelet(const filch_codelet_desc &desc) const
    {
        return filch::codelet(create(desc), desc.arg_size);
    }

    /**
     * Makes a codelet of a built-in kernel (kernels.h).
     *
     * @param name name of the kernel, e.g. "gemm_f64".
     * @return the codelet.
     * @throw error as filch_codelet_create_builtin(): FILCH_NOT_FOUND and others.
     */
    filch::codelet builtin(const char *name) const
    {
        const char *call = "filch_codelet_create_builtin";
        filch_codelet *made = nullptr;
        check(filch_codelet_create_builtin(live(call), name, &made), call);
        return filch::codelet(made, filch_kernel_find(name)->arg_size);
    }

    /**
     * Makes a value for each device that runs host functions, e.g. a workspace or a handle of
     * another library: filch_codelet_desc.open.
     *
     *     auto space = runtime.local([](std::uint32_t) { return std::vector<double>(1000); });
     *     graph.add("solve", [space](filch::context here, filch::view<double> x) {
     *         std::vector<double> &mine = space.of(here); … }, filch::readwrite(x.tile(i)));
     *
     * The values are destroyed as the runtime ends, after the last function has returned.
     *
     * @param open T(std::uint32_t device): makes the value of a device, given its index; called at
     *             once, one device after the other. Must not call filch. Neither must T's
     *             destructor, and that must not throw.
     * @return the values.
     * @throw error FILCH_TASK_FAILED: @p open has thrown, with the text and the exception; values
     *              made before are destroyed. The refusals of filch_codelet_create();
     *              std::bad_alloc.
     */
    template <class Open> auto local(Open &&open) const
    {
        using T = std::decay_t<std::invoke_result_t<Open &, std::uint32_t>>;
        const char *call = "filch::runtime::local";
        live(call);
        auto made = std::make_shared<detail::local_state<T>>(device_count());
        state_->keep(made);
        filch_codelet *codelet = nullptr;
        const filch_status status = made->create(state_->handle, open, &codelet);
        if (status == FILCH_TASK_FAILED) {
            filch_error details = FILCH_ERROR_INIT;
            filch_runtime_error(state_->handle, &details);
            throw detail::make_error(details, status, call, &made->texts);
        }
        check(status, call);
        return filch::local<T>(made.get());
    }

    /**
     * Starts recording a trace, filch_trace_start().
     *
     * @throw error as filch_trace_start().
     */
    void trace_start() const
    {
        check(filch_trace_start(live("filch_trace_start")), "filch_trace_start");
    }

    /**
     * Stops recording, filch_trace_stop(); a later start appends.
     *
     * @throw error as filch_trace_stop().
     */
    void trace_stop() const
    {
        check(filch_trace_stop(live("filch_trace_stop")), "filch_trace_stop");
    }

    /**
     * Writes what was recorded as JSON for Perfetto, filch_trace_write().
     *
     * @param path the file.
     * @throw error as filch_trace_write(): FILCH_IO, FILCH_BUSY and others.
     */
    void trace_write(const std::string &path) const
    {
        check(filch_trace_write(live("filch_trace_write"), path.c_str()), "filch_trace_write");
    }

    /**
     * Writes a report of what was recorded, one HTML file for a browser, filch_report_write().
     *
     * @param path the file.
     * @throw error as filch_report_write(): FILCH_IO, FILCH_BUSY and others.
     */
    void report_write(const std::string &path) const
    {
        check(filch_report_write(live("filch_report_write"), path.c_str()), "filch_report_write");
    }

    /**
     * Sends a handle to many devices, filch_data_broadcast().
     *
     * @param of   the handle, managed.
     * @param desc contents and receivers; null: the whole handle to every device.
     * @return the job.
     * @throw error as filch_data_broadcast(); std::bad_alloc.
     */
    job broadcast(const filch::data &of, const filch_broadcast_desc *desc = nullptr) const
    {
        live("filch_data_broadcast");
        job made(state_, nullptr);
        check(filch_data_broadcast(of.handle(), desc, nullptr, &made.state_->handle),
              "filch_data_broadcast");
        return made;
    }

    /**
     * Waits until no job runs, also no detached job.
     *
     * @param seconds time limit; negative: no limit.
     * @throw error as filch_runtime_drain(): FILCH_TIMEOUT and others.
     */
    void drain(double seconds = -1) const
    {
        check(filch_runtime_drain(live("filch_runtime_drain"), seconds), "filch_runtime_drain");
        state_->sweep();
    }

    /**
     * Runs the workers of a FILCH_DRIVE_POLL runtime, filch_runtime_poll().
     *
     * @param seconds how long to go on; 0: a round over the workers; negative: until nothing can be
     *                done now.
     * @return true if a further call may find more work.
     * @throw error as filch_runtime_poll().
     */
    bool poll(double seconds) const
    {
        bool worked = false;
        check(filch_runtime_poll(live("filch_runtime_poll"), seconds, &worked),
              "filch_runtime_poll");
        return worked;
    }

    /**
     * Waits in a FILCH_DRIVE_POLL runtime until some work can be done, and does a round of it,
     * filch_runtime_poll_wait().
     *
     * @param seconds time limit; negative: no limit.
     * @return false if the time passed first.
     * @throw error as filch_runtime_poll_wait().
     */
    bool poll_wait(double seconds = -1) const
    {
        return poll_until(nullptr, seconds);
    }

    /**
     * The same, also until a job is complete.
     *
     * @param job     the job.
     * @param seconds time limit; negative: no limit.
     * @return false if the time passed first.
     * @throw error as filch_runtime_poll_wait().
     */
    bool poll_wait(const job &job, double seconds = -1) const
    {
        if (job.handle() == nullptr) {
            throw error(FILCH_INVALID_HANDLE, "filch_runtime_poll_wait",
                        "the job is released or moved from");
        }
        return poll_until(job.handle(), seconds);
    }

    /** @return number of devices; 0 after a move. */
    std::uint32_t device_count() const noexcept
    {
        return state_ && state_->handle ? filch_device_count(state_->handle) : 0;
    }

    /**
     * Describes a device.
     *
     * @param index 0 to device_count() - 1.
     * @return the description.
     * @throw error as filch_device_at().
     */
    filch_device_info device(std::uint32_t index) const
    {
        filch_device_info made = FILCH_DEVICE_INFO_INIT;
        check(filch_device_at(live("filch_device_at"), index, &made), "filch_device_at");
        return made;
    }

    /**
     * Devices left out as unusable, filch_device_refused_at().
     *
     * @return names and reasons.
     * @throw error FILCH_INVALID_HANDLE, FILCH_FORKED; std::bad_alloc.
     */
    std::vector<filch_device_refusal> refused() const
    {
        const char *call = "filch_device_refused_at";
        std::vector<filch_device_refusal> made(filch_device_refused_count(live(call)));
        for (std::uint32_t k = 0; k < made.size(); ++k) {
            made[k] = FILCH_DEVICE_REFUSAL_INIT;
            check(filch_device_refused_at(state_->handle, k, &made[k]), call);
        }
        return made;
    }

    /**
     * Memory of a device held by filch, filch_device_memory().
     *
     * @param index 0 to device_count() - 1.
     * @return the bytes.
     * @throw error as filch_device_memory().
     */
    filch_memory_stats memory(std::uint32_t index) const
    {
        filch_memory_stats made = FILCH_MEMORY_STATS_INIT;
        check(filch_device_memory(live("filch_device_memory"), index, &made),
              "filch_device_memory");
        return made;
    }

    /**
     * Hands unused memory back to a device, filch_device_trim().
     *
     * @param index 0 to device_count() - 1.
     * @param keep  bytes that filch may go on holding.
     * @throw error as filch_device_trim().
     */
    void trim(std::uint32_t index, std::uint64_t keep = 0) const
    {
        check(filch_device_trim(live("filch_device_trim"), index, keep), "filch_device_trim");
    }

    /**
     * Asks a device to begin no more work, filch_device_withdraw().
     *
     * @param index 0 to device_count() - 1.
     * @throw error as filch_device_withdraw().
     */
    void withdraw(std::uint32_t index) const
    {
        check(filch_device_withdraw(live("filch_device_withdraw"), index), "filch_device_withdraw");
    }

    /**
     * Brings a withdrawn device back, filch_device_readmit().
     *
     * @param index 0 to device_count() - 1.
     * @throw error as filch_device_readmit().
     */
    void readmit(std::uint32_t index) const
    {
        check(filch_device_readmit(live("filch_device_readmit"), index), "filch_device_readmit");
    }

    /**
     * Reports whether a device takes part, filch_device_presence().
     *
     * @param index 0 to device_count() - 1.
     * @return the state.
     * @throw error as filch_device_presence().
     */
    filch_presence presence(std::uint32_t index) const
    {
        filch_presence made = FILCH_PRESENCE_THERE;
        check(filch_device_presence(live("filch_device_presence"), index, &made),
              "filch_device_presence");
        return made;
    }

    /**
     * Describes the link between two memories, filch_device_link().
     *
     * @param from index of a device, or FILCH_LINK_HOST.
     * @param to   index of a device, or FILCH_LINK_HOST.
     * @return the link.
     * @throw error as filch_device_link().
     */
    filch_link link(std::uint32_t from, std::uint32_t to) const
    {
        filch_link made = FILCH_LINK_INIT;
        check(filch_device_link(live("filch_device_link"), from, to, &made), "filch_device_link");
        return made;
    }

    /**
     * Measures the bandwidth between every two memories, filch_device_measure_links().
     *
     * @throw error as filch_device_measure_links().
     */
    void measure_links() const
    {
        const char *call = "filch_device_measure_links";
        check(filch_device_measure_links(live(call)), call);
    }

    /**
     * What the runtime holds, filch_runtime_usage().
     *
     * @return the numbers.
     * @throw error as filch_runtime_usage().
     */
    filch_usage usage() const
    {
        filch_usage made = FILCH_USAGE_INIT;
        check(filch_runtime_usage(live("filch_runtime_usage"), &made), "filch_runtime_usage");
        return made;
    }

    /**
     * Measured speed of a codelet on a device, filch_codelet_speed().
     *
     * @param code  a filch::kernel or filch::codelet of the runtime.
     * @param index 0 to device_count() - 1.
     * @return the estimate.
     * @throw error as filch_codelet_speed().
     */
    template <class Code> filch_speed speed(const Code &code, std::uint32_t index) const
    {
        filch_speed made = FILCH_SPEED_INIT;
        live("filch_codelet_speed");
        check(filch_codelet_speed(code.handle(), index, &made), "filch_codelet_speed");
        return made;
    }

    /**
     * State of the file of speeds, filch_runtime_speeds().
     *
     * @return the state.
     * @throw error as filch_runtime_speeds().
     */
    filch_speeds speeds() const
    {
        filch_speeds made = FILCH_SPEEDS_INIT;
        check(filch_runtime_speeds(live("filch_runtime_speeds"), &made), "filch_runtime_speeds");
        return made;
    }

    /**
     * Saves the speeds measured so far, filch_runtime_save_speeds().
     *
     * @throw error as filch_runtime_save_speeds().
     */
    void save_speeds() const
    {
        const char *call = "filch_runtime_save_speeds";
        check(filch_runtime_save_speeds(live(call)), call);
    }

    /** @return handle for calls of the C interface; stays the owner's. */
    filch_runtime *handle() const noexcept
    {
        return state_ ? state_->handle : nullptr;
    }

  private:
    static filch_runtime_desc with_devices(const char *devices) noexcept
    {
        filch_runtime_desc made = FILCH_RUNTIME_DESC_INIT;
        made.devices = devices;
        return made;
    }

    filch_runtime *live(const char *call) const
    {
        if (!state_) {
            throw error(FILCH_INVALID_HANDLE, call, "the runtime is moved from");
        }
        return state_->live(call);
    }

    void check(filch_status status, const char *call) const
    {
        detail::check(state_->handle, status, call);
    }

    bool poll_until(filch_job *job, double seconds) const
    {
        const char *call = "filch_runtime_poll_wait";
        filch_status status = filch_runtime_poll_wait(live(call), job, seconds, nullptr);
        if (status != FILCH_TIMEOUT) {
            check(status, call);
        }
        return status == FILCH_OK;
    }

    filch_codelet *create(const filch_codelet_desc &desc) const
    {
        filch_codelet *made = nullptr;
        check(filch_codelet_create(live("filch_codelet_create"), &desc, &made),
              "filch_codelet_create");
        return made;
    }

    std::shared_ptr<detail::runtime_state> state_;
};

} // namespace filch

#endif
