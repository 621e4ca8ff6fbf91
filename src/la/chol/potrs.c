/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * potrs: solves with the factor of Cholesky; posv: both. After a pivot that is not
 * positive the sequence is broken, and the solve does nothing.
 */
#include "la/la.h"

static bool fits(const heddle_matrix *a, const heddle_matrix *b)
{
    return b != NULL && b != a && b->t == a->t && b->m == a->m;
}

heddle_status heddle_la_potrs(heddle_la *la, char uplo, heddle_matrix *a, heddle_matrix *b)
{
    const void *one;

    uplo = heddle_la_letter(uplo, "UL");
    LA_CHECK(la, 1, la != NULL && uplo != '\0');
    LA_CHECK(la, 2, a != NULL && a->m == a->n);
    LA_CHECK(la, 3, fits(a, b));
    one = heddle_blas_one(a->t);
    LA_TRY(heddle_la_trsm(la, 'L', uplo, uplo == 'L' ? 'N' : 'C', 'N', one, a, b));
    return heddle_la_trsm(la, 'L', uplo, uplo == 'L' ? 'C' : 'N', 'N', one, a, b);
}

heddle_status heddle_la_posv(heddle_la *la, char uplo, heddle_matrix *a, heddle_matrix *b)
{
    LA_CHECK(la, 1, la != NULL && heddle_la_letter(uplo, "UL") != '\0');
    LA_CHECK(la, 2, a != NULL && a->m == a->n);
    LA_CHECK(la, 3, fits(a, b));
    LA_TRY(heddle_la_potrf(la, uplo, a));
    return heddle_la_potrs(la, uplo, a, b);
}
