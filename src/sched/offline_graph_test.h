/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_SCHED_OFFLINE_GRAPH_TEST_H
#define HEDDLE_SCHED_OFFLINE_GRAPH_TEST_H

/* For offline_test.h: graphs and machines that exist on paper. */
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

#endif /* HEDDLE_SCHED_OFFLINE_GRAPH_TEST_H */
