/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/bound: how fast and how good the mixed bound of a large graph is.
 *
 * Cases      tile Cholesky on three measured machines (times of tiles of order
 *            960, with 2 types of workers) and on one with a third type; random
 *            graphs in layers with 2 and 3 types, once with few wide layers,
 *            once with so many that path and area are alike, which is hard:
 *            nearly every path is nearly critical.
 * Says       seconds of the call for path, area and mixed, and of the core that it
 *            got meanwhile, as others may use it too; the bound; what its
 *            optimum is at most, and so the gap; what the checker, which shares
 *            no code with the solver, says of the certificate, and its seconds.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"
#include "base/text.h"
#include "bench/bench.h"
#include "heddle/bound.h"

enum { MAX_TYPES = 3, KINDS = 8, PREDS = 3 };

struct bound_case {
    const char *name;
    uint32_t nworkers[MAX_TYPES];
    uint32_t ntypes;
    const double *us; /* Cholesky: kind x type; NULL: random, in layers */
    uint32_t width;   /* tasks of a layer, of 1 million */
    bool is_unique;   /* every task has its own times */
};

static const double mirage[] = {18850, 5475, 45647, 6407, 43890, 1410, 87780, 2821};
static const double attila[] = {75934, 46032, 43616, 6308, 42038, 1404, 84076, 2807};
static const double idgraf[] = {20696, 55403, 47115, 6547, 44938, 1410, 89875, 2819};
static const double three[] = {18850, 5475, 9100, 45647, 6407, 11000,
                               43890, 1410, 4100, 87780, 2821, 8300};

static const struct bound_case cases[] = {
    {"cholesky-mirage", {9, 3}, 2, mirage, 0, false},
    {"cholesky-attila", {9, 3}, 2, attila, 0, false},
    {"cholesky-idgraf", {4, 8}, 2, idgraf, 0, false},
    {"cholesky-three", {9, 3, 4}, 3, three, 0, false},
    {"layers-wide", {16, 4}, 2, NULL, 1000, false},
    {"layers-wide-three", {16, 4, 4}, 3, NULL, 1000, true},
    {"layers-hard", {16, 4}, 2, NULL, 33, false},
    {"layers-hard-three", {16, 4, 4}, 3, NULL, 33, true},
};

struct build {
    uint32_t *from, *to, *kind;
    double *time;
    uint32_t *writer; /* Cholesky: 1 + the last of each tile */
    uint32_t ntasks, nedges, nkinds;
};

struct bound_row {
    struct heddle_bound_graph g;
    double mixed, upper, gap, seconds, cpu_s, check_s;
    double path, area;
    uint32_t iterations;
    bool is_valid;
};

/* --- graphs --------------------------------------------------------------- */

static heddle_status get(struct build *b, size_t ntasks, size_t nedges, size_t rows,
                         uint32_t ntypes)
{
    b->from = calloc(nedges + 1, sizeof(*b->from));
    b->to = calloc(nedges + 1, sizeof(*b->to));
    b->kind = calloc(ntasks + 1, sizeof(*b->kind));
    b->time = calloc(rows * ntypes + 1, sizeof(*b->time));
    return b->from != NULL && b->to != NULL && b->kind != NULL && b->time != NULL ? HEDDLE_OK
                                                                                  : HEDDLE_ENOMEM;
}

static void put(struct build *b)
{
    free(b->from);
    free(b->to);
    free(b->kind);
    free(b->time);
    free(b->writer);
}

static heddle_status add_task(void *user, const struct cholesky_task *t)
{
    struct build *b = user;

    for (uint32_t i = 0; i < t->ntiles; i++) {
        const uint32_t w = b->writer[t->tile[i]];

        if (w != 0) {
            b->from[b->nedges] = w - 1;
            b->to[b->nedges++] = b->ntasks;
        }
    }
    b->kind[b->ntasks++] = (uint32_t)t->kind;
    b->writer[t->tile[t->ntiles - 1]] = b->ntasks;
    return HEDDLE_OK;
}

static heddle_status build_cholesky(struct build *b, const struct bound_case *c, uint64_t ntasks)
{
    uint32_t nt = 1;
    heddle_status st;

    while (cholesky_ntasks(nt + 1) <= ntasks)
        nt++;
    b->nkinds = CHOLESKY_NKINDS;
    st = get(b, cholesky_ntasks(nt), 3 * cholesky_ntasks(nt), CHOLESKY_NKINDS, c->ntypes);
    b->writer = calloc(cholesky_tile(nt, 0), sizeof(*b->writer));
    if (st != HEDDLE_OK || b->writer == NULL)
        return HEDDLE_ENOMEM;
    memcpy(b->time, c->us, sizeof(*b->time) * CHOLESKY_NKINDS * (size_t)c->ntypes);
    return cholesky_walk(nt, add_task, b);
}

/* Times: of type 0 between 1 and 2; others are faster by up to 8, or slower. */
static void draw_times(struct heddle_rng *rng, double *row, uint32_t ntypes)
{
    row[0] = 1 + heddle_rng_double(rng);
    for (uint32_t r = 1; r < ntypes; r++)
        row[r] = row[0] / (0.5 + 7.5 * heddle_rng_double(rng));
}

static heddle_status build_layers(struct build *b, const struct bound_case *c, uint64_t ntasks,
                                  uint64_t seed)
{
    const uint32_t n = (uint32_t)ntasks, rows = c->is_unique ? n : KINDS;
    struct heddle_rng rng;

    heddle_rng_seed(&rng, seed);
    if (get(b, n, (size_t)n * PREDS, rows, c->ntypes) != HEDDLE_OK)
        return HEDDLE_ENOMEM;
    b->nkinds = rows;
    b->ntasks = n;
    for (uint32_t k = 0; k < rows; k++)
        draw_times(&rng, b->time + (size_t)k * c->ntypes, c->ntypes);
    for (uint32_t v = 0; v < n; v++) {
        const uint32_t layer = v / c->width;

        b->kind[v] = c->is_unique ? v : heddle_rng_below32(&rng, rows);
        for (uint32_t i = 0; layer > 0 && i < PREDS; i++) {
            b->from[b->nedges] = (layer - 1) * c->width + heddle_rng_below32(&rng, c->width);
            b->to[b->nedges++] = v;
        }
    }
    return HEDDLE_OK;
}

/* --- one case ------------------------------------------------------------- */

static heddle_status solve(const struct build *b, const struct bound_case *c, uint64_t time_ns,
                           struct bound_row *row, char *why, size_t why_bytes)
{
    const struct heddle_bound_limits limits = {.size = sizeof(limits),
                                               .which = 1u << HEDDLE_BOUND_MIXED,
                                               .time_ns = time_ns,
                                               .why = why,
                                               .why_bytes = why_bytes};
    struct heddle_bound_result r = {.size = sizeof(r)};
    heddle_status st;
    uint64_t t0;

    row->g = (struct heddle_bound_graph){.size = sizeof(row->g),
                                         .ntasks = b->ntasks,
                                         .ntypes = c->ntypes,
                                         .nkinds = b->nkinds,
                                         .nedges = b->nedges,
                                         .edge_from = b->from,
                                         .edge_to = b->to,
                                         .nworkers = c->nworkers,
                                         .kind = b->kind,
                                         .time = b->time};
    t0 = heddle_clock_thread_ns();
    st = heddle_bound_all(&row->g, &limits, &r);
    row->cpu_s = (double)(heddle_clock_thread_ns() - t0) * 1e-9;
    if (st != HEDDLE_OK)
        return st;
    row->path = r.cert[HEDDLE_BOUND_PATH].value;
    row->area = r.cert[HEDDLE_BOUND_AREA].value;
    row->mixed = r.cert[HEDDLE_BOUND_MIXED].value;
    row->upper = r.mixed_upper;
    row->gap = r.mixed_gap;
    row->iterations = r.mixed_iterations;
    row->seconds = (double)r.time_ns * 1e-9;
    t0 = heddle_clock_ns();
    row->is_valid = heddle_bound_check(&row->g, &r.cert[HEDDLE_BOUND_MIXED], row->mixed, &limits,
                                       NULL) == HEDDLE_OK;
    row->check_s = (double)(heddle_clock_ns() - t0) * 1e-9;
    heddle_bound_fini(&r);
    return HEDDLE_OK;
}

static heddle_status print_json(struct cli *c, const struct bound_case *of,
                                const struct bound_row *r)
{
    struct heddle_json j;
    heddle_status st;

    heddle_json_init_file(&j, c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "bench", "bound");
    heddle_json_key_str(&j, "case", of->name);
    heddle_json_key_uint(&j, "tasks", r->g.ntasks);
    heddle_json_key_uint(&j, "edges", r->g.nedges);
    heddle_json_key_uint(&j, "types", r->g.ntypes);
    heddle_json_key_double(&j, "seconds", r->seconds);
    heddle_json_key_double(&j, "cpu_seconds", r->cpu_s);
    heddle_json_key_double(&j, "path", r->path);
    heddle_json_key_double(&j, "area", r->area);
    heddle_json_key_double(&j, "mixed", r->mixed);
    heddle_json_key_double(&j, "upper", r->upper);
    heddle_json_key_double(&j, "gap", r->gap);
    heddle_json_key_uint(&j, "iterations", r->iterations);
    heddle_json_key_bool(&j, "valid", r->is_valid);
    heddle_json_key_double(&j, "check_seconds", r->check_s);
    heddle_json_end(&j);
    heddle_json_line(&j);
    st = heddle_json_finish(&j);
    heddle_json_fini(&j);
    return st;
}

static void print_text(struct cli *c, const struct bound_case *of, const struct bound_row *r)
{
    fprintf(c->out,
            "%-18s %8" PRIu32 " tasks  %6.2f s (cpu %.2f s)  path %.6g, area %.6g, mixed "
            "%.6g, at most %.6g: gap %.2f %%; checked in %.2f s: %s\n",
            of->name, r->g.ntasks, r->seconds, r->cpu_s, r->path, r->area, r->mixed, r->upper,
            100 * r->gap, r->check_s, r->is_valid ? "proven" : "NOT PROVEN");
    fflush(c->out);
}

static int run_case(struct cli *c, const struct bound_case *of, uint64_t ntasks, uint64_t time_ns,
                    uint64_t seed)
{
    struct build b = {0};
    struct bound_row row = {.is_valid = false};
    char why[256] = "";
    heddle_status st =
        of->us != NULL ? build_cholesky(&b, of, ntasks) : build_layers(&b, of, ntasks, seed);

    if (st == HEDDLE_OK)
        st = solve(&b, of, time_ns, &row, why, sizeof(why));
    put(&b);
    if (st != HEDDLE_OK)
        return cli_fail(c, "%s: %s", of->name, why[0] != '\0' ? why : heddle_status_text(st));
    if (c->json)
        st = print_json(c, of, &row);
    else
        print_text(c, of, &row);
    if (st != HEDDLE_OK)
        return cli_output_failed(c, st);
    return row.is_valid ? 0 : cli_fail(c, "%s: the bound is not proven", of->name);
}

static int bound_run(struct cli *c, int argc, char **argv)
{
    const char *only = NULL, *time = NULL;
    uint64_t tasks = 1000000, seed = 1, time_ns = UINT64_C(30000000000);
    struct cli_args args = {.max = 0};
    const struct cli_opt opts[] = {
        {.name = "--case", .kind = CLI_STRING, .out = &only},
        {.name = "--tasks", .kind = CLI_UINT, .out = &tasks, .min = 100, .max = 100000000},
        {.name = "--time", .kind = CLI_STRING, .out = &time},
        {.name = "--seed", .kind = CLI_UINT, .out = &seed, .max = UINT32_MAX},
        {.name = NULL},
    };
    bool is_found = false;
    int rc = cli_parse(c, "bench bound", argc, argv, opts, &args);

    if (rc == 0 && time != NULL && (heddle_parse_ns(time, &time_ns) != HEDDLE_OK || time_ns == 0))
        rc = cli_error(c, "'%s' is not a time such as 2s or 500ms", time);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]) && rc == 0; i++) {
        if (only != NULL && strncmp(cases[i].name, only, strlen(only)) != 0)
            continue;
        is_found = true;
        rc = run_case(c, &cases[i], tasks, time_ns, seed);
    }
    if (rc == 0 && !is_found)
        rc = cli_error(c, "no case of bench bound begins with '%s'", only);
    return rc;
}

const struct heddle_cmd heddle_bench_bound = {
    .name = "bound",
    .help = "the mixed bound of a graph of a million tasks: time and gap",
    .usage = "heddle bench bound [--case NAME] [--tasks N] [--time T]\n"
             "    [--seed S] [--json]\n"
             "\n"
             "  --case   those that begin so: cholesky-mirage, -attila, -idgraf,\n"
             "           -three; layers-wide, -wide-three, -hard, -hard-three\n"
             "           (default: all)\n"
             "  --tasks  of each graph, about (default 1000000)\n"
             "  --time   the most time for one, as 10s (default 30s)\n"
             "  --seed   of the random graphs (default 1)\n",
    .run = bound_run,
};
