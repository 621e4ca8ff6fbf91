/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLAN_PLAN_H
#define HEDDLE_PLAN_PLAN_H

/*
 * Private to plan: what a solver is given and what it gives back.
 *
 * A solver is one file, solve/<name>.c, that defines
 * `const struct heddle_plan_solver_ops heddle_plan_solver_<name>`, and one line
 * in solve/solver.def. It reads a job, fills a draft with steps and calls
 * heddle_plan_finish(), which evaluates the steps, gives everything an address
 * and makes the plan. A solver cannot claim a number: they are computed from its
 * steps. What it adds is a lower bound.
 *
 * Memory: heddle_scratch (base/scratch.h) for what goes with the call.
 * Errors: HEDDLE_PLAN_FAIL() writes the sentence and returns the status.
 * check.c does not include this header: it must not share anything.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/scratch.h"
#include "heddle/plan.h"
#include "plan/opts.h"

/* --- graphs (graph/graph.c) ----------------------------------------------- */

/* The readers of each value: ops user[first[v]] .. user[first[v + 1] - 1], increasing. */
struct heddle_plan_users {
    uint32_t *first; /* [nvalues + 1] */
    uint32_t *user;  /* [ninputs] */
};
HEDDLE_MUST_USE heddle_status heddle_plan_users_make(const struct heddle_plan_graph *g,
                                                     struct heddle_scratch *mem,
                                                     struct heddle_plan_users *out);

/* Memory while `op` runs and nothing else is there: inputs, outputs of `mask`
 * (not the first one of an op that may take an input's memory), workspace. */
uint64_t heddle_plan_op_bytes(const struct heddle_plan_graph *g, uint32_t op, uint64_t mask);

/* Of every operation once. */
double heddle_plan_sum_times(const struct heddle_plan_graph *g);

/* In memory from the first step on: op NONE, and not at the host. */
static inline bool heddle_plan_is_initial(const struct heddle_plan_value *v)
{
    return v->op == HEDDLE_PLAN_NONE && (v->flags & HEDDLE_PLAN_AT_HOST) == 0;
}

/* All outputs of an op, as a mask. */
static inline uint64_t heddle_plan_all(const struct heddle_plan_op *o)
{
    return o->nvalues == 0 ? 0 : UINT64_MAX >> (64 - o->nvalues);
}

/* --- drafts (steps/draft.c) ----------------------------------------------- */

/*
 * Steps, growing. The first failure sticks in `st`, later additions do nothing:
 * look at it once, at the end (heddle_plan_finish does).
 */
struct heddle_plan_draft {
    const struct heddle_allocator *a;
    struct heddle_plan_step *step;
    uint32_t n;
    size_t cap;
    heddle_status st;
};

void heddle_plan_draft_init(struct heddle_plan_draft *d, const struct heddle_allocator *a);
void heddle_plan_draft_fini(struct heddle_plan_draft *d);
/* Empties it and keeps its memory. */
void heddle_plan_draft_clear(struct heddle_plan_draft *d);

void heddle_plan_draft_compute(struct heddle_plan_draft *d, uint32_t op, uint64_t outputs,
                               bool in_place);
void heddle_plan_draft_discard(struct heddle_plan_draft *d, uint32_t value);
/* level: 1 host, 2 disk */
void heddle_plan_draft_offload(struct heddle_plan_draft *d, uint32_t value, unsigned level);
void heddle_plan_draft_prefetch(struct heddle_plan_draft *d, uint32_t value, unsigned level);
void heddle_plan_draft_forget(struct heddle_plan_draft *d, uint32_t value, unsigned level);

/*
 * Appends the steps of a sequence of ops, in which an op may occur several
 * times. What an occurrence makes is used by all readers up to the next
 * occurrence of the same op, and is discarded after the last of them. It makes
 * its first output, and of the others those with a reader in that time; results
 * stay to the end. An op takes its input's place where it may and that was the
 * input's last use.
 *
 * HEDDLE_EINVAL (a reader without what it reads, an op that is missing, or
 * repeated though it must not be), HEDDLE_ENOMEM.
 */
HEDDLE_MUST_USE heddle_status heddle_plan_draft_from_sequence(const struct heddle_plan_graph *g,
                                                              const uint32_t *seq, size_t nseq,
                                                              const struct heddle_plan_opts *o,
                                                              struct heddle_plan_draft *d);

/* --- evaluation (steps/eval.c) -------------------------------------------- */

struct heddle_plan_cost {
    uint64_t peak_bytes; /* sum of what is alive, in the order of the steps */
    double makespan, compute, link_busy;
};

/* What the steps cost, by the rules of heddle/plan.h. HEDDLE_EINVAL: a step
 * that cannot be done (a value that is not there...): a defect of a solver, or a
 * sequence it should not have made. HEDDLE_ENOMEM. O(steps + inputs used). */
HEDDLE_MUST_USE heddle_status heddle_plan_eval(const struct heddle_plan_graph *g,
                                               const struct heddle_plan_machine *m,
                                               const struct heddle_plan_step *step, uint32_t nsteps,
                                               const struct heddle_plan_opts *o,
                                               struct heddle_plan_cost *out);

/* --- solvers (solve/solve.c) ---------------------------------------------- */

/* The options of heddle_plan_solve(), complete: fields are those of the public struct. */
struct heddle_plan_wish {
    const char *solver;
    double time_limit_s; /* > 0 */
    uint64_t seed;
    uint32_t slots;
    bool moves;
    bool (*progress)(void *user, double seconds, const struct heddle_plan *best);
    void *user;
    struct heddle_plan_opts base; /* alloc, why, why_bytes */
    const struct heddle_plan *known;
};

/* One call of heddle_plan_solve(). */
struct heddle_plan_job {
    const struct heddle_plan_graph *g;
    const struct heddle_plan_machine *m; /* checked; align >= 1 */
    struct heddle_plan_wish opts;
    struct heddle_plan_users users;
    uint64_t floor;                 /* heddle_plan_floor(g); <= m->budget */
    uint64_t start_ns, deadline_ns; /* heddle_clock_ns() */
};

struct heddle_plan_solver_ops {
    struct heddle_plan_solver face; /* name, help, is_for_chains */

    /* How well it suits this job: 0 not at all, the highest is taken when the
     * caller names none. `keep` answers 1. A chain solver is only asked about
     * graphs that were given as chains. */
    int (*rank)(const struct heddle_plan_job *job);

    /* HEDDLE_OK and a plan from heddle_plan_finish(), or HEDDLE_ENOENT with a
     * sentence: nothing found within the budget. */
    heddle_status (*solve)(const struct heddle_plan_job *job, struct heddle_plan **out);
};

/* NULL-terminated; built from solver.def. */
extern const struct heddle_plan_solver_ops *const heddle_plan_solver_table[];
const struct heddle_plan_solver_ops *heddle_plan_find_solver(const char *name);

/* True: time is up. Cheap enough for every few microseconds. */
bool heddle_plan_job_is_late(const struct heddle_plan_job *job);
double heddle_plan_job_seconds(const struct heddle_plan_job *job);
/* Tells the caller about a better plan; false: stop with the best you have. */
bool heddle_plan_job_report(const struct heddle_plan_job *job, const struct heddle_plan *best);

/* What a solver knows beyond its steps. */
struct heddle_plan_claim {
    const char *solver;     /* its name */
    double lower_bound;     /* on makespan; less than baseline: baseline */
    const char *bound_note; /* what it assumes; NULL: "every operation once" */
};

/*
 * Evaluates, gives addresses, makes the plan; the draft stays the caller's.
 *
 * HEDDLE_OK      it fits
 * HEDDLE_ENOENT  peak or addresses are over the budget; the sentence says by how much.
 *                *over_out (may be NULL) is what was needed: the peak when that
 *                is over, the arena otherwise; 0 with HEDDLE_OK
 * HEDDLE_EINVAL  the draft is not a plan; HEDDLE_ENOMEM
 */
HEDDLE_MUST_USE heddle_status heddle_plan_finish(const struct heddle_plan_job *job,
                                                 const struct heddle_plan_draft *d,
                                                 const struct heddle_plan_claim *claim,
                                                 uint64_t *over_out, struct heddle_plan **out);

/* The same, with so much work for addresses. When addresses are over the budget or within, top[k]
 * is the end of the
 * highest block at the k-th computation of the draft; `top` has room for all. */
HEDDLE_MUST_USE heddle_status heddle_plan_finish_tops(const struct heddle_plan_job *job,
                                                      const struct heddle_plan_draft *d,
                                                      const struct heddle_plan_claim *claim,
                                                      double work, uint64_t *over_out,
                                                      uint64_t *top, struct heddle_plan **out);

/* Looks for lower addresses of a plan until the deadline. The arena may only
 * become smaller. HEDDLE_OK, HEDDLE_ENOMEM. */
HEDDLE_MUST_USE heddle_status heddle_plan_lower(const struct heddle_plan_job *job,
                                                struct heddle_plan *p);

/* An empty plan whose arrays are in *mem_out; for the reader and finish. */
struct heddle_plan *heddle_plan_alloc(const struct heddle_allocator *a,
                                      struct heddle_scratch **mem_out);
/* A copy of a text there; NULL: no memory. */
const char *heddle_plan_keep_text(struct heddle_scratch *mem, const char *s);

#endif /* HEDDLE_PLAN_PLAN_H */
