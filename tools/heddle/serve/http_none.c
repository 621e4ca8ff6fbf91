/* SPDX-License-Identifier: BSD-3-Clause */
/* http_none: a build without libmicrohttpd's header serves nothing, and says so. */
#include "base/why.h"
#include "serve/http.h"

heddle_status http_check(char *why, size_t why_bytes)
{
    return heddle_why(why, why_bytes, HEDDLE_ENOSYS,
                      "this build has no HTTP server: it was made without libmicrohttpd");
}

heddle_status http_server_start(const struct http_opts *o, struct http_server **out)
{
    (void)out;
    return http_check(o->why, o->why_bytes);
}

uint16_t http_server_port(const struct http_server *s)
{
    (void)s;
    return 0;
}

void http_server_drain(struct http_server *s)
{
    (void)s;
}

size_t http_server_pending(const struct http_server *s)
{
    (void)s;
    return 0;
}

size_t http_server_clients(const struct http_server *s)
{
    (void)s;
    return 0;
}

void http_server_stop(struct http_server *s)
{
    (void)s;
}

const char *http_method(const struct http_exchange *x)
{
    (void)x;
    return "";
}

const char *http_path(const struct http_exchange *x)
{
    (void)x;
    return "";
}

const char *http_header(const struct http_exchange *x, const char *name)
{
    (void)x;
    (void)name;
    return NULL;
}

const char *http_body(const struct http_exchange *x, size_t *bytes)
{
    (void)x;
    *bytes = 0;
    return "";
}

void http_reply(struct http_exchange *x, unsigned code, const char *type, char *body, size_t bytes,
                const struct http_field *field, size_t nfields)
{
    (void)x;
    (void)code;
    (void)type;
    (void)body;
    (void)bytes;
    (void)field;
    (void)nfields;
}

bool http_is_gone(const struct http_exchange *x)
{
    (void)x;
    return true;
}

struct http_stream *http_reply_stream(struct http_exchange *x, unsigned code, const char *type)
{
    (void)x;
    (void)code;
    (void)type;
    return NULL;
}

bool http_stream_write(struct http_stream *s, const char *data, size_t bytes)
{
    (void)s;
    (void)data;
    (void)bytes;
    return false;
}

bool http_stream_is_gone(struct http_stream *s)
{
    (void)s;
    return true;
}

void http_stream_end(struct http_stream *s)
{
    (void)s;
}
