/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_BENCH_SERVE_LOAD_H
#define HEDDLE_TOOLS_BENCH_SERVE_LOAD_H

/*
 * A generator of HTTP load over keep-alive connections.
 *
 * Open loop    requests are due at moments drawn before the run, whatever the server does: one by
 *              one as a Poisson process, or `burst` at once. A request that is due is sent on
 *              a connection that has no other, or waits for one. Its latency begins when it was
 *              due, so a server that stalls is seen by all requests of the stall, not by the one
 *              that was on its way (no coordinated omission).
 * Closed loop  each connection sends its next request when it has the reply to the last: the
 *              rate that the server reaches is the result.
 *
 * Threads  load_run() starts its own, and waits for them.
 */
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/serve/hist.h"
#include "heddle/status.h"

enum { LOAD_MAX_CONNECTIONS = 60000, LOAD_MAX_THREADS = 64 };

struct load_opts {
    struct sockaddr_in to;
    const char *request; /* sent as it is, each time */
    size_t bytes;
    unsigned nconnections, nthreads;
    double rate;    /* requests per second; 0: closed loop */
    unsigned burst; /* requests that are due at once; 0 and 1: one by one */
    double seconds;
    uint64_t seed;
};

struct load_result {
    struct hist latency; /* of replies with a code below 300 */
    struct hist late;    /* open loop: from when a request was due until it was sent */
    uint64_t planned;    /* open loop: requests that were due */
    uint64_t sent, good;
    uint64_t refused; /* 503 and 504 */
    uint64_t bad;     /* other codes, and what is no HTTP */
    uint64_t broken;  /* requests whose connection ended before the reply */
    uint64_t lost;    /* requests without a reply when the run was given up */
    double seconds;
};

/* Good replies per second. */
double load_rate(const struct load_result *r);

/*
 * Runs the load.
 *
 * HEDDLE_EIO     a connection cannot be made; `why` has a sentence
 * HEDDLE_ENOMEM
 */
HEDDLE_MUST_USE heddle_status load_run(const struct load_opts *o, struct load_result *out,
                                       char *why, size_t why_bytes);

#endif /* HEDDLE_TOOLS_BENCH_SERVE_LOAD_H */
