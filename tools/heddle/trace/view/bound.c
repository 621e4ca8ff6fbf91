/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace/view/bound: a pack with lower bounds on the makespan.
 *
 * Purpose    the page says how good the run could be. It should open soon, so
 *            the time for it is short: `trace bound` takes longer, and writes
 *            the proof.
 * Threads    bounds are found while the caller makes the columns; both only
 *            read the log. The join hands the result over.
 */
#include "base/thread.h"
#include "common/run_bound.h"
#include "common/run_links.h"
#include "trace/view/cmd.h"

enum { MAX_TASKS = 2000000 };

#define SOLVE_NS UINT64_C(700000000)
#define LINKS_NS UINT64_C(300000000)

struct work {
    const heddle_log *log;
    struct run_bound b;
    double links_ns; /* the bound with links; 0: none */
    heddle_status st;
    struct heddle_thread thread;
    bool is_running;
};

static void *work_run(void *arg)
{
    struct work *w = arg;

    w->st = run_bound_graph(&w->b, w->log, HEDDLE_DURATIONS_MEASURED, NULL);
    if (w->st == HEDDLE_OK)
        w->st = run_bound_solve(&w->b, SOLVE_NS);
    if (w->st == HEDDLE_OK && w->b.g->graph.ntasks > 0)
        w->st = run_links_bound(w->log, w->b.g, LINKS_NS, &w->links_ns);
    return NULL;
}

static void put_none(struct heddle_json *j, const char *why)
{
    heddle_json_key_str(j, "bounds", NULL);
    heddle_json_key_str(j, "bounds_why", why);
}

static void put_values(struct heddle_json *j, const struct run_bound *b, double links_ns)
{
    heddle_json_key(j, "bounds");
    heddle_json_object(j);
    heddle_json_key(j, "kind");
    heddle_json_object(j);
    for (int k = 0; k < HEDDLE_BOUND_KINDS; k++)
        heddle_json_key_int(j, heddle_bound_kind_name((enum heddle_bound_kind)k),
                            (int64_t)b->r.cert[k].value);
    if (links_ns > 0)
        heddle_json_key_int(j, "links", (int64_t)links_ns);
    heddle_json_end(j);
    heddle_json_key_int(j, "best", (int64_t)b->r.best);
    heddle_json_key_str(j, "durations",
                        "a task takes as long as it took; on other kinds of "
                        "workers, the least that its like took there");
    heddle_json_end(j);
}

static void work_wait(struct work *w)
{
    if (w->is_running && heddle_thread_join(&w->thread) != HEDDLE_OK)
        w->st = HEDDLE_EDEADLK; /* cannot be: it is another thread */
    w->is_running = false;
}

/* For view_opts.bounds. */
static void work_put(struct heddle_json *j, void *user)
{
    struct work *w = user;

    work_wait(w);
    if (w->st != HEDDLE_OK)
        put_none(j, w->b.why[0] != '\0' ? w->b.why : heddle_status_text(w->st));
    else if (w->b.g->graph.ntasks == 0)
        put_none(j, "No task ended well: there is nothing to bound.");
    else
        put_values(j, &w->b, w->links_ns);
}

static void put_too_many(struct heddle_json *j, void *user)
{
    (void)user;
    put_none(j, "The run has too many tasks to bound it while a page waits: "
                "'heddle trace bound' takes the time.");
}

heddle_status view_pack_bounded(const heddle_log *log, const struct view_opts *o,
                                struct view_pack **out)
{
    const struct heddle_thread_opts to = {.name = "heddle-bound"};
    struct work w = {.log = log};
    struct view_opts opts = *o;
    heddle_status st;

    opts.bounds = put_too_many;
    if (heddle_log_get_view(log)->ntasks <= MAX_TASKS) {
        opts.bounds = work_put;
        opts.bounds_user = &w;
        w.is_running = heddle_thread_create(&w.thread, &to, work_run, &w) == HEDDLE_OK;
        if (!w.is_running)
            work_run(&w);
    }
    st = view_pack_create(log, &opts, out);
    work_wait(&w); /* when the directory was not reached */
    run_bound_close(&w.b);
    return st;
}
