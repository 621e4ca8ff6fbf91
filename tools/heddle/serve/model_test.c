/* SPDX-License-Identifier: BSD-3-Clause */
/* model: when batches begin, in which order, and what they take along, without a server. */
#include "serve/model.h"

#include "base/clock.h"
#include "tests/test.h"

enum { JOBS = 32 };

/* The backend keeps its batches until they are ended by the test. */
struct rig {
    struct serve_graveyard graveyard;
    struct serve_model *m;
    size_t nbatches;
    struct {
        size_t n;
        uint64_t number[JOBS]; /* of its jobs, in the order of submission */
        void *batch;
        void (*ended)(void *batch, heddle_status st, const char *why);
    } batch[JOBS];
    struct serve_job job[JOBS];
    struct kserve_tensor in[JOBS];
    heddle_status st[JOBS];
    size_t njobs, ndone;
};

static void rig_run(void *self, struct serve_job *const *jobs, size_t n,
                    void (*ended)(void *batch, heddle_status st, const char *why), void *batch)
{
    struct rig *r = self;

    CHECK(r->nbatches < JOBS && n <= JOBS);
    r->batch[r->nbatches].n = n;
    for (size_t i = 0; i < n; i++)
        r->batch[r->nbatches].number[i] = (uint64_t)(jobs[i] - r->job);
    r->batch[r->nbatches].batch = batch;
    r->batch[r->nbatches++].ended = ended;
}

static void rig_destroy(void *self)
{
    (void)self;
}

static const struct serve_backend backend = {.run = rig_run, .destroy = rig_destroy};

static void done(struct serve_job *job, heddle_status st, const char *why)
{
    struct rig *r = job->user;

    CHECK(st == HEDDLE_OK || why != NULL);
    r->st[job - r->job] = st;
    r->ndone++;
    model_unref(job->model);
}

static void rig_open(struct rig *r, size_t max_eager)
{
    const struct serve_model_opts o = {
        .name = "m", .max_queue = 16, .max_batch = 4, .max_running = 3, .max_eager = max_eager};

    memset(r, 0, sizeof(*r));
    CHECK_EQ(pthread_mutex_init(&r->graveyard.lock, NULL), 0);
    CHECK_EQ(pthread_cond_init(&r->graveyard.cond, NULL), 0);
    r->m = model_create(&o, &backend, r, &r->graveyard);
    CHECK(r->m != NULL);
    r->m->nin = r->m->nout = 1;
    r->m->can_batch = true;
    r->m->in[0] = (struct serve_port){.name = "x", .type = KSERVE_FP32, .ndim = 1, .dim = {-1}};
}

static void rig_close(struct rig *r)
{
    for (size_t i = 0; i < r->nbatches; i++) {
        if (r->batch[i].batch != NULL)
            r->batch[i].ended(r->batch[i].batch, HEDDLE_OK, NULL);
    }
    CHECK_EQ(r->ndone, r->njobs);
    model_unref(r->m);
    CHECK(r->graveyard.dead == r->m);
    model_bury(r->m);
    pthread_cond_destroy(&r->graveyard.cond);
    pthread_mutex_destroy(&r->graveyard.lock);
}

static void end_batch(struct rig *r, size_t i)
{
    void *batch = r->batch[i].batch;

    r->batch[i].batch = NULL;
    r->batch[i].ended(batch, HEDDLE_OK, NULL);
}

/* A job of so many rows. */
static struct serve_job *make(struct rig *r, int64_t rows, uint64_t priority, uint64_t deadline)
{
    struct serve_job *job = &r->job[r->njobs];

    r->in[r->njobs] = (struct kserve_tensor){.ndim = 1, .dim = {rows}, .count = (size_t)rows};
    *job = (struct serve_job){.request = {.priority = priority},
                              .model = model_ref(r->m),
                              .in = {&r->in[r->njobs]},
                              .arrived_ns = heddle_clock_ns(),
                              .deadline_ns = deadline,
                              .done = done,
                              .user = r};
    r->njobs++;
    return job;
}

static void submit(struct rig *r, int64_t rows, uint64_t priority, uint64_t deadline)
{
    CHECK_OK(model_submit(make(r, rows, priority, deadline)));
}

/* One batch needs no reason; the next ones do: to be full. */
TEST(eager_then_full)
{
    struct rig r;

    rig_open(&r, 1);
    submit(&r, 1, 0, 0);
    CHECK_EQ(r.nbatches, 1);
    for (int i = 0; i < 3; i++)
        submit(&r, 1, 0, 0);
    CHECK_EQ(r.nbatches, 1);
    submit(&r, 1, 0, 0);
    CHECK_EQ(r.nbatches, 2);
    CHECK_EQ(r.batch[1].n, 4);
    submit(&r, 4, 0, 0); /* full alone */
    CHECK_EQ(r.nbatches, 3);
    submit(&r, 4, 0, 0); /* but no more than three run */
    CHECK_EQ(r.nbatches, 3);
    submit(&r, 1, 0, 0);
    end_batch(&r, 0);
    CHECK_EQ(r.nbatches, 4);
    end_batch(&r, 1);
    CHECK_EQ(r.nbatches, 4); /* two run, one row waits */
    end_batch(&r, 2);
    end_batch(&r, 3);
    CHECK_EQ(r.nbatches, 5); /* the machine would be idle */
    rig_close(&r);
}

/* 0 is as before: all of them are eager. */
TEST(eager_is_all_by_default)
{
    struct rig r;

    rig_open(&r, 0);
    for (size_t i = 0; i < 3; i++) {
        submit(&r, 1, 0, 0);
        CHECK_EQ(r.nbatches, i + 1);
    }
    submit(&r, 1, 0, 0);
    CHECK_EQ(r.nbatches, 3);
    rig_close(&r);
}

/* A job that cannot wait any longer takes others along; one with time waits. */
TEST(deadlines_make_batches_begin)
{
    const uint64_t second = HEDDLE_NS_PER_S;
    uint64_t next;
    struct rig r;

    rig_open(&r, 1);
    submit(&r, 1, 0, 0);
    submit(&r, 1, 0, 0);
    submit(&r, 1, 0, heddle_clock_ns() + 3600 * second);
    CHECK_EQ(r.nbatches, 1);
    next = model_expire(r.m, heddle_clock_ns());
    CHECK(next > heddle_clock_ns() + 3500 * second); /* when it becomes urgent */
    CHECK(next < heddle_clock_ns() + 3600 * second);
    /* Batches take long, says experience: ten seconds are not enough any more. */
    serve_pace_add(&r.m->pace, 4, 20 * second);
    submit(&r, 1, 0, heddle_clock_ns() + 10 * second);
    CHECK_EQ(r.nbatches, 2);
    CHECK_EQ(r.batch[1].n, 3);
    CHECK_EQ(r.batch[1].number[0], 3); /* the shortest deadline goes first */
    CHECK_EQ(model_expire(r.m, heddle_clock_ns()), 0);
    rig_close(&r);
}

TEST(late_jobs_never_begin)
{
    struct rig r;

    rig_open(&r, 1);
    submit(&r, 1, 0, 0);
    submit(&r, 1, 0, heddle_clock_ns() + 3600 * HEDDLE_NS_PER_S);
    CHECK_EQ(model_expire(r.m, heddle_clock_ns() + 3601 * HEDDLE_NS_PER_S), 0);
    CHECK_EQ(r.nbatches, 1);
    CHECK_EQ(r.ndone, 1);
    CHECK_STATUS(r.st[1], HEDDLE_ETIMEDOUT);
    rig_close(&r);
}

TEST(priorities_go_first)
{
    struct rig r;

    rig_open(&r, 1);
    submit(&r, 4, 0, 0);
    submit(&r, 2, 0, 0); /* without one: last */
    submit(&r, 1, 2, 0);
    CHECK_EQ(r.nbatches, 1);
    submit(&r, 1, 1, 0); /* fills the batch */
    CHECK_EQ(r.nbatches, 2);
    CHECK_EQ(r.batch[1].number[0], 3);
    CHECK_EQ(r.batch[1].number[1], 2);
    CHECK_EQ(r.batch[1].number[2], 1);
    rig_close(&r);
}

/* model_queue() begins full batches alone, model_pump() the rest. */
TEST(queue_then_pump)
{
    struct rig r;

    rig_open(&r, 2);
    CHECK_OK(model_queue(make(&r, 3, 0, 0)));
    CHECK_EQ(r.nbatches, 0);
    CHECK_OK(model_queue(make(&r, 1, 0, 0)));
    CHECK_EQ(r.nbatches, 1);
    CHECK_OK(model_queue(make(&r, 1, 0, 0)));
    CHECK_EQ(r.nbatches, 1);
    model_pump(r.m);
    CHECK_EQ(r.nbatches, 2);
    rig_close(&r);
}

/* Jobs of no rows fill no batch, and are answered all the same; a full queue refuses. */
TEST(no_rows_and_full_queues)
{
    struct rig r;

    rig_open(&r, 1);
    submit(&r, 0, 0, 0);
    for (int i = 0; i < 16; i++)
        submit(&r, 0, 0, 0);
    CHECK_STATUS(model_submit(make(&r, 1, 0, 0)), HEDDLE_EOVERFLOW);
    model_unref(r.m); /* that of the job which was refused */
    r.njobs--;
    end_batch(&r, 0);
    CHECK_EQ(r.nbatches, 2);
    CHECK_EQ(r.batch[1].n, 4);
    rig_close(&r);
}

TEST_MAIN(eager_then_full, eager_is_all_by_default, deadlines_make_batches_begin,
          late_jobs_never_begin, priorities_go_first, queue_then_pump, no_rows_and_full_queues)
