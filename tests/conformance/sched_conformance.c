/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every scheduler of the table against the contract in sched/sched.h: a task that
 * was pushed comes out once, whoever pushed it and whoever asks; an empty one
 * says so; a push never fails; no allocation that fails leaves anything behind.
 * Those that know classes do it again with three classes of two types: a task
 * comes out where it can run, also when memory is short or a class is lost.
 */
#include <pthread.h>

#include "base/alloc.h"
#include "base/faulty_test.h"
#include "base/rng.h"
#include "base/thread.h"
#include "sched/sched.h"
#include "tests/test.h"

enum { WORKERS = 4 };

struct item {
    struct heddle_sched_task t;
    size_t number; /* plain: the scheduler publishes it */
    _Atomic unsigned npops;
};

/* A scheduler and its world. */
struct bench {
    const struct heddle_sched_ops *ops;
    void *self;
    struct heddle_sched_env env;
    unsigned order[WORKERS * (WORKERS - 1)];
    struct faulty f;
};

static heddle_status bench_init(struct bench *b, const struct heddle_sched_ops *ops,
                                unsigned nworkers, size_t fail_at)
{
    memset(b, 0, sizeof(*b));
    faulty_init(&b->f, fail_at);
    b->ops = ops;
    for (unsigned w = 0; w < nworkers; w++)
        for (unsigned i = 0; i + 1 < nworkers; i++)
            b->order[w * (nworkers - 1) + i] = (w + 1 + i) % nworkers;
    b->env.alloc = &b->f.a;
    b->env.nworkers = nworkers;
    b->env.steal_order = nworkers == 1 ? NULL : b->order;
    b->self = heddle_zalloc_aligned(NULL, 1, ops->instance_size, 64);
    CHECK(b->self != NULL);
    return ops->init(b->self, &b->env);
}

static void bench_fini(struct bench *b)
{
    b->ops->fini(b->self);
    heddle_free(NULL, b->self, b->ops->instance_size);
    CHECK_EQ(b->f.nlive, 0);
}

static struct item *make_items(size_t n)
{
    struct item *items = calloc(n, sizeof(*items));

    CHECK(items != NULL);
    return items;
}

static void push(struct bench *b, struct item *items, size_t i, int worker)
{
    items[i].number = i;
    items[i].t.prio = (int)(i * 7 % 5);
    b->ops->push(b->self, &items[i].t, worker);
}

static struct item *pop(struct bench *b, unsigned worker)
{
    struct heddle_sched_task *t = b->ops->pop(b->self, worker);

    return t == NULL ? NULL : (void *)((char *)t - offsetof(struct item, t));
}

/* Marks one that came out. */
static void check_out(const struct item *items, size_t n, struct item *i)
{
    CHECK(i >= items && i < items + n);
    CHECK_EQ(i->number, i - items);
    CHECK_EQ(atomic_fetch_add(&i->npops, 1u), 0);
}

#define FOR_EACH_SCHED(ops)                                                                        \
    for (const struct heddle_sched_ops *const *ops = heddle_sched_table; *ops != NULL; ops++)

TEST(the_table)
{
    size_t n = 0;

    FOR_EACH_SCHED(a)
    {
        CHECK((*a)->name != NULL && (*a)->name[0] != '\0');
        CHECK((*a)->help != NULL && (*a)->help[0] != '\0');
        CHECK(strchr((*a)->help, '\n') == NULL);
        CHECK((*a)->init != NULL && (*a)->fini != NULL);
        CHECK((*a)->push != NULL && (*a)->pop != NULL);
        CHECK((*a)->instance_size != 0);
        CHECK(heddle_sched_find((*a)->name) == *a);                         /* names are unique */
        CHECK((*a)->alias == NULL || heddle_sched_find((*a)->alias) == *a); /* older ones too */
        printf("     %s: %s\n", (*a)->name, (*a)->help);
        n++;
    }
    CHECK(n >= 3);
    CHECK(heddle_sched_find("plan") != NULL &&
          strcmp(heddle_sched_find("plan")->name, "lookahead") == 0);
    CHECK(heddle_sched_find("") == NULL);
    CHECK(heddle_sched_find("nonesuch") == NULL);
}

TEST(empty_and_alone)
{
    FOR_EACH_SCHED(ops)
    {
        struct item *items = make_items(100);
        struct bench b;

        CHECK_OK(bench_init(&b, *ops, 1, 0));
        CHECK(pop(&b, 0) == NULL);
        for (int round = 0; round < 10; round++) {
            for (size_t i = 0; i < 100; i++)
                push(&b, items, i, (int)(i % 3) - 2); /* all three roles */
            for (size_t i = 0; i < 100; i++)
                check_out(items, 100, pop(&b, 0));
            CHECK(pop(&b, 0) == NULL);
            CHECK(pop(&b, 0) == NULL);
            for (size_t i = 0; i < 100; i++)
                atomic_store(&items[i].npops, 0);
        }
        bench_fini(&b);
        free(items);
    }
}

/* Whatever has room for some tasks takes many more: nothing is refused. */
TEST(more_than_any_array_holds)
{
    enum { MANY = 20000 };

    FOR_EACH_SCHED(ops)
    for (int role = HEDDLE_SCHED_SUBMITTER; role <= 2; role++) {
        struct item *items = make_items(MANY);
        size_t n = 0;
        struct bench b;

        CHECK_OK(bench_init(&b, *ops, WORKERS, 0));
        for (size_t i = 0; i < MANY; i++)
            push(&b, items, i, role);
        for (unsigned w = 0; n < MANY; w = (w + 1) % WORKERS) {
            struct item *i = pop(&b, w);

            CHECK(i != NULL); /* nobody is in the way */
            check_out(items, MANY, i);
            n++;
        }
        for (unsigned w = 0; w < WORKERS; w++)
            CHECK(pop(&b, w) == NULL);
        bench_fini(&b);
        free(items);
    }
}

/* Progress: one worker alone gets what the others left. */
TEST(one_worker_gets_everything)
{
    FOR_EACH_SCHED(ops)
    for (unsigned who = 0; who < WORKERS; who++) {
        struct item *items = make_items(600);
        uint64_t nsteals = 0;
        struct bench b;

        CHECK_OK(bench_init(&b, *ops, WORKERS, 0));
        for (size_t i = 0; i < 600; i++)
            push(&b, items, i, (int)(i % 6) - 2);
        for (size_t i = 0; i < 600; i++)
            check_out(items, 600, pop(&b, who));
        CHECK(pop(&b, who) == NULL);
        if ((*ops)->steals != NULL)
            nsteals = (*ops)->steals(b.self);
        CHECK(nsteals <= 600); /* a task is taken once */
        bench_fini(&b);
        free(items);
    }
}

/* --- order, for those that promise one -------------------------------------*/

TEST(eager_is_first_in_first_out)
{
    const struct heddle_sched_ops *ops = heddle_sched_find("eager");
    struct item *items = make_items(1000);
    struct bench b;

    if (ops == NULL)
        SKIP("not in this build");
    CHECK_OK(bench_init(&b, ops, WORKERS, 0));
    for (size_t i = 0; i < 1000; i++)
        push(&b, items, i, (int)(i % 6) - 2);
    for (size_t i = 0; i < 1000; i++)
        CHECK_EQ(pop(&b, (unsigned)i % WORKERS)->number, i);
    bench_fini(&b);
    free(items);
}

TEST(prio_is_by_priority_then_first_in_first_out)
{
    const struct heddle_sched_ops *ops = heddle_sched_find("prio");
    struct item *items = make_items(1000);
    const struct item *last = NULL;
    struct bench b;

    if (ops == NULL)
        SKIP("not in this build");
    CHECK_OK(bench_init(&b, ops, WORKERS, 0));
    for (size_t i = 0; i < 1000; i++)
        push(&b, items, i, (int)(i % 6) - 2);
    for (size_t i = 0; i < 1000; i++) {
        const struct item *x = pop(&b, (unsigned)i % WORKERS);

        if (last != NULL)
            CHECK(last->t.prio > x->t.prio ||
                  (last->t.prio == x->t.prio && last->number < x->number));
        last = x;
    }
    bench_fini(&b);
    free(items);
}

/* --- several threads -------------------------------------------------------*/

/* Seven threads: four workers push and pop; the submitter and two foreign threads
 * push. */
struct crowd {
    struct bench *b;
    struct item *items;
    size_t nitems;
    size_t share;          /* items per pushing thread */
    _Atomic size_t left;   /* to come out */
    _Atomic unsigned next; /* number of the next thread */
};

static void crowd_pop(struct crowd *c, unsigned worker)
{
    struct item *i = pop(c->b, worker);

    if (i == NULL) {
        heddle_thread_yield();
        return;
    }
    check_out(c->items, c->nitems, i);
    atomic_fetch_sub(&c->left, 1);
}

static void *crowd_main(void *arg)
{
    struct crowd *c = arg;
    const unsigned me = atomic_fetch_add(&c->next, 1u);
    const int role = me < WORKERS    ? (int)me
                     : me == WORKERS ? HEDDLE_SCHED_SUBMITTER
                                     : HEDDLE_SCHED_FOREIGN;
    struct heddle_rng rng;

    heddle_rng_seed(&rng, 1 + me);
    for (size_t i = 0; i < c->share; i++) {
        push(c->b, c->items, me * c->share + i, role);
        while (role >= 0 && heddle_rng_below32(&rng, 2) == 0)
            crowd_pop(c, me);
        if (role < 0 && i % 64 == 0)
            heddle_thread_yield();
    }
    while (role >= 0 && atomic_load(&c->left) != 0)
        crowd_pop(c, me);
    return NULL;
}

TEST(each_task_comes_out_once_with_many_threads)
{
    enum { THREADS = WORKERS + 3 }; /* two foreign ones */

    FOR_EACH_SCHED(ops)
    {
        struct heddle_thread t[THREADS];
        struct crowd c = {.share = test_scale(20000) / THREADS};
        struct bench b;

        c.nitems = c.share * THREADS;
        c.items = make_items(c.nitems);
        c.b = &b;
        atomic_store(&c.left, c.nitems);
        CHECK_OK(bench_init(&b, *ops, WORKERS, 0));
        for (int i = 0; i < THREADS; i++)
            CHECK_OK(heddle_thread_create(&t[i], NULL, crowd_main, &c));
        for (int i = 0; i < THREADS; i++)
            CHECK_OK(heddle_thread_join(&t[i]));
        for (size_t i = 0; i < c.nitems; i++)
            CHECK_EQ(atomic_load(&c.items[i].npops), 1);
        for (unsigned w = 0; w < WORKERS; w++)
            CHECK(pop(&b, w) == NULL);
        bench_fini(&b);
        free(c.items);
    }
}

/* --- no memory -------------------------------------------------------------*/

TEST(each_allocation_fails_once)
{
    FOR_EACH_SCHED(ops)
    for (unsigned nworkers = 1; nworkers <= WORKERS; nworkers++) {
        heddle_status st = HEDDLE_ENOMEM;

        for (size_t k = 1; st != HEDDLE_OK; k++) {
            struct bench b;

            st = bench_init(&b, *ops, nworkers, k);
            CHECK_EQ(st, b.f.has_failed ? HEDDLE_ENOMEM : HEDDLE_OK);
            bench_fini(&b); /* also after a failed init */
        }
    }
}

/* Push and pop have no status: they may not need memory. */
TEST(push_and_pop_allocate_nothing)
{
    FOR_EACH_SCHED(ops)
    {
        struct item *items = make_items(20000);
        size_t before;
        struct bench b;

        CHECK_OK(bench_init(&b, *ops, WORKERS, 0));
        before = b.f.ncalls;
        for (size_t i = 0; i < 20000; i++)
            push(&b, items, i, (int)(i % 6) - 2);
        for (unsigned w = 0; pop(&b, w) != NULL; w = (w + 1) % WORKERS)
            ;
        CHECK_EQ(b.f.ncalls, before);
        bench_fini(&b);
        free(items);
    }
}

/* --- with classes ----------------------------------------------------------*/

/* Two cores and two accelerators that are alike. What a task can run on is its
 * kind: all, cores, accelerators, the second accelerator alone. */
enum { CLASSES = 3, KINDS = 4, BACK = 40, PREDS = 9 };

struct node {
    struct heddle_sched_task t;
    size_t number;
    unsigned kind;
    unsigned npred, pred[PREDS];
    unsigned nsucc, succ[BACK * 2];
    unsigned nwait;
    bool is_submitted, is_pushed, is_out, has_ended;
};

struct world {
    struct bench b;
    struct heddle_sched_class cls[CLASSES];
    unsigned class_of[WORKERS];
    struct node *node;
    unsigned n, nended;
    _Atomic uint64_t clock;
    _Atomic bool is_lost; /* class 2 */
    pthread_mutex_t m;    /* of the graph, with several threads */
};

static bool runs_on(unsigned kind, unsigned cls)
{
    return kind == 0 || (kind == 1 && cls == 0) || (kind == 2 && cls > 0) ||
           (kind == 3 && cls == 2);
}

static const struct node *node_of(const struct heddle_sched_task *t)
{
    return (const void *)((const char *)t - offsetof(struct node, t));
}

static double view_cost(void *view, const struct heddle_sched_task *t, unsigned cls,
                        double *confidence_out)
{
    const struct world *w = view;
    const unsigned kind = node_of(t)->kind;

    if (confidence_out != NULL)
        *confidence_out = 1;
    if (!runs_on(kind, cls) || (cls == 2 && atomic_load(&w->is_lost)))
        return INFINITY;
    return (cls == 0 ? 10000 : 1000) + 100 * kind;
}

static double view_fetch(void *view, const struct heddle_sched_task *t, unsigned cls)
{
    (void)view;
    return (double)((node_of(t)->number + cls) % 5) * 100;
}

static void view_bytes(void *view, const struct heddle_sched_task *t, unsigned cls,
                       uint64_t *read_out, uint64_t *written_out, uint64_t *present_out)
{
    (void)view;
    *read_out = 4096;
    *written_out = 1024;
    *present_out = (node_of(t)->number + cls) % 3 * 1024;
}

static unsigned view_sort(void *view, const struct heddle_sched_task *t)
{
    (void)view;
    return node_of(t)->kind * 70 + (unsigned)node_of(t)->number % 70;
}

static const char *view_kernel(void *view, const struct heddle_sched_task *t)
{
    (void)view;
    (void)t;
    return "kernel";
}

static uint64_t view_id(void *view, const struct heddle_sched_task *t)
{
    (void)view;
    return node_of(t)->number;
}

static uint64_t view_now(void *view)
{
    return atomic_fetch_add(&((struct world *)view)->clock, 100);
}

static const struct heddle_sched_view view = {
    .cost = view_cost,
    .fetch = view_fetch,
    .bytes = view_bytes,
    .sort = view_sort,
    .kernel = view_kernel,
    .id = view_id,
    .now_ns = view_now,
};

static heddle_status world_init(struct world *w, const struct heddle_sched_ops *ops, unsigned n,
                                uint64_t seed, size_t fail_at)
{
    static const char *const name[CLASSES] = {"cpu", "acc0", "acc1"};
    static const unsigned first[CLASSES] = {0, 2, 3}, nworkers[] = {2, 1, 1};
    struct heddle_rng rng;

    memset(w, 0, sizeof(*w));
    pthread_mutex_init(&w->m, NULL);
    faulty_init(&w->b.f, fail_at);
    w->b.ops = ops;
    for (unsigned c = 0; c < CLASSES; c++) {
        w->cls[c] = (struct heddle_sched_class){.name = name[c],
                                                .kind = 1 + (c > 0),
                                                .type = c > 0,
                                                .node = c,
                                                .first = first[c],
                                                .nworkers = nworkers[c]};
        for (unsigned i = 0; i < nworkers[c]; i++)
            w->class_of[first[c] + i] = c;
    }
    w->b.env = (struct heddle_sched_env){.alloc = &w->b.f.a,
                                         .nworkers = WORKERS,
                                         .cls = w->cls,
                                         .ncls = CLASSES,
                                         .ntypes = 2,
                                         .class_of = w->class_of,
                                         .view = &view,
                                         .view_self = w};
    w->n = n;
    w->node = calloc(n, sizeof(*w->node));
    CHECK(w->node != NULL);
    heddle_rng_seed(&rng, seed);
    for (unsigned i = 0; i < n; i++) {
        struct node *x = &w->node[i];
        const unsigned npred = heddle_rng_below32(&rng, PREDS);

        x->number = i;
        x->kind = heddle_rng_below32(&rng, KINDS);
        for (unsigned k = 0; k < npred && i > 0; k++) {
            const unsigned p = i - 1 - heddle_rng_below32(&rng, i < BACK ? i : BACK);

            if (w->node[p].nsucc < BACK * 2) {
                w->node[p].succ[w->node[p].nsucc++] = i;
                x->pred[x->npred++] = p;
            }
        }
    }
    w->b.self = heddle_zalloc_aligned(NULL, 1, ops->instance_size, 64);
    CHECK(w->b.self != NULL);
    return ops->init(w->b.self, &w->b.env);
}

static void world_fini(struct world *w)
{
    bench_fini(&w->b);
    free(w->node);
    pthread_mutex_destroy(&w->m);
}

static bool runs_somewhere(const struct world *w, const struct node *x)
{
    return x->kind != 3 || !atomic_load(&w->is_lost);
}

static void node_end(struct world *w, struct node *x, int worker);

/* Some run behind others on the same worker, without a push and a pop. */
static bool node_take(struct world *w, struct node *x, int worker)
{
    if (w->b.ops->took == NULL || worker < 0 || x->number % 7 != 0 ||
        !runs_on(x->kind, w->class_of[worker]) ||
        (w->class_of[worker] == 2 && atomic_load(&w->is_lost)))
        return false;
    w->b.ops->took(w->b.self, &x->t, (unsigned)worker);
    w->b.ops->ended(w->b.self, &x->t, (unsigned)worker, 1000);
    node_end(w, x, worker);
    return true;
}

static void node_push(struct world *w, struct node *x, int worker)
{
    CHECK(!x->is_pushed && !x->has_ended);
    if (!runs_somewhere(w, x)) {
        node_end(w, x, worker); /* the engine's failure, not the policy's */
        return;
    }
    if (node_take(w, x, worker))
        return;
    x->is_pushed = true;
    w->b.ops->push(w->b.self, &x->t, worker);
}

static void node_end(struct world *w, struct node *x, int worker)
{
    x->has_ended = true;
    w->nended++;
    for (unsigned i = 0; i < x->nsucc; i++) {
        struct node *s = &w->node[x->succ[i]];

        if (s->is_submitted && --s->nwait == 0)
            node_push(w, s, worker);
    }
}

static void node_submit(struct world *w, struct node *x)
{
    struct heddle_sched_task *pred[PREDS];
    unsigned n = 0;

    for (unsigned i = 0; i < x->npred; i++)
        if (!w->node[x->pred[i]].has_ended)
            pred[n++] = &w->node[x->pred[i]].t;
    if (w->b.ops->submitted != NULL)
        w->b.ops->submitted(w->b.self, &x->t, pred, n);
    x->is_submitted = true;
    x->nwait = n;
    if (n == 0)
        node_push(w, x, HEDDLE_SCHED_SUBMITTER);
}

/* One pop; false: nothing. Now and then the task could not be run. */
static bool world_pop(struct world *w, unsigned worker, bool declines)
{
    struct heddle_sched_task *t = w->b.ops->pop(w->b.self, worker);
    struct node *x;

    if (t == NULL)
        return false;
    x = &w->node[node_of(t)->number];
    CHECK(&x->t == t);
    CHECK(runs_on(x->kind, w->class_of[worker]));
    pthread_mutex_lock(&w->m);
    CHECK(x->is_pushed && !x->is_out && !x->has_ended);
    x->is_out = true;
    if (w->b.ops->ended != NULL)
        w->b.ops->ended(w->b.self, t, worker, declines ? -1 : 1000);
    if (declines) {
        x->is_out = x->is_pushed = false;
        node_push(w, x, (int)worker);
    } else {
        node_end(w, x, (int)worker);
    }
    pthread_mutex_unlock(&w->m);
    return true;
}

/* Everything, by one thread in the roles of all. */
static void world_run(struct world *w, uint64_t seed, unsigned window)
{
    unsigned next = 0, idle = 0;
    struct heddle_rng rng;

    heddle_rng_seed(&rng, seed);
    while (w->nended < w->n) {
        const unsigned worker = heddle_rng_below32(&rng, WORKERS);
        bool got;

        while (next < w->n && next - w->nended < window)
            node_submit(w, &w->node[next++]);
        if (atomic_load(&w->is_lost) && w->class_of[worker] == 2)
            continue;
        got = world_pop(w, worker, heddle_rng_below32(&rng, 16) == 0);
        idle = got ? 0 : idle + 1;
        CHECK(idle < 10000); /* all keep asking: something must come */
    }
    for (unsigned k = 0; k < WORKERS; k++)
        CHECK(w->b.ops->pop(w->b.self, k) == NULL);
}

#define FOR_EACH_WITH_CLASSES(ops) FOR_EACH_SCHED(ops) if ((*ops)->knows_classes)

TEST(classes_every_task_runs_where_it_can)
{
    static const unsigned window[] = {1, 10, 1000};

    FOR_EACH_WITH_CLASSES(ops)
    for (int k = 0; k < 3; k++) {
        struct world w;

        CHECK((*ops)->lost != NULL);
        CHECK_OK(world_init(&w, *ops, 1500, test_seed() + 5, 0));
        world_run(&w, test_seed(), window[k]);
        world_fini(&w);
    }
}

/* Any allocation may fail, at any time: init() says so, and later nobody needs
 * to know. */
TEST(classes_without_memory)
{
    FOR_EACH_WITH_CLASSES(ops)
    for (size_t k = 1;; k += k < 40 ? 1 : k / 4) {
        struct world w;
        heddle_status st = world_init(&w, *ops, 700, 3, k);

        if (st != HEDDLE_OK)
            CHECK_EQ(st, HEDDLE_ENOMEM);
        else
            world_run(&w, 1, 500);
        world_fini(&w);
        if (!w.b.f.has_failed)
            break;
    }
}

static void *refuse(void *user, size_t bytes, size_t align)
{
    (void)user;
    (void)bytes;
    (void)align;
    return NULL;
}

/* No memory at all after init(). */
TEST(classes_without_any_memory)
{
    FOR_EACH_WITH_CLASSES(ops)
    {
        struct world w;

        CHECK_OK(world_init(&w, *ops, 700, 3, 0));
        w.b.f.a.alloc = refuse;
        world_run(&w, 1, 500);
        world_fini(&w);
    }
}

static void lose_class(struct world *w, unsigned cls)
{
    struct heddle_sched_task *next;

    atomic_store(&w->is_lost, true);
    for (struct heddle_sched_task *t = w->b.ops->lost(w->b.self, cls); t != NULL; t = next) {
        struct node *x = &w->node[node_of(t)->number];

        next = t->link[0];
        CHECK(x->is_pushed && !x->has_ended);
        x->is_pushed = false;
        node_push(w, x, HEDDLE_SCHED_FOREIGN);
    }
}

TEST(classes_one_is_lost)
{
    FOR_EACH_WITH_CLASSES(ops)
    for (unsigned when = 0; when < 700; when += 60) {
        struct heddle_rng rng;
        struct world w;
        unsigned next = 0;

        heddle_rng_seed(&rng, when);
        CHECK_OK(world_init(&w, *ops, 700, when, 0));
        while (next < 400)
            node_submit(&w, &w.node[next++]);
        for (unsigned i = 0; i < when; i++)
            world_pop(&w, heddle_rng_below32(&rng, WORKERS), false);
        lose_class(&w, 2);
        while (next < w.n)
            node_submit(&w, &w.node[next++]);
        for (unsigned i = 0; w.nended < w.n; i++) {
            CHECK(i < 100000);
            world_pop(&w, heddle_rng_below32(&rng, WORKERS - 1), false);
        }
        world_fini(&w);
    }
}

static void *world_worker(void *arg)
{
    struct crowd *c = arg;
    struct world *w = (struct world *)(void *)c->b;
    const unsigned me = atomic_fetch_add(&c->next, 1u);

    for (unsigned i = 0;; i++) {
        bool done;

        if (!world_pop(w, me, i % 13 == 5))
            heddle_thread_yield();
        pthread_mutex_lock(&w->m);
        done = w->nended == w->n;
        pthread_mutex_unlock(&w->m);
        if (done)
            return NULL;
    }
}

TEST(classes_with_threads)
{
    FOR_EACH_WITH_CLASSES(ops)
    {
        struct heddle_thread t[WORKERS];
        struct world w;
        struct crowd c = {.b = &w.b}; /* the first member of w */

        CHECK_OK(world_init(&w, *ops, (unsigned)test_scale(8000), 11, 0));
        for (int i = 0; i < WORKERS; i++)
            CHECK_OK(heddle_thread_create(&t[i], NULL, world_worker, &c));
        for (unsigned i = 0; i < w.n; i++) {
            pthread_mutex_lock(&w.m);
            node_submit(&w, &w.node[i]);
            pthread_mutex_unlock(&w.m);
            if (i % 512 == 0)
                heddle_thread_yield();
        }
        for (int i = 0; i < WORKERS; i++)
            CHECK_OK(heddle_thread_join(&t[i]));
        for (unsigned i = 0; i < w.n; i++)
            CHECK(w.node[i].has_ended);
        world_fini(&w);
    }
}

TEST(classes_push_and_pop_allocate_nothing)
{
    FOR_EACH_WITH_CLASSES(ops)
    {
        struct world w;
        size_t before;

        CHECK_OK(world_init(&w, *ops, 3000, 17, 0));
        for (unsigned i = 0; i < w.n; i++)
            node_submit(&w, &w.node[i]);
        before = w.b.f.ncalls;
        for (unsigned i = 0; w.nended < w.n; i++)
            world_pop(&w, i % WORKERS, false);
        CHECK_EQ(w.b.f.ncalls, before);
        world_fini(&w);
    }
}

TEST_MAIN(the_table, empty_and_alone, more_than_any_array_holds, one_worker_gets_everything,
          eager_is_first_in_first_out, prio_is_by_priority_then_first_in_first_out,
          each_task_comes_out_once_with_many_threads, each_allocation_fails_once,
          push_and_pop_allocate_nothing, classes_every_task_runs_where_it_can,
          classes_without_memory, classes_without_any_memory, classes_one_is_lost,
          classes_with_threads, classes_push_and_pop_allocate_nothing)
