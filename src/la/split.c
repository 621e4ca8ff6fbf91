/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * split: a wide task on cores as several narrow ones.
 *
 * Purpose    block columns as wide as a GPU likes them are long tasks for one core.
 *            A kernel with `expand` is asked when a core begins its task; it gives parts of the
 *            operands to children, which do
 *            the same on narrower blocks, and the task has ended when they have.
 * Width      two parts for each core, and none so narrow that BLAS is slow.
 */
#include "la/la.h"

enum {
    SPLIT_FROM = 512,     /* columns, or rows: less stays whole */
    SPLIT_BLOCK = 64,     /* parts are multiples of it */
    SPLIT_FIRST = 1 << 28 /* priority: their parent has begun */
};

size_t heddle_la_split(const struct la_head *h, size_t n)
{
    const size_t parts = 2 * (size_t)h->la->ncores;
    const size_t w = parts == 0 ? n : (n + parts - 1) / parts;

    if (n < SPLIT_FROM || h->la->ncores < 2)
        return la_max(n, 1);
    return (w + SPLIT_BLOCK - 1) / SPLIT_BLOCK * SPLIT_BLOCK;
}

int heddle_la_wants_split(const struct la_head *h, size_t n)
{
    return heddle_la_split(h, n) < n ? HEDDLE_EXPAND_KNOWN : 0;
}

heddle_status heddle_la_child(struct heddle_exec *x, const heddle_kernel *kernel,
                              const struct la_cut *cut, unsigned n, const void *arg,
                              size_t arg_bytes)
{
    heddle_handle *op[LA_CUTS];
    enum heddle_mode mode[LA_CUTS];
    heddle_status st = HEDDLE_OK;
    unsigned made = 0;

    while (made < n && st == HEDDLE_OK) {
        const struct la_cut *c = &cut[made];
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

heddle_status heddle_la_child_columns(struct heddle_exec *x, const heddle_kernel *kernel,
                                      unsigned op, unsigned nops, size_t col, size_t width,
                                      const void *arg, size_t arg_bytes)
{
    const struct heddle_layout *l = heddle_exec_layout(x, op);
    struct la_cut cut[LA_CUTS];

    if (nops > LA_CUTS)
        return HEDDLE_EINVAL;
    for (unsigned i = 0; i < nops; i++)
        cut[i] = (struct la_cut){.op = i, .mode = HEDDLE_R};
    cut[op] = (struct la_cut){.op = op,
                              .mode = HEDDLE_RW,
                              .col = col,
                              .m = l->extent[0],
                              .n = la_min(width, l->extent[1] - col)};
    return heddle_la_child(x, kernel, cut, nops, arg, arg_bytes);
}
