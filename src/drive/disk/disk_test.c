/* SPDX-License-Identifier: BSD-3-Clause */
/* The disk driver against shadows in memory; streams. fault_test.c has what goes wrong. */
#include "drive/disk/disk.h"

#include <sys/stat.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "drive/disk/rig_test.h"
#include "tests/test.h"

/* --- space --------------------------------------------------------------- */

/* Against a map of bytes; every range is checked after every step. */
TEST(space_random)
{
    enum { UNITS = 300, LIVE = 60 };
    struct heddle_disk_space s = {.alloc = &heddle_allocator_default};
    struct heddle_disk_range live[LIVE];
    unsigned char map[UNITS] = {0};
    size_t nlive = 0, nfull = 0;
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    CHECK_OK(heddle_disk_space_reserve(&s, LIVE));
    heddle_disk_space_grow(&s, UNITS / 2);
    for (size_t step = 0; step < test_scale(100000); step++) {
        const uint64_t want = 1 + heddle_rng_below32(&r, 20);
        uint64_t at = 0, used = 0;
        size_t n = 0;

        if (step == 1000)
            heddle_disk_space_grow(&s, UNITS - UNITS / 2);
        if (nlive < LIVE && heddle_rng_below32(&r, 2) == 0) {
            if (heddle_disk_space_take(&s, want, &at)) {
                for (uint64_t i = at; i < at + want; i++)
                    CHECK_EQ(map[i]++, 0);
                live[nlive++] = (struct heddle_disk_range){at, want};
            } else {
                nfull++;
            }
        } else if (nlive > 0) {
            const size_t i = heddle_rng_below32(&r, (uint32_t)nlive);

            for (uint64_t k = 0; k < live[i].bytes; k++)
                CHECK_EQ(map[live[i].at + k]--, 1);
            heddle_disk_space_give(&s, live[i].at, live[i].bytes);
            live[i] = live[--nlive];
        }
        for (uint64_t i = 0; i < s.end; i++) {
            used += map[i];
            n += map[i] == 0 && (i == 0 || map[i - 1] == 1);
        }
        CHECK_EQ(s.used, used);
        CHECK_EQ(s.n, n); /* fully joined */
    }
    CHECK(nfull > 0);
    while (nlive > 0) {
        nlive--;
        heddle_disk_space_give(&s, live[nlive].at, live[nlive].bytes);
    }
    CHECK_EQ(s.n, 1);
    CHECK_EQ(heddle_disk_space_tail(&s), s.end);
    heddle_disk_space_fini(&s);
}

/* --- copies -------------------------------------------------------------- */

struct shadow {
    unsigned char *bytes;
    void *ptr;
    size_t n;
    unsigned stream;
};

/* Random runs whose bytes are `want` in all; the span they need in *span. */
static void random_runs(struct heddle_rng *r, size_t want, struct heddle_runs *out, size_t *span)
{
    size_t left = want;

    memset(out, 0, sizeof(*out));
    out->ndim = heddle_rng_below32(r, 4);
    out->nruns = 1;
    for (unsigned d = 0; d < out->ndim; d++) {
        size_t k = 1 + heddle_rng_below32(r, 8);

        while (left % k != 0)
            k--;
        out->count[d] = k;
        out->nruns *= k;
        left /= k;
    }
    out->run_bytes = left;
    *span = left;
    for (unsigned d = out->ndim; d-- > 0;) {
        const size_t gap = heddle_rng_below32(r, 2) == 0 ? 0 : heddle_rng_below32(r, 100);

        out->step[d] = *span + gap;
        *span = out->step[d] * out->count[d];
    }
}

/* The byte of the host at place i of the dense side. */
static size_t host_place(const struct heddle_runs *r, size_t i)
{
    size_t run = i / r->run_bytes, at = i % r->run_bytes;

    for (unsigned d = r->ndim; d-- > 0; run /= r->count[d])
        at += run % r->count[d] * r->step[d];
    return at;
}

/* One copy of a random part, in or out, checked byte by byte. */
static void random_copy(struct heddle_dev *d, struct heddle_rng *r, struct shadow *s)
{
    const size_t from = heddle_rng_below32(r, 3) == 0 ? heddle_rng_below32(r, (uint32_t)s->n) : 0;
    const size_t n = heddle_rng_below32(r, 3) == 0
                         ? 1 + heddle_rng_below32(r, (uint32_t)(s->n - from))
                         : s->n - from;
    const bool is_in = heddle_rng_below32(r, 2) == 0;
    const size_t shift = heddle_rng_below32(r, 2) == 0 ? 0 : heddle_rng_below32(r, 5000);
    unsigned char *host, *raw;
    struct heddle_copy c = {.ptr = (char *)s->ptr + from};
    struct test_op t;
    size_t span = 0;

    random_runs(r, n, &c.runs, &span);
    raw = aligned_alloc(4096, heddle_disk_round(span + shift + 64));
    CHECK(raw != NULL);
    host = raw + shift;
    memset(raw, 0xee, span + shift + 64);
    for (size_t i = 0; is_in && i < n; i++)
        host[host_place(&c.runs, i)] = s->bytes[from + i] = (unsigned char)heddle_rng_next(r);
    c.kind = is_in ? HEDDLE_COPY_IN : HEDDLE_COPY_OUT;
    c.host = host;
    op_start(d, &t, &c, s->stream);
    op_wait(d, &t);
    CHECK_OK(t.st);
    for (size_t i = 0; i < n; i++) {
        CHECK_EQ(host[host_place(&c.runs, i)], s->bytes[from + i]);
        host[host_place(&c.runs, i)] = 0xee;
    }
    for (size_t i = 0; i < span + shift + 64; i++)
        CHECK_EQ(raw[i], 0xee); /* nothing in the gaps */
    free(raw);
}

static size_t random_size(struct heddle_rng *r)
{
    switch (heddle_rng_below32(r, 4)) {
    case 0: return 1 + heddle_rng_below32(r, 100);
    case 1: return 4096u * (1 + heddle_rng_below32(r, 20));
    case 2: return 1 + heddle_rng_below32(r, 300000);
    default: return 4096u * (1 + heddle_rng_below32(r, 3)) + 4095;
    }
}

static void random_life(const char *path)
{
    enum { SLOTS = 24 };
    struct heddle_dev *d = dev_open(NULL, path, (uint64_t)1 << 20);
    struct shadow slot[SLOTS] = {{0}};
    size_t nfull = 0;
    struct heddle_rng r;

    heddle_rng_seed(&r, test_seed());
    for (size_t step = 0; step < test_scale(3000); step++) {
        struct shadow *s = &slot[heddle_rng_below32(&r, SLOTS)];

        if (s->bytes == NULL) {
            s->n = random_size(&r);
            s->stream = heddle_rng_below32(&r, 3);
            const heddle_status st = D->alloc(d, s->n, s->stream, &s->ptr);

            nfull += st == HEDDLE_ENOMEM;
            if (st == HEDDLE_ENOMEM)
                continue;
            CHECK_OK(st);
            CHECK(s->ptr != NULL);
            s->bytes = malloc(s->n);
            fill(&r, s->bytes, s->n);
            CHECK_OK(move(d, HEDDLE_COPY_IN, s->ptr, s->bytes, s->n));
        } else if (heddle_rng_below32(&r, 4) == 0) {
            D->free(d, s->ptr, s->n, s->stream);
            free(s->bytes);
            s->bytes = NULL;
        } else {
            random_copy(d, &r, s);
        }
    }
    CHECK(nfull > 0 || TEST_SANITIZED);
    for (size_t i = 0; i < SLOTS; i++)
        if (slot[i].bytes != NULL) {
            unsigned char *back = malloc(slot[i].n);

            CHECK_OK(move(d, HEDDLE_COPY_OUT, slot[i].ptr, back, slot[i].n));
            CHECK(memcmp(back, slot[i].bytes, slot[i].n) == 0);
            D->free(d, slot[i].ptr, slot[i].n, slot[i].stream);
            free(back);
            free(slot[i].bytes);
        }
    CHECK_EQ(D->memory_free(d), (uint64_t)1 << 20);
    D->close(d);
}

TEST(random_on_disk)
{
    random_life(P_tmpdir);
}

/* Mostly a file system in memory: another way through open and O_DIRECT. */
TEST(random_elsewhere)
{
    struct stat sb;

    if (stat("/dev/shm", &sb) != 0 || access("/dev/shm", W_OK) != 0)
        SKIP("there is no /dev/shm");
    random_life("/dev/shm");
}

/* Larger than a stage and than a piece, aligned and not. */
TEST(large)
{
    const size_t n = ((size_t)33 << 20) + 777;
    struct heddle_dev *d = dev_open(NULL, NULL, 0);
    unsigned char *a = aligned_alloc(4096, heddle_disk_round(n + 1));
    unsigned char *b = aligned_alloc(4096, heddle_disk_round(n + 1));
    struct heddle_rng r;
    void *ptr = NULL;

    heddle_rng_seed(&r, 7);
    fill(&r, a, n + 1);
    CHECK_OK(D->alloc(d, n, 0, &ptr));
    for (size_t shift = 0; shift < 2; shift++) {
        memset(b, 0, n + 1);
        CHECK_OK(move(d, HEDDLE_COPY_IN, ptr, a + shift, n));
        CHECK_OK(move(d, HEDDLE_COPY_OUT, ptr, b + 1 - shift, n));
        CHECK(memcmp(a + shift, b + 1 - shift, n) == 0);
    }
    D->free(d, ptr, n, 0);
    free(a);
    free(b);
    D->close(d);
}

/* --- streams ------------------------------------------------------------- */

/* Each stream overwrites its own range again and again and then reads it: only
 * the last write is seen, and the ends come in order. */
TEST(many_in_flight)
{
    enum { STREAMS = 8, EACH = 31, BYTES = 20000 };
    struct heddle_dev *d = dev_open(NULL, NULL, 0);
    static struct test_op op[STREAMS][EACH + 1];
    static unsigned char in[STREAMS][EACH][BYTES], out[STREAMS][BYTES];
    void *ptr[STREAMS];
    unsigned ndone = 0;

    for (unsigned s = 0; s < STREAMS; s++)
        CHECK_OK(D->alloc(d, BYTES, s, &ptr[s]));
    for (unsigned i = 0; i < EACH; i++)
        for (unsigned s = 0; s < STREAMS; s++) {
            const struct heddle_copy c = one_run(HEDDLE_COPY_IN, ptr[s], in[s][i], BYTES);

            memset(in[s][i], (int)(s * 31 + i), BYTES);
            op_start(d, &op[s][i], &c, s);
        }
    for (unsigned s = 0; s < STREAMS; s++) {
        const struct heddle_copy c = one_run(HEDDLE_COPY_OUT, ptr[s], out[s], BYTES);

        op_start(d, &op[s][EACH], &c, s);
        D->free(d, ptr[s], BYTES, s); /* after the last use was given */
    }
    while (ndone < STREAMS * (EACH + 1))
        ndone += D->progress(d);
    for (unsigned s = 0; s < STREAMS; s++) {
        CHECK(memcmp(out[s], in[s][EACH - 1], BYTES) == 0);
        for (unsigned i = 0; i <= EACH; i++) {
            CHECK_OK(op[s][i].st);
            CHECK_EQ(op[s][i].ndone, 1);
            CHECK(i == 0 || op[s][i].when > op[s][i - 1].when);
        }
    }
    CHECK_EQ(D->progress(d), 0);
    D->close(d);
}

/* A chain through all streams, each link after the one before. */
TEST(order_between_streams)
{
    enum { LINKS = 200, BYTES = 9000 };
    struct heddle_dev *d = dev_open(NULL, NULL, 0);
    static struct test_op op[2 * LINKS];
    static unsigned char in[LINKS][BYTES], out[LINKS][BYTES];
    void *ptr = NULL;
    unsigned ndone = 0;

    CHECK_OK(D->alloc(d, BYTES, 0, &ptr));
    for (unsigned i = 0; i < LINKS; i++) {
        const unsigned to = 2 * i % 5, from = (2 * i + 1) % 5;
        const struct heddle_copy w = one_run(HEDDLE_COPY_IN, ptr, in[i], BYTES);
        const struct heddle_copy r = one_run(HEDDLE_COPY_OUT, ptr, out[i], BYTES);

        memset(in[i], (int)(i + 1), BYTES);
        if (i > 0)
            CHECK_OK(D->order(d, to, &op[2 * i - 1].op));
        op_start(d, &op[2 * i], &w, to);
        CHECK_OK(D->order(d, from, &op[2 * i].op));
        op_start(d, &op[2 * i + 1], &r, from);
    }
    while (ndone < 2 * LINKS)
        ndone += D->progress(d);
    for (unsigned i = 0; i < LINKS; i++)
        CHECK(memcmp(in[i], out[i], BYTES) == 0);
    D->free(d, ptr, BYTES, 0);
    D->close(d);
}

/* A range freed while its stream still writes to it is not given to another
 * stream: what that one writes would be overwritten. */
TEST(free_in_flight)
{
    const size_t n = (size_t)1 << 20;
    struct heddle_dev *d = dev_open(NULL, NULL, 2 * n);
    unsigned char *zeros = calloc(1, n), *ones = malloc(n), *back = malloc(n);
    struct test_op w[8], v;

    memset(ones, 1, n);
    for (size_t round = 0; round < test_scale(50); round++) {
        void *p = NULL, *q = NULL;
        struct heddle_copy c;

        CHECK_OK(D->alloc(d, n, 0, &p));
        c = one_run(HEDDLE_COPY_IN, p, zeros, n);
        for (size_t i = 0; i < 8; i++)
            op_start(d, &w[i], &c, 0);
        D->free(d, p, n, 0);
        CHECK_OK(D->alloc(d, n, 1, &q));
        c = one_run(HEDDLE_COPY_IN, q, ones, n);
        op_start(d, &v, &c, 1);
        for (size_t i = 0; i < 8; i++)
            op_wait(d, &w[i]);
        op_wait(d, &v);
        CHECK_OK(move(d, HEDDLE_COPY_OUT, q, back, n));
        CHECK(memcmp(back, ones, n) == 0);
        D->free(d, q, n, 1);
    }
    CHECK_EQ(D->memory_free(d), 2 * n);
    D->close(d);
    free(zeros);
    free(ones);
    free(back);
}

/* With no room left, the same stream may have it again at once. */
TEST(free_then_alloc_on_one_stream)
{
    const size_t n = (size_t)1 << 20;
    struct heddle_dev *d = dev_open(NULL, NULL, n);
    unsigned char *a = calloc(1, n), *b = malloc(n);
    struct test_op w, v;
    struct heddle_copy c;
    void *p = NULL;

    memset(b, 2, n);
    CHECK_OK(D->alloc(d, n, 0, &p));
    c = one_run(HEDDLE_COPY_IN, p, a, n);
    op_start(d, &w, &c, 0);
    D->free(d, p, n, 0);
    CHECK_OK(D->alloc(d, n, 0, &p));
    c = one_run(HEDDLE_COPY_IN, p, b, n);
    op_start(d, &v, &c, 0);
    op_wait(d, &w);
    op_wait(d, &v);
    CHECK_OK(move(d, HEDDLE_COPY_OUT, p, a, n));
    CHECK(memcmp(a, b, n) == 0);
    D->close(d);
    free(a);
    free(b);
}

TEST_MAIN(space_random, random_on_disk, random_elsewhere, large, many_in_flight,
          order_between_streams, free_in_flight, free_then_alloc_on_one_stream)
