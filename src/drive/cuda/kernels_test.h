/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_DRIVE_CUDA_KERNELS_TEST_H
#define HEDDLE_DRIVE_CUDA_KERNELS_TEST_H

/*
 * A few kernels as PTX, for tests; the stand-in of tests/fakecuda knows them by
 * name. In CUDA C:
 *
 *     twice(uint32_t *p, uint32_t n)    { if (i < n) p[i] *= 2; }
 *     axpy(float a, const float *x, float *y, uint32_t n)
 *                                       { if (i < n) y[i] += a * x[i]; }
 *     store(uint32_t *p, uint32_t v)    { *p = v; }
 *     spin(uint64_t ns)                 { until so much time has passed }
 *     trap(void)                        { the context does not survive it }
 *     empty(void)                       { }
 *
 * where i is blockIdx.x * blockDim.x + threadIdx.x.
 */
/* clang-format off */
static const char cuda_test_ptx[] =
    ".version 6.4\n"
    ".target sm_75\n"
    ".address_size 64\n"
    ".visible .entry twice(.param .u64 p, .param .u32 n)\n"
    "{\n"
    "  .reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %rd<5>;\n"
    "  ld.param.u64 %rd1, [p];\n"
    "  ld.param.u32 %r2, [n];\n"
    "  mov.u32 %r3, %ctaid.x;\n"
    "  mov.u32 %r4, %ntid.x;\n"
    "  mov.u32 %r5, %tid.x;\n"
    "  mad.lo.s32 %r1, %r3, %r4, %r5;\n"
    "  setp.ge.u32 %p1, %r1, %r2;\n"
    "  @%p1 bra END;\n"
    "  cvta.to.global.u64 %rd2, %rd1;\n"
    "  mul.wide.u32 %rd3, %r1, 4;\n"
    "  add.s64 %rd4, %rd2, %rd3;\n"
    "  ld.global.u32 %r6, [%rd4];\n"
    "  shl.b32 %r7, %r6, 1;\n"
    "  st.global.u32 [%rd4], %r7;\n"
    "END:\n"
    "  ret;\n"
    "}\n"
    ".visible .entry axpy(.param .f32 a, .param .u64 x, .param .u64 y,\n"
    "                     .param .u32 n)\n"
    "{\n"
    "  .reg .pred %p<2>; .reg .f32 %f<5>; .reg .b32 %r<6>; .reg .b64 %rd<8>;\n"
    "  ld.param.f32 %f1, [a];\n"
    "  ld.param.u64 %rd1, [x];\n"
    "  ld.param.u64 %rd2, [y];\n"
    "  ld.param.u32 %r2, [n];\n"
    "  mov.u32 %r3, %ctaid.x;\n"
    "  mov.u32 %r4, %ntid.x;\n"
    "  mov.u32 %r5, %tid.x;\n"
    "  mad.lo.s32 %r1, %r3, %r4, %r5;\n"
    "  setp.ge.u32 %p1, %r1, %r2;\n"
    "  @%p1 bra END;\n"
    "  cvta.to.global.u64 %rd3, %rd1;\n"
    "  mul.wide.u32 %rd4, %r1, 4;\n"
    "  add.s64 %rd5, %rd3, %rd4;\n"
    "  ld.global.f32 %f2, [%rd5];\n"
    "  cvta.to.global.u64 %rd6, %rd2;\n"
    "  add.s64 %rd7, %rd6, %rd4;\n"
    "  ld.global.f32 %f3, [%rd7];\n"
    "  fma.rn.f32 %f4, %f2, %f1, %f3;\n"
    "  st.global.f32 [%rd7], %f4;\n"
    "END:\n"
    "  ret;\n"
    "}\n"
    ".visible .entry store(.param .u64 p, .param .u32 v)\n"
    "{\n"
    "  .reg .b32 %r<2>; .reg .b64 %rd<3>;\n"
    "  ld.param.u64 %rd1, [p];\n"
    "  ld.param.u32 %r1, [v];\n"
    "  cvta.to.global.u64 %rd2, %rd1;\n"
    "  st.global.u32 [%rd2], %r1;\n"
    "  ret;\n"
    "}\n"
    ".visible .entry spin(.param .u64 ns)\n"
    "{\n"
    "  .reg .pred %p<2>; .reg .b64 %rd<5>;\n"
    "  ld.param.u64 %rd1, [ns];\n"
    "  mov.u64 %rd2, %globaltimer;\n"
    "AGAIN:\n"
    "  mov.u64 %rd3, %globaltimer;\n"
    "  sub.s64 %rd4, %rd3, %rd2;\n"
    "  setp.lt.u64 %p1, %rd4, %rd1;\n"
    "  @%p1 bra AGAIN;\n"
    "  ret;\n"
    "}\n"
    ".visible .entry trap()\n"
    "{\n"
    "  trap;\n"
    "  ret;\n"
    "}\n"
    ".visible .entry empty()\n"
    "{\n"
    "  ret;\n"
    "}\n";
/* clang-format on */

#endif /* HEDDLE_DRIVE_CUDA_KERNELS_TEST_H */
