/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * codec: records and headers to bytes and back.
 *
 * Purpose    about 9 bytes per task and 3 per dependency. Most values are
 *            close to those of the record before, so what is stored is the
 *            difference, LEB128 coded, and nothing at all when it is the
 *            expected one (same kernel, next id, starts where the last task
 *            ended).
 * Invariants (1) decode(encode(r)) == r for every record and context
 *            (2) arithmetic is modulo 2^64: no value can overflow
 *            (3) the decoder reads inside [p, end) whatever the bytes are, and
 *                consumes at least one byte per record
 * Cost       about 10 ns per record each way.
 * See also   docs/formats/log.md
 */
#include "trace/format.h"

/* First byte: 1xxxxxxx TASK, 011xxxxx ACCESS, 010xxxxx DEP, 0001.. to 0011..
 * extension with a length, else the kind itself. */
#define HEAD_TASK   0x80
#define HEAD_ACCESS 0x60
#define HEAD_DEP    0x40
#define HEAD_EXT    0x10

#define TASK_SAME_KERNEL 0x01
#define TASK_NEXT_ID     0x02
#define TASK_NO_GAP      0x04
#define TASK_DELAY       0x08
#define TASK_SAME_HOW    0x10 /* variant and flags */
#define TASK_BITS        0x1f

#define SUB_NEXT_ID     0x01
#define SUB_SAME_KERNEL 0x02
#define SUB_SAME_PRIO   0x04
#define SUB_PREDICTED   0x08
#define SUB_SAME_PARENT 0x10
#define SUB_BITS        0x1f

#define DEP_SAME_SUCC 0x01
#define DEP_FORWARD   0x02 /* pred > succ */
#define DEP_BITS      0x03

#define ACC_SAME_TASK 0x01
#define ACC_NEXT_OP   0x02
#define ACC_MODE(m)   ((uint8_t)((m) << 2))
#define ACC_MODE_BYTE 7 /* the mode follows as a byte */

#define EV_B    0x01
#define EV_C    0x02
#define EV_ID   0x04
#define EV_X    0x08
#define EV_Y    0x10
#define EV_Z    0x20
#define EV_BITS 0x3f

/* 1 + 5 + 2 + 10 + 10 + 10 + 10 = 48 bytes at most. */
static uint8_t *task_encode(struct heddle_codec *c, const struct heddle_rec *r, uint8_t *p)
{
    uint8_t *head = p++;
    uint8_t bits = HEAD_TASK;

    if (r->c == c->kernel)
        bits |= TASK_SAME_KERNEL;
    else
        p = heddle_put_leb(p, r->c);
    if (r->a == c->variant && r->b == c->flags) {
        bits |= TASK_SAME_HOW;
    } else {
        *p++ = r->a;
        p = heddle_put_leb(p, r->b);
    }
    if (r->id == c->task + 1)
        bits |= TASK_NEXT_ID;
    else
        p = heddle_put_zig(p, r->id - c->task);
    if (r->t == c->t)
        bits |= TASK_NO_GAP;
    else
        p = heddle_put_zig(p, r->t - c->t);
    p = heddle_put_leb(p, r->x);
    if (r->y != 0) {
        bits |= TASK_DELAY;
        p = heddle_put_leb(p, r->y);
    }
    *head = bits;
    c->kernel = r->c;
    c->variant = r->a;
    c->flags = r->b;
    c->task = r->id;
    c->t = r->t + r->x;
    return p;
}

static void task_decode(struct heddle_codec *c, struct heddle_get *g, uint8_t head,
                        struct heddle_rec *r)
{
    const uint8_t bits = head & 0x7f;

    g->bad |= (bits & ~TASK_BITS) != 0;
    r->c = (bits & TASK_SAME_KERNEL) ? c->kernel : heddle_get_leb32(g);
    if (bits & TASK_SAME_HOW) {
        r->a = c->variant;
        r->b = c->flags;
    } else {
        r->a = heddle_get_byte(g);
        r->b = heddle_get_leb16(g);
    }
    r->id = c->task + ((bits & TASK_NEXT_ID) ? 1 : heddle_get_zig(g));
    r->t = c->t + ((bits & TASK_NO_GAP) ? 0 : heddle_get_zig(g));
    r->x = heddle_get_leb(g);
    r->y = (bits & TASK_DELAY) ? heddle_get_leb(g) : 0;
    c->kernel = r->c;
    c->variant = r->a;
    c->flags = r->b;
    c->task = r->id;
    c->t = r->t + r->x;
}

/* 1 + 1 + 10 + 5 + 10 + 5 + 4 + 10 = 46 bytes at most. */
static uint8_t *submit_encode(struct heddle_codec *c, const struct heddle_rec *r, uint8_t *p)
{
    uint8_t *bits = p + 1;
    uint32_t f;

    p[0] = HEDDLE_REC_SUBMIT;
    p[1] = 0;
    p += 2;
    if (r->id == c->sub + 1)
        *bits |= SUB_NEXT_ID;
    else
        p = heddle_put_zig(p, r->id - c->sub);
    if (r->c == c->sub_kernel)
        *bits |= SUB_SAME_KERNEL;
    else
        p = heddle_put_leb(p, r->c);
    p = heddle_put_zig(p, r->t - c->t);
    if (r->prio == c->prio)
        *bits |= SUB_SAME_PRIO;
    else
        p = heddle_put_zig(p, (uint64_t)(int64_t)r->prio);
    memcpy(&f, &r->predicted_ns, sizeof f);
    if (f != 0) {
        *bits |= SUB_PREDICTED;
        heddle_put_le(p, f, 4);
        p += 4;
    }
    if (r->x == c->parent)
        *bits |= SUB_SAME_PARENT;
    else
        p = heddle_put_zig(p, r->id - r->x);
    c->sub = r->id;
    c->sub_kernel = r->c;
    c->t = r->t;
    c->prio = r->prio;
    c->parent = r->x;
    c->operand = 0;
    return p;
}

static int32_t prio_decode(struct heddle_get *g)
{
    const int64_t v = (int64_t)heddle_get_zig(g);

    if (v < INT32_MIN || v > INT32_MAX) {
        g->bad = true;
        return 0;
    }
    return (int32_t)v;
}

static void submit_decode(struct heddle_codec *c, struct heddle_get *g, struct heddle_rec *r)
{
    const uint8_t bits = heddle_get_byte(g);
    const uint8_t *raw;
    uint32_t f;

    g->bad |= (bits & ~SUB_BITS) != 0;
    r->id = c->sub + ((bits & SUB_NEXT_ID) ? 1 : heddle_get_zig(g));
    r->c = (bits & SUB_SAME_KERNEL) ? c->sub_kernel : heddle_get_leb32(g);
    r->t = c->t + heddle_get_zig(g);
    r->prio = (bits & SUB_SAME_PRIO) ? c->prio : prio_decode(g);
    if (bits & SUB_PREDICTED) {
        raw = heddle_get_bytes(g, 4);
        f = raw == NULL ? 0 : (uint32_t)heddle_get_le(raw, 4);
        memcpy(&r->predicted_ns, &f, sizeof f);
    }
    r->x = (bits & SUB_SAME_PARENT) ? c->parent : r->id - heddle_get_zig(g);
    c->sub = r->id;
    c->sub_kernel = r->c;
    c->t = r->t;
    c->prio = r->prio;
    c->parent = r->x;
    c->operand = 0;
}

static uint8_t *dep_encode(struct heddle_codec *c, const struct heddle_rec *r, uint8_t *p)
{
    uint8_t *head = p++;
    uint8_t bits = HEAD_DEP;

    if (r->id == c->sub)
        bits |= DEP_SAME_SUCC;
    else
        p = heddle_put_zig(p, r->id - c->sub);
    if (r->x > r->id) {
        bits |= DEP_FORWARD;
        p = heddle_put_leb(p, r->x - r->id);
    } else {
        p = heddle_put_leb(p, r->id - r->x);
    }
    *head = bits;
    if (r->id != c->sub)
        c->operand = 0;
    c->sub = r->id;
    return p;
}

static void dep_decode(struct heddle_codec *c, struct heddle_get *g, uint8_t head,
                       struct heddle_rec *r)
{
    const uint8_t bits = head & 0x1f;
    uint64_t d;

    g->bad |= (bits & ~DEP_BITS) != 0;
    r->id = c->sub + ((bits & DEP_SAME_SUCC) ? 0 : heddle_get_zig(g));
    d = heddle_get_leb(g);
    r->x = (bits & DEP_FORWARD) ? r->id + d : r->id - d;
    if (r->id != c->sub)
        c->operand = 0;
    c->sub = r->id;
}

static uint8_t *access_encode(struct heddle_codec *c, const struct heddle_rec *r, uint8_t *p)
{
    uint8_t *head = p++;
    uint8_t bits = HEAD_ACCESS;

    if (r->id == c->sub) {
        bits |= ACC_SAME_TASK;
    } else {
        c->operand = 0;
        p = heddle_put_zig(p, r->id - c->sub);
    }
    if (r->b == c->operand)
        bits |= ACC_NEXT_OP;
    else
        p = heddle_put_leb(p, r->b);
    if (r->a < ACC_MODE_BYTE) {
        bits |= ACC_MODE(r->a);
    } else {
        bits |= ACC_MODE(ACC_MODE_BYTE);
        *p++ = r->a;
    }
    *head = bits;
    p = heddle_put_zig(p, (uint64_t)r->c - c->handle);
    c->sub = r->id;
    c->handle = r->c;
    c->operand = (uint16_t)(r->b + 1u);
    return p;
}

static void access_decode(struct heddle_codec *c, struct heddle_get *g, uint8_t head,
                          struct heddle_rec *r)
{
    const uint8_t bits = head & 0x1f;
    uint64_t handle;

    r->id = c->sub + ((bits & ACC_SAME_TASK) ? 0 : heddle_get_zig(g));
    if ((bits & ACC_SAME_TASK) == 0)
        c->operand = 0;
    r->b = (bits & ACC_NEXT_OP) ? c->operand : heddle_get_leb16(g);
    r->a = (uint8_t)(bits >> 2);
    if (r->a == ACC_MODE_BYTE)
        r->a = heddle_get_byte(g);
    handle = c->handle + heddle_get_zig(g);
    g->bad |= handle > UINT32_MAX;
    r->c = (uint32_t)handle;
    c->sub = r->id;
    c->handle = r->c;
    c->operand = (uint16_t)(r->b + 1u);
}

/* 1 + 1 + 1 + 10 + 3 + 5 + 10 + 10 + 10 + 10 = 61 bytes at most. */
static uint8_t *event_encode(struct heddle_codec *c, const struct heddle_rec *r, uint8_t *p)
{
    uint8_t bits = 0;

    bits |= r->b != 0 ? EV_B : 0;
    bits |= r->c != 0 ? EV_C : 0;
    bits |= r->id != c->ready ? EV_ID : 0;
    bits |= r->x != 0 ? EV_X : 0;
    bits |= r->y != 0 ? EV_Y : 0;
    bits |= r->z != 0 ? EV_Z : 0;
    *p++ = HEDDLE_REC_EVENT;
    *p++ = r->a;
    *p++ = bits;
    p = heddle_put_zig(p, r->t - c->t);
    if (bits & EV_B)
        p = heddle_put_leb(p, r->b);
    if (bits & EV_C)
        p = heddle_put_leb(p, r->c);
    if (bits & EV_ID)
        p = heddle_put_zig(p, r->id - c->ready);
    if (bits & EV_X)
        p = heddle_put_leb(p, r->x);
    if (bits & EV_Y)
        p = heddle_put_leb(p, r->y);
    if (bits & EV_Z)
        p = heddle_put_leb(p, r->z);
    c->t = r->t;
    c->ready = r->id;
    return p;
}

static void event_decode(struct heddle_codec *c, struct heddle_get *g, struct heddle_rec *r)
{
    uint8_t bits;

    r->a = heddle_get_byte(g);
    bits = heddle_get_byte(g);
    g->bad |= (bits & ~EV_BITS) != 0;
    r->t = c->t + heddle_get_zig(g);
    r->b = (bits & EV_B) ? heddle_get_leb16(g) : 0;
    r->c = (bits & EV_C) ? heddle_get_leb32(g) : 0;
    r->id = c->ready + ((bits & EV_ID) ? heddle_get_zig(g) : 0);
    r->x = (bits & EV_X) ? heddle_get_leb(g) : 0;
    r->y = (bits & EV_Y) ? heddle_get_leb(g) : 0;
    r->z = (bits & EV_Z) ? heddle_get_leb(g) : 0;
    c->t = r->t;
    c->ready = r->id;
}

uint8_t *heddle_rec_encode(struct heddle_codec *c, const struct heddle_rec *r, uint8_t *p)
{
    switch ((enum heddle_rec_kind)r->kind) {
    case HEDDLE_REC_TASK: return task_encode(c, r, p);
    case HEDDLE_REC_SUBMIT: return submit_encode(c, r, p);
    case HEDDLE_REC_DEP: return dep_encode(c, r, p);
    case HEDDLE_REC_ACCESS: return access_encode(c, r, p);
    case HEDDLE_REC_EVENT: return event_encode(c, r, p);
    case HEDDLE_REC_READY:
        *p++ = r->kind;
        p = heddle_put_zig(p, r->t - c->t);
        p = heddle_put_zig(p, r->id - c->ready);
        c->t = r->t;
        c->ready = r->id;
        return p;
    case HEDDLE_REC_STATE:
    case HEDDLE_REC_MARK:
        *p++ = r->kind;
        *p++ = r->a;
        p = heddle_put_zig(p, r->t - c->t);
        p = heddle_put_leb(p, r->c);
        c->t = r->t;
        return p;
    case HEDDLE_REC_ATTR:
        *p++ = r->kind;
        *p++ = r->a;
        p = heddle_put_zig(p, r->id - c->sub);
        p = heddle_put_leb(p, r->x);
        if (r->id != c->sub)
            c->operand = 0;
        c->sub = r->id;
        return p;
    case HEDDLE_REC_KINDS: break;
    }
    return p;
}

/* The kinds whose first byte is the kind itself. */
static void plain_decode(struct heddle_codec *c, struct heddle_get *g, struct heddle_rec *r)
{
    switch ((enum heddle_rec_kind)r->kind) {
    case HEDDLE_REC_SUBMIT: submit_decode(c, g, r); return;
    case HEDDLE_REC_EVENT: event_decode(c, g, r); return;
    case HEDDLE_REC_READY:
        c->t = r->t = c->t + heddle_get_zig(g);
        c->ready = r->id = c->ready + heddle_get_zig(g);
        return;
    case HEDDLE_REC_STATE:
    case HEDDLE_REC_MARK:
        r->a = heddle_get_byte(g);
        c->t = r->t = c->t + heddle_get_zig(g);
        r->c = heddle_get_leb32(g);
        return;
    case HEDDLE_REC_ATTR:
        r->a = heddle_get_byte(g);
        r->id = c->sub + heddle_get_zig(g);
        r->x = heddle_get_leb(g);
        if (r->id != c->sub)
            c->operand = 0;
        c->sub = r->id;
        return;
    case HEDDLE_REC_TASK:
    case HEDDLE_REC_DEP:
    case HEDDLE_REC_ACCESS:
    case HEDDLE_REC_KINDS: break;
    }
    g->bad = true;
}

bool heddle_rec_decode(struct heddle_codec *c, struct heddle_get *g, struct heddle_rec *out)
{
    uint8_t head;

    while (g->p != g->end && !g->bad) {
        *out = (struct heddle_rec){0};
        head = *g->p++;
        if (head >= HEAD_TASK) {
            out->kind = HEDDLE_REC_TASK;
            task_decode(c, g, head, out);
        } else if (head >= HEAD_ACCESS) {
            out->kind = HEDDLE_REC_ACCESS;
            access_decode(c, g, head, out);
        } else if (head >= HEAD_DEP) {
            out->kind = HEDDLE_REC_DEP;
            dep_decode(c, g, head, out);
        } else if (head >= HEAD_EXT) {
            (void)heddle_get_bytes(g, heddle_get_leb(g));
            continue;
        } else {
            out->kind = head;
            plain_decode(c, g, out);
        }
        return !g->bad;
    }
    return false;
}

/* ---- headers ---- */

uint64_t heddle_fmt_sum(const void *data, size_t bytes)
{
    const uint8_t *p = data;
    uint64_t h = UINT64_C(0x9e3779b97f4a7c15) ^ bytes, w;

    /* Each step is a bijection of h for a given word and of the word for a
     * given h: a change of one word cannot vanish later. */
    for (; bytes >= 8; bytes -= 8, p += 8) {
        w = heddle_get_le64(p);
        h ^= w;
        h = ((h << 29) | (h >> 35)) * UINT64_C(0xbf58476d1ce4e5b9);
    }
    if (bytes > 0) {
        w = heddle_get_le(p, (unsigned)bytes);
        h ^= w;
        h = ((h << 29) | (h >> 35)) * UINT64_C(0xbf58476d1ce4e5b9);
    }
    return h ^ (h >> 32);
}

void heddle_fmt_put_header(uint8_t *p, const struct heddle_fmt_header *h)
{
    uint64_t bits;

    memcpy(&bits, &h->ns_per_tick, sizeof bits);
    memcpy(p, HEDDLE_FMT_MAGIC, 8);
    heddle_put_le(p + 8, h->major, 2);
    heddle_put_le(p + 10, h->minor, 2);
    heddle_put_le(p + 12, h->header_bytes, 4);
    heddle_put_le(p + 16, h->flags, 4);
    heddle_put_le(p + 20, 0, 4);
    heddle_put_le(p + 24, bits, 8);
    heddle_put_le(p + 32, h->tick0, 8);
    heddle_put_le(p + 40, h->ns0, 8);
    heddle_put_le(p + 48, h->wall_ns, 8);
    heddle_put_le(p + 56, h->wall_tick, 8);
    heddle_put_le(p + 64, heddle_fmt_sum(p, 64), 8);
}

bool heddle_fmt_get_header(const uint8_t *p, size_t bytes, struct heddle_fmt_header *h)
{
    uint64_t bits;
    size_t len;

    if (bytes < HEDDLE_FMT_HEADER)
        return false;
    /* Every version keeps bytes 0 to 15 and ends with the checksum. */
    len = (size_t)heddle_get_le(p + 12, 4);
    if (len < HEDDLE_FMT_HEADER || len > HEDDLE_FMT_HEADER_MAX || len > bytes ||
        heddle_get_le(p + len - 8, 8) != heddle_fmt_sum(p, len - 8))
        return false;
    h->major = (uint16_t)heddle_get_le(p + 8, 2);
    h->minor = (uint16_t)heddle_get_le(p + 10, 2);
    h->header_bytes = (uint32_t)len;
    h->flags = (uint32_t)heddle_get_le(p + 16, 4);
    bits = heddle_get_le(p + 24, 8);
    memcpy(&h->ns_per_tick, &bits, sizeof bits);
    h->tick0 = heddle_get_le(p + 32, 8);
    h->ns0 = heddle_get_le(p + 40, 8);
    h->wall_ns = heddle_get_le(p + 48, 8);
    h->wall_tick = heddle_get_le(p + 56, 8);
    return true;
}

void heddle_fmt_put_chunk(uint8_t *p, const struct heddle_fmt_chunk *k)
{
    memcpy(p, HEDDLE_FMT_CHUNK_MAGIC, 4);
    p[4] = k->kind;
    p[5] = k->codec;
    heddle_put_le(p + 6, k->flags, 2);
    heddle_put_le(p + 8, k->lane, 4);
    heddle_put_le(p + 12, k->payload_bytes, 4);
    heddle_put_le(p + 16, k->nrecords, 4);
    heddle_put_le(p + 20, k->seq, 4);
    heddle_put_le(p + 24, k->first_tick, 8);
    heddle_put_le(p + 32, k->last_tick, 8);
    heddle_put_le(p + 40, k->lost, 8);
    heddle_put_le(p + 48, k->payload_sum, 8);
    heddle_put_le(p + 56, heddle_fmt_sum(p, 56), 8);
}

bool heddle_fmt_get_chunk(const uint8_t *p, struct heddle_fmt_chunk *k)
{
    if (memcmp(p, HEDDLE_FMT_CHUNK_MAGIC, 4) != 0 ||
        heddle_get_le(p + 56, 8) != heddle_fmt_sum(p, 56))
        return false;
    k->kind = p[4];
    k->codec = p[5];
    k->flags = (uint16_t)heddle_get_le(p + 6, 2);
    k->lane = (uint32_t)heddle_get_le(p + 8, 4);
    k->payload_bytes = (uint32_t)heddle_get_le(p + 12, 4);
    k->nrecords = (uint32_t)heddle_get_le(p + 16, 4);
    k->seq = (uint32_t)heddle_get_le(p + 20, 4);
    k->first_tick = heddle_get_le(p + 24, 8);
    k->last_tick = heddle_get_le(p + 32, 8);
    k->lost = heddle_get_le(p + 40, 8);
    k->payload_sum = heddle_get_le(p + 48, 8);
    return true;
}
