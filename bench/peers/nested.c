/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nested: data, leaves, checks, options and clock of the nested programs.
 *
 * Measured   wall time of ops->run(), after one run that warms up. The data are put
 *            back before each run, and the result is checked after each: neither is
 *            timed.
 */
#include "nested.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SPARSELU_ROWS 8
#define SPARSELU_AREA (SPARSELU_ROWS * SPARSELU_ROWS)

static const struct {
    const char *name;
    unsigned n;
} programs[NESTED_NPROGRAMS] = {
    [NESTED_FIB] = {"fib", 28},
    [NESTED_QUEENS] = {"nqueens", 12},
    [NESTED_UTS] = {"uts", 2000},
    [NESTED_SORT] = {"sort", 1 << 20},
    [NESTED_STRASSEN] = {"strassen", 512},
    [NESTED_SPARSELU] = {"sparselu", 48},
};

/* --- leaves ----------------------------------------------------------------------- */

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t nested_uts_child(uint64_t node, unsigned i)
{
    uint64_t x = node + (i + 1) * UINT64_C(0x9e3779b97f4a7c15);

    for (unsigned k = 0; k < 8; k++)
        x = mix(x + k);
    return x | 1; /* the root alone is 0 */
}

/* Binomial: n children of the root; of another node eight, or most often none. A node
 * has one child less than 1 on average, so that the tree ends. */
unsigned nested_uts_children(const struct nested *s, uint64_t node)
{
    if (node == NESTED_UTS_ROOT)
        return s->n;
    return (mix(node) >> 11) * 0x1p-53 < 0.1245 ? 8 : 0;
}

void nested_sort_leaf(uint32_t *key, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        const uint32_t k = key[i];
        size_t j = i;

        for (; j > 0 && key[j - 1] > k; j--)
            key[j] = key[j - 1];
        key[j] = k;
    }
}

void nested_merge_leaf(const uint32_t *a, size_t na, const uint32_t *b, size_t nb, uint32_t *out)
{
    while (na > 0 && nb > 0) {
        if (*b < *a) {
            *out++ = *b++;
            nb--;
        } else {
            *out++ = *a++;
            na--;
        }
    }
    memcpy(out, a, na * sizeof(*a));
    memcpy(out + na, b, nb * sizeof(*b));
}

size_t nested_rank(const uint32_t *keys, size_t n, uint32_t key)
{
    size_t low = 0;

    while (n > 0) {
        const size_t half = n / 2;

        if (keys[low + half] < key) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return low;
}

void nested_multiply_leaf(const double *a, size_t lda, const double *b, size_t ldb, double *c,
                          size_t ldc)
{
    const size_t n = NESTED_STRASSEN_LEAF;

    for (size_t i = 0; i < n; i++) {
        double row[NESTED_STRASSEN_LEAF] = {0};

        for (size_t k = 0; k < n; k++)
            for (size_t j = 0; j < n; j++)
                row[j] += a[i * lda + k] * b[k * ldb + j];
        memcpy(&c[i * ldc], row, sizeof(row));
    }
}

/* Strassen's seven products: which quarters (11, 12, 21, 22: 0 to 3) are added, with
 * which sign, or taken as they are (sign 0). */
static const struct {
    int a, a2, asign, b, b2, bsign;
} products[7] = {
    {0, 3, 1, 0, 3, 1}, {2, 3, 1, 0, 0, 0},  {0, 0, 0, 1, 3, -1}, {3, 3, 0, 2, 0, -1},
    {0, 1, 1, 3, 3, 0}, {2, 0, -1, 0, 1, 1}, {1, 3, -1, 2, 3, 1},
};

static const double *factor(size_t n, const double *m, int q, int q2, int sign, size_t *ld,
                            double *sum)
{
    const double *one = m + (size_t)(q / 2) * n * *ld + (size_t)(q % 2) * n;
    const double *two = m + (size_t)(q2 / 2) * n * *ld + (size_t)(q2 % 2) * n;

    if (sign == 0)
        return one;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            sum[i * n + j] = one[i * *ld + j] + sign * two[i * *ld + j];
    *ld = n;
    return sum;
}

struct nested_factors nested_factors_of(unsigned i, size_t n, const double *a, size_t lda,
                                        const double *b, size_t ldb, double *sums)
{
    struct nested_factors f = {.lda = lda, .ldb = ldb};

    f.a = factor(n, a, products[i].a, products[i].a2, products[i].asign, &f.lda, sums);
    f.b = factor(n, b, products[i].b, products[i].b2, products[i].bsign, &f.ldb, sums + n * n);
    return f;
}

void nested_combine(size_t n, const double *m, double *c, size_t ldc)
{
    const size_t area = n * n;

    for (size_t i = 0; i < n; i++) {
        const double *p = m + i * n;
        double *top = c + i * ldc, *low = c + (n + i) * ldc;

        for (size_t j = 0; j < n; j++) {
            top[j] = p[j] + p[3 * area + j] - p[4 * area + j] + p[6 * area + j];
            top[n + j] = p[2 * area + j] + p[4 * area + j];
            low[j] = p[area + j] + p[3 * area + j];
            low[n + j] = p[j] - p[area + j] + p[2 * area + j] + p[5 * area + j];
        }
    }
}

void nested_lu0(double *d)
{
    const int n = SPARSELU_ROWS;

    for (int k = 0; k < n; k++)
        for (int i = k + 1; i < n; i++) {
            d[i * n + k] /= d[k * n + k];
            for (int j = k + 1; j < n; j++)
                d[i * n + j] -= d[i * n + k] * d[k * n + j];
        }
}

void nested_fwd(const double *d, double *row)
{
    const int n = SPARSELU_ROWS;

    for (int k = 0; k < n; k++)
        for (int i = k + 1; i < n; i++)
            for (int j = 0; j < n; j++)
                row[i * n + j] -= d[i * n + k] * row[k * n + j];
}

void nested_bdiv(const double *d, double *column)
{
    const int n = SPARSELU_ROWS;

    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++) {
            column[i * n + k] /= d[k * n + k];
            for (int j = k + 1; j < n; j++)
                column[i * n + j] -= column[i * n + k] * d[k * n + j];
        }
}

void nested_bmod(const double *row, const double *column, double *inner)
{
    const int n = SPARSELU_ROWS;

    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            for (int j = 0; j < n; j++)
                inner[i * n + j] -= column[i * n + k] * row[k * n + j];
}

/* --- data ------------------------------------------------------------------------- */

static double *blocks_of(const struct nested *s)
{
    return s->a;
}

/* A band, a few far blocks, and what the elimination fills in. */
static void sparselu_pattern(const struct nested *s, bool *is)
{
    const size_t n = s->n;

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            is[i * n + j] =
                i < j + 3 ? (j < i + 3 || mix(i * n + j) % 8 == 0) : mix(j * n + i) % 8 == 0;
    for (size_t k = 0; k < n; k++)
        for (size_t i = k + 1; i < n; i++)
            for (size_t j = k + 1; j < n; j++)
                is[i * n + j] |= is[i * n + k] && is[k * n + j];
}

static int sparselu_init(struct nested *s)
{
    const size_t n2 = (size_t)s->n * s->n;
    bool *is = calloc(n2, sizeof(*is));

    s->block = calloc(n2, sizeof(*s->block));
    s->a = calloc(n2 * SPARSELU_AREA, sizeof(*s->a));
    s->b = calloc(n2 * SPARSELU_AREA, sizeof(*s->b)); /* the result */
    if (is == NULL || s->block == NULL || s->a == NULL || s->b == NULL) {
        free(is);
        return 1;
    }
    sparselu_pattern(s, is);
    for (size_t i = 0; i < n2; i++)
        s->block[i] = is[i] ? blocks_of(s) + i * SPARSELU_AREA : NULL;
    free(is);
    return 0;
}

static int data_init(struct nested *s)
{
    const size_t area = (size_t)s->n * s->n;

    switch (s->program) {
    case NESTED_SORT:
        s->key = calloc(s->n, sizeof(*s->key));
        s->tmp = calloc(s->n, sizeof(*s->tmp));
        return s->key == NULL || s->tmp == NULL;
    case NESTED_STRASSEN:
        s->a = calloc(area, sizeof(double));
        s->b = calloc(area, sizeof(double));
        s->c = calloc(area, sizeof(double));
        return s->a == NULL || s->b == NULL || s->c == NULL;
    case NESTED_SPARSELU: return sparselu_init(s);
    default: return 0;
    }
}

static double draw(uint64_t i)
{
    return (mix(i + 1) >> 11) * 0x1p-53 - 0.5;
}

static void data_reset(struct nested *s)
{
    const size_t area = (size_t)s->n * s->n;

    s->sum = 0;
    memset(s->count, 0, sizeof(s->count));
    for (size_t i = 0; s->key != NULL && i < s->n; i++)
        s->key[i] = (uint32_t)mix(i + 1);
    for (size_t i = 0; s->program == NESTED_STRASSEN && i < area; i++) {
        s->a[i] = draw(i);
        s->b[i] = draw(i + area);
        s->c[i] = 0;
    }
    for (size_t i = 0; s->block != NULL && i < area; i++)
        for (size_t k = 0; k < SPARSELU_AREA; k++) {
            const bool is_diagonal = i / s->n == i % s->n && k / SPARSELU_ROWS == k % SPARSELU_ROWS;

            s->a[i * SPARSELU_AREA + k] = draw(i * SPARSELU_AREA + k) + (is_diagonal ? 100 : 0);
        }
}

static void data_free(struct nested *s)
{
    free(s->key);
    free(s->tmp);
    free(s->a);
    free(s->b);
    free(s->c);
    free(s->block);
}

/* --- what comes out without tasks --------------------------------------------------- */

static uint64_t fib(unsigned n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static uint64_t queens(struct nested_board b)
{
    uint64_t sum = 0;

    if (nested_is_full(b))
        return 1;
    for (unsigned f = nested_free(b); f != 0; f &= f - 1)
        sum += queens(nested_place(b, f & -f));
    return sum;
}

static uint64_t uts(const struct nested *s, uint64_t node)
{
    const unsigned n = nested_uts_children(s, node);
    uint64_t sum = 1;

    for (unsigned i = 0; i < n; i++)
        sum += uts(s, nested_uts_child(node, i));
    return sum;
}

static void sparselu(struct nested *s)
{
    const size_t n = s->n;
    double **b = s->block;

    for (size_t k = 0; k < n; k++) {
        nested_lu0(b[k * n + k]);
        for (size_t j = k + 1; j < n; j++) {
            if (b[k * n + j] != NULL)
                nested_fwd(b[k * n + k], b[k * n + j]);
            if (b[j * n + k] != NULL)
                nested_bdiv(b[k * n + k], b[j * n + k]);
        }
        for (size_t i = k + 1; i < n; i++)
            for (size_t j = k + 1; j < n; j++)
                if (b[i * n + k] != NULL && b[k * n + j] != NULL)
                    nested_bmod(b[k * n + j], b[i * n + k], b[i * n + j]);
    }
}

/* The sum that is expected; for sparselu, s->b is. */
static uint64_t expect(struct nested *s)
{
    data_reset(s);
    switch (s->program) {
    case NESTED_FIB: return fib(s->n);
    case NESTED_QUEENS: return queens((struct nested_board){.n = (uint16_t)s->n});
    case NESTED_UTS: return uts(s, NESTED_UTS_ROOT);
    case NESTED_SPARSELU:
        sparselu(s);
        memcpy(s->b, s->a, (size_t)s->n * s->n * SPARSELU_AREA * sizeof(double));
        return 0;
    default: return 0;
    }
}

static bool is_sorted(const struct nested *s)
{
    uint64_t got = 0, want = 0;

    for (size_t i = 0; i < s->n; i++) {
        if (i > 0 && s->key[i - 1] > s->key[i])
            return false;
        got += mix(s->key[i]);
        want += mix((uint32_t)mix(i + 1));
    }
    return got == want;
}

/* c v = a (b v) for a drawn v (Freivalds). */
static bool is_product(const struct nested *s)
{
    const size_t n = s->n;
    bool ok = true;

    for (size_t i = 0; i < n && ok; i++) {
        double got = 0, want = 0;

        for (size_t j = 0; j < n; j++)
            got += s->c[i * n + j] * draw(j);
        for (size_t k = 0; k < n && i % 16 == 5; k++) {
            double bv = 0;

            for (size_t j = 0; j < n; j++)
                bv += s->b[k * n + j] * draw(j);
            want += s->a[i * n + k] * bv;
        }
        ok = i % 16 != 5 || fabs(got - want) < 1e-9 * (double)n;
    }
    return ok;
}

static bool is_right(const struct nested *s, uint64_t want)
{
    uint64_t sum = s->sum;

    switch (s->program) {
    case NESTED_SORT: return is_sorted(s);
    case NESTED_STRASSEN: return is_product(s);
    case NESTED_SPARSELU:
        return memcmp(s->a, s->b, (size_t)s->n * s->n * SPARSELU_AREA * sizeof(double)) == 0;
    default:
        for (unsigned i = 0; i < NESTED_WORKERS; i++)
            sum += s->count[i].n;
        return sum == want;
    }
}

/* --- the frame -------------------------------------------------------------------- */

static int usage(const char *name, const char *wrong)
{
    fprintf(stderr,
            "%s: %s\nusage: %s --program fib|nqueens|uts|sort|strassen|sparselu\n"
            "    [--no-wait] [--n N] [--workers W] [--reps R]\n",
            name, wrong, name);
    return 2;
}

static bool take_number(const char *text, unsigned max, unsigned *out)
{
    char *end;
    const unsigned long v = strtoul(text, &end, 10);

    if (*text < '1' || *text > '9' || *end != '\0' || v > max)
        return false;
    *out = (unsigned)v;
    return true;
}

static bool take_program(const char *text, struct nested *s)
{
    for (unsigned p = 0; p < NESTED_NPROGRAMS; p++)
        if (strcmp(text, programs[p].name) == 0) {
            s->program = (enum nested_program)p;
            return true;
        }
    return false;
}

static bool is_power_of_two(unsigned n)
{
    return (n & (n - 1)) == 0;
}

/* What is wrong with the options, or NULL. */
static const char *parse(struct nested *s, int argc, char **argv)
{
    bool has_program = false;

    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";

        if (strcmp(argv[i], "--no-wait") == 0) {
            s->waits = false;
            continue;
        }
        if (strcmp(argv[i], "--program") == 0)
            has_program = take_program(value, s);
        else if (!(strcmp(argv[i], "--n") == 0 ? take_number(value, 1 << 26, &s->n)
                   : strcmp(argv[i], "--workers") == 0
                       ? take_number(value, NESTED_WORKERS, &s->workers)
                       : strcmp(argv[i], "--reps") == 0 && take_number(value, 10000, &s->reps)))
            return "unknown option, or no number for it";
        i++;
    }
    if (!has_program)
        return "no known --program";
    if (s->n == 0)
        s->n = programs[s->program].n;
    if (!s->waits && s->program > NESTED_UTS)
        return "only fib, nqueens and uts run without waits";
    if (s->program == NESTED_QUEENS && s->n > 15)
        return "at most 15 queens";
    if (s->program == NESTED_FIB && s->n > 45)
        return "at most fib of 45";
    if (s->program == NESTED_SPARSELU && s->n > 1000)
        return "at most 1000 blocks a side";
    if (s->program == NESTED_STRASSEN &&
        (!is_power_of_two(s->n) || s->n < NESTED_STRASSEN_LEAF || s->n > 8192))
        return "the order of the matrices is a power of two, 16 to 8192";
    return NULL;
}

void *nested_room(size_t bytes)
{
    void *p = malloc(bytes);

    if (p == NULL) {
        fprintf(stderr, "no memory\n");
        exit(1);
    }
    return p;
}

static uint64_t clock_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int measure(struct nested *s, const struct nested_ops *ops)
{
    const uint64_t want = expect(s);

    for (unsigned r = 0; r <= s->reps; r++) {
        uint64_t ns;

        data_reset(s);
        ns = clock_ns();
        if (ops->run(s) != 0)
            return 1;
        ns = clock_ns() - ns;
        if (!is_right(s, want)) {
            fprintf(stderr, "%s: %s: the result is wrong\n", ops->name, programs[s->program].name);
            return 1;
        }
        if (r > 0)
            printf("{\"program\": \"%s\", \"side\": \"%s\", \"waits\": %s, \"n\": %u, "
                   "\"workers\": %u, \"ms\": %.4f}\n",
                   programs[s->program].name, ops->name, s->waits ? "true" : "false", s->n,
                   s->workers, (double)ns / 1e6);
    }
    return 0;
}

int nested_main(int argc, char **argv, const struct nested_ops *ops)
{
    static struct nested s = {.waits = true, .workers = 2, .reps = 3};
    const char *wrong = parse(&s, argc, argv);
    int rc = 1;

    if (wrong != NULL)
        return usage(ops->name, wrong);
    if (data_init(&s) != 0)
        fprintf(stderr, "%s: no memory\n", ops->name);
    else
        rc = ops->open(&s);
    if (rc == 0) {
        rc = measure(&s, ops);
        ops->close(&s);
    }
    data_free(&s);
    return rc;
}
