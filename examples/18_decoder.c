/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A decoder: two sequences, one of which begins later, are continued token by token.
 *
 * Usage: 18_decoder FILE, which is networks/echo.onnx: a small transformer that has found out what
 * repeats in its prompt, and goes on with it.
 */
#include <heddle/decoder.h>
#include <heddle/heddle.h>
#include <stdio.h>

enum { TOKENS = 8 };

static const int64_t prompt[2][5] = {{7, 3, 9, 5, 7}, {2, 4, 2, 4, 2}};
static const int64_t expected[2][TOKENS] = {{3, 9, 5, 7, 3, 9, 5, 7}, {4, 2, 4, 2, 4, 2, 4, 2}};

/* What has come for a sequence. */
struct answer {
    int64_t token[TOKENS];
    int n;
};

/* One token for each sequence; a sequence that has enough ends. */
static heddle_status step(heddle_decoder *d, struct answer *a)
{
    struct heddle_decoder_token out[2];
    unsigned n = 0;
    heddle_status st = heddle_decoder_step(d, out, 2, &n);

    for (unsigned i = 0; i < n && st == HEDDLE_OK; i++) {
        struct answer *to = &a[out[i].sequence];

        st = out[i].st;
        if (st == HEDDLE_OK)
            to->token[to->n++] = out[i].token;
        if (to->n == TOKENS)
            heddle_decoder_end(d, out[i].sequence);
    }
    return st;
}

static heddle_status run(heddle_decoder *d, struct answer *a)
{
    heddle_status st = HEDDLE_OK;
    unsigned sequence;

    for (int i = 0; i < 2 && st == HEDDLE_OK; i++) {
        st = heddle_decoder_begin(d, prompt[i], 5, 5 + TOKENS, NULL, &sequence);
        if (st == HEDDLE_OK) /* the first sequence is ahead of the second one */
            st = step(d, a);
    }
    while (st == HEDDLE_OK && (a[0].n < TOKENS || a[1].n < TOKENS))
        st = step(d, a);
    return st;
}

int main(int argc, char **argv)
{
    char why[200] = "";
    const struct heddle_nn_opts no = {.size = sizeof(no), .why = why, .why_bytes = sizeof(why)};
    const struct heddle_decoder_opts opts = {
        .size = sizeof(opts), .max_sequences = 2, .why = why, .why_bytes = sizeof(why)};
    struct answer a[2] = {{{0}, 0}, {{0}, 0}};
    heddle_decoder *d = NULL;
    heddle_ctx *ctx = NULL;
    heddle_nn *net = NULL;
    heddle_status st = heddle_ctx_create(NULL, &ctx);
    int rc = 0;

    if (st == HEDDLE_OK)
        st = heddle_nn_open(ctx, argc > 1 ? argv[1] : "echo.onnx", &no, &net);
    if (st == HEDDLE_OK)
        st = heddle_decoder_create(net, &opts, &d);
    if (st == HEDDLE_OK)
        st = run(d, a);
    if (st != HEDDLE_OK)
        printf("%s: %s%s\n", heddle_status_text(st), why, heddle_decoder_why(d));
    for (int i = 0; i < 2; i++) {
        printf("sequence %d:", i);
        for (int k = 0; k < a[i].n; k++) {
            printf(" %d", (int)a[i].token[k]);
            rc |= a[i].token[k] != expected[i][k];
        }
        printf("\n");
    }
    heddle_decoder_destroy(d);
    heddle_nn_close(net);
    heddle_ctx_destroy(ctx);
    return st == HEDDLE_OK ? rc : 1;
}
