/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz/mix: the arithmetic of the random tasks.
 *
 * Invariants (1) all reads of a task come before its first write, so operands
 *                that overlap have one meaning
 *            (2) what is added to commutative and reduced data depends on other
 *                operands only, and addition wraps: order does not matter
 *            (3) elements are visited in row-major order of the index space,
 *                whatever the strides
 *            (4) every byte of an element is read and written: elements of 16
 *                bytes are two words
 * Threads    any.
 */
#include <string.h>

#include "fuzz/fuzz.h"

/* The innermost dimension as one run of `n` elements, `step` bytes apart. */
struct rows {
    const struct heddle_layout *l;
    unsigned char *at;
    size_t index[HEDDLE_MAX_DIMS];
    size_t elem, n, step;
};

static struct rows rows_of(const struct fuzz_mem *m)
{
    const struct heddle_layout *l = m->layout;
    const size_t elem = heddle_dtype_bytes(l->dtype);

    return (struct rows){.l = l,
                         .at = m->ptr,
                         .elem = elem,
                         .n = l->extent[l->ndim - 1],
                         .step = l->stride[l->ndim - 1] * elem};
}

/* False: that was the last row. */
static bool rows_next(struct rows *r)
{
    for (unsigned d = r->l->ndim - 1; d-- > 0;) {
        r->at += r->l->stride[d] * r->elem;
        if (++r->index[d] < r->l->extent[d])
            return true;
        r->at -= r->l->extent[d] * r->l->stride[d] * r->elem;
        r->index[d] = 0;
    }
    return false;
}

static uint64_t word_get(const unsigned char *p, size_t bytes)
{
    uint64_t v = 0;

    switch (bytes) { /* a constant size is a single load */
    case 1: memcpy(&v, p, 1); break;
    case 2: memcpy(&v, p, 2); break;
    case 4: memcpy(&v, p, 4); break;
    default: memcpy(&v, p, 8); break;
    }
    return v;
}

static void word_put(unsigned char *p, size_t bytes, uint64_t v)
{
    switch (bytes) {
    case 1: memcpy(p, &v, 1); break;
    case 2: memcpy(p, &v, 2); break;
    case 4: memcpy(p, &v, 4); break;
    default: memcpy(p, &v, 8); break;
    }
}

uint64_t fuzz_value(uint64_t h, uint64_t op, uint64_t i)
{
    uint64_t z = h + (op + 1) * UINT64_C(0x9e3779b97f4a7c15) + i * UINT64_C(0xd1342543de82ef95);

    z = (z ^ (z >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
    return z ^ (z >> 32);
}

uint64_t fuzz_fold(const struct fuzz_mem *mem, uint64_t h)
{
    struct rows r = rows_of(mem);
    const size_t word = r.elem > 8 ? 8 : r.elem;

    do
        for (size_t i = 0; i < r.n; i++)
            for (size_t b = 0; b < r.elem; b += word) {
                h ^= word_get(r.at + i * r.step + b, word);
                h *= UINT64_C(0x2545f4914f6cdd1d);
                h ^= h >> 31;
            }
    while (rows_next(&r));
    return h;
}

enum put { PUT_SET, PUT_ADD };

static void put_all(const struct fuzz_mem *mem, uint64_t h, uint64_t op, enum put how)
{
    struct rows r = rows_of(mem);
    const size_t word = r.elem > 8 ? 8 : r.elem;
    uint64_t at = 0;

    do
        for (size_t i = 0; i < r.n; i++)
            for (size_t b = 0; b < r.elem; b += word) {
                unsigned char *p = r.at + i * r.step + b;
                uint64_t v = fuzz_value(h, op, at++);

                if (how == PUT_ADD)
                    v += word_get(p, word);
                word_put(p, word, v);
            }
    while (rows_next(&r));
}

static bool is_filled(const struct fuzz_mem *mem, uint64_t h, uint64_t op)
{
    struct rows r = rows_of(mem);
    const size_t word = r.elem > 8 ? 8 : r.elem;
    uint64_t at = 0, bad = 0;

    do
        for (size_t i = 0; i < r.n; i++)
            for (size_t b = 0; b < r.elem; b += word) {
                const uint64_t v = fuzz_value(h, op, at++);
                const uint64_t got = word_get(r.at + i * r.step + b, word);

                bad |= got ^ (word == 8 ? v : v & ((UINT64_C(1) << 8 * word) - 1));
            }
    while (rows_next(&r));
    return bad == 0;
}

bool fuzz_mix(const struct fuzz_mem *mem, unsigned n, uint64_t salt)
{
    uint64_t h = salt;
    bool ok = true;

    for (unsigned i = 0; i < n; i++) {
        if (heddle_mode_is_scratch(mem[i].mode))
            put_all(&mem[i], salt, i, PUT_SET);
        else if (fuzz_reads(mem[i].mode) && !fuzz_adds(mem[i].mode))
            h = fuzz_fold(&mem[i], h + i);
    }
    for (unsigned i = 0; i < n; i++)
        if (fuzz_writes(mem[i].mode))
            put_all(&mem[i], h, i, fuzz_adds(mem[i].mode) ? PUT_ADD : PUT_SET);
    for (unsigned i = 0; i < n; i++)
        if (heddle_mode_is_scratch(mem[i].mode))
            ok = is_filled(&mem[i], salt, i) && ok;
    return ok;
}

void fuzz_scribble(const struct fuzz_mem *mem, unsigned n, uint64_t salt)
{
    for (unsigned i = 0; i < n; i++)
        if (fuzz_writes(mem[i].mode))
            put_all(&mem[i], ~salt, i + 100, PUT_SET);
}

void fuzz_mix_acquired(const struct fuzz_mem *mem, uint64_t salt)
{
    if (heddle_mode_reads(mem->mode) && heddle_mode_writes(mem->mode))
        put_all(mem, fuzz_fold(mem, salt), 7, PUT_SET);
    else if (heddle_mode_writes(mem->mode))
        put_all(mem, salt, 8, PUT_SET);
}

void fuzz_pack(const struct fuzz_mem *mem, unsigned char *out)
{
    struct rows r = rows_of(mem);

    do
        for (size_t i = 0; i < r.n; i++, out += r.elem)
            memcpy(out, r.at + i * r.step, r.elem);
    while (rows_next(&r));
}

void fuzz_sum(unsigned char *dst, const unsigned char *src, size_t bytes, size_t elem)
{
    const size_t word = elem > 8 ? 8 : elem;

    for (size_t i = 0; i < bytes; i += word)
        word_put(dst + i, word, word_get(dst + i, word) + word_get(src + i, word));
}
