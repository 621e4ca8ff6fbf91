/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * define: names of kernels, lanes, handles, strings.
 *
 * Purpose    records carry numbers; definitions say what they mean. They are
 *            coded at once (tag, length, value) into one byte string: the
 *            flight recorder keeps it for a dump, a file gets it in front of
 *            the next chunk, so that a crash does not lose names.
 * Invariants (1) defs.len <= max_def_bytes
 *            (2) a string id is given out only once its definition is stored
 *            (3) file mode: a definition is in the file before any chunk that
 *                was filled after it was made
 * Threads    any; def_lock guards the byte string and the map of strings.
 * Errors     none: what does not fit is counted in lost_defs.
 */
#include <string.h>

#include "base/rng.h"
#include "trace/store.h"

#define STRINGS_MAX  (UINT32_C(1) << 20) /* flight recorder */
#define STRINGS_FILE (UINT32_C(1) << 26)
#define DEFS_FLUSH   (UINT32_C(1) << 20) /* file mode: written when longer */
#define DEF_OVERHEAD 16                  /* tag and length */
#define NUMBER_BYTES 10                  /* LEB128, at most */

bool heddle_bytes_room(struct heddle_bytes *b, const struct heddle_allocator *a, size_t more,
                       size_t max)
{
    size_t cap = b->cap < 1024 ? 1024 : b->cap;
    uint8_t *grown;

    if (more > max || b->len > max - more)
        return false;
    if (b->len + more <= b->cap)
        return true;
    while (cap < b->len + more)
        cap *= 2;
    grown = heddle_alloc(a, cap);
    if (grown == NULL)
        return false;
    if (b->len > 0)
        memcpy(grown, b->p, b->len);
    heddle_free(a, b->p, b->cap);
    b->p = grown;
    b->cap = cap;
    return true;
}

void heddle_bytes_fini(struct heddle_bytes *b, const struct heddle_allocator *a)
{
    heddle_free(a, b->p, b->cap);
    *b = (struct heddle_bytes){0};
}

/* A definition being written. p == NULL: it does not fit. */
struct def {
    struct heddle_trace *tr;
    uint8_t *start; /* of the value, with DEF_OVERHEAD bytes before it */
    uint8_t *p;
};

/* `bytes` bounds the value. def_lock is held. */
static struct def def_open(struct heddle_trace *tr, size_t bytes)
{
    struct def d = {.tr = tr};
    size_t need;

    if (heddle_add(&need, bytes, DEF_OVERHEAD) &&
        heddle_bytes_room(&tr->defs, tr->a, need, tr->max_def_bytes)) {
        d.start = tr->defs.p + tr->defs.len + DEF_OVERHEAD;
        d.p = d.start;
    } else {
        tr->lost_defs++;
    }
    return d;
}

/* Takes def_lock until def_end(). */
static struct def def_begin(struct heddle_trace *tr, size_t bytes)
{
    heddle_mutex_lock(&tr->def_lock);
    return def_open(tr, bytes);
}

/* Puts tag and length in front of the value, releases def_lock. */
static void def_end(struct def *d, enum heddle_fmt_def tag)
{
    struct heddle_trace *tr = d->tr;
    bool is_long;

    if (d->p != NULL) {
        const size_t n = (size_t)(d->p - d->start);
        uint8_t *q = tr->defs.p + tr->defs.len;

        *q++ = (uint8_t)tag;
        q = heddle_put_leb(q, n);
        memmove(q, d->start, n);
        tr->defs.len = (size_t)(q + n - tr->defs.p);
    }
    is_long = tr->is_file && tr->defs.len > DEFS_FLUSH;
    heddle_mutex_unlock(&tr->def_lock);
    if (!is_long)
        return;
    heddle_mutex_lock(&tr->file_lock);
    heddle_trace_flush_defs(tr, false);
    heddle_mutex_unlock(&tr->file_lock);
}

static void def_num(struct def *d, uint64_t v)
{
    if (d->p != NULL)
        d->p = heddle_put_leb(d->p, v);
}

static size_t str_bytes(const char *s)
{
    return (s == NULL ? 0 : strlen(s)) + NUMBER_BYTES;
}

static void def_str(struct def *d, const char *s)
{
    const size_t n = s == NULL ? 0 : strlen(s);

    def_num(d, n);
    if (d->p != NULL && n > 0) {
        memcpy(d->p, s, n);
        d->p += n;
    }
}

void heddle_trace_define_lane(struct heddle_trace *tr, uint32_t lane,
                              enum heddle_log_lane_kind kind, const char *name, int cpu,
                              uint32_t node)
{
    struct def d;

    if (tr == NULL || tr->is_off)
        return;
    d = def_begin(tr, str_bytes(name) + 4 * NUMBER_BYTES);
    def_num(&d, lane);
    def_num(&d, kind);
    def_num(&d, cpu < 0 ? 0 : (uint64_t)cpu + 1);
    def_num(&d, node);
    def_str(&d, name);
    def_end(&d, HEDDLE_DEF_LANE);
}

void heddle_trace_define_kernel(struct heddle_trace *tr, uint32_t id, const char *name,
                                const struct heddle_log_variant *variants, uint32_t nvariants)
{
    size_t bytes = str_bytes(name) + 2 * NUMBER_BYTES;
    struct def d;

    if (tr == NULL || tr->is_off)
        return;
    for (uint32_t i = 0; i < nvariants; i++)
        bytes += str_bytes(variants[i].name) + NUMBER_BYTES;
    d = def_begin(tr, bytes);
    def_num(&d, id);
    def_str(&d, name);
    def_num(&d, nvariants);
    for (uint32_t i = 0; i < nvariants; i++) {
        def_num(&d, variants[i].device);
        def_str(&d, variants[i].name);
    }
    def_end(&d, HEDDLE_DEF_KERNEL);
}

void heddle_trace_define_node(struct heddle_trace *tr, uint32_t id, uint32_t kind, const char *name,
                              uint64_t bytes)
{
    struct def d;

    if (tr == NULL || tr->is_off)
        return;
    d = def_begin(tr, str_bytes(name) + 3 * NUMBER_BYTES);
    def_num(&d, id);
    def_num(&d, kind);
    def_num(&d, bytes);
    def_str(&d, name);
    def_end(&d, HEDDLE_DEF_NODE);
}

static void def_f64(struct def *d, double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof bits);
    if (d->p != NULL) {
        heddle_put_le(d->p, bits, 8);
        d->p += 8;
    }
}

void heddle_trace_define_link(struct heddle_trace *tr, const struct heddle_trace_link *l)
{
    struct def d;

    if (tr == NULL || tr->is_off)
        return;
    d = def_begin(tr, str_bytes(l->name) + 2 * NUMBER_BYTES + 16);
    def_num(&d, l->from);
    def_num(&d, l->to);
    def_f64(&d, l->bytes_per_s);
    def_f64(&d, l->latency_ns);
    def_str(&d, l->name);
    def_end(&d, HEDDLE_DEF_LINK);
}

void heddle_trace_define_handle(struct heddle_trace *tr, const struct heddle_trace_handle *h)
{
    const uint32_t n = h->ndims < HEDDLE_LOG_MAX_DIMS ? h->ndims : HEDDLE_LOG_MAX_DIMS;
    const bool is_view = h->parent != h->id;
    struct def d;

    if (tr == NULL || tr->is_off || (heddle_load_rlx(&tr->mask) & HEDDLE_TRACE_ACCESS) == 0)
        return;
    d = def_begin(tr, str_bytes(h->name) + (7 + 3 * (size_t)n) * NUMBER_BYTES);
    def_num(&d, h->id);
    def_num(&d, h->parent);
    def_num(&d, h->bytes);
    def_num(&d, h->elem_bytes);
    def_num(&d, h->node);
    def_str(&d, h->name);
    def_num(&d, n);
    for (uint32_t i = 0; i < n; i++) {
        def_num(&d, h->shape == NULL ? 0 : h->shape[i]);
        if (!is_view)
            continue;
        def_num(&d, heddle_zigzag(h->offset == NULL ? 0 : (uint64_t)h->offset[i]));
        def_num(&d, heddle_zigzag(h->step == NULL ? 1 : (uint64_t)h->step[i]));
    }
    def_end(&d, HEDDLE_DEF_HANDLE);
}

uint32_t heddle_trace_define_string(struct heddle_trace *tr, const char *s)
{
    uint64_t *place, hash;
    struct def d;
    uint32_t id = 0;

    if (tr == NULL || tr->is_off || s == NULL)
        return 0;
    /* Two strings with one 64-bit hash would share an id: one chance in 2^24
     * for a million strings, and it costs a wrong label. */
    hash = heddle_mix64(heddle_fmt_sum(s, strlen(s)));
    heddle_mutex_lock(&tr->def_lock);
    place = heddle_map_find(&tr->strings, hash);
    if (place != NULL) {
        id = (uint32_t)*place;
        heddle_mutex_unlock(&tr->def_lock);
        return id;
    }
    d = def_open(tr, str_bytes(s) + NUMBER_BYTES);
    if (d.p != NULL && (tr->nstrings == (tr->is_file ? STRINGS_FILE : STRINGS_MAX) ||
                        heddle_map_put(&tr->strings, hash, tr->nstrings + 1) != HEDDLE_OK)) {
        tr->lost_defs++;
        d.p = NULL;
    }
    if (d.p != NULL) {
        id = ++tr->nstrings;
        def_num(&d, id);
        def_str(&d, s);
    }
    def_end(&d, HEDDLE_DEF_STRING);
    return id;
}

void heddle_trace_define_info(struct heddle_trace *tr, const char *key, const char *value)
{
    struct def d;

    if (tr == NULL || tr->is_off)
        return;
    d = def_begin(tr, str_bytes(key) + str_bytes(value));
    def_str(&d, key);
    def_str(&d, value);
    def_end(&d, HEDDLE_DEF_INFO);
}

/* The narrowest of a few tries: an interrupt between the clocks is thrown
 * away. */
static void read_pair(uint64_t *tick_out, uint64_t *ns_out)
{
    uint64_t best = UINT64_MAX, before, ns, width;

    for (int i = 0; i < 4; i++) {
        before = heddle_ticks();
        ns = heddle_clock_ns();
        width = heddle_ticks() - before;
        if (width < best) {
            best = width;
            *tick_out = before + width / 2;
            *ns_out = ns;
        }
    }
}

/* A definition that is nothing but numbers. */
static uint8_t *put_numbers(uint8_t *p, enum heddle_fmt_def tag, const uint64_t *v, unsigned n)
{
    uint8_t *len = p + 1, *q = p + 2;

    p[0] = (uint8_t)tag;
    for (unsigned i = 0; i < n; i++)
        q = heddle_put_leb(q, v[i]);
    *len = (uint8_t)(q - p - 2); /* 3 numbers: below 128, one byte */
    return q;
}

uint8_t *heddle_def_put_epoch(const struct heddle_trace *tr, uint8_t *p)
{
    uint64_t v[2] = {tr->clock.tick0, tr->clock.ns0};

    if (!heddle_clock_is_virtual(&tr->clock))
        read_pair(&v[0], &v[1]);
    return put_numbers(p, HEDDLE_DEF_EPOCH, v, 2);
}

uint8_t *heddle_def_put_totals(uint8_t *p, struct heddle_trace *tr, uint32_t lane)
{
    struct heddle_lane_store *s = &tr->stores[lane];
    const uint64_t v[3] = {lane, heddle_load_rlx(&s->lost), heddle_load_rlx(&s->overwritten)};

    return put_numbers(p, HEDDLE_DEF_TOTALS, v, 3);
}

/* Appends to the definitions. Does not flush: the caller may hold file_lock. */
static void add_numbers(struct heddle_trace *tr, const uint8_t *p, size_t n)
{
    struct heddle_bytes *b = &tr->defs;

    heddle_mutex_lock(&tr->def_lock);
    if (heddle_bytes_room(b, tr->a, n, tr->max_def_bytes)) {
        memcpy(b->p + b->len, p, n);
        b->len += n;
    } else {
        tr->lost_defs++;
    }
    heddle_mutex_unlock(&tr->def_lock);
}

void heddle_trace_define_epoch(struct heddle_trace *tr)
{
    uint8_t buf[HEDDLE_DEF_NUMBERS_MAX];

    add_numbers(tr, buf, (size_t)(heddle_def_put_epoch(tr, buf) - buf));
}

void heddle_trace_define_totals(struct heddle_trace *tr, uint32_t lane)
{
    uint8_t buf[HEDDLE_DEF_NUMBERS_MAX];

    add_numbers(tr, buf, (size_t)(heddle_def_put_totals(buf, tr, lane) - buf));
}

bool heddle_trace_write_defs(struct heddle_log_writer *w, const uint8_t *p, size_t bytes,
                             bool is_last)
{
    struct heddle_fmt_chunk k = {
        .kind = HEDDLE_FMT_DEFS,
        .payload_bytes = (uint32_t)bytes,
    };

    if (bytes == 0)
        return true;
    k.payload_sum = heddle_fmt_sum(p, bytes);
    return heddle_log_writer_chunk(w, &k, p, is_last);
}

void heddle_trace_flush_defs(struct heddle_trace *tr, bool is_last)
{
    struct heddle_bytes b;

    /* Two byte strings take turns, so that no thread waits for the disk. */
    heddle_mutex_lock(&tr->def_lock);
    b = tr->defs;
    tr->defs = tr->spare;
    tr->defs.len = 0;
    heddle_mutex_unlock(&tr->def_lock);
    if (!heddle_trace_write_defs(&tr->writer, b.p, b.len, is_last)) {
        heddle_mutex_lock(&tr->def_lock);
        tr->lost_defs++;
        heddle_mutex_unlock(&tr->def_lock);
    }
    tr->spare = b;
}
