/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * generate: the running batch of a decoder.
 *
 * Invariants (1) running[s] is the request of sequence s of the decoder; the thread's own
 *            (2) the first request of the queue is the next one to join; the others wait with it
 * Threads    `lock` guards the queue, is_over and the numbers; no function of a request is called
 *            under it.
 */
#include "serve/generate.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/why.h"

struct generator {
    heddle_decoder *d;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    struct generation *first, **last;
    size_t max_queue;
    bool is_over;
    struct generator_numbers numbers;
    struct generation **running; /* by sequence */
    struct heddle_decoder_token *out;
    size_t max, nrunning;
};

/* --- the thread -------------------------------------------------------------------------- */

/* A request is over. */
static void end_job(struct generator *g, struct generation *job, const char *reason,
                    heddle_status st, const char *why)
{
    pthread_mutex_lock(&g->lock);
    if (reason != NULL)
        g->numbers.good++;
    else if (st == HEDDLE_ECANCELED)
        g->numbers.cancelled++;
    else
        g->numbers.failed++;
    pthread_mutex_unlock(&g->lock);
    job->ended(job->user, reason, st, why);
}

static void leave(struct generator *g, unsigned sequence, const char *reason, heddle_status st,
                  const char *why)
{
    struct generation *job = g->running[sequence];

    heddle_decoder_end(g->d, sequence);
    g->running[sequence] = NULL;
    g->nrunning--;
    end_job(g, job, reason, st, why);
}

static struct generation *take_first(struct generator *g)
{
    struct generation *job;

    pthread_mutex_lock(&g->lock);
    job = g->first;
    g->first = job->next;
    if (g->first == NULL)
        g->last = &g->first;
    g->numbers.nqueued--;
    pthread_mutex_unlock(&g->lock);
    return job;
}

/* Lets the first request of the queue join. False: there is none, or no room. */
static bool join_first(struct generator *g)
{
    struct heddle_decoder_choice c = {.size = sizeof(c)};
    struct generation *job;
    unsigned sequence = 0;
    heddle_status st;

    pthread_mutex_lock(&g->lock);
    job = g->first;
    pthread_mutex_unlock(&g->lock);
    if (job == NULL)
        return false;
    if (job->is_gone(job->user)) {
        end_job(g, take_first(g), NULL, HEDDLE_ECANCELED, "the client has gone");
        return true;
    }
    c.temperature = job->ask.temperature;
    c.top_k = (unsigned)job->ask.top_k;
    c.top_p = job->ask.top_p;
    c.seed = job->ask.seed;
    st = heddle_decoder_begin(g->d, job->prompt, job->nprompt, job->nprompt + job->ask.max_tokens,
                              &c, &sequence);
    if (st == HEDDLE_AGAIN && g->nrunning > 0)
        return false;
    (void)take_first(g);
    if (st != HEDDLE_OK) {
        end_job(g, job, NULL, st, heddle_decoder_why(g->d));
        return true;
    }
    g->running[sequence] = job;
    g->nrunning++;
    pthread_mutex_lock(&g->lock);
    g->numbers.prompt_tokens += job->nprompt;
    pthread_mutex_unlock(&g->lock);
    return true;
}

static void drop_gone(struct generator *g)
{
    for (unsigned s = 0; s < g->max; s++)
        if (g->running[s] != NULL && g->running[s]->is_gone(g->running[s]->user))
            leave(g, s, NULL, HEDDLE_ECANCELED, "the client has gone");
}

static void give_token(struct generator *g, const struct heddle_decoder_token *t)
{
    struct generation *job = g->running[t->sequence];

    if (t->st != HEDDLE_OK) {
        leave(g, t->sequence, NULL, t->st, heddle_decoder_why(g->d));
        return;
    }
    job->count++;
    if (!job->token(job->user, t->token))
        leave(g, t->sequence, NULL, HEDDLE_ECANCELED, "the client has gone");
    else if (job->ask.has_stop && t->token == job->ask.stop)
        leave(g, t->sequence, "stop", HEDDLE_OK, "");
    else if (job->count == job->ask.max_tokens)
        leave(g, t->sequence, "length", HEDDLE_OK, "");
}

static void run_step(struct generator *g)
{
    struct heddle_decoder_info info = {.size = sizeof(info)};
    unsigned n = 0;
    const heddle_status st = heddle_decoder_step(g->d, g->out, (unsigned)g->max, &n);

    for (unsigned s = 0; s < g->max && st != HEDDLE_OK; s++)
        if (g->running[s] != NULL)
            leave(g, s, NULL, st, heddle_status_text(st));
    if (heddle_decoder_get_info(g->d, &info) != HEDDLE_OK)
        info.room_bytes = 0;
    pthread_mutex_lock(&g->lock);
    g->numbers.steps++;
    for (unsigned i = 0; i < n; i++)
        g->numbers.tokens += g->out[i].st == HEDDLE_OK;
    g->numbers.nrunning = g->nrunning;
    g->numbers.cache_bytes = info.room_bytes;
    pthread_mutex_unlock(&g->lock);
    for (unsigned i = 0; i < n; i++)
        give_token(g, &g->out[i]);
}

/* Sleeps while there is nothing to do. False: the end. */
static bool has_work(struct generator *g)
{
    bool has;

    pthread_mutex_lock(&g->lock);
    g->numbers.nrunning = g->nrunning;
    while (g->first == NULL && g->nrunning == 0 && !g->is_over)
        pthread_cond_wait(&g->cond, &g->lock);
    has = g->first != NULL || g->nrunning > 0;
    pthread_mutex_unlock(&g->lock);
    return has;
}

static void *generator_thread(void *user)
{
    struct generator *g = user;

    while (has_work(g)) {
        drop_gone(g);
        while (join_first(g)) {
        }
        if (g->nrunning > 0)
            run_step(g);
    }
    return NULL;
}

/* --- life ---------------------------------------------------------------------------------- */

static void free_generator(struct generator *g)
{
    heddle_decoder_destroy(g->d);
    free(g->running);
    free(g->out);
    free(g);
}

heddle_status generator_create(heddle_nn *net, const struct generator_opts *o,
                               struct generator **out)
{
    const struct heddle_decoder_opts opts = {.size = sizeof(opts),
                                             .max_sequences = (unsigned)o->max_sequences,
                                             .max_bytes = o->max_cache_bytes,
                                             .why = o->why,
                                             .why_bytes = o->why_bytes};
    struct generator *g = calloc(1, sizeof(*g));
    heddle_status st = HEDDLE_ENOMEM;

    if (g == NULL)
        return heddle_why(o->why, o->why_bytes, st, "out of memory");
    g->max = o->max_sequences;
    g->max_queue = o->max_queue;
    g->last = &g->first;
    g->running = calloc(g->max, sizeof(struct generation *));
    g->out = calloc(g->max, sizeof(*g->out));
    if (g->running != NULL && g->out != NULL)
        st = heddle_decoder_create(net, &opts, &g->d);
    if (st != HEDDLE_OK) {
        free_generator(g);
        return st;
    }
    if (pthread_mutex_init(&g->lock, NULL) != 0) {
        free_generator(g);
        return heddle_why(o->why, o->why_bytes, HEDDLE_ENOMEM, "out of memory");
    }
    if (pthread_cond_init(&g->cond, NULL) != 0 ||
        pthread_create(&g->thread, NULL, generator_thread, g) != 0) {
        pthread_mutex_destroy(&g->lock);
        free_generator(g);
        return heddle_why(o->why, o->why_bytes, HEDDLE_ENOMEM, "no thread can be started");
    }
    *out = g;
    return HEDDLE_OK;
}

void generator_destroy(struct generator *g)
{
    if (g == NULL)
        return;
    pthread_mutex_lock(&g->lock);
    g->is_over = true;
    pthread_cond_signal(&g->cond);
    pthread_mutex_unlock(&g->lock);
    (void)pthread_join(g->thread, NULL);
    pthread_cond_destroy(&g->cond);
    pthread_mutex_destroy(&g->lock);
    free_generator(g);
}

heddle_status generator_submit(struct generator *g, struct generation *job)
{
    bool is_full;

    job->next = NULL;
    job->count = 0;
    pthread_mutex_lock(&g->lock);
    is_full = g->numbers.nqueued >= g->max_queue;
    if (is_full) {
        g->numbers.refused++;
    } else {
        *g->last = job;
        g->last = &job->next;
        g->numbers.nqueued++;
        pthread_cond_signal(&g->cond);
    }
    pthread_mutex_unlock(&g->lock);
    return is_full ? HEDDLE_EOVERFLOW : HEDDLE_OK;
}

void generator_get_numbers(struct generator *g, struct generator_numbers *out)
{
    pthread_mutex_lock(&g->lock);
    *out = g->numbers;
    pthread_mutex_unlock(&g->lock);
}
