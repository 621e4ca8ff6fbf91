/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cluster_words: what the blocks of a cluster tell each other; see cluster.cu.
 *
 * Words    What a block tells the others for a column goes into their shared memory
 *          and counts itself there (st.async, mbarrier): no block waits for a barrier.
 *          There are two copies by turns. Before a block writes a copy again, it has got
 *          words from all blocks for the column between, and each block sent these
 *          after all of its threads had read the copy.
 */
enum { BLOCKS = 16, THREADS = 512, WARPS = THREADS / 32, MAX_N = 64 };

/* Order of magnitudes as that of integers; a NaN is no pivot: 0. */
__device__ static unsigned long long key_of(double x)
{
    return x == x ? __double_as_longlong(fabs(x)) : 0;
}

__device__ static unsigned key_of(float x)
{
    return x == x ? __float_as_uint(fabsf(x)) : 0;
}

template <typename T> using key_for = decltype(key_of(T()));

/* 1 / x, correct to the last place or the one before; anything for 0. */
__device__ static double reciprocal(double x)
{
    double y, e;

    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    e = fma(-x, y, 1.0);
    y = fma(y, fma(e, e, e), y);
    return fma(y, fma(-x, y, 1.0), y);
}

__device__ static float reciprocal(float x)
{
    return 1.0f / x;
}

/* The largest key of a warp, its least row. */
template <typename K> struct best {
    K key;
    int row;
};

__device__ static best<unsigned> best_of_warp(best<unsigned> b)
{
    const unsigned h = __reduce_max_sync(~0u, b.key);

    return {h, __reduce_min_sync(~0u, b.key == h ? b.row : 0x7fffffff)};
}

__device__ static best<unsigned long long> best_of_warp(best<unsigned long long> b)
{
    const unsigned high = (unsigned)(b.key >> 32), low = (unsigned)b.key;
    const unsigned h = __reduce_max_sync(~0u, high);
    const unsigned l = __reduce_max_sync(~0u, high == h ? low : 0);

    return {(unsigned long long)h << 32 | l,
            __reduce_min_sync(~0u, high == h && low == l ? b.row : 0x7fffffff)};
}

/* The largest words of shared memory. */
template <typename T> struct alignas(16) quad {
    enum { N = 16 / sizeof(T) };
    T v[N];
};

/* What a block says of its best row, or of the row that is on turn. */
template <typename T, int W> struct alignas(16) word {
    T row[W];
    unsigned long long key;
    long long at;
    T inverse; /* of row[0] */
};

template <typename T, int W> struct alignas(16) common {
    word<T, W> said[2][BLOCKS + 1];     /* the last: of the row on turn */
    word<T, W> mine[2];                 /* on its way to the others */
    T u[MAX_N + 8][W + 16 / sizeof(T)]; /* U on the right, a column each */
    T lu[W][W + 1];                     /* the diagonal block, row by row */
    unsigned long long bar[2];          /* mbarriers: all words are here */
    key_for<T> warp_key[2][WARPS];      /* by turns, as words are */
    int warp_row[2][WARPS];
    int piv[W];
    int from[2 * W], to[2 * W]; /* where rows go; from < 0: nowhere */
};

__device__ static unsigned address(const void *p)
{
    return (unsigned)__cvta_generic_to_shared(p);
}

/* The same place in the shared memory of another block of the cluster. */
__device__ static unsigned there(unsigned here, unsigned block)
{
    unsigned r;

    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(here), "r"(block));
    return r;
}

/* A word, by a warp, to all blocks. */
template <typename T, int W>
__device__ static void tell(common<T, W> *s, int which, int slot, int parity)
{
    enum { N = sizeof(word<T, W>) / 32 }; /* pairs of 8 bytes, for half of it */
    const unsigned lane = threadIdx.x % 32, half = lane % 2;
    const ulonglong2 *from = (const ulonglong2 *)&s->mine[which];
    const unsigned to = there(address(&s->said[parity][slot]), lane / 2);
    const unsigned bar = there(address(&s->bar[parity]), lane / 2);

    static_assert(sizeof(word<T, W>) % 16 == 0, "words are sent by 16 bytes");
#pragma unroll
    for (int k = 0; k <= N; k++) {
        const int i = half + 2 * k;

        if (i < (int)(sizeof(word<T, W>) / 16)) {
            const ulonglong2 v = from[i];

            asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::"
                         "bytes.v2.b64 [%0], {%1, %2}, [%3];" ::"r"(to + 16 * i),
                         "l"(v.x), "l"(v.y), "r"(bar)
                         : "memory");
        }
    }
}

/* All words of a column will be here: one thread says how many bytes, all wait. */
template <typename T, int W> __device__ static void expect(common<T, W> *s, int parity)
{
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(&s->bar[parity])),
        "r"((unsigned)((BLOCKS + 1) * sizeof(word<T, W>)))
        : "memory");
}

template <typename T, int W> __device__ static void await(common<T, W> *s, int parity, int phase)
{
    unsigned done;

    do
        asm volatile("{ .reg .pred p;\n"
                     "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, "
                     "[%1], %2;\n"
                     "selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(address(&s->bar[parity])), "r"((unsigned)phase)
                     : "memory");
    while (!done);
}
