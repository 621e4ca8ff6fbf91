/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reflect: a block reflector applied by products.
 *
 *   left   W = V^H C; W = op(T) W; C = C - V W
 *   right  W = C V;   W = W op(T); C = C - W V^H
 *
 * V = [V1; V2], V1 unit lower triangular: W gets its part by trmm on a copy.
 */
#include "la/qr/reflect.h"

static void copy_block(enum blas_type t, struct blas_block from, struct blas_block to)
{
    for (size_t j = 0; j < from.n; j++)
        memcpy(blas_at(t, to, 0, j), blas_at(t, from, 0, j), from.m * blas_bytes(t));
}

/* to = to - from, column by column; lengths in real numbers. */
static void subtract(enum blas_type t, struct blas_block from, struct blas_block to)
{
    const size_t n = from.m * (blas_is_complex(t) ? 2 : 1);

    for (size_t j = 0; j < from.n; j++) {
        if (blas_real_bytes(t) == 4) {
            const float *s = blas_at(t, from, 0, j);
            float *d = blas_at(t, to, 0, j);

            for (size_t i = 0; i < n; i++)
                d[i] -= s[i];
        } else {
            const double *s = blas_at(t, from, 0, j);
            double *d = blas_at(t, to, 0, j);

            for (size_t i = 0; i < n; i++)
                d[i] -= s[i];
        }
    }
}

static heddle_status reflect_left(heddle_la *la, enum blas_type t, char trans, struct blas_block v,
                                  struct blas_block tri, struct blas_block c)
{
    const size_t k = v.n, rest = v.m - k;
    const void *one = heddle_blas_one(t);
    const struct blas_block v2 = blas_part(t, v, k, 0, rest, k);
    const struct blas_block c1 = blas_part(t, c, 0, 0, k, c.n),
                            c2 = blas_part(t, c, k, 0, rest, c.n);
    const struct blas_block w = {heddle_la_work(la, k * c.n * blas_bytes(t)), k, c.n, k};

    if (w.a == NULL)
        return HEDDLE_ENOMEM;
    copy_block(t, c1, w);
    heddle_blas_trmm(t, 'L', 'L', 'C', 'U', one, v, w);
    heddle_blas_gemm(t, 'C', 'N', one, v2, c2, one, w);
    heddle_blas_trmm(t, 'L', 'U', trans, 'N', one, tri, w);
    heddle_blas_gemm(t, 'N', 'N', heddle_blas_minus_one(t), v2, w, one, c2);
    heddle_blas_trmm(t, 'L', 'L', 'N', 'U', one, v, w);
    subtract(t, w, c1);
    return HEDDLE_OK;
}

static heddle_status reflect_right(heddle_la *la, enum blas_type t, char trans, struct blas_block v,
                                   struct blas_block tri, struct blas_block c)
{
    const size_t k = v.n, rest = v.m - k;
    const void *one = heddle_blas_one(t);
    const struct blas_block v2 = blas_part(t, v, k, 0, rest, k);
    const struct blas_block c1 = blas_part(t, c, 0, 0, c.m, k),
                            c2 = blas_part(t, c, 0, k, c.m, rest);
    const struct blas_block w = {heddle_la_work(la, c.m * k * blas_bytes(t)), c.m, k, c.m};

    if (w.a == NULL)
        return HEDDLE_ENOMEM;
    copy_block(t, c1, w);
    heddle_blas_trmm(t, 'R', 'L', 'N', 'U', one, v, w);
    heddle_blas_gemm(t, 'N', 'N', one, c2, v2, one, w);
    heddle_blas_trmm(t, 'R', 'U', trans, 'N', one, tri, w);
    heddle_blas_gemm(t, 'N', 'C', heddle_blas_minus_one(t), w, v2, one, c2);
    heddle_blas_trmm(t, 'R', 'L', 'C', 'U', one, v, w);
    subtract(t, w, c1);
    return HEDDLE_OK;
}

heddle_status heddle_la_reflect(heddle_la *la, enum blas_type t, char side, char trans,
                                struct blas_block v, struct blas_block tri, struct blas_block c)
{
    if (v.n == 0 || c.m == 0 || c.n == 0)
        return HEDDLE_OK;
    return side == 'L' ? reflect_left(la, t, trans, v, tri, c)
                       : reflect_right(la, t, trans, v, tri, c);
}
