/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * copy: the copies and fills of the API.
 *
 * Structure  each becomes a rectangle, rows of `width` bytes. As with CUDA, host
 *            memory that is not pinned is read before the call returns, and written
 *            before the call returns; pinned memory when the stream comes to it.
 * Threads    any.
 */
#include "fakecuda.h"

#include <string.h>

struct side {
    const char *at;
    size_t pitch;
    bool is_host;
};

static bool is_pinned(const struct side *s, size_t width, size_t height)
{
    struct fc_block b;

    return fc_block_find(s->at, s->pitch * (height - 1) + width, &b) && b.kind != FC_DEVICE;
}

/* The source as it is now. */
static void stage(struct fc_work *w, const struct side *src)
{
    const size_t width = w->u.copy.width, height = w->u.copy.height;
    char *to = fc_new(width * height);

    for (size_t y = 0; y < height; y++)
        memcpy(to + y * width, src->at + y * src->pitch, width);
    w->blob = to;
    w->blob_bytes = width * height;
    w->u.copy.src = to;
    w->u.copy.src_pitch = width;
}

static CUresult copy(CUstream h, const struct side *dst, const struct side *src, size_t width,
                     size_t height, bool waits)
{
    struct fc_work w = {.kind = FC_WORK_COPY};
    bool is_capturing;
    CUcontext ctx;
    CUstream s;
    CUresult r = fc_stream_of(h, &ctx, &s);

    if (r == FC_OK && waits)
        r = fc_capture_unsafe();
    if (r == FC_OK)
        r = fc_fail(ctx, FC_FAIL_COPY);
    if (r != FC_OK)
        return r;
    if (width == 0 || height == 0)
        return FC_OK;
    if (dst->at == NULL || src->at == NULL ||
        (height > 1 && (dst->pitch < width || src->pitch < width)))
        return FC_EVALUE;
    w.ctx = s->obj.ctx;
    w.u.copy.dst = (char *)(uintptr_t)dst->at;
    w.u.copy.src = src->at;
    w.u.copy.width = width;
    w.u.copy.height = height;
    w.u.copy.dst_pitch = dst->pitch;
    w.u.copy.src_pitch = src->pitch;
    w.u.copy.is_src_pageable = src->is_host && !is_pinned(src, width, height);
    w.u.copy.is_dst_pageable = dst->is_host && !is_pinned(dst, width, height);
    is_capturing = s->capture != NULL;
    if (w.u.copy.is_src_pageable && !is_capturing)
        stage(&w, src);
    waits = (waits || w.u.copy.is_dst_pageable) && !is_capturing;
    r = fc_stream_work(s, &w);
    if (r == FC_OK && waits) {
        fc_stream_wait(s);
        r = (CUresult)atomic_load(&s->obj.ctx->sticky);
    }
    return r;
}

static struct side host(const void *at, size_t bytes)
{
    return (struct side){at, bytes, true};
}

static struct side device(CUdeviceptr at, size_t bytes)
{
    return (struct side){(const char *)(uintptr_t)at, bytes, false};
}

CU(cuMemcpyHtoDAsync_v2, CUdeviceptr to, const void *from, size_t n, CUstream h)
{
    const struct side dst = device(to, n), src = host(from, n);

    return copy(h, &dst, &src, n, 1, false);
}

CU(cuMemcpyDtoHAsync_v2, void *to, CUdeviceptr from, size_t n, CUstream h)
{
    const struct side dst = host(to, n), src = device(from, n);

    return copy(h, &dst, &src, n, 1, false);
}

CU(cuMemcpyDtoDAsync_v2, CUdeviceptr to, CUdeviceptr from, size_t n, CUstream h)
{
    const struct side dst = device(to, n), src = device(from, n);

    return copy(h, &dst, &src, n, 1, false);
}

CU(cuMemcpyHtoD_v2, CUdeviceptr to, const void *from, size_t n)
{
    const struct side dst = device(to, n), src = host(from, n);

    return copy(NULL, &dst, &src, n, 1, true);
}

CU(cuMemcpyDtoH_v2, void *to, CUdeviceptr from, size_t n)
{
    const struct side dst = host(to, n), src = device(from, n);

    return copy(NULL, &dst, &src, n, 1, true);
}

CU(cuMemcpyDtoD_v2, CUdeviceptr to, CUdeviceptr from, size_t n)
{
    const struct side dst = device(to, n), src = device(from, n);

    return copy(NULL, &dst, &src, n, 1, true);
}

/* Either side may be anything: whoever is not device memory is the host's. */
CU(cuMemcpyAsync, CUdeviceptr to, CUdeviceptr from, size_t n, CUstream h)
{
    struct side dst = device(to, n), src = device(from, n);
    struct fc_block b;

    dst.is_host = !fc_block_find(dst.at, 1, &b) || b.kind != FC_DEVICE;
    src.is_host = !fc_block_find(src.at, 1, &b) || b.kind != FC_DEVICE;
    return copy(h, &dst, &src, n, 1, false);
}

CU(cuMemcpyPeerAsync, CUdeviceptr to, CUcontext to_ctx, CUdeviceptr from, CUcontext from_ctx,
   size_t n, CUstream h)
{
    const struct side dst = device(to, n), src = device(from, n);
    struct fc_block b;

    if (to_ctx == NULL || from_ctx == NULL)
        return FC_ECONTEXT;
    if (fc_block_find(dst.at, 1, &b) && b.ctx != to_ctx)
        return FC_EVALUE;
    if (fc_block_find(src.at, 1, &b) && b.ctx != from_ctx)
        return FC_EVALUE;
    return copy(h, &dst, &src, n, 1, false);
}

/* As CUDA lays it out. */
struct rect_side {
    size_t x_bytes, y;
    unsigned type;
    void *host;
    CUdeviceptr device;
    void *array;
    size_t pitch;
};

struct rect {
    struct rect_side src, dst;
    size_t width_bytes, height;
};

static CUresult rect_side(const struct rect_side *s, struct side *out)
{
    enum { HOST = 1, DEVICE = 2 };

    if (s->type != HOST && s->type != DEVICE)
        return FC_ENOTSUPPORTED;
    *out = s->type == HOST ? host(s->host, s->pitch) : device(s->device, s->pitch);
    out->at += s->x_bytes + s->y * s->pitch;
    return FC_OK;
}

static CUresult copy_rect(const struct rect *c, CUstream h, bool waits)
{
    struct side dst, src;
    CUresult r = rect_side(&c->dst, &dst);

    if (r == FC_OK)
        r = rect_side(&c->src, &src);
    if (r != FC_OK)
        return r;
    if (dst.pitch == 0)
        dst.pitch = c->width_bytes;
    if (src.pitch == 0)
        src.pitch = c->width_bytes;
    return copy(h, &dst, &src, c->width_bytes, c->height, waits);
}

CU(cuMemcpy2DAsync_v2, const struct rect *c, CUstream h)
{
    return copy_rect(c, h, false);
}

CU(cuMemcpy2D_v2, const struct rect *c)
{
    return copy_rect(c, NULL, true);
}

static CUresult fill(CUstream h, CUdeviceptr at, uint32_t value, unsigned elem, size_t n)
{
    struct fc_work w = {.kind = FC_WORK_FILL};
    CUcontext ctx;
    CUstream s;
    CUresult r = fc_stream_of(h, &ctx, &s);

    if (r == FC_OK)
        r = fc_fail(ctx, FC_FAIL_COPY);
    if (r != FC_OK)
        return r;
    w.ctx = s->obj.ctx;
    w.u.fill.at = (char *)(uintptr_t)at;
    w.u.fill.value = value;
    w.u.fill.elem = elem;
    w.u.fill.n = n;
    return fc_stream_work(s, &w);
}

CU(cuMemsetD8Async, CUdeviceptr at, unsigned char value, size_t n, CUstream h)
{
    return fill(h, at, value, 1, n);
}

CU(cuMemsetD32Async, CUdeviceptr at, unsigned value, size_t n, CUstream h)
{
    return fill(h, at, value, 4, n);
}

CU(cuMemsetD8_v2, CUdeviceptr at, unsigned char value, size_t n)
{
    return fill(NULL, at, value, 1, n);
}

CU(cuMemsetD32_v2, CUdeviceptr at, unsigned value, size_t n)
{
    return fill(NULL, at, value, 4, n);
}
