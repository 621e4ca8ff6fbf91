/* SPDX-License-Identifier: BSD-3-Clause */
/* energy: energy models; and one that was read can be asked. */
#include "heddle/energy.h"

#include <math.h>

#include "tests/fuzz/fuzz.h"

void fuzz_one(const uint8_t *data, size_t bytes)
{
    char why[300] = "";
    heddle_energy *m = NULL;
    const heddle_status st = heddle_energy_read(NULL, fuzz_file(data, bytes), &m, why, sizeof(why));

    FUZZ_SENTENCE(st, why);
    if (st != HEDDLE_OK)
        return;
    FUZZ_CHECK(!isinf(heddle_energy_watts(m, "gemm", "tf32", "cuda0", 4096)));
    FUZZ_CHECK(heddle_energy_idle_watts(m) >= 0);
    heddle_energy_destroy(m);
}
