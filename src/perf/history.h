/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_PERF_HISTORY_H
#define HEDDLE_PERF_HISTORY_H

/*
 * The latest samples of one shape and the estimate made of them. Private to
 * perf. Zeroed memory is an empty history.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/spin.h"
#include "heddle/perf.h"

#define HEDDLE_HISTORY_SAMPLES 32

/* The accepted range of a sample: a picosecond to eleven days. */
#define HEDDLE_HISTORY_MIN_NS 1e-3
#define HEDDLE_HISTORY_MAX_NS 1e15

/* Any thread. Each word stands for itself, so all of them are relaxed. */
struct heddle_history {
    /* Bits of a float; 0: empty. Sample number i is in slot i % 32. */
    _Alignas(HEDDLE_CACHE_LINE) _Atomic uint32_t sample[HEDDLE_HISTORY_SAMPLES];
    _Alignas(HEDDLE_CACHE_LINE) _Atomic uint64_t head; /* samples claimed */
    _Atomic uint64_t est;                              /* heddle_history_pack(); 0: none */
    _Atomic uint32_t ignored;
    struct heddle_spin lock; /* guards the two below; only ever tried */
    uint32_t norder;
    uint8_t order[HEDDLE_HISTORY_SAMPLES]; /* slots, by value at last refresh */
};

struct heddle_history_stats {
    double ns; /* 0: no samples */
    double mad_ns;
    double confidence;
    uint32_t n; /* samples it was computed from */
};

/* True when ns is a sample: positive, finite, within the range. */
bool heddle_history_accepts(double ns);

/* Adds one. Returns its number, from 1; 0: refused and counted. */
uint64_t heddle_history_record(struct heddle_history *h, double ns);

/* Recomputes `est`, unless another thread is at it. */
void heddle_history_refresh(struct heddle_history *h);

/* Computed from the samples as they are now. */
void heddle_history_stats(const struct heddle_history *h, struct heddle_history_stats *out);

/* Copies the `max` samples (or as many as there are) before number `end`, at
 * most h->head, oldest first. Returns their number. */
unsigned heddle_history_copy(const struct heddle_history *h, uint64_t end, uint64_t max,
                             double ns_out[HEDDLE_HISTORY_SAMPLES]);

/* Forgets everything. A record() at the same time may or may not survive. */
void heddle_history_clear(struct heddle_history *h);

/* An estimate in one atomic word: float ns, 16-bit confidence, source. */
uint64_t heddle_history_pack(const struct heddle_estimate *est);
void heddle_history_unpack(uint64_t word, struct heddle_estimate *est_out);

static inline enum heddle_estimate_source heddle_history_source(uint64_t word)
{
    return (enum heddle_estimate_source)(word & 0xffff);
}

#endif /* HEDDLE_PERF_HISTORY_H */
