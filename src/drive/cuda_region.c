/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuda_region: recorded regions as CUDA graphs.
 *
 * Structure  the stream is captured while each launch is put on it. Before a launch
 *            the stream is told that its next node depends on the last nodes of the
 *            launch's predecessors and on nothing else; after it, what the next
 *            node would depend on are the launch's own last nodes. A launch that
 *            puts nothing there so passes on those of its predecessors.
 *            An existing graph is brought up to date, which is cheaper than a new
 *            one; when CUDA refuses, because its shape differs, a new one is made.
 * Invariants (1) the stream is not being captured when region() returns
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "drive/cuda_dev.h"

#define FEW 32 /* nodes that are compared with each other */

struct capture {
    struct heddle_dev *dev;
    const struct heddle_region *r;
    heddle_cu_stream stream;
    uint32_t *leaf_first; /* n + 1: the last nodes of launch i */
    heddle_cu_node *leaf;
    size_t nleaves, cap;
    heddle_cu_node *set; /* what the next launch depends on */
    size_t nset, set_cap;
};

static heddle_status nodes_reserve(struct capture *c, heddle_cu_node **nodes,
                                   size_t *cap, size_t want)
{
    const struct heddle_allocator *a = c->dev->env.alloc;
    size_t more = *cap != 0 ? *cap : 64;
    heddle_cu_node *p;

    if (want <= *cap)
        return HEDDLE_OK;
    while (more < want)
        more *= 2;
    p = heddle_alloc(a, more * sizeof(*p));
    if (p == NULL)
        return HEDDLE_ENOMEM;
    if (*cap != 0)
        memcpy(p, *nodes, *cap * sizeof(*p));
    heddle_free(a, *nodes, *cap * sizeof(*p));
    *nodes = p;
    *cap = more;
    return HEDDLE_OK;
}

static int node_compare(const void *a, const void *b)
{
    const uintptr_t x = (uintptr_t) * (const heddle_cu_node *)a;
    const uintptr_t y = (uintptr_t) * (const heddle_cu_node *)b;

    return (x > y) - (x < y);
}

/* A node must not be named twice. */
static size_t nodes_unique(heddle_cu_node *node, size_t n)
{
    size_t k = 0;

    if (n > FEW)
        qsort(node, n, sizeof(*node), node_compare);
    for (size_t i = 0; i < n; i++) {
        size_t j = n > FEW && k > 0 ? k - 1 : 0;

        while (j < k && node[j] != node[i])
            j++;
        if (j == k)
            node[k++] = node[i];
    }
    return k;
}

static heddle_status capture_set(struct capture *c, unsigned i)
{
    const struct heddle_region *r = c->r;
    heddle_cu_result err;

    c->nset = 0;
    for (uint32_t k = r->first[i]; k < r->first[i + 1]; k++) {
        const uint32_t p = r->pred[k];
        const size_t n = c->leaf_first[p + 1] - c->leaf_first[p];

        HEDDLE_ASSERT(p < i);
        HEDDLE_TRY(nodes_reserve(c, &c->set, &c->set_cap, c->nset + n));
        if (n != 0)
            memcpy(c->set + c->nset, c->leaf + c->leaf_first[p],
                   n * sizeof(*c->set));
        c->nset += n;
    }
    c->nset = nodes_unique(c->set, c->nset);
    err = c->dev->api.cuStreamUpdateCaptureDependencies(
        c->stream, c->set, c->nset, HEDDLE_CU_SET_DEPENDENCIES);
    if (err != 0)
        return heddle_cuda_fail(c->dev, err, "order what is captured");
    return HEDDLE_OK;
}

static heddle_status capture_leaves(struct capture *c, unsigned i)
{
    heddle_cu_enum state = HEDDLE_CU_CAPTURE_NONE;
    const heddle_cu_node *leaf = NULL;
    size_t n = 0;
    heddle_cu_result err;

    err = c->dev->api.cuStreamGetCaptureInfo_v2(c->stream, &state, NULL, NULL,
                                                &leaf, &n);
    if (err == 0 && state != HEDDLE_CU_CAPTURE_ACTIVE)
        err = HEDDLE_CU_STREAM_CAPTURE_INVALIDATED;
    if (err != 0)
        return heddle_cuda_fail(c->dev, err, "capture a launch");
    HEDDLE_TRY(nodes_reserve(c, &c->leaf, &c->cap, c->nleaves + n));
    if (n != 0)
        memcpy(c->leaf + c->nleaves, leaf, n * sizeof(*leaf));
    c->nleaves += n;
    c->leaf_first[i + 1] = (uint32_t)c->nleaves;
    return HEDDLE_OK;
}

static heddle_status capture_all(struct capture *c)
{
    for (unsigned i = 0; i < c->r->n; i++) {
        HEDDLE_TRY(capture_set(c, i));
        HEDDLE_TRY(c->r->put(c->r->user, i));
        HEDDLE_TRY(capture_leaves(c, i));
    }
    return HEDDLE_OK;
}

/* *graph_out: NULL unless HEDDLE_OK. */
static heddle_status capture_run(struct capture *c, heddle_cu_graph *graph_out)
{
    struct heddle_dev *dev = c->dev;
    heddle_cu_graph graph = NULL;
    heddle_cu_result err;
    heddle_status st;

    *graph_out = NULL;
    err = dev->api.cuStreamBeginCapture_v2(c->stream,
                                           HEDDLE_CU_CAPTURE_THREAD_LOCAL);
    if (err != 0)
        return heddle_cuda_fail(dev, err, "capture a stream");
    dev->is_capturing = true;
    st = capture_all(c);
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

static heddle_status region_exec(struct heddle_dev *dev, heddle_cu_graph graph,
                                 void **graph_inout)
{
    const struct heddle_cuda_api *api = &dev->api;
    heddle_cu_exec old = *graph_inout, exec = NULL;
    heddle_cu_update update;
    heddle_cu_result err;

    if (old != NULL && api->cuGraphExecUpdate_v2 != NULL) {
        memset(&update, 0, sizeof(update));
        err = api->cuGraphExecUpdate_v2(old, graph, &update);
        if (err == 0)
            return HEDDLE_OK;
        if (err != HEDDLE_CU_GRAPH_EXEC_UPDATE_FAILURE &&
            heddle_cuda_fail(dev, err, "update a graph") == HEDDLE_EDEV)
            return HEDDLE_EDEV;
    }
    err = api->cuGraphInstantiateWithFlags(&exec, graph, 0);
    if (err != 0)
        return heddle_cuda_fail(dev, err, "make a graph");
    if (old != NULL)
        api->cuGraphExecDestroy(old);
    *graph_inout = exec;
    return HEDDLE_OK;
}

heddle_status heddle_cuda_region(struct heddle_dev *dev,
                                 const struct heddle_region *r, unsigned stream,
                                 void **graph_inout)
{
    struct heddle_cuda_queue *q =
        heddle_cuda_queue_of(dev, stream, HEDDLE_CUDA_IN);
    const struct heddle_allocator *a = dev->env.alloc;
    const size_t bytes = ((size_t)r->n + 1) * sizeof(uint32_t);
    struct capture c = {.dev = dev, .r = r, .stream = q->stream};
    heddle_cu_graph graph;
    heddle_status st;

    HEDDLE_TRY(heddle_cuda_enter(dev));
    heddle_cuda_gate_wait(q);
    c.leaf_first = heddle_alloc(a, bytes);
    if (c.leaf_first == NULL)
        return HEDDLE_ENOMEM;
    c.leaf_first[0] = 0;
    st = capture_run(&c, &graph);
    if (st == HEDDLE_OK) {
        st = region_exec(dev, graph, graph_inout);
        dev->api.cuGraphDestroy(graph);
    }
    heddle_free(a, c.leaf_first, bytes);
    heddle_free(a, c.leaf, c.cap * sizeof(*c.leaf));
    heddle_free(a, c.set, c.set_cap * sizeof(*c.set));
    return st;
}

heddle_status heddle_cuda_replay(struct heddle_dev *dev, void *graph,
                                 unsigned stream, struct heddle_op *op)
{
    struct heddle_cuda_queue *q =
        heddle_cuda_queue_of(dev, stream, HEDDLE_CUDA_IN);
    struct heddle_cuda_note *n;
    heddle_cu_result err;

    HEDDLE_TRY(heddle_cuda_enter(dev));
    HEDDLE_TRY(heddle_cuda_prepare(q));
    n = heddle_cuda_note_get(dev);
    if (n == NULL)
        return HEDDLE_ENOMEM;
    heddle_cuda_note_begin(q, n);
    err = dev->api.cuGraphLaunch(graph, q->stream);
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
    if (graph == NULL)
        return;
    if (heddle_cuda_set_current(dev) == 0)
        dev->api.cuGraphExecDestroy(graph);
}
