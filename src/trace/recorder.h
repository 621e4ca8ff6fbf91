/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TRACE_RECORDER_H
#define HEDDLE_TRACE_RECORDER_H

/*
 * The inline half of the recorder, included by trace/trace.h. Each function
 * tests its mask bit first: a record that is off costs a load and a branch.
 * Times are heddle_ticks(), ids are any 64-bit number.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"
#include "heddle/trace.h"

/* Mask bits; a level is a set of them. */
enum heddle_trace_bit {
    HEDDLE_TRACE_TASK = 1u << 0,
    HEDDLE_TRACE_BLOCK = 1u << 1, /* states SLEEP and WAKE */
    HEDDLE_TRACE_SUBMIT = 1u << 2,
    HEDDLE_TRACE_DEP = 1u << 3,
    HEDDLE_TRACE_ACCESS = 1u << 4,
    HEDDLE_TRACE_READY = 1u << 5,
    HEDDLE_TRACE_STATE = 1u << 6, /* the other states */
    HEDDLE_TRACE_MARK = 1u << 7,
    HEDDLE_TRACE_ATTR = 1u << 8,
    HEDDLE_TRACE_DATA = 1u << 9,   /* transfers, memory, power */
    HEDDLE_TRACE_SCHED = 1u << 10, /* push, pop, steal, split */
    HEDDLE_TRACE_EXPERT = 1u << 11,
};

/* Kinds of records in memory; WIDE ones have fields that did not fit. */
enum heddle_slot_kind {
    HEDDLE_SLOT_TASK = 1,        /* 2 slots */
    HEDDLE_SLOT_TASK_WIDE = 2,   /* 3 */
    HEDDLE_SLOT_SUBMIT = 3,      /* 3 */
    HEDDLE_SLOT_DEP = 4,         /* 1 */
    HEDDLE_SLOT_DEP_WIDE = 5,    /* 2 */
    HEDDLE_SLOT_ACCESS = 6,      /* 1 */
    HEDDLE_SLOT_READY = 7,       /* 1 */
    HEDDLE_SLOT_READY_WIDE = 8,  /* 2 */
    HEDDLE_SLOT_STATE = 9,       /* 1 */
    HEDDLE_SLOT_MARK = 10,       /* 1 */
    HEDDLE_SLOT_ATTR = 11,       /* 2 */
    HEDDLE_SLOT_EVENT = 12,      /* 3 */
    HEDDLE_SLOT_SUBMIT_TOP = 13, /* 2; of the main program */
    HEDDLE_SLOT_KINDS = 14,
};

#define HEDDLE_SLOTS_MAX 3 /* of one record */

/* A record is 1 to 3 of these; the first is a head. */
union heddle_slot {
    struct {
        uint64_t q;
        uint32_t c;
        uint16_t b;
        uint8_t a;
        uint8_t kind; /* enum heddle_slot_kind */
    } head;
    struct {
        uint64_t q;
        uint32_t lo;
        uint32_t hi;
    } body;
    struct {
        uint64_t q;
        int32_t prio;
        float predicted_ns;
    } sub;
    struct {
        uint64_t q;
        uint64_t r;
    } pair;
};

_Static_assert(sizeof(union heddle_slot) == 16, "slots are 16 bytes");

struct heddle_trace_lane {
    /* Owner thread. `p` is stored with release so that a dump, which loads it
     * with acquire, sees the records below it. */
    _Atomic(union heddle_slot *) p;
    union heddle_slot *limit; /* p <= limit: there is room for a record */

    /* Anyone. Relaxed: a level takes effect soon, nothing hangs on it. */
    _Atomic uint32_t mask;
    uint32_t index;

    /* Read-only after create. */
    struct heddle_trace *trace;
    struct heddle_lane_store *store; /* chunks: recorder.c */
    uint8_t pad[24];
};

_Static_assert(sizeof(struct heddle_trace_lane) == HEDDLE_CACHE_LINE, "a lane is one cache line");

/* Makes room: files the full chunk and starts another. Cannot fail. */
HEDDLE_COLD void heddle_trace_lane_turn(struct heddle_trace_lane *l);

static HEDDLE_INLINE bool heddle_trace_is_on(const struct heddle_trace_lane *l, uint32_t bit)
{
    return (heddle_load_rlx(&l->mask) & bit) != 0;
}

/* Room for one record of any size. */
static HEDDLE_INLINE union heddle_slot *heddle_trace_room(struct heddle_trace_lane *l)
{
    union heddle_slot *p = heddle_load_rlx(&l->p); /* only the owner writes */

    if (HEDDLE_UNLIKELY(p > l->limit)) {
        heddle_trace_lane_turn(l);
        p = heddle_load_rlx(&l->p);
    }
    return p;
}

/* Publishes everything below p; pairs with the acquire in lane_dump(). */
static HEDDLE_INLINE void heddle_trace_commit(struct heddle_trace_lane *l, union heddle_slot *p)
{
    heddle_store_rel(&l->p, p);
}

static HEDDLE_INLINE void heddle_slot_head(union heddle_slot *s, uint64_t q,
                                           enum heddle_slot_kind kind, uint32_t c, uint16_t b,
                                           uint8_t a)
{
    s->head.q = q;
    s->head.c = c;
    s->head.b = b;
    s->head.a = a;
    s->head.kind = (uint8_t)kind;
}

/*
 * Level TASKS. A task ended. `flags` is an enum heddle_log_status plus bits of
 * enum heddle_log_task_flag. `delay` is the time from ready to start in ticks,
 * 0 when it is not known. Pass the end of the task before as t_start when
 * nothing happened between: then it costs no byte in the file.
 */
static HEDDLE_INLINE void heddle_trace_task(struct heddle_trace_lane *l, uint64_t id,
                                            uint32_t kernel, uint8_t variant, uint8_t flags,
                                            uint64_t t_start, uint64_t t_end, uint32_t delay)
{
    union heddle_slot *p;
    uint64_t d;

    if (!heddle_trace_is_on(l, HEDDLE_TRACE_TASK))
        return;
    p = heddle_trace_room(l);
    /* The counters of two cores may differ by a few ticks. */
    d = t_end > t_start ? t_end - t_start : 0;
    heddle_slot_head(&p[0], t_start, HEDDLE_SLOT_TASK, kernel, flags, variant);
    p[1].body.q = id;
    p[1].body.lo = (uint32_t)d;
    p[1].body.hi = delay;
    if (HEDDLE_UNLIKELY(d >> 32 != 0)) {
        p[0].head.kind = HEDDLE_SLOT_TASK_WIDE;
        p[2].pair.q = d;
        p[2].pair.r = delay;
        heddle_trace_commit(l, p + 3);
        return;
    }
    heddle_trace_commit(l, p + 2);
}

/* Level GRAPH. parent 0: the main program; predicted_ns 0: none. */
static HEDDLE_INLINE void heddle_trace_submit(struct heddle_trace_lane *l, uint64_t id,
                                              uint32_t kernel, int32_t prio, uint64_t t,
                                              float predicted_ns, uint64_t parent)
{
    union heddle_slot *p;

    if (!heddle_trace_is_on(l, HEDDLE_TRACE_SUBMIT))
        return;
    p = heddle_trace_room(l);
    heddle_slot_head(&p[0], t, parent == 0 ? HEDDLE_SLOT_SUBMIT_TOP : HEDDLE_SLOT_SUBMIT, kernel, 0,
                     0);
    p[1].sub.q = id;
    p[1].sub.prio = prio;
    p[1].sub.predicted_ns = predicted_ns;
    if (HEDDLE_LIKELY(parent == 0)) {
        heddle_trace_commit(l, p + 2);
        return;
    }
    p[2].pair.q = parent;
    p[2].pair.r = 0;
    heddle_trace_commit(l, p + 3);
}

/* Level GRAPH. `succ` waits for `pred`. */
static HEDDLE_INLINE void heddle_trace_dep(struct heddle_trace_lane *l, uint64_t succ,
                                           uint64_t pred)
{
    const uint64_t d = succ - pred;
    union heddle_slot *p;

    if (!heddle_trace_is_on(l, HEDDLE_TRACE_DEP))
        return;
    p = heddle_trace_room(l);
    heddle_slot_head(&p[0], succ, HEDDLE_SLOT_DEP, (uint32_t)d, 0, 0);
    if (HEDDLE_UNLIKELY(d >> 32 != 0)) {
        p[0].head.kind = HEDDLE_SLOT_DEP_WIDE;
        p[1].pair.q = pred;
        p[1].pair.r = 0;
        p++;
    }
    heddle_trace_commit(l, p + 1);
}

/* Level GRAPH. Operand number `operand` of `task` is `handle`. */
static HEDDLE_INLINE void heddle_trace_access(struct heddle_trace_lane *l, uint64_t task,
                                              uint32_t handle, uint8_t mode, uint16_t operand)
{
    union heddle_slot *p;

    if (!heddle_trace_is_on(l, HEDDLE_TRACE_ACCESS))
        return;
    p = heddle_trace_room(l);
    heddle_slot_head(p, task, HEDDLE_SLOT_ACCESS, handle, operand, mode);
    heddle_trace_commit(l, p + 1);
}

/* Level GRAPH. The last thing `id` waited for is done. */
static HEDDLE_INLINE void heddle_trace_ready(struct heddle_trace_lane *l, uint64_t id, uint64_t t)
{
    union heddle_slot *p;

    if (!heddle_trace_is_on(l, HEDDLE_TRACE_READY))
        return;
    p = heddle_trace_room(l);
    /* 56 bits of the id fit beside the time. */
    heddle_slot_head(p, t, HEDDLE_SLOT_READY, (uint32_t)id, (uint16_t)(id >> 32),
                     (uint8_t)(id >> 48));
    if (HEDDLE_UNLIKELY(id >> 56 != 0)) {
        p[0].head.kind = HEDDLE_SLOT_READY_WIDE;
        p[1].pair.q = id;
        p[1].pair.r = 0;
        p++;
    }
    heddle_trace_commit(l, p + 1);
}

/* Level TASKS for SLEEP and WAKE, GRAPH for the others. From t on the lane is
 * in that state, until the next one or until a task starts or ends. */
static HEDDLE_INLINE void heddle_trace_state(struct heddle_trace_lane *l,
                                             enum heddle_log_state_kind state, uint64_t t,
                                             uint32_t arg)
{
    const uint32_t bit = state == HEDDLE_LOG_SLEEP || state == HEDDLE_LOG_WAKE ? HEDDLE_TRACE_BLOCK
                                                                               : HEDDLE_TRACE_STATE;
    union heddle_slot *p;

    if (!heddle_trace_is_on(l, bit))
        return;
    p = heddle_trace_room(l);
    heddle_slot_head(p, t, HEDDLE_SLOT_STATE, arg, 0, (uint8_t)state);
    heddle_trace_commit(l, p + 1);
}

/* Level GRAPH. `string` is from heddle_trace_define_string(). */
static HEDDLE_INLINE void heddle_trace_mark(struct heddle_trace_lane *l, uint32_t string,
                                            enum heddle_log_mark_phase phase, uint64_t t)
{
    union heddle_slot *p;

    if (!heddle_trace_is_on(l, HEDDLE_TRACE_MARK))
        return;
    p = heddle_trace_room(l);
    heddle_slot_head(p, t, HEDDLE_SLOT_MARK, string, 0, (uint8_t)phase);
    heddle_trace_commit(l, p + 1);
}

/* Level GRAPH. For ATTR_NAME the value is a string id. */
static HEDDLE_INLINE void heddle_trace_attr(struct heddle_trace_lane *l, uint64_t task,
                                            enum heddle_log_attr_key key, uint64_t value)
{
    union heddle_slot *p;

    if (!heddle_trace_is_on(l, HEDDLE_TRACE_ATTR))
        return;
    p = heddle_trace_room(l);
    heddle_slot_head(&p[0], task, HEDDLE_SLOT_ATTR, 0, 0, (uint8_t)key);
    p[1].pair.q = value;
    p[1].pair.r = 0;
    heddle_trace_commit(l, p + 2);
}

/* The fields of an event; docs/formats/log.md says which kind uses which. */
struct heddle_trace_event {
    uint64_t t;
    uint64_t task;
    uint64_t x;
    uint64_t y; /* ticks */
    uint64_t z; /* ticks */
    uint32_t c;
    uint16_t b;
};

/* `bit` is HEDDLE_TRACE_DATA, _SCHED or _EXPERT. */
static HEDDLE_INLINE void heddle_trace_event(struct heddle_trace_lane *l, enum heddle_trace_bit bit,
                                             enum heddle_log_event_kind kind,
                                             const struct heddle_trace_event *e)
{
    union heddle_slot *p;

    if (!heddle_trace_is_on(l, bit))
        return;
    p = heddle_trace_room(l);
    heddle_slot_head(&p[0], e->t, HEDDLE_SLOT_EVENT, e->c, e->b, (uint8_t)kind);
    p[1].pair.q = e->task;
    p[1].pair.r = e->x;
    p[2].pair.q = e->y;
    p[2].pair.r = e->z;
    heddle_trace_commit(l, p + 3);
}

#endif /* HEDDLE_TRACE_RECORDER_H */
