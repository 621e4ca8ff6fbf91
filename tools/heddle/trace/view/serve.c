/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace/view/serve: a small server for one person on one machine.
 *
 * Structure  one thread, one poll() over a fixed number of connections. A
 *            connection reads a request, writes its answer, reads the next; a
 *            slow reader delays its own answer and no other.
 * Invariants (1) it listens on 127.0.0.1 only
 *            (2) a connection with an answer is not read from until it was sent
 *            (3) when all places are taken, the connection that has been idle
 *                longest makes room
 * End        SIGINT or SIGTERM. Libraries have threads of their own, and any of them
 *            may get the signal: a handler writes to a pipe that poll() sees.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "trace/view/view.h"

enum { MAX_CONNS = 48, TICK_MS = 200 };

#define IDLE_NS  (120 * HEDDLE_NS_PER_S)
#define DRAIN_NS (2 * HEDDLE_NS_PER_S)

struct conn {
    int fd; /* -1: free */
    size_t nin;
    size_t sent;      /* of head and body */
    bool is_busy;     /* it has an answer */
    bool is_draining; /* all was said; waits for the other side to close */
    uint64_t moved_ns;
    struct view_answer ans;
    char in[VIEW_MAX_REQUEST];
};

struct server {
    struct view_site *site;
    int listen_fd;
    int end_fd[2]; /* the pipe */
    struct conn conn[MAX_CONNS];
};

static void conn_close(struct conn *k)
{
    view_answer_fini(&k->ans);
    if (k->fd >= 0)
        close(k->fd);
    k->fd = -1;
    k->nin = k->sent = 0;
    k->is_busy = k->is_draining = false;
}

/* Takes the next request out of what was read, if it is whole. */
static void conn_next(struct server *s, struct conn *k)
{
    const size_t n = view_http_answer(s->site, k->in, k->nin, &k->ans);

    if (n == 0)
        return;
    memmove(k->in, k->in + n, k->nin - n);
    k->nin -= n;
    k->sent = 0;
    k->is_busy = true;
}

static void conn_read(struct server *s, struct conn *k)
{
    const ssize_t n = recv(k->fd, k->in + k->nin, sizeof k->in - k->nin, 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        conn_close(k);
        return;
    }
    if (k->is_draining)
        return;
    k->moved_ns = heddle_clock_ns();
    k->nin += (size_t)n;
    conn_next(s, k);
}

/* Everything was sent. */
static void conn_done(struct server *s, struct conn *k)
{
    const bool is_last = k->ans.is_last;

    view_answer_fini(&k->ans);
    k->is_busy = false;
    if (!is_last) {
        conn_next(s, k);
        return;
    }
    /* Closing with unread input would take the answer back. */
    shutdown(k->fd, SHUT_WR);
    k->is_draining = true;
    k->nin = 0;
}

static void conn_write(struct server *s, struct conn *k)
{
    const struct view_answer *a = &k->ans;
    const bool is_head = k->sent < a->head_len;
    const char *p = is_head ? a->head + k->sent : (const char *)a->body + (k->sent - a->head_len);
    const size_t left = is_head ? a->head_len - k->sent : a->head_len + a->body_len - k->sent;
    const int flags = MSG_NOSIGNAL | (is_head && a->body_len > 0 ? MSG_MORE : 0);
    const ssize_t n = send(k->fd, p, left, flags);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) {
        conn_close(k);
        return;
    }
    k->sent += (size_t)n;
    k->moved_ns = heddle_clock_ns();
    if (k->sent == a->head_len + a->body_len)
        conn_done(s, k);
}

/* A free place; the longest idle connection goes when there is none. */
static struct conn *find_place(struct server *s)
{
    struct conn *idle = NULL;

    for (size_t i = 0; i < MAX_CONNS; i++) {
        struct conn *k = &s->conn[i];

        if (k->fd < 0)
            return k;
        if (!k->is_busy && (idle == NULL || k->moved_ns < idle->moved_ns))
            idle = k;
    }
    if (idle != NULL)
        conn_close(idle);
    return idle;
}

static void accept_one(struct server *s)
{
    const int fd = accept4(s->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct conn *k;

    if (fd < 0)
        return;
    k = find_place(s);
    if (k == NULL) {
        close(fd);
        return;
    }
    k->fd = fd;
    k->moved_ns = heddle_clock_ns();
}

static void close_stale(struct server *s)
{
    const uint64_t now = heddle_clock_ns();

    for (size_t i = 0; i < MAX_CONNS; i++) {
        struct conn *k = &s->conn[i];

        if (k->fd >= 0 && now - k->moved_ns > (k->is_draining ? DRAIN_NS : IDLE_NS))
            conn_close(k);
    }
}

/* One round; false: it is time to end. *st_out: why, if not a signal. */
static bool serve_round(struct server *s, heddle_status *st_out)
{
    struct pollfd fds[MAX_CONNS + 2];
    struct conn *who[MAX_CONNS];
    size_t n = 0;

    fds[0] = (struct pollfd){.fd = s->end_fd[0], .events = POLLIN};
    fds[1] = (struct pollfd){.fd = s->listen_fd, .events = POLLIN};
    for (size_t i = 0; i < MAX_CONNS; i++)
        if (s->conn[i].fd >= 0) {
            fds[n + 2] = (struct pollfd){.fd = s->conn[i].fd,
                                         .events = s->conn[i].is_busy ? POLLOUT : POLLIN};
            who[n++] = &s->conn[i];
        }
    if (poll(fds, (nfds_t)n + 2, TICK_MS) < 0) {
        *st_out = errno == EINTR ? HEDDLE_OK : HEDDLE_EIO;
        return errno == EINTR;
    }
    if (fds[0].revents != 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (fds[i + 2].revents == 0)
            continue;
        if (who[i]->is_busy)
            conn_write(s, who[i]);
        else
            conn_read(s, who[i]);
    }
    if (fds[1].revents != 0)
        accept_one(s);
    close_stale(s);
    return true;
}

heddle_status view_listen(struct view_site *s, uint16_t port, int *fd_out)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    socklen_t len = sizeof a;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int on = 1;
    int e;

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        bind(fd, (const struct sockaddr *)&a, sizeof a) == 0 && listen(fd, 16) == 0 &&
        getsockname(fd, (struct sockaddr *)&a, &len) == 0) {
        s->port = ntohs(a.sin_port);
        *fd_out = fd;
        return HEDDLE_OK;
    }
    e = errno;
    if (fd >= 0)
        close(fd);
    errno = e;
    return HEDDLE_EIO;
}

/* A handler has no argument: the end of the pipe of the one server. */
static volatile sig_atomic_t handler_fd;

static void on_signal(int number)
{
    const int e = errno;
    const char byte = 0;

    (void)number;
    if (write((int)handler_fd, &byte, 1) < 0)
        (void)0; /* the pipe is full: it was told already */
    errno = e;
}

static heddle_status serve_all(struct server *s, view_tick *tick, void *user)
{
    const struct sigaction act = {.sa_handler = on_signal};
    struct sigaction old_int, old_term;
    heddle_status st = HEDDLE_OK;

    if (pipe2(s->end_fd, O_CLOEXEC | O_NONBLOCK) != 0)
        return HEDDLE_EIO;
    handler_fd = s->end_fd[1];
    sigaction(SIGINT, &act, &old_int);
    sigaction(SIGTERM, &act, &old_term);
    while (serve_round(s, &st))
        if (tick != NULL)
            tick(user, s->site);
    sigaction(SIGINT, &old_int, NULL);
    sigaction(SIGTERM, &old_term, NULL);
    close(s->end_fd[0]);
    close(s->end_fd[1]);
    return st;
}

heddle_status view_serve(struct view_site *site, int fd, view_tick *tick, void *user)
{
    struct server *s = heddle_zalloc(NULL, 1, sizeof *s);
    heddle_status st;
    int e;

    if (s == NULL) {
        close(fd);
        return HEDDLE_ENOMEM;
    }
    s->site = site;
    s->listen_fd = fd;
    for (size_t i = 0; i < MAX_CONNS; i++)
        s->conn[i].fd = -1;
    st = serve_all(s, tick, user);
    e = errno;
    for (size_t i = 0; i < MAX_CONNS; i++)
        conn_close(&s->conn[i]);
    close(fd);
    heddle_free(NULL, s, sizeof *s);
    errno = e;
    return st;
}
