/* SPDX-License-Identifier: BSD-3-Clause */
/* machine: descriptions of machines. */
#include "heddle/machine.h"
#include "tests/fuzz/fuzz.h"

void fuzz_one(const uint8_t *data, size_t bytes)
{
    struct heddle_machine_counts n = {.size = sizeof(n)};
    char why[300] = "";
    heddle_machine *m = NULL;
    const heddle_status st = heddle_machine_open(fuzz_file(data, bytes), &m, why, sizeof(why));

    FUZZ_SENTENCE(st, why);
    if (st != HEDDLE_OK)
        return;
    FUZZ_CHECK(heddle_machine_describe(m, &n) == HEDDLE_OK);
    heddle_machine_close(m);
}
