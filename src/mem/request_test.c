/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request: where a unit is valid after each event of the table in memory.md; views that
 * meet on the host; writers and transfers; promised operands; the end of a handle.
 */
#include "mem/check_test.h"
#include "mem/fake_test.h"

enum { HOST = 1, ONE = 2, TWO = 4 }; /* bits of `valid` */

/* Two devices without a limit, a vector of the user and its halves, which meet in the
 * third quarter: elements 16 to 47 and 32 to 63. */
struct rig {
    struct fake f;
    int32_t data[FAKE_N];
    heddle_handle *whole, *left, *right;
};

static void rig_open(struct rig *r)
{
    CHECK(fake_open(&r->f, 2, HEDDLE_MEM_NO_LIMIT, 0, 0));
    for (size_t i = 0; i < FAKE_N; i++)
        r->data[i] = 1;
    r->whole = fake_vector(&r->f, r->data);
    r->left = r->right = NULL;
}

static void rig_views(struct rig *r)
{
    r->left = fake_part(r->whole, 16, 32);
    r->right = fake_part(r->whole, 32, 32);
}

static void rig_close(struct rig *r)
{
    check_all(&r->f, NULL, 0);
    if (r->left != NULL) {
        fake_drop(r->left);
        fake_drop(r->right);
    }
    fake_drop(r->whole);
    (void)heddle_mem_pump(r->f.mem);
    fake_close(&r->f);
}

TEST(a_unit_without_a_record_is_at_home)
{
    struct rig r;

    rig_open(&r);
    CHECK(!heddle_mem_concerns(r.whole));
    CHECK_EQ(heddle_mem_valid(r.whole), HOST);
    CHECK_EQ(fake_get(&r.f, 1, r.whole), 1);
    CHECK(heddle_mem_concerns(r.whole));
    rig_close(&r);
}

TEST(a_reader_adds_a_copy)
{
    struct rig r;

    rig_open(&r);
    CHECK_EQ(fake_get(&r.f, 1, r.whole), 1);
    CHECK_EQ(heddle_mem_valid(r.whole), HOST | ONE);
    CHECK_EQ(fake_get(&r.f, 2, r.whole), 1);
    CHECK_EQ(heddle_mem_valid(r.whole), HOST | ONE | TWO);
    CHECK_EQ(fake_get(&r.f, 1, r.whole), 1); /* nothing moves any more */
    CHECK_EQ(r.f.moved[HEDDLE_MEM_FETCH], 2);
    CHECK_EQ(FAKE_STAT(&r.f, 1, copies_in), 1);
    rig_close(&r);
}

TEST(a_writer_leaves_one_copy)
{
    struct rig r;

    rig_open(&r);
    CHECK_EQ(fake_get(&r.f, 2, r.whole), 1);
    fake_put(&r.f, 1, r.whole, 5);
    CHECK_EQ(heddle_mem_valid(r.whole), ONE);
    CHECK_EQ(r.f.moved[HEDDLE_MEM_FETCH], 1); /* a W brings nothing */
    (void)heddle_mem_pump(r.f.mem);
    CHECK_EQ(r.f.dev[1].used, 0); /* the void copy was freed */
    CHECK_EQ(r.data[0], 1);       /* the home is old, and is not looked at */
    CHECK_EQ(fake_get(&r.f, 2, r.whole), 5);
    CHECK_EQ(heddle_mem_valid(r.whole), HOST | ONE | TWO); /* through the home: a hop */
    CHECK_EQ(r.data[FAKE_N - 1], 5);
    fake_put(&r.f, 0, r.whole, 6);
    CHECK_EQ(heddle_mem_valid(r.whole), HOST);
    CHECK_EQ(fake_get(&r.f, 1, r.whole), 6);
    rig_close(&r);
}

TEST(an_update_reads_first)
{
    struct fake_task t = {0};
    struct rig r;

    rig_open(&r);
    fake_put(&r.f, 1, r.whole, 5);
    FAKE_ASK(&r.f, &t, 2, {.unit = r.whole, .mode = HEDDLE_COMMUTE});
    CHECK(!t.is_ready);
    fake_settle(&r.f);
    CHECK(t.is_ready);
    CHECK_EQ(fake_value(&t, 0), 5);
    fake_fill(&t, 0, 7);
    heddle_mem_end(r.f.mem, &t.req, HEDDLE_OK);
    CHECK_EQ(heddle_mem_valid(r.whole), TWO);
    CHECK_EQ(fake_get(&r.f, 0, r.whole), 7);
    rig_close(&r);
}

TEST(a_failed_task_leaves_the_other_copies)
{
    struct fake_task t = {0};
    struct rig r;

    rig_open(&r);
    CHECK_EQ(fake_get(&r.f, 2, r.whole), 1);
    FAKE_ASK(&r.f, &t, 1, {.unit = r.whole, .mode = HEDDLE_RW});
    fake_settle(&r.f);
    fake_fill(&t, 0, 9);
    heddle_mem_end(r.f.mem, &t.req, HEDDLE_ETASK);
    CHECK_EQ(heddle_mem_valid(r.whole), HOST | TWO);
    CHECK_EQ(fake_get(&r.f, 1, r.whole), 1);

    FAKE_ASK(&r.f, &t, 1, {.unit = r.whole, .mode = HEDDLE_RW});
    CHECK(t.is_ready);
    heddle_mem_end(r.f.mem, &t.req, HEDDLE_EDECLINED); /* has touched nothing */
    CHECK_EQ(heddle_mem_valid(r.whole), HOST | ONE | TWO);
    rig_close(&r);
}

TEST(what_is_spoilt_cannot_be_read_until_restored)
{
    struct fake_task t = {0};
    struct rig r;

    rig_open(&r);
    fake_put(&r.f, 1, r.whole, 5);
    FAKE_ASK(&r.f, &t, 1, {.unit = r.whole, .mode = HEDDLE_RW});
    heddle_mem_end(r.f.mem, &t.req, HEDDLE_ETASK);
    heddle_unit_mark(r.whole, HEDDLE_ETASK);
    CHECK_EQ(heddle_mem_valid(r.whole), 0);
    FAKE_ASK(&r.f, &t, 2, {.unit = r.whole, .mode = HEDDLE_R});
    fake_settle(&r.f);
    CHECK(t.has_failed);
    CHECK_STATUS(t.st, HEDDLE_EDEV);
    CHECK(t.req.culprit == r.whole);
    heddle_unit_unmark(r.whole); /* the user says: take what is on the host */
    CHECK_EQ(fake_get(&r.f, 2, r.whole), 1);
    rig_close(&r);
}

TEST(a_task_on_the_host_tells_before_its_end)
{
    struct fake_task t = {0};
    struct rig r;

    rig_open(&r);
    CHECK_EQ(fake_get(&r.f, 1, r.whole), 1);
    FAKE_ASK(&r.f, &t, 0, {.unit = r.whole, .mode = HEDDLE_RW});
    CHECK(t.is_ready);
    fake_fill(&t, 0, 2);
    heddle_mem_written(r.f.mem, r.whole);
    CHECK_EQ(heddle_mem_valid(r.whole), HOST);
    heddle_mem_end(r.f.mem, &t.req, HEDDLE_OK);
    CHECK_EQ(fake_get(&r.f, 1, r.whole), 2);
    rig_close(&r);
}

/* --- views ------------------------------------------------------------------------ */

TEST(views_meet_on_the_host)
{
    struct fake_task t = {0};
    struct rig r;

    rig_open(&r);
    rig_views(&r);
    fake_put(&r.f, 1, r.left, 5);
    CHECK_EQ(heddle_mem_valid(r.left), ONE);
    FAKE_ASK(&r.f, &t, 2, {.unit = r.right, .mode = HEDDLE_R});
    CHECK(!t.is_ready);
    fake_settle(&r.f);
    CHECK(t.is_ready);
    CHECK_EQ(heddle_mem_valid(r.left) & HOST, HOST); /* came home first */
    for (size_t i = 0; i < 32; i++)
        CHECK_EQ(*fake_at(&t, 0, i, 0), i < 16 ? 5 : 1);
    heddle_mem_end(r.f.mem, &t.req, HEDDLE_OK);
    rig_close(&r);
}

TEST(a_writer_makes_its_neighbours_void)
{
    struct rig r;

    rig_open(&r);
    rig_views(&r);
    CHECK_EQ(fake_get(&r.f, 1, r.left), 1);
    CHECK_EQ(fake_get(&r.f, 2, r.whole), 1);
    fake_put(&r.f, 2, r.right, 5);
    CHECK_EQ(heddle_mem_valid(r.left), HOST);
    CHECK_EQ(heddle_mem_valid(r.whole), HOST);
    CHECK_EQ(heddle_mem_valid(r.right), TWO);
    check_all(&r.f, NULL, 0);
    (void)fake_get(&r.f, 1, r.right);
    CHECK_EQ(r.data[31], 1);
    CHECK_EQ(r.data[32], 5);
    rig_close(&r);
}

TEST(an_overwriter_does_not_wait_for_what_is_inside)
{
    struct fake_task t = {0};
    struct rig r;

    rig_open(&r);
    rig_views(&r);
    fake_put(&r.f, 1, r.left, 5);
    FAKE_ASK(&r.f, &t, 2, {.unit = r.whole, .mode = HEDDLE_W});
    CHECK(t.is_ready); /* the value in `left` is void anyway */
    fake_fill(&t, 0, 6);
    heddle_mem_end(r.f.mem, &t.req, HEDDLE_OK);
    CHECK_EQ(fake_get(&r.f, 0, r.left), 6);
    fake_put(&r.f, 1, r.left, 7);
    FAKE_ASK(&r.f, &t, 2, {.unit = r.right, .mode = HEDDLE_W});
    CHECK(!t.is_ready); /* the other half of `left` is not */
    fake_settle(&r.f);
    CHECK(t.is_ready);
    fake_fill(&t, 0, 8);
    heddle_mem_end(r.f.mem, &t.req, HEDDLE_OK);
    CHECK_EQ(fake_get(&r.f, 0, r.right), 8);
    CHECK_EQ(r.data[31], 7);
    rig_close(&r);
}

TEST(a_strided_view_is_compact_elsewhere)
{
    const struct heddle_layout l = {.dtype = HEDDLE_I32, .ndim = 2, .extent = {8, 8}};
    const size_t offset[] = {1, 2}, extent[] = {3, 2}, step[] = {2, 3};
    heddle_handle *root, *v;
    struct fake_task t = {0};
    int32_t data[64];
    struct fake f;

    CHECK(fake_open(&f, 1, HEDDLE_MEM_NO_LIMIT, 0, 0));
    for (int32_t i = 0; i < 64; i++)
        data[i] = i;
    CHECK_OK(heddle_unit_create(&f.reg, &l, data, &root));
    CHECK_OK(heddle_unit_view(root, offset, extent, step, &v));
    FAKE_ASK(&f, &t, 1, {.unit = v, .mode = HEDDLE_RW});
    fake_settle(&f);
    CHECK(t.is_ready);
    CHECK_EQ(heddle_mem_layout(&t.req, 0)->stride[0], 2);
    CHECK_EQ(heddle_mem_layout(&t.req, 0)->stride[1], 1);
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 2; j++) {
            CHECK_EQ(*fake_at(&t, 0, i, j), (1 + 2 * i) * 8 + 2 + 3 * j);
            *fake_at(&t, 0, i, j) += 100;
        }
    heddle_mem_end(f.mem, &t.req, HEDDLE_OK);
    FAKE_ASK(&f, &t, 0, {.unit = root, .mode = HEDDLE_R});
    fake_settle(&f);
    CHECK(t.is_ready);
    heddle_mem_end(f.mem, &t.req, HEDDLE_OK);
    for (int32_t i = 0; i < 64; i++) {
        const int32_t row = i / 8, col = i % 8;
        const bool is_in = (row == 1 || row == 3 || row == 5) && (col == 2 || col == 5);

        CHECK_EQ(data[i], is_in ? i + 100 : i);
    }
    fake_drop(v);
    fake_drop(root);
    (void)heddle_mem_pump(f.mem);
    fake_close(&f);
}

/* --- writers and transfers -------------------------------------------------------- */

TEST(a_writer_waits_for_transfers_of_its_copy)
{
    struct fake_task t = {0};
    struct rig r;

    rig_open(&r);
    rig_views(&r);
    heddle_mem_prefetch(r.f.mem, r.left, 1);
    (void)heddle_mem_pump(r.f.mem);
    CHECK_EQ(r.f.dev[0].nflying, 1); /* reads the home of `left` */
    FAKE_ASK(&r.f, &t, 0, {.unit = r.right, .mode = HEDDLE_W});
    CHECK(!t.is_ready); /* it shares bytes with that home */
    fake_settle(&r.f);
    CHECK(t.is_ready);
    fake_fill(&t, 0, 2);
    heddle_mem_end(r.f.mem, &t.req, HEDDLE_OK);
    CHECK_EQ(heddle_mem_valid(r.left), HOST); /* the prefetch was in vain */
    rig_close(&r);
}

TEST(a_transfer_of_an_old_version_makes_nothing_valid)
{
    struct fake_task t = {0};
    struct rig r;

    rig_open(&r);
    CHECK_EQ(fake_get(&r.f, 1, r.whole), 1);
    heddle_mem_prefetch(r.f.mem, r.whole, 2); /* from the host */
    (void)heddle_mem_pump(r.f.mem);
    CHECK_EQ(r.f.dev[1].nflying, 1);
    FAKE_ASK(&r.f, &t, 1, {.unit = r.whole, .mode = HEDDLE_RW});
    CHECK(t.is_ready); /* two other nodes */
    fake_fill(&t, 0, 5);
    heddle_mem_end(r.f.mem, &t.req, HEDDLE_OK);
    CHECK_EQ(heddle_mem_valid(r.whole), ONE);
    fake_land(&r.f.dev[1], 0);
    CHECK_EQ(heddle_mem_valid(r.whole), ONE);
    CHECK_EQ(fake_get(&r.f, 2, r.whole), 5);
    rig_close(&r);
}

TEST(an_old_version_that_comes_home_is_not_taken_for_the_new_one)
{
    struct fake_task t = {0};
    struct rig r;

    rig_open(&r);
    fake_put(&r.f, 1, r.whole, 5);
    CHECK_EQ(heddle_mem_go_home(r.f.mem), 1);
    (void)heddle_mem_pump(r.f.mem);
    FAKE_ASK(&r.f, &t, 2, {.unit = r.whole, .mode = HEDDLE_W});
    CHECK(t.is_ready);
    fake_fill(&t, 0, 6);
    heddle_mem_end(r.f.mem, &t.req, HEDDLE_OK);
    fake_land(&r.f.dev[0], 0);
    CHECK_EQ(heddle_mem_valid(r.whole), TWO);
    CHECK_EQ(fake_get(&r.f, 0, r.whole), 6);
    rig_close(&r);
}

TEST(a_reader_that_waits_for_an_old_version_looks_again)
{
    struct fake_task w = {0}, t = {0};
    struct rig r;

    rig_open(&r);
    heddle_mem_prefetch(r.f.mem, r.whole, 2);
    (void)heddle_mem_pump(r.f.mem);
    FAKE_ASK(&r.f, &w, 1, {.unit = r.whole, .mode = HEDDLE_W});
    CHECK(w.is_ready);
    fake_fill(&w, 0, 5);
    heddle_mem_end(r.f.mem, &w.req, HEDDLE_OK);
    FAKE_ASK(&r.f, &t, 2, {.unit = r.whole, .mode = HEDDLE_R});
    CHECK(!t.is_ready);
    fake_settle(&r.f);
    CHECK(t.is_ready);
    CHECK_EQ(fake_value(&t, 0), 5);
    heddle_mem_end(r.f.mem, &t.req, HEDDLE_OK);
    rig_close(&r);
}

TEST(nothing_moves_while_it_is_written)
{
    struct fake_task t = {0};
    struct rig r;

    rig_open(&r);
    rig_views(&r);
    FAKE_ASK(&r.f, &t, 1, {.unit = r.left, .mode = HEDDLE_W});
    CHECK(t.is_ready);
    heddle_mem_prefetch(r.f.mem, r.left, 2);
    heddle_mem_prefetch(r.f.mem, r.whole, 2);
    heddle_mem_evict(r.f.mem, r.left);
    CHECK_EQ(heddle_mem_go_home(r.f.mem), 0);
    fake_settle(&r.f);
    CHECK_EQ(r.f.dev[0].ncopies + r.f.dev[1].ncopies, 0);
    fake_fill(&t, 0, 3);
    heddle_mem_end(r.f.mem, &t.req, HEDDLE_OK);
    heddle_mem_evict(r.f.mem, r.left);
    fake_settle(&r.f);
    CHECK_EQ(r.data[16], 3);
    rig_close(&r);
}

TEST(what_the_program_has_is_not_prefetched)
{
    struct fake_task t = {0};
    struct rig r;

    rig_open(&r);
    FAKE_ASK(&r.f, &t, 0, {.unit = r.whole, .mode = HEDDLE_RW});
    CHECK(t.is_ready);
    heddle_mem_hand_out(r.f.mem, &t.req);
    heddle_mem_prefetch(r.f.mem, r.whole, 1);
    fake_settle(&r.f);
    CHECK_EQ(heddle_mem_valid(r.whole), HOST);
    fake_fill(&t, 0, 4);
    heddle_mem_end(r.f.mem, &t.req, HEDDLE_OK);
    heddle_mem_prefetch(r.f.mem, r.whole, 1);
    fake_settle(&r.f);
    CHECK_EQ(heddle_mem_valid(r.whole), HOST | ONE);
    CHECK_EQ(r.f.moved[HEDDLE_MEM_PREFETCH], 1);
    CHECK_EQ(fake_get(&r.f, 1, r.whole), 4);
    rig_close(&r);
}

TEST(a_promised_operand_is_taken_as_it_is)
{
    struct fake_task first = {0}, second = {0};
    struct rig r;

    rig_open(&r);
    FAKE_ASK(&r.f, &first, 1, {.unit = r.whole, .mode = HEDDLE_W});
    CHECK(first.is_ready);
    FAKE_ASK(&r.f, &second, 1, {.unit = r.whole, .mode = HEDDLE_RW, .is_promised = true});
    CHECK(second.is_ready); /* the copy is not valid yet; the first task makes it so */
    CHECK_EQ(heddle_mem_ptr(&first.req, 0) == heddle_mem_ptr(&second.req, 0), 1);
    fake_fill(&first, 0, 5);
    heddle_mem_end(r.f.mem, &first.req, HEDDLE_OK);
    CHECK_EQ(fake_value(&second, 0), 5);
    fake_fill(&second, 0, 6);
    heddle_mem_end(r.f.mem, &second.req, HEDDLE_OK);
    CHECK_EQ(fake_get(&r.f, 0, r.whole), 6);
    /* Without a writer a promised operand is like any other. */
    FAKE_ASK(&r.f, &second, 2, {.unit = r.whole, .mode = HEDDLE_R, .is_promised = true});
    CHECK(!second.is_ready);
    fake_settle(&r.f);
    CHECK_EQ(fake_value(&second, 0), 6);
    heddle_mem_end(r.f.mem, &second.req, HEDDLE_OK);
    rig_close(&r);
}

TEST(keeps_leaves_another_copy)
{
    struct fake_task t = {.req = {.keeps = true}};
    struct rig r;

    rig_open(&r);
    fake_put(&r.f, 1, r.whole, 5);
    FAKE_ASK(&r.f, &t, 1, {.unit = r.whole, .mode = HEDDLE_RW});
    CHECK(!t.is_ready);
    fake_settle(&r.f);
    CHECK(t.is_ready);
    CHECK_EQ(heddle_mem_valid(r.whole), HOST | ONE);
    fake_fill(&t, 0, 9);
    heddle_mem_end(r.f.mem, &t.req, HEDDLE_ETASK);
    CHECK_EQ(fake_get(&r.f, 1, r.whole), 5); /* tried again from the other one */
    rig_close(&r);
}

/* --- the end of a handle, and of a wait --------------------------------------------- */

TEST(the_last_request_waits_for_every_transfer)
{
    struct fake_task t = {.req = {.is_last = true, .is_forced = true}};
    uint64_t before;
    struct rig r;

    rig_open(&r);
    fake_put(&r.f, 1, r.whole, 5);
    heddle_mem_prefetch(r.f.mem, r.whole, 2);
    (void)heddle_mem_pump(r.f.mem);
    CHECK(!heddle_mem_may_forget(r.f.mem, r.whole)); /* it is under way */
    FAKE_ASK(&r.f, &t, 0, {.unit = r.whole, .mode = HEDDLE_R});
    CHECK(!t.is_ready);
    fake_settle(&r.f);
    CHECK(t.is_ready);
    CHECK_EQ(r.data[0], 5); /* the user's memory has the last value */
    heddle_mem_end(r.f.mem, &t.req, HEDDLE_OK);
    CHECK(heddle_mem_may_forget(r.f.mem, r.whole));
    before = r.f.moved[HEDDLE_MEM_PREFETCH];
    heddle_mem_prefetch(r.f.mem, r.whole, 2); /* too late: nothing moves */
    heddle_mem_evict(r.f.mem, r.whole);
    fake_settle(&r.f);
    CHECK_EQ(r.f.moved[HEDDLE_MEM_PREFETCH], before);
    rig_close(&r);
}

TEST(data_go_home_and_stay_there)
{
    struct rig r;

    rig_open(&r);
    fake_put(&r.f, 1, r.whole, 5);
    CHECK_EQ(heddle_mem_go_home(r.f.mem), 1);
    CHECK(!heddle_mem_is_idle(r.f.mem));
    fake_settle(&r.f);
    CHECK_EQ(heddle_mem_go_home(r.f.mem), 0);
    CHECK_EQ(heddle_mem_valid(r.whole), HOST | ONE);
    heddle_mem_give_home(r.f.mem);
    CHECK_EQ(heddle_mem_valid(r.whole), HOST);
    r.data[0] = r.data[1] = 77; /* the program may write now */
    for (size_t i = 0; i < FAKE_N; i++)
        r.data[i] = 77;
    CHECK_EQ(fake_get(&r.f, 1, r.whole), 77);
    heddle_mem_pin(r.f.mem, r.whole, 1, true);
    heddle_mem_give_home(r.f.mem);
    CHECK_EQ(heddle_mem_valid(r.whole), HOST | ONE); /* the user wants it there */
    heddle_mem_pin(r.f.mem, r.whole, 1, false);
    rig_close(&r);
}

TEST(homing_sends_data_after_their_last_use)
{
    struct fake_task t = {0};
    struct rig r;

    rig_open(&r);
    heddle_mem_will_use(r.f.mem, r.whole, 1, NULL, HEDDLE_W);
    heddle_mem_will_use(r.f.mem, r.whole, 2, NULL, HEDDLE_RW);
    heddle_mem_set_homing(r.f.mem, true);
    for (uint64_t task = 1; task <= 2; task++) {
        t.req.user = task;
        FAKE_ASK(&r.f, &t, 1, {.unit = r.whole, .mode = HEDDLE_RW});
        fake_settle(&r.f);
        CHECK(t.is_ready);
        fake_fill(&t, 0, (int32_t)task);
        heddle_mem_end(r.f.mem, &t.req, HEDDLE_OK);
        fake_settle(&r.f);
        CHECK_EQ(heddle_mem_valid(r.whole), task == 1 ? ONE : HOST | ONE);
    }
    heddle_mem_set_homing(r.f.mem, false);
    CHECK_EQ(r.data[5], 2);
    rig_close(&r);
}

TEST_MAIN(a_unit_without_a_record_is_at_home, a_reader_adds_a_copy, a_writer_leaves_one_copy,
          an_update_reads_first, a_failed_task_leaves_the_other_copies,
          what_is_spoilt_cannot_be_read_until_restored, a_task_on_the_host_tells_before_its_end,
          views_meet_on_the_host, a_writer_makes_its_neighbours_void,
          an_overwriter_does_not_wait_for_what_is_inside, a_strided_view_is_compact_elsewhere,
          a_writer_waits_for_transfers_of_its_copy,
          a_transfer_of_an_old_version_makes_nothing_valid,
          an_old_version_that_comes_home_is_not_taken_for_the_new_one,
          a_reader_that_waits_for_an_old_version_looks_again, nothing_moves_while_it_is_written,
          what_the_program_has_is_not_prefetched, a_promised_operand_is_taken_as_it_is,
          keeps_leaves_another_copy, the_last_request_waits_for_every_transfer,
          data_go_home_and_stay_there, homing_sends_data_after_their_last_use)
