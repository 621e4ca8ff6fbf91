/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrices from and to memory of the program: columns, and tiles of any size. */
#include "base/atomic.h"
#include "base/thread.h"
#include "la/la_test.h"

enum { GUARD = 5 }; /* elements before and behind the tiles */
static const size_t sizes[] = {0, 1, 7, 8, 9, 17};
static const size_t tiles[][2] = {{8, 8},   {1, 1},   {3, 5}, {9, 2},   {4, 8},       {17, 17},
                                  {100, 3}, {3, 100}, {1, 9}, {40, 40}, {SIZE_MAX, 4}};

#define FOR_SIZES(n)                                                                               \
    for (size_t at_##n = 0, n;                                                                     \
         at_##n < sizeof(sizes) / sizeof(sizes[0]) && ((n = sizes[at_##n]), 1); at_##n++)
#define FOR_TYPES(t) for (enum blas_type t = BLAS_S; t <= BLAS_Z; t++)

/* The tiles of rows i0 to i1 and columns j0 to j1, one after the other: the numbers
 * of their elements in column-major memory go to `order`. */
static size_t *list_tiles(size_t *order, size_t m, size_t i0, size_t i1, size_t j0, size_t j1,
                          size_t mb, size_t nb)
{
    for (size_t tj = j0; tj < j1; tj += la_min(nb, j1 - tj))
        for (size_t ti = i0; ti < i1; ti += la_min(mb, i1 - ti))
            for (size_t j = tj; j < tj + la_min(nb, j1 - tj); j++)
                for (size_t i = ti; i < ti + la_min(mb, i1 - ti); i++)
                    *order++ = j * m + i;
    return order;
}

static const size_t *tile_order(size_t m, size_t n, size_t mb, size_t nb)
{
    const size_t h = m / mb * mb, w = n / nb * nb;
    size_t *order = test_keep(m * n * sizeof(order[0])), *p = order;

    p = list_tiles(p, m, 0, h, 0, w, mb, nb);
    p = list_tiles(p, m, h, m, 0, w, mb, nb);
    p = list_tiles(p, m, 0, h, w, n, mb, nb);
    p = list_tiles(p, m, h, m, w, n, mb, nb);
    CHECK_EQ(p - order, m * n);
    return order;
}

/* A matrix in place (columns m + 3 apart, with NaN between them) or the runtime's. */
struct held {
    heddle_matrix *h;
    void *p;
    size_t ld;
};

static struct held hold(struct rig *r, enum blas_type t, struct ref v, size_t nb, bool is_in_place)
{
    struct held x = {.ld = v.m + 3};

    x.p = is_in_place ? ref_store(t, v, x.ld) : NULL;
    x.h = rig_matrix(r, t, v.m, v.n, x.p, x.ld, nb);
    if (!is_in_place)
        CHECK_OK(heddle_matrix_put(r->la, x.h, ref_store(t, v, v.m + 1), v.m + 1));
    return x;
}

static bool is_blank(const void *p, size_t bytes)
{
    const unsigned char *c = p;

    for (size_t i = 0; i < bytes; i++)
        if (c[i] != 0xff)
            return false;
    return true;
}

/* Ends with the matrix; what is between the columns has stayed. */
static void let_go(struct rig *r, enum blas_type t, struct held x)
{
    const size_t m = heddle_matrix_rows(x.h), n = heddle_matrix_cols(x.h);

    if (x.p != NULL && r->la->has_cuda)
        CHECK_OK(heddle_wait(r->ctx));
    heddle_matrix_destroy(x.h);
    for (size_t j = 0; j < n && x.p != NULL; j++)
        CHECK(is_blank((char *)x.p + (j * x.ld + m) * blas_bytes(t), 3 * blas_bytes(t)));
}

/* Memory for tiles, with NaN everywhere. */
static char *tile_memory(enum blas_type t, size_t n)
{
    const size_t bytes = (n + 2 * (size_t)GUARD) * blas_bytes(t);
    char *p = test_keep(bytes);

    memset(p, 0xff, bytes);
    return p + GUARD * blas_bytes(t);
}

static void check_guards(enum blas_type t, const char *p, size_t n)
{
    const size_t bytes = GUARD * blas_bytes(t);

    CHECK(is_blank(p - bytes, bytes));
    CHECK(is_blank(p + n * blas_bytes(t), bytes));
}

static void tiles_one(struct rig *r, enum blas_type t, size_t m, size_t n, size_t width,
                      const size_t *tile, bool is_in_place, struct heddle_rng *rng)
{
    const struct ref v = ref_random(t, m, n, rng);
    const size_t *order = tile_order(m, n, tile[0], tile[1]);
    const size_t bytes = blas_bytes(t), ld = m + 1;
    char *to = tile_memory(t, m * n), *from = tile_memory(t, m * n);
    char *plain = ref_store(t, v, la_max(m, 1)), *got;
    struct held x = hold(r, t, v, width, is_in_place);

    CHECK_OK(heddle_matrix_get_tiles(r->la, x.h, to, tile[0], tile[1]));
    check_guards(t, to, m * n);
    for (size_t k = 0; k < m * n; k++)
        CHECK(memcmp(to + k * bytes, plain + order[k] * bytes, bytes) == 0);
    let_go(r, t, x);

    for (size_t k = 0; k < m * n; k++)
        memcpy(from + k * bytes, plain + order[k] * bytes, bytes);
    x = hold(r, t, ref_new(m, n), width, is_in_place);
    CHECK_OK(heddle_matrix_put_tiles(r->la, x.h, from, tile[0], tile[1]));
    check_guards(t, from, m * n);
    got = ref_store(t, ref_new(m, n), ld);
    CHECK_OK(heddle_matrix_get(r->la, x.h, got, ld));
    for (size_t j = 0; j < n; j++) {
        CHECK(memcmp(got + j * ld * bytes, plain + j * m * bytes, m * bytes) == 0);
        CHECK(is_blank(got + (j * ld + m) * bytes, bytes));
    }
    let_go(r, t, x);
}

TEST(tiles_and_columns)
{
    static const size_t widths[] = {1, 4, 8, 30};
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    for (size_t k = 0; k < sizeof(tiles) / sizeof(tiles[0]); k++)
        FOR_SIZES(m)
    FOR_SIZES(n)
    {
        const size_t pick = heddle_rng_next(&rng) % 8;

        if (test_is_slow() && (at_m + at_n + k) % 3 != (size_t)t % 3)
            continue;
        tiles_one(&r, t, m, n, widths[pick % 4], tiles[k], pick < 4, &rng);
        test_forget();
    }
    tiles_one(&r, BLAS_D, 200, 300, 37, (size_t[]){32, 48}, true, &rng);
    tiles_one(&r, BLAS_Z, 300, 200, 64, (size_t[]){64, 64}, false, &rng);
    rig_close(&r);
}

/* From tiles of one size to tiles of another one. */
TEST(there_and_back)
{
    struct heddle_rng rng;
    RIG(r);

    heddle_rng_seed(&rng, test_seed());
    FOR_TYPES(t)
    {
        const size_t m = 61, n = 47, bytes = blas_bytes(t);
        const size_t *a = tile_order(m, n, 16, 16), *b = tile_order(m, n, 10, 21);
        char *from = ref_store(t, ref_random(t, m, n, &rng), m);
        char *other = tile_memory(t, m * n), *back = tile_memory(t, m * n);
        char *plain = test_keep(m * n * bytes);
        struct held x = hold(&r, t, ref_new(m, n), 9, t % 2 == 0);

        CHECK_OK(heddle_matrix_put_tiles(r.la, x.h, from, 16, 16));
        CHECK_OK(heddle_matrix_get_tiles(r.la, x.h, other, 10, 21));
        CHECK_OK(heddle_matrix_get_tiles(r.la, x.h, back, 16, 16));
        CHECK(memcmp(from, back, m * n * bytes) == 0);
        for (size_t k = 0; k < m * n; k++)
            memcpy(plain + a[k] * bytes, from + k * bytes, bytes);
        for (size_t k = 0; k < m * n; k++)
            CHECK(memcmp(plain + b[k] * bytes, other + k * bytes, bytes) == 0);
        let_go(&r, t, x);
        test_forget();
    }
    rig_close(&r);
}

/* Both come after the calls before them, and before those that follow. */
TEST(between_calls)
{
    RIG(r);

    for (unsigned i = 0; i < 20; i++) {
        enum { M = 40, N = 50 };
        double *from = test_keep(M * N * sizeof(double));
        double *to = test_keep(M * N * sizeof(double));
        struct held x = hold(&r, BLAS_D, ref_new(M, N), 7, i % 2 == 0);
        const double two = 2, zero = 0, one = 1;

        for (size_t k = 0; k < (size_t)M * N; k++)
            from[k] = (double)k;
        CHECK_OK(heddle_la_laset(r.la, 'A', &one, &two, x.h));
        CHECK_OK(heddle_matrix_put_tiles(r.la, x.h, from, 16, 16));
        CHECK_OK(heddle_la_geadd(r.la, 'A', &two, x.h, &zero, x.h));
        CHECK_OK(heddle_matrix_get_tiles(r.la, x.h, to, 16, 16));
        CHECK_OK(heddle_la_laset(r.la, 'A', &one, &two, x.h));
        for (size_t k = 0; k < (size_t)M * N; k++)
            CHECK(to[k] == 2 * from[k]);
        rig_wait(&r, 0);
        let_go(&r, BLAS_D, x);
        test_forget();
    }
    rig_close(&r);
}

static heddle_status run_fail(struct heddle_exec *x)
{
    (void)x;
    return HEDDLE_EIO;
}

static const heddle_kernel kernel_fail = {
    .size = sizeof(heddle_kernel),
    .name = "fail",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_fail}}};

/* Data of a task that failed are not copied; new ones make them good. */
TEST(failed_data)
{
    double from[20 * 10], to[20 * 10];
    struct held x;
    int info = -1;
    RIG(r);

    memset(from, 0, sizeof(from));
    memset(to, 0xff, sizeof(to));
    x = hold(&r, BLAS_D, ref_new(20, 10), 10, false);
    CHECK_OK(heddle_submit(r.ctx, &kernel_fail,
                           &(struct heddle_call){.operand = {heddle_matrix_column(x.h, 0)}}));
    CHECK_STATUS(heddle_matrix_get_tiles(r.la, x.h, to, 8, 8), HEDDLE_EIO);
    CHECK_STATUS(heddle_matrix_get(r.la, x.h, to, 20), HEDDLE_EIO);
    CHECK(is_blank(to, sizeof(to)));
    CHECK_STATUS(heddle_wait(r.ctx), HEDDLE_EIO);
    CHECK_STATUS(heddle_matrix_get_tiles(r.la, x.h, to, 8, 8), HEDDLE_EIO);
    CHECK_OK(heddle_wait(r.ctx)); /* which is no failure of a task */
    CHECK_OK(heddle_matrix_put_tiles(r.la, x.h, from, 8, 8));
    CHECK_OK(heddle_matrix_get_tiles(r.la, x.h, to, 8, 8));
    CHECK(memcmp(from, to, sizeof(to)) == 0);
    CHECK_OK(heddle_la_wait(r.la, &info)); /* not the sequence's */
    CHECK_EQ(info, 0);
    let_go(&r, BLAS_D, x);
    rig_close(&r);
}

TEST(illegal_arguments)
{
    double v[12] = {0};
    heddle_matrix *a, *none;
    int info = -1;
    RIG(r);

    a = rig_matrix(&r, BLAS_D, 3, 4, NULL, 0, 2);
    none = rig_matrix(&r, BLAS_D, 0, 4, NULL, 0, 2);
    CHECK_STATUS(heddle_matrix_put_tiles(NULL, a, v, 2, 2), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_matrix_put_tiles(r.la, NULL, v, 2, 2), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_matrix_put_tiles(r.la, a, NULL, 2, 2), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_matrix_put_tiles(r.la, a, v, 0, 2), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_matrix_put_tiles(r.la, a, v, 2, 0), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_matrix_get_tiles(NULL, a, v, 2, 2), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_matrix_get_tiles(r.la, NULL, v, 2, 2), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_matrix_get_tiles(r.la, a, NULL, 2, 2), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_matrix_get_tiles(r.la, a, v, 0, 2), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_matrix_get_tiles(r.la, a, v, 2, 0), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_matrix_put(NULL, a, v, 3), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_matrix_put(r.la, NULL, v, 3), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_matrix_put(r.la, a, NULL, 3), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_matrix_put(r.la, a, v, 2), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_matrix_get(r.la, a, v, 2), HEDDLE_EINVAL);
    CHECK_OK(heddle_matrix_put(r.la, none, NULL, 0));
    CHECK_OK(heddle_matrix_get(r.la, none, NULL, 0));
    CHECK_OK(heddle_matrix_put_tiles(r.la, none, NULL, 1, 1));
    CHECK_OK(heddle_matrix_get_tiles(r.la, none, NULL, 1, 1));
    CHECK_OK(heddle_la_wait(r.la, &info)); /* these are no calls of LAPACK */
    CHECK_EQ(info, 0);
    heddle_matrix_destroy(a);
    heddle_matrix_destroy(none);
    rig_close(&r);
}

/* --- others meanwhile ---------------------------------------------------------- */

static _Atomic uint32_t may_end;

static heddle_status run_until(struct heddle_exec *x)
{
    (void)x;
    while (heddle_load_acq(&may_end) == 0)
        heddle_thread_sleep_ns(100000);
    return HEDDLE_OK;
}

static heddle_status run_nothing(struct heddle_exec *x)
{
    (void)x;
    return HEDDLE_OK;
}

struct getter {
    struct rig *r;
    heddle_matrix *a;
    double to[9];
    heddle_status st;
};

static void *get_all(void *arg)
{
    struct getter *g = arg;

    g->st = heddle_matrix_get(g->r->la, g->a, g->to, 3);
    return NULL;
}

/* A get that waits for column 1 does not have column 0: a task that wants columns 0 and
 * 2 comes before it gets column 2. */
TEST(one_at_a_time)
{
    static const heddle_kernel until = {.size = sizeof(heddle_kernel),
                                        .name = "until",
                                        .noperands = 1,
                                        .mode = {HEDDLE_RW},
                                        .variants = {{.device = HEDDLE_DEV_CPU, .run = run_until}}},
                               both = {
                                   .size = sizeof(heddle_kernel),
                                   .name = "both",
                                   .noperands = 2,
                                   .mode = {HEDDLE_RW, HEDDLE_RW},
                                   .variants = {{.device = HEDDLE_DEV_CPU, .run = run_nothing}}};
    const struct heddle_thread_opts o = {.name = "getter"};
    struct heddle_thread thread;
    RIG(r);
    struct getter g = {.r = &r};

    heddle_store_rel(&may_end, 0u);
    g.a = rig_matrix(&r, BLAS_D, 3, 3, NULL, 3, 1);
    CHECK_OK(heddle_submit(r.ctx, &until, &(struct heddle_call){.operand = {g.a->col[1]}}));
    CHECK_OK(heddle_thread_create(&thread, &o, get_all, &g));
    heddle_thread_sleep_ns(50000000); /* it waits for column 1 by now */
    CHECK_OK(
        heddle_submit(r.ctx, &both, &(struct heddle_call){.operand = {g.a->col[0], g.a->col[2]}}));
    heddle_store_rel(&may_end, 1u);
    CHECK_OK(heddle_thread_join(&thread));
    CHECK_OK(g.st);
    heddle_matrix_destroy(g.a);
    rig_close(&r);
}

TEST_MAIN(tiles_and_columns, there_and_back, between_calls, failed_data, illegal_arguments,
          one_at_a_time)
