/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tasks: which executions are tasks, where they ran, which are alike.
 */
#include <stdlib.h>
#include <string.h>

#include "base/device.h"
#include "log_graph/log_graph.h"

#define NONE HEDDLE_LOG_GRAPH_NONE

/* --- lanes ---------------------------------------------------------------- */

static bool is_counted(const struct heddle_log_task *t)
{
    return t->status == HEDDLE_LOG_OK && t->lane != HEDDLE_LOG_NO_LANE &&
           (t->flags & HEDDLE_LOG_GANG) == 0;
}

/* "worker 3": a thread of the runtime, and not a core of a described machine. */
static bool is_thread(const struct heddle_log_lane *l)
{
    return strncmp(l->name, "worker ", 7) == 0;
}

/* The type of that name; a new one when there is none. */
static uint32_t type_find(struct maker *m, const char *name, size_t bytes, uint32_t device)
{
    uint32_t i = 0;

    while (i < m->ntypes &&
           (m->types[i].name_bytes != bytes || memcmp(m->types[i].name, name, bytes) != 0))
        i++;
    if (i == m->ntypes)
        m->types[m->ntypes++] =
            (struct log_type){.name = name, .name_bytes = bytes, .device = device, .to = NONE};
    return i;
}

/* What a lane is called up to the number of its stream. */
static uint32_t type_of_lane(struct maker *m, const struct heddle_log_lane *l)
{
    if (l->kind == HEDDLE_LOG_DEVICE)
        return type_find(m, l->name, strcspn(l->name, "."), heddle_device_at_start(l->name));
    if (l->kind == HEDDLE_LOG_WORKER && !is_thread(l) && strchr(l->name, '.') != NULL)
        return type_find(m, l->name, strcspn(l->name, "."), HEDDLE_DEV_CPU);
    return type_find(m, "cpu", 3, HEDDLE_DEV_CPU);
}

/* The kind of device that ran the tasks of a type whose name does not tell. */
static void lanes_devices(struct maker *m)
{
    for (size_t i = 0; i < m->v->ntasks; i++) {
        const struct heddle_log_task *t = &m->v->tasks[i];
        const struct heddle_log_kernel *k;
        struct log_type *to;

        if (!is_counted(t) || m->lane_log[t->lane] == NONE)
            continue;
        k = &m->v->kernels[t->kernel];
        to = &m->types[m->lane_log[t->lane]];
        if (to->device == 0 && t->variant < k->nvariants)
            to->device = k->variants[t->variant].device;
    }
}

heddle_status heddle_lg_lanes(struct maker *m)
{
    const struct heddle_log_view *v = m->v;
    bool *ran = heddle_scratch_get(m->scratch, v->nlanes, sizeof(*ran));
    bool is_described = false;

    m->types = heddle_scratch_get(m->temp, v->nlanes + 1, sizeof(*m->types));
    m->lane_log = heddle_scratch_get(m->temp, v->nlanes, sizeof(*m->lane_log));
    if (ran == NULL || m->types == NULL || m->lane_log == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < v->ntasks; i++)
        if (v->tasks[i].lane != HEDDLE_LOG_NO_LANE)
            ran[v->tasks[i].lane] = true;
    for (size_t i = 0; i < v->nlanes; i++)
        is_described |= v->lanes[i].kind == HEDDLE_LOG_WORKER && !is_thread(&v->lanes[i]);
    for (size_t i = 0; i < v->nlanes; i++) {
        const struct heddle_log_lane *l = &v->lanes[i];
        /* In virtual time threads are no workers, unless one ran a task. */
        const bool is_worker = l->kind == HEDDLE_LOG_DEVICE ||
                               (l->kind == HEDDLE_LOG_WORKER && !(is_described && is_thread(l)));
        struct log_type *t;

        m->lane_log[i] = NONE;
        if (!is_worker && !ran[i])
            continue;
        m->lane_log[i] = type_of_lane(m, l);
        t = &m->types[m->lane_log[i]];
        if (t->nlanes++ == 0)
            t->node = l->node;
    }
    lanes_devices(m);
    return HEDDLE_OK;
}

/* --- tasks ---------------------------------------------------------------- */

/* How tasks are ordered: those of one parent together, as submitted. */
struct place {
    uint64_t parent;
    int64_t submit_ns;
    uint64_t id;
    uint32_t task;
};

static int by_submission(const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    if (x->submit_ns != y->submit_ns)
        return x->submit_ns < y->submit_ns ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static int by_parent(const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    if (x->parent != y->parent)
        return x->parent < y->parent ? -1 : 1;
    return by_submission(a, b);
}

/* 1 + the log's index of the execution that counts, by id; 0: none does. */
static heddle_status find_executions(struct maker *m)
{
    uint64_t *at;

    for (size_t i = 0; i < m->v->ntasks; i++) {
        const struct heddle_log_task *t = &m->v->tasks[i];

        HEDDLE_TRY(heddle_map_slot(&m->task_of, t->id, &at));
        if (!is_counted(t))
            continue;
        m->n += *at == 0;
        *at = i + 1; /* sorted by start: the last one stays */
    }
    m->g->nnot_run = heddle_map_count(&m->task_of) - m->n;
    return HEDDLE_OK;
}

static heddle_status get_arrays(struct maker *m)
{
    const size_t n = m->n;

    m->order = heddle_scratch_get(m->temp, n, sizeof(*m->order));
    m->type_log = heddle_scratch_get(m->temp, n, sizeof(*m->type_log));
    m->id = heddle_scratch_get(m->own, n, sizeof(*m->id));
    m->log_index = heddle_scratch_get(m->own, n, sizeof(*m->log_index));
    m->kind = heddle_scratch_get(m->own, n, sizeof(*m->kind));
    m->type = heddle_scratch_get(m->own, n, sizeof(*m->type));
    m->width = heddle_scratch_get(m->own, n, sizeof(*m->width));
    m->start_ns = heddle_scratch_get(m->own, n, sizeof(*m->start_ns));
    m->end_ns = heddle_scratch_get(m->own, n, sizeof(*m->end_ns));
    m->took_ns = heddle_scratch_get(m->own, n, sizeof(*m->took_ns));
    m->priority = heddle_scratch_get(m->own, n, sizeof(*m->priority));
    return m->order != NULL && m->type_log != NULL && m->id != NULL && m->log_index != NULL &&
                   m->kind != NULL && m->type != NULL && m->width != NULL && m->start_ns != NULL &&
                   m->end_ns != NULL && m->took_ns != NULL && m->priority != NULL
               ? HEDDLE_OK
               : HEDDLE_ENOMEM;
}

static void fill_task(struct maker *m, uint32_t i, uint32_t log_index)
{
    const struct heddle_log_task *t = &m->v->tasks[log_index];

    m->id[i] = t->id;
    m->log_index[i] = log_index;
    m->type_log[i] = m->lane_log[t->lane];
    m->width[i] = 1;
    m->start_ns[i] = t->start_ns;
    m->end_ns[i] = t->end_ns;
    m->priority[i] = t->priority;
}

heddle_status heddle_lg_tasks(struct maker *m)
{
    struct place *p;
    struct heddle_map_slot *slot;
    size_t it = 0, n = 0;

    if (m->v->ntasks >= UINT32_MAX)
        return HEDDLE_LG_FAIL(&m->o, HEDDLE_EOVERFLOW, "the log has too many tasks");
    HEDDLE_TRY(find_executions(m));
    HEDDLE_TRY(get_arrays(m));
    p = heddle_scratch_get(m->scratch, m->n, sizeof(*p));
    if (p == NULL)
        return HEDDLE_ENOMEM;
    while ((slot = heddle_map_next(&m->task_of, &it)) != NULL) {
        const struct heddle_log_task *t;

        if (slot->val == 0)
            continue;
        t = &m->v->tasks[slot->val - 1];
        p[n++] = (struct place){t->parent, t->submit_ns, t->id, (uint32_t)(slot->val - 1)};
    }
    qsort(p, m->n, sizeof(*p), by_submission);
    for (uint32_t i = 0; i < m->n; i++) {
        fill_task(m, i, p[i].task);
        m->has_children |= p[i].parent != 0;
        m->g->has_deps |= p[i].submit_ns != HEDDLE_LOG_NONE;
        *heddle_map_find(&m->task_of, p[i].id) = i + 1;
        p[i].task = i;
    }
    if (m->has_children)
        qsort(p, m->n, sizeof(*p), by_parent);
    for (uint32_t i = 0; i < m->n; i++)
        m->order[i] = p[i].task;
    for (size_t i = 0; i < m->v->ntasks; i++) {
        const struct heddle_log_task *t = &m->v->tasks[i];
        const uint64_t *at = heddle_map_find(&m->task_of, t->id);

        if ((t->flags & HEDDLE_LOG_GANG) != 0 && t->status == HEDDLE_LOG_OK && at != NULL &&
            *at != 0)
            m->width[*at - 1]++;
    }
    m->g->has_deps |= m->v->ndeps > 0 || m->v->naccesses > 0;
    return HEDDLE_OK;
}

/* --- kinds ---------------------------------------------------------------- */

struct shape {
    uint64_t key, bytes;
    double flops;
};

static struct shape shape_of(const struct maker *m, uint32_t i)
{
    const struct heddle_log_view *v = m->v;
    struct shape s = {.key = heddle_lg_mix(1, v->tasks[m->log_index[i]].kernel)};
    size_t first, last;

    heddle_log_find_accesses(m->log, m->id[i], &first, &last);
    for (size_t k = first; k < last; k++) {
        const struct heddle_log_access *a = &v->accesses[k];
        const uint64_t bytes = v->handles[a->handle].bytes;

        s.key = heddle_lg_mix(heddle_lg_mix(s.key, bytes), a->mode);
        if (__builtin_add_overflow(s.bytes, bytes, &s.bytes))
            s.bytes = UINT64_MAX;
    }
    heddle_log_find_attrs(m->log, m->id[i], &first, &last);
    for (size_t k = first; k < last; k++) {
        const struct heddle_log_attr *a = &v->attrs[k];

        if (a->key == HEDDLE_LOG_ATTR_FLOPS || a->key == HEDDLE_LOG_ATTR_FOOTPRINT)
            s.key = heddle_lg_mix(heddle_lg_mix(s.key, a->key), a->value);
        if (a->key == HEDDLE_LOG_ATTR_FLOPS)
            memcpy(&s.flops, &a->value, sizeof(s.flops));
    }
    if (!(s.flops >= 0 && s.flops < 1e300))
        s.flops = 0;
    return s;
}

heddle_status heddle_lg_kinds(struct maker *m)
{
    struct heddle_map of;
    heddle_status st = HEDDLE_OK;
    struct heddle_log_graph_kind *all;

    heddle_map_init(&of, m->own->a);
    all = heddle_scratch_get(m->scratch, m->n, sizeof(*all));
    if (all == NULL)
        st = HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < m->n && st == HEDDLE_OK; i++) {
        const struct shape s = shape_of(m, i);
        const uint32_t k = m->v->tasks[m->log_index[i]].kernel;
        uint64_t *at;

        st = heddle_map_slot(&of, s.key, &at);
        if (st != HEDDLE_OK)
            break;
        if (*at == 0) {
            all[m->nkinds++] = (struct heddle_log_graph_kind){
                .name = m->v->kernels[k].name, .kernel = k, .bytes = s.bytes, .flops = s.flops};
            *at = m->nkinds;
        }
        m->kind[i] = (uint32_t)(*at - 1);
        all[m->kind[i]].ntasks++;
    }
    heddle_map_fini(&of);
    if (st != HEDDLE_OK)
        return st;
    m->kinds = heddle_scratch_get(m->own, m->nkinds, sizeof(*all));
    if (m->kinds == NULL)
        return HEDDLE_ENOMEM;
    if (m->nkinds > 0)
        memcpy(m->kinds, all, m->nkinds * sizeof(*all));
    return HEDDLE_OK;
}
