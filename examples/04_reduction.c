/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 04_reduction: a dot product in blocks. HEDDLE_REDUCE gives each task a
 * private copy of the sum to add to, so the tasks do not wait for each other;
 * the copies are combined before the sum is read.
 */
#include <heddle/heddle.h>
#include <stdio.h>

enum { N = 100000, BLOCK = 1000 };

static heddle_status dot_cpu(struct heddle_exec *x)
{
    const int64_t *u = heddle_exec_ptr(x, 0), *v = heddle_exec_ptr(x, 1);
    int64_t *sum = heddle_exec_ptr(x, 2);

    for (size_t i = 0, n = heddle_exec_count(x, 0); i < n; i++)
        *sum += u[i] * v[i];
    return HEDDLE_OK;
}

static const heddle_kernel dot = {
    .size = sizeof(heddle_kernel),
    .name = "dot",
    .noperands = 3,
    .mode = {HEDDLE_R, HEDDLE_R, HEDDLE_REDUCE},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = dot_cpu}},
};

static heddle_status submit_all(heddle_ctx *ctx, int64_t *u, int64_t *v, heddle_handle *sum)
{
    heddle_status st = HEDDLE_OK;

    for (size_t i = 0; i < N && st == HEDDLE_OK; i += BLOCK) {
        heddle_handle *hu = NULL, *hv = NULL;

        st = heddle_handle_vector(ctx, u + i, BLOCK, HEDDLE_I64, &hu);
        if (st == HEDDLE_OK)
            st = heddle_handle_vector(ctx, v + i, BLOCK, HEDDLE_I64, &hv);
        if (st == HEDDLE_OK)
            st = heddle_submit(ctx, &dot, &(struct heddle_call){.operand = {hu, hv, sum}});
        heddle_handle_unref(hu);
        heddle_handle_unref(hv);
    }
    return st;
}

int main(void)
{
    static int64_t u[N], v[N];
    int64_t sum = 1000, expected = 1000, found = 0;
    void *result = NULL;
    heddle_ctx *ctx = NULL;
    heddle_handle *h = NULL;
    heddle_status st = heddle_ctx_create(NULL, &ctx);

    for (int i = 0; i < N; i++) {
        u[i] = i % 17;
        v[i] = i % 5 - 2;
        expected += u[i] * v[i];
    }
    if (st == HEDDLE_OK)
        st = heddle_handle_vector(ctx, &sum, 1, HEDDLE_I64, &h);
    if (st == HEDDLE_OK)
        st = heddle_handle_set_sum(h); /* init: 0, combine: + */
    if (st == HEDDLE_OK)
        st = submit_all(ctx, u, v, h);
    /* Waits for what the sum needs, and for nothing else. */
    if (st == HEDDLE_OK)
        st = heddle_handle_acquire(h, HEDDLE_R, &result);
    if (st == HEDDLE_OK) {
        found = *(int64_t *)result;
        st = heddle_handle_release(h);
    }
    heddle_handle_unref(h);
    heddle_ctx_destroy(ctx);
    printf("dot: %s, %lld, expected %lld\n", heddle_status_text(st), (long long)found,
           (long long)expected);
    return st == HEDDLE_OK && found == expected ? 0 : 1;
}
