/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_SCHED_OFFLINE_TEST_H
#define HEDDLE_SCHED_OFFLINE_TEST_H

/*
 * For tests: a policy is driven through the contract as the engine does it, on a
 * graph and a machine that exist on paper. submitted() for all tasks in order,
 * push() when one is ready, pop() when a worker has room, ended().
 *
 * Workers  a core runs what it popped; an accelerator pops one task ahead, so that
 *          its data travel while the one before it runs.
 * Data     tiles with a valid copy in one or more memories. A task that was popped
 *          fetches what it reads and misses; what it writes is valid there alone.
 *          A link (from one memory to another) carries one copy at a time.
 * Time     events in order of (time, creation); the same calls each time. Costs
 *          may be hidden until measured, and real durations may differ from them.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "sched/sched.h"
#include "tests/test.h"

enum { OFF_KERNELS = 8, OFF_CLASSES = 9, OFF_WORKERS = 20, OFF_ACCESS = 8 };

/* --- graphs ----------------------------------------------------------------*/

struct off_task {
    struct heddle_sched_task t;
    unsigned id;
    unsigned kernel;
    unsigned naccess;
    struct off_access {
        unsigned tile;
        bool writes;
    } access[OFF_ACCESS];
    unsigned *pred, npred, cappred;
    unsigned *succ, nsucc, capsucc;
    /* of one run */
    unsigned nwait;
    unsigned npops;
    unsigned worker;
    double data_at, begin, end;
    bool is_ready, has_ended, has_returned, is_slow;
};

struct off_graph {
    struct off_task *task;
    unsigned ntasks, captasks, ntiles;
    unsigned *writer;  /* per tile: last writer + 1 */
    unsigned **reader; /* per tile: readers since */
    unsigned *nreader;
    double tile_bytes;
};

static inline void *off_grow(void *p, unsigned n, unsigned *cap, size_t bytes)
{
    if (n < *cap)
        return p;
    *cap = *cap == 0 ? 4 : 2 * *cap;
    p = realloc(p, *cap * bytes);
    CHECK(p != NULL);
    return p;
}

static inline void off_graph_init(struct off_graph *g, unsigned ntiles)
{
    memset(g, 0, sizeof(*g));
    g->ntiles = ntiles;
    g->tile_bytes = 960.0 * 960 * 4;
    g->writer = calloc(ntiles + 1, sizeof(*g->writer));
    g->reader = calloc(ntiles + 1, sizeof(*g->reader));
    g->nreader = calloc(ntiles + 1, sizeof(*g->nreader));
    CHECK(g->writer != NULL && g->reader != NULL && g->nreader != NULL);
}

static inline void off_graph_fini(struct off_graph *g)
{
    for (unsigned i = 0; i < g->ntasks; i++) {
        free(g->task[i].pred);
        free(g->task[i].succ);
    }
    for (unsigned i = 0; i < g->ntiles; i++)
        free(g->reader[i]);
    free(g->task);
    free(g->writer);
    free(g->reader);
    free(g->nreader);
}

static inline void off_edge(struct off_graph *g, unsigned from, unsigned to)
{
    struct off_task *a = &g->task[from], *b = &g->task[to];

    for (unsigned i = 0; i < b->npred; i++)
        if (b->pred[i] == from)
            return;
    b->pred = off_grow(b->pred, b->npred, &b->cappred, sizeof(unsigned));
    b->pred[b->npred++] = from;
    a->succ = off_grow(a->succ, a->nsucc, &a->capsucc, sizeof(unsigned));
    a->succ[a->nsucc++] = to;
}

/* A task; its dependencies follow with off_access(). */
static inline unsigned off_task(struct off_graph *g, unsigned kernel)
{
    struct off_task *t;

    g->task = off_grow(g->task, g->ntasks, &g->captasks, sizeof(*g->task));
    t = &g->task[g->ntasks];
    memset(t, 0, sizeof(*t));
    t->id = g->ntasks;
    t->kernel = kernel;
    return g->ntasks++;
}

/* The last task accesses a tile: the dependencies of sequential task flow. */
static inline void off_access(struct off_graph *g, unsigned tile, bool writes)
{
    const unsigned me = g->ntasks - 1;
    struct off_task *t = &g->task[me];

    CHECK(tile < g->ntiles && t->naccess < OFF_ACCESS);
    t->access[t->naccess].tile = tile;
    t->access[t->naccess++].writes = writes;
    if (g->writer[tile] != 0 && g->writer[tile] - 1 != me)
        off_edge(g, g->writer[tile] - 1, me);
    if (writes) {
        for (unsigned i = 0; i < g->nreader[tile]; i++)
            if (g->reader[tile][i] != me)
                off_edge(g, g->reader[tile][i], me);
        g->nreader[tile] = 0;
        g->writer[tile] = me + 1;
    } else {
        unsigned n = g->nreader[tile];

        g->reader[tile] = realloc(g->reader[tile], (n + 1) * sizeof(unsigned));
        CHECK(g->reader[tile] != NULL);
        g->reader[tile][g->nreader[tile]++] = me;
    }
}

enum { POTRF, TRSM, SYRK, GEMM };

/* Right-looking tile Cholesky of n x n tiles. */
static inline void off_cholesky(struct off_graph *g, unsigned n)
{
    off_graph_init(g, n * n);
    for (unsigned k = 0; k < n; k++) {
        off_task(g, POTRF);
        off_access(g, k * n + k, true);
        for (unsigned i = k + 1; i < n; i++) {
            off_task(g, TRSM);
            off_access(g, k * n + k, false);
            off_access(g, i * n + k, true);
        }
        for (unsigned i = k + 1; i < n; i++) {
            for (unsigned j = k + 1; j < i; j++) {
                off_task(g, GEMM);
                off_access(g, i * n + k, false);
                off_access(g, j * n + k, false);
                off_access(g, i * n + j, true);
            }
            off_task(g, SYRK);
            off_access(g, i * n + k, false);
            off_access(g, i * n + i, true);
        }
    }
}

/* LU without pivoting: the panel's kernels stand in for getrf and trsm. */
static inline void off_lu(struct off_graph *g, unsigned n)
{
    off_graph_init(g, n * n);
    for (unsigned k = 0; k < n; k++) {
        off_task(g, POTRF);
        off_access(g, k * n + k, true);
        for (unsigned i = k + 1; i < n; i++) {
            off_task(g, TRSM);
            off_access(g, k * n + k, false);
            off_access(g, i * n + k, true);
            off_task(g, TRSM);
            off_access(g, k * n + k, false);
            off_access(g, k * n + i, true);
        }
        for (unsigned i = k + 1; i < n; i++)
            for (unsigned j = k + 1; j < n; j++) {
                off_task(g, GEMM);
                off_access(g, i * n + k, false);
                off_access(g, k * n + j, false);
                off_access(g, i * n + j, true);
            }
    }
}

/* QR with a flat tree: a long chain down each panel. */
static inline void off_qr(struct off_graph *g, unsigned n)
{
    off_graph_init(g, n * n);
    for (unsigned k = 0; k < n; k++) {
        off_task(g, POTRF);
        off_access(g, k * n + k, true);
        for (unsigned j = k + 1; j < n; j++) {
            off_task(g, SYRK);
            off_access(g, k * n + k, false);
            off_access(g, k * n + j, true);
        }
        for (unsigned i = k + 1; i < n; i++) {
            off_task(g, TRSM);
            off_access(g, k * n + k, true);
            off_access(g, i * n + k, true);
            for (unsigned j = k + 1; j < n; j++) {
                off_task(g, GEMM);
                off_access(g, i * n + k, false);
                off_access(g, k * n + j, true);
                off_access(g, i * n + j, true);
            }
        }
    }
}

/* A product on n block columns: each column of C takes `chunks` tasks, one after the
 * other, and all of A. The last task of a column is shorter: another sort. */
static inline void off_product(struct off_graph *g, unsigned n, unsigned chunks)
{
    off_graph_init(g, 2 * n + chunks);
    for (unsigned j = 0; j < n; j++)
        for (unsigned k = 0; k < chunks; k++) {
            off_task(g, k + 1 < chunks ? GEMM : SYRK);
            off_access(g, 2 * n + k, false);
            off_access(g, n + j, false);
            off_access(g, j, true);
        }
}

/* Tasks of random kernels that read up to 3 random tiles and write one. */
static inline void off_random(struct off_graph *g, unsigned ntasks, unsigned ntiles, uint64_t seed)
{
    struct heddle_rng rng;

    heddle_rng_seed(&rng, seed);
    off_graph_init(g, ntiles);
    for (unsigned i = 0; i < ntasks; i++) {
        const unsigned n = heddle_rng_below32(&rng, 4);
        const unsigned to = heddle_rng_below32(&rng, ntiles);

        off_task(g, heddle_rng_below32(&rng, 4));
        for (unsigned k = 0; k < n; k++) {
            const unsigned from = heddle_rng_below32(&rng, ntiles);

            if (from != to)
                off_access(g, from, false);
        }
        off_access(g, to, true);
    }
}

/* --- machines --------------------------------------------------------------*/

struct off_machine {
    const char *name;
    unsigned ncpu, ngpu;
    double ns[OFF_KERNELS][2];            /* cpu, gpu */
    double bw[OFF_CLASSES][OFF_CLASSES];  /* bytes per ns; memory = class */
    double lat[OFF_CLASSES][OFF_CLASSES]; /* ns */
};

/* Kernels in us, bandwidths in MB/s and latencies in us from measurements. */
static inline void off_machine(struct off_machine *m, const char *name)
{
    static const struct {
        const char *name;
        unsigned ncpu, ngpu, shift; /* shift: the first gpu of a pair is odd */
        double us[4][2];
        double in, out;          /* host -> gpu, gpu -> host */
        double near, far, cross; /* between gpus: paired, same and other hub */
    } known[] = {
        {"mirage",
         9,
         3,
         1,
         {{18850, 5475}, {45647, 6407}, {43890, 1410}, {87780, 2821}},
         6020,
         6517,
         5296,
         5296,
         3450},
        {"attila",
         9,
         3,
         0,
         {{75934, 46032}, {43616, 6308}, {42038, 1404}, {84076, 2807}},
         5740,
         5860,
         5297,
         5297,
         3450},
        {"idgraf",
         4,
         8,
         0,
         {{20696, 55403}, {47115, 6547}, {44938, 1410}, {89875, 2819}},
         6006,
         6495,
         6634,
         5290,
         3430},
    };
    const size_t n = sizeof(known) / sizeof(known[0]);
    size_t k = 0;

    while (k < n && strcmp(known[k].name, name) != 0)
        k++;
    CHECK(k < n);
    memset(m, 0, sizeof(*m));
    m->name = name;
    m->ncpu = known[k].ncpu;
    m->ngpu = known[k].ngpu;
    for (int i = 0; i < 4; i++)
        for (int r = 0; r < 2; r++)
            m->ns[i][r] = known[k].us[i][r] * 1e3;
    for (unsigned a = 0; a <= m->ngpu; a++)
        for (unsigned b = 0; b <= m->ngpu; b++) {
            const unsigned hub = m->ngpu > 4 ? 4 : 2; /* gpus on a hub */
            const unsigned x = a - 1 + known[k].shift;
            const unsigned y = b - 1 + known[k].shift;
            double bw = a == 0               ? known[k].in
                        : b == 0             ? known[k].out
                        : x / 2 == y / 2     ? known[k].near
                        : x / hub == y / hub ? known[k].far
                                             : known[k].cross;

            m->bw[a][b] = bw * 1e6 / 1e9;
            m->lat[a][b] = a == 0 || b == 0 ? 11e3 : 22e3;
        }
}

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
    const char *plan;
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
    .sort = off_sort,
    .kernel = off_kernel,
    .id = off_id,
    .now_ns = off_now,
};

/* --- events ----------------------------------------------------------------*/

static inline bool off_sooner(const struct off_event *a, const struct off_event *b)
{
    return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static inline void off_at(struct off_run *x, double at, unsigned task)
{
    unsigned i = x->nheap;

    x->heap = off_grow(x->heap, x->nheap++, &x->capheap, sizeof(*x->heap));
    x->heap[i] = (struct off_event){at, ++x->seq, task};
    while (i > 0 && off_sooner(&x->heap[i], &x->heap[(i - 1) / 2])) {
        const struct off_event e = x->heap[i];

        x->heap[i] = x->heap[(i - 1) / 2];
        x->heap[(i - 1) / 2] = e;
        i = (i - 1) / 2;
    }
}

static inline struct off_event off_next(struct off_run *x)
{
    const struct off_event e = x->heap[0];
    unsigned i = 0;

    x->heap[0] = x->heap[--x->nheap];
    for (;;) {
        unsigned k = 2 * i + 1;

        if (k >= x->nheap)
            break;
        if (k + 1 < x->nheap && off_sooner(&x->heap[k + 1], &x->heap[k]))
            k++;
        if (!off_sooner(&x->heap[k], &x->heap[i]))
            break;
        const struct off_event f = x->heap[i];

        x->heap[i] = x->heap[k];
        x->heap[k] = f;
        i = k;
    }
    return e;
}

/* --- the engine on paper ---------------------------------------------------*/

static inline double off_normal(struct heddle_rng *rng)
{
    double s = 0;

    for (int i = 0; i < 12; i++)
        s += (double)heddle_rng_below32(rng, 1u << 30) / (1u << 30);
    return s - 6;
}

/* Brings what a popped task reads to its memory. */
static inline void off_bring(struct off_run *x, struct off_task *k, unsigned cls)
{
    k->data_at = x->now;
    for (unsigned i = 0; x->o.has_transfers && i < k->naccess; i++) {
        double *v = &x->valid[(size_t)k->access[i].tile * OFF_CLASSES];
        unsigned from = 0;

        if (v[cls] < 0) {
            v[cls] = off_copy(x, k->access[i].tile, cls, &from);
            x->link[from][cls] = v[cls];
            x->moved += x->g->tile_bytes;
        }
        if (v[cls] > k->data_at)
            k->data_at = v[cls];
    }
}

static inline void off_start(struct off_run *x, unsigned worker)
{
    struct off_worker *w = &x->worker[worker];
    struct off_task *k;
    double ns;

    if (w->n == 0 || w->runs)
        return;
    k = &x->g->task[w->queue[0]];
    ns = x->m->ns[k->kernel][x->cls[x->class_of[worker]].type];
    if (x->o.noise > 0)
        ns *= exp(x->o.noise * off_normal(&x->rng));
    k->is_slow = x->class_of[worker] != 0 && x->nslow < x->o.slow;
    if (k->is_slow) {
        x->nslow++;
        ns = x->o.slow_ns;
    }
    k->begin = k->data_at > x->now ? k->data_at : x->now;
    k->end = k->begin + ns;
    w->runs = true;
    off_at(x, k->end, k->id);
}

static inline bool off_pop(struct off_run *x, unsigned worker)
{
    const unsigned cls = x->class_of[worker];
    const unsigned depth = cls == 0 ? 1 : x->o.depth != 0 ? x->o.depth : 2;
    struct off_worker *w = &x->worker[worker];
    struct heddle_sched_task *t;

    if (x->is_lost[cls] || w->n >= depth)
        return false;
    t = x->ops->pop(x->self, worker);
    if (t == NULL)
        return false;
    CHECK(off_of(t)->is_ready && !off_of(t)->has_ended);
    if (x->o.returns != 0 && off_of(t)->id % x->o.returns == 0 && !off_of(t)->has_returned) {
        off_of(t)->has_returned = true;
        if (x->ops->ended != NULL)
            x->ops->ended(x->self, t, worker, -1);
        x->ops->push(x->self, t, HEDDLE_SCHED_FOREIGN);
        return true;
    }
    CHECK_EQ(off_of(t)->npops++, 0);
    CHECK(x->m->ns[off_of(t)->kernel][x->cls[cls].type] < INFINITY);
    off_of(t)->worker = worker;
    w->queue[w->n++] = off_of(t)->id;
    off_bring(x, off_of(t), cls);
    off_start(x, worker);
    return true;
}

/* Everybody asks, in turn, until nobody gets anything. */
static inline void off_pop_all(struct off_run *x)
{
    bool got = true;

    while (got) {
        got = false;
        for (unsigned i = 0; i < x->env.nworkers; i++)
            got |= off_pop(x, (x->turn + i) % x->env.nworkers);
    }
    x->turn++;
}

static inline void off_submit(struct off_run *x)
{
    struct heddle_sched_task *pred[4096];

    while (x->nsubmitted < x->g->ntasks &&
           (x->o.window == 0 || x->nsubmitted - x->nended < x->o.window)) {
        struct off_task *k = &x->g->task[x->nsubmitted++];
        unsigned n = 0;

        k->t.prio = x->o.has_prio ? (int)(x->g->ntasks - k->id) : 0;
        for (unsigned i = 0; i < k->npred; i++)
            if (!x->g->task[k->pred[i]].has_ended && n < 4096)
                pred[n++] = x->o.hides != 0 && x->nhidden++ % x->o.hides == 0
                                ? &x->hidden
                                : &x->g->task[k->pred[i]].t;
        if (x->ops->submitted != NULL)
            x->ops->submitted(x->self, &k->t, pred, n);
        k->nwait = n;
        if (n == 0) {
            k->is_ready = true;
            x->ops->push(x->self, &k->t, HEDDLE_SCHED_SUBMITTER);
        }
    }
}

static inline void off_end(struct off_run *x, struct off_task *k)
{
    struct off_worker *w = &x->worker[k->worker];
    const unsigned cls = x->class_of[k->worker];
    const unsigned type = x->cls[cls].type;
    double ns = k->end - k->begin;

    CHECK_EQ(w->queue[0], k->id);
    w->n--;
    memmove(w->queue, w->queue + 1, w->n * sizeof(w->queue[0]));
    w->runs = false;
    k->has_ended = true;
    x->nrun[k->kernel][type]++;
    x->joules += x->o.watts[k->kernel][type] * 1e-9 * ns;
    x->nended++;
    x->makespan = x->now;
    if (k->is_slow) {
        ns = NAN;
    } else {
        if (x->n[k->kernel][type]++ == 0 && x->o.wrong > 0)
            ns *= x->o.wrong;
        x->sum[k->kernel][type] += ns;
    }
    for (unsigned i = 0; i < k->naccess; i++)
        if (k->access[i].writes)
            for (unsigned a = 0; a < x->env.ncls; a++)
                x->valid[(size_t)k->access[i].tile * OFF_CLASSES + a] = a == cls ? x->now : -1;
    if (x->ops->ended != NULL)
        x->ops->ended(x->self, &k->t, k->worker, ns);
    for (unsigned i = 0; i < k->nsucc; i++) {
        struct off_task *s = &x->g->task[k->succ[i]];

        if (s->id < x->nsubmitted && --s->nwait == 0) {
            s->is_ready = true;
            x->ops->push(x->self, &s->t, (int)k->worker);
        }
    }
    off_start(x, k->worker);
}

/* A class disappears: what it had popped and not begun comes back, its data are
 * in the host's memory as well (as if written back). */
static inline void off_lose(struct off_run *x, unsigned cls)
{
    struct heddle_sched_task *t, *next;

    x->is_lost[cls] = true;
    for (unsigned i = 0; i < x->g->ntiles; i++) {
        double *v = &x->valid[(size_t)i * OFF_CLASSES];

        if (v[cls] >= 0 && v[0] < 0)
            v[0] = v[cls] > x->now ? v[cls] : x->now;
        v[cls] = -1;
    }
    for (t = x->ops->lost(x->self, cls); t != NULL; t = next) {
        next = t->link[0];
        x->ops->push(x->self, t, HEDDLE_SCHED_FOREIGN);
    }
    for (unsigned w = 0; w < x->env.nworkers; w++) {
        struct off_worker *k = &x->worker[w];

        while (x->class_of[w] == cls && k->n > (k->runs ? 1u : 0u)) {
            struct off_task *o = &x->g->task[k->queue[--k->n]];

            o->npops = 0;
            if (x->ops->ended != NULL)
                x->ops->ended(x->self, &o->t, w, -1);
            x->ops->push(x->self, &o->t, HEDDLE_SCHED_FOREIGN);
        }
    }
}

static inline void off_setup(struct off_run *x, struct off_graph *g, const struct off_machine *m,
                             const struct heddle_sched_ops *ops, const struct off_options *o)
{
    memset(x, 0, sizeof(*x));
    x->g = g;
    x->m = m;
    x->ops = ops;
    x->o = *o;
    heddle_rng_seed(&x->rng, o->seed + 1);
    x->env = (struct heddle_sched_env){.nworkers = m->ncpu + m->ngpu,
                                       .cls = x->cls,
                                       .ncls = 1 + m->ngpu,
                                       .ntypes = 2,
                                       .class_of = x->class_of,
                                       .view = &off_view,
                                       .view_self = x,
                                       .plan = o->plan,
                                       .energy = o->energy};
    for (unsigned c = 0; c <= m->ngpu; c++) {
        snprintf(x->cls_name[c], sizeof(x->cls_name[c]), "%s%u", c == 0 ? "cpu" : "cuda",
                 c == 0 ? 0 : c - 1);
        x->cls[c] = (struct heddle_sched_class){
            .name = x->cls_name[c],
            .kind = c == 0 ? 1 : 2,
            .type = c > 0,
            .node = c,
            .first = c == 0 ? 0 : m->ncpu + c - 1,
            .nworkers = c == 0 ? m->ncpu : 1,
        };
        for (unsigned w = 0; w < x->cls[c].nworkers; w++)
            x->class_of[x->cls[c].first + w] = c;
    }
    x->valid = malloc((g->ntiles + 1) * OFF_CLASSES * sizeof(double));
    CHECK(x->valid != NULL);
    for (size_t i = 0; i < (size_t)g->ntiles * OFF_CLASSES; i++)
        x->valid[i] = i % OFF_CLASSES == o->home ? 0 : -1;
}

/* Runs the graph; a policy that was given one before has learned from it. The time
 * it takes. */
static inline double off_play(struct off_run *x)
{
    const double start = x->now;

    x->nsubmitted = x->nended = 0;
    for (unsigned i = 0; i < x->g->ntasks; i++) {
        struct off_task *k = &x->g->task[i];

        memset(&k->t, 0, sizeof(k->t));
        k->nwait = k->npops = 0;
        k->is_ready = k->has_ended = k->has_returned = false;
    }
    off_submit(x);
    off_pop_all(x);
    while (x->nheap > 0) {
        const struct off_event e = off_next(x);

        x->now = e.at;
        off_end(x, &x->g->task[e.task]);
        off_submit(x);
        if (x->o.lose > 0 && x->nended == x->g->ntasks / 2)
            off_lose(x, (unsigned)x->o.lose);
        off_pop_all(x);
    }
    CHECK_EQ(x->nended, x->g->ntasks); /* nothing was left behind */
    return x->makespan - start;
}

static inline void off_open(struct off_run *x, struct off_graph *g, const struct off_machine *m,
                            const struct heddle_sched_ops *ops, const struct off_options *o)
{
    off_setup(x, g, m, ops, o);
    x->self = calloc(1, ops->instance_size + 64);
    CHECK(x->self != NULL);
    CHECK_OK(ops->init(x->self, &x->env));
}

static inline void off_close(struct off_run *x)
{
    x->ops->fini(x->self);
    free(x->self);
    free(x->valid);
    free(x->heap);
    x->self = NULL;
    x->valid = NULL;
    x->heap = NULL;
}

/* The whole run; everything in `x` may be looked at until the next one. */
static inline double off_run(struct off_run *x, struct off_graph *g, const struct off_machine *m,
                             const struct heddle_sched_ops *ops, const struct off_options *o)
{
    off_open(x, g, m, ops, o);
    off_play(x);
    off_close(x);
    return x->makespan;
}

#endif /* HEDDLE_SCHED_OFFLINE_TEST_H */
