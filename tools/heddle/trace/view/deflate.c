/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace/view/deflate: raw deflate (RFC 1951), fast.
 *
 * Purpose    columns of a log are small numbers in byte planes: long runs, and
 *            bytes of few values. Runs need matches, the rest needs Huffman
 *            codes; searching long for matches is not worth it.
 * Method     input is cut into blocks. A block becomes tokens (hash chains of a
 *            few steps, greedy; a stretch without matches is walked faster and
 *            faster), then bits, by the shortest of three codings: stored,
 *            fixed codes, own codes of at most 15 bits.
 * Invariants (1) buf[0..hist) is what came before the block, at most a window
 *            (2) head and prev hold places in buf plus 1; 0: none. A place is
 *                the chain of its hash only if it is not older than a window
 *            (3) a block has at most BLOCK tokens
 * Cost       about 1 MiB of memory, whatever the length.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "trace/view/huffman.h"
#include "trace/view/view.h"

enum {
    WINDOW = 32768,
    BLOCK = 98304,
    HASH_BITS = 15,
    CHAIN = 6,
    MIN_MATCH = 4, /* shorter ones seldom pay with planes */
    MAX_MATCH = 258,
    NICE = 64, /* long enough: stop the search */
    NCLEN = 19,
    END = 256,
    OUT = 65536
};

struct view_deflate {
    const struct heddle_allocator *a;
    view_sink *sink;
    void *user;
    bool is_ok;

    uint64_t acc; /* bits that wait, low first */
    unsigned nacc;
    size_t nout;

    size_t hist, len; /* the block is buf[hist..hist+len) */
    size_t ntokens;
    uint32_t lit_freq[VIEW_NLIT], dist_freq[VIEW_NDIST];
    struct view_code lit, dist;
    uint8_t len_sym[256];  /* of length - 3, from 257 */
    uint8_t dist_sym[512]; /* as in RFC 1951: see dist_symbol() */

    uint32_t head[1 << HASH_BITS];
    uint32_t prev[WINDOW];
    uint32_t token[BLOCK];
    uint8_t buf[WINDOW + BLOCK + 8];
    uint8_t out[OUT + 16];
};

/* --- bits ----------------------------------------------------------------- */

static const uint8_t len_extra[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                      2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
static const uint16_t len_base[29] = {3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                      15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                      67, 83, 99, 115, 131, 163, 195, 227, 258};
static const uint8_t dist_extra[30] = {0, 0, 0, 0, 1, 1, 2, 2,  3,  3,  4,  4,  5,  5,  6,
                                       6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13};
static const uint16_t dist_base[30] = {
    1,   2,   3,   4,   5,   7,    9,    13,   17,   25,   33,   49,   65,    97,    129,
    193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};

static void out_flush(struct view_deflate *z)
{
    if (z->is_ok && z->nout > 0)
        z->is_ok = z->sink(z->user, z->out, z->nout);
    z->nout = 0;
}

/* n <= 32 bits; at most 31 wait afterwards. */
static inline void put_bits(struct view_deflate *z, uint32_t v, unsigned n)
{
    z->acc |= (uint64_t)v << z->nacc;
    z->nacc += n;
    if (z->nacc >= 32) {
        const uint32_t w = (uint32_t)z->acc;

        z->out[z->nout] = (uint8_t)w;
        z->out[z->nout + 1] = (uint8_t)(w >> 8);
        z->out[z->nout + 2] = (uint8_t)(w >> 16);
        z->out[z->nout + 3] = (uint8_t)(w >> 24);
        z->nout += 4;
        z->acc >>= 32;
        z->nacc -= 32;
        if (z->nout >= OUT)
            out_flush(z);
    }
}

static void put_align(struct view_deflate *z)
{
    while (z->nacc > 0) {
        z->out[z->nout++] = (uint8_t)z->acc;
        z->acc >>= 8;
        z->nacc = z->nacc > 8 ? z->nacc - 8 : 0;
    }
    out_flush(z);
}

/* --- matches -------------------------------------------------------------- */

static inline uint32_t load32(const uint8_t *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint32_t hash4(const uint8_t *p)
{
    return load32(p) * 2654435761u >> (32 - HASH_BITS);
}

static inline unsigned dist_symbol(const struct view_deflate *z, unsigned dist)
{
    return dist <= 256 ? z->dist_sym[dist - 1] : z->dist_sym[256 + ((dist - 1) >> 7)];
}

static inline unsigned match_len(const uint8_t *p, const uint8_t *q, unsigned max)
{
    unsigned n = 0;

    while (n + 8 <= max) {
        uint64_t a, b;

        memcpy(&a, p + n, 8);
        memcpy(&b, q + n, 8);
        if (a != b)
            return n + (unsigned)__builtin_ctzll(a ^ b) / 8;
        n += 8;
    }
    while (n < max && p[n] == q[n])
        n++;
    return n;
}

static inline void insert(struct view_deflate *z, size_t at)
{
    uint32_t *h = &z->head[hash4(z->buf + at)];

    z->prev[at % WINDOW] = *h;
    *h = (uint32_t)at + 1;
}

/* The longest match of what is at `at`; 0: none. */
static inline unsigned find_match(const struct view_deflate *z, size_t at, unsigned max,
                                  unsigned *dist_out)
{
    const uint8_t *p = z->buf + at;
    uint32_t c = z->head[hash4(p)];
    unsigned best = MIN_MATCH - 1;

    for (unsigned k = 0; k < CHAIN && c != 0; k++) {
        const size_t from = c - 1;
        unsigned n;

        if (from >= at || at - from > WINDOW)
            break;
        if (load32(z->buf + from) == load32(p) && z->buf[from + best] == p[best]) {
            n = match_len(p, z->buf + from, max);
            if (n > best) {
                best = n;
                *dist_out = (unsigned)(at - from);
                if (n >= NICE || n == max)
                    break;
            }
        }
        if (z->prev[from % WINDOW] > from)
            break; /* the place was used again */
        c = z->prev[from % WINDOW];
    }
    return best >= MIN_MATCH ? best : 0;
}

static inline void put_match(struct view_deflate *z, unsigned n, unsigned dist)
{
    z->token[z->ntokens++] = UINT32_C(1) << 31 | (uint32_t)(n - 3) << 15 | (dist - 1);
    z->lit_freq[257 + z->len_sym[n - 3]]++;
    z->dist_freq[dist_symbol(z, dist)]++;
}

/* Of a long match its ends: places inside of a run are alike, and the nearest
 * one, which costs least, is the last. */
static inline void insert_match(struct view_deflate *z, size_t at, unsigned n, size_t end)
{
    for (unsigned i = 1; i < n; i++) {
        if (i == 8 && n > 16)
            i = n - 8;
        if (at + i + 4 <= end)
            insert(z, at + i);
    }
}

/* The block as tokens. */
static void tokenize(struct view_deflate *z)
{
    const size_t end = z->hist + z->len;
    size_t at = z->hist, miss = 0;

    z->ntokens = 0;
    memset(z->lit_freq, 0, sizeof z->lit_freq);
    memset(z->dist_freq, 0, sizeof z->dist_freq);
    while (at < end) {
        const size_t left = end - at;
        const unsigned max = left < MAX_MATCH ? (unsigned)left : MAX_MATCH;
        unsigned dist = 0, n = 0;
        size_t step;

        if (max >= MIN_MATCH) {
            n = find_match(z, at, max, &dist);
            insert(z, at);
        }
        if (n > 0) {
            put_match(z, n, dist);
            insert_match(z, at, n, end);
            at += n;
            miss = 0;
            continue;
        }
        step = 1 + (miss++ >> 6);
        step = step < left ? step : left;
        for (size_t i = 0; i < step; i++) {
            z->token[z->ntokens++] = z->buf[at];
            z->lit_freq[z->buf[at++]]++;
        }
    }
    z->lit_freq[END]++;
}

/* --- blocks --------------------------------------------------------------- */

static const uint8_t clen_order[NCLEN] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                          11, 4,  12, 3, 13, 2, 14, 1, 15};

/* The lengths of both codes, with repeats: symbol | extra << 8. */
static unsigned code_lengths(const struct view_deflate *z, unsigned nlit, unsigned ndist,
                             uint16_t *seq, uint32_t *freq)
{
    uint8_t all[VIEW_NLIT + VIEW_NDIST];
    const unsigned n = nlit + ndist;
    unsigned m = 0;

    memcpy(all, z->lit.len, nlit);
    memcpy(all + nlit, z->dist.len, ndist);
    for (unsigned i = 0, run; i < n; i += run) {
        unsigned sym = all[i], extra = 0;

        for (run = 1; i + run < n && all[i + run] == all[i]; run++)
            ;
        if (sym == 0 && run >= 3) {
            run = run > 138 ? 138 : run;
            extra = run < 11 ? run - 3 : run - 11;
            sym = run < 11 ? 17 : 18;
        } else if (i > 0 && all[i - 1] == all[i] && run >= 3) {
            run = run > 6 ? 6 : run;
            extra = run - 3;
            sym = 16;
        } else {
            run = 1;
        }
        seq[m++] = (uint16_t)(sym | extra << 8);
        freq[sym]++;
    }
    return m;
}

static uint64_t code_cost(const struct view_code *c, const uint32_t *freq, unsigned n)
{
    uint64_t bits = 0;

    for (unsigned i = 0; i < n; i++)
        bits += (uint64_t)freq[i] * c->len[i];
    return bits;
}

static uint64_t extra_cost(const struct view_deflate *z)
{
    uint64_t bits = 0;

    for (unsigned i = 0; i < 29; i++)
        bits += (uint64_t)z->lit_freq[257 + i] * len_extra[i];
    for (unsigned i = 0; i < VIEW_NDIST; i++)
        bits += (uint64_t)z->dist_freq[i] * dist_extra[i];
    return bits;
}

static void put_tokens(struct view_deflate *z)
{
    for (size_t i = 0; i < z->ntokens && z->is_ok; i++) {
        const uint32_t t = z->token[i];
        unsigned n, d, s;

        if (t >> 31 == 0) {
            put_bits(z, z->lit.bits[t], z->lit.len[t]);
            continue;
        }
        n = (t >> 15 & 255) + 3;
        d = (t & 32767) + 1;
        s = z->len_sym[n - 3];
        put_bits(z, z->lit.bits[257 + s], z->lit.len[257 + s]);
        put_bits(z, n - len_base[s], len_extra[s]);
        s = dist_symbol(z, d);
        put_bits(z, z->dist.bits[s], z->dist.len[s]);
        put_bits(z, d - dist_base[s], dist_extra[s]);
    }
    put_bits(z, z->lit.bits[END], z->lit.len[END]);
}

static void put_stored(struct view_deflate *z)
{
    for (size_t at = 0; at < z->len && z->is_ok;) {
        const size_t left = z->len - at;
        const uint32_t n = left < 65535 ? (uint32_t)left : 65535;

        put_bits(z, 0, 3);
        put_align(z);
        put_bits(z, n, 16);
        put_bits(z, ~n & 0xffff, 16);
        put_align(z);
        if (z->is_ok)
            z->is_ok = z->sink(z->user, z->buf + z->hist + at, n);
        at += n;
    }
}

static unsigned used_symbols(const struct view_code *c, unsigned n, unsigned least)
{
    while (n > least && c->len[n - 1] == 0)
        n--;
    return n;
}

/* The block that tokenize() made, by the shortest coding. */
static void put_block(struct view_deflate *z)
{
    uint16_t seq[VIEW_NLIT + VIEW_NDIST];
    uint32_t freq[VIEW_NLIT] = {0};
    struct view_code clen, flit, fdist;
    const uint64_t extra = extra_cost(z);
    uint64_t own, fixed;
    unsigned nlit, ndist, nseq, nclen = NCLEN;

    view_code_build(&z->lit, z->lit_freq, VIEW_NLIT, VIEW_MAX_BITS);
    view_code_build(&z->dist, z->dist_freq, VIEW_NDIST, VIEW_MAX_BITS);
    view_code_fixed(&flit, &fdist);
    nlit = used_symbols(&z->lit, VIEW_NLIT, 257);
    ndist = used_symbols(&z->dist, VIEW_NDIST, 1);
    nseq = code_lengths(z, nlit, ndist, seq, freq);
    view_code_build(&clen, freq, NCLEN, 7);
    while (nclen > 4 && clen.len[clen_order[nclen - 1]] == 0)
        nclen--;
    own = 17 + 3 * (uint64_t)nclen + code_cost(&clen, freq, NCLEN) + 2 * (uint64_t)freq[16] +
          3 * (uint64_t)freq[17] + 7 * (uint64_t)freq[18] +
          code_cost(&z->lit, z->lit_freq, VIEW_NLIT) +
          code_cost(&z->dist, z->dist_freq, VIEW_NDIST) + extra;
    fixed = 3 + code_cost(&flit, z->lit_freq, VIEW_NLIT) +
            code_cost(&fdist, z->dist_freq, VIEW_NDIST) + extra;
    if (own > 8 * (uint64_t)z->len + 64 && fixed > 8 * (uint64_t)z->len + 64) {
        put_stored(z);
        return;
    }
    if (fixed <= own) {
        z->lit = flit;
        z->dist = fdist;
        put_bits(z, 2, 3);
        put_tokens(z);
        return;
    }
    put_bits(z, 4, 3);
    put_bits(z, nlit - 257, 5);
    put_bits(z, ndist - 1, 5);
    put_bits(z, nclen - 4, 4);
    for (unsigned i = 0; i < nclen; i++)
        put_bits(z, clen.len[clen_order[i]], 3);
    for (unsigned i = 0; i < nseq; i++) {
        const unsigned s = seq[i] & 255;

        put_bits(z, clen.bits[s], clen.len[s]);
        if (s >= 16)
            put_bits(z, seq[i] >> 8, s == 16 ? 2 : s == 17 ? 3 : 7);
    }
    put_tokens(z);
}

/* Forgets all but the last window, and moves it to the front. */
static void slide(struct view_deflate *z)
{
    const size_t end = z->hist + z->len;
    const size_t keep = end < WINDOW ? end : WINDOW;
    /* A multiple of WINDOW, so that places in prev stay what they are. */
    const size_t by = (end - keep) / WINDOW * WINDOW;

    if (by > 0) {
        memmove(z->buf, z->buf + by, end - by);
        for (size_t i = 0; i < (size_t)1 << HASH_BITS; i++)
            z->head[i] = z->head[i] > by ? z->head[i] - (uint32_t)by : 0;
        for (size_t i = 0; i < WINDOW; i++)
            z->prev[i] = z->prev[i] > by ? z->prev[i] - (uint32_t)by : 0;
    }
    z->hist = end - by;
    z->len = 0;
}

static void block(struct view_deflate *z)
{
    if (z->len == 0)
        return;
    tokenize(z);
    put_block(z);
    slide(z);
}

/* --- the face ------------------------------------------------------------- */

static void restart(struct view_deflate *z)
{
    memset(z->head, 0, sizeof z->head);
    memset(z->prev, 0, sizeof z->prev);
    z->acc = 0;
    z->nacc = 0;
    z->nout = z->hist = z->len = 0;
    z->is_ok = true;
}

heddle_status view_deflate_create(const struct heddle_allocator *a, view_sink *sink, void *user,
                                  struct view_deflate **out)
{
    struct view_deflate *z = heddle_zalloc(a, 1, sizeof *z);

    if (z == NULL)
        return HEDDLE_ENOMEM;
    z->a = a;
    z->sink = sink;
    z->user = user;
    for (unsigned s = 0; s < 29; s++)
        for (unsigned n = len_base[s]; n < 259 && n < len_base[s] + (1u << len_extra[s]); n++)
            z->len_sym[n - 3] = (uint8_t)s;
    for (unsigned s = 0; s < VIEW_NDIST; s++)
        for (unsigned d = 0; d < 1u << dist_extra[s]; d++) {
            const unsigned v = dist_base[s] + d - 1;

            z->dist_sym[v < 256 ? v : 256 + (v >> 7)] = (uint8_t)s;
        }
    restart(z);
    *out = z;
    return HEDDLE_OK;
}

void view_deflate_destroy(struct view_deflate *z)
{
    if (z != NULL)
        heddle_free(z->a, z, sizeof *z);
}

bool view_deflate_put(struct view_deflate *z, const uint8_t *p, size_t n)
{
    while (n > 0 && z->is_ok) {
        const size_t room = WINDOW + BLOCK - z->hist - z->len;
        const size_t left = BLOCK - z->len;
        size_t k = room < left ? room : left;

        k = k < n ? k : n;
        memcpy(z->buf + z->hist + z->len, p, k);
        z->len += k;
        p += k;
        n -= k;
        if (z->len == BLOCK || z->hist + z->len == WINDOW + BLOCK)
            block(z);
    }
    return z->is_ok;
}

bool view_deflate_end(struct view_deflate *z)
{
    bool is_ok;

    block(z);
    put_bits(z, 3, 3); /* the last block: fixed codes, empty */
    put_bits(z, 0, 7);
    put_align(z);
    is_ok = z->is_ok;
    restart(z);
    return is_ok;
}
