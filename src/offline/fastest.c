/* SPDX-License-Identifier: BSD-3-Clause */
/* fastest: each task on its fastest type, longest way behind it first. */
#include "offline/offline.h"

static heddle_status run(const struct heddle_offline_dag *d, struct heddle_scratch *m,
                         struct heddle_offline_sched *out)
{
    return heddle_offline_list_types(d, d->home, m, out);
}

const struct heddle_offline_ops heddle_offline_fastest = {
    .name = "fastest",
    .help = "fastest type, longest way behind it first",
    .run = run,
    .seed_limit = UINT32_MAX,
};
