/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/serve/robust: clients that do what they should not, while others want to be served.
 *
 * idle       connections that say nothing, until the server closes them
 * slow       heads that come byte by byte, never quickly enough to end, never slowly enough to be
 *            idle; the server has to close them too
 * oversize   bodies and heads beyond the limits
 * malformed  requests with bytes changed, cut and doubled
 * leak       all of it several times: resident memory and descriptors of the server behind the
 *            last time against those behind the first half
 *
 * Beside each of them runs a load whose every request has to be answered.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/rng.h"
#include "base/text.h"
#include "base/thread.h"
#include "bench/serve/serve.h"

enum {
    SPARE_FILES = 256,
    WAIT_MS = 10000,
    LOAD_CONNECTIONS = 8,
    MIB = 1 << 20,
    LARGE = 4 * MIB,
    AT_ONCE = 1000
};

struct robust {
    struct serve_bench *b;
    struct child k;
    struct talk_request request;
    struct heddle_rng rng;
    unsigned idle_s; /* the server's limit */
    size_t npasses, nidle, nslow, noversize, nmalformed;
    int *fd; /* of idle and slow clients */
    size_t nopen;
    struct heddle_thread thread;
    _Atomic bool is_over;
    /* Sums over the passes. */
    struct tally {
        uint64_t asked, failed, worst_p99_ns;
        uint64_t hostile, wrong; /* wrong: not closed, or not refused as they should be */
    } idle, slow, oversize, malformed;
    uint64_t rss_first, rss_last, rss_most, files_first, files_last;
};

static void pause_ms(long ms)
{
    const struct timespec t = {ms / 1000, ms % 1000 * 1000000};

    (void)nanosleep(&t, NULL);
}

/* --- the others --------------------------------------------------------------------------- */

static int serve_others(struct robust *r, struct tally *t, double seconds)
{
    const struct load_result *got = r->b->result;
    const uint64_t connections = r->b->connections;
    uint64_t p99, rss, files;
    int rc;

    r->b->connections = LOAD_CONNECTIONS;
    rc = serve_load(r->b, &r->k, &r->request, 0, 0, seconds);
    r->b->connections = connections;
    if (rc != 0)
        return rc;
    p99 = hist_at(&got->latency, 0.99);
    t->asked += got->sent;
    t->failed += got->sent - got->good;
    t->worst_p99_ns = p99 > t->worst_p99_ns ? p99 : t->worst_p99_ns;
    if (child_measure(&r->k, &rss, &files) && rss > r->rss_most)
        r->rss_most = rss;
    return 0;
}

/* --- idle and slow ------------------------------------------------------------------------ */

/* As many as the system allows. */
static void open_many(struct robust *r, size_t n, const char *text)
{
    for (r->nopen = 0; r->nopen < n; r->nopen++) {
        const int fd = talk_connect(&r->k.at, WAIT_MS);

        if (fd < 0)
            return;
        r->fd[r->nopen] = fd;
        (void)talk_send(fd, text, strlen(text));
    }
}

static void close_many(struct robust *r)
{
    for (size_t i = 0; i < r->nopen; i++) {
        if (r->fd[i] >= 0)
            (void)close(r->fd[i]);
    }
    r->nopen = 0;
}

/* Closes what the server has closed; how many are left. `text`: one byte of it for the others. */
static size_t sweep(struct robust *r, const char *text)
{
    size_t left = 0;
    char byte;

    for (size_t i = 0; i < r->nopen; i++) {
        ssize_t n = 1;

        if (r->fd[i] < 0)
            continue;
        while (n > 0) /* perhaps it says why */
            n = recv(r->fd[i], &byte, 1, MSG_DONTWAIT);
        if (n == 0 || errno != EAGAIN ||
            (text != NULL && send(r->fd[i], text, 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)) {
            (void)close(r->fd[i]);
            r->fd[i] = -1;
            continue;
        }
        left++;
    }
    return left;
}

/* Until the server has closed all, twice its limit and a little at most. */
static size_t wait_closed(struct robust *r, const char *text)
{
    const uint64_t end = heddle_clock_ns() + (2 * r->idle_s + 3) * HEDDLE_NS_PER_S;
    size_t left;

    for (;;) {
        left = sweep(r, text);
        if (left == 0 || heddle_clock_ns() >= end)
            return left;
        pause_ms(250);
    }
}

static int run_idle(struct robust *r)
{
    int rc;

    open_many(r, r->nidle, "");
    r->idle.hostile = r->nopen > r->idle.hostile ? r->nopen : r->idle.hostile;
    rc = serve_others(r, &r->idle, 1);
    r->idle.wrong += wait_closed(r, NULL);
    close_many(r);
    return rc;
}

static void *drip(void *user)
{
    struct robust *r = user;

    while (!heddle_load_rlx(&r->is_over)) { /* a hint; the join orders the rest */
        (void)sweep(r, "x");
        pause_ms(250);
    }
    return NULL;
}

static int run_slow(struct robust *r)
{
    int rc;

    open_many(r, r->nslow, "POST /v2/models/network/infer HTTP/1.1\r\nHost: ");
    r->slow.hostile = r->nopen > r->slow.hostile ? r->nopen : r->slow.hostile;
    heddle_store_rlx(&r->is_over, false);
    if (heddle_thread_create(&r->thread, NULL, drip, r) != HEDDLE_OK)
        return cli_fail(r->b->c, "no thread can be started");
    rc = serve_others(r, &r->slow, 1);
    heddle_store_rlx(&r->is_over, true);
    (void)!heddle_thread_join(&r->thread);
    r->slow.wrong += wait_closed(r, "x");
    close_many(r);
    return rc;
}

/* --- oversize ----------------------------------------------------------------------------- */

/* Sends text, then `more` bytes, then the tail. The code; 0: it is closed. */
static int ask_too_much(struct robust *r, const char *text, size_t more, const char *tail)
{
    const int fd = talk_connect(&r->k.at, WAIT_MS);
    char body[256], *piece = malloc(65536);
    int code = 0;

    if (fd < 0 || piece == NULL) {
        free(piece);
        if (fd >= 0)
            (void)close(fd);
        return -1;
    }
    memset(piece, '[', 65536);
    if (talk_send(fd, text, strlen(text))) {
        while (more > 0 && talk_send(fd, piece, more < 65536 ? more : 65536))
            more -= more < 65536 ? more : 65536;
        if (talk_send(fd, tail, strlen(tail)))
            code = talk_receive(fd, body, sizeof(body));
    }
    free(piece);
    (void)close(fd);
    return code;
}

static int run_oversize(struct robust *r)
{
#define POST "POST /v2/models/network/infer HTTP/1.1\r\nHost: x\r\n"
    static const struct {
        const char *text;
        size_t more;
        const char *tail;
    } rows[] = {
        {POST "Content-Length: 99999999999999\r\n\r\n", 0, ""},
        {POST "Content-Length: 4194304\r\n\r\n", LARGE, ""},
        {POST "Expect: 100-continue\r\nContent-Length: 4194304\r\n\r\n", 0, ""},
        {POST "Transfer-Encoding: chunked\r\n\r\n400000\r\n", LARGE, "\r\n0\r\n\r\n"},
        {POST "Content-Length: 1000000\r\n\r\n", 1000000, ""}, /* fits; JSON of brackets */
        {POST "X: ", LARGE, "\r\n\r\n"},
        {"POST /", LARGE, " HTTP/1.1\r\n\r\n"},
    };

    for (size_t i = 0; i < r->noversize; i++) {
        const size_t row = i % (sizeof(rows) / sizeof(rows[0]));
        const int code = ask_too_much(r, rows[row].text, rows[row].more, rows[row].tail);

        /* A server that closes before all is sent may lose its own reply on the way. */
        r->oversize.wrong += code != 0 && (code < 400 || code >= 500);
        r->oversize.hostile++;
    }
#undef POST
    return serve_others(r, &r->oversize, 0.5);
}

/* --- malformed ---------------------------------------------------------------------------- */

/* Some bytes changed, or a stretch cut out or doubled. */
static size_t damage(struct robust *r, char *text, size_t n)
{
    const uint64_t how = heddle_rng_below(&r->rng, 4), at = heddle_rng_below(&r->rng, n);
    const uint64_t len = heddle_rng_below(&r->rng, n - at) + 1;

    if (how == 0) {
        memmove(text + at, text + at + len, n - at - len);
        return n - len;
    }
    if (how == 1) { /* the buffer has room for two */
        memmove(text + at + len, text + at, n - at);
        return n + len;
    }
    for (uint64_t i = 0, times = heddle_rng_below(&r->rng, 8) + 1; i < times; i++) {
        /* The head and the JSON are what a server reads. */
        const uint64_t where = heddle_rng_below(&r->rng, how == 2 ? n : n < 512 ? n : 512);

        text[where] = (char)heddle_rng_next(&r->rng);
    }
    return n;
}

/* Sends one of them; the connection, -1: there is none. */
static int send_nonsense(struct robust *r, char *text)
{
    const int fd = talk_connect(&r->k.at, WAIT_MS);
    size_t n = r->request.bytes;

    if (fd < 0)
        return -1;
    memcpy(text, r->request.text, n);
    n = damage(r, text, n);
    if (talk_send(fd, text, n))
        (void)shutdown(fd, SHUT_WR);
    return fd;
}

/* True: the server answered something that is HTTP, or closed the connection. */
static bool hear_nonsense(int fd)
{
    char body[512];
    int code;

    if (fd < 0)
        return false;
    errno = 0;
    code = talk_receive(fd, body, sizeof(body));
    (void)close(fd);
    return code > 0 || (code == 0 && errno != EAGAIN);
}

static int run_malformed(struct robust *r)
{
    char *text = malloc(2 * r->request.bytes);
    int fd[AT_ONCE]; /* some of them are not answered before the server's limit of time */

    if (text == NULL)
        return cli_fail(r->b->c, "out of memory");
    for (size_t i = 0; i < r->nmalformed; i += AT_ONCE) {
        const size_t n = r->nmalformed - i < AT_ONCE ? r->nmalformed - i : AT_ONCE;

        for (size_t k = 0; k < n; k++)
            fd[k] = send_nonsense(r, text);
        for (size_t k = 0; k < n; k++)
            r->malformed.wrong += !hear_nonsense(fd[k]);
        r->malformed.hostile += n;
    }
    free(text);
    return serve_others(r, &r->malformed, 0.5);
}

/* --- the whole ---------------------------------------------------------------------------- */

/* The server closes what its clients have closed: waits until it has not fewer descriptors than a
 * quarter of a second before. */
static bool settle(struct robust *r, uint64_t *rss, uint64_t *files)
{
    uint64_t before;

    if (!child_measure(&r->k, rss, files))
        return false;
    do {
        before = *files;
        pause_ms(250);
        if (!child_measure(&r->k, rss, files))
            return false;
    } while (*files < before);
    return true;
}

static int run_pass(struct robust *r, size_t pass)
{
    static int (*const parts[])(struct robust *) = {run_idle, run_slow, run_oversize,
                                                    run_malformed};
    uint64_t rss, files;

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        const int rc = parts[i](r);

        if (rc != 0 || !child_is_alive(&r->k))
            return cli_fail(r->b->c, "the server ended in part %zu of pass %zu", i + 1, pass + 1);
    }
    if (!settle(r, &rss, &files))
        return cli_fail(r->b->c, "the memory of the server cannot be read");
    if (pass == (r->npasses - 1) / 2) { /* before it the server fills its caches */
        r->rss_first = rss;
        r->files_first = files;
    }
    r->rss_last = rss;
    r->files_last = files;
    return 0;
}

static int report_tally(struct robust *r, const char *name, const struct tally *t, bool is_sum)
{
    struct serve_case k = {.part = "robust",
                           .name = name,
                           .unit = "faults",
                           .rounds = r->npasses,
                           .rule = SERVE_AT_MOST};
    const double faults = (double)(t->failed + t->wrong);

    k.v = (struct bench_stat){faults, faults, faults};
    serve_fact(&k, is_sum ? "hostile" : "connections", (double)t->hostile);
    serve_fact(&k, "wrong", (double)t->wrong);
    serve_fact(&k, "others", (double)t->asked);
    serve_fact(&k, "others_failed", (double)t->failed);
    serve_fact(&k, "others_p99_us", (double)t->worst_p99_ns / 1e3);
    return serve_report(r->b, &k);
}

static int report(struct robust *r)
{
    struct serve_case k = {.part = "robust",
                           .name = "leak",
                           .unit = "MiB",
                           .rounds = r->npasses,
                           .rule = SERVE_AT_MOST,
                           .must = 2,
                           .aim = 0.5};
    const double leak = ((double)r->rss_last - (double)r->rss_first) / MIB;
    int rc = report_tally(r, "idle", &r->idle, false);

    if (rc == 0)
        rc = report_tally(r, "slow", &r->slow, false);
    if (rc == 0)
        rc = report_tally(r, "oversize", &r->oversize, true);
    if (rc == 0)
        rc = report_tally(r, "malformed", &r->malformed, true);
    k.v = (struct bench_stat){leak, leak, leak};
    serve_fact(&k, "rss_first_mib", (double)r->rss_first / MIB);
    serve_fact(&k, "rss_last_mib", (double)r->rss_last / MIB);
    serve_fact(&k, "rss_most_mib", (double)r->rss_most / MIB);
    serve_fact(&k, "files_first", (double)r->files_first);
    serve_fact(&k, "files_last", (double)r->files_last);
    if (rc == 0)
        rc = serve_report(r->b, &k);
    if (rc == 0 && r->files_last > r->files_first)
        rc = cli_fail(r->b->c, "the server keeps descriptors: %g in the middle, %g at the end",
                      (double)r->files_first, (double)r->files_last);
    return rc;
}

/* This process needs a file for each connection. */
static void raise_files(size_t n)
{
    struct rlimit l;

    if (getrlimit(RLIMIT_NOFILE, &l) != 0 || l.rlim_cur >= n + SPARE_FILES)
        return;
    l.rlim_cur = l.rlim_max < n + SPARE_FILES ? l.rlim_max : n + SPARE_FILES;
    (void)setrlimit(RLIMIT_NOFILE, &l);
}

static int run_passes(struct robust *r)
{
    int rc = 0;

    raise_files(r->nidle > r->nslow ? r->nidle : r->nslow);
    r->fd = calloc(r->nidle + r->nslow, sizeof(r->fd[0]));
    if (r->fd == NULL)
        return cli_fail(r->b->c, "out of memory");
    for (size_t pass = 0; pass < r->npasses && rc == 0; pass++)
        rc = run_pass(r, pass);
    close_many(r);
    free(r->fd);
    return rc != 0 ? rc : report(r);
}

int bench_serve_robust(struct serve_bench *b)
{
    struct robust r = {.b = b,
                       .idle_s = b->is_quick ? 2 : 5,
                       .npasses = b->is_quick ? 2 : 4,
                       .nidle = (size_t)b->idle,
                       .nslow = (size_t)b->idle / 10 + 1,
                       .noversize = b->is_quick ? 14 : 140,
                       .nmalformed = b->is_quick ? 200 : 3000};
    const char *const more[] = {"--idle", b->is_quick ? "2" : "5", "--max-body", "1", NULL};
    int rc = serve_start_ours(b, more, &r.k, &r.request), ended;

    heddle_rng_seed(&r.rng, b->seed);
    if (rc == 0)
        rc = run_passes(&r);
    free(r.request.text);
    ended = child_stop(&r.k);
    return rc == 0 && ended != 0 ? cli_fail(b->c, "the server ended with status %d", ended) : rc;
}
