/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * packed: products whose operands are packed first, once for many.
 *
 * Caches     a right panel (k x cols) stays in the first one, while a block of left
 *            panels comes from the second one again and again. What is packed is
 *            read in order, so it may come from memory.
 * LU         a panel leaves its triangle and what is below it, as left operands, and
 *            where rows go. An update gathers the rows that come to its top right into
 *            a right operand, solves there, writes them back, and multiplies.
 */
#include "la/product/packed.h"

#include <math.h>
#include <string.h>

#include "la/la.h"

enum {
    BLOCK = 10,    /* left panels of a block */
    LU_LEAST = 32, /* columns of a panel of LU, and at most: */
    LU_MOST = 512,
    TILE = 256 /* elements of the largest rows x cols */
};

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

static double *at(struct blas_block a, size_t i, size_t j)
{
    return (double *)a.a + i + j * a.ld;
}

/* --- packing ---------------------------------------------------------------------- */

size_t heddle_packed_left_bytes(size_t m, size_t k)
{
    return round_up(m, heddle_packed()->rows) * k * sizeof(double);
}

/* n <= rows rows of a column. */
static void pack_rows(char trans, double alpha, const double *from, size_t ld, size_t n, double *to)
{
    if (trans == 'N')
        for (size_t i = 0; i < n; i++)
            to[i] = alpha * from[i];
    else
        for (size_t i = 0; i < n; i++)
            to[i] = alpha * from[i * ld];
}

/* Memory is read column after column, some panels at once. */
void heddle_packed_left(char trans, double alpha, struct blas_block a, size_t i, size_t p, size_t m,
                        size_t k, double *to)
{
    const bool is_n = trans == 'N';
    const size_t rows = heddle_packed()->rows, block = BLOCK * rows, end = i + (is_n ? a.m : a.n),
                 depth = is_n ? a.n : a.m;

    if (end == m && m % rows != 0) /* zeros behind the last row */
        for (size_t q = p; q < p + depth; q++)
            memset(to + m / rows * rows * k + q * rows + m % rows, 0,
                   (rows - m % rows) * sizeof(*to));
    for (size_t r0 = i; r0 < end; r0 = (r0 / block + 1) * block)
        for (size_t q = 0; q < depth; q++)
            for (size_t r = r0; r < la_min(end, (r0 / block + 1) * block);
                 r = (r / rows + 1) * rows)
                pack_rows(trans, alpha, is_n ? at(a, r - i, q) : at(a, q, r - i), a.ld,
                          la_min((r / rows + 1) * rows, end) - r,
                          to + r / rows * rows * k + (p + q) * rows + r % rows);
}

double *heddle_packed_right_room(heddle_la *la, size_t k, size_t n)
{
    return heddle_la_pack_work(la, round_up(n, heddle_packed()->cols) * k * sizeof(double));
}

void heddle_packed_right(char trans, struct blas_block b, size_t p, size_t k, size_t n, double *to)
{
    const size_t cols = heddle_packed()->cols, depth = trans == 'N' ? b.m : b.n;

    for (size_t j = 0; j < n; j += cols, to += cols * k) {
        const size_t w = la_min(cols, n - j);
        double *x = to + p * cols;

        if (w < cols)
            memset(x, 0, depth * cols * sizeof(*x));
        for (size_t q = 0; q < depth; q++, x += cols)
            if (trans == 'N')
                for (size_t i = 0; i < w; i++)
                    x[i] = *at(b, q, j + i);
            else
                memcpy(x, at(b, j, q), w * sizeof(*x));
    }
}

/* --- products ----------------------------------------------------------------------- */

/* A part of C at its border: all of it beside, then what there is. */
static void multiply_part(const struct la_packed *f, size_t k, const double *a, const double *b,
                          double beta, struct blas_block c)
{
    const double none = 0;
    double tile[TILE];

    f->multiply(k, a, b, &none, tile, f->rows);
    for (size_t j = 0; j < c.n; j++)
        for (size_t i = 0; i < c.m; i++) {
            const double v = tile[i + j * f->rows];

            *at(c, i, j) = beta == 0 ? v : fma(beta, *at(c, i, j), v);
        }
}

void heddle_packed_multiply(size_t k, const double *left, const double *right, double beta,
                            struct blas_block c)
{
    const struct la_packed *f = heddle_packed();

    for (size_t i0 = 0; i0 < c.m; i0 += BLOCK * f->rows) {
        const size_t end = la_min(c.m, i0 + BLOCK * f->rows);

        for (size_t j = 0; j < c.n; j += f->cols)
            for (size_t i = i0; i < end; i += f->rows) {
                const double *a = left + i * k, *b = right + j * k;

                if (i + f->rows <= end && j + f->cols <= c.n)
                    f->multiply(k, a, b, &beta, at(c, i, j), c.ld);
                else
                    multiply_part(f, k, a, b, beta,
                                  blas_part(BLAS_D, c, i, j, la_min(f->rows, end - i),
                                            la_min(f->cols, c.n - j)));
            }
    }
}

/* --- LU ----------------------------------------------------------------------------- */

/*
 * What a panel leaves: the triangle and the rest as left operands, then numbers of rows
 * from the first on: source[i] comes to row i of the top, and nmoves rows below get
 * one of the top each, from[i] to to[i].
 */
struct lu_panel {
    const double *triangle, *below;
    const int *source, *nmoves, *from, *to;
};

static struct lu_panel lu_panel(const struct la_packed *f, const void *p, size_t m, size_t n)
{
    struct lu_panel l = {.triangle = p};

    l.below = l.triangle + round_up(n, f->rows) * n;
    l.source = (const int *)(l.below + round_up(m - n, f->rows) * n);
    l.from = l.source + n;
    l.to = l.from + n;
    l.nmoves = l.to + n;
    return l;
}

size_t heddle_packed_lu_bytes(enum blas_type t, size_t m, size_t n)
{
    const struct la_packed *f = t == BLAS_D ? heddle_packed() : NULL;

    if (f == NULL || n < LU_LEAST || n > LU_MOST || m < n)
        return 0;
    return (round_up(n, f->rows) + round_up(m - n, f->rows)) * n * sizeof(double) +
           (3 * n + 1) * sizeof(int);
}

/* Where rows go: a row below the top that moved has one of the top now. */
static bool fill_moves(heddle_la *la, size_t m, size_t n, const int *ipiv, int first,
                       const struct lu_panel *l)
{
    int *row = heddle_la_pack_work(la, m * sizeof(int)), count = 0;
    int *source = (int *)(uintptr_t)l->source, *from = source + n, *to = from + n;

    if (row == NULL)
        return false;
    for (size_t i = 0; i < m; i++)
        row[i] = (int)i;
    for (size_t i = 0; i < n && ipiv != NULL; i++) {
        const int p = ipiv[i] - first, r = row[p];

        row[p] = row[i];
        row[i] = r;
    }
    memcpy(source, row, n * sizeof(int));
    for (size_t i = 0; i < n && ipiv != NULL; i++) {
        const int p = ipiv[i] - first;

        if (p < (int)n || row[p] == p)
            continue;
        from[count] = row[p];
        to[count++] = p;
        row[p] = p; /* once */
    }
    to[n] = count;
    return true;
}

bool heddle_packed_lu_panel(heddle_la *la, struct blas_block l, const int *ipiv, int first,
                            unsigned part, unsigned nparts, void *to)
{
    const struct la_packed *f = heddle_packed();
    const struct lu_panel p = lu_panel(f, to, l.m, l.n);
    const size_t below = l.m - l.n, each = round_up(below / nparts + 1, BLOCK * f->rows),
                 from = la_min(part * each, below), rows = la_min(each, below - from);

    if (part == 0 && !fill_moves(la, l.m, l.n, ipiv, first, &p))
        return false;
    if (part == 0)
        heddle_packed_left('N', 1, blas_part(BLAS_D, l, 0, 0, l.n, l.n), 0, 0, l.n, l.n, to);
    if (rows > 0)
        heddle_packed_left('N', -1, blas_part(BLAS_D, l, l.n + from, 0, rows, l.n), from, 0, below,
                           l.n, (double *)to + (p.below - p.triangle));
    return true;
}

/* w columns of c at j: rows change places, those of the top go to a right panel. */
static void gather(const struct la_packed *f, const struct lu_panel *l, size_t n,
                   struct blas_block c, size_t j, size_t w, double *to)
{
    if (w < f->cols)
        memset(to, 0, n * f->cols * sizeof(*to));
    for (size_t i = 0; i < w; i++) {
        double *col = at(c, 0, j + i);
        const double *next = j + i + 1 < c.n ? col + c.ld : col;

        for (size_t q = 0; q < n; q++) {
            __builtin_prefetch(next + l->source[q], 1);
            to[q * f->cols + i] = col[l->source[q]];
        }
        for (int q = 0; q < *l->nmoves; q++)
            col[l->to[q]] = col[l->from[q]];
    }
}

bool heddle_packed_lu_update(heddle_la *la, const void *panel, size_t n, struct blas_block c)
{
    const struct la_packed *f = heddle_packed();
    const struct lu_panel l = lu_panel(f, panel, c.m, n);
    double *right = heddle_packed_right_room(la, n, c.n);

    if (right == NULL)
        return false;
    for (size_t j = 0; j < c.n; j += f->cols) {
        const size_t w = la_min(f->cols, c.n - j);
        double *b = right + j * n;

        gather(f, &l, n, c, j, w, b);
        for (size_t i = 0; i < n; i += f->rows)
            f->solve(i, la_min(f->rows, n - i), l.triangle + i * n, b);
        for (size_t i = 0; i < w; i++)
            for (size_t q = 0; q < n; q++)
                *at(c, q, j + i) = b[q * f->cols + i];
    }
    heddle_packed_multiply(n, l.below, right, 1, blas_part(BLAS_D, c, n, 0, c.m - n, c.n));
    return true;
}
