/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/la: routines of dense linear algebra against those of other libraries.
 *
 * Rounds     the peer, then ours, on the same memory with the same numbers, which
 *            are made once; one round before the others warms both up. No sequence
 *            of ours exists while the peer runs: it would take the peer's threads
 *            away.
 * Clock      ours: from the first call to the last task, with the results in the
 *            host's memory; --resident: the matrices are in that of the GPU before
 *            and after.
 * Itself     with the peer `self` a second context runs the same routine without
 *            the limit of --device-memory or, where none is given, another routine
 *            for the same job: LU without pivots, a solution in full precision.
 */
#include "bench/la/run.h"
#include "common/run_bound.h"

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

const char *const la_peer_names[] = {"lapack", "openblas", "cusolver", "self", "none"};

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
                   (double)la_elem_bytes(b->p.t) * ((x->is_out ? 2 : 1) + (b->is_resident ? 1 : 0));
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

    if (heddle_machine_query(&machine) == HEDDLE_OK && machine.memory_available > 0 &&
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

/* No task writes above the diagonal of a hermitian matrix. */
void la_problem_restore(struct la_problem *p)
{
    for (unsigned i = 0; i < LA_OPERANDS; i++)
        if (p->row->x[i].is_out)
            la_array_copy(&p->out[i], &p->in[i], p->is_restored && p->row->x[i].fill == LA_POSITIVE,
                          p->nthreads);
    p->is_restored = true;
}

static void problem_free(struct la_problem *p)
{
    for (unsigned i = 0; i < LA_OPERANDS && p->row != NULL; i++) {
        if (p->row->x[i].is_out)
            la_array_free(&p->out[i]);
        la_array_free(&p->in[i]);
    }
    free(p->ipiv);
    la_array_free(&p->tau);
    free(p->work);
}

double la_flops(const struct la_bench *b)
{
    return la_row_flops(b->row, b->p.m, b->p.n, b->p.nrhs) * (la_is_complex(b->p.t) ? 4 : 1);
}

/* --- the other side ------------------------------------------------------------------ */

static int run_peer(struct la_bench *b, double *ns_out)
{
    uint64_t start;
    int rc;

    if (b->peer == PEER_SELF) {
        rc = la_side_run(&b->self, false, ns_out);
        b->peer_info = b->self.info;
        return rc;
    }
    if (b->peer == PEER_CUSOLVER)
        return la_gpu_run(&b->gpu, &b->p, b->is_resident, ns_out, &b->peer_info)
                   ? 0
                   : cli_fail(b->c, "%s", b->gpu.why);
    la_problem_restore(&b->p);
    la_peer_threads(&b->blas, b->ours.nworkers);
    bench_settle();
    start = heddle_clock_ns();
    b->peer_info = b->row->peer(&b->blas, &b->p);
    *ns_out = (double)(heddle_clock_ns() - start);
    if (b->peer_info == INT_MIN)
        return cli_fail(b->c, "the peer, %s, has no %s for this type, or no memory", b->blas.name,
                        b->row->name);
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
            rc = la_side_run(&b->ours, b->check && r == n, &b->mine[at]);
        b->ratio[at] = b->mine[at] / b->theirs[at];
    }
    if (rc != 0)
        return rc;
    b->iterations = b->p.iterations;
    b->t = bench_stat(b->mine, n);
    b->t_peer = bench_stat(b->theirs, n);
    b->t_ratio = bench_stat(b->ratio, n);
    return 0;
}

/* One more run, in a context that writes everything down. */
static int add_bound(struct la_bench *b)
{
    const char *folder = getenv("TMPDIR");
    struct bench_opts o = b->o;
    struct la_side side;
    struct run_bound bound = {0};
    char own[512];
    int rc, closed;

    if (o.log == NULL) {
        int fd;

        snprintf(own, sizeof(own), "%s/heddle-bench-XXXXXX",
                 folder != NULL && folder[0] != '\0' ? folder : "/tmp");
        fd = mkstemp(own);
        if (fd < 0)
            return cli_fail(b->c, "no file can be made in '%s' for the log", own);
        close(fd);
        o.log = own;
    }
    o.log_level = HEDDLE_LOG_GRAPH;
    rc = la_side_open(&side, b->c, &o, &b->p, b->nb, b->is_resident);
    if (rc == 0)
        rc = la_side_run(&side, false, &b->bound_run);
    closed = la_side_close(&side); /* writes the log */
    rc = rc == 0 ? closed : rc;
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
        return cli_fail(b->c, "the BLAS of this machine, %s, is not OpenBLAS", b->blas.name);
    if (b->peer == PEER_CUSOLVER && !la_gpu_open(&b->gpu, &b->p))
        return cli_fail(b->c, "%s", b->gpu.why);
    return 0;
}

static int open_ours(struct la_bench *b)
{
    struct bench_opts o = b->o;
    int rc;

    o.log = NULL; /* that is for the run behind the rounds */
    rc = la_side_open(&b->ours, b->c, &o, &b->p, b->nb, b->is_resident);
    if (rc != 0 || b->peer != PEER_SELF)
        return rc;
    o.device_memory = 0;
    rc = la_side_open(&b->self, b->c, &o, &b->p, b->nb, b->is_resident);
    b->self.is_other = b->limit_text == NULL;
    return rc;
}

static int close_ours(struct la_bench *b)
{
    const int ours = la_side_close(&b->ours), self = la_side_close(&b->self);

    return ours != 0 ? ours : self;
}

static int run_steps(struct la_bench *b)
{
    const uint64_t start = heddle_clock_ns();
    int rc = problem_make(b);

    b->prepare_ns = (double)(heddle_clock_ns() - start);
    if (rc == 0)
        rc = open_peer(b);
    if (rc == 0)
        rc = open_ours(b);
    if (rc != 0)
        return rc;
    b->peak = b->peer == PEER_CUSOLVER ? la_gpu_peak(&b->gpu, &b->p)
                                       : la_peer_peak(&b->blas, b->p.t, b->p.n, b->ours.nworkers);
    rc = run_rounds(b);
    if (rc == 0 && b->check && b->ours.info == 0)
        b->residual = b->row->residual(&b->p);
    if (rc == 0)
        rc = close_ours(b);
    if (rc == 0 && !b->no_bound)
        rc = add_bound(b);
    return rc;
}

/* --- the command ----------------------------------------------------------------------- */

static int parse_sizes(struct la_bench *b)
{
    struct la_problem *p = &b->p;

    if (b->row->is_square && b->m != 0 && b->m != b->n)
        return cli_error(b->c, "the matrix of %s is square: leave --m out", b->row->name);
    if (b->row->tall != 0 && b->m != 0 && b->m < b->n)
        return cli_error(b->c, "%s needs at least as many rows as columns", b->row->name);
    if (b->row->nrhs == 0 && b->nrhs != 0)
        return cli_error(b->c, "%s has no right-hand sides: leave --nrhs out", b->row->name);
    p->n = b->n;
    p->m = b->m != 0 ? b->m : b->row->tall != 0 ? b->row->tall * b->n : b->n;
    p->nrhs = b->nrhs != 0 ? b->nrhs : b->row->nrhs == 'n' ? b->n : 1;
    if (strcmp(b->nb_text, "auto") != 0 &&
        (heddle_parse_u64(b->nb_text, &b->nb) != HEDDLE_OK || b->nb == 0 || b->nb > MAX_NB))
        return cli_error(b->c,
                         "--nb is '%s', but it must be auto or a number "
                         "from 1 to %d",
                         b->nb_text, (int)MAX_NB);
    if (b->limit_text != NULL &&
        (heddle_parse_size(b->limit_text, 0, &b->o.device_memory) != HEDDLE_OK ||
         b->o.device_memory == 0))
        return cli_error(b->c,
                         "--device-memory is '%s', but it must be a number of "
                         "bytes, as 16GiB",
                         b->limit_text);
    return 0;
}

static int parse_peer(struct la_bench *b)
{
    if (b->peer_name == NULL)
        b->peer_name = b->is_resident ? "cusolver" : "lapack";
    for (b->peer = PEER_LAPACK; b->peer <= PEER_NONE; b->peer++)
        if (strcmp(la_peer_names[b->peer], b->peer_name) == 0)
            break;
    if (b->peer > PEER_NONE)
        return cli_error(b->c,
                         "there is no peer '%s', but there are openblas, "
                         "lapack, cusolver, self and none",
                         b->peer_name);
    if (b->peer == PEER_SELF && (b->limit_text == NULL ? b->row->self == NULL : b->is_resident))
        return cli_error(b->c,
                         "the peer self of %s is ours without a limit: give "
                         "--device-memory, and leave --resident out",
                         b->row->name);
    if (b->peer == PEER_CUSOLVER && (b->p.t != LA_D || b->row->gpu == LA_GPU_NONE))
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

static int parse_panel(struct la_bench *b)
{
    const char *name = b->row->name;

    if (b->panel_name == NULL)
        return 0;
    if (strcmp(name, "getrf") != 0 && strcmp(name, "gesv") != 0 && strcmp(name, "gesv_mixed") != 0)
        return cli_error(b->c,
                         "%s has no panels to choose: --panel is of getrf, "
                         "gesv and gesv_mixed",
                         name);
    while (b->p.panel < HEDDLE_LA_PANEL_GANG &&
           strcmp(heddle_la_panel_name(b->p.panel), b->panel_name) != 0)
        b->p.panel++;
    if (strcmp(heddle_la_panel_name(b->p.panel), b->panel_name) != 0)
        return cli_error(b->c, "--panel is '%s', but it must be auto, single or gang",
                         b->panel_name);
    return 0;
}

static int parse(struct la_bench *b, int argc, char **argv)
{
    const char *const all = "sdcz";
    char what[48];
    const struct cli_opt opts[] = {{"--n", CLI_UINT, &b->n, 1, MAX_N},
                                   {"--m", CLI_UINT, &b->m, 1, MAX_N},
                                   {"--nrhs", CLI_UINT, &b->nrhs, 1, MAX_N},
                                   {"--type", CLI_STRING, &b->type, 0, 0},
                                   {"--nb", CLI_STRING, &b->nb_text, 0, 0},
                                   {"--rounds", CLI_UINT, &b->rounds, 1, LA_MAX_ROUNDS},
                                   {"--peer", CLI_STRING, &b->peer_name, 0, 0},
                                   {"--low", CLI_STRING, &b->low_name, 0, 0},
                                   {"--panel", CLI_STRING, &b->panel_name, 0, 0},
                                   {"--check", CLI_FLAG, &b->check, 0, 0},
                                   {"--workers", CLI_UINT, &b->o.workers, 1, 4096},
                                   {"--sched", CLI_STRING, &b->o.sched, 0, 0},
                                   {"--devices", CLI_STRING, &b->o.devices, 0, 0},
                                   {"--device-memory", CLI_STRING, &b->limit_text, 0, 0},
                                   {"--resident", CLI_FLAG, &b->is_resident, 0, 0},
                                   {"--no-bound", CLI_FLAG, &b->no_bound, 0, 0},
                                   {"--no-bind", CLI_FLAG, &b->o.no_bind, 0, 0},
                                   {"--log", CLI_OUTPUT, &b->o.log, 0, 0},
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
    if (rc == 0)
        rc = parse_panel(b);
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
        rc = la_report(b);
    la_side_drop(&b->ours);
    la_side_drop(&b->self);
    la_gpu_close(&b->gpu);
    problem_free(&b->p);
    free(b);
    return rc;
}

#define HEDDLE_BENCH_LA(id, text)                                                                  \
    const struct heddle_cmd heddle_bench_##id = {                                                  \
        .name = #id,                                                                               \
        .help = text,                                                                              \
        .usage = "heddle bench " #id " [options]\n" LA_USAGE,                                      \
        .run = la_run,                                                                             \
    };
#define LA_USAGE                                                                                   \
    "\n"                                                                                           \
    "  --n, --m         order, or columns and rows (default 2048; M is N)\n"                       \
    "  --nrhs           right-hand sides, where there are some\n"                                  \
    "  --type           s, d (default), c or z\n"                                                  \
    "  --nb             width of block columns, or auto\n"                                         \
    "  --rounds         of each side in turn (default 5)\n"                                        \
    "  --peer           lapack (the machine's, default), openblas (the "                           \
    "same,\n"                                                                                      \
    "                   but no other), cusolver (default with "                                    \
    "--resident),\n"                                                                               \
    "                   none, or self: ours without --device-memory; "                             \
    "without\n"                                                                                    \
    "                   that LU without pivots, a solution in full "                               \
    "precision\n"                                                                                  \
    "  --low            of gesv_mixed and posv_mixed on a GPU: auto, single, "                     \
    "tf32,\n"                                                                                      \
    "                   half or halves\n"                                                          \
    "  --panel          of getrf, gesv and gesv_mixed on cores: auto, single "                     \
    "or gang\n"                                                                                    \
    "  --check          compute the residual, which must be small: of the "                        \
    "whole\n"                                                                                      \
    "                   matrix up to order 512, else of its product with "                         \
    "four\n"                                                                                       \
    "                   vectors\n"                                                                 \
    "  --workers        threads of either side (default: all cores)\n"                             \
    "  --sched          scheduler, see 'heddle info' (default on cores: "                          \
    "prio)\n"                                                                                      \
    "  --devices        as in HEDDLE_DEVICES: cuda (default none)\n"                               \
    "  --device-memory  bytes of a device to use, as 16GiB\n"                                      \
    "  --resident       the matrices are in the GPU's memory before and "                          \
    "after\n"                                                                                      \
    "  --no-bound       without the run that tells the best possible time\n"                       \
    "  --log            keep the log of that run in a file\n"                                      \
    "  --no-bind        do not bind workers to cores\n"                                            \
    "  --json           one JSON object\n"                                                         \
    "Ratios are our time over the peer's, from alternating rounds.\n"
#include "bench/la/la.def"
