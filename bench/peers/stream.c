/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream: the task streams and the frame of a peer program.
 *
 * Purpose    one definition of the streams for all peers, so that they differ
 *            in the library under test only.
 * Invariants 1. The operands of a task are distinct.
 *            2. Everything is drawn before the clock starts: a peer pays for
 *               reading 16 bytes of the table per task, not for the generator.
 *            3. With --check, task i may run exactly when each operand was
 *               written want[] times and, for the updated one, read nreads
 *               times since: what running in submission order gives.
 * Threads    stream_check() runs on any thread. Its counters are atomic, so
 *            that a peer that breaks the order is reported, not undefined.
 */
#include <limits.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "stream.h"

enum { RANDOM_HANDLES = 1024, CHOLESKY_TILES = 64 };

struct want {
    uint32_t version[STREAM_MAX_OPERANDS];
    uint32_t nreads;
};

struct handle_state {
    atomic_uint version;
    atomic_uint nreads;
};

struct stream_order {
    struct want *want;
    struct handle_state *state;
    atomic_size_t nrun;
    atomic_size_t nwrong;
};

/* ---- the streams -------------------------------------------------------- */

static void stream_push(struct stream *s, uint32_t n, uint32_t a, uint32_t b, uint32_t c)
{
    s->tasks[s->ntasks++] = (struct stream_task){{a, b, c}, n};
}

static uint32_t random_index(uint64_t *x)
{
    *x ^= *x >> 12;
    *x ^= *x << 25;
    *x ^= *x >> 27;
    return (uint32_t)(((*x * 2685821657736338717ull) >> 33) % RANDOM_HANDLES);
}

static void stream_random(struct stream *s, size_t n)
{
    uint64_t x = 42;

    for (size_t i = 0; i < n; i++) {
        uint32_t a = random_index(&x);
        uint32_t b = random_index(&x);
        uint32_t c;

        while (b == a)
            b = random_index(&x);
        c = random_index(&x);
        while (c == a || c == b)
            c = random_index(&x);
        stream_push(s, 3, a, b, c);
    }
}

static uint32_t tile(uint32_t i, uint32_t j)
{
    return i * (i + 1) / 2 + j;
}

static void stream_cholesky(struct stream *s)
{
    const uint32_t nt = CHOLESKY_TILES;

    for (uint32_t k = 0; k < nt; k++) {
        stream_push(s, 1, tile(k, k), 0, 0);
        for (uint32_t i = k + 1; i < nt; i++)
            stream_push(s, 2, tile(k, k), tile(i, k), 0);
        for (uint32_t i = k + 1; i < nt; i++) {
            stream_push(s, 2, tile(i, k), tile(i, i), 0);
            for (uint32_t j = k + 1; j < i; j++)
                stream_push(s, 3, tile(i, k), tile(j, k), tile(i, j));
        }
    }
}

static size_t cholesky_ntasks(void)
{
    const size_t nt = CHOLESKY_TILES;

    return nt + nt * (nt - 1) + nt * (nt - 1) * (nt - 2) / 6;
}

static int stream_init(struct stream *s, const char *shape, size_t n)
{
    const bool is_cholesky = strcmp(shape, "cholesky") == 0;

    memset(s, 0, sizeof(*s));
    if (is_cholesky)
        n = cholesky_ntasks();
    s->tasks = calloc(n, sizeof(*s->tasks));
    if (s->tasks == NULL) {
        fprintf(stderr, "no memory for %zu tasks\n", n);
        return 1;
    }
    if (is_cholesky) {
        s->nhandles = tile(CHOLESKY_TILES, 0);
        stream_cholesky(s);
    } else if (strcmp(shape, "random") == 0) {
        s->nhandles = RANDOM_HANDLES;
        stream_random(s, n);
    } else {
        s->nhandles = strcmp(shape, "chain") == 0 ? 1 : 0;
        for (size_t i = 0; i < n; i++)
            stream_push(s, (uint32_t)s->nhandles, 0, 0, 0);
    }
    return 0;
}

/* ---- --check ------------------------------------------------------------ */

static int check_init(struct stream *s)
{
    struct stream_order *c = calloc(1, sizeof(*c));
    uint32_t(*now)[2] = calloc(s->nhandles + 1, sizeof(*now));

    if (c != NULL) {
        c->want = calloc(s->ntasks, sizeof(*c->want));
        c->state = calloc(s->nhandles + 1, sizeof(*c->state));
    }
    if (c == NULL || now == NULL || c->want == NULL || c->state == NULL) {
        fprintf(stderr, "no memory to check %zu tasks\n", s->ntasks);
        return 1;
    }
    for (size_t i = 0; i < s->ntasks; i++) {
        const struct stream_task *t = &s->tasks[i];

        for (uint32_t k = 0; k < t->n; k++) {
            c->want[i].version[k] = now[t->h[k]][0];
            if (k + 1 < t->n) {
                now[t->h[k]][1]++;
            } else {
                c->want[i].nreads = now[t->h[k]][1];
                now[t->h[k]][0]++;
                now[t->h[k]][1] = 0;
            }
        }
    }
    free(now);
    s->order = c;
    return 0;
}

void stream_check(const struct stream *s, size_t i)
{
    struct stream_order *c = s->order;
    const struct stream_task *t = &s->tasks[i];
    bool is_ok = true;

    for (uint32_t k = 0; k < t->n; k++) {
        struct handle_state *h = &c->state[t->h[k]];

        is_ok = is_ok && atomic_load(&h->version) == c->want[i].version[k];
        if (k + 1 < t->n) {
            atomic_fetch_add(&h->nreads, 1);
        } else {
            is_ok = is_ok && atomic_load(&h->nreads) == c->want[i].nreads;
            atomic_store(&h->nreads, 0);
            atomic_fetch_add(&h->version, 1);
        }
    }
    atomic_fetch_add(&c->nrun, 1);
    if (!is_ok)
        atomic_fetch_add(&c->nwrong, 1);
}

static int check_report(const struct peer *p)
{
    struct stream_order *c = p->stream.order;
    const size_t nrun = atomic_load(&c->nrun);
    const size_t nwrong = atomic_load(&c->nwrong);
    const bool is_ok = nrun == p->stream.ntasks && nwrong == 0;

    printf("{\"name\":\"%s\",\"shape\":\"%s\",\"workers\":%u,\"tasks\":%zu,"
           "\"ran\":%zu,\"out_of_order\":%zu,\"check\":\"%s\"}\n",
           p->name, p->opts.shape, p->opts.workers, p->stream.ntasks, nrun, nwrong,
           is_ok ? "ok" : "failed");
    return is_ok ? 0 : 1;
}

/* ---- clocks ------------------------------------------------------------- */

static uint64_t clock_ns(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void peer_start(struct peer_times *t)
{
    t->cpu_start_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    t->start_ns = clock_ns(CLOCK_MONOTONIC);
}

void peer_submitted(struct peer_times *t)
{
    t->submitted_ns = clock_ns(CLOCK_MONOTONIC);
}

void peer_end(struct peer_times *t)
{
    t->end_ns = clock_ns(CLOCK_MONOTONIC);
    t->cpu_end_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

void peer_keep_memory(void)
{
    (void)mallopt(M_TRIM_THRESHOLD, INT_MAX);
    (void)mallopt(M_MMAP_THRESHOLD, INT_MAX);
    (void)mallopt(M_TOP_PAD, 64 << 20);
}

/* ---- the frame ---------------------------------------------------------- */

static void usage(const char *prog)
{
    fprintf(stderr,
            "usage: %s --shape independent|chain|random|cholesky [--tasks N]\n"
            "       [--workers W] [--reps R] [--config C] [--sched S] "
            "[--check]\n",
            prog);
}

static bool read_count(const char *text, size_t *out)
{
    char *end;
    const unsigned long long v = strtoull(text, &end, 10);

    if (*text < '0' || *text > '9' || *end != '\0' || v == 0 || v > UINT32_MAX)
        return false;
    *out = (size_t)v;
    return true;
}

static bool opts_set(struct peer_opts *o, const char *key, const char *value)
{
    size_t n = 0;

    if (strcmp(key, "--shape") == 0)
        o->shape = value;
    else if (strcmp(key, "--config") == 0)
        o->config = value;
    else if (strcmp(key, "--sched") == 0)
        o->sched = value;
    else if (!read_count(value, &n))
        return false;
    else if (strcmp(key, "--tasks") == 0)
        o->ntasks = n;
    else if (strcmp(key, "--workers") == 0)
        o->workers = (unsigned)n;
    else if (strcmp(key, "--reps") == 0)
        o->reps = (unsigned)n;
    else
        return false;
    return true;
}

static bool opts_parse(struct peer_opts *o, int argc, char **argv)
{
    *o = (struct peer_opts){.shape = "independent", .ntasks = 1000000, .workers = 2, .reps = 1};

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--check") == 0)
            o->is_check = true;
        else if (i + 1 >= argc || !opts_set(o, argv[i], argv[i + 1]))
            return false;
        else
            i++;
    }
    return strcmp(o->shape, "independent") == 0 || strcmp(o->shape, "chain") == 0 ||
           strcmp(o->shape, "random") == 0 || strcmp(o->shape, "cholesky") == 0;
}

static void times_print(const struct peer *p, const struct peer_times *t)
{
    const double n = (double)p->stream.ntasks;

    printf("{\"name\":\"%s\",\"shape\":\"%s\",\"workers\":%u,\"tasks\":%zu,"
           "\"ns_per_task\":%.1f,\"submit_ns_per_task\":%.1f,"
           "\"cpu_ns_per_task\":%.1f}\n",
           p->name, p->opts.shape, p->opts.workers, p->stream.ntasks,
           (double)(t->end_ns - t->start_ns) / n, (double)(t->submitted_ns - t->start_ns) / n,
           (double)(t->cpu_end_ns - t->cpu_start_ns) / n);
    fflush(stdout);
}

/* Threads are started, pools filled, pages touched; not timed. */
static int peer_warm_up(struct peer *p, const struct peer_ops *ops)
{
    const size_t n = p->stream.ntasks;
    struct peer_times t;
    int rc;

    if (p->warmup_tasks != 0 && p->warmup_tasks < n)
        p->stream.ntasks = p->warmup_tasks;
    rc = ops->run(p, &t);
    p->stream.ntasks = n;
    return rc;
}

static int peer_measure(struct peer *p, const struct peer_ops *ops)
{
    struct peer_times t;
    int rc = p->opts.is_check ? 0 : peer_warm_up(p, ops);

    if (p->opts.is_check)
        p->opts.reps = 1;
    for (unsigned r = 0; rc == 0 && r < p->opts.reps; r++) {
        rc = ops->run(p, &t);
        if (rc == 0 && p->opts.is_check)
            rc = check_report(p);
        else if (rc == 0)
            times_print(p, &t);
    }
    return rc;
}

int peer_main(int argc, char **argv, const struct peer_ops *ops)
{
    struct peer p = {.name = argv[0]};
    int rc;

    if (!opts_parse(&p.opts, argc, argv)) {
        usage(argv[0]);
        return 2;
    }
    if (stream_init(&p.stream, p.opts.shape, p.opts.ntasks) != 0 ||
        (p.opts.is_check && check_init(&p.stream) != 0))
        return 1;
    rc = ops->open(&p);
    if (rc == 0) {
        rc = peer_measure(&p, ops);
        ops->close(&p);
    }
    if (p.stream.order != NULL) {
        free(p.stream.order->want);
        free(p.stream.order->state);
        free(p.stream.order);
    }
    free(p.stream.tasks);
    return rc;
}
