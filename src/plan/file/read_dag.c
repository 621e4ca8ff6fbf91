/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * read_dag: `.dag` files: one value for each operation.
 *
 *     dag N M NAME
 *     n ID TIME SIZE BACKWARD LABEL      N lines, in order
 *     e FROM TO                          M lines, FROM < TO
 */
#include <string.h>

#include "base/assert.h"
#include "plan/file/text.h"

struct edge {
    uint32_t from, to, line;
};

struct reader {
    struct heddle_plan_text *t;
    struct heddle_plan_parts parts;
    struct heddle_plan_vec edges;
    uint32_t n, m;
};

static heddle_status no_memory(const struct reader *r)
{
    return HEDDLE_PLAN_FAIL(r->t->o, HEDDLE_ENOMEM, "%s: no memory for it", r->t->path);
}

static heddle_status next(struct reader *r, const char *first, const char *what, size_t done,
                          uint32_t of)
{
    const heddle_status st = heddle_plan_text_line(r->t);

    if (st == HEDDLE_AGAIN)
        return HEDDLE_PLAN_TEXT_BAD(r->t, "the file ends after %zu of %u %s", done, of, what);
    if (st == HEDDLE_OK && strcmp(r->t->word, first) != 0)
        return HEDDLE_PLAN_TEXT_BAD(r->t,
                                    "a line must begin with '%s' here, not with '%.40s': %u %s "
                                    "are announced",
                                    first, r->t->word, of, what);
    return st;
}

static heddle_status read_node(struct reader *r)
{
    const struct heddle_allocator *a = r->t->o->alloc;
    struct heddle_plan_op *op;
    struct heddle_plan_value *v;
    uint32_t *line, id = 0, backward = 0;
    const uint32_t want = (uint32_t)r->parts.ops.n;

    HEDDLE_TRY(next(r, "n", "nodes", want, r->n));
    HEDDLE_TRY(heddle_plan_text_u32(r->t, heddle_plan_text_word(r->t), "the number of the node",
                                    UINT32_MAX - 1, &id));
    if (id != want)
        return HEDDLE_PLAN_TEXT_BAD(r->t, "node %u comes where %u should", id, want);
    op = heddle_plan_vec_add(&r->parts.ops, a);
    v = heddle_plan_vec_add(&r->parts.values, a);
    line = heddle_plan_vec_add(&r->parts.op_line, a);
    if (op == NULL || v == NULL || line == NULL)
        return no_memory(r);
    *line = r->t->line;
    HEDDLE_TRY(heddle_plan_text_time(r->t, heddle_plan_text_word(r->t), "the time", &op->time));
    HEDDLE_TRY(heddle_plan_text_bytes(r->t, heddle_plan_text_word(r->t), "the size", &v->bytes));
    HEDDLE_TRY(
        heddle_plan_text_u32(r->t, heddle_plan_text_word(r->t), "the backward flag", 1, &backward));
    op->name = heddle_plan_text_word(r->t);
    op->flags = backward != 0 ? HEDDLE_PLAN_BACKWARD : 0;
    op->first_value = v->op = id;
    op->nvalues = 1;
    op->inplace = HEDDLE_PLAN_NONE;
    return heddle_plan_text_end(r->t);
}

static heddle_status read_edge(struct reader *r)
{
    struct edge *e;

    HEDDLE_TRY(next(r, "e", "edges", r->edges.n, r->m));
    e = heddle_plan_vec_add(&r->edges, r->t->o->alloc);
    if (e == NULL)
        return no_memory(r);
    e->line = r->t->line;
    HEDDLE_TRY(heddle_plan_text_u32(r->t, heddle_plan_text_word(r->t), "the first node of the edge",
                                    r->n - 1, &e->from));
    HEDDLE_TRY(heddle_plan_text_u32(r->t, heddle_plan_text_word(r->t),
                                    "the second node of the edge", r->n - 1, &e->to));
    if (e->from >= e->to)
        return HEDDLE_PLAN_TEXT_BAD(r->t,
                                    "the edge goes from %u to %u: a cycle, or "
                                    "nodes not in an order in which they can "
                                    "run",
                                    e->from, e->to);
    return heddle_plan_text_end(r->t);
}

/* The inputs of each node, sorted by insertion: edges mostly come in order. */
static heddle_status collect(struct reader *r)
{
    struct heddle_plan_op *op = r->parts.ops.p;
    const struct edge *e = r->edges.p;
    uint32_t first = 0, *in;

    for (uint32_t i = 0; i < r->m; i++) {
        if (heddle_plan_vec_add(&r->parts.inputs, r->t->o->alloc) == NULL)
            return no_memory(r);
        op[e[i].to].ninputs++;
    }
    in = r->parts.inputs.p;
    for (uint32_t i = 0; i < r->n; i++) {
        op[i].first_input = first;
        first += op[i].ninputs;
        op[i].ninputs = 0;
    }
    for (uint32_t i = 0; i < r->m; i++) {
        uint32_t *list = &in[op[e[i].to].first_input];
        uint32_t k = op[e[i].to].ninputs++;

        for (; k > 0 && list[k - 1] >= e[i].from; k--) {
            if (list[k - 1] == e[i].from) {
                r->t->line = e[i].line;
                return HEDDLE_PLAN_TEXT_BAD(r->t, "the edge from %u to %u is there twice",
                                            e[i].from, e[i].to);
            }
            list[k] = list[k - 1];
        }
        list[k] = e[i].from;
    }
    return HEDDLE_OK;
}

static heddle_status read_all(struct reader *r, struct heddle_plan_graph **out)
{
    heddle_status st;

    HEDDLE_TRY(heddle_plan_text_u32(r->t, heddle_plan_text_word(r->t), "the number of nodes",
                                    UINT32_MAX - 1, &r->n));
    HEDDLE_TRY(heddle_plan_text_u32(r->t, heddle_plan_text_word(r->t), "the number of edges",
                                    UINT32_MAX - 1, &r->m));
    if (r->n == 0)
        return HEDDLE_PLAN_TEXT_BAD(r->t, "the graph has no node");
    r->parts.name = heddle_plan_text_word(r->t);
    HEDDLE_TRY(heddle_plan_text_end(r->t));
    while (r->parts.ops.n < r->n)
        HEDDLE_TRY(read_node(r));
    while (r->edges.n < r->m)
        HEDDLE_TRY(read_edge(r));
    st = heddle_plan_text_line(r->t);
    if (st == HEDDLE_OK)
        return HEDDLE_PLAN_TEXT_BAD(r->t,
                                    "something comes behind the last of "
                                    "%u edges",
                                    r->m);
    if (st != HEDDLE_AGAIN)
        return st;
    HEDDLE_TRY(collect(r));
    return heddle_plan_parts_make(r->t, &r->parts, out);
}

heddle_status heddle_plan_read_dag(struct heddle_plan_text *t, struct heddle_plan_graph **out)
{
    struct reader r = {.t = t, .edges = {.elem = sizeof(struct edge)}};
    heddle_status st;

    t->has_comments = false;
    heddle_plan_parts_init(&r.parts);
    st = read_all(&r, out);
    heddle_plan_parts_fini(&r.parts, t->o->alloc);
    heddle_plan_vec_fini(&r.edges, t->o->alloc);
    return st;
}
