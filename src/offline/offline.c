/* SPDX-License-Identifier: BSD-3-Clause */
/* offline: the table of policies, made from offline.def, and a call of one. */
#include "offline/offline.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/cond.h"
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

heddle_status heddle_offline_fail(const struct heddle_offline_opts *opts, heddle_status st,
                                  const char *fmt, ...)
{
    struct heddle_text t;
    va_list ap;

    if (opts == NULL || opts->why == NULL || opts->why_bytes == 0)
        return st;
    heddle_text_init(&t, opts->why, opts->why_bytes);
    va_start(ap, fmt);
    heddle_text_vadd(&t, fmt, ap);
    va_end(ap);
    return st;
}

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
    const struct heddle_offline_opts none = {.size = sizeof(none)};
    const struct heddle_offline_ops *ops;
    const uint64_t t0 = heddle_clock_ns();
    struct heddle_offline_dag d;
    struct heddle_scratch m;
    heddle_status st;
    uint64_t limit;

    if (opts == NULL)
        opts = &none;
    if (graph == NULL || result_out == NULL || graph->size != sizeof(*graph) ||
        opts->size != sizeof(*opts) || result_out->size != sizeof(*result_out))
        return heddle_offline_fail(opts->size == sizeof(*opts) ? opts : NULL, HEDDLE_EINVAL,
                                   "an argument is NULL or its size is wrong");
    ops = find(opts->policy == NULL ? "best" : opts->policy);
    if (ops == NULL)
        return heddle_offline_fail(opts, HEDDLE_ENOENT, "there is no offline policy '%s'",
                                   opts->policy);
    limit = opts->time_ns == 0 ? DEFAULT_NS : opts->time_ns;
    m = (struct heddle_scratch){.a = opts->alloc};
    st = heddle_offline_build(graph, opts, &m, &d);
    d.deadline = limit > UINT64_MAX - t0 ? 0 : t0 + limit;
    if (st == HEDDLE_OK)
        st = run_policy(ops, &d, &m, result_out);
    heddle_scratch_drop(&m);
    if (st == HEDDLE_ENOMEM)
        return heddle_offline_fail(opts, st, "there is no memory");
    if (st == HEDDLE_OK)
        result_out->time_ns = heddle_clock_ns() - t0;
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
    *result = (struct heddle_offline_result){.size = result->size};
}
