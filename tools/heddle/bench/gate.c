/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/gate: how far apart two cores are now.
 *
 * Purpose    virtual cores move: results of two threads compare only between
 *            moments of equal distance. So a repetition is marked by the line
 *            transfer time before and after it.
 * Measured   median of several short bursts, so that one interruption does not
 *            spoil it.
 * Threads    two, each bound to one CPU; `ball` is all they share while they
 *            play, and the join publishes the times.
 */
#include "base/atomic.h"
#include "base/thread.h"
#include "bench/bench.h"

enum { BURSTS = 11, ROUND_TRIPS = 500, LAST = BURSTS * ROUND_TRIPS };

struct court {
    _Alignas(2 * HEDDLE_CACHE_LINE) _Atomic uint32_t ball; /* odd: at B */
    _Alignas(2 * HEDDLE_CACHE_LINE) double ns[BURSTS];
};

static void *player_a(void *arg)
{
    struct court *c = arg;

    for (unsigned b = 0; b < BURSTS; b++) {
        const uint64_t start = heddle_clock_ns();

        for (unsigned i = b * ROUND_TRIPS; i < (b + 1) * ROUND_TRIPS; i++) {
            /* Release and acquire as in a hand-over of data. */
            heddle_store_rel(&c->ball, 2 * i + 1);
            while (heddle_load_acq(&c->ball) != 2 * i + 2)
                ;
        }
        c->ns[b] = (double)(heddle_clock_ns() - start) / (2.0 * ROUND_TRIPS);
    }
    return NULL;
}

static void *player_b(void *arg)
{
    struct court *c = arg;

    for (unsigned i = 0; i < LAST; i++) {
        while (heddle_load_acq(&c->ball) != 2 * i + 1)
            ;
        heddle_store_rel(&c->ball, 2 * i + 2); /* as above */
    }
    return NULL;
}

void bench_gate_init(struct bench_gate *g)
{
    unsigned n = 0;

    *g = (struct bench_gate){0};
    g->is_on = heddle_thread_get_cpus(g->cpu, 2, &n) == HEDDLE_OK && n >= 2;
}

double bench_gate_ping(const struct bench_gate *g)
{
    struct court c = {0};
    const struct heddle_thread_opts a = {.cpus = &g->cpu[0], .ncpus = 1};
    const struct heddle_thread_opts b = {.cpus = &g->cpu[1], .ncpus = 1};
    struct heddle_thread ta, tb;

    if (!g->is_on || heddle_thread_create(&ta, &a, player_a, &c) != HEDDLE_OK)
        return 0;
    if (heddle_thread_create(&tb, &b, player_b, &c) != HEDDLE_OK)
        player_b(&c); /* then this thread plays: A must come to its end */
    else if (heddle_thread_join(&tb) != HEDDLE_OK)
        return 0;
    if (heddle_thread_join(&ta) != HEDDLE_OK)
        return 0;
    return bench_stat(c.ns, BURSTS).median;
}
