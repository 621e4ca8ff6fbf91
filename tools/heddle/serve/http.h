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
 * Slow clients  from its beginning, or from the last reply, a connection has idle_s for the next
 *               header; then idle_s and a second for each HTTP_LEAST_RATE bytes, for the body,
 *               and for the reply. So bytes that trickle keep no connection. For a reply in pieces,
 *               see http_stream_write().
 * Threads       one thread of the server reads, calls the handler and writes; the handler must
 *               not block. http_reply() may be called from any thread, once for each exchange.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/status.h"

enum { HTTP_LEAST_RATE = 16384 };

struct http_server;
/* One request and its reply. It lives until http_reply(). */
struct http_exchange;

struct http_opts {
    const char *address;      /* NULL: 127.0.0.1 */
    uint16_t port;            /* 0: the system chooses */
    size_t max_body;          /* bytes; larger ones get 413 */
    size_t max_held;          /* bytes of all bodies at once, else 503; 0: no limit */
    unsigned max_connections; /* more wait until one ends */
    unsigned idle_s;          /* a connection without progress is closed; 0: never */
    void (*handler)(void *user, struct http_exchange *x); /* replies, now or later */
    /* May be NULL. Called by the same thread when it has handled all requests that were there. */
    void (*after)(void *user);
    void *user;
    char *why;
    size_t why_bytes;
};

/* HEDDLE_ENOSYS, with a sentence: this build or this machine has no libmicrohttpd. */
HEDDLE_MUST_USE heddle_status http_check(char *why, size_t why_bytes);

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
/* No new connections; requests on the present ones are still answered, and then closed. */
void http_server_drain(struct http_server *s);
/* Requests whose reply is not sent yet. 0 after http_server_drain(): it can be stopped. */
size_t http_server_pending(const struct http_server *s);
/* Connections. */
size_t http_server_clients(const struct http_server *s);
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

/* Has the client of a request that waits for its reply closed the connection? Any thread. */
bool http_is_gone(const struct http_exchange *x);

/* A reply in pieces. */
struct http_stream;
/* Takes the place of http_reply(): the exchange is no longer the caller's. NULL: there is no
 * memory, and the connection is closed. */
struct http_stream *http_reply_stream(struct http_exchange *x, unsigned code, const char *type);
/* Any thread. False: the client has gone, or pieces pile up because it does not read, or there is
 * no memory; then the connection is closed, and the client gets no more. A client that is behind
 * with reading has idle_s, and the time that HTTP_LEAST_RATE gives for what it takes meanwhile. */
bool http_stream_write(struct http_stream *s, const char *data, size_t bytes);
/* True once the client has gone or a piece could not be sent. */
bool http_stream_is_gone(struct http_stream *s);
/* No more pieces; `s` is no longer the caller's. */
void http_stream_end(struct http_stream *s);

#endif /* HEDDLE_TOOLS_SERVE_HTTP_H */
