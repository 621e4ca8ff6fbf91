/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lanes: which lanes are workers and of what type, and when they were busy.
 *
 * Types      A lane of kind DEVICE has the device kind of the variants that ran
 *            there, or an unknown one; every other worker is a core. A kernel
 *            can run on workers of the types that its variants name, and where
 *            it has run; if that is a device, on unknown ones as well.
 * Invariants (1) the busy pieces of a lane are disjoint, do not touch, are in
 *                order, within [first, last], and together are the union of its
 *                executions
 *            (2) the program's lane: the worker with the smallest id, if the
 *                main program submitted nothing while that was busy. There
 *                the thread that waits for the tasks runs some of them itself;
 *                when it leaves, the lane says nothing.
 * Cost       linear; binary searches later.
 */
#include <string.h>

#include "base/assert.h"
#include "base/device.h"
#include "base/sort.h"
#include "explain/explain.h"

/* --- types ------------------------------------------------------------------- */

_Static_assert((unsigned)HEDDLE_DEVICE_MOST <= (unsigned)HEDDLE_EXPLAIN_DEVICE, "a type per kind");

static unsigned device_type(uint32_t device)
{
    if (device == HEDDLE_DEV_CPU)
        return HEDDLE_EXPLAIN_CORE;
    return device > HEDDLE_DEV_CPU && device <= HEDDLE_EXPLAIN_DEVICE ? device - 1
                                                                      : HEDDLE_EXPLAIN_DEVICE;
}

/* 0: the log does not tell. */
static uint32_t row_device(const struct heddle_log_view *v, const struct heddle_log_task *t)
{
    const struct heddle_log_kernel *k = &v->kernels[t->kernel];

    return t->variant < k->nvariants ? k->variants[t->variant].device : 0;
}

static void type_lanes(struct heddle_explain_work *w)
{
    const struct heddle_log_view *v = w->v;

    for (size_t l = 0; l < v->nlanes; l++) {
        const uint32_t kind = v->lanes[l].kind;

        w->type[l] = HEDDLE_EXPLAIN_NOT_A_WORKER;
        if (kind == HEDDLE_LOG_WORKER)
            w->type[l] = HEDDLE_EXPLAIN_CORE;
        else if (kind == HEDDLE_LOG_DEVICE)
            w->type[l] = HEDDLE_EXPLAIN_DEVICE;
    }
    for (uint32_t i = 0; i < w->nran; i++) {
        const struct heddle_log_task *t = &v->tasks[i];
        const uint32_t device = row_device(v, t);

        if (w->type[t->lane] == HEDDLE_EXPLAIN_NOT_A_WORKER)
            w->type[t->lane] = HEDDLE_EXPLAIN_CORE;
        else if (w->type[t->lane] == HEDDLE_EXPLAIN_DEVICE && device > HEDDLE_DEV_CPU)
            w->type[t->lane] = (uint8_t)device_type(device);
    }
}

/* Whatever can run on some device may do so on an unknown one. */
static uint8_t type_mask(unsigned type)
{
    return (uint8_t)(1u << type | (type != HEDDLE_EXPLAIN_CORE ? 1u << HEDDLE_EXPLAIN_DEVICE : 0u));
}

static void type_kernels(struct heddle_explain_work *w)
{
    const struct heddle_log_view *v = w->v;

    for (size_t k = 0; k < v->nkernels; k++)
        for (uint32_t i = 0; i < v->kernels[k].nvariants; i++) {
            const uint32_t device = v->kernels[k].variants[i].device;

            if (device != 0)
                w->kernel_mask[k] |= type_mask(device_type(device));
        }
    for (uint32_t i = 0; i < w->nran; i++) {
        const struct heddle_log_task *t = &v->tasks[i];

        if (t->status == HEDDLE_LOG_OK || t->status == HEDDLE_LOG_FAILED)
            w->kernel_mask[t->kernel] |= type_mask(w->type[t->lane]);
    }
}

/* --- busy time ----------------------------------------------------------------- */

static void mark_good(struct heddle_explain_work *w)
{
    for (uint32_t i = 0; i < w->nran; i++)
        w->is_good[i] = w->v->tasks[i].status == HEDDLE_LOG_OK;
    for (uint32_t i = 0; i < w->nran; i++)
        if (w->before[i] != HEDDLE_EXPLAIN_NONE)
            w->is_good[w->before[i]] = 0;
}

/* Adds a row to the lane's pieces [from, *n); rows come in order of start. */
static void busy_add(struct heddle_explain_work *w, size_t from, size_t *n, uint32_t row)
{
    const struct heddle_log_task *t = &w->v->tasks[row];
    struct heddle_explain_busy *b = w->busy + from;

    if (t->end_ns <= t->start_ns)
        return;
    if (*n > 0 && t->start_ns <= b[*n - 1].end) {
        b += *n - 1;
        if (t->end_ns > b->end) {
            b->end = t->end_ns;
            b->last = row;
        }
        return;
    }
    b[*n] = (struct heddle_explain_busy){
        .start = t->start_ns, .end = t->end_ns, .first = row, .last = row};
    if (*n > 0)
        b[*n].before = b[*n - 1].before + (b[*n - 1].end - b[*n - 1].start);
    ++*n;
}

/* Pieces of all lanes in one array without holes. */
static heddle_status busy_build(struct heddle_explain_work *w)
{
    const struct heddle_log_view *v = w->v;
    size_t *n, to = 0;

    n = heddle_scratch_get(w->mem, v->nlanes, sizeof(*n));
    if (n == NULL)
        return HEDDLE_ENOMEM;
    for (uint32_t i = 0; i < w->nran; i++)
        w->busy_at[v->tasks[i].lane + 1]++;
    for (size_t l = 0; l < v->nlanes; l++)
        w->busy_at[l + 1] += w->busy_at[l];
    for (uint32_t i = 0; i < w->nran; i++) {
        const uint32_t l = v->tasks[i].lane;

        busy_add(w, w->busy_at[l], &n[l], i);
    }
    for (size_t l = 0; l < v->nlanes; l++) {
        memmove(w->busy + to, w->busy + w->busy_at[l], n[l] * sizeof(*w->busy));
        w->busy_at[l] = to;
        to += n[l];
    }
    w->busy_at[v->nlanes] = to;
    heddle_scratch_pop(w->mem, n);
    return HEDDLE_OK;
}

size_t heddle_explain_busy_before(const struct heddle_explain_work *w, uint32_t lane, int64_t t)
{
    const struct heddle_explain_busy *b = w->busy + w->busy_at[lane];
    size_t lo = 0, hi = w->busy_at[lane + 1] - w->busy_at[lane], mid;

    while (lo < hi) {
        mid = lo + (hi - lo) / 2;
        if (b[mid].start < t)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Busy time before t. */
static int64_t busy_until(const struct heddle_explain_work *w, uint32_t lane, int64_t t)
{
    const size_t i = heddle_explain_busy_before(w, lane, t);
    const struct heddle_explain_busy *b = w->busy + w->busy_at[lane] + i - 1;

    return i == 0 ? 0 : b->before + (heddle_explain_min(t, b->end) - b->start);
}

int64_t heddle_explain_busy_in(const struct heddle_explain_work *w, uint32_t lane, int64_t a,
                               int64_t b)
{
    return b <= a ? 0 : busy_until(w, lane, b) - busy_until(w, lane, a);
}

/* --- states and the program ----------------------------------------------------- */

static void states_build(struct heddle_explain_work *w)
{
    const struct heddle_log_view *v = w->v;

    for (size_t i = 0; i < v->nstates; i++) {
        const unsigned state = v->states[i].state;

        w->state_at[v->states[i].lane + 1]++;
        if (state == HEDDLE_LOG_IDLE || state == HEDDLE_LOG_SPIN)
            w->has_looks = true;
        if (state == HEDDLE_LOG_DATA || state == HEDDLE_LOG_MEMORY)
            w->has_waits = true;
    }
    for (size_t l = 0; l < v->nlanes; l++)
        w->state_at[l + 1] += w->state_at[l];
    for (size_t i = 0; i < v->nstates; i++)
        w->state[w->state_at[v->states[i].lane]++] = (uint32_t)i;
    for (size_t l = v->nlanes; l > 0; l--) /* each is where the next begins */
        w->state_at[l] = w->state_at[l - 1];
    w->state_at[0] = 0;
}

static heddle_status program_build(struct heddle_explain_work *w)
{
    const struct heddle_log_view *v = w->v;
    struct heddle_scratch tmp = {.a = w->mem->a};
    struct heddle_pair *p = heddle_scratch_get(&tmp, 2 * (size_t)w->njobs, sizeof(*p));

    w->program = heddle_scratch_get(w->mem, w->njobs, sizeof(*w->program));
    if (p == NULL || w->program == NULL) {
        heddle_scratch_drop(&tmp);
        return HEDDLE_ENOMEM;
    }
    for (uint32_t j = 0; j < w->njobs; j++) {
        const struct heddle_log_task *t = &v->tasks[w->head[j]];

        if (t->parent == 0 && t->submit_ns != HEDDLE_LOG_NONE)
            p[w->nprogram++].key = heddle_time_key(t->submit_ns);
    }
    heddle_sort_pairs(p, p + w->nprogram, w->nprogram);
    for (size_t i = 0; i < w->nprogram; i++)
        w->program[i] = (int64_t)(p[i].key ^ (UINT64_C(1) << 63));
    heddle_scratch_drop(&tmp);
    return HEDDLE_OK;
}

/* Invariant (2). */
static void program_find(struct heddle_explain_work *w)
{
    const struct heddle_log_view *v = w->v;
    uint32_t lane = HEDDLE_EXPLAIN_NONE;
    size_t i = 0;

    w->program_lane = HEDDLE_EXPLAIN_NONE;
    for (uint32_t l = 0; l < v->nlanes; l++)
        if (v->lanes[l].kind == HEDDLE_LOG_WORKER &&
            (lane == HEDDLE_EXPLAIN_NONE || v->lanes[l].id < v->lanes[lane].id))
            lane = l;
    if (lane == HEDDLE_EXPLAIN_NONE || w->nprogram == 0)
        return;
    for (size_t b = w->busy_at[lane]; b < w->busy_at[lane + 1]; b++) {
        while (i < w->nprogram && w->program[i] <= w->busy[b].start)
            i++;
        if (i < w->nprogram && w->program[i] < w->busy[b].end)
            return;
    }
    w->program_lane = lane;
}

heddle_status heddle_explain_lanes(struct heddle_explain_work *w)
{
    const struct heddle_log_view *v = w->v;
    struct heddle_scratch *m = w->mem;

    w->type = heddle_scratch_get(m, v->nlanes, sizeof(*w->type));
    w->kernel_mask = heddle_scratch_get(m, v->nkernels, 1);
    w->is_good = heddle_scratch_get(m, w->nran, 1);
    w->busy_at = heddle_scratch_get(m, v->nlanes + 1, sizeof(*w->busy_at));
    w->busy = heddle_scratch_get(m, w->nran, sizeof(*w->busy));
    w->state_at = heddle_scratch_get(m, v->nlanes + 1, sizeof(*w->state_at));
    w->state = heddle_scratch_get(m, v->nstates, sizeof(*w->state));
    if (w->type == NULL || w->kernel_mask == NULL || w->is_good == NULL || w->busy_at == NULL ||
        w->busy == NULL || w->state_at == NULL || w->state == NULL)
        return HEDDLE_ENOMEM;
    type_lanes(w);
    type_kernels(w);
    mark_good(w);
    HEDDLE_TRY(busy_build(w));
    states_build(w);
    HEDDLE_TRY(program_build(w));
    program_find(w);
    return HEDDLE_OK;
}
