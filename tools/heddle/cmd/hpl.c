/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hpl: the Linpack benchmark: one large dense system of equations.
 *
 * Purpose    measures what HPL measures: the matrix N x (N + 1) of
 *            uniform numbers, its LU factorisation with partial pivoting, the solve
 *            with the triangle that is left, and the scaled residual with the
 *            matrix made anew. The line of the result reads as HPL's.
 * Clock      from the first task to the solution, without making the matrix. Two small
 *            factorisations load libraries and kernels before.
 * Size       without an option: users of HPL take what fills the memory. So does this
 *            command, up to 80 % of what is available (of the GPU's budget, where that is
 *            less), but no more than about half a minute at the rate of the small run.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "bench/la/la.h"
#include "common/cut.h"
#include "common/progress.h"
#include "heddle/machine.h"

enum { MAX_N = 1000000, MAX_NB = 65536, SEED = 42 };
/* Tasks in flight: all of them, so that submitting does not work on them and the
 * bar knows their number. */
enum { WINDOW = 4000000, TICK_NS = 100000000 };

#define GOOD_RESIDUAL 16.0
#define MEMORY_SHARE  0.8
#define SECONDS       30.0

enum { ROUND = 256 }; /* orders are multiples of it */

struct hpl {
    struct cli *c;
    const char *type, *nb_text;
    uint64_t n, nb;
    bool no_progress;
    struct bench_opts o;
    struct bench_memory memory_used;
    heddle_ctx *ctx;
    struct heddle_ctx_stats stats;
    unsigned nthreads;
    enum la_type t;
    struct la_array a; /* N x (N + 1), the right-hand side last */
    int *ipiv;
    double *x;
    size_t nb_used;
    int info;
    double ns, load_ns, residual;
    uint64_t begin_ns; /* of the clock */
    uint64_t memory;   /* available on the host; 0: unknown */
    unsigned ngpus, gpu_memory;
    char devices[128];  /* their names, or "none" */
    uint64_t full_n;    /* what would fill the memory */
    const char *reason; /* why it is that n */
};

static double flops(const struct hpl *h)
{
    const double n = (double)h->n;

    return (2.0 / 3 * n * n * n + 1.5 * n * n) * (la_is_complex(h->t) ? 4 : 1);
}

/* --- the size ------------------------------------------------------------- */

static uint64_t rounded(double n)
{
    return n < ROUND ? (n < 64 ? 64 : (uint64_t)n) : (uint64_t)n / ROUND * ROUND;
}

/* 80 % of the memory, without the GPU's where there is none. */
static uint64_t full_order(const struct hpl *h)
{
    struct heddle_memory_info m = {.size = sizeof(m)};
    double bytes = h->memory > 0 ? (double)h->memory : 1e9;

    if (h->ngpus > 0 && heddle_ctx_get_memory(h->ctx, h->gpu_memory, &m) == HEDDLE_OK &&
        (double)m.budget * h->ngpus < bytes)
        bytes = (double)m.budget * h->ngpus;
    return rounded(sqrt(bytes * MEMORY_SHARE / (double)la_elem_bytes(h->t)));
}

static void choose_order(struct hpl *h, const struct la_warm *w)
{
    const uint64_t fast = rounded(la_warm_order(w, SECONDS));

    h->full_n = full_order(h);
    h->reason = "it was given";
    if (h->n != 0)
        return;
    h->n = fast < h->full_n ? fast : h->full_n;
    h->n = h->n > MAX_N ? MAX_N : h->n;
    h->reason = fast < h->full_n ? "half a minute at the rate of a small run, at most"
                                 : "it fills 80 % of the memory";
}

/* --- the context ------------------------------------------------------------ */

static void name_devices(struct hpl *h)
{
    struct heddle_class_info cls = {.size = sizeof(cls)};
    struct heddle_text t;
    unsigned n = 0;

    heddle_text_init(&t, h->devices, sizeof(h->devices));
    for (unsigned i = 1; heddle_ctx_get_class(h->ctx, i, &cls) == HEDDLE_OK; i++)
        heddle_text_add(&t, "%s%s", n++ > 0 ? "," : "", cls.name);
    if (n == 0)
        heddle_text_str(&t, "none");
    h->ngpus = la_warm_gpus(h->ctx, &h->gpu_memory);
}

/* What is there; on cores alone a scheduler that takes panels first. */
static int hpl_open(struct hpl *h)
{
    int rc = bench_open(h->c, &h->o, &h->memory_used, &h->ctx);

    if (rc != 0)
        return rc;
    name_devices(h);
    if (h->o.sched != NULL || strcmp(h->devices, "none") != 0)
        return 0;
    rc = bench_close(h->c, &h->memory_used, h->ctx);
    h->ctx = NULL;
    h->o.sched = "prio";
    return rc == 0 ? bench_open(h->c, &h->o, &h->memory_used, &h->ctx) : rc;
}

static int hpl_warm_up(struct hpl *h)
{
    struct la_warm w = {.ctx = h->ctx,
                        .routine = "getrf",
                        .t = h->t,
                        .nb = h->nb,
                        .has_gpu = h->ngpus > 0,
                        .memory = h->memory};
    const uint64_t start = heddle_clock_ns();
    heddle_status st;
    size_t nb;

    if (heddle_la_missing()[0] != '\0')
        return cli_fail(h->c, "%s", heddle_la_missing());
    st = la_warm_up(&w, h->n);
    if (st == HEDDLE_OK) {
        choose_order(h, &w);
        st = la_warm_width(&w, h->n, &nb);
    }
    h->load_ns = (double)(heddle_clock_ns() - start);
    return st == HEDDLE_OK ? 0 : bench_fail(h->c, h->ctx, st);
}

static int hpl_fits(const struct hpl *h)
{
    const double bytes = (double)h->n * (double)(h->n + 1) * (double)la_elem_bytes(h->t);
    char a[32], b[32];
    struct heddle_text ta, tb;

    if (h->memory == 0 || bytes <= 0.95 * (double)h->memory)
        return 0;
    heddle_text_init(&ta, a, sizeof(a));
    heddle_text_bytes(&ta, (uint64_t)bytes);
    heddle_text_init(&tb, b, sizeof(b));
    heddle_text_bytes(&tb, h->memory);
    return cli_fail(h->c, "order %" PRIu64 " needs %s of memory, but %s is available", h->n, a, b);
}

static int hpl_matrix(struct hpl *h)
{
    h->a = la_array_make(h->t, h->n, h->n + 1);
    h->ipiv = calloc(h->n + 1, sizeof(*h->ipiv));
    h->x = calloc(2 * h->n + 1, sizeof(*h->x));
    if (h->a.p == NULL || h->ipiv == NULL || h->x == NULL)
        return cli_fail(h->c, "no memory for a matrix of order %" PRIu64, h->n);
    la_array_fill(&h->a, LA_RANDOM, SEED, h->nthreads);
    return 0;
}

static int hpl_prepare(struct hpl *h)
{
    struct heddle_machine_info m = {.size = sizeof(m)};
    int rc;

    if (heddle_machine_query(&m) == HEDDLE_OK)
        h->memory = m.memory_available;
    h->nthreads = m.cpus > 0 ? m.cpus : 1;
    h->o.window = WINDOW;
    rc = hpl_fits(h);
    if (rc == 0)
        rc = hpl_open(h);
    if (rc == 0)
        rc = hpl_warm_up(h);
    if (rc == 0)
        rc = hpl_matrix(h);
    if (rc != 0)
        return rc;
    h->stats.size = sizeof(h->stats);
    if (heddle_ctx_get_stats(h->ctx, &h->stats) != HEDDLE_OK)
        return cli_fail(h->c, "the context does not answer");
    return 0;
}

/* Which size and why, before it takes its time. */
static void announce(const struct hpl *h)
{
    char a[32];
    struct heddle_text t;

    if (h->c->json)
        return;
    heddle_text_init(&t, a, sizeof(a));
    heddle_text_bytes(&t, (uint64_t)la_array_bytes(&h->a));
    fprintf(h->c->out,
            "order %" PRIu64 " (%s): %s; --n %" PRIu64 " would fill 80 %% of the memory\n"
            "%u worker%s, devices %s, scheduler %s, loading took %.2f s\n",
            h->n, a, h->reason, h->full_n, h->stats.nworkers, h->stats.nworkers == 1 ? "" : "s",
            h->devices, h->stats.sched, h->load_ns / 1e9);
    fflush(h->c->out);
}

/* --- the run ------------------------------------------------------------------ */

/* Waits in slices, and tells how far it is. */
static heddle_status watch(struct hpl *h)
{
    struct heddle_ctx_stats s = {.size = sizeof(s)};
    struct progress p;
    heddle_status st;

    if (heddle_ctx_get_stats(h->ctx, &s) != HEDDLE_OK)
        s.submitted = 0;
    progress_begin(&p, h->c, !h->no_progress, s.submitted - h->stats.submitted);
    do {
        st = heddle_wait_for(h->ctx, TICK_NS);
        if (heddle_ctx_get_stats(h->ctx, &s) == HEDDLE_OK)
            progress_tick(&p, s.done - h->stats.done);
    } while (st == HEDDLE_ETIMEDOUT); /* no task has a deadline */
    progress_end(&p);
    return st;
}

static int hpl_solve(struct hpl *h)
{
    const struct heddle_la_opts opts = {.size = sizeof(opts), .nb = h->nb, .routine = "getrf"};
    heddle_la *la = NULL;
    heddle_matrix *a = NULL;
    heddle_status st = heddle_la_create(h->ctx, &opts, &la), waited;
    uint64_t start;

    if (st == HEDDLE_ENOENT)
        return cli_fail(h->c, "%s", heddle_la_missing());
    start = h->begin_ns = heddle_clock_ns();
    if (st == HEDDLE_OK)
        st = heddle_matrix_create(la, la_dtype(h->t), h->a.m, h->a.n, h->a.p, h->a.m, &a);
    if (st == HEDDLE_OK)
        st = heddle_la_getrf(la, a, h->ipiv);
    if (st == HEDDLE_OK)
        st = watch(h);
    waited = la != NULL ? heddle_la_wait(la, &h->info) : HEDDLE_OK;
    if (st == HEDDLE_OK && h->info == 0)
        la_back_solve(&h->a, h->x);
    h->ns = (double)(heddle_clock_ns() - start);
    h->nb_used = heddle_matrix_nb(a);
    heddle_matrix_destroy(a);
    heddle_la_destroy(la);
    st = st == HEDDLE_OK ? waited : st;
    return st == HEDDLE_OK ? 0 : bench_fail(h->c, h->ctx, st);
}

static void hpl_print(const struct hpl *h)
{
    const bool is_good = h->info == 0 && h->residual < GOOD_RESIDUAL;

    fprintf(h->c->out,
            "T/V                N    NB     P     Q               Time        "
            "         Gflops\n"
            "%-12s%8" PRIu64 " %5zu %5d %5u %18.2f     %18.4e\n",
            "HEDDLE", h->n, h->nb_used, 1, h->stats.nworkers, h->ns / 1e9, flops(h) / h->ns);
    fprintf(h->c->out,
            "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)= %18.8e ...... "
            "%s\n",
            h->residual, is_good ? "PASSED" : "FAILED");
}

static int hpl_json(const struct hpl *h)
{
    struct heddle_machine_info m = {.size = sizeof(m)};
    struct heddle_json j;

    if (heddle_machine_query(&m) != HEDDLE_OK)
        m.model[0] = '\0';
    heddle_json_init_file(&j, h->c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "hpl");
    heddle_json_key_str(&j, "version", heddle_version());
    heddle_json_key_str(&j, "machine", m.model);
    heddle_json_key_str(&j, "type", h->type);
    heddle_json_key_uint(&j, "n", h->n);
    heddle_json_key_uint(&j, "nb", h->nb_used);
    heddle_json_key_uint(&j, "workers", h->stats.nworkers);
    heddle_json_key_str(&j, "sched", h->stats.sched);
    heddle_json_key_str(&j, "devices", h->devices);
    heddle_json_key_str(&j, "size", h->reason);
    heddle_json_key_uint(&j, "full_n", h->full_n);
    heddle_json_key_double(&j, "loading_seconds", h->load_ns / 1e9);
    heddle_json_key_double(&j, "seconds", h->ns / 1e9);
    heddle_json_key_double(&j, "gflops", flops(h) / h->ns);
    heddle_json_key(&j, "residual");
    if (isfinite(h->residual))
        heddle_json_double(&j, h->residual);
    else
        heddle_json_null(&j);
    heddle_json_key_double(&j, "residual_limit", GOOD_RESIDUAL);
    heddle_json_key_bool(&j, "passed", h->info == 0 && h->residual < GOOD_RESIDUAL);
    heddle_json_key_int(&j, "info", h->info);
    return bench_json_end(h->c, &j);
}

static int hpl_steps(struct hpl *h)
{
    int rc = hpl_prepare(h);

    if (rc == 0) {
        announce(h);
        rc = hpl_solve(h);
    }
    if (rc != 0)
        return rc;
    h->residual = NAN;
    if (h->info == 0) {
        la_array_fill(&h->a, LA_RANDOM, SEED, h->nthreads);
        h->residual = la_check_hpl(&h->a, h->x, h->nthreads);
    }
    if (h->c->json)
        rc = hpl_json(h);
    else
        hpl_print(h);
    if (rc == 0 && h->info != 0)
        rc = cli_fail(h->c, "the matrix is singular: pivot %d is zero", h->info);
    if (rc == 0 && !(h->residual < GOOD_RESIDUAL))
        rc = cli_fail(h->c, "the solution is wrong: the residual is %g", h->residual);
    return rc;
}

static int hpl_parse(struct hpl *h, int argc, char **argv)
{
    const char *const all = "sdcz";
    const struct cli_opt opts[] = {{"--n", CLI_UINT, &h->n, 1, MAX_N},
                                   {"--nb", CLI_STRING, &h->nb_text, 0, 0},
                                   {"--type", CLI_STRING, &h->type, 0, 0},
                                   {"--workers", CLI_UINT, &h->o.workers, 1, 4096},
                                   {"--sched", CLI_STRING, &h->o.sched, 0, 0},
                                   {"--devices", CLI_STRING, &h->o.devices, 0, 0},
                                   {"--device-memory", CLI_UINT, &h->o.device_memory, 1, SIZE_MAX},
                                   {"--log", CLI_OUTPUT, &h->o.log, 0, 0},
                                   {"--no-bind", CLI_FLAG, &h->o.no_bind, 0, 0},
                                   {"--no-progress", CLI_FLAG, &h->no_progress, 0, 0},
                                   {0}};
    const char *letter;
    const int rc = cli_parse(h->c, "hpl", argc, argv, opts, NULL);

    if (rc != 0)
        return rc;
    letter = strlen(h->type) == 1 ? strchr(all, h->type[0]) : NULL;
    if (letter == NULL)
        return cli_error(h->c, "there is no type '%s', but there are s, d, c and z", h->type);
    h->t = (enum la_type)(letter - all);
    if (strcmp(h->nb_text, "auto") != 0 &&
        (heddle_parse_u64(h->nb_text, &h->nb) != HEDDLE_OK || h->nb == 0 || h->nb > MAX_NB))
        return cli_error(h->c,
                         "--nb is '%s', but it must be auto or a number from 1 "
                         "to %d",
                         h->nb_text, (int)MAX_NB);
    return 0;
}

static int hpl_run(struct cli *c, int argc, char **argv)
{
    struct hpl h = {.c = c, .type = "d", .nb_text = "auto"};
    int rc;

    rc = hpl_parse(&h, argc, argv);
    if (rc == 0)
        rc = hpl_steps(&h);
    if (h.ctx != NULL) {
        const int closed = bench_close(c, &h.memory_used, h.ctx);

        rc = rc == 0 ? closed : rc;
        if (rc == 0 && h.o.log != NULL)
            rc = cut_file(c, h.o.log, h.begin_ns); /* without the small runs */
    }
    la_array_free(&h.a);
    free(h.ipiv);
    free(h.x);
    return rc;
}

const struct heddle_cmd heddle_cmd_hpl = {
    .name = "hpl",
    .help = "solves a large dense system of equations, as HPL does",
    .usage = "heddle hpl [--n N] [--nb NB] [--type T] [--workers W] [--sched S]\n"
             "    [--devices LIST] [--device-memory BYTES] [--log FILE] "
             "[--no-bind]\n"
             "    [--no-progress] [--json]\n"
             "\n"
             "  --n              order (default: 80 % of the memory, the GPU's where there\n"
             "                   is one, but no more than about half a minute)\n"
             "  --nb             width of block columns, or auto (default)\n"
             "  --type           s, d (default), c or z\n"
             "  --workers        threads that run tasks (default: all cores)\n"
             "  --sched          scheduler, see 'heddle info' (default on cores: "
             "prio)\n"
             "  --devices        as in HEDDLE_DEVICES (default: what is there); none: the\n"
             "                   cores alone\n"
             "  --device-memory  bytes of a device to use\n"
             "  --log            keep the log of the run in a file\n"
             "  --no-bind        do not bind workers to cores\n"
             "  --no-progress    no progress bar\n"
             "  --json           one JSON object\n"
             "A residual below 16 is PASSED.\n",
    .run = hpl_run,
};
