/* SPDX-License-Identifier: BSD-3-Clause */
/* http: replies at once and later, limits, damaged requests, clients that go away. */
#include "serve/http.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>

#include "tests/test.h"

enum { LATER = 64, MAX_BODY = 100000 };

/* Echoes the body: "/now" at once, others by a thread of its own. */
struct echo {
    struct http_server *s;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    struct http_exchange *later[LATER];
    size_t n;
    bool is_over, is_held; /* held: nothing is answered later for now */
};

static void answer(struct http_exchange *x)
{
    size_t bytes;
    const char *body = http_body(x, &bytes);
    char *copy = malloc(bytes + 1);
    const struct http_field f = {"X-Path", http_path(x)};

    CHECK(copy != NULL);
    memcpy(copy, body, bytes);
    http_reply(x, 200, "text/plain", copy, bytes, &f, 1);
}

static void handle(void *user, struct http_exchange *x)
{
    struct echo *e = user;

    if (strcmp(http_path(x), "/now") == 0) {
        answer(x);
        return;
    }
    pthread_mutex_lock(&e->lock);
    CHECK(e->n < LATER);
    e->later[e->n++] = x;
    pthread_cond_signal(&e->cond);
    pthread_mutex_unlock(&e->lock);
}

static void *answer_later(void *user)
{
    struct echo *e = user;

    pthread_mutex_lock(&e->lock);
    for (;;) {
        struct http_exchange *x;

        while ((e->n == 0 || e->is_held) && !e->is_over)
            pthread_cond_wait(&e->cond, &e->lock);
        if (e->n == 0)
            break;
        x = e->later[--e->n];
        pthread_mutex_unlock(&e->lock);
        answer(x);
        pthread_mutex_lock(&e->lock);
    }
    pthread_mutex_unlock(&e->lock);
    return NULL;
}

/* False: there is no libmicrohttpd. */
static bool echo_start_with(struct echo *e, unsigned idle_s, size_t max_held)
{
    char why[200] = "";
    const struct http_opts o = {.max_body = MAX_BODY,
                                .max_held = max_held,
                                .max_connections = 256,
                                .idle_s = idle_s,
                                .handler = handle,
                                .user = e,
                                .why = why,
                                .why_bytes = sizeof(why)};
    heddle_status st;

    *e = (struct echo){.n = 0};
    CHECK_EQ(pthread_mutex_init(&e->lock, NULL), 0);
    CHECK_EQ(pthread_cond_init(&e->cond, NULL), 0);
    st = http_server_start(&o, &e->s);
    if (st == HEDDLE_ENOSYS)
        return false;
    CHECK_OK(st);
    CHECK_EQ(pthread_create(&e->thread, NULL, answer_later, e), 0);
    return true;
}

static bool echo_start(struct echo *e)
{
    return echo_start_with(e, 30, 0);
}

static void set(struct echo *e, bool *flag, bool value)
{
    pthread_mutex_lock(&e->lock);
    *flag = value;
    pthread_cond_signal(&e->cond);
    pthread_mutex_unlock(&e->lock);
}

static void pause_ms(long ms)
{
    const struct timespec t = {ms / 1000, ms % 1000 * 1000000};

    (void)nanosleep(&t, NULL);
}

static void echo_stop(struct echo *e)
{
    set(e, &e->is_held, false);
    http_server_drain(e->s);
    while (http_server_pending(e->s) > 0)
        pause_ms(1);
    set(e, &e->is_over, true);
    CHECK_EQ(pthread_join(e->thread, NULL), 0);
    http_server_stop(e->s);
    pthread_cond_destroy(&e->cond);
    pthread_mutex_destroy(&e->lock);
}

/* room: bytes that the system keeps for it; 0: as many as it likes. */
static int client_with(const struct echo *e, int room)
{
    const struct sockaddr_in a = {.sin_family = AF_INET,
                                  .sin_port = htons(http_server_port(e->s)),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);

    CHECK(fd >= 0);
    if (room > 0)
        CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)), 0);
    CHECK_EQ(connect(fd, (const struct sockaddr *)&a, sizeof(a)), 0);
    return fd;
}

static int client(const struct echo *e)
{
    return client_with(e, 0);
}

static void send_text(int fd, const char *text, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t n = send(fd, text, bytes, MSG_NOSIGNAL);

        if (n <= 0)
            return; /* the server may close early */
        text += n;
        bytes -= (size_t)n;
    }
}

static void send_str(int fd, const char *text)
{
    send_text(fd, text, strlen(text));
}

/* The code of the next reply, whose body of at most cap - 1 bytes goes to `body`; 0: the
 * server closed the connection. */
static int receive(int fd, char *body, size_t cap)
{
    char head[2048];
    size_t n = 0, want, got = 0;
    const char *length;

    while (n < 4 || memcmp(head + n - 4, "\r\n\r\n", 4) != 0) {
        CHECK(n < sizeof(head) - 1);
        if (recv(fd, head + n, 1, 0) != 1)
            return 0;
        n++;
    }
    head[n] = '\0';
    length = strstr(head, "Content-Length: ");
    want = length != NULL ? strtoul(length + 16, NULL, 10) : 0;
    CHECK(want < cap);
    while (got < want) {
        const ssize_t r = recv(fd, body + got, want - got, 0);

        CHECK(r > 0);
        got += (size_t)r;
    }
    body[got] = '\0';
    return (int)strtol(head + 9, NULL, 10);
}

static int ask(int fd, const char *path, const char *text, char *reply, size_t cap)
{
    char head[256];
    const int n =
        snprintf(head, sizeof(head), "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n",
                 path, strlen(text));

    send_text(fd, head, (size_t)n);
    send_text(fd, text, strlen(text));
    return receive(fd, reply, cap);
}

TEST(replies_now_and_later)
{
    static char large[MAX_BODY + 1], reply[MAX_BODY + 1];
    struct echo e;
    int fd;

    if (!echo_start(&e))
        SKIP("no libmicrohttpd");
    fd = client(&e);
    for (int i = 0; i < 50; i++) { /* one connection, kept open */
        CHECK_EQ(ask(fd, i % 2 ? "/now" : "/later", "hello", reply, sizeof(reply)), 200);
        CHECK_STR(reply, "hello");
    }
    memset(large, 'x', MAX_BODY);
    CHECK_EQ(ask(fd, "/later", large, reply, sizeof(reply)), 200);
    CHECK_STR(reply, large);
    CHECK_EQ(ask(fd, "/now", "", reply, sizeof(reply)), 200);
    close(fd);
    echo_stop(&e);
}

TEST(limits_and_damage)
{
    static char reply[MAX_BODY + 1];
    static char chunk[MAX_BODY + 64];
    struct echo e;
    char long_header[20000];
    int fd, n;

    if (!echo_start(&e))
        SKIP("no libmicrohttpd");
    fd = client(&e); /* too large by its own word */
    n = snprintf(chunk, sizeof(chunk),
                 "POST /now HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
                 "Content-Length: %d\r\n\r\n",
                 MAX_BODY + 1);
    send_text(fd, chunk, (size_t)n);
    CHECK_EQ(receive(fd, reply, sizeof(reply)), 413);
    close(fd);

    fd = client(&e); /* much too large */
    send_str(fd, "POST /now HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n");
    CHECK_EQ(receive(fd, reply, sizeof(reply)), 413);
    close(fd);

    fd = client(&e); /* too large without a word */
    n = snprintf(chunk, sizeof(chunk),
                 "POST /now HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n",
                 MAX_BODY + 1);
    memset(chunk + n, 'y', sizeof(chunk) - (size_t)n);
    send_text(fd, chunk, sizeof(chunk));
    memset(chunk, 'y', sizeof(chunk));
    send_text(fd, chunk, MAX_BODY + 1 - (sizeof(chunk) - (size_t)n));
    send_str(fd, "\r\n0\r\n\r\n");
    CHECK_EQ(receive(fd, reply, sizeof(reply)), 413);
    close(fd);

    fd = client(&e); /* a header that does not fit */
    memset(long_header, 'h', sizeof(long_header));
    send_str(fd, "GET /now HTTP/1.1\r\nX: ");
    send_text(fd, long_header, sizeof(long_header));
    send_str(fd, "\r\n\r\n");
    n = receive(fd, reply, sizeof(reply));
    CHECK(n == 0 || (n >= 400 && n < 500));
    close(fd);

    fd = client(&e); /* no HTTP */
    send_str(fd, "\x16\x03\x01\x02 garbage\r\n\r\n");
    n = receive(fd, reply, sizeof(reply));
    CHECK(n == 0 || n >= 400);
    close(fd);

    fd = client(&e); /* the server still serves */
    CHECK_EQ(ask(fd, "/later", "ok", reply, sizeof(reply)), 200);
    close(fd);
    echo_stop(&e);
}

/* Connections that say nothing or half of a header do not keep others out. */
TEST(idle_and_slow_clients)
{
    enum { NSLOW = 100 };
    char reply[64];
    struct echo e;
    int slow[NSLOW], fd;

    if (!echo_start(&e))
        SKIP("no libmicrohttpd");
    for (int i = 0; i < NSLOW; i++) {
        slow[i] = client(&e);
        if (i % 2)
            send_str(slow[i], "POST /now HTTP/1.1\r\nContent-Le");
    }
    fd = client(&e);
    CHECK_EQ(ask(fd, "/now", "hello", reply, sizeof(reply)), 200);
    close(fd);
    for (int i = 0; i < NSLOW; i++)
        close(slow[i]);
    echo_stop(&e);
}

/* Sends a byte of `text`, over and over, for ms at most. True: the server has closed. */
static bool trickle(int fd, const char *text, long ms)
{
    char byte;

    for (size_t i = 0; ms > 0; i++, ms -= 50) {
        if (send(fd, &text[i % strlen(text)], 1, MSG_NOSIGNAL) != 1)
            return true;
        if (recv(fd, &byte, 1, MSG_DONTWAIT) == 0)
            return true;
        pause_ms(50);
    }
    return false;
}

/* Bytes that trickle in keep a connection no longer than the limit, in the head and in the body;
 * one that asks now and then stays. */
TEST(slow_clients_are_closed)
{
    char reply[64];
    struct echo e;
    int fd;

    if (!echo_start_with(&e, 1, 0))
        SKIP("no libmicrohttpd");
    fd = client(&e);
    send_str(fd, "POST /now HTTP/1.1\r\nX: ");
    CHECK(trickle(fd, "slow", 8000));
    close(fd);
    fd = client(&e);
    send_str(fd, "POST /now HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n");
    CHECK(trickle(fd, "slow", 8000));
    close(fd);
    fd = client(&e);
    for (int i = 0; i < 4; i++) { /* longer than the limit in all */
        CHECK_EQ(ask(fd, "/now", "ok", reply, sizeof(reply)), 200);
        pause_ms(500);
    }
    close(fd);
    echo_stop(&e);
}

/* A model that takes its time is no slow client. */
TEST(late_replies_are_sent)
{
    char reply[64];
    struct echo e;
    int fd;

    if (!echo_start_with(&e, 1, 0))
        SKIP("no libmicrohttpd");
    set(&e, &e.is_held, true);
    fd = client(&e);
    send_str(fd, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
    pause_ms(2500);
    set(&e, &e.is_held, false);
    CHECK_EQ(receive(fd, reply, sizeof(reply)), 200);
    close(fd);
    echo_stop(&e);
}

/* Bodies that would not fit into memory together are refused, until others have gone. */
TEST(bodies_have_a_limit_together)
{
    static char large[MAX_BODY + 1], reply[MAX_BODY + 1];
    struct echo e;
    int held, fd;

    if (!echo_start_with(&e, 30, 3 * MAX_BODY / 2))
        SKIP("no libmicrohttpd");
    memset(large, 'x', MAX_BODY);
    set(&e, &e.is_held, true);
    held = client(&e);
    send_str(held, "POST /later HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
    send_text(held, large, MAX_BODY);
    while (http_server_pending(e.s) == 0)
        pause_ms(1);
    fd = client(&e);
    CHECK_EQ(ask(fd, "/now", large, reply, sizeof(reply)), 503);
    CHECK(strstr(reply, "no memory") != NULL);
    CHECK_EQ(ask(fd, "/now", "small", reply, sizeof(reply)), 200);
    set(&e, &e.is_held, false);
    CHECK_EQ(receive(held, reply, sizeof(reply)), 200);
    CHECK_EQ(ask(fd, "/now", large, reply, sizeof(reply)), 200);
    close(fd);
    close(held);
    echo_stop(&e);
}

/* A client that asks again and again does not keep the server from its end. */
TEST(drain_closes_busy_connections)
{
    char reply[64];
    struct echo e;
    int fd;

    if (!echo_start(&e))
        SKIP("no libmicrohttpd");
    fd = client(&e);
    CHECK_EQ(ask(fd, "/later", "1", reply, sizeof(reply)), 200);
    http_server_drain(e.s);
    CHECK_EQ(ask(fd, "/later", "2", reply, sizeof(reply)), 200);
    CHECK_EQ(ask(fd, "/later", "3", reply, sizeof(reply)), 0);
    close(fd);
    echo_stop(&e);
}

TEST(client_leaves_before_the_reply)
{
    static const char text[] = "GET /later HTTP/1.1\r\nHost: x\r\n\r\n";
    struct echo e;

    if (!echo_start(&e))
        SKIP("no libmicrohttpd");
    set(&e, &e.is_held, true);
    for (int i = 0; i < 20; i++) {
        const int fd = client(&e);

        send_text(fd, text, sizeof(text) - 1);
        while (http_server_pending(e.s) <= (size_t)i)
            pause_ms(1);
        close(fd);
    }
    echo_stop(&e);
}

/* --- replies in pieces --------------------------------------------------------------- */

enum { PIECE = 1024, PIECES = 3072 };

enum { ROOM = 16384 };

/* The system keeps few bytes for the server, whose side of the connection is in this process as
 * well. */
static void make_narrow(int fd)
{
    struct sockaddr_in mine, other;
    const int room = ROOM;
    bool is_found = false;

    CHECK_EQ(getsockname(fd, (struct sockaddr *)&mine, &(socklen_t){sizeof(mine)}), 0);
    for (int i = 3; i < 1024 && !is_found; i++) {
        is_found = getpeername(i, (struct sockaddr *)&other, &(socklen_t){sizeof(other)}) == 0 &&
                   other.sin_family == AF_INET && other.sin_port == mine.sin_port;
        if (is_found)
            CHECK_EQ(setsockopt(i, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
    }
    CHECK(is_found);
}

/* Starts to ask for a reply; the exchange. */
static struct http_exchange *ask_stream(struct echo *e, int room, int *fd)
{
    struct http_exchange *x = NULL;

    set(e, &e->is_held, true);
    *fd = client_with(e, room);
    send_str(*fd, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
    while (x == NULL) {
        pthread_mutex_lock(&e->lock);
        if (e->n > 0)
            x = e->later[--e->n];
        pthread_mutex_unlock(&e->lock);
        pause_ms(1);
    }
    return x;
}

/* All bytes until the server closes, or `end` has come; how many. */
static size_t read_all(int fd, char *to, size_t cap, const char *end)
{
    size_t n = 0;

    for (;;) {
        const ssize_t got = recv(fd, to + n, cap - n, 0);

        if (got <= 0)
            return n;
        n += (size_t)got;
        CHECK(n < cap);
        if (n >= strlen(end) && memcmp(to + n - strlen(end), end, strlen(end)) == 0)
            return n;
    }
}

/* Pieces of all sizes arrive, with pauses and without, and the connection can be used again. */
TEST(streams)
{
    static char all[1 << 20], text[PIECE];
    struct http_stream *stream;
    size_t bytes = 0, got;
    char reply[64];
    struct echo e;
    int fd;

    if (!echo_start(&e))
        SKIP("no libmicrohttpd");
    memset(text, 'p', sizeof(text));
    stream = http_reply_stream(ask_stream(&e, 0, &fd), 200, "text/plain");
    CHECK(stream != NULL);
    for (size_t i = 0; i < 200; i++) {
        CHECK(http_stream_write(stream, text, i % 7 == 0 ? PIECE : i % 7));
        bytes += i % 7 == 0 ? PIECE : i % 7;
        if (i % 20 == 0)
            pause_ms(2);
    }
    CHECK(!http_stream_is_gone(stream));
    http_stream_end(stream);
    got = read_all(fd, all, sizeof(all), "\r\n0\r\n\r\n");
    for (size_t i = 0; i < got; i++)
        bytes -= all[i] == 'p' && i > 200; /* behind the head */
    CHECK(bytes <= 200);                   /* but for what lies beside the head */
    set(&e, &e.is_held, false);
    CHECK_EQ(ask(fd, "/now", "again", reply, sizeof(reply)), 200);
    close(fd);
    echo_stop(&e);
}

/* A client that reads nothing: pieces pile up to a limit, and what it has is no whole reply. */
TEST(streams_pile_up_to_a_limit)
{
    static char all[8 << 20], text[PIECE];
    struct http_stream *stream;
    struct http_exchange *x;
    struct echo e;
    size_t n = 0;
    int fd;

    if (!echo_start(&e))
        SKIP("no libmicrohttpd");
    memset(text, 'p', sizeof(text));
    x = ask_stream(&e, ROOM, &fd);
    make_narrow(fd);
    stream = http_reply_stream(x, 200, "text/plain");
    CHECK(stream != NULL);
    while (n < sizeof(all) && http_stream_write(stream, text, sizeof(text)))
        n += sizeof(text);
    CHECK(n < sizeof(all));
    CHECK(http_stream_is_gone(stream));
    CHECK(!http_stream_write(stream, "x", 1));
    http_stream_end(stream);
    n = read_all(fd, all, sizeof(all), "\r\n0\r\n\r\n");
    CHECK(n < 8 || memcmp(all + n - 7, "\r\n0\r\n\r\n", 7) != 0);
    close(fd);
    echo_stop(&e);
}

/* A client that reads now and then holds neither its connection nor the end of the server. */
TEST(slow_readers_of_streams_are_closed)
{
    static char text[PIECE];
    struct http_stream *stream;
    struct http_exchange *x;
    struct echo e;
    long ms = 0;
    int fd;

    if (!echo_start_with(&e, 3, 0))
        SKIP("no libmicrohttpd");
    memset(text, 'p', sizeof(text));
    x = ask_stream(&e, ROOM, &fd);
    make_narrow(fd);
    stream = http_reply_stream(x, 200, "text/plain");
    CHECK(stream != NULL);
    for (int i = 0; i < PIECES; i++)
        CHECK(http_stream_write(stream, text, sizeof(text)));
    http_stream_end(stream);
    for (; http_server_pending(e.s) > 0 && ms < 20000; ms += 100) {
        (void)!recv(fd, text, PIECE, MSG_DONTWAIT);
        pause_ms(100);
    }
    CHECK(ms < 20000);
    close(fd);
    echo_stop(&e);
}

/* A stream that says little for long is no slow reader's. */
TEST(quiet_streams_stay)
{
    static char all[1 << 16];
    struct http_stream *stream;
    struct echo e;
    int fd;

    if (!echo_start_with(&e, 1, 0))
        SKIP("no libmicrohttpd");
    stream = http_reply_stream(ask_stream(&e, 0, &fd), 200, "text/plain");
    CHECK(stream != NULL);
    for (int i = 0; i < 4; i++) {
        CHECK(http_stream_write(stream, "word", 4));
        pause_ms(i == 1 ? 2500 : 600);
    }
    http_stream_end(stream);
    CHECK(read_all(fd, all, sizeof(all), "\r\n0\r\n\r\n") > 16);
    close(fd);
    echo_stop(&e);
}

/* --- the end ------------------------------------------------------------------------- */

static void *answer_one(void *user)
{
    struct http_exchange *x = user;

    http_reply(x, 200, NULL, NULL, 0, NULL, 0);
    return NULL;
}

/* The server may end as soon as nothing is pending: the one who replied may not have returned. */
TEST(stop_right_behind_a_reply)
{
    for (int i = 0; i < 200; i++) {
        struct http_exchange *x;
        pthread_t thread;
        struct echo e;
        int fd;

        if (!echo_start(&e))
            SKIP("no libmicrohttpd");
        x = ask_stream(&e, 0, &fd);
        CHECK_EQ(pthread_create(&thread, NULL, answer_one, x), 0);
        while (http_server_pending(e.s) > 0)
            http_server_drain(e.s); /* wakes it up */
        set(&e, &e.is_over, true);
        CHECK_EQ(pthread_join(e.thread, NULL), 0);
        http_server_stop(e.s);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        pthread_cond_destroy(&e.cond);
        pthread_mutex_destroy(&e.lock);
        close(fd);
    }
}

TEST(addresses_that_cannot_be_had)
{
    char why[200] = "";
    struct http_opts o = {.max_body = 1,
                          .max_connections = 8,
                          .handler = handle,
                          .why = why,
                          .why_bytes = sizeof(why)};
    struct http_server *s = NULL, *second = NULL;
    const heddle_status st = http_server_start(&o, &s);

    if (st == HEDDLE_ENOSYS)
        SKIP("no libmicrohttpd");
    CHECK_OK(st);
    o.port = http_server_port(s);
    CHECK_STATUS(http_server_start(&o, &second), HEDDLE_EIO);
    CHECK(strstr(why, "cannot listen on 127.0.0.1") != NULL);
    o.address = "no address";
    CHECK_STATUS(http_server_start(&o, &second), HEDDLE_EIO);
    CHECK_STR(why, "'no address' is not an address");
    http_server_stop(s);
    http_server_stop(NULL);
}

TEST_MAIN(replies_now_and_later, limits_and_damage, idle_and_slow_clients, slow_clients_are_closed,
          late_replies_are_sent, bodies_have_a_limit_together, drain_closes_busy_connections,
          client_leaves_before_the_reply, streams, streams_pile_up_to_a_limit,
          slow_readers_of_streams_are_closed, quiet_streams_stay, stop_right_behind_a_reply,
          addresses_that_cannot_be_had)
