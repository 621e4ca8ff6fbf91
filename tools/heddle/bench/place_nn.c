/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench place_nn: networks on cores and an accelerator, in virtual time.
 *
 * Networks  with the layers of published ones: flops and bytes of each operator from its shape. A
 *           core takes the longer of both at its rates. The accelerator takes 1 / (ratio x cores)
 *           of that over the whole network; what moves memory gains half as much as what
 *           computes.
 * Reached   the period of a stream of requests that never ends, over the bound.
 * Latency   p99 at 80 % load, over that of instances which take whole requests: one for each
 *           worker, the fastest idle one first, each request alone. With times in proportion to
 *           the batch, larger batches would only make it longer.
 * No noise  everything is computed, so the numbers are the same on every machine.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "nn/place.h"

enum { NET_OPS = 512, NET_READS = 1024, CLASSES = 2 };

#define CORE_GFLOPS  40.0
#define CORE_GBYTES  10.0
#define LINK_GBYTES  12.0
#define LINK_LATENCY 10000.0
#define COMPUTE_GAIN 2.0 /* of an operator that computes, against one that moves memory */
#define MUST_REACH   0.90
#define AIM_REACH    0.95
#define MUST_P99     0.7
#define AIM_P99      0.5
#define SLACK        0.04
#define ELEMENT      4.0 /* bytes of a float */

/* A network under construction. Operator i makes value i + 1; value 0 is the input. */
struct net {
    uint32_t nops, nreads;
    double flops[NET_OPS], moved[NET_OPS];
    uint64_t weights[NET_OPS], bytes[NET_OPS + 1];
    uint32_t maker[NET_OPS + 1], value[NET_READS], reader[NET_READS];
    double time[NET_OPS * CLASSES];
};

static void net_begin(struct net *n, double input_bytes)
{
    memset(n, 0, sizeof(*n));
    n->bytes[0] = (uint64_t)input_bytes;
    n->maker[0] = UINT32_MAX;
}

static void net_read(struct net *n, uint32_t value, uint32_t reader)
{
    n->value[n->nreads] = value;
    n->reader[n->nreads++] = reader;
}

/* An operator that reads a and, if that is another value, b; the value it makes. */
static uint32_t net_op(struct net *n, uint32_t a, uint32_t b, double flops, double weights,
                       double out)
{
    const uint32_t i = n->nops++;

    net_read(n, a, i);
    if (b != a)
        net_read(n, b, i);
    n->flops[i] = flops;
    n->weights[i] = (uint64_t)(weights * ELEMENT);
    n->bytes[i + 1] = (uint64_t)(out * ELEMENT);
    n->maker[i + 1] = i;
    n->moved[i] =
        (double)(n->bytes[a] + (b != a ? n->bytes[b] : 0) + n->weights[i] + n->bytes[i + 1]);
    return i + 1;
}

/* A convolution of k x k over `side` x `side` outputs; groups of channels. */
static uint32_t net_conv(struct net *n, uint32_t x, double in, double out, double k, double side,
                         double groups)
{
    const double w = in / groups * out * k * k;

    return net_op(n, x, x, 2.0 * w * side * side, w, out * side * side);
}

static uint32_t net_add(struct net *n, uint32_t a, uint32_t b)
{
    const double out = (double)n->bytes[a] / ELEMENT;

    return net_op(n, a, b, out, 0.0, out);
}

static void net_end(struct net *n, uint32_t x)
{
    net_read(n, x, UINT32_MAX);
}

static void net_resnet50(struct net *n)
{
    static const unsigned blocks[] = {3, 4, 6, 3};
    double width = 64.0, side = 56.0, in = 64.0;
    uint32_t x;

    net_begin(n, 3.0 * 224 * 224 * ELEMENT);
    x = net_conv(n, 0, 3, 64, 7, 112, 1);
    x = net_op(n, x, x, 9.0 * 64 * 56 * 56, 0, 64.0 * 56 * 56);
    for (unsigned s = 0; s < 4; s++, width *= 2)
        for (unsigned b = 0; b < blocks[s]; b++) {
            uint32_t y, skip = x;

            side = b == 0 && s > 0 ? side / 2 : side;
            y = net_conv(n, x, in, width, 1, side, 1);
            y = net_conv(n, y, width, width, 3, side, 1);
            y = net_conv(n, y, width, 4 * width, 1, side, 1);
            if (b == 0)
                skip = net_conv(n, x, in, 4 * width, 1, side, 1);
            x = net_add(n, y, skip);
            in = 4 * width;
        }
    x = net_op(n, x, x, in * side * side, 0, in);
    net_end(n, net_op(n, x, x, 2.0 * in * 1000, in * 1000, 1000));
}

static void net_mobilenet(struct net *n)
{
    static const struct {
        double expand, out, side;
        unsigned repeat;
    } row[] = {{1, 16, 112, 1}, {6, 24, 56, 2}, {6, 32, 28, 3}, {6, 64, 14, 4},
               {6, 96, 14, 3},  {6, 160, 7, 3}, {6, 320, 7, 1}};
    double in = 32.0, side = 112.0;
    uint32_t x;

    net_begin(n, 3.0 * 224 * 224 * ELEMENT);
    x = net_conv(n, 0, 3, 32, 3, 112, 1);
    for (unsigned r = 0; r < sizeof(row) / sizeof(row[0]); r++)
        for (unsigned b = 0; b < row[r].repeat; b++) {
            const double mid = in * row[r].expand;
            uint32_t y = x;

            if (row[r].expand > 1)
                y = net_conv(n, y, in, mid, 1, side, 1);
            side = row[r].side;
            y = net_conv(n, y, mid, mid, 3, side, mid);
            y = net_conv(n, y, mid, row[r].out, 1, side, 1);
            x = b > 0 ? net_add(n, y, x) : y;
            in = row[r].out;
        }
    x = net_conv(n, x, in, 1280, 1, side, 1);
    x = net_op(n, x, x, 1280 * side * side, 0, 1280);
    net_end(n, net_op(n, x, x, 2.0 * 1280 * 1000, 1280 * 1000, 1000));
}

/* 12 layers, 768 wide, 128 tokens. */
static void net_bert(struct net *n)
{
    const double d = 768, t = 128;
    uint32_t x;

    net_begin(n, t * 8);
    x = net_op(n, 0, 0, d * t, 0, d * t); /* the table is read by rows */
    for (unsigned layer = 0; layer < 12; layer++) {
        uint32_t q, k, v, y;

        q = net_op(n, x, x, 2 * d * d * t, d * d, d * t);
        k = net_op(n, x, x, 2 * d * d * t, d * d, d * t);
        v = net_op(n, x, x, 2 * d * d * t, d * d, d * t);
        y = net_op(n, q, k, 2 * d * t * t, 0, 12 * t * t);
        y = net_op(n, y, y, 5 * 12 * t * t, 0, 12 * t * t);
        y = net_op(n, y, v, 2 * d * t * t, 0, d * t);
        y = net_op(n, y, y, 2 * d * d * t, d * d, d * t);
        x = net_add(n, y, x);
        x = net_op(n, x, x, 8 * d * t, 2 * d, d * t);
        y = net_op(n, x, x, 8 * d * d * t, 4 * d * d, 4 * d * t);
        y = net_op(n, y, y, 8 * d * d * t, 4 * d * d, d * t);
        x = net_add(n, y, x);
        x = net_op(n, x, x, 8 * d * t, 2 * d, d * t);
    }
    net_end(n, x);
}

static const struct {
    const char *name;
    void (*make)(struct net *n);
} networks[] = {{"resnet50", net_resnet50}, {"mobilenet", net_mobilenet}, {"bert", net_bert}};

/* --- the machine ----------------------------------------------------------------------------- */

static void net_times(struct net *n, unsigned cores, double ratio)
{
    double core = 0.0, acc = 0.0;

    for (uint32_t i = 0; i < n->nops; i++) {
        const double compute = n->flops[i] / CORE_GFLOPS, move = n->moved[i] / CORE_GBYTES;

        n->time[i * CLASSES] = fmax(compute, move);
        n->time[i * CLASSES + 1] = compute > move ? compute / COMPUTE_GAIN : move;
        core += n->time[i * CLASSES];
        acc += n->time[i * CLASSES + 1];
    }
    for (uint32_t i = 0; i < n->nops; i++)
        n->time[i * CLASSES + 1] *= core / acc / (ratio * cores);
}

static void problem_of(struct problem *p, struct net *n, unsigned cores)
{
    memset(p, 0, sizeof(*p));
    p->kind[0] = HEDDLE_DEV_CPU;
    p->kind[1] = HEDDLE_DEV_CUDA;
    p->nworkers[0] = cores;
    p->nworkers[1] = p->node[1] = 1;
    snprintf(p->cls_name[0], sizeof(p->cls_name[0]), "cores");
    snprintf(p->cls_name[1], sizeof(p->cls_name[1]), "accelerator");
    snprintf(p->node_name[0], sizeof(p->node_name[0]), "host");
    snprintf(p->node_name[1], sizeof(p->node_name[1]), "far");
    p->memory[1] = (struct heddle_spread_node){.in_latency = LINK_LATENCY,
                                               .in_rate = LINK_GBYTES,
                                               .out_latency = LINK_LATENCY,
                                               .out_rate = LINK_GBYTES};
    p->m = (struct heddle_spread_machine){.size = sizeof(p->m),
                                          .nclasses = CLASSES,
                                          .nnodes = CLASSES,
                                          .nworkers = p->nworkers,
                                          .node = p->node,
                                          .memory = p->memory};
    p->weights = n->weights;
    p->g = (struct heddle_spread_graph){.size = sizeof(p->g),
                                        .nops = n->nops,
                                        .nvalues = n->nops + 1,
                                        .nreads = n->nreads,
                                        .time = n->time,
                                        .weights = n->weights,
                                        .bytes = n->bytes,
                                        .maker = n->maker,
                                        .value = n->value,
                                        .reader = n->reader};
}

/* --- a row ------------------------------------------------------------------------------------ */

struct place_bench {
    struct cli *c;
    uint64_t cores, requests, seed;
    double least_reach, most_p99;
};

static int row_print(struct place_bench *b, const char *name, unsigned ratio,
                     const struct heddle_spread_result *s, const struct stream_trial *t)
{
    const double reach = s->bound / t->period_ns, p99 = t->ours.p99_ns / t->instances.p99_ns;
    struct heddle_json j;

    b->least_reach = fmin(b->least_reach, reach);
    b->most_p99 = fmax(b->most_p99, p99);
    if (!b->c->json) {
        fprintf(b->c->out,
                "%-10s ratio %2u: bound %8.3f ms, reached %.3f of it; p50 %8.3f ms, p99 %8.3f ms; "
                "instances p50 %8.3f ms, p99 %8.3f ms, ratio %.3f\n",
                name, ratio, s->bound / 1e6, reach, t->ours.p50_ns / 1e6, t->ours.p99_ns / 1e6,
                t->instances.p50_ns / 1e6, t->instances.p99_ns / 1e6, p99);
        fflush(b->c->out);
        return 0;
    }
    heddle_json_init_file(&j, b->c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "place_nn");
    heddle_json_key_str(&j, "network", name);
    heddle_json_key_uint(&j, "cores", b->cores);
    heddle_json_key_uint(&j, "ratio", ratio);
    heddle_json_key_uint(&j, "requests", b->requests);
    heddle_json_key_double(&j, "bound_ms", s->bound / 1e6);
    heddle_json_key_double(&j, "period_ms", t->period_ns / 1e6);
    heddle_json_key_double(&j, "of_bound", reach);
    heddle_json_key_double(&j, "gap_ms", t->load_ns / 1e6);
    heddle_json_key_double(&j, "p50_ms", t->ours.p50_ns / 1e6);
    heddle_json_key_double(&j, "p99_ms", t->ours.p99_ns / 1e6);
    heddle_json_key_double(&j, "instances_p50_ms", t->instances.p50_ns / 1e6);
    heddle_json_key_double(&j, "instances_p99_ms", t->instances.p99_ns / 1e6);
    heddle_json_key_double(&j, "p99_ratio", p99);
    return bench_json_end(b->c, &j);
}

static int row_run(struct place_bench *b, struct net *n, const char *name, unsigned ratio)
{
    struct heddle_spread_result s;
    char why[PLACE_WHY] = "";
    struct stream_trial t;
    struct problem p;
    int rc;

    net_times(n, (unsigned)b->cores, ratio);
    problem_of(&p, n, (unsigned)b->cores);
    if (problem_spread(&p, "mix", SLACK, &s, why) != HEDDLE_OK)
        rc = cli_fail(b->c, "%s", why);
    else if (!stream_try(&p, &s, b->requests, b->seed, &t))
        rc = cli_fail(b->c, "%s", p.why);
    else
        rc = row_print(b, name, ratio, &s, &t);
    heddle_spread_fini(&s);
    return rc;
}

/* --- bars ------------------------------------------------------------------------------------- */

static int bar(struct place_bench *b, const char *what, double value, double must, double aim,
               bool is_most)
{
    const bool is_met = is_most ? value <= must : value >= must;
    const bool is_aimed = is_most ? value <= aim : value >= aim;
    struct heddle_json j;

    if (!b->c->json) {
        fprintf(b->c->out, "%s: %.3f; must be %s %g: %s, aim %g: %s\n", what, value,
                is_most ? "<=" : ">=", must, is_met ? "met" : "MISSED", aim,
                is_aimed ? "met" : "missed");
        return 0;
    }
    heddle_json_init_file(&j, b->c->out);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "place_nn");
    heddle_json_key_str(&j, "bar", what);
    heddle_json_key_double(&j, "value", value);
    heddle_json_key_double(&j, "must", must);
    heddle_json_key_double(&j, "aim", aim);
    heddle_json_key_bool(&j, "met", is_met);
    heddle_json_key_bool(&j, "aim_met", is_aimed);
    return bench_json_end(b->c, &j);
}

static int place_nn_run(struct cli *c, int argc, char **argv)
{
    static const unsigned ratios[] = {2, 4, 8, 20};
    struct place_bench b = {
        .c = c, .cores = 16, .requests = 4000, .seed = 1, .least_reach = INFINITY};
    const struct cli_opt opts[] = {{"--cores", CLI_UINT, &b.cores, 1, 1024},
                                   {"--requests", CLI_UINT, &b.requests, 100, 1000000},
                                   {"--seed", CLI_UINT, &b.seed, 0, UINT64_MAX},
                                   {0}};
    int rc = cli_parse(c, "bench place_nn", argc, argv, opts, NULL);
    struct net *n = rc == 0 ? malloc(sizeof(*n)) : NULL;

    if (rc == 0 && n == NULL)
        rc = cli_fail(c, "no memory for a network");
    for (unsigned i = 0; i < sizeof(networks) / sizeof(networks[0]); i++)
        for (unsigned r = 0; r < sizeof(ratios) / sizeof(ratios[0]) && rc == 0; r++) {
            networks[i].make(n);
            rc = row_run(&b, n, networks[i].name, ratios[r]);
        }
    free(n);
    if (rc == 0)
        rc =
            bar(&b, "least throughput over the bound", b.least_reach, MUST_REACH, AIM_REACH, false);
    if (rc == 0)
        rc = bar(&b, "greatest p99 over that of instances", b.most_p99, MUST_P99, AIM_P99, true);
    return rc;
}

const struct heddle_cmd heddle_bench_place_nn = {
    .name = "place_nn",
    .help = "networks on cores and an accelerator: throughput, latency",
    .usage = "heddle bench place_nn [--cores N] [--requests N] [--seed S] [--json]\n"
             "\n"
             "  --cores     beside the accelerator, which is 2 to 20 times as fast as all\n"
             "              of them (default 16)\n"
             "  --requests  of each stream (default 4000)\n"
             "Streams of requests in virtual time: the throughput over the bound, and p99 at\n"
             "80 % load over that of instances that take whole requests.\n",
    .run = place_nn_run,
};
