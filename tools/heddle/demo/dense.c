/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * demo/dense: the Cholesky factorisation by the dense library.
 *
 * Loading    BLAS, the GPU's libraries and kernels, memory and the threads are slow the
 *            first time. So a small matrix is factorised twice before the clock starts;
 *            the second time tells how large a matrix takes about a second.
 * Transfers  with one GPU that has room, the matrix goes there before the factorisation
 *            and comes home after it, each on a clock of its own. Otherwise copies are
 *            part of the factorisation.
 * Check      the matrix is made again, and multiplied with vectors by plain loops.
 */
#include <stdlib.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/thread.h"
#include "bench/la/la.h"
#include "demo/run.h"
#include "heddle/machine.h"

enum { SEED = 42, LEAST_ORDER = 1024, MOST_ORDER = 16384, MOST_ORDER_GPU = 32768 };
enum { TICK_NS = 50000000 };

#define SECONDS     1.0
#define SECONDS_GPU 1.5 /* of a rate that small matrices do not reach */
#define GPU_SHARE   0.8 /* of the GPU's budget, for the matrix */

struct demo_dense {
    struct la_array a;
    unsigned nthreads;
};

static double bytes_of(const struct demo_run *d)
{
    return (double)d->n * (double)d->n * sizeof(double);
}

/* --- before the clock ------------------------------------------------------- */

static uint64_t gpu_budget(const struct demo_run *d)
{
    struct heddle_memory_info m = {.size = sizeof(m)};

    return heddle_ctx_get_memory(d->ctx, d->gpu_memory, &m) == HEDDLE_OK ? m.budget : 0;
}

/* A matrix that takes some seconds at that rate, and fits. */
static uint64_t auto_order(const struct demo_run *d, const struct la_warm *w)
{
    const double most = w->has_gpu ? MOST_ORDER_GPU : MOST_ORDER;
    double n = la_warm_order(w, w->has_gpu ? SECONDS_GPU : SECONDS);

    n = n > most ? most : n;
    while (d->memory_available > 0 && n * n * 8 > (double)d->memory_available / 4)
        n *= 0.75;
    while (w->has_gpu && n * n * 8 > GPU_SHARE * (double)gpu_budget(d) && n > LEAST_ORDER)
        n *= 0.75;
    return n < LEAST_ORDER ? LEAST_ORDER : (uint64_t)n / LEAST_ORDER * LEAST_ORDER;
}

static heddle_status warm_up(struct demo_run *d)
{
    struct la_warm w = {.ctx = d->ctx,
                        .routine = "potrf",
                        .t = LA_D,
                        .nb = d->nb,
                        .has_gpu = d->ngpus > 0,
                        .memory = d->memory_available};
    heddle_status st = la_warm_up(&w, d->n);
    size_t nb = 0;

    if (d->n == 0)
        d->n = auto_order(d, &w);
    if (st == HEDDLE_OK)
        st = la_warm_width(&w, d->n, &nb);
    d->nb = nb;
    return st;
}

/* What the cores could do at most: with a GPU they are not what counts. */
static void measure_peak(struct demo_run *d)
{
    struct la_peer peer = {0};
    char why[320];

    if (d->ngpus == 0 && la_peer_open(&peer, why, sizeof(why)))
        d->peak = la_peer_peak(&peer, LA_D, d->nb, d->stats.nworkers);
}

static int dense_prepare(struct demo_run *d)
{
    struct heddle_machine_info m = {.size = sizeof(m)};
    const uint64_t start = heddle_clock_ns();
    heddle_status st;

    d->dense = calloc(1, sizeof(*d->dense));
    if (d->dense == NULL)
        return cli_fail(d->c, "there is no memory");
    d->dense->nthreads = heddle_machine_query(&m) == HEDDLE_OK && m.cpus > 0 ? m.cpus : 1;
    st = warm_up(d);
    if (st != HEDDLE_OK)
        return demo_failed(d, d->ctx, "preparation", st);
    d->load_ns = (double)(heddle_clock_ns() - start);
    measure_peak(d);
    if (demo_fits(d, bytes_of(d)) != 0)
        return 1;
    d->dense->a = la_array_make(LA_D, d->n, d->n);
    if (d->dense->a.p == NULL)
        return cli_fail(d->c, "there is no memory for the matrix");
    la_array_fill(&d->dense->a, LA_POSITIVE, SEED, d->dense->nthreads);
    return 0;
}

/* --- transfers ---------------------------------------------------------------- */

static bool is_sent(const struct demo_run *d)
{
    return d->ngpus == 1 && bytes_of(d) <= GPU_SHARE * (double)gpu_budget(d);
}

static heddle_status send(struct demo_run *d, heddle_matrix *a)
{
    const uint64_t start = heddle_clock_ns();
    const uint64_t before = la_bytes_in(d->ctx, d->gpu_memory);
    uint64_t goal = before;
    heddle_status st = HEDDLE_OK;
    heddle_handle *h;

    for (size_t j = 0; st == HEDDLE_OK && (h = heddle_matrix_column(a, j)) != NULL; j++) {
        goal += heddle_handle_get_bytes(h);
        st = heddle_handle_advise(h, HEDDLE_PREFETCH, d->gpu_memory);
    }
    if (st == HEDDLE_OK)
        la_await_bytes(d->ctx, d->gpu_memory, goal);
    d->send_ns = (double)(heddle_clock_ns() - start);
    d->sent = (double)(la_bytes_in(d->ctx, d->gpu_memory) - before);
    return st;
}

/* Waits until everything that the GPU has written is in the program's memory. */
static heddle_status fetch(struct demo_run *d)
{
    const uint64_t start = heddle_clock_ns(), before = la_bytes_in(d->ctx, 0);
    const heddle_status st = heddle_wait(d->ctx);

    if (d->send_ns > 0) {
        d->home_ns = (double)(heddle_clock_ns() - start);
        d->fetched = (double)(la_bytes_in(d->ctx, 0) - before);
    }
    return st;
}

/* --- the factorisation ---------------------------------------------------------- */

struct ticker {
    struct demo_run *d;
    uint64_t before; /* tasks that had ended */
    _Atomic bool stops;
    struct heddle_thread thread;
    bool is_running;
};

static void tick(const struct ticker *t)
{
    struct heddle_ctx_stats s = {.size = sizeof(s)};

    if (heddle_ctx_get_stats(t->d->ctx, &s) == HEDDLE_OK)
        progress_tick(&t->d->progress, s.done - t->before);
}

static void *ticker_main(void *arg)
{
    struct ticker *t = arg;

    while (!heddle_load_rlx(&t->stops)) { /* relaxed: nothing hangs on it */
        tick(t);
        heddle_thread_sleep_ns(TICK_NS);
    }
    return NULL;
}

/* The bar moves while the main thread works. */
static void ticker_start(struct ticker *t, struct demo_run *d)
{
    struct heddle_ctx_stats s = {.size = sizeof(s)};
    const uint64_t before = d->stats.done;

    *t = (struct ticker){.d = d, .before = before};
    if (heddle_ctx_get_stats(d->ctx, &s) != HEDDLE_OK)
        return;
    progress_begin(&d->progress, d->c, !d->no_progress, s.submitted - before);
    t->is_running = heddle_thread_create(&t->thread, NULL, ticker_main, t) == HEDDLE_OK;
}

static void ticker_stop(struct ticker *t)
{
    heddle_store_rlx(&t->stops, true); /* relaxed: see above */
    if (t->is_running)
        (void)!heddle_thread_join(&t->thread);
    tick(t);
    progress_end(&t->d->progress);
}

static heddle_status factor(struct demo_run *d, heddle_la *la, heddle_matrix *a, int *info)
{
    struct ticker t;
    heddle_status st, waited;

    if (heddle_ctx_get_stats(d->ctx, &d->stats) != HEDDLE_OK)
        return HEDDLE_ESTATE;
    st = heddle_mark(d->ctx, "factorisation");
    d->begin_ns = heddle_clock_ns();
    if (st == HEDDLE_OK)
        st = heddle_la_potrf(la, 'L', a);
    ticker_start(&t, d);
    waited = heddle_la_wait(la, info);
    if (st == HEDDLE_OK && waited == HEDDLE_OK && d->send_ns == 0)
        waited = heddle_wait(d->ctx); /* copies home are part of it */
    d->wall_ns = (double)(heddle_clock_ns() - d->begin_ns);
    ticker_stop(&t);
    return st == HEDDLE_OK ? waited : st;
}

static int dense_execute(struct demo_run *d)
{
    struct la_array *a = &d->dense->a;
    heddle_matrix *m = NULL;
    const struct heddle_la_opts o = {.size = sizeof(o), .routine = "potrf"};
    heddle_la *la = NULL;
    heddle_status st = heddle_la_create(d->ctx, &o, &la);
    int info = 0;

    if (st == HEDDLE_OK)
        st = heddle_matrix_create_nb(la, HEDDLE_F64, a->m, a->n, a->p, a->m, d->nb, &m);
    if (st == HEDDLE_OK && is_sent(d))
        st = send(d, m);
    if (st == HEDDLE_OK)
        st = factor(d, la, m, &info);
    if (st == HEDDLE_OK)
        st = fetch(d);
    heddle_matrix_destroy(m);
    heddle_la_destroy(la);
    if (st != HEDDLE_OK)
        return demo_failed(d, d->ctx, "factorisation", st);
    if (info != 0)
        return cli_fail(d->c, "the matrix is not positive definite: the leading minor %d is not",
                        info);
    return 0;
}

/* --- the end ---------------------------------------------------------------------- */

static int dense_check(struct demo_run *d)
{
    const struct la_row *row = &la_rows[0];
    struct la_problem p = {.row = row,
                           .t = LA_D,
                           .m = d->n,
                           .n = d->n,
                           .out = {d->dense->a},
                           .nthreads = d->dense->nthreads};

    p.in[0] = la_array_make(LA_D, d->n, d->n);
    if (p.in[0].p == NULL)
        return cli_fail(d->c, "there is no memory for the check");
    la_array_fill(&p.in[0], LA_POSITIVE, SEED, d->dense->nthreads);
    d->error = la_check_potrf(&p);
    la_array_free(&p.in[0]);
    return 0;
}

static void dense_clean(struct demo_run *d)
{
    if (d->dense != NULL)
        la_array_free(&d->dense->a);
    free(d->dense);
    d->dense = NULL;
}

const struct demo_way demo_way_dense = {dense_prepare, dense_execute, dense_check, dense_clean};
