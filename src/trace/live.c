/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live: a thread that brings a log to its file about once per second.
 *
 * Purpose    a reader of the file sees what a running program did a second ago, also
 *            when lanes are idle or their tasks take minutes. Recording knows
 *            nothing of it.
 * Threads    one per trace with a file; start and stop run alone.
 */
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "trace/store.h"

#define STACK_BYTES (256 * 1024)

static void *live_main(void *arg)
{
    struct heddle_trace *tr = arg;
    const struct timespec ts = {.tv_sec = tr->flush_ms / 1000,
                                .tv_nsec = (long)(tr->flush_ms % 1000) * 1000000};

    for (;;) {
        (void)syscall(SYS_futex, &tr->stops, FUTEX_WAIT_PRIVATE, 0, &ts, NULL, 0);
        if (heddle_load_acq(&tr->stops) != 0)
            return NULL;
        heddle_trace_flush(tr);
    }
}

void heddle_trace_live_start(struct heddle_trace *tr)
{
    const struct heddle_thread_opts o = {.name = "heddle-log", .stack_bytes = STACK_BYTES};

    tr->has_flusher = heddle_thread_create(&tr->flusher, &o, live_main, tr) == HEDDLE_OK;
}

void heddle_trace_live_stop(struct heddle_trace *tr)
{
    if (!tr->has_flusher)
        return;
    heddle_store_rel(&tr->stops, 1u);
    (void)syscall(SYS_futex, &tr->stops, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    if (heddle_thread_join(&tr->flusher) == HEDDLE_OK)
        tr->has_flusher = false;
}
