/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_ENERGY_DUAL_H
#define HEDDLE_ENERGY_DUAL_H

/*
 * Private to energy: the problem of a bound, and its solver.
 *
 * A position is an index in topological order. A reason is one inequality that
 * says that time passes, normalised: its load under an allocation, plus `lead`,
 * is at most the length of the schedule.
 *
 * bound_check.c does not include this header: it must not share anything.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/lp.h"
#include "base/scratch.h"
#include "heddle/energy_bound.h"

enum {
    HEDDLE_DUAL_REASONS = 192, /* at most, at a time */
    HEDDLE_DUAL_PLANS = 256,
    HEDDLE_DUAL_WINDOWS = 96,
    HEDDLE_DUAL_GRID = 64,     /* levels of heads, and of tails */
    HEDDLE_DUAL_FIXED_ROWS = 2 /* of the program, before plans */
};

struct heddle_dual_dag {
    uint32_t n, r, e;
    uint32_t *type;              /* [r] in the caller's graph: those with workers */
    double *nworkers;            /* [r] */
    const double *time, *joules; /* the caller's, [rows x ntypes] */
    uint32_t ntypes;
    uint32_t *row;       /* [n] of the task at a position */
    uint32_t *task;      /* [n] its index in the caller's graph */
    uint32_t *pred_end;  /* [n + 1] */
    uint32_t *pred;      /* [e] positions < v */
    uint32_t *pred_edge; /* [e] in the caller's graph */
    double *head, *tail; /* [n] longest chains before and after, at the fastest */
    double deadline;     /* INFINITY: none */
    double idle;
};

enum heddle_dual_kind {
    HEDDLE_DUAL_AREA, /* the work of the tasks of a window on a type */
    HEDDLE_DUAL_PATH, /* the tasks of a path */
    HEDDLE_DUAL_GIVEN /* a certificate of the length */
};

struct heddle_dual_reason {
    enum heddle_dual_kind kind;
    uint32_t window, type; /* AREA */
    uint32_t length;       /* PATH: positions; between them indices of pred */
    uint32_t *pos, *step;
    double lead;
};

/* A certificate of the length, by position, with n = 1. */
struct heddle_dual_given {
    double head, tail;
    double *price; /* [r] */
    double *flow;  /* [n] */
};

struct heddle_dual_window {
    double head, tail;
};

/* The answer: multipliers of reasons. */
struct heddle_dual_sol {
    double value, upper;
    uint32_t iterations;
    uint32_t nreasons, nwindows;
    const struct heddle_dual_reason *reason;
    const struct heddle_dual_window *window; /* the first is the whole */
    const double *s;                         /* [nreasons] */
};

struct heddle_dual_effort {
    uint32_t iterations;
    uint64_t deadline; /* heddle_clock_ns; 0: none */
    double gap;
};

/* Of a graph that heddle_bound_all() accepted. */
HEDDLE_MUST_USE heddle_status heddle_dual_build(const struct heddle_energy_graph *eg,
                                                double deadline, struct heddle_scratch *m,
                                                struct heddle_dual_dag *d_out);

/* Can the task at v run on type r (of d) in time? *time_out: how long. */
static inline bool heddle_dual_can(const struct heddle_dual_dag *d, uint32_t v, uint32_t r,
                                   double *time_out)
{
    const double p = d->time[(size_t)d->row[v] * d->ntypes + d->type[r]];

    *time_out = p;
    /* The checker leaves out a little more, so rounding cannot matter. */
    return d->head[v] + p + d->tail[v] <= d->deadline * (1.0 + 2e-9) && p * 0.0 == 0.0;
}

/* `given` may be NULL. What sol_out points to is in m. */
HEDDLE_MUST_USE heddle_status heddle_dual_solve(const struct heddle_dual_dag *d,
                                                const struct heddle_dual_given *given,
                                                const struct heddle_dual_effort *effort,
                                                double length, struct heddle_scratch *m,
                                                struct heddle_dual_sol *sol_out);

/* --- inside the solver --------------------------------------------------------- */

struct heddle_dual {
    const struct heddle_dual_dag *d;
    const struct heddle_dual_given *given;
    struct heddle_scratch *m;
    struct heddle_lp lp;
    double tscale, escale;

    struct heddle_dual_reason *reason;
    uint32_t nreasons;
    struct heddle_dual_window *window;
    uint32_t nwindows;
    size_t path_words;

    uint8_t **plan; /* [PLANS] types */
    uint32_t nplans, max_plans;
    double *energy; /* [PLANS] */
    double *load;   /* [PLANS x REASONS] */

    double s[HEDDLE_DUAL_REASONS]; /* of the program */
    double best_s[HEDDLE_DUAL_REASONS], best;
    double value; /* of the last program */
    double u[HEDDLE_DUAL_PLANS + HEDDLE_DUAL_FIXED_ROWS], length;

    double *mean; /* [n] times under the mix */
    double *len;  /* [n] */
    uint32_t *via;
    double *flow;      /* [n] */
    uint32_t ngrid[2]; /* levels */
    double level[2][HEDDLE_DUAL_GRID];
    uint16_t *cell; /* [n] */
    double *grid;   /* [r x HEDDLE_DUAL_GRID x HEDDLE_DUAL_GRID] */
};

static inline bool heddle_dual_in_window(const struct heddle_dual *x, uint32_t v, uint32_t w)
{
    return x->d->head[v] >= x->window[w].head && x->d->tail[v] >= x->window[w].tail;
}

static inline bool heddle_dual_in_given(const struct heddle_dual *x, uint32_t v)
{
    return x->d->head[v] >= x->given->head && x->d->tail[v] >= x->given->tail;
}

static inline double heddle_dual_time_of(const struct heddle_dual *x, uint32_t v, uint32_t r)
{
    return x->d->time[(size_t)x->d->row[v] * x->d->ntypes + x->d->type[r]];
}

static inline double heddle_dual_joules_of(const struct heddle_dual *x, uint32_t v, uint32_t r)
{
    return x->d->joules[(size_t)x->d->row[v] * x->d->ntypes + x->d->type[r]];
}

/* --- dual_reason.c --- */

double heddle_dual_load(const struct heddle_dual *x, const uint8_t *plan,
                        const struct heddle_dual_reason *q);
/* Puts a reason behind the others; its loads under all plans are computed. */
void heddle_dual_add_reason(struct heddle_dual *x, const struct heddle_dual_reason *q);
/* Levels of the grid, and the cell of each task. */
HEDDLE_MUST_USE heddle_status heddle_dual_levels(struct heddle_dual *x);
/* The mix of plans by u: mean times, and loads on the grid. */
void heddle_dual_mix(struct heddle_dual *x);
/* Adds the longest path under the mean times, if it is longer than `length`; the
 * same under one plan, if it is longer than `than`. */
HEDDLE_MUST_USE heddle_status heddle_dual_add_path(struct heddle_dual *x);
HEDDLE_MUST_USE heddle_status heddle_dual_path_of_plan(struct heddle_dual *x, uint32_t plan,
                                                       double than);
/* Adds the fullest window of each type, if it needs more than `length`. */
void heddle_dual_add_windows(struct heddle_dual *x);

#endif /* HEDDLE_ENERGY_DUAL_H */
