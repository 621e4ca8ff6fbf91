/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gelqf, ormlq, orglq: LQ by QR of A^H.
 *
 * A^H = Q R gives A = R^H Q^H: LAPACK's L is R^H, its Q is Q^H, and it keeps the
 * conjugates of the reflectors in the rows of A, which is what V^H is. Block
 * reflectors, their T and tau are the same.
 */
#include "la/la.h"
#include "la/matrix/flip.h"
#include "la/qr/reflect.h"

heddle_status heddle_la_gelqf(heddle_la *la, heddle_matrix *a, heddle_matrix *t)
{
    heddle_matrix *b = NULL;
    heddle_status st;
    size_t n;

    LA_CHECK(la, 1, la != NULL && a != NULL);
    n = la_min(a->m, a->n);
    LA_CHECK(la, 2,
             t != NULL && t->t == a->t && t->nb == a->nb && t->n >= n && t->m >= la_min(a->nb, n));
    if (a->nt == 0)
        return HEDDLE_OK;
    st = heddle_la_temporary(la, a->dtype, a->n, a->m, a->nb, &b);
    if (st == HEDDLE_OK)
        st = heddle_la_flip(la, a, b);
    if (st == HEDDLE_OK)
        st = heddle_la_geqrf(la, b, t);
    if (st == HEDDLE_OK)
        st = heddle_la_flip(la, b, a);
    heddle_matrix_destroy(b);
    return st;
}

heddle_status heddle_la_reflectors_of_rows(heddle_la *la, heddle_matrix *a, const heddle_matrix *t,
                                           heddle_matrix **v_out)
{
    const size_t k = la_min(la_min(a->m, a->n), t->n);
    heddle_matrix *v = NULL;
    heddle_status st = heddle_la_temporary(la, a->dtype, a->n, k, a->nb, &v);

    if (st == HEDDLE_OK)
        st = heddle_la_flip(la, a, v);
    if (st == HEDDLE_OK)
        *v_out = v;
    else
        heddle_matrix_destroy(v);
    return st;
}

static bool is_factor(const heddle_matrix *a, const heddle_matrix *t)
{
    return t != NULL && t->t == a->t && t->nb == a->nb &&
           t->m >= la_min(a->nb, la_min(la_min(a->m, a->n), t->n));
}

heddle_status heddle_la_ormlq(heddle_la *la, char side, char trans, heddle_matrix *a,
                              heddle_matrix *t, heddle_matrix *c)
{
    const char s = heddle_la_letter(side, "LR");
    heddle_matrix *v = NULL;
    heddle_status st;
    char op;

    LA_CHECK(la, 1, la != NULL && s != '\0');
    LA_CHECK(la, 3, a != NULL);
    op = heddle_la_letter(trans, blas_is_complex(a->t) ? "NC" : "NTC");
    LA_CHECK(la, 2, op != '\0');
    LA_CHECK(la, 4, is_factor(a, t));
    LA_CHECK(la, 5,
             c != NULL && c != a && c != t && c->t == a->t && (s == 'L' ? c->m : c->n) == a->n);
    if (a->nt == 0 || c->nt == 0)
        return HEDDLE_OK;
    LA_TRY(heddle_la_reflectors_of_rows(la, a, t, &v));
    st = heddle_la_ormqr(la, s, op == 'N' ? 'C' : 'N', v, t, c);
    heddle_matrix_destroy(v);
    return st;
}

heddle_status heddle_la_orglq(heddle_la *la, heddle_matrix *a, heddle_matrix *t, heddle_matrix *q)
{
    heddle_matrix *v = NULL, *w = NULL;
    heddle_status st;

    LA_CHECK(la, 1, la != NULL && a != NULL);
    LA_CHECK(la, 2, is_factor(a, t));
    LA_CHECK(la, 3, q != NULL && q != t && q->t == a->t && q->n == a->n && q->m <= q->n);
    if (q->nt == 0)
        return HEDDLE_OK;
    LA_TRY(heddle_la_reflectors_of_rows(la, a, t, &v));
    st = heddle_la_temporary(la, q->dtype, q->n, q->m, a->nb, &w);
    if (st == HEDDLE_OK)
        st = heddle_la_orgqr(la, v, t, w);
    if (st == HEDDLE_OK)
        st = heddle_la_flip(la, w, q);
    heddle_matrix_destroy(w);
    heddle_matrix_destroy(v);
    return st;
}
