/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_ENERGY_FIT_PRIVATE_H
#define HEDDLE_ENERGY_FIT_PRIVATE_H

/*
 * Private to the fit. Per domain:
 *
 *   fit_rows.c   steps of a counter -> rows of a linear system
 *   fit_lag.c    how late the counter is and over what it averages
 *   fit_columns.c, fit_prior.c, fit_solve.c
 *                the system, by its normal equations, in blocks of rows
 *   fit.c, fit_report.c
 *                domains and logs together -> model and report
 *
 * Column 0 is the length of a row in seconds (idle power); then come the busy
 * seconds of keys; the last may be bytes moved.
 */
#include "base/scratch.h"
#include "energy/load.h"
#include "energy/series.h"
#include "heddle/energy_fit.h"

/* ---- rows ------------------------------------------------------------------ */

/* What one log has of a domain. */
struct heddle_energy_part {
    const struct heddle_energy_load *load;
    const struct heddle_energy_series *series;
    size_t log;
    int64_t lag_ns; /* when a counter is read after it was updated is another
                       matter in each run */
};

struct heddle_energy_system {
    struct heddle_scratch *mem; /* for what stays */
    const struct heddle_energy_keys *keys;
    const char *name, *device;
    struct heddle_energy_part *part;
    size_t nparts;
    size_t ncols;
    size_t *key;    /* [ncols] of the columns 1..; SIZE_MAX: idle or bytes */
    bool has_bytes; /* the last column */
    int64_t window_ns;
};

/* Counter and columns of one row; all columns are additive over rows. */
struct heddle_energy_rows {
    size_t n, ncols;
    double *a;     /* [n x ncols] */
    double *b;     /* [n] joules */
    uint32_t *log; /* [n] */
};

/* Up to `max` steps of each of the n parts from `first` on, each a row; `each`
 * successive ones of a log become one. HEDDLE_ENOMEM. */
HEDDLE_MUST_USE heddle_status heddle_energy_rows_make(struct heddle_scratch *mem,
                                                      const struct heddle_energy_system *s,
                                                      size_t first, size_t n, size_t each,
                                                      size_t max, struct heddle_energy_rows *out);
/* In place: `each` successive rows of one log become one. */
void heddle_energy_rows_merge(struct heddle_energy_rows *r, size_t each);
size_t heddle_energy_count_steps(const struct heddle_energy_system *s);
/* The median length of a step in ns; 0: there is none. HEDDLE_ENOMEM. */
HEDDLE_MUST_USE heddle_status heddle_energy_median_step(const struct heddle_energy_system *s,
                                                        int64_t *out);

/* Sets window_ns, and lag_ns of the parts. HEDDLE_ENOMEM. */
HEDDLE_MUST_USE heddle_status heddle_energy_find_lag(struct heddle_energy_system *s);

/* ---- normal equations ------------------------------------------------------ */

struct heddle_energy_gram {
    size_t n; /* columns */
    double *g, *h;
    double bb;
    double *sum;   /* [n] of the columns, not weighted */
    double joules; /* the same of b */
    size_t nrows;
    size_t log;
};

/* Zeroed; false: no memory. */
bool heddle_energy_gram_init(struct heddle_scratch *mem, size_t n, struct heddle_energy_gram *out);
/* A row, weighted by the square root of its length. */
void heddle_energy_gram_row(struct heddle_energy_gram *g, const double *a, double b);
void heddle_energy_gram_add(struct heddle_energy_gram *to, const struct heddle_energy_gram *from,
                            double factor);
void heddle_energy_gram_clear(struct heddle_energy_gram *g);
double heddle_energy_gram_rss(const struct heddle_energy_gram *g, const double *x);

struct heddle_energy_solution {
    size_t ncols;
    double *x;       /* [ncols] watts; joules per byte */
    double *prior;   /* [ncols] what they are drawn to */
    bool *has_data;  /* [ncols] */
    uint32_t *group; /* [ncols] > 0: columns of one number were merged */
    double *boot;    /* [nboot x ncols] */
    size_t nboot;
    double lambda, r2, condition;
    size_t nrows, each;
    double *predicted, *measured; /* [nlogs] held out; NAN: not done */
    bool is_idle_unclear;         /* a column that hardly differs from idle */
};

struct heddle_energy_solve_opts {
    size_t nlogs, nboot;
    uint64_t seed;
    const heddle_energy *prior; /* may be NULL */
};

/* HEDDLE_ENOMEM. Results are in s->mem. */
HEDDLE_MUST_USE heddle_status heddle_energy_solve(const struct heddle_energy_system *s,
                                                  const struct heddle_energy_solve_opts *o,
                                                  struct heddle_energy_solution *out);

#endif /* HEDDLE_ENERGY_FIT_PRIVATE_H */
