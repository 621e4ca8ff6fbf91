/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * packed_avx512: the innermost loops for processors with AVX-512.
 *
 * Registers  24 of the 32 hold a part of C. For a product that are 3 x 8: three
 *            vectors of a column of A, by one element of B each. For a solve that are
 *            24 rows of 8 columns, by one element of the triangle each.
 * Build      functions name the instructions they use, so the library still starts
 *            on any processor.
 */
#include "la/product/packed.h"

#if defined(__x86_64__)
#include <immintrin.h>

enum {
    V = 8,        /* numbers of a vector */
    ROWS = 3 * V, /* of a part of C */
    COLS = 8,
    AHEAD = 16 * ROWS /* of A, what is fetched early */
};

#define AVX512     __attribute__((target("avx512f,fma")))
#define UNROLL(n)  UNROLL_(GCC unroll n)
#define UNROLL_(x) _Pragma(#x)
/* What the compiler knows of p before, it shall not keep in registers. */
#define FORGET(p) __asm__("" : "+r"(p))

AVX512 static void multiply(size_t k, const double *a, const double *b, const double *beta,
                            double *c, size_t ld)
{
    __m512d s[COLS][3], scale;

    UNROLL(8)
    for (int j = 0; j < COLS; j++) {
        for (int i = 0; i < 3; i++)
            s[j][i] = _mm512_setzero_pd();
        _mm_prefetch((const char *)(c + (size_t)j * ld), _MM_HINT_T0);
        _mm_prefetch((const char *)(c + (size_t)j * ld + V), _MM_HINT_T0);
        _mm_prefetch((const char *)(c + (size_t)j * ld + 2 * V), _MM_HINT_T0);
        _mm_prefetch((const char *)(c + (size_t)j * ld + ROWS - 1), _MM_HINT_T0);
    }
    for (size_t p = 0; p < k; p++, a += ROWS, b += COLS) {
        const __m512d a0 = _mm512_load_pd(a), a1 = _mm512_load_pd(a + V),
                      a2 = _mm512_load_pd(a + 2 * V);

        _mm_prefetch((const char *)(a + AHEAD), _MM_HINT_T0);
        _mm_prefetch((const char *)(a + AHEAD + V), _MM_HINT_T0);
        _mm_prefetch((const char *)(a + AHEAD + 2 * V), _MM_HINT_T0);
        UNROLL(8)
        for (int j = 0; j < COLS; j++) {
            const __m512d x = _mm512_set1_pd(b[j]);

            s[j][0] = _mm512_fmadd_pd(a0, x, s[j][0]);
            s[j][1] = _mm512_fmadd_pd(a1, x, s[j][1]);
            s[j][2] = _mm512_fmadd_pd(a2, x, s[j][2]);
        }
    }
    FORGET(c);
    FORGET(beta);
    scale = _mm512_set1_pd(*beta);
    UNROLL(8)
    for (int j = 0; j < COLS; j++)
        UNROLL(3)
    for (int i = 0; i < 3; i++) {
        double *at = c + (size_t)j * ld + i * V;

        if (*beta != 0)
            s[j][i] = _mm512_fmadd_pd(scale, _mm512_loadu_pd(at), s[j][i]);
        _mm512_storeu_pd(at, s[j][i]);
    }
}

AVX512 static void solve(size_t k, size_t n, const double *l, double *b)
{
    __m512d s[ROWS];

    UNROLL(24)
    for (size_t i = 0; i < ROWS; i++)
        s[i] = i < n ? _mm512_load_pd(b + (k + i) * COLS) : _mm512_setzero_pd();
    for (size_t p = 0; p < k; p++, l += ROWS) {
        const __m512d x = _mm512_load_pd(b + p * COLS);

        UNROLL(24)
        for (size_t i = 0; i < ROWS; i++)
            s[i] = _mm512_fnmadd_pd(_mm512_set1_pd(l[i]), x, s[i]);
    }
    UNROLL(24)
    for (size_t p = 0; p < ROWS; p++) {
        if (p >= n)
            return;
        _mm512_store_pd(b + (k + p) * COLS, s[p]);
        UNROLL(24)
        for (size_t i = p + 1; i < ROWS; i++)
            s[i] = _mm512_fnmadd_pd(_mm512_set1_pd(l[p * ROWS + i]), s[p], s[i]);
    }
}

const struct la_packed *heddle_packed(void)
{
    static const struct la_packed own = {ROWS, COLS, multiply, solve};

    return __builtin_cpu_supports("avx512f") ? &own : NULL;
}

#else /* another processor: the BLAS */

const struct la_packed *heddle_packed(void)
{
    return NULL;
}

#endif
