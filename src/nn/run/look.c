/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * look: what a plan needs, which tasks it has, and how long each takes on a core.
 *
 * Times  an instance is made, and its tasks run one after another on the calling thread, several
 *        times: what a task finds in caches is what the one before it left there.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/sized.h"
#include "base/why.h"
#include "nn/run/run.h"

heddle_status heddle_nn_get_plan(heddle_nn *net, const struct heddle_nn_tensor *input, unsigned n,
                                 const struct heddle_nn_opts *opts,
                                 struct heddle_nn_plan_info *info)
{
    struct heddle_nn_opts o;
    struct heddle_nn_plan_info i = {.size = sizeof(i)};
    struct nn_plan *p = NULL;
    struct nn_opts no;

    HEDDLE_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_nn_opts, &o, opts));
    HEDDLE_CHECK(net != NULL);
    HEDDLE_TRY(HEDDLE_SIZED_ROOM(struct heddle_nn_plan_info, info, o.why, o.why_bytes));
    no = (struct nn_opts){net->alloc, o.why, o.why_bytes};
    HEDDLE_TRY(heddle_nn_hold_plan(net, input, n, &no, &p));
    i.ntasks = p->is_static ? p->ntasks : 1;
    i.arena_bytes = p->arena_bytes;
    i.peak_bytes = p->peak_bytes;
    i.flops = p->flops;
    i.is_static = p->is_static;
    heddle_sized_put(info, &i, sizeof(i));
    heddle_nn_leave_plan(net, p);
    return HEDDLE_OK;
}

/* --- tasks ------------------------------------------------------------------------------------ */

struct look {
    const struct nn_plan *p;
    struct heddle_nn_task *task;
    uint64_t *bytes;
    uint32_t *maker, *value, *reader;
    uint32_t nvalues, nreads;
    uint32_t *number; /* [values of the plan] of roots, from 1 on; 0: not there yet */
};

/* The number of a value; NN_NONE: it is constant, or nobody wants it. */
static uint32_t look_value(struct look *l, uint32_t value, uint32_t maker)
{
    const uint32_t root = l->p->root[value];

    if (l->p->value[value].data != NULL || l->p->value[root].data != NULL ||
        l->p->at[root] == NN_NOWHERE)
        return NN_NONE;
    if (l->number[root] == 0) {
        l->bytes[l->nvalues] = heddle_nn_bytes(&l->p->value[root]);
        l->maker[l->nvalues] = maker;
        l->number[root] = ++l->nvalues;
    }
    return l->number[root] - 1;
}

static void look_read(struct look *l, uint32_t value, uint32_t reader)
{
    const uint32_t v = look_value(l, value, UINT32_MAX);

    if (v == NN_NONE)
        return;
    l->value[l->nreads] = v;
    l->reader[l->nreads++] = reader;
}

static void look_task(struct look *l, uint32_t k)
{
    const struct nn_task *t = &l->p->task[k];
    struct heddle_nn_task *to = &l->task[k];

    to->name = t->node->name;
    to->op = t->node->op->name;
    to->flops = t->cost.flops;
    to->bytes = t->cost.bytes;
    for (uint32_t i = 0; i < t->node->nin; i++) {
        const uint32_t v = t->in_value[i];

        if (v == NN_NONE)
            continue;
        if (l->p->value[v].data != NULL)
            to->weight_bytes += heddle_nn_bytes(&l->p->value[v]);
        else
            look_read(l, v, k);
    }
    for (uint32_t i = 0; i < t->node->nout; i++)
        if (t->out_value[i] != NN_NONE)
            (void)look_value(l, t->out_value[i], k);
}

static heddle_status look_graph(const struct nn_plan *p, struct heddle_scratch *own,
                                struct heddle_nn_tasks *out)
{
    struct heddle_scratch tmp = heddle_scratch_make(own->a);
    struct look l = {.p = p};
    size_t nreads = p->g->noutputs;

    for (uint32_t k = 0; k < p->ntasks; k++)
        nreads += p->task[k].node->nin;
    l.task = heddle_scratch_get(own, p->ntasks, sizeof(*l.task));
    l.bytes = heddle_scratch_get(own, p->nvalues, sizeof(*l.bytes));
    l.maker = heddle_scratch_get(own, p->nvalues, sizeof(*l.maker));
    l.value = heddle_scratch_get(own, nreads, sizeof(*l.value));
    l.reader = heddle_scratch_get(own, nreads, sizeof(*l.reader));
    l.number = heddle_scratch_get(&tmp, p->nvalues, sizeof(*l.number));
    if (l.task == NULL || l.bytes == NULL || l.maker == NULL || l.value == NULL ||
        l.reader == NULL || l.number == NULL) {
        heddle_scratch_drop(&tmp);
        return HEDDLE_ENOMEM;
    }
    for (uint32_t k = 0; k < p->ntasks; k++)
        look_task(&l, k);
    for (uint32_t i = 0; i < p->g->noutputs; i++)
        look_read(&l, p->output[i], UINT32_MAX);
    heddle_scratch_drop(&tmp);
    out->ntasks = p->ntasks;
    out->nvalues = l.nvalues;
    out->nreads = l.nreads;
    out->task = l.task;
    out->bytes = l.bytes;
    out->maker = l.maker;
    out->value = l.value;
    out->reader = l.reader;
    return HEDDLE_OK;
}

/* --- times ------------------------------------------------------------------------------------ */

static void look_fill(const struct nn_instance *x, const struct nn_graph *g,
                      const struct heddle_nn_tensor *input)
{
    for (uint32_t i = 0; i < g->ninputs; i++) {
        void *to = heddle_nn_instance_data(x, g->input[i]);

        if (to != NULL && input[i].data != NULL)
            memcpy(to, input[i].data, input[i].bytes);
        else if (to != NULL)
            memset(to, 0, input[i].bytes);
    }
}

/* Sorted on its way in. */
static void look_insert(double *v, unsigned n, double x)
{
    for (; n > 0 && v[n - 1] > x; n--)
        v[n] = v[n - 1];
    v[n] = x;
}

static heddle_status look_time(heddle_nn *net, struct nn_plan *p,
                               const struct heddle_nn_tensor *input, unsigned runs,
                               const struct nn_opts *o, struct heddle_nn_task *task)
{
    struct heddle_scratch tmp = heddle_scratch_make(net->alloc);
    double *ns = heddle_scratch_get(&tmp, (size_t)p->ntasks * runs, sizeof(*ns));
    struct nn_instance *x = NULL;
    heddle_status st = ns != NULL ? heddle_nn_instance_create(net, p, o, &x) : HEDDLE_ENOMEM;

    for (unsigned r = 0; r < runs && st == HEDDLE_OK; r++) {
        look_fill(x, p->g, input);
        for (uint32_t k = 0; k < p->ntasks && st == HEDDLE_OK; k++) {
            const uint64_t begin = heddle_clock_ns();

            st = heddle_nn_work_run(heddle_nn_instance_work(x, k), o->why, o->why_bytes);
            look_insert(ns + (size_t)k * runs, r, (double)(heddle_clock_ns() - begin));
        }
    }
    for (uint32_t k = 0; k < p->ntasks && st == HEDDLE_OK; k++)
        task[k].ns = ns[(size_t)k * runs + runs / 2];
    heddle_nn_instance_destroy(x);
    heddle_scratch_drop(&tmp);
    return st;
}

struct own {
    struct heddle_allocator from;
    struct heddle_scratch mem;
};

static heddle_status look_make(heddle_nn *net, struct nn_plan *p,
                               const struct heddle_nn_tensor *input, unsigned runs,
                               const struct nn_opts *o, struct heddle_nn_tasks *out)
{
    struct own *own = heddle_zalloc(net->alloc, 1, sizeof(*own));
    heddle_status st;

    if (own == NULL)
        return HEDDLE_ENOMEM;
    own->from = net->from;
    own->mem = heddle_scratch_make(net->alloc);
    out->own = own;
    st = look_graph(p, &own->mem, out);
    if (st == HEDDLE_OK && runs > 0)
        st = look_time(net, p, input, runs, o, (struct heddle_nn_task *)(uintptr_t)out->task);
    if (st != HEDDLE_OK)
        heddle_nn_tasks_fini(out);
    return st;
}

heddle_status heddle_nn_get_tasks(heddle_nn *net, const struct heddle_nn_tensor *input, unsigned n,
                                  unsigned runs, const struct heddle_nn_opts *opts,
                                  struct heddle_nn_tasks *tasks)
{
    struct heddle_nn_opts o;
    struct heddle_nn_tasks t = {.size = sizeof(t)};
    struct nn_plan *p = NULL;
    struct nn_opts no;
    heddle_status st;

    HEDDLE_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_nn_opts, &o, opts));
    HEDDLE_CHECK(net != NULL);
    HEDDLE_TRY(HEDDLE_SIZED_ROOM_OWN(struct heddle_nn_tasks, tasks, o.why, o.why_bytes));
    no = (struct nn_opts){net->alloc, o.why, o.why_bytes};
    HEDDLE_TRY(heddle_nn_hold_plan(net, input, n, &no, &p));
    st = p->is_static ? look_make(net, p, input, runs, &no, &t)
                      : heddle_why(o.why, o.why_bytes, HEDDLE_ENOSYS,
                                   "shapes depend on data, so the network is one task");
    heddle_nn_leave_plan(net, p);
    if (st == HEDDLE_ENOMEM)
        return heddle_why(o.why, o.why_bytes, st, "no memory for the tasks of a network");
    if (st == HEDDLE_OK)
        heddle_sized_put(tasks, &t, sizeof(t));
    return st;
}

void heddle_nn_tasks_fini(struct heddle_nn_tasks *tasks)
{
    struct own *own;

    if (tasks == NULL)
        return;
    own = tasks->own;
    if (own != NULL) {
        const struct heddle_allocator from = own->from;

        heddle_scratch_drop(&own->mem);
        heddle_free(&from, own, sizeof(*own));
    }
    heddle_sized_clear(tasks);
}
