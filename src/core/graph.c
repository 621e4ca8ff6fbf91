/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * graph: regions recorded once and run many times.
 *
 * Structure  Recording keeps, per task, its kernel, operands and argument, and
 *            the edges found with the same rules as live submission (deps.c's
 *            table, on task numbers instead of cells). Sealing turns edges into
 *            arrays. A launch is one task of the context on the union of all
 *            operands; when it starts, it makes a *run*: one node of 32 bytes per
 *            task. Counters start from the recorded numbers; the last node to end
 *            ends the launch.
 * Invariants (1) a sealed graph is constant: runs share it without locks
 *            (2) a run is touched by its own nodes only; a finished run goes to
 *                the graph's free list and is reset by the next launch
 *            (3) two launches that share written handles exclude each other by
 *                the operands of their launch tasks
 *            (4) a node puts its counter back when it starts; nobody looks at it
 *                again before the next pass
 * Threads    recording: one thread. Runs: any worker; `left` and ndeps are atomic.
 * Cost       a node costs a counter, its edges and the kernel: no submission.
 */
#include <string.h>

#include "core/core.h"

/* A recorded task. Constant after sealing. */
struct graph_task {
    struct heddle_kinfo *kinfo;
    uint32_t op;        /* first operand in graph.op and graph.mode */
    uint32_t nops;
    uint32_t succ;      /* first successor in graph.succ */
    uint32_t nsucc;
    int32_t ndeps;
    uint32_t arg_bytes;
    size_t arg;         /* offset in graph.arg */
    int prio;
    uint32_t variant;   /* as in heddle_task_opts */
    const char *name;
};

/* What recording knows about a unit. */
struct graph_unit {
    struct graph_unit *next;
    heddle_handle *unit;
    enum heddle_mode mode; /* the union, for the launch */
    uint32_t index;        /* operand number of the launch */
    uint32_t writer;       /* 1 + task */
    uint32_t *reader;      /* tasks since, all numbers */
    uint32_t nreaders, cap;
};

struct graph_edge {
    uint32_t pred, succ;
};

struct graph_op {
    heddle_handle *unit;
    enum heddle_mode mode;
    uint32_t index; /* operand number of the launch */
};

struct heddle_graph {
    heddle_ctx *ctx;
    _Atomic uint32_t refs;     /* the user's, and one per launch */
    bool is_sealed;
    bool is_broken;            /* recording ran out of memory */
    struct graph_task *task;
    size_t ntasks, task_cap;
    struct graph_op *rec;      /* operands of all tasks */
    size_t nops, op_cap;
    heddle_handle **op;        /* the same after sealing, as kernels see them */
    enum heddle_mode *mode;
    unsigned char *arg;
    size_t arg_bytes, arg_cap;
    struct graph_edge *edge;   /* while recording */
    size_t nedges, edge_cap;
    uint32_t *succ;            /* after sealing */
    uint32_t nsinks;           /* tasks without successors */
    struct heddle_map units;
    struct graph_unit *list;
    uint32_t nunits;
    struct heddle_access *acc; /* what a launch does, after sealing */
    struct heddle_spin lock;   /* guards free */
    struct graph_run *free;
};

struct heddle_node {
    struct heddle_sched_task sched;
    _Atomic int32_t ndeps;
    uint32_t index;
};

_Static_assert(sizeof(struct heddle_node) == 32, "heddle_is_node");

struct graph_run {
    _Alignas(32) heddle_graph *graph;
    struct graph_run *next;
    struct heddle_scope *scope; /* of the launch; the run is its only child */
    heddle_handle **op;        /* graph.op, or own with bindings */
    unsigned char *arg;        /* graph.arg, or own */
    int (*again)(void *user, unsigned pass);
    void *again_user;
    unsigned pass;
    uint64_t first_id;
    struct heddle_task_opts opts; /* of the launch, with our `done` */
    void (*done)(void *user, heddle_status st); /* the caller's */
    void *done_user;
    /* Sinks that have not ended: every other node ends before one of them. */
    _Alignas(64) _Atomic uint32_t left;
    _Alignas(64) struct heddle_node node[];
};

/* --- recording -------------------------------------------------------------- */

static heddle_status graph_grow(heddle_graph *g, void *array, size_t *cap,
                                size_t need, size_t elem)
{
    void **p = array, *bigger;
    size_t n = *cap == 0 ? 64 : *cap;

    if (need <= *cap)
        return HEDDLE_OK;
    while (n < need)
        n *= 2;
    bigger = heddle_zalloc(&g->ctx->alloc, n, elem);
    if (bigger == NULL)
        return heddle_fail(g->ctx, HEDDLE_ENOMEM, "no memory for a graph");
    if (*cap != 0)
        memcpy(bigger, *p, *cap * elem);
    heddle_free(&g->ctx->alloc, *p, *cap * elem);
    *p = bigger;
    *cap = n;
    return HEDDLE_OK;
}

heddle_status heddle_graph_begin(heddle_ctx *ctx, heddle_graph **g_out)
{
    heddle_graph *g;

    HEDDLE_CHECK(ctx != NULL && g_out != NULL);
    g = heddle_zalloc_aligned(&ctx->alloc, 1, sizeof(*g), 64);
    if (g == NULL)
        return heddle_fail(ctx, HEDDLE_ENOMEM, "no memory for a graph");
    g->ctx = ctx;
    heddle_store_rlx(&g->refs, 1u); /* not shared yet */
    heddle_map_init(&g->units, &ctx->alloc);
    *g_out = g;
    return HEDDLE_OK;
}

static heddle_status graph_unit_get(heddle_graph *g, heddle_handle *h,
                                    struct graph_unit **out)
{
    struct graph_unit *u = heddle_map_get_ptr(&g->units, (uintptr_t)h);

    if (u == NULL) {
        u = heddle_zalloc(&g->ctx->alloc, 1, sizeof(*u));
        if (u == NULL ||
            heddle_map_put_ptr(&g->units, (uintptr_t)h, u) != HEDDLE_OK) {
            heddle_free(&g->ctx->alloc, u, sizeof(*u));
            return heddle_fail(g->ctx, HEDDLE_ENOMEM, "no memory for a graph");
        }
        u->unit = heddle_handle_ref(h);
        u->index = g->nunits++;
        u->next = g->list;
        g->list = u;
    }
    *out = u;
    return HEDDLE_OK;
}

static heddle_status graph_edge_add(heddle_graph *g, uint32_t pred)
{
    const uint32_t succ = (uint32_t)g->ntasks;

    /* Edges of one task come together: look back for the same one. */
    for (size_t i = g->nedges; i-- > 0 && g->edge[i].succ == succ;)
        if (g->edge[i].pred == pred)
            return HEDDLE_OK;
    HEDDLE_TRY(graph_grow(g, &g->edge, &g->edge_cap, g->nedges + 1,
                          sizeof(*g->edge)));
    g->edge[g->nedges++] = (struct graph_edge){pred, succ};
    return HEDDLE_OK;
}

/* What the new task waits for in the history of one unit. */
static heddle_status graph_wait_for(heddle_graph *g, const struct graph_unit *u,
                                    enum heddle_mode mode)
{
    if (u->writer != 0 && (mode == HEDDLE_R || u->nreaders == 0))
        HEDDLE_TRY(graph_edge_add(g, u->writer - 1));
    for (uint32_t i = 0; mode != HEDDLE_R && i < u->nreaders; i++)
        HEDDLE_TRY(graph_edge_add(g, u->reader[i]));
    return HEDDLE_OK;
}

static heddle_status graph_enter(heddle_graph *g, struct graph_unit *u,
                                 enum heddle_mode mode)
{
    size_t cap = u->cap;

    if (mode == HEDDLE_R) {
        HEDDLE_TRY(graph_grow(g, &u->reader, &cap, u->nreaders + (size_t)1,
                              sizeof(*u->reader)));
        u->cap = (uint32_t)cap;
        u->reader[u->nreaders++] = (uint32_t)g->ntasks;
    } else {
        u->writer = (uint32_t)g->ntasks + 1;
        u->nreaders = 0;
    }
    /* The launch reads unless the region begins by overwriting. */
    if (u->mode == 0)
        u->mode = mode == HEDDLE_COMMUTE ? HEDDLE_RW : mode;
    else if (u->mode == HEDDLE_R && mode != HEDDLE_R)
        u->mode = HEDDLE_RW;
    return HEDDLE_OK;
}

/* The edges of one operand. Registry lock held: overlap lists are read. */
static heddle_status graph_operand(heddle_graph *g, heddle_handle *h,
                                   enum heddle_mode mode)
{
    struct graph_unit *u = NULL;

    HEDDLE_TRY(graph_unit_get(g, h, &u));
    HEDDLE_TRY(graph_wait_for(g, u, mode));
    for (uint32_t i = 0; i < heddle_unit_noverlaps(h); i++) {
        struct graph_unit *v =
            heddle_map_get_ptr(&g->units, (uintptr_t)h->overlap[i]);

        if (v != NULL)
            HEDDLE_TRY(graph_wait_for(g, v, mode));
    }
    g->rec[g->nops++] = (struct graph_op){h, mode, u->index};
    return HEDDLE_OK;
}

static heddle_status graph_check(heddle_graph *g, const struct heddle_kinfo *k,
                                 const struct heddle_call *call, unsigned nops)
{
    heddle_handle *const *op =
        call->noperands != 0 ? call->operands : call->operand;
    const enum heddle_mode *mode =
        call->noperands != 0 && call->modes != NULL ? call->modes : k->mode;
    const struct heddle_task_opts *o = call->opts;

    if (g->is_sealed)
        return heddle_fail(g->ctx, HEDDLE_ESTATE, "the graph is sealed");
    if ((call->noperands == 0 && nops > HEDDLE_CALL_OPERANDS) ||
        nops > HEDDLE_KERNEL_OPERANDS || (nops > 0 && op == NULL) ||
        (call->arg == NULL && call->arg_bytes != 0) ||
        call->arg_bytes > UINT32_MAX / 2)
        return heddle_fail(g->ctx, HEDDLE_EINVAL,
                           "kernel %s: bad operands or argument in a graph",
                           k->kernel->name);
    if (o != NULL &&
        (o->size < sizeof(*o) || o->after != NULL || o->group != NULL ||
         o->done != NULL || o->event_out != NULL || o->retries != 0 ||
         o->timeout_ns != 0 || o->variant > k->nvariants))
        return heddle_fail(g->ctx, HEDDLE_EINVAL,
                           "kernel %s: of the options only name and variant "
                           "can be recorded",
                           k->kernel->name);
    for (unsigned i = 0; i < nops; i++) {
        if (op[i] == NULL || op[i]->reg != &g->ctx->reg)
            return heddle_fail(g->ctx, HEDDLE_EINVAL,
                               "kernel %s: operand %u is NULL or of another "
                               "context",
                               k->kernel->name, i);
        if (mode[i] != HEDDLE_R && mode[i] != HEDDLE_W &&
            mode[i] != HEDDLE_RW && mode[i] != HEDDLE_COMMUTE &&
            mode[i] != HEDDLE_SCRATCH)
            return heddle_fail(g->ctx, HEDDLE_EINVAL,
                               "kernel %s: operand %u: a reduction cannot be "
                               "recorded",
                               k->kernel->name, i);
    }
    return HEDDLE_OK;
}

/* All operands: first the edges, then the histories, as in deps.c. */
static heddle_status graph_operands(heddle_graph *g, heddle_handle *const *op,
                                    const enum heddle_mode *mode, unsigned nops)
{
    const size_t first = g->nops;
    heddle_status st = HEDDLE_OK;

    for (unsigned i = 0; i < nops && st == HEDDLE_OK; i++) {
        if (mode[i] == HEDDLE_SCRATCH) {
            g->rec[g->nops++] = (struct graph_op){op[i], mode[i], UINT32_MAX};
            continue;
        }
        heddle_mutex_lock(&g->ctx->reg.lock);
        st = graph_operand(g, op[i], mode[i]);
        heddle_mutex_unlock(&g->ctx->reg.lock);
    }
    for (size_t i = first; i < g->nops && st == HEDDLE_OK; i++)
        if (g->rec[i].index != UINT32_MAX)
            st = graph_enter(g,
                             heddle_map_get_ptr(&g->units,
                                                (uintptr_t)g->rec[i].unit),
                             g->rec[i].mode);
    return st;
}

heddle_status heddle_graph_submit(heddle_graph *g, const heddle_kernel *kernel,
                                  const struct heddle_call *call)
{
    static const struct heddle_call nothing = {.arg = NULL};
    struct graph_task t = {.prio = 0};
    struct heddle_kinfo *k;
    heddle_handle *const *op;
    const enum heddle_mode *mode;
    size_t edges, ops;
    heddle_status st;

    HEDDLE_CHECK(g != NULL);
    if (call == NULL)
        call = &nothing;
    HEDDLE_TRY(heddle_kinfo_get(g->ctx, kernel, &k));
    t.nops = call->noperands != 0 ? call->noperands : k->noperands;
    HEDDLE_TRY(graph_check(g, k, call, t.nops));
    op = call->noperands != 0 ? call->operands : call->operand;
    mode = call->noperands != 0 && call->modes != NULL ? call->modes : k->mode;
    HEDDLE_TRY(graph_grow(g, &g->task, &g->task_cap, g->ntasks + 1,
                          sizeof(*g->task)));
    HEDDLE_TRY(graph_grow(g, &g->rec, &g->op_cap, g->nops + t.nops,
                          sizeof(*g->rec)));
    t.arg = (g->arg_bytes + 15) & ~(size_t)15;
    HEDDLE_TRY(graph_grow(g, &g->arg, &g->arg_cap, t.arg + call->arg_bytes + 16,
                          1));
    edges = g->nedges;
    ops = g->nops;
    st = graph_operands(g, op, mode, t.nops);
    if (st != HEDDLE_OK) { /* histories may name this task: it stays, empty */
        g->nedges = edges;
        g->nops = ops;
        g->is_broken = true;
        return st;
    }
    t.kinfo = k;
    t.op = (uint32_t)ops;
    t.prio = call->priority;
    t.arg_bytes = (uint32_t)call->arg_bytes;
    if (call->arg_bytes != 0)
        memcpy(g->arg + t.arg, call->arg, call->arg_bytes);
    g->arg_bytes = t.arg + call->arg_bytes;
    if (call->opts != NULL) {
        t.name = call->opts->name;
        t.variant = call->opts->variant;
    }
    g->task[g->ntasks++] = t;
    return HEDDLE_OK;
}

/* --- sealing ---------------------------------------------------------------- */

/* Edges come sorted by successor; successors are wanted by predecessor. */
static void graph_count_edges(heddle_graph *g)
{
    uint32_t at = 0;

    for (size_t e = 0; e < g->nedges; e++) {
        g->task[g->edge[e].pred].nsucc++;
        g->task[g->edge[e].succ].ndeps++;
    }
    for (size_t t = 0; t < g->ntasks; t++) {
        g->task[t].succ = at;
        at += g->task[t].nsucc;
        g->nsinks += g->task[t].nsucc == 0;
        g->task[t].nsucc = 0;
    }
    for (size_t e = 0; e < g->nedges; e++) {
        struct graph_task *p = &g->task[g->edge[e].pred];

        g->succ[p->succ + p->nsucc++] = g->edge[e].succ;
    }
}

heddle_status heddle_graph_end(heddle_graph *g)
{
    const struct heddle_allocator *a;

    HEDDLE_CHECK(g != NULL);
    a = &g->ctx->alloc;
    if (g->is_sealed || g->is_broken)
        return heddle_fail(g->ctx, HEDDLE_ESTATE,
                           g->is_sealed ? "the graph is sealed already"
                                        : "recording failed before");
    g->succ = heddle_zalloc(a, g->nedges + 1, sizeof(*g->succ));
    g->op = heddle_zalloc(a, g->nops + 1, sizeof(*g->op));
    g->mode = heddle_zalloc(a, g->nops + 1, sizeof(*g->mode));
    g->acc = heddle_zalloc(a, g->nunits + (size_t)1, sizeof(*g->acc));
    if (g->succ == NULL || g->op == NULL || g->mode == NULL || g->acc == NULL) {
        g->is_broken = true;
        return heddle_fail(g->ctx, HEDDLE_ENOMEM, "no memory for a graph");
    }
    graph_count_edges(g);
    for (size_t i = 0; i < g->nops; i++) {
        g->op[i] = g->rec[i].unit;
        g->mode[i] = g->rec[i].mode;
    }
    for (struct graph_unit *u = g->list; u != NULL; u = u->next) {
        g->acc[u->index].unit = u->unit;
        g->acc[u->index].mode = u->mode;
        g->acc[u->index].dep = &u->unit->dep;
    }
    g->is_sealed = true;
    return HEDDLE_OK;
}

static size_t run_bytes(const heddle_graph *g)
{
    return sizeof(struct graph_run) + g->ntasks * sizeof(struct heddle_node);
}

static void run_free(heddle_graph *g, struct graph_run *r)
{
    const struct heddle_allocator *a = &g->ctx->alloc;

    if (r->op != g->op)
        heddle_free(a, r->op, (g->nops + 1) * sizeof(*r->op));
    if (r->arg != g->arg)
        heddle_free(a, r->arg, g->arg_cap);
    heddle_free(a, r, run_bytes(g));
}

void heddle_graph_unref(heddle_graph *g)
{
    const struct heddle_allocator *a;

    if (g == NULL || heddle_sub_acqrel(&g->refs, 1u) != 1)
        return;
    a = &g->ctx->alloc;
    while (g->free != NULL) {
        struct graph_run *r = g->free;

        g->free = r->next;
        run_free(g, r);
    }
    while (g->list != NULL) {
        struct graph_unit *u = g->list;

        g->list = u->next;
        heddle_unit_unref(u->unit);
        heddle_free(a, u->reader, u->cap * sizeof(*u->reader));
        heddle_free(a, u, sizeof(*u));
    }
    heddle_map_fini(&g->units);
    heddle_free(a, g->task, g->task_cap * sizeof(*g->task));
    heddle_free(a, g->rec, g->op_cap * sizeof(*g->rec));
    heddle_free(a, g->op, (g->nops + 1) * sizeof(*g->op));
    heddle_free(a, g->mode, (g->nops + 1) * sizeof(*g->mode));
    heddle_free(a, g->arg, g->arg_cap);
    heddle_free(a, g->edge, g->edge_cap * sizeof(*g->edge));
    heddle_free(a, g->succ, (g->nedges + 1) * sizeof(*g->succ));
    heddle_free(a, g->acc, (g->nunits + (size_t)1) * sizeof(*g->acc));
    heddle_free(a, g, sizeof(*g));
}

size_t heddle_graph_get_ntasks(const heddle_graph *g)
{
    return g == NULL ? 0 : g->ntasks;
}

size_t heddle_graph_get_nedges(const heddle_graph *g)
{
    return g == NULL ? 0 : g->nedges;
}

/* --- launching -------------------------------------------------------------- */

static struct graph_run *run_new(heddle_graph *g)
{
    struct graph_run *r;

    heddle_spin_lock(&g->lock);
    r = g->free;
    if (r != NULL)
        g->free = r->next;
    heddle_spin_unlock(&g->lock);
    if (r == NULL) {
        r = heddle_zalloc_aligned(&g->ctx->alloc, 1, run_bytes(g), 64);
        if (r == NULL)
            return NULL;
        r->graph = g;
        r->op = g->op;
        r->arg = g->arg;
        for (size_t i = 0; i < g->ntasks; i++) {
            r->node[i].sched.prio = g->task[i].prio;
            r->node[i].index = (uint32_t)i;
            heddle_store_rlx(&r->node[i].ndeps, g->task[i].ndeps);
        }
    }
    r->again = NULL;
    r->pass = 0;
    return r;
}

/* Back to the graph; the launch is over. */
static void run_recycle(struct graph_run *r)
{
    heddle_graph *g = r->graph;

    if (r->op != g->op || r->arg != g->arg) {
        run_free(g, r);
    } else {
        heddle_spin_lock(&g->lock);
        r->next = g->free;
        g->free = r;
        heddle_spin_unlock(&g->lock);
    }
    heddle_graph_unref(g);
}

static heddle_status launch_check_binding(heddle_graph *g,
                                          const struct heddle_binding *b)
{
    const struct heddle_layout *l, *m;

    if (b->recorded == NULL || b->actual == NULL ||
        b->actual->reg != &g->ctx->reg ||
        heddle_map_get_ptr(&g->units, (uintptr_t)b->recorded) == NULL)
        return heddle_fail(g->ctx, HEDDLE_EINVAL,
                           "a binding names a handle that was not recorded, or "
                           "one of another context");
    l = &b->recorded->layout;
    m = &b->actual->layout;
    if (l->dtype != m->dtype || l->ndim != m->ndim ||
        memcmp(l->extent, m->extent, l->ndim * sizeof(l->extent[0])) != 0)
        return heddle_fail(g->ctx, HEDDLE_EINVAL,
                           "a binding of another type or shape");
    return HEDDLE_OK;
}

static bool launch_overlap(const heddle_handle *a, const heddle_handle *b)
{
    return a->root == b->root &&
           heddle_box_overlap(&a->box, &b->box, a->root->layout.ndim);
}

/* Units that were apart must stay apart: there are no edges between them. */
static heddle_status launch_check_apart(heddle_graph *g,
                                        const struct heddle_access *acc,
                                        const struct heddle_binding *b)
{
    for (uint32_t i = 0; i < g->nunits; i++)
        if (g->acc[i].unit != b->recorded &&
            launch_overlap(acc[i].unit, b->actual) &&
            !launch_overlap(g->acc[i].unit, b->recorded))
            return heddle_fail(g->ctx, HEDDLE_EINVAL,
                               "bindings overlap where the recorded handles "
                               "did not");
    return HEDDLE_OK;
}

static heddle_status launch_bind(heddle_graph *g, struct graph_run *r,
                                 const struct heddle_launch *l,
                                 struct heddle_access *acc)
{
    for (size_t i = 0; i < l->nbindings; i++) {
        struct graph_unit *u;

        HEDDLE_TRY(launch_check_binding(g, &l->binding[i]));
        u = heddle_map_get_ptr(&g->units, (uintptr_t)l->binding[i].recorded);
        acc[u->index].unit = l->binding[i].actual;
        acc[u->index].dep = &l->binding[i].actual->dep;
    }
    for (size_t i = 0; i < l->nbindings; i++)
        HEDDLE_TRY(launch_check_apart(g, acc, &l->binding[i]));
    r->op = heddle_zalloc(&g->ctx->alloc, g->nops + 1, sizeof(*r->op));
    if (r->op == NULL)
        return heddle_fail(g->ctx, HEDDLE_ENOMEM, "no memory for a launch");
    for (size_t i = 0; i < g->nops; i++)
        r->op[i] = g->rec[i].index == UINT32_MAX ? g->op[i]
                                                 : acc[g->rec[i].index].unit;
    return HEDDLE_OK;
}

static heddle_status launch_args(heddle_graph *g, struct graph_run *r,
                                 const struct heddle_launch *l)
{
    r->arg = heddle_alloc(&g->ctx->alloc, g->arg_cap);
    if (r->arg == NULL)
        return heddle_fail(g->ctx, HEDDLE_ENOMEM, "no memory for a launch");
    memcpy(r->arg, g->arg, g->arg_cap);
    for (size_t i = 0; i < l->nargs; i++) {
        const struct heddle_graph_arg *a = &l->arg[i];

        if (a->task >= g->ntasks || a->arg == NULL ||
            a->arg_bytes != g->task[a->task].arg_bytes)
            return heddle_fail(g->ctx, HEDDLE_EINVAL,
                               "argument %zu of a launch names no task, or has "
                               "another size",
                               i);
        memcpy(r->arg + g->task[a->task].arg, a->arg, a->arg_bytes);
    }
    return HEDDLE_OK;
}

/* Starts all tasks without predecessors; returns one to run next. */
static struct heddle_sched_task *run_start(struct worker *w,
                                           struct graph_run *r)
{
    heddle_graph *g = r->graph;
    heddle_ctx *ctx = w->ctx;
    struct heddle_sched_task *keep = NULL;

    heddle_store_rlx(&r->left, g->nsinks); /* published by the pushes */
    for (size_t i = g->ntasks; i-- > 0;) {
        if (g->task[i].ndeps != 0)
            continue;
        if (keep != NULL)
            ctx->sched->push(ctx->sched_self, keep, w->pusher);
        keep = &r->node[i].sched;
    }
    heddle_park_ring(&ctx->park, w->id);
    return keep;
}

/* The task of a launch: its only child is the run. */
static heddle_status launch_run(struct heddle_exec *x)
{
    struct graph_run *r;
    struct heddle_sched_task *t;

    memcpy(&r, x->arg, sizeof(r));
    HEDDLE_TRY(heddle_scope_open(x));
    r->scope = x->scope;
    heddle_add_acqrel(&x->scope->pending, (int64_t)1);
    t = run_start(x->worker, r);
    heddle_engine_push(x->worker, t);
    return HEDDLE_OK;
}

/* The launch has ended, or was cancelled before it began. */
static void launch_done(void *user, heddle_status st)
{
    struct graph_run *r = user;
    void (*done)(void *, heddle_status) = r->done;
    void *done_user = r->done_user;

    run_recycle(r);
    if (done != NULL)
        done(done_user, st);
}

static const heddle_kernel launch_kernel = {
    .size = sizeof(heddle_kernel),
    .name = "graph",
    .variants = {{.device = HEDDLE_DEV_CPU, .run = launch_run}},
};

static heddle_status launch_submit(heddle_graph *g, struct graph_run *r,
                                   struct heddle_access *acc, int priority)
{
    heddle_ctx *ctx = g->ctx;
    const struct heddle_call call = {.arg = &r,
                                     .arg_bytes = sizeof(struct graph_run *),
                                     .priority = priority,
                                     .opts = &r->opts};
    struct submission s = {.sub = &ctx->root,
                           .domain = &ctx->root.domain,
                           .call = &call,
                           .acc = acc,
                           .nacc = g->nunits};
    heddle_status st;

    HEDDLE_TRY(heddle_kinfo_get(ctx, &launch_kernel, &s.kinfo));
    HEDDLE_TRY(heddle_submit_lock(ctx));
    st = heddle_submit_one(ctx, &s);
    heddle_submit_unlock(ctx);
    if (st == HEDDLE_OK)
        heddle_submit_finish(ctx, &s);
    return st;
}

static heddle_status launch_check(heddle_graph *g,
                                  const struct heddle_launch *l)
{
    if (!g->is_sealed)
        return heddle_fail(g->ctx, HEDDLE_ESTATE,
                           "a graph is launched after heddle_graph_end()");
    if (l->size < sizeof(*l) || (l->nbindings != 0 && l->binding == NULL) ||
        (l->nargs != 0 && l->arg == NULL) ||
        (l->opts != NULL && l->opts->size < sizeof(*l->opts)))
        return heddle_fail(g->ctx, HEDDLE_EINVAL,
                           "a launch without its size, or with a count but no "
                           "array");
    return HEDDLE_OK;
}

heddle_status heddle_graph_launch(heddle_graph *g,
                                  const struct heddle_launch *launch)
{
    static const struct heddle_launch nothing = {.size = sizeof(nothing)};
    const struct heddle_launch *l = launch != NULL ? launch : &nothing;
    struct heddle_access *acc;
    struct graph_run *r;
    heddle_status st = HEDDLE_OK;
    size_t bytes;

    HEDDLE_CHECK(g != NULL);
    HEDDLE_TRY(launch_check(g, l));
    if (g->ntasks == 0)
        return HEDDLE_OK;
    bytes = (g->nunits + (size_t)1) * sizeof(*acc);
    acc = l->nbindings == 0 ? g->acc : heddle_alloc(&g->ctx->alloc, bytes);
    r = run_new(g);
    if (acc == NULL || r == NULL) {
        st = heddle_fail(g->ctx, HEDDLE_ENOMEM, "no memory for a launch");
    } else if (l->nbindings != 0) {
        memcpy(acc, g->acc, bytes);
        st = launch_bind(g, r, l, acc);
    }
    if (st == HEDDLE_OK && l->nargs != 0)
        st = launch_args(g, r, l);
    if (r != NULL)
        heddle_add_rlx(&g->refs, 1u); /* the run's; the caller holds one */
    if (st == HEDDLE_OK) {
        r->again = l->again;
        r->again_user = l->again_user;
        /* Relaxed: ids only have to differ. */
        r->first_id = heddle_add_rlx(&g->ctx->next_id, (uint64_t)g->ntasks);
        r->opts = (struct heddle_task_opts){.size = sizeof(r->opts)};
        if (l->opts != NULL)
            r->opts = *l->opts;
        r->done = r->opts.done;
        r->done_user = r->opts.done_user;
        r->opts.done = launch_done;
        r->opts.done_user = r;
        st = launch_submit(g, r, acc, l->priority);
    }
    if (st != HEDDLE_OK && r != NULL)
        run_recycle(r);
    if (acc != g->acc)
        heddle_free(&g->ctx->alloc, acc, bytes);
    return st;
}

/* --- nodes ------------------------------------------------------------------ */

static struct graph_run *node_run_of(struct heddle_node *n)
{
    return (struct graph_run *)(void *)((char *)(n - n->index) -
                                        offsetof(struct graph_run, node));
}

/* The last sink has ended: another pass, or the end of the launch. */
static struct heddle_sched_task *run_end(struct worker *w, struct graph_run *r)
{
    struct heddle_scope *scope = r->scope;

    if (r->again != NULL && heddle_load_acq(&scope->status) == 0 &&
        heddle_load_rlx(&w->ctx->is_cancelled) == 0 &&
        r->again(r->again_user, ++r->pass) != 0)
        return run_start(w, r);
    return heddle_scope_child_end(w, scope, NULL);
}

static inline struct heddle_sched_task *node_release(struct worker *w,
                                                     struct graph_run *r,
                                                     const struct graph_task *t)
{
    heddle_ctx *ctx = w->ctx;
    const uint32_t *succ = &r->graph->succ[t->succ];
    struct heddle_sched_task *keep = NULL;
    bool has_pushed = false;

    if (HEDDLE_UNLIKELY(t->nsucc == 0)) {
        /* Acquire and release: the last one sees what all wrote. */
        if (heddle_sub_acqrel(&r->left, 1u) == 1)
            return run_end(w, r);
        return NULL;
    }
    for (uint32_t i = t->nsucc; i-- > 0;) {
        struct heddle_node *n = &r->node[succ[i]];

        /* As in engine_release(). */
        if (heddle_load_acq(&n->ndeps) != 1 &&
            heddle_sub_acqrel(&n->ndeps, 1) != 1)
            continue;
        if (keep != NULL) {
            ctx->sched->push(ctx->sched_self, keep, w->pusher);
            has_pushed = true;
        }
        keep = &n->sched;
    }
    if (keep != NULL && !ctx->sched->allows_handoff) {
        ctx->sched->push(ctx->sched_self, keep, w->pusher);
        has_pushed = true;
        keep = NULL;
    }
    if (has_pushed)
        heddle_park_ring(&ctx->park, w->id);
    return keep;
}

static void node_exec(struct worker *w, struct heddle_node *n,
                      struct graph_run *r, const struct graph_task *t,
                      struct heddle_exec *x)
{
    x->ctx = w->ctx;
    x->worker = w;
    x->kinfo = t->kinfo;
    x->op = r->op + t->op;
    x->mode = r->graph->mode + t->op;
    x->arg = r->arg + t->arg;
    x->nops = t->nops;
    x->arg_bytes = t->arg_bytes;
    x->id = r->first_id + n->index;
    x->cell = NULL;
    x->node = n;
    x->scope = NULL;
    x->slow = NULL;
}

struct heddle_sched_task *heddle_node_end(struct worker *w,
                                          struct heddle_node *n,
                                          heddle_status st)
{
    struct graph_run *r = node_run_of(n);
    const struct graph_task *t = &r->graph->task[n->index];

    if (HEDDLE_UNLIKELY(st != HEDDLE_OK ||
                        heddle_load_rlx(&w->ctx->reg.nmarks) != 0)) {
        struct heddle_exec x;
        int none = 0;

        node_exec(w, n, r, t, &x);
        heddle_slow_settle(&x, st);
        if (st != HEDDLE_OK)
            (void)heddle_cas_acqrel(&r->scope->status, &none, (int)st);
    }
    return node_release(w, r, t);
}

/* After the function of a node that failed, has children or is slow. */
static struct heddle_sched_task *node_after(struct heddle_exec *x,
                                            heddle_status st, uint64_t start)
{
    struct worker *w = x->worker;
    struct heddle_node *n = x->node;

    heddle_slow_trace(x, st, start, HEDDLE_LOG_REPLAYED);
    if (st > 0)
        st = HEDDLE_ETASK;
    if (st != HEDDLE_OK)
        heddle_fail_task(x, st);
    if (x->scope != NULL && heddle_scope_leave(x, &st))
        return NULL;
    return heddle_node_end(w, n, st);
}

static struct heddle_sched_task *node_run_slow(struct heddle_exec *x,
                                               const struct graph_task *t,
                                               uint64_t start)
{
    const struct task_ext ext = {.name = t->name,
                                 .variant = (uint16_t)t->variant};
    struct worker *w = x->worker;
    struct exec_slow s;
    heddle_status st = heddle_slow_body(x, &s, &ext);

    if (st == HEDDLE_AGAIN) {
        heddle_engine_push_foreign(w->ctx, &x->node->sched);
        return NULL;
    }
    return node_after(x, st, start);
}

struct heddle_sched_task *heddle_node_run(struct worker *w,
                                          struct heddle_sched_task *task)
{
    struct heddle_node *n = (struct heddle_node *)(void *)task;
    struct graph_run *r = node_run_of(n);
    const struct graph_task *t = &r->graph->task[n->index];
    const uint64_t start = w->last;
    heddle_ctx *ctx = w->ctx;
    struct heddle_exec x;
    heddle_status st;

    heddle_store_rlx(&n->ndeps, t->ndeps); /* invariant (4) */
    node_exec(w, n, r, t, &x);
    if (HEDDLE_UNLIKELY(t->kinfo->is_slow || t->variant != 0 ||
                        heddle_load_rlx(&ctx->is_cancelled) != 0 ||
                        heddle_load_rlx(&ctx->reg.nmarks) != 0))
        return node_run_slow(&x, t, start);
    heddle_exec_enter(&x);
    st = t->kinfo->run(&x);
    heddle_exec_leave(&x);
    heddle_store_rlx(&w->executed, heddle_load_rlx(&w->executed) + 1);
    if (HEDDLE_UNLIKELY(st != HEDDLE_OK || x.scope != NULL))
        return node_after(&x, st, start);
    if (HEDDLE_LIKELY(heddle_trace_is_on(w->lane, HEDDLE_TRACE_TASK))) {
        const uint64_t now = heddle_ticks();

        heddle_trace_task(w->lane, x.id, t->kinfo->id, 0, HEDDLE_LOG_REPLAYED,
                          start != 0 ? start : now, now, 0);
        w->last = now;
    }
    return node_release(w, r, t);
}
