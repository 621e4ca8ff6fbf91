/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * time: the theorem behind the order of steps. Room is counted in the order of
 * the list, streams run beside each other: still, at no moment do two things
 * share an address, nor is more alive than the peak.
 */
#include "plan/plan_test.h"

enum { RECTS = 8192 };

struct rect {
    double from, to; /* moments */
    uint64_t low, high;
};

struct picture {
    const struct heddle_plan_graph *g;
    const struct heddle_plan *p;
    const double *begin, *end;
    struct rect rect[RECTS];
    size_t n;
    size_t of[256]; /* the open rectangle of a value in memory */
    bool is_in[256];
    uint32_t place;
};

static size_t open_rect(struct picture *x, double from, uint64_t low, uint64_t bytes)
{
    CHECK(x->n < RECTS);
    x->rect[x->n] = (struct rect){from, x->p->makespan + 1, low, low + bytes};
    return x->n++;
}

static const struct heddle_plan_place *find_place(const struct picture *x, uint32_t step,
                                                  uint32_t value)
{
    for (uint32_t i = 0; i < x->p->nplaces; i++)
        if (x->p->places[i].step == step && x->p->places[i].value == value)
            return &x->p->places[i];
    CHECK(!"a place is missing");
    return NULL;
}

static void bring(struct picture *x, uint32_t step, uint32_t v, double from)
{
    x->is_in[v] = true;
    if (x->g->values[v].bytes > 0)
        x->of[v] = open_rect(x, from, find_place(x, step, v)->offset, x->g->values[v].bytes);
}

static void drop(struct picture *x, uint32_t v, double to)
{
    x->is_in[v] = false;
    if (x->g->values[v].bytes > 0)
        x->rect[x->of[v]].to = to;
}

static void draw_compute(struct picture *x, uint32_t i)
{
    const struct heddle_plan_step *s = &x->p->steps[i];
    const struct heddle_plan_op *op = &x->g->ops[s->what];

    if (s->in_place) {
        const uint64_t had = x->g->values[op->inplace].bytes;
        const uint64_t needs = x->g->values[op->first_value].bytes;

        drop(x, op->inplace, x->begin[i]);
        if (had > needs) { /* in use to the end */
            const uint64_t low = x->rect[x->of[op->inplace]].low;

            x->rect[open_rect(x, x->begin[i], low + needs, had - needs)].to = x->end[i];
        }
    }
    for (uint32_t k = 0; k < op->nvalues; k++)
        if ((s->outputs >> k & 1) != 0 && !x->is_in[op->first_value + k])
            bring(x, i, op->first_value + k, x->begin[i]);
    if (op->work_bytes > 0)
        x->rect[open_rect(x, x->begin[i], find_place(x, i, HEDDLE_PLAN_NONE)->offset,
                          op->work_bytes)]
            .to = x->end[i];
}

static void draw(struct picture *x)
{
    for (uint32_t v = 0; v < x->g->nvalues; v++)
        if (heddle_plan_is_initial(&x->g->values[v]))
            bring(x, 0, v, 0);
    for (uint32_t i = 0; i < x->p->nsteps; i++) {
        const struct heddle_plan_step *s = &x->p->steps[i];

        if (s->kind == HEDDLE_PLAN_COMPUTE)
            draw_compute(x, i);
        else if (s->kind == HEDDLE_PLAN_PREFETCH)
            bring(x, i, s->what, x->begin[i]);
        else if (s->kind == HEDDLE_PLAN_DISCARD)
            drop(x, s->what, x->end[i]);
    }
}

static void check_picture(const struct picture *x)
{
    for (size_t i = 0; i < x->n; i++) {
        const struct rect *a = &x->rect[i];
        uint64_t alive = 0;

        for (size_t j = 0; j < x->n; j++) {
            const struct rect *b = &x->rect[j];

            if (b->from <= a->from && a->from < b->to)
                alive += b->high - b->low;
            if (i == j)
                continue;
            CHECK(a->to <= b->from || b->to <= a->from || a->high <= b->low || b->high <= a->low);
        }
        CHECK(alive <= x->p->peak_bytes);
    }
}

static void try_one(uint64_t seed)
{
    static struct picture x;
    const struct heddle_plan_claim claim = {.solver = "test"};
    struct heddle_plan_draft d;
    struct heddle_plan_graph *g;
    struct heddle_plan *p = NULL;
    struct heddle_rng r;
    struct rig rig;
    struct why w;
    double *begin, *end;

    test_set_seed(seed);
    heddle_rng_seed(&r, seed);
    g = random_graph(&r, 1 + heddle_rng_below32(&r, 30), 0, why_init(&w, NULL));
    rig_init(&rig, g, &w.o);
    rig.m.host.out_rate = 0.25 + 8 * heddle_rng_double(&r);
    rig.m.disk.in_rate = 0.25 + 8 * heddle_rng_double(&r);
    heddle_plan_draft_init(&d, NULL);
    random_program(g, &r, &d);
    CHECK_OK(heddle_plan_finish(&rig.job, &d, &claim, NULL, &p));
    begin = malloc(p->nsteps * sizeof(*begin));
    end = malloc(p->nsteps * sizeof(*end));
    CHECK(begin != NULL && end != NULL);
    CHECK_OK(heddle_plan_times(g, &rig.m, p, &w.o, begin, end));
    memset(&x, 0, sizeof(x));
    x.g = g;
    x.p = p;
    x.begin = begin;
    x.end = end;
    draw(&x);
    check_picture(&x);
    free(begin);
    free(end);
    heddle_plan_destroy(p);
    heddle_plan_draft_fini(&d);
    heddle_plan_graph_destroy(g);
}

TEST(nothing_overlaps_in_time)
{
    const uint64_t seed = test_seed();

    for (uint64_t i = 0; i < test_scale(2000); i++)
        try_one(seed + i);
}

TEST_MAIN(nothing_overlaps_in_time)
