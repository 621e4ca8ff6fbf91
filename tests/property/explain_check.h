/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TESTS_EXPLAIN_CHECK_H
#define HEDDLE_TESTS_EXPLAIN_CHECK_H

/*
 * What must hold for the explanation of every log, whatever is in it. The checks
 * recompute from the log what they compare with.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "heddle/explain.h"
#include "heddle/trace.h"
#include "log_graph_check.h"
#include "tests/test.h"

/* INT64_MAX when it does not fit: then the totals say so too. */
static inline int64_t explain_product(int64_t a, uint64_t n)
{
    int64_t r = 0;

    for (; n > 0; n--)
        if (__builtin_add_overflow(r, a, &r))
            return INT64_MAX;
    return r;
}

static inline void explain_check_lanes(const struct heddle_log_view *v,
                                       const struct heddle_explain *x,
                                       const struct heddle_log_summary *s)
{
    uint64_t nworkers = 0;

    CHECK_EQ(x->nlanes, v->nlanes);
    for (size_t l = 0; l < v->nlanes; l++) {
        const struct heddle_explain_lane *e = &x->lanes[l];
        const bool is_worker = v->lanes[l].kind == HEDDLE_LOG_WORKER ||
                               v->lanes[l].kind == HEDDLE_LOG_DEVICE || s->lanes[l].ntasks > 0;
        int64_t sum = 0;

        CHECK_EQ(e->is_worker, is_worker);
        nworkers += is_worker;
        for (unsigned c = 0; c < HEDDLE_NCAUSES; c++) {
            CHECK(e->ns[c] >= 0);
            CHECK(e->ns[c] <= x->makespan_ns - sum);
            sum += e->ns[c];
        }
        CHECK_EQ(sum, is_worker ? x->makespan_ns : 0);
        CHECK_EQ(e->ns[HEDDLE_CAUSE_WORK] + e->ns[HEDDLE_CAUSE_WASTE],
                 is_worker ? s->lanes[l].busy_ns : 0);
    }
    CHECK_EQ(x->nworkers, nworkers);
    CHECK_EQ(x->nworkers, s->nworkers);
}

/* The gaps are what is left between the tasks, and they are what ns[] says. */
static inline void explain_check_gaps(const struct heddle_log_view *v,
                                      const struct heddle_explain *x)
{
    int64_t(*ns)[HEDDLE_NCAUSES] = calloc(v->nlanes + 1, sizeof(*ns));
    int64_t *cover = calloc(v->nlanes + 1, sizeof(*cover));
    size_t *at = calloc(v->nlanes + 1, sizeof(*at));

    CHECK(ns != NULL && cover != NULL && at != NULL);
    for (size_t i = 0; i < x->ngaps; i++) {
        const struct heddle_explain_gap *g = &x->gaps[i];

        CHECK(g->lane < v->nlanes && x->lanes[g->lane].is_worker);
        CHECK(g->cause > HEDDLE_CAUSE_WASTE && g->cause < HEDDLE_NCAUSES);
        CHECK(g->start_ns < g->end_ns);
        CHECK(g->start_ns >= x->first_ns && g->end_ns <= x->last_ns);
        if (i > 0 && x->gaps[i - 1].lane == g->lane)
            CHECK(g->start_ns >= x->gaps[i - 1].end_ns);
        else
            CHECK(i == 0 || x->gaps[i - 1].lane < g->lane);
        ns[g->lane][g->cause] += g->end_ns - g->start_ns;
        if (i == 0 || x->gaps[i - 1].lane != g->lane)
            at[g->lane] = i;
    }
    for (size_t l = 0; l < v->nlanes; l++)
        for (unsigned c = HEDDLE_CAUSE_DATA; c < HEDDLE_NCAUSES; c++)
            CHECK_EQ(ns[l][c], x->lanes[l].ns[c]);
    /* With the sums of a lane being the makespan, no gap overlapping a task is
     * the same as gaps and tasks being a partition. */
    for (size_t i = 0; i < v->ntasks; i++) {
        const struct heddle_log_task *t = &v->tasks[i];
        size_t *g;

        if (t->lane == HEDDLE_LOG_NO_LANE || t->end_ns <= t->start_ns)
            continue;
        g = &at[t->lane];
        while (*g < x->ngaps && x->gaps[*g].lane == t->lane && x->gaps[*g].end_ns <= t->start_ns)
            ++*g;
        if (*g < x->ngaps && x->gaps[*g].lane == t->lane)
            CHECK(x->gaps[*g].start_ns >= t->end_ns);
    }
    free(ns);
    free(cover);
    free(at);
}

static inline void explain_check_chain(const struct heddle_log_view *v,
                                       const struct heddle_explain *x)
{
    int64_t blame[HEDDLE_NBLAMES] = {0}, t = x->first_ns, sum = 0;

    for (size_t i = 0; i < x->nsteps; i++) {
        const struct heddle_explain_step *s = &x->steps[i];

        CHECK_EQ(s->start_ns, t);
        CHECK(s->end_ns > t);
        CHECK(s->task < v->ntasks || s->task == SIZE_MAX);
        CHECK(s->blame < HEDDLE_NBLAMES);
        if (s->blame == HEDDLE_BLAME_EXEC)
            CHECK(v->tasks[s->task].start_ns <= s->start_ns &&
                  v->tasks[s->task].end_ns >= s->end_ns);
        blame[s->blame] += s->end_ns - s->start_ns;
        t = s->end_ns;
    }
    CHECK_EQ(t, x->last_ns);
    for (unsigned b = 0; b < HEDDLE_NBLAMES; b++) {
        CHECK_EQ(blame[b], x->blame_ns[b]);
        sum += blame[b];
    }
    CHECK_EQ(sum, x->makespan_ns);
}

/* Both use a handle, so their order may follow from that. */
static inline bool explain_share(const heddle_log *log, uint64_t a, uint64_t b)
{
    const struct heddle_log_view *v = heddle_log_get_view(log);
    size_t first[2], last[2];

    heddle_log_find_accesses(log, a, &first[0], &last[0]);
    heddle_log_find_accesses(log, b, &first[1], &last[1]);
    for (size_t i = first[0]; i < last[0]; i++)
        for (size_t k = first[1]; k < last[1]; k++)
            if (v->accesses[i].handle == v->accesses[k].handle)
                return true;
    return false;
}

static inline void explain_check_path(const heddle_log *log, const struct heddle_log_view *v,
                                      const struct heddle_explain *x)
{
    int64_t sum = 0;

    CHECK(x->npath > 0 || v->ntasks == 0 || v->ndeps > 0); /* a cycle */
    for (size_t i = 0; i < x->npath; i++) {
        const struct heddle_log_task *t = &v->tasks[x->path[i]];
        size_t first, last;
        bool is_linked = i == 0 || explain_share(log, v->tasks[x->path[i - 1]].id, t->id);

        CHECK(x->path[i] < v->ntasks);
        if (t->lane != HEDDLE_LOG_NO_LANE &&
            __builtin_add_overflow(sum, t->end_ns - t->start_ns, &sum))
            sum = INT64_MAX;
        heddle_log_find_deps(log, t->id, &first, &last);
        for (; first < last; first++)
            is_linked = is_linked || v->deps[first].pred == v->tasks[x->path[i - 1]].id;
        CHECK(is_linked);
    }
    CHECK_EQ(sum, x->path_ns);
}

static inline void explain_check_curves(const heddle_log *log)
{
    static const uint32_t which[] = {0, 1, 256, UINT32_MAX};
    struct heddle_explain_curve *c;

    for (unsigned k = 0; k < HEDDLE_NCURVES; k++)
        for (unsigned w = 0; w < 4; w++) {
            double max = 0;

            CHECK_OK(heddle_explain_curve_create(log, (enum heddle_explain_curve_kind)k, which[w],
                                                 NULL, &c));
            for (size_t i = 0; i < c->n; i++) {
                CHECK(i == 0 || c->t_ns[i] > c->t_ns[i - 1]);
                CHECK(c->value[i] >= 0);
                max = c->value[i] > max ? c->value[i] : max;
            }
            CHECK(max == c->max);
            if (k <= HEDDLE_CURVE_SUBMITTED && c->n > 0)
                CHECK(c->value[c->n - 1] == 0);
            heddle_explain_curve_destroy(c);
        }
}

/* Returns the explanation; destroy it. */
static inline struct heddle_explain *explain_check(const heddle_log *log)
{
    const struct heddle_log_view *v = heddle_log_get_view(log);
    struct heddle_log_summary *s = NULL;
    struct heddle_explain *x = NULL;
    int64_t total = 0;

    CHECK_OK(heddle_log_summary_create(log, &s));
    CHECK_OK(heddle_explain_create(log, NULL, &x));
    CHECK_EQ(x->size, sizeof(*x));
    CHECK_EQ(x->first_ns, s->first_ns);
    CHECK_EQ(x->last_ns, s->last_ns);
    CHECK_EQ(x->makespan_ns, s->makespan_ns);
    explain_check_lanes(v, x, s);
    for (unsigned c = 0; c < HEDDLE_NCAUSES; c++)
        if (__builtin_add_overflow(total, x->total_ns[c], &total))
            total = INT64_MAX;
    CHECK_EQ(total, explain_product(x->makespan_ns, x->nworkers));
    explain_check_gaps(v, x);
    explain_check_chain(v, x);
    explain_check_path(log, v, x);
    CHECK_EQ(x->ntasks, v->ntasks);
    for (size_t i = 0; i < x->ntasks; i++)
        CHECK(x->wait[i] == HEDDLE_CAUSE_DATA || x->wait[i] == HEDDLE_CAUSE_MEMORY ||
              x->wait[i] == HEDDLE_CAUSE_SCHED || x->wait[i] == HEDDLE_CAUSE_OVERHEAD ||
              x->wait[i] == HEDDLE_CAUSE_UNKNOWN);
    heddle_log_summary_destroy(log, s);
    log_graph_check(log);
    return x;
}

#endif /* HEDDLE_TESTS_EXPLAIN_CHECK_H */
