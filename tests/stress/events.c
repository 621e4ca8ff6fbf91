/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events that foreign threads complete while others submit behind them, wait for
 * them and drop them.
 */
#include "stress.h"

enum { COMPLETERS = 2, RING = 64 };

struct world {
    struct stress s;
    size_t n;
    _Atomic(heddle_event *) *event; /* published one by one */
    int64_t *mem;
    _Atomic size_t ndone;
};

STRESS_KERNEL(k_add, HEDDLE_RW, stress_add);

static void on_done(void *user, heddle_status st)
{
    struct world *w = user;

    CHECK_OK(st);
    atomic_fetch_add(&w->ndone, 1);
}

/* Completes and drops the events whose number is i modulo COMPLETERS. */
static void complete_all(void *user, unsigned i)
{
    struct world *w = user;

    for (size_t k = i; k < w->n; k += COMPLETERS) {
        heddle_event *e;

        while ((e = atomic_load(&w->event[k])) == NULL)
            usleep(10);
        CHECK_OK(heddle_event_complete(e, HEDDLE_OK));
        heddle_event_unref(e);
    }
}

static void world_open(struct world *w, size_t n)
{
    memset(w, 0, sizeof(*w));
    w->n = n;
    w->event = calloc(n, sizeof(*w->event));
    w->mem = calloc(RING, sizeof(*w->mem));
    CHECK(w->event != NULL && w->mem != NULL);
    stress_open(&w->s, 2, NULL);
}

static void world_close(struct world *w)
{
    stress_close(&w->s);
    free(w->event);
    free(w->mem);
}

/* A task behind each event; every third event also waits for the one before. */
static void submit_all(struct world *w, heddle_handle **h)
{
    heddle_event *e, *last = NULL, *ended;

    for (size_t i = 0; i < w->n; i++) {
        struct heddle_task_opts opts = {
            .size = sizeof(opts), .after = &e, .nafter = 1, .done = on_done, .done_user = w};
        struct heddle_call call = {.operand = {h[i % RING]}, .opts = &opts};

        ended = NULL;
        opts.event_out = i % 16 == 0 ? &ended : NULL;
        CHECK_OK(heddle_event_create(w->s.ctx, &e));
        if (i % 3 == 0 && last != NULL)
            CHECK_OK(heddle_event_after(e, last));
        heddle_event_unref(last);
        last = heddle_event_ref(e);
        CHECK_OK(heddle_submit(w->s.ctx, &k_add, &call));
        atomic_store(&w->event[i], e); /* the completer's from here on */
        if (ended != NULL && i % 64 == 0)
            CHECK_OK(heddle_event_wait(ended, 0));
        heddle_event_unref(ended);
    }
    heddle_event_unref(last);
}

TEST(completed_by_others)
{
    struct stress_thread t[COMPLETERS];
    heddle_handle *h[RING];
    int64_t sum = 0;
    struct world w;

    world_open(&w, test_scale(20000));
    for (size_t i = 0; i < RING; i++)
        h[i] = stress_vector(&w.s, &w.mem[i], 1);
    stress_threads_start(t, COMPLETERS, complete_all, &w);
    submit_all(&w, h);
    stress_threads_join(t, COMPLETERS);
    for (size_t i = 0; i < RING; i++)
        heddle_handle_unref(h[i]);
    CHECK_OK(heddle_wait(w.s.ctx));
    CHECK_EQ(w.ndone, w.n);
    for (size_t i = 0; i < RING; i++)
        sum += w.mem[i];
    CHECK_EQ(sum, w.n);
    world_close(&w);
}

/* All exist before the first is completed. */
TEST(all_pending)
{
    struct stress_thread t[COMPLETERS];
    struct heddle_task_opts opts = {.size = sizeof(opts), .done = on_done};
    struct heddle_call call = {.opts = &opts};
    heddle_event **all;
    struct world w;

    world_open(&w, test_scale(2000));
    all = calloc(w.n, sizeof(*all));
    CHECK(all != NULL);
    opts.done_user = &w;
    opts.after = all;
    for (size_t i = 0; i < w.n; i++)
        CHECK_OK(heddle_event_create(w.s.ctx, &all[i]));
    call.operand[0] = stress_vector(&w.s, w.mem, 1);
    for (opts.nafter = 0; opts.nafter < w.n; opts.nafter += 50)
        CHECK_OK(heddle_submit(w.s.ctx, &k_add, &call));
    for (size_t i = 0; i < w.n; i++)
        atomic_store(&w.event[i], all[i]);
    stress_threads_start(t, COMPLETERS, complete_all, &w);
    CHECK_OK(heddle_wait(w.s.ctx));
    stress_threads_join(t, COMPLETERS);
    CHECK_EQ(w.mem[0], (w.n + 49) / 50);
    CHECK_EQ(w.ndone, (w.n + 49) / 50);
    heddle_handle_unref(call.operand[0]);
    free(all);
    world_close(&w);
}

TEST_MAIN(completed_by_others, all_pending)
