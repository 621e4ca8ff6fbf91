/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dev_energy: joules of virtual time, exactly; places and variants by weight and
 * slack; caps, even and uneven; what is refused, and how.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/faulty_test.h"
#include "heddle/energy.h"
#include "heddle/heddle.h"
#include "heddle/trace.h"
#include "tests/test.h"

enum { MOST = 240 };

/* On a core 100 us, on a device 50 us. */
static const heddle_kernel work = {
    .size = sizeof(heddle_kernel),
    .name = "work",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.device = HEDDLE_DEV_CPU}, {.device = HEDDLE_DEV_CUDA}},
};

/* Both as fast, unless the machine says otherwise. */
static const heddle_kernel pair = {
    .size = sizeof(heddle_kernel),
    .name = "pair",
    .noperands = 1,
    .mode = {HEDDLE_RW},
    .variants = {{.name = "full", .device = HEDDLE_DEV_CUDA},
                 {.name = "half", .device = HEDDLE_DEV_CUDA, .digits = 3}},
};

static const struct heddle_task_opts on_core = {.size = sizeof(on_core),
                                                .devices = HEDDLE_DEVS_CPU};

struct run {
    char path[64];
    char log[72];
    heddle_energy *e;
    heddle_ctx *ctx;
    heddle_handle *h[MOST];
    char why[320];
};

static void keep(void *user, enum heddle_severity severity, const char *text)
{
    struct run *r = user;

    if (severity == HEDDLE_ERROR)
        snprintf(r->why, sizeof(r->why), "%s", text);
}

static void machine_write(struct run *r, const char *more)
{
    FILE *f;
    int fd;

    memset(r, 0, sizeof(*r));
    snprintf(r->path, sizeof(r->path), "/tmp/heddle-energy-XXXXXX");
    fd = mkstemp(r->path);
    CHECK(fd >= 0);
    f = fdopen(fd, "w");
    CHECK(f != NULL);
    fprintf(f,
            "heddle-machine 2\n"
            "node gpu0\n"
            "node gpu1\n"
            "class cpu kind cpu workers 2\n"
            "class gpu0 kind cuda workers 1 node gpu0 model same\n"
            "class gpu1 kind cuda workers 1 node gpu1 model same\n"
            "duplex host gpu0 gbytes 1e9\n"
            "duplex host gpu1 gbytes 1e9\n"
            "time work cpu 8 100\n"
            "time work cuda 8 50\n"
            "time pair cuda 8 50\n"
            "%s",
            more);
    CHECK_EQ(fclose(f), 0);
}

static void put_active(heddle_energy *e, const char *kernel, const char *device,
                       const char *variant, double watts)
{
    const struct heddle_energy_active a = {
        .size = sizeof(a), .kernel = kernel, .device = device, .variant = variant, .watts = watts};

    CHECK_OK(heddle_energy_set_active(e, &a));
}

static void put_cap(heddle_energy *e, const char *device, const char *name, double time,
                    double watts)
{
    const struct heddle_energy_cap c = {.size = sizeof(c),
                                        .device = device,
                                        .name = name,
                                        .time_factor = time,
                                        .watts_factor = watts};

    CHECK_OK(heddle_energy_set_cap(e, &c));
}

/* A core adds 10 W, a device 30 W: 1 mJ and 1.5 mJ for a task. */
static void make_model(struct run *r, double idle)
{
    static const char *const name[] = {"package-0", "gpu0", "gpu1"};
    static const char *const device[] = {"cpu", "gpu0", "gpu1"};

    CHECK_OK(heddle_energy_create(NULL, &r->e));
    for (unsigned i = 0; i < 3; i++) {
        const struct heddle_energy_domain d = {
            .size = sizeof(d), .name = name[i], .device = device[i], .idle_watts = idle};

        CHECK_OK(heddle_energy_set_domain(r->e, &d));
    }
    put_active(r->e, "work", "cpu", NULL, 10);
    put_active(r->e, "work", "cuda", NULL, 30);
    put_active(r->e, "pair", "gpu", "full", 40);
    put_active(r->e, "pair", "gpu", "half", 20);
    put_cap(r->e, "gpu", "low", 2, 0.25);
    put_cap(r->e, "gpu1", "off", 100, 0.5);
}

static struct heddle_ctx_opts defaults(struct run *r)
{
    return (struct heddle_ctx_opts){.size = sizeof(struct heddle_ctx_opts),
                                    .machine = r->path,
                                    .model_dir = "",
                                    .log = HEDDLE_OFF,
                                    .sched = "heft",
                                    .energy_object = r->e,
                                    .message = keep,
                                    .message_user = r,
                                    .ignore_env = true};
}

static void open_ctx(struct run *r, const struct heddle_ctx_opts *o)
{
    r->why[0] = '\0';
    CHECK_OK(heddle_ctx_create(o, &r->ctx));
    for (unsigned i = 0; i < MOST; i++)
        CHECK_OK(heddle_handle_vector(r->ctx, NULL, 1, HEDDLE_F64, &r->h[i]));
}

static void close_ctx(struct run *r)
{
    for (unsigned i = 0; i < MOST; i++)
        heddle_handle_unref(r->h[i]);
    CHECK_OK(heddle_ctx_destroy(r->ctx));
    r->ctx = NULL;
}

static void end(struct run *r)
{
    heddle_energy_destroy(r->e);
    CHECK_EQ(unlink(r->path), 0);
}

static void put(struct run *r, const heddle_kernel *k, unsigned n, const struct heddle_task_opts *o)
{
    for (unsigned i = 0; i < n; i++)
        CHECK_OK(heddle_submit(r->ctx, k,
                               &(struct heddle_call){.operand = {r->h[i % MOST]}, .opts = o}));
    CHECK_OK(heddle_wait(r->ctx));
}

static double active(struct run *r, unsigned domain)
{
    struct heddle_energy_use u = {.size = sizeof(u)};

    CHECK_OK(heddle_ctx_get_energy(r->ctx, domain, &u));
    return u.active_joules;
}

static double seconds(struct run *r)
{
    struct heddle_ctx_stats s = {.size = sizeof(s)};

    CHECK_OK(heddle_ctx_get_stats(r->ctx, &s));
    return 1e-9 * (double)s.virtual_ns;
}

TEST(joules_are_exact)
{
    struct heddle_energy_use u = {.size = sizeof(u)};
    struct heddle_ctx_opts o;
    struct run r;

    machine_write(&r, "");
    make_model(&r, 5);
    o = defaults(&r);
    open_ctx(&r, &o);
    put(&r, &work, 4, &on_core); /* 2 cores, 200 us */
    CHECK_NEAR(seconds(&r), 200e-6, 1e-12);
    CHECK_OK(heddle_ctx_get_energy(r.ctx, 0, &u));
    CHECK_STR(u.name, "package-0");
    CHECK_STR(u.device, "cpu");
    CHECK_NEAR(u.active_joules, 4e-3, 1e-12);
    CHECK_NEAR(u.idle_joules, 1e-3, 1e-12);
    CHECK_NEAR(active(&r, 1), 0, 1e-15);
    CHECK_STATUS(heddle_ctx_get_energy(r.ctx, 3, &u), HEDDLE_ENOENT);
    u.size = 1;
    CHECK_STATUS(heddle_ctx_get_energy(r.ctx, 0, &u), HEDDLE_EINVAL);
    close_ctx(&r);
    end(&r);
}

/* Copies have joules, and what no domain counts goes to "rest". */
TEST(copies_and_the_rest)
{
    struct heddle_energy_use u = {.size = sizeof(u)};
    struct heddle_ctx_opts o;
    struct run r;

    machine_write(&r, "");
    CHECK_OK(heddle_energy_create(NULL, &r.e));
    put_active(r.e, "*", "*", NULL, 1);
    CHECK_OK(heddle_energy_set_move(r.e, 1e-3));
    o = defaults(&r);
    open_ctx(&r, &o);
    put(&r, &pair, 1, NULL); /* 8 bytes there, 50 us of 1 W */
    CHECK_OK(heddle_ctx_get_energy(r.ctx, 0, &u));
    CHECK_STR(u.name, "rest");
    CHECK_NEAR(u.active_joules, 8e-3 + 50e-6, 1e-9);
    CHECK_NEAR(u.idle_joules, 0, 1e-15);
    close_ctx(&r);
    end(&r);
}

/* Two cores, 10 ms of 20 W above 5 W in each period; nothing else happens. */
TEST(samples_in_the_log)
{
    struct heddle_ctx_opts o;
    const struct heddle_log_view *v;
    unsigned n = 0, nkeys = 0;
    heddle_log *log = NULL;
    struct run r;

    machine_write(&r, "");
    make_model(&r, 5);
    o = defaults(&r);
    snprintf(r.log, sizeof(r.log), "%s.log", r.path);
    o.log = HEDDLE_ON;
    o.log_level = 1;
    o.log_path = r.log;
    open_ctx(&r, &o);
    put(&r, &work, 1000, &on_core); /* 50 ms */
    CHECK_NEAR(active(&r, 0), 1, 1e-9);
    close_ctx(&r);
    CHECK_OK(heddle_log_open(r.log, NULL, &log));
    v = heddle_log_get_view(log);
    for (size_t i = 0; i < v->nevents; i++) {
        const struct heddle_log_event *e = &v->events[i];

        if (e->kind != HEDDLE_LOG_POWER)
            continue;
        n++;
        CHECK(e->b < 3 && e->t_ns % 10000000 == 0);
        CHECK_NEAR((double)e->x * 1e-6, 1e-9 * (double)e->t_ns * (e->b == 0 ? 25 : 5), 2e-6);
    }
    CHECK_EQ(n, 3 * 6); /* at 0, 10, ..., 50 ms */
    for (size_t i = 0; i < v->ninfos; i++) {
        if (strcmp(v->infos[i].key, "energy.source") == 0)
            CHECK_STR(v->infos[i].value, "model");
        if (strcmp(v->infos[i].key, "energy.domain.0") == 0)
            CHECK_STR(v->infos[i].value, "package-0 cpu");
        nkeys += strncmp(v->infos[i].key, "energy.", 7) == 0;
    }
    CHECK_EQ(nkeys, 4);
    heddle_log_close(log);
    CHECK_EQ(unlink(r.log), 0);
    end(&r);
}

/* A kernel so long that samples are taken seldom, then short ones again. */
TEST(samples_after_a_long_while)
{
    static const heddle_kernel slow = {.size = sizeof(heddle_kernel),
                                       .name = "slow",
                                       .noperands = 1,
                                       .mode = {HEDDLE_RW},
                                       .variants = {{.device = HEDDLE_DEV_CPU}}};
    struct heddle_ctx_opts o;
    const struct heddle_log_view *v;
    uint64_t before[3] = {0};
    heddle_log *log = NULL;
    struct run r;

    machine_write(&r, "time slow cpu 8 100050000\n");
    make_model(&r, 5);
    put_active(r.e, "slow", "cpu", NULL, 100);
    o = defaults(&r);
    snprintf(r.log, sizeof(r.log), "%s.log", r.path);
    o.log = HEDDLE_ON;
    o.log_level = 1;
    o.log_path = r.log;
    open_ctx(&r, &o);
    put(&r, &slow, 1, &on_core);
    put(&r, &work, 1000, &on_core);
    close_ctx(&r);
    CHECK_OK(heddle_log_open(r.log, NULL, &log));
    v = heddle_log_get_view(log);
    for (size_t i = 0; i < v->nevents; i++) {
        const struct heddle_log_event *e = &v->events[i];

        if (e->kind != HEDDLE_LOG_POWER)
            continue;
        CHECK(e->b < 3 && e->x >= before[e->b]);
        CHECK((double)e->x <= 110e-3 * (double)e->t_ns + 1e6);
        before[e->b] = e->x;
    }
    CHECK(before[0] > 10000000000);
    heddle_log_close(log);
    CHECK_EQ(unlink(r.log), 0);
    end(&r);
}

static const char *const policies[] = {"heft", "lookahead", "dual", "heteroprio", "multiprio"};

/* A model alone changes nothing; weight 1 takes the efficient cores for all. */
TEST(weights)
{
    for (unsigned i = 0; i < 5; i++) {
        struct heddle_ctx_opts o;
        struct run r;
        double time;

        machine_write(&r, "");
        make_model(&r, 0);
        o = defaults(&r);
        o.sched = policies[i];
        o.energy_object = NULL;
        open_ctx(&r, &o);
        put(&r, &work, MOST, NULL);
        time = seconds(&r);
        close_ctx(&r);
        o.energy_object = r.e;
        open_ctx(&r, &o);
        put(&r, &work, MOST, NULL);
        CHECK(seconds(&r) == time);
        CHECK(active(&r, 0) > 0.02 && active(&r, 1) > 0.02); /* all are used */
        close_ctx(&r);
        o.energy_weight = 1;
        open_ctx(&r, &o);
        put(&r, &work, MOST, NULL);
        CHECK_NEAR(active(&r, 0), MOST * 1e-3, 1e-9);
        CHECK_NEAR(active(&r, 1) + active(&r, 2), 0, 1e-12);
        close_ctx(&r);
        end(&r);
    }
}

/* Half of a device's time, and an eighth of its power: see the cap "low". */
TEST(caps)
{
    struct heddle_ctx_opts o;
    struct run r;

    machine_write(&r, "");
    make_model(&r, 0);
    o = defaults(&r);
    o.devices = "gpu0";
    o.power_cap = "gpu0:low";
    open_ctx(&r, &o);
    put(&r, &pair, 10, NULL);
    CHECK_NEAR(seconds(&r), 10 * 100e-6, 1e-9);
    CHECK_NEAR(active(&r, 1), 10 * 100e-6 * 40 / 4, 1e-9);
    close_ctx(&r);
    end(&r);
}

/* Schedulers see what is left: the capped device of two gets less. */
TEST(uneven_caps)
{
    for (unsigned i = 0; i < 5; i++) {
        struct heddle_ctx_opts o;
        double even, uneven, share;
        struct run r;

        machine_write(&r, "");
        make_model(&r, 0);
        o = defaults(&r);
        o.sched = policies[i];
        o.power_cap = "cuda:low"; /* both */
        open_ctx(&r, &o);
        put(&r, &pair, MOST, NULL);
        even = seconds(&r);
        close_ctx(&r);
        o.power_cap = "gpu1:low"; /* one: 2/3 of the time */
        open_ctx(&r, &o);
        put(&r, &pair, MOST, NULL);
        uneven = seconds(&r);
        /* 2 mJ a task on gpu0, 1 mJ on gpu1, which does half as many */
        share = active(&r, 2) / active(&r, 1);
        CHECK(uneven < 0.72 * even);
        CHECK(share > 0.22 && share < 0.28);
        close_ctx(&r);
        end(&r);
    }
}

/* Equal times: the one that draws less, when energy counts. */
TEST(variants)
{
    const struct heddle_task_opts exact = {.size = sizeof(exact), .digits = 7};
    struct heddle_ctx_opts o;
    struct run r;

    machine_write(&r, "");
    make_model(&r, 0);
    o = defaults(&r);
    o.devices = "gpu0";
    open_ctx(&r, &o);
    put(&r, &pair, 10, NULL);
    CHECK_NEAR(active(&r, 1), 10 * 50e-6 * 40, 1e-9);
    close_ctx(&r);
    o.energy_weight = 0.1;
    open_ctx(&r, &o);
    put(&r, &pair, 10, NULL);
    CHECK_NEAR(active(&r, 1), 10 * 50e-6 * 20, 1e-9);
    put(&r, &pair, 10, &exact); /* who needs digits gets them */
    CHECK_NEAR(active(&r, 1), 10 * 50e-6 * (20 + 40), 1e-9);
    close_ctx(&r);
    end(&r);
}

/* A machine that has times of a variant: slower and cheaper. */
TEST(variants_with_times)
{
    struct heddle_ctx_opts o;
    struct run r;

    machine_write(&r, "time pair:half cuda 8 75\n");
    make_model(&r, 0);
    o = defaults(&r);
    o.devices = "gpu0";
    for (unsigned i = 0; i < 3; i++) {
        const double half = i == 2;

        o.energy_weight = i == 0 ? 0 : i == 1 ? 0.05 : 1;
        open_ctx(&r, &o);
        put(&r, &pair, 10, NULL);
        CHECK_NEAR(seconds(&r), 10 * (half ? 75e-6 : 50e-6), 1e-9);
        CHECK_NEAR(active(&r, 1), 10 * (half ? 75e-6 * 20 : 50e-6 * 40), 1e-9);
        close_ctx(&r);
    }
    end(&r);
    /* Without energy: the fastest. */
    machine_write(&r, "time pair:half cuda 8 25\n");
    o = defaults(&r);
    o.devices = "gpu0";
    open_ctx(&r, &o);
    put(&r, &pair, 10, NULL);
    CHECK_NEAR(seconds(&r), 10 * 25e-6, 1e-9);
    close_ctx(&r);
    end(&r);
}

static void refused(struct run *r, const struct heddle_ctx_opts *o, heddle_status st,
                    const char *words)
{
    r->why[0] = '\0';
    CHECK_STATUS(heddle_ctx_create(o, &r->ctx), st);
    CHECK(strstr(r->why, words) != NULL);
}

TEST(refusals)
{
    struct heddle_ctx_opts o, good;
    struct run r;

    machine_write(&r, "");
    make_model(&r, 1);
    o = good = defaults(&r);
    o.energy_weight = 1.5;
    refused(&r, &o, HEDDLE_EINVAL, "weight of 1.5");
    o.energy_weight = NAN;
    refused(&r, &o, HEDDLE_EINVAL, "it is 0 to 1");
    o = good;
    o.energy_slack = -0.1;
    refused(&r, &o, HEDDLE_EINVAL, "slack of -0.1");
    o.energy_slack = 0.1;
    o.energy_weight = 0.1;
    refused(&r, &o, HEDDLE_EINVAL, "give one of them");
    o.energy_weight = 0;
    o.energy_object = NULL;
    refused(&r, &o, HEDDLE_EINVAL, "needs an energy model");
    o.energy_model = "no/such/file";
    refused(&r, &o, HEDDLE_ENOENT, "no/such/file");
    o = good;
    o.power_cap = "gpu7:low";
    refused(&r, &o, HEDDLE_EINVAL, "no device 'gpu7'");
    o.power_cap = "gpu0:high";
    refused(&r, &o, HEDDLE_EINVAL, "no cap 'high' of the device gpu0");
    o.power_cap = "gpu0";
    refused(&r, &o, HEDDLE_EINVAL, "as in cuda0:250W");
    o.power_cap = ",";
    refused(&r, &o, HEDDLE_EINVAL, "as in cuda0:250W");
    o.power_cap = "gpu0:low";
    o.energy_object = NULL;
    refused(&r, &o, HEDDLE_EINVAL, "needs an energy model");
    o.energy_object = r.e;
    o.machine = NULL;
    refused(&r, &o, HEDDLE_EINVAL, "clocks of real");
    end(&r);
}

/* A context of real time takes a model; there are no joules. */
TEST(real_time)
{
    struct heddle_energy_use u = {.size = sizeof(u)};
    struct heddle_ctx_opts o;
    struct run r;

    machine_write(&r, "");
    make_model(&r, 1);
    o = defaults(&r);
    o.machine = NULL;
    o.sched = NULL;
    o.devices = "none";
    o.energy_weight = 0.5;
    CHECK_OK(heddle_ctx_create(&o, &r.ctx));
    CHECK_STATUS(heddle_ctx_get_energy(r.ctx, 0, &u), HEDDLE_ENOENT);
    CHECK_OK(heddle_ctx_destroy(r.ctx));
    end(&r);
}

/* A kernel that the model does not know counts nothing, and is told once. */
TEST(unknown_kernels)
{
    struct heddle_ctx_opts o;
    struct run r;

    machine_write(&r, "");
    CHECK_OK(heddle_energy_create(NULL, &r.e));
    put_active(r.e, "other", "*", NULL, 1);
    o = defaults(&r);
    o.energy_weight = 0.5;
    open_ctx(&r, &o);
    put(&r, &work, 50, NULL);
    CHECK_NEAR(active(&r, 0), 0, 1e-15);
    close_ctx(&r);
    end(&r);
}

/* Nothing leaks and nothing breaks, whichever allocation fails. */
TEST(no_memory)
{
    struct faulty f;
    struct run r;

    machine_write(&r, "time pair:half cuda 8 75\n");
    make_model(&r, 1);
    for (size_t k = 1; k == 1 || f.has_failed; k++) {
        struct heddle_ctx_opts o = defaults(&r);
        heddle_status st = HEDDLE_OK;
        heddle_handle *h = NULL;
        heddle_ctx *ctx = NULL;

        faulty_init(&f, k);
        o.allocator = f.a;
        o.energy_slack = 0.1;
        o.power_cap = "gpu1:low";
        if (heddle_ctx_create(&o, &ctx) == HEDDLE_OK) {
            if (heddle_handle_vector(ctx, NULL, 1, HEDDLE_F64, &h) == HEDDLE_OK)
                for (unsigned i = 0; i < 3 && st == HEDDLE_OK; i++) {
                    const struct heddle_call call = {.operand = {h}};

                    st = heddle_submit(ctx, &pair, &call);
                }
            if (heddle_wait(ctx) != HEDDLE_OK)
                CHECK(f.has_failed);
            heddle_handle_unref(h);
            (void)heddle_ctx_destroy(ctx);
        }
        CHECK_EQ(f.nlive, 0);
    }
    end(&r);
}

TEST_MAIN(joules_are_exact, copies_and_the_rest, samples_in_the_log, samples_after_a_long_while,
          weights, caps, uneven_caps, variants, variants_with_times, refusals, real_time,
          unknown_kernels, no_memory)
