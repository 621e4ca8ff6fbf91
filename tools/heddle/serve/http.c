/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * http: libmicrohttpd, loaded when it is needed, behind a small face.
 *
 * Life       libmicrohttpd calls on_request() when the header of a request is there, for
 *            each piece of the body, and once more at its end. Then the handler is called.
 *            When it has not replied by its return, the connection sleeps; the reply wakes
 *            it up, and on_request() is called again to send it. on_end() frees the exchange.
 * Invariant  an exchange is freed after its reply: a connection that sleeps does not end,
 *            whatever its client does.
 * Threads    `lock` of an exchange guards its state between the server's thread and the one
 *            that replies. `npending` is atomic.
 * Addresses  the socket is made here, so that a port in use gets a sentence.
 */
#include "serve/http.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/text.h"
#include "base/why.h"

/* For the header and the small pieces of a body, per connection. */
enum { CONNECTION_BYTES = 16384, BACKLOG = 1024, SPARE_FILES = 64 };
/* A body of up to so many times the largest one is read, and dropped. */
enum { DROPPED = 16 };

struct calls {
#define HTTP_CALL(name) __typeof__(&MHD_##name) name;
#include "serve/http.def"
#undef HTTP_CALL
};

struct http_server {
    struct calls mhd;
    void *library;
    struct MHD_Daemon *daemon;
    int socket; /* -1: the daemon has closed it */
    uint16_t port;
    size_t max_body;
    void (*handler)(void *user, struct http_exchange *x);
    void *user;
    _Atomic size_t npending;
};

enum state { READING, ASKED, SLEEPING, REPLIED };

struct http_exchange {
    struct http_server *s;
    struct MHD_Connection *connection;
    const char *method;
    char *path;
    char *body; /* with a zero behind */
    size_t bytes, cap;
    bool is_too_large, has_no_memory;
    bool is_counted;      /* in npending, until the reply is sent */
    pthread_mutex_t lock; /* state, reply, code */
    enum state state;
    struct MHD_Response *reply; /* NULL: there was no memory for it */
    unsigned code;
};

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

static struct MHD_Response *make_reply(struct http_server *s, const char *type, char *body,
                                       size_t bytes, const struct http_field *field, size_t nfields)
{
    struct MHD_Response *r = s->mhd.create_response_from_buffer(bytes, body, MHD_RESPMEM_MUST_FREE);

    if (r == NULL) {
        free(body);
        return NULL;
    }
    if (type != NULL)
        (void)s->mhd.add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    for (size_t i = 0; i < nfields; i++)
        (void)s->mhd.add_response_header(r, field[i].name, field[i].value);
    return r;
}

void http_reply(struct http_exchange *x, unsigned code, const char *type, char *body, size_t bytes,
                const struct http_field *field, size_t nfields)
{
    struct http_server *s = x->s;
    struct MHD_Response *r = make_reply(s, type, body, bytes, field, nfields);

    pthread_mutex_lock(&x->lock);
    x->reply = r;
    x->code = code;
    if (x->state == SLEEPING)
        s->mhd.resume_connection(x->connection);
    x->state = REPLIED;
    pthread_mutex_unlock(&x->lock);
}

static enum MHD_Result send_reply(struct http_exchange *x)
{
    struct http_server *s = x->s;
    enum MHD_Result sent;

    if (x->reply == NULL)
        return MHD_NO; /* closes the connection */
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

static enum MHD_Result begin(struct http_server *s, struct MHD_Connection *c, const char *method,
                             const char *url, void **slot)
{
    struct http_exchange *x = calloc(1, sizeof(*x));

    if (x == NULL)
        return MHD_NO;
    *x = (struct http_exchange){.s = s, .connection = c, .method = method, .path = strdup(url)};
    if (x->path == NULL || pthread_mutex_init(&x->lock, NULL) != 0) {
        free(x->path);
        free(x);
        return MHD_NO;
    }
    *slot = x;
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
    size_t cap = x->cap > 0 ? 2 * x->cap : 4096;
    char *p;

    if (need <= x->cap)
        return true;
    if (cap < need)
        cap = need;
    p = realloc(x->body, cap);
    if (p == NULL)
        return false;
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
        return refuse(x, 503, "out of memory");
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
    if (x->is_counted)
        heddle_sub_acqrel(&x->s->npending, 1); /* with http_server_pending() */
    if (x->reply != NULL)
        x->s->mhd.destroy_response(x->reply);
    pthread_mutex_destroy(&x->lock);
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

static heddle_status load(struct http_server *s, const struct http_opts *o)
{
    static const char *const names[] = {"libmicrohttpd.so.12", "libmicrohttpd.so"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && s->library == NULL; i++)
        s->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (s->library == NULL)
        return heddle_why(o->why, o->why_bytes, HEDDLE_ENOSYS,
                          "libmicrohttpd is not installed (Debian: libmicrohttpd12)");
        /* C has no cast from an object's address to a function's. */
#define HTTP_CALL(name)                                                                            \
    {                                                                                              \
        void *p = dlsym(s->library, "MHD_" #name);                                                 \
        if (p == NULL)                                                                             \
            return heddle_why(o->why, o->why_bytes, HEDDLE_ENOSYS,                                 \
                              "this libmicrohttpd has no MHD_" #name);                             \
        memcpy(&s->mhd.name, &p, sizeof(p));                                                       \
    }
#include "serve/http.def"
#undef HTTP_CALL
    return HEDDLE_OK;
}

/* Each connection is a file: as many as the system lets this process have. */
static unsigned allowed_connections(unsigned wanted)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) != 0)
        return wanted;
    if (r.rlim_cur < (rlim_t)wanted + SPARE_FILES) {
        r.rlim_cur =
            r.rlim_max < (rlim_t)wanted + SPARE_FILES ? r.rlim_max : (rlim_t)wanted + SPARE_FILES;
        (void)setrlimit(RLIMIT_NOFILE, &r);
        if (getrlimit(RLIMIT_NOFILE, &r) != 0)
            return wanted;
    }
    if (r.rlim_cur >= (rlim_t)wanted + SPARE_FILES)
        return wanted;
    return r.rlim_cur > 2 * SPARE_FILES ? (unsigned)r.rlim_cur - SPARE_FILES : SPARE_FILES;
}

static int try_listen(const struct addrinfo *a)
{
    const int on = 1;
    const int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);

    if (fd < 0)
        return -1;
    /* Without it a server could not follow its predecessor on the same port at once. */
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, a->ai_addr, a->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0) {
        const int e = errno;

        (void)close(fd);
        errno = e;
        return -1;
    }
    return fd;
}

static uint16_t port_of(int fd)
{
    struct sockaddr_storage a;
    socklen_t len = sizeof(a);

    if (getsockname(fd, (struct sockaddr *)&a, &len) != 0)
        return 0;
    if (a.ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)&a)->sin6_port);
    return ntohs(((const struct sockaddr_in *)&a)->sin_port);
}

static heddle_status open_socket(struct http_server *s, const struct http_opts *o)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV | AI_NUMERICHOST};
    const char *address = o->address != NULL ? o->address : "127.0.0.1";
    struct addrinfo *found = NULL;
    char port[8];
    struct heddle_text t;
    int e;

    heddle_text_init(&t, port, sizeof(port));
    heddle_text_add(&t, "%u", o->port);
    e = getaddrinfo(address, port, &hints, &found);
    if (e != 0)
        return heddle_why(o->why, o->why_bytes, HEDDLE_EIO, "'%s' is not an address", address);
    s->socket = try_listen(found);
    e = errno;
    freeaddrinfo(found);
    if (s->socket < 0)
        return heddle_why(o->why, o->why_bytes, HEDDLE_EIO, "cannot listen on %s, port %u: %s",
                          address, o->port, strerror(e));
    s->port = port_of(s->socket);
    return HEDDLE_OK;
}

static heddle_status start_daemon(struct http_server *s, const struct http_opts *o)
{
    const unsigned flags =
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;

    s->daemon = s->mhd.start_daemon(
        flags, 0, NULL, NULL, on_request, s, MHD_OPTION_EXTERNAL_LOGGER, be_silent, NULL,
        MHD_OPTION_LISTEN_SOCKET, s->socket, MHD_OPTION_NOTIFY_COMPLETED, on_end, NULL,
        MHD_OPTION_CONNECTION_LIMIT, allowed_connections(o->max_connections),
        MHD_OPTION_CONNECTION_TIMEOUT, o->idle_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_BYTES, MHD_OPTION_END);
    return s->daemon != NULL
               ? HEDDLE_OK
               : heddle_why(o->why, o->why_bytes, HEDDLE_EIO, "the HTTP server does not start");
}

heddle_status http_server_start(const struct http_opts *o, struct http_server **out)
{
    struct http_server *s = calloc(1, sizeof(*s));
    heddle_status st;

    if (s == NULL)
        return heddle_why(o->why, o->why_bytes, HEDDLE_ENOMEM, "out of memory");
    s->socket = -1;
    s->max_body = o->max_body;
    s->handler = o->handler;
    s->user = o->user;
    st = load(s, o);
    if (st == HEDDLE_OK)
        st = open_socket(s, o);
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
    const int fd = s->mhd.quiesce_daemon(s->daemon);

    if (fd >= 0)
        (void)close(fd);
    s->socket = -1;
}

size_t http_server_pending(const struct http_server *s)
{
    return heddle_load_acq(&s->npending); /* with on_end() */
}

void http_server_stop(struct http_server *s)
{
    if (s == NULL)
        return;
    if (s->daemon != NULL)
        s->mhd.stop_daemon(s->daemon); /* closes the socket, if it still listens */
    else if (s->socket >= 0)
        (void)close(s->socket);
    if (s->library != NULL)
        (void)dlclose(s->library);
    free(s);
}
