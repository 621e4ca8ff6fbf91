/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/nn/runtime: what the runtime adds to its kernels: a request of ResNet-50 on one core over
 * the times of its tasks, which the log of the same requests has.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/nn/nn.h"
#include "heddle/trace.h"

#define RUNTIME_MUST 1.05
#define RUNTIME_AIM  1.02

/* The time inside of the last `ntasks` tasks of a log, which ran one after the other. */
static int kernels_ns(struct nn_bench *b, heddle_ctx *ctx, size_t ntasks, double *out)
{
    char path[] = "/tmp/heddle-bench-XXXXXX";
    const int fd = mkstemp(path);
    const struct heddle_log_view *v;
    heddle_log *log = NULL;
    heddle_status st;
    int rc = 0;

    if (fd < 0)
        return cli_fail(b->c, "no temporary file for the log");
    (void)close(fd);
    st = heddle_ctx_dump_log(ctx, path);
    if (st == HEDDLE_OK)
        st = heddle_log_open(path, NULL, &log);
    (void)unlink(path);
    if (st != HEDDLE_OK)
        return cli_fail(b->c, "the log cannot be read: %s", heddle_status_text(st));
    v = heddle_log_get_view(log);
    *out = 0;
    if (v->ntasks < ntasks)
        rc = cli_fail(b->c, "the log has %zu of %zu tasks", v->ntasks, ntasks);
    for (size_t i = 0; i < ntasks && rc == 0; i++)
        *out += (double)(v->tasks[v->ntasks - 1 - i].end_ns - v->tasks[v->ntasks - 1 - i].start_ns);
    heddle_log_close(log);
    return rc;
}

static int runtime_rounds(struct nn_bench *b, struct nn_net *n, struct bench_case *k)
{
    char why[NN_WHY] = "";
    const struct heddle_nn_opts o = {.size = sizeof(o), .why = why, .why_bytes = sizeof(why)};
    struct heddle_nn_plan_info plan = {.size = sizeof(plan)};
    int rc = nn_net_run(n, NULL, NULL);

    if (rc == 0 && heddle_nn_get_plan(n->net, n->in, n->nin, &o, &plan) != HEDDLE_OK)
        rc = cli_fail(b->c, "%s", why);
    for (k->n = 0; k->n < b->rounds && rc == 0; k->n++) {
        double all = 0, one = 0;

        for (uint64_t i = 0; i < b->repeat && rc == 0; i++) {
            rc = nn_net_run(n, &one, NULL);
            all += one;
        }
        if (rc == 0)
            rc = kernels_ns(b, n->ctx, plan.ntasks * (size_t)b->repeat, &one);
        k->heddle[k->n] = all / 1e6 / (double)b->repeat;
        k->raw[k->n] = one / 1e6 / (double)b->repeat;
    }
    bench_case_fact(k, "tasks", plan.ntasks);
    return rc;
}

int bench_nn_runtime(struct nn_bench *b)
{
    const struct nn_file *f = nn_find(b, "resnet50");
    struct bench_case k;
    struct nn_net n;
    int rc;

    if (f == NULL)
        return nn_skip(b, "runtime", "resnet50", "resnet50.onnx is missing");
    nn_case(&k, "runtime", f->name, "ms on one core");
    rc = nn_net_open(&n, b, f, 1, true, 1);
    if (rc == 0)
        rc = runtime_rounds(b, &n, &k);
    if (rc == 0) {
        k.raw_name = "its kernels";
        k.rule = BENCH_RATIO_AT_MOST;
        k.must = RUNTIME_MUST;
        k.aim = RUNTIME_AIM;
        rc = nn_report(b, &k);
    }
    nn_net_close(&n);
    return rc;
}
