/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * energy frontier: time against energy for the tasks of a log, as a table, as
 * JSON and as a page.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/output.h"
#include "common/page.h"
#include "energy/input.h"
#include "trace/cmd.h"

enum { MAX_POINTS = 200 };

struct frontier {
    struct energy_input in;
    struct heddle_energy_point point[MAX_POINTS];
    uint32_t n;
};

/* --- table and JSON ----------------------------------------------------------- */

static void print_text(const struct frontier *x)
{
    FILE *f = x->in.c->out;

    energy_input_print(&x->in);
    fprintf(f, "\n%12s %12s %12s %12s %12s %12s %8s\n", "deadline", "length", "tasks J", "idle J",
            "joules", "bound J", "ratio");
    for (uint32_t i = 0; i < x->n; i++) {
        const struct heddle_energy_point *p = &x->point[i];
        char a[TRACE_CELL], b[TRACE_CELL];

        fprintf(f, "%12s %12s %12.4g %12.4g %12.4g %12.4g %8.3f\n",
                trace_text_ns(a, (int64_t)p->deadline), trace_text_ns(b, (int64_t)p->makespan),
                p->cost.active, p->cost.idle, p->cost.total, p->bound,
                p->bound > 0.0 ? p->cost.total / p->bound : 1.0);
    }
}

static heddle_status print_json(const struct frontier *x, const char *file)
{
    struct heddle_json j;
    heddle_status st;

    heddle_json_init_file(&j, x->in.c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "unit", "s");
    energy_input_json(&x->in, &j);
    heddle_json_key(&j, "points");
    heddle_json_array(&j);
    for (uint32_t i = 0; i < x->n; i++) {
        heddle_json_object(&j);
        heddle_json_key_double(&j, "deadline", x->point[i].deadline * 1e-9);
        energy_cost_json(&j, x->point[i].makespan, &x->point[i].cost);
        heddle_json_key_double(&j, "bound_joules", x->point[i].bound);
        heddle_json_end(&j);
    }
    heddle_json_end(&j);
    heddle_json_key_str(&j, "page", file);
    heddle_json_end(&j);
    heddle_json_line(&j);
    st = heddle_json_finish(&j);
    heddle_json_fini(&j);
    return st;
}

/* --- the page ------------------------------------------------------------------- */

#define WIDTH  1000.0
#define LEFT   90.0
#define PLOT   880.0
#define TOP    16.0
#define HEIGHT 320.0

struct axes {
    double x0, x1, y0, y1;
};

static double x_of(const struct axes *a, double v)
{
    return LEFT + PLOT * (v - a->x0) / (a->x1 - a->x0);
}

static double y_of(const struct axes *a, double v)
{
    return TOP + HEIGHT * (a->y1 - v) / (a->y1 - a->y0);
}

static struct axes find_axes(const struct frontier *x)
{
    const struct heddle_energy_point *p = x->point;
    struct axes a = {p[0].deadline, p[0].deadline, p[0].bound, p[0].cost.total};

    for (uint32_t i = 0; i < x->n; i++) {
        a.x0 = fmin(a.x0, p[i].makespan);
        a.x1 = fmax(a.x1, p[i].deadline);
        a.y0 = fmin(a.y0, p[i].bound);
        a.y1 = fmax(a.y1, p[i].cost.total);
    }
    if (!isnan(x->in.run_total)) {
        a.x1 = fmax(a.x1, (double)x->in.b.g->makespan_ns);
        a.x0 = fmin(a.x0, (double)x->in.b.g->makespan_ns);
        a.y1 = fmax(a.y1, x->in.run_total);
        a.y0 = fmin(a.y0, x->in.run_total);
    }
    a.x1 += 0.04 * (a.x1 - a.x0) + 1e-9 * a.x1 + 1e-12;
    a.x0 -= 0.04 * (a.x1 - a.x0);
    a.y1 += 0.06 * (a.y1 - a.y0) + 1e-9 * a.y1 + 1e-12;
    a.y0 -= 0.06 * (a.y1 - a.y0);
    return a;
}

static void put_grid(const struct axes *a, FILE *f)
{
    char s[TRACE_CELL];

    for (int i = 0; i <= 4; i++) {
        const double x = a->x0 + (a->x1 - a->x0) * i / 4;
        const double y = a->y0 + (a->y1 - a->y0) * i / 4;

        fprintf(f,
                "<line class=grid x1=%.0f x2=%.0f y1=%.1f y2=%.1f />"
                "<text x=%.0f y=%.1f text-anchor=end>%.4g J</text>"
                "<text class=dim x=%.1f y=%.0f text-anchor=middle>%s</text>\n",
                LEFT, LEFT + PLOT, y_of(a, y), y_of(a, y), LEFT - 6, y_of(a, y) + 4, y, x_of(a, x),
                TOP + HEIGHT + 18, trace_text_ns(s, (int64_t)x));
    }
}

static void put_curve(const struct frontier *x, const struct axes *a, bool is_bound, FILE *f)
{
    fprintf(f, "<path class=%s d=\"", is_bound ? "bound" : "curve");
    for (uint32_t i = 0; i < x->n; i++)
        fprintf(f, "%s%.1f %.1f", i == 0 ? "M" : "L",
                x_of(a, is_bound ? x->point[i].deadline : x->point[i].makespan),
                y_of(a, is_bound ? x->point[i].bound : x->point[i].cost.total));
    fputs("\"/>\n", f);
}

static void put_picture(const struct frontier *x, FILE *f)
{
    const struct axes a = find_axes(x);
    char s[TRACE_CELL];

    fprintf(f,
            "<svg viewBox=\"0 0 %.0f %.0f\" role=img aria-label=\"energy "
            "against time\">\n",
            WIDTH, TOP + HEIGHT + 26);
    put_grid(&a, f);
    put_curve(x, &a, true, f);
    put_curve(x, &a, false, f);
    for (uint32_t i = 0; i < x->n; i++)
        fprintf(f,
                "<circle class=keep cx=%.1f cy=%.1f r=3.5><title>%s, %.5g J; "
                "bound %.5g J</title></circle>\n",
                x_of(&a, x->point[i].makespan), y_of(&a, x->point[i].cost.total),
                trace_text_ns(s, (int64_t)x->point[i].makespan), x->point[i].cost.total,
                x->point[i].bound);
    if (!isnan(x->in.run_total))
        fprintf(f,
                "<circle class=again cx=%.1f cy=%.1f r=5><title>the recorded "
                "run: %s, %.5g J</title></circle>\n",
                x_of(&a, (double)x->in.b.g->makespan_ns), y_of(&a, x->in.run_total),
                trace_text_ns(s, x->in.b.g->makespan_ns), x->in.run_total);
    fputs("</svg>\n<p class=dim>Dots: schedules. Dashed: no schedule of that "
          "length needs less.",
          f);
    if (!isnan(x->in.run_total))
        fputs(" <span style=\"color:var(--again)\">&#9679;</span> the "
              "recorded run, by the model.",
              f);
    fputs("</p>\n", f);
}

static void put_table(const struct frontier *x, FILE *f)
{
    fputs("<table><tr><th>deadline<th>length<th>tasks<th>idle<th>energy<th>"
          "bound<th>ratio</tr>\n",
          f);
    for (uint32_t i = 0; i < x->n; i++) {
        const struct heddle_energy_point *p = &x->point[i];
        char a[TRACE_CELL], b[TRACE_CELL];

        fprintf(f,
                "<tr><td>%s<td>%s<td>%.4g J<td>%.4g J<td>%.4g J<td>%.4g J<td>"
                "%.3f</tr>\n",
                trace_text_ns(a, (int64_t)p->deadline), trace_text_ns(b, (int64_t)p->makespan),
                p->cost.active, p->cost.idle, p->cost.total, p->bound,
                p->bound > 0.0 ? p->cost.total / p->bound : 1.0);
    }
    fputs("</table>\n", f);
}

static int write_page(const struct frontier *x, const char *file)
{
    struct output o;
    const int rc = output_begin_stream(&o, x->in.c, file);
    FILE *f = o.f;

    if (rc != 0)
        return rc;
    fputs("<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8>\n<title>"
          "Energy against time</title>\n",
          f);
    fputs(page_head, f);
    fputs("</head><body>\n<h1>Energy against time</h1>\n<p>Log ", f);
    page_text(f, x->in.path);
    fprintf(f, ", %u tasks; model ", x->in.g->graph.ntasks);
    page_text(f, x->in.model_path);
    fprintf(f, ", idle %.4g W.</p>\n", x->in.g->eg.idle * 1e9);
    put_picture(x, f);
    put_table(x, f);
    fputs("</body></html>\n", f);
    return output_end(&o, 0);
}

/* --- command line ----------------------------------------------------------------- */

static int frontier_all(struct frontier *x, const struct energy_args *a, uint32_t n,
                        const char *file)
{
    const struct heddle_energy_opts o = {.size = sizeof(o),
                                         .seed = a->seed,
                                         .time_ns = a->time_ns,
                                         .iterations = a->iterations,
                                         .why = x->in.why,
                                         .why_bytes = sizeof(x->in.why)};
    const heddle_status st = heddle_energy_frontier(&x->in.g->eg, &o, n, x->point, &x->n);
    int rc = 0;

    if (st != HEDDLE_OK)
        return energy_input_fail(&x->in, st);
    if (file != NULL)
        rc = write_page(x, file);
    if (rc != 0)
        return rc;
    if (x->in.c->json)
        return trace_end(x->in.c, print_json(x, file));
    print_text(x);
    if (file != NULL)
        fprintf(x->in.c->out, "\nwrote %s\n", file);
    return 0;
}

static int frontier_run(struct cli *c, int argc, char **argv)
{
    struct energy_args a = {.time = "5s", .seed = 1};
    struct frontier *x = calloc(1, sizeof(*x));
    struct cli_args args = {.max = 1};
    struct cli_opt opts[ENERGY_NOPTS + 3] = {{0}};
    const char *file = NULL;
    uint64_t n = 8;
    int rc;

    if (x == NULL)
        return cli_fail(c, "%s", heddle_status_text(HEDDLE_ENOMEM));
    energy_args_opts(&a, opts);
    opts[ENERGY_NOPTS - 1] = (struct cli_opt){"--points", CLI_UINT, &n, 2, MAX_POINTS};
    opts[ENERGY_NOPTS] = (struct cli_opt){"-o", CLI_OUTPUT, &file, 0, 0};
    opts[ENERGY_NOPTS + 1] = (struct cli_opt){"--output", CLI_OUTPUT, &file, 0, 0};
    rc = cli_parse(c, "energy frontier", argc, argv, opts, &args);
    if (rc == 0)
        rc = energy_input_open(&x->in, c, "frontier", &args, &a);
    if (rc == 0 && file != NULL)
        rc = output_check_input(c, file, x->in.model_path);
    if (rc == 0)
        rc = frontier_all(x, &a, (uint32_t)n, file);
    if (rc == 0)
        trace_warn_partial(c, args.operand[0], x->in.log);
    energy_input_close(&x->in);
    free(x);
    return rc;
}

const struct heddle_cmd heddle_energy_verb_frontier = {
    .name = "frontier",
    .help = "time against energy, from the fastest schedule to the cheapest",
    .usage = "heddle energy frontier LOG [--points N] [--time T] [--model FILE]\n"
             "    [--machine FILE] [--cap CAPS] [--durations D] [--seed S]\n"
             "    [--iterations N] [-o PAGE.html] [--json]\n"
             "\n"
             "  --points      of the curve, at most (default 8)\n"
             "  --time        for all of it (default 5s)\n"
             "  -o            also as a page, with the curve\n"
             "The other options are those of 'heddle energy bound --help'. Each "
             "point "
             "is a\n"
             "schedule and the least energy of any that keeps its deadline. Times "
             "in "
             "JSON\n"
             "are seconds, energies joules.\n",
    .run = frontier_run,
};
