/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * record: the steps of a plan as a recorded graph on handles in the arena.
 *
 * Order     each part of a block has a handle of its own, laid out as the temporary is; from
 *           these the runtime knows the order of the tasks on a block. Blocks that use the
 *           same addresses one after another have nothing in common that the runtime
 *           knows: a task that uses a block waits for the tasks on the blocks that were
 *           there before (`before`), unless it comes after one that has.
 * Last      the tasks of a block that a later block waits for are those since the last one
 *           that all others of the block are ordered with (`user`).
 * Stores    a value that is moved away has a block in the store as well, of the same parts.
 * Copies    an update that the plan does not do in place: a copy of the old value, then the
 *           task on the copy.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mode.h"
#include "planned/planned.h"

/* A part of a block. */
struct part {
    uint32_t temp;
    uint64_t at; /* in the block */
    heddle_handle *handle;
};

/* A view of a part, for a view of its temporary. */
struct part_view {
    const heddle_handle *of;
    heddle_handle *view;
    struct part_view *next;
};

struct block {
    unsigned level; /* 0: the arena; 1, 2: a store */
    uint64_t at, bytes;
    struct part *part;
    uint32_t nparts;
    struct part_view *views;
    struct planned_list user;   /* nodes */
    struct planned_list before; /* nodes */
    bool is_begun;              /* its first node comes before all others of it */
};

struct record {
    struct heddle_planned *p;
    const struct planned_source *s;
    struct heddle_scratch mem;
    const struct heddle_allocator *a;
    struct planned_space space[3]; /* by level */
    uint64_t *store_at;            /* by step: of a copy in a store */
    struct block *block;           /* [cap] */
    uint32_t nblocks, cap;
    uint32_t *block_of;   /* [nvalues] where the value is now; NONE */
    uint32_t *copy_of[3]; /* the same, in a store */
    uint32_t place;       /* the next of the plan */
    uint32_t step;
    struct planned_list pred; /* of the node at hand */
    struct planned_list old;  /* blocks that another replaces */
};

/* --- blocks --------------------------------------------------------------------------- */

/* The address of a value or workspace (NONE) that comes with this step. */
static uint64_t next_place(struct record *r, uint32_t value)
{
    const struct heddle_plan_place *q = &r->p->plan->places[r->place++];

    HEDDLE_ASSERT(q->step == r->step && q->value == value);
    (void)value;
    return q->offset;
}

/* A block at [at, at + bytes), whose handles are still to come. */
static heddle_status block_open(struct record *r, unsigned level, uint64_t at, uint64_t bytes,
                                uint32_t nparts, uint32_t *out)
{
    struct block *b = &r->block[r->nblocks];

    HEDDLE_ASSERT(r->nblocks < r->cap &&
                  at + bytes <= (level == 0 ? r->p->plan->arena_bytes : r->p->store_bytes[level]));
    *out = r->nblocks++;
    b->level = level;
    b->at = at;
    b->bytes = bytes;
    b->part = heddle_scratch_get(&r->mem, nparts, sizeof(*b->part));
    if (b->part == NULL)
        return HEDDLE_ENOMEM;
    r->old.n = 0;
    HEDDLE_TRY(heddle_planned_space_take(&r->space[level], r->a, at, at + bytes, *out, &r->old));
    for (size_t i = 0; i < r->old.n; i++) {
        const struct planned_list *user = &r->block[r->old.at[i]].user;

        for (size_t k = 0; k < user->n; k++)
            HEDDLE_TRY(heddle_planned_list_add(&b->before, r->a, user->at[k]));
    }
    return HEDDLE_OK;
}

/* The next part of a block: `layout` at `at` of the block. */
static heddle_status block_part(struct record *r, struct block *b, uint32_t temp, uint64_t at,
                                const struct heddle_layout *layout)
{
    struct part *part = &b->part[b->nparts];
    char *const base = b->level == 0 ? r->p->arena : r->p->host;
    const struct heddle_layout mark = {.dtype = HEDDLE_U8, .ndim = 1, .extent = {1}};

    /* What is on the disk has no memory: the handle is there for the order. */
    HEDDLE_TRY(b->level == 2
                   ? heddle_handle_create(r->p->ctx, &mark, &r->p->mark, &part->handle)
                   : heddle_handle_create(r->p->ctx, layout, base + b->at + at, &part->handle));
    part->at = at;
    part->temp = temp;
    b->nparts++;
    r->p->handle[r->p->nhandles++] = part->handle;
    return HEDDLE_OK;
}

/* A block for all parts of a value, in the arena or in a store. */
static heddle_status block_of_value(struct record *r, unsigned level, uint64_t at, uint32_t value,
                                    uint32_t *out)
{
    const uint32_t task = r->s->value[value].op;
    const uint32_t first = r->s->first_touch[task], end = r->s->first_touch[task + 1];

    HEDDLE_TRY(block_open(r, level, at, r->s->value[value].bytes, end - first, out));
    for (uint32_t i = first; i < end; i++) {
        const struct planned_touch *t = &r->s->touch[i];
        const heddle_handle *h = r->s->temp[t->temp];
        struct block *b = &r->block[*out];

        if (t->to == PLANNED_NONE)
            continue;
        HEDDLE_TRY(block_part(r, b, t->temp, t->at, &h->layout));
        if (h->name != NULL)
            HEDDLE_TRY(heddle_handle_set_name(b->part[b->nparts - 1].handle, h->name));
    }
    return HEDDLE_OK;
}

static heddle_status block_of_work(struct record *r, const struct heddle_graph_task *t,
                                   uint64_t bytes, uint32_t *out)
{
    uint64_t at = 0;

    HEDDLE_TRY(block_open(r, 0, next_place(r, HEDDLE_PLAN_NONE), bytes, t->noperands, out));
    for (unsigned i = 0; i < t->noperands; i++) {
        if (!heddle_mode_is_scratch(t->modes[i]))
            continue;
        at = planned_round(at);
        HEDDLE_TRY(block_part(r, &r->block[*out], i, at, &t->operands[i]->dense));
        at += t->operands[i]->bytes;
    }
    return HEDDLE_OK;
}

static const struct part *block_find(const struct block *b, uint32_t temp)
{
    const struct part *part = b->part;

    while (part->temp != temp)
        part++;
    return part;
}

/* What stands for `of`, the temporary or a view of it. */
static heddle_status block_view(struct record *r, struct block *b, uint32_t temp,
                                const heddle_handle *of, heddle_handle **out)
{
    heddle_handle *whole = block_find(b, temp)->handle;
    struct part_view *v;

    *out = whole;
    if (of->root == of)
        return HEDDLE_OK;
    for (v = b->views; v != NULL; v = v->next)
        if (v->of == of) {
            *out = v->view;
            return HEDDLE_OK;
        }
    v = heddle_scratch_get(&r->mem, 1, sizeof(*v));
    if (v == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(heddle_view_box(whole, of->box.first, of->box.count, of->box.step, &v->view));
    v->of = of;
    v->next = b->views;
    b->views = v;
    *out = v->view;
    r->p->handle[r->p->nhandles++] = v->view;
    return HEDDLE_OK;
}

/* --- nodes ------------------------------------------------------------------------------ */

/* The node at hand uses a block. is_all: whatever uses the block before or after is ordered
 * with the node, through a handle. */
static heddle_status node_uses(struct record *r, uint32_t id, bool is_all)
{
    struct heddle_planned *p = r->p;
    struct block *b = &r->block[id];

    for (size_t i = p->node[p->nnodes].first_block; i < p->used.n; i++)
        if (p->used.at[i] == id)
            return HEDDLE_OK; /* a task is in a store once */
    for (size_t i = 0; !b->is_begun && i < b->before.n; i++)
        HEDDLE_TRY(heddle_planned_list_add(&r->pred, r->a, b->before.at[i]));
    b->is_begun = b->is_begun || is_all;
    if (is_all)
        b->user.n = 0;
    HEDDLE_TRY(heddle_planned_list_add(&b->user, r->a, p->nnodes));
    return b->level == 0 ? heddle_planned_list_add(&p->used, r->a, id) : HEDDLE_OK;
}

static void node_begin(struct record *r, uint32_t task)
{
    struct heddle_planned *p = r->p;

    p->node[p->nnodes].task = task;
    p->node[p->nnodes].first_block = (uint32_t)p->used.n;
    r->pred.n = 0;
}

static heddle_status node_end(struct record *r, const heddle_kernel *kernel,
                              const struct heddle_call *call, bool is_sequential)
{
    struct heddle_planned *p = r->p;

    if (is_sequential && p->nnodes > 0)
        HEDDLE_TRY(heddle_planned_list_add(&r->pred, r->a, p->nnodes - 1));
    HEDDLE_TRY(heddle_graph_submit_after(p->graph, kernel, call, r->pred.at, r->pred.n));
    p->nnodes++;
    p->node[p->nnodes].first_block = (uint32_t)p->used.n;
    return HEDDLE_OK;
}

/* --- copies ------------------------------------------------------------------------------- */

/* One part of block `from` becomes that of block `to`. */
static heddle_status record_part(struct record *r, uint32_t from, uint32_t to, uint32_t temp)
{
    const struct block *a = &r->block[from], *b = &r->block[to];
    const struct block *file = a->level == 2 ? a : b;
    const struct planned_copy copy = {.bytes = r->s->temp[temp]->span_bytes,
                                      .at = file->at + block_find(file, temp)->at,
                                      .fd = r->p->fd};

    node_begin(r, PLANNED_NONE);
    HEDDLE_TRY(node_uses(r, from, false));
    HEDDLE_TRY(node_uses(r, to, b->nparts == 1));
    return node_end(
        r,
        a->level == 2   ? &heddle_planned_fetch
        : b->level == 2 ? &heddle_planned_write
                        : &heddle_planned_copy,
        &(struct heddle_call){.operand = {block_find(a, temp)->handle, block_find(b, temp)->handle},
                              .arg = &copy,
                              .arg_bytes = sizeof(copy)},
        r->s->o->is_sequential);
}

/* The old value of a temporary becomes the new one, which the task updates then. */
static heddle_status record_copy(struct record *r, const struct planned_touch *t)
{
    r->p->ncopies++;
    return record_part(r, r->block_of[t->from], r->block_of[t->to], t->temp);
}

/* All parts of a value go to a store, or come back. */
static heddle_status record_move(struct record *r, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < r->block[from].nparts; i++) {
        HEDDLE_TRY(record_part(r, from, to, r->block[from].part[i].temp));
        r->p->nmoved++;
    }
    return HEDDLE_OK;
}

static heddle_status record_offload(struct record *r, uint32_t value, unsigned level)
{
    if (r->s->value[value].bytes == 0)
        return HEDDLE_OK;
    HEDDLE_TRY(block_of_value(r, level, r->store_at[r->step], value, &r->copy_of[level][value]));
    return record_move(r, r->block_of[value], r->copy_of[level][value]);
}

static heddle_status record_prefetch(struct record *r, uint32_t value, unsigned level)
{
    if (r->s->value[value].bytes == 0)
        return HEDDLE_OK;
    HEDDLE_TRY(block_of_value(r, 0, next_place(r, value), value, &r->block_of[value]));
    return record_move(r, r->copy_of[level][value], r->block_of[value]);
}

/* --- steps -------------------------------------------------------------------------------- */

/* Operands and modes of a task in the arena. */
struct call {
    heddle_handle *operand[HEDDLE_KERNEL_OPERANDS];
    enum heddle_mode mode[HEDDLE_KERNEL_OPERANDS];
    bool has_modes;
};

/* The temporary that a handle is, or is a view of, among those of a task; NULL: none. */
static const struct planned_touch *find_touch(const struct planned_source *s, uint32_t task,
                                              const heddle_handle *h)
{
    for (uint32_t i = s->first_touch[task]; i < s->first_touch[task + 1]; i++)
        if (s->temp[s->touch[i].temp] == h->root)
            return &s->touch[i];
    return NULL;
}

/* Operand i of the task. */
static heddle_status record_operand(struct record *r, uint32_t task,
                                    const struct heddle_graph_task *t, unsigned i, uint32_t work,
                                    struct call *c)
{
    const struct planned_touch *touch = find_touch(r->s, task, t->operands[i]);
    uint32_t id;
    bool is_all;

    c->operand[i] = t->operands[i];
    c->mode[i] = t->modes[i];
    if (heddle_mode_is_scratch(t->modes[i])) {
        c->operand[i] = block_find(&r->block[work], i)->handle;
        c->mode[i] = HEDDLE_W;
        c->has_modes = true;
        return HEDDLE_OK;
    }
    if (touch == NULL)
        return HEDDLE_OK;
    id = r->block_of[touch->to != PLANNED_NONE ? touch->to : touch->from];
    is_all = r->block[id].nparts == 1 && heddle_mode_changes(t->modes[i]) &&
             t->operands[i]->root == t->operands[i];
    HEDDLE_TRY(node_uses(r, id, is_all));
    return block_view(r, &r->block[id], touch->temp, t->operands[i], &c->operand[i]);
}

static heddle_status record_task(struct record *r, uint32_t task, uint32_t work)
{
    struct call c = {.has_modes = false};
    struct heddle_graph_task t;

    heddle_graph_get_task(r->s->g, task, &t);
    node_begin(r, task);
    for (unsigned i = 0; i < t.noperands; i++)
        HEDDLE_TRY(record_operand(r, task, &t, i, work, &c));
    if (work != PLANNED_NONE)
        HEDDLE_TRY(node_uses(r, work, true));
    return node_end(r, t.kernel,
                    &(struct heddle_call){.arg = t.arg_bytes != 0 ? t.arg : NULL,
                                          .arg_bytes = t.arg_bytes,
                                          .priority = t.priority,
                                          .noperands = t.noperands,
                                          .operands = c.operand,
                                          .modes = t.has_modes || c.has_modes ? c.mode : NULL,
                                          .opts = &t.opts},
                    r->s->o->is_sequential);
}

static heddle_status record_compute(struct record *r, const struct heddle_plan_step *step)
{
    const struct planned_source *s = r->s;
    const uint32_t task = step->what;
    const struct heddle_plan_op *op = &s->op[task];
    const bool makes = op->nvalues > 0 && s->value[op->first_value].bytes > 0;
    uint32_t work = PLANNED_NONE;

    if (makes && step->in_place) {
        (void)next_place(r, op->first_value);
        r->block_of[op->first_value] = r->block_of[op->inplace];
        r->block_of[op->inplace] = PLANNED_NONE;
    } else if (makes && r->block_of[op->first_value] == PLANNED_NONE) {
        HEDDLE_TRY(block_of_value(r, 0, next_place(r, op->first_value), op->first_value,
                                  &r->block_of[op->first_value]));
    }
    if (op->work_bytes > 0) {
        struct heddle_graph_task t;

        heddle_graph_get_task(s->g, task, &t);
        HEDDLE_TRY(block_of_work(r, &t, op->work_bytes, &work));
    }
    for (uint32_t i = s->first_touch[task]; !step->in_place && i < s->first_touch[task + 1]; i++)
        if (s->touch[i].from != PLANNED_NONE && s->touch[i].to != PLANNED_NONE)
            HEDDLE_TRY(record_copy(r, &s->touch[i]));
    return record_task(r, task, work);
}

/* One task after another: the block is there until the plan drops it, for the watcher. In
 * any order it is there until its last task has ended. */
static heddle_status record_discard(struct record *r, uint32_t value)
{
    struct heddle_planned *p = r->p;
    const uint32_t id = r->block_of[value];

    r->block_of[value] = PLANNED_NONE;
    if (!r->s->o->is_sequential || id == PLANNED_NONE || p->nnodes == 0)
        return HEDDLE_OK;
    for (size_t i = p->node[p->nnodes - 1].first_block; i < p->used.n; i++)
        if (p->used.at[i] == id)
            return HEDDLE_OK;
    HEDDLE_TRY(heddle_planned_list_add(&p->used, r->a, id));
    p->node[p->nnodes].first_block = (uint32_t)p->used.n;
    return HEDDLE_OK;
}

static heddle_status record_step(struct record *r, const struct heddle_plan_step *step)
{
    switch (step->kind) {
    case HEDDLE_PLAN_COMPUTE: return record_compute(r, step);
    case HEDDLE_PLAN_OFFLOAD: return record_offload(r, step->what, step->level);
    case HEDDLE_PLAN_PREFETCH: return record_prefetch(r, step->what, step->level);
    case HEDDLE_PLAN_DISCARD: return record_discard(r, step->what);
    default: /* what was forgotten is overwritten, behind those that read it */ return HEDDLE_OK;
    }
}

static heddle_status record_steps(struct record *r)
{
    const struct heddle_plan *plan = r->p->plan;

    for (r->step = 0; r->step < plan->nsteps; r->step++)
        HEDDLE_TRY(record_step(r, &plan->steps[r->step]));
    return heddle_graph_end(r->p->graph);
}

/* --- what is left for launches -------------------------------------------------------------- */

static heddle_status keep_blocks(struct record *r)
{
    struct heddle_planned *p = r->p;

    p->nblocks = r->nblocks;
    p->block = heddle_scratch_get(&p->mem, (size_t)r->nblocks + 1, sizeof(*p->block));
    if (p->block == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < r->nblocks; i++) {
        p->block[i].at = r->block[i].at;
        p->block[i].bytes = r->block[i].bytes;
    }
    for (size_t i = 0; i < p->used.n; i++)
        p->block[p->used.at[i]].nnodes++;
    for (uint32_t i = 0; i < r->nblocks; i++)
        heddle_store_rlx(&p->block[i].left, p->block[i].nnodes);
    return HEDDLE_OK;
}

/* The nodes of each recorded task, in their order. */
static heddle_status keep_runs(struct heddle_planned *p)
{
    p->first_run = heddle_scratch_get(&p->mem, (size_t)p->ntasks + 2, sizeof(*p->first_run));
    p->run = heddle_scratch_get(&p->mem, (size_t)p->nnodes + 1, sizeof(*p->run));
    p->least_ns = heddle_scratch_get(&p->mem, (size_t)p->ntasks + 1, sizeof(*p->least_ns));
    if (p->first_run == NULL || p->run == NULL || p->least_ns == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t k = 0; k < p->ntasks; k++)
        heddle_store_rlx(&p->least_ns[k], UINT64_MAX);
    for (uint32_t n = 0; n < p->nnodes; n++)
        if (p->node[n].task != PLANNED_NONE)
            p->first_run[p->node[n].task + 2]++;
    for (uint32_t k = 2; k < p->ntasks + 2; k++)
        p->first_run[k] += p->first_run[k - 1];
    for (uint32_t n = 0; n < p->nnodes; n++)
        if (p->node[n].task != PLANNED_NONE)
            p->run[p->first_run[p->node[n].task + 1]++] = n;
    return HEDDLE_OK;
}

/* --- all of it -------------------------------------------------------------------------------- */

/* The most nodes, handles and blocks that the steps can make. */
static void record_count(const struct record *r, size_t *nodes, size_t *handles, size_t *blocks)
{
    const struct heddle_plan *plan = r->p->plan;

    *nodes = *handles = 0;
    *blocks = plan->nplaces;
    for (uint32_t i = 0; i < plan->nsteps; i++) {
        const struct heddle_plan_step *step = &plan->steps[i];
        struct heddle_graph_task t;

        if (step->kind == HEDDLE_PLAN_DISCARD || step->kind == HEDDLE_PLAN_FORGET)
            continue;
        *blocks += step->kind == HEDDLE_PLAN_OFFLOAD;
        heddle_graph_get_task(
            r->s->g, step->kind == HEDDLE_PLAN_COMPUTE ? step->what : r->s->value[step->what].op,
            &t);
        *nodes += (size_t)t.noperands + 1;
        *handles += 2 * (size_t)t.noperands;
    }
}

static heddle_status record_room(struct record *r)
{
    struct heddle_planned *p = r->p;
    const size_t bytes = p->plan->arena_bytes, nvalues = (size_t)r->s->nvalues + 1;
    size_t nodes, handles, blocks;

    record_count(r, &nodes, &handles, &blocks);
    r->cap = (uint32_t)blocks;
    r->block = heddle_scratch_get(&r->mem, blocks + 1, sizeof(*r->block));
    r->block_of = heddle_scratch_get(&r->mem, nvalues, sizeof(*r->block_of));
    r->copy_of[1] = heddle_scratch_get(&r->mem, nvalues, sizeof(*r->copy_of[1]));
    r->copy_of[2] = heddle_scratch_get(&r->mem, nvalues, sizeof(*r->copy_of[2]));
    r->store_at = heddle_scratch_get(&r->mem, (size_t)p->plan->nsteps + 1, sizeof(*r->store_at));
    p->node = heddle_scratch_get(&p->mem, nodes + 1, sizeof(*p->node));
    p->handle = heddle_scratch_get(&p->mem, handles + 1, sizeof(heddle_handle *));
    p->arena = bytes < (size_t)4 << 20 ? heddle_alloc_aligned(&p->alloc, bytes, PLANNED_ALIGN)
                                       : heddle_alloc_large(&p->alloc, bytes);
    if (r->block == NULL || r->block_of == NULL || r->copy_of[1] == NULL || r->copy_of[2] == NULL ||
        r->store_at == NULL || p->node == NULL || p->handle == NULL ||
        (p->arena == NULL && bytes > 0))
        return HEDDLE_ENOMEM;
    if (bytes > 0) /* as all memory of the runtime: no old data go to a file */
        memset(p->arena, 0, bytes);
    memset(r->block_of, 0xff, nvalues * sizeof(*r->block_of));
    HEDDLE_TRY(heddle_planned_store_place(p, 1, &r->mem, r->store_at));
    HEDDLE_TRY(heddle_planned_store_place(p, 2, &r->mem, r->store_at));
    return heddle_planned_store_open(p, r->s->o);
}

static heddle_status record_all(struct record *r)
{
    struct heddle_planned *p = r->p;

    HEDDLE_TRY(record_room(r));
    HEDDLE_TRY(heddle_graph_begin(p->ctx, &p->graph));
    if (p->is_watched)
        heddle_graph_set_watch(p->graph, &(struct heddle_graph_watch){heddle_planned_watch_begin,
                                                                      heddle_planned_watch_end, p});
    HEDDLE_TRY(record_steps(r));
    HEDDLE_TRY(keep_blocks(r));
    return keep_runs(p);
}

heddle_status heddle_planned_record(struct heddle_planned *p, const struct planned_source *s)
{
    struct record r = {.p = p, .s = s, .mem = heddle_scratch_make(&p->alloc), .a = &p->alloc};
    const heddle_status st = record_all(&r);

    for (uint32_t i = 0; i < r.nblocks; i++) {
        heddle_planned_list_fini(&r.block[i].user, r.a);
        heddle_planned_list_fini(&r.block[i].before, r.a);
    }
    heddle_planned_list_fini(&r.pred, r.a);
    heddle_planned_list_fini(&r.old, r.a);
    for (unsigned i = 0; i < 3; i++)
        heddle_planned_space_fini(&r.space[i], r.a);
    heddle_scratch_drop(&r.mem);
    return st;
}
