/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench/cuda/gemm: C = A B^T in double precision on tiles, by cuBLAS.
 *
 * gemm       all tiles in the memory of the device, filled there before the clock
 *            starts. Raw: one cublasDgemm() on the whole matrices.
 * outofcore  tiles in pinned memory of the host, three times what the context may
 *            use of the device. Raw: the longest of the arithmetic at the rate of
 *            cuBLAS, of A and B going in once, and of C coming out once, at the
 *            rates of pinned copies; all measured between the runs.
 * Order      in device memory, step by step over all of C: many independent tasks
 *            at a time. Out of core, in blocks of C that stay while the rows of A
 *            and B that belong to them pass by.
 * Check      elements drawn at random are computed again on the host.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "bench/cuda/cuda.h"

enum { SEED_A = 2, SEED_B = 4, SAMPLES = 16 };

struct product {
    struct cuda_bench *b;
    size_t nt, nb;
    heddle_ctx *ctx;
    heddle_handle **tile; /* A, B, C: nt x nt each, row by row */
    double *host;         /* their memory; NULL: the runtime's */
    size_t block;         /* tiles along a side of a block of C */
};

static size_t order_of(const struct product *p)
{
    return p->nt * p->nb;
}

static double flops_of(size_t order)
{
    return 2.0 * (double)order * (double)order * (double)order;
}

static size_t tile_bytes(const struct product *p)
{
    return p->nb * p->nb * sizeof(double);
}

/* --- tasks --------------------------------------------------------------- */

static heddle_status make_tiles(struct product *p)
{
    const size_t n = 3 * p->nt * p->nt;
    heddle_status st = HEDDLE_OK;

    p->tile = calloc(n, sizeof(heddle_handle *));
    if (p->tile == NULL)
        return HEDDLE_ENOMEM;
    for (size_t i = 0; i < n && st == HEDDLE_OK; i++)
        st = heddle_handle_matrix(p->ctx, p->host != NULL ? p->host + i * p->nb * p->nb : NULL,
                                  p->nb, p->nb, 0, HEDDLE_F64, &p->tile[i]);
    return st;
}

/* A and B where they shall be before the clock starts. */
static heddle_status fill(struct product *p)
{
    const size_t nn = p->nt * p->nt;
    const struct heddle_task_opts o = {
        .size = sizeof(o), .devices = 1u << (p->host != NULL ? HEDDLE_DEV_CPU : HEDDLE_DEV_CUDA)};
    heddle_status st = make_tiles(p), waited;

    for (size_t i = 0; i < 3 * nn && st == HEDDLE_OK; i++) {
        const struct bench_fill f = {.row = (uint32_t)(i % nn / p->nt * p->nb),
                                     .col = (uint32_t)(i % nn % p->nt * p->nb),
                                     .seed = i < nn ? SEED_A : SEED_B};

        st = heddle_submit(
            p->ctx, &bench_kernel_fill,
            &(struct heddle_call){
                .operand = {p->tile[i]}, .arg = &f, .arg_bytes = sizeof(f), .opts = &o});
    }
    waited = heddle_wait(p->ctx);
    return st != HEDDLE_OK ? st : waited;
}

static heddle_status put(struct product *p, size_t i, size_t j, size_t k)
{
    const size_t n = p->nt, nn = n * n;

    return heddle_submit(
        p->ctx, k == 0 ? &bench_kernel_gemm_first : &bench_kernel_gemm_next,
        &(struct heddle_call){
            .operand = {p->tile[i * n + k], p->tile[nn + j * n + k], p->tile[2 * nn + i * n + j]}});
}

/* One block of C, from (i0, j0). Every second step runs the other way, so that
 * what was used last is used first. */
static heddle_status put_block(struct product *p, size_t i0, size_t j0)
{
    const size_t n = p->nt;
    const size_t i1 = i0 + p->block < n ? i0 + p->block : n;
    const size_t j1 = j0 + p->block < n ? j0 + p->block : n;
    heddle_status st = HEDDLE_OK;

    for (size_t k = 0; k < n; k++)
        for (size_t i = i0; i < i1; i++)
            for (size_t j = j0; j < j1 && st == HEDDLE_OK; j++)
                st = put(p, i, (i - i0) % 2 == 0 ? j : j1 - 1 - (j - j0), k);
    return st;
}

static heddle_status multiply(struct product *p, double *ns_out)
{
    const uint64_t start = heddle_clock_ns();
    heddle_status st = HEDDLE_OK, waited;

    for (size_t i = 0; i < p->nt && st == HEDDLE_OK; i += p->block)
        for (size_t j = 0; j < p->nt && st == HEDDLE_OK; j += p->block)
            st = put_block(p, i, j);
    waited = heddle_wait(p->ctx);
    *ns_out = cuda_ns_since(start);
    return st != HEDDLE_OK ? st : waited;
}

/* --- check --------------------------------------------------------------- */

static int check(struct product *p)
{
    const size_t n = order_of(p), nn = p->nt * p->nt;
    struct heddle_rng rng;

    heddle_rng_seed(&rng, 7);
    for (unsigned s = 0; s < SAMPLES; s++) {
        const size_t i = heddle_rng_next(&rng) % n;
        const size_t j = heddle_rng_next(&rng) % n;
        heddle_handle *h = p->tile[2 * nn + i / p->nb * p->nt + j / p->nb];
        double want = 0, got;
        void *ptr = NULL;
        heddle_status st = heddle_handle_acquire(h, HEDDLE_R, &ptr);

        if (st != HEDDLE_OK)
            return cuda_fail(p->b, "the product cannot be read", p->ctx, st);
        got = ((const double *)ptr)[i % p->nb + j % p->nb * p->nb];
        st = heddle_handle_release(h);
        for (size_t k = 0; k < n; k++)
            want += bench_value((uint32_t)i, (uint32_t)k, SEED_A) *
                    bench_value((uint32_t)j, (uint32_t)k, SEED_B);
        if (!(fabs(got - want) <= 1e-12 * (double)n))
            return cli_fail(p->b->c,
                            "element (%zu, %zu) of the product is %.17g "
                            "instead of %.17g",
                            i, j, got, want);
    }
    return 0;
}

/* --- without Heddle ------------------------------------------------------ */

struct raw_product {
    size_t order;
    cuda_raw_ptr m[3];
};

static int raw_open(struct cuda_raw *r, struct raw_product *p)
{
    const cuda_raw_function f = cuda_raw_kernel(r, bench_cuda_image("bench_fill"), "bench_fill");
    const size_t bytes = p->order * p->order * sizeof(double);
    uint32_t n = (uint32_t)p->order, zero = 0;
    double diagonal = 0;
    int code = f == NULL ? 500 : 0;

    for (unsigned i = 0; i < 3 && code == 0; i++) {
        uint32_t seed = i == 0 ? SEED_A : SEED_B;
        void *args[] = {&p->m[i], &n, &n, &zero, &zero, &seed, &diagonal};

        code = r->mem_alloc(&p->m[i], bytes);
        if (code == 0)
            code = r->launch(f, 4096, 1, 1, 256, 1, 1, 0, r->stream, args, NULL);
    }
    return code == 0 ? r->stream_sync(r->stream) : code;
}

static void raw_close(struct cuda_raw *r, struct raw_product *p)
{
    cuda_raw_use(r);
    for (unsigned i = 0; i < 3; i++)
        if (p->m[i] != 0)
            r->mem_free(p->m[i]);
}

static int raw_multiply(struct cuda_raw *r, const struct raw_product *p, double *ns_out)
{
    const double one = 1.0, zero = 0.0;
    const int n = (int)p->order;
    uint64_t start;
    int code, waited;

    cuda_raw_use(r);
    start = heddle_clock_ns();
    code = r->dgemm(r->blas, CUDA_RAW_OP_N, CUDA_RAW_OP_T, n, n, n, &one, p->m[0], n, p->m[1], n,
                    &zero, p->m[2], n);
    waited = r->stream_sync(r->stream);
    *ns_out = cuda_ns_since(start);
    return code != 0 ? code : waited;
}

/* --- in device memory ---------------------------------------------------- */

static int gemm_rounds(struct product *p, const struct raw_product *raw)
{
    char name[32];
    struct bench_case k = {.part = "gemm",
                           .name = name,
                           .unit = "TF/s",
                           .rule = BENCH_RATIO_AT_LEAST,
                           .must = 0.93,
                           .aim = 0.98,
                           .n = p->b->rounds};
    const double flops = flops_of(order_of(p));
    int rc;

    for (size_t r = 0; r < p->b->rounds + 1; r++) {
        double ns = 0;
        const int code = raw_multiply(&p->b->raw, raw, &ns);
        heddle_status st;

        if (code != 0)
            return cuda_raw_fail(p->b, "the product fails", code);
        k.raw[r > 0 ? r - 1 : 0] = flops / ns / 1e3;
        st = multiply(p, &ns);
        if (st != HEDDLE_OK)
            return cuda_fail(p->b, "the tile product fails", p->ctx, st);
        k.heddle[r > 0 ? r - 1 : 0] = flops / ns / 1e3; /* 0 warms up */
    }
    snprintf(name, sizeof(name), "tiles of %zu", p->nb);
    bench_case_fact(&k, "order", (double)order_of(p));
    bench_case_fact(&k, "nb", (double)p->nb);
    rc = check(p);
    return rc == 0 ? cuda_report(p->b, &k) : rc;
}

static int gemm_case(struct cuda_bench *b, const struct raw_product *raw, size_t nb)
{
    const struct heddle_ctx_opts o = cuda_ctx_opts(b);
    struct product p = {.b = b, .nt = raw->order / nb, .nb = nb};
    heddle_status st = heddle_ctx_create(&o, &p.ctx), closed;
    int rc;

    p.block = p.nt;
    if (st == HEDDLE_OK)
        st = fill(&p);
    rc = st == HEDDLE_OK ? gemm_rounds(&p, raw)
                         : cuda_fail(b, "the matrices cannot be filled", p.ctx, st);
    cuda_drop(p.tile, 3 * p.nt * p.nt);
    closed = heddle_ctx_destroy(p.ctx);
    return rc == 0 && closed != HEDDLE_OK ? cuda_fail(b, "the context ended with", NULL, closed)
                                          : rc;
}

int bench_cuda_gemm(struct cuda_bench *b)
{
    struct raw_product raw = {.order = cuda_scaled(b, b->is_quick ? 8192 : 16384, 64)};
    int rc = 0, code;

    if (!cuda_raw_open_blas(&b->raw))
        return cli_fail(b->c, "%s", b->raw.why);
    code = raw_open(&b->raw, &raw);
    if (code != 0)
        rc = cuda_raw_fail(b, "the matrices cannot be made", code);
    if (rc == 0)
        rc = gemm_case(b, &raw, cuda_scaled(b, 2048, 8));
    if (rc == 0)
        rc = gemm_case(b, &raw, cuda_scaled(b, 4096, 16));
    raw_close(&b->raw, &raw);
    return rc;
}

/* --- out of core --------------------------------------------------------- */

/* What is reachable: rates of this moment. */
struct reach {
    double tflops, in_rate, out_rate; /* TF/s, GB/s */
    double compute_ns, in_ns, out_ns;
};

static int raw_rates(struct product *p, const struct raw_product *raw, struct reach *e)
{
    struct cuda_raw *r = &p->b->raw;
    const size_t bytes = raw->order * raw->order * sizeof(double);
    double ns = 0;
    int code = raw_multiply(r, raw, &ns);
    uint64_t start;

    e->tflops = flops_of(raw->order) / ns / 1e3;
    start = heddle_clock_ns();
    if (code == 0)
        code = r->copy_in(raw->m[2], p->host, bytes, r->stream);
    if (code == 0)
        code = r->stream_sync(r->stream);
    e->in_rate = (double)bytes / cuda_ns_since(start);
    start = heddle_clock_ns();
    if (code == 0) /* the same bytes back */
        code = r->copy_out(p->host, raw->m[2], bytes, r->stream);
    if (code == 0)
        code = r->stream_sync(r->stream);
    e->out_rate = (double)bytes / cuda_ns_since(start);
    return code;
}

static double reachable(const struct product *p, struct reach *e)
{
    const double matrix = (double)p->nt * (double)p->nt * (double)tile_bytes(p);

    e->compute_ns = flops_of(order_of(p)) / e->tflops / 1e3;
    e->in_ns = 2 * matrix / e->in_rate;
    e->out_ns = matrix / e->out_rate;
    return fmax(e->compute_ns, fmax(e->in_ns, e->out_ns));
}

static uint64_t bytes_in(struct product *p)
{
    struct heddle_memory_info m = {.size = sizeof(m)};

    return heddle_ctx_get_memory(p->ctx, 1, &m) == HEDDLE_OK ? m.bytes_in : 0;
}

static int outofcore_rounds(struct product *p, const struct raw_product *raw)
{
    struct bench_case k = {.part = "outofcore",
                           .name = "3x the device memory",
                           .unit = "TF/s",
                           .raw_name = "reachable",
                           .rule = BENCH_RATIO_AT_LEAST,
                           .must = 0.8,
                           .aim = 0.92,
                           .n = p->b->rounds};
    const double flops = flops_of(order_of(p));
    struct reach e = {0};
    uint64_t moved = 0;
    int rc;

    for (size_t r = 0; r < p->b->rounds + 1; r++) {
        const int code = raw_rates(p, raw, &e);
        const size_t at = r > 0 ? r - 1 : 0; /* 0 warms up */
        double ns = 0;
        heddle_status st = cuda_void_copies(p->tile, 2 * p->nt * p->nt);

        if (code != 0)
            return cuda_raw_fail(p->b, "the rates cannot be measured", code);
        moved = bytes_in(p);
        if (st == HEDDLE_OK)
            st = multiply(p, &ns);
        if (st != HEDDLE_OK)
            return cuda_fail(p->b, "the product out of core fails", p->ctx, st);
        moved = bytes_in(p) - moved;
        k.raw[at] = flops / reachable(p, &e) / 1e3;
        k.heddle[at] = flops / ns / 1e3;
    }
    bench_case_fact(&k, "order", (double)order_of(p));
    bench_case_fact(&k, "nb", (double)p->nb);
    bench_case_fact(&k, "compute_ms", e.compute_ns / 1e6);
    bench_case_fact(&k, "in_ms", e.in_ns / 1e6);
    bench_case_fact(&k, "out_ms", e.out_ns / 1e6);
    bench_case_fact(&k, "moved_in_gb", (double)moved / 1e9);
    bench_case_fact(&k, "needed_in_gb", e.in_ns * e.in_rate / 1e9);
    rc = check(p);
    return rc == 0 ? cuda_report(p->b, &k) : rc;
}

/* Blocks of C of equal size, with room for what passes by and is on its way. */
static size_t block_of(const struct product *p, size_t budget_tiles)
{
    const double most = sqrt(0.55 * (double)budget_tiles);
    const size_t nblocks = (size_t)ceil((double)p->nt / fmax(most, 1.0));

    return (p->nt + nblocks - 1) / nblocks;
}

static int outofcore(struct product *p, const struct raw_product *raw)
{
    const size_t budget = p->nt * p->nt; /* tiles: a third */
    struct heddle_ctx_opts o = cuda_ctx_opts(p->b);
    heddle_status st, closed;
    int rc;

    p->block = block_of(p, budget);
    o.device_memory = budget * tile_bytes(p);
    st = heddle_ctx_create(&o, &p->ctx);
    if (st == HEDDLE_OK)
        st = fill(p);
    rc = st == HEDDLE_OK ? outofcore_rounds(p, raw)
                         : cuda_fail(p->b, "the matrices cannot be filled", p->ctx, st);
    cuda_drop(p->tile, 3 * p->nt * p->nt);
    closed = heddle_ctx_destroy(p->ctx);
    return rc == 0 && closed != HEDDLE_OK ? cuda_fail(p->b, "the context ended with", NULL, closed)
                                          : rc;
}

int bench_cuda_outofcore(struct cuda_bench *b)
{
    struct product p = {
        .b = b, .nt = b->is_quick ? 9 : 12, .nb = cuda_scaled(b, b->is_quick ? 1024 : 2048, 8)};
    struct raw_product raw = {.order = cuda_scaled(b, b->is_quick ? 4096 : 8192, 8)};
    void *host = NULL;
    int rc = 0, code;

    if (!cuda_raw_open_blas(&b->raw))
        return cli_fail(b->c, "%s", b->raw.why);
    code = raw_open(&b->raw, &raw);
    if (code == 0)
        code = b->raw.host_alloc(&host, 3 * p.nt * p.nt * tile_bytes(&p), CUDA_RAW_HOST_PORTABLE);
    p.host = host;
    if (code != 0)
        rc = cuda_raw_fail(b, "the matrices cannot be made", code);
    if (rc == 0)
        rc = outofcore(&p, &raw);
    cuda_raw_use(&b->raw);
    if (host != NULL)
        b->raw.host_free(host);
    raw_close(&b->raw, &raw);
    return rc;
}
