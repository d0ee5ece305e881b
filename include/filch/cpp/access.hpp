/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file access.hpp
 * Accesses: how a task or a batch uses data. The mode is part of an access's type, so that the
 * compiler compares accesses with the parameters of a function:
 *
 * | access | parameter |
 * | --- | --- |
 * | read(tile) | view<const T> |
 * | write(tile), readwrite(tile), commute(tile), reduce(tile) | view<T> |
 * | read(block) | view<const T> |
 * | write(block), readwrite(block) | view<T> |
 * | read(tile, halo), read(block, halo) | view<const T> |
 * | read(tiles) | views<const T> |
 * | write(tiles), readwrite(tiles), commute(tiles), reduce(tiles) | views<T> |
 * | scratch<T>(count) | view<T> |
 * | read(row block) of a csr<V, C, P> | csr_view<const V, C, P> |
 * | readwrite(row block), commute(row block) | csr_view<V, C, P> |
 *
 * Of a batch, accesses name whole handles: read(data) is one element an item.
 */
#ifndef FILCH_CPP_ACCESS_HPP
#define FILCH_CPP_ACCESS_HPP

#include "filch/cpp/csr.hpp"

namespace filch
{

namespace detail
{
class batch_state;
}

/** Access of a task to a tile. */
template <filch_access_mode Mode> struct tile_access {
    filch::tile at; /**< The tile. */
};

/** Access of a task to every tile of a block. */
template <filch_access_mode Mode> struct block_access {
    filch::tiles at; /**< The tiles. */
};

/** Access of a task to a block that the task sees as one view. */
template <filch_access_mode Mode> struct joined_access {
    filch::block of; /**< The block. */
};

/** Access of a task that reads a tile, or a block of tiles, and a halo around it, as one view. */
struct halo_access {
    filch::tile first;  /**< The first tile. */
    std::uint32_t rows; /**< Rows of tiles; 0: the block has no tiles. */
    std::uint32_t cols; /**< Columns of tiles; 0: the block has no tiles. */
    filch_halo halo;    /**< Rows and columns around the tiles. */
};

/** Access of a task to a row block of a sparse matrix; View is the parameter. */
template <filch_access_mode Mode, class View> struct csr_access {
    filch_data *data; /**< The matrix. */
    std::uint32_t at; /**< Number of the block. */
};

/** Private memory of a call. */
template <class T> struct scratch_access {
    std::uint64_t count; /**< Number of elements. */
};

/**
 * Access of a batch to a handle: item i uses element i, unless a function below says otherwise.
 * Elements are rows of a handle with one column, else columns. A task may have the access, too,
 * where the handle has a single tile. The access shares the handle with its data: a batch keeps the
 * handle, whatever becomes of the data. The functions with options return a copy.
 */
template <filch_access_mode Mode> class item_access
{
  public:
    /**
     * Makes the access.
     *
     * @param of the handle.
     */
    explicit item_access(const data &of) noexcept
        : shared_(of.state_), element_(of.element()),
          is_tile_(of.tile_rows() == 1 && of.tile_cols() == 1), is_const_(of.is_const())
    {
        desc_.data = of.handle();
        desc_.mode = Mode;
        desc_.map = FILCH_MAP_AFFINE;
        desc_.scale = 1;
    }

    /**
     * Sets the elements an item.
     *
     * @param elements elements an item.
     * @param offset   element of item 0.
     * @return a copy with the elements.
     */
    [[nodiscard]] item_access scale(std::uint64_t elements, std::uint64_t offset = 0) const noexcept
    {
        item_access made = mapped();
        made.desc_.scale = elements;
        made.desc_.offset = offset;
        return made;
    }

    /**
     * Adds neighbours, cut to the handle. Read accesses only.
     *
     * @param before elements below the items.
     * @param after  elements above the items.
     * @return a copy with the neighbours.
     */
    [[nodiscard]] item_access halo(std::uint64_t before, std::uint64_t after) const noexcept
    {
        static_assert(Mode == FILCH_READ, "only a read access has a halo");
        item_access made = mapped();
        made.desc_.before = before;
        made.desc_.after = after;
        return made;
    }

    /** Shows the whole handle to every chunk. Read accesses only. @return such a copy. */
    [[nodiscard]] item_access whole() const noexcept
    {
        static_assert(Mode == FILCH_READ, "only a read access sees the whole handle");
        item_access made = mapped();
        made.desc_.map = FILCH_MAP_WHOLE;
        made.desc_.scale = 0;
        return made;
    }

    /**
     * Maps items by a function of the caller's, filch_map_fn.
     *
     * @param function the function; pure, must not throw.
     * @param user     handed to @p function; must live as long as jobs of the batch run.
     * @return a copy with the mapping.
     */
    [[nodiscard]] item_access map(filch_map_fn function, void *user) const noexcept
    {
        item_access made = mapped();
        made.desc_.map = FILCH_MAP_CALLBACK;
        made.desc_.scale = 0;
        made.desc_.fn = function;
        made.desc_.user = user;
        return made;
    }

    /** @return the access for the C interface. */
    const filch_batch_access &desc() const noexcept
    {
        return desc_;
    }

    /** @return bytes an element of the handle. */
    std::uint64_t element() const noexcept
    {
        return element_;
    }

    /** @return true if the access is to the only tile of a handle. */
    bool is_tile() const noexcept
    {
        return is_tile_;
    }

    /** @return true if the handle can only be read. */
    bool is_const() const noexcept
    {
        return is_const_;
    }

  private:
    friend class detail::batch_state;

    item_access mapped() const noexcept
    {
        item_access made = *this;
        made.is_tile_ = false;
        return made;
    }

    std::shared_ptr<detail::data_state> shared_; /* the handle */
    filch_batch_access desc_ = {};
    std::uint64_t element_;
    bool is_tile_;
    bool is_const_;
};

/**
 * Reads.
 *
 * @param at the tile.
 * @return the access.
 */
inline tile_access<FILCH_READ> read(const tile &at) noexcept
{
    return {at};
}
/** Reads a block. @param at the tiles. @return the access. */
inline block_access<FILCH_READ> read(const tiles &at) noexcept
{
    return {at};
}
/** Reads a block as one view. @param of the block. @return the access. */
inline joined_access<FILCH_READ> read(const block &of) noexcept
{
    return {of};
}

/**
 * Reads a tile with a halo around it, cut to the handle (filch_halo). The view begins with the
 * halo: view::row and view::col tell where.
 *
 * @param at   the tile.
 * @param halo rows and columns around the tile; copied.
 * @return the access.
 */
inline halo_access read(const tile &at, const filch_halo &halo) noexcept
{
    return {at, 1, 1, halo};
}

/**
 * Reads a block with a halo around it, as one view.
 *
 * @param of   the block.
 * @param halo rows and columns around the block; copied.
 * @return the access.
 */
inline halo_access read(const block &of, const filch_halo &halo) noexcept
{
    const tiles &at = of.at;
    return {{at.data, at.element, at.row0, at.col0, at.is_const},
            at.row0 < at.row1 ? at.row1 - at.row0 : 0,
            at.col0 < at.col1 ? at.col1 - at.col0 : 0,
            halo};
}

/** Reads in a batch. @param of the handle. @return the access. */
inline item_access<FILCH_READ> read(const data &of) noexcept
{
    return item_access<FILCH_READ>(of);
}

/** Reads a row block of a sparse matrix. @param of the block. @return the access. */
template <class V, class C, class P>
csr_access<FILCH_READ, csr_view<const V, C, P>> read(const csr_block<V, C, P> &of) noexcept
{
    return {of.data, of.at};
}

/**
 * Overwrites every element; the old contents need not be present.
 *
 * @param at the tile.
 * @return the access.
 */
inline tile_access<FILCH_WRITE> write(const tile &at) noexcept
{
    return {at};
}
/** Overwrites a block. @param at the tiles. @return the access. */
inline block_access<FILCH_WRITE> write(const tiles &at) noexcept
{
    return {at};
}
/** Overwrites a block as one view. @param of the block. @return the access. */
inline joined_access<FILCH_WRITE> write(const block &of) noexcept
{
    return {of};
}
/** Overwrites in a batch. @param of the handle. @return the access. */
inline item_access<FILCH_WRITE> write(const data &of) noexcept
{
    return item_access<FILCH_WRITE>(of);
}

/**
 * Reads and writes.
 *
 * @param at the tile.
 * @return the access.
 */
inline tile_access<FILCH_READWRITE> readwrite(const tile &at) noexcept
{
    return {at};
}
/** Reads and writes a block. @param at the tiles. @return the access. */
inline block_access<FILCH_READWRITE> readwrite(const tiles &at) noexcept
{
    return {at};
}
/** Reads and writes a block as one view. @param of the block. @return the access. */
inline joined_access<FILCH_READWRITE> readwrite(const block &of) noexcept
{
    return {of};
}
/** Reads a row block, and changes values. @param of the block. @return the access. */
template <class V, class C, class P>
csr_access<FILCH_READWRITE, csr_view<V, C, P>> readwrite(const csr_block<V, C, P> &of) noexcept
{
    return {of.data, of.at};
}
/** Reads and writes in a batch. @param of the handle. @return the access. */
inline item_access<FILCH_READWRITE> readwrite(const data &of) noexcept
{
    return item_access<FILCH_READWRITE>(of);
}

/**
 * Reads and writes, in any order of tasks (FILCH_COMMUTE).
 *
 * @param at the tile.
 * @return the access.
 */
inline tile_access<FILCH_COMMUTE> commute(const tile &at) noexcept
{
    return {at};
}
/** Reads and writes a block in any order. @param at the tiles. @return the access. */
inline block_access<FILCH_COMMUTE> commute(const tiles &at) noexcept
{
    return {at};
}

/** Changes values of a row block in any order. @param of the block. @return the access. */
template <class V, class C, class P>
csr_access<FILCH_COMMUTE, csr_view<V, C, P>> commute(const csr_block<V, C, P> &of) noexcept
{
    return {of.data, of.at};
}

/**
 * Adds to the tile (FILCH_REDUCE); data::reduction() defines the addition.
 *
 * @param at the tile.
 * @return the access.
 */
inline tile_access<FILCH_REDUCE> reduce(const tile &at) noexcept
{
    return {at};
}
/** Adds to a block. @param at the tiles. @return the access. */
inline block_access<FILCH_REDUCE> reduce(const tiles &at) noexcept
{
    return {at};
}

/**
 * Private memory of the call, with undefined contents; a task sees at least @p count elements.
 *
 * @param count number of elements.
 * @return the access.
 * @throw error FILCH_INVALID_ARGUMENT: the elements have 2^64 bytes or more.
 */
template <class T> scratch_access<T> scratch(std::uint64_t count)
{
    static_assert(std::is_trivially_copyable_v<T>, "scratch memory is not constructed");
    static_assert(alignof(T) <= 64, "scratch memory is aligned to 64 bytes");
    if (count > UINT64_MAX / sizeof(T)) {
        detail::refuse("filch::scratch", std::to_string(count) + " elements of " +
                                             std::to_string(sizeof(T)) + " bytes");
    }
    return {count};
}

namespace detail
{

/* What an access is, at compile time. */
template <class A> struct access_traits {
    static constexpr bool is_access = false;
};
template <filch_access_mode Mode> struct access_traits<tile_access<Mode>> {
    static constexpr bool is_access = true, is_block = false, is_items = false;
    static constexpr bool is_written = Mode != FILCH_READ;
};
template <filch_access_mode Mode> struct access_traits<item_access<Mode>> {
    static constexpr bool is_access = true, is_block = false, is_items = true;
    static constexpr bool is_written = Mode != FILCH_READ;
};
template <filch_access_mode Mode> struct access_traits<block_access<Mode>> {
    static constexpr bool is_access = true, is_block = true, is_items = false;
    static constexpr bool is_written = Mode != FILCH_READ;
};
template <filch_access_mode Mode> struct access_traits<joined_access<Mode>> {
    static constexpr bool is_access = true, is_block = false, is_items = false;
    static constexpr bool is_written = Mode != FILCH_READ;
};
template <> struct access_traits<halo_access> {
    static constexpr bool is_access = true, is_block = false, is_items = false;
    static constexpr bool is_written = false;
};
template <filch_access_mode Mode, class View> struct access_traits<csr_access<Mode, View>> {
    static constexpr bool is_access = true, is_block = false, is_items = false;
    static constexpr bool is_written = Mode != FILCH_READ;
};
template <class T> struct access_traits<scratch_access<T>> {
    static constexpr bool is_access = true, is_block = false, is_items = false;
    static constexpr bool is_written = true;
};

/* Accesses of one task, for the C interface. Used while the accesses given to add() live. */
class access_list
{
  public:
    static constexpr std::size_t most_blocks = 8;

    explicit access_list(const char *name) noexcept : name_(name)
    {
    }

    template <filch_access_mode Mode>
    void add(const tile_access<Mode> &access, std::uint64_t element, int parameter)
    {
        require(access.at.element, element, access.at.is_const && Mode != FILCH_READ, parameter);
        append(access.at.data, access.at.row, access.at.col, Mode, 0);
    }

    template <filch_access_mode Mode>
    void add(const item_access<Mode> &access, std::uint64_t element, int parameter)
    {
        require(access.element(), element, access.is_const() && Mode != FILCH_READ, parameter);
        if (!access.is_tile()) {
            fail(parameter, "a handle of several tiles, or a mapping of a batch: name a tile");
        }
        append(access.desc().data, 0, 0, Mode, 0);
    }

    template <filch_access_mode Mode>
    void add(const block_access<Mode> &access, std::uint64_t element, int parameter)
    {
        const tiles &at = access.at;
        require(at.element, element, at.is_const && Mode != FILCH_READ, parameter);
        require_inside(at, parameter);
        const std::uint32_t before = count_;
        for (std::uint32_t col = at.col0; col < at.col1; ++col) {
            for (std::uint32_t row = at.row0; row < at.row1; ++row) {
                append(at.data, row, col, Mode, 0);
            }
        }
        if (element != 0) { /* a block of a codelet is no parameter */
            sizes_[blocks_++] = static_cast<std::uint8_t>(count_ - before);
        }
    }

    template <filch_access_mode Mode>
    void add(const joined_access<Mode> &access, std::uint64_t element, int parameter)
    {
        const tiles &at = access.of.at;
        require(at.element, element, at.is_const && Mode != FILCH_READ, parameter);
        if (at.row0 >= at.row1 || at.col0 >= at.col1) {
            fail(parameter, "a block without tiles");
        }
        append(at.data, at.row0, at.col0, Mode, 0, at.row1 - at.row0, at.col1 - at.col0);
    }

    /* The access stays until the list has been used: the list points to the halo. */
    void add(const halo_access &access, std::uint64_t element, int parameter)
    {
        const tile &at = access.first;
        require(at.element, element, false, parameter);
        if (access.rows == 0 || access.cols == 0) {
            fail(parameter, "a block without tiles");
        }
        append(at.data, at.row, at.col, FILCH_READ, 0, access.rows, access.cols, &access.halo);
    }
    void add(const halo_access &&access, std::uint64_t element, int parameter) = delete;

    template <filch_access_mode Mode, class View>
    void add(const csr_access<Mode, View> &access, std::uint64_t, int parameter)
    {
        require(access.data ? 1 : 0, 0, false, parameter);
        append(access.data, access.at, 0, Mode, 0);
    }

    template <class T> void add(const scratch_access<T> &access, std::uint64_t, int)
    {
        append(nullptr, 0, 0, FILCH_SCRATCH, access.count * sizeof(T));
    }

    const filch_access *data() const noexcept
    {
        return list_;
    }

    std::uint32_t size() const noexcept
    {
        return count_;
    }

    /* Number of tiles of each block, for parameters of type views. */
    const std::uint8_t *sizes() const noexcept
    {
        return sizes_;
    }

    /* Throws where a handle does not fit a parameter. Accesses of a codelet have no parameter, and
     * element 0. Data moved from have found 0. */
    void require(std::uint64_t found, std::uint64_t element, bool is_denied, int parameter) const
    {
        if (found == 0) {
            throw error(FILCH_INVALID_HANDLE, "filch::access",
                        where(parameter) + "the data is moved from");
        }
        if (element != 0 && found != element) {
            fail(parameter, "the view has elements of " + std::to_string(element) +
                                " bytes, the handle of " + std::to_string(found));
        }
        if (is_denied) {
            fail(parameter, "the handle of const elements can only be read");
        }
    }

  private:
    static constexpr std::uint32_t limit = 255;

    std::string where(int parameter) const
    {
        return "'" + std::string(name_) + "', access " + std::to_string(parameter) + ": ";
    }

    [[noreturn]] void fail(int parameter, const std::string &what) const
    {
        refuse("filch::access", where(parameter) + what);
    }

    /* filch numbers the tiles of a block one by one: here the block still has the number of its
     * parameter. filch_graph_add() refuses a handle that is destroyed. */
    void require_inside(const tiles &at, int parameter) const
    {
        filch_tiling has = FILCH_TILING_INIT;
        if (filch_data_tiles(at.data, &has) != FILCH_OK) {
            return;
        }
        if (at.row0 > at.row1 || at.col0 > at.col1) {
            fail(parameter, span(at) + " run backwards");
        }
        if (at.row0 < at.row1 && at.col0 < at.col1 && (at.row1 > has.rows || at.col1 > has.cols)) {
            fail(parameter, span(at) + " are outside the " + std::to_string(has.rows) + " x " +
                                std::to_string(has.cols) + " tiles of the handle");
        }
    }

    static std::string span(const tiles &at)
    {
        return "tiles [" + std::to_string(at.row0) + ", " + std::to_string(at.row1) + ") x [" +
               std::to_string(at.col0) + ", " + std::to_string(at.col1) + ")";
    }

    void append(filch_data *data, std::uint32_t row, std::uint32_t col, filch_access_mode mode,
                std::uint64_t bytes, std::uint32_t rows = 0, std::uint32_t cols = 0,
                const filch_halo *halo = nullptr)
    {
        if (count_ == limit) {
            refuse("filch::access", "'" + std::string(name_) + "' has more than 255 accesses");
        }
        list_[count_++] = {data, row, col, mode, 0, bytes, rows, cols, halo};
    }

    const char *name_;
    std::uint32_t count_ = 0, blocks_ = 0;
    std::uint8_t sizes_[most_blocks] = {};
    filch_access list_[limit]; /* only the first count_ are set */
};

} // namespace detail

} // namespace filch

#endif
