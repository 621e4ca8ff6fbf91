/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * graph: graphs of work, and how they run.
 *
 * Structure  a graph is a list of nodes, each after those it depends on. A plan is
 *            an unchangeable copy that can run; an executable graph has one and
 *            gets another one when it is updated, so that launches under way are
 *            not touched.
 *            A run takes any node that is ready, by chance, and two helpers take
 *            others at the same time.
 * Invariant  a node knows what was done before the launch and by the nodes it
 *            depends on, and nothing else.
 * Threads    any. Launches of one executable graph follow each other, as in CUDA.
 */
#include "fakecuda.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct CUgraph_st {
    struct fc_obj obj; /* what is 0: in no list */
    uint64_t id;
    CUgraphNode *node;
    size_t n, cap;
};

struct fc_plan {
    _Atomic unsigned refs;
    size_t n;
    struct fc_work *work;
    size_t *first; /* n + 1: preds of i are pred[first[i]] ... */
    size_t *pred;  /* ascending */
};

struct CUgraphExec_st {
    struct fc_obj obj;
    struct fc_lock lock;
    struct fc_plan *plan;
    uint64_t origin;      /* id of the graph it was made of */
    struct fc_mark *last; /* end of the last launch */
};

/* --- sets of nodes ------------------------------------------------------- */

void fc_set_fini(struct fc_node_set *s)
{
    free(s->v);
    *s = (struct fc_node_set){0};
}

void fc_set_add(struct fc_node_set *s, const CUgraphNode *v, size_t n)
{
    CUgraphNode *more;

    if (n == 0)
        return;
    more = realloc(s->v, (s->n + n) * sizeof(*more));
    if (more == NULL)
        abort();
    s->v = more;
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;

        while (k < s->n && s->v[k] != v[i])
            k++;
        if (k == s->n)
            s->v[s->n++] = v[i];
    }
}

void fc_set_init(struct fc_node_set *s, const CUgraphNode *v, size_t n)
{
    *s = (struct fc_node_set){0};
    fc_set_add(s, v, n);
}

bool fc_set_covers(const struct fc_node_set *of, const struct fc_node_set *v)
{
    bool *seen, covers = true;
    CUgraph g;

    if (v->n == 0)
        return true;
    g = v->v[0]->graph;
    seen = fc_new(g->n);
    for (size_t i = 0; i < of->n; i++)
        seen[of->v[i]->index] = true;
    for (size_t i = g->n; i-- > 0;) /* from the last: deps are before it */
        for (size_t k = 0; seen[i] && k < g->node[i]->deps.n; k++)
            seen[g->node[i]->deps.v[k]->index] = true;
    for (size_t i = 0; i < v->n; i++)
        covers = covers && seen[v->v[i]->index];
    free(seen);
    return covers;
}

/* --- graphs -------------------------------------------------------------- */

CUgraph fc_graph_new(void)
{
    static _Atomic uint64_t last;
    CUgraph g = fc_new(sizeof(*g));

    g->id = atomic_fetch_add(&last, 1) + 1;
    return g;
}

void fc_graph_publish(CUgraph g, CUcontext ctx)
{
    fc_obj_add(&g->obj, FC_OBJ_GRAPH, ctx);
}

CUgraphNode fc_graph_add(CUgraph g, struct fc_work *w, const struct fc_node_set *deps)
{
    CUgraphNode node = fc_new(sizeof(*node));

    if (g->n == g->cap) {
        g->cap = g->cap * 2 + 16;
        g->node = realloc(g->node, g->cap * sizeof(*g->node));
        if (g->node == NULL)
            abort();
    }
    node->graph = g;
    node->index = g->n;
    node->work = *w;
    fc_set_init(&node->deps, deps->v, deps->n);
    g->node[g->n++] = node;
    return node;
}

void fc_graph_close(CUgraph g)
{
    if (g->obj.what != 0)
        fc_obj_remove(&g->obj);
    for (size_t i = 0; i < g->n; i++) {
        fc_work_fini(&g->node[i]->work);
        fc_set_fini(&g->node[i]->deps);
        free(g->node[i]);
    }
    free(g->node);
    free(g);
}

CU(cuGraphDestroy, CUgraph g)
{
    CUcontext ctx;
    const CUresult r = fc_enter_obj(&ctx, g, FC_OBJ_GRAPH);

    if (r == FC_OK)
        fc_graph_close(g);
    return r;
}

/* As CUDA answers with a list: what is beyond it is NULL. */
static void list_out(CUgraphNode *list, size_t n, CUgraphNode *out, size_t *n_inout)
{
    const size_t cap = out != NULL ? *n_inout : 0;

    for (size_t i = 0; i < cap; i++)
        out[i] = i < n ? list[i] : NULL;
    *n_inout = out != NULL && cap < n ? cap : n;
}

/* Also of a graph that is being captured. */
CU(cuGraphGetNodes, CUgraph g, CUgraphNode *nodes, size_t *n_inout)
{
    CUcontext ctx;
    const CUresult r = fc_enter(&ctx);

    if (r != FC_OK)
        return r;
    list_out(g->node, g->n, nodes, n_inout);
    return FC_OK;
}

CU(cuGraphNodeGetType, CUgraphNode node, unsigned *type_out)
{
    static const unsigned types[] = {[FC_WORK_KERNEL] = 0,
                                     [FC_WORK_COPY] = 1,
                                     [FC_WORK_FILL] = 2,
                                     [FC_WORK_CALL] = 3,
                                     [FC_WORK_EMPTY] = 5};
    CUcontext ctx;
    const CUresult r = fc_enter(&ctx);

    if (r == FC_OK)
        *type_out = types[node->work.kind];
    return r;
}

CU(cuGraphNodeGetDependencies, CUgraphNode node, CUgraphNode *nodes, size_t *n_inout)
{
    CUcontext ctx;
    const CUresult r = fc_enter(&ctx);

    if (r == FC_OK)
        list_out(node->deps.v, node->deps.n, nodes, n_inout);
    return r;
}

/* As CUDA lays it out. */
struct kernel_params {
    CUfunction func;
    unsigned grid[3], block[3], shared;
    void **args, **extra;
    void *kern;
    CUcontext ctx;
};

/* The arguments stay the node's. */
CU(cuGraphKernelNodeGetParams_v2, CUgraphNode node, struct kernel_params *out)
{
    const struct fc_work *w = &node->work;
    CUcontext ctx;
    const CUresult r = fc_enter(&ctx);

    if (r != FC_OK)
        return r;
    if (w->kind != FC_WORK_KERNEL)
        return FC_EVALUE;
    for (size_t i = 0; i < w->blob_bytes / 8; i++)
        node->arg[i] = (char *)w->blob + 8 * i;
    *out = (struct kernel_params){
        .func = w->u.launch.function, .shared = w->u.launch.shared, .args = node->arg};
    memcpy(out->grid, w->u.launch.grid, sizeof(out->grid));
    memcpy(out->block, w->u.launch.block, sizeof(out->block));
    return FC_OK;
}

/* Launches here have none: the values are those of plain ones. */
CU(cuGraphKernelNodeGetAttribute, CUgraphNode node, unsigned attribute, void *value_out)
{
    enum { COOPERATIVE = 2, CLUSTER = 4, VALUE_BYTES = 64 };
    CUcontext ctx;
    const CUresult r = fc_enter(&ctx);

    if (r != FC_OK)
        return r;
    if (node->work.kind != FC_WORK_KERNEL || (attribute != COOPERATIVE && attribute != CLUSTER))
        return FC_EVALUE;
    memset(value_out, 0, VALUE_BYTES);
    return FC_OK;
}

/* --- plans --------------------------------------------------------------- */

static int compare_size(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;

    return (x > y) - (x < y);
}

static struct fc_plan *plan_new(CUgraph g)
{
    struct fc_plan *p = fc_new(sizeof(*p));
    size_t nedges = 0;

    for (size_t i = 0; i < g->n; i++)
        nedges += g->node[i]->deps.n;
    atomic_store(&p->refs, 1);
    p->n = g->n;
    p->work = fc_new(g->n * sizeof(*p->work));
    p->first = fc_new((g->n + 1) * sizeof(*p->first));
    p->pred = fc_new(nedges * sizeof(*p->pred));
    for (size_t i = 0; i < g->n; i++) {
        const struct fc_node_set *deps = &g->node[i]->deps;

        p->work[i] = fc_work_copy(&g->node[i]->work);
        for (size_t k = 0; k < deps->n; k++)
            p->pred[p->first[i] + k] = deps->v[k]->index;
        qsort(p->pred + p->first[i], deps->n, sizeof(*p->pred), compare_size);
        p->first[i + 1] = p->first[i] + deps->n;
    }
    return p;
}

/* Who frees it knows what the others did with it. */
void fc_plan_unref(struct fc_plan *p)
{
    fc_release(p);
    if (atomic_fetch_sub(&p->refs, 1) != 1)
        return;
    fc_acquire(p);
    for (size_t i = 0; i < p->n; i++)
        fc_work_fini(&p->work[i]);
    free(p->work);
    free(p->first);
    free(p->pred);
    free(p);
}

enum { SAME, OTHER_EDGES = 2, OTHER_TYPE = 3 };

static unsigned plan_compare(const struct fc_plan *a, const struct fc_plan *b)
{
    if (a->n != b->n || memcmp(a->first, b->first, (a->n + 1) * sizeof(*a->first)) != 0 ||
        memcmp(a->pred, b->pred, a->first[a->n] * sizeof(*a->pred)) != 0)
        return OTHER_EDGES;
    for (size_t i = 0; i < a->n; i++)
        if (a->work[i].kind != b->work[i].kind)
            return OTHER_TYPE;
    return SAME;
}

/* --- a run --------------------------------------------------------------- */

struct run {
    struct fc_plan *plan;
    struct run *next; /* in the list of the helpers */
    _Atomic unsigned refs;
    struct fc_lock lock;
    struct fc_cond cond;
    size_t *nwait, *ready, nready, nleft;
    size_t *succ_first, *succ;
    uint64_t *end; /* one place per node to release and acquire */
};

static struct {
    struct fc_lock lock;
    struct fc_cond cond;
    struct run *runs;
    bool has_threads;
} helpers;

static void run_successors(struct run *r)
{
    const struct fc_plan *p = r->plan;

    r->succ_first = fc_new((p->n + 2) * sizeof(size_t));
    r->succ = fc_new(p->first[p->n] * sizeof(size_t));
    for (size_t e = 0; e < p->first[p->n]; e++)
        r->succ_first[p->pred[e] + 2]++;
    for (size_t i = 2; i < p->n + 2; i++)
        r->succ_first[i] += r->succ_first[i - 1];
    for (size_t i = 0; i < p->n; i++)
        for (size_t e = p->first[i]; e < p->first[i + 1]; e++)
            r->succ[r->succ_first[p->pred[e] + 1]++] = i;
}

static struct run *run_new(struct fc_plan *p)
{
    struct run *r = fc_new(sizeof(*r));

    r->plan = p;
    r->nleft = p->n;
    r->nwait = fc_new(p->n * sizeof(size_t));
    r->ready = fc_new(p->n * sizeof(size_t));
    r->end = fc_new(p->n * sizeof(uint64_t));
    run_successors(r);
    for (size_t i = 0; i < p->n; i++) {
        r->nwait[i] = p->first[i + 1] - p->first[i];
        if (r->nwait[i] == 0)
            r->ready[r->nready++] = i;
    }
    atomic_store(&r->refs, 1);
    return r;
}

static void run_unref(struct run *r)
{
    fc_release(r);
    if (atomic_fetch_sub(&r->refs, 1) != 1)
        return;
    fc_acquire(r);
    free(r->nwait);
    free(r->ready);
    free(r->end);
    free(r->succ_first);
    free(r->succ);
    fc_plan_unref(r->plan);
    free(r);
}

static void run_node(struct run *r, size_t i)
{
    const struct fc_plan *p = r->plan;
    const struct fc_work *w = &p->work[i];

    for (size_t e = p->first[i]; e < p->first[i + 1]; e++)
        fc_acquire(&r->end[p->pred[e]]);
    if (fc_random() % 16 == 0)
        fc_pause(fc_random() % (fc_settings.delay_ns / 2 + 1));
    if (atomic_load(&w->ctx->sticky) == 0)
        fc_work_run(w);
    fc_release(&r->end[i]);
}

/* Until nothing is left. */
static void run_work(struct run *r)
{
    fc_lock(&r->lock);
    while (r->nleft > 0) {
        size_t k, i;

        if (r->nready == 0) {
            fc_wait(&r->cond, &r->lock);
            continue;
        }
        k = fc_random() % r->nready;
        i = r->ready[k];
        r->ready[k] = r->ready[--r->nready];
        fc_unlock(&r->lock);
        run_node(r, i);
        fc_lock(&r->lock);
        r->nleft--;
        for (size_t e = r->succ_first[i]; e < r->succ_first[i + 1]; e++)
            if (--r->nwait[r->succ[e]] == 0)
                r->ready[r->nready++] = r->succ[e];
        fc_wake(&r->cond);
    }
    fc_unlock(&r->lock);
}

static void *helper(void *arg)
{
    (void)arg;
    for (;;) {
        struct run *r;

        fc_lock(&helpers.lock);
        while (helpers.runs == NULL)
            fc_wait(&helpers.cond, &helpers.lock);
        r = helpers.runs;
        helpers.runs = r->next;
        fc_unlock(&helpers.lock);
        fc_acquire(r);
        run_work(r);
        run_unref(r);
    }
    return NULL;
}

/* One more thread for this run. */
static void run_help(struct run *r)
{
    enum { THREADS = 2 };
    pthread_attr_t attr;
    pthread_t t;

    fc_release(r);
    fc_lock(&helpers.lock);
    if (!helpers.has_threads) {
        pthread_attr_init(&attr);
        pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        for (int i = 0; i < THREADS; i++)
            if (pthread_create(&t, &attr, helper, NULL) != 0)
                abort();
        pthread_attr_destroy(&attr);
        helpers.has_threads = true;
    }
    atomic_fetch_add(&r->refs, 1);
    r->next = helpers.runs;
    helpers.runs = r;
    fc_wake(&helpers.cond);
    fc_unlock(&helpers.lock);
}

void fc_plan_run(struct fc_plan *p)
{
    struct run *r;

    if (p->n == 0)
        return;
    atomic_fetch_add(&p->refs, 1);
    r = run_new(p);
    if (p->n > 1)
        run_help(r);
    run_work(r);
    for (size_t i = 0; i < p->n; i++)
        fc_acquire(&r->end[i]);
    run_unref(r);
}

/* --- executable graphs --------------------------------------------------- */

CU(cuGraphInstantiateWithFlags, CUgraphExec *out, CUgraph g, unsigned long long flags)
{
    CUcontext ctx;
    CUresult r = fc_enter_obj(&ctx, g, FC_OBJ_GRAPH);

    (void)flags;
    if (r == FC_OK)
        r = fc_fail(ctx, FC_FAIL_GRAPH);
    if (r != FC_OK)
        return r;
    *out = fc_new(sizeof(**out));
    (*out)->plan = plan_new(g);
    (*out)->origin = g->id;
    fc_obj_add(&(*out)->obj, FC_OBJ_EXEC, ctx);
    return FC_OK;
}

CU(cuGraphInstantiate_v2, CUgraphExec *out, CUgraph g, CUgraphNode *node_out, char *log,
   size_t bytes)
{
    if (node_out != NULL)
        *node_out = NULL;
    if (log != NULL && bytes > 0)
        log[0] = '\0';
    return cuGraphInstantiateWithFlags(out, g, 0);
}

struct update {
    unsigned result;
    CUgraphNode node, from;
};

CU(cuGraphExecUpdate_v2, CUgraphExec e, CUgraph g, struct update *out)
{
    struct fc_plan *p, *old;
    CUcontext ctx;
    CUresult r = fc_enter_obj(&ctx, e, FC_OBJ_EXEC);

    if (r == FC_OK)
        r = fc_enter_obj(&ctx, g, FC_OBJ_GRAPH);
    if (r == FC_OK)
        r = fc_fail(ctx, FC_FAIL_GRAPH);
    if (r != FC_OK)
        return r;
    p = plan_new(g);
    fc_lock(&e->lock);
    old = e->plan;
    *out = (struct update){.result = plan_compare(old, p)};
    if (out->result == SAME)
        e->plan = p;
    fc_unlock(&e->lock);
    fc_plan_unref(out->result == SAME ? old : p);
    return out->result == SAME ? FC_OK : FC_EUPDATE;
}

CU(cuGraphExecUpdate, CUgraphExec e, CUgraph g, CUgraphNode *node_out, unsigned *result_out)
{
    struct update u = {0};
    const CUresult r = cuGraphExecUpdate_v2(e, g, &u);

    *node_out = NULL;
    *result_out = u.result;
    return r;
}

static struct fc_plan *plan_copy(const struct fc_plan *p)
{
    struct fc_plan *c = fc_new(sizeof(*c));

    atomic_store(&c->refs, 1);
    c->n = p->n;
    c->work = fc_new(p->n * sizeof(*c->work));
    c->first = fc_new((p->n + 1) * sizeof(*c->first));
    c->pred = fc_new(p->first[p->n] * sizeof(*c->pred));
    memcpy(c->first, p->first, (p->n + 1) * sizeof(*c->first));
    memcpy(c->pred, p->pred, p->first[p->n] * sizeof(*c->pred));
    for (size_t i = 0; i < p->n; i++)
        c->work[i] = fc_work_copy(&p->work[i]);
    return c;
}

/* The node is one of the graph that the executable one was made of. */
CU(cuGraphExecKernelNodeSetParams_v2, CUgraphExec e, CUgraphNode node,
   const struct kernel_params *k)
{
    struct fc_plan *p, *old;
    struct fc_work w;
    CUcontext ctx;
    CUresult r = fc_enter_obj(&ctx, e, FC_OBJ_EXEC);

    if (r == FC_OK)
        r = fc_fail(ctx, FC_FAIL_GRAPH);
    if (r == FC_OK &&
        (node->graph->id != e->origin || e->plan->work[node->index].kind != FC_WORK_KERNEL))
        r = FC_EVALUE;
    if (r == FC_OK)
        r = fc_launch_work(k->func, k->grid, k->block, k->shared, k->args, &w);
    if (r != FC_OK)
        return r;
    fc_lock(&e->lock);
    old = e->plan;
    p = plan_copy(old);
    fc_work_fini(&p->work[node->index]);
    p->work[node->index] = w;
    e->plan = p;
    fc_unlock(&e->lock);
    fc_plan_unref(old);
    return FC_OK;
}

CU(cuGraphUpload, CUgraphExec e, CUstream h)
{
    CUcontext ctx;
    CUstream s;
    const CUresult r = fc_stream_of(h, &ctx, &s);

    return r != FC_OK ? r : fc_enter_obj(&ctx, e, FC_OBJ_EXEC);
}

CU(cuGraphLaunch, CUgraphExec e, CUstream h)
{
    struct fc_op wait = {.kind = FC_OP_WAIT}, run = {.kind = FC_OP_PLAN};
    struct fc_op record = {.kind = FC_OP_RECORD};
    CUcontext ctx;
    CUstream s;
    CUresult r = fc_stream_of(h, &ctx, &s);

    if (r == FC_OK)
        r = fc_enter_obj(&ctx, e, FC_OBJ_EXEC);
    if (r == FC_OK)
        r = fc_capture_refuse(s);
    if (r == FC_OK)
        r = fc_fail(ctx, FC_FAIL_LAUNCH);
    if (r != FC_OK)
        return r;
    record.mark = fc_mark_new(2);
    fc_lock(&e->lock);
    run.plan = e->plan;
    atomic_fetch_add(&run.plan->refs, 1);
    wait.mark = e->last; /* the reference goes with it */
    e->last = record.mark;
    if (wait.mark != NULL)
        fc_stream_put(s, &wait);
    fc_stream_put(s, &run);
    fc_stream_put(s, &record);
    fc_unlock(&e->lock);
    return FC_OK;
}

void fc_exec_close(CUgraphExec e)
{
    fc_obj_remove(&e->obj);
    fc_plan_unref(e->plan);
    fc_mark_unref(e->last);
    free(e);
}

CU(cuGraphExecDestroy, CUgraphExec e)
{
    CUcontext ctx;
    const CUresult r = fc_enter_obj(&ctx, e, FC_OBJ_EXEC);

    if (r == FC_OK)
        fc_exec_close(e);
    return r;
}
