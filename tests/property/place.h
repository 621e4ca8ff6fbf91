/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TESTS_PROPERTY_PLACE_H
#define HEDDLE_TESTS_PROPERTY_PLACE_H

/* The oracle's memory: boxes of arrays, and which of them carry a mark. */
#include "mix.h"
#include "prog.h"

struct store {
    unsigned char *mem;
    bool *unknown; /* per byte */
    size_t stride[PROG_DIMS];
    size_t bytes;
};

struct place {
    struct store *store;
    struct prog_box box;         /* in the store's index space */
    struct heddle_layout layout; /* with the strides in memory */
};

struct mark {
    struct store *store;
    struct prog_box box;
    unsigned ndim;
};

struct marks {
    struct mark *mark;
    size_t n, cap;
};

/* An array of zeros, laid out as `u` says. */
void store_init(struct store *s, const struct prog_unit *u);
void store_fini(struct store *s);

struct place place_make(struct store *s, const struct prog_unit *u);
struct place place_part(const struct place *whole, const struct prog_box *rel);
struct mix_mem place_mem(const struct place *pl, enum heddle_mode mode);

/* Is any byte of it unknown? */
bool place_is_unknown(const struct place *pl);
void place_set_unknown(const struct place *pl, bool unknown);

void mark_set(struct marks *m, const struct place *pl);
/* Removes the marks inside of `pl`. */
void mark_clear(struct marks *m, const struct place *pl);
bool mark_meets(const struct marks *m, const struct place *pl);
void mark_forget(struct marks *m, const struct store *s);

#endif /* HEDDLE_TESTS_PROPERTY_PLACE_H */
