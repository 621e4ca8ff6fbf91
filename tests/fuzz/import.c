/* SPDX-License-Identifier: BSD-3-Clause */
/* import: tasks.rec of StarPU. */
#include "heddle/compose.h"
#include "tests/fuzz/log.h"

void fuzz_one(const uint8_t *data, size_t bytes)
{
    char why[300] = "";
    const struct heddle_log_opts o = {.size = sizeof(o), .why = why, .why_bytes = sizeof(why)};
    const heddle_status st = heddle_log_import(fuzz_file(data, bytes), NULL, FUZZ_NOWHERE, &o);

    FUZZ_SENTENCE(st, why);
}
