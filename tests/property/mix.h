/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TESTS_PROPERTY_MIX_H
#define HEDDLE_TESTS_PROPERTY_MIX_H

/*
 * What tasks do to memory: integer mixing in which every input byte and the
 * order of all non-commutative accesses shows in the result.
 */
#include "heddle/heddle.h"

struct mix_mem {
    void *ptr;
    const struct heddle_layout *layout;
    enum heddle_mode mode;
};

/* Member `rank` of `size` does its share; sync(user) keeps them in step. */
struct mix_gang {
    unsigned rank, size;
    void (*sync)(void *user);
    void *user;
};

/* Reads R and RW, updates the others; `arg` without its first 8 bytes. */
void mix_task(const struct mix_mem *mem, unsigned n, const unsigned char *arg, size_t arg_bytes,
              const struct mix_gang *gang);

/* Another round, after children. */
void mix_again(const struct mix_mem *mem, unsigned n, uint64_t round);

/* Garbage into everything that is written. */
void mix_scribble(const struct mix_mem *mem, unsigned n);

/* A divisible update: `origin` is the index of the first element in the whole. */
void mix_part(const struct mix_mem *m, uint64_t salt, const size_t *origin);

/* What the main program does with acquired data. */
void mix_acquired(const struct mix_mem *m, uint64_t salt);

/* Never 0. */
uint64_t mix_hash(const struct mix_mem *m);

/* Private memory: writes a pattern, or checks that it is there. */
void mix_fill(const struct mix_mem *m, uint64_t salt);
int mix_is_filled(const struct mix_mem *m, uint64_t salt);

size_t mix_count(const struct heddle_layout *l);

#endif /* HEDDLE_TESTS_PROPERTY_MIX_H */
