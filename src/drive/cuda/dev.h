/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DRIVE_CUDA_DEV_H
#define HEDDLE_DRIVE_CUDA_DEV_H

/*
 * Private to the files of the driver `cuda`.
 *
 * cuda.c     the driver: probe, open, close, launches
 * queue.c    what is in flight: batches, notes, order, ends
 * time.c     times of the device on the context's clock
 * copy.c     copies
 * stage.c    copies through pinned memory, and the threads that fill it
 * pin.c      which memory of the host is pinned
 * memory.c   memory of the device
 * module.c   modules, kernels (drive/cuda/cuda.h)
 * library.c  cuBLAS and the others, NVML (drive/cuda/cuda.h)
 * warm.c     what is loaded before it is asked for
 * region.c   recorded regions as graphs
 * api.c      the library, its errors
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/lock.h"
#include "base/map.h"
#include "base/thread.h"
#include "drive/cuda/api.h"
#include "drive/cuda/cuda.h"
#include "drive/drive.h"
#include "meter/meter.h"

/* Queues of the device. Staged copies of the engine's transfers have lists of
 * their own and share the stream of their direction. */
enum {
    HEDDLE_CUDA_STREAMS = 4, /* for kernels: 0 to 3 */
    HEDDLE_CUDA_IN = HEDDLE_CUDA_STREAMS,
    HEDDLE_CUDA_OUT,
    HEDDLE_CUDA_PEER,
    HEDDLE_CUDA_STAGED_IN,
    HEDDLE_CUDA_STAGED_OUT,
    HEDDLE_CUDA_QUEUES
};

#define HEDDLE_CUDA_BATCH      64                 /* operations that share an event, at most */
#define HEDDLE_CUDA_SMALL      ((size_t)64 << 10) /* staged by the caller */
#define HEDDLE_CUDA_SLOTS      64                 /* of that size */
#define HEDDLE_CUDA_SLOT_BLOCK 16                 /* so many at a time */
#define HEDDLE_CUDA_CHUNK      ((size_t)4 << 20)  /* of a staged copy, at most */
#define HEDDLE_CUDA_COPIERS    6
#define HEDDLE_CUDA_BUFFERS    3 /* of HEDDLE_CUDA_CHUNK, per copier */
#define HEDDLE_CUDA_LIBRARIES  (HEDDLE_CUDA_CUDNN + 1)

struct heddle_cuda_queue;
struct heddle_cuda_note;

/* Operations of a queue that end together, when `event` has come. */
struct heddle_cuda_batch {
    struct heddle_cuda_batch *next; /* in its queue, or in the spare list */
    struct heddle_cuda_queue *queue;
    heddle_cu_event event; /* made once, kept with the record */
    heddle_cu_event mark;  /* what tells its end: `event`, or the end of the
                              timed operation that is its last */
    uint64_t given_ns;     /* when it was begun */
    struct heddle_op *first, *last;
    unsigned nops;
    bool is_recorded;
    bool is_complete;               /* seen on the host */
    struct heddle_cuda_note *stage; /* a staged copy, alone in its batch */
};

/* What is known about an operation beyond its batch: times, copies. */
struct heddle_cuda_note {
    struct heddle_cuda_note *next; /* in the spare list, or in a queue of jobs */
    struct heddle_op *op;
    heddle_status st; /* known before the end: the launch's own */
    /* Times. The events are made once and kept. */
    heddle_cu_event begin, end;
    bool is_timed;
    uint64_t host_ns;  /* launches: what the function itself took */
    uint64_t given_ns; /* staged: the host's clock */
    /* Copies. */
    enum heddle_copy_kind kind;
    struct heddle_runs runs; /* simplified */
    char *host;
    size_t span;
    void *slot;                    /* pinned memory of HEDDLE_CUDA_SMALL bytes, or NULL */
    struct heddle_cuda_range *pin; /* held until the note is put back */
    /* Copies out are in a list: a gather from their memory has to wait. */
    struct heddle_cuda_note *next_out, *prev_out;
    unsigned number; /* of the stream, as the engine counts */
    bool is_out;
    bool is_ordered; /* order() was called for it */
    bool has_landed; /* its bytes are in place, before done() */
    /* Staged copies: chunks. */
    heddle_cu_ptr ptr;
    heddle_cu_stream stream;
    size_t bytes, chunk_bytes;
    size_t taken;            /* copiers' lock: bytes that have a copier */
    _Atomic uint32_t unsent; /* chunks that are not on the stream yet */
    _Atomic uint32_t left;   /* chunks that are not finished */
    _Atomic uint32_t is_sent;
    _Atomic uint32_t error; /* the first one of CUDA; 0: none */
    heddle_cu_event sent;   /* of its batch: recorded behind the last chunk */
};

struct heddle_cuda_queue {
    struct heddle_dev *dev;
    heddle_cu_stream stream;
    struct heddle_cuda_batch *open;         /* not recorded yet; NULL: none */
    struct heddle_cuda_batch *first, *last; /* recorded, or staged */
    unsigned nbatches;
    uint64_t given, ended;          /* operations */
    uint64_t ended_ns;              /* when the last batch was seen to have ended */
    uint64_t memory_seen;           /* waits for allocations up to this one */
    struct heddle_cuda_batch *gate; /* staged copy that is being enqueued here */
};

/* A block of device memory that is free. */
struct heddle_cuda_block {
    struct heddle_cuda_block *next;
    heddle_cu_ptr ptr;
    size_t bytes;
    unsigned number; /* the stream it was freed on */
    uint64_t after;  /* and how many operations that had been given */
};

struct heddle_cuda_memory {
    bool has_pool;
    heddle_cu_pool pool;
    heddle_cu_stream stream; /* of allocations */
    heddle_cu_event event;
    uint64_t seq, recorded;          /* fresh allocations; up to which `event` is */
    struct heddle_map free;          /* bytes -> struct heddle_cuda_block * */
    struct heddle_cuda_block *spare; /* records */
    size_t nfree;
    uint64_t free_bytes, used_bytes;
};

/* The device's clock: `ref` was recorded at ref_ns of the host's. */
struct heddle_cuda_clock {
    heddle_cu_event ref, probe;
    uint64_t ref_ns, probe_ns, next_ns;
    bool is_probing;
};

struct heddle_cuda_buffer {
    void *mem; /* pinned; NULL: not yet */
    heddle_cu_event event;
    struct heddle_cuda_note *note; /* a chunk on its way out of here; or NULL */
    size_t offset, bytes;
    bool is_busy;
};

struct heddle_cuda_copier {
    struct heddle_dev *dev;
    struct heddle_thread thread;
    unsigned index;
    struct heddle_cuda_buffer buffer[HEDDLE_CUDA_BUFFERS];
    unsigned oldest, nbusy, nout;
};

struct heddle_cuda_stage {
    struct heddle_mutex lock; /* the jobs, stops */
    pthread_cond_t work;
    bool is_ready; /* lock and work are there */
    bool stops;
    unsigned ncopiers;
    struct heddle_cuda_note *job[2], **tail[2]; /* in, out */
    struct heddle_cuda_copier copier[HEDDLE_CUDA_COPIERS];
    /* Small pinned memory; the driver's thread only. */
    void *block[HEDDLE_CUDA_SLOTS / HEDDLE_CUDA_SLOT_BLOCK];
    unsigned nblocks;
    void *slot[HEDDLE_CUDA_SLOTS];
    unsigned nslots;
};

struct heddle_cuda_range; /* pin.c */

struct heddle_cuda_pins {
    struct heddle_mutex lock; /* everything here */
    pthread_cond_t work, done;
    bool is_ready;
    bool stops, has_thread;
    struct heddle_thread thread;
    struct heddle_cuda_range **range; /* by address; they do not overlap */
    size_t nranges, cap;
    struct heddle_cuda_range *first, **tail; /* to be registered */
    struct heddle_map wanted;                /* address -> bytes seen once; 0: hopeless */
    uint64_t bytes, limit;                   /* registered by us */
};

struct heddle_cuda_module;  /* module.c */
struct heddle_cuda_symbols; /* library.c */

/* Of a library or a module, see warm.c. */
enum heddle_cuda_warm_state {
    HEDDLE_CUDA_WAITS,
    HEDDLE_CUDA_LOADING,
    HEDDLE_CUDA_LOADED,
    HEDDLE_CUDA_TAKEN
};

struct heddle_cuda_image; /* warm.c */

struct heddle_cuda_warm {
    struct heddle_mutex lock; /* everything here */
    pthread_cond_t work, done;
    bool is_ready, stops, has_thread;
    bool wants_libraries;
    struct heddle_thread thread;
    struct heddle_cuda_image *images;
    enum heddle_cuda_warm_state library[HEDDLE_CUDA_LIBRARIES];
    void *lib[HEDDLE_CUDA_LIBRARIES];    /* not taken yet; NULL: there is none */
    void *handle[HEDDLE_CUDA_LIBRARIES]; /* of no stream yet */
};

struct heddle_cuda_libraries {
    void *lib[HEDDLE_CUDA_LIBRARIES];
    bool is_missing[HEDDLE_CUDA_LIBRARIES];
    void *handle[HEDDLE_CUDA_STREAMS][HEDDLE_CUDA_LIBRARIES];
    void *workspace[HEDDLE_CUDA_STREAMS];
    struct heddle_cuda_symbols *symbols[HEDDLE_CUDA_LIBRARIES];
    struct heddle_nvml nvml;
    void *nvml_device;
    bool has_asked_nvml;
};

struct heddle_dev {
    struct heddle_dev_base base;
    struct heddle_drive_env env;
    struct heddle_cuda_api api;
    heddle_cu_device id;
    heddle_cu_context context;
    bool is_lost;
    bool is_capturing;
    size_t nflights; /* operations in flight */
    unsigned nloads; /* launches that were told to be loading */
    struct heddle_cuda_queue queue[HEDDLE_CUDA_QUEUES];
    struct heddle_cuda_batch *spare_batches;
    struct heddle_cuda_note *spare_notes;
    struct heddle_cuda_note *outs; /* copies out in flight */
    unsigned nordered;             /* of these, is_ordered */
    struct heddle_cuda_memory memory;
    struct heddle_cuda_clock clock;
    struct heddle_cuda_stage stage;
    struct heddle_cuda_pins pins;
    struct heddle_map modules; /* image -> struct heddle_cuda_module * */
    struct heddle_cuda_libraries libraries;
    struct heddle_cuda_warm warm;
    uint64_t peers_asked, peers_open; /* bits: ordinals */
    int shared_bytes;                 /* a block may ask for; 0: not asked yet */
    char why[768];
};

extern const struct heddle_driver heddle_driver_cuda;

/* --- api.c ---------------------------------------------------------------- */

/* `path`: NULL for the system's. HEDDLE_ENOSYS: it cannot be used, and `why`
 * says why. */
HEDDLE_MUST_USE heddle_status heddle_cuda_load(struct heddle_cuda_api *api, const char *path,
                                               char *why, size_t cap);
void heddle_cuda_unload(struct heddle_cuda_api *api);

/* Leaves the sentence "cuda0: cannot <verb>: CUDA_ERROR_...: text" and returns the
 * status that goes with it; after HEDDLE_EDEV the device is lost. */
heddle_status heddle_cuda_fail(struct heddle_dev *dev, heddle_cu_result err, const char *verb);

/* Makes the device's context the calling thread's. */
heddle_cu_result heddle_cuda_set_current(const struct heddle_dev *dev);

/* For calls of the engine: HEDDLE_EDEV when the device is lost. */
HEDDLE_MUST_USE heddle_status heddle_cuda_enter(struct heddle_dev *dev);

uint64_t heddle_cuda_now(const struct heddle_dev *dev);

/* --- queue.c -------------------------------------------------------------- */

/* The queue of a stream for kernels; of a direction for `nstreams`. */
struct heddle_cuda_queue *heddle_cuda_queue_of(struct heddle_dev *dev, unsigned number,
                                               unsigned way);

/* Before anything is put on the queue: what was staged there is on the stream,
 * fresh memory can be used, and there is a batch to join. */
HEDDLE_MUST_USE heddle_status heddle_cuda_prepare(struct heddle_cuda_queue *q);
/* The operation was put on the queue; `note` may be NULL. */
void heddle_cuda_join(struct heddle_cuda_queue *q, struct heddle_op *op,
                      struct heddle_cuda_note *note);
/* Records the open batch, if it has operations. */
HEDDLE_MUST_USE heddle_status heddle_cuda_close(struct heddle_cuda_queue *q);

/* A batch for a staged copy at the end of the queue. */
HEDDLE_MUST_USE heddle_status heddle_cuda_join_stage(struct heddle_cuda_queue *q,
                                                     struct heddle_op *op,
                                                     struct heddle_cuda_note *note);

/* Zeroed but for its events. NULL: no memory. */
struct heddle_cuda_note *heddle_cuda_note_get(struct heddle_dev *dev);
void heddle_cuda_note_put(struct heddle_dev *dev, struct heddle_cuda_note *n);

/* Until what the queue was given is on its stream: blocks shortly. */
void heddle_cuda_gate_wait(struct heddle_cuda_queue *q);
/* The event behind everything the queue was given; NULL: nothing is there. */
HEDDLE_MUST_USE heddle_status heddle_cuda_queue_event(struct heddle_cuda_queue *q,
                                                      heddle_cu_event *event_out);
/* `number` waits for everything that `from` was given. */
HEDDLE_MUST_USE heddle_status heddle_cuda_wait_queue(struct heddle_dev *dev, unsigned number,
                                                     struct heddle_cuda_queue *from);

heddle_status heddle_cuda_order(struct heddle_dev *dev, unsigned stream, struct heddle_op *op);
unsigned heddle_cuda_progress(struct heddle_dev *dev);
void heddle_cuda_queues_fini(struct heddle_dev *dev);

/* --- time.c --------------------------------------------------------------- */

HEDDLE_MUST_USE heddle_status heddle_cuda_clock_init(struct heddle_dev *dev);
void heddle_cuda_clock_fini(struct heddle_dev *dev);
/* Now and then: the two clocks do not run alike. */
void heddle_cuda_clock_poll(struct heddle_dev *dev);
/* Marks on the stream around an operation; failures cost the times only. */
void heddle_cuda_note_begin(struct heddle_cuda_queue *q, struct heddle_cuda_note *n);
void heddle_cuda_note_end(struct heddle_cuda_queue *q, struct heddle_cuda_note *n);
/* Both have come: begin_ns and end_ns of its operation. */
void heddle_cuda_note_times(struct heddle_dev *dev, struct heddle_cuda_note *n);

/* --- copy.c, stage.c ------------------------------------------------------ */

heddle_status heddle_cuda_copy(struct heddle_dev *dev, const struct heddle_copy *c, unsigned stream,
                               struct heddle_op *op);
bool heddle_cuda_can_peer(struct heddle_dev *dev, struct heddle_dev *to);
/* A copy out has come: its bytes go where they belong. */
void heddle_cuda_copy_land(struct heddle_cuda_note *n);
/* Waits until the bytes of a copy out are in place; it ends in progress(), like
 * every other. */
HEDDLE_MUST_USE heddle_status heddle_cuda_copy_settle(struct heddle_dev *dev,
                                                      struct heddle_cuda_note *n);
/* The copy is over. */
void heddle_cuda_copy_forget(struct heddle_dev *dev, struct heddle_cuda_note *n);

/* Bytes [offset, offset + bytes) of the dense order. */
void heddle_cuda_gather(const struct heddle_runs *r, const char *host, char *dense, size_t offset,
                        size_t bytes);
void heddle_cuda_scatter(const struct heddle_runs *r, char *host, const char *dense, size_t offset,
                         size_t bytes);

HEDDLE_MUST_USE heddle_status heddle_cuda_stage_init(struct heddle_dev *dev);
void heddle_cuda_stage_fini(struct heddle_dev *dev);
/* At least one copier is there. */
HEDDLE_MUST_USE heddle_status heddle_cuda_stage_start(struct heddle_dev *dev);
/* kind, runs, host, ptr, stream, bytes and sent are set. */
void heddle_cuda_stage_give(struct heddle_dev *dev, struct heddle_cuda_note *n);
/* NULL: none is free. */
void *heddle_cuda_slot_get(struct heddle_dev *dev);
void heddle_cuda_slot_put(struct heddle_dev *dev, void *slot);

/* --- pin.c ---------------------------------------------------------------- */

HEDDLE_MUST_USE heddle_status heddle_cuda_pins_init(struct heddle_dev *dev);
void heddle_cuda_pins_fini(struct heddle_dev *dev);
void heddle_cuda_pin(struct heddle_dev *dev, void *host, size_t bytes);
void heddle_cuda_unpin(struct heddle_dev *dev, void *host, size_t bytes);
/* Pinned, and stays so until this is dropped. NULL: it is not. */
struct heddle_cuda_range *heddle_cuda_pin_hold(struct heddle_dev *dev, const void *host,
                                               size_t bytes);
void heddle_cuda_pin_drop(struct heddle_dev *dev, struct heddle_cuda_range *r);
/* CUDA does not take it as pinned after all. */
void heddle_cuda_pin_doubt(struct heddle_dev *dev, const void *host);

/* --- memory.c ------------------------------------------------------------- */

HEDDLE_MUST_USE heddle_status heddle_cuda_memory_init(struct heddle_dev *dev);
void heddle_cuda_memory_fini(struct heddle_dev *dev);
heddle_status heddle_cuda_alloc(struct heddle_dev *dev, size_t bytes, unsigned stream,
                                void **ptr_out);
void heddle_cuda_free(struct heddle_dev *dev, void *ptr, size_t bytes, unsigned stream);
uint64_t heddle_cuda_memory_free(struct heddle_dev *dev);
/* The stream waits for the fresh allocations of `of`. */
HEDDLE_MUST_USE heddle_status heddle_cuda_memory_fence(struct heddle_dev *of,
                                                       struct heddle_cuda_queue *q);

/* --- module.c, library.c, region.c ---------------------------------------- */

heddle_status heddle_cuda_dev_pci(struct heddle_dev *dev, char *out, size_t cap);
double heddle_cuda_dev_watts(struct heddle_dev *dev);

/* The library as dlopen() has it; NULL: it is not on this machine. Any thread. */
void *heddle_cuda_library_open(struct heddle_dev *dev, enum heddle_cuda_library library);
/* A handle of no stream, for the context that is current; NULL: the library refuses. */
void *heddle_cuda_library_handle(enum heddle_cuda_library library, void *lib);
/* Gives both back; NULL is fine. */
void heddle_cuda_library_drop(struct heddle_dev *dev, enum heddle_cuda_library library, void *lib,
                              void *handle);
void heddle_cuda_modules_fini(struct heddle_dev *dev);
void heddle_cuda_libraries_fini(struct heddle_dev *dev);

/* Around what may not be captured: nothing of it becomes part of a graph. The
 * value is for the second call. */
heddle_cu_enum heddle_cuda_capture_pause(struct heddle_dev *dev);
void heddle_cuda_capture_go_on(struct heddle_dev *dev, heddle_cu_enum mode);

heddle_status heddle_cuda_region(struct heddle_dev *dev, const struct heddle_region *r,
                                 unsigned stream, void **graph_inout);
heddle_status heddle_cuda_replay(struct heddle_dev *dev, void *graph, unsigned stream,
                                 struct heddle_op *op);
void heddle_cuda_region_free(struct heddle_dev *dev, void *graph);

/* --- warm.c ----------------------------------------------------------------- */

HEDDLE_MUST_USE heddle_status heddle_cuda_warm_init(struct heddle_dev *dev);
void heddle_cuda_warm_fini(struct heddle_dev *dev);
/* Any thread: this image, or with NULL the usual libraries, will be asked for. */
void heddle_cuda_warm_prepare(struct heddle_dev *dev, const void *image);
/* The engine's thread. True: *lib_out is the library, NULL when it is not here. False: the
 * caller loads it. */
bool heddle_cuda_warm_library(struct heddle_dev *dev, enum heddle_cuda_library library,
                              void **lib_out);
/* A handle of no stream; NULL: there is none. */
void *heddle_cuda_warm_handle(struct heddle_dev *dev, enum heddle_cuda_library library);
/* The module; NULL: the caller loads it. */
heddle_cu_module heddle_cuda_warm_module(struct heddle_dev *dev, const void *image);

#endif /* HEDDLE_DRIVE_CUDA_DEV_H */
