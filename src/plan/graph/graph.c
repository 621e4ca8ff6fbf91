/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * graph: checked copies of what a caller gives, and what is known of them.
 *
 * Structure   a graph is the first member of a graph_box, which has the memory
 *             behind it, its floor and the peak of its order. Everything lies in
 *             one scratch.
 * Bounds      all values and the largest workspace together have less than 2^62
 *             bytes: no sum over a subset overflows, alignment included.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/sized.h"
#include "plan/graph/graph.h"

struct graph_box {
    struct heddle_plan_graph g;
    struct heddle_scratch mem;
    uint64_t peak, floor;
    uint32_t floor_op;
};

#define BYTES_MAX ((uint64_t)1 << 62)
#define COUNT_MAX ((uint32_t)1 << 30)

/* ---- checking ------------------------------------------------------------ */

struct check {
    const struct heddle_plan_graph *g;
    const struct heddle_plan_opts *o;
    struct heddle_plan_where *where;
};

#define BAD(c, ...) HEDDLE_PLAN_FAIL((c)->o, HEDDLE_EINVAL, __VA_ARGS__)

static heddle_status check_counts(struct check *c)
{
    const struct heddle_plan_graph *g = c->g;

    if (g->nops == 0)
        return BAD(c, "the graph has no operation");
    if (g->nops > COUNT_MAX || g->nvalues > COUNT_MAX || g->ninputs > COUNT_MAX)
        return BAD(c, "the graph has more than 2^30 operations, values or "
                      "inputs");
    if (g->ops == NULL || (g->nvalues > 0 && g->values == NULL) ||
        (g->ninputs > 0 && g->inputs == NULL))
        return BAD(c, "an array of the graph is missing");
    if (!isfinite(g->unit_s) || g->unit_s < 0)
        return BAD(c, "the unit of time is negative or not finite");
    return HEDDLE_OK;
}

static heddle_status check_values(struct check *c)
{
    const uint32_t known = HEDDLE_PLAN_RESULT | HEDDLE_PLAN_TAPE | HEDDLE_PLAN_AT_HOST;
    uint64_t sum = 0;

    for (uint32_t v = 0; v < c->g->nvalues; v++) {
        const struct heddle_plan_value *x = &c->g->values[v];

        c->where->value = v;
        if (x->op != HEDDLE_PLAN_NONE && x->op >= c->g->nops)
            return BAD(c,
                       "value %u is made by operation %u, which does not "
                       "exist",
                       v, x->op);
        if ((x->flags & ~known) != 0)
            return BAD(c, "value %u has unknown flags", v);
        if ((x->flags & HEDDLE_PLAN_AT_HOST) != 0 && x->op != HEDDLE_PLAN_NONE)
            return BAD(c,
                       "value %u begins on the host, yet operation %u "
                       "makes it",
                       v, x->op);
        if (x->bytes >= BYTES_MAX || sum + x->bytes >= BYTES_MAX)
            return BAD(c,
                       "value %u has %llu bytes: with those before it that "
                       "is 2^62 or more",
                       v, (unsigned long long)x->bytes);
        sum += x->bytes;
    }
    c->where->value = HEDDLE_PLAN_NONE;
    return HEDDLE_OK;
}

static heddle_status check_outputs(struct check *c, uint32_t op)
{
    const struct heddle_plan_op *o = &c->g->ops[op];

    if (o->nvalues > 64)
        return BAD(c, "operation %u makes %u values; 64 is the limit", op, o->nvalues);
    if (o->first_value > c->g->nvalues || o->nvalues > c->g->nvalues - o->first_value)
        return BAD(c, "operation %u makes values that do not exist", op);
    for (uint32_t i = 0; i < o->nvalues; i++)
        if (c->g->values[o->first_value + i].op != op)
            return BAD(c, "value %u belongs to two operations", o->first_value + i);
    return HEDDLE_OK;
}

static heddle_status check_inputs(struct check *c, uint32_t op)
{
    const struct heddle_plan_op *o = &c->g->ops[op];
    bool has_inplace = false;

    if (o->first_input > c->g->ninputs || o->ninputs > c->g->ninputs - o->first_input)
        return BAD(c, "the inputs of operation %u are not all there", op);
    for (uint32_t i = 0; i < o->ninputs; i++) {
        const uint32_t v = c->g->inputs[o->first_input + i];

        if (v >= c->g->nvalues)
            return BAD(c, "operation %u reads value %u, which does not exist", op, v);
        if (i > 0 && v <= c->g->inputs[o->first_input + i - 1])
            return BAD(c,
                       "the inputs of operation %u are not sorted, or value "
                       "%u is there twice",
                       op, v);
        if (c->g->values[v].op != HEDDLE_PLAN_NONE && c->g->values[v].op >= op)
            return BAD(c,
                       "operation %u reads value %u, which operation %u makes "
                       "%s: a cycle, or not an order in which they can run",
                       op, v, c->g->values[v].op, c->g->values[v].op == op ? "itself" : "later");
        has_inplace = has_inplace || v == o->inplace;
    }
    if (o->inplace == HEDDLE_PLAN_NONE)
        return HEDDLE_OK;
    if (!has_inplace || o->nvalues == 0)
        return BAD(c,
                   "operation %u may take the memory of value %u, which is "
                   "not one of its inputs, or has no output",
                   op, o->inplace);
    if (c->g->values[o->first_value].bytes > c->g->values[o->inplace].bytes)
        return BAD(c,
                   "the first output of operation %u is larger than value "
                   "%u, whose memory it may take",
                   op, o->inplace);
    return HEDDLE_OK;
}

static heddle_status check_ops(struct check *c)
{
    const uint32_t known = HEDDLE_PLAN_BACKWARD | HEDDLE_PLAN_ONCE;
    uint64_t made = 0, owned = 0;
    double sum = 0;

    for (uint32_t op = 0; op < c->g->nops; op++) {
        const struct heddle_plan_op *o = &c->g->ops[op];

        c->where->op = op;
        sum += o->time;
        if (!isfinite(o->time) || o->time < 0)
            return BAD(c, "the time of operation %u is negative or not finite", op);
        if (!isfinite(sum))
            return BAD(c, "the times up to operation %u are too large to add", op);
        if (o->work_bytes >= BYTES_MAX)
            return BAD(c,
                       "the workspace of operation %u has 2^62 bytes or "
                       "more",
                       op);
        if ((o->flags & ~known) != 0)
            return BAD(c, "operation %u has unknown flags", op);
        HEDDLE_TRY(check_outputs(c, op));
        HEDDLE_TRY(check_inputs(c, op));
        made += o->nvalues;
    }
    c->where->op = HEDDLE_PLAN_NONE;
    for (uint32_t v = 0; v < c->g->nvalues; v++)
        owned += c->g->values[v].op != HEDDLE_PLAN_NONE;
    if (made != owned)
        return BAD(c, "%llu values name an operation that does not make them",
                   (unsigned long long)(owned - made));
    return HEDDLE_OK;
}

heddle_status heddle_plan_graph_check(const struct heddle_plan_graph *g,
                                      const struct heddle_plan_opts *o,
                                      struct heddle_plan_where *where)
{
    struct check c = {g, o, where};

    where->op = where->value = HEDDLE_PLAN_NONE;
    HEDDLE_TRY(check_counts(&c));
    HEDDLE_TRY(check_values(&c));
    return check_ops(&c);
}

/* ---- what is known of a graph ---------------------------------------------- */

uint64_t heddle_plan_op_bytes(const struct heddle_plan_graph *g, uint32_t op, uint64_t mask)
{
    const struct heddle_plan_op *o = &g->ops[op];
    uint64_t sum = o->work_bytes;

    for (uint32_t i = 0; i < o->ninputs; i++)
        sum += g->values[g->inputs[o->first_input + i]].bytes;
    for (uint32_t i = o->inplace != HEDDLE_PLAN_NONE; i < o->nvalues; i++)
        if (mask >> i & 1)
            sum += g->values[o->first_value + i].bytes;
    return sum;
}

heddle_status heddle_plan_users_make(const struct heddle_plan_graph *g, struct heddle_scratch *mem,
                                     struct heddle_plan_users *out)
{
    uint32_t *first = heddle_scratch_get(mem, (size_t)g->nvalues + 2, sizeof(*first));
    uint32_t *user = heddle_scratch_get(mem, g->ninputs, sizeof(*user));

    if (first == NULL || user == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < g->ninputs; i++)
        first[g->inputs[i] + 2]++;
    for (uint32_t v = 0; v < g->nvalues; v++)
        first[v + 2] += first[v + 1];
    for (uint32_t op = 0; op < g->nops; op++)
        for (uint32_t i = 0; i < g->ops[op].ninputs; i++)
            user[first[g->inputs[g->ops[op].first_input + i] + 1]++] = op;
    out->first = first;
    out->user = user;
    return HEDDLE_OK;
}

static void find_floor(struct graph_box *b)
{
    const struct heddle_plan_graph *g = &b->g;

    b->floor = 0;
    b->floor_op = HEDDLE_PLAN_NONE;
    for (uint32_t v = 0; v < g->nvalues; v++)
        if (heddle_plan_is_initial(&g->values[v]))
            b->floor += g->values[v].bytes;
    for (uint32_t op = 0; op < g->nops; op++) {
        const uint64_t n = heddle_plan_op_bytes(g, op, 1);

        if (n > b->floor) {
            b->floor = n;
            b->floor_op = op;
        }
    }
}

/* The given order: `live` before op runs; last[v] is the last reader of v. */
static uint64_t order_step(const struct heddle_plan_graph *g, uint32_t op, const uint32_t *first,
                           const uint32_t *last, uint64_t live, uint64_t *peak)
{
    const struct heddle_plan_op *o = &g->ops[op];
    const bool takes = o->inplace != HEDDLE_PLAN_NONE && last[o->inplace] == op &&
                       (g->values[o->inplace].flags & HEDDLE_PLAN_RESULT) == 0;
    uint64_t during, gone = 0;

    for (uint32_t i = 0; i < o->ninputs; i++) {
        const uint32_t v = g->inputs[o->first_input + i];
        const struct heddle_plan_value *x = &g->values[v];
        const bool is_taken = takes && v == o->inplace;

        if ((x->flags & HEDDLE_PLAN_AT_HOST) != 0 && first[v] == op)
            live += x->bytes;
        if (is_taken || (last[v] == op && !heddle_plan_is_initial(x) &&
                         (x->op == HEDDLE_PLAN_NONE || (x->flags & HEDDLE_PLAN_RESULT) == 0)))
            gone += x->bytes;
    }
    during = live;
    for (uint32_t i = 0; i < o->nvalues; i++) {
        const uint32_t v = o->first_value + i;
        const bool is_used = last[v] != HEDDLE_PLAN_NONE;
        const bool stays = (g->values[v].flags & HEDDLE_PLAN_RESULT) != 0;

        if (i > 0 && !is_used && !stays)
            continue;
        if (i > 0 || !takes)
            during += g->values[v].bytes;
        live += g->values[v].bytes;
        if (!is_used && !stays)
            gone += g->values[v].bytes;
    }
    during += o->work_bytes;
    *peak = during > *peak ? during : *peak;
    return live - gone;
}

static heddle_status find_peak(struct graph_box *b)
{
    const struct heddle_plan_graph *g = &b->g;
    struct heddle_scratch tmp = heddle_scratch_make(b->mem.a);
    uint32_t *last = heddle_scratch_get(&tmp, g->nvalues, sizeof(*last));
    uint32_t *first = heddle_scratch_get(&tmp, g->nvalues, sizeof(*first));
    uint64_t live = 0;

    if (last == NULL || first == NULL) {
        heddle_scratch_drop(&tmp);
        return HEDDLE_ENOMEM;
    }
    memset(last, 0xff, g->nvalues * sizeof(*last));
    memset(first, 0xff, g->nvalues * sizeof(*first));
    for (uint32_t op = 0; op < g->nops; op++)
        for (uint32_t i = 0; i < g->ops[op].ninputs; i++) {
            const uint32_t v = g->inputs[g->ops[op].first_input + i];

            last[v] = op;
            if (first[v] == HEDDLE_PLAN_NONE)
                first[v] = op;
        }
    for (uint32_t v = 0; v < g->nvalues; v++)
        if (heddle_plan_is_initial(&g->values[v]))
            live += g->values[v].bytes;
    b->peak = live;
    for (uint32_t op = 0; op < g->nops; op++)
        live = order_step(g, op, first, last, live, &b->peak);
    heddle_scratch_drop(&tmp);
    return HEDDLE_OK;
}

uint64_t heddle_plan_floor(const struct heddle_plan_graph *g, uint32_t *op_out)
{
    const struct graph_box *b = (const struct graph_box *)g;

    if (op_out != NULL)
        *op_out = g != NULL ? b->floor_op : HEDDLE_PLAN_NONE;
    return g != NULL ? b->floor : 0;
}

double heddle_plan_sum_times(const struct heddle_plan_graph *g)
{
    double sum = 0;

    for (uint32_t i = 0; i < g->nops; i++)
        sum += g->ops[i].time;
    return sum;
}

uint64_t heddle_plan_peak(const struct heddle_plan_graph *g)
{
    return g != NULL ? ((const struct graph_box *)g)->peak : 0;
}

/* ---- copies -------------------------------------------------------------- */

static void *copy(struct heddle_scratch *mem, const void *from, size_t n, size_t bytes)
{
    void *p = heddle_scratch_get(mem, n, bytes);

    if (p != NULL && n > 0)
        memcpy(p, from, n * bytes);
    return p;
}

static char *copy_name(struct heddle_scratch *mem, const char *name)
{
    return copy(mem, name, strlen(name) + 1, 1);
}

static bool fill(struct graph_box *b, const struct heddle_plan_graph *desc)
{
    struct heddle_plan_op *ops = copy(&b->mem, desc->ops, desc->nops, sizeof(*ops));

    b->g.ops = ops;
    b->g.values = copy(&b->mem, desc->values, desc->nvalues, sizeof(*b->g.values));
    b->g.inputs = copy(&b->mem, desc->inputs, desc->ninputs, sizeof(*b->g.inputs));
    b->g.name = copy_name(&b->mem, desc->name != NULL ? desc->name : "graph");
    if (ops == NULL || b->g.values == NULL || b->g.inputs == NULL || b->g.name == NULL)
        return false;
    for (uint32_t i = 0; i < desc->nops; i++)
        if (ops[i].name != NULL) {
            ops[i].name = copy_name(&b->mem, ops[i].name);
            if (ops[i].name == NULL)
                return false;
        }
    return true;
}

/* Copies a checked graph. */
static heddle_status make(const struct heddle_plan_graph *desc, const struct heddle_plan_opts *o,
                          struct graph_box **out)
{
    struct heddle_scratch mem = heddle_scratch_make(o->alloc);
    struct graph_box *b = heddle_scratch_get(&mem, 1, sizeof(*b));

    if (b == NULL)
        return HEDDLE_PLAN_FAIL(o, HEDDLE_ENOMEM, "no memory for the graph");
    b->mem = mem;
    b->g = *desc;
    b->g.size = sizeof(b->g);
    b->g.chain = NULL;
    if (!fill(b, desc) || find_peak(b) != HEDDLE_OK) {
        mem = b->mem;
        heddle_scratch_drop(&mem);
        return HEDDLE_PLAN_FAIL(o, HEDDLE_ENOMEM, "no memory for the graph");
    }
    find_floor(b);
    *out = b;
    return HEDDLE_OK;
}

heddle_status heddle_plan_graph_create(const struct heddle_plan_graph *desc,
                                       const struct heddle_plan_opts *opts,
                                       struct heddle_plan_graph **out)
{
    struct heddle_plan_opts o;
    struct heddle_plan_graph d;
    struct heddle_plan_where where;
    struct graph_box *b = NULL;

    HEDDLE_TRY(heddle_plan_opts_get(opts, &o));
    if (desc == NULL || out == NULL)
        return HEDDLE_PLAN_FAIL(&o, HEDDLE_EINVAL, "there is no graph");
    HEDDLE_TRY(HEDDLE_SIZED_GET(struct heddle_plan_graph, &d, desc, o.why, o.why_bytes));
    HEDDLE_TRY(heddle_plan_graph_check(&d, &o, &where));
    HEDDLE_TRY(make(&d, &o, &b));
    *out = &b->g;
    return HEDDLE_OK;
}

void heddle_plan_graph_destroy(struct heddle_plan_graph *g)
{
    struct heddle_scratch mem;

    if (g == NULL)
        return;
    mem = ((struct graph_box *)g)->mem;
    heddle_scratch_drop(&mem);
}

struct heddle_scratch *heddle_plan_graph_mem(struct heddle_plan_graph *g)
{
    return &((struct graph_box *)g)->mem;
}
