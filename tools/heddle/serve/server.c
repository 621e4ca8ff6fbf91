/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server: who answers what, and the thread for what may take time.
 *
 * Registry   a name has a place for as long as the server lives; its model comes and goes.
 *            The lock of the graveyard guards both.
 * Thread     sleeps until the next deadline of a job, or until it is woken up: by a dead
 *            model, a job with a deadline, a model to load, the end.
 * End        new connections are refused, the queues empty themselves, then the HTTP server
 *            ends, then the models, then the thread.
 */
#include "serve/server.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/why.h"
#include "heddle/version.h"
#include "serve/server_own.h"

enum { TICK_MS = 100, DRAIN_MS = 1, GRACE_MS = 500 };

/* --- replies ----------------------------------------------------------------------- */

void reply_nothing(struct http_exchange *x, unsigned code)
{
    http_reply(x, code, NULL, NULL, 0, NULL, 0);
}

void reply_json(struct http_exchange *x, unsigned code, struct heddle_json *j)
{
    char *body = NULL;

    if (heddle_json_finish(j) == HEDDLE_OK)
        body = malloc(j->len + 1);
    if (body == NULL) {
        reply_nothing(x, 503);
    } else {
        memcpy(body, j->buf, j->len);
        http_reply(x, code, "application/json", body, j->len, NULL, 0);
    }
    heddle_json_fini(j);
}

void reply_error(struct http_exchange *x, unsigned code, const char *sentence)
{
    struct heddle_json j;

    heddle_json_init(&j, NULL);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "error", sentence);
    heddle_json_end(&j);
    reply_json(x, code, &j);
}

/* --- the registry --------------------------------------------------------------------- */

static void lock(struct server *s)
{
    pthread_mutex_lock(&s->graveyard.lock);
}

static void unlock(struct server *s)
{
    pthread_mutex_unlock(&s->graveyard.lock);
}

static struct server_entry *find_entry(struct server *s, const char *name)
{
    for (size_t i = 0; i < s->nentries; i++) {
        if (strcmp(s->entry[i].name, name) == 0)
            return &s->entry[i];
    }
    return NULL;
}

struct serve_model *server_find(struct server *s, const char *name)
{
    struct serve_model *m = NULL;
    const struct server_entry *e;

    lock(s);
    e = find_entry(s, name);
    if (e != NULL && e->model != NULL)
        m = model_ref(e->model);
    unlock(s);
    return m;
}

static bool is_ready(struct server *s)
{
    bool all = !heddle_load_rlx(&s->is_draining);

    lock(s);
    for (size_t i = 0; i < s->nentries; i++)
        all = all && (s->entry[i].model != NULL || !s->entry[i].wants_load);
    unlock(s);
    return all;
}

static void reply_index(struct server *s, struct http_exchange *x)
{
    struct heddle_json j;

    heddle_json_init(&j, NULL);
    heddle_json_array(&j);
    lock(s);
    for (size_t i = 0; i < s->nentries; i++) {
        heddle_json_object(&j);
        heddle_json_key_str(&j, "name", s->entry[i].name);
        heddle_json_key_str(&j, "version", "1");
        heddle_json_key_str(&j, "state", s->entry[i].model != NULL ? "READY" : "UNAVAILABLE");
        heddle_json_end(&j);
    }
    unlock(s);
    heddle_json_end(&j);
    reply_json(x, 200, &j);
}

/* POST .../load: the server's thread does it and replies. */
static void ask_to_load(struct server *s, struct http_exchange *x, const char *name)
{
    struct server_entry *e;
    bool is_asked = false;

    lock(s);
    e = find_entry(s, name);
    if (e != NULL && !e->wants_load) {
        e->wants_load = true;
        e->loading = x;
        is_asked = true;
        pthread_cond_signal(&s->graveyard.cond);
    }
    unlock(s);
    if (e == NULL)
        reply_error(x, 404, "there is no such model");
    else if (!is_asked)
        reply_error(x, 409, "the model is being loaded");
}

/* The registry's reference goes; requests of the model are still answered. */
static void drop_model(struct server *s, struct server_entry *e)
{
    struct serve_model *m;

    lock(s);
    m = e->model;
    e->model = NULL;
    unlock(s);
    if (m != NULL)
        model_unref(m);
}

static void unload(struct server *s, struct http_exchange *x, const char *name)
{
    struct server_entry *e = find_entry(s, name); /* places never go */

    if (e != NULL)
        drop_model(s, e);
    if (e == NULL)
        reply_error(x, 404, "there is no such model");
    else
        reply_nothing(x, 200);
}

/* --- the thread -------------------------------------------------------------------------- */

static void bury_all(struct server *s)
{
    struct serve_model *m;

    lock(s);
    m = s->graveyard.dead;
    s->graveyard.dead = NULL;
    unlock(s);
    while (m != NULL) {
        struct serve_model *next = m->next_dead;

        model_bury(m);
        m = next;
    }
}

static void load_entry(struct server *s, struct server_entry *e)
{
    char why[320] = "";
    struct serve_model *m, *old = NULL;
    struct http_exchange *x;

    m = s->o.load(s->o.user, e->name, &s->graveyard, why, sizeof(why));
    lock(s);
    if (m != NULL) {
        old = e->model;
        e->model = m;
    }
    e->wants_load = false;
    x = e->loading;
    e->loading = NULL;
    unlock(s);
    if (old != NULL)
        model_unref(old);
    if (x != NULL && m != NULL)
        reply_nothing(x, 200);
    else if (x != NULL)
        reply_error(x, 400, why);
}

static void load_all(struct server *s)
{
    for (size_t i = 0; i < s->nentries; i++) {
        bool wants;

        lock(s);
        wants = s->entry[i].wants_load;
        unlock(s);
        if (wants)
            load_entry(s, &s->entry[i]);
    }
}

/* The next deadline of all models; 0: none. */
static uint64_t expire_all(struct server *s)
{
    uint64_t next = 0;

    for (size_t i = 0; i < s->nentries; i++) {
        struct serve_model *m = server_find(s, s->entry[i].name);
        uint64_t at;

        if (m == NULL)
            continue;
        at = model_expire(m, heddle_clock_ns());
        if (at != 0 && (next == 0 || at < next))
            next = at;
        model_unref(m);
    }
    return next;
}

static bool has_work(const struct server *s)
{
    if (s->graveyard.dead != NULL || (s->graveyard.is_over && s->graveyard.nalive == 0))
        return true;
    for (size_t i = 0; i < s->nentries; i++) {
        if (s->entry[i].wants_load)
            return true;
    }
    return false;
}

/* Sleeps until there is something to do, until `deadline` (0: none), or for a tick. False: the
 * server ends, and no model is left. */
static bool sleep_until(struct server *s, uint64_t deadline)
{
    const uint64_t tick = heddle_clock_ns() + (uint64_t)TICK_MS * 1000000;
    const uint64_t at = deadline != 0 && deadline < tick ? deadline : tick;
    const struct timespec t = {(time_t)(at / 1000000000), (long)(at % 1000000000)};
    bool goes_on;

    lock(s);
    if (!has_work(s))
        (void)pthread_cond_timedwait(&s->graveyard.cond, &s->graveyard.lock, &t);
    goes_on = !s->graveyard.is_over || s->graveyard.nalive > 0;
    unlock(s);
    return goes_on;
}

static void *server_thread(void *user)
{
    struct server *s = user;

    do {
        bury_all(s);
        load_all(s);
    } while (sleep_until(s, expire_all(s)));
    bury_all(s);
    return NULL;
}

/* --- routes --------------------------------------------------------------------------------- */

static void reply_server(struct http_exchange *x)
{
    static const char *const extensions[] = {"binary_tensor_data",  "generate",
                                             "model_configuration", "model_repository",
                                             "schedule_policy",     "statistics"};
    struct heddle_json j;

    heddle_json_init(&j, NULL);
    heddle_json_object(&j);
    heddle_json_key_str(&j, "name", "heddle");
    heddle_json_key_str(&j, "version", heddle_version());
    heddle_json_key(&j, "extensions");
    heddle_json_array(&j);
    for (size_t i = 0; i < sizeof(extensions) / sizeof(extensions[0]); i++)
        heddle_json_str(&j, extensions[i]);
    heddle_json_end(&j);
    heddle_json_end(&j);
    reply_json(x, 200, &j);
}

static bool is_method(struct http_exchange *x, const char *method)
{
    if (strcmp(http_method(x), method) == 0)
        return true;
    reply_error(x, 405, "the method does not fit the address");
    return false;
}

/* Takes the first part of a path, up to a slash. False: it is empty or too long. */
static bool take_part(const char **path, char out[KSERVE_MAX_NAME])
{
    const size_t n = strcspn(*path, "/");

    if (n == 0 || n >= KSERVE_MAX_NAME)
        return false;
    memcpy(out, *path, n);
    out[n] = '\0';
    *path += n;
    *path += **path == '/';
    return true;
}

/* What one can ask of a model. */
static const struct verb {
    const char *name, *method;
    void (*reply)(struct http_exchange *x, struct serve_model *m);
} verbs[] = {
    {"", "GET", server_describe}, {"config", "GET", server_config}, {"stats", "GET", server_stats}};

static void reply_verb(struct server *s, struct http_exchange *x, struct serve_model *m,
                       const char *verb)
{
    if (strcmp(verb, "infer") == 0) {
        if (is_method(x, "POST"))
            server_infer(s, x, model_ref(m));
        return;
    }
    if (strcmp(verb, "generate") == 0 || strcmp(verb, "generate_stream") == 0) {
        if (is_method(x, "POST"))
            server_generate(x, model_ref(m), verb[8] != '\0');
        return;
    }
    if (strcmp(verb, "ready") == 0) {
        if (is_method(x, "GET"))
            reply_nothing(x, 200);
        return;
    }
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        if (strcmp(verb, verbs[i].name) == 0) {
            if (is_method(x, verbs[i].method))
                verbs[i].reply(x, m);
            return;
        }
    }
    reply_error(x, 404, "there is no such address");
}

/* Behind /v2/models/. */
static void reply_model(struct server *s, struct http_exchange *x, const char *path)
{
    char name[KSERVE_MAX_NAME], version[KSERVE_MAX_NAME];
    struct serve_model *m;

    if (!take_part(&path, name)) {
        reply_error(x, 404, "there is no such address");
        return;
    }
    if (strncmp(path, "versions/", 9) == 0) {
        path += 9;
        if (!take_part(&path, version) || strcmp(version, "1") != 0) {
            reply_error(x, 404, "models have version 1 only");
            return;
        }
    }
    m = server_find(s, name);
    if (m == NULL) {
        lock(s);
        const bool is_known = find_entry(s, name) != NULL;
        unlock(s);
        if (!is_known && strcmp(name, "stats") == 0 && path[0] == '\0') {
            if (is_method(x, "GET"))
                server_all_stats(s, x);
            return;
        }
        /* A model that is not loaded is a place to wait at, one without a name is not. */
        reply_error(x, is_known ? 503 : 404,
                    is_known ? "the model is not loaded" : "there is no such model");
        return;
    }
    reply_verb(s, x, m, path);
    model_unref(m);
}

/* Behind /v2/repository/. */
static void reply_repository(struct server *s, struct http_exchange *x, const char *path)
{
    char name[KSERVE_MAX_NAME];

    if (!is_method(x, "POST"))
        return;
    if (strcmp(path, "index") == 0) {
        reply_index(s, x);
        return;
    }
    if (strncmp(path, "models/", 7) == 0) {
        path += 7;
        if (take_part(&path, name) && strcmp(path, "load") == 0) {
            ask_to_load(s, x, name);
            return;
        }
        if (strcmp(path, "unload") == 0) {
            unload(s, x, name);
            return;
        }
    }
    reply_error(x, 404, "there is no such address");
}

static void handle(void *user, struct http_exchange *x)
{
    struct server *s = user;
    const char *path = http_path(x);

    if (strncmp(path, "/v2/models/", 11) == 0)
        reply_model(s, x, path + 11);
    else if (strncmp(path, "/v2/repository/", 15) == 0)
        reply_repository(s, x, path + 15);
    else if (strcmp(path, "/v2") != 0 && strcmp(path, "/v2/") != 0 &&
             strcmp(path, "/v2/health/live") != 0 && strcmp(path, "/v2/health/ready") != 0 &&
             strcmp(path, "/metrics") != 0)
        reply_error(x, 404, "there is no such address");
    else if (!is_method(x, "GET"))
        return;
    else if (strcmp(path, "/metrics") == 0)
        server_metrics(s, x);
    else if (strcmp(path, "/v2/health/live") == 0)
        reply_nothing(x, 200);
    else if (strcmp(path, "/v2/health/ready") == 0)
        reply_nothing(x, is_ready(s) ? 200 : 503);
    else
        reply_server(x);
}

static void begin_touched(void *user)
{
    struct server *s = user;

    for (size_t i = 0; i < s->ntouched; i++) {
        model_pump(s->touched[i]);
        model_unref(s->touched[i]);
    }
    s->ntouched = 0;
}

void server_touch(struct server *s, struct serve_model *m)
{
    for (size_t i = 0; i < s->ntouched; i++) {
        if (s->touched[i] == m)
            return;
    }
    if (s->ntouched == SERVE_MAX_MODELS) /* names and models that were replaced meanwhile */
        begin_touched(s);
    s->touched[s->ntouched++] = model_ref(m);
}

/* --- start and stop --------------------------------------------------------------------------- */

/* Names are parts of addresses, and stand in quotes in /metrics. */
static bool is_name(const char *s)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789._-";

    return s[0] != '\0' && strlen(s) < KSERVE_MAX_NAME && strspn(s, allowed) == strlen(s);
}

static heddle_status load_first(struct server *s, const char *const *names, size_t n)
{
    const struct server_opts *o = &s->o;

    if (n == 0 || n > SERVE_MAX_MODELS)
        return heddle_why(o->why, o->why_bytes, HEDDLE_EINVAL, "a server has from 1 to %d models",
                          SERVE_MAX_MODELS);
    for (size_t i = 0; i < n; i++) {
        struct server_entry *e = &s->entry[i];

        if (!is_name(names[i]))
            return heddle_why(o->why, o->why_bytes, HEDDLE_EINVAL,
                              "'%s' is no name for a model: letters, digits, '.', '_' and '-' are",
                              names[i]);
        if (find_entry(s, names[i]) != NULL)
            return heddle_why(o->why, o->why_bytes, HEDDLE_EINVAL, "two models are called '%s'",
                              names[i]);
        memcpy(e->name, names[i], strlen(names[i]) + 1);
        s->nentries++;
        e->model = o->load(o->user, names[i], &s->graveyard, o->why, o->why_bytes);
        if (e->model == NULL)
            return HEDDLE_EINVAL;
    }
    return HEDDLE_OK;
}

static bool init_locks(struct server *s)
{
    pthread_condattr_t attr;
    bool is_good;

    if (pthread_mutex_init(&s->graveyard.lock, NULL) != 0)
        return false;
    is_good = pthread_condattr_init(&attr) == 0;
    if (is_good) {
        is_good = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0 &&
                  pthread_cond_init(&s->graveyard.cond, &attr) == 0;
        pthread_condattr_destroy(&attr);
    }
    if (!is_good)
        pthread_mutex_destroy(&s->graveyard.lock);
    return is_good;
}

static heddle_status start_http(struct server *s)
{
    const struct http_opts h = {.address = s->o.address,
                                .port = s->o.port,
                                .max_body = s->o.max_body,
                                .max_held = s->o.max_held,
                                .max_connections = s->o.max_connections,
                                .idle_s = s->o.idle_s,
                                .handler = handle,
                                .after = begin_touched,
                                .user = s,
                                .why = s->o.why,
                                .why_bytes = s->o.why_bytes};
    heddle_status st;

    if (pthread_create(&s->thread, NULL, server_thread, s) != 0)
        return heddle_why(s->o.why, s->o.why_bytes, HEDDLE_ENOMEM, "no thread can be started");
    s->has_thread = true;
    st = http_server_start(&h, &s->http);
    return st;
}

heddle_status server_start(const struct server_opts *o, const char *const *names, size_t n,
                           struct server **out)
{
    struct server *s = calloc(1, sizeof(*s));
    heddle_status st;

    if (s == NULL || !init_locks(s)) {
        free(s);
        return heddle_why(o->why, o->why_bytes, HEDDLE_ENOMEM, "out of memory");
    }
    s->o = *o;
    st = http_check(o->why, o->why_bytes);
    if (st == HEDDLE_OK)
        st = load_first(s, names, n);
    if (st == HEDDLE_OK)
        st = start_http(s);
    if (st != HEDDLE_OK) {
        server_stop(s);
        return st;
    }
    *out = s;
    return HEDDLE_OK;
}

uint16_t server_port(const struct server *s)
{
    return http_server_port(s->http);
}

static void pause_ms(long ms)
{
    const struct timespec t = {ms / 1000, ms % 1000 * 1000000};

    (void)nanosleep(&t, NULL);
}

/* A client that has just got a reply, and asks again on its connection, is answered too: the
 * connections have GRACE_MS to close themselves by that. */
static void wait_drained(const struct http_server *http)
{
    const uint64_t end = heddle_clock_ns() + (uint64_t)GRACE_MS * 1000000;

    while (http_server_pending(http) > 0 ||
           (http_server_clients(http) > 0 && heddle_clock_ns() < end))
        pause_ms(DRAIN_MS);
}

void server_stop(struct server *s)
{
    if (s == NULL)
        return;
    heddle_store_rlx(&s->is_draining, true); /* a word for those who ask if it is ready */
    if (s->http != NULL) {
        http_server_drain(s->http);
        wait_drained(s->http);
        http_server_stop(s->http);
    }
    for (size_t i = 0; i < s->nentries; i++)
        drop_model(s, &s->entry[i]);
    lock(s);
    s->graveyard.is_over = true;
    pthread_cond_signal(&s->graveyard.cond);
    unlock(s);
    if (s->has_thread)
        (void)pthread_join(s->thread, NULL);
    else
        bury_all(s); /* nothing has run */
    pthread_cond_destroy(&s->graveyard.cond);
    pthread_mutex_destroy(&s->graveyard.lock);
    free(s);
}
