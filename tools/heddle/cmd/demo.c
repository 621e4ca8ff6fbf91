/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * demo: a Cholesky factorisation on all cores and GPUs.
 *
 * Purpose    the first program a newcomer runs: a task graph with a visible
 *            structure, a result that is checked, a summary, and a trace.
 * Steps      load and warm up; make the matrix; factorise it, on the clock and into
 *            the log; cut the log to the factorisation; check; report.
 */
#include <inttypes.h>
#include <string.h>

#include "bench/la/la.h"
#include "common/cut.h"
#include "common/output.h"
#include "demo/run.h"
#include "heddle/machine.h"
#include "heddle/trace.h"
#include "trace/cmd.h"
#include "trace/view/cmd.h"

enum { MAX_N = 200000, MAX_NB = 4096 };
/* Tasks in flight: all of them, so that the bar knows their number. */
enum { WINDOW = 4000000 };

#define CELL 32

/* --- preparation ---------------------------------------------------------- */

static void keep_sentence(void *user, enum heddle_severity severity, const char *text)
{
    struct demo_run *d = user;

    if (severity == HEDDLE_ERROR)
        snprintf(d->why, sizeof(d->why), "%s", text);
}

static int demo_context(struct demo_run *d)
{
    const struct heddle_ctx_opts o = {.size = sizeof(o),
                                      .nworkers = (unsigned)d->workers,
                                      .window = d->way == &demo_way_dense ? WINDOW : 0,
                                      .log_level = (int)d->log_level,
                                      .log_path = d->log,
                                      .devices = d->devices,
                                      .message = keep_sentence,
                                      .message_user = d};
    const heddle_status st = heddle_ctx_create(&o, &d->ctx);

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
    d->ngpus = la_warm_gpus(d->ctx, &d->gpu_memory);
    return 0;
}

int demo_fits(struct demo_run *d, double bytes)
{
    char a[CELL], b[CELL];
    struct heddle_text ta, tb;

    /* The check may need as much again. */
    if (d->memory_available == 0 || bytes <= (double)d->memory_available / 2)
        return 0;
    heddle_text_init(&ta, a, sizeof(a));
    heddle_text_bytes(&ta, (uint64_t)bytes);
    heddle_text_init(&tb, b, sizeof(b));
    heddle_text_bytes(&tb, d->memory_available);
    return cli_fail(d->c, "order %" PRIu64 " needs two times %s of memory, but %s is available",
                    d->n, a, b);
}

static void demo_announce(const struct demo_run *d)
{
    struct heddle_class_info cls = {.size = sizeof(cls)};
    const bool is_dense = d->way == &demo_way_dense;
    const uint64_t nt = (d->n + d->nb - 1) / d->nb;
    FILE *out = d->c->out;

    if (d->c->json)
        return;
    fprintf(out, "%s of order %" PRIu64 " in double precision: ",
            is_dense ? "Cholesky factorisation" : "tile Cholesky", d->n);
    if (is_dense)
        fprintf(out, "%" PRIu64 " block columns of %" PRIu64 "\n", nt, d->nb);
    else
        fprintf(out, "%" PRIu64 " x %" PRIu64 " tiles of %" PRIu64 "\n", nt, nt, d->nb);
    fprintf(out, "%u worker%s", d->stats.nworkers, d->stats.nworkers == 1 ? "" : "s");
    for (unsigned i = 1; heddle_ctx_get_class(d->ctx, i, &cls) == HEDDLE_OK; i++)
        fprintf(out, " and %s (%s)", cls.name, cls.model);
    fprintf(out, ", scheduler %s, kernels %s\n", d->stats.sched, d->kernels);
    fflush(out);
}

int demo_failed(struct demo_run *d, heddle_ctx *ctx, const char *step, heddle_status st)
{
    struct heddle_error e = {.size = sizeof(e)};

    if (ctx != NULL && heddle_ctx_error(ctx, &e) == HEDDLE_OK && e.message[0] != '\0')
        return cli_fail(d->c, "the %s failed: %s", step, e.message);
    return cli_fail(d->c, "the %s failed: %s", step, heddle_status_text(st));
}

/* --- the log -------------------------------------------------------------- */

/* Ends the context, which writes the log. */
static int demo_close(struct demo_run *d)
{
    heddle_status st = heddle_ctx_get_stats(d->ctx, &d->stats);

    if (st != HEDDLE_OK)
        return cli_fail(d->c, "the context does not answer");
    st = heddle_ctx_destroy(d->ctx);
    d->ctx = NULL;
    if (st != HEDDLE_OK)
        return cli_fail(d->c, "the log '%s' could not be written: %s", d->log,
                        d->why[0] != '\0' ? d->why : heddle_status_text(st));
    return 0;
}

static int demo_read(struct demo_run *d)
{
    heddle_status st;

    d->why[0] = '\0';
    st = demo_report_read(&d->report, d->log, d->stats.nworkers, d->why, sizeof(d->why));
    if (st != HEDDLE_OK)
        return cli_fail(d->c, "the summary needs the log '%s' back: %s", d->log,
                        d->why[0] != '\0' ? d->why : heddle_status_text(st));
    return 0;
}

/* The run as a page. */
static int demo_page(struct demo_run *d)
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

/* --- the command ---------------------------------------------------------- */

static int demo_steps(struct demo_run *d)
{
    int rc = demo_context(d);

    if (rc == 0)
        rc = d->way->prepare(d);
    if (rc != 0)
        return rc;
    demo_announce(d);
    rc = d->way->execute(d);
    if (rc == 0)
        rc = demo_close(d);
    if (rc == 0 && d->begin_ns != 0)
        rc = cut_file(d->c, d->log, d->begin_ns);
    if (rc == 0)
        rc = d->way->check(d);
    if (rc == 0)
        rc = demo_read(d);
    if (rc == 0 && d->page != NULL)
        rc = demo_page(d);
    if (rc != 0)
        return rc;
    if (d->c->json)
        rc = demo_print_json(d);
    else
        demo_print(d);
    if (rc == 0 && !(d->error < DEMO_GOOD_ERROR))
        rc = cli_fail(d->c, "the factor is wrong: the error is %g", d->error);
    return rc;
}

/* Who computes: what was asked for, or the dense library where there is a BLAS. */
static int demo_choose(struct demo_run *d)
{
    struct heddle_machine_info m = {.size = sizeof(m)};

    if (d->kernels == NULL)
        d->kernels = heddle_la_missing()[0] == '\0' ? "dense" : heddle_tile_table[0]->name;
    d->way = strcmp(d->kernels, "dense") == 0 ? &demo_way_dense : &demo_way_tiles;
    if (d->way == &demo_way_tiles && tile_find(d->kernels) == NULL)
        return cli_error(d->c, "there are no kernels '%s' in this build", d->kernels);
    if (d->way == &demo_way_dense && heddle_la_missing()[0] != '\0')
        return cli_fail(d->c, "%s", heddle_la_missing());
    if (heddle_machine_query(&m) == HEDDLE_OK)
        d->memory_available = m.memory_available;
    return 0;
}

static int demo_run(struct cli *c, int argc, char **argv)
{
    struct demo_run d = {.c = c, .log = "heddle-demo.log", .log_level = 1};
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
    rc = demo_choose(&d);
    if (rc != 0)
        return rc;
    rc = demo_steps(&d);
    heddle_ctx_destroy(d.ctx);
    d.way->clean(&d);
    return rc;
}

const struct heddle_cmd heddle_cmd_demo = {
    .name = "demo",
    .help = "factorises a matrix by tasks on cores and GPUs and checks it",
    .usage = "heddle demo [--n N] [--nb NB] [--workers W] [--kernels dense|blas|plain]\n"
             "    [--devices LIST] [--log FILE] [--log-level L] [--page FILE]\n"
             "    [--no-progress] [--json]\n"
             "\n"
             "  --n            order of the matrix (default: about a second of work)\n"
             "  --nb           width of block columns, or order of a tile (default: by\n"
             "                 matrix and machine)\n"
             "  --workers      (default: all cores)\n"
             "  --kernels      dense: the dense library (default, needs a BLAS); blas and\n"
             "                 plain: by tiles, with the BLAS or in plain C\n"
             "  --devices      as in HEDDLE_DEVICES, 'none' for the cores alone\n"
             "  --log          where the trace goes (default heddle-demo.log)\n"
             "  --log-level    0 (tasks) to 3 (default 1: with dependencies)\n"
             "  --page         the run as a page for a browser, too\n"
             "  --no-progress  no progress bar\n"
             "  --json         one JSON object\n",
    .run = demo_run,
};
