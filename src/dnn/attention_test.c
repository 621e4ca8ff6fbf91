/* SPDX-License-Identifier: BSD-3-Clause */
/* attention, softmax, norms, rotary positions: against loops in double precision. */
#include "dnn/dnn_test.h"

static size_t below(struct heddle_rng *r, size_t n)
{
    return heddle_rng_below(r, n);
}

/* --- attention ---------------------------------------------------------------- */

struct example {
    struct dnn_attention d;
    struct guarded q, k, v, mask, y;
};

/* (batch, head, position, element) or (batch, position, head, element). */
static struct dnn_heads layout(bool is_head_first, size_t heads, size_t len, size_t dim)
{
    return is_head_first ? (struct dnn_heads){heads * len * dim, len * dim, dim}
                         : (struct dnn_heads){len * heads * dim, dim, heads * dim};
}

static struct example random_example(struct heddle_rng *r)
{
    struct example e = {.d = {.size = sizeof(e.d)}};
    struct dnn_attention *d = &e.d;
    const bool is_head_first = below(r, 2) == 0;

    d->batch = 1 + below(r, 2);
    d->kv_heads = 1 + below(r, 2);
    d->heads = d->kv_heads * (1 + below(r, 3));
    d->q_len = 1 + below(r, 60);
    d->kv_len = 1 + below(r, 150);
    d->dim = 1 + below(r, 70);
    d->dim_v = 1 + below(r, 70);
    d->scale = below(r, 2) == 0 ? 0 : 0.5f;
    d->is_causal = below(r, 2) == 0;
    d->past = below(r, 40);
    d->has_mask = below(r, 2) == 0;
    d->q = layout(is_head_first, d->heads, d->q_len, d->dim);
    d->k = layout(is_head_first, d->kv_heads, d->kv_len, d->dim);
    d->v = layout(below(r, 2) == 0, d->kv_heads, d->kv_len, d->dim_v);
    d->out = layout(below(r, 2) == 0, d->heads, d->q_len, d->dim_v);
    d->mask_q = d->kv_len;
    d->mask_batch = below(r, 2) == 0 ? 0 : d->kv_len * d->q_len;
    e.q = guarded_random(r, d->batch * d->q.batch);
    e.k = guarded_random(r, d->batch * d->k.batch);
    e.v = guarded_random(r, d->batch * d->v.batch);
    e.mask = guarded_random(r, d->batch * d->q_len * d->kv_len);
    for (size_t i = 0; i < e.mask.n; i++) /* some keys are hidden, the first never */
        if (below(r, 3) == 0 && i % d->kv_len != 0)
            e.mask.p[i] = -INFINITY;
    e.y = guarded_new(d->batch * d->out.batch);
    return e;
}

static void check_row(const struct example *e, size_t b, size_t h, size_t i)
{
    const struct dnn_attention *d = &e->d;
    const size_t kv = h / (d->heads / d->kv_heads);
    const size_t n = d->is_causal && i + d->past + 1 < d->kv_len ? i + d->past + 1 : d->kv_len;
    const double scale = d->scale != 0 ? (double)d->scale : 1 / sqrt((double)d->dim);
    const float *q = e->q.p + b * d->q.batch + h * d->q.head + i * d->q.pos;
    const float *y = e->y.p + b * d->out.batch + h * d->out.head + i * d->out.pos;
    double s[256], top = -INFINITY, sum = 0;

    for (size_t j = 0; j < n; j++) {
        const float *k = e->k.p + b * d->k.batch + kv * d->k.head + j * d->k.pos;

        s[j] = 0;
        for (size_t x = 0; x < d->dim; x++)
            s[j] += (double)q[x] * (double)k[x];
        s[j] *= scale;
        if (d->has_mask)
            s[j] += (double)e->mask.p[b * d->mask_batch + i * d->mask_q + j];
        top = fmax(top, s[j]);
    }
    for (size_t j = 0; j < n; j++)
        sum += exp(s[j] - top);
    for (size_t x = 0; x < d->dim_v; x++) {
        double want = 0;

        for (size_t j = 0; j < n; j++)
            want += exp(s[j] - top) / sum *
                    (double)e->v.p[b * d->v.batch + kv * d->v.head + j * d->v.pos + x];
        dnn_test_near(y[x], want, 1, 2e-6);
    }
}

TEST(attention)
{
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    for (size_t n = 0; n < test_scale(60); n++) {
        struct example e = random_example(&r);
        const void *in[4] = {e.q.p, e.k.p, e.v.p, e.mask.p};
        void *out[1] = {e.y.p};

        EACH_ISA(isa)
        {
            const struct dnn_make make = dnn_test_make(isa, NULL, 0);
            struct heddle_dnn *o = NULL;

            CHECK_OK(heddle_dnn_create_attention(&e.d, &make, &o));
            dnn_test_pieces(o, in, out, &e.y, NULL);
            heddle_dnn_destroy(o);
            for (size_t b = 0; b < e.d.batch; b++)
                for (size_t h = 0; h < e.d.heads; h++)
                    for (size_t i = 0; i < e.d.q_len; i++)
                        check_row(&e, b, h, i);
        }
        guarded_free(&e.q);
        guarded_free(&e.k);
        guarded_free(&e.v);
        guarded_free(&e.mask);
        guarded_free(&e.y);
    }
}

/* --- softmax ------------------------------------------------------------------ */

static void check_softmax(const struct dnn_softmax *d, const float *x, const float *y)
{
    for (size_t o = 0; o < d->outer; o++)
        for (size_t i = 0; i < d->inner; i++) {
            const size_t at = o * d->n * d->inner + i;
            double top = -INFINITY, sum = 0;

            for (size_t k = 0; k < d->n; k++)
                top = isnan(x[at + k * d->inner]) ? NAN : fmax(top, (double)x[at + k * d->inner]);
            for (size_t k = 0; k < d->n; k++)
                sum += exp((double)x[at + k * d->inner] - top);
            for (size_t k = 0; k < d->n; k++) {
                const double v = (double)x[at + k * d->inner] - top;
                const double want = d->is_log ? v - log(sum) : exp(v) / sum;

                dnn_test_near(y[at + k * d->inner], want, d->is_log ? fabs(want) : 0, 1e-6);
            }
        }
}

TEST(softmax)
{
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    for (size_t t = 0; t < test_scale(120); t++) {
        const struct dnn_softmax d = {.size = sizeof(d),
                                      .outer = 1 + below(&r, 5),
                                      .n = 1 + below(&r, t % 4 == 0 ? 1200 : 40),
                                      .inner = t % 3 == 0 ? 1 + below(&r, 40) : 1,
                                      .is_log = t % 2 == 0};
        struct guarded x = guarded_random(&r, d.outer * d.n * d.inner), y = guarded_new(x.n);
        const void *in[1] = {x.p};
        void *out[1] = {y.p};

        for (size_t i = 0; i < x.n; i++)
            x.p[i] = below(&r, 50) == 0 && d.n > 3 ? -INFINITY : x.p[i] * 30;
        for (size_t i = 0; i < d.outer * d.inner; i++) /* one that is finite in each row */
            x.p[i / d.inner * d.n * d.inner + i % d.inner] = 1;
        EACH_ISA(isa)
        {
            const struct dnn_make make = dnn_test_make(isa, NULL, 0);
            struct heddle_dnn *o = NULL;

            CHECK_OK(heddle_dnn_create_softmax(&d, &make, &o));
            dnn_test_pieces(o, in, out, &y, NULL);
            check_softmax(&d, x.p, y.p);
            in[0] = y.p; /* in place */
            dnn_test_pieces(o, in, out, &y, x.p);
            check_softmax(&d, x.p, y.p);
            in[0] = x.p;
            heddle_dnn_destroy(o);
        }
        guarded_free(&x);
        guarded_free(&y);
    }
}

/* --- norms -------------------------------------------------------------------- */

static void check_norm(const struct dnn_norm *d, const void *const *in, const float *y)
{
    const float *x = in[0], *scale = in[1], *shift = in[2], *res = in[3];

    for (size_t r = 0; r < d->rows; r++) {
        double mean = 0, squares = 0;

        for (size_t i = 0; i < d->n; i++)
            mean += (double)x[r * d->n + i] + (res != NULL ? (double)res[r * d->n + i] : 0);
        mean = d->is_rms ? 0 : mean / (double)d->n;
        for (size_t i = 0; i < d->n; i++) {
            const double v =
                (double)x[r * d->n + i] + (res != NULL ? (double)res[r * d->n + i] : 0) - mean;

            squares += v * v;
        }
        for (size_t i = 0; i < d->n; i++) {
            const double v =
                (double)x[r * d->n + i] + (res != NULL ? (double)res[r * d->n + i] : 0) - mean;
            const double want = v / sqrt(squares / (double)d->n + (double)d->eps) *
                                    (scale != NULL ? (double)scale[i] : 1) +
                                (shift != NULL ? (double)shift[i] : 0);

            dnn_test_near(y[r * d->n + i], want, fabs(want), 4e-6);
        }
    }
}

TEST(norms)
{
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    for (size_t t = 0; t < test_scale(120); t++) {
        const struct dnn_norm d = {.size = sizeof(d),
                                   .rows = 1 + below(&r, 9),
                                   .n = 1 + below(&r, t % 4 == 0 ? 900 : 80),
                                   .eps = 1e-3f,
                                   .is_rms = t % 2 == 0};
        struct guarded x = guarded_random(&r, d.rows * d.n), y = guarded_new(x.n);
        struct guarded scale = guarded_random(&r, d.n), shift = guarded_random(&r, d.n);
        struct guarded res = guarded_random(&r, x.n), sum = guarded_new(x.n);
        const void *in[4] = {x.p, t % 3 != 0 ? scale.p : NULL, t % 5 != 0 ? shift.p : NULL,
                             t % 7 < 3 ? res.p : NULL};
        void *out[2] = {y.p, t % 7 < 2 ? sum.p : NULL};

        EACH_ISA(isa)
        {
            const struct dnn_make make = dnn_test_make(isa, NULL, 0);
            struct heddle_dnn *o = NULL;

            CHECK_OK(heddle_dnn_create_norm(&d, &make, &o));
            dnn_test_pieces(o, in, out, &y, NULL);
            heddle_dnn_destroy(o);
            check_norm(&d, in, y.p);
            for (size_t i = 0; i < x.n && t % 7 < 2; i++)
                CHECK(sum.p[i] == x.p[i] + res.p[i]);
        }
        guarded_free(&x);
        guarded_free(&y);
        guarded_free(&scale);
        guarded_free(&shift);
        guarded_free(&res);
        guarded_free(&sum);
    }
}

/* --- rotary positions --------------------------------------------------------- */

TEST(rope)
{
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    for (size_t t = 0; t < test_scale(60); t++) {
        struct dnn_rope d = {.size = sizeof(d),
                             .batch = 2,
                             .heads = 1 + below(&r, 3),
                             .len = 1 + below(&r, 9),
                             .dim = 2 + below(&r, 40),
                             .npos = 20,
                             .first_pos = below(&r, 15),
                             .is_interleaved = t % 2 == 0};
        const size_t half = 1 + below(&r, d.dim / 2);
        struct guarded cosine = guarded_random(&r, d.npos * half),
                       sine = guarded_random(&r, d.npos * half);
        struct guarded x, y;
        int64_t pos[18];

        d.rot = 2 * half;
        d.x = d.y = layout(t % 3 == 0, d.heads, d.len, d.dim);
        d.pos_batch = t % 4 < 2 ? d.len : 0;
        for (size_t i = 0; i < 18; i++)
            pos[i] = heddle_rng_range(&r, -3, 25);
        x = guarded_random(&r, d.batch * d.x.batch);
        y = guarded_new(x.n);
        EACH_ISA(isa)
        {
            const struct dnn_make make = dnn_test_make(isa, NULL, 0);
            const void *in[4] = {y.p, cosine.p, sine.p, t % 4 != 3 ? pos : NULL};
            void *out[1] = {y.p};
            struct heddle_dnn *o = NULL;

            CHECK_OK(heddle_dnn_create_rope(&d, &make, &o));
            dnn_test_pieces(o, in, out, &y, x.p);
            heddle_dnn_destroy(o);
        }
        for (size_t u = 0; u < d.batch * d.heads * d.len; u++) {
            const size_t i = u % d.len, b = u / d.len / d.heads;
            const size_t at = b * d.x.batch + u / d.len % d.heads * d.x.head + i * d.x.pos;
            const int64_t p = t % 4 == 3 ? (int64_t)(d.first_pos + i) : pos[b * d.pos_batch + i];
            const size_t row = p < 0 ? 0 : p > 19 ? 19 : (size_t)p;

            for (size_t k = 0; k < half; k++) {
                const size_t one = d.is_interleaved ? 2 * k : k,
                             two = d.is_interleaved ? 2 * k + 1 : k + half;
                const double c = (double)cosine.p[row * half + k],
                             s = (double)sine.p[row * half + k];
                const double a = (double)x.p[at + one], z = (double)x.p[at + two];

                CHECK_NEAR((double)y.p[at + one], a * c - z * s, 1e-6);
                CHECK_NEAR((double)y.p[at + two], a * s + z * c, 1e-6);
            }
            for (size_t k = d.rot; k < d.dim; k++)
                CHECK(y.p[at + k] == x.p[at + k]);
        }
        guarded_free(&cosine);
        guarded_free(&sine);
        guarded_free(&x);
        guarded_free(&y);
    }
}

TEST_MAIN(attention, softmax, norms, rope)
