/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * call: one call that is taken over, from its matrices to info.
 *
 * Errors     what fails before tasks were submitted sends the call to the routine
 *            behind us. Later there is no way back, as matrices are overwritten
 *            in place, and no way to tell the program, which knows info only: it
 *            ends with a message, as it would without memory.
 */
#include "base/assert.h"
#include "lapack/lapack.h"

bool heddle_lapack_begin(struct lapack_call *c, enum lapack_routine r, enum lapack_type t,
                         long order)
{
    heddle_ctx *ctx;

    if (!heddle_lapack_takes(r, order))
        return false;
    ctx = heddle_lapack_enter();
    if (ctx == NULL)
        return false;
    *c = (struct lapack_call){.ctx = ctx, .t = t};
    if (heddle_la_create(ctx, NULL, &c->la) != HEDDLE_OK) {
        heddle_lapack_leave(false);
        return false;
    }
    return true;
}

static heddle_matrix *keep(struct lapack_call *c, heddle_status st, heddle_matrix *m, bool is_out)
{
    if (st != HEDDLE_OK)
        return NULL;
    HEDDLE_ASSERT(c->n < LAPACK_MATRICES);
    c->matrix[c->n].m = m;
    c->matrix[c->n++].is_out = is_out;
    return m;
}

static enum heddle_dtype dtype_of(const struct lapack_call *c)
{
    static const enum heddle_dtype of[4] = {HEDDLE_F32, HEDDLE_F64, HEDDLE_C64, HEDDLE_C128};

    return of[c->t];
}

heddle_matrix *heddle_lapack_out(struct lapack_call *c, int m, int n, void *a, int ld)
{
    heddle_matrix *x = NULL;
    const heddle_status st =
        heddle_matrix_create(c->la, dtype_of(c), (size_t)m, (size_t)n, a, (size_t)ld, &x);

    return keep(c, st, x, true);
}

heddle_matrix *heddle_lapack_in(struct lapack_call *c, int m, int n, const void *a, int ld)
{
    heddle_matrix *x = heddle_lapack_out(c, m, n, (void *)(uintptr_t)a, ld); /* only read */

    if (x != NULL)
        c->matrix[c->n - 1].is_out = false;
    return x;
}

heddle_matrix *heddle_lapack_factors(struct lapack_call *c, heddle_matrix *a, int k)
{
    const size_t nb = heddle_matrix_nb(a);
    heddle_matrix *x = NULL;
    heddle_status st;

    if (a == NULL)
        return NULL;
    st = heddle_matrix_create_nb(c->la, dtype_of(c), nb, (size_t)k, NULL, nb, nb, &x);
    return keep(c, st, x, false);
}

/* Results may be on a device. */
static heddle_status bring_home(struct lapack_call *c)
{
    for (unsigned i = 0; i < c->n; i++) {
        heddle_handle *h;

        for (size_t j = 0;
             c->matrix[i].is_out && (h = heddle_matrix_column(c->matrix[i].m, j)) != NULL; j++) {
            HEDDLE_TRY(heddle_handle_acquire(h, HEDDLE_R, NULL));
            HEDDLE_TRY(heddle_handle_release(h));
        }
    }
    return HEDDLE_OK;
}

static void end(struct lapack_call *c, bool is_done)
{
    for (unsigned i = 0; i < c->n; i++)
        heddle_matrix_destroy(c->matrix[i].m);
    heddle_la_destroy(c->la);
    heddle_lapack_leave(is_done);
}

void heddle_lapack_close(struct lapack_call *c)
{
    end(c, true);
}

bool heddle_lapack_run(struct lapack_call *c, heddle_status st, int *info)
{
    int found = 0;
    const heddle_status waited = heddle_la_wait(c->la, &found);

    if (st == HEDDLE_EINVAL && found < 0) {
        end(c, false);
        return false;
    }
    if (st == HEDDLE_OK)
        st = waited;
    if (st == HEDDLE_OK)
        st = bring_home(c);
    if (st != HEDDLE_OK)
        heddle_panic(__FILE__, __LINE__, "libheddle_lapack: %s in the middle of a routine",
                     heddle_status_name(st));
    if (info != NULL)
        *info = found;
    return true;
}

bool heddle_lapack_end(struct lapack_call *c, heddle_status st, int *info)
{
    if (!heddle_lapack_run(c, st, info))
        return false;
    heddle_lapack_close(c);
    return true;
}
