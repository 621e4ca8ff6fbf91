/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * read: the recorded graph as the planner wants it.
 *
 * Values   a task that writes temporaries makes one value, which has a part for each of
 *          them: a kernel writes all that it writes, so nothing is made without the rest.
 * Updates  a task that updates a temporary, or writes a part of it, reads the old value and
 *          makes a new one, in the place of the old one where the planner may do that.
 * Order    kept data have no values. Where two tasks are in order because of kept data, the
 *          first one makes a value of no bytes that the second one reads. The first of two
 *          such tasks runs once: it changes kept data, or reads what the second changes.
 * Private  data of a task (HEDDLE_SCRATCH) are its workspace.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/map.h"
#include "base/mode.h"
#include "planned/planned.h"

struct reading {
    struct planned_source *s;
    struct heddle_map temps;     /* root -> number + 1 */
    struct heddle_map writers;   /* kept root -> its last writer + 1 */
    uint32_t *current;           /* [ntemps] value; NONE */
    struct planned_cover *cover; /* [ntemps] */
    bool *is_awaited;            /* [ntasks] makes a value of no bytes */
    uint32_t *ordered;           /* [ntasks] that value; NONE */
    uint32_t *edge;              /* predecessors because of kept data, by successor */
    uint32_t *first_edge;        /* [ntasks + 1] */
    uint32_t ntouches;
};

static struct heddle_graph_task task_of(const struct planned_source *s, uint32_t task)
{
    struct heddle_graph_task t;

    heddle_graph_get_task(s->g, task, &t);
    return t;
}

/* "3 (gemm)". */
struct label {
    char text[96];
};

static struct label task_label(const struct planned_source *s, uint32_t task)
{
    const struct heddle_graph_task t = task_of(s, task);
    struct label l;

    heddle_why(l.text, sizeof(l.text), HEDDLE_OK, "%u (%.64s)", task,
               t.opts.name != NULL ? t.opts.name : t.kernel->name);
    return l;
}

static struct label temp_label(const struct planned_source *s, uint32_t temp)
{
    const char *name = heddle_handle_get_name(s->temp[temp]);
    struct label l;

    heddle_why(l.text, sizeof(l.text), HEDDLE_OK, name[0] != '\0' ? "%u (%.64s)" : "%u%s", temp,
               name);
    return l;
}

/* --- kept data -------------------------------------------------------------------- */

static uint32_t reading_temp(const struct reading *r, const heddle_handle *h)
{
    const uint64_t *n = heddle_map_find(&r->temps, (uintptr_t)h->root);

    return n == NULL ? PLANNED_NONE : (uint32_t)*n - 1;
}

static bool is_kept(const struct reading *r, const struct heddle_graph_task *t, unsigned i)
{
    return heddle_mode_is_ordered(t->modes[i]) && reading_temp(r, t->operands[i]) == PLANNED_NONE;
}

/* The tasks touch the same kept data, and one of them changes these. */
static bool are_ordered(const struct reading *r, uint32_t pred, uint32_t succ)
{
    const struct heddle_graph_task a = task_of(r->s, pred), b = task_of(r->s, succ);

    for (unsigned i = 0; i < a.noperands; i++)
        for (unsigned k = 0; is_kept(r, &a, i) && k < b.noperands; k++)
            if (heddle_mode_is_ordered(b.modes[k]) && a.operands[i]->root == b.operands[k]->root &&
                (heddle_mode_changes(a.modes[i]) || heddle_mode_changes(b.modes[k])))
                return true;
    return false;
}

static heddle_status find_writers(struct reading *r)
{
    for (uint32_t k = 0; k < r->s->ntasks; k++) {
        const struct heddle_graph_task t = task_of(r->s, k);

        for (unsigned i = 0; i < t.noperands; i++)
            if (is_kept(r, &t, i) && heddle_mode_changes(t.modes[i]))
                HEDDLE_TRY(heddle_map_put(&r->writers, (uintptr_t)t.operands[i]->root, k + 1));
    }
    return HEDDLE_OK;
}

/* Edges come sorted by successor. */
static heddle_status find_order(struct reading *r)
{
    const size_t nedges = heddle_graph_get_nedges(r->s->g);
    uint32_t n = 0, pred, succ, at = 0;

    r->edge = heddle_scratch_get(r->s->mem, nedges + 1, sizeof(*r->edge));
    if (r->edge == NULL)
        return HEDDLE_ENOMEM;
    for (size_t e = 0; e < nedges; e++) {
        heddle_graph_get_edge(r->s->g, e, &pred, &succ);
        while (at <= succ)
            r->first_edge[at++] = n;
        if (!are_ordered(r, pred, succ))
            continue;
        r->edge[n++] = pred;
        r->is_awaited[pred] = true;
    }
    while (at <= r->s->ntasks)
        r->first_edge[at++] = n;
    return HEDDLE_OK;
}

/* It changes kept data, or reads kept data that a later task changes. */
static bool runs_once(const struct reading *r, uint32_t task)
{
    const struct heddle_graph_task t = task_of(r->s, task);

    for (unsigned i = 0; i < t.noperands; i++) {
        const uint64_t *writer;

        if (!is_kept(r, &t, i))
            continue;
        writer = heddle_map_find(&r->writers, (uintptr_t)t.operands[i]->root);
        if (heddle_mode_changes(t.modes[i]) || (writer != NULL && *writer > task + (uint64_t)1))
            return true;
    }
    return false;
}

/* --- temporary data ----------------------------------------------------------------- */

/* What the operands of a task do to one temporary, together. */
struct deed {
    bool reads, changes, is_whole;
};

static heddle_status read_operand(struct reading *r, uint32_t task, const heddle_handle *h,
                                  enum heddle_mode mode, uint32_t temp, struct deed *d)
{
    const struct planned_source *s = r->s;

    if (heddle_mode_reads(mode)) {
        if (!heddle_planned_cover_has(&r->cover[temp], h))
            return PLANNED_FAIL(s->o, HEDDLE_EINVAL,
                                "task %s reads temporary %s, or a part of it, before the graph "
                                "has written that whole",
                                task_label(s, task).text, temp_label(s, temp).text);
        d->reads = true;
    } else if (h->root == h) {
        d->is_whole = true;
    }
    d->changes = d->changes || heddle_mode_changes(mode);
    return HEDDLE_OK;
}

/* One touch for all operands of a task that are temporary `temp`. */
static heddle_status read_touch(struct reading *r, uint32_t task, const struct heddle_graph_task *t,
                                uint32_t temp)
{
    struct planned_touch *touch = &r->s->touch[r->ntouches];
    struct deed d = {.reads = false};

    for (uint32_t i = r->s->first_touch[task]; i < r->ntouches; i++)
        if (r->s->touch[i].temp == temp)
            return HEDDLE_OK;
    for (unsigned i = 0; i < t->noperands; i++)
        if (heddle_mode_is_ordered(t->modes[i]) && reading_temp(r, t->operands[i]) == temp)
            HEDDLE_TRY(read_operand(r, task, t->operands[i], t->modes[i], temp, &d));
    *touch = (struct planned_touch){.temp = temp,
                                    .from = r->current[temp],
                                    .to = PLANNED_NONE,
                                    .is_whole = d.changes && d.is_whole && !d.reads};
    if (touch->is_whole)
        touch->from = PLANNED_NONE;
    if (d.changes)
        touch->to = r->s->nvalues; /* the value that the task is about to make */
    r->ntouches++;
    return HEDDLE_OK;
}

static heddle_status cover_touches(struct reading *r, const struct heddle_graph_task *t,
                                   uint32_t task)
{
    for (uint32_t i = r->s->first_touch[task]; i < r->ntouches; i++)
        if (r->s->touch[i].is_whole)
            heddle_planned_cover_clear(&r->cover[r->s->touch[i].temp]);
    for (unsigned i = 0; i < t->noperands; i++) {
        const uint32_t temp = reading_temp(r, t->operands[i]);

        if (temp != PLANNED_NONE && heddle_mode_changes(t->modes[i]))
            HEDDLE_TRY(heddle_planned_cover_add(&r->cover[temp], t->operands[i], r->s->mem));
    }
    return HEDDLE_OK;
}

/* Inputs are sorted, and each is there once. */
static void add_input(struct planned_source *s, struct heddle_plan_op *op, uint32_t value)
{
    uint32_t i = s->ninputs;

    for (; i > op->first_input && s->input[i - 1] >= value; i--)
        if (s->input[i - 1] == value)
            return;
    memmove(&s->input[i + 1], &s->input[i], (s->ninputs - i) * sizeof(*s->input));
    s->input[i] = value;
    s->ninputs++;
    op->ninputs++;
}

static uint64_t task_work_bytes(const struct heddle_graph_task *t)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < t->noperands; i++)
        if (heddle_mode_is_scratch(t->modes[i]))
            bytes = planned_round(bytes) + t->operands[i]->bytes;
    return bytes;
}

/* Where nothing is known: what a core moves in a second is some 8 GB. */
static double task_seconds(const struct planned_source *s, uint32_t task,
                           const struct heddle_graph_task *t)
{
    double bytes = 0;

    if (s->o->seconds != NULL)
        return s->o->seconds[task];
    for (unsigned i = 0; i < t->noperands; i++)
        bytes += (double)t->operands[i]->bytes;
    return 1e-6 + bytes / 8e9;
}

/* The value that a task makes: its parts one behind another. */
static void make_value(struct reading *r, uint32_t task, struct heddle_plan_op *op)
{
    struct planned_source *s = r->s;
    struct heddle_plan_value *v = &s->value[s->nvalues];
    const struct planned_touch *only = NULL;
    uint32_t n = 0;

    v->op = task;
    for (uint32_t i = s->first_touch[task]; i < r->ntouches; i++) {
        struct planned_touch *t = &s->touch[i];

        if (t->to == PLANNED_NONE)
            continue;
        t->at = planned_round(v->bytes);
        v->bytes = t->at + s->temp[t->temp]->span_bytes;
        r->current[t->temp] = s->nvalues;
        only = t;
        n++;
    }
    if (n == 0)
        return;
    if (n == 1 && only->from != PLANNED_NONE && s->value[only->from].bytes == v->bytes)
        op->inplace = only->from;
    op->nvalues++;
    s->nvalues++;
}

static heddle_status read_task(struct reading *r, uint32_t task)
{
    struct planned_source *s = r->s;
    const struct heddle_graph_task t = task_of(s, task);
    struct heddle_plan_op *op = &s->op[task];

    *op = (struct heddle_plan_op){.name = t.opts.name != NULL ? t.opts.name : t.kernel->name,
                                  .time = task_seconds(s, task, &t),
                                  .work_bytes = task_work_bytes(&t),
                                  .first_value = s->nvalues,
                                  .first_input = s->ninputs,
                                  .inplace = HEDDLE_PLAN_NONE,
                                  .flags = runs_once(r, task) ? HEDDLE_PLAN_ONCE : 0};
    s->first_touch[task] = r->ntouches;
    for (unsigned i = 0; i < t.noperands; i++) {
        const uint32_t temp = reading_temp(r, t.operands[i]);

        if (temp != PLANNED_NONE && heddle_mode_is_ordered(t.modes[i]))
            HEDDLE_TRY(read_touch(r, task, &t, temp));
    }
    s->first_touch[task + 1] = r->ntouches;
    HEDDLE_TRY(cover_touches(r, &t, task));
    for (uint32_t i = s->first_touch[task]; i < r->ntouches; i++)
        if (s->touch[i].from != PLANNED_NONE)
            add_input(s, op, s->touch[i].from);
    for (uint32_t e = r->first_edge[task]; e < r->first_edge[task + 1]; e++)
        add_input(s, op, r->ordered[r->edge[e]]);
    make_value(r, task, op);
    if (r->is_awaited[task]) {
        HEDDLE_ASSERT((op->flags & HEDDLE_PLAN_ONCE) != 0);
        r->ordered[task] = s->nvalues;
        s->value[s->nvalues++].op = task;
        op->nvalues++;
    }
    return HEDDLE_OK;
}

/* --- what the program says ------------------------------------------------------------ */

static heddle_status read_temps(struct reading *r)
{
    struct planned_source *s = r->s;
    const struct heddle_planned_opts *o = s->o;

    for (size_t i = 0; i < o->ntemporaries; i++) {
        heddle_handle *h = o->temporary == NULL ? NULL : o->temporary[i];

        if (h == NULL)
            return PLANNED_FAIL(o, HEDDLE_EINVAL, "temporary %zu is NULL", i);
        if (h->root != h)
            return PLANNED_FAIL(o, HEDDLE_EINVAL,
                                "temporary %zu is a view: name the handle that it is a view of", i);
        s->temp[i] = h;
        r->current[i] = PLANNED_NONE;
        HEDDLE_TRY(heddle_map_put(&r->temps, (uintptr_t)h, i + 1));
    }
    return HEDDLE_OK;
}

static heddle_status read_given(const struct planned_source *s)
{
    const struct heddle_planned_opts *o = s->o;

    if (o->seconds != NULL && o->nseconds != s->ntasks)
        return PLANNED_FAIL(o, HEDDLE_EINVAL, "the graph has %u tasks, and %zu times are given",
                            s->ntasks, o->nseconds);
    for (size_t i = 0; o->seconds != NULL && i < o->nseconds; i++)
        if (!isfinite(o->seconds[i]) || o->seconds[i] < 0)
            return PLANNED_FAIL(o, HEDDLE_EINVAL, "the time of task %zu is not a number >= 0", i);
    for (size_t i = 0; i < o->nonce; i++)
        if (o->once == NULL || o->once[i] >= s->ntasks)
            return PLANNED_FAIL(o, HEDDLE_EINVAL,
                                "entry %zu of the tasks that run once names no task", i);
    return HEDDLE_OK;
}

static heddle_status reading_room(struct reading *r)
{
    struct planned_source *s = r->s;
    const size_t ntasks = s->ntasks, ntemps = s->ntemps;
    size_t noperands = 0;

    for (uint32_t k = 0; k < s->ntasks; k++)
        noperands += task_of(s, k).noperands;
    s->temp = heddle_scratch_get(s->mem, ntemps + 1, sizeof(heddle_handle *));
    s->touch = heddle_scratch_get(s->mem, noperands + 1, sizeof(*s->touch));
    s->first_touch = heddle_scratch_get(s->mem, ntasks + 1, sizeof(*s->first_touch));
    s->op = heddle_scratch_get(s->mem, ntasks + 1, sizeof(*s->op));
    s->value = heddle_scratch_get(s->mem, 2 * ntasks + 1, sizeof(*s->value));
    s->input = heddle_scratch_get(s->mem, noperands + heddle_graph_get_nedges(s->g) + 1,
                                  sizeof(*s->input));
    r->current = heddle_scratch_get(s->mem, ntemps + 1, sizeof(*r->current));
    r->cover = heddle_scratch_get(s->mem, ntemps + 1, sizeof(*r->cover));
    r->is_awaited = heddle_scratch_get(s->mem, ntasks + 1, sizeof(*r->is_awaited));
    r->ordered = heddle_scratch_get(s->mem, ntasks + 1, sizeof(*r->ordered));
    r->first_edge = heddle_scratch_get(s->mem, ntasks + 1, sizeof(*r->first_edge));
    if (s->temp == NULL || s->touch == NULL || s->first_touch == NULL || s->op == NULL ||
        s->value == NULL || s->input == NULL || r->current == NULL || r->cover == NULL ||
        r->is_awaited == NULL || r->ordered == NULL || r->first_edge == NULL)
        return HEDDLE_ENOMEM;
    return HEDDLE_OK;
}

static heddle_status read_all(struct reading *r)
{
    struct planned_source *s = r->s;

    HEDDLE_TRY(read_given(s));
    HEDDLE_TRY(reading_room(r));
    HEDDLE_TRY(read_temps(r));
    HEDDLE_TRY(find_writers(r));
    HEDDLE_TRY(find_order(r));
    for (uint32_t k = 0; k < s->ntasks; k++)
        HEDDLE_TRY(read_task(r, k));
    for (size_t i = 0; i < s->o->nonce; i++)
        s->op[s->o->once[i]].flags |= HEDDLE_PLAN_ONCE;
    return HEDDLE_OK;
}

heddle_status heddle_planned_read(struct planned_source *s)
{
    struct reading r = {.s = s};
    heddle_status st;

    if (heddle_graph_get_ntasks(s->g) > UINT32_MAX / 4 || s->o->ntemporaries > UINT32_MAX / 4)
        return PLANNED_FAIL(s->o, HEDDLE_EOVERFLOW, "the graph is too large");
    s->ntasks = (uint32_t)heddle_graph_get_ntasks(s->g);
    s->ntemps = (uint32_t)s->o->ntemporaries;
    heddle_map_init(&r.temps, s->mem->a);
    heddle_map_init(&r.writers, s->mem->a);
    st = read_all(&r);
    heddle_map_fini(&r.temps);
    heddle_map_fini(&r.writers);
    return st;
}
