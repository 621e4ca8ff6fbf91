/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pivots: the handles of the program's pivots, until the sequence is waited for.
 *
 * Calls name pivots by their address. So the sequence remembers the handles: a call
 * that reads or overwrites pivots of an earlier one finds these, is ordered behind
 * it, and gets what a device has found.
 *
 * Invariant  the ranges in the list do not overlap
 */
#include "base/alloc.h"
#include "la/la.h"

static size_t bytes_of(const struct la_pivots *p)
{
    return sizeof(*p) + p->nt * sizeof(p->part[0]);
}

static void end(heddle_la *la, struct la_pivots *p)
{
    for (size_t i = 0; i < p->nt; i++)
        heddle_handle_unref(p->part[i]);
    heddle_free(&la->alloc, p, bytes_of(p));
}

/* Pivots that a device has found come home. Those of a task that failed do not. */
static void bring_home(const struct la_pivots *p)
{
    for (size_t i = 0; i < p->nt; i++)
        if (heddle_handle_acquire(p->part[i], HEDDLE_R, NULL) == HEDDLE_OK)
            (void)heddle_handle_release(p->part[i]);
}

void heddle_la_pivots_drop(heddle_la *la)
{
    while (la->pivots != NULL) {
        struct la_pivots *p = la->pivots;

        la->pivots = p->next;
        if (la->has_cuda)
            bring_home(p);
        end(la, p);
    }
}

/* Addresses as numbers: the arrays need not be related. */
static bool overlaps(const int *a, size_t na, const int *b, size_t nb)
{
    const uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

    return x < y + nb * sizeof(int) && y < x + na * sizeof(int);
}

/* All tasks end, and there are no pivots that a task may wait for. */
static heddle_status settle(heddle_la *la)
{
    const heddle_status st = heddle_group_wait(la->group, 0);

    heddle_la_pivots_drop(la);
    return st;
}

static heddle_status make(heddle_la *la, int *ipiv, size_t n, size_t nb, size_t rows,
                          struct la_pivots **out)
{
    const size_t nt = n / nb + (n % nb != 0);
    struct la_pivots *p = heddle_zalloc(&la->alloc, 1, sizeof(*p) + nt * sizeof(p->part[0]));
    heddle_status st = HEDDLE_OK;

    if (p == NULL)
        return HEDDLE_ENOMEM;
    p->ipiv = ipiv;
    p->n = n;
    p->nb = nb;
    p->nt = nt;
    p->rows = rows;
    for (size_t i = 0; i < nt && st == HEDDLE_OK; i++)
        st = heddle_handle_vector(la->ctx, ipiv + i * nb, la_min(nb, n - i * nb), HEDDLE_I32,
                                  &p->part[i]);
    if (st != HEDDLE_OK) {
        end(la, p);
        return st;
    }
    p->next = la->pivots;
    la->pivots = *out = p;
    return HEDDLE_OK;
}

heddle_status heddle_la_pivots(heddle_la *la, int *ipiv, size_t n, size_t nb, size_t rows,
                               struct la_pivots **out)
{
    for (struct la_pivots *p = la->pivots; p != NULL; p = p->next) {
        if (!overlaps(p->ipiv, p->n, ipiv, n))
            continue;
        if (p->ipiv == ipiv && p->n == n && p->nb == nb) {
            p->rows = la_max(p->rows, rows);
            *out = p;
            return HEDDLE_OK;
        }
        LA_TRY(settle(la)); /* cut in another way, which is rare */
        break;
    }
    return make(la, ipiv, n, nb, rows, out);
}

/* The pivots of the sequence that this one, which tasks may still write, belongs to. */
static const struct la_pivots *owner(const heddle_la *la, const int *pivot)
{
    for (const struct la_pivots *p = la->pivots; p != NULL; p = p->next)
        if (overlaps(p->ipiv, p->n, pivot, 1))
            return p;
    return NULL;
}

heddle_status heddle_la_pivots_check(heddle_la *la, const int *ipiv, size_t n, size_t rows,
                                     bool *are_legal_out)
{
    *are_legal_out = true;
    for (const struct la_pivots *p = la->pivots; p != NULL; p = p->next)
        if (p->rows > rows && overlaps(p->ipiv, p->n, ipiv, n)) {
            LA_TRY(settle(la));
            break;
        }
    for (size_t i = 0; i < n && *are_legal_out;) {
        const struct la_pivots *p = owner(la, ipiv + i);

        if (p != NULL)
            i += p->n - (size_t)(ipiv + i - p->ipiv);
        else {
            *are_legal_out = ipiv[i] >= 1 && (size_t)ipiv[i] <= rows;
            i++;
        }
    }
    return HEDDLE_OK;
}

heddle_status heddle_la_pivots_read(heddle_la *la, const int *ipiv, size_t n, size_t most,
                                    heddle_handle **out, size_t *count_out)
{
    *count_out = 0;
    for (struct la_pivots *p = la->pivots; p != NULL; p = p->next)
        for (size_t i = 0; i < p->nt; i++) {
            if (!overlaps(p->ipiv + i * p->nb, la_min(p->nb, p->n - i * p->nb), ipiv, n))
                continue;
            if (*count_out == most) {
                *count_out = 0;
                return settle(la);
            }
            out[(*count_out)++] = p->part[i];
        }
    return HEDDLE_OK;
}

heddle_status heddle_la_pivots_part(heddle_la *la, const int *ipiv, size_t n, heddle_handle **out)
{
    heddle_handle *part = NULL;
    size_t count = 0;

    LA_TRY(heddle_la_pivots_read(la, ipiv, n, 1, &part, &count));
    if (count == 1) {
        for (const struct la_pivots *p = la->pivots; p != NULL; p = p->next)
            for (size_t i = 0; i < p->nt; i++)
                if (p->part[i] == part && p->ipiv + i * p->nb == ipiv &&
                    la_min(p->nb, p->n - i * p->nb) == n) {
                    *out = heddle_handle_ref(part);
                    return HEDDLE_OK;
                }
        LA_TRY(settle(la)); /* cut in another way */
    }
    return heddle_handle_vector(la->ctx, (void *)(uintptr_t)ipiv, n, HEDDLE_I32, out);
}

size_t heddle_la_pivots_width(const heddle_la *la, const int *ipiv)
{
    for (const struct la_pivots *p = la->pivots; p != NULL; p = p->next)
        if (p->ipiv == ipiv)
            return p->nb;
    return 0;
}
