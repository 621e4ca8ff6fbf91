/* SPDX-License-Identifier: BSD-3-Clause */
/* onnx: files of networks, of every kind. */
#include "onnx/onnx.h"

#include "tests/fuzz/fuzz.h"

void fuzz_one(const uint8_t *data, size_t bytes)
{
    for (unsigned kind = 0; kind <= HEDDLE_ONNX_OPTIONAL; kind++) {
        char why[300] = "";
        const struct heddle_onnx_opts o = {.why = why, .why_bytes = sizeof(why)};
        struct heddle_onnx_file *f = NULL;
        const heddle_status st = heddle_onnx_decode(data, bytes, "x", kind, &o, &f);

        FUZZ_SENTENCE(st, why);
        if (st == HEDDLE_OK)
            heddle_onnx_close(f);
    }
}
