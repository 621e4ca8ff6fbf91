/* SPDX-License-Identifier: BSD-3-Clause */
/* placement: files that say which task runs where. */
#include "sched/placement.h"

#include "base/alloc.h"
#include "tests/fuzz/fuzz.h"

void fuzz_one(const uint8_t *data, size_t bytes)
{
    const struct heddle_sched_class cls[] = {{.name = "cpu", .nworkers = 2},
                                             {.name = "cuda0", .nworkers = 1}};
    char why[300] = "";
    const struct heddle_sched_env env = {.alloc = &heddle_allocator_default,
                                         .nworkers = 3,
                                         .cls = cls,
                                         .ncls = 2,
                                         .why = why,
                                         .why_bytes = sizeof(why)};
    struct heddle_placement p = {0};
    const heddle_status st = heddle_placement_read(&p, &env, fuzz_file(data, bytes));

    FUZZ_SENTENCE(st, why);
    for (size_t i = 0; st == HEDDLE_OK && i < p.n; i++)
        FUZZ_CHECK(heddle_placement_find(&p, p.entry[i].id) < p.n);
    heddle_placement_fini(&p);
}
