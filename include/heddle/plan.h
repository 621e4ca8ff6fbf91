/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLAN_H
#define HEDDLE_PLAN_H

/*
 * heddle/plan.h - train what does not fit.
 *
 * A graph of operations, a machine with a memory budget, and out comes a plan:
 * what is computed, computed again, dropped, moved to the host and back, in
 * which order and at which addresses. Every plan says what it proves, and
 * heddle_plan_check() verifies it without the code that made it.
 * docs/design/planner.md has the models and the proofs.
 *
 * Threads:  pure functions; any thread. Objects do not change once made. An
 *           allocator must outlive what was made with it.
 * Errors:   functions return heddle_status; on failure nothing was created and
 *           a sentence is in opts->why.
 * Times:    double, in one unit that the caller chooses (rates are bytes per
 *           that unit). Finite, >= 0.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/alloc.h"
#include "heddle/status.h"
#include "heddle/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- graphs ---------------------------------------------------------------- */

#define HEDDLE_PLAN_NONE UINT32_MAX

/* Something an operation makes. The values of an operation follow each other;
 * those of op NONE may be anywhere. */
struct heddle_plan_value {
    uint64_t bytes; /* 0: a view, costs nothing */
    uint32_t op;    /* that makes it; NONE: there from the beginning and at the
                       end (weights, optimizer states), unless an operation took
                       its memory in place */
    uint32_t flags; /* enum heddle_plan_value_flag */
};

/* "There" at the end: in memory, or a copy of it on the host or disk. */
enum heddle_plan_value_flag {
    HEDDLE_PLAN_RESULT = 1, /* must be there at the end */
    HEDDLE_PLAN_TAPE = 2,   /* saved for the backward operation only */
    HEDDLE_PLAN_AT_HOST = 4 /* op NONE: begins on the host, not in memory */
};

struct heddle_plan_op {
    const char *name; /* may be NULL */
    double time;
    uint64_t work_bytes;  /* while it runs */
    uint32_t first_value; /* it makes values first_value .. + nvalues - 1 */
    uint32_t nvalues;     /* at most 64; may be 0 */
    uint32_t first_input; /* in inputs[] */
    uint32_t ninputs;
    uint32_t inplace; /* an input, not smaller than its first output, whose
                         memory that output may take; NONE */
    uint32_t flags;   /* enum heddle_plan_op_flag */
};

enum heddle_plan_op_flag {
    HEDDLE_PLAN_BACKWARD = 1, /* known to be of the backward pass */
    HEDDLE_PLAN_ONCE = 2      /* must not be computed again (random, update) */
};

/*
 * A graph. Operations are in a topological order, which is the order of their
 * first computation in plans that do not reorder. While an operation runs, its
 * inputs, the outputs that are asked of it, and its workspace are in memory. Its
 * first output is always made; another one that nobody asked for is not: the
 * forward pass of a layer without its tape is the same operation with fewer
 * outputs.
 */
struct heddle_plan_graph {
    size_t size;
    const char *name; /* never NULL */
    uint32_t nops, nvalues, ninputs;
    const struct heddle_plan_op *ops;
    const struct heddle_plan_value *values;
    const uint32_t *inputs;                /* values; those of an op are sorted, each once */
    double unit_s;                         /* seconds per unit of time; 0: not known */
    const struct heddle_plan_chain *chain; /* NULL: it was not given as a chain */
};

/*
 * A chain of layers 0 .. n-1, and the loss. Layer i makes activation x[i + 1]
 * from x[i], or its tape t[i + 1], which contains x[i + 1]; its backward takes
 * the gradient of x[i + 1], t[i + 1] and x[i], and makes the gradient of x[i],
 * which is as large. The loss takes x[n], no time, and makes the gradient of
 * x[n].
 *
 * As a graph: ops F_i = i, loss = n, B_i = 2n - i. Value 0 is x[0], there from
 * the beginning. F_i makes x[i + 1], which is value 2i + 1, and the rest of its
 * tape, t[i + 1] - x[i + 1] bytes (a TAPE), which is value 2i + 2. The loss makes
 * value 2n + 1, B_i value 3n + 1 - i.
 */
struct heddle_plan_chain {
    uint32_t n;
    const uint64_t *x;      /* [n + 1] */
    const uint64_t *t;      /* [n + 1], t[0] unused; t[i] >= x[i] */
    const double *forward;  /* [n] */
    const double *backward; /* [n] */
    const uint64_t *work_f; /* [n] */
    const uint64_t *work_b; /* [n] */
};

struct heddle_plan_opts {
    size_t size;
    const struct heddle_allocator *alloc; /* NULL: the default */
    char *why;                            /* a sentence; may be NULL */
    size_t why_bytes;
};

/* Functions below take graphs that one of these made. */
/* Checks and copies; desc->chain is not looked at. HEDDLE_EINVAL (also: an output of a later op
 * as input, a sum
 * that overflows, a time that is negative or not finite), HEDDLE_ENOMEM. */
HEDDLE_API HEDDLE_MUST_USE heddle_status
heddle_plan_graph_create(const struct heddle_plan_graph *desc, const struct heddle_plan_opts *opts,
                         struct heddle_plan_graph **out);
HEDDLE_API HEDDLE_MUST_USE heddle_status
heddle_plan_graph_from_chain(const struct heddle_plan_chain *chain, const char *name,
                             const struct heddle_plan_opts *opts, struct heddle_plan_graph **out);
/* Our text format (docs/formats/plan.md), `.dag` and `.chain` files; by content.
 * HEDDLE_EFORMAT with file and line in the sentence, HEDDLE_ENOENT, HEDDLE_EIO. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_plan_graph_read(const char *path,
                                                                const struct heddle_plan_opts *opts,
                                                                struct heddle_plan_graph **out);
/* The tasks of a run with what they took, and the handles they wrote. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_plan_graph_from_log(
    const heddle_log *log, const struct heddle_plan_opts *opts, struct heddle_plan_graph **out);
HEDDLE_API void heddle_plan_graph_destroy(struct heddle_plan_graph *g);

/* --- machines -------------------------------------------------------------- */

/* A store beyond the device's memory: the host, a disk. */
struct heddle_plan_store {
    double out_rate; /* bytes per unit of time, towards it; 0: there is none */
    double in_rate;  /* and back */
    uint64_t bytes;  /* 0: no limit */
};

struct heddle_plan_machine {
    size_t size;
    uint64_t budget; /* bytes of device memory, addresses included */
    uint64_t align;  /* of addresses; 0: 1 */
    struct heddle_plan_store host, disk;
    uint32_t ndevices; /* for pipelines; 0: 1 */
    double link_rate;  /* between devices; 0: free */
};

/* A machine file (docs/formats/plan.md). Rates there may be per second: unit_s is
 * heddle_plan_graph.unit_s; 0: such rates are refused. Set out->size before. Errors
 * as heddle_plan_graph_read. */
HEDDLE_API HEDDLE_MUST_USE heddle_status
heddle_plan_machine_read(const char *path, double unit_s, const struct heddle_plan_opts *opts,
                         struct heddle_plan_machine *out);
/* "12GB/s", "512MiB/s", "3.5": bytes per unit of time. HEDDLE_EINVAL. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_plan_parse_rate(const char *text, double unit_s,
                                                                double *out);

/* --- plans ----------------------------------------------------------------- */

enum heddle_plan_step_kind {
    HEDDLE_PLAN_COMPUTE = 0, /* `what`: an op */
    HEDDLE_PLAN_DISCARD,     /* `what`: a value, in memory; of op NONE: only with
                                a copy elsewhere */
    HEDDLE_PLAN_OFFLOAD,     /* a value: copied to the host (level 1) or disk (2) */
    HEDDLE_PLAN_PREFETCH,    /* and back; has its room from its start on */
    HEDDLE_PLAN_FORGET       /* the copy on the host or disk is not needed */
};

/*
 * Steps are a program: room is taken and given back in their order.
 *
 * Computations run one after the other on one stream; copies to and from each
 * store run on one stream for each direction, in their order. A step begins when
 * its stream is free and
 *   COMPUTE   its inputs are in memory, its room is free, and copies of a value
 *             whose memory it takes in place have ended
 *   PREFETCH  the copy it reads is complete, and its room is free
 *   OFFLOAD   the value is in memory, and what steps before it forgot on that
 *             store is free
 * "Its room is free": everything that steps before it gave back is free. A
 * DISCARD gives back when the last computation before it and all copies of its
 * value have ended; a computation gives back its workspace, and what it took in
 * place beyond its needs, when it ends; a FORGET gives back when copies of its value to and from
 * that store have ended.
 * The makespan is the end of the last step.
 */
struct heddle_plan_step {
    uint8_t kind;
    uint8_t level; /* 1 host, 2 disk; 0 otherwise */
    bool in_place; /* COMPUTE: the first output takes the memory of op.inplace,
                         which is gone after it */
    uint32_t what;
    uint64_t outputs; /* COMPUTE: bit i: output i is made, if it is not in
                         memory already; bit 0 is set when there are outputs */
};

/* Where something of more than 0 bytes is in the arena, from that step on. */
struct heddle_plan_place {
    uint32_t step;  /* COMPUTE or PREFETCH; 0 for what is there before it */
    uint32_t value; /* NONE: the workspace of the step, for the step */
    uint64_t offset;
};

struct heddle_plan {
    size_t size;
    const char *solver; /* that made it */
    uint64_t budget;
    uint64_t peak_bytes;  /* sum of what is alive, at most */
    uint64_t arena_bytes; /* addresses are below this; <= budget */
    double makespan;
    double compute;         /* sum of all computations */
    double baseline;        /* every op once */
    double link_busy;       /* all copies */
    double lower_bound;     /* no plan is shorter: see bound_note */
    const char *bound_note; /* what the bound assumes; never NULL */
    double seconds;         /* it took to find */
    uint32_t nsteps, nplaces;
    const struct heddle_plan_step *steps;
    const struct heddle_plan_place *places; /* by step, then by value */
};

struct heddle_plan_solve_opts {
    size_t size;
    const char *solver;  /* NULL: the best for this graph */
    double time_limit_s; /* 0: 2 s; solvers that improve use it */
    uint64_t seed;
    uint32_t slots; /* of chain solvers that count in units; 0: they choose */
    bool moves;     /* data may be moved to machine.host and disk */
    /* Called now and then with the best so far; false: stop. May be NULL. */
    bool (*progress)(void *user, double seconds, const struct heddle_plan *best);
    void *user;
    const struct heddle_allocator *alloc; /* NULL: the default */
    char *why;                            /* a sentence; may be NULL */
    size_t why_bytes;
    /* A plan of the same graph that fits m->budget, or NULL: the answer is not
     * worse. One for less memory is one for more: passed on from budget to budget,
     * more memory never costs time. */
    const struct heddle_plan *known;
};

/*
 * HEDDLE_OK      a plan; it fits
 * HEDDLE_ENOENT  no plan exists (the sentence names the operation that alone
 *                needs more), or none was found
 * HEDDLE_EINVAL  also: no such solver, or not one for this graph
 * HEDDLE_ENOMEM
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status
heddle_plan_solve(const struct heddle_plan_graph *g, const struct heddle_plan_machine *m,
                  const struct heddle_plan_solve_opts *opts, struct heddle_plan **out);
HEDDLE_API void heddle_plan_destroy(struct heddle_plan *p);

/* What is known of a sequence beyond its operations. */
struct heddle_plan_sequence_claim {
    const char *solver;     /* that found it; NULL: "sequence" */
    double lower_bound;     /* on the makespan; 0: every op once */
    const char *bound_note; /* what the bound assumes; NULL: "every op once" */
};

/*
 * A plan of operations in an order that somebody else found; an op may occur
 * several times, and every op does. What an occurrence makes serves all readers up
 * to the next occurrence of the same op and is dropped behind the last of them.
 *
 * HEDDLE_OK      it fits
 * HEDDLE_ENOENT  what is alive or its addresses need more than m->budget
 * HEDDLE_EINVAL  a reader without what it reads, an op that is missing or
 *                repeated though it must not be, a bound above the makespan
 * HEDDLE_ENOMEM
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_plan_from_sequence(
    const struct heddle_plan_graph *g, const struct heddle_plan_machine *m, const uint32_t *ops,
    size_t nops, const struct heddle_plan_sequence_claim *claim,
    const struct heddle_plan_opts *opts, struct heddle_plan **out);

struct heddle_plan_solver {
    const char *name, *help;
    bool is_for_chains; /* only graphs that were given as chains */
};
/* Number i, or NULL. */
HEDDLE_API const struct heddle_plan_solver *heddle_plan_get_solver(size_t i);

/* Least memory that any plan needs: that of the op with the largest inputs +
 * first output + workspace, or that of the beginning (*op_out is NONE then);
 * op_out may be NULL. */
HEDDLE_API uint64_t heddle_plan_floor(const struct heddle_plan_graph *g, uint32_t *op_out);
/* The same for plans that move nothing, and better: an operation needs inputs that
 * have to be computed while others are there, in whatever order. A search of at
 * most so many seconds; what it has by then is a bound as well. HEDDLE_ENOMEM,
 * HEDDLE_EINVAL. */
HEDDLE_API heddle_status heddle_plan_least(const struct heddle_plan_graph *g, double seconds,
                                           const struct heddle_plan_opts *o, uint64_t *out);
/* Memory of the given order with nothing dropped before its last use, and
 * everything that somebody needs made once. What begins on the host counts from
 * its first use. */
HEDDLE_API uint64_t heddle_plan_peak(const struct heddle_plan_graph *g);

/* When each step begins and ends, by the rules above: arrays of p->nsteps. Those
 * of a DISCARD and a FORGET are when they give back. HEDDLE_EINVAL: a step that
 * cannot be done. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_plan_times(const struct heddle_plan_graph *g,
                                                           const struct heddle_plan_machine *m,
                                                           const struct heddle_plan *p,
                                                           const struct heddle_plan_opts *opts,
                                                           double *begin_out, double *end_out);

/* --- the checker ------------------------------------------------------------ */

struct heddle_plan_report {
    size_t size;
    uint64_t peak_bytes, arena_bytes, host_bytes, disk_bytes;
    double makespan, compute, link_busy;
    uint32_t ncomputed, nrepeated, nmoved; /* steps */
    uint32_t bad_step;                     /* NONE: all is well */
};

/*
 * Runs the plan on paper: shares no code with the solvers. HEDDLE_OK: it is whole
 * (every op at least once, results there at the end), never needs what is not
 * there, addresses do not overlap, budget and stores suffice, and what it claims
 * (peak, arena, makespan, compute, baseline, link) is so: bytes exactly, times to
 * 1e-9 of their size. It cannot verify the lower bound beyond bound <= makespan.
 * HEDDLE_EINVAL: the sentence says which step and why. report_out may be NULL.
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_plan_check(const struct heddle_plan_graph *g,
                                                           const struct heddle_plan_machine *m,
                                                           const struct heddle_plan *p,
                                                           const struct heddle_plan_opts *opts,
                                                           struct heddle_plan_report *report_out);

/* Text, versioned (docs/formats/plan.md). */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_plan_write(const struct heddle_plan_graph *g,
                                                           const struct heddle_plan_machine *m,
                                                           const struct heddle_plan *p,
                                                           const char *path,
                                                           const struct heddle_plan_opts *opts);
/* With the graph and the machine it is for; set machine_out->size before. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_plan_read(const char *path,
                                                          const struct heddle_plan_opts *opts,
                                                          struct heddle_plan_graph **graph_out,
                                                          struct heddle_plan_machine *machine_out,
                                                          struct heddle_plan **plan_out);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_PLAN_H */
