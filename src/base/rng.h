/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_RNG_H
#define HEDDLE_BASE_RNG_H

/*
 * Random numbers: xoshiro256** (Blackman and Vigna, 2018) seeded by splitmix64
 * (Steele, Lea, Flood, 2014). Not for secrets. One generator per thread; the
 * same seed gives the same numbers on every machine.
 */
#include <stdint.h>

struct heddle_rng {
    uint64_t s[4]; /* never all zero */
};

/* A bijection of 64-bit words that spreads every input bit: a hash. */
static inline uint64_t heddle_mix64(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline uint64_t heddle_splitmix64(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    return heddle_mix64(*state);
}

/* Any seed, 0 included. Four outputs of splitmix64 are never all zero. */
static inline void heddle_rng_seed(struct heddle_rng *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        r->s[i] = heddle_splitmix64(&seed);
}

static inline uint64_t heddle_rotl64(uint64_t x, unsigned k)
{
    return (x << k) | (x >> (64 - k)); /* 0 < k < 64 */
}

static inline uint64_t heddle_rng_next(struct heddle_rng *r)
{
    uint64_t *s = r->s;
    const uint64_t result = heddle_rotl64(s[1] * 5, 7) * 9;
    const uint64_t t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = heddle_rotl64(s[3], 45);
    return result;
}

/* Uniform in [0, n), without bias; 0 when n is 0. One multiplication in the
 * common case (Lemire, 2019). */
static inline uint32_t heddle_rng_below32(struct heddle_rng *r, uint32_t n)
{
    uint64_t m = (heddle_rng_next(r) >> 32) * n;

    if ((uint32_t)m < n) {
        /* 2^32 mod n: products below it make some results more likely. */
        const uint32_t floor = (0u - n) % n;

        while ((uint32_t)m < floor)
            m = (heddle_rng_next(r) >> 32) * n;
    }
    return (uint32_t)(m >> 32);
}

static inline uint64_t heddle_rng_below(struct heddle_rng *r, uint64_t n)
{
    uint64_t x, mask;

    if (n <= UINT32_MAX)
        return heddle_rng_below32(r, (uint32_t)n);
    mask = UINT64_MAX >> __builtin_clzll(n - 1);
    do
        x = heddle_rng_next(r) & mask; /* accepted at least every other time */
    while (x >= n);
    return x;
}

/* Uniform in [lo, hi]; needs lo <= hi. */
static inline int64_t heddle_rng_range(struct heddle_rng *r, int64_t lo, int64_t hi)
{
    const uint64_t width = (uint64_t)hi - (uint64_t)lo;
    const uint64_t x = width == UINT64_MAX ? heddle_rng_next(r) : heddle_rng_below(r, width + 1);

    return (int64_t)((uint64_t)lo + x);
}

/* Uniform in [0, 1), a multiple of 2^-53. */
static inline double heddle_rng_double(struct heddle_rng *r)
{
    return (double)(heddle_rng_next(r) >> 11) * 0x1.0p-53;
}

#endif /* HEDDLE_BASE_RNG_H */
