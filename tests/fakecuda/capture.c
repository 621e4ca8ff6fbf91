/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * capture: work of a stream that is noted down as nodes of a graph.
 *
 * Structure  a capture belongs to the stream it began on; a stream that waits for
 *            an event recorded in it joins. Each stream has the set of nodes that
 *            the next one will depend on.
 * Invariant  a call that CUDA does not allow spoils the capture: all that follows
 *            answers 901 until it is ended.
 * Threads    any; one lock for all captures.
 */
#include "fakecuda.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum mode { GLOBAL, THREAD_LOCAL, RELAXED };
enum status { NONE, ACTIVE, SPOILT };

struct fc_capture {
    struct fc_capture *next;
    uint64_t id;
    enum mode mode;
    long thread;
    bool is_bad;
    CUgraph graph;
    CUstream origin;
    CUstream *member; /* with origin */
    size_t nmembers;
};

static struct fc_lock lock;
static struct fc_capture *captures;
static uint64_t last_id;
static _Thread_local enum mode thread_mode; /* CUDA begins with GLOBAL */

static long me(void)
{
    return syscall(SYS_gettid);
}

static struct fc_capture *capture_find(uint64_t id)
{
    struct fc_capture *c = captures;

    while (c != NULL && c->id != id)
        c = c->next;
    return c;
}

static void capture_join(struct fc_capture *c, CUstream s)
{
    CUstream *more = realloc(c->member, (c->nmembers + 1) * sizeof(*more));

    if (more == NULL)
        abort();
    c->member = more;
    c->member[c->nmembers++] = s;
    s->capture = c;
}

static void stream_leave(CUstream s)
{
    s->capture = NULL;
    fc_set_fini(&s->deps);
}

/* The graph is the caller's. */
static void capture_end(struct fc_capture *c)
{
    struct fc_capture **at = &captures;

    for (size_t i = 0; i < c->nmembers; i++)
        stream_leave(c->member[i]);
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    free(c->member);
    free(c);
}

static CUresult spoil(struct fc_capture *c, CUresult r)
{
    if (c->is_bad)
        return FC_EINVALIDATED;
    c->is_bad = true;
    return r;
}

/* --- what others ask ----------------------------------------------------- */

CUresult fc_capture_unsafe(void)
{
    CUresult r = FC_OK;

    if (thread_mode == RELAXED)
        return FC_OK;
    fc_lock(&lock);
    for (struct fc_capture *c = captures; c != NULL; c = c->next) {
        const bool is_mine = c->thread == me();

        if (c->mode == RELAXED || (!is_mine && (c->mode != GLOBAL || thread_mode != GLOBAL)))
            continue;
        c->is_bad = true;
        r = FC_ECAPTURE;
    }
    fc_unlock(&lock);
    return r;
}

CUresult fakecuda_unsafe(void)
{
    return fc_capture_unsafe();
}

/* The stream 0 would wait for streams that do nothing. */
static CUresult check_legacy(CUstream s)
{
    if (s != s->obj.ctx->null)
        return FC_OK;
    for (struct fc_capture *c = captures; c != NULL; c = c->next)
        for (size_t i = 0; i < c->nmembers; i++)
            if (c->member[i]->is_blocking && c->member[i]->obj.ctx == s->obj.ctx)
                return spoil(c, FC_EIMPLICIT);
    return FC_OK;
}

CUresult fc_capture_work(CUstream s, struct fc_work *w, bool *taken)
{
    struct fc_capture *c;
    CUresult r = FC_OK;
    CUgraphNode node;

    fc_lock(&lock);
    c = s->capture;
    *taken = c != NULL;
    if (c == NULL) {
        r = check_legacy(s);
    } else if (c->is_bad) {
        r = FC_EINVALIDATED;
    } else {
        node = fc_graph_add(c->graph, w, &s->deps);
        fc_set_fini(&s->deps);
        fc_set_init(&s->deps, &node, 1);
    }
    fc_unlock(&lock);
    if (r != FC_OK)
        fc_work_fini(w);
    return r;
}

CUresult fc_capture_refuse(CUstream s)
{
    CUresult r;

    fc_lock(&lock);
    r = s->capture != NULL ? spoil(s->capture, FC_ECAPTURE) : FC_OK;
    fc_unlock(&lock);
    return r;
}

/* --- events -------------------------------------------------------------- */

CUresult fc_capture_record(CUstream s, CUevent e, bool *taken)
{
    struct fc_capture *c;
    CUresult r = FC_OK;

    fc_lock(&lock);
    c = s->capture;
    *taken = c != NULL;
    if (c != NULL && c->is_bad) {
        r = FC_EINVALIDATED;
    } else {
        e->capture_id = c != NULL ? c->id : 0;
        fc_set_fini(&e->deps);
        fc_set_init(&e->deps, s->deps.v, s->deps.n);
    }
    fc_unlock(&lock);
    return r;
}

static CUresult wait_captured(CUstream s, CUevent e)
{
    struct fc_capture *c = capture_find(e->capture_id);

    if (c == NULL)
        return s->capture != NULL ? spoil(s->capture, FC_EISOLATION) : FC_ECAPTURED_EVENT;
    if (c->is_bad)
        return FC_EINVALIDATED;
    if (s == s->obj.ctx->null)
        return spoil(c, FC_EIMPLICIT);
    if (s->capture == NULL)
        capture_join(c, s);
    if (s->capture != c) {
        s->capture->is_bad = true;
        return spoil(c, FC_EMERGE);
    }
    fc_set_add(&s->deps, e->deps.v, e->deps.n);
    return FC_OK;
}

CUresult fc_capture_wait(CUstream s, CUevent e, bool *taken)
{
    CUresult r = FC_OK;

    fc_lock(&lock);
    *taken = true;
    if (e->capture_id != 0)
        r = wait_captured(s, e);
    else if (s->capture != NULL && e->mark != NULL)
        r = spoil(s->capture, FC_EISOLATION);
    else
        *taken = s->capture != NULL; /* never recorded: nothing to wait for */
    fc_unlock(&lock);
    return r;
}

CUresult fc_capture_event(CUevent e)
{
    CUresult r = FC_OK;

    fc_lock(&lock);
    if (e->capture_id != 0) {
        struct fc_capture *c = capture_find(e->capture_id);

        if (c != NULL)
            c->is_bad = true;
        r = FC_ECAPTURED_EVENT;
    }
    fc_unlock(&lock);
    return r;
}

void fc_capture_forget_event(CUevent e)
{
    fc_lock(&lock);
    fc_set_fini(&e->deps);
    fc_unlock(&lock);
}

void fc_capture_forget_stream(CUstream s)
{
    struct fc_capture *c;

    fc_lock(&lock);
    c = s->capture;
    if (c != NULL && c->origin == s) {
        fc_graph_close(c->graph);
        capture_end(c);
    } else if (c != NULL) {
        c->is_bad = true;
        for (size_t i = 0; i < c->nmembers; i++)
            if (c->member[i] == s)
                c->member[i] = c->member[--c->nmembers];
        stream_leave(s);
    }
    fc_unlock(&lock);
}

/* --- the API ------------------------------------------------------------- */

CU(cuThreadExchangeStreamCaptureMode, unsigned *mode)
{
    const enum mode old = thread_mode;

    if (*mode > RELAXED)
        return FC_EVALUE;
    thread_mode = (enum mode) * mode;
    *mode = old;
    return FC_OK;
}

CU(cuStreamBeginCapture_v2, CUstream h, unsigned mode)
{
    struct fc_capture *c;
    CUcontext ctx;
    CUstream s;
    CUresult r = fc_stream_of(h, &ctx, &s);

    if (r == FC_OK)
        r = fc_fail(ctx, FC_FAIL_GRAPH);
    if (r != FC_OK)
        return r;
    if (mode > RELAXED)
        return FC_EVALUE;
    if (s == s->obj.ctx->null)
        return FC_ECAPTURE;
    fc_lock(&lock);
    if (s->capture == NULL) {
        c = fc_new(sizeof(*c));
        c->id = ++last_id;
        c->mode = mode;
        c->thread = me();
        c->graph = fc_graph_new();
        c->origin = s;
        c->next = captures;
        captures = c;
        capture_join(c, s);
    } else {
        r = FC_ESTATE;
    }
    fc_unlock(&lock);
    return r;
}

static CUresult end_check(const struct fc_capture *c, CUstream s)
{
    if (c->is_bad)
        return FC_EINVALIDATED;
    for (size_t i = 0; i < c->nmembers; i++)
        if (c->member[i] != s && !fc_set_covers(&s->deps, &c->member[i]->deps))
            return FC_EUNJOINED;
    return FC_OK;
}

CU(cuStreamEndCapture, CUstream h, CUgraph *graph_out)
{
    struct fc_capture *c;
    CUgraph g = NULL;
    CUcontext ctx;
    CUstream s;
    CUresult r = fc_stream_of(h, &ctx, &s);

    if (r != FC_OK)
        return r;
    *graph_out = NULL;
    fc_lock(&lock);
    c = s->capture;
    if (c == NULL) {
        r = FC_ESTATE;
    } else if (c->origin != s) {
        c->is_bad = true;
        r = FC_EUNMATCHED;
    } else if (c->mode != RELAXED && c->thread != me()) {
        r = FC_EWRONG_THREAD;
    } else {
        r = end_check(c, s);
        g = c->graph;
        capture_end(c);
    }
    fc_unlock(&lock);
    if (g != NULL && r == FC_OK) {
        fc_graph_publish(g, s->obj.ctx);
        *graph_out = g;
    } else if (g != NULL) {
        fc_graph_close(g);
    }
    return r;
}

CU(cuStreamIsCapturing, CUstream h, unsigned *status_out)
{
    CUcontext ctx;
    CUstream s;
    const CUresult r = fc_stream_of(h, &ctx, &s);

    if (r != FC_OK)
        return r;
    fc_lock(&lock);
    *status_out = s->capture == NULL ? NONE : s->capture->is_bad ? SPOILT : ACTIVE;
    fc_unlock(&lock);
    return FC_OK;
}

CU(cuStreamGetCaptureInfo_v2, CUstream h, unsigned *status_out, uint64_t *id_out,
   CUgraph *graph_out, const CUgraphNode **deps_out, size_t *ndeps_out)
{
    const CUresult r = cuStreamIsCapturing(h, status_out);
    CUstream s = h;

    if (r != FC_OK || *status_out != ACTIVE)
        return r;
    fc_lock(&lock);
    if (id_out != NULL)
        *id_out = s->capture->id;
    if (graph_out != NULL)
        *graph_out = s->capture->graph;
    if (deps_out != NULL)
        *deps_out = s->deps.v;
    if (ndeps_out != NULL)
        *ndeps_out = s->deps.n;
    fc_unlock(&lock);
    return FC_OK;
}

CU(cuStreamGetCaptureInfo_v3, CUstream h, unsigned *status_out, uint64_t *id_out,
   CUgraph *graph_out, const CUgraphNode **deps_out, const void **edges_out, size_t *ndeps_out)
{
    if (edges_out != NULL)
        *edges_out = NULL;
    return cuStreamGetCaptureInfo_v2(h, status_out, id_out, graph_out, deps_out, ndeps_out);
}

/* Is one of them named twice? */
static bool has_twins(const CUgraphNode *v, size_t n)
{
    struct fc_node_set set;
    size_t left;

    fc_set_init(&set, v, n);
    left = set.n;
    fc_set_fini(&set);
    return left != n;
}

CU(cuStreamUpdateCaptureDependencies, CUstream h, CUgraphNode *deps, size_t n, unsigned flags)
{
    enum { ADD, SET };
    struct fc_capture *c;
    CUcontext ctx;
    CUstream s;
    CUresult r = fc_stream_of(h, &ctx, &s);

    if (r != FC_OK)
        return r;
    if (flags > SET)
        return FC_EVALUE;
    fc_lock(&lock);
    c = s->capture;
    if (c == NULL)
        r = FC_ESTATE;
    else if (c->is_bad)
        r = FC_EINVALIDATED;
    for (size_t i = 0; r == FC_OK && i < n; i++)
        if (deps[i] == NULL || deps[i]->graph != c->graph)
            r = FC_EVALUE;
    if (r == FC_OK && has_twins(deps, n))
        r = FC_EVALUE;
    if (r == FC_OK) {
        struct fc_node_set set = {0}; /* deps may be the old set itself */

        if (flags == ADD)
            fc_set_init(&set, s->deps.v, s->deps.n);
        fc_set_add(&set, deps, n);
        fc_set_fini(&s->deps);
        s->deps = set;
    }
    fc_unlock(&lock);
    return r;
}

CU(cuStreamUpdateCaptureDependencies_v2, CUstream h, CUgraphNode *deps, const void *edges, size_t n,
   unsigned flags)
{
    return edges != NULL ? FC_ENOTSUPPORTED : cuStreamUpdateCaptureDependencies(h, deps, n, flags);
}
