/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_NN_GENERATE_H
#define HEDDLE_TOOLS_NN_GENERATE_H

/* `heddle run --generate`: a decoder continues a prompt. */
#include "cmd/cmd.h"
#include "heddle/nn.h"

struct generate {
    uint64_t count;         /* tokens; 0: the option is not there */
    const char *prompt_ids; /* "1,2,3"; NULL: `input` */
    const char *input;      /* a .npy file of whole numbers, or input_ids=FILE */
    bool is_greedy;         /* the default where there is no temperature */
    const char *temperature, *top_p, *stop, *logits; /* NULL: not given */
    uint64_t top_k, seed, repeat;
};

/* The exit status. */
int generate_run(struct cli *c, heddle_nn *net, const struct generate *g);

#endif /* HEDDLE_TOOLS_NN_GENERATE_H */
