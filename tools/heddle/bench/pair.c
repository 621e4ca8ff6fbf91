/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/pair: one stream in two contexts, in turn.
 *
 * Purpose    a slow moment of the machine hits both sides of a comparison. The
 *            context that does not run sleeps.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "bench/bench.h"

static int pair_open(struct bench_pair *p)
{
    int rc = 0;

    for (unsigned i = 0; i < 2 && rc == 0; i++) {
        const struct bench_opts *o = &p->o[i];
        heddle_status st;

        rc = bench_open(p->c, o, &p->memory[i], &p->ctx[i]);
        if (rc != 0)
            break;
        st = stream_open(&p->stream[i], p->ctx[i], p->shape, o);
        if (st != HEDDLE_OK)
            rc = bench_fail(p->c, p->ctx[i], st);
    }
    return rc;
}

int bench_pair_run(struct bench_pair *p)
{
    const size_t reps = p->o[0].reps;
    double *v = calloc(2 * reps, sizeof(*v));
    int rc = v == NULL ? cli_fail(p->c, "no memory for %zu repetitions", reps) : pair_open(p);

    for (size_t r = 0; r < reps + 1 && rc == 0; r++) {
        for (unsigned i = 0; i < 2 && rc == 0; i++) {
            struct stream_time t;
            const heddle_status st = stream_run(&p->stream[i], &t);

            if (st != HEDDLE_OK)
                rc = bench_fail(p->c, p->ctx[i], st);
            else if (r > 0) /* the first one warms up */
                v[i * reps + r - 1] = t.wall_ns / (double)p->stream[i].ntasks;
        }
    }
    for (unsigned i = 0; i < 2 && rc == 0; i++)
        p->ns[i] = bench_stat(v + i * reps, reps);
    free(v);
    return rc;
}

int bench_pair_close(struct bench_pair *p, int rc)
{
    for (unsigned i = 0; i < 2; i++) {
        if (p->ctx[i] == NULL)
            continue;
        stream_close(&p->stream[i]);
        if (rc == 0)
            rc = bench_finish(p->c, &p->o[i], &p->memory[i], p->ctx[i]);
        else
            heddle_ctx_destroy(p->ctx[i]);
    }
    return rc;
}
