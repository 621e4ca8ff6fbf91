/* SPDX-License-Identifier: BSD-3-Clause */
/* load: what is due is sent and counted; a server that stalls is seen by all who would have asked
 * meanwhile. */
#include "bench/serve/load.h"

#include <arpa/inet.h>
#include <stdatomic.h>
#include <time.h>

#include "serve/http.h"
#include "tests/test.h"

struct peer {
    struct http_server *s;
    _Atomic unsigned nasked;
    unsigned stall_at, code;
};

/* The reply has the code; the request number stall_at waits for a fifth of a second, and all
 * others with it: there is one thread. */
static void handle(void *user, struct http_exchange *x)
{
    struct peer *p = user;
    const struct timespec t = {0, 200000000};

    if (++p->nasked == p->stall_at)
        (void)nanosleep(&t, NULL);
    http_reply(x, p->code, NULL, NULL, 0, NULL, 0);
}

static bool peer_start(struct peer *p, unsigned stall_at, unsigned code)
{
    char why[200] = "";
    const struct http_opts o = {.max_body = 1,
                                .max_connections = 256,
                                .handler = handle,
                                .user = p,
                                .why = why,
                                .why_bytes = sizeof(why)};
    heddle_status st;

    *p = (struct peer){.stall_at = stall_at, .code = code};
    st = http_server_start(&o, &p->s);
    if (st != HEDDLE_ENOSYS)
        CHECK_OK(st);
    return st == HEDDLE_OK;
}

static void load(struct peer *p, double rate, unsigned burst, struct load_result *r)
{
    static const char text[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    const struct load_opts o = {.to = {.sin_family = AF_INET,
                                       .sin_port = htons(http_server_port(p->s)),
                                       .sin_addr = {htonl(INADDR_LOOPBACK)}},
                                .request = text,
                                .bytes = sizeof(text) - 1,
                                .nconnections = 4,
                                .nthreads = 2,
                                .rate = rate,
                                .burst = burst,
                                .seconds = 0.6,
                                .seed = test_seed()};
    char why[200] = "";

    CHECK_OK(load_run(&o, r, why, sizeof(why)));
}

/* Values above a time. */
static uint64_t above(const struct hist *h, uint64_t ns)
{
    uint64_t n = 0;

    for (double share = 1; share > 0 && hist_at(h, share) > ns; share -= 1.0 / (double)h->n)
        n++;
    return n;
}

TEST(open_loop_sees_a_stall)
{
    static struct load_result r;
    struct peer p;

    if (!peer_start(&p, 100, 200))
        SKIP("no libmicrohttpd");
    load(&p, 500, 1, &r);
    CHECK_EQ(r.sent, r.planned);
    CHECK_EQ(r.good, r.planned);
    CHECK_EQ(r.latency.n, r.good);
    CHECK_EQ(r.bad + r.refused + r.broken + r.lost, 0);
    CHECK(r.planned > 200 && r.planned < 400); /* 300 are expected, with a deviation of 17 */
    /* 100 come in these 200 ms, the last of them just before the end. */
    CHECK(above(&r.latency, 50000000) > 40);
    CHECK(r.latency.max >= 190000000);
    CHECK(hist_at(&r.late, 0.9) > 10000000); /* they had no connection */
    http_server_stop(p.s);
}

TEST(bursts_and_closed_loop)
{
    static struct load_result r;
    struct peer p;

    if (!peer_start(&p, 0, 200))
        SKIP("no libmicrohttpd");
    load(&p, 400, 20, &r);
    CHECK_EQ(r.good, r.planned);
    CHECK_EQ(r.planned % 20, 0);
    load(&p, 0, 0, &r);
    CHECK_EQ(r.planned, 0);
    CHECK(r.good > 100);
    CHECK_EQ(r.good, r.sent);
    CHECK(r.seconds > 0.5 && load_rate(&r) > 0);
    http_server_stop(p.s);
}

TEST(replies_are_told_apart)
{
    static struct load_result r;
    struct peer p;

    if (!peer_start(&p, 0, 503))
        SKIP("no libmicrohttpd");
    load(&p, 200, 1, &r);
    CHECK_EQ(r.refused, r.planned);
    p.code = 404;
    load(&p, 200, 1, &r);
    CHECK_EQ(r.bad, r.planned);
    CHECK_EQ(r.good + r.latency.n, 0);
    http_server_stop(p.s);
}

TEST(nobody_listens)
{
    static struct load_result r;
    struct peer p;
    struct load_opts o = {.nconnections = 1, .nthreads = 1, .seconds = 0.1};
    char why[200] = "";

    if (!peer_start(&p, 0, 200))
        SKIP("no libmicrohttpd");
    o.to = (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons(http_server_port(p.s)),
                                .sin_addr = {htonl(INADDR_LOOPBACK)}};
    http_server_stop(p.s);
    CHECK_STATUS(load_run(&o, &r, why, sizeof(why)), HEDDLE_EIO);
    CHECK(strstr(why, "connection 1 cannot be made") != NULL);
}

TEST_MAIN(open_loop_sees_a_stall, bursts_and_closed_loop, replies_are_told_apart, nobody_listens)
