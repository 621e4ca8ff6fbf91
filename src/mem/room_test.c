/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * room: whole working sets in one step, the queue, whom to evict, requests over the
 * budget, a driver that has less than it promised, hints, and the disk.
 */
#include "mem/check_test.h"
#include "mem/fake_test.h"

enum { HOST = 1, ONE = 2, TWO = 4, NUNITS = 6 };

/* One device with room for three units, and six vectors of the user. */
struct rig {
    struct fake f;
    int32_t data[NUNITS][FAKE_N];
    heddle_handle *u[NUNITS];
};

static void rig_open(struct rig *r, uint64_t budget)
{
    CHECK(fake_open(&r->f, 1, budget, 0, 0));
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

static void end(struct rig *r, struct fake_task *t)
{
    CHECK(t->is_ready);
    heddle_mem_end(r->f.mem, &t->req, HEDDLE_OK);
}

TEST(all_or_nothing)
{
    struct fake_task a = {0}, b = {.req = {.nprivate = 1, .private_bytes = {FAKE_UNIT}}};
    struct fake_task *live[] = {&a, &b};
    struct rig r;

    rig_open(&r, 3 * FAKE_UNIT);
    FAKE_ASK(&r.f, &a, 1, {.unit = r.u[0], .mode = HEDDLE_R}, {.unit = r.u[0], .mode = HEDDLE_R});
    fake_settle(&r.f);
    CHECK(a.is_ready);
    CHECK_EQ(r.f.dev[0].used, FAKE_UNIT); /* a unit that repeats needs one buffer */
    FAKE_ASK(&r.f, &b, 1, {.unit = r.u[1], .mode = HEDDLE_R}, {.unit = r.u[2], .mode = HEDDLE_W});
    fake_settle(&r.f);
    CHECK(!b.is_ready && !b.has_failed); /* two of its three would fit */
    CHECK_EQ(r.f.dev[0].used, FAKE_UNIT);
    CHECK(!heddle_mem_is_idle(r.f.mem));
    check_all(&r.f, live, 2);
    end(&r, &a);
    fake_settle(&r.f);
    CHECK(b.is_ready); /* u[0] was evicted for it */
    CHECK_EQ(r.f.dev[0].used, 3 * FAKE_UNIT);
    CHECK(b.req.private_ptr[0] != NULL);
    CHECK_EQ(heddle_mem_valid(r.u[0]), HOST);
    check_all(&r.f, live + 1, 1);
    fake_fill(&b, 1, 1);
    end(&r, &b);
    rig_close(&r);
}

TEST(no_driver_memory_for_the_last_buffer_gives_the_first_back)
{
    struct fake_task t = {.req = {.nprivate = 2, .private_bytes = {FAKE_UNIT, FAKE_UNIT}}};
    struct rig r;

    rig_open(&r, 8 * FAKE_UNIT);
    r.f.dev[0].capacity = 3 * FAKE_UNIT; /* less than it promised */
    FAKE_ASK(&r.f, &t, 1, {.unit = r.u[0], .mode = HEDDLE_R}, {.unit = r.u[1], .mode = HEDDLE_R});
    CHECK(!t.is_ready);
    CHECK_EQ(r.f.dev[0].used, 0);
    fake_settle(&r.f);
    CHECK(t.has_failed); /* nobody else has anything, it was asked often enough */
    CHECK_STATUS(t.st, HEDDLE_ENOMEM);
    CHECK_EQ(t.req.appeals, APPEALS + 1);
    /* What fits is still admitted: the failure has left nothing behind. */
    t = (struct fake_task){0};
    FAKE_ASK(&r.f, &t, 1, {.unit = r.u[0], .mode = HEDDLE_R}, {.unit = r.u[1], .mode = HEDDLE_R},
             {.unit = r.u[2], .mode = HEDDLE_R});
    fake_settle(&r.f);
    end(&r, &t);
    rig_close(&r);
}

/* --- whom to evict ------------------------------------------------------------------ */

TEST(a_clean_copy_is_dropped_a_dirty_one_is_written_back)
{
    struct fake_task t = {0};
    struct rig r;

    rig_open(&r, 2 * FAKE_UNIT);
    CHECK_EQ(fake_get(&r.f, 1, r.u[0]), 10);
    fake_put(&r.f, 1, r.u[1], 5);
    FAKE_ASK(&r.f, &t, 1, {.unit = r.u[2], .mode = HEDDLE_W}, {.unit = r.u[3], .mode = HEDDLE_W});
    CHECK(!t.is_ready);
    (void)heddle_mem_pump(r.f.mem);
    CHECK_EQ(heddle_mem_valid(r.u[0]), HOST); /* at once */
    CHECK(!t.is_ready);
    CHECK_EQ(r.f.dev[0].nflying, 1);
    CHECK_EQ(heddle_mem_valid(r.u[1]), ONE); /* valid until it is at home */
    fake_settle(&r.f);
    CHECK(t.is_ready);
    CHECK_EQ(heddle_mem_valid(r.u[1]), HOST);
    CHECK_EQ(r.data[1][7], 5);
    CHECK_EQ(FAKE_STAT(&r.f, 1, evictions), 2);
    CHECK_EQ(r.f.moved[HEDDLE_MEM_EVICT] + r.f.moved[HEDDLE_MEM_WRITEBACK], 1);
    fake_fill(&t, 0, 1);
    fake_fill(&t, 1, 1);
    end(&r, &t);
    rig_close(&r);
}

/* Which of three copies goes for a fourth: what lies on the device afterwards. */
static uint64_t after_a_fourth(struct rig *r)
{
    uint64_t there = 0;

    CHECK_EQ(fake_get(&r->f, 1, r->u[3]), 13);
    for (unsigned i = 0; i < 3; i++)
        there |= (heddle_mem_valid(r->u[i]) >> 1 & 1) << i;
    return there;
}

TEST(the_victim_is_what_is_used_last)
{
    enum { CASES = 5 };

    for (unsigned k = 0; k < CASES; k++) {
        struct rig r;

        rig_open(&r, 3 * FAKE_UNIT);
        for (unsigned i = 0; i < 3; i++)
            (void)fake_get(&r.f, 1, r.u[i]);
        switch (k) {
        case 0: /* nothing is known: the least recently used */
            CHECK_EQ(after_a_fourth(&r), 6);
            break;
        case 1: /* u[1] is used last */
            heddle_mem_will_use(r.f.mem, r.u[0], 1, NULL, HEDDLE_R);
            heddle_mem_will_use(r.f.mem, r.u[1], 3, NULL, HEDDLE_R);
            heddle_mem_will_use(r.f.mem, r.u[2], 2, NULL, HEDDLE_R);
            CHECK_EQ(after_a_fourth(&r), 5);
            break;
        case 2: /* u[2] is used no more */
            heddle_mem_will_use(r.f.mem, r.u[0], 1, NULL, HEDDLE_R);
            heddle_mem_will_use(r.f.mem, r.u[1], 2, NULL, HEDDLE_R);
            CHECK_EQ(after_a_fourth(&r), 3);
            break;
        case 3: /* the program says so */
            heddle_mem_wont_use(r.f.mem, r.u[2]);
            for (unsigned i = 0; i < 2; i++)
                heddle_mem_will_use(r.f.mem, r.u[i], 1 + i, NULL, HEDDLE_R);
            CHECK_EQ(after_a_fourth(&r), 3);
            break;
        default: /* a use that will not come does not count */
            for (unsigned i = 0; i < 3; i++)
                heddle_mem_will_use(r.f.mem, r.u[i], 1 + i, NULL, HEDDLE_R);
            heddle_mem_used(r.f.mem, r.u[1], 2);
            CHECK_EQ(after_a_fourth(&r), 5);
            break;
        }
        rig_close(&r);
    }
}

TEST(what_the_oldest_finds_in_place_is_not_evicted_for_it)
{
    struct fake_task t = {0};
    struct rig r;

    rig_open(&r, 3 * FAKE_UNIT);
    for (unsigned i = 0; i < 3; i++)
        (void)fake_get(&r.f, 1, r.u[i]);
    FAKE_ASK(&r.f, &t, 1, {.unit = r.u[0], .mode = HEDDLE_R}, {.unit = r.u[4], .mode = HEDDLE_R});
    fake_settle(&r.f);
    CHECK(t.is_ready);
    CHECK_EQ(FAKE_STAT(&r.f, 1, copies_in), 4); /* u[0], the oldest, was not brought again */
    end(&r, &t);
    rig_close(&r);
}

TEST(a_pin_of_the_user_gives_way_at_last)
{
    struct rig r;

    rig_open(&r, 2 * FAKE_UNIT);
    (void)fake_get(&r.f, 1, r.u[0]);
    (void)fake_get(&r.f, 1, r.u[1]);
    heddle_mem_pin(r.f.mem, r.u[0], 1, true);
    (void)fake_get(&r.f, 1, r.u[2]);
    CHECK_EQ(heddle_mem_valid(r.u[0]), HOST | ONE);
    CHECK_EQ(heddle_mem_valid(r.u[1]), HOST);
    heddle_mem_pin(r.f.mem, r.u[2], 1, true);
    (void)fake_get(&r.f, 1, r.u[3]); /* somebody has to go */
    CHECK_EQ(heddle_mem_valid(r.u[3]), HOST | ONE);
    rig_close(&r);
}

TEST(copies_are_cleaned_before_room_is_short)
{
    struct rig r;

    rig_open(&r, 3 * FAKE_UNIT);
    for (unsigned i = 0; i < 2; i++)
        fake_put(&r.f, 1, r.u[i], 5);
    fake_settle(&r.f);
    CHECK_EQ(heddle_mem_valid(r.u[0]), ONE); /* two thirds: there is time */
    heddle_mem_will_use(r.f.mem, r.u[0], 9, NULL, HEDDLE_RW);
    fake_put(&r.f, 1, r.u[2], 5);
    fake_settle(&r.f);
    CHECK_EQ(heddle_mem_valid(r.u[0]), ONE); /* it will be written again */
    CHECK_EQ(heddle_mem_valid(r.u[1]), HOST | ONE);
    CHECK_EQ(heddle_mem_valid(r.u[2]), HOST | ONE);
    CHECK_EQ(r.f.moved[HEDDLE_MEM_WRITEBACK], 2);
    CHECK_EQ(FAKE_STAT(&r.f, 1, evictions), 0);
    rig_close(&r);
}

/* --- the queue ------------------------------------------------------------------------ */

TEST(younger_requests_overtake_only_so_often)
{
    struct fake_task holder = {0}, oldest = {0}, young[BYPASS_MAX + 1];
    struct rig r;

    memset(young, 0, sizeof(young));
    rig_open(&r, 2 * FAKE_UNIT);
    FAKE_ASK(&r.f, &holder, 1, {.unit = r.u[0], .mode = HEDDLE_R});
    fake_settle(&r.f);
    FAKE_ASK(&r.f, &oldest, 1, {.unit = r.u[1], .mode = HEDDLE_R},
             {.unit = r.u[2], .mode = HEDDLE_R});
    fake_settle(&r.f);
    CHECK(!oldest.is_ready);
    for (unsigned i = 0; i <= BYPASS_MAX; i++) {
        FAKE_ASK(&r.f, &young[i], 1, {.unit = r.u[0], .mode = HEDDLE_R}); /* is there */
        fake_settle(&r.f);
        CHECK_EQ(young[i].is_ready, i < BYPASS_MAX);
    }
    for (unsigned i = 0; i < BYPASS_MAX; i++)
        end(&r, &young[i]);
    end(&r, &holder);
    fake_settle(&r.f);
    CHECK(oldest.is_ready && !young[BYPASS_MAX].is_ready);
    end(&r, &oldest);
    fake_settle(&r.f);
    end(&r, &young[BYPASS_MAX]);
    rig_close(&r);
}

TEST(a_request_that_fits_queues_behind_one_that_does_not)
{
    struct fake_task a = {0}, b = {0}, c = {0};
    struct rig r;

    rig_open(&r, 3 * FAKE_UNIT);
    FAKE_ASK(&r.f, &a, 1, {.unit = r.u[0], .mode = HEDDLE_R}, {.unit = r.u[1], .mode = HEDDLE_R});
    FAKE_ASK(&r.f, &b, 1, {.unit = r.u[2], .mode = HEDDLE_R}, {.unit = r.u[3], .mode = HEDDLE_R});
    FAKE_ASK(&r.f, &c, 1, {.unit = r.u[4], .mode = HEDDLE_R});
    fake_settle(&r.f);
    CHECK(a.is_ready && !b.is_ready && !c.is_ready);
    heddle_mem_prefetch(r.f.mem, r.u[5], 1); /* a hint takes no room while somebody waits */
    fake_settle(&r.f);
    CHECK_EQ(heddle_mem_valid(r.u[5]), HOST);
    end(&r, &a);
    fake_settle(&r.f);
    CHECK(b.is_ready && c.is_ready);
    end(&r, &b);
    end(&r, &c);
    rig_close(&r);
}

TEST(a_request_larger_than_the_budget_is_told_so)
{
    struct fake_task t = {0};
    struct rig r;

    rig_open(&r, 2 * FAKE_UNIT);
    FAKE_ASK(&r.f, &t, 1, {.unit = r.u[0], .mode = HEDDLE_R}, {.unit = r.u[1], .mode = HEDDLE_R},
             {.unit = r.u[2], .mode = HEDDLE_R});
    fake_settle(&r.f);
    CHECK(t.has_failed);
    CHECK_STATUS(t.st, HEDDLE_ENOMEM);
    CHECK(heddle_mem_is_idle(r.f.mem));
    rig_close(&r);
}

TEST(a_copy_that_is_written_elsewhere_is_waited_for)
{
    struct fake_task writer = {0}, t = {0};
    struct rig r;

    rig_open(&r, FAKE_UNIT);
    (void)fake_get(&r.f, 1, r.u[0]);
    FAKE_ASK(&r.f, &writer, 0, {.unit = r.u[0], .mode = HEDDLE_RW});
    CHECK(writer.is_ready);
    FAKE_ASK(&r.f, &t, 1, {.unit = r.u[1], .mode = HEDDLE_R});
    fake_settle(&r.f);
    CHECK(!t.is_ready && !t.has_failed); /* room_is_held() */
    fake_fill(&writer, 0, 4);
    end(&r, &writer);
    fake_settle(&r.f);
    end(&r, &t);
    rig_close(&r);
}

TEST(hints_make_no_room_and_evict_gives_it)
{
    struct rig r;

    rig_open(&r, 2 * FAKE_UNIT);
    fake_put(&r.f, 1, r.u[0], 1);
    (void)fake_get(&r.f, 1, r.u[1]);
    heddle_mem_prefetch(r.f.mem, r.u[2], 1);
    fake_settle(&r.f);
    CHECK_EQ(heddle_mem_valid(r.u[2]), HOST);
    heddle_mem_evict(r.f.mem, r.u[0]);
    heddle_mem_evict(r.f.mem, r.u[1]);
    fake_settle(&r.f);
    CHECK_EQ(r.data[0][0], 1);
    CHECK_EQ(heddle_mem_valid(r.u[1]), HOST);
    heddle_mem_evict(r.f.mem, r.u[0]); /* it is at home now: the buffer goes */
    fake_settle(&r.f);
    CHECK_EQ(heddle_mem_valid(r.u[0]), HOST);
    CHECK_EQ(r.f.dev[0].used, 0);
    rig_close(&r);
}

/* --- the disk --------------------------------------------------------------------------- */

/* A device, a disk, and a host with room for two arrays of the runtime. */
static void disk_open(struct rig *r)
{
    CHECK(fake_open(&r->f, 2, HEDDLE_MEM_NO_LIMIT, 2 * FAKE_UNIT, 0));
    for (unsigned i = 0; i < NUNITS; i++)
        r->u[i] = fake_vector(&r->f, NULL);
}

TEST(an_array_begins_as_zeros_and_goes_to_the_disk)
{
    struct fake_task t = {0};
    struct rig r;

    disk_open(&r);
    CHECK_EQ(fake_get(&r.f, 1, r.u[0]), 0); /* made on the device */
    CHECK_EQ(r.f.mem->node[0].used, 0);
    CHECK_EQ(fake_get(&r.f, 0, r.u[1]), 0); /* made on the host */
    for (int32_t i = 0; i < NUNITS; i++)
        fake_put(&r.f, 0, r.u[i], 20 + i);
    CHECK(r.f.mem->node[0].used <= 2 * FAKE_UNIT);
    CHECK_EQ(heddle_mem_valid(r.u[0]), TWO); /* on the disk alone */
    for (int32_t i = 0; i < NUNITS; i++)
        CHECK_EQ(fake_get(&r.f, 0, r.u[i]), 20 + i);
    FAKE_ASK(&r.f, &t, 1, {.unit = r.u[0], .mode = HEDDLE_R}, {.unit = r.u[1], .mode = HEDDLE_R});
    fake_settle(&r.f); /* through the staging buffer, one after the other */
    CHECK(t.is_ready);
    CHECK_EQ(fake_value(&t, 0), 20);
    CHECK_EQ(fake_value(&t, 1), 21);
    end(&r, &t);
    fake_settle(&r.f);
    rig_close(&r);
}

TEST(a_forced_request_goes_over_the_budget)
{
    struct fake_task a = {0}, b = {.req = {.is_forced = true}}, c = {0};
    struct rig r;

    disk_open(&r);
    FAKE_ASK(&r.f, &a, 0, {.unit = r.u[0], .mode = HEDDLE_W}, {.unit = r.u[1], .mode = HEDDLE_W});
    CHECK(a.is_ready);
    FAKE_ASK(&r.f, &b, 0, {.unit = r.u[2], .mode = HEDDLE_W});
    CHECK(b.is_ready); /* a child of it, perhaps: it cannot wait */
    CHECK_EQ(r.f.mem->node[0].used, 3 * FAKE_UNIT);
    fake_fill(&a, 0, 1);
    fake_fill(&a, 1, 2);
    fake_fill(&b, 0, 3);
    end(&r, &a);
    fake_settle(&r.f);
    CHECK(r.f.mem->node[0].used <= 2 * FAKE_UNIT); /* the mover evicts what is over */
    /* The program may keep an acquire for ever, so the oldest is forced as well. */
    heddle_mem_hand_out(r.f.mem, &b.req);
    FAKE_ASK(&r.f, &c, 0, {.unit = r.u[3], .mode = HEDDLE_W}, {.unit = r.u[4], .mode = HEDDLE_W});
    fake_settle(&r.f);
    CHECK(c.is_ready);
    fake_fill(&c, 0, 4);
    fake_fill(&c, 1, 5);
    end(&r, &c);
    end(&r, &b);
    fake_settle(&r.f);
    for (int32_t i = 0; i < 5; i++)
        CHECK_EQ(fake_get(&r.f, 1, r.u[i]), i + 1);
    rig_close(&r);
}

TEST(an_array_with_views_stays_in_memory)
{
    struct fake_task t = {0};
    heddle_handle *half;
    struct rig r;

    disk_open(&r);
    for (int32_t i = 0; i < 3; i++)
        fake_put(&r.f, 0, r.u[i], 30 + i);
    CHECK_EQ(heddle_mem_valid(r.u[0]), TWO);
    half = fake_part(r.u[0], 0, FAKE_N / 2);
    FAKE_ASK(&r.f, &t, 1, {.unit = half, .mode = HEDDLE_RW}); /* its root comes back first */
    fake_settle(&r.f);
    CHECK(t.is_ready);
    CHECK_EQ(fake_value(&t, 0), 30);
    fake_fill(&t, 0, 50);
    end(&r, &t);
    CHECK_EQ(fake_get(&r.f, 0, half), 50);
    for (int32_t i = 1; i < NUNITS; i++)
        fake_put(&r.f, 0, r.u[i], 60 + i);
    CHECK_EQ(heddle_mem_valid(r.u[0]) & HOST, HOST);
    CHECK_EQ(((int32_t *)heddle_unit_base(r.u[0]))[FAKE_N / 2], 30);
    fake_drop(half);
    rig_close(&r);
}

TEST(views_point_into_the_memory_of_their_root)
{
    heddle_handle *half;
    struct rig r;

    disk_open(&r);
    fake_put(&r.f, 0, r.u[0], 5);
    half = fake_part(r.u[0], 0, FAKE_N / 2); /* has an address now, and no task yet */
    for (int32_t i = 1; i < NUNITS; i++)
        fake_put(&r.f, 0, r.u[i], i);
    fake_settle(&r.f);
    CHECK_EQ(heddle_mem_valid(r.u[0]), HOST);
    CHECK_EQ(r.f.mem->node[0].used, 2 * FAKE_UNIT);
    fake_drop(half);
    rig_close(&r);
}

/* The disk is being filled with an old version, from the other device. */
TEST(an_eviction_waits_for_an_older_one)
{
    struct fake_task a = {0}, b = {0}, c = {0};
    struct rig r;

    CHECK(fake_open(&r.f, 3, FAKE_UNIT, FAKE_UNIT, 0));
    for (unsigned i = 0; i < NUNITS; i++)
        r.u[i] = fake_vector(&r.f, NULL);
    fake_put(&r.f, 2, r.u[0], 5);
    FAKE_ASK(&r.f, &a, 2, {.unit = r.u[1], .mode = HEDDLE_W});
    (void)heddle_mem_pump(r.f.mem);
    CHECK_EQ(r.f.dev[1].nflying, 1); /* u[0] leaves for the disk */
    FAKE_ASK(&r.f, &b, 1, {.unit = r.u[0], .mode = HEDDLE_W});
    CHECK(b.is_ready);
    fake_fill(&b, 0, 6);
    end(&r, &b);
    FAKE_ASK(&r.f, &c, 1, {.unit = r.u[2], .mode = HEDDLE_W});
    (void)heddle_mem_pump(r.f.mem);
    CHECK(!c.is_ready && !c.has_failed);
    fake_settle(&r.f);
    fake_fill(&a, 0, 7);
    fake_fill(&c, 0, 8);
    end(&r, &a);
    end(&r, &c);
    CHECK_EQ(fake_get(&r.f, 0, r.u[0]), 6);
    fake_settle(&r.f);
    rig_close(&r);
}

TEST_MAIN(all_or_nothing, no_driver_memory_for_the_last_buffer_gives_the_first_back,
          a_clean_copy_is_dropped_a_dirty_one_is_written_back, the_victim_is_what_is_used_last,
          what_the_oldest_finds_in_place_is_not_evicted_for_it, a_pin_of_the_user_gives_way_at_last,
          copies_are_cleaned_before_room_is_short, younger_requests_overtake_only_so_often,
          a_request_that_fits_queues_behind_one_that_does_not,
          a_request_larger_than_the_budget_is_told_so,
          a_copy_that_is_written_elsewhere_is_waited_for, hints_make_no_room_and_evict_gives_it,
          an_array_begins_as_zeros_and_goes_to_the_disk, a_forced_request_goes_over_the_budget,
          an_array_with_views_stays_in_memory, views_point_into_the_memory_of_their_root,
          an_eviction_waits_for_an_older_one)
