/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/offline: how near schedules of a known graph come to the best possible.
 *
 * Cases      tile Cholesky of 10, 16 and 24 tiles a side on three machines whose
 *            kernels were measured, without transfers. The bound is the best
 *            that heddle/bound.h finds. bench/anchor.h has the machines.
 * Large      one policy on a layered graph of --tasks tasks and 32 workers: how
 *            long it takes itself.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "base/text.h"
#include "bench/anchor.h"
#include "heddle/offline.h"

enum { MAX_POLICIES = 64 };

struct offline_bench {
    struct cli *c;
    const char *policy, *time_text;
    uint64_t time_ns, seed, tasks;
};

/* Each task behind up to three of the thousand before it. */
static heddle_status make_layers(struct anchor *in, uint32_t ntasks, uint64_t seed)
{
    enum { BACK = 1000, PREDS = 3 };
    struct heddle_rng r;
    uint32_t n = 0;

    heddle_rng_seed(&r, seed);
    if (!anchor_get(in, ntasks, (size_t)PREDS * ntasks))
        return HEDDLE_ENOMEM;
    for (uint32_t t = 0; t < ntasks; t++) {
        in->kind[t] = heddle_rng_below32(&r, CHOLESKY_NKINDS);
        for (uint32_t k = heddle_rng_below32(&r, PREDS + 1); k > 0 && t > 0; k--) {
            const uint32_t back = t < BACK ? t : BACK;

            in->from[n] = t - 1 - heddle_rng_below32(&r, back);
            in->to[n++] = t;
        }
    }
    in->g.nedges = n;
    return HEDDLE_OK;
}

/* --- output ---------------------------------------------------------------- */

struct row {
    const char *name, *machine, *policy;
    uint32_t tiles;
    uint64_t ntasks;
    double makespan, bound, seconds;
    uint64_t iterations;
};

static int print_row(const struct offline_bench *b, const struct row *r)
{
    struct heddle_json j;

    if (!b->c->json) {
        fprintf(b->c->out,
                "%-8s %3u tiles %7llu tasks  %-10s %10.3f ms, bound %10.3f ms, "
                "ratio %.4f, %.3f s\n",
                r->machine, r->tiles, (unsigned long long)r->ntasks, r->policy, r->makespan / 1e3,
                r->bound / 1e3, r->makespan / r->bound, r->seconds);
        return 0;
    }
    heddle_json_init_file(&j, b->c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", r->name);
    heddle_json_key_str(&j, "machine", r->machine);
    heddle_json_key_uint(&j, "tiles", r->tiles);
    heddle_json_key_uint(&j, "tasks", r->ntasks);
    heddle_json_key_str(&j, "policy", r->policy);
    heddle_json_key_double(&j, "makespan_us", r->makespan);
    heddle_json_key_double(&j, "bound_us", r->bound);
    heddle_json_key_double(&j, "ratio", r->makespan / r->bound);
    heddle_json_key_double(&j, "seconds", r->seconds);
    heddle_json_key_uint(&j, "iterations", r->iterations);
    heddle_json_end(&j);
    heddle_json_line(&j);
    return heddle_json_finish(&j) == HEDDLE_OK ? 0 : cli_output_failed(b->c, HEDDLE_EIO);
}

static int print_summary(const struct offline_bench *b, const char *policy, double mean,
                         double worst)
{
    struct heddle_json j;

    if (!b->c->json) {
        fprintf(b->c->out, "%s: mean ratio %.4f, worst %.4f over %d cases\n", policy, mean, worst,
                ANCHOR_NSIZES * ANCHOR_NMACHINES);
        return 0;
    }
    heddle_json_init_file(&j, b->c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "offline summary");
    heddle_json_key_str(&j, "policy", policy);
    heddle_json_key_uint(&j, "cases", ANCHOR_NSIZES * ANCHOR_NMACHINES);
    heddle_json_key_double(&j, "mean_ratio", mean);
    heddle_json_key_double(&j, "worst_ratio", worst);
    heddle_json_end(&j);
    heddle_json_line(&j);
    return heddle_json_finish(&j) == HEDDLE_OK ? 0 : cli_output_failed(b->c, HEDDLE_EIO);
}

/* --- runs ------------------------------------------------------------------ */

/* A checked schedule; its makespan and the time it took go to the row. */
static int run_one(const struct offline_bench *b, const struct heddle_bound_graph *g, struct row *r)
{
    char why[256] = "";
    struct heddle_offline_opts o = {.size = sizeof(o),
                                    .policy = r->policy,
                                    .time_ns = b->time_ns,
                                    .seed = b->seed,
                                    .stop_at = r->bound,
                                    .why = why,
                                    .why_bytes = sizeof(why)};
    struct heddle_offline_result s = {.size = sizeof(s)};
    heddle_status st = heddle_offline_schedule(g, &o, &s);

    if (st == HEDDLE_OK)
        st = heddle_offline_check(g, &o, &s);
    r->makespan = s.makespan;
    r->seconds = (double)s.time_ns / 1e9;
    r->iterations = s.iterations;
    heddle_offline_fini(&s);
    return st == HEDDLE_OK
               ? 0
               : cli_fail(b->c, "%s: %s", r->policy, why[0] != '\0' ? why : heddle_status_text(st));
}

/* The best lower bound, in the unit of the times; < 0: none, after a sentence.*/
static double bound_of(const struct offline_bench *b, const struct heddle_bound_graph *g)
{
    const struct heddle_bound_limits l = {.size = sizeof(l)};
    struct heddle_bound_result r = {.size = sizeof(r)};
    const heddle_status st = heddle_bound_all(g, &l, &r);
    const double best = r.best;

    if (st != HEDDLE_OK) {
        (void)cli_fail(b->c, "no bound: %s", heddle_status_text(st));
        return -1.0;
    }
    heddle_bound_fini(&r);
    return best;
}

static int run_case(const struct offline_bench *b, unsigned m, uint32_t tiles,
                    const char *const *policy, unsigned npolicies, double *sum, double *worst)
{
    struct row row = {.name = "offline", .machine = anchor_machines[m].name, .tiles = tiles};
    struct anchor in;
    heddle_status st = anchor_cholesky(&in, tiles);
    int rc = 0;

    if (st != HEDDLE_OK) {
        anchor_free(&in);
        return cli_fail(b->c, "%s", heddle_status_text(st));
    }
    in.g.ntypes = 2;
    in.g.nkinds = CHOLESKY_NKINDS;
    in.g.nworkers = anchor_machines[m].nworkers;
    in.g.time = anchor_machines[m].us;
    row.ntasks = in.g.ntasks;
    row.bound = bound_of(b, &in.g);
    for (unsigned p = 0; p < npolicies && rc == 0; p++) {
        row.policy = policy[p];
        rc = row.bound < 0.0 ? 1 : run_one(b, &in.g, &row);
        if (rc == 0)
            rc = print_row(b, &row);
        sum[p] += row.makespan / row.bound;
        worst[p] = fmax(worst[p], row.makespan / row.bound);
    }
    anchor_free(&in);
    return rc;
}

static int run_large(const struct offline_bench *b, const char *policy)
{
    static const uint32_t nworkers[2] = {24, 8};
    struct row row = {.name = "offline large", .machine = "24+8", .policy = policy};
    const struct heddle_bound_limits l = {.size = sizeof(l), .which = 1u << HEDDLE_BOUND_AREA};
    struct heddle_bound_result r = {.size = sizeof(r)};
    struct anchor in;
    heddle_status st = make_layers(&in, (uint32_t)b->tasks, b->seed);
    int rc;

    in.g.ntypes = 2;
    in.g.nkinds = CHOLESKY_NKINDS;
    in.g.nworkers = nworkers;
    in.g.time = anchor_machines[0].us;
    if (st == HEDDLE_OK)
        st = heddle_bound_all(&in.g, &l, &r);
    row.ntasks = in.g.ntasks;
    row.bound = r.best;
    rc = st == HEDDLE_OK ? run_one(b, &in.g, &row) : cli_fail(b->c, "%s", heddle_status_text(st));
    if (rc == 0)
        rc = print_row(b, &row);
    heddle_bound_fini(&r);
    anchor_free(&in);
    return rc;
}

/* The policies to run: all that need no more than a graph, or one. */
static unsigned choose(const struct offline_bench *b, const char **policy)
{
    struct heddle_offline_info info;
    unsigned n = 0;

    for (unsigned i = 0; n < MAX_POLICIES && heddle_offline_get_info(i, &info) == HEDDLE_OK; i++)
        if (strcmp(info.name, "fixed") != 0 &&
            (b->policy == NULL || strcmp(b->policy, info.name) == 0))
            policy[n++] = info.name;
    return n;
}

static int offline_run(struct cli *c, int argc, char **argv)
{
    struct offline_bench b = {.c = c, .time_text = "2s", .seed = 1};
    const struct cli_opt opts[] = {{"--policy", CLI_STRING, &b.policy, 0, 0},
                                   {"--time", CLI_STRING, &b.time_text, 0, 0},
                                   {"--seed", CLI_UINT, &b.seed, 0, UINT64_MAX},
                                   {"--tasks", CLI_UINT, &b.tasks, 1, 100000000},
                                   {0}};
    const char *policy[MAX_POLICIES];
    double sum[MAX_POLICIES] = {0}, worst[MAX_POLICIES] = {0};
    unsigned n;
    int rc = cli_parse(c, "bench offline", argc, argv, opts, NULL);

    if (rc != 0)
        return rc;
    if (heddle_parse_ns(b.time_text, &b.time_ns) != HEDDLE_OK || b.time_ns == 0)
        return cli_error(c, "--time is '%s', but it must be a time as in 2s", b.time_text);
    n = choose(&b, policy);
    if (n == 0)
        return cli_error(c, "there is no offline policy '%s'", b.policy);
    if (b.tasks > 0)
        return run_large(&b, b.policy == NULL ? "heft" : b.policy);
    for (unsigned m = 0; m < ANCHOR_NMACHINES && rc == 0; m++)
        for (unsigned i = 0; i < ANCHOR_NSIZES && rc == 0; i++)
            rc = run_case(&b, m, anchor_sizes[i], policy, n, sum, worst);
    for (unsigned p = 0; p < n && rc == 0; p++)
        rc = print_summary(&b, policy[p], sum[p] / (ANCHOR_NMACHINES * ANCHOR_NSIZES), worst[p]);
    return rc;
}

const struct heddle_cmd heddle_bench_offline = {
    .name = "offline",
    .help = "offline schedules of tile Cholesky over the lower bound",
    .usage = "heddle bench offline [--policy P] [--time T] [--seed S]\n"
             "    [--tasks N] [--json]\n"
             "\n"
             "  --policy  an offline policy (default: all)\n"
             "  --time    for the policy best, per case (default 2s)\n"
             "  --seed    of the search (default 1)\n"
             "  --tasks   instead: one policy (default heft) on a random graph "
             "of N\n"
             "            tasks and 32 workers\n"
             "Nine cases: three machines with measured kernels, 10, 16 and 24 "
             "tiles a\n"
             "side, without transfers.\n",
    .run = offline_run,
};
