/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 13_slow: as slow as you ask for; docs/guide/11-performance.md finds out why.
 * The words small, serial and late each make a mistake:
 *   small   a task per number instead of one per block of 64
 *   serial  the tasks that add to one sum take turns
 *   late    the long chain of tasks is submitted last, without priority
 */
#include <heddle/heddle.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N = 96 * 64, BLOCK = 64, STEPS = 32, TURNS = 48 };

/* Moves each number to where cos(x) = x; adds them up, if there is a sum. */
static heddle_status settle_cpu(struct heddle_exec *x)
{
    double *v = heddle_exec_ptr(x, 0), *sum = heddle_exec_ptr(x, 1);

    for (size_t i = 0, n = heddle_exec_count(x, 0); i < n; i++) {
        for (int turn = 0; turn < TURNS; turn++)
            v[i] = cos(v[i]);
        if (sum != NULL)
            *sum += v[i];
    }
    return HEDDLE_OK;
}

/* A cosine takes a core as long as some 450 flops: this one waits for the last. */
static struct heddle_cost settle_cost(struct heddle_exec *x)
{
    return (struct heddle_cost){.flops = 450.0 * TURNS * (double)heddle_exec_count(x, 0)};
}

static const heddle_kernel relax = {
    .size = sizeof(heddle_kernel),
    .name = "relax",
    .noperands = 2,
    .mode = {HEDDLE_RW, HEDDLE_REDUCE},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = settle_cpu},
                 {.device = HEDDLE_DEV_CUDA}}, /* simulated GPUs only */
    .cost = settle_cost,
};
static const heddle_kernel march = {
    .size = sizeof(heddle_kernel),
    .name = "march",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = settle_cpu}},
    .cost = settle_cost,
};

static bool said(int argc, char **argv, const char *word)
{
    while (argc > 1 && strcmp(argv[argc - 1], word) != 0)
        argc--;
    return argc > 1;
}

int main(int argc, char **argv)
{
    static double field[N], state[BLOCK], sum[1];
    size_t block = said(argc, argv, "small") ? 1 : BLOCK, n = N / block + STEPS;
    size_t first = said(argc, argv, "late") ? n - STEPS : 0; /* of the chain */
    enum heddle_mode modes[] = {HEDDLE_RW, said(argc, argv, "serial") ? HEDDLE_RW : HEDDLE_REDUCE};
    heddle_handle *chain = NULL, *h[2] = {NULL, NULL};
    heddle_ctx *ctx = NULL;
    heddle_status st = heddle_ctx_create(NULL, &ctx);

    st = st ? st : heddle_handle_vector(ctx, state, BLOCK, HEDDLE_F64, &chain);
    st = st ? st : heddle_handle_vector(ctx, sum, 1, HEDDLE_F64, &h[1]);
    st = st ? st : heddle_handle_set_name(h[1], "sum");
    st = st ? st : heddle_handle_set_sum(h[1]);
    for (size_t i = 0; i < n && st == HEDDLE_OK; i++) {
        struct heddle_call call = {.noperands = 2, .operands = h, .modes = modes};

        if (i >= first && i < first + STEPS) {
            st = heddle_submit(ctx, &march,
                               &(struct heddle_call){.operand = {chain}, .priority = !first});
            continue;
        }
        h[0] = NULL;
        st = heddle_handle_vector(ctx, field + (first ? i : i - STEPS) * block, block, HEDDLE_F64,
                                  &h[0]);
        st = st ? st : heddle_submit(ctx, &relax, &call);
        heddle_handle_unref(h[0]); /* the task keeps it */
    }
    st = st ? st : heddle_wait(ctx);
    heddle_handle_unref(chain);
    heddle_handle_unref(h[1]);
    heddle_ctx_destroy(ctx);
    printf("slow: %s, mean %.6f\n", heddle_status_text(st), sum[0] / N);
    return st == HEDDLE_OK && fabs(sum[0] / N - 0.739085) < 1e-6 ? 0 : 1;
}
