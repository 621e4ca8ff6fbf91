/* SPDX-License-Identifier: BSD-3-Clause */
/* read_graph: graphs in our text format; the others have files of their own. */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "plan/file/text.h"

struct reader {
    struct heddle_plan_text *t;
    struct heddle_plan_parts parts;
    /* chains */
    struct heddle_plan_vec x, tape, forward, backward, work_f, work_b;
    bool is_chain;
};

static heddle_status no_memory(const struct reader *r)
{
    return HEDDLE_PLAN_FAIL(r->t->o, HEDDLE_ENOMEM, "%s: no memory for it", r->t->path);
}

static heddle_status push_u64(struct reader *r, struct heddle_plan_vec *v, uint64_t n)
{
    uint64_t *p = heddle_plan_vec_add(v, r->t->o->alloc);

    if (p == NULL)
        return no_memory(r);
    *p = n;
    return HEDDLE_OK;
}

static heddle_status push_u32(struct reader *r, struct heddle_plan_vec *v, uint32_t n)
{
    uint32_t *p = heddle_plan_vec_add(v, r->t->o->alloc);

    if (p == NULL)
        return no_memory(r);
    *p = n;
    return HEDDLE_OK;
}

/* The number that a line begins with: they count up. */
static heddle_status read_id(struct reader *r, const char *what, size_t want)
{
    uint32_t id = 0;

    HEDDLE_TRY(heddle_plan_text_u32(r->t, heddle_plan_text_word(r->t), what, UINT32_MAX - 1, &id));
    if (id != want)
        return HEDDLE_PLAN_TEXT_BAD(r->t, "%s is %u; here comes %zu", what, id, want);
    return HEDDLE_OK;
}

static heddle_status unknown(struct reader *r, const char *what)
{
    return HEDDLE_PLAN_TEXT_BAD(r->t, "'%.40s' is not known in a line of %s", r->t->word, what);
}

/* ---- values -------------------------------------------------------------- */

static heddle_status read_value(struct reader *r)
{
    struct heddle_plan_value *v;
    char *w, *arg;

    HEDDLE_TRY(read_id(r, "the number of the value", r->parts.values.n));
    v = heddle_plan_vec_add(&r->parts.values, r->t->o->alloc);
    if (v == NULL)
        return no_memory(r);
    v->op = HEDDLE_PLAN_NONE;
    HEDDLE_TRY(push_u32(r, &r->parts.value_line, r->t->line));
    HEDDLE_TRY(heddle_plan_text_bytes(r->t, heddle_plan_text_word(r->t), "the size of the value",
                                      &v->bytes));
    while ((w = heddle_plan_text_word(r->t)) != NULL) {
        arg = heddle_plan_text_value(w);
        if (arg == NULL && strcmp(w, "result") == 0)
            v->flags |= HEDDLE_PLAN_RESULT;
        else if (arg == NULL && strcmp(w, "tape") == 0)
            v->flags |= HEDDLE_PLAN_TAPE;
        else if (arg == NULL && strcmp(w, "host") == 0)
            v->flags |= HEDDLE_PLAN_AT_HOST;
        else
            return unknown(r, "a value");
    }
    return HEDDLE_OK;
}

/* ---- operations ---------------------------------------------------------- */

/* "3,4,7" */
static heddle_status read_list(struct reader *r, char *list, const char *what,
                               heddle_status (*take)(struct reader *r, struct heddle_plan_op *op,
                                                     uint32_t v),
                               struct heddle_plan_op *op)
{
    for (;;) {
        char *comma = strchr(list, ',');
        uint32_t v = 0;

        if (comma != NULL)
            *comma = '\0';
        HEDDLE_TRY(heddle_plan_text_u32(r->t, list, what, UINT32_MAX - 1, &v));
        HEDDLE_TRY(take(r, op, v));
        if (comma == NULL)
            return HEDDLE_OK;
        list = comma + 1;
    }
}

static heddle_status take_input(struct reader *r, struct heddle_plan_op *op, uint32_t v)
{
    op->ninputs++;
    return push_u32(r, &r->parts.inputs, v);
}

static heddle_status take_output(struct reader *r, struct heddle_plan_op *op, uint32_t v)
{
    struct heddle_plan_value *values = r->parts.values.p;
    const uint32_t id = (uint32_t)r->parts.ops.n - 1;

    if (v >= r->parts.values.n)
        return HEDDLE_PLAN_TEXT_BAD(r->t,
                                    "value %u must have its line before the "
                                    "operation that makes it",
                                    v);
    if (op->nvalues > 0 && v != op->first_value + op->nvalues)
        return HEDDLE_PLAN_TEXT_BAD(r->t, "the outputs of an operation must "
                                          "follow each other");
    if (values[v].op != HEDDLE_PLAN_NONE)
        return HEDDLE_PLAN_TEXT_BAD(r->t, "value %u is made twice", v);
    if (op->nvalues == 0)
        op->first_value = v;
    op->nvalues++;
    values[v].op = id;
    return HEDDLE_OK;
}

static heddle_status read_op_word(struct reader *r, struct heddle_plan_op *op, char *w)
{
    char *arg = heddle_plan_text_value(w);

    if (arg == NULL && strcmp(w, "backward") == 0)
        op->flags |= HEDDLE_PLAN_BACKWARD;
    else if (arg == NULL && strcmp(w, "once") == 0)
        op->flags |= HEDDLE_PLAN_ONCE;
    else if (arg == NULL)
        return unknown(r, "an operation");
    else if (strcmp(w, "work") == 0)
        return heddle_plan_text_bytes(r->t, arg, "the workspace", &op->work_bytes);
    else if (strcmp(w, "in") == 0 && op->ninputs == 0)
        return read_list(r, arg, "an input", take_input, op);
    else if (strcmp(w, "out") == 0 && op->nvalues == 0)
        return read_list(r, arg, "an output", take_output, op);
    else if (strcmp(w, "inplace") == 0)
        return heddle_plan_text_u32(r->t, arg, "inplace", UINT32_MAX - 1, &op->inplace);
    else if (strcmp(w, "name") == 0)
        op->name = arg;
    else
        return unknown(r, "an operation");
    return HEDDLE_OK;
}

static heddle_status read_op(struct reader *r)
{
    struct heddle_plan_op *op;
    char *w;

    HEDDLE_TRY(read_id(r, "the number of the operation", r->parts.ops.n));
    op = heddle_plan_vec_add(&r->parts.ops, r->t->o->alloc);
    if (op == NULL)
        return no_memory(r);
    op->inplace = HEDDLE_PLAN_NONE;
    op->first_input = (uint32_t)r->parts.inputs.n;
    HEDDLE_TRY(push_u32(r, &r->parts.op_line, r->t->line));
    HEDDLE_TRY(heddle_plan_text_time(r->t, heddle_plan_text_word(r->t), "the time of the operation",
                                     &op->time));
    while ((w = heddle_plan_text_word(r->t)) != NULL)
        HEDDLE_TRY(read_op_word(r, op, w));
    return HEDDLE_OK;
}

/* ---- chains -------------------------------------------------------------- */

static heddle_status read_chain_head(struct reader *r)
{
    uint64_t x0 = 0;

    if (r->is_chain || r->parts.ops.n > 0 || r->parts.values.n > 0)
        return HEDDLE_PLAN_TEXT_BAD(r->t, "a chain must be the whole graph");
    r->is_chain = true;
    HEDDLE_TRY(
        heddle_plan_text_bytes(r->t, heddle_plan_text_word(r->t), "the size of the input", &x0));
    HEDDLE_TRY(push_u64(r, &r->x, x0));
    HEDDLE_TRY(push_u64(r, &r->tape, 0));
    return heddle_plan_text_end(r->t);
}

/* layer I x=B tape=B forward=T backward=T [work_f=B] [work_b=B] */
static heddle_status read_layer(struct reader *r)
{
    static const char *const key[] = {"x", "tape", "work_f", "work_b"};
    uint64_t size[4] = {0};
    double time[2] = {0};
    unsigned seen = 0;
    char *w;

    HEDDLE_TRY(read_id(r, "the number of the layer", r->forward.n));
    while ((w = heddle_plan_text_word(r->t)) != NULL) {
        char *arg = heddle_plan_text_value(w);
        unsigned i = 0;

        while (i < 4 && strcmp(w, key[i]) != 0)
            i++;
        if (i < 4)
            HEDDLE_TRY(heddle_plan_text_bytes(r->t, arg, key[i], &size[i]));
        else if (strcmp(w, "forward") == 0)
            HEDDLE_TRY(heddle_plan_text_time(r->t, arg, w, &time[0]));
        else if (strcmp(w, "backward") == 0)
            HEDDLE_TRY(heddle_plan_text_time(r->t, arg, w, &time[1]));
        else
            return unknown(r, "a layer");
        seen |= 1u << (i < 4 ? i : strcmp(w, "forward") == 0 ? 4u : 5u);
    }
    if ((seen & 0x33) != 0x33)
        return HEDDLE_PLAN_TEXT_BAD(r->t, "a layer needs x, tape, forward and backward");
    if (size[1] < size[0])
        return HEDDLE_PLAN_TEXT_BAD(r->t, "the tape is smaller than the "
                                          "activation it contains");
    HEDDLE_TRY(push_u64(r, &r->x, size[0]));
    HEDDLE_TRY(push_u64(r, &r->tape, size[1]));
    HEDDLE_TRY(push_u64(r, &r->work_f, size[2]));
    HEDDLE_TRY(push_u64(r, &r->work_b, size[3]));
    for (unsigned i = 0; i < 2; i++) {
        double *p = heddle_plan_vec_add(i == 0 ? &r->forward : &r->backward, r->t->o->alloc);

        if (p == NULL)
            return no_memory(r);
        *p = time[i];
    }
    return HEDDLE_OK;
}

static heddle_status make_chain(struct reader *r, struct heddle_plan_graph **out)
{
    const struct heddle_plan_chain c = {.n = (uint32_t)r->forward.n,
                                        .x = r->x.p,
                                        .t = r->tape.p,
                                        .forward = r->forward.p,
                                        .backward = r->backward.p,
                                        .work_f = r->work_f.p,
                                        .work_b = r->work_b.p};
    struct heddle_plan_opts o = *r->t->o;
    char why[256] = "";
    heddle_status st;

    o.why = why;
    o.why_bytes = sizeof(why);
    st = heddle_plan_graph_from_chain(&c, r->parts.name, &o, out);
    if (st == HEDDLE_EINVAL)
        return HEDDLE_PLAN_TEXT_BAD(r->t, "%s", why);
    if (st != HEDDLE_OK)
        return HEDDLE_PLAN_FAIL(r->t->o, st, "%s: %s", r->t->path, why);
    (*out)->unit_s = r->parts.unit_s;
    return HEDDLE_OK;
}

/* ---- the whole ------------------------------------------------------------- */

static heddle_status read_line(struct reader *r, bool *is_end)
{
    const char *w = r->t->word;

    if (strcmp(w, "end") == 0) {
        *is_end = true;
        return heddle_plan_text_end(r->t);
    }
    if (strcmp(w, "name") == 0) {
        r->parts.name = heddle_plan_text_word(r->t);
        if (r->parts.name == NULL)
            return HEDDLE_PLAN_TEXT_BAD(r->t, "the name is missing");
        return heddle_plan_text_end(r->t);
    }
    if (strcmp(w, "unit") == 0) {
        HEDDLE_TRY(
            heddle_plan_text_time(r->t, heddle_plan_text_word(r->t), "the unit", &r->parts.unit_s));
        return heddle_plan_text_end(r->t);
    }
    if (strcmp(w, "chain") == 0)
        return read_chain_head(r);
    if (r->is_chain && strcmp(w, "layer") == 0)
        return read_layer(r);
    if (!r->is_chain && strcmp(w, "value") == 0)
        return read_value(r);
    if (!r->is_chain && strcmp(w, "op") == 0)
        return read_op(r);
    return HEDDLE_PLAN_TEXT_BAD(r->t, "a line cannot begin with '%.40s' here", w);
}

static heddle_status read_lines(struct reader *r, struct heddle_plan_graph **out)
{
    bool is_end = false;

    while (!is_end) {
        heddle_status st = heddle_plan_text_line(r->t);

        if (st == HEDDLE_AGAIN)
            return HEDDLE_PLAN_TEXT_BAD(r->t, "the file ends before the line "
                                              "'end'");
        if (st == HEDDLE_OK)
            st = read_line(r, &is_end);
        if (st != HEDDLE_OK)
            return st;
    }
    if (r->is_chain)
        return make_chain(r, out);
    return heddle_plan_parts_make(r->t, &r->parts, out);
}

heddle_status heddle_plan_read_native(struct heddle_plan_text *t, struct heddle_plan_graph **out)
{
    const struct heddle_plan_vec of64 = {.elem = sizeof(uint64_t)};
    const struct heddle_allocator *a = t->o->alloc;
    struct reader r = {.t = t,
                       .x = of64,
                       .tape = of64,
                       .forward = of64,
                       .backward = of64,
                       .work_f = of64,
                       .work_b = of64};
    heddle_status st;

    heddle_plan_parts_init(&r.parts);
    st = read_lines(&r, out);
    heddle_plan_parts_fini(&r.parts, a);
    heddle_plan_vec_fini(&r.x, a);
    heddle_plan_vec_fini(&r.tape, a);
    heddle_plan_vec_fini(&r.forward, a);
    heddle_plan_vec_fini(&r.backward, a);
    heddle_plan_vec_fini(&r.work_f, a);
    heddle_plan_vec_fini(&r.work_b, a);
    return st;
}

static heddle_status read_any(struct heddle_plan_text *t, struct heddle_plan_graph **out)
{
    const heddle_status st = heddle_plan_text_line(t);

    if (st == HEDDLE_AGAIN)
        return HEDDLE_PLAN_TEXT_BAD(t, "the file is empty");
    if (st != HEDDLE_OK)
        return st;
    if (strcmp(t->word, "dag") == 0)
        return heddle_plan_read_dag(t, out);
    if (t->word[0] >= '0' && t->word[0] <= '9')
        return heddle_plan_read_chain(t, out);
    if (strcmp(t->word, HEDDLE_PLAN_MAGIC) == 0)
        return HEDDLE_PLAN_TEXT_BAD(t, "this is a plan, not a graph");
    HEDDLE_TRY(heddle_plan_text_magic(t, HEDDLE_PLAN_GRAPH_MAGIC));
    HEDDLE_TRY(heddle_plan_read_native(t, out));
    if (heddle_plan_text_line(t) == HEDDLE_AGAIN)
        return HEDDLE_OK;
    heddle_plan_graph_destroy(*out);
    return HEDDLE_PLAN_TEXT_BAD(t, "something comes behind the line 'end'");
}

heddle_status heddle_plan_graph_read(const char *path, const struct heddle_plan_opts *opts,
                                     struct heddle_plan_graph **out)
{
    struct heddle_plan_opts o;
    struct heddle_plan_text t;
    struct heddle_plan_graph *g = NULL;
    heddle_status st;

    HEDDLE_TRY(heddle_plan_opts_get(opts, &o));
    if (path == NULL || out == NULL)
        return HEDDLE_PLAN_FAIL(&o, HEDDLE_EINVAL, "there is no file name");
    HEDDLE_TRY(heddle_plan_text_open(&t, path, &o));
    st = read_any(&t, &g);
    heddle_plan_text_close(&t);
    if (st == HEDDLE_OK)
        *out = g;
    return st;
}
