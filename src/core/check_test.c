/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check: each kind of undeclared access is found and named; honest tasks give
 * the same results with the checker as without, in all modes, types and
 * layouts, nested or not; every allocation of the checker may fail.
 */
#include <sched.h>
#include <stdatomic.h>

#include "core/ctx.h"
#include "heddle/graph.h"
#include "test.h"

/* --- fixture -------------------------------------------------------------- */

static struct {
    heddle_ctx *ctx;
    char error[400]; /* the first one since start() */
} env;

static void on_message(void *user, enum heddle_severity severity, const char *text)
{
    (void)user;
    if (severity == HEDDLE_ERROR && env.error[0] == '\0')
        snprintf(env.error, sizeof(env.error), "%s", text);
}

static struct heddle_ctx_opts options(void)
{
    return (struct heddle_ctx_opts){.size = sizeof(struct heddle_ctx_opts),
                                    .check = HEDDLE_ON,
                                    .bind = HEDDLE_OFF,
                                    .model_dir = "",
                                    .message = on_message,
                                    .ignore_env = true};
}

static void start(void)
{
    const struct heddle_ctx_opts o = options();

    env.error[0] = '\0';
    CHECK_OK(heddle_ctx_create(&o, &env.ctx));
}

static void stop(void)
{
    CHECK_OK(heddle_ctx_destroy(env.ctx));
}

static heddle_handle *vector(void *ptr, size_t n, enum heddle_dtype t, const char *name)
{
    heddle_handle *h = NULL;

    CHECK_OK(heddle_handle_vector(env.ctx, ptr, n, t, &h));
    if (name != NULL)
        CHECK_OK(heddle_handle_set_name(h, name));
    return h;
}

#define KERNEL(fn, ...)                                                                            \
    {                                                                                              \
        .size = sizeof(heddle_kernel), .name = #fn,                                                \
        .noperands = sizeof((enum heddle_mode[]){__VA_ARGS__}) / sizeof(enum heddle_mode),         \
        .mode = {__VA_ARGS__}, .variants = {{.device = HEDDLE_DEV_CPU, .run = fn}},                \
    }

/* Runs one task and says how it ended. */
static heddle_status run(const heddle_kernel *k, heddle_handle *a, heddle_handle *b,
                         const void *arg, size_t bytes)
{
    const struct heddle_call call = {.operand = {a, b}, .arg = arg, .arg_bytes = bytes};

    CHECK_OK(heddle_submit(env.ctx, k, &call));
    return heddle_wait(env.ctx);
}

#define BLAMED(words) test_check(strstr(env.error, words) != NULL, TEST_AT, env.error)

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

/* Writes where the argument points. */
static heddle_status stray(struct heddle_exec *x)
{
    double *p;

    memcpy(&p, heddle_exec_arg(x), sizeof(p));
    *p += 1.0;
    return HEDDLE_OK;
}

static const heddle_kernel stray_rw = KERNEL(stray, HEDDLE_RW);

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

static heddle_status add_run(struct heddle_exec *x)
{
    const double *a = heddle_exec_ptr(x, 0);
    double *b = heddle_exec_ptr(x, 1);

    for (size_t i = 0; i < heddle_exec_count(x, 0); i++)
        b[i] += a[i];
    return HEDDLE_OK;
}

static const heddle_kernel add_r_rw = KERNEL(add_run, HEDDLE_R, HEDDLE_RW);

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

/* --- nesting -------------------------------------------------------------- */

static heddle_status inc_run(struct heddle_exec *x)
{
    double *p = heddle_exec_ptr(x, 0);

    for (size_t i = 0; i < heddle_exec_count(x, 0); i++)
        p[i] += 1.0;
    return HEDDLE_OK;
}

static const heddle_kernel inc = KERNEL(inc_run, HEDDLE_RW);

static heddle_status set_run(struct heddle_exec *x)
{
    double *p = heddle_exec_ptr(x, 0);

    for (size_t i = 0; i < heddle_exec_count(x, 0); i++)
        p[i] = 40.0;
    return HEDDLE_OK;
}

static const heddle_kernel set = KERNEL(set_run, HEDDLE_W);

struct halves {
    heddle_handle *half[2];
    int waits;
};

/* Both halves of the operand: the first by a child, the second by itself, while
 * the child may run; then, after a wait, each by the other. */
static heddle_status parent_run(struct heddle_exec *x)
{
    const struct halves *h = heddle_exec_arg(x);
    const struct heddle_call first = {.operand = {h->half[0]}};
    const struct heddle_call second = {.operand = {h->half[1]}};
    double *p = heddle_exec_ptr(x, 0);
    heddle_status st;

    for (int i = 0; i < 4; i++)
        p[i] = 10.0; /* the child sees this */
    st = heddle_exec_submit(x, &inc, &first);
    for (int i = 4; i < 8; i++)
        p[i] = 20.0;
    if (st == HEDDLE_OK) /* and this one that */
        st = heddle_exec_submit(x, &inc, &second);
    if (!h->waits || st != HEDDLE_OK)
        return st;
    st = heddle_exec_wait(x);
    for (int i = 0; i < 8; i++)
        if (p[i] != (i < 4 ? 11.0 : 21.0))
            return heddle_exec_fail(x, HEDDLE_ETASK, "children are not seen");
    for (int i = 0; i < 4; i++)
        p[i] *= 2;
    return st == HEDDLE_OK ? heddle_exec_submit(x, &inc, &second) : st;
}

static const heddle_kernel parent_rw = KERNEL(parent_run, HEDDLE_RW);
static const heddle_kernel parent_w = KERNEL(parent_run, HEDDLE_W);

TEST(children_and_parent_share)
{
    for (int k = 0; k < 4; k++) {
        double v[8] = {0};
        struct halves arg = {.waits = k & 1};
        heddle_handle *h;

        start();
        h = vector(v, 8, HEDDLE_F64, "v");
        for (size_t i = 0; i < 2; i++)
            CHECK_OK(heddle_view_box(h, (size_t[]){4 * i}, (size_t[]){4}, NULL, &arg.half[i]));
        CHECK_OK(run(k & 2 ? &parent_w : &parent_rw, h, NULL, &arg, sizeof(arg)));
        for (int i = 0; i < 8; i++)
            CHECK(v[i] == (arg.waits ? 22.0 : i < 4 ? 11.0 : 21.0));
        heddle_handle_unref(arg.half[0]);
        heddle_handle_unref(arg.half[1]);
        heddle_handle_unref(h);
        stop();
    }
}

/* Writes nothing itself: children do all of its output. */
static heddle_status delegate(struct heddle_exec *x)
{
    const struct halves *h = heddle_exec_arg(x);
    heddle_status st = HEDDLE_OK;

    for (int i = 0; i < 2 && st == HEDDLE_OK; i++)
        st = heddle_exec_submit(x, &set, &(struct heddle_call){.operand = {h->half[i]}});
    return st == HEDDLE_OK && h->waits ? heddle_exec_wait(x) : st;
}

static const heddle_kernel delegate_w = KERNEL(delegate, HEDDLE_W);

TEST(children_write_the_output)
{
    for (int k = 0; k < 2; k++) {
        double v[8] = {0};
        struct halves arg = {.waits = k};
        heddle_handle *h;

        start();
        h = vector(v, 8, HEDDLE_F64, "v");
        for (size_t i = 0; i < 2; i++)
            CHECK_OK(heddle_view_box(h, (size_t[]){4 * i}, (size_t[]){4}, NULL, &arg.half[i]));
        CHECK_OK(run(&delegate_w, h, NULL, &arg, sizeof(arg)));
        for (int i = 0; i < 8; i++)
            CHECK(v[i] == 40.0);
        heddle_handle_unref(arg.half[0]);
        heddle_handle_unref(arg.half[1]);
        heddle_handle_unref(h);
        stop();
    }
}

struct stray_arg {
    double *at;
    int when; /* 0: before the child, 1: after the wait */
};

static heddle_status stray_parent(struct heddle_exec *x)
{
    const struct stray_arg *a = heddle_exec_arg(x);
    heddle_status st;

    if (a->when == 0)
        *a->at += 1.0;
    st = heddle_exec_submit(x, &inc, &(struct heddle_call){.operand = {heddle_exec_operand(x, 0)}});
    if (st == HEDDLE_OK)
        st = heddle_exec_wait(x);
    if (a->when == 1)
        *a->at += 1.0;
    return st;
}

static const heddle_kernel stray_parent_rw = KERNEL(stray_parent, HEDDLE_RW);

TEST(finds_undeclared_write_of_a_parent)
{
    for (int k = 0; k < 2; k++) {
        double v[8] = {0}, b[8] = {0};
        const struct stray_arg arg = {.at = &b[1], .when = k};
        heddle_handle *h, *hb;

        start();
        h = vector(v, 8, HEDDLE_F64, "v");
        hb = vector(b, 8, HEDDLE_F64, "beta");
        CHECK_STATUS(run(&stray_parent_rw, h, NULL, &arg, sizeof(arg)), HEDDLE_EACCESS);
        BLAMED("changed handle beta, which it did not declare");
        heddle_handle_unref(h);
        heddle_handle_unref(hb);
        stop();
    }
}

/* A task may touch what it has registered itself. */
static heddle_status own_data(struct heddle_exec *x)
{
    double tmp[4] = {1, 2, 3, 4};
    heddle_handle *h = NULL;
    heddle_status st = heddle_handle_vector(heddle_exec_ctx(x), tmp, 4, HEDDLE_F64, &h);

    for (int i = 0; i < 2 && st == HEDDLE_OK; i++) {
        st = heddle_exec_submit(x, &inc, &(struct heddle_call){.operand = {h}});
        if (st == HEDDLE_OK)
            st = heddle_exec_wait(x);
        tmp[0] *= 2;
    }
    heddle_handle_unref(h);
    if (st == HEDDLE_OK && tmp[0] != 10.0)
        st = heddle_exec_fail(x, HEDDLE_ETASK, "a child's result is missing");
    *(double *)heddle_exec_ptr(x, 0) = tmp[0];
    return st;
}

static const heddle_kernel own_data_w = KERNEL(own_data, HEDDLE_W);

TEST(tasks_own_data)
{
    double v = 0;
    heddle_handle *h;

    start();
    h = vector(&v, 1, HEDDLE_F64, "v");
    CHECK_OK(run(&own_data_w, h, NULL, NULL, 0));
    CHECK(v == 10.0);
    heddle_handle_unref(h);
    stop();
}

TEST(recorded_tasks)
{
    double a[4] = {1, 2, 3, 4}, b[4] = {0}, *p = &b[1];
    heddle_handle *ha, *hb;
    heddle_graph *g;

    start();
    ha = vector(a, 4, HEDDLE_F64, "alpha");
    hb = vector(b, 4, HEDDLE_F64, "beta");
    CHECK_OK(heddle_graph_begin(env.ctx, &g));
    CHECK_OK(heddle_graph_submit(g, &inc, &(struct heddle_call){.operand = {ha}}));
    CHECK_OK(heddle_graph_submit(g, &add_r_rw, &(struct heddle_call){.operand = {ha, hb}}));
    CHECK_OK(heddle_graph_end(g));
    CHECK_OK(heddle_graph_launch(g, NULL));
    CHECK_OK(heddle_graph_launch(g, NULL));
    CHECK_OK(heddle_wait(env.ctx));
    CHECK(a[3] == 6.0 && b[3] == 5.0 + 6.0);
    heddle_graph_unref(g);
    CHECK_OK(heddle_graph_begin(env.ctx, &g));
    CHECK_OK(heddle_graph_submit(
        g, &stray_rw, &(struct heddle_call){.operand = {ha}, .arg = &p, .arg_bytes = 8}));
    CHECK_OK(heddle_graph_end(g));
    CHECK_OK(heddle_graph_launch(g, NULL));
    CHECK_STATUS(heddle_wait(env.ctx), HEDDLE_EACCESS);
    BLAMED("(kernel stray) failed: changed handle beta, which it did not");
    heddle_graph_unref(g);
    heddle_handle_unref(ha);
    heddle_handle_unref(hb);
    stop();
}

/* --- retries, other threads, no memory ------------------------------------ */

static heddle_status spoil(struct heddle_exec *x)
{
    *(double *)heddle_exec_ptr(x, 0) = -1.0;
    return HEDDLE_ETASK;
}

static const heddle_kernel second_try = {
    .size = sizeof(heddle_kernel),
    .name = "second_try",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = spoil},
                 {.device = HEDDLE_DEV_CPU, .run = inc_run}},
};

TEST(retry_starts_from_the_old_data)
{
    const struct heddle_task_opts opts = {.size = sizeof(opts), .retries = 1};
    double v = 5.0;
    heddle_handle *h;

    start();
    h = vector(&v, 1, HEDDLE_F64, "v");
    CHECK_OK(
        heddle_submit(env.ctx, &second_try, &(struct heddle_call){.operand = {h}, .opts = &opts}));
    CHECK_OK(heddle_wait(env.ctx));
    CHECK(v == 6.0);
    heddle_handle_unref(h);
    stop();
}

static atomic_int gate;

static heddle_status wait_for_gate(struct heddle_exec *x)
{
    atomic_store(&gate, 1);
    while (atomic_load(&gate) != 2)
        sched_yield();
    return inc_run(x);
}

static const heddle_kernel gated = KERNEL(wait_for_gate, HEDDLE_RW);

static void open_gate(void *user, heddle_status st)
{
    (void)user;
    CHECK_OK(st);
    atomic_store(&gate, 3);
}

static void wait_gate(int state)
{
    while (atomic_load(&gate) != state)
        sched_yield();
}

/* The program writes what it has acquired while a task runs: no fault, whether
 * it lets go of it before the task ends or after. */
TEST(acquired_data_are_the_programs)
{
    const struct heddle_task_opts opts = {.size = sizeof(opts), .done = open_gate};
    struct heddle_ctx_opts o = options();
    double v = 5.0, b[4] = {0};
    heddle_handle *h, *hb, *view;
    void *p;

    env.error[0] = '\0';
    o.helps = HEDDLE_OFF;
    CHECK_OK(heddle_ctx_create(&o, &env.ctx));
    h = vector(&v, 1, HEDDLE_F64, "v");
    hb = vector(b, 4, HEDDLE_F64, "beta");
    CHECK_OK(heddle_view_box(hb, (size_t[]){1}, (size_t[]){2}, NULL, &view));
    for (int k = 0; k < 2; k++) {
        atomic_store(&gate, 0);
        CHECK_OK(heddle_handle_acquire(view, HEDDLE_RW, &p));
        CHECK_OK(
            heddle_submit(env.ctx, &gated, &(struct heddle_call){.operand = {h}, .opts = &opts}));
        wait_gate(1);
        *(double *)p += 1.0;
        if (k == 0)
            CHECK_OK(heddle_handle_release(view));
        atomic_store(&gate, 2);
        wait_gate(3);
        if (k == 1)
            CHECK_OK(heddle_handle_release(view));
        CHECK_OK(heddle_wait(env.ctx));
    }
    CHECK(v == 7.0 && b[1] == 2.0);
    CHECK_STR(env.error, "");
    heddle_handle_unref(view);
    heddle_handle_unref(h);
    heddle_handle_unref(hb);
    stop();
}

struct failing {
    long left; /* allocations until one fails; < 0: none does */
    long live;
};

static void *failing_alloc(void *user, size_t bytes, size_t align)
{
    struct failing *f = user;
    void *p;

    if (f->left == 0)
        return NULL;
    f->left--;
    p = aligned_alloc(align, (bytes + align - 1) / align * align);
    f->live += p != NULL;
    return p;
}

static void failing_free(void *user, void *ptr, size_t bytes)
{
    struct failing *f = user;

    (void)bytes;
    f->live -= ptr != NULL;
    free(ptr);
}

/* With k allocations left for the run of one task, for every k. */
TEST(no_memory)
{
    for (long k = 0;; k++) {
        struct failing f = {.left = -1};
        struct heddle_ctx_opts o = options();
        double a[4] = {1, 1, 1, 1}, b[4] = {0};
        heddle_handle *ha, *hb;
        heddle_status st;

        env.error[0] = '\0';
        o.log = HEDDLE_OFF;
        o.allocator =
            (struct heddle_allocator){.alloc = failing_alloc, .free = failing_free, .user = &f};
        CHECK_OK(heddle_ctx_create(&o, &env.ctx));
        ha = vector(a, 4, HEDDLE_F64, NULL);
        hb = vector(b, 4, HEDDLE_F64, NULL);
        /* Once to have everything that stays. */
        CHECK_OK(run(&add_r_rw, ha, hb, NULL, 0));
        f.left = k;
        st = run(&add_r_rw, ha, hb, NULL, 0);
        f.left = -1;
        CHECK(b[0] == (st == HEDDLE_OK ? 2.0 : 1.0));
        if (st != HEDDLE_OK) {
            CHECK_STATUS(st, HEDDLE_ENOMEM);
            BLAMED("no memory for the access checker's copies");
        }
        heddle_handle_unref(ha);
        heddle_handle_unref(hb);
        stop();
        CHECK_EQ(f.live, 0);
        if (st == HEDDLE_OK) {
            CHECK(k >= 3);
            return;
        }
    }
}

TEST_MAIN(finds_write_to_read_only, finds_write_outside, finds_write_between_columns,
          finds_unwritten_output, finds_one_unwritten_number, failure_is_not_masked,
          finds_undeclared_write, strides_and_types, all_modes, operands_that_overlap,
          many_operands, children_and_parent_share, children_write_the_output,
          finds_undeclared_write_of_a_parent, tasks_own_data, recorded_tasks,
          retry_starts_from_the_old_data, acquired_data_are_the_programs, no_memory)
