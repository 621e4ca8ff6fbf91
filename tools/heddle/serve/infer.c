/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * infer: a request becomes a job, a job that is over becomes a reply.
 *
 * The body of the request stays with the HTTP exchange until the reply, so the job borrows
 * from it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "serve/server_own.h"

/* The name of the header of the binary extension. */
#define JSON_LENGTH "Inference-Header-Content-Length"

static void free_job(struct serve_job *job)
{
    model_unref(job->model);
    kserve_request_fini(&job->request);
    free(job);
}

static unsigned code_of(heddle_status st)
{
    switch (st) {
    case HEDDLE_EINVAL: return 400;
    case HEDDLE_ENOMEM:
    case HEDDLE_EOVERFLOW: return 503;
    case HEDDLE_ETIMEDOUT: return 504;
    default: return 500;
    }
}

/* The outputs that the client wants, in its order; all of them when it names none. */
static size_t wanted(const struct serve_job *job, struct kserve_tensor *out, bool *is_binary)
{
    const struct kserve_request *q = &job->request;
    const struct serve_model *m = job->model;
    const size_t n = q->nout > 0 ? q->nout : m->nout;

    for (size_t i = 0; i < n; i++) {
        size_t k = i;

        for (size_t o = 0; q->nout > 0 && o < m->nout; o++) {
            if (strcmp(m->out[o].name, q->out[i].name) == 0)
                k = o;
        }
        out[i] = job->out[k];
        is_binary[i] = q->nout > 0 ? q->out[i].is_binary : q->is_binary;
    }
    return n;
}

static size_t tensor_bytes(const struct kserve_tensor *t)
{
    return t->count * kserve_type_bytes(t->type);
}

/* JSON and the bytes behind it in one block. NULL: there is no memory. */
static char *join(const struct heddle_json *j, const struct kserve_tensor *out,
                  const bool *is_binary, size_t n, size_t *bytes)
{
    char *body, *at;

    *bytes = j->len;
    for (size_t i = 0; i < n; i++)
        *bytes += is_binary[i] ? tensor_bytes(&out[i]) : 0;
    body = malloc(*bytes + 1);
    if (body == NULL)
        return NULL;
    memcpy(body, j->buf, j->len);
    at = body + j->len;
    for (size_t i = 0; i < n; i++) {
        if (is_binary[i] && out[i].count > 0) {
            memcpy(at, out[i].data, tensor_bytes(&out[i]));
            at += tensor_bytes(&out[i]);
        }
    }
    return body;
}

static void reply_tensors(struct http_exchange *x, struct serve_job *job, struct kserve_tensor *out,
                          bool *is_binary)
{
    const size_t n = wanted(job, out, is_binary);
    struct heddle_json j;
    char *body = NULL, length[24];
    struct heddle_text t;
    size_t bytes = 0;
    const struct http_field field = {JSON_LENGTH, length};

    heddle_json_init(&j, NULL);
    kserve_reply_write(&j, job->model->name, "1", job->request.id, out, is_binary, n);
    if (heddle_json_finish(&j) == HEDDLE_OK)
        body = join(&j, out, is_binary, n, &bytes);
    if (body == NULL) {
        reply_nothing(x, 503);
    } else {
        const bool has_binary = bytes > j.len;

        heddle_text_init(&t, length, sizeof(length));
        heddle_text_add(&t, "%zu", j.len);
        http_reply(x, 200, has_binary ? "application/octet-stream" : "application/json", body,
                   bytes, &field, has_binary ? 1 : 0);
    }
    heddle_json_fini(&j);
}

static void job_done(struct serve_job *job, heddle_status st, const char *why)
{
    struct http_exchange *x = job->user;
    struct kserve_tensor *out;
    bool *is_binary;
    size_t n;

    if (st != HEDDLE_OK) {
        reply_error(x, code_of(st), why != NULL && why[0] != '\0' ? why : heddle_status_text(st));
        free_job(job);
        return;
    }
    n = job->request.nout > 0 ? job->request.nout : job->model->nout;
    out = heddle_scratch_get(&job->request.mem, n, sizeof(*out));
    is_binary = heddle_scratch_get(&job->request.mem, n, sizeof(*is_binary));
    if (out == NULL || is_binary == NULL)
        reply_nothing(x, 503);
    else
        reply_tensors(x, job, out, is_binary);
    free_job(job);
}

/* The bytes of JSON in the body. False: the header makes no sense. */
static bool json_length(const struct http_exchange *x, size_t bytes, size_t *out)
{
    const char *text = http_header(x, JSON_LENGTH);
    uint64_t n = bytes;

    if (text != NULL && (heddle_parse_u64(text, &n) != HEDDLE_OK || n > bytes))
        return false;
    *out = (size_t)n;
    return true;
}

static heddle_status read_job(struct serve_job *job, struct http_exchange *x, char *why,
                              size_t why_bytes)
{
    struct kserve_request *q = &job->request;
    size_t bytes, json_bytes;
    const char *body = http_body(x, &bytes);
    heddle_status st;

    if (!json_length(x, bytes, &json_bytes))
        json_bytes = bytes + 1; /* the reader says what is wrong */
    st = kserve_request_read(q, NULL, body, bytes, json_bytes, why, why_bytes);
    if (st == HEDDLE_OK && q->generate.max_tokens > 0 && job->model->generator != NULL)
        return HEDDLE_OK; /* it is no job */
    if (st == HEDDLE_OK)
        st = model_match(job->model, job, why, why_bytes);
    if (st != HEDDLE_OK)
        return st;
    job->out = heddle_scratch_get(&q->mem, job->model->nout, sizeof(job->out[0]));
    if (job->out == NULL)
        return HEDDLE_ENOMEM;
    job->arrived_ns = heddle_clock_ns();
    if (q->timeout_us > 0 && q->timeout_us < UINT64_MAX / 2000)
        job->deadline_ns = job->arrived_ns + q->timeout_us * 1000;
    return HEDDLE_OK;
}

/* Bodies are read as they come. */
static bool is_encoded(const struct http_exchange *x)
{
    const char *how = http_header(x, "Content-Encoding");

    return how != NULL && strcmp(how, "identity") != 0;
}

void server_infer(struct server *s, struct http_exchange *x, struct serve_model *m)
{
    struct serve_job *job = is_encoded(x) ? NULL : calloc(1, sizeof(*job));
    char why[320] = "";
    heddle_status st;

    if (job == NULL) {
        model_unref(m);
        if (is_encoded(x))
            reply_error(x, 415, "bodies that are compressed are not served");
        else
            reply_nothing(x, 503);
        return;
    }
    job->model = m;
    job->user = x;
    job->done = job_done;
    st = read_job(job, x, why, sizeof(why));
    if (st == HEDDLE_OK && job->request.generate.max_tokens > 0 && m->generator != NULL) {
        server_generate_infer(x, model_ref(m), &job->request);
        free_job(job);
        return;
    }
    if (st == HEDDLE_OK) {
        server_touch(s, m);
        st = model_queue(job);
        if (st == HEDDLE_OK)
            return;
        if (st == HEDDLE_EOVERFLOW)
            (void)snprintf(why, sizeof(why), "too many requests wait for model '%s'", m->name);
    }
    reply_error(x, code_of(st), why[0] != '\0' ? why : heddle_status_text(st));
    free_job(job);
}
