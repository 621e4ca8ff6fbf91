/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * demo_report: what the log says about the factorisation.
 *
 * Bounds     no schedule of these tasks ends before the time of all tasks over
 *            the number of workers (area), nor before the longest chain (path):
 *            potrf, then trsm, syrk and potrf for each further step.
 */
#include "demo.h"

#include <string.h>

#include "heddle/trace.h"

/* Median time of a kernel; 0 when it did not run. */
static double median_ns(const struct heddle_log_view *v,
                        const struct heddle_log_summary *s, const char *kernel)
{
    for (size_t i = 0; i < v->nkernels; i++)
        if (strcmp(v->kernels[i].name, kernel) == 0)
            return (double)s->kernels[i].median_ns;
    return 0;
}

static double total_ns(const struct heddle_log_view *v,
                       const struct heddle_log_summary *s)
{
    double sum = 0;

    for (size_t i = 0; i < v->nkernels; i++)
        sum += (double)s->kernels[i].total_ns;
    return sum;
}

heddle_status demo_report_read(struct demo_report *r, const char *path,
                               uint32_t nt, unsigned nworkers, char *why,
                               size_t why_bytes)
{
    const struct heddle_log_opts opts = {
        .size = sizeof(opts), .why = why, .why_bytes = why_bytes};
    struct heddle_log_summary *s = NULL;
    heddle_log *log = NULL;
    heddle_status st = heddle_log_open(path, &opts, &log);

    if (st == HEDDLE_OK)
        st = heddle_log_summary_create(log, &s);
    if (st == HEDDLE_OK) {
        const struct heddle_log_view *v = heddle_log_get_view(log);
        const double step = median_ns(v, s, "trsm") + median_ns(v, s, "syrk");
        const double potrf = median_ns(v, s, "potrf");

        r->utilisation =
            s->makespan_ns > 0
                ? (double)s->busy_ns / (double)s->makespan_ns / nworkers
                : 0;
        r->overhead_task_ns = s->overhead_task_ns;
        r->area_ns = total_ns(v, s) / nworkers;
        r->path_ns = nt * potrf + (nt - 1) * step;
        r->log_bytes = v->bytes;
    }
    heddle_log_summary_destroy(log, s);
    heddle_log_close(log);
    return st;
}
