/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * view_bound: lower bounds on the makespan, for the directory of a pack.
 *
 * The page should open soon: `trace bound` has the time to look longer, and to
 * write the proof.
 */
#include "run_bound.h"
#include "view.h"

enum { MAX_TASKS = 2000000 };

#define SOLVE_NS UINT64_C(700000000)

static void put_none(struct heddle_json *j, const char *why)
{
    heddle_json_key_str(j, "bounds", NULL);
    heddle_json_key_str(j, "bounds_why", why);
}

static void put_values(struct heddle_json *j, const struct run_bound *b)
{
    heddle_json_key(j, "bounds");
    heddle_json_object(j);
    heddle_json_key(j, "kind");
    heddle_json_object(j);
    for (int k = 0; k < HEDDLE_BOUND_KINDS; k++)
        heddle_json_key_int(j,
                            heddle_bound_kind_name((enum heddle_bound_kind)k),
                            (int64_t)b->r.cert[k].value);
    heddle_json_end(j);
    heddle_json_key_int(j, "best", (int64_t)b->r.best);
    heddle_json_key_str(j, "durations",
                        "a task takes as long as it took; on other kinds of "
                        "workers, the least that its like took there");
    heddle_json_end(j);
}

void view_bounds(struct heddle_json *j, const heddle_log *log)
{
    struct run_bound b = {0};

    if (heddle_log_get_view(log)->ntasks > MAX_TASKS) {
        put_none(j, "The run has too many tasks to bound it while a page "
                    "waits: 'heddle trace bound' takes the time.");
        return;
    }
    if (run_bound_graph(&b, log, HEDDLE_DURATIONS_MEASURED, NULL) !=
            HEDDLE_OK ||
        run_bound_solve(&b, SOLVE_NS) != HEDDLE_OK)
        put_none(j, b.why);
    else if (b.g->graph.ntasks == 0)
        put_none(j, "No task ended well: there is nothing to bound.");
    else
        put_values(j, &b);
    run_bound_close(&b);
}
