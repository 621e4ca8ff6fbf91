/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * export_perfetto: the protobuf of Perfetto, for ui.perfetto.dev and its
 * trace_processor.
 *
 * Structure  Trace { repeated TracePacket packet = 1 }, written by hand: one
 *            packet with all interned names, one per track, then one per
 *            begin, end, mark and counter value, each kind by time. A group
 *            per memory node holds its lanes and its counter; the group
 *            "transfers" holds a track per link.
 * Names      numbers of interned names: kernels, then states, then kinds of
 *            transfers; the text of marks and tasks is written in place.
 * Times      nanoseconds, from the earliest in the log when it has some before
 *            its time 0.
 * Flows      with --deps: one per dependency, from the begin of the
 *            predecessor to the begin of the successor.
 */
#include "base/assert.h"
#include "trace/export.h"
#include "trace/spans.h"
#include "trace/store.h"

/* Field numbers of the messages. */
enum {
    TRACE_PACKET = 1,

    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE_ID = 10,
    PACKET_EVENT = 11,
    PACKET_INTERNED = 12,
    PACKET_FLAGS = 13,
    PACKET_TRACK = 60,

    INTERNED_NAMES = 2,
    INTERNED_ARGS = 3,
    NAME_IID = 1,
    NAME_TEXT = 2,

    TRACK_UUID = 1,
    TRACK_NAME = 2,
    TRACK_PARENT = 5,
    TRACK_COUNTER = 8,
    TRACK_ORDERING = 11,
    TRACK_RANK = 12,
    COUNTER_UNIT = 3,

    EVENT_ARG = 4,
    EVENT_TYPE = 9,
    EVENT_NAME_IID = 10,
    EVENT_TRACK = 11,
    EVENT_NAME = 23,
    EVENT_VALUE = 30,
    EVENT_FLOW = 47,
    EVENT_FLOW_END = 48,

    ARG_NAME_IID = 1,
    ARG_UINT = 3,
    ARG_INT = 4,
    ARG_STRING = 6,
};

enum { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4 };
enum { UNIT_COUNT = 2, UNIT_BYTES = 3 };
enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };
enum { FLAGS_CLEARED = 1, FLAGS_NEEDED = 2, EXPLICIT_ORDER = 3 };

/* Numbers of tracks: lanes and links get FIRST_TRACK + track. */
enum {
    TRACK_READY = 1,
    TRACK_LINKS = 2,
    FIRST_TRACK = 16,
};
/* Far above any number of lanes; plus the number of a node or domain. */
#define TRACK_NODE   (UINT64_C(1) << 40)
#define TRACK_MEMORY (UINT64_C(2) << 40)
#define TRACK_ENERGY (UINT64_C(3) << 40)

enum arg {
    ARG_ID = 1,
    ARG_TASK,
    ARG_STATUS,
    ARG_VARIANT,
    ARG_PRIORITY,
    ARG_SUBMIT,
    ARG_READY,
    ARG_PREDICTED,
    ARG_BYTES,
    ARG_HANDLE,
    ARG_LAST = ARG_HANDLE,
};

static const char *const arg_name[] = {
    [ARG_ID] = "task",           [ARG_TASK] = "name",
    [ARG_STATUS] = "status",     [ARG_VARIANT] = "variant",
    [ARG_PRIORITY] = "priority", [ARG_SUBMIT] = "submitted_ns",
    [ARG_READY] = "ready_ns",    [ARG_PREDICTED] = "predicted_ns",
    [ARG_BYTES] = "bytes",       [ARG_HANDLE] = "handle",
};

/* A message being built. `bad` is sticky: no memory. */
struct msg {
    const struct heddle_allocator *a;
    struct heddle_bytes b;
    bool bad;
};

struct writer {
    const heddle_log *log;
    FILE *f;
    struct heddle_spans s;
    struct msg packet, body, inner;
    struct heddle_pair *by_pred; /* deps: key pred, idx number; with --deps */
};

/* ---- protobuf ---- */

#define NUMBER_MAX 10

static void put_varint(struct msg *m, uint64_t v)
{
    if (m->bad || !heddle_bytes_room(&m->b, m->a, NUMBER_MAX, SIZE_MAX)) {
        m->bad = true;
        return;
    }
    m->b.len = (size_t)(heddle_put_leb(m->b.p + m->b.len, v) - m->b.p);
}

static void put_raw(struct msg *m, const void *p, size_t n)
{
    if (m->bad || !heddle_bytes_room(&m->b, m->a, n, SIZE_MAX)) {
        m->bad = true;
        return;
    }
    if (n > 0)
        memcpy(m->b.p + m->b.len, p, n);
    m->b.len += n;
}

static void put_uint(struct msg *m, unsigned field, uint64_t v)
{
    put_varint(m, (uint64_t)field << 3 | WIRE_VARINT);
    put_varint(m, v);
}

static void put_fixed64(struct msg *m, unsigned field, uint64_t v)
{
    uint8_t raw[8];

    heddle_put_le(raw, v, 8);
    put_varint(m, (uint64_t)field << 3 | WIRE_FIXED64);
    put_raw(m, raw, sizeof raw);
}

static void put_bytes(struct msg *m, unsigned field, const void *p, size_t n)
{
    put_varint(m, (uint64_t)field << 3 | WIRE_BYTES);
    put_varint(m, n);
    put_raw(m, p, n);
}

static void put_text(struct msg *m, unsigned field, const char *s)
{
    put_bytes(m, field, s, strlen(s));
}

/* Puts `in` into `m` and empties it. */
static void put_msg(struct msg *m, unsigned field, struct msg *in)
{
    m->bad |= in->bad;
    put_bytes(m, field, in->b.p, in->b.len);
    in->b.len = 0;
}

/* The packet that holds `body` as field `field`. */
static void put_packet(struct writer *w, unsigned field, unsigned flags)
{
    struct msg *m = &w->packet;
    uint8_t head[1 + NUMBER_MAX];
    uint8_t *p = head;

    put_uint(m, PACKET_SEQUENCE_ID, 1);
    put_uint(m, PACKET_FLAGS, flags);
    put_msg(m, field, &w->body);
    *p++ = TRACE_PACKET << 3 | WIRE_BYTES;
    p = heddle_put_leb(p, m->b.len);
    if (!m->bad) {
        fwrite(head, 1, (size_t)(p - head), w->f);
        fwrite(m->b.p, 1, m->b.len, w->f);
    }
    m->b.len = 0;
}

/* ---- names and tracks ---- */

static uint64_t state_iid(const struct writer *w, unsigned state)
{
    return w->log->v.nkernels + 1 + state;
}

static uint64_t move_iid(const struct writer *w, unsigned kind)
{
    return state_iid(w, HEDDLE_LOG_MEMORY + 1) + kind - HEDDLE_LOG_FETCH;
}

static void put_name(struct writer *w, unsigned field, uint64_t iid, const char *name)
{
    put_uint(&w->inner, NAME_IID, iid);
    put_text(&w->inner, NAME_TEXT, name);
    put_msg(&w->body, field, &w->inner);
}

static void put_names(struct writer *w)
{
    const struct heddle_log_view *v = &w->log->v;

    for (size_t i = 0; i < v->nkernels; i++)
        put_name(w, INTERNED_NAMES, i + 1, v->kernels[i].name);
    for (unsigned i = 0; i <= HEDDLE_LOG_MEMORY; i++)
        put_name(w, INTERNED_NAMES, state_iid(w, i), heddle_log_state_name(i));
    for (unsigned i = HEDDLE_LOG_FETCH; i <= HEDDLE_LOG_EVICT; i++)
        put_name(w, INTERNED_NAMES, move_iid(w, i), heddle_log_event_name(i));
    for (unsigned i = 1; i <= ARG_LAST; i++)
        put_name(w, INTERNED_ARGS, i, arg_name[i]);
    put_packet(w, PACKET_INTERNED, FLAGS_CLEARED);
}

/* unit 0: not a counter; parent 0: none. */
static void put_track(struct writer *w, uint64_t uuid, const char *name, uint64_t parent,
                      unsigned unit, uint64_t rank)
{
    put_uint(&w->body, TRACK_UUID, uuid);
    put_text(&w->body, TRACK_NAME, name);
    if (parent != 0)
        put_uint(&w->body, TRACK_PARENT, parent);
    if (unit != 0) {
        put_uint(&w->inner, COUNTER_UNIT, unit);
        put_msg(&w->body, TRACK_COUNTER, &w->inner);
    }
    put_uint(&w->body, TRACK_ORDERING, EXPLICIT_ORDER);
    put_uint(&w->body, TRACK_RANK, rank);
    put_packet(w, PACKET_TRACK, FLAGS_NEEDED);
}

static void put_node(struct writer *w, uint32_t id)
{
    char name[HEDDLE_SPAN_NAME];

    heddle_span_node(&w->log->v, id, name, sizeof name);
    put_track(w, TRACK_NODE + id, name, 0, 0, id);
    if ((w->s.node[id] & HEDDLE_NODE_MEMORY) != 0)
        put_track(w, TRACK_MEMORY + id, "memory", TRACK_NODE + id, UNIT_BYTES, 0);
}

static void put_tracks(struct writer *w)
{
    const struct heddle_log_view *v = &w->log->v;
    char name[HEDDLE_SPAN_NAME];

    for (uint32_t i = 0; i < HEDDLE_SPAN_NODES; i++)
        if ((w->s.node[i] & HEDDLE_NODE_USED) != 0)
            put_node(w, i);
    for (uint32_t i = 0; i < HEDDLE_SPAN_NODES; i++)
        if ((w->s.node[i] & HEDDLE_NODE_ENERGY) != 0)
            put_track(w, TRACK_ENERGY + i, "energy in microjoules", 0, UNIT_COUNT, i);
    for (size_t i = 0; i < v->nlanes; i++)
        put_track(w, FIRST_TRACK + i, v->lanes[i].name,
                  v->lanes[i].node < HEDDLE_SPAN_NODES ? TRACK_NODE + v->lanes[i].node : 0, 0,
                  i + 1);
    if (w->s.nlinks > 0)
        put_track(w, TRACK_LINKS, "transfers", 0, 0, UINT32_MAX / 2);
    for (uint32_t i = 0; i < w->s.nlinks; i++)
        put_track(w, FIRST_TRACK + v->nlanes + i, heddle_span_link_name(v, &w->s.link[i], name),
                  TRACK_LINKS, 0, i);
}

/* ---- events ---- */

static void event_begin(struct writer *w, unsigned type, uint64_t track, int64_t t)
{
    put_uint(&w->packet, PACKET_TIMESTAMP, (uint64_t)(t - w->s.base_ns));
    put_uint(&w->body, EVENT_TYPE, type);
    put_uint(&w->body, EVENT_TRACK, track);
}

static void event_end(struct writer *w)
{
    put_packet(w, PACKET_EVENT, FLAGS_NEEDED);
}

static void put_arg(struct writer *w, enum arg arg, unsigned field, uint64_t v)
{
    put_uint(&w->inner, ARG_NAME_IID, arg);
    put_uint(&w->inner, field, v);
    put_msg(&w->body, EVENT_ARG, &w->inner);
}

static void put_arg_text(struct writer *w, enum arg arg, const char *s)
{
    put_uint(&w->inner, ARG_NAME_IID, arg);
    put_text(&w->inner, ARG_STRING, s);
    put_msg(&w->body, EVENT_ARG, &w->inner);
}

/* Has the task an execution that a flow can begin or end at? */
static bool is_drawn(const heddle_log *log, uint64_t id)
{
    const size_t i = heddle_log_find_task(log, id);

    return i != SIZE_MAX && log->v.tasks[i].lane != HEDDLE_LOG_NO_LANE;
}

/* Flows of the first execution of a task; the number of one is that of its
 * dependency, from 1. */
static void put_flows(struct writer *w, const struct heddle_log_task *t, size_t idx)
{
    const struct heddle_log_view *v = &w->log->v;
    size_t lo = 0, hi = v->ndeps, mid, first, last;

    if (w->by_pred == NULL || heddle_log_find_task(w->log, t->id) != idx)
        return;
    while (lo < hi) {
        mid = lo + (hi - lo) / 2;
        if (w->by_pred[mid].key < t->id)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < v->ndeps && w->by_pred[lo].key == t->id; lo++)
        if (is_drawn(w->log, v->deps[w->by_pred[lo].idx].succ))
            put_fixed64(&w->body, EVENT_FLOW, w->by_pred[lo].idx + 1);
    heddle_log_find_deps(w->log, t->id, &first, &last);
    for (size_t i = first; i < last; i++)
        if (is_drawn(w->log, v->deps[i].pred))
            put_fixed64(&w->body, EVENT_FLOW_END, i + 1);
}

static void put_task(struct writer *w, size_t idx)
{
    const struct heddle_log_task *t = &w->log->v.tasks[idx];

    put_uint(&w->body, EVENT_NAME_IID, (uint64_t)t->kernel + 1);
    put_arg(w, ARG_ID, ARG_UINT, t->id);
    if (t->name != NULL)
        put_arg_text(w, ARG_TASK, t->name);
    if (t->status != HEDDLE_LOG_OK)
        put_arg_text(w, ARG_STATUS, heddle_log_status_name(t->status));
    put_arg(w, ARG_VARIANT, ARG_UINT, t->variant);
    if (t->priority != 0)
        put_arg(w, ARG_PRIORITY, ARG_INT, (uint64_t)(int64_t)t->priority);
    if (t->submit_ns != HEDDLE_LOG_NONE)
        put_arg(w, ARG_SUBMIT, ARG_INT, (uint64_t)t->submit_ns);
    if (t->ready_ns != HEDDLE_LOG_NONE)
        put_arg(w, ARG_READY, ARG_INT, (uint64_t)t->ready_ns);
    if (t->predicted_ns > 0.0f && t->predicted_ns < 1e18f)
        put_arg(w, ARG_PREDICTED, ARG_UINT, (uint64_t)t->predicted_ns);
    put_flows(w, t, idx);
}

static void put_begin(struct writer *w, const struct heddle_span *p)
{
    const struct heddle_log_view *v = &w->log->v;
    const struct heddle_log_event *e;

    switch ((enum heddle_span_kind)p->kind) {
    case HEDDLE_SPAN_TASK: put_task(w, p->idx); break;
    case HEDDLE_SPAN_STATE:
        if (v->states[p->idx].state <= HEDDLE_LOG_MEMORY)
            put_uint(&w->body, EVENT_NAME_IID, state_iid(w, v->states[p->idx].state));
        break;
    case HEDDLE_SPAN_MOVE:
        e = &v->events[p->idx];
        put_uint(&w->body, EVENT_NAME_IID, move_iid(w, e->kind));
        put_arg(w, ARG_BYTES, ARG_UINT, e->x);
        put_arg(w, ARG_HANDLE, ARG_UINT, e->c);
        put_arg(w, ARG_ID, ARG_UINT, e->task);
        break;
    }
}

static void put_slices(struct writer *w)
{
    for (size_t i = 0; i < 2 * w->s.n; i++) {
        const struct heddle_pair *e = &w->s.edge[i];
        const struct heddle_span *p = heddle_edge_span(&w->s, e);
        const bool is_end = heddle_edge_is_end(e);

        event_begin(w, is_end ? TYPE_END : TYPE_BEGIN, FIRST_TRACK + (uint64_t)p->track,
                    heddle_edge_time(e));
        if (!is_end)
            put_begin(w, p);
        event_end(w);
    }
}

static void put_marks(struct writer *w)
{
    const struct heddle_log_view *v = &w->log->v;

    for (size_t i = 0; i < v->nmarks; i++) {
        event_begin(w, TYPE_INSTANT, FIRST_TRACK + (uint64_t)v->marks[i].lane, v->marks[i].t_ns);
        put_text(&w->body, EVENT_NAME, v->marks[i].text);
        event_end(w);
    }
}

static void put_value(struct writer *w, uint64_t track, int64_t t, uint64_t value)
{
    event_begin(w, TYPE_COUNTER, track, t);
    put_uint(&w->body, EVENT_VALUE, value & INT64_MAX);
    event_end(w);
}

static heddle_status put_counters(struct writer *w)
{
    const struct heddle_log_view *v = &w->log->v;
    struct heddle_pair *ready;
    size_t n;

    HEDDLE_TRY(heddle_ready_curve(w->log, &ready, &n));
    if (n > 0)
        put_track(w, TRACK_READY, "ready tasks", 0, UNIT_COUNT, 0);
    for (size_t i = 0; i < n; i++)
        put_value(w, TRACK_READY, heddle_edge_time(&ready[i]), ready[i].idx);
    heddle_ready_free(w->log, ready);
    for (size_t i = 0; i < v->nevents; i++) {
        const struct heddle_log_event *e = &v->events[i];

        if (heddle_event_is_memory(e))
            put_value(w, TRACK_MEMORY + e->b, e->t_ns, e->x);
        else if (e->kind == HEDDLE_LOG_POWER)
            put_value(w, TRACK_ENERGY + e->b, e->t_ns, e->x);
    }
    return HEDDLE_OK;
}

/* Dependencies by predecessor. */
static heddle_status flows_init(struct writer *w)
{
    const struct heddle_log_view *v = &w->log->v;

    if (v->ndeps == 0)
        return HEDDLE_OK;
    w->by_pred = heddle_zalloc(w->log->a, 2 * v->ndeps, sizeof *w->by_pred);
    if (w->by_pred == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < v->ndeps; i++)
        w->by_pred[i] = (struct heddle_pair){v->deps[i].pred, i};
    heddle_sort_pairs(w->by_pred, w->by_pred + v->ndeps, v->ndeps);
    return HEDDLE_OK;
}

static heddle_status perfetto_write(struct writer *w, unsigned flags)
{
    HEDDLE_TRY(heddle_spans_init(&w->s, w->log, flags));
    if ((flags & HEDDLE_LOG_EXPORT_DEPS) != 0)
        HEDDLE_TRY(flows_init(w));
    put_names(w);
    put_tracks(w);
    put_slices(w);
    put_marks(w);
    HEDDLE_TRY(put_counters(w));
    return w->packet.bad ? HEDDLE_ENOMEM : HEDDLE_OK;
}

static heddle_status perfetto_run(const heddle_log *log, FILE *out, unsigned flags)
{
    struct writer w = {
        .log = log, .f = out, .packet.a = log->a, .body.a = log->a, .inner.a = log->a};
    const heddle_status st = perfetto_write(&w, flags);

    heddle_free(log->a, w.by_pred, 2 * log->v.ndeps * sizeof *w.by_pred);
    heddle_spans_fini(&w.s, log);
    heddle_bytes_fini(&w.packet.b, log->a);
    heddle_bytes_fini(&w.body.b, log->a);
    heddle_bytes_fini(&w.inner.b, log->a);
    return st;
}

const struct heddle_export_ops heddle_export_perfetto = {
    .format =
        {
            .name = "perfetto",
            .help = "Perfetto protobuf: ui.perfetto.dev, trace_processor",
        },
    .run = perfetto_run,
};
