/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A trained network: opened from an ONNX file, asked twice at the same time.
 *
 * Usage: 17_network FILE, which is networks/flowers.onnx: four numbers of a flower in, the
 * probabilities of three kinds out.
 */
#include <heddle/heddle.h>
#include <heddle/nn.h>
#include <math.h>
#include <stdio.h>

/* What a request has found. */
struct answer {
    heddle_status st;
    float kind[3];
};

/* Called once when a request has ended, by a thread of the context. */
static void ended(void *user, heddle_status st, struct heddle_nn_result *result, const char *why)
{
    struct answer *a = user;

    a->st = st;
    if (st == HEDDLE_OK && result->output[0].bytes == sizeof(a->kind)) {
        for (int i = 0; i < 3; i++)
            a->kind[i] = ((const float *)result->output[0].data)[i];
    } else if (st != HEDDLE_OK) {
        printf("%s\n", why);
    }
    heddle_nn_result_destroy(result);
}

static heddle_status ask(heddle_nn *net, float *flower, struct answer *a)
{
    const struct heddle_nn_tensor in = {.type = HEDDLE_NN_F32,
                                        .ndim = 2,
                                        .dim = {1, 4},
                                        .data = flower,
                                        .bytes = 4 * sizeof(*flower)};

    return heddle_nn_start(net, &in, 1, ended, a, NULL);
}

int main(int argc, char **argv)
{
    float flower[2][4] = {{5.1f, 3.5f, 1.4f, 0.2f}, {6.7f, 3.1f, 4.7f, 1.5f}};
    struct answer a[2] = {{HEDDLE_ESTATE, {0}}, {HEDDLE_ESTATE, {0}}};
    char why[200] = "";
    const struct heddle_nn_opts opts = {.size = sizeof(opts), .why = why, .why_bytes = sizeof(why)};
    heddle_ctx *ctx = NULL;
    heddle_nn *net = NULL;
    heddle_status st = heddle_ctx_create(NULL, &ctx);
    int rc = 0;

    if (st == HEDDLE_OK)
        st = heddle_nn_open(ctx, argc > 1 ? argv[1] : "flowers.onnx", &opts, &net);
    for (int i = 0; i < 2 && st == HEDDLE_OK; i++)
        st = ask(net, flower[i], &a[i]); /* both are in flight */
    if (st == HEDDLE_OK)
        st = heddle_wait(ctx);
    if (st != HEDDLE_OK)
        printf("%s: %s\n", heddle_status_text(st), why);
    for (int i = 0; i < 2; i++) {
        const float *k = a[i].kind;

        printf("flower %d: %.3f %.3f %.3f\n", i, (double)k[0], (double)k[1], (double)k[2]);
        rc |= a[i].st != HEDDLE_OK || fabsf(k[0] + k[1] + k[2] - 1) > 1e-6f;
    }
    heddle_nn_close(net);
    heddle_ctx_destroy(ctx);
    return st == HEDDLE_OK ? rc : 1;
}
