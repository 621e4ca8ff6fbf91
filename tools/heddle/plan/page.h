/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_PLAN_PAGE_H
#define HEDDLE_TOOLS_PLAN_PAGE_H

/* The page of `heddle plan show`. */
#include "plan/cmd.h"

struct plan_page {
    struct heddle_plan_graph *g;
    struct heddle_plan_machine m;
    struct heddle_plan *plan; /* it holds */
    struct heddle_plan_report report;
    double *begin, *end;            /* of each step */
    const struct plan_point *point; /* [PLAN_POINTS]; NULL: no sweep */
};

/* False: no memory; what the file says is the caller's. */
bool plan_page_write(const struct plan_page *s, FILE *f);

#endif /* HEDDLE_TOOLS_PLAN_PAGE_H */
