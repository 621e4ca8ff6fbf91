/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * body: what runs inside of tasks.
 *
 * Structure  one function for all ordinary tasks: it finds its task in its
 *            argument, mixes its operands, submits children. Variants that fail
 *            or decline, and tasks that split themselves, have their own.
 * Threads    workers; a task only counts in itself, by atomics.
 */
#include "body.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "mix.h"
#include "tests/test.h"

enum { MAX_PARTS = 4, SCRATCH_BYTES = 100 };

static struct prog_task *body_task(struct heddle_exec *x)
{
    struct prog_task *t;

    CHECK(heddle_exec_arg_bytes(x) >= PROG_ARG_HEAD);
    memcpy(&t, heddle_exec_arg(x), sizeof(t));
    return t;
}

static void body_spin(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        atomic_signal_fence(memory_order_seq_cst); /* keep the loop */
        if (i % 1000 == 999)
            sched_yield();
    }
}

static void body_gather(struct heddle_exec *x, const struct prog_task *t, struct mix_mem *mem)
{
    CHECK_EQ(heddle_exec_noperands(x), t->nops);
    for (unsigned i = 0; i < t->nops; i++) {
        mem[i].ptr = heddle_exec_ptr(x, i);
        mem[i].layout = heddle_exec_layout(x, i);
        mem[i].mode = t->op[i].mode;
        CHECK(mem[i].ptr != NULL);
        CHECK_EQ(mix_count(mem[i].layout), heddle_exec_count(x, i));
    }
}

/* --- children -------------------------------------------------------------------- */

static heddle_handle *child_operand(struct heddle_exec *x, const struct prog_operand *op,
                                    heddle_handle *const *local)
{
    heddle_handle *from =
        op->unit >= 0 ? heddle_exec_operand(x, (unsigned)op->unit) : local[-1 - op->unit];
    heddle_handle *v = NULL;

    CHECK(from != NULL);
    if (op->is_whole)
        return heddle_handle_ref(from);
    CHECK_OK(heddle_view_box(from, op->rel.first, op->rel.extent, op->rel.step, &v));
    if (op->mode == HEDDLE_REDUCE)
        CHECK_OK(heddle_handle_set_sum(v));
    return v;
}

static void child_submit(struct heddle_exec *x, struct prog_task *k, heddle_handle *const *local)
{
    struct body_call c;

    for (unsigned i = 0; i < k->nops; i++)
        c.operand[i] = child_operand(x, &k->op[i], local);
    for (unsigned i = 0; i < k->nafter; i++)
        c.after[i] = k->prog->event[k->after[i]];
    body_make_call(k, &c, true);
    CHECK_OK(heddle_exec_submit(x, k->kernel, &c.call));
    for (unsigned i = 0; i < k->nops; i++)
        heddle_handle_unref(c.operand[i]);
}

static heddle_status body_children(struct heddle_exec *x, struct prog_task *t,
                                   const struct mix_mem *mem)
{
    heddle_handle *local[8] = {NULL};
    heddle_status st = HEDDLE_OK;

    CHECK(t->nlocals <= 8);
    for (unsigned i = 0; i < t->nlocals; i++)
        CHECK_OK(heddle_handle_create(heddle_exec_ctx(x), &t->local[i].layout, NULL, &local[i]));
    for (unsigned c = 0; c < t->nchildren && st == HEDDLE_OK; c++) {
        child_submit(x, t->child[c], local);
        if ((t->waits >> c & 1) == 0)
            continue;
        st = heddle_exec_wait(x);
        if (st == HEDDLE_OK)
            mix_again(mem, t->nops, t->id + c);
        else if (t->swallows)
            st = HEDDLE_OK;
    }
    for (unsigned i = 0; i < t->nlocals; i++)
        heddle_handle_unref(local[i]);
    return st;
}

/* --- ordinary tasks ------------------------------------------------------------ */

static void body_sync(void *user)
{
    heddle_exec_gang_barrier(user);
}

static void body_use_scratch(struct heddle_exec *x, const struct prog_task *t,
                             const struct mix_mem *mem, bool is_check)
{
    unsigned char *s = heddle_exec_scratch(x);

    if (heddle_exec_gang_rank(x) != 0)
        return;
    for (unsigned i = 0; i < t->nops; i++)
        if (mem[i].mode == HEDDLE_SCRATCH && is_check)
            CHECK(mix_is_filled(&mem[i], t->id + i));
        else if (mem[i].mode == HEDDLE_SCRATCH)
            mix_fill(&mem[i], t->id + i);
    if (t->shape != SHAPE_SCRATCH)
        return;
    CHECK(s != NULL && (uintptr_t)s % 64 == 0);
    for (unsigned i = 0; i < SCRATCH_BYTES && is_check; i++)
        CHECK_EQ(s[i], (unsigned char)(t->id + i));
    for (unsigned i = 0; i < SCRATCH_BYTES; i++)
        s[i] = (unsigned char)(t->id + i);
}

static heddle_status body_run(struct heddle_exec *x)
{
    struct prog_task *t = body_task(x);
    struct mix_gang gang = {.rank = heddle_exec_gang_rank(x),
                            .size = heddle_exec_gang_size(x),
                            .sync = body_sync,
                            .user = x};
    const unsigned char *arg = heddle_exec_arg(x);
    heddle_status st = HEDDLE_OK;
    struct mix_mem mem[32];

    CHECK_EQ(gang.size, t->gang > 1 ? t->gang : 1);
    if (gang.rank == 0)
        atomic_fetch_add(&t->runs, 1);
    if (t->fail == FAIL_CLEAN)
        return heddle_exec_fail(x, HEDDLE_ETASK, "as planned, at once");
    body_gather(x, t, mem);
    body_use_scratch(x, t, mem, false);
    body_spin(t->spin);
    if (t->fail == FAIL_DIRTY) {
        if (gang.rank == 0)
            mix_scribble(mem, t->nops);
        return heddle_exec_fail(x, HEDDLE_ETASK, "as planned, half done");
    }
    mix_task(mem, t->nops, arg + 8, heddle_exec_arg_bytes(x) - 8, gang.size > 1 ? &gang : NULL);
    body_use_scratch(x, t, mem, true);
    if (gang.rank == 0)
        st = body_children(x, t, mem);
    return st == HEDDLE_OK && t->fail == FAIL_LATE ? HEDDLE_ETASK : st;
}

static heddle_status body_spoil(struct heddle_exec *x)
{
    struct prog_task *t = body_task(x);
    struct mix_mem mem[32];

    body_gather(x, t, mem);
    mix_scribble(mem, t->nops);
    return HEDDLE_ETASK;
}

static heddle_status body_decline(struct heddle_exec *x)
{
    (void)body_task(x);
    return HEDDLE_EDECLINED;
}

static heddle_status body_wrong(struct heddle_exec *x)
{
    (void)x;
    CHECK(0 && "a variant that was not allowed ran");
    return HEDDLE_OK;
}

static struct heddle_cost body_cost(struct heddle_exec *x)
{
    return (struct heddle_cost){.flops = (double)heddle_exec_noperands(x), .bytes = 8};
}

void body_done(void *user, heddle_status st)
{
    struct prog_task *t = user;

    atomic_store(&t->status, (int)st);
    atomic_fetch_add(&t->ends, 1);
}

/* --- tasks that split themselves -------------------------------------------------- */

struct part_arg {
    struct prog_task *task;
    uint64_t salt;
    size_t origin[PROG_DIMS];
    unsigned depth;
};

/* The top task has an argument as all have; its parts have their own. */
static struct part_arg part_of(struct heddle_exec *x, bool is_top)
{
    struct part_arg a = {.depth = 0};

    memcpy(&a, heddle_exec_arg(x), is_top ? PROG_ARG_HEAD : sizeof(a));
    return a;
}

static heddle_status part_whole(struct heddle_exec *x, const struct part_arg *a)
{
    const struct mix_mem m = {heddle_exec_ptr(x, 0), heddle_exec_layout(x, 0), HEDDLE_RW};

    mix_part(&m, a->salt, a->origin);
    return HEDDLE_OK;
}

static heddle_status part_split(struct heddle_exec *x, const struct part_arg *a);

static heddle_status part_run(struct heddle_exec *x)
{
    const struct part_arg a = part_of(x, false);

    return part_whole(x, &a);
}

static heddle_status part_expand(struct heddle_exec *x)
{
    const struct part_arg a = part_of(x, false);

    return part_split(x, &a);
}

static heddle_status part_run_top(struct heddle_exec *x)
{
    const struct part_arg a = part_of(x, true);

    return part_whole(x, &a);
}

static heddle_status part_expand_top(struct heddle_exec *x)
{
    const struct part_arg a = part_of(x, true);

    return part_split(x, &a);
}

static enum heddle_expand part_wants(struct heddle_exec *x)
{
    return (prog_mix(heddle_exec_count(x, 0) + (uintptr_t)heddle_exec_arg_bytes(x)) & 1) != 0
               ? HEDDLE_EXPAND_YES
               : HEDDLE_EXPAND_NO;
}

static const heddle_kernel part_recurse = {
    .size = sizeof(heddle_kernel),
    .name = "part",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = part_run}},
    .expand = part_expand,
};

static const heddle_kernel part_divide = {
    .size = sizeof(heddle_kernel),
    .name = "part",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU, .run = part_run}},
    .expand = part_expand,
    .want_expand = part_wants,
};

static heddle_status part_split(struct heddle_exec *x, const struct part_arg *a)
{
    const struct heddle_layout *l = heddle_exec_layout(x, 0);
    size_t offset[PROG_DIMS] = {0}, extent[PROG_DIMS], cut;
    unsigned d = 0;

    for (unsigned i = 0; i < l->ndim; i++) {
        extent[i] = l->extent[i];
        d = l->extent[i] > l->extent[d] ? i : d;
    }
    if (a->depth == MAX_PARTS || l->extent[d] == 1)
        return part_whole(x, a);
    cut = l->extent[d] / 2;
    for (unsigned half = 0; half < 2; half++) {
        struct part_arg b = *a;
        struct heddle_call call = {.arg = &b, .arg_bytes = sizeof(b)};

        b.depth++;
        offset[d] = half == 0 ? 0 : cut;
        extent[d] = half == 0 ? cut : l->extent[d] - cut;
        b.origin[d] += offset[d];
        CHECK_OK(
            heddle_view_box(heddle_exec_operand(x, 0), offset, extent, NULL, &call.operand[0]));
        CHECK_OK(heddle_exec_submit(
            x, a->task->shape == SHAPE_DIVIDE ? &part_divide : &part_recurse, &call));
        heddle_handle_unref(call.operand[0]);
    }
    return HEDDLE_OK;
}

/* The same on a simulated device; what only cores can do is declined. */
static heddle_status body_device(struct heddle_exec *x)
{
    const struct prog_task *t = body_task(x);

    CHECK_EQ(heddle_exec_device(x), HEDDLE_DEV_CUDA);
    return t->nchildren > 0 || t->gang > 1 ? HEDDLE_EDECLINED : body_run(x);
}

/* --- kernels and calls -------------------------------------------------------------- */

static void kernel_variants(heddle_kernel *k, enum prog_shape shape, unsigned gang)
{
    const struct heddle_variant good = {.device = HEDDLE_DEV_CPU, .run = body_run, .gang = gang};
    struct heddle_variant first = good;

    switch (shape) {
    case SHAPE_RETRY: first.run = body_spoil; break;
    case SHAPE_DECLINE: first.run = body_decline; break;
    case SHAPE_SECOND: first.run = body_wrong; break;
    case SHAPE_SCRATCH: first.scratch_bytes = SCRATCH_BYTES; break;
    case SHAPE_COST: k->cost = body_cost; break;
    case SHAPE_RECURSE:
    case SHAPE_DIVIDE:
        first.run = part_run_top;
        k->expand = part_expand_top;
        k->want_expand = shape == SHAPE_DIVIDE ? part_wants : NULL;
        break;
    default: break;
    }
    k->variants[0] = first;
    if (k->expand != NULL)
        return;
    if (first.run != body_run)
        k->variants[1] = good;
    k->variants[first.run != body_run ? 2 : 1] =
        (struct heddle_variant){.device = HEDDLE_DEV_CUDA,
                                .run = body_device,
                                .scratch_bytes = shape == SHAPE_SCRATCH ? SCRATCH_BYTES : 0};
}

static bool kernel_is_same(const heddle_kernel *a, const heddle_kernel *b)
{
    return a->noperands == b->noperands && a->cost == b->cost && a->expand == b->expand &&
           a->want_expand == b->want_expand && memcmp(a->mode, b->mode, sizeof(a->mode)) == 0 &&
           memcmp(a->variants, b->variants, sizeof(a->variants)) == 0;
}

void body_make_kernels(struct prog *p)
{
    p->kernel = prog_alloc(p, p->ntasks, sizeof(*p->kernel));
    p->nkernels = 0;
    for (size_t i = 0; i < p->ntasks; i++) {
        struct prog_task *t = p->task[i];
        heddle_kernel *k = &p->kernel[p->nkernels];
        size_t n = 0;

        memset(k, 0, sizeof(*k));
        k->size = sizeof(*k);
        k->name = "mix";
        kernel_variants(k, t->shape, t->gang);
        if (!t->has_call_modes) {
            k->noperands = t->nops;
            for (unsigned o = 0; o < t->nops; o++)
                k->mode[o] = t->op[o].mode;
        }
        while (!kernel_is_same(&p->kernel[n], k))
            n++;
        t->kernel = &p->kernel[n];
        p->nkernels += n == p->nkernels;
    }
}

static void call_options(struct prog_task *t, struct body_call *c)
{
    c->opts = (struct heddle_task_opts){.size = sizeof(c->opts)};
    if (t->has_name)
        c->opts.name = "named";
    if (t->has_done) {
        c->opts.done = body_done;
        c->opts.done_user = t;
    }
    if (t->fail == FAIL_TIMEOUT)
        c->opts.timeout_ns = 1;
    if (t->shape == SHAPE_RETRY)
        c->opts.retries = 1;
    if (t->shape == SHAPE_SECOND)
        c->opts.variant = 2;
    c->opts.after = t->nafter > 0 ? c->after : NULL;
    c->opts.nafter = t->nafter;
}

void body_make_call(struct prog_task *t, struct body_call *c, bool has_opts)
{
    const bool is_short = t->nops <= HEDDLE_CALL_OPERANDS && !t->has_call_modes;

    memcpy(t->arg, &t, sizeof(t));
    c->call =
        (struct heddle_call){.arg = t->arg, .arg_bytes = t->arg_bytes, .priority = t->priority};
    for (unsigned i = 0; i < t->nops; i++) {
        c->mode[i] = t->op[i].mode;
        if (is_short)
            c->call.operand[i] = c->operand[i];
    }
    if (!is_short) {
        c->call.noperands = t->nops;
        c->call.operands = c->operand;
        c->call.modes = t->has_call_modes ? c->mode : NULL;
    }
    call_options(t, c);
    if (has_opts &&
        (t->has_name || t->has_done || t->fail == FAIL_TIMEOUT || t->shape == SHAPE_RETRY ||
         t->shape == SHAPE_SECOND || t->nafter > 0 || t->event >= 0 || t->group >= 0))
        c->call.opts = &c->opts;
}
