/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DNN_OBJECT_H
#define HEDDLE_DNN_OBJECT_H

/*
 * For the files of this module: what all objects have in common.
 *
 * A kind is a struct that begins with struct heddle_dnn, and a table of functions. Its
 * create() checks the description, then calls dnn_new(), which gives zeroed memory for the whole
 * struct, and fills it.
 */
#include <stdatomic.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/sized.h"
#include "base/why.h"
#include "dnn/dnn.h"
#include "dnn/isa/isa.h"

struct dnn_kind {
    const char *name;
    void (*run)(const struct heddle_dnn *o, const void *const *in, void *const *out, size_t part,
                size_t nparts, void *scratch);
};

/* Packed constants, for all objects that share them. */
struct dnn_weights {
    _Atomic size_t nusers;
    const struct heddle_allocator *alloc;
    const struct dnn_isa *isa;
    const struct dnn_kind *kind;
    size_t key[4]; /* what the packing depends on */
    size_t bytes;  /* of `data` */
    float *data;
};

struct heddle_dnn {
    const struct dnn_kind *kind;
    const struct dnn_isa *isa;
    const struct heddle_allocator *alloc;
    size_t bytes; /* of the object itself */
    struct dnn_weights *weights;
    size_t nparts;
    size_t scratch; /* bytes of one piece */
    double flops, moved;
};

/* The options in their current form, and the instruction set that they ask for. */
struct dnn_ask {
    struct dnn_make make;
    const struct dnn_isa *isa;
};

heddle_status heddle_dnn_ask(struct dnn_ask *ask, const struct dnn_make *make);
/* Allocates an object of a kind, zeroed behind the common part; NULL: no memory. */
heddle_status heddle_dnn_new(const struct dnn_ask *ask, const struct dnn_kind *kind, size_t bytes,
                             struct heddle_dnn **out);
/* Gives the object weights: those it shares when the keys are equal, then *is_new is false; else
 * `floats` numbers to be filled. */
heddle_status heddle_dnn_get_weights(struct heddle_dnn *o, const struct dnn_ask *ask,
                                     const size_t key[4], size_t floats, bool *is_new);

#define DNN_WHY(ask, st, ...) heddle_why((ask)->make.why, (ask)->make.why_bytes, st, __VA_ARGS__)

/* Units [first, last) of piece `part`. */
struct dnn_range {
    size_t first, last;
};

static inline struct dnn_range dnn_share(size_t n, size_t part, size_t nparts)
{
    const size_t each = n / nparts, more = n % nparts;
    const size_t first = part * each + (part < more ? part : more);

    return (struct dnn_range){first, first + each + (part < more ? 1 : 0)};
}

static inline size_t dnn_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t dnn_up(size_t n, size_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

static inline size_t dnn_or_one(size_t n)
{
    return n == 0 ? 1 : n;
}

/* Do all products of these sizes fit in memory that could exist? For checks of descriptions. */
static inline bool dnn_fits(size_t a, size_t b, size_t c, size_t d)
{
    size_t n;

    return heddle_mul(&n, a, b) && heddle_mul(&n, n, c) && heddle_mul(&n, n, d) &&
           n <= SIZE_MAX / 64;
}

/* Bump allocation in the scratch of a piece, 64 bytes aligned. */
static inline float *dnn_take(char **scratch, size_t floats)
{
    float *p = (float *)(void *)*scratch;

    *scratch += dnn_up(floats * sizeof(float), DNN_ALIGN);
    return p;
}

static inline size_t dnn_room(size_t floats)
{
    return dnn_up(floats * sizeof(float), DNN_ALIGN);
}

#endif /* HEDDLE_DNN_OBJECT_H */
