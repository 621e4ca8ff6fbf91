/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dual_reason: reasons why time passes: their loads, and those that are missing
 * under a mix of plans.
 *
 * Windows    a grid of heads and tails; the loads of all of them follow from one
 *            pass over the tasks and sums from a corner.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/sort.h"
#include "energy/dual.h"

#define VIOLATED 1e-5 /* of the length: what makes a reason worth adding */
#define GRID     HEDDLE_DUAL_GRID
enum { PATH_WORDS = 1 << 24 }; /* of all paths together */

double heddle_dual_load(const struct heddle_dual *x, const uint8_t *plan,
                        const struct heddle_dual_reason *q)
{
    double sum = 0.0;

    if (q->kind == HEDDLE_DUAL_PATH)
        for (uint32_t i = 0; i < q->length; i++)
            sum += heddle_dual_time_of(x, q->pos[i], plan[q->pos[i]]);
    else if (q->kind == HEDDLE_DUAL_GIVEN)
        for (uint32_t v = 0; v < x->d->n; v++)
            sum += heddle_dual_in_given(x, v) ? (x->given->price[plan[v]] + x->given->flow[v]) *
                                                    heddle_dual_time_of(x, v, plan[v])
                                              : 0.0;
    else
        for (uint32_t v = 0; v < x->d->n; v++)
            if (plan[v] == q->type && heddle_dual_in_window(x, v, q->window))
                sum += heddle_dual_time_of(x, v, q->type) / x->d->nworkers[q->type];
    return sum;
}

void heddle_dual_add_reason(struct heddle_dual *x, const struct heddle_dual_reason *q)
{
    const uint32_t j = x->nreasons++;

    x->reason[j] = *q;
    x->s[j] = x->best_s[j] = 0.0;
    for (uint32_t i = 0; i < x->nplans; i++)
        x->load[(size_t)i * HEDDLE_DUAL_REASONS + j] = heddle_dual_load(x, x->plan[i], q);
}

static bool has_room(const struct heddle_dual *x)
{
    return x->nreasons < HEDDLE_DUAL_REASONS;
}

/* --- what is missing ---------------------------------------------------------- */

/* The longest path under `mean`; its length. */
static double longest(struct heddle_dual *x, uint32_t *last)
{
    const struct heddle_dual_dag *d = x->d;
    double most = -1.0;

    for (uint32_t v = 0; v < d->n; v++) {
        x->len[v] = 0.0;
        x->via[v] = UINT32_MAX;
        for (uint32_t i = d->pred_end[v]; i < d->pred_end[v + 1]; i++) {
            if (x->len[d->pred[i]] > x->len[v]) {
                x->len[v] = x->len[d->pred[i]];
                x->via[v] = i;
            }
        }
        x->len[v] += x->mean[v];
        if (x->len[v] > most) {
            most = x->len[v];
            *last = v;
        }
    }
    return most;
}

static heddle_status add_path(struct heddle_dual *x, uint32_t last)
{
    const struct heddle_dual_dag *d = x->d;
    struct heddle_dual_reason q = {.kind = HEDDLE_DUAL_PATH, .length = 1};

    for (uint32_t v = last; x->via[v] != UINT32_MAX; v = d->pred[x->via[v]])
        q.length++;
    if (!has_room(x) || x->path_words + 2 * q.length > PATH_WORDS)
        return HEDDLE_OK;
    x->path_words += 2 * q.length;
    q.pos = heddle_scratch_get(x->m, q.length, sizeof(*q.pos));
    q.step = heddle_scratch_get(x->m, q.length, sizeof(*q.step));
    if (q.pos == NULL || q.step == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t v = last, i = q.length; i-- > 0;) {
        q.pos[i] = v;
        q.step[i] = x->via[v]; /* comes from pos[i - 1] */
        if (i > 0)
            v = d->pred[x->via[v]];
    }
    heddle_dual_add_reason(x, &q);
    return HEDDLE_OK;
}

heddle_status heddle_dual_add_path(struct heddle_dual *x)
{
    uint32_t last = 0;

    return longest(x, &last) > x->length * (1.0 + VIOLATED) ? add_path(x, last) : HEDDLE_OK;
}

heddle_status heddle_dual_path_of_plan(struct heddle_dual *x, uint32_t plan, double than)
{
    uint32_t last = 0;

    for (uint32_t v = 0; v < x->d->n; v++)
        x->mean[v] = heddle_dual_time_of(x, v, x->plan[plan][v]);
    return longest(x, &last) > than * (1.0 + VIOLATED) ? add_path(x, last) : HEDDLE_OK;
}

static uint32_t find_window(struct heddle_dual *x, double head, double tail)
{
    for (uint32_t w = 0; w < x->nwindows; w++)
        if (x->window[w].head == head && x->window[w].tail == tail)
            return w;
    if (x->nwindows == HEDDLE_DUAL_WINDOWS)
        return UINT32_MAX;
    x->window[x->nwindows] = (struct heddle_dual_window){head, tail};
    return x->nwindows++;
}

void heddle_dual_mix(struct heddle_dual *x)
{
    const uint32_t n = x->d->n;

    memset(x->mean, 0, n * sizeof(*x->mean));
    memset(x->grid, 0, (size_t)x->d->r * GRID * GRID * sizeof(*x->grid));
    for (uint32_t i = 0; i < x->nplans; i++) {
        const double u = x->u[HEDDLE_DUAL_FIXED_ROWS + i];

        for (uint32_t v = 0; v < n && u > 1e-12; v++) {
            const uint32_t r = x->plan[i][v];
            const double time = u * heddle_dual_time_of(x, v, r);

            x->mean[v] += time;
            x->grid[(size_t)r * GRID * GRID + x->cell[v]] += time / x->d->nworkers[r];
        }
    }
}

void heddle_dual_add_windows(struct heddle_dual *x)
{
    for (uint32_t r = 0; r < x->d->r; r++) {
        double *g = x->grid + (size_t)r * GRID * GRID;
        double most = x->length * (1.0 + VIOLATED);
        uint32_t bi = GRID, bk = 0, w;

        for (uint32_t i = x->ngrid[0]; i-- > 0;) {
            for (uint32_t k = x->ngrid[1]; k-- > 0;) {
                double *c = &g[i * GRID + k];

                *c += (i + 1 < GRID ? c[GRID] : 0.0) + (k + 1 < GRID ? c[1] : 0.0) -
                      (i + 1 < GRID && k + 1 < GRID ? c[GRID + 1] : 0.0);
                if (*c > 0.0 && *c + x->level[0][i] + x->level[1][k] > most) {
                    most = *c + x->level[0][i] + x->level[1][k];
                    bi = i;
                    bk = k;
                }
            }
        }
        if (bi == GRID || !has_room(x))
            continue;
        w = find_window(x, x->level[0][bi], x->level[1][bk]);
        if (w != UINT32_MAX)
            heddle_dual_add_reason(
                x, &(struct heddle_dual_reason){.kind = HEDDLE_DUAL_AREA,
                                                .window = w,
                                                .type = r,
                                                .lead = x->window[w].head + x->window[w].tail});
    }
}

/* Levels of the grid: GRID values among the heads or tails, 0 the first. */
static heddle_status take_levels(struct heddle_dual *x, const double *v, int side)
{
    const uint32_t n = x->d->n;
    struct heddle_pair *sorted = heddle_scratch_get(x->m, n, sizeof(*sorted));
    struct heddle_pair *tmp = heddle_scratch_get(x->m, n, sizeof(*tmp));
    uint32_t k = 1;

    if (sorted == NULL || tmp == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        memcpy(&sorted[i].key, &v[i], sizeof(v[i])); /* v >= 0: same order */
        sorted[i].idx = i;
    }
    heddle_sort_pairs(sorted, tmp, n);
    x->level[side][0] = 0.0;
    for (uint32_t i = 1; i < GRID; i++) {
        const double y = n > 0 ? v[sorted[(uint64_t)i * n / GRID].idx] : 0.0;

        if (y > x->level[side][k - 1])
            x->level[side][k++] = y;
    }
    x->ngrid[side] = k;
    return HEDDLE_OK;
}

static uint32_t level_of(const struct heddle_dual *x, int side, double v)
{
    uint32_t low = 0, high = x->ngrid[side];

    while (high - low > 1) {
        const uint32_t mid = (low + high) / 2;

        if (x->level[side][mid] <= v)
            low = mid;
        else
            high = mid;
    }
    return low;
}

heddle_status heddle_dual_levels(struct heddle_dual *x)
{
    const struct heddle_dual_dag *d = x->d;

    HEDDLE_TRY(take_levels(x, d->head, 0));
    HEDDLE_TRY(take_levels(x, d->tail, 1));
    for (uint32_t v = 0; v < d->n; v++)
        x->cell[v] = (uint16_t)(level_of(x, 0, d->head[v]) * GRID + level_of(x, 1, d->tail[v]));
    return HEDDLE_OK;
}
