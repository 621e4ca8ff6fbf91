/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model: files of performance models. Sums of lines are made good, so that the damage
 * reaches the numbers.
 */
#include "perf/model.h"

#include <string.h>

#include "tests/fuzz/fuzz.h"

enum { SUM = 10 }; /* " #" and 8 digits */

static uint32_t fnv(const char *p, size_t n)
{
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < n; i++)
        h = (h ^ (uint8_t)p[i]) * 16777619u;
    return h;
}

static void repair(char *p, size_t bytes)
{
    for (char *end; bytes > 0 && (end = memchr(p, '\n', bytes)) != NULL; p = end + 1) {
        const size_t n = (size_t)(end - p);
        char sum[SUM + 1];

        if (n > SUM) {
            snprintf(sum, sizeof(sum), " #%08x", (unsigned)fnv(p, n - SUM));
            memcpy(end - SUM, sum, SUM);
        }
        bytes -= n + 1;
    }
}

void fuzz_one(const uint8_t *data, size_t bytes)
{
    char *text = malloc(bytes + (bytes == 0));
    struct heddle_model_kernel *k = heddle_model_kernel_create(NULL, NULL, "gemm");
    struct heddle_model_header h;
    uint64_t nignored = 0;

    FUZZ_CHECK(text != NULL && k != NULL);
    memcpy(text, data, bytes);
    repair(text, bytes);
    if (heddle_model_read_header(text, bytes, &h) == HEDDLE_OK) {
        FUZZ_CHECK(h.length <= bytes);
        FUZZ_CHECK(heddle_model_read(k, text + h.length, bytes - h.length, &nignored) == HEDDLE_OK);
    }
    heddle_model_kernel_destroy(k);
    free(text);
}
