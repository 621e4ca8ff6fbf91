/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_ENERGY_FIT_STATE_H
#define HEDDLE_ENERGY_FIT_STATE_H

/* Private to fit_columns.c, fit_prior.c and fit_solve.c: one domain that is being
 * solved. */
#include "energy/fit.h"

struct heddle_energy_solving {
    const struct heddle_energy_system *s;
    const struct heddle_energy_solve_opts *o;
    struct heddle_energy_solution *out;
    struct heddle_scratch tmp;
    struct heddle_energy_rows rows;
    struct heddle_energy_gram *block; /* [nblocks], all columns */
    size_t nblocks;
    size_t n;                         /* unknowns: groups of columns that have data */
    size_t *to;                       /* [ncols] unknown of a column; SIZE_MAX: it has no data */
    struct heddle_energy_gram *small; /* [nblocks], unknowns */
    struct heddle_energy_gram all;    /* their sum */
    double *prior;                    /* [n] */
    double *ridge;                    /* [n] what lambda is multiplied by; 0: free */
    double *floor;                    /* [n] the least weight of the prior */
    bool *is_pinned;                  /* [n] the prior stands for the data */
    double sigma;                     /* standard deviation of a row */
    double scale;                     /* watts that a kernel may well have */
    double *x, *work, *gl, *hl;
};

/* fit_columns.c: rows, blocks, and which columns are one unknown; `whole` are the
 * normal equations of all columns. HEDDLE_ENOMEM. */
HEDDLE_MUST_USE heddle_status heddle_energy_choose_rows(struct heddle_energy_solving *f);
HEDDLE_MUST_USE heddle_status heddle_energy_choose_columns(struct heddle_energy_solving *f,
                                                           struct heddle_energy_gram *whole);
/* Columns that are one, or left out (SIZE_MAX), into `out`. */
void heddle_energy_gram_compress(const struct heddle_energy_gram *from, const size_t *to,
                                 struct heddle_energy_gram *out);

/* fit_prior.c: what unknowns are drawn to, and how strongly at least.
 * HEDDLE_ENOMEM. */
HEDDLE_MUST_USE heddle_status heddle_energy_choose_prior(struct heddle_energy_solving *f,
                                                         const struct heddle_energy_gram *whole);

#endif /* HEDDLE_ENERGY_FIT_STATE_H */
