/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * generate_http: requests for tokens, and their replies.
 *
 *     POST .../generate         {"input_ids": [1, 2], "max_tokens": 16, "temperature": 0.8, ...}
 *     POST .../generate_stream  the same; an event for each token
 *     POST .../infer            with the parameter max_tokens: the input input_ids, and the
 *                               output output_ids
 *
 * The options are members of the object or of its `parameters`.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json_in.h"
#include "base/text.h"
#include "base/why.h"
#include "serve/generate.h"
#include "serve/server_own.h"

enum form { FORM_REPLY, FORM_STREAM, FORM_INFER };

/* A request in flight. */
struct ask {
    struct generation job;
    struct serve_model *model;
    enum form form;
    struct http_exchange *x;    /* but with a stream */
    struct http_stream *stream; /* FORM_STREAM, once it has begun */
    int64_t *token;
    size_t n, room;
    bool has_no_memory;
    char id[KSERVE_MAX_NAME];
};

static void free_ask(struct ask *a)
{
    model_unref(a->model);
    free(a->job.prompt);
    free(a->token);
    free(a);
}

static unsigned code_of(heddle_status st)
{
    switch (st) {
    case HEDDLE_EINVAL:
    case HEDDLE_EOVERFLOW: return 400;
    case HEDDLE_ENOMEM:
    case HEDDLE_ECANCELED: return 503;
    default: return 500;
    }
}

/* --- replies ----------------------------------------------------------------------------- */

static void begin_object(struct heddle_json *j, const struct ask *a)
{
    heddle_json_init(j, NULL);
    heddle_json_object(j);
    heddle_json_key_str(j, "model_name", a->model->name);
    heddle_json_key_str(j, "model_version", "1");
}

/* One event. False: it cannot be sent. */
static bool send_event(struct ask *a, struct heddle_json *j)
{
    bool is_good = heddle_json_finish(j) == HEDDLE_OK;

    is_good = is_good && http_stream_write(a->stream, "data: ", 6) &&
              http_stream_write(a->stream, j->buf, j->len) &&
              http_stream_write(a->stream, "\n\n", 2);
    heddle_json_fini(j);
    return is_good;
}

static bool send_token(struct ask *a, int64_t token)
{
    struct heddle_json j;

    begin_object(&j, a);
    heddle_json_key_uint(&j, "index", a->n);
    heddle_json_key_int(&j, "token", token);
    heddle_json_end(&j);
    return send_event(a, &j);
}

/* The first piece takes the exchange. */
static bool begin_stream(struct ask *a)
{
    if (a->stream == NULL && a->x != NULL) {
        a->stream = http_reply_stream(a->x, 200, "text/event-stream");
        a->x = NULL;
    }
    return a->stream != NULL;
}

static bool on_token(void *user, int64_t token)
{
    struct ask *a = user;

    if (a->form == FORM_STREAM) {
        const bool is_good = begin_stream(a) && send_token(a, token);

        a->n++;
        return is_good;
    }
    if (a->n == a->room) {
        const size_t room = a->room > 0 ? 2 * a->room : 64;
        int64_t *more = realloc(a->token, room * sizeof(*more));

        a->has_no_memory = more == NULL;
        if (more == NULL)
            return false;
        a->token = more;
        a->room = room;
    }
    a->token[a->n++] = token;
    return true;
}

static bool on_is_gone(void *user)
{
    const struct ask *a = user;

    return a->stream != NULL ? http_stream_is_gone(a->stream) : a->x == NULL || http_is_gone(a->x);
}

static void end_stream(struct ask *a, const char *reason, const char *why)
{
    struct heddle_json j;

    begin_object(&j, a);
    heddle_json_key_uint(&j, "output_tokens", a->n);
    heddle_json_key_str(&j, reason != NULL ? "finish_reason" : "error",
                        reason != NULL ? reason : why);
    heddle_json_end(&j);
    (void)send_event(a, &j);
    http_stream_end(a->stream);
}

static void reply_tokens(struct ask *a, const char *reason)
{
    struct heddle_json j;

    begin_object(&j, a);
    heddle_json_key(&j, "output_ids");
    heddle_json_array(&j);
    for (size_t i = 0; i < a->n; i++)
        heddle_json_int(&j, a->token[i]);
    heddle_json_end(&j);
    heddle_json_key_str(&j, "finish_reason", reason);
    heddle_json_end(&j);
    reply_json(a->x, 200, &j);
}

static void reply_tensor(struct ask *a)
{
    struct kserve_tensor t = {.name = "output_ids",
                              .type = KSERVE_INT64,
                              .ndim = 2,
                              .dim = {1, (int64_t)a->n},
                              .count = a->n,
                              .data = a->token};
    const bool is_binary = false;
    struct heddle_json j;

    heddle_json_init(&j, NULL);
    kserve_reply_write(&j, a->model->name, "1", a->id, &t, &is_binary, 1);
    reply_json(a->x, 200, &j);
}

static void on_ended(void *user, const char *reason, heddle_status st, const char *why)
{
    struct ask *a = user;

    if (a->has_no_memory)
        st = HEDDLE_ENOMEM;
    why = st == HEDDLE_ENOMEM || why[0] == '\0' ? heddle_status_text(st) : why;
    if (a->stream != NULL)
        end_stream(a, reason, why);
    else if (a->x != NULL && reason == NULL)
        reply_error(a->x, code_of(st), why);
    else if (a->x != NULL && a->form == FORM_INFER)
        reply_tensor(a);
    else if (a->x != NULL)
        reply_tokens(a, reason);
    free_ask(a);
}

/* --- requests ------------------------------------------------------------------------------ */

struct body {
    struct heddle_json_in json;
    struct ask *a;
    bool has_prompt;
    char *why;
    size_t why_bytes;
};

#define REFUSE(b, ...) heddle_why((b)->why, (b)->why_bytes, HEDDLE_EINVAL, __VA_ARGS__)

static heddle_status read_prompt(struct body *b)
{
    struct heddle_json_item item;
    struct generation *job = &b->a->job;
    size_t room = 0;

    if (heddle_json_next(&b->json, &item) != HEDDLE_JSON_ARRAY || b->has_prompt)
        return REFUSE(b, "'input_ids' is not one array of tokens");
    b->has_prompt = true;
    while (heddle_json_next(&b->json, &item) != HEDDLE_JSON_CLOSE) {
        if (job->nprompt == room) {
            int64_t *more;

            room = room > 0 ? 2 * room : 64;
            more = realloc(job->prompt, room * sizeof(*more));
            if (more == NULL)
                return HEDDLE_ENOMEM;
            job->prompt = more;
        }
        if (heddle_json_get_i64(&item, &job->prompt[job->nprompt]) != HEDDLE_OK)
            return REFUSE(b, "element %zu of 'input_ids' is no token", job->nprompt);
        job->nprompt++;
    }
    return HEDDLE_OK;
}

static heddle_status read_object(struct body *b, bool is_outer)
{
    struct heddle_json_item item;

    if (heddle_json_next(&b->json, &item) != HEDDLE_JSON_OBJECT)
        return REFUSE(b, "the body, or 'parameters', is not an object of JSON");
    while (heddle_json_next(&b->json, &item) == HEDDLE_JSON_KEY) {
        heddle_status st = HEDDLE_OK;
        bool is_known = true;

        if (is_outer && heddle_json_is(&item, "input_ids"))
            st = read_prompt(b);
        else if (is_outer && heddle_json_is(&item, "parameters"))
            st = read_object(b, false);
        else if (is_outer && heddle_json_is(&item, "text_input"))
            st = REFUSE(b, "'text_input' needs a tokenizer, and this server has none: give "
                           "'input_ids'");
        else
            st = kserve_generate_member(&b->json, &item, &b->a->job.ask, &is_known, b->why,
                                        b->why_bytes);
        if (st != HEDDLE_OK)
            return st;
        if (!is_known && (heddle_json_next(&b->json, &item) == HEDDLE_JSON_BAD ||
                          !heddle_json_skip(&b->json, &item)))
            break;
    }
    return item.kind == HEDDLE_JSON_CLOSE ? HEDDLE_OK
                                          : REFUSE(b, "the JSON is malformed at byte %zu: %s",
                                                   (size_t)(b->json.at - b->json.begin),
                                                   b->json.what != NULL ? b->json.what : "");
}

static heddle_status read_body(struct ask *a, char *why, size_t why_bytes)
{
    struct body b = {.a = a, .why = why, .why_bytes = why_bytes};
    struct heddle_json_item item;
    size_t bytes;
    const char *text = http_body(a->x, &bytes);
    heddle_status st;

    heddle_json_in_init(&b.json, text, bytes);
    st = read_object(&b, true);
    if (st == HEDDLE_OK && heddle_json_next(&b.json, &item) != HEDDLE_JSON_DONE)
        st = REFUSE(&b, "there is more than one object of JSON");
    if (st == HEDDLE_OK && !b.has_prompt)
        st = REFUSE(&b, "the request has no 'input_ids'");
    return st;
}

/* The input input_ids of an inference request becomes the prompt. */
static heddle_status read_tensor(struct ask *a, const struct kserve_request *q, char *why,
                                 size_t why_bytes)
{
    for (size_t i = 0; i < q->nin; i++) {
        const struct kserve_tensor *t = &q->in[i];

        if (strcmp(t->name, "input_ids") != 0)
            continue;
        if (t->type != KSERVE_INT64 || t->ndim < 1 || (size_t)t->dim[t->ndim - 1] != t->count)
            return heddle_why(why, why_bytes, HEDDLE_EINVAL,
                              "to generate tokens, 'input_ids' has to be one row of INT64");
        a->job.prompt = malloc(t->count * sizeof(int64_t) + 1);
        if (a->job.prompt == NULL)
            return HEDDLE_ENOMEM;
        if (t->count > 0)
            memcpy(a->job.prompt, t->data, t->count * sizeof(int64_t));
        a->job.nprompt = t->count;
        return HEDDLE_OK;
    }
    return heddle_why(why, why_bytes, HEDDLE_EINVAL, "the request has no input 'input_ids'");
}

enum { DEFAULT_TOKENS = 16 };

static struct ask *create_ask(struct http_exchange *x, struct serve_model *m, enum form form)
{
    struct ask *a = calloc(1, sizeof(*a));

    if (a == NULL) {
        model_unref(m);
        reply_nothing(x, 503);
        return NULL;
    }
    a->model = m;
    a->form = form;
    a->x = x;
    a->job =
        (struct generation){.is_gone = on_is_gone, .token = on_token, .ended = on_ended, .user = a};
    return a;
}

/* The request goes to the generator, or is refused. */
static void submit(struct ask *a, heddle_status st, const char *why)
{
    struct http_exchange *x = a->x;

    if (a->job.ask.max_tokens == 0)
        a->job.ask.max_tokens = DEFAULT_TOKENS;
    /* Zero everywhere is the highest score; a choice without a temperature has 1. */
    if (a->job.ask.temperature == 0 && (a->job.ask.top_k > 0 || a->job.ask.top_p > 0))
        a->job.ask.temperature = 1;
    if (st == HEDDLE_OK) {
        if (generator_submit(a->model->generator, &a->job) == HEDDLE_OK)
            return;
        reply_error(x, 503, "too many requests wait for tokens of this model");
    } else {
        reply_error(x, code_of(st), why[0] != '\0' ? why : heddle_status_text(st));
    }
    free_ask(a);
}

void server_generate(struct http_exchange *x, struct serve_model *m, bool is_stream)
{
    struct ask *a;
    char why[320] = "";

    if (m->generator == NULL) {
        reply_error(x, 400, "the model is no decoder: it generates no tokens");
        model_unref(m);
        return;
    }
    a = create_ask(x, m, is_stream ? FORM_STREAM : FORM_REPLY);
    if (a != NULL)
        submit(a, read_body(a, why, sizeof(why)), why);
}

void server_generate_infer(struct http_exchange *x, struct serve_model *m,
                           const struct kserve_request *q)
{
    struct ask *a = create_ask(x, m, FORM_INFER);
    char why[320] = "";

    if (a == NULL)
        return;
    a->job.ask = q->generate;
    memcpy(a->id, q->id, sizeof(a->id));
    submit(a, read_tensor(a, q, why, sizeof(why)), why);
}
