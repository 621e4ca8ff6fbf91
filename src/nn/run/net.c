/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net: networks and requests, as programs see them.
 *
 * A request  finds or makes the plan for its shapes, takes an idle instance or makes one, copies
 *            its inputs there, launches it. The end copies the outputs into the result, which was
 *            allocated at the beginning, gives the instance back, and calls the program.
 * Plans      NET_PLANS of them stay, the least recently used one goes first.
 * Threads    `lock` guards the list of plans, their idle instances and counts of users. Nothing
 *            else is taken under it, and no function of a program called.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/sized.h"
#include "base/why.h"
#include "nn/check.h"
#include "nn/run/run.h"

enum { NET_PLANS = 32, NET_WHY = 400 };

/* A request in flight. */
struct request {
    struct heddle_nn *net;
    struct nn_plan *plan;
    struct nn_instance *instance; /* NULL: not static */
    struct heddle_nn_result *result;
    struct nn_value *in; /* not static: the inputs */
    heddle_nn_done_fn done;
    void *user;
    char why[NET_WHY];
};

/* A result and its memory. */
struct result {
    struct heddle_nn_result face;
    const struct heddle_allocator *alloc;
    struct heddle_scratch mem;
    struct request request;
    struct heddle_allocator from; /* a result may outlive its network */
};

/* --- networks ------------------------------------------------------------------------ */

heddle_status heddle_nn_open(heddle_ctx *ctx, const char *path, const struct heddle_nn_opts *opts,
                             heddle_nn **out)
{
    struct heddle_ctx_stats stats = {.size = sizeof(stats)};
    struct heddle_nn_opts o;
    struct heddle_nn *n;
    struct nn_opts no = {0};
    struct heddle_allocator from;
    heddle_status st;

    HEDDLE_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_nn_opts, &o, opts));
    if (ctx == NULL || path == NULL || out == NULL)
        return heddle_why(o.why, o.why_bytes, HEDDLE_EINVAL, "an argument is NULL");
    HEDDLE_TRY(heddle_ctx_get_allocator(ctx, &from));
    n = heddle_zalloc(&from, 1, sizeof(*n));
    if (n == NULL)
        return heddle_why(o.why, o.why_bytes, HEDDLE_ENOMEM, "no memory for a network");
    n->from = from;
    n->alloc = &n->from;
    n->ctx = ctx;
    no = (struct nn_opts){n->alloc, o.why, o.why_bytes};
    st = heddle_nn_load(path, &no, &n->model);
    if (st != HEDDLE_OK) {
        heddle_free(&from, n, sizeof(*n));
        return st;
    }
    n->model->graph->as_is = o.as_is;
    n->nworkers = heddle_ctx_get_stats(ctx, &stats) == HEDDLE_OK ? stats.nworkers : 1;
    heddle_mutex_init(&n->lock, HEDDLE_RANK_LEAF, "network");
    *out = n;
    return HEDDLE_OK;
}

static void net_drop_plan(struct nn_plan *p)
{
    while (p->idle != NULL) {
        struct nn_instance *i = p->idle;

        p->idle = *heddle_nn_instance_next(i);
        heddle_nn_instance_destroy(i);
    }
    heddle_nn_plan_destroy(p);
}

void heddle_nn_close(heddle_nn *net)
{
    struct heddle_allocator from;

    if (net == NULL)
        return;
    from = net->from;
    while (net->plan != NULL) {
        struct nn_plan *p = net->plan;

        net->plan = p->next;
        net_drop_plan(p);
    }
    heddle_nn_unload(net->model);
    heddle_mutex_fini(&net->lock);
    heddle_free(&from, net, sizeof(*net));
}

/* --- ports ------------------------------------------------------------------------------ */

unsigned heddle_nn_get_ninputs(const heddle_nn *net)
{
    return net == NULL ? 0 : net->model->graph->ninputs;
}

unsigned heddle_nn_get_noutputs(const heddle_nn *net)
{
    return net == NULL ? 0 : net->model->graph->noutputs;
}

static heddle_status net_port(const heddle_nn *net, uint32_t value, struct heddle_nn_port *out)
{
    const struct nn_info *v = &net->model->graph->value[value];
    struct heddle_nn_port p = {.name = v->name, .ndim = v->declared.shape.rank};

    p.type = v->declared.kind == NN_TENSOR ? v->declared.type : 0;
    for (int d = 0; d < p.ndim; d++) {
        const int64_t dim = v->declared.shape.dim[d];

        p.dim[d] = dim < 0 ? -1 : dim;
        p.symbol[d] = dim < NN_UNKNOWN ? net->model->symbol[-2 - dim] : "";
    }
    *out = p;
    return HEDDLE_OK;
}

heddle_status heddle_nn_get_input(const heddle_nn *net, unsigned i, struct heddle_nn_port *out)
{
    HEDDLE_CHECK(net != NULL && out != NULL);
    if (i >= net->model->graph->ninputs)
        return HEDDLE_ENOENT;
    return net_port(net, net->model->graph->input[i], out);
}

heddle_status heddle_nn_get_output(const heddle_nn *net, unsigned i, struct heddle_nn_port *out)
{
    HEDDLE_CHECK(net != NULL && out != NULL);
    if (i >= net->model->graph->noutputs)
        return HEDDLE_ENOENT;
    return net_port(net, net->model->graph->output[i], out);
}

const char *heddle_nn_type_text(int type)
{
    return heddle_nn_type_name((unsigned)type);
}

size_t heddle_nn_type_size(int type)
{
    return type > 0 ? heddle_nn_type_bytes((unsigned)type) : 0;
}

heddle_status heddle_nn_get_operator(unsigned i, struct heddle_nn_operator *out)
{
    const struct nn_op *op = heddle_nn_get_op(i);

    HEDDLE_CHECK(out != NULL);
    if (op == NULL)
        return HEDDLE_ENOENT;
    *out = (struct heddle_nn_operator){op->domain != NULL ? op->domain : "", op->name, op->since,
                                       op->fast != NULL};
    return HEDDLE_OK;
}

/* --- inputs ------------------------------------------------------------------------------ */

static heddle_status net_input(const struct nn_info *port, const struct heddle_nn_tensor *t,
                               const struct nn_opts *o, struct nn_value *out)
{
    const struct nn_value *want = &port->declared;
    struct nn_shape s = {.rank = (int)t->ndim};

    if (t->ndim > NN_DIMS ||
        (want->kind == NN_TENSOR && want->shape.rank >= 0 && want->shape.rank != (int)t->ndim))
        return heddle_why(o->why, o->why_bytes, HEDDLE_EINVAL,
                          "input '%s' has %u dimensions and needs %d", port->name, t->ndim,
                          want->shape.rank);
    for (unsigned d = 0; d < t->ndim; d++) {
        s.dim[d] = t->dim[d];
        if (t->dim[d] < 0 ||
            (want->shape.rank >= 0 && want->shape.dim[d] >= 0 && want->shape.dim[d] != t->dim[d]))
            return heddle_why(o->why, o->why_bytes, HEDDLE_EINVAL,
                              "dimension %u of input '%s' is %lld and not that of %s", d,
                              port->name, (long long)t->dim[d],
                              heddle_nn_shape_text(&want->shape).text);
    }
    if (want->kind != NN_TENSOR || want->type == NN_STR)
        return heddle_why(o->why, o->why_bytes, HEDDLE_ENOSYS, "input '%s' is no tensor of numbers",
                          port->name);
    if (t->type != want->type)
        return heddle_why(o->why, o->why_bytes, HEDDLE_EINVAL,
                          "input '%s' is of type %s and needs %s", port->name,
                          heddle_nn_type_text(t->type), heddle_nn_type_name(want->type));
    *out = heddle_nn_tensor((unsigned)t->type, &s);
    out->data = t->data;
    if (heddle_nn_bytes(out) != t->bytes)
        return heddle_why(o->why, o->why_bytes, HEDDLE_EINVAL,
                          "input '%s' has %zu bytes, and its shape %s", port->name, t->bytes,
                          heddle_nn_shape_text(&s).text);
    return HEDDLE_OK;
}

static heddle_status net_inputs(const heddle_nn *net, const struct heddle_nn_tensor *t, unsigned n,
                                const struct nn_opts *o, struct heddle_scratch *mem,
                                struct nn_value **out)
{
    const struct nn_graph *g = net->model->graph;
    struct nn_value *in;

    if (n != g->ninputs || (n > 0 && t == NULL))
        return heddle_why(o->why, o->why_bytes, HEDDLE_EINVAL, "%u inputs, and the network has %u",
                          n, g->ninputs);
    in = heddle_scratch_get(mem, n, sizeof(*in));
    if (in == NULL)
        return heddle_why(o->why, o->why_bytes, HEDDLE_ENOMEM, "no memory for a request");
    for (unsigned i = 0; i < n; i++)
        HEDDLE_TRY(net_input(&g->value[g->input[i]], &t[i], o, &in[i]));
    *out = in;
    return HEDDLE_OK;
}

/* --- plans -------------------------------------------------------------------------------- */

static bool net_is_plan(const struct nn_plan *p, const struct nn_value *in)
{
    for (uint32_t i = 0; i < p->g->ninputs; i++)
        if (!heddle_nn_same_shape(&p->key[i], &in[i].shape))
            return false;
    return true;
}

/* With the lock: the plan, now the first one; NULL: there is none. */
static struct nn_plan *net_find(struct heddle_nn *net, const struct nn_value *in)
{
    for (struct nn_plan **at = &net->plan; *at != NULL; at = &(*at)->next)
        if (net_is_plan(*at, in)) {
            struct nn_plan *p = *at;

            *at = p->next;
            p->next = net->plan;
            net->plan = p;
            p->nrefs++;
            return p;
        }
    return NULL;
}

/* With the lock: takes the last plan that no request uses out of a list that is too long. */
static struct nn_plan *net_evict(struct heddle_nn *net)
{
    struct nn_plan **last = NULL, *p;

    if (net->nplans <= NET_PLANS)
        return NULL;
    for (struct nn_plan **at = &net->plan; *at != NULL; at = &(*at)->next)
        if ((*at)->nrefs == 0)
            last = at;
    if (last == NULL)
        return NULL;
    p = *last;
    *last = p->next;
    net->nplans--;
    return p;
}

/* Gives back what a request has. */
static void net_leave(struct heddle_nn *net, struct nn_plan *p, struct nn_instance *i)
{
    heddle_mutex_lock(&net->lock);
    if (i != NULL) {
        *heddle_nn_instance_next(i) = p->idle;
        p->idle = i;
    }
    p->nrefs--;
    heddle_mutex_unlock(&net->lock);
}

/* A new plan. Its weights are those of the plan that was used last. */
static heddle_status net_make(struct heddle_nn *net, const struct nn_value *in,
                              struct nn_plan_with with, const struct nn_opts *o,
                              struct nn_plan **out)
{
    struct nn_plan *like;
    heddle_status st;

    heddle_mutex_lock(&net->lock);
    like = net->plan;
    if (like != NULL)
        like->nrefs++;
    heddle_mutex_unlock(&net->lock);
    with.like = like;
    st = heddle_nn_plan(net->model->graph, in, &with, net->nworkers, o, out);
    if (like != NULL)
        net_leave(net, like, NULL);
    return st;
}

static heddle_status net_plan(struct heddle_nn *net, const struct nn_value *in,
                              const struct nn_opts *o, struct nn_plan **out)
{
    struct nn_plan *made = NULL, *found, *drop = NULL;

    heddle_mutex_lock(&net->lock);
    *out = net_find(net, in);
    heddle_mutex_unlock(&net->lock);
    if (*out != NULL)
        return HEDDLE_OK;
    HEDDLE_TRY(net_make(net, in, (struct nn_plan_with){0}, o, &made));
    heddle_mutex_lock(&net->lock);
    found = net_find(net, in); /* another thread may have made it meanwhile */
    if (found == NULL) {
        made->nrefs = 1;
        made->next = net->plan;
        net->plan = made;
        net->nplans++;
        drop = net_evict(net);
    }
    heddle_mutex_unlock(&net->lock);
    if (drop != NULL)
        net_drop_plan(drop);
    if (found != NULL)
        heddle_nn_plan_destroy(made);
    *out = found != NULL ? found : made;
    return HEDDLE_OK;
}

static heddle_status net_instance(struct heddle_nn *net, struct nn_plan *p, const struct nn_opts *o,
                                  struct nn_instance **out)
{
    heddle_mutex_lock(&net->lock);
    *out = p->idle;
    if (p->idle != NULL)
        p->idle = *heddle_nn_instance_next(p->idle);
    heddle_mutex_unlock(&net->lock);
    return *out != NULL ? HEDDLE_OK : heddle_nn_instance_create(net, p, o, out);
}

/* --- for decoders ---------------------------------------------------------------------------- */

heddle_status heddle_nn_lease(heddle_nn *net, const struct nn_value *in, const struct nn_opts *o,
                              struct nn_plan **plan, struct nn_instance **instance)
{
    struct nn_plan *p = NULL;
    heddle_status st;

    HEDDLE_TRY(net_plan(net, in, o, &p));
    st = p->is_static ? net_instance(net, p, o, instance)
                      : heddle_why(o->why, o->why_bytes, HEDDLE_ENOSYS,
                                   "shapes of the network depend on data");
    if (st != HEDDLE_OK)
        net_leave(net, p, NULL);
    else
        *plan = p;
    return st;
}

void heddle_nn_unlease(heddle_nn *net, struct nn_plan *plan, struct nn_instance *instance)
{
    net_leave(net, plan, instance);
}

heddle_status heddle_nn_plan_keeping(heddle_nn *net, const struct nn_value *in,
                                     const struct nn_keep *keep, uint32_t n,
                                     const struct nn_opts *o, struct nn_plan **out)
{
    return net_make(net, in, (struct nn_plan_with){.keep = keep, .nkeep = n}, o, out);
}

/* --- results -------------------------------------------------------------------------------- */

void heddle_nn_result_destroy(struct heddle_nn_result *r)
{
    struct result *own;
    struct heddle_allocator from;

    if (r == NULL)
        return;
    own = r->own;
    from = own->from;
    heddle_scratch_drop(&own->mem);
    heddle_free(&from, own, sizeof(*own));
}

static struct result *result_create(const struct heddle_nn *net)
{
    struct result *r = heddle_zalloc(net->alloc, 1, sizeof(*r));
    struct heddle_nn_tensor *t;

    if (r == NULL)
        return NULL;
    r->from = net->from;
    r->alloc = &r->from;
    r->mem = heddle_scratch_make(r->alloc);
    r->face.own = r;
    r->face.noutputs = net->model->graph->noutputs;
    t = heddle_scratch_get(&r->mem, r->face.noutputs, sizeof(*t));
    r->face.output = t;
    if (t != NULL)
        return r;
    heddle_nn_result_destroy(&r->face);
    return NULL;
}

static struct heddle_nn_tensor net_tensor(const struct nn_value *v, void *data)
{
    struct heddle_nn_tensor t = {.type = v->type,
                                 .ndim = (unsigned)v->shape.rank,
                                 .data = data,
                                 .bytes = heddle_nn_bytes(v)};

    for (int d = 0; d < v->shape.rank; d++)
        t.dim[d] = v->shape.dim[d];
    return t;
}

/* Room for the outputs of a plan. */
static heddle_status result_room(struct result *r, const struct nn_plan *p)
{
    struct heddle_nn_tensor *t = (struct heddle_nn_tensor *)(uintptr_t)r->face.output;

    for (uint32_t i = 0; i < p->g->noutputs; i++) {
        const struct nn_value *v = &p->value[p->g->output[i]];
        void *data = heddle_scratch_raw(&r->mem, heddle_nn_bytes(v), 1);

        if (data == NULL)
            return HEDDLE_ENOMEM;
        t[i] = net_tensor(v, data);
    }
    return HEDDLE_OK;
}

/* --- requests ------------------------------------------------------------------------------- */

/* The request has ended. */
static void request_done(void *user, heddle_status st)
{
    struct result *r = user;
    struct request q = r->request;

    if (st == HEDDLE_OK && q.instance != NULL)
        for (uint32_t i = 0; i < q.plan->g->noutputs; i++)
            if (r->face.output[i].bytes > 0)
                memcpy(r->face.output[i].data,
                       heddle_nn_instance_data(q.instance, q.plan->output[i]),
                       r->face.output[i].bytes);
    if (st != HEDDLE_OK && q.instance != NULL)
        (void)heddle_why(q.why, sizeof(q.why), st, "%s", heddle_nn_instance_why(q.instance));
    if (st != HEDDLE_OK && q.why[0] == '\0') {
        struct heddle_error e = {.size = sizeof(e)};

        (void)heddle_ctx_error(q.net->ctx, &e);
        (void)heddle_why(q.why, sizeof(q.why), st, "%s",
                         e.message[0] != '\0' ? e.message : heddle_status_text(st));
    }
    if (st != HEDDLE_OK && q.instance != NULL)
        heddle_nn_instance_spoil(q.instance);
    net_leave(q.net, q.plan, q.instance);
    if (st != HEDDLE_OK)
        heddle_nn_result_destroy(&r->face);
    q.done(q.user, st, st == HEDDLE_OK ? &r->face : NULL, q.why);
}

/* Shapes depend on data: the whole graph is one task. */
static heddle_status request_whole(struct heddle_exec *x)
{
    struct result *r = *(struct result *const *)heddle_exec_arg(x);
    struct request *q = &r->request;
    const struct nn_graph *g = q->plan->g;
    struct heddle_nn_tensor *t = (struct heddle_nn_tensor *)(uintptr_t)r->face.output;
    const struct nn_opts o = {r->alloc, q->why, sizeof(q->why)};
    struct nn_value *out = heddle_scratch_get(&r->mem, g->noutputs, sizeof(*out));
    heddle_status st = HEDDLE_ENOMEM;

    if (out != NULL)
        st = heddle_nn_oracle(g, q->in, out, &r->mem, &o);
    for (uint32_t i = 0; i < g->noutputs && st == HEDDLE_OK; i++) {
        if (out[i].kind != NN_TENSOR || out[i].type == NN_STR)
            st = heddle_why(q->why, sizeof(q->why), HEDDLE_ENOSYS,
                            "output '%s' is no tensor of numbers", g->value[g->output[i]].name);
        else
            t[i] = net_tensor(&out[i], out[i].data);
    }
    return st == HEDDLE_OK ? st : heddle_exec_fail(x, st, q->why);
}

static const heddle_kernel whole_kernel = {
    .size = sizeof(heddle_kernel),
    .name = "network",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = request_whole}},
};

static heddle_status request_launch(struct result *r, heddle_event **event)
{
    struct request *q = &r->request;
    const struct heddle_task_opts opts = {
        .size = sizeof(opts), .done = request_done, .done_user = r, .event_out = event};

    if (q->instance != NULL)
        return heddle_nn_instance_launch(q->instance, &opts);
    return heddle_submit(
        q->net->ctx, &whole_kernel,
        &(struct heddle_call){.arg = &r, .arg_bytes = sizeof(struct result *), .opts = &opts});
}

/* Inputs where the tasks will read them. */
static heddle_status request_fill(struct result *r, const struct nn_value *in)
{
    struct request *q = &r->request;
    const struct nn_graph *g = q->plan->g;

    if (q->instance == NULL) {
        q->in = heddle_scratch_get(&r->mem, g->ninputs, sizeof(*q->in));
        if (q->in == NULL)
            return HEDDLE_ENOMEM;
        for (uint32_t i = 0; i < g->ninputs; i++)
            HEDDLE_TRY(heddle_nn_copy(&r->mem, &in[i], &q->in[i]));
        return HEDDLE_OK;
    }
    for (uint32_t i = 0; i < g->ninputs; i++) {
        void *to = heddle_nn_instance_data(q->instance, g->input[i]); /* NULL: nobody reads it */

        if (to != NULL && heddle_nn_bytes(&in[i]) > 0)
            memcpy(to, in[i].data, heddle_nn_bytes(&in[i]));
    }
    return result_room(r, q->plan);
}

static heddle_status request_start(struct heddle_nn *net, const struct nn_value *in,
                                   const struct request *with, const struct nn_opts *o,
                                   heddle_event **event)
{
    struct nn_instance *instance = NULL;
    struct nn_plan *plan = NULL;
    struct result *r;
    heddle_status st;

    HEDDLE_TRY(net_plan(net, in, o, &plan));
    st = plan->is_static ? net_instance(net, plan, o, &instance) : HEDDLE_OK;
    if (st != HEDDLE_OK) {
        net_leave(net, plan, NULL);
        return st;
    }
    r = result_create(net);
    st = r != NULL ? HEDDLE_OK : HEDDLE_ENOMEM;
    if (st == HEDDLE_OK) {
        r->request = *with;
        r->request.net = net;
        r->request.plan = plan;
        r->request.instance = instance;
        st = request_fill(r, in);
    }
    if (st == HEDDLE_OK)
        st = request_launch(r, event);
    if (st == HEDDLE_OK)
        return st;
    net_leave(net, plan, instance);
    if (r != NULL)
        heddle_nn_result_destroy(&r->face);
    return heddle_why(o->why, o->why_bytes, st, "the request could not be started: %s",
                      heddle_status_text(st));
}

static heddle_status net_start(heddle_nn *net, const struct heddle_nn_tensor *input, unsigned n,
                               const struct request *with, const struct heddle_nn_opts *opts,
                               heddle_event **event)
{
    struct heddle_nn_opts o;
    struct heddle_scratch mem;
    struct nn_value *in = NULL;
    struct nn_opts no;
    heddle_status st;

    HEDDLE_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_nn_opts, &o, opts));
    HEDDLE_CHECK(net != NULL && with->done != NULL);
    no = (struct nn_opts){net->alloc, o.why, o.why_bytes};
    mem = heddle_scratch_make(net->alloc);
    st = net_inputs(net, input, n, &no, &mem, &in);
    if (st == HEDDLE_OK)
        st = request_start(net, in, with, &no, event);
    heddle_scratch_drop(&mem);
    return st;
}

heddle_status heddle_nn_start(heddle_nn *net, const struct heddle_nn_tensor *input, unsigned n,
                              heddle_nn_done_fn done, void *user, const struct heddle_nn_opts *opts)
{
    const struct request with = {.done = done, .user = user};

    return net_start(net, input, n, &with, opts, NULL);
}

/* What heddle_nn_run() waits for. */
struct waiter {
    heddle_status st;
    struct heddle_nn_result *result;
    char why[NET_WHY];
};

static void waiter_done(void *user, heddle_status st, struct heddle_nn_result *result,
                        const char *why)
{
    struct waiter *w = user;

    w->st = st;
    w->result = result;
    (void)heddle_why(w->why, sizeof(w->why), st, "%s", why);
}

heddle_status heddle_nn_run(heddle_nn *net, const struct heddle_nn_tensor *input, unsigned n,
                            const struct heddle_nn_opts *opts, struct heddle_nn_result **out)
{
    struct waiter w = {.st = HEDDLE_AGAIN};
    const struct request with = {.done = waiter_done, .user = &w};
    struct heddle_nn_opts o;
    heddle_event *event = NULL;
    heddle_status st;

    HEDDLE_CHECK(out != NULL);
    HEDDLE_TRY(net_start(net, input, n, &with, opts, &event));
    st = heddle_event_wait(event, 0);
    heddle_event_unref(event);
    if (w.st == HEDDLE_OK) {
        *out = w.result;
        return HEDDLE_OK;
    }
    HEDDLE_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_nn_opts, &o, opts));
    return heddle_why(o.why, o.why_bytes, w.st < 0 ? w.st : st, "%s", w.why);
}

/* --- for those who look at plans -------------------------------------------------------------- */

heddle_status heddle_nn_hold_plan(heddle_nn *net, const struct heddle_nn_tensor *input, unsigned n,
                                  const struct nn_opts *o, struct nn_plan **out)
{
    struct heddle_scratch mem = heddle_scratch_make(net->alloc);
    struct nn_value *in = NULL;
    heddle_status st = net_inputs(net, input, n, o, &mem, &in);

    if (st == HEDDLE_OK)
        st = net_plan(net, in, o, out);
    heddle_scratch_drop(&mem);
    return st;
}

void heddle_nn_leave_plan(heddle_nn *net, struct nn_plan *p)
{
    net_leave(net, p, NULL);
}
