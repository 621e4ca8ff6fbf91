/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fixed: a list schedule with given types, in a given order or longest way
 * first. With the types and starts of a recorded run it tells what the run would
 * have taken without the runtime's own time.
 */
#include "offline/offline.h"

/* Lesser keys first, as tasks become ready: any key >= -inf that is a number. */
static heddle_status order_by(const struct heddle_offline_dag *d, const double *key,
                              struct heddle_scratch *m, uint32_t *order)
{
    double *rank = heddle_scratch_get(m, d->n, sizeof(*rank));

    if (rank == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t t = 0; t < d->n; t++) {
        if (isnan(key[t]))
            return HEDDLE_OFFLINE_FAIL(d->opts, HEDDLE_EINVAL, "the order of task %u is no number",
                                       t);
        rank[t] = -key[t];
    }
    return heddle_offline_ready_order(d, rank, m, order);
}

static heddle_status run(const struct heddle_offline_dag *d, struct heddle_scratch *m,
                         struct heddle_offline_sched *out)
{
    const struct heddle_offline_opts *opts = d->opts;
    uint8_t *type = heddle_scratch_get(m, d->n, sizeof(*type));
    uint32_t *order = heddle_scratch_get(m, d->n, sizeof(*order));
    heddle_status st;

    if (opts->type == NULL)
        return HEDDLE_OFFLINE_FAIL(opts, HEDDLE_EINVAL, "the policy 'fixed' needs types");
    if (type == NULL || order == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t t = 0; t < d->n; t++) {
        if (opts->type[t] >= d->r || heddle_offline_time(d, t, opts->type[t]) == INFINITY)
            return HEDDLE_OFFLINE_FAIL(opts, HEDDLE_EINVAL, "task %u cannot run on type %u", t,
                                       opts->type[t]);
        type[t] = (uint8_t)opts->type[t];
    }
    if (opts->order == NULL)
        return heddle_offline_list_types(d, type, m, out);
    st = order_by(d, opts->order, m, order);
    return st == HEDDLE_OK ? heddle_offline_list(d, type, order, m, out) : st;
}

const struct heddle_offline_ops heddle_offline_fixed = {
    .name = "fixed",
    .help = "given types and order, for example those of the log",
    .run = run,
};
