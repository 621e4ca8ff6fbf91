/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PIPELINE_PIPELINE_H
#define HEDDLE_PIPELINE_PIPELINE_H

/*
 * Private to this folder: what its files share. check.c does not include this
 * header.
 *
 * pipeline.c options, policies, the object
 * ways.c     how a stage can be run
 * chain.c    the table for that
 * part.c     contiguous partitions
 * flush.c    those of gpipe, 1f1b and zb
 * special.c  partitions with one device of several stages
 * time.c     schedules: a start for everything
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/scratch.h"
#include "heddle/pipeline.h"
#include "plan/opts.h"

enum {
    HEDDLE_PL_LAYERS = 512,
    HEDDLE_PL_DEVICES = 256,
    HEDDLE_PL_OPS = 1 << 20,
    HEDDLE_PL_STEPS = 1 << 24 /* of all backwards */
};

/* Slack of comparisons of times, relative: sums come in different orders. */
#define HEDDLE_PL_EPS 1e-11

struct heddle_pl_steps;
struct heddle_pl_ways {
    uint32_t n;
    uint32_t id[HEDDLE_PIPELINE_WAYS]; /* for heddle_pl_way_steps */
    struct heddle_pipeline_way way[HEDDLE_PIPELINE_WAYS];
};

/* The table of chain.c, in units of memory. */
struct heddle_pl_chain {
    uint32_t n, slots;
    uint64_t unit;
    uint32_t *x, *t, *work_f, *work_b; /* [n + 1] */
    const double *f, *b;
    double *best;
};

/* The options of heddle_pipeline_solve(): fields are those of the public struct. */
struct heddle_pl_wish {
    uint32_t policy, nmicro, copies;
    bool keeps;
    uint32_t (*ways)(void *user, uint32_t first, uint32_t last, struct heddle_pipeline_way *out);
    void *user;
    struct heddle_plan_opts base; /* alloc, why, why_bytes */
};

struct heddle_pl {
    const struct heddle_plan_chain *c;
    struct heddle_pl_chain table; /* without opts.ways */
    struct heddle_pl_wish o;      /* complete */
    uint32_t n, ndevices, nmicro, copies;
    bool is_stashing; /* a copy of the weights for each micro-batch, and one */
    uint64_t budget;
    double rate;                 /* 0: links are free */
    double *f, *b, *w;           /* [n + 1] sums of the layers before */
    uint64_t *weights;           /* [n + 1] the same */
    uint64_t *tapes;             /* [n + 1] the same */
    struct heddle_pl_ways *ways; /* [n * n], [first * n + last] */
    struct heddle_scratch *mem;
};

struct heddle_pl_part {
    uint32_t n;
    struct heddle_pipeline_stage stage[HEDDLE_PL_DEVICES];
    uint32_t way[HEDDLE_PL_DEVICES]; /* index in ways[].way */
};

static inline uint64_t heddle_pl_add(uint64_t a, uint64_t b)
{
    uint64_t r;

    return __builtin_add_overflow(a, b, &r) ? UINT64_MAX : r;
}

static inline uint64_t heddle_pl_mul(uint64_t a, uint64_t b)
{
    uint64_t r;

    return __builtin_mul_overflow(a, b, &r) ? UINT64_MAX : r;
}

static inline const struct heddle_pl_ways *heddle_pl_ways_of(const struct heddle_pl *p,
                                                             uint32_t first, uint32_t last)
{
    return &p->ways[(size_t)first * p->n + last];
}

/* Time of the boundary behind `last`, one way. */
static inline double heddle_pl_send(const struct heddle_pl *p, uint32_t last)
{
    return last + 1 < p->n && p->rate > 0 ? (double)p->c->x[last + 1] / p->rate : 0;
}

/* Forward and backward of layers first..last, recomputation not included. */
static inline double heddle_pl_load(const struct heddle_pl *p, uint32_t first, uint32_t last)
{
    return p->f[last + 1] - p->f[first] + (p->b[last + 1] - p->b[first]);
}

/* Weights and buffers of a stage with g micro-batches under way. */
uint64_t heddle_pl_fixed(const struct heddle_pl *p, uint32_t first, uint32_t last, uint64_t g);
/* All of its memory; UINT64_MAX when that does not fit. */
uint64_t heddle_pl_memory(const struct heddle_pl *p, uint32_t first, uint32_t last,
                          const struct heddle_pipeline_way *w, uint64_t g);
/* Fills a stage but for `in_flight` and `fixed`. */
void heddle_pl_stage(const struct heddle_pl *p, uint32_t first, uint32_t last, uint32_t way,
                     uint32_t device, struct heddle_pl_part *part);

/* --- ways ------------------------------------------------------------------ */

HEDDLE_MUST_USE heddle_status heddle_pl_ways_make(struct heddle_pl *p);
/* What becomes of the layers of a stage run in its way number `way`, and the steps
 * of its backward. */
HEDDLE_MUST_USE heddle_status heddle_pl_way_steps(const struct heddle_pl *p, uint32_t first,
                                                  uint32_t last, uint32_t way, uint8_t *layers,
                                                  struct heddle_pl_steps *out);

/* --- backwards of runs of layers (chain.c) -------------------------- */

/* `step` may be NULL: they are only counted. */
struct heddle_pl_steps {
    struct heddle_pipeline_step *step;
    size_t n;
};
HEDDLE_MUST_USE heddle_status heddle_pl_chain_make(const struct heddle_pl *p,
                                                   struct heddle_pl_chain *c);
/* Forward and backward of i..l within m units, x[i] not among them, the gradient of
 * x[l + 1] included; INFINITY: too little. */
double heddle_pl_chain_time(const struct heddle_pl_chain *c, uint32_t i, uint32_t l, uint32_t m);
/* The least units in which that takes no longer. */
uint32_t heddle_pl_chain_need(const struct heddle_pl_chain *c, uint32_t i, uint32_t l, uint32_t m);
/* Its steps; the time is finite. */
void heddle_pl_chain_trace(const struct heddle_pl_chain *c, uint32_t i, uint32_t l, uint32_t m,
                           struct heddle_pl_steps *out);

/* --- partitions ------------------------------------------------------------ */

/* Group and place in it: the delay (group - 1) * T + r behind a resource. */
struct heddle_pl_delay {
    uint64_t group;
    double r;
};
/* The least delay in front of a resource of this load; section "periods". */
static inline struct heddle_pl_delay heddle_pl_next(struct heddle_pl_delay d, double load,
                                                    double period)
{
    if (load == 0)
        return d;
    if (d.group > 0 && d.r + load <= period * (1 + HEDDLE_PL_EPS))
        return (struct heddle_pl_delay){d.group, d.r + load};
    return (struct heddle_pl_delay){d.group + 1, load};
}
static inline bool heddle_pl_less(struct heddle_pl_delay a, struct heddle_pl_delay b)
{
    return a.group != b.group ? a.group < b.group : a.r < b.r;
}

/* Least period over contiguous partitions. ENOENT: none fits. */
HEDDLE_MUST_USE heddle_status heddle_pl_period(const struct heddle_pl *p, double *period_out,
                                               struct heddle_pl_part *part);
/* Least period of a given partition; INFINITY: it does not fit. */
double heddle_pl_part_period(const struct heddle_pl *p, const struct heddle_pl_part *part,
                             double *sums /* [4 * devices^2] */);
/* Sum of loads and 2 * sends + (nmicro - 1) * the largest, least, with flush(q,
 * nstages) micro-batches in the stage q from the end (0: the last). */
HEDDLE_MUST_USE heddle_status heddle_pl_flush(const struct heddle_pl *p,
                                              uint32_t (*flush)(uint32_t, uint32_t, uint32_t),
                                              double *cost_out, struct heddle_pl_part *part);
/* Least largest load, with q + 1 micro-batches in the stage q from the end. */
HEDDLE_MUST_USE heddle_status heddle_pl_bottleneck(const struct heddle_pl *p, double *largest_out,
                                                   struct heddle_pl_part *part);
/* One device may have several stages; `period` is that of the best contiguous
 * partition, INFINITY without one. ENOENT: nothing better. */
HEDDLE_MUST_USE heddle_status heddle_pl_special(const struct heddle_pl *p, double period,
                                                struct heddle_pl_part *part, double *period_out);

/* --- schedules ------------------------------------------------------------- */

struct heddle_pl_times {
    struct heddle_pipeline_op *op;
    uint32_t n;
    uint64_t memory[HEDDLE_PL_DEVICES];
    bool fits;
};

/* A periodic schedule of a partition, if one was found for this period; fills
 * in_flight, fixed and memory. t->op: room for 5 * nstages. */
bool heddle_pl_time_periodic(const struct heddle_pl *p, struct heddle_pl_part *part, double period,
                             struct heddle_pl_times *t);

enum heddle_pl_order { HEDDLE_PL_ALL_FORWARD, HEDDLE_PL_1F1B, HEDDLE_PL_ZB1, HEDDLE_PL_ZB2 };
/* A schedule of nmicro micro-batches. t->op: room for 5 * nstages * nmicro. */
HEDDLE_MUST_USE heddle_status heddle_pl_time_flush(const struct heddle_pl *p,
                                                   struct heddle_pl_part *part,
                                                   enum heddle_pl_order order,
                                                   struct heddle_pl_times *t, double *end_out);

/* --- policies -------------------------------------------------------------- */

struct heddle_pl_found {
    struct heddle_pl_part *part;
    struct heddle_pl_times *t;
    uint32_t policy;
    double period; /* 0: flush */
    double end;
};
/* Room for a partition and its schedule, in p->mem. */
HEDDLE_MUST_USE heddle_status heddle_pl_found_init(const struct heddle_pl *p,
                                                   struct heddle_pl_found *f);
/* gpipe, 1f1b and zb. ENOENT: no partition fits. */
HEDDLE_MUST_USE heddle_status heddle_pl_solve_flush(const struct heddle_pl *p, uint32_t policy,
                                                    struct heddle_pl_found *f);

#endif /* HEDDLE_PIPELINE_PIPELINE_H */
