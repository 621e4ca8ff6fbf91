/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TESTS_FUZZ_H
#define HEDDLE_TESTS_FUZZ_H

/*
 * A fuzz target is a file of this folder: fuzz_one() gives bytes to one reader, and to
 * what works on the reader's result. It runs in two programs: with libFuzzer, which looks
 * for bytes that reach new code (`make fuzz`), and with run.c, which takes the seeds,
 * and damaged copies of them, in every build.
 *
 * Threads  one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Must not crash, whatever the bytes are. */
void fuzz_one(const uint8_t *data, size_t bytes);

/* Seeds that a target makes itself, beside the files of seeds/TARGET: bytes for free(), or
 * NULL when there is no seed number i. */
uint8_t *fuzz_seed(unsigned i, size_t *bytes_out);

/* The bytes as a file that heddle can open; until the next call. */
const char *fuzz_file(const uint8_t *data, size_t bytes);

#define FUZZ_CHECK(cond)                                                                           \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                             \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* A call that fails leaves a sentence, and one that does not fail is as good. */
#define FUZZ_SENTENCE(st, why) FUZZ_CHECK((st) == HEDDLE_OK || (why)[0] != '\0')

#endif /* HEDDLE_TESTS_FUZZ_H */
