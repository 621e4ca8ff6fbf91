/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * starpu: a small invented machine in StarPU's form, damaged in every way, and
 * the measured machines where they are (HEDDLE_SHARED, or beside the tree).
 */
#include <math.h>

#include "base/faulty_test.h"
#include "plat/plat.h"
#include "plat/tmp_test.h"

static const char config[] = "# Current configuration\n"
                             "6 # Number of CPUs\n"
                             "2 # Number of CUDA devices\n"
                             "2 # Number of OpenCL devices\n";

/* No link between the accelerators one way (nan) and the other (0). */
static const char bandwidth[] = "# to 0\t\tto 1\t\tto 2\n"
                                "0.000000\t5000.5\t6000\t4000\tnan\n"
                                "5500\t0.0\tnan\t1\tnan\n"
                                "6500\t0\t0.0\t1\tnan\n"
                                "nan\tnan\tnan\tnan\tnan\n";
static const char latency[] = "# to 0\t\tto 1\t\tto 2\n"
                              "0.0\t10.5\t11\t1\n"
                              "12\t0.0\tnan\t1\n"
                              "nan\t14\t0.0\t1\n";

static const char platform[] =
    "<?xml version='1.0'?>\n"
    "<platform version=\"3\">\n"
    " <host id=\"CPU0\" power=\"1\"/>\n"
    " <host id=\"CUDA0\" power=\"1\">\n"
    "   <prop id=\"model\" value=\"Some\"/>\n"
    "   <prop id=\"memsize\" value=\"123456789\"/>\n"
    " </host>\n"
    " <host id=\"CUDA1\" power=\"1\">\n"
    " </host>\n"
    " <host id=\"OpenCL0\" power=\"1\">\n"
    "   <prop id=\"memsize\" value=\"77\"/>\n"
    " </host>\n"
    " <link id=\"Host\" bandwidth=\"8000000000.5\" latency=\"0.0\"/>\n"
    " <link id=\"RAM-CUDA0\" bandwidth=\"8\" latency=\"0.0\"/>\n"
    " <route src=\"RAM\" dst=\"CUDA0\" symmetrical=\"NO\">\n"
    "   <link_ctn id=\"RAM-CUDA0\"/><link_ctn id=\"Host\"/>\n"
    " </route>\n"
    " <route src=\"CUDA0\" dst=\"RAM\"><link_ctn id=\"Host\"/></route>\n"
    " <route src=\"RAM\" dst=\"CUDA1\"><link_ctn id=\"other\"/></route>\n"
    " <route src=\"RAM\" dst=\"OpenCL0\"><link_ctn id=\"Host\"/></route>\n"
    "</platform>\n";

#define COMB(type, id, cores, n, entries)                                                          \
    "# number of types devices\n1\n# device type\n" type "\n# device id \n" id                     \
    "\n# number of cores \n" cores "\n# number of implementations\n1\n"                            \
    "# number of entries\n" n "\n# sumlnx\n"                                                       \
    "0.0e+00 \t0 0 0 nan nan 0 0 0\n# a b c\nnan nan nan\n"                                        \
    "# not multiple-regression-base\n0\n# hash size ...\n" entries "\n"

static const char potrf[] =
    "##################\n# Performance Model Version\n45\n\n"
    "# COMBs\n# number of combinations\n6\n" COMB(
        "0", "0", "1", "3",
        "cea37d6d\t409600  "
        "\t1.0e+07\t9.221097e+02\t4.5e+01\t7.9e+04\t7e+07\t86\n"
        "e5a07e31\t4096    \t1.0e+04\tnan\t4.5e-02\t7.9e+01\t7e+03\t86\n"
        "617e5fe6\t3686400 \t2.9e+08\t1.884969e+4\t7e+02\t2e+06\t3e+10\t112\n")
        COMB("1", "0", "1", "1", "617e5fe6\t3686400\t0\t100\t1\t1\t1\t9\n")
            COMB("1", "1", "1", "2",
                 "617e5fe6\t3686400\t0\t200\t1\t1\t1\t9\n"
                 "617e5fe7\t3686400\t0\t300\tnan\tnan\t1\t9\n")
                COMB("1", "2", "1", "1", "617e5fe6\t3686400\t0\t900\t1\t1\t1\t9\n")
                    COMB("0", "0", "4", "1", "617e5fe6\t4\t0\t900\t1\t1\t1\t9\n")
                        COMB("2", "0", "1", "1", "617e5fe6\t5\t0\t900\t1\t1\t1\t9\n");

static const char empty_model[] = "# version\n45\n# combinations\n0\n";

static void machine_write(struct tmp *t)
{
    tmp_init(t);
    tmp_folder(t, "bus");
    tmp_folder(t, "codelets");
    tmp_folder(t, "codelets/45");
    tmp_write(t, "bus/m.config", config, strlen(config));
    tmp_write(t, "bus/m.bandwidth", bandwidth, strlen(bandwidth));
    tmp_write(t, "bus/m.latency", latency, strlen(latency));
    tmp_write(t, "bus/m.platform.xml", platform, strlen(platform));
    tmp_write(t, "codelets/45/chol_model_potrf.m", potrf, strlen(potrf));
    tmp_write(t, "codelets/45/null.m", empty_model, strlen(empty_model));
    tmp_write(t, "codelets/45/other.mm", "garbage", 7);
    tmp_write(t, "codelets/45/.m", "garbage", 7);
}

static heddle_status machine_open(const struct tmp *t, const struct heddle_allocator *a,
                                  struct heddle_plat **p, char *why, size_t cap)
{
    char source[256];

    snprintf(source, sizeof(source), "starpu:%s:m", t->dir);
    return heddle_plat_open(a, source, p, why, cap);
}

static const struct heddle_plat_link *link_of(const struct heddle_plat *p, unsigned from,
                                              unsigned to)
{
    const int i = heddle_plat_find_link(p, from, to);

    CHECK(i >= 0);
    return &p->link[i];
}

TEST(small_machine)
{
    struct heddle_plat *p;
    struct tmp t;
    char why[256];

    machine_write(&t);
    CHECK_OK(machine_open(&t, NULL, &p, why, sizeof(why)));
    CHECK_STR(p->name, "m");
    CHECK_EQ(p->ncls, 3);
    CHECK_EQ(p->ntypes, 2);
    CHECK_EQ(p->cls[0].nworkers, 4);
    CHECK_STR(p->cls[2].name, "cuda1");
    CHECK_STR(p->cls[2].model, "m-cuda");
    CHECK_EQ(p->cls[1].type, p->cls[2].type);
    CHECK_EQ(p->cls[2].node, 2);
    CHECK_EQ(p->node[1].bytes, 123456789);
    CHECK_EQ(p->node[2].bytes, 0);
    CHECK_EQ(p->nlinks, 4);
    CHECK_NEAR(link_of(p, 0, 1)->bytes_per_ns, 5.0005, 1e-12);
    CHECK_NEAR(link_of(p, 0, 1)->latency_ns, 10500, 1e-9);
    CHECK_NEAR(link_of(p, 2, 0)->bytes_per_ns, 6.5, 1e-12);
    CHECK_NEAR(link_of(p, 2, 0)->latency_ns, 0, 0);
    CHECK_EQ(p->nbuses, 1);
    CHECK_NEAR(p->bus[0].bytes_per_ns, 8.0000000005, 1e-12);
    CHECK_EQ(link_of(p, 0, 1)->bus, 0);
    CHECK_EQ(link_of(p, 1, 0)->bus, 0);
    CHECK_EQ(link_of(p, 0, 2)->bus, -1);
    CHECK_NEAR(heddle_plat_time(p, "potrf", 0, 3686400, 0), 18849690, 1e-3);
    CHECK_NEAR(heddle_plat_time(p, "potrf", 0, 409600, 0), 922109.7, 1e-3);
    /* 100, 200 and 300: one mean for both; device 2 is not there. */
    CHECK_NEAR(heddle_plat_time(p, "potrf", 1, 3686400, 0), 200e3, 1e-6);
    CHECK_NEAR(heddle_plat_time(p, "chol_model_potrf", 2, 3686400, 0), 200e3, 1e-6);
    CHECK(isnan(heddle_plat_time(p, "gemm", 1, 3686400, 5)));
    heddle_plat_destroy(p);
    /* Without the XML file: no limits, no bus. */
    snprintf(t.path, sizeof(t.path), "%s/bus/m.platform.xml", t.dir);
    tmp_write(&t, "bus/m.platform.xml", "", 0);
    CHECK_OK(machine_open(&t, NULL, &p, why, sizeof(why)));
    CHECK_EQ(p->nbuses, 0);
    CHECK_EQ(p->node[1].bytes, 0);
    heddle_plat_destroy(p);
    tmp_fini(&t);
}

/* The flag before a b c, and a kernel that has a regression only. */
TEST(other_forms)
{
    static const char swapped[] = "45\n1\n1\n0\n0\n1\n1\n1\n0 0 0 0 0 0 0 0 0\n0\n0 0 0\n"
                                  "ab 64 1 7 1 1 1 1\n";
    static const char regression[] = "45\n1\n1\n0\n0\n1\n1\n0\n0 0 0 0 0 0 0 0 0\n0 0 0\n1\n"
                                     "5 3.5 whatever\n";
    static const char two[] = "45\n1\n1\n0\n0\n1\n2\n"
                              "1\n0 0 0 0 0 0 0 0 0\n0 0 0\n0\nab 64 1 9 1 1 1 1\n"
                              "1\n0 0 0 0 0 0 0 0 0\n0 0 0\n0\nab 64 1 5 1 1 1 1\n";
    struct heddle_plat *p;
    struct tmp t;
    char why[256];

    machine_write(&t);
    tmp_write(&t, "codelets/45/swapped.m", swapped, strlen(swapped));
    tmp_write(&t, "codelets/45/regression.m", regression, strlen(regression));
    tmp_write(&t, "codelets/45/two.impl.m", two, strlen(two));
    CHECK_OK(machine_open(&t, NULL, &p, why, sizeof(why)));
    CHECK_NEAR(heddle_plat_time(p, "swapped", 0, 64, 0), 7000, 1e-9);
    CHECK(isnan(heddle_plat_time(p, "regression", 0, 64, 0)));
    CHECK_NEAR(heddle_plat_time(p, "two.impl", 0, 64, 0), 9000, 1e-9);
    heddle_plat_destroy(p);
    /* As many accelerators as cores: no core is left to run tasks. */
    tmp_write(&t, "bus/m.config", "2\n2\n", 4);
    CHECK_OK(machine_open(&t, NULL, &p, why, sizeof(why)));
    CHECK_EQ(p->ncls, 2);
    CHECK_EQ(p->cls[0].kind, HEDDLE_DEV_CUDA);
    CHECK_NEAR(heddle_plat_time(p, "potrf", 0, 3686400, 0), 200e3, 1e-6);
    heddle_plat_destroy(p);
    /* And none at all. */
    tmp_write(&t, "bus/m.config", "3\n0\n", 4);
    CHECK_OK(machine_open(&t, NULL, &p, why, sizeof(why)));
    CHECK_EQ(p->ncls, 1);
    CHECK_EQ(p->cls[0].nworkers, 3);
    CHECK_EQ(p->nlinks, 0);
    heddle_plat_destroy(p);
    tmp_fini(&t);
}

TEST(bad_sources)
{
    static const char *const bad[] = {"starpu:", "starpu:x", "starpu::m",
                                      "starpu:x:", "starpu:a:b/c"};
    struct heddle_plat *p = NULL;
    char why[256], longest[2000];

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        CHECK_STATUS(heddle_plat_open(NULL, bad[i], &p, why, sizeof(why)), HEDDLE_EFORMAT);
        CHECK(strlen(why) > 0);
    }
    CHECK_STATUS(heddle_plat_open(NULL, "starpu:/none:m", &p, why, sizeof(why)), HEDDLE_ENOENT);
    CHECK(strstr(why, "/none/bus/m.config") != NULL);
    memset(longest, 'a', sizeof(longest));
    memcpy(longest, "starpu:", 7);
    longest[1020] = ':';
    longest[1999] = '\0';
    CHECK_STATUS(heddle_plat_open(NULL, longest, &p, why, sizeof(why)), HEDDLE_EFORMAT);
}

/* Each file: cut at every byte, every byte changed; then as it was. */
static void damage(struct tmp *t, const char *name, const char *text, size_t n)
{
    static const char with[] = {0, '\n', '9', '-', 'x', '#'};
    char *copy = malloc(n + 1);
    char why[256];

    CHECK(copy != NULL);
    for (size_t i = 0; i < 2 * n; i++) {
        const size_t at = i / 2;
        struct heddle_plat *p = NULL;
        heddle_status st;

        memcpy(copy, text, n);
        copy[at] = with[at % sizeof(with)];
        tmp_write(t, name, copy, i % 2 == 0 ? n : at);
        st = machine_open(t, NULL, &p, why, sizeof(why));
        CHECK(st == HEDDLE_OK || st == HEDDLE_EFORMAT);
        if (st == HEDDLE_OK) {
            for (unsigned c = 0; c < p->ncls; c++)
                CHECK(!(heddle_plat_time(p, "potrf", c, 1e6, 0) < 0));
            heddle_plat_destroy(p);
        } else {
            CHECK(strncmp(why, t->dir, strlen(t->dir)) == 0);
        }
    }
    tmp_write(t, name, text, n);
    free(copy);
}

TEST(damaged_files)
{
    struct tmp t;

    machine_write(&t);
    damage(&t, "bus/m.config", config, strlen(config));
    damage(&t, "bus/m.bandwidth", bandwidth, strlen(bandwidth));
    damage(&t, "bus/m.latency", latency, strlen(latency));
    damage(&t, "bus/m.platform.xml", platform, strlen(platform));
    damage(&t, "codelets/45/chol_model_potrf.m", potrf, strlen(potrf));
    tmp_fini(&t);
}

static const struct {
    const char *file, *text, *word;
} wrong[] = {
    {"bus/m.config", "0\n0\n", "no worker"},
    {"bus/m.config", "5000\n0\n", "CPUs"},
    {"bus/m.config", "12\n64\n", "CUDA"},
    {"bus/m.config", "12\n", "CUDA"},
    {"bus/m.config", "", "CPUs"},
    {"bus/m.bandwidth", "0 1 1\n1 0 1\n", "row 2"},
    {"bus/m.bandwidth", "0 1 1\n1 0\n1 1 0\n", "column 2 of row 1"},
    {"bus/m.bandwidth", "0 0 1\n1 0 nan\n1 nan 0\n", "cuda0"},
    {"bus/m.bandwidth", "0 1 1\n-5 0 0\n1 0 0\n", "cuda0"},
    {"codelets/45/chol_model_potrf.m", "44\n0\n", "version"},
    {"codelets/45/chol_model_potrf.m", "45\n9999999\n", "combinations"},
    {"codelets/45/chol_model_potrf.m", "45\n1\n1\n0\n0\n1\n1\n1\n", "regression"},
    {"codelets/45/chol_model_potrf.m",
     "45\n1\n1\n0\n0\n1\n1\n2\n0 0 0 0 0 0 0 0 0\n0 0 0\n0\nab 1 1 1 1 1 1 1\n", "hash"},
};

TEST(wrong_files)
{
    struct tmp t;
    char why[256];

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct heddle_plat *p = NULL;
        heddle_status st;

        machine_write(&t);
        tmp_write(&t, wrong[i].file, wrong[i].text, strlen(wrong[i].text));
        st = machine_open(&t, NULL, &p, why, sizeof(why));
        if (st != HEDDLE_EFORMAT || strstr(why, wrong[i].word) == NULL)
            test_check(0, TEST_AT, why);
        tmp_fini(&t);
    }
    machine_write(&t);
    for (const char *const *f = (const char *const[]){"config", "bandwidth", "latency", NULL};
         *f != NULL; f++) {
        struct heddle_plat *p = NULL;
        char from[256], to[256];

        snprintf(from, sizeof(from), "%s/bus/m.%s", t.dir, *f);
        snprintf(to, sizeof(to), "%s/hidden", t.dir);
        CHECK_EQ(rename(from, to), 0);
        CHECK_STATUS(machine_open(&t, NULL, &p, why, sizeof(why)), HEDDLE_ENOENT);
        CHECK(strstr(why, *f) != NULL);
        CHECK_EQ(rename(to, from), 0);
    }
    tmp_fini(&t);
}

TEST(no_memory)
{
    struct faulty f;
    struct tmp t;
    char why[256];

    machine_write(&t);
    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        struct heddle_plat *p;
        heddle_status st;

        faulty_init(&f, k);
        st = machine_open(&t, &f.a, &p, why, sizeof(why));
        CHECK_STATUS(st, f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
        if (st == HEDDLE_OK)
            heddle_plat_destroy(p);
        CHECK_EQ(f.nlive, 0);
    }
    tmp_fini(&t);
}

/* ---- the measured machines ----------------------------------------------- */

static bool shared_path(char *out, size_t cap)
{
    const char *env = getenv("HEDDLE_SHARED");

    if (env == NULL)
        return tree_path(out, cap, __FILE__, "../shared/data/machines");
    snprintf(out, cap, "%s/data/machines", env);
    return access(out, R_OK) == 0;
}

struct anchor {
    const char *name;
    unsigned ncpus, ncuda;
    double us[4][2]; /* potrf, trsm, syrk, gemm; cpu, gpu */
};

/* The anchor table, rounded to microseconds. */
static const struct anchor anchors[] = {
    {"mirage", 9, 3, {{18850, 5475}, {45647, 6407}, {43890, 1410}, {87780, 2821}}},
    {"attila", 9, 3, {{75934, 46032}, {43616, 6308}, {42038, 1404}, {84076, 2807}}},
    {"idgraf", 4, 8, {{20696, 55403}, {47115, 6547}, {44938, 1410}, {89875, 2819}}},
};

static void check_anchor(const struct heddle_plat *p, const struct anchor *a)
{
    static const struct {
        const char *name;
        double bytes;
    } kernel[] = {{"potrf", 3686400}, {"trsm", 7372800}, {"syrk", 7372800}, {"gemm", 11059200}};

    CHECK_EQ(p->cls[0].nworkers, a->ncpus);
    CHECK_EQ(p->ncls, a->ncuda + 1);
    CHECK_EQ(p->ntypes, 2);
    for (unsigned k = 0; k < 4; k++)
        for (unsigned c = 0; c < p->ncls; c++)
            CHECK_NEAR(heddle_plat_time(p, kernel[k].name, c, kernel[k].bytes, 0) / 1e3,
                       a->us[k][c == 0 ? 0 : 1], 0.501);
    for (unsigned c = 1; c < p->ncls; c++) {
        CHECK(p->node[c].bytes > 1u << 30);
        CHECK_EQ(link_of(p, 0, c)->bus, 0);
        CHECK(link_of(p, c, 0)->bytes_per_ns > 1);
    }
    CHECK_EQ(p->nbuses, 1);
    CHECK(p->bus[0].bytes_per_ns > 6 && p->bus[0].bytes_per_ns < 7);
}

TEST(measured_machines)
{
    char dir[1024], source[1200], why[256];

    if (!shared_path(dir, sizeof(dir)))
        SKIP("the measured machines are not here");
    for (size_t i = 0; i < sizeof(anchors) / sizeof(anchors[0]); i++) {
        struct heddle_plat *p;

        snprintf(source, sizeof(source), "starpu:%s:%s", dir, anchors[i].name);
        if (heddle_plat_open(NULL, source, &p, why, sizeof(why)) != HEDDLE_OK)
            test_check(0, TEST_AT, why);
        check_anchor(p, &anchors[i]);
        heddle_plat_destroy(p);
    }
}

TEST_MAIN(small_machine, other_forms, bad_sources, damaged_files, wrong_files, no_memory,
          measured_machines)
