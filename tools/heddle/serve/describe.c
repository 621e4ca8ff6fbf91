/* SPDX-License-Identifier: BSD-3-Clause */
/* describe: what the server says of a model, and /metrics. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "serve/server_own.h"

static void write_ports(struct heddle_json *j, const char *key, const struct serve_port *p,
                        size_t n)
{
    heddle_json_key(j, key);
    heddle_json_array(j);
    for (size_t i = 0; i < n; i++) {
        heddle_json_object(j);
        heddle_json_key_str(j, "name", p[i].name);
        heddle_json_key_str(j, "datatype", kserve_type_name(p[i].type));
        heddle_json_key(j, "shape");
        heddle_json_array(j);
        for (unsigned d = 0; d < p[i].ndim; d++)
            heddle_json_int(j, p[i].dim[d]);
        heddle_json_end(j);
        heddle_json_end(j);
    }
    heddle_json_end(j);
}

void server_describe(struct http_exchange *x, struct serve_model *m)
{
    struct heddle_json j;

    heddle_json_init(&j, NULL);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", m->name);
    heddle_json_key(&j, "versions");
    heddle_json_array(&j);
    heddle_json_str(&j, "1");
    heddle_json_end(&j);
    heddle_json_key_str(&j, "platform", "heddle_onnx");
    write_ports(&j, "inputs", m->in, m->nin);
    write_ports(&j, "outputs", m->out, m->nout);
    heddle_json_end(&j);
    reply_json(x, 200, &j);
}

static void write_config_ports(struct heddle_json *j, const char *key, const struct serve_port *p,
                               size_t n, bool can_batch)
{
    heddle_json_key(j, key);
    heddle_json_array(j);
    for (size_t i = 0; i < n; i++) {
        char type[16] = "TYPE_";

        memcpy(type + 5, kserve_type_name(p[i].type), strlen(kserve_type_name(p[i].type)) + 1);
        heddle_json_object(j);
        heddle_json_key_str(j, "name", p[i].name);
        heddle_json_key_str(j, "data_type", type);
        heddle_json_key(j, "dims");
        heddle_json_array(j);
        for (unsigned d = can_batch ? 1 : 0; d < p[i].ndim; d++)
            heddle_json_int(j, p[i].dim[d]);
        heddle_json_end(j);
        heddle_json_end(j);
    }
    heddle_json_end(j);
}

void server_config(struct http_exchange *x, struct serve_model *m)
{
    struct heddle_json j;

    heddle_json_init(&j, NULL);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", m->name);
    heddle_json_key_str(&j, "platform", "heddle_onnx");
    heddle_json_key_str(&j, "backend", "heddle");
    /* 0: the model's first dimension is no number of rows. */
    heddle_json_key_uint(&j, "max_batch_size", m->can_batch ? m->max_batch : 0);
    write_config_ports(&j, "input", m->in, m->nin, m->can_batch);
    write_config_ports(&j, "output", m->out, m->nout, m->can_batch);
    heddle_json_end(&j);
    reply_json(x, 200, &j);
}

static void write_sum(struct heddle_json *j, const char *key, uint64_t count, uint64_t ns)
{
    heddle_json_key(j, key);
    heddle_json_object(j);
    heddle_json_key_uint(j, "count", count);
    heddle_json_key_uint(j, "ns", ns);
    heddle_json_end(j);
}

static void write_stats(struct heddle_json *j, struct serve_model *m)
{
    struct serve_numbers n;
    size_t nqueued, nrunning;

    model_get_numbers(m, &n, &nqueued, &nrunning);
    heddle_json_object(j);
    heddle_json_key_str(j, "name", m->name);
    heddle_json_key_str(j, "version", "1");
    heddle_json_key_uint(j, "inference_count", n.rows);
    heddle_json_key_uint(j, "execution_count", n.batches);
    heddle_json_key(j, "inference_stats");
    heddle_json_object(j);
    write_sum(j, "success", n.good, n.total_ns);
    write_sum(j, "fail", n.failed + n.late, 0);
    write_sum(j, "queue", n.good + n.failed, n.queue_ns);
    write_sum(j, "compute_infer", n.good + n.failed, n.compute_ns);
    heddle_json_end(j);
    heddle_json_key_uint(j, "pending", nqueued);
    heddle_json_key_uint(j, "running_batches", nrunning);
    heddle_json_end(j);
}

static void reply_stats(struct http_exchange *x, struct serve_model *const *m, size_t n)
{
    struct heddle_json j;

    heddle_json_init(&j, NULL);
    heddle_json_object(&j);
    heddle_json_key(&j, "model_stats");
    heddle_json_array(&j);
    for (size_t i = 0; i < n; i++)
        write_stats(&j, m[i]);
    heddle_json_end(&j);
    heddle_json_end(&j);
    reply_json(x, 200, &j);
}

void server_stats(struct http_exchange *x, struct serve_model *m)
{
    reply_stats(x, &m, 1);
}

/* The models that are loaded, each with a reference. */
static size_t take_models(struct server *s, struct serve_model *m[SERVE_MAX_MODELS])
{
    size_t n = 0;

    pthread_mutex_lock(&s->graveyard.lock);
    for (size_t i = 0; i < s->nentries; i++) {
        if (s->entry[i].model != NULL)
            m[n++] = model_ref(s->entry[i].model);
    }
    pthread_mutex_unlock(&s->graveyard.lock);
    return n;
}

void server_all_stats(struct server *s, struct http_exchange *x)
{
    struct serve_model *m[SERVE_MAX_MODELS];
    const size_t n = take_models(s, m);

    reply_stats(x, m, n);
    for (size_t i = 0; i < n; i++)
        model_unref(m[i]);
}

/* --- /metrics ---------------------------------------------------------------------- */

enum { METRICS_BYTES = 8192 }; /* per model, with room */

struct row {
    const char *name, *help;
    uint64_t (*value)(const struct serve_numbers *n);
};

static uint64_t get_good(const struct serve_numbers *n)
{
    return n->good;
}

static uint64_t get_failed(const struct serve_numbers *n)
{
    return n->failed;
}

static uint64_t get_late(const struct serve_numbers *n)
{
    return n->late;
}

static uint64_t get_refused(const struct serve_numbers *n)
{
    return n->refused;
}

static uint64_t get_rows(const struct serve_numbers *n)
{
    return n->rows;
}

static uint64_t get_batches(const struct serve_numbers *n)
{
    return n->batches;
}

static uint64_t get_total_us(const struct serve_numbers *n)
{
    return n->total_ns / 1000;
}

static uint64_t get_queue_us(const struct serve_numbers *n)
{
    return n->queue_ns / 1000;
}

static uint64_t get_compute_us(const struct serve_numbers *n)
{
    return n->compute_ns / 1000;
}

/* Triton's names where Triton has the number. */
static const struct row rows[] = {
    {"nv_inference_request_success", "requests that were answered", get_good},
    {"nv_inference_request_failure", "requests that failed", get_failed},
    {"heddle_request_late", "requests whose deadline passed in the queue", get_late},
    {"heddle_request_refused", "requests refused because too many waited", get_refused},
    {"nv_inference_count", "rows that were computed", get_rows},
    {"nv_inference_exec_count", "batches that were computed", get_batches},
    {"nv_inference_request_duration_us", "time of requests", get_total_us},
    {"nv_inference_queue_duration_us", "time of requests in the queue", get_queue_us},
    {"nv_inference_compute_infer_duration_us", "time of requests in computation", get_compute_us},
};

/* The models of one answer and their numbers. */
struct shot {
    size_t n;
    struct serve_model *model[SERVE_MAX_MODELS];
    struct serve_numbers numbers[SERVE_MAX_MODELS];
    size_t nqueued[SERVE_MAX_MODELS], nrunning[SERVE_MAX_MODELS];
};

static void take_shot(struct server *s, struct shot *shot)
{
    shot->n = take_models(s, shot->model);
    for (size_t i = 0; i < shot->n; i++)
        model_get_numbers(shot->model[i], &shot->numbers[i], &shot->nqueued[i], &shot->nrunning[i]);
}

static void put_head(struct heddle_text *t, const char *name, const char *help, const char *type)
{
    heddle_text_add(t, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_value(struct heddle_text *t, const char *name, const char *model, uint64_t v)
{
    heddle_text_add(t, "%s{model=\"%s\",version=\"1\"} %llu\n", name, model, (unsigned long long)v);
}

static void put_histogram(struct heddle_text *t, const struct shot *shot)
{
    static const char name[] = "heddle_request_seconds";

    put_head(t, name, "time of requests", "histogram");
    for (size_t i = 0; i < shot->n; i++) {
        const struct serve_numbers *n = &shot->numbers[i];
        const char *model = shot->model[i]->name;
        uint64_t sum = 0;

        for (size_t b = 0; b <= SERVE_BUCKETS; b++) {
            sum += n->bucket[b];
            heddle_text_add(t, "%s_bucket{model=\"%s\",version=\"1\",le=\"", name, model);
            if (b < SERVE_BUCKETS)
                heddle_text_double(t, model_bucket_s(b));
            else
                heddle_text_str(t, "+Inf");
            heddle_text_add(t, "\"} %llu\n", (unsigned long long)sum);
        }
        heddle_text_add(t, "%s_sum{model=\"%s\",version=\"1\"} ", name, model);
        heddle_text_double(t, (double)n->total_ns * 1e-9);
        heddle_text_add(t, "\n%s_count{model=\"%s\",version=\"1\"} %llu\n", name, model,
                        (unsigned long long)sum);
    }
}

static void put_all(struct heddle_text *t, const struct shot *shot)
{
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        put_head(t, rows[r].name, rows[r].help, "counter");
        for (size_t i = 0; i < shot->n; i++)
            put_value(t, rows[r].name, shot->model[i]->name, rows[r].value(&shot->numbers[i]));
    }
    put_head(t, "nv_inference_pending_request_count", "requests in the queue", "gauge");
    for (size_t i = 0; i < shot->n; i++)
        put_value(t, "nv_inference_pending_request_count", shot->model[i]->name, shot->nqueued[i]);
    put_head(t, "heddle_running_batches", "batches that are being computed", "gauge");
    for (size_t i = 0; i < shot->n; i++)
        put_value(t, "heddle_running_batches", shot->model[i]->name, shot->nrunning[i]);
    put_histogram(t, shot);
    server_generate_metrics(t, shot->model, shot->n);
}

void server_metrics(struct server *s, struct http_exchange *x)
{
    struct shot *shot = calloc(1, sizeof(*shot));
    char *body = NULL;
    struct heddle_text t;

    if (shot != NULL) {
        const size_t bytes =
            METRICS_BYTES + (size_t)(METRICS_BYTES + 16 * KSERVE_MAX_NAME) * SERVE_MAX_MODELS;

        take_shot(s, shot);
        body = malloc(bytes);
        if (body != NULL) {
            heddle_text_init(&t, body, bytes);
            put_all(&t, shot);
        }
        for (size_t i = 0; i < shot->n; i++)
            model_unref(shot->model[i]);
        free(shot);
    }
    if (body == NULL)
        reply_nothing(x, 503);
    else
        http_reply(x, 200, "text/plain; version=0.0.4", body, t.len, NULL, 0);
}
