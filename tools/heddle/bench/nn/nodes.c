/* SPDX-License-Identifier: BSD-3-Clause */
/* bench/nn/nodes: the node tests of ONNX that pass, as tasks: Debian's, and newer ones. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "bench/nn/nn.h"

#define NODES_DEBIAN "/usr/share/libonnx-testdata/data/node"

static unsigned count(heddle_ctx *ctx, const char *dir, unsigned total[3])
{
    char path[NN_PATH], op[64], why[NN_WHY];
    DIR *d = opendir(dir);
    const struct dirent *e;

    while (d != NULL && (e = readdir(d)) != NULL) {
        enum heddle_nn_verdict v;

        if (e->d_name[0] == '.' ||
            (size_t)snprintf(path, sizeof(path), "%s/%s", dir, e->d_name) >= sizeof(path))
            continue;
        v = heddle_nn_check(ctx, path, op, why, sizeof(why));
        if (v != HEDDLE_NN_NO_CASE)
            total[v]++;
    }
    if (d != NULL)
        (void)closedir(d);
    return total[0] + total[1] + total[2];
}

static int nodes_of(struct nn_bench *b, heddle_ctx *ctx, const char *name, const char *dir,
                    const double bar[2])
{
    unsigned total[3] = {0};
    struct bench_case k;

    if (dir == NULL || count(ctx, dir, total) == 0)
        return nn_skip(b, "nodes", name, dir == NULL ? "no --new-cases" : "there are no cases");
    nn_case(&k, "nodes", name, "pass");
    k.n = 1;
    k.heddle[0] = total[HEDDLE_NN_PASS];
    k.is_alone = true;
    k.rule = BENCH_VALUE_AT_LEAST;
    k.must = bar[0];
    k.aim = bar[1];
    bench_case_fact(&k, "fail", total[HEDDLE_NN_FAIL]);
    bench_case_fact(&k, "unsupported", total[HEDDLE_NN_UNSUPPORTED]);
    return nn_report(b, &k);
}

int bench_nn_nodes(struct nn_bench *b)
{
    char why[NN_WHY] = "";
    const struct heddle_ctx_opts co = {.size = sizeof(co),
                                       .nworkers = b->cores,
                                       .model_dir = "",
                                       .devices = "none",
                                       .ignore_env = true,
                                       .why = why,
                                       .why_bytes = sizeof(why)};
    heddle_ctx *ctx = NULL;
    int rc;

    if (heddle_ctx_create(&co, &ctx) != HEDDLE_OK)
        return cli_fail(b->c, "%s", why);
    rc = nodes_of(b, ctx, "onnx 1.12", b->cases != NULL ? b->cases : NODES_DEBIAN,
                  (const double[]){650, 880});
    if (rc == 0)
        rc = nodes_of(b, ctx, "newest onnx", b->new_cases, (const double[]){1000, 1500});
    (void)heddle_ctx_destroy(ctx);
    return rc;
}
