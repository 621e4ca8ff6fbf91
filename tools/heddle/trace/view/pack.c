/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace/view/pack: a log becomes columns.
 *
 * Purpose    the page wants arrays of numbers, sorted the way it draws them,
 *            with indices instead of ids and small times.
 * Structure  tasks get an index in order of their ids; rows of the log get the
 *            index of their task and, if they ran, of their run. Then one
 *            function per table fills its columns.
 * Invariants (1) every index in a column is below the length of what it points
 *                into, or VIEW_NONE
 *            (2) runs and gaps are sorted by lane, then by start
 *            (3) a column that would hold nothing but its default is left out
 * Cost       linear in the log, but for ids that are far apart (sorting).
 */
#include "trace/view/build.h"

#include <math.h>
#include <string.h>

#include "base/assert.h"

/* --- times and indices ---------------------------------------------------- */

uint32_t view_time(const struct view_build *b, int64_t t)
{
    uint64_t d;

    if (t == HEDDLE_LOG_NONE)
        return VIEW_NONE;
    d = t <= b->first_ns ? 0 : (uint64_t)(t - b->first_ns) >> b->shift;
    return d < VIEW_NONE ? (uint32_t)d : VIEW_NONE - 1;
}

static size_t find_id(const uint64_t *ids, size_t n, uint64_t id)
{
    size_t lo = 0, hi = n;

    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;

        if (ids[mid] < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

uint32_t view_task(const struct view_build *b, uint64_t id)
{
    size_t i;

    if (b->dense != NULL)
        return id - b->id_min < b->nids ? b->dense[id - b->id_min] : VIEW_NONE;
    i = find_id(b->ids, b->p->ntasks, id);
    return i < b->p->ntasks && b->ids[i] == id ? (uint32_t)i : VIEW_NONE;
}

/* Least significant digit first; `tmp` has n entries too. */
static void sort_ids(uint64_t *p, uint64_t *tmp, size_t n)
{
    for (unsigned d = 0; d < 64; d += 8) {
        size_t count[257] = {0};

        for (size_t i = 0; i < n; i++)
            count[(p[i] >> d & 255) + 1]++;
        if (count[(p[0] >> d & 255) + 1] == n)
            continue;
        for (unsigned k = 0; k < 256; k++)
            count[k + 1] += count[k];
        for (size_t i = 0; i < n; i++)
            tmp[count[p[i] >> d & 255]++] = p[i];
        memcpy(p, tmp, n * sizeof *p);
    }
}

/* Ids that lie close together: a table. */
static void index_dense(struct view_build *b)
{
    const struct heddle_log_view *v = b->v;
    uint32_t n = 0;

    b->dense = heddle_zalloc(b->p->a, b->nids, sizeof *b->dense);
    if (b->dense == NULL) {
        b->st = HEDDLE_ENOMEM;
        return;
    }
    for (size_t i = 0; i < v->ntasks; i++)
        b->dense[v->tasks[i].id - b->id_min] = 1;
    for (size_t i = 0; i < b->nids; i++)
        b->dense[i] = b->dense[i] != 0 ? n++ : VIEW_NONE;
    b->p->ntasks = n;
}

static void index_sorted(struct view_build *b)
{
    const struct heddle_log_view *v = b->v;
    const size_t bytes = v->ntasks * sizeof *b->ids;
    uint64_t *tmp = heddle_alloc(b->p->a, bytes);
    size_t n = 0;

    b->ids = heddle_alloc(b->p->a, bytes);
    if (tmp != NULL && b->ids != NULL) {
        for (size_t i = 0; i < v->ntasks; i++)
            b->ids[i] = v->tasks[i].id;
        sort_ids(b->ids, tmp, v->ntasks);
        for (size_t i = 0; i < v->ntasks; i++)
            if (i == 0 || b->ids[i] != b->ids[n - 1])
                b->ids[n++] = b->ids[i];
        b->p->ntasks = n;
    } else {
        b->st = HEDDLE_ENOMEM;
    }
    heddle_free(b->p->a, tmp, bytes);
}

/* Indices of tasks, of rows, and room for the lanes. */
static void index_rows(struct view_build *b)
{
    const struct heddle_log_view *v = b->v;
    uint64_t min = UINT64_MAX, max = 0;

    if (v->ntasks == 0)
        return;
    for (size_t i = 0; i < v->ntasks; i++) {
        min = v->tasks[i].id < min ? v->tasks[i].id : min;
        max = v->tasks[i].id > max ? v->tasks[i].id : max;
    }
    b->id_min = min;
    b->row_task = heddle_alloc_large(b->p->a, v->ntasks * sizeof *b->row_task);
    b->row_run = heddle_alloc_large(b->p->a, v->ntasks * sizeof *b->row_run);
    if (b->row_task == NULL || b->row_run == NULL) {
        b->st = HEDDLE_ENOMEM;
        return;
    }
    b->nids = max - min < 4 * (uint64_t)v->ntasks + 1024 ? max - min + 1 : 0;
    if (b->nids > 0)
        index_dense(b);
    else
        index_sorted(b);
    for (size_t i = 0; i < v->ntasks && b->st == HEDDLE_OK; i++)
        b->row_task[i] = view_task(b, v->tasks[i].id);
}

/* --- text ----------------------------------------------------------------- */

uint32_t view_text(struct view_build *b, const char *s)
{
    const size_t n = s == NULL ? 0 : strlen(s) + 1;
    uint64_t at;
    char *grown;
    size_t cap;

    if (s == NULL || b->st != HEDDLE_OK)
        return VIEW_NONE;
    if (heddle_map_get(&b->texts, (uint64_t)(uintptr_t)s, &at))
        return (uint32_t)at;
    if (b->text_len + n >= VIEW_NONE)
        return VIEW_NONE;
    if (b->text_len + n > b->text_cap) {
        cap = 2 * (b->text_len + n);
        grown = heddle_alloc(b->p->a, cap);
        if (grown == NULL) {
            b->st = HEDDLE_ENOMEM;
            return VIEW_NONE;
        }
        if (b->text_len > 0)
            memcpy(grown, b->text, b->text_len);
        heddle_free(b->p->a, b->text, b->text_cap);
        b->text = grown;
        b->text_cap = cap;
    }
    at = b->text_len;
    memcpy(b->text + at, s, n);
    b->text_len += n;
    b->st = heddle_map_put(&b->texts, (uint64_t)(uintptr_t)s, at);
    return (uint32_t)at;
}

static void put_text(struct view_build *b)
{
    char *text = view_add(b, "text", VIEW_U8, b->text_len, false);

    if (text != NULL)
        memcpy(text, b->text, b->text_len);
}

/* --- runs and tasks ------------------------------------------------------- */

static void count_runs(struct view_build *b)
{
    const struct heddle_log_view *v = b->v;
    struct view_pack *p = b->p;
    uint32_t n = 0;

    for (size_t i = 0; i < v->ntasks; i++)
        if (v->tasks[i].lane != HEDDLE_LOG_NO_LANE)
            p->lane[v->tasks[i].lane].n++;
    for (size_t l = 0; l < p->nlanes; l++) {
        p->lane[l].first = n;
        n += p->lane[l].n;
        p->lane[l].n = 0;
    }
    p->nruns = n;
    for (size_t i = 0; i < v->ntasks; i++) {
        struct view_lane *l;

        b->row_run[i] = VIEW_NONE;
        if (v->tasks[i].lane == HEDDLE_LOG_NO_LANE)
            continue;
        l = &p->lane[v->tasks[i].lane];
        b->row_run[i] = l->first + l->n++;
    }
}

static void put_runs(struct view_build *b)
{
    const struct heddle_log_view *v = b->v;
    uint32_t *start, *dur, *task;
    uint16_t *kernel;
    uint8_t *status, *flags;
    size_t n;

    if (b->st != HEDDLE_OK)
        return;
    count_runs(b);
    n = b->p->nruns;
    start = view_add(b, "run_start", VIEW_U32, n, true);
    dur = view_add(b, "run_dur", VIEW_U32, n, false);
    task = view_add(b, "run_task", VIEW_U32, n, true);
    kernel = view_add(b, "run_kernel", VIEW_U16, n, false);
    status = view_add(b, "run_status", VIEW_U8, n, false);
    flags = view_add(b, "run_flags", VIEW_U8, n, false);
    if (flags == NULL)
        return;
    for (size_t i = 0; i < v->ntasks; i++) {
        const struct heddle_log_task *t = &v->tasks[i];
        const uint32_t r = b->row_run[i];

        if (r == VIEW_NONE)
            continue;
        start[r] = view_time(b, t->start_ns);
        dur[r] = view_time(b, t->end_ns) - start[r];
        task[r] = b->row_task[i];
        kernel[r] = t->kernel < UINT16_MAX ? (uint16_t)t->kernel : UINT16_MAX;
        status[r] = t->status;
        flags[r] = t->flags;
    }
    view_drop(b, status, 0);
    view_drop(b, flags, 0);
}

/* Which of two executions stands for the task: one that ended well, not the
 * helper of a gang; among failures the last. */
static bool is_better(const struct heddle_log_task *t, const struct heddle_log_task *old)
{
    const bool is_ok = t->status == HEDDLE_LOG_OK;
    const bool was_ok = old->status == HEDDLE_LOG_OK;
    const bool is_helper = (t->flags & HEDDLE_LOG_GANG) != 0;
    const bool was_helper = (old->flags & HEDDLE_LOG_GANG) != 0;

    if (is_ok != was_ok)
        return is_ok;
    if (is_helper != was_helper)
        return was_helper;
    return !is_ok;
}

/* Row that stands for each task. */
static uint32_t *main_rows(struct view_build *b)
{
    const struct heddle_log_view *v = b->v;
    uint32_t *row = NULL;

    if (b->st == HEDDLE_OK && b->p->ntasks > 0) {
        row = heddle_alloc_large(b->p->a, b->p->ntasks * sizeof *row);
        b->st = row == NULL ? HEDDLE_ENOMEM : HEDDLE_OK;
    }
    if (row == NULL)
        return NULL;
    memset(row, 0xff, b->p->ntasks * sizeof *row);
    for (size_t i = 0; i < v->ntasks; i++) {
        uint32_t *r = &row[b->row_task[i]];

        if (*r == VIEW_NONE || is_better(&v->tasks[i], &v->tasks[*r]))
            *r = (uint32_t)i;
    }
    return row;
}

static void put_times(struct view_build *b, const uint32_t *row)
{
    const size_t n = b->p->ntasks;
    uint32_t *submit = view_add(b, "task_submit", VIEW_U32, n, true);
    uint32_t *ready = view_add(b, "task_ready", VIEW_U32, n, true);
    uint32_t *pred = view_add(b, "task_pred", VIEW_U32, n, false);

    if (pred == NULL)
        return;
    for (size_t i = 0; i < n; i++) {
        const struct heddle_log_task *t = &b->v->tasks[row[i]];
        const double p = (double)t->predicted_ns / (double)b->p->unit_ns;

        submit[i] = view_time(b, t->submit_ns);
        ready[i] = view_time(b, t->ready_ns);
        pred[i] = !(t->predicted_ns > 0) ? VIEW_NONE : p < 4e9 ? (uint32_t)p : VIEW_NONE - 1;
    }
    view_drop(b, submit, VIEW_NONE);
    view_drop(b, ready, VIEW_NONE);
    view_drop(b, pred, VIEW_NONE);
}

static void put_facts(struct view_build *b, const uint32_t *row)
{
    const size_t n = b->p->ntasks;
    uint32_t *name = view_add(b, "task_name", VIEW_U32, n, true);
    uint32_t *parent = view_add(b, "task_parent", VIEW_U32, n, true);
    int32_t *prio = view_add(b, "task_prio", VIEW_I32, n, true);
    uint8_t *wait = view_add(b, "task_wait", VIEW_U8, n, false);

    if (wait == NULL)
        return;
    for (size_t i = 0; i < n; i++) {
        const struct heddle_log_task *t = &b->v->tasks[row[i]];

        name[i] = view_text(b, t->name);
        parent[i] = t->parent != 0 ? view_task(b, t->parent) : VIEW_NONE;
        prio[i] = t->priority;
        wait[i] = row[i] < b->x->ntasks ? b->x->wait[row[i]] : HEDDLE_CAUSE_UNKNOWN;
    }
    view_drop(b, name, VIEW_NONE);
    view_drop(b, parent, VIEW_NONE);
    view_drop(b, prio, 0);
    view_drop(b, wait, HEDDLE_CAUSE_UNKNOWN);
}

static void put_tasks(struct view_build *b)
{
    const size_t n = b->p->ntasks;
    uint32_t *row = main_rows(b);
    uint32_t *id = view_add(b, "task_id", VIEW_U32, n, true);
    uint32_t *run = view_add(b, "task_run", VIEW_U32, n, true);

    if (run != NULL) {
        for (size_t i = 0; i < n; i++) {
            id[i] = (uint32_t)b->v->tasks[row[i]].id;
            run[i] = b->row_run[row[i]];
        }
        put_times(b, row);
        put_facts(b, row);
    }
    heddle_free(b->p->a, row, n * sizeof *row);
}

/* --- the graph ------------------------------------------------------------ */

static void put_edges(struct view_build *b)
{
    const struct heddle_log_view *v = b->v;
    const size_t n = b->p->ntasks;
    uint32_t *off, *pred, task, from;
    size_t nedges = 0, k = 0, at = 0;

    for (size_t i = 0; i < v->ndeps; i++)
        nedges += view_task(b, v->deps[i].succ) != VIEW_NONE &&
                  view_task(b, v->deps[i].pred) != VIEW_NONE;
    b->p->nedges = nedges;
    off = nedges == 0 ? NULL : view_add(b, "edge_off", VIEW_U32, n + 1, true);
    pred = view_add(b, "edge_pred", VIEW_U32, nedges, true);
    if (pred == NULL)
        return;
    for (size_t i = 0; i < v->ndeps; i++) {
        task = view_task(b, v->deps[i].succ);
        from = view_task(b, v->deps[i].pred);
        if (task == VIEW_NONE || from == VIEW_NONE)
            continue;
        while (at <= task)
            off[at++] = (uint32_t)k;
        pred[k++] = from;
    }
    while (at <= n)
        off[at++] = (uint32_t)k;
}

static void put_operands(struct view_build *b)
{
    const struct heddle_log_view *v = b->v;
    const size_t n = b->p->ntasks;
    uint32_t *off, *handle, task;
    uint8_t *mode;
    size_t nops = 0, k = 0, at = 0;

    for (size_t i = 0; i < v->naccesses; i++)
        nops += view_task(b, v->accesses[i].task) != VIEW_NONE;
    off = nops == 0 ? NULL : view_add(b, "op_off", VIEW_U32, n + 1, true);
    handle = view_add(b, "op_handle", VIEW_U32, nops, false);
    mode = view_add(b, "op_mode", VIEW_U8, nops, false);
    if (mode == NULL)
        return;
    for (size_t i = 0; i < v->naccesses; i++) {
        task = view_task(b, v->accesses[i].task);
        if (task == VIEW_NONE)
            continue;
        while (at <= task)
            off[at++] = (uint32_t)k;
        handle[k] = v->accesses[i].handle;
        mode[k++] = v->accesses[i].mode;
    }
    while (at <= n)
        off[at++] = (uint32_t)k;
}

static void put_handles(struct view_build *b)
{
    const struct heddle_log_view *v = b->v;
    const size_t n = v->nhandles;
    uint32_t *name = view_add(b, "handle_name", VIEW_U32, n, true);
    uint32_t *parent = view_add(b, "handle_parent", VIEW_U32, n, true);
    double *bytes = view_add(b, "handle_bytes", VIEW_F64, n, false);

    if (bytes == NULL)
        return;
    for (size_t i = 0; i < n; i++) {
        const struct heddle_log_handle *h = &v->handles[i];

        name[i] = view_text(b, h->name);
        parent[i] = h->parent != i && h->parent < n ? h->parent : VIEW_NONE;
        bytes[i] = (double)h->bytes;
    }
    view_drop(b, parent, VIEW_NONE);
}

/* --- the whole ------------------------------------------------------------ */

static void build_fini(struct view_build *b)
{
    const struct heddle_allocator *a = b->p->a;

    heddle_free(a, b->dense, b->nids * sizeof *b->dense);
    heddle_free(a, b->ids, b->v->ntasks * sizeof *b->ids);
    heddle_free(a, b->row_task, b->v->ntasks * sizeof *b->row_task);
    heddle_free(a, b->row_run, b->v->ntasks * sizeof *b->row_run);
    heddle_free(a, b->text, b->text_cap);
    heddle_map_fini(&b->texts);
}

static void build(struct view_build *b, bool is_quick)
{
    struct view_pack *p = b->p;

    p->nlanes = b->v->nlanes;
    if (p->nlanes > 0) {
        p->lane = heddle_zalloc(p->a, p->nlanes, sizeof *p->lane);
        b->st = p->lane == NULL ? HEDDLE_ENOMEM : HEDDLE_OK;
        p->nlanes = p->lane == NULL ? 0 : p->nlanes;
    }
    if (b->st == HEDDLE_OK)
        index_rows(b);
    put_runs(b);
    put_tasks(b);
    put_edges(b);
    put_operands(b);
    put_handles(b);
    view_put_gaps(b);
    view_put_chains(b);
    view_put_transfers(b);
    view_put_marks(b);
    if (!is_quick)
        view_put_curves(b);
    put_text(b);
}

heddle_status view_pack_create(const heddle_log *log, const struct view_opts *o,
                               struct view_pack **out)
{
    const struct heddle_allocator *a = o->allocator;
    struct view_build b = {.v = heddle_log_get_view(log), .log = log};
    struct heddle_explain *x = NULL;

    b.p = heddle_zalloc(a, 1, sizeof *b.p);
    if (b.p == NULL)
        return HEDDLE_ENOMEM;
    b.p->a = a;
    b.p->nrefs = 1;
    b.p->is_packed = o->is_packed;
    b.p->generation = o->generation;
    heddle_map_init(&b.texts, a);
    b.st = o->is_quick ? view_sketch_create(log, a, &x) : heddle_explain_create(log, a, &x);
    if (b.st == HEDDLE_OK) {
        b.x = x;
        b.first_ns = x->first_ns;
        while (x->makespan_ns >> b.shift >= INT64_C(1) << 31)
            b.shift++;
        b.p->unit_ns = UINT64_C(1) << b.shift;
        build(&b, o->is_quick);
    }
    build_fini(&b);
    if (b.st == HEDDLE_OK)
        b.st = view_dir_create(b.p, log, x, o);
    if (o->is_quick)
        view_sketch_destroy(x, a);
    else
        heddle_explain_destroy(x);
    if (b.st == HEDDLE_OK)
        *out = b.p;
    else
        view_pack_unref(b.p);
    return b.st;
}
