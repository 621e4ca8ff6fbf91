/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_SPREAD_SPREAD_H
#define HEDDLE_SPREAD_SPREAD_H

/*
 * Private to spread: the problem as methods see it, the contract of a method, and the tools
 * that methods share.
 *
 * A resource is a class, or one way of a link: class r is resource r, the link to memory k is
 * nclasses + 2 k, the link from it nclasses + 2 k + 1. The load of a resource is its time per
 * request over what it has per unit of time; the period of a route alone is its greatest load.
 *
 * check.c does not include this header: it must not share anything.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/scratch.h"
#include "base/why.h"
#include "heddle/spread.h"

#define SPREAD_NONE UINT32_MAX
enum { SPREAD_RESOURCES = HEDDLE_SPREAD_CLASSES + 2 * HEDDLE_SPREAD_NODES };

struct spread_program;

/* Lists of indices: those of k are list[end[k]] .. list[end[k + 1] - 1]. */
struct spread_lists {
    uint32_t *end, *list;
};

/* The checked problem; read-only for methods. */
struct spread_problem {
    struct heddle_spread_graph g;
    struct heddle_spread_machine m;
    struct heddle_spread_opts o;
    uint32_t nresources;
    double *load;               /* [nops x nclasses] time / workers */
    struct spread_lists in;     /* values that an operator reads, each once */
    struct spread_lists made;   /* values that an operator makes */
    struct spread_lists used;   /* readers of a value, SPREAD_NONE for a result, each once */
    uint32_t fastest;           /* the class with the least period alone, of those that can run all;
                                 SPREAD_NONE: none can */
    bool has_limits;            /* some memory but the host's has one */
    uint32_t *by_weight;        /* [nops] operators, heaviest weights first */
    double *end;                /* [nops] scratch of heddle_spread_measure() */
    struct spread_program *all; /* over all routes, without limits of memory, solved; with one far
                                   memory at most, else of the relaxed problem */
    double bound;
};

/* Where each operator runs. */
struct spread_route {
    uint32_t *cls;        /* [nops] */
    uint8_t *is_streamed; /* [nops] the weights are copied for each request */
    double load[SPREAD_RESOURCES];
    double period, latency;
    uint64_t link_bytes;
};

/* Methods return routes with rates; the memories of all together must fit. */
struct spread_set {
    struct spread_route *route;
    double *rate;
    uint32_t n;
};

/*
 * A method: one file, one line in spread.def. run() makes a set of routes; memory comes from
 * `mem`, which the caller drops.
 */
struct heddle_spread_ops {
    const char *name;
    const char *help;
    heddle_status (*run)(const struct spread_problem *p, struct heddle_scratch *mem,
                         struct spread_set *out);
};

#define SPREAD_FAIL(p, st, ...) heddle_why((p)->o.why, (p)->o.why_bytes, st, __VA_ARGS__)

static inline double spread_time(const struct spread_problem *p, uint32_t op, uint32_t cls)
{
    return p->g.time[(size_t)op * p->m.nclasses + cls];
}

static inline uint64_t spread_weights(const struct spread_problem *p, uint32_t op)
{
    return p->g.weights != NULL ? p->g.weights[op] : 0;
}

static inline double spread_in(const struct spread_problem *p, uint32_t node, double bytes)
{
    return p->m.memory[node].in_latency + bytes / p->m.memory[node].in_rate;
}

static inline double spread_out(const struct spread_problem *p, uint32_t node, double bytes)
{
    return p->m.memory[node].out_latency + bytes / p->m.memory[node].out_rate;
}

/* graph.c: the caller's arrays, checked, and indices. */
heddle_status heddle_spread_build(const struct heddle_spread_graph *g,
                                  const struct heddle_spread_machine *m,
                                  const struct heddle_spread_opts *o, struct heddle_scratch *mem,
                                  struct spread_problem *out);

/* --- route.c ------------------------------------------------------------------------------ */

/* With all operators on class 0, nothing streamed. */
heddle_status heddle_spread_route(const struct spread_problem *p, struct heddle_scratch *mem,
                                  struct spread_route *out);
void heddle_spread_copy(const struct spread_problem *p, struct spread_route *to,
                        const struct spread_route *from);
/* Loads, latency and bytes, from classes and streamed weights. False: an operator is where it
 * cannot run. */
bool heddle_spread_measure(const struct spread_problem *p, struct spread_route *r);
/* Streams weights so that those of a route alone fit, as few bytes as possible but for one
 * operator's, and measures. False: they cannot fit, or an operator cannot run. */
bool heddle_spread_fit(const struct spread_problem *p, struct spread_route *r);
/* The same for one memory, without measuring. */
bool heddle_spread_fit_node(const struct spread_problem *p, struct spread_route *r, uint32_t node);
/* One route, at its own period. HEDDLE_ENOENT: it does not fit. */
heddle_status heddle_spread_alone(const struct spread_problem *p, struct heddle_scratch *mem,
                                  const struct spread_route *r, struct spread_set *out);
/* Is each class one segment: does no chain of operators leave a class and come back? */
bool heddle_spread_is_convex(const struct spread_problem *p, const uint32_t *cls);

/* --- prefix positions, chain.c ------------------------------------------------------------ */

/* Positions where a network is cut best: cut[i] operators before the cut, in ascending order, at
 * most `most`; 0 and nops are not among them. */
heddle_status heddle_spread_cuts(const struct spread_problem *p, uint32_t most,
                                 struct heddle_scratch *mem, uint32_t **cut_out, uint32_t *n_out);

/* A route of up to two cuts: operators below a on x, below b on y, the others on z. */
struct spread_chain {
    uint32_t a, b;
    uint8_t x, y, z;
};
void heddle_spread_chain_classes(const struct spread_problem *p, const struct spread_chain *c,
                                 uint32_t *cls);
/* Calls fn with each route of up to two cuts that can run; the route is the callee's until it
 * returns. Nothing is streamed. */
typedef heddle_status (*spread_chain_fn)(void *user, const struct spread_chain *c,
                                         struct spread_route *r);
heddle_status heddle_spread_each_chain(const struct spread_problem *p, struct heddle_scratch *mem,
                                       spread_chain_fn fn, void *user);

/* --- cut.c ----------------------------------------------------------------------------------- */

/* What becomes of the weights of an operator in a memory. */
enum { SPREAD_KEPT = 0, SPREAD_STREAMED = 1, SPREAD_NOT_HERE = 2 };

/* What the use of a resource costs; weights[op * nnodes + k], NULL: all are kept. */
struct spread_prices {
    double price[SPREAD_RESOURCES];
    const uint8_t *weights;
};
/* The cheapest route, and what it costs at least; with the host's memory and at most one other. */
heddle_status heddle_spread_cheapest(const struct spread_problem *p, const struct spread_prices *x,
                                     struct heddle_scratch *mem, struct spread_route *r,
                                     double *least_out);

/* --- program.c ------------------------------------------------------------------------------- */

/* The linear program over routes: the best rates of the routes it was given. */
heddle_status heddle_spread_program(const struct spread_problem *p, struct heddle_scratch *mem,
                                    struct spread_program **out);
/* Adds routes, each the cheapest at the prices so far, until no route can help; *bound_out (may
 * be NULL): no spread has a shorter period. weights as in struct spread_prices. For machines with
 * one far memory at most. */
heddle_status heddle_spread_grow(struct spread_program *x, const uint8_t *weights,
                                 double *bound_out);
/* Adds a measured route, which is copied. HEDDLE_EOVERFLOW: there is no room for another, or the
 * route takes no time; HEDDLE_ENOMEM. */
heddle_status heddle_spread_add(struct spread_program *x, const struct spread_route *r);
/* False: rounding won. */
bool heddle_spread_solve(struct spread_program *x);
/* Of the last solution. */
double heddle_spread_period(const struct spread_program *x);
void heddle_spread_prices(const struct spread_program *x, double *price);
/* The routes with a rate. */
heddle_status heddle_spread_take(struct spread_program *x, struct heddle_scratch *mem,
                                 struct spread_set *out);

#endif /* HEDDLE_SPREAD_SPREAD_H */
