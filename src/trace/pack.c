/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pack: slots of the recorder to the payload of a chunk.
 *
 * Purpose    the hot path stores fixed slots; the file has coded records. One
 *            pass turns a chunk of the first into a chunk of the second.
 * Invariants (1) every record begins with a head whose kind is in slot_count
 *            (2) a coded record is at most twice as long as its slots
 * Threads    pure functions over memory the caller owns or may read.
 */
#include "base/assert.h"
#include "trace/store.h"

static const uint8_t slot_count[HEDDLE_SLOT_KINDS] = {
    [HEDDLE_SLOT_TASK] = 2,       [HEDDLE_SLOT_TASK_WIDE] = 3,  [HEDDLE_SLOT_SUBMIT] = 3,
    [HEDDLE_SLOT_DEP] = 1,        [HEDDLE_SLOT_DEP_WIDE] = 2,   [HEDDLE_SLOT_ACCESS] = 1,
    [HEDDLE_SLOT_READY] = 1,      [HEDDLE_SLOT_READY_WIDE] = 2, [HEDDLE_SLOT_STATE] = 1,
    [HEDDLE_SLOT_MARK] = 1,       [HEDDLE_SLOT_ATTR] = 2,       [HEDDLE_SLOT_EVENT] = 3,
    [HEDDLE_SLOT_SUBMIT_TOP] = 2,
};

/* Kinds with an id in front instead of a time. */
static void unpack_untimed(const union heddle_slot *p, struct heddle_rec *r)
{
    r->id = p[0].head.q;
    switch (p[0].head.kind) {
    case HEDDLE_SLOT_ACCESS: r->kind = HEDDLE_REC_ACCESS; break;
    case HEDDLE_SLOT_ATTR:
        r->kind = HEDDLE_REC_ATTR;
        r->x = p[1].pair.q;
        break;
    case HEDDLE_SLOT_DEP:
        r->kind = HEDDLE_REC_DEP;
        r->x = r->id - p[0].head.c;
        break;
    default: /* DEP_WIDE */
        r->kind = HEDDLE_REC_DEP;
        r->x = p[1].pair.q;
        break;
    }
}

static void unpack_submit(const union heddle_slot *p, struct heddle_rec *r)
{
    r->kind = HEDDLE_REC_SUBMIT;
    r->id = p[1].sub.q;
    r->prio = p[1].sub.prio;
    r->predicted_ns = p[1].sub.predicted_ns;
    r->x = p[0].head.kind == HEDDLE_SLOT_SUBMIT ? p[2].pair.q : 0;
}

static void unpack_ready(const union heddle_slot *p, struct heddle_rec *r)
{
    r->kind = HEDDLE_REC_READY;
    if (p[0].head.kind == HEDDLE_SLOT_READY_WIDE)
        r->id = p[1].pair.q;
    else
        r->id = (uint64_t)p[0].head.a << 48 | (uint64_t)p[0].head.b << 32 | p[0].head.c;
}

/* Unpacks the record at p and returns its slots. Fields that the kind does not
 * have keep what they had: the coder does not look at them. */
static unsigned unpack(const union heddle_slot *p, struct heddle_rec *r)
{
    const unsigned kind = p[0].head.kind;

    HEDDLE_ASSERT(kind < HEDDLE_SLOT_KINDS && slot_count[kind] > 0);
    r->t = p[0].head.q;
    r->c = p[0].head.c;
    r->b = p[0].head.b;
    r->a = p[0].head.a;
    switch (kind) {
    case HEDDLE_SLOT_TASK:
    case HEDDLE_SLOT_TASK_WIDE:
        r->kind = HEDDLE_REC_TASK;
        r->id = p[1].body.q;
        r->x = kind == HEDDLE_SLOT_TASK ? p[1].body.lo : p[2].pair.q;
        r->y = p[1].body.hi;
        break;
    case HEDDLE_SLOT_SUBMIT:
    case HEDDLE_SLOT_SUBMIT_TOP: unpack_submit(p, r); break;
    case HEDDLE_SLOT_READY:
    case HEDDLE_SLOT_READY_WIDE: unpack_ready(p, r); break;
    case HEDDLE_SLOT_STATE: r->kind = HEDDLE_REC_STATE; break;
    case HEDDLE_SLOT_MARK: r->kind = HEDDLE_REC_MARK; break;
    case HEDDLE_SLOT_EVENT:
        r->kind = HEDDLE_REC_EVENT;
        r->id = p[1].pair.q;
        r->x = p[1].pair.r;
        r->y = p[2].pair.q;
        r->z = p[2].pair.r;
        break;
    default: unpack_untimed(p, r); break;
    }
    return slot_count[kind];
}

static bool rec_is_timed(const struct heddle_rec *r)
{
    return r->kind != HEDDLE_REC_DEP && r->kind != HEDDLE_REC_ACCESS && r->kind != HEDDLE_REC_ATTR;
}

void heddle_pack(const union heddle_slot *p, const union heddle_slot *end, uint8_t *out,
                 struct heddle_fmt_chunk *k)
{
    struct heddle_codec c = {0};
    struct heddle_rec r = {0};
    uint8_t *q = out + 8;
    uint64_t base = 0, first = UINT64_MAX, last = 0;
    uint64_t done;
    uint32_t n = 0;
    bool has_time = false;

    for (; p < end; n++) {
        p += unpack(p, &r);
        if (rec_is_timed(&r)) {
            if (!has_time)
                base = c.t = r.t;
            has_time = true;
            /* x is a duration for tasks only. */
            done = r.kind == HEDDLE_REC_TASK ? r.t + r.x : r.t;
            first = r.t < first ? r.t : first;
            last = done > last ? done : last;
        }
        q = heddle_rec_encode(&c, &r, q);
    }
    heddle_put_le(out, base, 8);
    *k = (struct heddle_fmt_chunk){
        .kind = HEDDLE_FMT_RECORDS,
        .codec = 1,
        .payload_bytes = (uint32_t)(q - out),
        .nrecords = n,
        .first_tick = has_time ? first : 0,
        .last_tick = last,
        .payload_sum = heddle_fmt_sum(out, (size_t)(q - out)),
    };
}
