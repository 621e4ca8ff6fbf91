/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_BENCH_NN_NN_H
#define HEDDLE_TOOLS_BENCH_NN_NN_H

/*
 * What the parts of `heddle bench nn` share.
 *
 *   bench/nn.c          options, the parts, models in folders
 *   bench/nn/net.c      a network with inputs, one request, many in flight
 *   bench/nn/ort.c      the peer: ONNX Runtime, loaded at run time
 *   bench/nn/outputs.c  results against the peer's
 *   bench/nn/latency.c  one request at a time; int8 against f32
 *   bench/nn/load.c     many requests in flight; from the file to the first answer
 *   bench/nn/runtime.c  what the runtime adds to its kernels
 *   bench/nn/memory.c   the arena, and growth over many requests
 *   bench/nn/nodes.c    the node tests of ONNX
 *
 * A model is a file NAME.onnx. The files NAME_tiny.onnx (small, any batch) and NAME_int8.onnx are
 * measured by the parts that want such models only. Heddle and the peer alternate.
 *
 * Threads  the main thread, unless a function says otherwise.
 */
#include "bench/case.h"
#include "heddle/nn.h"

enum { NN_FILES = 64, NN_PATH = 1024, NN_NAME = 64, NN_WHY = 500, NN_INPUTS = 16 };

struct ort; /* ort.c */

struct nn_file {
    char name[NN_NAME]; /* of the file, without its end */
    char path[NN_PATH];
};

struct nn_bench {
    struct cli *c;
    const char *only, *peer, *cases, *new_cases;
    uint64_t rounds, repeat, requests;
    unsigned cores;
    struct nn_file *file;
    size_t nfiles;
    struct ort *ort;  /* NULL: there is none */
    char against[64]; /* "ONNX Runtime 1.2.3", or why there is none */
    char machine[128];
    struct bench_tally tally;
};

/* The file of that name; NULL: there is none. */
const struct nn_file *nn_find(const struct nn_bench *b, const char *name);
/* Networks whose geometric mean has bars: the i-th that is there, NULL at their end. */
const struct nn_file *nn_counted(const struct nn_bench *b, size_t *i);
/* True for the files that only some parts want. */
bool nn_is_special(const struct nn_file *f);

/* A case without numbers. */
void nn_case(struct bench_case *k, const char *part, const char *name, const char *unit);
int nn_report(struct nn_bench *b, struct bench_case *k);
/* Says why a part, or a case of it, has no numbers; the exit status. */
int nn_skip(struct nn_bench *b, const char *part, const char *what, const char *why);

/* Networks whose numbers make one case: their geometric mean, round by round. */
struct nn_mean {
    double heddle[BENCH_CASE_ROUNDS], raw[BENCH_CASE_ROUNDS]; /* sums of logarithms */
    unsigned n;
};
/* Before nn_report(), which sorts. */
void nn_mean_add(struct nn_mean *m, const struct bench_case *k);
int nn_mean_report(struct nn_bench *b, const struct nn_mean *m, struct bench_case *k);

/* --- net.c ---------------------------------------------------------------------------- */

struct nn_net {
    struct nn_bench *b;
    const struct nn_file *file;
    heddle_ctx *ctx;
    heddle_nn *net;
    struct heddle_nn_tensor in[NN_INPUTS];
    const char *in_name[NN_INPUTS]; /* borrowed from the network */
    const char **out_name;          /* the same */
    unsigned nin, nout;
};

/* Opens a network with inputs of `batch` at most; `helps`: the calling thread is one of the
 * workers. 0, or the exit status after a sentence; closed in every case. */
int nn_net_open(struct nn_net *n, struct nn_bench *b, const struct nn_file *f, unsigned workers,
                bool helps, int64_t batch);
void nn_net_close(struct nn_net *n);
/* Changes the first dimension of each input that the model leaves open. */
void nn_net_batch(struct nn_net *n, int64_t batch);
/* One request. *ns_out and *result_out may be NULL. */
int nn_net_run(struct nn_net *n, double *ns_out, struct heddle_nn_result **result_out);
/* The best of `repeat` requests. */
int nn_net_best(struct nn_net *n, uint64_t repeat, double *ns_out);
/* `total` requests, `in_flight` of them at once, batches from next(), which may be NULL. */
int nn_net_flood(struct nn_net *n, uint64_t total, unsigned in_flight, int64_t (*next)(void *user),
                 void *user, double *ns_out);

/* --- ort.c ---------------------------------------------------------------------------- */

/* A session with the inputs of a network, and buffers for its outputs. */
struct ort_session;

/* Loads the library. NULL: why has one sentence. */
struct ort *ort_load(const char *path, char *why, size_t why_bytes);
void ort_unload(struct ort *o);
const char *ort_version(const struct ort *o);
/* `threads` 0: as many as the peer likes; `result` says how large the outputs are. 0, or the exit
 * status after a sentence. */
int ort_open(struct ort *o, const struct nn_net *n, const struct heddle_nn_result *result,
             unsigned threads, struct ort_session **out);
void ort_close(struct ort_session *s);
/* One request, by any thread, each with its own outputs: `slot` below ORT_SLOTS. */
enum { ORT_SLOTS = 256 };
int ort_run(struct ort_session *s, unsigned slot, double *ns_out);
int ort_best(struct ort_session *s, uint64_t repeat, double *ns_out);
/* `total` requests by `nthreads` threads that share the sessions. */
int ort_flood(struct ort_session *const *s, unsigned nsessions, uint64_t total, unsigned nthreads,
              double *ns_out);
const void *ort_output(const struct ort_session *s, unsigned i);

/* --- parts ---------------------------------------------------------------------------- */

int bench_nn_outputs(struct nn_bench *b);
int bench_nn_latency(struct nn_bench *b);
int bench_nn_int8(struct nn_bench *b);
int bench_nn_throughput(struct nn_bench *b);
int bench_nn_load(struct nn_bench *b);
int bench_nn_runtime(struct nn_bench *b);
int bench_nn_arena(struct nn_bench *b);
int bench_nn_growth(struct nn_bench *b);
int bench_nn_nodes(struct nn_bench *b);

#endif /* HEDDLE_TOOLS_BENCH_NN_NN_H */
