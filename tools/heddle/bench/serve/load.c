/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load: see load.h.
 *
 * Parts      each thread has its share of the connections and of the rate, its own epoll, schedule
 *            and histograms; a sum of Poisson processes is one.
 * Schedule   all moments of a thread, ascending; `next` is the first that is not sent. So what
 *            waits for a connection needs no queue.
 * End        behind the last moment replies are waited for, GRACE_S at most.
 * Sleep      to the nanosecond (epoll_pwait2), without the kernel's usual slack of 50 us.
 */
#include "bench/serve/load.h"

#include <errno.h>
#include <math.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/thread.h"
#include "base/why.h"

enum { HEAD_BYTES = 2048, SCRAP_BYTES = 65536, EVENTS = 256, GRACE_S = 10, SLACK_NS = 1000 };

struct connection {
    int fd; /* -1: none */
    bool is_busy;
    uint64_t due_ns;
    size_t sent;
    size_t head, body_left; /* bytes of the head so far; 0 when it is complete */
    bool in_body;
    unsigned code;
    char text[HEAD_BYTES]; /* the head, and what came with it */
};

struct part {
    const struct load_opts *o;
    unsigned nconnections;
    double rate;
    uint64_t seed;
    uint64_t start_ns, end_ns;
    int epoll;
    struct connection *c;
    unsigned *idle, nidle, nbusy;
    uint64_t *due; /* NULL: closed loop */
    size_t ndue, next;
    char *scrap;
    struct load_result r;
    heddle_status st;
    char why[200];
    struct heddle_thread thread;
    bool is_started;
};

double load_rate(const struct load_result *r)
{
    return r->seconds > 0 ? (double)r->good / r->seconds : 0;
}

/* --- the schedule ------------------------------------------------------------------- */

/* Bursts come as a Poisson process too; all of one are due at one moment. */
static bool draw_schedule(struct part *p)
{
    const unsigned burst = p->o->burst > 1 ? p->o->burst : 1;
    const double seconds = p->o->seconds, gap = (double)burst / p->rate;
    size_t cap = (size_t)(seconds / gap * 1.25 + 64) * burst;
    struct heddle_rng rng;
    double at = 0;

    p->due = malloc(cap * sizeof(p->due[0]));
    if (p->due == NULL)
        return false;
    heddle_rng_seed(&rng, p->seed);
    for (;;) {
        at -= gap * log1p(-heddle_rng_double(&rng));
        if (at >= seconds || p->ndue + burst > cap)
            break;
        for (unsigned i = 0; i < burst; i++)
            p->due[p->ndue++] = p->start_ns + (uint64_t)(at * 1e9);
    }
    p->r.planned = p->ndue;
    return true;
}

/* --- connections -------------------------------------------------------------------- */

static bool open_connection(struct part *p, unsigned i)
{
    const int on = 1;
    struct connection *c = &p->c[i];
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = i};

    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (const struct sockaddr *)&p->o->to, sizeof(p->o->to)) != 0)
        return false;
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return epoll_ctl(p->epoll, EPOLL_CTL_ADD, c->fd, &e) == 0;
}

static void end_request(struct part *p, unsigned i)
{
    p->c[i].is_busy = false;
    p->nbusy--;
    p->idle[p->nidle++] = i;
}

/* The connection has ended, perhaps with a request on it: makes another one. */
static bool renew(struct part *p, unsigned i)
{
    struct connection *c = &p->c[i];

    if (c->is_busy) {
        p->r.broken++;
        end_request(p, i);
    }
    (void)close(c->fd);
    if (open_connection(p, i))
        return true;
    p->st = heddle_why(p->why, sizeof(p->why), HEDDLE_EIO, "a connection cannot be made again: %s",
                       heddle_why_errno(errno));
    return false;
}

static bool watch_writes(struct part *p, unsigned i, bool on)
{
    struct epoll_event e = {.events = EPOLLIN | (on ? EPOLLOUT : 0), .data.u32 = i};

    return epoll_ctl(p->epoll, EPOLL_CTL_MOD, p->c[i].fd, &e) == 0;
}

static bool send_more(struct part *p, unsigned i)
{
    struct connection *c = &p->c[i];
    const bool was_cut = c->sent > 0;
    const ssize_t n =
        send(c->fd, p->o->request + c->sent, p->o->bytes - c->sent, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (n < 0 && errno != EAGAIN)
        return renew(p, i);
    c->sent += n > 0 ? (size_t)n : 0;
    if (c->sent < p->o->bytes)
        return was_cut || watch_writes(p, i, true);
    return !was_cut || watch_writes(p, i, false);
}

static bool start_request(struct part *p, unsigned i, uint64_t due_ns)
{
    struct connection *c = &p->c[i];

    c->is_busy = true;
    c->due_ns = due_ns;
    c->sent = c->head = c->body_left = 0;
    c->in_body = false;
    p->nbusy++;
    p->r.sent++;
    return send_more(p, i);
}

/* --- replies ------------------------------------------------------------------------ */

static void count_reply(struct part *p, const struct connection *c)
{
    if (c->code >= 200 && c->code < 300) {
        p->r.good++;
        hist_add(&p->r.latency, heddle_clock_ns() - c->due_ns);
    } else if (c->code == 503 || c->code == 504) {
        p->r.refused++;
    } else {
        p->r.bad++;
    }
}

/* The number of a field of the head; 0: there is none. */
static size_t length_in(const char *head)
{
    for (const char *at = strchr(head, '\n'); at != NULL; at = strchr(at + 1, '\n')) {
        if (strncasecmp(at + 1, "content-length:", 15) == 0)
            return (size_t)strtoull(at + 16, NULL, 10);
    }
    return 0;
}

/* Looks for the end of the head. False: this is no HTTP. */
static bool read_head(struct connection *c)
{
    const char *end;

    c->text[c->head] = '\0';
    end = strstr(c->text, "\r\n\r\n");
    if (end == NULL)
        return c->head < HEAD_BYTES - 1;
    if (strncmp(c->text, "HTTP/1.", 7) != 0)
        return false;
    c->code = (unsigned)strtoul(c->text + 9, NULL, 10);
    c->body_left = length_in(c->text);
    c->in_body = true;
    end += 4;
    if ((size_t)(c->text + c->head - end) > c->body_left)
        return false;
    c->body_left -= (size_t)(c->text + c->head - end);
    return true;
}

/* Something can be read. False: the run cannot go on. */
static bool receive(struct part *p, unsigned i)
{
    struct connection *c = &p->c[i];
    ssize_t n;

    if (!c->is_busy)
        return renew(p, i); /* the server has closed it, or speaks out of turn */
    if (c->in_body) {
        const size_t want = c->body_left < SCRAP_BYTES ? c->body_left : SCRAP_BYTES;

        n = recv(c->fd, p->scrap, want, MSG_DONTWAIT);
    } else {
        n = recv(c->fd, c->text + c->head, HEAD_BYTES - 1 - c->head, MSG_DONTWAIT);
    }
    if (n < 0 && errno == EAGAIN)
        return true;
    if (n <= 0)
        return renew(p, i);
    if (c->in_body) {
        c->body_left -= (size_t)n;
    } else {
        c->head += (size_t)n;
        if (!read_head(c)) {
            p->r.bad++;
            end_request(p, i);
            return renew(p, i);
        }
    }
    if (c->in_body && c->body_left == 0) {
        count_reply(p, c);
        end_request(p, i);
    }
    return true;
}

/* --- the loop ----------------------------------------------------------------------- */

static bool send_due(struct part *p, uint64_t now)
{
    while (p->nidle > 0) {
        uint64_t due = now;

        if (p->due == NULL ? now >= p->end_ns : p->next == p->ndue || p->due[p->next] > now)
            return true;
        if (p->due != NULL) {
            due = p->due[p->next++];
            hist_add(&p->r.late, now - due);
        }
        if (!start_request(p, p->idle[--p->nidle], due))
            return false;
    }
    return true;
}

static bool is_over(const struct part *p, uint64_t now)
{
    if (now >= p->end_ns + GRACE_S * HEDDLE_NS_PER_S)
        return true;
    return p->nbusy == 0 && (p->due == NULL ? now >= p->end_ns : p->next == p->ndue);
}

/* Until a reply can come, or the next request is due. */
static int wait_events(struct part *p, struct epoll_event *e, uint64_t now)
{
    uint64_t at = p->end_ns + GRACE_S * HEDDLE_NS_PER_S;
    struct timespec t;

    if (p->due != NULL && p->next < p->ndue && p->nidle > 0)
        at = p->due[p->next];
    at = at > now ? at - now : 0;
    t = (struct timespec){(time_t)(at / HEDDLE_NS_PER_S), (long)(at % HEDDLE_NS_PER_S)};
    return epoll_pwait2(p->epoll, e, EVENTS, &t, NULL);
}

static bool turn(struct part *p, uint64_t now)
{
    struct epoll_event e[EVENTS];
    const int n = wait_events(p, e, now);

    if (n < 0 && errno != EINTR) {
        p->st = heddle_why(p->why, sizeof(p->why), HEDDLE_EIO, "epoll_pwait2: %s",
                           heddle_why_errno(errno));
        return false;
    }
    for (int k = 0; k < n; k++) {
        const unsigned i = e[k].data.u32;

        if ((e[k].events & EPOLLOUT) != 0 && !send_more(p, i))
            return false;
        if ((e[k].events & ~(uint32_t)EPOLLOUT) != 0 && !receive(p, i))
            return false;
        if (p->due == NULL && !send_due(p, heddle_clock_ns()))
            return false;
    }
    return true;
}

static void *part_run(void *user)
{
    struct part *p = user;
    uint64_t now = heddle_clock_ns();

    (void)prctl(PR_SET_TIMERSLACK, (unsigned long)SLACK_NS, 0ul, 0ul, 0ul);
    while (!is_over(p, now)) {
        if (!send_due(p, now) || !turn(p, now))
            break;
        now = heddle_clock_ns();
    }
    p->r.lost = p->nbusy + (p->due != NULL ? p->ndue - p->next : 0);
    p->r.seconds = (double)(now - p->start_ns) * 1e-9;
    return NULL;
}

/* --- start and end ------------------------------------------------------------------ */

static heddle_status part_open(struct part *p)
{
    p->epoll = epoll_create1(EPOLL_CLOEXEC);
    p->c = calloc(p->nconnections, sizeof(p->c[0]));
    p->idle = calloc(p->nconnections, sizeof(p->idle[0]));
    p->scrap = malloc(SCRAP_BYTES);
    if (p->epoll < 0 || p->c == NULL || p->idle == NULL || p->scrap == NULL)
        return HEDDLE_ENOMEM;
    for (unsigned i = 0; i < p->nconnections; i++)
        p->c[i].fd = -1;
    for (unsigned i = 0; i < p->nconnections; i++) {
        if (!open_connection(p, i))
            return heddle_why(p->why, sizeof(p->why), HEDDLE_EIO,
                              "connection %u cannot be made: %s", i + 1, heddle_why_errno(errno));
        p->idle[p->nidle++] = i;
    }
    return HEDDLE_OK;
}

static void part_close(struct part *p)
{
    for (unsigned i = 0; p->c != NULL && i < p->nconnections; i++) {
        if (p->c[i].fd >= 0)
            (void)close(p->c[i].fd);
    }
    if (p->epoll >= 0)
        (void)close(p->epoll);
    free(p->c);
    free(p->idle);
    free(p->due);
    free(p->scrap);
}

static void add_result(struct load_result *to, const struct load_result *r)
{
    hist_merge(&to->latency, &r->latency);
    hist_merge(&to->late, &r->late);
    to->planned += r->planned;
    to->sent += r->sent;
    to->good += r->good;
    to->refused += r->refused;
    to->bad += r->bad;
    to->broken += r->broken;
    to->lost += r->lost;
    to->seconds = r->seconds > to->seconds ? r->seconds : to->seconds;
}

/* One moment for all: connections and schedules are made before. */
static heddle_status start_parts(struct part *p, unsigned n)
{
    const struct load_opts *o = p->o;
    const uint64_t start = heddle_clock_ns() + 1000000;

    for (unsigned i = 0; i < n; i++) {
        p[i].start_ns = start;
        p[i].end_ns = start + (uint64_t)(o->seconds * 1e9);
        if (o->rate > 0 && !draw_schedule(&p[i]))
            return HEDDLE_ENOMEM;
    }
    for (unsigned i = 0; i < n; i++) {
        const heddle_status st = heddle_thread_create(&p[i].thread, NULL, part_run, &p[i]);

        if (st != HEDDLE_OK)
            return st;
        p[i].is_started = true;
    }
    return HEDDLE_OK;
}

heddle_status load_run(const struct load_opts *o, struct load_result *out, char *why,
                       size_t why_bytes)
{
    const unsigned n = o->nthreads < o->nconnections ? o->nthreads : o->nconnections;
    struct part *p = calloc(n, sizeof(*p));
    heddle_status st = HEDDLE_OK;

    if (p == NULL)
        return HEDDLE_ENOMEM;
    for (unsigned i = 0; i < n; i++) {
        p[i].o = o;
        p[i].epoll = -1;
        p[i].nconnections = o->nconnections / n + (i < o->nconnections % n);
        p[i].rate = o->rate / n;
        p[i].seed = o->seed + i;
    }
    for (unsigned i = 0; i < n && st == HEDDLE_OK; i++) {
        st = part_open(&p[i]);
        if (st != HEDDLE_OK)
            (void)heddle_why(why, why_bytes, st, "%s", p[i].why);
    }
    if (st == HEDDLE_OK)
        st = start_parts(p, n);
    memset(out, 0, sizeof(*out));
    for (unsigned i = 0; i < n; i++) {
        if (p[i].is_started)
            (void)!heddle_thread_join(&p[i].thread);
        if (st == HEDDLE_OK && p[i].st != HEDDLE_OK)
            st = heddle_why(why, why_bytes, p[i].st, "%s", p[i].why);
        add_result(out, &p[i].r);
        part_close(&p[i]);
    }
    free(p);
    return st;
}
