/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check: each kind of undeclared access is found and named; honest tasks give
 * the same results with the checker as without, in all modes, types and layouts.
 */
#include "core/check_rig_test.h"

/* --- faults --------------------------------------------------------------- */

/* Writes at operand[arg] + offset: {operand, offset in elements}. */
static heddle_status poke(struct heddle_exec *x)
{
    const ptrdiff_t *arg = heddle_exec_arg(x);
    double *p = heddle_exec_ptr(x, (unsigned)arg[0]);

    p[arg[1]] = 1.0;
    return HEDDLE_OK;
}

static const heddle_kernel poke_r_rw = KERNEL(poke, HEDDLE_R, HEDDLE_RW);

TEST(finds_write_to_read_only)
{
    double a[8] = {0}, b[8] = {0};
    heddle_handle *ha, *hb;

    start();
    ha = vector(a, 8, HEDDLE_F64, "alpha");
    hb = vector(b, 8, HEDDLE_F64, NULL);
    CHECK_OK(run(&poke_r_rw, ha, hb, (ptrdiff_t[]){1, 7}, 16));
    CHECK(b[7] == 1.0);
    CHECK_STATUS(run(&poke_r_rw, ha, hb, (ptrdiff_t[]){0, 3}, 16), HEDDLE_EACCESS);
    BLAMED("(kernel poke) failed: wrote operand 0 (alpha), which it declared "
           "read-only");
    CHECK(a[3] == 0.0); /* it was a copy */
    heddle_handle_unref(ha);
    heddle_handle_unref(hb);
    stop();
}

TEST(finds_write_outside)
{
    static const ptrdiff_t where[] = {-1, -30, 8, 9, 39};

    for (size_t i = 0; i < sizeof(where) / sizeof(where[0]); i++) {
        double b[8] = {0};
        heddle_handle *hb;

        start();
        hb = vector(b, 8, HEDDLE_F64, "beta");
        CHECK_STATUS(run(&poke_r_rw, hb, hb, (ptrdiff_t[]){1, where[i]}, 16), HEDDLE_EACCESS);
        BLAMED("wrote outside of operand 0 (beta)");
        heddle_handle_unref(hb);
        stop();
    }
}

static const heddle_kernel poke_rw = KERNEL(poke, HEDDLE_RW);

TEST(finds_write_between_columns)
{
    double m[4 * 10] = {0};
    heddle_handle *h, *tile;
    ptrdiff_t at[2] = {0, 0};

    start();
    CHECK_OK(heddle_handle_matrix(env.ctx, m, 8, 4, 10, HEDDLE_F64, &h));
    CHECK_OK(heddle_view_tile(h, 1, 1, 3, 2, &tile));
    for (at[1] = 0; at[1] < 13; at[1]++) {
        const bool inside = at[1] % 10 < 3;

        env.error[0] = '\0';
        CHECK_STATUS(run(&poke_rw, tile, NULL, at, sizeof(at)),
                     inside ? HEDDLE_OK : HEDDLE_EACCESS);
        if (!inside)
            BLAMED("wrote outside of operand 0 (view ");
        if (!inside)
            CHECK_OK(heddle_handle_restore(tile));
        CHECK(m[3 + 20 + at[1]] == (inside ? 1.0 : 0.0));
    }
    heddle_handle_unref(tile);
    heddle_handle_unref(h);
    stop();
}

struct part {
    size_t first, n;
};

/* Writes n elements from first on, as bytes 1. */
static heddle_status fill(struct heddle_exec *x)
{
    const struct part *p = heddle_exec_arg(x);
    const size_t elem = heddle_dtype_bytes(heddle_exec_layout(x, 0)->dtype);

    memset((char *)heddle_exec_ptr(x, 0) + p->first * elem, 1, p->n * elem);
    return HEDDLE_OK;
}

static const heddle_kernel fill_w = KERNEL(fill, HEDDLE_W);

TEST(finds_unwritten_output)
{
    static const enum heddle_dtype type[] = {HEDDLE_U8,  HEDDLE_I32,  HEDDLE_I64,
                                             HEDDLE_F16, HEDDLE_BF16, HEDDLE_F32,
                                             HEDDLE_F64, HEDDLE_C64,  HEDDLE_C128};

    for (size_t i = 0; i < sizeof(type) / sizeof(type[0]); i++) {
        unsigned char m[100 * 16];
        heddle_handle *h;

        start();
        memset(m, 7, sizeof(m));
        h = vector(m, 100, type[i], "out");
        CHECK_OK(run(&fill_w, h, NULL, &(struct part){0, 100}, 16));
        CHECK(m[0] == 1 && m[100 * heddle_dtype_bytes(type[i]) - 1] == 1);
        CHECK_STATUS(run(&fill_w, h, NULL, &(struct part){0, 0}, 16), HEDDLE_EACCESS);
        BLAMED("left operand 0 (out) unwritten");
        BLAMED("which it declared as output");
        env.error[0] = '\0';
        CHECK_STATUS(run(&fill_w, h, NULL, &(struct part){20, 80}, 16), HEDDLE_EACCESS);
        BLAMED("left part of operand 0 (out) unwritten");
        heddle_handle_unref(h);
        stop();
    }
}

TEST(finds_one_unwritten_number)
{
    float m[100] = {0};
    heddle_handle *h;

    start();
    h = vector(m, 100, HEDDLE_F32, "out");
    CHECK_STATUS(run(&fill_w, h, NULL, &(struct part){0, 99}, 16), HEDDLE_EACCESS);
    BLAMED("left part of operand 0 (out)");
    heddle_handle_unref(h);
    stop();
}

/* A failed task owes no output; its own status and words stay. */
static heddle_status give_up(struct heddle_exec *x)
{
    return heddle_exec_fail(x, HEDDLE_ETASK, "the pivot is zero");
}

static const heddle_kernel give_up_w = KERNEL(give_up, HEDDLE_W);

TEST(failure_is_not_masked)
{
    float m[100] = {0};
    heddle_handle *h;

    start();
    h = vector(m, 100, HEDDLE_F32, "out");
    CHECK_STATUS(run(&give_up_w, h, NULL, NULL, 0), HEDDLE_ETASK);
    BLAMED("the pivot is zero");
    CHECK(m[5] == 0.0f);
    heddle_handle_unref(h);
    stop();
}

TEST(finds_undeclared_write)
{
    double a[8] = {0}, b[8] = {0}, other[8] = {0}, *p;
    heddle_handle *ha, *hb, *view;

    start();
    ha = vector(a, 8, HEDDLE_F64, "alpha");
    hb = vector(b, 8, HEDDLE_F64, "beta");
    p = &other[2]; /* no handle knows it */
    CHECK_OK(run(&stray_rw, ha, NULL, &p, sizeof(p)));
    p = &b[2];
    CHECK_STATUS(run(&stray_rw, ha, NULL, &p, sizeof(p)), HEDDLE_EACCESS);
    BLAMED("changed handle beta, which it did not declare");
    CHECK_OK(heddle_handle_restore(ha));
    env.error[0] = '\0';
    p = &a[7];
    CHECK_OK(heddle_view_box(ha, (size_t[]){0}, (size_t[]){4}, NULL, &view));
    CHECK_STATUS(run(&stray_rw, view, NULL, &p, sizeof(p)), HEDDLE_EACCESS);
    BLAMED("changed handle alpha, which holds its operand 0, but not through");
    heddle_handle_unref(view);
    heddle_handle_unref(ha);
    heddle_handle_unref(hb);
    stop();
}

/* --- honest tasks --------------------------------------------------------- */

static heddle_status copy_twice(struct heddle_exec *x)
{
    const unsigned char *src = heddle_exec_ptr(x, 0);
    unsigned char *dst = heddle_exec_ptr(x, 1);
    const struct heddle_layout *ls = heddle_exec_layout(x, 0);
    const struct heddle_layout *ld = heddle_exec_layout(x, 1);
    const size_t elem = heddle_dtype_bytes(ls->dtype);

    for (size_t i = 0; i < ls->extent[0]; i++)
        for (size_t j = 0; j < ls->extent[1]; j++)
            memcpy(dst + (i * ld->stride[0] + j * ld->stride[1]) * elem,
                   src + (i * ls->stride[0] + j * ls->stride[1]) * elem, elem);
    return HEDDLE_OK;
}

static const heddle_kernel copy_r_w = KERNEL(copy_twice, HEDDLE_R, HEDDLE_W);

/* Strided boxes of all types arrive whole, and nothing else changes. */
TEST(strides_and_types)
{
    for (int t = HEDDLE_U8; t <= HEDDLE_C128; t++) {
        const size_t elem = heddle_dtype_bytes((enum heddle_dtype)t);
        unsigned char a[12 * 9 * 16 + 1], b[12 * 9 * 16 + 1];
        heddle_handle *ha, *hb, *va, *vb;
        const struct heddle_layout row = {
            .dtype = (enum heddle_dtype)t, .ndim = 2, .extent = {9, 11}, .stride = {12, 1}};

        start();
        for (size_t i = 0; i < sizeof(a); i++) {
            a[i] = (unsigned char)(i * 31 + 5);
            b[i] = 0xee;
        }
        CHECK_OK(heddle_handle_create(env.ctx, &row, a + 1, &ha));
        CHECK_OK(heddle_handle_matrix(env.ctx, b, 11, 9, 12, (enum heddle_dtype)t, &hb));
        CHECK_OK(heddle_view_box(ha, (size_t[]){1, 2}, (size_t[]){3, 4}, (size_t[]){2, 2}, &va));
        CHECK_OK(heddle_view_box(hb, (size_t[]){0, 1}, (size_t[]){3, 4}, (size_t[]){3, 2}, &vb));
        CHECK_OK(run(&copy_r_w, va, vb, NULL, 0));
        for (size_t k = 0; k < 12 * 9; k++) {
            const size_t i = k % 12, j = k / 12;
            const bool is_in = i % 3 == 0 && i < 9 && j % 2 == 1 && j >= 1 && j < 9;
            const unsigned char *want = a + 1 + ((1 + i / 3 * 2) * 12 + 2 + (j - 1) / 2 * 2) * elem;

            for (size_t e = 0; e < elem; e++)
                CHECK_EQ(b[k * elem + e], is_in ? want[e] : 0xee);
        }
        heddle_handle_unref(va);
        heddle_handle_unref(vb);
        heddle_handle_unref(ha);
        heddle_handle_unref(hb);
        stop();
    }
}

static heddle_status modes_run(struct heddle_exec *x)
{
    const int64_t *r = heddle_exec_ptr(x, 0);
    int64_t *rw = heddle_exec_ptr(x, 1), *c = heddle_exec_ptr(x, 2);
    int64_t *sum = heddle_exec_ptr(x, 3), *tmp = heddle_exec_ptr(x, 4);

    for (size_t i = 0; i < heddle_exec_count(x, 0); i++) {
        tmp[i] = r[i] + 1;
        rw[i] = 3 * rw[i] + tmp[i];
        c[i] += tmp[i];
        sum[i] += tmp[i];
    }
    return HEDDLE_OK;
}

static const heddle_kernel modes =
    KERNEL(modes_run, HEDDLE_R, HEDDLE_RW, HEDDLE_COMMUTE, HEDDLE_REDUCE, HEDDLE_SCRATCH);

TEST(all_modes)
{
    enum { N = 5 };
    int64_t v[4][N], want = 0;
    heddle_handle *h[5];

    start();
    for (int k = 0; k < 4; k++) {
        for (int i = 0; i < N; i++)
            v[k][i] = k;
        h[k] = vector(v[k], N, HEDDLE_I64, NULL);
    }
    h[4] = vector(NULL, N, HEDDLE_I64, "tmp");
    CHECK_OK(heddle_handle_set_sum(h[3]));
    for (int i = 0; i < 10; i++)
        CHECK_OK(heddle_submit(env.ctx, &modes,
                               &(struct heddle_call){.operand = {h[0], h[1], h[2], h[3], h[4]}}));
    CHECK_OK(heddle_handle_acquire(h[3], HEDDLE_R, NULL));
    CHECK_OK(heddle_handle_release(h[3]));
    CHECK_OK(heddle_wait(env.ctx));
    want = 1;
    for (int i = 0; i < 10; i++)
        want = 3 * want + 1;
    for (int i = 0; i < N; i++) {
        CHECK_EQ(v[0][i], 0);
        CHECK_EQ(v[1][i], want);
        CHECK_EQ(v[2][i], 12);
        CHECK_EQ(v[3][i], 13);
    }
    for (int k = 0; k < 5; k++)
        heddle_handle_unref(h[k]);
    stop();
}

TEST(operands_that_overlap)
{
    double a[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    heddle_handle *h, *lo, *hi;

    start();
    h = vector(a, 8, HEDDLE_F64, NULL);
    CHECK_OK(heddle_view_box(h, (size_t[]){0}, (size_t[]){4}, NULL, &lo));
    CHECK_OK(heddle_view_box(h, (size_t[]){2}, (size_t[]){4}, NULL, &hi));
    CHECK_OK(run(&add_r_rw, h, h, NULL, 0)); /* one unit twice */
    CHECK(a[0] == 2 && a[7] == 16);
    CHECK_OK(run(&add_r_rw, lo, hi, NULL, 0)); /* no shadows */
    CHECK(a[1] == 4 && a[2] == 8 && a[3] == 12 && a[4] == 18 && a[5] == 24);
    heddle_handle_unref(lo);
    heddle_handle_unref(hi);
    heddle_handle_unref(h);
    stop();
}

static heddle_status sum_many(struct heddle_exec *x)
{
    const unsigned n = heddle_exec_noperands(x);
    int32_t *out = heddle_exec_ptr(x, n - 1);

    for (unsigned i = 0; i + 1 < n; i++)
        *out += *(const int32_t *)heddle_exec_ptr(x, i);
    return HEDDLE_OK;
}

static const heddle_kernel many = {
    .size = sizeof(heddle_kernel),
    .name = "many",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = sum_many}},
};

TEST(many_operands)
{
    enum { N = 24 };
    int32_t v[N];
    heddle_handle *h[N];
    enum heddle_mode mode[N];
    struct heddle_call call = {.noperands = N, .operands = h, .modes = mode};

    start();
    for (int i = 0; i < N; i++) {
        v[i] = i;
        mode[i] = i == N - 1 ? HEDDLE_RW : HEDDLE_R;
        h[i] = vector(&v[i], 1, HEDDLE_I32, NULL);
    }
    CHECK_OK(heddle_submit(env.ctx, &many, &call));
    CHECK_OK(heddle_wait(env.ctx));
    CHECK_EQ(v[N - 1], N * (N - 1) / 2);
    for (int i = 0; i < N; i++)
        heddle_handle_unref(h[i]);
    stop();
}

TEST_MAIN(finds_write_to_read_only, finds_write_outside, finds_write_between_columns,
          finds_unwritten_output, finds_one_unwritten_number, failure_is_not_masked,
          finds_undeclared_write, strides_and_types, all_modes, operands_that_overlap,
          many_operands)
