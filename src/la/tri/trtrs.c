/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trtrs: solves with a triangle, unless it is singular.
 */
#include "la/la.h"

heddle_status heddle_la_trtrs(heddle_la *la, char uplo, char trans, char diag, heddle_matrix *a,
                              heddle_matrix *b)
{
    struct la_gate *outer;
    struct la_head h;
    heddle_status st = HEDDLE_OK;

    uplo = heddle_la_letter(uplo, "UL");
    trans = heddle_la_letter(trans, "NTC");
    diag = heddle_la_letter(diag, "NU");
    LA_CHECK(la, 1, la != NULL && uplo != '\0');
    LA_CHECK(la, 2, trans != '\0');
    LA_CHECK(la, 3, diag != '\0');
    LA_CHECK(la, 4, a != NULL && a->m == a->n);
    LA_CHECK(la, 5, b != NULL && b != a && b->t == a->t && b->m == a->m);
    LA_TRY(heddle_la_gate_open(la, &outer));
    h = heddle_la_begin(la, a);
    if (diag == 'N')
        st = heddle_la_gate_diagonal(&h, a, b, true);
    if (st == HEDDLE_OK)
        st = heddle_la_trsm(la, 'L', uplo, trans, diag, heddle_blas_one(a->t), a, b);
    heddle_la_gate_close(la, outer);
    return st;
}
