/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/cuda/launch: what a task on the GPU costs, and a recorded one.
 *
 * launch     empty kernels, one per task, until heddle_wait(); without data, and
 *            in 64 chains over as many handles that stay on the device. Raw: as
 *            many cuLaunchKernel() on one stream, then cuStreamSynchronize().
 * graph      1000 kernels in 64 chains, recorded once, launched 200 times; with
 *            the same arguments, and with one that changes from launch to launch.
 *            Raw: the same chains captured into a CUDA graph. Every kernel adds to
 *            its handle, so the sums tell whether all of them ran, in order.
 */
#include <stdlib.h>

#include "base/rng.h"
#include "bench/cuda/cuda.h"

enum { HANDLES = 64, DOUBLES = 8, KERNELS = 1000 };

struct chains {
    heddle_ctx *ctx;
    heddle_handle **h; /* HANDLES, of DOUBLES each, the runtime's */
    uint16_t *pick;    /* handle of each task; NULL: they have none */
    size_t ntasks;
};

static heddle_status chains_open(struct cuda_bench *b, struct chains *s)
{
    const struct heddle_ctx_opts o = cuda_ctx_opts(b);
    heddle_status st = heddle_ctx_create(&o, &s->ctx);

    s->h = calloc(HANDLES, sizeof(heddle_handle *));
    if (st == HEDDLE_OK && s->h == NULL)
        st = HEDDLE_ENOMEM;
    for (unsigned i = 0; i < HANDLES && st == HEDDLE_OK; i++)
        st = heddle_handle_vector(s->ctx, NULL, DOUBLES, HEDDLE_F64, &s->h[i]);
    return st;
}

static heddle_status chains_close(struct chains *s)
{
    cuda_drop(s->h, HANDLES);
    free(s->pick);
    return heddle_ctx_destroy(s->ctx);
}

/* --- launch -------------------------------------------------------------- */

static heddle_status launch_heddle(struct chains *s, double *ns_out)
{
    const uint64_t start = heddle_clock_ns();
    heddle_status st = HEDDLE_OK, waited;

    for (size_t i = 0; i < s->ntasks && st == HEDDLE_OK; i++) {
        struct heddle_call call = {0};

        if (s->pick != NULL)
            call.operand[0] = s->h[s->pick[i]];
        st = heddle_submit(s->ctx, s->pick != NULL ? &bench_kernel_empty_rw : &bench_kernel_empty,
                           &call);
    }
    waited = heddle_wait(s->ctx);
    *ns_out = cuda_ns_since(start);
    return st != HEDDLE_OK ? st : waited;
}

static int launch_raw(struct cuda_bench *b, cuda_raw_function f, size_t n, double *ns_out)
{
    struct cuda_raw *r = &b->raw;
    uint64_t start;
    int code = 0, waited;

    cuda_raw_use(r);
    start = heddle_clock_ns();
    for (size_t i = 0; i < n && code == 0; i++)
        code = r->launch(f, 1, 1, 1, 1, 1, 1, 0, r->stream, NULL, NULL);
    waited = r->stream_sync(r->stream);
    *ns_out = cuda_ns_since(start);
    return code != 0 ? code : waited;
}

static int launch_rounds(struct cuda_bench *b, struct chains *s, cuda_raw_function f,
                         struct bench_case *k)
{
    for (size_t r = 0; r < b->rounds + 1; r++) {
        double raw = 0, own = 0;
        const int code = launch_raw(b, f, s->ntasks, &raw);
        heddle_status st;

        if (code != 0)
            return cuda_raw_fail(b, "the loop of launches fails", code);
        st = launch_heddle(s, &own);
        if (st != HEDDLE_OK)
            return cuda_fail(b, "empty tasks fail", s->ctx, st);
        if (r == 0)
            continue; /* warms up */
        k->raw[r - 1] = raw / (double)s->ntasks / 1e3;
        k->heddle[r - 1] = own / (double)s->ntasks / 1e3;
    }
    k->n = b->rounds;
    return cuda_report(b, k);
}

static int launch_case(struct cuda_bench *b, bool has_chains)
{
    struct chains s = {.ntasks = cuda_scaled(b, b->is_quick ? 5000 : 20000, 100)};
    struct bench_case k = {.part = "launch",
                           .name = has_chains ? "chains" : "independent",
                           .unit = "us/task",
                           .rule = BENCH_RATIO_AT_MOST,
                           .must = 1.4,
                           .aim = 1.1};
    const cuda_raw_function f =
        cuda_raw_kernel(&b->raw, bench_cuda_image("bench_empty"), "bench_empty");
    heddle_status st = chains_open(b, &s), closed;
    struct heddle_rng rng;
    int rc;

    if (has_chains && st == HEDDLE_OK) {
        s.pick = calloc(s.ntasks, sizeof(*s.pick));
        st = s.pick == NULL ? HEDDLE_ENOMEM : HEDDLE_OK;
    }
    heddle_rng_seed(&rng, 1);
    for (size_t i = 0; s.pick != NULL && i < s.ntasks; i++)
        s.pick[i] = (uint16_t)(heddle_rng_next(&rng) % HANDLES);
    if (f == NULL)
        rc = cli_fail(b->c, "%s", b->raw.why);
    else if (st != HEDDLE_OK)
        rc = cuda_fail(b, "the empty tasks cannot begin", s.ctx, st);
    else
        rc = launch_rounds(b, &s, f, &k);
    closed = chains_close(&s);
    return rc == 0 && closed != HEDDLE_OK ? cuda_fail(b, "the context ended with", NULL, closed)
                                          : rc;
}

int bench_cuda_launch(struct cuda_bench *b)
{
    const int rc = launch_case(b, false);

    return rc != 0 ? rc : launch_case(b, true);
}

/* --- graph: without Heddle ----------------------------------------------- */

struct raw_graph {
    cuda_raw_function f;
    cuda_raw_ptr data;
    cuda_raw_graph graph; /* stays: its nodes are used */
    cuda_raw_exec exec;
    cuda_raw_node node[KERNELS];
};

static int raw_put(struct cuda_raw *r, const struct raw_graph *g, unsigned i, uint32_t v)
{
    cuda_raw_ptr p = g->data + (i % HANDLES) * DOUBLES * sizeof(double);
    void *args[] = {&p, &v};

    return r->launch(g->f, 1, 1, 1, 1, 1, 1, 0, r->stream, args, NULL);
}

/* Each launch behind the previous one of its chain; the end behind all. */
static int raw_capture(struct cuda_raw *r, struct raw_graph *g)
{
    cuda_raw_node last[HANDLES] = {NULL};
    int code = 0;

    for (unsigned i = 0; i < KERNELS && code == 0; i++) {
        const unsigned c = i % HANDLES;
        const cuda_raw_node *leaves = NULL;
        size_t n = 0;
        uint64_t id;
        int status;

        code = r->capture_after(r->stream, &last[c], last[c] != NULL, CUDA_RAW_SET_DEPENDENCIES);
        if (code == 0)
            code = raw_put(r, g, i, 1);
        if (code == 0)
            code = r->capture_info(r->stream, &status, &id, NULL, &leaves, &n);
        if (code == 0 && n > 0)
            g->node[i] = last[c] = leaves[0];
    }
    return code != 0 ? code : r->capture_after(r->stream, last, HANDLES, CUDA_RAW_SET_DEPENDENCIES);
}

static int raw_open(struct cuda_raw *r, struct raw_graph *g)
{
    const size_t bytes = HANDLES * DOUBLES * sizeof(double);
    int code, ended;

    cuda_raw_use(r);
    code = r->mem_alloc(&g->data, bytes);

    g->f = cuda_raw_kernel(r, bench_cuda_image("bench_step"), "bench_step");
    if (g->f == NULL)
        return 500;
    if (code == 0)
        code = r->begin_capture(r->stream, CUDA_RAW_CAPTURE_RELAXED);
    if (code != 0)
        return code;
    code = raw_capture(r, g);
    ended = r->end_capture(r->stream, &g->graph);
    code = code != 0 ? code : ended;
    if (code == 0)
        code = r->graph_instantiate(&g->exec, g->graph, 0);
    return code;
}

static void raw_close(struct cuda_raw *r, struct raw_graph *g)
{
    cuda_raw_use(r);
    if (g->exec != NULL)
        r->exec_destroy(g->exec);
    if (g->graph != NULL)
        r->graph_destroy(g->graph);
    if (g->data != 0)
        r->mem_free(g->data);
}

static int raw_change(struct cuda_raw *r, struct raw_graph *g, unsigned i, uint32_t v)
{
    cuda_raw_ptr p = g->data + (i % HANDLES) * DOUBLES * sizeof(double);
    void *args[] = {&p, &v};
    const struct cuda_raw_params params = {
        .function = g->f, .grid = {1, 1, 1}, .block = {1, 1, 1}, .args = args};

    return r->set_params == NULL || g->node[i] == NULL
               ? 0
               : r->set_params(g->exec, g->node[i], &params);
}

/* One argument is another in each launch: set it, and the last one back. */
static int graph_raw(struct cuda_raw *r, struct raw_graph *g, unsigned launches, bool changes,
                     double *ns_out)
{
    uint64_t start;
    int code = 0, waited;

    cuda_raw_use(r);
    start = heddle_clock_ns();
    for (unsigned i = 0; i < launches && code == 0; i++) {
        if (changes)
            code = raw_change(r, g, (i + launches - 1) % launches % KERNELS, 1);
        if (changes && code == 0)
            code = raw_change(r, g, i % KERNELS, 2);
        if (code == 0)
            code = r->graph_launch(g->exec, r->stream);
    }
    waited = r->stream_sync(r->stream);
    *ns_out = cuda_ns_since(start);
    return code != 0 ? code : waited;
}

/* --- graph: with it ------------------------------------------------------ */

static heddle_status graph_record(struct chains *s, heddle_graph **g_out)
{
    const uint32_t one = 1;
    heddle_status st = heddle_graph_begin(s->ctx, g_out);

    for (unsigned i = 0; i < KERNELS && st == HEDDLE_OK; i++)
        st = heddle_graph_submit(*g_out, &bench_kernel_step,
                                 &(struct heddle_call){.operand = {s->h[i % HANDLES]},
                                                       .arg = &one,
                                                       .arg_bytes = sizeof(one)});
    return st == HEDDLE_OK ? heddle_graph_end(*g_out) : st;
}

static heddle_status graph_heddle(struct chains *s, heddle_graph *g, unsigned launches,
                                  bool changes, double *ns_out)
{
    const uint32_t two = 2;
    const uint64_t start = heddle_clock_ns();
    heddle_status st = HEDDLE_OK, waited;

    for (unsigned i = 0; i < launches && st == HEDDLE_OK; i++) {
        const struct heddle_graph_arg arg = {i % KERNELS, &two, sizeof(two)};
        const struct heddle_launch l = {.size = sizeof(l), .arg = &arg, .nargs = changes};

        st = heddle_graph_launch(g, &l);
    }
    waited = heddle_wait(s->ctx);
    *ns_out = cuda_ns_since(start);
    return st != HEDDLE_OK ? st : waited;
}

/* The sums after some passes of the launches, each with a 2 for a 1. */
static int graph_check(struct cuda_bench *b, struct chains *s, unsigned passes, unsigned launches,
                       bool changes)
{
    for (unsigned c = 0; c < HANDLES; c++) {
        const unsigned mine = (KERNELS - c + HANDLES - 1) / HANDLES;
        double want = (double)mine * passes * launches;
        void *p = NULL;
        heddle_status st = heddle_handle_acquire(s->h[c], HEDDLE_R, &p);
        double got;

        if (st != HEDDLE_OK)
            return cuda_fail(b, "a sum cannot be read", s->ctx, st);
        got = *(const double *)p;
        st = heddle_handle_release(s->h[c]);
        for (unsigned i = 0; i < launches && changes; i++)
            want += i % KERNELS % HANDLES == c ? passes : 0;
        if (got != want)
            return cli_fail(b->c,
                            "the recorded region computed %.0f instead of "
                            "%.0f in handle %u",
                            got, want, c);
    }
    return 0;
}

static int graph_rounds(struct cuda_bench *b, struct chains *s, heddle_graph *g,
                        struct raw_graph *raw, bool changes)
{
    const unsigned launches = (unsigned)cuda_scaled(b, b->is_quick ? 50 : 200, 5);
    struct bench_case k = {.part = "graph",
                           .name = changes ? "changed argument" : "as recorded",
                           .unit = "us/kernel",
                           .rule = BENCH_VALUE_AT_MOST,
                           .must = 1.2,
                           .aim = 0.8,
                           .n = b->rounds};
    int rc;

    for (size_t r = 0; r < b->rounds + 1; r++) {
        double ns[2] = {0, 0};
        const int code = graph_raw(&b->raw, raw, launches, changes, &ns[0]);
        heddle_status st;

        if (code != 0)
            return cuda_raw_fail(b, "the CUDA graph fails", code);
        st = graph_heddle(s, g, launches, changes, &ns[1]);
        if (st != HEDDLE_OK)
            return cuda_fail(b, "the recorded region fails", s->ctx, st);
        if (r == 0)
            continue; /* makes the graph */
        k.raw[r - 1] = ns[0] / launches / KERNELS / 1e3;
        k.heddle[r - 1] = ns[1] / launches / KERNELS / 1e3;
    }
    rc = graph_check(b, s, (unsigned)b->rounds + 1, launches, changes);
    return rc == 0 ? cuda_report(b, &k) : rc;
}

static int graph_case(struct cuda_bench *b, bool changes)
{
    struct chains s = {0};
    struct raw_graph raw = {0};
    heddle_graph *g = NULL;
    const int code = raw_open(&b->raw, &raw);
    heddle_status st = chains_open(b, &s), closed;
    int rc;

    if (st == HEDDLE_OK)
        st = graph_record(&s, &g);
    if (code != 0)
        rc = cuda_raw_fail(b, "the CUDA graph cannot be made", code);
    else if (st != HEDDLE_OK)
        rc = cuda_fail(b, "the region cannot be recorded", s.ctx, st);
    else
        rc = graph_rounds(b, &s, g, &raw, changes);
    heddle_graph_unref(g);
    raw_close(&b->raw, &raw);
    closed = chains_close(&s);
    return rc == 0 && closed != HEDDLE_OK ? cuda_fail(b, "the context ended with", NULL, closed)
                                          : rc;
}

int bench_cuda_graph(struct cuda_bench *b)
{
    const int rc = graph_case(b, false);

    return rc != 0 ? rc : graph_case(b, true);
}
