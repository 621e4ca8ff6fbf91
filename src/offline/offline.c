/* SPDX-License-Identifier: BSD-3-Clause */
/* offline: the table of policies, made from offline.def, and a call of one. */
#include "offline/offline.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/sized.h"
#include "base/text.h"

#define HEDDLE_OFFLINE(name, on)                                                                   \
    HEDDLE_IF(on, extern const struct heddle_offline_ops heddle_offline_##name;)
#include "offline/offline.def"
#undef HEDDLE_OFFLINE

const struct heddle_offline_ops *const heddle_offline_table[] = {
#define HEDDLE_OFFLINE(name, on) HEDDLE_IF(on, &heddle_offline_##name, )
#include "offline/offline.def"
#undef HEDDLE_OFFLINE
    NULL,
};

#define DEFAULT_NS UINT64_C(2000000000)

bool heddle_offline_is_late(const struct heddle_offline_dag *d)
{
    return d->deadline != 0 && heddle_clock_ns() >= d->deadline;
}

static const struct heddle_offline_ops *find(const char *name)
{
    for (size_t i = 0; heddle_offline_table[i] != NULL; i++)
        if (strcmp(heddle_offline_table[i]->name, name) == 0)
            return heddle_offline_table[i];
    return NULL;
}

heddle_status heddle_offline_get_info(unsigned i, struct heddle_offline_info *info_out)
{
    unsigned n = 0;

    while (heddle_offline_table[n] != NULL)
        n++;
    if (info_out == NULL)
        return HEDDLE_EINVAL;
    if (i >= n)
        return HEDDLE_ENOENT;
    info_out->name = heddle_offline_table[i]->name;
    info_out->help = heddle_offline_table[i]->help;
    return HEDDLE_OK;
}

/* The arrays of a result, in one scratch that outlives the call. */
struct own {
    struct heddle_scratch m;
};

static heddle_status run_policy(const struct heddle_offline_ops *ops, struct heddle_offline_dag *d,
                                struct heddle_scratch *m, struct heddle_offline_result *out)
{
    struct heddle_offline_sched s;
    struct own *own = heddle_zalloc(d->opts->alloc, 1, sizeof(*own));
    heddle_status st = HEDDLE_ENOMEM;

    if (own == NULL)
        return HEDDLE_ENOMEM;
    own->m.a = d->opts->alloc;
    if (heddle_offline_sched_get(d, &own->m, &s))
        st = ops->run(d, m, &s);
    if (st != HEDDLE_OK) {
        heddle_scratch_drop(&own->m);
        heddle_free(d->opts->alloc, own, sizeof(*own));
        return st;
    }
    out->ntasks = d->n;
    out->makespan = s.makespan;
    out->type = s.type;
    out->worker = s.worker;
    out->start = s.start;
    out->end = s.end;
    out->policy = s.policy != NULL ? s.policy : ops->name;
    out->iterations = s.iterations;
    out->own = own;
    return HEDDLE_OK;
}

heddle_status heddle_offline_schedule(const struct heddle_bound_graph *graph,
                                      const struct heddle_offline_opts *opts,
                                      struct heddle_offline_result *result_out)
{
    struct heddle_offline_result r = {.size = sizeof(r)};
    const struct heddle_offline_ops *ops;
    const uint64_t t0 = heddle_clock_ns();
    struct heddle_offline_opts o;
    struct heddle_bound_graph g;
    struct heddle_offline_dag d;
    struct heddle_scratch m;
    heddle_status st;
    uint64_t limit;

    HEDDLE_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_offline_opts, &o, opts));
    if (graph == NULL)
        return HEDDLE_OFFLINE_FAIL(&o, HEDDLE_EINVAL, "there is no graph");
    HEDDLE_TRY(HEDDLE_SIZED_GET_FIXED(struct heddle_bound_graph, &g, graph, o.why, o.why_bytes));
    HEDDLE_TRY(HEDDLE_SIZED_ROOM_OWN(struct heddle_offline_result, result_out, o.why, o.why_bytes));
    ops = find(o.policy == NULL ? "best" : o.policy);
    if (ops == NULL)
        return HEDDLE_OFFLINE_FAIL(&o, HEDDLE_ENOENT, "there is no offline policy '%s'", o.policy);
    limit = o.time_ns == 0 ? DEFAULT_NS : o.time_ns;
    m = (struct heddle_scratch){.a = o.alloc};
    st = heddle_offline_build(&g, &o, &m, &d);
    d.deadline = limit > UINT64_MAX - t0 ? 0 : t0 + limit;
    if (st == HEDDLE_OK)
        st = run_policy(ops, &d, &m, &r);
    heddle_scratch_drop(&m);
    if (st == HEDDLE_ENOMEM)
        return HEDDLE_OFFLINE_FAIL(&o, st, "there is no memory");
    if (st == HEDDLE_OK) {
        r.time_ns = heddle_clock_ns() - t0;
        heddle_sized_put(result_out, &r, sizeof(r));
    }
    return st;
}

void heddle_offline_fini(struct heddle_offline_result *result)
{
    struct own *own;

    if (result == NULL)
        return;
    own = result->own;
    if (own != NULL) {
        const struct heddle_allocator *a = own->m.a;

        heddle_scratch_drop(&own->m);
        heddle_free(a, own, sizeof(*own));
    }
    heddle_sized_clear(result);
}
