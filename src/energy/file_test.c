/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file: there and back with any name; each fault with its line; files cut
 * everywhere and with any byte changed; no memory.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/faulty_test.h"
#include "base/rng.h"
#include "heddle/energy.h"

struct rig {
    char dir[64], path[96], why[512];
};

static void rig_init(struct rig *r)
{
    snprintf(r->dir, sizeof(r->dir), "/tmp/heddle-energy-XXXXXX");
    CHECK(mkdtemp(r->dir) != NULL);
    snprintf(r->path, sizeof(r->path), "%s/m.energy", r->dir);
    r->why[0] = '\0';
}

static void rig_fini(struct rig *r)
{
    (void)remove(r->path);
    CHECK_EQ(rmdir(r->dir), 0); /* nothing else was left there */
}

static void rig_put(struct rig *r, const char *text, size_t n)
{
    FILE *f = fopen(r->path, "wb");

    CHECK(f != NULL);
    CHECK_EQ(fwrite(text, 1, n, f), n);
    CHECK_EQ(fclose(f), 0);
}

static heddle_status rig_read(struct rig *r, heddle_energy **out)
{
    return heddle_energy_read(NULL, r->path, out, r->why, sizeof(r->why));
}

static const char sample[] = "# by hand\n"
                             "heddle-energy 1   # version\n"
                             "\n"
                             "domain package-0 idle_watts 41.5 device cpu low 40 high 43\n"
                             "domain \"the room\" idle_watts 0\n"
                             "active gemm cpu watts 6.25 count 400 low 6 high 6.5\n"
                             "active gemm cuda0 bytes 4096 variant tf32 watts 301 group 2\r\n"
                             "active * \"cuda small\" watts 1e2\n"
                             "\tcap cuda0 250W watts .7 time 1.1\n"
                             "move joules_per_gb 0.5";

TEST(sample_is_read)
{
    struct heddle_energy_domain d = {.size = sizeof(d)};
    struct heddle_energy_active a = {.size = sizeof(a)};
    struct heddle_energy_cap c = {.size = sizeof(c)};
    heddle_energy *e = NULL;
    struct rig r;

    rig_init(&r);
    rig_put(&r, sample, strlen(sample));
    CHECK_OK(rig_read(&r, &e));
    CHECK_OK(heddle_energy_get_domain(e, 0, &d));
    CHECK_STR(d.name, "package-0");
    CHECK_STR(d.device, "cpu");
    CHECK_NEAR(d.idle_watts, 41.5, 0);
    CHECK_NEAR(d.high, 43, 0);
    CHECK_OK(heddle_energy_get_domain(e, 1, &d));
    CHECK_STR(d.name, "the room");
    CHECK_STR(d.device, "");
    CHECK_OK(heddle_energy_get_active(e, 0, &a));
    CHECK_EQ(a.count, 400);
    CHECK_NEAR(a.low, 6, 0);
    CHECK_OK(heddle_energy_get_active(e, 1, &a));
    CHECK_EQ(a.bytes, 4096);
    CHECK_EQ(a.group, 2);
    CHECK_STR(a.variant, "tf32");
    CHECK_OK(heddle_energy_get_active(e, 2, &a));
    CHECK_STR(a.device, "cuda small");
    CHECK_NEAR(a.watts, 100, 0);
    CHECK_STATUS(heddle_energy_get_active(e, 3, &a), HEDDLE_ENOENT);
    CHECK_OK(heddle_energy_get_cap(e, 0, &c));
    CHECK_NEAR(c.time_factor, 1.1, 0);
    CHECK_NEAR(c.watts_factor, 0.7, 0);
    CHECK_NEAR(heddle_energy_get_move(e), 5e-10, 1e-22);
    heddle_energy_destroy(e);
    rig_fini(&r);
}

/* A name of any bytes but zero. */
static const char *any_name(struct heddle_rng *rng, char *buf, size_t cap)
{
    const size_t n = 1 + heddle_rng_below(rng, cap - 1);

    for (size_t i = 0; i < n; i++)
        buf[i] = (char)(1 + heddle_rng_below(rng, 255));
    buf[n] = '\0';
    return buf;
}

TEST(there_and_back)
{
    struct heddle_rng rng;
    struct rig r;

    heddle_rng_seed(&rng, test_seed());
    rig_init(&r);
    for (size_t k = 0; k < test_scale(100); k++) {
        char x[HEDDLE_ENERGY_NAME_MAX + 1], y[40], z[40];
        struct heddle_energy_domain d = {.size = sizeof(d)}, d2 = d;
        struct heddle_energy_active a = {.size = sizeof(a)}, a2 = a;
        struct heddle_energy_cap c = {.size = sizeof(c)}, c2 = c;
        heddle_energy *e = NULL, *back = NULL;

        CHECK_OK(heddle_energy_create(NULL, &e));
        d.name = any_name(&rng, x, sizeof(x));
        d.device = k % 2 ? any_name(&rng, y, sizeof(y)) : NULL;
        d.idle_watts = heddle_rng_double(&rng) * 1e3;
        CHECK_OK(heddle_energy_set_domain(e, &d));
        a.kernel = any_name(&rng, x, sizeof(x));
        a.device = any_name(&rng, y, sizeof(y));
        a.variant = k % 3 ? any_name(&rng, z, sizeof(z)) : "";
        a.watts = heddle_rng_double(&rng);
        a.low = a.watts / 3;
        a.high = a.watts * 3;
        a.bytes = heddle_rng_next(&rng);
        a.count = heddle_rng_next(&rng) >> (k % 64);
        a.group = (uint32_t)heddle_rng_below(&rng, 4);
        CHECK_OK(heddle_energy_set_active(e, &a));
        c.device = x;
        c.name = y;
        c.time_factor = 1 + heddle_rng_double(&rng);
        c.watts_factor = 1e-300;
        CHECK_OK(heddle_energy_set_cap(e, &c));
        CHECK_OK(heddle_energy_set_move(e, heddle_rng_double(&rng) * 1e-9));
        CHECK_OK(heddle_energy_write(e, r.path, r.why, sizeof(r.why)));
        CHECK_OK(rig_read(&r, &back));
        CHECK_OK(heddle_energy_get_active(back, 0, &a2));
        CHECK_STR(a2.kernel, x);
        CHECK_STR(a2.device, y);
        CHECK_STR(a2.variant, a.variant);
        CHECK_NEAR(a2.watts, a.watts, 0);
        CHECK_NEAR(a2.low, a.low, 0);
        CHECK_NEAR(a2.high, a.high, 0);
        CHECK(a2.bytes == a.bytes && a2.count == a.count && a2.group == a.group);
        CHECK_OK(heddle_energy_get_domain(back, 0, &d2));
        CHECK_NEAR(d2.idle_watts, d.idle_watts, 0);
        CHECK_OK(heddle_energy_get_domain(e, 0, &d));
        CHECK_STR(d2.name, d.name);
        CHECK_STR(d2.device, d.device);
        CHECK_OK(heddle_energy_get_cap(back, 0, &c2));
        CHECK_NEAR(c2.time_factor, c.time_factor, 0);
        CHECK_NEAR(heddle_energy_get_move(back), heddle_energy_get_move(e), 1e-24);
        heddle_energy_destroy(e);
        heddle_energy_destroy(back);
    }
    rig_fini(&r);
}

#define HEAD "heddle-energy 1\n"

static const struct {
    const char *text, *where, *word;
} corpus[] = {
    {"", ": ", "empty"},
    {"\n # x\n", ":2:", "empty"},
    {"hello\n", ":1:", "no energy model"},
    {"heddle-energy\n", ":1:", "version is missing"},
    {"heddle-energy 2\n", ":1:", "version 2"},
    {"heddle-energy -1\n", ":1:", "whole number"},
    {"heddle-energy 1 1\n", ":1:", "too many"},
    {"heddle-model 1 gemm\n", ":1:", "no energy model"},
    {"\x7f"
     "ELF\n",
     ":1:", "not text"},
    {HEAD "heddle-energy 1\n", ":2:", "not known"},
    {HEAD "idle 3\n", ":2:", "'idle' is not known"},
    {HEAD "domain\n", ":2:", "name of the domain is missing"},
    {HEAD "domain \"\" idle_watts 1\n", ":2:", "missing"},
    {HEAD "domain a\n", ":2:", "'idle_watts' is missing"},
    {HEAD "domain a idle_watts\n", ":2:", "idle_watts is missing"},
    {HEAD "domain a idle_watts -3\n", ":2:", "negative"},
    {HEAD "domain a idle_watts nan\n", ":2:", "finite"},
    {HEAD "domain a idle_watts inf\n", ":2:", "finite"},
    {HEAD "domain a idle_watts 1e999\n", ":2:", "finite"},
    {HEAD "domain a idle_watts 3W\n", ":2:", "finite"},
    {HEAD "domain a idle_watts 1 watts 2\n", ":2:", "no 'watts'"},
    {HEAD "domain a idle_watts 1 idle_watts 2\n", ":2:", "twice"},
    {HEAD "domain a idle_watts 1 low 2\n", ":2:", "without 'high'"},
    {HEAD "domain a idle_watts 1 high 2\n", ":2:", "without 'low'"},
    {HEAD "domain a idle_watts 1 low 3 high 2\n", ":2:", "above"},
    {HEAD "domain a idle_watts 1\ndomain a idle_watts 2\n", ":3:", "same"},
    {HEAD "active k\n", ":2:", "device is missing"},
    {HEAD "active k cpu\n", ":2:", "'watts' is missing"},
    {HEAD "active k cpu watts -0.1\n", ":2:", "negative"},
    {HEAD "active k cpu watts 1 bytes 1.5\n", ":2:", "whole number"},
    {HEAD "active k cpu watts 1 group 4294967296\n", ":2:", "whole number"},
    {HEAD "active k cpu watts 1 count 99999999999999999999\n", ":2:", "whole number"},
    {HEAD "active k cpu watts 1\nactive k cpu watts 1\n", ":3:", "same"},
    {HEAD "active \"k cpu watts 1\n", ":2:", "not closed"},
    {HEAD "active \"k\"cpu watts 1\n", ":2:", "blank"},
    {HEAD "active \"\\n\" cpu watts 1\n", ":2:", "backslash"},
    {HEAD "active \"\\x00\" cpu watts 1\n", ":2:", "backslash"},
    {HEAD "active \"\\x4\" cpu watts 1\n", ":2:", "backslash"},
    {HEAD "active a\\b cpu watts 1\n", ":2:", "quotes"},
    {HEAD "cap cuda 250W time 1\n", ":2:", "'watts' is missing"},
    {HEAD "cap cuda 250W time 0 watts 1\n", ":2:", "above 0"},
    {HEAD "cap cuda 1 time 1 watts 1\ncap cuda 1 time 2 watts 1\n", ":3:", "same"},
    {HEAD "move 3\n", ":2:", "no '3'"},
    {HEAD "move joules_per_gb 1\nmove joules_per_gb 1\n", ":3:", "same"},
};

TEST(faults)
{
    struct rig r;

    rig_init(&r);
    for (size_t i = 0; i < sizeof(corpus) / sizeof(corpus[0]); i++) {
        heddle_energy *e = NULL;

        rig_put(&r, corpus[i].text, strlen(corpus[i].text));
        CHECK_STATUS(rig_read(&r, &e), HEDDLE_EFORMAT);
        CHECK(e == NULL);
        if (strstr(r.why, corpus[i].where) == NULL || strstr(r.why, corpus[i].word) == NULL)
            printf("case %zu: %s\n", i, r.why);
        CHECK(strstr(r.why, corpus[i].where) != NULL);
        CHECK(strstr(r.why, corpus[i].word) != NULL);
    }
    rig_fini(&r);
}

TEST(other_files)
{
    heddle_energy *e = NULL;
    struct stat s;
    char other[96];
    struct rig r;
    FILE *f;

    rig_init(&r);
    CHECK_STATUS(rig_read(&r, &e), HEDDLE_ENOENT);
    CHECK_STATUS(heddle_energy_read(NULL, r.dir, &e, r.why, sizeof(r.why)), HEDDLE_EFORMAT);
    CHECK_STATUS(heddle_energy_read(NULL, NULL, &e, r.why, sizeof(r.why)), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_energy_read(NULL, r.path, NULL, NULL, 0), HEDDLE_EINVAL);
    CHECK_OK(heddle_energy_create(NULL, &e));
    CHECK_STATUS(heddle_energy_write(e, "/nowhere/x", r.why, sizeof(r.why)), HEDDLE_EIO);
    CHECK(strstr(r.why, "/nowhere/x cannot be written") != NULL);
    CHECK_STATUS(heddle_energy_write(NULL, r.path, NULL, 0), HEDDLE_EINVAL);
    CHECK_OK(heddle_energy_write(e, r.path, NULL, 0));
    CHECK_EQ(chmod(r.path, 0600), 0);
    CHECK_OK(heddle_energy_write(e, r.path, NULL, 0)); /* keeps the mode */
    snprintf(other, sizeof(other), "%s/link", r.dir);
    CHECK_EQ(symlink("m.energy", other), 0);
    CHECK_OK(heddle_energy_write(e, other, NULL, 0));
    CHECK_EQ(lstat(other, &s), 0);
    CHECK(S_ISLNK(s.st_mode));
    CHECK_EQ(unlink(other), 0);
    CHECK_EQ(stat(r.path, &s), 0);
    CHECK_EQ(s.st_mode & 0777, 0600);
    heddle_energy_destroy(e);
    /* too many rows: quick to refuse */
    f = fopen(r.path, "wb");
    CHECK(f != NULL);
    fputs(HEAD, f);
    for (int i = 0; i < 10001; i++)
        fprintf(f, "active k%d cpu watts 1\n", i);
    CHECK_EQ(fclose(f), 0);
    CHECK_STATUS(rig_read(&r, &e), HEDDLE_EFORMAT);
    CHECK(strstr(r.why, "more than 10000") != NULL);
    rig_fini(&r);
}

/* Nothing but OK and EFORMAT, whatever the file is. */
TEST(damaged_files)
{
    const size_t n = strlen(sample);
    struct heddle_rng rng;
    struct rig r;

    heddle_rng_seed(&rng, test_seed());
    rig_init(&r);
    for (size_t k = 0; k < n + test_scale(1000); k++) {
        char text[sizeof(sample)];
        heddle_energy *e = NULL;
        heddle_status st;

        memcpy(text, sample, sizeof(text));
        if (k >= n)
            for (int i = 0; i < 3; i++)
                text[heddle_rng_below(&rng, n)] = (char)heddle_rng_below(&rng, 256);
        rig_put(&r, text, k < n ? k : n);
        r.why[0] = '\0';
        st = rig_read(&r, &e);
        CHECK(st == HEDDLE_OK || st == HEDDLE_EFORMAT);
        CHECK((st == HEDDLE_OK) == (r.why[0] == '\0'));
        heddle_energy_destroy(e);
    }
    rig_fini(&r);
}

TEST(no_memory)
{
    struct faulty f;
    struct rig r;

    rig_init(&r);
    rig_put(&r, sample, strlen(sample));
    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        heddle_energy *e = NULL;
        heddle_status st;

        faulty_init(&f, k);
        st = heddle_energy_read(&f.a, r.path, &e, r.why, sizeof(r.why));
        CHECK_EQ(st, f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
        heddle_energy_destroy(e);
        CHECK_EQ(f.nlive, 0);
    }
    rig_fini(&r);
}

TEST_MAIN(sample_is_read, there_and_back, faults, other_files, damaged_files, no_memory)
