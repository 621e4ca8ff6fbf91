/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_NN_SHOW_H
#define HEDDLE_TOOLS_NN_SHOW_H

/*
 * `heddle nn show`: a network before and after its preparation.
 *
 * show.c   the command: ports, counts, passes, who runs what; as JSON
 * page.c   the page: both graphs as drawings, and what the passes did
 * draw.c   a graph in layers as SVG
 */
#include "cmd/cmd.h"
#include "heddle/nn.h"

/* What the options say; NULL: not there. */
struct nn_show {
    const char *model, *shape, *page;
};

int nn_show(struct cli *c, heddle_ctx *ctx, const struct nn_show *s);

/* A sum over operators of one fate, or over all tasks. */
struct nn_sum {
    unsigned n;
    double flops, bytes;
};
/* by fate, before; [5]: all tasks after */
void nn_sums(const struct heddle_nn_view *v, struct nn_sum sum[6]);

/* "float32 1x3x224x224" */
struct nn_text {
    char text[160];
};
struct nn_text nn_value_text(const struct heddle_nn_value *v);
/* "conv avx512", "reference" */
struct nn_text nn_kernel_text(const struct heddle_nn_node *task);
/* "12.3 MB" */
struct nn_text nn_bytes_text(double bytes);
extern const char *const nn_fate_text[5];

/* False: no memory; what the file says is the caller's. */
bool nn_page_write(const struct heddle_nn_view *v, const char *model, FILE *f);
/* The drawing of the operators of the file, or of the tasks (is_after). The same. */
bool nn_draw(const struct heddle_nn_view *v, bool is_after, FILE *f);

#endif /* HEDDLE_TOOLS_NN_SHOW_H */
