/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_la_data: operands of the benchmarks: memory, values, copies.
 *
 * Values     are a hash of the position, so that threads need not agree on an order
 *            and a matrix can be made again.
 * Threads    la_parallel() starts some of its own; each has its columns.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "bench_la.h"

enum { MAX_THREADS = 64 };

enum heddle_dtype la_dtype(enum la_type t)
{
    static const enum heddle_dtype of[] = {HEDDLE_F32, HEDDLE_F64, HEDDLE_C64,
                                           HEDDLE_C128};

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
        h[i].is_running = heddle_thread_create(&h[i].thread, NULL, helper_main,
                                               &h[i]) == HEDDLE_OK;
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

struct la_array la_array_make(enum la_type t, size_t m, size_t n)
{
    struct la_array a = {.m = m, .n = n, .t = t};

    a.p = calloc(m * n + 1, la_elem_bytes(t));
    return a;
}

struct job {
    const struct la_array *to, *from;
    enum la_fill fill;
    uint64_t seed;
    unsigned nthreads;
};

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Uniform in (-0.5, 0.5). */
static double value(uint64_t key)
{
    return ((double)(mix(key) >> 12) + 0.5) * 0x1p-52 - 0.5;
}

/* Both parts of element (i, j). */
static void element(const struct job *w, size_t i, size_t j, double out[2])
{
    const bool is_flipped = w->fill == LA_POSITIVE && i < j;
    const size_t r = is_flipped ? j : i, c = is_flipped ? i : j;
    const uint64_t key =
        (w->seed << 56) + ((uint64_t)c << 33) + ((uint64_t)r << 1);

    out[0] = value(key * UINT64_C(0x9e3779b97f4a7c15));
    out[1] = la_is_complex(w->to->t)
                 ? value((key + 1) * UINT64_C(0x9e3779b97f4a7c15))
                 : 0;
    if (is_flipped)
        out[1] = -out[1];
    if (i == j && (w->fill == LA_POSITIVE || w->fill == LA_FACTOR))
        out[1] = 0;
    if (i == j && w->fill == LA_FACTOR)
        out[0] += sqrt((double)w->to->n);
    else if (i == j && w->fill != LA_RANDOM)
        out[0] += (double)w->to->n;
    if (i < j && w->fill == LA_FACTOR)
        out[0] = out[1] = 0;
}

static void fill_some(void *arg, unsigned index)
{
    const struct job *w = arg;
    const struct la_array *a = w->to;
    const size_t step = la_is_complex(a->t) ? 2 : 1;

    for (size_t j = index; j < a->n; j += w->nthreads) {
        for (size_t i = 0; i < a->m; i++) {
            const size_t at = (i + j * a->m) * step;
            double v[2];

            element(w, i, j, v);
            for (size_t d = 0; d < step; d++) {
                if (a->t == LA_S || a->t == LA_C)
                    ((float *)a->p)[at + d] = (float)v[d];
                else
                    ((double *)a->p)[at + d] = v[d];
            }
        }
    }
}

static void copy_some(void *arg, unsigned index)
{
    const struct job *w = arg;
    const size_t bytes = la_array_bytes(w->to);
    const size_t from = bytes / w->nthreads * index;
    const size_t to =
        index + 1 == w->nthreads ? bytes : bytes / w->nthreads * (index + 1);

    if (w->from != NULL)
        memcpy((char *)w->to->p + from, (const char *)w->from->p + from,
               to - from);
    else
        memset((char *)w->to->p + from, 0, to - from);
}

void la_array_fill(const struct la_array *a, enum la_fill fill, uint64_t seed,
                   unsigned nthreads)
{
    struct job w = {.to = a, .fill = fill, .seed = seed, .nthreads = nthreads};

    la_parallel(nthreads, fill == LA_ZERO ? copy_some : fill_some, &w);
}

void la_array_copy(const struct la_array *to, const struct la_array *from,
                   unsigned nthreads)
{
    struct job w = {.to = to, .from = from, .nthreads = nthreads};

    la_parallel(nthreads, copy_some, &w);
}
