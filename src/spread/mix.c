/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mix: several routes at once, at the rates of the linear program.
 *
 * Pool      all routes of up to two cuts, and any route that the cheapest cut finds.
 * Weights   where a memory is too small for what the routes need together, each operator's weights
 *           are kept there or not, before routes are looked for: by what keeping them saves per
 *           byte at the prices without limits, or as the best route of up to two cuts has them.
 * Latency   with slack, the routes that take longest are left out as long as the period allows.
 */
#include <string.h>

#include "base/assert.h"
#include "base/sort.h"
#include "spread/spread.h"

#define MIX_GAP 1e-7
enum { MIX_BLOCK = 1024, MIX_ROUNDS = 400, MIX_TRIES = 24 };

struct block {
    struct block *next;
    uint32_t n;
    struct spread_chain chain[MIX_BLOCK];
    double latency[MIX_BLOCK];
    double *load; /* [MIX_BLOCK x nresources] */
};

struct mix {
    const struct spread_problem *p;
    struct heddle_scratch *mem;
    const uint8_t *weights; /* NULL: all are kept */
    struct block *pool;
    struct spread_route scratch;
    double least;                /* of the latencies */
    struct spread_program *base; /* without limits of memory */
};

/* Streams what the table says. False: an operator must not be where the route has it. */
static bool mix_stream(const struct mix *x, struct spread_route *r)
{
    const struct spread_problem *p = x->p;

    for (uint32_t i = 0; i < p->g.nops && x->weights != NULL; i++) {
        const uint8_t w = x->weights[(size_t)i * p->m.nnodes + p->m.node[r->cls[i]]];

        if (w == SPREAD_NOT_HERE)
            return false;
        r->is_streamed[i] = w == SPREAD_STREAMED;
    }
    return x->weights == NULL || heddle_spread_measure(p, r);
}

static heddle_status mix_collect(void *user, const struct spread_chain *c, struct spread_route *r)
{
    struct mix *x = user;
    const uint32_t n = x->p->nresources;
    struct block *b = x->pool;

    if (!mix_stream(x, r))
        return HEDDLE_OK;
    if (b == NULL || b->n == MIX_BLOCK) {
        b = heddle_scratch_raw(x->mem, 1, sizeof(*b));
        if (b == NULL)
            return HEDDLE_ENOMEM;
        *b = (struct block){.next = x->pool};
        b->load = heddle_scratch_raw(x->mem, (size_t)MIX_BLOCK * n, sizeof(*b->load));
        if (b->load == NULL)
            return HEDDLE_ENOMEM;
        x->pool = b;
    }
    b->chain[b->n] = *c;
    b->latency[b->n] = r->latency;
    memcpy(b->load + (size_t)b->n * n, r->load, n * sizeof(*b->load));
    b->n++;
    x->least = fmin(x->least, r->latency);
    return HEDDLE_OK;
}

/* The route of the pool that costs least at these prices; INFINITY: none is that short. */
static double mix_price(const struct mix *x, const double *price, double latency,
                        struct spread_chain *out)
{
    const uint32_t n = x->p->nresources;
    double least = INFINITY;

    for (const struct block *b = x->pool; b != NULL; b = b->next)
        for (uint32_t i = 0; i < b->n; i++) {
            double sum = 0.0;

            if (b->latency[i] > latency)
                continue;
            for (uint32_t k = 0; k < n; k++)
                sum += price[k] * b->load[(size_t)i * n + k];
            if (sum < least) {
                least = sum;
                *out = b->chain[i];
            }
        }
    return least;
}

/* Every operator where it is fastest: a route when no route of the pool can run. */
static heddle_status mix_add_fastest(struct mix *x, struct spread_program *lp)
{
    const struct spread_problem *p = x->p;
    struct spread_route *r = &x->scratch;

    memset(r->is_streamed, 0, p->g.nops);
    for (uint32_t i = 0; i < p->g.nops; i++) {
        double least = INFINITY;

        for (uint32_t c = 0; c < p->m.nclasses; c++) {
            const uint8_t w = x->weights == NULL
                                  ? SPREAD_KEPT
                                  : x->weights[(size_t)i * p->m.nnodes + p->m.node[c]];
            const double t = p->load[(size_t)i * p->m.nclasses + c];

            if (w != SPREAD_NOT_HERE && t < least) {
                least = t;
                r->cls[i] = c;
            }
        }
        if (!(least < INFINITY))
            return HEDDLE_EOVERFLOW;
    }
    if (!heddle_spread_measure(p, r) || !mix_stream(x, r))
        return HEDDLE_EOVERFLOW;
    return heddle_spread_add(lp, r);
}

static heddle_status mix_add(struct mix *x, struct spread_program *lp, const struct spread_chain *c)
{
    struct spread_route *r = &x->scratch;

    heddle_spread_chain_classes(x->p, c, r->cls);
    memset(r->is_streamed, 0, x->p->g.nops);
    if (!heddle_spread_measure(x->p, r) || !mix_stream(x, r))
        return HEDDLE_EOVERFLOW;
    return heddle_spread_add(lp, r);
}

/* The program over the routes of the pool that take no longer; without a limit, over all. No such
 * route: *out is NULL. */
static heddle_status mix_solve(struct mix *x, double latency, struct heddle_scratch *mem,
                               struct spread_program **out)
{
    double price[SPREAD_RESOURCES];
    struct spread_program *lp = NULL;
    struct spread_chain c;
    heddle_status st;
    bool any;

    *out = NULL;
    for (uint32_t k = 0; k < x->p->nresources; k++)
        price[k] = 1.0;
    HEDDLE_TRY(heddle_spread_program(x->p, mem, &lp));
    any = mix_price(x, price, latency, &c) < INFINITY;
    st = any ? mix_add(x, lp, &c) : latency < INFINITY ? HEDDLE_EOVERFLOW : mix_add_fastest(x, lp);
    for (unsigned round = 0; round < MIX_ROUNDS && st == HEDDLE_OK; round++) {
        *out = lp;
        if (!heddle_spread_solve(lp))
            break;
        heddle_spread_prices(lp, price);
        if (mix_price(x, price, latency, &c) >= 1.0 - MIX_GAP)
            break;
        st = mix_add(x, lp, &c);
    }
    if (st == HEDDLE_ENOMEM)
        return st;
    if (*out != NULL && !(latency < INFINITY) && x->p->m.nnodes <= 2)
        return heddle_spread_grow(lp, x->weights, NULL);
    return HEDDLE_OK;
}

/* --- which weights are kept --------------------------------------------------------------- */

/* Do the weights of all routes fit, when none is streamed? */
static bool mix_fits(const struct spread_problem *p, const struct spread_set *s)
{
    for (uint32_t k = 0; k < p->m.nnodes; k++) {
        const uint64_t limit = p->m.memory[k].bytes;
        uint64_t sum = 0;

        for (uint32_t i = 0; i < p->g.nops; i++) {
            bool is_here = false;

            for (uint32_t j = 0; j < s->n; j++)
                is_here |= p->m.node[s->route[j].cls[i]] == k;
            sum += is_here ? spread_weights(p, i) : 0;
        }
        if (limit != 0 && sum > limit)
            return false;
    }
    return true;
}

/* For each operator in a memory: KEPT as given; the others streamed where two fit beside. */
static void mix_others(const struct spread_problem *p, uint32_t node, uint8_t *weights)
{
    const uint64_t limit = p->m.memory[node].bytes;
    uint64_t kept = 0;

    for (uint32_t i = 0; i < p->g.nops; i++)
        if (weights[(size_t)i * p->m.nnodes + node] == SPREAD_KEPT)
            kept += spread_weights(p, i);
    for (uint32_t i = 0; i < p->g.nops; i++)
        if (spread_weights(p, i) == 0)
            weights[(size_t)i * p->m.nnodes + node] = SPREAD_KEPT;
        else if (weights[(size_t)i * p->m.nnodes + node] != SPREAD_KEPT)
            weights[(size_t)i * p->m.nnodes + node] =
                node != 0 && 2 * spread_weights(p, i) <= limit - kept ? SPREAD_STREAMED
                                                                      : SPREAD_NOT_HERE;
}

/* What keeping the weights of an operator in a memory saves, per byte, at the prices. */
static double mix_gain(const struct spread_problem *p, const double *price, uint32_t op,
                       uint32_t node)
{
    double here = INFINITY, there = INFINITY;

    for (uint32_t r = 0; r < p->m.nclasses; r++) {
        const double t = p->load[(size_t)op * p->m.nclasses + r];
        double *least = p->m.node[r] == node ? &here : &there;

        if (t < INFINITY)
            *least = fmin(*least, price[r] * t);
    }
    if (!(here < INFINITY))
        return 0.0;
    return (there < INFINITY ? there - here : 1e300) / (double)(spread_weights(p, op) + 1);
}

/* The operators that save most per byte, as long as the heaviest of the others can be streamed. */
static heddle_status mix_keep_best(struct mix *x, uint32_t node, uint8_t *weights)
{
    const struct spread_problem *p = x->p;
    const uint32_t n = p->g.nops, nn = p->m.nnodes;
    struct heddle_pair *pair = heddle_scratch_get(x->mem, n, sizeof(*pair));
    struct heddle_pair *tmp = heddle_scratch_get(x->mem, n, sizeof(*tmp));
    double price[SPREAD_RESOURCES];
    uint64_t kept = 0, heaviest = 0;

    if (pair == NULL || tmp == NULL)
        return HEDDLE_ENOMEM;
    heddle_spread_prices(x->base, price);
    for (uint32_t i = 0; i < n; i++) {
        const double gain = fmax(mix_gain(p, price, i, node), 0.0);
        uint64_t key;

        memcpy(&key, &gain, sizeof(key)); /* of a number >= 0: in the same order */
        pair[i] = (struct heddle_pair){~key, i};
        weights[(size_t)i * nn + node] = SPREAD_STREAMED;
    }
    heddle_sort_pairs(pair, tmp, n);
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t w = spread_weights(p, (uint32_t)pair[i].idx);

        if (kept + w <= p->m.memory[node].bytes) {
            weights[pair[i].idx * nn + node] = SPREAD_KEPT;
            kept += w;
        } else if (w > heaviest) {
            heaviest = w;
        }
    }
    for (uint32_t i = n; i-- > 0 && node != 0;) { /* make room for two that are streamed */
        const uint64_t w = spread_weights(p, (uint32_t)pair[i].idx);
        uint8_t *at = &weights[pair[i].idx * nn + node];

        if (kept + 2 * heaviest <= p->m.memory[node].bytes || 2 * w > p->m.memory[node].bytes ||
            2 * heaviest > p->m.memory[node].bytes)
            continue;
        if (*at == SPREAD_KEPT && w > 0) {
            *at = SPREAD_STREAMED;
            kept -= w;
            heaviest = w > heaviest ? w : heaviest;
        }
    }
    mix_others(p, node, weights);
    return HEDDLE_OK;
}

struct fitting {
    const struct spread_problem *p;
    struct spread_route best;
};

static heddle_status mix_best_fit(void *user, const struct spread_chain *c, struct spread_route *r)
{
    struct fitting *f = user;

    (void)c;
    if (r->period < f->best.period && heddle_spread_fit(f->p, r) && r->period < f->best.period)
        heddle_spread_copy(f->p, &f->best, r);
    return HEDDLE_OK;
}

/* A table of weights; way 0: by prices, 1: as the best route of up to two cuts. NULL: none. */
static heddle_status mix_weights(struct mix *x, unsigned way, uint8_t **out)
{
    const struct spread_problem *p = x->p;
    const uint32_t nn = p->m.nnodes;
    uint8_t *w = heddle_scratch_get(x->mem, (size_t)p->g.nops * nn, 1);
    struct fitting f = {.p = p};

    *out = NULL;
    if (w == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(heddle_spread_route(p, x->mem, &f.best));
    if (way == 1)
        HEDDLE_TRY(heddle_spread_each_chain(p, x->mem, mix_best_fit, &f));
    if (way == 1 && !(f.best.period < INFINITY))
        return HEDDLE_OK;
    for (uint32_t k = 0; k < nn; k++) {
        if (p->m.memory[k].bytes == 0)
            continue;
        if (way == 0) {
            HEDDLE_TRY(mix_keep_best(x, k, w));
            continue;
        }
        for (uint32_t i = 0; i < p->g.nops; i++)
            if (p->m.node[f.best.cls[i]] != k || f.best.is_streamed[i])
                w[(size_t)i * nn + k] = SPREAD_STREAMED;
        mix_others(p, k, w);
    }
    *out = w;
    return HEDDLE_OK;
}

/* --- the method ------------------------------------------------------------------------------- */

static heddle_status mix_pool(struct mix *x, const uint8_t *weights)
{
    x->weights = weights;
    x->pool = NULL;
    x->least = INFINITY;
    return heddle_spread_each_chain(x->p, x->mem, mix_collect, x);
}

/* Weights that fit, with the shortest period; *lp_out NULL: there are none. */
static heddle_status mix_within(struct mix *x, struct spread_program **lp_out)
{
    double best = INFINITY;
    struct mix kept = *x;

    *lp_out = NULL;
    for (unsigned way = 0; way < 2; way++) {
        struct spread_program *lp = NULL;
        uint8_t *weights;

        HEDDLE_TRY(mix_weights(x, way, &weights));
        if (weights == NULL)
            continue;
        HEDDLE_TRY(mix_pool(x, weights));
        HEDDLE_TRY(mix_solve(x, INFINITY, x->mem, &lp));
        if (lp != NULL && heddle_spread_period(lp) < best) {
            best = heddle_spread_period(lp);
            kept = *x;
            *lp_out = lp;
        }
    }
    *x = kept;
    return HEDDLE_OK;
}

/* The least latency with which the period is short enough, to some part. */
static heddle_status mix_short(struct mix *x, double period, struct heddle_scratch *mem,
                               struct spread_program **lp_out)
{
    double low = x->least, high = INFINITY, top = 0.0;
    struct spread_program *lp;

    for (const struct block *b = x->pool; b != NULL; b = b->next)
        for (uint32_t i = 0; i < b->n; i++)
            top = fmax(top, b->latency[i]);
    for (unsigned i = 0; i < MIX_TRIES; i++) {
        const double try = i == 0 ? low : i == 1 ? top : sqrt(low * high);
        struct heddle_scratch tmp = heddle_scratch_make(mem->a);
        const heddle_status st = mix_solve(x, try, &tmp, &lp);
        const bool is_short = st == HEDDLE_OK && lp != NULL &&
                              heddle_spread_period(lp) <= period * (1.0 + x->p->o.slack);

        heddle_scratch_drop(&tmp);
        HEDDLE_TRY(st);
        if (is_short)
            high = try;
        else
            low = try;
        if ((is_short && i == 0) || (!is_short && i == 1))
            break;
    }
    if (high < INFINITY)
        return mix_solve(x, high, mem, lp_out);
    return HEDDLE_OK;
}

static double mix_latency(const struct spread_set *s)
{
    double most = 0.0;

    for (uint32_t i = 0; i < s->n; i++)
        most = fmax(most, s->route[i].latency);
    return most;
}

/* The best spread without limits of memory: of all routes, or of the pool where there is more than
 * one far memory. */
static heddle_status mix_free(struct mix *x)
{
    x->base = x->p->all;
    if (x->p->m.nnodes <= 2 && !(x->p->o.slack > 0.0))
        return HEDDLE_OK;
    HEDDLE_TRY(mix_pool(x, NULL));
    if (x->p->m.nnodes > 2)
        return mix_solve(x, INFINITY, x->mem, &x->base);
    return HEDDLE_OK;
}

static heddle_status mix_run(const struct spread_problem *p, struct heddle_scratch *mem,
                             struct spread_set *out)
{
    struct mix x = {.p = p, .mem = mem};
    struct spread_program *lp, *fast = NULL;
    struct spread_set faster;

    HEDDLE_TRY(heddle_spread_route(p, mem, &x.scratch));
    HEDDLE_TRY(mix_free(&x));
    if (x.base == NULL)
        return SPREAD_FAIL(p, HEDDLE_ENOENT, "the method found no spread that fits");
    HEDDLE_TRY(heddle_spread_take(x.base, mem, out));
    lp = x.base;
    if (!mix_fits(p, out))
        HEDDLE_TRY(mix_within(&x, &lp));
    if (lp == NULL)
        return SPREAD_FAIL(p, HEDDLE_ENOENT, "the method found no spread that fits");
    if (p->o.slack > 0.0)
        HEDDLE_TRY(mix_short(&x, heddle_spread_period(lp), mem, &fast));
    HEDDLE_TRY(heddle_spread_take(lp, mem, out));
    if (fast == NULL)
        return HEDDLE_OK;
    HEDDLE_TRY(heddle_spread_take(fast, mem, &faster));
    if ((x.weights != NULL || mix_fits(p, &faster)) && mix_latency(&faster) < mix_latency(out))
        *out = faster;
    return HEDDLE_OK;
}

const struct heddle_spread_ops heddle_spread_mix = {
    .name = "mix",
    .help = "several routes at the rates of the linear program over all routes",
    .run = mix_run,
};
