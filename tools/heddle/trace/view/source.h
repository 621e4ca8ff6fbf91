/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HEDDLE_TOOLS_TRACE_VIEW_SOURCE_H
#define HEDDLE_TOOLS_TRACE_VIEW_SOURCE_H

/*
 * A log that a server shows.
 *
 * A small log is read and explained when it is opened. The tasks of a large log are
 * shown at once, and a thread explains the log meanwhile. A log that still grows is
 * read again by such a thread, at most once per second and for at most a quarter of
 * the time.
 *
 * Threads  all functions: the thread of the server. The other thread has the
 *          log and the pack it makes for itself until it ends; `state` hands
 *          them over.
 */
#include "base/thread.h"
#include "trace/view/cmd.h"

struct view_source {
    const char *file, *title;
    unsigned npacks;
    bool is_live;                /* it may grow */
    const heddle_energy *energy; /* NULL: none; it outlives this */
    const char *energy_file;

    struct view_opts opts; /* of the pack being made */
    heddle_log *log;       /* to be explained; NULL: to be read first */
    struct view_pack *result;
    struct heddle_thread thread;
    _Atomic int state;
    int64_t bytes;     /* of the file, when it was read last */
    uint64_t begin_ns; /* of the latest reading */
    uint64_t next_ns;  /* not before that */
    uint64_t generation;
    bool is_offered; /* a newer pack waits to be asked for */
};

/* The first pack; 0, or the exit status after a sentence. */
int view_source_open(struct cli *c, struct view_source *x, struct view_pack **out);
/* Puts a newer pack into *next when there is one. */
void view_source_tick(struct view_source *x, struct view_pack **next);
/* false: its thread is at work, and only the end of the process ends it. */
bool view_source_close(struct view_source *x);

#endif /* HEDDLE_TOOLS_TRACE_VIEW_SOURCE_H */
