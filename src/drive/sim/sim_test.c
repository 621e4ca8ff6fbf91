/* SPDX-License-Identifier: BSD-3-Clause */
/* sim: order, links, buses, faults and real memory. storm_test.c has the random runs. */
#include "drive/sim/sim.h"

#include <math.h>

#include "drive/sim/world_test.h"

TEST(probe)
{
    struct world w;
    struct heddle_dev_info info[2];
    struct heddle_drive_env nothing = {0};
    struct heddle_dev *dev;
    unsigned n = 9;

    CHECK_OK(drv->probe(&nothing, info, 2, &n));
    CHECK_EQ(n, 0);
    CHECK_STATUS(drv->open(&nothing, 0, &dev), HEDDLE_ENOENT);
    world_init(&w, false);
    CHECK_OK(drv->probe(&w.env, info, 2, &n));
    CHECK_EQ(n, 3);
    CHECK_STR(info[0].name, "cpu");
    CHECK_EQ(info[1].kind, HEDDLE_DEV_CUDA);
    CHECK_EQ(info[1].nstreams, 2);
    CHECK_EQ(info[1].memory_total, 1 << 20);
    CHECK_STATUS(drv->open(&w.env, 3, &dev), HEDDLE_ENOENT);
    CHECK(!heddle_sim_step(w.s));
    CHECK_EQ(heddle_sim_now(w.s), 0);
    world_fini(&w);
    heddle_sim_destroy(NULL);
}

TEST(streams)
{
    struct world w;
    struct note n[6];

    world_init(&w, false);
    CHECK_OK(kernel(&w, GPU0, 0, 100, &n[0]));
    CHECK_OK(kernel(&w, GPU0, 0, 50, &n[1]));
    CHECK_OK(kernel(&w, GPU0, 1, 100, &n[2]));
    CHECK_OK(kernel(&w, CPU, 2, 0, &n[3]));
    CHECK_OK(kernel(&w, CPU, 2, 1e9, &n[4]));
    CHECK_EQ(n[3].ends, 0); /* never from launch() */
    CHECK_EQ(drv->progress(w.dev[0]), 0);
    CHECK(heddle_sim_step(w.s));
    CHECK_EQ(n[3].ends, 1);
    run_all(&w);
    CHECK_SPAN(n[0], 0, 100);
    CHECK_SPAN(n[1], 100, 150);
    CHECK_SPAN(n[2], 0, 100);
    CHECK_SPAN(n[3], 0, 0);
    CHECK_SPAN(n[4], 0, 1000000000);
    CHECK(n[0].rank < n[2].rank);
    CHECK_STATUS(kernel(&w, GPU0, 2, 1, &n[0]), HEDDLE_EINVAL);
    CHECK_STATUS(kernel(&w, GPU0, 3, 1, &n[0]), HEDDLE_EINVAL);
    CHECK_STATUS(kernel(&w, GPU0, 0, -1, &n[0]), HEDDLE_EINVAL);
    CHECK_STATUS(kernel(&w, GPU0, 0, (double)NAN, &n[0]), HEDDLE_EINVAL);
    CHECK_STATUS(kernel(&w, GPU0, 0, (double)INFINITY, &n[0]), HEDDLE_EINVAL);
    CHECK(strlen(drv->error(w.dev[GPU0])) > 0);
    CHECK(!heddle_sim_step(w.s));
    world_fini(&w);
}

/* One copy at a time per link; the copy stream does not order links. */
TEST(links)
{
    struct world w;
    struct note n[6];
    uint64_t busy, bytes;

    world_init(&w, false);
    CHECK_OK(copy(&w, GPU0, HEDDLE_COPY_IN, 1000, 2, &n[0]));
    CHECK_NEAR(heddle_sim_copy_ns(w.s, 0, 1, 1000), 1200, 1);
    CHECK_OK(copy(&w, GPU0, HEDDLE_COPY_IN, 200, 2, &n[1]));
    CHECK_NEAR(heddle_sim_copy_ns(w.s, 0, 1, 1000), 1400, 1);
    CHECK_OK(copy(&w, GPU0, HEDDLE_COPY_OUT, 400, 2, &n[2]));
    CHECK_OK(kernel(&w, GPU0, 0, 7, &n[3]));
    /* On a kernel's stream a copy keeps its place. */
    CHECK_OK(copy(&w, GPU0, HEDDLE_COPY_OUT, 4, 0, &n[4]));
    CHECK_OK(kernel(&w, GPU0, 0, 7, &n[5]));
    run_all(&w);
    CHECK_SPAN(n[0], 0, 600);
    CHECK_SPAN(n[1], 600, 800);
    CHECK_SPAN(n[2], 0, 150);
    CHECK_SPAN(n[3], 0, 7);
    CHECK_SPAN(n[4], 150, 201);
    CHECK_SPAN(n[5], 201, 208);
    heddle_sim_link_use(w.s, UP0, &busy, &bytes);
    CHECK_EQ(busy, 800);
    CHECK_EQ(bytes, 1200);
    CHECK(isinf(heddle_sim_copy_ns(w.s, 0, 7, 1)));
    CHECK_NEAR(heddle_sim_copy_ns(w.s, 2, 2, 1), 0, 0);
    /* No link from gpu1 to gpu0: the estimate goes over the host. */
    CHECK_NEAR(heddle_sim_copy_ns(w.s, 2, 1, 800), 100 + 100 + 400, 1e-6);
    CHECK(drv->can_peer(w.dev[GPU0], w.dev[GPU1]));
    CHECK(!drv->can_peer(w.dev[GPU1], w.dev[GPU0]));
    CHECK_STATUS(copy(&w, GPU1, HEDDLE_COPY_IN, 1, 3, &n[0]), HEDDLE_EINVAL);
    /* The cores' memory is the host's. */
    CHECK_OK(copy(&w, CPU, HEDDLE_COPY_IN, 1 << 30, 3, &n[0]));
    run_all(&w);
    CHECK_SPAN(n[0], 800, 800);
    world_fini(&w);
}

static heddle_status sharing(struct world *w, unsigned stream, double ns, double share_ns,
                             struct note *n)
{
    const struct heddle_dev_launch l = {.model_ns = ns, .share_ns = share_ns};

    *n = (struct note){.op.done = note_done};
    return drv->launch(w->dev[GPU0], &l, stream, &n->op);
}

/* Kernels that want all of a device, or half of it, and one that shares nothing. */
TEST(shares)
{
    struct world w;
    struct note n[6];

    world_init(&w, false);
    CHECK_OK(sharing(&w, 0, 100, 100, &n[0]));
    CHECK_OK(kernel(&w, GPU0, 1, 40, &n[1]));
    CHECK_OK(sharing(&w, 1, 100, 300, &n[2])); /* more than all is all */
    run_all(&w);
    CHECK_SPAN(n[1], 0, 40);
    CHECK_SPAN(n[0], 0, 160);  /* 40 alone, 60 at half the speed */
    CHECK_SPAN(n[2], 40, 200); /* 60 by then, 40 alone */
    CHECK_OK(sharing(&w, 0, 100, 50, &n[3]));
    CHECK_OK(sharing(&w, 1, 60, 30, &n[4]));
    CHECK_OK(sharing(&w, 1, 90, 90, &n[5])); /* 1.5 together */
    run_all(&w);
    CHECK_SPAN(n[3], 200, 300); /* half is what it wants */
    CHECK_SPAN(n[4], 200, 260);
    CHECK_SPAN(n[5], 260, 370); /* 20 by 300, then 70 */
    CHECK_OK(sharing(&w, 0, 100, 100, &n[0]));
    CHECK_OK(sharing(&w, 1, 100, 100, &n[1]));
    CHECK_OK(kernel(&w, CPU, 0, 50, &n[2]));
    CHECK(heddle_sim_step(w.s));
    heddle_sim_lose(w.s, GPU0);
    run_all(&w);
    CHECK_STATUS(n[0].st, HEDDLE_EDEV);
    CHECK_STATUS(n[1].st, HEDDLE_EDEV);
    CHECK_EQ(heddle_sim_now(w.s), 420);
    world_fini(&w);
}

TEST(no_link)
{
    struct world w;
    struct note n;

    machine_init(&w.m);
    w.m.p.nlinks = 1; /* up0 alone */
    world_open(&w, NULL, false);
    CHECK_STATUS(copy(&w, GPU0, HEDDLE_COPY_OUT, 1, 0, &n), HEDDLE_ENOSYS);
    CHECK_STATUS(copy(&w, GPU1, HEDDLE_COPY_IN, 1, 0, &n), HEDDLE_ENOSYS);
    CHECK_OK(copy(&w, GPU0, HEDDLE_COPY_IN, 1, 0, &n));
    CHECK(isinf(heddle_sim_copy_ns(w.s, 1, 0, 1)));
    run_all(&w);
    CHECK_EQ(n.ends, 1);
    world_fini(&w);
}

/*
 * up1 (8 wanted) and down1 (8 wanted) and across (1 wanted) on a bus of 10:
 * across gets 1, the others 4.5 each; alone each gets what it wants.
 */
TEST(buses)
{
    struct world w;
    struct note n[3];
    uint64_t busy, bytes;

    world_init(&w, false);
    CHECK_OK(copy(&w, GPU1, HEDDLE_COPY_OUT, 8000, 2, &n[0]));
    run_all(&w);
    CHECK_SPAN(n[0], 0, 1000);
    /* From 1000: down 8 alone; at 1100 up joins: 5 each; down has 8000-800 =
     * 7200 left, ends at 1100 + 1440 = 2540. up then has 16000-7200 = 8800,
     * ends 1100 later. */
    CHECK_OK(copy(&w, GPU1, HEDDLE_COPY_OUT, 8000, 2, &n[0]));
    CHECK_OK(copy(&w, GPU1, HEDDLE_COPY_IN, 16000, 2, &n[1]));
    run_all(&w);
    CHECK_SPAN(n[0], 1000, 2540);
    CHECK_SPAN(n[1], 1000, 3640);
    /* Three of them at 3640; up flows from 3740. across 1, down 8 until then.
     * From 3740: 1, 4.5, 4.5. down: 8000-800 = 7200/4.5 = 1600: 5340. up by
     * then 7200, gets 8 again: (16000-7200)/8 = 1100: 6440. across: 9000. */
    CHECK_OK(copy(&w, GPU1, HEDDLE_COPY_OUT, 8000, 2, &n[0]));
    CHECK_OK(copy(&w, GPU1, HEDDLE_COPY_IN, 16000, 2, &n[1]));
    CHECK_OK(copy(&w, GPU0, HEDDLE_COPY_PEER, 9000, 2, &n[2]));
    while (heddle_sim_now(w.s) < 3740)
        CHECK(heddle_sim_step(w.s));
    CHECK_NEAR(heddle_sim_copy_ns(w.s, 1, 2, 10), 9000 - 100 + 10, 1);
    run_all(&w);
    CHECK_SPAN(n[0], 3640, 5340);
    CHECK_SPAN(n[1], 3640, 6440);
    CHECK_SPAN(n[2], 3640, 12640);
    heddle_sim_link_use(w.s, DOWN1, &busy, &bytes);
    CHECK_EQ(busy, 1000 + 1540 + 1700);
    CHECK_EQ(bytes, 24000);
    world_fini(&w);
}

TEST(order_holds_back)
{
    struct world w;
    struct note n[8];

    world_init(&w, false);
    CHECK_OK(copy(&w, GPU0, HEDDLE_COPY_IN, 800, 2, &n[0])); /* 0..500 */
    CHECK_OK(kernel(&w, GPU0, 1, 20, &n[1]));
    CHECK_OK(drv->order(w.dev[GPU0], 1, &n[0].op));
    CHECK_OK(kernel(&w, GPU0, 1, 30, &n[2]));
    /* Another device's copy stream waits for that kernel, twice. */
    CHECK_OK(drv->order(w.dev[GPU1], 2, &n[2].op));
    CHECK_OK(drv->order(w.dev[GPU1], 2, &n[0].op));
    CHECK_OK(copy(&w, GPU1, HEDDLE_COPY_OUT, 80, 2, &n[3]));
    CHECK_OK(copy(&w, GPU1, HEDDLE_COPY_IN, 80, 2, &n[4]));
    CHECK_OK(kernel(&w, GPU1, 0, 5, &n[5]));
    run_all(&w);
    CHECK_SPAN(n[0], 0, 500);
    CHECK_SPAN(n[1], 0, 20);
    CHECK_SPAN(n[2], 500, 530);
    CHECK_SPAN(n[3], 530, 540);
    CHECK_SPAN(n[4], 530, 640);
    CHECK_SPAN(n[5], 0, 5);
    CHECK_OK(drv->order(w.dev[GPU1], 0, &n[2].op)); /* long ended */
    CHECK_OK(kernel(&w, GPU1, 0, 5, &n[6]));
    run_all(&w);
    CHECK_SPAN(n[6], 640, 645);
    /* After an operation that is no device's. */
    n[7] = (struct note){.op.done = note_done};
    heddle_sim_after(w.s, 100, &n[7].op);
    CHECK_OK(drv->order(w.dev[CPU], 1, &n[7].op));
    CHECK_OK(kernel(&w, CPU, 1, 1, &n[6]));
    run_all(&w);
    CHECK_SPAN(n[7], 645, 745);
    CHECK_SPAN(n[6], 745, 746);
    world_fini(&w);
}

static struct world *deep_world;
static struct note deep_note;

static void deep_done(struct heddle_op *op, heddle_status st)
{
    note_done(op, st);
    CHECK_OK(kernel(deep_world, CPU, 0, 5, &deep_note));
    while (deep_note.ends == 0)
        CHECK(heddle_sim_step(deep_world->s));
}

TEST(step_within_done)
{
    struct world w;
    struct note n[3];

    world_init(&w, false);
    deep_world = &w;
    CHECK_OK(kernel(&w, CPU, 1, 10, &n[0]));
    n[0].op.done = deep_done;
    CHECK_OK(kernel(&w, CPU, 2, 10, &n[1])); /* ends inside the other's end */
    CHECK_OK(kernel(&w, CPU, 2, 10, &n[2]));
    CHECK(heddle_sim_step(w.s));
    CHECK_SPAN(n[0], 0, 10);
    CHECK_SPAN(n[1], 0, 10);
    CHECK_SPAN(deep_note, 10, 15);
    CHECK_EQ(n[2].ends, 0);
    CHECK_EQ(heddle_sim_now(w.s), 15);
    run_all(&w);
    CHECK_SPAN(n[2], 10, 20);
    world_fini(&w);
}

TEST(lose)
{
    struct world w;
    struct note n[12];
    void *p;

    world_init(&w, false);
    CHECK_OK(drv->alloc(w.dev[GPU1], 100, 0, &p));
    CHECK_OK(kernel(&w, GPU1, 0, 100, &n[0]));               /* running */
    CHECK_OK(kernel(&w, GPU1, 0, 100, &n[1]));               /* queued */
    CHECK_OK(copy(&w, GPU1, HEDDLE_COPY_IN, 800, 2, &n[2])); /* flowing */
    CHECK_OK(copy(&w, GPU1, HEDDLE_COPY_IN, 800, 2, &n[3])); /* lined up */
    CHECK_OK(copy(&w, GPU1, HEDDLE_COPY_OUT, 80, 2, &n[4]));
    CHECK_OK(kernel(&w, GPU0, 0, 40, &n[5]));
    CHECK_OK(drv->order(w.dev[GPU1], 1, &n[5].op)); /* a barrier that dies */
    CHECK_OK(kernel(&w, GPU1, 1, 3, &n[6]));
    CHECK_OK(drv->order(w.dev[GPU0], 1, &n[1].op)); /* one that is set free */
    CHECK_OK(kernel(&w, GPU0, 1, 3, &n[7]));
    CHECK_OK(copy(&w, GPU0, HEDDLE_COPY_PEER, 100, 2, &n[8]));
    while (heddle_sim_now(w.s) < 10)
        CHECK(heddle_sim_step(w.s));
    heddle_sim_lose(w.s, GPU1);
    heddle_sim_lose(w.s, GPU1);
    heddle_sim_lose(w.s, 77);
    CHECK_EQ(n[0].ends, 0);
    CHECK(heddle_sim_step(w.s));
    CHECK_EQ(heddle_sim_now(w.s), n[0].op.end_ns);
    for (unsigned i = 0; i < 7; i++) {
        if (i == 4 || i == 5)
            continue;
        CHECK_EQ(n[i].ends, 1);
        CHECK_STATUS(n[i].st, HEDDLE_EDEV);
    }
    CHECK_STATUS(kernel(&w, GPU1, 0, 1, &n[9]), HEDDLE_EDEV);
    CHECK_STATUS(copy(&w, GPU1, HEDDLE_COPY_IN, 1, 0, &n[9]), HEDDLE_EDEV);
    CHECK_STATUS(drv->order(w.dev[GPU1], 0, &n[5].op), HEDDLE_EDEV);
    CHECK_STATUS(drv->alloc(w.dev[GPU1], 8, 0, &p), HEDDLE_EDEV);
    CHECK(!drv->can_peer(w.dev[GPU0], w.dev[GPU1]));
    drv->free(w.dev[GPU1], p, 100, 0);
    run_all(&w);
    CHECK_SPAN(n[4], 0, 10); /* it had ended before */
    CHECK_SPAN(n[5], 0, 40);
    CHECK_SPAN(n[7], 10, 13);
    CHECK_OK(n[8].st);
    CHECK_EQ(n[9].ends, 0);
    world_fini(&w);
}

TEST(slow_down)
{
    struct world w;
    struct note n[4];

    world_init(&w, false);
    CHECK_OK(kernel(&w, GPU1, 0, 100, &n[0]));
    heddle_sim_slow_down(w.s, GPU1, 2.5);
    heddle_sim_slow_down(w.s, GPU1, 0); /* nonsense is ignored */
    heddle_sim_slow_down(w.s, GPU1, (double)NAN);
    heddle_sim_slow_down(w.s, 99, 2);
    CHECK_OK(kernel(&w, GPU1, 0, 100, &n[1]));
    CHECK_OK(copy(&w, GPU1, HEDDLE_COPY_IN, 800, 2, &n[2]));
    CHECK_OK(copy(&w, GPU0, HEDDLE_COPY_IN, 800, 2, &n[3]));
    run_all(&w);
    CHECK_SPAN(n[0], 0, 100);
    CHECK_SPAN(n[1], 100, 350);
    CHECK_SPAN(n[2], 0, 500);
    CHECK_SPAN(n[3], 0, 500);
    world_fini(&w);
}

TEST(faults_of_the_description)
{
    struct world w;
    struct note n[8];
    void *p;

    machine_init(&w.m);
    w.m.fault[0] = (struct heddle_fault){HEDDLE_FAULT_KERNEL, GPU0, 2, 0, 0};
    w.m.fault[1] = (struct heddle_fault){HEDDLE_FAULT_COPY, 1, 1, 0, 0};
    w.m.fault[2] = (struct heddle_fault){HEDDLE_FAULT_ALLOC, 1, 2, 0, 0};
    w.m.fault[3] = (struct heddle_fault){HEDDLE_FAULT_LOSE, GPU1, 0, 150, 0};
    w.m.fault[4] = (struct heddle_fault){HEDDLE_FAULT_SLOW, CPU, 0, 50, 3};
    w.m.p.nfaults = 5;
    world_open(&w, NULL, false);
    CHECK(!heddle_sim_step(w.s)); /* a fault alone moves no clock */
    CHECK_OK(drv->alloc(w.dev[GPU0], 8, 0, &p));
    CHECK_STATUS(drv->alloc(w.dev[GPU0], 8, 0, &p), HEDDLE_ENOMEM);
    CHECK_OK(drv->alloc(w.dev[GPU0], 8, 0, &p));
    CHECK_OK(kernel(&w, GPU0, 0, 10, &n[0]));
    CHECK_OK(kernel(&w, GPU0, 0, 10, &n[1]));
    CHECK_OK(kernel(&w, GPU0, 0, 10, &n[2]));
    CHECK_OK(copy(&w, GPU0, HEDDLE_COPY_OUT, 10, 2, &n[3]));
    CHECK_OK(kernel(&w, GPU1, 0, 1000, &n[4]));
    CHECK_OK(kernel(&w, CPU, 0, 60, &n[5]));
    CHECK_OK(kernel(&w, CPU, 0, 60, &n[6]));
    run_all(&w);
    CHECK_SPAN(n[0], 0, 10);
    CHECK_STATUS(n[1].st, HEDDLE_ETASK);
    CHECK_SPAN(n[2], 20, 30);
    CHECK_STATUS(n[3].st, HEDDLE_EIO);
    CHECK_STATUS(n[4].st, HEDDLE_EDEV);
    CHECK_EQ(n[4].op.end_ns, 150);
    CHECK_SPAN(n[5], 0, 60);
    CHECK_SPAN(n[6], 60, 240);
    world_fini(&w);
}

/* ---- with executes ------------------------------------------------------- */

static heddle_status negate(struct heddle_exec *x)
{
    x->calls++;
    for (size_t i = 0; i < x->n; i++)
        x->data[i] = -x->data[i];
    return x->st;
}

TEST(executes)
{
    enum { N = 6 };
    struct world w;
    struct note n[4];
    int host[N * 2], want[N * 2];
    void *a, *b;
    struct heddle_exec x = {.n = N};
    struct heddle_dev_launch l = {.run = negate, .x = &x, .model_ns = 10};
    /* 3 runs of 2 numbers, 4 numbers apart. */
    struct heddle_copy c = {.host = host,
                            .runs = {.run_bytes = 2 * sizeof(int),
                                     .nruns = 3,
                                     .ndim = 1,
                                     .count = {3},
                                     .step = {4 * sizeof(int)}}};

    world_init(&w, true);
    for (int i = 0; i < N * 2; i++) {
        host[i] = i + 1;
        want[i] = i % 4 < 2 ? -(i + 1) : i + 1;
    }
    CHECK_OK(drv->alloc(w.dev[GPU0], N * sizeof(int), 0, &a));
    CHECK_OK(drv->alloc(w.dev[GPU1], N * sizeof(int), 0, &b));
    x.data = a;
    for (unsigned i = 0; i < 4; i++)
        n[i] = (struct note){.op.done = note_done};
    c.kind = HEDDLE_COPY_IN;
    c.ptr = a;
    CHECK_OK(drv->copy(w.dev[GPU0], &c, 0, &n[0].op));
    CHECK_OK(drv->launch(w.dev[GPU0], &l, 0, &n[1].op));
    c.kind = HEDDLE_COPY_PEER;
    c.peer = w.dev[GPU1];
    c.peer_ptr = b;
    CHECK_OK(drv->copy(w.dev[GPU0], &c, 0, &n[2].op));
    drv->free(w.dev[GPU0], a, N * sizeof(int), 0); /* after the last use */
    CHECK_OK(drv->order(w.dev[GPU1], 0, &n[2].op));
    c.kind = HEDDLE_COPY_OUT;
    c.ptr = b;
    CHECK_OK(drv->copy(w.dev[GPU1], &c, 0, &n[3].op));
    drv->free(w.dev[GPU1], b, N * sizeof(int), 0);
    memset(&c, 0xee, sizeof(c)); /* the record may go */
    CHECK_EQ(x.calls, 0);
    run_all(&w);
    for (unsigned i = 0; i < 4; i++)
        CHECK_OK(n[i].st);
    CHECK_EQ(x.calls, 1);
    CHECK_EQ(memcmp(host, want, sizeof(host)), 0);
    CHECK_STATUS(drv->alloc(w.dev[GPU0], SIZE_MAX - 8, 0, &a), HEDDLE_ENOMEM);
    world_fini(&w);
}

TEST(failing_kernel)
{
    struct world w;
    struct note n = {.op.done = note_done};
    struct heddle_exec x = {.st = HEDDLE_EDECLINED};
    struct heddle_dev_launch l = {.run = negate, .x = &x, .model_ns = 10};

    world_init(&w, true);
    CHECK_OK(drv->launch(w.dev[CPU], &l, 0, &n.op));
    CHECK_EQ(x.calls, 1); /* an idle stream begins at once */
    run_all(&w);
    CHECK_STATUS(n.st, HEDDLE_EDECLINED);
    world_fini(&w);
    /* Without executes nothing runs. */
    world_init(&w, false);
    n = (struct note){.op.done = note_done};
    CHECK_OK(drv->launch(w.dev[CPU], &l, 0, &n.op));
    run_all(&w);
    CHECK_OK(n.st);
    CHECK_EQ(x.calls, 1);
    world_fini(&w);
}

/* A kernel that loses its own device and waits for others. */
static heddle_status suicidal(struct heddle_exec *x)
{
    x->calls++;
    heddle_sim_lose(x->w->s, GPU0);
    while (heddle_sim_step(x->w->s))
        ;
    return HEDDLE_OK;
}

TEST(lose_within_run)
{
    struct world w;
    struct note n[3];
    struct heddle_exec x = {.w = &w};
    struct heddle_dev_launch l = {.run = suicidal, .x = &x, .model_ns = 10};

    world_init(&w, true);
    CHECK_OK(kernel(&w, CPU, 0, 100, &n[0]));
    CHECK_OK(kernel(&w, GPU0, 1, 100, &n[1]));
    n[2] = (struct note){.op.done = note_done};
    CHECK_OK(drv->launch(w.dev[GPU0], &l, 0, &n[2].op));
    CHECK_EQ(heddle_sim_now(w.s), 100);
    CHECK_SPAN(n[0], 0, 100);
    CHECK_STATUS(n[1].st, HEDDLE_EDEV);
    CHECK_EQ(n[2].ends, 0);
    run_all(&w);
    CHECK_STATUS(n[2].st, HEDDLE_EDEV);
    world_fini(&w);
}

TEST(fake_addresses)
{
    struct world w;
    void *a, *b, *c;

    world_init(&w, false);
    CHECK_OK(drv->alloc(w.dev[GPU0], 1 << 19, 0, &a));
    CHECK_OK(drv->alloc(w.dev[GPU1], 1, 0, &b));
    CHECK_OK(drv->alloc(w.dev[GPU1], (size_t)1 << 40, 0, &c)); /* no budget */
    CHECK(a != NULL && a != b && b != c);
    CHECK((char *)b - (char *)a >= 1 << 19);
    CHECK_EQ(drv->memory_free(w.dev[GPU0]), 1 << 19);
    CHECK_EQ(drv->memory_free(w.dev[GPU1]), 0);
    CHECK_STATUS(drv->alloc(w.dev[GPU1], SIZE_MAX, 0, &c), HEDDLE_ENOMEM);
    drv->free(w.dev[GPU0], a, 1 << 19, 0);
    CHECK_EQ(drv->memory_free(w.dev[GPU0]), 1 << 20);
    world_fini(&w);
}

TEST_MAIN(probe, streams, links, shares, no_link, buses, order_holds_back, step_within_done, lose,
          slow_down, faults_of_the_description, executes, failing_kernel, lose_within_run,
          fake_addresses)
