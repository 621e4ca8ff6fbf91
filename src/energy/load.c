/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a log kept busy, as functions of time.
 *
 * Executions  all that ran, failed ones and helpers of gangs too: they drew
 *             power. Each moment of a lane belongs to the execution that began
 *             last: what ran inside of a waiting task counts for itself.
 * Devices     as in heddle/log_graph.h: the name of a lane up to the number of its
 *             stream, "cpu" for threads.
 * Cost        linear, but for finding keys: a row of a log is looked up by kernel,
 *             variant, device and bytes in a hash map.
 */
#include "energy/load.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/map.h"
#include "base/rng.h"
#include "base/sort.h"

#define NS 1e-9

/* ---- keys ------------------------------------------------------------------ */

struct heddle_energy_keys heddle_energy_keys_make(const struct heddle_allocator *a, bool by_size)
{
    return (struct heddle_energy_keys){.mem = heddle_scratch_make(a), .by_size = by_size};
}

void heddle_energy_keys_drop(struct heddle_energy_keys *k)
{
    heddle_scratch_drop(&k->mem);
    *k = (struct heddle_energy_keys){0};
}

static const char *keep(struct heddle_scratch *mem, const char *s, size_t n)
{
    char *to;

    if (n > HEDDLE_ENERGY_NAME_MAX)
        n = HEDDLE_ENERGY_NAME_MAX;
    to = heddle_scratch_get(mem, n + 1, 1);
    if (to != NULL && n > 0)
        memcpy(to, s, n);
    return to;
}

static heddle_status key_add(struct heddle_energy_keys *k, const struct heddle_energy_key *like)
{
    struct heddle_energy_key *to;

    if (k->n == k->room) {
        const size_t room = k->room == 0 ? 32 : 2 * k->room;
        struct heddle_energy_key *more = heddle_scratch_get(&k->mem, room, sizeof(*more));

        if (more == NULL)
            return HEDDLE_ENOMEM;
        if (k->n > 0)
            memcpy(more, k->key, k->n * sizeof(*more));
        k->key = more;
        k->room = room;
    }
    to = &k->key[k->n];
    to->kernel = keep(&k->mem, like->kernel, strlen(like->kernel));
    to->variant = keep(&k->mem, like->variant, strlen(like->variant));
    to->device = keep(&k->mem, like->device, strlen(like->device));
    to->bytes = like->bytes;
    if (to->kernel == NULL || to->variant == NULL || to->device == NULL)
        return HEDDLE_ENOMEM;
    k->n++;
    return HEDDLE_OK;
}

/* Equal as far as names are kept. */
static bool is_named(const char *kept, const char *s)
{
    return strncmp(kept, s, HEDDLE_ENERGY_NAME_MAX) == 0;
}

static heddle_status key_find(struct heddle_energy_keys *k, const struct heddle_energy_key *like,
                              size_t *out)
{
    size_t i = 0;

    while (i < k->n &&
           !(k->key[i].bytes == like->bytes && is_named(k->key[i].kernel, like->kernel) &&
             is_named(k->key[i].variant, like->variant) &&
             is_named(k->key[i].device, like->device)))
        i++;
    *out = i;
    return i < k->n ? HEDDLE_OK : key_add(k, like);
}

/* ---- curves ---------------------------------------------------------------- */

double heddle_energy_curve_from(const struct heddle_energy_curve *c, double ns, size_t *hint)
{
    size_t lo = 0, hi = c->n; /* points before lo are not after ns */
    size_t step = 1;

    if (*hint > 0 && *hint <= c->n && (double)c->t[*hint - 1] <= ns) {
        lo = *hint;
        while (lo + step < c->n && (double)c->t[lo + step] <= ns) {
            lo += step;
            step *= 2;
        }
        hi = lo + step < c->n ? lo + step : c->n;
    }
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;

        if ((double)c->t[mid] <= ns)
            lo = mid + 1;
        else
            hi = mid;
    }
    *hint = lo;
    if (lo == 0)
        return 0;
    if (lo == c->n)
        return c->v[c->n - 1];
    return c->v[lo - 1] + (c->v[lo] - c->v[lo - 1]) * (ns - (double)c->t[lo - 1]) /
                              (double)(c->t[lo] - c->t[lo - 1]);
}

double heddle_energy_curve_at(const struct heddle_energy_curve *c, double ns)
{
    size_t hint = 0;

    return heddle_energy_curve_from(c, ns, &hint);
}

/* A stretch of time in which something happens at a rate per ns. */
struct piece {
    int64_t from, to;
    double rate;
    uint32_t what; /* which curve */
};

/* Pieces of one curve, as events in order of time. */
static heddle_status curve_build(struct heddle_scratch *mem, const struct heddle_allocator *a,
                                 const struct piece *p, const uint32_t *idx, size_t n,
                                 struct heddle_energy_curve *out)
{
    struct heddle_scratch tmp = heddle_scratch_make(a);
    struct heddle_pair *e = heddle_scratch_get(&tmp, 4 * n, sizeof(*e));
    double rate = 0;
    size_t k = 0;

    out->t = heddle_scratch_get(mem, 2 * n, sizeof(*out->t));
    out->v = heddle_scratch_get(mem, 2 * n, sizeof(*out->v));
    if (e == NULL || out->t == NULL || out->v == NULL) {
        heddle_scratch_drop(&tmp);
        return HEDDLE_ENOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        e[2 * i] = (struct heddle_pair){heddle_time_key(p[idx[i]].from), i};
        e[2 * i + 1] = (struct heddle_pair){heddle_time_key(p[idx[i]].to), i + n};
    }
    heddle_sort_pairs(e, e + 2 * n, 2 * n);
    for (size_t i = 0; i < 2 * n; i++) {
        const bool is_end = e[i].idx >= n;
        const struct piece *q = &p[idx[is_end ? e[i].idx - n : e[i].idx]];
        const int64_t t = is_end ? q->to : q->from;

        if (k == 0 || out->t[k - 1] != t) {
            out->v[k] = k == 0 ? 0 : out->v[k - 1] + rate * (double)(t - out->t[k - 1]);
            out->t[k++] = t;
        }
        rate += is_end ? -q->rate : q->rate;
        if (rate < 0)
            rate = 0;
    }
    out->n = k;
    heddle_scratch_drop(&tmp);
    return HEDDLE_OK;
}

/* All curves [ncurves] out of pieces in any order. */
static heddle_status curves_build(struct heddle_energy_load *l, const struct piece *p, size_t n,
                                  struct heddle_energy_curve *out, size_t ncurves)
{
    struct heddle_scratch tmp = heddle_scratch_make(l->mem.a);
    size_t *first = heddle_scratch_get(&tmp, ncurves + 2, sizeof(*first));
    uint32_t *idx = heddle_scratch_get(&tmp, n, sizeof(*idx));
    heddle_status st = HEDDLE_OK;

    if (first == NULL || idx == NULL)
        st = HEDDLE_ENOMEM;
    for (size_t i = 0; i < n && st == HEDDLE_OK; i++)
        first[p[i].what + 2]++;
    for (size_t i = 2; i < ncurves + 2 && st == HEDDLE_OK; i++)
        first[i] += first[i - 1];
    for (size_t i = 0; i < n && st == HEDDLE_OK; i++)
        idx[first[p[i].what + 1]++] = (uint32_t)i;
    for (size_t i = 0; i < ncurves && st == HEDDLE_OK; i++)
        st = curve_build(&l->mem, l->mem.a, p, idx + first[i], first[i + 1] - first[i], &out[i]);
    heddle_scratch_drop(&tmp);
    return st;
}

/* ---- lanes and devices ----------------------------------------------------- */

static heddle_status place_find(struct heddle_energy_load *l, const char *name, size_t n,
                                uint32_t node, uint32_t *out)
{
    uint32_t i = 0;

    while (i < l->nplaces &&
           !(strlen(l->place[i].name) == n && memcmp(l->place[i].name, name, n) == 0))
        i++;
    *out = i;
    if (i < l->nplaces)
        return HEDDLE_OK;
    l->place[i].name = keep(&l->mem, name, n);
    if (l->place[i].name == NULL)
        return HEDDLE_ENOMEM;
    l->place[i].node = node;
    l->nplaces++;
    return HEDDLE_OK;
}

/* The device of each lane; there is room for as many as lanes. */
static heddle_status places_make(struct heddle_energy_load *l, uint32_t *lane_place)
{
    const struct heddle_log_view *v = heddle_log_get_view(l->log);

    l->place = heddle_scratch_get(&l->mem, v->nlanes + 1, sizeof(*l->place));
    if (l->place == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < v->nlanes; i++) {
        const struct heddle_log_lane *lane = &v->lanes[i];
        const char *name = lane->name != NULL ? lane->name : "";
        size_t n = strcspn(name, ".");

        if (n > HEDDLE_ENERGY_NAME_MAX)
            n = HEDDLE_ENERGY_NAME_MAX;
        if (n == 0 || (lane->kind != HEDDLE_LOG_DEVICE &&
                       (lane->kind != HEDDLE_LOG_WORKER || name[n] == '\0'))) {
            name = "cpu";
            n = 3;
        }
        HEDDLE_TRY(place_find(l, name, n, lane->node, &lane_place[i]));
    }
    return HEDDLE_OK;
}

bool heddle_energy_counts(const char *domain_device, const char *device)
{
    return domain_device[0] != '\0' && heddle_energy_fit_device(domain_device, device) > 0;
}

/* ---- tasks ----------------------------------------------------------------- */

static bool has_run(const struct heddle_log_view *v, size_t i)
{
    const struct heddle_log_task *t = &v->tasks[i];

    return t->lane < v->nlanes && t->status != HEDDLE_LOG_PENDING &&
           t->status != HEDDLE_LOG_CANCELLED && t->start_ns != HEDDLE_LOG_NONE &&
           t->end_ns != HEDDLE_LOG_NONE && t->end_ns >= t->start_ns;
}

static uint64_t task_bytes(const heddle_log *log, uint64_t id)
{
    const struct heddle_log_view *v = heddle_log_get_view(log);
    size_t first, last;
    uint64_t sum = 0;

    heddle_log_find_accesses(log, id, &first, &last);
    for (; first < last; first++)
        if (v->accesses[first].handle < v->nhandles)
            sum += v->handles[v->accesses[first].handle].bytes;
    return sum;
}

struct maker {
    struct heddle_energy_load *l;
    struct heddle_energy_keys *keys;
    const struct heddle_log_view *v;
    struct heddle_scratch tmp;
    struct heddle_map seen; /* what a row is, as a hash: 1 + key */
    uint32_t *lane_place;
    uint32_t *key; /* [ntasks] */
    struct piece *piece;
    size_t npieces;
};

static heddle_status task_key(struct maker *m, size_t i)
{
    const struct heddle_log_task *t = &m->v->tasks[i];
    const struct heddle_log_kernel *k = &m->v->kernels[t->kernel];
    const uint32_t place = m->lane_place[t->lane];
    const struct heddle_energy_key like = {
        .kernel = k->name,
        .variant = t->variant < k->nvariants && k->variants[t->variant].name != NULL
                       ? k->variants[t->variant].name
                       : "",
        .device = m->l->place[place].name,
        .bytes = m->keys->by_size ? task_bytes(m->l->log, t->id) : 0};
    const uint64_t hash = heddle_mix64(
        heddle_mix64((uint64_t)t->kernel << 32 | (uint64_t)t->variant << 24 | place) ^ like.bytes);
    uint64_t *slot = NULL;
    size_t key = 0;

    HEDDLE_TRY(heddle_map_slot(&m->seen, hash, &slot));
    if (*slot == 0) {
        HEDDLE_TRY(key_find(m->keys, &like, &key));
        *slot = key + 1;
    }
    m->key[i] = (uint32_t)(*slot - 1);
    m->keys->key[m->key[i]].ntasks++;
    return HEDDLE_OK;
}

static void piece_put(struct maker *m, size_t task, int64_t from, int64_t to)
{
    if (to > from)
        m->piece[m->npieces++] = (struct piece){from, to, NS, m->key[task]};
}

/* One lane: its executions in order of start, those that began last on top. */
static void lane_sweep(struct maker *m, const uint32_t *exec, size_t n, uint32_t *stack)
{
    int64_t now = INT64_MIN;
    size_t depth = 0;

    for (size_t i = 0; i <= n; i++) {
        const int64_t start = i < n ? m->v->tasks[exec[i]].start_ns : INT64_MAX;

        while (depth > 0) {
            const uint32_t top = stack[depth - 1];
            const int64_t end = m->v->tasks[top].end_ns;
            const int64_t until = end < start ? end : start;

            piece_put(m, top, now, until);
            if (until > now)
                now = until;
            if (end > start)
                break;
            depth--;
        }
        if (i == n)
            break;
        if (now < start)
            now = start;
        stack[depth++] = exec[i];
    }
}

static heddle_status lanes_sweep(struct maker *m)
{
    const struct heddle_log_view *v = m->v;
    size_t *first = heddle_scratch_get(&m->tmp, v->nlanes + 2, sizeof(*first));
    uint32_t *exec = heddle_scratch_get(&m->tmp, v->ntasks, sizeof(*exec));
    uint32_t *stack = heddle_scratch_get(&m->tmp, v->ntasks, sizeof(*stack));

    /* An execution is cut into pieces by those inside of it: each makes one
     * more piece at most of the one it interrupts. */
    m->piece = heddle_scratch_get(&m->tmp, 2 * v->ntasks, sizeof(*m->piece));
    if (first == NULL || exec == NULL || stack == NULL || m->piece == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < v->ntasks; i++)
        if (has_run(v, i))
            first[v->tasks[i].lane + 2]++;
    for (size_t i = 2; i < v->nlanes + 2; i++)
        first[i] += first[i - 1];
    for (size_t i = 0; i < v->ntasks; i++)
        if (has_run(v, i))
            exec[first[v->tasks[i].lane + 1]++] = (uint32_t)i;
    for (size_t i = 0; i < v->nlanes; i++)
        lane_sweep(m, exec + first[i], first[i + 1] - first[i], stack);
    return HEDDLE_OK;
}

static heddle_status tasks_make(struct maker *m)
{
    struct heddle_energy_load *l = m->l;
    bool is_first = true;

    m->key = heddle_scratch_get(&m->tmp, m->v->ntasks, sizeof(*m->key));
    if (m->key == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < m->v->ntasks; i++) {
        const struct heddle_log_task *t = &m->v->tasks[i];

        if (!has_run(m->v, i))
            continue;
        HEDDLE_TRY(task_key(m, i));
        if (is_first || t->start_ns < l->first_ns)
            l->first_ns = t->start_ns;
        if (is_first || t->end_ns > l->last_ns)
            l->last_ns = t->end_ns;
        is_first = false;
    }
    l->ncurves = m->keys->n;
    l->curve = heddle_scratch_get(&l->mem, l->ncurves, sizeof(*l->curve));
    l->seconds = heddle_scratch_get(&l->mem, l->ncurves, sizeof(*l->seconds));
    l->ntasks = heddle_scratch_get(&l->mem, l->ncurves, sizeof(*l->ntasks));
    if (l->curve == NULL || l->seconds == NULL || l->ntasks == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(lanes_sweep(m));
    HEDDLE_TRY(curves_build(l, m->piece, m->npieces, l->curve, l->ncurves));
    for (size_t i = 0; i < m->npieces; i++)
        l->seconds[m->piece[i].what] += (double)(m->piece[i].to - m->piece[i].from) * NS;
    for (size_t i = 0; i < m->v->ntasks; i++)
        if (has_run(m->v, i))
            l->ntasks[m->key[i]]++;
    for (size_t i = 0; i < l->ncurves; i++)
        m->keys->key[i].seconds += l->seconds[i];
    return HEDDLE_OK;
}

/* ---- transfers ------------------------------------------------------------- */

static bool is_move(const struct heddle_log_event *e)
{
    return e->kind >= HEDDLE_LOG_FETCH && e->kind <= HEDDLE_LOG_EVICT && e->y_ns >= 0 &&
           e->z_ns >= 0 && e->t_ns != HEDDLE_LOG_NONE && e->y_ns < INT64_MAX / 4 &&
           e->z_ns < INT64_MAX / 4 && e->t_ns < INT64_MAX / 4;
}

/* Its bytes, spread over the time of the copy, for each place it touches. */
static heddle_status moves_make(struct maker *m)
{
    struct heddle_energy_load *l = m->l;
    struct heddle_energy_curve *curve = heddle_scratch_get(&m->tmp, l->nplaces, sizeof(*curve));
    struct piece *p;
    size_t n = 0, k = 0;
    heddle_status st;

    for (size_t i = 0; i < m->v->nevents; i++)
        n += is_move(&m->v->events[i]);
    p = heddle_scratch_get(&m->tmp, n * l->nplaces, sizeof(*p));
    if (p == NULL || curve == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < m->v->nevents; i++) {
        const struct heddle_log_event *e = &m->v->events[i];
        const uint32_t from = e->b & 0xff, to = e->b >> 8;
        int64_t ns;

        if (!is_move(e))
            continue;
        ns = e->z_ns > 0 ? e->z_ns : 1;
        l->moved += (double)e->x;
        for (uint32_t j = 0; j < l->nplaces; j++) {
            if (l->place[j].node != from && l->place[j].node != to)
                continue;
            l->place[j].moved += (double)e->x;
            p[k++] = (struct piece){e->t_ns + e->y_ns, e->t_ns + e->y_ns + ns,
                                    (double)e->x / (double)ns, j};
        }
    }
    st = curves_build(l, p, k, curve, l->nplaces);
    for (size_t j = 0; j < l->nplaces && st == HEDDLE_OK; j++)
        l->place[j].bytes = curve[j];
    return st;
}

heddle_status heddle_energy_load_make(struct heddle_energy_load *l, const heddle_log *log,
                                      struct heddle_energy_keys *keys)
{
    struct maker m = {.l = l, .keys = keys, .v = heddle_log_get_view(log)};
    heddle_status st;

    *l = (struct heddle_energy_load){.log = log, .mem = heddle_scratch_make(keys->mem.a)};
    m.tmp = heddle_scratch_make(keys->mem.a);
    heddle_map_init(&m.seen, keys->mem.a);
    m.lane_place = heddle_scratch_get(&m.tmp, m.v->nlanes, sizeof(*m.lane_place));
    st = m.lane_place == NULL ? HEDDLE_ENOMEM : places_make(l, m.lane_place);
    if (st == HEDDLE_OK)
        st = tasks_make(&m);
    if (st == HEDDLE_OK)
        st = moves_make(&m);
    heddle_map_fini(&m.seen);
    heddle_scratch_drop(&m.tmp);
    return st;
}

void heddle_energy_load_drop(struct heddle_energy_load *l)
{
    heddle_scratch_drop(&l->mem);
}
