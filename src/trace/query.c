/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * query: what can be asked of an open log without computing anything.
 *
 * Threads    the log is constant; any number at once.
 */
#include "trace/log.h"

const struct heddle_log_view *heddle_log_get_view(const heddle_log *log)
{
    return log == NULL ? NULL : &log->v;
}

const char *heddle_log_get_partial(const heddle_log *log)
{
    return log == NULL ? "" : log->partial;
}

size_t heddle_log_find_task(const heddle_log *log, uint64_t id)
{
    const struct heddle_log_arrays *r;
    size_t lo = 0, hi, mid;

    if (log == NULL)
        return SIZE_MAX;
    r = &log->arr;
    hi = r->ntasks;
    while (lo < hi) {
        mid = lo + (hi - lo) / 2;
        if (r->tasks[r->by_id[mid]].id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < r->ntasks && r->tasks[r->by_id[lo]].id == id ? r->by_id[lo] : SIZE_MAX;
}

/* First row whose id, `stride` bytes apart, is not below `id`. */
static size_t lower_bound(const uint64_t *ids, size_t stride, size_t n, uint64_t id)
{
    size_t lo = 0, hi = n, mid;

    while (lo < hi) {
        mid = lo + (hi - lo) / 2;
        if (*(const uint64_t *)((const void *)((const char *)ids + mid * stride)) < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* *first and *last get the rows of `id`; no rows without a log. */
static void find_range(const uint64_t *ids, size_t stride, size_t n, uint64_t id, size_t *first,
                       size_t *last)
{
    if (first != NULL)
        *first = n > 0 ? lower_bound(ids, stride, n, id) : 0;
    if (last != NULL)
        *last = n == 0 ? 0 : id == UINT64_MAX ? n : lower_bound(ids, stride, n, id + 1);
}

void heddle_log_find_deps(const heddle_log *log, uint64_t succ, size_t *first, size_t *last)
{
    const size_t n = log != NULL ? log->v.ndeps : 0;

    find_range(n > 0 ? &log->v.deps[0].succ : NULL, sizeof *log->v.deps, n, succ, first, last);
}

void heddle_log_find_accesses(const heddle_log *log, uint64_t task, size_t *first, size_t *last)
{
    const size_t n = log != NULL ? log->v.naccesses : 0;

    find_range(n > 0 ? &log->v.accesses[0].task : NULL, sizeof *log->v.accesses, n, task, first,
               last);
}

void heddle_log_find_attrs(const heddle_log *log, uint64_t task, size_t *first, size_t *last)
{
    const size_t n = log != NULL ? log->v.nattrs : 0;

    find_range(n > 0 ? &log->v.attrs[0].task : NULL, sizeof *log->v.attrs, n, task, first, last);
}

const char *heddle_log_status_name(unsigned status)
{
    switch (status) {
    case HEDDLE_LOG_OK: return "ok";
    case HEDDLE_LOG_FAILED: return "failed";
    case HEDDLE_LOG_CANCELLED: return "cancelled";
    case HEDDLE_LOG_DECLINED: return "declined";
    case HEDDLE_LOG_PENDING: return "pending";
    }
    return "?";
}

const char *heddle_log_state_name(unsigned state)
{
    switch (state) {
    case HEDDLE_LOG_IDLE: return "idle";
    case HEDDLE_LOG_SPIN: return "spin";
    case HEDDLE_LOG_SLEEP: return "sleep";
    case HEDDLE_LOG_WAKE: return "wake";
    case HEDDLE_LOG_SUBMIT: return "submit";
    case HEDDLE_LOG_OVERHEAD: return "overhead";
    case HEDDLE_LOG_DATA: return "data";
    case HEDDLE_LOG_MEMORY: return "memory";
    }
    return "?";
}

const char *heddle_log_event_name(unsigned kind)
{
    switch (kind) {
    case HEDDLE_LOG_PUSH: return "push";
    case HEDDLE_LOG_POP: return "pop";
    case HEDDLE_LOG_STEAL: return "steal";
    case HEDDLE_LOG_SPLIT: return "split";
    case HEDDLE_LOG_FETCH: return "fetch";
    case HEDDLE_LOG_PREFETCH: return "prefetch";
    case HEDDLE_LOG_WRITEBACK: return "writeback";
    case HEDDLE_LOG_EVICT: return "evict";
    case HEDDLE_LOG_MEM_ALLOC: return "alloc";
    case HEDDLE_LOG_MEM_FREE: return "free";
    case HEDDLE_LOG_POWER: return "power";
    case HEDDLE_LOG_LOCK: return "lock";
    case HEDDLE_LOG_LOST: return "lost";
    }
    return "?";
}
