/* SPDX-License-Identifier: BSD-3-Clause */
/* log_explain: where the time of a damaged log went. */
#include "heddle/explain.h"
#include "tests/fuzz/log.h"

static void curves(const heddle_log *log)
{
    for (unsigned kind = 0; kind < 16; kind++) {
        struct heddle_explain_curve *c = NULL;

        if (heddle_explain_curve_create(log, kind, 0, NULL, &c) == HEDDLE_OK)
            heddle_explain_curve_destroy(c);
    }
}

void fuzz_one(const uint8_t *data, size_t bytes)
{
    heddle_log *log = fuzz_log(data, bytes);
    struct heddle_explain *x = NULL;

    if (log == NULL)
        return;
    if (heddle_explain_create(log, NULL, &x) == HEDDLE_OK)
        heddle_explain_destroy(x);
    curves(log);
    heddle_log_close(log);
}
