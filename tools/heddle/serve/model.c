/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model: the queue of a model.
 *
 * Order      the queue is a list, sorted when a job enters: few jobs wait, as many as
 *            max_queue lets in.
 * Batches    a batch takes jobs from the front, and skips those that do not fit to its
 *            first one. Rows are counted, not jobs: a job may bring several.
 * Callbacks  no lock is held while a job's done() or the backend's run() is called.
 */
#include "serve/model.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/why.h"

/* Between the moment at which a job has to begin and its deadline, besides the batch itself. */
enum { MARGIN_NS = 500000 };

/* Jobs that run together, max_batch at most. Each job brings one along, so that none is missing
 * later. */
struct serve_batch {
    struct serve_model *m;
    size_t n;
    uint64_t rows;
    struct serve_job *job[];
};

double model_bucket_s(size_t i)
{
    static const double upper[SERVE_BUCKETS] = {1e-4,   2.5e-4, 5e-4, 1e-3,   2.5e-3, 5e-3, 1e-2,
                                                2.5e-2, 5e-2,   1e-1, 2.5e-1, 5e-1,   1,    2.5};

    return upper[i];
}

struct serve_model *model_create(const struct serve_model_opts *o,
                                 const struct serve_backend *backend, void *self,
                                 struct serve_graveyard *graveyard)
{
    struct serve_model *m = calloc(1, sizeof(*m));
    struct heddle_text t;

    if (m == NULL || pthread_mutex_init(&m->lock, NULL) != 0) {
        free(m);
        return NULL;
    }
    heddle_text_init(&t, m->name, sizeof(m->name));
    heddle_text_str(&t, o->name);
    m->max_queue = o->max_queue;
    m->max_batch = o->max_batch;
    m->max_running = o->max_running;
    m->max_eager = o->max_eager > 0 ? o->max_eager : o->max_running;
    m->backend = backend;
    m->self = self;
    m->graveyard = graveyard;
    m->nrefs = 1;
    pthread_mutex_lock(&graveyard->lock);
    graveyard->nalive++;
    pthread_mutex_unlock(&graveyard->lock);
    return m;
}

struct serve_model *model_ref(struct serve_model *m)
{
    pthread_mutex_lock(&m->lock);
    m->nrefs++;
    pthread_mutex_unlock(&m->lock);
    return m;
}

void model_unref(struct serve_model *m)
{
    struct serve_graveyard *g = m->graveyard;
    bool is_last;

    pthread_mutex_lock(&m->lock);
    is_last = --m->nrefs == 0;
    pthread_mutex_unlock(&m->lock);
    if (!is_last)
        return;
    pthread_mutex_lock(&g->lock);
    m->next_dead = g->dead;
    g->dead = m;
    pthread_cond_signal(&g->cond);
    pthread_mutex_unlock(&g->lock);
}

void model_bury(struct serve_model *m)
{
    struct serve_graveyard *g = m->graveyard;

    m->backend->destroy(m->self);
    pthread_mutex_destroy(&m->lock);
    free(m);
    pthread_mutex_lock(&g->lock);
    g->nalive--;
    pthread_mutex_unlock(&g->lock);
}

/* --- what fits ---------------------------------------------------------------- */

static heddle_status match_port(const struct serve_port *p, const struct kserve_tensor *t,
                                char *why, size_t why_bytes)
{
    if (t->type != p->type)
        return heddle_why(why, why_bytes, HEDDLE_EINVAL, "input '%s' is %s, the model wants %s",
                          p->name, kserve_type_name(t->type), kserve_type_name(p->type));
    if (t->ndim != p->ndim)
        return heddle_why(why, why_bytes, HEDDLE_EINVAL,
                          "input '%s' has %u dimensions, the model wants %u", p->name, t->ndim,
                          p->ndim);
    for (unsigned d = 0; d < p->ndim; d++) {
        if (p->dim[d] >= 0 && p->dim[d] != t->dim[d])
            return heddle_why(why, why_bytes, HEDDLE_EINVAL,
                              "dimension %u of input '%s' is %lld, the model wants %lld", d,
                              p->name, (long long)t->dim[d], (long long)p->dim[d]);
    }
    return HEDDLE_OK;
}

static bool has_output(const struct serve_model *m, const char *name)
{
    for (size_t i = 0; i < m->nout; i++) {
        if (strcmp(m->out[i].name, name) == 0)
            return true;
    }
    return false;
}

static bool is_input(const struct serve_model *m, const char *name)
{
    for (size_t i = 0; i < m->nin; i++) {
        if (strcmp(m->in[i].name, name) == 0)
            return true;
    }
    return false;
}

static heddle_status match_names(const struct serve_model *m, const struct kserve_request *q,
                                 char *why, size_t why_bytes)
{
    for (size_t i = 0; i < q->nin; i++) {
        if (!is_input(m, q->in[i].name))
            return heddle_why(why, why_bytes, HEDDLE_EINVAL, "model '%s' has no input '%s'",
                              m->name, q->in[i].name);
    }
    for (size_t i = 0; i < q->nout; i++) {
        if (!has_output(m, q->out[i].name))
            return heddle_why(why, why_bytes, HEDDLE_EINVAL, "model '%s' has no output '%s'",
                              m->name, q->out[i].name);
    }
    return HEDDLE_OK;
}

heddle_status model_match(const struct serve_model *m, struct serve_job *job, char *why,
                          size_t why_bytes)
{
    const struct kserve_request *q = &job->request;
    heddle_status st = match_names(m, q, why, why_bytes);

    for (size_t i = 0; i < m->nin && st == HEDDLE_OK; i++) {
        job->in[i] = NULL;
        for (size_t k = 0; k < q->nin; k++) {
            if (strcmp(q->in[k].name, m->in[i].name) == 0)
                job->in[i] = &q->in[k];
        }
        if (job->in[i] == NULL)
            return heddle_why(why, why_bytes, HEDDLE_EINVAL, "input '%s' is missing",
                              m->in[i].name);
        st = match_port(&m->in[i], job->in[i], why, why_bytes);
        if (st == HEDDLE_OK && m->can_batch && job->in[i]->dim[0] != job->in[0]->dim[0])
            st = heddle_why(why, why_bytes, HEDDLE_EINVAL,
                            "inputs '%s' and '%s' have different numbers of rows", m->in[0].name,
                            m->in[i].name);
    }
    return st;
}

static uint64_t job_rows(const struct serve_job *job)
{
    return job->model->can_batch ? (uint64_t)job->in[0]->dim[0] : 1;
}

/* Can b be computed with a, in one batch? */
static bool fits(const struct serve_job *a, const struct serve_job *b)
{
    const struct serve_model *m = a->model;

    for (size_t i = 0; i < m->nin; i++) {
        for (unsigned d = 1; d < m->in[i].ndim; d++) {
            if (a->in[i]->dim[d] != b->in[i]->dim[d])
                return false;
        }
    }
    return true;
}

/* --- the end of a job ------------------------------------------------------------- */

static void count_time(struct serve_numbers *n, uint64_t ns)
{
    size_t i = 0;

    while (i < SERVE_BUCKETS && (double)ns > 1e9 * model_bucket_s(i))
        i++;
    n->bucket[i]++;
    n->total_ns += ns;
}

static void count_end(struct serve_job *job, heddle_status st, uint64_t now)
{
    struct serve_model *m = job->model;
    struct serve_numbers *n = &m->numbers;

    pthread_mutex_lock(&m->lock);
    if (st == HEDDLE_OK)
        n->good++;
    else if (st == HEDDLE_ETIMEDOUT)
        n->late++;
    else
        n->failed++;
    if (job->began_ns != 0) {
        n->queue_ns += job->began_ns - job->arrived_ns;
        n->compute_ns += now - job->began_ns;
    }
    count_time(n, now - job->arrived_ns);
    pthread_mutex_unlock(&m->lock);
}

static void end_job(struct serve_job *job, heddle_status st, const char *why)
{
    free(job->batch);
    job->batch = NULL;
    count_end(job, st, heddle_clock_ns());
    job->done(job, st, why);
}

/* --- batches ------------------------------------------------------------------------ */

static void batch_ended(void *user, heddle_status st, const char *why)
{
    struct serve_batch *b = user;
    struct serve_model *m = b->m; /* the batch has a reference of its own */

    pthread_mutex_lock(&m->lock);
    m->nrunning--;
    if (st == HEDDLE_OK)
        serve_pace_add(&m->pace, b->rows, heddle_clock_ns() - b->job[0]->began_ns);
    m->numbers.batches++;
    m->numbers.rows += b->rows;
    pthread_mutex_unlock(&m->lock);
    /* Others begin before these replies are written, also of a model that was replaced. */
    (void)model_expire(m, heddle_clock_ns());
    for (size_t i = 0; i < b->n; i++)
        end_job(b->job[i], st, why);
    free(b);
    model_unref(m);
}

/* Takes the jobs of the next batch from the queue. Under the lock. */
static void fill_batch(struct serve_model *m, struct serve_batch *b)
{
    struct serve_job **at = &m->queue;

    while (*at != NULL && b->n < m->max_batch) {
        struct serve_job *job = *at;
        const uint64_t rows = job_rows(job);

        if (b->n > 0 && (!m->can_batch || b->rows + rows > m->max_batch || !fits(b->job[0], job))) {
            at = &job->next;
            continue;
        }
        *at = job->next;
        m->nqueued--;
        m->nhurried -= job->deadline_ns != 0;
        b->job[b->n++] = job;
        b->rows += rows;
        if (!m->can_batch || b->rows >= m->max_batch)
            break;
    }
}

/* Would the next batch be full? Under the lock. */
static bool is_full(const struct serve_model *m)
{
    uint64_t rows = 0;

    if (!m->can_batch)
        return true;
    for (const struct serve_job *job = m->queue; job != NULL && rows < m->max_batch;
         job = job->next)
        rows += fits(m->queue, job) ? job_rows(job) : 0;
    return rows >= m->max_batch;
}

/* The moment at which a job has to begin to be in time; 0: it has no deadline. Under the lock. */
static uint64_t latest_start(const struct serve_model *m, const struct serve_job *job)
{
    const uint64_t rows = m->can_batch ? m->max_batch : 1; /* others may come along */
    const uint64_t needs = serve_pace_ns(&m->pace, rows) / 10 * 11 + MARGIN_NS;

    if (job->deadline_ns == 0)
        return 0;
    return job->deadline_ns > needs ? job->deadline_ns - needs : 1;
}

static bool is_urgent(const struct serve_model *m, uint64_t now)
{
    if (m->nhurried == 0)
        return false;
    for (const struct serve_job *job = m->queue; job != NULL; job = job->next) {
        if (job->deadline_ns != 0 && latest_start(m, job) <= now)
            return true;
    }
    return false;
}

/* May a batch begin? Under the lock. */
static bool may_begin(const struct serve_model *m, bool is_full_only)
{
    if (m->queue == NULL || m->nrunning >= m->max_running)
        return false;
    if (m->nrunning < m->max_eager && !is_full_only)
        return true;
    return is_full(m) || is_urgent(m, heddle_clock_ns());
}

/* Begins batches while the model may have more. */
static void begin_batches(struct serve_model *m, bool is_full_only)
{
    for (;;) {
        struct serve_batch *b;
        uint64_t now;

        pthread_mutex_lock(&m->lock);
        if (!may_begin(m, is_full_only)) {
            pthread_mutex_unlock(&m->lock);
            return;
        }
        b = m->queue->batch;
        m->queue->batch = NULL;
        b->m = m;
        fill_batch(m, b);
        m->nrunning++;
        m->nrefs++;
        pthread_mutex_unlock(&m->lock);
        now = heddle_clock_ns();
        for (size_t i = 0; i < b->n; i++)
            b->job[i]->began_ns = now;
        m->backend->run(m->self, b->job, b->n, batch_ended, b);
    }
}

void model_pump(struct serve_model *m)
{
    begin_batches(m, false);
}

/* --- the queue ------------------------------------------------------------------------ */

static uint64_t urgency(const struct serve_job *job)
{
    /* No priority is the least urgent. */
    return job->request.priority == 0 ? UINT64_MAX : job->request.priority;
}

static bool goes_before(const struct serve_job *a, const struct serve_job *b)
{
    const uint64_t da = a->deadline_ns == 0 ? UINT64_MAX : a->deadline_ns;
    const uint64_t db = b->deadline_ns == 0 ? UINT64_MAX : b->deadline_ns;

    if (urgency(a) != urgency(b))
        return urgency(a) < urgency(b);
    return da != db ? da < db : a->number < b->number;
}

heddle_status model_queue(struct serve_job *job)
{
    struct serve_model *m = job->model;
    struct serve_graveyard *g = m->graveyard;
    const bool has_deadline = job->deadline_ns != 0;
    struct serve_job **at = &m->queue;

    job->batch = calloc(1, sizeof(*job->batch) + m->max_batch * sizeof(job->batch->job[0]));
    pthread_mutex_lock(&m->lock);
    if (job->batch == NULL || m->nqueued >= m->max_queue) {
        const heddle_status st = job->batch == NULL ? HEDDLE_ENOMEM : HEDDLE_EOVERFLOW;

        m->numbers.refused++;
        pthread_mutex_unlock(&m->lock);
        free(job->batch);
        job->batch = NULL;
        return st;
    }
    job->number = m->next_number++;
    while (*at != NULL && !goes_before(job, *at))
        at = &(*at)->next;
    job->next = *at;
    *at = job;
    m->nqueued++;
    m->nhurried += has_deadline;
    m->nrefs++; /* for this call: the job may end meanwhile */
    pthread_mutex_unlock(&m->lock);
    begin_batches(m, true);
    if (has_deadline) {
        pthread_mutex_lock(&g->lock);
        pthread_cond_signal(&g->cond);
        pthread_mutex_unlock(&g->lock);
    }
    model_unref(m);
    return HEDDLE_OK;
}

heddle_status model_submit(struct serve_job *job)
{
    struct serve_model *m = model_ref(job->model);
    const heddle_status st = model_queue(job);

    model_pump(m);
    model_unref(m);
    return st;
}

/* The jobs whose deadline has passed, out of the queue. Under the lock. */
static struct serve_job *take_late(struct serve_model *m, uint64_t now)
{
    struct serve_job *late = NULL, **at = &m->queue;

    while (m->nhurried > 0 && *at != NULL) {
        struct serve_job *job = *at;

        if (job->deadline_ns == 0 || job->deadline_ns > now) {
            at = &job->next;
            continue;
        }
        *at = job->next;
        m->nqueued--;
        m->nhurried--;
        job->next = late;
        late = job;
    }
    return late;
}

/* When a job becomes urgent, or, when it is already, late. Under the lock. */
static uint64_t next_moment(const struct serve_model *m, uint64_t now)
{
    uint64_t next = 0;

    for (const struct serve_job *job = m->nhurried > 0 ? m->queue : NULL; job != NULL;
         job = job->next) {
        const uint64_t start = latest_start(m, job);
        const uint64_t at = start > now ? start : job->deadline_ns;

        if (at != 0 && (next == 0 || at < next))
            next = at;
    }
    return next;
}

uint64_t model_expire(struct serve_model *m, uint64_t now_ns)
{
    struct serve_job *late;
    uint64_t next;

    pthread_mutex_lock(&m->lock);
    late = take_late(m, now_ns);
    pthread_mutex_unlock(&m->lock);
    model_pump(m);
    pthread_mutex_lock(&m->lock);
    next = next_moment(m, now_ns);
    pthread_mutex_unlock(&m->lock);
    while (late != NULL) {
        struct serve_job *job = late;

        late = job->next;
        end_job(job, HEDDLE_ETIMEDOUT, "the deadline passed while the request waited");
    }
    return next;
}

void model_get_numbers(struct serve_model *m, struct serve_numbers *out, size_t *nqueued,
                       size_t *nrunning)
{
    pthread_mutex_lock(&m->lock);
    *out = m->numbers;
    *nqueued = m->nqueued;
    *nrunning = m->nrunning;
    pthread_mutex_unlock(&m->lock);
}
