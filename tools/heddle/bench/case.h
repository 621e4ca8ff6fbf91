/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_BENCH_CASE_H
#define HEDDLE_TOOLS_BENCH_CASE_H

/*
 * Cases of a benchmark against something else: numbers of alternating rounds, a bar that
 * must be met and one to aim for. A bar that is missed is no failure of the command.
 *
 * Threads  the main thread.
 */
#include "bench/bench.h"

enum { BENCH_CASE_ROUNDS = 101, BENCH_CASE_FACTS = 12 };

enum bench_rule {
    BENCH_NO_BAR,
    BENCH_RATIO_AT_MOST, /* Heddle over the other */
    BENCH_RATIO_AT_LEAST,
    BENCH_VALUE_AT_MOST, /* Heddle's own number */
    BENCH_VALUE_AT_LEAST
};

struct bench_case {
    const char *part, *name, *unit;
    enum bench_rule rule;
    double must, aim;
    size_t n; /* rounds */
    double heddle[BENCH_CASE_ROUNDS], raw[BENCH_CASE_ROUNDS];
    const char *raw_name; /* NULL: "raw" */
    bool is_alone;        /* nothing to compare with: raw is not looked at */
    /* Facts that go with it; a name of NULL ends them. */
    struct {
        const char *name;
        double value;
    } fact[BENCH_CASE_FACTS];
};

struct bench_tally {
    unsigned ncases, nbars, nmet, naimed;
};

void bench_case_fact(struct bench_case *k, const char *name, double value);
/* Prints a case, which is sorted then, and counts it. 0, or the exit status after a sentence. */
int bench_case_report(struct cli *c, const char *bench, const char *machine, struct bench_case *k,
                      struct bench_tally *tally);
/* Prints the counts. The same. */
int bench_tally_report(struct cli *c, const char *bench, const char *machine,
                       const struct bench_tally *tally, double seconds);

/* "launch,graph" as a mask of the `n` names of part(i); all bits when the list is NULL. 0, or the
 * exit status after a sentence. */
int bench_parse_only(struct cli *c, const char *list, const char *(*part)(size_t i), size_t n,
                     unsigned *mask_out);

#endif /* HEDDLE_TOOLS_BENCH_CASE_H */
