/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_CPP_TASK_HPP
#define HEDDLE_CPP_TASK_HPP

/* heddle/cpp/task.hpp - operands, lambdas as tasks, events; include heddle/heddle.hpp. */
#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "heddle/cpp/data.hpp"

namespace heddle
{

/* --- operands -------------------------------------------------------------- */

/* Data and how a task touches them; Elem is const where they are only read. */
template <class Data, heddle_mode Mode, class Elem> struct operand {
    using data_type = Data;
    using elem_type = Elem;
    static constexpr heddle_mode mode = Mode;
    heddle_handle *handle;
};
template <class D> operand<D, HEDDLE_R, const typename D::value_type> read(const D &d)
{
    return {d.get()};
}
template <class D> operand<D, HEDDLE_W, typename D::value_type> write(const D &d)
{
    return {d.get()};
}
template <class D> operand<D, HEDDLE_RW, typename D::value_type> update(const D &d)
{
    return {d.get()};
}
template <class D> operand<D, HEDDLE_COMMUTE, typename D::value_type> commute(const D &d)
{
    return {d.get()};
}
/* The handle has a reduction (sum_into(), heddle_handle_set_reduction()). */
template <class D> operand<D, HEDDLE_REDUCE, typename D::value_type> reduce(const D &d)
{
    return {d.get()};
}
template <class D> operand<D, HEDDLE_SCRATCH, typename D::value_type> scratch(const D &d)
{
    return {d.get()};
}
template <class D> const D &sum_into(const D &d)
{
    check(heddle_handle_set_sum(d.get()));
    return d;
}

/* How a task ended, or will. */
class event
{
  public:
    event() noexcept = default;
    explicit event(heddle_event *e) noexcept : e_(e) {}
    event(const event &o) noexcept : e_(o.e_ == nullptr ? nullptr : heddle_event_ref(o.e_)) {}
    event(event &&o) noexcept : e_(std::exchange(o.e_, nullptr)) {}
    event &operator=(event o) noexcept
    {
        std::swap(e_, o.e_);
        return *this;
    }
    ~event()
    {
        heddle_event_unref(e_);
    }
    bool done() const
    {
        return heddle_event_poll(e_) != HEDDLE_AGAIN;
    }
    /* Runs tasks until the task has ended; throws if that failed. */
    void wait() const
    {
        check(heddle_event_wait(e_, 0));
    }
    heddle_event *get() const noexcept
    {
        return e_;
    }

  private:
    heddle_event *e_ = nullptr;
};

class task;

/* Rarely needed wishes; see struct heddle_task_opts. */
struct wishes {
    int priority = 0;
    unsigned retries = 0;
    const heddle_group *group = nullptr;
};

namespace detail
{

inline heddle_status fail(heddle_exec *x) noexcept
{
    try {
        throw;
    } catch (const error &e) {
        /* A status that is no failure would let a task that was left end well. */
        return heddle_exec_fail(x, e.status() == HEDDLE_OK ? HEDDLE_ETASK : e.status(), e.what());
    } catch (const std::bad_alloc &) {
        return heddle_exec_fail(x, HEDDLE_ENOMEM, "std::bad_alloc left the task");
    } catch (const std::exception &e) {
        return heddle_exec_fail(x, HEDDLE_ETASK, e.what());
    } catch (...) {
        return heddle_exec_fail(x, HEDDLE_ETASK, "an exception of no known type left the task");
    }
}

/* What a task sees of an operand: a span or a block. */
template <class Op>
using bound = decltype(Op::data_type::template bind<typename Op::elem_type>(nullptr, 0));

/* Arguments are copied as bytes and aligned to 8. Any other lambda travels as a pointer;
 * done(), which the runtime calls once however the task ends, deletes the lambda. */
template <class F>
constexpr bool is_plain = std::is_trivially_copyable<F>::value && alignof(F) <= 8;

template <class F, class... Ops> struct kernel {
    static F &body(heddle_exec *x)
    {
        const void *arg = heddle_exec_arg(x);

        if constexpr (is_plain<F>)
            return *const_cast<F *>(static_cast<const F *>(arg));
        else
            return **static_cast<F *const *>(arg);
    }
    template <std::size_t... I> static void call(heddle_exec *x, std::index_sequence<I...>);
    static heddle_status run(heddle_exec *x)
    {
        try {
            call(x, std::index_sequence_for<Ops...>());
        } catch (...) {
            return fail(x);
        }
        return HEDDLE_OK;
    }
    static const heddle_kernel *get(const char *name)
    {
        static const heddle_kernel k = make(name);

        return &k;
    }
    static heddle_kernel make(const char *name)
    {
        static const std::string kept(name); /* kernels outlive every context */
        heddle_kernel k = {};
        unsigned i = 0;

        k.size = sizeof(k);
        k.name = kept.c_str();
        k.noperands = sizeof...(Ops);
        ((k.mode[i++] = Ops::mode), ...);
        (void)i;
        k.variants[0].device = HEDDLE_DEV_CPU;
        k.variants[0].run = run;
        return k;
    }
    static void destroy(void *user, heddle_status)
    {
        delete static_cast<F *>(user);
    }
};

/* Builds the call and hands it to `submit`: of a context or of a running task. */
template <class Submit, class F, class... Ops>
heddle_status submit(Submit &&to, const wishes &w, event *out, const char *name, F &&fn,
                     const Ops &...ops)
{
    using body = std::decay_t<F>;
    using kern = kernel<body, Ops...>;
    static_assert(sizeof...(Ops) <= HEDDLE_CALL_OPERANDS, "a lambda has at most six operands");
    heddle_call c = {};
    heddle_task_opts o = {};
    const heddle_kernel *k = kern::get(name); /* may throw: nothing is held yet */
    heddle_event *e = nullptr;
    unsigned i = 0;
    heddle_status st;

    ((c.operand[i++] = ops.handle), ...);
    (void)i;
    c.priority = w.priority;
    o.size = sizeof(o);
    o.retries = w.retries;
    o.group = const_cast<heddle_group *>(w.group);
    o.event_out = out == nullptr ? nullptr : &e;
    if (out != nullptr || w.retries != 0 || w.group != nullptr)
        c.opts = &o;
    if constexpr (is_plain<body>) {
        body copy(std::forward<F>(fn)); /* of a function too: its address */

        c.arg = std::addressof(copy);
        c.arg_bytes = sizeof(body);
        st = to(k, &c);
    } else {
        std::unique_ptr<body> heap(new body(std::forward<F>(fn)));
        body *const lent = heap.get();

        c.arg = &lent;
        c.arg_bytes = sizeof(lent);
        o.done = kern::destroy;
        o.done_user = lent;
        c.opts = &o;
        st = to(k, &c);
        if (st == HEDDLE_OK)
            (void)heap.release(); /* done() deletes it, and may have done so */
    }
    if (st == HEDDLE_OK && out != nullptr)
        *out = event(e);
    return st;
}

} // namespace detail

/* The running task: the way to children, which end before the task does. */
class task
{
  public:
    explicit task(heddle_exec *x) noexcept : x_(x) {}
    template <class F, class... Ops> void submit(const char *name, F &&fn, const Ops &...ops)
    {
        check(detail::submit([this](const heddle_kernel *k,
                                    const heddle_call *c) { return heddle_exec_submit(x_, k, c); },
                             wishes(), nullptr, name, std::forward<F>(fn), ops...),
              heddle_exec_ctx(x_));
    }
    /* Runs tasks until all children so far have ended. */
    void wait()
    {
        check(heddle_exec_wait(x_));
    }
    bool is_cancelled() const
    {
        return heddle_exec_is_cancelled(x_) != 0;
    }
    unsigned worker() const
    {
        return heddle_exec_worker(x_);
    }
    heddle_exec *get() const noexcept
    {
        return x_;
    }

  private:
    heddle_exec *x_;
};

template <class F, class... Ops>
template <std::size_t... I>
void detail::kernel<F, Ops...>::call(heddle_exec *x, std::index_sequence<I...>)
{
    task self(x);
    F &f = body(x);

    if constexpr (std::is_invocable<F &, task &, bound<Ops>...>::value)
        f(self, Ops::data_type::template bind<typename Ops::elem_type>(x, I)...);
    else
        f(Ops::data_type::template bind<typename Ops::elem_type>(x, I)...);
}

} // namespace heddle

#endif /* HEDDLE_CPP_TASK_HPP */
