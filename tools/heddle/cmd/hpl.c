/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hpl: the Linpack benchmark: one large dense system of equations.
 *
 * Purpose    what is measured is what HPL measures: the matrix N x (N + 1) of
 *            uniform numbers, its LU factorisation with partial pivoting, the solve
 *            with the triangle that is left, and the scaled residual with the
 *            matrix made anew. The line of the result reads as HPL's.
 * Clock      from the first task to the solution, without making the matrix.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "bench/la/la.h"
#include "common/progress.h"
#include "heddle/machine.h"

enum { MAX_N = 1000000, MAX_NB = 65536, SEED = 42 };
/* Tasks in flight: all of them, so that submitting does not work on them and the
 * bar knows their number. */
enum { WINDOW = 4000000, TICK_NS = 100000000 };

#define GOOD_RESIDUAL 16.0

struct hpl {
    struct cli *c;
    const char *type, *nb_text;
    uint64_t n, nb;
    bool no_progress;
    struct bench_opts o;
    struct bench_memory memory;
    heddle_ctx *ctx;
    struct heddle_ctx_stats stats;
    unsigned nthreads;
    enum la_type t;
    struct la_array a; /* N x (N + 1), the right-hand side last */
    int *ipiv;
    double *x;
    size_t nb_used;
    int info;
    double ns, residual;
};

/* Half of the memory, when nobody says how large. */
static uint64_t auto_order(uint64_t available)
{
    const double n = sqrt((double)available / 2 / sizeof(double));

    return available == 0 || n > 8192 ? 8192 : n < 64 ? 64 : (uint64_t)n;
}

static double flops(const struct hpl *h)
{
    const double n = (double)h->n;

    return (2.0 / 3 * n * n * n + 1.5 * n * n) * (la_is_complex(h->t) ? 4 : 1);
}

static int hpl_prepare(struct hpl *h)
{
    struct heddle_machine_info m = {.size = sizeof(m)};
    char a[32], b[32];
    struct heddle_text ta, tb;
    double bytes;

    if (heddle_machine_query(&m) != HEDDLE_OK)
        m.memory_available = 0;
    h->nthreads = m.cpus > 0 ? m.cpus : 1;
    if (h->n == 0)
        h->n = auto_order(m.memory_available);
    bytes = (double)h->n * (double)(h->n + 1) * (double)la_elem_bytes(h->t);
    heddle_text_init(&ta, a, sizeof(a));
    heddle_text_bytes(&ta, (uint64_t)bytes);
    heddle_text_init(&tb, b, sizeof(b));
    heddle_text_bytes(&tb, m.memory_available);
    if (m.memory_available > 0 && bytes > 0.95 * (double)m.memory_available)
        return cli_fail(h->c,
                        "order %" PRIu64 " needs %s of memory, but %s is "
                        "available",
                        h->n, a, b);
    h->a = la_array_make(h->t, h->n, h->n + 1);
    h->ipiv = calloc(h->n + 1, sizeof(*h->ipiv));
    h->x = calloc(2 * h->n + 1, sizeof(*h->x));
    if (h->a.p == NULL || h->ipiv == NULL || h->x == NULL)
        return cli_fail(h->c, "no memory for a matrix of %s", a);
    la_array_fill(&h->a, LA_RANDOM, SEED, h->nthreads);
    h->o.window = WINDOW;
    if (bench_open(h->c, &h->o, &h->memory, &h->ctx) != 0)
        return 1;
    h->stats.size = sizeof(h->stats);
    if (heddle_ctx_get_stats(h->ctx, &h->stats) != HEDDLE_OK)
        return cli_fail(h->c, "the context does not answer");
    return 0;
}

/* Waits in slices, and tells how far it is. */
static heddle_status watch(struct hpl *h)
{
    struct heddle_ctx_stats s = {.size = sizeof(s)};
    struct progress p;
    heddle_status st;

    if (heddle_ctx_get_stats(h->ctx, &s) != HEDDLE_OK)
        s.submitted = 0;
    progress_begin(&p, h->c, !h->no_progress, s.submitted);
    do {
        st = heddle_wait_for(h->ctx, TICK_NS);
        if (heddle_ctx_get_stats(h->ctx, &s) == HEDDLE_OK)
            progress_tick(&p, s.done);
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
    start = heddle_clock_ns();
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
    heddle_json_key_str(&j, "devices", h->o.devices);
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

    if (rc == 0)
        rc = hpl_solve(h);
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

    h.o.devices = "none";
    rc = hpl_parse(&h, argc, argv);
    if (h.o.sched == NULL && strcmp(h.o.devices, "none") == 0)
        h.o.sched = "prio"; /* panels first */
    if (rc == 0)
        rc = hpl_steps(&h);
    if (h.ctx != NULL) {
        const int closed = bench_close(c, &h.memory, h.ctx);

        rc = rc == 0 ? closed : rc;
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
             "  --n              order (default: 8192, or half of the memory)\n"
             "  --nb             width of block columns, or auto (default)\n"
             "  --type           s, d (default), c or z\n"
             "  --workers        threads that run tasks (default: all cores)\n"
             "  --sched          scheduler, see 'heddle info' (default on cores: "
             "prio)\n"
             "  --devices        as in HEDDLE_DEVICES: cuda (default none)\n"
             "  --device-memory  bytes of a device to use\n"
             "  --log            keep the log of the run in a file\n"
             "  --no-bind        do not bind workers to cores\n"
             "  --no-progress    no progress bar\n"
             "  --json           one JSON object\n"
             "A residual below 16 is PASSED.\n",
    .run = hpl_run,
};
