/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Networks of images as tasks against the reference kernels: two by hand, whose copies are counted,
 * and random ones; plans whose k-th allocation fails.
 */
#include "base/faulty_test.h"
#include "nn/model_test.h"
#include "nn/op/step.h"

/* --- the comparison ------------------------------------------------------------------------ */

/* A plan's copies, and its tasks with the channels innermost. */
static void count_tasks(const struct nn_graph *g, const struct nn_value *in, void *to)
{
    unsigned *ncopies = to, *ninner = ncopies + 1;
    const struct nn_opts o = {0};
    struct nn_graph file = *g;
    struct nn_plan *p = NULL;

    file.as_is = true;
    CHECK_OK(heddle_nn_plan(&file, in, NULL, 2, &o, &p));
    *ncopies = *ninner = 0;
    for (uint32_t i = 0; i < p->ntasks; i++) {
        const bool is_copy = strcmp(p->task[i].node->op->name, "reorder") == 0;

        *ncopies += is_copy;
        *ninner += !is_copy && p->task[i].is_nhwc;
    }
    heddle_nn_plan_destroy(p);
}

static void compare(const char *path, unsigned *ncopies, unsigned *ninner)
{
    unsigned n[2];

    compare_model(path, count_tasks, n);
    *ncopies = n[0];
    *ninner = n[1];
}

/* Conv, Relu, a Conv of each channel, Add, MaxPool, Flatten, Gemm. */
static void write_chain(const char *path)
{
    struct wire_out g = {.len = 0};

    put_port(&g, 11, "x", 4, DIM(2, 3, 5, 7));
    put_port(&g, 12, "y", 0, NULL);
    put_weights(&g, "w1", 4, DIM(20, 3, 3, 3));
    put_weights(&g, "b1", 1, DIM(20));
    put_weights(&g, "w2", 4, DIM(20, 1, 3, 3));
    put_weights(&g, "w3", 2, DIM(120, 6));
    put_node(&g, "Conv", "x w1 b1", "c1", "pads=1,1,1,1");
    put_node(&g, "Relu", "c1", "r", "");
    put_node(&g, "Conv", "r w2", "c2", "group:20 pads=1,1,1,1");
    put_node(&g, "Add", "c2 r", "a", "");
    put_node(&g, "MaxPool", "a", "p", "kernel_shape=2,2 strides=2,2");
    put_node(&g, "Flatten", "p", "f", "axis:1");
    put_node(&g, "Gemm", "f w3", "y", "");
    end_model(path, &g, 13);
}

/* The only copy is that of what Flatten reads. */
TEST(chain)
{
    unsigned ncopies, ninner;

    write_chain("layout_chain.onnx");
    compare("layout_chain.onnx", &ncopies, &ninner);
    CHECK_EQ(ncopies, 1);
    CHECK_EQ(ninner, 5);
}

/* Readers that want it plain (two of them: one copy), an output that is an image, squeezed
 * channels, constants of many shapes, the same memory in two shapes. */
TEST(readers)
{
    struct wire_out g = {.len = 0};
    unsigned ncopies, ninner;

    put_port(&g, 11, "x", 4, DIM(1, 17, 4, 6));
    for (const char *const *name = (const char *const[]){"c", "t", "s", "k", "m", NULL}; *name;
         name++)
        put_port(&g, 12, *name, 0, NULL);
    put_weights(&g, "w1", 4, DIM(18, 17, 1, 1));
    put_weights(&g, "w2", 4, DIM(18, 18, 1, 1));
    put_weights(&g, "channels", 3, DIM(18, 1, 1));
    put_weights(&g, "image", 4, DIM(1, 18, 4, 6));
    put_node(&g, "Conv", "x w1", "c", "");
    put_node(&g, "Transpose", "c", "t", "perm=0,2,3,1");
    put_node(&g, "GlobalAveragePool", "c", "q", "");
    put_node(&g, "Conv", "q w2", "q2", "");
    put_node(&g, "Sigmoid", "q2", "q3", "");
    put_node(&g, "Mul", "q3 c", "se", "");
    put_node(&g, "Mul", "se channels", "se2", "");
    put_node(&g, "Sub", "image se2", "s", "");
    put_node(&g, "Concat", "c s se", "k", "axis:1");
    put_node(&g, "Identity", "s", "i", "");
    put_node(&g, "Conv", "i w2", "m", "");
    end_model("layout_readers.onnx", &g, 13);
    compare("layout_readers.onnx", &ncopies, &ninner);
    CHECK_EQ(ncopies, 5); /* x; the outputs c, s, k, m */
    CHECK_EQ(ninner, 8);  /* not Sigmoid: its layouts are the same */
}

/* --- random networks --------------------------------------------------------------------- */

struct image {
    char name[8];
    unsigned c, h, w;
};

struct maze {
    struct wire_out g;
    struct image image[24];
    unsigned n, nweights;
};

static const char *weights(struct maze *z, char name[8], unsigned rank, const unsigned *dim)
{
    (void)snprintf(name, 8, "w%u", z->nweights++);
    put_weights(&z->g, name, rank, dim);
    return name;
}

static void maze_conv(struct maze *z, const struct image *x, struct image *y)
{
    const unsigned k = 1 + 2 * rnd(2), kind = rnd(3),
                   groups = kind == 0 ? x->c : 1 + (kind == 1 && x->c % 2 == 0 ? 1u : 0u);
    char in[40], attrs[80], name[8];

    y->c = kind == 0 ? x->c : groups * (1 + rnd(8));
    weights(z, name, 4, DIM(y->c, x->c / groups, k, k));
    (void)snprintf(in, sizeof(in), "%s %s", x->name, name);
    (void)snprintf(attrs, sizeof(attrs), "group:%u pads=%u,%u,%u,%u", groups, k / 2, k / 2, k / 2,
                   k / 2);
    put_node(&z->g, "Conv", in, y->name, attrs);
}

/* The height and width that the data have. */
static void maze_conv_transpose(struct maze *z, const struct image *x, struct image *y)
{
    const unsigned k = 1 + 2 * rnd(2);
    char in[40], attrs[80], name[8];

    y->c = 1 + rnd(20);
    weights(z, name, 4, DIM(x->c, y->c, k, k));
    (void)snprintf(in, sizeof(in), "%s %s", x->name, name);
    (void)snprintf(attrs, sizeof(attrs), "pads=%u,%u,%u,%u", k / 2, k / 2, k / 2, k / 2);
    put_node(&z->g, "ConvTranspose", in, y->name, attrs);
}

/* Two operands: another image of the same shape, its channels' means, or a constant. */
static void maze_two(struct maze *z, const struct image *x, struct image *y)
{
    static const char *const op[] = {"Add", "Sub", "Mul", "Sum", "Concat"};
    const unsigned kind = rnd(5), what = rnd(5);
    char in[40], name[8] = "";

    for (unsigned i = 0; i < z->n && what == 4; i++)
        if (z->image[i].c == x->c && z->image[i].h == x->h && z->image[i].w == x->w)
            memcpy(name, z->image[i].name, sizeof(name));
    if (name[0] == '\0' && (kind == 4 || what == 4))
        memcpy(name, x->name, sizeof(name));
    else if (what == 0)
        weights(z, name, 4, DIM(1, x->c, x->h, x->w));
    else if (what == 1)
        weights(z, name, 3, DIM(x->c, 1, 1));
    else if (what == 2)
        weights(z, name, 4, DIM(1, 1, x->h, 1));
    else if (what == 3) {
        (void)snprintf(name, sizeof(name), "p%u", z->n);
        put_node(&z->g, "GlobalAveragePool", x->name, name, "");
    }
    if (rnd(2))
        (void)snprintf(in, sizeof(in), "%s %s", x->name, name);
    else
        (void)snprintf(in, sizeof(in), "%s %s", name, x->name);
    put_node(&z->g, op[kind], in, y->name, kind == 4 ? "axis:1" : "");
    y->c *= kind == 4 ? 2 : 1;
}

static void maze_norm(struct maze *z, const struct image *x, const struct image *y)
{
    char in[60], name[4][8];

    for (int i = 0; i < 4; i++)
        weights(z, name[i], 1, DIM(x->c));
    /* The variance is positive. */
    put_node(&z->g, "Abs", name[3], "variance", "");
    (void)snprintf(in, sizeof(in), "%s %s %s %s variance", x->name, name[0], name[1], name[2]);
    put_node(&z->g, "BatchNormalization", in, y->name, "");
}

/* The same memory in another shape. */
static void maze_shape(struct maze *z, const struct image *x, struct image *y)
{
    const int64_t dim[4] = {2, x->c, x->w, x->h};
    struct wire_out t = {.len = 0};
    char in[40], name[8];

    (void)snprintf(name, sizeof(name), "w%u", z->nweights++);
    wire_int(&t, 1, 4);
    wire_int(&t, 2, HEDDLE_ONNX_INT64);
    wire_str(&t, 8, name);
    wire_mem(&t, 9, dim, sizeof(dim));
    wire_sub_message(&z->g, 5, &t);
    (void)snprintf(in, sizeof(in), "%s %s", x->name, name);
    put_node(&z->g, "Reshape", in, y->name, "");
    y->h = x->w;
    y->w = x->h;
}

static void maze_one(struct maze *z, const struct image *x, struct image *y)
{
    static const char *const op[] = {"Relu", "Sigmoid", "Tanh", "Neg", "Identity"};

    switch (rnd(6)) {
    case 0: put_node(&z->g, "MaxPool", x->name, y->name, "kernel_shape=3,3 pads=1,1,1,1"); break;
    case 1:
        put_node(&z->g, "Transpose", x->name, y->name, "perm=0,1,3,2");
        y->h = x->w;
        y->w = x->h;
        break;
    case 2: maze_shape(z, x, y); break;
    default: put_node(&z->g, op[rnd(5)], x->name, y->name, "");
    }
}

static void write_maze(const char *path)
{
    static struct maze z;
    const unsigned size[] = {1, 2, 5, 6}, h = size[rnd(4)], w = size[rnd(4)], c = 1 + rnd(19);
    bool has_norm = false;

    z = (struct maze){.n = 1};
    z.image[0] = (struct image){"x", c, h, w};
    put_port(&z.g, 11, "x", 4, DIM(2, c, h, w));
    while (z.n < 14 && z.g.len < FILL) {
        const struct image *x = &z.image[rnd(3) > 0 ? z.n - 1 : rnd(z.n)];
        struct image *y = &z.image[z.n];
        const unsigned kind = rnd(10);

        *y = *x;
        (void)snprintf(y->name, sizeof(y->name), "v%u", z.n);
        if (x->c <= 20 && kind < 3)
            maze_conv(&z, x, y);
        else if (x->c <= 20 && kind == 3)
            maze_conv_transpose(&z, x, y);
        else if (x->c <= 20 && kind < 7)
            maze_two(&z, x, y);
        else if (kind == 7 && !has_norm) {
            maze_norm(&z, x, y);
            has_norm = true;
        } else
            maze_one(&z, x, y);
        z.n++;
        if (rnd(4) == 0)
            put_port(&z.g, 12, y->name, 0, NULL);
    }
    if (z.n < sizeof(z.image) / sizeof(z.image[0]))
        put_node(&z.g, "Identity", z.image[z.n - 1].name, "last", "");
    put_port(&z.g, 12, "last", 0, NULL);
    end_model(path, &z.g, 13);
}

TEST(random_networks)
{
    unsigned copies = 0, inner = 0;

    seed = (uint32_t)test_seed();
    for (unsigned i = 0; i < test_scale(60); i++) {
        unsigned ncopies, ninner;

        write_maze("layout_maze.onnx");
        compare("layout_maze.onnx", &ncopies, &ninner);
        copies += ncopies;
        inner += ninner;
    }
    CHECK(copies > 0 && inner > copies);
}

/* --- weights --------------------------------------------------------------------------------- */

/* Objects with packed weights in a plan, all of which have `users` users. */
static unsigned count_weights(const struct nn_plan *p, size_t users)
{
    unsigned n = 0;

    for (uint32_t i = 0; i < p->ntasks; i++) {
        const struct heddle_dnn *o = heddle_nn_step_dnn(&p->task[i].step);

        if (o == NULL || heddle_dnn_packed_users(o) == 0)
            continue;
        CHECK_EQ(heddle_dnn_packed_users(o), users);
        n++;
    }
    return n;
}

/* A plan that is like another one has its packed weights, and keeps them when that one ends. */
TEST(shared_weights)
{
    const struct nn_opts o = {0};
    struct nn_plan *first = NULL, *like = NULL, *alone = NULL;
    struct nn_model *m = NULL;
    struct nn_value in;

    write_chain("layout_chain.onnx");
    CHECK_OK(heddle_nn_load("layout_chain.onnx", &o, &m));
    in = m->graph->value[m->graph->input[0]].declared;
    CHECK_OK(heddle_nn_plan(m->graph, &in, NULL, 2, &o, &first));
    CHECK_OK(heddle_nn_plan(m->graph, &in, NULL, 2, &o, &alone));
    CHECK(count_weights(first, 1) > 0);
    CHECK_OK(heddle_nn_plan(m->graph, &in, &(struct nn_plan_with){.like = first}, 2, &o, &like));
    CHECK_EQ(count_weights(like, 2), count_weights(first, 2));
    CHECK_EQ(count_weights(alone, 1), count_weights(first, 2));
    heddle_nn_plan_destroy(first);
    CHECK_EQ(count_weights(like, 1), count_weights(alone, 1));
    heddle_nn_plan_destroy(like);
    heddle_nn_plan_destroy(alone);
    heddle_nn_unload(m);
}

/* --- no memory ----------------------------------------------------------------------------- */

TEST(no_memory)
{
    const struct nn_opts o = {0};
    struct nn_model *m = NULL;
    struct nn_value in;
    struct faulty f;

    write_chain("layout_chain.onnx");
    CHECK_OK(heddle_nn_load("layout_chain.onnx", &o, &m));
    in = m->graph->value[m->graph->input[0]].declared;
    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        const struct nn_opts fo = {.alloc = &f.a};
        struct nn_plan *p = NULL;
        heddle_status st;

        faulty_init(&f, k);
        st = heddle_nn_plan(m->graph, &in, NULL, 2, &fo, &p);
        CHECK_STATUS(st, f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
        heddle_nn_plan_destroy(p);
        CHECK_EQ(f.nlive, 0);
    }
    heddle_nn_unload(m);
}

TEST_MAIN(chain, readers, random_networks, shared_weights, no_memory)
