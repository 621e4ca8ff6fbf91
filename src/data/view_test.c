/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit: views of views in any order, their places and overlap lists, against naive loops
 * over all elements; packing and hashes of strided units.
 */
#include "base/alloc.h"
#include "base/faulty_test.h"
#include "base/rng.h"
#include "data/data.h"
#include "data/make_test.h"
#include "tests/test.h"

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

static size_t nvisits;

static heddle_status count_visit(heddle_handle *v, heddle_handle *near)
{
    CHECK(v->root == near->root);
    nvisits++;
    return HEDDLE_OK;
}

/* A view looks at its neighbours, not at all views: also when most of them overlap some. */
TEST(few_are_looked_at)
{
    const struct heddle_layout line = vector(1u << 20, HEDDLE_U8);
    const struct heddle_layout plane = {.dtype = HEDDLE_U8, .ndim = 2, .extent = {4096, 4096}};
    const size_t n = 4096;
    struct heddle_registry reg;
    heddle_handle *h[2], **v[2];

    heddle_registry_init(&reg, NULL, &heddle_allocator_default);
    h[0] = make(&reg, &line, NULL);
    h[1] = make(&reg, &plane, NULL);
    for (unsigned k = 0; k < 2; k++) {
        v[k] = calloc(n, sizeof(*v[k]));
        CHECK(v[k] != NULL);
        nvisits = 0;
        for (size_t i = 0; i < n; i++) {
            /* Windows of a line that overlap their neighbours; tiles with halos. */
            const size_t at[2] = {k == 0 ? 100 * i : 62 * (i / 64), 62 * (i % 64)};
            const size_t size[2] = {k == 0 ? 120 + i % 100 : 66, 66};

            v[k][i] = make_view(h[k], at, size, NULL);
            CHECK_OK(heddle_grid_visit(v[k][i], count_visit));
        }
        CHECK(nvisits < 64 * n);
    }
    CHECK_EQ(heddle_unit_noverlaps(v[1][64 * 32 + 32]), 9); /* the root and 8 neighbours */
    for (unsigned k = 0; k < 2; k++) {
        for (size_t i = 0; i < n; i++)
            drop(v[k][(i * 1001) % n]);
        CHECK_EQ(heddle_unit_noverlaps(h[k]), 0);
        drop(h[k]);
        free(v[k]);
    }
    heddle_registry_fini(&reg);
}

/* A second view of a box is the first one, when only tasks have that. */
TEST(dropped_views_come_back)
{
    const struct heddle_layout l = {.dtype = HEDDLE_U8, .ndim = 2, .extent = {16, 16}};
    const size_t at[2] = {2, 4}, size[2] = {3, 4}, step[2] = {2, 1}, zero[2] = {0, 0};
    heddle_handle *h, *v, *same = NULL, *other = NULL;
    struct heddle_registry reg;

    heddle_registry_init(&reg, NULL, &heddle_allocator_default);
    h = make(&reg, &l, NULL);
    v = make_view(h, at, size, step);
    CHECK_OK(heddle_unit_share(h, at, size, step, &same));
    CHECK(same != v); /* the program has v */
    drop(same);
    for (unsigned i = 0; i < 2; i++) { /* now only a task has it, then the program as well */
        heddle_store_rlx(&v->users, 0u);
        heddle_store_rlx(&v->is_dropped, 1u);
        if (i == 0) {
            CHECK_OK(heddle_unit_share(h, at, size, NULL, &other)); /* another step */
            CHECK(other != v);
            drop(other);
            CHECK_OK(heddle_unit_share(h, at, size, step, &same));
        } else {
            CHECK_OK(heddle_unit_share(v, zero, size, NULL, &same)); /* all of v */
        }
        CHECK(same == v);
        CHECK_EQ(heddle_load_rlx(&v->users), 1);
        CHECK_EQ(heddle_load_rlx(&v->refs), 2 + i);
    }
    heddle_store_rlx(&v->refs, 0u); /* on its way out */
    heddle_store_rlx(&v->users, 0u);
    heddle_store_rlx(&v->is_dropped, 1u);
    CHECK_OK(heddle_unit_share(h, at, size, step, &other));
    CHECK(other != v);
    drop(v);
    drop(other);
    drop(h);
    heddle_registry_fini(&reg);
}

TEST_MAIN(few_are_looked_at, dropped_views_come_back, views_of_views, bad_views_are_refused,
          views_go_in_any_order, orphans_can_be_destroyed, pack_unpack_hash)
