/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xfer: the way of a transfer (straight, hop, staged), transfers that fail, a device that
 * is lost while transfers and requests are under way, and ends in any order.
 */
#include "mem/check_test.h"
#include "mem/fake_test.h"

enum { HOST = 1, ONE = 2, TWO = 4, NUNITS = 3 };

/* Two devices without a limit. */
struct rig {
    struct fake f;
    int32_t data[NUNITS][FAKE_N];
    heddle_handle *u[NUNITS];
};

static void rig_open(struct rig *r)
{
    CHECK(fake_open(&r->f, 2, HEDDLE_MEM_NO_LIMIT, 0, 0));
    for (int32_t i = 0; i < NUNITS; i++) {
        for (size_t k = 0; k < FAKE_N; k++)
            r->data[i][k] = 10 + i;
        r->u[i] = fake_vector(&r->f, r->data[i]);
    }
}

static void rig_close(struct rig *r)
{
    check_all(&r->f, NULL, 0);
    for (unsigned i = 0; i < NUNITS; i++)
        fake_drop(r->u[i]);
    (void)heddle_mem_pump(r->f.mem);
    fake_close(&r->f);
}

static void lose(struct rig *r, unsigned node)
{
    r->f.dev[node - 1].is_lost = true;
    heddle_mem_lose(r->f.mem, node);
}

/* --- the way ------------------------------------------------------------------------ */

TEST(straight_between_peers)
{
    struct rig r;

    rig_open(&r);
    r.f.dev[0].can_peer = r.f.dev[1].can_peer = true;
    fake_put(&r.f, 1, r.u[0], 5);
    CHECK_EQ(fake_get(&r.f, 2, r.u[0]), 5);
    CHECK_EQ(heddle_mem_valid(r.u[0]), ONE | TWO); /* the host never saw it */
    CHECK_EQ(r.data[0][0], 10);
    CHECK_EQ(r.f.dev[0].ncopies, 1);
    CHECK_EQ(r.f.dev[1].ncopies, 0);
    rig_close(&r);
}

TEST(the_fastest_source_is_taken)
{
    struct rig r;

    rig_open(&r);
    (void)fake_get(&r.f, 1, r.u[0]);
    (void)fake_get(&r.f, 2, r.u[0]); /* no peers: from the host */
    CHECK_EQ(FAKE_STAT(&r.f, 0, copies_out), 2);
    r.f.dev[0].can_peer = r.f.dev[1].can_peer = true;
    (void)fake_get(&r.f, 1, r.u[1]);
    (void)fake_get(&r.f, 2, r.u[1]); /* host and peer have it: the peer is nearer */
    CHECK_EQ(FAKE_STAT(&r.f, 0, copies_out), 3);
    CHECK_EQ(FAKE_STAT(&r.f, 1, copies_out), 1);
    rig_close(&r);
}

TEST(two_readers_share_one_transfer)
{
    struct fake_task a = {0}, b = {0};
    struct rig r;

    rig_open(&r);
    FAKE_ASK(&r.f, &a, 1, {.unit = r.u[0], .mode = HEDDLE_R});
    FAKE_ASK(&r.f, &b, 1, {.unit = r.u[0], .mode = HEDDLE_R});
    (void)heddle_mem_pump(r.f.mem);
    CHECK_EQ(r.f.dev[0].nflying, 1);
    fake_settle(&r.f);
    CHECK(a.is_ready && b.is_ready);
    heddle_mem_end(r.f.mem, &a.req, HEDDLE_OK);
    CHECK_EQ(fake_value(&b, 0), 10);
    heddle_mem_end(r.f.mem, &b.req, HEDDLE_OK);
    rig_close(&r);
}

TEST(ends_in_any_order)
{
    for (unsigned first = 0; first < NUNITS; first++)
        for (unsigned second = 0; second < NUNITS - 1; second++) {
            struct fake_task t = {0};
            struct rig r;

            rig_open(&r);
            FAKE_ASK(&r.f, &t, 1, {.unit = r.u[0], .mode = HEDDLE_R},
                     {.unit = r.u[1], .mode = HEDDLE_R}, {.unit = r.u[2], .mode = HEDDLE_R});
            (void)heddle_mem_pump(r.f.mem);
            CHECK_EQ(r.f.dev[0].nflying, 3);
            fake_land(&r.f.dev[0], first);
            (void)heddle_mem_pump(r.f.mem);
            fake_land(&r.f.dev[0], second);
            (void)heddle_mem_pump(r.f.mem);
            CHECK(!t.is_ready); /* not before the last */
            fake_settle(&r.f);
            CHECK(t.is_ready);
            for (unsigned i = 0; i < NUNITS; i++)
                CHECK_EQ(fake_value(&t, i), 10 + (int32_t)i);
            heddle_mem_end(r.f.mem, &t.req, HEDDLE_OK);
            rig_close(&r);
        }
}

/* --- failures -------------------------------------------------------------------------- */

TEST(a_transfer_that_fails_is_tried_four_times)
{
    for (unsigned fails = 1; fails <= XFER_TRIES; fails++)
        for (unsigned is_refused = 0; is_refused < 2; is_refused++) {
            struct fake_task t = {0};
            struct fake_task *live[] = {&t};
            struct rig r;

            rig_open(&r);
            *(is_refused ? &r.f.dev[0].refuses : &r.f.dev[0].fails) = fails;
            FAKE_ASK(&r.f, &t, 1, {.unit = r.u[0], .mode = HEDDLE_R});
            fake_settle(&r.f);
            CHECK_EQ(t.is_ready, fails < XFER_TRIES);
            CHECK_EQ(t.has_failed, fails == XFER_TRIES);
            check_all(&r.f, live, t.is_ready);
            if (t.has_failed) {
                CHECK_STATUS(t.st, HEDDLE_ETASK);
                CHECK(t.req.culprit == r.u[0]);
            } else {
                CHECK_EQ(fake_value(&t, 0), 10);
                heddle_mem_end(r.f.mem, &t.req, HEDDLE_OK);
            }
            CHECK_EQ(fake_get(&r.f, 1, r.u[0]), 10); /* the next one is not concerned */
            rig_close(&r);
        }
}

TEST(no_memory_is_not_tried_again)
{
    struct fake_task t = {0};
    struct rig r;

    rig_open(&r);
    r.f.dev[0].fails_with = HEDDLE_ENOMEM;
    r.f.dev[0].fails = 1;
    FAKE_ASK(&r.f, &t, 1, {.unit = r.u[0], .mode = HEDDLE_R}, {.unit = r.u[1], .mode = HEDDLE_R});
    fake_settle(&r.f);
    CHECK(t.has_failed);
    CHECK_STATUS(t.st, HEDDLE_ENOMEM);
    CHECK_EQ(r.f.dev[0].ncopies, 2);
    CHECK(heddle_mem_is_idle(r.f.mem));
    rig_close(&r);
}

TEST(an_eviction_that_fails_loses_nothing)
{
    struct fake_task t = {0};
    struct rig r;

    CHECK(fake_open(&r.f, 1, FAKE_UNIT, 0, 0));
    for (unsigned i = 0; i < NUNITS; i++)
        r.u[i] = fake_vector(&r.f, memset(r.data[i], 0, sizeof(r.data[i])));
    fake_put(&r.f, 1, r.u[0], 5);
    fake_settle(&r.f);
    fake_put(&r.f, 1, r.u[0], 6); /* dirty again */
    r.f.dev[0].fails = 3 * XFER_TRIES;
    FAKE_ASK(&r.f, &t, 1, {.unit = r.u[1], .mode = HEDDLE_W});
    CHECK(!t.is_ready);
    fake_settle(&r.f);
    CHECK(t.is_ready); /* tried until it went */
    fake_fill(&t, 0, 1);
    heddle_mem_end(r.f.mem, &t.req, HEDDLE_OK);
    CHECK_EQ(r.data[0][3], 6);
    CHECK_EQ(r.f.mem->node[1].leaving, 0);
    CHECK_EQ(r.f.mem->node[1].nevicting, 0);
    rig_close(&r);
}

/* No memory for the transfer that brings a neighbour home: the unit itself must not be
 * copied from the host, where it is old. */
TEST(a_neighbour_that_cannot_come_home_stops_the_request)
{
    struct fake_task t = {0};
    heddle_handle *half;
    struct rig r;

    rig_open(&r);
    half = fake_part(r.u[0], 0, FAKE_N / 2);
    CHECK_EQ(fake_get(&r.f, 1, half), 10); /* its records are there */
    fake_put(&r.f, 1, r.u[0], 6);
    (void)heddle_mem_pump(r.f.mem);
    while (r.f.mem->free_xfers != NULL) { /* the next one has to be allocated */
        struct mem_xfer *x = r.f.mem->free_xfers;

        r.f.mem->free_xfers = x->next;
        heddle_free(&r.f.heap.a, x, sizeof(*x));
    }
    r.f.heap.fail_at = r.f.heap.ncalls + 1;
    FAKE_ASK(&r.f, &t, 1, {.unit = half, .mode = HEDDLE_R});
    fake_settle(&r.f);
    CHECK(t.has_failed);
    CHECK_STATUS(t.st, HEDDLE_ENOMEM);
    CHECK(t.req.culprit == r.u[0]);
    CHECK_EQ(heddle_mem_valid(half), HOST);
    CHECK_EQ(fake_get(&r.f, 1, half), 6);
    fake_drop(half);
    rig_close(&r);
}

/* --- a device that is lost ---------------------------------------------------------------- */

TEST(what_is_elsewhere_too_survives)
{
    struct fake_task t = {0};
    struct rig r;

    rig_open(&r);
    (void)fake_get(&r.f, 1, r.u[0]);
    fake_put(&r.f, 1, r.u[1], 5);
    lose(&r, 1);
    CHECK_EQ(r.f.nlost, 1); /* u[1] */
    CHECK_EQ(heddle_mem_valid(r.u[0]), HOST);
    CHECK_EQ(heddle_mem_valid(r.u[1]), 0);
    CHECK_EQ(heddle_load_acq(&r.u[1]->mark), HEDDLE_EDEV);
    fake_settle(&r.f);
    CHECK_EQ(r.f.dev[0].used, 0);
    CHECK_EQ(fake_get(&r.f, 2, r.u[0]), 10);
    FAKE_ASK(&r.f, &t, 2, {.unit = r.u[1], .mode = HEDDLE_R});
    fake_settle(&r.f);
    CHECK(t.has_failed);
    CHECK(t.req.culprit == r.u[1]);
    fake_put(&r.f, 2, r.u[1], 7); /* a write of the whole repairs it */
    heddle_unit_unmark(r.u[1]);
    CHECK_EQ(fake_get(&r.f, 0, r.u[1]), 7);
    FAKE_ASK(&r.f, &t, 1, {.unit = r.u[2], .mode = HEDDLE_R});
    fake_settle(&r.f);
    CHECK_STATUS(t.st, HEDDLE_EDEV); /* nothing is admitted there any more */
    rig_close(&r);
}

TEST(lost_while_data_come_in)
{
    struct fake_task a = {0}, b = {0};
    struct rig r;

    rig_open(&r);
    FAKE_ASK(&r.f, &a, 1, {.unit = r.u[0], .mode = HEDDLE_R}, {.unit = r.u[1], .mode = HEDDLE_R});
    FAKE_ASK(&r.f, &b, 2, {.unit = r.u[0], .mode = HEDDLE_R});
    (void)heddle_mem_pump(r.f.mem);
    fake_land(&r.f.dev[0], 0);
    lose(&r, 1);
    fake_settle(&r.f);
    CHECK(a.has_failed && b.is_ready);
    CHECK_STATUS(a.st, HEDDLE_EDEV);
    CHECK_EQ(fake_value(&b, 0), 10);
    heddle_mem_end(r.f.mem, &b.req, HEDDLE_OK);
    CHECK_EQ(r.f.nlost, 0);
    CHECK_EQ(r.f.dev[0].used, 0);
    rig_close(&r);
}

TEST(lost_while_data_go_out)
{
    struct fake_task t = {0};
    struct rig r;

    rig_open(&r);
    r.f.dev[0].can_peer = r.f.dev[1].can_peer = true;
    fake_put(&r.f, 1, r.u[0], 5);
    CHECK_EQ(fake_get(&r.f, 0, r.u[0]), 5); /* the host has it as well */
    FAKE_ASK(&r.f, &t, 2, {.unit = r.u[0], .mode = HEDDLE_R});
    (void)heddle_mem_pump(r.f.mem);
    CHECK_EQ(r.f.dev[0].nflying, 1); /* from the peer */
    lose(&r, 1);
    fake_settle(&r.f);
    CHECK(t.is_ready); /* looked again, and came from the host */
    CHECK_EQ(fake_value(&t, 0), 5);
    heddle_mem_end(r.f.mem, &t.req, HEDDLE_OK);
    rig_close(&r);
}

/* A peer does not notice that the other one is gone: its copy ends well. */
TEST(a_copy_to_a_lost_peer_counts_as_nothing)
{
    struct fake_task a = {0}, b = {0};
    struct rig r;

    rig_open(&r);
    r.f.dev[0].can_peer = r.f.dev[1].can_peer = true;
    FAKE_ASK(&r.f, &b, 2, {.unit = r.u[1], .mode = HEDDLE_R});
    fake_settle(&r.f);
    CHECK(b.is_ready); /* runs, and keeps its copy */
    fake_put(&r.f, 1, r.u[0], 5);
    FAKE_ASK(&r.f, &a, 2, {.unit = r.u[0], .mode = HEDDLE_R}, {.unit = r.u[2], .mode = HEDDLE_R});
    (void)heddle_mem_pump(r.f.mem);
    CHECK_EQ(r.f.dev[0].nflying, 1);
    lose(&r, 2);
    fake_land(&r.f.dev[0], 0);
    CHECK_EQ(heddle_mem_valid(r.u[0]), ONE);
    fake_settle(&r.f);
    CHECK(a.has_failed);
    heddle_mem_end(r.f.mem, &b.req, HEDDLE_EDEV);
    fake_settle(&r.f);
    CHECK_EQ(r.f.nlost, 0);
    CHECK_EQ(fake_get(&r.f, 0, r.u[0]), 5);
    rig_close(&r);
}

TEST(lost_with_the_only_copy_under_way)
{
    struct fake_task t = {0};
    struct rig r;

    rig_open(&r);
    fake_put(&r.f, 1, r.u[0], 5);
    FAKE_ASK(&r.f, &t, 0, {.unit = r.u[0], .mode = HEDDLE_R});
    (void)heddle_mem_pump(r.f.mem);
    CHECK_EQ(r.f.dev[0].nflying, 1);
    lose(&r, 1);
    fake_settle(&r.f);
    CHECK(t.has_failed);
    CHECK(t.req.culprit == r.u[0]);
    CHECK_EQ(r.f.nlost, 1);
    rig_close(&r);
}

TEST(lost_while_a_task_runs_and_others_wait_for_room)
{
    struct fake_task a = {0}, b = {0};
    struct rig r;

    CHECK(fake_open(&r.f, 1, FAKE_UNIT, 0, 0));
    for (unsigned i = 0; i < NUNITS; i++)
        r.u[i] = fake_vector(&r.f, memset(r.data[i], 0, sizeof(r.data[i])));
    FAKE_ASK(&r.f, &a, 1, {.unit = r.u[0], .mode = HEDDLE_RW});
    FAKE_ASK(&r.f, &b, 1, {.unit = r.u[1], .mode = HEDDLE_R});
    fake_settle(&r.f);
    CHECK(a.is_ready && !b.is_ready);
    lose(&r, 1);
    fake_settle(&r.f);
    CHECK(b.has_failed);
    CHECK_STATUS(b.st, HEDDLE_EDEV);
    heddle_mem_end(r.f.mem, &a.req, HEDDLE_EDEV);
    fake_settle(&r.f);
    CHECK_EQ(heddle_mem_valid(r.u[0]), HOST); /* as before the task */
    CHECK_EQ(fake_get(&r.f, 0, r.u[0]), 0);
    CHECK_EQ(r.f.dev[0].used, 0);
    rig_close(&r);
}

/* A staged transfer in two legs: the disk, then the device, which has gone. */
TEST(lost_between_two_legs)
{
    struct fake_task t = {0}, other = {0};
    heddle_handle *u[3];
    struct fake f;

    CHECK(fake_open(&f, 3, HEDDLE_MEM_NO_LIMIT, FAKE_UNIT, 0));
    for (int32_t i = 0; i < 3; i++) {
        u[i] = fake_vector(&f, NULL);
        fake_put(&f, 0, u[i], 40 + i);
    }
    CHECK_EQ(heddle_mem_valid(u[0]), 8); /* on the disk, node 3 */
    FAKE_ASK(&f, &t, 1, {.unit = u[0], .mode = HEDDLE_R});
    FAKE_ASK(&f, &other, 2, {.unit = u[1], .mode = HEDDLE_R}); /* waits for the buffer */
    (void)heddle_mem_pump(f.mem);
    CHECK_EQ(f.dev[2].nflying, 1);
    fake_land(&f.dev[2], 0); /* the first leg */
    CHECK_EQ(f.dev[0].nflying, 1);
    f.dev[0].is_lost = true;
    heddle_mem_lose(f.mem, 1);
    fake_settle(&f);
    CHECK(t.has_failed && other.is_ready);
    CHECK_EQ(fake_value(&other, 0), 41);
    heddle_mem_end(f.mem, &other.req, HEDDLE_OK);
    CHECK_EQ(fake_get(&f, 2, u[0]), 40);
    for (unsigned i = 0; i < 3; i++)
        fake_drop(u[i]);
    (void)heddle_mem_pump(f.mem);
    fake_close(&f);
}

TEST_MAIN(straight_between_peers, the_fastest_source_is_taken, two_readers_share_one_transfer,
          ends_in_any_order, a_transfer_that_fails_is_tried_four_times,
          no_memory_is_not_tried_again, an_eviction_that_fails_loses_nothing,
          a_neighbour_that_cannot_come_home_stops_the_request, what_is_elsewhere_too_survives,
          lost_while_data_come_in, lost_while_data_go_out, a_copy_to_a_lost_peer_counts_as_nothing,
          lost_with_the_only_copy_under_way, lost_while_a_task_runs_and_others_wait_for_room,
          lost_between_two_legs)
