/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heft-area: by rank with the times of levelled loads, each where it ends
 * first. A group of tasks that is spread over types has the mean of where its
 * tasks went.
 */
#include "offline/offline.h"

static heddle_status run(const struct heddle_offline_dag *d, struct heddle_scratch *m,
                         struct heddle_offline_sched *out)
{
    double *weight = heddle_scratch_get(m, d->n, sizeof(*weight));
    uint8_t *type = heddle_scratch_get(m, d->n, sizeof(*type));
    double share[HEDDLE_BOUND_TYPES_MAX];
    struct heddle_offline_groups g;
    heddle_status st = heddle_offline_groups(d, m, &g);

    if (st != HEDDLE_OK || weight == NULL || type == NULL)
        return HEDDLE_ENOMEM;
    st = heddle_offline_balance(d, 0.0, NULL, m, type);
    for (uint32_t k = 0; k < g.n && st == HEDDLE_OK; k++) {
        const double n = (double)(g.first[k + 1] - g.first[k]);

        for (uint32_t r = 0; r < d->r; r++)
            share[r] = 0.0;
        for (uint32_t i = g.first[k]; i < g.first[k + 1]; i++)
            share[type[g.task[i]]] += 1.0 / n;
        for (uint32_t i = g.first[k]; i < g.first[k + 1]; i++) {
            const double *p = heddle_offline_row(d, g.task[i]);

            for (uint32_t r = 0; r < d->r; r++)
                if (share[r] > 0.0 && p[r] < INFINITY)
                    weight[g.task[i]] += share[r] * p[r];
        }
    }
    return st == HEDDLE_OK ? heddle_offline_heft_by(d, weight, m, out) : st;
}

const struct heddle_offline_ops heddle_offline_heft_area = {
    .name = "heft-area",
    .help = "earliest finish, longest way with levelled times first",
    .run = run,
    .seed_limit = UINT32_MAX,
};
