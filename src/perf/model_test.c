/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the tree in memory: keys, guesses for unseen shapes, buckets, threads,
 * the k-th allocation failing. */
#include "perf/model.h"

#include <math.h>

#include "base/rng.h"
#include "base/thread.h"
#include "test.h"

static struct heddle_perf *memory_perf(void)
{
    struct heddle_perf *perf = NULL;

    CHECK_OK(heddle_perf_create(NULL, NULL, &perf));
    return perf;
}

static struct heddle_perf_series *series(struct heddle_perf *perf, const char *kernel,
                                         const char *device, uint64_t version)
{
    const struct heddle_perf_key key = {kernel, "plain", device, version};
    struct heddle_perf_series *s = NULL;

    CHECK_OK(heddle_perf_series_get(perf, &key, &s));
    return s;
}

static struct heddle_perf_entry *entry(struct heddle_perf_series *s, uint64_t shape, double flops,
                                       double bytes)
{
    struct heddle_perf_entry *e = NULL;

    CHECK_OK(heddle_perf_entry_get(s, shape, flops, bytes, &e));
    return e;
}

TEST(keys_are_kept_apart)
{
    struct heddle_perf *perf = memory_perf();
    struct heddle_perf_series *a = series(perf, "gemm", "cpu:a", 1);
    struct heddle_estimate est;

    CHECK(a == series(perf, "gemm", "cpu:a", 1));
    CHECK(a != series(perf, "gemm", "cpu:b", 1));
    CHECK(a != series(perf, "gemm", "cpu:a", 2));
    CHECK(a != series(perf, "gemm2", "cpu:a", 1));
    CHECK(entry(a, 7, 0, 0) == entry(a, 7, 10, 0));
    CHECK(entry(a, 7, 0, 0) != entry(a, 8, 0, 0));
    for (int i = 0; i < 5; i++)
        heddle_perf_record(entry(a, 7, 0, 0), 500.0);
    heddle_perf_predict(entry(a, 7, 0, 0), &est);
    CHECK_NEAR(est.ns, 500.0, 0.0);
    CHECK_EQ(est.source, HEDDLE_EST_MEASURED);
    heddle_perf_predict(entry(series(perf, "gemm", "cpu:b", 1), 7, 0, 0), &est);
    CHECK_EQ(est.source, HEDDLE_EST_NONE);
    CHECK_NEAR(est.confidence, 0.0, 0.0);
    CHECK_OK(heddle_perf_destroy(perf));
}

TEST(bad_names_and_arguments)
{
    struct heddle_perf *perf = memory_perf();
    char longest[HEDDLE_PERF_NAME_MAX + 2];
    struct heddle_perf_key key = {"k", "v", "d", 0};
    struct heddle_perf_series *s = NULL;
    struct heddle_perf_device dev = {NAN, 0, 0};
    struct heddle_estimate est;

    memset(longest, 'x', sizeof(longest));
    longest[HEDDLE_PERF_NAME_MAX] = '\0';
    key.variant = longest;
    CHECK_OK(heddle_perf_series_get(perf, &key, &s));
    longest[HEDDLE_PERF_NAME_MAX] = 'x';
    longest[HEDDLE_PERF_NAME_MAX + 1] = '\0';
    CHECK_STATUS(heddle_perf_series_get(perf, &key, &s), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_perf_query(perf, &key, 1, 1, 1, &est), HEDDLE_EINVAL);
    key.variant = "";
    CHECK_STATUS(heddle_perf_series_get(perf, &key, &s), HEDDLE_EINVAL);
    key.variant = NULL;
    CHECK_STATUS(heddle_perf_series_get(perf, &key, &s), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_perf_device_set(perf, "d", &dev), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_perf_show(perf, "none", NULL, NULL), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_perf_create(NULL, NULL, NULL), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_perf_forget(perf, "none", NULL), HEDDLE_ENOENT);
    CHECK_OK(heddle_perf_destroy(perf));
    CHECK_OK(heddle_perf_destroy(NULL));
}

/* none -> prior -> scaled -> fit -> measured, each with more confidence. */
TEST(guesses_get_better)
{
    const struct heddle_perf_device dev = {1e10, 1e10, 50.0};
    struct heddle_perf *perf = memory_perf();
    struct heddle_perf_series *s = series(perf, "gemm", "cpu:a", 1);
    struct heddle_perf_entry *e = entry(s, 99, 0, 0);
    struct heddle_estimate est;
    double last;

    CHECK_OK(heddle_perf_device_set(perf, "cpu:a", &dev));
    heddle_perf_predict(e, &est);
    CHECK_EQ(est.source, HEDDLE_EST_NONE);
    e = entry(s, 100, 1e7, 1e4);
    heddle_perf_predict(e, &est);
    CHECK_EQ(est.source, HEDDLE_EST_PRIOR);
    CHECK_NEAR(est.ns, 1e6 + 50.0, 1.0);
    last = est.confidence;
    CHECK(last > 0.0);

    for (int size = 1; size <= 4; size++) {
        const double flops = 1e5 * size;

        for (int i = 0; i < 6; i++)
            heddle_perf_record(entry(s, (uint64_t)size, flops, 10), flops * 0.4);
        heddle_perf_predict(e, &est);
        CHECK_EQ(est.source, size < 3 ? HEDDLE_EST_SCALED : HEDDLE_EST_FIT);
        CHECK_NEAR(est.ns, 4e6, size < 3 ? 1e5 : 1e3);
    }
    heddle_perf_predict(entry(s, 50, 2.5e5, 10), &est);
    CHECK_EQ(est.source, HEDDLE_EST_FIT);
    CHECK(est.confidence > last);
    CHECK_NEAR(est.ns, 1e5, 10.0);
    last = est.confidence;
    for (int i = 0; i < 3; i++)
        heddle_perf_record(e, 77.0);
    heddle_perf_predict(e, &est);
    CHECK_EQ(est.source, HEDDLE_EST_MEASURED);
    CHECK(est.confidence > last);
    CHECK_NEAR(est.ns, 77.0, 0.0);
    CHECK_OK(heddle_perf_destroy(perf));
}

TEST(peaks_can_change)
{
    struct heddle_perf_device dev = {1e10, 1e10, 0.0};
    struct heddle_perf *perf = memory_perf();
    struct heddle_perf_entry *e = entry(series(perf, "k", "gpu:x", 0), 1, 1e7, 0);
    struct heddle_estimate est;

    heddle_perf_predict(e, &est);
    CHECK(est.ns > 1.5e6); /* the slow default */
    CHECK_OK(heddle_perf_device_set(perf, "gpu:x", &dev));
    heddle_perf_predict(e, &est);
    CHECK_NEAR(est.ns, 1.0001e6, 10.0);
    CHECK_OK(heddle_perf_destroy(perf));
}

TEST(query_leaves_no_trace)
{
    const struct heddle_perf_key key = {"gemm", "plain", "cpu:a", 1};
    struct heddle_perf *perf = memory_perf();
    struct heddle_perf_series *s = series(perf, "gemm", "cpu:a", 1);
    struct heddle_estimate est;

    heddle_perf_record(entry(s, 5, 1e6, 1e6), 123.0);
    CHECK_OK(heddle_perf_query(perf, &key, 5, 0, 0, &est));
    CHECK_EQ(est.source, HEDDLE_EST_MEASURED);
    CHECK_NEAR(est.ns, 123.0, 0.0);
    CHECK_OK(heddle_perf_query(perf, &key, 6, 2e6, 2e6, &est));
    CHECK_EQ(est.source, HEDDLE_EST_SCALED);
    CHECK_OK(heddle_perf_query(perf, &key, 6, 0, 0, &est));
    CHECK_EQ(est.source, HEDDLE_EST_NONE);
    CHECK_EQ(heddle_load_rlx(&s->nentries), 1);
    CHECK_OK(heddle_perf_destroy(perf));
}

/* A program with ever new shapes does not eat the memory. */
TEST(many_shapes_share_buckets)
{
    struct heddle_perf *perf = memory_perf();
    struct heddle_perf_series *s = series(perf, "k", "cpu", 0);
    struct heddle_perf_entry *e = NULL;
    struct heddle_estimate est;

    for (uint64_t i = 0; i < 20000; i++) {
        e = entry(s, i * 77, 1e3 + 100.0 * (double)i, 0);
        heddle_perf_record(e, 1e3 + 100.0 * (double)i);
    }
    CHECK(heddle_load_rlx(&s->nentries) <= HEDDLE_MODEL_ENTRIES);
    heddle_perf_predict(e, &est);
    CHECK_EQ(est.source, HEDDLE_EST_MEASURED);
    CHECK_NEAR(est.ns, 2e6, 0.2e6);
    /* Known shapes are still found under their own key. */
    CHECK_EQ(entry(s, 77, 0, 0)->shape, 77);
    CHECK(entry(s, 1u << 31, 0, 0) == entry(s, 1u << 30, 0, 0));
    CHECK_OK(heddle_perf_destroy(perf));
}

TEST(too_many_series)
{
    struct heddle_perf *perf = memory_perf();
    struct heddle_perf_series *s = NULL;
    struct heddle_perf_key key = {"k", "v", "d", 0};

    for (key.version = 0; key.version < HEDDLE_MODEL_SERIES; key.version++)
        CHECK_OK(heddle_perf_series_get(perf, &key, &s));
    CHECK_STATUS(heddle_perf_series_get(perf, &key, &s), HEDDLE_EOVERFLOW);
    key.version = 3;
    CHECK_OK(heddle_perf_series_get(perf, &key, &s));
    CHECK_OK(heddle_perf_destroy(perf));
}

/* --- walks --------------------------------------------------------------- */

struct walk {
    size_t n;
    uint64_t samples;
    char last[32];
};

static heddle_status count_kernel(void *user, const struct heddle_perf_kernel_info *info)
{
    struct walk *w = user;

    CHECK(strcmp(w->last, info->name) < 0); /* sorted */
    snprintf(w->last, sizeof(w->last), "%s", info->name);
    w->n++;
    w->samples += info->samples;
    CHECK_EQ(info->nseries, 2);
    CHECK_EQ(info->nshapes, 4);
    return HEDDLE_OK;
}

static heddle_status count_shape(void *user, const struct heddle_perf_info *info)
{
    struct walk *w = user;

    CHECK_STR(info->kernel, "b");
    CHECK_STR(info->variant, "plain");
    CHECK_NEAR(info->ns, 10.0, 0.0);
    CHECK_EQ(info->ignored, 1);
    CHECK_EQ(info->version, 4);
    CHECK_NEAR(info->bytes, 64.0, 0.0);
    w->n++;
    w->samples += info->count;
    return w->n == 3 ? HEDDLE_ECANCELED : HEDDLE_OK;
}

TEST(list_show_forget)
{
    static const char *const names[] = {"c", "a", "b"};
    static const char *const devices[] = {"cpu:x", "cpu:y"};
    struct heddle_perf *perf = memory_perf();
    struct walk w = {0};
    size_t nfiles = 99;

    for (int k = 0; k < 3; k++) {
        for (int d = 0; d < 2; d++) {
            struct heddle_perf_series *s = series(perf, names[k], devices[d], 4);

            (void)entry(s, 100, 1, 1); /* no samples: not listed */
            for (uint64_t shape = 0; shape < 2; shape++) {
                heddle_perf_record(entry(s, shape, 0, 64), 10.0);
                heddle_perf_record(entry(s, shape, 0, 64), -1.0);
            }
        }
    }
    CHECK_OK(heddle_perf_list(perf, count_kernel, &w));
    CHECK_EQ(w.n, 3);
    CHECK_EQ(w.samples, 12);
    w = (struct walk){0};
    CHECK_STATUS(heddle_perf_show(perf, "b", count_shape, &w), HEDDLE_ECANCELED);
    CHECK_EQ(w.n, 3);
    CHECK_OK(heddle_perf_forget(perf, "b", &nfiles));
    CHECK_EQ(nfiles, 0);
    CHECK_STATUS(heddle_perf_show(perf, "b", count_shape, &w), HEDDLE_ENOENT);
    w = (struct walk){0};
    CHECK_OK(heddle_perf_list(perf, count_kernel, &w));
    CHECK_EQ(w.n, 2);
    CHECK_OK(heddle_perf_forget(perf, NULL, NULL));
    w = (struct walk){0};
    CHECK_OK(heddle_perf_list(perf, count_kernel, &w));
    CHECK_EQ(w.n, 0);
    CHECK_OK(heddle_perf_destroy(perf));
}

TEST(source_names)
{
    CHECK_STR(heddle_estimate_source_name(HEDDLE_EST_NONE), "none");
    CHECK_STR(heddle_estimate_source_name(HEDDLE_EST_PRIOR), "prior");
    CHECK_STR(heddle_estimate_source_name(HEDDLE_EST_SCALED), "scaled");
    CHECK_STR(heddle_estimate_source_name(HEDDLE_EST_FIT), "fit");
    CHECK_STR(heddle_estimate_source_name(HEDDLE_EST_MEASURED), "measured");
}

/* --- threads ------------------------------------------------------------- */

#define NTHREADS 4
#define NSHAPES  64

struct crew {
    struct heddle_perf *perf;
    size_t rounds;
    _Atomic unsigned started;
};

/* Every thread does everything at once; a sample of shape i is 100 (i + 1), so
 * any estimate that is not close to a multiple of it was torn. */
static void *crew_work(void *arg)
{
    struct crew *c = arg;
    const unsigned me = heddle_add_acqrel(&c->started, 1);
    struct heddle_perf_series *s = series(c->perf, "k", "cpu", 0);
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed() + me);
    for (size_t i = 0; i < c->rounds; i++) {
        const uint64_t shape = heddle_rng_below(&r, NSHAPES);
        const double work = 100.0 * (double)(shape + 1);
        struct heddle_perf_entry *e = entry(s, shape, work, 0);
        struct heddle_perf_info info;
        struct heddle_estimate est;

        heddle_perf_record(e, work);
        if (i % 16 == 0)
            heddle_perf_record(e, NAN);
        heddle_perf_predict(e, &est);
        CHECK(est.source != HEDDLE_EST_NONE);
        if (est.source == HEDDLE_EST_MEASURED)
            CHECK_NEAR(est.ns, work, 0.0);
        heddle_perf_predict(entry(s, 1000 + shape, work * 1.5, 0), &est);
        CHECK(isfinite(est.ns) && est.ns > 0.0);
        heddle_perf_entry_info(e, &info);
        CHECK(info.count >= 1);
        if (i % 64 == 0)
            CHECK(series(c->perf, "k2", "cpu", i % 7) != s);
    }
    return NULL;
}

TEST(threads)
{
    struct crew c = {.perf = memory_perf(), .rounds = test_scale(60000)};
    struct heddle_thread t[NTHREADS];
    struct heddle_perf_series *s;
    struct heddle_perf_info info;
    uint64_t count = 0, ignored = 0;

    for (int i = 0; i < NTHREADS; i++)
        CHECK_OK(heddle_thread_create(&t[i], NULL, crew_work, &c));
    for (int i = 0; i < NTHREADS; i++)
        CHECK_OK(heddle_thread_join(&t[i]));
    s = series(c.perf, "k", "cpu", 0);
    for (uint64_t i = 0; i < NSHAPES; i++) {
        heddle_perf_entry_info(entry(s, i, 0, 0), &info);
        count += info.count;
        ignored += info.ignored;
    }
    CHECK_EQ(count, NTHREADS * c.rounds);
    CHECK_EQ(ignored, NTHREADS * ((c.rounds + 15) / 16));
    CHECK_OK(heddle_perf_destroy(c.perf));
}

/* --- no memory ----------------------------------------------------------- */

struct faulty {
    long left; /* allocations until one fails */
    long live;
};

static void *faulty_alloc(void *user, size_t bytes, size_t align)
{
    struct faulty *f = user;
    void *p = NULL;

    if (f->left-- == 0)
        return NULL;
    if (posix_memalign(&p, align < sizeof(void *) ? sizeof(void *) : align, bytes) != 0)
        return NULL;
    f->live++;
    return p;
}

static void faulty_free(void *user, void *ptr, size_t bytes)
{
    struct faulty *f = user;

    memset(ptr, 0xee, bytes);
    f->live--;
    free(ptr);
}

static heddle_status use_all(const struct heddle_allocator *a)
{
    const struct heddle_perf_key key = {"k", "v", "d", 0};
    const struct heddle_perf_device dev = {1e9, 1e9, 1.0};
    struct heddle_perf *perf = NULL;
    struct heddle_perf_series *s = NULL;
    struct heddle_perf_entry *e = NULL;
    struct heddle_estimate est;
    heddle_status st = heddle_perf_create(a, NULL, &perf), last;

    if (st == HEDDLE_OK)
        st = heddle_perf_device_set(perf, "other", &dev);
    if (st == HEDDLE_OK)
        st = heddle_perf_series_get(perf, &key, &s);
    for (uint64_t i = 0; st == HEDDLE_OK && i < 20; i++) {
        st = heddle_perf_entry_get(s, i, (double)(i + 1), 0, &e);
        if (st == HEDDLE_OK)
            heddle_perf_record(e, 10.0 * (double)(i + 1));
    }
    if (st == HEDDLE_OK)
        st = heddle_perf_query(perf, &key, 1000, 25, 0, &est);
    last = heddle_perf_destroy(perf);
    return st != HEDDLE_OK ? st : last;
}

TEST(every_allocation_may_fail)
{
    struct faulty f = {0};
    const struct heddle_allocator a = {faulty_alloc, faulty_free, &f};
    heddle_status st;
    long k = 0;

    do {
        f.left = k++;
        st = use_all(&a);
        CHECK(st == HEDDLE_OK || st == HEDDLE_ENOMEM);
        CHECK_EQ(f.live, 0);
    } while (st != HEDDLE_OK);
    CHECK(k > 20);
}

TEST_MAIN(keys_are_kept_apart, bad_names_and_arguments, guesses_get_better, peaks_can_change,
          query_leaves_no_trace, many_shapes_share_buckets, too_many_series, list_show_forget,
          source_names, threads, every_allocation_may_fail)
