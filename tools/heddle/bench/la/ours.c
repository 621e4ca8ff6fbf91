/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/la/ours: runs of our routines in a context of their own.
 *
 * Matrices   are made once and stay: what a first run pays for memory, pages and
 *            pinning is paid before the rounds. In place, or with --resident in
 *            memory of the runtime, where tasks on cores write them and hints bring
 *            them to the GPU.
 * Clock      from the first call to the last task. In place, the results are in the
 *            host's memory then. The rest of a run is not timed.
 * Restoring  the memory is acquired first: copies on devices are void then.
 */
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "bench/la/la.h"

/* --- opening --------------------------------------------------------------------- */

/* Where --resident puts the matrices: the memory of the first GPU. */
static unsigned find_gpu(heddle_ctx *ctx)
{
    struct heddle_class_info cls = {.size = sizeof(cls)};

    for (unsigned i = 0; heddle_ctx_get_class(ctx, i, &cls) == HEDDLE_OK; i++)
        if (strcmp(cls.kind, "cuda") == 0)
            return cls.memory;
    return 0;
}

int la_side_open(struct la_side *s, struct cli *c, const struct bench_opts *o, struct la_problem *p,
                 size_t nb, bool is_resident)
{
    struct heddle_ctx_stats stats = {.size = sizeof(stats)};
    int rc;

    *s = (struct la_side){.c = c, .p = p, .nb = nb, .is_resident = is_resident};
    rc = bench_open(c, o, &s->memory, &s->ctx);
    if (rc != 0)
        return rc;
    if (heddle_ctx_get_stats(s->ctx, &stats) != HEDDLE_OK)
        return cli_fail(c, "the context does not answer");
    s->nworkers = stats.nworkers;
    snprintf(s->sched, sizeof(s->sched), "%s", stats.sched);
    s->gpu_memory = find_gpu(s->ctx);
    if (is_resident && s->gpu_memory == 0)
        return cli_fail(c, "--resident needs a GPU of CUDA: give --devices "
                           "cuda");
    return 0;
}

/* The context, without matrices. */
static heddle_ctx *take_context(struct la_side *s)
{
    heddle_ctx *ctx = s->ctx;

    for (unsigned i = 0; i < LA_OPERANDS; i++) {
        heddle_matrix_destroy(s->x[i]);
        s->x[i] = NULL;
    }
    s->ctx = NULL;
    return ctx;
}

int la_side_close(struct la_side *s)
{
    heddle_ctx *ctx = take_context(s);

    return ctx != NULL ? bench_close(s->c, &s->memory, ctx) : 0;
}

void la_side_drop(struct la_side *s)
{
    heddle_ctx *ctx = take_context(s);

    if (ctx != NULL)
        (void)heddle_ctx_destroy(ctx);
}

/* --- matrices ---------------------------------------------------------------------- */

static size_t ld_of(const struct la_array *a)
{
    return a->m > 0 ? a->m : 1;
}

static heddle_status make_matrices(struct la_side *s, heddle_la *la)
{
    heddle_status st = HEDDLE_OK;

    for (unsigned i = 0; i < LA_OPERANDS && st == HEDDLE_OK; i++) {
        const struct la_array *a = &s->p->out[i];

        if (a->p != NULL && s->x[i] == NULL)
            st = heddle_matrix_create(la, la_dtype(a->t), a->m, a->n, s->is_resident ? NULL : a->p,
                                      ld_of(a), &s->x[i]);
    }
    return st;
}

/* Block reflectors of QR, new each time: no task reads what was there. */
static heddle_status make_tau(const struct la_side *s, struct la_call *k)
{
    const size_t nb = heddle_matrix_nb(s->x[0]), n = s->p->tau.m;

    if (!s->p->row->has_tau)
        return HEDDLE_OK;
    return heddle_matrix_create_nb(k->la, la_dtype(s->p->t), nb < n ? nb : n, n, NULL, 0, nb,
                                   &k->t);
}

/* A sequence for copies between memories of the host. */
static heddle_status on_cores(struct la_side *s, heddle_la **la_out)
{
    const struct heddle_la_opts opts = {.size = sizeof(opts), .devices = HEDDLE_DEVS_CPU};

    return heddle_la_create(s->ctx, &opts, la_out);
}

/* Copies x[i] from or to an array, by tasks. */
static heddle_status copy_matrix(struct la_side *s, unsigned i, const struct la_array *a,
                                 bool is_load)
{
    heddle_la *la = NULL;
    heddle_matrix *m = NULL;
    heddle_status st = on_cores(s, &la), waited;

    if (st != HEDDLE_OK)
        return st;
    st = heddle_matrix_create_nb(la, la_dtype(a->t), a->m, a->n, a->p, ld_of(a),
                                 heddle_matrix_nb(s->x[i]), &m);
    if (st == HEDDLE_OK)
        st = heddle_la_lacpy(la, 'A', is_load ? m : s->x[i], is_load ? s->x[i] : m);
    waited = heddle_la_wait(la, NULL);
    heddle_matrix_destroy(m);
    heddle_la_destroy(la);
    return st == HEDDLE_OK ? waited : st;
}

/* Acquires the columns of what is written, or releases them. */
static heddle_status hold(struct la_side *s, bool is_begin)
{
    heddle_status st = HEDDLE_OK, one;
    heddle_handle *h;

    for (unsigned i = 0; i < LA_OPERANDS; i++)
        for (size_t j = 0; s->p->row->x[i].is_out && (h = heddle_matrix_column(s->x[i], j)) != NULL;
             j++) {
            one = is_begin ? heddle_handle_acquire(h, HEDDLE_W, NULL) : heddle_handle_release(h);
            st = st == HEDDLE_OK ? one : st;
        }
    return st;
}

static heddle_status restore_in_place(struct la_side *s)
{
    heddle_status st = hold(s, true), ended;

    if (st == HEDDLE_OK)
        la_problem_restore(s->p);
    ended = hold(s, false);
    return st == HEDDLE_OK ? ended : st;
}

/* --- in the memory of the GPU -------------------------------------------------------- */

uint64_t la_bytes_in(heddle_ctx *ctx, unsigned memory)
{
    struct heddle_memory_info m = {.size = sizeof(m)};

    return heddle_ctx_get_memory(ctx, memory, &m) == HEDDLE_OK ? m.bytes_in : 0;
}

void la_await_bytes(heddle_ctx *ctx, unsigned memory, uint64_t goal)
{
    uint64_t last = la_bytes_in(ctx, memory), moved = heddle_clock_ns();

    while (last < goal && heddle_clock_ns() - moved < HEDDLE_NS_PER_S) {
        uint64_t now;

        heddle_thread_sleep_ns(1000000);
        now = la_bytes_in(ctx, memory);
        if (now != last)
            moved = heddle_clock_ns();
        last = now;
    }
}

static heddle_status send_matrix(const struct la_side *s, unsigned i, uint64_t *goal)
{
    heddle_status st = HEDDLE_OK;
    heddle_handle *h;

    for (size_t j = 0; st == HEDDLE_OK && (h = heddle_matrix_column(s->x[i], j)) != NULL; j++) {
        *goal += heddle_handle_get_bytes(h);
        st = heddle_handle_advise(h, HEDDLE_PREFETCH, s->gpu_memory);
        if (st == HEDDLE_OK && !s->has_run)
            st = heddle_handle_advise(h, HEDDLE_PIN, s->gpu_memory);
    }
    return st;
}

/* What is only read is still there from the run before. */
static heddle_status restore_on_gpu(struct la_side *s)
{
    uint64_t goal = la_bytes_in(s->ctx, s->gpu_memory);
    heddle_status st = HEDDLE_OK;

    for (unsigned i = 0; i < LA_OPERANDS && st == HEDDLE_OK; i++) {
        if (s->x[i] == NULL || (s->has_run && !s->p->row->x[i].is_out))
            continue;
        st = copy_matrix(s, i, &s->p->in[i], true);
        if (st == HEDDLE_OK)
            st = send_matrix(s, i, &goal);
    }
    if (st == HEDDLE_OK)
        st = heddle_wait(s->ctx);
    if (st == HEDDLE_OK)
        la_await_bytes(s->ctx, s->gpu_memory, goal);
    return st;
}

/* --- results ---------------------------------------------------------------------------- */

/* LAPACK's tau from the diagonals of the block reflectors. */
static heddle_status get_tau(struct la_call *k)
{
    struct la_problem *p = k->p;
    const size_t m = heddle_matrix_rows(k->t), bytes = la_elem_bytes(p->t);
    struct la_array t = la_array_make(p->t, m, p->tau.m);
    heddle_status st = HEDDLE_ENOMEM;

    if (t.p != NULL)
        st = heddle_matrix_get(k->la, k->t, t.p, m > 0 ? m : 1);
    for (size_t j = 0; j < p->tau.m && st == HEDDLE_OK; j++)
        memcpy((char *)p->tau.p + j * bytes,
               (char *)t.p + (j % heddle_matrix_nb(k->t) + j * m) * bytes, bytes);
    la_array_free(&t);
    return st;
}

static heddle_status get_results(struct la_side *s, struct la_call *k)
{
    heddle_status st = HEDDLE_OK;

    for (unsigned i = 0; i < LA_OPERANDS && st == HEDDLE_OK; i++)
        if (s->is_resident && s->p->row->x[i].is_out)
            st = copy_matrix(s, i, &s->p->out[i], false);
    if (st == HEDDLE_OK && s->p->row->has_tau)
        st = get_tau(k);
    return st;
}

/* --- a run ------------------------------------------------------------------------------- */

static heddle_status timed(struct la_side *s, struct la_call *k, double *ns_out)
{
    const uint64_t start = heddle_clock_ns();
    const struct la_row *row = s->p->row;
    heddle_status st = s->is_other ? row->self(k) : row->ours(k), waited;
    int info = 0;

    waited = heddle_la_wait(k->la, &info);
    if (st == HEDDLE_OK)
        st = waited;
    if (st == HEDDLE_OK && !s->is_resident)
        st = heddle_wait(s->ctx); /* brings home what a device has */
    *ns_out = (double)(heddle_clock_ns() - start);
    s->info = info != 0 ? info : k->info;
    return st;
}

int la_side_run(struct la_side *s, bool wants_results, double *ns_out)
{
    const struct la_row *row = s->p->row;
    const struct heddle_la_opts opts = {.size = sizeof(opts),
                                        .nb = s->nb,
                                        .routine = s->is_other ? row->self_name : row->name,
                                        .low = s->p->low,
                                        .panel = s->p->panel};
    struct la_call k = {.p = s->p};
    heddle_status st = heddle_la_create(s->ctx, &opts, &k.la);

    if (st == HEDDLE_ENOENT)
        return cli_fail(s->c, "%s", heddle_la_missing());
    s->p->iterations = -1;
    if (st == HEDDLE_OK)
        st = make_matrices(s, k.la);
    if (st == HEDDLE_OK)
        st = make_tau(s, &k);
    if (st == HEDDLE_OK)
        st = s->is_resident ? restore_on_gpu(s) : restore_in_place(s);
    s->has_run = true;
    memcpy(k.x, s->x, sizeof(k.x));
    bench_settle();
    if (st == HEDDLE_OK)
        st = timed(s, &k, ns_out);
    if (st == HEDDLE_OK && wants_results)
        st = get_results(s, &k);
    s->nb_used = heddle_matrix_nb(s->x[0]);
    heddle_matrix_destroy(k.t);
    heddle_la_destroy(k.la);
    return st == HEDDLE_OK ? 0 : bench_fail(s->c, s->ctx, st);
}
