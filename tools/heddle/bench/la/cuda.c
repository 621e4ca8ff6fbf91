/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/la/cuda: the same routine by cuSOLVER or cuBLAS, in double precision.
 *
 * Purpose    what the GPU does without Heddle. Memory of the device is taken once,
 *            before the context, which counts what is free.
 */
#include <dlfcn.h>
#include <math.h>
#include <string.h>

#include "bench/la/la.h"

enum { FILL_LOWER = 0 };

typedef int (*create_fn)(void **out);
typedef int (*destroy_fn)(void *handle);
typedef int (*stream_fn)(void *handle, cuda_raw_stream s);
typedef int (*potrf_size_fn)(void *h, int fill, int n, cuda_raw_ptr a, int lda, int *lwork);
typedef int (*potrf_fn)(void *h, int fill, int n, cuda_raw_ptr a, int lda, cuda_raw_ptr work,
                        int lwork, cuda_raw_ptr info);
typedef int (*size_fn)(void *h, int m, int n, cuda_raw_ptr a, int lda, int *lwork);
typedef int (*getrf_fn)(void *h, int m, int n, cuda_raw_ptr a, int lda, cuda_raw_ptr work,
                        cuda_raw_ptr ipiv, cuda_raw_ptr info);
typedef int (*geqrf_fn)(void *h, int m, int n, cuda_raw_ptr a, int lda, cuda_raw_ptr tau,
                        cuda_raw_ptr work, int lwork, cuda_raw_ptr info);

/* --- opening ------------------------------------------------------------------- */

static bool refuse(struct la_gpu *g, const char *what, int code)
{
    if (code == 0)
        snprintf(g->why, sizeof(g->why), "%s", what);
    else
        snprintf(g->why, sizeof(g->why), "%s: %s", what, cuda_raw_text(&g->raw, code));
    return false;
}

/* C has no cast for this. */
static bool find(const struct la_gpu *g, const char *name, void *fn_out)
{
    void *p = g->library != NULL ? dlsym(g->library, name) : NULL;

    if (p != NULL)
        memcpy(fn_out, &p, sizeof(p));
    return p != NULL;
}

static bool open_solver(struct la_gpu *g)
{
    static const char *const names[] = {"libcusolver.so.12", "libcusolver.so.11", "libcusolver.so",
                                        NULL};
    create_fn create;
    stream_fn set_stream;

    g->library = cuda_raw_library(names);
    if (!find(g, "cusolverDnCreate", &create) || !find(g, "cusolverDnSetStream", &set_stream))
        return refuse(g, "there is no cuSOLVER on this machine", 0);
    if (create(&g->handle) != 0 || set_stream(g->handle, g->raw.stream) != 0) {
        g->handle = NULL;
        return refuse(g, "cuSOLVER cannot be started", 0);
    }
    return true;
}

static bool missing(struct la_gpu *g)
{
    return refuse(g, "this cuSOLVER does not have the routine", 0);
}

static bool ask_size(struct la_gpu *g, const struct la_problem *p)
{
    const int m = (int)p->m, n = (int)p->n;
    potrf_size_fn potrf;
    size_fn size;
    int code = 0;

    switch (p->row->gpu) {
    case LA_GPU_POTRF:
        if (!find(g, "cusolverDnDpotrf_bufferSize", &potrf))
            return missing(g);
        code = potrf(g->handle, FILL_LOWER, n, g->x[0], n, &g->lwork);
        break;
    case LA_GPU_GETRF:
        if (!find(g, "cusolverDnDgetrf_bufferSize", &size))
            return missing(g);
        code = size(g->handle, m, n, g->x[0], m, &g->lwork);
        break;
    case LA_GPU_GEQRF:
        if (!find(g, "cusolverDnDgeqrf_bufferSize", &size))
            return missing(g);
        code = size(g->handle, m, n, g->x[0], m, &g->lwork);
        break;
    case LA_GPU_GEMM:
    case LA_GPU_NONE: break;
    }
    return code == 0 || refuse(g, "cuSOLVER does not take this size", 0);
}

static bool take_memory(struct la_gpu *g, const struct la_problem *p)
{
    const size_t k = p->m < p->n ? p->m : p->n;
    struct cuda_raw *r = &g->raw;
    int code = 0;

    for (unsigned i = 0; i < LA_OPERANDS && code == 0; i++)
        if (p->in[i].p != NULL)
            code = r->mem_alloc(&g->x[i], la_array_bytes(&p->in[i]) + 8);
    if (code == 0 && !ask_size(g, p))
        return false;
    if (code == 0)
        code = r->mem_alloc(&g->work, ((size_t)g->lwork + 1) * sizeof(double));
    if (code == 0)
        code = r->mem_alloc(&g->tau, (k + 1) * sizeof(double));
    if (code == 0)
        code = r->mem_alloc(&g->ipiv, (k + 1) * sizeof(int));
    if (code == 0)
        code = r->mem_alloc(&g->info, sizeof(int));
    return code == 0 || refuse(g, "no memory on the device", code);
}

bool la_gpu_open(struct la_gpu *g, const struct la_problem *p)
{
    *g = (struct la_gpu){0};
    g->is_open = true;
    if (!cuda_raw_open(&g->raw) || !cuda_raw_open_blas(&g->raw))
        return refuse(g, g->raw.why, 0);
    return open_solver(g) && take_memory(g, p);
}

void la_gpu_close(struct la_gpu *g)
{
    destroy_fn destroy;

    if (!g->is_open)
        return;
    cuda_raw_use(&g->raw);
    for (unsigned i = 0; i < LA_OPERANDS; i++)
        if (g->x[i] != 0)
            g->raw.mem_free(g->x[i]);
    if (g->work != 0)
        g->raw.mem_free(g->work);
    if (g->tau != 0)
        g->raw.mem_free(g->tau);
    if (g->ipiv != 0)
        g->raw.mem_free(g->ipiv);
    if (g->info != 0)
        g->raw.mem_free(g->info);
    if (g->handle != NULL && find(g, "cusolverDnDestroy", &destroy))
        destroy(g->handle);
    cuda_raw_close(&g->raw);
    if (g->library != NULL)
        (void)dlclose(g->library);
    *g = (struct la_gpu){0};
}

/* --- a run ------------------------------------------------------------------------ */

/* Resident data that are only read are there from the run before. */
static int copy_in(struct la_gpu *g, const struct la_array *from, const struct la_problem *p,
                   bool is_resident)
{
    struct cuda_raw *r = &g->raw;
    int code = 0;

    for (unsigned i = 0; i < LA_OPERANDS && code == 0; i++)
        if (from[i].p != NULL && la_array_bytes(&from[i]) > 0 &&
            (p->row->x[i].is_out || !is_resident || !g->has_run))
            code = r->copy_in(g->x[i], from[i].p, la_array_bytes(&from[i]), r->stream);
    return code;
}

static int copy_out(struct la_gpu *g, const struct la_problem *p)
{
    struct cuda_raw *r = &g->raw;
    int code = 0;

    for (unsigned i = 0; i < LA_OPERANDS && code == 0; i++)
        if (p->row->x[i].is_out && la_array_bytes(&p->out[i]) > 0)
            code = r->copy_out(p->out[i].p, g->x[i], la_array_bytes(&p->out[i]), r->stream);
    return code;
}

static int call(struct la_gpu *g, const struct la_problem *p)
{
    const double one = 1.0;
    const int m = (int)p->m, n = (int)p->n;
    potrf_fn potrf;
    getrf_fn getrf;
    geqrf_fn geqrf;

    switch (p->row->gpu) {
    case LA_GPU_POTRF:
        return find(g, "cusolverDnDpotrf", &potrf)
                   ? potrf(g->handle, FILL_LOWER, n, g->x[0], n, g->work, g->lwork, g->info)
                   : -1;
    case LA_GPU_GETRF:
        return find(g, "cusolverDnDgetrf", &getrf)
                   ? getrf(g->handle, m, n, g->x[0], m, g->work, g->ipiv, g->info)
                   : -1;
    case LA_GPU_GEQRF:
        return find(g, "cusolverDnDgeqrf", &geqrf)
                   ? geqrf(g->handle, m, n, g->x[0], m, g->tau, g->work, g->lwork, g->info)
                   : -1;
    case LA_GPU_GEMM:
        return g->raw.dgemm(g->raw.blas, CUDA_RAW_OP_N, CUDA_RAW_OP_N, m, n, n, &one, g->x[0], m,
                            g->x[1], n, &one, g->x[2], m);
    case LA_GPU_NONE: break;
    }
    return -1;
}

bool la_gpu_run(struct la_gpu *g, struct la_problem *p, bool is_resident, double *ns_out,
                int *info_out)
{
    struct cuda_raw *r = &g->raw;
    const int zero = 0;
    uint64_t start;
    int code, called;

    cuda_raw_use(r);
    code = r->copy_in(g->info, &zero, sizeof(zero), r->stream);
    if (is_resident)
        code = code == 0 ? copy_in(g, p->in, p, true) : code;
    else
        la_problem_restore(p); /* the memory that ours works on, and pinned */
    g->has_run = true;
    if (code == 0)
        code = r->stream_sync(r->stream);
    bench_settle();
    start = heddle_clock_ns();
    if (code == 0 && !is_resident)
        code = copy_in(g, p->out, p, false);
    called = code == 0 ? call(g, p) : 0;
    if (code == 0 && !is_resident)
        code = copy_out(g, p);
    if (code == 0)
        code = r->stream_sync(r->stream);
    *ns_out = (double)(heddle_clock_ns() - start);
    if (code == 0)
        code = r->copy_out(info_out, g->info, sizeof(*info_out), r->stream);
    if (code == 0)
        code = r->stream_sync(r->stream);
    if (called != 0)
        return refuse(g, "the routine of cuSOLVER fails", 0);
    return code == 0 || refuse(g, "the peer's run fails", code);
}

double la_gpu_peak(struct la_gpu *g, const struct la_problem *p)
{
    struct cuda_raw *r = &g->raw;
    const double one = 1.0;
    const double most = sqrt((double)p->in[0].m * (double)p->in[0].n);
    const int n = most < 8192 ? (int)most : 8192;
    const size_t bytes = (size_t)n * (size_t)n * sizeof(double);
    cuda_raw_ptr a = 0, c = 0;
    double best = 0;
    int code;

    cuda_raw_use(r);
    if (n == 0)
        return 0;
    code = r->mem_alloc(&a, bytes);
    if (code == 0)
        code = r->mem_alloc(&c, bytes);
    if (code == 0) /* numbers: what power it draws depends on them */
        code = r->copy_in(a, p->in[0].p, bytes, r->stream);
    if (code == 0)
        code = r->copy_in(c, p->in[0].p, bytes, r->stream);
    if (code == 0)
        code = r->stream_sync(r->stream);
    for (unsigned i = 0; i < 4 && code == 0; i++) {
        const uint64_t start = heddle_clock_ns();
        double rate;

        code =
            r->dgemm(r->blas, CUDA_RAW_OP_N, CUDA_RAW_OP_T, n, n, n, &one, a, n, a, n, &one, c, n);
        if (code == 0)
            code = r->stream_sync(r->stream);
        rate = 2.0 * n * n * n / (double)(heddle_clock_ns() - start);
        if (code == 0 && i > 0 && rate > best)
            best = rate;
    }
    if (a != 0)
        r->mem_free(a);
    if (c != 0)
        r->mem_free(c);
    return best;
}
