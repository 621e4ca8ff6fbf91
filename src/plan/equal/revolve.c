/* SPDX-License-Identifier: BSD-3-Clause */
/* revolve: closed forms for one level of storage. */
#include "plan/equal/equal.h"

#include "base/alloc.h"

uint64_t heddle_plan_beta(uint64_t s, uint64_t r)
{
    const uint64_t k = s < r ? s : r;
    uint64_t v = 1;

    for (uint64_t i = 1; i <= k; i++) {
        const __uint128_t w = (__uint128_t)v * (s + r - k + i) / i;

        if (w >= UINT64_MAX)
            return UINT64_MAX;
        v = (uint64_t)w;
    }
    return v;
}

/* The r with beta(s, r - 1) < n <= beta(s, r). */
static uint64_t repetitions(uint64_t n, uint64_t s)
{
    uint64_t lo = 0, hi = n;

    while (lo < hi) {
        const uint64_t mid = lo + (hi - lo) / 2;

        if (heddle_plan_beta(s, mid) >= n)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

uint64_t heddle_plan_revolve_extra(uint64_t n, uint64_t s)
{
    const uint64_t r = repetitions(n, s);

    return r == 0 ? 0 : r * n - heddle_plan_beta(s + 1, r - 1);
}

uint64_t heddle_plan_revolve_jump(uint64_t n, uint64_t s)
{
    const uint64_t r = repetitions(n, s);
    const uint64_t left = heddle_plan_beta(s, r - 1);
    const uint64_t right = heddle_plan_beta(s - 1, r - 1);
    uint64_t j = left;

    /* Any j with beta(s,r-2) <= j <= beta(s,r-1) and
     * beta(s-1,r-1) <= n - j <= beta(s-1,r): the largest. */
    if (right < n && j > n - right)
        j = n - right;
    return j < n ? j : n - 1;
}

/* cost[s][i]; only the last row is wanted, and each needs the one before. */
heddle_status heddle_plan_revolve_mixed(uint32_t n, uint32_t s, const struct heddle_allocator *a,
                                        uint64_t *out)
{
    struct heddle_scratch mem = heddle_scratch_make(a);
    uint64_t *less = heddle_scratch_get(&mem, (size_t)n + 1, sizeof(*less));

    if (less == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t c = 1; c <= s; c++) {
        for (uint32_t i = 0; i <= n; i++)
            less[i] = out[i];
        for (uint64_t i = 0; i <= n; i++) {
            out[i] = i;
            if (i <= (uint64_t)c + 1)
                continue;
            out[i] = i * (i + 1) / 2 - 1;
            if (c == 1)
                continue;
            if (1 + less[i - 1] < out[i])
                out[i] = 1 + less[i - 1];
            for (uint64_t j = 2; j < i; j++)
                if (j + out[j] + less[i - j] < out[i])
                    out[i] = j + out[j] + less[i - j];
        }
    }
    heddle_scratch_drop(&mem);
    return HEDDLE_OK;
}
