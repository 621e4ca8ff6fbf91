/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * http: libmicrohttpd, loaded when it is needed, behind a small face.
 *
 * Life       libmicrohttpd calls on_request() when the header of a request is there, for
 *            each piece of the body, and once more at its end. Then the handler is called.
 *            When it has not replied by its return, the connection sleeps; the reply puts
 *            it on a list, and wakes up the server's thread when it is the first there. That
 *            thread wakes up the connections of the list, and on_request() is called again to
 *            send. on_end() frees the exchange.
 * Invariant  an exchange is freed after its reply: a connection that sleeps does not end,
 *            whatever its client does.
 * Threads    the server's own thread runs libmicrohttpd, round by round (see run()), and owns
 *            the connections. `lock` of an exchange guards its state between that thread and the
 *            one that replies. The counts, the flags and the list are atomic.
 * Addresses  the socket is made by listen.c, so that a port in use gets a sentence.
 */
#include "serve/http.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/thread.h"
#include "base/why.h"
#include "serve/listen.h"
#include "serve/mhd.h"
#include "serve/stream.h"

/* For the header and the small pieces of a body, per connection. */
enum { CONNECTION_BYTES = 16384 };
/* The first memory for a body, when the client says that it has as much. */
enum { FIRST_BYTES = 4096 };
/* A body of up to so many times the largest one is read, and dropped. */
enum { DROPPED = 16 };
/* The bytes of a reply that goes on as long as there is something to say. */
#define ENDLESS SIZE_MAX
/* The longest round without requests; between two looks at slow clients. */
enum { TICK_MS = 100, SWEEP_MS = 250 };
/* Connections whose memory is worth giving back. */
enum { MANY = 256 };

/* A connection, of the server's thread. */
struct client {
    struct client *next, *previous;
    const struct http_server *s;
    int fd;
    uint64_t until_ns; /* what is on its way must be over; 0: nothing is */
};

struct http_server {
    struct mhd mhd;
    struct MHD_Daemon *daemon;
    int socket; /* -1: it does not listen any more */
    uint16_t port;
    size_t max_body, max_held;
    size_t held;      /* bytes of the bodies that are there */
    uint64_t idle_ns; /* 0: no limit */
    void (*handler)(void *user, struct http_exchange *x);
    void (*after)(void *user);
    void *user;
    size_t most_clients;                     /* since memory was given back */
    struct client clients;                   /* a ring; this one is no client */
    _Atomic(struct http_exchange *) replied; /* connections to wake up */
    int wake;                                /* an eventfd; -1: none */
    int epoll;                               /* libmicrohttpd's */
    struct heddle_thread thread;
    bool has_thread;
    _Atomic bool is_draining, is_over;
    _Atomic size_t npending, nclients;
    _Atomic size_t nwaking; /* threads in put_replied() */
};

enum state { READING, ASKED, SLEEPING, REPLIED };

struct http_exchange {
    struct http_server *s;
    struct MHD_Connection *connection;
    struct http_exchange *next; /* in the list of the replied */
    struct client *client;      /* NULL: there was no memory for it */
    const char *method;
    char *path;
    char *body; /* with a zero behind */
    size_t bytes, cap;
    bool is_too_large, has_no_memory;
    bool is_counted;      /* in npending, until the reply is sent */
    pthread_mutex_t lock; /* state, reply, code */
    enum state state;
    struct MHD_Response *reply; /* NULL: there was no memory for it */
    size_t reply_bytes;
    unsigned code;
};

/* --- slow clients --------------------------------------------------------------- */

/* What begins now may take idle_s, and more for so many bytes. */
static void set_limit(const struct http_server *s, struct client *c, uint64_t bytes)
{
    if (c != NULL && s->idle_ns > 0)
        c->until_ns = heddle_clock_ns() + s->idle_ns + bytes / HTTP_LEAST_RATE * HEDDLE_NS_PER_S;
}

/* Of a reply in pieces: a client that has all but what is sent now has idle_s for that. One that is
 * behind may stay behind while it takes HTTP_LEAST_RATE, and no longer than idle_s else. */
static void on_piece(void *user, size_t bytes, bool is_all)
{
    struct client *c = user;
    uint64_t until_ns;

    if (c == NULL)
        return;
    until_ns = c->until_ns;
    if (bytes == 0)
        c->until_ns = 0;
    else
        set_limit(c->s, c, 0);
    if (bytes > 0 && !is_all && until_ns > 0) {
        until_ns += bytes * HEDDLE_NS_PER_S / HTTP_LEAST_RATE;
        c->until_ns = until_ns < c->until_ns ? until_ns : c->until_ns;
    }
}

static void on_connection(void *user, struct MHD_Connection *c, void **slot,
                          enum MHD_ConnectionNotificationCode what)
{
    struct http_server *s = user;
    struct client *client = *slot;

    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (client != NULL) {
            heddle_sub_acqrel(&s->nclients, 1); /* with http_server_clients() */
            client->next->previous = client->previous;
            client->previous->next = client->next;
        }
        free(client);
        return;
    }
    client = calloc(1, sizeof(*client));
    *slot = client;
    if (client == NULL)
        return;
    client->s = s;
    client->fd = s->mhd.get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    client->next = &s->clients;
    client->previous = s->clients.previous;
    client->previous->next = s->clients.previous = client;
    heddle_add_rlx(&s->nclients, 1); /* relaxed: the same thread takes it back */
    set_limit(s, client, 0);
}

/* The memory of many connections that have gone lies between that of others, where the C library
 * keeps it. */
static void give_back_memory(struct http_server *s)
{
    const size_t n = heddle_load_rlx(&s->nclients); /* this thread counts them */

    if (n > s->most_clients)
        s->most_clients = n;
    if (s->most_clients < MANY || n > s->most_clients / 4)
        return;
    s->most_clients = n;
    (void)malloc_trim(0);
}

/* libmicrohttpd closes what has ended. */
static void end_slow_clients(struct http_server *s)
{
    const uint64_t now = heddle_clock_ns();

    for (struct client *c = s->clients.next; c != &s->clients; c = c->next) {
        if (c->until_ns == 0 || c->until_ns > now)
            continue;
        (void)shutdown(c->fd, SHUT_RDWR);
        c->until_ns = 0;
    }
}

/* --- what the handler sees ----------------------------------------------------- */

const char *http_method(const struct http_exchange *x)
{
    return x->method;
}

const char *http_path(const struct http_exchange *x)
{
    return x->path;
}

const char *http_header(const struct http_exchange *x, const char *name)
{
    return x->s->mhd.lookup_connection_value(x->connection, MHD_HEADER_KIND, name);
}

const char *http_body(const struct http_exchange *x, size_t *bytes)
{
    *bytes = x->bytes;
    return x->body != NULL ? x->body : "";
}

/* --- replies ---------------------------------------------------------------------- */

/* What all replies have. */
static void add_fields(struct http_server *s, struct MHD_Response *r, const char *type)
{
    if (type != NULL)
        (void)s->mhd.add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    /* A client that goes on asking would keep the server from its end. */
    if (heddle_load_rlx(&s->is_draining))
        (void)s->mhd.add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
}

static struct MHD_Response *make_reply(struct http_server *s, const char *type, char *body,
                                       size_t bytes, const struct http_field *field, size_t nfields)
{
    struct MHD_Response *r = s->mhd.create_response_from_buffer(bytes, body, MHD_RESPMEM_MUST_FREE);

    if (r == NULL) {
        free(body);
        return NULL;
    }
    add_fields(s, r, type);
    for (size_t i = 0; i < nfields; i++)
        (void)s->mhd.add_response_header(r, field[i].name, field[i].value);
    return r;
}

static void wake_up(const struct http_server *s)
{
    const uint64_t one = 1;
    ssize_t n;

    do
        n = write(s->wake, &one, sizeof(one));
    while (n < 0 && errno == EINTR); /* EAGAIN: it is awake for long */
}

/* Replies that follow before the server's thread has looked need no call of the system. */
static void put_replied(struct http_server *s, struct http_exchange *x)
{
    struct http_exchange *first = heddle_load_rlx(&s->replied);

    heddle_add_rlx(&s->nwaking, 1); /* relaxed: the exchange goes to the list behind it */
    do
        x->next = first;
    while (!heddle_cas_weak_acqrel(&s->replied, &first, x)); /* with wake_replied() */
    if (first == NULL)
        wake_up(s);
    heddle_sub_acqrel(&s->nwaking, 1); /* with http_server_stop() */
}

/* In the order in which they came. */
static void wake_replied(struct http_server *s)
{
    struct http_exchange *x = heddle_xchg_acqrel(&s->replied, NULL), *in_order = NULL;

    while (x != NULL) {
        struct http_exchange *next = x->next;

        x->next = in_order;
        in_order = x;
        x = next;
    }
    while (in_order != NULL) {
        struct http_exchange *next = in_order->next;

        s->mhd.resume_connection(in_order->connection);
        in_order = next;
    }
}

/* The exchange has its reply, of so many bytes, and may be gone at the return. */
static void give_reply(struct http_exchange *x, unsigned code, struct MHD_Response *r, size_t bytes)
{
    struct http_server *s = x->s;
    bool sleeps;

    pthread_mutex_lock(&x->lock);
    x->reply = r;
    x->reply_bytes = bytes;
    x->code = code;
    sleeps = x->state == SLEEPING;
    x->state = REPLIED;
    pthread_mutex_unlock(&x->lock);
    if (sleeps)
        put_replied(s, x);
}

void http_reply(struct http_exchange *x, unsigned code, const char *type, char *body, size_t bytes,
                const struct http_field *field, size_t nfields)
{
    give_reply(x, code, make_reply(x->s, type, body, bytes, field, nfields), bytes);
}

struct http_stream *http_reply_stream(struct http_exchange *x, unsigned code, const char *type)
{
    const struct stream_calls calls = {x->s->mhd.create_response_from_callback,
                                       x->s->mhd.suspend_connection, x->s->mhd.resume_connection,
                                       on_piece, x->client};
    struct http_stream *stream = NULL;
    struct MHD_Response *r = stream_create(&calls, x->connection, &stream);

    if (r != NULL)
        add_fields(x->s, r, type);
    give_reply(x, code, r, ENDLESS);
    return stream;
}

/* The connection sleeps, so its file stays open. A client that has closed its side only counts as
 * gone. */
bool http_is_gone(const struct http_exchange *x)
{
    char c;
    const ssize_t n = x->client != NULL ? recv(x->client->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) : 1;

    return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

static enum MHD_Result send_reply(struct http_exchange *x)
{
    struct http_server *s = x->s;
    enum MHD_Result sent;

    if (x->reply == NULL)
        return MHD_NO; /* closes the connection */
    if (x->reply_bytes != ENDLESS)
        set_limit(s, x->client, x->reply_bytes);
    sent = s->mhd.queue_response(x->connection, x->code, x->reply);
    s->mhd.destroy_response(x->reply); /* our reference */
    x->reply = NULL;
    return sent;
}

/* A reply without the handler. */
static enum MHD_Result refuse(struct http_exchange *x, unsigned code, const char *error)
{
    char text[128];
    struct heddle_text t;
    char *body;

    heddle_text_init(&t, text, sizeof(text));
    heddle_text_add(&t, "{\"error\":\"%s\"}", error);
    body = strdup(text);
    if (body == NULL)
        return MHD_NO;
    x->reply = make_reply(x->s, "application/json", body, t.len, NULL, 0);
    x->code = code;
    return send_reply(x);
}

/* --- requests --------------------------------------------------------------------- */

/* What the client says the length is; 0: nothing. */
static uint64_t said_length(const struct http_exchange *x)
{
    const char *text = http_header(x, MHD_HTTP_HEADER_CONTENT_LENGTH);
    uint64_t n;

    return text != NULL && heddle_parse_u64(text, &n) == HEDDLE_OK ? n : 0;
}

/* How long the body may become. */
static uint64_t coming_bytes(const struct http_exchange *x)
{
    const uint64_t said = said_length(x);

    if (http_header(x, MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL || said > x->s->max_body)
        return x->s->max_body;
    return said;
}

static enum MHD_Result begin(struct http_server *s, struct MHD_Connection *c, const char *method,
                             const char *url, void **slot)
{
    struct http_exchange *x = calloc(1, sizeof(*x));
    const union MHD_ConnectionInfo *info;

    if (x == NULL)
        return MHD_NO;
    *x = (struct http_exchange){.s = s, .connection = c, .method = method, .path = strdup(url)};
    if (x->path == NULL || pthread_mutex_init(&x->lock, NULL) != 0) {
        free(x->path);
        free(x);
        return MHD_NO;
    }
    *slot = x;
    info = s->mhd.get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    x->client = info != NULL ? info->socket_context : NULL;
    set_limit(s, x->client, coming_bytes(x));
    /* A client that asks first is told now. Others hear it when they have sent all: most do not
     * listen before. Of a body that is much too large nothing is read. */
    x->is_too_large = said_length(x) > s->max_body;
    if (x->is_too_large &&
        (http_header(x, MHD_HTTP_HEADER_EXPECT) != NULL || said_length(x) / DROPPED > s->max_body))
        return refuse(x, 413, "the body is too large");
    return MHD_YES;
}

static bool grow(struct http_exchange *x, size_t need)
{
    struct http_server *s = x->s;
    size_t cap = x->cap > 0 ? 2 * x->cap : FIRST_BYTES;
    char *p;

    if (need <= x->cap)
        return true;
    if (cap < need)
        cap = need;
    if (s->max_held > 0 && s->held + (cap - x->cap) > s->max_held)
        return false;
    p = realloc(x->body, cap);
    if (p == NULL)
        return false;
    s->held += cap - x->cap;
    x->body = p;
    x->cap = cap;
    return true;
}

/* A piece of the body. What is too much is read and dropped, so that the client hears why. */
static void add_piece(struct http_exchange *x, const char *piece, size_t bytes)
{
    if (x->is_too_large || x->has_no_memory)
        return;
    if (bytes > x->s->max_body - x->bytes) {
        x->is_too_large = true;
        return;
    }
    if (!grow(x, x->bytes + bytes + 1)) {
        x->has_no_memory = true;
        return;
    }
    memcpy(x->body + x->bytes, piece, bytes);
    x->bytes += bytes;
    x->body[x->bytes] = '\0';
}

static enum MHD_Result ask(struct http_exchange *x)
{
    struct http_server *s = x->s;
    bool is_replied;

    if (x->is_too_large)
        return refuse(x, 413, "the body is too large");
    if (x->has_no_memory)
        return refuse(x, 503, "there is no memory for the body");
    if (x->client != NULL)
        x->client->until_ns = 0;     /* the reply is ours to come */
    heddle_add_rlx(&s->npending, 1); /* relaxed: the same thread takes it back */
    x->is_counted = true;
    x->state = ASKED;
    s->handler(s->user, x);
    pthread_mutex_lock(&x->lock);
    is_replied = x->state == REPLIED;
    if (!is_replied) {
        x->state = SLEEPING;
        s->mhd.suspend_connection(x->connection);
    }
    pthread_mutex_unlock(&x->lock);
    return is_replied ? send_reply(x) : MHD_YES;
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *c, const char *url,
                                  const char *method, const char *version, const char *piece,
                                  size_t *bytes, void **slot)
{
    struct http_exchange *x = *slot;
    enum state state;

    (void)version;
    if (x == NULL)
        return begin(user, c, method, url, slot);
    if (*bytes > 0) {
        add_piece(x, piece, *bytes);
        *bytes = 0;
        return MHD_YES;
    }
    pthread_mutex_lock(&x->lock);
    state = x->state;
    pthread_mutex_unlock(&x->lock);
    return state == READING ? ask(x) : send_reply(x);
}

static void on_end(void *user, struct MHD_Connection *c, void **slot,
                   enum MHD_RequestTerminationCode how)
{
    struct http_exchange *x = *slot;

    (void)user;
    (void)c;
    (void)how;
    if (x == NULL)
        return;
    set_limit(x->s, x->client, 0); /* for the next one */
    if (x->is_counted)
        heddle_sub_acqrel(&x->s->npending, 1); /* with http_server_pending() */
    if (x->reply != NULL)
        x->s->mhd.destroy_response(x->reply);
    pthread_mutex_destroy(&x->lock);
    x->s->held -= x->cap;
    free(x->body);
    free(x->path);
    free(x);
}

/* libmicrohttpd would write to the standard error. */
static void be_silent(void *user, const char *format, va_list ap)
{
    (void)user;
    (void)format;
    (void)ap;
}

/* --- start and stop ----------------------------------------------------------------- */

/* Until there is something to do. */
static void wait_events(const struct http_server *s)
{
    struct pollfd p[] = {{.fd = s->epoll, .events = POLLIN}, {.fd = s->wake, .events = POLLIN}};
    MHD_UNSIGNED_LONG_LONG left = TICK_MS;
    uint64_t count;

    if (s->mhd.get_timeout(s->daemon, &left) != MHD_YES || left > TICK_MS)
        left = TICK_MS;
    if (poll(p, 2, (int)left) > 0 && p[1].revents != 0)
        (void)!read(s->wake, &count, sizeof(count));
}

static void stop_listening(struct http_server *s)
{
    const int fd = s->mhd.quiesce_daemon(s->daemon);

    if (fd >= 0)
        (void)close(fd);
    s->socket = -1;
}

/*
 * Rounds: what has come is read and handled, what is answered is sent. It is libmicrohttpd's own
 * loop, but that it is known when a round is over, and that many replies are woken up by one call
 * of the system.
 */
static void *run(void *user)
{
    struct http_server *s = user;
    uint64_t sweep_ns = 0;

    while (!heddle_load_acq(&s->is_over)) { /* with http_server_stop() */
        const uint64_t now = heddle_clock_ns();

        wait_events(s);
        if (heddle_load_acq(&s->is_draining) && s->socket >= 0) /* with http_server_drain() */
            stop_listening(s);
        wake_replied(s);
        (void)s->mhd.run(s->daemon);
        if (s->after != NULL)
            s->after(s->user);
        if (now >= sweep_ns) {
            end_slow_clients(s);
            give_back_memory(s);
            sweep_ns = now + (uint64_t)SWEEP_MS * 1000000;
        }
    }
    return NULL;
}

static heddle_status start_daemon(struct http_server *s, const struct http_opts *o)
{
    const unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;

    const struct heddle_thread_opts t = {.name = "heddle-http"};
    const union MHD_DaemonInfo *info;

    s->daemon = s->mhd.start_daemon(
        flags, 0, NULL, NULL, on_request, s, MHD_OPTION_EXTERNAL_LOGGER, be_silent, NULL,
        MHD_OPTION_LISTEN_SOCKET, s->socket, MHD_OPTION_NOTIFY_COMPLETED, on_end, NULL,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_CONNECTION_LIMIT,
        listen_connections(o->max_connections), MHD_OPTION_CONNECTION_TIMEOUT, o->idle_s,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_END);
    s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    info = s->daemon != NULL ? s->mhd.get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    s->epoll = info != NULL ? info->epoll_fd : -1;
    if (s->epoll < 0 || s->wake < 0 || heddle_thread_create(&s->thread, &t, run, s) != HEDDLE_OK)
        return heddle_why(o->why, o->why_bytes, HEDDLE_EIO, "the HTTP server does not start");
    s->has_thread = true;
    return HEDDLE_OK;
}

heddle_status http_check(char *why, size_t why_bytes)
{
    struct mhd mhd = {0};
    const heddle_status st = mhd_load(&mhd, why, why_bytes);

    mhd_unload(&mhd);
    return st;
}

heddle_status http_server_start(const struct http_opts *o, struct http_server **out)
{
    struct http_server *s = calloc(1, sizeof(*s));
    heddle_status st;

    if (s == NULL)
        return heddle_why(o->why, o->why_bytes, HEDDLE_ENOMEM, "out of memory");
    s->socket = s->wake = -1;
    s->clients.next = s->clients.previous = &s->clients;
    s->max_body = o->max_body;
    s->max_held = o->max_held;
    s->idle_ns = o->idle_s * HEDDLE_NS_PER_S;
    s->handler = o->handler;
    s->after = o->after;
    s->user = o->user;
    st = mhd_load(&s->mhd, o->why, o->why_bytes);
    if (st == HEDDLE_OK)
        st = listen_open(o->address, o->port, &s->socket, &s->port, o->why, o->why_bytes);
    if (st == HEDDLE_OK)
        st = start_daemon(s, o);
    if (st != HEDDLE_OK) {
        http_server_stop(s);
        return st;
    }
    *out = s;
    return HEDDLE_OK;
}

uint16_t http_server_port(const struct http_server *s)
{
    return s->port;
}

void http_server_drain(struct http_server *s)
{
    heddle_store_rel(&s->is_draining, true); /* with run() */
    wake_up(s);
}

size_t http_server_pending(const struct http_server *s)
{
    return heddle_load_acq(&s->npending); /* with on_end() */
}

size_t http_server_clients(const struct http_server *s)
{
    return heddle_load_acq(&s->nclients); /* with on_connection() */
}

void http_server_stop(struct http_server *s)
{
    if (s == NULL)
        return;
    heddle_store_rel(&s->is_over, true); /* with run() */
    if (s->has_thread) {
        wake_up(s);
        (void)!heddle_thread_join(&s->thread);
    }
    while (heddle_load_acq(&s->nwaking) > 0) /* with put_replied(): one may be on its way out */
        (void)sched_yield();
    if (s->daemon != NULL)
        s->mhd.stop_daemon(s->daemon); /* closes the socket, if it still listens */
    else if (s->socket >= 0)
        (void)close(s->socket);
    if (s->wake >= 0)
        (void)close(s->wake);
    mhd_unload(&s->mhd);
    free(s);
}
