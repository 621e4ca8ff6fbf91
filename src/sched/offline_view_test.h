/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_SCHED_OFFLINE_VIEW_TEST_H
#define HEDDLE_SCHED_OFFLINE_VIEW_TEST_H

/* For offline_test.h: one run, and what a policy may ask about it (the view). */
#include "sched/offline_graph_test.h"

/* --- runs ------------------------------------------------------------------*/

struct off_options {
    bool has_transfers;
    unsigned window;              /* tasks submitted and not ended, at most; 0: all */
    double noise;                 /* real = cost * exp(noise * normal) */
    unsigned learns;              /* costs are not sure until so many have ended; 0: known */
    double guess[OFF_KERNELS][2]; /* before the first has; 0: NAN */
    unsigned slow;                /* so many first tasks on an accelerator take ... */
    double slow_ns;               /* ... this: it loads its code */
    unsigned home;                /* the memory where data are at the start */
    double wrong;                 /* the first measurement of each is this factor off */
    int lose;                     /* a class that is lost half way; 0: none */
    uint64_t seed;
    const char *placement;
    unsigned depth;   /* tasks an accelerator has popped; 0: 2 */
    bool has_prio;    /* give user priorities: position from the end */
    unsigned hides;   /* every so many-th predecessor is told as unknown; 0: none */
    unsigned returns; /* every so many-th task comes back once; 0: none */
    struct heddle_sched_energy *energy; /* NULL: only time counts */
    double watts[OFF_KERNELS][2];       /* cpu, gpu */
};

struct off_event {
    double at;
    uint64_t seq;
    unsigned task;
};

struct off_worker {
    unsigned queue[4], n; /* popped, in order; [0] runs or waits for its data */
    bool runs;
    double free_at;
};

struct off_run {
    struct off_graph *g;
    const struct off_machine *m;
    struct off_options o;
    const struct heddle_sched_ops *ops;
    void *self;
    struct heddle_sched_env env;
    struct heddle_sched_class cls[OFF_CLASSES];
    char cls_name[OFF_CLASSES][16];
    unsigned class_of[OFF_WORKERS];
    struct off_worker worker[OFF_WORKERS];
    bool is_lost[OFF_CLASSES];
    double *valid;                         /* [tile * classes + memory]: when; < 0: no */
    double link[OFF_CLASSES][OFF_CLASSES]; /* busy until */
    double sum[OFF_KERNELS][2];            /* measured */
    unsigned n[OFF_KERNELS][2];
    struct off_event *heap;
    unsigned nheap, capheap;
    uint64_t seq;
    double now, makespan, moved;
    unsigned nsubmitted, nended, turn, nhidden, nslow;
    struct heddle_sched_task hidden; /* a predecessor nobody was told of */
    struct heddle_rng rng;
    unsigned nrun[OFF_KERNELS][2];
    double joules; /* above idle */
};

static inline struct off_task *off_of(const struct heddle_sched_task *t)
{
    return (struct off_task *)((uintptr_t)t - offsetof(struct off_task, t));
}

static inline double off_cost(void *view, const struct heddle_sched_task *t, unsigned cls,
                              double *confidence_out)
{
    const struct off_run *x = view;
    const struct off_task *k = off_of(t);
    const unsigned type = x->cls[cls].type;
    double ns = x->m->ns[k->kernel][type], sure = 1;

    if (x->is_lost[cls] || ns == INFINITY)
        return INFINITY;
    if (x->o.learns != 0) {
        const unsigned n = x->n[k->kernel][type];

        ns = x->sum[k->kernel][type] / n;
        sure = n < x->o.learns ? 0.3 : 0.9;
        if (n == 0) {
            ns = x->o.guess[k->kernel][type];
            ns = ns > 0 ? ns : NAN;
            sure = isnan(ns) ? 0 : 0.1;
        }
    }
    if (confidence_out != NULL)
        *confidence_out = sure;
    return ns;
}

static inline double off_joules(void *view, const struct heddle_sched_task *t, unsigned cls,
                                double ns)
{
    const struct off_run *x = view;

    return x->o.watts[off_of(t)->kernel][x->cls[cls].type] * 1e-9 * ns;
}

/* The cheapest way of a tile to a memory: when it would be there. */
static inline double off_copy(const struct off_run *x, unsigned tile, unsigned to,
                              unsigned *from_out)
{
    const double *valid = &x->valid[(size_t)tile * OFF_CLASSES];
    double best = INFINITY;

    for (unsigned a = 0; a < x->env.ncls; a++) {
        double at = valid[a];

        if (at < 0 || a == to)
            continue;
        at = at < x->now ? x->now : at;
        at = at < x->link[a][to] ? x->link[a][to] : at;
        at += x->m->lat[a][to] + x->g->tile_bytes / x->m->bw[a][to];
        if (at < best) {
            best = at;
            *from_out = a;
        }
    }
    return best;
}

static inline double off_fetch(void *view, const struct heddle_sched_task *t, unsigned cls)
{
    const struct off_run *x = view;
    const struct off_task *k = off_of(t);
    double last = x->now, sum = 0;
    unsigned from = 0;

    for (unsigned i = 0; x->o.has_transfers && i < k->naccess; i++) {
        const double at = x->valid[(size_t)k->access[i].tile * OFF_CLASSES + cls];

        if (at >= 0) {
            last = at > last ? at : last;
        } else {
            const double c = off_copy(x, k->access[i].tile, cls, &from);

            if (sum == 0)
                sum = c - x->now;
            else
                sum += x->g->tile_bytes / x->m->bw[from][cls];
        }
    }
    return sum > last - x->now ? sum : last - x->now;
}

static inline void off_bytes(void *view, const struct heddle_sched_task *t, unsigned cls,
                             uint64_t *read_out, uint64_t *written_out, uint64_t *present_out)
{
    const struct off_run *x = view;
    const struct off_task *k = off_of(t);
    uint64_t r = 0, w = 0, p = 0;

    for (unsigned i = 0; i < k->naccess; i++) {
        r += (uint64_t)x->g->tile_bytes;
        w += k->access[i].writes ? (uint64_t)x->g->tile_bytes : 0;
        if (x->valid[(size_t)k->access[i].tile * OFF_CLASSES + cls] >= 0)
            p += (uint64_t)x->g->tile_bytes;
    }
    *read_out = r;
    *written_out = w;
    *present_out = p;
}

static inline double off_move(void *view, unsigned from, unsigned to, uint64_t bytes)
{
    const struct off_run *x = view;

    if (from == to || !x->o.has_transfers)
        return 0;
    return x->m->lat[from][to] + (double)bytes / x->m->bw[from][to];
}

static inline unsigned off_sort(void *view, const struct heddle_sched_task *t)
{
    (void)view;
    return off_of(t)->kernel;
}

static inline const char *off_kernel(void *view, const struct heddle_sched_task *t)
{
    static const char *const name[OFF_KERNELS] = {"potrf", "trsm", "syrk", "gemm"};

    (void)view;
    return name[off_of(t)->kernel];
}

static inline uint64_t off_id(void *view, const struct heddle_sched_task *t)
{
    (void)view;
    return off_of(t)->id;
}

static inline uint64_t off_now(void *view)
{
    return (uint64_t)((struct off_run *)view)->now;
}

static const struct heddle_sched_view off_view = {
    .cost = off_cost,
    .joules = off_joules,
    .fetch = off_fetch,
    .bytes = off_bytes,
    .move = off_move,
    .sort = off_sort,
    .kernel = off_kernel,
    .id = off_id,
    .now_ns = off_now,
};

#endif /* HEDDLE_SCHED_OFFLINE_VIEW_TEST_H */
