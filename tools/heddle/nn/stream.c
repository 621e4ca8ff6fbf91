/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nn/stream: requests through the stages of routes, in virtual time.
 *
 * Machine   a file is written with the classes, memories and links of the problem, the time of
 *           each stage, and one class more at the host's memory, the port: it makes the gaps
 *           between arrivals and takes results, so neither costs a core.
 * Stages    (stages.h) are tasks. Their operands are the values that cross their borders, and what
 *           is streamed for them; the runtime copies these over the links of the machine.
 *           Weights that are kept are no operands.
 * Decisions are made when a request arrives, or an instance becomes idle: in the callbacks of
 *           tasks, all on the thread that waits.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/device.h"
#include "base/rng.h"
#include "heddle/heddle.h"
#include "nn/place.h"
#include "nn/stages.h"

enum { STREAM_PORTS = 64, STREAM_ROUTES = 64, STREAM_IN_FLIGHT = 64 };

#define STREAM_FAIL(p, ...) (snprintf((p)->why, sizeof((p)->why), __VA_ARGS__), false)

struct flow {
    struct problem *p;
    const struct stream_opts *o;
    heddle_ctx *ctx;
    struct route *route;
    uint32_t nroutes;
    heddle_kernel gap;
    char *host; /* what inputs and streamed weights are copied from */
    struct heddle_rng rng;
    uint64_t arrived, done, started;
    uint32_t idle[HEDDLE_SPREAD_CLASSES]; /* instances */
    double *arrival, *end;
    heddle_status status;
};

/* A request in flight. */
struct request {
    struct flow *s;
    uint64_t number;
    const struct route *route;
    heddle_handle **handle; /* by value, then by stage: streamed weights */
};

bool stream_can(const struct problem *p)
{
    uint32_t kinds = 1u << HEDDLE_DEV_OPENCL; /* the port */

    for (uint32_t r = 0; r < p->m.nclasses; r++) {
        if ((kinds & 1u << p->kind[r]) != 0)
            return false;
        kinds |= 1u << p->kind[r];
    }
    return true;
}

/* --- routes --------------------------------------------------------------------------------- */

/* The routes of the spread, or one for each class that can run everything. */
static bool stream_routes(struct flow *s, const struct heddle_spread_result *spread)
{
    const struct problem *p = s->p;
    uint32_t *cls = calloc(p->g.nops, sizeof(*cls));
    bool ok = cls != NULL;

    if (s->o->policy == STREAM_INSTANCES) {
        for (uint32_t k = 0; k < p->m.nclasses && ok; k++) {
            if (!(problem_alone(p, k) < INFINITY))
                continue;
            for (uint32_t i = 0; i < p->g.nops; i++)
                cls[i] = k;
            s->idle[k] = p->nworkers[k];
            ok = stages_make(p, s->nroutes, cls, NULL, &s->route[s->nroutes]);
            s->nroutes++;
        }
    } else {
        for (uint32_t k = 0; k < spread->nroutes && k < STREAM_ROUTES && ok; k++) {
            s->route[s->nroutes].rate = spread->route[k].rate;
            ok = stages_make(p, s->nroutes, spread->route[k].cls, spread->is_streamed,
                             &s->route[s->nroutes]);
            s->nroutes++;
        }
    }
    free(cls);
    return ok ? true
              : STREAM_FAIL(s->p, "no memory for the stages, or a stage has too many values");
}

/* --- the machine ------------------------------------------------------------------------------ */

static void stream_write(const struct flow *s, FILE *f)
{
    const struct problem *p = s->p;

    fprintf(f, "heddle-machine 2\n");
    for (uint32_t k = 1; k < p->m.nnodes; k++)
        fprintf(f, "node %s\n", p->node_name[k]);
    for (uint32_t k = 1; k < p->m.nnodes; k++)
        fprintf(
            f,
            "link host %s gbytes %.9g latency_us %.9g\nlink %s host gbytes %.9g latency_us %.9g\n",
            p->node_name[k], p->memory[k].in_rate, p->memory[k].in_latency / 1e3, p->node_name[k],
            p->memory[k].out_rate, p->memory[k].out_latency / 1e3);
    for (uint32_t r = 0; r < p->m.nclasses; r++) {
        fprintf(f, "class %s kind %s workers %" PRIu32, p->cls_name[r],
                heddle_device_name((enum heddle_device)p->kind[r]), p->nworkers[r]);
        if (p->node[r] != 0)
            fprintf(f, " node %s", p->node_name[p->node[r]]);
        fprintf(f, "\n");
    }
    fprintf(f, "class port-of-requests kind opencl workers %d node host\n", STREAM_PORTS);
    fprintf(f, "time gap port-of-requests 1000000 1000\n"); /* a byte is a ns */
    for (uint32_t i = 0; i < s->nroutes; i++) {
        const struct route *r = &s->route[i];

        for (uint32_t k = 0; k < r->nstages; k++) {
            const struct stage *g = &r->stage[k];

            fprintf(f, "time %s %s %" PRIu64 " %.6f\n", g->name, p->cls_name[g->cls], g->bytes,
                    g->ns / 1e3);
            if (p->kind[g->cls] != HEDDLE_DEV_CPU) /* alone: it fills the device */
                fprintf(f, "share %s %s %" PRIu64 " %.6f\n", g->name, p->cls_name[g->cls], g->bytes,
                        g->ns / 1e3);
        }
        fprintf(f, "time %s port-of-requests %" PRIu64 " 0.001\n", r->name, r->result_bytes);
    }
}

static bool stream_begin(struct flow *s)
{
    char path[] = "/tmp/heddle-place-XXXXXX", why[300] = "";
    const struct heddle_ctx_opts o = {.size = sizeof(o),
                                      .machine = path,
                                      .sched = "prio",
                                      .models = HEDDLE_OFF,
                                      .model_dir = "",
                                      .ignore_env = true,
                                      .why = why,
                                      .why_bytes = sizeof(why)};
    const int fd = mkstemp(path);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    heddle_status st;

    if (f == NULL)
        return STREAM_FAIL(s->p, "no temporary file in /tmp");
    stream_write(s, f);
    if (fclose(f) != 0) {
        (void)remove(path);
        return STREAM_FAIL(s->p, "the temporary file cannot be written");
    }
    st = heddle_ctx_create(&o, &s->ctx);
    (void)remove(path);
    return st == HEDDLE_OK ? true : STREAM_FAIL(s->p, "%s", why);
}

/* --- requests ------------------------------------------------------------------------------- */

static double stream_now(const struct flow *s)
{
    struct heddle_ctx_stats st = {.size = sizeof(st)};

    (void)heddle_ctx_get_stats(s->ctx, &st);
    return (double)st.virtual_ns;
}

static void stream_failed(struct flow *s, heddle_status st)
{
    struct heddle_error e = {.size = sizeof(e)};

    if (st == HEDDLE_OK || s->status != HEDDLE_OK)
        return;
    s->status = st;
    (void)heddle_ctx_error(s->ctx, &e);
    (void)STREAM_FAIL(s->p, "%s", e.message[0] != '\0' ? e.message : heddle_status_text(st));
}

static heddle_status stream_handle(struct request *q, uint32_t slot, uint64_t bytes, bool is_there)
{
    if (q->handle[slot] != NULL)
        return HEDDLE_OK;
    return heddle_handle_vector(q->s->ctx, is_there ? q->s->host : NULL,
                                bytes > 0 ? (size_t)bytes : 1, HEDDLE_U8, &q->handle[slot]);
}

static void stream_next(struct flow *s);

static void stream_stage_done(void *user, heddle_status st)
{
    stream_failed(user, st);
}

/* The results of a request are in the host's memory. */
static void stream_request_done(void *user, heddle_status st)
{
    struct request *q = user;
    struct flow *s = q->s;

    stream_failed(s, st);
    s->end[q->number] = stream_now(s);
    s->done++;
    if (s->o->policy == STREAM_INSTANCES)
        s->idle[q->route->stage[0].cls]++;
    for (uint32_t i = 0; i < s->p->g.nvalues + q->route->nstages; i++)
        heddle_handle_unref(q->handle[i]);
    free(q->handle);
    free(q);
    stream_next(s);
}

static heddle_status stream_submit(struct request *q, uint32_t k)
{
    struct flow *s = q->s;
    const struct stage *g = &q->route->stage[k];
    heddle_handle *h[STAGES_OPERANDS];
    enum heddle_mode mode[STAGES_OPERANDS];
    struct heddle_task_opts opts = {
        .size = sizeof(opts), .done = stream_stage_done, .done_user = s};
    uint32_t n = 0;
    heddle_status st = HEDDLE_OK;

    for (uint32_t i = 0; i < g->noperands && st == HEDDLE_OK; i++) {
        const uint32_t v = g->operand[i];

        st = stream_handle(q, v, s->p->g.bytes[v], s->p->g.maker[v] == UINT32_MAX);
        h[n] = q->handle[v];
        mode[n++] = i < g->nin ? HEDDLE_R : HEDDLE_W;
    }
    if (st == HEDDLE_OK && g->streamed > 0) {
        st = stream_handle(q, s->p->g.nvalues + k, g->streamed, true);
        h[n] = q->handle[s->p->g.nvalues + k];
        mode[n++] = HEDDLE_R;
    }
    if (st != HEDDLE_OK)
        return st;
    return heddle_submit(s->ctx, &g->kernel,
                         &(struct heddle_call){.noperands = n,
                                               .operands = h,
                                               .modes = mode,
                                               .priority = (int)-(int64_t)q->number,
                                               .opts = &opts});
}

static heddle_status stream_take(struct request *q)
{
    const struct heddle_task_opts opts = {
        .size = sizeof(opts), .done = stream_request_done, .done_user = q};
    heddle_handle *h[STAGES_OPERANDS];
    enum heddle_mode mode[STAGES_OPERANDS];
    uint32_t n = 0;

    for (uint32_t i = 0; i < q->route->nresults; i++) {
        HEDDLE_TRY(stream_handle(q, q->route->result[i], q->s->p->g.bytes[q->route->result[i]],
                                 q->s->p->g.maker[q->route->result[i]] == UINT32_MAX));
        h[n] = q->handle[q->route->result[i]];
        mode[n++] = HEDDLE_R;
    }
    return heddle_submit(
        q->s->ctx, &q->route->take,
        &(struct heddle_call){.noperands = n, .operands = h, .modes = mode, .opts = &opts});
}

static void stream_start(struct flow *s, uint64_t number, const struct route *r)
{
    struct request *q = calloc(1, sizeof(*q));
    heddle_status st = q != NULL ? HEDDLE_OK : HEDDLE_ENOMEM;

    if (st == HEDDLE_OK) {
        *q = (struct request){.s = s, .number = number, .route = r};
        q->handle = calloc(s->p->g.nvalues + r->nstages + 1, sizeof(heddle_handle *));
        st = q->handle != NULL ? HEDDLE_OK : HEDDLE_ENOMEM;
    }
    s->started++;
    for (uint32_t k = 0; k < r->nstages && st == HEDDLE_OK; k++)
        st = stream_submit(q, k);
    if (st == HEDDLE_OK)
        st = stream_take(q);
    stream_failed(s, st);
}

/* --- decisions -------------------------------------------------------------------------------- */

static struct route *stream_by_rates(struct flow *s)
{
    struct route *best = &s->route[0];
    double all = 0.0;

    for (uint32_t i = 0; i < s->nroutes; i++) {
        s->route[i].credit += s->route[i].rate;
        all += s->route[i].rate;
        if (s->route[i].credit > best->credit)
            best = &s->route[i];
    }
    best->credit -= all;
    return best;
}

/* The fastest instance that is idle; NULL: none is. */
static struct route *stream_instance(struct flow *s)
{
    struct route *best = NULL;

    for (uint32_t i = 0; i < s->nroutes; i++)
        if (s->idle[s->route[i].stage[0].cls] > 0 &&
            (best == NULL || s->route[i].stage[0].ns < best->stage[0].ns))
            best = &s->route[i];
    return best;
}

/* Starts what can start. */
static void stream_next(struct flow *s)
{
    const bool is_open = s->o->gap_ns > 0;

    while (s->status == HEDDLE_OK && s->started < (is_open ? s->arrived : s->o->requests)) {
        const uint64_t number = s->started;
        struct route *r;

        if (!is_open && s->started - s->done >= s->o->in_flight)
            return;
        r = s->o->policy == STREAM_RATES ? stream_by_rates(s) : stream_instance(s);
        if (r == NULL)
            return;
        if (s->o->policy == STREAM_INSTANCES)
            s->idle[r->stage[0].cls]--;
        if (!is_open)
            s->arrival[number] = stream_now(s);
        stream_start(s, number, r);
    }
}

static void stream_wait_for_next(struct flow *s);

static void stream_arrived(void *user, heddle_status st)
{
    struct flow *s = user;

    stream_failed(s, st);
    if (s->status != HEDDLE_OK)
        return;
    s->arrival[s->arrived++] = stream_now(s);
    if (s->arrived < s->o->requests)
        stream_wait_for_next(s);
    stream_next(s);
}

static void stream_wait_for_next(struct flow *s)
{
    const double u = heddle_rng_double(&s->rng);
    const size_t ns = (size_t)fmax(1.0, -log(1.0 - u) * s->o->gap_ns);
    const struct heddle_task_opts opts = {
        .size = sizeof(opts), .done = stream_arrived, .done_user = s};
    heddle_handle *h = NULL;
    const enum heddle_mode mode = HEDDLE_W;
    heddle_status st = heddle_handle_vector(s->ctx, NULL, ns, HEDDLE_U8, &h);

    if (st == HEDDLE_OK)
        st = heddle_submit(
            s->ctx, &s->gap,
            &(struct heddle_call){.noperands = 1, .operands = &h, .modes = &mode, .opts = &opts});
    heddle_handle_unref(h);
    stream_failed(s, st);
}

/* --- a run ------------------------------------------------------------------------------------ */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void stream_report(struct flow *s, struct stream_result *out)
{
    const uint64_t n = s->o->requests, from = n / 5, upto = n - n / 10;
    struct heddle_ctx_stats st = {.size = sizeof(st)};
    double *v = s->arrival; /* becomes the latencies */

    for (uint64_t i = 0; i < n; i++) {
        v[i] = s->end[i] - s->arrival[i];
        out->mean_ns += v[i] / (double)n;
    }
    qsort(v, n, sizeof(*v), by_value);
    qsort(s->end, n, sizeof(*s->end), by_value);
    out->p50_ns = v[n / 2];
    out->p99_ns = v[n - 1 - n / 100];
    out->period_ns = (s->end[upto] - s->end[from]) / (double)(upto - from);
    (void)heddle_ctx_get_stats(s->ctx, &st);
    out->copied_bytes = st.copied_bytes;
}

static void stream_free(struct flow *s)
{
    (void)heddle_ctx_destroy(s->ctx);
    for (uint32_t i = 0; i < s->nroutes; i++)
        stages_free(&s->route[i]);
    free(s->route);
    free(s->host);
    free(s->arrival);
    free(s->end);
}

static size_t stream_host_bytes(const struct flow *s)
{
    uint64_t most = 64;

    for (uint32_t v = 0; v < s->p->g.nvalues; v++)
        most = s->p->g.bytes[v] > most ? s->p->g.bytes[v] : most;
    for (uint32_t i = 0; i < s->nroutes; i++)
        for (uint32_t k = 0; k < s->route[i].nstages; k++)
            most = s->route[i].stage[k].streamed > most ? s->route[i].stage[k].streamed : most;
    return (size_t)most;
}

bool stream_requests(struct problem *p, const struct heddle_spread_result *spread,
                     const struct stream_opts *o, struct stream_result *out)
{
    struct flow s = {.p = p, .o = o};
    bool ok;

    *out = (struct stream_result){0};
    heddle_rng_seed(&s.rng, o->seed);
    stages_kernel(&s.gap, "gap", HEDDLE_DEV_OPENCL);
    s.route = calloc(STREAM_ROUTES, sizeof(*s.route));
    s.arrival = calloc(o->requests, sizeof(*s.arrival));
    s.end = calloc(o->requests, sizeof(*s.end));
    ok = s.route != NULL && s.arrival != NULL && s.end != NULL;
    if (!ok)
        (void)STREAM_FAIL(p, "no memory for %" PRIu64 " requests", o->requests);
    ok = ok && stream_routes(&s, spread);
    if (ok) {
        s.host = malloc(stream_host_bytes(&s)); /* never touched */
        ok = s.host != NULL ? stream_begin(&s) : STREAM_FAIL(p, "no memory for the requests");
    }
    if (ok && o->gap_ns > 0)
        stream_wait_for_next(&s);
    else if (ok)
        stream_next(&s);
    while (ok && s.status == HEDDLE_OK && s.done < o->requests) {
        const uint64_t before = s.done + s.arrived;

        stream_failed(&s, heddle_wait(s.ctx));
        if (s.status == HEDDLE_OK && s.done + s.arrived == before)
            ok = STREAM_FAIL(p, "the stream of requests stands still");
    }
    ok = ok && s.status == HEDDLE_OK;
    if (ok)
        stream_report(&s, out);
    stream_free(&s);
    return ok;
}

/* --- a comparison ----------------------------------------------------------------------------- */

bool stream_try(struct problem *p, const struct heddle_spread_result *s, uint64_t requests,
                uint64_t seed, struct stream_trial *out)
{
    struct stream_opts o = {.requests = requests, .seed = seed};
    struct stream_result r;
    bool ok;

    /* Little: so many are in the routes at once; more, so that none of them runs dry. */
    o.in_flight = STREAM_IN_FLIGHT + (uint64_t)(4.0 * s->latency / s->period);
    ok = stream_requests(p, s, &o, &r);

    out->period_ns = r.period_ns;
    o.policy = STREAM_INSTANCES;
    ok = ok && stream_requests(p, s, &o, &r);
    out->instances_period_ns = r.period_ns;
    if (!ok)
        return false;
    o.gap_ns = out->load_ns = fmax(out->period_ns, out->instances_period_ns) / 0.8;
    ok = stream_requests(p, s, &o, &out->instances);
    o.policy = STREAM_RATES;
    return ok && stream_requests(p, s, &o, &out->ours);
}
