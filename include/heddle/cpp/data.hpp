/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CPP_DATA_HPP
#define HEDDLE_CPP_DATA_HPP

/* heddle/cpp/data.hpp - errors, arrays and matrices in C++; include heddle/heddle.hpp. */
#include <complex>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "heddle/heddle.h"

namespace heddle
{

/* A status that is not HEDDLE_OK. */
class error : public std::runtime_error
{
  public:
    error(heddle_status st, const std::string &what) : std::runtime_error(what), status_(st) {}
    heddle_status status() const noexcept
    {
        return status_;
    }

  private:
    heddle_status status_;
};

/* Throws unless st is HEDDLE_OK; the sentence is that of the context, where there is one. */
inline void check(heddle_status st, heddle_ctx *ctx = nullptr)
{
    if (st == HEDDLE_OK)
        return;
    heddle_error e = {};
    e.size = sizeof(e);
    if (ctx != nullptr && heddle_ctx_error(ctx, &e) == HEDDLE_OK && e.status == st &&
        e.message[0] != '\0')
        throw error(st, e.message);
    throw error(st, heddle_status_text(st));
}

/* --- what tasks see ------------------------------------------------------- */

/* Elements in a row. */
template <class T> class span
{
  public:
    span(T *p, std::size_t n) noexcept : p_(p), n_(n) {}
    T *data() const noexcept
    {
        return p_;
    }
    std::size_t size() const noexcept
    {
        return n_;
    }
    T *begin() const noexcept
    {
        return p_;
    }
    T *end() const noexcept
    {
        return p_ + n_;
    }
    T &operator[](std::size_t i) const noexcept
    {
        return p_[i];
    }

  private:
    T *p_;
    std::size_t n_;
};

/* A part of a matrix: column-major, columns ld() elements apart. */
template <class T> class block
{
  public:
    block(T *p, std::size_t m, std::size_t n, std::size_t ld) noexcept
        : p_(p), m_(m), n_(n), ld_(ld)
    {
    }
    T *data() const noexcept
    {
        return p_;
    }
    std::size_t rows() const noexcept
    {
        return m_;
    }
    std::size_t cols() const noexcept
    {
        return n_;
    }
    std::size_t ld() const noexcept
    {
        return ld_;
    }
    T &operator()(std::size_t i, std::size_t j) const noexcept
    {
        return p_[i + j * ld_];
    }

  private:
    T *p_;
    std::size_t m_, n_, ld_;
};

/* --- data ----------------------------------------------------------------- */

namespace detail
{

/* The type of an element; other types are handled as bytes. */
template <class T> struct dtype {
    static constexpr heddle_dtype value = HEDDLE_U8;
    static constexpr std::size_t count = sizeof(T);
};
#define HEDDLE_HPP_DTYPE(type, name)                                                               \
    template <> struct dtype<type> {                                                               \
        static constexpr heddle_dtype value = name;                                                \
        static constexpr std::size_t count = 1;                                                    \
    }
HEDDLE_HPP_DTYPE(std::uint8_t, HEDDLE_U8);
HEDDLE_HPP_DTYPE(std::int32_t, HEDDLE_I32);
HEDDLE_HPP_DTYPE(std::int64_t, HEDDLE_I64);
HEDDLE_HPP_DTYPE(float, HEDDLE_F32);
HEDDLE_HPP_DTYPE(double, HEDDLE_F64);
HEDDLE_HPP_DTYPE(std::complex<float>, HEDDLE_C64);
HEDDLE_HPP_DTYPE(std::complex<double>, HEDDLE_C128);
#undef HEDDLE_HPP_DTYPE

/* A reference of a handle. */
class handle
{
  public:
    handle() noexcept = default;
    explicit handle(heddle_handle *h) noexcept : h_(h) {}
    handle(const handle &o) noexcept : h_(o.h_ == nullptr ? nullptr : heddle_handle_ref(o.h_)) {}
    handle(handle &&o) noexcept : h_(std::exchange(o.h_, nullptr)) {}
    handle &operator=(handle o) noexcept
    {
        std::swap(h_, o.h_);
        return *this;
    }
    ~handle()
    {
        heddle_handle_unref(h_);
    }
    heddle_handle *get() const noexcept
    {
        return h_;
    }

  private:
    heddle_handle *h_ = nullptr;
};

} // namespace detail

/* n elements of type T; T is trivially copyable. */
template <class T> class array
{
    static_assert(std::is_trivially_copyable<T>::value,
                  "data are copied between memories as bytes");

  public:
    using value_type = T;
    array() noexcept = default;
    /* The program's memory, or, with nullptr, zeroed memory of the runtime. */
    array(heddle_ctx *ctx, T *p, std::size_t n)
    {
        heddle_handle *h = nullptr;

        check(
            heddle_handle_vector(ctx, p, n * detail::dtype<T>::count, detail::dtype<T>::value, &h),
            ctx);
        h_ = detail::handle(h);
    }
    std::size_t size() const noexcept
    {
        return heddle_handle_get_bytes(h_.get()) / sizeof(T);
    }
    /* Elements first .. first + n - 1, ordered with all others that share one. */
    array slice(std::size_t first, std::size_t n) const
    {
        const std::size_t offset = first * detail::dtype<T>::count;
        const std::size_t extent = n * detail::dtype<T>::count;
        heddle_handle *v = nullptr;
        array out;

        check(heddle_view_box(h_.get(), &offset, &extent, nullptr, &v));
        out.h_ = detail::handle(v);
        return out;
    }
    heddle_handle *get() const noexcept
    {
        return h_.get();
    }
    template <class E> static span<E> bind(heddle_exec *x, unsigned i)
    {
        return {static_cast<E *>(heddle_exec_ptr(x, i)),
                heddle_exec_count(x, i) / detail::dtype<T>::count};
    }

  private:
    detail::handle h_;
};

/* m x n elements of one of Heddle's types, column-major. */
template <class T> class matrix
{
    static_assert(detail::dtype<T>::count == 1, "an element type of enum heddle_dtype");

  public:
    using value_type = T;
    matrix() noexcept = default;
    matrix(heddle_ctx *ctx, T *p, std::size_t m, std::size_t n, std::size_t ld = 0)
    {
        heddle_handle *h = nullptr;

        check(heddle_handle_matrix(ctx, p, m, n, ld, detail::dtype<T>::value, &h), ctx);
        h_ = detail::handle(h);
    }
    /* Tile (i, j) of the matrix cut into mb x nb tiles. */
    matrix tile(std::size_t i, std::size_t j, std::size_t mb, std::size_t nb) const
    {
        heddle_handle *v = nullptr;
        matrix out;

        check(heddle_view_tile(h_.get(), i, j, mb, nb, &v));
        out.h_ = detail::handle(v);
        return out;
    }
    heddle_handle *get() const noexcept
    {
        return h_.get();
    }
    template <class E> static block<E> bind(heddle_exec *x, unsigned i)
    {
        const heddle_layout *l = heddle_exec_layout(x, i);

        return {static_cast<E *>(heddle_exec_ptr(x, i)), l->extent[0], l->extent[1], l->stride[1]};
    }

  private:
    detail::handle h_;
};

} // namespace heddle

#endif /* HEDDLE_CPP_DATA_HPP */
