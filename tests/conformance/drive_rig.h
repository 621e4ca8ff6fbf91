/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TESTS_CONFORMANCE_DRIVE_RIG_H
#define HEDDLE_TESTS_CONFORMANCE_DRIVE_RIG_H

/*
 * What the tests of drivers share: a device with its world, operations that check
 * how they end, copies, and a kernel for every kind of device.
 *
 * The simulated devices live on a machine that the rig writes itself; there,
 * heddle_sim_step() is what makes progress. CUDA devices are those of
 * HEDDLE_CUDA_LIBRARY, or the machine's.
 */
#include <time.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/faulty_test.h"
#include "base/rng.h"
#include "drive/cuda/cuda.h"
#include "drive/drive.h"
#include "drive/opencl/opencl.h"
#include "drive/sim/sim.h"

enum { DEVICES = 16 };

static const char rig_machine[] = "heddle-machine 1\n"
                                  "name conformance\n"
                                  "node host kind host\n"
                                  "node near kind device bytes 64M\n"
                                  "class cores kind cpu workers 2\n"
                                  "class gpu kind cuda workers 2 node near\n"
                                  "link host near gbytes 4 latency_us 1\n"
                                  "link near host gbytes 2 latency_us 1\n";

/* --- a device and its world ---------------------------------------------- */

struct rig {
    const struct heddle_driver *drv;
    struct heddle_drive_env env;
    struct heddle_dev_info info;
    struct heddle_dev *dev;
    struct heddle_plat *plat;
    struct heddle_sim *sim;
    bool in_progress; /* done() may be called now */
};

static char rig_folder[64];

static inline void rig_folder_remove(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf '%s'", rig_folder);
    if (system(command) != 0)
        printf("cannot remove %s\n", rig_folder);
}

/* For machine files, compiled programs and the disk. */
static inline void rig_folder_make(void)
{
    if (rig_folder[0] != '\0')
        return;
    snprintf(rig_folder, sizeof(rig_folder), "/tmp/heddle-drive-XXXXXX");
    CHECK(mkdtemp(rig_folder) != NULL);
    CHECK_EQ(atexit(rig_folder_remove), 0);
}

static inline uint64_t rig_now(void *user)
{
    (void)user;
    return heddle_clock_ns();
}

static inline heddle_status rig_world(struct rig *r, const struct heddle_allocator *a)
{
    char path[128], why[256] = "";
    heddle_status st;
    FILE *f;

    snprintf(path, sizeof(path), "%s/machine", rig_folder);
    f = fopen(path, "w");
    CHECK(f != NULL && fputs(rig_machine, f) >= 0 && fclose(f) == 0);
    st = heddle_plat_open(NULL, path, &r->plat, why, sizeof(why));
    if (st != HEDDLE_OK)
        printf("%s\n", why);
    CHECK_OK(st);
    st = heddle_sim_create(a, r->plat, true, &r->sim);
    if (st != HEDDLE_OK) {
        heddle_plat_destroy(r->plat);
        r->plat = NULL;
    }
    r->env.world = r->sim;
    return st;
}

static inline heddle_status rig_init(struct rig *r, const struct heddle_driver *drv,
                                     const struct heddle_allocator *a)
{
    rig_folder_make();
    memset(r, 0, sizeof(*r));
    r->drv = drv;
    r->env.alloc = a;
    r->env.now_ns = rig_now;
    r->env.path = rig_folder;
    r->env.cache_dir = rig_folder;
    r->env.library = drv->library_env != NULL ? getenv(drv->library_env) : NULL;
    if (strcmp(drv->name, "sim") == 0)
        return rig_world(r, a);
    return HEDDLE_OK;
}

static inline void rig_fini(struct rig *r)
{
    heddle_sim_destroy(r->sim);
    heddle_plat_destroy(r->plat);
}

static inline bool rig_step(struct rig *r)
{
    bool moved;

    r->in_progress = true;
    moved = r->drv->progress(r->dev) > 0;
    if (r->sim != NULL)
        moved = heddle_sim_step(r->sim) || moved;
    r->in_progress = false;
    return moved;
}

/* Refuses what no machine has. A sanitizer's allocator would end the program. */
static inline void *modest_alloc(void *user, size_t bytes, size_t align)
{
    return bytes >> 40 != 0 ? NULL : faulty_alloc(user, bytes, align);
}

typedef void (*rig_fn)(struct rig *r);

/* Runs fn with each device of each driver open. */
static inline unsigned for_each_device(rig_fn fn)
{
    unsigned ndone = 0;

    for (size_t i = 0; heddle_driver_table[i] != NULL; i++) {
        const struct heddle_driver *drv = heddle_driver_table[i];
        struct heddle_dev_info info[DEVICES];
        struct faulty f;
        struct rig r;
        unsigned n = 0;

        faulty_init(&f, 0);
        f.a.alloc = modest_alloc;
        CHECK_OK(rig_init(&r, drv, &f.a));
        CHECK_OK(drv->probe(&r.env, info, DEVICES, &n));
        for (unsigned d = 0; d < n && d < DEVICES; d++) {
            r.info = info[d];
            CHECK_OK(drv->open(&r.env, d, &r.dev));
            fn(&r);
            drv->close(r.dev);
            ndone++;
        }
        rig_fini(&r);
        CHECK_EQ(f.nlive, 0);
    }
    return ndone;
}

/* --- operations ---------------------------------------------------------- */

struct probe_op {
    struct heddle_op op;
    struct rig *r;
    unsigned ndone;
    heddle_status st;
    size_t number, *order; /* the how-manieth that ended */
};

static inline void op_done(struct heddle_op *op, heddle_status st)
{
    struct probe_op *p = (void *)op;

    CHECK(p->r->in_progress);
    CHECK_EQ(p->ndone, 0);
    CHECK(op->begin_ns <= op->end_ns);
    p->ndone++;
    p->st = st;
    if (p->order != NULL)
        p->number = (*p->order)++;
}

static inline struct probe_op op_make(struct rig *r)
{
    return (struct probe_op){.op.done = op_done, .r = r};
}

static inline void op_wait(struct probe_op *p)
{
    while (p->ndone == 0)
        if (!rig_step(p->r))
            nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

/*
 * A second stream that keeps the order: of kernels, where there are two, since
 * devices may copy in both directions at once. A memory without kernels has one.
 */
static inline unsigned second_stream(const struct rig *r)
{
    return r->info.nstreams > 1 ? 1 : r->info.nstreams;
}

static inline struct heddle_runs dense(size_t bytes)
{
    return (struct heddle_runs){.run_bytes = bytes, .nruns = 1};
}

static inline heddle_status start_copy(struct rig *r, enum heddle_copy_kind kind, void *ptr,
                                       void *host, const struct heddle_runs *runs, unsigned stream,
                                       struct probe_op *p)
{
    struct heddle_copy c = {.kind = kind, .ptr = ptr, .host = host, .runs = *runs};
    const heddle_status st = r->drv->copy(r->dev, &c, stream, &p->op);

    memset(&c, 0xee, sizeof(c)); /* it may go when copy() returns */
    return st;
}

static inline void copy_wait(struct rig *r, enum heddle_copy_kind kind, void *ptr, void *host,
                             const struct heddle_runs *runs, unsigned stream)
{
    struct probe_op p = op_make(r);

    CHECK_OK(start_copy(r, kind, ptr, host, runs, stream, &p));
    CHECK_EQ(p.ndone, 0);
    op_wait(&p);
    CHECK_OK(p.st);
}

static inline void fill(unsigned char *p, size_t bytes, uint64_t seed)
{
    struct heddle_rng rng;

    heddle_rng_seed(&rng, seed);
    for (size_t i = 0; i < bytes; i++)
        p[i] = (unsigned char)heddle_rng_next(&rng);
}

static inline unsigned char *host_new(size_t bytes, uint64_t seed)
{
    unsigned char *p = malloc(bytes);

    CHECK(p != NULL);
    fill(p, bytes, seed);
    return p;
}

/* --- launches ------------------------------------------------------------ */

/* What the engine's heddle_exec is here. */
struct job {
    struct rig *r;
    unsigned stream;
    unsigned char *ptr; /* memory; opencl: cl_mem */
    unsigned add;
    size_t bytes;
    heddle_status answer;
    bool wants_time;
    unsigned nruns;
};

static inline heddle_status job_opencl(struct job *j)
{
    static const char source[] = "kernel void add(global uchar *p, uint a) "
                                 "{ size_t i = get_global_id(0); p[i] = p[i] * 3 + a; }";
    struct heddle_dev *dev = j->r->dev;
    void *k;

    HEDDLE_TRY(heddle_opencl_dev_kernel(dev, source, "add", NULL, &k));
    HEDDLE_TRY(heddle_opencl_dev_arg(dev, k, 0, &j->ptr, sizeof(j->ptr)));
    HEDDLE_TRY(heddle_opencl_dev_arg(dev, k, 1, &j->add, sizeof(j->add)));
    return heddle_opencl_dev_enqueue(dev, j->stream, k, 1, &j->bytes, NULL);
}

/* p[i] = 3 p[i] + a, of n bytes: what nvcc makes of
 *     i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) p[i] = p[i] * 3 + a;
 */
static inline heddle_status job_cuda(struct job *j)
{
    static const char ptx[] = ".version 6.3\n.target sm_75\n.address_size 64\n"
                              ".visible .entry triple(.param .u64 a0, .param .u32 a1,\n"
                              ".param .u32 a2) { .reg .pred %p<2>; .reg .b32 %r<9>;\n"
                              ".reg .b64 %rd<5>; ld.param.u64 %rd1, [a0];\n"
                              "ld.param.u32 %r2, [a1]; ld.param.u32 %r3, [a2];\n"
                              "mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ntid.x;\n"
                              "mov.u32 %r6, %tid.x; mad.lo.s32 %r1, %r4, %r5, %r6;\n"
                              "setp.ge.u32 %p1, %r1, %r3; @%p1 bra L2;\n"
                              "cvta.to.global.u64 %rd2, %rd1; cvt.u64.u32 %rd3, %r1;\n"
                              "add.s64 %rd4, %rd2, %rd3; ld.global.u8 %r7, [%rd4];\n"
                              "mad.lo.s32 %r8, %r7, 3, %r2; st.global.u8 [%rd4], %r8;\n"
                              "L2: ret; }\n";
    struct heddle_dev *dev = j->r->dev;
    const uint32_t n = (uint32_t)j->bytes;
    const struct heddle_cuda_shape shape = {.grid = {(n + 127) / 128}, .block = {128}};
    void *args[] = {&j->ptr, &j->add, (void *)(uintptr_t)&n};
    void *k;

    HEDDLE_TRY(heddle_cuda_dev_kernel(dev, ptx, 0, "triple", &k));
    return heddle_cuda_dev_enqueue(dev, j->stream, k, &shape, args);
}

static inline heddle_status job_run(struct heddle_exec *x)
{
    struct job *j = (void *)x;

    j->nruns++;
    if (j->answer != HEDDLE_OK)
        return j->answer;
    if (heddle_opencl_dev_native(j->r->dev, j->stream, "queue") != NULL)
        return job_opencl(j);
    if (heddle_cuda_dev_native(j->r->dev, j->stream, "stream") != NULL)
        return job_cuda(j);
    for (size_t i = 0; i < j->bytes; i++)
        j->ptr[i] = (unsigned char)(j->ptr[i] * 3 + j->add);
    return HEDDLE_OK;
}

static inline heddle_status start_job(struct job *j, struct probe_op *p)
{
    const struct heddle_dev_launch l = {
        .wants_time = j->wants_time, .run = job_run, .x = (void *)j, .model_ns = 1000};

    return j->r->drv->launch(j->r->dev, &l, j->stream, &p->op);
}

#endif /* HEDDLE_TESTS_CONFORMANCE_DRIVE_RIG_H */
