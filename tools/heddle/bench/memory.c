/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/memory: bytes copied when the memories of the devices are too small.
 *
 * How        the workload runs in virtual time with a log. The order in which
 *            each device ran its tasks is then replayed through ideal caches of
 *            the same size (sim/replay.h): Belady's, which knows the future, and
 *            LRU. What the runtime copied more is the price of not knowing, of
 *            several tasks in flight, and of mistakes.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/text.h"
#include "common/output.h"
#include "sim/opts.h"
#include "sim/replay.h"

struct memory_bench {
    struct cli *c;
    struct sim_machines machines;
    const char *workload_name, *budget_text, *policy, *log, *devices;
    enum sim_workload workload;
    uint64_t tiles, seed;

    struct sim_graph graph;
    struct sim_result run;
    uint64_t budget;
    struct sim_traffic belady, lru;
    double bound;
};

static uint64_t total(const struct sim_traffic *t)
{
    return t->load_bytes + t->home_bytes;
}

static double ratio(uint64_t a, uint64_t b)
{
    if (b == 0)
        return a == 0 ? 1.0 : (double)INFINITY;
    return (double)a / (double)b;
}

static int print_one(const struct memory_bench *b, const char *machine)
{
    const uint64_t belady = total(&b->belady), lru = total(&b->lru);
    const struct sim_result *r = &b->run;
    struct heddle_json j;

    if (!b->c->json) {
        fprintf(b->c->out,
                "%s of %" PRIu64 " tiles on %s, %s, %.1f MB of %.1f MB per "
                "device\n"
                "  copied %.1f MB, Belady %.1f MB (ratio %.3f), LRU %.1f MB "
                "(ratio %.3f)\n"
                "  makespan %.3f ms, bound %.3f ms\n",
                sim_workload_name(b->workload), b->tiles, machine, r->policy,
                (double)b->budget / 1e6, (double)sim_data_bytes(&b->graph) / 1e6,
                (double)r->copied_bytes / 1e6, (double)belady / 1e6, ratio(r->copied_bytes, belady),
                (double)lru / 1e6, ratio(lru, belady), r->makespan_ns / 1e6, b->bound / 1e6);
        return 0;
    }
    heddle_json_init_file(&j, b->c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "memory");
    heddle_json_key_str(&j, "version", heddle_version());
    heddle_json_key_str(&j, "machine", machine);
    heddle_json_key_str(&j, "workload", sim_workload_name(b->workload));
    heddle_json_key_uint(&j, "tiles", b->tiles);
    heddle_json_key_uint(&j, "tasks", b->graph.ntasks);
    heddle_json_key_str(&j, "policy", r->policy);
    heddle_json_key_uint(&j, "data_bytes", sim_data_bytes(&b->graph));
    heddle_json_key_uint(&j, "budget_bytes", b->budget);
    heddle_json_key_uint(&j, "transfer_bytes", r->copied_bytes);
    heddle_json_key_uint(&j, "belady_bytes", belady);
    heddle_json_key_uint(&j, "belady_load_bytes", b->belady.load_bytes);
    heddle_json_key_uint(&j, "lru_bytes", lru);
    heddle_json_key_double(&j, "ratio", ratio(r->copied_bytes, belady));
    heddle_json_key_double(&j, "lru_ratio", ratio(lru, belady));
    heddle_json_key_uint(&j, "evictions", r->evictions);
    heddle_json_key_double(&j, "makespan", r->makespan_ns);
    heddle_json_key_double(&j, "bound", b->bound);
    heddle_json_end(&j);
    heddle_json_line(&j);
    return heddle_json_finish(&j) == HEDDLE_OK ? 0 : cli_output_failed(b->c, HEDDLE_EIO);
}

/* The nodes of the log are those of the context: the host, then the machine's in
 * its order, less those that are not used. They have the machine's names. */
static void fill_links(struct sim_replay *r, const struct heddle_log_view *v,
                       const heddle_machine *m)
{
    struct heddle_machine_link l = {.size = sizeof(l)};
    struct heddle_machine_node a = {.size = sizeof(a)}, b = {.size = sizeof(b)};

    for (uint32_t i = 0; heddle_machine_get_link(m, i, &l) == HEDDLE_OK; i++) {
        if (heddle_machine_get_node(m, l.from, &a) != HEDDLE_OK ||
            heddle_machine_get_node(m, l.to, &b) != HEDDLE_OK)
            continue;
        for (size_t x = 0; x < v->nnodes; x++)
            for (size_t y = 0; y < v->nnodes; y++)
                if (v->nodes[x].id < SIM_NODES && v->nodes[y].id < SIM_NODES &&
                    strcmp(v->nodes[x].name, a.name) == 0 && strcmp(v->nodes[y].name, b.name) == 0)
                    r->link[v->nodes[y].id] |= UINT64_C(1) << v->nodes[x].id;
    }
}

static heddle_status replay(struct memory_bench *b, const heddle_log *log, const heddle_machine *m)
{
    struct sim_replay r;
    heddle_status st = sim_replay_read(&r, log);

    for (unsigned i = 1; i < SIM_NODES; i++)
        r.capacity[i] = b->run.budget;
    if (st == HEDDLE_OK) {
        fill_links(&r, heddle_log_get_view(log), m);
        st = sim_replay_run(&r, SIM_BELADY, &b->belady);
    }
    if (st == HEDDLE_OK)
        st = sim_replay_run(&r, SIM_LRU, &b->lru);
    sim_replay_free(&r);
    return st;
}

static int replay_log(struct memory_bench *b, const char *path, const heddle_machine *m)
{
    char why[320] = "";
    const struct heddle_log_opts o = {.size = sizeof(o), .why = why, .why_bytes = sizeof(why)};
    heddle_log *log = NULL;
    heddle_status st = heddle_log_open(path, &o, &log);

    if (st == HEDDLE_OK)
        st = replay(b, log, m);
    heddle_log_close(log);
    if (st != HEDDLE_OK)
        return cli_fail(b->c, "the order of the run cannot be replayed: %s",
                        why[0] != '\0' ? why : heddle_status_text(st));
    return 0;
}

static int run_one(struct memory_bench *b, const char *source, const heddle_machine *m,
                   const char *log)
{
    const struct sim_opts o = {.machine = source,
                               .policy = b->policy,
                               .devices = b->devices,
                               .log = log,
                               .device_memory = b->budget};
    char why[320];
    int rc;

    if (sim_graph_run(&b->graph, &o, &b->run) != HEDDLE_OK)
        return cli_fail(b->c, "%s", b->run.why);
    if (b->run.budget == 0)
        return cli_fail(b->c, "the machine '%s' has no devices with a memory", source);
    rc = replay_log(b, log, m);
    if (rc == 0 &&
        sim_graph_bound(&b->graph, m, b->run.classes, &b->bound, why, sizeof(why)) != HEDDLE_OK)
        rc = cli_fail(b->c, "%s", why);
    return rc == 0 ? print_one(b, source) : rc;
}

/* With a log of its own, which goes, or the one to be kept. */
static int run_machine(struct memory_bench *b, const char *source)
{
    const char *dir = getenv("TMPDIR");
    char path[4096], why[320] = "";
    heddle_machine *m = NULL;
    int fd = -1, rc;

    if (heddle_machine_open(source, &m, why, sizeof(why)) != HEDDLE_OK)
        return cli_fail(b->c, "%s", why);
    snprintf(path, sizeof(path), "%s/heddle-bench-XXXXXX",
             dir != NULL && dir[0] != '\0' ? dir : "/tmp");
    if (b->log == NULL)
        fd = mkstemp(path);
    if (b->log == NULL && fd < 0)
        rc = cli_fail(b->c, "no temporary file '%s' can be made", path);
    else
        rc = run_one(b, source, m, b->log != NULL ? b->log : path);
    if (fd >= 0) {
        close(fd);
        unlink(path);
    }
    heddle_machine_close(m);
    return rc;
}

static int parse_budget(struct memory_bench *b)
{
    const uint64_t data = sim_data_bytes(&b->graph);
    const uint64_t least = sim_task_bytes(&b->graph);

    if (heddle_parse_size(b->budget_text, data, &b->budget) != HEDDLE_OK || b->budget == 0)
        return cli_error(b->c,
                         "--budget is '%s', but it must be bytes, as in 64M, or "
                         "a percentage of the data, above 0",
                         b->budget_text);
    if (b->budget < least)
        b->budget = least;
    return 0;
}

static int run_all(struct memory_bench *b)
{
    const heddle_status st = sim_graph_make(&b->graph, b->workload, (uint32_t)b->tiles, b->seed);
    int rc;

    if (st != HEDDLE_OK)
        return cli_fail(b->c, "the graph cannot be made: %s", heddle_status_text(st));
    rc = parse_budget(b);
    for (unsigned i = 0; i < b->machines.n && rc == 0; i++)
        rc = run_machine(b, b->machines.source[i]);
    return rc;
}

static int memory_run(struct cli *c, int argc, char **argv)
{
    struct memory_bench b = {
        .c = c, .workload_name = "gemm", .budget_text = "25%", .tiles = 16, .seed = 1};
    const struct cli_opt opts[] = {{"--workload", CLI_STRING, &b.workload_name, 0, 0},
                                   {"--tiles", CLI_UINT, &b.tiles, 1, SIM_MAX_TILES},
                                   {"--budget", CLI_STRING, &b.budget_text, 0, 0},
                                   {"--policy", CLI_STRING, &b.policy, 0, 0},
                                   {"--devices", CLI_STRING, &b.devices, 0, 0},
                                   {"--seed", CLI_UINT, &b.seed, 0, UINT64_MAX},
                                   {"--log", CLI_OUTPUT, &b.log, 0, 0},
                                   {0}};
    int rc = sim_take_machines(c, &argc, argv, &b.machines);

    if (rc == 0)
        rc = cli_parse(c, "bench memory", argc, argv, opts, NULL);
    if (rc == 0)
        rc = sim_check_workload(c, b.workload_name, &b.workload);
    if (rc == 0)
        rc = sim_check_policy(c, b.policy);
    if (rc == 0 && b.machines.n == 0)
        return cli_error(c, "bench memory needs a --machine");
    if (rc == 0 && b.log != NULL && b.machines.n > 1)
        return cli_error(c, "--log is for one --machine");
    for (unsigned i = 0; i < b.machines.n && b.log != NULL && rc == 0; i++)
        rc = output_check_input(c, b.log, b.machines.source[i]);
    if (rc == 0)
        rc = run_all(&b);
    sim_graph_free(&b.graph);
    return rc;
}

const struct heddle_cmd heddle_bench_memory = {
    .name = "memory",
    .help = "bytes copied under memory pressure, against ideal caches",
    .usage = "heddle bench memory --machine FILE [--machine FILE ...]\n"
             "    [--workload gemm|cholesky|lu|random] [--budget B] [--tiles N]\n"
             "    [--policy P] [--devices LIST] [--seed S] [--log FILE] [--json]\n"
             "\n"
             "  --machine   a machine file or starpu:DIR:NAME\n"
             "  --workload  tiles of 960 x 960 floats (default gemm)\n"
             "  --budget    memory of each device: bytes, or percent of the data, "
             "and\n"
             "              at least the largest task (default 25%)\n"
             "  --tiles     along a side (default 16)\n"
             "  --policy    a scheduler (default: the default)\n"
             "  --devices   of the machine, as in HEDDLE_DEVICES (default: all)\n"
             "  --seed      of the random graph (default 1)\n"
             "  --log       keep the log of the run in FILE\n"
             "The order of the run is replayed through caches of the same size "
             "that\n"
             "evict by Belady's rule (farthest next use) and LRU.\n",
    .run = memory_run,
};
