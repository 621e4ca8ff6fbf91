/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_FUZZ_GEN_H
#define HEDDLE_TOOLS_FUZZ_GEN_H

/* The generator: fuzz/gen.c, fuzz/gen_unit.c and fuzz/region.c. */
#include "fuzz/fuzz.h"

struct gen {
    unsigned without;
    struct fuzz_prog *p;
    struct fuzz_arena *a;
    unsigned device_percent; /* of the tasks that may run on a device only */
    bool failed;             /* no memory */
};

static inline bool has(const struct gen *g, enum fuzz_part part)
{
    return (g->without & part) == 0;
}

static inline uint64_t below(struct gen *g, uint64_t n)
{
    return fuzz_below(g->p, n);
}

static inline bool chance(struct gen *g, unsigned percent)
{
    return fuzz_chance(g->p, percent);
}

static inline bool has_room(const struct gen *g)
{
    return g->p->nops < FUZZ_OPS - 32;
}

/* --- fuzz/gen.c ---------------------------------------------------------- */

struct fuzz_op *gen_emit(struct gen *g, enum fuzz_kind kind, int unit);
bool gen_units_meet(const struct gen *g, int u, int v);
struct fuzz_task *gen_task_new(struct gen *g);
struct fuzz_task *gen_task(struct gen *g, bool in_graph);
void gen_emit_task(struct gen *g, struct fuzz_task *t);
/* Takes into account what it needs, with the units that stand for its own. */
void gen_task_needs(struct gen *g, const struct fuzz_task *t, const struct fuzz_launch *l);
void gen_task_options(struct gen *g, struct fuzz_task *t);
void gen_acquire(struct gen *g, int u);

/* --- fuzz/gen_unit.c ----------------------------------------------------- */

/* A random box inside of a layout. */
struct fuzz_box gen_box(struct gen *g, const struct heddle_layout *l);
void gen_root(struct gen *g);
void gen_slots(struct gen *g);
void gen_view(struct gen *g);
/* A live one, or -1. */
int gen_pick_unit(struct gen *g);

/* --- fuzz/region.c ------------------------------------------------------- */

void gen_graph(struct gen *g);
/* Several tasks that hang together, on a device for the most part; returns how
 * many. */
unsigned gen_chain(struct gen *g);

#endif /* HEDDLE_TOOLS_FUZZ_GEN_H */
