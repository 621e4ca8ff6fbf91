/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * region: recorded regions as CUDA graphs.
 *
 * Structure  the stream is captured while each launch is put on it. Before a launch
 *            the driver sets the dependencies of the next captured node: the last nodes
 *            of the launch's predecessors, and nothing else. After the launch, the
 *            nodes that a next node would depend on are the launch's own last nodes. So
 *            a launch that puts nothing on the stream passes on the last nodes of its
 *            predecessors.
 *            A graph that exists is brought up to date in one of two ways. When few
 *            launches have changed, only these are captured, and the arguments of their
 *            kernels are set in the executable graph, node by node (steps). Otherwise,
 *            or when a step finds something unexpected, the whole region is captured
 *            and CUDA compares it with the graph; when CUDA refuses, because the shape
 *            differs, a new executable graph is made.
 * Invariants (1) the stream is not being captured when region() returns
 *            (2) steps change neither the function of a node nor its attributes:
 *                CUDA has no call that sets the latter
 *            (3) CUDA names nodes of an executable graph by the nodes it was made of:
 *                that graph is kept (`from`), and the one it was last compared with
 *                (`now`)
 *            (4) CUDA pairs the nodes of two graphs in the order in which they were
 *                captured. So a node of `from` still belongs to its launch when the
 *                same launches were one node both times, and the other launches none
 * Cost       a whole capture takes about 1 us per launch; a step costs more per launch,
 *            and nothing for launches that have not changed
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/text.h"
#include "drive/cuda/dev.h"

#define FEW       32 /* nodes that are compared with each other */
#define STEP_PART 4  /* steps for no more than 1 / STEP_PART of the launches */
#define MISSES    4  /* before a new graph is made, to be sure */

/* What was captured. */
struct made {
    heddle_cu_graph graph;
    unsigned n;
    heddle_cu_node *node; /* n: of a launch that is one node, else NULL */
    bool is_plain;        /* the other launches put nothing there */
};

/* What the engine holds. */
struct cuda_graph {
    heddle_cu_exec exec; /* NULL: it was left half done, and must not run */
    struct made from;    /* exec was made of this */
    struct made now;     /* and compared with this; no graph: never */
    bool is_sure;        /* (4) */
    bool is_mixed;       /* some of the steps were done, others not */
    unsigned nmissed;    /* times that steps would have done, but for is_sure */
};

/* A last node of a launch. */
struct leaf {
    heddle_cu_node node;
    uint32_t same; /* where it came first; a launch of nothing passes it on */
    uint32_t seen; /* there: the last set that it was put into */
};

struct capture {
    struct heddle_dev *dev;
    const struct heddle_region *r;
    heddle_cu_stream stream;
    heddle_cu_node *node; /* as in struct made */
    size_t nnodes;        /* of these, not NULL */
    bool has_refused;     /* put() failed */
    bool is_odd;          /* not as steps expect it */
    uint32_t *first;      /* n + 1: the last nodes of launch i */
    struct leaf *leaf;
    size_t nleaves, leaf_cap;
    heddle_cu_node *set; /* what the next launch depends on */
    uint32_t *set_leaf;  /* and which leaves these are */
    size_t nset, set_cap, set_leaf_cap;
    uint32_t nsets; /* so far */
};

static void made_fini(struct heddle_dev *dev, struct made *m)
{
    if (m->graph != NULL)
        dev->api.cuGraphDestroy(m->graph);
    heddle_free(dev->env.alloc, m->node, (m->n + (size_t)1) * sizeof(*m->node));
    *m = (struct made){0};
}

static heddle_status made_init(struct heddle_dev *dev, struct made *m, unsigned n)
{
    *m = (struct made){.n = n};
    m->node = heddle_zalloc(dev->env.alloc, n + (size_t)1, sizeof(*m->node));
    return m->node != NULL ? HEDDLE_OK : HEDDLE_ENOMEM;
}

/* --- capture --------------------------------------------------------------------- */

/* `old`, or a larger copy of it; NULL: no memory. */
static void *grown(struct capture *c, void *old, size_t *cap, size_t want, size_t bytes)
{
    const struct heddle_allocator *a = c->dev->env.alloc;
    size_t more = *cap != 0 ? *cap : 64;
    void *p;

    if (old != NULL && want <= *cap)
        return old;
    while (more < want)
        more *= 2;
    p = heddle_alloc(a, more * bytes);
    if (p == NULL)
        return NULL;
    if (*cap != 0)
        memcpy(p, old, *cap * bytes);
    heddle_free(a, old, *cap * bytes);
    *cap = more;
    return p;
}

static heddle_status set_reserve(struct capture *c, size_t want)
{
    void *p = grown(c, c->set, &c->set_cap, want, sizeof(*c->set));

    if (p == NULL)
        return HEDDLE_ENOMEM;
    c->set = p;
    p = grown(c, c->set_leaf, &c->set_leaf_cap, want, sizeof(*c->set_leaf));
    if (p == NULL)
        return HEDDLE_ENOMEM;
    c->set_leaf = p;
    return HEDDLE_OK;
}

/* The last nodes of its predecessors, each once, in the order of the launches. */
static heddle_status set_fill(struct capture *c, unsigned i)
{
    const struct heddle_region *r = c->r;

    c->nset = 0;
    c->nsets++;
    for (uint32_t k = r->first[i]; k < r->first[i + 1]; k++) {
        const uint32_t p = r->pred[k];

        HEDDLE_ASSERT(p < i);
        HEDDLE_TRY(set_reserve(c, c->nset + (c->first[p + 1] - c->first[p])));
        for (uint32_t at = c->first[p]; at < c->first[p + 1]; at++) {
            const uint32_t same = c->leaf[at].same;

            if (c->leaf[same].seen == c->nsets)
                continue;
            c->leaf[same].seen = c->nsets;
            c->set[c->nset] = c->leaf[at].node;
            c->set_leaf[c->nset++] = same;
        }
    }
    return HEDDLE_OK;
}

/* Where the node is in the set; nset: nowhere. `guess` is tried first. */
static size_t set_find(const struct capture *c, heddle_cu_node node, size_t guess)
{
    size_t k = 0;

    if (guess < c->nset && c->set[guess] == node)
        return guess;
    while (k < c->nset && c->set[k] != node)
        k++;
    return k;
}

static heddle_status capture_set(struct capture *c, unsigned i)
{
    heddle_cu_result err;

    HEDDLE_TRY(set_fill(c, i));
    err = c->dev->api.cuStreamUpdateCaptureDependencies(c->stream, c->set, c->nset,
                                                        HEDDLE_CU_SET_DEPENDENCIES);
    if (err != 0)
        return heddle_cuda_fail(c->dev, err, "order what is captured");
    return HEDDLE_OK;
}

static heddle_status capture_put(struct capture *c, unsigned i)
{
    const heddle_status st = c->r->put(c->r->user, i);

    c->has_refused = st != HEDDLE_OK;
    return st;
}

/* What the next node would depend on. */
static heddle_status capture_state(struct capture *c, const heddle_cu_node **leaf_out,
                                   size_t *n_out)
{
    heddle_cu_enum state = HEDDLE_CU_CAPTURE_NONE;
    heddle_cu_result err;

    *leaf_out = NULL;
    *n_out = 0;
    err = c->dev->api.cuStreamGetCaptureInfo_v2(c->stream, &state, NULL, NULL, leaf_out, n_out);
    if (err == 0 && state != HEDDLE_CU_CAPTURE_ACTIVE)
        err = HEDDLE_CU_STREAM_CAPTURE_INVALIDATED;
    if (err != 0)
        return heddle_cuda_fail(c->dev, err, "capture a launch");
    return HEDDLE_OK;
}

static heddle_status capture_leaves(struct capture *c, unsigned i)
{
    const heddle_cu_node *leaf;
    size_t n;
    void *p;

    HEDDLE_TRY(capture_state(c, &leaf, &n));
    p = grown(c, c->leaf, &c->leaf_cap, c->nleaves + n, sizeof(*c->leaf));
    if (p == NULL)
        return HEDDLE_ENOMEM;
    c->leaf = p;
    for (size_t k = 0; k < n; k++) {
        const size_t at = set_find(c, leaf[k], k);
        const uint32_t here = (uint32_t)c->nleaves;

        c->leaf[c->nleaves++] =
            (struct leaf){.node = leaf[k], .same = at < c->nset ? c->set_leaf[at] : here};
        if (n == 1 && at == c->nset) {
            c->node[i] = leaf[k];
            c->nnodes++;
        }
    }
    c->first[i + 1] = (uint32_t)c->nleaves;
    return HEDDLE_OK;
}

static heddle_status capture_all(struct capture *c)
{
    for (unsigned i = 0; i < c->r->n; i++) {
        HEDDLE_TRY(capture_set(c, i));
        HEDDLE_TRY(capture_put(c, i));
        HEDDLE_TRY(capture_leaves(c, i));
    }
    return HEDDLE_OK;
}

/* The first launch that has changed, from i on; n: none. */
static unsigned next_changed(const struct heddle_region *r, unsigned i)
{
    while (i < r->n) {
        const uint64_t bits = r->changed[i / 64] >> (i % 64);

        if (bits != 0) {
            i += (unsigned)__builtin_ctzll(bits);
            return i < r->n ? i : r->n;
        }
        i = (i / 64 + 1) * 64;
    }
    return r->n;
}

/* Those that have changed, one behind the other: only their kernels count. */
static heddle_status capture_changed(struct capture *c)
{
    heddle_cu_node last = NULL;
    unsigned i;

    for (i = next_changed(c->r, 0); i < c->r->n && !c->is_odd; i = next_changed(c->r, i + 1)) {
        const heddle_cu_node *leaf;
        size_t n;

        HEDDLE_TRY(capture_put(c, i));
        HEDDLE_TRY(capture_state(c, &leaf, &n));
        c->is_odd = n != 1 || leaf[0] == last;
        if (!c->is_odd) {
            last = c->node[i] = leaf[0];
            c->nnodes++;
        }
    }
    return HEDDLE_OK;
}

/* *graph_out: NULL unless HEDDLE_OK. */
static heddle_status capture_run(struct capture *c, heddle_status (*put)(struct capture *),
                                 heddle_cu_graph *graph_out)
{
    struct heddle_dev *dev = c->dev;
    heddle_cu_graph graph = NULL;
    heddle_cu_result err;
    heddle_status st;

    *graph_out = NULL;
    err = dev->api.cuStreamBeginCapture_v2(c->stream, HEDDLE_CU_CAPTURE_THREAD_LOCAL);
    if (err != 0)
        return heddle_cuda_fail(dev, err, "capture a stream");
    dev->is_capturing = true;
    st = put(c);
    dev->is_capturing = false;
    err = dev->api.cuStreamEndCapture(c->stream, &graph);
    if (st == HEDDLE_OK && (err != 0 || graph == NULL))
        st = heddle_cuda_fail(dev, err, "end the capture of a stream");
    if (st != HEDDLE_OK && err == 0 && graph != NULL)
        dev->api.cuGraphDestroy(graph);
    if (st == HEDDLE_OK)
        *graph_out = graph;
    return st;
}

/* --- steps ------------------------------------------------------------------------ */

/* They came with CUDA 12. */
static bool has_steps(const struct heddle_cuda_api *api)
{
    return api->cuGraphGetNodes != NULL && api->cuGraphNodeGetType != NULL &&
           api->cuGraphNodeGetDependencies != NULL && api->cuGraphKernelNodeGetParams_v2 != NULL &&
           api->cuGraphKernelNodeGetAttribute != NULL &&
           api->cuGraphExecKernelNodeSetParams_v2 != NULL;
}

static bool has_nodes(const struct heddle_dev *dev, heddle_cu_graph graph, size_t n)
{
    size_t have = 0;

    return dev->api.cuGraphGetNodes(graph, NULL, &have) == 0 && have == n;
}

/* Does its node depend on the predecessors alone? Else it is not the only one. */
static bool is_alone(struct capture *c, unsigned i)
{
    heddle_cu_node dep[FEW + 1];
    size_t n = FEW + 1;

    if (set_fill(c, i) != HEDDLE_OK || c->nset > FEW ||
        c->dev->api.cuGraphNodeGetDependencies(c->node[i], dep, &n) != 0 || n != c->nset)
        return false;
    for (size_t k = 0; k < n; k++)
        if (set_find(c, dep[k], k) == c->nset)
            return false;
    return true;
}

/* Every launch that has a node here has one or more. If there are no others, each
 * has one. */
static void made_check(struct capture *c, struct made *m)
{
    if (!has_steps(&c->dev->api))
        return;
    m->is_plain = has_nodes(c->dev, m->graph, c->nnodes);
    for (unsigned i = 0; i < m->n && !m->is_plain; i++)
        if (m->node[i] != NULL && !is_alone(c, i))
            m->node[i] = NULL;
}

static bool made_is_alike(const struct made *a, const struct made *b)
{
    if (!a->is_plain || !b->is_plain || a->n != b->n)
        return false;
    for (unsigned i = 0; i < a->n; i++)
        if ((a->node[i] == NULL) != (b->node[i] == NULL))
            return false;
    return true;
}

static bool is_same_attribute(const struct heddle_cuda_api *api, heddle_cu_enum what,
                              heddle_cu_node a, heddle_cu_node b)
{
    heddle_cu_attribute x, y;
    heddle_cu_result err;

    memset(&x, 0, sizeof(x));
    memset(&y, 0, sizeof(y));
    /* An older driver knows fewer of them, of both nodes. */
    err = api->cuGraphKernelNodeGetAttribute(a, what, &x);
    return err == api->cuGraphKernelNodeGetAttribute(b, what, &y) && memcmp(&x, &y, sizeof(x)) == 0;
}

/* (2): kernels that differ in nothing but what a step can set. */
static bool is_same_kernel(const struct heddle_cuda_api *api, heddle_cu_node a, heddle_cu_node b)
{
    static const heddle_cu_enum what[] = {HEDDLE_CU_ATTRIBUTE_COOPERATIVE,
                                          HEDDLE_CU_ATTRIBUTE_CLUSTER,
                                          HEDDLE_CU_ATTRIBUTE_PREFERRED_CLUSTER};
    const heddle_cu_node node[2] = {a, b};
    heddle_cu_kernel_params p[2];

    for (unsigned i = 0; i < 2; i++) {
        heddle_cu_enum type = ~0u;

        if (api->cuGraphNodeGetType(node[i], &type) != 0 || type != HEDDLE_CU_NODE_KERNEL)
            return false;
        memset(&p[i], 0, sizeof(p[i]));
        if (api->cuGraphKernelNodeGetParams_v2(node[i], &p[i]) != 0)
            return false;
    }
    if (p[0].function != p[1].function || p[0].kernel != p[1].kernel ||
        p[0].context != p[1].context)
        return false;
    for (unsigned i = 0; i < sizeof(what) / sizeof(what[0]); i++)
        if (!is_same_attribute(api, what[i], a, b))
            return false;
    return true;
}

/* What the nodes are given, into the executable graph; node[i] are those of the
 * launches that have changed. */
static heddle_status steps_set(struct heddle_dev *dev, struct cuda_graph *g,
                               const struct heddle_region *r, heddle_cu_node *node)
{
    const struct heddle_cuda_api *api = &dev->api;
    heddle_cu_kernel_params p;
    heddle_cu_result err;
    unsigned i;

    for (i = next_changed(r, 0); i < r->n; i = next_changed(r, i + 1)) {
        memset(&p, 0, sizeof(p));
        err = api->cuGraphKernelNodeGetParams_v2(node[i], &p);
        if (err == 0)
            err = api->cuGraphExecKernelNodeSetParams_v2(g->exec, g->from.node[i], &p);
        if (err != 0)
            return heddle_cuda_fail(dev, err, "change a kernel of a graph");
        g->is_mixed = true;
    }
    g->is_mixed = false;
    return HEDDLE_OK;
}

static const struct made *graph_now(const struct cuda_graph *g)
{
    return g->now.graph != NULL ? &g->now : &g->from;
}

/* HEDDLE_OK and not *did: all has to be captured. */
static heddle_status steps_try(struct capture *c, struct cuda_graph *g, struct made *m, bool *did)
{
    const struct made *now = graph_now(g);
    const struct heddle_region *r = c->r;
    heddle_status st;
    unsigned i;

    st = capture_run(c, capture_changed, &m->graph);
    if (st == HEDDLE_OK && !c->is_odd && has_nodes(c->dev, m->graph, c->nnodes)) {
        i = next_changed(r, 0);
        while (i < r->n && is_same_kernel(&c->dev->api, now->node[i], m->node[i]))
            i = next_changed(r, i + 1);
        if (i < r->n)
            return HEDDLE_OK;
        st = steps_set(c->dev, g, r, m->node);
        *did = st == HEDDLE_OK;
    }
    return st == HEDDLE_EDEV || c->has_refused ? st : HEDDLE_OK;
}

static heddle_status steps(struct heddle_dev *dev, heddle_cu_stream stream,
                           const struct heddle_region *r, struct cuda_graph *g, bool *did)
{
    struct capture c = {.dev = dev, .r = r, .stream = stream};
    struct made m;
    heddle_status st;

    *did = next_changed(r, 0) == r->n;
    if (*did)
        return HEDDLE_OK;
    HEDDLE_TRY(made_init(dev, &m, r->n));
    c.node = m.node;
    st = steps_try(&c, g, &m, did);
    made_fini(dev, &m);
    return st;
}

/* Few have changed, and each of them was one node. */
static bool are_steps_worth(const struct heddle_dev *dev, const struct heddle_region *r,
                            const struct cuda_graph *g)
{
    const struct made *now = graph_now(g);
    unsigned n = 0, i;

    if (g->exec == NULL || r->changed == NULL || r->n != now->n || !has_steps(&dev->api))
        return false;
    for (i = next_changed(r, 0); i < r->n; i = next_changed(r, i + 1))
        if (++n > r->n / STEP_PART + 1 || now->node[i] == NULL)
            return false;
    return true;
}

/* --- all of it -------------------------------------------------------------------- */

/* Takes `m` over when HEDDLE_OK. */
static heddle_status graph_set(struct heddle_dev *dev, struct cuda_graph *g, const struct made *m,
                               bool is_new)
{
    const struct heddle_cuda_api *api = &dev->api;
    heddle_cu_exec exec = NULL;
    heddle_cu_update update;
    heddle_cu_result err;

    if (g->exec != NULL && !is_new && api->cuGraphExecUpdate_v2 != NULL) {
        memset(&update, 0, sizeof(update));
        err = api->cuGraphExecUpdate_v2(g->exec, m->graph, &update);
        if (err == 0) {
            made_fini(dev, &g->now);
            g->now = *m;
            g->is_sure = made_is_alike(&g->from, m);
            g->is_mixed = false;
            return HEDDLE_OK;
        }
        if (err != HEDDLE_CU_GRAPH_EXEC_UPDATE_FAILURE &&
            heddle_cuda_fail(dev, err, "update a graph") == HEDDLE_EDEV)
            return HEDDLE_EDEV;
    }
    err = api->cuGraphInstantiateWithFlags(&exec, m->graph, 0);
    if (err != 0)
        return heddle_cuda_fail(dev, err, "make a graph");
    if (g->exec != NULL)
        api->cuGraphExecDestroy(g->exec);
    made_fini(dev, &g->from);
    made_fini(dev, &g->now);
    *g = (struct cuda_graph){.exec = exec, .from = *m, .is_sure = has_steps(api)};
    return HEDDLE_OK;
}

static heddle_status graph_make(struct heddle_dev *dev, heddle_cu_stream stream,
                                const struct heddle_region *r, struct cuda_graph *g, bool is_new)
{
    const struct heddle_allocator *a = dev->env.alloc;
    const size_t bytes = ((size_t)r->n + 1) * sizeof(uint32_t);
    struct capture c = {.dev = dev, .r = r, .stream = stream};
    struct made m;
    heddle_status st;

    HEDDLE_TRY(made_init(dev, &m, r->n));
    c.node = m.node;
    c.first = heddle_alloc(a, bytes);
    st = c.first != NULL ? HEDDLE_OK : HEDDLE_ENOMEM;
    if (st == HEDDLE_OK) {
        c.first[0] = 0;
        st = capture_run(&c, capture_all, &m.graph);
    }
    if (st == HEDDLE_OK) {
        made_check(&c, &m);
        st = graph_set(dev, g, &m, is_new);
    }
    if (st != HEDDLE_OK)
        made_fini(dev, &m);
    heddle_free(a, c.first, bytes);
    heddle_free(a, c.leaf, c.leaf_cap * sizeof(*c.leaf));
    heddle_free(a, c.set, c.set_cap * sizeof(*c.set));
    heddle_free(a, c.set_leaf, c.set_leaf_cap * sizeof(*c.set_leaf));
    return st;
}

static heddle_status graph_update(struct heddle_dev *dev, heddle_cu_stream stream,
                                  const struct heddle_region *r, struct cuda_graph *g)
{
    bool did = false, is_new = false;
    heddle_status st = HEDDLE_OK;

    if (are_steps_worth(dev, r, g)) {
        if (g->is_sure)
            st = steps(dev, stream, r, g, &did);
        else
            is_new = ++g->nmissed % MISSES == 0;
    }
    if (st == HEDDLE_OK && !did)
        st = graph_make(dev, stream, r, g, is_new);
    if (st != HEDDLE_OK && g->is_mixed) {
        dev->api.cuGraphExecDestroy(g->exec);
        g->exec = NULL;
        g->is_mixed = false;
    }
    return st;
}

heddle_status heddle_cuda_region(struct heddle_dev *dev, const struct heddle_region *r,
                                 unsigned stream, void **graph_inout)
{
    struct heddle_cuda_queue *q = heddle_cuda_queue_of(dev, stream, HEDDLE_CUDA_IN);
    struct cuda_graph *g = *graph_inout;
    heddle_status st;

    HEDDLE_TRY(heddle_cuda_enter(dev));
    heddle_cuda_gate_wait(q);
    if (g != NULL)
        return graph_update(dev, q->stream, r, g);
    g = heddle_zalloc(dev->env.alloc, 1, sizeof(*g));
    if (g == NULL)
        return HEDDLE_ENOMEM;
    st = graph_make(dev, q->stream, r, g, true);
    if (st != HEDDLE_OK)
        heddle_free(dev->env.alloc, g, sizeof(*g));
    else
        *graph_inout = g;
    return st;
}

/* Neither what it was nor what it was to be. */
static heddle_status graph_refuse(struct heddle_dev *dev)
{
    struct heddle_text t;

    heddle_text_init(&t, dev->why, sizeof(dev->why));
    heddle_text_add(&t, "%s: cannot launch a graph that could not be updated", dev->base.info.name);
    return HEDDLE_EDECLINED;
}

heddle_status heddle_cuda_replay(struct heddle_dev *dev, void *graph, unsigned stream,
                                 struct heddle_op *op)
{
    struct heddle_cuda_queue *q = heddle_cuda_queue_of(dev, stream, HEDDLE_CUDA_IN);
    const struct cuda_graph *g = graph;
    struct heddle_cuda_note *n;
    heddle_cu_result err;

    HEDDLE_TRY(heddle_cuda_enter(dev));
    if (g->exec == NULL)
        return graph_refuse(dev);
    HEDDLE_TRY(heddle_cuda_prepare(q));
    n = heddle_cuda_note_get(dev);
    if (n == NULL)
        return HEDDLE_ENOMEM;
    heddle_cuda_note_begin(q, n);
    err = dev->api.cuGraphLaunch(g->exec, q->stream);
    if (err != 0) {
        heddle_cuda_note_put(dev, n);
        return heddle_cuda_fail(dev, err, "launch a graph");
    }
    heddle_cuda_note_end(q, n);
    heddle_cuda_join(q, op, n);
    return HEDDLE_OK;
}

void heddle_cuda_region_free(struct heddle_dev *dev, void *graph)
{
    struct cuda_graph *g = graph;

    if (g == NULL)
        return;
    if (heddle_cuda_set_current(dev) != 0) {
        g->exec = NULL; /* with its context */
        g->from.graph = g->now.graph = NULL;
    }
    if (g->exec != NULL)
        dev->api.cuGraphExecDestroy(g->exec);
    made_fini(dev, &g->from);
    made_fini(dev, &g->now);
    heddle_free(dev->env.alloc, g, sizeof(*g));
}
