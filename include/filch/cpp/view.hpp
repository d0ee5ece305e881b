/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file view.hpp
 * Parameters of a task's function: views of tiles, the range of items, the context of the call.
 *
 * Every type is a small value over memory of filch or of the host. Views are valid during the call
 * that received them; views of a filch::hold are valid until the release.
 */
#ifndef FILCH_CPP_VIEW_HPP
#define FILCH_CPP_VIEW_HPP

#include <cstddef>
#include <cstdint>
#include <type_traits>
#if __cplusplus >= 202002L
#include <span>
#endif

#include "filch/cpp/pending.hpp"

namespace filch
{

/** Contiguous elements; std::span of C++20 can be made from a span, also from a temporary. */
template <class T> class span
{
  public:
    /** Type of the elements, without const. */
    using value_type = std::remove_cv_t<T>;

    /**
     * Makes a span.
     *
     * @param data  first element.
     * @param count number of elements.
     */
    constexpr span(T *data, std::size_t count) noexcept : data_(data), count_(count)
    {
    }

    /** @return address of the first element. */
    constexpr T *data() const noexcept
    {
        return data_;
    }

    /** @return number of elements. */
    constexpr std::size_t size() const noexcept
    {
        return count_;
    }

    /** @return first element. */
    constexpr T *begin() const noexcept
    {
        return data_;
    }

    /** @return end of the elements. */
    constexpr T *end() const noexcept
    {
        return data_ + count_;
    }

    /**
     * Element, unchecked.
     *
     * @param i index, from 0.
     * @return the element.
     */
    constexpr T &operator[](std::size_t i) const noexcept
    {
        return data_[i];
    }

  private:
    T *data_;
    std::size_t count_;
};

/**
 * Column-major block of a handle, as filch_view, with a type. A view<const T> belongs to a read
 * access, a view<T> to an access that writes, or to scratch memory.
 */
template <class T> struct view {
    T *ptr;             /**< First element. */
    std::uint64_t rows; /**< Rows, or elements of a 1-D range. */
    std::uint64_t cols; /**< Columns; 1 for a 1-D range. */
    std::uint64_t ld;   /**< Elements from a column to the next. */
    std::uint64_t row;  /**< First row of the view within the handle. */
    std::uint64_t col;  /**< First column of the view within the handle. */

    /**
     * Element, unchecked.
     *
     * @param i row within the view, from 0.
     * @param j column within the view, from 0.
     * @return the element.
     */
    constexpr T &operator()(std::uint64_t i, std::uint64_t j) const noexcept
    {
        return ptr[j * ld + i];
    }

    /**
     * Element of the first column, unchecked.
     *
     * @param i row within the view, from 0.
     * @return the element.
     */
    constexpr T &operator[](std::uint64_t i) const noexcept
    {
        return ptr[i];
    }

    /**
     * Elements of a column.
     *
     * @param j column within the view, from 0; unchecked.
     * @return the elements, which are contiguous.
     */
    constexpr span<T> column(std::uint64_t j = 0) const noexcept
    {
        return {ptr + j * ld, static_cast<std::size_t>(rows)};
    }

    /** @return a view of equal elements that cannot be written. */
    constexpr operator view<const T>() const noexcept
    {
        return {ptr, rows, cols, ld, row, col};
    }
};

/** Items [lo, hi) of a batch's chunk, or of a piece of a divisible task. */
struct range {
    std::uint64_t lo; /**< First item. */
    std::uint64_t hi; /**< One past the last item. */

    /** @return number of items. */
    constexpr std::uint64_t size() const noexcept
    {
        return hi - lo;
    }
};

namespace detail
{

/* Scratch memory has elements of a byte. */
template <class T> view<T> typed(const filch_view &from) noexcept
{
    std::uint64_t rows = from.rows, ld = from.ld;
    if (from.element != sizeof(T)) {
        rows = ld = rows * from.element / sizeof(T);
    }
    return {static_cast<T *>(from.ptr), rows, from.cols, ld, from.row, from.col};
}

} // namespace detail

/** Views of a block of tiles, row after row of a column of tiles: parameter of a block access. */
template <class T> class views
{
  public:
    /**
     * Makes the views.
     *
     * @param first views of the C interface.
     * @param count number of views.
     */
    views(const filch_view *first, std::size_t count) noexcept : first_(first), count_(count)
    {
    }

    /** @return number of tiles. */
    std::size_t size() const noexcept
    {
        return count_;
    }

    /**
     * View of a tile, unchecked.
     *
     * @param k number of the tile within the block, from 0.
     * @return the view.
     */
    view<T> operator[](std::size_t k) const noexcept
    {
        return detail::typed<T>(first_[k]);
    }

  private:
    const filch_view *first_;
    std::size_t count_;
};

/** Context of a call: a function may take the context as a parameter before the views. */
class context
{
  public:
    /**
     * Makes the context.
     *
     * @param call the call.
     */
    explicit context(const filch_call &call) noexcept : call_(&call)
    {
    }

    /**
     * Makes the context of a function that may pend.
     *
     * @param call  the call.
     * @param frame private to the C++ interface.
     */
    context(const filch_call &call, detail::pend_frame *frame) noexcept
        : call_(&call), frame_(frame)
    {
    }

    /** @return index of the device that runs the call. */
    std::uint32_t device() const noexcept
    {
        return call_->device;
    }

    /** @return cores for the function to use; 1 except on host:NxT devices. */
    std::uint32_t team() const noexcept
    {
        return call_->team;
    }

    /**
     * Ends the rest of the function's job as success, filch_call_finish(): what has begun ends, and
     * what has not begun is skipped.
     *
     * @throws error WRONG_STATE: the call is not of the innermost function running on the thread.
     */
    void finish() const
    {
        detail::check(call_->runtime, filch_call_finish(call_), "filch_call_finish");
    }

    /**
     * Makes the task pending, filch_call_pend(): the task ends by the token, after the function has
     * returned. For functions of tasks with task::pends(), and of kernels and codelets with
     * FILCH_CODELET_MAY_PEND. The function returns nothing, or 0. Views stay valid until the end,
     * captures until the function has returned.
     *
     * @return the token.
     * @throw error FILCH_WRONG_STATE (the kind of task may not pend; the task is pending already;
     *              the call is not of the innermost function running on the thread);
     *              std::bad_alloc.
     */
    pending pend() const
    {
        const char *name = "filch_call_pend";
        if (!frame_ || frame_->state) {
            throw error(FILCH_WRONG_STATE, name,
                        frame_ ? "the task is pending already" : "the context is of no function");
        }
        filch_pending handle = {nullptr, 0};
        detail::check(call_->runtime, filch_call_pend(call_, &handle), name);
        frame_->state = std::make_shared<detail::pending_state>(handle);
        return pending(frame_->state);
    }

    /** @return the call of the C interface, valid during the call. */
    const filch_call &call() const noexcept
    {
        return *call_;
    }

  private:
    const filch_call *call_;
    detail::pend_frame *frame_ = nullptr;
};

} // namespace filch

#ifdef __cpp_lib_span
/** Elements outlive a span. */
template <class T> inline constexpr bool std::ranges::enable_borrowed_range<filch::span<T>> = true;
#endif

#endif
