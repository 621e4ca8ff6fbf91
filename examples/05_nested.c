/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 05_nested: merge sort by tasks that submit tasks. A child may use parts of
 * its parent's operands; the parent ends when its children have.
 */
#include <heddle/heddle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 200000, SMALL = 4096 };

static int compare(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;

    return (x > y) - (x < y);
}

/* Operands: the whole, and memory for a copy of it. */
static heddle_status merge_cpu(struct heddle_exec *x)
{
    int *v = heddle_exec_ptr(x, 0), *copy = heddle_exec_ptr(x, 1);
    size_t n = heddle_exec_count(x, 0), i = 0, j = n / 2;

    memcpy(copy, v, n * sizeof(*v));
    for (size_t k = 0; k < n; k++)
        v[k] = j == n || (i < n / 2 && copy[i] <= copy[j]) ? copy[i++] : copy[j++];
    return HEDDLE_OK;
}

static heddle_status sort_cpu(struct heddle_exec *x);

#define KERNEL(title, n, ...)                                                                      \
    static const heddle_kernel title = {                                                           \
        .size = sizeof(heddle_kernel),                                                             \
        .name = #title,                                                                            \
        .noperands = n,                                                                            \
        .mode = {__VA_ARGS__},                                                                     \
        .variants = {{.device = HEDDLE_DEV_CPU, .run = title##_cpu}}}
KERNEL(merge, 2, HEDDLE_RW, HEDDLE_SCRATCH);
KERNEL(sort, 1, HEDDLE_RW);

static heddle_status sort_half(struct heddle_exec *x, size_t from, size_t n)
{
    heddle_handle *half = NULL;
    heddle_status st = heddle_view_box(heddle_exec_operand(x, 0), &from, &n, NULL, &half);

    if (st == HEDDLE_OK)
        st = heddle_exec_submit(x, &sort, &(struct heddle_call){.operand = {half}});
    heddle_handle_unref(half);
    return st;
}

static heddle_status sort_cpu(struct heddle_exec *x)
{
    heddle_handle *all = heddle_exec_operand(x, 0);
    size_t n = heddle_exec_count(x, 0);
    heddle_status st;

    if (n <= SMALL) {
        qsort(heddle_exec_ptr(x, 0), n, sizeof(int), compare);
        return HEDDLE_OK;
    }
    st = sort_half(x, 0, n / 2);
    if (st == HEDDLE_OK)
        st = sort_half(x, n / 2, n - n / 2);
    if (st == HEDDLE_OK) /* after both: it uses all of it */
        st = heddle_exec_submit(x, &merge, &(struct heddle_call){.operand = {all, all}});
    return st;
}

int main(void)
{
    static int v[N];
    unsigned seed = 1, wrong = 0;
    heddle_ctx *ctx = NULL;
    heddle_handle *h = NULL;
    heddle_status st = heddle_ctx_create(NULL, &ctx);

    for (int i = 0; i < N; i++, seed = seed * 1103515245u + 12345u)
        v[i] = (int)(seed >> 8 & 0xffff);
    if (st == HEDDLE_OK)
        st = heddle_handle_vector(ctx, v, N, HEDDLE_I32, &h);
    if (st == HEDDLE_OK)
        st = heddle_submit(ctx, &sort, &(struct heddle_call){.operand = {h}});
    if (st == HEDDLE_OK)
        st = heddle_wait(ctx);
    heddle_handle_unref(h);
    heddle_ctx_destroy(ctx);
    for (int i = 1; i < N; i++)
        wrong += v[i - 1] > v[i];
    printf("sort: %s, %u out of order\n", heddle_status_text(st), wrong);
    return st == HEDDLE_OK && wrong == 0 ? 0 : 1;
}
