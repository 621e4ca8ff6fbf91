/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chain: the network as a chain, cut at one or two positions.
 *
 * Positions  the order of the operators is divided into stretches of equal work; a stretch is cut
 *            where the fewest bytes pass. Results and what comes with the request do not count.
 * Search     all ways to have up to three parts on two or three classes.
 */
#include <string.h>

#include "base/assert.h"
#include "spread/spread.h"

enum { CHAIN_CUTS = 96, CHAIN_ROUTES = 20000, CHAIN_LEAST_CUTS = 4 };

/* live[i]: bytes that pass a cut before operator i. */
static double *chain_live(const struct spread_problem *p, struct heddle_scratch *mem)
{
    const uint32_t n = p->g.nops;
    double *live = heddle_scratch_get(mem, (size_t)n + 2, sizeof(*live));

    if (live == NULL)
        return NULL;
    for (uint32_t v = 0; v < p->g.nvalues; v++) {
        const uint32_t maker = p->g.maker[v];
        uint32_t last = maker;

        for (uint32_t k = p->used.end[v]; k < p->used.end[v + 1] && maker != SPREAD_NONE; k++)
            if (p->used.list[k] != SPREAD_NONE && p->used.list[k] > last)
                last = p->used.list[k];
        if (maker == SPREAD_NONE || last == maker)
            continue;
        live[maker + 1] += (double)p->g.bytes[v];
        live[last + 1] -= (double)p->g.bytes[v];
    }
    for (uint32_t i = 0; i < n; i++)
        live[i + 1] += live[i];
    return live;
}

static double chain_work(const struct spread_problem *p, uint32_t op)
{
    double least = INFINITY;

    for (uint32_t r = 0; r < p->m.nclasses; r++)
        least = fmin(least, p->load[(size_t)op * p->m.nclasses + r]);
    return least;
}

heddle_status heddle_spread_cuts(const struct spread_problem *p, uint32_t most,
                                 struct heddle_scratch *mem, uint32_t **cut_out, uint32_t *n_out)
{
    const double *live = chain_live(p, mem);
    uint32_t *cut = heddle_scratch_get(mem, (size_t)most + 1, sizeof(*cut));
    double all = 0.0, done = 0.0;
    uint32_t n = 0, stretch = UINT32_MAX;

    if (live == NULL || cut == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < p->g.nops; i++)
        all += chain_work(p, i);
    for (uint32_t i = 1; i < p->g.nops; i++) {
        uint32_t at;

        done += chain_work(p, i - 1);
        at = p->g.nops - 1 <= most ? i : (uint32_t)(most * fmin(done / all, 1.0));
        if (!(all > 0.0) && p->g.nops - 1 > most)
            at = (uint32_t)((uint64_t)i * most / p->g.nops);
        at = at < most || p->g.nops - 1 <= most ? at : most - 1;
        if (at != stretch) {
            stretch = at;
            cut[n++] = i;
        } else if (live[i] < live[cut[n - 1]]) {
            cut[n - 1] = i;
        }
    }
    *cut_out = cut;
    *n_out = n;
    return HEDDLE_OK;
}

void heddle_spread_chain_classes(const struct spread_problem *p, const struct spread_chain *c,
                                 uint32_t *cls)
{
    for (uint32_t i = 0; i < p->g.nops; i++)
        cls[i] = i < c->a ? c->x : i < c->b ? c->y : c->z;
}

struct walk {
    const struct spread_problem *p;
    struct spread_route route;
    spread_chain_fn fn;
    void *user;
};

static heddle_status chain_one(struct walk *w, uint32_t a, uint32_t b, uint32_t x, uint32_t y,
                               uint32_t z)
{
    const struct spread_chain c = {a, b, (uint8_t)x, (uint8_t)y, (uint8_t)z};

    heddle_spread_chain_classes(w->p, &c, w->route.cls);
    memset(w->route.is_streamed, 0, w->p->g.nops);
    return heddle_spread_measure(w->p, &w->route) ? w->fn(w->user, &c, &w->route) : HEDDLE_OK;
}

/* All classes for the parts before a, from there to b, and behind; a == b: two parts. */
static heddle_status chain_classes(struct walk *w, uint32_t a, uint32_t b)
{
    const uint32_t c = w->p->m.nclasses;

    for (uint32_t x = 0; x < c; x++)
        for (uint32_t y = 0; y < c; y++)
            for (uint32_t z = 0; z < c; z++)
                if (x != y && (a == b ? y == z : y != z))
                    HEDDLE_TRY(chain_one(w, a, b, x, y, z));
    return HEDDLE_OK;
}

heddle_status heddle_spread_each_chain(const struct spread_problem *p, struct heddle_scratch *mem,
                                       spread_chain_fn fn, void *user)
{
    const uint32_t c = p->m.nclasses;
    struct walk w = {.p = p, .fn = fn, .user = user};
    uint32_t most = CHAIN_CUTS, ncuts = 0, *cut = NULL;

    while (most > CHAIN_LEAST_CUTS && most * (most - 1) / 2 * c * (c - 1) * (c - 1) > CHAIN_ROUTES)
        most--;
    HEDDLE_TRY(heddle_spread_route(p, mem, &w.route));
    HEDDLE_TRY(heddle_spread_cuts(p, most, mem, &cut, &ncuts));
    for (uint32_t r = 0; r < c; r++)
        HEDDLE_TRY(chain_one(&w, 0, 0, r, r, r));
    for (uint32_t i = 0; i < ncuts; i++)
        for (uint32_t j = i; j < ncuts; j++)
            HEDDLE_TRY(chain_classes(&w, cut[i], cut[j]));
    return HEDDLE_OK;
}

/* --- the method ------------------------------------------------------------------------------- */

struct search {
    const struct spread_problem *p;
    struct spread_route best;
};

static heddle_status chain_try(void *user, const struct spread_chain *c, struct spread_route *r)
{
    struct search *s = user;

    (void)c;
    if (r->period < s->best.period && (!s->p->has_limits || heddle_spread_fit(s->p, r)) &&
        r->period < s->best.period)
        heddle_spread_copy(s->p, &s->best, r);
    return HEDDLE_OK;
}

static heddle_status chain_run(const struct spread_problem *p, struct heddle_scratch *mem,
                               struct spread_set *out)
{
    struct search s = {.p = p};

    HEDDLE_TRY(heddle_spread_route(p, mem, &s.best));
    HEDDLE_TRY(heddle_spread_each_chain(p, mem, chain_try, &s));
    return heddle_spread_alone(p, mem, &s.best, out);
}

const struct heddle_spread_ops heddle_spread_chain = {
    .name = "chain",
    .help = "the best of all ways to cut the chain of operators once or twice",
    .run = chain_run,
};
