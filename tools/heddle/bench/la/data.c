/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/la/data: operands of the benchmarks: memory, values, copies.
 *
 * Values     are a hash of the position, so that threads need not agree on an order
 *            and a matrix can be made again. Two multiplications each, without a
 *            branch: they are ready as fast as memory takes them.
 * Memory     in huge pages where there are some: a page fault costs more than the
 *            numbers of a small page.
 * Threads    la_parallel() starts some of its own; each has its columns.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "base/thread.h"
#include "bench/la/la.h"

enum { MAX_THREADS = 64, CHUNK = 512 };

enum heddle_dtype la_dtype(enum la_type t)
{
    static const enum heddle_dtype of[] = {HEDDLE_F32, HEDDLE_F64, HEDDLE_C64, HEDDLE_C128};

    return of[t];
}

/* --- threads -------------------------------------------------------------------- */

struct helper {
    struct heddle_thread thread;
    void (*fn)(void *arg, unsigned i);
    void *arg;
    unsigned index;
    bool is_running;
};

static void *helper_main(void *arg)
{
    const struct helper *h = arg;

    h->fn(h->arg, h->index);
    return NULL;
}

void la_parallel(unsigned n, void (*fn)(void *arg, unsigned i), void *arg)
{
    struct helper h[MAX_THREADS];
    const unsigned started = n < MAX_THREADS ? n : MAX_THREADS;

    for (unsigned i = 1; i < started; i++) {
        h[i] = (struct helper){.fn = fn, .arg = arg, .index = i};
        h[i].is_running = heddle_thread_create(&h[i].thread, NULL, helper_main, &h[i]) == HEDDLE_OK;
    }
    if (n > 0)
        fn(arg, 0);
    for (unsigned i = started; i < n; i++)
        fn(arg, i);
    for (unsigned i = 1; i < started; i++)
        if (!h[i].is_running || heddle_thread_join(&h[i].thread) != HEDDLE_OK)
            fn(arg, i);
}

/* --- arrays ----------------------------------------------------------------------- */

size_t la_array_bytes(const struct la_array *a)
{
    return a->m * a->n * la_elem_bytes(a->t);
}

/* Never of 0 bytes. */
static size_t memory_of(const struct la_array *a)
{
    return la_array_bytes(a) + la_elem_bytes(a->t);
}

struct la_array la_array_make(enum la_type t, size_t m, size_t n)
{
    struct la_array a = {.m = m, .n = n, .t = t};

    a.p = heddle_alloc_large(NULL, memory_of(&a));
    return a;
}

void la_array_free(struct la_array *a)
{
    if (a->p != NULL)
        heddle_free(NULL, a->p, memory_of(a));
    a->p = NULL;
}

struct job {
    const struct la_array *to, *from;
    enum la_fill fill;
    bool is_lower;
    uint64_t seed;
    unsigned nthreads;
};

/* --- values ------------------------------------------------------------------------- */

#define STEP UINT64_C(0x9e3779b97f4a7c15)

/* Uniform in (-0.5, 0.5): 52 bits of a hash, and a half for the one behind them. */
static double value(uint64_t hash)
{
    const uint64_t bits = hash >> 12 | UINT64_C(0x3ff) << 52;
    double v; /* in [1, 2) */

    memcpy(&v, &bits, sizeof(v));
    return v - 1.5 + 0x1p-53;
}

/* The values of keys key, key + step and so on. */
static void values(uint64_t key, uint64_t step, size_t n, double *out)
{
    const uint64_t first = key * STEP, by = step * STEP;

    for (size_t i = 0; i < n; i++)
        out[i] = value(heddle_mix64(first + i * by));
}

/* Of real parts re and imaginary parts im; im is NULL where there are none. */
static void store(enum la_type t, void *to, const double *re, const double *im, size_t n)
{
    float *s = to;
    double *d = to;

    switch (t) {
    case LA_S:
        for (size_t i = 0; i < n; i++)
            s[i] = (float)re[i];
        break;
    case LA_D: memcpy(d, re, n * sizeof(*d)); break;
    case LA_C:
        for (size_t i = 0; i < n; i++) {
            s[2 * i] = (float)re[i];
            s[2 * i + 1] = (float)im[i];
        }
        break;
    case LA_Z:
        for (size_t i = 0; i < n; i++) {
            d[2 * i] = re[i];
            d[2 * i + 1] = im[i];
        }
        break;
    }
}

static void *element_at(const struct la_array *a, size_t i, size_t j)
{
    return (char *)a->p + (i + j * a->m) * la_elem_bytes(a->t);
}

/* Rows from .. to - 1 of column j; `is_flipped`: they are those of row j, conjugate. */
static void fill_rows(const struct job *w, size_t j, size_t from, size_t to, bool is_flipped)
{
    const struct la_array *a = w->to;
    const unsigned up = is_flipped ? 33 : 1, down = is_flipped ? 1 : 33;
    const uint64_t base = (w->seed << 56) + ((uint64_t)j << down);
    double re[CHUNK], im[CHUNK];

    for (size_t i = from; i < to; i += CHUNK) {
        const size_t n = to - i < CHUNK ? to - i : CHUNK;
        const uint64_t key = base + ((uint64_t)i << up);

        values(key, UINT64_C(1) << up, n, re);
        if (la_is_complex(a->t)) {
            values(key + 1, UINT64_C(1) << up, n, im);
            for (size_t k = 0; k < n && is_flipped; k++)
                im[k] = -im[k];
        }
        store(a->t, element_at(a, i, j), re, im, n);
    }
}

static void fill_diagonal(const struct job *w, size_t j)
{
    const struct la_array *a = w->to;
    const uint64_t key = (w->seed << 56) + ((uint64_t)j << 33) + ((uint64_t)j << 1);
    double re, im;

    values(key, 0, 1, &re);
    values(key + 1, 0, 1, &im);
    if (w->fill == LA_POSITIVE || w->fill == LA_FACTOR)
        im = 0;
    re += w->fill == LA_FACTOR ? sqrt((double)a->n) : (double)a->n;
    store(a->t, element_at(a, j, j), &re, &im, 1);
}

static void fill_some(void *arg, unsigned index)
{
    const struct job *w = arg;
    const struct la_array *a = w->to;

    for (size_t j = index; j < a->n; j += w->nthreads) {
        const size_t diagonal = j < a->m ? j : a->m;

        if (w->fill == LA_FACTOR)
            memset(element_at(a, 0, j), 0, diagonal * la_elem_bytes(a->t));
        else
            fill_rows(w, j, 0, diagonal, w->fill == LA_POSITIVE);
        fill_rows(w, j, diagonal, a->m, false);
        if (w->fill != LA_RANDOM && j < a->m)
            fill_diagonal(w, j);
    }
}

static void copy_some(void *arg, unsigned index)
{
    const struct job *w = arg;
    const size_t bytes = la_elem_bytes(w->to->t);

    for (size_t j = index; j < w->to->n; j += w->nthreads) {
        const size_t from = w->is_lower && j < w->to->m ? j : 0;
        const size_t len = (w->to->m - from) * bytes;

        if (w->from != NULL)
            memcpy(element_at(w->to, from, j), element_at(w->from, from, j), len);
        else
            memset(element_at(w->to, from, j), 0, len);
    }
}

void la_array_fill(const struct la_array *a, enum la_fill fill, uint64_t seed, unsigned nthreads)
{
    struct job w = {.to = a, .fill = fill, .seed = seed, .nthreads = nthreads};

    la_parallel(nthreads, fill == LA_ZERO ? copy_some : fill_some, &w);
}

void la_array_copy(const struct la_array *to, const struct la_array *from, bool is_lower,
                   unsigned nthreads)
{
    struct job w = {.to = to, .from = from, .is_lower = is_lower, .nthreads = nthreads};

    la_parallel(nthreads, copy_some, &w);
}
