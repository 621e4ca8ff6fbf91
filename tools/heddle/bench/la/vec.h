/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plain loops over a matrix of elements T, with vectors of V, which is double or
 * double complex. Included once per type by bench/la/vecs.c, which defines
 * NAME(x), T, V, CONJ(x) and ABS(x).
 */

/* The sum of col[i] x[i], or of its conjugate times x[i], as four sums: each
 * addition waits for the one before. */
static V NAME(dot)(const T *col, const V *x, struct range r, bool is_plain)
{
    V s[4] = {0, 0, 0, 0};
    size_t i = r.from;

    for (; i + 4 <= r.to; i += 4)
        for (size_t k = 0; k < 4; k++)
            s[k] += (is_plain ? (V)col[i + k] : CONJ((V)col[i + k])) * x[i + k];
    for (; i < r.to; i++)
        s[0] += (is_plain ? (V)col[i] : CONJ((V)col[i])) * x[i];
    return (s[0] + s[1]) + (s[2] + s[3]);
}

/* y = y + alpha op(a) x with column j of a, for nv vectors. */
static void NAME(mul_column)(const struct la_part *a, size_t j, double alpha, const V *x,
                             size_t ldx, V *y, size_t ldy, size_t nv)
{
    const T *col = (const T *)a->p + j * a->ld;
    const struct range r = part_rows(a, j);
    const bool has_one = a->shape == UNIT_LOWER && j < a->m;

    for (size_t v = 0; v < nv; v++) {
        const V *xv = x + v * ldx;
        V *yv = y + v * ldy;
        V s;

        if (!a->is_adjoint) {
            s = alpha * xv[j];
            for (size_t i = r.from; i < r.to; i++)
                yv[i] += s * (V)col[i];
            if (has_one)
                yv[j] += s;
        } else {
            s = NAME(dot)(col, xv, r, a->is_plain);
            yv[j] += alpha * (has_one ? s + xv[j] : s);
        }
    }
}

static void NAME(mul)(const struct la_part *a, struct share h, double alpha, const void *x,
                      size_t ldx, void *y, size_t ldy, size_t nv)
{
    for (size_t j = 0; j < a->n; j++)
        if (is_mine(h, j))
            NAME(mul_column)(a, j, alpha, x, ldx, y, ldy, nv);
}

/* x = Q x or Q^H x, with the reflectors below the diagonal of a. */
static void NAME(reflect)(const struct la_part *a, const void *tau_ptr, void *x)
{
    const T *tau = tau_ptr;
    const size_t k = a->m < a->n ? a->m : a->n;
    V *xv = x;

    for (size_t at = 0; at < k; at++) {
        const size_t j = a->is_adjoint ? at : k - 1 - at;
        const T *col = (const T *)a->p + j * a->ld;
        const V f = a->is_adjoint ? CONJ((V)tau[j]) : (V)tau[j];
        const struct range r = {j + 1, a->m};
        const V s = f * (xv[j] + NAME(dot)(col, xv, r, false));

        xv[j] -= s;
        for (size_t i = r.from; i < r.to; i++)
            xv[i] -= s * (V)col[i];
    }
}

/* The largest sum of a column, and of a row. */
static double NAME(norm1)(const struct la_part *a, struct share h)
{
    double most = 0;

    for (size_t j = 0; j < a->n; j++) {
        const T *col = (const T *)a->p + j * a->ld;
        const struct range r = part_rows(a, j);
        double s = a->shape == UNIT_LOWER ? 1 : 0;

        if (!is_mine(h, j))
            continue;
        for (size_t i = r.from; i < r.to; i++)
            s += ABS(col[i]);
        if (!(s <= most)) /* NaN stays */
            most = s;
        if (isnan(most))
            break;
    }
    return most;
}

static double NAME(norm_inf)(const struct la_part *a, double *row)
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
static void NAME(back)(const struct la_part *a, const void *b_ptr, void *x_ptr)
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
