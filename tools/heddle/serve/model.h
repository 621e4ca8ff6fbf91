/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_SERVE_MODEL_H
#define HEDDLE_TOOLS_SERVE_MODEL_H

/*
 * A model that is served: what goes in and out, its queue, its numbers.
 *
 * A job is one request. It waits in the queue of its model, ordered by priority, then
 * deadline, then arrival. While few batches run (max_eager: the machine would be idle), the first
 * job begins, together with the jobs behind it that can be computed with it. While more run, a
 * batch begins, up to max_running, when it is full, or when a job with a deadline cannot wait any
 * longer, by what batches have taken so far (serve/pace.h). So batches grow by themselves when
 * requests come faster than they are answered, and no request waits beside an idle machine. A job
 * whose deadline passes in the queue is answered there.
 *
 * A kind of model is a backend: its open function makes a model with model_create(), fills the
 * ports, and the load() of server_opts returns it. net.h has the kind for networks.
 *
 * Life      a model is counted: the registry holds it, and each job does. When the last
 *           reference goes, it joins a list that the server's own thread empties, since the
 *           end of a model may have to wait.
 * Threads   any. `lock` guards the queue, `numbers` too.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "serve/kserve.h"
#include "serve/pace.h"

struct serve_model;
struct serve_batch;

/* An input or an output; a dimension of -1 may be anything. */
struct serve_port {
    char name[KSERVE_MAX_NAME];
    enum kserve_type type;
    unsigned ndim;
    int64_t dim[KSERVE_MAX_DIMS];
};

struct serve_job {
    struct kserve_request request;
    struct serve_model *model;
    const struct kserve_tensor *in[KSERVE_MAX_TENSORS]; /* in the order of the model's ports */
    struct kserve_tensor *out; /* the model's outputs, in its order; data in request.mem */
    uint64_t arrived_ns, began_ns, deadline_ns; /* deadline 0: none */
    uint64_t number;
    struct serve_job *next;
    struct serve_batch *batch; /* model.c's */
    /* Called once, when the job is over; `why`: a sentence, when st is a failure. The job is
     * the callee's again: model_unref(), then free. */
    void (*done)(struct serve_job *job, heddle_status st, const char *why);
    void *user;
};

/* What computes. */
struct serve_backend {
    /*
     * Computes n jobs as one batch and calls ended() once, from any thread, perhaps before it
     * returns: with out of each job filled, or with a failure. Jobs of a batch agree in all
     * dimensions but the first.
     */
    void (*run)(void *self, struct serve_job *const *jobs, size_t n,
                void (*ended)(void *batch, heddle_status st, const char *why), void *batch);
    void (*destroy)(void *self); /* nothing runs any more; may wait */
};

enum { SERVE_BUCKETS = 14 };

/* Sums since the model was loaded, for /metrics and .../stats. Times in nanoseconds. */
struct serve_numbers {
    uint64_t good, failed, late, refused; /* requests */
    uint64_t rows, batches;
    uint64_t total_ns, queue_ns, compute_ns;
    uint64_t bucket[SERVE_BUCKETS + 1]; /* of the time of a request: model_bucket_s() */
};

/* The upper end of a bucket of the histogram, in seconds. */
double model_bucket_s(size_t i);

struct generator; /* generate.h */

struct serve_model_opts {
    const char *name;
    size_t max_queue;         /* jobs that wait; more are refused */
    size_t max_batch;         /* rows of a batch; 1: no batches */
    size_t max_running;       /* batches at once */
    size_t max_eager;         /* so many of them need no reason; 0: all */
    size_t max_sequences;     /* of a decoder, at once */
    uint64_t max_cache_bytes; /* of their keys and values */
};

/* Models whose last reference is gone, and how many are there in all. */
struct serve_graveyard {
    pthread_mutex_t lock;
    pthread_cond_t cond; /* something to do: a dead model, or an earlier deadline */
    struct serve_model *dead;
    size_t nalive;
    bool is_over;
};

struct serve_model {
    char name[KSERVE_MAX_NAME];
    size_t nin, nout;
    struct serve_port in[KSERVE_MAX_TENSORS], out[KSERVE_MAX_TENSORS];
    bool can_batch; /* the first dimension of all ports is the number of rows */
    size_t max_queue, max_batch, max_running, max_eager;
    const struct serve_backend *backend;
    void *self;
    struct generator *generator; /* NULL: it is no decoder; the backend's */

    struct serve_graveyard *graveyard;
    struct serve_model *next_dead;

    pthread_mutex_t lock; /* all below */
    size_t nrefs;
    struct serve_job *queue;
    size_t nqueued, nrunning;
    size_t nhurried; /* jobs in the queue with a deadline */
    struct serve_pace pace;
    uint64_t next_number;
    struct serve_numbers numbers;
};

/* Makes a model with one reference; ports are filled by the caller before it is used. The
 * backend is destroyed with the model, not when this fails. NULL: there is no memory. */
struct serve_model *model_create(const struct serve_model_opts *o,
                                 const struct serve_backend *backend, void *self,
                                 struct serve_graveyard *graveyard);
struct serve_model *model_ref(struct serve_model *m);
void model_unref(struct serve_model *m);
/* For the thread that empties the graveyard: destroys it. */
void model_bury(struct serve_model *m);

/* Do the tensors of the request fit the inputs? Sets job->in. HEDDLE_EINVAL and a sentence. */
HEDDLE_MUST_USE heddle_status model_match(const struct serve_model *m, struct serve_job *job,
                                          char *why, size_t why_bytes);

/*
 * Gives the job to the queue; done() will be called. The job has a reference of its model.
 *
 * HEDDLE_EOVERFLOW  too many wait
 * HEDDLE_ENOMEM     in both cases done() is not called
 */
HEDDLE_MUST_USE heddle_status model_submit(struct serve_job *job);
/* The same, but no batch begins that is not full: more jobs may come at once. model_pump() begins
 * the rest. */
HEDDLE_MUST_USE heddle_status model_queue(struct serve_job *job);
void model_pump(struct serve_model *m);

/* Ends the jobs whose deadline has passed, and begins what cannot wait any longer. When it is to be
 * called again; 0: there is no deadline. */
uint64_t model_expire(struct serve_model *m, uint64_t now_ns);

void model_get_numbers(struct serve_model *m, struct serve_numbers *out, size_t *nqueued,
                       size_t *nrunning);

#endif /* HEDDLE_TOOLS_SERVE_MODEL_H */
