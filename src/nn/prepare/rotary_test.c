/* SPDX-License-Identifier: BSD-3-Clause */
/* The pass `rotary`: ways to write rotary positions, and look-alikes that stay as they are. */
#include "base/faulty_test.h"
#define GRAPH_FILE "prepare_rotary.onnx"
#include "nn/prepare/graph_test.h"

enum { HEADS = 3, ROWS = 5, DIMS = 8 };

/* One way to write them; what is NULL or 0 is as exporters write it. */
struct how {
    const char *low, *high; /* operands of the slices, behind x */
    const char *concat;     /* operands */
    const char *axis;
    const char *cos, *sin; /* operands of the products */
    const char *sum;       /* operands */
    const char *high_of;   /* what the second slice is of */
    const char *sign;      /* operator */
    const char *add;       /* operator */
};

static void put_rotary(const char *x, const struct how *h)
{
    char in[80];

    put_list(&g, "zero", 1, (const int64_t[]){0});
    put_list(&g, "one", 1, (const int64_t[]){1});
    put_list(&g, "two", 1, (const int64_t[]){2});
    put_list(&g, "minus", 1, (const int64_t[]){-DIMS / 2});
    put_list(&g, "four", 1, (const int64_t[]){DIMS / 2});
    put_list(&g, "eight", 1, (const int64_t[]){DIMS});
    put_list(&g, "far", 1, (const int64_t[]){INT64_MAX});
    put_list(&g, "last", 1, (const int64_t[]){3});
    put_list(&g, "end", 1, (const int64_t[]){-1});
    put_list(&g, "back", 1, (const int64_t[]){-1});
    put_list(&g, "starts", 2, (const int64_t[]){INT64_MAX, 0});
    put_list(&g, "ends", 2, (const int64_t[]){INT64_MIN, DIMS / 2});
    put_list(&g, "axes", 2, (const int64_t[]){2, 3});
    put_list(&g, "steps", 2, (const int64_t[]){-1, 1});
    put_weights(&g, "cos", 4, DIM(1, 1, ROWS, DIMS));
    put_weights(&g, "sin", 2, DIM(ROWS, DIMS));
    put_weights(&g, "head", 3, DIM(HEADS, 1, DIMS));
    put_weights(&g, "col", 2, DIM(ROWS, 1));
    put_weights(&g, "five", 5, DIM(2, 1, 1, 1, DIMS));
    (void)snprintf(in, sizeof(in), "%s %s", x, h->low != NULL ? h->low : "zero four last one");
    node("Slice", in, "low", "");
    (void)snprintf(in, sizeof(in), "%s %s", h->high_of != NULL ? h->high_of : x,
                   h->high != NULL ? h->high : "four far last one");
    node("Slice", in, "high", "");
    node(h->sign != NULL ? h->sign : "Neg", "high", "neg", "");
    node("Concat", h->concat != NULL ? h->concat : "neg low", "turned",
         h->axis != NULL ? h->axis : "axis:-1");
    (void)snprintf(in, sizeof(in), "%s cos", x);
    node("Mul", h->cos != NULL ? h->cos : in, "a", "");
    node("Mul", h->sin != NULL ? h->sin : "turned sin", "b", "");
    node(h->add != NULL ? h->add : "Add", h->sum != NULL ? h->sum : "a b", "y", "");
}

static void begin_rotary(void)
{
    begin(4, DIM(2, HEADS, ROWS, DIMS));
}

static void joins(const struct how *h)
{
    begin_rotary();
    put_rotary("x", h);
    expect("y", 1, "FusedRotary", 1);
}

TEST(rotaries)
{
    joins(&(struct how){0});
    joins(&(struct how){.sum = "b a"});
    joins(&(struct how){.cos = "cos x", .sin = "sin turned"});
    joins(&(struct how){.low = "zero four end", .high = "minus eight end"});
    joins(&(struct how){.axis = "axis:3"});
    joins(&(struct how){.cos = "x head", .sin = "turned head"});
    joins(&(struct how){.cos = "x x", .sin = "turned x"});
}

TEST(factors_from_requests)
{
    begin_rotary();
    node("Sin", "x", "s", "");
    node("Cos", "x", "c", "");
    put_rotary("x", &(struct how){.cos = "x c", .sin = "s turned"});
    expect("y", 3, "FusedRotary", 1);
}

/* Exporters compute all heads of a token together, and transpose. */
TEST(transposed)
{
    begin(4, DIM(2, ROWS, HEADS, DIMS));
    node("Transpose", "x", "t", "perm=0,2,1,3");
    put_rotary("t", &(struct how){0});
    expect("y", 1, "FusedRotary", 1);
    begin(4, DIM(ROWS, HEADS, 2, DIMS));
    node("Transpose", "x", "t", "perm=2,1,0,3");
    put_rotary("t", &(struct how){0});
    expect("y", 1, "FusedRotary", 1);
    begin(4, DIM(2, HEADS, DIMS, ROWS)); /* moves the last axis: it stays */
    node("Transpose", "x", "t", "perm=0,1,3,2");
    put_rotary("t", &(struct how){0});
    expect("y", 2, "FusedRotary", 1);
    begin(4, DIM(2, ROWS, HEADS, DIMS)); /* others read it */
    node("Transpose", "x", "t", "perm=0,2,1,3");
    put_rotary("t", &(struct how){0});
    expect("y t", 2, "FusedRotary", 1);
    begin(4, DIM(2, ROWS, HEADS, DIMS)); /* cos reads it */
    node("Transpose", "x", "t", "perm=0,2,1,3");
    put_rotary("t", &(struct how){.cos = "t t"});
    expect("y", 2, "FusedRotary", 1);
}

static void stays(const char *outputs, unsigned ntasks, const struct how *h)
{
    begin_rotary();
    node("Tanh", "x", "other", "");
    put_rotary("x", h);
    expect(outputs, ntasks, "FusedRotary", 0);
}

TEST(no_rotaries)
{
    stays("y", 5, &(struct how){.concat = "low neg"});
    stays("y", 6, &(struct how){.high_of = "other"});
    stays("y", 5, &(struct how){.cos = "other cos"});
    stays("y", 5, &(struct how){.sign = "Abs"});
    stays("y", 5, &(struct how){.add = "Sub"});
    stays("y", 5, &(struct how){.high = "zero four last one"});
    stays("y", 5, &(struct how){.high = "one eight last two"}); /* every second one */
    stays("y", 5, &(struct how){.low = "four eight last one", .high = "zero four last one"});
    stays("y", 5, &(struct how){.low = "starts ends axes steps"}); /* rows from behind */
    stays("y", 5, &(struct how){.cos = "x col"});                  /* one number for a row */
    stays("y", 6, &(struct how){.sin = "turned a"});
    stays("y", 6, &(struct how){.sin = "turned five"}); /* the result has more dimensions */
}

/* Somebody else reads a part. */
TEST(parts_are_read)
{
    stays("y low", 5, &(struct how){0});
    stays("y high", 5, &(struct how){0});
    stays("y neg", 5, &(struct how){0});
    stays("y turned", 5, &(struct how){0});
    stays("y a", 6, &(struct how){0});
    stays("y b", 6, &(struct how){0});
}

TEST(no_memory)
{
    const struct nn_opts o = {0};
    struct nn_model *m = NULL;
    struct nn_value in;
    struct faulty f;

    begin_rotary();
    put_rotary("x", &(struct how){0});
    put_port(&g, 12, "y", 0, NULL);
    end_model(path, &g, 17);
    CHECK_OK(heddle_nn_load(path, &o, &m));
    CHECK(remove(path) == 0);
    in = m->graph->value[m->graph->input[0]].declared;
    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        struct nn_plan *p = NULL;
        heddle_status st;

        faulty_init(&f, k);
        st = heddle_nn_plan(m->graph, &in, NULL, 2, &(struct nn_opts){.alloc = &f.a}, &p);
        CHECK_STATUS(st, f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
        heddle_nn_plan_destroy(p);
        CHECK_EQ(f.nlive, 0);
    }
    heddle_nn_unload(m);
}

TEST_MAIN(rotaries, factors_from_requests, transposed, no_rotaries, parts_are_read, no_memory)
