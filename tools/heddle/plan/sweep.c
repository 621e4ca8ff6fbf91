/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan/sweep: the whole trade-off between memory and time.
 *
 * Budgets    from the floor, below which there is no plan, to 5 % above the peak
 *            of the given order, where addresses fit as well; closer together at
 *            the tight end, where the curve bends.
 * Plans      a plan for less memory is one for more: each is passed on to the next
 *            budget, so the curve never rises.
 */
#include <math.h>

#include "plan/cmd.h"

void plan_sweep(const struct heddle_plan_graph *g, const struct plan_try *t,
                struct plan_point point[PLAN_POINTS],
                void (*tell)(void *user, const struct plan_point *p), void *user)
{
    const double low = (double)heddle_plan_floor(g, NULL);
    const double high = 1.05 * (double)heddle_plan_peak(g);
    struct plan_try before = {.plan = NULL};

    for (unsigned i = 0; i < PLAN_POINTS; i++) {
        const double x = (double)i / (PLAN_POINTS - 1);
        struct plan_try one = *t;
        struct plan_point *p = &point[i];

        one.m.budget = (uint64_t)ceil(low + (high - low) * pow(x, 1.5));
        one.opts.known = before.plan;
        plan_try_run(&one, g);
        *p = (struct plan_point){
            .budget = one.m.budget, .is_feasible = one.plan != NULL, .is_checked = one.is_checked};
        if (one.plan != NULL) {
            p->peak = one.plan->peak_bytes;
            p->arena = one.plan->arena_bytes;
            p->increase = plan_increase(one.plan);
            p->bound = plan_bound(one.plan);
            p->seconds = one.plan->seconds;
        }
        plan_try_close(&before);
        before = one;
        if (tell != NULL)
            tell(user, p);
    }
    plan_try_close(&before);
}
