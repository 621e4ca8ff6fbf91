/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * opencl: what the conformance test does not see. Programs and their cache, also
 * with damaged files; errors of the implementation, which are put into the
 * device's table of functions; order between two devices; times.
 */
#include "drive/opencl/opencl.h"

#include <sys/stat.h>
#include <time.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/faulty_test.h"
#include "drive/opencl/dev.h"

#define SLACK_NS UINT64_C(100000000) /* two clocks, a loaded machine */

static const char source[] =
    "kernel void twice(global uint *p) { p[get_global_id(0)] *= 2; }\n"
    "kernel void plus(global uint *p, uint a) { p[get_global_id(0)] += a; }\n"
    "kernel void loop(global uint *p, uint n)\n"
    "{ uint s = p[0]; for (uint i = 0; i < n; i++) s = s * 1664525u + 1; \n"
    "  p[0] = s; }\n";

static uint64_t test_clock(void *user)
{
    (void)user;
    return heddle_clock_ns();
}

static const struct heddle_driver *const drv = &heddle_driver_opencl;

/* NULL: the machine has no OpenCL. */
static struct heddle_dev *device(const struct heddle_allocator *a, const char *cache_dir)
{
    const struct heddle_drive_env env = {.alloc = a, .now_ns = test_clock, .cache_dir = cache_dir};
    struct heddle_dev *dev = NULL;
    unsigned n = 0;

    CHECK_OK(drv->probe(&env, NULL, 0, &n));
    if (n == 0)
        return NULL;
    CHECK_OK(drv->open(&env, 0, &dev));
    return dev;
}

struct end {
    struct heddle_op op;
    unsigned ndone;
    heddle_status st;
};

static void end_done(struct heddle_op *op, heddle_status st)
{
    struct end *e = (void *)op;

    e->ndone++;
    e->st = st;
}

static struct end end_make(void)
{
    return (struct end){.op.done = end_done};
}

static void end_wait(struct heddle_dev *dev, struct end *e)
{
    while (e->ndone == 0)
        if (drv->progress(dev) == 0)
            nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    CHECK_EQ(e->ndone, 1);
}

static heddle_status copy(struct heddle_dev *dev, enum heddle_copy_kind kind, void *ptr, void *host,
                          size_t bytes, struct end *e)
{
    const struct heddle_copy c = {
        .kind = kind, .ptr = ptr, .host = host, .runs = {.run_bytes = bytes, .nruns = 1}};

    return drv->copy(dev, &c, 0, &e->op);
}

static void copy_now(struct heddle_dev *dev, enum heddle_copy_kind kind, void *ptr, void *host,
                     size_t bytes)
{
    struct end e = end_make();

    CHECK_OK(copy(dev, kind, ptr, host, bytes, &e));
    end_wait(dev, &e);
    CHECK_OK(e.st);
}

struct job {
    struct heddle_dev *dev;
    const char *entry;
    void *ptr;
    uint32_t arg;
    unsigned times;
    size_t n;
};

static heddle_status job_run(struct heddle_exec *x)
{
    struct job *j = (void *)x;
    void *k;

    HEDDLE_TRY(heddle_opencl_dev_kernel(j->dev, source, j->entry, NULL, &k));
    HEDDLE_TRY(heddle_opencl_dev_arg(j->dev, k, 0, &j->ptr, sizeof(j->ptr)));
    if (strcmp(j->entry, "twice") != 0)
        HEDDLE_TRY(heddle_opencl_dev_arg(j->dev, k, 1, &j->arg, sizeof(j->arg)));
    for (unsigned i = 0; i < j->times; i++)
        HEDDLE_TRY(heddle_opencl_dev_enqueue(j->dev, 0, k, 1, &j->n, NULL));
    return HEDDLE_OK;
}

static heddle_status launch(struct job *j, struct end *e)
{
    const struct heddle_dev_launch l = {.run = job_run, .x = (void *)j};

    return drv->launch(j->dev, &l, 0, &e->op);
}

/* 7 through `twice` is 14. */
static void check_works(struct heddle_dev *dev)
{
    struct job j = {.dev = dev, .entry = "twice", .times = 1, .n = 1};
    struct end e = end_make();
    uint32_t v = 7;

    CHECK_OK(drv->alloc(dev, sizeof(v), 0, &j.ptr));
    copy_now(dev, HEDDLE_COPY_IN, j.ptr, &v, sizeof(v));
    CHECK_OK(launch(&j, &e));
    end_wait(dev, &e);
    CHECK_OK(e.st);
    copy_now(dev, HEDDLE_COPY_OUT, j.ptr, &v, sizeof(v));
    CHECK_EQ(v, 14);
    drv->free(dev, j.ptr, sizeof(v), 0);
}

TEST(kernels_are_kept)
{
    struct heddle_dev *dev = device(NULL, NULL);
    void *a, *b, *c, *d;

    if (dev == NULL)
        SKIP("no OpenCL here");
    CHECK_OK(heddle_opencl_dev_kernel(dev, source, "twice", NULL, &a));
    CHECK_OK(heddle_opencl_dev_kernel(dev, source, "plus", "", &b));
    CHECK_OK(heddle_opencl_dev_kernel(dev, source, "twice", "", &c));
    CHECK_OK(heddle_opencl_dev_kernel(dev, source, "twice", "-DX=1", &d));
    CHECK(a == c && a != b && a != d);
    CHECK(heddle_opencl_dev_native(dev, 1, "queue") != NULL);
    CHECK(heddle_opencl_dev_native(dev, 1, "context") != NULL);
    CHECK(heddle_opencl_dev_native(dev, 1, "device") != NULL);
    CHECK(heddle_opencl_dev_native(dev, 99, "queue") == NULL);
    CHECK(heddle_opencl_dev_native(dev, 0, "spoon") == NULL);
    drv->close(dev);
}

TEST(bad_programs)
{
    struct heddle_dev *dev = device(NULL, NULL);
    static const size_t one = 1, zero = 0, odd = 3, huge = (size_t)1 << 20;
    const uint32_t v = 0;
    void *k = NULL;

    if (dev == NULL)
        SKIP("no OpenCL here");
    CHECK_STATUS(heddle_opencl_dev_kernel(dev, "kernel void f( {", "f", NULL, &k), HEDDLE_EINVAL);
    CHECK(strstr(drv->error(dev), "does not compile: ") != NULL);
    CHECK(strchr(drv->error(dev), '\n') == NULL);
    printf("     %s\n", drv->error(dev));
    CHECK_STATUS(heddle_opencl_dev_kernel(dev, source, "nonesuch", NULL, &k), HEDDLE_EINVAL);
    CHECK(strstr(drv->error(dev), "no kernel 'nonesuch'") != NULL);
    CHECK(heddle_opencl_dev_kernel(dev, source, "twice", "--no-such-option", &k) != HEDDLE_OK);
    CHECK_STATUS(heddle_opencl_dev_kernel(dev, NULL, "f", NULL, &k), HEDDLE_EINVAL);
    CHECK_OK(heddle_opencl_dev_kernel(dev, source, "plus", NULL, &k));
    CHECK_STATUS(heddle_opencl_dev_arg(dev, k, 9, &v, sizeof(v)), HEDDLE_EINVAL);
    CHECK(strstr(drv->error(dev), "argument 9") != NULL);
    /* Arguments that were never set, and sizes that make no sense. */
    CHECK(heddle_opencl_dev_enqueue(dev, 0, k, 1, &one, NULL) != HEDDLE_OK);
    CHECK_STATUS(heddle_opencl_dev_enqueue(dev, 0, k, 0, &one, NULL), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_opencl_dev_enqueue(dev, 0, k, 4, &one, NULL), HEDDLE_EINVAL);
    CHECK_STATUS(heddle_opencl_dev_enqueue(dev, 77, k, 1, &one, NULL), HEDDLE_EINVAL);
    CHECK_OK(heddle_opencl_dev_enqueue(dev, 0, k, 1, &zero, NULL));
    CHECK(heddle_opencl_dev_enqueue(dev, 0, k, 1, &huge, &huge) != HEDDLE_OK);
    CHECK(heddle_opencl_dev_enqueue(dev, 0, k, 1, &odd, &huge) != HEDDLE_OK);
    check_works(dev);
    drv->close(dev);
}

TEST(not_an_opencl_device)
{
    const struct heddle_driver *cpu = heddle_driver_find("cpu");
    const struct heddle_drive_env env = {0};
    struct heddle_dev *dev = NULL;
    const size_t one = 1;
    void *k = &dev;

    CHECK_OK(cpu->open(&env, 0, &dev));
    for (int round = 0; round < 2; round++) {
        struct heddle_dev *d = round == 0 ? dev : NULL;

        CHECK(heddle_opencl_dev_native(d, 0, "queue") == NULL);
        CHECK_STATUS(heddle_opencl_dev_kernel(d, source, "twice", NULL, &k), HEDDLE_ENOSYS);
        CHECK_STATUS(heddle_opencl_dev_arg(d, k, 0, NULL, 4), HEDDLE_ENOSYS);
        CHECK_STATUS(heddle_opencl_dev_enqueue(d, 0, k, 1, &one, NULL), HEDDLE_ENOSYS);
    }
    cpu->close(dev);
}

/* --- the cache ----------------------------------------------------------- */

static unsigned nsource; /* programs that were compiled */
static __typeof__(clCreateProgramWithSource) *real_create;

static cl_program count_create(cl_context c, cl_uint n, const char **s, const size_t *len,
                               cl_int *err)
{
    nsource++;
    return real_create(c, n, s, len, err);
}

/* Opens, uses, closes; how often it had to compile. */
static unsigned compiles(const char *dir)
{
    struct heddle_dev *dev = device(NULL, dir);

    nsource = 0;
    real_create = dev->api.clCreateProgramWithSource;
    dev->api.clCreateProgramWithSource = count_create;
    check_works(dev);
    drv->close(dev);
    return nsource;
}

static void write_file(const char *path, const unsigned char *data, size_t n)
{
    FILE *f = fopen(path, "wb");

    CHECK(f != NULL);
    CHECK_EQ(fwrite(data, 1, n, f), n);
    CHECK_EQ(fclose(f), 0);
}

/* Finds the one file of the cache. */
static void only_file(const char *dir, char *path, size_t cap)
{
    char command[256];
    FILE *f;

    snprintf(command, sizeof(command), "ls -d '%s'/opencl/*", dir);
    f = popen(command, "r");
    CHECK(f != NULL && fgets(path, (int)cap, f) != NULL);
    path[strcspn(path, "\n")] = '\0';
    CHECK(fgetc(f) == EOF); /* nothing half-written stays */
    CHECK_EQ(pclose(f), 0);
}

TEST(programs_on_disk)
{
    struct heddle_dev *dev = device(NULL, NULL);
    char dir[] = "/tmp/heddle-opencl-XXXXXX", path[256], deep[64];
    unsigned char *data;
    size_t bytes;
    FILE *f;

    if (dev == NULL)
        SKIP("no OpenCL here");
    drv->close(dev);
    CHECK(mkdtemp(dir) != NULL);
    snprintf(deep, sizeof(deep), "%s/a/b", dir);
    CHECK_EQ(compiles(deep), 1);
    CHECK_EQ(compiles(deep), 0);
    only_file(deep, path, sizeof(path));
    f = fopen(path, "rb");
    CHECK(f != NULL && fseek(f, 0, SEEK_END) == 0);
    bytes = (size_t)ftell(f);
    rewind(f);
    data = malloc(bytes + 1);
    CHECK(data != NULL && fread(data, 1, bytes, f) == bytes);
    fclose(f);
    /* Each kind of damage costs one compilation and is mended by it. */
    for (size_t at = 0; at < bytes; at += at < 64 ? 7 : bytes / 7) {
        data[at] ^= 0x41;
        write_file(path, data, bytes);
        data[at] ^= 0x41;
        CHECK_EQ(compiles(deep), 1);
        CHECK_EQ(compiles(deep), 0);
    }
    for (size_t n = 0; n < bytes; n += n < 64 ? 13 : bytes / 5) {
        write_file(path, data, n);
        CHECK_EQ(compiles(deep), 1);
    }
    data[bytes] = 1;
    write_file(path, data, bytes + 1);
    CHECK_EQ(compiles(deep), 1);
    /* What is in the way stays there; a pipe does not hang. */
    CHECK(unlink(path) == 0 && mkdir(path, 0700) == 0);
    CHECK_EQ(compiles(deep), 1);
    CHECK(rmdir(path) == 0 && mkfifo(path, 0600) == 0);
    CHECK_EQ(compiles(deep), 1);
    only_file(deep, path, sizeof(path));
    /* No folder can be made there. */
    CHECK_EQ(compiles("/proc/nonesuch"), 1);
    free(data);
    snprintf(path, sizeof(path), "rm -rf '%s'", dir);
    CHECK_EQ(system(path), 0);
}

/* --- errors of the implementation ---------------------------------------- */

static cl_int bad_error;

static cl_int bad_write(cl_command_queue q, cl_mem m, cl_bool blocking, size_t offset, size_t bytes,
                        const void *from, cl_uint n, const cl_event *events, cl_event *e)
{
    (void)q, (void)m, (void)blocking, (void)offset, (void)bytes, (void)from;
    (void)n, (void)events, (void)e;
    return bad_error;
}

static cl_int bad_event(cl_event e, cl_event_info what, size_t bytes, void *out, size_t *n)
{
    (void)e, (void)what, (void)bytes, (void)n;
    memcpy(out, &bad_error, sizeof(bad_error));
    return CL_SUCCESS;
}

static cl_int bad_marker(cl_command_queue q, cl_uint n, const cl_event *events, cl_event *e)
{
    (void)q, (void)n, (void)events, (void)e;
    return bad_error;
}

static cl_int bad_migrate(cl_command_queue q, cl_uint n, const cl_mem *m,
                          cl_mem_migration_flags flags, cl_uint nevents, const cl_event *events,
                          cl_event *e)
{
    (void)q, (void)n, (void)m, (void)flags, (void)nevents, (void)events, (void)e;
    return bad_error;
}

TEST(passing_errors)
{
    struct heddle_dev *dev = device(NULL, NULL);
    struct heddle_opencl_api api;
    struct end e = end_make();
    struct job j = {.dev = dev, .entry = "twice", .times = 2, .n = 1};
    uint32_t v = 1;
    void *ptr;

    if (dev == NULL)
        SKIP("no OpenCL here");
    api = dev->api;
    CHECK_OK(drv->alloc(dev, sizeof(v), 0, &ptr));
    copy_now(dev, HEDDLE_COPY_IN, ptr, &v, sizeof(v));
    bad_error = CL_OUT_OF_RESOURCES;
    dev->api.clEnqueueWriteBuffer = bad_write;
    CHECK_STATUS(copy(dev, HEDDLE_COPY_IN, ptr, &v, sizeof(v), &e), HEDDLE_ETASK);
    CHECK(strstr(drv->error(dev), "CL_OUT_OF_RESOURCES") != NULL);
    dev->api = api;
    dev->api.clGetEventInfo = bad_event;
    CHECK_OK(copy(dev, HEDDLE_COPY_IN, ptr, &v, sizeof(v), &e));
    end_wait(dev, &e);
    CHECK_STATUS(e.st, HEDDLE_ETASK);
    dev->api = api;
    dev->api.clEnqueueMarkerWithWaitList = bad_marker;
    e = end_make();
    j.ptr = ptr;
    CHECK_STATUS(launch(&j, &e), HEDDLE_ETASK);
    CHECK_EQ(e.ndone, 0);
    dev->api = api;
    dev->api.clEnqueueMigrateMemObjects = bad_migrate;
    bad_error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    CHECK_STATUS(drv->alloc(dev, 100, 0, &j.ptr), HEDDLE_ENOMEM);
    dev->api = api;
    bad_error = -4711;
    dev->api.clEnqueueWriteBuffer = bad_write;
    CHECK_STATUS(copy(dev, HEDDLE_COPY_IN, ptr, &v, sizeof(v), &e), HEDDLE_ETASK);
    CHECK(strstr(drv->error(dev), "-4711") != NULL);
    dev->api = api;
    CHECK_EQ(e.ndone, 0);
    check_works(dev);
    drv->free(dev, ptr, sizeof(v), 0);
    drv->close(dev);
}

TEST(a_lost_device)
{
    struct faulty f;
    struct heddle_dev *dev;
    struct end flying[3], e = end_make();
    struct job j = {.entry = "twice", .times = 1, .n = 1};
    static uint32_t v = 1; /* nobody waits for a lost device: it may read late */
    void *ptr, *k;

    faulty_init(&f, 0);
    dev = device(&f.a, NULL);
    if (dev == NULL)
        SKIP("no OpenCL here");
    CHECK_OK(drv->alloc(dev, sizeof(v), 0, &ptr));
    for (int i = 0; i < 3; i++) {
        flying[i] = end_make();
        CHECK_OK(copy(dev, HEDDLE_COPY_IN, ptr, &v, sizeof(v), &flying[i]));
    }
    bad_error = CL_DEVICE_NOT_AVAILABLE;
    dev->api.clEnqueueWriteBuffer = bad_write;
    CHECK_STATUS(copy(dev, HEDDLE_COPY_IN, ptr, &v, sizeof(v), &e), HEDDLE_EDEV);
    CHECK(strstr(drv->error(dev), "CL_DEVICE_NOT_AVAILABLE") != NULL);
    /* Everything says so from now on. */
    j.dev = dev;
    j.ptr = ptr;
    CHECK_STATUS(copy(dev, HEDDLE_COPY_OUT, ptr, &v, sizeof(v), &e), HEDDLE_EDEV);
    CHECK_STATUS(launch(&j, &e), HEDDLE_EDEV);
    CHECK_STATUS(drv->alloc(dev, 8, 0, &k), HEDDLE_EDEV);
    CHECK_STATUS(drv->order(dev, 1, &flying[0].op), HEDDLE_EDEV);
    CHECK_STATUS(heddle_opencl_dev_kernel(dev, source, "plus", NULL, &k), HEDDLE_EDEV);
    CHECK_EQ(drv->progress(dev), 3);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(flying[i].ndone, 1);
        CHECK_STATUS(flying[i].st, HEDDLE_EDEV);
    }
    CHECK_EQ(e.ndone, 0);
    drv->free(dev, ptr, sizeof(v), 0);
    drv->close(dev);
    CHECK_EQ(f.nlive, 0);
}

/* --- two devices --------------------------------------------------------- */

/* What `b` reads from host memory is what `a` writes there, later. */
TEST(order_between_devices)
{
    struct heddle_dev *a = device(NULL, NULL), *b = device(NULL, NULL);
    struct job j = {.dev = a, .entry = "loop", .times = 1, .n = 1};
    uint32_t v = 1, w = 0, want = 1;
    enum { STEPS = 3000000 };

    if (a == NULL)
        SKIP("no OpenCL here");
    for (uint32_t i = 0; i < STEPS; i++)
        want = want * 1664525u + 1;
    for (int round = 0; round < 5; round++) {
        struct end e[4];
        void *pb;

        for (int i = 0; i < 4; i++)
            e[i] = end_make();
        v = 1;
        w = 0;
        j.arg = STEPS;
        CHECK_OK(drv->alloc(a, sizeof(v), 0, &j.ptr));
        CHECK_OK(drv->alloc(b, sizeof(v), 0, &pb));
        CHECK_OK(copy(a, HEDDLE_COPY_IN, j.ptr, &v, sizeof(v), &e[0]));
        CHECK_OK(launch(&j, &e[1]));
        CHECK_OK(copy(a, HEDDLE_COPY_OUT, j.ptr, &v, sizeof(v), &e[2]));
        CHECK_OK(drv->order(b, 0, &e[2].op));
        CHECK_OK(copy(b, HEDDLE_COPY_IN, pb, &v, sizeof(v), &e[3]));
        if (round == 0) { /* b alone cannot go on */
            CHECK_EQ(drv->progress(b), 0);
        }
        while (e[3].ndone == 0) {
            drv->progress(a);
            drv->progress(b);
        }
        for (int i = 0; i < 4; i++)
            CHECK_OK(e[i].st);
        copy_now(b, HEDDLE_COPY_OUT, pb, &w, sizeof(w));
        CHECK_EQ(w, want);
        drv->free(a, j.ptr, sizeof(v), 0);
        drv->free(b, pb, sizeof(v), 0);
    }
    drv->close(a);
    drv->close(b);
}

/* A copy that has to settle another one behind a wait for the other device must
 * not wait for itself; nor may close(). */
TEST(settling_behind_another_device)
{
    struct heddle_dev *a = device(NULL, NULL), *b = device(NULL, NULL);
    static const struct heddle_runs odd = {4, 12, 2, {4, 3}, {4, 100}};
    struct heddle_copy out = {.kind = HEDDLE_COPY_OUT, .runs = odd};
    struct heddle_copy in = {.kind = HEDDLE_COPY_IN, .runs = odd};
    struct end e[4];
    unsigned char host[300], seen[48], flat[48];
    uint32_t v = 5;
    void *pa, *pb;

    if (a == NULL)
        SKIP("no OpenCL here");
    for (int i = 0; i < 4; i++)
        e[i] = end_make();
    for (size_t i = 0; i < sizeof(flat); i++)
        flat[i] = (unsigned char)(i * 5 + 1);
    memset(host, 0, sizeof(host));
    CHECK_OK(drv->alloc(a, sizeof(v), 0, &pa));
    CHECK_OK(drv->alloc(b, sizeof(flat), 0, &pb));
    copy_now(b, HEDDLE_COPY_IN, pb, flat, sizeof(flat));
    CHECK_OK(copy(a, HEDDLE_COPY_IN, pa, &v, sizeof(v), &e[0]));
    CHECK_OK(drv->order(b, 0, &e[0].op));
    CHECK_OK(drv->order(b, 1, &e[0].op));
    out.ptr = in.ptr = pb;
    out.host = in.host = host;
    CHECK_OK(drv->copy(b, &out, 0, &e[1].op));
    CHECK_OK(drv->copy(b, &in, 0, &e[2].op)); /* settles the one before */
    CHECK_OK(copy(b, HEDDLE_COPY_OUT, pb, seen, sizeof(seen), &e[3]));
    end_wait(b, &e[3]);
    CHECK_OK(e[1].st);
    CHECK_OK(e[2].st);
    CHECK_EQ(memcmp(seen, flat, sizeof(flat)), 0);
    drv->free(b, pb, sizeof(flat), 0);
    e[3] = end_make();
    CHECK_OK(copy(a, HEDDLE_COPY_OUT, pa, &v, sizeof(v), &e[3]));
    CHECK_OK(drv->order(b, 1, &e[3].op));
    drv->close(b);
    end_wait(a, &e[3]);
    CHECK_EQ(v, 5);
    CHECK_EQ(e[0].ndone, 1);
    drv->free(a, pa, sizeof(v), 0);
    drv->close(a);
}

/* --- times --------------------------------------------------------------- */

/* On the environment's clock, and of the kernels alone, not of their wait. A
 * millisecond is left to two clocks that may run at slightly different rates. */
TEST(times)
{
    struct heddle_dev *dev = device(NULL, NULL);
    struct end e[2] = {end_make(), end_make()};
    struct job j = {.dev = dev, .entry = "loop", .times = 2, .n = 1, .arg = 3000000};
    uint64_t before, after;
    uint32_t v = 3;

    if (dev == NULL)
        SKIP("no OpenCL here");
    CHECK_OK(drv->alloc(dev, sizeof(v), 0, &j.ptr));
    copy_now(dev, HEDDLE_COPY_IN, j.ptr, &v, sizeof(v));
    before = heddle_clock_ns();
    CHECK_OK(launch(&j, &e[0]));
    CHECK_OK(launch(&j, &e[1]));
    end_wait(dev, &e[1]);
    after = heddle_clock_ns() + 1000000;
    for (int i = 0; i < 2; i++) {
        CHECK_OK(e[i].st);
        if (e[i].op.end_ns == 0)
            SKIP("this implementation has no times");
        CHECK(e[i].op.begin_ns + SLACK_NS >= before);
        CHECK(e[i].op.end_ns > e[i].op.begin_ns);
        CHECK(e[i].op.end_ns <= after + SLACK_NS);
    }
    CHECK(e[1].op.begin_ns + SLACK_NS >= e[0].op.end_ns);
    drv->free(dev, j.ptr, sizeof(v), 0);
    drv->close(dev);
}

TEST_MAIN(kernels_are_kept, bad_programs, not_an_opencl_device, programs_on_disk, passing_errors,
          a_lost_device, order_between_devices, settling_behind_another_device, times)
