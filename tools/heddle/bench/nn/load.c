/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/nn/load: throughput with 4 requests in flight for each core, and the time from a file to
 * the first answer.
 *
 * Peers      a session as users make it, asked by as many threads as requests are in flight; and
 *            what experts tune by hand: a session of one thread for each core.
 */
#include <math.h>
#include <stdlib.h>

#include "bench/nn/nn.h"

enum { LOAD_IN_FLIGHT = 4, LOAD_SESSIONS = 64 };
#define LOAD_NS 0.5e9 /* of a round, about */

#define DEFAULT_MUST 1.3
#define DEFAULT_AIM  1.6
#define TUNED_MUST   1.0
#define TUNED_AIM    1.15
#define FIRST_MUST   0.8
#define FIRST_AIM    0.4

/* --- throughput ----------------------------------------------------------------------- */

struct throughput {
    struct nn_net n;
    struct heddle_nn_result *result;
    struct ort_session *all, *one[LOAD_SESSIONS];
    unsigned nones, in_flight;
    uint64_t total;  /* requests of a round */
    uint64_t cpu[3]; /* of ours, of these sessions: time of the cores, over all rounds */
    struct bench_case against_all, against_one;
};

static int throughput_open(struct throughput *t, struct nn_bench *b, const struct nn_file *f)
{
    double ns = 0;
    int rc = nn_net_open(&t->n, b, f, b->cores, false, 1);

    t->in_flight = LOAD_IN_FLIGHT * b->cores;
    if (rc == 0)
        rc = nn_net_run(&t->n, NULL, &t->result);
    if (rc == 0) /* makes the memory of all that will be in flight */
        rc = nn_net_flood(&t->n, t->in_flight, t->in_flight, NULL, NULL, &ns);
    t->total = (uint64_t)(LOAD_NS / ns * t->in_flight);
    t->total = t->total > t->in_flight ? t->total : t->in_flight;
    if (rc == 0 && b->ort != NULL)
        rc = ort_open(b->ort, &t->n, t->result, 0, &t->all);
    for (; b->ort != NULL && t->nones < b->cores && t->nones < LOAD_SESSIONS && rc == 0; t->nones++)
        rc = ort_open(b->ort, &t->n, t->result, 1, &t->one[t->nones]);
    if (rc == 0 && b->ort != NULL)
        rc = ort_flood(&t->all, 1, t->in_flight, t->in_flight, &ns);
    if (rc == 0 && b->ort != NULL)
        rc = ort_flood(t->one, t->nones, t->in_flight, t->nones, &ns);
    return rc;
}

static void throughput_close(struct throughput *t)
{
    for (unsigned i = 0; i < LOAD_SESSIONS; i++)
        ort_close(t->one[i]);
    ort_close(t->all);
    heddle_nn_result_destroy(t->result);
    nn_net_close(&t->n);
}

static int throughput_round(struct throughput *t, size_t i)
{
    const double n = (double)t->total * 1e9;
    double ns = 0;
    int rc;

    bench_settle();
    t->cpu[0] -= bench_process_ns();
    rc = nn_net_flood(&t->n, t->total, t->in_flight, NULL, NULL, &ns);
    t->cpu[0] += bench_process_ns();
    t->against_all.heddle[i] = t->against_one.heddle[i] = n / ns;
    t->against_all.n = t->against_one.n = i + 1;
    if (rc != 0 || t->all == NULL)
        return rc;
    bench_settle();
    t->cpu[1] -= bench_process_ns();
    rc = ort_flood(&t->all, 1, t->total, t->in_flight, &ns);
    t->cpu[1] += bench_process_ns();
    t->against_all.raw[i] = n / ns;
    if (rc != 0)
        return rc;
    bench_settle();
    t->cpu[2] -= bench_process_ns();
    rc = ort_flood(t->one, t->nones, t->total, t->nones, &ns);
    t->cpu[2] += bench_process_ns();
    t->against_one.raw[i] = n / ns;
    return rc;
}

/* The time of the cores per request, beside the rates. */
static void throughput_facts(struct throughput *t, uint64_t rounds)
{
    struct bench_case *const k[] = {&t->against_all, &t->against_one};
    const double total = 1e6 * (double)(rounds * t->total);

    for (unsigned i = 0; i < 2; i++) {
        bench_case_fact(k[i], "cpu_ms", (double)t->cpu[0] / total);
        if (t->all != NULL)
            bench_case_fact(k[i], "against_cpu_ms", (double)t->cpu[i + 1] / total);
    }
}

static int throughput_of(struct nn_bench *b, const struct nn_file *f, struct nn_mean mean[2])
{
    struct throughput *t = calloc(1, sizeof(*t));
    int rc;

    if (t == NULL)
        return cli_fail(b->c, "no memory");
    nn_case(&t->against_all, "throughput", f->name, "requests/s");
    nn_case(&t->against_one, "throughput", f->name, "requests/s");
    t->against_all.raw_name = "ONNX Runtime's default";
    t->against_one.raw_name = "ONNX Runtime, a session for each core";
    rc = throughput_open(t, b, f);
    for (size_t i = 0; i < b->rounds && rc == 0; i++)
        rc = throughput_round(t, i);
    t->against_all.is_alone = b->ort == NULL;
    throughput_facts(t, b->rounds);
    if (rc == 0 && b->ort != NULL) {
        nn_mean_add(&mean[0], &t->against_all);
        nn_mean_add(&mean[1], &t->against_one);
    }
    if (rc == 0)
        rc = nn_report(b, &t->against_all);
    if (rc == 0 && b->ort != NULL)
        rc = nn_report(b, &t->against_one);
    throughput_close(t);
    free(t);
    return rc;
}

int bench_nn_throughput(struct nn_bench *b)
{
    struct nn_mean mean[2] = {{.n = 0}, {.n = 0}};
    const struct nn_file *f;
    struct bench_case k;
    size_t i = 0;
    int rc = 0;

    while (rc == 0 && (f = nn_counted(b, &i)) != NULL)
        rc = throughput_of(b, f, mean);
    for (unsigned m = 0; m < 2 && rc == 0 && mean[m].n > 0; m++) {
        nn_case(&k, "throughput", m == 0 ? "mean, default" : "mean, tuned", "requests/s");
        k.n = (size_t)b->rounds;
        k.rule = BENCH_RATIO_AT_LEAST;
        k.must = m == 0 ? DEFAULT_MUST : TUNED_MUST;
        k.aim = m == 0 ? DEFAULT_AIM : TUNED_AIM;
        k.raw_name = m == 0 ? "ONNX Runtime's default" : "ONNX Runtime, a session for each core";
        bench_case_fact(&k, "in_flight", LOAD_IN_FLIGHT * b->cores);
        rc = nn_mean_report(b, &mean[m], &k);
    }
    return rc;
}

/* --- from the file to the first answer ------------------------------------------------ */

static int load_round(struct nn_bench *b, const struct nn_file *f, struct bench_case *k, size_t i)
{
    struct heddle_nn_result *r = NULL;
    struct ort_session *s = NULL;
    struct nn_net n;
    uint64_t t0;
    int rc;

    bench_settle();
    t0 = heddle_clock_ns();
    rc = nn_net_open(&n, b, f, b->cores, true, 1); /* with the context and random inputs */
    if (rc == 0)
        rc = nn_net_run(&n, NULL, &r);
    k->heddle[i] = (double)(heddle_clock_ns() - t0) / 1e6;
    if (rc == 0 && b->ort != NULL) {
        bench_settle();
        t0 = heddle_clock_ns();
        rc = ort_open(b->ort, &n, r, 0, &s);
        if (rc == 0)
            rc = ort_run(s, 0, NULL);
        k->raw[i] = (double)(heddle_clock_ns() - t0) / 1e6;
    }
    k->n = i + 1;
    ort_close(s);
    heddle_nn_result_destroy(r);
    nn_net_close(&n);
    return rc;
}

int bench_nn_load(struct nn_bench *b)
{
    struct nn_mean mean = {.n = 0};
    const struct nn_file *f;
    struct bench_case k;
    size_t i = 0;
    int rc = 0;

    while (rc == 0 && (f = nn_counted(b, &i)) != NULL) {
        nn_case(&k, "load", f->name, "ms to the first answer");
        k.raw_name = b->against;
        k.is_alone = b->ort == NULL;
        for (size_t r = 0; r < b->rounds && rc == 0; r++)
            rc = load_round(b, f, &k, r);
        nn_mean_add(&mean, &k);
        rc = rc == 0 ? nn_report(b, &k) : rc;
    }
    if (rc != 0 || mean.n == 0 || b->ort == NULL)
        return rc;
    nn_case(&k, "load", "mean", "ms to the first answer");
    k.n = (size_t)b->rounds;
    k.rule = BENCH_RATIO_AT_MOST;
    k.must = FIRST_MUST;
    k.aim = FIRST_AIM;
    return nn_mean_report(b, &mean, &k);
}
