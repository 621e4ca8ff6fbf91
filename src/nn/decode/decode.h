/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_NN_DECODE_DECODE_H
#define HEDDLE_NN_DECODE_DECODE_H

/*
 * Private to nn: what a decoder object is made of.
 *
 * ports.c    which inputs and outputs are what
 * pass.c     one run of the network: shapes, inputs, where the scores are
 * cache.c    keys and values of sequences in slots of one batch, in place
 * choose.c   from scores to a token
 * decoder.c  heddle/decoder.h: sequences and steps
 */
#include "heddle/decoder.h"
#include "nn/run/run.h"

#define DECODE_NO_PORT UINT32_MAX

/* The keys, or the values, of a layer: batch x heads x tokens x dim. */
struct decode_pair {
    uint32_t in, out; /* input `past` and output `present` of the graph, by number */
    int64_t heads, dim;
    unsigned type;
};

/* Which ports of a graph are what; DECODE_NO_PORT: it has none. */
struct decode_ports {
    const struct nn_graph *g;
    uint32_t ids, mask, positions; /* inputs */
    uint32_t logits;               /* output */
    struct decode_pair *pair;
    struct nn_keep *keep; /* the same pairs */
    uint32_t npairs;
    int64_t batch;        /* -1: any */
    int64_t length;       /* tokens of input_ids where the model has a fixed number; else -1 */
    int64_t vocabulary;   /* -1: the model does not say */
    uint64_t token_bytes; /* of all pairs, for a token of a sequence */
};

/* HEDDLE_EINVAL, with a sentence: this is no decoder. Memory: mem. */
heddle_status heddle_nn_decode_ports(const struct nn_graph *g, struct heddle_scratch *mem,
                                     const struct nn_opts *o, struct decode_ports *out);

/* --- pass.c ------------------------------------------------------------------- */

/* One run: `batch` rows of `len` tokens behind `past` ones. */
struct decode_pass {
    size_t batch, past, len;
    struct nn_plan *plan;
    struct nn_instance *instance;
};

/* The values of the inputs, without data: graph->ninputs of them. */
void heddle_nn_decode_inputs(const struct decode_ports *p, const struct decode_pass *x,
                             struct nn_value *in);
/* Takes a plan and an instance of the network. HEDDLE_ENOSYS: shapes depend on data; HEDDLE_EINVAL:
 * they do not fit, or keys and values come out in other ones. */
heddle_status heddle_nn_decode_open(heddle_nn *net, const struct decode_ports *p,
                                    struct decode_pass *x, const struct nn_opts *o);
void heddle_nn_decode_close(heddle_nn *net, struct decode_pass *x);
/* The inputs of row `row`: n tokens of which the first one is at `at`. What is behind them is
 * hidden by the mask, and so are the columns that the row does not have. */
void heddle_nn_decode_fill(const struct decode_ports *p, const struct decode_pass *x, size_t row,
                           const int64_t *token, size_t n, size_t at);
/* Runs it and waits. */
heddle_status heddle_nn_decode_run(heddle_nn *net, const struct decode_pass *x,
                                   const struct nn_opts *o);
/* Copies the scores behind token i of a row into to[0 .. n - 1], n of decode_width(). */
size_t heddle_nn_decode_width(const struct decode_ports *p, const struct decode_pass *x);
void heddle_nn_decode_scores(const struct decode_ports *p, const struct decode_pass *x, size_t row,
                             size_t i, float *to);

/* --- cache.c ------------------------------------------------------------------ */

enum { DECODE_PLANS = 8, DECODE_BUCKET = 64 };

/*
 * Sequences in slots. Slot s of the batch has the keys and values of its sequence in rows
 * 0 .. tokens - 1 of every pair. `pass` is the run of one token for each slot; its plan belongs to
 * the cache, and plans of other sizes that were used before.
 */
struct decode_cache {
    heddle_nn *net;
    const struct decode_ports *ports;
    struct decode_pass pass;           /* instance NULL: none yet */
    size_t tokens;                     /* rows of a slot */
    struct nn_plan *old[DECODE_PLANS]; /* other plans; the last used one first */
};

void heddle_nn_cache_drop(struct decode_cache *c);
/* The size that has room for n: 64 times 1, 1.5, 2, 3, 4, 6, ..., or, of slots, a power of two. */
size_t heddle_nn_cache_bucket(size_t n);
size_t heddle_nn_cache_slots(size_t n);
/*
 * Room for `batch` slots of `tokens` rows. from[s]: the slot that is slot s from now on, SIZE_MAX:
 * a new one; rows[s] rows of it are copied.
 *
 * HEDDLE_ENOSYS  without a sentence: the network uses its past in other ways
 * others         the cache is as it was
 */
heddle_status heddle_nn_cache_resize(struct decode_cache *c, size_t batch, size_t tokens,
                                     const size_t *from, const size_t *rows,
                                     const struct nn_opts *o);
/* The first n rows of slot `slot` from row 0 of a pass without past; the others become 0. */
void heddle_nn_cache_load(struct decode_cache *c, size_t slot, const struct decode_pass *from,
                          size_t n);
/* The token of a slot for the next run, at row `at`; NULL: the slot has none. To be called for all
 * slots before each run: inputs do not outlive one. */
void heddle_nn_cache_fill(struct decode_cache *c, size_t slot, const int64_t *token, size_t at);

/* --- choose.c ----------------------------------------------------------------- */

/* `mem` has room for n numbers of 4 bytes. -1: the scores are not numbers. */
int64_t heddle_nn_choose(const struct heddle_decoder_choice *c, const float *score, size_t n,
                         uint64_t count, uint32_t *mem);

#endif /* HEDDLE_NN_DECODE_DECODE_H */
