/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ctx: start and end of an instance; waiting for all of it.
 *
 * Structure  created in the order of struct heddle_ctx, destroyed in reverse; a
 *            half-built context is destroyed by the same function.
 * Threads    create and destroy run alone; the rest from any thread.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/dev/dev.h"
#include "heddle/version.h"

enum {
    MAX_WORKERS = 4096,
    DEFAULT_SPIN_US = 200,
    DEFAULT_STACK = 8 << 20,
    MIN_WINDOW = 1024, /* cells in flight by default: 256 per worker, at least */
};

/* --- hidden tasks ----------------------------------------------------------- */

static const heddle_kernel hidden_join = {.name = "(join)"};
static const heddle_kernel hidden_combine = {.name = "(combine)"};
static const heddle_kernel hidden_release = {.name = "(release)"};
static const heddle_kernel hidden_grant = {.name = "(acquire)"};
static const heddle_kernel hidden_notice = {.name = "(event)"};
static const heddle_kernel hidden_advice = {.name = "(advice)"};

static void ctx_hidden(heddle_ctx *ctx, struct heddle_kinfo *i, const heddle_kernel *k)
{
    i->kernel = k;
    i->id = ++ctx->nkernels;
    i->mode[0] = HEDDLE_RW;
    i->is_slow = true;
}

/* --- creation --------------------------------------------------------------- */

static heddle_status ctx_start_topo(heddle_ctx *ctx, const struct heddle_ctx_opts *o)
{
    HEDDLE_TRY(heddle_topo_create(&ctx->alloc, &ctx->topo));
    ctx->nworkers = o->nworkers != 0 ? o->nworkers : heddle_topo_default_workers(ctx->topo);
    if (o->check == HEDDLE_ON)
        ctx->nworkers = 1; /* bodies one at a time: blame is exact */
    if (ctx->nworkers > MAX_WORKERS)
        return HEDDLE_EINVAL;
    ctx->reg.budget = o->memory_budget != 0 ? o->memory_budget : ctx->topo->memory_available;
    snprintf(ctx->device, sizeof(ctx->device), "cpu:%.58s",
             ctx->topo->model[0] != '\0' ? ctx->topo->model : "unknown");
    return HEDDLE_OK;
}

/* There is no context to keep the sentence: only the callback gets it. */
static heddle_status ctx_refuse(const struct heddle_ctx_opts *o, heddle_status st, const char *why)
{
    if (o->message != NULL)
        o->message(o->message_user, HEDDLE_ERROR, why);
    return st;
}

/* Memory that the runtime allocated for data on the host. reg.lock is held. */
static void ctx_memory_changed(void *owner, const heddle_handle *root, bool is_less)
{
    heddle_ctx *ctx = owner;

    if (!heddle_trace_is_on(ctx->memory_lane, HEDDLE_TRACE_DATA))
        return;
    heddle_trace_event(
        ctx->memory_lane, HEDDLE_TRACE_DATA, is_less ? HEDDLE_LOG_MEM_FREE : HEDDLE_LOG_MEM_ALLOC,
        &(struct heddle_trace_event){
            .t = heddle_ctx_ticks(ctx), .x = heddle_load_rlx(&ctx->reg.used), .c = root->id});
}

/* From now on, or (NULL) not any more: the log ends. */
static void ctx_watch_memory(heddle_ctx *ctx,
                             void (*changed)(void *owner, const heddle_handle *root, bool is_less))
{
    heddle_mutex_lock(&ctx->reg.lock);
    ctx->reg.changed = changed;
    heddle_mutex_unlock(&ctx->reg.lock);
}

/* What a reader of the log may want to know about the run. */
static void ctx_define(heddle_ctx *ctx, const struct heddle_ctx_opts *o)
{
    struct heddle_trace *tr = ctx->trace;
    const bool is_virtual = heddle_dev_is_virtual(ctx);
    char text[128] = "";

    heddle_trace_define_info(tr, "heddle", heddle_version());
    heddle_trace_define_info(tr, "program", program_invocation_short_name);
    if (gethostname(text, sizeof(text) - 1) == 0)
        heddle_trace_define_info(tr, "host", text);
    heddle_trace_define_info(tr, "time", is_virtual ? "virtual" : "real");
    if (is_virtual)
        heddle_trace_define_info(tr, "machine", o->machine);
    heddle_trace_define_info(tr, "scheduler", ctx->sched->name);
    heddle_trace_define_info(tr, "cpu", ctx->topo->model);
    snprintf(text, sizeof(text), "%u", ctx->dev != NULL ? ctx->dev->nsched : ctx->nworkers);
    heddle_trace_define_info(tr, "workers", text);
    if (ctx->dev != NULL)
        return; /* the rest: heddle_dev_log_define() */
    snprintf(text, sizeof(text), "%u cpu %s", ctx->nworkers, ctx->device);
    heddle_trace_define_info(tr, "class cpu", text);
    heddle_trace_define_node(tr, 0, HEDDLE_MEM_HOST, "host", ctx->reg.budget);
}

static heddle_status ctx_start_trace(heddle_ctx *ctx, const struct heddle_ctx_opts *o)
{
    char why[256] = "";
    struct heddle_trace_opts t = {
        .alloc = &ctx->alloc,
        .clock = &ctx->clock,
        .level = o->log == HEDDLE_OFF ? HEDDLE_LOG_OFF : o->log_level,
        .nlanes = ctx->nworkers + 4 + (ctx->dev != NULL ? heddle_dev_log_lanes(ctx->dev) : 0) +
                  heddle_sampler_lanes(ctx),
        .path = o->log_path,
        .why = why,
        .why_bytes = sizeof(why),
    };
    const heddle_status st = heddle_trace_create(&t, &ctx->trace);

    if (st != HEDDLE_OK)
        return ctx_refuse(o, st, why);
    ctx_define(ctx, o);
    ctx->memory_lane = heddle_trace_get_lane(ctx->trace, ctx->nworkers + 3);
    heddle_trace_define_lane(ctx->trace, ctx->nworkers + 3, HEDDLE_LOG_OTHER, "memory", -1, 0);
    if (ctx->dev == NULL || ctx->dev->disk_node < 0) /* else mem says so */
        ctx_watch_memory(ctx, ctx_memory_changed);
    return HEDDLE_OK;
}

/* The order in which each worker steals: nearest first. */
static heddle_status ctx_start_order(heddle_ctx *ctx, const int *cpu)
{
    const unsigned n = ctx->nworkers;

    if (n < 2 || ctx->dev != NULL)
        return HEDDLE_OK;
    ctx->steal_order = heddle_zalloc(&ctx->alloc, (size_t)n * (n - 1), sizeof(unsigned));
    if (ctx->steal_order == NULL)
        return HEDDLE_ENOMEM;
    for (unsigned w = 0; w < n; w++)
        HEDDLE_TRY(
            heddle_topo_steal_order(ctx->topo, cpu, n, w, &ctx->steal_order[(size_t)w * (n - 1)]));
    return HEDDLE_OK;
}

static void ctx_init_submitter(heddle_ctx *ctx, struct submitter *s, int pusher, unsigned bell,
                               unsigned lane)
{
    heddle_slab_init(&s->slab, &ctx->pool);
    s->pusher = pusher;
    s->bell = bell;
    s->lane = heddle_trace_get_lane(ctx->trace, lane);
    s->domain.slab = &s->slab;
    s->domain.find = heddle_domain_find;
    s->domain.close_crowd = heddle_domain_close;
}

static heddle_status ctx_init_workers(heddle_ctx *ctx, const int *cpu)
{
    const unsigned n = ctx->nworkers;
    const bool is_virtual = heddle_dev_is_virtual(ctx);

    for (unsigned i = 0; i < ctx->nall; i++) {
        struct worker *w = &ctx->worker[i];
        const bool is_slot = i < n;
        const unsigned lane = is_slot ? i : i + 1; /* n is the submitter's */
        char name[24];

        w->ctx = ctx;
        w->id = i;
        w->pusher = is_slot ? (int)i : HEDDLE_SCHED_FOREIGN;
        w->cpu = !is_slot || cpu == NULL ? -1 : cpu[i];
        w->lane = heddle_trace_get_lane(ctx->trace, lane);
        ctx_init_submitter(ctx, &w->sub, w->pusher, i, lane);
        HEDDLE_TRY(heddle_returns_init(&w->returns, &ctx->pool, n + 3));
        if (is_slot && is_virtual) /* its workers have lanes of their own */
            snprintf(name, sizeof(name), "program");
        else if (is_slot)
            snprintf(name, sizeof(name), "worker %u", i);
        else
            snprintf(name, sizeof(name), i == n ? "outside" : "driver");
        heddle_trace_define_lane(ctx->trace, lane,
                                 is_slot && !is_virtual ? HEDDLE_LOG_WORKER : HEDDLE_LOG_OTHER,
                                 name, w->cpu, 0);
    }
    ctx->foreign = &ctx->worker[n];
    ctx->driver = &ctx->worker[n + 1];
    ctx_init_submitter(ctx, &ctx->root, HEDDLE_SCHED_SUBMITTER, n, n);
    heddle_trace_define_lane(ctx->trace, n, HEDDLE_LOG_SUBMITTER, "submitter", -1, 0);
    return HEDDLE_OK;
}

/* Virtual cores have no distances: each begins with its neighbour. */
static heddle_status ctx_start_flat_order(heddle_ctx *ctx, unsigned n)
{
    ctx->flat_order = heddle_zalloc(&ctx->alloc, (size_t)n * n, sizeof(*ctx->flat_order));
    if (ctx->flat_order == NULL)
        return HEDDLE_ENOMEM;
    ctx->flat_bytes = (size_t)n * n * sizeof(*ctx->flat_order);
    for (unsigned w = 0; w < n; w++)
        for (unsigned i = 1; i < n; i++)
            ctx->flat_order[(size_t)w * (n - 1) + i - 1] = (w + i) % n;
    return HEDDLE_OK;
}

static heddle_status ctx_start_sched(heddle_ctx *ctx, const struct heddle_ctx_opts *o)
{
    struct heddle_devs *d = ctx->dev;
    char why[320] = "";
    struct heddle_sched_env env = {.alloc = &ctx->alloc,
                                   .nworkers = ctx->nworkers,
                                   .steal_order = ctx->steal_order,
                                   .plan = o->plan,
                                   .why = why,
                                   .why_bytes = sizeof(why)};
    heddle_status st;

    if (d != NULL) {
        env.nworkers = d->nsched;
        if (d->ncls == 1 && d->nsched > 1) {
            HEDDLE_TRY(ctx_start_flat_order(ctx, d->nsched));
            env.steal_order = ctx->flat_order;
        }
        if (ctx->sched->knows_classes) {
            env.cls = d->sched_cls;
            env.ncls = d->ncls;
            env.ntypes = d->ntypes;
            env.class_of = d->class_of;
            env.view = &heddle_dev_view;
            env.view_self = d;
            env.energy = heddle_dev_objective(d);
        }
    }
    ctx->sched_self =
        heddle_zalloc_aligned(&ctx->alloc, 1, ctx->sched->instance_size, HEDDLE_CACHE_LINE);
    if (ctx->sched_self == NULL)
        return HEDDLE_ENOMEM;
    st = ctx->sched->init(ctx->sched_self, &env);
    return why[0] != '\0' ? ctx_refuse(o, st, why) : st;
}

static heddle_status ctx_start_threads(heddle_ctx *ctx, const struct heddle_ctx_opts *o)
{
    const bool is_bound = o->bind != HEDDLE_OFF;
    heddle_status st;
    char why[96];

    for (unsigned i = ctx->helps ? 1 : 0; i < ctx->nworkers; i++) {
        struct worker *w = &ctx->worker[i];
        char name[24];
        struct heddle_thread_opts t = {
            .name = name,
            .stack_bytes = o->stack_bytes != 0 ? o->stack_bytes : (size_t)DEFAULT_STACK,
            .cpus = is_bound && w->cpu >= 0 ? &w->cpu : NULL,
            .ncpus = is_bound && w->cpu >= 0 ? 1 : 0,
        };

        snprintf(name, sizeof(name), "heddle-%u", i);
        st = heddle_thread_create(&w->thread, &t, heddle_worker_main, w);
        if (st != HEDDLE_OK) {
            snprintf(why, sizeof(why), "worker %u cannot be started with a stack of %zu bytes", i,
                     t.stack_bytes);
            return ctx_refuse(o, st, why);
        }
        w->has_thread = true;
    }
    return HEDDLE_OK;
}

static heddle_status ctx_start_models(heddle_ctx *ctx, const struct heddle_ctx_opts *o)
{
    char dir[1024];

    if (o->models == HEDDLE_OFF || heddle_dev_is_virtual(ctx))
        return HEDDLE_OK;
    /* To choose a device, every kernel has to be timed. */
    ctx->has_models = o->models == HEDDLE_ON || ctx->dev != NULL;
    if (o->model_dir != NULL)
        snprintf(dir, sizeof(dir), "%s", o->model_dir);
    else
        heddle_env_cache_dir(dir, sizeof(dir));
    return heddle_perf_create(&ctx->alloc, dir[0] == '\0' ? NULL : dir, &ctx->perf);
}

static heddle_status ctx_start(heddle_ctx *ctx, const struct heddle_ctx_opts *o, int *cpu)
{
    const unsigned n = ctx->nworkers;

    HEDDLE_TRY(heddle_topo_bind_order(ctx->topo, n, cpu));
    HEDDLE_TRY(heddle_sampler_open(ctx, o));
    HEDDLE_TRY(ctx_start_trace(ctx, o));
    heddle_sampler_begin(ctx, o);
    HEDDLE_TRY(ctx_start_models(ctx, o));
    HEDDLE_TRY(ctx_start_order(ctx, cpu));
    HEDDLE_TRY(heddle_pool_init(&ctx->pool, &ctx->alloc));
    ctx->pool.has_ids = o->log != HEDDLE_OFF && o->log_level > 0;
    ctx->pool.has_side = ctx->dev != NULL;
    ctx->pool.has_aux = ctx->dev != NULL && ctx->sched->submitted != NULL;
    HEDDLE_TRY(heddle_park_init(&ctx->park, &ctx->alloc, n + 2));
    ctx->nall = n + 2;
    ctx->worker =
        heddle_zalloc_aligned(&ctx->alloc, ctx->nall, sizeof(*ctx->worker), HEDDLE_CACHE_LINE);
    if (ctx->worker == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(ctx_init_workers(ctx, o->bind != HEDDLE_OFF ? cpu : NULL));
    if (ctx->dev != NULL)
        HEDDLE_TRY(heddle_dev_start(ctx));
    HEDDLE_TRY(ctx_start_sched(ctx, o));
    if (ctx->dev != NULL)
        HEDDLE_TRY(heddle_dev_start_thread(ctx));
    HEDDLE_TRY(ctx_start_threads(ctx, o));
    heddle_sampler_start(ctx);
    return HEDDLE_OK;
}

static void ctx_configure(heddle_ctx *ctx, const struct heddle_ctx_opts *o)
{
    const unsigned spin = o->spin_us != 0 ? o->spin_us : DEFAULT_SPIN_US;
    const bool is_virtual = heddle_dev_is_virtual(ctx);
    /* When submissions take no time there is no need to stop them. */
    const unsigned ncores = is_virtual ? heddle_cost_cores(ctx) : ctx->nworkers;
    const unsigned window = 256 * ncores;

    ctx->helps = o->helps != HEDDLE_OFF || is_virtual;
    ctx->runs_inline = ctx->helps && ctx->nworkers == 1 && ctx->dev == NULL;
    ctx->allows_handoff = ctx->sched->allows_handoff && ctx->dev == NULL;
    ctx->rings_all = ctx->sched->names_workers && o->plan != NULL;
    ctx->spin_ticks = (uint64_t)(spin * 1000.0 / ctx->clock.ns_per_tick);
    ctx->rest_ticks = (uint64_t)(100.0 / ctx->clock.ns_per_tick) + 1;
    ctx->is_window_hard = o->window != 0;
    ctx->window = o->window != 0        ? o->window
                  : ncores == 0         ? UINT32_MAX / 2
                  : window > MIN_WINDOW ? window
                                        : MIN_WINDOW;
    ctx->window_now = ctx->window;
    ctx->watchdog_ms = o->watchdog_ms;
    ctx->message = o->message;
    ctx->message_user = o->message_user;
    ctx_hidden(ctx, &ctx->join, &hidden_join);
    ctx_hidden(ctx, &ctx->combine, &hidden_combine);
    ctx_hidden(ctx, &ctx->release, &hidden_release);
    ctx_hidden(ctx, &ctx->grant, &hidden_grant);
    ctx_hidden(ctx, &ctx->notice, &hidden_notice);
    ctx_hidden(ctx, &ctx->advice, &hidden_advice);
    ctx->advice.mode[0] = HEDDLE_R;
}

/* Is every field in its range? `from` says where the values come from. */
static heddle_status ctx_check_opts(const struct heddle_ctx_opts *o, const char *from)
{
    const enum heddle_switch sw[] = {o->bind, o->helps, o->log, o->check, o->models};
    struct energy_choice energy;
    char why[160] = "";

    if (!(o->energy_weight >= 0 && o->energy_weight <= 1))
        snprintf(why, sizeof(why), "%s has an energy weight of %g, it is 0 to 1", from,
                 o->energy_weight);
    if (!(o->energy_slack >= 0 && o->energy_slack <= 1))
        snprintf(why, sizeof(why), "%s has an energy slack of %g, it is 0 to 1", from,
                 o->energy_slack);
    if (o->nworkers > MAX_WORKERS)
        snprintf(why, sizeof(why), "%s asks for %u workers, the most is %d", from, o->nworkers,
                 MAX_WORKERS);
    if (o->log_level < 0 || o->log_level > HEDDLE_LOG_EXPERT)
        snprintf(why, sizeof(why), "%s asks for log level %d, it is 0 to %d", from, o->log_level,
                 HEDDLE_LOG_EXPERT);
    if ((o->allocator.alloc == NULL) != (o->allocator.free == NULL))
        snprintf(why, sizeof(why), "%s has half an allocator", from);
    if (!heddle_energy_parse(o->energy, &energy))
        snprintf(why, sizeof(why),
                 "%s has the energy option '%.40s': it is off, auto or a "
                 "period such as 20ms",
                 from, o->energy);
    for (size_t i = 0; i < sizeof(sw) / sizeof(sw[0]); i++)
        if ((unsigned)sw[i] > HEDDLE_ON)
            snprintf(why, sizeof(why), "%s has a switch that is %d", from, (int)sw[i]);
    return why[0] == '\0' ? HEDDLE_OK : ctx_refuse(o, HEDDLE_EINVAL, why);
}

static void ctx_free(heddle_ctx *ctx);

/* The scheduler that was asked for, or the one that suits the devices. */
static heddle_status ctx_choose_sched(heddle_ctx *ctx, const struct heddle_ctx_opts *o)
{
    const bool has_classes = ctx->dev != NULL && ctx->dev->ncls > 1;
    char why[128];

    if (o->sched == NULL) {
        ctx->sched =
            has_classes ? heddle_sched_find(HEDDLE_SCHED_WITH_DEVICES) : heddle_sched_table[0];
        return HEDDLE_OK;
    }
    ctx->sched = heddle_sched_find(o->sched);
    if (ctx->sched == NULL) {
        snprintf(why, sizeof(why), "there is no scheduler '%.60s'", o->sched);
        return ctx_refuse(o, HEDDLE_EINVAL, why);
    }
    if (has_classes && !ctx->sched->knows_classes) {
        snprintf(why, sizeof(why), "the scheduler %s knows cores only, and there are devices",
                 ctx->sched->name);
        return ctx_refuse(o, HEDDLE_EINVAL, why);
    }
    return HEDDLE_OK;
}

/* Everything up to the first thread. */
static heddle_status ctx_find(heddle_ctx *ctx, const struct heddle_ctx_opts *o)
{
    char why[256] = "";
    heddle_status st;

    HEDDLE_TRY(ctx_start_topo(ctx, o));
    ctx->checks = o->check == HEDDLE_ON;
    st = heddle_dev_open(ctx, o, why, sizeof(why));
    if (st != HEDDLE_OK)
        return why[0] != '\0' ? ctx_refuse(o, st, why) : st;
    if (heddle_dev_is_virtual(ctx)) {
        ctx->nworkers = 1;
        /* Ticks of the log are virtual nanoseconds. */
        ctx->clock = heddle_clock_virtual();
    }
    HEDDLE_TRY(ctx_choose_sched(ctx, o));
    ctx_configure(ctx, o);
    return HEDDLE_OK;
}

heddle_status heddle_ctx_create(const struct heddle_ctx_opts *opts, heddle_ctx **ctx_out)
{
    struct heddle_ctx_opts o = {.size = sizeof(o)};
    const struct heddle_allocator *a = &heddle_allocator_default;
    heddle_status st;
    heddle_ctx *ctx;
    int *cpu = NULL;
    char why[256] = "";

    HEDDLE_CHECK(ctx_out != NULL);
    if (opts != NULL) {
        HEDDLE_CHECK(opts->size >= sizeof(o));
        o = *opts;
    }
    HEDDLE_TRY(ctx_check_opts(&o, "the caller"));
    st = heddle_env_apply(&o, why, sizeof(why));
    if (st != HEDDLE_OK)
        return ctx_refuse(&o, st, why);
    HEDDLE_TRY(ctx_check_opts(&o, "the environment"));
    if (o.allocator.alloc != NULL)
        a = &o.allocator;
    ctx = heddle_zalloc_aligned(a, 1, sizeof(*ctx), HEDDLE_CACHE_LINE);
    if (ctx == NULL)
        return HEDDLE_ENOMEM;
    ctx->alloc = *a;
    heddle_store_rlx(&ctx->next_id, UINT64_C(1)); /* not shared yet */
    heddle_mutex_init(&ctx->lock, HEDDLE_RANK_LEAF, "context");
    heddle_mutex_init(&ctx->event_lock, HEDDLE_RANK_SCHED, "events");
    heddle_registry_init(&ctx->reg, ctx, &ctx->alloc);
    heddle_clock_init(&ctx->clock);
    st = ctx_find(ctx, &o);
    if (st == HEDDLE_OK) {
        cpu = heddle_zalloc(&ctx->alloc, ctx->nworkers, sizeof(*cpu));
        st = cpu == NULL ? HEDDLE_ENOMEM : ctx_start(ctx, &o, cpu);
        heddle_free(&ctx->alloc, cpu, ctx->nworkers * sizeof(*cpu));
    }
    if (st != HEDDLE_OK) {
        ctx_free(ctx);
        return st;
    }
    *ctx_out = ctx;
    return HEDDLE_OK;
}

/* --- waiting ---------------------------------------------------------------- */

static bool ctx_quiet(void *arg)
{
    return heddle_ctx_is_quiet(arg);
}

/* What a wait returns; the next one starts afresh. */
static heddle_status ctx_take_failure(heddle_ctx *ctx)
{
    heddle_status st;

    heddle_mutex_lock(&ctx->lock);
    st = ctx->waited;
    ctx->waited = HEDDLE_OK;
    heddle_mutex_unlock(&ctx->lock);
    if (heddle_load_rlx(&ctx->is_cancelled) != 0) {
        heddle_store_rlx(&ctx->is_cancelled, 0u);
        st = st == HEDDLE_OK ? HEDDLE_ECANCELED : st;
    }
    return st;
}

/* --- destruction ------------------------------------------------------------ */

static void ctx_stop(heddle_ctx *ctx)
{
    /* Release: pairs with worker_stop(). */
    heddle_store_rel(&ctx->is_stopping, 1u);
    heddle_park_ring_all(&ctx->park, ctx->nworkers);
    for (unsigned i = 0; i < ctx->nworkers; i++)
        if (ctx->worker[i].has_thread) {
            /* Asleep between its last look and the ring: wake it again. */
            heddle_park_wake(&ctx->park, i);
            if (heddle_thread_join(&ctx->worker[i].thread) == HEDDLE_OK)
                ctx->worker[i].has_thread = false;
        }
    heddle_dev_stop(ctx);
}

/* Handles that nobody refers to but that were still in use when let go. */
static void ctx_bury(heddle_ctx *ctx)
{
    heddle_handle *h = ctx->reg.units;

    while (h != NULL) {
        heddle_handle *next = h->next;

        if (h->is_zombie) {
            heddle_unit_free(h);
            next = ctx->reg.units; /* its root may have gone with it */
        }
        h = next;
    }
}

static void ctx_free(heddle_ctx *ctx)
{
    const struct heddle_allocator a = ctx->alloc;

    if (ctx->worker != NULL)
        ctx_stop(ctx);
    heddle_sampler_close(ctx);
    ctx_watch_memory(ctx, NULL); /* a context that was never whole */
    heddle_objects_orphan(ctx);
    heddle_grants_drop(ctx);
    ctx_bury(ctx);
    heddle_kinfo_free_all(ctx);
    heddle_dev_close(ctx);
    heddle_registry_fini(&ctx->reg);
    if (ctx->sched_self != NULL) {
        ctx->sched->fini(ctx->sched_self);
        heddle_free(&a, ctx->sched_self, ctx->sched->instance_size);
    }
    for (unsigned i = 0; ctx->worker != NULL && i < ctx->nall; i++) {
        struct worker *w = &ctx->worker[i];

        heddle_returns_fini(&w->returns, &ctx->pool);
        heddle_slab_fini(&w->sub.slab);
        heddle_free(&a, w->sub.acc, w->sub.acc_cap * sizeof(*w->sub.acc));
    }
    heddle_slab_fini(&ctx->root.slab);
    heddle_free(&a, ctx->root.acc, ctx->root.acc_cap * sizeof(*ctx->root.acc));
    heddle_free(&a, ctx->worker, ctx->nall * sizeof(*ctx->worker));
    heddle_park_fini(&ctx->park, &a);
    heddle_pool_fini(&ctx->pool);
    heddle_free(&a, ctx->steal_order,
                (size_t)ctx->nworkers * (ctx->nworkers - 1) * sizeof(unsigned));
    heddle_free(&a, ctx->flat_order, ctx->flat_bytes);
    (void)heddle_perf_destroy(ctx->perf); /* a wrong model costs time only */
    (void)heddle_trace_close(ctx->trace, NULL, 0);
    heddle_topo_destroy(ctx->topo);
    heddle_mutex_fini(&ctx->event_lock);
    heddle_mutex_fini(&ctx->lock);
    heddle_free(&a, ctx, sizeof(*ctx));
}

heddle_status heddle_ctx_destroy(heddle_ctx *ctx)
{
    heddle_status st, log = HEDDLE_OK;

    if (ctx == NULL)
        return HEDDLE_OK;
    if (heddle_ctx_self(ctx) != NULL)
        return heddle_fail(ctx, HEDDLE_EDEADLK, "a task cannot destroy its context");
    if (heddle_sampler_is_self(ctx))
        return heddle_fail(ctx, HEDDLE_EDEADLK, "a message cannot destroy its context");
    heddle_grants_release(ctx); /* or ends of handles wait for ever */
    (void)heddle_submit_combine(ctx);
    (void)heddle_ctx_help(ctx, ctx_quiet, ctx, 0);
    if (ctx->dev != NULL) {
        (void)heddle_dev_go_home(ctx, 0);
        heddle_dev_drain(ctx);
    }
    heddle_spin_lock(&ctx->submit_lock);
    if (ctx->is_closing || !heddle_ctx_is_quiet(ctx) || heddle_load_acq(&ctx->nwaiters) != 0) {
        heddle_spin_unlock(&ctx->submit_lock);
        return heddle_fail(ctx, HEDDLE_ESTATE, "the context is in use by another thread");
    }
    ctx->is_closing = true;
    heddle_spin_unlock(&ctx->submit_lock);
    while (heddle_load_acq(&ctx->nforeign) != 0)
        heddle_thread_yield();
    st = ctx_take_failure(ctx);
    ctx_stop(ctx);
    ctx_watch_memory(ctx, NULL);
    heddle_sampler_end(ctx);
    log = heddle_trace_close(ctx->trace, NULL, 0);
    ctx->trace = NULL;
    ctx_free(ctx);
    return st != HEDDLE_OK ? st : log;
}

/* Until all tasks have ended; the user's data go home meanwhile. */
static bool ctx_wait_quiet(heddle_ctx *ctx, uint64_t deadline)
{
    bool ok;

    if (ctx->dev != NULL)
        heddle_dev_set_homing(ctx, true);
    ok = heddle_ctx_help(ctx, ctx_quiet, ctx, deadline);
    if (ctx->dev != NULL)
        heddle_dev_set_homing(ctx, false);
    return ok;
}

heddle_status heddle_wait_for(heddle_ctx *ctx, uint64_t timeout_ns)
{
    const uint64_t deadline = heddle_deadline_ns(timeout_ns);

    HEDDLE_CHECK(ctx != NULL);
    if (heddle_ctx_self(ctx) != NULL)
        return heddle_fail(ctx, HEDDLE_EDEADLK,
                           "a task cannot wait for all tasks: it is one of "
                           "them (see heddle_exec_wait)");
    if (heddle_submit_combine(ctx) != HEDDLE_OK)
        return heddle_fail(ctx, HEDDLE_ENOMEM, "no memory to combine a reduction");
    if (!ctx_wait_quiet(ctx, deadline) || (ctx->dev != NULL && !heddle_dev_go_home(ctx, deadline)))
        return HEDDLE_ETIMEDOUT;
    return ctx_take_failure(ctx);
}

heddle_status heddle_wait(heddle_ctx *ctx)
{
    return heddle_wait_for(ctx, 0);
}

heddle_status heddle_ctx_cancel(heddle_ctx *ctx)
{
    HEDDLE_CHECK(ctx != NULL);
    heddle_store_rel(&ctx->is_cancelled, 1u);
    return HEDDLE_OK;
}

/* --- facts ------------------------------------------------------------------ */

heddle_status heddle_ctx_get_allocator(const heddle_ctx *ctx, struct heddle_allocator *out)
{
    if (ctx == NULL || out == NULL)
        return HEDDLE_EINVAL;
    *out = ctx->alloc;
    return HEDDLE_OK;
}

heddle_status heddle_ctx_get_stats(heddle_ctx *ctx, struct heddle_ctx_stats *out)
{
    struct heddle_ctx_stats s = {.size = sizeof(s)};

    HEDDLE_CHECK(ctx != NULL && out != NULL && out->size >= sizeof(*out));
    s.nworkers = ctx->nworkers;
    s.sched = ctx->sched->name;
    s.submitted = heddle_load_acq(&ctx->submitted);
    /* Relaxed: counters. */
    for (unsigned i = 0; i < ctx->nall; i++) {
        const struct worker *w = &ctx->worker[i];

        s.done += heddle_load_rlx(&w->done);
        s.executed += heddle_load_rlx(&w->executed);
        s.failed += heddle_load_rlx(&w->failed);
        s.cancelled += heddle_load_rlx(&w->cancelled);
        s.parks += heddle_load_rlx(&w->parks);
    }
    if (ctx->sched->steals != NULL)
        s.steals = ctx->sched->steals(ctx->sched_self);
    heddle_spin_lock(&ctx->pool.lock);
    s.cells = (uint64_t)ctx->pool.nchunks * HEDDLE_CHUNK;
    s.cell_bytes = ctx->pool.nchunks *
                   (sizeof(struct heddle_chunk) + HEDDLE_CHUNK * sizeof(struct heddle_cell));
    heddle_spin_unlock(&ctx->pool.lock);
    s.data_bytes = heddle_load_rlx(&ctx->reg.used);
    for (unsigned i = 0; ctx->dev != NULL && i < ctx->dev->nnodes; i++) {
        struct heddle_memory_info m = {.size = sizeof(m)};

        if (heddle_ctx_get_memory(ctx, i, &m) != HEDDLE_OK)
            break;
        s.copied_bytes += m.bytes_in;
        s.evictions += m.evictions;
    }
    if (heddle_dev_is_virtual(ctx))
        s.virtual_ns = heddle_ctx_ticks(ctx);
    *out = s;
    return HEDDLE_OK;
}

heddle_status heddle_ctx_dump_log(heddle_ctx *ctx, const char *path)
{
    heddle_status st;
    char why[256] = "";

    HEDDLE_CHECK(ctx != NULL && path != NULL);
    if (!heddle_ctx_is_quiet(ctx))
        return heddle_fail(ctx, HEDDLE_ESTATE, "the log is written when no task is pending");
    heddle_sampler_take(ctx);
    st = heddle_trace_dump(ctx->trace, path, why, sizeof(why));
    if (st != HEDDLE_OK)
        return heddle_fail(ctx, st, "%s", why[0] != '\0' ? why : heddle_status_text(st));
    return st;
}

heddle_status heddle_mark(heddle_ctx *ctx, const char *name)
{
    HEDDLE_CHECK(ctx != NULL && name != NULL);
    HEDDLE_TRY(heddle_submit_lock(ctx)); /* the submitter's lane */
    heddle_trace_mark(ctx->root.lane, heddle_trace_define_string(ctx->trace, name),
                      HEDDLE_LOG_MARK_POINT, heddle_ctx_ticks(ctx));
    heddle_submit_unlock(ctx);
    return HEDDLE_OK;
}

heddle_status heddle_sched_get_info(unsigned i, struct heddle_sched_info *out)
{
    HEDDLE_CHECK(out != NULL);
    for (unsigned k = 0; heddle_sched_table[k] != NULL; k++)
        if (k == i) {
            out->name = heddle_sched_table[k]->name;
            out->help = heddle_sched_table[k]->help;
            return HEDDLE_OK;
        }
    return HEDDLE_ENOENT;
}
