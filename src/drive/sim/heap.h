/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DRIVE_SIM_HEAP_H
#define HEDDLE_DRIVE_SIM_HEAP_H

/*
 * The simulator's jobs and the heap of their events. Private to sim.c.
 *
 * Structure   jobs come from chunks and go back to a free list; the heap is a
 *             4-ary one in an array, keyed by (time, seq). A job has at most one
 *             event, so an array as long as there are jobs always suffices: it
 *             grows with the chunks, and what follows a job cannot fail.
 * Invariant   heap[job->pos].job == job for each job with pos != SIM_NO_EVENT.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "drive/drive.h"

#define SIM_NO_EVENT UINT32_MAX

enum sim_kind {
    SIM_KERNEL,
    SIM_COPY,
    SIM_BARRIER, /* order(): holds back what follows it in its stream */
    SIM_AFTER,   /* heddle_sim_after() */
    SIM_FAULT    /* a fault of the description with a time */
};

enum sim_state {
    SIM_QUEUED,  /* in its stream */
    SIM_RUNNING, /* a kernel, or a copy without link; also AFTER and FAULT */
    SIM_LINED,   /* in its link, behind others */
    SIM_LATENT,  /* on a link with a bus: not yet flowing */
    SIM_FLOWING, /* on a link: moving bytes */
    SIM_DYING    /* the device was lost */
};

/* A job's place among those that may use a device's memory. */
struct sim_pin {
    struct sim_pin *prev, *next;
    struct sim_job *job;
    uint64_t number; /* order in which the device got it */
};

struct sim_job {
    uint64_t seq; /* of its event */
    uint64_t begin;
    uint32_t pos;
    enum sim_kind kind;
    enum sim_state state;
    heddle_status st;
    struct sim_job *next;    /* in its stream, its link or the free list */
    struct sim_pin pin[2];   /* its device's; PEER: also the other one's */
    struct sim_job *waiters; /* barriers, through wait_next */
    struct sim_job *wait_next;
    struct heddle_op *op;
    unsigned cls, stream;
    bool is_ready; /* barrier: what it waits for has ended */
    bool is_dead;  /* barrier: its device was lost */
    bool is_in_run;
    double ns;    /* kernel: how long */
    double share; /* kernel: of its device; 0: others do not matter */
    heddle_run_fn run;
    struct heddle_exec *x;
    int link;          /* copy; -1: none */
    unsigned peer_cls; /* PEER */
    uint64_t bytes;
    uint64_t estimate; /* ns on an idle link */
    double left, rate; /* flowing: bytes left at `since`, bytes per ns; a kernel
                          that shares: ns, ns per ns */
    uint64_t since;
    unsigned fault;          /* its number in the description */
    struct heddle_copy copy; /* last: not cleared for other kinds */
};

struct sim_event {
    uint64_t time, seq;
    struct sim_job *job;
};

struct sim_chunk {
    struct sim_chunk *next;
    size_t njobs;
    struct sim_job job[];
};

struct sim_heap {
    const struct heddle_allocator *a;
    struct sim_event *event;
    uint32_t n, cap;
    uint64_t seq; /* of the next event */
    struct sim_chunk *chunks;
    struct sim_job *free_jobs;
    size_t njobs;
};

static inline bool sim_before(const struct sim_event *a, const struct sim_event *b)
{
    return a->time < b->time || (a->time == b->time && a->seq < b->seq);
}

static inline void sim_heap_set(struct sim_heap *h, uint32_t pos, struct sim_event e)
{
    h->event[pos] = e;
    e.job->pos = pos;
}

static inline void sim_heap_up(struct sim_heap *h, uint32_t pos, struct sim_event e)
{
    while (pos > 0) {
        const uint32_t parent = (pos - 1) / 4;

        if (!sim_before(&e, &h->event[parent]))
            break;
        sim_heap_set(h, pos, h->event[parent]);
        pos = parent;
    }
    sim_heap_set(h, pos, e);
}

static inline void sim_heap_down(struct sim_heap *h, uint32_t pos, struct sim_event e)
{
    for (;;) {
        const uint32_t first = 4 * pos + 1;
        const uint32_t end = first + 4 < h->n ? first + 4 : h->n;
        uint32_t best = first;

        if (first >= h->n)
            break;
        for (uint32_t i = first + 1; i < end; i++)
            if (sim_before(&h->event[i], &h->event[best]))
                best = i;
        if (!sim_before(&h->event[best], &e))
            break;
        sim_heap_set(h, pos, h->event[best]);
        pos = best;
    }
    sim_heap_set(h, pos, e);
}

static inline void sim_heap_place(struct sim_heap *h, uint32_t pos, struct sim_event e)
{
    if (pos > 0 && sim_before(&e, &h->event[(pos - 1) / 4]))
        sim_heap_up(h, pos, e);
    else
        sim_heap_down(h, pos, e);
}

/* The job's event at `time`: a new one, or the one it has is moved. */
static inline void sim_heap_put(struct sim_heap *h, struct sim_job *j, uint64_t time)
{
    if (j->pos == SIM_NO_EVENT) {
        j->seq = h->seq++;
        sim_heap_up(h, h->n++, (struct sim_event){time, j->seq, j});
    } else {
        sim_heap_place(h, j->pos, (struct sim_event){time, j->seq, j});
    }
}

static inline void sim_heap_remove(struct sim_heap *h, struct sim_job *j)
{
    const uint32_t pos = j->pos;

    if (pos == SIM_NO_EVENT)
        return;
    j->pos = SIM_NO_EVENT;
    h->n--;
    if (pos < h->n)
        sim_heap_place(h, pos, h->event[h->n]);
}

static inline bool sim_heap_reserve(struct sim_heap *h, size_t n)
{
    const size_t cap = n > 2 * (size_t)h->cap ? n : 2 * (size_t)h->cap;
    struct sim_event *event;

    if (n <= h->cap)
        return true;
    if (cap >= SIM_NO_EVENT / 4)
        return false;
    event = heddle_alloc(h->a, cap * sizeof(*event));
    if (event == NULL)
        return false;
    if (h->n > 0)
        memcpy(event, h->event, h->n * sizeof(*event));
    heddle_free(h->a, h->event, h->cap * sizeof(*event));
    h->event = event;
    h->cap = (uint32_t)cap;
    return true;
}

/* More jobs, and as many places for events. */
static inline bool sim_heap_grow(struct sim_heap *h)
{
    const size_t add = h->njobs == 0 ? 64 : h->njobs < 4096 ? h->njobs : 4096;
    struct sim_chunk *c;

    if (!sim_heap_reserve(h, h->njobs + add))
        return false;
    c = heddle_alloc(h->a, sizeof(*c) + add * sizeof(c->job[0]));
    if (c == NULL)
        return false;
    c->next = h->chunks;
    c->njobs = add;
    h->chunks = c;
    h->njobs += add;
    for (size_t i = add; i-- > 0;) {
        c->job[i].next = h->free_jobs;
        h->free_jobs = &c->job[i];
    }
    return true;
}

/* NULL: no memory. */
static inline struct sim_job *sim_job_get(struct sim_heap *h, enum sim_kind kind)
{
    struct sim_job *j;

    if (h->free_jobs == NULL && !sim_heap_grow(h))
        return NULL;
    j = h->free_jobs;
    h->free_jobs = j->next;
    memset(j, 0, offsetof(struct sim_job, copy));
    j->kind = kind;
    j->pos = SIM_NO_EVENT;
    j->link = -1;
    return j;
}

static inline void sim_job_put(struct sim_heap *h, struct sim_job *j)
{
    j->next = h->free_jobs;
    h->free_jobs = j;
}

static inline void sim_heap_fini(struct sim_heap *h)
{
    heddle_free(h->a, h->event, h->cap * sizeof(*h->event));
    while (h->chunks != NULL) {
        struct sim_chunk *c = h->chunks;

        h->chunks = c->next;
        heddle_free(h->a, c, sizeof(*c) + c->njobs * sizeof(c->job[0]));
    }
}

#endif /* HEDDLE_DRIVE_SIM_HEAP_H */
