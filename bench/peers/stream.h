/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_BENCH_PEERS_STREAM_H
#define HEDDLE_BENCH_PEERS_STREAM_H

/*
 * stream.h - the task streams every peer runs, and the frame of a program.
 *
 * A peer program fills a peer_ops and calls peer_main(). The frame reads the
 * options, makes the stream before the clock starts, runs one untimed warm-up
 * and prints one JSON object per timed repetition.
 *
 * Streams (a task reads its first operands and updates the last one):
 *   independent  no operand
 *   chain        one handle, each task updates it
 *   random       1024 handles, each task reads two and updates a third; drawn
 *                by xorshift64* with state 42, index = (r >> 33) % 1024,
 *                drawn again when equal to an earlier one of the same task
 *   cholesky     tile Cholesky of 64 x 64 tiles, 45760 tasks, 1 to 3 operands
 *
 * Threads: stream_check() may run on any thread; the rest is for one thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STREAM_MAX_OPERANDS 3

struct stream_task {
    uint32_t h[STREAM_MAX_OPERANDS]; /* the last of the n is updated */
    uint32_t n;
};

struct stream_order; /* versions each task must find, see stream.c */

struct stream {
    struct stream_task *tasks;
    size_t ntasks;
    size_t nhandles;
    struct stream_order *order; /* NULL unless --check */
};

struct peer_opts {
    const char *shape;
    const char *config; /* a peer's own configuration; NULL: its default */
    const char *sched;  /* StarPU only; NULL: the one of the configuration */
    size_t ntasks;
    unsigned workers;
    unsigned reps;
    bool is_check; /* verify the order instead of timing it */
};

struct peer_times {
    uint64_t start_ns;
    uint64_t submitted_ns; /* the last task was handed over */
    uint64_t end_ns;       /* the last task has finished */
    uint64_t cpu_start_ns; /* all threads of the process */
    uint64_t cpu_end_ns;
};

struct peer {
    struct peer_opts opts;
    struct stream stream;
    const char *name;    /* set by open(), printed in the result */
    size_t warmup_tasks; /* set by open(); 0: the whole stream */
    void *self;          /* the peer's own */
};

/*
 * Members return 0 or, after a message on stderr, 1. run() executes the first
 * p->stream.ntasks tasks once and calls peer_start(), peer_submitted() and
 * peer_end() around what is to be timed.
 */
struct peer_ops {
    int (*open)(struct peer *p);
    int (*run)(struct peer *p, struct peer_times *t);
    void (*close)(struct peer *p);
};

/* Returns the exit status: 0 done, 1 failed, 2 wrong options. */
int peer_main(int argc, char **argv, const struct peer_ops *ops);

/*
 * Makes malloc keep what is freed. Without it a stream of a million pending
 * tasks pays for the page faults of all of them again in each repetition.
 */
void peer_keep_memory(void);

void peer_start(struct peer_times *t);
void peer_submitted(struct peer_times *t);
void peer_end(struct peer_times *t);

/* The kernel of a --check run: task i looks whether it may run now. */
void stream_check(const struct stream *s, size_t i);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_BENCH_PEERS_STREAM_H */
