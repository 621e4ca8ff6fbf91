/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * path: longest paths in a graph that is in topological order already.
 *
 * Cost       O(tasks + edges), one sweep. Sums are taken along each path and
 *            maxima are exact, so every order of the sweep gives the same bits;
 *            check.c relies on that for heads and tails.
 */
#include "bound/bound.h"

uint32_t heddle_bound_longest(const struct heddle_bound_dag *d, const double *dur, double *len,
                              uint32_t *via)
{
    uint32_t last = HEDDLE_BOUND_NONE;

    for (uint32_t v = 0; v < d->n; v++) {
        double most = 0.0;

        via[v] = HEDDLE_BOUND_NONE;
        for (uint32_t i = d->pred_end[v]; i < d->pred_end[v + 1]; i++) {
            const double l = len[d->pred[i]];

            if (l > most) {
                most = l;
                via[v] = i;
            }
        }
        len[v] = most + dur[v];
        if (last == HEDDLE_BOUND_NONE || len[v] > len[last])
            last = v;
    }
    return last;
}

uint32_t heddle_bound_path_len(const struct heddle_bound_dag *d, const uint32_t *via, uint32_t v)
{
    uint32_t n = 1;

    for (; via[v] != HEDDLE_BOUND_NONE; v = d->pred[via[v]])
        n++;
    return n;
}

void heddle_bound_path_get(const struct heddle_bound_dag *d, const uint32_t *via, uint32_t v,
                           uint32_t len, uint32_t *pos, uint32_t *step)
{
    while (len-- > 0) {
        pos[len] = v;
        if (len > 0) {
            step[len - 1] = via[v];
            v = d->pred[via[v]];
        }
    }
}

void heddle_bound_heads(const struct heddle_bound_dag *d, double *head)
{
    for (uint32_t v = 0; v < d->n; v++) {
        head[v] = 0.0;
        for (uint32_t i = d->pred_end[v]; i < d->pred_end[v + 1]; i++) {
            const uint32_t u = d->pred[i];
            const double h = head[u] + d->fast[d->kind[u]];

            if (h > head[v])
                head[v] = h;
        }
    }
}

void heddle_bound_tails(const struct heddle_bound_dag *d, double *tail)
{
    for (uint32_t v = 0; v < d->n; v++)
        tail[v] = 0.0;
    for (uint32_t v = d->n; v-- > 0;) {
        const double q = tail[v] + d->fast[d->kind[v]];

        for (uint32_t i = d->pred_end[v]; i < d->pred_end[v + 1]; i++) {
            if (q > tail[d->pred[i]])
                tail[d->pred[i]] = q;
        }
    }
}
