/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ideal: the best way to give each class one segment, by dynamic programming over ideals.
 *
 * An ideal is a set of operators with everything that they need. Classes take segments one after
 * another: best[set of classes][ideal] is the least greatest load when these classes run this
 * ideal. The last segment is what the ideal has over a smaller one.
 * Exact     when every class has a memory of its own, of all spreads with one route whose
 *           classes form no cycle (Tarnawski et al., NeurIPS 2020). Classes that share a memory
 *           are charged for copies between them; the result is measured as it is.
 * Size      with more than IDEALS ideals the order of the operators alone counts: ideals are then
 *           its prefixes, thinned out where a cut is expensive.
 */
#include <string.h>

#include "base/assert.h"
#include "spread/spread.h"

enum { IDEALS = 1500, IDEAL_CLASSES = 6, IDEAL_WORD = 64 };

struct ideals {
    const struct spread_problem *p;
    uint32_t n, nwords;
    uint64_t *set;             /* [n x nwords], smaller ones first */
    uint32_t *table;           /* hash table of 4 IDEALS */
    double *sum;               /* [n x nclasses] loads of all operators of an ideal */
    uint32_t *cannot;          /* [n x nclasses] how many of them cannot run there */
    double *best;              /* [n << nclasses] */
    uint32_t *from;            /* [n << nclasses] the smaller ideal */
    uint8_t *last;             /* [n << nclasses] the class of the segment */
    struct spread_route route; /* scratch */
};

static const uint64_t *ideal_set(const struct ideals *d, uint32_t i)
{
    return d->set + (size_t)i * d->nwords;
}

static bool ideal_has(const uint64_t *set, uint32_t op)
{
    return (set[op / IDEAL_WORD] >> op % IDEAL_WORD & 1) != 0;
}

/* --- which there are -------------------------------------------------------------------------- */

static bool ideal_is_ready(const struct ideals *d, const uint64_t *set, uint32_t op)
{
    for (uint32_t k = d->p->in.end[op]; k < d->p->in.end[op + 1]; k++) {
        const uint32_t maker = d->p->g.maker[d->p->in.list[k]];

        if (maker != UINT32_MAX && !ideal_has(set, maker))
            return false;
    }
    return true;
}

/* The set at number n, if it is new. False: there are too many. */
static bool ideal_keep(struct ideals *d)
{
    const uint64_t *set = ideal_set(d, d->n);
    const size_t bytes = d->nwords * sizeof(*set);
    uint64_t h = UINT64_C(0x9e3779b97f4a7c15);

    for (uint32_t w = 0; w < d->nwords; w++)
        h = (h ^ set[w]) * UINT64_C(0xff51afd7ed558ccd) ^ h >> 29;
    for (uint32_t at = (uint32_t)(h >> 20) % (4 * IDEALS);; at = (at + 1) % (4 * IDEALS)) {
        if (d->table[at] == 0) {
            if (d->n == IDEALS)
                return false;
            d->table[at] = ++d->n;
            return true;
        }
        if (memcmp(ideal_set(d, d->table[at] - 1), set, bytes) == 0)
            return true;
    }
}

/* All ideals, those with fewer operators first. False: there are too many. */
static bool ideal_all(struct ideals *d)
{
    const size_t bytes = d->nwords * sizeof(*d->set);

    d->n = 0;
    (void)ideal_keep(d);
    for (uint32_t i = 0; i < d->n; i++)
        for (uint32_t op = 0; op < d->p->g.nops; op++) {
            uint64_t *next = d->set + (size_t)d->n * d->nwords;

            if (ideal_has(ideal_set(d, i), op) || !ideal_is_ready(d, ideal_set(d, i), op))
                continue;
            memcpy(next, ideal_set(d, i), bytes);
            next[op / IDEAL_WORD] |= UINT64_C(1) << op % IDEAL_WORD;
            if (!ideal_keep(d))
                return false;
        }
    return true;
}

/* Prefixes of the order: the whole, the empty one, and the best cuts. */
static heddle_status ideal_prefixes(struct ideals *d, struct heddle_scratch *mem)
{
    uint32_t *cut, n;

    HEDDLE_TRY(heddle_spread_cuts(d->p, IDEALS - 2, mem, &cut, &n));
    memset(d->set, 0, (size_t)IDEALS * d->nwords * sizeof(*d->set));
    d->n = n + 2;
    for (uint32_t i = 1; i < d->n; i++) {
        const uint32_t upto = i <= n ? cut[i - 1] : d->p->g.nops;

        for (uint32_t op = 0; op < upto; op++)
            d->set[(size_t)i * d->nwords + op / IDEAL_WORD] |= UINT64_C(1) << op % IDEAL_WORD;
    }
    return HEDDLE_OK;
}

static heddle_status ideal_find(struct ideals *d, struct heddle_scratch *mem)
{
    const uint32_t c = d->p->m.nclasses;
    size_t states;

    d->nwords = (d->p->g.nops + IDEAL_WORD - 1) / IDEAL_WORD;
    d->set = heddle_scratch_get(mem, (size_t)(IDEALS + 1) * d->nwords, sizeof(*d->set));
    d->table = heddle_scratch_get(mem, (size_t)4 * IDEALS, sizeof(*d->table));
    HEDDLE_TRY(heddle_spread_route(d->p, mem, &d->route));
    if (d->set == NULL || d->table == NULL)
        return HEDDLE_ENOMEM;
    if (!ideal_all(d))
        HEDDLE_TRY(ideal_prefixes(d, mem));
    states = (size_t)d->n << c;
    d->sum = heddle_scratch_get(mem, (size_t)d->n * c, sizeof(*d->sum));
    d->cannot = heddle_scratch_get(mem, (size_t)d->n * c, sizeof(*d->cannot));
    d->best = heddle_scratch_get(mem, states, sizeof(*d->best));
    d->from = heddle_scratch_get(mem, states, sizeof(*d->from));
    d->last = heddle_scratch_get(mem, states, sizeof(*d->last));
    if (d->sum == NULL || d->cannot == NULL || d->best == NULL || d->from == NULL ||
        d->last == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < d->n; i++)
        for (uint32_t op = 0; op < d->p->g.nops; op++)
            for (uint32_t r = 0; r < c && ideal_has(ideal_set(d, i), op); r++) {
                const double t = d->p->load[(size_t)op * c + r];

                d->sum[(size_t)i * c + r] += t < INFINITY ? t : 0.0;
                d->cannot[(size_t)i * c + r] += !(t < INFINITY);
            }
    return HEDDLE_OK;
}

/* --- segments --------------------------------------------------------------------------------- */

/* Bytes and copies that enter and leave a segment. */
struct crossing {
    double in, out;
    uint32_t nin, nout;
};

static bool ideal_in_segment(const uint64_t *small, const uint64_t *large, uint32_t op)
{
    return op != UINT32_MAX && ideal_has(large, op) && !ideal_has(small, op);
}

static struct crossing ideal_cross(const struct ideals *d, const uint64_t *small,
                                   const uint64_t *large)
{
    const struct spread_problem *p = d->p;
    struct crossing c = {0};

    for (uint32_t v = 0; v < p->g.nvalues; v++) {
        const bool is_made = ideal_in_segment(small, large, p->g.maker[v]);
        bool is_read = false, is_read_elsewhere = false;

        for (uint32_t k = p->used.end[v]; k < p->used.end[v + 1]; k++) {
            const bool is_here = ideal_in_segment(small, large, p->used.list[k]);

            is_read |= is_here;
            is_read_elsewhere |= !is_here;
        }
        if (is_made && is_read_elsewhere) {
            c.out += (double)p->g.bytes[v];
            c.nout++;
        } else if (!is_made && is_read) {
            c.in += (double)p->g.bytes[v];
            c.nin++;
        }
    }
    return c;
}

/* The bytes that a class has to stream, and of how many operators; false: they cannot fit. */
static bool ideal_stream(struct ideals *d, const uint64_t *small, const uint64_t *large,
                         uint32_t cls, struct crossing *c)
{
    const struct spread_problem *p = d->p;
    const uint32_t node = p->m.node[cls];
    uint64_t sum = 0;
    uint32_t elsewhere = cls;

    if (p->m.memory[node].bytes == 0)
        return true;
    for (uint32_t r = 0; r < p->m.nclasses; r++)
        elsewhere = p->m.node[r] != node ? r : elsewhere;
    for (uint32_t op = 0; op < p->g.nops; op++) {
        const bool is_here = ideal_in_segment(small, large, op);

        d->route.cls[op] = is_here ? cls : elsewhere; /* all in one memory: streams more */
        sum += is_here ? spread_weights(p, op) : 0;
    }
    if (sum <= p->m.memory[node].bytes)
        return true;
    if (!heddle_spread_fit_node(p, &d->route, node))
        return false;
    for (uint32_t op = 0; op < p->g.nops; op++)
        if (d->route.cls[op] == cls && d->route.is_streamed[op]) {
            c->in += (double)spread_weights(p, op);
            c->nin++;
        }
    return true;
}

/* The greatest load of a class that runs the segment. */
static double ideal_load(struct ideals *d, uint32_t small, uint32_t large, uint32_t cls,
                         struct crossing c)
{
    const struct spread_problem *p = d->p;
    const uint32_t n = p->m.nclasses, node = p->m.node[cls];
    const struct heddle_spread_node *m = &p->m.memory[node];
    const double load = d->sum[(size_t)large * n + cls] - d->sum[(size_t)small * n + cls];

    if (d->cannot[(size_t)large * n + cls] != d->cannot[(size_t)small * n + cls] ||
        !ideal_stream(d, ideal_set(d, small), ideal_set(d, large), cls, &c))
        return INFINITY;
    if (node == 0)
        return load;
    return fmax(load, fmax(c.nin * m->in_latency + c.in / m->in_rate,
                           c.nout * m->out_latency + c.out / m->out_rate));
}

static bool ideal_is_subset(const struct ideals *d, uint32_t small, uint32_t large)
{
    const uint64_t *a = ideal_set(d, small), *b = ideal_set(d, large);

    for (uint32_t w = 0; w < d->nwords; w++)
        if ((a[w] & ~b[w]) != 0)
            return false;
    return true;
}

/* The segment between two ideals for every class, behind every set of other classes. */
static void ideal_relax(struct ideals *d, uint32_t small, uint32_t large)
{
    const uint32_t n = d->p->m.nclasses;
    const struct crossing c = ideal_cross(d, ideal_set(d, small), ideal_set(d, large));

    for (uint32_t r = 0; r < n; r++) {
        const double load = ideal_load(d, small, large, r, c);

        for (uint32_t s = 0; s < 1u << n; s++) {
            const size_t old = (size_t)small << n | s, now = (size_t)large << n | s | 1u << r;
            const double value = fmax(d->best[old], load);

            if ((s & 1u << r) == 0 && value < d->best[now]) {
                d->best[now] = value;
                d->from[now] = small;
                d->last[now] = (uint8_t)r;
            }
        }
    }
}

static void ideal_solve(struct ideals *d)
{
    const uint32_t n = d->p->m.nclasses;

    for (size_t i = 0; i < (size_t)d->n << n; i++)
        d->best[i] = INFINITY;
    d->best[0] = 0.0;
    for (uint32_t large = 1; large < d->n; large++)
        for (uint32_t small = 0; small < large; small++)
            if (ideal_is_subset(d, small, large))
                ideal_relax(d, small, large);
}

static heddle_status ideal_run(const struct spread_problem *p, struct heddle_scratch *mem,
                               struct spread_set *out)
{
    struct ideals d = {.p = p};
    const uint32_t n = p->m.nclasses;
    size_t at = 0;
    struct spread_route r;

    if (n > IDEAL_CLASSES)
        return SPREAD_FAIL(p, HEDDLE_ENOSYS, "the method 'ideal' knows up to %d classes",
                           IDEAL_CLASSES);
    HEDDLE_TRY(ideal_find(&d, mem));
    HEDDLE_TRY(heddle_spread_route(p, mem, &r));
    ideal_solve(&d);
    for (uint32_t s = 1; s < 1u << n; s++) {
        const size_t i = (size_t)(d.n - 1) << n | s;

        if (at == 0 || d.best[i] < d.best[at])
            at = i;
    }
    if (!(d.best[at] < INFINITY))
        return heddle_spread_alone(p, mem, &r, out);
    while (at >> n != 0) {
        const uint32_t small = d.from[at], cls = d.last[at];

        for (uint32_t op = 0; op < p->g.nops; op++)
            if (ideal_in_segment(ideal_set(&d, small), ideal_set(&d, (uint32_t)(at >> n)), op))
                r.cls[op] = cls;
        at = (size_t)small << n | ((at & ((1u << n) - 1)) ^ 1u << cls);
    }
    (void)heddle_spread_fit(p, &r);
    return heddle_spread_alone(p, mem, &r, out);
}

const struct heddle_spread_ops heddle_spread_ideal = {
    .name = "ideal",
    .help = "one segment for each class, the best of all, by dynamic programming",
    .run = ideal_run,
};
