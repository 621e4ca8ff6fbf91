/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLAN_SEQ_SEQ_H
#define HEDDLE_PLAN_SEQ_SEQ_H

/*
 * Private to the solvers of general graphs: sequences of operations, in which an
 * operation may occur several times, and what is done to them.
 *
 * An occurrence serves all readers up to the next occurrence of its operation,
 * so every sequence in which first occurrences are in a topological order is a plan:
 * whatever is inserted or removed, the only questions are memory and time. All
 * functions here keep the order of first occurrences, which is the given one
 * unless reorder.c made another.
 */
#include "base/rng.h"
#include "plan/plan.h"

/* A tree over positions: range add, range max. */
struct heddle_plan_tree {
    int64_t *max, *add;
    uint32_t n;
};

/* A sequence; everything behind `n` is known after heddle_plan_seq_eval(). */
struct heddle_plan_seq {
    const struct heddle_plan_graph *g;
    uint32_t *op;         /* [cap] */
    uint32_t n;           /* occurrences */
    uint32_t *prev;       /* the occurrence of the same op before it; NONE */
    uint32_t *next;       /* and behind it */
    uint32_t *base;       /* [cap + 1] last[base[p] + i]: of output i of p */
    uint32_t *last;       /* position of its last reader; NONE; n: the end */
    int64_t *mem;         /* [cap] bytes while it runs, and those set aside */
    const int64_t *aside; /* [nops] bytes to leave free up to the first
                             occurrence of an op; NULL: none */
    uint32_t *tail;       /* [nops] the last occurrence of an op */
    double time;          /* sum of all */
    int64_t peak;
    uint32_t peak_at;
    struct heddle_plan_tree tree; /* over mem, after heddle_plan_seq_plant() */
    int64_t *diff;                /* scratch */
    uint32_t *none;               /* scratch: last reader of op NONE values */
    uint32_t cap, vcap;
};

/* Room for `cap` occurrences; empty. */
HEDDLE_MUST_USE bool heddle_plan_seq_init(struct heddle_plan_seq *s,
                                          const struct heddle_plan_graph *g, uint32_t cap,
                                          struct heddle_scratch *mem);
/* The number of occurrences worth room for. */
uint32_t heddle_plan_seq_room(const struct heddle_plan_graph *g);
/* Every op once, in the given order. */
void heddle_plan_seq_start(struct heddle_plan_seq *s);
void heddle_plan_seq_copy(struct heddle_plan_seq *to, const struct heddle_plan_seq *from);
/* Fills what is behind n. O(n + inputs). False: too long for its room. */
HEDDLE_MUST_USE bool heddle_plan_seq_eval(struct heddle_plan_seq *s);

/* Makes the tree over mem. O(n). */
void heddle_plan_seq_plant(struct heddle_plan_seq *s);
/* Over positions lo .. hi - 1; O(log n). The max of none is INT64_MIN. */
void heddle_plan_tree_add(struct heddle_plan_tree *t, uint32_t lo, uint32_t hi, int64_t bytes);
int64_t heddle_plan_tree_max(const struct heddle_plan_tree *t, uint32_t lo, uint32_t hi);

/* What a search needs; one for each call of a solver. */
struct heddle_plan_search {
    const struct heddle_plan_job *job;
    const struct heddle_plan_graph *g;
    struct heddle_scratch mem;
    struct heddle_rng rng;
    int64_t budget;                    /* of the peak; may be less than the machine's */
    double noise;                      /* 0: the best move, 1: any */
    uint32_t batch;                    /* moves of one look at the sequence */
    double address_work;               /* comparisons for the addresses of a sequence */
    double max_time;                   /* no sequence may take longer */
    double work;                       /* positions and candidates looked at so far */
    uint64_t deadline_ns;              /* of what is at hand: a first plan may take longer */
    int64_t *aside;                    /* [nops] of the sequences: what addresses lose */
    uint32_t *kept, *held;             /* [room] sequences to go back to: of the steps down,
                              of the addresses */
    uint64_t *top;                     /* [room] of the last plan: ends of the arena */
    bool is_patient;                   /* its user goes on when no addresses fit at once */
    bool is_free;                      /* first computations may be in another order */
    uint32_t patience;                 /* evict.c: inputs of an operation that may go while others
                          are computed */
    struct heddle_plan_reduce *reduce; /* reduce.c */
    uint32_t room;
    uint32_t *pick, *pick2, *save; /* [room] scratch of one function */
    double *key;                   /* [room] */
};

HEDDLE_MUST_USE heddle_status heddle_plan_search_init(struct heddle_plan_search *x,
                                                      const struct heddle_plan_job *job);
void heddle_plan_search_fini(struct heddle_plan_search *x);
bool heddle_plan_search_is_late(const struct heddle_plan_search *x);

/* reduce.c: inserts recomputations until the peak is within x->budget. True: it
 * is, and s is evaluated. */
bool heddle_plan_reduce(struct heddle_plan_search *x, struct heddle_plan_seq *s);
HEDDLE_MUST_USE bool heddle_plan_reduce_init(struct heddle_plan_search *x);
/* search.c: the same in steps, smaller ones where a larger one gets stuck. After each
 * of them what can go is removed. False: s is as low as it got. */
bool heddle_plan_reduce_by_steps(struct heddle_plan_search *x, struct heddle_plan_seq *s);

/* prune.c: removes what can be removed within x->budget, s evaluated before and
 * after. With noise in a random order, otherwise what costs most first. */
void heddle_plan_prune(struct heddle_plan_search *x, struct heddle_plan_seq *s);
/* One pass of it, for a sequence that may be over x->budget: what it does not need
 * where it is within. */
void heddle_plan_prune_once(struct heddle_plan_search *x, struct heddle_plan_seq *s);
/* Removes the occurrences with mark != 0 (never a first one) and evaluates. */
void heddle_plan_seq_remove(struct heddle_plan_seq *s, const uint8_t *mark);

/* evict.c: runs the graph and drops what a rule says when memory is full. */
enum heddle_plan_rule {
    HEDDLE_PLAN_RULE_DTR, /* looks back: the published h_DTR_eq */
    HEDDLE_PLAN_RULE_NEXT /* looks ahead: by the next use in the given order */
};
/* HEDDLE_OK: s has a sequence within x->budget, evaluated. HEDDLE_ENOENT: out of
 * room, or longer than x->max_time. HEDDLE_ENOMEM. */
HEDDLE_MUST_USE heddle_status heddle_plan_evict(struct heddle_plan_search *x,
                                                enum heddle_plan_rule rule,
                                                struct heddle_plan_seq *s);

/* demand.c: a run in little memory. `order`: every operation once, in a topological
 * order; NULL: the given one. As heddle_plan_evict(), and *reached_out operations of the
 * order have run. */
struct heddle_plan_demand;
struct heddle_plan_demand_way {
    double power;  /* 0: the value that is used last goes first; 1: what it costs
                      counts as much */
    bool is_ahead; /* what comes next is computed again by the same sweep */
};
struct heddle_plan_demand *heddle_plan_demand_make(struct heddle_plan_search *x);
HEDDLE_MUST_USE heddle_status heddle_plan_demand_run(struct heddle_plan_demand *d,
                                                     const uint32_t *order,
                                                     const struct heddle_plan_demand_way *way,
                                                     struct heddle_plan_seq *s,
                                                     uint32_t *reached_out);
/* A run in the given order, pruned. *way: 0 at first, more for a budget below one of
 * an earlier call. */
HEDDLE_MUST_USE heddle_status heddle_plan_demand_seq(struct heddle_plan_search *x,
                                                     struct heddle_plan_demand *d, uint32_t *way,
                                                     struct heddle_plan_seq *s);

/* back.c: a run found backwards. _make: once for each search, `work`: states of one run.
 * _run: large values within `limit`, small ones beyond it. HEDDLE_OK: s has a
 * sequence, evaluated; its peak may be over x->budget. HEDDLE_ENOENT. */
struct heddle_plan_back;
HEDDLE_MUST_USE heddle_status heddle_plan_back_make(struct heddle_plan_search *x, uint32_t work,
                                                    struct heddle_plan_back **out);
HEDDLE_MUST_USE heddle_status heddle_plan_back_run(struct heddle_plan_back *b, uint64_t limit,
                                                   struct heddle_plan_seq *s);

/* solve/passes.c: a plan with a pass for each end of the graph; is_quick: only sweeps, which
 * take little time; is_long: none of these. */
HEDDLE_MUST_USE heddle_status heddle_plan_passes(const struct heddle_plan_job *job, bool is_quick,
                                                 bool is_long, struct heddle_plan **out);

/* reorder.c: every op once, in an order with less over x->budget than the given
 * one, if it finds one; evaluated. `work`: as below. */
HEDDLE_MUST_USE heddle_status heddle_plan_reorder(struct heddle_plan_search *x,
                                                  struct heddle_plan_seq *s, double work);

/* The same, with recomputation, for a budget for which nothing else was found: orders
 * until a run in one of them is within it, pruned. `work`: of x->work. */
HEDDLE_MUST_USE heddle_status heddle_plan_climb(struct heddle_plan_search *x,
                                                struct heddle_plan_seq *s, double work);
/* smooth.c: the same computations in an order whose memory is high for a shorter
 * time, evaluated before and after. `work`: inputs to look at. */
void heddle_plan_smooth(struct heddle_plan_search *x, struct heddle_plan_seq *s, double work);

/* Makes a plan of a sequence, or says by how much its addresses are over; they
 * are looked for until the deadline, or only a little (0). */
HEDDLE_MUST_USE heddle_status heddle_plan_seq_finish(struct heddle_plan_search *x,
                                                     const struct heddle_plan_seq *s,
                                                     const char *solver, double bound,
                                                     uint64_t deadline_ns, uint64_t *over_out,
                                                     struct heddle_plan **out);

/* Sets more aside where the top of the arena was over the budget in the last
 * heddle_plan_seq_finish(), `part` of it; where it was below, less. Sequences
 * have to be evaluated again. False: nothing has changed. */
bool heddle_plan_set_aside(struct heddle_plan_search *x, const struct heddle_plan_seq *s,
                           double part);

/* The given order, or another, with the cheapest recomputations. HEDDLE_OK,
 * HEDDLE_ENOMEM, or HEDDLE_ENOENT: it got stuck, s is evaluated and over x->budget. */
HEDDLE_MUST_USE heddle_status heddle_plan_greedy_seq(struct heddle_plan_search *x,
                                                     struct heddle_plan_seq *s);
/* The given order in little memory, with very many recomputations. */
HEDDLE_MUST_USE heddle_status heddle_plan_long_seq(struct heddle_plan_search *x,
                                                   struct heddle_plan_seq *s);
/* Both in turn: a first sequence within x->budget, in s: HEDDLE_OK, HEDDLE_ENOENT (none found),
 * HEDDLE_ENOMEM. */
HEDDLE_MUST_USE heddle_status heddle_plan_first_seq(struct heddle_plan_search *x,
                                                    struct heddle_plan_seq *s);
/* A plan of s, which is within x->budget, with addresses that fit: lowers
 * x->budget and repairs s until they do. */
HEDDLE_MUST_USE heddle_status heddle_plan_place_seq(struct heddle_plan_search *x,
                                                    struct heddle_plan_seq *s, const char *solver,
                                                    double bound, struct heddle_plan **out);
/* Says that heddle_plan_first_seq() found nothing. */
heddle_status heddle_plan_no_plan(const struct heddle_plan_search *x);

#endif /* HEDDLE_PLAN_SEQ_SEQ_H */
