/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * demo_report: what the log says about the factorisation.
 *
 * Bounds     no schedule of these tasks ends before the time of all tasks over
 *            the number of workers (area), nor before the longest chain (path):
 *            potrf, then trsm, syrk and potrf for each further step. With
 *            devices both come from heddle/bound.h, with the mean time of each
 *            kernel in each place; where it never ran it is taken not to run.
 */
#include "demo.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "heddle/bound.h"
#include "heddle/trace.h"

enum { NTYPES = 1 + DEMO_MAX_DEVICES, MAX_TASKS = 1000000 };

struct reader {
    struct demo_report *r;
    const struct heddle_log_view *v;
    const struct heddle_log_summary *s;
    uint32_t nt;
    unsigned nworkers;
    double sum[CHOLESKY_NKINDS][NTYPES]; /* ns of all tasks */
    uint64_t n[CHOLESKY_NKINDS][NTYPES];
};

/* --- places ---------------------------------------------------------------- */

/* 0: the cores; else 1 + index of the device, a new one when it is unknown. A lane
 * of a device is called as the device, or DEVICE.STREAM. */
static unsigned place_of(struct demo_report *r,
                         const struct heddle_log_lane *lane)
{
    const size_t n = strcspn(lane->name, ".");
    unsigned i = 0;

    if (lane->kind != HEDDLE_LOG_DEVICE)
        return 0;
    while (i < r->ndevices && (strncmp(r->device[i].name, lane->name, n) != 0 ||
                               r->device[i].name[n] != '\0'))
        i++;
    if (i == DEMO_MAX_DEVICES || n >= sizeof(r->device[i].name))
        return 0;
    if (i == r->ndevices) {
        memcpy(r->device[i].name, lane->name, n);
        r->ndevices++;
    }
    return i + 1;
}

static enum cholesky_kind kind_of(const struct heddle_log_kernel *k)
{
    enum cholesky_kind i = 0;

    while (i < CHOLESKY_NKINDS && strcmp(cholesky_name(i), k->name) != 0)
        i++;
    return i;
}

/* Tasks come sorted by their start. */
static void read_tasks(struct reader *d)
{
    struct demo_report *r = d->r;
    int64_t until[NTYPES], busy[NTYPES] = {0};
    uint64_t n[NTYPES] = {0};

    for (unsigned i = 0; i < NTYPES; i++)
        until[i] = INT64_MIN;
    for (size_t i = 0; i < d->v->ntasks; i++) {
        const struct heddle_log_task *t = &d->v->tasks[i];
        enum cholesky_kind kind;
        unsigned p;
        int64_t from;

        if (t->status != HEDDLE_LOG_OK || t->lane == HEDDLE_LOG_NO_LANE)
            continue;
        p = place_of(r, &d->v->lanes[t->lane]);
        kind = kind_of(&d->v->kernels[t->kernel]);
        from = t->start_ns > until[p] ? t->start_ns : until[p];
        if (t->end_ns > from) {
            busy[p] += t->end_ns - from;
            until[p] = t->end_ns;
        }
        n[p]++;
        if (kind < CHOLESKY_NKINDS) {
            d->sum[kind][p] += (double)(t->end_ns - t->start_ns);
            d->n[kind][p]++;
        }
    }
    r->core_tasks = n[0];
    for (unsigned i = 0; i < r->ndevices; i++) {
        r->device[i].ntasks = n[i + 1];
        r->device[i].busy =
            d->s->makespan_ns > 0
                ? (double)busy[i + 1] / (double)d->s->makespan_ns
                : 0;
    }
}

static void read_lanes(struct reader *d)
{
    struct demo_report *r = d->r;
    double busy = 0, overhead = 0;
    uint64_t ntasks = 0;

    for (size_t i = 0; i < d->v->nlanes; i++) {
        const struct heddle_log_lane_sum *l = &d->s->lanes[i];
        const unsigned p = place_of(r, &d->v->lanes[i]);

        if (p > 0) {
            r->device[p - 1].nstreams++;
            continue;
        }
        busy += (double)l->busy_ns;
        ntasks += l->ntasks;
        if (d->v->lanes[i].kind == HEDDLE_LOG_WORKER || l->ntasks > 0)
            overhead += (double)l->overhead_ns;
    }
    r->overhead_task_ns = ntasks > 0 ? overhead / (double)ntasks : 0;
    r->utilisation = d->s->makespan_ns > 0
                         ? busy / (double)d->s->makespan_ns / d->nworkers
                         : 0;
}

/* --- bounds with devices ---------------------------------------------------- */

struct edges {
    uint32_t *from, *to, *kind, *writer; /* writer: 1 + the last of each tile */
    uint32_t nedges, ntasks;
};

static heddle_status add_task(void *user, const struct cholesky_task *t)
{
    struct edges *e = user;

    for (uint32_t i = 0; i < t->ntiles; i++) {
        const uint32_t w = e->writer[t->tile[i]];

        if (w != 0) {
            e->from[e->nedges] = w - 1;
            e->to[e->nedges++] = e->ntasks;
        }
    }
    e->kind[e->ntasks++] = (uint32_t)t->kind;
    e->writer[t->tile[t->ntiles - 1]] = e->ntasks;
    return HEDDLE_OK;
}

static heddle_status solve(struct reader *d, const struct edges *e)
{
    const uint32_t ntypes = 1 + d->r->ndevices;
    struct heddle_bound_limits limits = {.size = sizeof(limits),
                                         .which = 1u << HEDDLE_BOUND_AREA};
    struct heddle_bound_result b = {.size = sizeof(b)};
    double time[CHOLESKY_NKINDS * NTYPES];
    uint32_t nworkers[NTYPES] = {d->nworkers};
    struct heddle_bound_graph g = {.size = sizeof(g),
                                   .ntasks = e->ntasks,
                                   .ntypes = ntypes,
                                   .nkinds = CHOLESKY_NKINDS,
                                   .nedges = e->nedges,
                                   .edge_from = e->from,
                                   .edge_to = e->to,
                                   .nworkers = nworkers,
                                   .kind = e->kind,
                                   .time = time};
    heddle_status st;

    for (unsigned i = 0; i < d->r->ndevices; i++)
        nworkers[i + 1] = d->r->device[i].nstreams;
    for (unsigned k = 0; k < CHOLESKY_NKINDS; k++)
        for (unsigned p = 0; p < ntypes; p++)
            time[k * ntypes + p] = d->n[k][p] > 0
                                       ? d->sum[k][p] / (double)d->n[k][p]
                                       : (double)INFINITY;
    st = heddle_bound_all(&g, &limits, &b);
    if (st == HEDDLE_OK) {
        d->r->area_ns = b.cert[HEDDLE_BOUND_AREA].value;
        d->r->path_ns = b.cert[HEDDLE_BOUND_PATH].value;
    }
    heddle_bound_finish(&b);
    return st;
}

/* Graphs too large for this have none: 0. */
static heddle_status bound_devices(struct reader *d)
{
    const size_t ntasks = cholesky_ntasks(d->nt);
    struct edges e = {0};
    heddle_status st = HEDDLE_ENOMEM;

    if (ntasks > MAX_TASKS)
        return HEDDLE_OK;
    e.from = calloc(3 * ntasks, sizeof(*e.from));
    e.to = calloc(3 * ntasks, sizeof(*e.to));
    e.kind = calloc(ntasks, sizeof(*e.kind));
    e.writer = calloc(cholesky_tile(d->nt, 0), sizeof(*e.writer));
    if (e.from != NULL && e.to != NULL && e.kind != NULL && e.writer != NULL)
        st = cholesky_walk(d->nt, add_task, &e);
    if (st == HEDDLE_OK)
        st = solve(d, &e);
    free(e.from);
    free(e.to);
    free(e.kind);
    free(e.writer);
    return st;
}

/* --- the whole -------------------------------------------------------------- */

/* Median time of a kernel; 0 when it did not run. */
static double median_ns(const struct reader *d, enum cholesky_kind kind)
{
    for (size_t i = 0; i < d->v->nkernels; i++)
        if (kind_of(&d->v->kernels[i]) == kind)
            return (double)d->s->kernels[i].median_ns;
    return 0;
}

static void bound_cores(struct reader *d)
{
    const double step =
        median_ns(d, CHOLESKY_TRSM) + median_ns(d, CHOLESKY_SYRK);
    double total = 0;

    for (size_t i = 0; i < d->v->nkernels; i++)
        total += (double)d->s->kernels[i].total_ns;
    d->r->area_ns = total / d->nworkers;
    d->r->path_ns = d->nt * median_ns(d, CHOLESKY_POTRF) + (d->nt - 1) * step;
}

heddle_status demo_report_read(struct demo_report *r, const char *path,
                               uint32_t nt, unsigned nworkers, char *why,
                               size_t why_bytes)
{
    const struct heddle_log_opts opts = {
        .size = sizeof(opts), .why = why, .why_bytes = why_bytes};
    struct reader d = {.r = r, .nt = nt, .nworkers = nworkers};
    struct heddle_log_summary *s = NULL;
    heddle_log *log = NULL;
    heddle_status st = heddle_log_open(path, &opts, &log);

    *r = (struct demo_report){0};
    if (st == HEDDLE_OK)
        st = heddle_log_summary_create(log, &s);
    if (st == HEDDLE_OK) {
        d.v = heddle_log_get_view(log);
        d.s = s;
        r->log_bytes = d.v->bytes;
        read_lanes(&d);
        read_tasks(&d);
        if (r->ndevices == 0)
            bound_cores(&d);
        else
            st = bound_devices(&d);
    }
    heddle_log_summary_destroy(log, s);
    heddle_log_close(log);
    return st;
}
