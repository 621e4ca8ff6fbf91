/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net: networks behind the queue of a model.
 *
 * Batches   inputs of jobs are laid behind each other along the first dimension; each job gets
 *           its rows of the outputs. A job alone is computed from where its data are.
 * Threads   run() from any thread; a request ends on a worker.
 */
#include "serve/net.h"

#include <stdlib.h>
#include <string.h>

#include "base/why.h"
#include "heddle/nn.h"
#include "serve/generate.h"

/* What a model is for its backend. */
struct net {
    heddle_nn *nn;
    struct generator *generator;
};

/* One request of the network, for the jobs of a batch. */
struct request {
    struct serve_model *m;
    struct serve_job *const *jobs;
    size_t n;
    void (*ended)(void *batch, heddle_status st, const char *why);
    void *batch;
    char *joined; /* the inputs of all jobs, one input after the other */
    struct heddle_nn_tensor in[];
};

static const struct {
    enum kserve_type kserve;
    int nn;
} types[] = {
    {KSERVE_BOOL, HEDDLE_NN_BOOL},  {KSERVE_UINT8, HEDDLE_NN_U8},   {KSERVE_UINT16, HEDDLE_NN_U16},
    {KSERVE_UINT32, HEDDLE_NN_U32}, {KSERVE_UINT64, HEDDLE_NN_U64}, {KSERVE_INT8, HEDDLE_NN_I8},
    {KSERVE_INT16, HEDDLE_NN_I16},  {KSERVE_INT32, HEDDLE_NN_I32},  {KSERVE_INT64, HEDDLE_NN_I64},
    {KSERVE_FP16, HEDDLE_NN_F16},   {KSERVE_BF16, HEDDLE_NN_BF16},  {KSERVE_FP32, HEDDLE_NN_F32},
    {KSERVE_FP64, HEDDLE_NN_F64}};

static bool to_kserve(int nn, enum kserve_type *out)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (types[i].nn == nn) {
            *out = types[i].kserve;
            return true;
        }
    }
    return false;
}

static int to_nn(enum kserve_type t)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (types[i].kserve == t)
            return types[i].nn;
    }
    return 0;
}

/* --- a request ------------------------------------------------------------------- */

static size_t bytes_of(const struct kserve_tensor *t)
{
    return t->count * kserve_type_bytes(t->type);
}

static void free_request(struct request *r)
{
    free(r->joined);
    free(r);
}

static void describe_input(struct request *r, size_t i, char *data, size_t bytes, int64_t rows)
{
    const struct kserve_tensor *t = r->jobs[0]->in[i];
    struct heddle_nn_tensor *x = &r->in[i];

    *x = (struct heddle_nn_tensor){
        .type = to_nn(t->type), .ndim = t->ndim, .data = data, .bytes = bytes};
    memcpy(x->dim, t->dim, t->ndim * sizeof(t->dim[0]));
    if (r->n > 1)
        x->dim[0] = rows;
}

/* The inputs of all jobs, one input after the other. False: there is no memory. */
static bool join_inputs(struct request *r)
{
    size_t all = 1;
    int64_t rows = 0;
    char *at;

    for (size_t k = 0; k < r->n; k++) {
        for (size_t i = 0; i < r->m->nin; i++)
            all += bytes_of(r->jobs[k]->in[i]);
        rows += r->m->can_batch ? r->jobs[k]->in[0]->dim[0] : 1;
    }
    r->joined = at = malloc(all);
    if (at == NULL)
        return false;
    for (size_t i = 0; i < r->m->nin; i++) {
        char *first = at;

        for (size_t k = 0; k < r->n; k++) {
            const struct kserve_tensor *t = r->jobs[k]->in[i];

            if (t->count > 0)
                memcpy(at, t->data, bytes_of(t));
            at += bytes_of(t);
        }
        describe_input(r, i, first, (size_t)(at - first), rows);
    }
    return true;
}

/* Output i for job k: a copy of its rows, which begin at `row` of `rows`. */
static heddle_status give_output(struct request *r, size_t k, size_t i,
                                 const struct heddle_nn_tensor *y, int64_t row, int64_t rows)
{
    struct serve_job *job = r->jobs[k];
    struct kserve_tensor *out = &job->out[i];
    const bool is_part = r->n > 1;
    const int64_t mine = is_part ? job->in[0]->dim[0] : rows;
    const size_t each = is_part && rows > 0 ? y->bytes / (size_t)rows : 0;
    const size_t bytes = is_part ? each * (size_t)mine : y->bytes;
    char *copy;

    memcpy(out->name, r->m->out[i].name, sizeof(out->name));
    if (!to_kserve(y->type, &out->type) || y->ndim > KSERVE_MAX_DIMS ||
        (is_part && (y->ndim < 1 || y->dim[0] != rows)))
        return HEDDLE_ENOSYS;
    out->ndim = y->ndim;
    memcpy(out->dim, y->dim, y->ndim * sizeof(y->dim[0]));
    if (is_part)
        out->dim[0] = mine;
    out->count = bytes / kserve_type_bytes(out->type);
    copy = heddle_scratch_raw(&job->request.mem, bytes + 1, 1);
    if (copy == NULL)
        return HEDDLE_ENOMEM;
    if (bytes > 0)
        memcpy(copy, (const char *)y->data + each * (size_t)row, bytes);
    out->data = copy;
    return HEDDLE_OK;
}

static heddle_status give_outputs(struct request *r, const struct heddle_nn_result *result)
{
    const int64_t rows = r->m->can_batch ? r->in[0].dim[0] : 1;
    int64_t row = 0;

    if (result->noutputs != r->m->nout)
        return HEDDLE_ENOSYS;
    for (size_t k = 0; k < r->n; k++) {
        for (size_t i = 0; i < r->m->nout; i++) {
            const heddle_status st = give_output(r, k, i, &result->output[i], row, rows);

            if (st != HEDDLE_OK)
                return st;
        }
        row += r->m->can_batch ? r->jobs[k]->in[0]->dim[0] : 0;
    }
    return HEDDLE_OK;
}

static void request_done(void *user, heddle_status st, struct heddle_nn_result *result,
                         const char *why)
{
    struct request *r = user;

    if (st == HEDDLE_OK) {
        st = give_outputs(r, result);
        why = st == HEDDLE_ENOSYS ? "an output has a shape or type that cannot be sent" : NULL;
        heddle_nn_result_destroy(result);
    }
    r->ended(r->batch, st, why);
    free_request(r);
}

static void net_run(void *self, struct serve_job *const *jobs, size_t n,
                    void (*ended)(void *batch, heddle_status st, const char *why), void *batch)
{
    const struct serve_model *m = jobs[0]->model;
    struct request *r = calloc(1, sizeof(*r) + m->nin * sizeof(r->in[0]));
    char why[320] = "";
    const struct heddle_nn_opts o = {.size = sizeof(o), .why = why, .why_bytes = sizeof(why)};
    heddle_status st = HEDDLE_ENOMEM;

    if (r != NULL) {
        *r = (struct request){
            .m = jobs[0]->model, .jobs = jobs, .n = n, .ended = ended, .batch = batch};
        if (join_inputs(r))
            st = heddle_nn_start(((struct net *)self)->nn, r->in, (unsigned)r->m->nin, request_done,
                                 r, &o);
        if (st == HEDDLE_OK)
            return;
        free_request(r);
    }
    ended(batch, st, why);
}

static void net_destroy(void *self)
{
    struct net *net = self;

    generator_destroy(net->generator);
    heddle_nn_close(net->nn);
    free(net);
}

static const struct serve_backend net_backend = {.run = net_run, .destroy = net_destroy};

/* --- ports ------------------------------------------------------------------------- */

static heddle_status read_port(const struct heddle_nn_port *p, struct serve_port *out, char *why,
                               size_t why_bytes)
{
    if (strlen(p->name) >= sizeof(out->name) || !to_kserve(p->type, &out->type) || p->ndim < 0 ||
        p->ndim > KSERVE_MAX_DIMS)
        return heddle_why(why, why_bytes, HEDDLE_ENOSYS,
                          "'%s' has a name, type or number of dimensions that cannot be sent",
                          p->name);
    memcpy(out->name, p->name, strlen(p->name) + 1);
    out->ndim = (unsigned)p->ndim;
    memcpy(out->dim, p->dim, out->ndim * sizeof(out->dim[0]));
    return HEDDLE_OK;
}

/* Is the first dimension of the port the number of rows, by the name of the first port's? */
static bool has_rows(const struct heddle_nn_port *p, const char **symbol)
{
    if (p->ndim < 1 || p->dim[0] >= 0 || p->symbol[0] == NULL || p->symbol[0][0] == '\0')
        return false;
    if (*symbol == NULL)
        *symbol = p->symbol[0];
    return strcmp(*symbol, p->symbol[0]) == 0;
}

static heddle_status read_ports(struct serve_model *m, const heddle_nn *net, char *why,
                                size_t why_bytes)
{
    const char *symbol = NULL;
    struct heddle_nn_port p;
    heddle_status st = HEDDLE_OK;

    m->nin = heddle_nn_get_ninputs(net);
    m->nout = heddle_nn_get_noutputs(net);
    m->can_batch = m->nin > 0;
    if (m->nin > KSERVE_MAX_TENSORS || m->nout > KSERVE_MAX_TENSORS)
        return heddle_why(why, why_bytes, HEDDLE_ENOSYS,
                          "the model has more than %d inputs or outputs", KSERVE_MAX_TENSORS);
    for (unsigned i = 0; i < m->nin && st == HEDDLE_OK; i++) {
        st = heddle_nn_get_input(net, i, &p);
        if (st == HEDDLE_OK)
            st = read_port(&p, &m->in[i], why, why_bytes);
        m->can_batch = m->can_batch && st == HEDDLE_OK && has_rows(&p, &symbol);
    }
    for (unsigned i = 0; i < m->nout && st == HEDDLE_OK; i++) {
        st = heddle_nn_get_output(net, i, &p);
        if (st == HEDDLE_OK)
            st = read_port(&p, &m->out[i], why, why_bytes);
        m->can_batch = m->can_batch && st == HEDDLE_OK && has_rows(&p, &symbol);
    }
    return st;
}

heddle_status net_open(heddle_ctx *ctx, const char *path, const struct serve_model_opts *o,
                       struct serve_graveyard *graveyard, struct serve_model **out, char *why,
                       size_t why_bytes)
{
    const struct heddle_nn_opts opts = {.size = sizeof(opts), .why = why, .why_bytes = why_bytes};
    const struct generator_opts go = {.max_sequences = o->max_sequences > 0 ? o->max_sequences : 1,
                                      .max_queue = o->max_queue,
                                      .max_cache_bytes = o->max_cache_bytes,
                                      .why = why,
                                      .why_bytes = why_bytes};
    struct net *net = calloc(1, sizeof(*net));
    struct serve_model *m = NULL;
    heddle_status st = HEDDLE_ENOMEM;

    if (net != NULL)
        st = heddle_nn_open(ctx, path, &opts, &net->nn);
    if (st == HEDDLE_OK) {
        st = generator_create(net->nn, &go, &net->generator);
        st = st == HEDDLE_EINVAL ? HEDDLE_OK : st; /* no decoder */
    }
    if (st == HEDDLE_OK)
        m = model_create(o, &net_backend, net, graveyard);
    if (m == NULL) {
        if (net != NULL)
            net_destroy(net);
        return st != HEDDLE_OK && st != HEDDLE_ENOMEM
                   ? st
                   : heddle_why(why, why_bytes, HEDDLE_ENOMEM, "out of memory");
    }
    m->generator = net->generator;
    st = read_ports(m, net->nn, why, why_bytes);
    if (st != HEDDLE_OK) {
        model_unref(m); /* the network goes with it */
        return st;
    }
    *out = m;
    return HEDDLE_OK;
}
