/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests links: fits under noise and outliers, bad samples, files, threads. */
#include <ftw.h>
#include <math.h>
#include <sys/stat.h>

#include "base/faulty_test.h"
#include "base/rng.h"
#include "base/thread.h"
#include "perf/model.h"
#include "test.h"

static int remove_one(const char *path, const struct stat *sb, int type, struct FTW *ftw)
{
    (void)sb;
    (void)type;
    (void)ftw;
    return remove(path);
}

static struct heddle_perf *open_perf(const char *dir)
{
    struct heddle_perf *perf = NULL;

    CHECK_OK(heddle_perf_create(NULL, dir, &perf));
    return perf;
}

static struct heddle_perf_link *link_of(struct heddle_perf *perf, const char *from, const char *to)
{
    struct heddle_perf_link *l = NULL;

    CHECK_OK(heddle_perf_link_get(perf, from, to, &l));
    return l;
}

static double uniform(struct heddle_rng *r)
{
    return (double)(heddle_rng_next(r) >> 11) * 0x1p-53;
}

/* What a link of this latency and bandwidth takes, give or take 5 %. */
static double copy_ns(struct heddle_rng *r, uint64_t bytes, double latency, double bytes_per_s)
{
    return (latency + 1e9 * (double)bytes / bytes_per_s) * (0.95 + 0.1 * uniform(r));
}

TEST(prior)
{
    struct heddle_perf *perf = open_perf(NULL);
    struct heddle_perf_link *l = link_of(perf, "host", "disk:x");
    struct heddle_estimate est = heddle_perf_link_predict(l, 5000000);

    CHECK_NEAR(est.ns, 1e4 + 1e6, 1.0);
    CHECK_EQ(est.source, HEDDLE_EST_PRIOR);
    CHECK(est.confidence == 0.0);
    est = heddle_perf_link_predict(l, 0);
    CHECK_NEAR(est.ns, 1e4, 1e-6);
    est = heddle_perf_link_predict(l, UINT64_MAX);
    CHECK(isfinite(est.ns) && est.ns > 1e18);
    CHECK(link_of(perf, "host", "disk:x") == l);
    CHECK(link_of(perf, "disk:x", "host") != l);
    CHECK_OK(heddle_perf_destroy(perf));
}

/* Sizes over 7 decades; of the samples 30 % are wrong by up to 10^4, either
 * way. Several links, from slow and far to fast and near. */
TEST(outliers)
{
    static const double latency[] = {100.0, 5e3, 2e5, 8e6};
    static const double rate[] = {2e7, 1e9, 2.5e10, 9e11};
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    for (unsigned k = 0; k < 16; k++) {
        const double lat = latency[k % 4], bw = rate[k / 4];
        struct heddle_perf *perf = open_perf(NULL);
        struct heddle_perf_link *l = link_of(perf, "a", "b");
        struct heddle_perf_link_info info;

        for (unsigned i = 0; i < 3000; i++) {
            const uint64_t bytes = (uint64_t)exp(log(100.0) + uniform(&r) * log(1e7));
            double ns = copy_ns(&r, bytes, lat, bw);

            if (heddle_rng_below32(&r, 10) < 3)
                ns *= exp((uniform(&r) * 2.0 - 1.0) * log(1e4));
            heddle_perf_link_record(l, bytes, ns);
        }
        heddle_perf_link_info(l, &info);
        CHECK_EQ(info.count + info.ignored, 3000);
        CHECK(info.confidence > 0.3);
        for (uint64_t b = 1000; b < 1000000000; b *= 7) {
            const struct heddle_estimate est = heddle_perf_link_predict(l, b);
            const double want = lat + 1e9 * (double)b / bw;

            CHECK(est.source >= HEDDLE_EST_FIT);
            CHECK_NEAR(est.ns / want, 1.0, 0.15);
            CHECK_NEAR((info.latency_ns + 1e9 * (double)b / info.bytes_per_s) / want, 1.0, 0.15);
        }
        CHECK_OK(heddle_perf_destroy(perf));
    }
}

/* Few samples: one outlier among three of each size, and sizes seen once. */
TEST(few_samples)
{
    struct heddle_perf *perf = open_perf(NULL);
    struct heddle_perf_link *l = link_of(perf, "a", "b");
    struct heddle_perf_link_info info;

    for (unsigned i = 10; i < 25; i += 2) {
        heddle_perf_link_record(l, UINT64_C(1) << i, 5e3 + 0.1 * exp2(i));
        heddle_perf_link_record(l, UINT64_C(1) << i, 5e8);
        heddle_perf_link_record(l, UINT64_C(1) << i, 5e3 + 0.1 * exp2(i));
        heddle_perf_link_record(l, UINT64_C(2) << i, 1e9);
    }
    heddle_perf_link_info(l, &info);
    CHECK_NEAR(info.latency_ns, 5e3, 200.0);
    CHECK_NEAR(info.bytes_per_s, 1e10, 5e8);
    CHECK_OK(heddle_perf_destroy(perf));
}

/* One size is enough for something sensible about the others. */
TEST(one_size)
{
    struct heddle_perf *perf = open_perf(NULL);
    struct heddle_perf_link *l = link_of(perf, "a", "b");
    struct heddle_estimate est;

    heddle_perf_link_record(l, 1 << 20, 2e6);
    est = heddle_perf_link_predict(l, 1 << 20);
    CHECK_NEAR(est.ns, 2e6, 2e4);
    CHECK(est.source == HEDDLE_EST_FIT && est.confidence > 0.0);
    for (int i = 0; i < 9; i++)
        heddle_perf_link_record(l, 1 << 20, 2e6);
    est = heddle_perf_link_predict(l, 1 << 20);
    CHECK_NEAR(est.ns, 2e6, 1.0);
    CHECK_EQ(est.source, HEDDLE_EST_MEASURED);
    CHECK(est.confidence > 0.5);
    est = heddle_perf_link_predict(l, 1 << 24);
    CHECK(est.ns > 2e7 && est.ns < 4e7 && est.confidence < 0.3);
    CHECK_OK(heddle_perf_destroy(perf));
}

/* Sizes that share a bin do not blur each other. */
TEST(sizes_of_a_bin)
{
    struct heddle_perf *perf = open_perf(NULL);
    struct heddle_perf_link *l = link_of(perf, "a", "b");

    for (unsigned i = 0; i < 3000; i++) {
        const uint64_t bytes = 900000 + i % 30 * 10000;

        heddle_perf_link_record(l, 64, 1000.0);
        heddle_perf_link_record(l, bytes, 1000.0 + (double)bytes);
        (void)heddle_perf_link_predict(l, bytes);
    }
    for (uint64_t b = 900000; b < 1200000; b += 10000)
        CHECK_NEAR(heddle_perf_link_predict(l, b).ns, 1000.0 + (double)b, 0.02 * (double)b);
    CHECK_OK(heddle_perf_destroy(perf));
}

TEST(bad_samples)
{
    static const double bad[] = {0.0, -1.0, NAN, INFINITY, -INFINITY, 1e-30, 1e300, -0.0};
    struct heddle_perf *perf = open_perf(NULL);
    struct heddle_perf_link *l = link_of(perf, "a", "b");
    struct heddle_perf_link_info info;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        heddle_perf_link_record(l, 1000, bad[i]);
    heddle_perf_link_record(l, 0, 1000.0);
    heddle_perf_link_record(l, UINT64_MAX, 1000.0); /* in a microsecond */
    heddle_perf_link_info(l, &info);
    CHECK_EQ(info.count, 0);
    CHECK_EQ(info.ignored, 10);
    CHECK_EQ(heddle_perf_link_predict(l, 1000).source, HEDDLE_EST_PRIOR);
    /* Extreme, but possible. */
    heddle_perf_link_record(l, UINT64_MAX, 1e15);
    heddle_perf_link_record(l, 1, 1e15);
    heddle_perf_link_record(l, 1, 0.001);
    for (uint64_t b = 0; b < 64; b++) {
        const struct heddle_estimate est = heddle_perf_link_predict(l, UINT64_C(1) << b);

        CHECK(isfinite(est.ns) && est.ns > 0.0);
        CHECK(est.confidence >= 0.0 && est.confidence <= 1.0);
    }
    CHECK_OK(heddle_perf_destroy(perf));
}

TEST(decreasing)
{
    struct heddle_perf *perf = open_perf(NULL);
    struct heddle_perf_link *l = link_of(perf, "a", "b");
    double last = 0.0;

    /* Larger is faster: no line fits, and still a prediction has to grow. */
    heddle_perf_link_record(l, 1000, 1e6);
    heddle_perf_link_record(l, 1000000, 1e4);
    for (uint64_t b = 1; b < UINT64_C(1) << 40; b *= 4) {
        const struct heddle_estimate est = heddle_perf_link_predict(l, b);

        CHECK(isfinite(est.ns) && est.ns > last);
        last = est.ns;
    }
    CHECK_OK(heddle_perf_destroy(perf));
}

TEST(names)
{
    struct heddle_perf *perf = open_perf(NULL);
    const struct heddle_perf_key key = {HEDDLE_PERF_LINKS, "v", "d", 1};
    char name[HEDDLE_PERF_NAME_MAX + 2];
    struct heddle_perf_series *s = NULL;
    struct heddle_perf_link *l = NULL;
    struct heddle_estimate est;

    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    CHECK_STATUS(heddle_perf_link_get(perf, name, "a", &l), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_perf_link_get(perf, "a", "", &l), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_perf_link_get(perf, NULL, "a", &l), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_perf_link_get(perf, "a", "b", NULL), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_perf_link_get(NULL, "a", "b", &l), HEDDLE_EINVAL);
    /* The name is taken. */
    CHECK_STATUS(heddle_perf_series_get(perf, &key, &s), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_perf_query(perf, &key, 1, 1, 1, &est), HEDDLE_EINVAL);
    for (unsigned i = 0; i < HEDDLE_MODEL_SERIES; i++) {
        char to[16];

        snprintf(to, sizeof(to), "dev%u", i);
        (void)link_of(perf, "host", to);
    }
    CHECK_STATUS(heddle_perf_link_get(perf, "one", "more", &l), HEDDLE_EOVERFLOW);
    CHECK_OK(heddle_perf_destroy(perf));
}

/* --- files --------------------------------------------------------------- */

static heddle_status keep_info(void *user, const struct heddle_perf_link_info *info)
{
    *(struct heddle_perf_link_info *)user = *info;
    return info->latency_ns >= 0.0 ? HEDDLE_OK : HEDDLE_ESTATE;
}

static heddle_status count_kernel(void *user, const struct heddle_perf_kernel_info *info)
{
    (void)info;
    ++*(unsigned *)user;
    return HEDDLE_OK;
}

static heddle_status count_bin(void *user, const struct heddle_perf_info *info)
{
    CHECK_STR(info->variant, "host \xc3\xa4");
    CHECK_STR(info->device, "opencl:Some GPU");
    CHECK(info->bytes > 0.0 && info->flops == 0.0);
    ++*(unsigned *)user;
    return HEDDLE_OK;
}

/* Two processes measure at the same time: both are in the file. */
TEST(save_and_merge)
{
    char dir[] = "perf_link_XXXXXX";
    struct heddle_perf *a, *b;
    struct heddle_perf_link_info info = {0};
    unsigned nkernels = 0, nbins = 0;
    size_t nfiles = 0;

    CHECK(mkdtemp(dir) != NULL);
    a = open_perf(dir);
    b = open_perf(dir);
    for (unsigned i = 0; i < 20; i++) {
        heddle_perf_link_record(link_of(a, "host \xc3\xa4", "opencl:Some GPU"), 10000, 3e3 + 1e4);
        heddle_perf_link_record(link_of(b, "host \xc3\xa4", "opencl:Some GPU"), 1000000, 3e3 + 1e6);
    }
    CHECK_OK(heddle_perf_destroy(a));
    CHECK_OK(heddle_perf_destroy(b));
    a = open_perf(dir);
    CHECK_OK(heddle_perf_each_link(a, keep_info, &info));
    CHECK_EQ(info.count, 40);
    CHECK_STR(info.from, "host \xc3\xa4");
    CHECK_NEAR(info.latency_ns, 3e3, 300.0);
    CHECK_NEAR(info.bytes_per_s, 1e9, 2e7);
    CHECK_OK(heddle_perf_list(a, count_kernel, &nkernels));
    CHECK_EQ(nkernels, 0);
    CHECK_OK(heddle_perf_show(a, HEDDLE_PERF_LINKS, count_bin, &nbins));
    CHECK_EQ(nbins, 2);
    CHECK_OK(heddle_perf_forget(a, HEDDLE_PERF_LINKS, &nfiles));
    CHECK_EQ(nfiles, 1);
    CHECK_EQ(heddle_perf_link_predict(link_of(a, "host \xc3\xa4", "opencl:Some GPU"), 10000).source,
             HEDDLE_EST_PRIOR);
    info.count = 77;
    CHECK_OK(heddle_perf_each_link(a, keep_info, &info));
    CHECK_EQ(info.count, 77); /* not called */
    CHECK_OK(heddle_perf_destroy(a));
    nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* --- threads and memory -------------------------------------------------- */

struct hammer {
    struct heddle_perf *perf;
    unsigned id;
};

static void *hammer_run(void *arg)
{
    const struct hammer *h = arg;
    struct heddle_perf_link *l = link_of(h->perf, "a", "b");
    struct heddle_rng r;

    heddle_rng_seed(&r, h->id);
    for (size_t i = 0; i < test_scale(50000); i++) {
        const uint64_t bytes = UINT64_C(1000) << heddle_rng_below32(&r, 14);
        struct heddle_estimate est;

        heddle_perf_link_record(l, bytes, copy_ns(&r, bytes, 2e3, 1e9));
        est = heddle_perf_link_predict(l, bytes);
        CHECK(est.ns > 0.0 && isfinite(est.ns));
        if (i % 1000 == 0)
            (void)link_of(h->perf, "a", h->id % 2 == 0 ? "c" : "d");
    }
    return NULL;
}

TEST(threads)
{
    enum { THREADS = 4 };
    struct heddle_perf *perf = open_perf(NULL);
    struct heddle_thread t[THREADS];
    struct hammer h[THREADS];
    struct heddle_perf_link_info info;

    for (unsigned i = 0; i < THREADS; i++) {
        h[i] = (struct hammer){perf, i};
        CHECK_OK(heddle_thread_create(&t[i], NULL, hammer_run, &h[i]));
    }
    for (unsigned i = 0; i < THREADS; i++)
        CHECK_OK(heddle_thread_join(&t[i]));
    heddle_perf_link_info(link_of(perf, "a", "b"), &info);
    CHECK_EQ(info.count, THREADS * test_scale(50000));
    CHECK_NEAR(info.latency_ns, 2e3, 200.0);
    CHECK_NEAR(info.bytes_per_s, 1e9, 5e7);
    CHECK_OK(heddle_perf_destroy(perf));
}

TEST(no_memory)
{
    struct faulty f = {.has_failed = true};

    for (size_t k = 1; f.has_failed; k++) {
        struct heddle_perf *perf = NULL;
        struct heddle_perf_link *l = NULL;
        heddle_status st;

        faulty_init(&f, k);
        st = heddle_perf_create(&f.a, NULL, &perf);
        if (st == HEDDLE_OK)
            st = heddle_perf_link_get(perf, "a", "b", &l);
        CHECK_STATUS(st, f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
        if (perf != NULL && f.has_failed) /* it works the second time */
            CHECK_OK(heddle_perf_link_get(perf, "a", "b", &l));
        if (l != NULL)
            heddle_perf_link_record(l, 1000, 1000.0);
        CHECK_OK(heddle_perf_destroy(perf));
        CHECK_EQ(f.nlive, 0);
    }
}

TEST_MAIN(prior, outliers, few_samples, one_size, sizes_of_a_bin, bad_samples, decreasing, names,
          save_and_merge, threads, no_memory)
