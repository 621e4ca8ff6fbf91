/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * No memory for a while: all allocations from the k-th on fail, for every k, or
 * allocations fail at random. Each call returns HEDDLE_OK or HEDDLE_ENOMEM,
 * nothing leaks, nothing hangs, and when there is memory again the context
 * works. The single failure is the business of alloc_fault.c.
 *
 * Structure  scenario() goes through all kinds of calls and skips what a failure
 *            has made impossible. The loop ends when a run met no failure.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/faulty_test.h"
#include "heddle/heddle.h"
#include "tests/test.h"

enum { N = 24, PATIENCE_S = 120 };

enum storm_kind { STORM_ONCE, STORM_FROM, STORM_RANDOM };

struct storm {
    struct faulty f;
    struct heddle_allocator a;
    enum storm_kind kind;
    size_t k;
    _Atomic size_t ncalls;
    _Atomic int has_begun; /* at random: not before there is a context */
    _Atomic int is_over;
};

struct world {
    struct storm storm;
    heddle_ctx *ctx;
    unsigned nworkers;
    int64_t mem[N];
    heddle_handle *vec, *mat, *tile, *box, *deep, *sum;
    heddle_event *gate, *end;
    heddle_group *group;
    heddle_graph *graph;
    _Atomic int nasked, ndone;
};

/* --- allocator ----------------------------------------------------------------- */

static void *storm_alloc(void *user, size_t bytes, size_t align)
{
    struct storm *s = user;
    const size_t n = atomic_fetch_add(&s->ncalls, 1) + 1;
    const size_t dice = (n * 2654435761u + s->k * 40503u) >> 7;
    bool fails = false;

    switch (s->kind) {
    case STORM_ONCE: fails = n == s->k; break;
    case STORM_FROM: fails = n >= s->k; break;
    case STORM_RANDOM: fails = atomic_load(&s->has_begun) && dice % (8u << s->k % 4) == 0; break;
    }
    if (fails && atomic_load(&s->is_over) == 0) {
        atomic_store(&s->f.has_failed, true);
        return NULL;
    }
    return faulty_alloc(&s->f, bytes, align);
}

static void storm_free(void *user, void *ptr, size_t bytes)
{
    faulty_free(&((struct storm *)user)->f, ptr, bytes);
}

/* True: it worked. Anything but HEDDLE_OK and HEDDLE_ENOMEM is a failure. */
static bool may_at(heddle_status st, int line, const char *what)
{
    if (st != HEDDLE_OK && st != HEDDLE_ENOMEM) {
        printf("line %d: %s is %s\n", line, what, heddle_status_name(st));
        CHECK_EQ(st, HEDDLE_ENOMEM);
    }
    return st == HEDDLE_OK;
}

#define MAY(expr) may_at(expr, __LINE__, #expr)

/* --- kernels -------------------------------------------------------------------- */

static heddle_status run_touch(struct heddle_exec *x)
{
    for (unsigned i = 0; i < heddle_exec_noperands(x); i++)
        CHECK(heddle_exec_ptr(x, i) != NULL);
    return HEDDLE_OK;
}

static heddle_status run_add(struct heddle_exec *x)
{
    int64_t *p = heddle_exec_ptr(x, 0);

    CHECK(p != NULL);
    p[0]++;
    return HEDDLE_OK;
}

static heddle_status run_add32(struct heddle_exec *x)
{
    int32_t *p = heddle_exec_ptr(x, 0);

    CHECK(p != NULL);
    p[0]++;
    return HEDDLE_OK;
}

/* All of a matrix of 32-bit numbers. */
static heddle_status run_set(struct heddle_exec *x)
{
    const struct heddle_layout *l = heddle_exec_layout(x, 0);
    int32_t *p = heddle_exec_ptr(x, 0);

    CHECK(p != NULL && l->ndim == 2 && l->dtype == HEDDLE_I32);
    for (size_t i = 0; i < l->extent[0]; i++)
        for (size_t j = 0; j < l->extent[1]; j++)
            p[i * l->stride[0] + j * l->stride[1]] += 1;
    return HEDDLE_OK;
}

static heddle_status run_two(struct heddle_exec *x)
{
    int32_t *p = heddle_exec_ptr(x, 1);

    CHECK(p != NULL);
    p[0] += *(int32_t *)heddle_exec_ptr(x, 0) + 1;
    return HEDDLE_OK;
}

/* As submit_large() submits it: every third operand is updated. */
static heddle_status run_large(struct heddle_exec *x)
{
    for (unsigned i = 0; i < heddle_exec_noperands(x); i += 3)
        if (heddle_exec_layout(x, i)->dtype == HEDDLE_I64)
            ++*(int64_t *)heddle_exec_ptr(x, i);
        else
            ++*(int32_t *)heddle_exec_ptr(x, i);
    return HEDDLE_OK;
}

static heddle_status run_fail(struct heddle_exec *x)
{
    (void)x;
    return HEDDLE_ETASK;
}

static heddle_status run_gang(struct heddle_exec *x)
{
    heddle_exec_gang_barrier(x);
    return HEDDLE_OK;
}

static struct heddle_cost any_cost(struct heddle_exec *x)
{
    (void)x;
    return (struct heddle_cost){1, 1};
}

#define KERNEL(id, n, ...)                                                                         \
    static const heddle_kernel id = {                                                              \
        .size = sizeof(heddle_kernel), .name = #id, .noperands = n, __VA_ARGS__}
#define CPU(fn) .variants = {{.device = HEDDLE_DEV_CPU, .run = fn}}

KERNEL(k_none, 0, CPU(run_touch));
KERNEL(k_large, 0, CPU(run_large));
KERNEL(k_read, 1, .mode = {HEDDLE_R}, CPU(run_touch));
KERNEL(k_write, 1, .mode = {HEDDLE_W}, CPU(run_set));
KERNEL(k_update, 1, .mode = {HEDDLE_RW}, CPU(run_add));
KERNEL(k_update32, 1, .mode = {HEDDLE_RW}, CPU(run_add32));
KERNEL(k_two, 2, .mode = {HEDDLE_R, HEDDLE_RW}, CPU(run_two));
KERNEL(k_commute, 1, .mode = {HEDDLE_COMMUTE}, CPU(run_add));
KERNEL(k_reduce, 1, .mode = {HEDDLE_REDUCE}, CPU(run_add));
KERNEL(k_scratch, 1, .mode = {HEDDLE_SCRATCH},
       .variants = {{.device = HEDDLE_DEV_CPU, .run = run_touch, .scratch_bytes = 64}});
KERNEL(k_retry, 1, .mode = {HEDDLE_RW},
       .variants = {{.device = HEDDLE_DEV_CPU, .run = run_fail},
                    {.device = HEDDLE_DEV_CPU, .run = run_add}});
KERNEL(k_cost, 1, .mode = {HEDDLE_R}, CPU(run_touch), .cost = any_cost);
KERNEL(k_gang, 0, .variants = {{.device = HEDDLE_DEV_CPU, .run = run_gang, .gang = 2}});

/* A task with children: on a view, on a local handle, a reduction. */
static heddle_status run_parent(struct heddle_exec *x)
{
    const size_t offset[] = {0}, extent[] = {3};
    struct heddle_call call = {.arg = NULL};
    heddle_handle *view = NULL, *local = NULL;
    heddle_status st;

    st = heddle_view_box(heddle_exec_operand(x, 0), offset, extent, NULL, &view);
    if (st == HEDDLE_OK)
        st = heddle_handle_set_sum(view);
    call.operand[0] = view;
    for (unsigned i = 0; i < 3 && st == HEDDLE_OK; i++)
        st = heddle_exec_submit(x, &k_update, &call);
    if (st == HEDDLE_OK)
        st = heddle_exec_wait(x);
    if (st == HEDDLE_OK)
        st = heddle_exec_submit(x, &k_reduce, &call);
    if (st == HEDDLE_OK)
        st = heddle_handle_vector(heddle_exec_ctx(x), NULL, 5, HEDDLE_I64, &local);
    call.operand[0] = local;
    if (st == HEDDLE_OK)
        st = heddle_exec_submit(x, &k_commute, &call);
    if (st == HEDDLE_OK)
        st = heddle_exec_submit(x, &k_read, &call);
    heddle_handle_unref(view);
    heddle_handle_unref(local);
    return st;
}

KERNEL(k_parent, 1, .mode = {HEDDLE_RW}, CPU(run_parent));

static enum heddle_expand always(struct heddle_exec *x)
{
    (void)x;
    return HEDDLE_EXPAND_YES;
}

KERNEL(k_expand, 1, .mode = {HEDDLE_RW}, CPU(run_touch), .expand = run_parent,
       .want_expand = always);

/* --- steps ----------------------------------------------------------------------- */

static void add_int(void *dst, const void *src, const struct heddle_layout *l, void *user)
{
    (void)user;
    for (size_t i = 0; i < l->extent[0]; i++)
        ((int64_t *)dst)[i] += ((const int64_t *)src)[i];
}

static void zero_int(void *dst, const struct heddle_layout *l, void *user)
{
    (void)user;
    memset(dst, 0, l->extent[0] * sizeof(int64_t));
}

static void make_data(struct world *w)
{
    const struct heddle_reduction sum = {zero_int, add_int, NULL};
    const size_t offset[] = {1, 2}, extent[] = {5, 4}, step[] = {2, 3};
    const size_t first[] = {1, 1}, part[] = {2, 2};

    (void)MAY(heddle_handle_vector(w->ctx, w->mem, N, HEDDLE_I64, &w->vec));
    (void)MAY(heddle_handle_matrix(w->ctx, NULL, N, N, N + 1, HEDDLE_I32, &w->mat));
    (void)MAY(heddle_handle_vector(w->ctx, NULL, 6, HEDDLE_I64, &w->sum));
    if (w->sum != NULL)
        (void)MAY(heddle_handle_set_reduction(w->sum, &sum));
    if (w->vec != NULL) {
        (void)MAY(heddle_handle_set_name(w->vec, "vec"));
        (void)MAY(heddle_handle_set_sum(w->vec));
    }
    if (w->mat != NULL) {
        (void)MAY(heddle_view_tile(w->mat, 1, 0, 8, 8, &w->tile));
        (void)MAY(heddle_view_box(w->mat, offset, extent, step, &w->box));
    }
    if (w->box != NULL)
        (void)MAY(heddle_view_box(w->box, first, part, NULL, &w->deep));
}

static void count_done(void *user, heddle_status st)
{
    (void)st;
    atomic_fetch_add(&((struct world *)user)->ndone, 1);
}

/* One task; `opts` may be NULL. Operands that do not exist: no task. */
static void submit(struct world *w, const heddle_kernel *k, heddle_handle *h,
                   struct heddle_task_opts *opts)
{
    const struct heddle_call call = {.operand = {h}, .opts = opts};

    if (k->noperands > 0 && h == NULL)
        return;
    if (opts != NULL) {
        opts->size = sizeof(*opts);
        opts->done = count_done;
        opts->done_user = w;
        atomic_fetch_add(&w->nasked, 1);
    }
    if (!MAY(heddle_submit(w->ctx, k, &call)) && opts != NULL)
        atomic_fetch_sub(&w->nasked, 1);
}

static void submit_kinds(struct world *w)
{
    submit(w, &k_none, NULL, NULL);
    for (unsigned i = 0; i < 3; i++) {
        submit(w, &k_read, w->vec, NULL);
        submit(w, &k_reduce, w->sum, NULL);
        submit(w, &k_commute, w->vec, NULL);
        submit(w, &k_write, w->tile, NULL);
        submit(w, &k_update32, w->deep, NULL);
        submit(w, &k_reduce, w->vec, NULL);
    }
    submit(w, &k_read, w->mat, NULL);
    submit(w, &k_read, w->sum, NULL);
    submit(w, &k_scratch, w->mat, NULL);
    submit(w, &k_cost, w->vec, NULL);
    submit(w, &k_parent, w->vec, NULL);
    submit(w, &k_expand, w->vec, NULL);
    submit(w, &k_retry, w->vec, &(struct heddle_task_opts){.retries = 1});
    submit(w, &k_retry, w->vec, &(struct heddle_task_opts){.variant = 2, .name = "second"});
    if (w->nworkers > 1)
        submit(w, &k_gang, NULL, NULL);
}

static void submit_large(struct world *w)
{
    static const unsigned char big[500];
    enum heddle_mode mode[30];
    heddle_handle *op[30];
    struct heddle_call call = {.arg = big, .arg_bytes = sizeof(big)};

    if (w->vec == NULL || w->mat == NULL)
        return;
    for (unsigned i = 0; i < 30; i++) {
        op[i] = i % 2 == 0 ? w->vec : w->mat;
        mode[i] = i % 3 == 0 ? HEDDLE_RW : HEDDLE_R;
    }
    (void)MAY(heddle_submit(w->ctx, &k_large, &call));
    call.operands = op;
    call.modes = mode;
    for (call.noperands = 5; call.noperands <= 30; call.noperands += 12)
        (void)MAY(heddle_submit(w->ctx, &k_large, &call));
}

/* More tasks than one chunk of records holds, all behind one event. */
static void submit_many(struct world *w)
{
    struct heddle_task_opts opts = {.after = &w->gate, .nafter = 1, .group = w->group};
    struct heddle_call calls[4];
    size_t n = 0;

    if (w->gate == NULL || w->vec == NULL)
        return;
    for (unsigned i = 0; i < 20; i++)
        submit(w, &k_read, w->vec, &opts);
    opts.event_out = &w->end;
    submit(w, &k_update, w->vec, &opts);
    for (unsigned i = 0; i < 4; i++)
        calls[i] = (struct heddle_call){.operand = {w->vec}};
    for (unsigned i = 0; i < 300; i++)
        (void)MAY(heddle_submit_n(w->ctx, &k_read, calls, 4, &n));
}

static void use_events(struct world *w)
{
    heddle_event *last = NULL;

    (void)MAY(heddle_event_create(w->ctx, &w->gate));
    (void)MAY(heddle_group_create(w->ctx, &w->group));
    submit_many(w);
    (void)MAY(heddle_event_create(w->ctx, &last));
    if (last != NULL && w->end != NULL)
        (void)MAY(heddle_event_after(last, w->end));
    if (w->gate != NULL)
        CHECK_OK(heddle_event_complete(w->gate, HEDDLE_OK));
    if (last != NULL) {
        heddle_status st;

        CHECK_OK(heddle_event_complete(last, HEDDLE_OK));
        st = heddle_event_wait(last, 0);
        CHECK(st == HEDDLE_OK || st == HEDDLE_ENOMEM || st == HEDDLE_ECANCELED);
    }
    heddle_event_unref(last);
}

static void granted(void *user, heddle_status st, void *ptr)
{
    struct world *w = user;

    CHECK(st == HEDDLE_OK ? ptr != NULL : ptr == NULL);
    if (st == HEDDLE_OK)
        CHECK_OK(heddle_handle_release(w->mat));
    atomic_fetch_add(&w->ndone, 1);
}

/* What a marked handle answers is up to the failure before. */
static void acquire(heddle_handle *h, enum heddle_mode mode)
{
    void *ptr = NULL;
    heddle_status st;

    if (h == NULL)
        return;
    st = heddle_handle_acquire(h, mode, &ptr);
    CHECK(st == HEDDLE_OK || st == HEDDLE_ENOMEM || st == HEDDLE_ECANCELED);
    if (st == HEDDLE_OK) {
        CHECK(ptr != NULL);
        CHECK_OK(heddle_handle_release(h));
    }
}

static void use_data(struct world *w)
{
    acquire(w->vec, HEDDLE_W);
    acquire(w->sum, HEDDLE_R);
    acquire(w->deep, HEDDLE_RW);
    if (w->mat == NULL)
        return;
    atomic_fetch_add(&w->nasked, 1);
    if (!MAY(heddle_handle_acquire_async(w->mat, HEDDLE_RW, granted, w)))
        atomic_fetch_sub(&w->nasked, 1);
}

/* --- graphs ------------------------------------------------------------------------ */

static bool three_times(void *user, unsigned pass)
{
    (void)user;
    return pass < 3;
}

static heddle_status record(struct world *w)
{
    const int64_t arg = 1;
    heddle_status st = HEDDLE_OK;

    for (unsigned i = 0; i < 70 && st == HEDDLE_OK; i++) {
        const struct heddle_call one = {.operand = {w->vec}, .arg = &arg, .arg_bytes = sizeof(arg)};
        const struct heddle_call two = {.operand = {w->deep, w->tile}};

        st = heddle_graph_submit(w->graph, i % 3 == 0 ? &k_update : &k_read, &one);
        if (st == HEDDLE_OK && i % 7 == 0)
            st = heddle_graph_submit(w->graph, &k_two, &two);
        if (st == HEDDLE_OK && i % 20 == 0)
            st = heddle_graph_submit(w->graph, &k_parent, &one);
    }
    (void)MAY(st);
    return st;
}

static void use_graph(struct world *w)
{
    const int64_t arg = 2;
    const struct heddle_graph_arg new_arg = {0, &arg, sizeof(arg)};
    struct heddle_binding bind = {.recorded = w->vec};
    struct heddle_task_opts opts = {
        .size = sizeof(opts), .done = count_done, .done_user = w, .group = w->group};
    struct heddle_launch l = {
        .size = sizeof(l), .arg = &new_arg, .nargs = 1, .again = three_times, .opts = &opts};

    if (w->vec == NULL || w->deep == NULL || w->tile == NULL)
        return;
    if (!MAY(heddle_graph_begin(w->ctx, &w->graph)) || record(w) != HEDDLE_OK ||
        !MAY(heddle_graph_end(w->graph)))
        return;
    (void)MAY(heddle_graph_launch(w->graph, NULL));
    atomic_fetch_add(&w->nasked, 1);
    if (!MAY(heddle_graph_launch(w->graph, &l)))
        atomic_fetch_sub(&w->nasked, 1);
    if (!MAY(heddle_handle_vector(w->ctx, NULL, N, HEDDLE_I64, &bind.actual)))
        return;
    l = (struct heddle_launch){.size = sizeof(l), .binding = &bind, .nbindings = 1};
    (void)MAY(heddle_graph_launch(w->graph, &l));
    heddle_handle_unref(bind.actual);
}

/* --- all ----------------------------------------------------------------------------- */

/* Until nothing fails any more: there is memory again. */
static void wait_all(struct world *w)
{
    unsigned n = 0;

    while (!MAY(heddle_wait(w->ctx)))
        CHECK(++n < 1000);
}

static void check_usable(struct world *w)
{
    struct heddle_ctx_stats stats = {.size = sizeof(stats)};
    heddle_handle *h = NULL;
    int64_t v[3] = {0, 0, 0};

    atomic_store(&w->storm.is_over, 1);
    wait_all(w);
    CHECK_OK(heddle_handle_vector(w->ctx, v, 3, HEDDLE_I64, &h));
    CHECK_OK(heddle_handle_set_sum(h));
    submit(w, &k_update, h, NULL);
    submit(w, &k_parent, h, NULL);
    submit(w, &k_reduce, h, NULL);
    CHECK_OK(heddle_handle_acquire(h, HEDDLE_R, NULL));
    CHECK_EQ(v[0], 6); /* 1, 4 by the children, 1 */
    CHECK_OK(heddle_handle_release(h));
    heddle_handle_unref(h);
    CHECK_OK(heddle_wait(w->ctx));
    CHECK_OK(heddle_ctx_get_stats(w->ctx, &stats));
    CHECK_EQ(stats.submitted, stats.done);
    CHECK_EQ(atomic_load(&w->nasked), atomic_load(&w->ndone));
}

static void drop_all(struct world *w)
{
    heddle_handle_unref(w->vec);
    heddle_handle_unref(w->mat);
    heddle_handle_unref(w->tile);
    heddle_handle_unref(w->box);
    heddle_handle_unref(w->deep);
    heddle_handle_unref(w->sum);
    heddle_event_unref(w->gate);
    heddle_event_unref(w->end);
    heddle_group_unref(w->group);
    heddle_graph_unref(w->graph);
}

static void scenario(struct world *w, const struct heddle_ctx_opts *o)
{
    const bool is_late = w->storm.k % 2 == 0;

    if (!MAY(heddle_ctx_create(o, &w->ctx)))
        return;
    atomic_store(&w->storm.has_begun, 1);
    make_data(w);
    submit_kinds(w);
    submit_large(w);
    use_events(w);
    use_data(w);
    use_graph(w);
    (void)MAY(heddle_mark(w->ctx, "end"));
    (void)MAY(heddle_wait(w->ctx));
    use_data(w);
    if (w->storm.k % 3 != 0)
        check_usable(w);
    if (!is_late)
        drop_all(w);
    (void)MAY(heddle_ctx_destroy(w->ctx));
    if (is_late)
        drop_all(w);
}

static char stuck[80];

static void on_alarm(int sig)
{
    (void)sig;
    if (write(STDOUT_FILENO, stuck, strlen(stuck)) >= 0)
        _exit(1);
    _exit(2);
}

/* One run; true when no allocation failed in it. */
static bool run_once(struct heddle_ctx_opts o, enum storm_kind kind, size_t k)
{
    static struct world w;

    snprintf(stuck, sizeof(stuck), "stuck: HEDDLE_SEED=%zu\n", k);
    test_set_seed(k);
    memset(&w, 0, sizeof(w));
    w.nworkers = o.nworkers;
    faulty_init(&w.storm.f, 0);
    w.storm.kind = kind;
    w.storm.k = k;
    w.storm.a = (struct heddle_allocator){storm_alloc, storm_free, &w.storm};
    o.size = sizeof(o);
    o.allocator = w.storm.a;
    o.ignore_env = true;
    o.model_dir = "";
    o.bind = HEDDLE_OFF;
    scenario(&w, &o);
    CHECK_EQ(atomic_load(&w.storm.f.nlive), 0);
    return !atomic_load(&w.storm.f.has_failed);
}

/* Every stride-th allocation; a prime under a sanitizer, so that repeated runs
 * of one part of the scenario are not all hit at the same place. */
static void run_all(struct heddle_ctx_opts o, enum storm_kind kind, size_t stride)
{
    const char *one = getenv("HEDDLE_SEED");
    const size_t step = TEST_SANITIZED ? 7 * stride : stride;
    size_t k = 1;

    signal(SIGALRM, on_alarm);
    alarm(PATIENCE_S);
    if (one != NULL)
        (void)run_once(o, kind, (size_t)strtoull(one, NULL, 0));
    else if (kind == STORM_RANDOM)
        for (; k <= test_scale(200); k++)
            (void)run_once(o, kind, k);
    else
        while (!run_once(o, kind, k))
            k += step;
    printf("     %zu runs\n", k);
    alarm(0);
}

TEST(from_then_on)
{
    run_all((struct heddle_ctx_opts){.nworkers = 2, .window = 8}, STORM_FROM, 1);
}

TEST(from_then_on_alone)
{
    run_all((struct heddle_ctx_opts){.nworkers = 1, .log_level = 3}, STORM_FROM, 1);
}

TEST(at_random)
{
    run_all((struct heddle_ctx_opts){.nworkers = 3, .sched = "eager"}, STORM_RANDOM, 1);
}

TEST(at_random_without_help)
{
    run_all((struct heddle_ctx_opts){.nworkers = 2,
                                     .helps = HEDDLE_OFF,
                                     .sched = "prio",
                                     .models = HEDDLE_ON,
                                     .log_level = 2},
            STORM_RANDOM, 1);
}

TEST(once_with_checker)
{
    run_all((struct heddle_ctx_opts){.nworkers = 1, .check = HEDDLE_ON}, STORM_ONCE, 29);
}

TEST(once_without_help)
{
    run_all(
        (struct heddle_ctx_opts){
            .nworkers = 2, .helps = HEDDLE_OFF, .models = HEDDLE_ON, .log_level = 3},
        STORM_ONCE, 1);
}

TEST_MAIN(from_then_on, from_then_on_alone, at_random, at_random_without_help, once_with_checker,
          once_without_help)
