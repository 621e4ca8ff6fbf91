/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/serve: `heddle serve` under load.
 *
 * Parts      see bench/serve/serve.h. Bars are printed with the numbers; a bar that is missed is
 *            no failure of the command: a server that ends, hangs or keeps descriptors is.
 */
#include "bench/serve/serve.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "bench/serve/network.h"
#include "heddle/machine.h"

static int make_network(struct serve_bench *b)
{
    const char *folder = getenv("TMPDIR");
    struct heddle_text t;
    char why[400] = "";

    heddle_text_init(&t, b->folder, sizeof(b->folder));
    heddle_text_add(&t, "%s/heddle-bench-XXXXXX",
                    folder != NULL && folder[0] != '\0' ? folder : "/tmp");
    if (t.is_truncated || mkdtemp(b->folder) == NULL) {
        b->folder[0] = '\0';
        return cli_fail(b->c, "no folder can be made for the network");
    }
    heddle_text_init(&t, b->model, sizeof(b->model));
    heddle_text_add(&t, "%s/network.onnx", b->folder);
    if (network_find(b->model, b->model_us * 1e3, &b->width, &b->model_ns, why, sizeof(why)) !=
        HEDDLE_OK)
        return cli_fail(b->c, "%s", why);
    return 0;
}

int serve_start_ours(struct serve_bench *b, const char *const *more, struct child *k,
                     struct talk_request *request)
{
    char workers[24], why[400] = "";
    const char *argv[24] = {"serve", NULL, "--port", "0", "--json"};
    size_t n = 5;
    heddle_status st;

    if (b->model[0] == '\0') {
        const int rc = make_network(b);

        if (rc != 0)
            return rc;
    }
    argv[1] = b->model;
    if (b->workers > 0) {
        (void)snprintf(workers, sizeof(workers), "%u", (unsigned)b->workers);
        argv[n++] = "--workers";
        argv[n++] = workers;
    }
    for (size_t i = 0; more[i] != NULL && n < 23; i++)
        argv[n++] = more[i];
    /* execv() takes pointers to what it does not change. */
    st = child_start(k, (char *const *)(uintptr_t)argv, why, sizeof(why));
    if (st == HEDDLE_OK)
        st = talk_make_request(&k->at, "/v2/models/network/infer", request, why, sizeof(why));
    return st == HEDDLE_OK ? 0
                           : cli_fail(b->c, "%s", why[0] != '\0' ? why : heddle_status_text(st));
}

int serve_load(struct serve_bench *b, const struct child *k, const struct talk_request *request,
               double rate, unsigned burst, double seconds)
{
    const struct load_opts o = {.to = k->at,
                                .request = request->text,
                                .bytes = request->bytes,
                                .nconnections = (unsigned)b->connections,
                                .nthreads = (unsigned)b->threads,
                                .rate = rate,
                                .burst = burst,
                                .seconds = seconds,
                                .seed = b->seed};
    char why[400] = "";
    const heddle_status st = load_run(&o, b->result, why, sizeof(why));

    return st == HEDDLE_OK ? 0
                           : cli_fail(b->c, "%s", why[0] != '\0' ? why : heddle_status_text(st));
}

/* --- the command --------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int (*run)(struct serve_bench *b);
} parts[] = {
    {"rate", bench_serve_rate}, {"open", bench_serve_open}, {"robust", bench_serve_robust}};

enum { NPARTS = sizeof(parts) / sizeof(parts[0]) };

/* "rate,open" as a mask; all bits when there is no list. */
static int parse_only(struct serve_bench *b, unsigned *mask_out)
{
    *mask_out = b->only == NULL ? ~0u : 0;
    for (const char *p = b->only; p != NULL;) {
        const size_t len = strcspn(p, ",");
        unsigned i = 0;

        while (i < NPARTS && (strlen(parts[i].name) != len || strncmp(parts[i].name, p, len) != 0))
            i++;
        if (i == NPARTS)
            return cli_error(
                b->c, "--only is '%s', but it must be some of rate, open and robust, with commas",
                b->only);
        *mask_out |= 1u << i;
        p = p[len] == ',' ? p + len + 1 : NULL;
    }
    return 0;
}

static int print_summary(struct serve_bench *b, double seconds)
{
    struct heddle_json j;

    if (!b->c->json) {
        fprintf(b->c->out, "%u of %u bars are met, on %s, in %.0f s\n", b->nmet, b->nbars,
                b->machine, seconds);
        return 0;
    }
    heddle_json_init_file(&j, b->c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "serve summary");
    heddle_json_key_str(&j, "machine", b->machine);
    heddle_json_key_uint(&j, "bars", b->nbars);
    heddle_json_key_uint(&j, "met", b->nmet);
    heddle_json_key_double(&j, "seconds", seconds);
    return bench_json_end(b->c, &j);
}

static int run_parts(struct serve_bench *b, unsigned mask)
{
    const uint64_t start = heddle_clock_ns();
    int rc = 0, printed;

    for (unsigned i = 0; i < NPARTS; i++) {
        int one = 0;

        if ((mask >> i & 1) != 0)
            one = parts[i].run(b);
        rc = rc == 0 ? one : rc; /* the others may still tell something */
    }
    if (b->model[0] != '\0')
        (void)unlink(b->model);
    if (b->folder[0] != '\0')
        (void)rmdir(b->folder);
    printed = print_summary(b, (double)(heddle_clock_ns() - start) / 1e9);
    return rc == 0 ? printed : rc;
}

static void set_defaults(struct serve_bench *b)
{
    struct heddle_machine_info machine = {.size = sizeof(machine)};
    struct heddle_text t;

    b->rounds = b->rounds > 0 ? b->rounds : b->is_quick ? 3 : 9;
    b->idle = b->idle > 0 ? b->idle : b->is_quick ? 500 : 10000;
    b->seconds = b->seconds > 0 ? b->seconds / 1e9 : b->is_quick ? 0.3 : 2;
    /* Two, as wrk has: one might be slower than an empty server. Few cores have to be shared. */
    if (b->threads == 0)
        b->threads = sysconf(_SC_NPROCESSORS_ONLN) >= 4 ? 2 : 1;
    b->model_us /= 1e3; /* options count in nanoseconds */
    heddle_text_init(&t, b->machine, sizeof(b->machine));
    heddle_text_str(&t,
                    heddle_machine_query(&machine) == HEDDLE_OK ? machine.model : "this machine");
}

static int run_whole(struct serve_bench *b, unsigned mask)
{
    int rc;

    b->result = calloc(1, sizeof(*b->result));
    if (b->result == NULL)
        return cli_fail(b->c, "out of memory");
    rc = b->url != NULL ? bench_serve_url(b) : run_parts(b, mask);
    free(b->result);
    return rc;
}

static int serve_run(struct cli *c, int argc, char **argv)
{
    struct serve_bench b = {.c = c, .connections = 64, .model_us = 20e3, .seed = 1};
    uint64_t rate = 0;
    const struct cli_opt opts[] = {
        {"--only", CLI_STRING, &b.only, 0, 0},
        {"--quick", CLI_FLAG, &b.is_quick, 0, 0},
        {"--url", CLI_STRING, &b.url, 0, 0},
        {"--rate", CLI_UINT, &rate, 1, 10000000},
        {"--burst", CLI_UINT, &b.burst, 1, 10000},
        {"--run-us", CLI_NS, &b.seconds, 0, 3600000000},
        {"--rounds", CLI_UINT, &b.rounds, 1, SERVE_MAX_ROUNDS},
        {"--connections", CLI_UINT, &b.connections, 1, LOAD_MAX_CONNECTIONS},
        {"--threads", CLI_UINT, &b.threads, 1, LOAD_MAX_THREADS},
        {"--model-us", CLI_NS, &b.model_us, 0, 1000000},
        {"--workers", CLI_UINT, &b.workers, 1, 4096},
        {"--idle", CLI_UINT, &b.idle, 1, LOAD_MAX_CONNECTIONS},
        {"--seed", CLI_UINT, &b.seed, 0, UINT64_MAX},
        {"--child", CLI_STRING, &b.child, 0, 0},
        {0}};
    unsigned mask = 0;
    int rc = cli_parse(c, "bench serve", argc, argv, opts, NULL);

    if (rc == 0)
        rc = parse_only(&b, &mask);
    if (rc != 0)
        return rc;
    b.rate = (double)rate;
    if (b.child != NULL)
        return bench_serve_empty(&b);
    set_defaults(&b);
    return run_whole(&b, mask);
}

const struct heddle_cmd heddle_bench_serve = {
    .name = "serve",
    .help = "`heddle serve` under load, well meant and not",
    .usage = "heddle bench serve [--only PART,PART,...] [--quick] [--rounds R] [--run-us T]\n"
             "    [--connections N] [--threads N] [--model-us T] [--workers W]\n"
             "    [--rate R] [--burst N] [--idle N] [--seed S] [--url URL] [--json]\n"
             "\n"
             "  --only         of rate (requests/s against an empty handler), open (latency\n"
             "                 under Poisson and burst arrivals), robust (idle, slow, too large\n"
             "                 and malformed requests); default: all\n"
             "  --quick        smaller and fewer (default: about two minutes)\n"
             "  --rounds       of rate (default 9, quick 3)\n"
             "  --run-us       of one run of the load (default 2 s, quick 0.3 s)\n"
             "  --connections  of the load (default 64)\n"
             "  --threads      of the load (default 2, 1 on less than four cores)\n"
             "  --model-us     the network takes so long, alone (default 20)\n"
             "  --workers      of the server (default: all cores)\n"
             "  --rate         of open, per second (default: shares of what is reached)\n"
             "  --burst        requests that are due at once (default: one by one, then 32)\n"
             "  --idle         idle connections of robust (default 10000, quick 500)\n"
             "  --url          open load against another server: .../v2/models/M/infer gets\n"
             "                 zeros for its inputs, any other address is read with GET\n"
             "Latency begins when a request was due, not when it could be sent.\n",
    .run = serve_run,
};
