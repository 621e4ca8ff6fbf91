/* SPDX-License-Identifier: BSD-3-Clause */
/* plan_machine: machine files of the planner. */
#include "heddle/plan.h"
#include "tests/fuzz/fuzz.h"

void fuzz_one(const uint8_t *data, size_t bytes)
{
    char why[300] = "";
    const struct heddle_plan_opts o = {.size = sizeof(o), .why = why, .why_bytes = sizeof(why)};
    struct heddle_plan_machine m = {.size = sizeof(m)};
    const heddle_status st = heddle_plan_machine_read(fuzz_file(data, bytes), 1e-3, &o, &m);

    FUZZ_SENTENCE(st, why);
}
