/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/serve/rate: requests per second of a small network, against an empty handler of the same
 * HTTP library.
 *
 * Both servers get the same bytes over as many connections from the same generator, in turn; the
 * ratio is of two numbers of one round.
 */
#include "bench/serve/serve.h"

#include <stdlib.h>
#include <string.h>

static int run_round(struct serve_bench *b, const struct child k[2],
                     const struct talk_request *request, double rate[2], double cpu_us[2])
{
    for (int i = 0; i < 2; i++) {
        const uint64_t cpu = child_cpu_ns(&k[i]);
        const int rc = serve_load(b, &k[i], request, 0, 0, b->seconds);

        if (rc != 0)
            return rc;
        if (b->result->good == 0)
            return cli_fail(b->c, "no request was answered");
        rate[i] = load_rate(b->result);
        cpu_us[i] = (double)(child_cpu_ns(&k[i]) - cpu) / 1e3 / (double)b->result->good;
    }
    return 0;
}

/* What the server says of its batches; 0: nothing. */
static double rows_per_batch(const struct child *k)
{
    static char text[65536];
    double rows, batches;
    const char *at;

    if (talk_get(&k->at, "/metrics", text, sizeof(text)) != 200)
        return 0;
    at = strstr(text, "\nnv_inference_count{");
    rows = at != NULL ? strtod(strchr(at, ' '), NULL) : 0;
    at = strstr(text, "\nnv_inference_exec_count{");
    batches = at != NULL ? strtod(strchr(at, ' '), NULL) : 0;
    return batches > 0 ? rows / batches : 0;
}

static int run_rounds(struct serve_bench *b, const struct child k[2],
                      const struct talk_request *request)
{
    struct serve_case found = {.part = "rate",
                               .name = "small model",
                               .unit = "of an empty handler",
                               .rounds = b->rounds,
                               .rule = SERVE_AT_LEAST,
                               .must = 0.6,
                               .aim = 0.8};
    double empty[SERVE_MAX_ROUNDS], ours[SERVE_MAX_ROUNDS], ratio[SERVE_MAX_ROUNDS];
    double empty_cpu[SERVE_MAX_ROUNDS], cpu[SERVE_MAX_ROUNDS];
    struct bench_stat e, o;

    for (uint64_t r = 0; r < b->rounds + 1; r++) { /* the first one warms up */
        const uint64_t at = r > 0 ? r - 1 : 0;
        double rate[2], cpu_us[2];
        const int rc = run_round(b, k, request, rate, cpu_us);

        if (rc != 0)
            return rc;
        empty[at] = rate[0];
        ours[at] = rate[1];
        ratio[at] = rate[1] / rate[0];
        empty_cpu[at] = cpu_us[0];
        cpu[at] = cpu_us[1];
    }
    e = bench_stat(empty, b->rounds);
    o = bench_stat(ours, b->rounds);
    b->capacity = o.median;
    found.v = bench_stat(ratio, b->rounds);
    serve_fact(&found, "requests_per_s", o.median);
    serve_fact(&found, "empty_per_s", e.median);
    serve_fact(&found, "cpu_us_each", bench_stat(cpu, b->rounds).median);
    serve_fact(&found, "empty_cpu_us_each", bench_stat(empty_cpu, b->rounds).median);
    serve_fact(&found, "model_us", b->model_ns / 1e3);
    serve_fact(&found, "model_width", (double)b->width);
    serve_fact(&found, "connections", (double)b->connections);
    serve_fact(&found, "request_bytes", (double)request->bytes);
    serve_fact(&found, "rows_per_batch", rows_per_batch(&k[1]));
    serve_load_facts(&found, b->result);
    return serve_report(b, &found);
}

int bench_serve_rate(struct serve_bench *b)
{
    char *const empty[] = {(char *)"bench", (char *)"serve", (char *)"--child", (char *)"empty",
                           NULL};
    static const char *const none[] = {NULL};
    struct child k[2] = {{0}, {0}};
    struct talk_request request = {NULL, 0};
    char why[200];
    int rc = serve_start_ours(b, none, &k[1], &request), ended;

    if (rc == 0 && child_start(&k[0], empty, why, sizeof(why)) != HEDDLE_OK)
        rc = cli_fail(b->c, "%s", why);
    if (rc == 0)
        rc = run_rounds(b, k, &request);
    free(request.text);
    ended = child_stop(&k[1]);
    (void)child_stop(&k[0]);
    return rc == 0 && ended != 0 ? cli_fail(b->c, "the server ended with status %d", ended) : rc;
}
