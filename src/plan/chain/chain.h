/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLAN_CHAIN_CHAIN_H
#define HEDDLE_PLAN_CHAIN_CHAIN_H

/*
 * Private to the chain solvers: a chain whose sizes are counted in units, the
 * tables over it, and the driver that turns tables into plans.
 * docs/design/planner-chains.md has the models.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/plan.h"

/* --- units (units.c) -------------------------------------------------------- */

/*
 * Stages 0 .. n-1 are layers, stage n is the loss. All arrays have n + 2 entries:
 * x[n + 1] = t[n + 1] = 0, and the loss takes no time and no workspace. Sizes are
 * at most slots + 1: that is too much for any plan, and sums do not overflow.
 * Times are scaled by a power of two, so that their sum is below 1.
 */
struct heddle_plan_units {
    uint32_t n, slots;
    uint32_t *x, *t, *work_f, *work_b;
    double *forward, *backward;
    double *before; /* before[i]: sum of forward[0 .. i-1] */
    double *both;   /* both[i]: of forward and backward */
    double scale;   /* time = scaled time * scale */
    bool is_exact;  /* sums of times are exact in a float */
};

#define HEDDLE_PLAN_SLOTS_MAX ((uint32_t)1 << 20)

/* The largest number that divides all sizes; 0: all are 0. */
uint64_t heddle_plan_chain_unit(const struct heddle_plan_chain *c);
enum heddle_plan_rounding {
    HEDDLE_PLAN_DOWN, /* a lower bound */
    HEDDLE_PLAN_UP,   /* every plan fits */
    HEDDLE_PLAN_EVEN  /* what one size loses the next one gets: sums are right */
};
HEDDLE_MUST_USE heddle_status heddle_plan_units_make(const struct heddle_plan_chain *c,
                                                     uint64_t unit,
                                                     enum heddle_plan_rounding rounding,
                                                     uint32_t slots, struct heddle_scratch *mem,
                                                     struct heddle_plan_units *out);

/* --- sequences of operations (units.c) -------------------------------------- */

/* Growing; the first failure sticks. */
struct heddle_plan_seq {
    const struct heddle_allocator *a;
    uint32_t *op;
    size_t n, cap;
    heddle_status st;
};
void heddle_plan_seq_add(struct heddle_plan_seq *q, uint32_t op);
void heddle_plan_seq_fini(struct heddle_plan_seq *q);

/* --- models ------------------------------------------------------------------ */

/* A table of the least times of all parts of a chain, for every memory. */
struct heddle_plan_model {
    const char *name;
    const char *note; /* of the bound */

    HEDDLE_MUST_USE heddle_status (*make)(const struct heddle_plan_units *u,
                                          const struct heddle_allocator *a, void **out);
    void (*drop)(void *table);
    /* Scaled time of the whole chain within m units; INFINITY: there is none. */
    double (*value)(const void *table, uint32_t m);
    /* The operations of that plan. value(m) is finite. */
    void (*trace)(const void *table, uint32_t m, struct heddle_plan_seq *q);
    /* Sums for one slot, and bytes of the table for one slot. */
    double (*work)(uint32_t n);
    double (*bytes)(uint32_t n);
    /* Roundings on the way from a stage to value(), for the bound. */
    double (*roundings)(uint32_t n);
};

extern const struct heddle_plan_model heddle_plan_model_persistent;
extern const struct heddle_plan_model heddle_plan_model_general;
extern const struct heddle_plan_model heddle_plan_model_unpinned;
extern const struct heddle_plan_model heddle_plan_model_free;

/* --- the driver (bracket.c) --------------------------------------------------- */

/* Slots that a solution in `seconds` has; 0: the chain is too long. */
uint32_t heddle_plan_bracket_slots(const struct heddle_plan_job *job,
                                   const struct heddle_plan_model *model, double seconds);
/*
 * The best plan of a model that `seconds` of work give, and its bound.
 * *bound_out (may be NULL): no plan of the model takes less; also set when there is
 * no plan. HEDDLE_ENOENT: none exists, or none was found.
 */
HEDDLE_MUST_USE heddle_status heddle_plan_bracket(const struct heddle_plan_job *job,
                                                  const struct heddle_plan_model *model,
                                                  double seconds, double *bound_out,
                                                  struct heddle_plan **out);

#endif /* HEDDLE_PLAN_CHAIN_CHAIN_H */
