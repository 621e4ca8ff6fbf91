/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program sees of a new access mode, HEDDLE_EXERCISE, a copy of HEDDLE_COMMUTE: see
 * extend.py. Tasks in that mode take turns with each other and with commutative ones, the
 * others are ordered with them, and a graph and a nested task know the mode as well. argv[1]: a
 * file for the log.
 */
#include "heddle/heddle.h"
#include "test.h"

enum { TASKS = 3000 };

static heddle_status add(struct heddle_exec *x)
{
    volatile long *v = heddle_exec_ptr(x, 0);

    *v = *v + 1;
    return HEDDLE_OK;
}

static heddle_status look(struct heddle_exec *x)
{
    const long *v = heddle_exec_ptr(x, 0);

    CHECK_EQ(*v, *(const long *)heddle_exec_arg(x));
    return HEDDLE_OK;
}

#define KERNEL(title, how, fn)                                                                     \
    {                                                                                              \
        .size = sizeof(heddle_kernel), .name = title, .noperands = 1, .mode = {how}, .variants = { \
            {.device = HEDDLE_DEV_CPU, .run = fn}                                                  \
        }                                                                                          \
    }

static const heddle_kernel add_new = KERNEL("add", HEDDLE_EXERCISE, add);
static const heddle_kernel add_old = KERNEL("add_old", HEDDLE_COMMUTE, add);
static const heddle_kernel look_at = KERNEL("look", HEDDLE_R, look);

static heddle_status nest(struct heddle_exec *x)
{
    const struct heddle_call c = {.operand = {heddle_exec_operand(x, 0)}};

    for (unsigned i = 0; i < 10; i++)
        CHECK_OK(heddle_exec_submit(x, &add_new, &c));
    return HEDDLE_OK;
}

static const heddle_kernel nest_add = KERNEL("nest", HEDDLE_EXERCISE, nest);

static void record(heddle_ctx *ctx, const struct heddle_call *c)
{
    heddle_graph *g = NULL;

    CHECK_OK(heddle_graph_begin(ctx, &g));
    for (unsigned i = 0; i < 10; i++)
        CHECK_OK(heddle_graph_submit(g, &add_new, c));
    CHECK_OK(heddle_graph_end(g));
    CHECK_OK(heddle_graph_launch(g, NULL));
    heddle_graph_unref(g);
}

int main(int argc, char **argv)
{
    const struct heddle_ctx_opts o = {
        .size = sizeof(o), .nworkers = 4, .log_level = 1, .log_path = argc > 1 ? argv[1] : NULL};
    static long value;
    const long want = TASKS + 20;
    struct heddle_call c = {.arg = &want, .arg_bytes = sizeof(want)};
    heddle_ctx *ctx = NULL;

    CHECK_OK(heddle_ctx_create(&o, &ctx));
    CHECK_OK(heddle_handle_vector(ctx, &value, 1, HEDDLE_I64, &c.operand[0]));
    for (unsigned i = 0; i < TASKS; i++)
        CHECK_OK(heddle_submit(ctx, i % 2 == 0 ? &add_new : &add_old, &c));
    CHECK_OK(heddle_submit(ctx, &nest_add, &c));
    record(ctx, &c);
    CHECK_OK(heddle_submit(ctx, &look_at, &c));
    CHECK_OK(heddle_wait(ctx));
    heddle_handle_unref(c.operand[0]);
    CHECK_OK(heddle_ctx_destroy(ctx));
    return 0;
}
