/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim/graph: task graphs on tiles, run in virtual time.
 *
 * Structure  a graph is an array of tasks in the order of submission; edges are
 *            derived from it as the runtime derives them: a task waits for the
 *            last writer of what it touches, a writer also for the readers
 *            since.
 */
#include "sim/graph.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/text.h"

/* Described machines may have any kind. */
#define SIM_VARIANT(name, constant, number, with) {.device = HEDDLE_DEV_##constant},
#define SIM_KERNEL(k, n, ...)                                                                      \
    {                                                                                              \
        .size = sizeof(heddle_kernel), .name = k, .noperands = n, .mode = {__VA_ARGS__},           \
        .variants = {                                                                              \
            HEDDLE_DEVICE_LIST(SIM_VARIANT)                                                        \
        }                                                                                          \
    }

static const heddle_kernel sim_kernels[SIM_NKINDS] = {
    SIM_KERNEL("potrf", 1, HEDDLE_RW),
    SIM_KERNEL("trsm", 2, HEDDLE_R, HEDDLE_RW),
    SIM_KERNEL("syrk", 2, HEDDLE_R, HEDDLE_RW),
    SIM_KERNEL("gemm", 3, HEDDLE_R, HEDDLE_R, HEDDLE_RW),
    SIM_KERNEL("geqrt", 1, HEDDLE_RW),
    SIM_KERNEL("ormqr", 2, HEDDLE_R, HEDDLE_RW),
    SIM_KERNEL("tsqrt", 2, HEDDLE_RW, HEDDLE_RW),
    SIM_KERNEL("tsmqr", 3, HEDDLE_R, HEDDLE_RW, HEDDLE_RW),
};

static const char *const sim_names[SIM_NWORKLOADS] = {"cholesky", "lu", "gemm",
                                                      "random",   "qr", "layered"};

const char *sim_kind_name(unsigned kind)
{
    return kind < SIM_NKINDS ? sim_kernels[kind].name : "?";
}

unsigned sim_kind_operands(unsigned kind)
{
    return kind < SIM_NKINDS ? sim_kernels[kind].noperands : 0;
}

bool sim_workload_find(const char *name, enum sim_workload *out)
{
    for (enum sim_workload w = 0; w < SIM_NWORKLOADS; w++) {
        if (strcmp(sim_names[w], name) != 0)
            continue;
        *out = w;
        return true;
    }
    return false;
}

const char *sim_workload_name(enum sim_workload w)
{
    return w < SIM_NWORKLOADS ? sim_names[w] : "?";
}

/* --- the graph ----------------------------------------------------------- */

static heddle_status add(struct sim_graph *g, const struct sim_task *t)
{
    if (g->ntasks == g->cap) {
        const size_t cap = g->cap == 0 ? 1024 : 2 * g->cap;
        struct sim_task *p = realloc(g->task, cap * sizeof(*p));

        if (p == NULL)
            return HEDDLE_ENOMEM;
        g->task = p;
        g->cap = cap;
    }
    g->task[g->ntasks++] = *t;
    return HEDDLE_OK;
}

static heddle_status add_cholesky(void *user, const struct cholesky_task *t)
{
    struct sim_task s = {.kind = t->kind, .ntiles = t->ntiles};

    for (uint32_t i = 0; i < t->ntiles; i++)
        s.tile[i] = (uint32_t)t->tile[i];
    return add(user, &s);
}

static heddle_status make_lu_step(struct sim_graph *g, uint32_t k)
{
    const uint32_t n = g->tiles, kk = k * n + k;
    struct sim_task t = {CHOLESKY_POTRF, 1, {kk}};
    heddle_status st = add(g, &t);

    for (uint32_t i = k + 1; i < n && st == HEDDLE_OK; i++) {
        t = (struct sim_task){CHOLESKY_TRSM, 2, {kk, i * n + k}};
        st = add(g, &t);
        t.tile[1] = k * n + i;
        if (st == HEDDLE_OK)
            st = add(g, &t);
    }
    for (uint32_t i = k + 1; i < n; i++) {
        for (uint32_t j = k + 1; j < n && st == HEDDLE_OK; j++) {
            t = (struct sim_task){CHOLESKY_GEMM, 3, {i * n + k, k * n + j, i * n + j}};
            st = add(g, &t);
        }
    }
    return st;
}

/* C[i][j] += A[i][k] B[k][j]; A, B and C one after another. */
static heddle_status make_gemm(struct sim_graph *g)
{
    const uint32_t n = g->tiles, nn = n * n;
    heddle_status st = HEDDLE_OK;

    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < n; j++) {
            for (uint32_t k = 0; k < n && st == HEDDLE_OK; k++) {
                const struct sim_task t = {
                    CHOLESKY_GEMM, 3, {i * n + k, nn + k * n + j, 2 * nn + i * n + j}};

                st = add(g, &t);
            }
        }
    }
    return st;
}

static heddle_status make_random(struct sim_graph *g, uint64_t seed)
{
    static const uint32_t ntiles[CHOLESKY_NKINDS] = {1, 2, 2, 3};
    const size_t want = (size_t)g->tiles * g->tiles * g->tiles / 6 + 1;
    struct heddle_rng r;
    heddle_status st = HEDDLE_OK;

    heddle_rng_seed(&r, seed);
    while (g->ntasks < want && st == HEDDLE_OK) {
        struct sim_task t = {.kind = heddle_rng_below32(&r, CHOLESKY_NKINDS)};

        for (uint32_t i = 0; i < ntiles[t.kind]; i++) {
            uint32_t k = 0, tile = heddle_rng_below32(&r, g->ntiles);

            while (k < t.ntiles && t.tile[k] != tile)
                k++;
            if (k == t.ntiles)
                t.tile[t.ntiles++] = tile;
        }
        if (t.ntiles == ntiles[t.kind])
            st = add(g, &t); /* else two tiles were one */
        else if (g->ntiles < 3)
            return HEDDLE_EINVAL;
    }
    return st;
}

static heddle_status make_qr_step(struct sim_graph *g, uint32_t k)
{
    const uint32_t n = g->tiles, kk = k * n + k;
    struct sim_task t = {SIM_GEQRT, 1, {kk}};
    heddle_status st = add(g, &t);

    for (uint32_t j = k + 1; j < n && st == HEDDLE_OK; j++) {
        t = (struct sim_task){SIM_ORMQR, 2, {kk, k * n + j}};
        st = add(g, &t);
    }
    for (uint32_t i = k + 1; i < n && st == HEDDLE_OK; i++) {
        t = (struct sim_task){SIM_TSQRT, 2, {kk, i * n + k}};
        st = add(g, &t);
        for (uint32_t j = k + 1; j < n && st == HEDDLE_OK; j++) {
            t = (struct sim_task){SIM_TSMQR, 3, {i * n + k, k * n + j, i * n + j}};
            st = add(g, &t);
        }
    }
    return st;
}

/* A task updates a tile of its layer, with one or two of the layer before. Every other
 * layer has the same tiles. */
static heddle_status make_layered(struct sim_graph *g, uint64_t seed)
{
    const size_t want = (size_t)g->tiles * g->tiles * g->tiles / 6 + 1;
    const uint32_t most = 2 * g->tiles;
    struct heddle_rng r;
    heddle_status st = HEDDLE_OK;

    heddle_rng_seed(&r, seed);
    for (uint32_t layer = 0; g->ntasks < want && st == HEDDLE_OK; layer++) {
        const uint32_t width = 1 + heddle_rng_below32(&r, most);
        const uint32_t own = layer % 2 * most, before = most - own;

        for (uint32_t i = 0; i < width && st == HEDDLE_OK; i++) {
            const uint32_t a = heddle_rng_below32(&r, most), b = heddle_rng_below32(&r, most);
            struct sim_task t = {CHOLESKY_GEMM, 3, {before + a, before + b, own + i}};

            if (a == b)
                t = (struct sim_task){heddle_rng_below32(&r, 2) == 0 ? CHOLESKY_TRSM
                                                                     : CHOLESKY_SYRK,
                                      2,
                                      {before + a, own + i}};
            st = add(g, &t);
        }
    }
    return st;
}

heddle_status sim_graph_make(struct sim_graph *g, enum sim_workload workload, uint32_t tiles,
                             uint64_t seed)
{
    heddle_status st = HEDDLE_OK;

    *g = (struct sim_graph){
        .workload = workload, .tiles = tiles, .nb = SIM_TILE, .ntiles = tiles * tiles};
    switch (workload) {
    case SIM_CHOLESKY:
        g->ntiles = tiles * (tiles + 1) / 2;
        return cholesky_walk(tiles, add_cholesky, g);
    case SIM_LU:
        for (uint32_t k = 0; k < tiles && st == HEDDLE_OK; k++)
            st = make_lu_step(g, k);
        return st;
    case SIM_GEMM: g->ntiles = 3 * tiles * tiles; return make_gemm(g);
    case SIM_RANDOM: return make_random(g, seed);
    case SIM_QR:
        for (uint32_t k = 0; k < tiles && st == HEDDLE_OK; k++)
            st = make_qr_step(g, k);
        return st;
    case SIM_LAYERED: g->ntiles = 4 * tiles; return make_layered(g, seed);
    case SIM_NWORKLOADS: break;
    }
    return HEDDLE_EINVAL;
}

void sim_graph_free(struct sim_graph *g)
{
    free(g->task);
    g->task = NULL;
}

uint64_t sim_tile_bytes(const struct sim_graph *g)
{
    return (uint64_t)g->nb * g->nb * sizeof(float);
}

uint64_t sim_data_bytes(const struct sim_graph *g)
{
    return g->ntiles * sim_tile_bytes(g);
}

uint64_t sim_task_bytes(const struct sim_graph *g)
{
    uint32_t most = 0;

    for (size_t i = 0; i < g->ntasks; i++)
        most = g->task[i].ntiles > most ? g->task[i].ntiles : most;
    return most * sim_tile_bytes(g);
}

/* --- edges --------------------------------------------------------------- */

struct edges {
    uint32_t *pair;
    size_t n, cap;
};

static bool edge(struct edges *e, uint32_t from, uint32_t to)
{
    if (e->n == e->cap) {
        const size_t cap = e->cap == 0 ? 4096 : 2 * e->cap;
        uint32_t *p = realloc(e->pair, 2 * cap * sizeof(*p));

        if (p == NULL)
            return false;
        e->pair = p;
        e->cap = cap;
    }
    e->pair[2 * e->n] = from;
    e->pair[2 * e->n + 1] = to;
    e->n++;
    return true;
}

/* Who touched a tile: the last writer, and a chain of readers since. */
struct touched {
    uint32_t writer, reader; /* 1 + task; 0: none */
};

/* Does the task update its operand? */
static bool updates(const struct sim_task *t, uint32_t operand)
{
    return sim_kernels[t->kind].mode[operand] != HEDDLE_R;
}

static bool edges_of(const struct sim_graph *g, uint32_t i, struct touched *at, uint32_t *before,
                     struct edges *e)
{
    const struct sim_task *t = &g->task[i];

    for (uint32_t o = 0; o < t->ntiles; o++) {
        struct touched *w = &at[t->tile[o]];

        if (w->writer != 0 && !edge(e, w->writer - 1, i))
            return false;
        if (!updates(t, o)) {
            before[3 * (size_t)i + o] = w->reader;
            w->reader = 3 * i + o + 1;
            continue;
        }
        for (uint32_t r = w->reader; r != 0; r = before[r - 1])
            if (!edge(e, (r - 1) / 3, i))
                return false;
        *w = (struct touched){.writer = i + 1};
    }
    return true;
}

uint32_t *sim_graph_edges(const struct sim_graph *g, size_t *nedges_out)
{
    struct touched *at = calloc(g->ntiles + 1, sizeof(*at));
    uint32_t *before = calloc(3 * g->ntasks + 1, sizeof(*before));
    struct edges e = {0};
    bool is_ok = at != NULL && before != NULL && edge(&e, 0, 0);

    e.n = 0;
    for (uint32_t i = 0; i < g->ntasks && is_ok; i++)
        is_ok = edges_of(g, i, at, before, &e);
    free(at);
    free(before);
    if (!is_ok) {
        free(e.pair);
        return NULL;
    }
    *nedges_out = e.n;
    return e.pair;
}

/* --- the bound ----------------------------------------------------------- */

struct bound_input {
    double time[SIM_NKINDS * HEDDLE_BOUND_TYPES_MAX];
    uint32_t nworkers[HEDDLE_BOUND_TYPES_MAX];
    uint32_t ntypes;
    uint32_t *kind, *from, *to;
};

/* Times by (kind, type), workers by type, of the classes in the mask. */
static heddle_status bound_types(const struct sim_graph *g, const heddle_machine *m,
                                 uint64_t classes, struct bound_input *in)
{
    struct heddle_machine_counts n = {.size = sizeof(n)};
    struct heddle_machine_class c = {.size = sizeof(c)};
    heddle_status st = heddle_machine_describe(m, &n);

    if (st == HEDDLE_OK && n.types > HEDDLE_BOUND_TYPES_MAX)
        return HEDDLE_EINVAL;
    in->ntypes = n.types;
    for (uint32_t i = 0; i < n.classes && st == HEDDLE_OK; i++) {
        st = heddle_machine_get_class(m, i, &c);
        if (st != HEDDLE_OK || i >= 64 || (classes >> i & 1) == 0)
            continue;
        in->nworkers[c.type] += c.nworkers;
        for (uint32_t k = 0; k < SIM_NKINDS; k++) {
            const double bytes = (double)sim_kernels[k].noperands * (double)sim_tile_bytes(g);
            const double ns = heddle_machine_time(m, sim_kernels[k].name, i, bytes, 0);

            in->time[k * n.types + c.type] = isnan(ns) ? INFINITY : ns;
        }
    }
    return st;
}

static heddle_status bound_solve(const struct sim_graph *g, struct bound_input *in,
                                 const uint32_t *pair, size_t nedges, double *out, char *why,
                                 size_t cap)
{
    const struct heddle_bound_graph graph = {.size = sizeof(graph),
                                             .ntasks = (uint32_t)g->ntasks,
                                             .ntypes = in->ntypes,
                                             .nkinds = SIM_NKINDS,
                                             .nedges = (uint32_t)nedges,
                                             .edge_from = in->from,
                                             .edge_to = in->to,
                                             .nworkers = in->nworkers,
                                             .kind = in->kind,
                                             .time = in->time};
    const struct heddle_bound_limits limits = {
        .size = sizeof(limits), .why = why, .why_bytes = cap};
    struct heddle_bound_result r = {.size = sizeof(r)};
    heddle_status st;

    for (size_t i = 0; i < nedges; i++) {
        in->from[i] = pair[2 * i];
        in->to[i] = pair[2 * i + 1];
    }
    for (size_t i = 0; i < g->ntasks; i++)
        in->kind[i] = g->task[i].kind;
    st = heddle_bound_all(&graph, &limits, &r);
    if (st != HEDDLE_OK)
        return st;
    *out = r.best;
    heddle_bound_fini(&r);
    return HEDDLE_OK;
}

heddle_status sim_graph_bound(const struct sim_graph *g, const heddle_machine *m, uint64_t classes,
                              double *bound_ns_out, char *why, size_t cap)
{
    struct bound_input in = {0};
    size_t nedges = 0;
    uint32_t *pair = sim_graph_edges(g, &nedges);
    heddle_status st = HEDDLE_ENOMEM;

    why[0] = '\0';
    for (size_t i = 0; i < sizeof(in.time) / sizeof(in.time[0]); i++)
        in.time[i] = INFINITY;
    in.kind = calloc(g->ntasks + 1, sizeof(uint32_t));
    in.from = calloc(nedges + 1, sizeof(uint32_t));
    in.to = calloc(nedges + 1, sizeof(uint32_t));
    if (pair != NULL && in.kind != NULL && in.from != NULL && in.to != NULL)
        st = bound_types(g, m, classes, &in);
    if (st == HEDDLE_OK)
        st = bound_solve(g, &in, pair, nedges, bound_ns_out, why, cap);
    free(pair);
    free(in.kind);
    free(in.from);
    free(in.to);
    if (st != HEDDLE_OK && why[0] == '\0')
        snprintf(why, cap, "there is no bound: %s", heddle_status_text(st));
    return st;
}

/* --- one run ------------------------------------------------------------- */

static void keep_sentence(void *user, enum heddle_severity severity, const char *text)
{
    struct sim_result *r = user;

    if (severity == HEDDLE_ERROR)
        snprintf(r->why, sizeof(r->why), "%s", text);
}

static heddle_status submit_all(const struct sim_graph *g, heddle_ctx *ctx, heddle_handle **tile)
{
    heddle_status st = HEDDLE_OK;

    for (size_t i = 0; i < g->ntasks && st == HEDDLE_OK; i++) {
        const struct sim_task *t = &g->task[i];
        struct heddle_call call = {0};

        for (uint32_t o = 0; o < t->ntiles; o++)
            call.operand[o] = tile[t->tile[o]];
        st = heddle_submit(ctx, &sim_kernels[t->kind], &call);
    }
    return st;
}

static heddle_status run_tasks(const struct sim_graph *g, heddle_ctx *ctx, heddle_handle **tile,
                               struct sim_result *r)
{
    uint64_t start, submitted;
    heddle_status st = HEDDLE_OK, waited;

    for (uint32_t i = 0; i < g->ntiles && st == HEDDLE_OK; i++)
        st = heddle_handle_matrix(ctx, NULL, g->nb, g->nb, 0, HEDDLE_F32, &tile[i]);
    start = heddle_clock_ns();
    if (st == HEDDLE_OK)
        st = submit_all(g, ctx, tile);
    submitted = heddle_clock_ns();
    waited = heddle_wait(ctx);
    r->real_ns = (double)(heddle_clock_ns() - start);
    r->submit_ns = (double)(submitted - start);
    return st != HEDDLE_OK ? st : waited;
}

static void read_stats(heddle_ctx *ctx, const struct sim_opts *o, struct sim_result *r)
{
    struct heddle_ctx_stats s = {.size = sizeof(s)};
    struct heddle_class_info c = {.size = sizeof(c)};
    struct heddle_memory_info m = {.size = sizeof(m)};
    struct heddle_machine_class mc = {.size = sizeof(mc)};
    struct heddle_energy_use use = {.size = sizeof(use)};
    heddle_machine *machine = NULL;

    if (heddle_ctx_get_stats(ctx, &s) == HEDDLE_OK) {
        snprintf(r->policy, sizeof(r->policy), "%s", s.sched);
        r->makespan_ns = (double)s.virtual_ns;
        r->copied_bytes = s.copied_bytes;
        r->evictions = s.evictions;
    }
    for (unsigned i = 0; heddle_ctx_get_energy(ctx, i, &use) == HEDDLE_OK; i++) {
        r->active_joules += use.active_joules;
        r->idle_joules += use.idle_joules;
    }
    for (unsigned i = 1; heddle_ctx_get_memory(ctx, i, &m) == HEDDLE_OK; i++)
        if (r->budget == 0 || m.budget < r->budget)
            r->budget = m.budget;
    if (heddle_machine_open(o->machine, &machine, NULL, 0) != HEDDLE_OK)
        return;
    for (uint32_t k = 0; k < 64 && heddle_machine_get_class(machine, k, &mc) == HEDDLE_OK; k++)
        for (unsigned i = 0; heddle_ctx_get_class(ctx, i, &c) == HEDDLE_OK; i++)
            if (strcmp(c.name, mc.name) == 0)
                r->classes |= UINT64_C(1) << k;
    heddle_machine_close(machine);
}

static void explain(heddle_ctx *ctx, heddle_status st, struct sim_result *r)
{
    struct heddle_error e = {.size = sizeof(e)};

    if (r->why[0] == '\0' && ctx != NULL && heddle_ctx_error(ctx, &e) == HEDDLE_OK)
        snprintf(r->why, sizeof(r->why), "%s", e.message);
    if (r->why[0] == '\0')
        snprintf(r->why, sizeof(r->why), "the simulation failed: %s", heddle_status_text(st));
}

heddle_status sim_graph_run(const struct sim_graph *g, const struct sim_opts *o,
                            struct sim_result *r)
{
    struct heddle_ctx_opts opts = {.size = sizeof(opts),
                                   .sched = o->policy,
                                   .machine = o->machine,
                                   .devices = o->devices,
                                   .faults = o->faults,
                                   .device_memory = o->device_memory,
                                   .energy_model = o->energy_model,
                                   .power_cap = o->power_cap,
                                   .energy_weight = o->energy_weight,
                                   .energy_slack = o->energy_slack,
                                   .log = o->log == NULL ? HEDDLE_OFF : HEDDLE_ON,
                                   .log_level = o->log == NULL ? 0 : 1,
                                   .log_path = o->log,
                                   .model_dir = "",
                                   .message = keep_sentence,
                                   .message_user = r,
                                   .ignore_env = true};
    heddle_handle **tile = calloc(g->ntiles + 1, sizeof(heddle_handle *));
    heddle_ctx *ctx = NULL;
    heddle_status st = HEDDLE_ENOMEM, closed;

    *r = (struct sim_result){0};
    if (tile != NULL)
        st = heddle_ctx_create(&opts, &ctx);
    r->was_refused = st != HEDDLE_OK;
    if (st == HEDDLE_OK)
        st = run_tasks(g, ctx, tile, r);
    if (st != HEDDLE_OK)
        explain(ctx, st, r);
    else
        read_stats(ctx, o, r);
    for (uint32_t i = 0; i < g->ntiles && tile != NULL; i++)
        heddle_handle_unref(tile[i]);
    free(tile);
    closed = heddle_ctx_destroy(ctx);
    if (st == HEDDLE_OK && closed != HEDDLE_OK) {
        st = closed;
        explain(NULL, st, r);
    }
    return st;
}
