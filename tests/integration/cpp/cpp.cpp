// SPDX-License-Identifier: BSD-3-Clause
// heddle.hpp: operands and constness, lambdas of any size, exceptions, lifetimes.
#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "heddle/heddle.hpp"
#include "test.h"

static heddle::context two_workers()
{
    heddle_ctx_opts o = heddle::context::default_options();

    o.nworkers = 2;
    o.devices = "none";
    return heddle::context(o);
}

TEST(operands)
{
    heddle::context ctx = two_workers();
    std::vector<double> a{1, 2, 3, 4}, b(4);
    auto x = ctx.array(a), y = ctx.array(b);

    ctx.submit(
        "copy",
        [](auto from, auto to) {
            static_assert(std::is_const<std::remove_reference_t<decltype(from[0])>>::value, "");
            static_assert(!std::is_const<std::remove_reference_t<decltype(to[0])>>::value, "");
            for (std::size_t i = 0; i < to.size(); i++)
                to[i] = 2 * from[i];
        },
        heddle::read(x), heddle::write(y));
    auto half = y.slice(2, 2);
    CHECK_EQ(half.size(), 2);
    ctx.submit(
        "half", [](heddle::span<double> s) { s[0] = s[1] = -1; }, heddle::update(half));
    ctx.wait();
    CHECK(b == (std::vector<double>{2, 4, -1, -1}));
}

TEST(matrices)
{
    heddle::context ctx = two_workers();
    std::vector<float> a(6 * 5, 0.0f);
    auto m = ctx.matrix(a.data(), 5, 5, 6);

    for (std::size_t i = 0; i < 3; i++)
        for (std::size_t j = 0; j < 3; j++)
            ctx.submit(
                "tile",
                [i, j](heddle::block<float> t) {
                    CHECK_EQ(t.ld(), 6);
                    CHECK_EQ(t.rows(), i == 2 ? 1 : 2);
                    for (std::size_t c = 0; c < t.cols(); c++)
                        for (std::size_t r = 0; r < t.rows(); r++)
                            t(r, c) += float(10 * i + j);
                },
                heddle::update(m.tile(i, j, 2, 2)));
    ctx.wait();
    CHECK(a[0] == 0 && a[4 + 4 * 6] == 22 && a[3 + 1 * 6] == 10 && a[5] == 0);
}

// Structs of the program are data too, as bytes.
struct body {
    double at[3];
    int id;
};

TEST(structs)
{
    heddle::context ctx = two_workers();
    auto d = ctx.zeros<body>(7);

    CHECK_EQ(d.size(), 7);
    ctx.submit(
        "number",
        [](heddle::span<body> s) {
            CHECK_EQ(s.size(), 7);
            for (std::size_t i = 0; i < s.size(); i++)
                s[i].id = int(i);
        },
        heddle::write(d));
    ctx.submit(
        "look", [](heddle::span<const body> s) { CHECK_EQ(s[6].id, 6); },
        heddle::read(d.slice(0, 7)));
    ctx.wait();
}

TEST(reductions)
{
    heddle::context ctx = two_workers();
    std::vector<double> sum(1), v(64, 1.5);
    auto s = ctx.array(sum), x = ctx.array(v);

    heddle::sum_into(s);
    for (int i = 0; i < 16; i++)
        ctx.submit(
            "add",
            [](auto part, auto out) {
                for (double e : part)
                    out[0] += e;
            },
            heddle::read(x.slice(std::size_t(4 * i), 4)), heddle::reduce(s));
    ctx.wait();
    CHECK_NEAR(sum[0], 96, 1e-12);
}

// What a lambda holds is freed once: after it ran, was cancelled or was refused.
TEST(captures)
{
    std::shared_ptr<int> held = std::make_shared<int>(7);
    std::atomic<int> seen{0};
    std::array<char, 100> large{};

    large[99] = 3;
    {
        heddle::context ctx = two_workers();
        std::vector<double> v(4);
        auto x = ctx.array(v);

        ctx.submit("holds", [held, &seen] { seen += *held; });
        ctx.submit("large", [large, &seen] { seen += large[99]; });
        ctx.wait();
        CHECK_EQ(seen.load(), 10);
        ctx.submit(
            "fails", [](auto) { throw std::runtime_error("x"); }, heddle::update(x));
        ctx.submit(
            "cancelled", [held, &seen](auto) { seen += 100; }, heddle::update(x));
        try {
            ctx.wait();
            CHECK(false);
        } catch (const heddle::error &e) {
            CHECK_STATUS(e.status(), HEDDLE_ETASK);
        }
        heddle::array<double> none;
        try {
            ctx.submit(
                "refused", [held](auto) {}, heddle::update(none));
            CHECK(false);
        } catch (const heddle::error &e) {
            CHECK_STATUS(e.status(), HEDDLE_EINVAL);
        }
    }
    CHECK_EQ(seen.load(), 10);
    CHECK_EQ(held.use_count(), 1);
}

TEST(exceptions)
{
    heddle::context ctx = two_workers();
    const struct {
        int kind;
        heddle_status st;
        const char *text;
    } expect[] = {{0, HEDDLE_ETASK, "broken"},
                  {1, HEDDLE_ENOMEM, "bad_alloc"},
                  {2, HEDDLE_EIO, "disk"},
                  {3, HEDDLE_ETASK, "no known type"}};

    for (const auto &e : expect) {
        ctx.submit("thrower", [kind = e.kind] {
            if (kind == 0)
                throw std::logic_error("broken");
            if (kind == 1)
                throw std::bad_alloc();
            if (kind == 2)
                throw heddle::error(HEDDLE_EIO, "disk");
            throw 42;
        });
        try {
            ctx.wait();
            CHECK(false);
        } catch (const heddle::error &got) {
            CHECK_STATUS(got.status(), e.st);
            CHECK(std::string(got.what()).find(e.text) != std::string::npos);
            CHECK(std::string(got.what()).find("thrower") != std::string::npos);
        }
    }
    ctx.submit("fine", [] {});
    ctx.wait();
}

static std::atomic<int> plain_calls{0};

static void plain_function(heddle::span<int> s)
{
    plain_calls++;
    s[0] = 5;
}

struct counted { // copies and moves are seen, and what is moved from is not used
    static std::atomic<int> live;
    int value = 1;
    counted()
    {
        live++;
    }
    counted(const counted &o) : value(o.value)
    {
        live++;
    }
    counted(counted &&o) noexcept : value(std::exchange(o.value, -1))
    {
        live++;
    }
    counted &operator=(const counted &) = delete;
    ~counted()
    {
        live--;
    }
};
std::atomic<int> counted::live{0};

// Functions and pointers to them, captures that only move, captures that count.
TEST(callables)
{
    std::atomic<int> sum{0};
    {
        heddle::context ctx = two_workers();
        std::vector<int> v(4);
        auto x = ctx.array(v);
        auto owned = std::make_unique<int>(30);
        counted c;

        ctx.submit("function", plain_function, heddle::update(x));
        ctx.submit("pointer", &plain_function, heddle::update(x));
        ctx.submit("moves", [p = std::move(owned), &sum] { sum += *p; });
        ctx.submit("counts", [c, &sum] { sum += c.value; });
        auto named = [q = std::make_unique<int>(4), &sum] { sum += *q; };
        ctx.submit("named", std::move(named));
        ctx.wait();
        CHECK_EQ(v[0], 5);
        CHECK_EQ(plain_calls.load(), 2);
        CHECK(owned == nullptr);
        for (int i = 0; i < 100; i++)
            ctx.submit("counts", [c, &sum] { sum += c.value; });
        // The destructor waits: no lambda outlives the context.
    }
    CHECK_EQ(sum.load(), 30 + 1 + 4 + 100);
    CHECK_EQ(counted::live.load(), 0);
}

// A status that is no failure is a failure all the same: the task was left.
TEST(odd_exceptions)
{
    heddle::context ctx = two_workers();
    bool has_thrown = false;

    ctx.submit("left", [] { throw heddle::error(HEDDLE_OK, "nothing wrong"); });
    try {
        ctx.wait();
    } catch (const heddle::error &e) {
        has_thrown = true;
        CHECK_STATUS(e.status(), HEDDLE_ETASK);
    }
    CHECK(has_thrown);
    ctx.parallel_for(5, 5, [](std::size_t) { CHECK(false); });
    for (int round = 0; round < 20; round++) {
        std::atomic<int> ncalls{0};

        try {
            ctx.parallel_for(
                0, 1000,
                [&](std::size_t i) {
                    ncalls++;
                    if (i % 3 == 0)
                        throw std::out_of_range("all over the place");
                },
                1);
            CHECK(false);
        } catch (const std::out_of_range &) {
        }
        CHECK(ncalls.load() > 0 && ncalls.load() <= 1000);
    }
    ctx.wait(); // the failure of a loop is told once
}

// Items of a type of which a vector has no references; one item at a time.
TEST(pipeline_items)
{
    heddle::context ctx = two_workers();
    int n = 0, ntrue = 0;

    ctx.pipeline<bool>(
        0,
        [&](bool &b) {
            b = n % 2 == 0;
            return n++ < 9;
        },
        [&](bool &b) { ntrue += b; });
    CHECK_EQ(ntrue, 5);
}

TEST(children)
{
    heddle::context ctx = two_workers();
    std::vector<std::int64_t> v(256, 1);
    auto x = ctx.array(v);

    ctx.submit(
        "parent",
        [x](heddle::task &t, heddle::span<std::int64_t> s) {
            for (std::size_t i = 0; i < 8; i++)
                t.submit(
                    "child",
                    [](heddle::span<std::int64_t> part) {
                        for (auto &e : part)
                            e *= 3;
                    },
                    heddle::update(x.slice(32 * i, 32)));
            t.wait();
            CHECK_EQ(s[255], 3);
        },
        heddle::update(x));
    heddle::event e = ctx.async(
        "after", [](auto s) { CHECK_EQ(s[0], 3); }, heddle::read(x));
    e.wait();
    CHECK(e.done());
    ctx.wait();
}

TEST(loops)
{
    heddle::context ctx = two_workers();
    std::vector<std::atomic<int>> hit(1237);

    for (std::size_t grain : {0, 1, 5, 4000}) {
        ctx.parallel_for(
            37, hit.size(), [&](std::size_t i) { hit[i]++; }, grain);
        ctx.parallel_for(5, 5, [&](std::size_t) { CHECK(false); });
    }
    for (std::size_t i = 0; i < hit.size(); i++)
        CHECK_EQ(hit[i].load(), i < 37 ? 0 : 4);
    try {
        ctx.parallel_for(0, 100, [](std::size_t i) {
            if (i == 50)
                throw std::runtime_error("fifty");
        });
        CHECK(false);
    } catch (const std::runtime_error &e) {
        CHECK_STR(e.what(), "fifty"); // the very exception
    }
    ctx.wait();
}

// Random numbers of items and slots: every item passes every stage once, in order.
TEST(pipelines)
{
    std::mt19937 rng(1);

    for (int round = 0; round < 20; round++) {
        heddle::context ctx = two_workers();
        const int nitems = int(rng() % 200);
        std::vector<int> first, second;
        int next = 0;

        ctx.pipeline<std::string>(
            rng() % 6,
            [&](std::string &s) {
                s = std::to_string(next++);
                return next <= nitems;
            },
            [&](std::string &s) { first.push_back(std::stoi(s)); },
            [](std::string &s) { s += "0"; },
            [&](std::string &s) { second.push_back(std::stoi(s)); });
        CHECK_EQ(first.size(), nitems);
        CHECK_EQ(second.size(), nitems);
        for (int i = 0; i < nitems; i++) {
            CHECK_EQ(first[std::size_t(i)], i);
            CHECK_EQ(second[std::size_t(i)], 10 * i);
        }
    }
}

TEST(pipeline_fails)
{
    heddle::context ctx = two_workers();
    int next = 0;

    try {
        ctx.pipeline<int>(
            3,
            [&](int &i) {
                i = next++;
                return true; // without an end: the failure ends it
            },
            [](int &i) {
                if (i == 10)
                    throw std::runtime_error("ten");
            });
        CHECK(false);
    } catch (const heddle::error &e) {
        CHECK(e.status() == HEDDLE_ETASK || e.status() == HEDDLE_ECANCELED);
    }
    try {
        ctx.pipeline<int>(
            3, [](int &) -> bool { throw std::runtime_error("source"); }, [](int &) {});
        CHECK(false);
    } catch (const std::runtime_error &e) {
        CHECK(std::string(e.what()) == "source");
    }
}

TEST(objects)
{
    heddle::context a = two_workers(), b = two_workers();
    std::vector<float> v(3);
    heddle::array<float> x = b.array(v), y = x;

    CHECK(x.get() == y.get());
    y = heddle::array<float>();
    CHECK(y.get() == nullptr && x.size() == 3);
    heddle::array<float> z = std::move(x);
    CHECK(z.get() != nullptr && x.get() == nullptr);
    std::swap(a, b);
    a.submit(
        "fill", [](auto s) { s[0] = 1; }, heddle::write(z));
    a.wait();
    CHECK(v[0] == 1.0f);
    heddle_ctx_opts bad = heddle::context::default_options();
    bad.sched = "no such scheduler";
    try {
        heddle::context c(bad);
        CHECK(false);
    } catch (const heddle::error &e) {
        CHECK_STATUS(e.status(), HEDDLE_EINVAL);
    }
}

static heddle_status scale(struct heddle_exec *x)
{
    static_cast<double *>(heddle_exec_ptr(x, 0))[0] *=
        *static_cast<const double *>(heddle_exec_arg(x));
    return HEDDLE_OK;
}

/* The macros of heddle/task.h in C++. */
TEST(one_line)
{
    static heddle_kernel k = {};
    heddle::context c = two_workers();
    std::vector<double> v(1, 2.0);
    heddle::array<double> x = c.array(v);
    const double a = 10.0;

    k.size = sizeof(k);
    k.name = "scale";
    k.noperands = 1;
    k.mode[0] = HEDDLE_RW;
    k.variants[0].device = HEDDLE_DEV_CPU;
    k.variants[0].run = scale;
    CHECK_OK(heddle_go(c.get(), &k, HEDDLE_ARG(&a), x.get()));
    c.wait();
    CHECK(v[0] == 20.0);
    CHECK_STATUS(heddle_go(c.get(), &k, HEDDLE_NO_ARG, nullptr), HEDDLE_EINVAL);
}

TEST_MAIN(operands, matrices, structs, reductions, captures, exceptions, callables, odd_exceptions,
          pipeline_items, children, loops, pipelines, pipeline_fails, objects, one_line)
