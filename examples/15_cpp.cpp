// SPDX-License-Identifier: BSD-3-Clause
// Heddle in C++: lambdas as tasks, a loop, a pipeline, an exception that becomes a failure.
#include <cstdio>
#include <numeric>
#include <stdexcept>
#include <vector>

#include <heddle/heddle.hpp>

// x and y are ordered by their operands alone: the dot product waits for both writers.
static double dot_of_two(heddle::context &ctx)
{
    std::vector<double> a(1000), b(1000), sum(1);
    auto x = ctx.array(a), y = ctx.array(b), s = ctx.array(sum);

    ctx.submit(
        "ramp", [](auto v) { std::iota(v.begin(), v.end(), 1.0); }, heddle::write(x));
    ctx.submit(
        "ones", [](auto v) { std::fill(v.begin(), v.end(), 1.0); }, heddle::write(y));
    ctx.submit(
        "dot",
        [](auto u, auto v, auto out) {
            out[0] = std::inner_product(u.begin(), u.end(), v.begin(), 0.0);
        },
        heddle::read(x), heddle::read(y), heddle::write(s));
    ctx.wait();
    return sum[0];
}

// At most four numbers are on their way; each stage sees them in order.
static long pipeline_of_squares(heddle::context &ctx)
{
    long total = 0, next = 1;

    ctx.pipeline<long>(
        4,
        [&](long &item) {
            item = next++;
            return item <= 100;
        },
        [](long &item) { item *= item; }, [&](long &item) { total += item; });
    return total;
}

int main()
{
    try {
        heddle::context ctx;
        std::vector<double> v(10000);
        bool has_thrown = false;

        ctx.parallel_for(0, v.size(), [&](std::size_t i) { v[i] = 2.0 * double(i); });
        const double dot = dot_of_two(ctx);
        const long squares = pipeline_of_squares(ctx);

        ctx.submit("careless", [] { throw std::runtime_error("no such file"); });
        try {
            ctx.wait();
        } catch (const heddle::error &e) {
            has_thrown = true;
            std::printf("%s\n", e.what());
        }
        std::printf("dot %g, squares %ld, last %g\n", dot, squares, v.back());
        return dot == 500500 && squares == 338350 && v.back() == 19998 && has_thrown ? 0 : 1;
    } catch (const std::exception &e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}
