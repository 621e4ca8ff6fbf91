/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * defs: reads the definitions of a log, and its clock.
 *
 * Purpose    turns DEFS chunks into the tables of kernels, lanes, handles,
 *            nodes, links, strings and infos, and (tick, ns) pairs into a piecewise
 *            linear clock.
 * Invariants (1) a malformed definition is dropped as a whole: its fields are
 *                read before its table is touched
 *            (2) parent < own index for a view, so chains of views end
 *            (3) epochs have growing ticks and times: the clock is monotonic
 */
#include <string.h>

#include "base/assert.h"
#include "trace/log.h"

#define EPOCH_MIN_NS 1e7 /* closer pairs make a bad slope */
#define TIME_MAX     ((int64_t)1 << 60)
#define RATE_MAX     1e30 /* of a link: no number means more than this */

static void *table_item(const struct heddle_table *t, uint32_t i)
{
    return t->items + (size_t)i * t->item_bytes;
}

/* A string: length and bytes. */
static heddle_status get_text(heddle_log *log, struct heddle_get *g, const char **out)
{
    const uint64_t n = heddle_get_leb(g);
    const uint8_t *p = heddle_get_bytes(g, n);

    *out = "";
    if (p == NULL || n == 0)
        return HEDDLE_OK;
    return heddle_log_text(log, p, (size_t)n, out);
}

/* A name, made up when it is empty. */
static heddle_status get_name(heddle_log *log, struct heddle_get *g, const char *what, uint32_t id,
                              const char **out)
{
    HEDDLE_TRY(get_text(log, g, out));
    return **out != '\0' ? HEDDLE_OK : heddle_log_name(log, what, id, out);
}

static heddle_status read_string(heddle_log *log, struct heddle_get *g)
{
    const uint32_t id = heddle_get_leb32(g);
    const char *s, **place;
    uint32_t i;

    HEDDLE_TRY(get_text(log, g, &s));
    if (g->bad)
        return HEDDLE_OK;
    HEDDLE_TRY(heddle_table_at(&log->strings, id, &i));
    place = table_item(&log->strings, i);
    *place = s;
    return HEDDLE_OK;
}

static heddle_status read_variants(heddle_log *log, struct heddle_get *g,
                                   struct heddle_log_variant **out, uint32_t *n)
{
    struct heddle_log_variant *v = NULL;
    heddle_status st = HEDDLE_OK;

    *out = NULL;
    *n = heddle_get_leb32(g);
    /* A variant has two bytes at least. */
    g->bad |= *n > (uint64_t)(g->end - g->p) / 2;
    if (g->bad || *n == 0)
        return HEDDLE_OK;
    v = heddle_zalloc(log->a, *n, sizeof *v);
    if (v == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < *n && st == HEDDLE_OK; i++) {
        v[i].device = heddle_get_leb32(g);
        st = get_text(log, g, &v[i].name);
    }
    if (g->bad || st != HEDDLE_OK) {
        heddle_free(log->a, v, *n * sizeof *v);
        return st;
    }
    *out = v;
    return HEDDLE_OK;
}

static heddle_status read_kernel(heddle_log *log, struct heddle_get *g)
{
    const uint32_t id = heddle_get_leb32(g);
    struct heddle_log_variant *variants;
    struct heddle_log_kernel *k;
    const char *name;
    uint32_t n, i;
    heddle_status st;

    HEDDLE_TRY(get_name(log, g, "kernel", id, &name));
    HEDDLE_TRY(read_variants(log, g, &variants, &n));
    if (g->bad)
        return HEDDLE_OK;
    st = heddle_table_at(&log->kernels, id, &i);
    if (st != HEDDLE_OK) {
        heddle_free(log->a, variants, n * sizeof *variants);
        return st;
    }
    k = table_item(&log->kernels, i);
    heddle_free(log->a, (void *)(uintptr_t)k->variants, k->nvariants * sizeof *variants);
    *k = (struct heddle_log_kernel){.id = id, .nvariants = n, .name = name, .variants = variants};
    return HEDDLE_OK;
}

static heddle_status read_lane(heddle_log *log, struct heddle_get *g)
{
    const uint32_t id = heddle_get_leb32(g);
    const uint32_t kind = heddle_get_leb32(g);
    const uint64_t cpu = heddle_get_leb(g);
    const uint32_t node = heddle_get_leb32(g);
    struct heddle_log_lane *l;
    const char *name;
    uint32_t i;

    HEDDLE_TRY(get_text(log, g, &name));
    g->bad |= cpu > INT32_MAX;
    if (g->bad)
        return HEDDLE_OK;
    HEDDLE_TRY(heddle_table_at(&log->lanes, id, &i));
    l = table_item(&log->lanes, i);
    l->id = id;
    l->kind = kind <= HEDDLE_LOG_OTHER ? kind : HEDDLE_LOG_OTHER;
    l->cpu = (int32_t)cpu - 1;
    l->node = node;
    l->name = name;
    return HEDDLE_OK;
}

static heddle_status read_totals(heddle_log *log, struct heddle_get *g)
{
    const uint32_t id = heddle_get_leb32(g);
    const uint64_t lost = heddle_get_leb(g);
    const uint64_t overwritten = heddle_get_leb(g);
    const size_t n = log->lanes.n;
    struct heddle_log_lane *l;
    uint32_t i;

    if (g->bad)
        return HEDDLE_OK;
    HEDDLE_TRY(heddle_table_at(&log->lanes, id, &i));
    l = table_item(&log->lanes, i);
    if (n != log->lanes.n) /* never defined */
        *l = (struct heddle_log_lane){.id = id, .kind = HEDDLE_LOG_OTHER, .cpu = -1};
    l->lost = lost;
    l->overwritten = overwritten;
    return HEDDLE_OK;
}

static void read_shape(struct heddle_get *g, struct heddle_log_handle *h, bool is_view)
{
    h->ndims = heddle_get_leb32(g);
    g->bad |= h->ndims > HEDDLE_LOG_MAX_DIMS;
    for (uint32_t d = 0; d < h->ndims && !g->bad; d++) {
        h->shape[d] = heddle_get_leb(g);
        h->step[d] = 1;
        if (is_view) {
            h->offset[d] = (int64_t)heddle_get_zig(g);
            h->step[d] = (int64_t)heddle_get_zig(g);
        }
    }
}

/* Parents stay ids until handles_finish(). */
static heddle_status read_handle(heddle_log *log, struct heddle_get *g)
{
    struct heddle_log_handle h = {0};
    uint32_t i;

    h.id = heddle_get_leb32(g);
    h.parent = heddle_get_leb32(g);
    h.bytes = heddle_get_leb(g);
    h.elem_bytes = heddle_get_leb32(g);
    h.node = heddle_get_leb32(g);
    HEDDLE_TRY(get_name(log, g, "handle", h.id, &h.name));
    read_shape(g, &h, h.parent != h.id);
    if (g->bad)
        return HEDDLE_OK;
    HEDDLE_TRY(heddle_table_at(&log->handles, h.id, &i));
    memcpy(table_item(&log->handles, i), &h, sizeof h);
    return HEDDLE_OK;
}

static heddle_status read_node(heddle_log *log, struct heddle_get *g)
{
    struct heddle_log_node n = {0};
    uint32_t i;

    n.id = heddle_get_leb32(g);
    n.kind = heddle_get_leb32(g);
    n.bytes = heddle_get_leb(g);
    HEDDLE_TRY(get_name(log, g, "node", n.id, &n.name));
    if (g->bad)
        return HEDDLE_OK;
    HEDDLE_TRY(heddle_table_at(&log->nodes, n.id, &i));
    memcpy(table_item(&log->nodes, i), &n, sizeof n);
    return HEDDLE_OK;
}

static double get_f64(struct heddle_get *g)
{
    const uint8_t *p = heddle_get_bytes(g, 8);
    const uint64_t bits = p == NULL ? 0 : heddle_get_le64(p);
    double v;

    memcpy(&v, &bits, sizeof v);
    return v;
}

/* Nodes stay ids until links_finish(). */
static heddle_status read_link(heddle_log *log, struct heddle_get *g)
{
    struct heddle_log_link l = {0};
    uint32_t i;

    l.from = heddle_get_leb32(g);
    l.to = heddle_get_leb32(g);
    l.bytes_per_s = get_f64(g);
    l.latency_ns = get_f64(g);
    HEDDLE_TRY(get_text(log, g, &l.name));
    g->bad |= l.from > UINT16_MAX || l.to > UINT16_MAX ||
              !(l.bytes_per_s > 0 && l.bytes_per_s < RATE_MAX) ||
              !(l.latency_ns >= 0 && l.latency_ns < RATE_MAX);
    if (g->bad)
        return HEDDLE_OK;
    HEDDLE_TRY(heddle_table_at(&log->links, l.from << 16 | l.to, &i));
    memcpy(table_item(&log->links, i), &l, sizeof l);
    return HEDDLE_OK;
}

static heddle_status read_info(heddle_log *log, struct heddle_get *g)
{
    struct heddle_log_info f;
    uint32_t i;

    HEDDLE_TRY(get_text(log, g, &f.key));
    HEDDLE_TRY(get_text(log, g, &f.value));
    if (g->bad)
        return HEDDLE_OK;
    HEDDLE_TRY(heddle_table_at(&log->infos, (uint32_t)log->infos.n, &i));
    memcpy(table_item(&log->infos, i), &f, sizeof f);
    return HEDDLE_OK;
}

/* Invariant (3): a pair that does not come after the last one is left out. */
static heddle_status epoch_add(heddle_log *log, uint64_t tick, uint64_t ns)
{
    const double rate = log->header.ns_per_tick;
    struct heddle_log_epoch *e = log->epochs, *last;
    const int64_t t = (int64_t)(ns - log->header.ns0);
    double dt;

    if (log->nepochs > 0) {
        last = &e[log->nepochs - 1];
        dt = (double)(int64_t)(tick - last->tick) * rate;
        if (!(dt >= EPOCH_MIN_NS) || t <= last->t_ns || t > TIME_MAX)
            return HEDDLE_OK;
        last->slope = (double)(t - last->t_ns) / (double)(tick - last->tick);
    }
    HEDDLE_TRY(heddle_log_grow(log->a, &log->epochs, &log->epoch_cap, log->nepochs + 1,
                               sizeof *log->epochs));
    e = log->epochs;
    e[log->nepochs] = (struct heddle_log_epoch){
        .tick = tick,
        .t_ns = t,
        .slope = log->nepochs > 0 ? e[log->nepochs - 1].slope : rate,
    };
    log->nepochs++;
    return HEDDLE_OK;
}

static heddle_status read_epoch(heddle_log *log, struct heddle_get *g)
{
    const uint64_t tick = heddle_get_leb(g);
    const uint64_t ns = heddle_get_leb(g);

    return g->bad ? HEDDLE_OK : epoch_add(log, tick, ns);
}

static heddle_status read_def(heddle_log *log, uint8_t tag, struct heddle_get *g)
{
    switch ((enum heddle_fmt_def)tag) {
    case HEDDLE_DEF_STRING: return read_string(log, g);
    case HEDDLE_DEF_KERNEL: return read_kernel(log, g);
    case HEDDLE_DEF_LANE: return read_lane(log, g);
    case HEDDLE_DEF_HANDLE: return read_handle(log, g);
    case HEDDLE_DEF_NODE: return read_node(log, g);
    case HEDDLE_DEF_EPOCH: return read_epoch(log, g);
    case HEDDLE_DEF_INFO: return read_info(log, g);
    case HEDDLE_DEF_TOTALS: return read_totals(log, g);
    case HEDDLE_DEF_LINK: return read_link(log, g);
    }
    return HEDDLE_OK; /* of a later minor version */
}

static heddle_status read_chunk(heddle_log *log, const struct heddle_log_chunk *k)
{
    struct heddle_get all = {k->payload, k->payload + k->bytes, false}, one;
    const uint8_t *p;
    uint64_t n;
    uint8_t tag;

    while (all.p != all.end) {
        tag = heddle_get_byte(&all);
        n = heddle_get_leb(&all);
        p = heddle_get_bytes(&all, n);
        if (p == NULL) {
            log->v.ndamaged++;
            break;
        }
        one = (struct heddle_get){p, p + n, false};
        HEDDLE_TRY(read_def(log, tag, &one));
        if (one.bad)
            log->v.ndamaged++;
    }
    return HEDDLE_OK;
}

/* Invariant (2); until here parents were ids. */
static void handles_finish(heddle_log *log)
{
    const struct heddle_table *t = &log->handles;

    for (uint32_t i = 0; i < t->n; i++) {
        struct heddle_log_handle *h = table_item(t, i);
        uint64_t parent = i;

        (void)heddle_map_get(&t->map, h->parent, &parent);
        h->parent = parent < i ? (uint32_t)parent : i;
    }
}

/* Ids of nodes become indices; a link of a node that was never defined goes. */
static void links_finish(heddle_log *log)
{
    struct heddle_table *t = &log->links;
    size_t n = 0;

    for (uint32_t i = 0; i < t->n; i++) {
        struct heddle_log_link l;
        uint64_t from, to;

        memcpy(&l, table_item(t, i), sizeof l);
        if (!heddle_map_get(&log->nodes.map, l.from, &from) ||
            !heddle_map_get(&log->nodes.map, l.to, &to))
            continue;
        l.from = (uint32_t)from;
        l.to = (uint32_t)to;
        memcpy(table_item(t, (uint32_t)n++), &l, sizeof l);
    }
    t->n = n; /* none is looked up by its key any more */
}

int64_t heddle_log_time(const heddle_log *log, uint64_t tick)
{
    const struct heddle_log_epoch *e = log->epochs;
    size_t lo = 0, hi = log->nepochs, mid;
    double d;

    /* The last epoch that is not after the tick; the first when all are. */
    while (hi - lo > 1) {
        mid = lo + (hi - lo) / 2;
        if ((int64_t)(tick - e[mid].tick) >= 0)
            lo = mid;
        else
            hi = mid;
    }
    d = (double)(int64_t)(tick - e[lo].tick) * e[lo].slope;
    d += (double)e[lo].t_ns;
    if (d >= (double)TIME_MAX)
        return TIME_MAX - log->origin;
    if (d <= -(double)TIME_MAX)
        return -TIME_MAX - log->origin;
    return (int64_t)(d < 0.0 ? d - 0.5 : d + 0.5) - log->origin;
}

heddle_status heddle_log_read_defs(heddle_log *log)
{
    HEDDLE_TRY(epoch_add(log, log->header.tick0, log->header.ns0));
    for (size_t i = 0; i < log->nchunks; i++)
        if (log->chunks[i].kind == HEDDLE_FMT_DEFS)
            HEDDLE_TRY(read_chunk(log, &log->chunks[i]));
    handles_finish(log);
    links_finish(log);
    /* From here on times count from the start of the log. */
    log->origin = heddle_log_time(log, log->header.wall_tick);
    return HEDDLE_OK;
}
