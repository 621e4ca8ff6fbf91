/* SPDX-License-Identifier: BSD-3-Clause */
/* Composed logs: what is written is what is read; wrong rows are refused. */
#include "heddle/compose.h"

#include "trace/log.h"
#include "trace/sample_test.h"

static heddle_log *compose_open(const struct heddle_log_view *v)
{
    heddle_log *log;
    char path[256], why[256];
    const struct heddle_log_opts o = {.size = sizeof o, .why = why, .why_bytes = sizeof why};

    temp_path(path, sizeof path);
    CHECK_OK(heddle_log_compose(v, path, &o));
    CHECK_OK(heddle_log_open(path, NULL, &log));
    CHECK_STR(heddle_log_get_partial(log), "");
    unlink(path);
    return log;
}

static void same_text(const char *a, const char *b)
{
    CHECK((a == NULL) == (b == NULL));
    if (a != NULL)
        CHECK_STR(a, b);
}

static void same_tasks(const struct heddle_log_view *a, const struct heddle_log_view *b)
{
    CHECK_EQ(a->ntasks, b->ntasks);
    for (size_t i = 0; i < a->ntasks; i++) {
        struct heddle_log_task x = a->tasks[i], y = b->tasks[i];

        same_text(x.name, y.name);
        x.name = y.name = NULL;
        CHECK_EQ(x.id, y.id);
        CHECK_EQ(x.parent, y.parent);
        CHECK_EQ(x.submit_ns, y.submit_ns);
        CHECK_EQ(x.ready_ns, y.ready_ns);
        CHECK_EQ(x.start_ns, y.start_ns);
        CHECK_EQ(x.end_ns, y.end_ns);
        CHECK(x.predicted_ns == y.predicted_ns);
        CHECK_EQ(x.priority, y.priority);
        CHECK_EQ(x.kernel, y.kernel);
        CHECK_EQ(x.lane, y.lane);
        CHECK_EQ(x.variant, y.variant);
        CHECK_EQ(x.status, y.status);
        CHECK_EQ(x.flags, y.flags);
    }
}

static void same_graph(const struct heddle_log_view *a, const struct heddle_log_view *b)
{
    CHECK_EQ(a->ndeps, b->ndeps);
    for (size_t i = 0; i < a->ndeps; i++) {
        CHECK_EQ(a->deps[i].succ, b->deps[i].succ);
        CHECK_EQ(a->deps[i].pred, b->deps[i].pred);
    }
    CHECK_EQ(a->naccesses, b->naccesses);
    for (size_t i = 0; i < a->naccesses; i++) {
        CHECK_EQ(a->accesses[i].task, b->accesses[i].task);
        CHECK_EQ(a->accesses[i].handle, b->accesses[i].handle);
        CHECK_EQ(a->accesses[i].operand, b->accesses[i].operand);
        CHECK_EQ(a->accesses[i].mode, b->accesses[i].mode);
    }
    CHECK_EQ(a->nattrs, b->nattrs);
    for (size_t i = 0; i < a->nattrs; i++)
        CHECK_EQ(a->attrs[i].task, b->attrs[i].task);
}

static void same_timeline(const struct heddle_log_view *a, const struct heddle_log_view *b)
{
    CHECK_EQ(a->nstates, b->nstates);
    for (size_t i = 0; i < a->nstates; i++) {
        CHECK_EQ(a->states[i].start_ns, b->states[i].start_ns);
        CHECK_EQ(a->states[i].end_ns, b->states[i].end_ns);
        CHECK_EQ(a->states[i].state, b->states[i].state);
        CHECK_EQ(a->states[i].arg, b->states[i].arg);
    }
    CHECK_EQ(a->nmarks, b->nmarks);
    for (size_t i = 0; i < a->nmarks; i++) {
        CHECK_EQ(a->marks[i].t_ns, b->marks[i].t_ns);
        CHECK_STR(a->marks[i].text, b->marks[i].text);
    }
    CHECK_EQ(a->nevents, b->nevents);
    for (size_t i = 0; i < a->nevents; i++) {
        CHECK_EQ(a->events[i].t_ns, b->events[i].t_ns);
        CHECK_EQ(a->events[i].y_ns, b->events[i].y_ns);
        CHECK_EQ(a->events[i].z_ns, b->events[i].z_ns);
        CHECK_EQ(a->events[i].x, b->events[i].x);
        CHECK_EQ(a->events[i].task, b->events[i].task);
        CHECK_EQ(a->events[i].kind, b->events[i].kind);
        CHECK_EQ(a->events[i].b, b->events[i].b);
        CHECK_EQ(a->events[i].c, b->events[i].c);
        CHECK_EQ(a->events[i].lane, b->events[i].lane);
    }
}

static void same_names(const struct heddle_log_view *a, const struct heddle_log_view *b)
{
    CHECK_EQ(a->nkernels, b->nkernels);
    for (size_t i = 0; i < a->nkernels; i++) {
        CHECK_EQ(a->kernels[i].id, b->kernels[i].id);
        CHECK_STR(a->kernels[i].name, b->kernels[i].name);
        CHECK_EQ(a->kernels[i].nvariants, b->kernels[i].nvariants);
        for (uint32_t k = 0; k < a->kernels[i].nvariants; k++)
            CHECK_EQ(a->kernels[i].variants[k].device, b->kernels[i].variants[k].device);
    }
    CHECK_EQ(a->nlanes, b->nlanes);
    for (size_t i = 0; i < a->nlanes; i++) {
        CHECK_STR(a->lanes[i].name, b->lanes[i].name);
        CHECK_EQ(a->lanes[i].kind, b->lanes[i].kind);
        CHECK_EQ(a->lanes[i].cpu, b->lanes[i].cpu);
        CHECK_EQ(a->lanes[i].node, b->lanes[i].node);
    }
    CHECK_EQ(a->nhandles, b->nhandles);
    for (size_t i = 0; i < a->nhandles; i++) {
        CHECK_EQ(a->handles[i].id, b->handles[i].id);
        CHECK_EQ(a->handles[i].parent, b->handles[i].parent);
        CHECK_EQ(a->handles[i].bytes, b->handles[i].bytes);
        CHECK_EQ(a->handles[i].ndims, b->handles[i].ndims);
        for (uint32_t d = 0; d < a->handles[i].ndims; d++)
            CHECK_EQ(a->handles[i].shape[d], b->handles[i].shape[d]);
    }
    CHECK_EQ(a->nnodes, b->nnodes);
    for (size_t i = 0; i < a->nnodes; i++)
        CHECK_EQ(a->nodes[i].bytes, b->nodes[i].bytes);
    CHECK_EQ(a->ninfos, b->ninfos);
    CHECK_EQ(a->wall_ns, b->wall_ns);
}

static heddle_log *sample_log(uint64_t ntasks)
{
    size_t bytes;
    uint8_t *p = sample_bytes(ntasks, 700, &bytes);
    heddle_log *log;

    CHECK_OK(heddle_log_parse(p, bytes, NULL, &log));
    free(p);
    return log;
}

TEST(same_again)
{
    heddle_log *a = sample_log(500), *b;
    const struct heddle_log_view *v = heddle_log_get_view(a), *w;

    b = compose_open(v);
    w = heddle_log_get_view(b);
    same_tasks(v, w);
    same_graph(v, w);
    same_timeline(v, w);
    same_names(v, w);
    heddle_log_close(a);
    heddle_log_close(b);
}

/* Rows by hand: a task that has not run, one that ran twice, times before 0,
 * hundreds of lanes. */
TEST(by_hand)
{
    static struct heddle_log_lane lanes[300];
    const struct heddle_log_kernel kernels[] = {{.id = 3, .name = "k"}, {.id = 1, .name = NULL}};
    const int64_t none = HEDDLE_LOG_NONE;
    const struct heddle_log_task tasks[] = {
        {.id = 1,
         .submit_ns = none,
         .ready_ns = none,
         .start_ns = -7,
         .end_ns = 5,
         .lane = 299,
         .name = "first"},
        {.id = 1,
         .submit_ns = none,
         .ready_ns = none,
         .start_ns = 5,
         .end_ns = 5,
         .lane = 2,
         .name = "first",
         .status = HEDDLE_LOG_DECLINED},
        {.id = 9, .submit_ns = none, .ready_ns = 4, .lane = HEDDLE_LOG_NO_LANE, .kernel = 1},
        {.id = UINT64_MAX,
         .submit_ns = -9,
         .ready_ns = 20,
         .start_ns = 20,
         .end_ns = INT64_C(1) << 51,
         .lane = 0,
         .priority = -3,
         .parent = 9},
    };
    struct heddle_log_view v = {.size = sizeof v,
                                .tasks = tasks,
                                .ntasks = 4,
                                .lanes = lanes,
                                .nlanes = 300,
                                .kernels = kernels,
                                .nkernels = 2,
                                .wall_ns = 77};
    const struct heddle_log_view *w;
    heddle_log *log = compose_open(&v);

    w = heddle_log_get_view(log);
    CHECK_EQ(w->ntasks, 4);
    CHECK_EQ(w->wall_ns, 77);
    CHECK_EQ(w->nattrs, 1);
    CHECK_EQ(w->nlanes, 300);
    CHECK_EQ(w->tasks[0].start_ns, -7);
    CHECK_EQ(w->tasks[0].end_ns, 5);
    CHECK_EQ(w->tasks[0].lane, 299);
    CHECK_EQ(w->tasks[0].submit_ns, none);
    CHECK_STR(w->tasks[1].name, "first");
    CHECK_EQ(w->tasks[1].status, HEDDLE_LOG_DECLINED);
    CHECK_EQ(w->tasks[2].ready_ns, 20);
    CHECK_EQ(w->tasks[2].end_ns, INT64_C(1) << 51);
    CHECK_EQ(w->tasks[2].submit_ns, -9);
    CHECK_EQ(w->tasks[3].status, HEDDLE_LOG_PENDING);
    CHECK_EQ(w->tasks[3].submit_ns, 4);
    CHECK_EQ(w->tasks[3].ready_ns, 4);
    CHECK_EQ(w->tasks[3].kernel, 1);
    heddle_log_close(log);

    v = (struct heddle_log_view){.size = sizeof v};
    log = compose_open(&v);
    CHECK_EQ(heddle_log_get_view(log)->ntasks, 0);
    CHECK_EQ(heddle_log_get_view(log)->nlanes, 1); /* its totals */
    heddle_log_close(log);
}

/* One wrong row at a time; each sentence names the array. */
TEST(refused)
{
    struct heddle_log_kernel k[2] = {{.id = 1, .name = "k"}, {.id = 1, .name = "l"}};
    struct heddle_log_lane lane = {.name = "w"};
    struct heddle_log_handle h = {.id = 1, .name = "h"};
    struct heddle_log_access acc = {.task = 1, .handle = 1};
    struct heddle_log_state s = {.lane = 1};
    struct heddle_log_mark m = {.text = NULL};
    struct heddle_log_event e = {.y_ns = -1};
    struct heddle_log_task t;
    struct heddle_log_view v;
    char path[256], why[256];
    const struct heddle_log_opts o = {.size = sizeof o, .why = why, .why_bytes = sizeof why};

    temp_path(path, sizeof path);
    unlink(path);
    for (int i = 0; i < 16; i++) {
        const char *what = "tasks";

        t = (struct heddle_log_task){.id = 1, .end_ns = 1};
        v = (struct heddle_log_view){.size = sizeof v,
                                     .tasks = &t,
                                     .ntasks = 1,
                                     .kernels = k,
                                     .nkernels = 1,
                                     .lanes = &lane,
                                     .nlanes = 1,
                                     .handles = &h,
                                     .nhandles = 1};
        switch (i) {
        case 0: t.kernel = 1; break;
        case 1: t.lane = 1; break;
        case 2: t.end_ns = -1; break;
        case 3: t.start_ns = HEDDLE_LOG_NONE; break;
        case 4: t.submit_ns = INT64_MIN; break;
        case 5: t.status = HEDDLE_LOG_PENDING; break;
        case 6: t.ready_ns = INT64_C(1) << 52; break;
        case 7: v.nkernels = 2, what = "kernels"; break;
        case 8: v.accesses = &acc, v.naccesses = 1, what = "accesses"; break;
        case 9: v.states = &s, v.nstates = 1, what = "states"; break;
        case 10: v.marks = &m, v.nmarks = 1, what = "marks"; break;
        case 11: v.events = &e, v.nevents = 1, what = "events"; break;
        case 12: v.ndeps = 1, what = "array"; break;
        case 13: h.ndims = 9, what = "handles"; break;
        case 14: h.ndims = 0, k[0].nvariants = 1, what = "kernels"; break;
        case 15: k[0].nvariants = 0, v.nlanes = 1 << 21, what = "lanes"; break;
        }
        CHECK_STATUS(heddle_log_compose(&v, path, &o), HEDDLE_EINVAL);
        CHECK(strstr(why, what) != NULL);
        CHECK(access(path, F_OK) != 0);
    }
    v.nlanes = 1;
    CHECK_STATUS(heddle_log_compose(NULL, path, &o), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_log_compose(&v, NULL, &o), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_log_compose(&v, "no/such/folder/x", &o), HEDDLE_EIO);
    CHECK(strstr(why, "no/such/folder/x") != NULL);
    if (access("/dev/full", W_OK) == 0) {
        CHECK_STATUS(heddle_log_compose(&v, "/dev/full", &o), HEDDLE_EIO);
        CHECK_EQ(access("/dev/full", W_OK), 0);
    }
    v.size = 0;
    CHECK_STATUS(heddle_log_compose(&v, path, &o), HEDDLE_EINVAL);
}

/* Every allocation fails once: an error and no file, or all of it. */
TEST(no_memory)
{
    heddle_log *log = sample_log(40);
    const struct heddle_log_view *v = heddle_log_get_view(log);
    heddle_status st = HEDDLE_ENOMEM;
    char path[256], why[256];
    struct faulty f;
    size_t k;

    temp_path(path, sizeof path);
    for (k = 1; k < 500; k++) {
        const struct heddle_log_opts o = {
            .size = sizeof o, .allocator = &f.a, .why = why, .why_bytes = sizeof why};

        faulty_init(&f, k);
        st = heddle_log_compose(v, path, &o);
        CHECK_EQ(f.live_bytes, 0);
        if (f.nallocs < k)
            break;
        if (st == HEDDLE_OK) { /* the index of a file is optional */
            heddle_log *again;

            CHECK_OK(heddle_log_open(path, NULL, &again));
            same_tasks(v, heddle_log_get_view(again));
            same_names(v, heddle_log_get_view(again));
            heddle_log_close(again);
        } else {
            CHECK_STATUS(st, HEDDLE_ENOMEM);
            CHECK(strstr(why, "memory") != NULL);
        }
    }
    CHECK_OK(st);
    CHECK(k > 5 && k < 500);
    unlink(path);
    heddle_log_close(log);
}

TEST_MAIN(same_again, by_hand, refused, no_memory)
