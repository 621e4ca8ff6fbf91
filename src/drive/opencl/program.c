/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * program: programs from source, their kernels, and launching them.
 *
 * Structure  a list of programs (source and options), each with the kernels that
 *            were asked for; what was found moves to the front. A new program is
 *            taken from the disk when it is there and still builds, else compiled
 *            and put there.
 * Threads    as the driver's: one at a time. A kernel's arguments are read by
 *            the call that enqueues it, so one object per kernel is enough.
 * Cost       a kernel that is known: a few string comparisons.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/text.h"
#include "drive/opencl/dev.h"
#include "drive/opencl/opencl.h"

struct kernel {
    struct kernel *next;
    cl_kernel kernel;
    char *entry;
};

struct heddle_opencl_program {
    struct heddle_opencl_program *next;
    cl_program program;
    char *source, *options;
    struct kernel *kernels;
};

static bool is_opencl(const struct heddle_dev *dev)
{
    return dev != NULL && ((const struct heddle_dev_base *)dev)->driver == &heddle_driver_opencl;
}

/* --- building ------------------------------------------------------------ */

/* The beginning of the compiler's messages, in one line. */
static void add_log(struct heddle_dev *dev, struct heddle_text *t, cl_program program)
{
    const struct heddle_allocator *a = dev->env.alloc;
    size_t bytes = 0;
    char *log;

    dev->api.clGetProgramBuildInfo(program, dev->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes);
    log = bytes > 1 ? heddle_zalloc(a, 1, bytes + 1) : NULL;
    if (log == NULL)
        return;
    dev->api.clGetProgramBuildInfo(program, dev->id, CL_PROGRAM_BUILD_LOG, bytes, log, NULL);
    heddle_text_str(t, ": ");
    for (char *line = log, *end; *line != '\0'; line = end) {
        end = line + strcspn(line, "\n");
        heddle_text_mem(t, line, (size_t)(end - line));
        if (*end == '\n')
            end++;
        if (*end != '\0')
            heddle_text_str(t, "; ");
    }
    heddle_free(a, log, bytes + 1);
}

static heddle_status build_failed(struct heddle_dev *dev, cl_program program, cl_int err)
{
    const heddle_status st = heddle_opencl_fail(dev, err, "compile a program");
    struct heddle_text t;

    if (err != CL_BUILD_PROGRAM_FAILURE)
        return st;
    heddle_text_init(&t, dev->why, sizeof(dev->why));
    heddle_text_add(&t, "%s: the program does not compile", dev->base.info.name);
    add_log(dev, &t, program);
    return st;
}

static heddle_status build_source(struct heddle_dev *dev, const struct heddle_opencl_key *key,
                                  cl_program *out)
{
    const char *source = key->source;
    heddle_status st;
    cl_program p;
    cl_int err;

    p = dev->api.clCreateProgramWithSource(dev->context, 1, &source, NULL, &err);
    if (p == NULL)
        return heddle_opencl_fail(dev, err, "make a program");
    err = dev->api.clBuildProgram(p, 1, &dev->id, key->options, NULL, NULL);
    if (err != CL_SUCCESS) {
        st = build_failed(dev, p, err);
        dev->api.clReleaseProgram(p);
        return st;
    }
    *out = p;
    return HEDDLE_OK;
}

/* HEDDLE_ENOENT: compile it. */
static heddle_status build_kept(struct heddle_dev *dev, const struct heddle_opencl_key *key,
                                cl_program *out)
{
    const struct heddle_allocator *a = dev->env.alloc;
    unsigned char *data;
    const unsigned char *binary;
    size_t bytes;
    cl_int err, state = CL_SUCCESS;
    cl_program p;

    HEDDLE_TRY(heddle_opencl_cache_read(a, dev->env.cache_dir, key, &data, &bytes));
    binary = data;
    p = dev->api.clCreateProgramWithBinary(dev->context, 1, &dev->id, &bytes, &binary, &state,
                                           &err);
    heddle_free(a, data, bytes);
    if (p == NULL)
        return HEDDLE_ENOENT;
    if (state == CL_SUCCESS)
        state = dev->api.clBuildProgram(p, 1, &dev->id, key->options, NULL, NULL);
    if (state != CL_SUCCESS) {
        dev->api.clReleaseProgram(p);
        return HEDDLE_ENOENT;
    }
    *out = p;
    return HEDDLE_OK;
}

static void keep(struct heddle_dev *dev, const struct heddle_opencl_key *key, cl_program p)
{
    const struct heddle_allocator *a = dev->env.alloc;
    size_t bytes = 0;
    unsigned char *data;

    if (dev->api.clGetProgramInfo(p, CL_PROGRAM_BINARY_SIZES, sizeof(bytes), &bytes, NULL) !=
        CL_SUCCESS)
        return;
    data = heddle_alloc(a, bytes); /* NULL for 0 bytes: nothing to keep */
    if (data == NULL)
        return;
    if (dev->api.clGetProgramInfo(p, CL_PROGRAM_BINARIES, sizeof(data), &data, NULL) == CL_SUCCESS)
        heddle_opencl_cache_write(dev->env.cache_dir, key, data, bytes);
    heddle_free(a, data, bytes);
}

static void make_key(struct heddle_dev *dev, const char *source, const char *options,
                     struct heddle_opencl_key *key)
{
    static const cl_device_info parts[] = {CL_DEVICE_VENDOR, CL_DEVICE_NAME, CL_DEVICE_VERSION,
                                           CL_DRIVER_VERSION};
    struct heddle_text t;

    key->source = source;
    key->options = options;
    heddle_text_init(&t, key->device, sizeof(key->device));
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        char s[128] = "";

        if (dev->api.clGetDeviceInfo(dev->id, parts[i], sizeof(s) - 1, s, NULL) == CL_SUCCESS)
            heddle_text_add(&t, "%s|", s);
    }
}

static heddle_status build(struct heddle_dev *dev, const char *source, const char *options,
                           cl_program *out)
{
    struct heddle_opencl_key key;
    heddle_status st = HEDDLE_ENOENT;

    make_key(dev, source, options, &key);
    if (dev->env.cache_dir != NULL)
        st = build_kept(dev, &key, out);
    if (st != HEDDLE_ENOENT)
        return st;
    HEDDLE_TRY(build_source(dev, &key, out));
    if (dev->env.cache_dir != NULL)
        keep(dev, &key, *out);
    return HEDDLE_OK;
}

/* --- the list ------------------------------------------------------------ */

static void program_destroy(struct heddle_dev *dev, struct heddle_opencl_program *p)
{
    const struct heddle_allocator *a = dev->env.alloc;

    while (p->kernels != NULL) {
        struct kernel *k = p->kernels;

        p->kernels = k->next;
        dev->api.clReleaseKernel(k->kernel);
        heddle_strfree(a, k->entry);
        heddle_free(a, k, sizeof(*k));
    }
    if (p->program != NULL)
        dev->api.clReleaseProgram(p->program);
    heddle_strfree(a, p->source);
    heddle_strfree(a, p->options);
    heddle_free(a, p, sizeof(*p));
}

void heddle_opencl_programs_fini(struct heddle_dev *dev)
{
    while (dev->programs != NULL) {
        struct heddle_opencl_program *p = dev->programs;

        dev->programs = p->next;
        program_destroy(dev, p);
    }
}

static heddle_status program_create(struct heddle_dev *dev, const char *source, const char *options,
                                    struct heddle_opencl_program **out)
{
    const struct heddle_allocator *a = dev->env.alloc;
    struct heddle_opencl_program *p = heddle_zalloc(a, 1, sizeof(*p));
    heddle_status st = HEDDLE_ENOMEM;

    if (p == NULL)
        return HEDDLE_ENOMEM;
    p->source = heddle_strdup(a, source);
    p->options = heddle_strdup(a, options);
    if (p->source != NULL && p->options != NULL)
        st = build(dev, source, options, &p->program);
    if (st != HEDDLE_OK) {
        program_destroy(dev, p);
        return st;
    }
    *out = p;
    return HEDDLE_OK;
}

/* Found or made, and first in the list. */
static heddle_status program_get(struct heddle_dev *dev, const char *source, const char *options,
                                 struct heddle_opencl_program **out)
{
    struct heddle_opencl_program **at = &dev->programs, *p = NULL;

    for (; *at != NULL; at = &(*at)->next)
        if (strcmp((*at)->source, source) == 0 && strcmp((*at)->options, options) == 0)
            break;
    if (*at != NULL) {
        p = *at;
        *at = p->next;
    } else {
        HEDDLE_TRY(program_create(dev, source, options, &p));
    }
    p->next = dev->programs;
    dev->programs = p;
    *out = p;
    return HEDDLE_OK;
}

static heddle_status no_kernel(struct heddle_dev *dev, const char *entry, cl_int err)
{
    const heddle_status st = heddle_opencl_fail(dev, err, "make a kernel");
    struct heddle_text t;

    if (err != CL_INVALID_KERNEL_NAME)
        return st;
    heddle_text_init(&t, dev->why, sizeof(dev->why));
    heddle_text_add(&t, "%s: the program has no kernel '%s'", dev->base.info.name, entry);
    return st;
}

static heddle_status kernel_create(struct heddle_dev *dev, struct heddle_opencl_program *p,
                                   const char *entry, struct kernel **out)
{
    const struct heddle_allocator *a = dev->env.alloc;
    struct kernel *k = heddle_zalloc(a, 1, sizeof(*k));
    heddle_status st = HEDDLE_ENOMEM;
    cl_int err;

    if (k == NULL)
        return HEDDLE_ENOMEM;
    k->entry = heddle_strdup(a, entry);
    if (k->entry != NULL) {
        k->kernel = dev->api.clCreateKernel(p->program, entry, &err);
        st = k->kernel != NULL ? HEDDLE_OK : no_kernel(dev, entry, err);
    }
    if (st != HEDDLE_OK) {
        heddle_strfree(a, k->entry);
        heddle_free(a, k, sizeof(*k));
        return st;
    }
    k->next = p->kernels;
    p->kernels = k;
    *out = k;
    return HEDDLE_OK;
}

/* --- drive/opencl/opencl.h ------------------------------------------------ */

void *heddle_opencl_dev_native(struct heddle_dev *dev, unsigned stream, const char *what)
{
    if (!is_opencl(dev))
        return NULL;
    return heddle_driver_opencl.native(dev, stream, what);
}

heddle_status heddle_opencl_dev_kernel(struct heddle_dev *dev, const char *source,
                                       const char *entry, const char *options, void **kernel_out)
{
    struct heddle_opencl_program *p;
    struct kernel *k;

    if (!is_opencl(dev))
        return HEDDLE_ENOSYS;
    HEDDLE_CHECK(source != NULL && entry != NULL && kernel_out != NULL);
    if (dev->is_lost)
        return HEDDLE_EDEV;
    HEDDLE_TRY(program_get(dev, source, options != NULL ? options : "", &p));
    for (k = p->kernels; k != NULL; k = k->next)
        if (strcmp(k->entry, entry) == 0)
            break;
    if (k == NULL)
        HEDDLE_TRY(kernel_create(dev, p, entry, &k));
    *kernel_out = k->kernel;
    return HEDDLE_OK;
}

heddle_status heddle_opencl_dev_arg(struct heddle_dev *dev, void *kernel, unsigned index,
                                    const void *value, size_t bytes)
{
    char verb[64];
    struct heddle_text t;
    cl_int err;

    if (!is_opencl(dev))
        return HEDDLE_ENOSYS;
    HEDDLE_CHECK(kernel != NULL);
    if (dev->is_lost)
        return HEDDLE_EDEV;
    err = dev->api.clSetKernelArg(kernel, index, bytes, value);
    if (err == CL_SUCCESS)
        return HEDDLE_OK;
    heddle_text_init(&t, verb, sizeof(verb));
    heddle_text_add(&t, "set argument %u of a kernel to %zu bytes", index, bytes);
    return heddle_opencl_fail(dev, err, verb);
}

/* The events of the first and of the last kernel tell how long a launch took. */
static void note_event(struct heddle_dev *dev, struct heddle_opencl_flight *f, cl_event e,
                       uint64_t now_ns)
{
    if (f == NULL) {
        dev->api.clReleaseEvent(e);
    } else if (f->first == NULL) {
        f->first = e;
        f->given_ns = now_ns;
    } else {
        if (f->last != NULL)
            dev->api.clReleaseEvent(f->last);
        f->last = e;
    }
}

heddle_status heddle_opencl_dev_enqueue(struct heddle_dev *dev, unsigned stream, void *kernel,
                                        unsigned ndim, const size_t *global, const size_t *local)
{
    uint64_t now_ns;
    cl_event e;
    cl_int err;

    if (!is_opencl(dev))
        return HEDDLE_ENOSYS;
    HEDDLE_CHECK(kernel != NULL && global != NULL);
    HEDDLE_CHECK(ndim >= 1 && ndim <= 3 && stream < HEDDLE_OPENCL_QUEUES);
    if (dev->is_lost)
        return HEDDLE_EDEV;
    for (unsigned d = 0; d < ndim; d++)
        if (global[d] == 0)
            return HEDDLE_OK;
    now_ns = heddle_opencl_now(dev);
    err = dev->api.clEnqueueNDRangeKernel(dev->stream[stream].queue, kernel, ndim, NULL, global,
                                          local, 0, NULL, &e);
    if (err != CL_SUCCESS)
        return heddle_opencl_fail(dev, err, "launch a kernel");
    note_event(dev, dev->stream[stream].launching, e, now_ns);
    return HEDDLE_OK;
}
