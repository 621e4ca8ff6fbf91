/* SPDX-License-Identifier: BSD-3-Clause */
/* sim: many operations at random, the same twice; each allocation failing; real data
 * against the same operations done at once. */
#include <time.h>

#include "base/faulty_test.h"
#include "base/rng.h"
#include "drive/sim/sim.h"
#include "drive/sim/world_test.h"

/* ---- many at random ------------------------------------------------------ */

struct storm {
    struct world w;
    struct heddle_rng rng;
    struct note note[64];
    bool is_flying[64];
    uint64_t given, ended, refused;
    uint64_t hash;
    /* The last end on each stream and link, and where each note goes. */
    uint64_t stream_end[NCLS * 4], link_end[NLINKS];
    int stream_of[64], link_of[64];
};

static struct storm storm;

static void storm_give(unsigned i);

/* Streams and links carry one at a time, in order. */
static void storm_in_order(unsigned i, heddle_status st)
{
    const struct heddle_op *op = &storm.note[i].op;

    if (st == HEDDLE_EDEV)
        return;
    if (storm.stream_of[i] >= 0) {
        uint64_t *end = &storm.stream_end[storm.stream_of[i]];

        CHECK(op->begin_ns >= *end);
        *end = op->end_ns;
    }
    if (storm.link_of[i] >= 0) {
        uint64_t *end = &storm.link_end[storm.link_of[i]];

        CHECK(op->begin_ns >= *end);
        *end = op->end_ns;
    }
}

/* The link of a copy of a device. */
static int storm_link(unsigned cls, enum heddle_copy_kind kind)
{
    static const int link[NCLS][3] = {{-1, -1, -1}, {UP0, DOWN0, ACROSS}, {UP1, DOWN1, -1}};

    return link[cls][kind];
}

static void storm_done(struct heddle_op *op, heddle_status st)
{
    const unsigned i = (unsigned)((struct note *)(void *)op - storm.note);

    CHECK(storm.is_flying[i]);
    CHECK(op->begin_ns <= op->end_ns);
    CHECK_EQ(op->end_ns, heddle_sim_now(storm.w.s));
    storm_in_order(i, st);
    storm.is_flying[i] = false;
    storm.ended++;
    storm.hash = (storm.hash ^ (op->end_ns * 64 + i)) * 1099511628211u;
    storm.hash = (storm.hash ^ (op->begin_ns * 64 + (unsigned)st)) * 1099511628211u;
    if (storm.given < 20000)
        storm_give(i);
}

static void storm_give(unsigned i)
{
    struct heddle_rng *r = &storm.rng;
    const unsigned cls = (unsigned)heddle_rng_below(r, NCLS);
    const unsigned nw = storm.w.m.cls[cls].nworkers;
    const unsigned what = (unsigned)heddle_rng_below(r, 8);
    const unsigned stream = (unsigned)heddle_rng_below(r, nw);
    const unsigned other = (unsigned)heddle_rng_below(r, 64);
    struct note *n = &storm.note[i];
    heddle_status st = HEDDLE_OK;

    if (what == 0 && storm.is_flying[other] && other != i)
        st = drv->order(storm.w.dev[cls], (unsigned)heddle_rng_below(r, nw + 1),
                        &storm.note[other].op);
    CHECK(st == HEDDLE_OK || st == HEDDLE_EDEV);
    storm.stream_of[i] = storm.link_of[i] = -1;
    if (what == 7) {
        *n = (struct note){0};
        n->op.done = storm_done;
        heddle_sim_after(storm.w.s, (double)heddle_rng_below(r, 500), &n->op);
        st = HEDDLE_OK;
    } else if (what >= 4) {
        st = kernel(&storm.w, cls, stream, (double)heddle_rng_below(r, 1000), n);
    } else {
        enum heddle_copy_kind kind = (enum heddle_copy_kind)(what % 3);

        if (kind == HEDDLE_COPY_PEER && cls != GPU0)
            kind = HEDDLE_COPY_IN;
        storm.link_of[i] = storm_link(cls, kind);
        if (what == 3)
            storm.stream_of[i] = (int)(cls * 4 + stream);
        st = copy(&storm.w, cls, kind, heddle_rng_below(r, 4000), what == 3 ? stream : nw, n);
    }
    storm.given++;
    if (st != HEDDLE_OK) {
        CHECK_STATUS(st, HEDDLE_EDEV);
        storm.refused++;
        storm.ended++;
        return;
    }
    n->op.done = storm_done;
    storm.is_flying[i] = true;
}

/* No bus carries more than it can; a copy may round by half a ns. */
static void storm_bus(void)
{
    uint64_t busy, bytes, sum = 0;

    for (unsigned i = 0; i < NLINKS; i++) {
        heddle_sim_link_use(storm.w.s, i, &busy, &bytes);
        CHECK(busy <= heddle_sim_now(storm.w.s));
        CHECK((double)bytes <= storm.w.m.link[i].bytes_per_ns * (double)busy + 8e5);
        if (storm.w.m.link[i].bus >= 0)
            sum += bytes;
    }
    CHECK((double)sum <= 10 * (double)heddle_sim_now(storm.w.s) + 1e5);
}

static uint64_t storm_run(uint64_t seed, bool executes, double lose_at)
{
    struct faulty f;

    faulty_init(&f, 0);
    memset(&storm, 0, sizeof(storm));
    heddle_rng_seed(&storm.rng, seed);
    machine_init(&storm.w.m);
    if (lose_at > 0) {
        storm.w.m.fault[0] =
            (struct heddle_fault){.kind = HEDDLE_FAULT_LOSE, .where = GPU1, .at_ns = lose_at};
        storm.w.m.fault[1] = (struct heddle_fault){
            .kind = HEDDLE_FAULT_SLOW, .where = GPU0, .at_ns = lose_at / 2, .factor = 1.7};
        storm.w.m.p.nfaults = 2;
    }
    world_open(&storm.w, &f.a, executes);
    for (unsigned i = 0; i < 64; i++)
        storm_give(i);
    run_all(&storm.w);
    CHECK_EQ(storm.ended, storm.given);
    for (unsigned i = 0; i < 64; i++)
        CHECK(!storm.is_flying[i]);
    storm_bus();
    world_fini(&storm.w);
    CHECK_EQ(f.nlive, 0);
    return storm.hash;
}

TEST(the_same_twice)
{
    for (uint64_t seed = 1; seed <= 8; seed++) {
        const uint64_t h = storm_run(seed, false, 0);

        CHECK(h != storm_run(seed + 100, false, 0));
        CHECK(h == storm_run(seed, false, 0));
        CHECK(storm_run(seed, false, 12345) == storm_run(seed, false, 12345));
        CHECK(storm.given >= 64);
    }
}

/* The k-th allocation fails: everything that was accepted ends. */
static void starved(struct faulty *f)
{
    struct world w;
    struct note n[200];
    struct heddle_op *first = NULL;
    unsigned given = 0, ended = 0;
    void *p = NULL;

    machine_init(&w.m);
    w.m.fault[0] = (struct heddle_fault){HEDDLE_FAULT_SLOW, CPU, 0, 50, 3};
    w.m.p.nfaults = 1;
    if (heddle_sim_create(&f->a, &w.m.p, true, &w.s) != HEDDLE_OK)
        return;
    w.env = (struct heddle_drive_env){.alloc = &f->a, .world = w.s};
    memset(w.dev, 0, sizeof(w.dev));
    for (unsigned i = 0; i < NCLS; i++)
        if (drv->open(&w.env, i, &w.dev[i]) != HEDDLE_OK)
            goto out;
    if (drv->alloc(w.dev[GPU0], 100, 0, &p) != HEDDLE_OK)
        p = NULL;
    for (unsigned i = 0; i < 200; i++) {
        n[i] = (struct note){0};
        if (i % 3 == 0) {
            n[i].op.done = note_done;
            heddle_sim_after(w.s, 200.0 - i, &n[i].op);
            given++;
            first = &n[i].op;
        } else if (kernel(&w, GPU0, 0, 3, &n[i]) == HEDDLE_OK) {
            given++;
        }
        if (i % 7 == 0 && first->priv[0] != NULL) {
            const heddle_status st = drv->order(w.dev[GPU1], 1, first);

            CHECK(st == HEDDLE_OK || st == HEDDLE_ENOMEM);
        }
    }
    run_all(&w);
    for (unsigned i = 0; i < 200; i++) {
        CHECK(n[i].ends <= 1);
        ended += n[i].ends;
        if (i % 3 == 0)
            CHECK_SPAN(n[i], 0, 200 - i);
    }
    CHECK_EQ(ended, given);
    drv->free(w.dev[GPU0], p, 100, 0);
out:
    for (unsigned i = 0; i < NCLS; i++)
        if (w.dev[i] != NULL)
            drv->close(w.dev[i]);
    heddle_sim_destroy(w.s);
}

TEST(no_memory)
{
    struct faulty f;

    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        faulty_init(&f, k);
        starved(&f);
        CHECK_EQ(f.nlive, 0);
    }
}

/* ---- real data against the same operations at once ---------------------- */

enum { NBUF = 4, BUF = 48, NPENDING = 64 };

static struct {
    struct world w;
    struct heddle_rng rng;
    unsigned char host[2][NBUF][BUF], host_want[2][NBUF][BUF];
    unsigned char want[2][NBUF][BUF]; /* of the devices */
    void *buf[2][NBUF];
    struct note note[NPENDING];
    struct heddle_exec x[NPENDING];
    unsigned nnotes;
    struct heddle_op *last[2];
} twin;

static heddle_status scramble(struct heddle_exec *x)
{
    unsigned char *p = (unsigned char *)(void *)x->data;

    for (size_t i = 0; i < BUF; i++)
        p[i] = (unsigned char)(p[i] * 5u + p[(i + 7) % BUF] + x->n);
    return HEDDLE_OK;
}

static void twin_kernel(unsigned d, unsigned i)
{
    struct heddle_exec *x = &twin.x[twin.nnotes];
    struct note *n = &twin.note[twin.nnotes];
    const struct heddle_dev_launch l = {
        .run = scramble, .x = x, .model_ns = (double)heddle_rng_below(&twin.rng, 300)};

    *x = (struct heddle_exec){.data = twin.buf[d][i], .n = twin.nnotes};
    CHECK_OK(drv->launch(twin.w.dev[GPU0 + d], &l, 0, &n->op));
    scramble(&(struct heddle_exec){.data = (int *)(void *)twin.want[d][i], .n = twin.nnotes});
}

static void twin_copy(unsigned d, unsigned i, unsigned h, bool is_in)
{
    const struct heddle_copy c = {.kind = is_in ? HEDDLE_COPY_IN : HEDDLE_COPY_OUT,
                                  .ptr = twin.buf[d][i],
                                  .host = twin.host[d][h],
                                  .runs = {.run_bytes = BUF, .nruns = 1}};

    CHECK_OK(drv->copy(twin.w.dev[GPU0 + d], &c, 0, &twin.note[twin.nnotes].op));
    if (is_in)
        memcpy(twin.want[d][i], twin.host_want[d][h], BUF);
    else
        memcpy(twin.host_want[d][h], twin.want[d][i], BUF);
}

/* Across: after what uses the destination, before what will. */
static void twin_across(unsigned i, unsigned k)
{
    const struct heddle_copy c = {.kind = HEDDLE_COPY_PEER,
                                  .ptr = twin.buf[0][i],
                                  .peer = twin.w.dev[GPU1],
                                  .peer_ptr = twin.buf[1][k],
                                  .runs = {.run_bytes = BUF, .nruns = 1}};
    struct heddle_op *op = &twin.note[twin.nnotes].op;

    if (twin.last[1] != NULL)
        CHECK_OK(drv->order(twin.w.dev[GPU0], 0, twin.last[1]));
    CHECK_OK(drv->copy(twin.w.dev[GPU0], &c, 0, op));
    CHECK_OK(drv->order(twin.w.dev[GPU1], 0, op));
    memcpy(twin.want[1][k], twin.want[0][i], BUF);
}

/* A buffer goes while its last use is queued, and another takes its place. */
static void twin_swap(unsigned d, unsigned i, unsigned h)
{
    struct heddle_dev *dev = twin.w.dev[GPU0 + d];

    drv->free(dev, twin.buf[d][i], BUF, 0);
    CHECK_OK(drv->alloc(dev, BUF, 0, &twin.buf[d][i]));
    twin_copy(d, i, h, true);
}

static void twin_step(void)
{
    const unsigned d = (unsigned)heddle_rng_below(&twin.rng, 2);
    const unsigned i = (unsigned)heddle_rng_below(&twin.rng, NBUF);
    const unsigned h = (unsigned)heddle_rng_below(&twin.rng, NBUF);
    const unsigned what = (unsigned)heddle_rng_below(&twin.rng, 8);

    twin.note[twin.nnotes] = (struct note){.op.done = note_done};
    if (what < 3)
        twin_kernel(d, i);
    else if (what < 5)
        twin_copy(d, i, h, what == 3);
    else if (what == 5)
        twin_swap(d, i, h);
    else
        twin_across(i, h);
    twin.last[what > 5 ? 0 : d] = &twin.note[twin.nnotes].op;
    twin.nnotes++;
}

static void twin_drain(void)
{
    run_all(&twin.w);
    for (unsigned i = 0; i < twin.nnotes; i++) {
        CHECK_EQ(twin.note[i].ends, 1);
        CHECK_OK(twin.note[i].st);
    }
    twin.nnotes = 0;
    twin.last[0] = twin.last[1] = NULL;
    CHECK_EQ(memcmp(twin.host, twin.host_want, sizeof(twin.host)), 0);
    for (unsigned d = 0; d < 2; d++)
        for (unsigned i = 0; i < NBUF; i++)
            CHECK_EQ(memcmp(twin.buf[d][i], twin.want[d][i], BUF), 0);
}

TEST(same_data)
{
    struct faulty f;

    faulty_init(&f, 0);
    memset(&twin, 0, sizeof(twin));
    heddle_rng_seed(&twin.rng, test_seed());
    machine_init(&twin.w.m);
    world_open(&twin.w, &f.a, true);
    for (unsigned d = 0; d < 2; d++)
        for (unsigned i = 0; i < NBUF; i++) {
            CHECK_OK(drv->alloc(twin.w.dev[GPU0 + d], BUF, 0, &twin.buf[d][i]));
            memset(twin.buf[d][i], (int)(d + i), BUF);
            memset(twin.want[d][i], (int)(d + i), BUF);
            memset(twin.host[d][i], (int)(77 + d * i), BUF);
        }
    memcpy(twin.host_want, twin.host, sizeof(twin.host));
    for (unsigned round = 0; round < 500; round++) {
        while (twin.nnotes < NPENDING) {
            twin_step();
            if (heddle_rng_below(&twin.rng, 3) == 0)
                (void)heddle_sim_step(twin.w.s);
        }
        twin_drain();
    }
    for (unsigned d = 0; d < 2; d++)
        for (unsigned i = 0; i < NBUF; i++)
            drv->free(twin.w.dev[GPU0 + d], twin.buf[d][i], BUF, 0);
    world_fini(&twin.w);
    CHECK_EQ(f.nlive, 0);
}

/* ---- how fast; no verdict ------------------------------------------------ */

static struct {
    struct world w;
    struct heddle_op op[12];
    uint64_t left;
} race;

static void race_done(struct heddle_op *op, heddle_status st)
{
    const unsigned i = (unsigned)(op - race.op);
    const struct heddle_dev_launch l = {.model_ns = 100 + (double)(i * 7)};

    (void)st;
    if (race.left == 0)
        return;
    race.left--;
    CHECK_OK(drv->launch(race.w.dev[i % 3], &l, i % 2, op));
}

TEST(speed)
{
    const uint64_t n = test_scale(3000000);
    struct timespec a, b;
    struct faulty f;
    size_t calls;
    double s;

    faulty_init(&f, 0);
    machine_init(&race.w.m);
    world_open(&race.w, &f.a, false);
    race.left = n;
    for (unsigned i = 0; i < 12; i++) {
        race.op[i].done = race_done;
        race_done(&race.op[i], HEDDLE_OK);
    }
    for (unsigned i = 0; i < 100; i++)
        CHECK(heddle_sim_step(race.w.s));
    calls = f.ncalls;
    clock_gettime(CLOCK_MONOTONIC, &a);
    run_all(&race.w);
    clock_gettime(CLOCK_MONOTONIC, &b);
    CHECK_EQ(f.ncalls, calls); /* the steady state allocates nothing */
    s = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) * 1e-9;
    printf("     %.2f million kernels per s\n", (double)n / s * 1e-6);
    world_fini(&race.w);
}

TEST_MAIN(the_same_twice, no_memory, same_data, speed)
