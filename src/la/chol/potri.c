/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * potri: the inverse from the factor of Cholesky: that of the triangle, then its
 * product with itself, which does nothing when the triangle is singular.
 */
#include "la/la.h"

heddle_status heddle_la_potri(heddle_la *la, char uplo, heddle_matrix *a)
{
    struct la_gate *outer;
    heddle_status st;

    LA_CHECK(la, 1, la != NULL && heddle_la_letter(uplo, "UL") != '\0');
    LA_CHECK(la, 2, a != NULL && a->m == a->n);
    LA_TRY(heddle_la_gate_open(la, &outer));
    st = heddle_la_trtri(la, uplo, 'N', a);
    if (st == HEDDLE_OK)
        st = heddle_la_lauum(la, uplo, a);
    heddle_la_gate_close(la, outer);
    return st;
}
