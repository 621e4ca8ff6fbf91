/* SPDX-License-Identifier: BSD-3-Clause */
/* server: addresses, batches, deadlines, full queues, loading again, the end, with a backend
 * that adds one to each number. */
#include "serve/http.h"
#include "serve/server.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>

#include "tests/test.h"

/* The backend: batches wait while it is held, then run in a thread. */
struct adder {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool is_held, is_over, fails;
    size_t nbatches, largest, nwaiting, nmodels, ndestroyed;
    struct waiting {
        struct serve_job *job[64];
        size_t n;
        void (*ended)(void *batch, heddle_status st, const char *why);
        void *batch;
    } waiting[64];
    pthread_t thread;
};

static void add_one(struct serve_job *job)
{
    const struct kserve_tensor *in = job->in[0];
    struct kserve_tensor *out = &job->out[0];
    float *y = heddle_scratch_get(&job->request.mem, in->count + 1, sizeof(*y));

    CHECK(y != NULL);
    *out = *in;
    memcpy(out->name, "y", 2);
    for (size_t i = 0; i < in->count; i++) {
        float x;

        memcpy(&x, (const char *)in->data + i * sizeof(x), sizeof(x));
        y[i] = x + 1;
    }
    out->data = y;
}

static void *adder_thread(void *user)
{
    struct adder *a = user;

    pthread_mutex_lock(&a->lock);
    for (;;) {
        struct waiting w;
        bool fails;

        while ((a->nwaiting == 0 || a->is_held) && !a->is_over)
            pthread_cond_wait(&a->cond, &a->lock);
        if (a->nwaiting == 0)
            break;
        w = a->waiting[--a->nwaiting];
        fails = a->fails;
        pthread_mutex_unlock(&a->lock);
        for (size_t i = 0; i < w.n && !fails; i++)
            add_one(w.job[i]);
        w.ended(w.batch, fails ? HEDDLE_ETASK : HEDDLE_OK, fails ? "node 'add' failed" : NULL);
        pthread_mutex_lock(&a->lock);
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

static void adder_run(void *self, struct serve_job *const *jobs, size_t n,
                      void (*ended)(void *batch, heddle_status st, const char *why), void *batch)
{
    struct adder *a = self;
    struct waiting *w;

    pthread_mutex_lock(&a->lock);
    CHECK(a->nwaiting < 64 && n <= 64);
    w = &a->waiting[a->nwaiting++];
    memcpy(w->job, jobs, n * sizeof(jobs[0]));
    w->n = n;
    w->ended = ended;
    w->batch = batch;
    a->nbatches++;
    a->largest = n > a->largest ? n : a->largest;
    pthread_cond_signal(&a->cond);
    pthread_mutex_unlock(&a->lock);
}

static void adder_destroy(void *self)
{
    struct adder *a = self;

    pthread_mutex_lock(&a->lock);
    a->ndestroyed++;
    pthread_mutex_unlock(&a->lock);
}

static const struct serve_backend backend = {.run = adder_run, .destroy = adder_destroy};

static struct serve_model *load(void *user, const char *name, struct serve_graveyard *graveyard,
                                char *why, size_t why_bytes)
{
    const struct serve_model_opts o = {
        .name = name, .max_queue = 8, .max_batch = 4, .max_running = 1};
    struct adder *a = user;
    struct serve_model *m;

    if (strcmp(name, "broken") == 0) {
        (void)snprintf(why, why_bytes, "broken.onnx: no such file");
        return NULL;
    }
    m = model_create(&o, &backend, a, graveyard);
    CHECK(m != NULL);
    m->nin = m->nout = 1;
    m->in[0] = (struct serve_port){.name = "x", .type = KSERVE_FP32, .ndim = 2, .dim = {-1, -1}};
    m->out[0] = (struct serve_port){.name = "y", .type = KSERVE_FP32, .ndim = 2, .dim = {-1, -1}};
    m->can_batch = true;
    pthread_mutex_lock(&a->lock);
    a->nmodels++;
    pthread_mutex_unlock(&a->lock);
    return m;
}

struct rig {
    struct adder a;
    struct server *s;
};

/* False: there is no libmicrohttpd. */
static bool rig_start(struct rig *r)
{
    static const char *const names[] = {"add", "other"};
    char why[320] = "";
    const struct server_opts o = {.max_body = 1 << 20,
                                  .max_connections = 64,
                                  .idle_s = 30,
                                  .load = load,
                                  .user = &r->a,
                                  .why = why,
                                  .why_bytes = sizeof(why)};
    heddle_status st;

    memset(r, 0, sizeof(*r));
    CHECK_EQ(pthread_mutex_init(&r->a.lock, NULL), 0);
    CHECK_EQ(pthread_cond_init(&r->a.cond, NULL), 0);
    CHECK_EQ(pthread_create(&r->a.thread, NULL, adder_thread, &r->a), 0);
    st = server_start(&o, names, 2, &r->s);
    if (st != HEDDLE_ENOSYS)
        CHECK_OK(st);
    return st == HEDDLE_OK;
}

static void set(struct rig *r, bool *flag, bool value)
{
    pthread_mutex_lock(&r->a.lock);
    *flag = value;
    pthread_cond_signal(&r->a.cond);
    pthread_mutex_unlock(&r->a.lock);
}

static size_t get(struct rig *r, const size_t *number)
{
    size_t v;

    pthread_mutex_lock(&r->a.lock);
    v = *number;
    pthread_mutex_unlock(&r->a.lock);
    return v;
}

static void rig_stop(struct rig *r)
{
    set(r, &r->a.is_held, false);
    server_stop(r->s);
    set(r, &r->a.is_over, true);
    CHECK_EQ(pthread_join(r->a.thread, NULL), 0);
    CHECK_EQ(r->a.nmodels, r->a.ndestroyed);
    pthread_cond_destroy(&r->a.cond);
    pthread_mutex_destroy(&r->a.lock);
}

static int connect_to(struct rig *r)
{
    const struct sockaddr_in a = {.sin_family = AF_INET,
                                  .sin_port = htons(server_port(r->s)),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);

    CHECK(fd >= 0);
    CHECK_EQ(connect(fd, (const struct sockaddr *)&a, sizeof(a)), 0);
    return fd;
}

static void begin(int fd, const char *method, const char *path, const char *body)
{
    char text[2048];
    const int n = snprintf(text, sizeof(text),
                           "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                           "Content-Length: %zu\r\n\r\n%s",
                           method, path, strlen(body), body);

    CHECK(n > 0 && (size_t)n < sizeof(text));
    CHECK_EQ(send(fd, text, (size_t)n, MSG_NOSIGNAL), n);
}

/* Reads to the end of the connection; the code, and the body in reply. */
static int finish(int fd, char *reply, size_t cap)
{
    size_t n = 0;
    ssize_t got;
    const char *body;
    char *text = malloc(1 << 20);
    int code;

    CHECK(text != NULL);
    while ((got = recv(fd, text + n, (1 << 20) - 1 - n, 0)) > 0)
        n += (size_t)got;
    text[n] = '\0';
    CHECK(n > 12);
    code = (int)strtol(text + 9, NULL, 10);
    body = strstr(text, "\r\n\r\n");
    CHECK(body != NULL);
    (void)snprintf(reply, cap, "%s", body + 4);
    free(text);
    (void)close(fd);
    return code;
}

static int ask(struct rig *r, const char *method, const char *path, const char *body, char *reply,
               size_t cap)
{
    const int fd = connect_to(r);

    begin(fd, method, path, body);
    return finish(fd, reply, cap);
}

#define X(shape, data)                                                                             \
    "{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":" shape ",\"data\":" data "}"

static const char one[] = "{\"inputs\":[" X("[1,2]", "[1,2]") "]}";

TEST(addresses)
{
    static const struct {
        const char *method, *path, *body;
        int code;
        const char *in; /* the reply has this */
    } rows[] = {
        {"GET", "/v2", "", 200, "\"binary_tensor_data\""},
        {"GET", "/v2/health/live", "", 200, ""},
        {"GET", "/v2/health/ready", "", 200, ""},
        {"POST", "/v2/health/ready", "", 405, "error"},
        {"GET", "/v2/models/add", "", 200, "\"shape\":[-1,-1]"},
        {"GET", "/v2/models/add/versions/1", "", 200, "\"platform\""},
        {"GET", "/v2/models/add/versions/2", "", 404, "version 1"},
        {"GET", "/v2/models/add/ready", "", 200, ""},
        {"GET", "/v2/models/add/config", "", 200, "\"max_batch_size\":4"},
        {"GET", "/v2/models/add/stats", "", 200, "\"execution_count\":0"},
        {"GET", "/v2/models/stats", "", 200, "\"name\":\"other\""},
        {"POST", "/v2/models/stats", "", 405, "error"},
        {"GET", "/v2/models/add/nothing", "", 404, "error"},
        {"GET", "/v2/models/none", "", 404, "no such model"},
        {"GET", "/v2/models/", "", 404, "error"},
        {"GET", "/v2/models/add/infer", "", 405, "error"},
        {"POST", "/v2/models/add/infer", one, 200, "\"data\":[2,3]"},
        {"POST", "/v2/models/add/versions/1/infer", one, 200, "\"shape\":[1,2]"},
        {"POST", "/v2/models/add/infer", "{", 400, "malformed"},
        {"POST", "/v2/models/add/infer", "{\"inputs\":[]}", 400, "input 'x' is missing"},
        {"POST", "/v2/models/add/infer", "{\"inputs\":[" X("[2]", "[1,2]") "]}", 400,
         "1 dimensions, the model wants 2"},
        {"POST", "/v2/repository/index", "", 200, "\"state\":\"READY\""},
        {"POST", "/v2/repository/models/none/load", "", 404, "error"},
        {"GET", "/metrics", "", 200, "nv_inference_request_success{model=\"add\",version=\"1\"} 2"},
        {"GET", "/", "", 404, "error"},
        {"DELETE", "/v2", "", 405, "error"},
    };
    char reply[65536];
    struct rig r;

    if (!rig_start(&r))
        SKIP("no libmicrohttpd");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const int code = ask(&r, rows[i].method, rows[i].path, rows[i].body, reply, sizeof(reply));

        if (code != rows[i].code || strstr(reply, rows[i].in) == NULL)
            printf("%s %s: %d %s\n", rows[i].method, rows[i].path, code, reply);
        CHECK_EQ(code, rows[i].code);
        CHECK(strstr(reply, rows[i].in) != NULL);
    }
    rig_stop(&r);
}

static void wait_for(struct rig *r, const size_t *number, size_t least)
{
    const struct timespec t = {0, 1000000};

    while (get(r, number) < least)
        (void)nanosleep(&t, NULL);
}

/* Until so many requests wait in the queue of "add". */
static void wait_queued(struct rig *r, int n)
{
    char reply[4096], want[64];

    (void)snprintf(want, sizeof(want), "\"pending\":%d,", n);
    do {
        CHECK_EQ(ask(r, "GET", "/v2/models/add/stats", "", reply, sizeof(reply)), 200);
    } while (strstr(reply, want) == NULL);
}

/* While one batch runs, requests wait, and those that fit run together next. */
TEST(batches_grow_under_load)
{
    char reply[4096];
    int fd[6];
    struct rig r;

    if (!rig_start(&r))
        SKIP("no libmicrohttpd");
    set(&r, &r.a.is_held, true);
    for (int i = 0; i < 6; i++) {
        fd[i] = connect_to(&r);
        /* The fourth has rows of another length. */
        begin(fd[i], "POST", "/v2/models/add/infer",
              i == 3 ? "{\"inputs\":[" X("[1,3]", "[1,2,3]") "]}" : one);
        if (i == 0)
            wait_for(&r, &r.a.nbatches, 1);
        else
            wait_queued(&r, i);
    }
    set(&r, &r.a.is_held, false);
    for (int i = 0; i < 6; i++) {
        CHECK_EQ(finish(fd[i], reply, sizeof(reply)), 200);
        CHECK(strstr(reply, i == 3 ? "[2,3,4]" : "[2,3]") != NULL);
    }
    CHECK_EQ(get(&r, &r.a.nbatches), 3);
    CHECK_EQ(get(&r, &r.a.largest), 4);
    rig_stop(&r);
}

TEST(deadlines_priorities_and_full_queues)
{
    char reply[4096];
    int fd[10], late;
    struct rig r;

    if (!rig_start(&r))
        SKIP("no libmicrohttpd");
    set(&r, &r.a.is_held, true);
    fd[0] = connect_to(&r);
    begin(fd[0], "POST", "/v2/models/add/infer", one);
    wait_for(&r, &r.a.nbatches, 1);
    /* The deadline passes while the other runs, and is answered meanwhile. */
    late = connect_to(&r);
    begin(late, "POST", "/v2/models/add/infer",
          "{\"parameters\":{\"timeout\":20000},\"inputs\":[" X("[1,2]", "[1,2]") "]}");
    CHECK_EQ(finish(late, reply, sizeof(reply)), 504);
    CHECK(strstr(reply, "deadline") != NULL);
    for (int i = 1; i <= 8; i++) {
        fd[i] = connect_to(&r);
        begin(fd[i], "POST", "/v2/models/add/infer", one);
        wait_queued(&r, i);
    }
    CHECK_EQ(ask(&r, "POST", "/v2/models/add/infer", one, reply, sizeof(reply)), 503);
    CHECK(strstr(reply, "too many requests wait for model 'add'") != NULL);
    set(&r, &r.a.is_held, false);
    for (int i = 0; i <= 8; i++)
        CHECK_EQ(finish(fd[i], reply, sizeof(reply)), 200);
    rig_stop(&r);
}

TEST(failures_reach_the_client)
{
    char reply[4096];
    struct rig r;

    if (!rig_start(&r))
        SKIP("no libmicrohttpd");
    set(&r, &r.a.fails, true);
    CHECK_EQ(ask(&r, "POST", "/v2/models/add/infer", one, reply, sizeof(reply)), 500);
    CHECK_STR(reply, "{\"error\":\"node 'add' failed\"}");
    set(&r, &r.a.fails, false);
    CHECK_EQ(ask(&r, "POST", "/v2/models/add/infer", one, reply, sizeof(reply)), 200);
    rig_stop(&r);
}

/* Requests of the old model are answered, and the old model ends. */
TEST(load_again_and_unload)
{
    char reply[4096];
    int fd;
    struct rig r;

    if (!rig_start(&r))
        SKIP("no libmicrohttpd");
    set(&r, &r.a.is_held, true);
    fd = connect_to(&r);
    begin(fd, "POST", "/v2/models/add/infer", one);
    wait_for(&r, &r.a.nbatches, 1);
    CHECK_EQ(ask(&r, "POST", "/v2/repository/models/add/load", "", reply, sizeof(reply)), 200);
    CHECK_EQ(get(&r, &r.a.ndestroyed), 0);
    CHECK_EQ(get(&r, &r.a.nmodels), 3);
    set(&r, &r.a.is_held, false);
    CHECK_EQ(finish(fd, reply, sizeof(reply)), 200);
    wait_for(&r, &r.a.ndestroyed, 1);
    CHECK_EQ(ask(&r, "POST", "/v2/repository/models/add/unload", "", reply, sizeof(reply)), 200);
    wait_for(&r, &r.a.ndestroyed, 2);
    CHECK_EQ(ask(&r, "POST", "/v2/models/add/infer", one, reply, sizeof(reply)), 503);
    CHECK_EQ(ask(&r, "POST", "/v2/repository/models/add/load", "", reply, sizeof(reply)), 200);
    CHECK_EQ(ask(&r, "POST", "/v2/models/add/infer", one, reply, sizeof(reply)), 200);
    rig_stop(&r);
}

TEST(stop_answers_what_has_come)
{
    char reply[4096];
    struct rig r;
    int fd;

    if (!rig_start(&r))
        SKIP("no libmicrohttpd");
    set(&r, &r.a.is_held, true);
    fd = connect_to(&r);
    begin(fd, "POST", "/v2/models/add/infer", one);
    wait_for(&r, &r.a.nbatches, 1);
    rig_stop(&r); /* lets the backend go on, then stops */
    CHECK_EQ(finish(fd, reply, sizeof(reply)), 200);
}

TEST(names_that_cannot_be_served)
{
    static const char *const rows[][2] = {
        {"broken", "broken.onnx: no such file"},
        {"a/b", "'a/b' is no name for a model: letters, digits, '.', '_' and '-' are"},
        {"", "'' is no name for a model: letters, digits, '.', '_' and '-' are"}};
    char why[320];
    struct adder a = {.nmodels = 0};
    const struct server_opts o = {.load = load, .user = &a, .why = why, .why_bytes = sizeof(why)};
    static const char *const twice[] = {"m", "m"};
    struct server *s = NULL;

    if (http_check(why, sizeof(why)) != HEDDLE_OK)
        SKIP("no libmicrohttpd");
    CHECK_EQ(pthread_mutex_init(&a.lock, NULL), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_STATUS(server_start(&o, rows[i], 1, &s), HEDDLE_EINVAL);
        CHECK_STR(why, rows[i][1]);
    }
    CHECK_STATUS(server_start(&o, twice, 2, &s), HEDDLE_EINVAL);
    CHECK_STR(why, "two models are called 'm'");
    CHECK_STATUS(server_start(&o, twice, 0, &s), HEDDLE_EINVAL);
    CHECK_EQ(a.nmodels, a.ndestroyed);
    pthread_mutex_destroy(&a.lock);
}

TEST_MAIN(addresses, batches_grow_under_load, deadlines_priorities_and_full_queues,
          failures_reach_the_client, load_again_and_unload, stop_answers_what_has_come,
          names_that_cannot_be_served)
