/* SPDX-License-Identifier: BSD-3-Clause */
/* prepare: runs the passes; what they share. */
#include "nn/prepare/prepare.h"

#include <math.h>
#include <string.h>

#include "base/why.h"
#include "nn/load.h"

#define HEDDLE_NN_PASS(file, on) extern const struct nn_pass heddle_nn_pass_##file;
#include "nn/prepare/pass.def"
#undef HEDDLE_NN_PASS

static const struct nn_pass *const passes[] = {
#define HEDDLE_NN_PASS(file, on) &heddle_nn_pass_##file,
#include "nn/prepare/pass.def"
#undef HEDDLE_NN_PASS
    NULL,
};

const struct nn_pass *heddle_nn_get_pass(uint32_t i)
{
    return i < sizeof(passes) / sizeof(passes[0]) ? passes[i] : NULL;
}

void *heddle_prep_keep(struct nn_prep *q, size_t n, size_t bytes)
{
    return heddle_scratch_get(&q->p->mem, n, bytes);
}

/* --- what passes ask for ------------------------------------------------------------- */

bool heddle_prep_is(const struct nn_task *t, const char *op)
{
    return t != NULL && t->node->nout == 1 && t->node->out[0] != NN_NONE &&
           strcmp(t->node->op->name, op) == 0;
}

bool heddle_prep_is_f32(const struct nn_task *t)
{
    const struct nn_call c = {
        .node = t->node, .nin = t->node->nin, .nout = t->node->nout, .in = t->in, .out = t->out};

    return heddle_nn_is_f32(&c);
}

uint32_t heddle_prep_root(const struct nn_prep *q, uint32_t v)
{
    while (v != NN_NONE && q->p->root[v] != v)
        v = q->p->root[v];
    return v;
}

struct nn_task *heddle_prep_maker(const struct nn_prep *q, const struct nn_task *t, uint32_t k)
{
    struct nn_task *m;

    if (t == NULL || k >= t->node->nin || t->in_value[k] == NN_NONE)
        return NULL;
    m = prep_task(q, q->maker[heddle_prep_root(q, t->in_value[k])]);
    return m != NULL && m->node->nout == 1 ? m : NULL;
}

struct nn_task *heddle_prep_folded(struct nn_prep *q, const struct nn_task *t, uint32_t k)
{
    const struct nn_graph *g = q->p->g;
    const struct nn_node *n;
    struct nn_task *made;
    uint32_t v;

    if (k >= t->node->nin || t->in_value[k] >= g->nvalues || t->in[k].data == NULL)
        return NULL;
    v = heddle_prep_root(q, t->in_value[k]);
    if (v >= g->nvalues || g->value[v].maker == NN_NONE)
        return NULL;
    n = &g->node[g->value[v].maker];
    made = heddle_scratch_get(q->temp, 1, sizeof(*made));
    if (made == NULL)
        return NULL;
    *made = (struct nn_task){.node = n, .in_value = n->in, .out_value = n->out};
    made->in = heddle_scratch_get(q->temp, n->nin, sizeof(*made->in));
    for (uint32_t i = 0; made->in != NULL && i < n->nin; i++)
        if (n->in[i] != NN_NONE)
            made->in[i] = q->p->value[n->in[i]];
    return made->in != NULL ? made : NULL;
}

struct nn_task *heddle_prep_only(const struct nn_prep *q, const struct nn_task *t)
{
    uint32_t r;

    if (t == NULL || t->node->nout != 1 || t->out_value[0] == NN_NONE)
        return NULL;
    r = heddle_prep_root(q, t->out_value[0]);
    return q->nreads[r] == 1 ? prep_task(q, q->reader[r]) : NULL;
}

struct nn_task *heddle_prep_inner(const struct nn_prep *q, const struct nn_task *t, uint32_t k)
{
    struct nn_task *m = heddle_prep_maker(q, t, k);

    return m != NULL && heddle_prep_only(q, m) == t ? m : NULL;
}

bool heddle_prep_same(const struct nn_prep *q, const struct nn_task *a, uint32_t i,
                      const struct nn_task *b, uint32_t k)
{
    return i < a->node->nin && k < b->node->nin && a->in_value[i] != NN_NONE &&
           b->in_value[k] != NN_NONE &&
           heddle_prep_root(q, a->in_value[i]) == heddle_prep_root(q, b->in_value[k]) &&
           heddle_nn_same_shape(&a->in[i].shape, &b->in[k].shape);
}

bool heddle_prep_reads(const struct nn_prep *q, const struct nn_task *t, uint32_t k,
                       const struct nn_task *made)
{
    return k < t->node->nin && t->in_value[k] != NN_NONE &&
           heddle_prep_root(q, t->in_value[k]) == heddle_prep_root(q, made->out_value[0]) &&
           heddle_nn_same_shape(&t->in[k].shape, &made->out[0].shape);
}

int heddle_prep_other(const struct nn_prep *q, const struct nn_task *t, const struct nn_task *made)
{
    /* Before opset 7 an attribute said along which axis a smaller operand lies. */
    if (t->node->nin != 2 || (t->node->op->since < 7 && t->node->nattrs > 0))
        return -1;
    return heddle_prep_reads(q, t, 0, made) ? 1 : heddle_prep_reads(q, t, 1, made) ? 0 : -1;
}

bool heddle_prep_number(const struct nn_task *t, uint32_t k, double *out)
{
    if (k >= t->node->nin || t->in[k].kind != NN_TENSOR || t->in[k].data == NULL ||
        t->in[k].type != NN_F32 || heddle_nn_count(&t->in[k].shape) != 1)
        return false;
    *out = heddle_nn_get_f64(NN_F32, t->in[k].data, 0);
    return true;
}

bool heddle_prep_is_number(const struct nn_task *t, uint32_t k, double v)
{
    double x;

    return heddle_prep_number(t, k, &x) && fabs(x - v) <= 2e-7 * fabs(v);
}

bool heddle_prep_is_row(const struct nn_task *t, uint32_t k, size_t n)
{
    const struct nn_value *v = &t->in[k];

    return v->kind == NN_TENSOR && v->type == NN_F32 && v->shape.rank > 0 &&
           heddle_nn_count(&v->shape) == n && v->shape.dim[v->shape.rank - 1] == (int64_t)n;
}

bool heddle_prep_closed(const struct nn_prep *q, const struct prep_change *c,
                        const struct nn_task *last)
{
    for (uint32_t i = 0; i < c->ngone; i++) {
        const uint32_t r = heddle_prep_root(q, c->gone[i]->out_value[0]);
        uint32_t n = 0;

        for (uint32_t j = 0; j < c->ngone; j++)
            for (uint32_t k = 0; k < c->gone[j]->node->nin; k++)
                n += heddle_prep_root(q, c->gone[j]->in_value[k]) == r;
        if (c->gone[i] != last && (c->gone[i]->node->nout != 1 || q->nreads[r] != n))
            return false;
    }
    return true;
}

struct nn_call heddle_prep_call(const struct nn_prep *q, const struct nn_task *t,
                                struct nn_run *run)
{
    *run = (struct nn_run){.keep = &q->p->mem, .temp = q->temp, .alloc = q->o->alloc};
    return heddle_nn_task_call(t, run, q->o);
}

bool heddle_prep_act(const struct nn_task *t, struct dnn_act *out)
{
    struct nn_call c;
    struct nn_map m;

    if (t == NULL || t->node->op->map == NULL || t->node->nout != 1 || !heddle_prep_is_f32(t))
        return false;
    c = heddle_nn_task_call(t, NULL, &(struct nn_opts){0});
    if (t->node->op->map(&c, &m) != HEDDLE_OK || m.nin != 1 || m.m.nsteps != 1)
        return false;
    *out = (struct dnn_act){m.m.step[0].fn, m.m.step[0].p, m.m.step[0].q};
    return out->fn < DNN_ADD;
}

/* --- changes ------------------------------------------------------------------------- */

bool heddle_prep_add(struct prep_change *c, struct nn_task *t)
{
    for (uint32_t i = 0; i < c->ngone; i++)
        if (c->gone[i] == t)
            return true;
    if (c->ngone == PREP_GROUP)
        return false;
    c->gone[c->ngone++] = t;
    return true;
}

static void prep_forget(struct nn_prep *q, struct nn_task *t)
{
    for (uint32_t k = 0; k < t->node->nin; k++)
        if (t->in_value[k] != NN_NONE)
            q->nreads[heddle_prep_root(q, t->in_value[k])]--;
    t->node = NULL;
}

/* What `heddle nn show` tells: names of what went, and what came. */
static heddle_status prep_record(struct nn_prep *q, const struct prep_change *c,
                                 const struct nn_node *made)
{
    struct nn_plan *p = q->p;
    const struct nn_node **gone = heddle_prep_keep(q, c->ngone, sizeof(*gone));

    if (gone == NULL ||
        !heddle_nn_grow(&p->mem, &p->change, &q->cap_changes, p->nchanges, sizeof(*p->change)))
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < c->ngone; i++)
        gone[i] = c->gone[i]->node;
    p->change[p->nchanges++] =
        (struct nn_change){.pass = q->pass, .made = made, .gone = gone, .ngone = c->ngone};
    return HEDDLE_OK;
}

heddle_status heddle_prep_replace(struct nn_prep *q, const struct prep_change *c,
                                  struct nn_task *last)
{
    const struct nn_node *from = last->node;
    struct nn_node *node = heddle_prep_keep(q, 1, sizeof(*node));
    struct nn_value *value = heddle_prep_keep(q, (size_t)c->nin + 1, sizeof(*value));
    uint32_t *number = heddle_prep_keep(q, (size_t)c->nin + 1, sizeof(*number));
    struct nn_task t = {0};

    if (node == NULL || value == NULL || number == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t k = 0; k < c->nin; k++) {
        const struct prep_operand *o = &c->in[k];

        number[k] = o->of != NULL ? o->of->in_value[o->k] : NN_NONE;
        if (number[k] != NN_NONE)
            value[k] = o->of->in[o->k];
    }
    number[c->nin] = last->out_value[0];
    value[c->nin] = last->out[0];
    *node = (struct nn_node){.op = c->op,
                             .name = from->name,
                             .opset = from->opset,
                             .nin = c->nin,
                             .nout = 1,
                             .in = number,
                             .out = number + c->nin,
                             .attr = c->attr,
                             .nattrs = c->nattrs,
                             .own = c->own};
    t = (struct nn_task){.node = node,
                         .in = value,
                         .out = value + c->nin,
                         .in_value = number,
                         .out_value = number + c->nin};
    HEDDLE_TRY(prep_record(q, c, node));
    for (uint32_t i = 0; i < c->ngone; i++)
        prep_forget(q, c->gone[i]);
    *last = t;
    for (uint32_t k = 0; k < c->nin; k++)
        if (number[k] != NN_NONE) {
            q->nreads[heddle_prep_root(q, number[k])]++;
            q->reader[heddle_prep_root(q, number[k])] = (uint32_t)(last - q->p->task);
        }
    q->maker[heddle_prep_root(q, number[c->nin])] = (uint32_t)(last - q->p->task);
    return HEDDLE_OK;
}

heddle_status heddle_prep_alias(struct nn_prep *q, struct nn_task *t)
{
    const struct prep_change c = {.gone = {t}, .ngone = 1};

    return heddle_prep_alias_of(q, &c, t, t->in_value[0]);
}

heddle_status heddle_prep_alias_of(struct nn_prep *q, const struct prep_change *c,
                                   struct nn_task *t, uint32_t value)
{
    const uint32_t from = heddle_prep_root(q, value), to = t->out_value[0];

    HEDDLE_TRY(prep_record(q, c, NULL));
    prep_forget(q, t);
    q->nreads[from] += q->nreads[to];
    if (q->nreads[to] > 0 && q->reader[to] != NN_NONE)
        q->reader[from] = q->reader[to];
    q->p->root[to] = from;
    return HEDDLE_OK;
}

/* --- the walk ------------------------------------------------------------------------ */

/* Aliases of aliases lead to a root in one step again: they are in the order of the graph. */
static void prep_roots(struct nn_prep *q)
{
    struct nn_plan *p = q->p;
    bool again = true;

    while (again) {
        again = false;
        for (uint32_t v = 0; v < p->nvalues; v++) {
            const uint32_t r = p->root[v], rr = p->root[r];

            again |= r != rr;
            p->root[v] = rr;
        }
    }
}

/* Makers and readers anew; tasks whose results nobody reads go. */
static void prep_links(struct nn_prep *q)
{
    struct nn_plan *p = q->p;
    uint32_t n = 0;

    prep_roots(q);
    for (uint32_t v = 0; v < p->nvalues; v++) {
        q->maker[v] = q->reader[v] = NN_NONE;
        q->nreads[v] = 0;
    }
    for (uint32_t i = 0; i < p->g->noutputs; i++)
        q->nreads[p->root[p->g->output[i]]]++;
    for (uint32_t i = p->ntasks; i-- > 0;) {
        struct nn_task *t = &p->task[i];
        bool is_read = false;

        if (t->node == NULL)
            continue;
        for (uint32_t k = 0; k < t->node->nout; k++)
            is_read |= t->out_value[k] != NN_NONE && q->nreads[p->root[t->out_value[k]]] > 0;
        if (!is_read)
            t->node = NULL;
        for (uint32_t k = 0; is_read && k < t->node->nin; k++)
            if (t->in_value[k] != NN_NONE)
                q->nreads[p->root[t->in_value[k]]]++;
    }
    for (uint32_t i = 0; i < p->ntasks; i++)
        if (p->task[i].node != NULL)
            p->task[n++] = p->task[i];
    p->ntasks = n;
    for (uint32_t i = 0; i < n; i++) {
        const struct nn_task *t = &p->task[i];

        for (uint32_t k = 0; k < t->node->nin; k++)
            if (t->in_value[k] != NN_NONE)
                q->reader[p->root[t->in_value[k]]] = i;
        for (uint32_t k = 0; k < t->node->nout; k++)
            if (t->out_value[k] != NN_NONE)
                q->maker[p->root[t->out_value[k]]] = i;
    }
}

heddle_status heddle_nn_prepare(struct nn_plan *p, const struct nn_opts *o)
{
    struct heddle_scratch mem = heddle_scratch_make(o->alloc), temp = mem;
    struct nn_prep q = {.p = p, .o = o, .temp = &temp};
    heddle_status st = HEDDLE_OK;

    q.maker = heddle_scratch_get(&mem, (size_t)3 * p->nvalues, sizeof(*q.maker));
    if (q.maker == NULL)
        return heddle_why(o->why, o->why_bytes, HEDDLE_ENOMEM, "no memory for a plan");
    q.nreads = q.maker + p->nvalues;
    q.reader = q.nreads + p->nvalues;
    for (q.pass = 0; passes[q.pass] != NULL && st == HEDDLE_OK; q.pass++) {
        prep_links(&q);
        st = passes[q.pass]->run(&q);
        heddle_scratch_drop(&temp);
    }
    if (st == HEDDLE_OK)
        prep_links(&q);
    heddle_scratch_drop(&mem);
    if (st == HEDDLE_ENOMEM)
        return heddle_why(o->why, o->why_bytes, st, "no memory for a plan");
    return st;
}
