/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * openmp: the streams as OpenMP tasks with depend clauses.
 *
 * Purpose    what a C programmer has without installing anything.
 * Measured   from the first `task` construct to the end of the taskwait, inside
 *            a parallel region of W threads; the creating thread is one of them
 *            and runs tasks too (as Heddle's does). Creating the threads is not
 *            timed. Dependencies are inferred by the library from addresses.
 * Threads    the kernel runs on the threads of the parallel region.
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "stream.h"

/* Called through this pointer, so that the compiler cannot see it is empty. */
static void (*kernel)(const struct stream *s, size_t i);

static void kernel_empty(const struct stream *s, size_t i)
{
    (void)s;
    (void)i;
}

static void submit(const struct stream *s, char *h)
{
    (void)h; /* gcc 12 does not count depend clauses as a use */
    for (size_t i = 0; i < s->ntasks; i++) {
        const struct stream_task *t = &s->tasks[i];

        switch (t->n) {
        case 0:
#pragma omp task firstprivate(i, s)
            kernel(s, i);
            break;
        case 1:
#pragma omp task firstprivate(i, s) depend(inout : h[t->h[0]])
            kernel(s, i);
            break;
        case 2:
#pragma omp task firstprivate(i, s) depend(in : h[t->h[0]]) depend(inout : h[t->h[1]])
            kernel(s, i);
            break;
        default:
#pragma omp task firstprivate(i, s) depend(in : h[t->h[0]], h[t->h[1]]) depend(inout : h[t->h[2]])
            kernel(s, i);
            break;
        }
    }
}

static int openmp_run(struct peer *p, struct peer_times *t)
{
    const struct stream *s = &p->stream;
    char *h = p->self;

#pragma omp parallel num_threads((int)p->opts.workers)
#pragma omp single
    {
        peer_start(t);
        submit(s, h);
        peer_submitted(t);
#pragma omp taskwait
        peer_end(t);
    }
    return 0;
}

static int openmp_open(struct peer *p)
{
    p->name = "openmp";
    kernel = p->opts.is_check ? stream_check : kernel_empty;
    peer_keep_memory();
    omp_set_dynamic(0);
    p->self = malloc(p->stream.nhandles + 1);
    if (p->self == NULL)
        fprintf(stderr, "openmp: no memory\n");
    return p->self == NULL;
}

static void openmp_close(struct peer *p)
{
    free(p->self);
}

int main(int argc, char **argv)
{
    static const struct peer_ops ops = {openmp_open, openmp_run, openmp_close};

    return peer_main(argc, argv, &ops);
}
