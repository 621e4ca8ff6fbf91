/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PLAN_H
#define HEDDLE_PLAN_H

/*
 * heddle/plan.h - train what does not fit.
 *
 * From a graph of operations and a machine with a memory budget a solver makes a plan:
 * which values are computed, computed again, dropped, moved to the host and back, in
 * which order and at which addresses. Every plan has a lower bound on the time, and
 * heddle_plan_check() verifies a plan without the code that made it.
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

/* No operation, no value, no step. */
#define HEDDLE_PLAN_NONE UINT32_MAX

/* A value that an operation makes. The values of one operation have consecutive numbers;
 * values with op NONE may have any. */
struct heddle_plan_value {
    uint64_t bytes; /* 0: a view, which needs no memory */
    uint32_t op;    /* the operation that makes it; NONE: the value exists at the beginning
                       and at the end (weights, optimizer states), unless an operation
                       took its memory in place */
    uint32_t flags; /* enum heddle_plan_value_flag */
};

/* heddle_plan_value.flags */
enum heddle_plan_value_flag {
    HEDDLE_PLAN_RESULT = 1, /* at the end it must be in memory, or on the host or disk */
    HEDDLE_PLAN_TAPE = 2,   /* saved for the backward operation only */
    HEDDLE_PLAN_AT_HOST = 4 /* op NONE: begins on the host, not in memory */
};

/* An operation of a graph. */
struct heddle_plan_op {
    const char *name; /* may be NULL */
    double time;
    uint64_t work_bytes;  /* workspace while the operation runs */
    uint32_t first_value; /* it makes values first_value .. first_value + nvalues - 1 */
    uint32_t nvalues;     /* at most 64; may be 0 */
    uint32_t first_input; /* in inputs[] */
    uint32_t ninputs;
    uint32_t inplace; /* an input, not smaller than its first output, whose
                         memory that output may take; NONE */
    uint32_t flags;   /* enum heddle_plan_op_flag */
};

/* heddle_plan_op.flags */
enum heddle_plan_op_flag {
    HEDDLE_PLAN_BACKWARD = 1, /* part of the backward pass */
    HEDDLE_PLAN_ONCE = 2      /* must not be computed again (random, update) */
};

/*
 * A graph. Operations are in a topological order, which is the order of their first
 * computation in plans that do not reorder. While an operation runs, its inputs, the
 * outputs that the plan asks for, and its workspace are in memory. The first output is
 * always made, the others only when the plan asks for them: the forward pass of a layer
 * without its tape is the same operation with fewer outputs.
 */
struct heddle_plan_graph {
    size_t size;
    const char *name; /* never NULL */
    uint32_t nops, nvalues, ninputs;
    const struct heddle_plan_op *ops;
    const struct heddle_plan_value *values;
    const uint32_t *inputs;                /* values; the inputs of an op are sorted */
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

/* What most functions need besides their arguments; zero is a default everywhere. */
struct heddle_plan_opts {
    size_t size;
    const struct heddle_allocator *alloc; /* NULL: the default */
    char *why;                            /* a sentence; may be NULL */
    size_t why_bytes;
};

/* Makes a graph: checks the description and copies it; desc->chain is not read. The other
 * functions accept only graphs made by this function or by one of the next three.
 * HEDDLE_EINVAL (also: an input that a later operation makes, a sum that overflows, a time
 * that is negative or not finite), HEDDLE_ENOMEM. */
HEDDLE_API HEDDLE_MUST_USE heddle_status
heddle_plan_graph_create(const struct heddle_plan_graph *desc, const struct heddle_plan_opts *opts,
                         struct heddle_plan_graph **out);
/* Makes the graph of a chain. */
HEDDLE_API HEDDLE_MUST_USE heddle_status
heddle_plan_graph_from_chain(const struct heddle_plan_chain *chain, const char *name,
                             const struct heddle_plan_opts *opts, struct heddle_plan_graph **out);
/* Reads a graph: our text format (docs/formats/plan.md), `.dag` or `.chain`, recognised by
 * content. HEDDLE_EFORMAT with file and line in the sentence, HEDDLE_ENOENT, HEDDLE_EIO. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_plan_graph_read(const char *path,
                                                                const struct heddle_plan_opts *opts,
                                                                struct heddle_plan_graph **out);
/* Makes a graph of a run: its tasks with their times, and the handles they wrote. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_plan_graph_from_log(
    const heddle_log *log, const struct heddle_plan_opts *opts, struct heddle_plan_graph **out);
/* Frees a graph. NULL is fine. */
HEDDLE_API void heddle_plan_graph_destroy(struct heddle_plan_graph *g);

/* --- machines -------------------------------------------------------------- */

/* A store beyond the device's memory: the host, a disk. */
struct heddle_plan_store {
    double out_rate; /* bytes per unit of time towards the store; 0: there is no store */
    double in_rate;  /* and back */
    uint64_t bytes;  /* 0: no limit */
};

/* A device with its memory budget, and the stores beyond it. */
struct heddle_plan_machine {
    size_t size;
    uint64_t budget; /* bytes of device memory, addresses included */
    uint64_t align;  /* of addresses; 0: 1 */
    struct heddle_plan_store host, disk;
    uint32_t ndevices; /* for pipelines; 0: 1 */
    double link_rate;  /* between devices; 0: free */
};

/* Reads a machine file (docs/formats/plan.md). Rates there may be per second: unit_s is
 * heddle_plan_graph.unit_s; 0: such rates are refused. Set out->size before. Errors
 * as heddle_plan_graph_read. */
HEDDLE_API HEDDLE_MUST_USE heddle_status
heddle_plan_machine_read(const char *path, double unit_s, const struct heddle_plan_opts *opts,
                         struct heddle_plan_machine *out);
/* Reads a rate, "12GB/s", "512MiB/s", "3.5", as bytes per unit of time. HEDDLE_EINVAL. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_plan_parse_rate(const char *text, double unit_s,
                                                                double *out);

/* --- plans ----------------------------------------------------------------- */

/* What a step does. `what` is an operation for COMPUTE, a value for the others. */
enum heddle_plan_step_kind {
    HEDDLE_PLAN_COMPUTE = 0, /* runs the operation */
    HEDDLE_PLAN_DISCARD,     /* drops the value from memory; a value with op NONE only
                                when it has a copy elsewhere */
    HEDDLE_PLAN_OFFLOAD,     /* copies the value to the host (level 1) or disk (2) */
    HEDDLE_PLAN_PREFETCH,    /* copies it back; takes its room when the step begins */
    HEDDLE_PLAN_FORGET       /* drops the copy on the host or disk */
};

/*
 * A step of a plan. Steps are a program: room is taken and given back in their order.
 *
 * Computations run one after the other on one stream; copies to and from each
 * store run on one stream for each direction, in their order. A step begins when
 * its stream is free and
 *   COMPUTE   its inputs are in memory, its room is free, and copies of a value
 *             whose memory it takes in place have ended
 *   PREFETCH  the copy it reads is complete, and its room is free
 *   OFFLOAD   the value is in memory, and the room of copies that earlier steps
 *             forgot on that store is free
 * "Its room is free" means that all room that earlier steps give back is free. A DISCARD
 * gives its room back when the last computation before it and all copies of its value have
 * ended; a computation gives back its workspace, and what it took in place beyond its
 * needs, when it ends; a FORGET gives its room back when the copies of its value to and
 * from that store have ended.
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

/* The address of a value or workspace of more than 0 bytes in the arena, from a step on. */
struct heddle_plan_place {
    uint32_t step;  /* COMPUTE or PREFETCH; 0 also for values that exist before step 0 */
    uint32_t value; /* NONE: the workspace of the step, while it runs */
    uint64_t offset;
};

/* A plan: steps, addresses, and what they cost. */
struct heddle_plan {
    size_t size;
    const char *solver; /* the solver that made the plan */
    uint64_t budget;
    uint64_t peak_bytes;  /* the most bytes alive at once */
    uint64_t arena_bytes; /* all addresses are below this; <= budget */
    double makespan;
    double compute;         /* time of all computations */
    double baseline;        /* time of every operation once */
    double link_busy;       /* time of all copies */
    double lower_bound;     /* no plan of the kind that bound_note names is shorter */
    const char *bound_note; /* what the bound assumes; never NULL */
    double seconds;         /* that the solver took */
    uint32_t nsteps, nplaces;
    const struct heddle_plan_step *steps;
    const struct heddle_plan_place *places; /* by step, then by value */
};

/* Options of a solver; zero is a default everywhere. */
struct heddle_plan_solve_opts {
    size_t size;
    const char *solver;  /* NULL: the best for this graph */
    double time_limit_s; /* for solvers that improve a plan; 0: 2 s */
    uint64_t seed;
    uint32_t slots; /* units of memory, for chain solvers that count in units; 0: theirs */
    bool moves;     /* data may be moved to machine.host and disk */
    /* Called now and then with the best plan so far; false: stop. May be NULL. */
    bool (*progress)(void *user, double seconds, const struct heddle_plan *best);
    void *user;
    const struct heddle_allocator *alloc; /* NULL: the default */
    char *why;                            /* a sentence; may be NULL */
    size_t why_bytes;
    /* A plan of the same graph that fits m->budget, or NULL. The answer is not worse. A
     * plan for less memory also fits more memory: a caller that passes it on from budget
     * to budget never pays more time for more memory. */
    const struct heddle_plan *known;
};

/*
 * Makes a plan.
 *
 * HEDDLE_OK      *out is a plan within the budget
 * HEDDLE_ENOENT  no plan exists (the sentence names the operation that needs more than
 *                the budget by itself), or none was found
 * HEDDLE_EINVAL  also: no such solver, or not a solver for this graph
 * HEDDLE_ENOMEM
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status
heddle_plan_solve(const struct heddle_plan_graph *g, const struct heddle_plan_machine *m,
                  const struct heddle_plan_solve_opts *opts, struct heddle_plan **out);
/* Frees a plan. NULL is fine. */
HEDDLE_API void heddle_plan_destroy(struct heddle_plan *p);

/* What the caller knows about a sequence of operations. */
struct heddle_plan_sequence_claim {
    const char *solver;     /* the solver that found it; NULL: "sequence" */
    double lower_bound;     /* on the makespan; 0: the time of every op once */
    const char *bound_note; /* what the bound assumes; NULL: "every op once" */
};

/*
 * Makes a plan of a given sequence of operations, in which every operation occurs at least
 * once. The values of an occurrence serve all readers up to the next occurrence of the
 * same operation, and are dropped after the last of these readers.
 *
 * HEDDLE_OK      *out is a plan within the budget
 * HEDDLE_ENOENT  the values alive, or their addresses, need more than m->budget
 * HEDDLE_EINVAL  an input is missing when an operation reads it, an operation is missing or
 *                repeated though it must not be, a bound above the makespan
 * HEDDLE_ENOMEM
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_plan_from_sequence(
    const struct heddle_plan_graph *g, const struct heddle_plan_machine *m, const uint32_t *ops,
    size_t nops, const struct heddle_plan_sequence_claim *claim,
    const struct heddle_plan_opts *opts, struct heddle_plan **out);

/* A solver. */
struct heddle_plan_solver {
    const char *name, *help;
    bool is_for_chains; /* only graphs that were given as chains */
};
/* Solver number i; NULL: there are no more. */
HEDDLE_API const struct heddle_plan_solver *heddle_plan_get_solver(size_t i);

/* The least memory that any plan needs: inputs, first output and workspace of the
 * operation for which this sum is largest, or the values that exist at the beginning
 * (*op_out is NONE then). op_out may be NULL. 0 without a graph. */
HEDDLE_API uint64_t heddle_plan_floor(const struct heddle_plan_graph *g, uint32_t *op_out);
/* A larger lower bound on the memory, for plans that move nothing: the inputs of an
 * operation have to be computed one after another, in any order, while those computed
 * before stay in memory. The search ends after `seconds` at the latest; its result is a
 * bound in any case. HEDDLE_ENOMEM, HEDDLE_EINVAL. */
HEDDLE_API heddle_status heddle_plan_least(const struct heddle_plan_graph *g, double seconds,
                                           const struct heddle_plan_opts *o, uint64_t *out);
/* The memory of the graph as it is: every operation once in the given order, and every
 * value dropped after its last use. A value that begins on the host counts from its first
 * use. 0 without a graph. */
HEDDLE_API uint64_t heddle_plan_peak(const struct heddle_plan_graph *g);

/* When each step begins and ends, by the rules above: arrays of p->nsteps. The times of a
 * DISCARD and a FORGET are those at which they give room back. HEDDLE_EINVAL: a step
 * cannot be carried out. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_plan_times(const struct heddle_plan_graph *g,
                                                           const struct heddle_plan_machine *m,
                                                           const struct heddle_plan *p,
                                                           const struct heddle_plan_opts *opts,
                                                           double *begin_out, double *end_out);

/* --- the checker ------------------------------------------------------------ */

/* What the checker has computed. */
struct heddle_plan_report {
    size_t size;
    uint64_t peak_bytes, arena_bytes, host_bytes, disk_bytes;
    double makespan, compute, link_busy;
    uint32_t ncomputed, nrepeated, nmoved; /* steps */
    uint32_t bad_step;                     /* the step that is wrong; NONE: no step is */
};

/*
 * Runs the plan on paper, without any code of the solvers. HEDDLE_OK: the plan is whole
 * (every operation at least once, results exist at the end), every step finds what it
 * needs, addresses do not overlap, budget and stores suffice, and the claimed numbers
 * (peak, arena, makespan, compute, baseline, link) are right: bytes exactly, times to 1e-9
 * of their size. Of the lower bound the checker verifies only that it is not above the
 * makespan. HEDDLE_EINVAL: the sentence says which step is wrong and why. report_out may
 * be NULL.
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_plan_check(const struct heddle_plan_graph *g,
                                                           const struct heddle_plan_machine *m,
                                                           const struct heddle_plan *p,
                                                           const struct heddle_plan_opts *opts,
                                                           struct heddle_plan_report *report_out);

/* Writes a plan, with its graph and machine, as text (docs/formats/plan.md). */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_plan_write(const struct heddle_plan_graph *g,
                                                           const struct heddle_plan_machine *m,
                                                           const struct heddle_plan *p,
                                                           const char *path,
                                                           const struct heddle_plan_opts *opts);
/* Reads a plan, with its graph and machine; set machine_out->size before. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_plan_read(const char *path,
                                                          const struct heddle_plan_opts *opts,
                                                          struct heddle_plan_graph **graph_out,
                                                          struct heddle_plan_machine *machine_out,
                                                          struct heddle_plan **plan_out);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_PLAN_H */
