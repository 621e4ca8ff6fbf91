/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernels: what the entries of the PTX texts in tests and tools do, in C.
 *
 * Structure  a table by name. A kernel says which bytes it is about to use
 *            (fakecuda_touch); bytes outside of valid memory end the context.
 * Invariant  the same results as the PTX on a GPU. A kernel that has a thread per
 *            element does as many as the launch has threads.
 * Threads    the threads of streams and graphs. Compiled with the sanitizers.
 */
#include "fakecuda.h"
#include "kernels_mixed.h"

#include <math.h>
#include <string.h>

/* The value of argument i. */
#define ARG(type, i) (*(type *)l->arg[i])

static bool is_bad(const struct fc_launch *l, const void *at, size_t bytes)
{
    return fakecuda_touch(l->ctx, at, bytes) != 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* --- for the tests of the driver ----------------------------------------- */

static void k_empty(const struct fc_launch *l)
{
    (void)l;
}

static void k_trap(const struct fc_launch *l)
{
    fc_lose(l->ctx, FC_ELAUNCH);
}

static void k_spin(const struct fc_launch *l)
{
    fc_pause(ARG(uint64_t, 0));
}

/* (p, n): p[i] *= 2 */
static void k_twice(const struct fc_launch *l)
{
    uint32_t *p = ARG(uint32_t *, 0);
    const uint64_t n = least(ARG(uint32_t, 1), l->nthreads);

    if (is_bad(l, p, n * sizeof(*p)))
        return;
    for (uint64_t i = 0; i < n; i++)
        p[i] *= 2;
}

/* (p, v): *p = v */
static void k_store(const struct fc_launch *l)
{
    uint32_t *p = ARG(uint32_t *, 0);

    if (!is_bad(l, p, sizeof(*p)))
        *p = ARG(uint32_t, 1);
}

/* (a, x, y, n): y += a x */
static void k_axpy(const struct fc_launch *l)
{
    const float a = ARG(float, 0), *x = ARG(const float *, 1);
    float *y = ARG(float *, 2);
    const uint64_t n = least(ARG(uint32_t, 3), l->nthreads);

    if (is_bad(l, x, n * sizeof(*x)) || is_bad(l, y, n * sizeof(*y)))
        return;
    for (uint64_t i = 0; i < n; i++)
        y[i] = fmaf(a, x[i], y[i]);
}

/* (p, a, n): p[i] = 3 p[i] + a, of bytes */
static void k_triple(const struct fc_launch *l)
{
    unsigned char *p = ARG(unsigned char *, 0);
    const uint32_t a = ARG(uint32_t, 1);
    const uint64_t n = least(ARG(uint32_t, 2), l->nthreads);

    if (is_bad(l, p, n))
        return;
    for (uint64_t i = 0; i < n; i++)
        p[i] = (unsigned char)(p[i] * 3 + a);
}

/* --- for `heddle bench fuzz` --------------------------------------------- */

/* A box of elements: extents and strides from argument `at`, then the size. */
struct box {
    uint64_t e[3], s[3];
    uint32_t elem, word;
};

static struct box box_from(const struct fc_launch *l, int at)
{
    struct box b;

    for (int d = 0; d < 3; d++) {
        b.e[d] = ARG(uint64_t, at + d);
        b.s[d] = ARG(uint64_t, at + 3 + d);
    }
    b.elem = ARG(uint32_t, at + 6);
    b.word = b.elem > 8 ? 8 : b.elem;
    return b;
}

static uint64_t box_count(const struct box *b)
{
    return b->e[0] * b->e[1] * b->e[2];
}

static bool box_is_bad(const struct fc_launch *l, const struct box *b, const void *p)
{
    uint64_t last = 0;

    if (box_count(b) == 0)
        return false;
    for (int d = 0; d < 3; d++)
        last += (b->e[d] - 1) * b->s[d];
    return is_bad(l, p, (last + 1) * b->elem);
}

/* Where element n is, in row-major order. */
static uint64_t box_at(const struct box *b, uint64_t n)
{
    const uint64_t k = n % b->e[2], j = n / b->e[2] % b->e[1];
    const uint64_t i = n / b->e[2] / b->e[1];

    return (i * b->s[0] + j * b->s[1] + k * b->s[2]) * b->elem;
}

static uint64_t get(const unsigned char *p, uint32_t n)
{
    uint64_t v = 0;

    for (uint32_t i = 0; i < n; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static void put(unsigned char *p, uint32_t n, uint64_t v)
{
    for (uint32_t i = 0; i < n; i++)
        p[i] = (unsigned char)(v >> (8 * i));
}

/* (h, salt, spin_ns) */
static void k_fuzz_begin(const struct fc_launch *l)
{
    uint64_t *h = ARG(uint64_t *, 0);

    if (ARG(uint64_t, 2) > 0)
        fc_pause(ARG(uint64_t, 2));
    if (!is_bad(l, h, sizeof(*h)))
        *h = ARG(uint64_t, 1);
}

/* (p, h, add, e0..e2, s0..s2, elem) */
static void k_fuzz_fold(const struct fc_launch *l)
{
    const unsigned char *p = ARG(const unsigned char *, 0);
    uint64_t *h = ARG(uint64_t *, 1), x;
    const struct box b = box_from(l, 3);

    if (is_bad(l, h, sizeof(*h)) || box_is_bad(l, &b, p))
        return;
    x = *h + ARG(uint64_t, 2);
    for (uint64_t n = 0; n < box_count(&b); n++)
        for (uint32_t k = 0; k < b.elem; k += b.word) {
            x ^= get(p + box_at(&b, n) + k, b.word);
            x *= UINT64_C(0x2545f4914f6cdd1d);
            x ^= x >> 31;
        }
    *h = x;
}

static uint64_t fuzz_value(uint64_t h, uint64_t op, uint64_t at)
{
    uint64_t z = h + (op + 1) * UINT64_C(0x9e3779b97f4a7c15) + at * UINT64_C(0xd1342543de82ef95);

    z = (z ^ (z >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
    return z ^ (z >> 32);
}

/* (p, h, op, e0..e2, s0..s2, elem, adds) */
static void k_fuzz_write(const struct fc_launch *l)
{
    unsigned char *p = ARG(unsigned char *, 0);
    const uint64_t *h = ARG(const uint64_t *, 1), op = ARG(uint64_t, 2);
    const struct box b = box_from(l, 3);
    const bool adds = ARG(uint32_t, 10) != 0;

    if (is_bad(l, h, sizeof(*h)) || box_is_bad(l, &b, p))
        return;
    for (uint64_t n = 0; n < least(box_count(&b), l->nthreads); n++)
        for (uint32_t k = 0; k < b.elem; k += b.word) {
            unsigned char *q = p + box_at(&b, n) + k;
            const uint64_t at = n * (b.elem / b.word) + k / b.word;
            const uint64_t z = fuzz_value(*h, op, at);

            put(q, b.word, adds ? z + get(q, b.word) : z);
        }
}

/* (p, h, salt, op, e0..e2, s0..s2, elem) */
static void k_fuzz_check(const struct fc_launch *l)
{
    const unsigned char *p = ARG(const unsigned char *, 0);
    uint64_t *h = ARG(uint64_t *, 1);
    const uint64_t salt = ARG(uint64_t, 2), op = ARG(uint64_t, 3);
    const struct box b = box_from(l, 4);
    bool differs = false;

    if (is_bad(l, h, sizeof(*h)) || box_is_bad(l, &b, p))
        return;
    for (uint64_t n = 0; n < box_count(&b); n++)
        for (uint32_t k = 0; k < b.elem; k += b.word) {
            const uint64_t at = n * (b.elem / b.word) + k / b.word;
            unsigned char want[8];

            put(want, b.word, fuzz_value(salt, op, at));
            if (memcmp(want, p + box_at(&b, n) + k, b.word) != 0)
                differs = true;
        }
    if (differs)
        *h ^= 0xbad;
}

/* (p, bytes, salt) */
static void k_fuzz_pattern(const struct fc_launch *l)
{
    unsigned char *p = ARG(unsigned char *, 0);
    const uint32_t bytes = ARG(uint32_t, 1);

    if (is_bad(l, p, bytes))
        return;
    for (uint32_t i = 0; i < bytes; i++)
        p[i] = (unsigned char)(ARG(uint64_t, 2) + 31u * i);
}

/* (p, bytes, salt, h) */
static void k_fuzz_pattern_check(const struct fc_launch *l)
{
    const unsigned char *p = ARG(const unsigned char *, 0);
    const uint32_t bytes = ARG(uint32_t, 1);
    uint64_t *h = ARG(uint64_t *, 3);
    bool differs = false;

    if (is_bad(l, p, bytes) || is_bad(l, h, sizeof(*h)))
        return;
    for (uint32_t i = 0; i < bytes; i++)
        if (p[i] != (unsigned char)(ARG(uint64_t, 2) + 31u * i))
            differs = true;
    if (differs)
        *h ^= 0xbad;
}

/* --- for `heddle bench cuda` --------------------------------------------- */

/* (p, v): p[0] += v */
static void k_bench_step(const struct fc_launch *l)
{
    double *p = ARG(double *, 0);

    if (!is_bad(l, p, sizeof(*p)))
        *p += ARG(uint32_t, 1);
}

static double bench_value(uint32_t r, uint32_t c, uint32_t s)
{
    uint32_t h = r * 0x9E3779B1u ^ c * 0x85EBCA77u ^ s * 0xC2B2AE3Du;

    h ^= h >> 15;
    h *= 0x2C1B3C6Du;
    h ^= h >> 12;
    h *= 0x297A2D39u;
    h ^= h >> 15;
    return (double)(h >> 8) * (1.0 / 8388608.0) - 1.0;
}

/* (p, m, n, row, col, seed, diagonal): a tile of a matrix, symmetric when the seed
 * is odd */
static void k_bench_fill(const struct fc_launch *l)
{
    double *p = ARG(double *, 0);
    const uint32_t m = ARG(uint32_t, 1), n = ARG(uint32_t, 2);
    const uint32_t seed = ARG(uint32_t, 5);
    const uint64_t all = (uint64_t)m * n;

    if (is_bad(l, p, all * sizeof(*p)))
        return;
    for (uint64_t e = 0; e < all; e++) {
        const uint32_t i = ARG(uint32_t, 3) + (uint32_t)(e % m);
        const uint32_t j = ARG(uint32_t, 4) + (uint32_t)(e / m);
        const double v = (seed & 1) != 0 ? bench_value(i < j ? i : j, i < j ? j : i, seed)
                                         : bench_value(i, j, seed);

        p[e] = i == j ? v + ARG(double, 6) : v;
    }
}

/* (a, x, y, n): y += a x */
static void k_bench_axpy(const struct fc_launch *l)
{
    const double a = ARG(double, 0), *x = ARG(const double *, 1);
    double *y = ARG(double *, 2);
    const uint64_t n = ARG(uint32_t, 3);

    if (is_bad(l, x, n * sizeof(*x)) || is_bad(l, y, n * sizeof(*y)))
        return;
    for (uint64_t i = 0; i < n; i++)
        y[i] += a * x[i];
}

/* (x, y, n, steps): a walk that cannot be done in parallel */
static void k_bench_walk(const struct fc_launch *l)
{
    const uint32_t *x = ARG(const uint32_t *, 0), n = ARG(uint32_t, 2);
    uint32_t *y = ARG(uint32_t *, 1), s;

    if (is_bad(l, x, n * sizeof(*x)) || is_bad(l, y, sizeof(*y)))
        return;
    s = y[0] + n;
    for (uint32_t i = 0; i < ARG(uint32_t, 3); i++)
        s = s * 1664525u + x[(s >> 8) % n] + 1013904223u;
    y[0] = s;
}

/* (t, n, out): out[0] += the sum of |t[i]| */
static void k_bench_norm(const struct fc_launch *l)
{
    const double *t = ARG(const double *, 0);
    const uint64_t n = ARG(uint64_t, 1);
    double *out = ARG(double *, 2), sum = 0;

    if (is_bad(l, t, n * sizeof(*t)) || is_bad(l, out, sizeof(*out)))
        return;
    for (uint64_t i = 0; i < n; i++)
        sum += fabs(t[i]);
    *out += sum;
}

/* --- the table ----------------------------------------------------------- */

static const struct fc_kernel kernels[] = {
    {"empty", "", k_empty},
    {"trap", "", k_trap},
    {"spin", "l", k_spin},
    {"twice", "pi", k_twice},
    {"store", "pi", k_store},
    {"axpy", "fppi", k_axpy},
    {"triple", "pii", k_triple},
    {"fuzz_begin", "pll", k_fuzz_begin},
    {"fuzz_fold", "ppllllllli", k_fuzz_fold},
    {"fuzz_write", "pplllllllii", k_fuzz_write},
    {"fuzz_check", "pplllllllli", k_fuzz_check},
    {"fuzz_pattern", "pil", k_fuzz_pattern},
    {"fuzz_pattern_check", "pilp", k_fuzz_pattern_check},
    {"bench_empty", "", k_empty},
    {"bench_trap", "", k_trap},
    {"bench_step", "pi", k_bench_step},
    {"bench_fill", "piiiiid", k_bench_fill},
    {"bench_axpy", "dppi", k_bench_axpy},
    {"bench_walk", "ppii", k_bench_walk},
    {"bench_norm", "plp", k_bench_norm},
};

const struct fc_kernel *fc_kernel_find(const char *name)
{
    const struct fc_kernel *k = fc_kernel_find_mixed(name);

    if (k == NULL)
        k = fc_kernel_find_norm(name);
    if (k != NULL)
        return k;
    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
        if (strcmp(kernels[i].name, name) == 0)
            return &kernels[i];
    return fc_kernel_find_la(name);
}
