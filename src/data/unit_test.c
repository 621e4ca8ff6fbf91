/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit: layouts, memory, marks and partial results of handles, against naive loops
 * over all elements; each allocation failing.
 */
#include "base/alloc.h"
#include "base/faulty_test.h"
#include "base/rng.h"
#include "base/thread.h"
#include "data/data.h"
#include "data/make_test.h"
#include "tests/test.h"

/* --- layouts ---------------------------------------------------------------*/

TEST(types)
{
    CHECK_EQ(heddle_dtype_bytes(HEDDLE_U8), 1);
    CHECK_EQ(heddle_dtype_bytes(HEDDLE_BF16), 2);
    CHECK_EQ(heddle_dtype_bytes(HEDDLE_C128), 16);
    CHECK_EQ(heddle_dtype_bytes((enum heddle_dtype)0), 0);
    CHECK_EQ(heddle_dtype_bytes((enum heddle_dtype)99), 0);
    CHECK_EQ(heddle_dtype_bytes((enum heddle_dtype) - 1), 0);
    CHECK_STR(heddle_dtype_name(HEDDLE_F32), "f32");
    CHECK_STR(heddle_dtype_name((enum heddle_dtype)0), "unknown");
    CHECK_STR(heddle_dtype_name((enum heddle_dtype)99), "unknown");
}

TEST(bad_layouts_are_refused)
{
    const size_t big = (size_t)1 << 40;
    static const enum heddle_dtype f64 = HEDDLE_F64;
    const struct {
        heddle_status want;
        struct heddle_layout l;
    } bad[] = {
        {HEDDLE_EINVAL, {.dtype = 0, .ndim = 1, .extent = {4}}},
        {HEDDLE_EINVAL, {.dtype = 99, .ndim = 1, .extent = {4}}},
        {HEDDLE_EINVAL, {.dtype = f64, .ndim = 0, .extent = {4}}},
        {HEDDLE_EINVAL, {.dtype = f64, .ndim = 9, .extent = {4}}},
        {HEDDLE_EINVAL, {.dtype = f64, .ndim = 1, .extent = {0}}},
        {HEDDLE_EINVAL, {.dtype = f64, .ndim = 2, .extent = {4, 0}}},
        /* a stride of 0 among others; two dimensions with the same stride */
        {HEDDLE_EINVAL, {.dtype = f64, .ndim = 2, .extent = {4, 4}, .stride = {0, 1}}},
        {HEDDLE_EINVAL, {.dtype = f64, .ndim = 2, .extent = {4, 4}, .stride = {1, 1}}},
        /* columns 3 apart that are 4 long */
        {HEDDLE_EINVAL, {.dtype = f64, .ndim = 2, .extent = {4, 4}, .stride = {1, 3}}},
        {HEDDLE_EOVERFLOW, {.dtype = f64, .ndim = 2, .extent = {big, big}}},
        {HEDDLE_EOVERFLOW, {.dtype = f64, .ndim = 1, .extent = {SIZE_MAX}}},
        {HEDDLE_EOVERFLOW, {.dtype = f64, .ndim = 1, .extent = {SIZE_MAX / 8}}},
        {HEDDLE_EOVERFLOW, {.dtype = f64, .ndim = 1, .extent = {2}, .stride = {SIZE_MAX / 8}}},
        {HEDDLE_EOVERFLOW,
         {.dtype = f64, .ndim = 2, .extent = {2, 2}, .stride = {SIZE_MAX - 1, 2}}},
    };
    struct heddle_registry reg;
    struct faulty f;

    faulty_init(&f, 0);
    heddle_registry_init(&reg, NULL, &f.a);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        heddle_handle *h = (void *)&reg; /* stays as it is */

        CHECK_STATUS(heddle_unit_create(&reg, &bad[i].l, NULL, &h), bad[i].want);
        CHECK(h == (void *)&reg);
    }
    CHECK_EQ(f.nlive, 0);
    CHECK(reg.units == NULL);
    heddle_registry_fini(&reg);
}

TEST(good_layouts_are_completed)
{
    struct heddle_layout l = {.dtype = HEDDLE_F32, .ndim = 3, .extent = {2, 3, 5}};
    struct heddle_registry reg;
    heddle_handle *h;
    char buf[32];

    heddle_registry_init(&reg, NULL, &heddle_allocator_default);
    h = make(&reg, &l, NULL);
    CHECK_EQ(h->count, 30);
    CHECK_EQ(h->bytes, 120);
    CHECK_EQ(h->span_bytes, 120);
    CHECK_EQ(h->layout.stride[0], 15);
    CHECK_EQ(h->layout.stride[1], 5);
    CHECK_EQ(h->layout.stride[2], 1);
    CHECK_STR(heddle_unit_name(h, buf, sizeof(buf)), "handle 1");
    drop(h);
    /* column-major with a leading dimension; a dimension of one element may
     * have any stride */
    l = (struct heddle_layout){
        .dtype = HEDDLE_F64, .ndim = 3, .extent = {4, 3, 1}, .stride = {1, 7, 0}};
    h = make(&reg, &l, NULL);
    CHECK_EQ(h->count, 12);
    CHECK_EQ(h->span_bytes, 8 * (3 + 2 * 7 + 1));
    CHECK_EQ(h->dense.stride[0], 3);
    CHECK_EQ(h->dense.stride[1], 1);
    drop(h);
    heddle_registry_fini(&reg);
}

/* Do two of the elements lie at the same place? */
static bool elements_overlap(const struct heddle_layout *l)
{
    unsigned char used[256] = {0};

    for (size_t i = 0; i < l->extent[0]; i++)
        for (size_t j = 0; j < l->extent[1]; j++)
            for (size_t k = 0; k < l->extent[2]; k++)
                if (used[i * l->stride[0] + j * l->stride[1] + k * l->stride[2]]++ != 0)
                    return true;
    return false;
}

TEST(overlapping_strides_are_found)
{
    struct heddle_registry reg;
    struct heddle_rng rng;
    size_t nbad = 0, ngood = 0;

    heddle_registry_init(&reg, NULL, &heddle_allocator_default);
    heddle_rng_seed(&rng, test_seed());
    for (size_t i = 0; i < test_scale(20000); i++) {
        struct heddle_layout l = {.dtype = HEDDLE_U8, .ndim = 3};
        heddle_handle *h = NULL;
        heddle_status st;

        for (unsigned d = 0; d < 3; d++) {
            l.extent[d] = 1 + heddle_rng_below32(&rng, 4);
            l.stride[d] = 1 + heddle_rng_below32(&rng, 20);
        }
        st = heddle_unit_create(&reg, &l, NULL, &h);
        CHECK(st == HEDDLE_OK || st == HEDDLE_EINVAL);
        if (elements_overlap(&l)) {
            CHECK_STATUS(st, HEDDLE_EINVAL);
            nbad++;
        }
        if (st == HEDDLE_OK) {
            drop(h);
            ngood++;
        }
    }
    CHECK(nbad > 100 || TEST_SANITIZED);
    CHECK(ngood > 100 || TEST_SANITIZED);
    heddle_registry_fini(&reg);
}

/* --- memory ----------------------------------------------------------------*/

TEST(memory_on_first_use)
{
    struct heddle_layout l = vector(100, HEDDLE_F64);
    struct heddle_registry reg;
    heddle_handle *h, *v, *g;
    struct faulty f;
    const double *p;
    double own[4];

    faulty_init(&f, 0);
    heddle_registry_init(&reg, NULL, &f.a);
    reg.budget = 1000;
    h = make(&reg, &l, NULL);
    v = make_part(h, 10, 20, 2);
    CHECK_EQ(reg.used, 0);
    CHECK(heddle_load_rlx(&v->base) == NULL);
    p = heddle_unit_base(v);
    CHECK(p != NULL);
    CHECK_EQ(p[0], 0); /* zeroed */
    CHECK_EQ(p - (double *)heddle_unit_base(h), 10);
    CHECK_EQ((uintptr_t)heddle_unit_base(h) % 64, 0);
    CHECK_EQ(reg.used, 800);
    CHECK_EQ(reg.peak, 800);
    g = make(&reg, &l, NULL);
    CHECK(heddle_unit_base(g) == NULL); /* 1600 > 1000 */
    CHECK_EQ(reg.used, 800);
    drop(v);
    drop(h);
    CHECK_EQ(reg.used, 0);
    CHECK_EQ(reg.peak, 800);
    CHECK(heddle_unit_base(g) != NULL);
    drop(g);
    /* memory of the caller does not count and is not freed */
    l = vector(4, HEDDLE_F64);
    h = make(&reg, &l, own);
    v = make_part(h, 3, 1, 1);
    CHECK(heddle_unit_base(h) == (void *)own);
    CHECK(heddle_unit_base(v) == (void *)&own[3]);
    CHECK_EQ(reg.used, 0);
    drop(v);
    drop(h);
    CHECK_EQ(f.nlive, 0);
    heddle_registry_fini(&reg);
}

struct first_use {
    heddle_handle *unit[4];
    _Atomic unsigned nready;
    _Atomic unsigned next;
    void *root_base[4];
};

static void *first_use_main(void *arg)
{
    struct first_use *s = arg;
    const unsigned me = atomic_fetch_add(&s->next, 1u);
    char *p;

    atomic_fetch_add(&s->nready, 1u);
    while (atomic_load(&s->nready) < 4)
        heddle_thread_yield();
    p = heddle_unit_base(s->unit[me]);
    CHECK(p != NULL);
    s->root_base[me] = p - s->unit[me]->offset_bytes;
    return NULL;
}

/* Takes its time, so that the others arrive meanwhile. */
static void *slow_alloc(void *user, size_t bytes, size_t align)
{
    heddle_thread_sleep_ns(200000);
    return faulty_alloc(user, bytes, align);
}

/* The budget is exactly what is needed, whoever comes first. */
TEST(four_threads_meet_at_the_first_use)
{
    for (size_t round = 0; round < test_scale(50); round++) {
        struct heddle_layout l = vector(64, HEDDLE_F64);
        struct heddle_registry reg;
        struct first_use s = {.nready = 0};
        struct heddle_thread t[4];
        struct faulty f;

        faulty_init(&f, 0);
        heddle_registry_init(&reg, NULL, &f.a);
        reg.budget = round % 2 == 0 ? 512 : 0;
        s.unit[0] = make(&reg, &l, NULL);
        for (size_t i = 1; i < 4; i++)
            s.unit[i] = make_part(s.unit[0], i, 8 * i, 1);
        s.unit[0]->alloc.alloc = slow_alloc;
        for (int i = 0; i < 4; i++)
            CHECK_OK(heddle_thread_create(&t[i], NULL, first_use_main, &s));
        for (int i = 0; i < 4; i++)
            CHECK_OK(heddle_thread_join(&t[i]));
        for (int i = 0; i < 4; i++)
            CHECK(s.root_base[i] == s.root_base[0]);
        CHECK_EQ(reg.used, 512);
        for (int i = 4; i-- > 0;)
            drop(s.unit[i]);
        CHECK_EQ(reg.used, 0);
        CHECK_EQ(f.nlive, 0);
        heddle_registry_fini(&reg);
    }
}

/* --- marks -----------------------------------------------------------------*/

TEST(marks)
{
    struct heddle_layout l = vector(100, HEDDLE_F64);
    struct heddle_registry reg;
    heddle_handle *h, *a, *b, *c, *other;

    heddle_registry_init(&reg, NULL, &heddle_allocator_default);
    h = make(&reg, &l, NULL);
    other = make(&reg, &l, NULL);
    a = make_part(h, 10, 10, 1); /* [10, 20) */
    b = make_part(h, 0, 50, 1);  /* [0, 50) contains a */
    c = make_part(h, 15, 10, 1); /* [15, 25) meets a */
    CHECK_STATUS(heddle_unit_marked(a), HEDDLE_OK);
    heddle_unit_mark(a, HEDDLE_ETASK);
    heddle_unit_mark(a, HEDDLE_ECANCELED);
    CHECK_EQ(reg.nmarks, 1); /* invariant unit(3) */
    CHECK_STATUS(heddle_unit_marked(a), HEDDLE_ECANCELED);
    CHECK_STATUS(heddle_unit_marked(b), HEDDLE_ECANCELED);
    CHECK_STATUS(heddle_unit_marked(c), HEDDLE_ECANCELED);
    CHECK_STATUS(heddle_unit_marked(h), HEDDLE_ECANCELED);
    CHECK_STATUS(heddle_unit_marked(other), HEDDLE_OK);
    heddle_unit_unmark(c); /* a part of a is good again, a is not */
    CHECK_STATUS(heddle_unit_marked(a), HEDDLE_ECANCELED);
    heddle_unit_unmark(b); /* all of a */
    CHECK_STATUS(heddle_unit_marked(a), HEDDLE_OK);
    CHECK_EQ(reg.nmarks, 0);
    heddle_unit_unmark(a);
    CHECK_EQ(reg.nmarks, 0);
    drop(c);
    drop(b);
    drop(a);
    drop(other);
    drop(h);
    heddle_registry_fini(&reg);
}

/* A mark belongs to the data: it goes neither with the view it was set through
 * nor with one that happens to cover it, and it does not spread. */
TEST(marks_outlive_views)
{
    struct heddle_layout l = vector(100, HEDDLE_F64);
    struct heddle_registry reg;
    heddle_handle *h, *a, *b;
    struct faulty f;

    faulty_init(&f, 0);
    heddle_registry_init(&reg, NULL, &f.a);
    h = make(&reg, &l, NULL);
    a = make_part(h, 10, 10, 1);
    b = make_part(h, 0, 50, 1);
    heddle_unit_mark(a, HEDDLE_ETASK);
    drop(b); /* untouched by the failure */
    CHECK_STATUS(heddle_unit_marked(a), HEDDLE_ETASK);
    CHECK_EQ(reg.nmarks, 1);
    drop(a);
    CHECK_STATUS(heddle_unit_marked(h), HEDDLE_ETASK);
    CHECK_EQ(reg.nmarks, 1);
    a = make_part(h, 15, 20, 1); /* in part the old one */
    b = make_part(h, 20, 20, 1); /* beside it */
    CHECK_STATUS(heddle_unit_marked(a), HEDDLE_ETASK);
    CHECK_STATUS(heddle_unit_marked(b), HEDDLE_OK);
    heddle_unit_unmark(h);
    CHECK_STATUS(heddle_unit_marked(h), HEDDLE_OK);
    CHECK_STATUS(heddle_unit_marked(a), HEDDLE_OK);
    drop(a);
    heddle_unit_mark(b, HEDDLE_ETASK);
    drop(b);
    heddle_unit_mark(h, HEDDLE_ETASK);
    drop(h);
    CHECK_EQ(reg.nmarks, 0);
    CHECK_EQ(f.nlive, 0);
    heddle_registry_fini(&reg);
}

/* --- partial results -------------------------------------------------------*/

static void check_partials(heddle_handle *h, double *mem, size_t step)
{
    struct heddle_partial *p[3];
    double *m;

    for (size_t i = 0; i < 3; i++) {
        p[i] = heddle_partial_take(h);
        CHECK(p[i] != NULL);
        m = p[i]->mem;
        for (size_t k = 0; k < h->count; k++) {
            CHECK_EQ(m[k], 0);
            m[k] = (double)(100 * (i + 1) + k);
        }
    }
    for (size_t i = 0; i < 3; i++)
        heddle_partial_give(h, p[i]);
    p[0] = heddle_partial_take(h); /* one that has something in it already */
    m = p[0]->mem;
    CHECK(m[0] >= 100);
    for (size_t k = 0; k < h->count; k++)
        m[k] += 1000;
    heddle_partial_give(h, p[0]);
    CHECK_OK(heddle_partial_combine(h));
    CHECK(h->extra.free == NULL);
    for (size_t k = 0; k < h->count; k++)
        CHECK_EQ(mem[k * step], (k + 1) + 1600 + 3 * k);
    CHECK_OK(heddle_partial_combine(h)); /* nothing to do */
    CHECK_EQ(mem[0], 1601);
}

TEST(partial_results_add_up)
{
    struct heddle_registry reg;
    double mem[64];
    struct faulty f;

    faulty_init(&f, 0);
    heddle_registry_init(&reg, NULL, &f.a);
    for (size_t step = 1; step <= 3; step++) {
        struct heddle_layout l = vector(64, HEDDLE_F64);
        heddle_handle *root = make(&reg, &l, mem);
        heddle_handle *h = make_part(root, 5, 10, step);

        for (size_t i = 0; i < 64; i++)
            mem[i] = -1;
        for (size_t k = 0; k < 10; k++)
            mem[5 + k * step] = (double)k + 1;
        CHECK_OK(heddle_handle_set_sum(h));
        check_partials(h, mem + 5, step);
        for (size_t i = 0; i < 64; i++) /* and nothing else was touched */
            if (i < 5 || (i - 5) % step != 0 || i > 5 + 9 * step)
                CHECK_EQ(mem[i], -1);
        heddle_partial_give(h, heddle_partial_take(h)); /* dropped with h */
        drop(h);
        drop(root);
        CHECK_EQ(f.nlive, 0);
    }
    heddle_registry_fini(&reg);
}

TEST(sums_of_all_types)
{
    static const enum heddle_dtype type[] = {HEDDLE_U8,  HEDDLE_I32, HEDDLE_I64, HEDDLE_F32,
                                             HEDDLE_F64, HEDDLE_C64, HEDDLE_C128};
    struct heddle_registry reg;

    heddle_registry_init(&reg, NULL, &heddle_allocator_default);
    for (size_t i = 0; i < sizeof(type) / sizeof(type[0]); i++) {
        struct heddle_layout l = vector(1, type[i]);
        heddle_handle *h = make(&reg, &l, NULL);
        const struct heddle_reduction *r = &h->extra.reduction;
        unsigned char a[16], b[16];

        CHECK_OK(heddle_handle_set_sum(h));
        memset(a, 0xff, sizeof(a));
        memset(b, 0, sizeof(b));
        r->init(a, &h->dense, r->user);
        CHECK(memcmp(a, b, h->bytes) == 0);
        switch (type[i]) {
        case HEDDLE_U8: a[0] = 250, b[0] = 10; break;
        case HEDDLE_I32: *(int32_t *)(void *)b = -7; break;
        case HEDDLE_I64: *(int64_t *)(void *)b = -7; break;
        case HEDDLE_F32: *(float *)(void *)b = -7; break;
        case HEDDLE_F64: *(double *)(void *)b = -7; break;
        case HEDDLE_C64: ((float *)(void *)b)[1] = -7; break;
        default: ((double *)(void *)b)[1] = -7; break;
        }
        r->combine(a, b, &h->dense, r->user);
        if (type[i] == HEDDLE_U8)
            CHECK_EQ(a[0], 4); /* modulo 256 */
        else
            CHECK(memcmp(a, b, h->bytes) == 0); /* 0 + b */
        drop(h);
    }
    {
        struct heddle_layout l = vector(1, HEDDLE_BF16);
        heddle_handle *h = make(&reg, &l, NULL);

        CHECK_STATUS(heddle_handle_set_sum(h), HEDDLE_ENOSYS);
        drop(h);
    }
    CHECK_STATUS(heddle_handle_set_sum(NULL), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_handle_set_reduction(NULL, NULL), HEDDLE_EINVAL);
    heddle_registry_fini(&reg);
}

/* --- no memory -------------------------------------------------------------*/

/* A root, overlapping views (their lists grow), memory, partial results. */
static heddle_status faulty_run(struct heddle_registry *reg)
{
    struct heddle_layout l = vector(100, HEDDLE_F64);
    heddle_handle *unit[8] = {NULL};
    struct heddle_partial *p = NULL;
    heddle_status st = heddle_unit_create(reg, &l, NULL, &unit[0]);

    for (size_t i = 1; i < 8 && st == HEDDLE_OK; i++) {
        const size_t n = 40, step = 2;
        const uint32_t before = heddle_unit_noverlaps(unit[0]);

        st = heddle_unit_view(unit[0], &i, &n, &step, &unit[i]);
        /* on failure nothing has changed */
        CHECK_EQ(heddle_unit_noverlaps(unit[0]), before + (st == HEDDLE_OK));
    }
    if (st == HEDDLE_OK && heddle_unit_base(unit[3]) == NULL)
        st = HEDDLE_ENOMEM;
    for (int i = 0; i < 2 && st == HEDDLE_OK; i++) {
        CHECK_OK(heddle_handle_set_sum(unit[2]));
        p = heddle_partial_take(unit[2]);
        if (p == NULL)
            st = HEDDLE_ENOMEM;
        else
            heddle_partial_give(unit[2], p);
    }
    if (st == HEDDLE_OK) {
        st = heddle_partial_combine(unit[2]); /* strided: needs a copy */
        if (st != HEDDLE_OK)
            CHECK(unit[2]->extra.free != NULL); /* still to be combined */
    }
    for (size_t i = 8; i-- > 0;)
        if (unit[i] != NULL)
            drop(unit[i]);
    return st;
}

TEST(each_allocation_fails_once)
{
    struct heddle_registry reg;
    heddle_status st = HEDDLE_ENOMEM;
    struct faulty f;
    size_t k = 0;

    while (st != HEDDLE_OK) {
        faulty_init(&f, ++k);
        heddle_registry_init(&reg, NULL, &f.a);
        st = faulty_run(&reg);
        CHECK_EQ(st, f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
        CHECK_EQ(f.nlive, 0);
        CHECK_EQ(reg.used, 0);
        CHECK(reg.units == NULL);
        heddle_registry_fini(&reg);
    }
    CHECK(k > 15);
}

TEST_MAIN(types, bad_layouts_are_refused, good_layouts_are_completed, overlapping_strides_are_found,
          memory_on_first_use, four_threads_meet_at_the_first_use, marks, marks_outlive_views,
          partial_results_add_up, sums_of_all_types, each_allocation_fails_once)
