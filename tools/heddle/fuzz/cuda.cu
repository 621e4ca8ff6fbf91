/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuda: the arithmetic of the fuzzer as kernels, launched by the C file of the same name;
 * `make ptx` makes ptx/cuda.h from them.
 *
 * Shape      e0 x e1 x e2 elements of `elem` bytes, s0, s1, s2 elements apart,
 *            the last one varying fastest.
 * Invariant  bytes, not words: an array may begin anywhere
 */
typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned char byte;

static __device__ u64 get(const byte *p, u32 n)
{
    u64 v = 0;

#pragma unroll 1
    for (u32 i = 0; i < n; i++)
        v |= (u64)p[i] << (8 * i);
    return v;
}

static __device__ void put(byte *p, u32 n, u64 v)
{
#pragma unroll 1
    for (u32 i = 0; i < n; i++)
        p[i] = (byte)(v >> (8 * i));
}

static __device__ u64 value(u64 h, u64 op, u64 i)
{
    u64 z = h + (op + 1) * 0x9e3779b97f4a7c15ull + i * 0xd1342543de82ef95ull;

    z = (z ^ (z >> 29)) * 0xbf58476d1ce4e5b9ull;
    return z ^ (z >> 32);
}

/* One thread. Takes its time, so that who does not wait is found out. */
extern "C" __global__ void fuzz_begin(u64 *h, u64 salt, u64 spin_ns)
{
    u64 now, began;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(began));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - began < spin_ns);
    *h = salt;
}

/* One thread: the hash goes through all elements in order. */
extern "C" __global__ void fuzz_fold(const byte *p, u64 *h, u64 add, u64 e0, u64 e1, u64 e2, u64 s0,
                                     u64 s1, u64 s2, u32 elem)
{
    const u32 word = elem > 8 ? 8 : elem;
    u64 x = *h + add;

#pragma unroll 1
    for (u64 i = 0; i < e0; i++)
#pragma unroll 1
        for (u64 j = 0; j < e1; j++)
#pragma unroll 1
            for (u64 k = 0; k < e2; k++)
#pragma unroll 1
                for (u32 b = 0; b < elem; b += word) {
                    x ^= get(p + (i * s0 + j * s1 + k * s2) * elem + b, word);
                    x *= 0x2545f4914f6cdd1dull;
                    x ^= x >> 31;
                }
    *h = x;
}

/* A thread for each element. */
extern "C" __global__ void fuzz_write(byte *p, const u64 *h, u64 op, u64 e0, u64 e1, u64 e2, u64 s0,
                                      u64 s1, u64 s2, u32 elem, u32 adds)
{
    const u32 word = elem > 8 ? 8 : elem;
    const u32 n = blockIdx.x * blockDim.x + threadIdx.x;
    const u32 y = (u32)e1, z = (u32)e2; /* short divisions do */

    if (n >= e0 * e1 * e2)
        return;
    p += (n / z / y * s0 + n / z % y * s1 + n % z * s2) * elem;
#pragma unroll 1
    for (u32 b = 0; b < elem; b += word) {
        u64 v = value(*h, op, (u64)n * (elem / word) + b / word);

        if (adds != 0)
            v += get(p + b, word);
        put(p + b, word, v);
    }
}

/* One thread. Memory that was not private spoils the result of the task. */
extern "C" __global__ void fuzz_check(const byte *p, u64 *h, u64 salt, u64 op, u64 e0, u64 e1,
                                      u64 e2, u64 s0, u64 s1, u64 s2, u32 elem)
{
    const u32 word = elem > 8 ? 8 : elem;
    u64 n = 0, bad = 0;

#pragma unroll 1
    for (u64 i = 0; i < e0; i++)
#pragma unroll 1
        for (u64 j = 0; j < e1; j++)
#pragma unroll 1
            for (u64 k = 0; k < e2; k++)
#pragma unroll 1
                for (u32 b = 0; b < elem; b += word)
                    bad |= (get(p + (i * s0 + j * s1 + k * s2) * elem + b, word) ^
                            value(salt, op, n++))
                           << (64 - 8 * word);
    if (bad != 0)
        *h ^= 0xbad;
}

/* One thread each: a pattern in scratch memory of the variant. */
extern "C" __global__ void fuzz_pattern(byte *p, u32 bytes, u64 salt)
{
#pragma unroll 1
    for (u32 i = 0; i < bytes; i++)
        p[i] = (byte)(salt + 31 * i);
}

extern "C" __global__ void fuzz_pattern_check(const byte *p, u32 bytes, u64 salt, u64 *h)
{
    u32 bad = 0;

#pragma unroll 1
    for (u32 i = 0; i < bytes; i++)
        bad |= p[i] ^ (byte)(salt + 31 * i);
    if (bad != 0)
        *h ^= 0xbad;
}
