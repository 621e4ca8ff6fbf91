/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernels: the kernels of bench cuda; `make ptx` makes ptx/kernels.h from them.
 *
 * bench_fill() gives every element of a matrix a value
 * that depends on its place alone (bench_value() in bench_cuda.c), so a product
 * can be checked without a copy of its operands; with an odd seed the matrix is
 * symmetric. Sums of bench_step() and bench_walk() are exact.
 */
extern "C" {
__device__ static double value(unsigned row, unsigned col, unsigned seed)
{
    unsigned h = row * 0x9E3779B1u ^ col * 0x85EBCA77u ^ seed * 0xC2B2AE3Du;

    h ^= h >> 15;
    h *= 0x2C1B3C6Du;
    h ^= h >> 12;
    h *= 0x297A2D39u;
    h ^= h >> 15;
    return (double)(h >> 8) * (1.0 / 8388608.0) - 1.0;
}

__global__ void bench_empty(void) {}

__global__ void bench_trap(void)
{
    asm volatile("trap;");
}

__global__ void bench_step(double *p, unsigned v)
{
    p[0] += (double)v;
}

__global__ void bench_fill(double *p, unsigned m, unsigned n, unsigned row, unsigned col,
                           unsigned seed, double diagonal)
{
    const unsigned long long total = (unsigned long long)m * n;
    const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    unsigned long long e = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;

    for (; e < total; e += step) {
        const unsigned i = row + (unsigned)(e % m), j = col + (unsigned)(e / m);
        const double v = seed & 1 ? value(min(i, j), max(i, j), seed) : value(i, j, seed);

        p[e] = i == j ? v + diagonal : v;
    }
}

__global__ void bench_axpy(double a, const double *x, double *y, unsigned n)
{
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] += a * x[i];
}

/* One thread: a chain of loads that no processor can guess. */
__global__ void bench_walk(const unsigned *x, unsigned *y, unsigned n, unsigned steps)
{
    unsigned s = y[0] + n;

    for (unsigned i = 0; i < steps; i++)
        s = s * 1664525u + x[(s >> 8) % n] + 1013904223u;
    y[0] = s;
}

/* One block of 256 threads. */
__global__ void bench_norm(const double *t, unsigned long long n, double *out)
{
    __shared__ double part[256];
    double s = 0;

    for (unsigned long long i = threadIdx.x; i < n; i += 256)
        s += fabs(t[i]);
    part[threadIdx.x] = s;
    __syncthreads();
    for (unsigned k = 128; k > 0; k >>= 1) {
        if (threadIdx.x < k)
            part[threadIdx.x] += part[threadIdx.x + k];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        out[0] += part[0];
}
}
