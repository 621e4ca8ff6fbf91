/* SPDX-License-Identifier: BSD-3-Clause */
/* map: every function against the C library's in double precision; chains with broadcasts. */
#include "dnn/dnn_test.h"

/* The value of one function of one number. */
static double one(enum dnn_fn fn, double p, double q, double x)
{
    switch (fn) {
    case DNN_COPY: return x;
    case DNN_EXP: return exp(x);
    case DNN_LOG: return log(x);
    case DNN_ERF: return erf(x);
    case DNN_SQRT: return sqrt(x);
    case DNN_RECIPROCAL: return 1 / x;
    case DNN_ABS: return fabs(x);
    case DNN_NEG: return -x;
    case DNN_SQUARE: return x * x;
    case DNN_FLOOR: return floor(x);
    case DNN_CEIL: return ceil(x);
    case DNN_SIN: return sin(x);
    case DNN_COS: return cos(x);
    case DNN_LINEAR: return p * x + q;
    default: return dnn_test_act((struct dnn_act){fn, (float)p, (float)q}, x);
    }
}

static double two(enum dnn_fn fn, double a, double b)
{
    switch (fn) {
    case DNN_ADD: return a + b;
    case DNN_SUB: return a - b;
    case DNN_MUL: return a * b;
    case DNN_DIV: return a / b;
    case DNN_MIN: return isnan(a) || isnan(b) ? NAN : fmin(a, b);
    case DNN_MAX: return isnan(a) || isnan(b) ? NAN : fmax(a, b);
    default: return pow(a, b);
    }
}

/* Units in the last place of the wanted number; below the normal ones, of the smallest of these. */
static double ulps(float got, double want)
{
    const double size = fmax(fabs(want), 0x1p-126);

    if (isnan(want) || isinf(want) || fabs(want) > 0x1.fffffep127)
        return isnan(want) ? isnan(got) ? 0 : 1e9 : isinf(got) && (got > 0) == (want > 0) ? 0 : 2;
    if (fabs(want) < 0x1p-126 && got == 0)
        return 0; /* dnn.h allows it */
    return fabs((double)got - want) / exp2(floor(log2(size)) - 23);
}

/* Numbers of all exponents and both signs, and those that are special. */
static float number(size_t i, size_t n)
{
    static const float special[] = {0, -0.0f, 1, -1, 88.7f, 88.73f, -87.3f, -87.4f, 1e-40f, 3e38f};
    union {
        uint32_t u;
        float f;
    } x;

    if (i < sizeof(special) / sizeof(special[0]))
        return special[i];
    if (i == 10 || i == 11)
        return i == 10 ? INFINITY : -INFINITY;
    if (i == 12)
        return NAN;
    if (i % 2 == 0) /* where the functions bend */
        return (float)((double)i / (double)n * 40 - 20);
    x.u = (uint32_t)(heddle_mix64(i) >> 32);
    return x.f;
}

static struct heddle_dnn *make_one(enum dnn_fn fn, size_t n, const char *isa)
{
    const struct dnn_map d = {.size = sizeof(d),
                              .rank = 1,
                              .nin = 1,
                              .nsteps = 1,
                              .dims = {n},
                              .stride = {{1}},
                              .step = {{.fn = fn, .a = 0, .p = -0.25f, .q = 0.75f}}};
    const struct dnn_make make = dnn_test_make(isa, NULL, 0);
    struct heddle_dnn *o = NULL;

    CHECK_OK(heddle_dnn_create_map(&d, &make, &o));
    return o;
}

/* What dnn.h promises. Sums like 1 + erf(x) lose digits where they are near 0: their error
 * is measured against x. */
static double allowed(enum dnn_fn fn, double x, double want)
{
    const double against_x = fabs(x) / fmax(fabs(want), 0x1p-126);

    if (isinf(want) || isnan(want))
        return 4;
    switch (fn) {
    case DNN_GELU:
    case DNN_GELU_TANH: return 4 + 4 * against_x;
    case DNN_SILU: /* a sigmoid below the normal numbers may be 0 */
        return 4 + against_x * 0x1p-126 * 0x1p24;
    case DNN_HARD_SWISH: return 4 + 2 * against_x;
    case DNN_LINEAR:
    case DNN_HARD_SIGMOID: return 4 + 4 / fmax(fabs(want), 0x1p-126);
    default: return 4;
    }
}

TEST(accuracy)
{
    const size_t n = test_scale(40000) + 3;
    float *y = malloc(n * sizeof(float)), *x = malloc(n * sizeof(float));

    CHECK(x != NULL && y != NULL);
    for (size_t i = 0; i < n; i++)
        x[i] = number(i, n);
    EACH_ISA(isa)
    for (int fn = DNN_COPY; fn < DNN_ADD; fn++) {
        const void *in[1] = {x};
        void *out[1] = {y};
        struct heddle_dnn *o = make_one((enum dnn_fn)fn, n, isa);

        dnn_test_run(o, in, out, 3);
        heddle_dnn_destroy(o);
        for (size_t i = 0; i < n; i++) {
            const double want = one((enum dnn_fn)fn, -0.25, 0.75, (double)x[i]);

            if (isnan(want) && fabs((double)x[i]) > 1e12)
                continue; /* infinity times 0 in one precision and not in the other */
            if (!(ulps(y[i], want) <= allowed((enum dnn_fn)fn, (double)x[i], want)))
                printf("%s: function %d of %a is %a, not %a: %g ulp\n", isa, fn, (double)x[i],
                       (double)y[i], want, ulps(y[i], want));
            CHECK(ulps(y[i], want) <= allowed((enum dnn_fn)fn, (double)x[i], want));
        }
    }
    free(x);
    free(y);
}

/* --- chains ------------------------------------------------------------------- */

struct chain {
    struct dnn_map d;
    struct guarded in[DNN_MAX_IN], y;
};

static double naive(const struct chain *c, const size_t *at)
{
    const struct dnn_map *d = &c->d;
    double v[DNN_MAX_IN + DNN_MAX_STEPS];

    for (unsigned i = 0; i < d->nin; i++) {
        size_t where = 0;

        for (unsigned k = 0; k < d->rank; k++)
            where += at[k] * d->stride[i][k];
        v[i] = (double)c->in[i].p[where];
    }
    for (unsigned i = 0; i < d->nsteps; i++) {
        const struct dnn_step *s = &d->step[i];

        v[d->nin + i] = dnn_fn_is_binary(s->fn) ? two(s->fn, v[s->a], v[s->b])
                                                : one(s->fn, (double)s->p, (double)s->q, v[s->a]);
    }
    return v[d->nin + d->nsteps - 1];
}

/* Functions that do not make small errors large. */
static enum dnn_fn mild(struct heddle_rng *r)
{
    static const enum dnn_fn fns[] = {DNN_RELU, DNN_TANH, DNN_ADD, DNN_SUB,    DNN_MUL,
                                      DNN_MIN,  DNN_MAX,  DNN_ABS, DNN_SIGMOID};

    return fns[heddle_rng_below(r, 9)];
}

static struct chain random_chain(struct heddle_rng *r)
{
    struct chain c = {.d = {.size = sizeof(c.d)}};
    struct dnn_map *d = &c.d;
    size_t total = 1;

    d->rank = (unsigned)heddle_rng_below(r, 5);
    d->nin = 1 + (unsigned)heddle_rng_below(r, 4);
    d->nsteps = 1 + (unsigned)heddle_rng_below(r, 6);
    for (unsigned k = 0; k < d->rank; k++) {
        d->dims[k] = heddle_rng_below(r, 8) == 0 ? 1 : heddle_rng_below(r, 14);
        if (k + 1 == d->rank && heddle_rng_below(r, 3) == 0)
            d->dims[k] = 500 + heddle_rng_below(r, 600);
        total *= d->dims[k];
    }
    for (unsigned i = 0; i < d->nin; i++) {
        size_t all = 1;

        for (unsigned k = d->rank; k-- > 0;)
            if (heddle_rng_below(r, 3) != 0) {
                d->stride[i][k] = all;
                all *= d->dims[k] * (heddle_rng_below(r, 6) == 0 ? 2 : 1);
            }
        c.in[i] = guarded_random(r, all);
    }
    for (unsigned i = 0; i < d->nsteps; i++)
        d->step[i] = (struct dnn_step){.fn = mild(r),
                                       .a = (uint8_t)heddle_rng_below(r, d->nin + i),
                                       .b = (uint8_t)heddle_rng_below(r, d->nin + i)};
    c.y = guarded_new(total);
    return c;
}

static void check_chain(struct chain *c, const char *isa)
{
    const struct dnn_make make = dnn_test_make(isa, NULL, 0);
    const void *in[DNN_MAX_IN];
    void *out[1] = {c->y.p};
    struct heddle_dnn *o = NULL;

    for (unsigned i = 0; i < c->d.nin; i++)
        in[i] = c->in[i].p;
    CHECK_OK(heddle_dnn_create_map(&c->d, &make, &o));
    dnn_test_pieces(o, in, out, &c->y, NULL);
    heddle_dnn_destroy(o);
    for (size_t u = 0; u < c->y.n; u++) {
        size_t at[DNN_MAX_RANK], rest = u;

        for (unsigned k = c->d.rank; k-- > 0;) {
            at[k] = rest % c->d.dims[k];
            rest /= c->d.dims[k];
        }
        dnn_test_near(c->y.p[u], naive(c, at), 20, 1e-6);
    }
}

TEST(chains)
{
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    for (size_t i = 0; i < test_scale(400); i++) {
        struct chain c = random_chain(&r);

        EACH_ISA(isa) check_chain(&c, isa);
        for (unsigned k = 0; k < c.d.nin; k++)
            guarded_free(&c.in[k]);
        guarded_free(&c.y);
    }
}

TEST(refusals)
{
    char why[256] = "";
    const struct dnn_make make = dnn_test_make(NULL, why, sizeof(why));
    struct dnn_map d = {.size = sizeof(d), .rank = 1, .nin = 1, .nsteps = 1, .dims = {3}};
    struct heddle_dnn *o = NULL;

    d.step[0].a = 1;
    CHECK_STATUS(heddle_dnn_create_map(&d, &make, &o), HEDDLE_EINVAL);
    CHECK(strstr(why, "step 0") != NULL);
    d.step[0].a = 0;
    d.rank = 9;
    CHECK_STATUS(heddle_dnn_create_map(&d, &make, &o), HEDDLE_EINVAL);
    d.rank = 3;
    d.dims[1] = d.dims[2] = SIZE_MAX / 4;
    CHECK_STATUS(heddle_dnn_create_map(&d, &make, &o), HEDDLE_EOVERFLOW);
    CHECK(o == NULL);
}

TEST_MAIN(accuracy, chains, refusals)
