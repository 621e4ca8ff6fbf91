/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz/log: is the log of a run whole, and does it add up?
 *
 *   every second run writes one, of level 1
 *   transfers copy what their handle has, and as much in all as was counted
 *   memory changes by one copy at a time, from nothing
 *   in virtual time: a task begins when it is ready, and what its lane waited
 *   for is between its tasks
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "heddle/trace.h"

enum { NODES = 256, COPY_ALIGN = 256 };

bool fuzz_log_path(const struct fuzz_run *r, char *path, size_t cap)
{
    snprintf(path, cap, "%s/fuzz.log", r->setup->folder);
    return r->prog->seed % 2 != 0;
}

static const struct heddle_log_handle *find_handle(const struct heddle_log_view *v, uint32_t id)
{
    for (size_t i = 0; i < v->nhandles; i++)
        if (v->handles[i].id == id)
            return &v->handles[i];
    return NULL;
}

static void check_transfers(struct fuzz_run *r, const struct heddle_log_view *v)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < v->nevents && !r->is_wrong; i++) {
        const struct heddle_log_event *e = &v->events[i];
        const struct heddle_log_handle *h = find_handle(v, e->c);

        if (e->kind < HEDDLE_LOG_FETCH || e->kind > HEDDLE_LOG_EVICT)
            continue;
        sum += e->x;
        if (h == NULL || h->bytes != e->x)
            fuzz_wrong(r, "log: a transfer of %llu bytes of handle %u", (unsigned long long)e->x,
                       e->c);
        if (e->y_ns < 0 || e->z_ns < 0 || e->b % 256u >= v->nnodes || e->b / 256u >= v->nnodes ||
            e->b % 256 == e->b / 256)
            fuzz_wrong(r, "log: a transfer from %u to %u", e->b % 256u, e->b / 256u);
    }
    if (!r->is_wrong && sum < r->copied) /* the end may have copied more */
        fuzz_wrong(r, "log: %llu bytes were copied, %llu were counted", (unsigned long long)sum,
                   (unsigned long long)r->copied);
}

static void check_memory(struct fuzz_run *r, const struct heddle_log_view *v)
{
    uint64_t used[NODES] = {0};

    for (size_t i = 0; i < v->nevents && !r->is_wrong; i++) {
        const struct heddle_log_event *e = &v->events[i];
        const struct heddle_log_handle *h = find_handle(v, e->c);
        const bool is_alloc = e->kind == HEDDLE_LOG_MEM_ALLOC;
        uint64_t *u = &used[e->b % NODES], delta;

        if (!is_alloc && e->kind != HEDDLE_LOG_MEM_FREE)
            continue;
        delta = is_alloc ? e->x - *u : *u - e->x;
        if (delta == 0 || delta > UINT64_MAX / 2 || e->b >= v->nnodes)
            fuzz_wrong(r, "log: memory %u went from %llu to %llu bytes", e->b,
                       (unsigned long long)*u, (unsigned long long)e->x);
        /* On the host copies have the gaps of their array. */
        else if (e->c != 0 && e->b != 0 &&
                 (h == NULL || delta != (h->bytes + COPY_ALIGN - 1) / COPY_ALIGN * COPY_ALIGN))
            fuzz_wrong(r, "log: a copy of handle %u takes %llu bytes", e->c,
                       (unsigned long long)delta);
        *u = e->x;
    }
}

static void check_virtual(struct fuzz_run *r, const struct heddle_log_view *v)
{
    for (size_t i = 0; i < v->ntasks && !r->is_wrong; i++) {
        const struct heddle_log_task *t = &v->tasks[i];

        if (t->lane != HEDDLE_LOG_NO_LANE &&
            (t->start_ns < 0 || (t->ready_ns != HEDDLE_LOG_NONE && t->ready_ns > t->start_ns)))
            fuzz_wrong(r, "log: task %llu began before it was ready", (unsigned long long)t->id);
    }
    for (size_t i = 0; i < v->nstates && !r->is_wrong; i++)
        if (v->states[i].start_ns < 0 || v->states[i].end_ns < v->states[i].start_ns)
            fuzz_wrong(r, "log: a state at a time that never was");
}

static void check_view(struct fuzz_run *r, const heddle_log *log)
{
    const struct heddle_log_view *v = heddle_log_get_view(log);

    if (v->is_partial || v->ndamaged != 0 || v->lost != 0)
        fuzz_wrong(r, "the log is not whole: %s", heddle_log_get_partial(log));
    check_transfers(r, v);
    check_memory(r, v);
    if (r->prog->config.device == FUZZ_SIM)
        check_virtual(r, v);
}

void fuzz_log_check(struct fuzz_run *r)
{
    heddle_log *log = NULL;
    char path[512];
    heddle_status st;

    if (!fuzz_log_path(r, path, sizeof(path)))
        return;
    st = heddle_log_open(path, NULL, &log);
    if (st != HEDDLE_OK)
        fuzz_wrong(r, "the log cannot be read: %s", heddle_status_text(st));
    else
        check_view(r, log);
    heddle_log_close(log);
    unlink(path);
}
