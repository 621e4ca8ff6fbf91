/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Explanations of random logs. What must hold for all logs does, and for those
 * that are small enough every cause is what a slow evaluation of the rules, moment
 * by moment, finds. Damaged and cut logs; memory that fails.
 */
#include "base/faulty_test.h"
#include "base/rng.h"
#include "explain_check.h"
#include "explain_log.h"

/* --- random logs --------------------------------------------------------------- */

struct shape {
    unsigned ncores, ndevices, ntasks;
    unsigned horizon; /* ns */
    bool is_wild;     /* ids, times and dependencies that make no sense */
    bool has_moves;
    bool has_looks; /* threads that note when they look for work */
    int level;
};

static uint64_t wild_id(struct heddle_rng *g, const struct shape *s)
{
    if (s->is_wild && heddle_rng_below32(g, 30) == 0)
        return heddle_rng_next(g);
    return 1 + heddle_rng_below(g, s->ntasks);
}

static uint64_t wild_time(struct heddle_rng *g, const struct shape *s)
{
    if (s->is_wild && heddle_rng_below32(g, 200) == 0)
        return heddle_rng_next(g) >> heddle_rng_below32(g, 40);
    return heddle_rng_below(g, s->horizon);
}

static void put_submission(struct lab *b, struct heddle_rng *g, const struct shape *s, uint64_t id,
                           uint32_t kernel, uint64_t *t)
{
    const uint64_t parent = heddle_rng_below32(g, 4) == 0 && id > 1
                                ? (s->is_wild ? wild_id(g, s) : 1 + heddle_rng_below(g, id - 1))
                                : 0;

    *t = heddle_rng_below(g, 1 + (s->is_wild ? s->horizon : *t));
    lab_submit(b, id, kernel, *t, parent);
    for (unsigned n = heddle_rng_below32(g, 4); n > 0; n--) {
        const uint64_t pred = s->is_wild ? wild_id(g, s)
                              : id > 1   ? 1 + heddle_rng_below(g, id - 1)
                                         : 0;

        if (pred != 0)
            lab_dep(b, id, pred);
    }
    for (unsigned n = heddle_rng_below32(g, 3); n > 0; n--)
        heddle_trace_access(lab_lane(b, b->ncores + b->ndevices), id,
                            heddle_rng_below32(g, LAB_HANDLES), 0, (uint16_t)n);
}

/* Of the same kind. */
static uint32_t helper_lane(struct heddle_rng *g, const struct shape *s, uint32_t lane)
{
    return lane < s->ncores ? heddle_rng_below32(g, s->ncores)
                            : s->ncores + heddle_rng_below32(g, s->ndevices);
}

static void put_task(struct lab *b, struct heddle_rng *g, const struct shape *s, uint64_t id)
{
    static const unsigned flags[] = {0,
                                     0,
                                     0,
                                     0,
                                     HEDDLE_LOG_FAILED,
                                     HEDDLE_LOG_CANCELLED,
                                     HEDDLE_LOG_DECLINED,
                                     HEDDLE_LOG_INLINE};
    const unsigned nlanes = s->ncores + s->ndevices;
    uint32_t lane = heddle_rng_below32(g, nlanes + (s->is_wild ? 1 : 0));
    uint32_t kernel = lane < s->ncores ? 1 : 2;
    uint64_t t = wild_time(g, s), d;

    if (heddle_rng_below32(g, 3) == 0)
        kernel = 3;
    if (heddle_rng_below32(g, 10) != 0) {
        uint64_t submit = t;

        put_submission(b, g, s, id, kernel, &submit);
        if (heddle_rng_below32(g, 3) == 0)
            heddle_trace_ready(lab_lane(b, 0), id, submit + heddle_rng_below(g, 1 + t - submit));
    }
    /* Pending, once, or repeated. */
    for (unsigned n = heddle_rng_below32(g, 12), i = 0; n > 0 && i < (n == 1 ? 3 : 1); i++) {
        d = heddle_rng_below(g, s->horizon / 20 + 2);
        lab_run(b, lane, id, kernel, flags[heddle_rng_below32(g, 8)], t, t + d);
        if (heddle_rng_below32(g, 20) == 0)
            lab_run(b, helper_lane(g, s, lane), id, kernel, HEDDLE_LOG_GANG, t, t + d);
        t += d + heddle_rng_below(g, 10);
    }
}

static void put_rest(struct lab *b, struct heddle_rng *g, const struct shape *s)
{
    static const enum heddle_log_state_kind state[] = {
        HEDDLE_LOG_SLEEP,    HEDDLE_LOG_WAKE,   HEDDLE_LOG_DATA, HEDDLE_LOG_MEMORY,
        HEDDLE_LOG_OVERHEAD, HEDDLE_LOG_SUBMIT, HEDDLE_LOG_SPIN, HEDDLE_LOG_IDLE};
    static const enum heddle_log_event_kind kind[] = {HEDDLE_LOG_FETCH,     HEDDLE_LOG_PREFETCH,
                                                      HEDDLE_LOG_EVICT,     HEDDLE_LOG_WRITEBACK,
                                                      HEDDLE_LOG_MEM_ALLOC, HEDDLE_LOG_POWER};

    for (unsigned i = 0; i < s->ntasks / 2; i++)
        lab_state(b, heddle_rng_below32(g, s->ncores + s->ndevices),
                  state[heddle_rng_below32(g, s->has_looks ? 8 : 6)], wild_time(g, s));
    for (unsigned i = 0; s->has_moves && i < s->ntasks; i++)
        lab_move(b, kind[heddle_rng_below32(g, 6)], wild_id(g, s),
                 heddle_rng_below32(g, LAB_HANDLES), heddle_rng_below32(g, 4) % 2 ? 0x100 : 0x001,
                 wild_time(g, s), heddle_rng_below(g, 10),
                 heddle_rng_below(g, s->horizon / 10 + 1));
}

static void make_log(struct lab *b, const struct shape *s, uint64_t seed)
{
    struct heddle_rng g;

    heddle_rng_seed(&g, seed);
    lab_begin(b, s->level, s->ncores, s->ndevices);
    for (uint64_t id = 1; id <= s->ntasks; id++)
        put_task(b, &g, s, s->is_wild ? wild_id(&g, s) : id);
    put_rest(b, &g, s);
}

static struct shape random_shape(struct heddle_rng *g)
{
    return (struct shape){
        .ncores = heddle_rng_below32(g, 4),
        .ndevices = 1 + heddle_rng_below32(g, 3),
        .ntasks = heddle_rng_below32(g, 60),
        .horizon = 20 + heddle_rng_below32(g, 400),
        .is_wild = heddle_rng_below32(g, 2) == 0,
        .has_moves = heddle_rng_below32(g, 2) == 0,
        .has_looks = heddle_rng_below32(g, 2) == 0,
        .level = heddle_rng_below32(g, 4) == 0 ? HEDDLE_LOG_TASKS : HEDDLE_LOG_GRAPH,
    };
}

/* --- the rules, slowly ------------------------------------------------------------ */

struct slow {
    const heddle_log *log;
    const struct heddle_log_view *v;
    const struct heddle_explain *x;
    int64_t *ready;   /* [tasks], clipped */
    int64_t *avail;   /* [tasks] */
    uint64_t program; /* lane, or UINT64_MAX */
    bool has_looks;
};

static bool has_run(const struct heddle_log_task *t)
{
    return t->lane != HEDDLE_LOG_NO_LANE;
}

static bool is_helper(const struct heddle_log_task *t)
{
    return (t->flags & HEDDLE_LOG_GANG) != 0;
}

/* The end of a task and of all it has submitted. */
static int64_t slow_end(const struct heddle_log_view *v, uint64_t id)
{
    int64_t end = -HEDDLE_LOG_NONE;

    for (size_t i = 0; i < v->ntasks; i++)
        if (v->tasks[i].id == id && has_run(&v->tasks[i]) && v->tasks[i].end_ns > end)
            end = v->tasks[i].end_ns;
    if (end == -HEDDLE_LOG_NONE)
        return end;
    for (size_t i = 0; i < v->ntasks; i++)
        if (v->tasks[i].parent == id && v->tasks[i].id > id) {
            const int64_t e = slow_end(v, v->tasks[i].id);

            end = e > end ? e : end;
        }
    return end;
}

static void slow_times(struct slow *s)
{
    const struct heddle_log_view *v = s->v;

    for (size_t i = 0; i < v->ntasks; i++) {
        const struct heddle_log_task *t = &v->tasks[i], *prev = NULL;
        int64_t a = s->x->first_ns, r;

        for (size_t k = 0; k < v->ndeps; k++)
            if (v->deps[k].succ == t->id && v->deps[k].pred != t->id) {
                const int64_t e = slow_end(v, v->deps[k].pred);

                a = e > a ? e : a;
            }
        for (size_t k = 0; k < v->ntasks; k++) {
            const struct heddle_log_task *p = &v->tasks[k];

            if (p->id == t->parent && t->parent != 0 && p->id < t->id && has_run(p) &&
                !is_helper(p)) {
                a = p->start_ns > a ? p->start_ns : a;
                break;
            }
        }
        for (size_t k = 0; k < i; k++)
            if (v->tasks[k].id == t->id && !is_helper(&v->tasks[k]) && !is_helper(t))
                prev = &v->tasks[k];
        r = t->ready_ns != HEDDLE_LOG_NONE ? t->ready_ns : t->submit_ns;
        if (r != HEDDLE_LOG_NONE) {
            r = a > r ? a : r;
            r = t->submit_ns != HEDDLE_LOG_NONE && t->submit_ns > r ? t->submit_ns : r;
        }
        if (prev != NULL)
            r = prev->end_ns;
        if (r != HEDDLE_LOG_NONE) {
            r = r < s->x->first_ns ? s->x->first_ns : r;
            r = r > t->start_ns ? t->start_ns : r;
        }
        s->ready[i] = has_run(t) ? r : HEDDLE_LOG_NONE;
        s->avail[i] = prev != NULL ? HEDDLE_LOG_NONE : a;
    }
}

static bool slow_can_run(const struct slow *s, size_t lane, size_t task)
{
    const struct heddle_log_view *v = s->v;
    const uint32_t k = v->tasks[task].kernel;
    const bool is_device = v->lanes[lane].kind == HEDDLE_LOG_DEVICE;

    /* In these logs devices are of one kind, if it is known at all. */
    for (uint32_t i = 0; i < v->kernels[k].nvariants; i++)
        if ((v->kernels[k].variants[i].device == 2) == is_device)
            return true;
    for (size_t i = 0; i < v->ntasks; i++)
        if (v->tasks[i].kernel == k && has_run(&v->tasks[i]) &&
            v->tasks[i].status <= HEDDLE_LOG_FAILED &&
            (v->lanes[v->tasks[i].lane].kind == HEDDLE_LOG_DEVICE) == is_device)
            return true;
    return false;
}

static unsigned slow_supply(const struct slow *s, size_t lane, int64_t now)
{
    const struct heddle_log_view *v = s->v;
    bool has_begun = false, is_left = false, is_ready = false, is_late = false, is_known = false;

    for (size_t i = 0; i < v->ntasks; i++) {
        const struct heddle_log_task *t = &v->tasks[i];

        if (!has_run(t))
            continue;
        has_begun = has_begun || t->start_ns <= now;
        if (is_helper(t) || !slow_can_run(s, lane, i))
            continue;
        if (t->submit_ns != HEDDLE_LOG_NONE && s->avail[i] <= now && now < t->submit_ns)
            is_late = true;
        if (t->start_ns <= now)
            continue;
        is_left = true;
        is_known = is_known || s->ready[i] != HEDDLE_LOG_NONE;
        is_ready = is_ready || s->ready[i] <= now;
    }
    if (!has_begun)
        return HEDDLE_CAUSE_START;
    if (!is_left)
        return HEDDLE_CAUSE_END;
    if (is_ready)
        return HEDDLE_CAUSE_SCHED;
    if (is_late)
        return HEDDLE_CAUSE_SUBMIT;
    return is_known ? HEDDLE_CAUSE_DEPS : HEDDLE_CAUSE_UNKNOWN;
}

/* In a task? WORK, WASTE or HEDDLE_NCAUSES. */
static unsigned slow_busy(const struct slow *s, size_t lane, int64_t now)
{
    const struct heddle_log_view *v = s->v;
    unsigned cause = HEDDLE_NCAUSES;

    for (size_t i = 0; i < v->ntasks; i++) {
        const struct heddle_log_task *t = &v->tasks[i];
        bool is_good = t->status == HEDDLE_LOG_OK;

        if (t->lane != lane || t->start_ns > now || t->end_ns <= now)
            continue;
        for (size_t k = i + 1; k < v->ntasks && !is_helper(t); k++)
            if (v->tasks[k].id == t->id && !is_helper(&v->tasks[k]))
                is_good = false;
        if (is_good)
            return HEDDLE_CAUSE_WORK;
        cause = HEDDLE_CAUSE_WASTE;
    }
    return cause;
}

/* Without transfers. `from` and `to` are the silence or state around now. */
static unsigned slow_cause(const struct slow *s, size_t lane, int64_t now)
{
    const struct heddle_log_view *v = s->v;
    const struct heddle_log_state *state = NULL;
    int64_t from = s->x->first_ns, to = s->x->last_ns, sub = INT64_MAX;
    unsigned cause = slow_busy(s, lane, now);

    if (cause != HEDDLE_NCAUSES)
        return cause;
    for (size_t i = 0; i < v->nstates; i++) {
        const struct heddle_log_state *x = &v->states[i];

        if (x->lane != lane)
            continue;
        if (x->start_ns <= now && now < x->end_ns)
            state = x;
        if (x->end_ns <= now && x->end_ns > from)
            from = x->end_ns;
        if (x->start_ns > now && x->start_ns < to)
            to = x->start_ns;
    }
    for (size_t i = 0; i < v->ntasks; i++) {
        const struct heddle_log_task *t = &v->tasks[i];

        if (t->lane != lane || t->end_ns <= t->start_ns)
            continue;
        if (t->end_ns <= now && t->end_ns > from)
            from = t->end_ns;
        if (t->start_ns > now && t->start_ns < to)
            to = t->start_ns;
    }
    if (state != NULL && state->start_ns > from)
        from = state->start_ns;
    for (size_t i = 0; i < v->ntasks; i++)
        if (v->tasks[i].parent == 0 && v->tasks[i].submit_ns != HEDDLE_LOG_NONE &&
            v->tasks[i].submit_ns >= from && v->tasks[i].submit_ns < sub)
            sub = v->tasks[i].submit_ns;
    cause = slow_supply(s, lane, now);
    if (state != NULL && state->state == HEDDLE_LOG_DATA)
        return HEDDLE_CAUSE_DATA;
    if (state != NULL && state->state == HEDDLE_LOG_MEMORY)
        return HEDDLE_CAUSE_MEMORY;
    if (state != NULL && state->state == HEDDLE_LOG_OVERHEAD)
        return HEDDLE_CAUSE_OVERHEAD;
    if ((state != NULL && state->state == HEDDLE_LOG_SUBMIT) ||
        (lane == s->program && sub < (state != NULL ? now + 1 : to)))
        return cause == HEDDLE_CAUSE_START || cause == HEDDLE_CAUSE_END ? cause
                                                                        : HEDDLE_CAUSE_SUBMIT;
    if (state == NULL && s->has_looks && from > s->x->first_ns && to < s->x->last_ns &&
        v->lanes[lane].kind == HEDDLE_LOG_WORKER)
        return HEDDLE_CAUSE_OVERHEAD;
    return cause;
}

static uint64_t slow_program(const struct slow *s)
{
    const struct heddle_log_view *v = s->v;
    bool has_any = false;

    if (v->nlanes == 0 || v->lanes[0].kind != HEDDLE_LOG_WORKER)
        return UINT64_MAX;
    for (size_t i = 0; i < v->ntasks; i++) {
        const int64_t t = v->tasks[i].submit_ns;

        if (v->tasks[i].parent != 0 || t == HEDDLE_LOG_NONE)
            continue;
        has_any = true;
        /* Inside the union: busy just before and at that moment. */
        if (slow_busy(s, 0, t) != HEDDLE_NCAUSES && slow_busy(s, 0, t - 1) != HEDDLE_NCAUSES)
            return UINT64_MAX;
    }
    return has_any ? 0 : UINT64_MAX;
}

static void check_slowly(const heddle_log *log, const struct heddle_explain *x)
{
    const struct heddle_log_view *v = heddle_log_get_view(log);
    struct slow s = {.log = log, .v = v, .x = x};
    int64_t ns[HEDDLE_NCAUSES];

    s.ready = calloc(v->ntasks + 1, sizeof(*s.ready));
    s.avail = calloc(v->ntasks + 1, sizeof(*s.avail));
    CHECK(s.ready != NULL && s.avail != NULL);
    slow_times(&s);
    s.program = slow_program(&s);
    for (size_t i = 0; i < v->nstates; i++)
        s.has_looks = s.has_looks || v->states[i].state == HEDDLE_LOG_SPIN ||
                      v->states[i].state == HEDDLE_LOG_IDLE;
    for (size_t l = 0; l < v->nlanes; l++) {
        if (!x->lanes[l].is_worker)
            continue;
        memset(ns, 0, sizeof(ns));
        for (int64_t t = x->first_ns; t < x->last_ns; t++)
            ns[slow_cause(&s, l, t)]++;
        for (unsigned c = 0; c < HEDDLE_NCAUSES; c++) {
            if (ns[c] != x->lanes[l].ns[c])
                printf("lane %zu, %s\n", l, heddle_explain_cause_name(c));
            CHECK_EQ(x->lanes[l].ns[c], ns[c]);
        }
    }
    free(s.ready);
    free(s.avail);
}

/* --- tests ------------------------------------------------------------------------ */

TEST(random_logs)
{
    const uint64_t seed = test_seed();

    for (size_t i = 0; i < test_scale(400); i++) {
        struct heddle_explain *x;
        struct heddle_rng g;
        struct shape s;
        struct lab b;
        heddle_log *log;

        test_set_seed(seed + i);
        heddle_rng_seed(&g, seed + i);
        s = random_shape(&g);
        make_log(&b, &s, seed + i);
        log = lab_end(&b);
        x = explain_check(log);
        explain_check_curves(log);
        if (!s.has_moves && !s.is_wild)
            check_slowly(log, x);
        heddle_explain_destroy(x);
        heddle_log_close(log);
    }
}

/* Many idle workers and many changes: pieces are put together. */
TEST(many_workers)
{
    struct shape s = {
        .ncores = 100, .ndevices = 1, .ntasks = 1500, .horizon = 4000, .level = HEDDLE_LOG_GRAPH};
    struct heddle_explain *x;
    struct heddle_rng g;
    struct lab b;
    heddle_log *log;

    heddle_rng_seed(&g, test_seed());
    lab_begin(&b, s.level, s.ncores, s.ndevices);
    for (uint64_t id = 1; id <= s.ntasks; id++) {
        const uint64_t t = 5 * id;

        lab_submit(&b, id, 1, t, 0);
        lab_run(&b, (uint32_t)(id % 2), id, 1, 0, t + 1 + id % 3, t + 4);
    }
    log = lab_end(&b);
    x = explain_check(log);
    CHECK(x->ngaps < 80000); /* not 100 lanes x 3000 changes */
    /* The idle ones have what one finds by hand: in each period of 5 ns the next
     * task is submitted at 0, which would have been possible before, and starts
     * at 1, 2 or 3; until then it is ready. */
    for (unsigned l = 2; l < s.ncores; l++) {
        CHECK_EQ(x->lanes[l].ns[HEDDLE_CAUSE_START], 2);
        CHECK_EQ(x->lanes[l].ns[HEDDLE_CAUSE_SCHED], 500 * (1 + 2 + 3) - 2);
        CHECK_EQ(x->lanes[l].ns[HEDDLE_CAUSE_END], 3);
    }
    heddle_explain_destroy(x);
    heddle_log_close(log);
}

/* The same with tasks everywhere, so that gaps begin and end in the middle of what
 * is put together. Sums are compared with a lane that is idle all the time. */
TEST(many_gaps)
{
    enum { CORES = 150, TASKS = 3000 };
    int64_t idle[HEDDLE_NCAUSES] = {0};
    struct heddle_explain *x;
    struct heddle_rng g;
    struct lab b;
    heddle_log *log;

    heddle_rng_seed(&g, test_seed());
    lab_begin(&b, HEDDLE_LOG_GRAPH, CORES, 1);
    for (uint64_t id = 1; id <= TASKS; id++) {
        const uint64_t t = 7 * id + heddle_rng_below(&g, 6);

        lab_submit(&b, id, 1, 7 * id, 0);
        /* Lanes 0 to 2 stay idle. */
        lab_run(&b, 3 + heddle_rng_below32(&g, CORES - 3), id, 1, 0, t,
                t + heddle_rng_below(&g, 50));
    }
    log = lab_end(&b);
    x = explain_check(log);
    CHECK(x->ngaps < 200000); /* not 150 lanes x 6000 changes */
    for (unsigned c = 0; c < HEDDLE_NCAUSES; c++)
        CHECK_EQ(x->lanes[1].ns[c], x->lanes[2].ns[c]);
    for (size_t i = 0; i < x->ngaps; i++)
        if (x->gaps[i].lane == 2)
            idle[x->gaps[i].cause] += x->gaps[i].end_ns - x->gaps[i].start_ns;
    for (unsigned c = 0; c < HEDDLE_NCAUSES; c++) {
        CHECK_EQ(idle[c], x->lanes[2].ns[c]);
        /* Nobody has more of a cause than who is idle all the time. */
        for (unsigned l = 3; l < CORES && c >= HEDDLE_CAUSE_START; l++)
            CHECK(x->lanes[l].ns[c] <= idle[c]);
    }
    heddle_explain_destroy(x);
    heddle_log_close(log);
}

/* Cut everywhere; some bytes changed. What can be read is explained. */
TEST(damaged)
{
    const struct shape s = {.ncores = 3,
                            .ndevices = 1,
                            .ntasks = 300,
                            .horizon = 20000,
                            .has_moves = true,
                            .has_looks = true,
                            .level = HEDDLE_LOG_GRAPH};
    struct heddle_rng g;
    struct lab b;
    size_t bytes, nread = 0;
    uint8_t *p;

    make_log(&b, &s, test_seed());
    p = lab_bytes(&b, &bytes);
    heddle_rng_seed(&g, test_seed());
    for (size_t i = 0; i < test_scale(2000); i++) {
        const bool is_cut = i % 2 == 0;
        const size_t at = heddle_rng_below(&g, bytes);
        const uint8_t old = p[at];
        heddle_log *log = NULL;

        if (!is_cut)
            p[at] ^= (uint8_t)(1 + heddle_rng_below32(&g, 255));
        if (heddle_log_parse(p, is_cut ? at : bytes, NULL, &log) == HEDDLE_OK) {
            heddle_explain_destroy(explain_check(log));
            nread++;
        }
        heddle_log_close(log);
        p[at] = old;
    }
    CHECK(nread > test_scale(1000));
    free(p);
}

/* A flight recorder has the last records of each lane: ends without beginnings. */
TEST(flight_recorder)
{
    const struct heddle_clock clock = heddle_clock_virtual();
    const struct heddle_trace_opts o = {
        .clock = &clock, .level = HEDDLE_LOG_GRAPH, .nlanes = 4, .chunk_bytes = 1024, .nchunks = 2};
    struct lab b = {.ncores = 3};
    struct heddle_rng g;
    heddle_log *log = NULL;
    int fd;

    heddle_rng_seed(&g, test_seed());
    CHECK_OK(heddle_trace_create(&o, &b.tr));
    for (uint32_t l = 0; l < 3; l++)
        heddle_trace_define_lane(b.tr, l, HEDDLE_LOG_WORKER, NULL, -1, 0);
    for (uint64_t id = 1; id <= 3000; id++) {
        const uint64_t t = 10 * id + heddle_rng_below(&g, 50);
        const uint32_t lane = heddle_rng_below32(&g, 2 + (id > 2900));

        lab_submit(&b, id, 1, 10 * id, 0);
        if (id > 5)
            lab_dep(&b, id, id - heddle_rng_below(&g, 5));
        lab_run(&b, lane, id, 1, 0, t, t + 8);
        lab_state(&b, lane, HEDDLE_LOG_SPIN, t + 9);
    }
    snprintf(b.path, sizeof(b.path), "%s/heddle-flight-XXXXXX",
             getenv("TMPDIR") != NULL ? getenv("TMPDIR") : P_tmpdir);
    fd = mkstemp(b.path);
    CHECK(fd >= 0);
    close(fd);
    CHECK_OK(heddle_trace_dump(b.tr, b.path, NULL, 0));
    CHECK_OK(heddle_trace_close(b.tr, NULL, 0));
    CHECK_OK(heddle_log_open(b.path, NULL, &log));
    unlink(b.path);
    CHECK(heddle_log_get_view(log)->is_flight);
    CHECK(heddle_log_get_view(log)->overwritten > 0);
    heddle_explain_destroy(explain_check(log));
    explain_check_curves(log);
    heddle_log_close(log);
}

TEST(no_memory)
{
    const struct shape s = {.ncores = 3,
                            .ndevices = 2,
                            .ntasks = 200,
                            .horizon = 3000,
                            .has_moves = true,
                            .has_looks = true,
                            .level = HEDDLE_LOG_GRAPH};
    struct faulty f = {.has_failed = true};
    heddle_status st;
    heddle_log *log;
    struct lab b;

    make_log(&b, &s, test_seed());
    log = lab_end(&b);
    for (size_t k = 1; f.has_failed; k++) {
        struct heddle_explain *x = NULL;

        faulty_init(&f, k);
        st = heddle_explain_create(log, &f.a, &x);
        CHECK_EQ(st, f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
        CHECK((x != NULL) == (st == HEDDLE_OK));
        heddle_explain_destroy(x);
        CHECK_EQ(f.nlive, 0);
    }
    for (unsigned kind = 0; kind < HEDDLE_NCURVES; kind++) {
        f.has_failed = true;
        for (size_t k = 1; f.has_failed; k++) {
            struct heddle_explain_curve *c = NULL;

            faulty_init(&f, k);
            st = heddle_explain_curve_create(log, (enum heddle_explain_curve_kind)kind,
                                             kind == HEDDLE_CURVE_LINK ? 256 : 1, &f.a, &c);
            CHECK_EQ(st, f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
            heddle_explain_curve_destroy(c);
            CHECK_EQ(f.nlive, 0);
        }
    }
    heddle_log_close(log);
}

TEST_MAIN(random_logs, many_workers, many_gaps, damaged, flight_recorder, no_memory)
