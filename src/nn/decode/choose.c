/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * choose: from scores to a token.
 *
 * Candidates come from a heap, the highest score first and of equal ones the first token, until
 * there are k of them or their probabilities sum up to p. The number that chooses among them is a
 * hash of seed and count, so a token does not depend on what was drawn for other sequences.
 */
#include <math.h>

#include "base/rng.h"
#include "nn/decode/decode.h"

struct choose {
    const float *score;
    size_t n;
    float highest;
    double temperature;
    uint32_t *list; /* candidates: list[left .. n - 1], the most likely one last */
    size_t left;    /* list[0 .. left - 1] is a heap of the others */
};

/* Is a before b? NaN comes last. */
static bool choose_before(const float *score, uint32_t a, uint32_t b)
{
    if (isnan(score[a]) || isnan(score[b]))
        return !isnan(score[a]) || (isnan(score[b]) && a < b);
    return score[a] > score[b] || (score[a] == score[b] && a < b);
}

static int64_t choose_highest(const float *score, size_t n)
{
    size_t best = 0;

    for (size_t i = 1; i < n; i++)
        if (choose_before(score, (uint32_t)i, (uint32_t)best))
            best = i;
    return n > 0 && score[best] > -INFINITY ? (int64_t)best : -1;
}

/* Not normalised: 1 for the highest score. */
static double choose_weight(const struct choose *c, uint32_t i)
{
    return isnan(c->score[i]) ? 0
                              : exp(((double)c->score[i] - (double)c->highest) / c->temperature);
}

static void choose_sink(struct choose *c, size_t i)
{
    for (;;) {
        const uint32_t t = c->list[i];
        size_t best = i;

        for (size_t k = 2 * i + 1; k <= 2 * i + 2 && k < c->left; k++)
            if (choose_before(c->score, c->list[k], c->list[best]))
                best = k;
        if (best == i)
            return;
        c->list[i] = c->list[best];
        c->list[best] = t;
        i = best;
    }
}

/* Takes the first of the heap; its weight. */
static double choose_take(struct choose *c)
{
    const uint32_t first = c->list[0];

    c->list[0] = c->list[--c->left];
    c->list[c->left] = first;
    choose_sink(c, 0);
    return choose_weight(c, first);
}

/* Makes the candidates: the k highest scores, and of these the first ones that sum up to p. */
static void choose_candidates(struct choose *c, size_t k, double p)
{
    double all = 0, taken = 0;

    c->left = c->n;
    for (size_t i = 0; i < c->n; i++)
        c->list[i] = (uint32_t)i;
    if (k == c->n && p >= 1) {
        c->left = 0; /* all of them, in their own order */
        return;
    }
    for (size_t i = c->n / 2; i-- > 0;)
        choose_sink(c, i);
    for (size_t i = 0; i < c->n && k == c->n; i++)
        all += choose_weight(c, (uint32_t)i);
    if (k == c->n) {
        while (c->left > 0 && taken < p * all)
            taken += choose_take(c);
        return;
    }
    while (c->n - c->left < k)
        all += choose_take(c);
    for (k = c->n; k > c->left && taken < p * all; k--)
        taken += choose_weight(c, c->list[k - 1]);
    c->left = k;
}

/* Uniform in [0, 1): word `count` of the sequence of splitmix64 that the seed begins. */
static double choose_uniform(uint64_t seed, uint64_t count)
{
    uint64_t at = heddle_mix64(seed) + count * UINT64_C(0x9e3779b97f4a7c15);

    return (double)(heddle_splitmix64(&at) >> 11) * 0x1.0p-53;
}

int64_t heddle_nn_choose(const struct heddle_decoder_choice *choice, const float *score, size_t n,
                         uint64_t count, uint32_t *mem)
{
    const int64_t highest = choose_highest(score, n);
    struct choose c = {.score = score, .n = n, .temperature = choice->temperature, .list = mem};
    double sum = 0, at;

    if (choice->temperature == 0 || highest < 0 || isinf(score[highest]))
        return highest;
    c.highest = score[highest];
    choose_candidates(&c, choice->top_k > 0 && choice->top_k < n ? choice->top_k : n,
                      choice->top_p > 0 ? choice->top_p : 1);
    for (size_t k = n; k > c.left; k--)
        sum += choose_weight(&c, mem[k - 1]);
    at = choose_uniform(choice->seed, count) * sum;
    for (size_t k = n; k > c.left; k--) {
        at -= choose_weight(&c, mem[k - 1]);
        if (at < 0)
            return mem[k - 1];
    }
    return highest;
}
