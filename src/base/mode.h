/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_MODE_H
#define HEDDLE_BASE_MODE_H

/*
 * The table of access modes, and the questions that the runtime asks about them.
 *
 * No other code compares an access with a single mode in order to learn how the mode behaves: the
 * code asks one of the functions below. So a new mode is a constant of `enum heddle_mode`, a row
 * of HEDDLE_MODE_LIST, and the code of what only the new mode does. The compiler refuses a
 * constant without a row (mode.c).
 *
 * Cost  the rows become sets of modes at compile time, one set per question. An answer is a shift
 *       and a mask of a constant, and reads no memory.
 */
#include <stdbool.h>
#include <stdint.h>

#include "heddle/data.h"

/* What a mode may mean. */
enum {
    HEDDLE_READS = 1,   /* the task needs what the operand holds */
    HEDDLE_WRITES = 2,  /* the task changes the operand itself */
    HEDDLE_ORDERED = 4, /* the access has a place in the order of the tasks on the operand */
    HEDDLE_SHARED = 8, /* accesses of this meaning, one after another, do not wait for each other */
    HEDDLE_IN_TURN = 16, /* but such tasks run one by one, in any order */
    HEDDLE_PRIVATE = 32, /* the task works on memory of its own, in the operand's shape */
    HEDDLE_COMBINES = 64 /* that memory is combined into the operand before its next other use */
};

/*
 * One row per mode: its constant without the prefix, the letters that stand for it in exported logs
 * (docs/formats/export.md), the word for people, and the meaning. `a` is passed on to X.
 */
#define HEDDLE_MODE_LIST(X, a)                                                                     \
    X(a, R, "R", "read", HEDDLE_READS | HEDDLE_ORDERED | HEDDLE_SHARED)                            \
    X(a, W, "W", "write", HEDDLE_WRITES | HEDDLE_ORDERED)                                          \
    X(a, RW, "RW", "read, write", HEDDLE_READS | HEDDLE_WRITES | HEDDLE_ORDERED)                   \
    X(a, COMMUTE, "RWC", "read, write, any order",                                                 \
      HEDDLE_READS | HEDDLE_WRITES | HEDDLE_ORDERED | HEDDLE_SHARED | HEDDLE_IN_TURN)              \
    X(a, REDUCE, "X", "reduce", HEDDLE_ORDERED | HEDDLE_SHARED | HEDDLE_PRIVATE | HEDDLE_COMBINES) \
    X(a, SCRATCH, "S", "scratch", HEDDLE_PRIVATE)

/* The set of all modes whose meaning has one of `flags`: bit m for mode m. */
#define HEDDLE_MODES(flags) (UINT32_C(0) HEDDLE_MODE_LIST(HEDDLE_MODE_BIT, flags))
#define HEDDLE_MODE_BIT(flags, name, letters, word, means)                                         \
    | ((((means) & (flags)) != 0 ? UINT32_C(1) : UINT32_C(0)) << HEDDLE_##name)

/* `m` is a mode: only heddle_mode_is_known() may be asked about any number. */
static inline bool heddle_mode_in(uint32_t set, unsigned m)
{
    return (set >> (m & 31) & 1) != 0;
}

static inline bool heddle_mode_is_known(unsigned m)
{
    return m < 32 && heddle_mode_in(HEDDLE_MODES(~0), m);
}

static inline bool heddle_mode_reads(unsigned m)
{
    return heddle_mode_in(HEDDLE_MODES(HEDDLE_READS), m);
}

static inline bool heddle_mode_writes(unsigned m)
{
    return heddle_mode_in(HEDDLE_MODES(HEDDLE_WRITES), m);
}

/* Reads and nothing else, as many tasks at a time as there are. */
static inline bool heddle_mode_only_reads(unsigned m)
{
    return heddle_mode_in(HEDDLE_MODES(HEDDLE_READS) & ~HEDDLE_MODES(HEDDLE_WRITES), m);
}

/* All of the operand, without a look at it: what was there before is of no use any more. */
static inline bool heddle_mode_overwrites(unsigned m)
{
    return heddle_mode_in(HEDDLE_MODES(HEDDLE_WRITES) & ~HEDDLE_MODES(HEDDLE_READS), m);
}

/* The operand is not what it was afterwards, at once or when results are combined. */
static inline bool heddle_mode_changes(unsigned m)
{
    return heddle_mode_in(HEDDLE_MODES(HEDDLE_WRITES | HEDDLE_COMBINES), m);
}

static inline bool heddle_mode_is_private(unsigned m)
{
    return heddle_mode_in(HEDDLE_MODES(HEDDLE_PRIVATE), m);
}

/* Memory of its own that no task reads afterwards. */
static inline bool heddle_mode_is_scratch(unsigned m)
{
    return heddle_mode_in(HEDDLE_MODES(HEDDLE_PRIVATE) & ~HEDDLE_MODES(HEDDLE_COMBINES), m);
}

static inline bool heddle_mode_is_ordered(unsigned m)
{
    return heddle_mode_in(HEDDLE_MODES(HEDDLE_ORDERED), m);
}

static inline bool heddle_mode_is_shared(unsigned m)
{
    return heddle_mode_in(HEDDLE_MODES(HEDDLE_SHARED), m);
}

/* One task at a time, in the order of submission. */
static inline bool heddle_mode_is_alone(unsigned m)
{
    return heddle_mode_in(HEDDLE_MODES(HEDDLE_ORDERED) & ~HEDDLE_MODES(HEDDLE_SHARED), m);
}

static inline bool heddle_mode_is_in_turn(unsigned m)
{
    return heddle_mode_in(HEDDLE_MODES(HEDDLE_IN_TURN), m);
}

static inline bool heddle_mode_combines(unsigned m)
{
    return heddle_mode_in(HEDDLE_MODES(HEDDLE_COMBINES), m);
}

/* Neither turns nor memory of its own: the order of tasks is all that the access needs. */
static inline bool heddle_mode_is_plain(unsigned m)
{
    return heddle_mode_in(HEDDLE_MODES(~0) & ~HEDDLE_MODES(HEDDLE_IN_TURN | HEDDLE_PRIVATE), m);
}

/* Two accesses, one after the other, that do not wait for each other. */
static inline bool heddle_mode_is_alike(unsigned a, unsigned b)
{
    return heddle_mode_is_shared(a) && heddle_mode_is_shared(b) &&
           heddle_mode_is_in_turn(a) == heddle_mode_is_in_turn(b) &&
           heddle_mode_combines(a) == heddle_mode_combines(b);
}

/* For readers of files: a number that is no mode here counts as a write, which is safe. */
static inline enum heddle_mode heddle_mode_of(unsigned m)
{
    return heddle_mode_is_known(m) ? (enum heddle_mode)m : HEDDLE_RW;
}

/* "RWC", "read, write, any order"; NULL for what is no mode. */
const char *heddle_mode_letters(unsigned m);
const char *heddle_mode_word(unsigned m);
/* The mode with the most letters that are all in `word`, which other programs may have written and
 * which may have further ones ("RWL"); HEDDLE_R when there is none. */
enum heddle_mode heddle_mode_of_letters(const char *word);

#endif /* HEDDLE_BASE_MODE_H */
