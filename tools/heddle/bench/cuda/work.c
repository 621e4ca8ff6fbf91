/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/cuda/work: the mixed program of bench/cuda/work.h.
 *
 * Structure  the list of tasks (make), their data in a context (open, reset), one
 *            run, the check, the bound.
 */
#include "bench/cuda/work.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tile/tile.h"

enum {
    TABLES = 8,    /* of each length */
    RESULTS = 256, /* of walks */
    SUMS = 16,
    SEED = 5, /* odd: symmetric */
    SAMPLES = 4
};

const uint32_t work_table_words[3] = {1024, 8192, 65536};

uint32_t work_steps(const struct cuda_bench *b, unsigned length)
{
    static const uint32_t steps[3] = {10000, 30000, 90000};

    return (uint32_t)cuda_scaled(b, steps[length], 50);
}

/* ns, of the real clock or of the virtual one. */
static double now(const struct cuda_work *w)
{
    struct heddle_ctx_stats s = {.size = sizeof(s)};

    if (!w->is_virtual)
        return (double)heddle_clock_ns();
    return heddle_ctx_get_stats(w->ctx, &s) == HEDDLE_OK ? (double)s.virtual_ns : 0;
}

/* --- kinds --------------------------------------------------------------- */

const char *work_kernel_name(unsigned kind)
{
    if (kind < CHOLESKY_NKINDS)
        return cholesky_name((enum cholesky_kind)kind);
    return kind == WORK_NORM ? "norm" : "walk";
}

size_t work_bytes(uint32_t nb, unsigned kind)
{
    const size_t tile = (size_t)nb * nb * sizeof(double);

    switch (kind) {
    case CHOLESKY_POTRF: return tile + sizeof(int32_t);
    case CHOLESKY_TRSM:
    case CHOLESKY_SYRK: return 2 * tile;
    case CHOLESKY_GEMM: return 3 * tile;
    case WORK_NORM: return tile + sizeof(double);
    default: break;
    }
    return (work_table_words[kind - WORK_WALK] + WORK_WORDS) * sizeof(uint32_t);
}

/* --- places of data ------------------------------------------------------ */

static uint32_t ntiles(uint32_t nt)
{
    return nt * (nt + 1) / 2;
}

static uint32_t table_at(const struct cuda_work *w, unsigned length, unsigned i)
{
    return ntiles(w->nt) + length * TABLES + i;
}

static uint32_t result_at(const struct cuda_work *w, unsigned i)
{
    return table_at(w, 3, 0) + i;
}

static uint32_t sum_at(const struct cuda_work *w, unsigned i)
{
    return result_at(w, RESULTS) + i;
}

/* --- the list of tasks --------------------------------------------------- */

struct making {
    struct cuda_work *w;
    struct heddle_rng rng;
    double walks_per_task, due;
};

static heddle_status add(struct cuda_work *w, const struct sim_task *t, uint32_t step)
{
    struct sim_graph *g = &w->g;

    if (g->ntasks == g->cap) {
        const size_t cap = g->cap == 0 ? 4096 : 2 * g->cap;
        struct sim_task *task = realloc(g->task, cap * sizeof(*task));
        uint32_t *steps;

        if (task == NULL)
            return HEDDLE_ENOMEM;
        g->task = task;
        steps = realloc(w->step, cap * sizeof(*steps));
        if (steps == NULL)
            return HEDDLE_ENOMEM;
        w->step = steps;
        g->cap = cap;
    }
    w->step[g->ntasks] = step;
    g->task[g->ntasks++] = *t;
    return HEDDLE_OK;
}

static unsigned below(struct making *m, unsigned n)
{
    return (unsigned)(heddle_rng_next(&m->rng) % n);
}

static heddle_status add_walk(struct making *m)
{
    const unsigned length = below(m, 3);
    const struct sim_task t = {
        .kind = WORK_WALK + length,
        .ntiles = 2,
        .tile = {table_at(m->w, length, below(m, TABLES)), result_at(m->w, below(m, RESULTS))}};

    return add(m->w, &t, 0);
}

static heddle_status add_task(void *user, const struct cholesky_task *c)
{
    struct making *m = user;
    struct sim_task t = {.kind = c->kind, .ntiles = c->ntiles};
    heddle_status st;

    for (uint32_t i = 0; i < c->ntiles; i++)
        t.tile[i] = (uint32_t)c->tile[i];
    st = add(m->w, &t, c->step);
    if (st == HEDDLE_OK && m->walks_per_task > 0 && below(m, 4) == 0 &&
        (c->kind == CHOLESKY_POTRF || c->kind == CHOLESKY_TRSM)) {
        t = (struct sim_task){
            .kind = WORK_NORM,
            .ntiles = 2,
            .tile = {(uint32_t)c->tile[c->ntiles - 1], sum_at(m->w, below(m, SUMS))}};
        st = add(m->w, &t, 0);
    }
    m->due += m->walks_per_task;
    for (; m->due >= 1 && st == HEDDLE_OK; m->due--)
        st = add_walk(m);
    return st;
}

heddle_status work_make(struct cuda_work *w, struct cuda_bench *b, uint32_t nt, uint32_t nb,
                        size_t walks)
{
    struct making m = {.w = w, .walks_per_task = (double)walks / (double)cholesky_ntasks(nt)};
    const struct heddle_tile_ops *ops = heddle_tile_table[0];

    *w = (struct cuda_work){.b = b, .nt = nt, .nb = nb};
    w->g = (struct sim_graph){.tiles = nt, .nb = nb};
    w->g.ntiles = sum_at(w, SUMS);
    if (ops->setup != NULL)
        ops->setup();
    cholesky_kernels(w->kernel, ops, nb);
    heddle_rng_seed(&m.rng, 3);
    return cholesky_walk(nt, add_task, &m);
}

void work_free(struct cuda_work *w)
{
    sim_graph_free(&w->g);
    free(w->step);
    w->step = NULL;
}

/* --- data ---------------------------------------------------------------- */

heddle_status work_open(struct cuda_work *w, heddle_ctx *ctx)
{
    heddle_status st = HEDDLE_OK;

    w->ctx = ctx;
    w->data = calloc(w->g.ntiles, sizeof(heddle_handle *));
    w->info = calloc(w->nt, sizeof(heddle_handle *));
    if (w->data == NULL || w->info == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < w->g.ntiles && st == HEDDLE_OK; i++) {
        if (i < ntiles(w->nt))
            st = heddle_handle_matrix(ctx, NULL, w->nb, w->nb, 0, HEDDLE_F64, &w->data[i]);
        else if (i < result_at(w, 0))
            st = heddle_handle_vector(ctx, NULL, work_table_words[(i - ntiles(w->nt)) / TABLES],
                                      HEDDLE_I32, &w->data[i]);
        else if (i < sum_at(w, 0))
            st = heddle_handle_vector(ctx, NULL, WORK_WORDS, HEDDLE_I32, &w->data[i]);
        else
            st = heddle_handle_vector(ctx, NULL, 1, HEDDLE_F64, &w->data[i]);
    }
    for (uint32_t k = 0; k < w->nt && st == HEDDLE_OK; k++)
        st = heddle_handle_vector(ctx, NULL, 1, HEDDLE_I32, &w->info[k]);
    return st;
}

void work_close(struct cuda_work *w)
{
    cuda_drop(w->data, w->g.ntiles);
    cuda_drop(w->info, w->nt);
    w->data = w->info = NULL;
}

static uint32_t table_word(uint32_t at, uint32_t i)
{
    return (uint32_t)heddle_mix64((uint64_t)at << 32 | i);
}

/* Tables and results, on the host. In virtual time there may be no memory. */
static heddle_status reset_words(struct cuda_work *w, uint32_t at)
{
    const bool is_table = at < result_at(w, 0);
    const size_t n = heddle_handle_get_bytes(w->data[at]) / sizeof(uint32_t);
    void *p = NULL;
    heddle_status st = heddle_handle_acquire(w->data[at], HEDDLE_W, &p);

    if (st != HEDDLE_OK)
        return st;
    for (uint32_t i = 0; i < n && p != NULL; i++)
        ((uint32_t *)p)[i] = is_table ? table_word(at, i) : 0;
    return heddle_handle_release(w->data[at]);
}

heddle_status work_reset(struct cuda_work *w)
{
    const struct heddle_task_opts o = {.size = sizeof(o), .devices = HEDDLE_DEVS_CUDA};
    heddle_status st = HEDDLE_OK, waited;

    for (uint32_t i = 0; i < w->nt; i++)
        for (uint32_t j = 0; j <= i && st == HEDDLE_OK; j++) {
            const struct bench_fill f = {.row = i * w->nb,
                                         .col = j * w->nb,
                                         .seed = SEED,
                                         .diagonal = (double)w->nt * (double)w->nb};

            st = heddle_submit(w->ctx, &bench_kernel_fill,
                               &(struct heddle_call){.operand = {w->data[cholesky_tile(i, j)]},
                                                     .arg = &f,
                                                     .arg_bytes = sizeof(f),
                                                     .opts = &o});
        }
    for (uint32_t i = ntiles(w->nt); i < w->g.ntiles && st == HEDDLE_OK; i++)
        st = reset_words(w, i);
    waited = heddle_wait(w->ctx);
    return st != HEDDLE_OK ? st : waited;
}

/* --- one run ------------------------------------------------------------- */

static heddle_status submit(struct cuda_work *w, size_t i)
{
    const struct sim_task *t = &w->g.task[i];
    const struct cholesky_arg numbers = {heddle_tile_table[0]};
    const struct bench_walk walk = {
        work_steps(w->b, t->kind >= WORK_WALK && t->kind < WORK_NORM ? t->kind - WORK_WALK : 0)};
    struct heddle_call call = {0};

    for (uint32_t o = 0; o < t->ntiles; o++)
        call.operand[o] = w->data[t->tile[o]];
    if (t->kind >= CHOLESKY_NKINDS) {
        call.arg = &walk;
        call.arg_bytes = sizeof(walk);
        return heddle_submit(w->ctx, t->kind == WORK_NORM ? &bench_kernel_norm : &bench_kernel_walk,
                             &call);
    }
    if (t->kind == CHOLESKY_POTRF)
        call.operand[1] = w->info[w->step[i]];
    call.arg = &numbers;
    call.arg_bytes = sizeof(numbers);
    /* Steps in order; inside of one, what the next one waits for. */
    call.priority = (int)(w->nt - w->step[i]) * 4 + (CHOLESKY_GEMM - (int)t->kind) + 1;
    return heddle_submit(w->ctx, &w->kernel[t->kind], &call);
}

heddle_status work_run(struct cuda_work *w, double *ns_out)
{
    const double start = now(w);
    heddle_status st = HEDDLE_OK, waited;

    for (size_t i = 0; i < w->g.ntasks && st == HEDDLE_OK; i++)
        st = submit(w, i);
    w->submit_ns = now(w) - start;
    waited = heddle_wait(w->ctx);
    *ns_out = now(w) - start;
    return st != HEDDLE_OK ? st : waited;
}

/* --- check --------------------------------------------------------------- */

/* L[i][0..j] into row; 0 beyond the diagonal. */
static heddle_status read_row(struct cuda_work *w, uint32_t i, double *row)
{
    const uint32_t ti = i / w->nb;
    heddle_status st = HEDDLE_OK;

    for (uint32_t tj = 0; tj <= ti && st == HEDDLE_OK; tj++) {
        heddle_handle *h = w->data[cholesky_tile(ti, tj)];
        void *p = NULL;

        st = heddle_handle_acquire(h, HEDDLE_R, &p);
        for (uint32_t j = 0; j < w->nb && st == HEDDLE_OK; j++)
            row[tj * w->nb + j] =
                tj * w->nb + j <= i ? ((const double *)p)[i % w->nb + (size_t)j * w->nb] : 0;
        if (st == HEDDLE_OK)
            st = heddle_handle_release(h);
    }
    return st;
}

static int check_matrix(struct cuda_work *w, double *a, double *b)
{
    const uint32_t n = w->nt * w->nb;
    struct heddle_rng rng;

    heddle_rng_seed(&rng, 11);
    for (unsigned s = 0; s < SAMPLES; s++) {
        const uint32_t x = (uint32_t)(heddle_rng_next(&rng) % n);
        const uint32_t y = (uint32_t)(heddle_rng_next(&rng) % n);
        const uint32_t i = x > y ? x : y, j = x > y ? y : x;
        double want = bench_value(j, i, SEED) + (i == j ? n : 0), got = 0;
        heddle_status st = read_row(w, i, a);

        if (st == HEDDLE_OK)
            st = read_row(w, j, b);
        if (st != HEDDLE_OK)
            return cuda_fail(w->b, "the factor cannot be read", w->ctx, st);
        for (uint32_t k = 0; k <= j; k++)
            got += a[k] * b[k];
        if (!(fabs(got - want) <= 1e-11 * n))
            return cli_fail(w->b->c,
                            "element (%u, %u) of L L^T is %.17g instead of "
                            "%.17g",
                            i, j, got, want);
    }
    return 0;
}

/* The first results: their walks again. */
static int check_walks(struct cuda_work *w, uint32_t *table)
{
    for (uint32_t r = result_at(w, 0); r < result_at(w, SAMPLES); r++) {
        uint32_t want = 0;
        void *p = NULL;
        heddle_status st = heddle_handle_acquire(w->data[r], HEDDLE_R, &p);

        if (st != HEDDLE_OK)
            return cuda_fail(w->b, "a walk cannot be read", w->ctx, st);
        for (size_t i = 0; i < w->g.ntasks; i++) {
            const struct sim_task *t = &w->g.task[i];
            const unsigned length = t->kind - WORK_WALK;

            if (t->kind < WORK_WALK || t->kind >= WORK_NORM || t->tile[1] != r)
                continue;
            for (uint32_t e = 0; e < work_table_words[length]; e++)
                table[e] = table_word(t->tile[0], e);
            want = bench_walk_once(table, work_table_words[length], want, work_steps(w->b, length));
        }
        if (*(const uint32_t *)p != want)
            return cli_fail(w->b->c, "a walk ends at %u instead of %u", *(const uint32_t *)p, want);
        (void)heddle_handle_release(w->data[r]);
    }
    return 0;
}

int work_check(struct cuda_work *w)
{
    const size_t n = (size_t)w->nt * w->nb;
    double *a = calloc(n, sizeof(double)), *b = calloc(n, sizeof(double));
    uint32_t *table = calloc(work_table_words[2], sizeof(uint32_t));
    int rc = a == NULL || b == NULL || table == NULL ? cli_fail(w->b->c, "no memory for the check")
                                                     : check_matrix(w, a, b);

    if (rc == 0)
        rc = check_walks(w, table);
    free(a);
    free(b);
    free(table);
    return rc;
}

/* --- the bound ----------------------------------------------------------- */

size_t work_balanced(const struct cuda_costs *costs, uint32_t nt)
{
    double gpu = 0, walk = 0;

    for (enum cholesky_kind k = 0; k < CHOLESKY_NKINDS; k++)
        gpu += (double)cholesky_count(nt, k) * costs->ns[k][WORK_GPU];
    for (unsigned i = 0; i < 3; i++)
        walk += costs->ns[WORK_WALK + i][WORK_CORE] / 3;
    return (size_t)fmin(0.9 * gpu * costs->nworkers / walk, 20000.0);
}

static heddle_status solve(const struct heddle_bound_graph *graph, double *ns_out, char *why,
                           size_t cap)
{
    const struct heddle_bound_limits limits = {
        .size = sizeof(limits), .time_ns = UINT64_C(3000000000), .why = why, .why_bytes = cap};
    struct heddle_bound_result r = {.size = sizeof(r)};
    heddle_status st = heddle_bound_all(graph, &limits, &r);

    if (st != HEDDLE_OK)
        return st;
    st = heddle_bound_check(graph, &r.cert[r.best_kind], r.best, &limits, NULL);
    *ns_out = r.best;
    heddle_bound_fini(&r);
    return st;
}

heddle_status work_bound(const struct cuda_work *w, const struct cuda_costs *costs, double *ns_out,
                         char *why, size_t cap)
{
    const uint32_t nworkers[WORK_NTYPES] = {costs->nworkers, 1};
    size_t nedges = 0;
    uint32_t *pair = sim_graph_edges(&w->g, &nedges);
    uint32_t *from = calloc(nedges + 1, sizeof(uint32_t));
    uint32_t *to = calloc(nedges + 1, sizeof(uint32_t));
    uint32_t *kind = calloc(w->g.ntasks + 1, sizeof(uint32_t));
    const struct heddle_bound_graph graph = {.size = sizeof(graph),
                                             .ntasks = (uint32_t)w->g.ntasks,
                                             .ntypes = WORK_NTYPES,
                                             .nkinds = WORK_NKINDS,
                                             .nedges = (uint32_t)nedges,
                                             .edge_from = from,
                                             .edge_to = to,
                                             .nworkers = nworkers,
                                             .kind = kind,
                                             .time = &costs->ns[0][0]};
    const bool is_ok = pair != NULL && from != NULL && to != NULL && kind != NULL;
    heddle_status st = HEDDLE_ENOMEM;

    why[0] = '\0';
    for (size_t i = 0; i < nedges && is_ok; i++) {
        from[i] = pair[2 * i];
        to[i] = pair[2 * i + 1];
    }
    for (size_t i = 0; i < w->g.ntasks && is_ok; i++)
        kind[i] = w->g.task[i].kind;
    if (is_ok)
        st = solve(&graph, ns_out, why, cap);
    free(pair);
    free(from);
    free(to);
    free(kind);
    if (st != HEDDLE_OK && why[0] == '\0')
        snprintf(why, cap, "there is no bound: %s", heddle_status_text(st));
    return st;
}
