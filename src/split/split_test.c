/* SPDX-License-Identifier: BSD-3-Clause */
/* Widths of parts, and a task whose columns children share. */
#include "split/split.h"
#include "tests/test.h"

TEST(widths)
{
    CHECK_EQ(heddle_split_width(8, 0), 1);
    CHECK_EQ(heddle_split_width(8, 100), 100);   /* too narrow */
    CHECK_EQ(heddle_split_width(1, 5000), 5000); /* nobody to share with */
    CHECK_EQ(heddle_split_width(0, 5000), 5000);
    for (unsigned ncores = 2; ncores < 70; ncores++)
        for (size_t n = 512; n < 9000; n += 97) {
            const size_t w = heddle_split_width(ncores, n);

            CHECK(w % 64 == 0 && w > 0);
            CHECK((n + w - 1) / w <= 2 * (size_t)ncores);
        }
}

enum { ROWS = 3, COLS = 1000, WIDTH = 192 };

/* Element += the first number of the other operand. */
static heddle_status run_add(struct heddle_exec *x)
{
    const struct heddle_layout *l = heddle_exec_layout(x, 0);
    double *p = heddle_exec_ptr(x, 0);
    const double *by = heddle_exec_ptr(x, 1);

    for (size_t j = 0; j < l->extent[1]; j++)
        for (size_t i = 0; i < l->extent[0]; i++)
            p[i + j * l->stride[1]] += by[0];
    return HEDDLE_OK;
}

static const heddle_kernel kernel_part = {.size = sizeof(heddle_kernel),
                                          .name = "part",
                                          .noperands = 2,
                                          .mode = {HEDDLE_RW, HEDDLE_R},
                                          .variants = {{.device = HEDDLE_DEV_CPU, .run = run_add}}};

static heddle_status expand_add(struct heddle_exec *x)
{
    for (size_t j = 0; j < COLS; j += WIDTH) {
        const heddle_status st = heddle_split_columns(x, &kernel_part, 0, 2, j, WIDTH, NULL, 0);

        if (st != HEDDLE_OK)
            return st;
    }
    return heddle_split_columns(x, &kernel_part, 0, SPLIT_CUTS + 1, 0, WIDTH, NULL, 0) ==
                   HEDDLE_EINVAL
               ? HEDDLE_OK
               : HEDDLE_ETASK;
}

static enum heddle_expand want_expand(struct heddle_exec *x)
{
    (void)x;
    return HEDDLE_EXPAND_KNOWN;
}

static const heddle_kernel kernel_whole = {.size = sizeof(heddle_kernel),
                                           .name = "whole",
                                           .noperands = 2,
                                           .mode = {HEDDLE_RW, HEDDLE_R},
                                           .variants = {{.device = HEDDLE_DEV_CPU, .run = run_add}},
                                           .expand = expand_add,
                                           .want_expand = want_expand};

TEST(columns)
{
    static double a[ROWS * COLS];
    double by = 2;
    const struct heddle_ctx_opts o = {
        .size = sizeof(o), .nworkers = 3, .devices = "none", .model_dir = ""};
    struct heddle_ctx_stats s = {.size = sizeof(s)};
    heddle_handle *op[2];
    heddle_ctx *ctx;

    for (size_t i = 0; i < ROWS * COLS; i++)
        a[i] = (double)i;
    CHECK_OK(heddle_ctx_create(&o, &ctx));
    CHECK_OK(heddle_handle_matrix(ctx, a, ROWS, COLS, ROWS, HEDDLE_F64, &op[0]));
    CHECK_OK(heddle_handle_vector(ctx, &by, 1, HEDDLE_F64, &op[1]));
    for (unsigned i = 0; i < 3; i++)
        CHECK_OK(heddle_submit(ctx, &kernel_whole,
                               &(struct heddle_call){.noperands = 2, .operands = op}));
    CHECK_OK(heddle_wait(ctx));
    CHECK_OK(heddle_ctx_get_stats(ctx, &s));
    CHECK(s.executed >= 3 * ((COLS + WIDTH - 1) / WIDTH)); /* the children */
    for (size_t i = 0; i < ROWS * COLS; i++)
        CHECK(a[i] == (double)i + 6);
    heddle_handle_unref(op[0]);
    heddle_handle_unref(op[1]);
    CHECK_OK(heddle_ctx_destroy(ctx));
}

TEST_MAIN(widths, columns)
