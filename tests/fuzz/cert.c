/* SPDX-License-Identifier: BSD-3-Clause */
/* cert: certificates of lower bounds. */
#include "trace/cert.h"

#include "tests/fuzz/fuzz.h"

void fuzz_one(const uint8_t *data, size_t bytes)
{
    char why[400] = "";
    struct cert_file f;
    const heddle_status st = cert_read(fuzz_file(data, bytes), &f, why, sizeof(why));

    FUZZ_SENTENCE(st, why);
    cert_free(&f);
}
