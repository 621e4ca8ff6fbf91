/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace/view/http: from the bytes of a request to an answer.
 *
 * Purpose    the part of HTTP/1.1 that a browser on the same machine needs: GET
 *            of a fixed set of names.
 * Safety     (1) a name is compared, never opened: there is no path
 *            (2) the Host must be this machine's own name for itself: a page of
 *                another site whose name was made to resolve to 127.0.0.1 gets
 *                nothing
 *            (3) what is not understood ends the connection
 */
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "trace/view/view.h"

struct request {
    const char *target; /* without query */
    size_t target_len;
    const char *query; /* NULL: none */
    size_t query_len;
    bool is_get, is_close, has_body;
    unsigned nhosts;
    bool is_local;
};

/* --- parsing -------------------------------------------------------------- */

static bool is_word(const char *s, size_t n, const char *word)
{
    return strlen(word) == n && strncasecmp(s, word, n) == 0;
}

/* "localhost", "127.0.0.1" or "[::1]", with or without a port. */
static bool is_local_host(const char *s, size_t n)
{
    size_t k = n;

    while (k > 0 && s[k - 1] >= '0' && s[k - 1] <= '9')
        k--;
    if (k > 0 && k < n && s[k - 1] == ':')
        n = k - 1;
    return is_word(s, n, "localhost") || is_word(s, n, "127.0.0.1") || is_word(s, n, "[::1]");
}

/* true: "close" is among the words of a Connection header. */
static bool has_close(const char *s, size_t n)
{
    for (size_t i = 0; i + 5 <= n; i++)
        if (strncasecmp(s + i, "close", 5) == 0)
            return true;
    return false;
}

/* One header; false: it is malformed. */
static bool parse_header(struct request *r, const char *s, size_t n)
{
    const char *colon = memchr(s, ':', n);
    size_t k;

    if (colon == NULL || colon == s || s[0] == ' ' || s[0] == '\t' || colon[-1] == ' ')
        return false;
    k = (size_t)(colon - s);
    colon++;
    n -= k + 1;
    while (n > 0 && (*colon == ' ' || *colon == '\t')) {
        colon++;
        n--;
    }
    while (n > 0 && (colon[n - 1] == ' ' || colon[n - 1] == '\t'))
        n--;
    if (is_word(s, k, "Host")) {
        r->nhosts++;
        r->is_local = is_local_host(colon, n);
    } else if (is_word(s, k, "Connection")) {
        r->is_close |= has_close(colon, n);
    } else if (is_word(s, k, "Transfer-Encoding")) {
        r->has_body = true;
    } else if (is_word(s, k, "Content-Length")) {
        r->has_body |= !(n == 1 && *colon == '0');
    }
    return true;
}

/* "GET /x HTTP/1.1"; the status of an error, or 0. */
static unsigned parse_first(struct request *r, const char *s, size_t n)
{
    const char *a = memchr(s, ' ', n), *b, *q;

    if (a == NULL || a == s)
        return 400;
    b = memchr(a + 1, ' ', n - (size_t)(a + 1 - s));
    if (b == NULL || b == a + 1)
        return 400;
    r->is_get = (size_t)(a - s) == 3 && memcmp(s, "GET", 3) == 0;
    r->target = a + 1;
    r->target_len = (size_t)(b - a - 1);
    q = memchr(r->target, '?', r->target_len);
    if (q != NULL) {
        r->query = q + 1;
        r->query_len = (size_t)(b - q - 1);
        r->target_len = (size_t)(q - r->target);
    }
    n -= (size_t)(b + 1 - s);
    if (n != 8 || memcmp(b + 1, "HTTP/1.", 7) != 0)
        return n >= 5 && memcmp(b + 1, "HTTP/", 5) == 0 ? 505 : 400;
    if (b[8] != '0' && b[8] != '1')
        return 505;
    r->is_close = b[8] == '0';
    r->nhosts = 0;
    return 0;
}

/* All lines of the head; 0, or the status of an error. */
static unsigned parse(struct request *r, const char *s, size_t n)
{
    bool is_first = true;

    if (memchr(s, '\0', n) != NULL)
        return 400;
    while (n > 0) {
        const char *end = memmem(s, n, "\r\n", 2);
        const size_t len = (size_t)(end - s); /* the head ends with one */
        unsigned status = 0;

        if (is_first)
            status = parse_first(r, s, len);
        else if (len > 0 && !parse_header(r, s, len))
            status = 400;
        if (status != 0)
            return status;
        is_first = false;
        s += len + 2;
        n -= len + 2;
    }
    if (r->nhosts != 1)
        return 400;
    if (!r->is_local)
        return 403;
    if (!r->is_get)
        return 405;
    return r->has_body ? 400 : 0;
}

/* --- answers -------------------------------------------------------------- */

static const char *reason(unsigned status)
{
    switch (status) {
    case 200: return "OK";
    case 204: return "No Content";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 409: return "Conflict";
    case 431: return "Request Header Fields Too Large";
    case 505: return "HTTP Version Not Supported";
    }
    return "Bad Request";
}

static void put_head(struct view_answer *ans, unsigned status, const char *type, size_t bytes)
{
    struct heddle_text t;

    heddle_text_init(&t, ans->head, sizeof ans->head);
    heddle_text_add(&t, "HTTP/1.1 %u %s\r\n", status, reason(status));
    if (status != 204)
        heddle_text_add(&t, "Content-Type: %s\r\nContent-Length: %zu\r\n", type, bytes);
    heddle_text_str(&t, "Cache-Control: no-store\r\n"
                        "X-Content-Type-Options: nosniff\r\n"
                        "Cross-Origin-Resource-Policy: same-origin\r\n"
                        "Content-Security-Policy: default-src 'self' "
                        "'unsafe-inline' blob: data:; frame-ancestors 'none'\r\n");
    if (status == 405)
        heddle_text_str(&t, "Allow: GET\r\n");
    if (ans->is_last)
        heddle_text_str(&t, "Connection: close\r\n");
    heddle_text_str(&t, "\r\n");
    ans->head_len = t.len;
}

/* A line of text for people. */
static void put_error(struct view_answer *ans, unsigned status)
{
    struct heddle_text t;
    char body[64];

    heddle_text_init(&t, body, sizeof body);
    heddle_text_add(&t, "%u %s\n", status, reason(status));
    put_head(ans, status, "text/plain", t.len);
    memcpy(ans->head + ans->head_len, body, t.len);
    ans->head_len += t.len;
}

static void put_body(struct view_answer *ans, const char *type, const void *body, size_t n)
{
    ans->body = body;
    ans->body_len = n;
    put_head(ans, 200, type, n);
}

/* false: the query asks for a generation that is gone. */
static bool is_current(const struct view_pack *p, const struct request *r)
{
    uint64_t g = 0;

    if (r->query == NULL || r->query_len < 3 || memcmp(r->query, "g=", 2) != 0)
        return true;
    for (size_t i = 2; i < r->query_len; i++) {
        if (r->query[i] < '0' || r->query[i] > '9')
            break;
        g = 10 * g + (uint64_t)(r->query[i] - '0');
    }
    return g == p->generation;
}

/* What follows "/pack/". */
static void answer_pack(struct view_site *s, const char *name, size_t n, const struct request *r,
                        struct view_answer *ans)
{
    const unsigned no = n > 2 && name[1] == '/' ? (unsigned)(name[0] - '0') : VIEW_MAX_PACKS;
    const struct view_array *x = NULL;
    char key[sizeof x->name] = "";
    struct view_pack *p;

    if (no >= s->npacks || n - 2 >= sizeof key) {
        put_error(ans, 404);
        return;
    }
    memcpy(key, name + 2, n - 2);
    if (strcmp(key, "dir") == 0) {
        if (s->next[no] != NULL) {
            view_pack_unref(s->pack[no]);
            s->pack[no] = s->next[no];
            s->next[no] = NULL;
        }
        p = s->pack[no];
        ans->pack = view_pack_ref(p);
        put_body(ans, "application/json", p->dir, p->dir_len);
        return;
    }
    p = s->pack[no];
    x = view_pack_find(p, key);
    if (x == NULL || !is_current(p, r)) {
        put_error(ans, x == NULL ? 404 : 409);
        return;
    }
    ans->pack = view_pack_ref(p);
    put_body(ans, "application/octet-stream", x->data, view_array_bytes(x));
}

static void route(struct view_site *s, const struct request *r, struct view_answer *ans)
{
    const char *t = r->target;
    const size_t n = r->target_len;

    if (n == 1 && t[0] == '/')
        put_body(ans, "text/html; charset=utf-8", s->page, s->page_len);
    else if (n > 6 && memcmp(t, "/pack/", 6) == 0)
        answer_pack(s, t + 6, n - 6, r, ans);
    else if (n == 12 && memcmp(t, "/favicon.ico", 12) == 0)
        put_head(ans, 204, "", 0); /* browsers ask for it by themselves */
    else
        put_error(ans, 404);
}

size_t view_http_answer(struct view_site *s, const char *in, size_t n, struct view_answer *ans)
{
    const char *end = memmem(in, n, "\r\n\r\n", 4);
    struct request r = {0};
    unsigned status;
    size_t len;

    memset(ans, 0, sizeof *ans);
    if (end == NULL && n < VIEW_MAX_REQUEST)
        return 0;
    len = end == NULL ? n : (size_t)(end - in) + 4;
    status = end == NULL ? 431 : parse(&r, in, len - 2);
    ans->is_last = status != 0 || r.is_close;
    if (status != 0)
        put_error(ans, status);
    else
        route(s, &r, ans);
    return len;
}

void view_answer_fini(struct view_answer *ans)
{
    view_pack_unref(ans->pack);
    ans->pack = NULL;
}
