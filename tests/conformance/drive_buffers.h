/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TESTS_CONFORMANCE_DRIVE_BUFFERS_H
#define HEDDLE_TESTS_CONFORMANCE_DRIVE_BUFFERS_H

/*
 * Buffers on a device, and what should be in them. A web is a random set of jobs on them,
 * each after the last one on its buffer, as a region.
 */
#include "drive_rig.h"

enum { BUFFERS = 5, BYTES = 1500, JOBS = 60 };

struct buffers {
    struct rig *r;
    void *ptr[BUFFERS];
    unsigned char want[BUFFERS][BYTES];
};

static inline void buffers_init(struct buffers *b, struct rig *r, uint64_t seed)
{
    const struct heddle_runs runs = dense(BYTES);

    b->r = r;
    for (unsigned i = 0; i < BUFFERS; i++) {
        fill(b->want[i], BYTES, seed + i);
        CHECK_OK(r->drv->alloc(r->dev, BYTES, 0, &b->ptr[i]));
        copy_wait(r, HEDDLE_COPY_IN, b->ptr[i], b->want[i], &runs, 0);
    }
}

/* Nothing is in flight. */
static inline void buffers_check(struct buffers *b)
{
    const struct heddle_runs runs = dense(BYTES);
    unsigned char got[BYTES];

    for (unsigned i = 0; i < BUFFERS; i++) {
        copy_wait(b->r, HEDDLE_COPY_OUT, b->ptr[i], got, &runs, 0);
        CHECK_EQ(memcmp(got, b->want[i], BYTES), 0);
    }
}

static inline void buffers_fini(struct buffers *b)
{
    for (unsigned i = 0; i < BUFFERS; i++)
        b->r->drv->free(b->r->dev, b->ptr[i], BYTES, 0);
}

/* What a job does. */
static inline void apply(unsigned char *p, unsigned add)
{
    for (size_t i = 0; i < BYTES; i++)
        p[i] = (unsigned char)(p[i] * 3 + add);
}

struct web {
    struct job job[JOBS];
    bool is_empty[JOBS]; /* puts nothing on the stream */
    unsigned at[JOBS];   /* the buffer */
    uint32_t first[JOBS + 1], pred[3 * JOBS];
    unsigned fail_at; /* JOBS: none */
    struct heddle_region region;
};

static inline heddle_status web_put(void *user, unsigned i)
{
    struct web *w = user;

    if (i == w->fail_at)
        return HEDDLE_ETASK;
    return w->is_empty[i] ? HEDDLE_OK : job_run((void *)&w->job[i]);
}

/* `shape` decides who depends on whom, `turn` what each does, and where. */
static inline void web_init(struct web *w, struct buffers *b, unsigned n, uint64_t shape,
                            unsigned turn, unsigned stream)
{
    int last[BUFFERS] = {-1, -1, -1, -1, -1};
    struct heddle_rng rng;
    uint32_t edge = 0;

    heddle_rng_seed(&rng, shape);
    memset(w, 0, sizeof(*w));
    w->fail_at = JOBS;
    for (unsigned i = 0; i < n; i++) {
        const unsigned at = heddle_rng_below32(&rng, BUFFERS);

        w->first[i] = edge;
        if (last[at] >= 0)
            w->pred[edge++] = (uint32_t)last[at];
        for (unsigned k = 0; k < 2 && i > 0; k++)
            if (heddle_rng_below32(&rng, 3) == 0)
                w->pred[edge++] = heddle_rng_below32(&rng, i);
        last[at] = (int)i;
        w->is_empty[i] = heddle_rng_below32(&rng, 6) == 0;
        w->at[i] = (at + turn) % BUFFERS;
        w->job[i] = (struct job){.r = b->r,
                                 .stream = stream,
                                 .ptr = b->ptr[w->at[i]],
                                 .add = i + 31 * turn,
                                 .bytes = BYTES};
    }
    w->first[n] = edge;
    w->region = (struct heddle_region){
        .n = n, .put = web_put, .user = w, .first = w->first, .pred = w->pred};
}

#endif /* HEDDLE_TESTS_CONFORMANCE_DRIVE_BUFFERS_H */
