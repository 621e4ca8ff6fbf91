/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What drivers with regions promise: a graph runs like its launches, in the order of its
 * edges; it is brought up to date; one that could not be is what it was, or refuses.
 */
#include "drive_buffers.h"

static void web_apply(const struct web *w, struct buffers *b)
{
    for (unsigned i = 0; i < w->region.n; i++)
        if (!w->is_empty[i])
            apply(b->want[w->at[i]], w->job[i].add);
}

/* Twice, with a job before, between and behind, and no waiting. */
static void web_replay(struct web *w, struct buffers *b, void *graph, unsigned stream)
{
    struct rig *r = b->r;
    struct probe_op p[5];
    struct job j[3];

    for (unsigned i = 0; i < 5; i++) {
        p[i] = op_make(r);
        if (i % 2 == 1) {
            CHECK_OK(r->drv->replay(r->dev, graph, stream, &p[i].op));
            web_apply(w, b);
        } else {
            j[i / 2] = (struct job){
                .r = r, .stream = stream, .ptr = b->ptr[i / 2], .add = 7 * i, .bytes = BYTES};
            CHECK_OK(start_job(&j[i / 2], &p[i]));
            apply(b->want[i / 2], 7 * i);
        }
        CHECK_EQ(p[i].ndone, 0);
    }
    for (unsigned i = 0; i < 5; i++) {
        op_wait(&p[i]);
        CHECK_OK(p[i].st);
    }
    buffers_check(b);
}

static void check_regions(struct rig *r)
{
    static const unsigned sizes[] = {1, 2, 7, JOBS};
    static struct web w;
    struct buffers b;
    void *graph = NULL, *before;

    if (r->drv->region == NULL)
        return;
    buffers_init(&b, r, 3);
    for (unsigned k = 0; k < 4; k++) {
        /* New ones, the same again with other arguments, other shapes. */
        for (unsigned turn = 0; turn < 6; turn++) {
            const unsigned s = turn % r->info.nstreams;

            web_init(&w, &b, sizes[k], test_seed() + k + turn / 4, turn, s);
            before = graph;
            w.fail_at = sizes[k] / 2;
            CHECK_STATUS(r->drv->region(r->dev, &w.region, s, &graph), HEDDLE_ETASK);
            CHECK(graph == before);
            w.fail_at = JOBS;
            CHECK_OK(r->drv->region(r->dev, &w.region, s, &graph));
            CHECK(graph != NULL);
            web_replay(&w, &b, graph, (turn + k) % r->info.nstreams);
        }
        if (k % 2 == 1) {
            r->drv->region_free(r->dev, graph);
            graph = NULL;
        }
    }
    buffers_fini(&b);
}

TEST(regions)
{
    for_each_device(check_regions);
}

/* A region that cannot be brought up to date still does what it did. */
static void check_old_region(struct rig *r)
{
    static struct web old, new;
    void *graph = NULL, *before;
    struct buffers b;

    if (r->drv->region == NULL)
        return;
    buffers_init(&b, r, 4);
    web_init(&old, &b, 20, 1, 0, 0);
    CHECK_OK(r->drv->region(r->dev, &old.region, 0, &graph));
    before = graph;
    for (unsigned k = 0; k < 20; k += 4) {
        web_init(&new, &b, 20, 1, 1, 0);
        new.fail_at = k;
        CHECK_STATUS(r->drv->region(r->dev, &new.region, 0, &graph), HEDDLE_ETASK);
        CHECK(graph == before);
        web_replay(&old, &b, graph, 0);
    }
    r->drv->region_free(r->dev, graph);
    buffers_fini(&b);
}

TEST(regions_that_fail)
{
    for_each_device(check_old_region);
}

/* order() behind a replay, and a replay behind something. */
static void check_region_order(struct rig *r)
{
    const struct heddle_runs runs = dense(BYTES);
    const unsigned copies = r->info.nstreams;
    unsigned char got[BYTES], in[BYTES];
    struct probe_op p[3];
    static struct web w;
    struct buffers b;
    void *graph = NULL;

    if (r->drv->region == NULL || r->drv->order == NULL)
        return;
    buffers_init(&b, r, 5);
    web_init(&w, &b, JOBS, 9, 0, 0);
    CHECK_OK(r->drv->region(r->dev, &w.region, 0, &graph));
    for (unsigned k = 0; k < 20; k++) {
        const unsigned s = k % r->info.nstreams;

        for (int i = 0; i < 3; i++)
            p[i] = op_make(r);
        fill(in, BYTES, k);
        memcpy(b.want[0], in, BYTES);
        CHECK_OK(start_copy(r, HEDDLE_COPY_IN, b.ptr[0], in, &runs, copies, &p[0]));
        CHECK_OK(r->drv->order(r->dev, s, &p[0].op));
        CHECK_OK(r->drv->replay(r->dev, graph, s, &p[1].op));
        CHECK_OK(r->drv->order(r->dev, copies, &p[1].op));
        CHECK_OK(start_copy(r, HEDDLE_COPY_OUT, b.ptr[0], got, &runs, copies, &p[2]));
        web_apply(&w, &b);
        for (int i = 0; i < 3; i++) {
            op_wait(&p[i]);
            CHECK_OK(p[i].st);
        }
        CHECK_EQ(memcmp(got, b.want[0], BYTES), 0);
    }
    buffers_check(&b);
    r->drv->region_free(r->dev, graph);
    buffers_fini(&b);
}

TEST(regions_in_order)
{
    for_each_device(check_region_order);
}

TEST_MAIN(regions, regions_that_fail, regions_in_order)
