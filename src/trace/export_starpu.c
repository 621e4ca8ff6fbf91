/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * export_starpu: the tasks.rec of StarPU, for pmtool, StarVZ and the tools of
 * recutils. `heddle trace import` reads it back.
 *
 * Structure  one record per task, by id: "Field: value" lines, then an empty
 *            one. Of a task that ran more than once, or on a gang, the last
 *            execution that is not a helper's. Always with dependencies.
 * Platform   FILE.platform.rec: which worker has which memory.
 * Times      milliseconds with six decimals: exact.
 */
#include <inttypes.h>

#include "base/assert.h"
#include "base/mode.h"
#include "base/text.h"
#include "trace/export.h"
#include "trace/spans.h"

#define NO_WORKER UINT32_MAX

struct rec {
    const heddle_log *log;
    FILE *f;
    uint32_t *order;  /* of tasks[]: number of its submission, from 1; 0: none */
    uint32_t *worker; /* of lanes[]: number among those that run tasks */
};

/* A value ends with its line. */
static void put_text(FILE *f, const char *field, const char *s)
{
    fprintf(f, "%s: ", field);
    for (; *s != '\0'; s++)
        fputc((unsigned char)*s < 0x20 || *s == 0x7f ? ' ' : *s, f);
    fputc('\n', f);
}

static void put_ms(FILE *f, const char *field, int64_t ns)
{
    const uint64_t u = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;

    if (ns != HEDDLE_LOG_NONE)
        fprintf(f, "%s: %s%" PRIu64 ".%06" PRIu64 "\n", field, ns < 0 ? "-" : "", u / 1000000,
                u % 1000000);
}

static void put_parameters(FILE *f, const struct heddle_log_handle *h)
{
    for (uint32_t d = 0; d < h->ndims; d++)
        fprintf(f, "%s%" PRIu64, d == 0 ? " " : "x", h->shape[d]);
}

static void put_operands(const struct rec *r, uint64_t id)
{
    const struct heddle_log_view *v = &r->log->v;
    size_t first, last;

    heddle_log_find_accesses(r->log, id, &first, &last);
    if (first == last)
        return;
    fputs("Parameters:", r->f);
    for (size_t i = first; i < last; i++)
        put_parameters(r->f, &v->handles[v->accesses[i].handle]);
    fputs("\nHandles:", r->f);
    for (size_t i = first; i < last; i++)
        fprintf(r->f, " 0x%" PRIx32, v->handles[v->accesses[i].handle].id);
    fputs("\nModes:", r->f);
    for (size_t i = first; i < last; i++)
        fprintf(r->f, " %s", heddle_mode_letters(heddle_mode_of(v->accesses[i].mode)));
    fputs("\nSizes:", r->f);
    for (size_t i = first; i < last; i++)
        fprintf(r->f, " %" PRIu64, v->handles[v->accesses[i].handle].bytes);
    fputc('\n', r->f);
}

static void put_gflop(FILE *f, uint64_t bits)
{
    struct heddle_text t;
    char buf[64];
    double flops;

    memcpy(&flops, &bits, sizeof flops);
    if (!(flops > 0.0 && flops < 1e300))
        return;
    heddle_text_init(&t, buf, sizeof buf);
    heddle_text_double(&t, flops / 1e9);
    fprintf(f, "GFlop: %s\n", buf);
}

static void put_attrs(const struct rec *r, uint64_t id)
{
    const struct heddle_log_view *v = &r->log->v;
    size_t first, last;

    heddle_log_find_attrs(r->log, id, &first, &last);
    for (size_t i = first; i < last; i++) {
        const uint64_t x = v->attrs[i].value;

        switch (v->attrs[i].key) {
        case HEDDLE_LOG_ATTR_FLOPS: put_gflop(r->f, x); break;
        case HEDDLE_LOG_ATTR_FOOTPRINT: fprintf(r->f, "Footprint: %" PRIx64 "\n", x); break;
        case HEDDLE_LOG_ATTR_ITERATION: fprintf(r->f, "Iteration: %" PRIu64 "\n", x); break;
        case HEDDLE_LOG_ATTR_TAG: fprintf(r->f, "Tag: %" PRIx64 "\n", x); break;
        default: break; /* has no field, or one of its own */
        }
    }
}

static void put_deps(const struct rec *r, uint64_t id)
{
    size_t first, last;

    heddle_log_find_deps(r->log, id, &first, &last);
    if (first == last)
        return;
    fputs("DependsOn:", r->f);
    for (size_t i = first; i < last; i++)
        fprintf(r->f, " %" PRIu64, r->log->v.deps[i].pred);
    fputc('\n', r->f);
}

static void put_task(const struct rec *r, size_t i)
{
    const struct heddle_log_view *v = &r->log->v;
    const struct heddle_log_task *t = &v->tasks[i];
    const char *kernel = v->kernels[t->kernel].name;

    put_text(r->f, "Name", t->name != NULL ? t->name : kernel);
    put_text(r->f, "Model", kernel);
    fprintf(r->f, "JobId: %" PRIu64 "\n", t->id);
    if (r->order[i] != 0)
        fprintf(r->f, "SubmitOrder: %" PRIu32 "\n", r->order[i]);
    put_deps(r, t->id);
    fprintf(r->f, "Priority: %" PRId32 "\n", t->priority);
    if (t->lane != HEDDLE_LOG_NO_LANE)
        fprintf(r->f, "WorkerId: %" PRIu32 "\nMemoryNode: %" PRIu32 "\n", r->worker[t->lane],
                v->lanes[t->lane].node);
    put_ms(r->f, "SubmitTime", t->submit_ns);
    put_ms(r->f, "ReadyTime", t->ready_ns);
    put_ms(r->f, "StartTime", t->start_ns);
    put_ms(r->f, "EndTime", t->end_ns);
    put_attrs(r, t->id);
    put_operands(r, t->id);
    if (t->parent != 0)
        fprintf(r->f, "ParentRecursiveTask: %" PRIu64 "\n", t->parent);
    fputc('\n', r->f);
}

/* Numbers submissions by time. */
static heddle_status number_tasks(struct rec *r)
{
    const struct heddle_log_view *v = &r->log->v;
    struct heddle_pair *p = heddle_zalloc(r->log->a, 2 * v->ntasks, sizeof *p);
    uint32_t order = 0;
    size_t n = 0;

    if (p == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < v->ntasks; i++) {
        const size_t k = r->log->arr.by_id[i]; /* stable: by id at one moment */

        if (v->tasks[k].submit_ns != HEDDLE_LOG_NONE)
            p[n++] = (struct heddle_pair){heddle_time_key(v->tasks[k].submit_ns), k};
    }
    heddle_sort_pairs(p, p + v->ntasks, n);
    for (size_t i = 0; i < n; i++) {
        const bool is_again = i > 0 && v->tasks[p[i].idx].id == v->tasks[p[i - 1].idx].id;

        order += is_again ? 0 : 1;
        r->order[p[i].idx] = order;
    }
    heddle_free(r->log->a, p, 2 * v->ntasks * sizeof *p);
    return HEDDLE_OK;
}

/* Lanes that are workers, and lanes that ran something. */
static void number_lanes(struct rec *r)
{
    const struct heddle_log_view *v = &r->log->v;
    uint32_t n = 0;

    for (size_t i = 0; i < v->ntasks; i++)
        if (v->tasks[i].lane != HEDDLE_LOG_NO_LANE)
            r->worker[v->tasks[i].lane] = 1;
    for (size_t i = 0; i < v->nlanes; i++)
        if (r->worker[i] != 0 || v->lanes[i].kind == HEDDLE_LOG_WORKER ||
            v->lanes[i].kind == HEDDLE_LOG_DEVICE)
            r->worker[i] = n++;
        else
            r->worker[i] = NO_WORKER;
}

static void put_tasks(const struct rec *r)
{
    const struct heddle_log_view *v = &r->log->v;
    const uint32_t *by_id = r->log->arr.by_id;
    size_t best;

    for (size_t i = 0, next; i < v->ntasks; i = next) {
        best = by_id[i];
        for (next = i; next < v->ntasks && v->tasks[by_id[next]].id == v->tasks[best].id; next++)
            if ((v->tasks[by_id[next]].flags & HEDDLE_LOG_GANG) == 0)
                best = by_id[next];
        put_task(r, best);
    }
}

static heddle_status starpu_run(const heddle_log *log, FILE *out, unsigned flags)
{
    const struct heddle_log_view *v = &log->v;
    struct rec r = {.log = log, .f = out};
    heddle_status st = HEDDLE_OK;

    (void)flags; /* a record is a task: there is no state to write */
    if (v->ntasks == 0)
        return HEDDLE_OK;
    r.order = heddle_zalloc(log->a, v->ntasks, sizeof *r.order);
    if (v->nlanes > 0)
        r.worker = heddle_zalloc(log->a, v->nlanes, sizeof *r.worker);
    if (r.order == NULL || (v->nlanes > 0 && r.worker == NULL))
        st = HEDDLE_ENOMEM;
    if (st == HEDDLE_OK)
        st = number_tasks(&r);
    if (st == HEDDLE_OK) {
        number_lanes(&r);
        put_tasks(&r);
    }
    heddle_free(log->a, r.order, v->ntasks * sizeof *r.order);
    heddle_free(log->a, r.worker, v->nlanes * sizeof *r.worker);
    return st;
}

/* ---- the platform ---- */

static void put_node(const struct rec *r, uint32_t id)
{
    const struct heddle_log_view *v = &r->log->v;
    const char *before = "Workers:";
    char name[HEDDLE_SPAN_NAME];
    uint64_t bytes = 0;

    for (size_t i = 0; i < v->nnodes; i++)
        if (v->nodes[i].id == id)
            bytes = v->nodes[i].bytes;
    fprintf(r->f, "MemoryNode: %" PRIu32 "\n", id);
    put_text(r->f, "Name", heddle_span_node(v, id, name, sizeof name));
    fprintf(r->f, "Size: %" PRIu64 "\n", bytes);
    for (size_t i = 0; i < v->nlanes; i++) {
        if (r->worker[i] == NO_WORKER || v->lanes[i].node != id)
            continue;
        fprintf(r->f, "%s %" PRIu32, before, r->worker[i]);
        before = "";
    }
    fputs(before[0] == '\0' ? "\n\n" : "\n", r->f);
}

static heddle_status platform_run(const heddle_log *log, FILE *f, unsigned flags)
{
    const struct heddle_log_view *v = &log->v;
    struct rec r = {.log = log, .f = f};
    struct heddle_spans s;

    HEDDLE_TRY(heddle_spans_init(&s, log, flags));
    fputs("%rec: memory_workers\n\n", f);
    r.worker = heddle_zalloc(log->a, v->nlanes + 1, sizeof *r.worker);
    if (r.worker != NULL) {
        number_lanes(&r);
        for (uint32_t i = 0; i < HEDDLE_SPAN_NODES; i++)
            if ((s.node[i] & HEDDLE_NODE_USED) != 0)
                put_node(&r, i);
    }
    heddle_spans_fini(&s, log);
    heddle_free(log->a, r.worker, (v->nlanes + 1) * sizeof *r.worker);
    return r.worker == NULL ? HEDDLE_ENOMEM : HEDDLE_OK;
}

static const char *const parts[] = {".platform.rec", NULL};
static heddle_export_fn *const run_part[] = {platform_run};

const struct heddle_export_ops heddle_export_starpu = {
    .format =
        {
            .name = "starpu",
            .help = "tasks.rec of StarPU: pmtool, StarVZ, recutils",
            .parts = parts,
        },
    .run = starpu_run,
    .run_part = run_part,
};
