/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lost: time of tasks in which their thread was ready and did not run.
 *
 * Structure  a look reads the processor time of the thread and how often it was switched
 *            off its core, with its will (it slept) and against its will. Between two looks
 *            without a sleep, time that passed and was not processor time was lost.
 * Purpose    at most one look in LOST_PERIOD_NS, so that short tasks pay a comparison. A task
 *            that lost much is long, so there is a look at its end.
 * Invariant  what a look charges to a task is at most what the task lost: what may have
 *            been lost before its start is taken off
 * Limits     time that a hypervisor took from the core (steal) counts only where the system
 *            takes it off the processor time of threads.
 * Threads    the holder of a slot.
 */
#include "core/lost.h"

#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"
#include "core/ctx.h"
#include "core/time.h"
#include "trace/trace.h"

#define LEAST_NS 100000 /* that is worth a word */

/* In this order, so that being switched off in between does not look like a loss. */
static void lost_read(struct worker *w)
{
    struct timespec t = {0};
    struct rusage u = {0};

    (void)getrusage(RUSAGE_THREAD, &u);
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    w->lost.ticks = heddle_ticks();
    w->lost.cpu_ns = (uint64_t)t.tv_sec * HEDDLE_NS_PER_S + (uint64_t)t.tv_nsec;
    w->lost.nsleeps = (uint64_t)u.ru_nvcsw;
    w->lost.nforced = (uint64_t)u.ru_nivcsw;
    w->lost.thread = (uintptr_t)pthread_self();
    w->look_at = w->lost.ticks + w->ctx->look_ticks;
}

void heddle_lost_begin(struct worker *w, uint64_t now)
{
    if (now >= w->look_at && w->ctx->time->is_measured)
        lost_read(w);
}

uint64_t heddle_lost_look(struct worker *w, uint64_t start, uint64_t now)
{
    const struct heddle_clock *clock = &w->ctx->clock;
    const struct worker_lost was = w->lost;
    uint64_t wall_ns, cpu_ns, before_ns, lost_ns;

    if (!w->ctx->time->is_measured || start == 0 || start > now)
        return 0;
    lost_read(w);
    if (was.thread != w->lost.thread || was.nsleeps != w->lost.nsleeps ||
        was.nforced == w->lost.nforced || was.ticks > now)
        return 0;
    wall_ns = heddle_clock_delta_ns(clock, now - was.ticks);
    cpu_ns = w->lost.cpu_ns - was.cpu_ns;
    before_ns = start > was.ticks ? heddle_clock_delta_ns(clock, start - was.ticks) : 0;
    lost_ns = wall_ns > cpu_ns + before_ns ? wall_ns - cpu_ns - before_ns : 0;
    return lost_ns < LEAST_NS ? 0 : (uint64_t)((double)lost_ns / clock->ns_per_tick);
}

void heddle_lost_trace(struct worker *w, uint64_t task, uint64_t ticks, uint64_t now)
{
    if (ticks != 0)
        heddle_trace_event(w->lane, HEDDLE_TRACE_TASK, HEDDLE_LOG_LOST,
                           &(struct heddle_trace_event){.t = now, .task = task, .y = ticks});
}
