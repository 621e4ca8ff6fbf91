/* SPDX-License-Identifier: BSD-3-Clause */
/* pipeline: options, policies, and the object they end in. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/sized.h"
#include "pipeline/pipeline.h"

static const char *const names[] = {
    [HEDDLE_PIPELINE_BEST] = "best",         [HEDDLE_PIPELINE_GPIPE] = "gpipe",
    [HEDDLE_PIPELINE_1F1B] = "1f1b",         [HEDDLE_PIPELINE_ZB] = "zb",
    [HEDDLE_PIPELINE_PERIODIC] = "periodic", [HEDDLE_PIPELINE_PIPEDREAM] = "pipedream",
    [HEDDLE_PIPELINE_SPECIAL] = "special",
};

const char *heddle_pipeline_get_policy(uint32_t policy)
{
    return policy < sizeof(names) / sizeof(names[0]) ? names[policy] : NULL;
}

/* ---- stages ---------------------------------------------------------------- */

uint64_t heddle_pl_fixed(const struct heddle_pl *p, uint32_t first, uint32_t last, uint64_t g)
{
    uint64_t copies = p->copies, buffers = 0;

    if (p->is_stashing)
        copies = (g < 1 ? 1 : g) + 1;
    if (first > 0)
        buffers = heddle_pl_mul(2, p->c->x[first]);
    if (last + 1 < p->n)
        buffers = heddle_pl_add(buffers, heddle_pl_mul(2, p->c->x[last + 1]));
    return heddle_pl_add(heddle_pl_mul(copies, p->weights[last + 1] - p->weights[first]), buffers);
}

uint64_t heddle_pl_memory(const struct heddle_pl *p, uint32_t first, uint32_t last,
                          const struct heddle_pipeline_way *w, uint64_t g)
{
    g = g < 1 ? 1 : g;
    g = g > p->nmicro ? p->nmicro : g;
    return heddle_pl_add(heddle_pl_fixed(p, first, last, g),
                         heddle_pl_add(w->once, heddle_pl_mul(g, w->saved)));
}

void heddle_pl_stage(const struct heddle_pl *p, uint32_t first, uint32_t last, uint32_t way,
                     uint32_t device, struct heddle_pl_part *part)
{
    const struct heddle_pipeline_way *w = &heddle_pl_ways_of(p, first, last)->way[way];

    part->way[part->n] = way;
    part->stage[part->n++] =
        (struct heddle_pipeline_stage){.first = first,
                                       .last = last,
                                       .device = device,
                                       .forward = p->f[last + 1] - p->f[first],
                                       .backward = p->b[last + 1] - p->b[first] + w->extra,
                                       .weight = p->w[last + 1] - p->w[first],
                                       .extra = w->extra,
                                       .send = heddle_pl_send(p, last),
                                       .saved = w->saved,
                                       .once = w->once};
}

/* ---- what the caller gave -------------------------------------------------- */

#define BAD(p, ...) HEDDLE_PLAN_FAIL(&(p)->o.base, HEDDLE_EINVAL, __VA_ARGS__)

static heddle_status check_model(struct heddle_pl *p, const struct heddle_pipeline_model *m)
{
    const struct heddle_plan_chain *c = m != NULL ? m->chain : NULL;

    if (c == NULL || c->x == NULL || c->t == NULL || c->forward == NULL || c->backward == NULL)
        return BAD(p, "there is no chain, or an array of it is missing");
    if (c->n == 0 || c->n > HEDDLE_PL_LAYERS)
        return BAD(p, "a pipeline has between 1 and %d layers", HEDDLE_PL_LAYERS);
    for (uint32_t i = 0; i < c->n; i++) {
        const double w = m->weight_time != NULL ? m->weight_time[i] : 0;

        if (!(c->forward[i] >= 0 && c->forward[i] <= 1e100) ||
            !(c->backward[i] >= 0 && c->backward[i] <= 1e100) || !(w >= 0 && w <= c->backward[i]))
            return BAD(p, "a time of layer %u is negative or too large", i);
        if (c->t[i + 1] < c->x[i + 1])
            return BAD(p,
                       "the tape of layer %u is smaller than the activation "
                       "it contains",
                       i);
    }
    return HEDDLE_OK;
}

static heddle_status sum_up(struct heddle_pl *p, const struct heddle_pipeline_model *m)
{
    const struct heddle_plan_chain *c = m->chain;
    const size_t n = (size_t)c->n + 1;
    struct heddle_plan_chain *full = heddle_scratch_get(p->mem, 1, sizeof(*c));
    uint64_t *zeros = heddle_scratch_get(p->mem, n, sizeof(*zeros));

    p->f = heddle_scratch_get(p->mem, n, sizeof(*p->f));
    p->b = heddle_scratch_get(p->mem, n, sizeof(*p->b));
    p->w = heddle_scratch_get(p->mem, n, sizeof(*p->w));
    p->weights = heddle_scratch_get(p->mem, n, sizeof(*p->weights));
    p->tapes = heddle_scratch_get(p->mem, n, sizeof(*p->tapes));
    if (full == NULL || zeros == NULL || p->f == NULL || p->b == NULL || p->w == NULL ||
        p->weights == NULL || p->tapes == NULL)
        return HEDDLE_PLAN_FAIL(&p->o.base, HEDDLE_ENOMEM, "no memory for the pipeline");
    *full = *c;
    full->work_f = c->work_f != NULL ? c->work_f : zeros;
    full->work_b = c->work_b != NULL ? c->work_b : zeros;
    p->c = full;
    p->n = c->n;
    for (uint32_t i = 0; i < c->n; i++) {
        const uint64_t w = m->weights != NULL ? m->weights[i] : 0;

        p->f[i + 1] = p->f[i] + c->forward[i];
        p->b[i + 1] = p->b[i] + c->backward[i];
        p->w[i + 1] = p->w[i] + (m->weight_time != NULL ? m->weight_time[i] : c->backward[i] / 2);
        if (__builtin_add_overflow(p->weights[i], w, &p->weights[i + 1]) ||
            __builtin_add_overflow(p->tapes[i], c->t[i + 1], &p->tapes[i + 1]))
            return BAD(p, "the bytes of the layers are too many to add");
    }
    if (!(p->f[c->n] + p->b[c->n] > 0))
        return BAD(p, "the layers take no time at all");
    return HEDDLE_OK;
}

static heddle_status pl_init(struct heddle_pl *p, const struct heddle_pipeline_model *model,
                             const struct heddle_plan_machine *m)
{
    struct heddle_plan_machine machine;

    HEDDLE_TRY(heddle_plan_machine_get(m, &p->o.base, &machine));
    if (heddle_pipeline_get_policy(p->o.policy) == NULL)
        return BAD(p, "there is no policy %u", p->o.policy);
    p->ndevices = machine.ndevices == 0 ? 1 : machine.ndevices;
    p->nmicro = p->o.nmicro == 0 ? 4 * p->ndevices : p->o.nmicro;
    p->copies = p->o.copies == 0 ? 2 : p->o.copies;
    p->budget = machine.budget;
    p->rate = machine.link_rate;
    if (p->ndevices > HEDDLE_PL_DEVICES)
        return BAD(p, "a pipeline has at most %d devices", HEDDLE_PL_DEVICES);
    if (p->nmicro > HEDDLE_PL_OPS / 5 / p->ndevices)
        return BAD(p, "%u micro-batches are too many", p->nmicro);
    HEDDLE_TRY(check_model(p, model));
    HEDDLE_TRY(sum_up(p, model));
    return heddle_pl_ways_make(p);
}

/* ---- the object ------------------------------------------------------------ */

struct box {
    struct heddle_pipeline p;
    struct heddle_scratch mem;
};

void heddle_pipeline_destroy(struct heddle_pipeline *p)
{
    struct heddle_scratch mem;

    if (p == NULL)
        return;
    mem = ((struct box *)p)->mem;
    heddle_scratch_drop(&mem);
}

static bool is_before(const struct heddle_pipeline_op *a, const struct heddle_pipeline_op *b)
{
    if (a->start != b->start)
        return a->start < b->start;
    return a->stage != b->stage ? a->stage < b->stage : a->kind < b->kind;
}

static void sort_ops(struct heddle_pipeline_op *v, size_t n)
{
    for (size_t gap = n / 2; gap > 0; gap /= 2)
        for (size_t i = gap; i < n; i++) {
            const struct heddle_pipeline_op x = v[i];
            size_t j = i;

            for (; j >= gap && is_before(&x, &v[j - gap]); j -= gap)
                v[j] = v[j - gap];
            v[j] = x;
        }
}

/* First forward to last backward, of the micro-batch that takes longest. */
static double longest_latency(const struct heddle_pipeline *p, double *first)
{
    double most = 0;

    for (uint32_t i = 0; i < p->nops; i++)
        if (p->ops[i].stage == 0 && p->ops[i].kind == HEDDLE_PIPELINE_FORWARD)
            first[p->ops[i].micro] = p->ops[i].start;
    for (uint32_t i = 0; i < p->nops; i++)
        if (p->ops[i].stage == 0 && p->ops[i].kind == HEDDLE_PIPELINE_BACKWARD)
            most = fmax(most, p->ops[i].end - first[p->ops[i].micro]);
    return most;
}

static double worst_bubble(const struct heddle_pipeline *p)
{
    double most = 0;

    for (uint32_t d = 0; d < p->ndevices; d++) {
        double busy = 0, first = INFINITY, last = 0, span;

        for (uint32_t i = 0; i < p->nops; i++) {
            const struct heddle_pipeline_op *o = &p->ops[i];

            if (o->kind >= HEDDLE_PIPELINE_SEND || p->stages[o->stage].device != d)
                continue;
            busy += o->end - o->start;
            first = fmin(first, o->start);
            last = fmax(last, o->end);
        }
        span = p->is_periodic ? p->period : last - first;
        if (first < INFINITY && span > 0)
            most = fmax(most, 1 - busy / span);
    }
    return most;
}

static double period_bound(const struct heddle_pl *p)
{
    double lo = heddle_pl_load(p, 0, p->n - 1) / p->ndevices;

    for (uint32_t i = 0; i < p->n; i++)
        lo = fmax(lo, heddle_pl_load(p, i, i));
    return lo;
}

static void fill(const struct heddle_pl *p, const struct heddle_pl_found *f,
                 struct heddle_pipeline *r, double *first)
{
    r->policy = f->policy;
    r->is_periodic = f->period > 0;
    r->ndevices = p->ndevices;
    r->nstages = f->part->n;
    r->nmicro = p->nmicro;
    r->copies = p->copies;
    r->nops = f->t->n;
    r->period = f->period > 0 ? f->period : f->end / p->nmicro;
    r->latency = longest_latency(r, first);
    r->makespan = f->period > 0 ? r->latency + (p->nmicro - 1) * f->period : f->end;
    r->throughput = 1 / r->period;
    r->bubble = worst_bubble(r);
    r->period_bound = period_bound(p);
}

/* What the layers of all stages do; counted when steps->step is NULL. */
static heddle_status write_steps(const struct heddle_pl *p, const struct heddle_pl_part *part,
                                 struct heddle_pipeline_stage *s, uint8_t *layers,
                                 struct heddle_pl_steps *out)
{
    out->n = 0;
    for (uint32_t i = 0; i < part->n && p->o.ways == NULL; i++) {
        s[i].first_step = (uint32_t)out->n;
        HEDDLE_TRY(heddle_pl_way_steps(p, s[i].first, s[i].last, part->way[i], layers, out));
        if (out->n > HEDDLE_PL_STEPS)
            return BAD(p, "a backward has too many steps");
        s[i].nsteps = (uint32_t)out->n - s[i].first_step;
    }
    return HEDDLE_OK;
}

static heddle_status make_in(const struct heddle_pl *p, const struct heddle_pl_found *f,
                             struct heddle_scratch *mem, struct heddle_pipeline **out)
{
    struct box *b = heddle_scratch_get(mem, 1, sizeof(*b));
    struct heddle_pipeline_stage *s = heddle_scratch_get(mem, f->part->n, sizeof(*s));
    struct heddle_pipeline_op *op = heddle_scratch_get(mem, f->t->n, sizeof(*op));
    uint64_t *memory = heddle_scratch_get(mem, p->ndevices, sizeof(*memory));
    uint8_t *layers = heddle_scratch_get(mem, p->n, 1);
    double *first = heddle_scratch_get(p->mem, p->nmicro, sizeof(*first));
    struct heddle_pl_steps steps = {.step = NULL};

    if (b == NULL || s == NULL || op == NULL || memory == NULL || layers == NULL || first == NULL)
        return HEDDLE_ENOMEM;
    memcpy(s, f->part->stage, f->part->n * sizeof(*s));
    memcpy(op, f->t->op, f->t->n * sizeof(*op));
    memcpy(memory, f->t->memory, p->ndevices * sizeof(*memory));
    sort_ops(op, f->t->n);
    HEDDLE_TRY(write_steps(p, f->part, s, layers, &steps));
    steps.step = heddle_scratch_get(mem, steps.n + 1, sizeof(*steps.step));
    if (steps.step == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(write_steps(p, f->part, s, layers, &steps));
    b->p = (struct heddle_pipeline){.size = sizeof(b->p), .stages = s, .ops = op, .memory = memory};
    if (p->o.ways == NULL) {
        b->p.layers = layers;
        b->p.steps = steps.step;
        b->p.nsteps = (uint32_t)steps.n;
    }
    fill(p, f, &b->p, first);
    b->mem = *mem;
    *out = &b->p;
    return HEDDLE_OK;
}

static heddle_status make(const struct heddle_pl *p, const struct heddle_pl_found *f,
                          struct heddle_pipeline **out)
{
    struct heddle_scratch mem = heddle_scratch_make(p->o.base.alloc);
    const heddle_status st = make_in(p, f, &mem, out);

    if (st == HEDDLE_OK)
        return st;
    heddle_scratch_drop(&mem);
    return st == HEDDLE_ENOMEM ? HEDDLE_PLAN_FAIL(&p->o.base, st, "no memory for the pipeline")
                               : st;
}

/* ---- policies -------------------------------------------------------------- */

heddle_status heddle_pl_found_init(const struct heddle_pl *p, struct heddle_pl_found *f)
{
    f->part = heddle_scratch_get(p->mem, 1, sizeof(*f->part));
    f->t = heddle_scratch_get(p->mem, 1, sizeof(*f->t));
    if (f->t != NULL)
        f->t->op = heddle_scratch_get(
            p->mem, (size_t)5 * (p->ndevices < 2 ? 2 : 2 * p->ndevices) * p->nmicro,
            sizeof(*f->t->op));
    return f->part != NULL && f->t != NULL && f->t->op != NULL
               ? HEDDLE_OK
               : HEDDLE_PLAN_FAIL(&p->o.base, HEDDLE_ENOMEM, "no memory for the schedule");
}

static heddle_status solve_periodic(const struct heddle_pl *p, struct heddle_pl_found *f)
{
    HEDDLE_TRY(heddle_pl_found_init(p, f));
    HEDDLE_TRY(heddle_pl_period(p, &f->period, f->part));
    for (int i = 0; i < 40; i++, f->period *= 1 + 1e-10)
        if (heddle_pl_time_periodic(p, f->part, f->period, f->t) && f->t->fits)
            break;
    if (!f->t->fits)
        return BAD(p, "the schedule of the partition needs more memory than "
                      "its delays say");
    f->end = (p->nmicro - 1) * f->period;
    for (uint32_t i = 0; i < f->t->n; i++)
        f->end = fmax(f->end, (p->nmicro - 1) * f->period + f->t->op[i].end);
    return HEDDLE_OK;
}

static heddle_status solve_pipedream(struct heddle_pl *p, struct heddle_pl_found *f)
{
    double *sums = heddle_scratch_get(p->mem, (size_t)4 * p->ndevices * p->ndevices, sizeof(*sums));
    double largest;

    p->is_stashing = true;
    HEDDLE_TRY(heddle_pl_found_init(p, f));
    if (sums == NULL)
        return HEDDLE_PLAN_FAIL(&p->o.base, HEDDLE_ENOMEM, "no memory for the partition");
    HEDDLE_TRY(heddle_pl_bottleneck(p, &largest, f->part));
    f->period = heddle_pl_part_period(p, f->part, sums);
    if (isfinite(f->period) && heddle_pl_time_periodic(p, f->part, f->period, f->t) && f->t->fits)
        return HEDDLE_OK;
    return HEDDLE_PLAN_FAIL(&p->o.base, HEDDLE_ENOENT,
                            "the balanced partition does not fit at any "
                            "period");
}

static heddle_status solve_special(const struct heddle_pl *p, struct heddle_pl_found *f)
{
    struct heddle_pl_found s = {.policy = HEDDLE_PIPELINE_SPECIAL};
    heddle_status st = solve_periodic(p, f), one;

    f->policy = HEDDLE_PIPELINE_SPECIAL;
    if (st != HEDDLE_OK && st != HEDDLE_ENOENT)
        return st;
    HEDDLE_TRY(heddle_pl_found_init(p, &s));
    one = heddle_pl_special(p, st == HEDDLE_OK ? f->period : INFINITY, s.part, &s.period);
    if (one == HEDDLE_OK && heddle_pl_time_periodic(p, s.part, s.period, s.t) && s.t->fits) {
        *f = s;
        return HEDDLE_OK;
    }
    return one == HEDDLE_ENOMEM ? one : st;
}

static heddle_status solve_one(struct heddle_pl *p, uint32_t policy, struct heddle_pl_found *f)
{
    f->policy = policy;
    switch (policy) {
    case HEDDLE_PIPELINE_PERIODIC: return solve_periodic(p, f);
    case HEDDLE_PIPELINE_PIPEDREAM: return solve_pipedream(p, f);
    case HEDDLE_PIPELINE_SPECIAL: return solve_special(p, f);
    default: return heddle_pl_solve_flush(p, policy, f);
    }
}

static heddle_status solve_best(struct heddle_pl *p, struct heddle_pl_found *f)
{
    static const uint32_t tried[] = {HEDDLE_PIPELINE_1F1B, HEDDLE_PIPELINE_GPIPE,
                                     HEDDLE_PIPELINE_ZB, HEDDLE_PIPELINE_PERIODIC};
    heddle_status st = HEDDLE_ENOENT;

    f->end = INFINITY;
    for (size_t i = 0; i < sizeof(tried) / sizeof(tried[0]); i++) {
        struct heddle_pl_found now = {.policy = tried[i]};
        const heddle_status one = solve_one(p, tried[i], &now);

        if (one != HEDDLE_OK && one != HEDDLE_ENOENT)
            return one;
        if (one != HEDDLE_OK)
            continue;
        if (now.end < f->end)
            *f = now;
        st = HEDDLE_OK;
    }
    return st;
}

heddle_status heddle_pipeline_solve(const struct heddle_pipeline_model *model,
                                    const struct heddle_plan_machine *m,
                                    const struct heddle_pipeline_opts *opts,
                                    struct heddle_pipeline **out)
{
    struct heddle_scratch mem;
    struct heddle_pipeline_model given;
    struct heddle_pipeline_opts o;
    struct heddle_pl p;
    struct heddle_pl_found f = {.policy = 0};
    heddle_status st;

    memset(&p, 0, sizeof(p));
    HEDDLE_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_pipeline_opts, &o, opts));
    p.o = (struct heddle_pl_wish){
        .policy = o.policy,
        .nmicro = o.nmicro,
        .copies = o.copies,
        .keeps = o.keeps,
        .ways = o.ways,
        .user = o.user,
        .base = {.size = sizeof(p.o.base),
                 .alloc = o.alloc != NULL ? o.alloc : &heddle_allocator_default,
                 .why = o.why,
                 .why_bytes = o.why_bytes}};
    if (model == NULL || out == NULL)
        return BAD(&p, "there is no model, or no place for the pipeline");
    HEDDLE_TRY(HEDDLE_SIZED_GET(struct heddle_pipeline_model, &given, model, o.why, o.why_bytes));
    mem = heddle_scratch_make(p.o.base.alloc);
    p.mem = &mem;
    st = pl_init(&p, &given, m);
    if (st == HEDDLE_OK)
        st =
            p.o.policy == HEDDLE_PIPELINE_BEST ? solve_best(&p, &f) : solve_one(&p, p.o.policy, &f);
    if (st == HEDDLE_OK)
        st = make(&p, &f, out);
    heddle_scratch_drop(&mem);
    return st;
}
