/* SPDX-License-Identifier: BSD-3-Clause */
/* planned: the public functions; see planned.h. */
#include "planned/planned.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/sized.h"

static void planned_free(struct heddle_planned *p)
{
    const struct heddle_allocator alloc = p->alloc;

    heddle_graph_unref(p->graph);
    for (size_t i = p->nhandles; i-- > 0;)
        heddle_handle_unref(p->handle[i]);
    if (p->plan != NULL)
        heddle_free(&alloc, p->arena, p->plan->arena_bytes);
    heddle_planned_store_close(p);
    heddle_plan_destroy(p->plan);
    heddle_plan_graph_destroy(p->pgraph);
    heddle_planned_list_fini(&p->used, &alloc);
    heddle_scratch_drop(&p->mem);
    heddle_mutex_fini(&p->lock);
    heddle_free(&alloc, p, sizeof(*p));
}

void heddle_planned_unref(heddle_planned *p)
{
    if (p != NULL && heddle_sub_acqrel(&p->refs, 1u) == 1)
        planned_free(p);
}

static heddle_status planned_make(struct heddle_planned *p, heddle_graph *g,
                                  const struct heddle_planned_opts *o)
{
    struct heddle_scratch mem = heddle_scratch_make(&p->alloc);
    struct planned_source s = {.g = g, .o = o, .mem = &mem};
    heddle_status st = heddle_planned_read(&s);

    if (st == HEDDLE_OK)
        st = heddle_planned_solve(p, &s);
    p->ntasks = s.ntasks;
    p->is_watched = o->is_watched;
    if (st == HEDDLE_OK)
        st = heddle_planned_record(p, &s);
    heddle_scratch_drop(&mem);
    return st;
}

heddle_status heddle_planned_create(heddle_graph *g, const struct heddle_planned_opts *opts,
                                    heddle_planned **out)
{
    struct heddle_planned_opts o;
    struct heddle_allocator alloc;
    bool is_sealed = false, has_devices = false;
    struct heddle_planned *p;
    heddle_ctx *ctx;
    heddle_status st;

    HEDDLE_CHECK(g != NULL && out != NULL);
    HEDDLE_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_planned_opts, &o, opts));
    ctx = heddle_graph_ctx(g, &is_sealed, &has_devices);
    if (ctx == NULL || !is_sealed)
        return PLANNED_FAIL(&o, HEDDLE_ESTATE,
                            ctx == NULL ? "the context of the graph is gone"
                                        : "a graph is planned after heddle_graph_end()");
    if (has_devices)
        return PLANNED_FAIL(&o, HEDDLE_ENOSYS,
                            "the context has devices: planned graphs run on cores alone");
    if (heddle_graph_get_ntasks(g) == 0)
        return PLANNED_FAIL(&o, HEDDLE_EINVAL, "the graph has no task");
    HEDDLE_TRY(heddle_ctx_get_allocator(ctx, &alloc));
    p = heddle_zalloc(&alloc, 1, sizeof(*p));
    if (p == NULL)
        return PLANNED_FAIL(&o, HEDDLE_ENOMEM, "no memory for a planned graph");
    p->alloc = alloc;
    p->mem = heddle_scratch_make(&p->alloc);
    heddle_mutex_init(&p->lock, HEDDLE_RANK_SUBMIT, "planned");
    p->fd = -1;
    heddle_store_rlx(&p->refs, 1u); /* not shared yet */
    p->ctx = ctx;
    st = planned_make(p, g, &o);
    if (st == HEDDLE_OK) {
        *out = p;
        return st;
    }
    planned_free(p);
    if (st == HEDDLE_ENOMEM)
        return PLANNED_FAIL(&o, st, "no memory for a planned graph");
    return st;
}

/* --- launches ------------------------------------------------------------------------- */

/* A launch in flight. */
struct planned_launch {
    struct heddle_planned *p;
    void (*done)(void *user, heddle_status st); /* the caller's */
    void *done_user;
};

static void launch_done(void *user, heddle_status st)
{
    const struct planned_launch l = *(struct planned_launch *)user;

    if (st != HEDDLE_OK)
        heddle_store_rel(&l.p->is_spoiled, 1u);
    (void)heddle_sub_acqrel(&l.p->nflying, 1u);
    heddle_free(&l.p->alloc, user, sizeof(l));
    heddle_planned_unref(l.p);
    if (l.done != NULL)
        l.done(l.done_user, st);
}

/* Arguments of recorded tasks become those of all their runs. One that names no task keeps
 * its number beyond all nodes, so that heddle_graph_launch() refuses it. */
static heddle_status launch_args(const struct heddle_planned *p, const struct heddle_launch *l,
                                 struct heddle_scratch *mem, struct heddle_launch *out)
{
    struct heddle_graph_arg *arg;
    size_t n = 0;

    for (size_t i = 0; i < l->nargs; i++) {
        const size_t task = l->arg[i].task;

        n += task < p->ntasks ? p->first_run[task + 1] - p->first_run[task] : 1;
    }
    arg = heddle_scratch_get(mem, n, sizeof(*arg));
    if (arg == NULL)
        return HEDDLE_ENOMEM;
    n = 0;
    for (size_t i = 0; i < l->nargs; i++) {
        const size_t task = l->arg[i].task;

        if (task >= p->ntasks) {
            arg[n] = l->arg[i];
            arg[n++].task = SIZE_MAX;
            continue;
        }
        for (uint32_t k = p->first_run[task]; k < p->first_run[task + 1]; k++) {
            arg[n] = l->arg[i];
            arg[n++].task = p->run[k];
        }
    }
    out->arg = arg;
    out->nargs = n;
    return HEDDLE_OK;
}

/* The launch before has failed. All data in the arena are written before they are read, so
 * what it left counts as good: a version that is made of parts is never written whole. With the
 * lock, so that no other launch begins before all of it does. */
static void launch_restore(struct heddle_planned *p)
{
    if (heddle_load_acq(&p->is_spoiled) == 0 || heddle_load_acq(&p->nflying) != 0 ||
        heddle_xchg_acqrel(&p->is_spoiled, 0u) == 0)
        return;
    for (size_t i = 0; i < p->nhandles; i++)
        (void)heddle_handle_restore(p->handle[i]);
}

static heddle_status launch_now(struct heddle_planned *p, struct heddle_launch *l,
                                struct heddle_task_opts *opts)
{
    struct planned_launch *note = heddle_alloc(&p->alloc, sizeof(*note));
    heddle_status st;

    if (note == NULL)
        return HEDDLE_ENOMEM;
    *note = (struct planned_launch){p, opts->done, opts->done_user};
    opts->size = sizeof(*opts);
    opts->done = launch_done;
    opts->done_user = note;
    l->opts = opts;
    heddle_add_rlx(&p->refs, 1u); /* the launch's; the caller holds one */
    heddle_mutex_lock(&p->lock);
    launch_restore(p);
    heddle_add_rlx(&p->nflying, 1u);
    heddle_mutex_unlock(&p->lock);
    st = heddle_graph_launch(p->graph, l);
    if (st != HEDDLE_OK) {
        (void)heddle_sub_acqrel(&p->nflying, 1u);
        heddle_planned_unref(p);
        heddle_free(&p->alloc, note, sizeof(*note));
    }
    return st;
}

heddle_status heddle_planned_launch(heddle_planned *p, const struct heddle_launch *launch)
{
    struct heddle_launch l;
    struct heddle_task_opts opts;
    struct heddle_scratch mem;
    heddle_status st;

    HEDDLE_CHECK(p != NULL);
    st = HEDDLE_SIZED_GET(struct heddle_launch, &l, launch, NULL, 0);
    if (st == HEDDLE_OK)
        st = HEDDLE_SIZED_GET(struct heddle_task_opts, &opts, l.opts, NULL, 0);
    if (st != HEDDLE_OK || (l.nargs != 0 && l.arg == NULL))
        return heddle_graph_launch(p->graph, launch); /* says what is wrong */
    mem = heddle_scratch_make(&p->alloc);
    if (l.nargs != 0)
        st = launch_args(p, &l, &mem, &l);
    if (st == HEDDLE_OK)
        st = launch_now(p, &l, &opts);
    heddle_scratch_drop(&mem);
    return st;
}

/* --- what it is ------------------------------------------------------------------------- */

heddle_status heddle_planned_get_info(const heddle_planned *p, struct heddle_planned_info *out)
{
    struct heddle_planned_info i = {.size = sizeof(i)};

    HEDDLE_CHECK(p != NULL);
    HEDDLE_TRY(HEDDLE_SIZED_ROOM(struct heddle_planned_info, out, NULL, 0));
    i.solver = p->plan->solver;
    i.ntasks = p->ntasks;
    i.nruns = (size_t)p->nnodes - p->ncopies - p->nmoved;
    i.nrepeated = i.nruns - i.ntasks;
    i.ncopies = p->ncopies;
    i.nmoved = p->nmoved;
    i.budget = p->machine.budget;
    i.arena_bytes = p->plan->arena_bytes;
    i.peak_bytes = p->plan->peak_bytes;
    i.as_is_bytes = p->as_is_bytes;
    i.floor_bytes = p->floor_bytes;
    i.host_bytes = p->store_bytes[1];
    i.disk_bytes = p->store_bytes[2];
    i.seconds = p->plan->makespan;
    i.as_is_seconds = p->plan->baseline;
    i.bound_seconds = p->plan->lower_bound;
    i.bound_note = p->plan->bound_note;
    i.solve_seconds = p->plan->seconds;
    i.real_arena_bytes = heddle_load_acq(&p->real_arena);
    i.real_peak_bytes = heddle_load_acq(&p->real_peak);
    heddle_sized_put(out, &i, sizeof(i));
    return HEDDLE_OK;
}

heddle_status heddle_planned_get_seconds(const heddle_planned *p, double *seconds, size_t n)
{
    HEDDLE_CHECK(p != NULL && seconds != NULL && n == p->ntasks);
    for (size_t k = 0; k < n; k++)
        if (heddle_load_rlx(&p->least_ns[k]) == UINT64_MAX)
            return HEDDLE_ESTATE;
    for (size_t k = 0; k < n; k++)
        seconds[k] = (double)heddle_load_rlx(&p->least_ns[k]) * 1e-9;
    return HEDDLE_OK;
}

const struct heddle_plan_graph *heddle_planned_get_graph(const heddle_planned *p)
{
    return p == NULL ? NULL : p->pgraph;
}

const struct heddle_plan_machine *heddle_planned_get_machine(const heddle_planned *p)
{
    return p == NULL ? NULL : &p->machine;
}

const struct heddle_plan *heddle_planned_get_plan(const heddle_planned *p)
{
    return p == NULL ? NULL : p->plan;
}
