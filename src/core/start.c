/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * start: a context comes into being.
 *
 * Structure  options are checked, devices found, the parts made in the order of
 *            struct heddle_ctx, threads started last. A half-built context is freed
 *            by heddle_ctx_free() (ctx.c), as a whole one is.
 * Threads    the thread that creates the context; no other thread knows of it yet.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/lock.h"
#include "base/park.h"
#include "base/sized.h"
#include "base/text.h"
#include "base/thread.h"
#include "core/ctx.h"
#include "core/dev/dev.h"
#include "core/engine.h"
#include "core/env.h"
#include "core/hidden.h"
#include "core/kinfo.h"
#include "core/lost.h"
#include "core/sample.h"
#include "core/submitter.h"
#include "core/time.h"
#include "core/worker.h"
#include "data/data.h"
#include "heddle/version.h"
#include "mem/mem.h"
#include "sched/sched.h"
#include "task/task.h"
#include "topo/topo.h"
#include "trace/trace.h"

enum {
    MAX_WORKERS = 4096,
    DEFAULT_SPIN_US = 200,
    DEFAULT_STACK = 8 << 20,
    MIN_WINDOW = 1024, /* cells in flight by default: 256 per worker, at least */
};

/* --- hidden tasks ------------------------------------------------------------- */

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

/* --- parts -------------------------------------------------------------------- */

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

/* There is no context to keep the sentence: the options say where it goes. */
static heddle_status ctx_refuse(const struct heddle_ctx_opts *o, heddle_status st, const char *why)
{
    if (o->why != NULL && o->why_bytes > 0)
        snprintf(o->why, o->why_bytes, "%s", why);
    if (o->message != NULL)
        o->message(o->message_user, HEDDLE_ERROR, why);
    return st;
}

/* Asked for by the option, so the library may; one call, so that lines stay whole. */
static void message_print(void *user, enum heddle_severity severity, const char *text)
{
    static const char *const word[] = {[HEDDLE_WARNING] = "warning: ", [HEDDLE_ERROR] = "error: "};

    (void)user;
    dprintf(STDERR_FILENO, "heddle: %s%s\n", severity == HEDDLE_INFO ? "" : word[severity], text);
}

/* Where the sentences of the context go. It is settled before any other option, so that
 * a mistake in the other options is reported there. */
static heddle_status ctx_choose_messages(struct heddle_ctx_opts *o)
{
    char why[160];

    if (o->messages == NULL && !o->ignore_env)
        o->messages = heddle_env_value("HEDDLE_MESSAGES");
    if (o->messages == NULL || strcmp(o->messages, "off") == 0)
        return HEDDLE_OK;
    if (strcmp(o->messages, "stderr") != 0) {
        snprintf(why, sizeof(why), "messages go to stderr, or are off, but not to '%.60s'",
                 o->messages);
        return ctx_refuse(o, HEDDLE_EINVAL, why);
    }
    if (o->message == NULL)
        o->message = message_print;
    return HEDDLE_OK;
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

/* What a reader of the log may want to know about the run. */
static void ctx_define(heddle_ctx *ctx, const struct heddle_ctx_opts *o)
{
    struct heddle_trace *tr = ctx->trace;
    char text[128] = "";

    heddle_trace_define_info(tr, "heddle", heddle_version());
    heddle_trace_define_info(tr, "program", program_invocation_short_name);
    if (gethostname(text, sizeof(text) - 1) == 0)
        heddle_trace_define_info(tr, "host", text);
    ctx->time->define(ctx, o);
    heddle_trace_define_info(tr, "scheduler", ctx->sched->name);
    heddle_trace_define_info(tr, "cpu", ctx->topo->model);
    snprintf(text, sizeof(text), "%u",
             ctx->dev != NULL ? ctx->has_devs.sched.nworkers : ctx->nworkers);
    heddle_trace_define_info(tr, "workers", text);
    snprintf(text, sizeof(text), "%d", o->log_level);
    heddle_trace_define_info(tr, "log level", text);
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
        .nlanes = ctx->nworkers + 4 + ctx->has_devs.nlanes + heddle_sampler_lanes(ctx),
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
    if (!ctx->has_devs.watches_host)
        heddle_ctx_watch_memory(ctx, ctx_memory_changed);
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

    for (unsigned i = 0; i < ctx->nall; i++) {
        struct worker *w = &ctx->worker[i];
        const bool is_slot = i < n;
        const unsigned lane = is_slot ? i : i + 1; /* n is the submitter's */
        enum heddle_log_lane_kind kind = HEDDLE_LOG_OTHER;
        char name[24];

        w->ctx = ctx;
        w->id = i;
        w->pusher = is_slot ? (int)i : HEDDLE_SCHED_FOREIGN;
        w->cpu = !is_slot || cpu == NULL ? -1 : cpu[i];
        w->lane = heddle_trace_get_lane(ctx->trace, lane);
        ctx_init_submitter(ctx, &w->sub, w->pusher, i, lane);
        HEDDLE_TRY(heddle_returns_init(&w->returns, &ctx->pool, n + 3));
        if (is_slot)
            kind = ctx->time->name_slot(i, name, sizeof(name));
        else
            snprintf(name, sizeof(name), i == n ? "outside" : "device thread");
        heddle_trace_define_lane(ctx->trace, lane, kind, name, w->cpu, 0);
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
    char why[320] = "";
    struct heddle_sched_env env = {0};
    heddle_status st;

    if (ctx->sched->knows_classes)
        env = ctx->has_devs.sched;
    env.alloc = &ctx->alloc;
    env.nworkers = ctx->dev != NULL ? ctx->has_devs.sched.nworkers : ctx->nworkers;
    env.steal_order = ctx->steal_order;
    env.placement = o->placement;
    env.why = why;
    env.why_bytes = sizeof(why);
    if (ctx->has_devs.sched.ncls == 1 && env.nworkers > 1) {
        HEDDLE_TRY(ctx_start_flat_order(ctx, env.nworkers));
        env.steal_order = ctx->flat_order;
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

    if (o->models == HEDDLE_OFF || !ctx->time->is_measured)
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
    HEDDLE_TRY(ctx_start_sched(ctx, o));
    if (ctx->dev != NULL)
        HEDDLE_TRY(heddle_dev_start(ctx));
    HEDDLE_TRY(ctx_start_threads(ctx, o));
    heddle_sampler_start(ctx);
    return HEDDLE_OK;
}

/* --- options ------------------------------------------------------------------ */

static void ctx_configure(heddle_ctx *ctx, const struct heddle_ctx_opts *o)
{
    const unsigned spin = o->spin_us != 0 ? o->spin_us : DEFAULT_SPIN_US;
    const unsigned ncores = ctx->time->window_cores(ctx);
    const unsigned window = 256 * ncores;

    ctx->helps = o->helps != HEDDLE_OFF || !ctx->time->has_threads;
    ctx->forms_gangs = !ctx->checks && ctx->time->has_threads;
    ctx->runs_inline = ctx->helps && ctx->nworkers == 1 && ctx->dev == NULL;
    ctx->allows_handoff = ctx->sched->allows_handoff && ctx->dev == NULL;
    ctx->has_short_cut = ctx->allows_handoff && (ctx->runs_inline || ctx->sched->length != NULL);
    ctx->rings_all = ctx->sched->names_workers && o->placement != NULL;
    ctx->spin_ticks = (uint64_t)(spin * 1000.0 / ctx->clock.ns_per_tick);
    ctx->rest_ticks = (uint64_t)(100.0 / ctx->clock.ns_per_tick) + 1;
    ctx->look_ticks = (uint64_t)(LOST_PERIOD_NS / ctx->clock.ns_per_tick);
    ctx->is_window_hard = o->window != 0;
    ctx->window = o->window != 0        ? o->window
                  : ncores == 0         ? UINT32_MAX / 2
                  : window > MIN_WINDOW ? window
                                        : MIN_WINDOW;
    ctx->window_now = ctx->window;
    ctx->memory_waits = o->memory_waits == HEDDLE_ON && o->disk_path == NULL;
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
    const enum heddle_switch sw[] = {o->bind,   o->helps,   o->log,         o->check,
                                     o->models, o->execute, o->memory_waits};
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

/* The scheduler that was asked for, or the one that suits the devices. */
static heddle_status ctx_choose_sched(heddle_ctx *ctx, const struct heddle_ctx_opts *o)
{
    const bool has_classes = ctx->has_devs.sched.ncls > 1;
    struct heddle_text t;
    char why[256];

    if (o->sched == NULL) {
        ctx->sched =
            has_classes ? heddle_sched_find(HEDDLE_SCHED_WITH_DEVICES) : heddle_sched_table[0];
        return HEDDLE_OK;
    }
    ctx->sched = heddle_sched_find(o->sched);
    if (ctx->sched == NULL) {
        heddle_text_init(&t, why, sizeof(why));
        heddle_text_add(&t, "there is no scheduler '%.60s', there are", o->sched);
        for (unsigned i = 0; heddle_sched_table[i] != NULL; i++)
            heddle_text_add(&t, "%s %s", i > 0 ? "," : "", heddle_sched_table[i]->name);
        return ctx_refuse(o, HEDDLE_EINVAL, why);
    }
    if (has_classes && !ctx->sched->knows_classes) {
        snprintf(why, sizeof(why), "the scheduler %s knows cores only, and there are devices",
                 ctx->sched->name);
        return ctx_refuse(o, HEDDLE_EINVAL, why);
    }
    return HEDDLE_OK;
}

/* --- the whole ---------------------------------------------------------------- */

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
    HEDDLE_TRY(ctx_choose_sched(ctx, o));
    ctx_configure(ctx, o);
    return HEDDLE_OK;
}

heddle_status heddle_ctx_create(const struct heddle_ctx_opts *opts, heddle_ctx **ctx_out)
{
    struct heddle_ctx_opts o;
    const struct heddle_allocator *a = &heddle_allocator_default;
    heddle_status st;
    heddle_ctx *ctx;
    int *cpu = NULL;
    char why[256] = "";

    HEDDLE_CHECK(ctx_out != NULL);
    HEDDLE_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_ctx_opts, &o, opts));
    HEDDLE_TRY(ctx_choose_messages(&o));
    HEDDLE_TRY(ctx_check_opts(&o, "the caller"));
    st = heddle_env_apply(&o, why, sizeof(why));
    if (st != HEDDLE_OK)
        return ctx_refuse(&o, st, why);
    HEDDLE_TRY(ctx_check_opts(&o, "the environment"));
    if (o.message != NULL && !o.ignore_env)
        heddle_env_report_unknown(o.message, o.message_user);
    if (o.allocator.alloc != NULL)
        a = &o.allocator;
    ctx = heddle_zalloc_aligned(a, 1, sizeof(*ctx), HEDDLE_CACHE_LINE);
    if (ctx == NULL)
        return HEDDLE_ENOMEM;
    ctx->alloc = *a;
    ctx->time = &heddle_time_real;                /* heddle_dev_open() may change it */
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
        heddle_ctx_free(ctx);
        return st;
    }
    *ctx_out = ctx;
    return HEDDLE_OK;
}
