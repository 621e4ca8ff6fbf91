/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_SERVE_GENERATE_H
#define HEDDLE_TOOLS_SERVE_GENERATE_H

/*
 * Generation: sequences of tokens for requests, all of a model in one running batch.
 *
 * A request waits in a queue, first come, first served. Between two steps of the batch, requests
 * whose tokens are complete and requests whose clients have gone leave it, and waiting ones join as
 * long as there is room for the keys and values of as many tokens as they ask for.
 *
 * Threads  generator_submit() from any thread. A thread of the generator's own runs the steps and
 *          calls the functions of requests.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/decoder.h"
#include "serve/kserve.h"

struct generator;

struct generator_opts {
    size_t max_sequences, max_queue;
    uint64_t max_cache_bytes;
    char *why;
    size_t why_bytes;
};

/* A request. */
struct generation {
    struct kserve_generate ask;
    int64_t *prompt; /* from malloc() */
    size_t nprompt;
    /* Has the client gone? */
    bool (*is_gone)(void *user);
    /* A token has come. False: no more are wanted. */
    bool (*token)(void *user, int64_t token);
    /* Called once: there are no more tokens. reason: "length", "stop", or NULL: st and why say what
     * is wrong; HEDDLE_ECANCELED: the client has gone. The generation is the callee's again. */
    void (*ended)(void *user, const char *reason, heddle_status st, const char *why);
    void *user;

    size_t count; /* tokens that have come: the generator's */
    struct generation *next;
};

/* Since the beginning. */
struct generator_numbers {
    uint64_t tokens, prompt_tokens, good, failed, refused, cancelled, steps;
    uint64_t nqueued, nrunning; /* now */
    uint64_t cache_bytes;
};

/* HEDDLE_EINVAL: the network is no decoder. */
HEDDLE_MUST_USE heddle_status generator_create(heddle_nn *net, const struct generator_opts *o,
                                               struct generator **out);
/* Every request has ended. NULL is fine. */
void generator_destroy(struct generator *g);
/* HEDDLE_EOVERFLOW: too many wait; ended() is not called. */
HEDDLE_MUST_USE heddle_status generator_submit(struct generator *g, struct generation *job);
void generator_get_numbers(struct generator *g, struct generator_numbers *out);

#endif /* HEDDLE_TOOLS_SERVE_GENERATE_H */
