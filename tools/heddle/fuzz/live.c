/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz/live: a random program with Heddle.
 *
 * Purpose    does the operations one after another and keeps what is seen: the
 *            status of each task, what each acquire finds, the user's memory.
 *            fuzz/check.c judges.
 * Threads    the main thread; callbacks store into their own task.
 */
#include <stdarg.h>
#include <string.h>

#include "base/atomic.h"
#include "fuzz/fuzz.h"

void fuzz_wrong(struct fuzz_run *r, const char *fmt, ...)
{
    va_list ap;

    if (r->is_wrong)
        return;
    r->is_wrong = true;
    va_start(ap, fmt);
    vsnprintf(r->why, sizeof(r->why), fmt, ap);
    va_end(ap);
}

/* A call that must not be refused. */
static bool call_ok(struct fuzz_run *r, const char *what, heddle_status st)
{
    struct heddle_error e = {.size = sizeof(e)};

    if (st == HEDDLE_OK)
        return true;
    (void)heddle_ctx_error(r->ctx, &e);
    fuzz_wrong(r, "%s was refused: %s (%s)", what, heddle_status_name(st), e.message);
    return false;
}

/* --- units --------------------------------------------------------------- */

static bool live_root(struct fuzz_run *r, int i)
{
    struct fuzz_unit *u = &r->prog->unit[i];
    const size_t elem = heddle_dtype_bytes(u->layout.dtype);
    const size_t bytes = u->span * elem;
    struct heddle_rng rng;

    u->mem = NULL;
    u->want = fuzz_alloc(r->arena, bytes, 1);
    u->flag = fuzz_alloc(r->arena, u->span, 1);
    if (!u->is_runtime)
        u->mem = fuzz_alloc(r->arena, bytes, 1);
    if (u->want == NULL || u->flag == NULL || (!u->is_runtime && u->mem == NULL)) {
        fuzz_wrong(r, "no memory for the fuzzer");
        return false;
    }
    if (!u->is_runtime) {
        heddle_rng_seed(&rng, r->prog->seed + (uint64_t)i);
        for (size_t k = 0; k < bytes; k++)
            u->mem[k] = (unsigned char)heddle_rng_next(&rng);
        memcpy(u->want, u->mem, bytes);
    }
    return call_ok(r, "a handle", heddle_handle_create(r->ctx, &u->layout, u->mem, &u->h));
}

static bool live_view(struct fuzz_run *r, int i)
{
    struct fuzz_unit *u = &r->prog->unit[i];

    return call_ok(r, "a view",
                   heddle_view_box(r->prog->unit[u->parent].h, u->rel.first, u->rel.extent,
                                   u->rel.step, &u->h));
}

static bool live_unit(struct fuzz_run *r, const struct fuzz_op *op)
{
    struct fuzz_unit *u = &r->prog->unit[op->unit];

    u->h = NULL;
    if (!(op->kind == OP_ROOT ? live_root(r, op->unit) : live_view(r, op->unit)))
        return false;
    return call_ok(r, "a reduction",
                   u->has_sum ? heddle_handle_set_sum(u->h)
                              : heddle_handle_set_reduction(u->h, &heddle_fuzz_reduction));
}

/* --- tasks --------------------------------------------------------------- */

static void task_done(void *user, heddle_status st)
{
    struct fuzz_task *t = user;

    heddle_store_rlx(&t->status, (int)st); /* read after the end */
    heddle_add_rlx(&t->ends, 1u);
}

struct submission {
    struct fuzz_arg arg;
    struct heddle_task_opts opts;
    heddle_handle *operand[FUZZ_OPERANDS];
    heddle_event *after[FUZZ_AFTER + 1];
    struct heddle_call call;
};

static void task_fill(struct fuzz_run *r, struct fuzz_task *t, struct submission *s)
{
    memset(s, 0, sizeof(*s));
    t->run = r;
    s->arg = (struct fuzz_arg){.task = t, .salt = t->salt};
    for (unsigned i = 0; i < t->nops; i++)
        s->operand[i] = r->prog->unit[t->unit[i]].h;
    s->call = (struct heddle_call){.arg = &s->arg,
                                   .arg_bytes = sizeof(s->arg),
                                   .priority = t->priority,
                                   .noperands = t->nops,
                                   .operands = s->operand,
                                   .modes = t->mode};
    for (unsigned i = 0; i < t->nchildren; i++)
        t->child[i]->run = r;
}

static struct fuzz_task *task_by_id(struct fuzz_prog *p, int id)
{
    for (unsigned i = 0; i < p->nops; i++)
        if (p->op[i].kind == OP_TASK && (int)p->op[i].task->id == id)
            return p->op[i].task;
    return NULL;
}

static void task_opts(struct fuzz_run *r, struct fuzz_task *t, struct submission *s)
{
    struct heddle_task_opts *o = &s->opts;

    if (!t->has_opts && !t->has_event)
        return;
    *o = (struct heddle_task_opts){.size = sizeof(*o),
                                   .retries = t->retries,
                                   .variant = t->variant,
                                   .devices = t->devices,
                                   .done = task_done,
                                   .done_user = t,
                                   .after = s->after};
    for (unsigned i = 0; i < t->nafter; i++) {
        const struct fuzz_task *e = task_by_id(r->prog, t->after[i]);

        if (e != NULL && e->event != NULL)
            s->after[o->nafter++] = e->event;
    }
    if (t->by_hand >= 0)
        s->after[o->nafter++] = r->event[t->by_hand];
    if (t->has_event)
        o->event_out = &t->event;
    s->call.opts = o;
}

/* Are all devices gone? Then what runs nowhere else is refused. */
static bool is_bereft(struct fuzz_run *r)
{
    struct heddle_class_info c = {.size = sizeof(c)};
    unsigned left = 0;

    for (unsigned i = 0; heddle_ctx_get_class(r->ctx, i, &c) == HEDDLE_OK; i++)
        left += strcmp(c.kind, "cpu") != 0 && !c.is_lost;
    return r->prog->config.has_loss && left == 0;
}

static bool live_task(struct fuzz_run *r, struct fuzz_task *t)
{
    struct submission s;
    heddle_status st;
    char what[32];

    task_fill(r, t, &s);
    task_opts(r, t, &s);
    snprintf(what, sizeof(what), "task %u", t->id);
    st = heddle_submit(r->ctx, fuzz_kernel(t, r->prog->config.device), &s.call);
    if (st == HEDDLE_ENOVARIANT && is_bereft(r)) {
        t->is_refused = true;
        return true;
    }
    return call_ok(r, what, st);
}

static bool graph_record(struct fuzz_run *r, struct fuzz_graph *g)
{
    struct submission s;

    if (!call_ok(r, "a recording", heddle_graph_begin(r->ctx, &g->g)))
        return false;
    for (unsigned i = 0; i < g->ntasks; i++) {
        task_fill(r, g->task[i], &s);
        if (!call_ok(r, "a recorded task",
                     heddle_graph_submit(g->g, fuzz_kernel(g->task[i], r->prog->config.device),
                                         &s.call)))
            return false;
    }
    return call_ok(r, "the end of a recording", heddle_graph_end(g->g));
}

static bool launch_again(void *user, unsigned pass)
{
    const struct fuzz_op *op = user;

    return pass < op->launch.passes;
}

static bool live_launch(struct fuzz_run *r, struct fuzz_op *op)
{
    const struct fuzz_launch *f = &op->launch;
    const struct heddle_task_opts o = {.size = sizeof(o), .done = task_done, .done_user = op->task};
    struct heddle_binding binding[FUZZ_BOUND];
    struct fuzz_arg value[FUZZ_BOUND];
    struct heddle_graph_arg arg[FUZZ_BOUND];
    const struct heddle_launch l = {.size = sizeof(l),
                                    .binding = binding,
                                    .nbindings = f->nbindings,
                                    .arg = arg,
                                    .nargs = f->nargs,
                                    .again = f->passes > 1 ? launch_again : NULL,
                                    .again_user = op,
                                    .opts = op->task->has_opts ? &o : NULL};

    op->task->run = r;
    if (op->graph->g == NULL && !graph_record(r, op->graph))
        return false;
    for (unsigned i = 0; i < f->nbindings; i++)
        binding[i] = (struct heddle_binding){.recorded = r->prog->unit[f->recorded[i]].h,
                                             .actual = r->prog->unit[f->actual[i]].h};
    for (unsigned i = 0; i < f->nargs; i++) {
        value[i] = (struct fuzz_arg){.task = op->graph->task[f->task[i]], .salt = f->salt[i]};
        arg[i] = (struct heddle_graph_arg){
            .task = f->task[i], .arg = &value[i], .arg_bytes = sizeof(value[i])};
    }
    return call_ok(r, "a launch", heddle_graph_launch(op->graph->g, &l));
}

/* --- access from outside ------------------------------------------------- */

static bool live_acquire(struct fuzz_run *r, struct fuzz_op *op)
{
    struct fuzz_unit *u = &r->prog->unit[op->unit];
    struct fuzz_mem m = {.layout = &u->layout, .mode = op->mode};
    void *ptr = NULL;

    op->st = heddle_handle_acquire(u->h, op->mode, &ptr);
    if (op->st != HEDDLE_OK)
        return r->prog->config.has_faults || call_ok(r, "an acquire", op->st);
    m.ptr = ptr;
    op->copy = fuzz_alloc(r->arena, u->count, heddle_dtype_bytes(u->layout.dtype));
    if (op->copy == NULL)
        return call_ok(r, "memory of the fuzzer", HEDDLE_ENOMEM);
    if (!heddle_mode_overwrites(op->mode))
        fuzz_pack(&m, op->copy);
    fuzz_mix_acquired(&m, op->salt);
    return true;
}

/* What the matching acquire has got: false when it was refused. */
static bool is_acquired(const struct fuzz_prog *p, const struct fuzz_op *release)
{
    for (const struct fuzz_op *op = release; op-- > p->op;)
        if (op->kind == OP_ACQUIRE && op->unit == release->unit)
            return op->st == HEDDLE_OK;
    return false;
}

static bool live_op(struct fuzz_run *r, struct fuzz_op *op)
{
    struct fuzz_unit *u = op->unit >= 0 ? &r->prog->unit[op->unit] : NULL;

    switch (op->kind) {
    case OP_ROOT:
    case OP_VIEW: return live_unit(r, op);
    case OP_UNREF:
        heddle_handle_unref(u->h);
        u->h = NULL;
        return true;
    case OP_TASK: return live_task(r, op->task);
    case OP_WAIT:
        op->st = heddle_wait(r->ctx);
        return r->prog->config.has_faults || call_ok(r, "a wait", op->st);
    case OP_ACQUIRE: return live_acquire(r, op);
    case OP_RELEASE:
        return !is_acquired(r->prog, op) || call_ok(r, "a release", heddle_handle_release(u->h));
    case OP_ADVISE:
        return call_ok(r, "an advice", heddle_handle_advise(u->h, op->advice, op->memory));
    case OP_EVENT: return call_ok(r, "an event", heddle_event_create(r->ctx, &r->event[op->event]));
    case OP_COMPLETE:
        return call_ok(r, "the end of an event",
                       heddle_event_complete(r->event[op->event], HEDDLE_OK));
    case OP_LAUNCH: return live_launch(r, op);
    }
    return false;
}

/* --- the end ------------------------------------------------------------- */

/* Every root that is left is looked at as a whole. */
static void live_look(struct fuzz_run *r)
{
    struct fuzz_prog *p = r->prog;
    const unsigned n = p->nunits;

    for (unsigned i = 0; i < n && p->nops < FUZZ_OPS - 1 && !r->is_wrong; i++) {
        struct fuzz_op *op = &p->op[p->nops];

        if (p->unit[i].h == NULL || (p->unit[i].root != (int)i && i % 4 != 0))
            continue;
        *op = (struct fuzz_op){.kind = OP_ACQUIRE, .unit = (int)i, .mode = HEDDLE_R};
        p->nops++;
        if (live_acquire(r, op) && op->st == HEDDLE_OK)
            (void)call_ok(r, "a release", heddle_handle_release(p->unit[i].h));
    }
}

static void live_drop(struct fuzz_run *r)
{
    struct fuzz_prog *p = r->prog;

    for (unsigned i = 0; i < p->nunits; i++)
        if (p->unit[i].h != NULL) {
            heddle_handle_unref(p->unit[i].h);
            p->unit[i].h = NULL;
        }
    for (unsigned i = 0; i < p->nevents; i++)
        heddle_event_unref(r->event[i]);
    for (unsigned i = 0; i < p->nops; i++) {
        if (p->op[i].kind == OP_TASK)
            heddle_event_unref(p->op[i].task->event);
        if (p->op[i].kind == OP_LAUNCH && p->op[i].graph->g != NULL) {
            heddle_graph_unref(p->op[i].graph->g);
            p->op[i].graph->g = NULL;
        }
    }
}

static void live_facts(struct fuzz_run *r)
{
    struct heddle_class_info c = {.size = sizeof(c)};
    struct heddle_ctx_stats s = {.size = sizeof(s)};

    /* Without a wait the rest of the program is still to come. */
    r->is_lost = r->prog->config.has_loss && !r->prog->config.ends_with_wait;
    for (unsigned i = 0; heddle_ctx_get_class(r->ctx, i, &c) == HEDDLE_OK; i++) {
        r->is_lost = r->is_lost || c.is_lost;
        if (c.is_lost && !r->prog->config.has_loss)
            fuzz_wrong(r, "device %s was lost for no reason", c.name);
    }
    if (heddle_ctx_get_stats(r->ctx, &s) == HEDDLE_OK) {
        r->evictions = s.evictions;
        r->copied = s.copied_bytes;
    }
}

/* After n operations: nothing that is submitted has to wait for the program. */
static void live_let_go(struct fuzz_run *r, unsigned n)
{
    struct fuzz_prog *p = r->prog;

    for (unsigned i = 0; i < p->nevents; i++)
        if (r->event[i] != NULL)
            (void)heddle_event_complete(r->event[i], HEDDLE_OK);
    for (unsigned i = 0; i < n; i++) {
        const struct fuzz_op *op = &p->op[i];
        bool is_held = op->kind == OP_ACQUIRE && op->st == HEDDLE_OK;

        for (unsigned k = i + 1; k < n; k++)
            is_held = is_held && (p->op[k].kind != OP_RELEASE || p->op[k].unit != op->unit);
        if (is_held)
            (void)heddle_handle_release(p->unit[op->unit].h);
    }
}

bool fuzz_live(struct fuzz_run *r)
{
    struct fuzz_prog *p = r->prog;
    const struct fuzz_config *c = &p->config;
    unsigned n = 0;

    for (unsigned i = 0; i < p->nunits; i++)
        p->unit[i].h = NULL;
    while (n < p->nops && live_op(r, &p->op[n]))
        n++;
    if (n < p->nops) { /* the rest may be told nothing about */
        live_let_go(r, n);
        p->nops = n + 1; /* for print: the last one was refused */
    } else if (c->ends_with_wait) {
        const heddle_status st = heddle_wait(r->ctx);

        if (c->has_faults || call_ok(r, "the last wait", st))
            live_look(r);
    }
    live_facts(r);
    if (!c->unrefs_late)
        live_drop(r);
    r->end = heddle_ctx_destroy(r->ctx);
    if (c->unrefs_late)
        live_drop(r);
    if (r->end != HEDDLE_OK && !c->has_faults)
        fuzz_wrong(r, "the context ended with %s", heddle_status_name(r->end));
    return !r->is_wrong;
}
