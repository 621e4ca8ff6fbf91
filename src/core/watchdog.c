/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watchdog: which tasks are pending, and what does each of them wait for?
 *
 * Purpose    a wait that makes no progress explains itself: a task that runs
 *            for too long, an event that was not completed, data that were not
 *            released.
 * Structure  two walks over all cells. The first finds the oldest pending
 *            tasks, by their numbers; the second, what these tasks wait for. A
 *            live cell lists the tasks that wait for it, so an edge is found
 *            from its predecessor.
 * Invariants (1) a cell is read only if its making happens before: the
 *                submission lock covers the tasks of the context; for children
 *                it is the CAS that links a waiter, seen in `succ`
 *            (2) a value that was read is used only if the cell whose end would
 *                change it was still live afterwards (survey_is_live)
 * Threads    any thread that waits, while workers may run. The read-modify-
 *            write in survey_is_live() orders the reads before the end of the
 *            task and so before every later use of the cells. When a task ends
 *            between the reads and survey_is_live(), the values read are
 *            dropped; indices are checked before they are followed. These
 *            reads are hidden from the thread sanitizer (OPTIMISTIC).
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/atomic.h"
#include "base/compiler.h"
#include "base/spin.h"
#include "base/text.h"
#include "core/cell.h"
#include "core/ctx.h"
#include "core/error.h"
#include "core/kinfo.h"
#include "core/watchdog.h"
#include "core/worker.h"
#include "task/task.h"
#include "topo/topo.h"

/* Reads that are thrown away if they raced, see above. */
#if defined(__GNUC__)
#define OPTIMISTIC HEDDLE_NOINLINE __attribute__((no_sanitize("thread")))
#else
#define OPTIMISTIC
#endif

enum {
    SHOWN = 20,          /* tasks in a report */
    SHOWN_PREDS = 3,     /* for each, of those it waits for */
    MAX_CHUNKS = 4096,   /* looked at */
    MAX_EDGES = 1 << 20, /* followed in one walk */
};

/* What is kept of a cell. */
struct fact {
    uint64_t id;
    const struct heddle_kinfo *kinfo;
    char name[48]; /* "": none */
};

struct entry {
    struct fact task;
    struct fact pred[SHOWN_PREDS];
    unsigned npreds; /* may be more than are kept */
};

struct survey {
    heddle_ctx *ctx;
    uint32_t nchunks;
    unsigned edges_left;
    bool is_second;    /* walk */
    uint64_t npending; /* tasks seen in the first walk */
    unsigned n;
    struct entry entry[SHOWN]; /* ascending ids */
};

static bool survey_is_hidden(const struct survey *s, const struct heddle_kinfo *k)
{
    const heddle_ctx *ctx = s->ctx;

    return k == &ctx->join || k == &ctx->combine || k == &ctx->release || k == &ctx->grant ||
           k == &ctx->notice;
}

/* Generation 0: a cell that was never used. */
static bool word_is_live(uint64_t w)
{
    return w >> 32 != 0 && (uint32_t)w != HEDDLE_ENDED;
}

/* Is the task that `was` belongs to still live? Changes nothing; release: our
 * reads come before the exchange that ends it. */
static HEDDLE_NOINLINE bool survey_is_live(struct heddle_cell *c, uint64_t was)
{
    const uint64_t now = heddle_add_acqrel(&c->succ, UINT64_C(0));

    return now >> 32 == was >> 32 && word_is_live(now);
}

static struct heddle_cell *survey_cell(struct survey *s, uint32_t index)
{
    return index / HEDDLE_CHUNK < s->nchunks ? heddle_pool_cell(&s->ctx->pool, index) : NULL;
}

/* heddle_edge_owner() for an edge that may be gone: NULL if it is no edge. */
OPTIMISTIC
static struct heddle_cell *survey_edge(struct survey *s, uint32_t node, uint32_t *next_out)
{
    const uint32_t slot = (node - 1) & 31;
    struct heddle_cell *c = survey_cell(s, (node - 1) >> 5);

    if (c == NULL || slot >= HEDDLE_CELL_NODES + HEDDLE_SPILL_NODES)
        return NULL;
    /* Relaxed: the acquire of `succ` made the list visible. */
    if (slot < HEDDLE_CELL_NODES) {
        *next_out = heddle_load_rlx(&c->node[slot]);
        return c;
    }
    *next_out = heddle_load_rlx(&c->spill[slot - HEDDLE_CELL_NODES]);
    return survey_cell(s, c->owner);
}

OPTIMISTIC
static void cell_peek(const struct heddle_cell *c, struct fact *f, uint32_t *ext_out)
{
    f->id = c->id;
    f->kinfo = c->kinfo;
    f->name[0] = '\0';
    *ext_out = c->ext;
}

OPTIMISTIC
static const char *ext_peek(const struct heddle_cell *further)
{
    return ((const struct task_ext *)(const void *)further)->name;
}

/* Reads cell c, which stays what it is while `guard` is live. */
static bool fact_read(struct survey *s, const struct heddle_cell *c, struct heddle_cell *guard,
                      uint64_t was, struct fact *f)
{
    const struct heddle_cell *further;
    const char *name;
    uint32_t ext;

    cell_peek(c, f, &ext);
    if (!survey_is_live(guard, was))
        return false;
    further = ext == 0 ? NULL : survey_cell(s, ext);
    if (further == NULL)
        return true;
    name = ext_peek(further);
    if (!survey_is_live(guard, was))
        return false;
    if (name != NULL)
        snprintf(f->name, sizeof(f->name), "%s", name);
    return true;
}

/* Keeps a task if it is among the oldest. */
static void survey_keep(struct survey *s, const struct fact *f)
{
    unsigned i = s->n;

    while (i > 0 && s->entry[i - 1].task.id > f->id)
        i--;
    if (i == SHOWN || (i > 0 && s->entry[i - 1].task.id == f->id))
        return;
    if (s->n < SHOWN)
        s->n++;
    memmove(&s->entry[i + 1], &s->entry[i], (s->n - 1 - i) * sizeof(s->entry[0]));
    s->entry[i] = (struct entry){.task = *f};
}

static struct entry *survey_find(struct survey *s, uint64_t id)
{
    for (unsigned i = 0; i < s->n; i++)
        if (s->entry[i].task.id == id)
            return &s->entry[i];
    return NULL;
}

static void survey_edge_seen(struct survey *s, const struct fact *waiting, const struct fact *pred)
{
    struct entry *e;

    if (!s->is_second) {
        survey_keep(s, waiting);
        return;
    }
    e = survey_find(s, waiting->id);
    if (e == NULL)
        return;
    if (e->npreds < SHOWN_PREDS)
        e->pred[e->npreds] = *pred;
    e->npreds++;
}

/* A live cell and those that wait for it. */
static void survey_task(struct survey *s, struct heddle_cell *c, uint64_t word)
{
    uint32_t node = (uint32_t)word;
    struct fact own, other;

    if (!fact_read(s, c, c, word, &own))
        return;
    if (!s->is_second && !survey_is_hidden(s, own.kinfo)) {
        s->npending++;
        survey_keep(s, &own);
    }
    while (node != 0 && s->edges_left > 0) {
        uint32_t next = 0;
        const struct heddle_cell *w = survey_edge(s, node, &next);

        if (w == NULL || !fact_read(s, w, c, word, &other))
            return;
        survey_edge_seen(s, &other, &own);
        s->edges_left--;
        node = next; /* read while c was live */
    }
}

static void survey_walk(struct survey *s)
{
    struct heddle_pool *p = &s->ctx->pool;

    s->edges_left = MAX_EDGES;
    for (uint32_t k = 0; k < s->nchunks; k++) {
        struct heddle_chunk *chunk = heddle_pool_chunk(p, k * HEDDLE_CHUNK);
        const bool is_root = chunk->slab == &s->ctx->root.slab;

        for (uint32_t i = 0; i < HEDDLE_CHUNK; i++) {
            struct heddle_cell *c = &chunk->cell[i];
            /* Acquire: pairs with the CAS of a submitter; invariant (1). */
            const uint64_t w = heddle_load_acq(&c->succ);

            if (!word_is_live(w))
                continue;
            if (is_root || (uint32_t)w != 0)
                survey_task(s, c, w);
            else if (!s->is_second)
                s->npending++; /* a child without a task that waits for it: not named */
        }
    }
}

/* --- words ---------------------------------------------------------------- */

static void text_fact(struct heddle_text *t, struct survey *s, const struct fact *f, bool is_pred)
{
    const heddle_ctx *ctx = s->ctx;
    const struct entry *e = survey_find(s, f->id);
    const bool waits = e != NULL && e->npreds > 0;

    if (f->kinfo == &ctx->notice)
        heddle_text_str(t, "an event that nobody has completed");
    else if (f->kinfo == &ctx->grant)
        heddle_text_str(t, is_pred && !waits ? "an acquire that was not released" : "an acquire");
    else if (f->kinfo == &ctx->join)
        heddle_text_str(t, "the end of a group of accesses");
    else if (f->kinfo == &ctx->combine)
        heddle_text_str(t, "the combination of a reduction");
    else if (f->kinfo == &ctx->release)
        heddle_text_str(t, "the end of a handle");
    else
        heddle_text_add(t, "task %llu%s%s%s (%s)", (unsigned long long)f->id,
                        f->name[0] != '\0' ? " \"" : "", f->name, f->name[0] != '\0' ? "\"" : "",
                        f->kinfo->kernel->name);
}

static void report_entry(struct survey *s, const struct entry *e)
{
    const unsigned kept = e->npreds < SHOWN_PREDS ? e->npreds : SHOWN_PREDS;
    struct heddle_text t;
    char buf[500];

    heddle_text_init(&t, buf, sizeof(buf));
    text_fact(&t, s, &e->task, false);
    if (e->npreds == 0)
        heddle_text_str(&t, " is ready or running");
    for (unsigned i = 0; i < kept; i++) {
        heddle_text_str(&t, i == 0 ? " waits for " : ", ");
        text_fact(&t, s, &e->pred[i], true);
    }
    if (kept < e->npreds)
        heddle_text_add(&t, " and %u more", e->npreds - kept);
    heddle_report(s->ctx, HEDDLE_WARNING, "%s", buf);
}

static void report_head(heddle_ctx *ctx, uint64_t quiet_ns)
{
    struct heddle_text t;
    uint64_t done = 0;
    char quiet[32];

    /* Relaxed: counters, for people. */
    for (unsigned i = 0; i <= ctx->nworkers; i++)
        done += heddle_load_rlx(&ctx->worker[i].done);
    heddle_text_init(&t, quiet, sizeof(quiet));
    heddle_text_ns(&t, quiet_ns);
    heddle_report(ctx, HEDDLE_WARNING, "no task has ended for %s: %llu of %llu tasks are done",
                  quiet, (unsigned long long)done,
                  (unsigned long long)heddle_load_rlx(&ctx->submitted));
}

static void survey_make(struct survey *s)
{
    heddle_ctx *ctx = s->ctx;

    heddle_spin_lock(&ctx->submit_lock); /* invariant (1) */
    heddle_spin_lock(&ctx->pool.lock);
    s->nchunks = ctx->pool.nchunks;
    heddle_spin_unlock(&ctx->pool.lock);
    if (s->nchunks > MAX_CHUNKS)
        s->nchunks = MAX_CHUNKS;
    survey_walk(s);
    s->is_second = true;
    survey_walk(s);
    heddle_spin_unlock(&ctx->submit_lock);
}

void heddle_watchdog_report(heddle_ctx *ctx, uint64_t quiet_ns)
{
    struct survey *s;
    uint64_t shown = 0;

    if (ctx->message == NULL)
        return;
    report_head(ctx, quiet_ns);
    s = heddle_zalloc(&ctx->alloc, 1, sizeof(*s));
    if (s == NULL)
        return; /* the head line says that something is stuck */
    s->ctx = ctx;
    survey_make(s);
    for (unsigned i = 0; i < s->n; i++) {
        report_entry(s, &s->entry[i]);
        shown += !survey_is_hidden(s, s->entry[i].task.kinfo);
    }
    if (s->npending > shown)
        heddle_report(ctx, HEDDLE_WARNING, "and %llu more tasks are pending",
                      (unsigned long long)(s->npending - shown));
    heddle_free(&ctx->alloc, s, sizeof(*s));
}
