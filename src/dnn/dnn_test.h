/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DNN_DNN_TEST_H
#define HEDDLE_DNN_DNN_TEST_H

/*
 * For the tests of this module: arrays that end at a page nobody may touch, runs in pieces, all
 * instruction sets of this processor.
 */
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/faulty_test.h"
#include "base/rng.h"
#include "dnn/dnn.h"

/* An array whose end is at a page without access; it begins wherever that is. */
struct guarded {
    void *map;
    size_t bytes;
    float *p;
    size_t n;
};

static inline struct guarded guarded_new(size_t floats)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t need = (floats * sizeof(float) + page - 1) / page * page;
    struct guarded g = {.bytes = need + page, .n = floats};

    g.map = mmap(NULL, g.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(g.map != MAP_FAILED);
    CHECK(mprotect((char *)g.map + need, page, PROT_NONE) == 0);
    g.p = (float *)(void *)((char *)g.map + need) - floats;
    return g;
}

static inline void guarded_free(struct guarded *g)
{
    (void)munmap(g->map, g->bytes);
}

/* Numbers in [-1, 1). */
static inline struct guarded guarded_random(struct heddle_rng *r, size_t floats)
{
    struct guarded g = guarded_new(floats);

    for (size_t i = 0; i < floats; i++)
        g.p[i] = (float)(2 * heddle_rng_double(r) - 1);
    return g;
}

static inline struct dnn_make dnn_test_make(const char *isa, char *why, size_t why_bytes)
{
    return (struct dnn_make){
        .size = sizeof(struct dnn_make), .isa = isa, .why = why, .why_bytes = why_bytes};
}

/* Runs all pieces, the last one first, with scratch that holds NaN. */
static inline void dnn_test_run(const struct heddle_dnn *o, const void *const *in, void *const *out,
                                size_t nparts)
{
    const size_t bytes = heddle_dnn_scratch_bytes(o, nparts);
    void *scratch = NULL;

    CHECK(nparts <= heddle_dnn_parts(o));
    CHECK(posix_memalign(&scratch, 64, bytes + 64) == 0);
    for (size_t part = nparts; part-- > 0;) {
        memset(scratch, 0xff, bytes);
        memset((char *)scratch + bytes, 0x5b, 64);
        heddle_dnn_run(o, in, out, part, nparts, scratch);
        for (size_t i = 0; i < 64; i++)
            CHECK_EQ(((unsigned char *)scratch)[bytes + i], 0x5b);
    }
    free(scratch);
}

/* Runs whole, then in 2 .. 7 pieces: equal to the bit. The output is y, `first` what it holds
 * before a run (NULL: NaN). */
static inline void dnn_test_pieces(const struct heddle_dnn *o, const void *const *in,
                                   void *const *out, struct guarded *y, const float *first)
{
    float *whole = malloc((y->n + 1) * sizeof(float));

    CHECK(whole != NULL);
    for (size_t nparts = 1; nparts <= 7; nparts++) {
        if (nparts > heddle_dnn_parts(o))
            break;
        if (first != NULL)
            memcpy(y->p, first, y->n * sizeof(float));
        else
            memset(y->p, 0xff, y->n * sizeof(float));
        dnn_test_run(o, in, out, nparts);
        if (nparts == 1)
            memcpy(whole, y->p, y->n * sizeof(float));
        CHECK(memcmp(whole, y->p, y->n * sizeof(float)) == 0);
    }
    free(whole);
}

/* |got - want| within tol times `size`; NaN and infinity alike. */
static inline void dnn_test_near(float got, double want, double size, double tol)
{
    if (isnan(want) || isinf(want)) {
        CHECK(isnan(want) ? isnan(got) : (double)got == want);
        return;
    }
    CHECK_NEAR((double)got, want, tol * (size + 1));
}

/* NaN stays. */
static inline double dnn_test_clamp(double x, double lo, double hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

/* An activation, in double precision. */
static inline double dnn_test_act(struct dnn_act a, double x)
{
    const double p = (double)a.p, q = (double)a.q;

    switch (a.fn) {
    case DNN_RELU: return x < 0 ? 0 : x;
    case DNN_CLIP: return dnn_test_clamp(x, p, q);
    case DNN_GELU: return 0.5 * x * (1 + erf(x / sqrt(2)));
    case DNN_GELU_TANH:
        return 0.5 * x * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
    case DNN_SILU: return x / (1 + exp(-x));
    case DNN_SIGMOID: return 1 / (1 + exp(-x));
    case DNN_TANH: return tanh(x);
    case DNN_HARD_SWISH: return x * dnn_test_clamp(x / 6 + 0.5, 0, 1);
    case DNN_HARD_SIGMOID: return dnn_test_clamp(p * x + q, 0, 1);
    case DNN_LEAKY_RELU: return x < 0 ? p * x : x;
    case DNN_ELU: return x < 0 ? p * expm1(x) : x;
    default: return x;
    }
}

static inline struct dnn_act dnn_test_random_act(struct heddle_rng *r)
{
    return (struct dnn_act){(enum dnn_fn)heddle_rng_below(r, DNN_ELU + 1), -0.3f, 0.6f};
}

/* For every instruction set of this processor. */
#define EACH_ISA(name)                                                                             \
    for (size_t isa_ = 0; heddle_dnn_isa_name(isa_) != NULL; isa_++)                               \
        for (const char *name = heddle_dnn_isa_name(isa_); name != NULL; name = NULL)

#endif /* HEDDLE_DNN_DNN_TEST_H */
