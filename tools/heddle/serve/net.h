/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_SERVE_NET_H
#define HEDDLE_TOOLS_SERVE_NET_H

/* A network as a model that is served: jobs of a batch become one request of the network. */
#include "heddle/ctx.h"
#include "serve/model.h"

/*
 * Opens the file and makes a model of it, with ports from the network. Batches are formed where
 * the first dimension of all inputs and outputs is one and the same symbol, else max_batch is 1.
 *
 * HEDDLE_ENOSYS  a port has a type or a rank that the protocol lacks; others as heddle_nn_open()
 */
HEDDLE_MUST_USE heddle_status net_open(heddle_ctx *ctx, const char *path,
                                       const struct serve_model_opts *o,
                                       struct serve_graveyard *graveyard, struct serve_model **out,
                                       char *why, size_t why_bytes);

#endif /* HEDDLE_TOOLS_SERVE_NET_H */
