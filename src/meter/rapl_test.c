/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rapl: packages and memory out of a tree of files, and everything that may be wrong
 * with such a tree.
 */
#include <signal.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "base/faulty_test.h"
#include "meter/meter.h"
#include "meter/tree_test.h"
#include "test.h"

extern const struct heddle_meter_ops heddle_meter_rapl;

static const struct heddle_meter_ops *const only_rapl[] = {&heddle_meter_rapl, NULL};

static heddle_meter *start(const struct tree *t)
{
    const struct heddle_meter_env env = {.sysfs = t->root};
    heddle_meter *m = NULL;

    CHECK_OK(heddle_meter_create(&env, only_rapl, &m));
    return m;
}

static const char *why_of(heddle_meter *m)
{
    struct heddle_meter_source s = {.size = sizeof(s)};

    CHECK_OK(heddle_meter_get_source(m, 0, &s));
    return s.why;
}

static const char *name_of(heddle_meter *m, size_t i)
{
    struct heddle_meter_domain d = {.size = sizeof(d)};

    CHECK_OK(heddle_meter_get_domain(m, i, &d));
    CHECK_STR(d.device, "cpu");
    return d.name;
}

static struct heddle_meter_domain domain_of(heddle_meter *m, size_t i)
{
    struct heddle_meter_domain d = {.size = sizeof(d)};

    CHECK_OK(heddle_meter_get_domain(m, i, &d));
    return d;
}

static uint64_t read_uj(heddle_meter *m, size_t i)
{
    struct heddle_meter_sample s = {.size = sizeof(s)};

    CHECK_OK(heddle_meter_read(m, i, &s));
    return s.microjoules;
}

#define UJ "class/powercap/intel-rapl:0/energy_uj"

TEST(packages_and_memory)
{
    struct tree t;
    heddle_meter *m;

    tree_init(&t);
    tree_zone(&t, "intel-rapl:10", "package-10\n", 7, TREE_RANGE);
    tree_zone(&t, "intel-rapl:2", "psys\n", 1, TREE_RANGE);
    tree_zone(&t, "intel-rapl:1", "package-1\n", 50, TREE_RANGE);
    tree_zone(&t, "intel-rapl:1:1", "dram\n", 60, TREE_RANGE);
    tree_zone(&t, "intel-rapl:0", "package-0\n", 1000, TREE_RANGE);
    tree_zone(&t, "intel-rapl:0:0", "core\n", 1, TREE_RANGE);
    tree_zone(&t, "intel-rapl:0:1", "uncore\n", 1, TREE_RANGE);
    tree_zone(&t, "intel-rapl:0:2", "dram\n", 30, TREE_RANGE);
    tree_zone(&t, "intel-rapl-mmio:0", "package-0\n", 5, TREE_RANGE);
    tree_zone(&t, "intel-rapl:3", "package-3-die-1", 5, TREE_RANGE);
    tree_zone(&t, "intel-rapl:x", "package-9\n", 5, TREE_RANGE);
    tree_zone(&t, "intel-rapl:1:2:3", "package-8\n", 5, TREE_RANGE);
    tree_zone(&t, "dtpm", "package-7\n", 5, TREE_RANGE);
    m = start(&t);
    CHECK_EQ(heddle_meter_ndomains(m), 6);
    CHECK_STR(name_of(m, 0), "package-0");
    CHECK_STR(name_of(m, 1), "dram-0");
    CHECK_STR(name_of(m, 2), "package-1");
    CHECK_STR(name_of(m, 3), "dram-1");
    CHECK_STR(name_of(m, 4), "package-3-die-1");
    CHECK_STR(name_of(m, 5), "package-10");
    CHECK_STR(why_of(m), "");
    CHECK_EQ(read_uj(m, 0), 0); /* since it was opened */
    tree_number(&t, UJ, 401000);
    tree_number(&t, "class/powercap/intel-rapl:1:1/energy_uj", 61);
    CHECK_EQ(read_uj(m, 0), 400000);
    CHECK_EQ(read_uj(m, 3), 1);
    heddle_meter_close(m);
    tree_fini(&t);
}

TEST(wrap_and_jump)
{
    struct heddle_meter_sample s = {.size = sizeof(s)};
    struct tree t;
    heddle_meter *m;

    tree_init(&t);
    tree_zone(&t, "intel-rapl:0", "package-0\n", TREE_RANGE - 50, TREE_RANGE);
    m = start(&t);
    tree_number(&t, UJ, 150);
    CHECK_EQ(read_uj(m, 0), 200);
    tree_number(&t, UJ, 100000150);
    CHECK_EQ(read_uj(m, 0), 100000200);
    tree_number(&t, UJ, 3);
    CHECK_STATUS(heddle_meter_read(m, 0, &s), HEDDLE_AGAIN);
    CHECK(strstr(domain_of(m, 0).why, "went back") != NULL);
    CHECK_EQ(domain_of(m, 0).dropped, 1);
    tree_number(&t, UJ, 13);
    CHECK_OK(heddle_meter_read(m, 0, &s));
    CHECK_EQ(s.microjoules, 100000210);
    CHECK(s.has_gap);
    CHECK_OK(heddle_meter_read(m, 0, &s));
    CHECK(!s.has_gap);
    CHECK_EQ(domain_of(m, 0).read, 4);
    heddle_meter_close(m);
    tree_fini(&t);
}

/* A counter without a range: one that goes back has jumped. */
TEST(zero_range)
{
    static const char *const ranges[] = {"0\n", "", "many\n", "-1\n", NULL};

    for (size_t i = 0; i == 0 || ranges[i - 1] != NULL; i++) {
        struct heddle_meter_sample s = {.size = sizeof(s)};
        struct tree t;
        heddle_meter *m;
        char full[512];

        tree_init(&t);
        tree_zone(&t, "intel-rapl:0", "package-0\n", 500, 1);
        if (ranges[i] != NULL)
            tree_text(&t, "class/powercap/intel-rapl:0/max_energy_range_uj", ranges[i]);
        else
            CHECK_EQ(remove(tree_path(&t, "class/powercap/intel-rapl:0/max_energy_range_uj", full)),
                     0);
        m = start(&t);
        CHECK_EQ(heddle_meter_ndomains(m), 1);
        tree_number(&t, UJ, 499);
        CHECK_STATUS(heddle_meter_read(m, 0, &s), HEDDLE_AGAIN);
        tree_number(&t, UJ, 500);
        CHECK_EQ(read_uj(m, 0), 1);
        heddle_meter_close(m);
        tree_fini(&t);
    }
}

TEST(nothing_there)
{
    struct tree t;
    heddle_meter *m;
    char full[512], why[400];

    tree_init(&t);
    m = start(&t);
    CHECK_EQ(heddle_meter_ndomains(m), 0);
    CHECK(strstr(why_of(m), "/class/powercap is not there") != NULL);
    CHECK(strstr(heddle_meter_explain(m, why, sizeof(why)), "rapl: ") == why);
    heddle_meter_close(m);
    (void)tree_path(&t, "class/powercap/", full);
    m = start(&t);
    CHECK_EQ(heddle_meter_ndomains(m), 0);
    CHECK(strstr(why_of(m), "has no processor package") != NULL);
    heddle_meter_close(m);
    tree_zone(&t, "intel-rapl:0", "psys\n", 0, 0);
    m = start(&t);
    CHECK_EQ(heddle_meter_ndomains(m), 0);
    heddle_meter_close(m);
    tree_fini(&t);
}

/* What the file of the counter may hold. */
TEST(garbage)
{
    static char huge[1 << 20];
    struct heddle_meter_sample s = {.size = sizeof(s)};
    const struct {
        const char *text;
        size_t bytes;
    } bad[] = {{"", 0},
               {"\n", 1},
               {"12 34\n", 6},
               {"-5\n", 3},
               {"0x10\n", 5},
               {"1e5\n", 4},
               {"\xff\xfe\n", 3},
               {"12\0"
                "34\n",
                6},
               {"99999999999999999999999\n", 24},
               {huge, sizeof(huge)}};
    struct tree t;
    heddle_meter *m;

    memset(huge, '7', sizeof(huge));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        tree_init(&t);
        tree_zone(&t, "intel-rapl:0", "package-0\n", 1, TREE_RANGE);
        m = start(&t);
        tree_put(&t, UJ, bad[i].text, bad[i].bytes);
        CHECK_STATUS(heddle_meter_read(m, 0, &s), HEDDLE_EIO);
        CHECK(strstr(domain_of(m, 0).why, "holds no number") != NULL);
        tree_number(&t, UJ, 11); /* and well again: nothing is lost */
        CHECK_EQ(read_uj(m, 0), 10);
        CHECK_EQ(domain_of(m, 0).dropped, 1);
        heddle_meter_close(m);
        /* From the beginning: not a domain. */
        tree_put(&t, UJ, bad[i].text, bad[i].bytes);
        m = start(&t);
        CHECK_EQ(heddle_meter_ndomains(m), 0);
        CHECK(strstr(why_of(m), "holds no number") != NULL);
        heddle_meter_close(m);
        tree_fini(&t);
    }
}

/* Names that are none; the other zone is found in spite of them. */
TEST(strange_names)
{
    static char huge[100000];
    const char *const bad[] = {
        "",       "package", "package-0 x\n", "package-\x01\n", "package-0\xff\n", "Package-0\n",
        "core\n", huge};

    memset(huge, 'p', sizeof(huge) - 1);
    memcpy(huge, "package-", 8);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct tree t;
        heddle_meter *m;

        tree_init(&t);
        tree_zone(&t, "intel-rapl:0", bad[i], 1, TREE_RANGE);
        tree_zone(&t, "intel-rapl:0:0", "dram\n", 1, TREE_RANGE);
        tree_zone(&t, "intel-rapl:1", "package-1\n", 1, TREE_RANGE);
        tree_zone(&t, "intel-rapl:99999999999", "package-2\n", 1, TREE_RANGE);
        m = start(&t);
        CHECK_EQ(heddle_meter_ndomains(m), 1);
        CHECK_STR(name_of(m, 0), "package-1");
        heddle_meter_close(m);
        tree_fini(&t);
    }
}

/* A folder in place of a file, a pipe that nobody writes to. */
TEST(not_files)
{
    struct tree t;
    heddle_meter *m;
    char full[512];

    tree_init(&t);
    tree_zone(&t, "intel-rapl:0", "package-0\n", 1, TREE_RANGE);
    tree_zone(&t, "intel-rapl:1", "package-1\n", 1, TREE_RANGE);
    CHECK_EQ(remove(tree_path(&t, UJ, full)), 0);
    CHECK_EQ(mkdir(full, 0755), 0);
    CHECK_EQ(remove(tree_path(&t, "class/powercap/intel-rapl:1/energy_uj", full)), 0);
    CHECK_EQ(mkfifo(full, 0644), 0);
    CHECK_EQ(remove(tree_path(&t, "class/powercap/intel-rapl:1/max_energy_range_uj", full)), 0);
    CHECK_EQ(mkfifo(full, 0644), 0);
    m = start(&t);
    CHECK_EQ(heddle_meter_ndomains(m), 0);
    CHECK(strstr(why_of(m), "cannot be read") != NULL);
    heddle_meter_close(m);
    tree_fini(&t);
}

/* Root may read everything: then a process without rights looks. */
TEST(root_only)
{
    struct tree t;
    char full[512];
    int status = 0;
    pid_t pid;

    tree_init(&t);
    tree_zone(&t, "intel-rapl:0", "package-0\n", 1, TREE_RANGE);
    CHECK_EQ(chmod(tree_path(&t, UJ, full), 0), 0);
    fflush(stdout);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        heddle_meter *m;

        CHECK(getuid() != 0 || setuid(65534) == 0);
        m = start(&t);
        CHECK_EQ(heddle_meter_ndomains(m), 0);
        CHECK(strstr(why_of(m), "may be read by root only") != NULL);
        heddle_meter_close(m);
        _exit(0);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_EQ(chmod(full, 0644), 0);
    tree_fini(&t);
}

/* A file of another process stands for the counter, and goes with it. */
TEST(vanishes)
{
    struct heddle_meter_sample s = {.size = sizeof(s)};
    struct tree t;
    heddle_meter *m;
    char full[512], target[64];
    FILE *f;
    pid_t pid;

    tree_init(&t);
    tree_zone(&t, "intel-rapl:0", "package-0\n", 1, TREE_RANGE);
    CHECK_EQ(remove(tree_path(&t, UJ, full)), 0);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
        for (;;)
            pause();
    snprintf(target, sizeof(target), "/proc/%d/oom_score_adj", (int)pid);
    f = fopen(target, "w");
    CHECK(f != NULL && fputs("500", f) >= 0 && fclose(f) == 0);
    CHECK_EQ(symlink(target, full), 0);
    m = start(&t);
    f = fopen(target, "w");
    CHECK(f != NULL && fputs("600", f) >= 0 && fclose(f) == 0);
    CHECK_EQ(read_uj(m, 0), 100);
    CHECK_EQ(kill(pid, SIGKILL), 0);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    for (int i = 0; i < 3; i++)
        CHECK_STATUS(heddle_meter_read(m, 0, &s), HEDDLE_EIO);
    CHECK(strstr(domain_of(m, 0).why, "cannot be read: ") != NULL);
    CHECK_EQ(domain_of(m, 0).dropped, 3);
    heddle_meter_close(m);
    tree_fini(&t);
}

/* More packages than anyone has: as many as are kept. */
TEST(many_zones)
{
    struct tree t;
    heddle_meter *m;
    char zone[64], name[64];

    tree_init(&t);
    for (int i = 0; i < 300; i++) {
        snprintf(zone, sizeof(zone), "intel-rapl:%d", i);
        snprintf(name, sizeof(name), "package-%d\n", i);
        tree_zone(&t, zone, name, 1, TREE_RANGE);
    }
    m = start(&t);
    CHECK_EQ(heddle_meter_ndomains(m), HEDDLE_METER_MOST);
    CHECK_STR(name_of(m, 255), "package-255");
    heddle_meter_close(m);
    tree_fini(&t);
}

TEST(long_path)
{
    struct heddle_meter_env env = {0};
    static char path[5000];
    heddle_meter *m = NULL;

    memset(path, 'x', sizeof(path) - 1);
    path[0] = '/';
    env.sysfs = path;
    CHECK_OK(heddle_meter_create(&env, NULL, &m));
    CHECK_EQ(heddle_meter_ndomains(m), 0);
    heddle_meter_close(m);
}

TEST(no_memory)
{
    struct faulty f;
    struct tree t;

    tree_init(&t);
    tree_zone(&t, "intel-rapl:0", "package-0\n", 1, TREE_RANGE);
    tree_zone(&t, "intel-rapl:0:1", "dram\n", 1, TREE_RANGE);
    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        struct heddle_meter_env env = {.sysfs = t.root};
        heddle_meter *m = NULL;
        heddle_status st;

        faulty_init(&f, k);
        env.alloc = &f.a;
        st = heddle_meter_create(&env, only_rapl, &m);
        CHECK_STATUS(st, f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
        CHECK(f.has_failed || heddle_meter_ndomains(m) == 2);
        heddle_meter_close(m);
        CHECK_EQ(f.nlive, 0);
    }
    tree_fini(&t);
}

TEST_MAIN(packages_and_memory, wrap_and_jump, zero_range, nothing_there, garbage, strange_names,
          not_files, root_only, vanishes, many_zones, long_path, no_memory)
