/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_SPREAD_H
#define HEDDLE_SPREAD_H

/*
 * heddle/spread.h - a network over unlike processors, for a stream of requests.
 *
 * A request runs all operators of a network once. A route says on which class of workers each of
 * them runs; a spread is a few routes, with so many requests per unit of time on each. Out come
 * the spread with the shortest period (time per request when requests never end), and a bound:
 * no way to run the network has a shorter period. heddle_spread_check() verifies a spread without
 * the code that made it. docs/design/spread.md has the models.
 *
 * Machine:  classes of workers, each at one memory. Memory 0 is the host's: requests come from
 *           there and results go there. Each other memory has a link from the host's and one
 *           back; what goes from one to another passes the host's.
 * Threads:  pure functions; any thread.
 * Errors:   functions return heddle_status; on failure nothing has changed and a sentence is in
 *           opts->why.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/alloc.h"
#include "heddle/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The most classes. */
#define HEDDLE_SPREAD_CLASSES 16
/* The most memories. */
#define HEDDLE_SPREAD_NODES 16

/* The operators of a network and the values between them. Arrays are borrowed for the time of a
 * call. An operator comes after the makers of what it reads. */
struct heddle_spread_graph {
    size_t size;
    uint32_t nops, nvalues, nreads;
    const double *time;      /* [nops x classes] on one worker; INFINITY: cannot run there */
    const uint64_t *weights; /* [nops] bytes of constants that an operator reads; NULL: none */
    const uint64_t *bytes;   /* [nvalues] */
    const uint32_t *maker;   /* [nvalues] an operator; UINT32_MAX: comes with the request */
    const uint32_t *value;   /* [nreads] value[i] is read ... */
    const uint32_t *reader;  /* [nreads] ... by this operator; UINT32_MAX: it is a result */
};

/* A memory, and its links. Times of a copy: latency + bytes / rate; those of memory 0 do not
 * count. */
struct heddle_spread_node {
    uint64_t bytes;               /* for weights; 0: no limit */
    double in_latency, in_rate;   /* from the host's memory; rate > 0 */
    double out_latency, out_rate; /* to the host's memory */
};

/* The processors. */
struct heddle_spread_machine {
    size_t size;
    uint32_t nclasses, nnodes;
    const uint32_t *nworkers;                /* [nclasses] > 0 */
    const uint32_t *node;                    /* [nclasses] its memory */
    const struct heddle_spread_node *memory; /* [nnodes] */
};

/* Options; zero is a default everywhere. */
struct heddle_spread_opts {
    size_t size;
    const char *method; /* heddle_spread_get_method(); NULL: "mix" */
    double slack;       /* of `mix`: a period longer by this part is accepted where requests
                           then take less time; 0.02 is two percent */
    double link;        /* the part of a link's time that routes may take, 0 to 1; 0: all. Real
                           copies do not overlap perfectly. The bound has all of it */
    char *why;          /* a sentence; may be NULL */
    size_t why_bytes;
    const struct heddle_allocator *alloc; /* NULL: the default */
};

/* A route. */
struct heddle_spread_route {
    double rate;         /* requests per unit of time */
    double latency;      /* of one request alone: the longest chain of operators and copies */
    uint64_t link_bytes; /* of a request over all links, streamed weights included */
    const uint32_t *cls; /* [nops] the class of each operator */
};

/* A spread. An operator's weights stay in a memory where it runs, or are streamed: copied for
 * each request, with room for two of the largest such operator. */
struct heddle_spread_result {
    size_t size;
    void *own; /* what fini frees */
    uint32_t nops, nroutes;
    const struct heddle_spread_route *route;
    double period;              /* 1 / all rates */
    double bound;               /* no period is shorter; memory limits are not counted */
    double latency;             /* the longest of the routes */
    const double *busy;         /* [nclasses] part of the time */
    const double *busy_in;      /* [nnodes] of the link from the host's memory */
    const double *busy_out;     /* [nnodes] of the link to it */
    const uint64_t *memory;     /* [nnodes] bytes of weights */
    const uint8_t *is_streamed; /* [nops x nnodes] weights are not kept there */
};

/*
 * Makes a spread. Set result_out->size before; end the result with heddle_spread_fini().
 *
 * HEDDLE_OK      *result_out is a spread within all limits
 * HEDDLE_EINVAL  a pointer is missing, an index is out of range, a time or rate makes no sense,
 *                an operator can run nowhere or before what it reads is made, or nothing takes
 *                any time
 * HEDDLE_ENOENT  no such method; or the method found no spread that fits
 * HEDDLE_ENOSYS  the method cannot: its library is missing, or there are too many classes
 * HEDDLE_ENOMEM
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_spread_make(
    const struct heddle_spread_graph *graph, const struct heddle_spread_machine *machine,
    const struct heddle_spread_opts *opts, struct heddle_spread_result *result_out);

/* Frees the arrays and zeroes the result but for its size. NULL is fine. */
HEDDLE_API void heddle_spread_fini(struct heddle_spread_result *result);

/*
 * Computes everything that a spread claims again, from its rates, classes and streamed weights:
 * period, latencies, loads, bytes, memory; no processor, link or memory has more than it can.
 * Numbers may be off by 1e-9. Of `opts`, which may be NULL, why and alloc are used.
 *
 * HEDDLE_OK      the spread is right
 * HEDDLE_EINVAL  it is wrong; the sentence says where
 * HEDDLE_ENOMEM
 */
HEDDLE_API HEDDLE_MUST_USE heddle_status heddle_spread_check(
    const struct heddle_spread_graph *graph, const struct heddle_spread_machine *machine,
    const struct heddle_spread_opts *opts, const struct heddle_spread_result *result);

/* A method. */
struct heddle_spread_method {
    const char *name;
    const char *help; /* one line */
};
/* Method number i. HEDDLE_ENOENT: there are no more. */
HEDDLE_API HEDDLE_MUST_USE heddle_status
heddle_spread_get_method(unsigned i, struct heddle_spread_method *method_out);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_SPREAD_H */
