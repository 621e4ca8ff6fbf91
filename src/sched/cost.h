/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_SCHED_COST_H
#define HEDDLE_SCHED_COST_H

/* The costs of a window: for win.c. */
#include "sched/win.h"

void heddle_cost_fini(struct heddle_win *w);

/* Without the lock: the entry of the task's sort, asked anew when it is due. NULL:
 * no memory. */
struct heddle_win_sort *heddle_cost_sort(struct heddle_win *w, const struct heddle_sched_task *t);

/* With the lock: a task of the sort was given to a class; it ended there. */
void heddle_cost_given(struct heddle_win *w, struct heddle_win_rec *r, unsigned cls);
void heddle_cost_ended(struct heddle_win *w, struct heddle_win_rec *r, unsigned worker, double ns);

#endif /* HEDDLE_SCHED_COST_H */
