/* SPDX-License-Identifier: BSD-3-Clause */
/* matmul: random products against loops in double precision. */
#include "dnn/dnn_test.h"

struct example {
    struct dnn_matmul d;
    struct guarded a, b, bias, res, c;
};

static double naive(const struct example *e, size_t p, size_t i, size_t j, double *size)
{
    const struct dnn_matmul *d = &e->d;
    const float *a = e->a.p + p * d->stride_a, *b = e->b.p + p * d->stride_b;
    double s = 0;

    *size = 0;
    for (size_t k = 0; k < d->k; k++) {
        const double x = (double)a[d->trans_a ? k * d->lda + i : i * d->lda + k];
        const double y = (double)b[d->trans_b ? j * d->ldb + k : k * d->ldb + j];

        s += x * y;
        *size += fabs(x * y);
    }
    s *= (double)d->alpha;
    *size *= fabs((double)d->alpha);
    if (d->has_bias)
        s += (double)e->bias.p[j];
    if (d->has_residual)
        s += (double)e->res.p[p * d->stride_c + i * d->ldc + j];
    return dnn_test_act(d->act, s);
}

static void compare(const struct example *e)
{
    const struct dnn_matmul *d = &e->d;

    for (size_t p = 0; p < d->batch; p++)
        for (size_t i = 0; i < d->m; i++)
            for (size_t j = 0; j < d->n; j++) {
                double size = 0;
                const double want = naive(e, p, i, j, &size);

                dnn_test_near(e->c.p[p * d->stride_c + i * d->ldc + j], want, size, 4e-6);
            }
}

static size_t below(struct heddle_rng *r, size_t n)
{
    return heddle_rng_below(r, n);
}

static struct example random_example(struct heddle_rng *r, size_t most)
{
    struct example e = {.d = {.size = sizeof(e.d)}};
    struct dnn_matmul *d = &e.d;

    d->batch = 1 + below(r, 3);
    d->m = below(r, 12) == 0 ? 1 : below(r, 40);
    d->n = below(r, 150);
    d->k = below(r, most);
    d->trans_a = below(r, 4) == 0;
    d->trans_b = below(r, 2) == 0;
    d->has_bias = below(r, 2) == 0;
    d->has_residual = below(r, 2) == 0;
    d->is_b_constant = below(r, 2) == 0;
    d->is_bias_constant = d->has_bias && d->is_b_constant && below(r, 2) == 0;
    d->alpha = below(r, 3) == 0 ? 0.25f : 1;
    d->lda = (d->trans_a ? d->m : d->k) + below(r, 3);
    d->ldb = (d->trans_b ? d->k : d->n) + below(r, 3);
    d->ldc = d->n + below(r, 3);
    d->lda += d->lda == 0;
    d->ldb += d->ldb == 0;
    d->ldc += d->ldc == 0;
    d->stride_a = d->lda * (d->trans_a ? d->k : d->m) + below(r, 5);
    d->stride_b = d->is_b_constant ? 0 : d->ldb * (d->trans_b ? d->n : d->k);
    d->stride_c = d->ldc * d->m;
    d->act = dnn_test_random_act(r);
    e.a = guarded_random(r, d->batch * d->stride_a);
    e.b = guarded_random(r, d->batch * d->ldb * (d->trans_b ? d->n : d->k));
    e.bias = guarded_random(r, d->n);
    e.res = guarded_random(r, d->batch * d->stride_c);
    e.c = guarded_new(d->batch * d->stride_c);
    return e;
}

static void free_example(struct example *e)
{
    guarded_free(&e->a);
    guarded_free(&e->b);
    guarded_free(&e->bias);
    guarded_free(&e->res);
    guarded_free(&e->c);
}

static void try_one(struct example *e, const char *isa)
{
    const bool fixed = e->d.is_b_constant;
    const void *in[4] = {e->a.p, fixed ? NULL : e->b.p, e->d.is_bias_constant ? NULL : e->bias.p,
                         e->res.p};
    void *out[1] = {e->c.p};
    char why[256] = "";
    const struct dnn_make make = dnn_test_make(isa, why, sizeof(why));
    struct heddle_dnn *o = NULL;

    CHECK_OK(heddle_dnn_create_matmul(&e->d, fixed ? e->b.p : NULL, e->bias.p, &make, &o));
    dnn_test_pieces(o, in, out, &e->c, NULL);
    compare(e);
    if (e->d.has_residual) {
        in[3] = e->c.p;
        dnn_test_pieces(o, in, out, &e->c, e->res.p);
        compare(e);
    }
    heddle_dnn_destroy(o);
}

TEST(random)
{
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    for (size_t i = 0; i < test_scale(300); i++) {
        struct example e = random_example(&r, 70);

        EACH_ISA(isa) try_one(&e, isa);
        free_example(&e);
    }
}

/* Several steps through a panel. */
TEST(deep)
{
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    for (size_t i = 0; i < test_scale(20); i++) {
        struct example e = random_example(&r, 3000);

        EACH_ISA(isa) try_one(&e, isa);
        free_example(&e);
    }
}

/* NaN and infinity reach exactly the numbers that they reach in the naive product. */
TEST(not_finite)
{
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    for (size_t i = 0; i < test_scale(60); i++) {
        struct example e = random_example(&r, 30);

        e.d.act.fn = i % 2 == 0 ? DNN_COPY : DNN_RELU;
        for (size_t k = 0; k < 2 && e.a.n > 0; k++)
            e.a.p[below(&r, e.a.n)] = k == 0 ? NAN : INFINITY;
        EACH_ISA(isa) try_one(&e, isa);
        free_example(&e);
    }
}

TEST(refusals)
{
    float b[4] = {0};
    char why[256] = "";
    struct dnn_make make = dnn_test_make(NULL, why, sizeof(why));
    struct dnn_matmul d = {.size = sizeof(d), .m = 2, .n = 2, .k = 2, .ldb = 1};
    struct heddle_dnn *o = NULL;

    CHECK_STATUS(heddle_dnn_create_matmul(&d, NULL, NULL, &make, &o), HEDDLE_EINVAL);
    CHECK(strstr(why, "leading dimension") != NULL);
    d.ldb = 0;
    d.is_b_constant = true;
    CHECK_STATUS(heddle_dnn_create_matmul(&d, NULL, NULL, &make, &o), HEDDLE_EINVAL);
    d.k = SIZE_MAX / 2;
    CHECK_STATUS(heddle_dnn_create_matmul(&d, b, NULL, &make, &o), HEDDLE_EOVERFLOW);
    d.k = 2;
    d.size = 0;
    CHECK_STATUS(heddle_dnn_create_matmul(&d, b, NULL, &make, &o), HEDDLE_EINVAL);
    d.size = sizeof(d);
    make.isa = "altivec";
    CHECK_STATUS(heddle_dnn_create_matmul(&d, b, NULL, &make, &o), HEDDLE_ENOSYS);
    CHECK(strstr(why, "altivec") != NULL);
    CHECK(o == NULL);
}

/* The weights outlive the object that packed them, and are freed once. */
TEST(share)
{
    float b[6] = {1, 2, 3, 4, 5, 6}, bias[2] = {10, 20}, a[9] = {1, 1, 1, 2, 2, 2, 3, 3, 3}, c[6];
    const struct dnn_matmul one = {.size = sizeof(one),
                                   .m = 1,
                                   .n = 2,
                                   .k = 3,
                                   .has_bias = true,
                                   .is_b_constant = true,
                                   .is_bias_constant = true};
    struct dnn_matmul three = one;
    const void *in[4] = {a};
    void *out[1] = {c};
    struct faulty f;

    three.m = 3;
    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        struct dnn_make make = dnn_test_make(NULL, NULL, 0);
        struct heddle_dnn *o = NULL, *twin = NULL;

        faulty_init(&f, k);
        make.alloc = &f.a;
        if (heddle_dnn_create_matmul(&one, b, bias, &make, &o) == HEDDLE_OK) {
            make.share = o;
            if (heddle_dnn_create_matmul(&three, NULL, NULL, &make, &twin) != HEDDLE_OK)
                twin = NULL;
            heddle_dnn_destroy(o);
        }
        if (twin != NULL) {
            heddle_dnn_run(twin, in, out, 0, 1, NULL);
            CHECK_NEAR((double)c[4], 37, 0);
            CHECK_NEAR((double)c[5], 56, 0);
        }
        heddle_dnn_destroy(twin);
        CHECK_EQ(f.nlive, 0);
    }
}

TEST_MAIN(random, deep, not_finite, refusals, share)
