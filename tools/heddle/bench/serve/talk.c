/* SPDX-License-Identifier: BSD-3-Clause */
/* talk: see talk.h. */
#include "bench/serve/talk.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/json_in.h"
#include "base/text.h"
#include "base/why.h"
#include "serve/kserve.h"

enum { HEAD_BYTES = 4096, DOC_BYTES = 65536, TIMEOUT_MS = 10000 };

bool talk_parse_url(const char *url, struct sockaddr_in *to, const char **path)
{
    char host[64], port[8] = "80";
    const char *at = url;
    uint64_t number;
    size_t n;

    *to = (struct sockaddr_in){.sin_family = AF_INET};
    if (strncmp(at, "http://", 7) == 0)
        at += 7;
    n = strcspn(at, ":/");
    if (n == 0 || n >= sizeof(host))
        return false;
    memcpy(host, at, n);
    host[n] = '\0';
    at += n;
    if (*at == ':') {
        n = strcspn(++at, "/");
        if (n == 0 || n >= sizeof(port))
            return false;
        memcpy(port, at, n);
        port[n] = '\0';
        at += n;
    }
    if (heddle_parse_u64(port, &number) != HEDDLE_OK || number == 0 || number > UINT16_MAX)
        return false;
    to->sin_port = htons((uint16_t)number);
    *path = *at == '/' ? at : "/";
    return inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, &to->sin_addr) ==
           1;
}

int talk_connect(const struct sockaddr_in *to, int timeout_ms)
{
    const struct timeval t = {timeout_ms / 1000, timeout_ms % 1000 * 1000};
    const int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
    if (connect(fd, (const struct sockaddr *)to, sizeof(*to)) != 0) {
        const int e = errno;

        (void)close(fd);
        errno = e;
        return -1;
    }
    return fd;
}

bool talk_send(int fd, const void *data, size_t bytes)
{
    const char *at = data;

    while (bytes > 0) {
        const ssize_t n = send(fd, at, bytes, MSG_NOSIGNAL);

        if (n <= 0)
            return false;
        at += n;
        bytes -= (size_t)n;
    }
    return true;
}

/* Reads to the end of the head; its bytes, 0 when it does not come. */
static size_t receive_head(int fd, char head[HEAD_BYTES])
{
    size_t n = 0;

    while (n < 4 || memcmp(head + n - 4, "\r\n\r\n", 4) != 0) {
        if (n == HEAD_BYTES - 1 || recv(fd, head + n, 1, 0) != 1)
            return 0;
        n++;
    }
    head[n] = '\0';
    return n;
}

int talk_receive(int fd, char *body, size_t cap)
{
    char head[HEAD_BYTES], byte;
    size_t left = 0, n = 0;
    const char *at;

    body[0] = '\0';
    if (receive_head(fd, head) == 0)
        return 0;
    if (strncmp(head, "HTTP/1.", 7) != 0)
        return -1;
    for (at = strchr(head, '\n'); at != NULL; at = strchr(at + 1, '\n')) {
        if (strncasecmp(at + 1, "content-length:", 15) == 0)
            left = (size_t)strtoull(at + 16, NULL, 10);
    }
    for (; left > 0; left--) {
        if (recv(fd, &byte, 1, 0) != 1)
            return 0;
        if (n + 1 < cap)
            body[n++] = byte;
    }
    body[n] = '\0';
    return (int)strtol(head + 9, NULL, 10);
}

int talk_get(const struct sockaddr_in *to, const char *path, char *body, size_t cap)
{
    const int fd = talk_connect(to, TIMEOUT_MS);
    char text[1024];
    struct heddle_text t;
    int code = 0;

    body[0] = '\0';
    if (fd < 0)
        return 0;
    heddle_text_init(&t, text, sizeof(text));
    heddle_text_add(&t, "GET %s HTTP/1.1\r\nHost: heddle\r\nConnection: close\r\n\r\n", path);
    if (!t.is_truncated && talk_send(fd, text, t.len))
        code = talk_receive(fd, body, cap);
    (void)close(fd);
    return code;
}

/* --- the request for a model ---------------------------------------------------------- */

/* What the request is made of: its JSON, and how many zeros follow. */
struct made {
    struct heddle_json j;
    size_t zeros;
};

static size_t type_bytes(const struct heddle_json_item *item)
{
    for (int t = 0; t < KSERVE_NTYPES; t++) {
        if (heddle_json_is(item, kserve_type_name((enum kserve_type)t)))
            return kserve_type_bytes((enum kserve_type)t);
    }
    return 0;
}

static bool copy_text(struct heddle_json *j, const char *key, const struct heddle_json_item *item)
{
    char text[KSERVE_MAX_NAME];
    size_t len;

    if (heddle_json_get_string(item, text, sizeof(text), &len) != HEDDLE_OK)
        return false;
    heddle_json_key_str(j, key, text);
    return true;
}

/* The shape, with 1 for what may be anything; multiplies *count by each dimension. */
static bool copy_shape(struct heddle_json *j, struct heddle_json_in *in, size_t *count)
{
    struct heddle_json_item item;
    int64_t d;

    heddle_json_key(j, "shape");
    heddle_json_array(j);
    while (heddle_json_next(in, &item) == HEDDLE_JSON_NUMBER) {
        if (heddle_json_get_i64(&item, &d) != HEDDLE_OK)
            return false;
        d = d < 0 ? 1 : d;
        heddle_json_int(j, d);
        if (!heddle_mul(count, *count, (size_t)d))
            return false;
    }
    heddle_json_end(j);
    return item.kind == HEDDLE_JSON_CLOSE;
}

/* One object of "inputs", behind its brace. */
static bool copy_input(struct made *m, struct heddle_json_in *in)
{
    struct heddle_json_item key, item;
    size_t bytes = 0, count = 1;
    bool is_good = true;

    heddle_json_object(&m->j);
    while (is_good && heddle_json_next(in, &key) == HEDDLE_JSON_KEY) {
        (void)heddle_json_next(in, &item);
        if (heddle_json_is(&key, "shape")) {
            is_good = item.kind == HEDDLE_JSON_ARRAY && copy_shape(&m->j, in, &count);
        } else if (heddle_json_is(&key, "name")) {
            is_good = copy_text(&m->j, "name", &item);
        } else if (heddle_json_is(&key, "datatype")) {
            bytes = type_bytes(&item);
            is_good = bytes > 0 && copy_text(&m->j, "datatype", &item);
        } else {
            is_good = heddle_json_skip(in, &item);
        }
    }
    heddle_json_key(&m->j, "parameters");
    heddle_json_object(&m->j);
    heddle_json_key_uint(&m->j, "binary_data_size", count * bytes);
    heddle_json_end(&m->j);
    heddle_json_end(&m->j);
    m->zeros += count * bytes;
    return is_good && bytes > 0;
}

static bool copy_inputs(struct made *m, struct heddle_json_in *in)
{
    struct heddle_json_item item;

    if (heddle_json_next(in, &item) != HEDDLE_JSON_ARRAY)
        return false;
    heddle_json_key(&m->j, "inputs");
    heddle_json_array(&m->j);
    while (heddle_json_next(in, &item) == HEDDLE_JSON_OBJECT) {
        if (!copy_input(m, in))
            return false;
    }
    heddle_json_end(&m->j);
    return item.kind == HEDDLE_JSON_CLOSE;
}

/* The model's metadata become the JSON of a request. */
static bool copy_model(struct made *m, const char *text)
{
    struct heddle_json_in in;
    struct heddle_json_item key, item;
    bool has_inputs = false;

    heddle_json_in_init(&in, text, strlen(text));
    heddle_json_object(&m->j);
    if (heddle_json_next(&in, &item) != HEDDLE_JSON_OBJECT)
        return false;
    while (heddle_json_next(&in, &key) == HEDDLE_JSON_KEY) {
        if (heddle_json_is(&key, "inputs")) {
            has_inputs = true;
            if (!copy_inputs(m, &in))
                return false;
        } else if (heddle_json_next(&in, &item) == HEDDLE_JSON_BAD ||
                   !heddle_json_skip(&in, &item)) {
            return false;
        }
    }
    heddle_json_key(&m->j, "parameters");
    heddle_json_object(&m->j);
    heddle_json_key_bool(&m->j, "binary_data_output", true);
    heddle_json_end(&m->j);
    heddle_json_end(&m->j);
    return has_inputs && heddle_json_finish(&m->j) == HEDDLE_OK;
}

static bool join(const struct made *m, const char *path, struct talk_request *out)
{
    const size_t body = m->j.len + m->zeros, cap = HEAD_BYTES + body;
    struct heddle_text t;
    char *text = calloc(1, cap);

    if (text == NULL)
        return false;
    heddle_text_init(&t, text, HEAD_BYTES);
    heddle_text_add(&t,
                    "POST %s HTTP/1.1\r\nHost: heddle\r\nContent-Type: application/octet-stream\r\n"
                    "Inference-Header-Content-Length: %zu\r\nContent-Length: %zu\r\n\r\n",
                    path, m->j.len, body);
    memcpy(text + t.len, m->j.buf, m->j.len);
    memset(text + t.len + m->j.len, 0, m->zeros);
    *out = (struct talk_request){text, t.len + body};
    return true;
}

static heddle_status make_infer(const struct sockaddr_in *to, const char *path, size_t model_bytes,
                                struct talk_request *out, char *why, size_t why_bytes)
{
    char model[1024], *doc = malloc(DOC_BYTES);
    struct made m = {.zeros = 0};
    heddle_status st = HEDDLE_OK;
    int code;

    if (doc == NULL)
        return HEDDLE_ENOMEM;
    memcpy(model, path, model_bytes);
    model[model_bytes] = '\0';
    heddle_json_init(&m.j, NULL);
    code = talk_get(to, model, doc, DOC_BYTES);
    if (code != 200)
        st = heddle_why(why, why_bytes, HEDDLE_EIO, "the server answers %d to GET %s", code, model);
    else if (!copy_model(&m, doc))
        st = heddle_why(why, why_bytes, HEDDLE_EIO,
                        "what the server says of its model at %s is not understood", model);
    else if (!join(&m, path, out))
        st = HEDDLE_ENOMEM;
    heddle_json_fini(&m.j);
    free(doc);
    return st;
}

heddle_status talk_make_request(const struct sockaddr_in *to, const char *path,
                                struct talk_request *out, char *why, size_t why_bytes)
{
    static const char infer[] = "/infer", form[] = "GET %s HTTP/1.1\r\nHost: heddle\r\n\r\n";
    const size_t n = strlen(path), tail = sizeof(infer) - 1;
    struct heddle_text t;

    if (n > 1000)
        return heddle_why(why, why_bytes, HEDDLE_EIO, "the path is longer than 1000 bytes");
    if (n > tail && strcmp(path + n - tail, infer) == 0)
        return make_infer(to, path, n - tail, out, why, why_bytes);
    out->text = malloc(n + sizeof(form));
    if (out->text == NULL)
        return HEDDLE_ENOMEM;
    heddle_text_init(&t, out->text, n + sizeof(form));
    heddle_text_add(&t, form, path);
    out->bytes = t.len;
    return HEDDLE_OK;
}
