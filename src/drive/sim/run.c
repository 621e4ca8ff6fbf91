/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run: streams, the step, and what goes wrong on purpose.
 *
 * Streams     one per worker, strictly in order: a job holds the stream until it
 *             ends. One more, number nworkers, is for copies: there, only links
 *             and order() hold a copy back.
 * Barriers    order() puts one into the stream; it goes when what it waits for
 *             has ended and it is the first of its stream.
 * Order       of a job that ends, what was given earlier starts before done() is
 *             called, so done() cannot overtake it.
 */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/atomic.h"
#include "drive/sim/world.h"

/* Nothing in flight was given before `number`. */
static bool pins_passed(const struct sim_pins *l, uint64_t number)
{
    return l->head == NULL || l->head->number >= number;
}

void heddle_sim_flush(struct heddle_sim *s, struct sim_class *c)
{
    while (c->free_head != NULL && pins_passed(&c->own, c->free_head->number) &&
           pins_passed(&c->incoming, c->free_head->number)) {
        struct sim_buffer *b = c->free_head;

        c->free_head = b->next;
        if (b->next == NULL)
            c->free_tail = NULL;
        heddle_free(&s->alloc, b, SIM_BUFFER_HEAD + b->bytes);
    }
}

/* How much of a device a kernel gets at most when `n` workers share it max-min
 * fairly: those that want no more than an equal share of what is left get what they
 * want. The level rises from one such kernel to the next. */
static double share_level(const struct sim_class *c, unsigned n)
{
    double level = 0, below = -1;

    while (level > below) {
        double left = 1;
        unsigned open = 0;

        below = level;
        for (unsigned i = 0; i < n; i++) {
            const struct sim_job *j = c->stream[i].cur;

            if (j == NULL || j->state != SIM_RUNNING || j->share == 0)
                continue;
            if (j->share <= below)
                left -= j->share;
            else
                open++;
        }
        if (open == 0)
            return 1;
        level = left / open;
    }
    return level;
}

/* The kernels of a device that share it: how far each of them is, and when it will
 * end from now on. To be called whenever one begins or has ended. */
static void share_again(struct heddle_sim *s, unsigned cls)
{
    const struct sim_class *c = &s->cls[cls];
    const uint64_t now = heddle_load_rlx(&s->now);
    const double most = share_level(c, s->plat->cls[cls].nworkers);

    for (unsigned i = 0; i < s->plat->cls[cls].nworkers; i++) {
        struct sim_job *j = c->stream[i].cur;

        /* One that is inside of its own function has no end yet. */
        if (j == NULL || j->share == 0 || j->state != SIM_RUNNING || j->is_in_run)
            continue;
        j->left -= (double)(now - j->since) * j->rate;
        j->left = j->left > 0 ? j->left : 0;
        j->since = now;
        j->rate = j->share > most ? most / j->share : 1;
        sim_heap_put(&s->heap, j, sim_plus(now, sim_ns(j->left / j->rate)));
    }
}

static void kernel_start(struct heddle_sim *s, struct sim_job *j)
{
    uint64_t end;

    j->state = SIM_RUNNING;
    j->begin = heddle_load_rlx(&s->now);
    end = sim_plus(heddle_load_rlx(&s->now), sim_ns(j->ns * sim_slowness(s, j)));
    if (s->executes && j->run != NULL && j->st == HEDDLE_OK) {
        heddle_status st;

        j->is_in_run = true;
        st = j->run(j->x);
        j->is_in_run = false;
        if (j->st == HEDDLE_OK)
            j->st = st; /* else the device was lost meanwhile */
        if (end < heddle_load_rlx(&s->now) || j->state == SIM_DYING)
            end = heddle_load_rlx(&s->now);
    }
    if (j->share > 0 && j->state != SIM_DYING) {
        j->left = j->ns * sim_slowness(s, j);
        j->since = j->begin;
        j->rate = 1;
        share_again(s, j->cls);
        return;
    }
    sim_heap_put(&s->heap, j, end);
}

static void copy_start(struct heddle_sim *s, struct sim_job *j)
{
    if (j->link >= 0) {
        heddle_sim_link_enter(s, j);
        return;
    }
    j->state = SIM_RUNNING;
    j->begin = heddle_load_rlx(&s->now);
    sim_heap_put(&s->heap, j, heddle_load_rlx(&s->now));
}

static void stream_advance(struct heddle_sim *s, unsigned cls, unsigned stream)
{
    struct sim_stream *t = &s->cls[cls].stream[stream];

    while (t->head != NULL && t->cur == NULL) {
        struct sim_job *j = t->head;

        if (j->kind == SIM_BARRIER && !j->is_ready)
            return;
        t->head = j->next;
        if (t->head == NULL)
            t->tail = NULL;
        if (j->kind == SIM_BARRIER) {
            sim_job_put(&s->heap, j);
            continue;
        }
        if (!sim_is_copy_stream(s, cls, stream))
            t->cur = j;
        if (j->kind == SIM_KERNEL)
            kernel_start(s, j);
        else
            copy_start(s, j);
    }
}

static void stream_push(struct heddle_sim *s, struct sim_job *j)
{
    struct sim_stream *t = &s->cls[j->cls].stream[j->stream];

    j->state = SIM_QUEUED;
    j->next = NULL;
    if (t->tail != NULL)
        t->tail->next = j;
    else
        t->head = j;
    t->tail = j;
    stream_advance(s, j->cls, j->stream);
}

static void pin_add(struct sim_class *c, struct sim_pins *l, struct sim_pin *p, struct sim_job *j)
{
    *p = (struct sim_pin){.prev = l->tail, .job = j, .number = c->next_number++};
    if (l->tail != NULL)
        l->tail->next = p;
    else
        l->head = p;
    l->tail = p;
}

static void pin_remove(struct heddle_sim *s, struct sim_class *c, struct sim_pins *l,
                       struct sim_pin *p)
{
    if (p->prev != NULL)
        p->prev->next = p->next;
    else
        l->head = p->next;
    if (p->next != NULL)
        p->next->prev = p->prev;
    else
        l->tail = p->prev;
    heddle_sim_flush(s, c);
}

static bool is_peer(const struct sim_job *j)
{
    return j->kind == SIM_COPY && j->copy.kind == HEDDLE_COPY_PEER;
}

static void device_add(struct heddle_sim *s, struct sim_job *j)
{
    struct sim_class *c = &s->cls[j->cls];

    pin_add(c, &c->own, &j->pin[0], j);
    if (is_peer(j)) {
        c = &s->cls[j->peer_cls];
        pin_add(c, &c->incoming, &j->pin[1], j);
    }
    j->op->priv[0] = j;
    s->nflying++;
}

static void device_remove(struct heddle_sim *s, struct sim_job *j)
{
    struct sim_class *c = &s->cls[j->cls];

    pin_remove(s, c, &c->own, &j->pin[0]);
    if (is_peer(j)) {
        c = &s->cls[j->peer_cls];
        pin_remove(s, c, &c->incoming, &j->pin[1]);
    }
}

void heddle_sim_give(struct heddle_sim *s, struct sim_job *j)
{
    device_add(s, j);
    stream_push(s, j);
}

void heddle_sim_hold(struct heddle_sim *s, struct sim_job *b, struct sim_job *first)
{
    struct sim_job **end = &first->waiters;

    while (*end != NULL)
        end = &(*end)->wait_next;
    *end = b;
    stream_push(s, b);
}

static void copy_bytes(const struct sim_job *j)
{
    const struct heddle_copy *c = &j->copy;

    if (c->kind == HEDDLE_COPY_PEER)
        memcpy(c->peer_ptr, c->ptr, (size_t)j->bytes);
    else if (c->host == NULL)
        return;
    else if (c->kind == HEDDLE_COPY_IN)
        heddle_runs_gather(&c->runs, c->host, c->ptr);
    else
        heddle_runs_scatter(&c->runs, c->ptr, c->host);
}

static void wake_barriers(struct heddle_sim *s, struct sim_job *j)
{
    while (j->waiters != NULL) {
        struct sim_job *b = j->waiters;

        j->waiters = b->wait_next;
        if (b->is_dead) {
            sim_job_put(&s->heap, b);
            continue;
        }
        b->is_ready = true;
        stream_advance(s, b->cls, b->stream);
    }
}

static void op_end(struct heddle_sim *s, struct heddle_op *op, uint64_t begin, heddle_status st)
{
    op->begin_ns = begin;
    op->end_ns = heddle_load_rlx(&s->now);
    op->priv[0] = NULL;
    s->nflying--;
    op->done(op, st);
}

/* What was given earlier starts before done() can give more. */
static void job_end(struct heddle_sim *s, struct sim_job *j)
{
    struct heddle_op *op = j->op;
    const uint64_t begin = j->begin;
    const heddle_status st = j->st;

    if (j->kind != SIM_AFTER) {
        if (j->kind == SIM_COPY && st == HEDDLE_OK) {
            if (s->executes)
                copy_bytes(j);
            if (j->link >= 0)
                s->link[j->link].bytes += j->bytes;
        }
        if (j->kind == SIM_COPY && j->link >= 0 && j->state != SIM_DYING)
            heddle_sim_link_leave(s, j);
        device_remove(s, j);
        if (s->cls[j->cls].stream[j->stream].cur == j) {
            s->cls[j->cls].stream[j->stream].cur = NULL;
            if (j->share > 0)
                share_again(s, j->cls);
            stream_advance(s, j->cls, j->stream);
        }
    }
    wake_barriers(s, j);
    sim_job_put(&s->heap, j);
    op_end(s, op, begin, st);
}

static void event_handle(struct heddle_sim *s, struct sim_job *j)
{
    sim_heap_remove(&s->heap, j);
    if (j->kind == SIM_FAULT) {
        const struct heddle_fault *f = &s->plat->fault[j->fault];

        sim_job_put(&s->heap, j);
        if (f->kind == HEDDLE_FAULT_LOSE)
            heddle_sim_lose(s, f->where);
        else
            heddle_sim_slow_down(s, f->where, f->factor);
    } else if (j->state == SIM_LATENT) {
        heddle_sim_link_flow(s, j);
    } else {
        job_end(s, j);
    }
}

/* The spare operations that are due; see heddle_sim_after(). */
static bool spare_due(const struct heddle_sim *s)
{
    return s->spare != NULL && (s->heap.n == 0 || s->spare->end_ns < s->heap.event[0].time);
}

static void spare_step(struct heddle_sim *s)
{
    struct heddle_op *op = s->spare;

    s->spare = op->next;
    heddle_store_rlx(&s->now, op->end_ns);
    op_end(s, op, op->begin_ns, HEDDLE_OK);
}

bool heddle_sim_step(struct heddle_sim *s)
{
    const uint64_t seq = s->heap.seq;
    uint64_t time;

    if (s->nflying == 0)
        return false;
    if (spare_due(s)) {
        spare_step(s);
        return true;
    }
    /* A kernel that waits inside its own function: only it is left. */
    if (s->heap.n == 0)
        return false;
    time = s->heap.event[0].time;
    heddle_store_rlx(&s->now, time);
    while (s->heap.n > 0 && s->heap.event[0].time == time && s->heap.event[0].seq < seq)
        event_handle(s, s->heap.event[0].job);
    return true;
}

void heddle_sim_after(struct heddle_sim *s, double ns, struct heddle_op *op)
{
    const uint64_t end = sim_plus(heddle_load_rlx(&s->now), sim_ns(ns));
    struct sim_job *j = sim_job_get(&s->heap, SIM_AFTER);
    struct heddle_op **at = &s->spare;

    s->nflying++;
    if (j != NULL) {
        j->state = SIM_RUNNING;
        j->op = op;
        j->begin = heddle_load_rlx(&s->now);
        op->priv[0] = j;
        sim_heap_put(&s->heap, j, end);
        return;
    }
    /* No memory: the operation itself goes into a list. */
    op->begin_ns = heddle_load_rlx(&s->now);
    op->end_ns = end;
    op->priv[0] = op;
    while (*at != NULL && (*at)->end_ns <= end)
        at = &(*at)->next;
    op->next = *at;
    *at = op;
}

void heddle_sim_slow_down(struct heddle_sim *s, unsigned cls, double factor)
{
    if (cls < s->plat->ncls && factor > 0 && factor < HUGE_VAL)
        s->cls[cls].factor = factor;
}

static void stream_drop(struct heddle_sim *s, struct sim_stream *t)
{
    for (struct sim_job *j = t->head, *next; j != NULL; j = next) {
        next = j->next;
        if (j->kind == SIM_BARRIER && j->is_ready)
            sim_job_put(&s->heap, j);
        else if (j->kind == SIM_BARRIER)
            j->is_dead = true;
    }
    t->head = t->tail = t->cur = NULL;
}

static void job_lose(struct heddle_sim *s, struct sim_job *j)
{
    const enum sim_state state = j->state;

    if (state == SIM_LINED)
        heddle_sim_link_drop(s, j);
    sim_heap_remove(&s->heap, j);
    if (state == SIM_LATENT || (state == SIM_FLOWING && j->link >= 0))
        heddle_sim_link_leave(s, j);
    if (state == SIM_QUEUED || state == SIM_LINED)
        j->begin = heddle_load_rlx(&s->now);
    j->state = SIM_DYING;
    j->st = HEDDLE_EDEV;
    if (!j->is_in_run)
        sim_heap_put(&s->heap, j, heddle_load_rlx(&s->now));
}

void heddle_sim_lose(struct heddle_sim *s, unsigned cls)
{
    struct sim_class *c;

    if (cls >= s->plat->ncls || s->cls[cls].is_lost)
        return;
    c = &s->cls[cls];
    c->is_lost = true;
    for (unsigned i = 0; i <= s->plat->cls[cls].nworkers; i++)
        stream_drop(s, &c->stream[i]);
    /* First those that wait in links: none of them may start again. */
    for (struct sim_pin *p = c->own.head; p != NULL; p = p->next)
        if (p->job->state == SIM_LINED)
            job_lose(s, p->job);
    for (struct sim_pin *p = c->own.head; p != NULL; p = p->next)
        if (p->job->state != SIM_DYING)
            job_lose(s, p->job);
}

heddle_status heddle_sim_faults_create(struct heddle_sim *s)
{
    for (unsigned i = 0; i < s->plat->nfaults; i++) {
        const struct heddle_fault *f = &s->plat->fault[i];
        struct sim_job *j;

        if (f->kind != HEDDLE_FAULT_LOSE && f->kind != HEDDLE_FAULT_SLOW)
            continue;
        j = sim_job_get(&s->heap, SIM_FAULT);
        if (j == NULL)
            return HEDDLE_ENOMEM;
        j->fault = i;
        sim_heap_put(&s->heap, j, sim_ns(f->at_ns));
    }
    return HEDDLE_OK;
}
