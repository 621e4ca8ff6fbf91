/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BASE_MODEL_ATOMIC_TEST_H
#define HEDDLE_BASE_MODEL_ATOMIC_TEST_H

/* For model_test.h: the macros of base/atomic.h, with a stop of the model before each access. */

#define MODEL_LOAD(p, order)                                                                       \
    (!model.is_on ? atomic_load_explicit(p, order)                                                 \
                  : (__typeof__(atomic_load_explicit(p, order)))model_load(                        \
                        (const void *)(uintptr_t)(p), sizeof(*(p))))
#define MODEL_STORE(p, v, order)                                                                   \
    (!model.is_on ? atomic_store_explicit(p, v, order)                                             \
                  : model_store((void *)(uintptr_t)(p), (uint64_t)(v), sizeof(*(p))))
/* `op` returns the old value. */
#define MODEL_RMW(op)                                                                              \
    (!model.is_on    ? (op)                                                                        \
     : model_enter() ? (__typeof__(op))model_get()                                                 \
                     : (model_drain(), (__typeof__(op))model_put((uint64_t)(op))))
/* Two words in the log: what was seen, and whether it was as expected. */
#define MODEL_CAS(expected, op)                                                                    \
    (!model.is_on    ? (op)                                                                        \
     : model_enter() ? (*(expected) = (__typeof__(*(expected)))model_get(), model_get() != 0)      \
                     : (model_drain(), model_keep(op), model_put((uint64_t) * (expected)),         \
                        model_put(model.kept) != 0))

#undef heddle_load_rlx
#undef heddle_load_acq
#undef heddle_load_sc
#undef heddle_store_rlx
#undef heddle_store_rel
#undef heddle_store_sc
#undef heddle_add_rlx
#undef heddle_add_acqrel
#undef heddle_add_sc
#undef heddle_sub_acqrel
#undef heddle_sub_sc
#undef heddle_xchg_acqrel
#undef heddle_xchg_sc
#undef heddle_cas_acqrel
#undef heddle_cas_weak_acqrel
#undef heddle_cas_sc
#define heddle_load_rlx(p)     MODEL_LOAD(p, memory_order_relaxed)
#define heddle_load_acq(p)     MODEL_LOAD(p, memory_order_acquire)
#define heddle_load_sc(p)      MODEL_LOAD(p, memory_order_seq_cst)
#define heddle_store_rlx(p, v) MODEL_STORE(p, v, memory_order_relaxed)
#define heddle_store_rel(p, v) MODEL_STORE(p, v, memory_order_release)
#define heddle_store_sc(p, v)                                                                      \
    ((void)MODEL_RMW(atomic_exchange_explicit(p, v, memory_order_seq_cst)))
#define heddle_add_rlx(p, v)     MODEL_RMW(atomic_fetch_add_explicit(p, v, memory_order_relaxed))
#define heddle_add_acqrel(p, v)  MODEL_RMW(atomic_fetch_add_explicit(p, v, memory_order_acq_rel))
#define heddle_add_sc(p, v)      MODEL_RMW(atomic_fetch_add_explicit(p, v, memory_order_seq_cst))
#define heddle_sub_acqrel(p, v)  MODEL_RMW(atomic_fetch_sub_explicit(p, v, memory_order_acq_rel))
#define heddle_sub_sc(p, v)      MODEL_RMW(atomic_fetch_sub_explicit(p, v, memory_order_seq_cst))
#define heddle_xchg_acqrel(p, v) MODEL_RMW(atomic_exchange_explicit(p, v, memory_order_acq_rel))
#define heddle_xchg_sc(p, v)     MODEL_RMW(atomic_exchange_explicit(p, v, memory_order_seq_cst))
#define heddle_cas_acqrel(p, expected, v)                                                          \
    MODEL_CAS(expected, atomic_compare_exchange_strong_explicit(                                   \
                            p, expected, v, memory_order_acq_rel, memory_order_acquire))
/* The model has no spurious failures: they only repeat a loop. */
#define heddle_cas_weak_acqrel(p, expected, v) heddle_cas_acqrel(p, expected, v)
#define heddle_cas_sc(p, expected, v)                                                              \
    MODEL_CAS(expected, atomic_compare_exchange_strong_explicit(                                   \
                            p, expected, v, memory_order_seq_cst, memory_order_seq_cst))

#endif /* HEDDLE_BASE_MODEL_ATOMIC_TEST_H */
