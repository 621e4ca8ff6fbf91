/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLAN_EQUAL_EQUAL_H
#define HEDDLE_PLAN_EQUAL_EQUAL_H

/*
 * Private to the solvers of chains of equal layers, in which only activations are
 * kept: closed forms, tables of several levels of storage, and their plans.
 * A backward includes its own forward here. docs/design/planner-chains.md.
 */
#include <stdint.h>

#include "plan/plan.h"

/* --- one level (revolve.c) ----------------------------------------------------- */

/* C(s + r, s), UINT64_MAX when it is larger. */
uint64_t heddle_plan_beta(uint64_t s, uint64_t r);
/* Least number of extra forwards of n >= 1 steps with s >= 1 slots, the one of
 * the first activation included. n < 2^31. */
uint64_t heddle_plan_revolve_extra(uint64_t n, uint64_t s);
/* A best first jump, 1 <= j < n; n > 1. */
uint64_t heddle_plan_revolve_jump(uint64_t n, uint64_t s);
/* Least number of forwards, taped ones included, when a slot may have a tape
 * instead: out[i] for i steps, i <= n. O(n^2 s). */
HEDDLE_MUST_USE heddle_status heddle_plan_revolve_mixed(uint32_t n, uint32_t s,
                                                        const struct heddle_allocator *a,
                                                        uint64_t *out);

/* --- events (events.c) ---------------------------------------------------------- */

/* What is done, without the end of what is in memory: that follows. */
struct heddle_plan_events {
    const struct heddle_plan_chain *c;
    struct heddle_plan_draft d; /* the kinds of steps but DISCARD */
};

void heddle_plan_events_init(struct heddle_plan_events *e, const struct heddle_plan_chain *c,
                             const struct heddle_allocator *a);
void heddle_plan_events_fini(struct heddle_plan_events *e);
/* Forwards from .. to-1, for their activations. */
void heddle_plan_events_advance(struct heddle_plan_events *e, uint32_t from, uint32_t to);
/* Forward with tape (the loss, at the end of the chain) and backward of layer i. */
void heddle_plan_events_backward(struct heddle_plan_events *e, uint32_t i);
/* All of steps base .. base + n-1 with s slots in memory, by Revolve. */
void heddle_plan_events_revolve(struct heddle_plan_events *e, uint32_t base, uint32_t n,
                                uint32_t s);
void heddle_plan_events_write(struct heddle_plan_events *e, uint32_t i, unsigned level);
void heddle_plan_events_read(struct heddle_plan_events *e, uint32_t i, unsigned level);
/* x[0] stays where it is: it must be somewhere at the end. */
void heddle_plan_events_forget(struct heddle_plan_events *e, uint32_t i, unsigned level);
/* Steps, each value discarded after its last use. */
HEDDLE_MUST_USE heddle_status heddle_plan_events_draft(const struct heddle_plan_events *e,
                                                       const struct heddle_plan_graph *g,
                                                       struct heddle_plan_draft *out);

/* --- several levels (levels.c) --------------------------------------------------- */

enum { HEDDLE_PLAN_LEVELS = 3 };

struct heddle_plan_levels {
    double forward, backward;
    uint32_t nlevels; /* 0 is memory */
    uint32_t slots[HEDDLE_PLAN_LEVELS];
    double write[HEDDLE_PLAN_LEVELS], read[HEDDLE_PLAN_LEVELS];
};

struct heddle_plan_levels_table; /* H-Revolve */

HEDDLE_MUST_USE heddle_status heddle_plan_levels_make(const struct heddle_plan_levels *v,
                                                      uint32_t n, const struct heddle_allocator *a,
                                                      struct heddle_plan_levels_table **out);
void heddle_plan_levels_drop(struct heddle_plan_levels_table *t);
/* Time of l + 1 steps, the first activation stored nowhere. */
double heddle_plan_levels_time(const struct heddle_plan_levels_table *t, uint32_t level, uint32_t l,
                               uint32_t slots);
/* The plan of all steps. store[k]: what level k > 0 is in a step. */
void heddle_plan_levels_trace(const struct heddle_plan_levels_table *t, const unsigned *store,
                              struct heddle_plan_events *e);

/* --- unlimited disk (disk_revolve.c) ---------------------------------------------- */

/* Times of l + 1 steps, l < n: in memory alone; when the first activation is on
 * disk already; when it is not. Levels 0 and 1 of v are used; slots[0] >= 1. */
struct heddle_plan_disk {
    struct heddle_plan_levels v;
    double *memory, *once, *all;
};
void heddle_plan_disk_times(const struct heddle_plan_disk *x, uint32_t n);
/* The plan of n steps. */
void heddle_plan_disk_trace(const struct heddle_plan_disk *x, uint32_t n, unsigned store,
                            struct heddle_plan_events *e);

/* --- solvers (equal.c) ------------------------------------------------------------- */

/* Events of the best plan with so many slots in memory; *time_out is what the
 * model says it takes. */
typedef heddle_status heddle_plan_equal_fn(const struct heddle_plan_job *job, uint32_t slots,
                                           struct heddle_plan_events *e, double *time_out);
/* Finds how many slots fit and makes the plan. HEDDLE_EINVAL: layers differ. */
HEDDLE_MUST_USE heddle_status heddle_plan_equal_solve(const struct heddle_plan_job *job,
                                                      const char *name, heddle_plan_equal_fn *fn,
                                                      struct heddle_plan **out);
/* The levels of the machine for this chain; store[k] as above. */
struct heddle_plan_levels heddle_plan_equal_levels(const struct heddle_plan_job *job,
                                                   uint32_t slots, unsigned *store);

#endif /* HEDDLE_PLAN_EQUAL_EQUAL_H */
