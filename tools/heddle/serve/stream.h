/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_SERVE_STREAM_H
#define HEDDLE_TOOLS_SERVE_STREAM_H

/* Private to http: replies in pieces, and what of libmicrohttpd they need. */
#include <microhttpd.h>

#include "serve/http.h"

struct stream_calls {
    __typeof__(&MHD_create_response_from_callback) create_response_from_callback;
    __typeof__(&MHD_suspend_connection) suspend_connection;
    __typeof__(&MHD_resume_connection) resume_connection;
    /* By libmicrohttpd's thread: `bytes` begin their way to the client, who has all before them;
     * is_all: nothing waits behind them. 0: there is nothing to send. */
    void (*sends)(void *user, size_t bytes, bool is_all);
    void *user;
};

/* NULL: there is no memory. */
struct MHD_Response *stream_create(const struct stream_calls *calls, struct MHD_Connection *c,
                                   struct http_stream **out);

#endif /* HEDDLE_TOOLS_SERVE_STREAM_H */
