/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * order: order between streams, and between devices.
 *
 * Structure  two streams of a device: a barrier that waits for the event. Two
 *            devices have two contexts, and an event means nothing in the other:
 *            a user event there stands for the operation, and is set when
 *            progress() of this one finds it ended. The waiter is in the list of
 *            the operation and in the list of the device that waits.
 * Invariants (1) no user event stays open when its operation has ended
 *            (2) nothing blocks in OpenCL on a device that waits for another one:
 *                this thread is the only one that can let it go on
 */
#include <sched.h>

#include "base/alloc.h"
#include "drive/opencl/dev.h"

/* Lets the waiting queue go on, and forgets the device. */
static void waiter_open(struct heddle_opencl_waiter *w)
{
    struct heddle_opencl_waiter **at = &w->barred->barred;

    while (*at != w)
        at = &(*at)->next_barred;
    *at = w->next_barred;
    w->barred->api.clSetUserEventStatus(w->event, CL_COMPLETE);
    w->barred->api.clReleaseEvent(w->event);
    w->barred = NULL;
}

void heddle_opencl_order_ended(struct heddle_opencl_flight *f)
{
    while (f->waiters != NULL) {
        struct heddle_opencl_waiter *w = f->waiters;

        f->waiters = w->next;
        if (w->barred != NULL)
            waiter_open(w);
        heddle_free(f->dev->env.alloc, w, sizeof(*w));
    }
}

void heddle_opencl_order_fini(struct heddle_dev *dev)
{
    while (dev->barred != NULL)
        waiter_open(dev->barred);
}

/* Opens what can be opened, on other devices first where they wait as well. */
static void order_sweep(struct heddle_dev *dev)
{
    struct heddle_opencl_waiter *w, *next;

    if (dev->is_swept)
        return;
    dev->is_swept = true;
    for (w = dev->barred; w != NULL; w = next) {
        struct heddle_dev *source = w->flight->dev;
        cl_int state = CL_COMPLETE;

        next = w->next_barred;
        order_sweep(source);
        source->api.clGetEventInfo(w->flight->end, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(state),
                                   &state, NULL);
        if (state <= CL_COMPLETE || source->is_lost)
            waiter_open(w);
    }
    dev->is_swept = false;
}

bool heddle_opencl_wait(struct heddle_dev *dev, cl_event e)
{
    while (dev->barred != NULL) {
        cl_int state = CL_COMPLETE;

        dev->api.clGetEventInfo(e, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(state), &state, NULL);
        if (state <= CL_COMPLETE)
            break;
        order_sweep(dev);
        sched_yield();
    }
    return dev->api.clWaitForEvents(1, &e) == CL_SUCCESS;
}

static heddle_status order_foreign(struct heddle_dev *dev, unsigned stream,
                                   struct heddle_opencl_flight *f)
{
    const struct heddle_allocator *a = f->dev->env.alloc;
    struct heddle_opencl_waiter *w = heddle_zalloc(a, 1, sizeof(*w));
    cl_int err;

    if (w == NULL)
        return HEDDLE_ENOMEM;
    w->event = dev->api.clCreateUserEvent(dev->context, &err);
    if (w->event == NULL) {
        heddle_free(a, w, sizeof(*w));
        return heddle_opencl_fail(dev, err, "make an event");
    }
    w->flight = f;
    w->next = f->waiters;
    f->waiters = w;
    w->barred = dev;
    w->next_barred = dev->barred;
    dev->barred = w;
    err = dev->api.clEnqueueBarrierWithWaitList(dev->stream[stream].queue, 1, &w->event, NULL);
    if (err == CL_SUCCESS)
        return HEDDLE_OK;
    waiter_open(w); /* the record goes with the operation */
    return heddle_opencl_fail(dev, err, "order two devices");
}

heddle_status heddle_opencl_order(struct heddle_dev *dev, unsigned stream, struct heddle_op *op)
{
    struct heddle_opencl_flight *f = op->priv[0];
    cl_int err;

    if (dev->is_lost)
        return HEDDLE_EDEV;
    if (f->dev != dev)
        return order_foreign(dev, stream, f);
    if (f->stream == stream)
        return HEDDLE_OK;
    err = dev->api.clEnqueueBarrierWithWaitList(dev->stream[stream].queue, 1, &f->end, NULL);
    if (err != CL_SUCCESS)
        return heddle_opencl_fail(dev, err, "order two streams");
    return HEDDLE_OK;
}
