/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TESTS_FUZZ_LOG_H
#define HEDDLE_TESTS_FUZZ_LOG_H

/* What the targets that take logs share. The seeds are in log_seed.c. */
#include "heddle/trace.h"
#include "tests/fuzz/fuzz.h"

/*
 * The log in these bytes, with checksums and lengths of chunks made good, so that the
 * damage reaches what lies behind the checksums. NULL: it was refused. heddle_log_close()
 * it.
 */
heddle_log *fuzz_log(const uint8_t *data, size_t bytes);

/* "/dev/null", as a name of its own: a log that nobody keeps. */
#define FUZZ_NOWHERE "/dev/null"

#endif /* HEDDLE_TESTS_FUZZ_LOG_H */
