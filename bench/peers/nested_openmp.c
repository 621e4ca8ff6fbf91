/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nested_openmp: the nested programs as OpenMP tasks.
 *
 * How        `task` and `taskwait`, what a C programmer has without installing
 *            anything; without waits the end of the parallel region waits for all.
 * Threads    one of W threads begins, all of them run tasks. They are started by the
 *            run that warms up.
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "nested.h"

static void count(struct nested *s, uint64_t n)
{
    s->count[omp_get_thread_num()].n += n;
}

/* --- counting programs --------------------------------------------------------------- */

static uint64_t fib(unsigned n)
{
    uint64_t a, b;

    if (n < 2)
        return n;
#pragma omp task shared(a) firstprivate(n)
    a = fib(n - 1);
#pragma omp task shared(b) firstprivate(n)
    b = fib(n - 2);
#pragma omp taskwait
    return a + b;
}

static void fib_free(struct nested *s, unsigned n)
{
    if (n < 2) {
        count(s, n);
        return;
    }
#pragma omp task firstprivate(s, n)
    fib_free(s, n - 1);
#pragma omp task firstprivate(s, n)
    fib_free(s, n - 2);
}

static uint64_t queens(struct nested_board b)
{
    uint64_t part[16], sum = 0;
    unsigned n = 0;

    if (nested_is_full(b))
        return 1;
    for (unsigned f = nested_free(b); f != 0; f &= f - 1, n++) {
        const struct nested_board next = nested_place(b, f & -f);

#pragma omp task shared(part) firstprivate(next, n)
        part[n] = queens(next);
    }
#pragma omp taskwait
    for (unsigned i = 0; i < n; i++)
        sum += part[i];
    return sum;
}

static void queens_free(struct nested *s, struct nested_board b)
{
    if (nested_is_full(b)) {
        count(s, 1);
        return;
    }
    for (unsigned f = nested_free(b); f != 0; f &= f - 1) {
        const struct nested_board next = nested_place(b, f & -f);

#pragma omp task firstprivate(s, next)
        queens_free(s, next);
    }
}

static uint64_t uts(struct nested *s, uint64_t node)
{
    const unsigned n = nested_uts_children(s, node);
    uint64_t few[8], *part = n <= 8 ? few : nested_room(n * sizeof(*part)), sum = 1;

    for (unsigned i = 0; i < n; i++) {
#pragma omp task shared(part) firstprivate(s, node, i)
        part[i] = uts(s, nested_uts_child(node, i));
    }
#pragma omp taskwait
    for (unsigned i = 0; i < n; i++)
        sum += part[i];
    if (part != few)
        free(part);
    return sum;
}

static void uts_free(struct nested *s, uint64_t node)
{
    const unsigned n = nested_uts_children(s, node);

    count(s, 1);
    for (unsigned i = 0; i < n; i++) {
#pragma omp task firstprivate(s, node, i)
        uts_free(s, nested_uts_child(node, i));
    }
}

/* --- sort ---------------------------------------------------------------------------- */

static void merge(const uint32_t *a, size_t na, const uint32_t *b, size_t nb, uint32_t *out)
{
    size_t ha, hb;

    if (na < nb) {
        merge(b, nb, a, na, out);
        return;
    }
    if (na + nb <= NESTED_SORT_LEAF) {
        nested_merge_leaf(a, na, b, nb, out);
        return;
    }
    ha = na / 2;
    hb = nested_rank(b, nb, a[ha]);
#pragma omp task firstprivate(a, b, out, ha, hb)
    merge(a, ha, b, hb, out);
#pragma omp task firstprivate(a, b, out, ha, hb, na, nb)
    merge(a + ha, na - ha, b + hb, nb - hb, out + ha + hb);
#pragma omp taskwait
}

static void sort(uint32_t *key, uint32_t *tmp, size_t n)
{
    const size_t q = n / 4;

    if (n <= NESTED_SORT_LEAF) {
        nested_sort_leaf(key, n);
        return;
    }
    for (size_t i = 0; i < 4; i++) {
        const size_t m = i < 3 ? q : n - 3 * q;

#pragma omp task firstprivate(key, tmp, i, q, m)
        sort(key + i * q, tmp + i * q, m);
    }
#pragma omp taskwait
#pragma omp task firstprivate(key, tmp, q)
    merge(key, q, key + q, q, tmp);
#pragma omp task firstprivate(key, tmp, q, n)
    merge(key + 2 * q, q, key + 3 * q, n - 3 * q, tmp + 2 * q);
#pragma omp taskwait
    merge(tmp, 2 * q, tmp + 2 * q, n - 2 * q, key);
}

/* --- strassen ------------------------------------------------------------------------ */

static void multiply(size_t n, const double *a, size_t lda, const double *b, size_t ldb, double *c,
                     size_t ldc);

static void product(unsigned i, size_t n, const double *a, size_t lda, const double *b, size_t ldb,
                    double *sums, double *m)
{
    const struct nested_factors f = nested_factors_of(i, n, a, lda, b, ldb, sums);

    multiply(n, f.a, f.lda, f.b, f.ldb, m, n);
}

static void multiply(size_t n, const double *a, size_t lda, const double *b, size_t ldb, double *c,
                     size_t ldc)
{
    const size_t h = n / 2;
    double *room;

    if (n <= NESTED_STRASSEN_LEAF) {
        nested_multiply_leaf(a, lda, b, ldb, c, ldc);
        return;
    }
    room = nested_room(21 * h * h * sizeof(*room));
    for (unsigned i = 0; i < 7; i++) {
#pragma omp task firstprivate(i, h, a, lda, b, ldb, room)
        product(i, h, a, lda, b, ldb, room + (7 + 2 * i) * h * h, room + i * h * h);
    }
#pragma omp taskwait
    nested_combine(h, room, c, ldc);
    free(room);
}

/* --- sparselu ------------------------------------------------------------------------ */

static void sparselu(struct nested *s)
{
    const size_t n = s->n;
    double **b = s->block;

    for (size_t k = 0; k < n; k++) {
        nested_lu0(b[k * n + k]);
        for (size_t j = k + 1; j < n; j++) {
            if (b[k * n + j] != NULL) {
#pragma omp task firstprivate(b, n, k, j)
                nested_fwd(b[k * n + k], b[k * n + j]);
            }
            if (b[j * n + k] != NULL) {
#pragma omp task firstprivate(b, n, k, j)
                nested_bdiv(b[k * n + k], b[j * n + k]);
            }
        }
#pragma omp taskwait
        for (size_t i = k + 1; i < n; i++)
            for (size_t j = k + 1; j < n; j++)
                if (b[i * n + k] != NULL && b[k * n + j] != NULL) {
#pragma omp task firstprivate(b, n, k, i, j)
                    nested_bmod(b[k * n + j], b[i * n + k], b[i * n + j]);
                }
#pragma omp taskwait
    }
}

/* --- the side ------------------------------------------------------------------------ */

static void run_one(struct nested *s)
{
    const struct nested_board empty = {.n = (uint16_t)s->n};

    switch (s->program) {
    case NESTED_FIB:
        if (s->waits)
            s->sum = fib(s->n);
        else
            fib_free(s, s->n);
        break;
    case NESTED_QUEENS:
        if (s->waits)
            s->sum = queens(empty);
        else
            queens_free(s, empty);
        break;
    case NESTED_UTS:
        if (s->waits)
            s->sum = uts(s, NESTED_UTS_ROOT);
        else
            uts_free(s, NESTED_UTS_ROOT);
        break;
    case NESTED_SORT: sort(s->key, s->tmp, s->n); break;
    case NESTED_STRASSEN: multiply(s->n, s->a, s->n, s->b, s->n, s->c, s->n); break;
    default: sparselu(s); break;
    }
}

static int openmp_run(struct nested *s)
{
#pragma omp parallel num_threads((int)s->workers)
#pragma omp single
    run_one(s);
    return 0;
}

static int openmp_open(struct nested *s)
{
    (void)s;
    omp_set_dynamic(0);
    return 0;
}

static void openmp_close(struct nested *s)
{
    (void)s;
}

int main(int argc, char **argv)
{
    static const struct nested_ops ops = {"openmp", openmp_open, openmp_run, openmp_close};

    return nested_main(argc, argv, &ops);
}
