/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control: graphs inside of nodes: If, Loop, Scan.
 *
 * Loop    operands: the number of passes (optional), a condition (optional), values that go from
 *         pass to pass. Its graph gets pass, condition and values, and gives condition, values,
 *         and elements of lists that are stacked.
 * Scan    some operands go from pass to pass, the others are cut into slices, one per pass;
 *         results are the values, and slices that are stacked.
 */
#include <string.h>

#include "base/assert.h"
#include "nn/nn.h"
#include "nn/op/op.h"

/* What is known of results before the graph runs: nothing. */
static heddle_status unknown_shape(struct nn_call *c)
{
    for (uint32_t i = 0; i < c->nout; i++)
        c->out[i] = (struct nn_value){.kind = NN_TENSOR, .shape = {.rank = -1}};
    return HEDDLE_OK;
}

static bool is_true(const struct nn_value *v)
{
    return heddle_nn_get_i64(v->type, v->data, 0) != 0;
}

static heddle_status if_ref(struct nn_call *c)
{
    if (heddle_nn_count(&c->in[0].shape) != 1)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "the condition has shape %s",
                              heddle_nn_shape_text(&c->in[0].shape).text);
    return heddle_nn_run_sub(c, is_true(&c->in[0]) ? "then_branch" : "else_branch", NULL, 0, c->out,
                             c->nout);
}

/* --- results that are stacked ---------------------------------------------------- */

/* The elements of one result, one per pass. */
struct stack {
    struct nn_value *item;
    size_t n, cap;
};

static heddle_status push(struct nn_call *c, struct stack *s, const struct nn_value *v)
{
    if (s->n == s->cap) {
        const size_t cap = s->cap > 0 ? 2 * s->cap : 8;
        struct nn_value *item = heddle_nn_temp(c, cap, sizeof(*item));

        if (item == NULL)
            return HEDDLE_ENOMEM;
        if (s->n > 0)
            memcpy(item, s->item, s->n * sizeof(*item));
        s->item = item;
        s->cap = cap;
    }
    s->item[s->n++] = *v;
    return HEDDLE_OK;
}

/* All elements along a new dimension `axis`. The type of none is what the graph says. */
static heddle_status stack_up(struct nn_call *c, const struct stack *s, int64_t axis,
                              bool is_reverse, const struct nn_value *declared, uint32_t i)
{
    const struct nn_value *first = s->n > 0 ? &s->item[0] : declared;
    struct nn_shape out = first->shape;
    size_t outer, each;
    int at;

    if (out.rank < 0 || out.rank + 1 > NN_DIMS)
        return heddle_nn_fail(c, HEDDLE_ENOSYS, "result %u has no shape", i);
    HEDDLE_TRY(heddle_nn_axis(c, axis, out.rank + 1, &at));
    for (int d = out.rank++; d > at; d--)
        out.dim[d] = out.dim[d - 1];
    out.dim[at] = (int64_t)s->n;
    for (int d = 0; d < out.rank; d++)
        out.dim[d] = out.dim[d] < 0 ? 0 : out.dim[d];
    HEDDLE_TRY(heddle_nn_out(c, i, first->type, &out));
    outer = heddle_nn_count_range(&out, 0, at);
    each = heddle_nn_count_range(&out, at + 1, out.rank) * heddle_nn_type_bytes(first->type);
    for (size_t k = 0; k < s->n; k++) {
        const size_t to = is_reverse ? s->n - 1 - k : k;

        if (s->item[k].type != first->type ||
            !heddle_nn_same_shape(&s->item[k].shape, &first->shape))
            return heddle_nn_fail(c, HEDDLE_EINVAL, "result %u changes its shape", i);
        for (size_t o = 0; o < outer; o++)
            memcpy((char *)c->out[i].data + (o * s->n + to) * each,
                   (const char *)s->item[k].data + o * each, each);
    }
    return HEDDLE_OK;
}

static const struct nn_value *declared(const struct nn_graph *g, uint32_t output)
{
    return &g->value[g->output[output]].declared;
}

/* --- Loop ------------------------------------------------------------------------------ */

struct passes {
    const struct nn_graph *g;
    uint32_t nvalues, nstacked;
    struct nn_value *in, *out; /* of the graph */
    struct stack *stack;
};

static heddle_status passes_begin(struct nn_call *c, struct passes *p, uint32_t nvalues,
                                  uint32_t before, uint32_t behind)
{
    p->g = heddle_nn_sub(c, "body");
    p->nvalues = nvalues;
    if (p->g == NULL || c->nout < nvalues || p->g->noutputs != behind + c->nout)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "its graph does not have its results");
    p->nstacked = c->nout - nvalues;
    p->in = heddle_nn_temp(c, (size_t)before + p->g->ninputs + 1, sizeof(*p->in));
    p->out = heddle_nn_temp(c, (size_t)p->g->noutputs + 1, sizeof(*p->out));
    p->stack = heddle_nn_temp(c, (size_t)p->nstacked + 1, sizeof(*p->stack));
    return p->in != NULL && p->out != NULL && p->stack != NULL ? HEDDLE_OK : HEDDLE_ENOMEM;
}

/* One pass of a loop: values and stacked results move on. */
static heddle_status loop_pass(struct nn_call *c, struct passes *p, int64_t pass, bool *goes_on)
{
    int64_t *number = heddle_nn_keep(c, 1, sizeof(*number));
    uint8_t *condition = heddle_nn_keep(c, 1, sizeof(*condition));
    const struct nn_shape scalar = {.rank = 0};

    if (number == NULL || condition == NULL)
        return HEDDLE_ENOMEM;
    *number = pass;
    *condition = *goes_on;
    p->in[0] = heddle_nn_tensor(NN_I64, &scalar);
    p->in[0].data = number;
    p->in[1] = heddle_nn_tensor(NN_BOOL, &scalar);
    p->in[1].data = condition;
    HEDDLE_TRY(heddle_nn_run_sub(c, "body", p->in, 2 + p->nvalues, p->out, p->g->noutputs));
    *goes_on = is_true(&p->out[0]);
    memcpy(p->in + 2, p->out + 1, p->nvalues * sizeof(*p->in));
    for (uint32_t i = 0; i < p->nstacked; i++)
        HEDDLE_TRY(push(c, &p->stack[i], &p->out[1 + p->nvalues + i]));
    return HEDDLE_OK;
}

static heddle_status loop_ref(struct nn_call *c)
{
    const uint32_t nvalues = c->nin > 2 ? c->nin - 2 : 0;
    int64_t most = INT64_MAX;
    bool goes_on = true;
    struct passes p;

    HEDDLE_TRY(passes_begin(c, &p, nvalues, 2, 1));
    if (heddle_nn_has_in(c, 0))
        most = heddle_nn_get_i64(c->in[0].type, c->in[0].data, 0);
    if (heddle_nn_has_in(c, 1))
        goes_on = is_true(&c->in[1]);
    memcpy(p.in + 2, c->in + 2, nvalues * sizeof(*p.in));
    for (int64_t pass = 0; pass < most && goes_on; pass++)
        HEDDLE_TRY(loop_pass(c, &p, pass, &goes_on));
    memcpy(c->out, p.in + 2, nvalues * sizeof(*p.in));
    for (uint32_t i = 0; i < p.nstacked; i++)
        HEDDLE_TRY(stack_up(c, &p.stack[i], 0, false, declared(p.g, 1 + nvalues + i), nvalues + i));
    return HEDDLE_OK;
}

/* --- Scan ----------------------------------------------------------------------------------- */

/* Element i of a list attribute; absent: 0. */
static int64_t list_at(const struct nn_call *c, const char *name, uint32_t i)
{
    size_t n;
    const int64_t *v = heddle_nn_ints(c, name, &n);

    return i < n ? v[i] : 0;
}

/* Slice k of x along `axis`. */
static heddle_status slice(struct nn_call *c, const struct nn_value *x, int axis, size_t k,
                           struct nn_value *out)
{
    const struct nn_shape *s = &x->shape;
    const size_t outer = heddle_nn_count_range(s, 0, axis),
                 each = heddle_nn_count_range(s, axis + 1, s->rank) * heddle_nn_type_bytes(x->type);
    struct nn_shape shape = *s;

    for (int d = axis; d < s->rank - 1; d++)
        shape.dim[d] = s->dim[d + 1];
    shape.rank--;
    *out = heddle_nn_tensor(x->type, &shape);
    out->data = heddle_nn_keep(c, outer * each, 1);
    if (out->data == NULL)
        return HEDDLE_ENOMEM;
    for (size_t o = 0; o < outer; o++)
        memcpy((char *)out->data + o * each,
               (const char *)x->data + (o * (size_t)s->dim[axis] + k) * each, each);
    return HEDDLE_OK;
}

/* How many passes: the length of the operands that are cut, which is the same for all. */
static heddle_status scan_length(struct nn_call *c, uint32_t nvalues, int *axis, int64_t *out)
{
    *out = -1;
    for (uint32_t i = nvalues; i < c->nin; i++) {
        HEDDLE_TRY(heddle_nn_axis(c, list_at(c, "scan_input_axes", i - nvalues),
                                  c->in[i].shape.rank, &axis[i - nvalues]));
        if (*out >= 0 && c->in[i].shape.dim[axis[i - nvalues]] != *out)
            return heddle_nn_fail(c, HEDDLE_EINVAL, "operand %u has another length", i);
        *out = c->in[i].shape.dim[axis[i - nvalues]];
    }
    return *out >= 0 ? HEDDLE_OK : heddle_nn_fail(c, HEDDLE_EINVAL, "nothing is cut into slices");
}

static heddle_status scan_pass(struct nn_call *c, struct passes *p, const int *axis, int64_t pass,
                               int64_t length)
{
    for (uint32_t i = p->nvalues; i < c->nin; i++) {
        const bool is_back = list_at(c, "scan_input_directions", i - p->nvalues) != 0;

        HEDDLE_TRY(slice(c, &c->in[i], axis[i - p->nvalues],
                         (size_t)(is_back ? length - 1 - pass : pass), &p->in[i]));
    }
    HEDDLE_TRY(heddle_nn_run_sub(c, "body", p->in, c->nin, p->out, p->g->noutputs));
    memcpy(p->in, p->out, p->nvalues * sizeof(*p->in));
    for (uint32_t i = 0; i < p->nstacked; i++)
        HEDDLE_TRY(push(c, &p->stack[i], &p->out[p->nvalues + i]));
    return HEDDLE_OK;
}

static heddle_status scan_ref(struct nn_call *c)
{
    const int64_t ncut = heddle_nn_int(c, "num_scan_inputs", 0);
    int64_t length;
    struct passes p;
    int *axis;

    if (ncut < 1 || ncut > c->nin)
        return heddle_nn_fail(c, HEDDLE_EINVAL, "%lld of %u operands are cut", (long long)ncut,
                              c->nin);
    HEDDLE_TRY(passes_begin(c, &p, c->nin - (uint32_t)ncut, c->nin, 0));
    axis = heddle_nn_temp(c, c->nin, sizeof(*axis));
    if (axis == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(scan_length(c, p.nvalues, axis, &length));
    memcpy(p.in, c->in, p.nvalues * sizeof(*p.in));
    for (int64_t pass = 0; pass < length; pass++)
        HEDDLE_TRY(scan_pass(c, &p, axis, pass, length));
    memcpy(c->out, p.in, p.nvalues * sizeof(*p.in));
    for (uint32_t i = 0; i < p.nstacked; i++)
        HEDDLE_TRY(stack_up(c, &p.stack[i], list_at(c, "scan_output_axes", i),
                            list_at(c, "scan_output_directions", i) != 0,
                            declared(p.g, p.nvalues + i), p.nvalues + i));
    return HEDDLE_OK;
}

static const struct nn_attr_rule if_attrs[] = {
    {"then_branch", NN_GRAPH, true}, {"else_branch", NN_GRAPH, true}, {0}};
static const struct nn_attr_rule loop_attrs[] = {{"body", NN_GRAPH, true}, {0}};
static const struct nn_attr_rule scan_attrs[] = {{"body", NN_GRAPH, true},
                                                 {"num_scan_inputs", NN_INT, true},
                                                 {"scan_input_axes", NN_INTS, false},
                                                 {"scan_input_directions", NN_INTS, false},
                                                 {"scan_output_axes", NN_INTS, false},
                                                 {"scan_output_directions", NN_INTS, false},
                                                 {0}};

#define ROW(nm, from, least, most, at, fn)                                                         \
    {                                                                                              \
        .name = nm, .since = from, .nin_min = least, .nin_max = most, .nout_min = 0,               \
        .nout_max = NN_MANY, .flags = NN_DYNAMIC | NN_CONTROL, .attrs = at,                        \
        .shape = unknown_shape, .ref = fn                                                          \
    }

const struct nn_op heddle_nn_op_control[] = {
    ROW("If", 1, 1, 1, if_attrs, if_ref),
    ROW("Loop", 1, 2, NN_MANY, loop_attrs, loop_ref),
    ROW("Scan", 9, 1, NN_MANY, scan_attrs, scan_ref),
    {0},
};
