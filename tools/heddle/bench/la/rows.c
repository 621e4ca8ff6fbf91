/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/la/rows: the routines that `heddle bench` measures, one row each.
 */
#include <string.h>

#include "bench/la/la.h"

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

static heddle_status ours_tsqr(struct la_call *k)
{
    return heddle_la_tsqr(k->la, HEDDLE_LA_TALL_AUTO, k->x[0], k->x[1]);
}

static heddle_status ours_gels(struct la_call *k)
{
    return heddle_la_gels(k->la, 'N', k->x[0], k->x[1]);
}

static const float ones_s[2] = {1, 0};
static const double ones_d[2] = {1, 0};

static const void *one(enum la_type t)
{
    return t == LA_S || t == LA_C ? (const void *)ones_s : (const void *)ones_d;
}

static heddle_status ours_gemm(struct la_call *k)
{
    const void *alpha = one(k->p->t);

    return heddle_la_gemm(k->la, 'N', 'N', alpha, k->x[0], k->x[1], alpha, k->x[2]);
}

static heddle_status ours_syrk(struct la_call *k)
{
    const void *alpha = one(k->p->t);

    return heddle_la_syrk(k->la, 'L', 'N', alpha, k->x[0], alpha, k->x[1]);
}

static heddle_status ours_trsm(struct la_call *k)
{
    return heddle_la_trsm(k->la, 'L', 'L', 'N', 'N', one(k->p->t), k->x[0], k->x[1]);
}

static heddle_status ours_trtri(struct la_call *k)
{
    return heddle_la_trtri(k->la, 'L', 'N', k->x[0]);
}

static heddle_status ours_potri(struct la_call *k)
{
    return heddle_la_potri(k->la, 'L', k->x[0]);
}

static heddle_status ours_posv(struct la_call *k)
{
    return heddle_la_posv(k->la, 'L', k->x[0], k->x[1]);
}

static heddle_status ours_gesv(struct la_call *k)
{
    return heddle_la_gesv(k->la, k->x[0], k->p->ipiv, k->x[1]);
}

static heddle_status ours_posv_mixed(struct la_call *k)
{
    struct heddle_la_refined r = {.size = sizeof(r)};
    const heddle_status st = heddle_la_posv_mixed(k->la, HEDDLE_LA_REFINE_AUTO, 'L', k->x[0],
                                                  k->x[1], k->x[2], &r, &k->info);

    k->p->iterations = r.iterations;
    k->p->refined = r;
    return st;
}

static heddle_status ours_gesv_mixed(struct la_call *k)
{
    struct heddle_la_refined r = {.size = sizeof(r)};
    const heddle_status st = heddle_la_gesv_mixed(k->la, HEDDLE_LA_REFINE_AUTO, k->x[0], k->p->ipiv,
                                                  k->x[1], k->x[2], &r, &k->info);

    k->p->iterations = r.iterations;
    k->p->refined = r;
    return st;
}

/* In full precision, with the solution in operand 2. */
static heddle_status self_posv(struct la_call *k)
{
    const heddle_status st = heddle_la_lacpy(k->la, 'A', k->x[1], k->x[2]);

    return st == HEDDLE_OK ? heddle_la_posv(k->la, 'L', k->x[0], k->x[2]) : st;
}

static heddle_status self_gesv(struct la_call *k)
{
    const heddle_status st = heddle_la_lacpy(k->la, 'A', k->x[1], k->x[2]);

    return st == HEDDLE_OK ? heddle_la_gesv(k->la, k->x[0], k->p->ipiv, k->x[2]) : st;
}

/* --- the rows ---------------------------------------------------------------------- */

const struct la_row la_rows[] = {
    {.name = "potrf",
     .types = "sdcz",
     .x = {{'n', 'n', LA_POSITIVE, true}},
     .is_square = true,
     .gpu = LA_GPU_POTRF,
     .limit = 60,
     .ours = ours_potrf,
     .peer = la_peer_potrf,
     .residual = la_check_potrf},
    {.name = "getrf",
     .types = "sdcz",
     .x = {{'m', 'n', LA_RANDOM, true}},
     .has_pivots = true,
     .gpu = LA_GPU_GETRF,
     .limit = 60,
     .ours = ours_getrf,
     .self = ours_getrf_nopiv,
     .self_name = "getrf_nopiv",
     .peer = la_peer_getrf,
     .residual = la_check_getrf},
    {.name = "getrf_nopiv",
     .types = "sdcz",
     .x = {{'m', 'n', LA_DOMINANT, true}},
     .gpu = LA_GPU_GETRF,
     .limit = 60,
     .ours = ours_getrf_nopiv,
     .peer = la_peer_getrf,
     .residual = la_check_getrf},
    {.name = "geqrf",
     .types = "sdcz",
     .x = {{'m', 'n', LA_RANDOM, true}},
     .has_tau = true,
     .gpu = LA_GPU_GEQRF,
     .limit = 60,
     .ours = ours_geqrf,
     .peer = la_peer_geqrf,
     .residual = la_check_geqrf},
    {.name = "tsqr",
     .types = "sdcz",
     .x = {{'m', 'n', LA_RANDOM, true}, {'n', 'n', LA_ZERO, true}},
     .tall = 8,
     .limit = 60,
     .ours = ours_tsqr,
     .peer = la_peer_tsqr,
     .residual = la_check_tsqr},
    {.name = "gemm",
     .types = "sdcz",
     .x = {{'m', 'n', LA_RANDOM, false}, {'n', 'n', LA_RANDOM, false}, {'m', 'n', LA_RANDOM, true}},
     .gpu = LA_GPU_GEMM,
     .limit = 10,
     .ours = ours_gemm,
     .peer = la_peer_gemm,
     .residual = la_check_gemm},
    {.name = "syrk",
     .types = "sdcz",
     .x = {{'n', 'n', LA_RANDOM, false}, {'n', 'n', LA_RANDOM, true}},
     .is_square = true,
     .limit = 10,
     .ours = ours_syrk,
     .peer = la_peer_syrk,
     .residual = la_check_syrk},
    {.name = "trsm",
     .types = "sdcz",
     .x = {{'n', 'n', LA_DOMINANT, false}, {'n', 'r', LA_RANDOM, true}},
     .is_square = true,
     .nrhs = 'n',
     .limit = 60,
     .ours = ours_trsm,
     .peer = la_peer_trsm,
     .residual = la_check_trsm},
    {.name = "trtri",
     .types = "sdcz",
     .x = {{'n', 'n', LA_FACTOR, true}},
     .is_square = true,
     .limit = 60,
     .ours = ours_trtri,
     .peer = la_peer_trtri,
     .residual = la_check_trtri},
    {.name = "potri",
     .types = "sdcz",
     .x = {{'n', 'n', LA_FACTOR, true}},
     .is_square = true,
     .limit = 60,
     .ours = ours_potri,
     .peer = la_peer_potri,
     .residual = la_check_potri},
    {.name = "posv",
     .types = "sdcz",
     .x = {{'n', 'n', LA_POSITIVE, true}, {'n', 'r', LA_RANDOM, true}},
     .is_square = true,
     .nrhs = '1',
     .limit = 60,
     .ours = ours_posv,
     .peer = la_peer_posv,
     .residual = la_check_solve},
    {.name = "gesv",
     .types = "sdcz",
     .x = {{'n', 'n', LA_RANDOM, true}, {'n', 'r', LA_RANDOM, true}},
     .is_square = true,
     .nrhs = '1',
     .has_pivots = true,
     .limit = 60,
     .ours = ours_gesv,
     .peer = la_peer_gesv,
     .residual = la_check_solve},
    {.name = "posv_mixed",
     .types = "dz",
     .x = {{'n', 'n', LA_POSITIVE, true}, {'n', 'r', LA_RANDOM, false}, {'n', 'r', LA_ZERO, true}},
     .is_square = true,
     .nrhs = '1',
     .limit = 60,
     .ours = ours_posv_mixed,
     .self = self_posv,
     .self_name = "posv",
     .peer = la_peer_posv_mixed,
     .residual = la_check_solve_x},
    {.name = "gesv_mixed",
     .types = "dz",
     .x = {{'n', 'n', LA_RANDOM, true}, {'n', 'r', LA_RANDOM, false}, {'n', 'r', LA_ZERO, true}},
     .is_square = true,
     .nrhs = '1',
     .has_pivots = true,
     .limit = 60,
     .ours = ours_gesv_mixed,
     .self = self_gesv,
     .self_name = "gesv",
     .peer = la_peer_gesv_mixed,
     .residual = la_check_solve_x},
    {.name = "gels",
     .types = "sdcz",
     .x = {{'m', 'n', LA_RANDOM, true}, {'m', 'r', LA_RANDOM, true}},
     .tall = 2,
     .nrhs = '1',
     .limit = 60,
     .ours = ours_gels,
     .peer = la_peer_gels,
     .residual = la_check_gels},
    {0}};

double la_row_flops(const struct la_row *row, size_t m, size_t n, size_t nrhs)
{
    const struct heddle_la_routine *x;

    for (unsigned i = 0; (x = heddle_la_get_routine(i)) != NULL; i++)
        if (strcmp(x->name, row->name) == 0)
            return x->flops((double)m, (double)n, (double)(row->nrhs != 0 ? nrhs : n));
    return 0;
}
