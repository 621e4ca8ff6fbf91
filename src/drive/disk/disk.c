/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * disk: a folder as a memory. Runs no kernels; holds what was evicted.
 *
 * Memory     ranges of one file without a name (space.c, io.c). A pointer is the place in
 *            the file plus HEDDLE_DISK_ALIGN, so that none is NULL; a pointer into a range
 *            is fine for copies.
 * Streams    a queue each. Two threads take the first job of any stream that has none
 *            running and do it; so a stream is in order, and two streams keep the disk busy
 *            while one of them copies in memory.
 * Frees      a range goes back when the jobs that its stream had at that moment have ended:
 *            another stream could be given it before.
 * Ends       a thread puts a job that has ended into `ended`; progress() takes the whole
 *            list and calls done().
 * Invariants (1) a job is in one place: a stream, `ended`, or `spare`
 *            (2) a stream's first job alone may be running
 *            (3) nranges counts what is taken, waiting frees included; both
 *                arrays have room for that many, so free() cannot fail
 * Threads    `lock` guards streams, lists and `why`; the rest belongs to the engine's
 *            thread. Nothing is called with the lock held.
 * Errors     a full disk is an answer of alloc(). A read or write that fails ends its
 *            operation with HEDDLE_EIO; the stream goes on.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/lock.h"
#include "base/text.h"
#include "base/thread.h"
#include "base/why.h"
#include "drive/disk/disk.h"

#define NSTREAMS 16 /* that may be used; the engine uses none of the last ones */
#define NTHREADS 2
#define WHY      256

struct disk_job {
    struct disk_job *next;
    struct heddle_op *op; /* NULL: order(), nothing to do but to wait */
    unsigned stream;
    unsigned wait_stream; /* starts when this one has ended wait_seq jobs */
    uint64_t wait_seq;
    uint64_t seq; /* its number in its stream, from 1 */
    uint64_t begin_ns, end_ns;
    heddle_status st;
    struct heddle_disk_copy copy;
};

struct disk_stream {
    struct disk_job *first, *last;
    bool is_running;
    uint64_t given, ended; /* jobs */
};

/* A range that is free when its stream has ended `seq` jobs. */
struct disk_gone {
    uint64_t at, bytes;
    uint64_t seq;
    unsigned stream;
};

struct heddle_dev {
    struct heddle_dev_base base;
    struct heddle_drive_env env;
    char *path;
    uint64_t limit; /* bytes of the file; UINT64_MAX: none */

    /* the engine's thread */
    struct heddle_disk_space space;
    size_t nranges;
    struct disk_gone *gone;
    size_t ngone, gone_cap;
    char shown[WHY]; /* `why` as error() gave it out */

    struct heddle_disk_file file; /* fixed once open, but for its length */

    struct heddle_mutex lock; /* guards what follows */
    pthread_cond_t work;
    struct disk_stream stream[NSTREAMS];
    struct disk_job *ended, **ended_tail;
    struct disk_job *spare;
    unsigned next_stream; /* where the search for work begins */
    bool is_closing;
    char why[WHY];

    unsigned nthreads;
    struct disk_worker {
        struct heddle_dev *dev;
        struct heddle_thread thread;
        char *stage;
    } worker[NTHREADS];
};

HEDDLE_PRINTF(2, 3)
static void say(struct heddle_dev *d, const char *fmt, ...)
{
    va_list ap;

    heddle_mutex_lock(&d->lock);
    va_start(ap, fmt);
    (void)heddle_why_va(d->why, sizeof(d->why), HEDDLE_OK, fmt, ap);
    va_end(ap);
    heddle_mutex_unlock(&d->lock);
}

/* --- the threads --------------------------------------------------------- */

/* Needs the lock. NULL: nothing can start now. */
static struct disk_job *job_pick(struct heddle_dev *d)
{
    for (unsigned i = 0; i < NSTREAMS; i++) {
        struct disk_stream *s = &d->stream[(d->next_stream + i) % NSTREAMS];
        struct disk_job *j = s->first;

        if (j == NULL || s->is_running || d->stream[j->wait_stream].ended < j->wait_seq)
            continue;
        s->is_running = true;
        d->next_stream = j->stream + 1;
        return j;
    }
    return NULL;
}

/* Needs the lock. */
static void job_end(struct heddle_dev *d, struct disk_job *j)
{
    struct disk_stream *s = &d->stream[j->stream];

    s->first = j->next;
    if (s->first == NULL)
        s->last = NULL;
    s->is_running = false;
    s->ended++;
    j->next = NULL;
    if (j->op == NULL) {
        j->next = d->spare;
        d->spare = j;
    } else {
        *d->ended_tail = j;
        d->ended_tail = &j->next;
    }
    /* The next one of this stream, or one that waited for this one. */
    pthread_cond_broadcast(&d->work);
}

static uint64_t now_ns(const struct heddle_dev *d)
{
    return d->env.now_ns != NULL ? d->env.now_ns(d->env.user) : 0;
}

static void job_run(struct heddle_dev *d, struct disk_job *j, char *stage)
{
    int err;

    if (j->op == NULL)
        return;
    j->begin_ns = now_ns(d);
    err = heddle_disk_transfer(&d->file, &j->copy, stage);
    j->end_ns = now_ns(d);
    j->st = err == 0 ? HEDDLE_OK : HEDDLE_EIO;
    if (err != 0)
        say(d, "%s %zu bytes %s the disk at %s failed: %s",
            j->copy.is_write ? "writing" : "reading", heddle_runs_bytes(&j->copy.runs),
            j->copy.is_write ? "to" : "from", d->path, heddle_why_errno(err));
}

static void *worker_main(void *arg)
{
    struct disk_worker *w = arg;
    struct heddle_dev *d = w->dev;

    heddle_mutex_lock(&d->lock);
    while (!d->is_closing) {
        struct disk_job *j = job_pick(d);

        if (j == NULL) {
            pthread_cond_wait(&d->work, &d->lock.m);
            continue;
        }
        heddle_mutex_unlock(&d->lock);
        job_run(d, j, w->stage);
        heddle_mutex_lock(&d->lock);
        job_end(d, j);
    }
    heddle_mutex_unlock(&d->lock);
    return NULL;
}

/* --- jobs ---------------------------------------------------------------- */

/* Zeroed but for `next`. */
static struct disk_job *job_new(struct heddle_dev *d)
{
    struct disk_job *j;

    heddle_mutex_lock(&d->lock);
    j = d->spare;
    if (j != NULL)
        d->spare = j->next;
    heddle_mutex_unlock(&d->lock);
    if (j == NULL)
        j = heddle_alloc(d->env.alloc, sizeof(*j));
    if (j != NULL)
        memset(j, 0, sizeof(*j));
    return j;
}

static void job_give(struct heddle_dev *d, struct disk_job *j, unsigned stream)
{
    struct disk_stream *s = &d->stream[stream];

    j->stream = stream;
    if (j->op != NULL)
        j->op->priv[0] = j;
    heddle_mutex_lock(&d->lock);
    j->seq = ++s->given;
    if (s->last != NULL)
        s->last->next = j;
    else
        s->first = j;
    s->last = j;
    pthread_cond_signal(&d->work);
    heddle_mutex_unlock(&d->lock);
}

static void jobs_free(struct heddle_dev *d, struct disk_job *j)
{
    while (j != NULL) {
        struct disk_job *next = j->next;

        heddle_free(d->env.alloc, j, sizeof(*j));
        j = next;
    }
}

static uint64_t place_of(const void *ptr)
{
    return (uint64_t)(uintptr_t)ptr - HEDDLE_DISK_ALIGN;
}

/* The description makes sense and stays within the file. */
static bool copy_ok(const struct heddle_dev *d, const struct heddle_copy *c)
{
    const struct heddle_runs *r = &c->runs;
    size_t n = 1, bytes;

    if (c->kind == HEDDLE_COPY_PEER || c->host == NULL || r->ndim > HEDDLE_MAX_DIMS ||
        (uintptr_t)c->ptr < HEDDLE_DISK_ALIGN || !heddle_mul(&bytes, r->run_bytes, r->nruns))
        return false;
    for (unsigned i = 0; i < r->ndim; i++)
        if (!heddle_mul(&n, n, r->count[i]))
            return false;
    return n == r->nruns && bytes <= d->space.end && place_of(c->ptr) <= d->space.end - bytes;
}

static heddle_status disk_copy(struct heddle_dev *d, const struct heddle_copy *c, unsigned stream,
                               struct heddle_op *op)
{
    struct disk_job *j;

    if (stream >= NSTREAMS || !copy_ok(d, c)) {
        say(d, "a copy on the disk at %s is not within its memory", d->path);
        return HEDDLE_EINVAL;
    }
    j = job_new(d);
    if (j == NULL)
        return HEDDLE_ENOMEM;
    j->op = op;
    j->copy.is_write = c->kind == HEDDLE_COPY_IN;
    j->copy.at = place_of(c->ptr);
    j->copy.host = c->host;
    j->copy.runs = c->runs;
    job_give(d, j, stream);
    return HEDDLE_OK;
}

static heddle_status disk_order(struct heddle_dev *d, unsigned stream, struct heddle_op *op)
{
    const struct disk_job *after = op->priv[0];
    struct disk_job *j;

    HEDDLE_CHECK(stream < NSTREAMS);
    if (after->stream == stream)
        return HEDDLE_OK;
    j = job_new(d);
    if (j == NULL)
        return HEDDLE_ENOMEM;
    j->wait_stream = after->stream;
    j->wait_seq = after->seq;
    job_give(d, j, stream);
    return HEDDLE_OK;
}

static unsigned disk_progress(struct heddle_dev *d)
{
    struct disk_job *j, *next;
    unsigned n = 0;

    heddle_mutex_lock(&d->lock);
    j = d->ended;
    d->ended = NULL;
    d->ended_tail = &d->ended;
    heddle_mutex_unlock(&d->lock);
    for (; j != NULL; j = next, n++) {
        struct heddle_op *op = j->op;
        const heddle_status st = j->st;

        next = j->next;
        op->begin_ns = j->begin_ns;
        op->end_ns = j->end_ns;
        heddle_mutex_lock(&d->lock);
        j->next = d->spare;
        d->spare = j;
        heddle_mutex_unlock(&d->lock);
        op->done(op, st);
    }
    return n;
}

/* --- memory -------------------------------------------------------------- */

static uint64_t disk_memory_free(struct heddle_dev *d)
{
    const struct heddle_disk_space *s = &d->space;
    const uint64_t left = heddle_disk_left(d->path);
    const uint64_t room = d->limit - s->end;

    return s->end - s->used + (left < room ? left : room);
}

/* Takes back what no operation uses any more; of `stream` (NSTREAMS: of none) also
 * what is still in use, since what comes next on it comes after that. */
static void gone_reap(struct heddle_dev *d, unsigned stream)
{
    uint64_t ended[NSTREAMS];
    size_t n = 0;

    if (d->ngone == 0)
        return;
    heddle_mutex_lock(&d->lock);
    for (unsigned i = 0; i < NSTREAMS; i++)
        ended[i] = d->stream[i].ended;
    heddle_mutex_unlock(&d->lock);
    for (size_t i = 0; i < d->ngone; i++) {
        const struct disk_gone g = d->gone[i];

        if (ended[g.stream] < g.seq && g.stream != stream) {
            d->gone[n++] = g;
            continue;
        }
        heddle_disk_space_give(&d->space, g.at, g.bytes);
        d->nranges--;
    }
    d->ngone = n;
}

/* Room for one more range, so that its free() needs no memory. */
static heddle_status reserve(struct heddle_dev *d)
{
    const size_t want = d->nranges + 1;
    const size_t cap = d->gone_cap == 0 ? 64 : d->gone_cap * 2;
    struct disk_gone *gone;

    HEDDLE_TRY(heddle_disk_space_reserve(&d->space, want));
    if (want <= d->gone_cap)
        return HEDDLE_OK;
    gone = heddle_alloc(d->env.alloc, cap * sizeof(*gone));
    if (gone == NULL)
        return HEDDLE_ENOMEM;
    if (d->ngone > 0)
        memcpy(gone, d->gone, d->ngone * sizeof(*gone));
    heddle_free(d->env.alloc, d->gone, d->gone_cap * sizeof(*gone));
    d->gone = gone;
    d->gone_cap = cap;
    return HEDDLE_OK;
}

static heddle_status grow_failed(struct heddle_dev *d, heddle_status st, uint64_t wanted)
{
    const int err = errno;

    if (err == EFBIG)
        say(d,
            "the file at %s may not be longer than %llu bytes, %llu more "
            "wanted",
            d->path, (unsigned long long)d->space.end, (unsigned long long)wanted);
    else if (st == HEDDLE_ENOMEM)
        say(d, "the disk at %s is full: %llu bytes wanted, %llu left", d->path,
            (unsigned long long)wanted, (unsigned long long)heddle_disk_left(d->path));
    else
        say(d, "the file at %s cannot grow by %llu bytes: %s", d->path, (unsigned long long)wanted,
            heddle_why_errno(err));
    return st;
}

static heddle_status grow(struct heddle_dev *d, uint64_t bytes)
{
    struct heddle_disk_space *s = &d->space;
    const uint64_t more = bytes - heddle_disk_space_tail(s);
    heddle_status st;

    if (more > d->limit - s->end) {
        say(d,
            "the budget at %s is used up: %llu bytes wanted, %llu of %llu "
            "left",
            d->path, (unsigned long long)bytes, (unsigned long long)(d->limit - s->used),
            (unsigned long long)d->limit);
        return HEDDLE_ENOMEM;
    }
    st = heddle_disk_file_grow(&d->file, s->end, more);
    if (st != HEDDLE_OK)
        return grow_failed(d, st, more);
    heddle_disk_space_grow(s, more);
    return HEDDLE_OK;
}

static heddle_status disk_alloc(struct heddle_dev *d, size_t bytes, unsigned stream, void **ptr_out)
{
    const uint64_t want = heddle_disk_round(bytes);
    uint64_t at = 0;

    HEDDLE_CHECK(bytes > 0 && stream < NSTREAMS);
    if (want < bytes)
        return HEDDLE_ENOMEM;
    gone_reap(d, NSTREAMS);
    HEDDLE_TRY(reserve(d));
    if (!heddle_disk_space_take(&d->space, want, &at)) {
        const heddle_status st = grow(d, want);

        if (st == HEDDLE_ENOMEM)
            gone_reap(d, stream);
        if (!heddle_disk_space_take(&d->space, want, &at))
            return st;
    }
    d->nranges++;
    *ptr_out = (void *)(uintptr_t)(at + HEDDLE_DISK_ALIGN);
    return HEDDLE_OK;
}

static void disk_free(struct heddle_dev *d, void *ptr, size_t bytes, unsigned stream)
{
    HEDDLE_ASSERT(stream < NSTREAMS && d->ngone < d->gone_cap);
    heddle_mutex_lock(&d->lock);
    d->gone[d->ngone] = (struct disk_gone){.at = place_of(ptr),
                                           .bytes = heddle_disk_round(bytes),
                                           .seq = d->stream[stream].given,
                                           .stream = stream};
    heddle_mutex_unlock(&d->lock);
    d->ngone++;
    gone_reap(d, NSTREAMS);
}

static const char *disk_error(struct heddle_dev *d)
{
    heddle_mutex_lock(&d->lock);
    memcpy(d->shown, d->why, sizeof(d->shown));
    heddle_mutex_unlock(&d->lock);
    return d->shown;
}

/* --- open and close ------------------------------------------------------ */

static heddle_status disk_probe(const struct heddle_drive_env *env, struct heddle_dev_info *info,
                                unsigned cap, unsigned *n_out)
{
    const char *path = heddle_disk_folder(env);
    const uint64_t left = heddle_disk_left(path);
    struct heddle_text t;
    struct stat sb;

    *n_out = 0;
    if (stat(path, &sb) != 0 || !S_ISDIR(sb.st_mode))
        return HEDDLE_OK;
    *n_out = 1;
    if (cap == 0)
        return HEDDLE_OK;
    memset(info, 0, sizeof(*info));
    heddle_text_init(&t, info->name, sizeof(info->name));
    heddle_text_str(&t, "disk0");
    heddle_disk_model(sb.st_dev, info->model, sizeof(info->model));
    info->nstreams = NTHREADS;
    info->memory_total = env->bytes != 0 ? env->bytes : left;
    info->memory_free = left < info->memory_total ? left : info->memory_total;
    return HEDDLE_OK;
}

static void disk_close(struct heddle_dev *d)
{
    if (d == NULL)
        return;
    heddle_mutex_lock(&d->lock);
    d->is_closing = true;
    pthread_cond_broadcast(&d->work);
    heddle_mutex_unlock(&d->lock);
    for (unsigned i = 0; i < d->nthreads; i++) {
        const heddle_status st = heddle_thread_join(&d->worker[i].thread);

        HEDDLE_ASSERT(st == HEDDLE_OK);
        (void)st;
    }
    for (unsigned i = 0; i < NTHREADS; i++)
        heddle_free(d->env.alloc, d->worker[i].stage, HEDDLE_DISK_STAGE);
    for (unsigned i = 0; i < NSTREAMS; i++)
        jobs_free(d, d->stream[i].first);
    jobs_free(d, d->ended);
    jobs_free(d, d->spare);
    heddle_disk_file_close(&d->file);
    heddle_disk_space_fini(&d->space);
    heddle_free(d->env.alloc, d->gone, d->gone_cap * sizeof(*d->gone));
    heddle_strfree(d->env.alloc, d->path);
    pthread_cond_destroy(&d->work);
    heddle_mutex_fini(&d->lock);
    heddle_free(d->env.alloc, d, sizeof(*d));
}

static heddle_status workers_start(struct heddle_dev *d)
{
    const struct heddle_thread_opts opts = {.name = "heddle-disk"};

    for (unsigned i = 0; i < NTHREADS; i++) {
        struct disk_worker *w = &d->worker[i];

        w->dev = d;
        w->stage = heddle_alloc_aligned(d->env.alloc, HEDDLE_DISK_STAGE, HEDDLE_DISK_ALIGN);
        if (w->stage == NULL)
            return HEDDLE_ENOMEM;
        HEDDLE_TRY(heddle_thread_create(&w->thread, &opts, worker_main, w));
        d->nthreads++;
    }
    return HEDDLE_OK;
}

static heddle_status disk_setup(struct heddle_dev *d)
{
    unsigned n = 0;

    d->path = heddle_strdup(d->env.alloc, heddle_disk_folder(&d->env));
    if (d->path == NULL)
        return HEDDLE_ENOMEM;
    HEDDLE_TRY(disk_probe(&d->env, &d->base.info, 1, &n));
    if (n == 0)
        return HEDDLE_ENOENT;
    d->limit =
        d->env.bytes != 0 ? d->env.bytes / HEDDLE_DISK_ALIGN * HEDDLE_DISK_ALIGN : UINT64_MAX;
    HEDDLE_TRY(heddle_disk_file_open(&d->file, d->path));
    return workers_start(d);
}

static heddle_status disk_open(const struct heddle_drive_env *env, unsigned index,
                               struct heddle_dev **dev_out)
{
    struct heddle_dev *d;
    heddle_status st;

    HEDDLE_CHECK(index == 0);
    d = heddle_zalloc(env->alloc, 1, sizeof(*d));
    if (d == NULL)
        return HEDDLE_ENOMEM;
    d->env = *env;
    d->file = (struct heddle_disk_file){.fd = -1, .direct_fd = -1};
    d->space.alloc = env->alloc;
    d->ended_tail = &d->ended;
    heddle_mutex_init(&d->lock, HEDDLE_RANK_LEAF, "disk");
    if (pthread_cond_init(&d->work, NULL) != 0) {
        heddle_mutex_fini(&d->lock);
        heddle_free(env->alloc, d, sizeof(*d));
        return HEDDLE_ENOMEM;
    }
    st = disk_setup(d);
    if (st != HEDDLE_OK) {
        disk_close(d);
        return st;
    }
    d->base.driver = &heddle_driver_disk;
    *dev_out = d;
    return HEDDLE_OK;
}

const struct heddle_driver heddle_driver_disk = {
    .name = "disk",
    .help = "a folder as a memory: holds what does not fit elsewhere",
    .probe = disk_probe,
    .open = disk_open,
    .close = disk_close,
    .alloc = disk_alloc,
    .free = disk_free,
    .copy = disk_copy,
    .order = disk_order,
    .progress = disk_progress,
    .memory_free = disk_memory_free,
    .error = disk_error,
};
