/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLAN_BLOCKS_BLOCKS_H
#define HEDDLE_PLAN_BLOCKS_BLOCKS_H

/*
 * Private to the solver `blocks`: a graph as blocks within each other.
 *
 * Cut i takes out the operations first[i] .. end[i] - 1; cut 0 all of them. Cuts
 * are nested, and what lies between two of them is a block: block i has a forward
 * part, first[i] .. first[i + 1] - 1, and a backward part, end[i + 1] .. end[i] - 1.
 * The last cut, number n, is empty. No flag of the graph is needed for it.
 *
 *   X[i]   made before cut i, read within it: what its inside needs
 *   Y[i]   made within cut i, read behind it or a result: what it leaves
 *
 * So the inside of a cut can be computed from X[i] at any time, and the blocks are
 * the stages of a chain with activations X and gradients Y.
 * docs/design/planner-blocks.md has the model.
 */
#include "plan/seq/seq.h"

/* --- cuts (find.c) ------------------------------------------------------ */

struct heddle_plan_cuts {
    uint32_t n; /* blocks; at least 1 */
    uint32_t turn;
    uint32_t *first, *end; /* [n + 1] */
    uint64_t *x, *y;       /* [n + 1] bytes of X and Y */
    /* bytes of X[j] that are made at or behind cut i: [i * (n + 1) + j] */
    uint64_t *apart;
    bool is_least;       /* their blocks get ways with little memory */
    bool *is_kept;       /* [nops] is computed once, what it makes stays */
    uint64_t kept_bytes; /* of all such operations */
};

/* Where the backward pass may begin; at most `most` answers. */
HEDDLE_MUST_USE heddle_status heddle_plan_find_turns(const struct heddle_plan_job *job,
                                                     uint32_t most, uint32_t *turn_out,
                                                     uint32_t *n_out);
/* How cuts are chosen, for ever less memory and at ever more cost. */
enum heddle_plan_cut_style {
    HEDDLE_PLAN_CUT_FEW,  /* few bytes at all of them together */
    HEDDLE_PLAN_CUT_THIN, /* few bytes at each of them */
    HEDDLE_PLAN_CUT_LEAST /* the same, and blocks that need little */
};

/* Cuts around `turn`, with forward parts of up to `most` operations where that
 * is possible. HEDDLE_ENOENT: fewer than two blocks. */
HEDDLE_MUST_USE heddle_status heddle_plan_find_cuts(const struct heddle_plan_job *job,
                                                    uint32_t turn, uint32_t most,
                                                    enum heddle_plan_cut_style style,
                                                    struct heddle_scratch *mem,
                                                    struct heddle_plan_cuts *out);
/* Whether an operation from `from` to `to` - 1 reads the value. */
bool heddle_plan_is_read(const struct heddle_plan_job *job, uint32_t v, uint32_t from, uint32_t to);

/* --- blocks and their options (options.c) --------------------------------- */

/* A way to run a block. Memory does not count X[i]. */
struct heddle_plan_option {
    uint64_t saved; /* between its passes, what is behind it included */
    uint64_t peak_f, peak_b;
    uint32_t seq, nf, nb; /* its operations, as numbers within the block */
};

enum { HEDDLE_PLAN_OPTIONS = 16 };

/* What blocks that are equal up to their times share. */
struct heddle_plan_shape {
    uint32_t nf, nb;      /* operations of each part */
    uint64_t peak_x;      /* of a forward part that saves nothing */
    const uint32_t *pass; /* [npass] its operations, when it is the first */
    uint32_t npass;
    const bool *is_needed; /* [nf] for what is behind the block */
    const uint32_t *seq;   /* of all options */
    struct heddle_plan_option option[HEDDLE_PLAN_OPTIONS];
    uint32_t noptions;
};

struct heddle_plan_stage {
    const struct heddle_plan_shape *shape;
    const uint32_t *op;               /* [nf + nb] */
    double pass;                      /* time of what is needed for what is behind it */
    double time[HEDDLE_PLAN_OPTIONS]; /* of both parts */
};

/* The stages of the cuts. `nshapes_out` may be NULL. HEDDLE_ENOENT: late. */
HEDDLE_MUST_USE heddle_status heddle_plan_make_stages(struct heddle_plan_search *x,
                                                      const struct heddle_plan_cuts *cuts,
                                                      struct heddle_scratch *mem,
                                                      struct heddle_plan_stage **out,
                                                      uint32_t *nshapes_out);

/* --- the chain of blocks (dp.c) ------------------------------------------ */

struct heddle_plan_cut_table;

/* Least times of all parts of the chain for up to `bytes`, in `slots` units. */
HEDDLE_MUST_USE heddle_status heddle_plan_cut_solve(const struct heddle_plan_cuts *cuts,
                                                    const struct heddle_plan_stage *stage,
                                                    uint64_t bytes, uint32_t slots,
                                                    struct heddle_scratch *mem,
                                                    struct heddle_plan_cut_table **out);
/* False: nothing for so few slots. Otherwise `op` has the operations of a plan;
 * *n_out > cap: there was no room. */
bool heddle_plan_cut_trace(struct heddle_plan_cut_table *t, uint32_t slots, uint32_t *op,
                           uint32_t cap, uint32_t *n_out);

/* --- all of it (seq.c) --------------------------------------------------- */

struct heddle_plan_blocks_try {
    double seconds;                   /* to spend, or a little more */
    double goal;                      /* a sequence that takes so long is at hand; INFINITY */
    uint32_t turn, most;              /* the best cuts so far; 0: all are tried */
    enum heddle_plan_cut_style style; /* of these; all of them: from here on */
};

/* The best sequence within x->budget that blocks give, in s. HEDDLE_ENOENT: none,
 * or it became clear that they do not reach the goal; HEDDLE_ENOMEM. */
HEDDLE_MUST_USE heddle_status heddle_plan_blocks_seq(struct heddle_plan_search *x,
                                                     struct heddle_plan_blocks_try *try,
                                                     struct heddle_plan_seq *s);
/* A plan of it, with addresses that fit: lowers x->budget until they do. */
HEDDLE_MUST_USE heddle_status heddle_plan_blocks_plan(struct heddle_plan_search *x,
                                                      struct heddle_plan_blocks_try *try,
                                                      struct heddle_plan_seq *s, const char *solver,
                                                      double bound, struct heddle_plan **out);

#endif /* HEDDLE_PLAN_BLOCKS_BLOCKS_H */
