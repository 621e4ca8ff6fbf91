/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shadow: the access checker's copy of an operand, and what was written to it.
 *
 * Structure  a shadow has the strides and the alignment of its original; random
 *            bytes lie before, behind and between the elements. Its image has the
 *            same bytes as they were lent. check.c says what is concluded.
 * Threads    the worker that runs the body.
 */
#include <string.h>

#include "base/rng.h"
#include "core/shadow.h"
#include "data/data.h"

/* --- the elements of a strided array ------------------------------------------ */

/* Runs of bytes without gaps, in the order of their addresses. */
struct runs {
    unsigned ndim;
    size_t extent[HEDDLE_MAX_DIMS];
    size_t stride[HEDDLE_MAX_DIMS]; /* in bytes, descending */
    size_t idx[HEDDLE_MAX_DIMS];
    size_t len; /* bytes of each run */
    size_t at;  /* offset of the next one */
    bool is_over;
};

static void runs_begin(struct runs *r, const struct heddle_layout *l)
{
    const size_t elem = heddle_dtype_bytes(l->dtype);

    *r = (struct runs){.len = elem};
    for (unsigned d = 0; d < l->ndim; d++) {
        unsigned i = r->ndim;

        if (l->extent[d] == 1)
            continue;
        for (; i > 0 && r->stride[i - 1] < l->stride[d] * elem; i--) {
            r->stride[i] = r->stride[i - 1];
            r->extent[i] = r->extent[i - 1];
        }
        r->stride[i] = l->stride[d] * elem;
        r->extent[i] = l->extent[d];
        r->ndim++;
    }
    while (r->ndim > 0 && r->stride[r->ndim - 1] == r->len)
        r->len *= r->extent[--r->ndim];
}

static bool runs_next(struct runs *r, size_t *at_out)
{
    if (r->is_over)
        return false;
    *at_out = r->at;
    for (unsigned d = r->ndim; d-- > 0;) {
        r->at += r->stride[d];
        if (++r->idx[d] < r->extent[d])
            return true;
        r->at -= r->stride[d] * r->extent[d];
        r->idx[d] = 0;
    }
    r->is_over = true;
    return true;
}

/* Every step is a bijection, so one changed word always changes the hash. */
static uint64_t hash_bytes(uint64_t h, const char *p, size_t n)
{
    uint64_t w;

    for (; n > 0; p += sizeof(w), n -= sizeof(w)) {
        const size_t k = n < sizeof(w) ? n : sizeof(w);

        w = 0;
        memcpy(&w, p, k);
        h = (h ^ w) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
        if (k < sizeof(w))
            break;
    }
    return h;
}

uint64_t heddle_shadow_hash(const struct heddle_layout *l, const char *base)
{
    uint64_t h = 1;
    struct runs r;
    size_t at;

    runs_begin(&r, l);
    while (runs_next(&r, &at))
        h = hash_bytes(h, base + at, r.len);
    return h;
}

/* --- shadows ------------------------------------------------------------------ */

/* Makes random bits a quiet NaN; sign and payload stay random. No computation
 * makes such a one, and arithmetic on it hands it on as it is. */
static void nan_make(char *p, enum heddle_dtype t)
{
    uint16_t h;
    uint32_t f;
    uint64_t d;

    switch (t) {
    case HEDDLE_F16:
    case HEDDLE_BF16:
        memcpy(&h, p, sizeof(h));
        h = (uint16_t)(t == HEDDLE_F16 ? (h & 0x81ff) | 0x7e01 : (h & 0x803f) | 0x7fc1);
        memcpy(p, &h, sizeof(h));
        break;
    case HEDDLE_F32:
    case HEDDLE_C64:
        memcpy(&f, p, sizeof(f));
        f = (f & 0x803fffff) | 0x7fc00001;
        memcpy(p, &f, sizeof(f));
        break;
    default:
        memcpy(&d, p, sizeof(d));
        d = (d & UINT64_C(0x8007ffffffffffff)) | UINT64_C(0x7ff8000000000001);
        memcpy(p, &d, sizeof(d));
    }
}

/* Bytes of a floating-point number of this type; 0: it has none. */
size_t heddle_shadow_float(enum heddle_dtype t)
{
    switch (t) {
    case HEDDLE_F16:
    case HEDDLE_BF16: return 2;
    case HEDDLE_F32:
    case HEDDLE_C64: return 4;
    case HEDDLE_F64:
    case HEDDLE_C128: return 8;
    case HEDDLE_U8:
    case HEDDLE_I32:
    case HEDDLE_I64: break;
    }
    return 0;
}

void heddle_shadow_fill(struct shadow *s, uint64_t seed)
{
    const enum heddle_dtype t = s->unit->layout.dtype;
    const size_t width = heddle_shadow_float(t);
    struct heddle_rng rng;
    struct runs r;
    size_t at;

    heddle_rng_seed(&rng, seed);
    for (size_t k = 0; k < s->bytes; k += sizeof(uint64_t)) {
        const uint64_t v = heddle_rng_next(&rng);

        memcpy(s->buf + k, &v, sizeof(v));
    }
    runs_begin(&r, &s->unit->layout);
    while (width != 0 && runs_next(&r, &at))
        for (size_t k = 0; k < r.len; k += width)
            nan_make(s->buf + s->first + at + k, t);
}

/* The elements of the original, into shadow and image. */
void heddle_shadow_read(struct shadow *s)
{
    const char *src = heddle_unit_base(s->unit);
    struct runs r;
    size_t at;

    runs_begin(&r, &s->unit->layout);
    while (runs_next(&r, &at)) {
        memcpy(s->buf + s->first + at, src + at, r.len);
        memcpy(s->image + s->first + at, src + at, r.len);
    }
}

/* All elements to the original, whether they were written or not. */
void heddle_shadow_store(struct shadow *s)
{
    char *dst = heddle_unit_base(s->unit);
    struct runs r;
    size_t at;

    runs_begin(&r, &s->unit->layout);
    while (runs_next(&r, &at)) {
        memcpy(dst + at, s->buf + s->first + at, r.len);
        memcpy(s->image + s->first + at, s->buf + s->first + at, r.len);
    }
}

/* Elements that changed since the image was made, to the original. */
void heddle_shadow_flush(struct shadow *s)
{
    const size_t elem = heddle_dtype_bytes(s->unit->layout.dtype);
    char *dst = heddle_unit_base(s->unit);
    struct runs r;
    size_t at;

    runs_begin(&r, &s->unit->layout);
    while (runs_next(&r, &at)) {
        char *b = s->buf + s->first + at, *i = s->image + s->first + at;

        if (memcmp(b, i, r.len) == 0)
            continue;
        for (size_t k = 0; k < r.len; k += elem)
            if (memcmp(b + k, i + k, elem) != 0)
                memcpy(dst + at + k, b + k, elem);
        memcpy(i, b, r.len); /* invariant (1) */
    }
}

/* Are guards and gaps as they were? */
bool heddle_shadow_is_tight(const struct shadow *s)
{
    size_t at, end = 0;
    struct runs r;

    runs_begin(&r, &s->unit->layout);
    while (runs_next(&r, &at)) {
        if (memcmp(s->buf + end, s->image + end, s->first + at - end) != 0)
            return false;
        end = s->first + at + r.len;
    }
    return memcmp(s->buf + end, s->image + end, s->bytes - end) == 0;
}

/* Elements that are as they were lent. */
size_t heddle_shadow_unchanged(const struct shadow *s)
{
    const size_t elem = heddle_dtype_bytes(s->unit->layout.dtype);
    size_t at, n = 0;
    struct runs r;

    runs_begin(&r, &s->unit->layout);
    while (runs_next(&r, &at))
        for (size_t k = s->first + at; k < s->first + at + r.len; k += elem)
            n += memcmp(s->buf + k, s->image + k, elem) == 0;
    return n;
}

/*
 * How many elements of an output may look unwritten by chance, because what was
 * written happens to be the random bytes it started with. For any values
 * written, more than this happens less than once in 10^8 tasks; NaNs do not
 * happen. Operands of less than 4 bytes are never blamed.
 */
size_t heddle_shadow_luck(const heddle_handle *h)
{
    const size_t elem = heddle_dtype_bytes(h->layout.dtype), n = h->count;

    if (elem >= 8 || heddle_shadow_float(h->layout.dtype) == 4)
        return 0;
    if (elem == 4)
        return n <= 16 ? 0 : n <= 65536 ? 1 : 3;
    if (n * elem < 4)
        return n;
    return n / 16 + 4 < n - 1 ? n / 16 + 4 : n - 1;
}

/* Nothing was written to an output, and that is no chance. */
bool heddle_shadow_is_untouched(const struct shadow *s)
{
    const size_t n = heddle_shadow_unchanged(s);

    return n == s->unit->count && n > heddle_shadow_luck(s->unit);
}
