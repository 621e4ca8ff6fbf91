/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_BENCH_LA_RUN_H
#define HEDDLE_TOOLS_BENCH_LA_RUN_H

/*
 * One run of `heddle bench potrf` and the like: what bench/la/la.c measures and
 * bench/la/report.c prints.
 */
#include "bench/la/la.h"

enum peer_kind { PEER_LAPACK, PEER_OPENBLAS, PEER_CUSOLVER, PEER_SELF, PEER_NONE };

struct la_bench {
    struct cli *c;
    const struct la_row *row;
    struct bench_opts o;
    const char *type, *nb_text, *peer_name, *limit_text, *low_name, *panel_name;
    uint64_t n, m, nrhs, nb, rounds;
    bool check, is_resident, no_bound;

    enum peer_kind peer;
    struct la_problem p;
    struct la_peer blas;
    struct la_gpu gpu;
    struct la_side ours, self;
    double prepare_ns; /* until the operands have their values */

    double mine[LA_MAX_ROUNDS], theirs[LA_MAX_ROUNDS], ratio[LA_MAX_ROUNDS];
    struct bench_stat t, t_peer, t_ratio;
    int peer_info, iterations;
    double peak;     /* operations per ns */
    double bound_ns; /* no schedule of these tasks is shorter; 0: none */
    uint32_t bound_tasks;
    double bound_run; /* ns of the run that it is of */
    double residual;
};

/* By enum peer_kind. */
extern const char *const la_peer_names[];

/* Operations of the routine. */
double la_flops(const struct la_bench *b);

/* Prints the results. Returns 0, or the exit status after a sentence: a result that is
 * wrong fails. */
int la_report(struct la_bench *b);

#endif /* HEDDLE_TOOLS_BENCH_LA_RUN_H */
