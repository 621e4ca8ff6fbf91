/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/plan: how good plans are, and how fast they come.
 *
 * Instances  graph files below --data, or below $HEDDLE_SHARED/data/planner, or
 *            else generated ones. Each with every budget and every solver asked
 *            for; every plan goes through the checker.
 * Output     one line per case: increase over computing everything once, lower
 *            bound and gap in the same unit, seconds, the checker's verdict; one
 *            line per solver at the end.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "bench/bench.h"
#include "bench/plan/plan.h"
#include "plan/gen.h"

enum { MAX_FILES = 256, MAX_BUDGETS = 16, MAX_CASES = 4096 };

struct plan_bench {
    struct cli *c;
    const char *data, *solver, *only, *budgets, *time, *link;
    double rate;       /* bytes per unit of time; 0: no rows about moving */
    uint64_t ndevices; /* 0: no rows about pipelines */
    bool is_least;     /* rows about small budgets */
    double fraction[MAX_BUDGETS], limit_s;
    unsigned nbudgets;
    bool large; /* only graphs of 10 000 operations */
    uint64_t seed;
    uint64_t chains; /* > 0: only tables of chains of up to so many layers */
    char *file[MAX_FILES];
    unsigned nfiles;
    unsigned nchosen; /* instances that --instance means */
    /* of the solver at hand */
    unsigned ncases, nplans, nbad, ngaps;
    double gap[MAX_CASES]; /* at budgets of half or more */
    double seconds[MAX_CASES];
    double worst_arena;
};

/* --- instances ------------------------------------------------------------ */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool has_ending(const char *s, const char *ending)
{
    const size_t n = strlen(s), k = strlen(ending);

    return n > k && strcmp(s + n - k, ending) == 0;
}

static void find_files(struct plan_bench *b, const char *dir, unsigned depth)
{
    DIR *d = opendir(dir);
    const struct dirent *e;

    while (d != NULL && (e = readdir(d)) != NULL) {
        char path[1024];
        const int n = snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);

        if (e->d_name[0] == '.' || n < 0 || (size_t)n >= sizeof(path))
            continue;
        if ((has_ending(path, ".dag") || has_ending(path, ".chain") ||
             has_ending(path, ".graph")) &&
            b->nfiles < MAX_FILES)
            b->file[b->nfiles++] = strdup(path);
        else if (depth > 0 && strchr(e->d_name, '.') == NULL)
            find_files(b, path, depth - 1);
    }
    if (d != NULL)
        closedir(d);
}

static int find_instances(struct plan_bench *b)
{
    const char *shared = getenv("HEDDLE_SHARED");
    char path[1024];

    if (b->data != NULL) {
        find_files(b, b->data, 2);
        if (b->nfiles == 0)
            return cli_fail(b->c, "there is no graph below '%s'", b->data);
    } else if (shared != NULL) {
        snprintf(path, sizeof(path), "%s/data/planner", shared);
        find_files(b, path, 2);
    }
    qsort(b->file, b->nfiles, sizeof(b->file[0]), by_name);
    return 0;
}

int plan_bench_no_instance(struct cli *c, const char *text)
{
    return cli_error(c, "--instance '%s' is in the name of no graph", text);
}

/* --- output -------------------------------------------------------------- */

static int print_case(struct plan_bench *b, const struct heddle_plan_graph *g, double fraction,
                      const struct plan_try *t, const char *solver)
{
    const struct heddle_plan *p = t->plan;
    struct heddle_json j;

    if (!b->c->json) {
        if (p == NULL)
            fprintf(b->c->out, "%-48s %-10s %4.2f  no plan\n", g->name, solver, fraction);
        else
            fprintf(b->c->out,
                    "%-48s %-10s %4.2f  %+8.3f %%  bound %+8.3f %%  gap %7.3f  "
                    "%7.3f s  arena %.3f  %s\n",
                    g->name, p->solver, fraction, 100 * plan_increase(p), 100 * plan_bound(p),
                    100 * plan_gap(p), p->seconds,
                    p->peak_bytes > 0 ? (double)p->arena_bytes / (double)p->peak_bytes : 1,
                    t->is_checked ? "checked" : t->why);
        fflush(b->c->out);
        return 0;
    }
    heddle_json_init_file(&j, b->c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "plan");
    heddle_json_key_str(&j, "version", heddle_version());
    heddle_json_key_str(&j, "instance", g->name);
    heddle_json_key_uint(&j, "operations", g->nops);
    heddle_json_key_str(&j, "asked", solver);
    heddle_json_key_double(&j, "budget", fraction);
    plan_json(&j, t);
    if (p != NULL)
        heddle_json_key_double(&j, "bound", plan_bound(p));
    return plan_json_end(b->c, &j);
}

static int print_summary(struct plan_bench *b, const char *solver)
{
    const double gap = b->ngaps > 0 ? bench_stat(b->gap, b->ngaps).median : 0;
    const double seconds = b->nplans > 0 ? bench_stat(b->seconds, b->nplans).median : 0;
    struct heddle_json j;

    if (!b->c->json) {
        fprintf(b->c->out,
                "%s: %u plans of %u cases, %u refused by the checker; median "
                "gap %.3f points (budgets of half or more), median %.3f s, "
                "arena at most %.3f of the peak\n",
                solver, b->nplans, b->ncases, b->nbad, 100 * gap, seconds, b->worst_arena);
        return 0;
    }
    heddle_json_init_file(&j, b->c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "plan summary");
    heddle_json_key_str(&j, "asked", solver);
    heddle_json_key_uint(&j, "cases", b->ncases);
    heddle_json_key_uint(&j, "plans", b->nplans);
    heddle_json_key_uint(&j, "refused", b->nbad);
    heddle_json_key_double(&j, "median_gap", gap);
    heddle_json_key_double(&j, "median_seconds", seconds);
    heddle_json_key_double(&j, "worst_arena", b->worst_arena);
    heddle_json_key_bool(&j, "checked", b->nbad == 0);
    return plan_json_end(b->c, &j);
}

/* --- cases ---------------------------------------------------------------- */

static void note(struct plan_bench *b, double fraction, const struct plan_try *t)
{
    const struct heddle_plan *p = t->plan;
    double ratio;

    b->ncases++;
    if (p == NULL || b->nplans == MAX_CASES)
        return;
    b->seconds[b->nplans++] = p->seconds;
    b->nbad += !t->is_checked;
    ratio = p->peak_bytes > 0 ? (double)p->arena_bytes / (double)p->peak_bytes : 1;
    b->worst_arena = ratio > b->worst_arena ? ratio : b->worst_arena;
    if (fraction >= 0.499 && b->ngaps < MAX_CASES)
        b->gap[b->ngaps++] = plan_gap(p);
}

/* --link, --pipeline and --least ask for their rows instead of those of a solver. */
static bool has_own_rows(const struct plan_bench *b)
{
    return b->rate > 0 || b->ndevices > 0 || b->is_least;
}

static int run_instance(struct plan_bench *b, const char *solver, const struct heddle_plan_graph *g)
{
    const double full = (double)plan_tape_bytes(g);
    int rc = 0;

    if (b->only != NULL && strstr(g->name, b->only) == NULL)
        return 0;
    b->nchosen++;
    if (b->is_least)
        rc = plan_bench_least(b->c, g, b->limit_s);
    for (unsigned i = 0; i < b->nbudgets && rc == 0; i++) {
        if (b->rate > 0)
            rc = plan_bench_moving(b->c, g, b->fraction[i], b->rate, b->limit_s);
        if (rc == 0 && b->ndevices > 0)
            rc = plan_bench_pipeline(b->c, g, b->fraction[i], (uint32_t)b->ndevices);
    }
    for (unsigned i = 0; i < b->nbudgets && rc == 0 && !has_own_rows(b); i++) {
        struct plan_try t = {.m = {.budget = (uint64_t)(b->fraction[i] * full), .align = 1},
                             .opts = {.solver = strcmp(solver, "best") == 0 ? NULL : solver,
                                      .time_limit_s = b->limit_s,
                                      .seed = b->seed}};

        plan_try_run(&t, g);
        if (t.st != HEDDLE_EINVAL) { /* not a solver for this graph */
            note(b, b->fraction[i], &t);
            rc = print_case(b, g, b->fraction[i], &t, solver);
        }
        plan_try_close(&t);
    }
    return rc;
}

static int run_generated(struct plan_bench *b, const char *solver)
{
    static const struct {
        enum plan_family family;
        uint32_t size;
    } all[] = {{PLAN_LAYERED, 100}, {PLAN_LAYERED, 1000},   {PLAN_CNN, 16}, {PLAN_CNN, 64},
               {PLAN_UNET, 5},      {PLAN_TRANSFORMER, 12}, {PLAN_TREE, 6}, {PLAN_CNN_CHAIN, 100}};
    int rc = 0;

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]) && rc == 0; i++) {
        struct heddle_plan_graph *g = NULL;
        const heddle_status st = plan_gen(all[i].family, all[i].size, b->seed + 1, &g);

        if (st != HEDDLE_OK)
            return cli_fail(b->c, "a graph cannot be made: %s", heddle_status_text(st));
        rc = run_instance(b, solver, g);
        heddle_plan_graph_destroy(g);
    }
    return rc;
}

static int run_solver(struct plan_bench *b, const char *solver)
{
    int rc = 0;

    b->ncases = b->nplans = b->nbad = b->ngaps = 0;
    b->worst_arena = 0;
    if (b->nfiles == 0)
        rc = run_generated(b, solver);
    for (unsigned i = 0; i < b->nfiles && rc == 0; i++) {
        struct heddle_plan_graph *g = NULL;

        rc = plan_load(b->c, b->file[i], 0, &g);
        if (rc == 0)
            rc = run_instance(b, solver, g);
        heddle_plan_graph_destroy(g);
    }
    if (rc == 0 && b->nchosen == 0)
        return plan_bench_no_instance(b->c, b->only);
    if (rc == 0 && !has_own_rows(b))
        rc = print_summary(b, solver);
    return rc == 0 && b->nbad > 0 ? cli_fail(b->c, "the checker refuses %u plans", b->nbad) : rc;
}

static int run_solvers(struct plan_bench *b)
{
    const struct heddle_plan_solver *s;
    int rc = 0;

    if (strcmp(b->solver, "all") != 0)
        return run_solver(b, b->solver);
    for (size_t i = 0; rc == 0 && (s = heddle_plan_get_solver(i)) != NULL; i++)
        rc = run_solver(b, s->name);
    return rc;
}

static int parse_budgets(struct plan_bench *b)
{
    const char *s = b->budgets;

    for (;;) {
        const char *end = NULL;
        double v = 0;

        if (b->nbudgets == MAX_BUDGETS || !heddle_number_scan(s, &end, &v) || !(v > 0 && v <= 10) ||
            (*end != ',' && *end != '\0'))
            return cli_error(b->c, "--budgets '%s' is not a list like 0.9,0.5", b->budgets);
        b->fraction[b->nbudgets++] = v;
        if (*end == '\0')
            return 0;
        s = end + 1;
    }
}

static int parse_time(struct plan_bench *b)
{
    uint64_t ns = 0;

    if (heddle_parse_ns(b->time, &ns) != HEDDLE_OK || ns == 0)
        return cli_error(b->c, "--time '%s' is not a duration like 2s", b->time);
    b->limit_s = (double)ns * 1e-9;
    return 0;
}

static int parse_solver(struct plan_bench *b)
{
    const struct heddle_plan_solver *s;

    if (strcmp(b->solver, "all") == 0 || strcmp(b->solver, "best") == 0)
        return 0;
    for (size_t i = 0; (s = heddle_plan_get_solver(i)) != NULL; i++)
        if (strcmp(s->name, b->solver) == 0)
            return 0;
    return cli_error(b->c, "there is no solver '%s', see 'heddle help plan'", b->solver);
}

static int plan_bench_run(struct cli *c, int argc, char **argv)
{
    static struct plan_bench b;
    const struct cli_opt opts[] = {{"--data", CLI_STRING, &b.data, 0, 0},
                                   {"--solver", CLI_STRING, &b.solver, 0, 0},
                                   {"--instance", CLI_STRING, &b.only, 0, 0},
                                   {"--budgets", CLI_STRING, &b.budgets, 0, 0},
                                   {"--time", CLI_STRING, &b.time, 0, 0},
                                   {"--chains", CLI_UINT, &b.chains, 1, 1000},
                                   {"--link", CLI_STRING, &b.link, 0, 0},
                                   {"--pipeline", CLI_UINT, &b.ndevices, 1, 256},
                                   {"--least", CLI_FLAG, &b.is_least, 0, 0},
                                   {"--large", CLI_FLAG, &b.large, 0, 0},
                                   {"--seed", CLI_UINT, &b.seed, 0, UINT64_MAX - 1},
                                   {0}};
    int rc;

    b = (struct plan_bench){
        .c = c, .solver = "best", .time = "2s", .budgets = "0.9,0.8,0.7,0.6,0.5,0.4,0.3"};
    rc = cli_parse(c, "bench plan", argc, argv, opts, NULL);
    if (rc == 0 && b.chains > 0)
        return bench_plan_chain(c, b.chains, b.seed);
    if (rc == 0 && b.link != NULL && (!heddle_number_finite(b.link, &b.rate) || !(b.rate > 0)))
        rc = cli_error(c,
                       "--link '%s' is not a number of bytes per unit of "
                       "time",
                       b.link);
    if (rc == 0)
        rc = parse_budgets(&b);
    if (rc == 0)
        rc = parse_time(&b);
    if (rc == 0)
        rc = parse_solver(&b);
    if (rc == 0 && b.large)
        return plan_bench_large(c, b.only, b.solver, b.fraction, b.nbudgets, b.limit_s, b.seed);
    if (rc == 0)
        rc = find_instances(&b);
    if (rc == 0)
        rc = run_solvers(&b);
    for (unsigned i = 0; i < b.nfiles; i++)
        free(b.file[i]);
    return rc;
}

const struct heddle_cmd heddle_bench_plan = {
    .name = "plan",
    .help = "memory plans: increase, bound, gap and time",
    .usage = "heddle bench plan [--data DIR] [--solver S] [--budgets LIST]\n"
             "    [--instance TEXT] [--time 2s] [--seed N] [--link R] [--pipeline "
             "P]\n"
             "    [--least]\n"
             "heddle bench plan --chains LAYERS [--seed N]\n"
             "heddle bench plan --large [--budgets LIST] [--time 10s]\n"
             "\n"
             "  --data      graph files (default: HEDDLE_SHARED/data/planner, or\n"
             "              generated graphs)\n"
             "  --solver    best (default), all, or one of 'heddle help plan'\n"
             "  --budgets   fractions of the memory of the graph as it is\n"
             "              (default: 0.9,0.8,0.7,0.6,0.5,0.4,0.3)\n"
             "  --instance  only those with TEXT in their name\n"
             "  --time      per plan, for solvers that improve\n"
             "  --chains    how long the tables of chains of up to LAYERS layers "
             "take,\n"
             "              500 slots; 1000 is all of them\n"
             "  --large     generated graphs of 10 000 operations: when the first "
             "plan\n"
             "              comes, the plan after --time and after 6 times that\n"
             "  --link      instead: what moving data removes, R bytes per unit of\n"
             "              time (12000: 12 GB/s and microseconds)\n"
             "  --pipeline  instead: every policy on P devices, for chains\n"
             "  --least     instead: the smallest budget with a plan, in multiples\n"
             "              of the memory that every plan needs\n",
    .run = plan_bench_run,
};
