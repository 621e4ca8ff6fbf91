/* SPDX-License-Identifier: BSD-3-Clause */
/* The disk driver against shadows in memory, full disks and bad copies. */
#include "drive/disk/disk.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "base/faulty_test.h"
#include "base/rng.h"
#include "base/thread.h"
#include "tests/test.h"

#define D (&heddle_driver_disk)

enum { MAX_OPS = 256 };

struct test_op {
    struct heddle_op op;
    heddle_status st;
    unsigned ndone;
    unsigned when; /* order of the ends */
};

static unsigned test_clock;

static void op_done(struct heddle_op *op, heddle_status st)
{
    struct test_op *t = (struct test_op *)(void *)op;

    t->st = st;
    t->ndone++;
    t->when = ++test_clock;
}

static uint64_t fake_now(void *user)
{
    return atomic_fetch_add((_Atomic uint64_t *)user, 1) + 1;
}

static _Atomic uint64_t fake_time;

static struct heddle_dev *dev_open(const struct heddle_allocator *a, const char *path,
                                   uint64_t bytes)
{
    const struct heddle_drive_env env = {
        .alloc = a, .now_ns = fake_now, .user = &fake_time, .path = path, .bytes = bytes};
    struct heddle_dev *d = NULL;

    CHECK_OK(D->open(&env, 0, &d));
    CHECK(d != NULL);
    return d;
}

static void op_start(struct heddle_dev *d, struct test_op *t, const struct heddle_copy *c,
                     unsigned stream)
{
    memset(t, 0, sizeof(*t));
    t->op.done = op_done;
    CHECK_OK(D->copy(d, c, stream, &t->op));
}

static void op_wait(struct heddle_dev *d, struct test_op *t)
{
    while (t->ndone == 0)
        if (D->progress(d) == 0)
            heddle_thread_yield();
    CHECK_EQ(t->ndone, 1);
}

static struct heddle_copy one_run(enum heddle_copy_kind kind, void *ptr, void *host, size_t bytes)
{
    return (struct heddle_copy){
        .kind = kind, .ptr = ptr, .host = host, .runs = {.run_bytes = bytes, .nruns = 1}};
}

static heddle_status move(struct heddle_dev *d, enum heddle_copy_kind kind, void *ptr, void *host,
                          size_t bytes)
{
    const struct heddle_copy c = one_run(kind, ptr, host, bytes);
    struct test_op t;

    op_start(d, &t, &c, 0);
    op_wait(d, &t);
    CHECK(t.op.begin_ns > 0 && t.op.begin_ns < t.op.end_ns);
    return t.st;
}

static void fill(struct heddle_rng *r, unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (unsigned char)heddle_rng_next(r);
}

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

/* --- what goes wrong ----------------------------------------------------- */

TEST(budget)
{
    struct heddle_dev *d = dev_open(NULL, NULL, 10 * 4096 + 17);
    void *p[10], *q = NULL;

    for (size_t i = 0; i < 10; i++)
        CHECK_OK(D->alloc(d, 4000, 0, &p[i]));
    CHECK_STATUS(D->alloc(d, 1, 0, &q), HEDDLE_ENOMEM);
    CHECK(strstr(D->error(d), "used up: 4096 bytes wanted, 0 of") != NULL);
    CHECK_EQ(D->memory_free(d), 0);
    D->free(d, p[3], 4000, 0);
    D->free(d, p[4], 4000, 0);
    CHECK_STATUS(D->alloc(d, 8193, 0, &q), HEDDLE_ENOMEM);
    CHECK_OK(D->alloc(d, 8192, 0, &q));
    CHECK(q == p[3]);
    CHECK_STATUS(D->alloc(d, SIZE_MAX, 0, &q), HEDDLE_ENOMEM);
    CHECK_STATUS(D->alloc(d, SIZE_MAX / 2, 0, &q), HEDDLE_ENOMEM);
    D->close(d);
}

/* Growing beyond the limit of the process would end it by a signal. */
TEST(file_size_limit)
{
    struct heddle_dev *d = dev_open(NULL, NULL, 0);
    struct rlimit old, lim;
    void *p = NULL;

    CHECK_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
    lim = old;
    lim.rlim_cur = 100000;
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &lim), 0);
    CHECK_OK(D->alloc(d, 90000, 0, &p));
    CHECK_STATUS(D->alloc(d, 20000, 0, &p), HEDDLE_ENOMEM);
    CHECK(strstr(D->error(d), "may not be longer") != NULL);
    CHECK_OK(D->alloc(d, 4096, 0, &p));
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
    CHECK_OK(D->alloc(d, 20000, 0, &p));
    D->close(d);
}

/* More than any disk has. */
TEST(full_disk)
{
    struct heddle_dev *d = dev_open(NULL, NULL, 0);
    const uint64_t left = D->memory_free(d);
    const size_t n = (size_t)left + ((size_t)1 << 40);
    char host[100] = "still there", back[100];
    void *p = NULL, *q = NULL;
    heddle_status st;

    CHECK_OK(D->alloc(d, 100, 0, &p));
    CHECK_OK(move(d, HEDDLE_COPY_IN, p, host, 100));
    st = D->alloc(d, n, 0, &q);
    if (st == HEDDLE_OK) {
        D->close(d);
        SKIP("this file system promises more than it has");
    }
    CHECK_STATUS(st, HEDDLE_ENOMEM);
    CHECK(D->error(d)[0] != '\0');
    CHECK_OK(D->alloc(d, 100, 0, &q));
    CHECK_OK(move(d, HEDDLE_COPY_OUT, p, back, 100));
    CHECK_STR(back, "still there");
    D->close(d);
}

static bool write_word(const char *path, const char *word)
{
    FILE *f = fopen(path, "w");
    const bool ok = f != NULL && fputs(word, f) >= 0;

    return f != NULL && fclose(f) == 0 && ok;
}

/* In a process of its own: a file system of 2 MiB that only it can see. */
static bool mount_small(const char *path)
{
    char users[64], groups[64];

    snprintf(users, sizeof(users), "0 %u 1", (unsigned)geteuid());
    snprintf(groups, sizeof(groups), "0 %u 1", (unsigned)getegid());
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && write_word("/proc/self/uid_map", users) &&
           write_word("/proc/self/setgroups", "deny") && write_word("/proc/self/gid_map", groups) &&
           mount("heddle-test", path, "tmpfs", 0, "size=2m") == 0;
}

static void fill_small(const char *path)
{
    enum { N = 64, BYTES = 100000 };
    static unsigned char host[BYTES], back[BYTES];
    struct heddle_dev *d = dev_open(NULL, path, 0);
    void *p[N];
    size_t n = 0;
    heddle_status st = HEDDLE_OK;

    while (n < N && (st = D->alloc(d, BYTES, 0, &p[n])) == HEDDLE_OK)
        n++;
    CHECK_STATUS(st, HEDDLE_ENOMEM);
    CHECK(n >= 10 && n < 22);
    CHECK(strstr(D->error(d), "is full: ") != NULL);
    CHECK(strstr(D->error(d), " bytes wanted, ") != NULL);
    for (size_t i = 0; i < n; i++) { /* what was given holds what it should */
        memset(host, (int)i + 1, BYTES);
        CHECK_OK(move(d, HEDDLE_COPY_IN, p[i], host, BYTES));
    }
    for (size_t i = 0; i < n; i++) {
        memset(host, (int)i + 1, BYTES);
        CHECK_OK(move(d, HEDDLE_COPY_OUT, p[i], back, BYTES));
        CHECK(memcmp(host, back, BYTES) == 0);
    }
    D->free(d, p[3], BYTES, 0);
    CHECK_OK(D->alloc(d, BYTES, 0, &p[3]));
    CHECK_STATUS(D->alloc(d, BYTES, 0, &p[n]), HEDDLE_ENOMEM);
    D->close(d);
}

TEST(small_file_system)
{
    char path[] = "disk_test_XXXXXX";
    int status = 0;
    pid_t pid;

    CHECK(mkdtemp(path) != NULL);
    fflush(NULL);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        if (!mount_small(path))
            _exit(77);
        fill_small(path);
        _exit(0);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    rmdir(path);
    CHECK(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        SKIP("mounting is not allowed here");
    CHECK_EQ(WEXITSTATUS(status), 0);
}

/* The kernel cannot read or write the host's side: the operation fails, the
 * stream goes on. */
TEST(failed_operation)
{
    const size_t n = 8 * 4096;
    struct heddle_dev *d = dev_open(NULL, NULL, 0);
    void *bad = mmap(NULL, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *good = aligned_alloc(4096, n);
    void *p = NULL;

    CHECK(bad != MAP_FAILED);
    memset(good, 5, n);
    CHECK_STR(D->error(d), "");
    CHECK_OK(D->alloc(d, n, 0, &p));
    CHECK_STATUS(move(d, HEDDLE_COPY_IN, p, bad, n), HEDDLE_EIO);
    CHECK(strstr(D->error(d), "writing 32768 bytes to the disk at") != NULL);
    CHECK_OK(move(d, HEDDLE_COPY_IN, p, good, n));
    CHECK_STATUS(move(d, HEDDLE_COPY_OUT, p, bad, n), HEDDLE_EIO);
    CHECK(strstr(D->error(d), "reading 32768 bytes from the disk") != NULL);
    memset(good, 0, n);
    CHECK_OK(move(d, HEDDLE_COPY_OUT, p, good, n));
    CHECK_EQ(good[n - 1], 5);
    munmap(bad, n);
    free(good);
    D->close(d);
}

TEST(bad_copies)
{
    struct heddle_dev *d = dev_open(NULL, NULL, 0);
    char host[64] = {0};
    struct test_op t = {.op = {.done = op_done}};
    struct heddle_copy good, c;
    void *p = NULL;

    CHECK_OK(D->alloc(d, 4096, 0, &p));
    good = one_run(HEDDLE_COPY_IN, p, host, 64);
    CHECK_STATUS(D->copy(d, &good, 1000, &t.op), HEDDLE_EINVAL);
    c = good;
    c.ptr = (char *)p + 4096 - 63;
    CHECK_STATUS(D->copy(d, &c, 0, &t.op), HEDDLE_EINVAL);
    c = good;
    c.ptr = NULL;
    CHECK_STATUS(D->copy(d, &c, 0, &t.op), HEDDLE_EINVAL);
    c = good;
    c.host = NULL;
    CHECK_STATUS(D->copy(d, &c, 0, &t.op), HEDDLE_EINVAL);
    c = good;
    c.kind = HEDDLE_COPY_PEER;
    CHECK_STATUS(D->copy(d, &c, 0, &t.op), HEDDLE_EINVAL);
    c = good;
    c.runs.nruns = 2; /* not what ndim and count say */
    CHECK_STATUS(D->copy(d, &c, 0, &t.op), HEDDLE_EINVAL);
    c.runs.nruns = SIZE_MAX;
    CHECK_STATUS(D->copy(d, &c, 0, &t.op), HEDDLE_EINVAL);
    c = good;
    c.runs.run_bytes = 0; /* nothing is something that can be done */
    op_start(d, &t, &c, 0);
    op_wait(d, &t);
    CHECK_OK(t.st);
    D->close(d);
}

TEST(no_folder)
{
    const struct heddle_drive_env env = {.path = "/nowhere/at/all"};
    struct heddle_dev_info info;
    struct heddle_dev *d = NULL;
    unsigned n = 9;

    CHECK_OK(D->probe(&env, &info, 1, &n));
    CHECK_EQ(n, 0);
    CHECK_STATUS(D->open(&env, 0, &d), HEDDLE_ENOENT);
    CHECK_STATUS(D->open(&env, 1, &d), HEDDLE_EINVAL);
    CHECK(d == NULL);
}

TEST(probe)
{
    const struct heddle_drive_env env = {.bytes = 12345678};
    struct heddle_dev_info info;
    unsigned n = 0;

    CHECK_OK(D->probe(&env, NULL, 0, &n));
    CHECK_EQ(n, 1);
    CHECK_OK(D->probe(&env, &info, 1, &n));
    CHECK_STR(info.name, "disk0");
    CHECK(strncmp(info.model, "disk:", 5) == 0 && info.model[5] != '\0');
    CHECK_EQ(info.kind, 0);
    CHECK_EQ(info.memory_total, 12345678);
    CHECK(info.nstreams > 0);
}

/* Opened and closed at once, and closed with work that nobody waits for. */
TEST(close_early)
{
    static char host[1 << 16];

    for (size_t round = 0; round < test_scale(100); round++) {
        struct heddle_dev *d = dev_open(NULL, NULL, 0);
        struct test_op t[20];
        struct heddle_copy c;
        void *p = NULL;

        CHECK_OK(D->alloc(d, sizeof(host), 0, &p));
        c = one_run(HEDDLE_COPY_IN, p, host, sizeof(host));
        for (size_t i = 0; i < round % 20; i++)
            op_start(d, &t[i], &c, (unsigned)i % 4);
        D->close(d);
    }
    D->close(NULL);
}

static heddle_status small_life(const struct heddle_allocator *a)
{
    const struct heddle_drive_env env = {.alloc = a};
    struct heddle_dev *d = NULL;
    heddle_status st = D->open(&env, 0, &d);
    struct test_op t[4] = {0};
    char host[5000] = {1}, back[5000];
    void *p = NULL;

    if (st != HEDDLE_OK)
        return st;
    st = D->alloc(d, sizeof(host), 0, &p);
    for (size_t i = 0; st == HEDDLE_OK && i < 4; i++) {
        const struct heddle_copy c =
            one_run(i < 3 ? HEDDLE_COPY_IN : HEDDLE_COPY_OUT, p, i < 3 ? host : back, sizeof(host));

        t[i].op.done = op_done;
        if (i > 0)
            st = D->order(d, (unsigned)i, &t[i - 1].op);
        if (st == HEDDLE_OK)
            st = D->copy(d, &c, (unsigned)i, &t[i].op);
    }
    if (st == HEDDLE_OK) {
        op_wait(d, &t[3]);
        CHECK(memcmp(host, back, sizeof(host)) == 0);
    }
    D->close(d);
    return st;
}

TEST(no_memory)
{
    struct faulty f = {.has_failed = true};

    for (size_t k = 1; f.has_failed; k++) {
        heddle_status st;

        faulty_init(&f, k);
        st = small_life(&f.a);
        CHECK_STATUS(st, f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
        CHECK_EQ(f.nlive, 0);
    }
}

TEST_MAIN(space_random, random_on_disk, random_elsewhere, large, many_in_flight,
          order_between_streams, free_in_flight, free_then_alloc_on_one_stream, budget,
          file_size_limit, full_disk, small_file_system, failed_operation, bad_copies, no_folder,
          probe, close_early, no_memory)
