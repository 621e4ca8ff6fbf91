/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * work_heddle: the works on Heddle.
 *
 * Cores      cholesky: C workers, the submitting thread among them, no device.
 *            Others: C - 1 workers (at least one) and the driver of the device,
 *            as StarPU takes a core from its workers to drive it.
 * Data       heddle_wait() brings what the caller owns home, so it ends the
 *            timed part. own and shared use memory of the runtime.
 */
#include <heddle/heddle.h>
#include <heddle/opencl.h>
#include <stdio.h>
#include <stdlib.h>

#include "work.h"

struct side {
    heddle_ctx *ctx;
    heddle_handle **h; /* cholesky: tiles; sweep: y; else the tasks' own */
    heddle_handle **x; /* sweep */
    size_t nh, nx;
    char sched[32];
};

static int complain(struct side *s, const char *what, heddle_status st)
{
    struct heddle_error e = {.size = sizeof(e)};

    if (s->ctx != NULL)
        (void)heddle_ctx_error(s->ctx, &e);
    fprintf(stderr, "heddle: %s: %s. %s\n", what, heddle_status_text(st), e.message);
    return 1;
}

/* ---- kernels ------------------------------------------------------------ */

static size_t rows(struct heddle_exec *x, unsigned operand)
{
    return heddle_exec_layout(x, operand)->extent[0];
}

static size_t cols(struct heddle_exec *x, unsigned operand)
{
    return heddle_exec_layout(x, operand)->extent[1];
}

static heddle_status run_potrf(struct heddle_exec *x)
{
    return work_potrf(rows(x, 0), heddle_exec_ptr(x, 0)) == 0 ? HEDDLE_OK : HEDDLE_ETASK;
}

static heddle_status run_trsm(struct heddle_exec *x)
{
    work_trsm(rows(x, 1), cols(x, 1), heddle_exec_ptr(x, 0), heddle_exec_ptr(x, 1));
    return HEDDLE_OK;
}

static heddle_status run_syrk(struct heddle_exec *x)
{
    work_syrk(rows(x, 0), cols(x, 0), heddle_exec_ptr(x, 0), heddle_exec_ptr(x, 1));
    return HEDDLE_OK;
}

static heddle_status run_gemm(struct heddle_exec *x)
{
    work_gemm(rows(x, 2), cols(x, 2), cols(x, 0), heddle_exec_ptr(x, 0), heddle_exec_ptr(x, 1),
              heddle_exec_ptr(x, 2));
    return HEDDLE_OK;
}

/* Schedulers that predict need times: a kernel that has a cost is timed. */
static struct heddle_cost cost_of(struct heddle_exec *x)
{
    const double n = (double)heddle_exec_count(x, 0);

    return (struct heddle_cost){n, 8 * n};
}

static const heddle_kernel steps[WORK_NSTEPS] = {
    {.size = sizeof(heddle_kernel),
     .name = "potrf",
     .noperands = 1,
     .mode = {HEDDLE_RW},
     .variants = {{.device = HEDDLE_DEV_CPU, .run = run_potrf}},
     .cost = cost_of},
    {.size = sizeof(heddle_kernel),
     .name = "trsm",
     .noperands = 2,
     .mode = {HEDDLE_R, HEDDLE_RW},
     .variants = {{.device = HEDDLE_DEV_CPU, .run = run_trsm}},
     .cost = cost_of},
    {.size = sizeof(heddle_kernel),
     .name = "syrk",
     .noperands = 2,
     .mode = {HEDDLE_R, HEDDLE_RW},
     .variants = {{.device = HEDDLE_DEV_CPU, .run = run_syrk}},
     .cost = cost_of},
    {.size = sizeof(heddle_kernel),
     .name = "gemm",
     .noperands = 3,
     .mode = {HEDDLE_R, HEDDLE_R, HEDDLE_RW},
     .variants = {{.device = HEDDLE_DEV_CPU, .run = run_gemm}},
     .cost = cost_of},
};

static heddle_status axpy_core(struct heddle_exec *x)
{
    work_axpy(heddle_exec_count(x, 0), heddle_exec_ptr(x, 0), heddle_exec_ptr(x, 1));
    return HEDDLE_OK;
}

static heddle_status axpy_device(struct heddle_exec *x)
{
    const float a = WORK_ALPHA;
    const size_t n = heddle_exec_count(x, 0);
    const struct heddle_opencl_arg args[] = {{.operand = 0}, {.operand = 1}, {&a, sizeof(a), 0}};
    void *kernel;
    heddle_status st = heddle_opencl_kernel(x, work_source, "axpy", NULL, &kernel);

    return st != HEDDLE_OK ? st : heddle_opencl_launch(x, kernel, 1, &n, NULL, args, 3);
}

static heddle_status empty_device(struct heddle_exec *x)
{
    const size_t one = 1;
    const struct heddle_opencl_arg arg = {.operand = 0};
    void *kernel;
    heddle_status st = heddle_opencl_kernel(x, work_source, "empty", NULL, &kernel);

    return st != HEDDLE_OK ? st : heddle_opencl_launch(x, kernel, 1, &one, NULL, &arg, 1);
}

static heddle_status bare_device(struct heddle_exec *x)
{
    (void)x;
    return HEDDLE_OK;
}

static const heddle_kernel axpy = {
    .size = sizeof(heddle_kernel),
    .name = "axpy",
    .noperands = 2,
    .mode = {HEDDLE_R, HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = axpy_core},
                 {.device = HEDDLE_DEV_OPENCL, .run = axpy_device}},
    .cost = cost_of,
};

static const heddle_kernel empty = {
    .size = sizeof(heddle_kernel),
    .name = "empty",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_OPENCL, .run = empty_device}},
};

static const heddle_kernel bare = {
    .size = sizeof(heddle_kernel),
    .name = "bare",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_OPENCL, .run = bare_device}},
};

/* ---- opening and closing ------------------------------------------------- */

static heddle_status handles_create(struct work *w, struct side *s)
{
    const struct work_opts *o = &w->opts;
    const bool is_sweep = o->kind == WORK_SWEEP;
    heddle_status st = HEDDLE_OK;
    size_t r = 0, c = 0; /* the tile's place */

    s->nh = o->kind == WORK_CHOLESKY ? work_tile(w->nt, 0)
            : is_sweep               ? o->ntiles
            : work_is_shared(w)      ? 1
                                     : o->ntasks;
    s->nx = is_sweep ? o->ntiles : 0;
    s->h = calloc(s->nh, sizeof(heddle_handle *));
    s->x = calloc(s->nx + 1, sizeof(heddle_handle *));
    if (s->h == NULL || s->x == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < s->nh && st == HEDDLE_OK; i++, work_next(&r, &c)) {
        if (o->kind == WORK_CHOLESKY)
            st = heddle_handle_matrix(s->ctx, w->a + i * o->tile * o->tile, work_extent(w, r),
                                      work_extent(w, c), 0, HEDDLE_F64, &s->h[i]);
        else
            st = heddle_handle_vector(s->ctx, is_sweep ? w->y + i * o->elems : NULL,
                                      is_sweep ? o->elems : 16, HEDDLE_F32, &s->h[i]);
    }
    for (size_t i = 0; i < s->nx && st == HEDDLE_OK; i++)
        st = heddle_handle_vector(s->ctx, w->x + i * o->elems, o->elems, HEDDLE_F32, &s->x[i]);
    return st;
}

static void on_message(void *user, enum heddle_severity severity, const char *text)
{
    (void)user;
    if (severity != HEDDLE_INFO)
        fprintf(stderr, "heddle: %s\n", text);
}

static void side_close(struct work *w)
{
    struct side *s = w->self;

    for (size_t i = 0; s->h != NULL && i < s->nh; i++)
        heddle_handle_unref(s->h[i]);
    for (size_t i = 0; s->x != NULL && i < s->nx; i++)
        heddle_handle_unref(s->x[i]);
    (void)heddle_ctx_destroy(s->ctx);
    free(s->h);
    free(s->x);
    free(s);
}

static int side_open(struct work *w)
{
    const bool has_device = w->opts.kind != WORK_CHOLESKY;
    const unsigned cores = w->opts.cores;
    const struct heddle_ctx_opts opts = {
        .size = sizeof(opts),
        .nworkers = has_device && cores > 1 ? cores - 1 : cores,
        .sched = w->opts.sched,
        .log = HEDDLE_OFF,
        .devices = has_device ? "opencl" : "none",
        .model_dir = "",
        .message = on_message,
    };
    struct heddle_ctx_stats stats = {.size = sizeof(stats)};
    struct side *s = calloc(1, sizeof(*s));
    heddle_status st;

    if (s == NULL)
        return 1;
    w->self = s;
    st = heddle_ctx_create(&opts, &s->ctx);
    if (st != HEDDLE_OK) {
        (void)complain(s, "cannot start", st);
        free(s);
        return st == HEDDLE_EDEV ? 3 : 1;
    }
    st = handles_create(w, s);
    if (st != HEDDLE_OK) {
        (void)complain(s, "cannot register the data", st);
        side_close(w);
        return 1;
    }
    if (heddle_ctx_get_stats(s->ctx, &stats) == HEDDLE_OK)
        snprintf(s->sched, sizeof(s->sched), "%s", stats.sched);
    return 0;
}

static const char *side_sched(struct work *w)
{
    const struct side *s = w->self;

    return s->sched;
}

/* ---- running ------------------------------------------------------------- */

static int submit_step(struct work *w, const struct work_step *step)
{
    struct side *s = w->self;
    struct heddle_call call = {.priority = step->priority};
    heddle_status st;

    for (unsigned k = 0; k < step->n; k++)
        call.operand[k] = s->h[step->tile[k]];
    st = heddle_submit(s->ctx, &steps[step->kind], &call);
    return st == HEDDLE_OK ? 0 : complain(s, "a submission failed", st);
}

static heddle_status submit_sweeps(struct work *w, struct side *s)
{
    static const struct heddle_task_opts place[2] = {
        {.size = sizeof(place[0]), .devices = HEDDLE_DEVS_CPU},
        {.size = sizeof(place[0]), .devices = HEDDLE_DEVS_OPENCL}};
    heddle_status st = HEDDLE_OK;

    for (size_t k = 0; k < w->opts.sweeps; k++)
        for (size_t i = 0; i < s->nh && st == HEDDLE_OK; i++)
            st = heddle_submit(s->ctx, &axpy,
                               &(struct heddle_call){.operand = {s->x[i], s->h[i]},
                                                     .opts = &place[work_is_on_device(k, i)]});
    return st;
}

static heddle_status submit_empty(struct work *w, struct side *s)
{
    const heddle_kernel *kernel = work_is_bare(w) ? &bare : &empty;
    heddle_status st = HEDDLE_OK;

    for (size_t i = 0; i < w->opts.ntasks && st == HEDDLE_OK; i++)
        st = heddle_submit(s->ctx, kernel,
                           &(struct heddle_call){.operand = {s->h[s->nh == 1 ? 0 : i]}});
    return st;
}

static int side_run(struct work *w)
{
    struct side *s = w->self;
    heddle_status st = HEDDLE_OK;

    if (w->opts.kind == WORK_CHOLESKY) {
        if (work_cholesky(w, submit_step) != 0)
            return 1;
    } else {
        st = w->opts.kind == WORK_SWEEP ? submit_sweeps(w, s) : submit_empty(w, s);
    }
    if (st == HEDDLE_OK)
        st = heddle_wait(s->ctx);
    return st == HEDDLE_OK ? 0 : complain(s, "a task failed", st);
}

int main(int argc, char **argv)
{
    static const struct work_ops ops = {"heddle", side_open, side_run, side_sched, side_close};

    return work_main(argc, argv, &ops);
}
