/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plain loops over a matrix of elements T, with vectors of V, which is double or
 * double complex. Included once per type by bench_la_check.c, which defines
 * NAME(x), T, V, CONJ(x) and ABS(x).
 */

/* y = y + alpha op(a) x, for nv vectors. */
static void NAME(mul)(const struct part *a, double alpha, const void *x_ptr,
                      size_t ldx, void *y_ptr, size_t ldy, size_t nv)
{
    const V *x = x_ptr;
    V *y = y_ptr;

    for (size_t j = 0; j < a->n; j++) {
        const T *col = (const T *)a->p + j * a->ld;
        const struct range r = part_rows(a, j);

        for (size_t v = 0; v < nv; v++) {
            const V *xv = x + v * ldx;
            V *yv = y + v * ldy;
            V s = 0;

            if (!a->is_adjoint) {
                s = alpha * xv[j];
                for (size_t i = r.from; i < r.to; i++)
                    yv[i] += s * (V)col[i];
                if (a->shape == UNIT_LOWER && j < a->m)
                    yv[j] += s;
            } else {
                for (size_t i = r.from; i < r.to && !a->is_plain; i++)
                    s += CONJ((V)col[i]) * xv[i];
                for (size_t i = r.from; i < r.to && a->is_plain; i++)
                    s += (V)col[i] * xv[i];
                if (a->shape == UNIT_LOWER && j < a->m)
                    s += xv[j];
                yv[j] += alpha * s;
            }
        }
    }
}

/* x = Q x or Q^H x, with the reflectors below the diagonal of a. */
static void NAME(reflect)(const struct part *a, const void *tau_ptr,
                          void *x_ptr, size_t ldx, size_t nv)
{
    const T *tau = tau_ptr;
    const size_t k = a->m < a->n ? a->m : a->n;
    V *x = x_ptr;

    for (size_t at = 0; at < k; at++) {
        const size_t j = a->is_adjoint ? at : k - 1 - at;
        const T *col = (const T *)a->p + j * a->ld;
        const V f = a->is_adjoint ? CONJ((V)tau[j]) : (V)tau[j];

        for (size_t v = 0; v < nv; v++) {
            V *xv = x + v * ldx;
            V s = xv[j];

            for (size_t i = j + 1; i < a->m; i++)
                s += CONJ((V)col[i]) * xv[i];
            s *= f;
            xv[j] -= s;
            for (size_t i = j + 1; i < a->m; i++)
                xv[i] -= s * (V)col[i];
        }
    }
}

/* The largest sum of a column, and of a row. */
static double NAME(norm1)(const struct part *a)
{
    double most = 0;

    for (size_t j = 0; j < a->n; j++) {
        const T *col = (const T *)a->p + j * a->ld;
        const struct range r = part_rows(a, j);
        double s = a->shape == UNIT_LOWER ? 1 : 0;

        for (size_t i = r.from; i < r.to; i++)
            s += ABS(col[i]);
        if (!(s <= most)) /* NaN stays */
            most = s;
        if (isnan(most))
            break;
    }
    return most;
}

static double NAME(norm_inf)(const struct part *a, double *row)
{
    double most = 0;

    for (size_t i = 0; i < a->m; i++)
        row[i] = 0;
    for (size_t j = 0; j < a->n; j++) {
        const T *col = (const T *)a->p + j * a->ld;

        for (size_t i = 0; i < a->m; i++)
            row[i] += ABS(col[i]);
    }
    for (size_t i = 0; i < a->m && !isnan(most); i++)
        if (!(row[i] <= most))
            most = row[i];
    return most;
}

/* x = U^-1 b, U the upper triangle of a. */
static void NAME(back)(const struct part *a, const void *b_ptr, void *x_ptr)
{
    const T *b = b_ptr;
    V *x = x_ptr;

    for (size_t i = 0; i < a->n; i++)
        x[i] = b[i];
    for (size_t j = a->n; j-- > 0;) {
        const T *col = (const T *)a->p + j * a->ld;

        x[j] /= (V)col[j];
        for (size_t i = 0; i < j; i++)
            x[i] -= x[j] * (V)col[i];
    }
}

static const struct vec_ops NAME(ops) = {.mul = NAME(mul),
                                         .reflect = NAME(reflect),
                                         .norm1 = NAME(norm1),
                                         .norm_inf = NAME(norm_inf),
                                         .back = NAME(back)};
