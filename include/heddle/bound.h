/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BOUND_H
#define HEDDLE_BOUND_H

/*
 * heddle/bound.h - how fast a task graph could run at best.
 *
 * Lower bounds on the time from the first start to the last end of a task graph
 * on a machine with several types of workers, without transfers. Each bound has
 * a certificate: a few numbers from which heddle_bound_check() recomputes the
 * bound, without the code that found it. docs/design/bounds.md has the
 * mathematics.
 *
 * Threads:  pure functions; any thread.
 * Errors:   functions return heddle_status; on failure nothing has changed and
 *           a sentence is in limits->why.
 */
#include <stddef.h>
#include <stdint.h>

#include "heddle/alloc.h"
#include "heddle/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The most types of workers. */
#define HEDDLE_BOUND_TYPES_MAX 64

/* A task graph and a machine. The arrays are borrowed for the time of a call.
 * Times have any unit; the bounds have the same. */
struct heddle_bound_graph {
    size_t size; /* sizeof(struct heddle_bound_graph) */

    uint32_t ntasks;
    uint32_t ntypes; /* at most HEDDLE_BOUND_TYPES_MAX */
    uint32_t nkinds; /* rows of `time` when `kind` is given; else unused */
    uint32_t nedges; /* an edge may appear more than once */

    const uint32_t *edge_from; /* [nedges] this task ends ... */
    const uint32_t *edge_to;   /* [nedges] ... before that one starts */
    const uint32_t *nworkers;  /* [ntypes] 0: nothing runs on this type */
    const uint32_t *kind;      /* [ntasks] row of each task; NULL: its index */

    /* [rows x ntypes] the time of a kind of task on a worker of a type; 0 is
     * fine, INFINITY: cannot run there. */
    const double *time;

    uint64_t reserved[4]; /* zero: fields to come; this struct stands inside others,
                             so its size does not change (ADR 0029) */
};

/* The bounds that are computed. */
enum heddle_bound_kind {
    HEDDLE_BOUND_PATH = 0, /* the longest chain, each task where it is fastest */
    HEDDLE_BOUND_AREA,     /* all work spread perfectly, no dependencies */
    HEDDLE_BOUND_MIXED,    /* both at once: at least as good as either */
    HEDDLE_BOUND_WINDOW,   /* area of the tasks between a head and a tail */
    HEDDLE_BOUND_FOCUS,    /* mixed for the tasks between a head and a tail */
    HEDDLE_BOUND_KINDS
};

/* "path", "area", "mixed", "window" or "focus"; "unknown" for other values. */
HEDDLE_API const char *heddle_bound_kind_name(enum heddle_bound_kind kind);

/*
 * What proves a bound. Let S be the tasks that cannot start before `head` and
 * whose successors need at least `tail` after them; with head = tail = 0, all
 * tasks. A flow enters at some tasks of S, follows edges between tasks of S and
 * leaves anywhere; f(t) is what passes task t and mu what enters in all. When
 * sum(nworkers[r] * price[r]) + mu = 1, every schedule takes at least
 *
 *     head + tail + sum over t in S of min over r of (price[r] + f(t)) time(t,r)
 *
 * Only numbers > 0 are listed: start[i] is a task where start_flow[i] enters,
 * edge[i] the index of an edge that carries edge_flow[i].
 */
struct heddle_bound_cert {
    double value; /* the bound */
    double head;
    double tail;
    uint32_t ntypes; /* of the graph */
    uint32_t nstarts;
    uint32_t nedges;
    const double *price;      /* [ntypes] */
    const uint32_t *start;    /* [nstarts] */
    const double *start_flow; /* [nstarts] */
    const uint32_t *edge;     /* [nedges] */
    const double *edge_flow;  /* [nedges] */
};

/* Limits of the computation, and what a call needs besides the graph. Zero is a default
 * everywhere. */
struct heddle_bound_limits {
    size_t size;                          /* sizeof(struct heddle_bound_limits) */
    uint32_t which;                       /* mask of 1 << heddle_bound_kind; 0: all. `path` and
                               `area` are always computed */
    uint32_t iterations;                  /* of the mixed bound; 0: 1500 */
    uint64_t time_ns;                     /* for all bounds; 0: 10 s, UINT64_MAX: no limit.
                               Looked at between iterations */
    double gap;                           /* stop when the mixed bound is this close to its
                               optimum, relative; 0: 0.001 */
    char *why;                            /* a sentence about a failure; may be NULL */
    size_t why_bytes;                     /* of `why` */
    const struct heddle_allocator *alloc; /* NULL: the default */
};

/* Bounds with their certificates. */
struct heddle_bound_result {
    size_t size; /* sizeof(struct heddle_bound_result) */
    void *own;   /* what fini frees */

    /* A bound that was not asked for has value 0 and the weakest certificate. */
    struct heddle_bound_cert cert[HEDDLE_BOUND_KINDS];
    double best; /* the largest of the values */
    enum heddle_bound_kind best_kind;

    double mixed_upper; /* the optimum of the mixed bound is at most this */
    double mixed_gap;   /* (mixed_upper - mixed) / mixed_upper */
    uint32_t mixed_iterations;
    uint64_t time_ns; /* the call took */
};

/*
 * Computes the bounds. Set result_out->size before; end the result with
 * heddle_bound_fini(). Stopping early weakens bounds, never falsifies them.
 *
 * HEDDLE_EINVAL  a pointer is missing, a size is wrong, an index is out of
 *                range, a time is negative, not a number, or so large that sums
 *                overflow, or a task can run nowhere
 * HEDDLE_ECYCLE  the edges form a cycle
 * HEDDLE_ENOMEM  no memory
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_bound_all(const struct heddle_bound_graph *graph,
                                                          const struct heddle_bound_limits *limits,
                                                          struct heddle_bound_result *result_out);

/* Frees the certificates and zeroes the result but for its size. The allocator
 * of heddle_bound_all() must still be there. NULL is fine. */
HEDDLE_API void heddle_bound_fini(struct heddle_bound_result *result);

/*
 * Recomputes the bound a certificate proves, which is stored in *proven_out
 * (may be NULL), and compares: `value` may exceed it by 1e-9 of itself, for
 * rounding. Shares no code with what computes bounds. Of `limits`, which may be
 * NULL, only why and alloc are used; `kind` of bound and cert->value are not.
 *
 * HEDDLE_OK      value is proven
 * HEDDLE_EINVAL  the certificate proves less than `value`; or the certificate or the
 *                graph is malformed
 * HEDDLE_ECYCLE  the edges form a cycle
 * HEDDLE_ENOMEM  no memory
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status
heddle_bound_check(const struct heddle_bound_graph *graph, const struct heddle_bound_cert *cert,
                   double value, const struct heddle_bound_limits *limits, double *proven_out);

/* --- with the links ------------------------------------------------------- */

/*
 * What tasks read and write, and how fast data move between the host's memory and the
 * memories of accelerators. An item is what one task wrote, or what was in the host's memory
 * from the beginning; an item does not change. A task on a core needs the items it reads in the
 * host's memory, a task on an accelerator needs them in the memories of accelerators.
 */
struct heddle_bound_links {
    size_t size; /* sizeof(struct heddle_bound_links) */
    uint32_t nitems;
    uint32_t nreads;
    double in;              /* > 0: bytes per unit of time over all links from the host's memory */
    double out;             /* > 0: and over all links to it */
    const uint8_t *is_far;  /* [ntypes] 1: workers of an accelerator, with a memory of their own */
    const double *bytes;    /* [nitems] */
    const uint32_t *maker;  /* [nitems] a task; UINT32_MAX: there from the beginning */
    const uint32_t *item;   /* [nreads] item[i] is read ... */
    const uint32_t *reader; /* [nreads] ... by this task; no pair twice */
};

/*
 * What proves such a bound. flow[i] belongs to read i: flow >= 0 counts a copy to the
 * accelerators, flow < 0 one back. For each item the flows > 0 add up to at most
 * price_in * bytes, and those < 0 to at most price_out * bytes. net(t) is the sum of the
 * flows of what t reads, less that of what t made. When sum(nworkers[r] * price[r]) +
 * in * price_in + out * price_out = 1, every schedule takes at least
 *
 *     sum over t of min( min over r at the host of price[r] time(t,r),
 *                        net(t) + min over the other r of price[r] time(t,r) )
 */
struct heddle_bound_links_cert {
    size_t size; /* sizeof(struct heddle_bound_links_cert) */
    void *own;   /* what fini frees */
    double value;
    double price_in, price_out;
    const double *price; /* [ntypes] */
    const double *flow;  /* [nreads] */
    uint32_t ntypes, nreads;
};

/*
 * Computes a bound that counts transfers between the host and accelerators, but no
 * dependencies. The bounds of heddle_bound_all() count dependencies; both hold, and so does
 * the greater one. Set cert_out->size before;
 * end it with heddle_bound_links_fini(). Errors: as heddle_bound_all(), and HEDDLE_EINVAL for
 * links that make no sense.
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_bound_links_find(
    const struct heddle_bound_graph *graph, const struct heddle_bound_links *links,
    const struct heddle_bound_limits *limits, struct heddle_bound_links_cert *cert_out);

/* Frees the certificate and zeroes it but for its size. NULL is fine. */
HEDDLE_API void heddle_bound_links_fini(struct heddle_bound_links_cert *cert);

/* As heddle_bound_check(), for such a certificate. Any numbers are accepted: where the
 * flows of an item are too great, the prices of links are raised until they are not. */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_bound_links_check(
    const struct heddle_bound_graph *graph, const struct heddle_bound_links *links,
    const struct heddle_bound_links_cert *cert, double value,
    const struct heddle_bound_limits *limits, double *proven_out);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_BOUND_H */
