/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_SERVE_HTTP_H
#define HEDDLE_TOOLS_SERVE_HTTP_H

/*
 * An HTTP/1.1 server with requests in flight: a handler gets each request when its body is
 * complete, and the reply may come at once or later, from any thread.
 *
 * Parsing, connections and their limits are libmicrohttpd's, which is loaded when a server
 * starts. A request whose header or body is larger than the limits, or whose connection is
 * idle for too long, never reaches the handler.
 *
 * Threads  one thread of the server reads, calls the handler and writes; the handler must
 *          not block. http_reply() may be called from any thread, once for each exchange.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/status.h"

struct http_server;
/* One request and its reply. It lives until http_reply(). */
struct http_exchange;

struct http_opts {
    const char *address;      /* NULL: 127.0.0.1 */
    uint16_t port;            /* 0: the system chooses */
    size_t max_body;          /* bytes; larger ones get 413 */
    unsigned max_connections; /* more wait until one ends */
    unsigned idle_s;          /* a connection without progress is closed; 0: never */
    void (*handler)(void *user, struct http_exchange *x); /* replies, now or later */
    void *user;
    char *why;
    size_t why_bytes;
};

/*
 * Starts to listen.
 *
 * HEDDLE_ENOSYS  libmicrohttpd is not there
 * HEDDLE_EIO     the address or the port cannot be had
 * HEDDLE_ENOMEM
 */
HEDDLE_MUST_USE heddle_status http_server_start(const struct http_opts *o,
                                                struct http_server **out);
/* The port it listens on. */
uint16_t http_server_port(const struct http_server *s);
/* No new connections; requests on the present ones are still answered. */
void http_server_drain(struct http_server *s);
/* Requests whose reply is not sent yet. 0 after http_server_drain(): it can be stopped. */
size_t http_server_pending(const struct http_server *s);
/* Ends it. Every exchange must have its reply. NULL is fine. */
void http_server_stop(struct http_server *s);

/* Borrowed from the exchange. */
const char *http_method(const struct http_exchange *x);
const char *http_path(const struct http_exchange *x); /* decoded, without the query */
const char *http_header(const struct http_exchange *x, const char *name); /* NULL: none */
/* There is a zero behind the body. */
const char *http_body(const struct http_exchange *x, size_t *bytes);

struct http_field {
    const char *name, *value;
};

/* The reply: `body` is from malloc(), may be NULL, and belongs to the server from here on. The
 * fields are copied; type: of the content. */
void http_reply(struct http_exchange *x, unsigned code, const char *type, char *body, size_t bytes,
                const struct http_field *field, size_t nfields);

#endif /* HEDDLE_TOOLS_SERVE_HTTP_H */
