/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model: by how many cores a panel of LU is made, and how wide it is.
 *
 * While a panel is made, the other cores have updates of the step before. A single
 * core is best as long as these last longer; a gang is where all would wait for
 * the panel: in small matrices, at the end of large ones, with many cores.
 *
 * Step       max(next + D + T, (W + t (T + D / 2)) / p)
 *            T   the panel by a gang of t, from the measured times below
 *            W   the updates beside it, next: the one that the panel waits for
 *            D   until the members have ended what they do; 0 for one core. Of p
 *                cores in updates the t - 1 first are there after (t - 1) / p of one
 * Width      the one with which the steps of LU of such a matrix take least; other
 *            factorisations and products are much the same
 * Numbers    of a Zen 4 core at about 3.7 GHz with OpenBLAS 0.3.21, doubles; what counts
 *            is what they are to each other. A model that learns would choose
 *            otherwise from run to run, and results would differ by rounding.
 */
#include "la/lu/panel.h"

#include <math.h>

enum { FEWEST = 4 }; /* block columns, for what is no factorisation */

/* Nanoseconds, for doubles. */
static const double update_ns = 1 / 48.0;       /* an operation of an update */
static const double product_ns = 0.0222;        /* a panel: for each m n n */
static const double single_ns = 0.9;            /* and each m n, by LAPACK */
static const double gang_ns = 1.9;              /* by us */
static const double square_ns = 0.006;          /* n n n that only one core does */
static const double meeting_ns[2] = {150, 100}; /* that, and so much per member */

static const double thin = 6;       /* an update of n columns is slower by thin / n */
static const double task_ns = 3000; /* a task takes so much more */

static const double margin = 0.95; /* a gang has to be that much better */

/* What an operation of a type takes, against doubles. */
static double weight(enum blas_type t)
{
    static const double of[4] = {0.5, 1, 2, 4};

    return of[t];
}

double heddle_la_panel_seconds(enum blas_type t, size_t m, size_t n, unsigned ngang)
{
    const double rows = (double)m - (double)la_min(m, n) / 3, k = (double)n, g = (double)ngang;
    const double products = rows * k * k * product_ns;
    const double meetings = 1.25 * k * (meeting_ns[0] + meeting_ns[1] * g);

    if (ngang <= 1)
        return 1e-9 * weight(t) * (products + rows * k * single_ns);
    return 1e-9 *
           (weight(t) * ((products + rows * k * gang_ns) / g + k * k * k * square_ns) + meetings);
}

unsigned heddle_la_panel_largest(unsigned ncores)
{
    unsigned most = 1;

#define LARGER(n)                                                                                  \
    if ((n) <= ncores)                                                                             \
        most = (n);
    LA_GANGS(LARGER)
#undef LARGER
    return most;
}

/* Seconds of an update of m x width by k columns. */
static double update_seconds(enum blas_type t, size_t m, size_t k, size_t width)
{
    return 1e-9 *
           (task_ns + weight(t) * 2 * (double)m * (double)width * update_ns * ((double)k + thin));
}

/* Seconds of a step whose panel is made by a gang of that size. */
static double step_seconds(const struct la_panel_case *c, unsigned ngang)
{
    const double p = (double)c->ncores, g = (double)ngang;
    const size_t width = la_min(c->nb, c->columns);
    const double next = width > 0 ? update_seconds(c->t, c->m, c->n, width) : 0,
                 work = width > 0 ? next * (double)c->columns / (double)width : 0;
    const double panel = heddle_la_panel_seconds(c->t, c->m, c->n, ngang);
    /* Where there are fewer updates than cores some are there at once. */
    const double busy = next > 0 ? fmin(1, work / next / p) : 0;
    const double delay = busy * next * (g - 1) / p;

    return fmax(next + delay + panel, (work + g * (panel + delay / 2)) / p);
}

unsigned heddle_la_panel_choose(const struct la_panel_case *c)
{
    double least = c->ncores > 1 ? margin * step_seconds(c, 1) : 0;
    unsigned best = 1;

#define BETTER(n)                                                                                  \
    if ((n) <= c->ncores && step_seconds(c, (n)) < least) {                                        \
        least = step_seconds(c, (n));                                                              \
        best = (n);                                                                                \
    }
    LA_GANGS(BETTER)
#undef BETTER
    return best;
}

/* Seconds of LU of order n with block columns of that width, of one core each: the
 * first panel, then the updates of each step beside the next panel. */
static double all_seconds(size_t n, size_t nb, unsigned ncores)
{
    double sum = heddle_la_panel_seconds(BLAS_D, n, la_min(n, nb), 1);

    for (size_t k0 = 0; k0 + nb < n; k0 += nb) {
        const size_t rest = n - k0 - nb, width = la_min(nb, rest);
        const double next = update_seconds(BLAS_D, n - k0, nb, width),
                     work = next * (double)rest / (double)width,
                     panel = heddle_la_panel_seconds(BLAS_D, rest, width, 1);

        sum += fmax(next + panel, (work + panel) / (double)ncores);
    }
    return sum;
}

size_t heddle_la_width(size_t n, unsigned ncores)
{
    static const size_t widths[] = {48, 64, 96, 144, 192, 256};
    const unsigned p = ncores > 0 ? ncores : 1;
    const size_t most = 256, least = p > 4 ? 128 : 48;
    size_t nb = least;
    double best;

    if (n >= 10 * most * p)
        return most;
    best = all_seconds(n, nb, p);
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
        if (widths[i] > least && n / widths[i] >= FEWEST) {
            const double t = all_seconds(n, widths[i], p);

            if (t < best) {
                best = t;
                nb = widths[i];
            }
        }
    return nb;
}
