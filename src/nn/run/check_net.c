/* SPDX-License-Identifier: BSD-3-Clause */
/* check_net: cases of ONNX's test data as requests, where inputs and outputs are tensors of
 * numbers. */
#include <string.h>

#include "base/assert.h"
#include "nn/check.h"
#include "nn/run/run.h"

static bool check_is_plain(const struct nn_value *v)
{
    return v->kind == NN_TENSOR && v->type != NN_STR;
}

static struct heddle_nn_tensor check_tensor(const struct nn_value *v)
{
    struct heddle_nn_tensor t = {.type = v->type,
                                 .ndim = (unsigned)v->shape.rank,
                                 .data = v->data,
                                 .bytes = heddle_nn_bytes(v)};

    for (int d = 0; d < v->shape.rank; d++)
        t.dim[d] = v->shape.dim[d];
    return t;
}

static heddle_status check_request(heddle_nn *net, const struct nn_graph *g,
                                   const struct nn_value *in, struct nn_value *out,
                                   struct heddle_scratch *mem, const struct heddle_nn_opts *no)
{
    struct heddle_nn_tensor *t = heddle_scratch_get(mem, g->ninputs, sizeof(*t));
    struct heddle_nn_result *r = NULL;
    heddle_status st = HEDDLE_OK;

    if (t == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < g->ninputs; i++)
        t[i] = check_tensor(&in[i]);
    for (int round = 0; round < 2 && st == HEDDLE_OK; round++) { /* again: the plan is there */
        heddle_nn_result_destroy(r);
        r = NULL;
        st = heddle_nn_run(net, t, g->ninputs, no, &r);
    }
    for (uint32_t i = 0; i < g->noutputs && st == HEDDLE_OK; i++) {
        const struct heddle_nn_tensor *o = &r->output[i];
        struct nn_shape s = {.rank = (int)o->ndim};
        struct nn_value v;

        for (unsigned d = 0; d < o->ndim; d++)
            s.dim[d] = o->dim[d];
        v = heddle_nn_tensor((unsigned)o->type, &s);
        v.data = o->data;
        st = heddle_nn_copy(mem, &v, &out[i]);
    }
    heddle_nn_result_destroy(r);
    return st;
}

static heddle_status check_run(void *user, const struct nn_model *m, const struct nn_value *in,
                               struct nn_value *out, struct heddle_scratch *mem,
                               const struct nn_opts *o)
{
    const struct heddle_nn_opts no = {.size = sizeof(no), .why = o->why, .why_bytes = o->why_bytes};
    const struct nn_graph *g = m->graph;
    heddle_nn *net = NULL;
    heddle_status st;

    for (uint32_t i = 0; i < g->ninputs; i++)
        if (!check_is_plain(&in[i]) || !check_is_plain(&g->value[g->input[i]].declared))
            return heddle_nn_oracle(g, in, out, mem, o);
    for (uint32_t i = 0; i < g->noutputs; i++)
        if (!check_is_plain(&g->value[g->output[i]].declared))
            return heddle_nn_oracle(g, in, out, mem, o);
    HEDDLE_TRY(heddle_nn_open(user, m->path, &no, &net));
    st = check_request(net, g, in, out, mem, &no);
    heddle_nn_close(net);
    return st;
}

enum heddle_nn_verdict heddle_nn_check(heddle_ctx *ctx, const char *folder, char op[64], char *why,
                                       size_t why_bytes)
{
    struct nn_case c;
    enum nn_verdict v;

    v = heddle_nn_check_case(folder, ctx != NULL ? check_run : NULL, ctx, &c);
    if (op != NULL)
        memcpy(op, c.op, sizeof(c.op));
    if (why != NULL && why_bytes > 0) {
        const size_t n = strlen(c.why) < why_bytes ? strlen(c.why) : why_bytes - 1;

        memcpy(why, c.why, n);
        why[n] = '\0';
    }
    return (enum heddle_nn_verdict)v;
}
