/* SPDX-License-Identifier: BSD-3-Clause */
/* no_seed: for targets all of whose seeds are files. */
#include "tests/fuzz/fuzz.h"

uint8_t *fuzz_seed(unsigned i, size_t *bytes_out)
{
    (void)i;
    *bytes_out = 0;
    return NULL;
}
