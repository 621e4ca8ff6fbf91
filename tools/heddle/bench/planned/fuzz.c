/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/planned/fuzz: random graphs under random budgets, against plain launches.
 *
 * Programs  vectors of 64-bit numbers, temporary or kept, some cut into four tiles. A task
 *           hashes what it reads and its own number into what it writes, so that a wrong
 *           version, a missing run or a wrong order changes the results.
 * Compared  all kept data after two launches; the number of runs; where the temporary
 *           operands were, as the tasks saw it; the memory that was counted.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/rng.h"
#include "bench/planned/planned.h"

enum { MAX_DATA = 48, MAX_TASKS = 96, MAX_OPERANDS = 5, TILES = 4, MAX_COUNT = 64, WORKERS = 4 };

/* An operand: all of the data, or one of its tiles. */
struct operand {
    unsigned data;
    int tile; /* -1: all */
    enum heddle_mode mode;
};

struct task {
    unsigned noperands;
    struct operand op[MAX_OPERANDS];
};

struct program {
    uint64_t seed;
    unsigned ntemps, ndata, ntasks; /* the temporaries come first */
    size_t count[MAX_DATA];
    unsigned written[MAX_DATA]; /* a bit per tile */
    bool is_u;                  /* the second half reads what the first made, backwards */
    unsigned made[MAX_TASKS];   /* by task */
    struct task task[MAX_TASKS];
};

/* What tasks see. */
struct watch {
    _Atomic uint64_t nruns;
    _Atomic uint64_t low, high; /* of temporary operands */
};

struct arg {
    struct watch *w;
    uint64_t seed;
    uint32_t temps; /* bit i: operand i is temporary, or scratch */
};

/* --- the kernel ------------------------------------------------------------------ */

static void see(struct watch *w, uint64_t low, uint64_t high)
{
    uint64_t seen = heddle_load_rlx(&w->low);

    while (low < seen && !heddle_cas_weak_acqrel(&w->low, &seen, low))
        ;
    seen = heddle_load_rlx(&w->high);
    while (high > seen && !heddle_cas_weak_acqrel(&w->high, &seen, high))
        ;
}

static bool reads(uint64_t roles, unsigned i)
{
    return (roles >> (2 * i) & 1) != 0;
}

static bool writes(uint64_t roles, unsigned i)
{
    return (roles >> (2 * i) & 2) != 0;
}

/* The roles of operands, two bits each, come behind the argument. */
struct full_arg {
    struct arg a;
    uint64_t roles;
};

static heddle_status run_hash(struct heddle_exec *x)
{
    const struct full_arg *f = heddle_exec_arg(x);
    const unsigned n = heddle_exec_noperands(x);
    uint64_t h = f->a.seed;

    (void)heddle_add_rlx(&f->a.w->nruns, UINT64_C(1));
    for (unsigned i = 0; i < n; i++) {
        const uint64_t *v = heddle_exec_ptr(x, i);
        const size_t count = heddle_exec_count(x, i);

        if ((f->a.temps >> i & 1) != 0)
            see(f->a.w, (uintptr_t)v, (uintptr_t)(v + count));
        for (size_t k = 0; reads(f->roles, i) && k < count; k++)
            h = heddle_mix64(h ^ (v[k] + k));
    }
    for (unsigned i = 0; i < n; i++) {
        uint64_t *v = heddle_exec_ptr(x, i);
        const size_t count = heddle_exec_count(x, i);

        for (size_t k = 0; writes(f->roles, i) && k < count; k++)
            v[k] = heddle_mix64(h + k + 64 * i + (reads(f->roles, i) ? v[k] : 0));
    }
    return HEDDLE_OK;
}

static const heddle_kernel hash_kernel = {
    .size = sizeof(heddle_kernel),
    .name = "hash",
    .noperands = 0,
    .variants = {{.device = HEDDLE_DEV_CPU, .run = run_hash}},
};

/* --- programs -------------------------------------------------------------------- */

static bool has_operand(const struct task *t, unsigned data)
{
    for (unsigned i = 0; i < t->noperands; i++)
        if (t->op[i].data == data)
            return true;
    return false;
}

static void add(struct task *t, unsigned data, int tile, enum heddle_mode mode)
{
    if (t->noperands < MAX_OPERANDS && !has_operand(t, data))
        t->op[t->noperands++] = (struct operand){data, tile, mode};
}

static bool is_tiled(const struct program *p, unsigned data)
{
    return p->count[data] % TILES == 0;
}

static void add_read(struct program *p, struct task *t, struct heddle_rng *r)
{
    const unsigned k = (unsigned)(t - p->task);
    const unsigned d = p->is_u && 2 * k > p->ntasks && heddle_rng_below32(r, 2) == 0
                           ? p->made[p->ntasks - k]
                           : heddle_rng_below32(r, p->ndata);
    const unsigned tile = heddle_rng_below32(r, TILES);

    if (p->written[d] == (1u << TILES) - 1)
        add(t, d, is_tiled(p, d) && tile == 0 ? (int)heddle_rng_below32(r, TILES) : -1, HEDDLE_R);
    else if ((p->written[d] >> tile & 1) != 0)
        add(t, d, (int)tile, HEDDLE_R);
}

static void add_write(struct program *p, struct task *t, struct heddle_rng *r)
{
    /* Mostly temporaries that are not written yet: long lives, as in training. */
    unsigned d = heddle_rng_below32(r, p->ndata), kind = heddle_rng_below32(r, 100);
    const unsigned all = (1u << TILES) - 1, tile = heddle_rng_below32(r, TILES);

    for (unsigned k = 0; k < 4 && p->written[d] != 0; k++)
        d = heddle_rng_below32(r, p->ndata);
    p->made[t - p->task] = d;
    if (has_operand(t, d) || t->noperands == MAX_OPERANDS)
        return;
    if (p->written[d] == all && kind < 40) {
        add(t, d, is_tiled(p, d) && kind < 15 ? (int)tile : -1,
            kind % 5 == 0 ? HEDDLE_COMMUTE : HEDDLE_RW);
    } else if (is_tiled(p, d) && kind < 60) {
        add(t, d, (int)tile, HEDDLE_W);
        p->written[d] |= 1u << tile;
    } else {
        add(t, d, -1, HEDDLE_W);
        p->written[d] = all;
    }
}

static void generate(struct program *p, uint64_t seed)
{
    struct heddle_rng r;

    heddle_rng_seed(&r, seed);
    *p = (struct program){.seed = seed};
    p->is_u = heddle_rng_below32(&r, 2) == 0;
    p->ntemps = 3 + heddle_rng_below32(&r, MAX_DATA - 8);
    p->ndata = p->ntemps + 1 + heddle_rng_below32(&r, 4);
    p->ntasks = 4 + heddle_rng_below32(&r, MAX_TASKS - 4);
    for (unsigned d = 0; d < p->ndata; d++) {
        p->count[d] = 1 + heddle_rng_below32(&r, MAX_COUNT);
        if (d >= p->ntemps)
            p->written[d] = (1u << TILES) - 1;
    }
    for (unsigned k = 0; k < p->ntasks; k++) {
        const unsigned nreads = heddle_rng_below32(&r, 4);
        struct task *t = &p->task[k];

        for (unsigned i = 0; i < nreads; i++)
            add_read(p, t, &r);
        add_write(p, t, &r);
        if (heddle_rng_below32(&r, 6) == 0)
            add_write(p, t, &r);
        if (heddle_rng_below32(&r, 8) == 0)
            add(t, heddle_rng_below32(&r, p->ndata), -1, HEDDLE_SCRATCH);
    }
}

/* --- one program ------------------------------------------------------------------- */

struct run {
    struct planned_fuzz *f;
    heddle_ctx *ctx;
    struct program p;
    struct heddle_rng rng; /* of budgets and options */
    struct watch watch;
    heddle_handle *handle[MAX_DATA], *view[MAX_DATA][TILES];
    uint64_t kept[MAX_DATA][MAX_COUNT], want[MAX_DATA][MAX_COUNT];
    heddle_graph *graph;
};

static void reset(struct run *r)
{
    for (unsigned d = r->p.ntemps; d < r->p.ndata; d++)
        for (size_t k = 0; k < MAX_COUNT; k++)
            r->kept[d][k] = heddle_mix64(r->p.seed + d * MAX_COUNT + k);
    r->watch = (struct watch){.low = UINT64_MAX};
}

static heddle_status make_data(struct run *r)
{
    heddle_status st = HEDDLE_OK;

    for (unsigned d = 0; d < r->p.ndata && st == HEDDLE_OK; d++) {
        const size_t count = r->p.count[d], quarter = count / TILES;

        st = heddle_handle_vector(r->ctx, d < r->p.ntemps ? NULL : r->kept[d], count, HEDDLE_I64,
                                  &r->handle[d]);
        for (size_t t = 0; t < TILES && count % TILES == 0 && st == HEDDLE_OK; t++)
            st = heddle_view_box(r->handle[d], (size_t[]){t * quarter}, &quarter, NULL,
                                 &r->view[d][t]);
    }
    return st;
}

static heddle_status record(struct run *r)
{
    heddle_status st = heddle_graph_begin(r->ctx, &r->graph);

    for (unsigned k = 0; k < r->p.ntasks && st == HEDDLE_OK; k++) {
        const struct task *t = &r->p.task[k];
        struct full_arg arg = {{&r->watch, heddle_mix64(k), 0}, 0};
        heddle_handle *op[MAX_OPERANDS];
        enum heddle_mode mode[MAX_OPERANDS];

        for (unsigned i = 0; i < t->noperands; i++) {
            const struct operand *o = &t->op[i];

            op[i] = o->tile < 0 ? r->handle[o->data] : r->view[o->data][o->tile];
            mode[i] = o->mode;
            if (o->data < r->p.ntemps || o->mode == HEDDLE_SCRATCH)
                arg.a.temps |= 1u << i;
            arg.roles |= (o->mode == HEDDLE_SCRATCH ? 2u : (uint64_t)o->mode & 3) << (2 * i);
        }
        st = heddle_graph_submit(r->graph, &hash_kernel,
                                 &(struct heddle_call){.arg = &arg,
                                                       .arg_bytes = sizeof(arg),
                                                       .noperands = t->noperands,
                                                       .operands = op,
                                                       .modes = mode});
    }
    return st == HEDDLE_OK ? heddle_graph_end(r->graph) : st;
}

static heddle_status run_plain(struct run *r)
{
    heddle_status st, waited;

    reset(r);
    st = heddle_graph_launch(r->graph, NULL);
    if (st == HEDDLE_OK)
        st = heddle_graph_launch(r->graph, NULL);
    waited = heddle_wait(r->ctx);
    memcpy(r->want, r->kept, sizeof(r->want));
    return st != HEDDLE_OK ? st : waited;
}

static void wrong(const struct run *r, uint64_t *count, const char *what, uint64_t a, uint64_t b)
{
    ++*count;
    fprintf(r->f->c->err, "heddle: seed %" PRIu64 ": %s: %" PRIu64 ", not %" PRIu64 "\n", r->p.seed,
            what, a, b);
}

static void check_run(struct run *r, const heddle_planned *p, bool is_sequential)
{
    struct heddle_planned_info i = {.size = sizeof(i)};
    const uint64_t seen = r->watch.high > r->watch.low ? r->watch.high - r->watch.low : 0;

    if (heddle_planned_get_info(p, &i) != HEDDLE_OK)
        wrong(r, &r->f->nwrong, "no information", 0, 0);
    r->f->nrepeated += i.nrepeated;
    r->f->ncopies += i.ncopies;
    r->f->nmoved += i.nmoved;
    for (unsigned d = r->p.ntemps; d < r->p.ndata; d++)
        if (memcmp(r->kept[d], r->want[d], sizeof(r->want[d])) != 0)
            wrong(r, &r->f->nwrong, "results of data", d, d);
    if (r->watch.nruns != 2 * i.nruns)
        wrong(r, &r->f->nwrong, "runs", r->watch.nruns, 2 * i.nruns);
    if (i.nrepeated + r->p.ntasks != i.nruns)
        wrong(r, &r->f->nwrong, "runs again", i.nrepeated, i.nruns - r->p.ntasks);
    if (i.arena_bytes > i.budget)
        wrong(r, &r->f->nover, "bytes of the arena", i.arena_bytes, i.budget);
    if (seen > i.arena_bytes)
        wrong(r, &r->f->nover, "bytes that tasks saw", seen, i.arena_bytes);
    if (i.real_arena_bytes != i.arena_bytes)
        wrong(r, &r->f->nover, "end of the data", i.real_arena_bytes, i.arena_bytes);
    if (i.real_peak_bytes > i.arena_bytes || (is_sequential && i.real_peak_bytes != i.peak_bytes))
        wrong(r, &r->f->nover, "peak", i.real_peak_bytes, i.peak_bytes);
}

static heddle_status check_planned(struct run *r, heddle_planned *p, bool is_sequential)
{
    heddle_status st = heddle_planned_launch(p, NULL), waited;

    if (st == HEDDLE_OK)
        st = heddle_planned_launch(p, NULL);
    waited = heddle_wait(r->ctx);
    if (st == HEDDLE_OK && waited == HEDDLE_OK)
        check_run(r, p, is_sequential);
    r->f->nplans++;
    r->f->ntasks += r->watch.nruns;
    return st != HEDDLE_OK ? st : waited;
}

/* From a small budget to the first one for which a plan is found. */
static heddle_status run_planned(struct run *r)
{
    static const char *const solver[] = {NULL, NULL, NULL, NULL, "keep", "greedy", "sweep", "dtr"};
    char why[256] = "";
    struct heddle_planned_opts o = {
        .size = sizeof(o),
        .why = why,
        .why_bytes = sizeof(why),
        .temporary = r->handle,
        .ntemporaries = r->p.ntemps,
        .budget_share = 0.3 + 0.7 * heddle_rng_double(&r->rng),
        .solver = solver[heddle_rng_below32(&r->rng, 8)],
        .time_limit_s = 0.001,
        .seed = r->p.seed,
        .is_watched = true,
        .is_sequential = heddle_rng_below32(&r->rng, 2) == 0,
    };
    const unsigned stores = heddle_rng_below32(&r->rng, 8);
    heddle_planned *p = NULL;
    heddle_status st;

    if ((stores & 3) == 1)
        o.host = (struct heddle_plan_store){.out_rate = 1e9, .in_rate = 2e9};
    if (stores == 2 || stores == 5)
        o.disk = (struct heddle_plan_store){.out_rate = 3e8, .in_rate = 3e8};
    o.disk_path = ".";
    st = heddle_planned_create(r->graph, &o, &p);
    while (st == HEDDLE_ENOENT && o.budget_share < 2) {
        r->f->nrefused++;
        o.budget_share *= 1.25;
        st = heddle_planned_create(r->graph, &o, &p);
    }
    if (st != HEDDLE_OK) {
        fprintf(r->f->c->err, "heddle: seed %" PRIu64 ": %s\n", r->p.seed, why);
        return st;
    }
    reset(r);
    st = check_planned(r, p, o.is_sequential);
    heddle_planned_unref(p);
    return st;
}

static void drop_data(struct run *r)
{
    heddle_graph_unref(r->graph);
    for (unsigned d = 0; d < r->p.ndata; d++) {
        for (unsigned t = 0; t < TILES; t++)
            heddle_handle_unref(r->view[d][t]);
        heddle_handle_unref(r->handle[d]);
    }
}

static int run_seed(struct planned_fuzz *f, heddle_ctx *ctx, uint64_t seed)
{
    static struct run r; /* large */
    heddle_status st;

    memset(&r, 0, sizeof(r));
    r.f = f;
    r.ctx = ctx;
    generate(&r.p, seed);
    heddle_rng_seed(&r.rng, ~seed);
    st = make_data(&r);
    if (st == HEDDLE_OK)
        st = record(&r);
    if (st == HEDDLE_OK)
        st = run_plain(&r);
    if (st == HEDDLE_OK)
        st = run_planned(&r);
    drop_data(&r);
    return st == HEDDLE_OK ? 0 : bench_fail(f->c, ctx, st);
}

int planned_fuzz_run(struct planned_fuzz *f)
{
    const uint64_t start = heddle_clock_ns();
    int rc = 0;

    for (unsigned w = 0; w < WORKERS && rc == 0; w++) {
        const struct bench_opts o = {.workers = w + 1, .no_bind = true, .no_log = true};
        struct bench_memory m = {.calls = 0};
        heddle_ctx *ctx = NULL;

        rc = bench_open(f->c, &o, &m, &ctx);
        if (rc != 0)
            break;
        for (uint64_t k = w; k < f->seeds && rc == 0; k += WORKERS)
            rc = run_seed(f, ctx, f->first + k);
        if (rc == 0)
            rc = bench_close(f->c, &m, ctx);
        f->nleft += heddle_load_rlx(&m.live);
    }
    f->seconds = (double)(heddle_clock_ns() - start) * 1e-9;
    return rc;
}
