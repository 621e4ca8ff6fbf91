/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace/view/time: columns of what happens beside tasks: gaps of workers, the chains
 * that explain the makespan, transfers, marks, curves.
 *
 * Curves  longer than MAX_STEPS are cut into that many equal pieces of time, of
 *         which each keeps its largest value: peaks stay visible.
 */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "energy/log.h"
#include "trace/view/build.h"

enum { MAX_STEPS = 65536 };

void view_put_gaps(struct view_build *b)
{
    const size_t n = b->st == HEDDLE_OK ? b->x->ngaps : 0;
    uint32_t *start = view_add(b, "gap_start", VIEW_U32, n, true);
    uint32_t *dur = view_add(b, "gap_dur", VIEW_U32, n, false);
    uint8_t *cause = view_add(b, "gap_cause", VIEW_U8, n, false);

    if (cause == NULL)
        return;
    for (size_t i = 0; i < n; i++) {
        const struct heddle_explain_gap *g = &b->x->gaps[i];
        struct view_lane *l = &b->p->lane[g->lane];

        start[i] = view_time(b, g->start_ns);
        dur[i] = view_time(b, g->end_ns) - start[i];
        cause[i] = g->cause;
        if (l->gap_n++ == 0)
            l->gap_first = (uint32_t)i;
    }
}

void view_put_chains(struct view_build *b)
{
    const struct heddle_explain *x = b->x;
    const size_t n = b->st == HEDDLE_OK ? x->npath : 0;
    const size_t m = b->st == HEDDLE_OK ? x->nsteps : 0;
    uint32_t *path = view_add(b, "path_task", VIEW_U32, n, true);
    uint32_t *start = view_add(b, "step_start", VIEW_U32, m, true);
    uint32_t *dur = view_add(b, "step_dur", VIEW_U32, m, false);
    uint32_t *task = view_add(b, "step_task", VIEW_U32, m, true);
    uint8_t *blame = view_add(b, "step_blame", VIEW_U8, m, false);

    if (b->st != HEDDLE_OK)
        return;
    for (size_t i = 0; i < n; i++)
        path[i] = b->row_task[x->path[i]];
    for (size_t i = 0; i < m; i++) {
        const struct heddle_explain_step *s = &x->steps[i];

        start[i] = view_time(b, s->start_ns);
        dur[i] = view_time(b, s->end_ns) - start[i];
        task[i] = s->task < b->v->ntasks ? b->row_task[s->task] : VIEW_NONE;
        blame[i] = s->blame;
    }
}

/* --- transfers ------------------------------------------------------------ */

static bool is_transfer(const struct heddle_log_event *e)
{
    return e->kind >= HEDDLE_LOG_FETCH && e->kind <= HEDDLE_LOG_EVICT;
}

/* Index of the memory node with this id; the id itself when it has none. */
static uint8_t node_index(const struct heddle_log_view *v, uint32_t id)
{
    for (size_t i = 0; i < v->nnodes && i < UINT8_MAX; i++)
        if (v->nodes[i].id == id)
            return (uint8_t)i;
    return (uint8_t)id;
}

/* A moment after another; what is damaged does not overflow. */
static int64_t later(int64_t t, int64_t ns)
{
    const int64_t most = INT64_C(1) << 61;

    return t + (ns < 0 ? 0 : ns < most ? ns : most);
}

static void map_handles(struct view_build *b, struct heddle_map *map)
{
    for (size_t i = 0; i < b->v->nhandles && b->st == HEDDLE_OK; i++)
        b->st = heddle_map_put(map, b->v->handles[i].id, i);
}

static void fill_transfers(struct view_build *b, size_t n, const struct heddle_map *handles)
{
    const struct heddle_log_view *v = b->v;
    uint32_t *start = view_add(b, "xfer_start", VIEW_U32, n, true);
    uint32_t *dur = view_add(b, "xfer_dur", VIEW_U32, n, false);
    uint8_t *src = view_add(b, "xfer_src", VIEW_U8, n, false);
    uint8_t *dst = view_add(b, "xfer_dst", VIEW_U8, n, false);
    double *bytes = view_add(b, "xfer_bytes", VIEW_F64, n, false);
    uint32_t *handle = view_add(b, "xfer_handle", VIEW_U32, n, true);
    uint32_t *task = view_add(b, "xfer_task", VIEW_U32, n, true);
    uint8_t *kind = view_add(b, "xfer_kind", VIEW_U8, n, false);
    size_t k = 0;
    int64_t begin;
    uint64_t h;

    if (kind == NULL)
        return;
    for (size_t i = 0; i < v->nevents; i++) {
        const struct heddle_log_event *e = &v->events[i];

        if (!is_transfer(e))
            continue;
        begin = later(e->t_ns, e->y_ns);
        start[k] = view_time(b, begin);
        dur[k] = view_time(b, later(begin, e->z_ns)) - start[k];
        src[k] = node_index(v, e->b & 255);
        dst[k] = node_index(v, e->b >> 8);
        bytes[k] = (double)e->x;
        handle[k] = heddle_map_get(handles, e->c, &h) ? (uint32_t)h : VIEW_NONE;
        task[k] = view_task(b, e->task);
        kind[k++] = (uint8_t)(e->kind - HEDDLE_LOG_FETCH);
    }
    view_drop(b, task, VIEW_NONE);
    view_drop(b, handle, VIEW_NONE);
}

void view_put_transfers(struct view_build *b)
{
    struct heddle_map handles;
    size_t n = 0;

    if (b->st != HEDDLE_OK)
        return;
    for (size_t i = 0; i < b->v->nevents; i++)
        n += is_transfer(&b->v->events[i]);
    if (n == 0)
        return;
    heddle_map_init(&handles, b->p->a);
    map_handles(b, &handles);
    fill_transfers(b, n, &handles);
    heddle_map_fini(&handles);
}

void view_put_marks(struct view_build *b)
{
    const size_t n = b->st == HEDDLE_OK ? b->v->nmarks : 0;
    uint32_t *t = view_add(b, "mark_t", VIEW_U32, n, true);
    uint32_t *lane = view_add(b, "mark_lane", VIEW_U32, n, false);
    uint32_t *text = view_add(b, "mark_text", VIEW_U32, n, false);
    uint8_t *phase = view_add(b, "mark_phase", VIEW_U8, n, false);

    if (phase == NULL)
        return;
    for (size_t i = 0; i < n; i++) {
        t[i] = view_time(b, b->v->marks[i].t_ns);
        lane[i] = b->v->marks[i].lane;
        text[i] = view_text(b, b->v->marks[i].text);
        phase[i] = b->v->marks[i].phase;
    }
}

/* --- curves --------------------------------------------------------------- */

/* Steps of the curve in at most MAX_STEPS pieces of `width` ns. `t` and `value`
 * may be NULL: then they are counted only. */
static size_t reduce(const struct view_build *b, const struct heddle_explain_curve *c,
                     int64_t width, uint32_t *t, float *value)
{
    double now = 0, best = 0, last = NAN;
    size_t k = 0, i = 0, end = c->n;

    /* Samples may begin before the run and end after it. */
    while (i + 1 < end && c->t_ns[i + 1] <= b->first_ns)
        i++;
    while (end > i + 1 && c->t_ns[end - 1] > b->x->last_ns && b->x->last_ns > b->first_ns)
        end--;
    while (i < end) {
        const int64_t at = c->t_ns[i] - b->first_ns;
        const int64_t piece = at > 0 ? at / width : 0;

        for (best = now; i < end; i++) {
            const int64_t d = c->t_ns[i] - b->first_ns;

            if ((d > 0 ? d / width : 0) != piece)
                break;
            now = c->value[i];
            best = now > best ? now : best;
        }
        if (best != last) {
            if (t != NULL) {
                t[k] = view_time(b, b->first_ns + piece * width);
                value[k] = (float)best;
            }
            last = best;
            k++;
        }
        /* The piece kept its largest value; the next one begins with `now`,
         * unless it has a step of its own. */
        if (now != best && (i >= end || (c->t_ns[i] - b->first_ns) / width > piece + 1)) {
            if (t != NULL) {
                t[k] = view_time(b, b->first_ns + (piece + 1) * width);
                value[k] = (float)now;
            }
            last = now;
            k++;
        }
    }
    return k;
}

static void keep_curve(struct view_build *b, struct view_curve *out,
                       const struct heddle_explain_curve *c)
{
    struct view_pack *p = b->p;
    int64_t width = 1;
    char name[16];
    struct heddle_text text;
    uint32_t *t;
    float *v;
    size_t n;

    if (c->n > MAX_STEPS / 2)
        width = b->x->makespan_ns / (MAX_STEPS / 2) + 1;
    n = reduce(b, c, width, NULL, NULL);
    heddle_text_init(&text, name, sizeof name);
    heddle_text_add(&text, "curve_t_%zu", p->ncurves);
    t = view_add(b, name, VIEW_U32, n, true);
    heddle_text_clear(&text);
    heddle_text_add(&text, "curve_v_%zu", p->ncurves);
    v = view_add(b, name, VIEW_F32, n, false);
    if (v == NULL)
        return;
    (void)reduce(b, c, width, t, v);
    for (size_t i = 0; i < n; i++)
        out->max = v[i] > out->max ? v[i] : out->max;
    out->array_t = (int)p->narrays - 2;
    out->array_v = (int)p->narrays - 1;
    p->ncurves++;
}

/* Adds a curve unless the log knows nothing of it. */
static void put_curve(struct view_build *b, enum heddle_explain_curve_kind kind, uint32_t which,
                      const char *name, double limit)
{
    struct view_pack *p = b->p;
    struct heddle_explain_curve *c = NULL;
    struct heddle_text t;

    if (b->st != HEDDLE_OK || p->ncurves == VIEW_MAX_CURVES)
        return;
    b->st = heddle_explain_curve_create(b->log, kind, which, p->a, &c);
    if (b->st == HEDDLE_OK && c->n > 0) {
        struct view_curve *out = &p->curve[p->ncurves];

        *out = (struct view_curve){.kind = kind, .limit = limit};
        heddle_text_init(&t, out->name, sizeof out->name);
        heddle_text_str(&t, name);
        keep_curve(b, out, c);
    }
    heddle_explain_curve_destroy(c);
}

static const char *node_name(const struct heddle_log_view *v, uint32_t i)
{
    return i < v->nnodes && v->nodes[i].name != NULL ? v->nodes[i].name : "?";
}

/* Bytes per second that a link can carry; NaN: not known. */
static double link_limit(const struct heddle_log_view *v, uint32_t src, uint32_t dst)
{
    for (size_t i = 0; i < v->nlinks; i++)
        if (v->links[i].from == src && v->links[i].to == dst && v->links[i].bytes_per_s > 0)
            return v->links[i].bytes_per_s;
    return NAN;
}

/* A curve per link, in order of appearance. */
static void put_link_curves(struct view_build *b)
{
    const struct heddle_log_view *v = b->v;
    struct heddle_map seen;
    char name[64];
    struct heddle_text t;

    heddle_map_init(&seen, b->p->a);
    for (size_t i = 0; i < v->nevents && b->st == HEDDLE_OK; i++) {
        const struct heddle_log_event *e = &v->events[i];
        const uint32_t src = node_index(v, e->b & 255);
        const uint32_t dst = node_index(v, e->b >> 8);

        if (!is_transfer(e) || heddle_map_find(&seen, e->b) != NULL)
            continue;
        b->st = heddle_map_put(&seen, e->b, 1);
        heddle_text_init(&t, name, sizeof name);
        heddle_text_add(&t, "%s to %s", node_name(v, src), node_name(v, dst));
        put_curve(b, HEDDLE_CURVE_LINK, src + 256 * dst, name, link_limit(v, src, dst));
    }
    heddle_map_fini(&seen);
}

/* One per domain, by their numbers. */
static void put_power_curves(struct view_build *b)
{
    struct energy_meter m[ENERGY_METERS];
    const size_t n = energy_meters(b->v, b->x->first_ns, b->x->last_ns, m);
    char name[ENERGY_METER_NAME + 16];
    struct heddle_text t;

    for (size_t i = 0; i < n; i++) {
        heddle_text_init(&t, name, sizeof name);
        heddle_text_add(&t, "power of %s", m[i].name);
        put_curve(b, HEDDLE_CURVE_POWER, m[i].id, name, NAN);
    }
}

void view_put_curves(struct view_build *b)
{
    const struct heddle_log_view *v = b->v;

    if (b->st != HEDDLE_OK)
        return;
    put_curve(b, HEDDLE_CURVE_RUNNING, 0, "running tasks", (double)b->x->nworkers);
    put_curve(b, HEDDLE_CURVE_READY, 0, "ready tasks", NAN);
    put_curve(b, HEDDLE_CURVE_SUBMITTED, 0, "tasks submitted, not ended", NAN);
    for (uint32_t i = 0; i < v->nnodes && i < VIEW_MAX_CURVES / 2; i++)
        put_curve(b, HEDDLE_CURVE_MEMORY, i, node_name(v, i),
                  v->nodes[i].bytes > 0 ? (double)v->nodes[i].bytes : NAN);
    put_power_curves(b);
    put_link_curves(b);
}
