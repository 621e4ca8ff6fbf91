/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TESTS_PROPERTY_GEN_H
#define HEDDLE_TESTS_PROPERTY_GEN_H

/* What the files of the generator share. */
#include "prog.h"

enum { MAX_HELD = 4, MAX_OPEN = 8 };

struct gen {
    struct prog *p;
    struct oracle *o;
    struct prog_list *list;
    int open[MAX_OPEN]; /* events that the main list has to complete */
    unsigned nopen;
    int held[MAX_HELD]; /* units that it has to release */
    unsigned nheld;
    bool group_ends[64]; /* cancelled */
};

bool gen_has(enum prog_feature f);
bool gen_chance(struct gen *g, unsigned percent);
/* Enters an operation and lets the oracle do it. */
struct prog_op *gen_emit(struct gen *g, struct prog_op op);
/* Events, groups and callbacks of a task or a launch. */
void gen_options(struct gen *g, struct prog_task *t);
struct prog_box gen_box(struct prog *p, const struct heddle_layout *l);

/* --- gen_task.c --- */

/* A task of the program, or NULL; `list` -1: of the main list. */
struct prog_task *gen_task(struct prog *p, struct oracle *o, int list);
/* One for a graph: no reductions, no options. */
struct prog_task *gen_graph_task(struct prog *p);
/* No commutative access where failures would make the outcome random. */
void gen_settle_commute(struct oracle *o, struct prog_task *t);

/* --- gen_graph.c --- */

/* Records a graph or launches one. */
void gen_graph(struct gen *g);

#endif /* HEDDLE_TESTS_PROPERTY_GEN_H */
