/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_ENERGY_BOUND_H
#define HEDDLE_ENERGY_BOUND_H

/*
 * heddle/energy_bound.h - how little energy a task graph needs, and schedules
 * that need little.
 *
 * The energy of a schedule of length T is
 *
 *     sum over tasks of joules(task, type it runs on) + idle * T
 *
 * heddle_energy_bound() finds a lower bound on this energy over all schedules, or over
 * all schedules that keep a deadline, with a certificate that
 * heddle_energy_bound_check() verifies without the code that found it.
 * heddle_energy_schedule() looks for a schedule near that bound.
 * docs/design/energy-bounds.md has the mathematics.
 *
 * Graphs and machines are those of heddle/bound.h, schedules those of
 * heddle/offline.h. Transfers are not counted: they only cost more.
 *
 * Threads:  pure functions; any thread.
 * Errors:   functions return heddle_status; on failure nothing has changed and a
 *           sentence is in the `why` of the options.
 */
#include <stddef.h>
#include <stdint.h>

#include "heddle/alloc.h"
#include "heddle/bound.h"
#include "heddle/energy.h"
#include "heddle/log_graph.h"
#include "heddle/offline.h"
#include "heddle/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A graph, a machine, and the energy of its tasks. Borrowed for the time of a call. */
struct heddle_energy_graph {
    size_t size; /* sizeof(struct heddle_energy_graph) */
    const struct heddle_bound_graph *graph;
    const double *joules; /* [rows x ntypes] of a kind on a type, above idle, as
                             graph->time; >= 0 where the time is finite */
    double idle;          /* joules per unit of time of the whole machine */
    uint64_t reserved[2]; /* zero: fields to come, as in heddle_bound_graph */
};

/* --- from a model ----------------------------------------------------------- */

/* A state of some workers of a type for the whole run: a cap of the model. */
struct heddle_energy_state {
    const char *type;  /* a type of the log's graph by its name, "cuda0", or all types of
                         a kind by the beginning of their names, "cuda" */
    uint32_t nworkers; /* so many workers of each such type; 0: all */
    const char *cap;   /* the name of a cap of the model */
};

/* The result of heddle_energy_graph_create(). The names of types belong to the log graph; a
 * type whose workers were split appears once per state. */
struct heddle_energy_instance {
    size_t size; /* the size the library knows */
    struct heddle_energy_graph eg;
    struct heddle_bound_graph graph; /* eg.graph is this one */
    const uint32_t *type_of;         /* [graph.ntypes] type in the log's graph */
    const char *const *cap;          /* [graph.ntypes] name of its state or NULL */
    double run_joules;               /* of the run as recorded, tasks above idle; NAN:
                                 not known, a task ran on no type of the graph */
    void *own;
};

/*
 * Makes the instance of a log's graph: the joules of each kind of task on each type are the
 * watts of the model times the times of the graph, which are nanoseconds; idle power is that
 * of all domains. The log graph must live as long as the instance.
 *
 * HEDDLE_ENOENT  the model has no watts for a kernel on a type that can run it,
 *                no idle power, or no such cap; the sentence names it
 * HEDDLE_EINVAL  an argument is NULL; no type has the name of a state, or a type has fewer
 *                workers than a state asks for
 * HEDDLE_EOVERFLOW  more than HEDDLE_BOUND_TYPES_MAX types
 * HEDDLE_ENOMEM  no memory
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_energy_graph_create(
    const struct heddle_allocator *alloc, const heddle_energy *model,
    const struct heddle_log_graph *log, const struct heddle_energy_state *state, size_t nstates,
    struct heddle_energy_instance **out, char *why, size_t why_bytes);

/* Frees an instance. NULL is fine. */
HEDDLE_API void heddle_energy_graph_destroy(struct heddle_energy_instance *instance);

/* --- energy of a schedule --------------------------------------------------- */

/* The energy of a schedule. */
struct heddle_energy_cost {
    double active; /* joules of the tasks */
    double idle;   /* idle power times length */
    double total;
};

/* Computes the energy of a schedule. HEDDLE_EINVAL: an argument is NULL, sizes do not fit, or a
 * task is on a type that cannot run it. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_energy_of_schedule(
    const struct heddle_energy_graph *eg, const struct heddle_offline_result *schedule,
    struct heddle_energy_cost *out);

/* --- bounds ----------------------------------------------------------------- */

/*
 * What proves a bound: a weighted sum of reasons why time passes. Each term is a
 * certificate of heddle/bound.h, of which head h, tail q, prices and flow are
 * used: with S, f and mu as said there, and n = sum(nworkers[r] * price[r]) + mu,
 *
 *     sum over t in S of (price[r(t)] + f(t)) time(t, r(t))  <=  n (T - h - q)
 *
 * in every schedule of length T, whatever types r(t) it uses. Adding the
 * terms with their weights to the energy gives: every schedule with T <= deadline
 * uses at least
 *
 *     sum over t of min over r of [ joules(t,r) + c(t,r) time(t,r) ]
 *         + sum over terms of weight n (h + q)  -  max(0, s - idle) deadline
 *
 * with c(t,r) the sum over the terms with t in S of weight (price[r] + f(t)), and
 * s that of weight n. The minimum is over the types with head(t) + time(t,r) +
 * tail(t) <= deadline: on others t cannot run in time. Without a deadline
 * (INFINITY) the weights are scaled so that s <= idle.
 */
struct heddle_energy_cert {
    double value;
    double deadline; /* INFINITY: none */
    uint32_t nterms;
    const struct heddle_bound_cert *term; /* [nterms] */
    const double *weight;                 /* [nterms] >= 0 */
};

/* Limits of heddle_energy_bound(); zero is a default everywhere. */
struct heddle_energy_limits {
    size_t size;                            /* sizeof(struct heddle_energy_limits) */
    double deadline;                        /* in the unit of the times; 0: none */
    uint32_t iterations;                    /* 0: 400 */
    uint64_t time_ns;                       /* 0: 10 s, UINT64_MAX: no limit */
    double gap;                             /* stop this close to the optimum of the linear program,
                            relative; 0: 0.0005 */
    const struct heddle_bound_result *time; /* bounds on the length that were
                            found before; NULL: they are computed */
    char *why;
    size_t why_bytes;
    const struct heddle_allocator *alloc;
};

/* A lower bound on the energy, with its certificate. */
struct heddle_energy_bound_result {
    size_t size;                    /* sizeof(struct heddle_energy_bound_result) */
    void *own;                      /* what fini frees */
    double value;                   /* joules; INFINITY: no schedule keeps the deadline */
    double upper;                   /* the optimum of the linear program is about this */
    struct heddle_energy_cert cert; /* proves `value`. Value INFINITY: proves that a
                                       schedule within the deadline would need more
                                       joules than its tasks can draw; without
                                       terms, `time` is the proof */
    struct heddle_bound_cert time;  /* the best bound on the length */
    uint32_t iterations;
    uint64_t time_ns;
};

/*
 * Computes a lower bound. Set result_out->size before; end the result with
 * heddle_energy_bound_fini().
 * Stopping early weakens the bound, never falsifies it. An impossible deadline
 * is an answer, no failure: value is INFINITY and the sentence is in
 * limits->why.
 *
 * HEDDLE_EINVAL  a pointer is missing, a size is wrong, joules or idle are
 *                negative or not finite, the deadline is not a number >= 0;
 *                what heddle_bound_all() refuses
 * HEDDLE_ECYCLE  the edges form a cycle
 * HEDDLE_ENOMEM  no memory
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status
heddle_energy_bound(const struct heddle_energy_graph *eg, const struct heddle_energy_limits *limits,
                    struct heddle_energy_bound_result *result_out);

/* Frees the certificates and zeroes the result but for its size. NULL is fine. */
HEDDLE_API void heddle_energy_bound_fini(struct heddle_energy_bound_result *result);

/*
 * Recomputes what the certificate proves, which is stored in *proven_out (may be
 * NULL). `value` may exceed it by 1e-9 of itself. Shares no code with what
 * computes bounds. Of `limits`, which may be NULL, why and alloc are used.
 *
 * HEDDLE_OK      value is proven
 * HEDDLE_EINVAL  the certificate proves less than `value`; or the certificate or the
 *                graph is malformed
 * HEDDLE_ECYCLE  the edges form a cycle
 * HEDDLE_ENOMEM  no memory
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_energy_bound_check(
    const struct heddle_energy_graph *eg, const struct heddle_energy_cert *cert, double value,
    const struct heddle_energy_limits *limits, double *proven_out);

/* --- schedules -------------------------------------------------------------- */

/* What a schedule shall minimise. */
enum heddle_energy_goal {
    HEDDLE_ENERGY_LEAST = 0, /* joules */
    HEDDLE_ENERGY_EDP,       /* joules times length */
    HEDDLE_ENERGY_WEIGHTED,  /* weight * joules + (1 - weight) * length, each
                                over that of the fastest schedule */
    HEDDLE_ENERGY_NGOALS
};

/* Options of heddle_energy_schedule(); zero is a default everywhere. */
struct heddle_energy_opts {
    size_t size; /* sizeof(struct heddle_energy_opts) */
    enum heddle_energy_goal goal;
    double weight;   /* of HEDDLE_ENERGY_WEIGHTED, 0 to 1 */
    double deadline; /* no longer than this; 0: (1 + slack) times the fastest
                        that was found */
    double slack;    /* INFINITY: no deadline at all */
    const struct heddle_offline_result *fastest; /* the fastest schedule, when it is known;
                        NULL: a part of the limits goes into finding it */
    uint64_t seed;
    uint64_t time_ns;    /* 0: 2 s, UINT64_MAX: no limit */
    uint64_t iterations; /* of each search; 0: no limit. With no limit of time
                            the result depends on iterations and seed only */
    char *why;
    size_t why_bytes;
    const struct heddle_allocator *alloc;
};

/*
 * Makes a schedule that keeps the deadline and is as good as the search finds. Set
 * result_out->size before; end it with heddle_offline_fini(). *fastest_out
 * (may be NULL) is the length of the fastest schedule.
 *
 * HEDDLE_ENOENT  no schedule was found that keeps the deadline; *fastest_out is
 *                set all the same
 * HEDDLE_EINVAL  as heddle_energy_bound(); a weight that is not from 0 to 1; no
 *                limit at all
 * HEDDLE_ECYCLE  the edges form a cycle
 * HEDDLE_ENOMEM  no memory
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status
heddle_energy_schedule(const struct heddle_energy_graph *eg, const struct heddle_energy_opts *opts,
                       struct heddle_offline_result *result_out, double *fastest_out);

/* --- the trade-off ---------------------------------------------------------- */

/* A point of the curve of time against energy. */
struct heddle_energy_point {
    double deadline;
    double makespan; /* of a schedule that keeps it */
    struct heddle_energy_cost cost;
    double bound; /* on the energy of every schedule that keeps it */
};

/*
 * The curve from the fastest schedule to the one that needs the least energy:
 * n >= 2 points of rising deadline. A schedule that keeps a deadline also keeps the
 * later deadlines, so energy never rises; nor do bounds. The limits of
 * `opts` are for all points together; its goal, deadline and slack are not used.
 *
 * `out` has room for n points; *nout is how many of them were filled, which may be fewer.
 * Errors as heddle_energy_schedule().
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status
heddle_energy_frontier(const struct heddle_energy_graph *eg, const struct heddle_energy_opts *opts,
                       uint32_t n, struct heddle_energy_point *out, uint32_t *nout);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_ENERGY_BOUND_H */
