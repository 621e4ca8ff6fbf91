/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * opencl: any accelerator with an OpenCL 1.2 implementation.
 *
 * Structure  a context per device; a stream is an in-order queue with profiling;
 *            device memory is a cl_mem, so a pointer of alloc() is opaque: no
 *            arithmetic. Operations in flight are records in a list per stream;
 *            progress() looks at the oldest ones, since they end in order.
 * Invariants (1) a record is in its stream's list exactly while op->done() is due
 *            (2) every command is flushed before the call that made it returns
 * Lost       see api.c. What is in flight then ends at the next progress()
 *            without being waited for: nothing can be awaited of such a device.
 * Threads    none of its own; the implementation has some and calls nothing here.
 * Cost       a copy one command, a launch the kernel and a marker; no allocation
 *            in the steady state, apart from staging.
 */
#include "drive/opencl/opencl.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/text.h"
#include "drive/host.h"
#include "drive/opencl/dev.h"

#define MAX_PLATFORMS 16
#define MAX_DEVICES   64 /* of one platform */

/* --- finding ------------------------------------------------------------- */

/* Text of the device, "" when it has none. */
static void ocl_string(const struct heddle_opencl_api *api, cl_device_id id, cl_device_info what,
                       char *out, size_t cap)
{
    char text[512] = "";
    size_t n = 0;

    if (api->clGetDeviceInfo(id, what, sizeof(text) - 1, text, &n) != CL_SUCCESS)
        text[0] = '\0';
    n = strnlen(text, cap - 1);
    memcpy(out, text, n);
    out[n] = '\0';
}

static uint64_t ocl_number(const struct heddle_opencl_api *api, cl_device_id id,
                           cl_device_info what, size_t bytes)
{
    uint64_t v = 0; /* little endian, or 8 bytes: cl_bool and cl_ulong */

    if (api->clGetDeviceInfo(id, what, bytes, &v, NULL) != CL_SUCCESS)
        return 0;
    return v;
}

/* Can this driver use it? "OpenCL 1.2 ..." or later, with a compiler. */
static bool ocl_usable(const struct heddle_opencl_api *api, cl_device_id id)
{
    char version[64];

    ocl_string(api, id, CL_DEVICE_VERSION, version, sizeof(version));
    if (strncmp(version, "OpenCL ", 7) != 0 || strncmp(version + 7, "1.2", 3) < 0)
        return false;
    return ocl_number(api, id, CL_DEVICE_AVAILABLE, sizeof(cl_bool)) != 0 &&
           ocl_number(api, id, CL_DEVICE_COMPILER_AVAILABLE, sizeof(cl_bool)) != 0;
}

static void ocl_describe(const struct heddle_opencl_api *api, cl_device_id id, unsigned index,
                         struct heddle_dev_info *info)
{
    const uint64_t type = ocl_number(api, id, CL_DEVICE_TYPE, sizeof(cl_device_type));
    struct heddle_text t;
    uint64_t total, available;

    memset(info, 0, sizeof(*info));
    heddle_text_init(&t, info->name, sizeof(info->name));
    heddle_text_add(&t, "opencl%u", index);
    ocl_string(api, id, CL_DEVICE_NAME, info->model, sizeof(info->model));
    info->kind = HEDDLE_DEV_OPENCL;
    info->nstreams = HEDDLE_OPENCL_STREAMS;
    info->memory_total = ocl_number(api, id, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(cl_ulong));
    info->memory_free = info->memory_total;
    info->is_cpu = (type & CL_DEVICE_TYPE_CPU) != 0;
    if (!info->is_cpu)
        return;
    heddle_host_memory(&total, &available);
    if (available < info->memory_free)
        info->memory_free = available;
}

/* The usable devices of all platforms, up to `cap`; the number of all. */
static unsigned ocl_list(const struct heddle_opencl_api *api, cl_device_id *ids, unsigned cap)
{
    cl_platform_id platforms[MAX_PLATFORMS];
    cl_device_id found[MAX_DEVICES];
    cl_uint np = 0, nd;
    unsigned n = 0;

    if (api->clGetPlatformIDs(MAX_PLATFORMS, platforms, &np) != CL_SUCCESS)
        return 0;
    for (cl_uint p = 0; p < np && p < MAX_PLATFORMS; p++) {
        nd = 0;
        if (api->clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, MAX_DEVICES, found, &nd) !=
            CL_SUCCESS)
            continue;
        for (cl_uint d = 0; d < nd && d < MAX_DEVICES; d++) {
            if (!ocl_usable(api, found[d]))
                continue;
            if (n < cap)
                ids[n] = found[d];
            n++;
        }
    }
    return n;
}

static heddle_status ocl_probe(const struct heddle_drive_env *env, struct heddle_dev_info *info,
                               unsigned cap, unsigned *n_out)
{
    cl_device_id ids[MAX_DEVICES];
    struct heddle_opencl_api api;

    (void)env;
    *n_out = 0;
    if (heddle_opencl_load(&api) != HEDDLE_OK)
        return HEDDLE_OK; /* none here */
    *n_out = ocl_list(&api, ids, MAX_DEVICES);
    if (*n_out > MAX_DEVICES)
        *n_out = MAX_DEVICES;
    for (unsigned i = 0; i < *n_out && i < cap; i++)
        ocl_describe(&api, ids[i], i, &info[i]);
    heddle_opencl_unload(&api);
    return HEDDLE_OK;
}

/* --- open and close ------------------------------------------------------ */

static void ocl_close(struct heddle_dev *dev)
{
    const struct heddle_opencl_api *api = &dev->api;

    heddle_opencl_programs_fini(dev);
    heddle_opencl_order_fini(dev);
    for (unsigned s = 0; s < HEDDLE_OPENCL_QUEUES; s++) {
        HEDDLE_ASSERT(dev->stream[s].first == NULL);
        if (dev->stream[s].queue == NULL)
            continue;
        if (!dev->is_lost)
            api->clFinish(dev->stream[s].queue);
        api->clReleaseCommandQueue(dev->stream[s].queue);
    }
    if (dev->context != NULL)
        api->clReleaseContext(dev->context);
    heddle_opencl_unload(&dev->api);
    while (dev->spare != NULL) {
        struct heddle_opencl_flight *f = dev->spare;

        dev->spare = f->next;
        heddle_free(dev->env.alloc, f, sizeof(*f));
    }
    heddle_free(dev->env.alloc, dev->spare_staging, dev->spare_staging_bytes);
    heddle_free(dev->env.alloc, dev, sizeof(*dev));
}

static heddle_status ocl_start(struct heddle_dev *dev, unsigned index)
{
    cl_device_id ids[MAX_DEVICES];
    cl_int err;

    HEDDLE_TRY(heddle_opencl_load(&dev->api));
    if (index >= MAX_DEVICES || ocl_list(&dev->api, ids, MAX_DEVICES) <= index)
        return HEDDLE_ENOENT;
    dev->id = ids[index];
    ocl_describe(&dev->api, dev->id, index, &dev->base.info);
    dev->context = dev->api.clCreateContext(NULL, 1, &dev->id, NULL, NULL, &err);
    if (dev->context == NULL)
        return err == CL_OUT_OF_HOST_MEMORY ? HEDDLE_ENOMEM : HEDDLE_EDEV;
    for (unsigned s = 0; s < HEDDLE_OPENCL_QUEUES; s++) {
        dev->stream[s].queue =
            dev->api.clCreateCommandQueue(dev->context, dev->id, CL_QUEUE_PROFILING_ENABLE, &err);
        if (dev->stream[s].queue == NULL)
            return err == CL_OUT_OF_HOST_MEMORY ? HEDDLE_ENOMEM : HEDDLE_EDEV;
    }
    return HEDDLE_OK;
}

static heddle_status ocl_open(const struct heddle_drive_env *env, unsigned index,
                              struct heddle_dev **dev_out)
{
    struct heddle_dev *dev = heddle_zalloc(env->alloc, 1, sizeof(*dev));
    heddle_status st;

    if (dev == NULL)
        return HEDDLE_ENOMEM;
    dev->env = *env;
    dev->base.driver = &heddle_driver_opencl;
    st = ocl_start(dev, index);
    if (st != HEDDLE_OK) {
        ocl_close(dev);
        return st;
    }
    *dev_out = dev;
    return HEDDLE_OK;
}

/* --- memory -------------------------------------------------------------- */

static heddle_status ocl_no_memory(struct heddle_dev *dev, cl_int err, const char *verb)
{
    const heddle_status st = heddle_opencl_fail(dev, err, verb);

    return st == HEDDLE_EDEV ? st : HEDDLE_ENOMEM;
}

/*
 * Implementations allocate a buffer when it is first used. It is brought to the
 * device at once, so that "there is no room" is told to the one who can do
 * something about it, and not to a kernel. Its contents are not touched: the
 * first use may be on another stream.
 */
static heddle_status ocl_alloc(struct heddle_dev *dev, size_t bytes, unsigned stream,
                               void **ptr_out)
{
    const uint64_t total = dev->base.info.memory_total;
    cl_int err;
    cl_mem m;

    if (dev->is_lost)
        return HEDDLE_EDEV;
    if (bytes > total || dev->used > total - bytes)
        return ocl_no_memory(dev, CL_MEM_OBJECT_ALLOCATION_FAILURE,
                             "allocate more than the device has");
    m = dev->api.clCreateBuffer(dev->context, CL_MEM_READ_WRITE, bytes, NULL, &err);
    if (m == NULL)
        return ocl_no_memory(dev, err, "allocate a buffer");
    err = dev->api.clEnqueueMigrateMemObjects(dev->stream[stream].queue, 1, &m, 0, 0, NULL, NULL);
    if (err != CL_SUCCESS) {
        dev->api.clReleaseMemObject(m);
        return ocl_no_memory(dev, err, "allocate a buffer");
    }
    dev->api.clFlush(dev->stream[stream].queue);
    dev->used += bytes;
    *ptr_out = m;
    return HEDDLE_OK;
}

/* OpenCL keeps the memory until the commands that use it have ended. */
static void ocl_free(struct heddle_dev *dev, void *ptr, size_t bytes, unsigned stream)
{
    (void)stream;
    dev->api.clReleaseMemObject(ptr);
    dev->used -= bytes;
}

static uint64_t ocl_memory_free(struct heddle_dev *dev)
{
    uint64_t total, available;

    if (!dev->base.info.is_cpu)
        return 0; /* OpenCL does not tell */
    heddle_host_memory(&total, &available);
    total = dev->base.info.memory_total;
    total -= dev->used < total ? dev->used : total;
    return available < total ? available : total;
}

/* --- operations ---------------------------------------------------------- */

uint64_t heddle_opencl_now(const struct heddle_dev *dev)
{
    return dev->env.now_ns != NULL ? dev->env.now_ns(dev->env.user) : 0;
}

struct heddle_opencl_flight *heddle_opencl_flight_get(struct heddle_dev *dev, unsigned stream,
                                                      struct heddle_op *op)
{
    struct heddle_opencl_flight *f = dev->spare;

    if (f != NULL)
        dev->spare = f->next;
    else
        f = heddle_alloc(dev->env.alloc, sizeof(*f));
    if (f == NULL)
        return NULL;
    memset(f, 0, sizeof(*f));
    f->dev = dev;
    f->stream = stream;
    f->op = op;
    f->begun_ns = f->given_ns = heddle_opencl_now(dev);
    return f;
}

void heddle_opencl_flight_put(struct heddle_opencl_flight *f)
{
    struct heddle_dev *dev = f->dev;
    const struct heddle_opencl_api *api = &dev->api;

    if (f->first != NULL)
        api->clReleaseEvent(f->first);
    if (f->last != NULL)
        api->clReleaseEvent(f->last);
    if (f->end != NULL)
        api->clReleaseEvent(f->end);
    heddle_opencl_copy_unstage(f);
    f->next = dev->spare;
    dev->spare = f;
}

void heddle_opencl_flight_start(struct heddle_opencl_flight *f)
{
    struct heddle_opencl_stream *s = &f->dev->stream[f->stream];

    f->next = NULL;
    if (s->last != NULL)
        s->last->next = f;
    else
        s->first = f;
    s->last = f;
    s->nflights++;
    f->op->priv[0] = f;
    f->dev->api.clFlush(s->queue);
}

/*
 * The function puts kernels on the queue, a marker behind them tells the end.
 * When it fails, some of them may be there already: the operation fails when they
 * have ended, and not before.
 */
static heddle_status ocl_launch(struct heddle_dev *dev, const struct heddle_dev_launch *l,
                                unsigned stream, struct heddle_op *op)
{
    struct heddle_opencl_stream *s = &dev->stream[stream];
    struct heddle_opencl_flight *f;
    cl_int err;

    if (dev->is_lost)
        return HEDDLE_EDEV;
    f = heddle_opencl_flight_get(dev, stream, op);
    if (f == NULL)
        return HEDDLE_ENOMEM;
    f->is_launch = true;
    s->launching = f;
    f->st = l->run != NULL ? l->run(l->x) : HEDDLE_OK;
    s->launching = NULL;
    if (f->first == NULL)
        f->given_ns = heddle_opencl_now(dev);
    err = dev->api.clEnqueueMarkerWithWaitList(s->queue, 0, NULL, &f->end);
    if (err != CL_SUCCESS) {
        const heddle_status st = heddle_opencl_fail(dev, err, "mark a launch");

        if (st != HEDDLE_EDEV && f->first != NULL)
            heddle_opencl_wait(dev, f->last != NULL ? f->last : f->first);
        heddle_opencl_flight_put(f);
        return st;
    }
    heddle_opencl_flight_start(f);
    return HEDDLE_OK;
}

/* --- ends ---------------------------------------------------------------- */

/* HEDDLE_AGAIN: not yet. */
static heddle_status ocl_event_status(struct heddle_dev *dev, cl_event e)
{
    cl_int state = CL_COMPLETE;
    const cl_int err =
        dev->api.clGetEventInfo(e, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(state), &state, NULL);

    if (err != CL_SUCCESS)
        return heddle_opencl_fail(dev, err, "ask for the end of a command");
    if (state > CL_COMPLETE)
        return HEDDLE_AGAIN;
    if (state < 0)
        return heddle_opencl_fail(dev, state, "run a command");
    return HEDDLE_OK;
}

/* A kernel may fail although the marker behind it does not. */
static heddle_status ocl_poll(struct heddle_opencl_flight *f)
{
    struct heddle_dev *dev = f->dev;
    heddle_status st;

    if (dev->is_lost)
        return HEDDLE_EDEV;
    st = ocl_event_status(dev, f->end);
    if (st == HEDDLE_OK && f->first != NULL)
        st = ocl_event_status(dev, f->first);
    if (st == HEDDLE_OK && f->last != NULL)
        st = ocl_event_status(dev, f->last);
    /* Asking is no synchronisation point in OpenCL, waiting is. */
    if (st == HEDDLE_OK && f->is_out)
        dev->api.clWaitForEvents(1, &f->end);
    return st;
}

static uint64_t ocl_stamp(struct heddle_dev *dev, cl_event e, cl_profiling_info what)
{
    cl_ulong ns = 0;

    if (dev->api.clGetEventProfilingInfo(e, what, sizeof(ns), &ns, NULL) != CL_SUCCESS)
        return 0;
    return ns;
}

/*
 * The device has its own clock. Both clocks were read when the command was put on
 * the queue: there CL_PROFILING_COMMAND_QUEUED is given_ns. A launch that used the
 * bare queue began when it was given, or when the stream was free.
 */
static void ocl_time(struct heddle_opencl_flight *f)
{
    struct heddle_opencl_stream *s = &f->dev->stream[f->stream];
    const cl_event from = f->first != NULL ? f->first : f->end;
    const cl_event to = f->last != NULL ? f->last : from;
    const uint64_t queued = ocl_stamp(f->dev, from, CL_PROFILING_COMMAND_QUEUED);
    const uint64_t start = ocl_stamp(f->dev, from, CL_PROFILING_COMMAND_START);
    const uint64_t end = ocl_stamp(f->dev, to, CL_PROFILING_COMMAND_END);
    struct heddle_op *op = f->op;

    op->begin_ns = op->end_ns = 0;
    if (f->given_ns == 0 || queued == 0 || start < queued || end < start)
        return;
    op->begin_ns = f->given_ns + (start - queued);
    op->end_ns = f->given_ns + (end - queued);
    if (f->is_launch && f->first == NULL) {
        op->begin_ns = s->last_end_ns > f->begun_ns ? s->last_end_ns : f->begun_ns;
        if (op->end_ns < op->begin_ns)
            op->end_ns = op->begin_ns;
    }
    s->last_end_ns = op->end_ns;
}

static void ocl_end(struct heddle_opencl_flight *f, heddle_status st)
{
    struct heddle_opencl_stream *s = &f->dev->stream[f->stream];
    struct heddle_op *op = f->op;

    s->first = f->next;
    if (s->first == NULL)
        s->last = NULL;
    s->nflights--;
    if (st == HEDDLE_OK) {
        st = f->st;
        ocl_time(f);
    }
    if (f->is_out && f->staging != NULL) {
        if (st == HEDDLE_OK)
            heddle_opencl_copy_scatter(f);
        f->dev->nstaged--;
    }
    heddle_opencl_order_ended(f);
    op->priv[0] = NULL;
    heddle_opencl_flight_put(f);
    op->done(op, st);
}

/* No more than what is in flight now: done() may go on for ever. */
static unsigned ocl_progress(struct heddle_dev *dev)
{
    unsigned nended = 0;

    for (unsigned i = 0; i < HEDDLE_OPENCL_QUEUES; i++) {
        struct heddle_opencl_stream *s = &dev->stream[i];

        for (size_t n = s->nflights; n > 0; n--) {
            const heddle_status st = ocl_poll(s->first);

            if (st == HEDDLE_AGAIN)
                break;
            ocl_end(s->first, st);
            nended++;
        }
    }
    return nended;
}

static void *ocl_native(struct heddle_dev *dev, unsigned stream, const char *what)
{
    if (strcmp(what, "queue") == 0 && stream < HEDDLE_OPENCL_QUEUES)
        return dev->stream[stream].queue;
    if (strcmp(what, "context") == 0)
        return dev->context;
    if (strcmp(what, "device") == 0)
        return dev->id;
    return NULL;
}

static const char *ocl_error(struct heddle_dev *dev)
{
    return dev->why;
}

const struct heddle_driver heddle_driver_opencl = {
    .name = "opencl",
    .help = "accelerators with OpenCL 1.2 or later",
    .kind = HEDDLE_DEV_OPENCL,
    .is_slow = true,
    .is_sure = true,
    .probe = ocl_probe,
    .open = ocl_open,
    .close = ocl_close,
    .alloc = ocl_alloc,
    .free = ocl_free,
    .copy = heddle_opencl_copy,
    .launch = ocl_launch,
    .order = heddle_opencl_order,
    .progress = ocl_progress,
    .memory_free = ocl_memory_free,
    .native = ocl_native,
    .error = ocl_error,
};
