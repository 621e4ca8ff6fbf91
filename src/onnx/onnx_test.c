/* SPDX-License-Identifier: BSD-3-Clause */
/* Files written byte by byte: all fields, cut anywhere, changed anywhere, without memory. */
#include "onnx/onnx.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/faulty_test.h"
#include "base/rng.h"
#include "onnx/wire_test.h"

static void write_file(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");

    CHECK(f != NULL);
    CHECK(fwrite(p, 1, n, f) == n);
    CHECK(fclose(f) == 0);
}

/* Graph: one Conv with attributes of several types, weights in three ways, a symbol. */
static void make_model(struct wire_out *model)
{
    struct wire_out graph = {.len = 0}, node = {.len = 0}, sub = {.len = 0}, dim = {.len = 0},
                    type = {.len = 0};
    const float w[2] = {1.5f, -2};

    wire_str(&node, 1, "x");
    wire_str(&node, 1, "");
    wire_str(&node, 2, "y");
    wire_str(&node, 3, "conv1");
    wire_str(&node, 4, "Conv");
    wire_str(&sub, 1, "pads");
    wire_mem(&sub, 8, "\x01\x02\x83\x01", 4); /* packed: 1, 2, 131 */
    wire_int(&sub, 8, -1);                    /* and one more, not packed */
    wire_int(&sub, 20, 7);
    wire_sub_message(&node, 5, &sub);
    sub.len = 0;
    wire_str(&sub, 1, "alpha");
    wire_f32(&sub, 2, 0.5f);
    wire_sub_message(&node, 5, &sub);
    wire_sub_message(&graph, 1, &node);
    wire_str(&graph, 2, "g");
    sub.len = 0;
    wire_int(&sub, 1, 2);
    wire_int(&sub, 2, HEDDLE_ONNX_FLOAT);
    wire_str(&sub, 8, "raw");
    wire_mem(&sub, 9, w, sizeof(w));
    wire_sub_message(&graph, 5, &sub);
    sub.len = 0;
    wire_mem(&sub, 1, "\x03", 1);
    wire_int(&sub, 2, HEDDLE_ONNX_INT8);
    wire_int(&sub, 5, -1);
    wire_int(&sub, 5, 2);
    wire_int(&sub, 5, 127);
    wire_str(&sub, 8, "small");
    wire_sub_message(&graph, 5, &sub);
    sub.len = 0;
    wire_str(&sub, 2, "batch");
    wire_sub_message(&dim, 1, &sub);
    sub.len = 0;
    wire_int(&sub, 1, 3);
    wire_sub_message(&dim, 1, &sub);
    sub.len = 0;
    wire_int(&sub, 1, HEDDLE_ONNX_FLOAT16);
    wire_sub_message(&sub, 2, &dim);
    wire_sub_message(&type, 1, &sub);
    sub.len = 0;
    wire_str(&sub, 1, "x");
    wire_sub_message(&sub, 2, &type);
    wire_sub_message(&graph, 11, &sub);
    wire_int(model, 1, 8);
    wire_str(model, 2, "a test");
    wire_sub_message(model, 7, &graph);
    sub.len = 0;
    wire_int(&sub, 2, 17);
    wire_sub_message(model, 8, &sub);
    wire_int(model, 99, 5); /* unknown: skipped */
}

TEST(all_fields)
{
    struct wire_out m = {.len = 0};
    struct heddle_onnx_file *f = NULL;
    const struct heddle_onnx_graph *g;
    const struct heddle_onnx_attr *a;
    float w[2];

    make_model(&m);
    CHECK_OK(heddle_onnx_decode(m.buf, m.len, "m", HEDDLE_ONNX_MODEL, NULL, &f));
    CHECK_EQ(f->model->ir_version, 8);
    CHECK_STR(f->model->producer, "a test");
    CHECK_STR(f->model->domain, "");
    CHECK_EQ(f->model->opset[0].version, 17);
    CHECK_STR(f->model->opset[0].domain, "");
    g = f->model->graph;
    CHECK_EQ(g->nnodes, 1);
    CHECK_EQ(g->node[0].ninputs, 2);
    CHECK_STR(g->node[0].input[1], "");
    CHECK_STR(g->node[0].op_type, "Conv");
    a = g->node[0].attr;
    CHECK_EQ(g->node[0].nattrs, 2);
    CHECK_EQ(a[0].nints, 4);
    CHECK_EQ(a[0].ints[2], 131);
    CHECK_EQ(a[0].ints[3], -1);
    CHECK_EQ(a[1].type, HEDDLE_ONNX_ATTR_FLOAT); /* guessed */
    CHECK_EQ(g->ninits, 2);
    CHECK_EQ(g->init[0].bytes, 8);
    memcpy(w, g->init[0].data, sizeof(w));
    CHECK(w[0] == 1.5f && w[1] == -2);
    CHECK((const uint8_t *)g->init[0].data > m.buf); /* not copied */
    CHECK((const uint8_t *)g->init[0].data < m.buf + m.len);
    CHECK_EQ(g->init[1].bytes, 3);
    CHECK_EQ(((const int8_t *)g->init[1].data)[0], -1);
    CHECK_EQ(((const int8_t *)g->init[1].data)[2], 127);
    CHECK_STR(g->input[0].type->tensor->shape->dim[0].param, "batch");
    CHECK_EQ(g->input[0].type->tensor->shape->dim[0].value, -1);
    CHECK_EQ(g->input[0].type->tensor->shape->dim[1].value, 3);
    heddle_onnx_close(f);
    heddle_onnx_close(NULL);
}

TEST(no_memory)
{
    struct wire_out m = {.len = 0};
    struct faulty a;

    make_model(&m);
    for (size_t k = 1; k == 1 || a.has_failed; k++) {
        char why[200] = "";
        struct heddle_onnx_opts o = {NULL, why, sizeof(why)};
        struct heddle_onnx_file *f = NULL;
        heddle_status st;

        faulty_init(&a, k);
        o.alloc = &a.a;
        st = heddle_onnx_decode(m.buf, m.len, "m", HEDDLE_ONNX_MODEL, &o, &f);
        CHECK_STATUS(st, a.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
        CHECK(!a.has_failed || strstr(why, "no memory") != NULL);
        heddle_onnx_close(f);
        CHECK_EQ(a.nlive, 0);
    }
}

/* What may have happened to bytes: the reader takes them or says a sentence. */
static void try_bytes(const void *p, size_t n)
{
    uint8_t *copy = malloc(n > 0 ? n : 1); /* its end is watched */
    char why[300] = "";
    const struct heddle_onnx_opts o = {NULL, why, sizeof(why)};
    struct heddle_onnx_file *f = NULL;

    CHECK(copy != NULL);
    memcpy(copy, p, n);
    for (int kind = 0; kind < 4; kind++) {
        const heddle_status st =
            heddle_onnx_decode(copy, n, "m", (enum heddle_onnx_kind)kind, &o, &f);

        CHECK(st == HEDDLE_OK || (st == HEDDLE_EFORMAT && strncmp(why, "m: ", 3) == 0));
        if (st == HEDDLE_OK)
            heddle_onnx_close(f);
    }
    free(copy);
}

TEST(cut_anywhere)
{
    struct wire_out m = {.len = 0};

    make_model(&m);
    for (size_t n = 0; n < m.len; n++)
        try_bytes(m.buf, n);
}

TEST(changed_anywhere)
{
    struct wire_out m = {.len = 0}, c;
    struct heddle_rng rng;

    make_model(&m);
    heddle_rng_seed(&rng, test_seed());
    for (size_t i = 0; i < test_scale(10000); i++) {
        c = m;
        for (unsigned k = 0; k <= heddle_rng_below32(&rng, 4); k++)
            c.buf[heddle_rng_below(&rng, c.len)] = (uint8_t)heddle_rng_next(&rng);
        try_bytes(c.buf, c.len);
    }
}

/* Decodes a tensor, which must fail with this in its sentence. */
static void refused(const struct wire_out *w, enum heddle_onnx_kind kind, const char *part)
{
    char why[300] = "";
    const struct heddle_onnx_opts o = {NULL, why, sizeof(why)};
    struct heddle_onnx_file *f = NULL;

    CHECK_STATUS(heddle_onnx_decode(w->buf, w->len, "t", kind, &o, &f), HEDDLE_EFORMAT);
    if (strstr(why, part) == NULL)
        CHECK_STR(why, part);
}

TEST(sentences)
{
    struct wire_out w = {.len = 0}, in;

    wire_int(&w, 1, INT64_MAX);
    wire_int(&w, 1, INT64_MAX);
    wire_int(&w, 2, HEDDLE_ONNX_FLOAT);
    refused(&w, HEDDLE_ONNX_TENSOR, "overflow");
    w.len = 0;
    wire_int(&w, 1, -1);
    wire_int(&w, 2, HEDDLE_ONNX_FLOAT);
    refused(&w, HEDDLE_ONNX_TENSOR, "the dimension -1");
    w.len = 0;
    wire_int(&w, 1, 4);
    wire_int(&w, 2, HEDDLE_ONNX_FLOAT);
    wire_mem(&w, 9, "abcd", 4);
    refused(&w, HEDDLE_ONNX_TENSOR, "needs 16 bytes and has 4");
    w.len = 0;
    wire_int(&w, 2, 77);
    refused(&w, HEDDLE_ONNX_TENSOR, "unknown type 77");
    w.len = 0;
    refused(&w, HEDDLE_ONNX_MODEL, "no graph");
    wire_int(&w, 7, 3);
    refused(&w, HEDDLE_ONNX_MODEL, "wire type");
    w.len = 0;
    for (int i = 0; i < 300; i++) { /* optional in optional in ... */
        in = w;
        w.len = 0;
        wire_sub_message(&w, 7, &in);
    }
    refused(&w, HEDDLE_ONNX_OPTIONAL, "levels");
}

/* A model with one tensor in an external file. */
static void make_external(struct wire_out *model, const char *location, const char *offset,
                          const char *length)
{
    const char *const pair[3][2] = {{"location", location}, {"offset", offset}, {"length", length}};
    struct wire_out t = {.len = 0}, g = {.len = 0}, e;

    wire_int(&t, 1, 2);
    wire_int(&t, 2, HEDDLE_ONNX_INT32);
    wire_str(&t, 8, "w");
    wire_int(&t, 14, 1);
    for (int i = 0; i < 3; i++) {
        e.len = 0;
        wire_str(&e, 1, pair[i][0]);
        wire_str(&e, 2, pair[i][1]);
        wire_sub_message(&t, 13, &e);
    }
    wire_sub_message(&g, 5, &t);
    model->len = 0;
    wire_sub_message(model, 7, &g);
}

static heddle_status open_external(const char *location, const char *offset, const char *length,
                                   int *sum_out)
{
    struct heddle_onnx_file *f = NULL;
    struct wire_out m;
    heddle_status st;
    int v[2];

    make_external(&m, location, offset, length);
    write_file("onnx_test.dir/m.onnx", m.buf, m.len);
    st = heddle_onnx_open("onnx_test.dir/m.onnx", HEDDLE_ONNX_MODEL, NULL, &f);
    if (st != HEDDLE_OK)
        return st;
    memcpy(v, f->model->graph->init[0].data, sizeof(v));
    *sum_out = v[0] + v[1];
    heddle_onnx_close(f);
    return st;
}

TEST(external_files)
{
    const int v[3] = {100, 20, 3};
    int sum = 0;

    (void)mkdir("onnx_test.dir", 0700);
    (void)mkdir("onnx_test.dir/sub", 0700);
    write_file("onnx_test.dir/sub/w.bin", v, sizeof(v));
    write_file("onnx_test.out", v, sizeof(v));
    (void)unlink("onnx_test.dir/link");
    (void)unlink("onnx_test.dir/sub/up");
    CHECK(symlink("../onnx_test.out", "onnx_test.dir/link") == 0);
    CHECK(symlink("../..", "onnx_test.dir/sub/up") == 0);
    CHECK_OK(open_external("sub/w.bin", "4", "8", &sum));
    CHECK_EQ(sum, 23);
    CHECK_OK(open_external("./sub/w.bin", "", "", &sum));
    CHECK_EQ(sum, 120);
    CHECK_STATUS(open_external("sub/none", "", "", &sum), HEDDLE_ENOENT);
    CHECK_STATUS(open_external("sub/w.bin", "5", "8", &sum), HEDDLE_EFORMAT);
    CHECK_STATUS(open_external("sub/w.bin", "4", "4", &sum), HEDDLE_EFORMAT);
    CHECK_STATUS(open_external("sub/w.bin", "18446744073709551615", "8", &sum), HEDDLE_EFORMAT);
    CHECK_STATUS(open_external("../onnx_test.out", "", "", &sum), HEDDLE_EFORMAT);
    CHECK_STATUS(open_external("sub/../../onnx_test.out", "", "", &sum), HEDDLE_EFORMAT);
    CHECK_STATUS(open_external("/etc/passwd", "0", "8", &sum), HEDDLE_EFORMAT);
    CHECK_STATUS(open_external("link", "", "", &sum), HEDDLE_EFORMAT);
    CHECK_STATUS(open_external("sub/up/onnx_test.out", "", "", &sum), HEDDLE_EFORMAT);
    CHECK_STATUS(open_external("sub", "", "", &sum), HEDDLE_EFORMAT);
    CHECK_STATUS(open_external("", "", "", &sum), HEDDLE_EFORMAT);
}

TEST(no_file)
{
    struct heddle_onnx_file *f = NULL;

    CHECK_STATUS(heddle_onnx_open("/nonexistent/m", HEDDLE_ONNX_MODEL, NULL, &f), HEDDLE_ENOENT);
    CHECK_STATUS(heddle_onnx_open("/", HEDDLE_ONNX_MODEL, NULL, &f), HEDDLE_EFORMAT);
    CHECK_STATUS(heddle_onnx_open("/dev/null", HEDDLE_ONNX_MODEL, NULL, &f), HEDDLE_EFORMAT);
    CHECK(f == NULL);
}

/* Pages of files that are in the memory of this process; 0: nobody says. */
static size_t resident_pages(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    unsigned long size = 0, rss = 0, shared = 0;

    if (f == NULL)
        return 0;
    if (fscanf(f, "%lu %lu %lu", &size, &rss, &shared) != 3)
        shared = 0;
    (void)fclose(f);
    return shared;
}

static unsigned sum_of(const uint8_t *p, size_t n)
{
    unsigned sum = 0;

    for (size_t i = 0; i < n; i++)
        sum = sum * 31 + p[i];
    return sum;
}

/* A tensor of 8 MiB is read, leaves the memory of the process, and is read again. */
TEST(pages_given_back)
{
    const size_t n = (size_t)8 << 20, page = (size_t)sysconf(_SC_PAGESIZE);
    struct wire_out m = {.len = 0}, graph = {.len = 0}, init = {.len = 0}, pair = {.len = 0};
    uint8_t own[64] = {7};
    struct heddle_onnx_file *f = NULL;
    const struct heddle_onnx_tensor *t;
    size_t before, after;
    unsigned sum;
    char *file;

    (void)mkdir("onnx_test.dir", 0700);
    wire_int(&init, 1, (int64_t)n);
    wire_int(&init, 2, HEDDLE_ONNX_UINT8);
    wire_str(&init, 8, "big");
    wire_str(&pair, 1, "location");
    wire_str(&pair, 2, "big.bin");
    wire_sub_message(&init, 13, &pair);
    wire_int(&init, 14, 1);
    wire_sub_message(&graph, 5, &init);
    wire_sub_message(&m, 7, &graph);
    file = malloc(n);
    CHECK(file != NULL);
    for (size_t i = 0; i < n; i++)
        file[i] = (char)(i * i >> 7);
    sum = sum_of((const uint8_t *)file, n);
    write_file("onnx_test.dir/big.bin", file, n);
    free(file);
    write_file("onnx_test.dir/big.onnx", m.buf, m.len);
    CHECK_OK(heddle_onnx_open("onnx_test.dir/big.onnx", HEDDLE_ONNX_MODEL, NULL, &f));
    t = &f->model->graph->init[0];
    CHECK_EQ(t->bytes, n);
    CHECK_EQ(sum_of(t->data, n), sum);
    before = resident_pages();
    heddle_onnx_give_back(f, (const char *)t->data + 1, n - 2); /* whole pages only */
    heddle_onnx_give_back(f, own, sizeof(own));
    heddle_onnx_give_back(f, f, 1 << 16);
    after = resident_pages();
    if (before > 0)
        CHECK(before - after >= n / page - 2 - 64); /* other pages may come meanwhile */
    CHECK_EQ(own[0], 7);
    CHECK_EQ(sum_of(t->data, n), sum);
    heddle_onnx_close(f);
}

TEST_MAIN(all_fields, no_memory, cut_anywhere, changed_anywhere, sentences, external_files, no_file,
          pages_given_back)
