/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace/schedule/out: a schedule as a log, and as a placement file.
 *
 * Lanes      without a machine those of the log, so that the k-th worker of a
 *            type is the k-th lane of that type; with one, its workers as a run
 *            in virtual time would number them. Workers that --what-if added
 *            come behind.
 * Log        rows of the tasks with other lanes and times; all are submitted
 *            at time 0 and ready when the last predecessor ends. Dependencies
 *            are the edges of the graph.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "common/output.h"
#include "heddle/compose.h"
#include "heddle/task.h"
#include "trace/cmd.h"
#include "trace/schedule/schedule.h"

/* --- lanes -------------------------------------------------------------------*/

struct lanes {
    struct heddle_log_lane *lane;
    size_t n;
    char (*name)[SCHEDULE_PLACE]; /* of those that are made here */
    uint32_t *of_worker;          /* [workers of the schedule] */
};

static void lanes_free(struct lanes *l)
{
    free(l->lane);
    free(l->name);
    free(l->of_worker);
}

static uint32_t count_workers(const struct schedule *s)
{
    uint32_t n = 0;

    for (uint32_t r = 0; r < s->graph.ntypes; r++)
        n += s->nworkers[r];
    return n;
}

/* "NAME.k", or NAME when it is alone. */
static void add_lane(struct lanes *l, uint32_t device, const char *name, uint32_t k, uint32_t node)
{
    struct heddle_text t;

    heddle_text_init(&t, l->name[l->n], SCHEDULE_PLACE);
    heddle_text_str(&t, name);
    if (k != UINT32_MAX)
        heddle_text_add(&t, ".%u", k);
    l->lane[l->n] = (struct heddle_log_lane){.id = (uint32_t)l->n,
                                             .kind = device == HEDDLE_DEV_CPU ? HEDDLE_LOG_WORKER
                                                                              : HEDDLE_LOG_DEVICE,
                                             .cpu = -1,
                                             .node = node,
                                             .name = l->name[l->n]};
    l->n++;
}

/* Workers of the machine, behind the lane of the submitter. */
static void lanes_of_machine(const struct schedule *s, struct lanes *l, uint32_t *used)
{
    struct heddle_machine_class c = {.size = sizeof(c)};

    add_lane(l, HEDDLE_DEV_CPU, "submitter", UINT32_MAX, 0);
    l->lane[0].kind = HEDDLE_LOG_SUBMITTER;
    for (uint32_t i = 0; heddle_machine_get_class(s->b.machine, i, &c) == HEDDLE_OK; i++) {
        for (uint32_t k = 0; k < c.nworkers; k++) {
            uint32_t first = 0;

            for (uint32_t r = 0; r < c.type; r++)
                first += s->nworkers[r];
            if (used[c.type] < s->nworkers[c.type])
                l->of_worker[first + used[c.type]++] = (uint32_t)l->n;
            add_lane(l, c.kind, c.name, c.nworkers > 1 ? k : UINT32_MAX, c.node);
        }
    }
}

static void lanes_of_log(const struct schedule *s, struct lanes *l, uint32_t *used)
{
    const struct heddle_log_view *v = heddle_log_get_view(s->log);

    if (v->nlanes > 0)
        memcpy(l->lane, v->lanes, v->nlanes * sizeof(*l->lane));
    l->n = v->nlanes;
    for (uint32_t i = 0; i < v->nlanes; i++) {
        const uint32_t r = s->b.g->lane_type[i];
        uint32_t first = 0;

        if (r == HEDDLE_LOG_GRAPH_NONE || used[r] == s->nworkers[r])
            continue;
        for (uint32_t k = 0; k < r; k++)
            first += s->nworkers[k];
        l->of_worker[first + used[r]++] = i;
    }
}

static bool lanes_make(const struct schedule *s, struct lanes *l)
{
    const struct heddle_log_view *v = heddle_log_get_view(s->log);
    struct heddle_machine_counts n = {.size = sizeof(n)};
    uint32_t used[HEDDLE_BOUND_TYPES_MAX] = {0}, w = 0;
    size_t most = v->nlanes + count_workers(s) + 1;

    if (s->b.machine != NULL && heddle_machine_describe(s->b.machine, &n) == HEDDLE_OK)
        most += n.workers;
    *l = (struct lanes){.lane = calloc(most, sizeof(*l->lane)),
                        .name = calloc(most, sizeof(*l->name)),
                        .of_worker = calloc((size_t)count_workers(s) + 1, sizeof(*l->of_worker))};
    if (l->lane == NULL || l->name == NULL || l->of_worker == NULL)
        return false;
    if (s->b.machine != NULL)
        lanes_of_machine(s, l, used);
    else
        lanes_of_log(s, l, used);
    for (uint32_t r = 0; r < s->graph.ntypes; r++) {
        const struct heddle_log_graph_type *t = &s->b.g->types[r];

        for (uint32_t k = used[r]; k < s->nworkers[r]; k++) {
            l->of_worker[w + k] = (uint32_t)l->n;
            add_lane(l, schedule_device(s, r), t->name, k, t->node);
        }
        w += s->nworkers[r];
    }
    return true;
}

/* --- the log -----------------------------------------------------------------*/

struct rows {
    struct lanes lanes;
    struct heddle_log_task *task;
    struct heddle_log_dep *dep;
    struct heddle_log_info *info;
    size_t ninfos;
};

static uint8_t variant_for(const struct heddle_log_kernel *k, uint32_t device, uint8_t old)
{
    if (old < k->nvariants && k->variants[old].device == device)
        return old;
    for (uint32_t i = 0; i < k->nvariants && i < 256; i++)
        if (k->variants[i].device == device)
            return (uint8_t)i;
    return old;
}

/* Accesses order tasks of one parent. Here no task has one, so those of children
 * would order them among others. */
static bool has_children(const struct schedule *s)
{
    const struct heddle_log_view *v = heddle_log_get_view(s->log);

    for (uint32_t t = 0; t < s->graph.ntasks; t++)
        if (v->tasks[s->b.g->log_index[t]].parent != 0)
            return true;
    return false;
}

static void fill_tasks(const struct schedule *s, struct rows *r)
{
    const struct heddle_log_view *v = heddle_log_get_view(s->log);
    const struct heddle_log_graph *g = s->b.g;

    for (uint32_t t = 0; t < s->graph.ntasks; t++) {
        struct heddle_log_task *x = &r->task[t];

        *x = v->tasks[g->log_index[t]];
        x->parent = 0;
        x->submit_ns = 0;
        x->ready_ns = 0;
        x->start_ns = llround(s->s.start[t]);
        x->end_ns = llround(s->s.end[t]);
        x->lane = r->lanes.of_worker[s->s.worker[t]];
        x->variant = variant_for(&v->kernels[x->kernel], g->types[s->s.type[t]].device, x->variant);
        x->flags = 0;
    }
    for (uint32_t e = 0; e < s->graph.nedges; e++) {
        const uint32_t a = s->graph.edge_from[e], b = s->graph.edge_to[e];

        r->dep[e] = (struct heddle_log_dep){.succ = g->id[b], .pred = g->id[a]};
        if (r->task[b].ready_ns < r->task[a].end_ns)
            r->task[b].ready_ns = r->task[a].end_ns;
    }
}

/* The facts of the run, but for who scheduled it. */
static void fill_infos(const struct schedule *s, struct rows *r)
{
    const struct heddle_log_view *v = heddle_log_get_view(s->log);

    r->info[r->ninfos++] = (struct heddle_log_info){"scheduler", s->policy};
    for (size_t i = 0; i < v->ninfos; i++)
        if (strcmp(v->infos[i].key, "scheduler") != 0)
            r->info[r->ninfos++] = v->infos[i];
}

static void rows_free(struct rows *r)
{
    lanes_free(&r->lanes);
    free(r->task);
    free(r->dep);
    free(r->info);
}

int schedule_write_log(const struct schedule *s, const char *path)
{
    struct heddle_log_view v = *heddle_log_get_view(s->log);
    char why[512] = "";
    const struct heddle_log_opts o = {.size = sizeof(o), .why = why, .why_bytes = sizeof(why)};
    struct rows r = {.task = calloc((size_t)s->graph.ntasks + 1, sizeof(*r.task)),
                     .dep = calloc((size_t)s->graph.nedges + 1, sizeof(*r.dep)),
                     .info = calloc(v.ninfos + 1, sizeof(*r.info))};
    struct output out;
    heddle_status st = HEDDLE_ENOMEM;
    int rc = output_begin(&out, s->c, path);

    if (rc == 0 && lanes_make(s, &r.lanes) && r.task != NULL && r.dep != NULL && r.info != NULL) {
        fill_tasks(s, &r);
        fill_infos(s, &r);
        v.tasks = r.task;
        v.ntasks = s->graph.ntasks;
        v.deps = r.dep;
        v.ndeps = s->graph.nedges;
        v.lanes = r.lanes.lane;
        v.nlanes = r.lanes.n;
        v.infos = r.info;
        v.ninfos = r.ninfos;
        v.nstates = v.nmarks = v.nevents = 0;
        if (has_children(s))
            v.naccesses = 0;
        st = heddle_log_compose(&v, out.at, &o);
    }
    rows_free(&r);
    if (rc != 0)
        return rc;
    if (st != HEDDLE_OK)
        rc = output_fail(&out, why[0] != '\0' ? why : heddle_status_text(st));
    return output_end(&out, rc);
}

/* --- the placement -----------------------------------------------------------*/

struct line {
    double start;
    uint32_t task;
};

static int by_start(const void *a, const void *b)
{
    const struct line *x = a, *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->task < y->task ? -1 : x->task > y->task;
}

static bool write_lines(const struct schedule *s, FILE *f)
{
    struct heddle_log_view v = *heddle_log_get_view(s->log);
    struct line *line = calloc((size_t)s->graph.ntasks + 1, sizeof(*line));
    struct lanes l = {0};
    char place[SCHEDULE_PLACE];
    const bool is_ok = line != NULL && lanes_make(s, &l);

    v.lanes = l.lane;
    v.nlanes = l.n;
    for (uint32_t t = 0; t < s->graph.ntasks && is_ok; t++)
        line[t] = (struct line){s->s.start[t], t};
    if (is_ok)
        qsort(line, s->graph.ntasks, sizeof(*line), by_start);
    for (uint32_t i = 0; i < s->graph.ntasks && is_ok; i++) {
        const uint32_t t = line[i].task;
        const char *where = s->b.g->types[s->s.type[t]].name;

        schedule_lane_place(&v, l.of_worker[s->s.worker[t]], place);
        if (place[0] != '\0')
            where = place;
        if (strpbrk(where, " \t\r\n#") == NULL) /* else no line can say it */
            fprintf(f, "%" PRIu64 " %s %" PRIu32 "\n", s->b.g->id[t], where, i + 1);
    }
    lanes_free(&l);
    free(line);
    return is_ok;
}

int schedule_write_placement(const struct schedule *s, const char *path)
{
    struct output o;
    int rc = output_begin_stream(&o, s->c, path);

    if (rc != 0)
        return rc;
    fprintf(o.f, "# task  where  order\n");
    if (!write_lines(s, o.f))
        rc = cli_fail(s->c, "%s", heddle_status_text(HEDDLE_ENOMEM));
    return output_end(&o, rc);
}
