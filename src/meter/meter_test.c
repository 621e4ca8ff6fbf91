/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meter: several sources as one list, each domain from the first that has it; wrong
 * arguments.
 */
#include "base/faulty_test.h"
#include "meter/meter.h"
#include "test.h"

/* Two plug-ins that find what these say. */
static struct {
    const char *name[2][4];
    const char *why[2];
    uint64_t raw[2][4];
    heddle_status open, read;
    unsigned nopen, nclosed;
} fake;

struct plug {
    unsigned which;
};

static heddle_status plug_open(struct plug *p, unsigned which, struct heddle_meter_found *found,
                               size_t *n_out, char *why)
{
    p->which = which;
    fake.nopen++;
    for (; *n_out < 4 && fake.name[which][*n_out] != NULL; ++*n_out) {
        snprintf(found[*n_out].name, sizeof(found->name), "%s", fake.name[which][*n_out]);
        snprintf(found[*n_out].device, sizeof(found->device), "dev %u", which);
        found[*n_out].range_uj = 0;
    }
    if (fake.why[which] != NULL)
        heddle_meter_say(why, "%s", fake.why[which]);
    return fake.open;
}

static heddle_status open_0(void *self, const struct heddle_meter_env *env,
                            struct heddle_meter_found *found, size_t cap, size_t *n_out, char *why)
{
    (void)env;
    CHECK(cap >= 4);
    return plug_open(self, 0, found, n_out, why);
}

static heddle_status open_1(void *self, const struct heddle_meter_env *env,
                            struct heddle_meter_found *found, size_t cap, size_t *n_out, char *why)
{
    (void)env;
    CHECK(cap >= 4);
    return plug_open(self, 1, found, n_out, why);
}

static heddle_status plug_read(void *self, size_t i, uint64_t *out, char *why)
{
    const struct plug *p = self;

    *out = fake.raw[p->which][i];
    if (fake.read != HEDDLE_OK)
        snprintf(why, HEDDLE_METER_WHY, "it sleeps");
    return fake.read;
}

static void plug_close(void *self)
{
    (void)self;
    fake.nclosed++;
}

static const struct heddle_meter_ops first = {.name = "first",
                                              .period_ns = 1000,
                                              .instance_size = sizeof(struct plug),
                                              .open = open_0,
                                              .read = plug_read,
                                              .close = plug_close};
static const struct heddle_meter_ops second = {.name = "second",
                                               .period_ns = 2000,
                                               .instance_size = sizeof(struct plug),
                                               .open = open_1,
                                               .read = plug_read,
                                               .close = plug_close};
static const struct heddle_meter_ops *const both[] = {&first, &second, NULL};

static heddle_meter *start(void)
{
    const struct heddle_meter_env env = {0};
    heddle_meter *m = NULL;

    CHECK_OK(heddle_meter_create(&env, both, &m));
    return m;
}

static void reset(void)
{
    memset(&fake, 0, sizeof(fake));
}

TEST(one_list)
{
    struct heddle_meter_sample s = {.size = sizeof(s)};
    struct heddle_meter_domain d = {.size = sizeof(d)};
    struct heddle_meter_source src = {.size = sizeof(src)};
    heddle_meter *m;

    reset();
    fake.name[0][0] = "a";
    fake.name[0][1] = "b";
    fake.name[1][0] = "c";
    fake.name[1][1] = "b"; /* the first one gives it */
    fake.name[1][2] = "d";
    m = start();
    CHECK_EQ(heddle_meter_ndomains(m), 4);
    CHECK_OK(heddle_meter_get_domain(m, 3, &d));
    CHECK_STR(d.name, "d");
    CHECK_STR(d.device, "dev 1");
    CHECK_EQ(d.source, 1);
    CHECK_OK(heddle_meter_get_source(m, 1, &src));
    CHECK_STR(src.name, "second");
    CHECK_EQ(src.ndomains, 2);
    CHECK_EQ(src.period_ns, 2000);
    fake.raw[1][2] = 77; /* the plug-in's own number of "d" */
    CHECK_OK(heddle_meter_read(m, 3, &s));
    CHECK_EQ(s.microjoules, 77);
    CHECK_OK(heddle_meter_read(m, 1, &s));
    CHECK_EQ(s.microjoules, 0);
    heddle_meter_close(m);
    CHECK_EQ(fake.nclosed, 2);
}

TEST(nothing_new)
{
    struct heddle_meter_source src = {.size = sizeof(src)};
    heddle_meter *m;
    char why[64];

    reset();
    fake.name[0][0] = fake.name[1][0] = "a";
    m = start();
    CHECK_EQ(heddle_meter_ndomains(m), 1);
    CHECK_OK(heddle_meter_get_source(m, 1, &src));
    CHECK_EQ(src.ndomains, 0);
    CHECK(strstr(src.why, "gives the same already") != NULL);
    CHECK_STR(heddle_meter_explain(m, why, sizeof(why)), "");
    heddle_meter_close(m);
}

TEST(explains)
{
    heddle_meter *m;
    char why[64], small[8];

    reset();
    fake.why[0] = "too far";
    fake.why[1] = "too late";
    m = start();
    CHECK_STR(heddle_meter_explain(m, why, sizeof(why)), "first: too far; second: too late");
    CHECK_EQ(strlen(heddle_meter_explain(m, small, sizeof(small))), 7);
    heddle_meter_close(m);
}

/* The first reading fails: energy counts from the first good one. */
TEST(first_reading)
{
    struct heddle_meter_sample s = {.size = sizeof(s)};
    struct heddle_meter_domain d = {.size = sizeof(d)};
    heddle_meter *m;

    reset();
    fake.name[0][0] = "a";
    fake.raw[0][0] = 1000;
    fake.read = HEDDLE_EIO;
    m = start();
    CHECK_STATUS(heddle_meter_read(m, 0, &s), HEDDLE_EIO);
    CHECK_OK(heddle_meter_get_domain(m, 0, &d));
    CHECK_STR(d.why, "it sleeps");
    fake.read = HEDDLE_OK;
    CHECK_OK(heddle_meter_read(m, 0, &s));
    CHECK_EQ(s.microjoules, 0);
    fake.raw[0][0] = 1001;
    CHECK_OK(heddle_meter_read(m, 0, &s));
    CHECK_EQ(s.microjoules, 1);
    heddle_meter_close(m);
}

TEST(wrong_arguments)
{
    struct heddle_meter_sample s = {.size = sizeof(s)};
    struct heddle_meter_domain d = {.size = sizeof(d)};
    struct heddle_meter_source src = {.size = sizeof(src)};
    const struct heddle_meter_opts small = {.size = 3};
    heddle_meter *m;

    reset();
    m = start();
    CHECK_STATUS(heddle_meter_read(m, 0, &s), HEDDLE_ENOENT);
    CHECK_STATUS(heddle_meter_read(m, 0, NULL), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_meter_read(NULL, 0, &s), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_meter_get_domain(m, SIZE_MAX, &d), HEDDLE_ENOENT);
    CHECK_STATUS(heddle_meter_get_domain(m, 0, NULL), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_meter_get_source(m, 2, &src), HEDDLE_ENOENT);
    src.size = 1;
    CHECK_STATUS(heddle_meter_get_source(m, 0, &src), HEDDLE_EINVAL);
    s.size = d.size = 0;
    CHECK_STATUS(heddle_meter_read(m, 0, &s), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_meter_get_domain(m, 0, &d), HEDDLE_EINVAL);
    heddle_meter_close(m);
    heddle_meter_close(NULL);
    CHECK_STATUS(heddle_meter_open(NULL, NULL), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_meter_open(&small, &m), HEDDLE_EINVAL);
}

/* This machine, whatever it has: reading never fails for other reasons than its own. */
TEST(the_machine)
{
    struct heddle_meter_sample s = {.size = sizeof(s)};
    struct heddle_meter_domain d = {.size = sizeof(d)};
    struct heddle_meter_source src = {.size = sizeof(src)};
    heddle_meter *m = NULL;
    size_t n = 0;

    CHECK_OK(heddle_meter_open(NULL, &m));
    for (; heddle_meter_get_source(m, n, &src) == HEDDLE_OK; n++)
        CHECK(src.ndomains > 0 || src.why[0] != '\0');
    CHECK(n >= 2);
    for (size_t i = 0; heddle_meter_get_domain(m, i, &d) == HEDDLE_OK; i++) {
        CHECK(d.name[0] != '\0' && strchr(d.name, ' ') == NULL);
        CHECK(heddle_meter_read(m, i, &s) != HEDDLE_ENOENT);
    }
    heddle_meter_close(m);
}

TEST(failures)
{
    struct faulty f;

    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        struct heddle_meter_env env = {0};
        heddle_meter *m = NULL;
        heddle_status st;

        reset();
        fake.name[0][0] = fake.name[1][0] = "a";
        fake.name[1][1] = "b";
        faulty_init(&f, k);
        env.alloc = &f.a;
        st = heddle_meter_create(&env, both, &m);
        CHECK_STATUS(st, f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
        heddle_meter_close(m);
        CHECK_EQ(f.nlive, 0);
        CHECK_EQ(fake.nopen, fake.nclosed);
    }
    /* A plug-in without memory. */
    {
        const struct heddle_meter_env env = {0};
        heddle_meter *m = NULL;

        reset();
        fake.open = HEDDLE_ENOMEM;
        CHECK_STATUS(heddle_meter_create(&env, both, &m), HEDDLE_ENOMEM);
        CHECK_EQ(fake.nopen, 1);
        CHECK_EQ(fake.nclosed, 1);
    }
}

TEST_MAIN(one_list, nothing_new, explains, first_reading, wrong_arguments, the_machine, failures)
