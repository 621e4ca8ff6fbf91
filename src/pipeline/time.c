/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * time: schedules, a start for everything.
 *
 * Periodic: from the last stage to the first, forwards as late and backwards as
 * early as the resource allows modulo the period. For partitions with one stage on
 * a device these are the least delays of part.c. Flush: each device has
 * its order of operations, and each begins as soon as it can.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "pipeline/pipeline.h"

/* ---- periodic -------------------------------------------------------------- */

struct busy {
    double start, len; /* start in [0, T) */
};

/* Distance from a up to b, modulo T, in [0, T). */
static double ahead(double a, double b, double period)
{
    double d = fmod(b - a, period);

    if (d < 0)
        d += period;
    return d > period * (1 - HEDDLE_PL_EPS) || d < period * HEDDLE_PL_EPS ? 0 : d;
}

/* Whether [x, x + len) meets an interval modulo T; which one. */
static const struct busy *meets(const struct busy *v, uint32_t n, double x, double len,
                                double period)
{
    const double slack = period * 1e-10;

    for (uint32_t i = 0; i < n; i++) {
        const double d = ahead(v[i].start, x, period);

        if (v[i].len <= slack || len <= slack)
            continue;
        if (d < v[i].len - slack || d + len > period + slack)
            return &v[i];
    }
    return NULL;
}

struct placer {
    double period;
    struct busy *busy; /* [2 * nstages + ...] all resources */
    uint32_t nbusy[2 * HEDDLE_PL_DEVICES];
    uint32_t first[2 * HEDDLE_PL_DEVICES];
};

/* The latest (dir < 0) start <= x, or the earliest >= x, of the resource. */
static bool place(struct placer *q, uint32_t res, double x, double len, int dir, double *out)
{
    struct busy *v = &q->busy[q->first[res]];
    const double from = x;

    if (len > q->period * (1 + 1e-10))
        return false;
    for (const struct busy *hit; (hit = meets(v, q->nbusy[res], x, len, q->period)) != NULL;) {
        double shift;

        if (dir < 0)
            shift = -ahead(hit->start - len, x, q->period);
        else
            shift = ahead(x, hit->start + hit->len, q->period);
        if (shift == 0)
            return false; /* it does not fit at all */
        x += shift;
        if (fabs(x - from) > q->period * (1 + 1e-10))
            return false;
    }
    v[q->nbusy[res]++] = (struct busy){ahead(0, x, q->period), len};
    *out = x;
    return true;
}

struct starts {
    double f, b, send, back;
};

static bool place_stage(struct placer *q, const struct heddle_pl *p,
                        const struct heddle_pl_part *part, uint32_t s, double f_limit,
                        double b_limit, struct starts *at)
{
    const struct heddle_pipeline_stage *st = &part->stage[s];
    const uint32_t link = p->ndevices + s;

    if (st->send > 0) {
        if (!place(q, link, f_limit - st->send, st->send, -1, &at->send) ||
            !place(q, link, b_limit, st->send, 1, &at->back))
            return false;
        f_limit = at->send;
        b_limit = at->back + st->send;
    }
    return place(q, st->device, f_limit - st->forward, st->forward, -1, &at->f) &&
           place(q, st->device, b_limit, st->backward, 1, &at->b);
}

/* Of micro-batches 0 .. n - 1, those between start and end at time x. */
static uint64_t live_at(double start, double end, double x, double period, uint32_t n)
{
    const double eps = 1e-9;
    const double hi = fmin(n, floor((x - start) / period + eps) + 1);
    const double lo = fmax(0, floor((x - end) / period + eps) + 1);

    return hi > lo ? (uint64_t)(hi - lo) : 0;
}

/* Memory of the device of stage `which` when it begins something at time x. */
static uint64_t memory_at(const struct heddle_pl *p, const struct heddle_pl_part *part,
                          const struct starts *at, double period, uint32_t which, double x)
{
    uint64_t sum = part->stage[which].once;

    for (uint32_t s = 0; s < part->n; s++) {
        const struct heddle_pipeline_stage *st = &part->stage[s];

        if (st->device == part->stage[which].device)
            sum = heddle_pl_add(
                sum, heddle_pl_add(st->fixed, heddle_pl_mul(live_at(at[s].f, at[s].b + st->backward,
                                                                    x, period, p->nmicro),
                                                            st->saved)));
    }
    return sum;
}

static void fill_memory(const struct heddle_pl *p, struct heddle_pl_part *part,
                        const struct starts *at, double period, struct heddle_pl_times *t)
{
    double turns;

    memset(t->memory, 0, sizeof(t->memory));
    for (uint32_t s = 0; s < part->n; s++) {
        struct heddle_pipeline_stage *st = &part->stage[s];
        const double delay = at[s].b + st->backward - at[s].f;
        double g = ceil(delay / period - 1e-9);

        g = g < 1 ? 1 : g;
        st->in_flight = g < p->nmicro ? (uint32_t)g : p->nmicro;
        st->fixed = heddle_pl_fixed(p, st->first, st->last, st->in_flight);
    }
    t->fits = true;
    turns = ceil((at[0].b - at[0].f) / period) + 2;
    for (uint32_t s = 0; s < part->n; s++)
        for (uint32_t k = 0; k < 2 * turns && k < 2 * p->nmicro; k++) {
            const uint32_t d = part->stage[s].device;
            const uint64_t m = memory_at(p, part, at, period, s,
                                         (k % 2 == 0 ? at[s].f : at[s].b) + k / 2 * period);

            t->memory[d] = m > t->memory[d] ? m : t->memory[d];
            t->fits &= m <= p->budget;
        }
}

static void add_op(struct heddle_pl_times *t, uint32_t stage, uint32_t micro, uint32_t kind,
                   double start, double len)
{
    t->op[t->n++] = (struct heddle_pipeline_op){
        .stage = stage, .micro = micro, .kind = kind, .start = start, .end = start + len};
}

bool heddle_pl_time_periodic(const struct heddle_pl *p, struct heddle_pl_part *part, double period,
                             struct heddle_pl_times *t)
{
    struct busy busy[4 * HEDDLE_PL_DEVICES];
    struct starts at[HEDDLE_PL_DEVICES];
    struct placer q = {.period = period, .busy = busy};
    uint32_t n = 0;

    memset(at, 0, sizeof(at));
    for (uint32_t r = 0; r < p->ndevices + part->n; r++) {
        q.first[r] = n;
        for (uint32_t s = 0; s < part->n; s++)
            n += 2 * (r < p->ndevices ? part->stage[s].device == r : s == r - p->ndevices);
    }
    for (uint32_t s = part->n; s-- > 0;)
        if (!place_stage(&q, p, part, s, s + 1 < part->n ? at[s + 1].f : 0,
                         s + 1 < part->n ? at[s + 1].b + part->stage[s + 1].backward : 0, &at[s]))
            return false;
    fill_memory(p, part, at, period, t);
    t->n = 0;
    for (uint32_t s = 0; s < part->n; s++) {
        const struct heddle_pipeline_stage *st = &part->stage[s];
        const double zero = at[0].f;

        add_op(t, s, 0, HEDDLE_PIPELINE_FORWARD, at[s].f - zero, st->forward);
        add_op(t, s, 0, HEDDLE_PIPELINE_BACKWARD, at[s].b - zero, st->backward);
        if (st->send > 0) {
            add_op(t, s, 0, HEDDLE_PIPELINE_SEND, at[s].send - zero, st->send);
            add_op(t, s, 0, HEDDLE_PIPELINE_BACK, at[s].back - zero, st->send);
        }
    }
    return true;
}

/* ---- flush ----------------------------------------------------------------- */

struct todo {
    uint32_t kind, micro;
};
/* What waits for a link, in the order in which it is ready. */
struct parcel {
    double ready;
    uint32_t kind, micro;
};

struct flush {
    const struct heddle_pl *p;
    struct heddle_pl_part *part;
    enum heddle_pl_order order;
    struct heddle_pl_times *t;
    struct todo *todo;     /* [stage * 3 * nmicro ...] in the order of the stage */
    double *input[2];      /* [stage * nmicro + micro] when what a forward (0) or
                           backward (1) reads is there; INFINITY: not yet */
    struct parcel *parcel; /* [link * 2 * nmicro ...] */
    uint32_t nposted[HEDDLE_PL_DEVICES], nsent[HEDDLE_PL_DEVICES];
    uint32_t next[HEDDLE_PL_DEVICES], ntodo;
    double free_at[HEDDLE_PL_DEVICES], link_at[HEDDLE_PL_DEVICES];
    double end;
};

/* Warm-up forwards; then rounds of a forward, a backward, and the gradient of
 * weights `lag` micro-batches behind. */
static void make_order(struct flush *f, uint32_t s)
{
    const uint32_t m = f->p->nmicro, behind = f->part->n - 1 - s;
    const bool is_zb = f->order >= HEDDLE_PL_ZB1;
    struct todo *out = &f->todo[(size_t)s * f->ntodo];
    const uint32_t lag = f->order == HEDDLE_PL_ZB2 ? 2 * s : s;
    uint32_t warm = f->order == HEDDLE_PL_ZB2 ? 2 * behind : behind;
    size_t n = 0;

    if (f->order == HEDDLE_PL_ALL_FORWARD || warm > m)
        warm = m;
    for (uint32_t j = 0; j < warm; j++)
        out[n++] = (struct todo){HEDDLE_PIPELINE_FORWARD, j};
    for (uint32_t j = 0; n < f->ntodo; j++) {
        if (warm + j < m)
            out[n++] = (struct todo){HEDDLE_PIPELINE_FORWARD, warm + j};
        if (j < m)
            out[n++] = (struct todo){HEDDLE_PIPELINE_BACKWARD, j};
        if (is_zb && j >= lag && j - lag < m)
            out[n++] = (struct todo){HEDDLE_PIPELINE_WEIGHT, j - lag};
    }
}

/* When the next operation of a stage can begin; INFINITY: not known yet. */
static double can_begin(const struct flush *f, uint32_t s)
{
    const struct todo *d;
    double at = f->free_at[s];

    if (f->next[s] == f->ntodo)
        return INFINITY;
    d = &f->todo[(size_t)s * f->ntodo + f->next[s]];
    if (d->kind != HEDDLE_PIPELINE_WEIGHT) {
        const size_t i = (size_t)s * f->p->nmicro + d->micro;
        const double in = f->input[d->kind == HEDDLE_PIPELINE_BACKWARD ? 1 : 0][i];

        at = in > at ? in : at;
    }
    return at;
}

static void post(struct flush *f, uint32_t link, uint32_t kind, uint32_t micro, double ready)
{
    struct parcel *v = &f->parcel[(size_t)link * 2 * f->p->nmicro];
    uint32_t at = f->nposted[link]++;

    for (; at > f->nsent[link] && v[at - 1].ready > ready; at--)
        v[at] = v[at - 1];
    v[at] = (struct parcel){ready, kind, micro};
}

/* It has arrived where it goes: an input of a forward or of a backward. */
static void arrive(struct flush *f, uint32_t link, uint32_t kind, uint32_t micro, double when)
{
    const size_t m = f->p->nmicro;

    if (kind == HEDDLE_PIPELINE_SEND)
        f->input[0][(link + 1) * m + micro] = when;
    else
        f->input[1][link * m + micro] = when;
}

static double can_send(const struct flush *f, uint32_t link)
{
    const struct parcel *x = &f->parcel[(size_t)link * 2 * f->p->nmicro + f->nsent[link]];

    if (f->nsent[link] == f->nposted[link])
        return INFINITY;
    return x->ready > f->link_at[link] ? x->ready : f->link_at[link];
}

static void send_one(struct flush *f, uint32_t link, double start)
{
    const struct parcel x = f->parcel[(size_t)link * 2 * f->p->nmicro + f->nsent[link]++];
    const double len = f->part->stage[link].send;

    add_op(f->t, link, x.micro, x.kind, start, len);
    f->link_at[link] = start + len;
    arrive(f, link, x.kind, x.micro, start + len);
}

/* What a stage made goes to its neighbour, over a link if there is one. */
static void pass_on(struct flush *f, uint32_t link, uint32_t kind, uint32_t micro, double ready)
{
    if (f->part->stage[link].send > 0)
        post(f, link, kind, micro, ready);
    else
        arrive(f, link, kind, micro, ready);
}

static void run_one(struct flush *f, uint32_t s, double start)
{
    const struct heddle_pipeline_stage *st = &f->part->stage[s];
    const struct todo d = f->todo[(size_t)s * f->ntodo + f->next[s]++];
    double len = st->forward, end;

    if (d.kind == HEDDLE_PIPELINE_BACKWARD)
        len = f->order >= HEDDLE_PL_ZB1 ? st->backward - st->weight : st->backward;
    else if (d.kind == HEDDLE_PIPELINE_WEIGHT)
        len = st->weight;
    add_op(f->t, s, d.micro, d.kind, start, len);
    f->free_at[s] = end = start + len;
    f->end = end > f->end ? end : f->end;
    if (d.kind == HEDDLE_PIPELINE_FORWARD && s + 1 < f->part->n)
        pass_on(f, s, HEDDLE_PIPELINE_SEND, d.micro, end);
    else if (d.kind == HEDDLE_PIPELINE_FORWARD)
        f->input[1][(size_t)s * f->p->nmicro + d.micro] = end;
    else if (d.kind == HEDDLE_PIPELINE_BACKWARD && s > 0)
        pass_on(f, s - 1, HEDDLE_PIPELINE_BACK, d.micro, end);
}

/* Whatever can begin first, a copy before an operation: everything that comes
 * later is ready later, so links take what is ready first. */
static bool run_next(struct flush *f)
{
    double at = INFINITY;
    uint32_t who = 0;
    bool is_link = false;

    for (uint32_t k = 0; k < f->part->n; k++) {
        const double op = can_begin(f, k), copy = can_send(f, k);

        if (copy < at || (copy == at && copy < INFINITY && !is_link)) {
            at = copy;
            who = k;
            is_link = true;
        }
        if (op < at) {
            at = op;
            who = k;
            is_link = false;
        }
    }
    if (!(at < INFINITY))
        return false;
    if (is_link)
        send_one(f, who, at);
    else
        run_one(f, who, at);
    return true;
}

/* Micro-batches in a stage, at most: in the order of its operations. */
static void count_in_flight(struct flush *f)
{
    const uint32_t last =
        f->order >= HEDDLE_PL_ZB1 ? HEDDLE_PIPELINE_WEIGHT : HEDDLE_PIPELINE_BACKWARD;

    memset(f->t->memory, 0, sizeof(f->t->memory));
    f->t->fits = true;
    for (uint32_t s = 0; s < f->part->n; s++) {
        struct heddle_pipeline_stage *st = &f->part->stage[s];
        uint32_t now = 0, most = 0;
        uint64_t m;

        for (uint32_t i = 0; i < f->ntodo; i++) {
            const uint32_t kind = f->todo[(size_t)s * f->ntodo + i].kind;

            now += kind == HEDDLE_PIPELINE_FORWARD;
            most = now > most ? now : most;
            now -= kind == last;
        }
        st->in_flight = most;
        st->fixed = heddle_pl_fixed(f->p, st->first, st->last, most);
        m = heddle_pl_add(heddle_pl_add(st->fixed, st->once), heddle_pl_mul(most, st->saved));
        f->t->memory[st->device] = m;
        f->t->fits &= m <= f->p->budget;
    }
}

heddle_status heddle_pl_time_flush(const struct heddle_pl *p, struct heddle_pl_part *part,
                                   enum heddle_pl_order order, struct heddle_pl_times *t,
                                   double *end_out)
{
    struct heddle_scratch mem = heddle_scratch_make(p->o.base.alloc);
    const size_t cells = (size_t)part->n * p->nmicro;
    struct flush f = {.p = p, .part = part, .order = order, .t = t};

    f.ntodo = (order >= HEDDLE_PL_ZB1 ? 3 : 2) * p->nmicro;
    f.todo = heddle_scratch_get(&mem, (size_t)part->n * f.ntodo, sizeof(*f.todo));
    f.input[0] = heddle_scratch_get(&mem, 2 * cells, sizeof(double));
    f.parcel = heddle_scratch_get(&mem, 2 * cells, sizeof(*f.parcel));
    if (f.todo == NULL || f.input[0] == NULL || f.parcel == NULL) {
        heddle_scratch_drop(&mem);
        return HEDDLE_PLAN_FAIL(&p->o.base, HEDDLE_ENOMEM, "no memory for the schedule");
    }
    f.input[1] = f.input[0] + cells;
    for (size_t i = p->nmicro; i < 2 * cells; i++)
        f.input[0][i] = INFINITY;
    for (uint32_t s = 0; s < part->n; s++)
        make_order(&f, s);
    t->n = 0;
    while (run_next(&f))
        ;
    count_in_flight(&f);
    *end_out = f.end;
    heddle_scratch_drop(&mem);
    return HEDDLE_OK;
}
