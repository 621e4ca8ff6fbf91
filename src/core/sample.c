/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sample: the energy counters of the machine in the log, and heddle_meter_open().
 *
 * Purpose    a log of level 1 has what each domain used, as often as its counter is
 *            worth reading, and once more at its end: energy of a run is the
 *            difference of the last and the first sample.
 * Structure  open finds the counters (before the log is made: a lane is needed),
 *            begin takes the first sample, a thread those in between, end the last.
 *            A machine without counters has no sampler, and the log says why.
 * Invariants (1) the lane and the meter are used under `lock`
 *            (2) samples of a domain are in order of time, and never decrease
 * Threads    one per context that records energy, while it lives; open, begin, start,
 *            end and close run alone; heddle_sampler_take() from any thread.
 * Errors     none but HEDDLE_ENOMEM: a reading that cannot be used is left out, told
 *            once (a warning) and counted in the log.
 */
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/lock.h"
#include "base/sized.h"
#include "base/text.h"
#include "base/thread.h"
#include "core/ctx.h"
#include "core/env.h"
#include "core/error.h"
#include "core/sample.h"
#include "core/time.h"
#include "heddle/energy_meter.h"
#include "meter/meter.h"
#include "trace/trace.h"

#define STACK_BYTES   (256 * 1024)
#define MIN_PERIOD_NS UINT64_C(100000) /* 100 us */
#define MAX_PERIOD_NS (3600 * HEDDLE_NS_PER_S)

enum { LANES_BEFORE = 4 };

struct sampler_source {
    uint64_t period_ns, due_ns;
    size_t first, n; /* domains */
};

struct heddle_sampler {
    heddle_ctx *ctx;
    heddle_meter *meter;
    struct heddle_trace_lane *lane;
    struct sampler_source *source;
    size_t nsources, ndomains;
    bool *is_told;            /* of each domain: that a reading was dropped */
    struct heddle_mutex lock; /* invariant (1) */
    _Atomic uint32_t stops;   /* futex word */
    _Atomic uint32_t id;      /* the kernel's, of the thread; 0: none yet */
    bool has_thread;
    struct heddle_thread thread;
};

/* --- the option --------------------------------------------------------------- */

bool heddle_energy_parse(const char *text, struct energy_choice *out)
{
    static const char key[] = "sys=";
    const char *comma, *sys;
    char word[32];
    size_t n;

    *out = (struct energy_choice){0};
    if (text == NULL)
        return true;
    sys = strncmp(text, key, sizeof(key) - 1) == 0 ? text : NULL;
    comma = strchr(text, ',');
    if (sys == NULL && comma != NULL) {
        sys = comma + 1;
        if (strncmp(sys, key, sizeof(key) - 1) != 0)
            return false;
    }
    if (sys != NULL) {
        out->sysfs = sys + sizeof(key) - 1;
        if (out->sysfs[0] == '\0')
            return false;
    }
    n = sys == text ? 0 : comma != NULL ? (size_t)(comma - text) : strlen(text);
    if (n >= sizeof(word))
        return false;
    memcpy(word, text, n);
    word[n] = '\0';
    out->is_off = strcmp(word, "off") == 0;
    if (sys == text || out->is_off || strcmp(word, "auto") == 0)
        return true;
    return heddle_parse_ns(word, &out->period_ns) == HEDDLE_OK && out->period_ns >= MIN_PERIOD_NS &&
           out->period_ns <= MAX_PERIOD_NS;
}

/* --- counters ------------------------------------------------------------------ */

/* With a CUDA library of its own a process need not have a device node. */
static const char *nvml_library(void)
{
    return heddle_env_value("HEDDLE_CUDA_LIBRARY") != NULL ? "libnvidia-ml.so.1" : NULL;
}

heddle_status heddle_meter_open(const struct heddle_meter_opts *opts, heddle_meter **out)
{
    struct heddle_meter_env env = {.nvml_library = nvml_library()};
    struct heddle_meter_opts o;
    struct energy_choice choice;

    HEDDLE_CHECK(out != NULL);
    HEDDLE_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_meter_opts, &o, opts));
    if (!heddle_energy_parse(heddle_env_value("HEDDLE_ENERGY"), &choice)) {
        if (o.why != NULL && o.why_bytes > 0)
            snprintf(o.why, o.why_bytes, "the variable HEDDLE_ENERGY makes no sense: %s",
                     heddle_env_value("HEDDLE_ENERGY"));
        return HEDDLE_EINVAL;
    }
    env.alloc = o.alloc;
    env.sysfs = o.sysfs != NULL ? o.sysfs : choice.sysfs;
    return heddle_meter_create(&env, NULL, out);
}

static heddle_status find_counters(heddle_ctx *ctx, const char *sysfs, heddle_meter **out)
{
    const struct heddle_meter_env env = {.alloc = &ctx->alloc,
                                         .sysfs = sysfs,
                                         .nvml_library = nvml_library(),
                                         .has_gpu_list = true,
                                         .gpu = ctx->has_devs.gpu,
                                         .ngpus = ctx->has_devs.ngpus};

    return heddle_meter_create(&env, NULL, out);
}

/* --- start --------------------------------------------------------------------- */

static heddle_status sampler_fill(struct heddle_sampler *s, const struct energy_choice *choice)
{
    const struct heddle_allocator *a = &s->ctx->alloc;
    struct heddle_meter_source src = {.size = sizeof(src)};
    size_t n = 0;

    while (heddle_meter_get_source(s->meter, n, &src) == HEDDLE_OK)
        n++;
    s->ndomains = heddle_meter_ndomains(s->meter);
    if (s->ndomains == 0)
        return HEDDLE_OK;
    s->source = heddle_zalloc(a, n, sizeof(*s->source));
    s->is_told = heddle_zalloc(a, s->ndomains, sizeof(*s->is_told));
    s->nsources = s->source != NULL ? n : 0;
    if (s->source == NULL || s->is_told == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0, first = 0; i < n; i++) {
        if (heddle_meter_get_source(s->meter, i, &src) != HEDDLE_OK)
            break;
        s->source[i] = (struct sampler_source){
            .period_ns = choice->period_ns != 0 ? choice->period_ns : src.period_ns,
            .first = first,
            .n = src.ndomains};
        first += src.ndomains;
    }
    return HEDDLE_OK;
}

heddle_status heddle_sampler_open(heddle_ctx *ctx, const struct heddle_ctx_opts *o)
{
    struct energy_choice choice;
    struct heddle_sampler *s;

    if (o->log == HEDDLE_OFF || o->log_level < HEDDLE_LOG_GRAPH || !ctx->time->is_measured ||
        !heddle_energy_parse(o->energy, &choice) || choice.is_off)
        return HEDDLE_OK;
    s = heddle_zalloc(&ctx->alloc, 1, sizeof(*s));
    if (s == NULL)
        return HEDDLE_ENOMEM;
    s->ctx = ctx;
    heddle_mutex_init(&s->lock, HEDDLE_RANK_METER, "energy");
    ctx->sampler = s;
    HEDDLE_TRY(find_counters(ctx, choice.sysfs, &s->meter));
    return sampler_fill(s, &choice);
}

uint32_t heddle_sampler_lanes(const heddle_ctx *ctx)
{
    return ctx->sampler != NULL && ctx->sampler->ndomains > 0 ? 1 : 0;
}

/* What readers need to know of each domain. */
static void define_domains(struct heddle_sampler *s)
{
    struct heddle_trace *tr = s->ctx->trace;
    struct heddle_meter_source src = {.size = sizeof(src)};
    struct heddle_meter_domain d = {.size = sizeof(d)};
    char key[48], value[2 * HEDDLE_METER_NAME];
    struct heddle_text t;

    for (size_t i = 0; i < s->ndomains; i++) {
        if (heddle_meter_get_domain(s->meter, i, &d) != HEDDLE_OK ||
            heddle_meter_get_source(s->meter, d.source, &src) != HEDDLE_OK)
            break;
        snprintf(key, sizeof(key), "energy.domain.%zu", i);
        snprintf(value, sizeof(value), "%s %s", d.name, d.device);
        heddle_trace_define_info(tr, key, value);
        snprintf(key, sizeof(key), "energy.source.%zu", i);
        heddle_text_init(&t, value, sizeof(value));
        heddle_text_add(&t, "%s every ", src.name);
        heddle_text_ns(&t, s->source[d.source].period_ns);
        heddle_trace_define_info(tr, key, value);
    }
}

/* Reads domain i into the log. */
static void sampler_read(struct heddle_sampler *s, size_t i)
{
    struct heddle_meter_sample m = {.size = sizeof(m)};
    struct heddle_meter_domain d = {.size = sizeof(d)};
    char why[HEDDLE_METER_NAME + HEDDLE_METER_WHY] = "";
    uint64_t before, after;
    heddle_status st;

    heddle_mutex_lock(&s->lock);
    before = heddle_ctx_ticks(s->ctx);
    st = heddle_meter_read(s->meter, i, &m);
    after = heddle_ctx_ticks(s->ctx);
    if (st == HEDDLE_OK) {
        heddle_trace_event(s->lane, HEDDLE_TRACE_DATA, HEDDLE_LOG_POWER,
                           &(struct heddle_trace_event){.t = before + (after - before) / 2,
                                                        .x = m.microjoules,
                                                        .b = (uint16_t)i,
                                                        .c = m.has_gap ? HEDDLE_LOG_POWER_GAP : 0});
    } else if (!s->is_told[i] && heddle_meter_get_domain(s->meter, i, &d) == HEDDLE_OK) {
        s->is_told[i] = true;
        snprintf(why, sizeof(why), "%s: %s", d.name, d.why);
    }
    heddle_mutex_unlock(&s->lock);
    if (why[0] != '\0') /* the callback is the user's: no lock is held */
        heddle_report(s->ctx, HEDDLE_WARNING, "a sample of the energy counter is left out: %s",
                      why);
}

void heddle_sampler_take(heddle_ctx *ctx)
{
    struct heddle_sampler *s = ctx->sampler;

    for (size_t i = 0; s != NULL && i < s->ndomains; i++)
        sampler_read(s, i);
}

/* Why there are no samples; "": there are. */
static void explain(heddle_ctx *ctx, const struct heddle_ctx_opts *o, struct heddle_text *t)
{
    char why[3 * HEDDLE_METER_WHY];

    if (heddle_sampler_lanes(ctx) > 0)
        return;
    if (ctx->sampler != NULL)
        heddle_text_add(t, "no counter: %s",
                        heddle_meter_explain(ctx->sampler->meter, why, sizeof(why)));
    else if (o->log_level < HEDDLE_LOG_GRAPH)
        heddle_text_str(t, "not recorded: the log has level 0");
    else
        heddle_text_str(t, "not recorded: it was switched off");
}

void heddle_sampler_begin(heddle_ctx *ctx, const struct heddle_ctx_opts *o)
{
    const uint32_t lane = ctx->nworkers + LANES_BEFORE + ctx->has_devs.nlanes;
    char why[4 * HEDDLE_METER_WHY];
    struct heddle_text t;

    if (!ctx->time->is_measured)
        return; /* a simulated machine has counters of its own */
    heddle_text_init(&t, why, sizeof(why));
    explain(ctx, o, &t);
    if (why[0] != '\0') {
        heddle_trace_define_info(ctx->trace, "energy", why);
        heddle_sampler_close(ctx);
        return;
    }
    ctx->sampler->lane = heddle_trace_get_lane(ctx->trace, lane);
    heddle_trace_define_lane(ctx->trace, lane, HEDDLE_LOG_OTHER, "energy", -1, 0);
    define_domains(ctx->sampler);
    heddle_sampler_take(ctx);
}

/* --- the thread ------------------------------------------------------------------ */

/* Reads what is due; returns when to look again. */
static uint64_t sampler_round(struct heddle_sampler *s)
{
    const uint64_t now = heddle_clock_ns();
    uint64_t next = UINT64_MAX;

    for (size_t i = 0; i < s->nsources; i++) {
        struct sampler_source *src = &s->source[i];

        if (src->n == 0)
            continue;
        if (src->due_ns <= now) {
            for (size_t k = 0; k < src->n; k++)
                sampler_read(s, src->first + k);
            src->due_ns += src->period_ns;
            if (src->due_ns <= now) /* it was late: no burst of samples */
                src->due_ns = now + src->period_ns;
        }
        next = src->due_ns < next ? src->due_ns : next;
    }
    return next;
}

static void *sampler_main(void *arg)
{
    struct heddle_sampler *s = arg;
    uint64_t next;

    heddle_store_rlx(&s->id, heddle_thread_id()); /* read by itself alone */
    next = sampler_round(s);
    /* Acquire: pairs with the release of heddle_sampler_end(). */
    while (heddle_load_acq(&s->stops) == 0) {
        const struct timespec until = {.tv_sec = (time_t)(next / HEDDLE_NS_PER_S),
                                       .tv_nsec = (long)(next % HEDDLE_NS_PER_S)};

        (void)syscall(SYS_futex, &s->stops, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0, &until, NULL,
                      FUTEX_BITSET_MATCH_ANY);
        if (heddle_load_acq(&s->stops) == 0)
            next = sampler_round(s);
    }
    return NULL;
}

bool heddle_sampler_is_self(const heddle_ctx *ctx)
{
    /* Relaxed: equal only if this thread has written it. */
    return ctx->sampler != NULL && heddle_load_rlx(&ctx->sampler->id) == heddle_thread_id();
}

void heddle_sampler_start(heddle_ctx *ctx)
{
    const struct heddle_thread_opts o = {.name = "heddle-energy", .stack_bytes = STACK_BYTES};
    struct heddle_sampler *s = ctx->sampler;
    const uint64_t now = heddle_clock_ns();

    if (s == NULL)
        return;
    for (size_t i = 0; i < s->nsources; i++)
        s->source[i].due_ns = now + s->source[i].period_ns;
    s->has_thread = heddle_thread_create(&s->thread, &o, sampler_main, s) == HEDDLE_OK;
    if (!s->has_thread)
        heddle_trace_define_info(ctx->trace, "energy.problem",
                                 "there are two samples only: their thread could not be started");
}

/* --- the end ---------------------------------------------------------------------- */

static void sampler_join(struct heddle_sampler *s)
{
    if (!s->has_thread)
        return;
    heddle_store_rel(&s->stops, 1u);
    (void)syscall(SYS_futex, &s->stops, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    if (heddle_thread_join(&s->thread) == HEDDLE_OK)
        s->has_thread = false;
}

void heddle_sampler_end(heddle_ctx *ctx)
{
    struct heddle_sampler *s = ctx->sampler;
    struct heddle_meter_domain d = {.size = sizeof(d)};
    char key[48], value[HEDDLE_METER_WHY + 128];

    if (s == NULL)
        return;
    sampler_join(s);
    heddle_sampler_take(ctx);
    for (size_t i = 0; i < s->ndomains; i++) {
        if (heddle_meter_get_domain(s->meter, i, &d) != HEDDLE_OK || d.dropped == 0)
            continue;
        snprintf(key, sizeof(key), "energy.problem.%zu", i);
        snprintf(value, sizeof(value), "%llu of %llu samples are left out: %s",
                 (unsigned long long)d.dropped, (unsigned long long)(d.dropped + d.read), d.why);
        heddle_trace_define_info(ctx->trace, key, value);
    }
}

void heddle_sampler_close(heddle_ctx *ctx)
{
    struct heddle_sampler *s = ctx->sampler;

    if (s == NULL)
        return;
    ctx->sampler = NULL;
    sampler_join(s);
    heddle_meter_close(s->meter);
    heddle_mutex_fini(&s->lock);
    heddle_free(&ctx->alloc, s->source, s->nsources * sizeof(*s->source));
    heddle_free(&ctx->alloc, s->is_told, s->ndomains * sizeof(*s->is_told));
    heddle_free(&ctx->alloc, s, sizeof(*s));
}
