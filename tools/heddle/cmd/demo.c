/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * demo: a tile Cholesky factorisation on all cores and GPUs.
 *
 * Purpose    the first program a newcomer runs: a task graph with a visible
 *            structure, a result that is checked, a summary, and a trace.
 * Steps      measure one core; fill the matrix; factorise it, on the clock and
 *            into the log; check it; report. Filling and checking have a
 *            context of their own, so the log holds the factorisation alone;
 *            it has the cores only: what devices did is checked by others.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "common/output.h"
#include "common/progress.h"
#include "demo/demo.h"
#include "heddle/machine.h"
#include "heddle/trace.h"
#include "trace/cmd.h"
#include "trace/view/cmd.h"

enum { MAX_N = 200000, MAX_NB = 4096, AUTO_N = 8192 };
/* With a GPU: tiles that keep it busy; the check on the cores takes the time. */
enum { GPU_NB = 1024, GPU_AUTO_N = 16384 };

#define CELL       32
#define GOOD_ERROR 10.0 /* a backward stable method stays far below */

struct demo {
    struct cli *c;
    const char *log, *page, *kernels, *devices;
    const struct heddle_tile_ops *ops;
    uint64_t n, nb, workers, log_level;
    bool no_progress;
    struct progress progress;

    struct demo_matrix matrix;
    heddle_ctx *work, *ctx; /* ctx runs the factorisation */
    struct heddle_ctx_stats stats;
    unsigned ngpus;
    char why[320];

    double peak; /* operations per ns, one core */
    double wall_ns;
    double error;
    struct demo_report report;
};

/* --- preparation ---------------------------------------------------------- */

static void keep_sentence(void *user, enum heddle_severity severity, const char *text)
{
    struct demo *d = user;

    if (severity == HEDDLE_ERROR)
        snprintf(d->why, sizeof(d->why), "%s", text);
}

static unsigned count_gpus(heddle_ctx *ctx)
{
    struct heddle_class_info cls = {.size = sizeof(cls)};
    unsigned n = 0;

    for (unsigned i = 0; heddle_ctx_get_class(ctx, i, &cls) == HEDDLE_OK; i++)
        n += strcmp(cls.kind, "cuda") == 0;
    return n;
}

static int demo_contexts(struct demo *d)
{
    struct heddle_ctx_opts o = {.size = sizeof(o),
                                .nworkers = (unsigned)d->workers,
                                .log_level = (int)d->log_level,
                                .log_path = d->log,
                                .devices = d->devices,
                                .message = keep_sentence,
                                .message_user = d};
    heddle_status st = heddle_ctx_create(&o, &d->ctx);

    if (st == HEDDLE_OK) {
        o.log = HEDDLE_OFF;
        o.log_path = NULL;
        o.log_level = 0;
        o.model_dir = ""; /* of the check: not worth keeping */
        o.devices = "none";
        o.sched = "ws";
        st = heddle_ctx_create(&o, &d->work);
    }
    if (st == HEDDLE_EIO && d->why[0] != '\0')
        return cli_fail(d->c, "%s", d->why); /* it names the log */
    if (st == HEDDLE_EIO)
        return cli_fail(d->c, "the log '%s' cannot be written", d->log);
    if (st != HEDDLE_OK)
        return cli_fail(d->c, "no context can be started: %s",
                        d->why[0] != '\0' ? d->why : heddle_status_text(st));
    d->stats.size = sizeof(d->stats);
    if (heddle_ctx_get_stats(d->ctx, &d->stats) != HEDDLE_OK)
        return cli_fail(d->c, "the context does not answer");
    d->ngpus = count_gpus(d->ctx);
    return 0;
}

/* About a second of work of the cores, three with GPUs, that fits into a quarter of
 * the memory. */
static uint64_t auto_order(const struct demo *d, uint64_t available)
{
    const double seconds = d->ngpus > 0 ? 3 : 1;
    const double most = d->ngpus > 0 ? GPU_AUTO_N : AUTO_N;
    double n = cbrt(3.0 * d->peak * d->stats.nworkers * seconds * 1e9);

    n = n > most ? most : n;
    while (available > 0 && n * n * 4 > (double)available / 4)
        n *= 0.75;
    return n < (double)(4 * d->nb) ? 4 * d->nb : (uint64_t)n / d->nb * d->nb;
}

static int demo_prepare(struct demo *d)
{
    const struct heddle_tile_ops *ops = d->ops;
    const uint64_t nb = d->ngpus > 0 ? GPU_NB : ops->nb;
    struct heddle_machine_info m = {.size = sizeof(m)};
    char a[CELL], b[CELL];
    struct heddle_text ta, tb;
    uint64_t bytes;

    if (ops->setup != NULL)
        ops->setup();
    if (d->nb == 0)
        d->nb = d->n != 0 && d->n < 4 * nb ? (d->n + 3) / 4 : nb;
    if (heddle_machine_query(&m) != HEDDLE_OK)
        m.memory_available = 0;
    d->peak = demo_peak(ops, d->nb);
    if (d->n == 0)
        d->n = auto_order(d, m.memory_available);
    bytes = demo_matrix_bytes(d->n, d->nb);
    heddle_text_init(&ta, a, sizeof(a));
    heddle_text_bytes(&ta, bytes);
    heddle_text_init(&tb, b, sizeof(b));
    heddle_text_bytes(&tb, m.memory_available);
    /* The check may need as much again. */
    if (m.memory_available > 0 && bytes > m.memory_available / 2)
        return cli_fail(d->c,
                        "order %" PRIu64 " needs two times %s of memory, but "
                        "%s is available",
                        d->n, a, b);
    if (demo_matrix_init(&d->matrix, ops, d->n, d->nb) != HEDDLE_OK)
        return cli_fail(d->c, "no memory for a matrix of %s", a);
    return 0;
}

static void demo_announce(struct demo *d)
{
    const struct demo_matrix *m = &d->matrix;
    struct heddle_class_info cls = {.size = sizeof(cls)};

    progress_begin(&d->progress, d->c, !d->no_progress, cholesky_ntasks(m->nt));
    if (d->c->json)
        return;
    fprintf(d->c->out,
            "tile Cholesky of order %zu in double precision: %" PRIu32 " x %" PRIu32
            " tiles of %zu\n"
            "%u worker%s",
            m->n, m->nt, m->nt, m->nb, d->stats.nworkers, d->stats.nworkers == 1 ? "" : "s");
    for (unsigned i = 1; heddle_ctx_get_class(d->ctx, i, &cls) == HEDDLE_OK; i++)
        fprintf(d->c->out, " and %s (%s)", cls.name, cls.model);
    fprintf(d->c->out, ", scheduler %s, kernels %s\n", d->stats.sched, m->ops->name);
    fflush(d->c->out);
}

/* --- the run -------------------------------------------------------------- */

static int demo_failed(struct demo *d, heddle_ctx *ctx, const char *step, heddle_status st)
{
    struct heddle_error e = {.size = sizeof(e)};

    if (ctx != NULL && heddle_ctx_error(ctx, &e) == HEDDLE_OK && e.message[0] != '\0')
        return cli_fail(d->c, "the %s failed: %s", step, e.message);
    return cli_fail(d->c, "the %s failed: %s", step, heddle_status_text(st));
}

static int demo_execute(struct demo *d)
{
    struct demo_factor f = {.ctx = d->ctx, .tick = progress_tick, .tick_user = &d->progress};
    heddle_status st = demo_matrix_fill(&d->matrix, d->work);

    if (st != HEDDLE_OK)
        return demo_failed(d, d->work, "preparation", st);
    st = demo_matrix_factor(&d->matrix, &f);
    progress_end(&d->progress);
    if (f.bad_row != 0)
        return cli_fail(d->c,
                        "the matrix is not positive definite: the pivot of "
                        "row %zu is not positive",
                        f.bad_row - 1);
    if (st != HEDDLE_OK)
        return demo_failed(d, d->ctx, "factorisation", st);
    d->wall_ns = f.wall_ns;
    if (heddle_ctx_get_stats(d->ctx, &d->stats) != HEDDLE_OK)
        return cli_fail(d->c, "the context does not answer");
    st = heddle_ctx_destroy(d->ctx); /* writes the log */
    d->ctx = NULL;
    if (st != HEDDLE_OK)
        return cli_fail(d->c, "the log '%s' could not be written: %s", d->log,
                        d->why[0] != '\0' ? d->why : heddle_status_text(st));
    st = demo_matrix_check(&d->matrix, d->work, &d->error);
    if (st != HEDDLE_OK)
        return demo_failed(d, d->work, "check", st);
    d->why[0] = '\0';
    st = demo_report_read(&d->report, d->log, d->stats.nworkers, d->why, sizeof(d->why));
    if (st != HEDDLE_OK)
        return cli_fail(d->c, "the summary needs the log '%s' back: %s", d->log,
                        d->why[0] != '\0' ? d->why : heddle_status_text(st));
    return 0;
}

/* The run as a page. */
static int demo_page(struct demo *d)
{
    const struct view_opts o = {
        .file = d->log, .title = "The demo of Heddle", .npacks = 1, .is_packed = true};
    struct view_pack *pack = NULL;
    int rc = output_check_input(d->c, d->page, d->log);

    if (rc == 0)
        rc = view_load(d->c, &o, &pack);
    if (rc == 0)
        rc = view_save(d->c, d->page, o.title, &pack, 1);
    view_pack_unref(pack);
    return rc;
}

/* --- the summary ---------------------------------------------------------- */

static double gflops(const struct demo *d)
{
    return demo_matrix_flops(d->matrix.n) / d->wall_ns;
}

static const char *ns_text(char cell[CELL], double ns)
{
    struct heddle_text t;

    heddle_text_init(&t, cell, CELL);
    heddle_text_ns(&t, (uint64_t)(ns + 0.5));
    return cell;
}

/* How many tasks ran where. */
static void print_places(const struct demo *d)
{
    const struct demo_report *r = &d->report;
    FILE *out = d->c->out;

    if (r->ndevices == 0)
        return;
    fprintf(out, "places       %" PRIu64 " on the cores", r->core_tasks);
    for (unsigned i = 0; i < r->ndevices; i++)
        fprintf(out, ", %" PRIu64 " on %s (busy %.1f %% of the time)", r->device[i].ntasks,
                r->device[i].name, 100 * r->device[i].busy);
    fputc('\n', out);
}

static void print_summary(const struct demo *d)
{
    const uint32_t nt = d->matrix.nt;
    const struct demo_report *r = &d->report;
    FILE *out = d->c->out;
    char a[CELL], b[CELL], c[CELL];
    struct heddle_text t;

    fprintf(out, "tasks        %zu:", cholesky_ntasks(nt));
    for (enum cholesky_kind k = 0; k < CHOLESKY_NKINDS; k++)
        fprintf(out, " %zu %s%s", cholesky_count(nt, k), cholesky_name(k),
                k + 1 < CHOLESKY_NKINDS ? "," : "\n");
    print_places(d);
    fprintf(out, "time         %s, %.1f GFLOP/s\n", ns_text(a, d->wall_ns), gflops(d));
    fprintf(out, "utilisation  %.1f %% of %u worker%s\n", 100 * r->utilisation, d->stats.nworkers,
            d->stats.nworkers == 1 ? "" : "s");
    fprintf(out, "overhead     %s per task\n", ns_text(a, r->overhead_task_ns));
    if (r->ndevices == 0)
        fprintf(out,
                "speed        %.1f %% of %u x %.1f GFLOP/s, gemm alone on one "
                "core\n",
                100 * gflops(d) / (d->peak * d->stats.nworkers), d->stats.nworkers, d->peak);
    fprintf(out,
            "bound        %s with these task times (work %s, longest chain "
            "%s)\n"
            "             this run is at %.1f %% of the best possible on this "
            "machine%s\n",
            ns_text(a, r->bound_ns), ns_text(b, r->area_ns), ns_text(c, r->path_ns),
            100 * r->bound_ns / d->wall_ns,
            r->has_deps ? "" : ", if tasks were independent: see --log-level");
    fprintf(out, "check        ||A - L L^T|| / (n ||A|| eps) = %.2g: %s\n", d->error,
            d->error < GOOD_ERROR ? "right" : "WRONG");
    heddle_text_init(&t, a, sizeof(a));
    heddle_text_bytes(&t, r->log_bytes);
    fprintf(out, "trace        %s (%s)", d->log, a);
    if (d->page != NULL)
        fprintf(out, "\npage         %s: open it in a browser\n", d->page);
    else
        fprintf(out,
                "; a page for a browser is made by\n"
                "  %s trace view %s -o heddle-demo.html\n",
                d->c->prog, d->log);
}

static void json_places(struct heddle_json *j, const struct demo_report *r)
{
    heddle_json_key(j, "devices");
    heddle_json_array(j);
    for (unsigned i = 0; i < r->ndevices; i++) {
        heddle_json_object(j);
        heddle_json_key_str(j, "name", r->device[i].name);
        heddle_json_key_uint(j, "tasks", r->device[i].ntasks);
        heddle_json_key_double(j, "busy", r->device[i].busy);
        heddle_json_end(j);
    }
    heddle_json_end(j);
}

static int print_json(const struct demo *d)
{
    const struct demo_matrix *m = &d->matrix;
    struct heddle_json j;
    heddle_status st;

    heddle_json_init_file(&j, d->c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "demo");
    heddle_json_key_str(&j, "version", heddle_version());
    heddle_json_key_uint(&j, "n", m->n);
    heddle_json_key_uint(&j, "nb", m->nb);
    heddle_json_key_uint(&j, "tiles", m->nt);
    heddle_json_key_uint(&j, "workers", d->stats.nworkers);
    heddle_json_key_str(&j, "sched", d->stats.sched);
    heddle_json_key_str(&j, "kernels", m->ops->name);
    heddle_json_key_uint(&j, "tasks", cholesky_ntasks(m->nt));
    heddle_json_key_uint(&j, "core_tasks", d->report.core_tasks);
    json_places(&j, &d->report);
    heddle_json_key_double(&j, "wall_ns", d->wall_ns);
    heddle_json_key_double(&j, "gflops", gflops(d));
    heddle_json_key_double(&j, "peak_gflops", d->peak * d->stats.nworkers);
    heddle_json_key_double(&j, "utilisation", d->report.utilisation);
    heddle_json_key_double(&j, "overhead_ns_per_task", d->report.overhead_task_ns);
    heddle_json_key_double(&j, "area_ns", d->report.area_ns);
    heddle_json_key_double(&j, "path_ns", d->report.path_ns);
    heddle_json_key_double(&j, "bound_ns", d->report.bound_ns);
    heddle_json_key_double(&j, "efficiency", d->report.bound_ns / d->wall_ns);
    heddle_json_key_double(&j, "backward_error", d->error);
    heddle_json_key_bool(&j, "right", d->error < GOOD_ERROR);
    heddle_json_key_str(&j, "log", d->log);
    heddle_json_key_uint(&j, "log_bytes", d->report.log_bytes);
    heddle_json_key_str(&j, "page", d->page);
    heddle_json_end(&j);
    heddle_json_line(&j);
    st = heddle_json_finish(&j);
    return st == HEDDLE_OK ? 0 : cli_output_failed(d->c, st);
}

/* --- the command ---------------------------------------------------------- */

static int demo_steps(struct demo *d)
{
    int rc = demo_contexts(d);

    if (rc == 0)
        rc = demo_prepare(d);
    if (rc != 0)
        return rc;
    demo_announce(d);
    rc = demo_execute(d);
    if (rc == 0 && d->page != NULL)
        rc = demo_page(d);
    if (rc != 0)
        return rc;
    if (d->c->json)
        rc = print_json(d);
    else
        print_summary(d);
    if (rc == 0 && !(d->error < GOOD_ERROR))
        rc = cli_fail(d->c, "the factor is wrong: the error is %g", d->error);
    return rc;
}

static int demo_run(struct cli *c, int argc, char **argv)
{
    struct demo d = {.c = c, .log = "heddle-demo.log", .log_level = 1};
    const struct cli_opt opts[] = {{"--n", CLI_UINT, &d.n, 1, MAX_N},
                                   {"--nb", CLI_UINT, &d.nb, 1, MAX_NB},
                                   {"--workers", CLI_UINT, &d.workers, 1, 4096},
                                   {"--log", CLI_OUTPUT, &d.log, 0, 0},
                                   {"--page", CLI_OUTPUT, &d.page, 0, 0},
                                   {"--log-level", CLI_UINT, &d.log_level, 0, HEDDLE_LOG_EXPERT},
                                   {"--kernels", CLI_STRING, &d.kernels, 0, 0},
                                   {"--devices", CLI_STRING, &d.devices, 0, 0},
                                   {"--no-progress", CLI_FLAG, &d.no_progress, 0, 0},
                                   {0}};
    int rc = cli_parse(c, "demo", argc, argv, opts, NULL);

    if (rc != 0)
        return rc;
    if (d.n != 0 && d.nb != 0 && d.n / d.nb > 512)
        return cli_error(c,
                         "order %" PRIu64 " in tiles of %" PRIu64 " makes more "
                         "than 512 tiles along a side: give a larger --nb",
                         d.n, d.nb);
    d.ops = d.kernels == NULL ? heddle_tile_table[0] : tile_find(d.kernels);
    if (d.ops == NULL)
        return cli_error(c, "there are no kernels '%s' in this build", d.kernels);
    rc = demo_steps(&d);
    heddle_ctx_destroy(d.ctx);
    heddle_ctx_destroy(d.work);
    demo_matrix_fini(&d.matrix);
    return rc;
}

const struct heddle_cmd heddle_cmd_demo = {
    .name = "demo",
    .help = "factorises a matrix by tasks on cores and GPUs and checks it",
    .usage = "heddle demo [--n N] [--nb NB] [--workers W] [--kernels blas|plain]\n"
             "    [--devices LIST] [--log FILE] [--log-level L] [--page FILE]\n"
             "    [--no-progress] [--json]\n"
             "\n"
             "  --n            order of the matrix (default: about a second of "
             "work)\n"
             "  --nb           order of a tile (default 256 with a BLAS, 128 "
             "without,\n"
             "                 1024 with a GPU)\n"
             "  --workers      (default: all cores)\n"
             "  --kernels      arithmetic of the cores by the BLAS or in plain C\n"
             "  --devices      as in HEDDLE_DEVICES, 'none' for the cores alone\n"
             "  --log          where the trace goes (default heddle-demo.log)\n"
             "  --log-level    0 (tasks) to 3 (default 1: with dependencies)\n"
             "  --page         the run as a page for a browser, too\n"
             "  --no-progress  no progress bar\n"
             "  --json         one JSON object\n",
    .run = demo_run,
};
