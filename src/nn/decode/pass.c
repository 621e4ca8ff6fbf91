/* SPDX-License-Identifier: BSD-3-Clause */
/* pass: one run of a decoder's network, between its inputs in the arena and its scores there. */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/why.h"
#include "nn/decode/decode.h"

void heddle_nn_decode_inputs(const struct decode_ports *p, const struct decode_pass *x,
                             struct nn_value *in)
{
    const struct nn_graph *g = p->g;
    const int64_t batch = (int64_t)x->batch, past = (int64_t)x->past, len = (int64_t)x->len;

    for (uint32_t i = 0; i < g->ninputs; i++) {
        const struct nn_shape s = {2, {batch, i == p->mask ? past + len : len}};

        in[i] = heddle_nn_tensor(g->value[g->input[i]].declared.type, &s);
    }
    for (uint32_t k = 0; k < p->npairs; k++) {
        const struct decode_pair *pair = &p->pair[k];
        const struct nn_shape s = {4, {batch, pair->heads, past, pair->dim}};

        in[pair->in] = heddle_nn_tensor(pair->type, &s);
    }
}

/* Rows of keys and values are copied by what the inputs say: do the outputs agree? */
static heddle_status check_presents(const struct decode_ports *p, const struct decode_pass *x,
                                    const struct nn_opts *o)
{
    for (uint32_t k = 0; k < p->npairs; k++) {
        const struct decode_pair *pair = &p->pair[k];
        const struct nn_value *v = &x->plan->value[x->plan->output[pair->out]];
        const int64_t dim[4] = {(int64_t)x->batch, pair->heads, (int64_t)(x->past + x->len),
                                pair->dim};

        if (v->kind != NN_TENSOR || v->type != pair->type || v->shape.rank != 4 ||
            memcmp(v->shape.dim, dim, sizeof(dim)) != 0)
            return heddle_why(o->why, o->why_bytes, HEDDLE_EINVAL,
                              "output '%s' is not of the type and shape of input '%s', with the "
                              "new tokens",
                              p->g->value[p->g->output[pair->out]].name,
                              p->g->value[p->g->input[pair->in]].name);
    }
    return HEDDLE_OK;
}

heddle_status heddle_nn_decode_open(heddle_nn *net, const struct decode_ports *p,
                                    struct decode_pass *x, const struct nn_opts *o)
{
    struct heddle_scratch mem = heddle_scratch_make(net->alloc);
    struct nn_value *in = heddle_scratch_get(&mem, p->g->ninputs, sizeof(*in));
    heddle_status st;

    if (in == NULL)
        return heddle_why(o->why, o->why_bytes, HEDDLE_ENOMEM, "no memory for a request");
    heddle_nn_decode_inputs(p, x, in);
    st = heddle_nn_lease(net, in, o, &x->plan, &x->instance);
    heddle_scratch_drop(&mem);
    if (st == HEDDLE_OK)
        st = check_presents(p, x, o);
    if (st != HEDDLE_OK)
        heddle_nn_decode_close(net, x);
    return st;
}

void heddle_nn_decode_close(heddle_nn *net, struct decode_pass *x)
{
    if (x->plan != NULL)
        heddle_nn_unlease(net, x->plan, x->instance);
    x->plan = NULL;
    x->instance = NULL;
}

/* Row `row` of input i becomes value(0), value(1), ...: `first` counts up by `step` n times from
 * place `from`; everything else is `rest`. */
struct row {
    uint32_t input;
    size_t row, width, from, n;
    int64_t first, step, rest;
};

static void put_row(const struct decode_ports *p, const struct decode_pass *x, const struct row *r)
{
    const uint32_t v = r->input == DECODE_NO_PORT ? NN_NONE : p->g->input[r->input];
    void *data = v == NN_NONE ? NULL : heddle_nn_instance_data(x->instance, v);

    if (data == NULL)
        return;
    for (size_t i = 0; i < r->width; i++) {
        const bool is_in = i >= r->from && i < r->from + r->n;
        const int64_t value = is_in ? r->first + r->step * (int64_t)(i - r->from) : r->rest;

        heddle_nn_put_i64(x->plan->value[v].type, data, r->row * r->width + i, value);
    }
}

void heddle_nn_decode_fill(const struct decode_ports *p, const struct decode_pass *x, size_t row,
                           const int64_t *token, size_t n, size_t at)
{
    const uint32_t ids = p->g->input[p->ids];
    void *data = heddle_nn_instance_data(x->instance, ids);

    for (size_t i = 0; i < x->len && data != NULL; i++)
        heddle_nn_put_i64(x->plan->value[ids].type, data, row * x->len + i, i < n ? token[i] : 0);
    put_row(p, x,
            &(struct row){.input = p->positions,
                          .row = row,
                          .width = x->len,
                          .n = n,
                          .first = (int64_t)at,
                          .step = 1});
    put_row(p, x,
            &(struct row){
                .input = p->mask, .row = row, .width = x->past + x->len, .n = at + n, .first = 1});
}

struct ended {
    heddle_status st;
};

static void pass_ended(void *user, heddle_status st)
{
    ((struct ended *)user)->st = st;
}

heddle_status heddle_nn_decode_run(heddle_nn *net, const struct decode_pass *x,
                                   const struct nn_opts *o)
{
    struct ended e = {HEDDLE_AGAIN};
    heddle_event *event = NULL;
    const struct heddle_task_opts opts = {
        .size = sizeof(opts), .done = pass_ended, .done_user = &e, .event_out = &event};
    struct heddle_error error = {.size = sizeof(error)};
    const char *why;
    heddle_status st = heddle_nn_instance_launch(x->instance, &opts);

    if (st == HEDDLE_OK) {
        st = heddle_event_wait(event, 0);
        heddle_event_unref(event);
        if (e.st == HEDDLE_OK)
            return HEDDLE_OK;
        st = e.st < 0 ? e.st : st;
        heddle_nn_instance_spoil(x->instance);
    }
    why = heddle_nn_instance_why(x->instance);
    if (why[0] != '\0')
        return heddle_why(o->why, o->why_bytes, st, "%s", why);
    (void)heddle_ctx_error(net->ctx, &error);
    return heddle_why(o->why, o->why_bytes, st, "%s",
                      error.message[0] != '\0' ? error.message : heddle_status_text(st));
}

size_t heddle_nn_decode_width(const struct decode_ports *p, const struct decode_pass *x)
{
    const struct nn_shape *s = &x->plan->value[p->g->output[p->logits]].shape;

    /* Another shape than that of the tokens: nothing that could be a score for each. */
    if (s->rank != 3 || s->dim[0] != (int64_t)x->batch || s->dim[1] != (int64_t)x->len)
        return 0;
    return (size_t)s->dim[2];
}

void heddle_nn_decode_scores(const struct decode_ports *p, const struct decode_pass *x, size_t row,
                             size_t i, float *to)
{
    const uint32_t v = x->plan->output[p->logits];
    const void *data = heddle_nn_instance_data(x->instance, v);
    const size_t n = heddle_nn_decode_width(p, x), from = (row * x->len + i) * n;
    const unsigned type = x->plan->value[v].type;

    if (type == NN_F32)
        memcpy(to, (const float *)data + from, n * sizeof(*to));
    for (size_t k = 0; k < n && type != NN_F32; k++)
        to[k] = (float)heddle_nn_get_f64(type, data, from + k);
}
