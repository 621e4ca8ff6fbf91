/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/cuda/stream: data of the host through the device and back.
 *
 * in         tasks on the GPU that read one block each; what counts is the time
 *            until all have.
 * in+out     tasks that update one block each: heddle_wait() brings the data home.
 * Memory     of the caller: pageable, and pinned by cuMemHostAlloc(). The first
 *            pass over pageable memory is told apart: there the runtime gets to
 *            know it. Between rounds the copies on the device are made void.
 * Raw        the same bytes by asynchronous copies of pinned memory, both ways at
 *            once for in+out.
 * Check      the first word of every block counts its updates.
 */
#include <stdlib.h>
#include <string.h>

#include "bench/cuda/cuda.h"

struct area {
    unsigned char *ptr;
    bool is_pinned;
};

struct streaming {
    struct cuda_bench *b;
    size_t nblocks, bytes; /* of a block */
    struct area area[2];   /* pageable, pinned */

    cuda_raw_ptr device;
    cuda_raw_stream out;
    cuda_raw_event *arrived;

    heddle_ctx *ctx;
    heddle_handle **h;
    uint64_t updates;
};

/* --- without Heddle ------------------------------------------------------ */

static int raw_pass(struct streaming *s, bool is_out, double *ns_out)
{
    struct cuda_raw *r = &s->b->raw;
    uint64_t start;
    int code = 0, waited;

    cuda_raw_use(r);
    start = heddle_clock_ns();
    for (size_t i = 0; i < s->nblocks && code == 0; i++) {
        unsigned char *host = s->area[1].ptr + i * s->bytes;
        const cuda_raw_ptr device = s->device + i * s->bytes;

        code = r->copy_in(device, host, s->bytes, r->stream);
        if (!is_out || code != 0)
            continue;
        code = r->event_record(s->arrived[i], r->stream);
        if (code == 0)
            code = r->stream_wait(s->out, s->arrived[i], 0);
        if (code == 0)
            code = r->copy_out(host, device, s->bytes, s->out);
    }
    waited = r->stream_sync(r->stream);
    code = code != 0 ? code : waited;
    waited = r->stream_sync(s->out);
    *ns_out = cuda_ns_since(start);
    return code != 0 ? code : waited;
}

static int raw_open(struct streaming *s)
{
    struct cuda_raw *r = &s->b->raw;
    int code;

    cuda_raw_use(r);
    code = r->mem_alloc(&s->device, s->nblocks * s->bytes);

    if (code == 0)
        code = r->stream_create(&s->out, CUDA_RAW_STREAM_NON_BLOCKING);
    s->arrived = calloc(s->nblocks, sizeof(cuda_raw_event));
    for (size_t i = 0; s->arrived != NULL && i < s->nblocks && code == 0; i++)
        code = r->event_create(&s->arrived[i], CUDA_RAW_EVENT_NO_TIMING);
    return s->arrived == NULL ? 2 : code;
}

static void raw_close(struct streaming *s)
{
    struct cuda_raw *r = &s->b->raw;

    cuda_raw_use(r);
    for (size_t i = 0; s->arrived != NULL && i < s->nblocks; i++)
        if (s->arrived[i] != NULL)
            r->event_destroy(s->arrived[i]);
    free(s->arrived);
    if (s->out != NULL)
        r->stream_destroy(s->out);
    if (s->device != 0)
        r->mem_free(s->device);
}

/* --- with it ------------------------------------------------------------- */

static heddle_status own_pass(struct streaming *s, bool is_out, double *ns_out)
{
    const uint32_t one = 1;
    heddle_status st = cuda_void_copies(s->h, s->nblocks), waited;
    uint64_t start;

    if (st != HEDDLE_OK)
        return st;
    start = heddle_clock_ns();
    for (size_t i = 0; i < s->nblocks && st == HEDDLE_OK; i++)
        st = heddle_submit(s->ctx, is_out ? &bench_kernel_step : &bench_kernel_empty_r,
                           &(struct heddle_call){.operand = {s->h[i]},
                                                 .arg = is_out ? &one : NULL,
                                                 .arg_bytes = is_out ? sizeof(one) : 0});
    waited = heddle_wait(s->ctx);
    *ns_out = cuda_ns_since(start);
    s->updates += is_out;
    return st != HEDDLE_OK ? st : waited;
}

static heddle_status own_open(struct streaming *s, const struct area *a)
{
    const struct heddle_ctx_opts o = cuda_ctx_opts(s->b);
    heddle_status st = heddle_ctx_create(&o, &s->ctx);

    s->updates = 0;
    s->h = calloc(s->nblocks, sizeof(heddle_handle *));
    if (st == HEDDLE_OK && s->h == NULL)
        st = HEDDLE_ENOMEM;
    for (size_t i = 0; i < s->nblocks && st == HEDDLE_OK; i++) {
        const double v = (double)i;

        memcpy(a->ptr + i * s->bytes, &v, sizeof(v));
        st = heddle_handle_vector(s->ctx, a->ptr + i * s->bytes, s->bytes / sizeof(double),
                                  HEDDLE_F64, &s->h[i]);
    }
    return st;
}

static int check(struct streaming *s, const struct area *a)
{
    for (size_t i = 0; i < s->nblocks; i++) {
        double v;

        memcpy(&v, a->ptr + i * s->bytes, sizeof(v));
        if (v != (double)i + (double)s->updates)
            return cli_fail(s->b->c, "block %zu came home with %.0f instead of %.0f", i, v,
                            (double)i + (double)s->updates);
    }
    return 0;
}

/* --- rounds -------------------------------------------------------------- */

static double rate(const struct streaming *s, bool is_out, double ns)
{
    const double bytes = (double)s->nblocks * (double)s->bytes;

    return (is_out ? 2 : 1) * bytes / ns; /* bytes per ns: GB/s */
}

static int one_round(struct streaming *s, bool is_out, double *raw_out, double *own_out)
{
    double ns = 0;
    const int code = raw_pass(s, is_out, &ns);
    heddle_status st;

    if (code != 0)
        return cuda_raw_fail(s->b, "the copies fail", code);
    *raw_out = rate(s, is_out, ns);
    st = own_pass(s, is_out, &ns);
    if (st != HEDDLE_OK)
        return cuda_fail(s->b, "the streaming fails", s->ctx, st);
    *own_out = rate(s, is_out, ns);
    return 0;
}

static int rounds(struct streaming *s, const struct area *a, bool is_out)
{
    static const char *const name[2][2] = {{"pageable in", "pageable in+out"},
                                           {"pinned in", "pinned in+out"}};
    static const char *const first[2][2] = {{"pageable in, first", "pageable in+out, first"},
                                            {"pinned in, first", "pinned in+out, first"}};
    struct bench_case k = {.part = "stream",
                           .name = name[a->is_pinned][is_out],
                           .unit = "GB/s",
                           .rule = BENCH_RATIO_AT_LEAST,
                           .must = 0.9,
                           .aim = 0.97,
                           .n = s->b->rounds};
    struct bench_case once = {
        .part = "stream", .name = first[a->is_pinned][is_out], .unit = "GB/s", .n = 1};
    int rc = one_round(s, is_out, &once.raw[0], &once.heddle[0]);

    if (rc == 0)
        rc = cuda_report(s->b, &once);
    for (size_t r = 0; r < s->b->rounds && rc == 0; r++)
        rc = one_round(s, is_out, &k.raw[r], &k.heddle[r]);
    if (rc == 0)
        rc = check(s, a);
    return rc == 0 ? cuda_report(s->b, &k) : rc;
}

static int with_area(struct streaming *s, const struct area *a)
{
    heddle_status st = own_open(s, a), closed;
    int rc = 0;

    if (st != HEDDLE_OK)
        rc = cuda_fail(s->b, "the streaming cannot begin", s->ctx, st);
    if (rc == 0)
        rc = rounds(s, a, false);
    if (rc == 0)
        rc = rounds(s, a, true);
    cuda_drop(s->h, s->nblocks);
    closed = heddle_ctx_destroy(s->ctx);
    s->h = NULL;
    s->ctx = NULL;
    return rc == 0 && closed != HEDDLE_OK ? cuda_fail(s->b, "the context ended with", NULL, closed)
                                          : rc;
}

int bench_cuda_stream(struct cuda_bench *b)
{
    struct streaming s = {
        .b = b, .nblocks = b->is_quick ? 16 : 64, .bytes = cuda_scaled(b, (size_t)64 << 20, 4096)};
    const size_t total = s.nblocks * s.bytes;
    void *pinned = NULL;
    int code = raw_open(&s), rc = 0;

    s.area[0].ptr = aligned_alloc(4096, total);
    if (code == 0)
        code = b->raw.host_alloc(&pinned, total, CUDA_RAW_HOST_PORTABLE);
    s.area[1] = (struct area){pinned, true};
    if (s.area[0].ptr == NULL)
        rc = cli_fail(b->c, "no memory for %zu bytes", total);
    else if (code != 0)
        rc = cuda_raw_fail(b, "the streaming cannot begin", code);
    for (unsigned i = 0; i < 2 && rc == 0; i++) {
        memset(s.area[i].ptr, 0, total); /* the pages are there */
        rc = with_area(&s, &s.area[i]);
    }
    free(s.area[0].ptr);
    cuda_raw_use(&b->raw);
    if (pinned != NULL)
        b->raw.host_free(pinned);
    raw_close(&s);
    return rc;
}
