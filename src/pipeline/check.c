/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check: runs a pipeline on paper.
 *
 * Shares nothing with what makes them: it includes the public headers only. A
 * periodic schedule is unrolled for as long as micro-batches of the first one's
 * time overlap, twice over; then both kinds are lists of intervals, which are
 * sorted by device and swept.
 */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/scratch.h"
#include "base/sized.h"
#include "base/text.h"
#include "base/why.h"
#include "heddle/pipeline.h"

enum { MOST_OPS = 1 << 23, NKINDS = 5 };

struct event {
    double start, end;
    uint32_t stage, micro, kind, where; /* device, or ndevices + link */
};

struct check {
    const struct heddle_pipeline *p;
    const struct heddle_plan_chain *c;
    const struct heddle_pipeline_model *model;
    const struct heddle_plan_machine *m;
    struct heddle_plan_opts o;
    struct heddle_scratch mem;
    struct event *ev;
    size_t nev;
    uint32_t nmicro; /* unrolled */
    bool has_weight;
    double slack;
    const struct event **at; /* [(stage * nmicro + micro) * NKINDS + kind] */
};

#define BAD(k, ...) heddle_why((k)->o.why, (k)->o.why_bytes, HEDDLE_EINVAL, __VA_ARGS__)

static bool same(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fmax(1e-300, fmax(fabs(a), fabs(b)));
}

/* ---- stages ---------------------------------------------------------------- */

/* A stage run on paper for one micro-batch: what is there on top of `saved`. */
struct paper {
    const struct heddle_pipeline_stage *s;
    bool *has_x; /* [layer - first] of input x[layer], on top */
    bool *has_t; /* the same for the tape of the layer */
    uint64_t bytes, most;
    double extra;
    uint32_t next; /* the layer whose backward comes next, and one */
};

static uint8_t what(const struct check *k, uint32_t layer)
{
    return k->p->layers[layer];
}

/* x[i] is saved, by itself or in a tape. */
static bool is_saved(const struct check *k, const struct heddle_pipeline_stage *s, uint32_t i)
{
    if (i == s->first)
        return true;
    if (what(k, i - 1) == HEDDLE_PIPELINE_KEPT)
        return true;
    return i <= s->last && what(k, i) != HEDDLE_PIPELINE_AGAIN;
}

/* The gradient of x[i]: at the ends of a stage it is in a buffer. */
static uint64_t gradient(const struct check *k, const struct heddle_pipeline_stage *s, uint32_t i)
{
    if ((i == s->first && i > 0) || (i == s->last + 1 && i < k->c->n))
        return 0;
    return k->c->x[i];
}

static uint64_t work(const uint64_t *v, uint32_t i)
{
    return v != NULL ? v[i] : 0;
}

static void note(struct paper *q, uint64_t more)
{
    q->most = q->bytes + more > q->most ? q->bytes + more : q->most;
}

/* The first forward: what is passed on and not saved. */
static void run_forward(const struct check *k, struct paper *q)
{
    const struct heddle_plan_chain *c = k->c;

    for (uint32_t i = q->s->first; i <= q->s->last; i++) {
        uint64_t more = work(c->work_f, i);

        if (!is_saved(k, q->s, i))
            more += c->x[i];
        if (!is_saved(k, q->s, i + 1) && (i < q->s->last || i + 1 == c->n))
            more += c->x[i + 1];
        note(q, more);
    }
}

static bool is_there(const struct check *k, const struct paper *q, uint32_t i)
{
    const uint32_t at = i - q->s->first;

    return is_saved(k, q->s, i) || q->has_x[at] || (at > 0 && q->has_t[at - 1]);
}

static bool forward_again(const struct check *k, struct paper *q, uint32_t i, uint32_t kind)
{
    const struct heddle_plan_chain *c = k->c;
    const uint32_t at = i - q->s->first;
    bool *has = kind == HEDDLE_PIPELINE_KEEP ? &q->has_t[at] : NULL;
    const uint64_t made = kind == HEDDLE_PIPELINE_KEEP ? c->t[i + 1] : c->x[i + 1];

    if (!is_there(k, q, i))
        return false;
    if (has == NULL && i == q->s->last)
        return false; /* no pipeline needs that */
    if (has == NULL)
        has = &q->has_x[at + 1];
    if (*has)
        return false;
    note(q, made + work(c->work_f, i));
    *has = true;
    q->bytes += made;
    q->extra += c->forward[i];
    if (kind == HEDDLE_PIPELINE_PASS) {
        if (!q->has_x[at])
            return false;
        q->has_x[at] = false;
        q->bytes -= c->x[i];
    }
    return true;
}

static bool undo(const struct check *k, struct paper *q, uint32_t i)
{
    const struct heddle_plan_chain *c = k->c;
    const uint32_t at = i - q->s->first;
    const bool is_kept = what(k, i) == HEDDLE_PIPELINE_KEPT;

    if (i + 1 != q->next || !is_there(k, q, i) || !(is_kept || q->has_t[at]))
        return false;
    q->next = i;
    note(q, gradient(k, q->s, i) + work(c->work_b, i));
    if (q->has_t[at])
        q->bytes -= c->t[i + 1];
    if (q->has_x[at])
        q->bytes -= c->x[i];
    q->has_t[at] = q->has_x[at] = false;
    q->bytes -= gradient(k, q->s, i + 1);
    q->bytes += gradient(k, q->s, i);
    return true;
}

static uint64_t saved_by(const struct check *k, const struct heddle_pipeline_stage *s)
{
    uint64_t saved = k->c->x[s->first];

    for (uint32_t i = s->first; i <= s->last; i++) {
        if (what(k, i) == HEDDLE_PIPELINE_KEPT)
            saved += k->c->t[i + 1];
        if (i > s->first && what(k, i) != HEDDLE_PIPELINE_AGAIN &&
            what(k, i - 1) != HEDDLE_PIPELINE_KEPT)
            saved += k->c->x[i];
    }
    return saved;
}

/* What its layers and steps say about the recomputation of a stage. */
static heddle_status check_way(struct check *k, const struct heddle_pipeline_stage *s)
{
    const size_t n = (size_t)s->last - s->first + 2;
    struct paper q = {.s = s, .next = s->last + 1};

    for (uint32_t i = s->first; i <= s->last; i++)
        if (what(k, i) > HEDDLE_PIPELINE_FIRST ||
            (what(k, i) == HEDDLE_PIPELINE_AGAIN &&
             (i == s->first || what(k, i - 1) == HEDDLE_PIPELINE_KEPT)))
            return BAD(k, "layer %u continues a segment that there is not", i);
    if (s->first_step > k->p->nsteps || k->p->steps == NULL ||
        s->nsteps > k->p->nsteps - s->first_step)
        return BAD(k, "the steps of layers %u to %u are missing", s->first, s->last);
    q.has_x = heddle_scratch_get(&k->mem, 2 * n, sizeof(*q.has_x));
    if (q.has_x == NULL)
        return HEDDLE_ENOMEM;
    q.has_t = q.has_x + n;
    run_forward(k, &q);
    q.bytes = gradient(k, s, s->last + 1);
    for (uint32_t i = 0; i < s->nsteps; i++) {
        const struct heddle_pipeline_step *x = &k->p->steps[s->first_step + i];
        const bool is_ours = x->layer >= s->first && x->layer <= s->last;

        if (!is_ours || x->kind > HEDDLE_PIPELINE_UNDO ||
            !(x->kind == HEDDLE_PIPELINE_UNDO ? undo(k, &q, x->layer)
                                              : forward_again(k, &q, x->layer, x->kind)))
            return BAD(k, "step %u of layers %u to %u cannot be done", i, s->first, s->last);
    }
    if (q.next != s->first)
        return BAD(k, "the backward of layer %u is missing", q.next - 1);
    if (saved_by(k, s) != s->saved || q.most > s->once || !same(q.extra, s->extra))
        return BAD(k, "layers %u to %u do not save what the stage says", s->first, s->last);
    return HEDDLE_OK;
}

static heddle_status check_stage(struct check *k, uint32_t i)
{
    const struct heddle_pipeline_stage *s = &k->p->stages[i];
    const struct heddle_plan_chain *c = k->c;
    const bool is_last = i + 1 == k->p->nstages;
    double f = 0, b = 0, w = 0, send = 0;
    uint64_t weights = 0, fixed, copies = k->p->copies;

    if (s->first != (i == 0 ? 0 : k->p->stages[i - 1].last + 1) || s->last < s->first ||
        s->last >= c->n || (is_last && s->last + 1 != c->n) || s->device >= k->p->ndevices)
        return BAD(k, "stage %u does not follow the one before it", i);
    for (uint32_t j = s->first; j <= s->last; j++) {
        f += c->forward[j];
        b += c->backward[j];
        w += k->model->weight_time != NULL ? k->model->weight_time[j] : c->backward[j] / 2;
        weights += k->model->weights != NULL ? k->model->weights[j] : 0;
    }
    if (!is_last && k->m->link_rate > 0)
        send = (double)c->x[s->last + 1] / k->m->link_rate;
    if (!same(f, s->forward) || !same(b + s->extra, s->backward) || !(s->extra >= 0) ||
        !same(w, s->weight) || !same(send, s->send))
        return BAD(k, "the times of stage %u are not those of its layers", i);
    if (k->p->policy == HEDDLE_PIPELINE_PIPEDREAM)
        copies = (uint64_t)s->in_flight + 1;
    fixed =
        copies * weights + (i > 0 ? 2 * c->x[s->first] : 0) + (is_last ? 0 : 2 * c->x[s->last + 1]);
    if (fixed != s->fixed)
        return BAD(k, "weights and buffers of stage %u are not as it says", i);
    return k->p->layers != NULL ? check_way(k, s) : HEDDLE_OK;
}

/* ---- unrolling ------------------------------------------------------------- */

static heddle_status unroll(struct check *k)
{
    const struct heddle_pipeline *p = k->p;
    double last = 0;
    size_t n;

    for (uint32_t i = 0; i < p->nops; i++) {
        const struct heddle_pipeline_op *o = &p->ops[i];

        if (o->stage >= p->nstages || o->kind >= NKINDS ||
            o->micro >= (p->is_periodic ? 1 : p->nmicro) ||
            !(o->start >= 0 && o->end >= o->start && o->end < 1e300) ||
            (o->kind >= HEDDLE_PIPELINE_SEND && o->stage + 1 == p->nstages))
            return BAD(k, "operation %u is not one of the pipeline", i);
        last = fmax(last, o->end);
        k->has_weight |= o->kind == HEDDLE_PIPELINE_WEIGHT;
    }
    k->slack = 1e-9 * last;
    k->nmicro = p->nmicro;
    if (p->is_periodic) {
        const double turns = 2 * ceil(last / p->period) + 2;

        if (!(p->period > 0) || turns * p->nops > MOST_OPS)
            return BAD(k, "the period is too small");
        if (turns < k->nmicro)
            k->nmicro = (uint32_t)turns;
    }
    n = (size_t)p->nops * (p->is_periodic ? k->nmicro : 1);
    if (n > MOST_OPS)
        return BAD(k, "there are too many operations");
    k->ev = heddle_scratch_get(&k->mem, n, sizeof(*k->ev));
    if (k->ev == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t j = 0; j < (p->is_periodic ? k->nmicro : 1); j++)
        for (uint32_t i = 0; i < p->nops; i++) {
            const struct heddle_pipeline_op *o = &p->ops[i];

            k->ev[k->nev++] = (struct event){
                .start = o->start + j * p->period * (p->is_periodic != 0),
                .end = o->end + j * p->period * (p->is_periodic != 0),
                .stage = o->stage,
                .micro = p->is_periodic ? j : o->micro,
                .kind = o->kind,
                .where = o->kind >= HEDDLE_PIPELINE_SEND ? p->ndevices + o->stage
                                                         : p->stages[o->stage].device};
        }
    return HEDDLE_OK;
}

static bool sorts_before(const struct event *a, const struct event *b)
{
    if (a->where != b->where)
        return a->where < b->where;
    return a->start != b->start ? a->start < b->start : a->end < b->end;
}

static void sort_events(struct event *v, size_t n)
{
    for (size_t gap = n / 2; gap > 0; gap /= 2)
        for (size_t i = gap; i < n; i++) {
            const struct event x = v[i];
            size_t j = i;

            for (; j >= gap && sorts_before(&x, &v[j - gap]); j -= gap)
                v[j] = v[j - gap];
            v[j] = x;
        }
}

/* ---- what must hold -------------------------------------------------------- */

static heddle_status check_alone(const struct check *k)
{
    for (size_t i = 1; i < k->nev; i++)
        if (k->ev[i].where == k->ev[i - 1].where && k->ev[i].start < k->ev[i - 1].end - k->slack)
            return BAD(k, "%s %u does two things at once",
                       k->ev[i].where < k->p->ndevices ? "device" : "link",
                       k->ev[i].where < k->p->ndevices ? k->ev[i].where
                                                       : k->ev[i].where - k->p->ndevices);
    return HEDDLE_OK;
}

static const struct event *get(const struct check *k, uint32_t stage, uint32_t micro, uint32_t kind)
{
    return k->at[((size_t)stage * k->nmicro + micro) * NKINDS + kind];
}

static double length(const struct check *k, uint32_t stage, uint32_t kind)
{
    const struct heddle_pipeline_stage *s = &k->p->stages[stage];

    switch (kind) {
    case HEDDLE_PIPELINE_FORWARD: return s->forward;
    case HEDDLE_PIPELINE_BACKWARD: return s->backward - (k->has_weight ? s->weight : 0);
    case HEDDLE_PIPELINE_WEIGHT: return s->weight;
    default: return s->send;
    }
}

static heddle_status index_events(struct check *k)
{
    const size_t cells = (size_t)k->p->nstages * k->nmicro * NKINDS;

    k->at = heddle_scratch_get(&k->mem, cells, sizeof(*k->at));
    if (k->at == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < k->nev; i++) {
        const struct event *e = &k->ev[i];
        const struct event **at =
            &k->at[((size_t)e->stage * k->nmicro + e->micro) * NKINDS + e->kind];

        if (*at != NULL)
            return BAD(k, "stage %u does the same twice for micro-batch %u", e->stage, e->micro);
        if (fabs(e->end - e->start - length(k, e->stage, e->kind)) > k->slack)
            return BAD(k, "an operation of stage %u does not take its time", e->stage);
        *at = e;
    }
    return HEDDLE_OK;
}

static bool follows(const struct check *k, const struct event *a, const struct event *b)
{
    return a != NULL && b != NULL && b->start >= a->end - k->slack;
}

static heddle_status check_order(const struct check *k, uint32_t s, uint32_t j)
{
    const struct event *f = get(k, s, j, HEDDLE_PIPELINE_FORWARD);
    const struct event *b = get(k, s, j, HEDDLE_PIPELINE_BACKWARD);
    bool is_ok = f != NULL && b != NULL;

    if (is_ok && k->has_weight)
        is_ok = follows(k, b, get(k, s, j, HEDDLE_PIPELINE_WEIGHT));
    if (is_ok && s + 1 == k->p->nstages) {
        is_ok = follows(k, f, b);
    } else if (is_ok) {
        const struct event *nf = get(k, s + 1, j, HEDDLE_PIPELINE_FORWARD);
        const struct event *nb = get(k, s + 1, j, HEDDLE_PIPELINE_BACKWARD);

        if (k->p->stages[s].send > 0) {
            const struct event *send = get(k, s, j, HEDDLE_PIPELINE_SEND);
            const struct event *back = get(k, s, j, HEDDLE_PIPELINE_BACK);

            is_ok = follows(k, f, send) && follows(k, send, nf) && follows(k, nb, back) &&
                    follows(k, back, b);
        } else {
            is_ok = follows(k, f, nf) && follows(k, nb, b);
        }
    }
    return is_ok ? HEDDLE_OK
                 : BAD(k,
                       "stage %u of micro-batch %u is not complete or not "
                       "in order",
                       s, j);
}

/* Memory of a device at the start of each of its operations. */
static heddle_status check_memory(const struct check *k, uint64_t *most, uint32_t *flight)
{
    const uint32_t last = k->has_weight ? HEDDLE_PIPELINE_WEIGHT : HEDDLE_PIPELINE_BACKWARD;
    uint32_t *live = flight + k->p->nstages;

    for (size_t i = 0; i < k->nev; i++) {
        const struct event *e = &k->ev[i];
        uint64_t sum = 0;

        if (e->where >= k->p->ndevices)
            break;
        live[e->stage] += e->kind == HEDDLE_PIPELINE_FORWARD;
        if (live[e->stage] > flight[e->stage])
            flight[e->stage] = live[e->stage];
        for (uint32_t s = 0; s < k->p->nstages; s++) {
            const struct heddle_pipeline_stage *st = &k->p->stages[s];

            if (st->device == e->where)
                sum += st->fixed + live[s] * st->saved;
        }
        sum += k->p->stages[e->stage].once;
        if (sum > most[e->where])
            most[e->where] = sum;
        live[e->stage] -= e->kind == last;
    }
    for (uint32_t d = 0; d < k->p->ndevices; d++) {
        if (most[d] > k->m->budget)
            return BAD(k, "device %u needs %llu bytes; the budget is %llu", d,
                       (unsigned long long)most[d], (unsigned long long)k->m->budget);
        if (most[d] != k->p->memory[d])
            return BAD(k, "device %u needs %llu bytes, not %llu as claimed", d,
                       (unsigned long long)most[d], (unsigned long long)k->p->memory[d]);
    }
    for (uint32_t s = 0; s < k->p->nstages; s++)
        if (flight[s] != k->p->stages[s].in_flight)
            return BAD(k, "stage %u has %u micro-batches in it, not %u", s, flight[s],
                       k->p->stages[s].in_flight);
    return HEDDLE_OK;
}

static heddle_status check_claims(const struct check *k)
{
    const struct heddle_pipeline *p = k->p;
    double end = 0, latency = 0, makespan, bubble = 0;

    for (uint32_t j = 0; j < k->nmicro; j++)
        latency = fmax(latency, get(k, 0, j, HEDDLE_PIPELINE_BACKWARD)->end -
                                    get(k, 0, j, HEDDLE_PIPELINE_FORWARD)->start);
    for (uint32_t i = 0; i < p->nops; i++)
        end = fmax(end, p->ops[i].end);
    makespan = p->is_periodic ? end + (p->nmicro - 1) * p->period : end;
    for (size_t i = 0; i < k->nev;) {
        const uint32_t where = k->ev[i].where;
        const double first = k->ev[i].start;
        double busy = 0, last = 0;

        for (; i < k->nev && k->ev[i].where == where; i++) {
            busy += k->ev[i].end - k->ev[i].start;
            last = fmax(last, k->ev[i].end);
        }
        if (p->is_periodic) {
            busy /= k->nmicro;
            last = first + p->period;
        }
        if (where < p->ndevices && last > first)
            bubble = fmax(bubble, 1 - busy / (last - first));
    }
    if (!same(latency, p->latency) || !same(makespan, p->makespan) ||
        (!p->is_periodic && !same(makespan / p->nmicro, p->period)) ||
        !same(1 / p->period, p->throughput) || fabs(bubble - p->bubble) > 1e-9)
        return BAD(k, "latency, makespan, period, throughput or bubble are not "
                      "as claimed");
    if (p->is_periodic && p->period < p->period_bound * (1 - 1e-9))
        return BAD(k, "the period is below its bound");
    return HEDDLE_OK;
}

static heddle_status run(struct check *k)
{
    uint64_t *most;
    uint32_t *flight;

    for (uint32_t i = 0; i < k->p->nstages; i++)
        HEDDLE_TRY(check_stage(k, i));
    HEDDLE_TRY(unroll(k));
    sort_events(k->ev, k->nev);
    HEDDLE_TRY(check_alone(k));
    HEDDLE_TRY(index_events(k));
    for (uint32_t s = 0; s < k->p->nstages; s++)
        for (uint32_t j = 0; j < k->nmicro; j++)
            HEDDLE_TRY(check_order(k, s, j));
    most = heddle_scratch_get(&k->mem, k->p->ndevices, sizeof(*most));
    flight = heddle_scratch_get(&k->mem, 2 * (size_t)k->p->nstages, sizeof(*flight));
    if (most == NULL || flight == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(check_memory(k, most, flight));
    return check_claims(k);
}

heddle_status heddle_pipeline_check(const struct heddle_pipeline_model *model,
                                    const struct heddle_plan_machine *m,
                                    const struct heddle_pipeline *p,
                                    const struct heddle_plan_opts *opts)
{
    struct heddle_pipeline_model own_model;
    struct heddle_plan_machine own_m;
    struct heddle_pipeline own_p;
    struct check k;
    heddle_status st;

    memset(&k, 0, sizeof(k));
    HEDDLE_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_plan_opts, &k.o, opts));
    if (model == NULL || m == NULL || p == NULL)
        return BAD(&k, "there is no model, machine or pipeline");
    HEDDLE_TRY(
        HEDDLE_SIZED_GET(struct heddle_pipeline_model, &own_model, model, k.o.why, k.o.why_bytes));
    HEDDLE_TRY(HEDDLE_SIZED_GET(struct heddle_plan_machine, &own_m, m, k.o.why, k.o.why_bytes));
    HEDDLE_TRY(HEDDLE_SIZED_GET(struct heddle_pipeline, &own_p, p, k.o.why, k.o.why_bytes));
    k.p = &own_p;
    k.c = own_model.chain;
    k.model = &own_model;
    k.m = &own_m;
    if (k.c == NULL || own_p.nstages == 0 || own_p.nmicro == 0 || own_p.nops == 0 ||
        own_p.nstages > MOST_OPS || own_p.ndevices > MOST_OPS)
        return BAD(&k, "there is no model, machine or pipeline");
    k.mem = heddle_scratch_make(k.o.alloc != NULL ? k.o.alloc : &heddle_allocator_default);
    st = run(&k);
    heddle_scratch_drop(&k.mem);
    if (st == HEDDLE_ENOMEM)
        (void)BAD(&k, "no memory for the checker");
    return st;
}
