/* SPDX-License-Identifier: BSD-3-Clause */
/* rank: longest ways through the graph, and orders made of them. */
#include <string.h>

#include "offline/offline.h"

double heddle_offline_mean_delay(const struct heddle_offline_dag *d, uint32_t edge)
{
    double sum = 0.0, pairs = 0.0;

    if (d->pred_bytes == NULL || d->pred_bytes[edge] == 0.0)
        return 0.0;
    for (uint32_t i = 0; i < d->r; i++) {
        for (uint32_t j = 0; j < d->r; j++) {
            if (d->first[i] == d->first[i + 1] || d->first[j] == d->first[j + 1])
                continue;
            sum += d->latency[i * d->r + j] + d->pred_bytes[edge] * d->byte_time[i * d->r + j];
            pairs += 1.0;
        }
    }
    return sum / pairs;
}

void heddle_offline_rank(const struct heddle_offline_dag *d, const double *weight, double *rank)
{
    memset(rank, 0, d->n * sizeof(*rank));
    for (uint32_t i = d->n; i-- > 0;) {
        const uint32_t t = d->topo[i];

        rank[t] += weight[t];
        for (uint32_t k = d->pred_end[t]; k < d->pred_end[t + 1]; k++) {
            const double way = rank[t] + heddle_offline_mean_delay(d, k);

            if (way > rank[d->pred[k]])
                rank[d->pred[k]] = way;
        }
    }
}

void heddle_offline_heads(const struct heddle_offline_dag *d, double *head)
{
    for (uint32_t i = 0; i < d->n; i++) {
        const uint32_t t = d->topo[i];

        head[t] = 0.0;
        for (uint32_t k = d->pred_end[t]; k < d->pred_end[t + 1]; k++) {
            const double way = head[d->pred[k]] + d->fast[d->pred[k]];

            if (way > head[t])
                head[t] = way;
        }
    }
}

heddle_status heddle_offline_order(const struct heddle_offline_dag *d, const double *rank,
                                   struct heddle_scratch *m, uint32_t *order)
{
    struct heddle_scratch own = {.a = m->a};
    struct heddle_pair *p = heddle_scratch_get(&own, d->n, sizeof(*p));
    struct heddle_pair *tmp = heddle_scratch_get(&own, d->n, sizeof(*p));
    const bool is_ok = p != NULL && tmp != NULL;

    for (uint32_t i = 0; i < d->n && is_ok; i++) {
        const uint32_t t = d->topo[i];
        uint64_t bits;

        memcpy(&bits, &rank[t], sizeof(bits));
        p[i] = (struct heddle_pair){~bits, t}; /* of doubles >= 0: descending */
    }
    if (is_ok)
        heddle_sort_pairs(p, tmp, d->n);
    for (uint32_t i = 0; i < d->n && is_ok; i++)
        order[i] = (uint32_t)p[i].idx;
    heddle_scratch_drop(&own);
    return is_ok ? HEDDLE_OK : HEDDLE_ENOMEM;
}

heddle_status heddle_offline_ready_order(const struct heddle_offline_dag *d, const double *rank,
                                         struct heddle_scratch *m, uint32_t *order)
{
    uint32_t *wait = heddle_scratch_get(m, d->n, sizeof(*wait));
    struct heddle_offline_heap ready;
    uint32_t n = 0;

    if (wait == NULL || !heddle_offline_heap_get(m, d->n, &ready))
        return HEDDLE_ENOMEM;
    for (uint32_t t = 0; t < d->n; t++) {
        wait[t] = d->pred_end[t + 1] - d->pred_end[t];
        if (wait[t] == 0)
            heddle_offline_heap_push(&ready, t, -rank[t]);
    }
    while (ready.n > 0) {
        const uint32_t t = heddle_offline_heap_pop(&ready);

        order[n++] = t;
        for (uint32_t k = d->succ_end[t]; k < d->succ_end[t + 1]; k++)
            if (--wait[d->succ[k]] == 0)
                heddle_offline_heap_push(&ready, d->succ[k], -rank[d->succ[k]]);
    }
    return HEDDLE_OK;
}

heddle_status heddle_offline_order_types(const struct heddle_offline_dag *d, const uint8_t *type,
                                         struct heddle_scratch *m, uint32_t *order)
{
    struct heddle_scratch own = {.a = m->a};
    double *weight = heddle_scratch_get(&own, d->n, sizeof(*weight));
    double *rank = heddle_scratch_get(&own, d->n, sizeof(*rank));
    heddle_status st = HEDDLE_ENOMEM;

    if (weight != NULL && rank != NULL) {
        for (uint32_t t = 0; t < d->n; t++)
            weight[t] = heddle_offline_time(d, t, type[t]);
        heddle_offline_rank(d, weight, rank);
        st = heddle_offline_order(d, rank, m, order);
    }
    heddle_scratch_drop(&own);
    return st;
}
