/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * from_log: the graph of a run that was logged.
 *
 * Operations   the tasks that ended well, in the order in which they began, with
 *              the time they took; helpers of a gang are left out. Of a task that
 *              ended well several times, because a device was lost or a log was
 *              damaged, the last execution counts: each task is one operation, and
 *              arrays that have room for all accesses of the log have room for all
 *              operations.
 * Values       every time a task writes a handle it makes a new value of the
 *              handle's size; what is read before it is written is there from
 *              the beginning. A task that reads and writes a handle may take
 *              its memory in place.
 * Results      values that no task reads: the log does not say what the program
 *              did with these values.
 * Limits       a handle and a view of it may not both be used: their bytes are
 *              the same, and a value has its own. Times must tell the order: a
 *              task that begins before one it depends on is refused.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/map.h"
#include "base/mode.h"
#include "plan/graph/graph.h"

struct from_log {
    const heddle_log *log;
    const struct heddle_log_view *v;
    const struct heddle_plan_opts *o;
    struct heddle_scratch mem;
    struct heddle_map last; /* id of a task: index of its last good execution */
    struct heddle_plan_op *op;
    struct heddle_plan_value *value;
    uint32_t *input;
    uint32_t *now; /* [nhandles] value in the handle; NONE: not used yet */
    bool *is_read; /* [nvalues] */
    uint32_t nops, nvalues, ninputs;
};

#define BAD(f, ...) HEDDLE_PLAN_FAIL((f)->o, HEDDLE_EINVAL, __VA_ARGS__)

static bool has_ended_well(const struct heddle_log_task *t)
{
    return t->status == HEDDLE_LOG_OK && (t->flags & HEDDLE_LOG_GANG) == 0 &&
           (t->flags & HEDDLE_LOG_EXPANDED) == 0 && t->start_ns != HEDDLE_LOG_NONE &&
           t->end_ns != HEDDLE_LOG_NONE;
}

/* Executions are sorted by their beginnings: the last one of an id stays in the map. */
static heddle_status find_operations(struct from_log *f)
{
    for (size_t i = 0; i < f->v->ntasks; i++)
        if (has_ended_well(&f->v->tasks[i]) &&
            heddle_map_put(&f->last, f->v->tasks[i].id, i) != HEDDLE_OK)
            return HEDDLE_PLAN_FAIL(f->o, HEDDLE_ENOMEM, "no memory for the graph");
    return HEDDLE_OK;
}

static bool is_operation(const struct from_log *f, size_t i)
{
    const uint64_t *last = heddle_map_find(&f->last, f->v->tasks[i].id);

    return last != NULL && *last == i;
}

/* A handle and one of its ancestors must not both have accesses. */
static heddle_status check_views(struct from_log *f)
{
    bool *is_used = heddle_scratch_get(&f->mem, f->v->nhandles, sizeof(*is_used));

    if (is_used == NULL)
        return HEDDLE_PLAN_FAIL(f->o, HEDDLE_ENOMEM, "no memory for the graph");
    for (size_t i = 0; i < f->v->naccesses; i++)
        if (f->v->accesses[i].handle < f->v->nhandles)
            is_used[f->v->accesses[i].handle] = true;
    for (size_t h = 0; h < f->v->nhandles; h++) {
        size_t k = h, up;

        for (unsigned depth = 0; is_used[h] && depth < 64; depth++, k = up) {
            up = f->v->handles[k].parent;
            if (up == k || up >= f->v->nhandles)
                break;
            if (is_used[up])
                return BAD(f,
                           "the run uses '%.64s' and also '%.64s', of which "
                           "it is a view: such a graph cannot be planned",
                           f->v->handles[h].name, f->v->handles[up].name);
        }
    }
    return HEDDLE_OK;
}

static heddle_status init(struct from_log *f)
{
    const size_t nt = f->v->ntasks, na = f->v->naccesses;

    if (nt > UINT32_MAX / 4 || na > UINT32_MAX / 4)
        return BAD(f, "the log has too many tasks for a plan");
    if (f->v->naccesses == 0)
        return BAD(f, "the log has no accesses: it must be of level 1 or more");
    f->op = heddle_scratch_get(&f->mem, nt, sizeof(*f->op));
    f->value = heddle_scratch_get(&f->mem, 2 * na, sizeof(*f->value));
    f->is_read = heddle_scratch_get(&f->mem, 2 * na, sizeof(*f->is_read));
    f->input = heddle_scratch_get(&f->mem, na, sizeof(*f->input));
    f->now = heddle_scratch_get(&f->mem, f->v->nhandles, sizeof(*f->now));
    if (f->op == NULL || f->value == NULL || f->is_read == NULL || f->input == NULL ||
        f->now == NULL)
        return HEDDLE_PLAN_FAIL(f->o, HEDDLE_ENOMEM, "no memory for the graph");
    memset(f->now, 0xff, f->v->nhandles * sizeof(*f->now));
    return HEDDLE_OK;
}

static uint32_t add_value(struct from_log *f, uint32_t handle, uint32_t op)
{
    f->value[f->nvalues] =
        (struct heddle_plan_value){.bytes = f->v->handles[handle].bytes, .op = op};
    return f->nvalues++;
}

/* Inputs of an operation, sorted, each once. */
static void add_input(struct from_log *f, struct heddle_plan_op *op, uint32_t v)
{
    uint32_t *in = &f->input[op->first_input];
    uint32_t k = op->ninputs;

    while (k > 0 && in[k - 1] > v)
        k--;
    if (k > 0 && in[k - 1] == v)
        return;
    memmove(&in[k + 1], &in[k], (op->ninputs - k) * sizeof(*in));
    in[k] = v;
    op->ninputs++;
    f->ninputs++;
    f->is_read[v] = true;
}

static heddle_status read_handles(struct from_log *f, struct heddle_plan_op *op, size_t first,
                                  size_t last)
{
    for (size_t i = first; i < last; i++) {
        const struct heddle_log_access *a = &f->v->accesses[i];
        const enum heddle_mode mode = heddle_mode_of(a->mode);

        if (a->handle >= f->v->nhandles)
            return BAD(f, "the log has an access to an unknown handle");
        if (heddle_mode_is_scratch(mode) &&
            !heddle_add(&op->work_bytes, op->work_bytes, f->v->handles[a->handle].bytes))
            return BAD(f, "a task of the log has too much scratch memory");
        /* Everything but a plain write needs what was there before. */
        if (heddle_mode_overwrites(mode) || !heddle_mode_is_ordered(mode))
            continue;
        if (f->now[a->handle] == HEDDLE_PLAN_NONE)
            f->now[a->handle] = add_value(f, a->handle, HEDDLE_PLAN_NONE);
        add_input(f, op, f->now[a->handle]);
    }
    return HEDDLE_OK;
}

static heddle_status write_handles(struct from_log *f, uint32_t id, size_t first, size_t last)
{
    struct heddle_plan_op *op = &f->op[id];

    op->first_value = f->nvalues;
    op->inplace = HEDDLE_PLAN_NONE;
    for (size_t i = first; i < last; i++) {
        const struct heddle_log_access *a = &f->v->accesses[i];
        const enum heddle_mode mode = heddle_mode_of(a->mode);
        const uint32_t old = f->now[a->handle];

        if (!heddle_mode_changes(mode))
            continue;
        if (old != HEDDLE_PLAN_NONE && f->value[old].op == id)
            continue; /* the same handle twice */
        if (op->nvalues == 64)
            return BAD(f, "a task of the log writes more than 64 handles");
        if (op->nvalues == 0 && !heddle_mode_overwrites(mode))
            op->inplace = old;
        f->now[a->handle] = add_value(f, a->handle, id);
        op->nvalues++;
    }
    return HEDDLE_OK;
}

static heddle_status add_task(struct from_log *f, size_t i)
{
    const struct heddle_log_task *t = &f->v->tasks[i];
    const uint32_t id = f->nops++;
    struct heddle_plan_op *op = &f->op[id];
    size_t first = 0, last = 0;

    *op = (struct heddle_plan_op){.first_input = f->ninputs, .inplace = HEDDLE_PLAN_NONE};
    op->time = (double)(t->end_ns - t->start_ns);
    op->name = t->name;
    if (op->name == NULL && t->kernel < f->v->nkernels)
        op->name = f->v->kernels[t->kernel].name;
    heddle_log_find_accesses(f->log, t->id, &first, &last);
    HEDDLE_TRY(read_handles(f, op, first, last));
    return write_handles(f, id, first, last);
}

static const char *program(const struct heddle_log_view *v)
{
    for (size_t i = 0; i < v->ninfos; i++)
        if (strcmp(v->infos[i].key, "program") == 0)
            return v->infos[i].value;
    return "run";
}

/* The order of beginnings must be one in which the tasks can run: with clocks as
 * coarse as a task is short it may not be. */
static heddle_status check_order(struct from_log *f)
{
    for (size_t i = 0; i < f->v->ndeps; i++) {
        uint64_t pred = 0, succ = 0;

        if (heddle_map_get(&f->last, f->v->deps[i].pred, &pred) &&
            heddle_map_get(&f->last, f->v->deps[i].succ, &succ) && pred > succ)
            return BAD(f,
                       "task %llu of the log begins before task %llu, on "
                       "which it depends",
                       (unsigned long long)f->v->deps[i].succ,
                       (unsigned long long)f->v->deps[i].pred);
    }
    return HEDDLE_OK;
}

static heddle_status build(struct from_log *f, struct heddle_plan_graph **out)
{
    struct heddle_plan_graph d;

    HEDDLE_TRY(find_operations(f));
    HEDDLE_TRY(check_order(f));
    HEDDLE_TRY(init(f));
    HEDDLE_TRY(check_views(f));
    for (size_t i = 0; i < f->v->ntasks; i++)
        if (is_operation(f, i))
            HEDDLE_TRY(add_task(f, i));
    for (uint32_t v = 0; v < f->nvalues; v++)
        if (!f->is_read[v] && f->value[v].op != HEDDLE_PLAN_NONE)
            f->value[v].flags |= HEDDLE_PLAN_RESULT;
    if (f->nops == 0)
        return BAD(f, "the log has no task that ended well");
    d = (struct heddle_plan_graph){.size = sizeof(d),
                                   .name = program(f->v),
                                   .nops = f->nops,
                                   .nvalues = f->nvalues,
                                   .ninputs = f->ninputs,
                                   .ops = f->op,
                                   .values = f->value,
                                   .inputs = f->input,
                                   .unit_s = 1e-9};
    return heddle_plan_graph_create(&d, f->o, out);
}

heddle_status heddle_plan_graph_from_log(const heddle_log *log, const struct heddle_plan_opts *opts,
                                         struct heddle_plan_graph **out)
{
    struct heddle_plan_opts o;
    struct from_log f = {.log = log, .o = &o};
    heddle_status st;

    HEDDLE_TRY(heddle_plan_opts_get(opts, &o));
    if (log == NULL || out == NULL)
        return HEDDLE_PLAN_FAIL(&o, HEDDLE_EINVAL, "there is no log");
    f.v = heddle_log_get_view(log);
    f.mem = heddle_scratch_make(o.alloc);
    heddle_map_init(&f.last, o.alloc);
    st = build(&f, out);
    heddle_map_fini(&f.last);
    heddle_scratch_drop(&f.mem);
    return st;
}
