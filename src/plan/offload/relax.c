/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relax: the bound of joint.c at one operation, with what a repetition
 * needs and with when a copy may begin; and what the relaxation keeps.
 *
 * While operation p runs for the first time, a value that was made before and is
 * needed later is in memory, or on a store, or its operation runs again behind p. An
 * operation that runs again needs each of its inputs in one of these three ways. With m,
 * s and r for them, and W for the time that p begins later than the operations before it
 * take, every plan has
 *
 *     m_v + s_v + r_op(v) >= 1      for v needed behind p
 *     m_u + s_u + r_op(u) >= r_o    for the inputs u of o
 *     sum of bytes m                <= budget - what p has itself
 *     sum of bytes s, made from t on <= out * (before + W - t)      for every t
 *
 * and takes W + sum of time r at least on top of every operation once. For prices of a
 * byte of memory, and of a byte on the link by when it was made, what is left is a
 * minimum cut: each value is held at the lower of its two prices, or its operation
 * runs again and its inputs are asked for. Every flow is a bound, whatever the prices are; they
 * are improved one after the other.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "plan/offload/offload.h"

#define NONE HEDDLE_PLAN_NONE

enum {
    TIMES = 12, /* from which on copies are counted: when the first are made */
    ROUNDS = 3, /* of all prices */
    LOOKS = 12  /* at one price */
};
#define RATE 2e7 /* edges in a second of the time limit: a twentieth of it */

struct edge {
    uint32_t to, next; /* of the same node */
    double room;
};

struct relax {
    const struct heddle_plan_job *job;
    uint32_t at;
    double before, room, out_rate;
    /* values */
    uint8_t *is_free;   /* it is there anyway */
    uint8_t *is_needed; /* behind `at` */
    uint8_t *is_held;   /* by the last cut */
    uint32_t *time_of;  /* the last of time[] by which it was made */
    uint32_t *hold;     /* its edge that holds it; NONE */
    double time[TIMES]; /* increasing */
    uint32_t ntimes;
    /* prices: of memory, and of the link for what is made from time[k] on */
    double price, link[TIMES];
    /* the network: value v is node v, operation o node nvalues + o */
    struct edge *edge; /* and back: number ^ 1 */
    uint32_t nedges, nnodes, source, sink;
    uint32_t *first, *now, *depth, *queue;
    double work, work_max; /* edges looked at */
};

/* The best prices, and the one that is looked at: that of time k, or with is_all those
 * from there on and that of memory. */
struct best {
    double bound, price, link[TIMES];
    uint8_t *is_held;
    uint32_t k;
    bool is_all;
};

/* ---- the network ----------------------------------------------------------------- */

static uint32_t put_edge(struct relax *r, uint32_t from, uint32_t to)
{
    const uint32_t e = r->nedges;

    r->edge[e] = (struct edge){.to = to, .next = r->first[from]};
    r->edge[e + 1] = (struct edge){.to = from, .next = r->first[to]};
    r->first[from] = e;
    r->first[to] = e + 1;
    r->nedges += 2;
    return e;
}

static bool runs_again(const struct heddle_plan_graph *g, uint32_t op)
{
    return op != NONE && (g->ops[op].flags & HEDDLE_PLAN_ONCE) == 0;
}

static void make_network(struct relax *r)
{
    const struct heddle_plan_graph *g = r->job->g;

    for (uint32_t i = 0; i < r->nnodes; i++)
        r->first[i] = NONE;
    for (uint32_t v = 0; v < g->nvalues; v++) {
        const uint32_t op = g->values[v].op;

        r->hold[v] = NONE;
        if (r->is_free[v] || (op != NONE && op >= r->at))
            continue;
        r->hold[v] = put_edge(r, v, runs_again(g, op) ? g->nvalues + op : r->sink);
        if (r->is_needed[v])
            (void)put_edge(r, r->source, v);
    }
    for (uint32_t i = 0; i < r->at; i++) {
        const struct heddle_plan_op *op = &g->ops[i];

        if (!runs_again(g, i))
            continue;
        (void)put_edge(r, g->nvalues + i, r->sink);
        for (uint32_t k = 0; k < op->ninputs; k++) {
            const uint32_t v = g->inputs[op->first_input + k];

            if (!r->is_free[v])
                (void)put_edge(r, g->nvalues + i, v);
        }
    }
}

/* Rooms for the prices at hand. */
static void set_rooms(struct relax *r)
{
    const struct heddle_plan_graph *g = r->job->g;

    for (uint32_t e = 0; e < r->nedges; e += 2) {
        const uint32_t from = r->edge[e ^ 1].to, to = r->edge[e].to;

        r->edge[e ^ 1].room = 0;
        r->edge[e].room = INFINITY;
        if (from >= g->nvalues && from < r->source && to == r->sink)
            r->edge[e].room = g->ops[from - g->nvalues].time;
    }
    for (uint32_t v = 0; v < g->nvalues; v++)
        if (r->hold[v] != NONE)
            r->edge[r->hold[v]].room =
                (double)g->values[v].bytes * fmin(r->price, r->link[r->time_of[v]]);
}

static bool find_depths(struct relax *r)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < r->nnodes; i++)
        r->depth[i] = NONE;
    r->queue[n++] = r->source;
    r->depth[r->source] = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t e = r->first[r->queue[i]]; e != NONE; e = r->edge[e].next) {
            const uint32_t to = r->edge[e].to;

            if (r->depth[to] != NONE || !(r->edge[e].room > 0))
                continue;
            r->depth[to] = r->depth[r->queue[i]] + 1;
            r->queue[n++] = to;
        }
    return r->depth[r->sink] != NONE;
}

/* One path along the depths, r->queue has its edges; what it took. */
static double find_path(struct relax *r)
{
    uint32_t n = 0, node = r->source;
    double most = INFINITY;

    while (node != r->sink) {
        uint32_t e = r->now[node];

        r->work++;
        while (e != NONE && !(r->edge[e].room > 0 && r->depth[r->edge[e].to] == r->depth[node] + 1))
            e = r->edge[e].next;
        r->now[node] = e;
        if (e != NONE) {
            r->queue[n++] = e;
            node = r->edge[e].to;
            continue;
        }
        if (n == 0)
            return 0;
        node = r->edge[r->queue[--n] ^ 1].to; /* a dead end */
        r->now[node] = r->edge[r->now[node]].next;
    }
    for (uint32_t i = 0; i < n; i++)
        most = fmin(most, r->edge[r->queue[i]].room);
    for (uint32_t i = 0; i < n; i++) {
        r->edge[r->queue[i]].room -= most;
        r->edge[r->queue[i] ^ 1].room += most;
    }
    return most;
}

static double flow(struct relax *r)
{
    double sum = 0, more;

    set_rooms(r);
    while (find_depths(r)) {
        r->work += r->nedges;
        memcpy(r->now, r->first, r->nnodes * sizeof(*r->now));
        while ((more = find_path(r)) > 0)
            sum += more;
    }
    return sum;
}

/* ---- prices ------------------------------------------------------------------------ */

/* The bound for the prices at hand, and what its cut holds. */
static double value(struct relax *r)
{
    const struct heddle_plan_graph *g = r->job->g;
    double sum = flow(r) - r->price * r->room;

    for (uint32_t v = 0; v < g->nvalues; v++) {
        const uint32_t e = r->hold[v];

        r->is_held[v] = e != NONE && r->depth[v] != NONE && r->depth[r->edge[e].to] == NONE;
    }
    for (uint32_t k = 0; k < r->ntimes; k++)
        sum -= (r->link[k] - (k > 0 ? r->link[k - 1] : 0)) * r->out_rate * (r->before - r->time[k]);
    return sum;
}

/* Prices from time k on become x, together with that of memory if is_all. */
static void set_price(struct relax *r, uint32_t k, bool is_all, double x)
{
    const double most = r->out_rate > 0 ? 1 / r->out_rate : INFINITY;

    if (!is_all) {
        r->link[k] = x;
        return;
    }
    r->price = x;
    for (uint32_t i = k; i < r->ntimes; i++)
        r->link[i] = fmin(x, most);
}

/* Takes x for a price if that is better than all before; returns the bound. */
static double look(struct relax *r, struct best *b, double x)
{
    double y;

    set_price(r, b->k, b->is_all, x);
    y = value(r);
    if (y > b->bound) {
        b->bound = y;
        b->price = r->price;
        memcpy(b->link, r->link, sizeof(b->link));
        memcpy(b->is_held, r->is_held, r->job->g->nvalues);
    }
    return y;
}

/* One price within lo..hi, by golden section: the bound is concave. */
static void climb(struct relax *r, struct best *b, double lo, double hi)
{
    const double part = 0.3819660112501051;
    double x[2] = {lo + part * (hi - lo), hi - part * (hi - lo)};
    double y[2] = {look(r, b, x[0]), look(r, b, x[1])};

    for (int n = 0; n < LOOKS && lo < hi && r->work < r->work_max; n++) {
        if (y[0] > y[1]) {
            hi = x[1];
            x[1] = x[0];
            y[1] = y[0];
            x[0] = lo + part * (hi - lo);
            y[0] = look(r, b, x[0]);
        } else {
            lo = x[0];
            x[0] = x[1];
            y[0] = y[1];
            x[1] = hi - part * (hi - lo);
            y[1] = look(r, b, x[1]);
        }
    }
    r->price = b->price;
    memcpy(r->link, b->link, sizeof(r->link));
}

/* All at one price, up to where the bound rises no more; then one after the other. */
static void climb_all(struct relax *r, struct best *b)
{
    double hi, bytes = 0, y = -INFINITY, z = 0;

    for (uint32_t v = 0; v < r->job->g->nvalues; v++)
        if (r->hold[v] != NONE)
            bytes += (double)r->job->g->values[v].bytes;
    if (!(bytes > 0) || !(r->before > 0))
        return;
    for (hi = r->before / bytes / 1024; z > y && hi < 1e200; hi *= 2) {
        y = z;
        z = look(r, b, hi);
    }
    climb(r, b, 0, hi);
    for (int i = 0; i < ROUNDS; i++) {
        const double was = b->bound;

        for (uint32_t k = 0; k + 1 < r->ntimes && r->work < r->work_max; k++) {
            b->k = k;
            b->is_all = false;
            climb(r, b, k > 0 ? r->link[k - 1] : 0, r->link[k + 1]);
            b->k = k + 1;
            b->is_all = true;
            climb(r, b, r->link[k], 2 * (r->price > 0 ? r->price : r->before / bytes));
        }
        if (b->bound <= was * (1 + 1e-6))
            break;
    }
}

/* ---- all of it ----------------------------------------------------------------------- */

static heddle_status relax_init(struct relax *r, struct heddle_scratch *mem)
{
    const struct heddle_plan_graph *g = r->job->g;
    const size_t nv = g->nvalues;
    const size_t nedges = 2 * (2 * nv + r->at + (size_t)g->ninputs);

    r->source = g->nvalues + r->at;
    r->sink = r->source + 1;
    r->nnodes = r->sink + 1;
    r->is_free = heddle_scratch_get(mem, 4 * nv, sizeof(*r->is_free));
    r->time_of = heddle_scratch_get(mem, 2 * nv, sizeof(*r->time_of));
    r->edge = heddle_scratch_get(mem, nedges, sizeof(*r->edge));
    r->first = heddle_scratch_get(mem, 4 * (size_t)r->nnodes, sizeof(*r->first));
    if (r->is_free == NULL || r->time_of == NULL || r->edge == NULL || r->first == NULL)
        return HEDDLE_ENOMEM;
    r->is_needed = r->is_free + nv;
    r->is_held = r->is_needed + nv;
    r->hold = r->time_of + nv;
    r->now = r->first + r->nnodes;
    r->depth = r->now + r->nnodes;
    r->queue = r->depth + r->nnodes;
    return HEDDLE_OK;
}

/* Who needs it behind `at`. */
static void find_needed(struct relax *r)
{
    const struct heddle_plan_graph *g = r->job->g;
    const struct heddle_plan_users *u = &r->job->users;
    const struct heddle_plan_op *p = &g->ops[r->at];
    uint8_t *may_go = r->is_held; /* for now */

    for (uint32_t i = 0; i < g->nops; i++)
        if (g->ops[i].inplace != NONE)
            may_go[g->ops[i].inplace] = 1;
    for (uint32_t v = 0; v < g->nvalues; v++) {
        const struct heddle_plan_value *x = &g->values[v];
        const uint32_t n = u->first[v + 1];

        r->is_free[v] = x->bytes == 0 || (x->op == NONE && !heddle_plan_is_initial(x));
        r->is_needed[v] = (x->flags & HEDDLE_PLAN_RESULT) != 0 || (x->op == NONE && !may_go[v]) ||
                          (n > u->first[v] && u->user[n - 1] > r->at);
    }
    for (uint32_t i = 0; i < p->ninputs; i++)
        r->is_free[g->inputs[p->first_input + i]] = 1;
}

/* The times from which on copies are counted. */
static void find_times(struct relax *r, const double *end)
{
    const struct heddle_plan_graph *g = r->job->g;

    r->time[0] = 0;
    r->ntimes = 1;
    for (uint32_t i = 0; i < r->at && r->ntimes < TIMES; i++) {
        const struct heddle_plan_op *op = &g->ops[i];

        for (uint32_t k = 0; k < op->nvalues; k++)
            if (!r->is_free[op->first_value + k] && end[i] > r->time[r->ntimes - 1]) {
                r->time[r->ntimes++] = end[i];
                break;
            }
    }
    for (uint32_t v = 0; v < g->nvalues; v++) {
        const uint32_t op = g->values[v].op;
        uint32_t k = 0;

        while (op != NONE && op < r->at && k + 1 < r->ntimes && r->time[k + 1] <= end[op])
            k++;
        r->time_of[v] = k;
    }
}

static heddle_status relax(struct relax *r, struct best *b, const double *end,
                           struct heddle_scratch *mem)
{
    HEDDLE_TRY(relax_init(r, mem));
    b->is_held = r->is_held + r->job->g->nvalues;
    find_needed(r);
    find_times(r, end);
    make_network(r);
    climb_all(r, b);
    return HEDDLE_OK;
}

heddle_status heddle_plan_joint_relax(const struct heddle_plan_job *job, uint32_t at, double *bound,
                                      uint8_t *is_held)
{
    const struct heddle_plan_graph *g = job->g;
    const uint64_t own = at < g->nops ? heddle_plan_op_bytes(g, at, g->ops[at].nvalues > 0) : 0;
    struct heddle_scratch mem = heddle_scratch_make(job->opts.base.alloc);
    struct best b = {.is_all = true};
    struct relax r = {.job = job,
                      .at = at,
                      .work_max = RATE * job->opts.time_limit_s,
                      .room = (double)job->m->budget - (double)own,
                      .out_rate = job->m->host.out_rate + job->m->disk.out_rate};
    double *end, all = 0;
    heddle_status st = HEDDLE_ENOMEM;

    if (at >= g->nops || own > job->m->budget)
        return HEDDLE_OK;
    end = heddle_scratch_get(&mem, g->nops, sizeof(*end));
    for (uint32_t i = 0; i < g->nops && end != NULL; i++) {
        r.before = i == at ? all : r.before;
        all += g->ops[i].time;
        end[i] = all;
    }
    if (end != NULL)
        st = relax(&r, &b, end, &mem);
    if (st == HEDDLE_OK) {
        /* sums of doubles: stay below the exact value */
        *bound = fmax(*bound, (all + b.bound) * (1 - 1e-10));
        if (is_held != NULL)
            memcpy(is_held, b.is_held, g->nvalues);
    }
    heddle_scratch_drop(&mem);
    return st;
}
