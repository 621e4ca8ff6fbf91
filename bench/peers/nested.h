/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BENCH_PEERS_NESTED_H
#define HEDDLE_BENCH_PEERS_NESTED_H

/*
 * nested.h - six programs of nested tasks, and the frame of a side that runs them.
 *
 * Both sides have the same recursion, the same cut-offs and the same leaves: the
 * functions below. A side brings the tasks. README.md describes the programs.
 *
 * Threads: the functions of the programs may run on any thread; the frame is for one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    NESTED_WORKERS = 256,     /* at most */
    NESTED_SORT_LEAF = 32,    /* elements that one task sorts or merges */
    NESTED_STRASSEN_LEAF = 16 /* rows of matrices that one task multiplies */
};

enum nested_program {
    NESTED_FIB,
    NESTED_QUEENS,
    NESTED_UTS,
    NESTED_SORT,
    NESTED_STRASSEN,
    NESTED_SPARSELU,
    NESTED_NPROGRAMS
};

/* A counter of one thread. */
struct nested_count {
    _Alignas(64) uint64_t n;
};

struct nested {
    enum nested_program program;
    bool waits; /* tasks wait for their children and add up what these return */
    unsigned workers;
    unsigned reps;
    unsigned n;                                /* size: see README.md */
    uint64_t sum;                              /* result of a counting program */
    struct nested_count count[NESTED_WORKERS]; /* without waits, the parts of it */
    uint32_t *key, *tmp;                       /* sort */
    double *a, *b, *c;                         /* strassen */
    double **block;                            /* sparselu: n x n, NULL: no block there */
    void *self;                                /* the side's own */
};

/* Members return 0 or, after a message on stderr, 1. */
struct nested_ops {
    const char *name;
    int (*open)(struct nested *s);
    int (*run)(struct nested *s); /* the timed part */
    void (*close)(struct nested *s);
};

/* Memory, or the end of the program. */
void *nested_room(size_t bytes);

/* Returns the exit status: 0 done, 1 failed, 2 wrong options. */
int nested_main(int argc, char **argv, const struct nested_ops *ops);

/* --- nqueens: a position is three sets of columns ------------------------------- */

struct nested_board {
    uint16_t columns, left, right; /* taken, by queens above, in this row */
    uint16_t n;                    /* columns in all */
};

static inline unsigned nested_free(struct nested_board b)
{
    return ~(unsigned)(b.columns | b.left | b.right) & ((1u << b.n) - 1);
}

static inline bool nested_is_full(struct nested_board b)
{
    return b.columns == (1u << b.n) - 1;
}

static inline struct nested_board nested_place(struct nested_board b, unsigned bit)
{
    return (struct nested_board){(uint16_t)(b.columns | bit), (uint16_t)((b.left | bit) << 1),
                                 (uint16_t)((b.right | bit) >> 1), b.n};
}

/* --- uts: an unbalanced tree that nobody knows before ---------------------------- */

/* The number of children of a node, and the node that is child i. */
unsigned nested_uts_children(const struct nested *s, uint64_t node);
uint64_t nested_uts_child(uint64_t node, unsigned i);
#define NESTED_UTS_ROOT UINT64_C(0)

/* --- sort ------------------------------------------------------------------------ */

void nested_sort_leaf(uint32_t *key, size_t n);
void nested_merge_leaf(const uint32_t *a, size_t na, const uint32_t *b, size_t nb, uint32_t *out);
/* How many of the n keys are less than `key`. */
size_t nested_rank(const uint32_t *keys, size_t n, uint32_t key);

/* --- strassen: square matrices, rows ld elements apart ---------------------------- */

void nested_multiply_leaf(const double *a, size_t lda, const double *b, size_t ldb, double *c,
                          size_t ldc);
/* The factors of product i of the seven, n x n, in the quarters of a and b or in their
 * sums, which are written to `sums`: room for two. */
struct nested_factors {
    const double *a, *b;
    size_t lda, ldb;
};
struct nested_factors nested_factors_of(unsigned i, size_t n, const double *a, size_t lda,
                                        const double *b, size_t ldb, double *sums);
/* The four quarters of c from the seven products, n x n each, one after the other. */
void nested_combine(size_t n, const double *m, double *c, size_t ldc);

/* --- sparselu: blocks of 8 x 8 ---------------------------------------------------- */

void nested_lu0(double *d);
void nested_fwd(const double *d, double *row);
void nested_bdiv(const double *d, double *column);
void nested_bmod(const double *row, const double *column, double *inner);

#endif /* HEDDLE_BENCH_PEERS_NESTED_H */
