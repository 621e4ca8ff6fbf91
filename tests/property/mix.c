/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mix: the arithmetic of the random tasks.
 *
 * Invariants (1) all reads of a task come before its first write, so operands
 *                that overlap each other have one meaning
 *            (2) what is added to commutative and reduced data depends on other
 *                operands only
 *            (3) elements are visited in row-major order of the index space,
 *                whatever the strides: private copies give the same result
 * Threads    none of its own; the members of a gang share out the elements.
 */
#include "mix.h"

#include <string.h>

#include "prog.h"

struct cursor {
    const struct heddle_layout *l;
    char *at;
    size_t index[HEDDLE_MAX_DIMS];
    size_t elem;
};

static struct cursor cursor_at(const struct mix_mem *m)
{
    return (struct cursor){
        .l = m->layout, .at = m->ptr, .elem = heddle_dtype_bytes(m->layout->dtype)};
}

static void cursor_step(struct cursor *c)
{
    for (unsigned d = c->l->ndim; d-- > 0;) {
        c->at += c->l->stride[d] * c->elem;
        if (++c->index[d] < c->l->extent[d])
            return;
        c->at -= c->l->extent[d] * c->l->stride[d] * c->elem;
        c->index[d] = 0;
    }
}

static uint64_t cursor_get(const struct cursor *c)
{
    uint64_t v64;
    uint32_t v32;

    switch (c->elem) {
    case 1: return *(unsigned char *)c->at;
    case 4: memcpy(&v32, c->at, sizeof(v32)); return v32;
    default: memcpy(&v64, c->at, sizeof(v64)); return v64;
    }
}

static void cursor_put(const struct cursor *c, uint64_t v)
{
    const uint32_t v32 = (uint32_t)v;

    switch (c->elem) {
    case 1: *(unsigned char *)c->at = (unsigned char)v; break;
    case 4: memcpy(c->at, &v32, sizeof(v32)); break;
    default: memcpy(c->at, &v, sizeof(v)); break;
    }
}

size_t mix_count(const struct heddle_layout *l)
{
    size_t n = 1;

    for (unsigned d = 0; d < l->ndim; d++)
        n *= l->extent[d];
    return n;
}

static uint64_t mix_read(const struct mix_mem *m, uint64_t h)
{
    const size_t n = mix_count(m->layout);
    struct cursor c = cursor_at(m);

    for (size_t i = 0; i < n; i++, cursor_step(&c))
        h = h * UINT64_C(0x9e3779b97f4a7c15) + cursor_get(&c) + 1;
    return prog_mix(h + n);
}

static void mix_write(const struct mix_mem *m, uint64_t key, const struct mix_gang *g)
{
    const size_t n = mix_count(m->layout);
    struct cursor c = cursor_at(m);

    for (size_t i = 0; i < n; i++, cursor_step(&c)) {
        if (g != NULL && i % g->size != g->rank)
            continue;
        switch (m->mode) {
        case HEDDLE_W: cursor_put(&c, prog_mix(key + i)); break;
        case HEDDLE_RW: cursor_put(&c, cursor_get(&c) * 31 + key + i); break;
        default: cursor_put(&c, cursor_get(&c) + prog_mix(key ^ i)); break;
        }
    }
}

static bool mix_is_written(const struct mix_mem *m)
{
    return m->mode != HEDDLE_R && m->mode != HEDDLE_SCRATCH;
}

static void mix_update(const struct mix_mem *mem, unsigned n, uint64_t h,
                       const struct mix_gang *gang)
{
    for (unsigned i = 0; i < n; i++)
        if (mem[i].mode == HEDDLE_R || mem[i].mode == HEDDLE_RW)
            h = mix_read(&mem[i], h);
    if (gang != NULL)
        gang->sync(gang->user); /* invariant (1) */
    for (unsigned i = 0; i < n; i++) {
        if (mix_is_written(&mem[i]))
            mix_write(&mem[i], prog_mix(h + i), gang);
        if (gang != NULL)
            gang->sync(gang->user);
    }
}

void mix_task(const struct mix_mem *mem, unsigned n, const unsigned char *arg, size_t arg_bytes,
              const struct mix_gang *gang)
{
    uint64_t h = arg_bytes;

    for (size_t i = 0; i < arg_bytes; i++)
        h = h * UINT64_C(0x100000001b3) + arg[i];
    mix_update(mem, n, prog_mix(h), gang);
}

void mix_again(const struct mix_mem *mem, unsigned n, uint64_t round)
{
    mix_update(mem, n, prog_mix(round), NULL);
}

void mix_scribble(const struct mix_mem *mem, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct cursor c = cursor_at(&mem[i]);
        const size_t count = mix_count(mem[i].layout);

        if (!mix_is_written(&mem[i]))
            continue;
        for (size_t k = 0; k < count; k++, cursor_step(&c))
            cursor_put(&c, ~cursor_get(&c) * 7 + k);
    }
}

void mix_part(const struct mix_mem *m, uint64_t salt, const size_t *origin)
{
    const size_t n = mix_count(m->layout);
    struct cursor c = cursor_at(m);

    for (size_t i = 0; i < n; i++, cursor_step(&c)) {
        uint64_t where = 0;

        for (unsigned d = 0; d < m->layout->ndim; d++)
            where = where * 1000 + origin[d] + c.index[d];
        cursor_put(&c, cursor_get(&c) * 31 + prog_mix(salt + where));
    }
}

void mix_acquired(const struct mix_mem *m, uint64_t salt)
{
    if (mix_is_written(m))
        mix_write(m, prog_mix(salt), NULL);
}

uint64_t mix_hash(const struct mix_mem *m)
{
    return mix_read(m, 1) | 1;
}

void mix_fill(const struct mix_mem *m, uint64_t salt)
{
    const struct mix_mem w = {m->ptr, m->layout, HEDDLE_W};

    mix_write(&w, salt, NULL);
}

int mix_is_filled(const struct mix_mem *m, uint64_t salt)
{
    const size_t n = mix_count(m->layout);
    struct cursor c = cursor_at(m);

    for (size_t i = 0; i < n; i++, cursor_step(&c)) {
        const uint64_t mask = c.elem == 8 ? UINT64_MAX : (UINT64_C(1) << (8 * c.elem)) - 1;

        if (cursor_get(&c) != (prog_mix(salt + i) & mask))
            return 0;
    }
    return 1;
}
