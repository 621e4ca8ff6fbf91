/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * energy place: which jobs run on the efficient machines, and which elsewhere.
 *
 * Energy     without due dates all machines here draw their watts until the last one
 *            ends; with due dates each does while it runs a job. A job there draws its
 *            watts for as long as it would take here.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/number.h"
#include "base/text.h"
#include "common/output.h"
#include "heddle/energy_place.h"
#include "trace/cmd.h"

enum { NUMBERS = 6, CELL = 48 };

/* Numbers of the command line, and whether they were given. */
struct number {
    const char *text;
    double value;
};

struct place {
    struct number alpha, eps, here, there, grid, grid_there;
    uint64_t machines;
    bool has_due;
    const char *file, *out;
    struct heddle_energy_jobs jobs;
    struct heddle_energy_place_opts opts;
    struct heddle_energy_place r;
    char why[400];
};

/* Joules and grams of a placement; `least` is what no placement goes below. */
struct price {
    double here, there, least, all_there;
};

static double seconds(uint64_t us)
{
    return (double)us / 1e6;
}

static int read_number(struct cli *c, struct number *n, const char *name, bool may_be_zero)
{
    if (n->text == NULL)
        return 0;
    if (!heddle_number_finite(n->text, &n->value) || n->value < 0 || n->value > 1e12 ||
        (n->value == 0 && !may_be_zero))
        return cli_error(c, "%s is '%s', but it must be a number %s 10^12", name, n->text,
                         may_be_zero ? "from 0 to" : "above 0 and up to");
    return 0;
}

static int read_numbers(struct cli *c, struct place *p)
{
    const struct {
        struct number *n;
        const char *name;
        bool may_be_zero;
    } row[NUMBERS] = {
        {&p->alpha, "--alpha", true},      {&p->eps, "--eps", false},
        {&p->here, "--watts-here", false}, {&p->there, "--watts-there", false},
        {&p->grid, "--intensity", true},   {&p->grid_there, "--intensity-there", true}};

    for (size_t i = 0; i < NUMBERS; i++) {
        const int rc = read_number(c, row[i].n, row[i].name, row[i].may_be_zero);

        if (rc != 0)
            return rc;
    }
    if (p->grid_there.text == NULL)
        p->grid_there = p->grid;
    return 0;
}

static int check_args(struct cli *c, struct place *p)
{
    const bool has_watts = p->here.text != NULL;
    const int rc = read_numbers(c, p);

    if (rc != 0)
        return rc;
    if (p->machines == 0)
        return cli_error(c, "energy place needs --machines");
    if (has_watts != (p->there.text != NULL))
        return cli_error(c, "--watts-here and --watts-there go together");
    if (p->has_due && (p->alpha.text != NULL || p->eps.text != NULL))
        return cli_error(c, "--alpha and --eps are for jobs without --due");
    if (!p->has_due && has_watts == (p->alpha.text != NULL))
        return cli_error(c, "energy place needs either --alpha, or "
                            "--watts-here and --watts-there");
    if (p->has_due && has_watts && p->there.value < p->here.value)
        return cli_error(c, "with --due, --watts-there must not be below "
                            "--watts-here: all jobs would go there");
    if (p->eps.text != NULL && (p->eps.value < 0.0001 || p->eps.value > 1))
        return cli_error(c, "--eps is '%s', but it must be 0.0001 to 1", p->eps.text);
    if ((p->grid.text != NULL || p->grid_there.text != NULL) && !has_watts)
        return cli_error(c, "--intensity needs --watts-here and --watts-there");
    if (p->grid.text == NULL && p->grid_there.text != NULL)
        return cli_error(c, "--intensity-there needs --intensity");
    return 0;
}

static struct price price_of(const struct place *p, double here, double there)
{
    const double m = (double)p->machines;
    const double all = seconds(p->r.here_us + p->r.there_us);
    struct price e = {.there = there * seconds(p->r.there_us), .all_there = there * all};

    if (p->has_due) {
        e.here = here * seconds(p->r.here_us);
        e.least = here * p->r.bound + there * (all - p->r.bound);
    } else {
        e.here = here * m * seconds(p->r.span_us);
        e.least = here * m * p->r.bound;
    }
    return e;
}

static double ratio_of(const struct place *p)
{
    const double value = p->has_due ? seconds(p->r.here_us) : p->r.cost;

    return p->r.bound > 0 ? value / p->r.bound : 1;
}

static size_t count_here(const struct heddle_energy_place *r)
{
    size_t n = 0;

    for (size_t i = 0; i < r->njobs; i++)
        n += r->machine[i] != HEDDLE_ENERGY_THERE;
    return n;
}

/* --- text ------------------------------------------------------------------ */

static const char *amount(char cell[CELL], double v, const char *unit)
{
    static const char *const prefix[] = {"m", "", "k", "M", "G", "T"};
    unsigned i = 1;

    if (v > 0 && v < 1) {
        v *= 1000;
        i = 0;
    }
    for (; v >= 1000 && i + 1 < sizeof(prefix) / sizeof(prefix[0]); i++)
        v /= 1000;
    snprintf(cell, CELL, "%.4g %s%s", v, prefix[i], unit);
    return cell;
}

static void print_price(FILE *f, const char *what, const char *unit, const struct price *e,
                        bool has_least)
{
    char a[CELL], b[CELL], c[CELL], d[CELL];

    fprintf(f, "%-9s %s: %s here, %s there; all jobs there: %s", what,
            amount(a, e->here + e->there, unit), amount(b, e->here, unit),
            amount(c, e->there, unit), amount(d, e->all_there, unit));
    if (has_least)
        fprintf(f, "; at least %s", amount(a, e->least, unit));
    fputc('\n', f);
}

static void print_text(FILE *f, const struct place *p)
{
    const struct heddle_energy_place *r = &p->r;
    const size_t nhere = count_here(r);

    fprintf(f, "jobs      %zu, %.6g s of work, %" PRIu64 " machine%s here\n", r->njobs,
            seconds(r->here_us + r->there_us), p->machines, p->machines == 1 ? "" : "s");
    fprintf(f, "here      %zu jobs, %.6g s; the last one ends after %.6g s\n", nhere,
            seconds(r->here_us), seconds(r->span_us));
    fprintf(f, "there     %zu jobs, %.6g s\n", r->njobs - nhere, seconds(r->there_us));
    if (p->has_due) {
        fprintf(f, "work      %.4f of the most possible, or more; proved: %.4f\n", ratio_of(p),
                r->proved);
        fprintf(f, "bound     no placement does more than %.6g s here\n", r->bound);
        if (r->unit_us > 0)
            fprintf(f,
                    "exact     no: durations were rounded up to multiples of "
                    "%.6g s on the way\n",
                    seconds(r->unit_us));
    } else {
        fprintf(f,
                "cost      %.6g s (alpha %.6g), %.4f of the bound; proved: "
                "%.4f of the least, or less\n",
                r->cost, p->opts.alpha, ratio_of(p), r->proved);
        fprintf(f, "bound     no placement costs less than %.6g s\n", r->bound);
        if (p->jobs.ndue > 0)
            fprintf(f,
                    "due       the due dates of %zu jobs are not used: "
                    "--due\n",
                    p->jobs.ndue);
    }
    if (p->here.text != NULL) {
        const struct price e = price_of(p, p->here.value, p->there.value);

        print_price(f, "energy", "J", &e, true);
    }
    if (p->grid.text != NULL) {
        const struct price g = price_of(p, p->here.value * p->grid.value / 3.6e6,
                                        p->there.value * p->grid_there.value / 3.6e6);

        print_price(f, "carbon", "g", &g, false);
    }
    fputs("checked   yes\n", f);
}

/* --- JSON ------------------------------------------------------------------ */

static void json_price(struct heddle_json *j, const char *name, const struct price *e,
                       bool has_least)
{
    heddle_json_key(j, name);
    heddle_json_object(j);
    heddle_json_key_double(j, "here", e->here);
    heddle_json_key_double(j, "there", e->there);
    heddle_json_key_double(j, "total", e->here + e->there);
    heddle_json_key_double(j, "all_there", e->all_there);
    if (has_least)
        heddle_json_key_double(j, "lower_bound", e->least);
    heddle_json_end(j);
}

static int print_json(struct cli *c, const struct place *p)
{
    const struct heddle_energy_place *r = &p->r;
    struct heddle_json j;

    heddle_json_init_file(&j, c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "file", p->file);
    heddle_json_key_uint(&j, "jobs", r->njobs);
    heddle_json_key_uint(&j, "machines", p->machines);
    heddle_json_key_bool(&j, "due", p->has_due);
    heddle_json_key_uint(&j, "jobs_here", count_here(r));
    heddle_json_key_double(&j, "here_s", seconds(r->here_us));
    heddle_json_key_double(&j, "there_s", seconds(r->there_us));
    heddle_json_key_double(&j, "span_s", seconds(r->span_us));
    if (!p->has_due) {
        heddle_json_key_double(&j, "alpha", p->opts.alpha);
        heddle_json_key_double(&j, "cost_s", r->cost);
    } else {
        heddle_json_key_double(&j, "unit_s", seconds(r->unit_us));
    }
    heddle_json_key_double(&j, "bound_s", r->bound);
    heddle_json_key_double(&j, "ratio", ratio_of(p));
    heddle_json_key_double(&j, "proved_ratio", r->proved);
    if (p->here.text != NULL) {
        const struct price e = price_of(p, p->here.value, p->there.value);

        json_price(&j, "energy_j", &e, true);
    }
    if (p->grid.text != NULL) {
        const struct price g = price_of(p, p->here.value * p->grid.value / 3.6e6,
                                        p->there.value * p->grid_there.value / 3.6e6);

        json_price(&j, "carbon_g", &g, false);
    }
    heddle_json_key_double(&j, "seconds", 1e-9 * (double)r->time_ns);
    heddle_json_key_bool(&j, "checked", true);
    heddle_json_end(&j);
    heddle_json_line(&j);
    return trace_end(c, heddle_json_finish(&j));
}

/* --- the placement --------------------------------------------------------- */

static int write_placement(struct cli *c, const struct place *p)
{
    struct output o;
    const int rc = output_begin_stream(&o, c, p->out);
    FILE *f = o.f;

    if (rc != 0)
        return rc;
    fputs("heddle-jobs-placed 1\n", f);
    for (size_t i = 0; i < p->r.njobs; i++) {
        const uint64_t us = p->r.start_us[i];

        if (p->r.machine[i] == HEDDLE_ENERGY_THERE)
            fprintf(f, "there %s\n", p->jobs.jobs[i].name);
        else
            fprintf(f, "here %s %" PRIu32 " %" PRIu64 ".%06" PRIu64 "\n", p->jobs.jobs[i].name,
                    p->r.machine[i], us / 1000000, us % 1000000);
    }
    return output_end(&o, 0);
}

static int solve(struct cli *c, struct place *p)
{
    int rc = 0;

    p->opts = (struct heddle_energy_place_opts){.size = sizeof(p->opts),
                                                .machines = (uint32_t)p->machines,
                                                .has_due = p->has_due,
                                                .alpha = p->alpha.text != NULL ? p->alpha.value : 0,
                                                .eps = p->eps.value,
                                                .why = p->why,
                                                .why_bytes = sizeof(p->why)};
    if (p->here.text != NULL && !p->has_due)
        p->opts.alpha = p->there.value / ((double)p->machines * p->here.value);
    if (heddle_energy_place_make(p->jobs.jobs, p->jobs.njobs, &p->opts, &p->r) != HEDDLE_OK)
        return cli_fail(c, "%s: %s", p->file, p->why);
    if (heddle_energy_place_check(p->jobs.jobs, p->jobs.njobs, &p->opts, &p->r) != HEDDLE_OK)
        rc = cli_fail(c, "the checker refuses the placement: %s", p->why);
    if (rc == 0 && p->out != NULL)
        rc = write_placement(c, p);
    if (rc == 0 && c->json)
        rc = print_json(c, p);
    else if (rc == 0)
        print_text(c->out, p);
    heddle_energy_place_fini(&p->r);
    return rc;
}

static int place_run(struct cli *c, int argc, char **argv)
{
    struct place p = {.jobs = {.size = sizeof(p.jobs)}, .r = {.size = sizeof(p.r)}};
    struct cli_args args = {.max = 1};
    const struct cli_opt opts[] = {{"--machines", CLI_UINT, &p.machines, 1, HEDDLE_ENERGY_MACHINES},
                                   {"--alpha", CLI_STRING, &p.alpha.text, 0, 0},
                                   {"--watts-here", CLI_STRING, &p.here.text, 0, 0},
                                   {"--watts-there", CLI_STRING, &p.there.text, 0, 0},
                                   {"--due", CLI_FLAG, &p.has_due, 0, 0},
                                   {"--eps", CLI_STRING, &p.eps.text, 0, 0},
                                   {"--intensity", CLI_STRING, &p.grid.text, 0, 0},
                                   {"--intensity-there", CLI_STRING, &p.grid_there.text, 0, 0},
                                   {"-o", CLI_OUTPUT, &p.out, 0, 0},
                                   {0}};
    int rc = cli_parse(c, "energy place", argc, argv, opts, &args);

    if (rc != 0)
        return rc;
    if (args.n != 1)
        return cli_error(c, "energy place needs a file of jobs");
    rc = check_args(c, &p);
    if (rc != 0)
        return rc;
    p.file = args.operand[0];
    if (heddle_energy_jobs_read(NULL, p.file, &p.jobs, p.why, sizeof(p.why)) != HEDDLE_OK)
        return cli_fail(c, "%s", p.why);
    rc = solve(c, &p);
    heddle_energy_jobs_fini(&p.jobs);
    return rc;
}

const struct heddle_cmd heddle_energy_verb_place = {
    .name = "place",
    .help = "jobs between efficient machines and others",
    .usage = "heddle energy place JOBS --machines M (--alpha X |\n"
             "    --watts-here W --watts-there W2) [--due] [--eps E]\n"
             "    [--intensity G] [--intensity-there G] [-o PLACEMENT] [--json]\n"
             "\n"
             "  --machines         the efficient ones, \"here\"; \"there\" is no "
             "limit\n"
             "  --alpha            price of a second there: the cost is the time "
             "until the\n"
             "                     last machine here ends + alpha x seconds there\n"
             "  --watts-here       of one machine here, and\n"
             "  --watts-there      of a job there: alpha follows, and the energy\n"
             "  --due              due dates are kept here, as much work as "
             "possible is\n"
             "                     done here; no alpha\n"
             "  --eps              of the proved ratio 5/4 (1 + eps) (default "
             "0.01)\n"
             "  --intensity        of the grid, g of CO2 per kWh, here and there\n"
             "  --intensity-there  another one there\n"
             "  -o                 writes which job runs where and when\n"
             "JOBS has lines 'job NAME SECONDS [due SECONDS]' behind 'heddle-jobs "
             "1'.\n",
    .run = place_run,
};
