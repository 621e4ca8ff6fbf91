/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * demo/tiles: the Cholesky factorisation by tiles, with kernels of the tool.
 *
 * Purpose    needs no BLAS, and shows the task graph that textbooks draw.
 * Contexts   filling and checking have one of their own, on the cores: the log holds the
 *            factorisation alone, and what devices did is checked by others.
 */
#include <inttypes.h>
#include <math.h>

#include "demo/run.h"

enum { AUTO_N = 8192 };
/* With a GPU: tiles that keep it busy; the check on the cores takes the time. */
enum { GPU_NB = 1024, GPU_AUTO_N = 16384 };

/* About a second of work of the cores, three with GPUs, that fits into a quarter of
 * the memory. */
static uint64_t auto_order(const struct demo_run *d, double rate)
{
    const double most = d->ngpus > 0 ? GPU_AUTO_N : AUTO_N;
    double n = cbrt(3.0 * rate * (d->ngpus > 0 ? 3e9 : 1e9));

    n = n > most ? most : n;
    while (d->memory_available > 0 && n * n * 4 > (double)d->memory_available / 4)
        n *= 0.75;
    return n < (double)(4 * d->nb) ? 4 * d->nb : (uint64_t)n / d->nb * d->nb;
}

static int tiles_context(struct demo_run *d)
{
    const struct heddle_ctx_opts o = {.size = sizeof(o),
                                      .nworkers = (unsigned)d->workers,
                                      .log = HEDDLE_OFF,
                                      .devices = "none",
                                      .sched = "ws",
                                      .model_dir = "", /* not worth keeping */
                                      .why = d->why,
                                      .why_bytes = sizeof(d->why)};
    const heddle_status st = heddle_ctx_create(&o, &d->work);

    if (st != HEDDLE_OK)
        return cli_fail(d->c, "no context can be started: %s",
                        d->why[0] != '\0' ? d->why : heddle_status_text(st));
    return 0;
}

static int tiles_prepare(struct demo_run *d)
{
    const struct heddle_tile_ops *ops = tile_find(d->kernels);
    const uint64_t nb = d->ngpus > 0 ? GPU_NB : ops->nb;
    heddle_status st;

    if (ops->setup != NULL)
        ops->setup();
    if (d->nb == 0)
        d->nb = d->n != 0 && d->n < 4 * nb ? (d->n + 3) / 4 : nb;
    d->peak = demo_peak(ops, d->nb) * d->stats.nworkers;
    if (d->n == 0)
        d->n = auto_order(d, d->peak);
    if (demo_fits(d, (double)demo_matrix_bytes(d->n, d->nb)) != 0)
        return 1;
    if (tiles_context(d) != 0)
        return 1;
    st = demo_matrix_init(&d->matrix, ops, d->n, d->nb);
    if (st == HEDDLE_OK)
        st = demo_matrix_fill(&d->matrix, d->work);
    return st == HEDDLE_OK ? 0 : demo_failed(d, d->work, "preparation", st);
}

static int tiles_execute(struct demo_run *d)
{
    struct demo_factor f = {.ctx = d->ctx, .tick = progress_tick, .tick_user = &d->progress};
    heddle_status st;

    progress_begin(&d->progress, d->c, !d->no_progress, cholesky_ntasks(d->matrix.nt));
    st = demo_matrix_factor(&d->matrix, &f);
    progress_end(&d->progress);
    if (f.bad_row != 0)
        return cli_fail(d->c,
                        "the matrix is not positive definite: the pivot of row %zu is not positive",
                        f.bad_row - 1);
    if (st != HEDDLE_OK)
        return demo_failed(d, d->ctx, "factorisation", st);
    d->wall_ns = f.wall_ns;
    return 0;
}

static int tiles_check(struct demo_run *d)
{
    const heddle_status st = demo_matrix_check(&d->matrix, d->work, &d->error);

    return st == HEDDLE_OK ? 0 : demo_failed(d, d->work, "check", st);
}

static void tiles_clean(struct demo_run *d)
{
    heddle_ctx_destroy(d->work);
    demo_matrix_fini(&d->matrix);
}

const struct demo_way demo_way_tiles = {tiles_prepare, tiles_execute, tiles_check, tiles_clean};
