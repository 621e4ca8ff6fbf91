/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/nn/latency: one request at a time, on one core and on all; int8 against f32.
 *
 * A round    is the best of some requests of ours, then of the peer's. Threads that still spin
 *            behind a run have ended before the next one begins.
 * Cores      the time that all threads have used of them per request, spinning included, is a fact
 *            beside it.
 */
#include <stdlib.h>
#include <string.h>

#include "bench/nn/nn.h"

#define LATENCY_MUST 1.10
#define LATENCY_AIM  0.90
#define INT8_MUST    2.0
#define INT8_AIM     2.8

static int rounds_of(struct nn_bench *b, struct nn_net *n, struct ort_session *s,
                     struct bench_case *k)
{
    const double total = 1e6 * (double)(b->rounds * b->repeat);
    uint64_t cpu[2] = {0};
    int rc = 0;

    for (k->n = 0; k->n < b->rounds && rc == 0; k->n++) {
        bench_settle();
        cpu[0] -= bench_process_ns();
        rc = nn_net_best(n, b->repeat, &k->heddle[k->n]);
        cpu[0] += bench_process_ns();
        if (rc == 0 && s != NULL) {
            bench_settle();
            cpu[1] -= bench_process_ns();
            rc = ort_best(s, b->repeat, &k->raw[k->n]);
            cpu[1] += bench_process_ns();
        }
        k->heddle[k->n] /= 1e6;
        k->raw[k->n] /= 1e6;
    }
    /* On a machine that others use as well, these tell more. */
    bench_case_fact(k, "cpu_ms", (double)cpu[0] / total);
    if (s != NULL)
        bench_case_fact(k, "against_cpu_ms", (double)cpu[1] / total);
    return rc;
}

static int latency_of(struct nn_bench *b, const struct nn_file *f, unsigned threads,
                      struct nn_mean *mean)
{
    struct heddle_nn_result *r = NULL;
    struct ort_session *s = NULL;
    struct bench_case k;
    struct nn_net n;
    int rc = nn_net_open(&n, b, f, threads, true, 1);

    nn_case(&k, "latency", f->name, "ms");
    if (rc == 0)
        rc = nn_net_run(&n, NULL, &r);
    if (rc == 0 && b->ort != NULL)
        rc = ort_open(b->ort, &n, r, threads, &s);
    if (rc == 0 && s != NULL)
        rc = ort_run(s, 0, NULL);
    if (rc == 0)
        rc = rounds_of(b, &n, s, &k);
    if (rc == 0) {
        k.is_alone = s == NULL;
        k.raw_name = b->against;
        bench_case_fact(&k, "threads", threads);
        if (mean != NULL)
            nn_mean_add(mean, &k);
        rc = nn_report(b, &k);
    }
    ort_close(s);
    heddle_nn_result_destroy(r);
    nn_net_close(&n);
    return rc;
}

/* True for a network whose latency is one of the mean's. */
static bool is_counted(const struct nn_bench *b, const struct nn_file *f)
{
    const struct nn_file *g;
    size_t i = 0;

    while ((g = nn_counted(b, &i)) != NULL)
        if (g == f)
            return true;
    return false;
}

static int latency_at(struct nn_bench *b, unsigned threads)
{
    struct nn_mean mean = {.n = 0};
    struct bench_case k;
    int rc = 0;

    for (size_t i = 0; i < b->nfiles && rc == 0; i++)
        if (!nn_is_special(&b->file[i]) && strncmp(b->file[i].name, "light_", 6) != 0)
            rc = latency_of(b, &b->file[i], threads, is_counted(b, &b->file[i]) ? &mean : NULL);
    if (rc != 0 || mean.n == 0 || b->ort == NULL)
        return rc;
    nn_case(&k, "latency", threads == 1 ? "mean, 1 thread" : "mean, all cores", "ms");
    k.n = (size_t)b->rounds;
    k.rule = BENCH_RATIO_AT_MOST;
    k.must = LATENCY_MUST;
    k.aim = LATENCY_AIM;
    bench_case_fact(&k, "threads", threads);
    return nn_mean_report(b, &mean, &k);
}

int bench_nn_latency(struct nn_bench *b)
{
    int rc = latency_at(b, 1);

    if (rc == 0 && b->cores > 1)
        rc = latency_at(b, b->cores);
    return rc;
}

/* --- int8 ----------------------------------------------------------------------------- */

/* False where the processor multiplies bytes no faster: Linux tells by its flags. */
static bool has_vnni(void)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    char word[64];
    bool is = false;

    while (f != NULL && !is && fscanf(f, "%63s", word) == 1)
        is = strcmp(word, "avx512_vnni") == 0 || strcmp(word, "avx_vnni") == 0;
    if (f != NULL)
        (void)fclose(f);
    return is;
}

int bench_nn_int8(struct nn_bench *b)
{
    const struct nn_file *full = nn_find(b, "resnet50"), *small = nn_find(b, "resnet50_int8");
    struct nn_net x = {.b = b}, y = {.b = b};
    struct bench_case k;
    int rc;

    if (full == NULL || small == NULL)
        return nn_skip(b, "int8", "resnet50", "resnet50.onnx or resnet50_int8.onnx is missing");
    nn_case(&k, "int8", "resnet50", "ms by f32");
    rc = nn_net_open(&x, b, full, 1, true, 1);
    if (rc == 0)
        rc = nn_net_open(&y, b, small, 1, true, 1);
    if (rc == 0)
        rc = nn_net_run(&x, NULL, NULL);
    if (rc == 0)
        rc = nn_net_run(&y, NULL, NULL);
    for (; k.n < b->rounds && rc == 0; k.n++) {
        rc = nn_net_best(&x, b->repeat, &k.heddle[k.n]);
        if (rc == 0)
            rc = nn_net_best(&y, b->repeat, &k.raw[k.n]);
        k.heddle[k.n] /= 1e6;
        k.raw[k.n] /= 1e6;
    }
    if (rc == 0) {
        k.raw_name = "by int8";
        k.rule = has_vnni() ? BENCH_RATIO_AT_LEAST : BENCH_NO_BAR;
        k.must = INT8_MUST;
        k.aim = INT8_AIM;
        rc = nn_report(b, &k);
    }
    nn_net_close(&y);
    nn_net_close(&x);
    return rc;
}
