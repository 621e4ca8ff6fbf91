/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuda: regions of which some launches change. The functions in the device's table
 * are counted, and made to fail. A machine without a GPU skips all.
 */
#include "base/faulty_test.h"
#include "drive/cuda/rig_test.h"

enum { STEPS = 40, WORDS = 8 };

/* Launch i changes a word, perhaps twice; what it reads is there before it. */
struct steps {
    struct heddle_dev *dev;
    struct job job[STEPS], also[STEPS];
    uint32_t first[STEPS + 1], pred[STEPS * STEPS];
    uint64_t changed[STEPS / 64 + 1];
    unsigned nputs;
    void *graph;
};

/* Calls that bring a graph up to date; the k-th step can be made to fail. */
static struct {
    unsigned nsteps, nwholes, nmade;
    unsigned step_fails_at, whole_fails;
    heddle_cu_result (*step)(heddle_cu_exec, heddle_cu_node, const heddle_cu_kernel_params *);
    heddle_cu_result (*whole)(heddle_cu_exec, heddle_cu_graph, heddle_cu_update *);
    heddle_cu_result (*make)(heddle_cu_exec *, heddle_cu_graph, unsigned long long);
    heddle_cu_result (*attribute)(heddle_cu_node, heddle_cu_enum, heddle_cu_attribute *);
    unsigned nattributes;
} calls;

static heddle_cu_result count_step(heddle_cu_exec exec, heddle_cu_node node,
                                   const heddle_cu_kernel_params *p)
{
    return ++calls.nsteps == calls.step_fails_at ? HEDDLE_CU_INVALID_VALUE
                                                 : calls.step(exec, node, p);
}

static heddle_cu_result count_whole(heddle_cu_exec exec, heddle_cu_graph graph, heddle_cu_update *u)
{
    calls.nwholes++;
    return calls.whole_fails != 0 ? HEDDLE_CU_GRAPH_EXEC_UPDATE_FAILURE
                                  : calls.whole(exec, graph, u);
}

static heddle_cu_result count_make(heddle_cu_exec *exec, heddle_cu_graph graph,
                                   unsigned long long flags)
{
    calls.nmade++;
    return calls.whole_fails != 0 ? HEDDLE_CU_OUT_OF_MEMORY : calls.make(exec, graph, flags);
}

/* Never the same twice. */
static heddle_cu_result odd_attribute(heddle_cu_node node, heddle_cu_enum what,
                                      heddle_cu_attribute *value)
{
    const heddle_cu_result err = calls.attribute(node, what, value);

    value->word[0] = ++calls.nattributes;
    return err;
}

static void calls_watch(struct heddle_dev *dev)
{
    memset(&calls, 0, sizeof(calls));
    calls.step = dev->api.cuGraphExecKernelNodeSetParams_v2;
    calls.whole = dev->api.cuGraphExecUpdate_v2;
    calls.make = dev->api.cuGraphInstantiateWithFlags;
    calls.attribute = dev->api.cuGraphKernelNodeGetAttribute;
    if (calls.step != NULL)
        dev->api.cuGraphExecKernelNodeSetParams_v2 = count_step;
    if (calls.whole != NULL)
        dev->api.cuGraphExecUpdate_v2 = count_whole;
    dev->api.cuGraphInstantiateWithFlags = count_make;
}

static heddle_status steps_put(void *user, unsigned i)
{
    struct steps *s = user;

    s->nputs++;
    HEDDLE_TRY(job_put(&s->job[i]));
    return job_put(&s->also[i]);
}

/* All of one word are in a row, and every 13th is behind all others. */
static void steps_edges(struct steps *s)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < STEPS; i++) {
        s->first[i] = n;
        for (uint32_t p = 0; p < i; p++)
            if (p % WORDS == i % WORDS || i % 13 == 12)
                s->pred[n++] = p;
    }
    s->first[STEPS] = n;
}

/* Stores what follows from `v`, then doubles it. */
static struct steps *steps_new(struct heddle_dev *dev, uint32_t *x, uint32_t v)
{
    struct steps *s = calloc(1, sizeof(*s));

    CHECK(s != NULL);
    s->dev = dev;
    for (uint32_t i = 0; i < STEPS; i++)
        s->job[i] =
            i < WORDS ? job_store(dev, 2, x + i, v + i) : job_twice(dev, 2, x + i % WORDS, 1);
    steps_edges(s);
    return s;
}

static void steps_free(struct steps *s)
{
    drv->region_free(s->dev, s->graph);
    free(s);
}

static void steps_change(struct steps *s, unsigned i)
{
    s->changed[i / 64] |= UINT64_C(1) << (i % 64);
}

static heddle_status steps_update(struct steps *s, bool knows)
{
    const struct heddle_region r = {.n = STEPS,
                                    .put = steps_put,
                                    .user = s,
                                    .first = s->first,
                                    .pred = s->pred,
                                    .changed = knows ? s->changed : NULL};
    heddle_status st;

    s->nputs = calls.nsteps = calls.nwholes = calls.nmade = 0;
    st = drv->region(s->dev, &r, 2, &s->graph);
    memset(s->changed, 0, sizeof(s->changed));
    CHECK(!s->dev->is_capturing);
    return st;
}

static void replay_now(struct heddle_dev *dev, void *graph, unsigned stream)
{
    struct end e = end_make();

    CHECK_OK(drv->replay(dev, graph, stream, &e.op));
    end_wait(dev, &e);
    CHECK_OK(e.st);
}

/* What the launches do to the words that x points to. */
static void job_model(const struct job *j, uint32_t *x, uint32_t *want)
{
    const ptrdiff_t at = (uint32_t *)j->ptr - x;

    if (j->entry == NULL)
        return;
    want[at] = strcmp(j->entry, "store") == 0 ? (uint32_t)j->arg : want[at] * 2;
}

static void steps_check(struct steps *s, uint32_t *x, unsigned n)
{
    uint32_t want[2 * WORDS], got[2 * WORDS];

    CHECK(n <= 2 * WORDS);
    for (unsigned i = 0; i < n; i++)
        want[i] = 100 + i;
    flat_now(s->dev, HEDDLE_COPY_IN, x, want, n * 4);
    replay_now(s->dev, s->graph, 1);
    flat_now(s->dev, HEDDLE_COPY_OUT, x, got, n * 4);
    for (unsigned i = 0; i < STEPS; i++) {
        job_model(&s->job[i], x, want);
        job_model(&s->also[i], x, want);
    }
    for (unsigned i = 0; i < n; i++)
        CHECK_EQ(got[i], want[i]);
}

/* One argument, one pointer, a shape, all, none: each only costs what it must. */
TEST(steps)
{
    DEVICE(dev);
    uint32_t *x = dev_new(dev, 8 * WORDS);
    struct steps *s;
    bool has_steps;

    calls_watch(dev);
    has_steps = calls.step != NULL && calls.whole != NULL;
    s = steps_new(dev, x, 1000);
    CHECK_OK(steps_update(s, true)); /* there is no graph yet */
    CHECK_EQ(s->nputs, STEPS);
    steps_check(s, x, 2 * WORDS);
    for (unsigned round = 0; round < 3; round++) {
        s->job[round].arg = 77 + round;
        steps_change(s, round);
        CHECK_OK(steps_update(s, true));
        CHECK(!has_steps || (s->nputs == 1 && calls.nsteps == 1 && calls.nwholes == 0));
        steps_check(s, x, 2 * WORDS);
        /* A word beyond the others. */
        s->job[STEPS - 1 - round].ptr = x + WORDS + round;
        steps_change(s, STEPS - 1 - round);
        s->job[STEPS - 8].threads = 64 * round; /* the grid is larger */
        steps_change(s, STEPS - 8);
        CHECK_OK(steps_update(s, true));
        CHECK(!has_steps || (s->nputs == 2 && calls.nsteps == 2));
        steps_check(s, x, 2 * WORDS);
        /* All, without saying so, or saying so. */
        for (unsigned i = 0; i < STEPS; i++) {
            if (i < WORDS)
                s->job[i].arg += 5;
            steps_change(s, i);
        }
        CHECK_OK(steps_update(s, round == 1));
        CHECK_EQ(s->nputs, STEPS);
        CHECK(!has_steps || (calls.nsteps == 0 && calls.nwholes == 1));
        steps_check(s, x, 2 * WORDS);
    }
    CHECK_OK(steps_update(s, true)); /* nothing has changed */
    CHECK(!has_steps || s->nputs == 0);
    steps_check(s, x, 2 * WORDS);
    steps_free(s);
    dev_free(dev, x, 8 * WORDS);
    drv->close(dev);
}

/* Launches that are no longer one kernel, or another one. */
TEST(steps_of_another_shape)
{
    DEVICE(dev);
    uint32_t *x = dev_new(dev, 8 * WORDS);
    struct steps *s = steps_new(dev, x, 3);
    bool has_steps;

    calls_watch(dev);
    has_steps = calls.step != NULL && calls.whole != NULL;
    for (unsigned i = 0; i < STEPS; i += 9) {
        const struct job was = s->job[i];

        CHECK_OK(steps_update(s, false));
        s->job[i].entry = NULL;
        steps_change(s, i);
        CHECK_OK(steps_update(s, true));
        CHECK_EQ(calls.nmade, 1);
        steps_check(s, x, 2 * WORDS);
        s->job[i] = was;
        s->also[i] = job_twice(dev, 2, was.ptr, 1);
        steps_change(s, i);
        CHECK_OK(steps_update(s, true));
        CHECK_EQ(calls.nmade, 1);
        steps_check(s, x, 2 * WORDS);
        /* It has two: the others can still be changed by themselves. */
        s->job[(i + 1) % WORDS].arg += 9;
        steps_change(s, (i + 1) % WORDS);
        CHECK_OK(steps_update(s, true));
        CHECK(!has_steps || s->nputs == 1 || (i + 1) % WORDS == i);
        steps_check(s, x, 2 * WORDS);
        s->also[i].ptr = x + WORDS;
        steps_change(s, i);
        CHECK_OK(steps_update(s, true));
        CHECK_EQ(calls.nsteps, 0);
        steps_check(s, x, 2 * WORDS);
        s->also[i].entry = NULL;
        steps_change(s, i);
        CHECK_OK(steps_update(s, true));
        CHECK_EQ(calls.nmade, 1);
        steps_check(s, x, 2 * WORDS);
        /* One kernel, which is not the one it was. */
        s->job[i] = i < WORDS ? job_twice(dev, 2, was.ptr, 1) : job_store(dev, 2, was.ptr, 11);
        steps_change(s, i);
        CHECK_OK(steps_update(s, true));
        CHECK(calls.nsteps == 0);
        steps_check(s, x, 2 * WORDS);
        s->job[i] = was;
    }
    /* Two kernels and none: as many as before. */
    CHECK_OK(steps_update(s, false));
    s->also[WORDS] = s->job[WORDS];
    s->job[WORDS + 1].entry = NULL;
    steps_change(s, WORDS);
    steps_change(s, WORDS + 1);
    CHECK_OK(steps_update(s, true));
    CHECK_EQ(calls.nsteps, 0);
    steps_check(s, x, 2 * WORDS);
    steps_free(s);
    dev_free(dev, x, 8 * WORDS);
    drv->close(dev);
}

/* A kernel goes from the first launch to the last: CUDA finds the same shape, and
 * the node of the launch between them is another one. */
TEST(steps_after_a_shift)
{
    static const uint32_t first[] = {0, 0, 1, 2}, pred[] = {0, 1};
    DEVICE(dev);
    uint32_t v[3] = {0, 10, 100}, *x = dev_new(dev, sizeof(v));
    struct steps *s = steps_new(dev, x, 0);
    uint64_t changed = 0;
    const struct heddle_region r = {
        .n = 3, .put = steps_put, .user = s, .first = first, .pred = pred, .changed = &changed};

    s->job[0] = job_store(dev, 2, x, 3);
    s->job[1] = s->job[2] = s->also[0] = job_twice(dev, 2, x, 1);
    CHECK_OK(drv->region(dev, &r, 2, &s->graph));
    s->also[2] = s->job[2];
    s->job[2].ptr = x + 2;
    s->also[0].entry = NULL;
    changed = 5;
    CHECK_OK(drv->region(dev, &r, 2, &s->graph));
    s->job[1].ptr = x + 1;
    changed = 2;
    CHECK_OK(drv->region(dev, &r, 2, &s->graph));
    flat_now(dev, HEDDLE_COPY_IN, x, v, sizeof(v));
    replay_now(dev, s->graph, 2);
    flat_now(dev, HEDDLE_COPY_OUT, x, v, sizeof(v));
    CHECK_EQ(v[0], 6);
    CHECK_EQ(v[1], 20);
    CHECK_EQ(v[2], 200);
    steps_free(s);
    dev_free(dev, x, sizeof(v));
    drv->close(dev);
}

/* Where there are no steps, or none can be made. */
static void check_no_step(struct heddle_dev *dev, struct steps *s, uint32_t *x)
{
    /* Attributes that differ cannot be set. */
    dev->api.cuGraphKernelNodeGetAttribute = odd_attribute;
    s->job[0].arg = 1;
    steps_change(s, 0);
    CHECK_OK(steps_update(s, true));
    CHECK(calls.nsteps == 0 && calls.nwholes == 1 && calls.nattributes > 0);
    steps_check(s, x, 2 * WORDS);
    /* As with a driver that is too old. */
    dev->api.cuGraphKernelNodeGetAttribute = calls.attribute;
    dev->api.cuGraphExecKernelNodeSetParams_v2 = NULL;
    s->job[0].arg = 2;
    steps_change(s, 0);
    CHECK_OK(steps_update(s, true));
    CHECK(calls.nwholes == 1 && s->nputs == STEPS);
    steps_check(s, x, 2 * WORDS);
    /* A launch that fails: nothing has happened. */
    dev->api.cuGraphExecKernelNodeSetParams_v2 = calls.step;
    CHECK_OK(steps_update(s, false));
    for (unsigned i = 0; i < 3; i++) {
        s->job[i].arg += 7;
        s->job[i].answer = i == 2 ? HEDDLE_EDECLINED : HEDDLE_OK;
        steps_change(s, i);
    }
    CHECK_STATUS(steps_update(s, true), HEDDLE_EDECLINED);
    CHECK_EQ(s->nputs, 3);
    for (unsigned i = 0; i < 3; i++)
        s->job[i].arg -= 7;
    steps_check(s, x, 2 * WORDS);
}

/* CUDA refuses a step, or all that comes after it. */
TEST(steps_that_fail)
{
    DEVICE(dev);
    uint32_t *x = dev_new(dev, 8 * WORDS);
    struct steps *s = steps_new(dev, x, 50);
    struct end e = end_make();

    calls_watch(dev);
    if (calls.step == NULL || calls.whole == NULL) {
        steps_free(s);
        dev_free(dev, x, 8 * WORDS);
        drv->close(dev);
        SKIP("the driver is too old");
    }
    CHECK_OK(steps_update(s, false));
    for (unsigned k = 1; k <= 3; k++)
        for (calls.whole_fails = 0; calls.whole_fails < 2; calls.whole_fails++) {
            heddle_status st;

            for (unsigned i = 0; i < 3; i++) {
                s->job[i].arg++;
                steps_change(s, i);
            }
            calls.step_fails_at = k;
            st = steps_update(s, true);
            CHECK_EQ(calls.nsteps, k);
            CHECK_EQ(calls.nwholes, 1);
            calls.step_fails_at = 0;
            if (calls.whole_fails == 0) {
                CHECK_OK(st);
                steps_check(s, x, 2 * WORDS);
                continue;
            }
            /* Some of it is new and some old: it does not run. */
            CHECK_STATUS(st, HEDDLE_ENOMEM);
            for (unsigned i = 0; i < 3 && k == 1; i++)
                s->job[i].arg--;
            if (k == 1) {
                steps_check(s, x, 2 * WORDS);
                continue;
            }
            CHECK_STATUS(drv->replay(dev, s->graph, 0, &e.op), HEDDLE_EDECLINED);
            CHECK(strstr(drv->error(dev), "could not be updated") != NULL);
            calls.whole_fails = 0;
            steps_change(s, 0);
            CHECK_OK(steps_update(s, true));
            CHECK_EQ(s->nputs, STEPS);
            steps_check(s, x, 2 * WORDS);
            calls.whole_fails = 1;
        }
    calls.whole_fails = 0;
    check_no_step(dev, s, x);
    steps_free(s);
    dev_free(dev, x, 8 * WORDS);
    drv->close(dev);
}

/* Anything becomes anything. */
TEST(steps_by_chance)
{
    enum { ROUNDS = 300 };
    DEVICE(dev);
    uint32_t *x = dev_new(dev, 8 * WORDS);
    struct steps *s = steps_new(dev, x, 1);
    unsigned nsteps = 0, nwholes = 0, nmade = 0;
    struct heddle_rng rng;

    heddle_rng_seed(&rng, test_seed());
    calls_watch(dev);
    CHECK_OK(steps_update(s, true));
    for (unsigned round = 0; round < ROUNDS; round++) {
        const bool is_wild = heddle_rng_below32(&rng, 8) == 0;
        unsigned n = heddle_rng_below32(&rng, 4) == 0 ? STEPS : 4;

        for (unsigned i = 0; i < STEPS && round % 50 == 0; i++) {
            s->also[i].entry = NULL; /* simple again */
            steps_change(s, i);
        }
        for (n = heddle_rng_below32(&rng, n); n > 0; n--) {
            const unsigned i = heddle_rng_below32(&rng, STEPS);
            const uint32_t v = (uint32_t)heddle_rng_next(&rng);
            uint32_t *at = x + i % WORDS + v % 2 * WORDS;
            const bool stores =
                is_wild ? v % 4 < 2
                        : s->job[i].entry != NULL && strcmp(s->job[i].entry, "store") == 0;

            s->job[i] = stores ? job_store(dev, 2, at, v) : job_twice(dev, 2, at, 1);
            if (is_wild && v % 7 == 0)
                s->job[i].entry = NULL;
            if (is_wild)
                s->also[i] = v % 5 == 0 ? job_twice(dev, 2, at, 1) : (struct job){.dev = dev};
            steps_change(s, i);
        }
        CHECK_OK(steps_update(s, heddle_rng_below32(&rng, 10) != 0));
        nsteps += calls.nsteps;
        nwholes += calls.nwholes;
        nmade += calls.nmade;
        steps_check(s, x, 2 * WORDS);
    }
    printf("     %u steps, %u wholes, %u made\n", nsteps, nwholes, nmade);
    CHECK(calls.step == NULL || calls.whole == NULL || nsteps > ROUNDS / 4);
    steps_free(s);
    dev_free(dev, x, 8 * WORDS);
    drv->close(dev);
}

/* Each allocation fails: the graph is what it was, or what it was to be. */
TEST(steps_without_memory)
{
    struct faulty f;
    struct steps *s;
    uint32_t *x;

    DEVICE(dev);
    drv->close(dev);
    f.has_failed = true;
    for (size_t k = 1; f.has_failed; k++) {
        faulty_init(&f, 0);
        dev = device(&f.a);
        x = dev_new(dev, 8 * WORDS);
        s = steps_new(dev, x, 20);
        CHECK_OK(steps_update(s, false));
        steps_check(s, x, 2 * WORDS);
        f.fail_at = f.ncalls + k;
        for (unsigned i = 0; i < 2; i++) {
            const uint64_t was = s->job[3].arg;

            s->job[3].arg = 7 + i;
            steps_change(s, 3);
            /* First by itself, then with all others. */
            if (steps_update(s, i == 0) != HEDDLE_OK) {
                CHECK(f.has_failed);
                s->job[3].arg = was;
            }
        }
        f.fail_at = 0;
        steps_check(s, x, 2 * WORDS);
        steps_free(s);
        dev_free(dev, x, 8 * WORDS);
        drv->close(dev);
        CHECK_EQ(f.nlive, 0);
        CHECK(k > 3 || f.has_failed);
    }
}

TEST_MAIN(steps, steps_of_another_shape, steps_after_a_shift, steps_that_fail, steps_by_chance,
          steps_without_memory)
