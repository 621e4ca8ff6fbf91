/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reader: opens a log, finds its whole chunks, says what is missing.
 *
 * Purpose    everything that can be read is read; what is damaged costs its
 *            chunk and nothing else. The order is: header, list of chunks,
 *            definitions, records.
 * Invariants (1) memory is proportional to the bytes of the file: no length in
 *                the file is believed before the bytes are there
 *            (2) only chunks whose two checksums are good are decoded, and
 *                decoding them is safe whatever they hold
 *            (3) after a damaged chunk header the next good one is searched
 *                for, so the scan goes forward by at least one byte
 * Threads    a log is private until it is returned and constant afterwards.
 * See also   docs/formats/log.md
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/sized.h"
#include "base/text.h"
#include "base/why.h"
#include "trace/log.h"

#define TEXT_BLOCK 16384

struct heddle_log_block {
    struct heddle_log_block *next;
    size_t bytes; /* of data */
    size_t used;
    char data[];
};

/* Writes the sentence for the caller, who may have given no options; st. */
#define EXPLAIN(o, st, ...)                                                                        \
    heddle_why((o) == NULL ? NULL : (o)->why, (o) == NULL ? 0 : (o)->why_bytes, st, __VA_ARGS__)

heddle_status heddle_log_grow(const struct heddle_allocator *a, void *p, size_t *cap, size_t need,
                              size_t bytes)
{
    size_t n = *cap < 16 ? 16 : *cap;
    void *old, *grown;

    if (need <= *cap)
        return HEDDLE_OK;
    while (n < need)
        if (!heddle_mul(&n, n, 2))
            return HEDDLE_ENOMEM;
    grown = heddle_zalloc(a, n, bytes);
    if (grown == NULL)
        return HEDDLE_ENOMEM;
    /* `p` is the address of a pointer to items of any type. */
    memcpy(&old, p, sizeof old);
    if (*cap > 0)
        memcpy(grown, old, *cap * bytes);
    heddle_free(a, old, *cap * bytes);
    memcpy(p, &grown, sizeof grown);
    *cap = n;
    return HEDDLE_OK;
}

heddle_status heddle_table_at(struct heddle_table *t, uint32_t id, uint32_t *index_out)
{
    uint64_t *place = heddle_map_find(&t->map, id);

    if (place == NULL) {
        HEDDLE_TRY(heddle_log_grow(t->map.a, &t->items, &t->cap, t->n + 1, t->item_bytes));
        HEDDLE_TRY(heddle_map_put(&t->map, id, t->n));
        *index_out = (uint32_t)t->n++;
        return HEDDLE_OK;
    }
    *index_out = (uint32_t)*place;
    return HEDDLE_OK;
}

static void table_init(struct heddle_table *t, const struct heddle_allocator *a, size_t item_bytes)
{
    heddle_map_init(&t->map, a);
    t->item_bytes = item_bytes;
}

static void table_fini(struct heddle_table *t)
{
    heddle_free(t->map.a, t->items, t->cap * t->item_bytes);
    heddle_map_fini(&t->map);
}

heddle_status heddle_log_text(heddle_log *log, const void *p, size_t bytes, const char **text_out)
{
    struct heddle_log_block *b = log->text;
    size_t size;
    char *s;

    if (b == NULL || b->bytes - b->used <= bytes) {
        size = bytes < TEXT_BLOCK ? TEXT_BLOCK : bytes + 1;
        b = heddle_alloc(log->a, sizeof *b + size);
        if (b == NULL)
            return HEDDLE_ENOMEM;
        *b = (struct heddle_log_block){.next = log->text, .bytes = size};
        log->text = b;
    }
    s = b->data + b->used;
    if (bytes > 0)
        memcpy(s, p, bytes);
    s[bytes] = '\0';
    b->used += bytes + 1;
    *text_out = s;
    return HEDDLE_OK;
}

heddle_status heddle_log_name(heddle_log *log, const char *what, uint32_t id, const char **text_out)
{
    char buf[64];
    struct heddle_text t;

    heddle_text_init(&t, buf, sizeof buf);
    heddle_text_add(&t, "%s %u", what, (unsigned)id);
    return heddle_log_text(log, buf, t.len, text_out);
}

/* ---- chunks ---- */

static heddle_status chunk_add(heddle_log *log, const struct heddle_fmt_chunk *k,
                               const uint8_t *payload)
{
    HEDDLE_TRY(heddle_log_grow(log->a, &log->chunks, &log->chunk_cap, log->nchunks + 1,
                               sizeof *log->chunks));
    log->chunks[log->nchunks++] = (struct heddle_log_chunk){
        .payload = payload,
        .bytes = k->payload_bytes,
        .lane = k->lane,
        .nrecords = k->nrecords,
        .kind = k->kind,
    };
    return HEDDLE_OK;
}

static void end_read(heddle_log *log, const uint8_t *p, uint32_t bytes)
{
    if (bytes < HEDDLE_FMT_END_BYTES || memcmp(p + bytes - 8, HEDDLE_FMT_END_MAGIC, 8) != 0) {
        log->v.ndamaged++;
        return;
    }
    log->has_end = true;
    log->end_lost = heddle_get_le(p, 8);
    log->end_overwritten = heddle_get_le(p + 8, 8);
}

/* A chunk with a good header at p. Returns its bytes; 0: it is cut. */
static size_t chunk_read(heddle_log *log, const uint8_t *p, size_t left,
                         const struct heddle_fmt_chunk *k, heddle_status *st)
{
    const uint8_t *payload = p + HEDDLE_FMT_CHUNK;

    if (k->payload_bytes > left - HEDDLE_FMT_CHUNK)
        return 0;
    if (heddle_fmt_sum(payload, k->payload_bytes) != k->payload_sum ||
        (k->kind == HEDDLE_FMT_RECORDS && k->codec != 1))
        log->v.ndamaged++;
    else if (k->kind == HEDDLE_FMT_END)
        end_read(log, payload, k->payload_bytes);
    else
        *st = chunk_add(log, k, payload);
    return HEDDLE_FMT_CHUNK + (size_t)k->payload_bytes;
}

/* Where the next chunk may begin, after p; `end` when nowhere. */
static const uint8_t *chunk_search(const uint8_t *p, const uint8_t *end)
{
    const uint8_t *q;

    if (end - p <= HEDDLE_FMT_CHUNK)
        return end;
    q = memmem(p + 1, (size_t)(end - p - 1), HEDDLE_FMT_CHUNK_MAGIC, 4);
    return q == NULL || end - q < HEDDLE_FMT_CHUNK ? end : q;
}

static heddle_status scan_chunks(heddle_log *log, const uint8_t *p, const uint8_t *end)
{
    struct heddle_fmt_chunk k;
    const uint8_t *next;
    uint32_t seq = 0;
    size_t n;

    while (p < end && !log->has_end) {
        heddle_status st = HEDDLE_OK;

        if (end - p < HEDDLE_FMT_CHUNK || !heddle_fmt_get_chunk(p, &k)) {
            next = chunk_search(p, end);
            log->nskipped += (uint64_t)(next - p);
            p = next;
            continue;
        }
        if (k.seq > seq && log->v.ndamaged < UINT32_MAX / 2)
            log->v.ndamaged += k.seq - seq < 65536 ? k.seq - seq : 65536;
        seq = k.seq + 1;
        n = chunk_read(log, p, (size_t)(end - p), &k, &st);
        if (st != HEDDLE_OK)
            return st;
        log->is_cut |= n == 0;
        p = n == 0 ? end : p + n;
    }
    log->nskipped += (uint64_t)(end - p); /* after the end */
    return HEDDLE_OK;
}

/* ---- open ---- */

static void partial_explain(heddle_log *log)
{
    struct heddle_text t;

    heddle_text_init(&t, log->partial, sizeof log->partial);
    if (!log->has_end)
        heddle_text_str(&t, "The log has no end: it was cut, or the program "
                            "that wrote it did not close it");
    if (log->v.ndamaged > 0)
        heddle_text_add(&t, "%s%u of its chunks %s damaged or missing", t.len > 0 ? "; " : "",
                        (unsigned)log->v.ndamaged, log->v.ndamaged == 1 ? "is" : "are");
    if (log->nskipped > 0)
        heddle_text_add(&t, "%s%llu bytes belong to no chunk", t.len > 0 ? "; " : "",
                        (unsigned long long)log->nskipped);
    if (t.len > 0)
        heddle_text_str(&t, ".");
    log->v.is_partial = t.len > 0;
}

static heddle_status check_header(heddle_log *log, const struct heddle_log_opts *o,
                                  const uint8_t *p, size_t bytes)
{
    struct heddle_fmt_header *h = &log->header;

    if (bytes < 8 || memcmp(p, HEDDLE_FMT_MAGIC, 8) != 0)
        return EXPLAIN(o, HEDDLE_EFORMAT, "This is not a Heddle log.");
    if (!heddle_fmt_get_header(p, bytes, h))
        return EXPLAIN(o, HEDDLE_EFORMAT, "The header of the log is damaged or cut.");
    if (h->major != HEDDLE_FMT_MAJOR)
        return EXPLAIN(o, HEDDLE_EVERSION,
                       "The log has format version %u.%u; this Heddle reads version %u.", h->major,
                       h->minor, HEDDLE_FMT_MAJOR);
    if (!(h->ns_per_tick > 1e-6 && h->ns_per_tick < 1e12))
        return EXPLAIN(o, HEDDLE_EFORMAT, "The clock in the header of the log makes no sense.");
    return HEDDLE_OK;
}

static heddle_log *log_new(const struct heddle_log_opts *o)
{
    const struct heddle_allocator *a = o == NULL ? NULL : o->allocator;
    heddle_log *log = heddle_zalloc(a, 1, sizeof *log);

    if (log == NULL)
        return NULL;
    if (a != NULL) {
        log->alloc = *a;
        log->a = &log->alloc;
    }
    table_init(&log->kernels, log->a, sizeof(struct heddle_log_kernel));
    table_init(&log->lanes, log->a, sizeof(struct heddle_log_lane));
    table_init(&log->handles, log->a, sizeof(struct heddle_log_handle));
    table_init(&log->nodes, log->a, sizeof(struct heddle_log_node));
    table_init(&log->strings, log->a, sizeof(const char *));
    table_init(&log->infos, log->a, sizeof(struct heddle_log_info));
    table_init(&log->links, log->a, sizeof(struct heddle_log_link));
    return log;
}

/* Memory that is needed only while reading. */
static void log_trim(heddle_log *log)
{
    heddle_free(log->a, log->chunks, log->chunk_cap * sizeof *log->chunks);
    heddle_free(log->a, log->epochs, log->epoch_cap * sizeof *log->epochs);
    log->chunks = NULL;
    log->epochs = NULL;
    log->nchunks = log->chunk_cap = 0;
    log->nepochs = log->epoch_cap = 0;
}

static void view_init(heddle_log *log, size_t bytes)
{
    struct heddle_log_view *v = &log->v;
    const struct heddle_log_arrays *arr = &log->arr;

    v->size = sizeof *v;
    v->tasks = arr->tasks;
    v->ntasks = arr->ntasks;
    v->deps = arr->deps;
    v->ndeps = arr->ndeps;
    v->accesses = arr->accesses;
    v->naccesses = arr->naccesses;
    v->states = arr->states;
    v->nstates = arr->nstates;
    v->marks = arr->marks;
    v->nmarks = arr->nmarks;
    v->attrs = arr->attrs;
    v->nattrs = arr->nattrs;
    v->events = arr->events;
    v->nevents = arr->nevents;
    v->kernels = (const struct heddle_log_kernel *)(void *)log->kernels.items;
    v->nkernels = log->kernels.n;
    v->lanes = (const struct heddle_log_lane *)(void *)log->lanes.items;
    v->nlanes = log->lanes.n;
    v->handles = (const struct heddle_log_handle *)(void *)log->handles.items;
    v->nhandles = log->handles.n;
    v->nodes = (const struct heddle_log_node *)(void *)log->nodes.items;
    v->nnodes = log->nodes.n;
    v->infos = (const struct heddle_log_info *)(void *)log->infos.items;
    v->ninfos = log->infos.n;
    v->links = (const struct heddle_log_link *)(void *)log->links.items;
    v->nlinks = log->links.n;
    v->bytes = bytes;
    v->wall_ns = log->header.wall_ns;
    v->origin_ns = log->header.ns0 + (uint64_t)log->origin;
    v->ns_per_tick = log->header.ns_per_tick;
    v->nchunks = (uint32_t)log->nchunks;
    v->version = (uint16_t)(log->header.major << 8 | log->header.minor);
    v->is_flight = (log->header.flags & HEDDLE_FMT_FLIGHT) != 0;
}

static void totals_init(heddle_log *log)
{
    struct heddle_log_view *v = &log->v;

    for (size_t i = 0; i < v->nlanes; i++) {
        v->lost += v->lanes[i].lost;
        v->overwritten += v->lanes[i].overwritten;
    }
    if (log->has_end) {
        v->lost = log->end_lost;
        v->overwritten = log->end_overwritten;
    }
}

heddle_status heddle_log_parse(const void *data, size_t bytes, const struct heddle_log_opts *opts,
                               heddle_log **log_out)
{
    const uint8_t *p = data;
    struct heddle_log_opts o;
    heddle_log *log;
    heddle_status st;

    if (data == NULL || log_out == NULL)
        return HEDDLE_EINVAL;
    HEDDLE_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_log_opts, &o, opts));
    (void)EXPLAIN(&o, HEDDLE_OK, "%s", "");
    log = log_new(&o);
    if (log == NULL)
        return HEDDLE_ENOMEM;
    st = check_header(log, &o, p, bytes);
    if (st == HEDDLE_OK)
        st = scan_chunks(log, p + log->header.header_bytes, p + bytes);
    if (st == HEDDLE_OK)
        st = heddle_log_read_defs(log);
    if (st == HEDDLE_OK)
        st = heddle_log_read_records(log);
    if (st != HEDDLE_OK) {
        if (st == HEDDLE_ENOMEM)
            (void)EXPLAIN(&o, st, "There is not enough memory to read the log.");
        if (st == HEDDLE_EOVERFLOW)
            (void)EXPLAIN(&o, st, "The log has more records than fit 32 bits.");
        heddle_log_close(log);
        return st;
    }
    view_init(log, bytes);
    totals_init(log);
    partial_explain(log);
    log_trim(log);
    *log_out = log;
    return HEDDLE_OK;
}

heddle_status heddle_log_read_file(const char *path, const char *what,
                                   const struct heddle_log_opts *o, uint8_t **p_out,
                                   size_t *cap_out, size_t *bytes_out)
{
    const struct heddle_allocator *a = o == NULL ? NULL : o->allocator;
    struct stat sb = {0};
    uint8_t *p = NULL;
    size_t n = 0, cap;
    ssize_t got = 0;
    char text[128];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err = 0;

    if (fd < 0 || fstat(fd, &sb) != 0)
        err = errno;
    else if (!S_ISREG(sb.st_mode))
        err = S_ISDIR(sb.st_mode) ? EISDIR : EINVAL;
    cap = err == 0 && sb.st_size > 0 ? (size_t)sb.st_size + 1 : 1;
    if (err == 0)
        p = heddle_alloc_large(a, cap);
    while (p != NULL && n < cap - 1) {
        got = read(fd, p + n, cap - 1 - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    if (got < 0)
        err = errno;
    if (fd >= 0)
        close(fd);
    if (err != 0) {
        heddle_free(a, p, cap);
        return EXPLAIN(o, err == ENOENT ? HEDDLE_ENOENT : HEDDLE_EIO,
                       "The %s '%s' cannot be read: %s.", what, path,
                       strerror_r(err, text, sizeof text));
    }
    if (p == NULL)
        return EXPLAIN(o, HEDDLE_ENOMEM, "There is not enough memory to read the %s '%s'.", what,
                       path);
    *p_out = p;
    *cap_out = cap;
    *bytes_out = n;
    return HEDDLE_OK;
}

heddle_status heddle_log_open(const char *path, const struct heddle_log_opts *opts,
                              heddle_log **log_out)
{
    struct heddle_log_opts o;
    uint8_t *p = NULL;
    size_t cap = 0, bytes = 0;
    heddle_status st;

    if (path == NULL || log_out == NULL)
        return HEDDLE_EINVAL;
    HEDDLE_TRY(HEDDLE_SIZED_GET_OPTS(struct heddle_log_opts, &o, opts));
    HEDDLE_TRY(heddle_log_read_file(path, "log", &o, &p, &cap, &bytes));
    st = heddle_log_parse(p, bytes, &o, log_out);
    heddle_free(o.allocator, p, cap);
    return st;
}

static void arrays_fini(heddle_log *log)
{
    struct heddle_log_arrays *r = &log->arr;

    heddle_free(log->a, r->tasks, r->ntasks * sizeof *r->tasks);
    heddle_free(log->a, r->by_id, r->ntasks * sizeof *r->by_id);
    heddle_free(log->a, r->deps, r->ndeps * sizeof *r->deps);
    heddle_free(log->a, r->accesses, r->naccesses * sizeof *r->accesses);
    heddle_free(log->a, r->states, r->nstates * sizeof *r->states);
    heddle_free(log->a, r->marks, r->nmarks * sizeof *r->marks);
    heddle_free(log->a, r->attrs, r->nattrs * sizeof *r->attrs);
    heddle_free(log->a, r->events, r->nevents * sizeof *r->events);
}

void heddle_log_close(heddle_log *log)
{
    struct heddle_allocator alloc;
    struct heddle_log_block *b, *next;
    bool is_default;

    if (log == NULL)
        return;
    log_trim(log);
    arrays_fini(log);
    for (size_t i = 0; i < log->kernels.n; i++) {
        const struct heddle_log_kernel *k =
            (const struct heddle_log_kernel *)(void *)log->kernels.items + i;

        heddle_free(log->a, (void *)(uintptr_t)k->variants, k->nvariants * sizeof *k->variants);
    }
    table_fini(&log->kernels);
    table_fini(&log->lanes);
    table_fini(&log->handles);
    table_fini(&log->nodes);
    table_fini(&log->strings);
    table_fini(&log->infos);
    table_fini(&log->links);
    for (b = log->text; b != NULL; b = next) {
        next = b->next;
        heddle_free(log->a, b, sizeof *b + b->bytes);
    }
    alloc = log->alloc;
    is_default = log->a == NULL;
    heddle_free(is_default ? NULL : &alloc, log, sizeof *log);
}
