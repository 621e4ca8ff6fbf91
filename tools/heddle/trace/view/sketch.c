/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace/view/sketch: an explanation that explains nothing, for the first picture.
 *
 * Purpose    a run of ten million tasks is explained in seconds; its tasks can
 *            be drawn before. Sums still hold: the time of a worker is work, or
 *            has no known cause.
 */
#include "base/alloc.h"
#include "trace/view/view.h"

heddle_status view_sketch_create(const heddle_log *log, const struct heddle_allocator *a,
                                 struct heddle_explain **out)
{
    const struct heddle_log_view *v = heddle_log_get_view(log);
    struct heddle_log_summary *s = NULL;
    struct heddle_explain *x = heddle_zalloc(a, 1, sizeof *x);
    struct heddle_explain_lane *lanes = heddle_zalloc(a, v->nlanes + 1, sizeof *lanes);

    if (x == NULL || lanes == NULL || heddle_log_summary_create(log, &s) != HEDDLE_OK) {
        heddle_free(a, x, sizeof *x);
        heddle_free(a, lanes, (v->nlanes + 1) * sizeof *lanes);
        return HEDDLE_ENOMEM;
    }
    *x = (struct heddle_explain){.size = sizeof *x,
                                 .first_ns = s->first_ns,
                                 .last_ns = s->last_ns,
                                 .makespan_ns = s->makespan_ns,
                                 .nworkers = s->nworkers,
                                 .lanes = lanes,
                                 .nlanes = v->nlanes};
    for (size_t i = 0; i < v->nlanes; i++) {
        const struct heddle_log_lane_sum *l = &s->lanes[i];

        if (l->ntasks == 0 && v->lanes[i].kind != HEDDLE_LOG_WORKER &&
            v->lanes[i].kind != HEDDLE_LOG_DEVICE)
            continue;
        lanes[i].is_worker = 1;
        lanes[i].ns[HEDDLE_CAUSE_WORK] = l->busy_ns;
        lanes[i].ns[HEDDLE_CAUSE_UNKNOWN] = s->makespan_ns - l->busy_ns;
        x->total_ns[HEDDLE_CAUSE_WORK] += l->busy_ns;
        x->total_ns[HEDDLE_CAUSE_UNKNOWN] += s->makespan_ns - l->busy_ns;
    }
    x->blame_ns[HEDDLE_BLAME_OVERHEAD] = s->makespan_ns;
    heddle_log_summary_destroy(log, s);
    *out = x;
    return HEDDLE_OK;
}

void view_sketch_destroy(struct heddle_explain *x, const struct heddle_allocator *a)
{
    struct heddle_explain_lane *lanes;

    if (x == NULL)
        return;
    lanes = (struct heddle_explain_lane *)(uintptr_t)x->lanes; /* its own */
    heddle_free(a, lanes, (x->nlanes + 1) * sizeof *lanes);
    heddle_free(a, x, sizeof *x);
}
