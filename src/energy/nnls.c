/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Non-negative least squares by the normal equations.
 *
 * Method     C. L. Lawson and R. J. Hanson, Solving Least Squares Problems,
 *            1974, chapter 23. Columns enter the passive set one by one, that of
 *            the steepest descent first; when the solution on the set leaves
 *            the positive, the step is cut and what became 0 leaves.
 * Start      from all columns, those that come out negative left out: mostly that
 *            is the answer already.
 * Scale      unknowns are scaled so that the diagonal is 1.
 * End        each round lowers the objective, so no set comes twice but for
 *            rounding: 3 n + 10 rounds at most.
 */
#include "energy/nnls.h"

#include <math.h>
#include <string.h>

/* A pivot below this share of its diagonal: the column depends on others. */
#define PIVOT_MIN 1e-12
/* Gradients below this share of the largest |h| are 0. */
#define SLOPE_MIN 1e-12

bool heddle_energy_cholesky(size_t n, const double *g, double *l)
{
    for (size_t i = 0; i < n; i++) {
        const double diagonal = g[i * n + i];

        for (size_t j = 0; j <= i; j++) {
            double s = g[i * n + j];

            for (size_t k = 0; k < j; k++)
                s -= l[i * n + k] * l[j * n + k];
            if (j < i) {
                l[i * n + j] = s / l[j * n + j];
            } else {
                if (!(s > PIVOT_MIN * diagonal) || !(s > 0))
                    return false;
                l[i * n + i] = sqrt(s);
            }
        }
    }
    return true;
}

void heddle_energy_cholesky_solve(size_t n, const double *l, const double *b, double *x)
{
    for (size_t i = 0; i < n; i++) {
        double s = b[i];

        for (size_t k = 0; k < i; k++)
            s -= l[i * n + k] * x[k];
        x[i] = s / l[i * n + i];
    }
    for (size_t i = n; i-- > 0;) {
        double s = x[i];

        for (size_t k = i + 1; k < n; k++)
            s -= l[k * n + i] * x[k];
        x[i] = s / l[i * n + i];
    }
}

/* The problem, scaled, and the passive set. */
struct nnls {
    size_t n, npassive;
    const double *g, *h;
    double *scale; /* 1 / sqrt of the diagonal; 0: a column of zeros */
    double *x;     /* scaled */
    double *z;     /* [npassive] solution on the set */
    double *l;     /* [npassive x npassive] */
    double *set;   /* [npassive] columns, as doubles */
    double *bar;   /* [n] 1: not to be taken in this round */
};

static size_t column(const struct nnls *p, size_t i)
{
    return (size_t)p->set[i];
}

static double entry(const struct nnls *p, size_t i, size_t j)
{
    return p->g[i * p->n + j] * p->scale[i] * p->scale[j];
}

/* The unconstrained solution on the set; false: its columns depend. */
static bool solve_set(struct nnls *p)
{
    const size_t m = p->npassive;

    for (size_t i = 0; i < m; i++) {
        p->z[i] = p->h[column(p, i)] * p->scale[column(p, i)];
        for (size_t j = 0; j <= i; j++)
            p->l[i * m + j] = entry(p, column(p, i), column(p, j));
    }
    if (!heddle_energy_cholesky(m, p->l, p->l))
        return false;
    heddle_energy_cholesky_solve(m, p->l, p->z, p->z);
    return true;
}

/* The column of steepest descent that is 0 now; n: none descends. */
static size_t steepest(const struct nnls *p)
{
    double best = 0, most = 0;
    size_t at = p->n;

    for (size_t i = 0; i < p->n; i++) {
        const double h = fabs(p->h[i] * p->scale[i]);

        if (h > most)
            most = h;
    }
    best = SLOPE_MIN * most;
    for (size_t i = 0; i < p->n; i++) {
        double w = p->h[i] * p->scale[i];

        if (p->scale[i] == 0 || p->bar[i] != 0 || p->x[i] > 0)
            continue;
        for (size_t j = 0; j < p->n; j++)
            if (p->x[j] > 0)
                w -= entry(p, i, j) * p->x[j];
        if (w > best) {
            best = w;
            at = i;
        }
    }
    return at;
}

/* Moves x towards z as far as nothing becomes negative; what became 0 leaves.
 * False: z was reached. */
static bool cut_step(struct nnls *p)
{
    double alpha = 1;
    size_t worst = p->npassive, kept = 0;

    for (size_t i = 0; i < p->npassive; i++) {
        const double x = p->x[column(p, i)];

        if (p->z[i] > 0)
            continue;
        if (x <= 0 || x / (x - p->z[i]) <= alpha) {
            alpha = x <= 0 ? 0 : x / (x - p->z[i]);
            worst = i;
        }
    }
    for (size_t i = 0; i < p->npassive; i++) {
        const size_t c = column(p, i);

        p->x[c] += alpha * (p->z[i] - p->x[c]);
        if (worst < p->npassive && (i == worst || p->x[c] <= 0))
            p->x[c] = 0;
        else
            p->set[kept++] = p->set[i];
    }
    if (worst == p->npassive)
        return false;
    p->npassive = kept;
    return true;
}

/* All columns at once, without those that come out negative, until none does: x
 * is then the solution on the set. If they depend on each other, nothing. */
static void start(struct nnls *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->scale[i] > 0)
            p->set[p->npassive++] = (double)i;
    while (p->npassive > 0) {
        size_t kept = 0;

        if (!solve_set(p)) {
            p->npassive = 0;
            return;
        }
        for (size_t i = 0; i < p->npassive; i++)
            if (p->z[i] > 0)
                p->set[kept++] = p->set[i];
        if (kept == p->npassive)
            break;
        p->npassive = kept;
    }
    for (size_t i = 0; i < p->npassive; i++)
        p->x[column(p, i)] = p->z[i];
}

/* Takes a column in, and solves; false: it cannot be told from those in use. */
static bool take(struct nnls *p, size_t c)
{
    p->set[p->npassive++] = (double)c;
    if (!solve_set(p) || !(p->z[p->npassive - 1] > 0)) {
        p->npassive--;
        return false;
    }
    while (cut_step(p))
        if (p->npassive == 0 || !solve_set(p))
            break;
    return true;
}

void heddle_energy_nnls(size_t n, const double *g, const double *h, double *x, double *work)
{
    struct nnls p = {.n = n, .g = g, .h = h, .x = x};

    p.l = work;
    p.scale = work + n * n;
    p.z = p.scale + n;
    p.set = p.z + n;
    p.bar = p.set + n;
    for (size_t i = 0; i < n; i++) {
        const double d = g[i * n + i];

        p.scale[i] = d > 0 && isfinite(d) ? 1 / sqrt(d) : 0;
        p.x[i] = 0;
        p.bar[i] = 0;
    }
    start(&p);
    for (size_t round = 0; round < 3 * n + 10; round++) {
        const size_t c = steepest(&p);

        if (c == n)
            break;
        if (take(&p, c))
            memset(p.bar, 0, n * sizeof(*p.bar));
        else
            p.bar[c] = 1;
    }
    for (size_t i = 0; i < n; i++)
        x[i] *= p.scale[i];
}

/* The largest eigenvalue by powers: of g scaled, or with l of its inverse. */
static double power(size_t n, const double *g, const double *scale, const double *l, double *v,
                    double *u)
{
    double value = 0;

    for (size_t i = 0; i < n; i++)
        v[i] = 1 + 0.1 * (double)((i * 7) % 11) * (i % 2 == 0 ? 1 : -1);
    for (int k = 0; k < 60; k++) {
        double norm = 0;

        for (size_t i = 0; i < n; i++)
            norm += v[i] * v[i];
        norm = sqrt(norm);
        for (size_t i = 0; i < n; i++)
            v[i] /= norm;
        if (l != NULL) {
            heddle_energy_cholesky_solve(n, l, v, u);
        } else {
            for (size_t i = 0; i < n; i++) {
                u[i] = 0;
                for (size_t j = 0; j < n; j++)
                    u[i] += g[i * n + j] * scale[i] * scale[j] * v[j];
            }
        }
        value = 0;
        for (size_t i = 0; i < n; i++)
            value += u[i] * v[i];
        memcpy(v, u, n * sizeof(*v));
    }
    return value;
}

double heddle_energy_condition(size_t n, const double *g, double *work)
{
    double *l = work, *scale = work + n * n, *v = scale + n, *u = v + n;
    double largest;

    if (n == 0)
        return 1;
    for (size_t i = 0; i < n; i++) {
        if (!(g[i * n + i] > 0))
            return INFINITY;
        scale[i] = 1 / sqrt(g[i * n + i]);
    }
    largest = power(n, g, scale, NULL, v, u);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++)
            l[i * n + j] = g[i * n + j] * scale[i] * scale[j];
    if (!heddle_energy_cholesky(n, l, l))
        return INFINITY;
    return sqrt(largest * power(n, NULL, NULL, l, v, u));
}
