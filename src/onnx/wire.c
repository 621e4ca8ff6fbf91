/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire: protobuf's wire format into structs, by tables.
 *
 * Purpose    one decoder for all messages of ONNX; a message is a table (messages.c).
 * Structure  a message is walked twice: the first walk counts what repeats, the second one fills.
 *            So an array is allocated once, and its size is bounded by bytes that are there.
 * Invariants wire.h
 */
#include "onnx/wire.h"

#include <stdarg.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/text.h"
#include "base/why.h"

enum { CHUNK = 1 << 16 };

/* One field as it is on the wire. */
struct token {
    uint32_t number;
    unsigned wire;      /* 0 varint, 1 eight bytes, 2 bytes with a length, 5 four bytes */
    uint64_t value;     /* 0, 1 and 5 */
    const uint8_t *ptr; /* 2 */
    size_t len;
};

struct cursor {
    const uint8_t *p, *end;
};

heddle_status heddle_onnx_bad(struct wire_decoder *d, const char *fmt, ...)
{
    char buf[400];
    struct heddle_text t;
    va_list ap;

    heddle_text_init(&t, buf, sizeof(buf));
    for (unsigned i = 0; i < d->depth && i < 12; i++) {
        heddle_text_add(&t, "%s%s", i > 0 ? "." : "in ", d->path[i].name);
        if (d->path[i].idx != SIZE_MAX)
            heddle_text_add(&t, "[%zu]", d->path[i].idx);
    }
    heddle_text_str(&t, d->depth > 0 ? ": " : "");
    va_start(ap, fmt);
    heddle_text_vadd(&t, fmt, ap);
    va_end(ap);
    return heddle_why(d->opts->why, d->opts->why_bytes, HEDDLE_EFORMAT, "%s: %s", d->file, buf);
}

static heddle_status wire_no_memory(struct wire_decoder *d)
{
    return heddle_why(d->opts->why, d->opts->why_bytes, HEDDLE_ENOMEM, "%s: no memory to read it",
                      d->file);
}

void *heddle_onnx_take(struct wire_decoder *d, size_t n, size_t bytes)
{
    size_t all;
    void *p;

    if (!heddle_mul(&all, n, bytes) || all > SIZE_MAX - 15)
        all = SIZE_MAX - 15;
    all = (all + 15) & ~(size_t)15;
    if (all > d->budget - d->used) {
        (void)wire_no_memory(d);
        return NULL;
    }
    if (all > CHUNK / 4) {
        p = heddle_scratch_get(d->mem, 1, all);
        d->used += all;
    } else {
        if (all > d->chunk_left) {
            d->chunk = heddle_scratch_get(d->mem, 1, CHUNK);
            d->chunk_left = d->chunk == NULL ? 0 : CHUNK;
        }
        p = d->chunk;
        if (p != NULL) {
            d->chunk += all;
            d->chunk_left -= all;
            d->used += all;
        }
    }
    if (p == NULL)
        (void)wire_no_memory(d);
    return p;
}

/* At most ten bytes; the tenth has one bit. */
static bool wire_varint(struct cursor *c, uint64_t *out)
{
    uint64_t v = 0;

    for (unsigned shift = 0; shift < 70 && c->p < c->end; shift += 7) {
        const uint8_t b = *c->p++;

        if (shift == 63 && b > 1)
            return false;
        v |= (uint64_t)(b & 0x7f) << shift;
        if (b < 0x80) {
            *out = v;
            return true;
        }
    }
    return false;
}

static bool wire_fixed(struct cursor *c, size_t bytes, uint64_t *out)
{
    uint64_t v = 0;

    if ((size_t)(c->end - c->p) < bytes)
        return false;
    memcpy(&v, c->p, bytes);
    c->p += bytes;
    *out = v;
    return true;
}

static heddle_status wire_next(struct wire_decoder *d, struct cursor *c, struct token *t)
{
    const size_t at = (size_t)(c->p - d->base);
    uint64_t tag;
    bool ok = true;

    if (!wire_varint(c, &tag) || tag >> 3 == 0 || tag >> 3 > (UINT32_MAX >> 3))
        return heddle_onnx_bad(d, "no field begins at byte %zu", at);
    t->number = (uint32_t)(tag >> 3);
    t->wire = (unsigned)(tag & 7);
    t->value = 0;
    t->ptr = NULL;
    t->len = 0;
    switch (t->wire) {
    case 0: ok = wire_varint(c, &t->value); break;
    case 1: ok = wire_fixed(c, 8, &t->value); break;
    case 5: ok = wire_fixed(c, 4, &t->value); break;
    case 2:
        ok = wire_varint(c, &t->value) && t->value <= (uint64_t)(c->end - c->p);
        if (ok) {
            t->ptr = c->p;
            t->len = (size_t)t->value;
            c->p += t->len;
        }
        break;
    default: return heddle_onnx_bad(d, "byte %zu has wire type %u", at, t->wire);
    }
    if (!ok)
        return heddle_onnx_bad(d, "field %u at byte %zu runs past the end", t->number, at);
    return HEDDLE_OK;
}

/* Bytes of an element of a list, and the wire type of an element that stands alone. */
static const struct {
    uint8_t bytes, wire;
} wire_list[WIRE_KINDS] = {
    [WIRE_INT] = {0, 0},
    [WIRE_FLOAT] = {0, 5},
    [WIRE_TEXT] = {0, 2},
    [WIRE_BYTES] = {0, 2},
    [WIRE_MESSAGE] = {0, 2},
    [WIRE_INTS] = {sizeof(int64_t), 0},
    [WIRE_FLOATS] = {sizeof(float), 5},
    [WIRE_DOUBLES] = {sizeof(double), 1},
    [WIRE_TEXTS] = {sizeof(char *), 2},
    [WIRE_BYTESES] = {sizeof(struct heddle_onnx_bytes), 2},
    [WIRE_MESSAGES] = {0, 2},
};

static const struct wire_field *wire_find(const struct wire_message *m, uint32_t number)
{
    for (size_t i = 0; i < m->nfields; i++)
        if (m->field[i].number == number)
            return &m->field[i];
    return NULL;
}

static bool wire_is_packed(const struct wire_field *f, const struct token *t)
{
    return t->wire == 2 &&
           (f->kind == WIRE_INTS || f->kind == WIRE_FLOATS || f->kind == WIRE_DOUBLES);
}

/* How many elements this token adds to a list. */
static heddle_status wire_count(struct wire_decoder *d, const struct wire_field *f,
                                const struct token *t, size_t *n)
{
    const size_t each = wire_list[f->kind].bytes;

    if (!wire_is_packed(f, t)) {
        if (t->wire != wire_list[f->kind].wire)
            return heddle_onnx_bad(d, "'%s' has wire type %u", f->name, t->wire);
        *n += 1;
    } else if (f->kind != WIRE_INTS) {
        if (t->len % each != 0)
            return heddle_onnx_bad(d, "'%s' has %zu bytes", f->name, t->len);
        *n += t->len / each;
    } else {
        for (size_t i = 0; i < t->len; i++)
            *n += t->ptr[i] < 0x80;
    }
    return HEDDLE_OK;
}

static heddle_status wire_text(struct wire_decoder *d, const struct token *t, const char **out)
{
    char *s = heddle_onnx_take(d, t->len + 1, 1);

    if (s == NULL)
        return HEDDLE_ENOMEM;
    if (memchr(t->ptr, 0, t->len) != NULL)
        return heddle_onnx_bad(d, "a name has a zero byte");
    memcpy(s, t->ptr, t->len);
    *out = s;
    return HEDDLE_OK;
}

static heddle_status wire_sub(struct wire_decoder *d, const struct wire_field *f,
                              const struct token *t, size_t idx, void *obj)
{
    heddle_status st;

    if (d->depth == WIRE_DEPTH)
        return heddle_onnx_bad(d, "more than %d levels", WIRE_DEPTH);
    d->path[d->depth].name = f->name;
    d->path[d->depth].idx = idx;
    d->depth++;
    st = heddle_onnx_wire(d, f->message, t->ptr, t->len, obj);
    d->depth--;
    return st;
}

static heddle_status wire_put_one(struct wire_decoder *d, const struct wire_field *f,
                                  const struct token *t, char *at)
{
    struct heddle_onnx_bytes bytes;
    const char *text = NULL;
    int64_t i = (int64_t)t->value;
    void *sub;

    switch (f->kind) {
    case WIRE_INT: memcpy(at, &i, sizeof(i)); return HEDDLE_OK;
    case WIRE_FLOAT: memcpy(at, &t->value, sizeof(float)); return HEDDLE_OK;
    case WIRE_TEXT:
        HEDDLE_TRY(wire_text(d, t, &text));
        memcpy(at, &text, sizeof(text));
        return HEDDLE_OK;
    case WIRE_BYTES:
        bytes = (struct heddle_onnx_bytes){(const char *)t->ptr, t->len};
        memcpy(at, &bytes, sizeof(bytes));
        return HEDDLE_OK;
    default:
        sub = heddle_onnx_take(d, 1, f->message->bytes);
        if (sub == NULL)
            return HEDDLE_ENOMEM;
        HEDDLE_TRY(wire_sub(d, f, t, SIZE_MAX, sub));
        memcpy(at, &sub, sizeof(sub));
        return HEDDLE_OK;
    }
}

/* Adds a token to the array, which has room; *n: elements so far. */
static heddle_status wire_put_many(struct wire_decoder *d, const struct wire_field *f,
                                   const struct token *t, char *array, size_t *n)
{
    const struct heddle_onnx_bytes bytes = {(const char *)t->ptr, t->len};
    const size_t each = wire_list[f->kind].bytes;
    /* A number has no bytes behind it: its pointer is NULL, to which nothing may be added. */
    struct cursor c = {t->ptr, t->len > 0 ? t->ptr + t->len : t->ptr};
    const char *text = NULL;
    uint64_t v;

    switch (f->kind) {
    case WIRE_TEXTS:
        HEDDLE_TRY(wire_text(d, t, &text));
        memcpy(array + *n * each, &text, each);
        break;
    case WIRE_BYTESES: memcpy(array + *n * each, &bytes, each); break;
    case WIRE_MESSAGES: HEDDLE_TRY(wire_sub(d, f, t, *n, array + *n * f->message->bytes)); break;
    default:
        if (!wire_is_packed(f, t)) {
            memcpy(array + *n * each, &t->value, each);
            break;
        }
        if (t->len == 0)
            return HEDDLE_OK; /* an empty list may have no array */
        if (f->kind != WIRE_INTS) {
            memcpy(array + *n * each, t->ptr, t->len);
            *n += t->len / each;
            return HEDDLE_OK;
        }
        for (; c.p < c.end; *n += 1) {
            if (!wire_varint(&c, &v))
                return heddle_onnx_bad(d, "'%s' has a number that does not end", f->name);
            memcpy(array + *n * each, &v, each);
        }
        return HEDDLE_OK;
    }
    *n += 1;
    return HEDDLE_OK;
}

/* The first walk: counts, and what is absent gets its value. */
static heddle_status wire_first(struct wire_decoder *d, const struct wire_message *m,
                                struct cursor c, char *obj, char **array)
{
    size_t count[WIRE_FIELDS] = {0};
    struct token t;

    while (c.p < c.end) {
        const struct wire_field *f;

        HEDDLE_TRY(wire_next(d, &c, &t));
        f = wire_find(m, t.number);
        if (f == NULL)
            continue;
        if (f->kind >= WIRE_INTS)
            HEDDLE_TRY(wire_count(d, f, &t, &count[f - m->field]));
        else if (t.wire != wire_list[f->kind].wire)
            return heddle_onnx_bad(d, "'%s' has wire type %u", f->name, t.wire);
    }
    for (size_t i = 0; i < m->nfields; i++) {
        const struct wire_field *f = &m->field[i];
        const char *empty = "";

        array[i] = NULL;
        if (f->kind == WIRE_INT)
            memcpy(obj + f->offset, &f->fallback, sizeof(f->fallback));
        else if (f->kind == WIRE_TEXT)
            memcpy(obj + f->offset, &empty, sizeof(empty));
        if (count[i] == 0)
            continue;
        array[i] = heddle_onnx_take(
            d, count[i], f->kind == WIRE_MESSAGES ? f->message->bytes : wire_list[f->kind].bytes);
        if (array[i] == NULL)
            return HEDDLE_ENOMEM;
        memcpy(obj + f->offset, &array[i], sizeof(array[i]));
        memcpy(obj + f->offset + sizeof(void *), &count[i], sizeof(count[i]));
    }
    return HEDDLE_OK;
}

heddle_status heddle_onnx_wire(struct wire_decoder *d, const struct wire_message *m,
                               const uint8_t *ptr, size_t bytes, void *obj)
{
    struct cursor c = {ptr, ptr + bytes};
    size_t n[WIRE_FIELDS] = {0};
    char *array[WIRE_FIELDS];
    struct token t;

    HEDDLE_TRY(wire_first(d, m, c, obj, array));
    while (c.p < c.end) {
        const struct wire_field *f;

        HEDDLE_TRY(wire_next(d, &c, &t));
        f = wire_find(m, t.number);
        if (f == NULL)
            continue;
        if (f->kind >= WIRE_INTS)
            HEDDLE_TRY(wire_put_many(d, f, &t, array[f - m->field], &n[f - m->field]));
        else
            HEDDLE_TRY(wire_put_one(d, f, &t, (char *)obj + f->offset));
    }
    return m->finish == NULL ? HEDDLE_OK : m->finish(d, obj);
}
