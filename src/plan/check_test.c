/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check: random programs of steps pass; what is changed in them is found.
 *
 * Oracle     a mutated plan is judged a second time: heddle_plan_eval() for the
 *            steps and the numbers, and a map with one owner per byte for the
 *            addresses. The checker must say the same, plan by plan.
 */
#include <math.h>

#include "plan/plan_test.h"

enum { BYTES = 4096 };

/* ---- the oracle ------------------------------------------------------------ */

struct bytes {
    const struct heddle_plan_graph *g;
    const struct heddle_plan *p;
    uint32_t owner[BYTES]; /* value + 1, or UINT32_MAX: workspace */
    uint64_t at[256];
    bool is_in[256];
    uint32_t place;
    uint64_t top, align;
};

static bool bytes_take(struct bytes *b, uint32_t owner, uint64_t at, uint64_t n)
{
    if (at > BYTES || at + n > BYTES || at % b->align != 0)
        return false;
    for (uint64_t i = at; i < at + n; i++)
        if (b->owner[i] != 0)
            return false;
    for (uint64_t i = at; i < at + n; i++)
        b->owner[i] = owner;
    b->top = at + n > b->top ? at + n : b->top;
    return true;
}

static void bytes_free(struct bytes *b, uint32_t owner)
{
    for (uint64_t i = 0; i < BYTES; i++)
        if (b->owner[i] == owner)
            b->owner[i] = 0;
}

static bool bytes_place(struct bytes *b, uint32_t step, uint32_t value, uint64_t *at)
{
    if (b->place >= b->p->nplaces || b->p->places[b->place].step != step ||
        b->p->places[b->place].value != value)
        return false;
    *at = b->p->places[b->place++].offset;
    return true;
}

static bool bytes_bring(struct bytes *b, uint32_t step, uint32_t v)
{
    b->is_in[v] = true;
    return b->g->values[v].bytes == 0 || (bytes_place(b, step, v, &b->at[v]) &&
                                          bytes_take(b, v + 1, b->at[v], b->g->values[v].bytes));
}

static bool bytes_compute(struct bytes *b, uint32_t step, const struct heddle_plan_step *s)
{
    const struct heddle_plan_op *op = &b->g->ops[s->what];
    const uint32_t from = op->inplace, to = op->first_value;
    uint64_t at = 0;

    if (s->in_place) {
        b->is_in[from] = false;
        b->is_in[to] = true;
        if (b->g->values[to].bytes > 0) {
            if (!bytes_place(b, step, to, &b->at[to]) || b->at[to] != b->at[from])
                return false;
        }
        for (uint64_t i = 0; i < b->g->values[to].bytes; i++)
            b->owner[b->at[to] + i] = to + 1;
    }
    for (uint32_t i = 0; i < op->nvalues; i++)
        if ((s->outputs >> i & 1) != 0 && !b->is_in[op->first_value + i] &&
            !bytes_bring(b, step, op->first_value + i))
            return false;
    if (op->work_bytes > 0 && (!bytes_place(b, step, HEDDLE_PLAN_NONE, &at) ||
                               !bytes_take(b, UINT32_MAX, at, op->work_bytes)))
        return false;
    bytes_free(b, UINT32_MAX);
    if (s->in_place)
        bytes_free(b, from + 1); /* what it had beyond */
    return true;
}

/* Addresses of a plan whose steps can be done. */
static bool addresses_are_good(const struct heddle_plan_graph *g,
                               const struct heddle_plan_machine *m, const struct heddle_plan *p)
{
    static struct bytes b;
    uint32_t first = 0;

    memset(&b, 0, sizeof(b));
    b.g = g;
    b.p = p;
    b.align = m->align;
    for (uint32_t v = 0; v < g->nvalues; v++) {
        if (!heddle_plan_is_initial(&g->values[v]))
            continue;
        /* Places of values from the beginning lie among those of step 0. */
        b.is_in[v] = true;
        if (g->values[v].bytes == 0)
            continue;
        while (first < p->nplaces && p->places[first].step == 0 && p->places[first].value < v)
            first++;
        if (first == p->nplaces || p->places[first].step != 0 || p->places[first].value != v)
            return false;
        b.at[v] = p->places[first].offset;
        if (!bytes_take(&b, v + 1, b.at[v], g->values[v].bytes))
            return false;
    }
    for (uint32_t i = 0; i < p->nsteps; i++) {
        const struct heddle_plan_step *s = &p->steps[i];

        while (i == 0 && b.place < p->nplaces && p->places[b.place].step == 0 &&
               p->places[b.place].value < g->nvalues &&
               heddle_plan_is_initial(&g->values[p->places[b.place].value]))
            b.place++;
        if (s->kind == HEDDLE_PLAN_COMPUTE && !bytes_compute(&b, i, s))
            return false;
        if (s->kind == HEDDLE_PLAN_PREFETCH && !bytes_bring(&b, i, s->what))
            return false;
        if (s->kind == HEDDLE_PLAN_DISCARD) {
            b.is_in[s->what] = false;
            bytes_free(&b, s->what + 1);
        }
        while (i == 0 && b.place < p->nplaces && p->places[b.place].step == 0 &&
               p->places[b.place].value < g->nvalues &&
               heddle_plan_is_initial(&g->values[p->places[b.place].value]))
            b.place++;
    }
    return b.place == p->nplaces && b.top == p->arena_bytes && b.top <= m->budget;
}

static bool is_near(double a, double b)
{
    return isfinite(a) && fabs(a - b) <= 1e-9 * fabs(b);
}

static bool oracle(const struct heddle_plan_graph *g, const struct heddle_plan_machine *m,
                   const struct heddle_plan *p)
{
    struct heddle_plan_cost c;
    double once = 0;

    for (uint32_t i = 0; i < p->nsteps; i++) {
        const struct heddle_plan_step *s = &p->steps[i];
        const bool is_copy = s->kind >= HEDDLE_PLAN_OFFLOAD;

        /* what an evaluation does not look at */
        if ((!is_copy && s->level != 0) ||
            (s->kind != HEDDLE_PLAN_COMPUTE && (s->outputs != 0 || s->in_place)))
            return false;
    }
    for (uint32_t i = 0; i < g->nops; i++)
        once += g->ops[i].time;
    return heddle_plan_eval(g, m, p->steps, p->nsteps, NULL, &c) == HEDDLE_OK &&
           c.peak_bytes == p->peak_bytes && c.peak_bytes <= m->budget && p->budget == m->budget &&
           is_near(p->makespan, c.makespan) && is_near(p->compute, c.compute) &&
           is_near(p->baseline, once) && is_near(p->link_busy, c.link_busy) &&
           p->lower_bound >= 0 && p->lower_bound <= c.makespan * (1 + 1e-9) &&
           addresses_are_good(g, m, p);
}

/* ---- mutations ------------------------------------------------------------- */

struct copy {
    struct heddle_plan p;
    struct heddle_plan_step step[4096];
    struct heddle_plan_place place[4096];
};

static void copy_plan(struct copy *c, const struct heddle_plan *p)
{
    CHECK(p->nsteps < 4000 && p->nplaces < 4000);
    c->p = *p;
    memcpy(c->step, p->steps, p->nsteps * sizeof(c->step[0]));
    memcpy(c->place, p->places, p->nplaces * sizeof(c->place[0]));
    c->p.steps = c->step;
    c->p.places = c->place;
}

static void swap_steps(struct copy *c, uint32_t i, uint32_t j)
{
    const struct heddle_plan_step t = c->step[i];

    c->step[i] = c->step[j];
    c->step[j] = t;
}

static void mutate_step(struct copy *c, struct heddle_rng *r)
{
    const uint32_t i = heddle_rng_below32(r, c->p.nsteps);
    struct heddle_plan_step *s = &c->step[i];

    switch (heddle_rng_below32(r, 8)) {
    case 0: /* gone */
        memmove(s, s + 1, (c->p.nsteps - i - 1) * sizeof(*s));
        c->p.nsteps--;
        break;
    case 1: /* twice */
        memmove(s + 1, s, (c->p.nsteps - i) * sizeof(*s));
        c->p.nsteps++;
        break;
    case 2: swap_steps(c, i, heddle_rng_below32(r, c->p.nsteps)); break;
    case 3: s->kind = (uint8_t)heddle_rng_below32(r, 7); break;
    case 4: s->level = (uint8_t)heddle_rng_below32(r, 4); break;
    case 5: s->what += heddle_rng_below32(r, 2) == 0 ? 1 : (uint32_t)-1; break;
    case 6: s->outputs ^= (uint64_t)1 << heddle_rng_below32(r, 4); break;
    default: s->in_place = !s->in_place; break;
    }
}

static void mutate_place(struct copy *c, struct heddle_rng *r)
{
    struct heddle_plan_place *q;
    uint32_t i;

    if (c->p.nplaces == 0)
        return;
    i = heddle_rng_below32(r, c->p.nplaces);
    q = &c->place[i];
    switch (heddle_rng_below32(r, 6)) {
    case 0: q->offset++; break;
    case 1: q->offset--; break;
    case 2: q->offset = heddle_rng_below(r, c->p.arena_bytes + 9); break;
    case 3:
        memmove(q, q + 1, (c->p.nplaces - i - 1) * sizeof(*q));
        c->p.nplaces--;
        break;
    case 4: q->value ^= 1; break;
    default: q->step += heddle_rng_below32(r, 2) == 0 ? 1 : (uint32_t)-1; break;
    }
}

static void mutate_claim(struct copy *c, struct heddle_rng *r)
{
    switch (heddle_rng_below32(r, 10)) {
    case 0: c->p.peak_bytes++; break;
    case 1: c->p.peak_bytes--; break;
    case 2: c->p.arena_bytes++; break;
    case 3: c->p.arena_bytes--; break;
    case 4: c->p.makespan = c->p.makespan * 1.0001 + 1e-4; break;
    case 5: c->p.compute = c->p.compute * 0.9999 - 1e-4; break;
    case 6: c->p.baseline += 1; break;
    case 7: c->p.link_busy = (double)NAN; break;
    case 8: c->p.lower_bound = c->p.makespan + 1; break;
    default: c->p.budget++; break;
    }
}

struct tally {
    size_t n, nrejected, nharmless;
};

static void try_mutation(const struct heddle_plan_graph *g, struct rig *rig,
                         const struct heddle_plan *p, struct heddle_rng *r, struct tally *t)
{
    static struct copy c;
    struct why w;
    struct heddle_plan_report report = {.size = sizeof(report)};
    const unsigned kind = heddle_rng_below32(r, 5);
    heddle_status st;
    bool want;

    copy_plan(&c, p);
    if (kind < 3)
        mutate_step(&c, r);
    else if (kind == 3)
        mutate_place(&c, r);
    else
        mutate_claim(&c, r);
    want = oracle(g, &rig->m, &c.p);
    st = heddle_plan_check(g, &rig->m, &c.p, why_init(&w, NULL), &report);
    if (want != (st == HEDDLE_OK))
        fprintf(stderr, "oracle %d, checker: %s\n", want, w.text);
    CHECK_EQ(want, st == HEDDLE_OK);
    CHECK(want || w.text[0] != '\0');
    CHECK(kind < 4 || !want);
    t->n++;
    t->nrejected += !want;
    t->nharmless += want;
}

static void fuzz_one(uint64_t seed, struct tally *t)
{
    struct heddle_rng r;
    struct why w;
    struct rig rig;
    struct heddle_plan_draft d;
    struct heddle_plan *p = NULL;
    struct heddle_plan_graph *g;
    const struct heddle_plan_claim claim = {.solver = "test"};
    struct heddle_plan_report report = {.size = sizeof(report)};

    test_set_seed(seed);
    heddle_rng_seed(&r, seed);
    g = random_graph(&r, 1 + heddle_rng_below32(&r, 12), heddle_rng_below32(&r, 4) == 0 ? PLAIN : 0,
                     why_init(&w, NULL));
    rig_init(&rig, g, &w.o);
    rig.m.align = 1 + heddle_rng_below(&r, 3);
    rig.job.deadline_ns = 0; /* addresses without a long search */
    heddle_plan_draft_init(&d, NULL);
    random_program(g, &r, &d);
    CHECK_OK(heddle_plan_finish(&rig.job, &d, &claim, NULL, &p));
    CHECK_OK(heddle_plan_check(g, &rig.m, p, &w.o, &report));
    CHECK(oracle(g, &rig.m, p));
    CHECK_EQ(report.peak_bytes, p->peak_bytes);
    CHECK_EQ(report.arena_bytes, p->arena_bytes);
    CHECK_EQ(report.bad_step, HEDDLE_PLAN_NONE);
    for (unsigned i = 0; i < 40; i++)
        try_mutation(g, &rig, p, &r, t);
    heddle_plan_destroy(p);
    heddle_plan_draft_fini(&d);
    heddle_plan_graph_destroy(g);
}

TEST(random_plans_pass_and_mutations_do_not)
{
    const uint64_t seed = test_seed();
    struct tally t = {0, 0, 0};

    for (uint64_t i = 0; i < test_scale(4000); i++)
        fuzz_one(seed + i, &t);
    printf("%zu mutations, %zu rejected, %zu harmless\n", t.n, t.nrejected, t.nharmless);
    CHECK(t.nrejected * 2 > t.n);
    CHECK(t.nharmless > 0);
}

/* ---- one by one ------------------------------------------------------------ */

/* a -> b, 4 bytes each; b 2 bytes of workspace */
struct pair {
    struct why w;
    struct heddle_plan_graph *g;
    struct heddle_plan_machine m;
    struct heddle_plan_step step[8];
    struct heddle_plan_place place[8];
    struct heddle_plan p;
};

static void pair_init(struct pair *x)
{
    static const struct heddle_plan_op op[] = {
        {.time = 1, .first_value = 0, .nvalues = 1, .inplace = HEDDLE_PLAN_NONE},
        {.time = 2,
         .work_bytes = 2,
         .first_value = 1,
         .nvalues = 1,
         .ninputs = 1,
         .inplace = HEDDLE_PLAN_NONE}};
    static const struct heddle_plan_value value[] = {{.bytes = 4, .op = 0},
                                                     {.bytes = 4, .op = 1, .flags = 1}};
    static const uint32_t input[] = {0};
    const struct heddle_plan_graph d = {.size = sizeof(d),
                                        .nops = 2,
                                        .nvalues = 2,
                                        .ninputs = 1,
                                        .ops = op,
                                        .values = value,
                                        .inputs = input};

    memset(x, 0, sizeof(*x));
    CHECK_OK(heddle_plan_graph_create(&d, why_init(&x->w, NULL), &x->g));
    x->m = (struct heddle_plan_machine){.size = sizeof(x->m), .budget = 10, .host = {1, 1, 5}};
    x->step[0] = (struct heddle_plan_step){.what = 0, .outputs = 1};
    x->step[1] = (struct heddle_plan_step){.what = 1, .outputs = 1};
    x->step[2] = (struct heddle_plan_step){.kind = HEDDLE_PLAN_DISCARD};
    x->place[0] = (struct heddle_plan_place){0, 0, 0};
    x->place[1] = (struct heddle_plan_place){1, 1, 4};
    x->place[2] = (struct heddle_plan_place){1, HEDDLE_PLAN_NONE, 8};
    x->p = (struct heddle_plan){.size = sizeof(x->p),
                                .solver = "hand",
                                .budget = 10,
                                .peak_bytes = 10,
                                .arena_bytes = 10,
                                .makespan = 3,
                                .compute = 3,
                                .baseline = 3,
                                .bound_note = "",
                                .nsteps = 3,
                                .nplaces = 3,
                                .steps = x->step,
                                .places = x->place};
}

static void pair_bad(struct pair *x, const char *word)
{
    CHECK_STATUS(heddle_plan_check(x->g, &x->m, &x->p, &x->w.o, NULL), HEDDLE_EINVAL);
    if (strstr(x->w.text, word) == NULL)
        fprintf(stderr, "'%s' is not in: %s\n", word, x->w.text);
    CHECK(strstr(x->w.text, word) != NULL);
    heddle_plan_graph_destroy(x->g);
    pair_init(x);
}

TEST(each_fault_has_its_sentence)
{
    struct pair x;

    pair_init(&x);
    CHECK_OK(heddle_plan_check(x.g, &x.m, &x.p, &x.w.o, NULL));
    x.place[2].offset = 7;
    pair_bad(&x, "overlap");
    x.place[2].offset = 9;
    pair_bad(&x, "beyond the budget");
    x.place[2].offset = UINT64_MAX;
    pair_bad(&x, "beyond the budget");
    x.m.align = 8;
    pair_bad(&x, "not a multiple");
    x.p.nplaces = 2;
    pair_bad(&x, "no address for the workspace");
    x.step[0].what = 1;
    pair_bad(&x, "step 0: operation 1 needs value 0");
    x.step[2].what = 1;
    pair_bad(&x, "value 1 is lost");
    x.p.peak_bytes = 9;
    pair_bad(&x, "its peak is 9 bytes, and it is 10");
    x.p.makespan = 2.5;
    pair_bad(&x, "its makespan is 2.5, and it is 3");
    x.m.budget = x.p.budget = 9;
    pair_bad(&x, "beyond the budget");
    x.p.nsteps = 1;
    x.p.nplaces = 1;
    pair_bad(&x, "operation 1 is never computed");
    x.step[2] = (struct heddle_plan_step){.kind = HEDDLE_PLAN_PREFETCH, .level = 1, .what = 0};
    pair_bad(&x, "in memory already");
    x.step[2] = (struct heddle_plan_step){.kind = HEDDLE_PLAN_OFFLOAD, .level = 2, .what = 0};
    pair_bad(&x, "no disk");
    x.step[2] = (struct heddle_plan_step){.kind = HEDDLE_PLAN_FORGET, .level = 1, .what = 0};
    pair_bad(&x, "no copy");
    x.step[2].kind = 99;
    pair_bad(&x, "kind 99");
    x.m.host.bytes = 3;
    x.step[2] = (struct heddle_plan_step){.kind = HEDDLE_PLAN_OFFLOAD, .level = 1, .what = 0};
    pair_bad(&x, "no room");
    x.m.host.in_rate = -1;
    pair_bad(&x, "rate");
    x.p.steps = NULL;
    pair_bad(&x, "the plan has no steps");
    heddle_plan_graph_destroy(x.g);
}

/* What is there from the beginning must be there at the end. */
TEST(weights_are_not_lost)
{
    static const struct heddle_plan_op op[] = {
        {.time = 1, .first_value = 2, .nvalues = 0, .inplace = HEDDLE_PLAN_NONE}};
    static const struct heddle_plan_value value[] = {
        {.bytes = 4, .op = HEDDLE_PLAN_NONE},
        {.bytes = 3, .op = HEDDLE_PLAN_NONE, .flags = HEDDLE_PLAN_AT_HOST}};
    const struct heddle_plan_graph d = {
        .size = sizeof(d), .nops = 1, .nvalues = 2, .ops = op, .values = value};
    const struct heddle_plan_machine m = {.size = sizeof(m), .budget = 10, .host = {1, 1, 0}};
    struct heddle_plan_step step[] = {{.kind = HEDDLE_PLAN_COMPUTE},
                                      {.kind = HEDDLE_PLAN_FORGET, .level = 1, .what = 1}};
    const struct heddle_plan_place place[] = {{0, 0, 0}};
    struct heddle_plan p = {.size = sizeof(p),
                            .budget = 10,
                            .peak_bytes = 4,
                            .arena_bytes = 4,
                            .makespan = 1,
                            .compute = 1,
                            .baseline = 1,
                            .nsteps = 1,
                            .nplaces = 1,
                            .steps = step,
                            .places = place};
    struct heddle_plan_graph *g = NULL;
    struct why w;

    CHECK_OK(heddle_plan_graph_create(&d, why_init(&w, NULL), &g));
    CHECK_OK(heddle_plan_check(g, &m, &p, &w.o, NULL));
    p.nsteps = 2;
    CHECK_STATUS(heddle_plan_check(g, &m, &p, &w.o, NULL), HEDDLE_EINVAL);
    CHECK(strstr(w.text, "value 1 is lost") != NULL);
    step[1] = (struct heddle_plan_step){.kind = HEDDLE_PLAN_DISCARD};
    CHECK_STATUS(heddle_plan_check(g, &m, &p, &w.o, NULL), HEDDLE_EINVAL);
    CHECK(strstr(w.text, "only copy of value 0") != NULL);
    heddle_plan_graph_destroy(g);
}

TEST(no_memory)
{
    struct pair x;
    struct faulty f;

    pair_init(&x);
    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        heddle_status st;

        faulty_init(&f, k);
        x.w.o.alloc = &f.a;
        st = heddle_plan_check(x.g, &x.m, &x.p, &x.w.o, NULL);
        CHECK_EQ(st, f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
        CHECK_EQ(f.nlive, 0);
    }
    heddle_plan_graph_destroy(x.g);
}

TEST_MAIN(each_fault_has_its_sentence, weights_are_not_lost, no_memory,
          random_plans_pass_and_mutations_do_not)
