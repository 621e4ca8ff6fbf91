/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/stream: the task streams of the benchmarks.
 *
 * Purpose    the same streams as the programs in bench/peers, submitted to a
 *            context through the public interface.
 * Invariants (1) everything is drawn, and the graph recorded, before the clock
 *                starts
 *            (2) the operands of a task are distinct
 *            (3) a run reuses one struct heddle_call: what a program does in a
 *                loop
 */
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "bench/bench.h"

const char *const heddle_stream_names[STREAM_NSHAPES + 1] = {"independent", "chain",  "random",
                                                             "cholesky",    "replay", NULL};

/* --- kernels -------------------------------------------------------------- */

enum { KIND_NONE = CHOLESKY_NKINDS, KIND_CHAIN, KIND_RANDOM, NKINDS };

static heddle_status run_empty(struct heddle_exec *x)
{
    (void)x;
    return HEDDLE_OK;
}

static heddle_status run_busy(struct heddle_exec *x)
{
    const uint64_t start = heddle_ticks();
    const uint64_t ticks = *(const uint64_t *)heddle_exec_arg(x);

    while (heddle_ticks() - start < ticks)
        ;
    return HEDDLE_OK;
}

#define KERNEL(title, fn, n, ...)                                                                  \
    {                                                                                              \
        .size = sizeof(heddle_kernel), .name = title, .noperands = n, .mode = {__VA_ARGS__},       \
        .variants = {                                                                              \
            {.device = HEDDLE_DEV_CPU, .run = fn}                                                  \
        }                                                                                          \
    }
#define KERNELS(fn)                                                                                \
    {                                                                                              \
        [CHOLESKY_POTRF] = KERNEL("potrf", fn, 1, HEDDLE_RW),                                      \
        [CHOLESKY_TRSM] = KERNEL("trsm", fn, 2, HEDDLE_R, HEDDLE_RW),                              \
        [CHOLESKY_SYRK] = KERNEL("syrk", fn, 2, HEDDLE_R, HEDDLE_RW),                              \
        [CHOLESKY_GEMM] = KERNEL("gemm", fn, 3, HEDDLE_R, HEDDLE_R, HEDDLE_RW),                    \
        [KIND_NONE] = KERNEL("independent", fn, 0, 0),                                             \
        [KIND_CHAIN] = KERNEL("chain", fn, 1, HEDDLE_RW),                                          \
        [KIND_RANDOM] = KERNEL("random", fn, 3, HEDDLE_R, HEDDLE_R, HEDDLE_RW),                    \
    }

static const heddle_kernel kernels[2][NKINDS] = {KERNELS(run_empty), KERNELS(run_busy)};

const heddle_kernel *stream_kernel(bool is_busy, unsigned kind)
{
    return &kernels[is_busy][kind];
}

/* --- tables --------------------------------------------------------------- */

/* xorshift64* (Vigna 2016). */
static uint32_t draw(uint64_t *x)
{
    *x ^= *x >> 12;
    *x ^= *x << 25;
    *x ^= *x >> 27;
    return (uint32_t)(((*x * UINT64_C(2685821657736338717)) >> 33) % STREAM_RANDOM_HANDLES);
}

void stream_draw(struct stream_task *task, size_t ntasks)
{
    uint64_t x = 42;

    for (size_t i = 0; i < ntasks; i++) {
        const uint32_t a = draw(&x);
        uint32_t b = draw(&x), c;

        while (b == a)
            b = draw(&x);
        c = draw(&x);
        while (c == a || c == b)
            c = draw(&x);
        task[i] = (struct stream_task){{a, b, c}, KIND_RANDOM};
    }
}

static heddle_status add_tiles(void *user, const struct cholesky_task *t)
{
    struct stream *s = user;
    struct stream_task *out = &s->task[s->ntasks++];

    out->kind = t->kind;
    for (uint32_t i = 0; i < 3; i++)
        out->h[i] = (uint32_t)(i < t->ntiles ? t->tile[i] : s->nhandles);
    return HEDDLE_OK;
}

static bool is_tiles(enum stream_shape shape)
{
    return shape == STREAM_CHOLESKY || shape == STREAM_REPLAY;
}

static heddle_status make_table(struct stream *s, size_t ntasks)
{
    const bool has_table = is_tiles(s->shape) || s->shape == STREAM_RANDOM;

    s->nhandles = s->shape == STREAM_CHAIN ? 1 : 0;
    if (is_tiles(s->shape)) {
        s->nhandles = cholesky_tile(STREAM_TILES, 0);
        ntasks = cholesky_ntasks(STREAM_TILES);
    } else if (s->shape == STREAM_RANDOM) {
        s->nhandles = STREAM_RANDOM_HANDLES;
    }
    if (has_table) {
        s->task = calloc(ntasks, sizeof(*s->task));
        if (s->task == NULL)
            return HEDDLE_ENOMEM;
    }
    if (is_tiles(s->shape))
        return cholesky_walk(STREAM_TILES, add_tiles, s);
    if (has_table)
        stream_draw(s->task, ntasks);
    s->ntasks = ntasks;
    return HEDDLE_OK;
}

static heddle_status make_handles(struct stream *s)
{
    heddle_status st = HEDDLE_OK;

    if (s->nhandles == 0)
        return HEDDLE_OK;
    s->data = calloc(s->nhandles, sizeof(*s->data));
    s->handle = calloc(s->nhandles + 1, sizeof(heddle_handle *)); /* the last: no operand */
    if (s->data == NULL || s->handle == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < s->nhandles && st == HEDDLE_OK; i++)
        st = heddle_handle_vector(s->ctx, &s->data[i], 1, HEDDLE_F64, &s->handle[i]);
    return st;
}

/* --- submission ----------------------------------------------------------- */

static heddle_status submit_alike(struct stream *s)
{
    const bool is_chain = s->shape == STREAM_CHAIN;
    const heddle_kernel *k = stream_kernel(s->ticks != 0, is_chain ? KIND_CHAIN : KIND_NONE);
    heddle_status st = HEDDLE_OK;

    s->call.operand[0] = is_chain ? s->handle[0] : NULL;
    for (size_t i = 0; i < s->ntasks && st == HEDDLE_OK; i++)
        st = heddle_submit(s->ctx, k, &s->call);
    return st;
}

static heddle_status submit_table(struct stream *s)
{
    const heddle_kernel *k = kernels[s->ticks != 0];
    struct heddle_call *call = &s->call;
    heddle_status st = HEDDLE_OK;

    for (size_t i = 0; i < s->ntasks && st == HEDDLE_OK; i++) {
        const struct stream_task *t = &s->task[i];

        /* An operand that the kernel does not have is NULL. */
        call->operand[0] = s->handle[t->h[0]];
        call->operand[1] = s->handle[t->h[1]];
        call->operand[2] = s->handle[t->h[2]];
        st = heddle_submit(s->ctx, &k[t->kind], call);
    }
    return st;
}

static heddle_status record(struct stream *s)
{
    const heddle_kernel *k = kernels[s->ticks != 0];
    heddle_status st = heddle_graph_begin(s->ctx, &s->graph);

    for (size_t i = 0; i < s->ntasks && st == HEDDLE_OK; i++) {
        const struct stream_task *t = &s->task[i];

        for (unsigned o = 0; o < 3; o++)
            s->call.operand[o] = s->handle[t->h[o]];
        st = heddle_graph_submit(s->graph, &k[t->kind], &s->call);
    }
    return st == HEDDLE_OK ? heddle_graph_end(s->graph) : st;
}

/* --- the stream ----------------------------------------------------------- */

bool stream_find(const char *name, enum stream_shape *shape_out, bool *all_out)
{
    *all_out = name == NULL || strcmp(name, "all") == 0;
    if (*all_out)
        return true;
    for (unsigned i = 0; i < STREAM_NSHAPES; i++) {
        if (strcmp(heddle_stream_names[i], name) == 0) {
            *shape_out = (enum stream_shape)i;
            return true;
        }
    }
    return false;
}

heddle_status stream_open(struct stream *s, heddle_ctx *ctx, enum stream_shape shape,
                          const struct bench_opts *o)
{
    heddle_status st;

    *s = (struct stream){
        .ctx = ctx, .shape = shape, .ticks = bench_ticks(o->task_ns), .is_bound = !o->no_bind};
    st = make_table(s, o->tasks);
    if (st == HEDDLE_OK)
        st = make_handles(s);
    if (s->ticks != 0) {
        s->call.arg = &s->ticks;
        s->call.arg_bytes = sizeof(s->ticks);
    }
    if (st == HEDDLE_OK && shape == STREAM_REPLAY)
        st = record(s);
    return st;
}

static heddle_status run_timed(struct stream *s, struct stream_time *t)
{
    const uint64_t cpu = heddle_clock_process_ns();
    const uint64_t start = heddle_clock_ns();
    heddle_status st, waited;
    uint64_t submitted;

    if (s->shape == STREAM_REPLAY)
        st = heddle_graph_launch(s->graph, NULL);
    else if (s->task != NULL)
        st = submit_table(s);
    else
        st = submit_alike(s);
    submitted = heddle_clock_ns();
    waited = heddle_wait(s->ctx);
    t->wall_ns = (double)(heddle_clock_ns() - start);
    t->submit_ns = (double)(submitted - start);
    t->cpu_ns = (double)(heddle_clock_process_ns() - cpu);
    return st != HEDDLE_OK ? st : waited;
}

/*
 * The submitter works as worker 0, whose place is the first CPU. The system may
 * put it beside a bound worker and leave it there for seconds; so it is bound
 * for the time of the run, and only then: a context looks at the CPUs of the
 * thread that starts it.
 */
heddle_status stream_run(struct stream *s, struct stream_time *t)
{
    int *cpu = calloc(HEDDLE_CPU_MAX, sizeof(*cpu));
    unsigned n = 0;
    heddle_status st;

    if (cpu == NULL)
        return HEDDLE_ENOMEM;
    if (!s->is_bound || heddle_thread_get_cpus(cpu, HEDDLE_CPU_MAX, &n) != HEDDLE_OK ||
        heddle_thread_bind(cpu, 1) != HEDDLE_OK)
        n = 0;
    st = run_timed(s, t);
    if (n > 0 && heddle_thread_bind(cpu, n) != HEDDLE_OK && st == HEDDLE_OK)
        st = HEDDLE_ESTATE;
    free(cpu);
    return st;
}

void stream_close(struct stream *s)
{
    if (s->graph != NULL)
        heddle_graph_unref(s->graph);
    for (size_t i = 0; s->handle != NULL && i < s->nhandles; i++)
        heddle_handle_unref(s->handle[i]);
    free(s->handle);
    free(s->data);
    free(s->task);
    *s = (struct stream){0};
}
