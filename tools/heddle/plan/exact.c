/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan exact: the least time of a small graph, by the program `cbc`.
 *
 * For cross-checks: what other solvers find is between their bound and this. The
 * order of first computations is the given one, between two of them an operation
 * runs once at most, nothing is moved, and addresses are not part of the question:
 * they are looked for afterwards.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/thread.h"
#include "plan/cmd.h"
#include "plan/milp.h"

extern char **environ;

enum { GRACE_S = 3 };

struct exact {
    struct cli *c;
    const char *budget, *time, *file;
    struct heddle_plan_graph *g;
    struct plan_try t;
    double limit_s, seconds;
    char dir[4096], lp[4112], answer[4112];
    enum plan_milp_answer status;
    uint32_t *seq;
    size_t nseq;
    double time_sum; /* of the sequence */
};

/* --- the program ---------------------------------------------------------- */

static int make_files(struct exact *e)
{
    const char *tmp = getenv("TMPDIR");
    FILE *f;
    bool is_good;

    if (tmp == NULL || tmp[0] == '\0' || strlen(tmp) > 4000)
        tmp = "/tmp";
    snprintf(e->dir, sizeof(e->dir), "%s/heddle-exact-XXXXXX", tmp);
    if (mkdtemp(e->dir) == NULL) {
        e->dir[0] = '\0';
        return cli_fail(e->c, "a folder below '%s' cannot be made: %s", tmp, strerror(errno));
    }
    snprintf(e->lp, sizeof(e->lp), "%s/plan.lp", e->dir);
    snprintf(e->answer, sizeof(e->answer), "%s/answer", e->dir);
    f = fopen(e->lp, "w");
    is_good = f != NULL && plan_milp_write(f, e->g, e->t.m.budget);
    if (f != NULL && fclose(f) != 0)
        is_good = false;
    return is_good ? 0 : cli_fail(e->c, "'%s' cannot be written: %s", e->lp, strerror(errno));
}

static void remove_files(const struct exact *e)
{
    if (e->dir[0] == '\0')
        return;
    (void)unlink(e->lp);
    (void)unlink(e->answer);
    (void)rmdir(e->dir);
}

/* It keeps its time limit roughly, and not while it prepares: who takes twice as
 * long and some seconds more is ended. */
static int await_cbc(struct exact *e, pid_t pid)
{
    const uint64_t start = heddle_clock_ns();
    const double most_s = 2 * e->limit_s + GRACE_S;
    int status = 0;
    pid_t got;

    while ((got = waitpid(pid, &status, WNOHANG)) == 0) {
        if ((double)(heddle_clock_ns() - start) > most_s * 1e9) {
            (void)kill(pid, SIGKILL);
            (void)waitpid(pid, &status, 0);
            return cli_fail(e->c, "'cbc' did not end in %.0f s", most_s);
        }
        heddle_thread_sleep_ns(2000000);
    }
    if (got < 0)
        return cli_fail(e->c, "'cbc' is lost: %s", strerror(errno));
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return cli_fail(e->c, "'cbc' failed");
    return 0;
}

static int run_cbc(struct exact *e)
{
    char seconds[32];
    char name[] = "cbc", sec[] = "sec", solve[] = "solve", sol[] = "solution";
    char *const argv[] = {name, e->lp, sec, seconds, solve, sol, e->answer, NULL};
    posix_spawn_file_actions_t to_null;
    pid_t pid = 0;
    int rc;

    snprintf(seconds, sizeof(seconds), "%.0f", ceil(e->limit_s));
    if (posix_spawn_file_actions_init(&to_null) != 0)
        return cli_fail(e->c, "no memory");
    rc = posix_spawn_file_actions_addopen(&to_null, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (rc == 0)
        rc = posix_spawnp(&pid, "cbc", &to_null, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&to_null);
    if (rc == ENOENT)
        return cli_fail(e->c, "there is no program 'cbc' (COIN-OR CBC), which "
                              "'heddle plan exact' needs");
    if (rc != 0)
        return cli_fail(e->c, "'cbc' cannot be started: %s", strerror(rc));
    return await_cbc(e, pid);
}

static int read_answer(struct exact *e)
{
    FILE *f = fopen(e->answer, "r");

    if (f == NULL)
        return cli_fail(e->c, "'cbc' left no answer");
    e->status = plan_milp_read(f, e->g, e->seq, &e->nseq);
    fclose(f);
    if (e->status == PLAN_MILP_BROKEN)
        return cli_fail(e->c, "the answer of 'cbc' is not understood");
    for (size_t i = 0; i < e->nseq; i++)
        e->time_sum += e->g->ops[e->seq[i]].time;
    return 0;
}

/* --- the plan --------------------------------------------------------------- */

static bool has_sequence(const struct exact *e)
{
    return e->status == PLAN_MILP_OPTIMAL || e->status == PLAN_MILP_STOPPED;
}

static void make_plan(struct exact *e)
{
    struct plan_try *t = &e->t;
    const struct heddle_plan_opts o = {
        .size = sizeof(o), .why = t->why, .why_bytes = sizeof(t->why)};
    const struct heddle_plan_sequence_claim claim = {
        .solver = "exact",
        .lower_bound = e->status == PLAN_MILP_OPTIMAL ? e->time_sum * (1 - 1e-9) : 0,
        .bound_note = e->status == PLAN_MILP_OPTIMAL
                          ? "exact for the given order of first "
                            "computations, each operation at most once between "
                            "two of them, nothing moved, nothing in place"
                          : NULL};

    t->report.size = sizeof(t->report);
    t->m.size = sizeof(t->m);
    t->st = heddle_plan_from_sequence(e->g, &t->m, e->seq, e->nseq, &claim, &o, &t->plan);
    if (t->st == HEDDLE_OK)
        t->is_checked = heddle_plan_check(e->g, &t->m, t->plan, &o, &t->report) == HEDDLE_OK;
}

static const char *status_text(enum plan_milp_answer a)
{
    switch (a) {
    case PLAN_MILP_OPTIMAL: return "optimal";
    case PLAN_MILP_STOPPED: return "stopped";
    case PLAN_MILP_INFEASIBLE: return "infeasible";
    case PLAN_MILP_NOTHING:
    case PLAN_MILP_BROKEN: break;
    }
    return "nothing";
}

static double baseline(const struct exact *e)
{
    double sum = 0;

    for (uint32_t i = 0; i < e->g->nops; i++)
        sum += e->g->ops[i].time;
    return sum;
}

static int print(struct exact *e)
{
    const double base = baseline(e);
    struct heddle_json j;

    if (e->c->json) {
        heddle_json_init_file(&j, e->c->out);
        heddle_json_object(&j);
        heddle_json_key_str(&j, "graph", e->g->name);
        heddle_json_key_uint(&j, "operations", e->g->nops);
        heddle_json_key_str(&j, "status", status_text(e->status));
        if (has_sequence(e)) {
            heddle_json_key_double(&j, "optimum", e->time_sum);
            heddle_json_key_double(&j, "optimum_increase", base > 0 ? e->time_sum / base - 1 : 0);
        }
        heddle_json_key_double(&j, "cbc_seconds", e->seconds);
        plan_json(&j, &e->t);
        return plan_json_end(e->c, &j);
    }
    fprintf(e->c->out, "cbc      %s after %.2f s\n", status_text(e->status), e->seconds);
    if (has_sequence(e))
        fprintf(e->c->out, "time     %.6g, %+.3f %% over every operation once\n", e->time_sum,
                base > 0 ? 100 * (e->time_sum / base - 1) : 0);
    if (e->t.plan != NULL)
        fprintf(e->c->out, "checked  %s\n", e->t.is_checked ? "yes" : e->t.why);
    return 0;
}

static int solve(struct exact *e)
{
    const uint64_t start = heddle_clock_ns();
    int rc = make_files(e);

    if (rc == 0)
        rc = run_cbc(e);
    if (rc == 0)
        rc = read_answer(e);
    remove_files(e);
    e->seconds = (double)(heddle_clock_ns() - start) * 1e-9;
    if (rc != 0)
        return rc;
    if (has_sequence(e))
        make_plan(e);
    else
        snprintf(e->t.why, sizeof(e->t.why), "%s",
                 e->status == PLAN_MILP_INFEASIBLE
                     ? "no plan exists in the given order that moves nothing "
                       "and runs no operation twice between two first "
                       "computations"
                     : "cbc found nothing in its time");
    rc = print(e);
    if (rc == 0 && e->t.plan == NULL)
        rc = cli_fail(e->c, "%s", e->t.why);
    else if (rc == 0 && !e->t.is_checked)
        rc = cli_fail(e->c, "the checker refuses the plan: %s", e->t.why);
    return rc == 0 && e->file != NULL ? plan_save(e->c, e->g, &e->t, e->file) : rc;
}

static int check_graph(struct exact *e)
{
    if (e->g->nops > PLAN_MILP_OPS)
        return cli_fail(e->c,
                        "plan exact is for graphs of up to %d operations; this "
                        "one has %u",
                        PLAN_MILP_OPS, e->g->nops);
    for (uint32_t v = 0; v < e->g->nvalues; v++)
        if ((e->g->values[v].flags & HEDDLE_PLAN_AT_HOST) != 0)
            return cli_fail(e->c,
                            "plan exact moves nothing, and value %u "
                            "begins on the host",
                            v);
    if (heddle_plan_floor(e->g, NULL) > e->t.m.budget)
        return cli_fail(e->c, "no plan exists: one operation alone needs more "
                              "than the budget");
    return 0;
}

static int exact_run(struct cli *c, int argc, char **argv)
{
    struct exact e = {.c = c, .limit_s = 60};
    struct cli_args args = {.max = 1};
    const struct cli_opt opts[] = {{"--budget", CLI_STRING, &e.budget, 0, 0},
                                   {"--time", CLI_STRING, &e.time, 0, 0},
                                   {"-o", CLI_OUTPUT, &e.file, 0, 0},
                                   {0}};
    uint64_t ns = 0;
    int rc = cli_parse(c, "plan exact", argc, argv, opts, &args);

    if (rc == 0 && (args.n != 1 || e.budget == NULL))
        rc = cli_error(c, "plan exact needs a graph and a --budget");
    if (rc == 0 && e.time != NULL) {
        if (heddle_parse_ns(e.time, &ns) != HEDDLE_OK || ns == 0)
            rc = cli_error(c, "--time '%s' is not a duration like 60s", e.time);
        e.limit_s = (double)ns * 1e-9;
    }
    if (rc == 0)
        rc = plan_load(c, args.operand[0], 0, &e.g);
    if (rc == 0 && !plan_parse_budget(e.budget, heddle_plan_peak(e.g), &e.t.m.budget))
        rc = cli_error(c, "--budget '%s' is neither a size nor a percentage", e.budget);
    if (rc == 0)
        rc = check_graph(&e);
    if (rc == 0) {
        e.seq = calloc((size_t)e.g->nops * e.g->nops + 1, sizeof(*e.seq));
        rc = e.seq != NULL ? solve(&e) : cli_fail(c, "no memory");
    }
    plan_try_close(&e.t);
    heddle_plan_graph_destroy(e.g);
    free(e.seq);
    return rc;
}

const struct heddle_cmd heddle_plan_verb_exact = {
    .name = "exact",
    .help = "the least time of a small graph, by the program cbc",
    .usage = "heddle plan exact GRAPH --budget SIZE|PERCENT [--time 60s] [-o PLAN]\n"
             "\n"
             "  GRAPH     of up to 64 operations, as for 'heddle plan'\n"
             "  --budget  device memory: 6GiB, or 50% of what it needs as it is\n"
             "  --time    at most, for cbc\n"
             "  -o        writes the plan to a file\n"
             "For cross-checks: the given order of first computations, nothing "
             "moved,\n"
             "no value in the place of another. Addresses are looked for "
             "afterwards.\n"
             "Needs the program cbc (COIN-OR CBC).\n",
    .run = exact_run,
};
