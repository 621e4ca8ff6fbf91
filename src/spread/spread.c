/* SPDX-License-Identifier: BSD-3-Clause */
/* spread: the table of methods, made from spread.def, a call of one, and the result. */
#include "spread/spread.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/cond.h"
#include "base/sized.h"

#define HEDDLE_SPREAD(name, on)                                                                    \
    HEDDLE_IF(on, extern const struct heddle_spread_ops heddle_spread_##name;)
#include "spread/spread.def"
#undef HEDDLE_SPREAD

static const struct heddle_spread_ops *const table[] = {
#define HEDDLE_SPREAD(name, on) HEDDLE_IF(on, &heddle_spread_##name, )
#include "spread/spread.def"
#undef HEDDLE_SPREAD
    NULL,
};

heddle_status heddle_spread_get_method(unsigned i, struct heddle_spread_method *method_out)
{
    unsigned n = 0;

    while (table[n] != NULL)
        n++;
    if (method_out == NULL)
        return HEDDLE_EINVAL;
    if (i >= n)
        return HEDDLE_ENOENT;
    *method_out = (struct heddle_spread_method){table[i]->name, table[i]->help};
    return HEDDLE_OK;
}

static const struct heddle_spread_ops *find(const char *name)
{
    for (unsigned i = 0; table[i] != NULL; i++)
        if (strcmp(table[i]->name, name) == 0)
            return table[i];
    return NULL;
}

/* --- the bound -------------------------------------------------------------------------------- */

/* A machine on which every spread is as good or better: all far memories are one, and its link has
 * the rates of all links. Of copies over links of rates b and latencies l, the part b / sum(b) of
 * the links' time is at least (min(b l) + bytes) / sum(b) for each. */
struct relaxed {
    uint32_t node[HEDDLE_SPREAD_CLASSES];
    struct heddle_spread_node memory[2];
};

static void relax(struct spread_problem *p, struct relaxed *x)
{
    double in = INFINITY, out = INFINITY;

    for (uint32_t r = 0; r < p->m.nclasses; r++)
        x->node[r] = p->m.node[r] != 0;
    for (uint32_t k = 1; k < p->m.nnodes; k++) {
        const struct heddle_spread_node *m = &p->m.memory[k];

        in = fmin(in, m->in_latency * m->in_rate);
        out = fmin(out, m->out_latency * m->out_rate);
        x->memory[1].in_rate += m->in_rate;
        x->memory[1].out_rate += m->out_rate;
    }
    x->memory[1].in_latency = in / x->memory[1].in_rate;
    x->memory[1].out_latency = out / x->memory[1].out_rate;
    p->m.nnodes = 2;
    p->m.node = x->node;
    p->m.memory = x->memory;
    p->nresources = p->m.nclasses + 4;
}

/* Begins with every operator where it is fastest. */
static heddle_status bound(struct spread_problem *p, struct heddle_scratch *mem)
{
    struct spread_problem *easy = heddle_scratch_get(mem, 1, sizeof(*easy));
    struct relaxed *x = heddle_scratch_get(mem, 1, sizeof(*x));
    struct spread_route r;
    heddle_status st;

    if (easy == NULL || x == NULL)
        return HEDDLE_ENOMEM;
    *easy = *p;
    if (p->m.nnodes > 2)
        relax(easy, x);
    HEDDLE_TRY(heddle_spread_route(easy, mem, &r));
    for (uint32_t i = 0; i < p->g.nops; i++) {
        double least = INFINITY;

        for (uint32_t c = 0; c < p->m.nclasses; c++)
            if (p->load[(size_t)i * p->m.nclasses + c] < least) {
                least = p->load[(size_t)i * p->m.nclasses + c];
                r.cls[i] = c;
            }
    }
    (void)heddle_spread_measure(easy, &r);
    HEDDLE_TRY(heddle_spread_program(easy, mem, &p->all));
    st = heddle_spread_add(p->all, &r);
    if (st == HEDDLE_EOVERFLOW)
        return SPREAD_FAIL(p, HEDDLE_EINVAL, "the operators take no time");
    HEDDLE_TRY(st);
    return heddle_spread_grow(p->all, NULL, &p->bound);
}

/* --- the result ------------------------------------------------------------------------------ */

struct own {
    struct heddle_scratch m;
};

static heddle_status result_routes(const struct spread_problem *p, const struct spread_set *s,
                                   struct heddle_scratch *m, struct heddle_spread_result *out)
{
    struct heddle_spread_route *route = heddle_scratch_get(m, s->n, sizeof(*route));
    double rates = 0.0;

    out->route = route;
    out->nroutes = s->n;
    for (uint32_t i = 0; i < s->n && route != NULL; i++) {
        uint32_t *cls = heddle_scratch_get(m, p->g.nops, sizeof(*cls));

        if (cls == NULL)
            return HEDDLE_ENOMEM;
        memcpy(cls, s->route[i].cls, p->g.nops * sizeof(*cls));
        route[i] = (struct heddle_spread_route){.rate = s->rate[i],
                                                .latency = s->route[i].latency,
                                                .link_bytes = s->route[i].link_bytes,
                                                .cls = cls};
        rates += s->rate[i];
        out->latency = fmax(out->latency, route[i].latency);
    }
    out->period = 1.0 / rates;
    return route != NULL ? HEDDLE_OK : HEDDLE_ENOMEM;
}

/* Weights that a route keeps are kept; an operator with such weights streams nothing. */
static void result_memory(const struct spread_problem *p, const struct spread_set *s,
                          uint64_t *memory, uint8_t *is_streamed)
{
    for (uint32_t k = 0; k < p->m.nnodes; k++) {
        uint64_t heaviest = 0;

        for (uint32_t i = 0; i < p->g.nops; i++) {
            bool is_here = false, is_kept = false;

            for (uint32_t j = 0; j < s->n; j++)
                if (p->m.node[s->route[j].cls[i]] == k) {
                    is_here = true;
                    is_kept |= !s->route[j].is_streamed[i];
                }
            is_streamed[(size_t)i * p->m.nnodes + k] = is_here && !is_kept;
            memory[k] += is_kept ? spread_weights(p, i) : 0;
            if (is_here && !is_kept && spread_weights(p, i) > heaviest)
                heaviest = spread_weights(p, i);
        }
        memory[k] += 2 * heaviest;
    }
}

static heddle_status result_fill(const struct spread_problem *p, const struct spread_set *s,
                                 struct heddle_scratch *m, struct heddle_spread_result *out)
{
    const uint32_t c = p->m.nclasses, nn = p->m.nnodes;
    double *busy = heddle_scratch_get(m, c, sizeof(*busy));
    double *in = heddle_scratch_get(m, nn, sizeof(*in)),
           *back = heddle_scratch_get(m, nn, sizeof(*in));
    uint64_t *memory = heddle_scratch_get(m, nn, sizeof(*memory));
    uint8_t *is_streamed = heddle_scratch_get(m, (size_t)p->g.nops * nn, 1);

    if (busy == NULL || in == NULL || back == NULL || memory == NULL || is_streamed == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(result_routes(p, s, m, out));
    for (uint32_t j = 0; j < s->n; j++) {
        for (uint32_t r = 0; r < c; r++)
            busy[r] += s->rate[j] * s->route[j].load[r];
        for (uint32_t k = 0; k < nn; k++) {
            in[k] += s->rate[j] * s->route[j].load[c + 2 * k];
            back[k] += s->rate[j] * s->route[j].load[c + 2 * k + 1];
        }
    }
    result_memory(p, s, memory, is_streamed);
    out->nops = p->g.nops;
    out->bound = fmin(p->bound, out->period); /* rounding */
    out->busy = busy;
    out->busy_in = in;
    out->busy_out = back;
    out->memory = memory;
    out->is_streamed = is_streamed;
    return HEDDLE_OK;
}

/* A copy of the problem in which copies take longer by 1 / link. */
struct slower {
    struct spread_problem p;
    struct heddle_spread_node memory[HEDDLE_SPREAD_NODES];
};

static heddle_status slow_links(const struct spread_problem *p, struct heddle_scratch *mem,
                                struct spread_problem **out)
{
    struct slower *x = heddle_scratch_get(mem, 1, sizeof(*x));
    const double link = p->o.link;

    if (x == NULL)
        return HEDDLE_ENOMEM;
    x->p = *p;
    for (uint32_t k = 0; k < p->m.nnodes; k++) {
        x->memory[k] = p->m.memory[k];
        x->memory[k].in_latency /= link;
        x->memory[k].in_rate *= link;
        x->memory[k].out_latency /= link;
        x->memory[k].out_rate *= link;
    }
    x->p.m.memory = x->memory;
    *out = &x->p;
    return bound(&x->p, mem);
}

/* The method on the problem that it shall see; loads and latencies are those of the caller's. */
static heddle_status run_method(const struct heddle_spread_ops *ops, struct spread_problem *p,
                                struct heddle_scratch *mem, struct spread_set *s)
{
    struct spread_problem *seen = p;

    HEDDLE_TRY(bound(p, mem));
    if (p->o.link > 0.0 && p->o.link < 1.0)
        HEDDLE_TRY(slow_links(p, mem, &seen));
    HEDDLE_TRY(ops->run(seen, mem, s));
    for (uint32_t i = 0; i < s->n; i++)
        (void)heddle_spread_measure(p, &s->route[i]);
    return HEDDLE_OK;
}

static heddle_status run(const struct heddle_spread_ops *ops, struct spread_problem *p,
                         struct heddle_scratch *mem, struct heddle_spread_result *out)
{
    struct own *own = heddle_zalloc(p->o.alloc, 1, sizeof(*own));
    struct spread_set s = {.n = 0};
    heddle_status st;

    if (own == NULL)
        return HEDDLE_ENOMEM;
    own->m = heddle_scratch_make(p->o.alloc);
    st = run_method(ops, p, mem, &s);
    if (st == HEDDLE_OK)
        st = result_fill(p, &s, &own->m, out);
    if (st != HEDDLE_OK) {
        heddle_scratch_drop(&own->m);
        heddle_free(p->o.alloc, own, sizeof(*own));
        return st;
    }
    out->own = own;
    return HEDDLE_OK;
}

heddle_status heddle_spread_make(const struct heddle_spread_graph *graph,
                                 const struct heddle_spread_machine *machine,
                                 const struct heddle_spread_opts *opts,
                                 struct heddle_spread_result *result_out)
{
    struct heddle_spread_result r = {.size = sizeof(r)};
    struct heddle_spread_opts o;
    struct heddle_spread_graph g;
    struct heddle_spread_machine m;
    const struct heddle_spread_ops *ops;
    struct spread_problem p;
    struct heddle_scratch mem;
    heddle_status st;

    HEDDLE_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_spread_opts, &o, opts));
    if (graph == NULL || machine == NULL)
        return heddle_why(o.why, o.why_bytes, HEDDLE_EINVAL, "there is no graph, or no machine");
    HEDDLE_TRY(HEDDLE_SIZED_GET(struct heddle_spread_graph, &g, graph, o.why, o.why_bytes));
    HEDDLE_TRY(HEDDLE_SIZED_GET(struct heddle_spread_machine, &m, machine, o.why, o.why_bytes));
    HEDDLE_TRY(HEDDLE_SIZED_ROOM_OWN(struct heddle_spread_result, result_out, o.why, o.why_bytes));
    ops = find(o.method == NULL ? "mix" : o.method);
    if (ops == NULL)
        return heddle_why(o.why, o.why_bytes, HEDDLE_ENOENT, "there is no method '%s'", o.method);
    if (!(o.slack >= 0.0 && o.slack <= 1.0))
        return heddle_why(o.why, o.why_bytes, HEDDLE_EINVAL, "the slack is not between 0 and 1");
    if (!(o.link >= 0.0 && o.link <= 1.0))
        return heddle_why(o.why, o.why_bytes, HEDDLE_EINVAL,
                          "the part of a link is not between 0 and 1");
    mem = heddle_scratch_make(o.alloc);
    st = heddle_spread_build(&g, &m, &o, &mem, &p);
    if (st == HEDDLE_OK)
        st = run(ops, &p, &mem, &r);
    heddle_scratch_drop(&mem);
    if (st == HEDDLE_ENOMEM)
        return heddle_why(o.why, o.why_bytes, st, "there is no memory");
    if (st == HEDDLE_OK)
        heddle_sized_put(result_out, &r, sizeof(r));
    return st;
}

void heddle_spread_fini(struct heddle_spread_result *result)
{
    struct own *own;

    if (result == NULL)
        return;
    own = result->own;
    if (own != NULL) {
        const struct heddle_allocator *a = own->m.a;

        heddle_scratch_drop(&own->m);
        heddle_free(a, own, sizeof(*own));
    }
    heddle_sized_clear(result);
}
