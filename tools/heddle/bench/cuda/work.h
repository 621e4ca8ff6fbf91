/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_BENCH_CUDA_WORK_H
#define HEDDLE_TOOLS_BENCH_CUDA_WORK_H

/*
 * A program for cores and a GPU: a tile Cholesky factorisation, sums of some of its
 * tiles when they are done, and between them, in chains of random length, walks
 * through tables, which cores do faster. Parts mixed and simulate run it.
 *
 * Data     the runtime's. Before the clock starts the matrix is on the device, the
 *          tables are on the host.
 * Costs    of each kind of task on a core and on the whole GPU: the time of many
 *          independent ones by their number, so neither the streams that share a
 *          GPU nor the cores that share a memory are counted twice.
 *
 * Threads  the main thread.
 */
#include "bench/cuda/cuda.h"
#include "sim/graph.h"

enum cuda_work_kind {
    WORK_WALK = CHOLESKY_NKINDS, /* three lengths */
    WORK_NORM = WORK_WALK + 3,
    WORK_NKINDS
};

enum { WORK_CORE, WORK_GPU, WORK_NTYPES };

/* ns of a task of a kind on one worker of a type. */
struct cuda_costs {
    uint32_t nb;
    double ns[WORK_NKINDS][WORK_NTYPES];
    uint32_t nworkers;         /* cores */
    uint32_t nstreams;         /* of the GPU */
    double alone[WORK_NKINDS]; /* on the GPU, one after the other: work_alone() */
};

struct cuda_work {
    struct cuda_bench *b;
    uint32_t nt, nb;
    struct sim_graph g; /* kinds are enum cuda_work_kind */
    uint32_t *step;     /* of a Cholesky task: its k */
    heddle_kernel kernel[CHOLESKY_NKINDS];

    heddle_ctx *ctx;
    bool is_virtual;      /* time: set it before work_open() */
    heddle_handle **data; /* tiles, tables, results of walks, sums */
    heddle_handle **info; /* of potrf */
    double submit_ns;     /* of the latest run: until all was submitted */
};

/* Measures on ctx (bench/cuda/cost.c), `walks` of each length on each core. The
 * more, the less of what the runtime costs is in it. 0, or the exit status after a
 * sentence. */
int work_measure(struct cuda_bench *b, heddle_ctx *ctx, uint32_t nb, unsigned walks,
                 struct cuda_costs *costs);

/* The same for tasks that have the GPU for themselves; after work_measure().
 * single_ns, what an empty task takes from its submission to the end of the wait, is
 * in each batch once: it is taken out of these costs and of those of batches. */
int work_alone(struct cuda_bench *b, heddle_ctx *ctx, double single_ns, struct cuda_costs *costs);

/* The tasks; `walks` of them are walks. HEDDLE_ENOMEM. Free it in every case. */
heddle_status work_make(struct cuda_work *w, struct cuda_bench *b, uint32_t nt, uint32_t nb,
                        size_t walks);
void work_free(struct cuda_work *w);

/* Its data in a context. Close it in every case, before the context. */
heddle_status work_open(struct cuda_work *w, heddle_ctx *ctx);
void work_close(struct cuda_work *w);

/* Data as in the beginning, and one run. */
heddle_status work_reset(struct cuda_work *w);
heddle_status work_run(struct cuda_work *w, double *ns_out);
/* What the latest run has left, by samples. 0, or the exit status. */
int work_check(struct cuda_work *w);

/* Walks that keep the cores as busy as the factorisation keeps the GPU. */
size_t work_balanced(const struct cuda_costs *costs, uint32_t nt);

/* The best lower bound on the time, from the costs, with its certificate checked.
 * A failure has its sentence in `why`. */
heddle_status work_bound(const struct cuda_work *w, const struct cuda_costs *costs, double *ns_out,
                         char *why, size_t cap);

/* Name and bytes of all operands of a kind of task, as a machine file has them. */
const char *work_kernel_name(unsigned kind);
size_t work_bytes(uint32_t nb, unsigned kind);

/* Walks by length: words of a table and steps; words of a result. */
enum { WORK_WORDS = 16 };
extern const uint32_t work_table_words[3];
uint32_t work_steps(const struct cuda_bench *b, unsigned length);

#endif /* HEDDLE_TOOLS_BENCH_CUDA_WORK_H */
