/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recorder: lanes, their chunks, and the two modes of a trace.
 *
 * Purpose    the cold half of trace.h: what happens when a chunk is full, when
 *            the trace begins, is dumped and ends.
 * Structure  flight recorder: a ring of nchunks chunks per lane; file: one
 *            chunk per lane and a scratch buffer as long as its coded form.
 *            All of it is allocated in create: recording allocates nothing.
 * Invariants (1) mem <= p <= limit + HEDDLE_SLOTS_MAX within one chunk, so a
 *                record of any kind fits when p <= limit
 *            (2) flight: chunks cur - nfull .. cur - 1 (in ring order) are full
 *                and do not change while the lane's lock is held; chunk cur is
 *                whole up to p
 *            (3) off: mask is 0 for ever, p and limit are NULL
 *            (4) file: slots mem .. mem + from of a chunk are in the file, and
 *                chunks of a lane are written in order: the lane's lock is held
 *                from the look at `from` until they are
 * Threads    p, limit: the owner of the lane. cur, nfull, used, from: lane lock.
 *            writer, spare, next_epoch: file_lock.
 */
#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "trace/store.h"

#define CHUNK_BYTES     65536
#define CHUNK_BYTES_MIN 256
#define CHUNK_BYTES_MAX (UINT32_C(1) << 28)
#define NCHUNKS         4
#define NCHUNKS_MAX     65536
#define DEF_BYTES       (UINT32_C(1) << 24)
#define DEF_BYTES_MAX   (UINT32_C(1) << 30)
#define PAGE_BYTES      4096
#define FLUSH_MS        1000

static uint32_t level_mask(int level)
{
    uint32_t m = 0;

    if (level >= HEDDLE_LOG_TASKS)
        m |= HEDDLE_TRACE_TASK | HEDDLE_TRACE_BLOCK;
    if (level >= HEDDLE_LOG_GRAPH)
        m |= HEDDLE_TRACE_SUBMIT | HEDDLE_TRACE_DEP | HEDDLE_TRACE_ACCESS | HEDDLE_TRACE_READY |
             HEDDLE_TRACE_STATE | HEDDLE_TRACE_MARK | HEDDLE_TRACE_ATTR | HEDDLE_TRACE_DATA;
    if (level >= HEDDLE_LOG_SCHED)
        m |= HEDDLE_TRACE_SCHED;
    if (level >= HEDDLE_LOG_EXPERT)
        m |= HEDDLE_TRACE_EXPERT;
    return m;
}

static bool level_is_valid(int level)
{
    return level >= HEDDLE_LOG_OFF && level <= HEDDLE_LOG_EXPERT;
}

/* ---- chunks ---- */

static union heddle_slot *chunk_at(const struct heddle_trace *tr, const struct heddle_lane_store *s,
                                   uint32_t i)
{
    return s->mem + (size_t)i * tr->chunk_slots;
}

/* The owner begins chunk i. */
static void lane_begin(struct heddle_trace_lane *l, uint32_t i)
{
    union heddle_slot *first = chunk_at(l->trace, l->store, i);

    l->limit = first + l->trace->chunk_slots - HEDDLE_SLOTS_MAX;
    /* Publishes an empty chunk; pairs with the acquire in lane_copy(). */
    heddle_store_rel(&l->p, first);
}

static void flight_turn(struct heddle_trace_lane *l)
{
    struct heddle_trace *tr = l->trace;
    struct heddle_lane_store *s = l->store;
    const uint32_t next = (s->cur + 1) % tr->nchunks;

    heddle_mutex_lock(&s->lock);
    s->used[s->cur] = (uint32_t)(heddle_load_rlx(&l->p) - chunk_at(tr, s, s->cur));
    if (s->nfull + 1 == tr->nchunks)
        heddle_add_rlx(&s->overwritten, s->used[next]);
    else
        s->nfull++;
    s->cur = next;
    lane_begin(l, next);
    heddle_mutex_unlock(&s->lock);
}

/* Codes what is not in the file yet and appends it. The lane's lock is held. */
static void file_append(struct heddle_trace_lane *l, const union heddle_slot *end, bool is_last)
{
    struct heddle_trace *tr = l->trace;
    struct heddle_lane_store *s = l->store;
    struct heddle_fmt_chunk k;

    if (end == s->mem + s->from)
        return;
    heddle_pack(s->mem + s->from, end, s->coded, &k);
    s->from = (size_t)(end - s->mem);
    k.lane = l->index;
    k.lost = heddle_load_rlx(&s->lost);
    heddle_mutex_lock(&tr->file_lock);
    if (k.last_tick >= tr->next_epoch) {
        heddle_trace_define_epoch(tr);
        tr->next_epoch = k.last_tick + (uint64_t)(1e9 / tr->clock.ns_per_tick);
    }
    heddle_trace_flush_defs(tr, is_last);
    if (!heddle_log_writer_chunk(&tr->writer, &k, s->coded, is_last))
        heddle_add_rlx(&s->lost, k.nrecords);
    heddle_mutex_unlock(&tr->file_lock);
}

/* The chunk is full, or the trace ends. */
static void file_turn(struct heddle_trace_lane *l, bool is_last)
{
    struct heddle_lane_store *s = l->store;

    heddle_mutex_lock(&s->lock);
    file_append(l, heddle_load_rlx(&l->p), is_last);
    s->from = 0;
    lane_begin(l, 0);
    heddle_mutex_unlock(&s->lock);
}

void heddle_trace_flush(struct heddle_trace *tr)
{
    if (tr == NULL || !tr->is_file)
        return;
    for (uint32_t i = 0; i < tr->nlanes; i++) {
        struct heddle_lane_store *s = &tr->stores[i];

        heddle_mutex_lock(&s->lock);
        /* Acquires the records the owner has committed; pairs with the release
         * in heddle_trace_commit(). */
        file_append(&tr->lanes[i], heddle_load_acq(&tr->lanes[i].p), false);
        heddle_mutex_unlock(&s->lock);
    }
    heddle_mutex_lock(&tr->file_lock);
    heddle_trace_flush_defs(tr, false);
    heddle_mutex_unlock(&tr->file_lock);
}

void heddle_trace_lane_turn(struct heddle_trace_lane *l)
{
    if (l->trace->is_file)
        file_turn(l, false);
    else
        flight_turn(l);
}

void heddle_trace_lane_touch(struct heddle_trace_lane *l)
{
    const struct heddle_trace *tr = l->trace;
    struct heddle_lane_store *s = l->store;

    /* Nothing may be overwritten. */
    if (tr->is_off || heddle_load_rlx(&l->p) != s->mem)
        return;
    memset(s->mem, 0, tr->nchunks * tr->chunk_bytes);
    if (s->coded != NULL)
        memset(s->coded, 0, heddle_pack_bound(tr->chunk_bytes));
}

/* ---- create and close ---- */

static void store_fini(struct heddle_trace *tr, struct heddle_lane_store *s)
{
    heddle_free(tr->a, s->mem, tr->nchunks * tr->chunk_bytes);
    heddle_free(tr->a, s->used, tr->nchunks * sizeof *s->used);
    heddle_free(tr->a, s->coded, heddle_pack_bound(tr->chunk_bytes));
}

static bool store_init(struct heddle_trace *tr, struct heddle_lane_store *s)
{
    s->mem = heddle_alloc_aligned(tr->a, tr->nchunks * tr->chunk_bytes, PAGE_BYTES);
    if (tr->is_file)
        s->coded = heddle_alloc(tr->a, heddle_pack_bound(tr->chunk_bytes));
    else
        s->used = heddle_zalloc(tr->a, tr->nchunks, sizeof *s->used);
    return s->mem != NULL && (s->coded != NULL || s->used != NULL);
}

/* Everything but the file. Accepts a half-built trace. */
static void trace_free(struct heddle_trace *tr)
{
    const struct heddle_allocator *a = tr->a;

    if (tr->stores != NULL) {
        for (uint32_t i = 0; i < tr->nlanes; i++) {
            heddle_mutex_fini(&tr->stores[i].lock);
            store_fini(tr, &tr->stores[i]);
        }
    }
    heddle_mutex_fini(&tr->file_lock);
    heddle_mutex_fini(&tr->def_lock);
    heddle_bytes_fini(&tr->defs, a);
    heddle_bytes_fini(&tr->spare, a);
    heddle_map_fini(&tr->strings);
    heddle_free(a, tr->stores, tr->nlanes * sizeof *tr->stores);
    heddle_free(a, tr->lanes, tr->nlanes * sizeof *tr->lanes);
    heddle_free(a, tr, sizeof *tr);
}

static heddle_status lanes_init(struct heddle_trace *tr)
{
    struct heddle_trace_lane *l;

    tr->stores = heddle_zalloc_aligned(tr->a, tr->nlanes, sizeof *tr->stores, HEDDLE_CACHE_LINE);
    if (tr->stores == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < tr->nlanes; i++)
        heddle_mutex_init(&tr->stores[i].lock, HEDDLE_RANK_TRACE, "trace lane");
    tr->lanes = heddle_zalloc_aligned(tr->a, tr->nlanes, sizeof *tr->lanes, HEDDLE_CACHE_LINE);
    if (tr->lanes == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < tr->nlanes; i++) {
        l = &tr->lanes[i];
        l->index = i;
        l->trace = tr;
        l->store = &tr->stores[i];
        if (tr->is_off)
            continue;
        if (!store_init(tr, l->store))
            return HEDDLE_ENOMEM;
        lane_begin(l, 0);
        heddle_store_rlx(&l->mask, heddle_load_rlx(&tr->mask));
    }
    return HEDDLE_OK;
}

static void header_init(struct heddle_trace *tr, const struct heddle_trace_opts *o)
{
    const bool is_virtual = heddle_clock_is_virtual(&tr->clock);

    tr->header = (struct heddle_fmt_header){
        .major = HEDDLE_FMT_MAJOR,
        .minor = HEDDLE_FMT_MINOR,
        .header_bytes = HEDDLE_FMT_HEADER,
        .flags = (tr->is_file ? 0 : HEDDLE_FMT_FLIGHT) | (tr->clock.is_tsc ? HEDDLE_FMT_TSC : 0),
        .ns_per_tick = tr->clock.ns_per_tick,
        .tick0 = tr->clock.tick0,
        .ns0 = tr->clock.ns0,
        .wall_ns = is_virtual && o->wall_ns != 0 ? o->wall_ns : heddle_clock_read(CLOCK_REALTIME),
        .wall_tick = is_virtual ? o->wall_tick : heddle_ticks(),
    };
}

static bool opts_are_valid(const struct heddle_trace_opts *o)
{
    return o != NULL && o->clock != NULL && o->clock->ns_per_tick > 0.0 && o->nlanes > 0 &&
           level_is_valid(o->level) && o->chunk_bytes <= CHUNK_BYTES_MAX &&
           o->nchunks <= NCHUNKS_MAX;
}

/* Zero means default; sizes are rounded. */
static void sizes_init(struct heddle_trace *tr, const struct heddle_trace_opts *o)
{
    size_t bytes = o->chunk_bytes == 0 ? CHUNK_BYTES : o->chunk_bytes;

    if (bytes < CHUNK_BYTES_MIN)
        bytes = CHUNK_BYTES_MIN;
    tr->chunk_bytes = (bytes + 15) / 16 * 16;
    tr->chunk_slots = tr->chunk_bytes / sizeof(union heddle_slot);
    tr->nchunks = o->nchunks == 0 ? NCHUNKS : o->nchunks;
    if (tr->nchunks < 2)
        tr->nchunks = 2;
    if (tr->is_file)
        tr->nchunks = 1;
    tr->max_def_bytes = o->max_def_bytes == 0 ? DEF_BYTES : o->max_def_bytes;
    if (tr->max_def_bytes > DEF_BYTES_MAX)
        tr->max_def_bytes = DEF_BYTES_MAX;
}

heddle_status heddle_trace_create(const struct heddle_trace_opts *opts,
                                  struct heddle_trace **trace_out)
{
    struct heddle_trace *tr;
    heddle_status st;

    if (!opts_are_valid(opts) || trace_out == NULL)
        return HEDDLE_EINVAL;
    tr = heddle_zalloc(opts->alloc, 1, sizeof *tr);
    if (tr == NULL)
        return HEDDLE_ENOMEM;
    tr->a = opts->alloc;
    tr->clock = *opts->clock;
    tr->nlanes = opts->nlanes;
    tr->is_off = opts->level == HEDDLE_LOG_OFF;
    tr->is_file = opts->path != NULL && !tr->is_off;
    tr->flush_ms = opts->flush_ms == 0 ? FLUSH_MS : opts->flush_ms;
    tr->writer.fd = -1;
    heddle_store_rlx(&tr->mask, level_mask(opts->level)); /* not shared yet */
    heddle_mutex_init(&tr->file_lock, HEDDLE_RANK_LOGFILE, "trace file");
    heddle_mutex_init(&tr->def_lock, HEDDLE_RANK_LEAF, "trace definitions");
    heddle_map_init(&tr->strings, tr->a);
    sizes_init(tr, opts);
    header_init(tr, opts);
    st = lanes_init(tr);
    if (st == HEDDLE_OK && tr->is_file)
        st = heddle_log_writer_open(&tr->writer, tr->a, opts->path, &tr->header);
    if (st != HEDDLE_OK) {
        (void)heddle_log_writer_close(&tr->writer, opts->why, opts->why_bytes);
        trace_free(tr);
        return st;
    }
    if (tr->is_file)
        heddle_trace_live_start(tr);
    *trace_out = tr;
    return HEDDLE_OK;
}

uint64_t heddle_trace_lost(struct heddle_trace *tr)
{
    uint64_t n;

    heddle_mutex_lock(&tr->def_lock);
    n = tr->lost_defs;
    heddle_mutex_unlock(&tr->def_lock);
    for (uint32_t i = 0; i < tr->nlanes; i++)
        n += heddle_load_rlx(&tr->stores[i].lost);
    return n;
}

static uint64_t trace_overwritten(struct heddle_trace *tr)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < tr->nlanes; i++)
        n += heddle_load_rlx(&tr->stores[i].overwritten);
    return n;
}

heddle_status heddle_trace_close(struct heddle_trace *tr, char *why, size_t why_bytes)
{
    heddle_status st;

    if (tr == NULL)
        return HEDDLE_OK;
    heddle_trace_live_stop(tr);
    if (tr->is_file) {
        for (uint32_t i = 0; i < tr->nlanes; i++)
            file_turn(&tr->lanes[i], true);
        for (uint32_t i = 0; i < tr->nlanes; i++)
            heddle_trace_define_totals(tr, i);
        heddle_trace_define_epoch(tr);
        heddle_mutex_lock(&tr->file_lock);
        heddle_trace_flush_defs(tr, true);
        heddle_log_writer_finish(&tr->writer, heddle_trace_lost(tr), 0);
        heddle_mutex_unlock(&tr->file_lock);
    }
    st = heddle_log_writer_close(&tr->writer, why, why_bytes);
    trace_free(tr);
    return st;
}

struct heddle_trace_lane *heddle_trace_get_lane(struct heddle_trace *tr, uint32_t i)
{
    HEDDLE_ASSERT(i < tr->nlanes);
    return &tr->lanes[i];
}

heddle_status heddle_trace_set_level(struct heddle_trace *tr, int level)
{
    const uint32_t m = level_mask(level);

    if (!level_is_valid(level))
        return HEDDLE_EINVAL;
    if (tr->is_off)
        return level == HEDDLE_LOG_OFF ? HEDDLE_OK : HEDDLE_ESTATE;
    /* Relaxed: which records just then are kept does not matter. */
    heddle_store_rlx(&tr->mask, m);
    for (uint32_t i = 0; i < tr->nlanes; i++)
        heddle_store_rlx(&tr->lanes[i].mask, m);
    return HEDDLE_OK;
}

/* ---- dump ---- */

/* Memory of one dump: a copy of a lane's ring and a coded chunk. */
struct dump {
    struct heddle_log_writer w;
    union heddle_slot *ring;
    uint32_t *used; /* slots of each copied chunk, oldest first */
    uint8_t *coded;
    struct heddle_bytes defs;
};

/* Copies the ring of a lane, oldest chunk first; returns the chunks. */
static uint32_t lane_copy(struct heddle_trace_lane *l, struct dump *d)
{
    const struct heddle_trace *tr = l->trace;
    struct heddle_lane_store *s = l->store;
    uint32_t n = 0, i;

    heddle_mutex_lock(&s->lock);
    for (; n < s->nfull; n++) {
        i = (s->cur + tr->nchunks - s->nfull + n) % tr->nchunks;
        d->used[n] = s->used[i];
        memcpy(d->ring + n * tr->chunk_slots, chunk_at(tr, s, i),
               d->used[n] * sizeof(union heddle_slot));
    }
    /* Acquires the records the owner has committed; pairs with the release in
     * heddle_trace_commit(). Under the lock the chunk cannot change. */
    d->used[n] = (uint32_t)(heddle_load_acq(&l->p) - chunk_at(tr, s, s->cur));
    memcpy(d->ring + n * tr->chunk_slots, chunk_at(tr, s, s->cur),
           d->used[n] * sizeof(union heddle_slot));
    heddle_mutex_unlock(&s->lock);
    return n + 1;
}

static void dump_lane(struct heddle_trace_lane *l, struct dump *d)
{
    const struct heddle_trace *tr = l->trace;
    const uint32_t n = lane_copy(l, d);
    struct heddle_fmt_chunk k;

    for (uint32_t i = 0; i < n; i++) {
        const union heddle_slot *p = d->ring + i * tr->chunk_slots;

        if (d->used[i] == 0)
            continue;
        heddle_pack(p, p + d->used[i], d->coded, &k);
        k.lane = l->index;
        (void)heddle_log_writer_chunk(&d->w, &k, d->coded, false);
    }
}

/* The definitions as they are now. */
static void dump_defs(struct heddle_trace *tr, struct dump *d)
{
    bool is_ok;

    heddle_mutex_lock(&tr->def_lock);
    is_ok = heddle_bytes_room(&d->defs, tr->a, tr->defs.len, SIZE_MAX);
    if (is_ok && tr->defs.len > 0)
        memcpy(d->defs.p, tr->defs.p, tr->defs.len);
    d->defs.len = is_ok ? tr->defs.len : 0;
    heddle_mutex_unlock(&tr->def_lock);
    if (is_ok)
        (void)heddle_trace_write_defs(&d->w, d->defs.p, d->defs.len, false);
    else
        heddle_log_writer_fail(&d->w, HEDDLE_ENOMEM, "cannot be written", ENOMEM);
}

/* What was lost, and the clock. */
static void dump_totals(struct heddle_trace *tr, struct dump *d)
{
    uint8_t *p;

    d->defs.len = 0;
    if (!heddle_bytes_room(&d->defs, tr->a, ((size_t)tr->nlanes + 1) * HEDDLE_DEF_NUMBERS_MAX,
                           SIZE_MAX)) {
        heddle_log_writer_fail(&d->w, HEDDLE_ENOMEM, "cannot be written", ENOMEM);
        return;
    }
    p = d->defs.p;
    for (uint32_t i = 0; i < tr->nlanes; i++)
        p = heddle_def_put_totals(p, tr, i);
    p = heddle_def_put_epoch(tr, p);
    (void)heddle_trace_write_defs(&d->w, d->defs.p, (size_t)(p - d->defs.p), false);
}

heddle_status heddle_trace_dump(struct heddle_trace *tr, const char *path, char *why,
                                size_t why_bytes)
{
    struct dump d = {.w.fd = -1};
    heddle_status st;

    if (tr == NULL || path == NULL)
        return HEDDLE_EINVAL;
    if (tr->is_off || tr->is_file)
        return HEDDLE_ESTATE;
    d.ring = heddle_alloc_aligned(tr->a, tr->nchunks * tr->chunk_bytes, HEDDLE_CACHE_LINE);
    d.used = heddle_zalloc(tr->a, tr->nchunks, sizeof *d.used);
    d.coded = heddle_alloc(tr->a, heddle_pack_bound(tr->chunk_bytes));
    st = HEDDLE_ENOMEM;
    if (d.ring != NULL && d.used != NULL && d.coded != NULL)
        st = heddle_log_writer_open(&d.w, tr->a, path, &tr->header);
    if (st == HEDDLE_OK) {
        dump_defs(tr, &d);
        for (uint32_t i = 0; i < tr->nlanes; i++)
            dump_lane(&tr->lanes[i], &d);
        dump_totals(tr, &d);
        heddle_log_writer_finish(&d.w, heddle_trace_lost(tr), trace_overwritten(tr));
        st = heddle_log_writer_close(&d.w, why, why_bytes);
    } else {
        (void)heddle_log_writer_close(&d.w, why, why_bytes);
    }
    heddle_free(tr->a, d.ring, tr->nchunks * tr->chunk_bytes);
    heddle_free(tr->a, d.used, tr->nchunks * sizeof *d.used);
    heddle_free(tr->a, d.coded, heddle_pack_bound(tr->chunk_bytes));
    heddle_bytes_fini(&d.defs, tr->a);
    return st;
}
