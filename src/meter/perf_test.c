/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perf: events of a tree of files are asked for as the files say; pipes stand for the
 * kernel's counters.
 */
#include <linux/perf_event.h>

#include "base/faulty_test.h"
#include "meter/meter.h"
#include "meter/tree_test.h"
#include "test.h"

extern const struct heddle_meter_ops heddle_meter_perf;

static const struct heddle_meter_ops *const only_perf[] = {&heddle_meter_perf, NULL};

#define PMU    "bus/event_source/devices/power/"
#define SCALE  "2.3283064365386962890625e-10\n" /* 2^-32 */
#define JOULES UINT64_C(4294967296)

/* What was asked for, and where its counts come from. */
struct kernel {
    struct {
        uint32_t type;
        uint64_t config;
        int cpu, to;
    } call[16];
    size_t n;
    int refuses; /* errno; 0: it does not */
};

static int open_pipe(void *user, struct perf_event_attr *attr, int cpu)
{
    struct kernel *k = user;
    int fd[2];

    CHECK_EQ(attr->size, sizeof(*attr));
    CHECK_EQ(attr->disabled, 0);
    if (k->refuses != 0) {
        errno = k->refuses;
        return -1;
    }
    CHECK(k->n < 16);
    CHECK_EQ(pipe2(fd, O_CLOEXEC | O_NONBLOCK), 0);
    k->call[k->n].type = attr->type;
    k->call[k->n].config = attr->config;
    k->call[k->n].cpu = cpu;
    k->call[k->n].to = fd[1];
    k->n++;
    return fd[0];
}

static void count(struct kernel *k, size_t i, uint64_t value)
{
    CHECK_EQ(write(k->call[i].to, &value, sizeof(value)), sizeof(value));
}

static void pmu(const struct tree *t)
{
    tree_text(t, PMU "type", "23\n");
    tree_text(t, PMU "cpumask", "0,24\n");
    tree_text(t, PMU "events/energy-pkg", "event=0x02\n");
    tree_text(t, PMU "events/energy-pkg.scale", SCALE);
    tree_text(t, PMU "events/energy-ram", "event=0x03\n");
    tree_text(t, PMU "events/energy-ram.scale", SCALE);
    tree_text(t, "devices/system/cpu/cpu24/topology/physical_package_id", "1\n");
}

static heddle_meter *start(const struct tree *t, struct kernel *k)
{
    const struct heddle_meter_env env = {.sysfs = t->root, .perf_open = open_pipe, .perf_user = k};
    heddle_meter *m = NULL;

    *k = (struct kernel){.refuses = k->refuses};
    CHECK_OK(heddle_meter_create(&env, only_perf, &m));
    return m;
}

static void stop(heddle_meter *m, struct kernel *k)
{
    heddle_meter_close(m);
    for (size_t i = 0; i < k->n; i++)
        close(k->call[i].to);
}

static void check_domain(heddle_meter *m, size_t i, const char *name)
{
    struct heddle_meter_domain d = {.size = sizeof(d)};

    CHECK_OK(heddle_meter_get_domain(m, i, &d));
    CHECK_STR(d.name, name);
    CHECK_STR(d.device, "cpu");
}

static const char *why_of(heddle_meter *m)
{
    struct heddle_meter_source s = {.size = sizeof(s)};

    CHECK_OK(heddle_meter_get_source(m, 0, &s));
    return s.why;
}

TEST(asks_and_reads)
{
    struct heddle_meter_sample s = {.size = sizeof(s)};
    struct kernel k = {0};
    struct tree t;
    heddle_meter *m;

    tree_init(&t);
    pmu(&t);
    m = start(&t, &k);
    CHECK_EQ(heddle_meter_ndomains(m), 4);
    CHECK_EQ(k.n, 4);
    check_domain(m, 0, "package-0");
    check_domain(m, 1, "package-1");
    check_domain(m, 2, "dram-0");
    check_domain(m, 3, "dram-1");
    for (size_t i = 0; i < 4; i++) {
        CHECK_EQ(k.call[i].type, 23);
        CHECK_EQ(k.call[i].config, i < 2 ? 2 : 3);
        CHECK_EQ(k.call[i].cpu, i % 2 == 0 ? 0 : 24);
    }
    /* The pipes were empty when it was opened: the first count is the start. */
    count(&k, 1, 10 * JOULES);
    count(&k, 1, 10 * JOULES + JOULES / 4);
    CHECK_OK(heddle_meter_read(m, 1, &s));
    CHECK_EQ(s.microjoules, 0);
    CHECK_OK(heddle_meter_read(m, 1, &s));
    CHECK_EQ(s.microjoules, 250000);
    CHECK_STATUS(heddle_meter_read(m, 1, &s), HEDDLE_EIO); /* empty */
    CHECK_EQ(write(k.call[1].to, "abc", 3), 3);            /* half a count */
    CHECK_STATUS(heddle_meter_read(m, 1, &s), HEDDLE_EIO);
    count(&k, 1, 9 * JOULES);
    CHECK_STATUS(heddle_meter_read(m, 1, &s), HEDDLE_AGAIN); /* went back */
    count(&k, 1, UINT64_MAX);
    CHECK_STATUS(heddle_meter_read(m, 1, &s), HEDDLE_AGAIN); /* a thousand TJ */
    stop(m, &k);
    tree_fini(&t);
}

TEST(refused)
{
    struct kernel k = {.refuses = EACCES};
    struct tree t;
    heddle_meter *m;

    tree_init(&t);
    pmu(&t);
    m = start(&t, &k);
    CHECK_EQ(heddle_meter_ndomains(m), 0);
    CHECK(strstr(why_of(m), "perf_event_paranoid") != NULL);
    stop(m, &k);
    k.refuses = ENOENT;
    m = start(&t, &k);
    CHECK(strstr(why_of(m), "energy-pkg cannot be opened: ") != NULL);
    stop(m, &k);
    tree_fini(&t);
}

/* Each file in turn holds what it should not. */
TEST(garbage)
{
    static const struct {
        const char *file, *text, *why;
        size_t left; /* domains */
    } row[] = {
        {"type", "", "is not there", 0},
        {"type", "cpu\n", "is not there", 0},
        {"type", "5000000000\n", "is not there", 0},
        {"cpumask", "", "which CPUs", 0},
        {"cpumask", "x\n", "which CPUs", 0},
        {"cpumask", "3-1\n", "which CPUs", 0},
        {"cpumask", "0,99999999999999999999\n", "which CPUs", 0},
        {"events/energy-pkg", "event=2\n", "is \"event=2\"", 2},
        {"events/energy-pkg", "event=0x\n", "not understood", 2},
        {"events/energy-pkg", "event=0x123456789\n", "not understood", 2},
        {"events/energy-pkg", "event=0x2,umask=0x1\n", "not understood", 2},
        {"events/energy-pkg", "nonsense", "not understood", 2},
        {"events/energy-pkg.scale", "0\n", "what one count is", 2},
        {"events/energy-pkg.scale", "-1e-10\n", "what one count is", 2},
        {"events/energy-pkg.scale", "nan\n", "what one count is", 2},
        {"events/energy-pkg.scale", "inf\n", "what one count is", 2},
        {"events/energy-pkg.scale", "1e300\n", "what one count is", 2},
        {"events/energy-pkg.scale", "", "what one count is", 2},
    };

    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct kernel k = {0};
        struct tree t;
        heddle_meter *m;
        char path[128];

        tree_init(&t);
        pmu(&t);
        snprintf(path, sizeof(path), PMU "%s", row[i].file);
        tree_text(&t, path, row[i].text);
        m = start(&t, &k);
        CHECK_EQ(heddle_meter_ndomains(m), row[i].left);
        CHECK(strstr(why_of(m), row[i].why) != NULL);
        stop(m, &k);
        tree_fini(&t);
    }
}

TEST(ranges_of_cpus)
{
    struct kernel k = {0};
    struct tree t;
    heddle_meter *m;

    tree_init(&t);
    pmu(&t);
    tree_text(&t, PMU "cpumask", "0-2,7\n");
    m = start(&t, &k);
    CHECK_EQ(heddle_meter_ndomains(m), 8);
    check_domain(m, 3, "package-3"); /* without topology: in order */
    CHECK_EQ(k.call[3].cpu, 7);
    stop(m, &k);
    tree_fini(&t);
}

TEST(not_there)
{
    struct kernel k = {0};
    struct tree t;
    heddle_meter *m;

    tree_init(&t);
    m = start(&t, &k);
    CHECK_EQ(heddle_meter_ndomains(m), 0);
    CHECK(strstr(why_of(m), "devices/power is not there") != NULL);
    stop(m, &k);
    tree_text(&t, PMU "type", "9\n");
    tree_text(&t, PMU "cpumask", "0\n");
    m = start(&t, &k);
    CHECK(strstr(why_of(m), "no event for a package") != NULL);
    stop(m, &k);
    tree_fini(&t);
}

/* The kernel's own refusal, whatever it is: an event that does not exist. */
TEST(the_system_call)
{
    struct heddle_meter_env env = {0};
    struct tree t;
    heddle_meter *m = NULL;

    tree_init(&t);
    pmu(&t);
    tree_text(&t, PMU "type", "4294967295\n");
    env.sysfs = t.root;
    CHECK_OK(heddle_meter_create(&env, only_perf, &m));
    CHECK_EQ(heddle_meter_ndomains(m), 0);
    CHECK(strstr(why_of(m), "energy-pkg") != NULL);
    heddle_meter_close(m);
    tree_fini(&t);
}

TEST_MAIN(asks_and_reads, refused, garbage, ranges_of_cpus, not_there, the_system_call)
