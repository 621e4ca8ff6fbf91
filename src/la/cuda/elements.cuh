/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * elements: reflectors, diagonals and triangles, element by element, for all four types.
 */
__device__ static bool is_zero(float x)
{
    return x == 0;
}

__device__ static bool is_zero(double x)
{
    return x == 0;
}

__device__ static bool is_zero(float2 x)
{
    return x.x == 0 && x.y == 0;
}

__device__ static bool is_zero(double2 x)
{
    return x.x == 0 && x.y == 0;
}

__device__ static float times(float x, float y)
{
    return x * y;
}

__device__ static double times(double x, double y)
{
    return x * y;
}

__device__ static float2 times(float2 x, float2 y)
{
    return make_float2(x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x);
}

__device__ static double2 times(double2 x, double2 y)
{
    return make_double2(x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x);
}

__device__ static void set(float *x, float to)
{
    *x = to;
}

__device__ static void set(double *x, double to)
{
    *x = to;
}

__device__ static void set(float2 *x, float to)
{
    *x = make_float2(to, 0);
}

__device__ static void set(double2 *x, double to)
{
    *x = make_double2(to, 0);
}

/* v (m x n) becomes the reflectors below the diagonal of a, with zeros and ones. */
template <typename T>
__device__ static void reflectors(const T *a, long long lda, int m, int n, T *v, long long ldv)
{
    for (long long e = blockIdx.x * (long long)blockDim.x + threadIdx.x; e < (long long)m * n;
         e += (long long)gridDim.x * blockDim.x) {
        const long long i = e % m, j = e / m;

        if (i > j)
            v[i + j * ldv] = a[i + j * lda];
        else
            set(&v[i + j * ldv], i == j);
    }
}

/* Column j of g (n x n) is multiplied by tau[j]; t becomes the diagonal tau. */
template <typename T>
__device__ static void scale_columns(T *g, int n, const T *tau, T *t, long long ldt)
{
    for (long long e = blockIdx.x * (long long)blockDim.x + threadIdx.x; e < (long long)n * n;
         e += (long long)gridDim.x * blockDim.x) {
        const long long i = e % n, j = e / n;

        g[e] = times(g[e], tau[j]);
        if (i == j)
            t[i + j * ldt] = tau[j];
        else
            set(&t[i + j * ldt], 0);
    }
}

/* *found: the first row (from 1), row0 + j, where the diagonal of the n columns at a
 * has a zero, if there is one before *found; 0: none yet. One block. */
template <typename T>
__device__ static void zeros(const T *a, long long ld, int n, int row0, int *found)
{
    __shared__ int first;

    if (threadIdx.x == 0)
        first = 0x7fffffff;
    __syncthreads();
    for (int j = threadIdx.x; j < n; j += blockDim.x)
        if (is_zero(a[row0 + j + j * ld]))
            atomicMin(&first, row0 + j + 1);
    __syncthreads();
    if (threadIdx.x == 0 && first != 0x7fffffff && (*found == 0 || first < *found))
        *found = first;
}

__device__ static bool is_nan(float x)
{
    return x != x;
}

__device__ static bool is_nan(double x)
{
    return x != x;
}

__device__ static bool is_nan(float2 x)
{
    return is_nan(x.x);
}

__device__ static bool is_nan(double2 x)
{
    return is_nan(x.x);
}

/* *info, if it is 0: the first row (from 1) where the diagonal of a, of order n, has a NaN.
 * One block. */
template <typename T> __device__ static void no_roots(const T *a, long long ld, int n, int *info)
{
    __shared__ int first;

    if (threadIdx.x == 0)
        first = 0x7fffffff;
    __syncthreads();
    for (int j = threadIdx.x; j < n; j += blockDim.x)
        if (is_nan(a[j + j * ld]))
            atomicMin(&first, j + 1);
    __syncthreads();
    if (threadIdx.x == 0 && first != 0x7fffffff && *info == 0)
        *info = first;
}

/* x (m x n): columns `column` and so on of the identity. */
template <typename T> __device__ static void identity(T *x, long long ld, int m, int n, int column)
{
    for (long long e = blockIdx.x * (long long)blockDim.x + threadIdx.x; e < (long long)m * n;
         e += (long long)gridDim.x * blockDim.x)
        set(&x[e % m + e / m * ld], e % m == column + e / m);
}

/* x = (re, im) x, or 0; without its imaginary part if is_real. */
__device__ static void scale(float *x, double re, double, bool)
{
    *x = re == 0 ? 0 : (float)re * *x;
}

__device__ static void scale(double *x, double re, double, bool)
{
    *x = re == 0 ? 0 : re * *x;
}

__device__ static void scale(float2 *x, double re, double im, bool is_real)
{
    const float2 y = times(make_float2((float)re, (float)im), *x);

    *x = re == 0 && im == 0 ? make_float2(0, 0) : make_float2(y.x, is_real ? 0 : y.y);
}

__device__ static void scale(double2 *x, double re, double im, bool is_real)
{
    const double2 y = times(make_double2(re, im), *x);

    *x = re == 0 && im == 0 ? make_double2(0, 0) : make_double2(y.x, is_real ? 0 : y.y);
}

/* The triangle of c (n x n) is scaled; its diagonal becomes real if is_real. */
template <typename T>
__device__ static void scale_triangle(T *c, long long ld, int n, int is_upper, double re, double im,
                                      int is_real)
{
    for (long long e = blockIdx.x * (long long)blockDim.x + threadIdx.x; e < (long long)n * n;
         e += (long long)gridDim.x * blockDim.x) {
        const long long i = e % n, j = e / n;

        if (is_upper ? i <= j : i >= j)
            scale(&c[i + j * ld], re, im, is_real && i == j);
    }
}

/* The triangle of x (n x n) goes to a, without the diagonal if is_unit. */
template <typename T>
__device__ static void copy_triangle(const T *x, long long ldx, int n, T *a, long long lda,
                                     int is_upper, int is_unit)
{
    for (long long e = blockIdx.x * (long long)blockDim.x + threadIdx.x; e < (long long)n * n;
         e += (long long)gridDim.x * blockDim.x) {
        const long long i = e % n, j = e / n;

        if (i == j ? !is_unit : is_upper ? i < j : i > j)
            a[i + j * lda] = x[i + j * ldx];
    }
}
