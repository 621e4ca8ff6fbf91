/* SPDX-License-Identifier: BSD-3-Clause */
/* heft: by rank with the mean time over the workers, each where it ends first. */
#include "offline/offline.h"

static double mean_time(const struct heddle_offline_dag *d, uint32_t t)
{
    const double *p = heddle_offline_row(d, t);
    double sum = 0.0, n = 0.0;

    for (uint32_t r = 0; r < d->r; r++) {
        const double w = (double)(d->first[r + 1] - d->first[r]);

        if (p[r] == INFINITY)
            continue;
        sum += w * p[r];
        n += w;
    }
    return sum / n;
}

static heddle_status run(const struct heddle_offline_dag *d, struct heddle_scratch *m,
                         struct heddle_offline_sched *out)
{
    double *weight = heddle_scratch_get(m, d->n, sizeof(*weight));

    if (weight == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t t = 0; t < d->n; t++)
        weight[t] = mean_time(d, t);
    return heddle_offline_heft_by(d, weight, m, out);
}

const struct heddle_offline_ops heddle_offline_heft = {
    .name = "heft",
    .help = "earliest finish, longest mean way first",
    .run = run,
    .seed_limit = UINT32_MAX,
};
