/* SPDX-License-Identifier: BSD-3-Clause */
/* demo/print: what the demo says at its end. */
#include <inttypes.h>

#include "base/json.h"
#include "demo/run.h"

#define CELL 32

double demo_rate(const struct demo_run *d)
{
    return d->wall_ns > 0 ? demo_matrix_flops(d->n) / d->wall_ns : 0;
}

static const char *ns_text(char cell[CELL], double ns)
{
    struct heddle_text t;

    heddle_text_init(&t, cell, CELL);
    heddle_text_ns(&t, (uint64_t)(ns + 0.5));
    return cell;
}

static const char *bytes_text(char cell[CELL], double bytes)
{
    struct heddle_text t;

    heddle_text_init(&t, cell, CELL);
    heddle_text_bytes(&t, (uint64_t)bytes);
    return cell;
}

/* --- for people ------------------------------------------------------------- */

static void print_tasks(const struct demo_run *d)
{
    const struct demo_report *r = &d->report;
    FILE *out = d->c->out;

    fprintf(out, "tasks        %" PRIu64 ":", r->ntasks);
    for (unsigned i = 0; i < r->nkernels; i++)
        fprintf(out, "%s %" PRIu64 " %s", i > 0 ? "," : "", r->kernel[i].ntasks, r->kernel[i].name);
    fputc('\n', out);
    if (r->ndevices == 0)
        return;
    fprintf(out, "places       %" PRIu64 " on the cores", r->core_tasks);
    for (unsigned i = 0; i < r->ndevices; i++)
        fprintf(out, ", %" PRIu64 " on %s (busy %.1f %% of the time)", r->device[i].ntasks,
                r->device[i].name, 100 * r->device[i].busy);
    fputc('\n', out);
}

static void print_times(const struct demo_run *d)
{
    FILE *out = d->c->out;
    char a[CELL], b[CELL], c[CELL], e[CELL];

    if (d->load_ns > 0)
        fprintf(out, "loading      %s: libraries, kernels, two small factorisations\n",
                ns_text(a, d->load_ns));
    if (d->send_ns > 0)
        fprintf(out, "transfers    %s there in %s (%.1f GB/s), %s home in %s (%.1f GB/s)\n",
                bytes_text(a, d->sent), ns_text(b, d->send_ns), d->sent / d->send_ns,
                bytes_text(c, d->fetched), ns_text(e, d->home_ns), d->fetched / d->home_ns);
    else if (d->ngpus > 0)
        fputs("transfers    are part of the time\n", out);
    fprintf(out, "time         %s, %.1f GFLOP/s\n", ns_text(a, d->wall_ns), demo_rate(d));
}

static void print_bound(const struct demo_run *d)
{
    const struct demo_report *r = &d->report;
    FILE *out = d->c->out;
    char a[CELL], b[CELL], c[CELL];

    fprintf(out, "utilisation  %.1f %% of %u worker%s\n", 100 * r->utilisation, d->stats.nworkers,
            d->stats.nworkers == 1 ? "" : "s");
    fprintf(out, "overhead     %s per task\n", ns_text(a, r->overhead_task_ns));
    if (r->ndevices == 0 && d->peak > 0)
        fprintf(out, "speed        %.1f %% of %.1f GFLOP/s, gemm alone on each of the %u core%s\n",
                100 * demo_rate(d) / d->peak, d->peak, d->stats.nworkers,
                d->stats.nworkers == 1 ? "" : "s");
    fprintf(out,
            "bound        %s with these task times (work %s, longest chain %s)\n"
            "             this run is at %.1f %% of the best possible on this machine%s\n",
            ns_text(a, r->bound_ns), ns_text(b, r->area_ns), ns_text(c, r->path_ns),
            100 * r->bound_ns / d->wall_ns,
            r->has_deps ? "" : ", if tasks were independent: see --log-level");
}

void demo_print(const struct demo_run *d)
{
    FILE *out = d->c->out;
    char a[CELL];

    print_tasks(d);
    print_times(d);
    print_bound(d);
    fprintf(out, "check        ||A - L L^T|| / (n ||A|| eps) = %.2g: %s\n", d->error,
            d->error < DEMO_GOOD_ERROR ? "right" : "WRONG");
    fprintf(out, "trace        %s (%s)", d->log, bytes_text(a, (double)d->report.log_bytes));
    if (d->page != NULL)
        fprintf(out, "\npage         %s: open it in a browser\n", d->page);
    else
        fprintf(out,
                "; a page for a browser is made by\n"
                "  %s trace view %s -o heddle-demo.html\n",
                d->c->prog, d->log);
}

/* --- for programs ------------------------------------------------------------- */

static void json_counts(struct heddle_json *j, const struct demo_report *r)
{
    heddle_json_key(j, "kernel_tasks");
    heddle_json_object(j);
    for (unsigned i = 0; i < r->nkernels; i++)
        heddle_json_key_uint(j, r->kernel[i].name, r->kernel[i].ntasks);
    heddle_json_end(j);
    heddle_json_key_uint(j, "core_tasks", r->core_tasks);
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

/* A time that was not taken is null. */
static void json_ns(struct heddle_json *j, const char *key, double ns)
{
    heddle_json_key(j, key);
    if (ns > 0)
        heddle_json_double(j, ns);
    else
        heddle_json_null(j);
}

int demo_print_json(const struct demo_run *d)
{
    struct heddle_json j;
    heddle_status st;

    heddle_json_init_file(&j, d->c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "demo");
    heddle_json_key_str(&j, "version", heddle_version());
    heddle_json_key_uint(&j, "n", d->n);
    heddle_json_key_uint(&j, "nb", d->nb);
    heddle_json_key_uint(&j, "tiles", (d->n + d->nb - 1) / d->nb);
    heddle_json_key_uint(&j, "workers", d->stats.nworkers);
    heddle_json_key_str(&j, "sched", d->stats.sched);
    heddle_json_key_str(&j, "kernels", d->kernels);
    heddle_json_key_uint(&j, "tasks", d->report.ntasks);
    json_counts(&j, &d->report);
    json_ns(&j, "load_ns", d->load_ns);
    json_ns(&j, "send_ns", d->send_ns);
    json_ns(&j, "home_ns", d->home_ns);
    heddle_json_key_double(&j, "sent_bytes", d->sent);
    heddle_json_key_double(&j, "fetched_bytes", d->fetched);
    heddle_json_key_double(&j, "wall_ns", d->wall_ns);
    heddle_json_key_double(&j, "gflops", demo_rate(d));
    heddle_json_key_double(&j, "peak_gflops", d->peak);
    heddle_json_key_double(&j, "utilisation", d->report.utilisation);
    heddle_json_key_double(&j, "overhead_ns_per_task", d->report.overhead_task_ns);
    heddle_json_key_double(&j, "area_ns", d->report.area_ns);
    heddle_json_key_double(&j, "path_ns", d->report.path_ns);
    heddle_json_key_double(&j, "bound_ns", d->report.bound_ns);
    heddle_json_key_double(&j, "efficiency", d->report.bound_ns / d->wall_ns);
    heddle_json_key_double(&j, "backward_error", d->error);
    heddle_json_key_bool(&j, "right", d->error < DEMO_GOOD_ERROR);
    heddle_json_key_str(&j, "log", d->log);
    heddle_json_key_uint(&j, "log_bytes", d->report.log_bytes);
    heddle_json_key_str(&j, "page", d->page);
    heddle_json_end(&j);
    heddle_json_line(&j);
    st = heddle_json_finish(&j);
    return st == HEDDLE_OK ? 0 : cli_output_failed(d->c, st);
}
