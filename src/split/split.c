/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * split: a wide task on cores as several narrow ones.
 *
 * Width      two parts for each core, and none so narrow that BLAS is slow.
 * Order      children come before other tasks: their parent has begun, and others wait for it.
 */
#include "split/split.h"

enum {
    SPLIT_FROM = 512,     /* columns, or rows: less stays whole */
    SPLIT_BLOCK = 64,     /* parts are multiples of it */
    SPLIT_FIRST = 1 << 28 /* priority: their parent has begun */
};

size_t heddle_split_width(unsigned ncores, size_t n)
{
    const size_t parts = 2 * (size_t)ncores;
    const size_t w = parts == 0 ? n : (n + parts - 1) / parts;

    if (n < SPLIT_FROM || ncores < 2)
        return n > 0 ? n : 1;
    return (w + SPLIT_BLOCK - 1) / SPLIT_BLOCK * SPLIT_BLOCK;
}

heddle_status heddle_split_child(struct heddle_exec *x, const heddle_kernel *kernel,
                                 const struct split_cut *cut, unsigned n, const void *arg,
                                 size_t arg_bytes)
{
    heddle_handle *op[SPLIT_CUTS];
    enum heddle_mode mode[SPLIT_CUTS];
    heddle_status st = HEDDLE_OK;
    unsigned made = 0;

    while (made < n && st == HEDDLE_OK) {
        const struct split_cut *c = &cut[made];
        const size_t offset[2] = {c->row, c->col}, extent[2] = {c->m, c->n};
        heddle_handle *h = heddle_exec_operand(x, c->op);

        mode[made] = c->mode;
        if (c->n == 0)
            op[made] = heddle_handle_ref(h);
        else
            st = heddle_view_box(h, offset, extent, NULL, &op[made]);
        made += st == HEDDLE_OK;
    }
    if (st == HEDDLE_OK)
        st = heddle_exec_submit(x, kernel,
                                &(struct heddle_call){.arg = arg,
                                                      .arg_bytes = arg_bytes,
                                                      .priority = SPLIT_FIRST,
                                                      .noperands = n,
                                                      .operands = op,
                                                      .modes = mode});
    while (made > 0)
        heddle_handle_unref(op[--made]);
    return st;
}

heddle_status heddle_split_columns(struct heddle_exec *x, const heddle_kernel *kernel, unsigned op,
                                   unsigned nops, size_t col, size_t width, const void *arg,
                                   size_t arg_bytes)
{
    const struct heddle_layout *l = heddle_exec_layout(x, op);
    const size_t left = l->extent[1] - col;
    struct split_cut cut[SPLIT_CUTS];

    if (nops > SPLIT_CUTS)
        return HEDDLE_EINVAL;
    for (unsigned i = 0; i < nops; i++)
        cut[i] = (struct split_cut){.op = i, .mode = HEDDLE_R};
    cut[op] = (struct split_cut){.op = op,
                                 .mode = HEDDLE_RW,
                                 .col = col,
                                 .m = l->extent[0],
                                 .n = width < left ? width : left};
    return heddle_split_child(x, kernel, cut, nops, arg, arg_bytes);
}
