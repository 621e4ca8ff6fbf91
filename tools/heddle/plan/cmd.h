/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_PLAN_CMD_H
#define HEDDLE_TOOLS_PLAN_CMD_H

/*
 * What `heddle plan`, its verbs and its benchmark share.
 *
 * Threads  the main thread.
 */
#include "base/json.h"
#include "cmd/cmd.h"
#include "heddle/plan.h"

enum { PLAN_WHY = 400, PLAN_CELL = 48 };

/* A graph file or the log of a run. `unit_s` > 0 is put into a graph that does not
 * say its unit. Returns 0, or the exit status after a sentence. */
int plan_load(struct cli *c, const char *path, double unit_s, struct heddle_plan_graph **out);

/* What the benchmarks measure budgets by, as papers do: for a chain its input and all
 * tapes, without gradients; else the peak of the given order. */
uint64_t plan_tape_bytes(const struct heddle_plan_graph *g);
/* "6GiB" or "50%". False: neither. */
bool plan_parse_budget(const char *text, uint64_t full, uint64_t *out);

/* One attempt, with the checker's verdict. */
struct plan_try {
    struct heddle_plan_machine m;
    struct heddle_plan_solve_opts opts;
    struct heddle_plan *plan; /* NULL: none was found */
    struct heddle_plan_report report;
    heddle_status st;
    bool is_checked;    /* the checker agrees */
    char why[PLAN_WHY]; /* why there is no plan, or what is wrong with it */
};

/* Solves (t->m and t->opts are set) and checks. plan_try_close() in any case. */
void plan_try_run(struct plan_try *t, const struct heddle_plan_graph *g);
void plan_try_close(struct plan_try *t);

/* Writes t->plan to a file. Returns 0, or the exit status after a sentence. */
int plan_save(struct cli *c, const struct heddle_plan_graph *g, const struct plan_try *t,
              const char *path);

/* Relative to every operation once. */
double plan_increase(const struct heddle_plan *p);
double plan_bound(const struct heddle_plan *p);
double plan_gap(const struct heddle_plan *p);

/* Keys from "feasible" to "checked". */
void plan_json(struct heddle_json *j, const struct plan_try *t);
int plan_json_end(struct cli *c, struct heddle_json *j);
const char *plan_text_bytes(char buf[PLAN_CELL], uint64_t bytes);

/* --- the trade-off curve (plan/sweep.c) -------------------------------------- */

struct plan_point {
    uint64_t budget, peak, arena;
    double increase, bound, seconds;
    bool is_feasible, is_checked;
};

enum { PLAN_POINTS = 24 };

/* From the floor to where nothing is computed twice, each with t->opts; told to
 * `tell` as they come, which may be NULL. */
void plan_sweep(const struct heddle_plan_graph *g, const struct plan_try *t,
                struct plan_point point[PLAN_POINTS],
                void (*tell)(void *user, const struct plan_point *p), void *user);

/* --- pipelines (plan/pipeline.c) --------------------------------------------- */

/* Stages on m->ndevices devices, printed. Returns the exit status. */
int plan_pipeline(struct cli *c, const struct heddle_plan_graph *g,
                  const struct heddle_plan_machine *m, const char *policy, uint64_t nmicro);

/* --- verbs ------------------------------------------------------------------ */

extern const struct heddle_cmd heddle_plan_verb_check, heddle_plan_verb_exact,
    heddle_plan_verb_show;

#endif /* HEDDLE_TOOLS_PLAN_CMD_H */
