/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * getrs: solves with the factors of LU; gesv: both.
 *
 *   'N'      B = P B; L Y = B; U X = Y
 *   'T' 'C'  op(U) Y = B; op(L) Z = Y; X = P^-1 Z
 */
#include "la/la.h"

static heddle_status solve(heddle_la *la, char trans, heddle_matrix *a, const int *ipiv,
                           heddle_matrix *b)
{
    const void *one = heddle_blas_one(a->t);

    if (a->nt == 0 || b->nt == 0)
        return HEDDLE_OK;
    if (trans == 'N') {
        if (ipiv != NULL)
            LA_TRY(heddle_la_laswp_after(la, b, ipiv, a->n, false, a));
        LA_TRY(heddle_la_trsm(la, 'L', 'L', 'N', 'U', one, a, b));
        return heddle_la_trsm(la, 'L', 'U', 'N', 'N', one, a, b);
    }
    LA_TRY(heddle_la_trsm(la, 'L', 'U', trans, 'N', one, a, b));
    LA_TRY(heddle_la_trsm(la, 'L', 'L', trans, 'U', one, a, b));
    return ipiv != NULL ? heddle_la_laswp_after(la, b, ipiv, a->n, true, a) : HEDDLE_OK;
}

static bool fits(const heddle_matrix *a, const heddle_matrix *b)
{
    return b != NULL && b != a && b->t == a->t && b->m == a->m;
}

heddle_status heddle_la_getrs(heddle_la *la, char trans, heddle_matrix *a, const int *ipiv,
                              heddle_matrix *b)
{
    bool are_legal = true;

    trans = heddle_la_letter(trans, "NTC");
    LA_CHECK(la, 1, la != NULL && trans != '\0');
    LA_CHECK(la, 2, a != NULL && a->m == a->n);
    LA_CHECK(la, 4, fits(a, b));
    if (ipiv != NULL)
        LA_TRY(heddle_la_pivots_check(la, ipiv, a->n, a->n, &are_legal));
    LA_CHECK(la, 3, are_legal);
    return solve(la, trans, a, ipiv, b);
}

heddle_status heddle_la_gesv(heddle_la *la, heddle_matrix *a, int *ipiv, heddle_matrix *b)
{
    struct la_gate *outer;
    struct la_head h;
    heddle_status st;

    LA_CHECK(la, 1, la != NULL && a != NULL && a->m == a->n);
    LA_CHECK(la, 2, ipiv != NULL || a->n == 0);
    LA_CHECK(la, 3, fits(a, b));
    LA_TRY(heddle_la_getrf(la, a, ipiv));
    LA_TRY(heddle_la_gate_open(la, &outer));
    h = heddle_la_begin(la, a);
    st = heddle_la_gate_diagonal(&h, a, b, false);
    if (st == HEDDLE_OK)
        st = solve(la, 'N', a, ipiv, b);
    heddle_la_gate_close(la, outer);
    return st;
}
