/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of the trace page's data: deflate against an inflate of its own. */
#include "base/faulty_test.h"
#include "base/rng.h"
#include "tests/test.h"
#include "tools/heddle/trace/view/view.h"

/* --- inflate: slow, small, strict ------------------------------------------ */

struct inflate {
    const uint8_t *in;
    size_t nin, at, nout, cap;
    uint8_t *out;
    unsigned bit;
};

struct tree {
    uint16_t count[16], symbol[288];
};

static unsigned bits(struct inflate *z, unsigned n)
{
    unsigned v = 0;

    for (unsigned i = 0; i < n; i++) {
        CHECK(z->at < z->nin);
        v |= (unsigned)(z->in[z->at] >> z->bit & 1) << i;
        if (++z->bit == 8) {
            z->bit = 0;
            z->at++;
        }
    }
    return v;
}

static void tree_init(struct tree *t, const uint8_t *len, unsigned n)
{
    uint16_t at[16];
    int left = 1;

    memset(t, 0, sizeof *t);
    for (unsigned i = 0; i < n; i++)
        t->count[len[i]]++;
    t->count[0] = 0;
    at[1] = 0;
    for (unsigned k = 1; k < 16; k++) {
        left = 2 * left - t->count[k];
        CHECK(left >= 0); /* not over-subscribed */
        if (k < 15)
            at[k + 1] = (uint16_t)(at[k] + t->count[k]);
    }
    for (unsigned i = 0; i < n; i++)
        if (len[i] != 0)
            t->symbol[at[len[i]]++] = (uint16_t)i;
}

static unsigned tree_read(struct inflate *z, const struct tree *t)
{
    unsigned code = 0, first = 0, index = 0;

    for (unsigned k = 1; k < 16; k++) {
        code |= bits(z, 1);
        if (code < first + t->count[k])
            return t->symbol[index + code - first];
        index += t->count[k];
        first = (first + t->count[k]) << 1;
        code <<= 1;
    }
    CHECK(!"a code that does not exist");
    return 0;
}

static void out_byte(struct inflate *z, unsigned v)
{
    CHECK(z->nout < z->cap);
    z->out[z->nout++] = (uint8_t)v;
}

static void inflate_codes(struct inflate *z, const struct tree *lit, const struct tree *dist)
{
    static const uint16_t lb[] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                  31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint8_t le[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    unsigned s, n, d;

    while ((s = tree_read(z, lit)) != 256) {
        if (s < 256) {
            out_byte(z, s);
            continue;
        }
        CHECK(s < 286);
        n = lb[s - 257] + bits(z, le[s - 257]);
        s = tree_read(z, dist);
        CHECK(s < 30);
        d = s < 4 ? s + 1 : ((2 + (s & 1)) << (s / 2 - 1)) + 1 + bits(z, s / 2 - 1);
        CHECK(d <= z->nout && d <= 32768);
        for (; n > 0; n--)
            out_byte(z, z->out[z->nout - d]);
    }
}

static void inflate_stored(struct inflate *z)
{
    unsigned n;

    if (z->bit != 0) {
        z->bit = 0;
        z->at++;
    }
    n = bits(z, 16);
    CHECK_EQ(bits(z, 16), n ^ 0xffff);
    for (; n > 0; n--)
        out_byte(z, bits(z, 8));
}

static void inflate_own(struct inflate *z)
{
    static const uint8_t order[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                      11, 4,  12, 3, 13, 2, 14, 1, 15};
    const unsigned nlit = bits(z, 5) + 257, ndist = bits(z, 5) + 1;
    const unsigned nclen = bits(z, 4) + 4;
    uint8_t len[320] = {0};
    struct tree lit, dist;
    unsigned i = 0, s, run, what;

    for (unsigned k = 0; k < nclen; k++)
        len[order[k]] = (uint8_t)bits(z, 3);
    tree_init(&lit, len, 19);
    while (i < nlit + ndist) {
        s = tree_read(z, &lit);
        run = s < 16 ? 1 : s == 16 ? 3 + bits(z, 2) : s == 17 ? 3 + bits(z, 3) : 11 + bits(z, 7);
        CHECK(s != 16 || i > 0);
        what = s < 16 ? s : s == 16 ? len[i - 1] : 0;
        CHECK(i + run <= nlit + ndist);
        for (; run > 0; run--)
            len[i++] = (uint8_t)what;
    }
    CHECK(len[256] > 0);
    tree_init(&lit, len, nlit);
    tree_init(&dist, len + nlit, ndist);
    inflate_codes(z, &lit, &dist);
}

static void inflate_fixed(struct inflate *z)
{
    uint8_t len[288];
    struct tree lit, dist;

    for (unsigned i = 0; i < 288; i++)
        len[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    tree_init(&lit, len, 288);
    memset(len, 5, 30);
    tree_init(&dist, len, 30);
    inflate_codes(z, &lit, &dist);
}

static void inflate_all(struct inflate *z)
{
    unsigned is_last, kind;

    do {
        is_last = bits(z, 1);
        kind = bits(z, 2);
        CHECK(kind < 3);
        if (kind == 0)
            inflate_stored(z);
        else if (kind == 1)
            inflate_fixed(z);
        else
            inflate_own(z);
    } while (!is_last);
    CHECK_EQ(z->at + (z->bit > 0), z->nin); /* nothing behind it */
}

/* --- deflate -------------------------------------------------------------- */

struct bytes {
    uint8_t *p;
    size_t n, cap;
    size_t limit; /* refuse more than that; 0: take all */
};

static bool bytes_put(void *user, const uint8_t *p, size_t n)
{
    struct bytes *b = user;

    if (b->limit != 0 && b->n + n > b->limit)
        return false;
    CHECK(b->n + n <= b->cap);
    memcpy(b->p + b->n, p, n);
    b->n += n;
    return true;
}

enum { MOST = 700000 };

/* Compresses in pieces and compares; returns the compressed size. */
static size_t round_trip(struct view_deflate *z, struct bytes *b, const uint8_t *in, size_t n,
                         struct heddle_rng *rng)
{
    struct inflate i = {.cap = n, .out = malloc(n + 1)};
    size_t at = 0, k;

    CHECK(i.out != NULL);
    b->n = 0;
    while (at < n) {
        k = 1 + heddle_rng_below(rng, n);
        k = k < n - at ? k : n - at;
        CHECK(view_deflate_put(z, in + at, k));
        at += k;
    }
    CHECK(view_deflate_end(z));
    i.in = b->p;
    i.nin = b->n;
    inflate_all(&i);
    CHECK_EQ(i.nout, n);
    CHECK(n == 0 || memcmp(i.out, in, n) == 0);
    free(i.out);
    return b->n;
}

/* Data of one kind, n bytes. */
static void make_data(uint8_t *p, size_t n, unsigned kind, struct heddle_rng *rng)
{
    for (size_t i = 0; i < n; i++) {
        const uint64_t r = heddle_rng_next(rng);

        switch (kind) {
        case 0: p[i] = 0; break;
        case 1: p[i] = (uint8_t)r; break;
        case 2: p[i] = r % 5 == 0 ? (uint8_t)(r >> 32) : 7; break;
        case 3: p[i] = (uint8_t)__builtin_ctzll(r | 1ull << 40); break;
        case 4: p[i] = (uint8_t)(i * i >> 11); break;
        /* Far repeats, just inside and outside of the window. */
        case 5: p[i] = i < 32768 ? (uint8_t)r : p[i - 32768]; break;
        case 6: p[i] = i < 32769 ? (uint8_t)r : p[i - 32769]; break;
        case 7: p[i] = i < 300 || r % 200 == 0 ? (uint8_t)r : p[i - 300]; break;
        default: p[i] = (uint8_t)("the loom"[i % 8]); break;
        }
    }
}

TEST(deflate_gives_back_what_it_got)
{
    static const size_t size[] = {0,     1,     2,     3,     4,     5,     257,   258,    259,
                                  32767, 32768, 65536, 98303, 98304, 98305, 98308, 131072, 200000};
    struct bytes b = {.cap = 2 * MOST, .p = malloc(2 * MOST)};
    uint8_t *in = malloc(MOST);
    struct view_deflate *z;
    struct heddle_rng rng;

    heddle_rng_seed(&rng, test_seed());
    CHECK(b.p != NULL && in != NULL);
    CHECK_OK(view_deflate_create(NULL, bytes_put, &b, &z));
    for (unsigned kind = 0; kind < 9; kind++) {
        for (size_t i = 0; i < sizeof size / sizeof size[0]; i++) {
            const size_t n = size[i];
            size_t got;

            make_data(in, n, kind, &rng);
            got = round_trip(z, &b, in, n, &rng);
            CHECK(got <= n + n / 1000 + 64);
            if (n >= 65536 && kind == 0)
                CHECK(got < n / 500);
            if (n >= 65536 && kind == 8)
                CHECK(got < n / 200);
            if (n == 200000 && kind == 5)
                CHECK(got < n / 4);
        }
        for (size_t k = 0; k < test_scale(30); k++) {
            const size_t n = heddle_rng_below(&rng, MOST / 8);

            make_data(in, n, kind, &rng);
            round_trip(z, &b, in, n, &rng);
        }
    }
    make_data(in, MOST, 7, &rng);
    round_trip(z, &b, in, MOST, &rng);
    view_deflate_destroy(z);
    free(in);
    free(b.p);
}

/* Frequencies like Fibonacci numbers make the deepest trees: beyond 15. */
TEST(deflate_limits_its_codes)
{
    struct bytes b = {.cap = 2 * MOST, .p = malloc(2 * MOST)};
    uint8_t *in = malloc(MOST);
    struct view_deflate *z;
    struct heddle_rng rng;
    size_t n = 0, f = 1, g = 1, t;

    heddle_rng_seed(&rng, test_seed());
    CHECK(b.p != NULL && in != NULL);
    for (unsigned s = 0; n + f < 98304; s++) {
        memset(in + n, (int)s * 3, f);
        n += f;
        t = f + g;
        f = g;
        g = t;
    }
    for (size_t i = n; i > 1; i--) { /* shuffled: no runs */
        const size_t k = heddle_rng_below(&rng, i);
        const uint8_t v = in[i - 1];

        in[i - 1] = in[k];
        in[k] = v;
    }
    CHECK_OK(view_deflate_create(NULL, bytes_put, &b, &z));
    CHECK(round_trip(z, &b, in, n, &rng) < n / 2);
    view_deflate_destroy(z);
    free(in);
    free(b.p);
}

TEST(deflate_stops_when_the_sink_does)
{
    struct bytes b = {.cap = MOST, .p = malloc(MOST), .limit = 1000};
    uint8_t *in = malloc(MOST);
    struct view_deflate *z;
    struct heddle_rng rng;
    struct faulty f;

    heddle_rng_seed(&rng, test_seed());
    CHECK(b.p != NULL && in != NULL);
    make_data(in, MOST, 1, &rng);
    CHECK_OK(view_deflate_create(NULL, bytes_put, &b, &z));
    CHECK(!view_deflate_put(z, in, MOST));
    CHECK(!view_deflate_end(z));
    b.limit = 0;
    round_trip(z, &b, in, 100000, &rng); /* good for another stream */
    view_deflate_destroy(z);
    view_deflate_destroy(NULL);
    faulty_init(&f, 1);
    CHECK_EQ(view_deflate_create(&f.a, bytes_put, &b, &z), HEDDLE_ENOMEM);
    free(in);
    free(b.p);
}

TEST_MAIN(deflate_gives_back_what_it_got, deflate_limits_its_codes,
          deflate_stops_when_the_sink_does)
