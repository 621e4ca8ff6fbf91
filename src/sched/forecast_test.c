/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Forecasts of small graphs where the answer is known, and of random ones: the
 * schedule can be carried out, its length is that of the schedule it stands for, its
 * ranks are longest ways. Ranks of a window against a naive computation.
 */
#include "base/faulty_test.h"
#include "base/rng.h"
#include "sched/forecast.h"
#include "sched/win.h"
#include "tests/test.h"

static void forecast_start(struct heddle_forecast *p, unsigned ntasks, unsigned nedges)
{
    memset(p, 0, sizeof(*p));
    CHECK_OK(heddle_forecast_reserve(p, ntasks, nedges));
    p->ntypes = 2;
    p->nworkers[0] = 4;
    p->nworkers[1] = 1;
    p->nsorts = 1;
    p->ns[0][0] = 10;
    p->ns[0][1] = 1;
    p->ntasks = ntasks;
    for (unsigned t = 0; t < ntasks; t++) {
        p->sort[t] = 0;
        p->fixed[t] = -1;
        p->left[t] = -1;
        p->pred_end[t] = 0;
    }
    p->pred_end[ntasks] = 0;
}

/* 4 slow workers do 4/10 of what the fast one does: of 140 tasks, 40. */
TEST(independent_tasks_are_shared)
{
    struct heddle_forecast p;
    unsigned slow = 0;

    forecast_start(&p, 140, 0);
    CHECK(heddle_forecast_make(&p, 20));
    for (unsigned t = 0; t < 140; t++)
        slow += p.type[t] == 0;
    CHECK(slow >= 36 && slow <= 40);
    CHECK(p.length >= 100 && p.length <= 104);
    heddle_forecast_fini(&p);
}

TEST(a_chain_stays_on_the_fast_type)
{
    struct heddle_forecast p;

    forecast_start(&p, 50, 49);
    for (unsigned t = 1; t < 50; t++) {
        p.pred[t - 1] = t - 1;
        p.pred_end[t + 1] = t;
    }
    CHECK(heddle_forecast_make(&p, 20));
    for (unsigned t = 0; t < 50; t++) {
        CHECK_EQ(p.type[t], 1);
        CHECK(p.rank[t] == 50 - t);
    }
    CHECK(p.length == 50);
    heddle_forecast_fini(&p);
}

TEST(what_runs_and_what_cannot)
{
    struct heddle_forecast p;

    forecast_start(&p, 3, 2);
    p.left[0] = 7; /* runs on the fast one, 7 to go */
    p.fixed[0] = 1;
    p.pred[0] = p.pred[1] = 0;
    p.pred_end[2] = 1;
    p.pred_end[3] = 2;
    CHECK(heddle_forecast_make(&p, 5));
    CHECK(p.length == 9);
    p.ns[0][0] = p.ns[0][1] = INFINITY;
    CHECK(!heddle_forecast_make(&p, 5));
    p.ns[0][0] = 10; /* the fast type cannot: all on the slow one */
    CHECK(heddle_forecast_make(&p, 5));
    CHECK_EQ(p.type[1], 0);
    CHECK_EQ(p.type[2], 0);
    CHECK(p.length == 17);
    heddle_forecast_fini(&p);
}

/* Three types, random graphs: feasible, no shorter than the bounds. */
TEST(random_graphs)
{
    struct heddle_rng rng;

    heddle_rng_seed(&rng, test_seed());
    for (unsigned round = 0; round < 200; round++) {
        const unsigned n = 1 + heddle_rng_below32(&rng, 150);
        double least = 0, path = 0, *head = calloc(n, sizeof(*head));
        struct heddle_forecast p;
        unsigned e = 0;

        CHECK(head != NULL);
        forecast_start(&p, n, 4 * n);
        p.ntypes = 3;
        p.nworkers[2] = heddle_rng_below32(&rng, 3);
        p.nsorts = 1 + heddle_rng_below32(&rng, 6);
        for (unsigned k = 0; k < p.nsorts; k++)
            for (unsigned r = 0; r < 3; r++)
                p.ns[k][r] = r != 0 && heddle_rng_below32(&rng, 4) == 0
                                 ? INFINITY
                                 : 1 + heddle_rng_below32(&rng, 50);
        for (unsigned t = 0; t < n; t++) {
            p.sort[t] = (uint8_t)heddle_rng_below32(&rng, p.nsorts);
            p.pred_end[t] = e;
            for (unsigned i = 0; t > 0 && i < heddle_rng_below32(&rng, 5) && e < 4 * n; i++)
                p.pred[e++] = heddle_rng_below32(&rng, t);
            p.pred_end[t + 1] = e;
        }
        if (p.nworkers[2] == 0) /* nobody there: nothing may go there */
            for (unsigned k = 0; k < p.nsorts; k++)
                p.ns[k][2] = INFINITY;
        CHECK(heddle_forecast_make(&p, 12));
        for (unsigned t = 0; t < n; t++) {
            const double ns = p.ns[p.sort[t]][p.type[t]];
            double fast = INFINITY;

            CHECK(ns < INFINITY);
            for (unsigned r = 0; r < 3; r++)
                fast = p.ns[p.sort[t]][r] < fast ? p.ns[p.sort[t]][r] : fast;
            for (unsigned i = p.pred_end[t]; i < p.pred_end[t + 1]; i++) {
                const double h = head[p.pred[i]];

                head[t] = h > head[t] ? h : head[t];
                CHECK(p.rank[p.pred[i]] > p.rank[t]);
            }
            head[t] += fast;
            path = head[t] > path ? head[t] : path;
            least += fast;
            CHECK(p.own[t] > 0 && p.rank[t] >= (double)p.own[t] * 0.999);
        }
        CHECK(p.length >= path - 1e-9);
        CHECK(p.length >= least / (5 + p.nworkers[2]) - 1e-9);
        heddle_forecast_fini(&p);
        free(head);
    }
}

TEST(no_memory)
{
    struct heddle_forecast p = {.ntypes = 0};
    struct faulty f;

    faulty_init(&f, 1);
    p.alloc = &f.a;
    CHECK_EQ(heddle_forecast_reserve(&p, 10, 10), HEDDLE_ENOMEM);
    CHECK_OK(heddle_forecast_reserve(&p, 10, 10));
    CHECK_OK(heddle_forecast_reserve(&p, 5, 5)); /* it fits */
    faulty_init(&f, 0);
    f.nlive = 1;
    CHECK_OK(heddle_forecast_reserve(&p, 20, 5));
    heddle_forecast_fini(&p);
    CHECK_EQ(f.nlive, 0);
}

/* --- ranks of a window -----------------------------------------------------*/

struct one {
    struct heddle_sched_task t;
    unsigned sort, npred, pred[12];
    bool has_ended;
};

static double one_cost(void *view, const struct heddle_sched_task *t, unsigned cls, double *sure)
{
    (void)view;
    if (sure != NULL)
        *sure = 1;
    return (cls + 1) * (10 + ((const struct one *)(const void *)t)->sort);
}

static unsigned one_sort(void *view, const struct heddle_sched_task *t)
{
    (void)view;
    return ((const struct one *)(const void *)t)->sort;
}

static void one_bytes(void *view, const struct heddle_sched_task *t, unsigned cls, uint64_t *read,
                      uint64_t *written, uint64_t *present)
{
    (void)view;
    (void)t;
    (void)cls;
    *read = *written = *present = 0;
}

static uint64_t one_now(void *view)
{
    (void)view;
    return 0;
}

/* Tasks come and go; after a full walk every rank is the longest way. */
TEST(ranks_are_longest_ways)
{
    enum { N = 3000 };
    static const struct heddle_sched_view view = {
        .cost = one_cost, .bytes = one_bytes, .sort = one_sort, .now_ns = one_now};
    static const struct heddle_sched_class cls[2] = {
        {.name = "a", .nworkers = 1}, {.name = "b", .type = 1, .first = 1, .nworkers = 1}};
    static const unsigned class_of[2] = {0, 1};
    const struct heddle_sched_env env = {
        .nworkers = 2, .cls = cls, .ncls = 2, .ntypes = 2, .class_of = class_of, .view = &view};
    struct heddle_win *w = calloc(1, sizeof(*w));
    struct one *task = calloc(N, sizeof(*task));
    double *rank = calloc(N, sizeof(*rank));
    struct heddle_rng rng;
    unsigned first = 0;

    CHECK(w != NULL && task != NULL && rank != NULL);
    heddle_rng_seed(&rng, test_seed());
    CHECK_OK(heddle_win_init(w, &env));
    for (unsigned i = 0; i < N; i++) {
        struct heddle_sched_task *pred[12];
        struct one *x = &task[i];

        x->sort = heddle_rng_below32(&rng, 90);
        for (unsigned k = heddle_rng_below32(&rng, 12); k-- > 0 && i > first;) {
            const unsigned p = first + heddle_rng_below32(&rng, i - first);

            pred[x->npred] = &task[p].t;
            x->pred[x->npred++] = p;
        }
        CHECK(heddle_win_submitted(w, &x->t, pred, x->npred) != NULL);
        if (i % 7 == 0)
            heddle_win_rank(w);
        heddle_spin_unlock(&w->lock);
        while (i > 2000 && first + 1500 < i) { /* the oldest end */
            heddle_win_ended(w, &task[first++].t, 0, 1);
            heddle_spin_unlock(&w->lock);
        }
    }
    w->swept_all = w->swept = 0; /* a walk over everything */
    heddle_win_rank(w);
    CHECK_EQ(w->nlive, N - first);
    for (unsigned i = N; i-- > first;) {
        rank[i] += 10 + task[i].sort;
        CHECK(heddle_win_rec(w, &task[i].t)->rank == rank[i]);
        for (unsigned k = 0; k < task[i].npred; k++)
            if (rank[task[i].pred[k]] < rank[i])
                rank[task[i].pred[k]] = rank[i];
    }
    heddle_win_fini(w);
    free(w);
    free(task);
    free(rank);
}

TEST_MAIN(independent_tasks_are_shared, a_chain_stays_on_the_fast_type, what_runs_and_what_cannot,
          random_graphs, no_memory, ranks_are_longest_ways)
