/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check: runs a plan on paper and compares with what it claims.
 *
 * Independent   this file includes neither plan.h nor anything else of this
 *               folder, and nothing here is called by a solver. The rules are
 *               those of heddle/plan.h, written down a second time.
 * Memory        `sum` counts what is alive in the order of the steps. `map` has
 *               the occupied intervals of the arena by offset: a new one is
 *               compared with its two neighbours.
 * Time          each transfer and each computation becomes an interval on its
 *               stream; a value remembers when it is complete and when the last
 *               transfer that touches it ends.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/compiler.h"
#include "base/sized.h"
#include "base/text.h"
#include "base/why.h"
#include "heddle/plan.h"

enum where { DEVICE, HOST, DISK, NWHERE };

/* One value. */
struct item {
    bool is_at[NWHERE];
    bool was_overwritten; /* its memory was taken by an output */
    double since[NWHERE]; /* complete there from then on */
    double until[NWHERE]; /* the last transfer that touches it there ends */
    uint64_t offset;      /* on the device */
};

struct span {
    uint64_t low, high;
};

struct run {
    const struct heddle_plan_graph *g;
    const struct heddle_plan *p;
    struct heddle_plan_machine m;
    const struct heddle_allocator *a;
    char *why;
    size_t why_bytes;

    struct item *item;   /* [nvalues] */
    uint32_t *ncomputed; /* [nops] */
    struct span *map;    /* [nspans], by low, apart from each other */
    size_t nspans, cap;
    uint32_t place; /* the next of p->places */
    uint32_t at;    /* the step */
    uint64_t sum, used[NWHERE];
    double engine; /* the computations' stream is busy until then */
    double out[NWHERE], in[NWHERE];
    double freed; /* all that was given back is free then */
    double forgotten[NWHERE];
    struct heddle_plan_report r;
};

/* ---- sentences ------------------------------------------------------------- */

#define WRONG(x, ...) (heddle_why((x)->why, (x)->why_bytes, HEDDLE_EINVAL, __VA_ARGS__), false)

HEDDLE_PRINTF(2, 3)
static bool wrong_step(struct run *x, const char *fmt, ...)
{
    struct heddle_text t;
    va_list ap;

    x->r.bad_step = x->at;
    if (x->why == NULL || x->why_bytes == 0)
        return false;
    heddle_text_init(&t, x->why, x->why_bytes);
    heddle_text_add(&t, "step %u: ", x->at);
    va_start(ap, fmt);
    heddle_text_vadd(&t, fmt, ap);
    va_end(ap);
    return false;
}

/* ---- the arena ------------------------------------------------------------- */

/* Index of the first span with low >= offset. */
static size_t find_span(const struct run *x, uint64_t offset)
{
    size_t lo = 0, hi = x->nspans;

    while (lo < hi) {
        const size_t mid = (lo + hi) / 2;

        if (x->map[mid].low < offset)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Takes [offset, offset + bytes), bytes > 0. */
static bool take(struct run *x, uint64_t offset, uint64_t bytes)
{
    const size_t i = find_span(x, offset);

    if (offset > UINT64_MAX - bytes || offset + bytes > x->m.budget)
        return wrong_step(x, "%llu bytes at address %llu end beyond the budget",
                          (unsigned long long)bytes, (unsigned long long)offset);
    if ((i > 0 && x->map[i - 1].high > offset) || (i < x->nspans && x->map[i].low < offset + bytes))
        return wrong_step(x, "%llu bytes at address %llu overlap with others",
                          (unsigned long long)bytes, (unsigned long long)offset);
    if (x->nspans == x->cap)
        return wrong_step(x, "more is in memory than there can be");
    memmove(&x->map[i + 1], &x->map[i], (x->nspans - i) * sizeof(*x->map));
    x->map[i] = (struct span){offset, offset + bytes};
    x->nspans++;
    if (offset + bytes > x->r.arena_bytes)
        x->r.arena_bytes = offset + bytes;
    return true;
}

static bool occupy(struct run *x, uint64_t offset, uint64_t bytes)
{
    if (offset % x->m.align == 0)
        return take(x, offset, bytes);
    return wrong_step(x, "address %llu is not a multiple of %llu", (unsigned long long)offset,
                      (unsigned long long)x->m.align);
}

static void vacate(struct run *x, uint64_t offset)
{
    const size_t i = find_span(x, offset);

    memmove(&x->map[i], &x->map[i + 1], (x->nspans - i - 1) * sizeof(*x->map));
    x->nspans--;
}

/* The address of a value (or of the workspace: NONE) that comes with this step:
 * places are in the order in which we ask. */
static bool next_place(struct run *x, uint32_t value, uint64_t *offset)
{
    const struct heddle_plan_place *q = &x->p->places[x->place];

    if (x->place == x->p->nplaces || q->step != x->at || q->value != value)
        return wrong_step(x, "there is no address for %s %u",
                          value == HEDDLE_PLAN_NONE ? "the workspace; place" : "value",
                          value == HEDDLE_PLAN_NONE ? x->place : value);
    *offset = q->offset;
    x->place++;
    return true;
}

static void count_live(struct run *x, uint64_t bytes)
{
    x->sum += bytes;
    if (x->sum > x->r.peak_bytes)
        x->r.peak_bytes = x->sum;
}

/* Room for a value that comes to the device. */
static bool arrive(struct run *x, uint32_t v, double since)
{
    struct item *it = &x->item[v];
    const uint64_t bytes = x->g->values[v].bytes;

    if (bytes > 0 && (!next_place(x, v, &it->offset) || !occupy(x, it->offset, bytes)))
        return false;
    it->is_at[DEVICE] = true;
    it->since[DEVICE] = since;
    it->until[DEVICE] = since;
    count_live(x, bytes);
    return true;
}

static void leave(struct run *x, uint32_t v)
{
    x->item[v].is_at[DEVICE] = false;
    x->sum -= x->g->values[v].bytes;
    if (x->g->values[v].bytes > 0)
        vacate(x, x->item[v].offset);
}

/* ---- steps --------------------------------------------------------------- */

static void push(double *t, double to)
{
    if (*t < to)
        *t = to;
}

/* The output of an operation that takes the memory of an input. */
static bool overwrite(struct run *x, const struct heddle_plan_op *op, double end)
{
    const uint32_t from = op->inplace, to = op->first_value;
    const uint64_t had = x->g->values[from].bytes;
    const uint64_t needs = x->g->values[to].bytes;
    const uint64_t offset = x->item[from].offset;

    if (needs > had)
        return wrong_step(x, "value %u is too large for the memory of value %u", to, from);
    leave(x, from);
    x->item[from].was_overwritten = true;
    if (!arrive(x, to, end))
        return false;
    if (needs > 0 && x->item[to].offset != offset)
        return wrong_step(x,
                          "value %u takes the memory of value %u, and has "
                          "another address",
                          to, from);
    if (needs == had)
        return true;
    /* The rest of the input is in use while the operation runs. */
    push(&x->freed, end);
    return take(x, offset + needs, had - needs);
}

static bool may_compute(struct run *x, const struct heddle_plan_step *s)
{
    const struct heddle_plan_op *op = &x->g->ops[s->what];

    if (op->nvalues < 64 && s->outputs >> op->nvalues != 0)
        return wrong_step(x, "operation %u has no such output", s->what);
    if (op->nvalues > 0 && (s->outputs & 1) == 0)
        return wrong_step(x, "operation %u must make its first output", s->what);
    if ((op->flags & HEDDLE_PLAN_ONCE) != 0 && x->ncomputed[s->what] > 0)
        return wrong_step(x, "operation %u must not be computed again", s->what);
    for (uint32_t i = 0; i < op->ninputs; i++)
        if (!x->item[x->g->inputs[op->first_input + i]].is_at[DEVICE])
            return wrong_step(x,
                              "operation %u needs value %u, which is not "
                              "in memory",
                              s->what, x->g->inputs[op->first_input + i]);
    if (s->in_place && op->inplace == HEDDLE_PLAN_NONE)
        return wrong_step(x, "operation %u may not take an input's memory", s->what);
    if (s->in_place && x->item[op->first_value].is_at[DEVICE])
        return wrong_step(x, "value %u is in memory already", op->first_value);
    return true;
}

/* Outputs in the order of their numbers, each with its address; while the
 * operation runs, all that it overwrites is still counted. */
static bool make_outputs(struct run *x, const struct heddle_plan_step *s, double end)
{
    const struct heddle_plan_op *op = &x->g->ops[s->what];
    const uint64_t shrink =
        s->in_place ? x->g->values[op->inplace].bytes - x->g->values[op->first_value].bytes : 0;
    const uint64_t rest =
        s->in_place ? x->item[op->inplace].offset + x->g->values[op->first_value].bytes : 0;
    uint64_t offset = 0;

    for (uint32_t i = 0; i < op->nvalues; i++) {
        const uint32_t v = op->first_value + i;

        if ((s->outputs >> i & 1) == 0 || x->item[v].is_at[DEVICE])
            continue;
        if (i == 0 && s->in_place) {
            if (!overwrite(x, op, end))
                return false;
        } else if (!arrive(x, v, end)) {
            return false;
        }
    }
    count_live(x, shrink + op->work_bytes);
    if (op->work_bytes > 0) {
        if (!next_place(x, HEDDLE_PLAN_NONE, &offset) || !occupy(x, offset, op->work_bytes))
            return false;
        vacate(x, offset);
        push(&x->freed, end);
    }
    x->sum -= shrink + op->work_bytes;
    if (shrink > 0)
        vacate(x, rest);
    return true;
}

static bool do_compute(struct run *x, const struct heddle_plan_step *s)
{
    const struct heddle_plan_op *op;
    double begin;

    if (s->what >= x->g->nops)
        return wrong_step(x, "there is no operation %u", s->what);
    if (s->level != 0)
        return wrong_step(x, "a computation has no level");
    op = &x->g->ops[s->what];
    if (!may_compute(x, s))
        return false;
    begin = x->engine;
    push(&begin, x->freed);
    for (uint32_t i = 0; i < op->ninputs; i++)
        push(&begin, x->item[x->g->inputs[op->first_input + i]].since[DEVICE]);
    if (s->in_place)
        push(&begin, x->item[op->inplace].until[DEVICE]);
    x->engine = begin + op->time;
    x->r.compute += op->time;
    x->r.ncomputed++;
    x->r.nrepeated += x->ncomputed[s->what] > 0;
    x->ncomputed[s->what]++;
    return make_outputs(x, s, x->engine);
}

static bool do_discard(struct run *x, uint32_t v)
{
    struct item *it = &x->item[v];

    if (!it->is_at[DEVICE])
        return wrong_step(x, "value %u is not in memory", v);
    if (x->g->values[v].op == HEDDLE_PLAN_NONE && !it->is_at[HOST] && !it->is_at[DISK])
        return wrong_step(x, "the only copy of value %u would be lost", v);
    push(&x->freed, x->engine);
    push(&x->freed, it->until[DEVICE]);
    leave(x, v);
    return true;
}

static bool do_offload(struct run *x, uint32_t v, enum where w)
{
    const struct heddle_plan_store *s = w == HOST ? &x->m.host : &x->m.disk;
    const uint64_t bytes = x->g->values[v].bytes;
    struct item *it = &x->item[v];
    double begin = x->out[w];

    if (!it->is_at[DEVICE])
        return wrong_step(x, "value %u is not in memory", v);
    if (it->is_at[w])
        return wrong_step(x, "value %u has a copy there already", v);
    x->used[w] += bytes;
    if (s->bytes != 0 && x->used[w] > s->bytes)
        return wrong_step(x, "the store has no room for value %u", v);
    push(&begin, it->since[DEVICE]);
    push(&begin, x->forgotten[w]);
    x->out[w] = begin + (double)bytes / s->out_rate;
    x->r.link_busy += (double)bytes / s->out_rate;
    x->r.nmoved++;
    it->is_at[w] = true;
    it->since[w] = it->until[w] = x->out[w];
    push(&it->until[DEVICE], x->out[w]);
    return true;
}

static bool do_prefetch(struct run *x, uint32_t v, enum where w)
{
    const struct heddle_plan_store *s = w == HOST ? &x->m.host : &x->m.disk;
    const double time = (double)x->g->values[v].bytes / s->in_rate;
    struct item *it = &x->item[v];
    double begin = x->in[w];

    if (it->is_at[DEVICE])
        return wrong_step(x, "value %u is in memory already", v);
    if (!it->is_at[w])
        return wrong_step(x, "there is no copy of value %u to bring back", v);
    push(&begin, it->since[w]);
    push(&begin, x->freed);
    x->in[w] = begin + time;
    x->r.link_busy += time;
    x->r.nmoved++;
    push(&it->until[w], x->in[w]);
    return arrive(x, v, x->in[w]);
}

static bool do_forget(struct run *x, uint32_t v, enum where w)
{
    struct item *it = &x->item[v];

    if (!it->is_at[w])
        return wrong_step(x, "there is no copy of value %u to forget", v);
    it->is_at[w] = false;
    x->used[w] -= x->g->values[v].bytes;
    push(&x->forgotten[w], it->until[w]);
    return true;
}

static bool do_step(struct run *x, const struct heddle_plan_step *s)
{
    const enum where w = s->level == 1 ? HOST : DISK;

    if (s->kind == HEDDLE_PLAN_COMPUTE)
        return do_compute(x, s);
    if (s->kind > HEDDLE_PLAN_FORGET)
        return wrong_step(x, "there is no step of kind %u", s->kind);
    if (s->what >= x->g->nvalues)
        return wrong_step(x, "there is no value %u", s->what);
    if (s->in_place || s->outputs != 0)
        return wrong_step(x, "only a computation has outputs");
    if (s->kind == HEDDLE_PLAN_DISCARD)
        return s->level == 0 ? do_discard(x, s->what) : wrong_step(x, "a discard has no level");
    if (s->level != 1 && s->level != 2)
        return wrong_step(x, "there is no level %u", s->level);
    if (!((w == HOST ? x->m.host.out_rate : x->m.disk.out_rate) > 0))
        return wrong_step(x, "the machine has no %s", w == HOST ? "host store" : "disk");
    if (s->kind == HEDDLE_PLAN_OFFLOAD)
        return do_offload(x, s->what, w);
    if (s->kind == HEDDLE_PLAN_PREFETCH)
        return do_prefetch(x, s->what, w);
    return do_forget(x, s->what, w);
}

/* ---- before and behind the steps ------------------------------------------- */

/* What is there from the beginning. Its places are among those of step 0, in
 * the order of values, with the outputs of step 0 between them: those are looked
 * up here and put aside in `place` order by the caller of begin(). */
static bool begin(struct run *x)
{
    uint32_t q = 0;

    for (uint32_t v = 0; v < x->g->nvalues; v++) {
        const struct heddle_plan_value *val = &x->g->values[v];
        struct item *it = &x->item[v];

        if (val->op != HEDDLE_PLAN_NONE)
            continue;
        if ((val->flags & HEDDLE_PLAN_AT_HOST) != 0) {
            it->is_at[HOST] = true;
            x->used[HOST] += val->bytes;
            continue;
        }
        it->is_at[DEVICE] = true;
        count_live(x, val->bytes);
        if (val->bytes == 0)
            continue;
        while (q < x->p->nplaces && x->p->places[q].step == 0 && x->p->places[q].value < v)
            q++;
        if (q == x->p->nplaces || x->p->places[q].step != 0 || x->p->places[q].value != v)
            return wrong_step(x,
                              "there is no address for value %u, which is "
                              "there from the beginning",
                              v);
        it->offset = x->p->places[q].offset;
        if (!occupy(x, it->offset, val->bytes))
            return false;
    }
    if (x->used[HOST] > 0 && !(x->m.host.out_rate > 0))
        return wrong_step(x, "values begin on the host, and there is none");
    if (x->m.host.bytes != 0 && x->used[HOST] > x->m.host.bytes)
        return wrong_step(x, "the host has no room for what begins there");
    return true;
}

/* Leaves out the places of values that were in memory before step 0. */
static void skip_initial(struct run *x)
{
    while (x->at == 0 && x->place < x->p->nplaces) {
        const struct heddle_plan_place *q = &x->p->places[x->place];

        if (q->step != 0 || q->value >= x->g->nvalues ||
            x->g->values[q->value].op != HEDDLE_PLAN_NONE ||
            (x->g->values[q->value].flags & HEDDLE_PLAN_AT_HOST) != 0)
            return;
        x->place++;
    }
}

static bool check_end(struct run *x)
{
    if (x->place != x->p->nplaces)
        return WRONG(x, "place %u is for nothing", x->place);
    for (uint32_t i = 0; i < x->g->nops; i++)
        if (x->ncomputed[i] == 0)
            return WRONG(x, "operation %u is never computed", i);
    for (uint32_t v = 0; v < x->g->nvalues; v++) {
        const struct heddle_plan_value *val = &x->g->values[v];
        const struct item *it = &x->item[v];
        const bool is_result = (val->flags & HEDDLE_PLAN_RESULT) != 0;

        if (it->is_at[DEVICE] || it->is_at[HOST] || it->is_at[DISK])
            continue;
        if (is_result || (val->op == HEDDLE_PLAN_NONE && !it->was_overwritten))
            return WRONG(x, "value %u is lost at the end", v);
    }
    return true;
}

static bool same_time(struct run *x, const char *what, double claimed, double is)
{
    char buf[128];
    struct heddle_text t;

    if (isfinite(claimed) && isfinite(is) && fabs(claimed - is) <= 1e-9 * fabs(is))
        return true;
    heddle_text_init(&t, buf, sizeof(buf));
    heddle_text_double(&t, claimed);
    heddle_text_str(&t, ", and it is ");
    heddle_text_double(&t, is);
    return WRONG(x, "the plan claims that %s is %s", what, buf);
}

static bool same_bytes(struct run *x, const char *what, uint64_t claimed, uint64_t is)
{
    return claimed == is || WRONG(x, "the plan claims that %s is %llu bytes, and it is %llu", what,
                                  (unsigned long long)claimed, (unsigned long long)is);
}

static bool check_claims(struct run *x)
{
    double once = 0;

    for (uint32_t i = 0; i < x->g->nops; i++)
        once += x->g->ops[i].time;
    if (!same_bytes(x, "its budget", x->p->budget, x->m.budget) ||
        !same_bytes(x, "its peak", x->p->peak_bytes, x->r.peak_bytes) ||
        !same_bytes(x, "its arena", x->p->arena_bytes, x->r.arena_bytes) ||
        !same_time(x, "its makespan", x->p->makespan, x->r.makespan) ||
        !same_time(x, "its computation", x->p->compute, x->r.compute) ||
        !same_time(x, "every operation once", x->p->baseline, once) ||
        !same_time(x, "its link time", x->p->link_busy, x->r.link_busy))
        return false;
    if (x->r.peak_bytes > x->m.budget)
        return WRONG(x, "what is alive exceeds the budget");
    if (!(x->p->lower_bound >= 0) || !(x->p->lower_bound <= x->r.makespan * (1 + 1e-9)))
        return WRONG(x, "the lower bound is above the makespan");
    return true;
}

static bool follow(struct run *x)
{
    if (!begin(x))
        return false;
    for (x->at = 0; x->at < x->p->nsteps; x->at++) {
        const uint64_t host = x->used[HOST], disk = x->used[DISK];

        x->r.host_bytes = host > x->r.host_bytes ? host : x->r.host_bytes;
        x->r.disk_bytes = disk > x->r.disk_bytes ? disk : x->r.disk_bytes;
        skip_initial(x);
        if (!do_step(x, &x->p->steps[x->at]))
            return false;
        skip_initial(x);
    }
    x->r.host_bytes = x->used[HOST] > x->r.host_bytes ? x->used[HOST] : x->r.host_bytes;
    x->r.disk_bytes = x->used[DISK] > x->r.disk_bytes ? x->used[DISK] : x->r.disk_bytes;
    x->r.makespan = x->engine;
    for (enum where w = HOST; w <= DISK; w++) {
        push(&x->r.makespan, x->out[w]);
        push(&x->r.makespan, x->in[w]);
    }
    return check_end(x) && check_claims(x);
}

static bool open_run(struct run *x)
{
    x->cap = (size_t)x->g->nvalues + 2;
    x->item = heddle_zalloc(x->a, x->cap, sizeof(*x->item));
    x->ncomputed = heddle_zalloc(x->a, x->g->nops, sizeof(*x->ncomputed));
    x->map = heddle_zalloc(x->a, x->cap + 1, sizeof(*x->map));
    return x->item != NULL && x->ncomputed != NULL && x->map != NULL;
}

static void close_run(struct run *x)
{
    heddle_free(x->a, x->item, x->cap * sizeof(*x->item));
    heddle_free(x->a, x->ncomputed, x->g->nops * sizeof(*x->ncomputed));
    heddle_free(x->a, x->map, (x->cap + 1) * sizeof(*x->map));
}

static bool is_store(const struct heddle_plan_store *s)
{
    return isfinite(s->out_rate) && isfinite(s->in_rate) && s->out_rate >= 0 && s->in_rate >= 0 &&
           (s->out_rate > 0) == (s->in_rate > 0);
}

heddle_status heddle_plan_check(const struct heddle_plan_graph *g,
                                const struct heddle_plan_machine *m, const struct heddle_plan *p,
                                const struct heddle_plan_opts *opts,
                                struct heddle_plan_report *report_out)
{
    struct heddle_plan plan;
    struct run x = {.g = g, .p = &plan};
    struct heddle_plan_opts o;
    heddle_status st = HEDDLE_ENOMEM;

    HEDDLE_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_plan_opts, &o, opts));
    x.a = o.alloc;
    x.why = o.why;
    x.why_bytes = o.why_bytes;
    if (g == NULL || m == NULL || p == NULL) {
        (void)WRONG(&x, "a graph, a machine and a plan are needed");
        return HEDDLE_EINVAL;
    }
    HEDDLE_TRY(HEDDLE_SIZED_GET(struct heddle_plan_machine, &x.m, m, o.why, o.why_bytes));
    HEDDLE_TRY(HEDDLE_SIZED_GET(struct heddle_plan, &plan, p, o.why, o.why_bytes));
    if (report_out != NULL)
        HEDDLE_TRY(HEDDLE_SIZED_ROOM(struct heddle_plan_report, report_out, o.why, o.why_bytes));
    if ((plan.nsteps > 0 && plan.steps == NULL) || (plan.nplaces > 0 && plan.places == NULL)) {
        (void)WRONG(&x, "the plan has no steps, or no places");
        return HEDDLE_EINVAL;
    }
    x.m.align = x.m.align == 0 ? 1 : x.m.align;
    x.r.size = sizeof(x.r);
    x.r.bad_step = HEDDLE_PLAN_NONE;
    if (!is_store(&x.m.host) || !is_store(&x.m.disk)) {
        (void)WRONG(&x, "a rate of the machine makes no sense");
        return HEDDLE_EINVAL;
    }
    if (open_run(&x))
        st = follow(&x) ? HEDDLE_OK : HEDDLE_EINVAL;
    else
        (void)WRONG(&x, "no memory to check the plan");
    close_run(&x);
    if (report_out != NULL)
        heddle_sized_put(report_out, &x.r, sizeof(x.r));
    return st;
}
