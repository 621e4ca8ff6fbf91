/* SPDX-License-Identifier: BSD-3-Clause */
/* plan: plan files; what is read is checked, written and read again. */
#include "heddle/plan.h"
#include "tests/fuzz/fuzz.h"

void fuzz_one(const uint8_t *data, size_t bytes)
{
    char why[300] = "";
    const struct heddle_plan_opts o = {.size = sizeof(o), .why = why, .why_bytes = sizeof(why)};
    struct heddle_plan_machine m = {.size = sizeof(m)};
    struct heddle_plan_graph *g = NULL;
    struct heddle_plan *p = NULL;
    heddle_status st = heddle_plan_read(fuzz_file(data, bytes), &o, &g, &m, &p);

    FUZZ_SENTENCE(st, why);
    if (st != HEDDLE_OK)
        return;
    why[0] = '\0';
    st = heddle_plan_check(g, &m, p, &o, NULL);
    FUZZ_SENTENCE(st, why);
    FUZZ_CHECK(heddle_plan_write(g, &m, p, "/dev/null", &o) == HEDDLE_OK);
    heddle_plan_destroy(p);
    heddle_plan_graph_destroy(g);
}
