/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file data.hpp
 * Data: handles of buffers, tiles of handles, and the host's use of tiles.
 */
#ifndef FILCH_CPP_DATA_HPP
#define FILCH_CPP_DATA_HPP

#include "filch/cpp/state.hpp"
#include "filch/cpp/view.hpp"

namespace filch
{

/**
 * Description of a handle to make, filch_data_desc with a fluent interface. Elements are
 * column-major. The buffer stays the caller's.
 *
 * The functions with options return a copy. Thread safety: const functions, from any thread.
 */
class buffer
{
  public:
    /**
     * Describes memory.
     *
     * @param ptr  first element; with a const type the handle can only be read.
     * @param rows rows, or elements of a vector.
     * @param cols columns.
     * @param ld   elements from a column to the next; 0 means @p rows.
     */
    template <class T>
    buffer(T *ptr, std::uint64_t rows, std::uint64_t cols = 1, std::uint64_t ld = 0)
        : is_const_(std::is_const_v<T>)
    {
        static_assert(std::is_trivially_copyable_v<T>, "filch copies elements byte by byte");
        desc_.ptr = const_cast<std::remove_cv_t<T> *>(ptr);
        desc_.element = sizeof(T);
        desc_.rows = rows;
        desc_.cols = cols;
        desc_.ld = ld;
    }

    /**
     * Describes the elements of a std::vector, which must keep its size as long as the handle
     * lives.
     *
     * @param elements the vector.
     */
    template <class T, class Allocator>
    buffer(std::vector<T, Allocator> &elements) : buffer(elements.data(), elements.size())
    {
    }

    /**
     * Describes the elements of a const std::vector: the handle can only be read.
     *
     * @param elements the vector, no temporary.
     */
    template <class T, class Allocator>
    buffer(const std::vector<T, Allocator> &elements) : buffer(elements.data(), elements.size())
    {
    }
    /** No temporary has a buffer. @param elements the temporary. */
    template <class T, class Allocator> buffer(const std::vector<T, Allocator> &&elements) = delete;

    /**
     * Describes contents without a buffer (FILCH_DATA_NO_BUFFER).
     *
     * @param rows rows, or elements of a vector.
     * @param cols columns.
     * @return the description.
     */
    template <class T> static buffer without(std::uint64_t rows, std::uint64_t cols = 1)
    {
        buffer made(static_cast<T *>(nullptr), rows, cols);
        made.desc_.flags |= FILCH_DATA_NO_BUFFER;
        return made;
    }

    /**
     * Describes a temporary (FILCH_DATA_TEMPORARY): intermediate results of a graph, which have
     * memory from the first writer of a tile to the last user.
     *
     * @param rows rows, or elements of a vector.
     * @param cols columns.
     * @return the description.
     */
    template <class T> static buffer temporary(std::uint64_t rows, std::uint64_t cols = 1)
    {
        buffer made(static_cast<T *>(nullptr), rows, cols);
        made.desc_.flags |= FILCH_DATA_TEMPORARY;
        return made;
    }

    /**
     * Cuts the handle into equal tiles; the last tiles may be smaller.
     *
     * @param rows rows a tile; 0 means all.
     * @param cols columns a tile; 0 means all.
     * @return a copy with the tiles.
     * @throw std::bad_alloc.
     */
    [[nodiscard]] buffer tiles(std::uint64_t rows, std::uint64_t cols = 0) const
    {
        buffer made = *this;
        made.desc_.tile_rows = rows;
        made.desc_.tile_cols = cols;
        return made;
    }

    /**
     * Cuts the handle into tiles of unlike sizes.
     *
     * @param rows heights of the tile rows; empty: as tiles() says.
     * @param cols widths of the tile columns; empty: as tiles() says.
     * @return a copy with the tiles.
     * @throw std::bad_alloc.
     */
    [[nodiscard]] buffer cuts(std::vector<std::uint64_t> rows,
                              std::vector<std::uint64_t> cols = {}) const
    {
        buffer made = *this;
        made.row_cuts_ = std::move(rows);
        made.col_cuts_ = std::move(cols);
        return made;
    }

    /**
     * Names the handle in errors.
     *
     * @param text the name; copied.
     * @return a copy with the label.
     * @throw std::bad_alloc.
     */
    [[nodiscard]] buffer label(const std::string &text) const
    {
        buffer made = *this;
        made.label_ = text;
        return made;
    }

    /** Leaves contents where they were used last (FILCH_DATA_MANAGED). @return such a copy. */
    [[nodiscard]] buffer managed() const
    {
        return with(FILCH_DATA_MANAGED);
    }

    /** Page-locks the buffer (FILCH_DATA_PIN). @return such a copy. */
    [[nodiscard]] buffer pinned() const
    {
        return with(FILCH_DATA_PIN);
    }

    /** Reduces with the same bits on every schedule (FILCH_DATA_ORDERED). @return such a copy. */
    [[nodiscard]] buffer ordered() const
    {
        return with(FILCH_DATA_ORDERED);
    }

    /**
     * Says that the buffer is in a GPU's memory (FILCH_DATA_ON_DEVICE).
     *
     * @param device index of the device.
     * @return a copy that says so.
     * @throw std::bad_alloc.
     */
    [[nodiscard]] buffer on_device(std::uint32_t device) const
    {
        buffer made = with(FILCH_DATA_ON_DEVICE);
        made.desc_.device = device;
        return made;
    }

    /** @return the description for the C interface; points into *this. */
    filch_data_desc desc() const noexcept
    {
        filch_data_desc made = desc_;
        made.label = label_.empty() ? nullptr : label_.c_str();
        made.row_cuts = row_cuts_.empty() ? nullptr : row_cuts_.data();
        made.col_cuts = col_cuts_.empty() ? nullptr : col_cuts_.data();
        made.row_cut_count = static_cast<std::uint32_t>(row_cuts_.size());
        made.col_cut_count = static_cast<std::uint32_t>(col_cuts_.size());
        return made;
    }

    /** @return true if the elements are const. */
    bool is_const() const noexcept
    {
        return is_const_;
    }

  private:
    buffer with(std::uint32_t flag) const
    {
        buffer made = *this;
        made.desc_.flags |= flag;
        return made;
    }

    filch_data_desc desc_ = FILCH_DATA_DESC_INIT;
    std::vector<std::uint64_t> row_cuts_, col_cuts_;
    std::string label_;
    bool is_const_;
};

/** Tile of a handle, for filch::read() and its kin. A small value, valid as long as the handle. */
struct tile {
    filch_data *data;      /**< The handle. */
    std::uint64_t element; /**< Bytes an element. */
    std::uint32_t row;     /**< Tile row. */
    std::uint32_t col;     /**< Tile column. */
    bool is_const;         /**< The handle can only be read. */
};

/** Block of a handle's tiles, for filch::read() and its kin. Valid as long as the handle. */
struct tiles {
    filch_data *data;      /**< The handle. */
    std::uint64_t element; /**< Bytes an element. */
    std::uint32_t row0;    /**< First row of tiles. */
    std::uint32_t row1;    /**< One past the last row of tiles. */
    std::uint32_t col0;    /**< First column of tiles. */
    std::uint32_t col1;    /**< One past the last column of tiles. */
    bool is_const;         /**< The handle can only be read. */
};

/**
 * Block of a handle's tiles that a task sees as one view, for filch::read(), filch::write() and
 * filch::readwrite(). Valid as long as the handle.
 */
struct block {
    filch::tiles at; /**< The tiles. */
};

namespace detail
{

class data_state final : public leftover
{
  public:
    data_state(std::shared_ptr<runtime_state> state, std::uint64_t bytes, bool is_read_only)
        : runtime(std::move(state)), element(bytes), is_const(is_read_only)
    {
    }

    bool end() noexcept override
    {
        return filch_data_destroy(handle) != FILCH_BUSY;
    }

    std::shared_ptr<runtime_state> runtime;
    filch_data *handle = nullptr;
    std::uint64_t element;
    filch_tiling tiling = FILCH_TILING_INIT;
    bool is_const;
};

struct data_end {
    void operator()(data_state *object) const noexcept
    {
        const std::shared_ptr<runtime_state> state = object->runtime;
        if (object->handle && state->handle) {
            state->sweep(); /* a graph may be left that names the handle */
            if (!object->end()) {
                state->leave(object);
                return;
            }
        }
        delete object;
        if (state->handle) {
            state->sweep(); /* a handle may be left whose last partition the object was */
        }
    }
};

[[noreturn]] inline void refuse(const char *call, const std::string &text)
{
    throw error(FILCH_INVALID_ARGUMENT, call, text);
}

} // namespace detail

namespace detail
{

/** Whether a type has handle(), as filch::kernel and filch::codelet. */
template <class T, class = void> struct has_handle : std::false_type {
};
template <class T>
struct has_handle<T, std::void_t<decltype(std::declval<const T &>().handle())>> : std::true_type {
};

struct hold_end {
    std::shared_ptr<runtime_state> runtime;
    void operator()(filch_hold *held) const noexcept
    {
        if (runtime->handle) {
            filch_hold_release(held);
            runtime->sweep(); /* a handle may be left that was held alone */
        }
    }
};

} // namespace detail

/**
 * Tiles that the host has acquired; owner, move-only. The destructor releases the tiles, and
 * ignores a failure to copy written contents to a GPU's buffer: release() reports the failure.
 *
 * Thread safety: one thread at a time uses a hold.
 */
class hold
{
  public:
    /**
     * View of an acquired tile.
     *
     * @param row tile row.
     * @param col tile column.
     * @return the view; T is const if the tiles were acquired for reading alone.
     * @throw error FILCH_INVALID_ARGUMENT: sizeof(T) is not the element's size, T is not const
     *              although the tiles are read only, no such tile; FILCH_WRONG_STATE: the tile is
     *              not acquired, the hold is empty.
     */
    template <class T> filch::view<T> view(std::uint32_t row = 0, std::uint32_t col = 0) const
    {
        const char *call = "filch::hold::view";
        if (!held_) {
            throw error(FILCH_WRONG_STATE, call, "the hold is empty");
        }
        if (sizeof(T) != element_ || (!std::is_const_v<T> && !writes_)) {
            detail::refuse(call, "the view is of another type than the tile: elements of " +
                                     std::to_string(element_) + " bytes" +
                                     (writes_ ? "" : ", read only"));
        }
        filch_view found = {};
        filch_runtime *runtime = held_.get_deleter().runtime->live(call);
        detail::check(runtime, filch_data_view(data_, row, col, &found), "filch_data_view");
        return detail::typed<T>(found);
    }

    /**
     * Releases the tiles before the destructor does. An empty hold stays empty.
     *
     * @throw error as filch_hold_release(); the tiles are released all the same.
     */
    void release()
    {
        if (held_) {
            const char *call = "filch_hold_release";
            detail::runtime_state &state = *held_.get_deleter().runtime;
            filch_runtime *runtime = state.live(call);
            filch_status status = filch_hold_release(held_.release());
            state.sweep();
            detail::check(runtime, status, call);
        }
    }

  private:
    friend class data;
    hold(filch_hold *held, const detail::data_state &of, bool writes)
        : held_(held, detail::hold_end{of.runtime}), data_(of.handle), element_(of.element),
          writes_(writes)
    {
    }

    std::unique_ptr<filch_hold, detail::hold_end> held_;
    filch_data *data_;
    std::uint64_t element_;
    bool writes_;
};

/**
 * Handle of a buffer; owner, move-only, made by runtime::data() or partition().
 *
 * The destructor does not wait, and never throws. A handle in use by a graph, a batch, a job, a
 * hold or a partition outlives its data, until the last user has ended: the buffer must live as
 * long.
 *
 * Thread safety: any thread may call the const functions concurrently.
 */
class data
{
  public:
    /** Moves the data. @param other is empty afterwards. */
    data(data &&other) noexcept = default;
    /** Gives the own handle up, and moves. @param other is empty afterwards. @return *this. */
    data &operator=(data &&other) noexcept = default;

    /**
     * Names a tile.
     *
     * @param row tile row.
     * @param col tile column.
     * @return the tile; the call that uses the tile finds an index that is too large.
     */
    filch::tile tile(std::uint32_t row, std::uint32_t col = 0) const noexcept
    {
        return {handle(), element(), row, col, is_const()};
    }

    /** @return all tiles. */
    filch::tiles tiles() const noexcept
    {
        return tiles(0, tile_rows(), 0, tile_cols());
    }

    /**
     * Names a block of tiles.
     *
     * @param row0 first row of tiles.
     * @param row1 one past the last row of tiles.
     * @param col0 first column of tiles.
     * @param col1 one past the last column of tiles.
     * @return the block, which may be empty; the call that uses the block finds indices that are
     * too large, and a first index over the last.
     */
    filch::tiles tiles(std::uint32_t row0, std::uint32_t row1, std::uint32_t col0 = 0,
                       std::uint32_t col1 = 1) const noexcept
    {
        return {handle(), element(), row0, row1, col0, col1, is_const()};
    }

    /** @return all tiles, as one view. */
    filch::block block() const noexcept
    {
        return {tiles()};
    }

    /**
     * Names a block of tiles that a task sees as one view.
     *
     * @param row0 first row of tiles.
     * @param row1 one past the last row of tiles.
     * @param col0 first column of tiles.
     * @param col1 one past the last column of tiles.
     * @return the block; the call that uses the block finds indices that are too large, and refuses
     *         a block without tiles.
     */
    filch::block block(std::uint32_t row0, std::uint32_t row1, std::uint32_t col0 = 0,
                       std::uint32_t col1 = 1) const noexcept
    {
        return {tiles(row0, row1, col0, col1)};
    }

    /** @return number of rows of tiles. */
    std::uint32_t tile_rows() const noexcept
    {
        return state_ ? static_cast<std::uint32_t>(state_->tiling.rows) : 0;
    }

    /** @return number of columns of tiles. */
    std::uint32_t tile_cols() const noexcept
    {
        return state_ ? static_cast<std::uint32_t>(state_->tiling.cols) : 0;
    }

    /** @return bytes an element. */
    std::uint64_t element() const noexcept
    {
        return state_ ? state_->element : 0;
    }

    /** @return true if the handle can only be read. */
    bool is_const() const noexcept
    {
        return state_ && state_->is_const;
    }

    /** @return handle for calls of the C interface; stays the owner's; null after the runtime. */
    filch_data *handle() const noexcept
    {
        return state_ && state_->runtime->handle ? state_->handle : nullptr;
    }

    /**
     * Acquires tiles for the host, behind the jobs submitted so far: filch_data_acquire_tiles().
     *
     * @param mode    FILCH_READ, FILCH_WRITE or FILCH_READWRITE.
     * @param seconds time limit; negative: no limit.
     * @return the hold.
     * @throw error as filch_data_acquire_tiles(): FILCH_TIMEOUT and others.
     */
    [[nodiscard]] hold acquire(filch_access_mode mode, double seconds = -1) const
    {
        return acquire(mode, tiles(), seconds);
    }

    /**
     * Acquires a block of tiles for the host.
     *
     * @param mode    FILCH_READ, FILCH_WRITE or FILCH_READWRITE.
     * @param block   the tiles, of the present handle.
     * @param seconds time limit; negative: no limit.
     * @return the hold.
     * @throw error as filch_data_acquire_tiles(); FILCH_INVALID_ARGUMENT: an empty block, a block
     * of another handle, or a handle that can only be read is to be written.
     */
    [[nodiscard]] hold acquire(filch_access_mode mode, const filch::tiles &block,
                               double seconds = -1) const
    {
        const char *call = "filch_data_acquire_tiles";
        filch_runtime *runtime = live(call);
        bool writes = mode != FILCH_READ;
        if (block.data != state_->handle || block.row0 >= block.row1 || block.col0 >= block.col1) {
            detail::refuse(call, "the block is empty, or of another handle");
        }
        if (writes && state_->is_const) {
            detail::refuse(call, "the handle of const elements can only be read");
        }
        filch_tiles named = {sizeof named, block.row0, block.row1, block.col0, block.col1};
        filch_hold *held = nullptr;
        detail::check(runtime,
                      filch_data_acquire_tiles(state_->handle, &named, mode, seconds, &held), call);
        return hold(held, *state_, writes);
    }

    /**
     * Defines the reduction of the tiles, filch_data_reduction().
     *
     * @param init    filch::kernel or filch::codelet of the neutral element; without arguments.
     * @param combine filch::kernel or filch::codelet of the addition; without arguments.
     * @throw error as filch_data_reduction().
     */
    template <class Init, class Combine>
    void reduction(const Init &init, const Combine &combine) const
    {
        static_assert(detail::has_handle<Init>::value && detail::has_handle<Combine>::value,
                      "a reduction takes kernels or codelets");
        const char *call = "filch_data_reduction";
        filch_runtime *runtime = live(call);
        detail::check(runtime,
                      filch_data_reduction(state_->handle, init.handle(), combine.handle()), call);
    }

    /**
     * Makes a partition, filch_data_partition(): a handle of the buffer in other tiles.
     *
     * @param rows rows a tile; 0 means all.
     * @param cols columns a tile; 0 means all.
     * @return the partition.
     * @throw error as filch_data_partition(); std::bad_alloc.
     */
    [[nodiscard]] data partition(std::uint64_t rows, std::uint64_t cols = 0) const
    {
        const char *call = "filch_data_partition";
        filch_data_desc desc = FILCH_DATA_DESC_INIT;
        desc.tile_rows = rows;
        desc.tile_cols = cols;
        filch_runtime *runtime = live(call);
        data made(state_->runtime, state_->element, state_->is_const);
        detail::check(runtime, filch_data_partition(state_->handle, &desc, &made.state_->handle),
                      call);
        made.count();
        return made;
    }

  private:
    friend class runtime;
    template <class, class, class> friend class csr;
    template <filch_access_mode> friend class item_access;

    data(std::shared_ptr<detail::runtime_state> state, std::uint64_t element, bool is_const)
        : state_(new detail::data_state(std::move(state), element, is_const), detail::data_end())
    {
    }

    filch_runtime *live(const char *call) const
    {
        if (!state_) {
            throw error(FILCH_INVALID_HANDLE, call, "the data is moved from");
        }
        return state_->runtime->live(call);
    }

    void count()
    {
        detail::check(state_->runtime->handle, filch_data_tiles(state_->handle, &state_->tiling),
                      "filch_data_tiles");
    }

    std::shared_ptr<detail::data_state> state_; /* shared with accesses and batches */
};

} // namespace filch

#endif
