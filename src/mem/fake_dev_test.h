/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_MEM_FAKE_DEV_TEST_H
#define HEDDLE_MEM_FAKE_DEV_TEST_H

/*
 * For tests of this module: devices in the memory of the test, as a driver.
 *
 * A copy that was given to a device is in flight until the test ends it (fake_land),
 * in any order. Its destination holds junk meanwhile. The bytes that arrive are those
 * that the source has at the end, and they must be what the source had at the
 * beginning (unless the data were written elsewhere since). So a copy that is read too
 * early or written too early is seen.
 */
#include "drive/drive.h"
#include "mem/internal.h"
#include "tests/test.h"

enum { FAKE_DEVS = 3, FAKE_FLYING = 64, FAKE_JUNK = 0xd7 };

struct fake_flight {
    struct heddle_copy copy;
    struct heddle_op *op;
    unsigned char *before; /* what the source held at the beginning */
};

struct heddle_dev {
    struct heddle_dev_base base; /* first */
    struct heddle_dev *all;      /* FAKE_DEVS devices: this one and its neighbours */
    struct fake_flight fly[FAKE_FLYING];
    unsigned nflying;
    bool is_lost;
    bool can_peer;
    uint64_t capacity; /* bytes that the device really has */
    uint64_t used;
    unsigned ncopies; /* accepted */
    unsigned fails;   /* so many copies that end next end with `fails_with` */
    unsigned refuses; /* so many are not even accepted, with the same status */
    heddle_status fails_with;
};

static inline heddle_status fake_alloc(struct heddle_dev *d, size_t bytes, unsigned stream,
                                       void **ptr_out)
{
    CHECK_EQ(stream, d->base.info.nstreams);
    CHECK(bytes > 0);
    if (d->is_lost)
        return HEDDLE_EDEV;
    if (bytes > d->capacity - d->used)
        return HEDDLE_ENOMEM;
    *ptr_out = malloc(bytes);
    CHECK(*ptr_out != NULL);
    memset(*ptr_out, FAKE_JUNK, bytes);
    d->used += bytes;
    return HEDDLE_OK;
}

static inline void fake_free(struct heddle_dev *d, void *ptr, size_t bytes, unsigned stream)
{
    CHECK_EQ(stream, d->base.info.nstreams);
    CHECK(d->used >= bytes);
    for (unsigned k = 0; k < FAKE_DEVS; k++)
        for (unsigned i = 0; i < d->all[k].nflying; i++)
            CHECK(d->all[k].fly[i].copy.ptr != ptr && d->all[k].fly[i].copy.peer_ptr != ptr);
    d->used -= bytes;
    memset(ptr, FAKE_JUNK, bytes);
    free(ptr);
}

/* The bytes of the source, or of the destination, without gaps. */
static inline void fake_source(const struct heddle_copy *c, void *dense)
{
    if (c->kind == HEDDLE_COPY_IN)
        heddle_runs_gather(&c->runs, c->host, dense);
    else
        memcpy(dense, c->ptr, heddle_runs_bytes(&c->runs));
}

static inline void fake_store(const struct heddle_copy *c, const void *dense)
{
    if (c->kind == HEDDLE_COPY_OUT)
        heddle_runs_scatter(&c->runs, dense, c->host);
    else
        memcpy(c->kind == HEDDLE_COPY_IN ? c->ptr : c->peer_ptr, dense,
               heddle_runs_bytes(&c->runs));
}

static inline heddle_status fake_copy(struct heddle_dev *d, const struct heddle_copy *c,
                                      unsigned stream, struct heddle_op *op)
{
    const size_t bytes = heddle_runs_bytes(&c->runs);
    struct fake_flight *fl = &d->fly[d->nflying];
    unsigned char *junk;

    CHECK_EQ(stream, d->base.info.nstreams);
    CHECK(c->ptr != NULL && (c->host != NULL) != (c->peer_ptr != NULL));
    if (d->is_lost)
        return HEDDLE_EDEV;
    if (d->refuses != 0) {
        d->refuses--;
        return d->fails_with;
    }
    CHECK(d->nflying < FAKE_FLYING);
    *fl = (struct fake_flight){.copy = *c, .op = op, .before = malloc(bytes)};
    junk = malloc(bytes);
    CHECK(fl->before != NULL && junk != NULL);
    memset(junk, FAKE_JUNK, bytes);
    fake_source(c, fl->before);
    fake_store(c, junk);
    free(junk);
    d->nflying++;
    d->ncopies++;
    return HEDDLE_OK;
}

static inline bool fake_can_peer(struct heddle_dev *d, struct heddle_dev *to)
{
    return d->can_peer && to->can_peer;
}

/* The unit was written elsewhere since: what this copy brings is used by nobody, and its
 * source may be filled with the new value meanwhile. */
static inline bool fake_is_void(const struct heddle_op *op)
{
    const struct mem_xfer *x = (const void *)op;

    return x->version != x->where->version;
}

/* Ends the i-th copy in flight of a device. */
static inline void fake_land(struct heddle_dev *d, unsigned i)
{
    struct fake_flight fl = d->fly[i];
    const size_t bytes = heddle_runs_bytes(&fl.copy.runs);
    heddle_status st = d->is_lost ? HEDDLE_EDEV : HEDDLE_OK;

    CHECK(i < d->nflying);
    memmove(&d->fly[i], &d->fly[i + 1], (d->nflying - i - 1) * sizeof(fl));
    d->nflying--;
    if (st == HEDDLE_OK && d->fails != 0) {
        d->fails--;
        st = d->fails_with;
    }
    if (st == HEDDLE_OK) {
        unsigned char *after = malloc(bytes);

        CHECK(after != NULL);
        fake_source(&fl.copy, after);
        if (!fake_is_void(fl.op))
            CHECK(memcmp(after, fl.before, bytes) == 0); /* nobody wrote what is being read */
        fake_store(&fl.copy, after);
        free(after);
    }
    free(fl.before);
    fl.op->done(fl.op, st);
}

static const struct heddle_driver fake_driver = {
    .name = "fake",
    .alloc = fake_alloc,
    .free = fake_free,
    .copy = fake_copy,
    .can_peer = fake_can_peer,
};

static inline void fake_dev_init(struct heddle_dev *d, struct heddle_dev *all)
{
    *d = (struct heddle_dev){.all = all, .capacity = UINT64_MAX, .fails_with = HEDDLE_ETASK};
    d->base.driver = &fake_driver;
    d->base.info.nstreams = 1;
}

#endif /* HEDDLE_MEM_FAKE_DEV_TEST_H */
