/* SPDX-License-Identifier: BSD-3-Clause */
/* Networks written byte by byte: what requests return, alone and many at once; what is refused. */
#include <stdatomic.h>

#include "base/faulty_test.h"
#include "heddle/heddle.h"
#include "heddle/nn.h"
#include "onnx/onnx.h"
#include "onnx/wire_test.h"
#include "tests/test.h"

enum { SIDE = 24, MANY = 40 };

static void put_node(struct wire_out *g, const char *op, const char *a, const char *b,
                     const char *out, const char *out2)
{
    struct wire_out n = {.len = 0};

    wire_str(&n, 1, a);
    if (b != NULL)
        wire_str(&n, 1, b);
    wire_str(&n, 2, out);
    if (out2 != NULL)
        wire_str(&n, 2, out2);
    wire_str(&n, 4, op);
    wire_sub_message(g, 1, &n);
}

/* A float matrix of `rows` (0: a symbol) x SIDE. */
static void put_port(struct wire_out *g, unsigned field, const char *name, unsigned rows)
{
    struct wire_out v = {.len = 0}, type = {.len = 0}, t = {.len = 0}, s = {.len = 0}, d;

    d.len = 0;
    if (rows > 0)
        wire_int(&d, 1, rows);
    else
        wire_str(&d, 2, "rows");
    wire_sub_message(&s, 1, &d);
    d.len = 0;
    wire_int(&d, 1, SIDE);
    wire_sub_message(&s, 1, &d);
    wire_int(&t, 1, HEDDLE_ONNX_FLOAT);
    wire_sub_message(&t, 2, &s);
    wire_sub_message(&type, 1, &t);
    wire_str(&v, 1, name);
    wire_sub_message(&v, 2, &type);
    wire_sub_message(g, field, &v);
}

/* A new file in the temporary folder; the caller removes it once the network is open. */
static FILE *create_file(char path[static 32])
{
    int fd;

    (void)snprintf(path, 32, "/tmp/heddle-net-XXXXXX");
    fd = mkstemp(path);
    CHECK(fd >= 0);
    return fdopen(fd, "wb");
}

/* y = dropout(relu(x W)) + tanh(x) (the mask has a name and no reader), z = y. */
static void write_model(char path[static 32], unsigned rows)
{
    struct wire_out g = {.len = 0}, m = {.len = 0}, o = {.len = 0}, t = {.len = 0};
    float w[SIDE * SIDE];
    FILE *f = create_file(path);

    for (int i = 0; i < SIDE * SIDE; i++)
        w[i] = (float)(i * 7 % 11) / 11 - 0.4f;
    wire_int(&t, 1, SIDE);
    wire_int(&t, 1, SIDE);
    wire_int(&t, 2, HEDDLE_ONNX_FLOAT);
    wire_str(&t, 8, "W");
    wire_mem(&t, 9, w, sizeof(w));
    wire_sub_message(&g, 5, &t);
    put_port(&g, 11, "x", rows);
    put_port(&g, 12, "y", rows);
    put_port(&g, 12, "z", rows);
    put_node(&g, "MatMul", "x", "W", "a", NULL);
    put_node(&g, "Relu", "a", NULL, "b", NULL);
    put_node(&g, "Dropout", "b", NULL, "c", "mask");
    put_node(&g, "Tanh", "x", NULL, "d", NULL);
    put_node(&g, "Add", "c", "d", "y", NULL);
    put_node(&g, "Identity", "y", NULL, "z", NULL);
    wire_int(&m, 1, 8);
    wire_sub_message(&m, 7, &g);
    wire_int(&o, 2, 13);
    wire_sub_message(&m, 8, &o);
    CHECK(f != NULL);
    CHECK(fwrite(m.buf, 1, m.len, f) == m.len);
    CHECK(fclose(f) == 0);
}

static struct heddle_nn_tensor tensor(float *v, int64_t rows)
{
    return (struct heddle_nn_tensor){.type = HEDDLE_NN_F32,
                                     .ndim = 2,
                                     .dim = {rows, SIDE},
                                     .data = v,
                                     .bytes = (size_t)rows * SIDE * sizeof(float)};
}

static void fill(float *v, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        v[i] = (float)((i * 31 + seed * 17) % 23) / 23 - 0.5f;
}

struct counter {
    _Atomic unsigned done, wrong;
    const float *want[MANY];
    size_t bytes[MANY];
};

struct one {
    struct counter *c;
    unsigned i;
};

static void done_one(void *user, heddle_status st, struct heddle_nn_result *r, const char *why)
{
    const struct one *o = user;

    if (st != HEDDLE_OK || why[0] != '\0' || r->output[0].bytes != o->c->bytes[o->i] ||
        memcmp(r->output[0].data, o->c->want[o->i], o->c->bytes[o->i]) != 0 ||
        memcmp(r->output[1].data, o->c->want[o->i], o->c->bytes[o->i]) != 0)
        atomic_fetch_add(&o->c->wrong, 1);
    heddle_nn_result_destroy(r);
    atomic_fetch_add(&o->c->done, 1);
}

/* Requests of five shapes, alone and then all at once: the same bits. */
TEST(many_at_once)
{
    const struct heddle_ctx_opts co = {
        .size = sizeof(co), .nworkers = 3, .models = HEDDLE_OFF, .ignore_env = true};
    static float in[MANY][8 * SIDE];
    struct heddle_nn_result *r[MANY];
    struct counter c = {.done = 0};
    struct one one[MANY];
    heddle_ctx *ctx = NULL;
    char path[32];
    heddle_nn *net = NULL;

    write_model(path, 0);
    CHECK_OK(heddle_ctx_create(&co, &ctx));
    CHECK_OK(heddle_nn_open(ctx, path, NULL, &net));
    CHECK(remove(path) == 0);
    for (unsigned i = 0; i < MANY; i++) {
        const int64_t rows = 1 + i % 5;
        const struct heddle_nn_tensor t = tensor(in[i], rows);

        fill(in[i], (size_t)rows * SIDE, i);
        CHECK_OK(heddle_nn_run(net, &t, 1, NULL, &r[i]));
        CHECK_EQ(r[i]->noutputs, 2);
        c.want[i] = r[i]->output[0].data;
        c.bytes[i] = r[i]->output[0].bytes;
        CHECK_EQ(c.bytes[i], t.bytes);
        one[i] = (struct one){&c, i};
    }
    for (unsigned k = 0; k < test_scale(50); k++) {
        for (unsigned i = 0; i < MANY; i++) {
            const struct heddle_nn_tensor t = tensor(in[i], 1 + i % 5);

            CHECK_OK(heddle_nn_start(net, &t, 1, done_one, &one[i], NULL));
        }
        CHECK_OK(heddle_wait(ctx));
    }
    CHECK_EQ(c.done, MANY * test_scale(50));
    CHECK_EQ(c.wrong, 0);
    for (unsigned i = 0; i < MANY; i++)
        heddle_nn_result_destroy(r[i]);
    heddle_nn_close(net);
    CHECK_OK(heddle_ctx_destroy(ctx));
}

/* The tasks of write_model(): every value once, made before it is read, by the right operator. */
static void check_tasks(heddle_nn *net, const struct heddle_nn_tensor *t)
{
    struct heddle_nn_tasks k = {.size = sizeof(k)};
    unsigned results = 0;

    CHECK_OK(heddle_nn_get_tasks(net, t, 1, 3, NULL, &k));
    CHECK_EQ(k.ntasks, 5);
    CHECK(strcmp(k.task[0].op, "MatMul") == 0);
    CHECK_EQ(k.task[0].weight_bytes, SIDE * SIDE * sizeof(float));
    for (uint32_t i = 0; i < k.ntasks; i++) {
        CHECK(k.task[i].ns > 0 && k.task[i].flops > 0);
        CHECK_EQ(k.task[i].weight_bytes > 0, i == 0);
    }
    CHECK_EQ(k.maker[0], UINT32_MAX);
    CHECK_EQ(k.bytes[0], t->bytes);
    for (uint32_t i = 0; i < k.nreads; i++) {
        const uint32_t maker = k.maker[k.value[i]];

        results += k.reader[i] == UINT32_MAX;
        CHECK(maker == UINT32_MAX || maker < k.reader[i]);
        CHECK_EQ(k.bytes[k.value[i]], t->bytes);
    }
    CHECK_EQ(results, 2); /* y and z are one value */
    heddle_nn_tasks_fini(&k);
    CHECK_EQ(k.ntasks, 0);
    CHECK_OK(heddle_nn_get_tasks(net, t, 1, 0, NULL, &k));
    CHECK(k.task[0].ns == 0);
    heddle_nn_tasks_fini(&k);
    CHECK_STATUS(heddle_nn_get_tasks(net, t, 2, 0, NULL, &k), HEDDLE_EINVAL);
    CHECK(k.own == NULL);
}

/* y by hand, one number: the operators of the file, then what the passes make of them. */
static void check_numbers(bool as_is, unsigned ntasks)
{
    const struct heddle_nn_opts o = {.size = sizeof(o), .as_is = as_is};
    const struct heddle_ctx_opts co = {.size = sizeof(co), .nworkers = 1, .ignore_env = true};
    float in[SIDE];
    struct heddle_nn_tensor t = tensor(in, 1);
    struct heddle_nn_plan_info info = {.size = sizeof(info)};
    struct heddle_nn_result *r = NULL;
    heddle_ctx *ctx = NULL;
    char path[32];
    heddle_nn *net = NULL;
    double sum = 0;

    write_model(path, 1);
    CHECK_OK(heddle_ctx_create(&co, &ctx));
    CHECK_OK(heddle_nn_open(ctx, path, &o, &net));
    CHECK(remove(path) == 0);
    fill(in, SIDE, 3);
    CHECK_OK(heddle_nn_run(net, &t, 1, NULL, &r));
    for (int k = 0; k < SIDE; k++)
        sum += (double)in[k] * (double)((float)((k * SIDE + 5) * 7 % 11) / 11 - 0.4f);
    CHECK_NEAR((double)((float *)r->output[0].data)[5], (sum > 0 ? sum : 0) + tanh((double)in[5]),
               1e-5);
    heddle_nn_result_destroy(r);
    CHECK_OK(heddle_nn_get_plan(net, &t, 1, NULL, &info));
    CHECK(info.is_static);
    CHECK_EQ(info.ntasks, ntasks);
    CHECK(info.arena_bytes >= info.peak_bytes && info.arena_bytes <= 8192);
    if (as_is)
        check_tasks(net, &t);
    heddle_nn_close(net);
    CHECK_OK(heddle_ctx_destroy(ctx));
}

TEST(numbers)
{
    check_numbers(true, 5); /* Identity is no task */
    check_numbers(false, 3);
}

TEST(refused)
{
    const struct heddle_ctx_opts co = {.size = sizeof(co), .nworkers = 1, .ignore_env = true};
    char why[300] = "";
    const struct heddle_nn_opts o = {.size = sizeof(o), .why = why, .why_bytes = sizeof(why)};
    float in[2 * SIDE] = {0};
    struct heddle_nn_tensor t = tensor(in, 2);
    struct heddle_nn_result *r = NULL;
    heddle_ctx *ctx = NULL;
    char path[32];
    heddle_nn *net = NULL;

    write_model(path, 2);
    CHECK_OK(heddle_ctx_create(&co, &ctx));
    CHECK_STATUS(heddle_nn_open(ctx, "none.onnx", &o, &net), HEDDLE_ENOENT);
    CHECK(strstr(why, "none.onnx") != NULL);
    CHECK_OK(heddle_nn_open(ctx, path, NULL, &net));
    CHECK(remove(path) == 0);
    CHECK_STATUS(heddle_nn_run(net, &t, 0, &o, &r), HEDDLE_EINVAL);
    t.bytes--;
    CHECK_STATUS(heddle_nn_run(net, &t, 1, &o, &r), HEDDLE_EINVAL);
    t = tensor(in, 1);
    CHECK_STATUS(heddle_nn_run(net, &t, 1, &o, &r), HEDDLE_EINVAL);
    CHECK(strstr(why, "'x'") != NULL);
    t = tensor(in, 2);
    t.ndim = 1;
    CHECK_STATUS(heddle_nn_run(net, &t, 1, &o, &r), HEDDLE_EINVAL);
    t = tensor(in, 2);
    t.type = HEDDLE_NN_I32;
    CHECK_STATUS(heddle_nn_run(net, &t, 1, &o, &r), HEDDLE_EINVAL);
    t = tensor(in, 2);
    t.dim[0] = INT64_MAX;
    CHECK_STATUS(heddle_nn_run(net, &t, 1, &o, &r), HEDDLE_EINVAL);
    CHECK(r == NULL);
    heddle_nn_close(net);
    CHECK_OK(heddle_ctx_destroy(ctx));
}

/* y = rows of a table by number; the operator fails for a number that the table lacks. */
static void write_table(char path[static 32])
{
    struct wire_out g = {.len = 0}, m = {.len = 0}, o = {.len = 0}, t = {.len = 0};
    struct wire_out v = {.len = 0}, type = {.len = 0}, x = {.len = 0}, s = {.len = 0}, d;
    const float table[] = {10, 11, 12};
    FILE *f = create_file(path);

    wire_int(&t, 1, 3);
    wire_int(&t, 2, HEDDLE_ONNX_FLOAT);
    wire_str(&t, 8, "T");
    wire_mem(&t, 9, table, sizeof(table));
    wire_sub_message(&g, 5, &t);
    d.len = 0;
    wire_int(&d, 1, 2);
    wire_sub_message(&s, 1, &d);
    wire_int(&x, 1, HEDDLE_ONNX_INT64);
    wire_sub_message(&x, 2, &s);
    wire_sub_message(&type, 1, &x);
    wire_str(&v, 1, "x");
    wire_sub_message(&v, 2, &type);
    wire_sub_message(&g, 11, &v);
    v.len = 0;
    wire_str(&v, 1, "y");
    wire_sub_message(&g, 12, &v);
    put_node(&g, "Gather", "T", "x", "a", NULL);
    put_node(&g, "Relu", "a", NULL, "y", NULL);
    wire_int(&m, 1, 8);
    wire_sub_message(&m, 7, &g);
    wire_int(&o, 2, 13);
    wire_sub_message(&m, 8, &o);
    CHECK(f != NULL);
    CHECK(fwrite(m.buf, 1, m.len, f) == m.len);
    CHECK(fclose(f) == 0);
}

/* A request that fails says which node and why, and those behind it are as if it had not been. */
TEST(failed_request)
{
    const struct heddle_ctx_opts co = {
        .size = sizeof(co), .nworkers = 2, .models = HEDDLE_OFF, .ignore_env = true};
    char why[300];
    const struct heddle_nn_opts o = {.size = sizeof(o), .why = why, .why_bytes = sizeof(why)};
    heddle_ctx *ctx = NULL;
    char path[32];
    heddle_nn *net = NULL;

    write_table(path);
    CHECK_OK(heddle_ctx_create(&co, &ctx));
    CHECK_OK(heddle_nn_open(ctx, path, NULL, &net));
    CHECK(remove(path) == 0);
    for (int64_t i = 0; i < 8; i++) {
        int64_t at[] = {i % 3, i % 2 ? 3 + i : 1};
        char want[32];
        const struct heddle_nn_tensor t = {
            .type = HEDDLE_NN_I64, .ndim = 1, .dim = {2}, .data = at, .bytes = sizeof(at)};
        struct heddle_nn_result *r = NULL;

        (void)snprintf(want, sizeof(want), "index %d of 3", (int)(3 + i));
        if (i % 2) {
            CHECK_STATUS(heddle_nn_run(net, &t, 1, &o, &r), HEDDLE_EINVAL);
            CHECK(strstr(why, "(Gather)") != NULL && strstr(why, want) != NULL);
            continue;
        }
        CHECK_OK(heddle_nn_run(net, &t, 1, &o, &r));
        CHECK(((const float *)r->output[0].data)[0] == (float)(10 + i % 3));
        CHECK(((const float *)r->output[0].data)[1] == 11.0f);
        heddle_nn_result_destroy(r);
    }
    heddle_nn_close(net);
    /* Tasks have failed, as wanted. */
    CHECK_STATUS(heddle_ctx_destroy(ctx), HEDDLE_EINVAL);
}

/* The k-th allocation fails: the call says so, and the next one works. */
TEST(tasks_without_memory)
{
    struct faulty f;
    struct heddle_ctx_opts co = {
        .size = sizeof(co), .nworkers = 1, .models = HEDDLE_OFF, .ignore_env = true};
    float in[2 * SIDE] = {0};
    const struct heddle_nn_tensor t = tensor(in, 2);
    heddle_ctx *ctx = NULL;
    char path[32];
    heddle_nn *net = NULL;

    faulty_init(&f, 0);
    co.allocator = f.a;
    write_model(path, 2);
    CHECK_OK(heddle_ctx_create(&co, &ctx));
    CHECK_OK(heddle_nn_open(ctx, path, NULL, &net));
    CHECK(remove(path) == 0);
    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        struct heddle_nn_tasks tasks = {.size = sizeof(tasks)};
        heddle_status st;

        f.has_failed = false;
        f.fail_at = f.ncalls + k;
        st = heddle_nn_get_tasks(net, &t, 1, 2, NULL, &tasks);
        f.fail_at = 0;
        CHECK_STATUS(st, f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
        CHECK_EQ(tasks.ntasks, f.has_failed ? 0 : 3);
        heddle_nn_tasks_fini(&tasks);
    }
    heddle_nn_close(net);
    (void)heddle_ctx_destroy(ctx);
    CHECK_EQ(f.nlive, 0);
}

TEST_MAIN(many_at_once, numbers, refused, failed_request, tasks_without_memory)
