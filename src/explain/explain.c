/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * explain: the public functions, names, memory.
 *
 * Structure  one heddle_explain_work goes through the steps: index (jobs),
 *            lanes (when each was busy), moves (transfers), idle, blame, path.
 *            The result is in the same block as the list of what it points to.
 */
#include "explain/explain.h"

#include "base/alloc.h"
#include "base/assert.h"

/* --- names ----------------------------------------------------------------- */

static const struct {
    const char *name;
    const char *text;
} cause_names[HEDDLE_NCAUSES] = {
    [HEDDLE_CAUSE_WORK] = {"work", "in a task that ended well"},
    [HEDDLE_CAUSE_WASTE] = {"waste", "in an execution that failed or was repeated"},
    [HEDDLE_CAUSE_DATA] = {"data", "operands of its next task were on their "
                                   "way"},
    [HEDDLE_CAUSE_MEMORY] = {"memory", "its next task waited for room"},
    [HEDDLE_CAUSE_OVERHEAD] = {"overhead", "in the runtime, between tasks"},
    [HEDDLE_CAUSE_START] = {"start", "no task of the run had begun yet"},
    [HEDDLE_CAUSE_END] = {"end", "no task that it could run was left to begin"},
    [HEDDLE_CAUSE_SCHED] = {"sched", "a task that it could run was ready"},
    [HEDDLE_CAUSE_SUBMIT] = {"submit", "what could have run was not submitted "
                                       "yet"},
    [HEDDLE_CAUSE_DEPS] = {"deps", "no ready task: all waited for others"},
    [HEDDLE_CAUSE_UNKNOWN] = {"unknown", "the log has not enough to tell"},
};

const char *heddle_explain_cause_name(unsigned cause)
{
    return cause < HEDDLE_NCAUSES ? cause_names[cause].name : "?";
}

const char *heddle_explain_cause_text(unsigned cause)
{
    return cause < HEDDLE_NCAUSES ? cause_names[cause].text : "?";
}

const char *heddle_explain_blame_name(unsigned blame)
{
    static const char *const name[HEDDLE_NBLAMES] = {
        [HEDDLE_BLAME_EXEC] = "exec",         [HEDDLE_BLAME_TRANSFER] = "transfer",
        [HEDDLE_BLAME_QUEUE] = "queue",       [HEDDLE_BLAME_SUBMIT] = "submit",
        [HEDDLE_BLAME_OVERHEAD] = "overhead",
    };

    return blame < HEDDLE_NBLAMES ? name[blame] : "?";
}

/* --- a run ------------------------------------------------------------------ */

/* As heddle_log_summary_create() does it. */
static void run_bounds(struct heddle_explain_work *w)
{
    const struct heddle_log_view *v = w->v;
    int64_t first = HEDDLE_LOG_NONE, last = -HEDDLE_LOG_NONE;

    for (uint32_t i = 0; i < w->nran; i++) {
        const struct heddle_log_task *t = &v->tasks[i];

        first = heddle_explain_min(first, t->start_ns);
        first = heddle_explain_min(first, t->submit_ns); /* NONE is largest */
        last = heddle_explain_max(last, t->end_ns);
    }
    if (first != HEDDLE_LOG_NONE && last > first) {
        w->first = first;
        w->last = last;
    }
}

heddle_status heddle_explain_begin(struct heddle_explain_work *w, const heddle_log *log,
                                   struct heddle_scratch *mem)
{
    const struct heddle_log_view *v = heddle_log_get_view(log);
    size_t nran = v->ntasks;

    *w = (struct heddle_explain_work){.log = log, .v = v, .mem = mem};
    while (nran > 0 && v->tasks[nran - 1].lane == HEDDLE_LOG_NO_LANE)
        nran--;
    w->nrows = (uint32_t)v->ntasks; /* the reader allows no more */
    w->nran = (uint32_t)nran;
    run_bounds(w);
    return heddle_explain_index(w);
}

struct result {
    struct heddle_explain x; /* first: what the caller sees */
    struct heddle_allocator alloc;
    struct heddle_scratch mem;
};

static heddle_status result_fill(struct result *r, const heddle_log *log,
                                 struct heddle_scratch *scratch)
{
    struct heddle_explain *x = &r->x;
    struct heddle_explain_work w;

    HEDDLE_TRY(heddle_explain_begin(&w, log, scratch));
    x->size = sizeof(*x);
    x->first_ns = w.first;
    x->last_ns = w.last;
    x->makespan_ns = w.last - w.first;
    x->ntasks = w.nrows;
    HEDDLE_TRY(heddle_explain_lanes(&w));
    HEDDLE_TRY(heddle_explain_moves(&w));
    HEDDLE_TRY(heddle_explain_idle(&w, x, &r->mem));
    HEDDLE_TRY(heddle_explain_blame(&w, x, &r->mem));
    return heddle_explain_path(&w, x, &r->mem);
}

heddle_status heddle_explain_create(const heddle_log *log, const struct heddle_allocator *a,
                                    struct heddle_explain **out)
{
    struct heddle_scratch scratch = {.a = a};
    struct result *r;
    heddle_status st;

    HEDDLE_CHECK(log != NULL && out != NULL);
    r = heddle_zalloc(a, 1, sizeof(*r));
    if (r == NULL)
        return HEDDLE_ENOMEM;
    if (a != NULL) {
        r->alloc = *a;
        r->mem.a = &r->alloc;
    }
    st = result_fill(r, log, &scratch);
    heddle_scratch_drop(&scratch);
    if (st == HEDDLE_OK)
        *out = &r->x;
    else
        heddle_explain_destroy(&r->x);
    return st;
}

void heddle_explain_destroy(struct heddle_explain *x)
{
    struct result *r = (struct result *)(void *)x;
    struct heddle_allocator alloc;
    bool is_default;

    if (r == NULL)
        return;
    heddle_scratch_drop(&r->mem);
    alloc = r->alloc;
    is_default = r->mem.a == NULL;
    heddle_free(is_default ? NULL : &alloc, r, sizeof(*r));
}
