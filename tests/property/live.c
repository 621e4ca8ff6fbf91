/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live: runs a program with Heddle and compares with the oracle.
 *
 * Structure  one function per operation; at the end all statuses, counts and
 *            bytes are looked at.
 * Threads    the main list and up to PROG_THREADS more; `held` and the arrays
 *            of objects are written by one list per slot.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "body.h"
#include "explain_check.h"
#include "foreign.h"
#include "mix.h"
#include "prog.h"
#include "tests/test.h"

struct live {
    struct prog *p;
    heddle_ctx *ctx;
    char log[32]; /* its file */
    heddle_handle **unit;
    void **mem; /* of roots that are the program's */
    heddle_event **event;
    heddle_group **group;
    heddle_graph **graph;
    struct foreign *foreign;
    _Atomic unsigned asked, granted; /* asynchronous acquires */
};

static void live_list(struct live *v, struct prog_list *l);

/* --- data ----------------------------------------------------------------------- */

static void live_root(struct live *v, int n)
{
    const struct prog_unit *u = &v->p->unit[n];
    const size_t bytes = u->span * heddle_dtype_bytes(u->layout.dtype);

    if (!u->is_runtime) {
        v->mem[n] = malloc(bytes);
        CHECK(v->mem[n] != NULL);
        prog_init_memory(v->p, n, v->mem[n]);
    }
    CHECK_OK(heddle_handle_create(v->ctx, &u->layout, v->mem[n], &v->unit[n]));
    if (u->has_sum)
        CHECK_OK(heddle_handle_set_sum(v->unit[n]));
}

static void live_view(struct live *v, int n)
{
    const struct prog_unit *u = &v->p->unit[n];
    heddle_handle *h = v->unit[u->parent];

    if (u->tile[0] != 0)
        CHECK_OK(heddle_view_tile(h, u->rel.first[0] / u->tile[0], u->rel.first[1] / u->tile[1],
                                  u->tile[0], u->tile[1], &v->unit[n]));
    else
        CHECK_OK(heddle_view_box(h, u->rel.first, u->rel.extent, u->rel.step, &v->unit[n]));
    if (u->has_sum)
        CHECK_OK(heddle_handle_set_sum(v->unit[n]));
}

static void live_unref(struct live *v, int n)
{
    heddle_handle_unref(v->unit[n]);
}

/* --- acquire and release ----------------------------------------------------------- */

static void live_use(const struct prog_op *op, heddle_handle *h, void *ptr)
{
    const struct mix_mem m = {ptr, heddle_handle_get_layout(h), op->mode};

    CHECK(ptr != NULL);
    if (op->want_hash != 0)
        CHECK_EQ(mix_hash(&m), op->want_hash);
    mix_acquired(&m, op->salt);
}

static void live_acquire(struct live *v, const struct prog_op *op)
{
    heddle_handle *h = v->unit[op->a];
    void *ptr = NULL;
    const heddle_status st = heddle_handle_acquire(h, op->mode, &ptr);

    CHECK_EQ(st == HEDDLE_OK, op->want == HEDDLE_OK);
    if (st == HEDDLE_OK)
        live_use(op, h, ptr);
}

struct grant {
    struct live *v;
    const struct prog_op *op;
    heddle_handle *h;
    void *ptr;
};

static void grant_finish(void *user)
{
    struct grant *g = user;

    live_use(g->op, g->h, g->ptr);
    CHECK_OK(heddle_handle_release(g->h));
    atomic_fetch_add(&g->v->granted, 1);
    free(g);
}

static void grant_come(void *user, heddle_status st, void *ptr)
{
    struct grant *g = user;

    CHECK_EQ(st == HEDDLE_OK, g->op->want == HEDDLE_OK);
    g->ptr = ptr;
    if (st != HEDDLE_OK) {
        atomic_fetch_add(&g->v->granted, 1);
        free(g);
    } else if (g->op->is_foreign) {
        foreign_ask(g->v->foreign, grant_finish, g);
    } else {
        grant_finish(g);
    }
}

static void live_acquire_async(struct live *v, const struct prog_op *op)
{
    struct grant *g = malloc(sizeof(*g));

    CHECK(g != NULL);
    *g = (struct grant){v, op, v->unit[op->a], NULL};
    atomic_fetch_add(&v->asked, 1);
    CHECK_OK(heddle_handle_acquire_async(g->h, op->mode, grant_come, g));
}

/* --- tasks ------------------------------------------------------------------------- */

static void live_options(struct live *v, const struct prog_task *t, struct body_call *c)
{
    for (unsigned i = 0; i < t->nafter; i++)
        c->after[i] = v->event[t->after[i]];
    c->opts.group = t->group >= 0 ? v->group[t->group] : NULL;
    c->opts.event_out = t->event >= 0 ? &v->event[t->event] : NULL;
}

static void live_call(struct live *v, struct prog_task *t, struct body_call *c, bool has_opts)
{
    for (unsigned i = 0; i < t->nops; i++)
        c->operand[i] = v->unit[t->op[i].unit];
    body_make_call(t, c, has_opts);
    if (has_opts)
        live_options(v, t, c);
}

static void live_tasks(struct live *v, const struct prog_op *op)
{
    struct body_call c[8];
    struct heddle_call calls[8];
    size_t n = 0;

    CHECK(op->ntasks <= 8);
    for (unsigned i = 0; i < op->ntasks; i++) {
        live_call(v, op->task[i], &c[i], true);
        calls[i] = c[i].call;
    }
    if (op->ntasks == 1) {
        CHECK_OK(heddle_submit(v->ctx, op->task[0]->kernel, &calls[0]));
        return;
    }
    CHECK_OK(heddle_submit_n(v->ctx, op->task[0]->kernel, calls, op->ntasks, &n));
    CHECK_EQ(n, op->ntasks);
}

/* --- graphs ------------------------------------------------------------------------ */

static void live_record(struct live *v, int n)
{
    const struct prog_graph *g = &v->p->graph[n];

    CHECK_OK(heddle_graph_begin(v->ctx, &v->graph[n]));
    for (unsigned i = 0; i < g->ntasks; i++) {
        struct prog_task *t = g->task[i];
        struct heddle_task_opts opts = {.size = sizeof(opts), .name = "recorded", .variant = 2};
        struct body_call c;

        live_call(v, t, &c, false);
        if (t->shape == SHAPE_SECOND)
            c.call.opts = &opts;
        CHECK_OK(heddle_graph_submit(v->graph[n], t->kernel, &c.call));
    }
    CHECK_OK(heddle_graph_end(v->graph[n]));
    CHECK_EQ(heddle_graph_get_ntasks(v->graph[n]), g->ntasks);
}

static bool live_again(void *user, unsigned pass)
{
    struct prog_launch *l = user;

    CHECK_EQ(atomic_fetch_add(&l->seen_passes, 1) + 1, pass);
    return pass < l->passes;
}

static void live_launch(struct live *v, const struct prog_op *op)
{
    struct prog_launch *l = op->launch;
    const struct prog_graph *g = &v->p->graph[op->a];
    struct heddle_binding binding[PROG_AFTER];
    struct heddle_graph_arg arg[PROG_AFTER];
    struct body_call c;
    struct heddle_launch launch = {.size = sizeof(launch),
                                   .binding = binding,
                                   .nbindings = l->nbindings,
                                   .arg = arg,
                                   .nargs = l->nargs,
                                   .priority = l->task->priority,
                                   .again_user = l};

    for (unsigned i = 0; i < l->nbindings; i++)
        binding[i] = (struct heddle_binding){v->unit[l->recorded[i]], v->unit[l->actual[i]]};
    for (unsigned i = 0; i < l->nargs; i++) {
        struct prog_task *t = g->task[l->index[i]];

        memcpy(l->arg[i], &t, sizeof(t));
        arg[i] = (struct heddle_graph_arg){l->index[i], l->arg[i], t->arg_bytes};
    }
    if (l->passes > 1)
        launch.again = live_again;
    gen_arg(v->p, l->task); /* body_make_call() writes into it */
    body_make_call(l->task, &c, true);
    live_options(v, l->task, &c);
    launch.opts = c.call.opts;
    CHECK_OK(heddle_graph_launch(v->graph[op->a], &launch));
}

/* --- events, groups, threads ---------------------------------------------------------- */

struct errand_complete {
    heddle_event *event;
    heddle_status st;
};

static void live_complete_later(void *user)
{
    struct errand_complete *e = user;

    CHECK_OK(heddle_event_complete(e->event, e->st));
    heddle_event_unref(e->event);
    free(e);
}

static void live_complete(struct live *v, const struct prog_op *op)
{
    heddle_event *event = v->event[op->a];
    struct errand_complete *e;

    if (!op->is_foreign) {
        CHECK_OK(heddle_event_complete(event, op->st));
        return;
    }
    e = malloc(sizeof(*e));
    CHECK(e != NULL);
    *e = (struct errand_complete){heddle_event_ref(event), op->st};
    foreign_ask(v->foreign, live_complete_later, e);
}

static void live_expect(heddle_status st, const struct prog_op *op, const char *what)
{
    if ((st == HEDDLE_OK) != (op->want == HEDDLE_OK)) {
        printf("%s returned %s\n", what, heddle_status_name(st));
        CHECK_EQ(st, op->want);
    }
}

struct live_thread {
    pthread_t id;
    struct live *v;
    struct prog_list *list;
};

static void *live_thread_main(void *arg)
{
    struct live_thread *t = arg;

    live_list(t->v, t->list);
    return NULL;
}

static void live_parallel(struct live *v, const struct prog_op *op)
{
    struct live_thread t[PROG_THREADS];

    for (unsigned i = 0; i < PROG_THREADS; i++) {
        t[i] = (struct live_thread){.v = v, .list = &op->list[i]};
        CHECK_EQ(pthread_create(&t[i].id, NULL, live_thread_main, &t[i]), 0);
    }
    for (unsigned i = 0; i < PROG_THREADS; i++)
        CHECK_EQ(pthread_join(t[i].id, NULL), 0);
}

static void live_wait(struct live *v, const struct prog_op *op)
{
    const heddle_status st = heddle_wait(v->ctx);

    if (op->b == WAIT_CHECKED)
        live_expect(st, op, "heddle_wait");
}

static void live_op(struct live *v, struct prog_op *op)
{
    const int a = op->a;

    switch (op->kind) {
    case OP_ROOT: live_root(v, a); break;
    case OP_VIEW: live_view(v, a); break;
    case OP_UNREF: live_unref(v, a); break;
    case OP_TASK: live_tasks(v, op); break;
    case OP_WAIT: live_wait(v, op); break;
    case OP_ACQUIRE: live_acquire(v, op); break;
    case OP_RELEASE: CHECK_OK(heddle_handle_release(v->unit[a])); break;
    case OP_ACQUIRE_ASYNC: live_acquire_async(v, op); break;
    case OP_EVENT: CHECK_OK(heddle_event_create(v->ctx, &v->event[a])); break;
    case OP_EVENT_AFTER: CHECK_OK(heddle_event_after(v->event[a], v->event[op->b])); break;
    case OP_COMPLETE: live_complete(v, op); break;
    case OP_EVENT_WAIT:
        live_expect(heddle_event_wait(v->event[a], 0), op, "heddle_event_wait");
        break;
    case OP_GROUP: CHECK_OK(heddle_group_create(v->ctx, &v->group[a])); break;
    case OP_GROUP_WAIT:
        live_expect(heddle_group_wait(v->group[a], 0), op, "heddle_group_wait");
        break;
    case OP_GROUP_CANCEL: CHECK_OK(heddle_group_cancel(v->group[a])); break;
    case OP_RECORD: live_record(v, a); break;
    case OP_LAUNCH: live_launch(v, op); break;
    case OP_RESTORE: CHECK_OK(heddle_handle_restore(v->unit[a])); break;
    case OP_CANCEL: CHECK_OK(heddle_ctx_cancel(v->ctx)); break;
    case OP_PARALLEL: live_parallel(v, op); break;
    }
}

static void live_list(struct live *v, struct prog_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        if (getenv("HEDDLE_VERBOSE") != NULL)
            prog_print_op(v->p, &l->op[i]);
        live_op(v, &l->op[i]);
    }
}

/* --- the end ------------------------------------------------------------------------- */

static void compare_bytes(struct live *v, struct oracle *o, int n, const void *seen)
{
    const struct prog_unit *u = &v->p->unit[n];
    const size_t bytes = u->span * heddle_dtype_bytes(u->layout.dtype);
    const unsigned char *a = seen, *b = oracle_memory(o, n);
    const bool *unknown = oracle_unknown(o, n);

    for (size_t i = 0; i < bytes; i++)
        if (a[i] != b[i] && !unknown[i]) {
            printf("unit %d (%s), byte %zu of %zu\n", n, heddle_dtype_name(u->layout.dtype), i,
                   bytes);
            CHECK_EQ(a[i], b[i]);
        }
}

static void live_compare_held(struct live *v, struct oracle *o)
{
    for (int n = 0; n < (int)v->p->nunits; n++) {
        const struct prog_unit *u = &v->p->unit[n];
        void *ptr = NULL;
        heddle_status st;

        if (u->parent >= 0 || !u->is_live)
            continue;
        st = heddle_handle_acquire(v->unit[n], HEDDLE_R, &ptr);
        CHECK_EQ(st == HEDDLE_OK, !oracle_is_marked(o, n));
        if (st != HEDDLE_OK)
            continue;
        compare_bytes(v, o, n, ptr);
        CHECK_OK(heddle_handle_release(v->unit[n]));
    }
}

static bool status_fits(const struct prog_task *t, int st)
{
    if (t->is_exact)
        return st == (int)t->want;
    return (st == HEDDLE_OK) == (t->want == HEDDLE_OK);
}

static void live_compare_tasks(const struct live *v)
{
    for (size_t i = 0; i < v->p->ntasks; i++) {
        struct prog_task *t = v->p->task[i];
        const unsigned runs = atomic_load(&t->runs);
        const unsigned ends = atomic_load(&t->ends);

        if (t->shape != SHAPE_RECURSE && t->shape != SHAPE_DIVIDE && runs != t->want_runs) {
            printf("task %u ran %u times\n", t->id, runs);
            CHECK_EQ(runs, t->want_runs);
        }
        if (ends == 0 || !t->has_done)
            continue;
        if (ends != t->want_ends || !status_fits(t, atomic_load(&t->status))) {
            printf("task %u ended %u times, as %s\n", t->id, ends,
                   heddle_status_name((heddle_status)atomic_load(&t->status)));
            CHECK_EQ(ends, t->want_ends);
            CHECK_EQ(atomic_load(&t->status), t->want);
        }
    }
}

static void live_drop(struct live *v)
{
    for (int n = 0; n < (int)v->p->nunits; n++)
        if (v->p->unit[n].is_live)
            heddle_handle_unref(v->unit[n]);
    for (int n = 0; n < v->p->nevents; n++)
        heddle_event_unref(v->event[n]);
    for (int n = 0; n < v->p->ngroups; n++)
        heddle_group_unref(v->group[n]);
    for (int n = 0; n < v->p->ngraphs; n++)
        heddle_graph_unref(v->graph[n]);
}

static void live_message(void *user, enum heddle_severity severity, const char *text)
{
    (void)user;
    if (severity == HEDDLE_WARNING || getenv("HEDDLE_VERBOSE") != NULL) {
        printf("  %s\n", text);
        fflush(stdout);
    }
}

/* A machine in virtual time: some cores, some devices, memories that are too
 * small now and then. */
static void live_machine(const struct prog *p, struct heddle_ctx_opts *o, char *path)
{
    static const char *const sched[] = {"heft", "prio", "eager", "dual", "multiprio", "heteroprio"};
    const uint64_t r = prog_mix(p->seed);
    const unsigned ngpus = (unsigned)(r % 4);
    const int fd = mkstemp(path);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

    CHECK(f != NULL);
    fprintf(f, "heddle-machine 2\nclass cpu kind cpu workers %u gflops 1\n",
            1 + (unsigned)(r >> 8) % 4);
    if ((r >> 40) % 2 == 0)
        fprintf(f, "overhead submit_us %g wake_us %u drive_us %u notice_us %u\n",
                (double)((r >> 41) % 8) / 4, (unsigned)(r >> 44) % 4, (unsigned)(r >> 46) % 4,
                (unsigned)(r >> 48) % 4);
    for (unsigned i = 0; i < ngpus; i++) {
        fprintf(f, "node m%u kind device\n", i);
        fprintf(f, "class g%u kind cuda workers %u node m%u gflops 2\n", i,
                1 + (unsigned)(r >> (12 + i)) % 2, i);
        fprintf(f, "duplex host m%u gbytes 1 latency_us 1\n", i);
    }
    if (ngpus > 1 && (r >> 20) % 2 == 0)
        fprintf(f, "duplex m0 m1 gbytes 4 latency_us 1\n");
    CHECK_EQ(fclose(f), 0);
    o->machine = path;
    o->execute = HEDDLE_ON;
    o->sched = sched[(r >> 24) % (sizeof(sched) / sizeof(sched[0]))];
    o->device_memory = (r >> 32) % 2 == 0 ? 0 : 1024 + (size_t)(r >> 33) % 8192;
}

/* Every other program writes a log. */
static bool live_has_log(const struct live *v)
{
    return v->p->seed % 4 < 2;
}

static void live_log_name(struct live *v)
{
    int fd;

    snprintf(v->log, sizeof(v->log), "/tmp/heddle-property-XXXXXX");
    fd = mkstemp(v->log);
    CHECK(fd >= 0);
    close(fd);
}

/* Whatever ran, its log can be explained. */
static void live_explain(struct live *v)
{
    heddle_log *log = NULL;

    CHECK_OK(heddle_log_open(v->log, NULL, &log));
    CHECK_EQ(unlink(v->log), 0);
    heddle_explain_destroy(explain_check(log));
    explain_check_curves(log);
    heddle_log_close(log);
}

static void live_create(struct live *v)
{
    const struct prog_config *c = &v->p->config;
    char path[] = "/tmp/heddle-property-XXXXXX";
    struct heddle_ctx_opts opts = {
        .size = sizeof(opts),
        .nworkers = c->nworkers,
        .sched = c->sched,
        .window = c->window,
        .helps = c->helps ? HEDDLE_ON : HEDDLE_OFF,
        .bind = HEDDLE_OFF,
        .log_level = c->log_level,
        .check = c->checks ? HEDDLE_ON : HEDDLE_OFF,
        .model_dir = "",
        .watchdog_ms = 10000,
        .message = live_message,
        .ignore_env = true,
        .spin_us = 20,
    };

    if (live_has_log(v)) {
        live_log_name(v);
        opts.log_path = v->log;
    }
    if (c->is_virtual)
        live_machine(v->p, &opts, path);
    CHECK_OK(heddle_ctx_create(&opts, &v->ctx));
    if (c->is_virtual)
        CHECK_EQ(unlink(path), 0);
    v->unit = prog_alloc(v->p, v->p->nunits, sizeof(heddle_handle *));
    v->mem = prog_alloc(v->p, v->p->nunits, sizeof(void *));
    v->event = prog_alloc(v->p, (size_t)v->p->nevents, sizeof(heddle_event *));
    v->p->event = v->event;
    v->group = prog_alloc(v->p, (size_t)v->p->ngroups, sizeof(heddle_group *));
    v->graph = prog_alloc(v->p, (size_t)v->p->ngraphs, sizeof(heddle_graph *));
}

void prog_run(struct prog *p, struct oracle *o)
{
    struct live v = {.p = p};
    const bool is_early = p->seed % 2 == 0;

    body_make_kernels(p);
    live_create(&v);
    v.foreign = foreign_start(p->seed);
    live_list(&v, &p->main);
    live_compare_held(&v, o);
    while (atomic_load(&v.asked) != atomic_load(&v.granted))
        CHECK_OK(heddle_wait(v.ctx)); /* what was asked for comes */
    foreign_stop(v.foreign);
    if (is_early)
        live_drop(&v);
    CHECK_OK(heddle_ctx_destroy(v.ctx));
    if (live_has_log(&v))
        live_explain(&v);
    if (!is_early)
        live_drop(&v);
    live_compare_tasks(&v);
    for (int n = 0; n < (int)p->nunits; n++)
        if (v.mem[n] != NULL) {
            compare_bytes(&v, o, n, v.mem[n]);
            free(v.mem[n]);
        }
}
