/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * work_starpu: the works on StarPU 1.3.
 *
 * Cores      cholesky: C CPU workers; the submitting thread sleeps. Others:
 *            C - 1 CPU workers (at least one) and the worker of the device.
 * Device     a processor as OpenCL device (PoCL) is refused by StarPU unless
 *            STARPU_OPENCL_ON_CPUS is set: set here. Kernels are asynchronous
 *            (STARPU_OPENCL_ASYNC), so StarPU's pipeline of two tasks is used.
 * Data       sweep: the tiles are acquired at the end of the timed part, which
 *            brings them home as heddle_wait() does. own and shared use memory
 *            of the runtime.
 * Models     history models for the dm schedulers; the repetitions that are not
 *            timed calibrate them.
 */
#include <starpu.h>
#include <starpu_opencl.h>
#include <starpu_scheduler.h>
#include <stdio.h>
#include <stdlib.h>

#include "work.h"

struct side {
    starpu_data_handle_t *h; /* cholesky: tiles; sweep: y; else the tasks' own */
    starpu_data_handle_t *x; /* sweep */
    size_t nh, nx;
    struct starpu_opencl_program program;
    bool has_program;
};

/* The kernels have no way to it but this. */
static struct side *the_side;

/* ---- kernels ------------------------------------------------------------ */

static double *tile(void *buf)
{
    return (double *)STARPU_MATRIX_GET_PTR(buf);
}

static size_t rows(void *buf)
{
    return STARPU_MATRIX_GET_NX(buf);
}

static size_t cols(void *buf)
{
    return STARPU_MATRIX_GET_NY(buf);
}

static void run_potrf(void *buf[], void *arg)
{
    (void)arg;
    if (work_potrf(rows(buf[0]), tile(buf[0])) != 0)
        fprintf(stderr, "starpu: not positive definite\n");
}

static void run_trsm(void *buf[], void *arg)
{
    (void)arg;
    work_trsm(rows(buf[1]), cols(buf[1]), tile(buf[0]), tile(buf[1]));
}

static void run_syrk(void *buf[], void *arg)
{
    (void)arg;
    work_syrk(rows(buf[0]), cols(buf[0]), tile(buf[0]), tile(buf[1]));
}

static void run_gemm(void *buf[], void *arg)
{
    (void)arg;
    work_gemm(rows(buf[2]), cols(buf[2]), cols(buf[0]), tile(buf[0]), tile(buf[1]), tile(buf[2]));
}

static struct starpu_perfmodel model[] = {
    {.type = STARPU_HISTORY_BASED, .symbol = "heddle_peer_potrf"},
    {.type = STARPU_HISTORY_BASED, .symbol = "heddle_peer_trsm"},
    {.type = STARPU_HISTORY_BASED, .symbol = "heddle_peer_syrk"},
    {.type = STARPU_HISTORY_BASED, .symbol = "heddle_peer_gemm"},
    {.type = STARPU_HISTORY_BASED, .symbol = "heddle_peer_axpy_core"},
    {.type = STARPU_HISTORY_BASED, .symbol = "heddle_peer_axpy_device"},
    {.type = STARPU_HISTORY_BASED, .symbol = "heddle_peer_empty"},
};

static struct starpu_codelet steps[WORK_NSTEPS] = {
    {.cpu_funcs = {run_potrf},
     .nbuffers = 1,
     .modes = {STARPU_RW},
     .model = &model[0],
     .name = "potrf"},
    {.cpu_funcs = {run_trsm},
     .nbuffers = 2,
     .modes = {STARPU_R, STARPU_RW},
     .model = &model[1],
     .name = "trsm"},
    {.cpu_funcs = {run_syrk},
     .nbuffers = 2,
     .modes = {STARPU_R, STARPU_RW},
     .model = &model[2],
     .name = "syrk"},
    {.cpu_funcs = {run_gemm},
     .nbuffers = 3,
     .modes = {STARPU_R, STARPU_R, STARPU_RW},
     .model = &model[3],
     .name = "gemm"},
};

static void axpy_core(void *buf[], void *arg)
{
    (void)arg;
    work_axpy(STARPU_VECTOR_GET_NX(buf[0]), (const float *)STARPU_VECTOR_GET_PTR(buf[0]),
              (float *)STARPU_VECTOR_GET_PTR(buf[1]));
}

/* StarPU's way: a kernel object is made and released for each task. */
static void launch(const char *entry, unsigned nbuf, void *buf[])
{
    const float a = WORK_ALPHA;
    size_t n = nbuf == 2 ? STARPU_VECTOR_GET_NX(buf[0]) : 1;
    cl_command_queue queue;
    cl_kernel kernel;
    int err;

    err = starpu_opencl_load_kernel(&kernel, &queue, &the_side->program, entry,
                                    starpu_worker_get_devid(starpu_worker_get_id()));
    if (err != CL_SUCCESS)
        STARPU_OPENCL_REPORT_ERROR(err);
    for (cl_uint i = 0; i < nbuf; i++) {
        cl_mem m = (cl_mem)STARPU_VECTOR_GET_DEV_HANDLE(buf[i]);

        err |= clSetKernelArg(kernel, i, sizeof(m), &m);
    }
    if (nbuf == 2)
        err |= clSetKernelArg(kernel, 2, sizeof(a), &a);
    err |= clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &n, NULL, 0, NULL, NULL);
    if (err != CL_SUCCESS)
        STARPU_OPENCL_REPORT_ERROR(err);
    starpu_opencl_release_kernel(kernel);
}

static void axpy_device(void *buf[], void *arg)
{
    (void)arg;
    launch("axpy", 2, buf);
}

static void empty_device(void *buf[], void *arg)
{
    (void)arg;
    launch("empty", 1, buf);
}

static void bare_device(void *buf[], void *arg)
{
    (void)buf;
    (void)arg;
}

static struct starpu_codelet axpy[2] = {
    {.cpu_funcs = {axpy_core},
     .nbuffers = 2,
     .modes = {STARPU_R, STARPU_RW},
     .model = &model[4],
     .name = "axpy"},
    {.opencl_funcs = {axpy_device},
     .opencl_flags = {STARPU_OPENCL_ASYNC},
     .nbuffers = 2,
     .modes = {STARPU_R, STARPU_RW},
     .model = &model[5],
     .name = "axpy"},
};

static struct starpu_codelet first = {
    .opencl_funcs = {bare_device},
    .opencl_flags = {STARPU_OPENCL_ASYNC},
    .nbuffers = 1,
    .modes = {STARPU_W},
    .name = "first",
};

static struct starpu_codelet empty[2] = {
    {.opencl_funcs = {empty_device},
     .opencl_flags = {STARPU_OPENCL_ASYNC},
     .nbuffers = 1,
     .modes = {STARPU_RW},
     .model = &model[6],
     .name = "empty"},
    {.opencl_funcs = {bare_device},
     .opencl_flags = {STARPU_OPENCL_ASYNC},
     .nbuffers = 1,
     .modes = {STARPU_RW},
     .model = &model[6],
     .name = "bare"},
};

/* ---- opening and closing ------------------------------------------------- */

/* Memory of the runtime has no value until a task writes it. */
static int handles_first(struct side *s)
{
    int rc = 0;

    for (size_t i = 0; i < s->nh && rc == 0; i++)
        rc = starpu_task_insert(&first, STARPU_W, s->h[i], 0);
    starpu_task_wait_for_all();
    return rc;
}

static int handles_create(struct work *w, struct side *s)
{
    const struct work_opts *o = &w->opts;
    const bool is_sweep = o->kind == WORK_SWEEP;
    size_t r = 0, c = 0; /* the tile's place */

    s->nh = o->kind == WORK_CHOLESKY ? work_tile(w->nt, 0)
            : is_sweep               ? o->ntiles
            : work_is_shared(w)      ? 1
                                     : o->ntasks;
    s->nx = is_sweep ? o->ntiles : 0;
    s->h = calloc(s->nh, sizeof(starpu_data_handle_t));
    s->x = calloc(s->nx + 1, sizeof(starpu_data_handle_t));
    if (s->h == NULL || s->x == NULL)
        return 1;
    for (size_t i = 0; i < s->nh; i++, work_next(&r, &c)) {
        if (o->kind == WORK_CHOLESKY)
            starpu_matrix_data_register(&s->h[i], STARPU_MAIN_RAM,
                                        (uintptr_t)(w->a + i * o->tile * o->tile),
                                        (uint32_t)work_extent(w, r), (uint32_t)work_extent(w, r),
                                        (uint32_t)work_extent(w, c), sizeof(double));
        else if (is_sweep)
            starpu_vector_data_register(&s->h[i], STARPU_MAIN_RAM, (uintptr_t)(w->y + i * o->elems),
                                        (uint32_t)o->elems, sizeof(float));
        else
            starpu_vector_data_register(&s->h[i], -1, 0, 16, sizeof(float));
    }
    for (size_t i = 0; i < s->nx; i++)
        starpu_vector_data_register(&s->x[i], STARPU_MAIN_RAM, (uintptr_t)(w->x + i * o->elems),
                                    (uint32_t)o->elems, sizeof(float));
    return o->kind == WORK_CHOLESKY || is_sweep ? 0 : handles_first(s);
}

static int library_start(const struct work *w)
{
    const bool has_device = w->opts.kind != WORK_CHOLESKY;
    const unsigned cores = w->opts.cores;
    struct starpu_conf conf;

    setenv("STARPU_SILENT", "1", 0);
    setenv("STARPU_OPENCL_ON_CPUS", "1", 0);
    starpu_conf_init(&conf);
    conf.precedence_over_environment_variables = 1;
    conf.ncpus = (int)(has_device && cores > 1 ? cores - 1 : cores);
    conf.ncuda = 0;
    conf.nopencl = has_device ? 1 : 0;
    conf.calibrate = 1;
    conf.sched_policy_name = w->opts.sched;
    if (starpu_init(&conf) != 0) {
        fprintf(stderr, "starpu: cannot start\n");
        return has_device ? 3 : 1;
    }
    if (has_device && starpu_opencl_worker_get_count() == 0) {
        fprintf(stderr, "starpu: it finds no OpenCL device\n");
        starpu_shutdown();
        return 3;
    }
    return 0;
}

static void side_close(struct work *w)
{
    struct side *s = w->self;

    for (size_t i = 0; s->h != NULL && i < s->nh; i++)
        if (s->h[i] != NULL)
            starpu_data_unregister(s->h[i]);
    for (size_t i = 0; s->x != NULL && i < s->nx; i++)
        if (s->x[i] != NULL)
            starpu_data_unregister(s->x[i]);
    if (s->has_program)
        starpu_opencl_unload_opencl(&s->program);
    starpu_shutdown();
    free(s->h);
    free(s->x);
    free(s);
}

static int side_open(struct work *w)
{
    struct side *s = calloc(1, sizeof(*s));
    int rc;

    if (s == NULL)
        return 1;
    w->self = s;
    the_side = s;
    rc = library_start(w);
    if (rc != 0) {
        free(s);
        return rc;
    }
    if (w->opts.kind != WORK_CHOLESKY) {
        rc = starpu_opencl_load_opencl_from_string(work_source, &s->program, NULL);
        s->has_program = rc == 0;
    }
    if (rc != 0 || handles_create(w, s) != 0) {
        fprintf(stderr, "starpu: cannot register the data or the kernels\n");
        side_close(w);
        return 1;
    }
    return 0;
}

static const char *side_sched(struct work *w)
{
    const struct starpu_sched_policy *p = starpu_sched_ctx_get_sched_policy(0);

    (void)w;
    return p != NULL ? p->policy_name : "unknown";
}

/* ---- running ------------------------------------------------------------- */

static int submit_step(struct work *w, const struct work_step *step)
{
    const struct side *s = w->self;
    struct starpu_codelet *cl = &steps[step->kind];
    const size_t *t = step->tile;

    switch (step->n) {
    case 1:
        return starpu_task_insert(cl, STARPU_RW, s->h[t[0]], STARPU_PRIORITY, step->priority, 0);
    case 2:
        return starpu_task_insert(cl, STARPU_R, s->h[t[0]], STARPU_RW, s->h[t[1]], STARPU_PRIORITY,
                                  step->priority, 0);
    default:
        return starpu_task_insert(cl, STARPU_R, s->h[t[0]], STARPU_R, s->h[t[1]], STARPU_RW,
                                  s->h[t[2]], STARPU_PRIORITY, step->priority, 0);
    }
}

static int submit_sweeps(struct work *w, struct side *s)
{
    int rc = 0;

    for (size_t k = 0; k < w->opts.sweeps; k++)
        for (size_t i = 0; i < s->nh && rc == 0; i++)
            rc = starpu_task_insert(&axpy[work_is_on_device(k, i)], STARPU_R, s->x[i], STARPU_RW,
                                    s->h[i], 0);
    return rc;
}

static int submit_empty(struct work *w, struct side *s)
{
    struct starpu_codelet *cl = &empty[work_is_bare(w)];
    int rc = 0;

    for (size_t i = 0; i < w->opts.ntasks && rc == 0; i++)
        rc = starpu_task_insert(cl, STARPU_RW, s->h[s->nh == 1 ? 0 : i], 0);
    return rc;
}

/* Brings the tiles home; outside of the timed part they must be the program's,
 * and nobody else touches them, so they can be released at once. */
static int bring_home(struct side *s)
{
    int rc = 0;

    for (size_t i = 0; i < s->nh && rc == 0; i++) {
        rc = starpu_data_acquire(s->h[i], STARPU_RW);
        if (rc == 0)
            starpu_data_release(s->h[i]);
    }
    return rc;
}

static int side_run(struct work *w)
{
    struct side *s = w->self;
    int rc;

    if (w->opts.kind == WORK_CHOLESKY)
        rc = work_cholesky(w, submit_step);
    else
        rc = w->opts.kind == WORK_SWEEP ? submit_sweeps(w, s) : submit_empty(w, s);
    starpu_task_wait_for_all();
    if (rc == 0 && w->opts.kind == WORK_SWEEP)
        rc = bring_home(s);
    if (rc != 0)
        fprintf(stderr, "starpu: a submission failed (%d)\n", rc);
    return rc != 0;
}

int main(int argc, char **argv)
{
    static const struct work_ops ops = {"starpu", side_open, side_run, side_sched, side_close};

    return work_main(argc, argv, &ops);
}
