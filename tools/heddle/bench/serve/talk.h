/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_BENCH_SERVE_TALK_H
#define HEDDLE_TOOLS_BENCH_SERVE_TALK_H

/* One request at a time to a server, with sockets that wait; and the request that a load repeats.
 */
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

#include "heddle/status.h"

/* "http://127.0.0.1:8000/v2/models/m/infer": the address and where the path begins. IPv4 in
 * numbers, or "localhost". False: it is not that. */
bool talk_parse_url(const char *url, struct sockaddr_in *to, const char **path);

/* A connection whose reads and writes wait for timeout_ms at most; -1: errno says why. */
int talk_connect(const struct sockaddr_in *to, int timeout_ms);

/* Sends all of it; false: the other side has closed, or time is up. */
bool talk_send(int fd, const void *data, size_t bytes);

/* The code of the next reply; its body, cut to cap - 1 bytes and with a zero behind it, goes to
 * `body`. 0: the connection has ended, or time is up; -1: what came is no HTTP. */
int talk_receive(int fd, char *body, size_t cap);

/* GET on a connection of its own; as talk_receive(). */
int talk_get(const struct sockaddr_in *to, const char *path, char *body, size_t cap);

/* A text that load_run() repeats. */
struct talk_request {
    char *text; /* from malloc() */
    size_t bytes;
};

/*
 * The request for a path. Behind ".../infer" the model is asked for its inputs, and gets each as
 * binary data: dimensions that may be anything are 1, and elements are zero. Any other path is a
 * GET.
 *
 * HEDDLE_EIO     the server does not answer, or not so
 * HEDDLE_ENOMEM
 */
HEDDLE_MUST_USE heddle_status talk_make_request(const struct sockaddr_in *to, const char *path,
                                                struct talk_request *out, char *why,
                                                size_t why_bytes);

#endif /* HEDDLE_TOOLS_BENCH_SERVE_TALK_H */
