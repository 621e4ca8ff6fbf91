/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/serve/empty: the least that a server with libmicrohttpd can do: the body of a request is
 * passed over, and the reply, made once, has none. One thread with epoll, as in serve/http.c.
 */
#include <arpa/inet.h>
#include <signal.h>

#include "bench/serve/serve.h"
#include "serve/mhd.h"

struct empty {
    struct mhd mhd;
    struct MHD_Response *reply;
};

static enum MHD_Result on_request(void *user, struct MHD_Connection *c, const char *url,
                                  const char *method, const char *version, const char *piece,
                                  size_t *bytes, void **slot)
{
    struct empty *e = user;

    (void)url;
    (void)method;
    (void)version;
    (void)piece;
    if (*slot == NULL) { /* the head of a request */
        *slot = e;
        return MHD_YES;
    }
    if (*bytes > 0) {
        *bytes = 0;
        return MHD_YES;
    }
    return e->mhd.queue_response(c, MHD_HTTP_OK, e->reply);
}

static int serve_until_signal(struct serve_bench *b, struct empty *e)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const union MHD_DaemonInfo *info;
    struct MHD_Daemon *daemon;
    sigset_t signals;
    int number;

    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
    daemon = e->mhd.start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, on_request, e,
                                 MHD_OPTION_SOCK_ADDR, &at, MHD_OPTION_CONNECTION_LIMIT, 16384u,
                                 MHD_OPTION_END);
    if (daemon == NULL)
        return cli_fail(b->c, "the empty server does not start");
    info = e->mhd.get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);
    fprintf(b->c->out, "{\"port\":%u}\n", info != NULL ? info->port : 0u);
    fflush(b->c->out);
    (void)sigwait(&signals, &number);
    e->mhd.stop_daemon(daemon);
    return 0;
}

int bench_serve_empty(struct serve_bench *b)
{
    struct empty e = {.reply = NULL};
    char why[200];
    int rc;

    if (mhd_load(&e.mhd, why, sizeof(why)) != HEDDLE_OK) {
        mhd_unload(&e.mhd);
        return cli_fail(b->c, "%s", why);
    }
    e.reply = e.mhd.create_response_from_buffer(0, (char[]){""}, MHD_RESPMEM_PERSISTENT);
    rc = e.reply != NULL ? serve_until_signal(b, &e) : cli_fail(b->c, "out of memory");
    if (e.reply != NULL)
        e.mhd.destroy_response(e.reply);
    mhd_unload(&e.mhd);
    return rc;
}
