/* SPDX-License-Identifier: BSD-3-Clause */
/* heft-min: by rank with the least time, each where it ends first. */
#include "offline/offline.h"

static heddle_status run(const struct heddle_offline_dag *d, struct heddle_scratch *m,
                         struct heddle_offline_sched *out)
{
    return heddle_offline_heft_by(d, d->fast, m, out);
}

const struct heddle_offline_ops heddle_offline_heft_min = {
    .name = "heft-min",
    .help = "earliest finish, longest way with the least times first",
    .run = run,
    .seed_limit = UINT32_MAX,
};
