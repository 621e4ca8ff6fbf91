/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every device of every driver against the contract in drive/drive.h: bytes come
 * back as they went, whatever the shape, and nothing beside them is touched;
 * streams are in order; done() is called once, and from progress() only; what is
 * too large is refused; no allocation that fails leaves anything behind. What a
 * driver may leave out is in drive_optional.c.
 */
#include "drive_rig.h"

enum { GUARD = 96 };

/* --- tests --------------------------------------------------------------- */

TEST(the_table)
{
    size_t n = 0;

    for (; heddle_driver_table[n] != NULL; n++) {
        const struct heddle_driver *d = heddle_driver_table[n];
        struct heddle_drive_env env = {0};
        struct heddle_dev_info info[DEVICES];
        unsigned ndev = 77;

        CHECK(d->name != NULL && d->help != NULL);
        CHECK(strchr(d->help, '\n') == NULL);
        CHECK(d->probe != NULL && d->open != NULL && d->close != NULL);
        CHECK(d->alloc != NULL && d->free != NULL && d->copy != NULL);
        CHECK(d->progress != NULL);
        CHECK(d->kind == 0 || d->launch != NULL);
        CHECK(heddle_driver_find(d->name) == d);
        CHECK_OK(d->probe(&env, info, DEVICES, &ndev));
        CHECK(ndev != 77);
        printf("     %s: %s (%u here)\n", d->name, d->help, ndev);
        CHECK_OK(d->probe(&env, NULL, 0, &ndev));
    }
    CHECK(n >= 1);
    CHECK(heddle_driver_find("") == NULL);
    CHECK(heddle_driver_find("nonesuch") == NULL);
    CHECK_STR(heddle_device_name(HEDDLE_DEV_CPU), "cpu");
    CHECK_STR(heddle_device_name(HEDDLE_DEV_CUDA), "cuda");
    CHECK_STR(heddle_device_name(HEDDLE_DEV_OPENCL), "opencl");
    CHECK_STR(heddle_device_name((enum heddle_device)0), "unknown");
    CHECK_STR(heddle_device_name((enum heddle_device)99), "unknown");
}

static void check_info(struct rig *r)
{
    const struct heddle_dev_base *b = heddle_dev_base(r->dev);

    CHECK(b->driver == r->drv);
    CHECK(memchr(b->info.name, '\0', sizeof(b->info.name)) != NULL);
    CHECK(memchr(b->info.model, '\0', sizeof(b->info.model)) != NULL);
    CHECK(b->info.name[0] != '\0' && b->info.model[0] != '\0');
    CHECK_STR(b->info.name, r->info.name);
    CHECK(r->drv->kind == 0 || b->info.nstreams > 0);
    CHECK(b->info.memory_free <= b->info.memory_total);
    CHECK_EQ(r->drv->progress(r->dev), 0);
    if (r->drv->error != NULL)
        CHECK(r->drv->error(r->dev) != NULL);
    if (r->drv->native != NULL)
        CHECK(r->drv->native(r->dev, 0, "no such thing") == NULL);
    printf("     %s: %s\n", b->info.name, b->info.model);
}

TEST(devices)
{
    struct heddle_dev *dev;

    CHECK(for_each_device(check_info) >= 1);
    for (size_t i = 0; heddle_driver_table[i] != NULL; i++) {
        struct rig r;

        CHECK_OK(rig_init(&r, heddle_driver_table[i], NULL));
        CHECK(r.drv->open(&r.env, 1000, &dev) != HEDDLE_OK);
        rig_fini(&r);
    }
}

static void check_alloc(struct rig *r)
{
    static const size_t sizes[] = {1, 2, 63, 64, 65, 4095, 4096, 65537, 1000003, 1 << 22};
    enum { N = sizeof(sizes) / sizeof(sizes[0]) };
    void *p[N], *q;

    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < N; i++) {
            p[i] = NULL;
            CHECK_OK(r->drv->alloc(r->dev, sizes[i], (unsigned)i % (r->info.nstreams + 1), &p[i]));
            CHECK(p[i] != NULL);
            for (size_t j = 0; j < i; j++)
                CHECK(p[i] != p[j]);
        }
        for (size_t i = 0; i < N; i++)
            r->drv->free(r->dev, p[N - 1 - i], sizes[N - 1 - i],
                         (unsigned)(N - 1 - i) % (r->info.nstreams + 1));
    }
    /* Absurd, and absurd when something is added to it. */
    for (unsigned s = 0; s < 4; s++) {
        const size_t bytes = s == 0   ? (size_t)1 << 60
                             : s == 1 ? SIZE_MAX
                             : s == 2 ? SIZE_MAX - 63
                                      : (size_t)1 << 63;

        CHECK_STATUS(r->drv->alloc(r->dev, bytes, 0, &q), HEDDLE_ENOMEM);
    }
    CHECK_OK(r->drv->alloc(r->dev, 100, 0, &q));
    r->drv->free(r->dev, q, 100, 0);
}

TEST(memory)
{
    for_each_device(check_alloc);
}

/* Copies a box in and out again, to another place, and compares every byte of
 * both host arrays. */
static void check_box(struct rig *r, const struct heddle_runs *runs, size_t span, unsigned stream)
{
    const size_t bytes = heddle_runs_bytes(runs), all = span + 2 * GUARD;
    unsigned char *from = host_new(all, 1), *keep = host_new(all, 1);
    unsigned char *to = host_new(all, 2), *want = host_new(all, 2);
    unsigned char *flat = host_new(bytes, 3);
    void *ptr;

    CHECK_OK(r->drv->alloc(r->dev, bytes, stream, &ptr));
    copy_wait(r, HEDDLE_COPY_IN, ptr, from + GUARD, runs, stream);
    CHECK_EQ(memcmp(from, keep, all), 0);
    copy_wait(r, HEDDLE_COPY_OUT, ptr, to + GUARD, runs, stream);
    heddle_runs_gather(runs, from + GUARD, flat);
    heddle_runs_scatter(runs, flat, want + GUARD);
    CHECK_EQ(memcmp(to, want, all), 0);
    /* The device holds it without gaps, in the order of the walk. */
    {
        const struct heddle_runs d = dense(bytes);
        unsigned char *back = host_new(bytes, 4);

        copy_wait(r, HEDDLE_COPY_OUT, ptr, back, &d, stream);
        CHECK_EQ(memcmp(back, flat, bytes), 0);
        free(back);
    }
    r->drv->free(r->dev, ptr, bytes, stream);
    free(from);
    free(keep);
    free(to);
    free(want);
    free(flat);
}

static void check_shapes(struct rig *r)
{
    static const struct {
        struct heddle_runs runs;
        size_t span;
    } boxes[] = {
        {{.run_bytes = 1, .nruns = 1}, 1},
        {{.run_bytes = 4096, .nruns = 1}, 4096},
        {{.run_bytes = 1000003, .nruns = 1}, 1000003},
        /* one that is dense after all */
        {{40, 6, 2, {2, 3}, {120, 40}}, 240},
        /* a tile of a matrix; of one byte; of one row */
        {{64, 48, 1, {48}, {512}}, 47 * 512 + 64},
        {{1, 1000, 1, {1000}, {3}}, 999 * 3 + 1},
        {{24, 7, 2, {1, 7}, {9999, 56}}, 6 * 56 + 24},
        /* a box that is regular, and one whose planes are at odd places */
        {{16, 20, 2, {4, 5}, {640, 32}}, 3 * 640 + 4 * 32 + 16},
        {{16, 20, 2, {4, 5}, {333, 48}}, 3 * 333 + 4 * 48 + 16},
        {{8, 105, 3, {3, 5, 7}, {1000, 130, 17}}, 2 * 1000 + 4 * 130 + 6 * 17 + 8},
        /* transposed: the slowest dimension has the smallest step */
        {{4, 60, 2, {6, 10}, {4, 40}}, 5 * 4 + 9 * 40 + 4},
        {{2, 64, 6, {2, 2, 2, 2, 2, 2}, {3000, 1400, 600, 250, 100, 5}},
         3000 + 1400 + 600 + 250 + 100 + 5 + 2},
    };

    for (size_t i = 0; i < sizeof(boxes) / sizeof(boxes[0]); i++) {
        check_box(r, &boxes[i].runs, boxes[i].span, 0);
        check_box(r, &boxes[i].runs, boxes[i].span, r->info.nstreams);
    }
}

TEST(shapes)
{
    for_each_device(check_shapes);
}

/* Many copies in flight on two streams; each stream ends in order. */
static void check_many(struct rig *r)
{
    enum { N = 64, BYTES = 5000, PITCH = 80, RUN = 50 };
    static struct probe_op in[N], out[N];
    size_t order[2] = {0, 0};
    unsigned char *host = host_new(N * 2 * BYTES * 2, 9);
    const struct heddle_runs tile = {RUN, BYTES / RUN, 1, {BYTES / RUN}, {PITCH}};
    const struct heddle_runs odd = {
        RUN / 2, BYTES / RUN * 2, 2, {2, BYTES / RUN}, {RUN / 2, PITCH}};
    const struct heddle_runs flat = dense(BYTES);
    void *ptr[N];

    for (size_t i = 0; i < N; i++) {
        const unsigned stream = i % 2 == 0 ? 0 : second_stream(r);
        const struct heddle_runs *runs = i % 3 == 0 ? &flat : i % 3 == 1 ? &tile : &odd;
        unsigned char *at = host + i * 2 * BYTES * 2;

        in[i] = op_make(r);
        out[i] = op_make(r);
        in[i].order = out[i].order = &order[stream != 0];
        CHECK_OK(r->drv->alloc(r->dev, BYTES, stream, &ptr[i]));
        CHECK_OK(start_copy(r, HEDDLE_COPY_IN, ptr[i], at, runs, stream, &in[i]));
        CHECK_OK(start_copy(r, HEDDLE_COPY_OUT, ptr[i], at + 2 * BYTES, runs, stream, &out[i]));
        r->drv->free(r->dev, ptr[i], BYTES, stream); /* after the last use */
    }
    for (size_t i = 0; i < N; i++) {
        unsigned char a[BYTES], b[BYTES];
        const struct heddle_runs *runs = i % 3 == 0 ? &flat : i % 3 == 1 ? &tile : &odd;
        unsigned char *at = host + i * 2 * BYTES * 2;

        op_wait(&out[i]);
        CHECK_OK(in[i].st);
        CHECK_OK(out[i].st);
        /* A memory without kernels has one stream. */
        CHECK_EQ(in[i].number, r->info.nstreams == 0 ? i * 2 : i / 2 * 2);
        CHECK_EQ(out[i].number, in[i].number + 1);
        heddle_runs_gather(runs, at, a);
        heddle_runs_gather(runs, at + 2 * BYTES, b);
        CHECK_EQ(memcmp(a, b, BYTES), 0);
    }
    CHECK(!rig_step(r));
    free(host);
}

TEST(many_in_flight)
{
    for_each_device(check_many);
}

/* Host memory that one copy writes and the next ones read or write, in one
 * stream, without a look at done(): every pair of shapes. */
static void check_chain(struct rig *r, const struct heddle_runs *a, const struct heddle_runs *b,
                        unsigned stream)
{
    enum { SPAN = 600 };
    const size_t na = heddle_runs_bytes(a), nb = heddle_runs_bytes(b);
    unsigned char *first = host_new(na, 5), *host = host_new(SPAN, 6);
    unsigned char *want = host_new(SPAN, 6), *got = host_new(nb, 7);
    unsigned char *flat = host_new(nb, 8);
    const struct heddle_runs da = dense(na), db = dense(nb);
    struct probe_op p[4];
    void *x, *y;

    for (int i = 0; i < 4; i++)
        p[i] = op_make(r);
    CHECK_OK(r->drv->alloc(r->dev, na, stream, &x));
    CHECK_OK(r->drv->alloc(r->dev, nb, stream, &y));
    CHECK_OK(start_copy(r, HEDDLE_COPY_IN, x, first, &da, stream, &p[0]));
    CHECK_OK(start_copy(r, HEDDLE_COPY_OUT, x, host, a, stream, &p[1]));
    CHECK_OK(start_copy(r, HEDDLE_COPY_IN, y, host, b, stream, &p[2]));
    CHECK_OK(start_copy(r, HEDDLE_COPY_OUT, y, got, &db, stream, &p[3]));
    r->drv->free(r->dev, x, na, stream);
    r->drv->free(r->dev, y, nb, stream);
    op_wait(&p[3]);
    for (int i = 0; i < 4; i++)
        CHECK_OK(p[i].st);
    heddle_runs_scatter(a, first, want);
    CHECK_EQ(memcmp(host, want, SPAN), 0);
    heddle_runs_gather(b, want, flat);
    CHECK_EQ(memcmp(got, flat, nb), 0);
    free(first);
    free(host);
    free(want);
    free(got);
    free(flat);
}

static void check_order(struct rig *r)
{
    static const struct heddle_runs shape[] = {
        {.run_bytes = 512, .nruns = 1},
        {16, 16, 1, {16}, {32}},
        {4, 105, 3, {3, 5, 7}, {170, 33, 5}},
    };

    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            check_chain(r, &shape[i], &shape[j], second_stream(r));
}

TEST(order_in_a_stream)
{
    for_each_device(check_order);
}

/* done() may go on giving work. */
struct relay {
    struct probe_op p;
    struct rig *r;
    void *ptr;
    unsigned char host[256];
    unsigned left;
};

static void relay_done(struct heddle_op *op, heddle_status st)
{
    struct relay *y = (void *)op;
    const struct heddle_runs runs = dense(sizeof(y->host));
    void *extra;

    CHECK_OK(st);
    CHECK(y->r->in_progress);
    if (--y->left == 0)
        return;
    CHECK_OK(y->r->drv->alloc(y->r->dev, 1000, 0, &extra));
    y->r->drv->free(y->r->dev, extra, 1000, 0);
    CHECK_OK(start_copy(y->r, y->left % 2 == 0 ? HEDDLE_COPY_OUT : HEDDLE_COPY_IN, y->ptr, y->host,
                        &runs, y->left % 2 == 0 ? 0 : y->r->info.nstreams, &y->p));
}

static void check_relay(struct rig *r)
{
    struct relay y[3];

    for (int i = 0; i < 3; i++) {
        const struct heddle_runs runs = dense(sizeof(y[i].host));

        memset(&y[i], i, sizeof(y[i]));
        y[i].p.op = (struct heddle_op){.done = relay_done};
        y[i].r = r;
        y[i].left = 50;
        CHECK_OK(r->drv->alloc(r->dev, sizeof(y[i].host), 0, &y[i].ptr));
        CHECK_OK(start_copy(r, HEDDLE_COPY_IN, y[i].ptr, y[i].host, &runs, 0, &y[i].p));
    }
    while (y[0].left + y[1].left + y[2].left > 0)
        rig_step(r);
    for (int i = 0; i < 3; i++)
        r->drv->free(r->dev, y[i].ptr, sizeof(y[i].host), 0);
}

TEST(done_gives_more)
{
    for_each_device(check_relay);
}

/* --- launches ------------------------------------------------------------ */

/* In, three launches in a row, out: without waiting in between. */
static void check_launch(struct rig *r)
{
    enum { N = 3, BYTES = 3000 };
    unsigned char *host = host_new(BYTES, 11), *want = host_new(BYTES, 11);
    const struct heddle_runs runs = dense(BYTES);
    struct probe_op p[N + 2];
    struct job j[N];
    void *ptr;

    if (r->drv->kind == 0)
        goto end;
    for (unsigned s = 0; s < r->info.nstreams; s++) {
        size_t order = 0;

        for (int i = 0; i < N + 2; i++) {
            p[i] = op_make(r);
            p[i].order = &order;
        }
        CHECK_OK(r->drv->alloc(r->dev, BYTES, s, &ptr));
        CHECK_OK(start_copy(r, HEDDLE_COPY_IN, ptr, host, &runs, s, &p[0]));
        for (unsigned i = 0; i < N; i++) {
            j[i] = (struct job){.r = r, .stream = s, .ptr = ptr, .add = i, .bytes = BYTES};
            CHECK_OK(start_job(&j[i], &p[1 + i]));
        }
        CHECK_OK(start_copy(r, HEDDLE_COPY_OUT, ptr, host, &runs, s, &p[N + 1]));
        op_wait(&p[N + 1]);
        for (size_t i = 0; i < N + 2; i++) {
            CHECK_OK(p[i].st);
            CHECK_EQ(p[i].number, i);
        }
        for (unsigned i = 0; i < N; i++) {
            CHECK_EQ(j[i].nruns, 1);
            for (size_t b = 0; b < BYTES; b++)
                want[b] = (unsigned char)(want[b] * 3 + i);
        }
        CHECK_EQ(memcmp(host, want, BYTES), 0);
        r->drv->free(r->dev, ptr, BYTES, s);
    }
end:
    free(host);
    free(want);
}

TEST(launches)
{
    for_each_device(check_launch);
}

/* A function that fails, and the next one that does not care. */
static void check_failing(struct rig *r)
{
    static const heddle_status answers[] = {HEDDLE_ETASK, HEDDLE_EDECLINED, HEDDLE_EINVAL,
                                            HEDDLE_ENOMEM};
    unsigned char byte[64] = {0};
    const struct heddle_runs runs = dense(sizeof(byte));
    void *ptr;

    if (r->drv->kind == 0)
        return;
    CHECK_OK(r->drv->alloc(r->dev, sizeof(byte), 0, &ptr));
    copy_wait(r, HEDDLE_COPY_IN, ptr, byte, &runs, 0);
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct probe_op bad = op_make(r), good = op_make(r);
        struct job j = {.r = r, .answer = answers[i]};
        struct job k = {.r = r, .ptr = ptr, .add = 1, .bytes = sizeof(byte)};

        CHECK_OK(start_job(&j, &bad));
        CHECK_OK(start_job(&k, &good));
        op_wait(&good);
        CHECK_STATUS(bad.st, answers[i]);
        CHECK_EQ(bad.ndone, 1);
        CHECK_OK(good.st);
    }
    copy_wait(r, HEDDLE_COPY_OUT, ptr, byte, &runs, 0);
    CHECK_EQ(byte[0], 1 + 3 + 9 + 27);
    CHECK_EQ(byte[63], 1 + 3 + 9 + 27);
    r->drv->free(r->dev, ptr, sizeof(byte), 0);
}

TEST(failing_launches)
{
    for_each_device(check_failing);
}

/* order(): a copy on the copy stream, then a kernel on another stream that needs
 * it, then a copy that needs the kernel. */
static void check_streams(struct rig *r)
{
    enum { N = 40, BYTES = 40000 };
    unsigned char *host = host_new(BYTES, 12), *want = host_new(BYTES, 12);
    const struct heddle_runs runs = dense(BYTES);
    static struct probe_op p[3 * N];
    static struct job j[N];
    const unsigned copies = r->info.nstreams;
    void *ptr;

    if (r->drv->kind == 0 || r->drv->order == NULL)
        goto end;
    CHECK_OK(r->drv->alloc(r->dev, BYTES, copies, &ptr));
    for (unsigned i = 0; i < N; i++) {
        const unsigned s = i % r->info.nstreams;

        for (unsigned k = 0; k < 3; k++)
            p[3 * i + k] = op_make(r);
        if (i > 0) /* its own stream: for sim, see second_stream() */
            CHECK_OK(r->drv->order(r->dev, copies, &p[3 * i - 1].op));
        CHECK_OK(start_copy(r, HEDDLE_COPY_IN, ptr, host, &runs, copies, &p[3 * i]));
        CHECK_OK(r->drv->order(r->dev, s, &p[3 * i].op));
        j[i] = (struct job){.r = r, .stream = s, .ptr = ptr, .add = i, .bytes = BYTES};
        CHECK_OK(start_job(&j[i], &p[3 * i + 1]));
        CHECK_OK(r->drv->order(r->dev, copies, &p[3 * i + 1].op));
        CHECK_OK(start_copy(r, HEDDLE_COPY_OUT, ptr, host, &runs, copies, &p[3 * i + 2]));
        for (size_t b = 0; b < BYTES; b++)
            want[b] = (unsigned char)(want[b] * 3 + i);
    }
    for (unsigned i = 0; i < 3 * N; i++) {
        op_wait(&p[i]);
        CHECK_OK(p[i].st);
    }
    CHECK_EQ(memcmp(host, want, BYTES), 0);
    r->drv->free(r->dev, ptr, BYTES, copies);
end:
    free(host);
    free(want);
}

TEST(order_between_streams)
{
    for_each_device(check_streams);
}

/* --- no memory ----------------------------------------------------------- */

/* A bit of everything. The first failure ends it; what was begun is undone. */
static heddle_status life(struct rig *r, unsigned index)
{
    static const struct heddle_runs odd = {4, 105, 3, {3, 5, 7}, {170, 33, 5}};
    unsigned char host[600] = {0};
    struct probe_op p[3];
    unsigned nstarted = 0;
    heddle_status st, worst;
    void *ptr = NULL;
    struct job j;

    st = r->drv->open(&r->env, index, &r->dev);
    if (st != HEDDLE_OK)
        return st;
    r->info = heddle_dev_base(r->dev)->info;
    for (int i = 0; i < 3; i++)
        p[i] = op_make(r);
    st = r->drv->alloc(r->dev, 420, 0, &ptr);
    if (st == HEDDLE_OK) {
        st = start_copy(r, HEDDLE_COPY_IN, ptr, host, &odd, 0, &p[0]);
        nstarted += st == HEDDLE_OK;
    }
    if (st == HEDDLE_OK && r->drv->kind != 0) {
        j = (struct job){.r = r, .ptr = ptr, .add = 1, .bytes = 420};
        st = start_job(&j, &p[nstarted]);
        nstarted += st == HEDDLE_OK;
    }
    if (st == HEDDLE_OK) {
        st = start_copy(r, HEDDLE_COPY_OUT, ptr, host, &odd, 0, &p[nstarted]);
        nstarted += st == HEDDLE_OK;
    }
    worst = st;
    for (unsigned i = 0; i < nstarted; i++) {
        op_wait(&p[i]);
        if (worst == HEDDLE_OK)
            worst = p[i].st;
    }
    if (ptr != NULL)
        r->drv->free(r->dev, ptr, 420, 0);
    r->drv->close(r->dev);
    return worst;
}

/* HEDDLE_OK is an answer too: keeping a compiled program is no duty. */
static void check_life(const struct heddle_driver *drv, unsigned index)
{
    struct faulty f;
    heddle_status st;
    struct rig r;

    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        faulty_init(&f, k);
        st = rig_init(&r, drv, &f.a);
        if (st == HEDDLE_OK) {
            st = life(&r, index);
            rig_fini(&r);
        }
        CHECK_EQ(f.nlive, 0);
        if (!f.has_failed || st != HEDDLE_ENOMEM)
            CHECK_OK(st);
        CHECK(k < 500);
    }
}

TEST(every_allocation_fails_once)
{
    for (size_t i = 0; heddle_driver_table[i] != NULL; i++) {
        const struct heddle_driver *drv = heddle_driver_table[i];
        struct rig r;
        unsigned n = 0;

        CHECK_OK(rig_init(&r, drv, NULL));
        CHECK_OK(drv->probe(&r.env, NULL, 0, &n));
        rig_fini(&r);
        for (unsigned d = 0; d < n; d++)
            check_life(drv, d);
    }
}

TEST_MAIN(the_table, devices, memory, shapes, many_in_flight, order_in_a_stream, done_gives_more,
          launches, failing_launches, order_between_streams, every_allocation_fails_once)
