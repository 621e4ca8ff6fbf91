/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compose: writes a log from rows.
 *
 * Purpose    logs of what was not recorded: traces of other runtimes,
 *            schedules that were computed.
 * Structure  checks all rows, then records them with the functions the runtime
 *            uses, on a clock whose ticks are nanoseconds. What a program
 *            submits goes to the first submitter's lane, or to lane 0.
 * Invariants (1) ticks are not negative: time 0 is the tick `zero`
 *            (2) a submission and a name are written once per task, with the
 *                first of its rows
 * Errors     a record or definition that was dropped is an error here.
 */
#include "heddle/compose.h"

#include <inttypes.h>

#include "base/assert.h"
#include "base/sized.h"
#include "base/why.h"
#include "trace/store.h"

#define TIME_LIMIT  (INT64_C(1) << 52) /* a double holds twice that exactly */
#define LANES_LIMIT (UINT32_C(1) << 16)
#define MANY_LANES  64 /* more: chunks are smaller */
#define SMALL_CHUNK 4096

struct compose {
    const struct heddle_log_view *v;
    const struct heddle_allocator *a;
    char *why;
    size_t why_bytes;
    struct heddle_trace *tr;
    struct heddle_trace_lane *submitter;
    struct heddle_map seen; /* ids of tasks whose submission is written */
    uint64_t zero;
};

/* ---- checks ---- */

static bool is_time(int64_t t)
{
    return t > -TIME_LIMIT && t < TIME_LIMIT;
}

static bool is_time_or_none(int64_t t)
{
    return t == HEDDLE_LOG_NONE || is_time(t);
}

static bool is_run(const struct heddle_log_task *t)
{
    return t->lane != HEDDLE_LOG_NO_LANE;
}

static heddle_status refuse(const struct compose *c, const char *what, size_t i, const char *how)
{
    return heddle_why(c->why, c->why_bytes, HEDDLE_EINVAL, "Row %zu of %s %s.", i, what, how);
}

static heddle_status check_tasks(const struct compose *c)
{
    const struct heddle_log_view *v = c->v;

    for (size_t i = 0; i < v->ntasks; i++) {
        const struct heddle_log_task *t = &v->tasks[i];

        if (t->kernel >= v->nkernels)
            return refuse(c, "tasks", i, "has a kernel that is not there");
        if (is_run(t) && t->lane >= v->nlanes)
            return refuse(c, "tasks", i, "has a lane that is not there");
        if (!is_time_or_none(t->submit_ns) || !is_time_or_none(t->ready_ns))
            return refuse(c, "tasks", i, "has a time out of range");
        if (!is_run(t))
            continue;
        if (!is_time(t->start_ns) || !is_time(t->end_ns) || t->end_ns < t->start_ns)
            return refuse(c, "tasks", i, "has no valid start and end");
        if (t->status > HEDDLE_LOG_DECLINED)
            return refuse(c, "tasks", i, "ran and has no status of an end");
    }
    return HEDDLE_OK;
}

static heddle_status check_rest(const struct compose *c)
{
    const struct heddle_log_view *v = c->v;

    for (size_t i = 0; i < v->nkernels; i++)
        if (v->kernels[i].nvariants > 0 && v->kernels[i].variants == NULL)
            return refuse(c, "kernels", i, "has no variants");
    for (size_t i = 0; i < v->nlinks; i++)
        if (v->links[i].from >= v->nnodes || v->links[i].to >= v->nnodes)
            return refuse(c, "links", i, "has a node that is not there");
    for (size_t i = 0; i < v->naccesses; i++)
        if (v->accesses[i].handle >= v->nhandles)
            return refuse(c, "accesses", i, "has a handle that is not there");
    for (size_t i = 0; i < v->nhandles; i++)
        if (v->handles[i].parent >= v->nhandles || v->handles[i].ndims > HEDDLE_LOG_MAX_DIMS)
            return refuse(c, "handles", i, "has a wrong parent or dimensions");
    for (size_t i = 0; i < v->nstates; i++)
        if (v->states[i].lane >= v->nlanes || !is_time(v->states[i].start_ns))
            return refuse(c, "states", i, "has a wrong lane or time");
    for (size_t i = 0; i < v->nmarks; i++)
        if (v->marks[i].lane >= v->nlanes || !is_time(v->marks[i].t_ns) || v->marks[i].text == NULL)
            return refuse(c, "marks", i, "has a wrong lane, time or text");
    for (size_t i = 0; i < v->nevents; i++) {
        const struct heddle_log_event *e = &v->events[i];

        if (e->lane >= v->nlanes || !is_time(e->t_ns) || e->y_ns < 0 || e->z_ns < 0 ||
            !is_time(e->y_ns) || !is_time(e->z_ns))
            return refuse(c, "events", i, "has a wrong lane or time");
    }
    return HEDDLE_OK;
}

/* `ids` are 32-bit numbers, `stride` bytes apart. */
static heddle_status check_ids(const struct compose *c, const char *what, const uint32_t *ids,
                               size_t stride, size_t n)
{
    heddle_status st = HEDDLE_OK;
    struct heddle_map m;
    uint64_t *place;

    heddle_map_init(&m, c->a);
    for (size_t i = 0; i < n && st == HEDDLE_OK; i++) {
        const uint32_t *id = (const uint32_t *)(const void *)((const char *)ids + i * stride);

        st = heddle_map_slot(&m, *id, &place);
        if (st == HEDDLE_OK && (*place)++ != 0)
            st = refuse(c, what, i, "has the id of another row");
    }
    heddle_map_fini(&m);
    return st;
}

static bool is_array(const void *p, size_t n)
{
    return n == 0 || (p != NULL && n < UINT32_MAX);
}

static heddle_status check_view(const struct compose *c)
{
    const struct heddle_log_view *v = c->v;

    if (!is_array(v->tasks, v->ntasks) || !is_array(v->deps, v->ndeps) ||
        !is_array(v->accesses, v->naccesses) || !is_array(v->states, v->nstates) ||
        !is_array(v->marks, v->nmarks) || !is_array(v->attrs, v->nattrs) ||
        !is_array(v->events, v->nevents) || !is_array(v->kernels, v->nkernels) ||
        !is_array(v->lanes, v->nlanes) || !is_array(v->handles, v->nhandles) ||
        !is_array(v->nodes, v->nnodes) || !is_array(v->infos, v->ninfos) ||
        !is_array(v->links, v->nlinks))
        return heddle_why(c->why, c->why_bytes, HEDDLE_EINVAL,
                          "An array of the view is missing or too long.");
    if (v->nlanes > LANES_LIMIT)
        return heddle_why(c->why, c->why_bytes, HEDDLE_EINVAL,
                          "A log of %zu lanes cannot be written; %" PRIu32 " are possible.",
                          v->nlanes, LANES_LIMIT);
    if (v->nkernels > 0)
        HEDDLE_TRY(check_ids(c, "kernels", &v->kernels[0].id, sizeof *v->kernels, v->nkernels));
    if (v->nhandles > 0)
        HEDDLE_TRY(check_ids(c, "handles", &v->handles[0].id, sizeof *v->handles, v->nhandles));
    if (v->nnodes > 0)
        HEDDLE_TRY(check_ids(c, "nodes", &v->nodes[0].id, sizeof *v->nodes, v->nnodes));
    HEDDLE_TRY(check_tasks(c));
    return check_rest(c);
}

/* ---- times ---- */

static void earlier(int64_t *first, int64_t t)
{
    if (t < *first)
        *first = t;
}

/* Invariant (1). HEDDLE_LOG_NONE is later than everything. */
static uint64_t find_zero(const struct heddle_log_view *v)
{
    int64_t first = 0;

    for (size_t i = 0; i < v->ntasks; i++) {
        const struct heddle_log_task *t = &v->tasks[i];

        earlier(&first, t->submit_ns);
        earlier(&first, t->ready_ns);
        if (is_run(t))
            earlier(&first, t->start_ns);
    }
    for (size_t i = 0; i < v->nstates; i++)
        earlier(&first, v->states[i].start_ns);
    for (size_t i = 0; i < v->nmarks; i++)
        earlier(&first, v->marks[i].t_ns);
    for (size_t i = 0; i < v->nevents; i++)
        earlier(&first, v->events[i].t_ns);
    return (uint64_t)-first;
}

static uint64_t tick(const struct compose *c, int64_t t_ns)
{
    return c->zero + (uint64_t)t_ns;
}

/* ---- writing ---- */

static void put_handle(const struct compose *c, const struct heddle_log_handle *h)
{
    const struct heddle_trace_handle d = {
        .id = h->id,
        .parent = c->v->handles[h->parent].id,
        .name = h->name,
        .bytes = h->bytes,
        .elem_bytes = h->elem_bytes,
        .node = h->node,
        .ndims = h->ndims,
        .shape = h->shape,
        .offset = h->offset,
        .step = h->step,
    };

    heddle_trace_define_handle(c->tr, &d);
}

static void put_link(const struct compose *c, const struct heddle_log_link *l)
{
    const struct heddle_trace_link d = {
        .from = c->v->nodes[l->from].id,
        .to = c->v->nodes[l->to].id,
        .bytes_per_s = l->bytes_per_s,
        .latency_ns = l->latency_ns,
        .name = l->name,
    };

    heddle_trace_define_link(c->tr, &d);
}

static void put_definitions(struct compose *c)
{
    const struct heddle_log_view *v = c->v;
    struct heddle_trace *tr = c->tr;

    for (size_t i = 0; i < v->ninfos; i++)
        heddle_trace_define_info(tr, v->infos[i].key, v->infos[i].value);
    for (uint32_t i = 0; i < v->nlanes; i++)
        heddle_trace_define_lane(tr, i, (enum heddle_log_lane_kind)v->lanes[i].kind,
                                 v->lanes[i].name, v->lanes[i].cpu, v->lanes[i].node);
    for (size_t i = 0; i < v->nnodes; i++)
        heddle_trace_define_node(tr, v->nodes[i].id, v->nodes[i].kind, v->nodes[i].name,
                                 v->nodes[i].bytes);
    for (size_t i = 0; i < v->nlinks; i++)
        put_link(c, &v->links[i]);
    for (size_t i = 0; i < v->nkernels; i++)
        heddle_trace_define_kernel(tr, v->kernels[i].id, v->kernels[i].name, v->kernels[i].variants,
                                   v->kernels[i].nvariants);
    for (size_t i = 0; i < v->nhandles; i++)
        put_handle(c, &v->handles[i]);
}

static void put_submission(struct compose *c, const struct heddle_log_task *t)
{
    int64_t at = t->submit_ns;

    if (at == HEDDLE_LOG_NONE) {
        if (is_run(t) && t->parent == 0 && t->priority == 0 && !(t->predicted_ns > 0.0f))
            return;
        at = t->ready_ns;
        if (at == HEDDLE_LOG_NONE)
            at = is_run(t) ? t->start_ns : 0;
    }
    heddle_trace_submit(c->submitter, t->id, c->v->kernels[t->kernel].id, t->priority, tick(c, at),
                        t->predicted_ns, t->parent);
}

static void put_execution(struct compose *c, const struct heddle_log_task *t)
{
    struct heddle_trace_lane *l = c->submitter;
    int64_t delay = 0;

    if (is_run(t)) {
        l = heddle_trace_get_lane(c->tr, t->lane);
        if (t->ready_ns != HEDDLE_LOG_NONE && t->ready_ns < t->start_ns &&
            t->start_ns - t->ready_ns <= UINT32_MAX)
            delay = t->start_ns - t->ready_ns;
        heddle_trace_task(l, t->id, c->v->kernels[t->kernel].id, t->variant,
                          (uint8_t)(t->status | (t->flags & ~7u)), tick(c, t->start_ns),
                          tick(c, t->end_ns), (uint32_t)delay);
    }
    if (t->ready_ns != HEDDLE_LOG_NONE && delay == 0)
        heddle_trace_ready(l, t->id, tick(c, t->ready_ns));
}

/* Invariant (2). */
static heddle_status put_tasks(struct compose *c)
{
    const struct heddle_log_view *v = c->v;
    uint64_t *place;

    for (size_t i = 0; i < v->ntasks; i++) {
        const struct heddle_log_task *t = &v->tasks[i];

        HEDDLE_TRY(heddle_map_slot(&c->seen, t->id, &place));
        if ((*place)++ == 0) {
            put_submission(c, t);
            if (t->name != NULL && t->name[0] != '\0')
                heddle_trace_attr(c->submitter, t->id, HEDDLE_LOG_ATTR_NAME,
                                  heddle_trace_define_string(c->tr, t->name));
        }
        put_execution(c, t);
    }
    return HEDDLE_OK;
}

static void put_graph(struct compose *c)
{
    const struct heddle_log_view *v = c->v;

    for (size_t i = 0; i < v->ndeps; i++)
        heddle_trace_dep(c->submitter, v->deps[i].succ, v->deps[i].pred);
    for (size_t i = 0; i < v->naccesses; i++) {
        const struct heddle_log_access *x = &v->accesses[i];

        heddle_trace_access(c->submitter, x->task, v->handles[x->handle].id, x->mode, x->operand);
    }
    for (size_t i = 0; i < v->nattrs; i++)
        if (v->attrs[i].key != HEDDLE_LOG_ATTR_NAME)
            heddle_trace_attr(c->submitter, v->attrs[i].task,
                              (enum heddle_log_attr_key)v->attrs[i].key, v->attrs[i].value);
}

static void put_timeline(struct compose *c)
{
    const struct heddle_log_view *v = c->v;

    for (size_t i = 0; i < v->nstates; i++)
        heddle_trace_state(heddle_trace_get_lane(c->tr, v->states[i].lane),
                           (enum heddle_log_state_kind)v->states[i].state,
                           tick(c, v->states[i].start_ns), v->states[i].arg);
    for (size_t i = 0; i < v->nmarks; i++)
        heddle_trace_mark(heddle_trace_get_lane(c->tr, v->marks[i].lane),
                          heddle_trace_define_string(c->tr, v->marks[i].text),
                          (enum heddle_log_mark_phase)v->marks[i].phase, tick(c, v->marks[i].t_ns));
    for (size_t i = 0; i < v->nevents; i++) {
        const struct heddle_log_event *e = &v->events[i];
        const struct heddle_trace_event r = {
            .t = tick(c, e->t_ns),
            .task = e->task,
            .x = e->x,
            .y = (uint64_t)e->y_ns,
            .z = (uint64_t)e->z_ns,
            .c = e->c,
            .b = e->b,
        };

        heddle_trace_event(heddle_trace_get_lane(c->tr, e->lane), HEDDLE_TRACE_DATA,
                           (enum heddle_log_event_kind)e->kind, &r);
    }
}

static heddle_status put_all(struct compose *c)
{
    const struct heddle_log_view *v = c->v;
    uint32_t at = 0;

    for (uint32_t i = (uint32_t)v->nlanes; i-- > 0;)
        if (v->lanes[i].kind == HEDDLE_LOG_SUBMITTER)
            at = i;
    c->submitter = heddle_trace_get_lane(c->tr, at);
    put_definitions(c);
    HEDDLE_TRY(put_tasks(c));
    put_graph(c);
    put_timeline(c);
    return HEDDLE_OK;
}

static heddle_status compose_run(struct compose *c, const char *path)
{
    const struct heddle_clock clock = heddle_clock_virtual();
    const struct heddle_trace_opts o = {
        .alloc = c->a,
        .clock = &clock,
        .level = HEDDLE_LOG_EXPERT,
        .nlanes = c->v->nlanes == 0 ? 1 : (uint32_t)c->v->nlanes,
        .chunk_bytes = c->v->nlanes > MANY_LANES ? SMALL_CHUNK : 0,
        .path = path,
        .wall_ns = c->v->wall_ns,
        .wall_tick = c->zero,
        .why = c->why,
        .why_bytes = c->why_bytes,
    };
    heddle_status st, closed;
    uint64_t lost;

    HEDDLE_TRY(heddle_trace_create(&o, &c->tr));
    heddle_map_init(&c->seen, c->a);
    st = put_all(c);
    heddle_map_fini(&c->seen);
    lost = heddle_trace_lost(c->tr);
    closed = heddle_trace_close(c->tr, c->why, c->why_bytes);
    if (st == HEDDLE_OK)
        st = closed;
    if (st == HEDDLE_OK && lost > 0)
        st = HEDDLE_ENOMEM;
    if (st != HEDDLE_OK)
        heddle_trace_discard(path);
    return st;
}

heddle_status heddle_log_compose(const struct heddle_log_view *v, const char *path,
                                 const struct heddle_log_opts *opts)
{
    struct heddle_log_view view;
    struct heddle_log_opts o;
    struct compose c = {.v = &view};
    heddle_status st;

    HEDDLE_CHECK(v != NULL && path != NULL);
    HEDDLE_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_log_opts, &o, opts));
    c.a = o.allocator;
    c.why = o.why;
    c.why_bytes = o.why_bytes;
    HEDDLE_TRY(HEDDLE_SIZED_GET(struct heddle_log_view, &view, v, c.why, c.why_bytes));
    (void)heddle_why(c.why, c.why_bytes, HEDDLE_OK, "%s", "");
    st = check_view(&c);
    if (st == HEDDLE_OK) {
        c.zero = find_zero(&view);
        st = compose_run(&c, path);
    }
    if (st == HEDDLE_ENOMEM)
        (void)heddle_why(c.why, c.why_bytes, st, "There is not enough memory for the log '%s'.",
                         path);
    return st;
}
