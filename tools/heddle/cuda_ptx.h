/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_CUDA_PTX_H
#define HEDDLE_TOOLS_CUDA_PTX_H

/* What nvcc makes of cuda_ptx.cu, a module for each kernel. The version is the
 * oldest that knows the target, so older drivers take it too. */
#define BENCH_PTX ".version 6.3\n.target sm_75\n.address_size 64\n"

static const char bench_empty_ptx[] = BENCH_PTX ".visible .entry bench_empty() { ret; }\n";

static const char bench_trap_ptx[] = BENCH_PTX ".visible .entry bench_trap() { trap; ret; }\n";

static const char bench_step_ptx[] =
    BENCH_PTX ".visible .entry bench_step( .param .u64 a0, .param .u32 a1 ) { .reg\n"
              ".b32 %r<2>; .reg .f64 %fd<4>; .reg .b64 %rd<3>; ld.param.u64 %rd1,\n"
              "[a0]; ld.param.u32 %r1, [a1]; cvta.to.global.u64 %rd2, %rd1;\n"
              "cvt.rn.f64.u32 %fd1, %r1; ld.global.f64 %fd2, [%rd2]; add.f64 %fd3,\n"
              "%fd2, %fd1; st.global.f64 [%rd2], %fd3; ret; }\n";

static const char bench_fill_ptx[] =
    BENCH_PTX ".visible .entry bench_fill( .param .u64 a0, .param .u32 a1, .param\n"
              ".u32 a2, .param .u32 a3, .param .u32 a4, .param .u32 a5, .param .f64\n"
              "a6 ) { .reg .pred %p<12>; .reg .b32 %r<58>; .reg .f64 %fd<10>; .reg\n"
              ".b64 %rd<39>; ld.param.u64 %rd22, [a0]; ld.param.u32 %r5, [a1];\n"
              "ld.param.u32 %r6, [a2]; ld.param.u32 %r2, [a3]; ld.param.u32 %r3,\n"
              "[a4]; ld.param.u32 %r4, [a5]; ld.param.f64 %fd1, [a6];\n"
              "cvta.to.global.u64 %rd1, %rd22; cvt.u64.u32 %rd2, %r5; mul.wide.u32\n"
              "%rd3, %r6, %r5; mov.u32 %r7, %nctaid.x; mov.u32 %r8, %ntid.x;\n"
              "mul.wide.u32 %rd4, %r7, %r8; mov.u32 %r9, %ctaid.x; mul.wide.u32\n"
              "%rd23, %r9, %r8; mov.u32 %r10, %tid.x; cvt.u64.u32 %rd24, %r10;\n"
              "add.s64 %rd36, %rd23, %rd24; setp.ge.u64 %p1, %rd36, %rd3; @%p1 bra\n"
              "L10; and.b32 %r11, %r4, 1; setp.eq.b32 %p2, %r11, 1; mov.pred %p3,\n"
              "0; xor.pred %p4, %p2, %p3; not.pred %p5, %p4; mul.lo.s32 %r1, %r4,\n"
              "-1028477379; @%p5 bra L6; bra.uni L2; L6: and.b64 %rd29, %rd36,\n"
              "-4294967296; setp.eq.s64 %p9, %rd29, 0; @%p9 bra L8; div.u64 %rd37,\n"
              "%rd36, %rd2; mul.lo.s64 %rd30, %rd37, %rd2; sub.s64 %rd38, %rd36,\n"
              "%rd30; bra.uni L9; L8: cvt.u32.u64 %r36, %rd2; cvt.u32.u64 %r37,\n"
              "%rd36; div.u32 %r38, %r37, %r36; mul.lo.s32 %r39, %r38, %r36;\n"
              "sub.s32 %r40, %r37, %r39; cvt.u64.u32 %rd37, %r38; cvt.u64.u32\n"
              "%rd38, %r40; L9: cvt.u32.u64 %r41, %rd38; add.s32 %r42, %r41, %r2;\n"
              "cvt.u32.u64 %r43, %rd37; add.s32 %r44, %r43, %r3; mul.lo.s32 %r45,\n"
              "%r42, -1640531535; mul.lo.s32 %r46, %r44, -2048144777; xor.b32 %r47,\n"
              "%r45, %r1; xor.b32 %r48, %r47, %r46; shr.u32 %r49, %r48, 15; xor.b32\n"
              "%r50, %r49, %r48; mul.lo.s32 %r51, %r50, 739982445; shr.u32 %r52,\n"
              "%r51, 12; xor.b32 %r53, %r52, %r51; mul.lo.s32 %r54, %r53,\n"
              "695872825; shr.u32 %r55, %r54, 15; xor.b32 %r56, %r55, %r54; shr.u32\n"
              "%r57, %r56, 8; cvt.rn.f64.u32 %fd6, %r57; fma.rn.f64 %fd7, %fd6,\n"
              "0d3E80000000000000, 0dBFF0000000000000; setp.eq.s32 %p10, %r42,\n"
              "%r44; add.f64 %fd8, %fd7, %fd1; selp.f64 %fd9, %fd8, %fd7, %p10;\n"
              "shl.b64 %rd31, %rd36, 3; add.s64 %rd32, %rd1, %rd31; st.global.f64\n"
              "[%rd32], %fd9; add.s64 %rd36, %rd36, %rd4; setp.lt.u64 %p11, %rd36,\n"
              "%rd3; @%p11 bra L6; bra.uni L10; L2: and.b64 %rd25, %rd36,\n"
              "-4294967296; setp.eq.s64 %p6, %rd25, 0; @%p6 bra L4; div.u64 %rd34,\n"
              "%rd36, %rd2; mul.lo.s64 %rd26, %rd34, %rd2; sub.s64 %rd35, %rd36,\n"
              "%rd26; bra.uni L5; L4: cvt.u32.u64 %r12, %rd2; cvt.u32.u64 %r13,\n"
              "%rd36; div.u32 %r14, %r13, %r12; mul.lo.s32 %r15, %r14, %r12;\n"
              "sub.s32 %r16, %r13, %r15; cvt.u64.u32 %rd34, %r14; cvt.u64.u32\n"
              "%rd35, %r16; L5: cvt.u32.u64 %r17, %rd35; add.s32 %r18, %r17, %r2;\n"
              "cvt.u32.u64 %r19, %rd34; add.s32 %r20, %r19, %r3; min.u32 %r21,\n"
              "%r18, %r20; max.u32 %r22, %r18, %r20; mul.lo.s32 %r23, %r21,\n"
              "-1640531535; mul.lo.s32 %r24, %r22, -2048144777; xor.b32 %r25, %r23,\n"
              "%r1; xor.b32 %r26, %r25, %r24; shr.u32 %r27, %r26, 15; xor.b32 %r28,\n"
              "%r27, %r26; mul.lo.s32 %r29, %r28, 739982445; shr.u32 %r30, %r29,\n"
              "12; xor.b32 %r31, %r30, %r29; mul.lo.s32 %r32, %r31, 695872825;\n"
              "shr.u32 %r33, %r32, 15; xor.b32 %r34, %r33, %r32; shr.u32 %r35,\n"
              "%r34, 8; cvt.rn.f64.u32 %fd2, %r35; fma.rn.f64 %fd3, %fd2,\n"
              "0d3E80000000000000, 0dBFF0000000000000; setp.eq.s32 %p7, %r18, %r20;\n"
              "add.f64 %fd4, %fd3, %fd1; selp.f64 %fd5, %fd4, %fd3, %p7; shl.b64\n"
              "%rd27, %rd36, 3; add.s64 %rd28, %rd1, %rd27; st.global.f64 [%rd28],\n"
              "%fd5; add.s64 %rd36, %rd36, %rd4; setp.lt.u64 %p8, %rd36, %rd3; @%p8\n"
              "bra L2; L10: ret; }\n";

static const char bench_axpy_ptx[] =
    BENCH_PTX ".visible .entry bench_axpy( .param .f64 a0, .param .u64 a1, .param\n"
              ".u64 a2, .param .u32 a3 ) { .reg .pred %p<3>; .reg .b32 %r<11>; .reg\n"
              ".f64 %fd<5>; .reg .b64 %rd<8>; ld.param.f64 %fd1, [a0]; ld.param.u64\n"
              "%rd3, [a1]; ld.param.u64 %rd4, [a2]; ld.param.u32 %r6, [a3]; mov.u32\n"
              "%r1, %ntid.x; mov.u32 %r7, %ctaid.x; mov.u32 %r8, %tid.x; mad.lo.s32\n"
              "%r10, %r7, %r1, %r8; setp.ge.u32 %p1, %r10, %r6; @%p1 bra L3;\n"
              "mov.u32 %r9, %nctaid.x; mul.lo.s32 %r3, %r9, %r1; cvta.to.global.u64\n"
              "%rd1, %rd3; cvta.to.global.u64 %rd2, %rd4; L2: mul.wide.u32 %rd5,\n"
              "%r10, 8; add.s64 %rd6, %rd1, %rd5; ld.global.f64 %fd2, [%rd6];\n"
              "add.s64 %rd7, %rd2, %rd5; ld.global.f64 %fd3, [%rd7]; fma.rn.f64\n"
              "%fd4, %fd2, %fd1, %fd3; st.global.f64 [%rd7], %fd4; add.s32 %r10,\n"
              "%r10, %r3; setp.lt.u32 %p2, %r10, %r6; @%p2 bra L2; L3: ret; }\n";

static const char bench_walk_ptx[] =
    BENCH_PTX ".visible .entry bench_walk( .param .u64 a0, .param .u64 a1, .param\n"
              ".u32 a2, .param .u32 a3 ) { .reg .pred %p<6>; .reg .b32 %r<50>; .reg\n"
              ".b64 %rd<15>; ld.param.u64 %rd3, [a0]; ld.param.u64 %rd4, [a1];\n"
              "ld.param.u32 %r15, [a2]; ld.param.u32 %r16, [a3]; cvta.to.global.u64\n"
              "%rd1, %rd3; cvta.to.global.u64 %rd2, %rd4; ld.global.u32 %r17,\n"
              "[%rd2]; add.s32 %r49, %r17, %r15; setp.eq.s32 %p1, %r16, 0; @%p1 bra\n"
              "L6; add.s32 %r19, %r16, -1; and.b32 %r48, %r16, 3; setp.lt.u32 %p2,\n"
              "%r19, 3; @%p2 bra L4; sub.s32 %r44, %r16, %r48; L3: shr.u32 %r20,\n"
              "%r49, 8; rem.u32 %r21, %r20, %r15; mul.wide.u32 %rd5, %r21, 4;\n"
              "add.s64 %rd6, %rd1, %rd5; ld.global.u32 %r22, [%rd6]; mad.lo.s32\n"
              "%r23, %r49, 1664525, %r22; add.s32 %r24, %r23, 1013904223; shr.u32\n"
              "%r25, %r24, 8; rem.u32 %r26, %r25, %r15; mul.wide.u32 %rd7, %r26, 4;\n"
              "add.s64 %rd8, %rd1, %rd7; ld.global.u32 %r27, [%rd8]; mad.lo.s32\n"
              "%r28, %r24, 1664525, %r27; add.s32 %r29, %r28, 1013904223; shr.u32\n"
              "%r30, %r29, 8; rem.u32 %r31, %r30, %r15; mul.wide.u32 %rd9, %r31, 4;\n"
              "add.s64 %rd10, %rd1, %rd9; ld.global.u32 %r32, [%rd10]; mad.lo.s32\n"
              "%r33, %r29, 1664525, %r32; add.s32 %r34, %r33, 1013904223; shr.u32\n"
              "%r35, %r34, 8; rem.u32 %r36, %r35, %r15; mul.wide.u32 %rd11, %r36,\n"
              "4; add.s64 %rd12, %rd1, %rd11; ld.global.u32 %r37, [%rd12];\n"
              "mad.lo.s32 %r38, %r34, 1664525, %r37; add.s32 %r49, %r38,\n"
              "1013904223; add.s32 %r44, %r44, -4; setp.ne.s32 %p3, %r44, 0; @%p3\n"
              "bra L3; L4: setp.eq.s32 %p4, %r48, 0; @%p4 bra L6; L5: .pragma\n"
              "\"nounroll\"; shr.u32 %r39, %r49, 8; rem.u32 %r40, %r39, %r15;\n"
              "mul.wide.u32 %rd13, %r40, 4; add.s64 %rd14, %rd1, %rd13;\n"
              "ld.global.u32 %r41, [%rd14]; mad.lo.s32 %r42, %r49, 1664525, %r41;\n"
              "add.s32 %r49, %r42, 1013904223; add.s32 %r48, %r48, -1; setp.ne.s32\n"
              "%p5, %r48, 0; @%p5 bra L5; L6: st.global.u32 [%rd2], %r49; ret; }\n";

static const char bench_norm_ptx[] =
    BENCH_PTX ".visible .entry bench_norm( .param .u64 a0, .param .u64 a1, .param\n"
              ".u64 a2 ) { .reg .pred %p<12>; .reg .b32 %r<13>; .reg .f64 %fd<37>;\n"
              ".reg .b64 %rd<15>; .shared .align 8 .b8 part[2048]; ld.param.u64\n"
              "%rd7, [a0]; ld.param.u64 %rd8, [a1]; ld.param.u64 %rd9, [a2];\n"
              "mov.u32 %r3, %tid.x; cvt.u64.u32 %rd1, %r3; setp.ge.u64 %p1, %rd1,\n"
              "%rd8; mov.f64 %fd36, 0d0000000000000000; @%p1 bra L3;\n"
              "cvta.to.global.u64 %rd10, %rd7; shl.b64 %rd11, %rd1, 3; add.s64\n"
              "%rd13, %rd10, %rd11; mov.f64 %fd36, 0d0000000000000000; mov.u64\n"
              "%rd14, %rd1; L2: ld.global.f64 %fd6, [%rd13]; abs.f64 %fd7, %fd6;\n"
              "add.f64 %fd36, %fd36, %fd7; add.s64 %rd13, %rd13, 2048; add.s64\n"
              "%rd14, %rd14, 256; setp.lt.u64 %p2, %rd14, %rd8; @%p2 bra L2; L3:\n"
              "cvt.u32.u64 %r4, %rd1; shl.b32 %r5, %r4, 3; mov.u32 %r6, part;\n"
              "add.s32 %r1, %r6, %r5; st.shared.f64 [%r1], %fd36; bar.sync 0;\n"
              "setp.gt.u32 %p3, %r4, 127; @%p3 bra L5; ld.shared.f64 %fd8, [%r1];\n"
              "ld.shared.f64 %fd9, [%r1+1024]; add.f64 %fd10, %fd9, %fd8;\n"
              "st.shared.f64 [%r1], %fd10; L5: bar.sync 0; setp.gt.u32 %p4, %r4,\n"
              "63; @%p4 bra L7; ld.shared.f64 %fd11, [%r1]; ld.shared.f64 %fd12,\n"
              "[%r1+512]; add.f64 %fd13, %fd12, %fd11; st.shared.f64 [%r1], %fd13;\n"
              "L7: bar.sync 0; setp.gt.u32 %p5, %r4, 31; @%p5 bra L9; ld.shared.f64\n"
              "%fd14, [%r1]; ld.shared.f64 %fd15, [%r1+256]; add.f64 %fd16, %fd15,\n"
              "%fd14; st.shared.f64 [%r1], %fd16; L9: bar.sync 0; setp.gt.u32 %p6,\n"
              "%r4, 15; @%p6 bra L11; ld.shared.f64 %fd17, [%r1]; ld.shared.f64\n"
              "%fd18, [%r1+128]; add.f64 %fd19, %fd18, %fd17; st.shared.f64 [%r1],\n"
              "%fd19; L11: bar.sync 0; setp.gt.u32 %p7, %r4, 7; @%p7 bra L13;\n"
              "ld.shared.f64 %fd20, [%r1]; ld.shared.f64 %fd21, [%r1+64]; add.f64\n"
              "%fd22, %fd21, %fd20; st.shared.f64 [%r1], %fd22; L13: bar.sync 0;\n"
              "setp.gt.u32 %p8, %r4, 3; @%p8 bra L15; ld.shared.f64 %fd23, [%r1];\n"
              "ld.shared.f64 %fd24, [%r1+32]; add.f64 %fd25, %fd24, %fd23;\n"
              "st.shared.f64 [%r1], %fd25; L15: bar.sync 0; setp.gt.u32 %p9, %r4,\n"
              "1; @%p9 bra L17; ld.shared.f64 %fd26, [%r1]; ld.shared.f64 %fd27,\n"
              "[%r1+16]; add.f64 %fd28, %fd27, %fd26; st.shared.f64 [%r1], %fd28;\n"
              "L17: bar.sync 0; setp.ne.s32 %p10, %r4, 0; @%p10 bra L19;\n"
              "ld.shared.f64 %fd29, [part+8]; ld.shared.f64 %fd30, [%r1]; add.f64\n"
              "%fd31, %fd29, %fd30; st.shared.f64 [%r1], %fd31; L19: bar.sync 0;\n"
              "@%p10 bra L21; cvta.to.global.u64 %rd12, %rd9; ld.shared.f64 %fd32,\n"
              "[part]; ld.global.f64 %fd33, [%rd12]; add.f64 %fd34, %fd32, %fd33;\n"
              "st.global.f64 [%rd12], %fd34; L21: ret; }\n";

/* By the name of the kernel. */
static const struct {
    const char *entry, *text;
} bench_ptx[] = {
    {"bench_empty", bench_empty_ptx}, {"bench_trap", bench_trap_ptx},
    {"bench_step", bench_step_ptx},   {"bench_fill", bench_fill_ptx},
    {"bench_axpy", bench_axpy_ptx},   {"bench_walk", bench_walk_ptx},
    {"bench_norm", bench_norm_ptx},
};

#endif /* HEDDLE_TOOLS_CUDA_PTX_H */
