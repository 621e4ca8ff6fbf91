/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * demo/report: what the log says about the factorisation.
 */
#include "demo/demo.h"

#include <stdio.h>
#include <string.h>

#include "common/run_bound.h"
#include "heddle/trace.h"

enum { NTYPES = 1 + DEMO_MAX_DEVICES };

struct reader {
    struct demo_report *r;
    const struct heddle_log_view *v;
    const struct heddle_log_summary *s;
    unsigned nworkers;
};

/* --- places ---------------------------------------------------------------- */

/* 0: the cores; else 1 + index of the device, a new one when it is unknown. A lane
 * of a device is called as the device, or DEVICE.STREAM. */
static unsigned place_of(struct demo_report *r, const struct heddle_log_lane *lane)
{
    const size_t n = strcspn(lane->name, ".");
    unsigned i = 0;

    if (lane->kind != HEDDLE_LOG_DEVICE)
        return 0;
    while (i < r->ndevices &&
           (strncmp(r->device[i].name, lane->name, n) != 0 || r->device[i].name[n] != '\0'))
        i++;
    if (i == DEMO_MAX_DEVICES || n >= sizeof(r->device[i].name))
        return 0;
    if (i == r->ndevices) {
        memcpy(r->device[i].name, lane->name, n);
        r->ndevices++;
    }
    return i + 1;
}

static void count_kernel(struct demo_report *r, const char *name)
{
    unsigned i = 0;

    while (i < r->nkernels && strcmp(r->kernel[i].name, name) != 0)
        i++;
    if (i >= DEMO_MAX_KERNELS - 1)
        name = "other";
    if (i == r->nkernels && i < DEMO_MAX_KERNELS)
        snprintf(r->kernel[r->nkernels++].name, sizeof(r->kernel[0].name), "%s", name);
    r->kernel[i < DEMO_MAX_KERNELS ? i : DEMO_MAX_KERNELS - 1].ntasks++;
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
        unsigned p;
        int64_t from;

        if (t->status != HEDDLE_LOG_OK || t->lane == HEDDLE_LOG_NO_LANE)
            continue;
        p = place_of(r, &d->v->lanes[t->lane]);
        from = t->start_ns > until[p] ? t->start_ns : until[p];
        if (t->end_ns > from) {
            busy[p] += t->end_ns - from;
            until[p] = t->end_ns;
        }
        n[p]++;
        r->ntasks++;
        count_kernel(r, d->v->kernels[t->kernel].name);
    }
    r->core_tasks = n[0];
    for (unsigned i = 0; i < r->ndevices; i++) {
        r->device[i].ntasks = n[i + 1];
        r->device[i].busy =
            d->s->makespan_ns > 0 ? (double)busy[i + 1] / (double)d->s->makespan_ns : 0;
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
    r->utilisation = d->s->makespan_ns > 0 ? busy / (double)d->s->makespan_ns / d->nworkers : 0;
}

/* --- the whole -------------------------------------------------------------- */

heddle_status demo_report_read(struct demo_report *r, const char *path, unsigned nworkers,
                               char *why, size_t why_bytes)
{
    struct run_bound b = {0};
    struct reader d = {.r = r, .nworkers = nworkers};
    struct heddle_log_summary *s = NULL;
    heddle_status st = run_bound_read(&b, path);

    *r = (struct demo_report){0};
    if (st == HEDDLE_OK)
        st = heddle_log_summary_create(b.log, &s);
    if (st == HEDDLE_OK) {
        d.v = heddle_log_get_view(b.log);
        d.s = s;
        r->log_bytes = d.v->bytes;
        read_lanes(&d);
        read_tasks(&d);
        r->area_ns = b.r.cert[HEDDLE_BOUND_AREA].value;
        r->path_ns = b.r.cert[HEDDLE_BOUND_PATH].value;
        r->bound_ns = b.r.best;
        r->has_deps = b.g->has_deps != 0;
    } else {
        snprintf(why, why_bytes, "%s", b.why);
    }
    heddle_log_summary_destroy(b.log, s);
    run_bound_close(&b);
    return st;
}
