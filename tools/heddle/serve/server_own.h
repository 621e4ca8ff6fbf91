/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_SERVE_SERVER_OWN_H
#define HEDDLE_TOOLS_SERVE_SERVER_OWN_H

/* What the files of the server share: its registry, and replies. */
#include <pthread.h>
#include <stdatomic.h>

#include "base/json.h"
#include "base/text.h"
#include "serve/server.h"

/* A name that is served. */
struct server_entry {
    char name[KSERVE_MAX_NAME];
    struct serve_model *model;     /* NULL: it is unloaded */
    bool wants_load;               /* the server's thread is to load it */
    struct http_exchange *loading; /* who asked for it; NULL: nobody */
};

struct server {
    struct http_server *http;
    struct server_opts o;
    struct serve_graveyard graveyard; /* its lock guards `entry` too */
    struct server_entry entry[SERVE_MAX_MODELS];
    size_t nentries;
    pthread_t thread;
    bool has_thread;
    _Atomic bool is_draining;
    /* Of the HTTP server's thread: models with new jobs, each with a reference. */
    struct serve_model *touched[SERVE_MAX_MODELS];
    size_t ntouched;
};

/* The model, with a reference of its own; NULL: it is not served now. */
struct serve_model *server_find(struct server *s, const char *name);

/* Batches of the model begin when all requests that have come are read. Of the HTTP server's
 * thread. */
void server_touch(struct server *s, struct serve_model *m);

/* Replies; the writer is finished and ended. */
void reply_json(struct http_exchange *x, unsigned code, struct heddle_json *j);
/* {"error": sentence} */
void reply_error(struct http_exchange *x, unsigned code, const char *sentence);
/* Out of memory: the one reply that needs none. */
void reply_nothing(struct http_exchange *x, unsigned code);

/* POST .../infer; takes the reference. */
void server_infer(struct server *s, struct http_exchange *x, struct serve_model *m);
/* POST .../generate and .../generate_stream; takes the reference. */
void server_generate(struct http_exchange *x, struct serve_model *m, bool is_stream);
/* POST .../infer that asks for tokens; takes the reference. */
void server_generate_infer(struct http_exchange *x, struct serve_model *m,
                           const struct kserve_request *q);
/* GET of one model. */
void server_describe(struct http_exchange *x, struct serve_model *m);
void server_config(struct http_exchange *x, struct serve_model *m);
void server_stats(struct http_exchange *x, struct serve_model *m);
/* GET /v2/models/stats */
void server_all_stats(struct server *s, struct http_exchange *x);
/* The lines of /metrics about decoders. */
void server_generate_metrics(struct heddle_text *t, struct serve_model *const *model, size_t n);
/* GET /metrics */
void server_metrics(struct server *s, struct http_exchange *x);

#endif /* HEDDLE_TOOLS_SERVE_SERVER_OWN_H */
