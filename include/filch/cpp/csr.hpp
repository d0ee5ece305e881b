/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file csr.hpp
 * Sparse matrices in compressed rows: csr.h with types.
 *
 *     filch::csr A = runtime.csr(filch::csr_buffer(starts, columns, values, cols).blocks(24));
 *     graph.add("multiply",
 *               [](filch::csr_view<const double> a, filch::view<const double> x,
 *                  filch::view<double> y) {
 *                   for (std::uint64_t i = 0; i < a.rows; ++i) {
 *                       double sum = 0;
 *                       for (int k = a.pointers[i]; k < a.pointers[i + 1]; ++k)
 *                           sum += a.values[k] * x[a.columns[k]];
 *                       y[i] = sum;
 *                   }
 *               },
 *               filch::read(A.block(b)), filch::read(x.block()), filch::write(y.tile(b)));
 */
#ifndef FILCH_CPP_CSR_HPP
#define FILCH_CPP_CSR_HPP

#include "filch/cpp/data.hpp"

namespace filch
{

/**
 * Row block of a sparse matrix: parameter of an access to csr::block(). V is the type of the
 * values, const where the access reads; C of the columns; P of the pointers. Row i of the block has
 * the entries pointers[i] to pointers[i + 1], less the base of the matrix.
 */
template <class V, class C = std::int32_t, class P = C> struct csr_view {
    std::uint64_t rows;  /**< Rows of the block. */
    std::uint64_t cols;  /**< Columns of the matrix. */
    std::uint64_t nnz;   /**< Entries of the block. */
    std::uint64_t row;   /**< First row of the block within the matrix. */
    std::uint64_t entry; /**< Entries of the matrix before the block. */
    const P *pointers;   /**< rows + 1 integers; the first is the base of the matrix. */
    const C *columns;    /**< Columns of the entries, within the matrix, from its base. */
    V *values;           /**< Values of the entries. */

    /** @return a view of the block whose values cannot be written. */
    constexpr operator csr_view<const V, C, P>() const noexcept
    {
        return {rows, cols, nnz, row, entry, pointers, columns, values};
    }
};

/** Row block of a matrix, for filch::read() and its kin. Valid as long as the handle. */
template <class V, class C, class P> struct csr_block {
    filch_data *data; /**< The handle. */
    std::uint32_t at; /**< Number of the block. */
};

/**
 * Description of a sparse matrix to make, filch_csr_desc with a fluent interface. V, C and P are
 * the types of values, columns and pointers. runtime::csr() copies the arrays.
 *
 * The functions with options return a copy. Thread safety: const functions, from any thread.
 */
template <class V, class C, class P> class csr_buffer
{
    static_assert(std::is_trivially_copyable_v<V>, "filch copies values byte by byte");
    static_assert(std::is_integral_v<C> && (sizeof(C) == 4 || sizeof(C) == 8) &&
                      std::is_integral_v<P> && (sizeof(P) == 4 || sizeof(P) == 8),
                  "columns and pointers are integers of 4 or 8 bytes");

  public:
    /**
     * Describes arrays.
     *
     * @param pointers rows + 1 integers.
     * @param columns  columns of the entries.
     * @param values   values of the entries; null: zeros, for tasks to fill.
     * @param rows     rows.
     * @param cols     columns.
     * @param nnz      entries.
     */
    csr_buffer(const P *pointers, const C *columns, const V *values, std::uint64_t rows,
               std::uint64_t cols, std::uint64_t nnz)
    {
        desc_.rows = rows;
        desc_.cols = cols;
        desc_.nnz = nnz;
        desc_.pointers = pointers;
        desc_.columns = columns;
        desc_.values = values;
        desc_.element = sizeof(V);
        desc_.pointer_bytes = sizeof(P);
        desc_.column_bytes = sizeof(C);
    }

    /**
     * Describes the elements of vectors, whose sizes tell the numbers of rows and entries.
     *
     * @param pointers rows + 1 integers.
     * @param columns  columns of the entries.
     * @param values   values of the entries, as many.
     * @param cols     columns.
     * @throw error FILCH_INVALID_ARGUMENT: no pointers, or unlike numbers of columns and values.
     */
    csr_buffer(const std::vector<P> &pointers, const std::vector<C> &columns,
               const std::vector<V> &values, std::uint64_t cols)
        : csr_buffer(pointers.data(), columns.data(), values.data(), pointers.size() - 1, cols,
                     columns.size())
    {
        if (pointers.empty() || columns.size() != values.size()) {
            detail::refuse("filch::csr_buffer", std::to_string(pointers.size()) + " pointers, " +
                                                    std::to_string(columns.size()) + " columns, " +
                                                    std::to_string(values.size()) + " values");
        }
    }

    /** Cuts the matrix into blocks of equal heights. @param rows rows a block. @return a copy. */
    [[nodiscard]] csr_buffer tiles(std::uint64_t rows) const
    {
        csr_buffer made = *this;
        made.desc_.tile_rows = rows;
        return made;
    }

    /** Cuts the matrix into blocks. @param rows heights of the blocks. @return a copy. */
    [[nodiscard]] csr_buffer cuts(std::vector<std::uint64_t> rows) const
    {
        csr_buffer made = *this;
        made.cuts_ = std::move(rows);
        return made;
    }

    /** Cuts the matrix into so many blocks of about equal numbers of entries. @param count blocks.
     * @return a copy. */
    [[nodiscard]] csr_buffer blocks(std::uint32_t count) const
    {
        csr_buffer made = *this;
        made.desc_.blocks = count;
        return made;
    }

    /** Says what pointers and columns count from. @param from 0 or 1. @return a copy. */
    [[nodiscard]] csr_buffer base(std::uint32_t from) const
    {
        csr_buffer made = *this;
        made.desc_.base = from;
        return made;
    }

    /** Names the handle in errors. @param text the name; copied. @return a copy. */
    [[nodiscard]] csr_buffer label(const std::string &text) const
    {
        csr_buffer made = *this;
        made.label_ = text;
        return made;
    }

    /** Page-locks filch's copy (FILCH_DATA_PIN). @return a copy. */
    [[nodiscard]] csr_buffer pinned() const
    {
        csr_buffer made = *this;
        made.desc_.flags |= FILCH_DATA_PIN;
        return made;
    }

    /** @return the description for the C interface; points into *this. */
    filch_csr_desc desc() const noexcept
    {
        filch_csr_desc made = desc_;
        made.label = label_.empty() ? nullptr : label_.c_str();
        made.row_cuts = cuts_.empty() ? nullptr : cuts_.data();
        made.row_cut_count = static_cast<std::uint32_t>(cuts_.size());
        return made;
    }

  private:
    filch_csr_desc desc_ = FILCH_CSR_DESC_INIT;
    std::vector<std::uint64_t> cuts_;
    std::string label_;
};

namespace detail
{

/* View of a block in the host's memory. */
template <class View> View typed_csr(const filch_view &from) noexcept
{
    filch_csr_block found = FILCH_CSR_BLOCK_INIT;
    (void)filch_csr_view(nullptr, &from, &found); /* the handle was checked with the access */
    View made = {found.rows,  found.cols, found.nnz, found.row,
                 found.entry, nullptr,    nullptr,   nullptr};
    made.pointers = static_cast<decltype(made.pointers)>(found.pointers);
    made.columns = static_cast<decltype(made.columns)>(found.columns);
    made.values = static_cast<decltype(made.values)>(found.values);
    return made;
}

} // namespace detail

/**
 * Handle of a sparse matrix; owner, move-only, made by runtime::csr(). Lives as filch::data does.
 *
 * Thread safety: any thread may call the const functions concurrently.
 */
template <class V, class C, class P> class csr
{
  public:
    /** Moves the matrix. @param other is empty afterwards. */
    csr(csr &&other) noexcept = default;
    /** Gives the own handle up, and moves. @param other is empty afterwards. @return *this. */
    csr &operator=(csr &&other) noexcept = default;

    /** @return number of row blocks. */
    std::uint32_t blocks() const noexcept
    {
        return data_.tile_rows();
    }

    /**
     * Names a row block.
     *
     * @param at number of the block; the call that uses the block finds a number that is too large.
     * @return the block.
     */
    csr_block<V, C, P> block(std::uint32_t at) const noexcept
    {
        return {data_.handle(), at};
    }

    /**
     * Describes a row block; the arrays are null.
     *
     * @param at number of the block.
     * @return the description.
     * @throw error as filch_csr_at().
     */
    filch_csr_block info(std::uint32_t at) const
    {
        filch_csr_block found = FILCH_CSR_BLOCK_INIT;
        const char *call = "filch_csr_at";
        filch_runtime *runtime = data_.live(call);
        detail::check(runtime, filch_csr_at(data_.handle(), at, &found), call);
        return found;
    }

    /**
     * Names the elements of a vector that a product with a row block needs, as one view.
     *
     * @param at     number of the block.
     * @param vector a vector cut as the rows of the matrix.
     * @return the tiles from block_lo to block_hi - 1 of info(); none where the block has no
     *         entries: a task cannot name them.
     * @throw error as info().
     */
    filch::block columns_of(std::uint32_t at, const filch::data &vector) const
    {
        const filch_csr_block found = info(at);
        return vector.block(found.block_lo, found.block_hi);
    }

    /** @return rows of each block, for buffer::cuts(). @throw error as info(); std::bad_alloc. */
    std::vector<std::uint64_t> heights() const
    {
        std::vector<std::uint64_t> made(blocks());
        for (std::uint32_t at = 0; at < blocks(); ++at) {
            made[at] = info(at).rows;
        }
        return made;
    }

    /**
     * Acquires every block for the host, behind the jobs submitted so far.
     *
     * @param mode    FILCH_READ, FILCH_WRITE (of every value) or FILCH_READWRITE.
     * @param seconds time limit; negative: no limit.
     * @return the hold; view() tells the blocks.
     * @throw error as filch_data_acquire_tiles().
     */
    [[nodiscard]] hold acquire(filch_access_mode mode, double seconds = -1) const
    {
        return data_.acquire(mode, seconds);
    }

    /**
     * View of an acquired block. T is const V, or V where the hold writes.
     *
     * @param of the hold of *this.
     * @param at number of the block.
     * @return the view, valid until the release.
     * @throw error as hold::view() and filch_csr_view(): the hold is another handle's.
     */
    template <class T = const V> csr_view<T, C, P> view(const hold &of, std::uint32_t at) const
    {
        static_assert(std::is_same_v<std::remove_const_t<T>, V>, "the values have another type");
        using byte = std::conditional_t<std::is_const_v<T>, const unsigned char, unsigned char>;
        const filch::view<byte> found = of.view<byte>(at);
        const filch_view from = {const_cast<unsigned char *>(found.ptr),
                                 found.rows,
                                 found.cols,
                                 found.ld,
                                 found.row,
                                 found.col,
                                 1};
        filch_csr_block block = FILCH_CSR_BLOCK_INIT;
        const char *call = "filch_csr_view";
        filch_runtime *runtime = data_.live(call);
        detail::check(runtime, filch_csr_view(data_.handle(), &from, &block), call);
        return detail::typed_csr<csr_view<T, C, P>>(from);
    }

    /** @return handle for calls of the C interface; stays the owner's. */
    filch_data *handle() const noexcept
    {
        return data_.handle();
    }

  private:
    friend class runtime;
    explicit csr(data &&from) noexcept : data_(std::move(from))
    {
    }

    data data_;
};

} // namespace filch

#endif
