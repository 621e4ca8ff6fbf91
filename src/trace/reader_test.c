/* SPDX-License-Identifier: BSD-3-Clause */
/* The reading side: what was recorded comes back, joined, sorted, summed. */
#include "trace/log.h"
#include "trace/sample_test.h"

#define LANES 4
#define NIDS  4000

/* What a random run did, by task. */
struct truth {
    uint64_t id;
    uint64_t start, end, submit, ready; /* ticks; 0: not recorded */
    uint64_t parent;
    uint32_t kernel, lane, nexec;
    int32_t prio;
    float predicted_ns;
    uint8_t variant, flags;
    uint32_t ndeps, naccesses;
};

static heddle_status parse_file(const char *path, heddle_log **log)
{
    size_t bytes;
    uint8_t *p = slurp(path, &bytes);
    const heddle_status st = heddle_log_parse(p, bytes, NULL, log);

    free(p);
    return st;
}

static struct heddle_trace *create(const char *path, int level)
{
    struct heddle_clock clock;
    const struct heddle_trace_opts o = {
        .clock = &clock, .level = level, .nlanes = LANES, .chunk_bytes = 1024, .path = path};
    struct heddle_trace *tr = NULL;

    heddle_clock_init(&clock);
    CHECK_OK(heddle_trace_create(&o, &tr));
    return tr;
}

/* Ids with jumps, times that go back between lanes, gaps up to an hour. */
static void make_truth(struct truth *all, struct heddle_rng *g, uint64_t t0)
{
    uint64_t id = 1, t = t0 + 1000000;

    for (size_t i = 0; i < NIDS; i++) {
        struct truth *x = &all[i];

        id += heddle_rng_below32(g, 100) == 0 ? heddle_rng_below(g, 1ull << 57) : 1;
        t += heddle_rng_below(g, 5000);
        if (heddle_rng_below32(g, 500) == 0)
            t += UINT64_C(3600) * 2000000000;
        *x = (struct truth){.id = id, .kernel = heddle_rng_below32(g, 6)};
        x->submit = t - heddle_rng_below(g, 3000);
        x->prio = (int32_t)heddle_rng_next(g);
        x->predicted_ns = (float)heddle_rng_below32(g, 3) * 1e3f;
        x->parent = i > 10 && heddle_rng_below32(g, 3) == 0 ? all[i - 9].id : 0;
        x->lane = heddle_rng_below32(g, LANES);
        x->ready = t + heddle_rng_below(g, 100);
        x->nexec = heddle_rng_below32(g, 10) != 0; /* some never run */
        x->start = x->ready + heddle_rng_below(g, 4000);
        x->end = x->start + heddle_rng_below(g, 100000);
        x->variant = (uint8_t)heddle_rng_below32(g, 3);
        x->flags = (uint8_t)(heddle_rng_below32(g, 4) | (heddle_rng_below32(g, 3) << 5));
    }
}

static void record_truth(struct heddle_trace *tr, struct truth *all, struct heddle_rng *g)
{
    struct heddle_trace_lane *m = heddle_trace_get_lane(tr, 0);

    for (uint32_t k = 0; k < 5; k++) /* kernel 5 is never defined */
        heddle_trace_define_kernel(tr, k, k == 0 ? NULL : "k", NULL, 0);
    for (size_t i = 0; i < NIDS; i++) {
        struct truth *x = &all[i];

        heddle_trace_submit(m, x->id, x->kernel, x->prio, x->submit, x->predicted_ns, x->parent);
        for (size_t j = i < 3 ? i : 3; j > 0; j--) {
            if (heddle_rng_below32(g, 2) == 0)
                continue;
            heddle_trace_dep(m, x->id, all[i - j].id);
            x->ndeps++;
        }
        for (uint16_t o = 0; o < heddle_rng_below32(g, 4); o++) {
            heddle_trace_access(m, x->id, heddle_rng_below32(g, 50), o % 9, o);
            x->naccesses++;
        }
        if (i >= 20 && all[i - 20].nexec != 0) {
            const struct truth *y = &all[i - 20];
            struct heddle_trace_lane *l = heddle_trace_get_lane(tr, y->lane);

            heddle_trace_ready(l, y->id, y->ready);
            heddle_trace_task(l, y->id, y->kernel, y->variant, y->flags, y->start, y->end, 7);
        }
    }
    for (size_t i = NIDS - 20; i < NIDS; i++)
        all[i].nexec = 0;
}

static void check_near(const heddle_log *log, int64_t ns, uint64_t tick, uint64_t base,
                       int64_t base_ns)
{
    const double want = (double)(int64_t)(tick - base) * heddle_log_get_view(log)->ns_per_tick;

    CHECK_NEAR((double)(ns - base_ns), want, 2.0 + 1e-3 * fabs(want));
}

static void check_task(const heddle_log *log, const struct truth *x, const struct truth *x0)
{
    const struct heddle_log_view *v = heddle_log_get_view(log);
    const size_t i = heddle_log_find_task(log, x->id);
    const size_t i0 = heddle_log_find_task(log, x0->id);
    const struct heddle_log_task *t;
    size_t first, last;

    CHECK(i < v->ntasks && i0 < v->ntasks);
    t = &v->tasks[i];
    CHECK(t->id == x->id && t->parent == x->parent);
    CHECK_EQ(t->priority, x->prio);
    CHECK(t->predicted_ns == x->predicted_ns);
    CHECK_EQ(v->kernels[t->kernel].id, x->kernel);
    check_near(log, t->submit_ns, x->submit, x0->submit, v->tasks[i0].submit_ns);
    heddle_log_find_deps(log, x->id, &first, &last);
    CHECK_EQ(last - first, x->ndeps);
    for (size_t k = first; k < last; k++)
        CHECK(v->deps[k].succ == x->id);
    heddle_log_find_accesses(log, x->id, &first, &last);
    CHECK_EQ(last - first, x->naccesses);
    for (size_t k = first; k < last; k++) {
        CHECK_EQ(v->accesses[k].operand, k - first);
        CHECK(v->accesses[k].handle < v->nhandles);
    }
    if (x->nexec == 0) {
        CHECK_EQ(t->status, HEDDLE_LOG_PENDING);
        CHECK(t->lane == HEDDLE_LOG_NO_LANE);
        CHECK_EQ(t->start_ns, HEDDLE_LOG_NONE);
        return;
    }
    CHECK_EQ(v->lanes[t->lane].id, x->lane);
    CHECK_EQ(t->variant, x->variant);
    CHECK_EQ(t->status, x->flags & 7);
    CHECK_EQ(t->flags, x->flags & ~7);
    check_near(log, t->start_ns, x->start, x0->submit, v->tasks[i0].submit_ns);
    check_near(log, t->end_ns - t->start_ns, x->end - x->start, 0, 0);
    check_near(log, t->ready_ns, x->ready, x0->submit, v->tasks[i0].submit_ns);
}

TEST(random_run)
{
    static struct truth all[NIDS];
    struct heddle_trace *tr;
    const struct heddle_log_view *v;
    struct heddle_rng g;
    heddle_log *log;
    char path[256];

    temp_path(path, sizeof path);
    for (unsigned round = 0; round < 5; round++) {
        heddle_rng_seed(&g, test_seed() + round);
        tr = create(path, HEDDLE_LOG_EXPERT);
        make_truth(all, &g, tr->clock.tick0);
        record_truth(tr, all, &g);
        CHECK_OK(heddle_trace_close(tr, NULL, 0));
        CHECK_OK(parse_file(path, &log));
        v = heddle_log_get_view(log);
        CHECK(!v->is_partial);
        CHECK_STR(heddle_log_get_partial(log), "");
        CHECK_EQ(v->ntasks, NIDS);
        CHECK_EQ(v->nkernels, 6);
        for (size_t i = 1; i < v->ntasks; i++)
            CHECK(v->tasks[i - 1].start_ns <= v->tasks[i].start_ns);
        for (size_t i = 0; i < NIDS; i++)
            check_task(log, &all[i], &all[0]);
        CHECK(heddle_log_find_task(log, 0) == SIZE_MAX);
        CHECK(heddle_log_find_task(log, UINT64_MAX) == SIZE_MAX);
        heddle_log_close(log);
    }
    unlink(path);
}

TEST(everything_once)
{
    size_t bytes, first, last;
    uint8_t *p = sample_bytes(40, 600, &bytes);
    const struct heddle_log_view *v;
    const struct heddle_log_handle *h;
    heddle_log *log;

    CHECK_OK(heddle_log_parse(p, bytes, NULL, &log));
    free(p);
    v = heddle_log_get_view(log);
    CHECK_EQ(v->ntasks, 40);
    CHECK_EQ(v->ndeps, 39);
    CHECK_EQ(v->naccesses, 80);
    CHECK_EQ(v->nattrs, 41);
    CHECK_EQ(v->nevents, 120);
    CHECK_EQ(v->nstates, 50);
    CHECK_EQ(v->nmarks, 2);
    CHECK_EQ(v->nlanes, 3);
    CHECK_EQ(v->nnodes, 1);
    CHECK_EQ(v->ninfos, 1);
    CHECK_STR(v->infos[0].key, "scheduler");
    CHECK_STR(v->infos[0].value, "ws");
    CHECK_STR(v->nodes[0].name, "host");
    CHECK_EQ(v->nodes[0].bytes, 1 << 20);
    CHECK_STR(v->lanes[2].name, "worker 1");
    CHECK_EQ(v->lanes[2].cpu, 3);
    CHECK_EQ(v->lanes[2].node, 1);
    CHECK_EQ(v->lanes[0].cpu, -1);
    CHECK_EQ(v->lanes[0].kind, HEDDLE_LOG_SUBMITTER);
    CHECK_STR(v->kernels[0].name, "gemm");
    CHECK_EQ(v->kernels[0].nvariants, 2);
    CHECK_STR(v->kernels[0].variants[1].name, "gpu \"x\"");
    CHECK_EQ(v->kernels[0].variants[1].device, 1);
    CHECK_EQ(v->nhandles, 2);
    h = &v->handles[1];
    CHECK_EQ(h->parent, 0);
    CHECK_EQ(v->handles[0].parent, 0);
    CHECK_STR(v->handles[0].name, "A");
    CHECK_EQ(h->bytes, 16384);
    CHECK_EQ(h->ndims, 2);
    CHECK_EQ(h->shape[1], 32);
    CHECK_EQ(h->offset[1], -1);
    CHECK_EQ(h->step[1], 2);
    CHECK_STR(v->tasks[0].name, "step");
    CHECK(v->tasks[1].name == NULL);
    CHECK_STR(v->marks[0].text, "step");
    CHECK_EQ(v->marks[0].phase, HEDDLE_LOG_MARK_BEGIN);
    heddle_log_find_attrs(log, 1, &first, &last);
    CHECK_EQ(last - first, 2);
    CHECK_EQ(v->attrs[first].value, 1000);
    CHECK_EQ(v->events[0].kind, HEDDLE_LOG_POP);
    CHECK_EQ(v->events[0].x, 1 << 20);
    CHECK_EQ(v->events[0].c, 5);
    CHECK_NEAR((double)v->events[0].z_ns, 20 * v->ns_per_tick, 1.01);
    heddle_log_close(log);
}

/* A state lasts to the next state or to the next start or end of a task. */
TEST(states_end)
{
    struct heddle_trace *tr;
    struct heddle_trace_lane *l;
    const struct heddle_log_view *v;
    heddle_log *log;
    char path[256];
    uint64_t t;

    temp_path(path, sizeof path);
    tr = create(path, HEDDLE_LOG_GRAPH);
    l = heddle_trace_get_lane(tr, 1);
    t = tr->clock.tick0 + 1000000;
    heddle_trace_state(l, HEDDLE_LOG_IDLE, t, 0);
    heddle_trace_state(l, HEDDLE_LOG_SLEEP, t + 1000, 0);
    heddle_trace_state(l, HEDDLE_LOG_IDLE, t + 5000, 0); /* inside the task */
    heddle_trace_task(l, 1, 0, 0, 0, t + 3000, t + 9000, 0);
    heddle_trace_state(l, HEDDLE_LOG_OVERHEAD, t + 9000, 0);
    heddle_trace_task(heddle_trace_get_lane(tr, 2), 2, 0, 0, 0, t + 2000, t + 12000, 0);
    CHECK_OK(heddle_trace_close(tr, NULL, 0));
    CHECK_OK(parse_file(path, &log));
    v = heddle_log_get_view(log);
    CHECK_EQ(v->nstates, 4);
    CHECK_EQ(v->states[0].end_ns, v->states[1].start_ns);
    CHECK_EQ(v->states[1].end_ns, v->tasks[1].start_ns);
    CHECK_EQ(v->states[2].end_ns, v->tasks[1].end_ns);
    CHECK_EQ(v->states[3].start_ns, v->tasks[1].end_ns);
    CHECK_EQ(v->states[3].end_ns, v->tasks[0].end_ns); /* of the log */
    heddle_log_close(log);
    unlink(path);
}

TEST(summary)
{
    struct heddle_trace *tr;
    struct heddle_trace_lane *l[2];
    const struct heddle_log_view *v;
    struct heddle_log_summary *s;
    heddle_log *log;
    char path[256];
    uint64_t t;
    double ns;

    temp_path(path, sizeof path);
    tr = create(path, HEDDLE_LOG_GRAPH);
    l[0] = heddle_trace_get_lane(tr, 1);
    l[1] = heddle_trace_get_lane(tr, 2);
    heddle_trace_define_lane(tr, 1, HEDDLE_LOG_WORKER, "a", 0, 0);
    heddle_trace_define_lane(tr, 2, HEDDLE_LOG_WORKER, "b", 1, 0);
    heddle_trace_define_kernel(tr, 1, "long", NULL, 0);
    heddle_trace_define_kernel(tr, 2, "short", NULL, 0);
    t = tr->clock.tick0 + 1000000;
    /* a: 10000 busy, with a task nested in it; 5000 asleep, 5000 nothing. */
    heddle_trace_task(l[0], 2, 2, 0, HEDDLE_LOG_INLINE, t + 2000, t + 4000, 0);
    heddle_trace_task(l[0], 1, 1, 0, 0, t, t + 10000, 0);
    heddle_trace_state(l[0], HEDDLE_LOG_SLEEP, t + 10000, 0);
    heddle_trace_state(l[0], HEDDLE_LOG_OVERHEAD, t + 15000, 0);
    /* b: two tasks, one of them failed; then a cancelled one. */
    heddle_trace_task(l[1], 3, 2, 0, HEDDLE_LOG_FAILED, t + 6000, t + 10000, 0);
    heddle_trace_task(l[1], 4, 2, 0, 0, t + 10000, t + 20000, 0);
    heddle_trace_task(l[1], 5, 2, 0, HEDDLE_LOG_CANCELLED, t + 20000, t + 20000, 0);
    heddle_trace_submit(heddle_trace_get_lane(tr, 0), 6, 1, 0, t + 30000, 0, 0);
    CHECK_OK(heddle_trace_close(tr, NULL, 0));
    CHECK_OK(parse_file(path, &log));
    v = heddle_log_get_view(log);
    CHECK_OK(heddle_log_summary_create(log, &s));
    ns = v->ns_per_tick;
    CHECK_EQ(s->nexecuted, 4);
    CHECK_EQ(s->nfailed, 1);
    CHECK_EQ(s->ncancelled, 1);
    CHECK_EQ(s->npending, 1);
    CHECK_EQ(s->nworkers, 2);
    CHECK_NEAR((double)s->makespan_ns, 20000 * ns, 20);
    CHECK_NEAR((double)s->lanes[0].busy_ns, 10000 * ns, 20);
    CHECK_NEAR((double)s->lanes[0].idle_ns, 5000 * ns, 20);
    CHECK_NEAR((double)s->lanes[0].overhead_ns, 5000 * ns, 20);
    CHECK_NEAR((double)s->lanes[1].busy_ns, 14000 * ns, 20);
    CHECK_EQ(s->lanes[0].busy_ns + s->lanes[0].idle_ns + s->lanes[0].overhead_ns, s->makespan_ns);
    CHECK_NEAR(s->utilisation, 24.0 / 40.0, 1e-3);
    CHECK_STR(v->kernels[1].name, "short");
    CHECK_EQ(s->kernels[1].ntasks, 3);
    CHECK_NEAR((double)s->kernels[1].min_ns, 2000 * ns, 10);
    CHECK_NEAR((double)s->kernels[1].median_ns, 4000 * ns, 10);
    CHECK_NEAR((double)s->kernels[1].max_ns, 10000 * ns, 10);
    CHECK_NEAR((double)s->kernels[1].total_ns, 16000 * ns, 20);
    CHECK_EQ(s->kernels[0].ntasks, 1);
    heddle_log_summary_destroy(log, s);
    heddle_log_summary_destroy(log, NULL);
    heddle_log_close(log);
    unlink(path);
}

/* Both clocks at one moment. False: this thread was stopped in between, each time. */
static bool read_clocks(uint64_t *ticks_out, uint64_t *ns_out)
{
    for (unsigned i = 0; i < 1000; i++) {
        const uint64_t before = heddle_clock_ns();

        *ticks_out = heddle_ticks();
        *ns_out = heddle_clock_ns();
        if (*ns_out - before < 20000)
            return true;
    }
    return false;
}

/* The rate in the header is an estimate: later pairs correct it. */
TEST(clock_is_corrected)
{
    struct heddle_clock clock;
    struct heddle_trace_opts o = {.clock = &clock, .nlanes = 1};
    struct heddle_trace *tr;
    const struct heddle_log_view *v;
    heddle_log *log;
    char path[256];
    uint64_t t[2], ns[2];
    bool is_sure;

    temp_path(path, sizeof path);
    o.path = path;
    heddle_clock_init(&clock);
    clock.ns_per_tick *= 1.1;
    CHECK_OK(heddle_trace_create(&o, &tr));
    is_sure = read_clocks(&t[0], &ns[0]);
    usleep(40000);
    is_sure = read_clocks(&t[1], &ns[1]) && is_sure;
    heddle_trace_task(heddle_trace_get_lane(tr, 0), 1, 0, 0, 0, t[0], t[1], 0);
    CHECK_OK(heddle_trace_close(tr, NULL, 0));
    CHECK_OK(parse_file(path, &log));
    v = heddle_log_get_view(log);
    if (is_sure) {
        CHECK_NEAR((double)(v->tasks[0].end_ns - v->tasks[0].start_ns), (double)(ns[1] - ns[0]),
                   0.02 * (double)(ns[1] - ns[0]));
        CHECK_NEAR((double)(int64_t)(v->origin_ns - ns[0]) + (double)v->tasks[0].start_ns, 0.0,
                   1e6);
    }
    heddle_log_close(log);
    unlink(path);
    if (!is_sure)
        SKIP("the machine is too busy to read two clocks at once");
}

TEST(empty_and_small)
{
    const struct heddle_log_view *v;
    struct heddle_log_summary *s;
    struct heddle_trace *tr;
    heddle_log *log;
    char path[256];

    temp_path(path, sizeof path);
    tr = create(path, HEDDLE_LOG_GRAPH);
    CHECK_OK(heddle_trace_close(tr, NULL, 0));
    CHECK_OK(parse_file(path, &log));
    v = heddle_log_get_view(log);
    CHECK(!v->is_partial);
    CHECK_EQ(v->ntasks, 0);
    CHECK_EQ(v->nlanes, LANES);
    CHECK_STR(v->lanes[1].name, "lane 1");
    CHECK_OK(heddle_log_summary_create(log, &s));
    CHECK_EQ(s->makespan_ns, 0);
    heddle_log_summary_destroy(log, s);
    heddle_log_close(log);
    unlink(path);
}

TEST(refused)
{
    char why[256];
    struct heddle_log_opts o = {.size = sizeof o, .why = why, .why_bytes = sizeof why};
    struct heddle_fmt_header h = {
        .major = 2, .header_bytes = HEDDLE_FMT_HEADER, .ns_per_tick = 1.0};
    uint8_t buf[HEDDLE_FMT_HEADER];
    heddle_log *log = NULL;

    CHECK_STATUS(heddle_log_open(NULL, NULL, &log), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_log_parse(buf, 0, &o, &log), HEDDLE_EFORMAT);
    CHECK_STR(why, "This is not a Heddle log.");
    CHECK_STATUS(heddle_log_open("no/such/file", &o, &log), HEDDLE_ENOENT);
    CHECK_STR(why, "The log 'no/such/file' cannot be read: No such file or "
                   "directory.");
    CHECK_STATUS(heddle_log_open("/", &o, &log), HEDDLE_EIO);
    CHECK_STR(why, "The log '/' cannot be read: Is a directory.");
    heddle_fmt_put_header(buf, &h);
    CHECK_STATUS(heddle_log_parse(buf, sizeof buf, &o, &log), HEDDLE_EVERSION);
    CHECK_STR(why, "The log has format version 2.0; this Heddle reads version "
                   "1.");
    buf[30]++;
    CHECK_STATUS(heddle_log_parse(buf, sizeof buf, &o, &log), HEDDLE_EFORMAT);
    CHECK_STR(why, "The header of the log is damaged or cut.");
    h.major = 1;
    h.ns_per_tick = -1.0;
    heddle_fmt_put_header(buf, &h);
    CHECK_STATUS(heddle_log_parse(buf, sizeof buf, &o, &log), HEDDLE_EFORMAT);
    CHECK(log == NULL);
    heddle_log_close(NULL);
}

TEST_MAIN(random_run, everything_once, states_end, summary, clock_is_corrected, empty_and_small,
          refused)
