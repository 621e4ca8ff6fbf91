/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_TRACE_VIEW_HUFFMAN_H
#define HEDDLE_TOOLS_TRACE_VIEW_HUFFMAN_H

/* The codes of deflate: RFC 1951, 3.2. */
#include <stdint.h>

enum { VIEW_NLIT = 286, VIEW_NDIST = 30, VIEW_MAX_BITS = 15 };

struct view_code {
    uint16_t bits[VIEW_NLIT]; /* reversed: ready for output */
    uint8_t len[VIEW_NLIT];
};

/* The best code of n symbols with words of at most `max` bits. */
void view_code_build(struct view_code *c, const uint32_t *freq, unsigned n, unsigned max);
/* The codes of a block that brings none. */
void view_code_fixed(struct view_code *lit, struct view_code *dist);

#endif /* HEDDLE_TOOLS_TRACE_VIEW_HUFFMAN_H */
