/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_la: routines of dense linear algebra against those of other libraries.
 *
 * Rounds     the peer, then ours, on the same memory with the same numbers; one
 *            round before the others warms both up. No sequence of ours exists
 *            while the peer runs: it would take the peer's threads away.
 * Clock      ours: from the first matrix that is made to the last task, with the
 *            results in the host's memory; --resident: the matrices are in that of
 *            the GPU before and after.
 */
#include "bench_la.h"
#include "run_bound.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "base/thread.h"
#include "heddle/machine.h"
#include "heddle/trace.h"

enum { MAX_N = 1000000, MAX_NB = 65536, CELL = 32 };

enum peer_kind { PEER_LAPACK, PEER_OPENBLAS, PEER_CUSOLVER, PEER_NONE };

static const char *const peer_names[] = {"lapack", "openblas", "cusolver",
                                         "none"};

struct la_bench {
    struct cli *c;
    const struct la_row *row;
    struct bench_opts o;
    const char *type, *nb_text, *peer_name, *low_name;
    uint64_t n, m, nrhs, nb, rounds;
    bool check, is_resident, no_bound;

    enum peer_kind peer;
    struct la_problem p;
    struct la_peer blas;
    struct la_gpu gpu;
    struct bench_memory memory;
    heddle_ctx *ctx;
    unsigned nworkers;
    char sched[32];
    unsigned gpu_memory; /* index of the first GPU's; 0: there is none */

    double ours[LA_MAX_ROUNDS], theirs[LA_MAX_ROUNDS], ratio[LA_MAX_ROUNDS];
    struct bench_stat t, t_peer, t_ratio;
    size_t nb_used;
    int info, peer_info, iterations;
    double peak;     /* operations per ns */
    double bound_ns; /* no schedule of these tasks is shorter; 0: none */
    uint32_t bound_tasks;
    double bound_run; /* ns of the run that it is of */
    double residual;
};

/* --- the problem ------------------------------------------------------------------ */

static size_t dim(const struct la_problem *p, char letter)
{
    return letter == 'm' ? p->m : letter == 'n' ? p->n : p->nrhs;
}

/* Bytes of all operands, copies included. */
static double problem_bytes(const struct la_bench *b)
{
    double sum = 0;

    for (unsigned i = 0; i < LA_OPERANDS; i++) {
        const struct la_operand *x = &b->row->x[i];

        if (x->rows != 0)
            sum += (double)dim(&b->p, x->rows) * (double)dim(&b->p, x->cols) *
                   (double)la_elem_bytes(b->p.t) *
                   (x->is_out ? (b->is_resident ? 3 : 2) : 1);
    }
    return sum;
}

static int no_memory(struct la_bench *b)
{
    char text[CELL];
    struct heddle_text t;

    heddle_text_init(&t, text, sizeof(text));
    heddle_text_bytes(&t, (uint64_t)problem_bytes(b));
    return cli_fail(b->c, "no memory for matrices of %s", text);
}

static int problem_make(struct la_bench *b)
{
    struct heddle_machine_info machine = {.size = sizeof(machine)};
    struct la_problem *p = &b->p;
    const size_t k = p->m < p->n ? p->m : p->n;

    if (heddle_machine_query(&machine) == HEDDLE_OK &&
        machine.memory_available > 0 &&
        problem_bytes(b) > 0.9 * (double)machine.memory_available)
        return no_memory(b);
    for (unsigned i = 0; i < LA_OPERANDS; i++) {
        const struct la_operand *x = &b->row->x[i];
        const size_t rows = dim(p, x->rows), cols = dim(p, x->cols);

        if (x->rows == 0)
            continue;
        p->in[i] = la_array_make(p->t, rows, cols);
        p->out[i] = x->is_out ? la_array_make(p->t, rows, cols) : p->in[i];
        if (p->in[i].p == NULL || p->out[i].p == NULL)
            return no_memory(b);
        la_array_fill(&p->in[i], x->fill, i + 1, p->nthreads);
    }
    p->ipiv = calloc(k + 1, sizeof(*p->ipiv));
    p->tau = la_array_make(p->t, k, 1);
    return p->ipiv == NULL || p->tau.p == NULL ? no_memory(b) : 0;
}

static void problem_restore(struct la_problem *p)
{
    for (unsigned i = 0; i < LA_OPERANDS; i++)
        if (p->row->x[i].is_out)
            la_array_copy(&p->out[i], &p->in[i], p->nthreads);
}

static void problem_free(struct la_problem *p)
{
    for (unsigned i = 0; i < LA_OPERANDS && p->row != NULL; i++) {
        if (p->row->x[i].is_out)
            free(p->out[i].p);
        free(p->in[i].p);
    }
    free(p->ipiv);
    free(p->tau.p);
    free(p->work);
}

static double flops(const struct la_bench *b)
{
    return b->row->flops((double)b->p.m, (double)b->p.n, (double)b->p.nrhs) *
           (la_is_complex(b->p.t) ? 4 : 1);
}

/* --- our side ----------------------------------------------------------------------- */

/* Where --resident puts the matrices: the memory of the first GPU. */
static unsigned find_gpu(heddle_ctx *ctx)
{
    struct heddle_class_info cls = {.size = sizeof(cls)};

    for (unsigned i = 0; heddle_ctx_get_class(ctx, i, &cls) == HEDDLE_OK; i++)
        if (strcmp(cls.kind, "cuda") == 0)
            return cls.memory;
    return 0;
}

static uint64_t bytes_in(heddle_ctx *ctx, unsigned memory)
{
    struct heddle_memory_info m = {.size = sizeof(m)};

    return heddle_ctx_get_memory(ctx, memory, &m) == HEDDLE_OK ? m.bytes_in : 0;
}

/* Hints are not waited for: the bytes are there when their counter says so, or when
 * it has stood still for a second. */
static void await_bytes(heddle_ctx *ctx, unsigned memory, uint64_t goal)
{
    uint64_t last = bytes_in(ctx, memory), moved = heddle_clock_ns();

    while (last < goal && heddle_clock_ns() - moved < HEDDLE_NS_PER_S) {
        uint64_t now;

        heddle_thread_sleep_ns(1000000);
        now = bytes_in(ctx, memory);
        if (now != last)
            moved = heddle_clock_ns();
        last = now;
    }
}

static heddle_status send_matrices(struct la_bench *b, heddle_ctx *ctx,
                                   struct la_call *k)
{
    uint64_t goal = bytes_in(ctx, b->gpu_memory);
    heddle_status st = HEDDLE_OK;

    for (unsigned i = 0; i < LA_OPERANDS && st == HEDDLE_OK; i++) {
        heddle_handle *h;

        for (size_t j = 0; st == HEDDLE_OK && k->x[i] != NULL &&
                           (h = heddle_matrix_column(k->x[i], j)) != NULL;
             j++) {
            goal += heddle_handle_get_bytes(h);
            st = heddle_handle_advise(h, HEDDLE_PREFETCH, b->gpu_memory);
            if (st == HEDDLE_OK)
                st = heddle_handle_advise(h, HEDDLE_PIN, b->gpu_memory);
        }
    }
    if (st == HEDDLE_OK)
        st = heddle_wait(ctx);
    if (st == HEDDLE_OK)
        await_bytes(ctx, b->gpu_memory, goal);
    return st;
}

static heddle_status make_matrices(struct la_bench *b, struct la_call *k)
{
    const struct la_problem *p = &b->p;
    const enum heddle_dtype dtype = la_dtype(p->t);
    heddle_status st = HEDDLE_OK;

    for (unsigned i = 0; i < LA_OPERANDS && st == HEDDLE_OK; i++) {
        const struct la_array *a = &p->out[i];
        const size_t ld = a->m > 0 ? a->m : 1;

        if (a->p == NULL)
            continue;
        st = heddle_matrix_create(k->la, dtype, a->m, a->n,
                                  b->is_resident ? NULL : a->p, ld, &k->x[i]);
        if (st == HEDDLE_OK && b->is_resident)
            st = heddle_matrix_put(k->la, k->x[i], p->in[i].p, ld);
    }
    if (st == HEDDLE_OK && b->row->has_tau) {
        const size_t nb = heddle_matrix_nb(k->x[0]), n = p->tau.m;

        st = heddle_matrix_create_nb(k->la, dtype, nb < n ? nb : n, n, NULL, 0,
                                     nb, &k->t);
    }
    return st;
}

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
               (char *)t.p + (j % heddle_matrix_nb(k->t) + j * m) * bytes,
               bytes);
    free(t.p);
    return st;
}

static heddle_status get_results(struct la_bench *b, struct la_call *k)
{
    const struct la_problem *p = &b->p;
    heddle_status st = HEDDLE_OK;

    for (unsigned i = 0; i < LA_OPERANDS && st == HEDDLE_OK; i++)
        if (b->is_resident && b->row->x[i].is_out)
            st = heddle_matrix_get(k->la, k->x[i], p->out[i].p,
                                   p->out[i].m > 0 ? p->out[i].m : 1);
    if (st == HEDDLE_OK && b->row->has_tau)
        st = get_tau(k);
    return st;
}

/* What the clock sees. */
static heddle_status timed(struct la_bench *b, heddle_ctx *ctx,
                           struct la_call *k, double *ns_out)
{
    const uint64_t start = heddle_clock_ns();
    heddle_status st = HEDDLE_OK, waited;
    int info = 0;

    if (!b->is_resident)
        st = make_matrices(b, k);
    if (st == HEDDLE_OK)
        st = b->row->ours(k);
    waited = heddle_la_wait(k->la, &info);
    if (st == HEDDLE_OK)
        st = waited;
    if (st == HEDDLE_OK && !b->is_resident)
        st = heddle_wait(ctx); /* brings home what a device has */
    *ns_out = (double)(heddle_clock_ns() - start);
    b->info = info != 0 ? info : k->info;
    return st;
}

static int run_ours(struct la_bench *b, heddle_ctx *ctx, double *ns_out)
{
    const struct heddle_la_opts opts = {
        .size = sizeof(opts), .nb = b->nb, .low = b->p.low};
    struct la_call k = {.p = &b->p};
    heddle_status st = heddle_la_create(ctx, &opts, &k.la);

    if (st == HEDDLE_ENOENT)
        return cli_fail(b->c, "%s", heddle_la_missing());
    problem_restore(&b->p);
    b->p.iterations = -1;
    if (st == HEDDLE_OK && b->is_resident) {
        st = make_matrices(b, &k);
        if (st == HEDDLE_OK)
            st = send_matrices(b, ctx, &k);
    }
    bench_settle();
    if (st == HEDDLE_OK)
        st = timed(b, ctx, &k, ns_out);
    if (st == HEDDLE_OK)
        st = get_results(b, &k);
    b->nb_used = heddle_matrix_nb(k.x[0]);
    b->iterations = b->p.iterations;
    for (unsigned i = 0; i < LA_OPERANDS; i++)
        heddle_matrix_destroy(k.x[i]);
    heddle_matrix_destroy(k.t);
    heddle_la_destroy(k.la);
    return st == HEDDLE_OK ? 0 : bench_fail(b->c, ctx, st);
}

/* --- the other side ------------------------------------------------------------------ */

static int run_peer(struct la_bench *b, double *ns_out)
{
    uint64_t start;

    if (b->peer == PEER_CUSOLVER)
        return la_gpu_run(&b->gpu, &b->p, b->is_resident, ns_out, &b->peer_info)
                   ? 0
                   : cli_fail(b->c, "%s", b->gpu.why);
    problem_restore(&b->p);
    la_peer_threads(&b->blas, b->nworkers);
    bench_settle();
    start = heddle_clock_ns();
    b->peer_info = b->row->peer(&b->blas, &b->p);
    *ns_out = (double)(heddle_clock_ns() - start);
    if (b->peer_info == INT_MIN)
        return cli_fail(b->c,
                        "the peer, %s, has no %s for this type, or no memory",
                        b->blas.name, b->row->name);
    return 0;
}

/* --- the steps ------------------------------------------------------------------------ */

static int run_rounds(struct la_bench *b)
{
    const size_t n = b->rounds;
    int rc = 0;

    for (size_t r = 0; r < n + 1 && rc == 0; r++) {
        const size_t at = r > 0 ? r - 1 : 0; /* 0 warms up */

        if (b->peer != PEER_NONE)
            rc = run_peer(b, &b->theirs[at]);
        if (rc == 0)
            rc = run_ours(b, b->ctx, &b->ours[at]);
        b->ratio[at] = b->ours[at] / b->theirs[at];
    }
    if (rc != 0)
        return rc;
    b->t = bench_stat(b->ours, n);
    b->t_peer = bench_stat(b->theirs, n);
    b->t_ratio = bench_stat(b->ratio, n);
    return 0;
}

/* One more run, in a context that writes everything down. */
static int add_bound(struct la_bench *b)
{
    const char *folder = getenv("TMPDIR");
    struct bench_opts o = b->o;
    struct bench_memory memory;
    heddle_ctx *ctx = NULL;
    struct run_bound bound = {0};
    char own[512];
    int rc, closed;

    if (o.log == NULL) {
        int fd;

        snprintf(own, sizeof(own), "%s/heddle-bench-XXXXXX",
                 folder != NULL && folder[0] != '\0' ? folder : "/tmp");
        fd = mkstemp(own);
        if (fd < 0)
            return cli_fail(b->c, "no file can be made in '%s' for the log",
                            own);
        close(fd);
        o.log = own;
    }
    o.log_level = HEDDLE_LOG_GRAPH;
    rc = bench_open(b->c, &o, &memory, &ctx);
    if (rc == 0) {
        rc = run_ours(b, ctx, &b->bound_run);
        closed = bench_close(b->c, &memory, ctx); /* writes the log */
        rc = rc == 0 ? closed : rc;
    }
    if (rc == 0 && run_bound_read(&bound, o.log) != HEDDLE_OK)
        rc = cli_fail(b->c, "there is no bound: %s", bound.why);
    if (rc == 0) {
        b->bound_ns = bound.r.best;
        b->bound_tasks = bound.g->graph.ntasks;
    }
    run_bound_close(&bound);
    if (o.log == own)
        (void)unlink(own);
    return rc;
}

static int open_peer(struct la_bench *b)
{
    char why[320];

    if (!la_peer_open(&b->blas, why, sizeof(why)))
        return cli_fail(b->c, "%s", why);
    if (b->peer == PEER_OPENBLAS && !b->blas.is_openblas)
        return cli_fail(b->c, "the BLAS of this machine, %s, is not OpenBLAS",
                        b->blas.name);
    if (b->peer == PEER_CUSOLVER && !la_gpu_open(&b->gpu, &b->p))
        return cli_fail(b->c, "%s", b->gpu.why);
    return 0;
}

static int open_ours(struct la_bench *b)
{
    struct heddle_ctx_stats s = {.size = sizeof(s)};
    struct bench_opts o = b->o;
    int rc;

    o.log = NULL; /* that is for the run behind the rounds */
    rc = bench_open(b->c, &o, &b->memory, &b->ctx);
    if (rc != 0)
        return rc;
    if (heddle_ctx_get_stats(b->ctx, &s) != HEDDLE_OK)
        return cli_fail(b->c, "the context does not answer");
    b->nworkers = s.nworkers;
    snprintf(b->sched, sizeof(b->sched), "%s", s.sched);
    b->gpu_memory = find_gpu(b->ctx);
    if (b->is_resident && b->gpu_memory == 0)
        return cli_fail(b->c, "--resident needs a GPU of CUDA: give --devices "
                              "cuda");
    return 0;
}

static int run_steps(struct la_bench *b)
{
    int rc = problem_make(b);

    if (rc == 0)
        rc = open_peer(b);
    if (rc == 0)
        rc = open_ours(b);
    if (rc != 0)
        return rc;
    b->peak = b->peer == PEER_CUSOLVER
                  ? la_gpu_peak(&b->gpu, &b->p)
                  : la_peer_peak(&b->blas, b->p.t, b->p.n, b->nworkers);
    rc = run_rounds(b);
    if (rc == 0 && b->check && b->info == 0)
        b->residual = b->row->residual(&b->p);
    if (rc == 0) {
        rc = bench_close(b->c, &b->memory, b->ctx);
        b->ctx = NULL;
    }
    if (rc == 0 && !b->no_bound)
        rc = add_bound(b);
    return rc;
}

/* --- results ------------------------------------------------------------------------- */

static const char *peer_text(const struct la_bench *b)
{
    return b->peer == PEER_CUSOLVER ? b->gpu.raw.model : b->blas.name;
}

static void json_number(struct heddle_json *j, const char *key, bool is_known,
                        double v)
{
    heddle_json_key(j, key);
    if (is_known && isfinite(v))
        heddle_json_double(j, v);
    else
        heddle_json_null(j);
}

static const char *refine_name(const struct la_bench *b)
{
    return b->p.refined.how == HEDDLE_LA_REFINE_GMRES ? "gmres" : "classic";
}

static void json_refined(struct heddle_json *j, const struct la_bench *b)
{
    const struct heddle_la_refined *r = &b->p.refined;

    heddle_json_key_int(j, "iterations", b->iterations);
    heddle_json_key_str(j, "refine", refine_name(b));
    heddle_json_key_str(j, "low", heddle_la_low_name(r->low));
    heddle_json_key_int(j, "tries", r->tries);
    heddle_json_key_bool(j, "fell_back", r->fell_back != 0);
}

static int print_json(struct la_bench *b)
{
    const bool has_peer = b->peer != PEER_NONE;
    struct heddle_machine_info machine = {.size = sizeof(machine)};
    struct heddle_json j;

    if (heddle_machine_query(&machine) != HEDDLE_OK)
        machine.model[0] = '\0';
    heddle_json_init_file(&j, b->c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", b->row->name);
    heddle_json_key_str(&j, "version", heddle_version());
    heddle_json_key_str(&j, "machine", machine.model);
    heddle_json_key_str(&j, "compiler", heddle_build.compiler);
    heddle_json_key_uint(&j, "workers", b->nworkers);
    heddle_json_key_str(&j, "sched", b->sched);
    heddle_json_key_bool(&j, "bound", !b->o.no_bind);
    heddle_json_key_str(&j, "type", b->type);
    heddle_json_key_uint(&j, "m", b->p.m);
    heddle_json_key_uint(&j, "n", b->p.n);
    if (b->row->nrhs != 0)
        heddle_json_key_uint(&j, "nrhs", b->p.nrhs);
    heddle_json_key_uint(&j, "nb", b->nb_used);
    heddle_json_key_str(&j, "devices", b->o.devices);
    heddle_json_key_bool(&j, "resident", b->is_resident);
    heddle_json_key_uint(&j, "rounds", b->rounds);
    heddle_json_key_double(&j, "seconds", b->t.median / 1e9);
    heddle_json_key_double(&j, "seconds_min", b->t.min / 1e9);
    heddle_json_key_double(&j, "seconds_max", b->t.max / 1e9);
    heddle_json_key_double(&j, "gflops", flops(b) / b->t.median);
    heddle_json_key_str(&j, "peer", peer_names[b->peer]);
    if (has_peer)
        heddle_json_key_str(&j, "peer_is", peer_text(b));
    json_number(&j, "peer_seconds", has_peer, b->t_peer.median / 1e9);
    json_number(&j, "peer_gflops", has_peer, flops(b) / b->t_peer.median);
    json_number(&j, "ratio", has_peer, b->t_ratio.median);
    json_number(&j, "ratio_min", has_peer, b->t_ratio.min);
    json_number(&j, "ratio_max", has_peer, b->t_ratio.max);
    heddle_json_key_str(&j, "peak_of",
                        b->peer == PEER_CUSOLVER ? "gpu" : "cores");
    json_number(&j, "peak_gflops", b->peak > 0, b->peak);
    json_number(&j, "percent_of_peak", b->peak > 0,
                100 * flops(b) / b->t.median / b->peak);
    json_number(&j, "bound_seconds", b->bound_ns > 0, b->bound_ns / 1e9);
    json_number(&j, "bound_run_seconds", b->bound_ns > 0, b->bound_run / 1e9);
    json_number(&j, "percent_of_bound", b->bound_ns > 0,
                100 * b->bound_ns / b->bound_run);
    if (!b->no_bound)
        heddle_json_key_uint(&j, "tasks", b->bound_tasks);
    json_number(&j, "residual", b->check && b->info == 0, b->residual);
    heddle_json_key_double(&j, "residual_limit", b->row->limit);
    if (b->iterations >= 0)
        json_refined(&j, b);
    heddle_json_key_int(&j, "info", b->info);
    return bench_json_end(b->c, &j);
}

static const char *time_text(char cell[CELL], double ns)
{
    struct heddle_text t;

    heddle_text_init(&t, cell, CELL);
    heddle_text_ns(&t, (uint64_t)(ns + 0.5));
    return cell;
}

static void text_refined(const struct la_bench *b)
{
    const struct heddle_la_refined *r = &b->p.refined;

    fprintf(b->c->out, "refined   %d times (%s), factors: %s%s%s\n",
            b->iterations, refine_name(b), heddle_la_low_name(r->low),
            r->tries > 1 ? " after others had failed" : "",
            r->fell_back != 0 ? ", then in full precision" : "");
}

static void print_text(const struct la_bench *b)
{
    FILE *f = b->c->out;
    char cell[CELL];

    fprintf(f, "%s %s %zu x %zu", b->row->name, b->type, b->p.m, b->p.n);
    if (b->row->nrhs != 0)
        fprintf(f, ", %zu right-hand sides", b->p.nrhs);
    fprintf(f, ", blocks of %zu, %u worker%s, devices %s%s\n", b->nb_used,
            b->nworkers, b->nworkers == 1 ? "" : "s", b->o.devices,
            b->is_resident ? ", resident" : "");
    fprintf(f, "time      %s, %.1f GFLOP/s\n", time_text(cell, b->t.median),
            flops(b) / b->t.median);
    if (b->peer != PEER_NONE)
        fprintf(f,
                "peer      %s, %.1f GFLOP/s: %s\n"
                "ratio     %.3f [%.3f..%.3f]\n",
                time_text(cell, b->t_peer.median), flops(b) / b->t_peer.median,
                peer_text(b), b->t_ratio.median, b->t_ratio.min,
                b->t_ratio.max);
    if (b->peak > 0)
        fprintf(f, "speed     %.1f %% of gemm's %.1f GFLOP/s on the %s\n",
                100 * flops(b) / b->t.median / b->peak, b->peak,
                b->peer == PEER_CUSOLVER ? "GPU" : "cores");
    if (b->bound_ns > 0)
        fprintf(
            f,
            "bound     %s for the %u tasks of one more run: it had %.1f %% of "
            "the best possible speed\n",
            time_text(cell, b->bound_ns), b->bound_tasks,
            100 * b->bound_ns / b->bound_run);
    if (b->iterations >= 0)
        text_refined(b);
    if (b->check && b->info == 0)
        fprintf(f, "residual  %.3g, at most %g\n", b->residual, b->row->limit);
    if (b->info != 0)
        fprintf(f, "info      %d\n", b->info);
}

static int report(struct la_bench *b)
{
    int rc = 0;

    if (b->c->json) {
        rc = print_json(b);
        if (rc != 0)
            return rc;
    } else {
        print_text(b);
    }
    if (b->info != 0)
        return cli_fail(b->c, "%s ended with info %d", b->row->name, b->info);
    if (b->check && !(b->residual <= b->row->limit))
        return cli_fail(b->c, "the result is wrong: the residual is %g",
                        b->residual);
    return 0;
}

/* --- the command ----------------------------------------------------------------------- */

static int parse_sizes(struct la_bench *b)
{
    struct la_problem *p = &b->p;

    if (b->row->is_square && b->m != 0 && b->m != b->n)
        return cli_error(b->c, "the matrix of %s is square: leave --m out",
                         b->row->name);
    if (b->row->tall != 0 && b->m != 0 && b->m < b->n)
        return cli_error(b->c, "%s needs at least as many rows as columns",
                         b->row->name);
    if (b->row->nrhs == 0 && b->nrhs != 0)
        return cli_error(b->c, "%s has no right-hand sides: leave --nrhs out",
                         b->row->name);
    p->n = b->n;
    p->m = b->m != 0 ? b->m : b->row->tall != 0 ? b->row->tall * b->n : b->n;
    p->nrhs = b->nrhs != 0 ? b->nrhs : b->row->nrhs == 'n' ? b->n : 1;
    if (strcmp(b->nb_text, "auto") != 0 &&
        (heddle_parse_u64(b->nb_text, &b->nb) != HEDDLE_OK || b->nb == 0 ||
         b->nb > MAX_NB))
        return cli_error(b->c,
                         "--nb is '%s', but it must be auto or a number "
                         "from 1 to %d",
                         b->nb_text, (int)MAX_NB);
    return 0;
}

static int parse_peer(struct la_bench *b)
{
    if (b->peer_name == NULL)
        b->peer_name = b->is_resident ? "cusolver" : "lapack";
    for (b->peer = PEER_LAPACK; b->peer <= PEER_NONE; b->peer++)
        if (strcmp(peer_names[b->peer], b->peer_name) == 0)
            break;
    if (b->peer > PEER_NONE)
        return cli_error(b->c,
                         "there is no peer '%s', but there are openblas, "
                         "lapack, cusolver and none",
                         b->peer_name);
    if (b->peer == PEER_CUSOLVER &&
        (b->p.t != LA_D || b->row->gpu == LA_GPU_NONE))
        return cli_error(b->c, "cusolver is a peer of potrf, getrf, geqrf and "
                               "gemm in type d only");
    return 0;
}

static int parse_low(struct la_bench *b)
{
    if (b->low_name == NULL)
        return 0;
    if (strstr(b->row->name, "_mixed") == NULL)
        return cli_error(b->c,
                         "%s does not refine: --low is of gesv_mixed and "
                         "posv_mixed",
                         b->row->name);
    while (b->p.low < HEDDLE_LA_LOW_HALVES &&
           strcmp(heddle_la_low_name(b->p.low), b->low_name) != 0)
        b->p.low++;
    if (strcmp(heddle_la_low_name(b->p.low), b->low_name) != 0)
        return cli_error(b->c,
                         "--low is '%s', but it must be auto, single, tf32, "
                         "half or halves",
                         b->low_name);
    return 0;
}

static int parse(struct la_bench *b, int argc, char **argv)
{
    const char *const all = "sdcz";
    char what[48];
    const struct cli_opt opts[] = {
        {"--n", CLI_UINT, &b->n, 1, MAX_N},
        {"--m", CLI_UINT, &b->m, 1, MAX_N},
        {"--nrhs", CLI_UINT, &b->nrhs, 1, MAX_N},
        {"--type", CLI_STRING, &b->type, 0, 0},
        {"--nb", CLI_STRING, &b->nb_text, 0, 0},
        {"--rounds", CLI_UINT, &b->rounds, 1, LA_MAX_ROUNDS},
        {"--peer", CLI_STRING, &b->peer_name, 0, 0},
        {"--low", CLI_STRING, &b->low_name, 0, 0},
        {"--check", CLI_FLAG, &b->check, 0, 0},
        {"--workers", CLI_UINT, &b->o.workers, 1, 4096},
        {"--sched", CLI_STRING, &b->o.sched, 0, 0},
        {"--devices", CLI_STRING, &b->o.devices, 0, 0},
        {"--device-memory", CLI_UINT, &b->o.device_memory, 1, SIZE_MAX},
        {"--resident", CLI_FLAG, &b->is_resident, 0, 0},
        {"--no-bound", CLI_FLAG, &b->no_bound, 0, 0},
        {"--no-bind", CLI_FLAG, &b->o.no_bind, 0, 0},
        {"--log", CLI_STRING, &b->o.log, 0, 0},
        {0}};
    const char *letter;
    int rc;

    snprintf(what, sizeof(what), "bench %s", b->row->name);
    rc = cli_parse(b->c, what, argc, argv, opts, NULL);
    if (rc != 0)
        return rc;
    letter = strlen(b->type) == 1 ? strchr(all, b->type[0]) : NULL;
    if (letter == NULL)
        return cli_error(b->c,
                         "there is no type '%s', but there are s, d, c "
                         "and z",
                         b->type);
    b->p.t = (enum la_type)(letter - all);
    if (strchr(b->row->types, b->type[0]) == NULL)
        return cli_error(b->c, "%s has no type %s", b->row->name, b->type);
    if (b->o.log != NULL && b->no_bound)
        return cli_error(b->c, "--log and --no-bound exclude each other");
    rc = parse_sizes(b);
    if (rc == 0)
        rc = parse_low(b);
    return rc == 0 ? parse_peer(b) : rc;
}

static const struct la_row *find_row(const char *name)
{
    const struct la_row *r = la_rows;

    while (r->name != NULL && strcmp(r->name, name) != 0)
        r++;
    return r;
}

static int la_run(struct cli *c, int argc, char **argv)
{
    struct la_bench *b = calloc(1, sizeof(*b));
    int rc;

    if (b == NULL)
        return cli_fail(c, "no memory");
    b->c = c;
    b->row = b->p.row = find_row(argv[0]);
    b->n = 2048;
    b->rounds = 5;
    b->type = "d";
    b->nb_text = "auto";
    b->o.devices = "none";
    b->p.nthreads = 1;
    rc = parse(b, argc, argv);
    if (b->o.sched == NULL && strcmp(b->o.devices, "none") == 0)
        b->o.sched = "prio"; /* panels first */
    if (rc == 0) {
        struct heddle_machine_info machine = {.size = sizeof(machine)};

        if (heddle_machine_query(&machine) == HEDDLE_OK)
            b->p.nthreads = machine.cpus > 0 ? machine.cpus : 1;
        rc = run_steps(b);
    }
    if (rc == 0)
        rc = report(b);
    if (b->ctx != NULL)
        heddle_ctx_destroy(b->ctx);
    la_gpu_close(&b->gpu);
    problem_free(&b->p);
    free(b);
    return rc;
}

#define HEDDLE_BENCH_LA(id, text)                                              \
    const struct heddle_cmd heddle_bench_##id = {                              \
        .name = #id,                                                           \
        .help = text,                                                          \
        .usage = "heddle bench " #id " [options]\n" LA_USAGE,                  \
        .run = la_run,                                                         \
    };
#define LA_USAGE                                                               \
    "\n"                                                                       \
    "  --n, --m         order, or columns and rows (default 2048; M is N)\n"   \
    "  --nrhs           right-hand sides, where there are some\n"              \
    "  --type           s, d (default), c or z\n"                              \
    "  --nb             width of block columns, or auto\n"                     \
    "  --rounds         of each side in turn (default 5)\n"                    \
    "  --peer           lapack (the machine's, default), openblas (the "       \
    "same,\n"                                                                  \
    "                   but no other), cusolver (default with --resident) "    \
    "or\n"                                                                     \
    "                   none\n"                                                \
    "  --low            of gesv_mixed and posv_mixed on a GPU: auto, single, " \
    "tf32,\n"                                                                  \
    "                   half or halves\n"                                      \
    "  --check          compute the residual, which must be small\n"           \
    "  --workers        threads of either side (default: all cores)\n"         \
    "  --sched          scheduler, see 'heddle info' (default on cores: "      \
    "prio)\n"                                                                  \
    "  --devices        as in HEDDLE_DEVICES: cuda (default none)\n"           \
    "  --device-memory  bytes of a device to use\n"                            \
    "  --resident       the matrices are in the GPU's memory before and "      \
    "after\n"                                                                  \
    "  --no-bound       without the run that tells the best possible time\n"   \
    "  --log            keep the log of that run in a file\n"                  \
    "  --no-bind        do not bind workers to cores\n"                        \
    "  --json           one JSON object\n"                                     \
    "Ratios are our time over the peer's, from alternating rounds.\n"
#include "bench_la.def"
