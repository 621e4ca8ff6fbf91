/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit: layouts, views, overlap lists, memory, marks, walks and partial results
 * of handles, against naive loops over all elements; each allocation failing.
 */
#include "base/alloc.h"
#include "base/faulty_test.h"
#include "base/rng.h"
#include "base/thread.h"
#include "data/data.h"
#include "tests/test.h"

static heddle_handle *make(struct heddle_registry *reg, const struct heddle_layout *l, void *ptr)
{
    heddle_handle *h = NULL;

    CHECK_OK(heddle_unit_create(reg, l, ptr, &h));
    return h;
}

static heddle_handle *make_view(heddle_handle *h, const size_t *offset, const size_t *extent,
                                const size_t *step)
{
    heddle_handle *v = NULL;

    CHECK_OK(heddle_unit_view(h, offset, extent, step, &v));
    return v;
}

/* Of a vector. */
static heddle_handle *make_part(heddle_handle *h, size_t first, size_t n, size_t step)
{
    return make_view(h, &first, &n, &step);
}

static void drop(heddle_handle *h)
{
    heddle_handle *root = heddle_unit_destroy(h);

    if (root != NULL)
        CHECK(heddle_sub_acqrel(&root->refs, 1u) > 1); /* what core does */
}

static struct heddle_layout vector(size_t n, enum heddle_dtype t)
{
    return (struct heddle_layout){.dtype = t, .ndim = 1, .extent = {n}};
}

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

/* --- views -----------------------------------------------------------------*/

enum { ROOT = 6 * 7 * 5, MAX_UNITS = 24 };

/* A few units over one padded 6 x 7 x 5 array of 16-bit numbers, and for each
 * unit and element of its index space the element of the array it must be. */
struct family {
    struct heddle_registry reg;
    uint16_t *mem;
    size_t n;
    heddle_handle *unit[MAX_UNITS];
    uint16_t map[MAX_UNITS][ROOT]; /* row-major over the unit's indices */
    bool covers[MAX_UNITS][512];   /* by position in memory */
};

/* Where element `idx` of the layout is. */
static size_t position(const struct heddle_layout *l, const size_t *idx)
{
    size_t p = 0;

    for (unsigned d = 0; d < l->ndim; d++)
        p += idx[d] * l->stride[d];
    return p;
}

/* Next index in row-major order; false after the last. */
static bool next_index(const struct heddle_layout *l, size_t *idx)
{
    for (unsigned d = l->ndim; d-- > 0; idx[d] = 0)
        if (++idx[d] < l->extent[d])
            return true;
    return false;
}

static const struct heddle_layout family_layout = {
    .dtype = HEDDLE_F16, .ndim = 3, .extent = {6, 7, 5}, .stride = {8, 60, 1}};

static void family_init(struct family *f, const struct heddle_allocator *a, bool has_memory)
{
    size_t idx[HEDDLE_MAX_DIMS] = {0}, i = 0;

    memset(f, 0, sizeof(*f));
    heddle_registry_init(&f->reg, NULL, a);
    f->mem = calloc(512, sizeof(*f->mem));
    CHECK(f->mem != NULL);
    f->unit[0] = make(&f->reg, &family_layout, has_memory ? f->mem : NULL);
    f->n = 1;
    do {
        f->map[0][i] = (uint16_t)position(&family_layout, idx);
        f->covers[0][f->map[0][i++]] = true;
    } while (next_index(&family_layout, idx));
}

/* A random view of a random unit, and what it must be by definition. */
static void family_add(struct family *f, struct heddle_rng *rng)
{
    const size_t from = heddle_rng_below32(rng, (uint32_t)f->n);
    heddle_handle *h = f->unit[from];
    const size_t *full = h->layout.extent;
    size_t offset[3], extent[3], step[3], idx[HEDDLE_MAX_DIMS] = {0}, i = 0;

    for (unsigned d = 0; d < 3; d++) {
        offset[d] = heddle_rng_below32(rng, (uint32_t)full[d]);
        step[d] = 1 + heddle_rng_below32(rng, 3);
        extent[d] =
            1 + heddle_rng_below32(rng, (uint32_t)((full[d] - offset[d] - 1) / step[d] + 1));
    }
    f->unit[f->n] = make_view(h, offset, extent, step);
    do {
        size_t k = 0;

        for (unsigned d = 0; d < 3; d++)
            k = k * full[d] + offset[d] + idx[d] * step[d];
        f->map[f->n][i] = f->map[from][k];
        f->covers[f->n][f->map[f->n][i++]] = true;
    } while (next_index(&f->unit[f->n]->layout, idx));
    CHECK_EQ(i, f->unit[f->n]->count);
    f->n++;
}

static void family_fini(struct family *f)
{
    while (f->n > 0)
        drop(f->unit[--f->n]);
    heddle_registry_fini(&f->reg);
    free(f->mem);
}

/* Invariant unit(1), by enumeration. */
static void family_check_overlaps(const struct family *f)
{
    for (size_t i = 0; i < f->n; i++)
        for (size_t j = 0; j < f->n; j++) {
            const heddle_handle *u = f->unit[i], *v = f->unit[j];
            size_t nfound = 0, nshared = 0, nmissing = 0;

            for (size_t k = 0; k < heddle_unit_noverlaps(u); k++)
                nfound += u->overlap[k] == v;
            for (size_t k = 0; k < 512; k++) {
                nshared += f->covers[i][k] && f->covers[j][k];
                nmissing += !f->covers[i][k] && f->covers[j][k];
            }
            CHECK_EQ(nfound, i != j && nshared != 0);
            CHECK_EQ(heddle_box_contains(&u->box, &v->box, 3), nmissing == 0);
        }
}

static void family_check_places(const struct family *f)
{
    for (size_t i = 0; i < f->n; i++) {
        heddle_handle *u = f->unit[i];
        size_t idx[HEDDLE_MAX_DIMS] = {0}, k = 0;
        const uint16_t *base = heddle_unit_base(u);
        const uint16_t *mem = heddle_unit_base(u->root);

        CHECK(base != NULL);
        CHECK_EQ(u->bytes, 2 * u->count);
        do
            CHECK_EQ(base + position(&u->layout, idx) - mem, f->map[i][k++]);
        while (next_index(&u->layout, idx));
    }
}

TEST(views_of_views)
{
    struct heddle_rng rng;

    heddle_rng_seed(&rng, test_seed());
    for (size_t round = 0; round < test_scale(200); round++) {
        struct family f;

        family_init(&f, &heddle_allocator_default, round % 2 == 0);
        while (f.n < MAX_UNITS)
            family_add(&f, &rng);
        family_check_overlaps(&f);
        family_check_places(&f);
        CHECK_EQ(heddle_load_rlx(&f.unit[0]->refs), MAX_UNITS);
        family_fini(&f);
    }
}

TEST(bad_views_are_refused)
{
    struct faulty f;
    struct heddle_registry reg;
    struct heddle_layout l = vector(10, HEDDLE_F64);
    heddle_handle *h, *v;
    static const size_t bad[][3] = {
        /* offset, extent, step */
        {0, 0, 1},        {0, 11, 1},       {10, 1, 1},
        {0, 2, 0},        {5, 6, 1},        {0, 4, 4},
        {SIZE_MAX, 1, 1}, {1, SIZE_MAX, 1}, {1, 3, SIZE_MAX / 2 + 1},
        {1, 2, SIZE_MAX},
    };

    faulty_init(&f, 0);
    heddle_registry_init(&reg, NULL, &f.a);
    h = make(&reg, &l, NULL);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK_STATUS(heddle_unit_view(h, &bad[i][0], &bad[i][1], &bad[i][2], &v), HEDDLE_EINVAL);
    CHECK_EQ(heddle_load_rlx(&h->refs), 1);
    /* the step of a single element is of no interest */
    v = make_part(h, 9, 1, SIZE_MAX);
    CHECK_EQ(v->layout.stride[0], 1);
    CHECK_EQ(heddle_unit_noverlaps(h), 1);
    drop(v);
    CHECK_EQ(heddle_unit_noverlaps(h), 0);
    drop(h);
    CHECK_EQ(f.nlive, 0);
    heddle_registry_fini(&reg);
}

TEST(views_go_in_any_order)
{
    struct heddle_rng rng;
    struct faulty a;

    heddle_rng_seed(&rng, test_seed());
    faulty_init(&a, 0);
    for (size_t round = 0; round < test_scale(100); round++) {
        struct family f;

        family_init(&f, &a.a, false);
        for (int i = 0; i < 60; i++) {
            if (f.n < MAX_UNITS && heddle_rng_below32(&rng, 3) != 0) {
                family_add(&f, &rng);
            } else if (f.n > 1) { /* not the root: it has references */
                const size_t k = 1 + heddle_rng_below32(&rng, (uint32_t)f.n - 1);

                drop(f.unit[k]);
                f.n--;
                f.unit[k] = f.unit[f.n];
                memcpy(f.map[k], f.map[f.n], sizeof(f.map[k]));
                memcpy(f.covers[k], f.covers[f.n], sizeof(f.covers[k]));
                memset(f.covers[f.n], 0, sizeof(f.covers[f.n]));
            }
        }
        family_check_overlaps(&f);
        family_fini(&f);
        CHECK_EQ(a.nlive, 0);
    }
}

TEST(orphans_can_be_destroyed)
{
    struct heddle_layout l = vector(100, HEDDLE_I32);
    struct heddle_registry reg;
    heddle_handle *h, *v, *w;
    struct faulty f;

    faulty_init(&f, 0);
    heddle_registry_init(&reg, NULL, &f.a);
    h = make(&reg, &l, NULL);
    v = make_part(h, 10, 20, 1);
    w = make_part(v, 5, 5, 2);
    CHECK(heddle_unit_base(w) != NULL);
    heddle_unit_mark(v, HEDDLE_ETASK);
    heddle_registry_fini(&reg);
    CHECK(h->reg == NULL && v->reg == NULL && w->reg == NULL);
    drop(v);
    drop(w);
    drop(h);
    CHECK_EQ(f.nlive, 0);
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
    g = make(&reg, &l, NULL);
    CHECK(heddle_unit_base(g) == NULL); /* 1600 > 1000 */
    CHECK_EQ(reg.used, 800);
    drop(v);
    drop(h);
    CHECK_EQ(reg.used, 0);
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

/* --- walks -----------------------------------------------------------------*/

static uint64_t naive_hash(const uint16_t *v, size_t n)
{
    uint64_t h = UINT64_C(14695981039346656037); /* FNV-1a over the bytes */
    const unsigned char *p = (const unsigned char *)v;

    for (size_t i = 0; i < n * sizeof(*v); i++)
        h = (h ^ p[i]) * UINT64_C(1099511628211);
    return h;
}

TEST(pack_unpack_hash)
{
    struct heddle_rng rng;

    heddle_rng_seed(&rng, test_seed());
    for (size_t round = 0; round < test_scale(100); round++) {
        uint16_t dense[ROOT], back[512], before[512];
        struct family f;

        family_init(&f, &heddle_allocator_default, true);
        while (f.n < 8)
            family_add(&f, &rng);
        for (size_t i = 0; i < 512; i++)
            f.mem[i] = (uint16_t)heddle_rng_next(&rng);
        memcpy(before, f.mem, sizeof(before));
        for (size_t i = 0; i < f.n; i++) {
            heddle_handle *u = f.unit[i];

            heddle_unit_pack(u, heddle_unit_base(u), dense);
            for (size_t k = 0; k < u->count; k++)
                CHECK_EQ(dense[k], f.mem[f.map[i][k]]);
            CHECK(heddle_unit_hash(u, heddle_unit_base(u)) == naive_hash(dense, u->count));
            /* unpack into a copy: the elements of u and nothing else */
            memset(back, 0, sizeof(back));
            heddle_unit_unpack(u, dense, back + u->offset_bytes / 2);
            for (size_t k = 0; k < 512; k++)
                CHECK_EQ(back[k], f.covers[i][k] ? f.mem[k] : 0);
        }
        CHECK(memcmp(before, f.mem, sizeof(before)) == 0);
        family_fini(&f);
    }
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
          views_of_views, bad_views_are_refused, views_go_in_any_order, orphans_can_be_destroyed,
          memory_on_first_use, four_threads_meet_at_the_first_use, marks, marks_outlive_views,
          pack_unpack_hash, partial_results_add_up, sums_of_all_types, each_allocation_fails_once)
