/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DNN_QTILE_H
#define HEDDLE_DNN_QTILE_H

/*
 * For qconv.c: sums of products of bytes in tiles of Q_ROWS rows and Q_COLS columns.
 *
 * B is packed: for each tap and each four channels, Q_COLS columns of four bytes. Rows are
 * addresses, tap by tap. Sums are exact on every instruction set, so all give the same bits.
 */
#include <stddef.h>
#include <stdint.h>

enum { Q_ROWS = 6, Q_COLS = 64 };

/* What becomes of a sum. */
struct q_end {
    const int32_t *offset; /* by column, added */
    const double *factor;  /* by column; NULL: the sums are the results */
    int zero, low, high;
};

struct q_tile {
    size_t ntaps, quads;     /* groups of four channels */
    const uint8_t *const *a; /* of row i in tap t: a[t * Q_ROWS + i] */
    uint32_t flip;           /* xor of four bytes of a */
    const int8_t *b;
};

struct q_isa {
    const char *name;
    void (*tile)(const struct q_tile *t, int32_t c[Q_ROWS * Q_COLS]);
    /* n columns of a row of sums; y: bytes, or 32-bit integers. */
    void (*end)(const struct q_end *e, const int32_t *c, void *y, size_t n);
};

/* The best one for an instruction set of isa.def on this processor. */
const struct q_isa *heddle_dnn_q_isa(const char *isa);

#endif /* HEDDLE_DNN_QTILE_H */
