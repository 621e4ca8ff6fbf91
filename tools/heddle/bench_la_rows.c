/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_la_rows: the routines that `heddle bench` measures, one row each.
 *
 * Operations the usual counts, which are also those of methods that do more or less.
 */
#include "bench_la.h"

/* --- operations ----------------------------------------------------------------- */

static double flops_potrf(double m, double n, double r)
{
    (void)m;
    (void)r;
    return n * n * n / 3 + n * n / 2 + n / 6;
}

static double flops_getrf(double m, double n, double r)
{
    const double k = m < n ? m : n, l = m < n ? n : m;

    (void)r;
    return l * k * k - k * k * k / 3 - k * k / 2 + 5 * k / 6;
}

static double flops_geqrf(double m, double n, double r)
{
    const double k = m < n ? m : n, l = m < n ? n : m;

    (void)r;
    return 2 * l * k * k - 2 * k * k * k / 3 + l * k + k * k + 14 * k / 3;
}

/* --- our calls -------------------------------------------------------------------- */

static heddle_status ours_potrf(struct la_call *k)
{
    return heddle_la_potrf(k->la, 'L', k->x[0]);
}

static heddle_status ours_getrf(struct la_call *k)
{
    return heddle_la_getrf(k->la, k->x[0], k->p->ipiv);
}

static heddle_status ours_getrf_nopiv(struct la_call *k)
{
    return heddle_la_getrf_nopiv(k->la, k->x[0]);
}

static heddle_status ours_geqrf(struct la_call *k)
{
    return heddle_la_geqrf(k->la, k->x[0], k->t);
}

/* --- the rows ---------------------------------------------------------------------- */

const struct la_row la_rows[] = {
    {.name = "potrf",
     .what = "A = L L^H of order N",
     .types = "sdcz",
     .x = {{'n', 'n', LA_POSITIVE, true}},
     .is_square = true,
     .gpu = LA_GPU_POTRF,
     .limit = 60,
     .flops = flops_potrf,
     .ours = ours_potrf,
     .peer = la_peer_potrf,
     .residual = la_check_potrf},
    {.name = "getrf",
     .what = "P A = L U, A is M x N",
     .types = "sdcz",
     .x = {{'m', 'n', LA_RANDOM, true}},
     .has_pivots = true,
     .gpu = LA_GPU_GETRF,
     .limit = 60,
     .flops = flops_getrf,
     .ours = ours_getrf,
     .peer = la_peer_getrf,
     .residual = la_check_getrf},
    {.name = "getrf_nopiv",
     .what = "A = L U, A is M x N; LAPACK, which has it not, pivots",
     .types = "sdcz",
     .x = {{'m', 'n', LA_DOMINANT, true}},
     .gpu = LA_GPU_GETRF,
     .limit = 60,
     .flops = flops_getrf,
     .ours = ours_getrf_nopiv,
     .peer = la_peer_getrf,
     .residual = la_check_getrf},
    {.name = "geqrf",
     .what = "A = Q R, A is M x N",
     .types = "sdcz",
     .x = {{'m', 'n', LA_RANDOM, true}},
     .has_tau = true,
     .gpu = LA_GPU_GEQRF,
     .limit = 60,
     .flops = flops_geqrf,
     .ours = ours_geqrf,
     .peer = la_peer_geqrf,
     .residual = la_check_geqrf},
    {0}};
