/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_SERVE_SERVER_H
#define HEDDLE_TOOLS_SERVE_SERVER_H

/*
 * The server: KServe's protocol version 2 over HTTP, and Prometheus' numbers.
 *
 *     GET  /v2                                        what this server is
 *     GET  /v2/health/live  /v2/health/ready          200 or 503
 *     GET  /v2/models/M[/versions/1]                  inputs and outputs
 *     GET  /v2/models/M[/versions/1]/ready  /config  /stats
 *     GET  /v2/models/stats                           of all models, unless one has this name
 *     POST /v2/models/M[/versions/1]/infer            the tensors
 *     POST /v2/models/M[/versions/1]/generate  /generate_stream    tokens of a decoder
 *     POST /v2/repository/index                       the models
 *     POST /v2/repository/models/M/load               loads the model's file again
 *     POST /v2/repository/models/M/unload
 *     GET  /metrics
 *
 * A model that is loaded again answers the requests it has; new ones go to the new one.
 *
 * Threads  the thread of the HTTP server reads requests; a thread of this server ends jobs
 *          that are late and models that are over, and loads models again.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "serve/http.h"
#include "serve/model.h"

enum { SERVE_MAX_MODELS = 64 };

struct server;

struct server_opts {
    const char *address; /* NULL: 127.0.0.1 */
    uint16_t port;
    size_t max_body, max_held; /* as in struct http_opts */
    unsigned max_connections, idle_s;
    /* Makes the model `name` again, for /load; NULL and a sentence when it cannot. */
    struct serve_model *(*load)(void *user, const char *name, struct serve_graveyard *graveyard,
                                char *why, size_t why_bytes);
    void *user;
    char *why;
    size_t why_bytes;
};

/* Starts with the models that load() makes of the n names. Statuses as http_server_start();
 * HEDDLE_EINVAL: a model cannot be loaded. */
HEDDLE_MUST_USE heddle_status server_start(const struct server_opts *o, const char *const *names,
                                           size_t n, struct server **out);
uint16_t server_port(const struct server *s);
/* Answers what has come, and ends. NULL is fine. */
void server_stop(struct server *s);

#endif /* HEDDLE_TOOLS_SERVE_SERVER_H */
