/* SPDX-License-Identifier: BSD-3-Clause */
/* Graphs with joules from models: rows, caps, split types, what is missing. */
#include "base/faulty_test.h"
#include "energy/graph_test.h"

/* Two kinds of tasks on cores and two kinds of devices, by hand. */
struct fake {
    struct heddle_log_graph g;
    struct heddle_log_graph_type types[3];
    struct heddle_log_graph_kind kinds[2];
    uint32_t nworkers[3], kind[3], type[3];
    double time[6], took[3];
};

static void fake_make(struct fake *f)
{
    *f = (struct fake){.types = {{.name = "cpu", .device = 1, .nworkers = 4},
                                 {.name = "cuda0", .device = 2, .nworkers = 1},
                                 {.name = "big box", .device = 2, .nworkers = 3}},
                       .kinds = {{.name = "a", .bytes = 100}, {.name = "b", .bytes = 200}},
                       .nworkers = {4, 1, 3},
                       .kind = {0, 1, 0},
                       .type = {0, 1, 2},
                       .time = {10e9, 1e9, 2e9, 20e9, INFINITY, 4e9},
                       .took = {10e9, 3e9, 2e9}};
    f->g = (struct heddle_log_graph){.size = sizeof(f->g),
                                     .graph = {.size = sizeof(f->g.graph),
                                               .ntasks = 3,
                                               .ntypes = 3,
                                               .nkinds = 2,
                                               .nworkers = f->nworkers,
                                               .kind = f->kind,
                                               .time = f->time},
                                     .kind = f->kind,
                                     .type = f->type,
                                     .took_ns = f->took,
                                     .types = f->types,
                                     .kinds = f->kinds,
                                     .nkinds = 2};
}

static heddle_energy *model_make(const struct heddle_allocator *a)
{
    const struct heddle_energy_domain d = {.size = sizeof(d), .name = "all", .idle_watts = 50};
    const struct {
        const char *kernel, *device;
        double watts;
    } rows[] = {{"a", "cpu", 5}, {"b", "cpu", 6}, {"*", "cuda", 100}, {"a", "big", 200}};
    const struct heddle_energy_cap cap = {.size = sizeof(cap),
                                          .device = "cuda",
                                          .name = "low",
                                          .time_factor = 1.5,
                                          .watts_factor = 0.5};
    heddle_energy *e = NULL;

    CHECK_OK(heddle_energy_create(a, &e));
    CHECK_OK(heddle_energy_set_domain(e, &d));
    for (int i = 0; i < 4; i++)
        CHECK_OK(heddle_energy_set_active(
            e, &(struct heddle_energy_active){.size = sizeof(struct heddle_energy_active),
                                              .kernel = rows[i].kernel,
                                              .device = rows[i].device,
                                              .watts = rows[i].watts}));
    CHECK_OK(heddle_energy_set_cap(e, &cap));
    return e;
}

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-12 * fabs(b);
}

TEST(watts_times_seconds)
{
    heddle_energy *e = model_make(NULL);
    struct heddle_energy_instance *x = NULL;
    const struct heddle_energy_active b = {
        .size = sizeof(b), .kernel = "b", .device = "big", .watts = 300};
    char why[200] = "";
    struct fake f;

    fake_make(&f);
    /* "big box" has a row of its own for `a`; one for `b` is missing. */
    CHECK(heddle_energy_graph_create(NULL, e, &f.g, NULL, 0, &x, why, sizeof(why)) ==
          HEDDLE_ENOENT);
    CHECK_STR(why, "the model has no watts for kernel 'b' on 'big box'");
    CHECK_OK(heddle_energy_set_active(e, &b));
    CHECK_OK(heddle_energy_graph_create(NULL, e, &f.g, NULL, 0, &x, why, sizeof(why)));
    CHECK_EQ(x->graph.ntypes, 3);
    CHECK(is_near(x->eg.idle, 50e-9));
    CHECK(is_near(x->eg.joules[0], 50));  /* a: 10 s of 5 W */
    CHECK(is_near(x->eg.joules[1], 100)); /* 1 s of 100 W */
    CHECK(is_near(x->eg.joules[2], 400)); /* 2 s of 200 W */
    CHECK(is_near(x->eg.joules[3], 120)); /* b: 20 s of 6 W */
    CHECK(is_near(x->eg.joules[5], 1200));
    CHECK(x->graph.time[4] == (double)INFINITY);
    /* The run: a on cpu 10 s, b on cuda0 3 s, a on big box 2 s. */
    CHECK(is_near(x->run_joules, 50 + 300 + 400));
    heddle_energy_graph_destroy(x);
    f.type[1] = HEDDLE_LOG_GRAPH_NONE;
    CHECK_OK(heddle_energy_graph_create(NULL, e, &f.g, NULL, 0, &x, NULL, 0));
    CHECK(isnan(x->run_joules));
    heddle_energy_graph_destroy(x);
    heddle_energy_graph_destroy(NULL);
    heddle_energy_destroy(e);
}

/* A row for a kind of device holds for a type whose name does not tell. */
TEST(kinds_of_devices_count)
{
    heddle_energy *e = model_make(NULL);
    struct heddle_energy_instance *x = NULL;
    struct fake f;

    fake_make(&f);
    f.types[2].name = "box";
    CHECK_OK(heddle_energy_graph_create(NULL, e, &f.g, NULL, 0, &x, NULL, 0));
    CHECK(is_near(x->eg.joules[2], 200)); /* 2 s of 100 W: cuda's */
    heddle_energy_graph_destroy(x);
    heddle_energy_destroy(e);
}

TEST(caps_split_types)
{
    heddle_energy *e = model_make(NULL);
    const struct heddle_energy_state uneven[] = {{"cuda0", 0, "low"}, {"box", 2, "low"}};
    const struct heddle_energy_state bad[] = {{"cuda9", 0, "low"},
                                              {"box", 4, "low"},
                                              {"box", 1, "none"},
                                              {"cpu", 1, "low"},
                                              {NULL, 1, "low"}};
    struct heddle_energy_instance *x = NULL;
    struct heddle_energy_bound_result r = {.size = sizeof(r)};
    char why[200] = "";
    struct fake f;

    fake_make(&f);
    f.types[2].name = "box";
    CHECK_OK(heddle_energy_graph_create(NULL, e, &f.g, uneven, 2, &x, NULL, 0));
    /* cpu, cuda0 under the cap, two boxes under it, one without. */
    CHECK_EQ(x->graph.ntypes, 4);
    CHECK_EQ(x->graph.nworkers[1], 1);
    CHECK_EQ(x->graph.nworkers[2], 2);
    CHECK_EQ(x->graph.nworkers[3], 1);
    CHECK_EQ(x->type_of[2], 2);
    CHECK_EQ(x->type_of[3], 2);
    CHECK(x->cap[0] == NULL && x->cap[3] == NULL);
    CHECK_STR(x->cap[1], "low");
    CHECK(is_near(x->graph.time[1], 1.5e9));
    CHECK(is_near(x->eg.joules[1], 75)); /* 1.5 s of 50 W */
    CHECK(is_near(x->graph.time[2], 3e9));
    CHECK(is_near(x->graph.time[3], 2e9));
    CHECK(is_near(x->eg.joules[3], 200));
    CHECK_OK(heddle_energy_bound(&x->eg, NULL, &r));
    CHECK_OK(heddle_energy_bound_check(&x->eg, &r.cert, r.value, NULL, NULL));
    heddle_energy_bound_fini(&r);
    heddle_energy_graph_destroy(x);
    for (int i = 0; i < 5; i++) {
        why[0] = '\0';
        CHECK(heddle_energy_graph_create(NULL, e, &f.g, &bad[i], 1, &x, why, sizeof(why)) !=
              HEDDLE_OK);
        CHECK(why[0] != '\0');
    }
    CHECK(heddle_energy_graph_create(NULL, NULL, &f.g, NULL, 0, &x, why, sizeof(why)) ==
          HEDDLE_EINVAL);
    heddle_energy_destroy(e);
}

TEST(idle_power_is_not_invented)
{
    struct heddle_energy_instance *x = NULL;
    heddle_energy *e = NULL;
    char why[200] = "";
    struct fake f;

    fake_make(&f);
    CHECK_OK(heddle_energy_create(NULL, &e));
    CHECK(heddle_energy_graph_create(NULL, e, &f.g, NULL, 0, &x, why, sizeof(why)) ==
          HEDDLE_ENOENT);
    CHECK(strstr(why, "idle power") != NULL);
    heddle_energy_destroy(e);
}

TEST(each_allocation_fails)
{
    const struct heddle_energy_state state = {"box", 1, "low"};
    heddle_energy *e = model_make(NULL);
    struct faulty f;
    struct fake g;

    fake_make(&g);
    g.types[2].name = "box";
    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        struct heddle_energy_instance *x = NULL;
        heddle_status st;

        faulty_init(&f, k);
        st = heddle_energy_graph_create(&f.a, e, &g.g, &state, 1, &x, NULL, 0);
        CHECK(st == (f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK));
        heddle_energy_graph_destroy(x);
        CHECK_EQ(f.nlive, 0);
    }
    heddle_energy_destroy(e);
}

TEST_MAIN(watts_times_seconds, kinds_of_devices_count, caps_split_types, idle_power_is_not_invented,
          each_allocation_fails)
