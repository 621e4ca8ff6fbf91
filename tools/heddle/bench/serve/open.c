/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/serve/open: latency from when a request was due, at shares of the rate that the server
 * reaches in closed loop.
 */
#include "bench/serve/serve.h"

#include <stdlib.h>

static int run_one(struct serve_bench *b, const struct child *k, const struct talk_request *request,
                   const char *name, double rate, unsigned burst)
{
    const double seconds = 2 * b->seconds; /* tails want many requests */
    struct serve_case found = {.part = "open", .name = name, .unit = "us at the median"};
    const int rc = serve_load(b, k, request, rate, burst, seconds);
    double p50;

    if (rc != 0)
        return rc;
    p50 = (double)hist_at(&b->result->latency, 0.5) / 1e3;
    found.rounds = 1;
    found.v = (struct bench_stat){p50, p50, p50};
    serve_fact(&found, "rate", rate);
    serve_fact(&found, "burst", burst);
    serve_fact(&found, "share", b->capacity > 0 ? rate / b->capacity : 0);
    serve_load_facts(&found, b->result);
    return serve_report(b, &found);
}

/* The rate of the closed loop, where no part before has found it. */
static int find_capacity(struct serve_bench *b, const struct child *k,
                         const struct talk_request *request)
{
    struct serve_case found = {
        .part = "open", .name = "closed loop", .unit = "requests/s", .rounds = 1};
    int rc = 0;

    if (b->capacity > 0)
        return 0;
    for (int warm = 1; warm >= 0 && rc == 0; warm--)
        rc = serve_load(b, k, request, 0, 0, b->seconds);
    if (rc != 0)
        return rc;
    b->capacity = load_rate(b->result);
    if (b->capacity <= 0)
        return cli_fail(b->c, "no request was answered");
    found.v = (struct bench_stat){b->capacity, b->capacity, b->capacity};
    serve_fact(&found, "connections", (double)b->connections);
    serve_load_facts(&found, b->result);
    return serve_report(b, &found);
}

static int run_all(struct serve_bench *b, const struct child *k, const struct talk_request *request)
{
    static const struct {
        const char *name;
        double share;
        bool is_burst;
    } runs[] = {
        {"poisson 50%", 0.5, false}, {"poisson 80%", 0.8, false}, {"bursts 50%", 0.5, true}};
    int rc;

    if (b->rate > 0)
        return run_one(b, k, request, b->burst > 1 ? "bursts" : "poisson", b->rate,
                       (unsigned)b->burst);
    rc = find_capacity(b, k, request);
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]) && rc == 0; i++)
        rc = run_one(b, k, request, runs[i].name, runs[i].share * b->capacity,
                     runs[i].is_burst ? (b->burst > 1 ? (unsigned)b->burst : 32) : 1);
    return rc;
}

int bench_serve_open(struct serve_bench *b)
{
    static const char *const none[] = {NULL};
    struct child k = {0};
    struct talk_request request = {NULL, 0};
    int rc = serve_start_ours(b, none, &k, &request), ended;

    if (rc == 0)
        rc = run_all(b, &k, &request);
    free(request.text);
    ended = child_stop(&k);
    return rc == 0 && ended != 0 ? cli_fail(b->c, "the server ended with status %d", ended) : rc;
}

int bench_serve_url(struct serve_bench *b)
{
    struct talk_request request = {NULL, 0};
    struct child k = {0};
    const char *path;
    char why[400] = "";
    heddle_status st;
    int rc;

    if (!talk_parse_url(b->url, &k.at, &path))
        return cli_error(b->c, "--url is '%s', but it must be like http://127.0.0.1:8000/path",
                         b->url);
    st = talk_make_request(&k.at, path, &request, why, sizeof(why));
    if (st != HEDDLE_OK)
        return cli_fail(b->c, "%s", why[0] != '\0' ? why : heddle_status_text(st));
    rc = run_all(b, &k, &request);
    free(request.text);
    return rc;
}
