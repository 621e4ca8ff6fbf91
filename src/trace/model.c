/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model: turns the records of a log into arrays.
 *
 * Purpose    rows instead of coded records, times instead of ticks, indices
 *            instead of ids.
 * Structure  decode all chunks twice: once to count, once to fill arrays of
 *            exactly that size. join.c does the rest.
 * Invariants (1) both passes see the same records: decoding depends on the
 *                bytes only
 *            (2) kernel, lane and handle of every row are valid indices; what
 *                was used and not defined gets a made-up name
 *            (3) end_ns >= start_ns
 * Cost       about 25 ns per record.
 */
#include <string.h>

#include "base/assert.h"
#include "trace/log.h"

static size_t row_bytes(unsigned kind)
{
    switch ((enum heddle_rec_kind)kind) {
    case HEDDLE_REC_TASK: return sizeof(struct heddle_log_task);
    case HEDDLE_REC_SUBMIT: return sizeof(struct heddle_log_sub);
    case HEDDLE_REC_DEP: return sizeof(struct heddle_log_dep);
    case HEDDLE_REC_ACCESS: return sizeof(struct heddle_log_access);
    case HEDDLE_REC_READY: return sizeof(struct heddle_log_ready);
    case HEDDLE_REC_STATE: return sizeof(struct heddle_log_state);
    case HEDDLE_REC_MARK: return sizeof(struct heddle_log_mark);
    case HEDDLE_REC_ATTR: return sizeof(struct heddle_log_attr);
    case HEDDLE_REC_EVENT: return sizeof(struct heddle_log_event);
    case HEDDLE_REC_KINDS: break;
    }
    return 0;
}

/* ---- decoding ---- */

/* Calls put() for every record of a chunk; counts a damaged one once. */
static heddle_status chunk_walk(const struct heddle_log_chunk *k,
                                heddle_status (*put)(struct heddle_log_build *,
                                                     const struct heddle_rec *),
                                struct heddle_log_build *b, bool *is_bad)
{
    struct heddle_get g = {k->payload, k->payload + k->bytes, false};
    struct heddle_codec c = {0};
    struct heddle_rec r;
    const uint8_t *base = heddle_get_bytes(&g, 8);
    uint64_t n = 0;

    if (base != NULL)
        c.t = heddle_get_le64(base);
    for (; heddle_rec_decode(&c, &g, &r); n++)
        HEDDLE_TRY(put(b, &r));
    *is_bad = g.bad || n != k->nrecords;
    return HEDDLE_OK;
}

static heddle_status count_put(struct heddle_log_build *b, const struct heddle_rec *r)
{
    b->cap[r->kind]++;
    return HEDDLE_OK;
}

static heddle_status kernel_index(heddle_log *log, uint32_t id, uint32_t *out)
{
    const size_t n = log->kernels.n;
    struct heddle_log_kernel *k;

    HEDDLE_TRY(heddle_table_at(&log->kernels, id, out));
    if (log->kernels.n == n) /* known: definitions have names */
        return HEDDLE_OK;
    k = (struct heddle_log_kernel *)(void *)log->kernels.items + *out;
    k->id = id;
    return heddle_log_name(log, "kernel", id, &k->name);
}

static heddle_status handle_index(heddle_log *log, uint32_t id, uint32_t *out)
{
    const size_t n = log->handles.n;
    struct heddle_log_handle *h;

    HEDDLE_TRY(heddle_table_at(&log->handles, id, out));
    if (log->handles.n == n)
        return HEDDLE_OK;
    h = (struct heddle_log_handle *)(void *)log->handles.items + *out;
    h->id = id;
    h->parent = *out;
    return heddle_log_name(log, "handle", id, &h->name);
}

static heddle_status put_task(struct heddle_log_build *b, const struct heddle_rec *r)
{
    struct heddle_log_task *t = &b->exec[b->n[HEDDLE_REC_TASK]];
    const uint8_t status = r->b & 7;

    *t = (struct heddle_log_task){
        .id = r->id,
        .submit_ns = HEDDLE_LOG_NONE,
        .ready_ns = HEDDLE_LOG_NONE,
        .start_ns = heddle_log_time(b->log, r->t),
        .end_ns = heddle_log_time(b->log, r->t + r->x),
        .lane = b->lane,
        .variant = r->a,
        .status = status <= HEDDLE_LOG_DECLINED ? status : HEDDLE_LOG_FAILED,
        .flags = (uint8_t)(r->b & ~7u),
    };
    if (t->end_ns < t->start_ns)
        t->end_ns = t->start_ns;
    if (r->y != 0)
        t->ready_ns = heddle_log_time(b->log, r->t - r->y);
    return kernel_index(b->log, r->c, &t->kernel);
}

static heddle_status put_submit(struct heddle_log_build *b, const struct heddle_rec *r)
{
    struct heddle_log_sub *s = &b->sub[b->n[HEDDLE_REC_SUBMIT]];

    *s = (struct heddle_log_sub){
        .id = r->id,
        .parent = r->x,
        .t_ns = heddle_log_time(b->log, r->t),
        .prio = r->prio,
        .predicted_ns = r->predicted_ns > 0.0f && r->predicted_ns < 1e30f ? r->predicted_ns : 0.0f,
    };
    return kernel_index(b->log, r->c, &s->kernel);
}

static heddle_status put_mark(struct heddle_log_build *b, const struct heddle_rec *r)
{
    heddle_log *log = b->log;
    struct heddle_log_mark *m = &log->arr.marks[b->n[HEDDLE_REC_MARK]];
    const char **place;
    uint32_t i;

    *m = (struct heddle_log_mark){
        .t_ns = heddle_log_time(log, r->t), .lane = b->lane, .phase = r->a};
    HEDDLE_TRY(heddle_table_at(&log->strings, r->c, &i));
    place = (const char **)(void *)log->strings.items + i;
    if (*place == NULL)
        HEDDLE_TRY(heddle_log_name(log, "string", r->c, place));
    m->text = *place;
    return HEDDLE_OK;
}

static void put_event(struct heddle_log_build *b, const struct heddle_rec *r)
{
    const heddle_log *log = b->log;
    const int64_t t = heddle_log_time(log, r->t);

    log->arr.events[b->n[HEDDLE_REC_EVENT]] = (struct heddle_log_event){
        .t_ns = t,
        .task = r->id,
        .x = r->x,
        .y_ns = heddle_log_time(log, r->t + r->y) - t,
        .z_ns = heddle_log_time(log, r->t + r->z) - t,
        .lane = b->lane,
        .c = r->c,
        .b = r->b,
        .kind = r->a,
    };
}

static heddle_status put_access(struct heddle_log_build *b, const struct heddle_rec *r)
{
    struct heddle_log_access *x = &b->log->arr.accesses[b->n[HEDDLE_REC_ACCESS]];

    *x = (struct heddle_log_access){.task = r->id, .operand = r->b, .mode = r->a};
    return handle_index(b->log, r->c, &x->handle);
}

static heddle_status fill_put(struct heddle_log_build *b, const struct heddle_rec *r)
{
    struct heddle_log_arrays *arr = &b->log->arr;
    const size_t i = b->n[r->kind];
    heddle_status st = HEDDLE_OK;

    HEDDLE_ASSERT(i < b->cap[r->kind]); /* invariant (1) */
    switch ((enum heddle_rec_kind)r->kind) {
    case HEDDLE_REC_TASK: st = put_task(b, r); break;
    case HEDDLE_REC_SUBMIT: st = put_submit(b, r); break;
    case HEDDLE_REC_ACCESS: st = put_access(b, r); break;
    case HEDDLE_REC_MARK: st = put_mark(b, r); break;
    case HEDDLE_REC_EVENT: put_event(b, r); break;
    case HEDDLE_REC_DEP: arr->deps[i] = (struct heddle_log_dep){.succ = r->id, .pred = r->x}; break;
    case HEDDLE_REC_READY:
        b->ready[i] = (struct heddle_log_ready){.id = r->id, .t_ns = heddle_log_time(b->log, r->t)};
        break;
    case HEDDLE_REC_STATE:
        arr->states[i] = (struct heddle_log_state){
            .start_ns = heddle_log_time(b->log, r->t),
            .lane = b->lane,
            .arg = r->c,
            .state = r->a,
        };
        break;
    case HEDDLE_REC_ATTR:
        arr->attrs[i] = (struct heddle_log_attr){.task = r->id, .value = r->x, .key = r->a};
        break;
    case HEDDLE_REC_KINDS: break;
    }
    b->n[r->kind]++;
    return st;
}

static heddle_status rows_alloc(struct heddle_log_build *b, unsigned kind, void **out)
{
    size_t bytes;

    *out = NULL;
    if (b->cap[kind] == 0)
        return HEDDLE_OK;
    if (b->cap[kind] >= UINT32_MAX)
        return HEDDLE_EOVERFLOW;
    if (!heddle_mul(&bytes, b->cap[kind], row_bytes(kind)))
        return HEDDLE_ENOMEM;
    *out = heddle_alloc_large(b->log->a, bytes); /* invariant (1) fills it */
    return *out == NULL ? HEDDLE_ENOMEM : HEDDLE_OK;
}

static heddle_status build_alloc(struct heddle_log_build *b)
{
    struct heddle_log_arrays *r = &b->log->arr;
    void *p;

    HEDDLE_TRY(rows_alloc(b, HEDDLE_REC_TASK, &p));
    b->exec = p;
    HEDDLE_TRY(rows_alloc(b, HEDDLE_REC_SUBMIT, &p));
    b->sub = p;
    HEDDLE_TRY(rows_alloc(b, HEDDLE_REC_READY, &p));
    b->ready = p;
    HEDDLE_TRY(rows_alloc(b, HEDDLE_REC_DEP, &p));
    r->deps = p;
    r->ndeps = b->cap[HEDDLE_REC_DEP];
    HEDDLE_TRY(rows_alloc(b, HEDDLE_REC_ACCESS, &p));
    r->accesses = p;
    r->naccesses = b->cap[HEDDLE_REC_ACCESS];
    HEDDLE_TRY(rows_alloc(b, HEDDLE_REC_STATE, &p));
    r->states = p;
    r->nstates = b->cap[HEDDLE_REC_STATE];
    HEDDLE_TRY(rows_alloc(b, HEDDLE_REC_MARK, &p));
    r->marks = p;
    r->nmarks = b->cap[HEDDLE_REC_MARK];
    HEDDLE_TRY(rows_alloc(b, HEDDLE_REC_ATTR, &p));
    r->attrs = p;
    r->nattrs = b->cap[HEDDLE_REC_ATTR];
    HEDDLE_TRY(rows_alloc(b, HEDDLE_REC_EVENT, &p));
    r->events = p;
    r->nevents = b->cap[HEDDLE_REC_EVENT];
    return HEDDLE_OK;
}

static heddle_status lanes_name(heddle_log *log)
{
    struct heddle_log_lane *l = (struct heddle_log_lane *)(void *)log->lanes.items;

    for (size_t i = 0; i < log->lanes.n; i++)
        if (l[i].name == NULL || l[i].name[0] == '\0')
            HEDDLE_TRY(heddle_log_name(log, "lane", l[i].id, &l[i].name));
    return HEDDLE_OK;
}

static heddle_status read_all(struct heddle_log_build *b)
{
    heddle_log *log = b->log;
    struct heddle_log_lane *l;
    bool is_bad;
    size_t n;

    for (size_t i = 0; i < log->nchunks; i++) {
        if (log->chunks[i].kind != HEDDLE_FMT_RECORDS)
            continue;
        HEDDLE_TRY(chunk_walk(&log->chunks[i], count_put, b, &is_bad));
        if (is_bad)
            log->v.ndamaged++;
    }
    HEDDLE_TRY(build_alloc(b));
    for (size_t i = 0; i < log->nchunks; i++) {
        if (log->chunks[i].kind != HEDDLE_FMT_RECORDS)
            continue;
        n = log->lanes.n;
        HEDDLE_TRY(heddle_table_at(&log->lanes, log->chunks[i].lane, &b->lane));
        l = (struct heddle_log_lane *)(void *)log->lanes.items + b->lane;
        if (n != log->lanes.n) /* never defined */
            *l = (struct heddle_log_lane){
                .id = log->chunks[i].lane, .kind = HEDDLE_LOG_OTHER, .cpu = -1};
        l->nrecords += log->chunks[i].nrecords;
        HEDDLE_TRY(chunk_walk(&log->chunks[i], fill_put, b, &is_bad));
    }
    return lanes_name(log);
}

heddle_status heddle_log_read_records(heddle_log *log)
{
    struct heddle_log_build b = {.log = log};
    heddle_status st = read_all(&b);

    if (st == HEDDLE_OK)
        st = heddle_log_join(&b);
    heddle_free(log->a, b.exec, b.cap[HEDDLE_REC_TASK] * sizeof *b.exec);
    heddle_free(log->a, b.sub, b.cap[HEDDLE_REC_SUBMIT] * sizeof *b.sub);
    heddle_free(log->a, b.ready, b.cap[HEDDLE_REC_READY] * sizeof *b.ready);
    return st;
}
