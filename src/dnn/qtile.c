/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qtile: tiles of sums of products of bytes.
 *
 * avx512 with VNNI  one instruction adds four products to each of 16 sums
 * avx2              bytes become 16-bit numbers, whose products are added in pairs: exact, which
 *                   products of bytes in one instruction are not without VNNI
 * plain             one product after another
 */
#include "dnn/qtile.h"

#include <math.h>
#include <string.h>

static uint32_t four(const uint8_t *a, uint32_t flip)
{
    uint32_t x;

    memcpy(&x, a, sizeof(x));
    return x ^ flip;
}

/* --- plain ----------------------------------------------------------------------------- */

static void tile_plain(const struct q_tile *t, int32_t c[Q_ROWS * Q_COLS])
{
    const int8_t *b = t->b;

    memset(c, 0, Q_ROWS * Q_COLS * sizeof(*c));
    for (size_t tap = 0; tap < t->ntaps; tap++)
        for (size_t q = 0; q < t->quads; q++, b += 4 * Q_COLS)
            for (size_t i = 0; i < Q_ROWS; i++) {
                const uint32_t x = four(t->a[tap * Q_ROWS + i] + 4 * q, t->flip);

                for (size_t j = 0; j < Q_COLS; j++)
                    for (unsigned k = 0; k < 4; k++)
                        c[i * Q_COLS + j] += (int32_t)(x >> 8 * k & 255) * b[4 * j + k];
            }
}

static void end_plain(const struct q_end *e, const int32_t *c, void *y, size_t n)
{
    for (size_t j = 0; j < n; j++) {
        const int32_t sum = c[j] + e->offset[j];
        double v;

        if (e->factor == NULL) {
            ((int32_t *)y)[j] = sum;
            continue;
        }
        v = nearbyint((double)(float)(sum * e->factor[j])) + e->zero;
        v = v < e->low ? e->low : v > e->high ? e->high : v;
        ((uint8_t *)y)[j] = (uint8_t)(int)v;
    }
}

static const struct q_isa plain = {"base", tile_plain, end_plain};

#if defined(__x86_64__)
#include <immintrin.h>

/* --- avx2 ------------------------------------------------------------------------------- */

/* Eight columns: sums of products 0 and 1 of a column, and of 2 and 3, stand side by side. */
__attribute__((target("avx2"))) static void tile_avx2(const struct q_tile *t,
                                                      int32_t c[Q_ROWS * Q_COLS])
{
    for (size_t col = 0; col < Q_COLS; col += 8) {
        const int8_t *b = t->b + 4 * col;
        __m256i low[Q_ROWS], high[Q_ROWS];

        for (int i = 0; i < Q_ROWS; i++)
            low[i] = high[i] = _mm256_setzero_si256();
        for (size_t tap = 0; tap < t->ntaps; tap++)
            for (size_t q = 0; q < t->quads; q++, b += 4 * Q_COLS) {
                const __m256i all = _mm256_loadu_si256((const __m256i *)(const void *)b);
                const __m256i b0 = _mm256_cvtepi8_epi16(_mm256_castsi256_si128(all)),
                              b1 = _mm256_cvtepi8_epi16(_mm256_extracti128_si256(all, 1));

                for (int i = 0; i < Q_ROWS; i++) {
                    const uint32_t x = four(t->a[tap * Q_ROWS + (size_t)i] + 4 * q, t->flip);
                    const __m256i a = _mm256_cvtepu8_epi16(_mm_set1_epi32((int)x));

                    low[i] = _mm256_add_epi32(low[i], _mm256_madd_epi16(a, b0));
                    high[i] = _mm256_add_epi32(high[i], _mm256_madd_epi16(a, b1));
                }
            }
        for (int i = 0; i < Q_ROWS; i++) {
            const __m256i sum = _mm256_permute4x64_epi64(_mm256_hadd_epi32(low[i], high[i]), 0xd8);

            _mm256_storeu_si256((__m256i *)(void *)(c + (size_t)i * Q_COLS + col), sum);
        }
    }
}

static const struct q_isa avx2 = {"avx2", tile_avx2, end_plain};

/* --- avx512 with VNNI ------------------------------------------------------------------------ */

#define Q_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))

Q_AVX512 static void tile_vnni(const struct q_tile *t, int32_t c[Q_ROWS * Q_COLS])
{
    const int8_t *b = t->b;
    __m512i s[Q_ROWS][4];

    for (int i = 0; i < Q_ROWS; i++)
        for (int j = 0; j < 4; j++)
            s[i][j] = _mm512_setzero_si512();
    for (size_t tap = 0; tap < t->ntaps; tap++) {
        const uint8_t *const *a = t->a + tap * Q_ROWS;

        for (size_t q = 0; q < t->quads; q++, b += 4 * Q_COLS) {
            const __m512i b0 = _mm512_loadu_si512(b), b1 = _mm512_loadu_si512(b + 64),
                          b2 = _mm512_loadu_si512(b + 128), b3 = _mm512_loadu_si512(b + 192);

#pragma GCC unroll 6
            for (int i = 0; i < Q_ROWS; i++) {
                const __m512i x = _mm512_set1_epi32((int)four(a[i] + 4 * q, t->flip));

                s[i][0] = _mm512_dpbusd_epi32(s[i][0], x, b0);
                s[i][1] = _mm512_dpbusd_epi32(s[i][1], x, b1);
                s[i][2] = _mm512_dpbusd_epi32(s[i][2], x, b2);
                s[i][3] = _mm512_dpbusd_epi32(s[i][3], x, b3);
            }
        }
    }
    for (int i = 0; i < Q_ROWS; i++)
        for (int j = 0; j < 4; j++)
            _mm512_storeu_si512(c + i * Q_COLS + j * 16, s[i][j]);
}

/* 16 columns: the product in double, then the float that is rounded; far outside of the range of
 * bytes the float is cut off, so that it becomes an integer. */
Q_AVX512 static void end_sixteen(const struct q_end *e, const int32_t *c, uint8_t *y, size_t at,
                                 __mmask16 some)
{
    const __m512i sum = _mm512_add_epi32(_mm512_maskz_loadu_epi32(some, c + at),
                                         _mm512_maskz_loadu_epi32(some, e->offset + at));
    const __m512d f0 = _mm512_maskz_loadu_pd((__mmask8)some, e->factor + at),
                  f1 = _mm512_maskz_loadu_pd((__mmask8)(some >> 8), e->factor + at + 8);
    const __m512d v0 = _mm512_mul_pd(_mm512_cvtepi32_pd(_mm512_castsi512_si256(sum)), f0),
                  v1 = _mm512_mul_pd(_mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(sum, 1)), f1);
    __m512 v = _mm512_castps256_ps512(_mm512_cvtpd_ps(v0));
    __m512i r;

    v = _mm512_insertf32x8(v, _mm512_cvtpd_ps(v1), 1);
    v = _mm512_min_ps(_mm512_max_ps(v, _mm512_set1_ps(-65536)), _mm512_set1_ps(65536));
    r = _mm512_add_epi32(_mm512_cvt_roundps_epi32(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
                         _mm512_set1_epi32(e->zero));
    r = _mm512_min_epi32(_mm512_max_epi32(r, _mm512_set1_epi32(e->low)),
                         _mm512_set1_epi32(e->high));
    _mm512_mask_cvtepi32_storeu_epi8(y + at, some, r);
}

Q_AVX512 static void end_vnni(const struct q_end *e, const int32_t *c, void *y, size_t n)
{
    if (e->factor == NULL) {
        end_plain(e, c, y, n);
        return;
    }
    for (size_t at = 0; at < n; at += 16)
        end_sixteen(e, c, y, at,
                    n - at >= 16 ? (__mmask16)0xffff : (__mmask16)((1u << (n - at)) - 1));
}

static const struct q_isa vnni = {"avx512", tile_vnni, end_vnni};

const struct q_isa *heddle_dnn_q_isa(const char *isa)
{
    if (strcmp(isa, "avx512") == 0 && __builtin_cpu_supports("avx512vnni"))
        return &vnni;
    return strcmp(isa, "base") == 0 ? &plain : &avx2;
}
#else
const struct q_isa *heddle_dnn_q_isa(const char *isa)
{
    (void)isa;
    return &plain;
}
#endif
