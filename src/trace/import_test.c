/* SPDX-License-Identifier: BSD-3-Clause */
/* Import of tasks.rec: what it says is in the log; what makes no sense is
 * refused with a line; a log that goes out and in again is the same. */
#include "heddle/compose.h"
#include "heddle/data.h"
#include "heddle/task.h"
#include "trace/log.h"
#include "trace/recutils.h"
#include "trace/sample_test.h"

static const char *const tasks_rec = "# a comment\n"
                                     "%rec: task\n"
                                     "\n"
                                     "Name: first\n"
                                     "Model: gemm\n"
                                     "JobId: 10\n"
                                     "SubmitOrder: 1\n"
                                     "Priority: -4\n"
                                     "Tag: ff\n"
                                     "WorkerId: 2\n"
                                     "MemoryNode: 1\n"
                                     "SubmitTime: 0.5\n"
                                     "ReadyTime: 0.750000\n"
                                     "StartTime: 1.000001\n"
                                     "EndTime: 2.5e0\n"
                                     "Footprint: 0xAbC\n"
                                     "GFlop: 0.002\n"
                                     "Iteration: 3 -1\n"
                                     "Handles: 0x7f0000001000 0x2000 30\n"
                                     "Modes: R RW RWC\n"
                                     "Sizes: 80 160 8\n"
                                     "EstimatedTime: 1 2 1499.5\n"
                                     "Unknown: what ever\n"
                                     "\n\n"
                                     "Model: potrf\n"
                                     "JobId: 11\n"
                                     "DependsOn: 10\n"
                                     "+ 2_7\n"
                                     "WorkerId: 0\n"
                                     "StartTime: -1\n"
                                     "EndTime: 0\n"
                                     "Handles: 0x2000\n"
                                     "\n"
                                     "Control: WontUse\n"
                                     "JobId: 11\n"
                                     "\n"
                                     "Name: waits\n"
                                     "JobId: 2_7\n"
                                     "MPIRank: 2\n"
                                     "ReadyTime: 3\r\n";

static const char *const platform_rec = "%rec: timing\n"
                                        "\n"
                                        "Model: gemm\n"
                                        "Mean: 12\n"
                                        "\n"
                                        "%rec: memory_workers\n"
                                        "\n"
                                        "MemoryNode: 0\n"
                                        "Name: NUMA 0\n"
                                        "Size: 1000\n"
                                        "Workers: 0 1\n"
                                        "\n"
                                        "MemoryNode: 1\n"
                                        "Name: CUDA 0\n"
                                        "Workers: 2\n";

static void put_file(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");

    CHECK(f != NULL);
    CHECK_EQ(fwrite(p, 1, n, f), n);
    CHECK_EQ(fclose(f), 0);
}

/* Files of one test, gone at its end. */
struct files {
    char tasks[256];
    char platform[256];
    char log[256];
    char why[512];
};

static void files_init(struct files *f)
{
    temp_path(f->tasks, sizeof f->tasks);
    temp_path(f->platform, sizeof f->platform);
    temp_path(f->log, sizeof f->log);
    unlink(f->log);
    put_file(f->platform, platform_rec, strlen(platform_rec));
}

static void files_fini(struct files *f)
{
    unlink(f->tasks);
    unlink(f->platform);
    unlink(f->log);
}

static heddle_status import_bytes(struct files *f, const void *p, size_t n, bool has_platform,
                                  const struct heddle_allocator *a)
{
    const struct heddle_log_opts o = {
        .size = sizeof o, .allocator = a, .why = f->why, .why_bytes = sizeof f->why};

    f->why[0] = '\0';
    put_file(f->tasks, p, n);
    return heddle_log_import(f->tasks, has_platform ? f->platform : NULL, f->log, &o);
}

static void check_first(const heddle_log *log)
{
    const struct heddle_log_view *v = heddle_log_get_view(log);
    const struct heddle_log_task *t = &v->tasks[heddle_log_find_task(log, 10)];
    size_t first, last;
    double flops;

    CHECK_STR(t->name, "first");
    CHECK_STR(v->kernels[t->kernel].name, "gemm");
    CHECK_EQ(t->submit_ns, 500000);
    CHECK_EQ(t->ready_ns, 750000);
    CHECK_EQ(t->start_ns, 1000001);
    CHECK_EQ(t->end_ns, 2500000);
    CHECK_EQ(t->priority, -4);
    CHECK_NEAR(t->predicted_ns, 1499500.0, 0.5);
    CHECK_EQ(v->lanes[t->lane].kind, HEDDLE_LOG_DEVICE);
    CHECK_EQ(v->lanes[t->lane].node, 1);
    CHECK_EQ(v->kernels[t->kernel].variants[t->variant].device, HEDDLE_DEV_CUDA);
    heddle_log_find_accesses(log, 10, &first, &last);
    CHECK_EQ(last - first, 3);
    CHECK_EQ(v->accesses[first].mode, HEDDLE_R);
    CHECK_EQ(v->accesses[first + 1].mode, HEDDLE_RW);
    CHECK_EQ(v->accesses[first + 2].mode, HEDDLE_COMMUTE);
    CHECK_EQ(v->handles[v->accesses[first + 1].handle].bytes, 160);
    heddle_log_find_attrs(log, 10, &first, &last);
    CHECK_EQ(last - first, 5); /* the name too */
    for (; first < last; first++) {
        const struct heddle_log_attr *x = &v->attrs[first];

        switch (x->key) {
        case HEDDLE_LOG_ATTR_TAG: CHECK_EQ(x->value, 0xff); break;
        case HEDDLE_LOG_ATTR_FOOTPRINT: CHECK_EQ(x->value, 0xabc); break;
        case HEDDLE_LOG_ATTR_ITERATION: CHECK_EQ(x->value, 3); break;
        case HEDDLE_LOG_ATTR_FLOPS:
            memcpy(&flops, &x->value, sizeof flops);
            CHECK_NEAR(flops, 2e6, 1e-3);
            break;
        default: CHECK_EQ(x->key, HEDDLE_LOG_ATTR_NAME);
        }
    }
}

TEST(fields)
{
    const uint64_t far = UINT64_C(2) << 40 | 7;
    const struct heddle_log_view *v;
    const struct heddle_log_task *t;
    struct files f;
    heddle_log *log;

    files_init(&f);
    for (int with = 0; with < 2; with++) {
        CHECK_OK(import_bytes(&f, tasks_rec, strlen(tasks_rec), with != 0, NULL));
        CHECK_OK(heddle_log_open(f.log, NULL, &log));
        v = heddle_log_get_view(log);
        CHECK_EQ(v->ntasks, 3);
        check_first(log);
        t = &v->tasks[heddle_log_find_task(log, 11)];
        CHECK_EQ(t->start_ns, -1000000);
        CHECK_EQ(t->end_ns, 0);
        CHECK(t->name == NULL);
        CHECK_EQ(v->lanes[t->lane].kind, HEDDLE_LOG_WORKER);
        t = &v->tasks[heddle_log_find_task(log, far)];
        CHECK_EQ(t->status, HEDDLE_LOG_PENDING);
        CHECK_EQ(t->ready_ns, 3000000);
        CHECK_EQ(v->ndeps, 2);
        CHECK_EQ(v->deps[0].pred, 10);
        CHECK_EQ(v->deps[1].pred, far);
        CHECK_EQ(v->naccesses, 4);
        CHECK_EQ(v->nhandles, 3);
        CHECK_EQ(v->nlanes, with ? 4 : 3); /* one that ran nothing */
        CHECK_EQ(v->nnodes, 2);
        CHECK_STR(v->nodes[0].name, with ? "NUMA 0" : "device 1");
        heddle_log_close(log);
    }
    files_fini(&f);
}

TEST(refused)
{
    static const struct {
        const char *text;
        const char *why;
    } wrong[] = {
        {"Name: x\n\n", "line 1: the record has no JobId"},
        {"\n\nJobId: x\n", "line 3: JobId cannot be 'x'"},
        {"JobId: \n", "line 1: JobId cannot be ''"},
        {"JobId: 1_\n", "line 1"},
        {"JobId: 1_2_3\n", "line 1"},
        {"JobId: 99999999999999999999\n", "line 1"},
        {"JobId: 300_1\n", "line 1"},
        {"JobId: 1\n\nJobId: 1\n", "line 3: there is a task of this JobId"},
        {"JobId: 1\nJobId: 2\n", "line 2: the record has two fields JobId"},
        {"JobId: 1\nDependsOn: 1\n", "line 2: the task depends on itself"},
        {"JobId: 1\nDependsOn: 3\n\nJobId: 2\nDependsOn: 1\n\nJobId: 3\nDependsOn: 2\n",
         "waits for itself"},
        {"JobId: 9\nDependsOn: 1\n\nJobId: 1\nDependsOn: 2\n\nJobId: 2\nDependsOn: 1\n",
         "line 4: the task waits for itself"},
        {"JobId: 1\nDependsOn: 2 y\n", "line 2: 'y' is not the number"},
        {"JobId: 1\nStartTime: 2\nEndTime: 1\nWorkerId: 0\n",
         "line 3: the task ends before it starts"},
        {"JobId: 1\nStartTime: 2\nEndTime: 3\n", "line 2: the task has a"},
        {"JobId: 1\nStartTime: nan\n", "line 2: StartTime cannot be 'nan'"},
        {"JobId: 1\nStartTime: 1e99\n", "line 2"},
        {"JobId: 1\nWorkerId: -1\n", "line 2: WorkerId cannot be '-1'"},
        {"JobId: 1\nMemoryNode: 4096\n", "line 2"},
        {"JobId: 1\nPriority: 3000000000\n", "line 2"},
        {"JobId: 1\nHandles: 0xg\n", "line 2"},
        {"JobId: 1\nHandles: 1 2\nModes: R\n", "line 3: there are fewer"},
        {"JobId: 1\nHandles: 1\nSizes: -2\n", "line 3"},
        {"JobId: 1\nGFlop: inf\n", "line 2"},
        {"JobId: 1\nIteration: a\n", "line 2"},
        {"JobId: 1\nEstimatedTime: x\n", "line 2"},
        {"no colon\n", "line 1: this is not 'Field: value'"},
        {"+ more\n", "line 1"},
        {": x\n", "line 1"},
    };
    struct files f;

    files_init(&f);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_STATUS(import_bytes(&f, wrong[i].text, strlen(wrong[i].text), false, NULL),
                     HEDDLE_EFORMAT);
        CHECK(strstr(f.why, wrong[i].why) != NULL);
        CHECK(access(f.log, F_OK) != 0);
    }
    CHECK_STATUS(import_bytes(&f, "JobId: 1\0\n", 10, false, NULL), HEDDLE_EFORMAT);
    CHECK(strstr(f.why, "zero byte") != NULL);
    CHECK_STATUS(heddle_log_import("/no/such", NULL, f.log, NULL), HEDDLE_ENOENT);
    CHECK_STATUS(heddle_log_import(f.tasks, "/no/such", f.log, NULL), HEDDLE_ENOENT);
    CHECK_STATUS(heddle_log_import("/", NULL, f.log, NULL), HEDDLE_EIO);
    CHECK_STATUS(heddle_log_import(NULL, NULL, f.log, NULL), HEDDLE_EINVAL);
    if (access("/dev/full", W_OK) == 0) {
        put_file(f.tasks, tasks_rec, strlen(tasks_rec));
        CHECK_STATUS(heddle_log_import(f.tasks, NULL, "/dev/full", NULL), HEDDLE_EIO);
    }
    files_fini(&f);
}

TEST(many_workers)
{
    enum { LIMIT = 8192, RECORD = 64 };
    char *text = malloc((size_t)(LIMIT + 1) * RECORD);
    heddle_log *log;
    struct files f;
    size_t n = 0;

    CHECK(text != NULL);
    files_init(&f);
    for (int i = 0; i <= LIMIT; i++) {
        if (i == LIMIT) {
            CHECK_OK(import_bytes(&f, text, n, false, NULL));
            CHECK_OK(heddle_log_open(f.log, NULL, &log));
            CHECK_EQ(heddle_log_get_view(log)->nlanes, LIMIT + 1);
            CHECK_EQ(heddle_log_get_view(log)->ntasks, LIMIT);
            heddle_log_close(log);
        }
        n += (size_t)snprintf(text + n, RECORD,
                              "JobId: %d\nWorkerId: %d\nStartTime: 1\nEndTime: 2\n\n", i, 7 * i);
    }
    CHECK_STATUS(import_bytes(&f, text, n, false, NULL), HEDDLE_EFORMAT);
    CHECK(strstr(f.why, "line 40962: there are more than 8192 workers") != NULL);
    free(text);
    files_fini(&f);
}

/* Cut anywhere, and any byte another one: a log or a sentence. */
TEST(malformed)
{
    static const char bytes[] = {'\0', '\n', '9', '\\', (char)0xff};
    const size_t n = strlen(tasks_rec);
    char *text = strdup(tasks_rec);
    size_t nok = 0, nbad = 0;
    heddle_status st;
    heddle_log *log;
    struct files f;

    CHECK(text != NULL);
    files_init(&f);
    for (size_t i = 0; i < n + n * sizeof bytes; i++) {
        const bool is_cut = i < n;
        const size_t at = is_cut ? i : (i - n) / sizeof bytes;

        if (!is_cut)
            text[at] = bytes[(i - n) % sizeof bytes];
        st = import_bytes(&f, text, is_cut ? at : n, (i & 1) != 0, NULL);
        text[at] = tasks_rec[at];
        if (st == HEDDLE_OK) {
            CHECK_OK(heddle_log_open(f.log, NULL, &log));
            CHECK(heddle_log_get_view(log)->ntasks <= 4);
            heddle_log_close(log);
            unlink(f.log);
            nok++;
        } else {
            CHECK_STATUS(st, HEDDLE_EFORMAT);
            CHECK(strstr(f.why, ", line ") != NULL);
            CHECK(access(f.log, F_OK) != 0);
            nbad++;
        }
    }
    CHECK(nok > n && nbad > n);
    free(text);
    files_fini(&f);
}

/* The same for the platform. */
TEST(malformed_platform)
{
    const size_t n = strlen(platform_rec);
    char *text = strdup(platform_rec);
    struct files f;

    CHECK(text != NULL);
    files_init(&f);
    put_file(f.tasks, tasks_rec, strlen(tasks_rec));
    for (size_t i = 0; i < 3 * n; i++) {
        const heddle_status ok = HEDDLE_OK;
        const struct heddle_log_opts o = {
            .size = sizeof o, .why = f.why, .why_bytes = sizeof f.why};
        heddle_status st;

        if (i >= n)
            text[i % n] = i >= 2 * n ? '\n' : '#';
        put_file(f.platform, text, i < n ? i : n);
        text[i % n] = platform_rec[i % n];
        st = heddle_log_import(f.tasks, f.platform, f.log, &o);
        if (st != ok) {
            CHECK_STATUS(st, HEDDLE_EFORMAT);
            CHECK(strstr(f.why, f.platform) != NULL);
        }
    }
    free(text);
    files_fini(&f);
}

TEST(no_memory)
{
    heddle_status st = HEDDLE_ENOMEM;
    struct faulty a;
    struct files f;
    size_t k;

    files_init(&f);
    for (k = 1; k < 1000; k++) {
        faulty_init(&a, k);
        st = import_bytes(&f, tasks_rec, strlen(tasks_rec), true, &a.a);
        CHECK_EQ(a.live_bytes, 0);
        if (a.nallocs < k)
            break;
        if (st != HEDDLE_OK) {
            CHECK_STATUS(st, HEDDLE_ENOMEM);
            CHECK(strstr(f.why, "memory") != NULL);
        }
    }
    CHECK_OK(st);
    CHECK(k > 20 && k < 1000);
    files_fini(&f);
}

/* ---- out and in again ---- */

static void same_task(const heddle_log *a, const heddle_log *b, size_t i)
{
    const struct heddle_log_view *v = heddle_log_get_view(a);
    const struct heddle_log_view *w = heddle_log_get_view(b);
    const struct heddle_log_task *x = &v->tasks[i], *y;
    const size_t k = heddle_log_find_task(b, x->id);
    size_t r[4];

    CHECK(k != SIZE_MAX);
    y = &w->tasks[k];
    CHECK_STR(v->kernels[x->kernel].name[0] == 'g' ? "gemm" : "pot\"rf ",
              w->kernels[y->kernel].name);
    CHECK_EQ(x->submit_ns, y->submit_ns);
    CHECK_EQ(x->ready_ns, y->ready_ns);
    CHECK_EQ(x->start_ns, y->start_ns);
    CHECK_EQ(x->end_ns, y->end_ns);
    CHECK_EQ(x->priority, y->priority);
    CHECK_EQ(x->parent, y->parent);
    /* The submitter is the first lane there and the last one here. */
    CHECK_EQ(x->lane, y->lane + 1);
    CHECK_EQ(v->lanes[x->lane].node, w->lanes[y->lane].node);
    heddle_log_find_deps(a, x->id, &r[0], &r[1]);
    heddle_log_find_deps(b, x->id, &r[2], &r[3]);
    CHECK_EQ(r[1] - r[0], r[3] - r[2]);
    for (size_t d = 0; d < r[1] - r[0]; d++)
        CHECK_EQ(v->deps[r[0] + d].pred, w->deps[r[2] + d].pred);
    heddle_log_find_accesses(a, x->id, &r[0], &r[1]);
    heddle_log_find_accesses(b, x->id, &r[2], &r[3]);
    CHECK_EQ(r[1] - r[0], r[3] - r[2]);
}

TEST(round_trip)
{
    heddle_log *a, *b;
    size_t bytes;
    uint8_t *p = sample_bytes(300, 700, &bytes);
    char part[300];
    struct files f;

    files_init(&f);
    CHECK_OK(heddle_log_parse(p, bytes, NULL, &a));
    free(p);
    CHECK_OK(heddle_log_export(a, "starpu", f.tasks, 0));
    snprintf(part, sizeof part, "%s.platform.rec", f.tasks);
    CHECK_OK(heddle_log_import(f.tasks, part, f.log, NULL));
    CHECK_OK(heddle_log_open(f.log, NULL, &b));
    CHECK_EQ(heddle_log_get_view(a)->ntasks, 300);
    CHECK_EQ(heddle_log_get_view(b)->ntasks, 300);
    CHECK_EQ(heddle_log_get_view(b)->ndeps, heddle_log_get_view(a)->ndeps);
    CHECK_EQ(heddle_log_get_view(b)->nlanes, 3);
    for (size_t i = 0; i < 300; i++)
        same_task(a, b, i);
    heddle_log_close(a);
    heddle_log_close(b);
    unlink(part);
    files_fini(&f);
}

TEST(numbers)
{
    int64_t v;
    double d;
    uint64_t u;

    CHECK(heddle_recutils_scaled("1.2345675", 6, &v) && v == 1234568);
    CHECK(heddle_recutils_scaled("-0.0000004", 6, &v) && v == 0);
    CHECK(heddle_recutils_scaled("+12e-3 ", 6, &v) && v == 12000);
    CHECK(heddle_recutils_scaled("0e999", 6, &v) && v == 0);
    CHECK(heddle_recutils_scaled("0.00000000000000000000000001e30", 0, &v) && v == 10000);
    CHECK(!heddle_recutils_scaled("1e19", 0, &v));
    CHECK(!heddle_recutils_scaled("", 0, &v));
    CHECK(!heddle_recutils_scaled(".", 0, &v));
    CHECK(!heddle_recutils_scaled("1.2.3", 0, &v));
    CHECK(!heddle_recutils_scaled("1e", 0, &v));
    CHECK(!heddle_recutils_scaled("0x10", 0, &v));
    CHECK(heddle_recutils_double("1e-400", &d) && d == 0.0);
    CHECK(heddle_recutils_double("-2.5e2", &d) && d == -250.0);
    CHECK(!heddle_recutils_double("1e400", &d));
    CHECK(heddle_recutils_hex("ffffffffffffffff", &u) && u == UINT64_MAX);
    CHECK(!heddle_recutils_hex("10000000000000000", &u));
    CHECK(!heddle_recutils_hex("0x", &u));
}

TEST_MAIN(fields, refused, many_workers, malformed, malformed_platform, no_memory, round_trip,
          numbers)
