/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TESTS_FAKECUDA_H
#define HEDDLE_TESTS_FAKECUDA_H

/*
 * fakecuda: the driver API of CUDA on cores, for tests. See README.md.
 *
 * Structure  sync.c     locks, and what the thread sanitizer is told
 *            memory.c   which bytes are whose
 *            device.c   devices, contexts, settings, failures on demand
 *            stream.c   queues, a thread each; events
 *            work.c     what a stream does: kernels, copies, fills, calls
 *            copy.c     the copies of the API
 *            pool.c     the allocations of the API
 *            capture.c  work that is noted down instead of being done
 *            graph.c    graphs of such work, and how they run
 *            module.c   PTX, functions, launches
 *            kernels.c  the kernels, in C
 * Invariant  what one thread did is known to another one (in the sense of the
 *            thread sanitizer) only where CUDA says so: work after its call, work
 *            after work before it on its stream, events, waiting. Locks do not
 *            count: see sync.c.
 * Threads    any, as with CUDA. One lock at a time, but for these, in this order:
 *            captures; a context's; a stream's or a mark's.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FC_EXPORT __attribute__((visibility("default")))

/* Defines a function of the API: CU(cuInit, unsigned flags) { ... } */
#define CU(name, ...)                                                                              \
    FC_EXPORT CUresult name(__VA_ARGS__);                                                          \
    CUresult name(__VA_ARGS__)

/* --- types of the API ---------------------------------------------------- */

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;

typedef enum {
    FC_OK = 0,
    FC_EVALUE = 1,
    FC_ENOMEM = 2,
    FC_EINIT = 3,
    FC_ENODEVICE = 100,
    FC_EDEVICE = 101,
    FC_ECONTEXT = 201,
    FC_EBINARY = 209,
    FC_EPTX = 218,
    FC_EHANDLE = 400,
    FC_ESTATE = 401,
    FC_ENOTFOUND = 500,
    FC_ENOTREADY = 600,
    FC_EADDRESS = 700,
    FC_EPEER_ON = 704,
    FC_EPEER_OFF = 705,
    FC_EREGISTERED = 712,
    FC_EUNREGISTERED = 713,
    FC_ELAUNCH = 719,
    FC_ENOTSUPPORTED = 801,
    FC_ECAPTURE = 900, /* not while capturing */
    FC_EINVALIDATED = 901,
    FC_EMERGE = 902,
    FC_EUNMATCHED = 903,
    FC_EUNJOINED = 904,
    FC_EISOLATION = 905,
    FC_EIMPLICIT = 906,
    FC_ECAPTURED_EVENT = 907,
    FC_EWRONG_THREAD = 908,
    FC_EUPDATE = 910
} CUresult;

/* --- sync.c -------------------------------------------------------------- */

struct fc_lock {
    _Atomic uint32_t word; /* 0 free, 1 held, 2 held and waited for */
};

struct fc_cond {
    _Atomic uint32_t count;
};

void fc_lock(struct fc_lock *l);
void fc_unlock(struct fc_lock *l);
void fc_wait(struct fc_cond *c, struct fc_lock *l);
void fc_wake(struct fc_cond *c); /* all of them */

/* For the thread sanitizer: what was done before release(at), by any thread, is
 * known after acquire(at). */
void fc_release(void *at);
void fc_acquire(void *at);

uint64_t fc_now_ns(void);
/* Lets others run for about so long. */
void fc_pause(uint64_t ns);
uint32_t fc_random(void); /* any thread */
void fc_random_seed(uint64_t seed);

/* --- memory.c ------------------------------------------------------------ */

enum fc_kind { FC_DEVICE = 1, FC_HOST, FC_REGISTERED };

struct fc_block {
    uintptr_t base;
    size_t bytes;
    enum fc_kind kind;
    CUcontext ctx;
    CUmemoryPool pool;
    bool is_going; /* cuMemFreeAsync() was called */
};

/* False: it overlaps another one, or there are too many. */
bool fc_block_add(const struct fc_block *b);
/* The block that begins there. */
bool fc_block_take(uintptr_t base, struct fc_block *out);
/* The block that holds all these bytes (out may be NULL). */
bool fc_block_find(const void *at, size_t bytes, struct fc_block *out);
/* Marks it as being freed; false: there is none, or it is already. */
bool fc_block_go(uintptr_t base);
/* Some block of this context, and of this pool (NULL: any); false: none. */
bool fc_block_of(CUcontext ctx, CUmemoryPool pool, struct fc_block *out);

/* --- device.c ------------------------------------------------------------ */

enum { FC_DEVICES = 16 };

enum fc_what {
    FC_OBJ_STREAM = 0x5742ea01,
    FC_OBJ_EVENT,
    FC_OBJ_MODULE,
    FC_OBJ_POOL,
    FC_OBJ_GRAPH,
    FC_OBJ_EXEC,
    FC_OBJ_HANDLE,
    FC_OBJ_GONE
};

/* First member of all that a context owns. */
struct fc_obj {
    enum fc_what what;
    CUcontext ctx;
    struct fc_obj *prev, *next;
};

struct CUctx_st {
    CUdevice device;
    struct fc_lock lock; /* refs, the list, nthreads */
    struct fc_cond cond;
    _Atomic unsigned refs;
    struct fc_obj *objects;
    unsigned nthreads;       /* of streams */
    CUstream null;           /* the stream 0, made when it is used */
    _Atomic int sticky;      /* the error that ended it, or 0 */
    _Atomic unsigned peers;  /* bit per device */
    _Atomic uint64_t memory; /* bytes in use */
    struct fc_lock mlock;    /* for mcond: some memory came back */
    struct fc_cond mcond;
    unsigned ngoing; /* frees on their way */
};

struct fc_settings {
    unsigned ndevices;
    uint64_t memory;
    uint64_t delay_ns;
    int version;
    bool has_pools, has_peers, wants_leaks;
};

extern struct fc_settings fc_settings;

/* The current context of this thread, alive and well. */
CUresult fc_enter(CUcontext *ctx_out);
/* The same, when `obj` is alive too and of the right kind. */
CUresult fc_enter_obj(CUcontext *ctx_out, const void *obj, enum fc_what what);
/* The context is lost; the first reason stays. */
void fc_lose(CUcontext ctx, CUresult why);

void fc_obj_add(struct fc_obj *o, enum fc_what what, CUcontext ctx);
void fc_obj_remove(struct fc_obj *o);

/* For the libraries on top: the zeroed memory of a handle, which the current context takes
 * with it when it ends. NULL: there is no context, or no memory. */
FC_EXPORT void *fakecuda_handle_create(size_t bytes);
FC_EXPORT void fakecuda_handle_destroy(void *handle);

enum fc_class {
    FC_FAIL_LAUNCH,
    FC_FAIL_COPY,
    FC_FAIL_ALLOC,
    FC_FAIL_EVENT,
    FC_FAIL_REGISTER,
    FC_FAIL_HOST,
    FC_FAIL_GRAPH,
    FC_NCLASSES
};

/* Not FC_OK when the settings want this call to fail. */
CUresult fc_fail(CUcontext ctx, enum fc_class c);

/* Ends the program: out of memory for the stand-in itself. */
void *fc_new(size_t bytes); /* zeroed */

/* --- work.c -------------------------------------------------------------- */

enum fc_work_kind { FC_WORK_EMPTY, FC_WORK_KERNEL, FC_WORK_COPY, FC_WORK_FILL, FC_WORK_CALL };

struct fc_kernel; /* kernels.c */

typedef void (*fakecuda_fn)(CUcontext ctx, void *arg);

/* What can be put on a stream or into a graph. Owns `blob`. */
struct fc_work {
    enum fc_work_kind kind;
    CUcontext ctx;
    void *blob; /* arguments, or a staging buffer */
    size_t blob_bytes;
    union {
        struct {
            const struct fc_kernel *kernel;
            uint64_t nthreads;
            CUfunction function;
            unsigned grid[3], block[3], shared;
        } launch;
        struct {
            char *dst;
            const char *src;
            size_t width, height, dst_pitch, src_pitch;
            /* Host memory has no owner when it is pageable, and is not looked up. */
            bool is_dst_pageable, is_src_pageable;
        } copy;
        struct {
            char *at;
            uint32_t value;
            unsigned elem;
            size_t n;
        } fill;
        fakecuda_fn call;
    } u;
};

struct fc_work fc_work_copy(const struct fc_work *w); /* with its own blob */
void fc_work_fini(struct fc_work *w);
void fc_work_run(const struct fc_work *w);

/* Are these bytes valid for the device? If not, the context is lost. Also for
 * the libraries on top. */
FC_EXPORT int fakecuda_touch(CUcontext ctx, const void *at, size_t bytes);
/* The same question without consequences. */
FC_EXPORT bool fakecuda_is_memory(const void *at, size_t bytes);

/* --- stream.c ------------------------------------------------------------ */

/* Something that will have happened; shared by who waits for it. */
struct fc_mark {
    struct fc_lock lock;
    struct fc_cond cond;
    _Atomic unsigned refs;
    bool is_done;
    uint64_t ns;
};

struct fc_mark *fc_mark_new(unsigned refs);
void fc_mark_unref(struct fc_mark *m);
void fc_mark_set(struct fc_mark *m);
bool fc_mark_test(struct fc_mark *m); /* true: it is known, too */
void fc_mark_wait(struct fc_mark *m);

struct fc_plan; /* graph.c: a graph that can run */

enum fc_op_kind {
    FC_OP_WORK,
    FC_OP_RECORD,
    FC_OP_WAIT,
    FC_OP_PLAN,
    FC_OP_ALLOC,
    FC_OP_FREE,
    FC_OP_STOP
};

struct fc_op {
    enum fc_op_kind kind;
    struct fc_op *next;
    struct fc_work work;
    struct fc_mark *mark;
    struct fc_plan *plan;
    uintptr_t base;
    size_t bytes;
};

struct fc_capture;

struct CUstream_st {
    struct fc_obj obj;
    bool is_blocking;
    int priority;
    struct fc_lock lock; /* the queue and both counts */
    struct fc_cond cond;
    struct fc_op *head, *tail;
    uint64_t ngiven, ndone;
    /* Under the lock of capture.c. */
    struct fc_capture *capture;
    struct fc_node_set {
        CUgraphNode *v;
        size_t n;
    } deps;
};

struct CUevent_st {
    struct fc_obj obj;
    unsigned flags;
    struct fc_lock lock;
    struct fc_mark *mark; /* of the last record; NULL: none yet */
    /* Of the last record, when that was captured; under capture.c's lock. */
    uint64_t capture_id;
    struct fc_node_set deps;
};

/* The stream of the handle (0: the context's own), usable from this context. */
CUresult fc_stream_of(CUstream h, CUcontext *ctx_out, CUstream *stream_out);
/* Puts the operation last; takes it over. */
void fc_stream_put(CUstream s, const struct fc_op *op);
/* Work that may be captured instead; takes it over, also on failure. */
CUresult fc_stream_work(CUstream s, struct fc_work *w);
void fc_stream_wait(CUstream s); /* for all that it was given */
void fc_context_wait(CUcontext ctx);
void fc_stream_close(CUstream s); /* ends when all is done; frees itself */
void fc_event_close(CUevent e);

/* For the libraries on top: fn(ctx, copy of arg) in the order of the stream. */
FC_EXPORT CUresult fakecuda_host_call(CUstream h, fakecuda_fn fn, const void *arg, size_t bytes);

/* --- capture.c ----------------------------------------------------------- */

/* Refuses, and spoils the captures it concerns, when this thread must not do what
 * is not captured. */
CUresult fc_capture_unsafe(void);
FC_EXPORT CUresult fakecuda_unsafe(void);
/* FC_OK and *taken: the work became a node. FC_OK and not: do it. */
CUresult fc_capture_work(CUstream s, struct fc_work *w, bool *taken);
/* For calls that can never be captured, of a stream that may be capturing. */
CUresult fc_capture_refuse(CUstream s);
CUresult fc_capture_record(CUstream s, CUevent e, bool *taken);
CUresult fc_capture_wait(CUstream s, CUevent e, bool *taken);
CUresult fc_capture_event(CUevent e); /* 907 when it was captured */
void fc_capture_forget_event(CUevent e);
void fc_capture_forget_stream(CUstream s);

/* --- graph.c ------------------------------------------------------------- */

struct CUgraphNode_st {
    CUgraph graph;
    size_t index;
    struct fc_work work;
    struct fc_node_set deps; /* all before it */
    void *arg[20];           /* a kernel's, for who asks: in the blob of the work */
};

CUgraph fc_graph_new(void); /* in no list yet */
void fc_graph_publish(CUgraph g, CUcontext ctx);
CUgraphNode fc_graph_add(CUgraph g, struct fc_work *w, /* takes w over */
                         const struct fc_node_set *deps);
void fc_graph_close(CUgraph g);
void fc_exec_close(CUgraphExec e);
void fc_plan_run(struct fc_plan *p);
void fc_plan_unref(struct fc_plan *p);

void fc_set_init(struct fc_node_set *s, const CUgraphNode *v, size_t n);
void fc_set_add(struct fc_node_set *s, const CUgraphNode *v, size_t n);
void fc_set_fini(struct fc_node_set *s);
/* Is every one of `v` in `of`, or before one that is? */
bool fc_set_covers(const struct fc_node_set *of, const struct fc_node_set *v);

/* --- pool.c, module.c ---------------------------------------------------- */

void fc_memory_free(const struct fc_block *b); /* taken from the list before */
void fc_memory_garbage(void *at, size_t bytes);
void fc_pool_close(CUmemoryPool p);
bool fc_pool_allows(CUmemoryPool p, CUdevice dev);
void fc_module_close(CUmodule m);
CUresult fc_launch_work(CUfunction f, const unsigned grid[3], const unsigned block[3],
                        size_t shared, void **args, struct fc_work *out);

/* --- kernels.c ----------------------------------------------------------- */

struct fc_launch {
    CUcontext ctx;
    uint64_t nthreads;
    unsigned grid[3];
    void *arg[20];
};

/* args: a letter each: p a pointer, l 8 bytes, i 4 bytes, d double, f float. */
struct fc_kernel {
    const char *name;
    const char *args;
    void (*run)(const struct fc_launch *l);
};

const struct fc_kernel *fc_kernel_find(const char *name);
const struct fc_kernel *fc_kernel_find_la(const char *name); /* kernels_la.c */
/* kernels_norm.c */
const struct fc_kernel *fc_kernel_find_norm(const char *name);

static inline size_t fc_arg_bytes(char letter)
{
    return letter == 'i' || letter == 'f' ? 4 : 8;
}

#endif /* HEDDLE_TESTS_FAKECUDA_H */
