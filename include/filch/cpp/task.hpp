/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file task.hpp
 * Tasks from functions: the parameters of a function are the views of its accesses, and the
 * captures of a lambda are the arguments of the task.
 *
 * A function is a lambda, a function object or a pointer to a function, with parameters in the
 * order:
 *
 * 1. filch::context, if wanted;
 * 2. filch::range, for batches and divisible tasks; a divisible task has one of the two, as its
 *    views are whole tiles, and a task without items() has no range;
 * 3. a view for every access, as access.hpp says; at most eight of them are filch::views.
 *
 * The function returns nothing or an int: another code than 0 fails the task. An exception fails
 * the task, too, with filch::failure::code() or filch::thrown; no exception reaches the C
 * interface. filch::job::wait() throws the first failure of a job, with the text of the exception.
 *
 * A function may be called concurrently, and again in a later run of a graph; its captures are
 * const. Trivially copyable captures travel inside the task, and cost no allocation; other captures
 * cost an allocation a task. filch destroys captures with the graph; of an open graph, once the
 * task has run.
 *
 * A function of a task with task::pends() may take a filch::pending by context::pend(): the task
 * then ends by the token, on whatever thread.
 *
 * Such functions run on host devices. Code for GPUs is a filch::kernel or a filch::codelet.
 */
#ifndef FILCH_CPP_TASK_HPP
#define FILCH_CPP_TASK_HPP

#include <tuple>

#include "filch/cpp/access.hpp"

namespace filch
{

namespace detail
{

template <class...> inline constexpr bool never = false;

template <class... T> struct list {
    static constexpr std::size_t size = sizeof...(T);
};
template <std::size_t I, class L> struct element;
template <std::size_t I, class... T> struct element<I, list<T...>> {
    using type = std::tuple_element_t<I, std::tuple<T...>>;
};

/* --- Parameters of functions --- */

template <class F, class = void> struct has_one_call : std::false_type {
};
template <class F> struct has_one_call<F, std::void_t<decltype(&F::operator())>> : std::true_type {
};

template <class M> struct member_signature {
    static_assert(never<M>, "the function of a task is const: a lambda without 'mutable'");
};
template <class R, class C, class... P> struct member_signature<R (C::*)(P...) const> {
    using result = R;
    using parameters = list<std::remove_cv_t<std::remove_reference_t<P>>...>;
};
template <class R, class C, class... P>
struct member_signature<R (C::*)(P...) const noexcept> : member_signature<R (C::*)(P...) const> {
};

template <class F> struct object_signature {
    static_assert(has_one_call<F>::value, "the function of a task is no function, or its "
                                          "parameters are 'auto': name their types");
    using type = member_signature<decltype(&F::operator())>;
};
template <class F> struct signature : object_signature<F>::type {
};
template <class R, class... P> struct signature<R (*)(P...)> {
    using result = R;
    using parameters = list<std::remove_cv_t<std::remove_reference_t<P>>...>;
};
template <class R, class... P> struct signature<R (*)(P...) noexcept> : signature<R (*)(P...)> {
};

template <class P> struct parameter {
    static constexpr bool is_view = false, is_views = false, is_lead = false;
};
template <class T> struct parameter<view<T>> {
    using type = T;
    static constexpr bool is_view = true, is_views = false, is_lead = false;
};
template <class T> struct parameter<views<T>> {
    using type = T;
    static constexpr bool is_view = true, is_views = true, is_lead = false;
};
template <class V, class C, class P> struct parameter<csr_view<V, C, P>> {
    using type = V;
    static constexpr bool is_view = true, is_views = false, is_lead = false;
};
template <class P> inline constexpr bool is_csr = false;
template <class V, class C, class P> inline constexpr bool is_csr<csr_view<V, C, P>> = true;
template <> struct parameter<context> {
    static constexpr bool is_view = false, is_views = false, is_lead = true;
};
template <> struct parameter<range> {
    static constexpr bool is_view = false, is_views = false, is_lead = true;
};

/* Parameters in three parts: leading, views, and for a kernel the arguments. */
template <class L> struct layout;
template <class... P> struct layout<list<P...>> {
    static constexpr std::size_t count = sizeof...(P);
    static constexpr std::size_t leading = (std::size_t{0} + ... + parameter<P>::is_lead);
    static constexpr std::size_t views = (std::size_t{0} + ... + parameter<P>::is_view);
    static constexpr std::size_t blocks = (std::size_t{0} + ... + parameter<P>::is_views);
    static constexpr std::size_t rest = count - leading - views;
    static constexpr bool has_range = (std::is_same_v<P, range> || ...);
    static constexpr bool has_context = (std::is_same_v<P, context> || ...);

    template <std::size_t I> using at = typename element<I, list<P...>>::type;

    /* Number of the first view of the C interface for view k; blocks have sizes. */
    static std::size_t first(std::size_t k, const std::uint8_t *sizes) noexcept
    {
        constexpr bool is_block[] = {parameter<P>::is_views..., false};
        std::size_t at = 0;
        for (std::size_t j = 0; j < k; ++j) {
            at += is_block[leading + j] ? *sizes++ : 1U;
        }
        return at;
    }

    static constexpr std::size_t block_of(std::size_t k)
    {
        constexpr bool is_block[] = {parameter<P>::is_views..., false};
        std::size_t block = 0;
        for (std::size_t j = 0; j < k; ++j) {
            block += is_block[leading + j];
        }
        return block;
    }

    static constexpr bool in_order()
    {
        constexpr int kinds[] = {(parameter<P>::is_lead ? 0 : parameter<P>::is_view ? 1 : 2)..., 2};
        for (std::size_t k = 0; k < count; ++k) {
            if (kinds[k] > kinds[k + 1]) {
                return false;
            }
        }
        return true;
    }

    static_assert(in_order() && blocks <= access_list::most_blocks && leading <= 2,
                  "parameters of a task are context, range, then a view for every access; at most "
                  "eight of them are views");
};
template <> struct layout<list<>> {
    static constexpr std::size_t count = 0, leading = 0, views = 0, blocks = 0, rest = 0;
    static constexpr bool has_range = false, has_context = false;
};

/* Fails to compile where a parameter does not fit its access. */
template <class P, class A> constexpr void match()
{
    static_assert(access_traits<A>::is_access,
                  "behind the function of a task stand accesses: filch::read(tile) and its kin");
    if constexpr (access_traits<A>::is_access) {
        using T = typename parameter<P>::type;
        static_assert(!is_csr<P>, "a csr_view is the parameter of a row block of a filch::csr");
        static_assert(access_traits<A>::is_block == parameter<P>::is_views,
                      "a block of tiles is a parameter views<T>, a tile a parameter view<T>");
        static_assert(access_traits<A>::is_written || std::is_const_v<T>,
                      "what a task only reads is a parameter view<const T>, not view<T>");
        static_assert(!access_traits<A>::is_written || !std::is_const_v<T>,
                      "what a task writes is a parameter view<T>, not view<const T>");
        static_assert(std::is_trivially_copyable_v<T>, "filch copies elements byte by byte");
    }
}
template <class P, class T> constexpr void match_scratch()
{
    static_assert(std::is_same_v<P, view<T>>, "scratch<T> is a parameter view<T>");
}

template <class P, class View> constexpr void match_csr()
{
    static_assert(
        std::is_same_v<P, View>,
        "a row block of a csr<V, C, P> is a parameter csr_view<const V, C, P> where it is "
        "read, and csr_view<V, C, P> where values change");
}

template <class P, class A> struct matched {
    static constexpr bool value = (match<P, A>(), true);
};
template <class P, class T> struct matched<P, scratch_access<T>> {
    static constexpr bool value = (match_scratch<P, T>(), true);
};
template <class P, filch_access_mode Mode, class View> struct matched<P, csr_access<Mode, View>> {
    static constexpr bool value = (match_csr<P, View>(), true);
};

template <class Layout, std::size_t... I, class... A>
void collect(access_list &into, std::index_sequence<I...>, const A &...accesses)
{
    static_assert((matched<typename Layout::template at<Layout::leading + I>, A>::value && ...));
    (into.add(accesses,
              sizeof(typename parameter<typename Layout::template at<Layout::leading + I>>::type),
              static_cast<int>(I)),
     ...);
}

/* Accesses of a function with the parameters L. */
template <class L, class... A> void collect_for(access_list &into, const A &...accesses)
{
    using parts = layout<L>;
    static_assert(parts::views == sizeof...(A), "a task has one view for every access");
    if constexpr (parts::views == sizeof...(A) && sizeof...(A) > 0) {
        collect<parts>(into, std::index_sequence_for<A...>{}, accesses...);
    }
}

/* Throws where a function cannot tell its piece of a divisible task, or has no items. */
template <class L> void require_range(const char *name, std::uint64_t items)
{
    using parts = layout<L>;
    if (items > 0 && !parts::has_range && !parts::has_context) {
        refuse("filch::graph::add",
               "'" + std::string(name) + "' has items, and its function takes no filch::range");
    }
    if (items == 0 && parts::has_range) {
        refuse("filch::graph::add",
               "'" + std::string(name) + "' takes a filch::range, and has no items(): name them");
    }
}

/* Throws where a function is a null pointer. */
template <class G> void require_function(const char *call, const char *name, const G &function)
{
    if constexpr (std::is_pointer_v<G>) {
        if (!function) {
            refuse(call, "'" + std::string(name) + "': the function is a null pointer");
        }
    }
}

/* --- Calls --- */

template <class Layout, std::size_t I>
typename Layout::template at<I> make_parameter(const filch_call *call, const std::uint8_t *sizes,
                                               pend_frame &frame) noexcept
{
    using P = typename Layout::template at<I>;
    if constexpr (std::is_same_v<P, context>) {
        return context(*call, &frame);
    } else if constexpr (std::is_same_v<P, range>) {
        return range{call->lo, call->hi};
    } else if constexpr (parameter<P>::is_views) {
        constexpr std::size_t k = I - Layout::leading;
        return P(call->views + Layout::first(k, sizes), sizes[Layout::block_of(k)]);
    } else if constexpr (is_csr<P>) {
        return typed_csr<P>(call->views[Layout::first(I - Layout::leading, sizes)]);
    } else if constexpr (parameter<P>::is_view) {
        return typed<typename parameter<P>::type>(
            call->views[Layout::first(I - Layout::leading, sizes)]);
    } else {
        return *static_cast<const P *>(call->args);
    }
}

template <class F, class L, std::size_t... I>
int invoke_with(const F &function, const filch_call *call, const std::uint8_t *sizes,
                pend_frame &frame, std::index_sequence<I...>)
{
    using result = typename signature<F>::result;
    static_assert(std::is_void_v<result> || std::is_same_v<result, int>,
                  "the function of a task returns nothing or an int");
    (void)call;
    (void)sizes;
    (void)frame;
    if constexpr (std::is_void_v<result>) {
        function(make_parameter<layout<L>, I>(call, sizes, frame)...);
        return 0;
    } else {
        return function(make_parameter<layout<L>, I>(call, sizes, frame)...);
    }
}

/* Calls the function; an exception becomes a code, with a text for texts or else for filch. */
template <class F>
int invoke(const F &function, const filch_call *call, const std::uint8_t *sizes,
           failures *texts) noexcept
{
    using L = typename signature<F>::parameters;
    pend_frame frame;
    const int code = guarded(
        texts,
        [&] {
            return invoke_with<F, L>(function, call, sizes, frame,
                                     std::make_index_sequence<L::size>{});
        },
        call);
    return frame.leave(code, call);
}

/* Begin of the arguments of a task made from a function. */
struct header {
    owner *of;
    double units;
    std::uint8_t sizes[access_list::most_blocks]; /* tiles of each views */
};

inline header make_header(owner *of, double units, const access_list &list) noexcept
{
    header made = {of, units, {}};
    std::memcpy(made.sizes, list.sizes(), sizeof made.sizes);
    return made;
}

template <class F> struct packet {
    header head;
    F function;
};

template <class F> class stored final : public capture
{
  public:
    template <class G> explicit stored(G &&from) : function(std::forward<G>(from))
    {
    }
    F function;
};

struct reference {
    header head;
    capture *function;
    bool is_once; /* destroyed after the run */
};

/* The arguments are aligned to 16 bytes, and at most 65,535. */
template <class F>
inline constexpr bool travels = std::is_trivially_copyable_v<F> && alignof(F) <= 16 &&
                                sizeof(packet<F>) <= 65535;

template <class F> struct entry {
    static int run_packet(const filch_call *call) noexcept
    {
        const packet<F> *args = static_cast<const packet<F> *>(call->args);
        return invoke(args->function, call, args->head.sizes, &args->head.of->texts);
    }

    static int run_reference(const filch_call *call) noexcept
    {
        const reference args = *static_cast<const reference *>(call->args);
        const F &function = static_cast<const stored<F> *>(args.function)->function;
        const int code = invoke(function, call, args.head.sizes, &args.head.of->texts);
        if (args.is_once) {
            args.head.of->drop(args.function);
        }
        return code;
    }
};

inline double units_of_task(const filch_call *call) noexcept
{
    return static_cast<const header *>(call->args)->units;
}
inline double units_of_items(const filch_call *call) noexcept
{
    return static_cast<const header *>(call->args)->units *
           static_cast<double>(call->hi - call->lo);
}

/* A function that is a constant, with arguments of its own. */
template <auto Function> struct constant_entry {
    static int run(const filch_call *call) noexcept
    {
        return invoke(Function, call, nullptr, nullptr);
    }
};

template <class L> struct arguments_of {
    using type = void;
};
template <class First, class... P> struct arguments_of<list<First, P...>> {
    using last = typename element<sizeof...(P), list<First, P...>>::type;
    using type =
        std::conditional_t<parameter<last>::is_view || parameter<last>::is_lead, void, last>;
};

} // namespace detail

/** Options of a task: of a filch::task, a filch::kernel or a filch::codelet. */
template <class Derived> class task_options
{
  public:
    /**
     * Names the task in errors.
     *
     * @param text the label; not copied: must live as long as the graph.
     * @return a copy with the label.
     */
    Derived label(const char *text) const
    {
        return with(&filch_task_desc::label, text);
    }

    /**
     * Sets the priority, for graphs with FILCH_PRIORITIES_CALLER.
     *
     * @param value greater values run sooner.
     * @return a copy with the priority.
     */
    Derived priority(std::int32_t value) const
    {
        return with(&filch_task_desc::priority, value);
    }

    /**
     * Prefers a device.
     *
     * @param device index of the device.
     * @return a copy with the preference.
     */
    Derived affinity(std::uint32_t device) const
    {
        return with(&filch_task_desc::affinity, device + 1);
    }

    /**
     * Makes the task divisible, filch_task_desc.items.
     *
     * @param count number of items.
     * @param grain pieces are cut at multiples of the grain; 0 means 1.
     * @return a copy with the items.
     */
    Derived items(std::uint64_t count, std::uint64_t grain = 0) const
    {
        Derived made = with(&filch_task_desc::items, count);
        made.desc_.grain = grain;
        return made;
    }

  protected:
    /**
     * Sets a member of the description.
     *
     * @param member the member.
     * @param value  value of the member.
     * @return a copy with the value.
     */
    template <class Member, class Value>
    Derived with(Member filch_task_desc::*member, Value value) const
    {
        Derived made = static_cast<const Derived &>(*this);
        made.desc_.*member = value;
        return made;
    }

    filch_task_desc desc_ = FILCH_TASK_DESC_INIT; /**< The options. */
};

/**
 * Kind and options of a task made from a function. The name is a kind of task: filch keeps a
 * codelet, with measured speeds, for every name and type of function, as long as the runtime lives.
 * A label tells tasks of a kind apart.
 */
class task : public task_options<task>
{
  public:
    /**
     * Names the kind.
     *
     * @param name the name; must live until the call that takes the task returns.
     */
    task(const char *name) noexcept : name_(name ? name : "")
    {
    }

    /**
     * Declares the work of the task; filch_codelet_desc.work.
     *
     * @param units units of work, e.g. floating point operations.
     * @return a copy with the work.
     */
    task work(double units) const
    {
        task made = *this;
        made.units_ = units;
        return made;
    }

    /**
     * Lets the function make its task pending, by context::pend(). Not for tasks with items or with
     * reducing accesses.
     *
     * @return a copy that may pend.
     */
    task pends() const
    {
        task made = *this;
        made.flags_ = FILCH_CODELET_MAY_PEND;
        return made;
    }

  private:
    friend class graph;
    const char *name_;
    double units_ = -1; /* not declared */
    std::uint32_t flags_ = 0;
};

/**
 * Codelet of the C interface, for tasks and batches; made by runtime::codelet(). A small value; the
 * codelet lives as long as the runtime.
 */
class codelet : public task_options<codelet>
{
  public:
    /**
     * Names a codelet made by the C interface.
     *
     * @param handle   the codelet.
     * @param arg_size bytes of the codelet's arguments.
     */
    codelet(filch_codelet *handle, std::uint32_t arg_size) noexcept : arg_size_(arg_size)
    {
        desc_.codelet = handle;
    }

    /** @return handle for calls of the C interface. */
    filch_codelet *handle() const noexcept
    {
        return desc_.codelet;
    }

    /** @return bytes of the codelet's arguments. */
    std::uint32_t arg_size() const noexcept
    {
        return arg_size_;
    }

  private:
    friend class task_options<codelet>;
    friend class graph;
    std::uint32_t arg_size_;
};

/**
 * Codelet with a function of the host's, a CUDA implementation, or both, and with parameters known
 * to the compiler; made by runtime::kernel(). A small value; lives as long as the runtime.
 *
 * Parameters is the list of the parameters of the host function. Behind the views may stand the
 * arguments: a trivially copyable type, or a const reference to one.
 */
template <class Parameters> class kernel : public task_options<kernel<Parameters>>
{
  public:
    /** Type of the arguments; void: no arguments. */
    using arguments = typename detail::arguments_of<Parameters>::type;

    /**
     * Names a codelet.
     *
     * @param handle the codelet, with arguments of the type above.
     */
    explicit kernel(filch_codelet *handle) noexcept
    {
        this->desc_.codelet = handle;
    }

    /** @return handle for calls of the C interface. */
    filch_codelet *handle() const noexcept
    {
        return this->desc_.codelet;
    }

  private:
    friend class task_options<kernel<Parameters>>;
    friend class graph;
};

namespace detail
{

template <class F> inline constexpr bool is_code = std::is_same_v<F, codelet>;
template <class L> inline constexpr bool is_code<kernel<L>> = true;

/* Arguments of a codelet, of which the size alone is known. */
struct arguments {
    const void *at = nullptr;
    std::size_t bytes = 0;

    template <class T> void set(const T &from)
    {
        static_assert(!std::is_same_v<T, tile> && !std::is_same_v<T, tiles> &&
                          !std::is_same_v<T, data>,
                      "name the access: filch::read(tile) or one of its kin");
        static_assert(std::is_trivially_copyable_v<T>, "filch copies arguments byte by byte");
        if (at) {
            refuse("filch::codelet", "a codelet has one structure of arguments");
        }
        at = &from;
        bytes = sizeof from;
    }

    void require(const codelet &of) const
    {
        if (bytes != of.arg_size()) {
            refuse("filch::codelet", "the codelet has arguments of " +
                                         std::to_string(of.arg_size()) + " bytes, not of " +
                                         std::to_string(bytes));
        }
    }
};

} // namespace detail

} // namespace filch

#endif
