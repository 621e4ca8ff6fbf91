/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_HEDDLE_HPP
#define HEDDLE_HEDDLE_HPP

/*
 * heddle/heddle.hpp - Heddle for C++17: lambdas as tasks, on top of the C headers.
 *
 *     heddle::context ctx;
 *     std::vector<double> v{1, 2, 3, 4};
 *     auto x = ctx.array(v);
 *     double a = 10;
 *     ctx.submit("scale", [a](heddle::span<double> s) { for (double &e : s) e *= a; },
 *                heddle::update(x));
 *     ctx.wait();
 *
 * Objects   context, array, matrix and event hold one reference of the C object and
 *           drop it; get() lends that object, so both styles mix. Arrays, matrices and
 *           events are copied by one more reference; contexts are moved only.
 * Errors    calls that fail throw heddle::error with the status and the sentence of the
 *           context. An exception that leaves a task does not leave the runtime: the
 *           task fails with HEDDLE_ETASK (HEDDLE_ENOMEM for std::bad_alloc, its status
 *           for heddle::error) and what() as its sentence; wait() then throws.
 * Tasks     a lambda gets one argument per operand: heddle::span for an array,
 *           heddle::block for a matrix, of const elements when the operand is read. A
 *           first parameter `heddle::task &` is optional: the way to children. The
 *           lambda is copied. Its type is the kernel and the first name given with
 *           that type names the kernel: one lambda expression, one kernel.
 *           A trivially copyable lambda of at most 16 bytes takes the fast path.
 * Memory    arrays and matrices follow the rules of heddle/data.h: memory that the
 *           program gave is the program's again after wait().
 */
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "heddle/cpp/task.hpp"

namespace heddle
{

namespace detail
{

template <class F> struct loop {
    F &fn;
    std::exception_ptr first; /* that left fn */
    std::atomic_flag has_first;
};

template <class Loop> heddle_status loop_body(void *arg, std::size_t begin, std::size_t end)
{
    Loop &l = *static_cast<Loop *>(arg);

    try {
        for (std::size_t i = begin; i < end; i++)
            l.fn(i);
    } catch (...) {
        if (!l.has_first.test_and_set())
            l.first = std::current_exception();
        return HEDDLE_ETASK;
    }
    return HEDDLE_OK;
}

} // namespace detail

/* A runtime instance; the destructor waits for all tasks and swallows failures. */
class context
{
  public:
    context() : context(default_options()) {}
    explicit context(const heddle_ctx_opts &o)
    {
        check(heddle_ctx_create(&o, &ctx_));
    }
    context(context &&o) noexcept : ctx_(std::exchange(o.ctx_, nullptr)) {}
    context &operator=(context &&o) noexcept
    {
        std::swap(ctx_, o.ctx_);
        return *this;
    }
    context(const context &) = delete;
    context &operator=(const context &) = delete;
    ~context()
    {
        heddle_ctx_destroy(ctx_);
    }

    /* Options with `size` set and everything else as by default. */
    static heddle_ctx_opts default_options()
    {
        heddle_ctx_opts o = {};

        o.size = sizeof(o);
        return o;
    }

    template <class T> heddle::array<T> array(std::vector<T> &v)
    {
        return heddle::array<T>(ctx_, v.data(), v.size());
    }
    template <class T> heddle::array<T> array(T *p, std::size_t n)
    {
        return heddle::array<T>(ctx_, p, n);
    }
    /* Memory of the runtime, zeroed. */
    template <class T> heddle::array<T> zeros(std::size_t n)
    {
        return heddle::array<T>(ctx_, nullptr, n);
    }
    template <class T>
    heddle::matrix<T> matrix(T *p, std::size_t m, std::size_t n, std::size_t ld = 0)
    {
        return heddle::matrix<T>(ctx_, p, m, n, ld);
    }

    template <class F, class... Ops> void submit(const char *name, F &&fn, const Ops &...ops)
    {
        submit_with(wishes(), nullptr, name, std::forward<F>(fn), ops...);
    }
    template <class F, class... Ops>
    void submit(const wishes &w, const char *name, F &&fn, const Ops &...ops)
    {
        submit_with(w, nullptr, name, std::forward<F>(fn), ops...);
    }
    /* The same, with an event that completes with the task. */
    template <class F, class... Ops> event async(const char *name, F &&fn, const Ops &...ops)
    {
        event e;

        submit_with(wishes(), &e, name, std::forward<F>(fn), ops...);
        return e;
    }

    /* Runs tasks until all have ended; throws the first failure since the last wait. */
    void wait()
    {
        check(heddle_wait(ctx_), ctx_);
    }

    /* fn(i) for all i of [begin, end), on all workers; returns when all are done. Throws
     * the first exception that left fn, as it is. `grain`: see heddle/loop.h. */
    template <class F>
    void parallel_for(std::size_t begin, std::size_t end, F &&fn, std::size_t grain = 0)
    {
        detail::loop<std::remove_reference_t<F>> l{fn, {}, ATOMIC_FLAG_INIT};
        const heddle_status st =
            heddle_parallel_for(ctx_, begin, end, grain, detail::loop_body<decltype(l)>, &l);

        if (l.first)
            std::rethrow_exception(l.first);
        check(st, ctx_);
    }

    /*
     * Items flow through stages: source(item) fills one and returns false at the end
     * of the input; every stage then gets the item in turn. At most `nitems` are on
     * their way. The source runs in the calling thread; the stages run as tasks, the
     * items of one stage one after another in the order of the source.
     */
    template <class T, class Source, class... Stages>
    void pipeline(std::size_t nitems, Source &&source, Stages &&...stages)
    {
        static_assert(sizeof...(Stages) > 0, "a pipeline has at least one stage");
        const std::size_t most = nitems == 0 ? 1 : nitems;
        const std::unique_ptr<T[]> item(new T[most]()); /* no vector: T may be bool */
        std::vector<heddle::array<std::uint8_t>> slot;
        heddle::array<std::uint8_t> turn[sizeof...(Stages)];
        std::uint8_t bytes = 0;

        for (std::size_t i = 0; i < most; i++)
            slot.push_back(token(reinterpret_cast<std::uint8_t *>(std::addressof(item[i]))));
        for (auto &t : turn)
            t = token(&bytes);
        try {
            for (std::size_t n = 0;; n++) {
                T &t = item[n % most];
                const auto &s = slot[n % most];
                std::size_t k = 0;

                check(heddle_handle_acquire(s.get(), HEDDLE_RW, nullptr), ctx_);
                bool more;
                try {
                    more = source(t);
                } catch (...) {
                    heddle_handle_release(s.get());
                    throw;
                }
                heddle_handle_release(s.get());
                if (!more)
                    break;
                (submit("stage", stage_call(t, stages), update(s), update(turn[k++])), ...);
            }
        } catch (...) {
            (void)!heddle_wait(ctx_); /* stages use items, which are about to go */
            throw;
        }
        wait();
    }

    heddle_ctx *get() const noexcept
    {
        return ctx_;
    }

  private:
    /* A name for an order of tasks; its byte is never touched. */
    heddle::array<std::uint8_t> token(std::uint8_t *p)
    {
        return {ctx_, p, 1};
    }
    template <class T, class S> static auto stage_call(T &t, S &s)
    {
        return [&t, &s](span<std::uint8_t>, span<std::uint8_t>) { s(t); };
    }
    template <class F, class... Ops>
    void submit_with(const wishes &w, event *out, const char *name, F &&fn, const Ops &...ops)
    {
        check(detail::submit([this](const heddle_kernel *k,
                                    const heddle_call *c) { return heddle_submit(ctx_, k, c); },
                             w, out, name, std::forward<F>(fn), ops...),
              ctx_);
    }

    heddle_ctx *ctx_ = nullptr;
};

} // namespace heddle

#endif /* HEDDLE_HEDDLE_HPP */
