/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream: a reply that is sent in pieces, as they come.
 *
 * Life       the one who writes has a reference, libmicrohttpd's response the other one. The
 *            response goes with the connection, and so says that the client has gone.
 * Threads    `lock` guards everything. libmicrohttpd's thread takes pieces out; when there are none
 *            it lets the connection sleep, and the next piece wakes it up.
 * Failure    a piece that finds no room breaks the stream: the connection is closed, so that the
 *            client does not take what it has for the whole.
 * Invariant  is_asleep: the connection is suspended, so it is there
 */
#include "serve/stream.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { STREAM_BLOCK = 4096, STREAM_MOST = 1 << 22 };

struct http_stream {
    struct stream_calls calls;
    struct MHD_Connection *connection;
    pthread_mutex_t lock;
    unsigned nrefs;
    bool is_over; /* there will be no more pieces */
    bool is_gone; /* there is no connection any more, or soon not: a piece found no room */
    bool is_asleep;
    char *buf; /* [from, len) is to be sent */
    size_t from, len, cap;
};

/* With the lock, which it gives back. */
static void stream_unref(struct http_stream *s)
{
    const bool is_last = --s->nrefs == 0;

    pthread_mutex_unlock(&s->lock);
    if (!is_last)
        return;
    pthread_mutex_destroy(&s->lock);
    free(s->buf);
    free(s);
}

/* With the lock. */
static void stream_wake(struct http_stream *s)
{
    if (s->is_asleep)
        s->calls.resume_connection(s->connection);
    s->is_asleep = false;
}

static ssize_t on_read(void *user, uint64_t pos, char *to, size_t max)
{
    struct http_stream *s = user;
    ssize_t n = 0;

    (void)pos;
    pthread_mutex_lock(&s->lock);
    if (s->is_gone) {
        n = MHD_CONTENT_READER_END_WITH_ERROR;
    } else if (s->from < s->len) {
        const size_t left = s->len - s->from;

        n = (ssize_t)(left < max ? left : max);
        memcpy(to, s->buf + s->from, (size_t)n);
        s->from += (size_t)n;
        s->calls.sends(s->calls.user, (size_t)n, (size_t)n == left);
    } else if (s->is_over) {
        n = MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        s->is_asleep = true;
        s->calls.sends(s->calls.user, 0, true);
        s->calls.suspend_connection(s->connection);
    }
    pthread_mutex_unlock(&s->lock);
    return n;
}

static void on_free(void *user)
{
    struct http_stream *s = user;

    pthread_mutex_lock(&s->lock);
    s->is_gone = true;
    s->is_asleep = false;
    stream_unref(s);
}

struct MHD_Response *stream_create(const struct stream_calls *calls, struct MHD_Connection *c,
                                   struct http_stream **out)
{
    struct http_stream *s = calloc(1, sizeof(*s));
    struct MHD_Response *r;

    if (s == NULL || pthread_mutex_init(&s->lock, NULL) != 0) {
        free(s);
        return NULL;
    }
    s->calls = *calls;
    s->connection = c;
    s->nrefs = 2;
    r = s->calls.create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, on_read, s, on_free);
    if (r == NULL) {
        pthread_mutex_destroy(&s->lock);
        free(s);
        return NULL;
    }
    *out = s;
    return r;
}

/* With the lock: room for `bytes` more. What was sent makes room first. */
static bool stream_room(struct http_stream *s, size_t bytes)
{
    size_t cap = s->cap > 0 ? s->cap : 256;
    char *p;

    if (s->from > 0) {
        memmove(s->buf, s->buf + s->from, s->len - s->from);
        s->len -= s->from;
        s->from = 0;
    }
    if (bytes > STREAM_MOST - s->len)
        return false; /* the client does not read */
    while (cap < s->len + bytes)
        cap *= 2;
    if (cap == s->cap)
        return true;
    p = realloc(s->buf, cap);
    if (p == NULL)
        return false;
    s->buf = p;
    s->cap = cap;
    return true;
}

bool http_stream_write(struct http_stream *s, const char *data, size_t bytes)
{
    bool is_good;

    pthread_mutex_lock(&s->lock);
    is_good = !s->is_gone && stream_room(s, bytes);
    if (is_good) {
        memcpy(s->buf + s->len, data, bytes);
        s->len += bytes;
    }
    s->is_gone = !is_good;
    stream_wake(s);
    pthread_mutex_unlock(&s->lock);
    return is_good;
}

bool http_stream_is_gone(struct http_stream *s)
{
    bool is_gone;

    pthread_mutex_lock(&s->lock);
    is_gone = s->is_gone;
    pthread_mutex_unlock(&s->lock);
    return is_gone;
}

void http_stream_end(struct http_stream *s)
{
    pthread_mutex_lock(&s->lock);
    s->is_over = true;
    stream_wake(s);
    stream_unref(s);
}
