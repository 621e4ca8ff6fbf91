/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stand-in for CUDA against what is known of CUDA: errors, when copies read,
 * who waits for whom, what a lost context answers, what may be captured. Also the
 * libraries on top of it against their definition.
 *
 * `race`, `glance` and `late` are mistakes in the use of it: the first two are for
 * the thread sanitizer to find, the third one for the address sanitizer. CTest runs
 * them by themselves, and wants them to be found.
 */
#include "fakecuda.h"

#include <pthread.h>

#include "test.h"

#define API(name, ...) extern CUresult name(__VA_ARGS__)
API(cuInit, unsigned);
API(cuDeviceGetCount, int *);
API(cuGetErrorName, CUresult, const char **);
API(cuDevicePrimaryCtxRetain, CUcontext *, CUdevice);
API(cuDevicePrimaryCtxRelease_v2, CUdevice);
API(cuCtxSetCurrent, CUcontext);
API(cuMemGetInfo_v2, size_t *, size_t *);
API(cuMemAlloc_v2, CUdeviceptr *, size_t);
API(cuMemFree_v2, CUdeviceptr);
API(cuMemAllocAsync, CUdeviceptr *, size_t, CUstream);
API(cuMemFreeAsync, CUdeviceptr, CUstream);
API(cuMemHostAlloc, void **, size_t, unsigned);
API(cuMemFreeHost, void *);
API(cuMemHostRegister_v2, void *, size_t, unsigned);
API(cuMemHostUnregister, void *);
API(cuPointerGetAttribute, void *, unsigned, CUdeviceptr);
API(cuMemcpyHtoDAsync_v2, CUdeviceptr, const void *, size_t, CUstream);
API(cuMemcpyDtoHAsync_v2, void *, CUdeviceptr, size_t, CUstream);
API(cuStreamCreate, CUstream *, unsigned);
API(cuStreamDestroy_v2, CUstream);
API(cuStreamSynchronize, CUstream);
API(cuStreamQuery, CUstream);
API(cuStreamWaitEvent, CUstream, CUevent, unsigned);
API(cuEventCreate, CUevent *, unsigned);
API(cuEventDestroy_v2, CUevent);
API(cuEventRecord, CUevent, CUstream);
API(cuEventQuery, CUevent);
API(cuEventSynchronize, CUevent);
API(cuEventElapsedTime, float *, CUevent, CUevent);
API(cuModuleLoadDataEx, CUmodule *, const void *, unsigned, unsigned *, void **);
API(cuModuleUnload, CUmodule);
API(cuModuleGetFunction, CUfunction *, CUmodule, const char *);
API(cuLaunchKernel, CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
    unsigned, CUstream, void **, void **);
API(cuThreadExchangeStreamCaptureMode, unsigned *);
API(cuStreamBeginCapture_v2, CUstream, unsigned);
API(cuStreamEndCapture, CUstream, CUgraph *);
API(cuStreamGetCaptureInfo_v2, CUstream, unsigned *, uint64_t *, CUgraph *, const CUgraphNode **,
    size_t *);
API(cuStreamUpdateCaptureDependencies, CUstream, CUgraphNode *, size_t, unsigned);
API(cuGraphInstantiateWithFlags, CUgraphExec *, CUgraph, unsigned long long);
API(cuGraphExecUpdate_v2, CUgraphExec, CUgraph, void *);
API(cuGraphLaunch, CUgraphExec, CUstream);
API(cuGraphExecDestroy, CUgraphExec);
API(cuGraphDestroy, CUgraph);
extern int fakecuda_fail(const char *list);
extern int cublasCreate_v2(void **);
extern int cublasDestroy_v2(void *);
extern int cublasSetStream_v2(void *, CUstream);
extern int cublasDgemm_v2(void *, int, int, int, int, int, const double *, const double *, int,
                          const double *, int, const double *, double *, int);
extern int cublasDsyrk_v2(void *, int, int, int, int, const double *, const double *, int,
                          const double *, double *, int);
extern int cublasDtrsm_v2(void *, int, int, int, int, int, int, const double *, const double *, int,
                          double *, int);
extern int cusolverDnCreate(void **);
extern int cusolverDnDestroy(void *);
extern int cusolverDnSetStream(void *, CUstream);
extern int cusolverDnDpotrf_bufferSize(void *, int, int, double *, int, int *);
extern int cusolverDnDpotrf(void *, int, int, double *, int, double *, int, int *);

static const char ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                          ".visible .entry store(\n\t.param .u64 store_param_0,\n"
                          "\t.param .u32 store_param_1\n)\n{ ret; }\n"
                          ".visible .entry twice(.param .u64 a, .param .u32 b)\n{ ret; }\n"
                          ".visible .entry spin(.param .u64 a)\n{ ret; }\n"
                          ".visible .entry trap()\n{ trap; }\n"
                          ".visible .entry axpy(.param .u64 a)\n{ ret; }\n" /* wrong on purpose */
                          ".visible .entry nonesuch()\n{ ret; }\n";

/* --- a context with a stream or two -------------------------------------- */

struct rig {
    CUcontext ctx;
    CUstream s, t;
    CUmodule mod;
    CUfunction store, twice, spin, trap;
};

static void rig_init(struct rig *r)
{
    CHECK_EQ(cuInit(0), 0);
    CHECK_EQ(cuDevicePrimaryCtxRetain(&r->ctx, 0), 0);
    CHECK_EQ(cuCtxSetCurrent(r->ctx), 0);
    CHECK_EQ(cuStreamCreate(&r->s, 1), 0);
    CHECK_EQ(cuStreamCreate(&r->t, 1), 0);
    CHECK_EQ(cuModuleLoadDataEx(&r->mod, ptx, 0, NULL, NULL), 0);
    CHECK_EQ(cuModuleGetFunction(&r->store, r->mod, "store"), 0);
    CHECK_EQ(cuModuleGetFunction(&r->twice, r->mod, "twice"), 0);
    CHECK_EQ(cuModuleGetFunction(&r->spin, r->mod, "spin"), 0);
    CHECK_EQ(cuModuleGetFunction(&r->trap, r->mod, "trap"), 0);
}

static void rig_fini(struct rig *r)
{
    CHECK_EQ(cuStreamDestroy_v2(r->s), 0);
    CHECK_EQ(cuStreamDestroy_v2(r->t), 0);
    CHECK_EQ(cuModuleUnload(r->mod), 0);
    CHECK_EQ(cuDevicePrimaryCtxRelease_v2(0), 0);
}

static CUresult launch(CUfunction f, CUstream s, void **args)
{
    return cuLaunchKernel(f, 4, 1, 1, 64, 1, 1, 0, s, args, NULL);
}

static CUresult store(struct rig *r, CUstream s, CUdeviceptr p, uint32_t v)
{
    void *args[] = {&p, &v};
    const CUresult e = launch(r->store, s, args);

    p = v = 0; /* they are copied at the launch */
    return e;
}

static CUresult twice(struct rig *r, CUstream s, CUdeviceptr p, uint32_t n)
{
    void *args[] = {&p, &n};

    return launch(r->twice, s, args);
}

static CUresult spin(struct rig *r, CUstream s, uint64_t ns)
{
    void *args[] = {&ns};

    return launch(r->spin, s, args);
}

static uint32_t load(struct rig *r, CUdeviceptr p)
{
    uint32_t v = 0;

    CHECK_EQ(cuMemcpyDtoHAsync_v2(&v, p, 4, r->s), 0);
    return v; /* pageable: it is here */
}

/* --- tests --------------------------------------------------------------- */

TEST(before_anything)
{
    const char *name = NULL;
    CUdeviceptr p;
    CUcontext ctx;
    int n;

    CHECK_EQ(cuDeviceGetCount(&n), FC_EINIT);
    CHECK_EQ(cuInit(0), 0);
    CHECK_EQ(cuDeviceGetCount(&n), 0);
    CHECK_EQ(n, 1);
    CHECK_EQ(cuMemAlloc_v2(&p, 4), FC_ECONTEXT);
    CHECK_EQ(cuDevicePrimaryCtxRetain(&ctx, 1), FC_EDEVICE);
    CHECK_EQ(cuGetErrorName(FC_ECONTEXT, &name), 0);
    CHECK_STR(name, "CUDA_ERROR_INVALID_CONTEXT");
    CHECK_EQ(cuGetErrorName((CUresult)12345, &name), FC_EVALUE);
    CHECK(name == NULL);
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    CHECK_EQ(cuInit(0), FC_ENODEVICE);
    unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST(memory_of_the_device)
{
    CUdeviceptr p, q;
    size_t left, total;
    struct rig r;

    rig_init(&r);
    CHECK_EQ(cuMemGetInfo_v2(&left, &total), 0);
    CHECK_EQ(left, total);
    CHECK_EQ(cuMemAlloc_v2(&p, total + 1), FC_ENOMEM);
    CHECK_EQ(cuMemAlloc_v2(&p, SIZE_MAX), FC_ENOMEM);
    CHECK_EQ(cuMemAlloc_v2(&p, 0), FC_EVALUE);
    CHECK_EQ(cuMemAlloc_v2(&p, total / 2), 0);
    CHECK_EQ(cuMemGetInfo_v2(&left, &total), 0);
    CHECK_EQ(left, total - total / 2);
    CHECK_EQ(cuMemAlloc_v2(&q, total / 2 + 100), FC_ENOMEM);
    /* What is on its way counts. */
    CHECK_EQ(spin(&r, r.s, 2000000), 0);
    CHECK_EQ(cuMemFreeAsync(p, r.s), 0);
    CHECK_EQ(cuMemFreeAsync(p, r.s), FC_EVALUE);
    CHECK_EQ(cuMemAllocAsync(&q, total / 2 + 100, r.s), 0);
    CHECK_EQ(cuMemFree_v2(q + 1), FC_EVALUE);
    CHECK_EQ(cuMemFree_v2(q), 0);
    CHECK_EQ(cuMemFree_v2(q), FC_EVALUE);
    rig_fini(&r);
}

TEST(memory_of_the_host)
{
    static char mine[10000];
    unsigned type = 0;
    void *pinned;
    struct rig r;

    rig_init(&r);
    CHECK_EQ(cuPointerGetAttribute(&type, 2, (uintptr_t)mine), FC_EVALUE);
    CHECK_EQ(cuMemHostRegister_v2(mine + 100, 1000, 1), 0);
    CHECK_EQ(cuPointerGetAttribute(&type, 2, (uintptr_t)mine + 500), 0);
    CHECK_EQ(type, 1);
    CHECK_EQ(cuMemHostRegister_v2(mine + 100, 1000, 1), FC_EREGISTERED);
    CHECK_EQ(cuMemHostRegister_v2(mine, 101, 1), FC_EREGISTERED);
    CHECK_EQ(cuMemHostRegister_v2(mine + 1099, 8, 1), FC_EREGISTERED);
    CHECK_EQ(cuMemHostRegister_v2(mine, sizeof(mine), 1), FC_EREGISTERED);
    CHECK_EQ(cuMemHostRegister_v2(mine, 100, 1), 0);
    CHECK_EQ(cuMemHostRegister_v2(mine + 1100, 8, 1), 0);
    /* Three neighbours are one piece to who uses them. */
    CHECK_EQ(fakecuda_touch(r.ctx, mine, 1108), 0);
    CHECK_EQ(cuMemHostUnregister(mine + 101), FC_EUNREGISTERED);
    CHECK_EQ(cuMemHostUnregister(mine + 100), 0);
    CHECK_EQ(cuMemHostUnregister(mine + 100), FC_EUNREGISTERED);
    CHECK_EQ(cuMemHostUnregister(mine), 0);
    CHECK_EQ(cuMemHostUnregister(mine + 1100), 0);
    CHECK_EQ(cuMemHostAlloc(&pinned, 100, 1), 0);
    CHECK_EQ(cuMemHostUnregister(pinned), FC_EUNREGISTERED);
    CHECK_EQ(cuMemFreeHost(pinned), 0);
    CHECK_EQ(cuMemFreeHost(pinned), FC_EVALUE);
    rig_fini(&r);
}

/* Pinned memory is read when the stream comes to it, pageable memory at once. */
TEST(when_copies_read)
{
    enum { SLOW_NS = 20000000 };
    uint32_t *pinned, pageable = 1;
    CUdeviceptr p, q;
    struct rig r;

    rig_init(&r);
    CHECK_EQ(cuMemHostAlloc((void **)&pinned, 4, 0), 0);
    CHECK_EQ(cuMemAlloc_v2(&p, 4), 0);
    CHECK_EQ(cuMemAlloc_v2(&q, 4), 0);
    CHECK_EQ(cuMemcpyHtoDAsync_v2(q, &pageable, 4, r.s), 0);
    CHECK_EQ(spin(&r, r.s, SLOW_NS), 0);
    CHECK_EQ(cuMemcpyHtoDAsync_v2(q, &pageable, 4, r.s), 0);
    CHECK_EQ(cuStreamQuery(r.s), FC_ENOTREADY);
    pageable = 2;
    CHECK_EQ(load(&r, q), 1);
    CHECK_EQ(cuStreamQuery(r.s), 0);
    *pinned = 3;
    CHECK_EQ(cuMemcpyHtoDAsync_v2(p, pinned, 4, r.s), 0);
    CHECK_EQ(cuStreamSynchronize(r.s), 0);
    *pinned = 4;
    CHECK_EQ(load(&r, p), 3);
    CHECK_EQ(store(&r, r.s, p, 5), 0);
    CHECK_EQ(spin(&r, r.s, SLOW_NS), 0);
    CHECK_EQ(cuMemcpyDtoHAsync_v2(pinned, p, 4, r.s), 0);
    CHECK_EQ(cuStreamQuery(r.s), FC_ENOTREADY);
    CHECK_EQ(cuStreamSynchronize(r.s), 0);
    CHECK_EQ(*pinned, 5);
    CHECK_EQ(cuMemFree_v2(p), 0);
    CHECK_EQ(cuMemFree_v2(q), 0);
    CHECK_EQ(cuMemFreeHost(pinned), 0);
    rig_fini(&r);
}

TEST(events)
{
    CUevent e, f, plain;
    CUdeviceptr p;
    struct rig r;
    float ms;

    rig_init(&r);
    CHECK_EQ(cuMemAlloc_v2(&p, 4), 0);
    CHECK_EQ(cuEventCreate(&e, 0), 0);
    CHECK_EQ(cuEventCreate(&f, 0), 0);
    CHECK_EQ(cuEventCreate(&plain, 2), 0);
    CHECK_EQ(cuEventQuery(e), 0); /* never recorded */
    CHECK_EQ(cuEventElapsedTime(&ms, e, f), FC_EHANDLE);
    for (unsigned i = 0; i < 50; i++) {
        CHECK_EQ(store(&r, r.s, p, i), 0);
        CHECK_EQ(cuEventRecord(e, r.s), 0);
        CHECK_EQ(cuStreamWaitEvent(r.t, e, 0), 0);
        CHECK_EQ(twice(&r, r.t, p, 1), 0);
        CHECK_EQ(cuEventRecord(plain, r.t), 0);
        CHECK_EQ(cuStreamWaitEvent(r.s, plain, 0), 0);
        CHECK_EQ(load(&r, p), 2 * i);
    }
    CHECK_EQ(cuEventRecord(e, r.s), 0);
    CHECK_EQ(spin(&r, r.s, 5000000), 0);
    CHECK_EQ(cuEventRecord(f, r.s), 0);
    CHECK_EQ(cuEventQuery(f), FC_ENOTREADY);
    CHECK_EQ(cuEventElapsedTime(&ms, e, f), FC_ENOTREADY);
    CHECK_EQ(cuEventSynchronize(f), 0);
    CHECK_EQ(cuEventElapsedTime(&ms, e, f), 0);
    CHECK(ms >= 5 && ms < 5000);
    CHECK_EQ(cuEventElapsedTime(&ms, e, plain), FC_EHANDLE);
    CHECK_EQ(cuEventDestroy_v2(e), 0);
    CHECK_EQ(cuEventDestroy_v2(f), 0);
    CHECK_EQ(cuEventDestroy_v2(plain), 0);
    CHECK_EQ(cuMemFree_v2(p), 0);
    rig_fini(&r);
}

static void lose(CUresult want, bool traps)
{
    CUdeviceptr p, q;
    struct rig r;
    CUevent e;

    rig_init(&r);
    CHECK_EQ(cuMemAlloc_v2(&p, 400), 0);
    CHECK_EQ(cuEventCreate(&e, 0), 0);
    CHECK_EQ(twice(&r, r.s, p, 100), 0);
    CHECK_EQ(cuStreamSynchronize(r.s), 0);
    CHECK_EQ(traps ? launch(r.trap, r.s, NULL) : twice(&r, r.s, p, 101), 0);
    CHECK_EQ(cuStreamSynchronize(r.s), want);
    CHECK_EQ(cuEventRecord(e, r.t), want);
    CHECK_EQ(cuEventQuery(e), want);
    CHECK_EQ(cuMemAlloc_v2(&q, 4), want);
    CHECK_EQ(cuMemFree_v2(p), want);
    CHECK_EQ(cuStreamDestroy_v2(r.s), want);
    CHECK_EQ(cuDevicePrimaryCtxRelease_v2(0), 0);
    CHECK_EQ(cuMemAlloc_v2(&q, 4), FC_ECONTEXT);
    /* A new one is as good as new. */
    rig_init(&r);
    CHECK_EQ(cuMemAlloc_v2(&p, 4), 0);
    CHECK_EQ(store(&r, r.s, p, 9), 0);
    CHECK_EQ(load(&r, p), 9);
    CHECK_EQ(cuMemFree_v2(p), 0);
    rig_fini(&r);
}

TEST(lost_contexts)
{
    lose(FC_EADDRESS, false);
    lose(FC_ELAUNCH, true);
}

TEST(memory_that_is_gone)
{
    void *pinned;
    CUdeviceptr p;
    struct rig r;

    rig_init(&r);
    CHECK_EQ(cuMemAllocAsync(&p, 4, r.s), 0);
    CHECK_EQ(cuMemFreeAsync(p, r.s), 0);
    CHECK_EQ(store(&r, r.s, p, 1), 0); /* only found when it runs */
    CHECK_EQ(cuStreamSynchronize(r.s), FC_EADDRESS);
    CHECK_EQ(cuDevicePrimaryCtxRelease_v2(0), 0);

    rig_init(&r);
    pinned = malloc(100);
    CHECK_EQ(cuMemAlloc_v2(&p, 100), 0);
    CHECK_EQ(cuMemHostRegister_v2(pinned, 100, 0), 0);
    CHECK_EQ(fakecuda_touch(r.ctx, pinned, 100), 0);
    CHECK_EQ(spin(&r, r.s, 5000000), 0);
    CHECK_EQ(cuMemcpyHtoDAsync_v2(p, pinned, 100, r.s), 0);
    CHECK_EQ(cuMemHostUnregister(pinned), 0);
    CHECK_EQ(cuStreamSynchronize(r.s), FC_EADDRESS);
    CHECK_EQ(cuDevicePrimaryCtxRelease_v2(0), 0);

    rig_init(&r);
    CHECK_EQ(cuMemHostRegister_v2(pinned, 99, 0), 0);
    CHECK_EQ(fakecuda_touch(r.ctx, pinned, 100), FC_EADDRESS);
    CHECK_EQ(cuDevicePrimaryCtxRelease_v2(0), 0);
    free(pinned);
}

TEST(modules)
{
    char log[100] = "";
    unsigned options[] = {5, 6};
    void *values[] = {log, (void *)sizeof(log)};
    CUfunction f;
    struct rig r;
    CUmodule m;

    rig_init(&r);
    CHECK_EQ(cuModuleLoadDataEx(&m, "what?", 2, options, values), FC_EPTX);
    CHECK(strstr(log, ".version") != NULL);
    CHECK_EQ(cuModuleLoadDataEx(&m, ".version 1 .target x { {}", 2, options, values), FC_EPTX);
    CHECK_EQ(cuModuleGetFunction(&f, r.mod, "stor"), FC_ENOTFOUND);
    CHECK_EQ(cuModuleGetFunction(&f, r.mod, "empty"), FC_ENOTFOUND);
    CHECK_EQ(cuModuleGetFunction(&f, r.mod, "axpy"), FC_ENOTFOUND);
    CHECK_EQ(cuModuleGetFunction(&f, r.mod, "nonesuch"), FC_ENOTFOUND);
    CHECK_EQ(cuLaunchKernel(r.trap, 0, 1, 1, 1, 1, 1, 0, r.s, NULL, NULL), FC_EVALUE);
    CHECK_EQ(cuLaunchKernel(r.trap, 1, 1, 1, 1025, 1, 1, 0, r.s, NULL, NULL), FC_EVALUE);
    CHECK_EQ(cuLaunchKernel(r.trap, 1, 1, 1, 1, 1, 1, 1 << 20, r.s, NULL, NULL), FC_EVALUE);
    CHECK_EQ(cuStreamSynchronize(r.s), 0);
    rig_fini(&r);
}

TEST(failures_on_demand)
{
    CUdeviceptr p, q;
    struct rig r;

    rig_init(&r);
    CHECK_EQ(fakecuda_fail("launch:2:701,alloc:1:2"), 0);
    CHECK_EQ(cuMemAlloc_v2(&p, 4), FC_ENOMEM);
    CHECK_EQ(cuMemAlloc_v2(&p, 4), 0);
    CHECK_EQ(store(&r, r.s, p, 1), 0);
    CHECK_EQ(store(&r, r.s, p, 2), 701);
    CHECK_EQ(load(&r, p), 1);
    CHECK_EQ(fakecuda_fail("launch:1:719"), 0);
    CHECK_EQ(store(&r, r.s, p, 3), FC_ELAUNCH);
    CHECK_EQ(cuMemAlloc_v2(&q, 4), FC_ELAUNCH);
    CHECK_EQ(fakecuda_fail(""), 0);
    CHECK(fakecuda_fail("lunch:1:719") != 0);
    CHECK_EQ(fakecuda_fail(NULL), 0);
    CHECK_EQ(cuDevicePrimaryCtxRelease_v2(0), 0);
}

/* --- graphs -------------------------------------------------------------- */

enum { THREAD_LOCAL = 1, RELAXED = 2, SET = 1 };

/* p[0] = v; p[1] and p[2] in any order; then p[0] *= 2: by the dependencies alone.
 * `joins`: the last one waits for both. */
static CUgraph diamond(struct rig *r, CUdeviceptr p, uint32_t v, bool joins)
{
    const CUgraphNode *now;
    CUgraphNode top, leaf[2];
    unsigned status;
    CUgraph g;
    size_t n;

    CHECK_EQ(cuStreamBeginCapture_v2(r->s, THREAD_LOCAL), 0);
    CHECK_EQ(store(r, r->s, p, v), 0);
    CHECK_EQ(cuStreamGetCaptureInfo_v2(r->s, &status, NULL, NULL, &now, &n), 0);
    CHECK(status == 1 && n == 1);
    top = now[0];
    for (unsigned i = 0; i < 2; i++) {
        CHECK_EQ(cuStreamUpdateCaptureDependencies(r->s, &top, 1, SET), 0);
        CHECK_EQ(store(r, r->s, p + 4 + 4 * i, v + i), 0);
        CHECK_EQ(cuStreamGetCaptureInfo_v2(r->s, &status, NULL, NULL, &now, &n), 0);
        CHECK_EQ(n, 1);
        leaf[i] = now[0];
    }
    CHECK_EQ(cuStreamUpdateCaptureDependencies(r->s, leaf, joins ? 2 : 1, SET), 0);
    CHECK_EQ(twice(r, r->s, p, 3), 0);
    CHECK_EQ(cuStreamEndCapture(r->s, &g), 0);
    return g;
}

TEST(graphs)
{
    void *update[3];
    CUgraphExec e;
    CUdeviceptr p;
    struct rig r;
    CUgraph g;

    rig_init(&r);
    CHECK_EQ(cuMemAlloc_v2(&p, 12), 0);
    CHECK_EQ(store(&r, r.s, p, 77), 0);
    g = diamond(&r, p, 10, true);
    CHECK_EQ(load(&r, p), 77); /* nothing was done */
    CHECK_EQ(cuGraphInstantiateWithFlags(&e, g, 0), 0);
    CHECK_EQ(cuGraphDestroy(g), 0);
    for (unsigned i = 0; i < 40; i++) {
        CHECK_EQ(cuGraphLaunch(e, i % 2 == 0 ? r.s : r.t), 0);
        CHECK_EQ(cuStreamSynchronize(i % 2 == 0 ? r.s : r.t), 0);
        CHECK_EQ(load(&r, p), 20 + 2 * i);
        CHECK_EQ(load(&r, p + 4), 20 + 2 * i);
        CHECK_EQ(load(&r, p + 8), 20 + 2 * i + 2);
        g = diamond(&r, p, 11 + i, true);
        CHECK_EQ(cuGraphExecUpdate_v2(e, g, update), 0);
        CHECK_EQ(cuGraphDestroy(g), 0);
    }
    g = diamond(&r, p, 1, false);
    CHECK_EQ(cuGraphExecUpdate_v2(e, g, update), FC_EUPDATE);
    CHECK_EQ(cuGraphDestroy(g), 0);
    CHECK_EQ(cuGraphLaunch(e, r.s), 0);
    CHECK_EQ(load(&r, p), 100);
    CHECK_EQ(cuGraphExecDestroy(e), 0);
    CHECK_EQ(cuMemFree_v2(p), 0);
    rig_fini(&r);
}

static void *other_thread(void *arg)
{
    struct rig *r = arg;
    CUdeviceptr p;
    CUgraph g;

    CHECK_EQ(cuCtxSetCurrent(r->ctx), 0);
    CHECK_EQ(cuMemAlloc_v2(&p, 4), 0); /* not its business */
    CHECK_EQ(cuMemFree_v2(p), 0);
    CHECK_EQ(cuStreamEndCapture(r->s, &g), FC_EWRONG_THREAD);
    return NULL;
}

TEST(captures_and_what_they_forbid)
{
    unsigned mode = RELAXED;
    CUevent e, before;
    pthread_t other;
    CUdeviceptr p;
    struct rig r;
    CUmodule m;
    CUgraph g;

    rig_init(&r);
    CHECK_EQ(cuEventCreate(&e, 0), 0);
    CHECK_EQ(cuEventCreate(&before, 0), 0);
    CHECK_EQ(cuEventRecord(before, r.t), 0);
    CHECK_EQ(cuMemAlloc_v2(&p, 4), 0);
    CHECK_EQ(cuStreamEndCapture(r.s, &g), FC_ESTATE);
    for (int what = 0; what < 6; what++) {
        CUresult want = FC_ECAPTURE, got = FC_OK;
        CUdeviceptr q;

        CHECK_EQ(cuStreamBeginCapture_v2(r.s, THREAD_LOCAL), 0);
        CHECK_EQ(cuStreamBeginCapture_v2(r.s, THREAD_LOCAL), FC_ESTATE);
        CHECK_EQ(store(&r, r.s, p, 1), 0);
        switch (what) {
        case 0: got = cuStreamSynchronize(r.s); break;
        case 1: got = cuMemAlloc_v2(&q, 4); break;
        case 2: got = cuModuleLoadDataEx(&m, ptx, 0, NULL, NULL); break;
        case 3: got = cuMemAllocAsync(&q, 4, r.s); break;
        case 4:
            CHECK_EQ(cuEventRecord(e, r.s), 0);
            want = FC_ECAPTURED_EVENT;
            got = cuEventQuery(e);
            break;
        case 5:
            want = FC_EISOLATION;
            got = cuStreamWaitEvent(r.s, before, 0);
            break;
        }
        CHECK_EQ(got, want);
        CHECK_EQ(store(&r, r.s, p, 1), FC_EINVALIDATED);
        CHECK_EQ(cuStreamEndCapture(r.s, &g), FC_EINVALIDATED);
        CHECK_EQ(store(&r, r.s, p, (uint32_t)what), 0);
        CHECK_EQ(load(&r, p), what);
    }
    /* Relaxed for a moment. */
    CHECK_EQ(cuStreamBeginCapture_v2(r.s, THREAD_LOCAL), 0);
    CHECK_EQ(cuThreadExchangeStreamCaptureMode(&mode), 0);
    CHECK_EQ(cuModuleLoadDataEx(&m, ptx, 0, NULL, NULL), 0);
    CHECK_EQ(cuModuleUnload(m), 0);
    CHECK_EQ(cuThreadExchangeStreamCaptureMode(&mode), 0);
    CHECK_EQ(mode, RELAXED);
    CHECK_EQ(pthread_create(&other, NULL, other_thread, &r), 0);
    CHECK_EQ(pthread_join(other, NULL), 0);
    /* Another stream joins, and must come back. */
    CHECK_EQ(store(&r, r.s, p, 1), 0);
    CHECK_EQ(cuEventRecord(e, r.s), 0);
    CHECK_EQ(cuStreamWaitEvent(r.t, e, 0), 0);
    CHECK_EQ(twice(&r, r.t, p, 1), 0);
    CHECK_EQ(cuStreamEndCapture(r.s, &g), FC_EUNJOINED);
    CHECK_EQ(twice(&r, r.t, p, 1), 0); /* no longer captured */
    CHECK_EQ(cuStreamSynchronize(r.t), 0);
    CHECK_EQ(load(&r, p), 10);
    CHECK_EQ(cuEventDestroy_v2(e), 0);
    CHECK_EQ(cuEventDestroy_v2(before), 0);
    CHECK_EQ(cuMemFree_v2(p), 0);
    rig_fini(&r);
}

/* --- libraries ----------------------------------------------------------- */

enum { N = 13, LD = 17 };

static CUdeviceptr upload(struct rig *r, const double *a, size_t n)
{
    CUdeviceptr p;

    CHECK_EQ(cuMemAlloc_v2(&p, n * sizeof(double)), 0);
    CHECK_EQ(cuMemcpyHtoDAsync_v2(p, a, n * sizeof(double), r->s), 0);
    return p;
}

static void download(struct rig *r, double *a, CUdeviceptr p, size_t n)
{
    CHECK_EQ(cuMemcpyDtoHAsync_v2(a, p, n * sizeof(double), r->s), 0);
    CHECK_EQ(cuMemFree_v2(p), 0);
}

static double *on(CUdeviceptr p)
{
    return (double *)(uintptr_t)p;
}

/* The factor of M, then X M = B by it; and A A' by two functions. */
static void check_fill(struct rig *r, void *blas, void *solver, int fill)
{
    static double m[LD * N], b[LD * N], x[LD * N], z[LD * N];
    const double one = 1, zero = 0, minus = -1;
    CUdeviceptr dm, df, dx, dz, work, info;
    int count, failed = 0;

    for (int j = 0; j < N; j++)
        for (int i = 0; i < LD; i++) {
            m[i + j * LD] = i == j ? N : 1.0 / (1 + i + j);
            b[i + j * LD] = i < N ? 1 + (3 * i + 5 * j) % 7 : 0.0 / 1;
        }
    dm = upload(r, m, LD * N);
    df = upload(r, m, LD * N);
    dx = upload(r, b, LD * N);
    CHECK_EQ(cusolverDnDpotrf_bufferSize(solver, fill, N, on(df), LD, &count), 0);
    CHECK_EQ(cuMemAlloc_v2(&work, (size_t)count * 8), 0);
    CHECK_EQ(cuMemAlloc_v2(&info, 4), 0);
    CHECK_EQ(cusolverDnDpotrf(solver, fill, N, on(df), LD, on(work), count, (int *)(uintptr_t)info),
             0);
    /* X = B M^-1: with M = L L' that is B L'^-1 L^-1, with U'U B U^-1 U'^-1. */
    for (int k = 0; k < 2; k++)
        CHECK_EQ(cublasDtrsm_v2(blas, 1, fill, fill == 0 ? 1 - k : k, 0, N, N, &one, on(df), LD,
                                on(dx), LD),
                 0);
    dz = upload(r, b, LD * N);
    CHECK_EQ(cublasDgemm_v2(blas, 0, 1, N, N, N, &one, on(dx), LD, on(dm), LD, &minus, on(dz), LD),
             0);
    download(r, z, dz, LD * N);
    for (int j = 0; j < N; j++)
        for (int i = 0; i < N; i++)
            CHECK_NEAR(z[i + j * LD], 0, 1e-12);
    /* One triangle of X X', twice. */
    dz = upload(r, b, LD * N);
    CHECK_EQ(cublasDsyrk_v2(blas, fill, 0, N, N, &one, on(dx), LD, &zero, on(dz), LD), 0);
    CHECK_EQ(cublasDgemm_v2(blas, 0, 1, N, N, N, &one, on(dx), LD, on(dx), LD, &minus, on(dz), LD),
             0);
    download(r, z, dz, LD * N);
    for (int j = 0; j < N; j++)
        for (int i = fill == 0 ? j : 0; i < (fill == 0 ? N : j + 1); i++)
            CHECK_NEAR(z[i + j * LD], 0, 1e-12);
    CHECK_EQ(cuMemcpyDtoHAsync_v2(&failed, info, 4, r->s), 0);
    CHECK_EQ(failed, 0);
    download(r, x, dx, LD * N);
    CHECK_EQ(cuMemFree_v2(dm), 0);
    /* A pivot that is not positive. */
    memset(m, 0, sizeof(m));
    CHECK_EQ(cuMemcpyHtoDAsync_v2(df + 3 * (LD + 1) * 8, m, 8, r->s), 0);
    CHECK_EQ(cusolverDnDpotrf(solver, fill, N, on(df), LD, on(work), count, (int *)(uintptr_t)info),
             0);
    CHECK_EQ(cuMemcpyDtoHAsync_v2(&failed, info, 4, r->s), 0);
    CHECK_EQ(failed, 4);
    CHECK_EQ(cuMemFree_v2(df), 0);
    CHECK_EQ(cuMemFree_v2(work), 0);
    CHECK_EQ(cuMemFree_v2(info), 0);
}

TEST(libraries)
{
    void *blas, *solver;
    struct rig r;

    rig_init(&r);
    CHECK_EQ(cublasCreate_v2(&blas), 0);
    CHECK_EQ(cusolverDnCreate(&solver), 0);
    CHECK_EQ(cublasSetStream_v2(blas, r.s), 0);
    CHECK_EQ(cusolverDnSetStream(solver, r.s), 0);
    check_fill(&r, blas, solver, 0);
    check_fill(&r, blas, solver, 1);
    CHECK_EQ(cublasDestroy_v2(blas), 0);
    CHECK_EQ(cusolverDnDestroy(solver), 0);
    rig_fini(&r);
}

/* --- for the sanitizers -------------------------------------------------- */

/* Asked for by name only. */
static bool is_wanted(const char *name)
{
    const char *want = getenv("FAKECUDA_MISTAKE");

    return want != NULL && strcmp(want, name) == 0;
}

TEST(race)
{
    CUdeviceptr p;
    struct rig r;

    if (!is_wanted("race"))
        SKIP("a mistake, made only when asked for");
    rig_init(&r);
    CHECK_EQ(cuMemAlloc_v2(&p, 4), 0);
    for (unsigned i = 0; i < 100; i++) {
        CHECK_EQ(store(&r, r.s, p, 1), 0);
        CHECK_EQ(store(&r, r.t, p, 2), 0); /* nothing orders these two */
    }
    CHECK_EQ(cuMemFree_v2(p), 0);
    rig_fini(&r);
}

/* The host looks at the bytes before the copy has been waited for, although it
 * has been over for long. */
TEST(glance)
{
    uint32_t *pinned;
    CUdeviceptr p;
    struct rig r;

    if (!is_wanted("glance"))
        SKIP("a mistake, made only when asked for");
    rig_init(&r);
    CHECK_EQ(cuMemHostAlloc((void **)&pinned, 4, 0), 0);
    CHECK_EQ(cuMemAlloc_v2(&p, 4), 0);
    CHECK_EQ(store(&r, r.s, p, 7), 0);
    CHECK_EQ(cuMemcpyDtoHAsync_v2(pinned, p, 4, r.s), 0);
    usleep(100000);
    CHECK_EQ(store(&r, r.s, p, 7), 0); /* a lock of the stream, but no wait */
    CHECK_EQ(*pinned, 7);
    CHECK_EQ(cuMemFree_v2(p), 0);
    CHECK_EQ(cuMemFreeHost(pinned), 0);
    rig_fini(&r);
}

TEST(late)
{
    CUdeviceptr p;
    struct rig r;

    if (!is_wanted("late"))
        SKIP("a mistake, made only when asked for");
    rig_init(&r);
    CHECK_EQ(cuMemAllocAsync(&p, 64, r.s), 0);
    CHECK_EQ(cuMemFreeAsync(p, r.s), 0);
    CHECK_EQ(cuStreamSynchronize(r.s), 0);
    CHECK_EQ(*(volatile char *)(uintptr_t)p, 1);
    rig_fini(&r);
}

TEST_MAIN(before_anything, memory_of_the_device, memory_of_the_host, when_copies_read, events,
          lost_contexts, memory_that_is_gone, modules, failures_on_demand, graphs,
          captures_and_what_they_forbid, libraries, race, glance, late)
