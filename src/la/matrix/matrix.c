/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * matrix: block columns of column-major memory, or of the runtime's.
 *
 * Width      of a block column, when the caller does not give it: by a model of LU on cores, by
 *            a table where there is a GPU.
 */
#include "base/alloc.h"
#include "la/lu/panel.h"
#include "la/product/product.h"

/* As LA_LIST, for devices: what a task needs there at once has to fit, and only the
 * first operands have a layout of their own. */
enum { LIST_DEVICE = 6 };

/* As measured on an H200: a factorisation waits for its panels, which are the longer
 * the wider they are, until its products take longer still; a product has none. */
static const struct {
    const char *routine;
    size_t wide; /* order from which on block columns have 1024 columns, not 512 */
} device_widths[] = {{"gemm", 0},           {"potrf", 12288},      {"posv", 12288},
                     {"posv_mixed", 12288}, {"getrf", 24576},      {"gesv", 24576},
                     {"gesv_mixed", 24576}, {"getrf_nopiv", 24576}};

size_t heddle_la_device_wide(const char *routine)
{
    for (size_t i = 0; i < sizeof(device_widths) / sizeof(device_widths[0]); i++)
        if (routine != NULL && strcmp(routine, device_widths[i].routine) == 0)
            return device_widths[i].wide;
    return SIZE_MAX;
}

static size_t pick_nb(const heddle_la *la, size_t m, size_t n)
{
    if (la->opts.nb != 0)
        return la->opts.nb;
    if (la->has_cuda && la_min(m, n) >= 4096)
        return la_min(m, n) >= la->device_wide ? 1024 : 512;
    return heddle_la_width(n, la->ncores);
}

static heddle_status make_columns(heddle_la *la, heddle_matrix *a, void *ptr, size_t ld)
{
    heddle_status st = HEDDLE_OK;

    if (a->nt > 0 && ptr != NULL)
        st = heddle_handle_matrix(la->ctx, ptr, a->m, a->n, ld, a->dtype, &a->root);
    for (size_t j = 0; j < a->nt && st == HEDDLE_OK; j++)
        st = ptr != NULL ? heddle_view_tile(a->root, 0, j, a->m, a->nb, &a->col[j])
                         : heddle_handle_matrix(la->ctx, NULL, a->m, la_width(a, j), 0, a->dtype,
                                                &a->col[j]);
    return st;
}

heddle_status heddle_matrix_create_nb(heddle_la *la, enum heddle_dtype dtype, size_t m, size_t n,
                                      void *a, size_t ld, size_t nb, heddle_matrix **out)
{
    enum blas_type t;
    heddle_matrix *x;
    heddle_status st;
    size_t nt;

    if (la == NULL || out == NULL || nb == 0 || !blas_type_of(dtype, &t) ||
        (a != NULL && ld < la_max(m, 1)))
        return HEDDLE_EINVAL;
    if (m > INT32_MAX || n > INT32_MAX || (a != NULL && ld > INT32_MAX))
        return HEDDLE_EOVERFLOW; /* BLAS counts with 32 bits */
    nb = la_min(nb, INT32_MAX);
    nt = m == 0 ? 0 : (n + nb - 1) / nb;
    x = heddle_zalloc(&la->alloc, 1, sizeof(*x) + nt * sizeof(x->col[0]));
    if (x == NULL)
        return HEDDLE_ENOMEM;
    *x = (struct heddle_matrix){.ctx = la->ctx,
                                .alloc = la->alloc,
                                .dtype = dtype,
                                .t = t,
                                .m = m,
                                .n = n,
                                .nb = nb,
                                .nt = nt,
                                .list = la->has_cuda ? LIST_DEVICE : LA_LIST};
    st = make_columns(la, x, a, ld);
    if (st != HEDDLE_OK) {
        heddle_matrix_destroy(x);
        return st;
    }
    *out = x;
    return HEDDLE_OK;
}

heddle_status heddle_matrix_create(heddle_la *la, enum heddle_dtype dtype, size_t m, size_t n,
                                   void *a, size_t ld, heddle_matrix **out)
{
    if (la == NULL)
        return HEDDLE_EINVAL;
    return heddle_matrix_create_nb(la, dtype, m, n, a, ld, pick_nb(la, m, n), out);
}

heddle_status heddle_la_temporary(heddle_la *la, enum heddle_dtype dtype, size_t m, size_t n,
                                  size_t nb, heddle_matrix **out)
{
    return heddle_matrix_create_nb(la, dtype, m, n, NULL, m, nb, out);
}

/* On devices a matrix goes home at its end, when nobody knows: the runtime's memory
 * then. */
heddle_status heddle_la_owned_make(heddle_la *la, enum heddle_dtype dtype, size_t m, size_t n,
                                   size_t nb, struct la_owned *out)
{
    /* Columns that are a power of two apart share few lines of a cache. */
    const size_t ld = (m + 15) / 16 * 16 + (m % 512 == 0 ? 16 : 0);
    enum blas_type t;
    heddle_status st;

    *out = (struct la_owned){.m = NULL};
    if (!blas_type_of(dtype, &t) || la->has_cuda || m == 0 || n == 0)
        return heddle_la_temporary(la, dtype, m, n, nb, &out->m);
    if (!heddle_mul(&out->bytes, ld, n) || !heddle_mul(&out->bytes, out->bytes, blas_bytes(t)))
        return HEDDLE_ENOMEM;
    out->alloc = la->alloc;
    out->p = heddle_alloc_aligned(&la->alloc, out->bytes, 4096);
    if (out->p == NULL)
        return HEDDLE_ENOMEM;
    st = heddle_matrix_create_nb(la, dtype, m, n, out->p, ld, nb, &out->m);
    if (st != HEDDLE_OK)
        heddle_la_owned_end(out);
    return st;
}

void heddle_la_owned_end(struct la_owned *o)
{
    heddle_matrix_destroy(o->m);
    if (o->p != NULL)
        heddle_free(&o->alloc, o->p, o->bytes);
    *o = (struct la_owned){.m = NULL};
}

void heddle_matrix_destroy(heddle_matrix *a)
{
    struct heddle_allocator alloc;

    if (a == NULL)
        return;
    for (size_t j = 0; j < a->nt; j++)
        heddle_handle_unref(a->col[j]);
    heddle_handle_unref(a->root);
    alloc = a->alloc;
    heddle_free(&alloc, a, sizeof(*a) + a->nt * sizeof(a->col[0]));
}

size_t heddle_matrix_rows(const heddle_matrix *a)
{
    return a == NULL ? 0 : a->m;
}

size_t heddle_matrix_cols(const heddle_matrix *a)
{
    return a == NULL ? 0 : a->n;
}

size_t heddle_matrix_nb(const heddle_matrix *a)
{
    return a == NULL ? 0 : a->nb;
}

enum heddle_dtype heddle_matrix_dtype(const heddle_matrix *a)
{
    return a == NULL ? (enum heddle_dtype)0 : a->dtype;
}

heddle_handle *heddle_matrix_column(heddle_matrix *a, size_t j)
{
    return a == NULL || j >= a->nt ? NULL : a->col[j];
}
