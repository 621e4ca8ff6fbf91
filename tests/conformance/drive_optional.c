/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a driver may leave out, for every device whose driver has it: order between
 * streams and between devices, times, pinned memory, copies from device to device.
 * Regions are in drive_regions.c, the rest is in drive_conformance.c.
 *
 * A web is a random set of jobs on a few buffers, each after the last one on its
 * buffer: a job that starts too early, or the wrong job, spoils the bytes.
 */
#include <pthread.h>

#include "drive_buffers.h"

#define SLACK_NS UINT64_C(200000000) /* two clocks, a loaded machine */

/* --- the table ----------------------------------------------------------- */

TEST(all_or_none)
{
    for (size_t i = 0; heddle_driver_table[i] != NULL; i++) {
        const struct heddle_driver *d = heddle_driver_table[i];

        CHECK((d->region != NULL) == (d->replay != NULL));
        CHECK((d->region != NULL) == (d->region_free != NULL));
        CHECK((d->pin != NULL) == (d->unpin != NULL));
        CHECK(!d->is_sure || d->order != NULL);
        CHECK(d->kind != 0 || d->region == NULL);
    }
}

/* --- times --------------------------------------------------------------- */

static void check_times(struct rig *r)
{
    enum { N = 30 };
    struct probe_op p[N];
    uint64_t begin, end, last = 0;
    struct buffers b;
    struct job j[N];

    if (r->drv->kind == 0)
        return;
    buffers_init(&b, r, 1);
    begin = heddle_clock_ns();
    for (unsigned i = 0; i < N; i++) {
        p[i] = op_make(r);
        j[i] = (struct job){
            .r = r, .ptr = b.ptr[0], .add = i, .bytes = BYTES, .wants_time = i % 3 != 0};
        CHECK_OK(start_job(&j[i], &p[i]));
        apply(b.want[0], i);
        if (i % 5 == 4)
            op_wait(&p[i]);
    }
    op_wait(&p[N - 1]);
    end = heddle_clock_ns();
    for (unsigned i = 0; i < N; i++) {
        CHECK_OK(p[i].st);
        if (!j[i].wants_time || r->sim != NULL)
            continue; /* sim has a clock of its own */
        if (r->drv->is_sure)
            CHECK(p[i].op.end_ns != 0 && !p[i].op.is_rough);
        if (p[i].op.end_ns == 0)
            continue;
        CHECK(p[i].op.begin_ns + SLACK_NS >= begin);
        CHECK(p[i].op.end_ns <= end + SLACK_NS);
        CHECK(p[i].op.begin_ns + 1000000 >= last); /* one after the other */
        last = p[i].op.end_ns;
    }
    buffers_check(&b);
    buffers_fini(&b);
}

TEST(times)
{
    for_each_device(check_times);
}

/* --- order --------------------------------------------------------------- */

/* Jobs on any stream, put behind each other without waiting. */
static void check_web(struct rig *r)
{
    enum { N = 400 };
    static struct probe_op p[N];
    static struct job j[N];
    int last[BUFFERS];
    struct heddle_rng rng;
    struct buffers b;

    if (r->drv->kind == 0 || r->drv->order == NULL)
        return;
    heddle_rng_seed(&rng, test_seed());
    buffers_init(&b, r, 2);
    for (unsigned i = 0; i < BUFFERS; i++)
        last[i] = -1;
    for (unsigned i = 0; i < N; i++) {
        const unsigned at = heddle_rng_below32(&rng, BUFFERS);
        const unsigned s = heddle_rng_below32(&rng, r->info.nstreams);

        p[i] = op_make(r);
        j[i] = (struct job){.r = r,
                            .stream = s,
                            .ptr = b.ptr[at],
                            .add = i,
                            .bytes = BYTES,
                            .wants_time = heddle_rng_below32(&rng, 4) == 0};
        if (last[at] >= 0 && p[last[at]].ndone == 0)
            CHECK_OK(r->drv->order(r->dev, s, &p[last[at]].op));
        CHECK_OK(start_job(&j[i], &p[i]));
        apply(b.want[at], i);
        last[at] = (int)i;
        if (heddle_rng_below32(&rng, 8) == 0)
            rig_step(r);
    }
    for (unsigned i = 0; i < N; i++) {
        op_wait(&p[i]);
        CHECK_OK(p[i].st);
    }
    buffers_check(&b);
    buffers_fini(&b);
}

TEST(a_web_over_streams)
{
    for_each_device(check_web);
}

/* --- pinned memory ------------------------------------------------------- */

/* Copies in every shape while the memory is being pinned, and after. */
static void check_pinned(struct rig *r, size_t bytes, unsigned npins)
{
    const struct heddle_runs shape[] = {
        {.run_bytes = bytes, .nruns = 1},
        {16, bytes / 64, 1, {bytes / 64}, {64}},
        {4, 2 * (bytes / 64), 2, {bytes / 64, 2}, {64, 16}},
        {1, 8, 3, {2, 2, 2}, {bytes / 2, 100, 7}},
    };
    unsigned char *from = host_new(bytes, 1), *to = host_new(bytes, 2);
    unsigned char *want = host_new(bytes, 2), *flat = host_new(bytes, 3);
    void *ptr;

    CHECK_OK(r->drv->alloc(r->dev, bytes, 0, &ptr));
    for (unsigned k = 0; k < 24; k++) {
        const struct heddle_runs *runs = &shape[k % 4];

        if (k % 8 < npins) {
            r->drv->pin(r->dev, from, bytes);
            r->drv->pin(r->dev, to, bytes);
        }
        fill(from, bytes < 5000 ? bytes : 5000, k);
        copy_wait(r, HEDDLE_COPY_IN, ptr, from, runs, r->info.nstreams);
        copy_wait(r, HEDDLE_COPY_OUT, ptr, to, runs, r->info.nstreams);
        heddle_runs_gather(runs, from, flat);
        heddle_runs_scatter(runs, flat, want);
        CHECK_EQ(memcmp(to, want, bytes), 0);
        if (k == 15) /* and once more */
            r->drv->unpin(r->dev, from, bytes);
    }
    r->drv->unpin(r->dev, from, bytes);
    r->drv->unpin(r->dev, to, bytes);
    r->drv->free(r->dev, ptr, bytes, 0);
    free(from);
    free(to);
    free(want);
    free(flat);
}

static void check_pins(struct rig *r)
{
    unsigned char *host;

    if (r->drv->pin == NULL)
        return;
    check_pinned(r, 3 << 20, 1);
    check_pinned(r, 100000, 4);
    check_pinned(r, 4096, 8);
    /* Nothing comes of it; parts of each other; one that was never pinned. */
    host = host_new(8 << 20, 1);
    for (unsigned k = 0; k < 10; k++) {
        r->drv->pin(r->dev, host, 8 << 20);
        if (k % 2 == 0)
            r->drv->pin(r->dev, host + (2 << 20), 2 << 20);
        r->drv->pin(r->dev, host + (6 << 20) + k, (2 << 20) - k);
        if (k % 3 == 0)
            r->drv->unpin(r->dev, host + 64, 1 << 20);
        r->drv->unpin(r->dev, host, 8 << 20);
        r->drv->unpin(r->dev, host + (2 << 20), 2 << 20);
        r->drv->unpin(r->dev, host + (6 << 20) + k, (2 << 20) - k);
    }
    free(host);
}

TEST(pinned_memory)
{
    for_each_device(check_pins);
}

struct pinner {
    struct rig *r;
    _Atomic int *stops;
    pthread_t thread;
};

static void *pinner_run(void *arg)
{
    const struct pinner *p = arg;

    while (atomic_load(p->stops) == 0) {
        unsigned char *host = malloc(2 << 20);

        CHECK(host != NULL);
        host[0] = host[(2 << 20) - 1] = 1;
        p->r->drv->pin(p->r->dev, host, 2 << 20);
        p->r->drv->unpin(p->r->dev, host, 2 << 20);
        free(host);
    }
    return NULL;
}

/* Any thread pins and unpins its own memory, while another one copies. */
static void check_pinners(struct rig *r)
{
    _Atomic int stops = 0;
    struct pinner p[3];

    if (r->drv->pin == NULL)
        return;
    for (int i = 0; i < 3; i++) {
        p[i] = (struct pinner){.r = r, .stops = &stops};
        CHECK_EQ(pthread_create(&p[i].thread, NULL, pinner_run, &p[i]), 0);
    }
    for (int k = 0; k < 3; k++)
        check_pinned(r, 200000, 4);
    atomic_store(&stops, 1);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pthread_join(p[i].thread, NULL), 0);
}

TEST(pinned_by_others)
{
    for_each_device(check_pinners);
}

/* --- two devices --------------------------------------------------------- */

struct pair {
    struct rig a, b;
};

static bool pair_step(struct pair *p)
{
    bool moved;

    p->a.in_progress = p->b.in_progress = true;
    moved = p->a.drv->progress(p->a.dev) > 0;
    moved = p->b.drv->progress(p->b.dev) > 0 || moved;
    if (p->a.sim != NULL)
        moved = heddle_sim_step(p->a.sim) || moved;
    p->a.in_progress = p->b.in_progress = false;
    return moved;
}

static void pair_wait(struct pair *p, struct probe_op *op)
{
    while (op->ndone == 0)
        if (!pair_step(p))
            nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    CHECK_OK(op->st);
}

/* From one device to the other and back, through the host or straight. */
static void pair_walk(struct pair *p, bool straight)
{
    enum { N = 24, HOP = 3 };
    const struct heddle_runs runs = dense(BYTES);
    unsigned char *host = host_new(BYTES, 1), *want = host_new(BYTES, 1);
    static struct probe_op op[N * HOP];
    static struct job j[N];
    struct rig *side[2] = {&p->a, &p->b};
    struct probe_op *last = NULL;
    void *ptr[2];

    for (unsigned i = 0; i < 2; i++)
        CHECK_OK(side[i]->drv->alloc(side[i]->dev, BYTES, 0, &ptr[i]));
    for (unsigned i = 0; i < N; i++) {
        struct rig *r = side[i % 2], *next = side[(i + 1) % 2];
        const unsigned s = i % r->info.nstreams, copies = r->info.nstreams;
        struct probe_op *o = &op[HOP * i];
        struct heddle_copy c = {.kind = HEDDLE_COPY_PEER,
                                .ptr = ptr[i % 2],
                                .peer = next->dev,
                                .peer_ptr = ptr[(i + 1) % 2],
                                .runs = runs};

        for (int k = 0; k < HOP; k++)
            o[k] = op_make(r);
        if (last != NULL && last->ndone == 0)
            CHECK_OK(r->drv->order(r->dev, straight ? s : copies, &last->op));
        if (i == 0 || !straight) {
            CHECK_OK(start_copy(r, HEDDLE_COPY_IN, ptr[i % 2], host, &runs, copies, &o[0]));
            CHECK_OK(r->drv->order(r->dev, s, &o[0].op));
        }
        j[i] = (struct job){.r = r, .stream = s, .ptr = ptr[i % 2], .add = i, .bytes = BYTES};
        CHECK_OK(start_job(&j[i], &o[1]));
        apply(want, i);
        CHECK_OK(r->drv->order(r->dev, copies, &o[1].op));
        if (!straight || i == N - 1)
            CHECK_OK(start_copy(r, HEDDLE_COPY_OUT, ptr[i % 2], host, &runs, copies, &o[2]));
        else
            CHECK_OK(r->drv->copy(r->dev, &c, copies, &o[2].op));
        last = &o[2];
    }
    pair_wait(p, last);
    for (unsigned i = 0; i < N * HOP; i++)
        if (i % HOP != 0 || i == 0 || !straight)
            pair_wait(p, &op[i]);
    CHECK_EQ(memcmp(host, want, BYTES), 0);
    for (unsigned i = 0; i < 2; i++)
        side[i]->drv->free(side[i]->dev, ptr[i], BYTES, 0);
    free(host);
    free(want);
}

static unsigned check_pairs(const struct heddle_driver *drv)
{
    struct heddle_dev_info info[DEVICES];
    struct pair p = {0};
    struct faulty f;
    unsigned n = 0;

    faulty_init(&f, 0);
    CHECK_OK(rig_init(&p.a, drv, &f.a));
    CHECK_OK(drv->probe(&p.a.env, info, DEVICES, &n));
    if (n >= 2) {
        p.b = p.a;
        CHECK_OK(drv->open(&p.a.env, 0, &p.a.dev));
        CHECK_OK(drv->open(&p.b.env, 1, &p.b.dev));
        p.a.info = info[0];
        p.b.info = info[1];
        pair_walk(&p, false);
        if (drv->can_peer != NULL && drv->can_peer(p.a.dev, p.b.dev) &&
            drv->can_peer(p.b.dev, p.a.dev)) {
            printf("     %s: straight\n", drv->name);
            pair_walk(&p, true);
        }
        drv->close(p.a.dev);
        drv->close(p.b.dev);
    }
    rig_fini(&p.a);
    CHECK_EQ(f.nlive, 0);
    return n >= 2;
}

TEST(two_devices)
{
    unsigned n = 0;

    for (size_t i = 0; heddle_driver_table[i] != NULL; i++)
        if (heddle_driver_table[i]->kind != 0 && heddle_driver_table[i]->order != NULL)
            n += check_pairs(heddle_driver_table[i]);
    if (n == 0)
        SKIP("no driver has two devices here");
}

/* --- no memory ----------------------------------------------------------- */

/* Pins, a region made and brought up to date, and replays. */
static heddle_status life(struct rig *r)
{
    static struct web w;
    static unsigned char host[2 << 20];
    struct buffers b = {.r = r};
    struct probe_op p = op_make(r);
    heddle_status st = HEDDLE_OK;
    void *graph = NULL;

    CHECK(r->drv->open(&r->env, 0, &r->dev) == HEDDLE_OK);
    r->info = heddle_dev_base(r->dev)->info;
    if (r->drv->pin != NULL)
        r->drv->pin(r->dev, host, sizeof(host));
    for (unsigned i = 0; i < BUFFERS && st == HEDDLE_OK; i++)
        st = r->drv->alloc(r->dev, BYTES, 0, &b.ptr[i]);
    for (unsigned turn = 0; turn < 3 && st == HEDDLE_OK && r->drv->region != NULL; turn++) {
        web_init(&w, &b, JOBS - turn / 2, 5, turn, 0);
        st = r->drv->region(r->dev, &w.region, 0, &graph);
        p = op_make(r);
        if (st == HEDDLE_OK)
            st = r->drv->replay(r->dev, graph, 0, &p.op);
        if (st == HEDDLE_OK) {
            op_wait(&p);
            st = p.st;
        }
    }
    if (graph != NULL)
        r->drv->region_free(r->dev, graph);
    for (unsigned i = 0; i < BUFFERS; i++)
        if (b.ptr[i] != NULL)
            r->drv->free(r->dev, b.ptr[i], BYTES, 0);
    if (r->drv->unpin != NULL)
        r->drv->unpin(r->dev, host, sizeof(host));
    r->drv->close(r->dev);
    return st;
}

/* How many allocations open() makes. */
static size_t count_open(const struct heddle_driver *drv)
{
    struct heddle_dev *dev;
    struct faulty f;
    struct rig r;

    faulty_init(&f, 0);
    CHECK_OK(rig_init(&r, drv, &f.a));
    CHECK_OK(drv->open(&r.env, 0, &dev));
    drv->close(dev);
    rig_fini(&r);
    return f.ncalls;
}

TEST(every_allocation_fails_once)
{
    for (size_t i = 0; heddle_driver_table[i] != NULL; i++) {
        const struct heddle_driver *drv = heddle_driver_table[i];
        struct faulty f;
        heddle_status st;
        unsigned n = 0;
        struct rig r;

        CHECK_OK(rig_init(&r, drv, NULL));
        CHECK_OK(drv->probe(&r.env, NULL, 0, &n));
        rig_fini(&r);
        if (n == 0 || (drv->region == NULL && drv->pin == NULL))
            continue;
        f.has_failed = true;
        for (size_t k = count_open(drv) + 1; f.has_failed; k++) {
            faulty_init(&f, k);
            CHECK_OK(rig_init(&r, drv, &f.a));
            st = life(&r);
            rig_fini(&r);
            CHECK_EQ(f.nlive, 0);
            if (!f.has_failed || st != HEDDLE_ENOMEM)
                CHECK_OK(st);
            CHECK(k < 500);
        }
    }
}

TEST_MAIN(all_or_none, times, a_web_over_streams, pinned_memory, pinned_by_others, two_devices,
          every_allocation_fails_once)
