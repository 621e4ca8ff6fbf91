/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_BENCH_SERVE_SERVE_H
#define HEDDLE_TOOLS_BENCH_SERVE_SERVE_H

/*
 * `heddle bench serve`: the parts, and what they share.
 *
 *   bench/serve/rate.c     requests per second against an empty handler of the HTTP library
 *   bench/serve/open.c     latency under open load, Poisson and bursts
 *   bench/serve/robust.c   clients that are idle, slow, too large, or talk nonsense
 *   bench/serve/report.c   what is printed
 *   bench/serve/empty.c    the empty handler
 *   bench/serve/load.c     the generator; hist.c its histogram
 *   bench/serve/child.c    servers in processes of their own
 *   bench/serve/network.c  the network that is served
 *   bench/serve/talk.c     single requests
 *
 * Servers and load share the cores of the machine. Servers are children of the command, on ports
 * of the system's choice on loopback.
 */
#include "bench/bench.h"
#include "bench/serve/child.h"
#include "bench/serve/load.h"
#include "bench/serve/talk.h"

enum { SERVE_MAX_ROUNDS = 101, SERVE_MAX_FACTS = 24 };

struct serve_bench {
    struct cli *c;
    const char *only, *url, *child;
    uint64_t rounds, connections, threads, workers, burst, idle, seed;
    double seconds; /* of a run of the generator */
    double model_us, rate;
    bool is_quick;

    char folder[256], model[300]; /* "": the network is not written yet */
    size_t width;
    double model_ns;
    double capacity; /* requests per second in closed loop; 0: not known yet */
    struct load_result *result;
    char machine[128];
    unsigned nbars, nmet;
};

enum serve_rule { SERVE_NO_BAR, SERVE_AT_LEAST, SERVE_AT_MOST };

/* One line of the result. */
struct serve_case {
    const char *part, *name, *unit;
    struct bench_stat v;
    size_t rounds;
    enum serve_rule rule; /* of the median */
    double must, aim;
    struct {
        const char *name;
        double value;
    } fact[SERVE_MAX_FACTS];
};

void serve_fact(struct serve_case *k, const char *name, double value);
/* Prints it. The exit status. */
int serve_report(struct serve_bench *b, const struct serve_case *k);

/* Starts `heddle serve` with the network, made if there is none, and `more` options up to NULL, and
 * makes the request for it. Returns 0, or the exit status after a sentence. */
int serve_start_ours(struct serve_bench *b, const char *const *more, struct child *k,
                     struct talk_request *request);
/* One run of the generator into b->result: closed loop when rate is 0. */
int serve_load(struct serve_bench *b, const struct child *k, const struct talk_request *request,
               double rate, unsigned burst, double seconds);
/* The facts of a run: percentiles, and what was not answered. */
void serve_load_facts(struct serve_case *k, const struct load_result *r);

int bench_serve_rate(struct serve_bench *b);
int bench_serve_open(struct serve_bench *b);
int bench_serve_robust(struct serve_bench *b);
/* Open load against b->url. */
int bench_serve_url(struct serve_bench *b);
/* The empty server, until SIGTERM. */
int bench_serve_empty(struct serve_bench *b);

#endif /* HEDDLE_TOOLS_BENCH_SERVE_SERVE_H */
