/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/cuda/cost: what the tasks of bench/cuda/work.h cost on this machine.
 *
 * How        batches of independent tasks of one kind, on the cores alone and on
 *            the GPU alone, with their data there: the time of a batch by the
 *            number of its tasks, times the number of workers. The first batch
 *            brings the data, later ones count; the fastest is the cost.
 * Alone      chains on the GPU: each task updates what the one before it did. The
 *            factorisation of a tile begins with a tile as it was, so there the
 *            time of a chain of these is subtracted.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cuda/work.h"
#include "tile/tile.h"

enum { BATCHES = 4, BATCH_NS = 60000000, CHAIN = 32, CHAIN_WALKS = 4 };

struct batch {
    struct cuda_bench *b;
    heddle_ctx *ctx;
    const heddle_kernel *kernel;
    uint32_t nb;
    unsigned kind;
    struct heddle_task_opts opts; /* where */
    size_t n;
    bool is_chain;       /* all update the first */
    bool fills, is_fill; /* each begins with fill(); is nothing else */
    heddle_handle **own; /* what each task updates */
    heddle_handle *read[2];
};

static unsigned nreads(unsigned kind)
{
    return kind == CHOLESKY_POTRF ? 0 : kind == CHOLESKY_GEMM ? 2 : 1;
}

static bool is_walk(unsigned kind)
{
    return kind >= WORK_WALK && kind < WORK_NORM;
}

static heddle_status make_tile(struct batch *t, heddle_handle **out)
{
    return heddle_handle_matrix(t->ctx, NULL, t->nb, t->nb, 0, HEDDLE_F64, out);
}

static heddle_status batch_open(struct batch *t)
{
    heddle_status st = HEDDLE_OK;

    t->own = calloc(t->n, sizeof(heddle_handle *));
    if (t->own == NULL)
        return HEDDLE_ENOMEM;
    for (unsigned i = 0; i < nreads(t->kind) && st == HEDDLE_OK; i++)
        st = is_walk(t->kind)
                 ? heddle_handle_vector(t->ctx, NULL, work_table_words[t->kind - WORK_WALK],
                                        HEDDLE_I32, &t->read[i])
                 : make_tile(t, &t->read[i]);
    for (size_t i = 0; i < t->n && st == HEDDLE_OK; i++)
        if (is_walk(t->kind))
            st = heddle_handle_vector(t->ctx, NULL, WORK_WORDS, HEDDLE_I32, &t->own[i]);
        else if (t->kind == WORK_NORM)
            st = heddle_handle_vector(t->ctx, NULL, 1, HEDDLE_F64, &t->own[i]);
        else
            st = make_tile(t, &t->own[i]);
    return st;
}

static void batch_close(struct batch *t)
{
    cuda_drop(t->own, t->n);
    heddle_handle_unref(t->read[0]);
    heddle_handle_unref(t->read[1]);
}

static heddle_status fill(struct batch *t, heddle_handle *h)
{
    const struct bench_fill f = {.seed = 5, .diagonal = 2.0 * t->nb};

    return heddle_submit(
        t->ctx, &bench_kernel_fill,
        &(struct heddle_call){.operand = {h}, .arg = &f, .arg_bytes = sizeof(f), .opts = &t->opts});
}

/* Tiles as in the beginning: a factor cannot be factorised again. */
static heddle_status fill_all(struct batch *t)
{
    heddle_status st = HEDDLE_OK, waited;

    for (unsigned i = 0; i < 2 && st == HEDDLE_OK && !is_walk(t->kind); i++)
        if (t->read[i] != NULL)
            st = fill(t, t->read[i]);
    for (size_t i = 0; i < t->n && st == HEDDLE_OK; i++)
        if (t->kind < CHOLESKY_NKINDS)
            st = fill(t, t->own[i]);
    waited = heddle_wait(t->ctx);
    return st != HEDDLE_OK ? st : waited;
}

static heddle_status submit(struct batch *t, size_t i)
{
    const struct cholesky_arg numbers = {heddle_tile_table[0]};
    const struct bench_walk walk = {is_walk(t->kind) ? work_steps(t->b, t->kind - WORK_WALK) : 0};
    struct heddle_call call = {.opts = &t->opts};
    const unsigned n = nreads(t->kind);
    heddle_handle *info = NULL;
    heddle_status st = HEDDLE_OK;

    for (unsigned r = 0; r < n; r++)
        call.operand[r] = t->read[r];
    call.operand[n] = t->own[t->is_chain ? 0 : i];
    if (t->kind == CHOLESKY_POTRF) {
        st = heddle_handle_vector(t->ctx, NULL, 1, HEDDLE_I32, &info);
        call.operand[1] = info;
    }
    call.arg = t->kind < CHOLESKY_NKINDS ? (const void *)&numbers : &walk;
    call.arg_bytes = t->kind < CHOLESKY_NKINDS ? sizeof(numbers) : sizeof(walk);
    if (st == HEDDLE_OK)
        st = heddle_submit(t->ctx, t->kernel, &call);
    heddle_handle_unref(info); /* the task keeps it */
    return st;
}

static heddle_status batch_run(struct batch *t, double *ns_out)
{
    heddle_status st = fill_all(t), waited;
    uint64_t start = heddle_clock_ns();

    for (size_t i = 0; i < t->n && st == HEDDLE_OK; i++) {
        if (t->fills)
            st = fill(t, t->own[0]);
        if (st == HEDDLE_OK && !t->is_fill)
            st = submit(t, i);
    }
    waited = heddle_wait(t->ctx);
    *ns_out = cuda_ns_since(start) / (double)t->n;
    return st != HEDDLE_OK ? st : waited;
}

static heddle_status measure(struct batch *t, double *ns_out)
{
    double best = INFINITY, spent = 0;
    heddle_status st = batch_open(t);

    for (unsigned i = 0; i < BATCHES && st == HEDDLE_OK; i++) {
        double ns = 0;

        st = batch_run(t, &ns);
        /* What is long needs no second time. */
        if (i > 0 || ns * (double)t->n > BATCH_NS)
            best = fmin(best, ns);
        spent += ns * (double)t->n;
        if (i > 0 && spent > BATCH_NS)
            break;
    }
    batch_close(t);
    *ns_out = best;
    return st;
}

static size_t batch_size(const struct cuda_costs *costs, unsigned kind, unsigned type,
                         unsigned walks)
{
    if (type == WORK_CORE)
        return (is_walk(kind) ? walks : 1u) * costs->nworkers;
    return is_walk(kind) || kind == CHOLESKY_POTRF ? 8 : 48;
}

/* What `kind` is run with; tile[] is room for its kernel. */
static struct batch batch_of(struct cuda_bench *b, heddle_ctx *ctx, uint32_t nb, unsigned kind,
                             enum heddle_device device, const heddle_kernel *tile)
{
    return (struct batch){
        .b = b,
        .ctx = ctx,
        .kernel = kind < CHOLESKY_NKINDS ? &tile[kind]
                  : kind == WORK_NORM    ? &bench_kernel_norm
                                         : &bench_kernel_walk,
        .nb = nb,
        .kind = kind,
        .opts = {.size = sizeof(struct heddle_task_opts), .devices = 1u << device}};
}

/* Not less than half: the rest is noise. */
static double without(double ns, double single_ns, size_t n)
{
    return fmax(ns - single_ns / (double)n, ns / 2);
}

int work_alone(struct cuda_bench *b, heddle_ctx *ctx, double single_ns, struct cuda_costs *costs)
{
    const struct heddle_tile_ops *ops = heddle_tile_table[0];
    struct heddle_class_info gpu = {.size = sizeof(gpu)};
    heddle_kernel tile[CHOLESKY_NKINDS];
    heddle_status st = heddle_ctx_get_class(ctx, 1, &gpu);

    costs->nstreams = gpu.nworkers;
    cholesky_kernels(tile, ops, costs->nb);
    for (unsigned k = 0; k < WORK_NKINDS && st == HEDDLE_OK; k++) {
        struct batch t = batch_of(b, ctx, costs->nb, k, HEDDLE_DEV_CUDA, tile);
        double fills = 0;

        t.n = is_walk(k) ? CHAIN_WALKS : CHAIN;
        t.is_chain = true;
        t.fills = k == CHOLESKY_POTRF;
        st = measure(&t, &costs->alone[k]);
        if (st == HEDDLE_OK && t.fills) {
            t.is_fill = true;
            st = measure(&t, &fills);
        } else if (st == HEDDLE_OK) {
            costs->alone[k] = without(costs->alone[k], single_ns, t.n);
        }
        costs->ns[k][WORK_GPU] =
            without(costs->ns[k][WORK_GPU], single_ns, batch_size(costs, k, WORK_GPU, 1));
        /* Alone it cannot take less than when others have parts of the GPU. */
        costs->alone[k] = fmax(costs->alone[k] - fills, costs->ns[k][WORK_GPU]);
    }
    return st == HEDDLE_OK ? 0 : cuda_fail(b, "the costs of tasks cannot be measured", ctx, st);
}

int work_measure(struct cuda_bench *b, heddle_ctx *ctx, uint32_t nb, unsigned walks,
                 struct cuda_costs *costs)
{
    static const enum heddle_device devices[WORK_NTYPES] = {HEDDLE_DEV_CPU, HEDDLE_DEV_CUDA};
    const struct heddle_tile_ops *ops = heddle_tile_table[0];
    struct heddle_class_info cores = {.size = sizeof(cores)};
    heddle_kernel tile[CHOLESKY_NKINDS];
    heddle_status st = heddle_ctx_get_class(ctx, 0, &cores);

    *costs = (struct cuda_costs){.nb = nb, .nworkers = cores.nworkers};
    if (ops->setup != NULL)
        ops->setup();
    cholesky_kernels(tile, ops, nb);
    for (unsigned k = 0; k < WORK_NKINDS && st == HEDDLE_OK; k++)
        for (unsigned type = 0; type < WORK_NTYPES && st == HEDDLE_OK; type++) {
            struct batch t = batch_of(b, ctx, nb, k, devices[type], tile);

            t.n = batch_size(costs, k, type, walks);
            st = measure(&t, &costs->ns[k][type]);
            if (type == WORK_CORE)
                costs->ns[k][type] *= costs->nworkers;
        }
    return st == HEDDLE_OK ? 0 : cuda_fail(b, "the costs of tasks cannot be measured", ctx, st);
}
