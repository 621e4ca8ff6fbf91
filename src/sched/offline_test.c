/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Policies on paper machines: every policy of the table that knows classes runs
 * graphs of tile Cholesky, LU, QR and random tasks on three measured machines, with
 * and without transfers, and under everything that can go wrong: costs unknown, a
 * first measurement that is far off, durations that scatter, a short window, a
 * class that is lost, kernels that run on one type only.
 *
 * `table` prints the table of docs/design/schedulers.md. The bounds in it are the
 * best of heddle_bound_all() for the same graphs and machines, in ms.
 */
#include "sched/offline_test.h"

#include <time.h>

#include "sched/win.h"

enum { NSIZES = 8, NMACHINES = 3 };

static const char *const machines[NMACHINES] = {"mirage", "attila", "idgraf"};
static const unsigned sizes[NSIZES] = {8, 10, 12, 16, 20, 24, 28, 32};
static const double bounds[NMACHINES][NSIZES] = {
    {125.5, 202.1, 305.1, 619.8, 1165.1, 1998.5, 3162.2, 4710.4},
    {422.2, 529.7, 637.2, 852.2, 1357.1, 2100.3, 3232.8, 4770.4},
    {221.3, 278.6, 335.9, 450.5, 621.5, 993.4, 1501.4, 2166.9},
};

#define FOR_EACH_POLICY(o)                                                                         \
    for (const struct heddle_sched_ops *const *o = heddle_sched_table; *o != NULL; o++)            \
        if ((*o)->knows_classes)

struct row {
    double ratio[NMACHINES][NSIZES], mean, worst;
};

static void run_row(const struct heddle_sched_ops *ops, bool has_transfers, unsigned nsizes,
                    struct row *row)
{
    const struct off_options opt = {.has_transfers = has_transfers};

    row->mean = row->worst = 0;
    for (int m = 0; m < NMACHINES; m++)
        for (unsigned i = 0; i < nsizes; i++) {
            struct off_machine mach;
            struct off_graph g;
            struct off_run x;
            double r;

            off_machine(&mach, machines[m]);
            off_cholesky(&g, sizes[i]);
            r = off_run(&x, &g, &mach, ops, &opt) / 1e6 / bounds[m][i];
            CHECK(r >= 0.999); /* a bound is a bound */
            row->ratio[m][i] = r;
            row->mean += r / (NMACHINES * nsizes);
            row->worst = r > row->worst ? r : row->worst;
            off_graph_fini(&g);
        }
}

static void print_row(const char *name, bool has_transfers, unsigned nsizes, const struct row *row)
{
    printf("| %s%s |", name, has_transfers ? "" : ", no transfers");
    for (int m = 0; m < NMACHINES; m++)
        for (unsigned i = 0; i < nsizes; i++)
            printf(" %.2f%s", row->ratio[m][i], i + 1 < nsizes ? "" : " |");
    printf(" %.3f | %.3f |\n", row->mean, row->worst);
}

TEST(table)
{
    const unsigned nsizes = TEST_SANITIZED ? 4 : NSIZES;

    for (int transfers = 1; transfers >= 0; transfers--)
        FOR_EACH_POLICY(o)
        {
            struct row row;

            run_row(*o, transfers, nsizes, &row);
            print_row((*o)->name, transfers, nsizes, &row);
            if (strcmp((*o)->name, "lookahead") == 0 && nsizes == NSIZES)
                CHECK(row.mean <= 1.13 && row.worst <= 1.30);
            if (strcmp((*o)->name, "heft") == 0 && nsizes == NSIZES)
                CHECK(row.mean <= 1.20 && row.worst <= 1.45);
            if (strcmp((*o)->name, "dual") == 0 && nsizes == NSIZES)
                CHECK(row.mean <= 1.20 && row.worst <= 1.47);
        }
}

/* --- graphs and troubles ---------------------------------------------------*/

static void make_graph(struct off_graph *g, int which, uint64_t seed)
{
    if (which == 0)
        off_cholesky(g, 9);
    else if (which == 1)
        off_lu(g, 7);
    else if (which == 2)
        off_qr(g, 7);
    else if (which == 3)
        off_random(g, 300, 40, seed);
    else if (which == 4)
        off_random(g, 300, 300, seed); /* nearly independent */
    else
        off_random(g, 200, 2, seed); /* nearly a chain */
}

static void try_all(const struct off_options *opt, double times[2])
{
    for (int m = 0; m < NMACHINES; m++)
        for (int which = 0; which < 6; which++)
            FOR_EACH_POLICY(o)
            {
                struct off_machine mach;
                struct off_graph g;
                struct off_run x;

                off_machine(&mach, machines[m]);
                if (times != NULL) /* half of the kernels are special */
                    for (int k = 0; k < 2; k++)
                        mach.ns[k + 1][k] = times[k];
                make_graph(&g, which, 7);
                off_run(&x, &g, &mach, *o, opt);
                off_graph_fini(&g);
            }
}

TEST(every_policy_runs_every_graph)
{
    const struct off_options plain = {.has_transfers = true};
    const struct off_options deep = {.has_transfers = true, .depth = 4};
    const struct off_options narrow = {.has_transfers = true, .window = 7};
    const struct off_options wide = {.window = 64, .noise = 0.5};
    const struct off_options prio = {.has_transfers = true, .has_prio = true};

    try_all(&plain, NULL);
    try_all(&deep, NULL);
    try_all(&narrow, NULL);
    try_all(&wide, NULL);
    try_all(&prio, NULL);
}

/* trsm runs on accelerators only, syrk on cores only. */
TEST(kernels_of_one_type)
{
    const struct off_options plain = {.has_transfers = true};
    const struct off_options learns = {.has_transfers = true, .learns = 3};
    double times[2] = {INFINITY, INFINITY};

    try_all(&plain, times);
    try_all(&learns, times);
}

TEST(a_class_is_lost)
{
    const struct off_options one = {.has_transfers = true, .lose = 1};
    const struct off_options two = {.has_transfers = true, .lose = 2, .learns = 3};

    try_all(&one, NULL);
    try_all(&two, NULL);
}

/* Nothing is known at first, and the first measurement of each pair is ten times
 * too short or too long: the run must not be much longer than with known costs. */
TEST(costs_are_learned)
{
    static const double wrong[] = {0, 0.1, 10, 0};
    /* of tiles of 960 x 960, by a core that does 4 operations in a ns */
    static const double guess[] = {74e6, 221e6, 221e6, 442e6};

    FOR_EACH_POLICY(o)
    for (int k = 0; k < 4; k++)
        for (int m = 0; m < NMACHINES; m++) {
            struct off_options opt = {.has_transfers = true};
            struct off_machine mach;
            struct off_graph g;
            struct off_run x;
            double known, learned;

            off_machine(&mach, machines[m]);
            off_cholesky(&g, 20);
            known = off_run(&x, &g, &mach, *o, &opt);
            opt.learns = 5;
            opt.wrong = wrong[k];
            for (unsigned i = 0; i < 4 && k == 3; i++)
                opt.guess[i][0] = guess[i];
            learned = off_run(&x, &g, &mach, *o, &opt);
            printf("     %-10s %s, first x %-4g%s %.3f\n", (*o)->name, machines[m],
                   wrong[k] > 0 ? wrong[k] : 1, k == 3 ? ", guessed" : "", learned / known);
            CHECK(learned < 1.6 * known);
            off_graph_fini(&g);
        }
}

/* Cores that take a thousand times as long as accelerators cannot help: nobody
 * measures them again and again. */
TEST(hopeless_costs_are_measured_once)
{
    FOR_EACH_POLICY(o)
    {
        const struct off_options opt = {.has_transfers = true, .learns = 5};
        struct off_machine mach;
        struct off_graph g;
        struct off_run x;
        unsigned n = 0;

        if (strcmp((*o)->name, "prio") == 0 || strcmp((*o)->name, "eager") == 0)
            continue; /* they do not ask for costs */
        off_machine(&mach, "mirage");
        mach.ncpu = 3; /* so few that one task at a time is tried */
        for (unsigned k = 0; k < OFF_KERNELS; k++)
            mach.ns[k][0] = 1000 * mach.ns[k][1];
        off_cholesky(&g, 20);
        (void)off_run(&x, &g, &mach, *o, &opt);
        for (unsigned k = 0; k < OFF_KERNELS; k++)
            n += x.n[k][0];
        printf("     %-10s %u of %u tasks on cores\n", (*o)->name, n, g.ntasks);
        CHECK(n <= 8);
        off_graph_fini(&g);
    }
}

/* 16 cores and an accelerator that is a thousand times as fast as one of them; it
 * takes some ms for what a core takes half a second for. */
static void make_lopsided(struct off_machine *m, struct off_options *o)
{
    static const double ms[] = {1, 0.2, 0.29, 0.43};

    off_machine(m, "mirage");
    m->ncpu = 16;
    m->ngpu = 1;
    m->bw[0][1] = m->bw[1][0] = 50; /* bytes per ns */
    for (unsigned k = 0; k < 4; k++) {
        m->ns[k][1] = ms[k] * 1e6;
        m->ns[k][0] = 1000 * m->ns[k][1];
        o->guess[k][0] = 10 * m->ns[k][0]; /* a slow core */
    }
    o->has_transfers = true;
    o->home = 1;
}

static bool asks_for_costs(const struct heddle_sched_ops *ops)
{
    return strcmp(ops->name, "prio") != 0 && strcmp(ops->name, "eager") != 0;
}

/* Nothing is measured at first, but what a core would take can be guessed: nobody
 * waits for cores that find out. */
TEST(nobody_waits_for_a_guess)
{
    FOR_EACH_POLICY(o)
    for (int which = 0; which < 3 && asks_for_costs(*o); which++) {
        struct off_options opt = {.learns = 0};
        struct off_machine mach;
        struct off_graph g;
        struct off_run x;
        double known, first, later = 0;

        make_lopsided(&mach, &opt);
        if (which == 0)
            off_product(&g, 16, 3);
        else if (which == 1)
            off_cholesky(&g, 8);
        else
            off_qr(&g, 6);
        g.tile_bytes = 8192 * 512 * 8.0;
        known = off_run(&x, &g, &mach, *o, &opt);
        opt.learns = 5;
        off_open(&x, &g, &mach, *o, &opt);
        first = off_play(&x);
        for (int round = 0; round < 4; round++)
            later = fmax(later, off_play(&x));
        printf("     %-10s %.1f ms known, first %.1f, then %.1f\n", (*o)->name, known / 1e6,
               first / 1e6, later / 1e6);
        CHECK(later < 1.1 * known);
        /* dual goes by ranks, and those are of guesses the first time. */
        CHECK(first < 1.1 * known || strcmp((*o)->name, "dual") == 0);
        off_close(&x);
        off_graph_fini(&g);
    }
}

/* The first tasks on an accelerator load its code. They take a second, and tell
 * nothing about the others. */
TEST(code_that_is_loaded_tells_nothing)
{
    FOR_EACH_POLICY(o)
    if (asks_for_costs(*o)) {
        struct off_options opt = {.learns = 0};
        struct off_machine mach;
        struct off_graph g;
        struct off_run x;
        double known;

        make_lopsided(&mach, &opt);
        off_product(&g, 16, 3);
        known = off_run(&x, &g, &mach, *o, &opt);
        opt.learns = 5;
        opt.slow = 4;
        opt.slow_ns = 1e9;
        off_open(&x, &g, &mach, *o, &opt);
        CHECK(off_play(&x) < 1.1 * known + 4e9);
        for (int round = 0; round < 4; round++)
            CHECK(off_play(&x) < 1.1 * known);
        off_close(&x);
        off_graph_fini(&g);
    }
}

/* Where cores are worth something, they are measured all the same, guess or not: in
 * a run that is long enough. */
TEST(cores_are_measured_where_there_is_time)
{
    FOR_EACH_POLICY(o)
    if (asks_for_costs(*o)) {
        struct off_options opt = {.learns = 0};
        struct off_machine mach;
        struct off_graph g;
        struct off_run x;

        make_lopsided(&mach, &opt);
        opt.learns = 5;
        for (unsigned k = 0; k < 4; k++) {
            mach.ns[k][0] = 50 * mach.ns[k][1];
            opt.guess[k][0] = 10 * mach.ns[k][0];
        }
        off_product(&g, 400, 3);
        off_run(&x, &g, &mach, *o, &opt);
        CHECK(x.n[GEMM][0] >= 3);
        off_graph_fini(&g);
    }
}

/* Beyond Cholesky with the whole graph; prints for the design page. */
TEST(other_graphs)
{
    static const char *const name[] = {"Cholesky", "LU", "QR", "random"};
    static const unsigned window[] = {0, 500, 100};
    const struct heddle_sched_ops *ops[2] = {heddle_sched_find("heft"),
                                             heddle_sched_find("lookahead")};

    CHECK(ops[0] != NULL && ops[1] != NULL);
    for (int which = 0; which < 4; which++)
        for (int w = 0; w < 3; w++) {
            printf("     %s, window %u: lookahead / heft", name[which], window[w]);
            for (int m = 0; m < NMACHINES; m++) {
                double length[2];

                for (int k = 0; k < 2; k++) {
                    const struct off_options opt = {
                        .has_transfers = true, .window = window[w], .noise = 0.1};
                    struct off_machine mach;
                    struct off_graph g;
                    struct off_run x;

                    off_machine(&mach, machines[m]);
                    if (which == 0)
                        off_cholesky(&g, 20);
                    else if (which == 1)
                        off_lu(&g, 14);
                    else if (which == 2)
                        off_qr(&g, 14);
                    else
                        off_random(&g, 2000, 200, 5);
                    length[k] = off_run(&x, &g, &mach, ops[k], &opt);
                    off_graph_fini(&g);
                }
                printf(" %.2f", length[1] / length[0]);
                CHECK(length[1] < 1.15 * length[0]);
            }
            printf("\n");
        }
}

TEST(the_same_again)
{
    FOR_EACH_POLICY(o)
    {
        const struct off_options opt = {.has_transfers = true, .noise = 0.2};
        struct off_machine mach;
        struct off_graph g;
        struct off_run x;
        unsigned *worker;
        double length;

        off_machine(&mach, "mirage");
        off_cholesky(&g, 12);
        worker = calloc(g.ntasks, sizeof(*worker));
        CHECK(worker != NULL);
        length = off_run(&x, &g, &mach, *o, &opt);
        for (unsigned i = 0; i < g.ntasks; i++)
            worker[i] = g.task[i].worker;
        CHECK(off_run(&x, &g, &mach, *o, &opt) == length);
        for (unsigned i = 0; i < g.ntasks; i++)
            CHECK_EQ(g.task[i].worker, worker[i]);
        free(worker);
        off_graph_fini(&g);
    }
}

/* --- replay ----------------------------------------------------------------*/

static int by_begin(const void *a, const void *b)
{
    const struct off_task *const *x = a, *const *y = b;

    if ((*x)->begin != (*y)->begin)
        return (*x)->begin < (*y)->begin ? -1 : 1;
    return (*x)->id < (*y)->id ? -1 : 1;
}

/* Writes where the tasks of a run were: classes by name, or workers. */
static void write_placement(const char *path, const struct off_graph *g, const struct off_run *x,
                            bool by_worker, unsigned skip)
{
    const struct off_task **t = calloc(g->ntasks, sizeof(*t));
    FILE *f = fopen(path, "w");

    CHECK(t != NULL && f != NULL);
    for (unsigned i = 0; i < g->ntasks; i++)
        t[i] = &g->task[i];
    qsort(t, g->ntasks, sizeof(*t), by_begin);
    fprintf(f, "# a comment\n\n");
    for (unsigned i = 0; i < g->ntasks; i++) {
        if (skip != 0 && i % skip == 0)
            continue;
        if (by_worker)
            fprintf(f, "%u %u\n", t[i]->id, t[i]->worker);
        else
            fprintf(f, "%u %s %u # kernel %u\n", t[i]->id, x->cls[x->class_of[t[i]->worker]].name,
                    i, t[i]->kernel);
    }
    if (skip != 0)
        fprintf(f, "999999 cpu0 0\n888888 nowhere 3\n");
    fclose(f);
    free(t);
}

TEST(replay_follows_a_placement)
{
    const struct heddle_sched_ops *ahead = heddle_sched_find("lookahead");
    const struct heddle_sched_ops *replay = heddle_sched_find("replay");
    char path[64];

    CHECK(ahead != NULL && replay != NULL);
    snprintf(path, sizeof(path), "placement_%ld.tmp", (long)getpid());
    for (int m = 0; m < NMACHINES; m++)
        for (int by_worker = 0; by_worker < 2; by_worker++) {
            struct off_options opt = {.has_transfers = true};
            struct off_machine mach;
            struct off_graph g;
            struct off_run x;
            unsigned *cls, same = 0;
            double length, again;

            off_machine(&mach, machines[m]);
            off_cholesky(&g, 12);
            length = off_run(&x, &g, &mach, ahead, &opt);
            cls = calloc(g.ntasks, sizeof(*cls));
            CHECK(cls != NULL);
            for (unsigned i = 0; i < g.ntasks; i++)
                cls[i] = by_worker ? g.task[i].worker : x.class_of[g.task[i].worker];
            write_placement(path, &g, &x, by_worker, 0);
            opt.placement = path;
            again = off_run(&x, &g, &mach, replay, &opt);
            for (unsigned i = 0; i < g.ntasks; i++)
                same += cls[i] == (by_worker ? g.task[i].worker : x.class_of[g.task[i].worker]);
            printf("     %s: %.3f of the length, %u of %u tasks in place\n", machines[m],
                   again / length, same, g.ntasks);
            CHECK_EQ(same, g.ntasks);
            CHECK(again < 1.03 * length);

            /* Other durations, a class lost, lines missing and wrong. */
            opt.noise = 0.4;
            opt.lose = 1;
            off_run(&x, &g, &mach, replay, &opt);
            opt.lose = 0;
            write_placement(path, &g, &x, by_worker, 3);
            off_run(&x, &g, &mach, replay, &opt);
            opt.window = 5;
            off_run(&x, &g, &mach, replay, &opt);
            free(cls);
            off_graph_fini(&g);
        }
    unlink(path);
}

/* Any order of any of the tasks, on any worker: against dependencies, also those
 * that go through tasks without a line or that nobody was told of. */
TEST(replay_never_waits_for_good)
{
    const struct heddle_sched_ops *replay = heddle_sched_find("replay");
    char path[64];

    snprintf(path, sizeof(path), "anyorder_%ld.tmp", (long)getpid());
    for (unsigned seed = 0; seed < 200; seed++) {
        struct off_options opt = {.placement = path,
                                  .window = seed % 5 == 0 ? 40 : 0,
                                  .hides = seed % 3,
                                  .returns = seed % 7};
        struct off_machine mach;
        struct off_graph g;
        struct off_run x;
        struct heddle_rng rng;
        FILE *f = fopen(path, "w");

        heddle_rng_seed(&rng, seed);
        off_machine(&mach, machines[seed % NMACHINES]);
        off_cholesky(&g, 2 + seed % 6);
        CHECK(f != NULL);
        for (unsigned i = 0; i < g.ntasks; i++)
            if (seed % 4 == 0 || heddle_rng_next(&rng) % 2 == 0)
                fprintf(
                    f, "%u %u %u\n", i,
                    (unsigned)(heddle_rng_next(&rng) % (seed % 2 != 0 ? 2 : mach.ncpu + mach.ngpu)),
                    seed % 8 == 7 ? i : (unsigned)(heddle_rng_next(&rng) % 1000));
        fclose(f);
        off_run(&x, &g, &mach, replay, &opt);
        off_graph_fini(&g);
    }
    unlink(path);
}

TEST(replay_refuses_bad_files)
{
    static const struct {
        const char *text;
        heddle_status st;
    } bad[] = {
        {"", HEDDLE_OK},
        {"# only a comment", HEDDLE_OK},
        {"1 cpu0", HEDDLE_OK},
        {"1 cpu0 5\n1 cuda0 3\n", HEDDLE_OK},
        {"1", HEDDLE_EFORMAT},
        {"x cpu0", HEDDLE_EFORMAT},
        {"1 cpu0 x", HEDDLE_EFORMAT},
        {"1 cpu0 -1", HEDDLE_EFORMAT},
        {"1 cpu0 1 1", HEDDLE_EFORMAT},
        {"99999999999999999999999 cpu0", HEDDLE_EFORMAT},
    };
    const struct heddle_sched_ops *ops = heddle_sched_find("replay");
    char path[64];

    snprintf(path, sizeof(path), "badplace_%ld.tmp", (long)getpid());
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct off_options opt = {.placement = path};
        FILE *f = fopen(path, "w");
        struct off_machine mach;
        struct off_graph g;
        struct off_run x;

        CHECK(f != NULL);
        fputs(bad[i].text, f);
        fclose(f);
        off_machine(&mach, "mirage");
        off_cholesky(&g, 4);
        off_setup(&x, &g, &mach, ops, &opt);
        x.self = calloc(1, ops->instance_size);
        CHECK_EQ(ops->init(x.self, &x.env), bad[i].st);
        ops->fini(x.self);
        free(x.self);
        free(x.valid);
        if (bad[i].st == HEDDLE_OK)
            off_run(&x, &g, &mach, ops, &opt);
        off_graph_fini(&g);
    }
    unlink(path);
    {
        struct off_options opt = {.placement = "no/such/file"};
        struct off_machine mach;
        struct off_graph g;
        struct off_run x;

        off_machine(&mach, "mirage");
        off_cholesky(&g, 2);
        off_setup(&x, &g, &mach, ops, &opt);
        x.self = calloc(1, ops->instance_size);
        CHECK_EQ(ops->init(x.self, &x.env), HEDDLE_ENOENT);
        ops->fini(x.self);
        free(x.self);
        free(x.valid);
        off_graph_fini(&g);
    }
}

/* --- what it costs ---------------------------------------------------------*/

static double wall_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* Prints; a verdict would depend on the machine. */
TEST(cost_of_a_large_window)
{
    const unsigned n = TEST_SANITIZED ? 20 : 83; /* 83: 98 770 tasks */

    FOR_EACH_POLICY(o)
    {
        const struct off_options opt = {.has_transfers = false};
        struct off_machine mach;
        struct off_graph g;
        struct off_run x;
        double t0, t1, t2;

        off_machine(&mach, "mirage");
        off_cholesky(&g, n);
        off_setup(&x, &g, &mach, *o, &opt);
        x.self = calloc(1, (*o)->instance_size);
        CHECK_OK((*o)->init(x.self, &x.env));
        t0 = wall_ns();
        off_submit(&x);
        t1 = wall_ns();
        CHECK((*o)->pop(x.self, 0) != NULL || (*o)->pop(x.self, 9) != NULL);
        t2 = wall_ns();
        printf("     %-10s %u tasks: submit %.0f ns, first pop %.0f ns each\n", (*o)->name,
               g.ntasks, (t1 - t0) / g.ntasks, (t2 - t1) / g.ntasks);
        (*o)->fini(x.self);
        free(x.self);
        free(x.valid);
        off_graph_fini(&g);
    }
}

TEST_MAIN(table, every_policy_runs_every_graph, kernels_of_one_type, a_class_is_lost,
          costs_are_learned, hopeless_costs_are_measured_once, nobody_waits_for_a_guess,
          code_that_is_loaded_tells_nothing, cores_are_measured_where_there_is_time, other_graphs,
          the_same_again, replay_follows_a_placement, replay_never_waits_for_good,
          replay_refuses_bad_files, cost_of_a_large_window)
