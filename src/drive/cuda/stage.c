/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stage: copies through pinned memory.
 *
 * Purpose    memory that is not pinned is copied by CUDA at a fraction of the
 *            bus's rate, and by the calling thread. Here a few threads move chunks
 *            between that memory and pinned buffers while the bus moves others.
 * Structure  a copy is a job in the queue of its direction; copiers take chunks
 *            from it until all are taken. Each copier has a ring of pinned buffers.
 *            In: gather, put the copy on the stream, go on with the next buffer. Out:
 *            put the copy on the stream, go on, and scatter when it has come. Half
 *            of the copiers serve copies in first, the other half copies out: both
 *            directions move at once.
 * Invariants (1) a note is in a queue of jobs exactly while taken < bytes
 *            (2) the copier that sends the last chunk records `sent`, then sets
 *                is_sent; `left` becomes 0 after that
 *            (3) a note is touched by no copier once `left` is 0
 * Threads    `lock` guards the jobs; a copier's buffers are its own. No copier
 *            calls the engine: errors are left in the note.
 * Failure    every chunk is finished, whatever CUDA says: the first error is kept.
 */
#include <string.h>

#include "base/assert.h"
#include "drive/cuda/dev.h"

#define MIN_CHUNK ((size_t)256 << 10)

/* --- parts of an array with gaps ------------------------------------------ */

struct walk {
    const struct heddle_runs *r;
    size_t at[HEDDLE_MAX_DIMS];
    size_t offset; /* of the run, on the host */
};

static void walk_begin(struct walk *w, const struct heddle_runs *r, size_t run)
{
    w->r = r;
    w->offset = 0;
    for (unsigned d = r->ndim; d-- > 0;) {
        w->at[d] = run % r->count[d];
        run /= r->count[d];
        w->offset += w->at[d] * r->step[d];
    }
}

static void walk_next(struct walk *w)
{
    for (unsigned d = w->r->ndim; d-- > 0;) {
        w->offset += w->r->step[d];
        if (++w->at[d] < w->r->count[d])
            return;
        w->offset -= w->r->count[d] * w->r->step[d];
        w->at[d] = 0;
    }
}

void heddle_cuda_gather(const struct heddle_runs *r, const char *host, char *dense, size_t offset,
                        size_t bytes)
{
    size_t skip = offset % r->run_bytes;
    struct walk w;

    for (walk_begin(&w, r, offset / r->run_bytes); bytes > 0; walk_next(&w)) {
        const size_t rest = r->run_bytes - skip;
        const size_t n = rest < bytes ? rest : bytes;

        memcpy(dense, host + w.offset + skip, n);
        dense += n;
        bytes -= n;
        skip = 0;
    }
}

void heddle_cuda_scatter(const struct heddle_runs *r, char *host, const char *dense, size_t offset,
                         size_t bytes)
{
    size_t skip = offset % r->run_bytes;
    struct walk w;

    for (walk_begin(&w, r, offset / r->run_bytes); bytes > 0; walk_next(&w)) {
        const size_t rest = r->run_bytes - skip;
        const size_t n = rest < bytes ? rest : bytes;

        memcpy(host + w.offset + skip, dense, n);
        dense += n;
        bytes -= n;
        skip = 0;
    }
}

/* --- a chunk ------------------------------------------------------------- */

static void note_error(struct heddle_cuda_note *n, heddle_cu_result err)
{
    uint32_t none = 0;

    if (err != 0)
        (void)heddle_cas_acqrel(&n->error, &none, (uint32_t)err);
}

static heddle_cu_result buffer_make(struct heddle_dev *dev, struct heddle_cuda_buffer *b)
{
    heddle_cu_result err = 0;

    if (b->event == NULL)
        err = dev->api.cuEventCreate(&b->event, HEDDLE_CU_EVENT_BLOCKING_SYNC |
                                                    HEDDLE_CU_EVENT_DISABLE_TIMING);
    if (err != 0)
        b->event = NULL;
    if (err == 0 && b->mem == NULL)
        err = dev->api.cuMemHostAlloc(&b->mem, HEDDLE_CUDA_CHUNK, HEDDLE_CU_HOST_PORTABLE);
    if (err != 0)
        b->mem = NULL;
    return err;
}

static void chunk_finish(struct heddle_cuda_note *n)
{
    heddle_sub_acqrel(&n->left, 1u); /* the note may be gone from here on */
}

/* Puts the chunk on the stream. */
static heddle_cu_result chunk_send(struct heddle_dev *dev, struct heddle_cuda_buffer *b,
                                   struct heddle_cuda_note *n)
{
    const struct heddle_cuda_api *api = &dev->api;
    heddle_cu_result err = buffer_make(dev, b);

    if (err != 0)
        return err;
    if (n->kind == HEDDLE_COPY_IN) {
        heddle_cuda_gather(&n->runs, n->host, b->mem, b->offset, b->bytes);
        err = api->cuMemcpyHtoDAsync_v2(n->ptr + b->offset, b->mem, b->bytes, n->stream);
    } else {
        err = api->cuMemcpyDtoHAsync_v2(b->mem, n->ptr + b->offset, b->bytes, n->stream);
    }
    if (err != 0)
        return err;
    b->is_busy = true;
    err = api->cuEventRecord(b->event, n->stream);
    if (err != 0) /* the buffer may not be touched before */
        api->cuStreamSynchronize(n->stream);
    return err;
}

/* Waits for the oldest buffer of the ring, and empties it. */
static void copier_retire(struct heddle_cuda_copier *c)
{
    struct heddle_cuda_buffer *b = &c->buffer[c->oldest];
    struct heddle_cuda_note *n = b->note;
    heddle_cu_result err = 0;

    if (b->is_busy)
        err = c->dev->api.cuEventSynchronize(b->event);
    b->is_busy = false;
    b->note = NULL;
    c->oldest = (c->oldest + 1) % HEDDLE_CUDA_BUFFERS;
    c->nbusy--;
    if (n == NULL)
        return;
    c->nout--;
    note_error(n, err);
    if (err == 0)
        heddle_cuda_scatter(&n->runs, n->host, b->mem, b->offset, b->bytes);
    chunk_finish(n);
}

static void copier_chunk(struct heddle_cuda_copier *c, struct heddle_cuda_note *n, size_t offset,
                         size_t bytes)
{
    struct heddle_dev *dev = c->dev;
    struct heddle_cuda_buffer *b;
    heddle_cu_result err;

    if (c->nbusy == HEDDLE_CUDA_BUFFERS)
        copier_retire(c);
    b = &c->buffer[(c->oldest + c->nbusy) % HEDDLE_CUDA_BUFFERS];
    b->offset = offset;
    b->bytes = bytes;
    err = chunk_send(dev, b, n);
    note_error(n, err);
    if (heddle_sub_acqrel(&n->unsent, 1u) == 1) {
        note_error(n, dev->api.cuEventRecord(n->sent, n->stream));
        heddle_store_rel(&n->is_sent, 1u);
    }
    if (b->is_busy) {
        c->nbusy++;
        if (n->kind == HEDDLE_COPY_OUT && err == 0) {
            b->note = n;
            c->nout++;
            return;
        }
    }
    chunk_finish(n);
}

/* --- the copiers --------------------------------------------------------- */

/* With the lock. The next chunk of the first job; false: there is none. */
static bool job_take(struct heddle_cuda_stage *s, unsigned way, struct heddle_cuda_note **n_out,
                     size_t *offset, size_t *bytes)
{
    struct heddle_cuda_note *n = s->job[way];

    if (n == NULL)
        return false;
    *n_out = n;
    *offset = n->taken;
    *bytes = n->bytes - n->taken < n->chunk_bytes ? n->bytes - n->taken : n->chunk_bytes;
    n->taken += *bytes;
    if (n->taken == n->bytes) {
        s->job[way] = n->next;
        if (s->job[way] == NULL)
            s->tail[way] = &s->job[way];
    }
    return true;
}

static void *copier_main(void *arg)
{
    struct heddle_cuda_copier *c = arg;
    struct heddle_dev *dev = c->dev;
    struct heddle_cuda_stage *s = &dev->stage;
    const unsigned way = c->index % 2;
    struct heddle_cuda_note *n;
    size_t offset, bytes;
    bool has, stops = false;

    dev->api.cuCtxSetCurrent(dev->context);
    while (!stops) {
        heddle_mutex_lock(&s->lock);
        for (;;) {
            has =
                job_take(s, way, &n, &offset, &bytes) || job_take(s, 1 - way, &n, &offset, &bytes);
            stops = !has && s->stops;
            if (has || stops || c->nout != 0)
                break;
            pthread_cond_wait(&s->work, &s->lock.m);
        }
        heddle_mutex_unlock(&s->lock);
        if (has)
            copier_chunk(c, n, offset, bytes);
        else if (!stops)
            copier_retire(c);
    }
    while (c->nbusy != 0)
        copier_retire(c);
    for (unsigned i = 0; i < HEDDLE_CUDA_BUFFERS; i++) {
        if (c->buffer[i].mem != NULL)
            dev->api.cuMemFreeHost(c->buffer[i].mem);
        if (c->buffer[i].event != NULL)
            dev->api.cuEventDestroy_v2(c->buffer[i].event);
    }
    return NULL;
}

heddle_status heddle_cuda_stage_init(struct heddle_dev *dev)
{
    struct heddle_cuda_stage *s = &dev->stage;

    if (pthread_cond_init(&s->work, NULL) != 0)
        return HEDDLE_ENOMEM;
    heddle_mutex_init(&s->lock, HEDDLE_RANK_LEAF, "cuda stage");
    s->tail[0] = &s->job[0];
    s->tail[1] = &s->job[1];
    s->is_ready = true;
    return HEDDLE_OK;
}

heddle_status heddle_cuda_stage_start(struct heddle_dev *dev)
{
    const struct heddle_thread_opts opts = {.name = "heddle-cuda"};
    struct heddle_cuda_stage *s = &dev->stage;
    unsigned ncpus = 1, want;
    heddle_status st = HEDDLE_OK;

    if (s->ncopiers != 0)
        return HEDDLE_OK;
    if (heddle_thread_get_cpus(NULL, 0, &ncpus) != HEDDLE_OK)
        ncpus = 1;
    want = ncpus / 2;
    want = want > HEDDLE_CUDA_COPIERS ? HEDDLE_CUDA_COPIERS : want;
    want = want < 1 ? 1 : want;
    while (s->ncopiers < want && st == HEDDLE_OK) {
        struct heddle_cuda_copier *c = &s->copier[s->ncopiers];

        c->dev = dev;
        c->index = s->ncopiers;
        st = heddle_thread_create(&c->thread, &opts, copier_main, c);
        if (st == HEDDLE_OK)
            s->ncopiers++;
    }
    return s->ncopiers != 0 ? HEDDLE_OK : st;
}

void heddle_cuda_stage_fini(struct heddle_dev *dev)
{
    struct heddle_cuda_stage *s = &dev->stage;

    if (!s->is_ready)
        return;
    heddle_mutex_lock(&s->lock);
    s->stops = true;
    pthread_cond_broadcast(&s->work);
    heddle_mutex_unlock(&s->lock);
    for (unsigned i = 0; i < s->ncopiers; i++)
        (void)!heddle_thread_join(&s->copier[i].thread);
    for (unsigned i = 0; i < s->nblocks; i++)
        dev->api.cuMemFreeHost(s->block[i]);
    pthread_cond_destroy(&s->work);
    heddle_mutex_fini(&s->lock);
}

/* Small enough that all copiers have something to do. */
static size_t chunk_of(const struct heddle_cuda_stage *s, size_t bytes)
{
    size_t n = bytes / (2 * (size_t)s->ncopiers) + 1;

    n = (n + 4095) / 4096 * 4096;
    n = n < MIN_CHUNK ? MIN_CHUNK : n;
    return n > HEDDLE_CUDA_CHUNK ? HEDDLE_CUDA_CHUNK : n;
}

void heddle_cuda_stage_give(struct heddle_dev *dev, struct heddle_cuda_note *n)
{
    struct heddle_cuda_stage *s = &dev->stage;
    const unsigned way = n->kind == HEDDLE_COPY_IN ? 0 : 1;
    uint32_t nchunks;

    n->chunk_bytes = chunk_of(s, n->bytes);
    nchunks = (uint32_t)((n->bytes + n->chunk_bytes - 1) / n->chunk_bytes);
    heddle_store_rlx(&n->unsent, nchunks);
    heddle_store_rlx(&n->left, nchunks);
    n->next = NULL;
    heddle_mutex_lock(&s->lock);
    *s->tail[way] = n;
    s->tail[way] = &n->next;
    if (nchunks == 1)
        pthread_cond_signal(&s->work);
    else
        pthread_cond_broadcast(&s->work);
    heddle_mutex_unlock(&s->lock);
}

/* --- small ones ---------------------------------------------------------- */

void *heddle_cuda_slot_get(struct heddle_dev *dev)
{
    struct heddle_cuda_stage *s = &dev->stage;
    void *block;

    if (s->nslots != 0)
        return s->slot[--s->nslots];
    if (s->nblocks == HEDDLE_CUDA_SLOTS / HEDDLE_CUDA_SLOT_BLOCK ||
        dev->api.cuMemHostAlloc(&block, HEDDLE_CUDA_SLOT_BLOCK * HEDDLE_CUDA_SMALL,
                                HEDDLE_CU_HOST_PORTABLE) != 0)
        return NULL;
    s->block[s->nblocks++] = block;
    for (unsigned i = HEDDLE_CUDA_SLOT_BLOCK; i-- > 0;)
        s->slot[s->nslots++] = (char *)block + i * HEDDLE_CUDA_SMALL;
    return s->slot[--s->nslots];
}

void heddle_cuda_slot_put(struct heddle_dev *dev, void *slot)
{
    struct heddle_cuda_stage *s = &dev->stage;

    HEDDLE_ASSERT(s->nslots < HEDDLE_CUDA_SLOTS);
    s->slot[s->nslots++] = slot;
}
