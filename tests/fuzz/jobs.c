/* SPDX-License-Identifier: BSD-3-Clause */
/* jobs: files of jobs, and where they are placed. */
#include "heddle/energy_place.h"
#include "tests/fuzz/fuzz.h"

enum { FEW = 40 };

static void place(const struct heddle_energy_jobs *j, bool has_due)
{
    char why[300] = "";
    const struct heddle_energy_place_opts o = {.size = sizeof(o),
                                               .machines = 2,
                                               .alpha = 0.5,
                                               .has_due = has_due,
                                               .why = why,
                                               .why_bytes = sizeof(why)};
    struct heddle_energy_place p = {.size = sizeof(p)};
    const heddle_status st = heddle_energy_place_make(j->jobs, j->njobs, &o, &p);

    FUZZ_SENTENCE(st, why);
    if (st == HEDDLE_OK)
        FUZZ_CHECK(heddle_energy_place_check(j->jobs, j->njobs, &o, &p) == HEDDLE_OK);
    heddle_energy_place_fini(&p);
}

void fuzz_one(const uint8_t *data, size_t bytes)
{
    char why[300] = "";
    struct heddle_energy_jobs j = {.size = sizeof(j)};
    const heddle_status st =
        heddle_energy_jobs_read(NULL, fuzz_file(data, bytes), &j, why, sizeof(why));

    FUZZ_SENTENCE(st, why);
    if (st != HEDDLE_OK)
        return;
    if (j.njobs <= FEW) {
        place(&j, false);
        place(&j, true);
    }
    heddle_energy_jobs_fini(&j);
}
