/* SPDX-License-Identifier: BSD-3-Clause */
/* chain: a chain of layers as a graph; heddle/plan.h has the numbering. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/text.h"
#include "plan/graph/graph.h"

enum { CHAIN_MAX = 1 << 26, NAME_BYTES = 16 };

struct maker {
    const struct heddle_plan_chain *c;
    struct heddle_plan_op *op;
    struct heddle_plan_value *value;
    uint32_t *input;
    char (*name)[NAME_BYTES];
    uint32_t nops, nvalues, ninputs;
};

static heddle_status check(const struct heddle_plan_chain *c, const struct heddle_plan_opts *o)
{
    if (c == NULL || c->n == 0 || c->n > CHAIN_MAX)
        return HEDDLE_PLAN_FAIL(o, HEDDLE_EINVAL, "a chain has between 1 and 2^26 layers");
    if (c->x == NULL || c->t == NULL || c->forward == NULL || c->backward == NULL)
        return HEDDLE_PLAN_FAIL(o, HEDDLE_EINVAL, "an array of the chain is missing");
    for (uint32_t i = 1; i <= c->n; i++)
        if (c->t[i] < c->x[i])
            return HEDDLE_PLAN_FAIL(o, HEDDLE_EINVAL,
                                    "the tape of layer %u is smaller than the "
                                    "activation it contains",
                                    i - 1);
    return HEDDLE_OK;
}

static uint32_t add_value(struct maker *m, uint64_t bytes, uint32_t op, uint32_t flags)
{
    m->value[m->nvalues] = (struct heddle_plan_value){.bytes = bytes, .op = op, .flags = flags};
    return m->nvalues++;
}

static struct heddle_plan_op *add_op(struct maker *m, double time, uint64_t work, uint32_t nvalues,
                                     const uint32_t *input, uint32_t ninputs)
{
    struct heddle_plan_op *op = &m->op[m->nops++];

    *op = (struct heddle_plan_op){.time = time,
                                  .work_bytes = work,
                                  .first_value = m->nvalues,
                                  .nvalues = nvalues,
                                  .first_input = m->ninputs,
                                  .ninputs = ninputs,
                                  .inplace = HEDDLE_PLAN_NONE};
    memcpy(&m->input[m->ninputs], input, ninputs * sizeof(*input));
    m->ninputs += ninputs;
    op->name = m->name[m->nops - 1];
    return op;
}

static void set_name(struct maker *m, const char *letter, uint32_t i)
{
    struct heddle_text t;

    heddle_text_init(&t, m->name[m->nops - 1], NAME_BYTES);
    heddle_text_add(&t, "%s%u", letter, i);
}

static uint64_t work(const uint64_t *w, uint32_t i)
{
    return w != NULL ? w[i] : 0;
}

static void build(struct maker *m)
{
    const struct heddle_plan_chain *c = m->c;
    const uint32_t n = c->n;

    (void)add_value(m, c->x[0], HEDDLE_PLAN_NONE, 0);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t in = i == 0 ? 0 : 2 * i - 1; /* x[i] */

        (void)add_op(m, c->forward[i], work(c->work_f, i), 2, &in, 1);
        set_name(m, "F", i);
        (void)add_value(m, c->x[i + 1], m->nops - 1, 0);
        (void)add_value(m, c->t[i + 1] - c->x[i + 1], m->nops - 1, HEDDLE_PLAN_TAPE);
    }
    (void)add_op(m, 0, 0, 1, (const uint32_t[]){2 * n - 1}, 1);
    m->op[m->nops - 1].name = "loss";
    (void)add_value(m, c->x[n], m->nops - 1, 0);
    for (uint32_t i = n; i-- > 0;) {
        /* x[i], x[i + 1], the rest of the tape, the gradient of x[i + 1] */
        const uint32_t in[] = {i == 0 ? 0 : 2 * i - 1, 2 * i + 1, 2 * i + 2, 3 * n - i};

        add_op(m, c->backward[i], work(c->work_b, i), 1, in, 4)->flags = HEDDLE_PLAN_BACKWARD;
        set_name(m, "B", i);
        (void)add_value(m, c->x[i], m->nops - 1, 0);
    }
}

static void *dup(struct heddle_scratch *mem, const void *from, size_t n, size_t bytes)
{
    void *p = heddle_scratch_get(mem, n, bytes);

    if (p != NULL && from != NULL)
        memcpy(p, from, n * bytes);
    return p;
}

/* The chain itself, kept with the graph; missing workspaces are zeros. */
static struct heddle_plan_chain *keep(struct heddle_scratch *mem, const struct heddle_plan_chain *c)
{
    struct heddle_plan_chain *r = heddle_scratch_get(mem, 1, sizeof(*r));

    if (r == NULL)
        return NULL;
    r->n = c->n;
    r->x = dup(mem, c->x, (size_t)c->n + 1, sizeof(*c->x));
    r->t = dup(mem, c->t, (size_t)c->n + 1, sizeof(*c->t));
    r->forward = dup(mem, c->forward, c->n, sizeof(*c->forward));
    r->backward = dup(mem, c->backward, c->n, sizeof(*c->backward));
    r->work_f = dup(mem, c->work_f, c->n, sizeof(*c->work_f));
    r->work_b = dup(mem, c->work_b, c->n, sizeof(*c->work_b));
    return r->x == NULL || r->t == NULL || r->forward == NULL || r->backward == NULL ||
                   r->work_f == NULL || r->work_b == NULL
               ? NULL
               : r;
}

static heddle_status make(struct maker *m, const char *name, const struct heddle_plan_opts *o,
                          struct heddle_scratch *tmp, struct heddle_plan_graph **out)
{
    const size_t n = m->c->n;
    struct heddle_plan_graph *g = NULL;
    struct heddle_plan_graph d;

    m->op = heddle_scratch_get(tmp, 2 * n + 1, sizeof(*m->op));
    m->value = heddle_scratch_get(tmp, 3 * n + 2, sizeof(*m->value));
    m->input = heddle_scratch_get(tmp, 5 * n + 1, sizeof(*m->input));
    m->name = heddle_scratch_get(tmp, 2 * n + 1, sizeof(*m->name));
    if (m->op == NULL || m->value == NULL || m->input == NULL || m->name == NULL)
        return HEDDLE_PLAN_FAIL(o, HEDDLE_ENOMEM, "no memory for the chain");
    build(m);
    d = (struct heddle_plan_graph){.size = sizeof(d),
                                   .name = name != NULL ? name : "chain",
                                   .nops = m->nops,
                                   .nvalues = m->nvalues,
                                   .ninputs = m->ninputs,
                                   .ops = m->op,
                                   .values = m->value,
                                   .inputs = m->input};
    HEDDLE_TRY(heddle_plan_graph_create(&d, o, &g));
    g->chain = keep(heddle_plan_graph_mem(g), m->c);
    if (g->chain == NULL) {
        heddle_plan_graph_destroy(g);
        return HEDDLE_PLAN_FAIL(o, HEDDLE_ENOMEM, "no memory for the chain");
    }
    *out = g;
    return HEDDLE_OK;
}

heddle_status heddle_plan_graph_from_chain(const struct heddle_plan_chain *chain, const char *name,
                                           const struct heddle_plan_opts *opts,
                                           struct heddle_plan_graph **out)
{
    struct heddle_plan_opts o;
    struct heddle_scratch tmp;
    struct maker m = {.c = chain};
    heddle_status st;

    HEDDLE_TRY(heddle_plan_opts_get(opts, &o));
    tmp = heddle_scratch_make(o.alloc);
    st = check(chain, &o);
    if (st == HEDDLE_OK && out == NULL)
        st = HEDDLE_PLAN_FAIL(&o, HEDDLE_EINVAL, "there is no place for it");
    if (st == HEDDLE_OK)
        st = make(&m, name, &o, &tmp, out);
    heddle_scratch_drop(&tmp);
    return st;
}
