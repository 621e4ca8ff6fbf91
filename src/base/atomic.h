/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_ATOMIC_H
#define HEDDLE_BASE_ATOMIC_H

/*
 * C11 atomics with the memory order in the name. Code outside base/ uses these
 * and never the bare operators, which are sequentially consistent by accident.
 * There are no stand-alone fences: TSan cannot follow them (ADR 0006).
 */
#include <stdatomic.h>

#define heddle_load_rlx(p)     atomic_load_explicit(p, memory_order_relaxed)
#define heddle_load_acq(p)     atomic_load_explicit(p, memory_order_acquire)
#define heddle_load_sc(p)      atomic_load_explicit(p, memory_order_seq_cst)
#define heddle_store_rlx(p, v) atomic_store_explicit(p, v, memory_order_relaxed)
#define heddle_store_rel(p, v) atomic_store_explicit(p, v, memory_order_release)
#define heddle_store_sc(p, v)  atomic_store_explicit(p, v, memory_order_seq_cst)

#define heddle_add_rlx(p, v)     atomic_fetch_add_explicit(p, v, memory_order_relaxed)
#define heddle_add_acqrel(p, v)  atomic_fetch_add_explicit(p, v, memory_order_acq_rel)
#define heddle_add_sc(p, v)      atomic_fetch_add_explicit(p, v, memory_order_seq_cst)
#define heddle_sub_acqrel(p, v)  atomic_fetch_sub_explicit(p, v, memory_order_acq_rel)
#define heddle_sub_sc(p, v)      atomic_fetch_sub_explicit(p, v, memory_order_seq_cst)
#define heddle_or_acqrel(p, v)   atomic_fetch_or_explicit(p, v, memory_order_acq_rel)
#define heddle_xchg_acqrel(p, v) atomic_exchange_explicit(p, v, memory_order_acq_rel)
#define heddle_xchg_sc(p, v)     atomic_exchange_explicit(p, v, memory_order_seq_cst)

/* On failure *expected holds what was seen, with acquire order. */
#define heddle_cas_acqrel(p, expected, v)                                                          \
    atomic_compare_exchange_strong_explicit(p, expected, v, memory_order_acq_rel,                  \
                                            memory_order_acquire)
#define heddle_cas_weak_acqrel(p, expected, v)                                                     \
    atomic_compare_exchange_weak_explicit(p, expected, v, memory_order_acq_rel,                    \
                                          memory_order_acquire)
#define heddle_cas_sc(p, expected, v)                                                              \
    atomic_compare_exchange_strong_explicit(p, expected, v, memory_order_seq_cst,                  \
                                            memory_order_seq_cst)

/* One breath of a spin loop. */
static inline void heddle_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

#define HEDDLE_CACHE_LINE 64

#endif /* HEDDLE_BASE_ATOMIC_H */
