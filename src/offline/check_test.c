/* SPDX-License-Identifier: BSD-3-Clause */
/* The validator: a right schedule passes, and one wrong number is found. */
#include "base/faulty_test.h"
#include "offline/offline_test.h"

enum { N = 5 };

/* Two chains 0-1-2 and 3-4 on one core and one accelerator. */
struct fixture {
    struct sample s;
    struct heddle_offline_result r;
    struct heddle_offline_opts o;
    uint32_t type[N], worker[N];
    double start[N], end[N], release[N], bytes[3], latency[4], byte_time[4];
    char why[128];
};

static const uint32_t nworkers[2] = {1, 1};
static const double times[4] = {4, 1, INFINITY, 2};

static void setup(struct fixture *f)
{
    memset(f, 0, sizeof(*f));
    sample_init(&f->s, 2, nworkers, 2, times);
    for (int i = 0; i < N; i++)
        sample_task(&f->s, i == 2);
    sample_edge(&f->s, 0, 1);
    sample_edge(&f->s, 1, 2);
    sample_edge(&f->s, 3, 4);
    f->r = (struct heddle_offline_result){.size = sizeof(f->r), .ntasks = N};
    f->o = (struct heddle_offline_opts){
        .size = sizeof(f->o), .policy = "heft", .why = f->why, .why_bytes = sizeof(f->why)};
    /* gpu: 0 at 0, 1 at 1, 2 at 2; core: 3 at 0, 4 at 4 */
    for (int i = 0; i < N; i++) {
        f->type[i] = f->worker[i] = i < 3;
        f->start[i] = i < 3 ? i : 4.0 * (i - 3);
        f->end[i] = f->start[i] + times[2 * (i == 2) + (i < 3)];
    }
    f->r.type = f->type;
    f->r.worker = f->worker;
    f->r.start = f->start;
    f->r.end = f->end;
    f->r.makespan = 8;
}

static heddle_status check(struct fixture *f)
{
    return heddle_offline_check(&f->s.g, &f->o, &f->r);
}

TEST(right_ones_pass)
{
    struct fixture f;

    setup(&f);
    CHECK_OK(check(&f));
    CHECK_OK(heddle_offline_check(&f.s.g, NULL, &f.r));
    f.start[4] = 5.0; /* later is fine */
    f.end[4] = f.r.makespan = 9.0;
    CHECK_OK(check(&f));
    sample_fini(&f.s);
}

static void expect(struct fixture *f, const char *word)
{
    f->why[0] = '\0';
    CHECK_EQ(check(f), HEDDLE_EINVAL);
    if (strstr(f->why, word) == NULL)
        printf("no '%s' in '%s'\n", word, f->why);
    CHECK(strstr(f->why, word) != NULL);
    sample_fini(&f->s);
}

TEST(each_fault_is_found)
{
    struct fixture f;

    setup(&f);
    f.start[1] = 0.5; /* before its predecessor ends */
    f.end[1] = 1.5;
    expect(&f, "allows");
    setup(&f);
    f.start[4] = 3.0;
    f.end[4] = f.r.makespan = 7.0;
    expect(&f, "allows");
    setup(&f);
    f.start[3] = 1.0; /* no edge, the same worker */
    f.type[3] = f.worker[3] = 1;
    f.end[3] = 2.0;
    expect(&f, "overlap");
    setup(&f);
    f.end[0] = 0.5;
    expect(&f, "last");
    setup(&f);
    f.type[2] = f.worker[2] = 0;
    expect(&f, "cannot");
    setup(&f);
    f.worker[2] = 0;
    expect(&f, "not of type");
    setup(&f);
    f.type[2] = 7;
    expect(&f, "on type");
    setup(&f);
    f.start[0] = -1.0;
    f.end[0] = 0.0;
    expect(&f, "before time 0");
    setup(&f);
    f.start[0] = (double)NAN;
    expect(&f, "before time 0");
    setup(&f);
    f.r.makespan = 7.5;
    expect(&f, "makespan");
    setup(&f);
    f.r.makespan = (double)INFINITY;
    expect(&f, "makespan");
    setup(&f);
    f.r.ntasks = 4;
    expect(&f, "tasks");
}

TEST(releases_and_transfers_count)
{
    struct fixture f;

    setup(&f);
    f.release[3] = 0.5;
    f.o.release = f.release;
    expect(&f, "release");
    setup(&f);
    f.o.edge_bytes = f.bytes;
    f.o.latency = f.latency;
    f.o.byte_time = f.byte_time;
    f.bytes[0] = f.bytes[1] = f.bytes[2] = 1.0;
    for (int i = 0; i < 4; i++)
        f.byte_time[i] = 1.0;
    CHECK_OK(check(&f)); /* each chain stays on its worker */
    f.type[4] = f.worker[4] = 1;
    f.start[4] = 4.5; /* half a unit too early */
    f.end[4] = f.r.makespan = 5.5;
    expect(&f, "allows");
}

TEST(no_memory)
{
    struct fixture f;
    struct faulty m;

    setup(&f);
    faulty_init(&m, 1);
    f.o.alloc = &m.a;
    CHECK_EQ(check(&f), HEDDLE_ENOMEM);
    CHECK_EQ(m.nlive, 0);
    sample_fini(&f.s);
}

TEST_MAIN(right_ones_pass, each_fault_is_found, releases_and_transfers_count, no_memory)
