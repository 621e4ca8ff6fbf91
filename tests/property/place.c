/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * place: the oracle's arrays, boxes of them, and marks.
 *
 * Invariants (1) the mark of a failed task is the box it should have written; a
 *                box that overlaps it meets it, one that contains it clears it
 * Threads    one.
 */
#include "place.h"

#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

void store_init(struct store *s, const struct prog_unit *u)
{
    s->bytes = u->span * heddle_dtype_bytes(u->layout.dtype);
    s->mem = calloc(s->bytes, 1);
    s->unknown = calloc(s->bytes, sizeof(bool));
    CHECK(s->mem != NULL && s->unknown != NULL);
    memcpy(s->stride, u->layout.stride, sizeof(s->stride));
}

void store_fini(struct store *s)
{
    free(s->mem);
    free(s->unknown);
}

/* --- places -------------------------------------------------------------------- */

static char *place_ptr(const struct place *pl)
{
    size_t at = 0;

    for (unsigned d = 0; d < pl->layout.ndim; d++)
        at += pl->box.first[d] * pl->store->stride[d];
    return (char *)pl->store->mem + at * heddle_dtype_bytes(pl->layout.dtype);
}

static void place_fill_layout(struct place *pl)
{
    for (unsigned d = 0; d < pl->layout.ndim; d++) {
        pl->layout.extent[d] = pl->box.extent[d];
        pl->layout.stride[d] = pl->store->stride[d] * pl->box.step[d];
    }
}

struct place place_make(struct store *s, const struct prog_unit *u)
{
    struct place pl = {.store = s, .box = u->abs, .layout = u->layout};

    place_fill_layout(&pl);
    return pl;
}

struct place place_part(const struct place *whole, const struct prog_box *rel)
{
    struct place pl = *whole;

    pl.box = prog_box_inside(&whole->box, rel, pl.layout.ndim);
    place_fill_layout(&pl);
    return pl;
}

struct mix_mem place_mem(const struct place *pl, enum heddle_mode mode)
{
    return (struct mix_mem){place_ptr(pl), &pl->layout, mode};
}

/* Sets `unknown` for every byte of a place (0, 1), or asks (-1). */
static bool place_visit(const struct place *pl, int set)
{
    const size_t elem = heddle_dtype_bytes(pl->layout.dtype);
    const size_t base = (size_t)(place_ptr(pl) - (char *)pl->store->mem);
    const size_t n = mix_count(&pl->layout);
    size_t index[PROG_DIMS] = {0};
    bool any = false;

    for (size_t i = 0; i < n; i++) {
        size_t at = base;

        for (unsigned d = 0; d < pl->layout.ndim; d++)
            at += index[d] * pl->layout.stride[d] * elem;
        for (size_t b = 0; b < elem; b++) {
            any = any || pl->store->unknown[at + b];
            if (set >= 0)
                pl->store->unknown[at + b] = set != 0;
        }
        for (unsigned d = pl->layout.ndim; d-- > 0;) {
            if (++index[d] < pl->layout.extent[d])
                break;
            index[d] = 0;
        }
    }
    return any;
}

bool place_is_unknown(const struct place *pl)
{
    return place_visit(pl, -1);
}

void place_set_unknown(const struct place *pl, bool unknown)
{
    (void)place_visit(pl, unknown);
}

/* --- marks --------------------------------------------------------------------- */

void mark_set(struct marks *m, const struct place *pl)
{
    if (m->n == m->cap) {
        m->cap = m->cap == 0 ? 16 : 2 * m->cap;
        m->mark = realloc(m->mark, m->cap * sizeof(*m->mark));
        CHECK(m->mark != NULL);
    }
    m->mark[m->n++] = (struct mark){pl->store, pl->box, pl->layout.ndim};
}

void mark_clear(struct marks *m, const struct place *pl)
{
    size_t k = 0;

    for (size_t i = 0; i < m->n; i++)
        if (m->mark[i].store != pl->store ||
            !prog_box_contains(&pl->box, &m->mark[i].box, m->mark[i].ndim))
            m->mark[k++] = m->mark[i];
    m->n = k;
}

bool mark_meets(const struct marks *m, const struct place *pl)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->mark[i].store == pl->store &&
            prog_box_overlap(&pl->box, &m->mark[i].box, m->mark[i].ndim))
            return true;
    return false;
}

void mark_forget(struct marks *m, const struct store *s)
{
    size_t k = 0;

    for (size_t i = 0; i < m->n; i++)
        if (m->mark[i].store != s)
            m->mark[k++] = m->mark[i];
    m->n = k;
}
