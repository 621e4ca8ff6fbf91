/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peft: looks one step further than heft. cost[t][r] is the longest way behind t
 * when t runs on type r and everything behind it runs where that is best; a task
 * goes where end + cost is least, the dearest on average first.
 */
#include "offline/offline.h"

/* Between workers of two types; of one type: as if on the same worker. */
static double delay(const struct heddle_offline_dag *d, uint32_t edge, uint32_t from, uint32_t to)
{
    const size_t link = (size_t)from * d->r + to;

    if (d->pred_bytes == NULL || from == to || d->pred_bytes[edge] == 0.0)
        return 0.0;
    return d->latency[link] + d->pred_bytes[edge] * d->byte_time[link];
}

static void fill_costs(const struct heddle_offline_dag *d, double *cost)
{
    for (uint32_t i = d->n; i-- > 0;) {
        const uint32_t t = d->topo[i];
        const double *time = heddle_offline_row(d, t);

        for (uint32_t k = d->pred_end[t]; k < d->pred_end[t + 1]; k++) {
            double *before = cost + (size_t)d->pred[k] * d->r;

            for (uint32_t from = 0; from < d->r; from++) {
                double least = INFINITY;

                for (uint32_t to = 0; to < d->r; to++)
                    least =
                        fmin(least, cost[(size_t)t * d->r + to] + time[to] + delay(d, k, from, to));
                if (least > before[from])
                    before[from] = least;
            }
        }
    }
}

static heddle_status run(const struct heddle_offline_dag *d, struct heddle_scratch *m,
                         struct heddle_offline_sched *out)
{
    double *cost = heddle_scratch_get(m, (size_t)d->n * d->r, sizeof(*cost));
    double *rank = heddle_scratch_get(m, d->n, sizeof(*rank));
    uint32_t *order = heddle_scratch_get(m, d->n, sizeof(*order));
    heddle_status st;

    if (cost == NULL || rank == NULL || order == NULL)
        return HEDDLE_ENOMEM;
    fill_costs(d, cost);
    for (uint32_t t = 0; t < d->n; t++)
        for (uint32_t r = 0; r < d->r; r++)
            rank[t] += cost[(size_t)t * d->r + r] / d->r;
    /* Mean costs may rise along an edge: an order of ready tasks repairs it. */
    st = heddle_offline_ready_order(d, rank, m, order);
    return st == HEDDLE_OK ? heddle_offline_place(d, order, cost, m, out) : st;
}

const struct heddle_offline_ops heddle_offline_peft = {
    .name = "peft",
    .help = "earliest finish plus the best way behind it",
    .run = run,
    .seed_limit = UINT32_MAX,
};
